//! Cuts sources into row groups, or into slices of row groups: [`Cutter`].
//!
//! A row group holds the whole records that begin within one stretch of `row_group_len` bytes of the sources laid end to
//! end, and a slice those that begin within `slice_len` bytes of this stretch. Text is counted in bytes of decompressed
//! UTF-8, byte-order marks and headers included. Rows of tables and archives arrive in batches and are counted by the size of
//! the batch. A record counts as at least [`MIN_RECORD_LEN`] bytes, because the memory of rows does not depend on the bytes
//! alone: 8 MiB of empty lines are 8 million rows. Therefore row groups depend on the sources and the options alone, and not
//! on threads or timing. One worker cuts at a time, and it also reads and decompresses.
//!
//! A source ends at its first [`Defect`](crate::input::Defect). All whole records before it are in row groups.

use super::body::{CutOptions, MIN_RECORD_LEN, SourceBody};
use super::error::ReadError;
use super::line_counts::{LineCounts, count_lines};
use super::open_source::{OpenSource, SourceFile, indicates_format};
use super::options::RunOptions;
use super::row_reader::{CutCounts, EndDefect, ReadEnd, RowsRead};
use super::summary::{MAX_ADVICE, PossibleAdvice, Progress};
use crate::input::{AheadThreads, Block, Defect, InputError, OpenOptions, Source, Sources};
use crate::record::archive::BatchLimits;
use crate::record::{RecordBuffer, TextFormat};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Length of a sample. If workers take slices, which are short, or row groups may end anywhere, samples show whether a text
/// may have more lines than its bytes count for: one at its end, and one at the beginning of each step. Counting all lines
/// would cost a pass over the text. Other jobs count all lines, however they are distributed; workers count those of mapped
/// files before the text is cut, see [`LineCounts`].
const SAMPLE_LEN: usize = 1 << 10;

/// Limits of the length of a step, which is a quarter of the text.
const SAMPLE_STEPS: RangeInclusive<usize> = 4 << 10..=256 << 10;

/// Shorter units count as one, whatever the length of a slice is.
const MIN_UNIT_LEN: usize = 1 << 20;

/// Whole records that become one row group, or a slice of it.
#[derive(Debug)]
pub(super) struct RowGroupInput {
    pub(super) pieces: Vec<SourcePiece>,
    /// Number of slices or row groups of the usual length that have as many bytes: more than 1 only with a long record.
    pub(super) weight: usize,
    /// The next records are in another row group.
    pub(super) ends_group: bool,
}

/// Whole records of one source.
#[derive(Debug)]
pub(super) struct SourcePiece {
    /// Number of the source.
    pub(super) source: u32,
    /// Headers that were skipped between the previous piece and this one.
    pub(super) header_count: u64,
    pub(super) records: PieceRecords,
}

/// The records of a piece.
#[derive(Debug)]
pub(super) enum PieceRecords {
    /// Text that is to be decoded.
    Text(TextPiece),
    /// Rows of a table or an archive.
    Rows(Box<RecordBuffer>),
}

impl PieceRecords {
    /// Bytes of the text.
    fn text_len(&self) -> usize {
        match self {
            PieceRecords::Text(text) => text.block.len(),
            PieceRecords::Rows(rows) => rows.text_len(),
        }
    }
}

/// Text of whole records.
#[derive(Debug)]
pub(super) struct TextPiece {
    /// Offset of the block in the decompressed source.
    pub(super) offset: u64,
    pub(super) block: Block,
    /// The source is UTF-16, and the block is its text in UTF-8.
    pub(super) is_utf16: bool,
    pub(super) format: TextFormat,
    /// The numbers of lines of the source. The worker that gets the text counts some of those after it, for later cuts.
    pub(super) lines: Option<Arc<LineCounts>>,
}

