//! Reads an archive and parses it into batches of rows: [`ArchiveReader`].
//!
//! ```text
//! mapping | stream --bytes, ends of gzip members--> ArchiveParser --> CaptureBatch --> RecordBuffer
//! ```
//!
//! Of a mapped archive, headers and what else is decoded are copied before they are parsed, because another process may
//! change the file; payloads are skipped without reading them. Of a stream, bytes are kept as long as the parser may return
//! to them.

use super::row_reader::{BATCH_LEN, CutCounts, EndDefect, ReadEnd, RowReader, RowsRead, StreamBytes};
use crate::input::mmap::MappedFile;
use crate::input::{Defect, MemberEnd};
use crate::record::archive::{ArchiveEnd, ArchiveParser, ArchiveWindow, ArchivedDocument, BatchLimits, CaptureBatch};
use crate::record::fields::FieldSet;
use std::collections::VecDeque;
use std::sync::Arc;

/// Where the bytes of an archive come from.
pub(super) enum ArchiveBytes {
    Mapped(Arc<MappedFile>),
    Stream(Box<StreamBytes>),
}

impl ArchiveBytes {
    /// The bytes in memory, of which the first one is at byte `at` of the source.
    fn window(&self, at: u64) -> ArchiveWindow<'_> {
        match self {
            ArchiveBytes::Mapped(mapping) => ArchiveWindow { at, bytes: mapping },
            ArchiveBytes::Stream(stream) => ArchiveWindow { at, bytes: stream.bytes() },
        }
    }
}

pub(super) struct ArchiveReader {
    parser: ArchiveParser,
    bytes: ArchiveBytes,
    /// Offset of the first byte in memory in the decompressed source.
    bytes_at: u64,
    /// Ends of gzip members that the parser does not know yet.
    member_ends: VecDeque<MemberEnd>,
    /// Bytes are counted up to this byte of the source.
    counted_to: u64,
}

impl ArchiveReader {
    /// A reader of the archive that begins at byte `offset` of its source. The bytes of a stream begin there too.
    pub(super) fn new(mut parser: ArchiveParser, bytes: ArchiveBytes, offset: u64) -> ArchiveReader {
        let is_mapped = matches!(bytes, ArchiveBytes::Mapped(_));
        parser.begin(offset, is_mapped);
        let (bytes_at, member_ends) = (if is_mapped { 0 } else { offset }, VecDeque::new());
        ArchiveReader { parser, bytes, bytes_at, member_ends, counted_to: offset }
    }

    /// Adds ends of gzip members that were read with the first bytes.
    pub(super) fn with_member_ends(self, member_ends: VecDeque<MemberEnd>) -> ArchiveReader {
        ArchiveReader { member_ends, ..self }
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
        loop {
            if let ArchiveBytes::Stream(bytes) = &mut self.bytes {
                bytes.stream.take_ends(&mut self.member_ends);
            }
            self.member_ends.drain(..).for_each(|end| self.parser.push_member_end(end.unpacked, end.packed));
            self.parser.push(self.bytes.window(self.bytes_at), &mut batch);
            if batch.is_full() {
                return (batch, ReadEnd::More);
            }
            if !self.read_more()
                && let Some(end) = self.finish(&mut batch)
            {
                return (batch, end);
            }
        }
    }

    /// Reads on. Returns false if all bytes were read.
    fn read_more(&mut self) -> bool {
        let ArchiveBytes::Stream(bytes) = &mut self.bytes else { return false };
        if bytes.is_read {
            return false;
        }
        let keep_from = self.parser.keep_from();
        bytes.skip((keep_from - self.bytes_at) as usize);
        self.bytes_at = keep_from;
        bytes.read();
        true
    }

    /// Ends the archive, unless the batch is full. What ended the stream explains why the last record is truncated.
    fn finish(&mut self, batch: &mut CaptureBatch) -> Option<ReadEnd> {
        let (truncated, lost_len) = match self.parser.finish(self.bytes.window(self.bytes_at), batch) {
            ArchiveEnd::NotYet => return None,
            ArchiveEnd::Whole => (None, 0),
            ArchiveEnd::Truncated(lost_len) => (Some(Defect::ArchiveTruncated), lost_len),
        };
        let defect = match &mut self.bytes {
            ArchiveBytes::Mapped(_) => truncated,
            ArchiveBytes::Stream(bytes) => bytes.defect.take().or(truncated),
        };
        let damage = self.parser.damage();
        let damage = damage.at.map(|_| EndDefect { defect: Defect::ArchiveDamaged(damage), lost_len: 0, at: None });
        let defect = defect.map(|defect| EndDefect { defect, lost_len, at: None });
        Some(ReadEnd::Source(defect.into_iter().chain(damage).collect()))
    }

    /// Number of records skipped because their type is not selected.
    pub(super) fn skipped_count(&self) -> u64 {
        self.parser.skipped_count()
    }
}

impl RowReader for ArchiveReader {
    fn read_rows(&mut self, carry: FieldSet, limits: BatchLimits) -> RowsRead {
        let (batch, end) = self.read_batch(carry, limits);
        let counted_to = self.counted_to.max(self.parser.position());
        let mut counts = CutCounts { source_bytes: counted_to - self.counted_to, ..CutCounts::default() };
        self.counted_to = counted_to;
        if let ReadEnd::Source(_) = end {
            (counts.skipped, counts.pages) = (self.parser.skipped_count(), self.parser.page_count());
        }
        RowsRead { len: batch.len(), rows: batch.into_rows(), counts, end }
    }

    fn file_position(&self) -> u64 {
        match &self.bytes {
            ArchiveBytes::Mapped(_) => self.counted_to,
            ArchiveBytes::Stream(bytes) => bytes.stream.taken(),
        }
    }

    fn is_compressed(&self) -> bool {
        matches!(&self.bytes, ArchiveBytes::Stream(bytes) if bytes.stream.is_compressed())
    }
}
