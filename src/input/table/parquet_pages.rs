//! Pages of a Parquet file whose lengths are checked before the crate parquet uses them: [`CheckedRowGroup`].
//!
//! The crate allocates memory by the lengths that a file states, and a failed allocation aborts the process.
//!
//! | length | bound |
//! |---|---|
//! | column chunk | the file |
//! | page, compressed | the column chunk (checked by the crate) |
//! | page, content | what the codec can expand the page to, [`MAX_PAGE_LEN`], and what its header states |
//! | header of a page | the column chunk, [`MAX_HEADER_LEN`] |
//! | values of a dictionary | bytes of its content |
//! | values of a delta-encoded page | values in the header of the page |

use std::io::{Cursor, Read};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, RowGroups};
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::page_memory::PageMemory;
use super::parquet_codec::PageUnpacker;
use super::parquet_thrift::{CompactError, PageLengths, page_lengths};
use super::positioned_file::PositionedFile;
use crate::kernel::read_varint;

/// Longest content of a page, in bytes.
const MAX_PAGE_LEN: u64 = 1 << 30;

/// A page may expand to this many bytes, whatever its length.
const SMALL_PAGE_LEN: u64 = 1 << 20;

/// Bytes that are read first to parse a page header, which usually has less than a hundred.
const HEADER_BUFFER_LEN: usize = 1 << 10;

/// Longest page header, in bytes. It may contain two values of the page.
const MAX_HEADER_LEN: usize = 16 << 20;

/// One row group of a file.
pub(crate) struct CheckedRowGroup {
    pub(crate) file: PositionedFile,
    pub(crate) metadata: ArrowReaderMetadata,
    pub(crate) group: usize,
    /// [`first_repeated`] of the file.
    pub(crate) first_repeated: usize,
    /// Memory of pages, which row groups can share.
    pub(crate) memory: Arc<PageMemory>,
}

impl CheckedRowGroup {
    /// Checks what the footer states of the row group.
    ///
    /// # Errors
    /// It shares bytes with another row group, or states a negative number of rows.
    pub(crate) fn check(self) -> ParquetResult<CheckedRowGroup> {
        match self.row_group().num_rows() {
            _ if self.group >= self.first_repeated => {
                Err(ParquetError::General("it shares bytes with another row group".to_string()))
            }
            rows if rows < 0 => Err(ParquetError::General(format!("it states {rows} rows"))),
            _ => Ok(self),
        }
    }

    fn row_group(&self) -> &RowGroupMetaData {
        self.metadata.metadata().row_group(self.group)
    }

    /// The pages of column `i`.
    ///
    /// # Errors
    /// The column is not within the file, or its codec is not supported.
    pub(super) fn pages(&self, i: usize) -> ParquetResult<CheckedPages> {
        let column = self.row_group().column(i);
        let name = column.column_path().string();
        let file_len = self.file.len();
        if !is_within(column, file_len) {
            let (start, len) = (chunk_start(column), column.compressed_size());
            let message = format!("{len} bytes at byte {start} reach past the end of the file, at byte {file_len}");
            return Err(ParquetError::General(format!("column `{name}`: {message}")));
        }
        let codec = column.compression();
        if codec == Compression::LZO {
            let message = "its codec LZO is not supported; write the file again, for example with zstd";
            return Err(ParquetError::General(format!("column `{name}`: {message}")));
        }
        let (file, memory) = (self.file.clone(), self.memory.clone());
        let end = chunk_range(column).map_or(file_len, |range| range.end);
        let file = Arc::new(PageFile { file, end, codec, content_len: Arc::default(), memory: memory.clone() });
        let content_len = file.content_len.clone();
        let codec = PageUnpacker::of(codec);
        let pages = match codec {
            // The pages are returned as they are in the file.
            Some(_) => {
                let column = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
                SerializedPageReader::new(file, &column, self.num_rows(), None)?
            }
            None => SerializedPageReader::new(file, column, self.num_rows(), None)?,
        };
        let has_levels = column.column_descr().max_def_level() > 0;
        Ok(CheckedPages { pages, codec, content_len, memory, has_levels })
    }
}

