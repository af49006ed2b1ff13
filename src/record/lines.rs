//! One URL a line: `LF` ends a record, and so does the end of the source; a `CR` before either is not part of it. An
//! empty line is a record. NUL and every other byte is the record's own business.

use super::{Offsets, Records, Span};
use crate::iri::CLASSIFIER;
use crate::kernel::Bitmaps;

/// Decoder of lines; keeps the memory of its spans.
#[derive(Debug, Default)]
pub struct Lines {
    urls: Vec<Span>,
}

impl Lines {
    /// Every line of `chunk`, which begins at byte `offset` of the source; `bitmaps` describe `chunk` afterwards.
    ///
    /// ```
    /// use irikey::{kernel::Bitmaps, record::lines::Lines};
    /// let (mut lines, mut bitmaps) = (Lines::default(), Bitmaps::default());
    /// let records = lines.decode(b"a\r\n\nb", 0, &mut bitmaps);
    /// let urls: Vec<_> = records.urls.iter().map(|url| url.of(records.text)).collect();
    /// assert_eq!(urls, [&b"a"[..], b"", b"b"]);
    /// ```
    pub fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk, &CLASSIFIER);
        self.urls.clear();
        let mut at = 0;
        for end in bitmaps.newlines() {
            self.urls.push(line(chunk, at, end));
            at = end + 1;
        }
        if at < chunk.len() {
            self.urls.push(line(chunk, at, chunk.len()));
        }
        Records { text: chunk, urls: &self.urls, bases: &[], offsets: Offsets::From(offset), faults: &[] }
    }
}

#[inline(always)]
fn line(chunk: &[u8], at: usize, end: usize) -> Span {
    let has_cr = end > at && chunk[end - 1] == b'\r';
    Span { at: at as u32, len: (end - at) as u32 - u32::from(has_cr) }
}
