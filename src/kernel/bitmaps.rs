//! One bit a byte, 64 bytes a block: where a text has newlines, bytes that need attention, bytes that stop a run.

use std::hint::select_unpredictable;

use super::{Classifier, Level};

/// Marks of 64 bytes, least significant bit first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// `LF`.
    pub newline: u64,
    /// The classifier's attention set and pair.
    pub attention: u64,
    /// The classifier's stop set and pair.
    pub stop: u64,
}

/// Where bytes of each class stand in a text. Bits past its end are marked in `attention` and `stop`, so that every
/// search ends there at the latest.
///
/// ```
/// use irikey::{iri::CLASSIFIER, kernel::Bitmaps};
/// let mut bitmaps = Bitmaps::default();
/// bitmaps.classify(b"http://h/a%2f\n", &CLASSIFIER);
/// assert_eq!((bitmaps.next_stop(7), bitmaps.next_attention(0)), (8, 10));
/// assert!(bitmaps.has_attention(7, 11) && !bitmaps.has_attention(7, 10));
/// let mut newlines = Vec::new();
/// bitmaps.push_newlines(&mut newlines);
/// assert_eq!(newlines, [13]);
/// ```
#[derive(Debug, Default)]
pub struct Bitmaps {
    blocks: Vec<Block>,
}

impl Bitmaps {
    /// Describes `text` from now on; keeps its memory from text to text.
    pub fn classify(&mut self, text: &[u8], classifier: &Classifier) {
        self.classify_at(Level::best(), text, classifier);
    }

    /// [`Bitmaps::classify`] with the instructions of `level`.
    pub(super) fn classify_at(&mut self, level: Level, text: &[u8], classifier: &Classifier) {
        self.blocks.clear();
        self.blocks.reserve(text.len() / 64 + 1 + END.len());
        match level {
            Level::Words => super::words::classify(text, classifier, &mut self.blocks),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a level is only made where the processor has it.
            Level::Avx2 => unsafe { super::avx2::classify(text, classifier, &mut self.blocks) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: likewise.
            Level::Avx512 => unsafe { super::avx512::classify(text, classifier, &mut self.blocks) },
        }
        self.close();
    }

    /// Ends every search, and lets windows reach past the last byte.
    fn close(&mut self) {
        self.blocks.extend_from_slice(&END);
    }

    /// First attention mark at or after byte `from`, which is at most the text's length; at the latest its length
    /// (or a little past it).
    #[inline(always)]
    pub fn next_attention(&self, from: usize) -> usize {
        self.next(from, |block| block.attention)
    }

    /// As [`Bitmaps::next_attention`], without a branch on where it is as long as it is within 128 bytes.
    #[inline(always)]
    pub fn next_attention_near(&self, from: usize) -> usize {
        let first = self.window(from, |block| block.attention);
        // A text ends in marks: where there are none in the first window, the second begins within it.
        let second_at = select_unpredictable(first == 0, from + 64, from);
        let second = self.window(second_at, |block| block.attention);
        if second == 0 { self.next_attention(second_at + 64) } else { second_at + second.trailing_zeros() as usize }
    }

    /// First stop mark at or after byte `from`; otherwise as [`Bitmaps::next_attention`]. Fast where it is near.
    #[inline(always)]
    pub fn next_stop(&self, from: usize) -> usize {
        match self.window(from, |block| block.stop) {
            0 => self.next(from + 64, |block| block.stop),
            bits => from + bits.trailing_zeros() as usize,
        }
    }

    /// There is an attention mark at or after byte `from` and before byte `to`, the text's length at most. Without a
    /// branch on where it is as long as the two are at most 128 bytes apart.
    #[inline(always)]
    pub fn has_attention(&self, from: usize, to: usize) -> bool {
        let len = to - from;
        let first = self.window(from, |block| block.attention) & low_bits(len);
        let second = self.window((from + 64).min(to), |block| block.attention) & low_bits(len.saturating_sub(64));
        (first | second) != 0 || (len > 128 && self.next_attention(from + 128) < to)
    }

    /// Marks of the 64 bytes from byte `from` on, which is at most the text's length.
    #[inline(always)]
    fn window(&self, from: usize, lane: impl Fn(&Block) -> u64) -> u64 {
        let pair = &self.blocks[from / 64..][..2];
        let shift = from % 64;
        lane(&pair[0]) >> shift | lane(&pair[1]) << 1 << (63 - shift)
    }

    #[inline(always)]
    fn next(&self, from: usize, lane: impl Fn(&Block) -> u64) -> usize {
        let mut word = from / 64;
        let mut bits = lane(&self.blocks[word]) & (!0 << (from % 64));
        while bits == 0 {
            word += 1;
            bits = lane(&self.blocks[word]);
        }
        word * 64 + bits.trailing_zeros() as usize
    }

    /// Appends the offsets of all newlines to `offsets`, ascending.
    #[inline(always)]
    pub fn push_newlines(&self, offsets: &mut Vec<u32>) {
        for (word, block) in self.blocks.iter().enumerate() {
            let base = word as u32 * 64;
            let mut bits = block.newline;
            // Two at once: lines of 30 bytes and more never take the loop, and how many there are is no branch.
            let first = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            let second = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            let count = block.newline.count_ones().min(2) as usize;
            super::copy::append_some(offsets, [first, second], count);
            while bits != 0 {
                offsets.push(base + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks[..self.blocks.len() - END.len()]
    }
}

/// What stands behind the last block of a text.
const END: [Block; 3] = [Block { newline: 0, attention: !0, stop: !0 }; 3];

/// The lowest `count` bits, at most all 64.
#[inline(always)]
const fn low_bits(count: usize) -> u64 {
    if count >= 64 { !0 } else { !(!0 << count) }
}
