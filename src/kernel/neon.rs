//! Kernels with the 16-byte vectors of NEON, which every aarch64 processor has. Each equals its definition:
//! `mask_block` in the tests of `kernel`, or `scalar::positions_of`.

use std::arch::aarch64::*;

use super::byte_set::NibbleTables;
use super::classifier::{Classifier, MaskBlock, MaskWords, write_masks};

/// Writes the masks of `text` to `words`.
#[target_feature(enable = "neon")]
pub(super) fn classify(text: &[u8], classifier: &Classifier, words: MaskWords<'_>) {
    let (non_attention, non_stop) =
        (NeonSet::new(&classifier.non_attention_tables), NeonSet::new(&classifier.non_stop_tables));
    write_masks(text, words, |bytes, before| {
        let (bytes, before) = (load(bytes), load(before));
        let pairs = |[first, second]: [u8; 2]| {
            let (first, second) = (vdupq_n_u8(first), vdupq_n_u8(second));
            let pair = |i: usize| vandq_u8(vceqq_u8(before[i], first), vceqq_u8(bytes[i], second));
            [pair(0), pair(1), pair(2), pair(3)]
        };
        let either = |a: Vectors, b: Vectors| mask_of([0, 1, 2, 3].map(|i| vorrq_u8(a[i], b[i])));
        MaskBlock {
            newline: mask_of(bytes.map(|bytes| vceqq_u8(bytes, vdupq_n_u8(b'\n')))),
            crlf: mask_of(pairs(*b"\r\n")),
            attention: either(bytes.map(|bytes| non_attention.misses(bytes)), pairs(classifier.attention_pair)),
            stop: either(bytes.map(|bytes| non_stop.misses(bytes)), pairs(classifier.stop_pair)),
        }
    });
}

/// Returns a mask of the bytes that equal `byte`. The lowest bit belongs to the first byte.
#[inline]
#[target_feature(enable = "neon")]
pub(super) fn positions_of(byte: u8, bytes: &[u8; 16]) -> u32 {
    // SAFETY: the loads read the 16 bytes of the arrays.
    let (bytes, bits) = unsafe { (vld1q_u8(bytes.as_ptr()), vld1q_u8(BITS.as_ptr())) };
    let found = vandq_u8(vceqq_u8(bytes, vdupq_n_u8(byte)), bits);
    u32::from(vaddv_u8(vget_low_u8(found))) | u32::from(vaddv_u8(vget_high_u8(found))) << 8
}

/// The bit of each byte in a mask of eight bytes.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// 64 bytes.
type Vectors = [uint8x16_t; 4];

#[inline]
#[target_feature(enable = "neon")]
fn load(bytes: &[u8; 64]) -> Vectors {
    // SAFETY: the loads read bytes 0 to 63 of the array.
    [0, 16, 32, 48].map(|at| unsafe { vld1q_u8(bytes.as_ptr().add(at)) })
}

/// Returns a mask of the bytes that are all ones; the others are 0.
#[inline]
#[target_feature(enable = "neon")]
fn mask_of(bytes: Vectors) -> u64 {
    // SAFETY: the load reads the 16 bytes of the array.
    let bits = unsafe { vld1q_u8(BITS.as_ptr()) };
    let [a, b, c, d] = bytes.map(|bytes| vandq_u8(bytes, bits));
    // Each step adds pairs of bytes that follow each other, until eight bits are one byte.
    let sums = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    let mut mask = [0; 8];
    // SAFETY: the store writes the 8 bytes of the array.
    unsafe { vst1_u8(mask.as_mut_ptr(), vget_low_u8(vpaddq_u8(sums, sums))) };
    u64::from_le_bytes(mask)
}

/// The nibble tables of a byte set in vector registers.
struct NeonSet {
    low: uint8x16_t,
    high: uint8x16_t,
}

impl NeonSet {
    #[target_feature(enable = "neon")]
    fn new(tables: &NibbleTables) -> NeonSet {
        // SAFETY: each load reads 16 bytes, the length of a table.
        unsafe { NeonSet { low: vld1q_u8(tables.low.as_ptr()), high: vld1q_u8(tables.high.as_ptr()) } }
    }

    /// Returns all ones for each byte that is not in the set.
    #[inline]
    #[target_feature(enable = "neon")]
    fn misses(&self, bytes: uint8x16_t) -> uint8x16_t {
        let low = vqtbl1q_u8(self.low, vandq_u8(bytes, vdupq_n_u8(15)));
        let high = vqtbl1q_u8(self.high, vshrq_n_u8::<4>(bytes));
        vceqzq_u8(vandq_u8(low, high))
    }
}
