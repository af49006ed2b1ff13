//! What one worker keeps from span to span: decoder, canonicalizer, rows. In: a span. Out: its rows, and whose they
//! are.

use super::cut::{Content, Span, Text};
use super::distinct::DistinctKeys;
use super::error::RunError;
use super::options::RunOptions;
use super::summary::{Progress, Totals};
use crate::batch::SourceRun;
use crate::canon::{Canonicalizer, Policy, Rows};
use crate::encoding::{Charset, utf16_len};
use crate::iri::{PreprocessOptions, Spaces};
use crate::kernel::Bitmaps;
use crate::record::boundary::Boundary;
use crate::record::split::Splitter;
use crate::record::table::TableRecords;
use crate::record::{Decoder, Layout};

/// More text in one column of a part, bytes, is refused before Arrow's 32-bit offsets overflow.
const MAX_TEXT_LEN: usize = 2000 << 20;

/// A worker's scratch.
pub struct Worker {
    chunk_len: usize,
    count_distinct: bool,
    decoder: Decoder,
    /// What to part fields by, if they are to be parted.
    splitter: Option<(Splitter, PreprocessOptions)>,
    bitmaps: Bitmaps,
    canonicalizer: Canonicalizer,
    rows: Rows,
    runs: Vec<SourceRun>,
    totals: Totals,
    more_keys: usize,
}

impl Worker {
    /// A worker whose keys `distinct` counts.
    pub fn new(options: &RunOptions, policy: &Policy, distinct: DistinctKeys) -> Worker {
        let mut decoder = Decoder::default();
        decoder.set_carry(policy.carry);
        Worker {
            chunk_len: options.chunk_len,
            count_distinct: options.count_distinct,
            decoder,
            splitter: (policy.preprocess.spaces == Spaces::Split).then(|| (Splitter::default(), policy.preprocess)),
            bitmaps: Bitmaps::default(),
            canonicalizer: Canonicalizer::new(policy),
            rows: Rows::new(policy.more_keys.len()),
            runs: Vec::new(),
            totals: Totals { distinct, ..Totals::default() },
            more_keys: policy.more_keys.len(),
        }
    }

    /// Makes the rows of a span, chunk by chunk, giving up its blocks one by one; false if stopped on the way.
    pub fn decode<E>(
        &mut self,
        span: Span,
        progress: &Progress,
        is_stopped: impl Fn() -> bool,
    ) -> Result<bool, RunError<E>> {
        for piece in span.pieces {
            let records = match piece.content {
                Content::Text(text) => self.text(text, progress, &is_stopped)?,
                Content::Rows(rows) => Some(self.table(&rows, progress)?),
            };
            let Some(records) = records else { return Ok(false) };
            self.count(piece.source, records);
        }
        self.totals.tally.add(&self.rows.tally);
        if self.count_distinct {
            self.totals.distinct.extend(&self.rows.key);
        }
        Ok(true)
    }

    /// So many records of the span are of `source`.
    fn count(&mut self, source: u32, records: u32) {
        match self.runs.last_mut() {
            Some(run) if run.source == source => run.rows += records,
            _ if records > 0 => self.runs.push(SourceRun { source, first_record: 0, rows: records }),
            _ => (),
        }
    }

    /// Appends the rows of a text, chunk by chunk, and says how many records it had; nothing if stopped on the way.
    fn text<E>(
        &mut self,
        text: Text,
        progress: &Progress,
        is_stopped: impl Fn() -> bool,
    ) -> Result<Option<u32>, RunError<E>> {
        self.decoder.set_layout(&text.layout);
        let boundary = Boundary::new(text.layout.quoting(), usize::MAX);
        let (mut at, mut offset, mut records) = (0, text.offset, 0);
        while at < text.block.len() {
            if is_stopped() {
                return Ok(None);
            }
            let rest = &text.block[at..];
            // Without a limit on records there is no error, and a source's last record may have no end.
            let len = boundary.clone().find(rest, self.chunk_len).ok().flatten().unwrap_or(rest.len());
            let chunk = &rest[..len];
            records += self.chunk(chunk, offset, text.is_utf16, progress)?;
            offset += if text.is_utf16 { utf16_len(chunk) as u64 } else { len as u64 };
            at += len;
        }
        text.block.release();
        Ok(Some(records))
    }

