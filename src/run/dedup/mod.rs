//! The dedup job: keeps one row of each key ([`dedup`]). It does what [`super::canon`] does, and decides about every row
//! before it is encoded.
//!
//! ```text
//! rows of a row group --candidate_keys: key, rank--> job: key set --kept--> row_groups: combined --> output
//!                                                       |
//!                                                       +--pending--> spools --resolve: decisions--> output, new keys
//! ```
//!
//! The input is either records ([`dedup`]) or files of rows that have keys ([`dedup_keyed_files`]).

mod candidate_keys;
mod job;
mod keyed_files;
mod options;
mod resolve;
mod row_groups;
mod summary;
mod survey;

pub(crate) use keyed_files::{KeyedFiles, dedup_keyed_files};
pub use options::DedupOptions;
pub(crate) use summary::KeyedFileDefect;
pub use summary::{DedupError, DedupOutput, DedupSummary, DedupTotals, KeyedFileError};

use super::{RowGroup, RunError, RunOptions, RunRequest, canon};
use crate::output::{Encoder, OutputError};
use job::{DedupJob, DedupStep, STAGE_COUNT};
use resolve::{ReadRun, finish};

/// Keeps one row of each key and passes it to `append`, encoded by `encoder`, in input order; with the tables of duplicates and
/// groups if the options ask for them.
///
/// # Errors
/// As [`super::canon`]; also if temporary files or the store of seen keys cannot be used.
pub fn dedup(
    request: RunRequest<'_>,
    options: &DedupOptions,
    encoder: &Encoder,
    mut append: impl FnMut(DedupOutput) -> Result<(), OutputError> + Send,
) -> Result<DedupSummary, RunError<DedupError>> {
    let run = &RunOptions { count_distinct: false, ..request.options.clamped() };
    let RunRequest { sources, policy, progress, .. } = request;
    let names = sources.names();
    let job = DedupJob::new(options, encoder, policy, &names).map_err(|error| RunError::Output(error.into()))?;
    let mut spool = job.new_spool();
    let decide = |row_group: RowGroup<'_>| job.add_rows(row_group);
    let take = |step: DedupStep| step.append(&mut spool, &mut append);
    let summary = canon(RunRequest::new(sources, run, policy, progress).with_stages(STAGE_COUNT), decide, take)?;
    finish(job, &spool, ReadRun { names, threads: run.threads, summary }, append)
}
