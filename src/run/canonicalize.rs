//! The run that all jobs share: records become rows, which are encoded and appended in order. See [`canon`], and
//! [`canon_encoded`] for rows that are written in the order of the input.

use super::body::CutOptions;
use super::cut::{Cutter, RowGroupInput};
use super::distinct::DistinctKeys;
use super::error::RunError;
use super::in_order::OrderedPool;
use super::memory;
use super::options::{RunRequest, SkippedGroups};
use super::row_reader::CutCounts;
use super::summary::{Summary, chosen_advice};
use super::worker::Worker;
use crate::batch::SourceRun;
use crate::canon::{Policy, Rows};
use crate::ordered::StageTicket;
use crate::output::{EncodedRows, Encoder, FileRows, OutputError};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The rows of one row group, and their place in the run.
#[derive(Debug)]
pub struct RowGroup<'a> {
    /// The rows. Their memory may be taken.
    pub rows: &'a mut Rows,
    /// Which rows belong to which source.
    pub runs: &'a [SourceRun],
    pub(crate) ticket: Ticket<'a>,
    /// These are the last rows of their row group. False for every slice of a row group but the last. May be false for the last
    /// rows of the input, whose end is found only by reading on.
    pub(super) ends_group: bool,
}

/// The place of a row group among all row groups of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket<'a> {
    pub(super) stages: StageTicket<'a>,
    pub(super) first_row: u64,
}

impl Ticket<'_> {
    /// Number of rows in all earlier row groups.
    pub(crate) fn first_row(&self) -> u64 {
        self.first_row
    }

    /// Runs `work` in a stage after all earlier row groups have passed it, see [`StageTicket::pass`]. Returns `None` if the
    /// run was stopped instead. The number of stages is that of the request.
    pub(crate) fn pass<R>(&self, stage: usize, work: impl FnOnce() -> R) -> Option<R> {
        self.stages.pass(stage, work)
    }
}

/// Canonicalizes every record of the sources: workers give the rows of each row group to `encode`, and the results go to
/// `append`, one at a time, in the order of the input. `encode` returns `None` only if the run was stopped.
///
/// A damaged source does not stop the run: the rows before the damage are in the output, and the summary has the error.
///
/// # Errors
/// The first error of `encode` or `append`, unchanged in [`RunError::Output`]; a missing column; a panic in a worker; counts
/// that do not balance. Nothing is appended after an error.
pub fn canon<P, E>(
    request: RunRequest<'_>,
    encode: impl Fn(RowGroup<'_>) -> Result<Option<P>, E> + Sync,
    mut append: impl FnMut(P) -> Result<(), E> + Send,
) -> Result<Summary, RunError<E>>
where
    P: Send,
    E: std::error::Error + Send,
{
    let options = request.options.clamped();
    let cut = CutOptions::new(&options, &request);
    let RunRequest { sources, policy, progress, stage_count, has_slices, appends_nothing, skipped, until, .. } =
        request;
    progress.set_total(sources.total_len());
    let (mut to_skip, mut appended) = (skipped.count, 0);
    let numbers = Mutex::new(RecordNumbers::after(skipped, sources.0.len()));
    let remaining = options.record_limit.map(AtomicU64::new);
    // Record numbers have the last stage.
    let job = CanonJob { policy, remaining, until, numbers, number_stage: stage_count, has_slices };
    // While a row group is written, workers take the slices of the next one. If the job appends nothing, there is no limit.
    let more_units = if appends_nothing { usize::MAX } else { cut.slices_per_group() - 1 };
    let pool = OrderedPool::new(options.threads, stage_count + 1)?.with_larger_window(more_units);
    let (mut cutter, distinct) = (Cutter::new(sources, cut, progress), DistinctKeys::default());
    let new_worker = || Worker::new(&options, policy, distinct.for_worker(), progress);
    let next = || {
        cutter.skip(std::mem::take(&mut to_skip))?;
        let next = if job.is_ended() { None } else { cutter.next_row_group()? };
        Ok(next.map(|input| (input.weight, input)))
    };
    let work = |worker: &mut Worker<'_>, stages: &StageTicket<'_>, input: RowGroupInput| {
        job.encode_row_group(worker, stages, input, &encode)
    };
    let append = |(encoded, row_count): (P, u64)| {
        append(encoded)?;
        appended += row_count;
        Ok(())
    };
    let workers = pool.run(new_worker, next, work, append)?;
    summarize(cutter, workers, job, appended)
}

/// What the workers of a run share.
struct CanonJob<'a> {
    policy: &'a Policy,
    /// Records until the limit of the run.
    remaining: Option<AtomicU64>,
    /// See [`RunRequest`].
    until: Option<&'a AtomicBool>,
    numbers: Mutex<RecordNumbers>,
    /// The stage in which records get their numbers.
    number_stage: usize,
    has_slices: bool,
}