/// The error of a row group that has fewer rows than it states.
pub(super) fn rows_are_missing(count: u64) -> ParquetError {
    ParquetError::General(format!("{count} rows are missing at the end of a page or column"))
}

/// Returns whether a column chunk is within a file of this length.
pub(super) fn is_within(column: &ColumnChunkMetaData, file_len: u64) -> bool {
    chunk_range(column).is_some_and(|range| range.end <= file_len)
}

/// Where a column chunk begins, as its file states it.
pub(super) fn chunk_start(column: &ColumnChunkMetaData) -> i64 {
    column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset())
}

/// Where a column chunk is in its file, if the file states a place.
pub(crate) fn chunk_range(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let (start, len) = (chunk_start(column).try_into().ok()?, column.compressed_size().try_into().ok()?);
    Some(start..u64::checked_add(start, len)?)
}

/// Returns the number of the first row group whose columns of `mask` do not fit into the file together with those of the row
/// groups before it, so that it shares bytes with one of them. Each row group gives rows, so that a short file could otherwise
/// have any number of rows.
pub(crate) fn first_repeated(metadata: &ParquetMetaData, mask: &ProjectionMask, file_len: u64) -> usize {
    let mut rest = file_len;
    let is_repeated = |group: &RowGroupMetaData| {
        // Other checks report columns that reach past the end of the file.
        if group.num_rows() != 0 && columns(group, mask).all(|column| is_within(column, file_len)) {
            let lens = columns(group, mask).map(|column| u64::try_from(column.compressed_size()).unwrap_or(0));
            match rest.checked_sub(lens.fold(0, u64::saturating_add)) {
                Some(len) => rest = len,
                None => return true,
            }
        }
        false
    };
    metadata.row_groups().iter().position(is_repeated).unwrap_or(usize::MAX)
}

/// The columns of a row group that are read.
pub(super) fn columns<'a>(
    group: &'a RowGroupMetaData,
    mask: &ProjectionMask,
) -> impl Iterator<Item = &'a ColumnChunkMetaData> {
    (0..group.num_columns()).filter(|&i| mask.leaf_included(i)).map(|i| group.column(i))
}

impl RowGroups for CheckedRowGroup {
    fn num_rows(&self) -> usize {
        usize::try_from(self.row_group().num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, i: usize) -> ParquetResult<Box<dyn PageIterator>> {
        Ok(Box::new(ColumnChunk(Some(Box::new(self.pages(i)?)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.row_group()))
    }

    fn metadata(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }
}

/// The pages of one column chunk, as the only item of an iterator.
struct ColumnChunk(Option<Box<CheckedPages>>);

impl Iterator for ColumnChunk {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(|pages| Ok(pages as Box<dyn PageReader>))
    }
}

impl PageIterator for ColumnChunk {}

/// Pages of a column chunk, decompressed, whose numbers of values were compared with their contents.
pub(super) struct CheckedPages {
    pages: SerializedPageReader<PageFile>,
    /// The codec, if `pages` does not decompress.
    codec: Option<PageUnpacker>,
    /// Length of the content that the last page header states.
    content_len: Arc<AtomicU64>,
    memory: Arc<PageMemory>,
    /// Definition levels precede the values.
    pub(super) has_levels: bool,
}

impl CheckedPages {
    fn check(&self, page: Option<Page>) -> ParquetResult<Option<Page>> {
        match &page {
            Some(page) if !is_plausible(page, self.has_levels) => {
                Err(ParquetError::General("a page states more values than it has".into()))
            }
            _ => Ok(page),
        }
    }

    /// Decompresses the last page that was read, if the crate did not.
    fn unpack(&mut self, mut page: Page) -> ParquetResult<Page> {
        let Some(codec) = &mut self.codec else { return Ok(page) };
        let levels_len = match &page {
            Page::DataPageV2 { is_compressed: false, .. } => return Ok(page),
            // The levels before the values are not compressed.
            Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
                (*def_levels_byte_len as usize).saturating_add(*rep_levels_byte_len as usize)
            }
            Page::DataPage { .. } | Page::DictionaryPage { .. } => 0,
        };
        let (Page::DataPage { buf, .. } | Page::DataPageV2 { buf, .. } | Page::DictionaryPage { buf, .. }) = &mut page;
        // `check_lengths` found the length to be possible.
        let content_len = self.content_len.load(Ordering::Relaxed) as usize;
        let unpack = |content: &mut [u8]| {
            let parts = buf.split_at_checked(levels_len).zip(content.split_at_mut_checked(levels_len));
            let is_sound = parts.is_some_and(|((levels, packed), (into, values))| {
                into.copy_from_slice(levels);
                // A page of nulls has no values, and no compressed data either.
                values.is_empty() || codec.unpack(packed, values)
            });
            let message =
                || format!("a page is damaged, or its content has not the {content_len} bytes that it states");
            is_sound.then_some(()).ok_or_else(|| ParquetError::General(message()))
        };
        *buf = self.memory.page(content_len, unpack)?;
        Ok(page)
    }
}

impl Iterator for CheckedPages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.get_next_page()?.map(|page| self.unpack(page)).transpose()?;
        self.check(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.pages.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        // The header that was read last would not be that of a deferred page.
        self.codec.is_none() && self.pages.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.pages.take_deferred_dictionary()?;
        self.check(page)
    }

