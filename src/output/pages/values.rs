//! Encodes the columns of keys, counts and sources.
//!
//! Keys in Parquet's `PLAIN` encoding are stored unchanged, but the general encoder creates an object per key: 34 ns per key
//! instead of 2. Sources are a few long runs, but the general encoder hashes the name of every row: 24 ns. The general
//! encoder encodes sources with more than [`MAX_RUNS`] runs.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, FixedSizeBinaryArray, UInt64Array};
use arrow::datatypes::Int32Type;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescPtr;

use super::buffers::PageBuffers;
use super::chunk::{EncodedPages, PageBody, PageChunk, Pages};
use super::delta;
use super::header::HEADER_LEN;
use super::rle::{push_levels, run_lengths};
use crate::batch::KEY_LEN;

const KEY_BYTES: usize = KEY_LEN as usize;

/// Rows per page: one mebibyte of keys.
const PAGE_ROWS: usize = 1 << 16;

/// A row group with more runs has many small sources, whose names should be compressed.
const MAX_RUNS: usize = 64;

/// Maximum length of names in statistics.
const MAX_BOUND_LEN: usize = 256;

pub(in crate::output) fn keys(column: &ColumnDescPtr, keys: &FixedSizeBinaryArray, pool: &PageBuffers) -> EncodedPages {
    let values = keys.value_data();
    let page_count = keys.len().div_ceil(PAGE_ROWS);
    let mut pages = Pages::new(pool.take(values.len() + keys.len() / 8 + page_count * HEADER_LEN));
    let nulls = keys.nulls().filter(|nulls| nulls.null_count() > 0);
    let (mut levels, mut present) = (Vec::new(), Vec::new());
    for rows in pages_of(keys.len()) {
        if column.max_def_level() > 0 {
            levels.clear();
            push_levels(nulls, rows.clone(), &mut levels);
        }
        let mut values = &values[rows.start * KEY_BYTES..rows.end * KEY_BYTES];
        if let Some(nulls) = nulls {
            present.clear();
            let rows = nulls.inner().slice(rows.start, rows.len());
            rows.set_indices().for_each(|row| present.extend_from_slice(&values[row * KEY_BYTES..][..KEY_BYTES]));
            values = &present;
        }
        pages.data(PageBody::uncompressed([&levels, values]), rows.len(), Encoding::PLAIN);
    }
    pages.end((Compression::UNCOMPRESSED, Encoding::PLAIN))
}

/// Encodes a column of counts. Packed deltas do not compress further.
pub(in crate::output) fn counts(counts: &UInt64Array, pool: &PageBuffers) -> EncodedPages {
    let counts = counts.values();
    let mut pages = Pages::new(pool.take(counts.len() * 2 + HEADER_LEN));
    let mut page = Vec::new();
    for rows in pages_of(counts.len()) {
        page.clear();
        delta::pack(&counts[rows.clone()], |count| count as i64, &mut page);
        pages.data(PageBody::uncompressed([&page, &[]]), rows.len(), Encoding::DELTA_BINARY_PACKED);
    }
    let bounds = counts.iter().copied().map(|count| (count, count));
    let bounds = bounds.reduce(|(least, greatest), (count, _)| (least.min(count), greatest.max(count)));
    let mut pages = pages.end((Compression::UNCOMPRESSED, Encoding::DELTA_BINARY_PACKED));
    pages.bounds = bounds;
    pages
}

/// Returns the rows of each page of a column with `count` rows.
fn pages_of(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(PAGE_ROWS).map(move |first| first..count.min(first + PAGE_ROWS))
}

