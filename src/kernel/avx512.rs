//! Kernels with 64-byte vectors, whose comparisons return masks. Each equals its definition: `mask_block` in the tests
//! of `kernel`, or that in the tests of `masking`.

use std::arch::x86_64::*;

use super::byte_set::NibbleTables;
use super::classifier::{Classifier, MaskBlock, MaskWords, write_masks};
use super::url_masks::{self, BufferedText, ClassMasks, NAME_TABLES, SPECIAL_TABLES, UrlMasks, low_bits_of_64};

/// Writes the masks of `text` to `words`.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn classify(text: &[u8], classifier: &Classifier, words: MaskWords<'_>) {
    let (non_attention, non_stop) =
        (Avx512Set::new(&classifier.non_attention_tables), Avx512Set::new(&classifier.non_stop_tables));
    write_masks(text, words, |bytes, before| {
        // SAFETY: the loads read 64 bytes, the length of the arrays.
        let (bytes, before) =
            unsafe { (_mm512_loadu_si512(bytes.as_ptr().cast()), _mm512_loadu_si512(before.as_ptr().cast())) };
        let splat = |byte: u8| _mm512_set1_epi8(byte as i8);
        let pairs = |[first, second]: [u8; 2]| {
            _mm512_mask_cmpeq_epi8_mask(_mm512_cmpeq_epi8_mask(before, splat(first)), bytes, splat(second))
        };
        let newline = _mm512_cmpeq_epi8_mask(bytes, splat(b'\n'));
        MaskBlock {
            newline,
            crlf: _mm512_mask_cmpeq_epi8_mask(newline, before, splat(b'\r')),
            attention: !non_attention.mask_of(bytes) | pairs(classifier.attention_pair),
            stop: !non_stop.mask_of(bytes) | pairs(classifier.stop_pair),
        }
    });
}

/// Sets the masks of each URL.
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn mask_urls(urls: &[BufferedText<'_>], masks: &mut [UrlMasks]) {
    let (names, specials) = (Avx512Set::new(&NAME_TABLES), Avx512Set::new(&SPECIAL_TABLES));
    url_masks::mask_each(urls, masks, |bytes, len| {
        // SAFETY: the load reads up to 64 bytes, the length of the array `bytes`.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(low_bits_of_64(len), bytes.as_ptr().cast()) };
        let equal = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
        let from_upper_a = _mm512_sub_epi8(bytes, _mm512_set1_epi8(b'A' as i8));
        ClassMasks {
            upper: _mm512_cmplt_epu8_mask(from_upper_a, _mm512_set1_epi8(26)),
            escapes: _mm512_movepi8_mask(bytes) | equal(b'%'),
            specials: specials.mask_of(bytes),
            not_names: !names.mask_of(bytes),
            ..ClassMasks::of_delimiters(equal)
        }
    });
}

/// The nibble tables of a byte set in vector registers.
struct Avx512Set {
    low: __m512i,
    high: __m512i,
}

impl Avx512Set {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(tables: &NibbleTables) -> Avx512Set {
        // SAFETY: each load reads 16 bytes, the length of a table.
        let (low, high) =
            unsafe { (_mm_loadu_si128(tables.low.as_ptr().cast()), _mm_loadu_si128(tables.high.as_ptr().cast())) };
        Avx512Set { low: _mm512_broadcast_i32x4(low), high: _mm512_broadcast_i32x4(high) }
    }

    /// Returns a mask of the bytes that are in the set.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn mask_of(&self, bytes: __m512i) -> u64 {
        let nibble = _mm512_set1_epi8(15);
        let low = _mm512_shuffle_epi8(self.low, _mm512_and_si512(bytes, nibble));
        let high = _mm512_shuffle_epi8(self.high, _mm512_and_si512(_mm512_srli_epi16(bytes, 4), nibble));
        _mm512_test_epi8_mask(low, high)
    }
}