impl CanonJob<'_> {
    /// No more row groups are read.
    fn is_ended(&self) -> bool {
        self.is_limit_reached() || self.until.is_some_and(|is_ended| is_ended.load(Ordering::Relaxed))
    }

    fn is_limit_reached(&self) -> bool {
        self.remaining.as_ref().is_some_and(|remaining| remaining.load(Ordering::Relaxed) == 0)
    }

    /// Makes and encodes the rows of a row group, or of a slice. Returns them and the number of rows, or `None` if the run
    /// was stopped.
    fn encode_row_group<P, E>(
        &self,
        worker: &mut Worker<'_>,
        stages: &StageTicket<'_>,
        input: RowGroupInput,
        encode: &impl Fn(RowGroup<'_>) -> Result<Option<P>, E>,
    ) -> Result<Option<(P, u64)>, RunError<E>> {
        let ends_group = input.ends_group;
        if !worker.decode(input, self.remaining.as_ref(), || stages.is_stopped())? {
            return Ok(None);
        }
        let number = || self.numbers.lock().assign(&mut worker.runs);
        let Some(first_row) = stages.pass(self.number_stage, number) else { return Ok(None) };
        let (rows, runs) = (&mut worker.rows, &worker.runs);
        worker.counts.add_fault_examples(rows, runs, first_row);
        let row_count = rows.len() as u64;
        let ticket = Ticket { stages: *stages, first_row };
        let encoded = encode(RowGroup { rows, runs, ticket, ends_group }).map_err(RunError::Output)?;
        let Some(encoded) = encoded else { return Ok(None) };
        worker.clear();
        if ends_group || !self.has_slices {
            memory::sample();
        }
        Ok(Some((encoded, row_count)))
    }
}

/// Checks that no record was lost, and adds up what the cutter and the workers counted. `appended` is the number of rows
/// appended.
fn summarize<E>(
    mut cutter: Cutter<'_>,
    workers: Vec<Worker<'_>>,
    job: CanonJob<'_>,
    appended: u64,
) -> Result<Summary, RunError<E>> {
    let is_limit_reached = job.is_limit_reached();
    let numbers = job.numbers.into_inner();
    if is_limit_reached {
        cutter.forget_after_limit(&numbers.by_source);
    }
    let Cutter { counts: CutCounts { headers, source_bytes, skipped, pages }, formats, advice, .. } = cutter;
    let (numbered, source_records, mut input_errors) = (numbers.count(), numbers.by_source, cutter.errors);
    let mut source_formats: Vec<_> = formats.into_iter().map(|name| name.map(Cow::Borrowed)).collect();
    source_formats.resize(source_records.len(), None);
    let mut counts = Summary { headers, bytes: source_bytes, skipped, pages, ..Summary::default() };
    let mut distinct = DistinctKeys::default();
    for worker in workers {
        counts.add(worker.counts);
        distinct.merge(&worker.distinct);
    }
    let (records, tally) = (counts.records, &counts.tally);
    if [tally.rows, appended, numbered].iter().any(|&count| count != records) || !tally.is_balanced() {
        return Err(RunError::Unbalanced { records, rows: tally.rows, appended });
    }
    // The defect ended the source, so all of its records came before.
    input_errors.iter_mut().for_each(|error| error.records = source_records[error.source_number as usize]);
    let advice = chosen_advice(tally, job.policy, advice);
    let (distinct_keys, is_distinct_exact) = distinct.count();
    // An estimate may exceed the number of rows a little.
    let distinct_keys = distinct_keys.min(appended);
    let (rows, memory) = (appended, memory::peaks());
    let sources = Summary { source_records, source_formats, input_errors, advice, ..counts };
    Ok(Summary { rows, distinct_keys, is_distinct_exact, memory, ..sources })
}

