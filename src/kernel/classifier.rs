//! The byte classes of a [`super::Bitmaps`] in the forms that the kernels read, and the portable kernel.

use super::byte_set::ByteSet;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use super::byte_set::NibbleTables;
use super::copy::prefetch;
#[cfg(target_arch = "x86_64")]
use super::sse2;

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
pub struct Classifier {
    /// Nibble tables of the complement of the attention set. Bytes outside ASCII are in neither of the complements.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) non_attention_tables: NibbleTables,
    /// Nibble tables of the complement of the stop set.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    pub(super) non_stop_tables: NibbleTables,
    /// The classes of each byte, one bit per class.
    classes: [u8; 256],
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

/// The kernel for every processor: a table gives the classes of each byte, one bit per mask.
pub(super) fn classify_portable(text: &[u8], classifier: &Classifier, words: MaskWords<'_>) {
    write_masks(text, words, |bytes, before| {
        let classes = bytes.map(|byte| classifier.classes[usize::from(byte)]);
        let mask = |bit| bits_of(&classes, bit);
        let pairs = |bit, first: u8| mask(bit + 1) & (mask(bit) << 1 | u64::from(before[0] == first));
        MaskBlock {
            newline: mask(NEWLINE),
            crlf: mask(NEWLINE) & (mask(CR) << 1 | u64::from(before[0] == b'\r')),
            attention: mask(ATTENTION) | pairs(ATTENTION_PAIR, classifier.attention_pair[0]),
            stop: mask(STOP) | pairs(STOP_PAIR, classifier.stop_pair[0]),
        }
    });
}

// The bits of `Classifier::classes`. A pair has two bits, one for each of its bytes.
const NEWLINE: u32 = 0;
const ATTENTION: u32 = 1;
const ATTENTION_PAIR: u32 = 2;
const STOP: u32 = 4;
const STOP_PAIR: u32 = 5;
const CR: u32 = 7;

/// Returns the classes of every byte.
const fn classes(attention: &ByteSet, attention_pair: [u8; 2], stop: &ByteSet, stop_pair: [u8; 2]) -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = (attention.contains(byte as u8) as u8) << ATTENTION | (stop.contains(byte as u8) as u8) << STOP;
        byte += 1;
    }
    classes[b'\n' as usize] |= 1 << NEWLINE;
    classes[b'\r' as usize] |= 1 << CR;
    classes[attention_pair[0] as usize] |= 1 << ATTENTION_PAIR;
    classes[attention_pair[1] as usize] |= 1 << (ATTENTION_PAIR + 1);
    classes[stop_pair[0] as usize] |= 1 << STOP_PAIR;
    classes[stop_pair[1] as usize] |= 1 << (STOP_PAIR + 1);
    classes
}

/// Packs bit `bit` of 64 bytes into a mask.
#[inline(always)]
fn bits_of(bytes: &[u8; 64], bit: u32) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let (vectors, _) = bytes.as_chunks::<16>();
        vectors.iter().rev().fold(0, |mask, vector| mask << 16 | u64::from(sse2::bits_of_vector(vector, bit)))
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // The multiplication moves byte `i` of a word to bit `56 + i`. All other products stay below bit 56 or overflow.
        const GATHER: u64 = 0x0102_0408_1020_4080;
        const LOWEST: u64 = 0x0101_0101_0101_0101;
        let (words, _) = bytes.as_chunks::<8>();
        let gather = |word: &[u8; 8]| (u64::from_le_bytes(*word) >> bit & LOWEST).wrapping_mul(GATHER) >> 56;
        words.iter().rev().fold(0, |mask, word| mask << 8 | gather(word))
    }
}
