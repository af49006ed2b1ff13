//! Hashes four texts at once, one per 64-bit lane. Equals xxhash-rust for texts of 17 to 128 bytes.

use std::arch::x86_64::*;

use super::lanes::{self, MEDIUM, PRIME_1, PRIME_2, PRIME_4, PRIME_MX1, SECRET, has_few_medium};

/// Appends the hashes of the leading texts and returns the ends of the others, see [`lanes::push`].
///
/// # Safety
/// `ends` must ascend, start at 0 or more, and not exceed the length of `texts`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn push<'a>(texts: &[u8], ends: &'a [i32], hashes: &mut Vec<[u8; 16]>) -> &'a [i32] {
    // SAFETY: the caller guarantees valid ends, for which `lanes::push` only passes texts with `REACH` bytes after each
    // start and before each end.
    lanes::push(texts, ends, hashes, |ends, hashes| unsafe { hash_four(texts, ends, hashes) })
}

/// Writes the hashes of four texts, and returns a bitmap of those that are still to be hashed.
///
/// # Safety
/// `REACH` bytes after each start and before each end must be within `texts`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn hash_four(texts: &[u8], ends: &[i32; 5], hashes: &mut [[u8; 16]; 4]) -> u32 {
    let len = {
        // SAFETY: each load reads four of the five ends.
        let (starts, ends) =
            unsafe { (_mm_loadu_si128(ends.as_ptr().cast()), _mm_loadu_si128(ends[1..].as_ptr().cast())) };
        _mm256_cvtepi32_epi64(_mm_sub_epi32(ends, starts))
    };
    let is_short = _mm256_cmpgt_epi64(splat(*MEDIUM.start()), len);
    let is_long = _mm256_cmpgt_epi64(len, splat(*MEDIUM.end()));
    let others = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_or_si256(is_short, is_long))) as u32;
    if has_few_medium::<4>(others) {
        return 0xF;
    }
    let mut sums = [multiply(len, PRIME_1), _mm256_setzero_si256()];
    // SAFETY: the caller guarantees `REACH` bytes, the 4 times 16 bytes that the steps read on each side.
    unsafe {
        // All four texts are often short enough to skip this step.
        if ends.windows(2).any(|ends| ends[1] - ends[0] > 96) {
            step::<3>(texts, ends, len, &mut sums);
        }
        step::<2>(texts, ends, len, &mut sums);
        step::<1>(texts, ends, len, &mut sums);
        step::<0>(texts, ends, len, &mut sums);
    }
    let [low, high] = sums;
    let weighted =
        _mm256_add_epi64(_mm256_add_epi64(multiply(low, PRIME_1), multiply(high, PRIME_4)), multiply(len, PRIME_2));
    let low = avalanche(_mm256_add_epi64(low, high));
    let high = _mm256_sub_epi64(_mm256_setzero_si256(), avalanche(weighted));
    write_big_endian(low, high, hashes);
    others
}

/// Mixes the 16 bytes at offset `16 * STEP` from the front and from the back of each text into the sums of the texts that
/// are longer than `32 * STEP` bytes.
///
/// # Safety
/// As for [`hash_four`].
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn step<const STEP: usize>(texts: &[u8], ends: &[i32; 5], len: __m256i, [low, high]: &mut [__m256i; 2]) {
    // SAFETY: `STEP` is at most 3, so the 16 bytes are within the `REACH` bytes that the caller guarantees.
    let (front, back) = unsafe {
        let front = [0, 1, 2, 3].map(|i| texts.as_ptr().add(ends[i] as usize + 16 * STEP));
        let back = [1, 2, 3, 4].map(|i| texts.as_ptr().add(ends[i] as usize - 16 * (STEP + 1)));
        (pairs(front), pairs(back))
    };
    let secret = &SECRET[STEP];
    // All texts of medium length need step 0.
    let is_used = if STEP == 0 { splat(!0) } else { _mm256_cmpgt_epi64(len, splat(32 * STEP as u64)) };
    let if_used = |sum| _mm256_and_si256(sum, is_used);
    *low = _mm256_add_epi64(*low, if_used(fold(front, secret[0], secret[1])));
    *low = _mm256_xor_si256(*low, if_used(_mm256_add_epi64(back[0], back[1])));
    *high = _mm256_add_epi64(*high, if_used(fold(back, secret[2], secret[3])));
    *high = _mm256_xor_si256(*high, if_used(_mm256_add_epi64(front[0], front[1])));
}

