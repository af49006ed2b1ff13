//! Heritrix's frontier journal (recover log): lines `F+ URL path via`, and other tags with a URL.
//!
//! Tags: `F+` added, `Fe` emitted, `Fi` included, `Fs` succeeded, `Ff` failed, `Fd` disregarded, `Fr` re-enqueued. If the
//! discovery path ends in `R`, the via redirected to the URL. A line without a known tag is a record with a fault, and
//! the line is its URL. Lines that state when they were written (`T yyyyMMddHHmmss`) or report an error of the journal
//! (`E yyyyMMddHHmmss message`) have no URL and are counted as headers; these and blank lines are not records.

use super::buffer::{RecordColumns, filled_lines};
use super::decoder::{SourceHead, TextDecoder};
use super::fields::{FieldSet, FieldValues};
use super::records::Records;
use super::time;
use crate::iri::{CLASSIFIER, FaultKind, find_scheme};
use crate::kernel::{Bitmaps, Span};

/// Second letters of the tags.
const TAGS: &[u8] = b"+eisfdr";

/// Decoder of frontier journals.
///
/// ```
/// use irikey::{kernel::Bitmaps, record::{TextDecoder, journal::Journal}};
/// let line = b"F+ http://a.org/x LR http://a.org/";
/// let (mut journal, mut bitmaps) = (Journal::default(), Bitmaps::default());
/// let records = journal.decode(line, 0, &mut bitmaps);
/// assert_eq!(records.urls[0].of(line), b"http://a.org/x");
/// assert_eq!(records.fields.redirected_from[0].unwrap().of(line), b"http://a.org/");
/// ```
#[derive(Debug, Default)]
pub struct Journal {
    rows: RecordColumns,
}

impl TextDecoder for Journal {
    type Settings = ();

    /// A line with a tag and a URL that has a scheme.
    fn detect(head: &SourceHead<'_>) -> Option<()> {
        let url = after_tag(head.first_record)?.split(|&byte| byte == b' ').next()?;
        find_scheme(url).map(drop)
    }

    fn set_carry(&mut self, carry: FieldSet) {
        self.rows.set_carry(carry);
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk, &CLASSIFIER);
        self.rows.clear();
        for (at, line) in filled_lines(chunk) {
            if is_note(line) {
                self.rows.count_header();
                continue;
            }
            self.rows.begin(offset + at as u64);
            self.decode_line(line, at);
        }
        self.rows.records(chunk)
    }
}

impl Journal {
    fn decode_line(&mut self, line: &[u8], at: usize) {
        let span = |from: usize, len: usize| Span::new(at + from, len);
        let Some(rest) = after_tag(line) else {
            self.rows.refuse(FaultKind::NotOfFormat);
            return self.rows.push(span(0, line.len()), &FieldValues::default());
        };
        let mut from = line.len() - rest.len();
        let mut words = rest.split(|&byte| byte == b' ').map(|word| {
            from += word.len() + 1;
            span(from - word.len() - 1, word.len())
        });
        let [url, path, via] = [(); 3].map(|()| words.next());
        let is_redirect = path.is_some_and(|path| path.len > 0 && line[(path.at + path.len - 1) as usize - at] == b'R');
        let redirected_from = via.filter(|via| is_redirect && via.len > 0);
        self.rows.push(url.unwrap_or_default(), &FieldValues { redirected_from, ..FieldValues::default() });
    }
}

/// Whether a line states a time, or reports an error of the journal itself.
fn is_note(line: &[u8]) -> bool {
    match line {
        [b'T', b' ', time @ ..] => time::from_digits(time).is_some(),
        [b'E', b' ', rest @ ..] => rest.split(|&byte| byte == b' ').next().and_then(time::from_digits).is_some(),
        _ => false,
    }
}

/// The part of a line after its tag.
fn after_tag(line: &[u8]) -> Option<&[u8]> {
    match line {
        [b'F', tag, b' ', rest @ ..] if TAGS.contains(tag) && !rest.starts_with(b" ") && !rest.is_empty() => Some(rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_paths_and_malformed_lines() {
        let text = b"F+ http://a.org/\nFe http://a.org/\r\n\nF+ http://b.org/ LR http://a.org/\nF+ http://c.org/ L http://a.org/\n\
            F? http://d.org/\nF+ \nFs http://e.org/";
        let (mut journal, mut bitmaps) = (Journal::default(), Bitmaps::default());
        let records = journal.decode(text, 100, &mut bitmaps);
        let a = "http://a.org/";
        assert_eq!(
            records.shown_urls(),
            [a, a, "http://b.org/", "http://c.org/", "F? http://d.org/", "F+ ", "http://e.org/"]
        );
        assert_eq!(records.faults.iter().map(|fault| fault.0).collect::<Vec<_>>(), [4, 5]);
        let from: Vec<_> = records.fields.redirected_from.iter().map(|via| via.map(|via| records.show(via))).collect();
        assert_eq!(from, [None, None, Some(a.to_string()), None, None, None, None]);
        assert!(records.headers.is_empty());
        let is_detected = |line: &[u8]| Journal::detect(&SourceHead::new(line)).is_some();
        assert!(is_detected(b"Fs http://a.org/") && !is_detected(b"Fs a.org") && !is_detected(b"F+ "));
    }

    #[test]
    fn lines_about_the_journal_are_headers() {
        let text = b"F+ http://a.org/\nT 20041026120000\r\nE 20041026120001 disk full\n\nT 2004102612000x\nE disk full\nFs http://a.org/\n";
        let (mut journal, mut bitmaps) = (Journal::default(), Bitmaps::default());
        let records = journal.decode(text, 0, &mut bitmaps);
        assert_eq!(records.shown_urls(), ["http://a.org/", "T 2004102612000x", "E disk full", "http://a.org/"]);
        assert_eq!(records.headers, [1, 1]);
    }
}
