//! Hashes eight texts at once, one per 64-bit lane. Equals xxhash-rust for texts of 17 to 128 bytes.

use std::arch::x86_64::*;

use super::lanes::{self, MEDIUM, PRIME_1, PRIME_2, PRIME_4, PRIME_MX1, SECRET, has_few_medium};

/// Number of texts that are hashed at once.
const LANES: usize = 8;

/// Appends the hashes of the leading texts and returns the ends of the others, see [`lanes::push`].
///
/// # Safety
/// `ends` must ascend, start at 0 or more, and not exceed the length of `texts`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
pub(super) unsafe fn push<'a>(texts: &[u8], ends: &'a [i32], hashes: &mut Vec<[u8; 16]>) -> &'a [i32] {
    // SAFETY: the caller guarantees valid ends, for which `lanes::push` only passes texts with `REACH` bytes after each
    // start and before each end.
    lanes::push(texts, ends, hashes, |ends, hashes| unsafe { hash_eight(texts, ends, hashes) })
}

/// Writes the hashes of eight texts, and returns a bitmap of those that are still to be hashed.
///
/// # Safety
/// `REACH` bytes after each start and before each end must be within `texts`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
unsafe fn hash_eight(texts: &[u8], ends: &[i32; LANES + 1], hashes: &mut [[u8; 16]; LANES]) -> u32 {
    let ([starts @ .., _], [_, ends @ ..]) = (ends, ends);
    let len = {
        // SAFETY: each load reads eight numbers, the length of the arrays.
        let (starts, ends) =
            unsafe { (_mm256_loadu_si256(starts.as_ptr().cast()), _mm256_loadu_si256(ends.as_ptr().cast())) };
        _mm512_cvtepi32_epi64(_mm256_sub_epi32(ends, starts))
    };
    let beyond_least = _mm512_sub_epi64(len, splat(*MEDIUM.start()));
    let others = _mm512_cmpgt_epu64_mask(beyond_least, splat(MEDIUM.end() - MEDIUM.start())).into();
    if has_few_medium::<8>(others) {
        return 0xFF;
    }
    let mut sums = [multiply(len, PRIME_1), _mm512_setzero_si512()];
    // SAFETY: the caller guarantees `REACH` bytes, the twice 32 bytes that are loaded on each side.
    unsafe {
        let ([front_2, front_3], [back_3, back_2]) = (words(texts, starts, 32), words(texts, ends, -64));
        // All eight texts are often short enough to skip this step.
        if _mm512_cmpgt_epi64_mask(len, splat(96)) != 0 {
            mix::<3>(front_3, back_3, len, &mut sums);
        }
        mix::<2>(front_2, back_2, len, &mut sums);
        let ([front_0, front_1], [back_1, back_0]) = (words(texts, starts, 0), words(texts, ends, -32));
        mix::<1>(front_1, back_1, len, &mut sums);
        mix::<0>(front_0, back_0, len, &mut sums);
    }
    let [low, high] = sums;
    let weighted =
        _mm512_add_epi64(_mm512_add_epi64(multiply(low, PRIME_1), multiply(high, PRIME_4)), multiply(len, PRIME_2));
    let low = avalanche(_mm512_add_epi64(low, high));
    let high = _mm512_sub_epi64(_mm512_setzero_si512(), avalanche(weighted));
    write_big_endian(low, high, hashes);
    others
}

/// Mixes the 16 bytes at offset `16 * STEP` from the front and from the back of each text into the sums of the texts that
/// are longer than `32 * STEP` bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn mix<const STEP: usize>(front: [__m512i; 2], back: [__m512i; 2], len: __m512i, [low, high]: &mut [__m512i; 2]) {
    let secret = &SECRET[STEP];
    // All texts of medium length need step 0.
    let is_used = if STEP == 0 { !0 } else { _mm512_cmpgt_epi64_mask(len, splat(32 * STEP as u64)) };
    let add = |sum, term| _mm512_mask_add_epi64(sum, is_used, sum, term);
    let join = |sum, term| _mm512_mask_xor_epi64(sum, is_used, sum, term);
    *low = add(*low, fold(front, secret[0], secret[1]));
    *low = join(*low, _mm512_add_epi64(back[0], back[1]));
    *high = add(*high, fold(back, secret[2], secret[3]));
    *high = join(*high, _mm512_add_epi64(front[0], front[1]));
}

