//! Keys and sources in, their column chunks out.
//!
//! Keys in Parquet's `PLAIN` encoding are the keys themselves, but the general encoder makes an object of every key
//! first: 34 ns a key where this takes 2. Sources are a few long runs, but it hashes the name of every row: 24 ns.
//! Neither column has nulls or levels. Sources in more than [`MOST_RUNS`] runs are left to the general encoder.

use arrow::array::{Array, AsArray, DictionaryArray, FixedSizeBinaryArray};
use arrow::datatypes::Int32Type;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use super::delta::push_varint;
use super::{BufferPool, HEADER_LEN, PageChunk, Pages};
use crate::batch::KEY_LEN;

/// Keys of one page, a mebibyte of them.
const PAGE_KEYS: usize = 1 << 16;

/// Past this, a row group has so many small sources that their names want a codec.
const MOST_RUNS: usize = 64;

/// Names longer than this make no statistics.
const LONGEST_BOUND: usize = 256;

/// Encodes the key column that `column` describes.
pub(in crate::output) fn keys(
    column: &ColumnDescPtr,
    keys: &FixedSizeBinaryArray,
    spare: &BufferPool,
) -> Result<PageChunk, ParquetError> {
    let values = Bytes::from_owner(keys.values().clone());
    let page_count = keys.len().div_ceil(PAGE_KEYS);
    let mut pages = Pages::new(spare.take(values.len() + page_count * HEADER_LEN));
    for first in (0..keys.len()).step_by(PAGE_KEYS) {
        let (count, key_len) = (PAGE_KEYS.min(keys.len() - first), KEY_LEN as usize);
        let page = values.slice(first * key_len..(first + count) * key_len);
        pages.data(page, count * key_len, count, Encoding::PLAIN)?;
    }
    pages.end(column, Compression::UNCOMPRESSED, Encoding::PLAIN, None)
}

/// Encodes the column of sources that `column` describes; nothing when it has too many runs.
pub(in crate::output) fn sources(
    column: &ColumnDescPtr,
    sources: &DictionaryArray<Int32Type>,
) -> Result<Option<PageChunk>, ParquetError> {
    let runs: Vec<(i32, usize)> =
        sources.keys().values().chunk_by(|a, b| a == b).take(MOST_RUNS + 1).map(|run| (run[0], run.len())).collect();
    if runs.len() > MOST_RUNS || sources.null_count() > 0 {
        return Ok(None);
    }
    let all_names = sources.values().as_string::<i32>();
    let mut used: Vec<i32> = runs.iter().map(|(source, _)| *source).collect();
    used.sort_unstable();
    used.dedup();
    let names: Vec<&str> = used.iter().map(|source| all_names.value(*source as usize)).collect();

    let mut pages = Pages::new(Vec::with_capacity(
        names.iter().map(|name| name.len() + 4).sum::<usize>() + 2 * HEADER_LEN + runs.len() * 8,
    ));
    pages.dictionary(&names)?;
    let places = runs.iter().map(|(source, count)| (used.partition_point(|other| other < source), *count));
    let indices = run_lengths(names.len(), places);
    let len = indices.len();
    pages.data(indices.into(), len, sources.len(), Encoding::RLE_DICTIONARY)?;
    pages.end(column, Compression::UNCOMPRESSED, Encoding::RLE_DICTIONARY, bounds(&names)).map(Some)
}

/// Indices of a dictionary of `names` entries: the width of an index in bits, then runs in the encoding `RLE`, each
/// its length doubled as a varint, and the index in as many whole bytes as the width needs.
fn run_lengths(names: usize, runs: impl Iterator<Item = (usize, usize)>) -> Vec<u8> {
    let width = usize::BITS - (names - 1).leading_zeros();
    let mut out = vec![width as u8];
    for (place, count) in runs {
        push_varint((count as u64) << 1, &mut out);
        out.extend_from_slice(&place.to_le_bytes()[..width.div_ceil(8) as usize]);
    }
    out
}

/// First and last name, unless one of them is too long to be worth it.
fn bounds(names: &[&str]) -> Option<Statistics> {
    let (first, last) = (names.iter().min()?, names.iter().max()?);
    let is_short = first.len().max(last.len()) <= LONGEST_BOUND;
    is_short.then(|| {
        Statistics::byte_array(Some(ByteArray::from(*first)), Some(ByteArray::from(*last)), None, Some(0), false)
    })
}

#[cfg(test)]
mod tests {
    use super::run_lengths;

    #[test]
    fn runs_are_written_as_parquet_has_them() {
        assert_eq!(run_lengths(1, [(0, 3)].into_iter()), [0, 6]);
        assert_eq!(run_lengths(2, [(1, 64), (0, 1)].into_iter()), [1, 0x80, 0x01, 1, 2, 0]);
        assert_eq!(run_lengths(300, [(299, 1)].into_iter()), [9, 2, 0x2B, 0x01]);
    }
}
