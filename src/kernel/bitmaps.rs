//! One bit a byte, 64 bytes a block: where a text has newlines, bytes that need attention, bytes that stop a run.

use super::Classifier;

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
/// assert_eq!(bitmaps.newlines().collect::<Vec<_>>(), [13]);
/// ```
#[derive(Debug, Default)]
pub struct Bitmaps {
    blocks: Vec<Block>,
}

impl Bitmaps {
    /// Describes `text` from now on; keeps its memory from text to text.
    pub fn classify(&mut self, text: &[u8], classifier: &Classifier) {
        self.blocks.clear();
        self.blocks.reserve(text.len() / 64 + 2);
        #[cfg(target_arch = "x86_64")]
        if super::has_avx2() {
            // SAFETY: the processor has AVX2.
            unsafe { super::avx2::classify(text, classifier, &mut self.blocks) };
            return self.close();
        }
        super::scalar::classify(text, classifier, &mut self.blocks);
        self.close();
    }

    /// Ends every search: a block past the last with all marks set.
    fn close(&mut self) {
        self.blocks.push(Block { newline: 0, attention: !0, stop: !0 });
    }

    /// First attention mark at or after byte `from`, which is at most the text's length; at the latest its length
    /// (or a little past it).
    #[inline(always)]
    pub fn next_attention(&self, from: usize) -> usize {
        self.next(from, |block| block.attention)
    }

    /// First stop mark at or after byte `from`; otherwise as [`Bitmaps::next_attention`].
    #[inline(always)]
    pub fn next_stop(&self, from: usize) -> usize {
        self.next(from, |block| block.stop)
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

    /// Offsets of all newlines, ascending.
    #[inline(always)]
    pub fn newlines(&self) -> impl Iterator<Item = usize> {
        self.blocks.iter().enumerate().flat_map(|(word, block)| Ones(block.newline).map(move |bit| word * 64 + bit))
    }

    /// How many newlines there are.
    pub fn newline_count(&self) -> usize {
        self.blocks.iter().map(|block| block.newline.count_ones() as usize).sum()
    }

    #[cfg(test)]
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks[..self.blocks.len() - 1]
    }
}

/// Indices of the set bits of a word, ascending.
struct Ones(u64);

impl Iterator for Ones {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(bit)
    }
}
