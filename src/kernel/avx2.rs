//! Kernels with 32-byte vectors. Each equals its definition: `mask_block` in the tests of `kernel`, `scalar::percent_encode`, or
//! that in the tests of `masking`.

use std::arch::x86_64::*;

use super::byte_set::NibbleTables;
use super::classifier::{Classifier, MaskBlock, MaskWords, write_masks};
use super::scalar;
use super::url_masks::{self, BufferedText, ClassMasks, NAME_TABLES, SPECIAL_TABLES, UrlMasks};

/// Writes the masks of `text` to `words`.
#[target_feature(enable = "avx2")]
pub(super) fn classify(text: &[u8], classifier: &Classifier, words: MaskWords<'_>) {
    let (non_attention, non_stop) =
        (Avx2Set::new(&classifier.non_attention_tables), Avx2Set::new(&classifier.non_stop_tables));
    let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
    let crlf = [b'\r', b'\n'].map(splat);
    let (attention_pair, stop_pair) = (classifier.attention_pair.map(splat), classifier.stop_pair.map(splat));
    write_masks(text, words, |bytes, before| {
        let half = |at: usize| {
            // SAFETY: `at` is 0 or 32, so the loads read bytes 0 to 31 or 32 to 63 of arrays that are 64 bytes long.
            let (bytes, before) = unsafe {
                let load = |bytes: &[u8; 64]| _mm256_loadu_si256(bytes.as_ptr().add(at).cast());
                (load(bytes), load(before))
            };
            let is_pair = |[first, second]: [__m256i; 2]| {
                _mm256_and_si256(_mm256_cmpeq_epi8(before, first), _mm256_cmpeq_epi8(bytes, second))
            };
            let mask = |bytes| u64::from(_mm256_movemask_epi8(bytes) as u32);
            MaskBlock {
                newline: mask(_mm256_cmpeq_epi8(bytes, crlf[1])),
                crlf: mask(is_pair(crlf)),
                attention: mask(_mm256_or_si256(non_attention.misses(bytes), is_pair(attention_pair))),
                stop: mask(_mm256_or_si256(non_stop.misses(bytes), is_pair(stop_pair))),
            }
        };
        let (low, high) = (half(0), half(32));
        MaskBlock {
            newline: low.newline | high.newline << 32,
            crlf: low.crlf | high.crlf << 32,
            attention: low.attention | high.attention << 32,
            stop: low.stop | high.stop << 32,
        }
    });
}

/// The position of each byte of a vector: 0 to 31.
const POSITIONS: [u8; 32] = {
    let mut positions = [0; 32];
    let mut at = 0;
    while at < 32 {
        positions[at] = at as u8;
        at += 1;
    }
    positions
};

/// Sets the masks of each URL.
#[target_feature(enable = "avx2")]
pub(super) fn mask_urls(urls: &[BufferedText<'_>], masks: &mut [UrlMasks]) {
    let (names, specials) = (Avx2Set::new(&NAME_TABLES), Avx2Set::new(&SPECIAL_TABLES));
    let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
    let is_upper =
        |bytes| _mm256_and_si256(_mm256_cmpgt_epi8(bytes, splat(b'@')), _mm256_cmpgt_epi8(splat(b'['), bytes));
    url_masks::mask_each(urls, masks, |bytes, len| {
        // SAFETY: the loads read bytes 0 to 31 and 32 to 63 of the array `bytes`, which is 64 bytes long, and the 32 bytes of
        // the array of positions.
        let (low, high, positions) = unsafe {
            let load = |bytes: *const u8| _mm256_loadu_si256(bytes.cast());
            (load(bytes.as_ptr()), load(bytes.as_ptr().add(32)), load(POSITIONS.as_ptr()))
        };
        let low = _mm256_and_si256(low, _mm256_cmpgt_epi8(splat(len as u8), positions));
        let high = _mm256_and_si256(high, _mm256_cmpgt_epi8(splat(len.saturating_sub(32) as u8), positions));
        let equal = |delimiter: u8| equal(low, high, splat(delimiter));
        ClassMasks {
            upper: to_mask(is_upper(low), is_upper(high)),
            escapes: to_mask(low, high) | equal(b'%'),
            specials: !to_mask(specials.misses(low), specials.misses(high)),
            not_names: to_mask(names.misses(low), names.misses(high)),
            ..ClassMasks::of_delimiters(equal)
        }
    });
}

/// The nibble tables of a byte set in vector registers.
struct Avx2Set {
    low: __m256i,
    high: __m256i,
}

impl Avx2Set {
    #[target_feature(enable = "avx2")]
    fn new(tables: &NibbleTables) -> Avx2Set {
        // SAFETY: each load reads 16 bytes, the length of a table.
        let (low, high) =
            unsafe { (_mm_loadu_si128(tables.low.as_ptr().cast()), _mm_loadu_si128(tables.high.as_ptr().cast())) };
        Avx2Set { low: _mm256_broadcastsi128_si256(low), high: _mm256_broadcastsi128_si256(high) }
    }

    /// Returns all ones for each byte that is not in the set.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn misses(&self, bytes: __m256i) -> __m256i {
        let nibble = _mm256_set1_epi8(15);
        let low = _mm256_shuffle_epi8(self.low, _mm256_and_si256(bytes, nibble));
        let high = _mm256_shuffle_epi8(self.high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
        _mm256_cmpeq_epi8(_mm256_and_si256(low, high), _mm256_setzero_si256())
    }
}

/// Returns a mask of the 64 bytes that equal the byte that `other` repeats.
#[inline]
#[target_feature(enable = "avx2")]
fn equal(low: __m256i, high: __m256i, other: __m256i) -> u64 {
    to_mask(_mm256_cmpeq_epi8(low, other), _mm256_cmpeq_epi8(high, other))
}

/// Returns a mask of the top bits of 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn to_mask(low: __m256i, high: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
}