/// Loads four words at a distance from each of eight positions in `texts`. Returns the first two words of all, then the other
/// two.
///
/// # Safety
/// The 32 bytes at that distance from each position must be within `texts`.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
unsafe fn words(texts: &[u8], positions: &[i32; LANES], distance: isize) -> [[__m512i; 2]; 2] {
    // SAFETY: the caller guarantees 32 bytes at that distance from each position.
    let load = |i: usize| unsafe { _mm256_loadu_si256(texts.as_ptr().offset(positions[i] as isize + distance).cast()) };
    let two = |i: usize| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(load(i)), load(i + 4));
    // The 16 bytes of texts `i`, `i + 2`, `i + 4` and `i + 6` for the first two words, then those for the others.
    let four = |i: usize| {
        let (one, other) = (two(i), two(i + 2));
        let first = _mm512_permutex2var_epi64(one, _mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0), other);
        let second = _mm512_permutex2var_epi64(one, _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2), other);
        [first, second]
    };
    let (even, odd) = (four(0), four(1));
    std::array::from_fn(|i| [_mm512_unpacklo_epi64(even[i], odd[i]), _mm512_unpackhi_epi64(even[i], odd[i])])
}

/// Joins the low and high halves of eight hashes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq")]
fn write_big_endian(low: __m512i, high: __m512i, hashes: &mut [[u8; 16]; LANES]) {
    let swap = _mm512_broadcast_i32x4(_mm_set_epi8(8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    let (low, high) = (_mm512_shuffle_epi8(low, swap), _mm512_shuffle_epi8(high, swap));
    // Words 0 to 7 are those of `high`, words 8 to 15 those of `low`.
    let first = _mm512_permutex2var_epi64(high, _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0), low);
    let second = _mm512_permutex2var_epi64(high, _mm512_set_epi64(15, 7, 14, 6, 13, 5, 12, 4), low);
    // SAFETY: the stores write 64 bytes each, together the size of the hashes.
    unsafe {
        _mm512_storeu_si512(hashes.as_mut_ptr().cast(), first);
        _mm512_storeu_si512(hashes[4..].as_mut_ptr().cast(), second);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn splat(word: u64) -> __m512i {
    _mm512_set1_epi64(word as i64)
}

/// Multiplies two words, each combined with its secret, and returns the XOR of the halves of the 128-bit product.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn fold([first, second]: [__m512i; 2], first_secret: u64, second_secret: u64) -> __m512i {
    let (a, b) = (_mm512_xor_si512(first, splat(first_secret)), _mm512_xor_si512(second, splat(second_secret)));
    let (a_high, b_high) = (_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
    let (ll, lh) = (_mm512_mul_epu32(a, b), _mm512_mul_epu32(a, b_high));
    let (hl, hh) = (_mm512_mul_epu32(a_high, b), _mm512_mul_epu32(a_high, b_high));
    // Neither sum overflows: a product of two 32-bit numbers plus two 32-bit numbers fits into 64 bits.
    let middle = _mm512_add_epi64(lh, _mm512_srli_epi64::<32>(ll));
    let middle_low = _mm512_add_epi64(hl, _mm512_and_si512(middle, splat(0xFFFF_FFFF)));
    let high =
        _mm512_add_epi64(_mm512_add_epi64(hh, _mm512_srli_epi64::<32>(middle)), _mm512_srli_epi64::<32>(middle_low));
    // The odd 32-bit halves come from `middle_low`.
    let low = _mm512_mask_shuffle_epi32::<0b10_10_00_00>(ll, 0b1010_1010_1010_1010, middle_low);
    _mm512_xor_si512(low, high)
}

/// Returns the low halves of the products.
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