/// Encodes a column of sources, given by the slices of a row group, unless it has too many runs.
pub(in crate::output) fn sources(
    column: &ColumnDescPtr,
    slices: &[ArrayRef],
) -> Result<Option<PageChunk>, ParquetError> {
    let arrays: Vec<&DictionaryArray<Int32Type>> =
        slices.iter().filter_map(|slice| slice.as_dictionary_opt()).collect();
    let Some(first) = arrays.first().filter(|_| arrays.len() == slices.len()) else { return Ok(None) };
    let Some(runs) = source_runs(&arrays) else { return Ok(None) };
    let all_names = first.values().as_string::<i32>();
    let mut used: Vec<i32> = runs.iter().map(|(source, _)| *source).collect();
    used.sort_unstable();
    used.dedup();
    let names: Vec<&str> = used.iter().map(|source| all_names.value(*source as usize)).collect();

    let mut pages = Pages::new(Vec::with_capacity(
        names.iter().map(|name| name.len() + 4).sum::<usize>() + 2 * HEADER_LEN + runs.len() * 8,
    ));
    pages.dictionary(&names);
    let row_count = runs.iter().map(|(_, count)| count).sum();
    let places = runs.iter().map(|(source, count)| (used.partition_point(|other| other < source), *count));
    let indices = run_lengths(names.len(), places);
    pages.data(PageBody::uncompressed([&indices, &[]]), row_count, Encoding::RLE_DICTIONARY);
    let pages = pages.end((Compression::UNCOMPRESSED, Encoding::RLE_DICTIONARY));
    PageChunk::join(column, vec![pages], bounds(&names)).map(Some)
}

/// Returns the sources of consecutive rows, and how many rows each of them has. Returns `None` for more than [`MAX_RUNS`] runs,
/// and for nulls.
fn source_runs(arrays: &[&DictionaryArray<Int32Type>]) -> Option<Vec<(i32, usize)>> {
    let mut runs: Vec<(i32, usize)> = Vec::new();
    for run in arrays.iter().flat_map(|array| array.keys().values().chunk_by(|a, b| a == b)) {
        match runs.last_mut() {
            Some((source, count)) if *source == run[0] => *count += run.len(),
            _ => runs.push((run[0], run.len())),
        }
        if runs.len() > MAX_RUNS {
            return None;
        }
    }
    arrays.iter().all(|array| array.null_count() == 0).then_some(runs)
}

/// Returns statistics with the least and the greatest name, unless a name is too long.
fn bounds(names: &[&str]) -> Option<Statistics> {
    let (first, last) = (names.iter().min()?, names.iter().max()?);
    let is_short = first.len().max(last.len()) <= MAX_BOUND_LEN;
    is_short.then(|| {
        Statistics::byte_array(Some(ByteArray::from(*first)), Some(ByteArray::from(*last)), None, Some(0), false)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int32Array, StringArray};
    use std::sync::Arc;

    fn slice(keys: Vec<Option<i32>>) -> DictionaryArray<Int32Type> {
        let names = StringArray::from_iter_values((0..100).map(|i| format!("source {i}")));
        DictionaryArray::new(Int32Array::from(keys), Arc::new(names))
    }

    /// The bytes of a row group do not depend on where it was divided into slices.
    #[test]
    fn runs_of_sources_continue_in_the_next_slice() {
        let slices = [vec![Some(0), Some(0), Some(7)], vec![Some(7)], vec![Some(7), Some(7), Some(0)]].map(slice);
        let [first, second, third] = &slices;
        assert_eq!(source_runs(&[first, second, third]), Some(vec![(0, 2), (7, 4), (0, 1)]));
        let runs = |count: i32| slice((0..count).map(Some).collect());
        assert_eq!(source_runs(&[&runs(MAX_RUNS as i32)]).map(|runs| runs.len()), Some(MAX_RUNS));
        assert_eq!(source_runs(&[&runs(MAX_RUNS as i32 + 1)]), None);
        assert_eq!(source_runs(&[first, &slice(vec![None])]), None);
    }

    #[test]
    fn bounds_are_whole_names() {
        let [longest, too_long] = [MAX_BOUND_LEN, MAX_BOUND_LEN + 1].map(|len| "x".repeat(len));
        let found = bounds(&["b", &longest, "a"]).unwrap();
        assert_eq!(found.min_bytes_opt(), Some(&b"a"[..]));
        assert_eq!(found.max_bytes_opt(), Some(longest.as_bytes()));
        assert_eq!(bounds(&["b", &too_long, "a"]), None);
    }
}