/// Number of records that were numbered, by source and in total.
struct RecordNumbers {
    by_source: Vec<u64>,
    /// Records of all sources, and those of them that were skipped.
    all: u64,
    skipped: u64,
}

impl RecordNumbers {
    /// The numbers of `source_count` sources after the records of skipped row groups.
    fn after(skipped: SkippedGroups, source_count: usize) -> RecordNumbers {
        let mut by_source = skipped.source_records;
        by_source.resize(source_count, 0);
        let all = by_source.iter().sum();
        RecordNumbers { by_source, all, skipped: all }
    }

    /// Number of records that were not skipped.
    fn count(&self) -> u64 {
        self.by_source.iter().sum::<u64>() - self.skipped
    }

    /// Sets the number of the first record of each run, and returns the number of records before them.
    fn assign(&mut self, runs: &mut [SourceRun]) -> u64 {
        let first_row = self.all;
        for run in runs {
            let count = &mut self.by_source[run.source as usize];
            run.first_record = *count + 1;
            *count += u64::from(run.rows);
            self.all += u64::from(run.rows);
        }
        first_row
    }
}

/// The stage in which slices are put together.
const JOIN_STAGE: usize = 0;

/// [`canon`], with rows that `encoder` encodes. If files have `file_rows` rows, no encoded rows that `append` gets belong to two
/// files.
///
/// If the format allows it, workers take slices of row groups. Slices of lines follow each other in the file. Slices of a row
/// group of Parquet are joined by the worker with the last one. Where slices end depends on the input only.
pub(crate) fn canon_encoded(
    request: RunRequest<'_>,
    encoder: &Encoder,
    file_rows: Option<u64>,
    mut append: impl FnMut(EncodedRows) -> Result<(), OutputError> + Send,
) -> Result<Summary, RunError<OutputError>> {
    request.check_output(encoder)?;
    let joins_slices = encoder.joins_slices();
    let has_slices = joins_slices || !encoder.has_groups();
    let request = RunRequest { has_slices, stage_count: JOIN_STAGE + 1, ..request };
    let group = Mutex::new(Vec::new());
    let encode = |RowGroup { rows, runs, ticket, ends_group }: RowGroup<'_>| {
        let files = file_rows.map(|limit| FileRows { written: ticket.first_row(), limit });
        let ends_file = files.is_some_and(|files| files.end_after(rows.len() as u64));
        let slices = encoder.slices(rows, runs, files)?;
        if !joins_slices {
            return slices.into_iter().map(|slice| encoder.join(vec![slice])).collect::<Result<_, _>>().map(Some);
        }
        let add = || add_slices(&mut group.lock(), slices, ends_group || ends_file);
        let Some(groups) = ticket.pass(JOIN_STAGE, add) else { return Ok(None) };
        groups.into_iter().map(|group| encoder.join(group)).collect::<Result<Vec<_>, _>>().map(Some)
    };
    let summary = canon(request, encode, |groups| groups.into_iter().try_for_each(&mut append))?;
    let rest = group.into_inner();
    let appended = if rest.is_empty() { Ok(()) } else { encoder.join(rest).and_then(append) };
    appended.map(|()| summary).map_err(RunError::Output)
}

/// Adds slices to `group`, and returns the row groups that are complete. Each slice but the last ends a row group.
fn add_slices(group: &mut Vec<EncodedRows>, slices: Vec<EncodedRows>, last_ends_group: bool) -> Vec<Vec<EncodedRows>> {
    let (count, mut complete) = (slices.len(), Vec::new());
    for (number, slice) in (1..).zip(slices) {
        group.push(slice);
        if number < count || last_ends_group {
            complete.push(std::mem::take(group));
        }
    }
    complete
}
