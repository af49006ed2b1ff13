//! One URL a line: `LF` ends a record, and so does the end of the source; a `CR` before either is not part of it. An
//! empty line is a record. NUL and every other byte is the record's own business.

use super::{Offsets, Records, Span};
use crate::iri::CLASSIFIER;
use crate::kernel::{Bitmaps, SimdTask, run_with_simd};

/// Decoder of lines; keeps the memory of its spans.
#[derive(Debug, Default)]
pub struct Lines {
    ends: Vec<u32>,
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
        run_with_simd(Cut { chunk, bitmaps, ends: &mut self.ends, urls: &mut self.urls });
        Records { text: chunk, urls: &self.urls, offsets: Offsets::From(offset), ..Records::default() }
    }
}

/// Finds the lines of a chunk.
struct Cut<'a> {
    chunk: &'a [u8],
    bitmaps: &'a Bitmaps,
    ends: &'a mut Vec<u32>,
    urls: &'a mut Vec<Span>,
}

impl SimdTask for Cut<'_> {
    #[inline(always)]
    fn run(self) {
        let Cut { chunk, bitmaps, ends, urls } = self;
        ends.clear();
        bitmaps.push_newlines(ends);
        if chunk.last().is_some_and(|&byte| byte != b'\n') {
            ends.push(chunk.len() as u32);
        }
        let mut at = 0;
        urls.clear();
        urls.extend(ends.iter().map(|&end| {
            let has_cr = end > at && chunk[end as usize - 1] == b'\r';
            let url = Span { at, len: end - at - u32::from(has_cr) };
            at = end + 1;
            url
        }));
    }
}