    fn at_record_boundary(&mut self) -> ParquetResult<bool> {
        self.pages.at_record_boundary()
    }
}

/// Whether the numbers of values, by which the crate allocates memory, agree with each other and with the content.
fn is_plausible(page: &Page, has_levels: bool) -> bool {
    let (buf, num_values, encoding) = (page.buffer(), page.num_values() as usize, page.encoding());
    let values = match page {
        // A value has at least one byte.
        Page::DictionaryPage { .. } => return num_values <= buf.len(),
        Page::DataPage { .. } if has_levels => {
            let len = buf.first_chunk().map_or(0, |len| u32::from_le_bytes(*len) as usize);
            buf.get(len.saturating_add(4)..)
        }
        Page::DataPage { .. } => Some(&buf[..]),
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            buf.get((*def_levels_byte_len as usize).saturating_add(*rep_levels_byte_len as usize)..)
        }
    };
    let is_within = |(count, _): (u64, _)| count <= num_values as u64;
    match encoding {
        Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY => {
            values.and_then(delta_values).is_some_and(is_within)
        }
        // Lengths of prefixes, and then of suffixes.
        Encoding::DELTA_BYTE_ARRAY => values
            .and_then(delta_values)
            .is_some_and(|prefixes| is_within(prefixes) && delta_values(prefixes.1).is_some_and(is_within)),
        _ => true,
    }
}

/// Returns the number of integers in the encoding `DELTA_BINARY_PACKED` at the start of `bytes`, and the bytes after them.
/// `None` if the encoding is malformed.
fn delta_values(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (block_values, bytes) = read_varint(bytes)?;
    let (miniblock_count, bytes) = read_varint(bytes)?;
    let (count, bytes) = read_varint(bytes)?;
    let (_first, mut bytes) = read_varint(bytes)?;
    let miniblock_values = block_values.checked_div(miniblock_count).filter(|values| *values > 0)?;
    let mut remaining = count.saturating_sub(1);
    while remaining > 0 {
        let (_least, rest) = read_varint(bytes)?;
        let (widths, rest) = rest.split_at_checked(usize::try_from(miniblock_count).ok()?)?;
        bytes = rest;
        for width in widths {
            if remaining == 0 {
                break;
            }
            let len = miniblock_values.checked_mul((*width).into())?.div_ceil(8);
            // The last miniblock may lack its padding.
            bytes = bytes.get(usize::try_from(len).ok()?..).unwrap_or_default();
            remaining = remaining.saturating_sub(miniblock_values);
        }
    }
    Some((count, bytes))
}

