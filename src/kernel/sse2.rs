//! Loops over 16 bytes with SSE2, which every x86-64 processor has.

use std::arch::x86_64::{
    _mm_cmpeq_epi8, _mm_cvtsi32_si128, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8, _mm_sll_epi16,
};

/// Returns a mask of the bytes that equal `byte`. The lowest bit belongs to the first byte.
#[inline(always)]
pub(super) fn positions_of(byte: u8, bytes: &[u8; 16]) -> u32 {
    // SAFETY: SSE2 is part of x86-64, and the load reads 16 bytes, the length of `bytes`.
    unsafe {
        let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(byte as i8))) as u32
    }
}

/// Returns bit `bit` of 16 bytes. The lowest bit belongs to the first byte.
#[inline(always)]
pub(super) fn bits_of_vector(bytes: &[u8; 16], bit: u32) -> u16 {
    // SAFETY: SSE2 is part of x86-64, and the load reads 16 bytes, the length of `bytes`.
    unsafe {
        let bytes = _mm_loadu_si128(bytes.as_ptr().cast());
        // The shift moves the bit to the highest one of its byte.
        _mm_movemask_epi8(_mm_sll_epi16(bytes, _mm_cvtsi32_si128(7 - bit as i32))) as u16
    }
}
