//! Reads an archive and parses it into batches of rows: [`ArchiveReader`].
//!
//! ```text
//! mapping | stream --bytes, ends of gzip members--> ArchiveParser --> CaptureBatch --> RecordBuffer
//! ```
//!
//! A mapped archive is parsed in place: payloads are skipped without reading them.

use crate::input::mmap::MappedFile;
use crate::input::{Defect, MemberEnd, Stream};
use crate::record::RecordBuffer;
use crate::record::archive::{ArchiveParser, BatchLimits, CaptureBatch, TruncatedArchive};
use crate::record::fields::FieldSet;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of a stream that are read at a time.
const READ_LEN: usize = 256 << 10;

/// A batch of rows holds about this many bytes, so that many workers can share a row group's worth of rows.
const BATCH_LEN: usize = 256 << 10;

/// Where the bytes of an archive come from.
pub(super) enum ArchiveBytes {
    Mapped {
        mapping: Arc<MappedFile>,
        /// The first byte that was not parsed.
        at: usize,
    },
    Stream {
        stream: Stream,
        /// Bytes that were read, and the range of those that were not parsed.
        buffer: Vec<u8>,
        unparsed: std::ops::Range<usize>,
    },
}

impl ArchiveBytes {
    /// A stream of which `head` was read already.
    pub(super) fn of_stream(stream: Stream, head: &[u8]) -> ArchiveBytes {
        let mut buffer = head.to_vec();
        buffer.resize(head.len().max(READ_LEN), 0);
        ArchiveBytes::Stream { stream, buffer, unparsed: 0..head.len() }
    }

    fn unparsed(&self) -> &[u8] {
        match self {
            ArchiveBytes::Mapped { mapping, at } => &mapping[*at..],
            ArchiveBytes::Stream { buffer, unparsed, .. } => &buffer[unparsed.clone()],
        }
    }

    fn advance(&mut self, len: usize) {
        match self {
            ArchiveBytes::Mapped { at, .. } => *at += len,
            ArchiveBytes::Stream { unparsed, .. } => unparsed.start += len,
        }
    }

    /// Reads more bytes once all were parsed; 0 at the end.
    fn read(&mut self, member_ends: &mut VecDeque<MemberEnd>) -> Result<usize, Defect> {
        let ArchiveBytes::Stream { stream, buffer, unparsed } = self else { return Ok(0) };
        let count = stream.read(buffer);
        stream.take_ends(member_ends);
        *unparsed = 0..*count.as_ref().unwrap_or(&0);
        count
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
    /// Byte of the decompressed source, if the reader knows it.
    pub(super) at: Option<u64>,
}

impl From<Defect> for EndDefect {
    fn from(defect: Defect) -> EndDefect {
        EndDefect { defect, lost_len: 0, at: None }
    }
}

/// Rows of an archive.
pub(super) struct ArchiveRead {
    pub(super) rows: RecordBuffer,
    /// Size of the rows, in bytes; see [`CaptureBatch::len`].
    pub(super) len: usize,
    pub(super) end: ReadEnd,
}

/// Reads rows of an archive.
pub(super) struct ArchiveReader {
    parser: ArchiveParser,
    bytes: ArchiveBytes,
    /// Offset of the archive in the decompressed bytes of its source, which `member_ends` count.
    offset: u64,
    member_ends: VecDeque<MemberEnd>,
    defect: Option<Defect>,
    is_ended: bool,
    /// Bytes of an unfinished record at the end.
    lost_len: u64,
    /// Bytes that were counted by [`ArchiveReader::take_parsed_len`].
    counted: u64,
}

impl ArchiveReader {
    pub(super) fn new(parser: ArchiveParser, start: ArchiveStart) -> ArchiveReader {
        let ArchiveStart { bytes, offset, member_ends, defect } = start;
        ArchiveReader { parser, bytes, offset, member_ends, defect, is_ended: false, lost_len: 0, counted: 0 }
    }

    /// Reads rows until they reach the target size or about [`BATCH_LEN`] bytes.
    pub(super) fn read(&mut self, carry: FieldSet, limits: BatchLimits) -> ArchiveRead {
        let limits = BatchLimits { target_len: limits.target_len.min(BATCH_LEN), ..limits };
        let mut batch = CaptureBatch::new(carry, limits);
        while !self.is_ended {
            self.parse(&mut batch);
            if batch.is_full() {
                break;
            }
            self.read_more(&mut batch);
        }
        let end = match batch.too_long_at() {
            Some(at) => {
                let defect = Defect::RecordTooLong(limits.max_record_len);
                ReadEnd::Defect(EndDefect { defect, lost_len: 0, at: Some(self.offset + at) })
            }
            None if !self.is_ended => ReadEnd::More,
            None => match self.defect.take() {
                Some(defect) => ReadEnd::Defect(EndDefect { defect, lost_len: self.lost_len, at: None }),
                None => ReadEnd::Source,
            },
        };
        ArchiveRead { len: batch.len(), rows: batch.into_rows(), end }
    }

    /// Parses the bytes that were read, until the batch is full.
    fn parse(&mut self, batch: &mut CaptureBatch) {
        loop {
            let bytes = self.bytes.unparsed();
            let member_end = self.member_ends.front().copied();
            // Bytes up to the end of the gzip member, if it is within the bytes.
            let member_len = member_end.and_then(|end| {
                let len = end.unpacked.saturating_sub(self.offset + self.parser.taken());
                usize::try_from(len).ok().filter(|len| *len <= bytes.len())
            });
            let len = member_len.unwrap_or(bytes.len());
            let taken = self.parser.push(&bytes[..len], batch);
            self.bytes.advance(taken);
            if batch.is_full() {
                return;
            }
            match member_end.filter(|_| member_len.is_some()) {
                Some(end) => {
                    self.member_ends.pop_front();
                    self.parser.end_member(end.packed);
                }
                None => return,
            }
        }
    }

    /// Reads on, or ends the archive. What ended the stream explains why the last record is truncated.
    fn read_more(&mut self, batch: &mut CaptureBatch) {
        if self.defect.is_none() {
            match self.bytes.read(&mut self.member_ends) {
                Ok(0) => {}
                Ok(_) => return,
                Err(defect) => self.defect = Some(defect),
            }
            // The last read may have reported ends of members.
            self.parse(batch);
        }
        self.is_ended = true;
        if let Err(TruncatedArchive { lost_len }) = self.parser.finish(batch) {
            self.lost_len = lost_len;
            self.defect.get_or_insert(Defect::ArchiveTruncated);
        }
    }

    /// Bytes taken from the file.
    pub(super) fn file_position(&self) -> u64 {
        match &self.bytes {
            ArchiveBytes::Mapped { at, .. } => *at as u64,
            ArchiveBytes::Stream { stream, .. } => stream.taken(),
        }
    }

    /// Whether the file is compressed.
    pub(super) fn is_compressed(&self) -> bool {
        matches!(&self.bytes, ArchiveBytes::Stream { stream, .. } if stream.is_packed())
    }

    /// Decompressed bytes that were parsed since the last call.
    pub(super) fn take_parsed_len(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.counted, self.parser.taken());
        self.counted - before
    }

    /// Number of records skipped because their type is not selected.
    pub(super) fn skipped_count(&self) -> u64 {
        self.parser.skipped_count()
    }
}
