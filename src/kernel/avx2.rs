//! The kernels with 32-byte vectors. Each equals its definition in `scalar.rs`.

use std::arch::x86_64::*;

use super::classifier::{Marks, push_blocks};
use super::{Block, Classifier, NibbleTables, scalar};

/// As the definition, [`scalar::block`] after block.
///
/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub unsafe fn classify(text: &[u8], classifier: &Classifier, blocks: &mut Vec<Block>) {
    let attention = Lookup::new(&classifier.attention_tables);
    let go = Lookup::new(&classifier.go_tables);
    let splat = |byte: u8| _mm256_set1_epi8(byte as i8);
    let newline = splat(b'\n');
    let [first_a, second_a] = [splat(classifier.attention_pair[0]), splat(classifier.attention_pair[1])];
    let [first_s, second_s] = [splat(classifier.stop_pair[0]), splat(classifier.stop_pair[1])];
    push_blocks(text, classifier, blocks, |bytes| {
        // SAFETY: both loads read within the 64 bytes of `bytes`.
        let (low, high) =
            unsafe { (_mm256_loadu_si256(bytes.as_ptr().cast()), _mm256_loadu_si256(bytes.as_ptr().add(32).cast())) };
        Marks {
            newline: equal(low, high, newline),
            attention: !mask(attention.misses(low), attention.misses(high)),
            attention_pair: [equal(low, high, first_a), equal(low, high, second_a)],
            stop: mask(go.misses(low), go.misses(high)),
            stop_pair: [equal(low, high, first_s), equal(low, high, second_s)],
        }
    });
}

/// A byte set in vector registers.
struct Lookup {
    low: __m256i,
    high: __m256i,
}

impl Lookup {
    #[target_feature(enable = "avx2")]
    fn new(tables: &NibbleTables) -> Lookup {
        // SAFETY: each table is 16 bytes long.
        let (low, high) =
            unsafe { (_mm_loadu_si128(tables.low.as_ptr().cast()), _mm_loadu_si128(tables.high.as_ptr().cast())) };
        Lookup { low: _mm256_broadcastsi128_si256(low), high: _mm256_broadcastsi128_si256(high) }
    }

    /// All bits of each byte that is not in the set.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn misses(&self, bytes: __m256i) -> __m256i {
        let nibble = _mm256_set1_epi8(15);
        let low = _mm256_shuffle_epi8(self.low, _mm256_and_si256(bytes, nibble));
        let high = _mm256_shuffle_epi8(self.high, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble));
        _mm256_cmpeq_epi8(_mm256_and_si256(low, high), _mm256_setzero_si256())
    }
}

/// Which of 64 bytes equal those of `wanted`.
#[inline]
#[target_feature(enable = "avx2")]
fn equal(low: __m256i, high: __m256i, wanted: __m256i) -> u64 {
    mask(_mm256_cmpeq_epi8(low, wanted), _mm256_cmpeq_epi8(high, wanted))
}

/// The top bits of 64 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn mask(low: __m256i, high: __m256i) -> u64 {
    u64::from(_mm256_movemask_epi8(low) as u32) | u64::from(_mm256_movemask_epi8(high) as u32) << 32
}

/// As [`scalar::percent_encode`], sixteen bytes at a time.
///
/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub unsafe fn percent_encode(bytes: &[u8], out: &mut Vec<u8>) {
    let (whole, tail) = bytes.as_chunks::<16>();
    out.reserve(48 * (whole.len() + 1));
    for chunk in whole {
        // SAFETY: room for 48 bytes a chunk was reserved.
        unsafe { encode_sixteen(chunk, 16, out) };
    }
    let mut last = [0; 16];
    last[..tail.len()].copy_from_slice(tail);
    // SAFETY: room for 48 more bytes was reserved.
    unsafe { encode_sixteen(&last, tail.len(), out) };
}

/// Encodes sixteen bytes and keeps the first `len` of them.
///
/// # Safety
/// `out` has room for 48 bytes past its end; the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn encode_sixteen(bytes: &[u8; 16], len: usize, out: &mut Vec<u8>) {
    /// Where output byte `i` of a third comes from: a digit of byte `i / 3`, or nowhere for the `%`.
    const fn places(third: usize, digit: usize) -> [i8; 16] {
        let mut places = [-1; 16];
        let mut i = 0;
        while i < 16 {
            let at = third * 16 + i;
            if at % 3 == digit + 1 {
                places[i] = (at / 3) as i8;
            }
            i += 1;
        }
        places
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
    const HIGH: [[i8; 16]; 3] = [places(0, 0), places(1, 0), places(2, 0)];
    const LOW: [[i8; 16]; 3] = [places(0, 1), places(1, 1), places(2, 1)];
    const PERCENT: [[i8; 16]; 3] = [percents(0), percents(1), percents(2)];
    // SAFETY: every load is of a 16-byte array; the three stores fill the 48 bytes that the caller reserved, the first
    // `3 * len` of which are initialised and kept.
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
