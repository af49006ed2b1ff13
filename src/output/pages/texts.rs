//! A column of texts in, its column chunk out, in Parquet's `DELTA_LENGTH_BYTE_ARRAY` encoding: packed lengths, then the
//! bytes of all texts. Apart from lengths, texts compress to 6 % less, and their bytes are copied once, as one piece.
//!
//! Texts with nulls that cover bytes are left to the general encoder.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::DataType;
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::schema::types::ColumnDescPtr;

use super::codec::PageCodec;
use super::delta::{self, push_varint};
use super::{HEADER_LEN, PageChunk, Pages, Spare};

/// Bytes of text after which a page ends.
const PAGE_LEN: usize = 1 << 18;
/// Rows after which a page ends.
const PAGE_ROWS: usize = 1 << 16;

/// Texts end to end, as Arrow has them.
pub(in crate::output) struct Texts<'a> {
    offsets: &'a [i32],
    values: &'a [u8],
    nulls: Option<&'a NullBuffer>,
}

impl<'a> Texts<'a> {
    /// The texts of an array of strings or of binary values; nothing for any other array.
    pub(in crate::output) fn of(array: &'a ArrayRef) -> Option<Texts<'a>> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let (offsets, values) = match array.data_type() {
            DataType::Utf8 => (array.as_string::<i32>().value_offsets(), array.as_string::<i32>().value_data()),
            DataType::Binary => (array.as_binary::<i32>().value_offsets(), array.as_binary::<i32>().value_data()),
            _ => return None,
        };
        let texts = Texts { offsets, values, nulls };
        let nulls_are_empty = nulls.is_none_or(|nulls| {
            let nulls = nulls.inner();
            (0..nulls.len()).all(|row| nulls.value(row) || texts.len(row) == 0)
        });
        nulls_are_empty.then_some(texts)
    }

    fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    fn len(&self, row: usize) -> i32 {
        self.offsets[row + 1] - self.offsets[row]
    }

    /// The row after the last one of the page that begins with `first`.
    fn page_end(&self, first: usize) -> usize {
        let limit = self.offsets[first].saturating_add(PAGE_LEN as i32);
        let most = self.rows().min(first + PAGE_ROWS);
        first + 1 + self.offsets[first + 1..most].partition_point(|end| *end < limit)
    }
}

/// Encodes the column of texts that `column` describes.
pub(in crate::output) fn texts(
    column: &ColumnDescPtr,
    texts: &Texts<'_>,
    codec: &mut PageCodec,
    spare: &Spare,
) -> Result<PageChunk, ParquetError> {
    let mut pages = Pages::new(spare.take(texts.values.len() / 2 + HEADER_LEN));
    let mut first = 0;
    while first < texts.rows() {
        let end = texts.page_end(first);
        write_body(texts, first..end, column.max_def_level() > 0, codec);
        let len = codec.page.len();
        let body = codec.compress()?;
        pages.data(body.clone(), len, end - first, Encoding::DELTA_LENGTH_BYTE_ARRAY)?;
        codec.reclaim(body);
        first = end;
    }
    pages.end(column, codec.name(), Encoding::DELTA_LENGTH_BYTE_ARRAY, None)
}

/// Fills `codec.page` with levels, lengths and bytes of some rows.
fn write_body(texts: &Texts<'_>, rows: std::ops::Range<usize>, is_nullable: bool, codec: &mut PageCodec) {
    let PageCodec { page, lengths, .. } = codec;
    page.clear();
    if is_nullable {
        push_levels(texts.nulls, rows.clone(), page);
    }
    lengths.clear();
    match texts.nulls {
        None => lengths.extend(rows.clone().map(|row| texts.len(row))),
        Some(nulls) => {
            let present = nulls.inner().slice(rows.start, rows.len());
            lengths.extend(present.set_indices().map(|row| texts.len(rows.start + row)));
        }
    }
    delta::pack(lengths, page);
    page.extend_from_slice(&texts.values[texts.offsets[rows.start] as usize..texts.offsets[rows.end] as usize]);
}

/// Appends the definition levels of rows, 1 where there is a value, in the encoding `RLE`, after their length in bytes:
/// one run where there are no nulls, and else the bits of Arrow's bitmap, which has the format's order.
fn push_levels(nulls: Option<&NullBuffer>, rows: std::ops::Range<usize>, out: &mut Vec<u8>) {
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
