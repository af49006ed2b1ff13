//! One URL a line: `LF` ends a record, a `CR` before it is not part of it, and so does the end of the source.

use super::{Offsets, Records, Span};
use crate::kernel::Bitmaps;

/// Decoder of lines; keeps the memory of its spans.
#[derive(Debug, Default)]
pub struct Lines {
    urls: Vec<Span>,
}

impl Lines {
    /// Every line of `chunk`, which begins at byte `offset` of the source; `bitmaps` describe `chunk` afterwards.
    /// A last line without `LF` counts; an empty line is a record.
    pub fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        bitmaps.classify(chunk);
        self.urls.clear();
        let mut at = 0;
        for line in chunk.split_inclusive(|&b| b == b'\n') {
            let url = line.strip_suffix(b"\n").unwrap_or(line);
            let url = url.strip_suffix(b"\r").unwrap_or(url);
            self.urls.push(Span { at: at as u32, len: url.len() as u32 });
            at += line.len();
        }
        Records { text: chunk, urls: &self.urls, bases: &[], offsets: Offsets::From(offset), faults: &[] }
    }
}
