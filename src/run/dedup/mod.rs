//! Records in, one row of each key out: [`dedup`]. What [`super::canon`] does, with a verdict on every row before it is
//! encoded.
//!
//! ```text
//! span's rows --[competing: key, rank, texts]--[job: meet known keys]--> kept, at once
//!                                                     |                            [joining: row groups]--> output
//!                                                     +--> wait --[settle: verdicts]--> kept, evidence, new keys
//! ```

mod competing;
mod counts;
mod evidence;
mod job;
mod joining;
mod settle;
mod survey;
mod tables;
mod upkeep;
mod writing;

pub use competing::DedupKey;
pub use tables::{TableError, Tables, dedup_tables};

use super::{Progress, RowGroup, RunError, RunOptions, RunRequest, Summary, canon, memory};
use crate::canon::Policy;
use crate::dedup::evidence::Places;
use crate::dedup::seen::{Merged, RunWriter, SeenError, Store};
use crate::dedup::{Collisions, Findings, Keep};
use crate::input::Sources;
use crate::output::{Encoder, OutputError, Part};
use crate::spill::{RowSpool, SpillError};
use arrow::array::RecordBatch;
use job::{Job, STAGE_COUNT, Step};
use settle::Settled;
use std::path::PathBuf;
use std::sync::Arc;
use survey::Surveyor;

/// What is asked of a dedup.
#[derive(Clone, Debug)]
pub struct DedupOptions {
    /// What rows are compared by.
    pub key: DedupKey,
    /// Which row of a key is kept. What it looks at, the policy has to carry.
    pub keep: Keep,
    /// Rows with a fault are written, each where it stands; else they are only counted. They never compete.
    pub keep_faulty: bool,
    /// Bytes of memory that keys and waiting entries may take.
    pub memory: usize,
    /// Where temporary files go.
    pub directory: PathBuf,
    /// Keys of earlier runs, whose rows are left out.
    pub seen: Option<Arc<Store>>,
    /// Gather the keys that are not among them, in [`Deduped::new_keys`].
    pub gather_new: bool,
    /// Tell of duplicates and groups. All rows wait then, and take 8 bytes of memory each.
    pub has_evidence: bool,
    /// Compare canonical texts where keys meet. All rows wait then, their texts with them.
    pub verify: bool,
    /// Look into groups, for [`Deduped::findings`]. Takes a policy whose further keys are those of the rungs `simple` and
    /// `syntax`, others among them, and that carries statuses and digests, and some 30 MB.
    pub survey: bool,
    /// Bits of keys that count: 128, but for who wants to see keys meet that should not.
    pub key_bits: u32,
}

impl Default for DedupOptions {
    fn default() -> DedupOptions {
        DedupOptions {
            key: DedupKey::Rung,
            keep: Keep::First,
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

/// What a dedup came to: `kept + duplicates + seen + faulty` is the number of records.
#[derive(Debug)]
pub struct Deduped {
    /// What reading came to.
    pub summary: Summary,
    /// Rows kept: one a key.
    pub kept: u64,
    /// Rows that another one stands for.
    pub duplicates: u64,
    /// Rows whose key earlier runs have seen.
    pub seen: u64,
    /// Rows with a fault.
    pub faulty: u64,
    /// Rows that were written: those kept, and those with a fault where they are.
    pub written: u64,
    /// Rows that competed without a time where the policy looks at times.
    pub undated: u64,
    /// Texts that had another text's key, if texts were compared. Each has a row that is kept.
    pub collisions: Collisions,
    /// What a survey found, if there was one.
    pub findings: Option<Findings>,
    /// Bytes of temporary files.
    pub spilled: u64,
    /// The keys of the kept rows, if they were to be gathered: what to add to the store once the output is safe.
    pub new_keys: Option<RunWriter>,
    /// Runs of the store that were merged meanwhile, to be taken in with the new keys; or why they were not, which does the
    /// store no harm.
    pub merged: Result<Option<Merged>, SeenError>,
}

/// Why a dedup failed.
#[derive(Debug, thiserror::Error)]
pub enum DedupError {
    /// Of the output.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Of a temporary file.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// Of the store of seen keys.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// Of an input with keys.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Rows read, kept and left out differ. A defect of this program.
    #[error("{records} records gave {kept} rows kept, {duplicates} duplicates, {seen} seen and {faulty} with a fault")]
    Lost {
        /// Records read.
        records: u64,
        /// Rows kept.
        kept: u64,
        /// Duplicates.
        duplicates: u64,
        /// Rows seen before.
        seen: u64,
        /// Rows with a fault.
        faulty: u64,
    },
}

/// What a dedup gives away.
pub enum Given {
    /// Rows to be kept, encoded.
    Kept(Part),
    /// Rows of [`evidence::duplicates_schema`].
    Duplicates(RecordBatch),
    /// Rows of [`evidence::groups_schema`].
    Groups(RecordBatch),
}

/// Keeps one row of each key of `inputs` and gives it to `append`, encoded by `encoder`, in the order of the input; with
/// evidence, where it is wanted. Evidence takes a policy whose further keys are those of the rungs `simple` and `syntax`,
/// others among them.
///
/// # Errors
/// As [`super::canon`]; besides, temporary files that cannot be written.
pub fn dedup(
    inputs: Sources,
    options: &RunOptions,
    wanted: &DedupOptions,
    policy: &Policy,
    encoder: &Encoder,
    mut append: impl FnMut(Given) -> Result<(), OutputError> + Send,
    progress: &Progress,
) -> Result<Deduped, RunError<DedupError>> {
    let options = &RunOptions { count_distinct: false, ..options.clamped() };
    let threads = options.threads;
    let names = inputs.names();
    let job = Job::new(wanted, encoder, policy, &names).map_err(|error| RunError::Output(error.into()))?;
    let mut spool = job.spool();
    let surveyor = wanted.survey.then(|| Surveyor::new(wanted, policy));
    let decide = |RowGroup { rows, runs, ticket }: RowGroup<'_>| match &surveyor {
        Some(surveyor) if surveyor.look(&ticket, rows).is_none() => Ok(None),
        _ => job.span(&ticket, rows, runs),
    };
    let take = |step: Step| step.take(&mut spool, &mut append);
    let request = RunRequest::new(inputs, options, policy, progress).with_stages(STAGE_COUNT);
    let summary = canon(request, decide, take)?;
    let places = Places::new(names, &summary.source_records);
    let deduped = finish(job, &spool, &places, threads, append, summary)?;
    let findings = surveyor.map(|surveyor| surveyor.finish(wanted.key, policy));
    Ok(Deduped { findings, ..deduped })
}

/// Settles what waits, and checks that nothing was lost.
fn finish(
    job: Job<'_>,
    spool: &RowSpool,
    places: &Places,
    threads: usize,
    append: impl FnMut(Given) -> Result<(), OutputError> + Send,
    summary: Summary,
) -> Result<Deduped, RunError<DedupError>> {
    let spilled = spool.written_len() + job.spill.written();
    let settled = job.settle(spool, places, summary.rows, threads, append)?;
    memory::sample();
    let Settled { counts, new_keys, collisions, upkeep } = settled;
    Ok(Deduped { spilled, new_keys, collisions, merged: upkeep.finish(), ..counts.check(summary)? })
}
