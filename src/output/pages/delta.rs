//! Parquet's `DELTA_BINARY_PACKED` encoding of numbers (Encodings.md, "Delta Encoding"): the first number, then
//! blocks of differences. The least difference of a block is subtracted; miniblocks are as wide as their greatest value.

use crate::kernel::{SimdTask, push_varint, run_with_simd};

/// Differences per block; the format requires a multiple of 128.
const BLOCK: usize = 128;
/// Miniblocks per block; the format requires a multiple of 32 differences in each.
const MINIBLOCKS: usize = 4;
const MINIBLOCK: usize = BLOCK / MINIBLOCKS;

/// Appends the encoding of `numbers`, which `value` converts to 64 bits. Differences wrap around.
pub(super) fn pack<N: Copy>(numbers: &[N], value: impl Fn(N) -> i64, out: &mut Vec<u8>) {
    run_with_simd(PackNumbers { numbers, value, out });
}

struct PackNumbers<'a, N, F> {
    numbers: &'a [N],
    value: F,
    out: &'a mut Vec<u8>,
}

impl<N: Copy, F: Fn(N) -> i64> SimdTask for PackNumbers<'_, N, F> {
    #[inline(always)]
    fn run(self) {
        let PackNumbers { numbers, value, out } = self;
        let first = numbers.first().map_or(0, |first| value(*first));
        for head in [BLOCK as u64, MINIBLOCKS as u64, numbers.len() as u64, zigzag(first)] {
            push_varint(head, out);
        }
        let Some((_, nexts)) = numbers.split_first() else { return };
        for (block, nexts) in numbers.chunks(BLOCK).zip(nexts.chunks(BLOCK)) {
            let mut deltas = [0; BLOCK];
            for ((delta, number), next) in deltas.iter_mut().zip(block).zip(nexts) {
                *delta = value(*next).wrapping_sub(value(*number));
            }
            pack_block(&mut deltas, nexts.len(), out);
        }
    }
}

/// Appends a block with `count` differences; the others are 0. A miniblock is written completely or not at all.
#[inline(always)]
fn pack_block(deltas: &mut [i64; BLOCK], count: usize, out: &mut Vec<u8>) {
    let least = deltas[..count].iter().fold(i64::MAX, |least, delta| least.min(*delta));
    deltas[..count].iter_mut().for_each(|delta| *delta = delta.wrapping_sub(least));
    push_varint(zigzag(least), out);
    let widths: [u32; MINIBLOCKS] = std::array::from_fn(|i| {
        let all = deltas[i * MINIBLOCK..][..MINIBLOCK].iter().fold(0, |all, delta| all | *delta as u64);
        u64::BITS - all.leading_zeros()
    });
    out.extend(widths.map(|width| width as u8));
    for (miniblock, width) in deltas.chunks_exact(MINIBLOCK).zip(widths).take(count.div_ceil(MINIBLOCK)) {
        pack_bits(miniblock, width, out);
    }
}

/// Appends the numbers of a miniblock, which have `width` bits, at most 64, the first number in the lowest bits. They end
/// with a whole word or half of one.
#[inline(always)]
fn pack_bits(numbers: &[i64], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut word, mut filled) = (0, 0);
    for &number in numbers {
        let number = number as u64;
        word |= number << filled;
        filled += width;
        if filled >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= u64::BITS;
            // The bits that did not fit.
            word = if filled == 0 { 0 } else { number >> (width - filled) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled as usize / 8]);
}

pub(super) fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(numbers: &[i32]) -> Vec<u8> {
        let mut out = Vec::new();
        pack(numbers, i64::from, &mut out);
        out
    }

    #[test]
    fn equals_the_examples_of_the_specification() {
        // 1, 2, 3, 4, 5: all differences are 1 and take no bits.
        assert_eq!(packed(&[1, 2, 3, 4, 5]), [0x80, 1, 4, 5, 2, 2, 0, 0, 0, 0]);
        // 7, 5, 3, 1, 2, 3, 4, 5: differences -2 -2 -2 1 1 1 1, minus -2: 0 0 0 3 3 3 3 in two bits each.
        let mut expected = vec![0x80, 1, 4, 8, 14, 3, 2, 0, 0, 0, 0b1100_0000, 0b0011_1111];
        expected.extend([0; 6]);
        assert_eq!(packed(&[7, 5, 3, 1, 2, 3, 4, 5]), expected);
    }

    /// Bit `at` of packed bits, the lowest bit of a byte first.
    fn bit(bytes: &[u8], at: usize) -> u64 {
        u64::from(bytes[at / 8] >> (at % 8) & 1)
    }

    #[test]
    fn miniblocks_have_the_bits_of_their_numbers_in_order() {
        for width in 0..=u64::BITS {
            let number = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).checked_shr(u64::BITS - width).unwrap_or(0);
            let numbers: [u64; MINIBLOCK] = std::array::from_fn(|i| number(i as u64 + 1));
            let mut out = Vec::new();
            pack_bits(&numbers.map(|number| number as i64), width, &mut out);
            assert_eq!(out.len(), MINIBLOCK * width as usize / 8);
            for (i, number) in numbers.into_iter().enumerate() {
                let found = (0..width).fold(0, |sum, at| sum | bit(&out, i * width as usize + at as usize) << at);
                assert_eq!(found, number, "number {i} of {width} bits");
            }
        }
    }

    #[test]
    fn packs_no_numbers_and_extreme_numbers() {
        assert_eq!(packed(&[]), [0x80, 1, 4, 0, 0]);
        // One difference of 2^32 - 1, the block's smallest: no bits.
        assert_eq!(packed(&[i32::MIN, i32::MAX]).len(), 5 + 4 + 5 + 4);
        // Differences of -2^63 and, wrapped around, 2^63 - 1: 64 bits each.
        let mut out = Vec::new();
        pack(&[0, i64::MIN, -1], |number| number, &mut out);
        assert_eq!(out.len(), 5 + 10 + 4 + 64 / 8 * 32);
    }
}
