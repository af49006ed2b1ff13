//! Columns in, their column chunks out, where the pages are plain enough to be made here: keys and sources.
//!
//! Keys in Parquet's `PLAIN` encoding are the keys themselves, but the general encoder makes an object of every key
//! first: 34 ns a key where this takes 2. Sources are a few long runs, but it hashes the name of every row: 24 ns.
//! Neither column has nulls or levels. Sources in more than [`MOST_RUNS`] runs are left to the general encoder.

use arrow::array::{Array, AsArray, DictionaryArray, FixedSizeBinaryArray};
use arrow::datatypes::Int32Type;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use super::sink::Sink;
use crate::batch::KEY_LEN;

/// Keys of one page, a mebibyte of them.
const PAGE_KEYS: usize = 1 << 16;

/// More than a page's header takes.
const HEADER_LEN: usize = 64;

/// Past this, a row group has so many small sources that their names want a codec.
const MOST_RUNS: usize = 64;

/// Names longer than this make no statistics.
const LONGEST_BOUND: usize = 256;

/// An encoded column of one row group.
pub(super) struct PageChunk {
    pages: Bytes,
    close: ColumnCloseResult,
}

impl PageChunk {
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn append_to_row_group(
        self,
        group: &mut SerializedRowGroupWriter<'_, Sink>,
    ) -> Result<(), ParquetError> {
        group.append_column(&self.pages, self.close)
    }
}

/// Encodes the key column that `column` describes.
pub(super) fn keys(column: &ColumnDescPtr, keys: &FixedSizeBinaryArray) -> Result<PageChunk, ParquetError> {
    let values = Bytes::from_owner(keys.values().clone());
    let page_count = keys.len().div_ceil(PAGE_KEYS);
    let mut pages = Pages::new(values.len() + page_count * HEADER_LEN);
    for first in (0..keys.len()).step_by(PAGE_KEYS) {
        let (count, key_len) = (PAGE_KEYS.min(keys.len() - first), KEY_LEN as usize);
        pages.data(values.slice(first * key_len..(first + count) * key_len), count, Encoding::PLAIN)?;
    }
    pages.end(column, Encoding::PLAIN, None)
}

/// Encodes the column of sources that `column` describes; nothing when it has too many runs.
pub(super) fn sources(
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

    let mut pages =
        Pages::new(names.iter().map(|name| name.len() + 4).sum::<usize>() + 2 * HEADER_LEN + runs.len() * 8);
    pages.dictionary(&names)?;
    let places = runs.iter().map(|(source, count)| (used.partition_point(|other| other < source), *count));
    pages.data(run_lengths(names.len(), places).into(), sources.len(), Encoding::RLE_DICTIONARY)?;
    pages.end(column, Encoding::RLE_DICTIONARY, bounds(&names)).map(Some)
}

/// Indices of a dictionary of `names` entries: the width of an index in bits, then runs in the encoding `RLE`, each
/// its length doubled as a varint, and the index in as many whole bytes as the width needs.
fn run_lengths(names: usize, runs: impl Iterator<Item = (usize, usize)>) -> Vec<u8> {
    let width = usize::BITS - (names - 1).leading_zeros();
    let mut out = vec![width as u8];
    for (place, count) in runs {
        let mut head = count << 1;
        while head > 0x7F {
            out.push(head as u8 | 0x80);
            head >>= 7;
        }
        out.push(head as u8);
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

/// Pages of one column chunk, as they are written.
struct Pages {
    out: TrackedWrite<Vec<u8>>,
    index: OffsetIndexBuilder,
    dictionary_len: Option<u64>,
    data_pages: i32,
    values: usize,
}

impl Pages {
    fn new(capacity: usize) -> Pages {
        let out = TrackedWrite::new(Vec::with_capacity(capacity));
        Pages { out, index: OffsetIndexBuilder::new(), dictionary_len: None, data_pages: 0, values: 0 }
    }

    fn write(&mut self, page: Page) -> Result<PageWriteSpec, ParquetError> {
        let len = page.buffer().len();
        SerializedPageWriter::new(&mut self.out).write_page(CompressedPage::new(page, len))
    }

    fn dictionary(&mut self, names: &[&str]) -> Result<(), ParquetError> {
        let mut buf = Vec::new();
        for name in names {
            buf.extend_from_slice(&(name.len() as u32).to_le_bytes());
            buf.extend_from_slice(name.as_bytes());
        }
        let (num_values, encoding) = (names.len() as u32, Encoding::PLAIN);
        let spec = self.write(Page::DictionaryPage { buf: buf.into(), num_values, encoding, is_sorted: false })?;
        self.dictionary_len = Some(spec.bytes_written);
        Ok(())
    }

    fn data(&mut self, buf: Bytes, count: usize, encoding: Encoding) -> Result<(), ParquetError> {
        let spec = self.write(Page::DataPage {
            buf,
            num_values: count as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        })?;
        self.index.append_row_count(count as i64);
        self.index.append_offset_and_size(spec.offset as i64, spec.compressed_size as i32);
        self.data_pages += 1;
        self.values += count;
        Ok(())
    }

    fn end(
        self,
        column: &ColumnDescPtr,
        encoding: Encoding,
        statistics: Option<Statistics>,
    ) -> Result<PageChunk, ParquetError> {
        let pages = Bytes::from(self.out.into_inner()?);
        let mut encodings = vec![Encoding::PLAIN, Encoding::RLE];
        let mut stats = vec![PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count: self.data_pages }];
        if self.dictionary_len.is_some() {
            encodings.push(encoding);
            let (page_type, encoding) = (PageType::DICTIONARY_PAGE, Encoding::PLAIN);
            stats.insert(0, PageEncodingStats { page_type, encoding, count: 1 });
        }
        let mut metadata = ColumnChunkMetaData::builder(column.clone())
            .set_compression(Compression::UNCOMPRESSED)
            .set_encodings(encodings)
            .set_page_encoding_stats(stats)
            .set_total_compressed_size(pages.len() as i64)
            .set_total_uncompressed_size(pages.len() as i64)
            .set_num_values(self.values as i64)
            .set_dictionary_page_offset(self.dictionary_len.map(|_| 0))
            .set_data_page_offset(self.dictionary_len.unwrap_or(0) as i64);
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: pages.len() as u64,
            rows_written: self.values as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(self.index.build()),
        };
        Ok(PageChunk { pages, close })
    }
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
