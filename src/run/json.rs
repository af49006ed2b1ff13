//! Reads a JSON document and parses it into batches of rows: [`JsonReader`]. A stream is read in parts, so that memory does not
//! depend on the length of the document.

use super::archive::{EndDefect, ReadEnd, RowsRead};
use crate::input::{Defect, Stream};
use crate::record::RecordBuffer;
use crate::record::archive::BatchLimits;
use crate::record::fields::FieldSet;
use crate::record::json_document::{DocumentEnd, JsonDocumentParser};
use std::ops::Range;

/// Bytes that are read at a time.
const READ_LEN: usize = 256 << 10;

/// A batch of rows holds about this many bytes of records.
const BATCH_LEN: usize = 256 << 10;

/// Reads rows of a JSON document.
pub(super) struct JsonReader {
    parser: JsonDocumentParser,
    stream: Stream,
    buffer: Vec<u8>,
    /// The part of `buffer` that was not parsed.
    range: Range<usize>,
    /// What ended the stream.
    defect: Option<Defect>,
    is_read: bool,
    /// Bytes and headers that were counted by [`JsonReader::take_counts`].
    counted: (u64, u64),
}

impl JsonReader {
    /// A reader of a document, whose first bytes are `head`.
    pub(super) fn new(parser: JsonDocumentParser, stream: Stream, head: &[u8], defect: Option<Defect>) -> JsonReader {
        let counted = (parser.position(), 0);
        let is_read = defect.is_some();
        JsonReader { parser, stream, buffer: head.to_vec(), range: 0..head.len(), defect, is_read, counted }
    }

    /// Reads rows until they reach the target size or about [`BATCH_LEN`] bytes.
    pub(super) fn read(&mut self, carry: FieldSet, limits: BatchLimits) -> RowsRead {
        let target_len = limits.target_len.min(BATCH_LEN);
        let (mut rows, mut len) = (RecordBuffer::new(carry), 0);
        while len < target_len && !self.parser.is_broken() {
            if self.range.is_empty() {
                if self.is_read {
                    break;
                }
                self.read_more();
                continue;
            }
            let count = rows.len();
            self.range.start += self.parser.push(&self.buffer[self.range.clone()], &mut rows);
            if rows.len() > count {
                // An empty record also counts.
                len += self.parser.record_len() + 1;
            }
        }
        let is_ended = self.parser.is_broken() || (self.range.is_empty() && self.is_read);
        RowsRead { rows, len, end: if is_ended { self.end() } else { ReadEnd::More } }
    }

    fn read_more(&mut self) {
        self.buffer.resize(READ_LEN, 0);
        match self.stream.read(&mut self.buffer) {
            Ok(0) => self.is_read = true,
            Ok(count) => self.range = 0..count,
            Err(defect) => (self.is_read, self.defect) = (true, Some(defect)),
        }
    }

    /// What ended the stream explains why the document is truncated.
    fn end(&mut self) -> ReadEnd {
        let (lost_len, defect) = match self.parser.finish() {
            DocumentEnd::Broken => {
                let at = Some(self.parser.position());
                return ReadEnd::Defect(EndDefect { defect: Defect::JsonBroken, lost_len: 0, at });
            }
            DocumentEnd::Whole => (0, None),
            DocumentEnd::Truncated(lost_len) => (lost_len, Some(Defect::JsonTruncated)),
        };
        match self.defect.take().or(defect) {
            Some(defect) => ReadEnd::Defect(EndDefect { defect, lost_len, at: None }),
            None => ReadEnd::Source,
        }
    }

    /// Bytes taken from the file.
    pub(super) fn file_position(&self) -> u64 {
        self.stream.taken()
    }

    /// Whether the file is compressed.
    pub(super) fn is_compressed(&self) -> bool {
        self.stream.is_packed()
    }

    /// Bytes that were parsed and headers that were met since the last call.
    pub(super) fn take_counts(&mut self) -> (u64, u64) {
        let before = self.counted;
        self.counted = (self.parser.position(), self.parser.header_count());
        (self.counted.0 - before.0, self.counted.1 - before.1)
    }
}
