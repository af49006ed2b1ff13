//! The kernel with 64-byte vectors, whose comparisons give bits at once. Equals its definition in `scalar.rs`.

use std::arch::x86_64::*;

use super::classifier::{Marks, push_blocks};
use super::{Block, Classifier, NibbleTables};

/// As the definition, [`super::scalar::block`] after block.
///
/// # Safety
/// The processor has AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
pub unsafe fn classify(text: &[u8], classifier: &Classifier, blocks: &mut Vec<Block>) {
    let attention = Lookup::new(&classifier.attention_tables);
    let go = Lookup::new(&classifier.go_tables);
    push_blocks(text, classifier, blocks, |bytes| {
        // SAFETY: the load reads the 64 bytes of `bytes`.
        let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        let equal = |byte: u8| _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte as i8));
        Marks {
            newline: equal(b'\n'),
            attention: attention.hits(bytes),
            attention_pair: [equal(classifier.attention_pair[0]), equal(classifier.attention_pair[1])],
            stop: !go.hits(bytes),
            stop_pair: [equal(classifier.stop_pair[0]), equal(classifier.stop_pair[1])],
        }
    });
}

/// A byte set in vector registers.
struct Lookup {
    low: __m512i,
    high: __m512i,
}

impl Lookup {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn new(tables: &NibbleTables) -> Lookup {
        // SAFETY: each table is 16 bytes long.
        let (low, high) =
            unsafe { (_mm_loadu_si128(tables.low.as_ptr().cast()), _mm_loadu_si128(tables.high.as_ptr().cast())) };
        Lookup { low: _mm512_broadcast_i32x4(low), high: _mm512_broadcast_i32x4(high) }
    }

    /// Which bytes are in the set.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn hits(&self, bytes: __m512i) -> u64 {
        let nibble = _mm512_set1_epi8(15);
        let low = _mm512_shuffle_epi8(self.low, _mm512_and_si512(bytes, nibble));
        let high = _mm512_shuffle_epi8(self.high, _mm512_and_si512(_mm512_srli_epi16(bytes, 4), nibble));
        _mm512_test_epi8_mask(low, high)
    }
}
