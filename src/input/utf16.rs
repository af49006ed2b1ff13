//! A source of UTF-16 as one of UTF-8: [`Utf16`]. In: unpacked bytes. Out: bytes whose lines are found by the byte LF.
//! Refuses an end within a character, after all that stands before it was given out.

use super::error::Defect;
use crate::encoding::Utf16Decoder;

/// Bytes of UTF-16 that are decoded at a time.
const STEP_LEN: usize = 64 << 10;

/// Reads UTF-16, gives UTF-8.
pub struct Utf16 {
    decoder: Utf16Decoder,
    bytes: Vec<u8>,
    /// What was not given out yet: from `start` on.
    text: Vec<u8>,
    start: usize,
    is_ended: bool,
}

impl Utf16 {
    /// What `decoder` makes of bytes to come.
    pub fn new(decoder: Utf16Decoder) -> Utf16 {
        Utf16 { decoder, bytes: vec![0; STEP_LEN], text: Vec::new(), start: 0, is_ended: false }
    }

    /// Fills the beginning of `into` with the text of what `source` gives; 0 is the end.
    pub fn read(
        &mut self,
        mut source: impl FnMut(&mut [u8]) -> Result<usize, Defect>,
        into: &mut [u8],
    ) -> Result<usize, Defect> {
        while self.start == self.text.len() && !self.is_ended {
            self.text.clear();
            self.start = 0;
            match source(&mut self.bytes)? {
                0 => self.is_ended = true,
                count => self.decoder.decode(&self.bytes[..count], &mut self.text),
            }
        }
        if self.start == self.text.len() && !self.decoder.is_whole() {
            return Err(Defect::Utf16Truncated);
        }
        let count = into.len().min(self.text.len() - self.start);
        into[..count].copy_from_slice(&self.text[self.start..self.start + count]);
        self.start += count;
        Ok(count)
    }
}
