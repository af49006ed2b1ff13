//! The byte classes of a [`super::Bitmaps`] in the forms that the kernels read, and the portable kernel.

use super::byte_set::ByteSet;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::byte_set::NibbleTables;
use super::copy::prefetch;
#[cfg(not(target_arch = "x86_64"))]
use super::scalar::transposed;
#[cfg(target_arch = "x86_64")]
use super::sse2::transposed;

/// The classes of 64 bytes of a text: bit `i` of each mask belongs to byte `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MaskBlock {
    /// `LF`.
    pub(super) newline: u64,
    /// Every `LF` after a `CR`.
    pub(super) crlf: u64,
    /// The classifier's attention set and pair.
    pub(super) attention: u64,
    /// The classifier's stop set and pair.
    pub(super) stop: u64,
}

/// Two byte classes, *attention* and *stop*. Each is a set of bytes and one pair of bytes: a byte is in the class if it
/// is in the set, or if it is the second byte of the pair and follows the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Classifier {
    /// Nibble tables of the complement of the attention set. Bytes outside ASCII are in neither of the complements.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) non_attention_tables: NibbleTables,
    /// Nibble tables of the complement of the stop set.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) non_stop_tables: NibbleTables,
    /// The classes of each byte value: byte `i` of the word is 1 if it is in class `i`, otherwise 0.
    classes: [u64; 256],
    pub(super) attention_pair: [u8; 2],
    pub(super) stop_pair: [u8; 2],
}

impl Classifier {
    /// Returns a classifier.
    ///
    /// # Panics
    /// At compile time, if NUL is not in both sets; if NUL begins a pair whose second byte is not in the set of the
    /// pair; or if the complement of a set has more than eight different rows ([`ByteSet::nibbles`]).
    pub(crate) const fn new(
        attention: ByteSet,
        attention_pair: [u8; 2],
        stop: ByteSet,
        stop_pair: [u8; 2],
    ) -> Classifier {
        assert!(attention.contains(0) && stop.contains(0), "the padding of the last block must be in both classes");
        assert!(
            attention_pair[0] != 0 || attention.contains(attention_pair[1]),
            "the padding before the text must not complete a pair"
        );
        assert!(
            stop_pair[0] != 0 || stop.contains(stop_pair[1]),
            "the padding before the text must not complete a pair"
        );
        Classifier {
            classes: classes(&attention, attention_pair, &stop, stop_pair),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            non_attention_tables: attention.not().nibbles(),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            non_stop_tables: stop.not().nibbles(),
            attention_pair,
            stop_pair,
        }
    }
}

/// 64 bits of a bitmap. Bit `i % 8` of byte `i / 8` belongs to byte `i` of 64 bytes of the text.
pub(super) type Word = [u8; 8];

/// The bitmaps that a kernel writes: one word of each for 64 bytes of the text.
pub(super) struct MaskWords<'a> {
    pub(super) newline: &'a mut [Word],
    /// Is set if the text has a `CR LF`.
    pub(super) has_crlf: &'a mut bool,
    pub(super) attention: &'a mut [Word],
    pub(super) stop: &'a mut [Word],
}

impl MaskWords<'_> {
    #[inline(always)]
    fn set(&mut self, at: usize, block: MaskBlock) {
        self.newline[at] = block.newline.to_le_bytes();
        *self.has_crlf |= block.crlf != 0;
        self.attention[at] = block.attention.to_le_bytes();
        self.stop[at] = block.stop.to_le_bytes();
    }
}

/// Blocks of 64 bytes between the one that is classified and the one that is prefetched.
const PREFETCH_DISTANCE: usize = 24;

