//! Columns that are written page by page, and column chunks that are joined from them.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::ColumnDescPtr;

use super::header::{PageHeader, PageKind};
use super::splice::{PageSink, Placeholders};

/// Encoded pages of consecutive rows of one column: of a slice of a row group, or of the whole row group.
#[derive(Debug)]
pub(in crate::output) struct EncodedPages {
    pub(super) bytes: Bytes,
    data_pages: Vec<DataPage>,
    dictionary_len: Option<u64>,
    /// Length of the pages before compression, including headers.
    uncompressed_len: u64,
    format: (Compression, Encoding),
    /// The least and the greatest value of a column of counts.
    pub(super) bounds: Option<(u64, u64)>,
}

/// A data page and its place among the encoded pages.
#[derive(Debug)]
struct DataPage {
    rows: usize,
    offset: u64,
    len: usize,
}

/// An encoded column of one row group.
pub(in crate::output) struct PageChunk {
    /// Consecutive pages in several buffers.
    pub(in crate::output) pages: Vec<Bytes>,
    pub(in crate::output) close: ColumnCloseResult,
}

impl EncodedPages {
    fn rows(&self) -> u64 {
        self.data_pages.iter().map(|page| page.rows as u64).sum()
    }
}

impl PageChunk {
    /// Joins the pages of all slices of a row group, in their order. Only the first slice may have a dictionary. Without
    /// `statistics`, those of counts are used.
    pub(in crate::output) fn join(
        column: &ColumnDescPtr,
        slices: Vec<EncodedPages>,
        statistics: Option<Statistics>,
    ) -> Result<PageChunk, ParquetError> {
        let missing = || ParquetError::General("a column without pages".into());
        let &EncodedPages { format: (compression, encoding), dictionary_len, .. } =
            slices.first().ok_or_else(missing)?;
        let sum = |of: fn(&EncodedPages) -> u64| slices.iter().map(of).sum::<u64>();
        let (rows, len) = (sum(EncodedPages::rows), sum(|slice| slice.bytes.len() as u64));
        let page_count = sum(|slice| slice.data_pages.len() as u64);
        let (encodings, stats) = page_encodings(encoding, page_count, dictionary_len.is_some());
        let mut metadata = ColumnChunkMetaData::builder(column.clone())
            .set_compression(compression)
            .set_encodings(encodings)
            .set_page_encoding_stats(stats)
            .set_total_compressed_size(len as i64)
            .set_total_uncompressed_size(sum(|slice| slice.uncompressed_len) as i64)
            .set_num_values(rows as i64)
            .set_dictionary_page_offset(dictionary_len.map(|_| 0))
            .set_data_page_offset(dictionary_len.unwrap_or(0) as i64);
        if let Some(statistics) = statistics.or_else(|| count_statistics(&slices)) {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: len,
            rows_written: rows,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(offset_index(&slices)),
        };
        Ok(PageChunk { pages: slices.into_iter().map(|slice| slice.bytes).collect(), close })
    }

    /// Appends the column to a row group, as placeholders for its pages.
    pub(in crate::output) fn append_to_row_group(
        self,
        group: &mut SerializedRowGroupWriter<'_, PageSink>,
    ) -> Result<(), ParquetError> {
        group.append_column(&Placeholders(self.close.bytes_written), self.close)
    }
}

/// Returns the index of the data pages of a column chunk, whose offsets are counted from its start.
fn offset_index(slices: &[EncodedPages]) -> OffsetIndexMetaData {
    let (mut index, mut slice_at) = (OffsetIndexBuilder::new(), 0);
    for slice in slices {
        for page in &slice.data_pages {
            index.append_row_count(page.rows as i64);
            index.append_offset_and_size((slice_at + page.offset) as i64, page.len as i32);
        }
        slice_at += slice.bytes.len() as u64;
    }
    index.build()
}

/// Returns the encodings of a column chunk, of levels included, and how many pages have which.
fn page_encodings(
    encoding: Encoding,
    page_count: u64,
    has_dictionary: bool,
) -> (Vec<Encoding>, Vec<PageEncodingStats>) {
    let mut encodings = vec![Encoding::RLE, encoding];
    let mut stats = vec![PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count: page_count as i32 }];
    if has_dictionary {
        encodings.push(Encoding::PLAIN);
        let (page_type, encoding) = (PageType::DICTIONARY_PAGE, Encoding::PLAIN);
        stats.insert(0, PageEncodingStats { page_type, encoding, count: 1 });
    }
    (encodings, stats)
}

/// The statistics of a column of counts. Readers compare those of unsigned columns as unsigned numbers.
fn count_statistics(slices: &[EncodedPages]) -> Option<Statistics> {
    let bounds = slices.iter().filter_map(|slice| slice.bounds);
    let (least, greatest) = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some(Statistics::int64(Some(least as i64), Some(greatest as i64), None, Some(0), false))
}

/// Pages of one column while they are written.
pub(super) struct Pages {
    out: Vec<u8>,
    data_pages: Vec<DataPage>,
    dictionary_len: Option<u64>,
    uncompressed_len: u64,
}

/// The body of a page.
pub(super) struct PageBody<'a> {
    /// Two parts, which follow each other.
    pub(super) parts: [&'a [u8]; 2],
    /// Length in bytes before compression.
    pub(super) uncompressed_len: usize,
}

impl<'a> PageBody<'a> {
    pub(super) fn uncompressed(parts: [&'a [u8]; 2]) -> PageBody<'a> {
        PageBody { parts, uncompressed_len: parts[0].len() + parts[1].len() }
    }
}

impl Pages {
    /// No pages yet, with `memory` as the buffer.
    pub(super) fn new(memory: Vec<u8>) -> Pages {
        Pages { out: memory, data_pages: Vec::new(), dictionary_len: None, uncompressed_len: 0 }
    }

    /// Writes a page and returns its length with its header.
    fn write(&mut self, kind: PageKind, body: PageBody<'_>, value_count: usize, encoding: Encoding) -> usize {
        let PageBody { parts, uncompressed_len } = body;
        let (start, len) = (self.out.len(), parts[0].len() + parts[1].len());
        PageHeader { kind, value_count, encoding, len, uncompressed_len }.write(&mut self.out);
        self.uncompressed_len += (self.out.len() - start + uncompressed_len) as u64;
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
        self.out.len() - start
    }

    pub(super) fn dictionary(&mut self, names: &[&str]) {
        let mut values = Vec::new();
        for name in names {
            values.extend_from_slice(&(name.len() as u32).to_le_bytes());
            values.extend_from_slice(name.as_bytes());
        }
        let body = PageBody::uncompressed([&values, &[]]);
        self.dictionary_len = Some(self.write(PageKind::Dictionary, body, names.len(), Encoding::PLAIN) as u64);
    }

    /// Writes a page of `count` rows.
    pub(super) fn data(&mut self, body: PageBody<'_>, count: usize, encoding: Encoding) {
        let offset = self.out.len() as u64;
        let len = self.write(PageKind::Data, body, count, encoding);
        self.data_pages.push(DataPage { rows: count, offset, len });
    }

    /// Finishes the pages, whose values have this codec and this encoding.
    pub(super) fn end(self, format: (Compression, Encoding)) -> EncodedPages {
        let Pages { out, data_pages, dictionary_len, uncompressed_len } = self;
        EncodedPages { bytes: out.into(), data_pages, dictionary_len, uncompressed_len, format, bounds: None }
    }
}
