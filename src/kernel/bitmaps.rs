//! Bitmaps of a text with one bit per byte: the newlines and the two classes of a [`Classifier`].

use std::hint::select_unpredictable;

use super::classifier::{Classifier, MaskWords, Word, classify_portable};
use super::copy::Appender;
use super::cpu::SimdLevel;
use super::span::Span;

/// The positions of newlines, attention bytes and stop bytes in a text, which decoders make and
/// [`Canonicalizer::append`](crate::canon::Canonicalizer::append) reads. Reuse them from text to text.
///
/// Bits past the end of the text are set in the attention and the stop bitmap, so every search ends at or shortly after the
/// end of the text.
#[derive(Debug, Default)]
pub struct Bitmaps {
    newline: Vec<Word>,
    has_crlf: bool,
    attention: Vec<Word>,
    stop: Vec<Word>,
}

/// Words after the text, in which every search ends.
const END_LEN: usize = 3;

/// Bits of a window that are always those of the bitmap.
const WINDOW_LEN: usize = 57;

impl Bitmaps {
    /// Replaces the bitmaps by those of `text`. The memory is reused.
    ///
    /// # Panics
    /// If the text is longer than [`Span::MAX_TEXT_LEN`].
    pub(crate) fn classify(&mut self, text: &[u8], classifier: &Classifier) {
        assert!(text.len() <= Span::MAX_TEXT_LEN, "a text of 4 GiB or more is classified");
        self.classify_at_level(SimdLevel::best(), text, classifier);
    }

    /// [`Bitmaps::classify`] with the instructions of `level`.
    pub(super) fn classify_at_level(&mut self, level: SimdLevel, text: &[u8], classifier: &Classifier) {
        let len = text.len().div_ceil(64);
        for (bitmap, end) in [(&mut self.newline, 0), (&mut self.attention, !0), (&mut self.stop, !0)] {
            bitmap.resize(len + END_LEN, [0; 8]);
            bitmap[len..].fill([end; 8]);
        }
        self.has_crlf = false;
        let words = MaskWords {
            newline: &mut self.newline[..len],
            has_crlf: &mut self.has_crlf,
            attention: &mut self.attention[..len],
            stop: &mut self.stop[..len],
        };
        match level {
            SimdLevel::Portable => classify_portable(text, classifier, words),
            #[cfg(target_arch = "aarch64")]
            // SAFETY: every aarch64 processor has NEON.
            SimdLevel::Neon => unsafe { super::neon::classify(text, classifier, words) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx2::new` created the value in `level` after it found that the processor has AVX2.
            SimdLevel::Avx2(_) => unsafe { super::avx2::classify(text, classifier, words) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Avx512::new` created the value in `level` after it found that the processor has AVX-512 F and BW.
            SimdLevel::Avx512(_) => unsafe { super::avx512::classify(text, classifier, words) },
        }
    }

    /// Returns the position of the first attention byte at or after `from`. Without one, the result is the length of the
    /// text or slightly more. `from` must not exceed the length of the text.
    #[inline(always)]
    pub(super) fn next_attention(&self, from: usize) -> usize {
        next(&self.attention, from)
    }

    /// Like [`Bitmaps::next_attention`], without a branch on the position if it is within 114 bytes.
    #[inline(always)]
    pub(crate) fn next_attention_near(&self, from: usize) -> usize {
        let first = window(&self.attention, from);
        // All bits past the end are set: if the first window is empty, the second begins within the text.
        let second_at = select_unpredictable(first == 0, from + WINDOW_LEN, from);
        match window(&self.attention, second_at) {
            0 => self.next_attention(second_at + WINDOW_LEN),
            second => second_at + second.trailing_zeros() as usize,
        }
    }

    /// Returns the position of the first stop byte at or after `from`, with the limits of [`Bitmaps::next_attention`]. It
    /// is fastest if the position is within 57 bytes.
    #[inline(always)]
    pub(crate) fn next_stop(&self, from: usize) -> usize {
        match window(&self.stop, from) {
            0 => next(&self.stop, from + WINDOW_LEN),
            bits => from + bits.trailing_zeros() as usize,
        }
    }

    /// Returns a mask of the stop bytes among the 64 bytes from `from` on, which must not exceed the length of the text.
    #[inline(always)]
    pub(crate) fn stops(&self, from: usize) -> u64 {
        whole_window(&self.stop, from)
    }

    /// Returns a mask of the attention bytes, like [`Bitmaps::stops`].
    #[inline(always)]
    pub(crate) fn attentions(&self, from: usize) -> u64 {
        whole_window(&self.attention, from)
    }

    /// Returns the stop and the attention bitmap as bytes: bit `i % 8` of byte `i / 8` belongs to byte `i` of the text.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn bytes(&self) -> (&[u8], &[u8]) {
        (self.stop.as_flattened(), self.attention.as_flattened())
    }

    /// Returns true if there is a `CR` directly before a newline.
    pub(crate) fn has_crlf(&self) -> bool {
        self.has_crlf
    }

    /// Appends the offsets of all newlines to `offsets`, in ascending order.
    #[inline(always)]
    pub(crate) fn push_newlines(&self, offsets: &mut Vec<u32>) {
        let mut offsets = Appender::new(offsets, 0);
        for (i, word) in self.newline.iter().enumerate() {
            let base = i as u32 * 64;
            let mut bits = u64::from_le_bytes(*word);
            let count = bits.count_ones() as usize;
            offsets.reserve(count + 2);
            // The first two newlines need no branch on their number. Lines of 30 bytes and more rarely reach the loop.
            let first = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            let second = base + bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            offsets.append([first, second], count.min(2));
            while bits != 0 {
                offsets.push(base + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        offsets.finish();
    }
}

/// Returns the bits from `from` on: at least [`WINDOW_LEN`], and zeros after them.
#[inline(always)]
fn window(bitmap: &[Word], from: usize) -> u64 {
    // One comparison checks a range with an end.
    let bytes = &bitmap.as_flattened()[from / 8..from / 8 + 8];
    u64::from_le_bytes(*bytes.as_array().expect("the range has this length")) >> (from % 8)
}

/// Returns the 64 bits from `from` on.
#[inline(always)]
fn whole_window(bitmap: &[Word], from: usize) -> u64 {
    let last = u64::from(bitmap.as_flattened()[from / 8 + 8]);
    window(bitmap, from) | last << 1 << (63 - from % 8)
}

/// Returns the position of the first bit that is set, at or after `from`.
#[inline(always)]
fn next(bitmap: &[Word], from: usize) -> usize {
    let mut word = from / 64;
    let mut bits = u64::from_le_bytes(bitmap[word]) & (!0 << (from % 64));
    while bits == 0 {
        word += 1;
        bits = u64::from_le_bytes(bitmap[word]);
    }
    word * 64 + bits.trailing_zeros() as usize
}