/// Loads two words from each of four addresses and returns the first words and the second words.
///
/// # Safety
/// 16 bytes must be readable at each address.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn pairs(at: [*const u8; 4]) -> [__m256i; 2] {
    // SAFETY: the caller guarantees 16 readable bytes at each address.
    let [a, b, c, d] = at.map(|at| unsafe { _mm_loadu_si128(at.cast()) });
    let (ac, bd) = (_mm256_set_m128i(c, a), _mm256_set_m128i(d, b));
    [_mm256_unpacklo_epi64(ac, bd), _mm256_unpackhi_epi64(ac, bd)]
}

/// Joins the low and high halves of four hashes.
#[inline]
#[target_feature(enable = "avx2")]
fn write_big_endian(low: __m256i, high: __m256i, hashes: &mut [[u8; 16]; 4]) {
    let swap = _mm256_broadcastsi128_si256(_mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    let (low, high) = (_mm256_shuffle_epi8(low, swap), _mm256_shuffle_epi8(high, swap));
    // The halves of `ac` hold the hashes of lanes 0 and 2, those of `bd` the hashes of lanes 1 and 3.
    let (ac, bd) = (_mm256_unpacklo_epi64(high, low), _mm256_unpackhi_epi64(high, low));
    let (first, second) = (_mm256_permute2x128_si256::<0x20>(ac, bd), _mm256_permute2x128_si256::<0x31>(ac, bd));
    // SAFETY: the stores write 32 bytes each, together the size of the hashes.
    unsafe {
        _mm256_storeu_si256(hashes.as_mut_ptr().cast(), first);
        _mm256_storeu_si256(hashes[2..].as_mut_ptr().cast(), second);
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn splat(word: u64) -> __m256i {
    _mm256_set1_epi64x(word as i64)
}

/// Multiplies two words, each combined with its secret, and returns the XOR of the halves of the 128-bit product.
#[inline]
#[target_feature(enable = "avx2")]
fn fold([first, second]: [__m256i; 2], first_secret: u64, second_secret: u64) -> __m256i {
    let (a, b) = (_mm256_xor_si256(first, splat(first_secret)), _mm256_xor_si256(second, splat(second_secret)));
    let (a_high, b_high) = (_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
    let (ll, lh) = (_mm256_mul_epu32(a, b), _mm256_mul_epu32(a, b_high));
    let (hl, hh) = (_mm256_mul_epu32(a_high, b), _mm256_mul_epu32(a_high, b_high));
    // Neither sum overflows: a product of two 32-bit numbers plus two 32-bit numbers fits into 64 bits.
    let middle = _mm256_add_epi64(lh, _mm256_srli_epi64::<32>(ll));
    let middle_low = _mm256_add_epi64(hl, _mm256_and_si256(middle, splat(0xFFFF_FFFF)));
    let high =
        _mm256_add_epi64(_mm256_add_epi64(hh, _mm256_srli_epi64::<32>(middle)), _mm256_srli_epi64::<32>(middle_low));
    let low = _mm256_blend_epi32::<0b1010_1010>(ll, _mm256_slli_epi64::<32>(middle_low));
    _mm256_xor_si256(low, high)
}

/// Returns the low halves of the products.
#[inline]
#[target_feature(enable = "avx2")]
fn multiply(words: __m256i, by: u64) -> __m256i {
    let (low, high) = (splat(by & 0xFFFF_FFFF), splat(by >> 32));
    let crossed =
        _mm256_add_epi64(_mm256_mul_epu32(words, high), _mm256_mul_epu32(_mm256_srli_epi64::<32>(words), low));
    _mm256_add_epi64(_mm256_mul_epu32(words, low), _mm256_slli_epi64::<32>(crossed))
}

#[inline]
#[target_feature(enable = "avx2")]
fn avalanche(words: __m256i) -> __m256i {
    let words = multiply(_mm256_xor_si256(words, _mm256_srli_epi64::<37>(words)), PRIME_MX1);
    _mm256_xor_si256(words, _mm256_srli_epi64::<32>(words))
}
