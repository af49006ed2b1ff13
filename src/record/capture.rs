//! Captures: what is left of a record once its payload is passed over, as a line of text of our own. In: [`Capture`]s,
//! from archives and tables that are no lines. Out: lines that blocks, cuts and chunks can hold like any others, and
//! [`Captures`], the decoder that reads them again.
//!
//! A line is numbers, each with a space behind it, then the fields end to end: `offset fault flags status time`, where the
//! capture lies and how long it is there, the lengths of URL, base, redirect, digest, charset, media type, detected media
//! type, languages, archive; `-` where there is none. Fields hold no `LF`.

use std::io::Write;

use super::fields::{FieldBuffers, FieldSet, FieldValues};
use super::{Offsets, Records, Span};
use crate::iri::{CLASSIFIER, Component, Fault, FaultKind, Flags};
use crate::kernel::Bitmaps;

/// A record without its payload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Byte of the source at which the record begins.
    pub offset: u64,
    /// Why it has no URL that could be read.
    pub fault: Option<FaultKind>,
    /// What was repaired in its URL.
    pub flags: Flags,
    /// Status of the fetch.
    pub status: Option<i32>,
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub time: Option<i64>,
    /// The URL.
    pub url: Vec<u8>,
    /// Its base; empty if it has none.
    pub base: Vec<u8>,
    /// Where the response redirects to; empty if nowhere.
    pub redirect: Vec<u8>,
    /// Digest of the content; empty if there is none.
    pub digest: Vec<u8>,
    /// Charset of the content; empty if there is none.
    pub charset: Vec<u8>,
    /// Media type as the server named it; empty if there is none.
    pub mime: Vec<u8>,
    /// Media type as it was found out; empty if there is none.
    pub detected_mime: Vec<u8>,
    /// Languages of the content; empty if there are none.
    pub languages: Vec<u8>,
    /// The archive that the capture lies in; empty if it is not known.
    pub filename: Vec<u8>,
    /// Where it begins there, bytes as they are stored.
    pub place: Option<i64>,
    /// How long it is there.
    pub length: Option<i64>,
}

/// Fields of a line.
const FIELDS: usize = 9;

/// Numbers before them.
const NUMBERS: usize = 7 + FIELDS;

impl Capture {
    /// Appends the capture's line to `out`.
    ///
    /// ```
    /// use irikey::kernel::Bitmaps;
    /// use irikey::record::capture::{Capture, Captures};
    /// let mut text = Vec::new();
    /// Capture { offset: 7, url: b"http://example.org/".to_vec(), ..Capture::default() }.write_line(&mut text);
    /// let (mut captures, mut bitmaps) = (Captures::default(), Bitmaps::default());
    /// let records = captures.decode(&text, &mut bitmaps);
    /// assert_eq!(records.urls[0].of(records.text), b"http://example.org/");
    /// ```
    pub fn write_line(&self, out: &mut Vec<u8>) {
        let fields: [&Vec<u8>; FIELDS] = [
            &self.url,
            &self.base,
            &self.redirect,
            &self.digest,
            &self.charset,
            &self.mime,
            &self.detected_mime,
            &self.languages,
            &self.filename,
        ];
        // Writing to memory does not fail.
        let _ = write!(out, "{} ", self.offset);
        let numbers = [self.fault.map(|kind| kind as i64), Some(i64::from(self.flags.0)), self.status.map(i64::from)];
        for number in numbers.into_iter().chain([self.time, self.place, self.length]) {
            let _ = match number {
                Some(number) => write!(out, "{number} "),
                None => write!(out, "- "),
            };
        }
        fields.iter().for_each(|field| drop(write!(out, "{} ", field.len())));
        for field in fields {
            let at = out.len();
            out.extend_from_slice(field);
            // An LF within a field would end the line; archives have none, tables may.
            out[at..].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
        }
        out.push(b'\n');
    }
}

/// Decoder of captures' lines; keeps the memory of its spans.
#[derive(Debug, Default)]
pub struct Captures {
    urls: Vec<Span>,
    bases: Vec<Span>,
    offsets: Vec<u64>,
    faults: Vec<(u32, Fault)>,
    flags: Vec<(u32, Flags)>,
    fields: FieldBuffers,
}

impl Captures {
    /// The chunks that follow have these fields.
    pub fn set_carry(&mut self, carry: FieldSet) {
        self.fields.set_carry(carry);
    }

