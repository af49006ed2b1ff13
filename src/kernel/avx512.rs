//! The kernel with 64-byte vectors, whose comparisons give bits at once. Equals its definition in `scalar.rs`.

use std::arch::x86_64::*;

use super::{Block, Classifier, NibbleTables, scalar};

/// As [`scalar::classify`].
///
/// # Safety
/// The processor has AVX-512 F and BW.
#[target_feature(enable = "avx512f,avx512bw")]
pub unsafe fn classify(text: &[u8], classifier: &Classifier, blocks: &mut Vec<Block>) {
    let attention = Lookup::new(&classifier.attention_tables);
    let go = Lookup::new(&classifier.go_tables);
    let splat = |byte: u8| _mm512_set1_epi8(byte as i8);
    let newline = splat(b'\n');
    let [first_a, second_a] = [splat(classifier.attention_pair[0]), splat(classifier.attention_pair[1])];
    let [first_s, second_s] = [splat(classifier.stop_pair[0]), splat(classifier.stop_pair[1])];
    let (whole, tail) = text.as_chunks::<64>();
    let (mut carry_a, mut carry_s) = (0, 0);
    blocks.reserve(whole.len() + 1);
    let room = blocks.spare_capacity_mut();
    for (bytes, block) in whole.iter().zip(room) {
        // SAFETY: the load reads the 64 bytes of `bytes`.
        let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        let firsts_a = _mm512_cmpeq_epi8_mask(bytes, first_a);
        let firsts_s = _mm512_cmpeq_epi8_mask(bytes, first_s);
        let pairs_a = _mm512_cmpeq_epi8_mask(bytes, second_a) & (firsts_a << 1 | carry_a);
        let pairs_s = _mm512_cmpeq_epi8_mask(bytes, second_s) & (firsts_s << 1 | carry_s);
        (carry_a, carry_s) = (firsts_a >> 63, firsts_s >> 63);
        block.write(Block {
            newline: _mm512_cmpeq_epi8_mask(bytes, newline),
            attention: attention.hits(bytes) | pairs_a,
            stop: !go.hits(bytes) | pairs_s,
        });
    }
    // SAFETY: room for all of them was reserved, and one was written for each of `whole`.
    unsafe { blocks.set_len(blocks.len() + whole.len()) };
    if !tail.is_empty() {
        let before = whole.last().map_or(0, |bytes| bytes[63]);
        blocks.push(scalar::block(tail, before, classifier));
    }
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
