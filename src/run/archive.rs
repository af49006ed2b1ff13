//! Reads an archive and parses it into batches of rows: [`ArchiveReader`].
//!
//! ```text
//! mapping | stream --bytes, ends of gzip members--> ArchiveParser --> CaptureBatch --> RecordBuffer
//! ```
//!
//! Of a mapped archive, heads and what else is decoded are copied before they are parsed, because another process may change the
//! file; payloads are skipped without reading them. Of a stream, bytes are kept as long as the parser may return to them.

use crate::input::mmap::MappedFile;
use crate::input::{Defect, MemberEnd, Stream};
use crate::record::RecordBuffer;
use crate::record::archive::{
    ArchiveDamage, ArchiveEnd, ArchiveParser, ArchiveWindow, ArchivedDocument, BatchLimits, CaptureBatch,
};
use crate::record::fields::FieldSet;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a stream that are read at a time.
const READ_LEN: usize = 256 << 10;

/// A batch of rows holds about this many bytes, so that many workers can share a row group's worth of rows.
const BATCH_LEN: usize = 256 << 10;

/// Where the bytes of an archive come from.
pub(super) enum ArchiveBytes {
    Mapped(Arc<MappedFile>),
    Stream(Box<StreamBytes>),
}

/// Bytes of a stream that were read and are still needed.
pub(super) struct StreamBytes {
    stream: Stream,
    buffer: Vec<u8>,
    /// The range of `buffer` that is needed.
    range: Range<usize>,
    /// Offset of that range in the decompressed source.
    at: u64,
}

impl ArchiveBytes {
    /// A stream of which `head`, from byte `at` of the source on, was read already.
    pub(super) fn of_stream(stream: Stream, head: &[u8], at: u64) -> ArchiveBytes {
        ArchiveBytes::Stream(Box::new(StreamBytes { stream, buffer: head.to_vec(), range: 0..head.len(), at }))
    }

    fn window(&self) -> ArchiveWindow<'_> {
        match self {
            ArchiveBytes::Mapped(mapping) => ArchiveWindow { at: 0, bytes: mapping },
            ArchiveBytes::Stream(bytes) => ArchiveWindow { at: bytes.at, bytes: &bytes.buffer[bytes.range.clone()] },
        }
    }

    /// Reads more bytes; 0 at the end. Bytes before byte `keep_from` of the source are not needed any more.
    fn read(&mut self, keep_from: u64) -> Result<usize, Defect> {
        let ArchiveBytes::Stream(bytes) = self else { return Ok(0) };
        bytes.range.start += (keep_from - bytes.at) as usize;
        bytes.at = keep_from;
        // Moving the bytes costs no more than reading them did.
        if bytes.range.start >= bytes.range.len() {
            bytes.buffer.copy_within(bytes.range.clone(), 0);
            bytes.range = 0..bytes.range.len();
        }
        let end = bytes.range.end + READ_LEN;
        if bytes.buffer.len() < end {
            bytes.buffer.resize(end, 0);
        }
        let count = bytes.stream.read(&mut bytes.buffer[bytes.range.end..end])?;
        bytes.range.end += count;
        Ok(count)
    }
}

/// What was known of an archive before it was recognized as one.
pub(super) struct ArchiveStart {
    pub(super) bytes: ArchiveBytes,
    /// Offset of the archive in the decompressed bytes of its source.
    pub(super) offset: u64,
    /// Ends of gzip members that were read already.
    pub(super) member_ends: VecDeque<MemberEnd>,
    /// What ended the stream already.
    pub(super) defect: Option<Defect>,
}

/// What follows the records that were cut or read.
pub(super) enum ReadEnd {
    /// Possibly more records.
    More,
    /// A record of text that is longer than allowed, and that is next.
    LongRecord,
    /// The end of the source.
    Source,
    /// A defect that ends the source.
    Defect(EndDefect),
}

/// A defect and what is known of its place.
pub(super) struct EndDefect {
    pub(super) defect: Defect,
    /// Bytes of an unfinished record before it.
    pub(super) lost_len: u64,
    /// Byte of the source, if it is not the one up to which the source was read.
    pub(super) at: Option<u64>,
}

impl From<Defect> for EndDefect {
    fn from(defect: Defect) -> EndDefect {
        EndDefect { defect, lost_len: 0, at: None }
    }
}

/// Rows of an archive or a JSON document.
pub(super) struct RowsRead {
    pub(super) rows: RecordBuffer,
    /// Size of the rows, in bytes; see [`CaptureBatch::len`].
    pub(super) len: usize,
    pub(super) end: ReadEnd,
}