    /// Every record of `chunk`, which holds lines of [`Capture::write_line`]; `bitmaps` describe `chunk` afterwards.
    pub fn decode<'a>(&'a mut self, chunk: &'a [u8], bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk, &CLASSIFIER);
        self.urls.clear();
        self.bases.clear();
        self.offsets.clear();
        self.faults.clear();
        self.flags.clear();
        self.fields.clear();
        let mut at = 0;
        while at < chunk.len() {
            let end = memchr::memchr(b'\n', &chunk[at..]).map_or(chunk.len(), |len| at + len);
            self.line(&chunk[..end], at);
            at = end + 1;
        }
        Records {
            text: chunk,
            urls: &self.urls,
            bases: &self.bases,
            offsets: Offsets::Each(&self.offsets),
            faults: &self.faults,
            fields: self.fields.views(),
            flags: &self.flags,
            ..Records::default()
        }
    }

    /// Reads the line of `text` that begins at `at`.
    fn line(&mut self, text: &[u8], mut at: usize) {
        let mut numbers = [None; NUMBERS];
        for number in &mut numbers {
            // Whatever else stands there, a line is one record, and its spans stay within it.
            let rest = text.get(at..).unwrap_or_default();
            let len = memchr::memchr(b' ', rest).unwrap_or(rest.len());
            *number = std::str::from_utf8(&rest[..len]).ok().and_then(|digits| digits.parse::<i64>().ok());
            at = (at + len + 1).min(text.len());
        }
        let mut field = |number: usize| {
            let len = (numbers[number].unwrap_or(0).max(0) as usize).min(text.len() - at);
            at += len;
            Span { at: (at - len) as u32, len: len as u32 }
        };
        let [url, base, redirect, digest, charset, mime, detected_mime, languages, filename]: [Span; FIELDS] =
            std::array::from_fn(|i| field(NUMBERS - FIELDS + i));
        let row = self.urls.len() as u32;
        let said = |span: Span| (span.len > 0).then_some(span);
        if let Some(kind) = numbers[1].and_then(|kind| FaultKind::ALL.get(kind as usize)) {
            self.faults.push((row, Fault::new(*kind, Component::Reference, 0)));
        }
        if let Some(flags) = numbers[2].filter(|flags| *flags != 0) {
            self.flags.push((row, Flags(flags as u32)));
        }
        self.urls.push(url);
        self.bases.push(base);
        self.offsets.push(numbers[0].unwrap_or(0) as u64);
        self.fields.push(FieldValues {
            status: numbers[3].map(|status| status as i32),
            time: numbers[4],
            redirect: said(redirect),
            redirected_from: None,
            digest: said(digest),
            charset: said(charset),
            mime: said(mime),
            detected_mime: said(detected_mime),
            languages: said(languages),
            filename: said(filename),
            capture_offset: numbers[5],
            capture_length: numbers[6],
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let full = Capture {
            offset: u64::MAX >> 1,
            fault: Some(FaultKind::NoUrl),
            flags: Flags::BRACKETED,
            status: Some(-5003),
            time: Some(-1),
            url: b"http://a b/ 1 2".to_vec(),
            base: b"http://b/".to_vec(),
            redirect: b"/c d".to_vec(),
            digest: b"sha1:X".to_vec(),
            charset: b"utf-8".to_vec(),
            mime: b"text/html".to_vec(),
            detected_mime: b"text/plain".to_vec(),
            languages: b"eng,deu".to_vec(),
            filename: b"a b.warc.gz".to_vec(),
            place: Some(0),
            length: Some(1 << 40),
        };
        let mut text = Vec::new();
        [&full, &Capture::default(), &full].into_iter().for_each(|capture| capture.write_line(&mut text));
        let (mut captures, mut bitmaps) = (Captures::default(), Bitmaps::default());
        let records = captures.decode(&text, &mut bitmaps);
        assert_eq!(records.urls.iter().map(|url| url.of(&text)).collect::<Vec<_>>(), [&full.url[..], b"", &full.url]);
        assert_eq!(records.bases[2].of(&text), full.base);
        assert_eq!(
            records.faults.iter().map(|(row, fault)| (*row, fault.kind)).collect::<Vec<_>>(),
            [(0, FaultKind::NoUrl), (2, FaultKind::NoUrl)]
        );
        assert_eq!(records.flags, [(0, Flags::BRACKETED), (2, Flags::BRACKETED)]);
        let fields = records.fields;
        assert_eq!((fields.statuses[0], fields.times[0], fields.times[1]), (Some(-5003), Some(-1), None));
        assert_eq!(fields.redirects[2].map(|span| span.of(&text)), Some(&full.redirect[..]));
        assert_eq!(fields.charsets[0].map(|span| span.of(&text)), Some(&full.charset[..]));
        assert!(records.urls.windows(2).all(|pair| pair[0].at + pair[0].len <= pair[1].at));
    }
}