/// A file of which pages of one column chunk are read.
#[derive(Clone)]
struct PageFile {
    file: PositionedFile,
    /// Byte offset of the end of the column chunk.
    end: u64,
    codec: Compression,
    /// Length of the content that the last page header states.
    content_len: Arc<AtomicU64>,
    memory: Arc<PageMemory>,
}

impl Length for PageFile {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl PageFile {
    /// Reads the header of the page at `start`, and bytes after it, and checks it. Nothing after the column chunk is read: it
    /// would be one more request for a file in a store.
    fn header(&self, start: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(HEADER_BUFFER_LEN);
        let mut limit = HEADER_BUFFER_LEN;
        let lengths = loop {
            let (at, len) = (start + bytes.len() as u64, (limit - bytes.len()) as u64);
            self.file.reader(at).take(len.min(self.end.saturating_sub(at))).read_to_end(&mut bytes)?;
            match page_lengths(&bytes) {
                Ok(lengths) => break lengths,
                Err(CompactError::TooShort) if bytes.len() == limit && limit < MAX_HEADER_LEN => {
                    limit = (limit * 16).min(MAX_HEADER_LEN)
                }
                Err(error) => return Err(std::io::Error::other(format!("the header of a page is damaged: {error}"))),
            }
        };
        check_lengths(lengths, self.codec).map_err(std::io::Error::other)?;
        self.content_len.store(lengths.content, Ordering::Relaxed);
        Ok(bytes)
    }
}

impl ChunkReader for PageFile {
    /// The crate reads only headers of pages in this way.
    type T = PageHeaderReader;

    fn get_read(&self, start: u64) -> ParquetResult<PageHeaderReader> {
        Ok(PageHeaderReader { file: self.clone(), start, header: None })
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        self.file.page(start, length, &self.memory)
    }
}

/// Reads the header of a page, which is checked before.
struct PageHeaderReader {
    file: PageFile,
    start: u64,
    /// `None` before anything was read: the crate also makes a reader at the content of a page whose header it has.
    header: Option<Cursor<Vec<u8>>>,
}

impl Read for PageHeaderReader {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let header = match &mut self.header {
            Some(header) => header,
            unread => unread.insert(Cursor::new(self.file.header(self.start)?)),
        };
        header.read(into)
    }
}

/// Checks whether a page of this compressed length can have its content.
fn check_lengths(lengths: PageLengths, codec: Compression) -> Result<(), String> {
    let PageLengths { content, compressed } = lengths;
    if content > expanded_len(compressed, codec).clamp(SMALL_PAGE_LEN, MAX_PAGE_LEN) {
        return Err(format!("the content of a page of {compressed} bytes cannot have {content} bytes"));
    }
    Ok(())
}

