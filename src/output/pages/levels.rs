//! Definition levels of nullable columns in Parquet's encoding `RLE`.

use std::ops::Range;

use arrow::buffer::NullBuffer;

use super::delta::push_varint;

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
