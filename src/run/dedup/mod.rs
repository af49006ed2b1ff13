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
mod resolve;
mod row_groups;
mod survey;

pub use candidate_keys::DedupKey;
pub use keyed_files::KeyedFileError;
pub(crate) use keyed_files::{KeyedFileDefect, KeyedFiles, dedup_keyed_files};

use super::{RowGroup, RunError, RunOptions, RunRequest, Summary, canon, memory};
use crate::dedup::evidence::RecordLocator;
use crate::dedup::seen::{MergedRuns, RunWriter, SeenError, SeenStore};
use crate::dedup::{Collisions, Findings, KeepPolicy};
use crate::output::{Encoder, OutputError, Part};
use crate::spill::{RowSpool, SpillError};
use arrow::array::RecordBatch;
use job::{DedupJob, DedupStep, DedupTotals, STAGE_COUNT};
use resolve::{PendingRun, ResolvedRun, resolve};
use std::path::PathBuf;
use std::sync::Arc;
use survey::RunSurvey;

/// How duplicates are found and what becomes of them.
#[derive(Clone, Debug)]
pub struct DedupOptions {
    /// The key that rows are compared by.
    pub key: DedupKey,
    /// Which row of a key is kept. The policy has to carry the values that it compares.
    pub keep: KeepPolicy,
    /// Write rows with a fault, in input order; otherwise they are only counted. They never compete.
    pub keep_faulty: bool,
    /// Bytes of memory for keys and pending entries.
    pub memory: usize,
    /// Directory of temporary files.
    pub directory: PathBuf,
    /// Keys of earlier runs, whose rows are dropped.
    pub seen: Option<Arc<SeenStore>>,
    /// Collect the keys that are not in the store, in [`DedupSummary::new_keys`].
    pub gather_new: bool,
    /// Make the tables of duplicates and groups. All rows are pending then and take 8 bytes of memory each. The policy
    /// needs the keys of the rungs `simple` and `syntax` among its `more_keys`.
    pub has_evidence: bool,
    /// Compare canonical texts of rows with equal keys. All rows are pending then, with their texts.
    pub verify: bool,
    /// Survey duplicates for [`DedupSummary::findings`], which takes about 30 MB. The policy needs the keys of the rungs
    /// `simple` and `syntax` among its `more_keys`, and has to carry statuses and digests.
    pub survey: bool,
    /// Number of bits of keys that are compared: 128, or fewer to provoke collisions.
    pub key_bits: u32,
}

impl Default for DedupOptions {
    fn default() -> DedupOptions {
        DedupOptions {
            key: DedupKey::Rung,
            keep: KeepPolicy::First,
            keep_faulty: false,
            memory: usize::MAX,
            directory: std::env::temp_dir(),
            seen: None,
            gather_new: false,
            has_evidence: false,
            verify: false,
            survey: false,
            key_bits: u128::BITS,
        }
    }
}

/// The result of a dedup run: `kept + duplicates + seen + faulty` is the number of records.
#[derive(Debug)]
pub struct DedupSummary {
    /// Counts of the run.
    pub summary: Summary,
    /// Rows that were kept, one per key.
    pub kept: u64,
    /// Rows that another row represents.
    pub duplicates: u64,
    /// Rows whose key earlier runs have seen.
    pub seen: u64,
    /// Rows with a fault.
    pub faulty: u64,
    /// Rows that were written: kept rows, and rows with a fault if they are kept.
    pub written: u64,
    /// Rows without a time, if the policy compares times.
    pub undated: u64,
    /// Different texts with equal keys, if texts were compared. Each text has a kept row.
    pub collisions: Collisions,
    /// The findings of the survey.
    pub(crate) findings: Option<Findings>,
    /// Bytes of temporary files.
    pub spilled: u64,
    /// The keys of the kept rows, if they are collected. Add them to the store when the output is complete.
    pub(crate) new_keys: Option<RunWriter>,
    /// Runs of the store that were merged during the run, to be added with the new keys; or why the merge failed, which does
    /// not change the store.
    pub(crate) merged: Result<Option<MergedRuns>, SeenError>,
}

/// Why a dedup run failed.
#[derive(Debug, thiserror::Error)]
pub enum DedupError {
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A temporary file cannot be used.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// The store of seen keys cannot be used.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// A file of keys cannot be used.
    #[error(transparent)]
    KeyedFile(#[from] KeyedFileError),
    /// The numbers of rows do not add up: a defect of irikey.
    #[error(
        "{records} records became {kept} kept rows, {duplicates} duplicates, {seen} seen rows and {faulty} rows with a \
         fault; this is a defect of irikey: do not use the output"
    )]
    Lost {
        /// Records read.
        records: u64,
        /// Rows kept.
        kept: u64,
        /// Duplicates.
        duplicates: u64,
        /// Rows seen by earlier runs.
        seen: u64,
        /// Rows with a fault.
        faulty: u64,
    },
}

/// Output of a dedup run.
pub enum DedupOutput {
    /// Kept rows, encoded.
    Kept(Part),
    /// Rows of the table of duplicates.
    Duplicates(RecordBatch),
    /// Rows of the table of groups.
    Groups(RecordBatch),
}

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
    let survey = options.survey.then(|| RunSurvey::new(options, policy));
    let decide = |row_group: RowGroup<'_>| match &survey {
        Some(survey) if survey.add(&row_group.ticket, row_group.rows).is_none() => Ok(None),
        _ => job.add_rows(row_group),
    };
    let take = |step: DedupStep| step.append(&mut spool, &mut append);
    let summary = canon(RunRequest::new(sources, run, policy, progress).with_stages(STAGE_COUNT), decide, take)?;
    let deduped = finish(job, &spool, (names, run.threads), append, summary)?;
    let findings = survey.map(|survey| survey.finish(options.key, policy));
    Ok(DedupSummary { findings, ..deduped })
}

/// Resolves pending rows, and checks that no row was lost.
fn finish(
    job: DedupJob<'_>,
    spool: &RowSpool,
    (names, threads): (Vec<String>, usize),
    append: impl FnMut(DedupOutput) -> Result<(), OutputError> + Send,
    summary: Summary,
) -> Result<DedupSummary, RunError<DedupError>> {
    let spilled = spool.written_len() + job.spill.written_len();
    let locator = &RecordLocator::new(names, &summary.source_records);
    let pending = PendingRun { spool, locator, rows: summary.rows, threads };
    let ResolvedRun { counts, new_keys, collisions, compaction } = resolve(job, &pending, append)?;
    memory::sample();
    let DedupTotals { kept, duplicates, seen, faulty, undated, written } = counts.finish(&summary)?;
    let summary = Summary { distinct_keys: kept, is_distinct_exact: true, memory: memory::peaks(), ..summary };
    let (findings, merged) = (None, compaction.finish());
    Ok(DedupSummary {
        summary,
        kept,
        duplicates,
        seen,
        faulty,
        written,
        undated,
        collisions,
        findings,
        spilled,
        new_keys,
        merged,
    })
}
