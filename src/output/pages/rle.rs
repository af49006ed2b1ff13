//! Parquet's encoding `RLE` of numbers of a few bits (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid"): definition
//! levels of nullable columns, and indices of dictionaries.

use std::ops::Range;

use arrow::buffer::NullBuffer;

use crate::kernel::push_varint;

/// Appends the definition levels of rows in the encoding `RLE`, preceded by their length in bytes. The level of a value is 1.
/// Without nulls the levels are one run; otherwise they are the bits of Arrow's bitmap, which has the same bit order.
pub(super) fn push_levels(nulls: Option<&NullBuffer>, rows: Range<usize>, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    match nulls {
        None => {
            push_varint((rows.len() as u64) << 1, out);
            out.push(1);
        }
        Some(nulls) => {
            let groups = rows.len().div_ceil(8);
            push_varint((groups as u64) << 1 | 1, out);
            let bits = nulls.inner().slice(rows.start, rows.len()).sliced();
            out.extend_from_slice(&bits[..groups]);
        }
    }
    let len = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&len.to_le_bytes());
}

/// Encodes indices of a dictionary of `names` entries: the width of an index in bits, then runs in the encoding `RLE`. A run
/// is its doubled length as a varint, followed by the index in the number of bytes that the width requires.
pub(super) fn run_lengths(names: usize, runs: impl Iterator<Item = (usize, usize)>) -> Vec<u8> {
    let width = usize::BITS - (names - 1).leading_zeros();
    let mut out = vec![width as u8];
    for (place, count) in runs {
        push_varint((count as u64) << 1, &mut out);
        out.extend_from_slice(&place.to_le_bytes()[..width.div_ceil(8) as usize]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::run_lengths;

    #[test]
    fn runs_are_encoded_as_in_the_specification() {
        assert_eq!(run_lengths(1, [(0, 3)].into_iter()), [0, 6]);
        assert_eq!(run_lengths(2, [(1, 64), (0, 1)].into_iter()), [1, 0x80, 0x01, 1, 2, 0]);
        assert_eq!(run_lengths(300, [(299, 1)].into_iter()), [9, 2, 0x2B, 0x01]);
    }
}