/// Writes the masks of `text` to `words`. `masks` computes the masks of 64 bytes; its second argument has, for each of
/// these bytes, the byte before it. Before the text and after its end, `masks` sees NUL.
///
/// This function is always inlined, so that `masks` is compiled for the caller's instruction set.
#[inline(always)]
pub(super) fn write_masks(text: &[u8], mut words: MaskWords<'_>, masks: impl Fn(&[u8; 64], &[u8; 64]) -> MaskBlock) {
    let padded = |before: u8, bytes: &[u8]| {
        let mut padded = [0; 65];
        padded[0] = before;
        padded[1..=bytes.len()].copy_from_slice(bytes);
        let ([before @ .., _], [_, bytes @ ..]) = (&padded, &padded);
        masks(bytes, before)
    };
    let Some(last) = text.len().checked_sub(1) else { return };
    words.set(0, padded(0, &text[..text.len().min(64)]));
    // Whole blocks, and the same blocks one byte earlier.
    let whole = text.get(64..).unwrap_or_default().as_chunks::<64>().0;
    let before = text.get(63..).unwrap_or_default().as_chunks::<64>().0;
    let MaskWords { newline, has_crlf, attention, stop } = &mut words;
    let mut crlf = 0;
    let written = newline[1..].iter_mut().zip(&mut attention[1..]).zip(&mut stop[1..]);
    for (i, ((bytes, before), ((newline, attention), stop))) in whole.iter().zip(before).zip(written).enumerate() {
        prefetch(whole, i + PREFETCH_DISTANCE);
        let block = masks(bytes, before);
        crlf |= block.crlf;
        *newline = block.newline.to_le_bytes();
        *attention = block.attention.to_le_bytes();
        *stop = block.stop.to_le_bytes();
    }
    **has_crlf |= crlf != 0;
    let tail_at = last / 64 * 64;
    if tail_at > 0 && last % 64 != 63 {
        words.set(last / 64, padded(text[tail_at - 1], &text[tail_at..]));
    }
}

/// The kernel for every processor: a table gives the classes of each byte.
pub(super) fn classify_portable(text: &[u8], classifier: &Classifier, words: MaskWords<'_>) {
    write_masks(text, words, |bytes, before| {
        // Byte `i` of a word is the mask of class `i` for eight bytes.
        let mut masks = [0; 8];
        for (masks, bytes) in masks.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *masks = bytes.iter().rev().fold(0, |masks, byte| masks << 1 | classifier.classes[usize::from(*byte)]);
        }
        let masks = transposed(masks);
        let pairs = |class: usize, first: u8| masks[class + 1] & (masks[class] << 1 | u64::from(before[0] == first));
        MaskBlock {
            newline: masks[NEWLINE],
            crlf: masks[NEWLINE] & (masks[CR] << 1 | u64::from(before[0] == b'\r')),
            attention: masks[ATTENTION] | pairs(ATTENTION_PAIR, classifier.attention_pair[0]),
            stop: masks[STOP] | pairs(STOP_PAIR, classifier.stop_pair[0]),
        }
    });
}

// The classes of `Classifier::classes`. A pair has two, one for each of its bytes.
const NEWLINE: usize = 0;
const ATTENTION: usize = 1;
const ATTENTION_PAIR: usize = 2;
const STOP: usize = 4;
const STOP_PAIR: usize = 5;
const CR: usize = 7;

/// Returns the classes of every byte.
const fn classes(attention: &ByteSet, attention_pair: [u8; 2], stop: &ByteSet, stop_pair: [u8; 2]) -> [u64; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (attention, stop) = (attention.contains(byte as u8) as u64, stop.contains(byte as u8) as u64);
        classes[byte] = attention << (8 * ATTENTION) | stop << (8 * STOP);
        byte += 1;
    }
    classes[b'\n' as usize] |= 1 << (8 * NEWLINE);
    classes[b'\r' as usize] |= 1 << (8 * CR);
    classes[attention_pair[0] as usize] |= 1 << (8 * ATTENTION_PAIR);
    classes[attention_pair[1] as usize] |= 1 << (8 * (ATTENTION_PAIR + 1));
    classes[stop_pair[0] as usize] |= 1 << (8 * STOP_PAIR);
    classes[stop_pair[1] as usize] |= 1 << (8 * (STOP_PAIR + 1));
    classes
}
