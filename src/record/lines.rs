//! Text with one URL per line. `LF` or the end of the source ends a record; a `CR` before it does not belong to the
//! record. An empty line is a record. NUL and all other bytes belong to the URL.

use super::decoder::TextDecoder;
use super::records::{RecordOffsets, Records};
use crate::iri::CLASSIFIER;
use crate::kernel::{Bitmaps, SimdTask, Span, run_with_simd};

/// Decoder of lines.
///
/// ```
/// use irikey::{kernel::Bitmaps, record::{TextDecoder, lines::Lines}};
/// let (mut lines, mut bitmaps) = (Lines::default(), Bitmaps::default());
/// let records = lines.decode(b"a\r\n\nb", 0, &mut bitmaps);
/// let urls: Vec<_> = records.urls.iter().map(|url| url.of(records.text)).collect();
/// assert_eq!(urls, [&b"a"[..], b"", b"b"]);
/// ```
#[derive(Debug, Default)]
pub struct Lines {
    ends: Vec<u32>,
    urls: Vec<Span>,
}

impl TextDecoder for Lines {
    type Settings = ();

    fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk, &CLASSIFIER);
        run_with_simd(FindLines { chunk, bitmaps, ends: &mut self.ends, urls: &mut self.urls });
        Records { text: chunk, urls: &self.urls, offsets: RecordOffsets::From(offset), ..Records::default() }
    }
}

/// Finds the lines of a chunk.
struct FindLines<'a> {
    chunk: &'a [u8],
    bitmaps: &'a Bitmaps,
    ends: &'a mut Vec<u32>,
    urls: &'a mut Vec<Span>,
}

impl SimdTask for FindLines<'_> {
    #[inline(always)]
    fn run(self) {
        let FindLines { chunk, bitmaps, ends, urls } = self;
        ends.clear();
        bitmaps.push_newlines(ends);
        let has_crlf = bitmaps.has_crlf() || chunk.last() == Some(&b'\r');
        if chunk.last().is_some_and(|&byte| byte != b'\n') {
            ends.push(chunk.len() as u32);
        }
        urls.clear();
        urls.extend(ends.first().map(|&end| Span { at: 0, len: end }));
        urls.extend(ends.array_windows().map(|&[before, end]| Span { at: before + 1, len: end - before - 1 }));
        if has_crlf {
            let has_cr = |url: &&mut Span| url.of(chunk).last() == Some(&b'\r');
            urls.iter_mut().filter(has_cr).for_each(|url| url.len -= 1);
        }
    }
}