/// The longest content that `len` compressed bytes can have.
fn expanded_len(len: u64, codec: Compression) -> u64 {
    let factor = match codec {
        Compression::UNCOMPRESSED => 1,
        // A copy of 64 bytes takes 3 bytes, or 2.
        Compression::SNAPPY => 32,
        // A byte of a length stands for up to 255 bytes.
        Compression::LZ4 | Compression::LZ4_RAW => 256,
        // 258 bytes take two bits.
        Compression::GZIP(_) => 1032,
        // A block of up to 128 KiB takes 4 bytes.
        Compression::ZSTD(_) => 32 << 10,
        // Copies of any length; what is longer than this would be repetitions of a few bytes.
        Compression::BROTLI(_) | Compression::LZO => 64 << 10,
    };
    len.saturating_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::push_varint;

    #[test]
    fn contents_beyond_what_a_codec_can_expand_to_are_refused() {
        let check = |content, compressed, codec| check_lengths(PageLengths { content, compressed }, codec);
        assert_eq!(check(5 << 20, 5 << 20, Compression::UNCOMPRESSED), Ok(()));
        assert_eq!(check(1 << 20, 20, Compression::SNAPPY), Ok(()));
        for (codec, content) in [(Compression::UNCOMPRESSED, (5 << 20) + 1), (Compression::SNAPPY, 200 << 20)] {
            let message = check(content, 5 << 20, codec).unwrap_err();
            assert_eq!(message, format!("the content of a page of 5242880 bytes cannot have {content} bytes"));
        }
        assert!(check((1 << 30) + 1, 900 << 20, Compression::BROTLI(Default::default())).is_err());
        let expansions = [
            (Compression::SNAPPY, 32),
            (Compression::LZ4, 256),
            (Compression::LZ4_RAW, 256),
            (Compression::GZIP(Default::default()), 1032),
            (Compression::ZSTD(Default::default()), 32_768),
            (Compression::BROTLI(Default::default()), 65_536),
        ];
        for (codec, factor) in expansions {
            let compressed = (64 << 20) / factor;
            assert_eq!(check(compressed * factor, compressed, codec), Ok(()), "{codec}");
            assert!(check(compressed * factor + 1, compressed, codec).is_err(), "{codec}");
        }
    }

    #[test]
    fn integers_of_a_delta_encoding_are_skipped() {
        // Blocks of 128 values in 4 miniblocks; the widths are 3, 0, 8 and 1 bits.
        let mut bytes = Vec::new();
        [128, 4, 100, 7, 2].into_iter().for_each(|number| push_varint(number, &mut bytes));
        bytes.extend([3, 0, 8, 1]);
        bytes.extend(vec![0xFF; (32 * 3 + 32 * 8 + 32) / 8]);
        bytes.extend(b"rest");
        assert_eq!(delta_values(&bytes), Some((100, &b"rest"[..])));
        assert_eq!(delta_values(&[128, 1, 4, 1, 7, b'x']), Some((1, &b"x"[..])));
        // Widths of miniblocks without values have no meaning.
        let mut bytes = Vec::new();
        [128, 4, 33, 7, 2].into_iter().for_each(|number| push_varint(number, &mut bytes));
        bytes.extend([3, 9, 9, 9]);
        bytes.extend([&[0xFF; 32 * 3 / 8], &b"suffix lengths"[..]].concat());
        assert_eq!(delta_values(&bytes), Some((33, &b"suffix lengths"[..])));
        // The last two have miniblocks of no values.
        for malformed in [&[][..], &[128, 1, 0, 1, 7], &[128, 1, 4, 9, 7], &[0xFF; 12], &[0, 4, 1, 7], &[3, 4, 1, 7]] {
            assert_eq!(delta_values(malformed), None, "{malformed:?}");
        }
    }

    #[test]
    fn pages_that_state_too_many_values_are_not_plausible() {
        let page = |bytes: &[u8], num_values, encoding| Page::DataPage {
            buf: Bytes::copy_from_slice(bytes),
            num_values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let lengths = [128, 1, 4, 1, 7, 128, 1, 4, 3, 7, 0, 0, 0, 0, 0];
        assert!(is_plausible(&page(&lengths, 1, Encoding::DELTA_LENGTH_BYTE_ARRAY), false));
        assert!(!is_plausible(&page(&lengths, 0, Encoding::DELTA_LENGTH_BYTE_ARRAY), false));
        assert!(is_plausible(&page(&lengths, 3, Encoding::DELTA_BYTE_ARRAY), false));
        assert!(!is_plausible(&page(&lengths, 2, Encoding::DELTA_BYTE_ARRAY), false));
        let with_levels = [&[2, 0, 0, 0, 9, 9][..], &lengths].concat();
        assert!(is_plausible(&page(&with_levels, 3, Encoding::DELTA_BYTE_ARRAY), true));
        assert!(!is_plausible(&page(&[0xFF; 9], 3, Encoding::DELTA_BINARY_PACKED), true));
        let buf = Bytes::from_static(b"0123");
        let dictionary = |num_values| Page::DictionaryPage {
            buf: buf.clone(),
            num_values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        assert!(is_plausible(&dictionary(4), false) && !is_plausible(&dictionary(5), false));
    }
}
