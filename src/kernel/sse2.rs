//! Operations on vectors of 16 bytes with SSE2, which every x86-64 processor has.

use std::arch::x86_64::{
    _mm_cmpeq_epi8, _mm_cvtsi64_si128, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8, _mm_unpackhi_epi16,
    _mm_unpackhi_epi32, _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_unpacklo_epi32,
};
use std::mem::transmute;

/// Returns a mask of the bytes that equal `byte`. The lowest bit belongs to the first byte.
#[inline(always)]
pub(super) fn positions_of(byte: u8, bytes: &[u8; 16]) -> u32 {
    // SAFETY: SSE2 is part of x86-64, and the load reads 16 bytes, the length of `bytes`.
    unsafe {
        let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32
    }
}

/// Returns the columns of a matrix of eight rows of eight bytes.
#[inline(always)]
pub(super) fn transposed(rows: [u64; 8]) -> [u64; 8] {
    // SAFETY: SSE2 is part of x86-64. A vector has the size of two words.
    unsafe {
        let [a, b, c, d, e, f, g, h] = rows.map(|row| _mm_cvtsi64_si128(row as i64));
        let [ab, cd, ef, gh] = [(a, b), (c, d), (e, f), (g, h)].map(|(one, other)| _mm_unpacklo_epi8(one, other));
        // The first half of the columns of four rows, then the second half.
        let abcd = [_mm_unpacklo_epi16(ab, cd), _mm_unpackhi_epi16(ab, cd)];
        let efgh = [_mm_unpacklo_epi16(ef, gh), _mm_unpackhi_epi16(ef, gh)];
        transmute([
            _mm_unpacklo_epi32(abcd[0], efgh[0]),
            _mm_unpackhi_epi32(abcd[0], efgh[0]),
            _mm_unpacklo_epi32(abcd[1], efgh[1]),
            _mm_unpackhi_epi32(abcd[1], efgh[1]),
        ])
    }
}
