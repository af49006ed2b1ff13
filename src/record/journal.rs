//! Heritrix's frontier journal, the recover log: `F+ URL path via`, and other tags with a URL. In: a chunk of whole lines.
//! Out: a record a line, all of it spans of the chunk.
//!
//! Tags: `F+` added, `Fe` emitted, `Fi` included, `Fs` succeeded, `Ff` failed, `Fd` disregarded, `Fr` re-enqueued. A
//! discovery path that ends in `R` says that the via redirected to the URL. A line with another tag, or with none, is a
//! record with a fault, the line being its URL. Blank lines are no records.

use super::collected::{Collected, filled_lines};
use super::fields::{FieldSet, FieldValues};
use super::{Records, Span};
use crate::iri::{CLASSIFIER, FaultKind};
use crate::kernel::Bitmaps;

/// What stands behind the `F` of a tag.
const TAGS: &[u8] = b"+eisfdr";

/// Decoder of frontier journals; keeps the memory of its spans.
#[derive(Debug, Default)]
pub struct Journal {
    found: Collected,
}

impl Journal {
    /// The chunks that follow have these fields.
    pub fn set_carry(&mut self, carry: FieldSet) {
        self.found.set_carry(carry);
    }

    /// Every record of `chunk`, which begins at byte `offset` of the source; `bitmaps` describe `chunk` afterwards.
    ///
    /// ```
    /// use irikey::{kernel::Bitmaps, record::journal::Journal};
    /// let line = b"F+ http://a.org/x LR http://a.org/";
    /// let (mut journal, mut bitmaps) = (Journal::default(), Bitmaps::default());
    /// let records = journal.decode(line, 0, &mut bitmaps);
    /// assert_eq!(records.urls[0].of(line), b"http://a.org/x");
    /// assert_eq!(records.fields.redirected_from[0].unwrap().of(line), b"http://a.org/");
    /// ```
    pub fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk, &CLASSIFIER);
        self.found.clear();
        for (at, line) in filled_lines(chunk) {
            self.found.begin(offset + at as u64);
            self.line(line, at);
        }
        self.found.records(chunk)
    }

    fn line(&mut self, line: &[u8], at: usize) {
        let span = |from: usize, len: usize| Span { at: (at + from) as u32, len: len as u32 };
        let Some(rest) = tagged(line) else {
            self.found.refuse(FaultKind::NotOfFormat);
            return self.found.push(span(0, line.len()), FieldValues::default());
        };
        let mut from = line.len() - rest.len();
        let mut words = rest.split(|&byte| byte == b' ').map(|word| {
            from += word.len() + 1;
            span(from - word.len() - 1, word.len())
        });
        let [url, path, via] = [(); 3].map(|()| words.next());
        let is_redirect = path.is_some_and(|path| path.len > 0 && line[(path.at + path.len - 1) as usize - at] == b'R');
        let redirected_from = via.filter(|via| is_redirect && via.len > 0);
        self.found.push(url.unwrap_or_default(), FieldValues { redirected_from, ..FieldValues::default() });
    }
}

/// What follows the tag of a line.
fn tagged(line: &[u8]) -> Option<&[u8]> {
    match line {
        [b'F', tag, b' ', rest @ ..] if TAGS.contains(tag) && !rest.starts_with(b" ") && !rest.is_empty() => Some(rest),
        _ => None,
    }
}

/// `line` is unmistakably one of a journal: a tag, and a URL with a scheme.
pub(super) fn is_record(line: &[u8]) -> bool {
    let url = tagged(line).map(|rest| rest.split(|&byte| byte == b' ').next().unwrap_or_default());
    url.is_some_and(|url| crate::iri::find_scheme(url).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_paths_and_what_is_none() {
        let text = b"F+ http://a.org/\nFe http://a.org/\r\n\nF+ http://b.org/ LR http://a.org/\nF+ http://c.org/ L http://a.org/\n\
            F? http://d.org/\nF+ \nFs http://e.org/";
        let (mut journal, mut bitmaps) = (Journal::default(), Bitmaps::default());
        let records = journal.decode(text, 100, &mut bitmaps);
        let show = |span: &Span| String::from_utf8_lossy(span.of(text)).into_owned();
        let urls: Vec<_> = records.urls.iter().map(show).collect();
        let a = "http://a.org/";
        assert_eq!(urls, [a, a, "http://b.org/", "http://c.org/", "F? http://d.org/", "F+ ", "http://e.org/"]);
        assert_eq!(records.faults.iter().map(|fault| fault.0).collect::<Vec<_>>(), [4, 5]);
        let from: Vec<_> = records.fields.redirected_from.iter().map(|via| via.as_ref().map(show)).collect();
        assert_eq!(from, [None, None, Some(a.to_string()), None, None, None, None]);
        assert!(is_record(b"Fs http://a.org/") && !is_record(b"Fs a.org") && !is_record(b"F+ "));
    }
}
