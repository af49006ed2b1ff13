//! Bitmaps of a text with one bit per byte: the newlines and the two classes of a [`Classifier`].

use std::hint::select_unpredictable;

use super::classifier::{Classifier, MaskBlock, classify_portable, low_bits};
use super::copy::append_some;
use super::cpu::SimdLevel;

/// The positions of newlines, attention bytes and stop bytes in a text. Bits past the end of the text are set in the
/// attention and the stop bitmap, so every search ends at or shortly behind the end of the text.
#[derive(Debug, Default)]
pub struct Bitmaps {
    blocks: Vec<MaskBlock>,
}

impl Bitmaps {
    /// Replaces the bitmaps by those of `text`. The memory is reused.
    pub fn classify(&mut self, text: &[u8], classifier: &Classifier) {
        self.classify_at_level(SimdLevel::best(), text, classifier);
    }

    /// [`Bitmaps::classify`] with the instructions of `level`.
    pub(super) fn classify_at_level(&mut self, level: SimdLevel, text: &[u8], classifier: &Classifier) {
        self.blocks.clear();
        self.blocks.reserve(text.len() / 64 + 1 + END.len());
        match level {
            SimdLevel::Portable => classify_portable(text, classifier, &mut self.blocks),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2::new` created the value in `level` after it found that the processor has AVX2.
            SimdLevel::Avx2(_) => unsafe { super::avx2::classify(text, classifier, &mut self.blocks) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx512::new` created the value in `level` after it found that the processor has AVX-512 F and BW.
            SimdLevel::Avx512(_) => unsafe { super::avx512::classify(text, classifier, &mut self.blocks) },
        }
        // End every search, and let windows reach past the last byte.
        self.blocks.extend_from_slice(&END);
    }

    /// Returns the position of the first attention byte at or after `from`. Without one, the result is the length of the
    /// text or slightly more. `from` must not exceed the length of the text.
    #[inline(always)]
    pub(crate) fn next_attention(&self, from: usize) -> usize {
        self.next(from, |block| block.attention)
    }

    /// Like [`Bitmaps::next_attention`], without a branch on the position if it is within 128 bytes.
    #[inline(always)]
    pub(crate) fn next_attention_near(&self, from: usize) -> usize {
        let first = self.window(from, |block| block.attention);
        // All bits past the end are set: if the first window is empty, the second begins within the text.
        let second_at = select_unpredictable(first == 0, from + 64, from);
        let second = self.window(second_at, |block| block.attention);
        if second == 0 { self.next_attention(second_at + 64) } else { second_at + second.trailing_zeros() as usize }
    }

    /// Returns the position of the first stop byte at or after `from`, with the limits of [`Bitmaps::next_attention`]. It
    /// is fastest if the position is within 64 bytes.
    #[inline(always)]
    pub(crate) fn next_stop(&self, from: usize) -> usize {
        match self.window(from, |block| block.stop) {
            0 => self.next(from + 64, |block| block.stop),
            bits => from + bits.trailing_zeros() as usize,
        }
    }

    /// Returns a mask of the stop bytes among the 64 bytes from `from` on, which must not exceed the length of the text.
    #[inline(always)]
    pub(crate) fn stops(&self, from: usize) -> u64 {
        self.window(from, |block| block.stop)
    }

    /// Returns whether the bytes `from..to` contain an attention byte. `to` must not exceed the length of the text.
    /// Ranges of up to 128 bytes are tested without a branch on the position.
    #[inline(always)]
    pub(crate) fn has_attention(&self, from: usize, to: usize) -> bool {
        let len = to - from;
        let first = self.window(from, |block| block.attention) & low_bits(len);
        let second = self.window((from + 64).min(to), |block| block.attention) & low_bits(len.saturating_sub(64));
        (first | second) != 0 || (len > 128 && self.next_attention(from + 128) < to)
    }

    /// Returns the bits of the 64 bytes from `from` on, which must not exceed the length of the text.
    #[inline(always)]
    fn window(&self, from: usize, mask: impl Fn(&MaskBlock) -> u64) -> u64 {
        let pair = &self.blocks[from / 64..][..2];
        let shift = from % 64;
        mask(&pair[0]) >> shift | mask(&pair[1]) << 1 << (63 - shift)
    }

    #[inline(always)]
    fn next(&self, from: usize, mask: impl Fn(&MaskBlock) -> u64) -> usize {
        let mut word = from / 64;
        let mut bits = mask(&self.blocks[word]) & (!0 << (from % 64));
        while bits == 0 {
            word += 1;
            bits = mask(&self.blocks[word]);
        }
        word * 64 + bits.trailing_zeros() as usize
    }

    /// Appends the offsets of all newlines to `offsets`, in ascending order.
    #[inline(always)]
    pub(crate) fn push_newlines(&self, offsets: &mut Vec<u32>) {
        for (word, block) in self.blocks.iter().enumerate() {
            let base = word as u32 * 64;
            let mut bits = block.newline;
            // The first two newlines need no branch on their number. Lines of 30 bytes and more rarely reach the loop.
            let first = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            let second = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            let count = block.newline.count_ones().min(2) as usize;
            append_some(offsets, [first, second], count);
            while bits != 0 {
                offsets.push(base + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn blocks(&self) -> &[MaskBlock] {
        &self.blocks[..self.blocks.len() - END.len()]
    }
}

/// The blocks behind the last block of a text.
const END: [MaskBlock; 3] = [MaskBlock { newline: 0, attention: !0, stop: !0 }; 3];