    /// Appends the rows of one chunk, which begins at byte `offset` of its source, and says how many records it had.
    fn chunk<E>(&mut self, chunk: &[u8], offset: u64, is_utf16: bool, progress: &Progress) -> Result<u32, RunError<E>> {
        let before = self.rows.len();
        // Of UTF-16 the chunk is the text: its offsets are counted in it first.
        let mut records = self.decoder.decode(chunk, if is_utf16 { 0 } else { offset }, &mut self.bitmaps);
        if is_utf16 {
            records.charset = Some(Charset::UTF_8);
        }
        if let Some((splitter, choices)) = &mut self.splitter {
            records = splitter.split(&records, choices).0;
        }
        let count = records.urls.len();
        self.totals.headers += u64::from(records.header_count);
        self.canonicalizer.append(&records, &self.bitmaps, &mut self.rows);
        if is_utf16 {
            to_utf16_offsets(chunk, offset, &mut self.rows.offset[before..]);
        }
        // The bytes that captures were made of are counted where they were read.
        let is_text = !matches!(self.decoder.layout(), Layout::Captures(_));
        self.totals.bytes += if is_text { chunk.len() as u64 } else { 0 };
        self.appended(count, before, progress)
    }

    /// Appends rows of a table, and says how many records they are.
    fn table<E>(&mut self, rows: &TableRecords, progress: &Progress) -> Result<u32, RunError<E>> {
        let before = self.rows.len();
        let mut records = rows.records(&mut self.bitmaps);
        if let Some((splitter, choices)) = &mut self.splitter {
            records = splitter.split(&records, choices).0;
        }
        let count = records.urls.len();
        self.canonicalizer.append(&records, &self.bitmaps, &mut self.rows);
        self.appended(count, before, progress)
    }

    /// Records that became rows, from row `before` on.
    fn appended<E>(&mut self, count: usize, before: usize, progress: &Progress) -> Result<u32, RunError<E>> {
        self.totals.records += count as u64;
        progress.add(count as u64, (self.rows.len() - before) as u64);
        let text_len = self.rows.uri.values.len().max(self.rows.input.values.len());
        if text_len > MAX_TEXT_LEN {
            return Err(RunError::TooMuchText(text_len));
        }
        // A span has fewer bytes than u32 can count, and a record or a reference has at least one.
        Ok(count as u32)
    }

    /// The span's rows.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The span's rows and whose they are.
    pub fn results(&mut self) -> (&mut Rows, &[SourceRun]) {
        (&mut self.rows, &self.runs)
    }

    /// Whose they are, to be numbered.
    pub fn runs_mut(&mut self) -> &mut [SourceRun] {
        &mut self.runs
    }

    /// The span is done; its memory stays.
    pub fn clear(&mut self) {
        self.runs.clear();
        self.rows.clear();
        if self.rows.uri.offsets.is_empty() || self.rows.input.offsets.is_empty() {
            // `encode` took the memory and left vectors without their first 0.
            self.rows = Rows::new(self.more_keys);
        }
    }

    /// What it counted in all.
    pub fn into_totals(self) -> Totals {
        self.totals
    }
}

/// Makes offsets in `chunk`, ascending ones, those of the UTF-16 that it was made of, whose first byte stands at `offset`.
fn to_utf16_offsets(chunk: &[u8], offset: u64, offsets: &mut [u64]) {
    let (mut seen, mut at) = (0, offset);
    for record in offsets {
        at += utf16_len(&chunk[seen..*record as usize]) as u64;
        seen = *record as usize;
        *record = at;
    }
}
