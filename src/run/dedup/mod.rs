//! The dedup job: keeps one row of each key ([`dedup`]). It does what [`super::canon`] does, and decides about every row
//! before it is encoded.
//!
//! ```text
//! rows of a row group --candidate_keys: key, rank--> job: key set --kept--> row_groups: combined --> output
//!                                                       |
//!                                                       +--pending--> spools --resolve: decisions--> output, new keys
//! ```
//!
//! Pending rows are stored in a temporary file, or are read a second time (`second_pass`). Meanwhile `compaction` merges runs of
//! the seen store.
//!
//! The input is either records ([`dedup`]) or files of rows that have keys ([`dedup_keyed_files`]).

mod candidate_keys;
mod compaction;
mod job;
mod keyed_files;
mod new_keys;
mod options;
mod resolution_budget;
mod resolve;
mod row_groups;
mod second_pass;
mod shared_dictionaries;
mod summary;
mod survey;

pub(crate) use keyed_files::{KeyedFileDefect, KeyedFileError, KeyedFiles, dedup_keyed_files};
pub use options::DedupOptions;
pub use summary::{DedupError, DedupOutput, DedupSummary, DedupTotals};

use super::{Phase, RowGroup, RunError, RunOptions, RunRequest, Summary, canon};
use crate::dedup::Decisions;
use crate::input::InputError;
use crate::output::{Encoder, OutputError};
use job::{DedupJob, DedupStep, PendingRowGroups, STAGE_COUNT};
use resolve::{ReadRun, finish, resolve};
use second_pass::{SecondPassChoice, SecondPassGroups};
use std::sync::atomic::{AtomicBool, Ordering};

/// Keeps one row of each key and passes it to `append`, encoded by `encoder`, in input order; with the tables of duplicates and
/// groups if the options ask for them.
///
/// # Errors
/// As [`super::canon`]; also if temporary files or the seen store cannot be used.
pub fn dedup(
    request: RunRequest<'_>,
    options: &DedupOptions,
    encoder: &Encoder,
    mut append: impl FnMut(DedupOutput) -> Result<(), OutputError> + Send,
) -> Result<DedupSummary, RunError<DedupError>> {
    request.check_output(encoder)?;
    let run = &RunOptions { count_distinct: false, ..request.options.clamped() };
    let names = request.sources.names();
    let mut job = DedupJob::new(options, encoder, &request, &names).map_err(RunError::output)?;
    let RunRequest { sources, policy, progress, .. } = request;
    // With a limit, how much is read depends on the records that were read.
    let again = sources.again().filter(|_| run.record_limit.is_none());
    if again.is_some() {
        job = job.with_second_pass(SecondPassChoice::new(progress, run.threads));
    }
    let mut pending = PendingRowGroups::new(&options.directory);
    let request =
        |sources, progress| RunRequest { stage_count: STAGE_COUNT, ..RunRequest::new(sources, run, policy, progress) };
    let decide = |row_group: RowGroup<'_>| job.add_rows(row_group);
    let take = |step: DedupStep| step.append(&mut pending, &mut append);
    let summary = canon(request(sources, progress), decide, take)?;
    let read = ReadRun { names, threads: run.threads, summary };
    progress.begin(Phase::Resolve);
    let resolved = resolve(&mut job, &pending, &read)?;
    let PendingRowGroups { spool, groups } = pending;
    if let Some(sources) = again.filter(|_| !groups.is_empty()) {
        let request = request(sources, progress.begin_second_pass());
        let request = groups.request(request, &read.summary.source_records);
        let again = read_again(&job, request, (&groups, &resolved.decisions), &mut append)?;
        again.check(&read.summary, &groups).map_err(RunError::Output)?;
    }
    progress.begin(Phase::Write);
    finish(job, resolved, (&spool, read), append)
}

/// What the second pass has read.
struct SecondPass {
    summary: Summary,
    /// A row group was not that of the first pass.
    is_changed: bool,
}

/// Reads the sources a second time, and writes the pending rows that are kept. Stops after a row group
/// that has changed: if a source could not be read, the error was found before the row group was complete.
fn read_again(
    job: &DedupJob<'_>,
    request: RunRequest<'_>,
    (groups, decisions): (&SecondPassGroups, &Decisions),
    mut append: impl FnMut(DedupOutput) -> Result<(), OutputError> + Send,
) -> Result<SecondPass, RunError<DedupError>> {
    let is_changed = AtomicBool::new(false);
    let decide = |row_group: RowGroup<'_>| {
        if is_changed.load(Ordering::Relaxed) || !groups.has(&row_group.ticket, row_group.rows) {
            is_changed.store(true, Ordering::Relaxed);
            return Ok(job.pass_without_rows(&row_group.ticket));
        }
        job.add_rows_again(row_group, decisions)
    };
    let mut none = PendingRowGroups::new(&job.options.directory);
    let request = RunRequest { until: Some(&is_changed), ..request };
    let summary = canon(request, decide, |step| step.append(&mut none, &mut append))?;
    Ok(SecondPass { summary, is_changed: is_changed.into_inner() })
}

impl SecondPass {
    /// Checks that the sources had the same rows as in the first pass.
    fn check(self, first: &Summary, groups: &SecondPassGroups) -> Result<(), DedupError> {
        if !self.is_changed && self.summary.rows == groups.row_count() {
            return Ok(());
        }
        let place = |error: &InputError| (error.source_number, error.defect.to_string());
        let known: Vec<_> = first.input_errors.iter().map(place).collect();
        let error = self.summary.input_errors.into_iter().find(|error| !known.contains(&place(error)));
        Err(error.map_or(DedupError::Changed, |error| DedupError::NotReadAgain(Box::new(error))))
    }
}