/// Appends `text` percent-encoded to `out`, sixteen bytes at a time.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) fn percent_encode(text: BufferedText<'_>, out: &mut Vec<u8>) {
    let (buffer, len) = (text.buffer(), text.text().len());
    out.reserve(48 * len.div_ceil(16));
    for at in (0..len).step_by(16) {
        let sixteen = match buffer[at..].first_chunk() {
            Some(sixteen) => *sixteen,
            None => padded_to_sixteen(&buffer[at..]),
        };
        // SAFETY: 48 bytes per call are reserved above, and each call uses at most 48 of them.
        unsafe { encode_sixteen(&sixteen, (len - at).min(16), out) };
    }
}

fn padded_to_sixteen(bytes: &[u8]) -> [u8; 16] {
    let mut padded = [0; 16];
    padded[..bytes.len()].copy_from_slice(bytes);
    padded
}

/// Encodes sixteen bytes and appends the encodings of the first `len` of them.
///
/// # Safety
/// The capacity of `out` must exceed its length by at least 48 bytes, and `len` must be at most 16.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn encode_sixteen(bytes: &[u8; 16], len: usize, out: &mut Vec<u8>) {
    /// Shuffle indices for one third of the output. Output byte `i` takes digit number `digit` (0 or 1) of input byte
    /// `i / 3`, or 0 (index -1) where it takes the other digit or the `%`.
    const fn digit_indices(third: usize, digit: usize) -> [i8; 16] {
        let mut indices = [-1; 16];
        let mut i = 0;
        while i < 16 {
            let at = third * 16 + i;
            if at % 3 == digit + 1 {
                indices[i] = (at / 3) as i8;
            }
            i += 1;
        }
        indices
    }
    const fn percents(third: usize) -> [i8; 16] {
        let mut percents = [0; 16];
        let mut i = 0;
        while i < 16 {
            if (third * 16 + i).is_multiple_of(3) {
                percents[i] = b'%' as i8;
            }
            i += 1;
        }
        percents
    }
    const HIGH: [[i8; 16]; 3] = [digit_indices(0, 0), digit_indices(1, 0), digit_indices(2, 0)];
    const LOW: [[i8; 16]; 3] = [digit_indices(0, 1), digit_indices(1, 1), digit_indices(2, 1)];
    const PERCENT: [[i8; 16]; 3] = [percents(0), percents(1), percents(2)];
    // SAFETY: every load reads a 16-byte array. The three stores write the 48 bytes after the vector's length, which
    // the caller guarantees to be within its capacity. `3 * len` of these initialized bytes are kept.
    unsafe {
        let load = |array: *const i8| _mm_loadu_si128(array.cast());
        let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
        let digits = _mm_loadu_si128(scalar::HEX.as_ptr().cast());
        let nibble = _mm_set1_epi8(15);
        let high = _mm_shuffle_epi8(digits, _mm_and_si128(_mm_srli_epi16(bytes, 4), nibble));
        let low = _mm_shuffle_epi8(digits, _mm_and_si128(bytes, nibble));
        let end = out.as_mut_ptr().add(out.len());
        for third in 0..3 {
            let text = _mm_or_si128(
                _mm_or_si128(
                    _mm_shuffle_epi8(high, load(HIGH[third].as_ptr())),
                    _mm_shuffle_epi8(low, load(LOW[third].as_ptr())),
                ),
                load(PERCENT[third].as_ptr()),
            );
            _mm_storeu_si128(end.add(third * 16).cast(), text);
        }
        out.set_len(out.len() + 3 * len);
    }
}
