//! Column chunks that are written page by page, and the pool of their buffers.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, PageType};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder, PageEncodingStats};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::output::sink::Sink;
use std::sync::{Mutex, PoisonError};

/// Upper bound of the length of a page header.
pub(super) const HEADER_LEN: usize = 64;

/// An encoded column of one row group.
pub(in crate::output) struct PageChunk {
    pub(super) pages: Bytes,
    pub(super) close: ColumnCloseResult,
}

impl PageChunk {
    /// Appends the column to a row group. Returns the buffer of its pages.
    pub(in crate::output) fn append_to_row_group(
        self,
        group: &mut SerializedRowGroupWriter<'_, Sink>,
    ) -> Result<Bytes, ParquetError> {
        group.append_column(&self.pages, self.close)?;
        Ok(self.pages)
    }
}

/// Minimum length of buffers that are kept.
const MIN_LEN: usize = 1 << 16;

/// Buffers of written chunks, for reuse: the system clears new memory page by page.
#[derive(Debug, Default)]
pub(in crate::output) struct PageBuffers(Mutex<Vec<Vec<u8>>>);

impl PageBuffers {
    /// Returns a buffer with a capacity of at least `len` bytes.
    pub(super) fn take(&self, len: usize) -> Vec<u8> {
        let mut buffers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let large = buffers.iter().position(|buffer| buffer.capacity() >= len);
        // A buffer that is too small grows, so that the pool never has more buffers than were in use at once.
        let mut buffer = large.map(|at| buffers.swap_remove(at)).or_else(|| buffers.pop()).unwrap_or_default();
        buffer.reserve(len);
        buffer
    }

    /// Returns the buffer of `pages` to the pool, if it has no other owner.
    pub(in crate::output) fn put(&self, pages: Bytes) {
        if pages.len() >= MIN_LEN
            && let Ok(mut pages) = pages.try_into_mut()
        {
            // Growing would copy old content.
            pages.clear();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(pages.into());
        }
    }
}

/// Pages of one column chunk while they are written.
pub(super) struct Pages {
    out: TrackedWrite<Vec<u8>>,
    index: OffsetIndexBuilder,
    dictionary_len: Option<u64>,
    data_pages: i32,
    values: usize,
    /// Length of the pages before compression, including headers.
    uncompressed_len: u64,
}

impl Pages {
    /// Creates a chunk without pages, with `memory` as its buffer.
    pub(super) fn new(memory: Vec<u8>) -> Pages {
        Pages {
            out: TrackedWrite::new(memory),
            index: OffsetIndexBuilder::new(),
            dictionary_len: None,
            data_pages: 0,
            values: 0,
            uncompressed_len: 0,
        }
    }

    /// Writes a page whose body had `len` bytes before compression.
    fn write(&mut self, page: Page, len: usize) -> Result<PageWriteSpec, ParquetError> {
        let spec = SerializedPageWriter::new(&mut self.out).write_page(CompressedPage::new(page, len))?;
        self.uncompressed_len += spec.uncompressed_size as u64;
        Ok(spec)
    }

    /// Writes the dictionary page.
    pub(super) fn dictionary(&mut self, names: &[&str]) -> Result<(), ParquetError> {
        let mut buf = Vec::new();
        for name in names {
            buf.extend_from_slice(&(name.len() as u32).to_le_bytes());
            buf.extend_from_slice(name.as_bytes());
        }
        let (len, num_values, encoding) = (buf.len(), names.len() as u32, Encoding::PLAIN);
        let spec = self.write(Page::DictionaryPage { buf: buf.into(), num_values, encoding, is_sorted: false }, len)?;
        self.dictionary_len = Some(spec.bytes_written);
        Ok(())
    }

    /// Writes the page `buf` of `count` rows, which had `len` bytes before compression.
    pub(super) fn data(
        &mut self,
        buf: Bytes,
        len: usize,
        count: usize,
        encoding: Encoding,
    ) -> Result<(), ParquetError> {
        let page = Page::DataPage {
            buf,
            num_values: count as u32,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let spec = self.write(page, len)?;
        self.index.append_row_count(count as i64);
        self.index.append_offset_and_size(spec.offset as i64, spec.compressed_size as i32);
        self.data_pages += 1;
        self.values += count;
        Ok(())
    }

    /// Finishes the chunk of `column`, whose data pages have this encoding.
    pub(super) fn end(
        self,
        column: &ColumnDescPtr,
        (compression, encoding): (Compression, Encoding),
        statistics: Option<Statistics>,
    ) -> Result<PageChunk, ParquetError> {
        let pages = Bytes::from(self.out.into_inner()?);
        let mut encodings = vec![Encoding::RLE];
        encodings.push(encoding);
        let mut stats = vec![PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count: self.data_pages }];
        if self.dictionary_len.is_some() {
            encodings.push(Encoding::PLAIN);
            let (page_type, encoding) = (PageType::DICTIONARY_PAGE, Encoding::PLAIN);
            stats.insert(0, PageEncodingStats { page_type, encoding, count: 1 });
        }
        let mut metadata = ColumnChunkMetaData::builder(column.clone())
            .set_compression(compression)
            .set_encodings(encodings)
            .set_page_encoding_stats(stats)
            .set_total_compressed_size(pages.len() as i64)
            .set_total_uncompressed_size(self.uncompressed_len as i64)
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
