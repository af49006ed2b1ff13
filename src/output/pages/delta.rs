//! Parquet's `DELTA_BINARY_PACKED` encoding of numbers (Encodings.md, "Delta Encoding"): the first number, then
//! blocks of differences. The least difference of a block is subtracted; miniblocks are as wide as their greatest value.

/// Differences per block; the format requires a multiple of 128.
const BLOCK: usize = 128;
/// Miniblocks per block; the format requires a multiple of 32 differences in each.
const MINIBLOCKS: usize = 4;
const MINIBLOCK: usize = BLOCK / MINIBLOCKS;

/// Appends the encoding of `numbers`, which `value` converts to 64 bits. Differences wrap around.
pub(super) fn pack<N: Copy>(numbers: &[N], value: impl Fn(N) -> i64, out: &mut Vec<u8>) {
    let first = numbers.first().map_or(0, |first| value(*first));
    for head in [BLOCK as u64, MINIBLOCKS as u64, numbers.len() as u64, zigzag(first)] {
        push_varint(head, out);
    }
    let mut last = first;
    for block in numbers.get(1..).unwrap_or_default().chunks(BLOCK) {
        let mut deltas = [0; BLOCK];
        for (delta, number) in deltas.iter_mut().zip(block) {
            let number = value(*number);
            *delta = number.wrapping_sub(last);
            last = number;
        }
        pack_block(&mut deltas, block.len(), out);
    }
}

/// Appends a block with `count` differences; the others are 0. A miniblock is written completely or not at all.
fn pack_block(deltas: &mut [i64; BLOCK], count: usize, out: &mut Vec<u8>) {
    let least = deltas[..count].iter().copied().min().unwrap_or(0);
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

/// Appends numbers of `width` bits, at most 64, the first number in the lowest bits.
fn pack_bits(numbers: &[i64], width: u32, out: &mut Vec<u8>) {
    let (mut word, mut filled) = (0u128, 0);
    for number in numbers {
        word |= u128::from(*number as u64) << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&(word as u64).to_le_bytes());
            word >>= 64;
            filled -= 64;
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// Appends a number as a varint: groups of seven bits, the lowest first.
pub(super) fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7F {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
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
