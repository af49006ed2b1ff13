//! One worker of a run: it decodes and canonicalizes row groups, chunk by chunk, and keeps its memory between them.

use super::cut::{PieceRecords, RowGroupInput, TextPiece};
use super::distinct::DistinctKeys;
use super::error::ReadError;
use super::options::RunOptions;
use super::summary::{Progress, Summary};
use crate::batch::SourceRun;
use crate::canon::{Canonicalizer, Policy, Rows};
use crate::encoding::{Charset, utf16_len};
use crate::iri::{PreprocessOptions, Spaces};
use crate::kernel::Bitmaps;
use crate::record::boundary::Boundary;
use crate::record::{Decoder, RecordBuffer, Records, Splitter};
use std::sync::atomic::{AtomicU64, Ordering};

/// Decoder, canonicalizer and rows of one thread.
pub(super) struct Worker<'a> {
    policy: &'a Policy,
    progress: &'a Progress,
    chunk_len: usize,
    count_distinct: bool,
    stages: RowStages,
    /// The chunk of a mapped file that is decoded, so that a change of the file does not matter.
    mapped_copy: Vec<u8>,
    pub(super) rows: Rows,
    /// The sources of the rows, whose records are numbered later.
    pub(super) runs: Vec<SourceRun>,
    /// The counts of all row groups.
    pub(super) counts: Summary,
    pub(super) distinct: DistinctKeys,
    /// The row group has a long record.
    has_long_record: bool,
    /// Records until the limit of the run.
    remaining: u64,
}

/// What makes rows of a chunk, with the memory that it keeps between chunks.
struct RowStages {
    decoder: Decoder,
    /// Set if fields are split into several references.
    splitter: Option<(Splitter, PreprocessOptions)>,
    bitmaps: Bitmaps,
    canonicalizer: Canonicalizer,
}

impl RowStages {
    fn new(policy: &Policy) -> RowStages {
        let is_split = policy.preprocess.spaces == Spaces::Split;
        RowStages {
            decoder: Decoder::new(policy.carry),
            splitter: is_split.then(|| (Splitter::default(), policy.preprocess)),
            bitmaps: Bitmaps::default(),
            canonicalizer: Canonicalizer::new(policy),
        }
    }
}

