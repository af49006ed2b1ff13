//! What records state about URLs, as [`CaptureSort`](super::capture_sort::CaptureSort) writes it after the URL and
//! [`HostReader`](super::host_reader::HostReader) reads it: [`CaptureRecord`].

use crate::learn::{FieldReader, RecordFields, RecordPlace, RedirectCode, TargetSource};

/// The kinds of records, which follow the URL. No URI contains them.
pub(super) const CAPTURE: u8 = 0;
pub(super) const REDIRECT: u8 = 1;
pub(super) const OTHER: u8 = 2;

/// What other records are about.
const COUNTED_TARGET: u8 = 0;
const TARGET: u8 = 1;
const TEXT: u8 = 2;
const CANONICAL: u8 = 3;

/// The time of captures whose time is not known.
const UNKNOWN_TIME: i64 = i64::MIN;

/// What a record states about a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaptureRecord<'a> {
    /// It was fetched: the hash of the content, the response as bits, and the time as milliseconds since 1970, if it is known.
    Capture { content: u64, response: u8, time: Option<i64> },
    /// It redirected.
    Redirect { to: &'a [u8], code: RedirectCode, place: RecordPlace },
    /// Another URL redirected to it.
    Target(TargetSource),
    /// It is a document: the hash of its content, and that of its text.
    Text { content: u64, hash: u64 },
    /// It is a document that names its canonical URL.
    Canonical(&'a [u8]),
}

impl<'a> CaptureRecord<'a> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            CaptureRecord::Capture { content, response, time } => {
                out.push(CAPTURE);
                out.put_u64(content);
                out.push(response);
                out.put_u64(time.unwrap_or(UNKNOWN_TIME) as u64);
            }
            CaptureRecord::Redirect { to, code, place } => {
                out.push(REDIRECT);
                out.put_text(to);
                out.push(code as u8);
                out.put_place(place);
            }
            CaptureRecord::Target(TargetSource { is_counted, source }) => {
                out.extend_from_slice(&[OTHER, if is_counted { COUNTED_TARGET } else { TARGET }]);
                out.put_u64(source);
            }
            CaptureRecord::Text { content, hash } => {
                out.extend_from_slice(&[OTHER, TEXT]);
                out.put_u64(content);
                out.put_u64(hash);
            }
            CaptureRecord::Canonical(uri) => {
                out.extend_from_slice(&[OTHER, CANONICAL]);
                out.extend_from_slice(uri);
            }
        }
    }

    pub(super) fn read(bytes: &'a [u8]) -> CaptureRecord<'a> {
        let mut fields = FieldReader(bytes);
        match fields.u8() {
            CAPTURE => {
                let (content, response, time) = (fields.u64(), fields.u8(), fields.u64() as i64);
                CaptureRecord::Capture { content, response, time: (time != UNKNOWN_TIME).then_some(time) }
            }
            REDIRECT => {
                let (to, code) = (fields.text(), RedirectCode::numbered(fields.u8()));
                CaptureRecord::Redirect { to, code, place: fields.place() }
            }
            _ => match fields.u8() {
                TEXT => CaptureRecord::Text { content: fields.u64(), hash: fields.u64() },
                CANONICAL => CaptureRecord::Canonical(fields.0),
                kind => {
                    CaptureRecord::Target(TargetSource { is_counted: kind == COUNTED_TARGET, source: fields.u64() })
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let place = RecordPlace { source: 3, record: 0x0102_0304_0506 };
        let records = [
            CaptureRecord::Capture { content: 1 << 60, response: 5, time: Some(-20_000) },
            CaptureRecord::Capture { content: 1, response: 4, time: None },
            CaptureRecord::Redirect { to: b"http://a/", code: RedirectCode::Temporary, place },
            CaptureRecord::Target(TargetSource { is_counted: true, source: 7 }),
            CaptureRecord::Target(TargetSource { is_counted: false, source: 7 }),
            CaptureRecord::Text { content: 8, hash: 9 },
            CaptureRecord::Canonical(b"http://b/"),
        ];
        for record in records {
            let mut bytes = Vec::new();
            record.write(&mut bytes);
            assert_eq!(CaptureRecord::read(&bytes), record);
        }
    }
}
