//! Reads sources that give rows instead of text: [`RowReader`], its implementations for tables and JSON documents, and what
//! they share with [`super::archive`]. Streams are read in parts, so that memory does not depend on the length of a document.

use crate::encoding::Charset;
use crate::input::{Defect, Stream, TableReader};
use crate::record::RecordBuffer;
use crate::record::archive::BatchLimits;
use crate::record::fields::FieldSet;
use crate::record::json_document::{DocumentEnd, JsonDocumentParser};
use std::ops::{AddAssign, Range};

/// Bytes of a stream that are read at a time.
const READ_LEN: usize = 256 << 10;

/// A batch of rows holds about this many bytes, so that many workers can share a row group's worth of rows.
pub(super) const BATCH_LEN: usize = 256 << 10;

/// Reads the rows of a table, an archive or a JSON document.
pub(super) trait RowReader: Send {
    /// Reads rows, about as many as `limits` or [`BATCH_LEN`] allow.
    fn read_rows(&mut self, carry: FieldSet, limits: BatchLimits) -> RowsRead;

    /// Bytes taken from the file.
    fn file_position(&self) -> u64;

    /// Whether the file is compressed, so that positions in it are not positions in its bytes.
    fn is_compressed(&self) -> bool;
}

pub(super) struct RowsRead {
    pub(super) rows: RecordBuffer,
    /// Size of the rows, in bytes.
    pub(super) len: usize,
    /// What was read besides rows.
    pub(super) counts: CutCounts,
    pub(super) end: ReadEnd,
}

/// Counts that no row group has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CutCounts {
    /// Headers that were skipped after the last piece.
    pub(super) headers: u64,
    /// Decompressed bytes of archives and JSON documents, and of text records that are too long.
    pub(super) source_bytes: u64,
    /// Records of archives whose type is not selected.
    pub(super) skipped: u64,
    /// Pages of WAT files.
    pub(super) pages: u64,
}

impl AddAssign for CutCounts {
    fn add_assign(&mut self, other: CutCounts) {
        let CutCounts { headers, source_bytes, skipped, pages } = other;
        self.headers += headers;
        self.source_bytes += source_bytes;
        self.skipped += skipped;
        self.pages += pages;
    }
}

/// What follows the records that were cut or read.
pub(super) enum ReadEnd {
    /// Possibly more records.
    More,
    /// A record of text that is longer than allowed, and that is next.
    LongRecord,
    /// The end of the source, and its defects: what ended it early, and the damage within it.
    Source(Vec<EndDefect>),
}

impl ReadEnd {
    /// The end of a source at `defect`, after `lost_len` bytes of an unfinished record.
    pub(super) fn at_defect(defect: Defect, lost_len: u64) -> ReadEnd {
        ReadEnd::Source(vec![EndDefect { defect, lost_len, at: None }])
    }
}

/// A defect and what is known of its place.
pub(super) struct EndDefect {
    pub(super) defect: Defect,
    /// Bytes of an unfinished record before it.
    pub(super) lost_len: u64,
    /// Byte of the source, if it is not the one up to which the source was read.
    pub(super) at: Option<u64>,
}

impl RowReader for TableReader {
    fn read_rows(&mut self, carry: FieldSet, _: BatchLimits) -> RowsRead {
        let (rows, end) = match self.read() {
            Ok(Some(rows)) => (rows, ReadEnd::More),
            Ok(None) => (RecordBuffer::new(carry), ReadEnd::Source(Vec::new())),
            Err(defect) => (RecordBuffer::new(carry), ReadEnd::at_defect(defect, 0)),
        };
        RowsRead { len: rows.text_len(), rows, counts: CutCounts::default(), end }
    }

    fn file_position(&self) -> u64 {
        self.taken()
    }

    fn is_compressed(&self) -> bool {
        false
    }
}

/// Bytes of a stream that were read and are still needed.
pub(super) struct StreamBytes {
    pub(super) stream: Stream,
    buffer: Vec<u8>,
    /// The range of `buffer` that is needed.
    range: Range<usize>,
    pub(super) is_read: bool,
    /// What ended the stream.
    pub(super) defect: Option<Defect>,
}

impl StreamBytes {
    /// A stream of which `head` was read already, and that ended then if there is a `defect`.
    pub(super) fn new(stream: Stream, head: &[u8], defect: Option<Defect>) -> StreamBytes {
        let (buffer, range, is_read) = (head.to_vec(), 0..head.len(), defect.is_some());
        StreamBytes { stream, buffer, range, is_read, defect }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.range.clone()]
    }

    pub(super) fn skip(&mut self, len: usize) {
        self.range.start += len;
    }

    /// Reads more bytes, unless the stream is at its end.
    pub(super) fn read(&mut self) {
        // Moving the bytes costs no more than reading them did.
        if self.range.start >= self.range.len() {
            self.buffer.copy_within(self.range.clone(), 0);
            self.range = 0..self.range.len();
        }
        let end = self.range.end + READ_LEN;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        match self.stream.read(&mut self.buffer[self.range.end..end]) {
            Ok(0) => self.is_read = true,
            Ok(count) => self.range.end += count,
            Err(defect) => (self.is_read, self.defect) = (true, Some(defect)),
        }
    }
}

pub(super) struct JsonReader {
    parser: JsonDocumentParser,
    source: StreamBytes,
}

impl JsonReader {
    pub(super) fn new(parser: JsonDocumentParser, source: StreamBytes) -> JsonReader {
        JsonReader { parser, source }
    }

    /// What ended the stream explains why the document is truncated.
    fn end(&mut self) -> ReadEnd {
        let (defect, lost_len) = match self.parser.finish() {
            DocumentEnd::Broken => {
                let at = Some(self.parser.position());
                return ReadEnd::Source(vec![EndDefect { defect: Defect::JsonBroken, lost_len: 0, at }]);
            }
            DocumentEnd::Whole => (None, 0),
            DocumentEnd::Truncated(lost_len) => (Some(Defect::JsonTruncated), lost_len),
        };
        match self.source.defect.take().or(defect) {
            Some(defect) => ReadEnd::at_defect(defect, lost_len),
            None => ReadEnd::Source(Vec::new()),
        }
    }
}

impl RowReader for JsonReader {
    fn read_rows(&mut self, carry: FieldSet, limits: BatchLimits) -> RowsRead {
        let (from, header_count) = (self.parser.position(), self.parser.header_count());
        let (mut rows, mut len, mut end) = (RecordBuffer::new(carry), 0, ReadEnd::More);
        rows.set_text(true);
        if self.parser.is_utf16() {
            rows.set_charset(Charset::UTF_8);
        }
        while len < limits.target_len.min(BATCH_LEN) {
            if self.parser.is_broken() || (self.source.bytes().is_empty() && self.source.is_read) {
                end = self.end();
                break;
            }
            if self.source.bytes().is_empty() {
                self.source.read();
                continue;
            }
            let count = rows.len();
            let parsed_len = self.parser.push(self.source.bytes(), &mut rows);
            self.source.skip(parsed_len);
            if rows.len() > count {
                // An empty record also counts.
                len += self.parser.record_len() + 1;
            }
        }
        let (source_bytes, headers) = (self.parser.position() - from, self.parser.header_count() - header_count);
        RowsRead { rows, len, counts: CutCounts { source_bytes, headers, ..CutCounts::default() }, end }
    }

    fn file_position(&self) -> u64 {
        self.source.stream.taken()
    }

    fn is_compressed(&self) -> bool {
        self.source.stream.is_compressed()
    }
}
