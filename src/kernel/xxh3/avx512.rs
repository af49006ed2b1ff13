//! Eight texts at once, one a lane of 64 bits. Equals xxhash-rust for texts of 17 to 128 bytes, and leaves others to it.

use std::arch::x86_64::*;

use super::lanes::{self, PRIME_1, PRIME_2, PRIME_4, PRIME_MX1, SECRET};

/// Texts of a step.
const LANES: usize = 8;

/// Appends the hashes of as many of the first texts as [`lanes::push`] can, and returns the ends of the others.
///
/// # Safety
/// The processor has AVX-512 F and DQ. `ends` ascend from 0 or more to the length of `texts` or less.
#[target_feature(enable = "avx512f,avx512dq")]
pub unsafe fn push<'a>(texts: &[u8], ends: &'a [i32], hashes: &mut Vec<[u8; 16]>) -> &'a [i32] {
    // SAFETY: `lanes::push` asks for texts with `REACH` bytes around; the rest is the caller's.
    lanes::push(texts, ends, hashes, |eight| unsafe { hash_eight(texts, eight) })
}

/// # Safety
/// `REACH` bytes from each start on and before each end are within `texts`; the processor has AVX-512 F and DQ.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn hash_eight(texts: &[u8], ends: &[i32; LANES + 1]) -> [[u8; 16]; LANES] {
    let len = {
        // SAFETY: both loads are of eight of the nine ends.
        let (starts, ends) =
            unsafe { (_mm256_loadu_si256(ends.as_ptr().cast()), _mm256_loadu_si256(ends[1..].as_ptr().cast())) };
        _mm512_cvtepi32_epi64(_mm256_sub_epi32(ends, starts))
    };
    let mut sums = [multiply(len, PRIME_1), _mm512_setzero_si512()];
    // SAFETY: the caller's; a step reads 16 of the `REACH` bytes.
    unsafe {
        // That all eight are short is common enough to ask.
        if _mm512_cmpgt_epi64_mask(len, splat(96)) != 0 {
            step::<3>(texts, ends, len, &mut sums);
        }
        step::<2>(texts, ends, len, &mut sums);
        step::<1>(texts, ends, len, &mut sums);
        step::<0>(texts, ends, len, &mut sums);
    }
    let [low, high] = sums;
    let weighed =
        _mm512_add_epi64(_mm512_add_epi64(multiply(low, PRIME_1), multiply(high, PRIME_4)), multiply(len, PRIME_2));
    let low = avalanche(_mm512_add_epi64(low, high));
    let high = _mm512_sub_epi64(_mm512_setzero_si512(), avalanche(weighed));
    big_endian(low, high)
}

/// Adds what is 16 bytes deep `STEP` times over, from the front and from the back, to the sums of texts long enough.
///
/// # Safety
/// As of [`hash_eight`].
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn step<const STEP: usize>(texts: &[u8], ends: &[i32; LANES + 1], len: __m512i, [low, high]: &mut [__m512i; 2]) {
    // SAFETY: the caller's.
    let (front, back) = unsafe {
        let front = std::array::from_fn(|i| texts.as_ptr().add(ends[i] as usize + 16 * STEP));
        let back = std::array::from_fn(|i| texts.as_ptr().add(ends[i + 1] as usize - 16 * (STEP + 1)));
        (pairs(front), pairs(back))
    };
    let secret = &SECRET[STEP];
    let is_taken = _mm512_cmpgt_epi64_mask(len, splat(32 * STEP as u64));
    let add = |sum, term| _mm512_mask_add_epi64(sum, is_taken, sum, term);
    let join = |sum, term| _mm512_mask_xor_epi64(sum, is_taken, sum, term);
    *low = add(*low, fold(front, secret[0], secret[1]));
    *low = join(*low, _mm512_add_epi64(back[0], back[1]));
    *high = add(*high, fold(back, secret[2], secret[3]));
    *high = join(*high, _mm512_add_epi64(front[0], front[1]));
}

/// The two words at each of eight places.
///
/// # Safety
/// 16 bytes can be read from each; the processor has AVX-512 F and DQ.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn pairs(at: [*const u8; LANES]) -> [__m512i; 2] {
    // SAFETY: the caller's.
    let four = |from: usize| unsafe {
        let load = |i: usize| _mm_loadu_si128(at[from + 2 * i].cast());
        let first = _mm512_zextsi128_si512(load(0));
        let two = _mm512_mask_broadcast_i64x2(first, 0b0000_1100, load(1));
        let three = _mm512_mask_broadcast_i64x2(two, 0b0011_0000, load(2));
        _mm512_mask_broadcast_i64x2(three, 0b1100_0000, load(3))
    };
    let (even, odd) = (four(0), four(1));
    [_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd)]
}

/// The hashes of eight texts from their halves.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn big_endian(low: __m512i, high: __m512i) -> [[u8; 16]; LANES] {
    // In each quarter of a register: a hash of an even lane, a hash of an odd one.
    let (even, odd) = (_mm512_unpacklo_epi64(low, high), _mm512_unpackhi_epi64(low, high));
    let mut halves = [[0_u128; 4]; 2];
    // SAFETY: four hashes are 64 bytes long.
    unsafe {
        _mm512_storeu_si512(halves[0].as_mut_ptr().cast(), even);
        _mm512_storeu_si512(halves[1].as_mut_ptr().cast(), odd);
    }
    std::array::from_fn(|i| halves[i % 2][i / 2].to_be_bytes())
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn splat(word: u64) -> __m512i {
    _mm512_set1_epi64(word as i64)
}

/// The halves of the 128-bit product of two words, each with its secret, joined.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn fold([first, second]: [__m512i; 2], first_secret: u64, second_secret: u64) -> __m512i {
    let (a, b) = (_mm512_xor_si512(first, splat(first_secret)), _mm512_xor_si512(second, splat(second_secret)));
    let (a_high, b_high) = (_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
    let (ll, lh) = (_mm512_mul_epu32(a, b), _mm512_mul_epu32(a, b_high));
    let (hl, hh) = (_mm512_mul_epu32(a_high, b), _mm512_mul_epu32(a_high, b_high));
    // Neither sum passes 64 bits: a product of 32-bit numbers leaves room for two more of them.
    let middle = _mm512_add_epi64(lh, _mm512_srli_epi64::<32>(ll));
    let middle_low = _mm512_add_epi64(hl, _mm512_and_si512(middle, splat(0xFFFF_FFFF)));
    let high =
        _mm512_add_epi64(_mm512_add_epi64(hh, _mm512_srli_epi64::<32>(middle)), _mm512_srli_epi64::<32>(middle_low));
    // The odd halves of the words are those of `middle_low`.
    let low = _mm512_mask_shuffle_epi32::<0b10_10_00_00>(ll, 0b1010_1010_1010_1010, middle_low);
    _mm512_xor_si512(low, high)
}

/// The low halves of products.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn multiply(words: __m512i, by: u64) -> __m512i {
    _mm512_mullo_epi64(words, splat(by))
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn avalanche(words: __m512i) -> __m512i {
    let words = multiply(_mm512_xor_si512(words, _mm512_srli_epi64::<37>(words)), PRIME_MX1);
    _mm512_xor_si512(words, _mm512_srli_epi64::<32>(words))
}