/// Cuts the sources of a run.
pub(super) struct Cutter<'a> {
    sources: std::vec::IntoIter<Source>,
    current: Option<OpenSource>,
    options: CutOptions<'a>,
    progress: &'a Progress,
    /// Bytes cut so far, over all sources.
    at: u64,
    pub(super) counts: CutCounts,
    /// The names of the formats of the sources that were opened, in order.
    pub(super) formats: Vec<Option<&'static str>>,
    /// The sources that ended with a defect, without the number of their records.
    pub(super) errors: Vec<InputError>,
    pub(super) advice: Vec<PossibleAdvice>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(sources: Sources, options: CutOptions<'a>, progress: &'a Progress) -> Cutter<'a> {
        Cutter {
            sources: sources.0.into_iter(),
            current: None,
            options,
            progress,
            at: 0,
            counts: CutCounts::default(),
            formats: Vec::new(),
            errors: Vec::new(),
            advice: Vec::new(),
        }
    }

    /// The next row group, or the next slice of a row group; `None` at the end.
    ///
    /// # Errors
    /// The columns of a source cannot be determined.
    pub(super) fn next_row_group(&mut self) -> Result<Option<RowGroupInput>, ReadError> {
        let mut pieces = Vec::new();
        let (mut end, mut group_end) = self.ends();
        loop {
            if self.at >= end {
                if !pieces.is_empty() {
                    break;
                }
                // Only headers begin in this stretch.
                (end, group_end) = self.ends();
            }
            if self.current.is_none() {
                if !self.open_next()? {
                    break;
                }
                // Skipped bytes at the beginning of the source may reach past the stretch.
                continue;
            }
            pieces.extend(self.cut((end - self.at) as usize));
        }
        let len: usize = pieces.iter().map(|piece| piece.records.text_len()).sum();
        let weight = (len / self.options.slice_len.max(MIN_UNIT_LEN)).max(1);
        Ok((!pieces.is_empty()).then_some(RowGroupInput { pieces, weight, ends_group: self.at >= group_end }))
    }

    /// Cuts up to `count` row groups that are not needed.
    pub(super) fn skip(&mut self, count: u64) -> Result<(), ReadError> {
        (0..count).try_for_each(|_| self.next_row_group().map(drop))
    }

    /// Where the slice and the row group end in which the next record begins.
    fn ends(&self) -> (u64, u64) {
        let (stretch, slice) = (self.options.row_group_len as u64, self.options.slice_len as u64);
        let group = self.at / stretch * stretch;
        let slice_end = group + ((self.at - group) / slice + 1) * slice;
        (slice_end.min(group + stretch), group + stretch)
    }

    /// Opens the next source; false if there is none.
    fn open_next(&mut self) -> Result<bool, ReadError> {
        let Some(mut source) = self.sources.next() else { return Ok(false) };
        // With a limit, the sources after this one may not be read.
        if self.options.run.record_limit.is_none() {
            Sources::begin_ahead(self.sources.as_mut_slice().iter_mut());
        }
        let (number, name) = (self.formats.len() as u32, source.name.clone());
        self.formats.push(None);
        let responded = source.wait_for_server();
        let (file, file_name) = (SourceFile::of(&source), source.file_name(indicates_format));
        let RunOptions { mmap, threads, ahead_len, .. } = *self.options.run;
        let options =
            OpenOptions { mmap, ahead: AheadThreads { count: threads, memory: threads.saturating_mul(ahead_len) } };
        let body = match responded.and_then(|()| source.open(options)) {
            Ok(opened) => SourceBody::new(opened, &self.options),
            Err(defect) => {
                self.errors.push(InputError::new(number, name, defect));
                return Ok(true);
            }
        };
        let mut current = OpenSource::new(number, name, file, body);
        current.file_name = file_name;
        let begun = current.begin(&self.options);
        self.formats[number as usize] = current.format_name;
        self.at += current.skipped_len;
        self.counts.headers += current.header_count;
        if self.advice.len() < MAX_ADVICE {
            let advice = current.advice.take();
            self.advice.extend(advice.map(|advice| PossibleAdvice { number, name: current.name.clone(), advice }));
        }
        match begun {
            Ok(()) => self.current = Some(current),
            Err(Defect::NoColumn(error)) => return Err(ReadError::Columns { name: current.name, error }),
            // Such a defect concerns the source as a whole, however much of it was read to find it.
            Err(defect) => self.stop(&current, EndDefect { defect, lost_len: 0, at: Some(0) }),
        }
        Ok(true)
    }

    /// Cuts records of the current source, up to the end of the one that reaches `target` bytes, or fewer.
    fn cut(&mut self, target: usize) -> Option<SourcePiece> {
        let mut current = self.current.take()?;
        let (records, end) = match &mut current.body {
            SourceBody::Rows(reader) => {
                let max_record_len = self.options.run.max_record_len;
                let limits = BatchLimits { target_len: target, max_record_len };
                let RowsRead { rows, len, counts, end } = reader.read_rows(self.options.carry, limits);
                let counted_len = len.max(rows.base_len() / self.options.base_share).max(rows.len() * MIN_RECORD_LEN);
                self.at += counted_len as u64;
                self.counts += counts;
                ((!rows.is_empty()).then(|| PieceRecords::Rows(Box::new(rows))), end)
            }
            SourceBody::Mapped { .. } | SourceBody::Stream(_) | SourceBody::Empty => {
                self.cut_text(&mut current, target)
            }
        };
        current.report(self.progress);
        let source = current.number;
        match end {
            ReadEnd::More | ReadEnd::LongRecord => self.current = Some(current),
            ReadEnd::Source(defects) => defects.into_iter().for_each(|defect| self.stop(&current, defect)),
        }
        records.map(|records| {
            let header_count = std::mem::take(&mut self.counts.headers);
            SourcePiece { source, header_count, records }
        })
    }

    fn cut_text(&mut self, current: &mut OpenSource, target: usize) -> (Option<PieceRecords>, ReadEnd) {
        let quoting = current.format.quoting();
        let mut cut = current.body.cut(target, quoting, &self.options);
        let lines = match self.options.samples_lines {
            true => count_short_lines(&current.body, cut.len),
            false => current.body.count_lines(cut.len),
        };
        if lines * MIN_RECORD_LEN > target.max(cut.len) {
            // The lines before this one count as `target` bytes.
            let len = end_of_line(&current.body.text()[..cut.len], target.div_ceil(MIN_RECORD_LEN));
            current.body.return_end(cut.end);
            cut = current.body.cut(len, quoting, &self.options);
        }
        self.at += cut.len.max((lines * MIN_RECORD_LEN).min(target)) as u64;
        match cut.end {
            ReadEnd::LongRecord if cut.len == 0 => return self.take_long_record(current),
            end if cut.len == 0 => return (None, end),
            _ => {}
        }
        let text = TextPiece {
            offset: current.offset,
            block: current.body.split_off(cut.len, &self.options.pool),
            is_utf16: current.is_utf16,
            format: current.format.clone(),
            lines: current.body.line_counts(),
        };
        current.offset += current.source_len(&text.block);
        (Some(PieceRecords::Text(text)), cut.end)
    }

    fn take_long_record(&mut self, current: &mut OpenSource) -> (Option<PieceRecords>, ReadEnd) {
        let begin = current.offset;
        let rows = current.take_long_record(&self.options);
        let len = current.offset - begin;
        (self.at, self.counts.source_bytes) = (self.at + len, self.counts.source_bytes + len);
        match rows {
            Ok(rows) => (Some(PieceRecords::Rows(Box::new(rows))), ReadEnd::More),
            Err(defect) => {
                let defect = EndDefect { defect, lost_len: len, at: Some(begin) };
                (None, ReadEnd::Source(vec![defect]))
            }
        }
    }

    /// Forgets what was found after the last record of a limit: headers, errors of its source, and errors, formats and advice
    /// of the next ones. How far they were read depends on the length of a row group. `source_records` are the numbers of
    /// records by source.
    pub(super) fn forget_after_limit(&mut self, source_records: &[u64]) {
        let last = source_records.iter().rposition(|&count| count > 0).unwrap_or(0);
        self.counts.headers = 0;
        self.formats.truncate(last + 1);
        self.errors.retain(|error| (error.source_number as usize) < last);
        self.advice.retain(|advice| advice.number as usize <= last);
    }

    fn stop(&mut self, current: &OpenSource, end: EndDefect) {
        let EndDefect { defect, lost_len: lost, at } = end;
        let (offset, is_compressed) = match at {
            Some(at) => (at, false),
            None => (current.body.file_position().unwrap_or(current.offset), current.body.is_compressed()),
        };
        let error = InputError::new(current.number, current.name.clone(), defect);
        self.errors.push(InputError { offset, is_compressed, lost, ..error });
    }
}

/// The number of lines of the first `len` bytes of a text if samples of it have many; otherwise 0.
fn count_short_lines(body: &SourceBody, len: usize) -> usize {
    let step = (len / 4).clamp(*SAMPLE_STEPS.start(), *SAMPLE_STEPS.end());
    let starts = (0..len).step_by(step).chain([len.saturating_sub(SAMPLE_LEN)]);
    let mut sample = [0; SAMPLE_LEN];
    let (mut lines, mut sampled) = (0, 0);
    for at in starts {
        let sample = &mut sample[..SAMPLE_LEN.min(len - at)];
        body.copy_at(at, sample);
        lines += count_lines(sample);
        sampled += sample.len();
    }
    if lines * MIN_RECORD_LEN > sampled { body.count_lines(len) } else { 0 }
}

/// The end of line `number`, counted from 1, of a text with more lines.
fn end_of_line(text: &[u8], number: usize) -> usize {
    memchr::memchr_iter(b'\n', text).nth(number.saturating_sub(1)).map_or(text.len(), |at| at + 1)
}