/// Reads rows of an archive.
pub(super) struct ArchiveReader {
    parser: ArchiveParser,
    bytes: ArchiveBytes,
    member_ends: VecDeque<MemberEnd>,
    defect: Option<Defect>,
    /// All bytes were read.
    is_read: bool,
    is_ended: bool,
    /// Bytes of an unfinished record at the end.
    lost_len: u64,
    /// Bytes that were counted by [`ArchiveReader::take_parsed_len`], up to this byte of the source.
    counted_to: u64,
}

impl ArchiveReader {
    pub(super) fn new(mut parser: ArchiveParser, start: ArchiveStart) -> ArchiveReader {
        let ArchiveStart { bytes, offset, member_ends, defect } = start;
        parser.begin(offset, matches!(bytes, ArchiveBytes::Mapped(_)));
        let (is_read, is_ended) = (defect.is_some(), false);
        ArchiveReader { parser, bytes, member_ends, defect, is_read, is_ended, lost_len: 0, counted_to: offset }
    }

    /// Reads rows until they reach the target size or about [`BATCH_LEN`] bytes.
    pub(super) fn read(&mut self, carry: FieldSet, limits: BatchLimits) -> RowsRead {
        let (batch, end) = self.read_batch(carry, limits);
        RowsRead { len: batch.len(), rows: batch.into_rows(), end }
    }

    /// Reads the next document, if the parser is one of documents.
    pub(super) fn read_documents(&mut self) -> (Vec<ArchivedDocument>, ReadEnd) {
        // A batch ends with its first document, so that no more than one is in memory.
        let limits = BatchLimits { target_len: 1, max_record_len: usize::MAX };
        let (mut batch, end) = self.read_batch(FieldSet::default(), limits);
        (batch.take_documents(), end)
    }

    fn read_batch(&mut self, carry: FieldSet, limits: BatchLimits) -> (CaptureBatch, ReadEnd) {
        let limits = BatchLimits { target_len: limits.target_len.min(BATCH_LEN), ..limits };
        let mut batch = CaptureBatch::new(carry, limits);
        while !self.is_ended {
            self.push_member_ends();
            self.parser.push(self.bytes.window(), &mut batch);
            if batch.is_full() {
                break;
            }
            self.read_more(&mut batch);
        }
        let end = match self.is_ended {
            false => ReadEnd::More,
            true => match self.defect.take() {
                Some(defect) => ReadEnd::Defect(EndDefect { defect, lost_len: self.lost_len, at: None }),
                None => ReadEnd::Source,
            },
        };
        (batch, end)
    }

    fn push_member_ends(&mut self) {
        if let ArchiveBytes::Stream(bytes) = &mut self.bytes {
            bytes.stream.take_ends(&mut self.member_ends);
        }
        self.member_ends.drain(..).for_each(|end| self.parser.push_member_end(end.unpacked, end.packed));
    }

    /// Reads on, or ends the archive. What ended the stream explains why the last record is truncated.
    fn read_more(&mut self, batch: &mut CaptureBatch) {
        if !self.is_read {
            match self.bytes.read(self.parser.keep_from()) {
                Ok(0) => self.is_read = true,
                Ok(_) => {}
                Err(defect) => (self.is_read, self.defect) = (true, Some(defect)),
            }
            // The last read may have reported ends of members.
            return;
        }
        let end = self.parser.finish(self.bytes.window(), batch);
        self.is_ended = end != ArchiveEnd::NotYet;
        if let ArchiveEnd::Truncated(lost_len) = end {
            self.lost_len = lost_len;
            self.defect.get_or_insert(Defect::ArchiveTruncated);
        }
    }

    /// The damage of the archive besides its end.
    pub(super) fn damage(&self) -> ArchiveDamage {
        self.parser.damage()
    }

    /// Bytes taken from the file.
    pub(super) fn file_position(&self) -> u64 {
        match &self.bytes {
            ArchiveBytes::Mapped(_) => self.counted_to.max(self.parser.position()),
            ArchiveBytes::Stream(bytes) => bytes.stream.taken(),
        }
    }

    /// Whether the file is compressed.
    pub(super) fn is_compressed(&self) -> bool {
        matches!(&self.bytes, ArchiveBytes::Stream(bytes) if bytes.stream.is_packed())
    }

    /// Decompressed bytes that were parsed since the last call, each counted once.
    pub(super) fn take_parsed_len(&mut self) -> u64 {
        let before = self.counted_to;
        self.counted_to = before.max(self.parser.position());
        self.counted_to - before
    }

    /// Number of records skipped because their type is not selected.
    pub(super) fn skipped_count(&self) -> u64 {
        self.parser.skipped_count()
    }

    /// Number of WAT records that describe a page.
    pub(super) fn page_count(&self) -> u64 {
        self.parser.page_count()
    }
}
