//! Reads a JSON document and parses it into batches of rows: [`JsonReader`]. A stream is read in parts, so that memory does not
//! depend on the length of the document.

use super::row_reader::{BATCH_LEN, CutCounts, EndDefect, ReadEnd, RowReader, RowsRead, StreamBytes};
use crate::input::Defect;
use crate::record::RecordBuffer;
use crate::record::archive::BatchLimits;
use crate::record::fields::FieldSet;
use crate::record::json_document::{DocumentEnd, JsonDocumentParser};

/// Reads rows of a JSON document.
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
        let (row_bytes, headers) = (self.parser.position() - from, self.parser.header_count() - header_count);
        RowsRead { rows, len, counts: CutCounts { row_bytes, headers, ..CutCounts::default() }, end }
    }

    fn file_position(&self) -> u64 {
        self.source.stream.taken()
    }

    fn is_compressed(&self) -> bool {
        self.source.stream.is_packed()
    }
}