impl<'a> Worker<'a> {
    /// A worker that counts its keys in `distinct`.
    pub(super) fn new(
        options: &RunOptions,
        policy: &'a Policy,
        distinct: DistinctKeys,
        progress: &'a Progress,
    ) -> Worker<'a> {
        Worker {
            policy,
            progress,
            chunk_len: options.chunk_len,
            count_distinct: options.count_distinct,
            stages: RowStages::new(policy),
            mapped_copy: Vec::new(),
            rows: Rows::default(),
            runs: Vec::new(),
            counts: Summary::default(),
            distinct,
            has_long_record: false,
            remaining: u64::MAX,
        }
    }

    /// Makes the rows of a row group, and releases its blocks one by one. Returns false if the run was stopped meanwhile.
    pub(super) fn decode(
        &mut self,
        input: RowGroupInput,
        remaining: Option<&AtomicU64>,
        is_stopped: impl Fn() -> bool,
    ) -> Result<bool, ReadError> {
        self.remaining = remaining.map_or(u64::MAX, |remaining| remaining.load(Ordering::Relaxed));
        self.has_long_record = input.weight > 1;
        for piece in input.pieces {
            self.counts.headers += if self.remaining > 0 { piece.header_count } else { 0 };
            let record_count = match piece.records {
                PieceRecords::Text(text) => self.decode_text(text, &is_stopped)?,
                PieceRecords::Rows(rows) => Some(self.append_rows(&rows)?),
            };
            let Some(record_count) = record_count else { return Ok(false) };
            self.extend_runs(piece.source, record_count);
        }
        if let Some(remaining) = remaining {
            remaining.store(self.remaining, Ordering::Relaxed);
        }
        self.counts.tally.add(&self.rows.tally);
        if self.count_distinct {
            self.distinct.extend(&self.rows.key);
        }
        Ok(true)
    }

    /// Notes that the next records of the row group come from `source`.
    fn extend_runs(&mut self, source: u32, record_count: u32) {
        match self.runs.last_mut() {
            Some(run) if run.source == source => run.rows += record_count,
            _ if record_count > 0 => self.runs.push(SourceRun { source, first_record: 0, rows: record_count }),
            _ => (),
        }
    }

    /// Appends the rows of a text, chunk by chunk. Returns its number of records, or `None` if the run was stopped.
    fn decode_text(&mut self, text: TextPiece, is_stopped: impl Fn() -> bool) -> Result<Option<u32>, ReadError> {
        if let Some(lines) = &text.lines {
            let start = text.offset as usize;
            lines.count_ahead(start..start + text.block.len());
        }
        self.stages.decoder.set_format(&text.format);
        let boundary = Boundary::new(text.format.quoting(), usize::MAX);
        let (mut at, mut offset, mut record_count) = (0, text.offset, 0);
        let mut copy = std::mem::take(&mut self.mapped_copy);
        while at < text.block.len() && self.remaining > 0 {
            if is_stopped() {
                return Ok(None);
            }
            let rest = &text.block[at..];
            // Without a longest record there is no error, and the last record of a source may lack its line end.
            let len = boundary.clone().find(rest, self.chunk_len).ok().flatten().unwrap_or(rest.len());
            let chunk = text.block.copied(at..at + len, &mut copy);
            record_count += self.decode_chunk(chunk, offset, text.is_utf16)?;
            offset += if text.is_utf16 { utf16_len(chunk) as u64 } else { len as u64 };
            at += len;
        }
        // The memory of a long record is not kept.
        if copy.capacity() <= 4 * self.chunk_len {
            self.mapped_copy = copy;
        }
        text.block.release();
        Ok(Some(record_count))
    }

    /// Appends the rows of one chunk, which begins at byte `offset` of its source. Returns its number of records.
    fn decode_chunk(&mut self, chunk: &[u8], offset: u64, is_utf16: bool) -> Result<u32, ReadError> {
        let first_row = self.rows.len();
        let RowStages { decoder, splitter, bitmaps, canonicalizer } = &mut self.stages;
        // Offsets of UTF-16 are counted in the chunk first, and then converted.
        let mut records = decoder.decode(chunk, if is_utf16 { 0 } else { offset }, bitmaps);
        if is_utf16 {
            records.charset = Some(Charset::UTF_8);
        }
        take_remaining(&mut records, &mut self.remaining);
        if let Some((splitter, preprocess)) = splitter {
            records = splitter.split(&records, preprocess).0;
        }
        let record_count = records.urls.len();
        self.counts.headers += records.headers.len() as u64;
        canonicalizer.append(&records, bitmaps, &mut self.rows);
        if is_utf16 {
            to_utf16_offsets(chunk, offset, &mut self.rows.offset[first_row..]);
        }
        self.counts.bytes += chunk.len() as u64;
        self.count_appended(record_count, first_row)
    }

    /// Appends rows of a table or an archive. Returns their number of records.
    fn append_rows(&mut self, rows: &RecordBuffer) -> Result<u32, ReadError> {
        let first_row = self.rows.len();
        let RowStages { splitter, bitmaps, canonicalizer, .. } = &mut self.stages;
        let mut records = rows.classified_records(bitmaps);
        take_remaining(&mut records, &mut self.remaining);
        if let Some((splitter, preprocess)) = splitter {
            records = splitter.split(&records, preprocess).0;
        }
        let record_count = records.urls.len();
        canonicalizer.append(&records, bitmaps, &mut self.rows);
        self.count_appended(record_count, first_row)
    }

    /// Counts records that became the rows from `first_row` on.
    fn count_appended(&mut self, record_count: usize, first_row: usize) -> Result<u32, ReadError> {
        self.counts.records += record_count as u64;
        self.progress.add(record_count as u64, (self.rows.len() - first_row) as u64);
        self.rows.check_text_len().map_err(ReadError::TooMuchText)?;
        // A row group has fewer than 2^32 bytes, and a record or a reference has at least one.
        Ok(record_count as u32)
    }

    /// Removes the rows. Keeps the memory, unless it is that of a long record: every worker may get such a record once.
    pub(super) fn clear(&mut self) {
        self.runs.clear();
        self.rows.clear();
        if self.has_long_record {
            self.stages = RowStages::new(self.policy);
        }
        if self.has_long_record || self.rows.uri.offsets.is_empty() || self.rows.input.offsets.is_empty() {
            // If `encode` took the vectors, offsets have to begin with 0.
            self.rows = Rows::default();
        }
    }
}

/// Drops the records and headers after the last record of the run, and counts the records.
fn take_remaining(records: &mut Records<'_>, remaining: &mut u64) {
    if records.urls.len() as u64 >= *remaining {
        records.truncate(*remaining as usize);
    }
    *remaining -= records.urls.len() as u64;
}

/// Converts ascending offsets in `chunk` to offsets in the UTF-16 from which it was decoded, whose first byte is at
/// `offset`.
fn to_utf16_offsets(chunk: &[u8], offset: u64, offsets: &mut [u64]) {
    let (mut seen, mut at) = (0, offset);
    for record in offsets {
        at += utf16_len(&chunk[seen..*record as usize]) as u64;
        seen = *record as usize;
        *record = at;
    }
}
