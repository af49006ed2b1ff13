//! What became of rows: [`DedupCounts`] while the run works, [`DedupSummary`] at the end; and why a run fails.

use super::super::Summary;
use crate::dedup::seen::{MergedRuns, RunWriter, SeenError};
use crate::dedup::{Collisions, Findings};
use crate::input::InputError;
use crate::output::{EncodedRows, OutputError};
use crate::spill::SpillError;
use arrow::array::RecordBatch;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of rows by what became of them: `kept + duplicates + seen + faulty` is the number of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DedupTotals {
    /// Rows that were kept, one per key.
    pub kept: u64,
    /// Rows that another row represents.
    pub duplicates: u64,
    /// Rows whose key earlier jobs have seen.
    pub seen: u64,
    /// Rows with a fault.
    pub faulty: u64,
    /// Rows that were written: kept rows, and rows with a fault if they are kept.
    pub written: u64,
    /// Rows without a time, if the policy compares times.
    pub undated: u64,
    /// Bytes of temporary files.
    pub spilled: u64,
}

/// The result of a dedup run.
#[derive(Debug)]
pub struct DedupSummary {
    /// Counts of the run.
    pub summary: Summary,
    /// Counts of deduplication.
    pub totals: DedupTotals,
    /// Different texts with equal keys, if texts were compared. Each text has a kept row.
    pub collisions: Collisions,
    /// The findings of the survey.
    pub(crate) findings: Option<Findings>,
    /// The keys of the kept rows, if they are collected. Add them to the store when the output is complete.
    pub(crate) new_keys: Option<RunWriter>,
    /// Runs of the store that were merged during the run, to be added with the new keys; or why the merge failed, which does
    /// not change the store.
    pub(crate) merged: Result<Option<MergedRuns>, SeenError>,
}

/// Why a dedup run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DedupError {
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Decisions, which have to be in memory, do not fit.
    #[error(
        "more than {rows} records have to wait until all records are read, and need a bit of memory each; the output was \
         not written; allow at least {more}M more with --memory"
    )]
    TooManyRows {
        /// Records read so far.
        rows: u64,
        /// MiB of memory that would suffice in addition, as far as the length of the input is known.
        more: u64,
    },
    /// A temporary file cannot be used.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// The seen store cannot be used.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// The sources changed between the two times that they were read.
    #[error(
        "the inputs changed while they were read; dedup reads them twice with --keep other than first, and if --memory is too \
         small for all keys; the output was not written; run the job again while no other program writes the inputs"
    )]
    Changed,
    /// A source was read once, but could not be read again.
    #[error(
        "{0}; dedup reads the inputs twice with --keep other than first, and if --memory is too small for all keys, and could \
         read this one only once; the output was not written; run the job again"
    )]
    NotReadAgain(Box<InputError>),
    /// The numbers of rows do not add up: a bug in irikey.
    #[error(
        "{records} records became {kept} kept rows, {duplicates} duplicates, {seen} seen rows and {faulty} rows with a \
         fault; this is a bug in irikey: do not use the output"
    )]
    Lost {
        /// Records read.
        records: u64,
        /// Rows kept.
        kept: u64,
        /// Duplicates.
        duplicates: u64,
        /// Rows whose key earlier jobs have seen.
        seen: u64,
        /// Rows with a fault.
        faulty: u64,
    },
}

/// Output of a dedup run.
#[derive(Debug)]
pub enum DedupOutput {
    /// Kept rows, encoded.
    Kept(EncodedRows),
    /// Rows of the table of duplicates.
    Duplicates(RecordBatch),
    /// Rows of the table of groups.
    Groups(RecordBatch),
}

/// Set in the ordinal of a pending row that is kept whatever is decided about others.
pub(super) const SURELY_KEPT: u64 = 1 << 63;

/// What is known about a row after its key was inserted into the key set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowState {
    Keep,
    Duplicate,
    Seen,
    Pending,
    /// The row has a fault and is written.
    KeepFaulty,
    /// The row has a fault and is dropped.
    DropFaulty,
}

impl RowState {
    /// The row may be written.
    pub(super) fn may_be_written(self) -> bool {
        matches!(self, RowState::Keep | RowState::Pending | RowState::KeepFaulty)
    }
}

/// Numbers of rows by what became of them, while the run works.
#[derive(Default)]
pub(super) struct DedupCounts {
    /// Pending rows whose key was seen by an earlier job are also counted among the duplicates.
    pub(super) totals: Mutex<DedupTotals>,
    seen_pending: AtomicU64,
    /// Rows whose keys did not fit into memory.
    pending: AtomicU64,
    /// Those of them whose entries were read again, to decide about them.
    resolved: AtomicU64,
}

impl DedupCounts {
    /// Counts the rows of a row group. Pending rows are counted when they are decided.
    pub(super) fn add(&self, states: &[RowState]) {
        // The rows of a block are counted in a byte, so that many are compared at once.
        let of_block = |block: &[RowState], state| block.iter().map(|&one| u8::from(one == state)).sum::<u8>();
        let blocks = || states.chunks(usize::from(u8::MAX));
        let count = |state| blocks().map(|block| u64::from(of_block(block, state))).sum::<u64>();
        let (kept, duplicates, seen) = (count(RowState::Keep), count(RowState::Duplicate), count(RowState::Seen));
        let faulty = count(RowState::KeepFaulty) + count(RowState::DropFaulty);
        self.pending.fetch_add(count(RowState::Pending), Ordering::Relaxed);
        let mut totals = self.totals.lock();
        totals.kept += kept;
        totals.duplicates += duplicates;
        totals.seen += seen;
        totals.faulty += faulty;
    }

    /// Counts pending rows that were resolved. The keys of `seen` of them were seen by an earlier job.
    pub(super) fn add_resolved(&self, rows: u64, seen: u64) {
        self.totals.lock().seen += seen;
        self.seen_pending.fetch_add(seen, Ordering::Relaxed);
        self.resolved.fetch_add(rows, Ordering::Relaxed);
    }

    /// Counts all pending rows, of which `kept` are kept.
    pub(super) fn add_all_decided(&self, kept: u64) {
        let mut totals = self.totals.lock();
        totals.kept += kept;
        totals.duplicates += self.pending.load(Ordering::Relaxed) - kept;
    }

    /// Counts pending rows that are decided.
    pub(super) fn add_decided(&self, ordinals: &[u64], is_kept: &[bool]) {
        let decided = ordinals.iter().zip(is_kept).filter(|(ordinal, _)| **ordinal & SURELY_KEPT == 0);
        let (all, kept) = decided.fold((0, 0), |(all, kept), (_, is_kept)| (all + 1, kept + u64::from(*is_kept)));
        let written = is_kept.iter().filter(|kept| **kept).count() as u64;
        let mut totals = self.totals.lock();
        totals.kept += kept;
        totals.duplicates += all - kept;
        totals.written += written;
    }

    /// The totals, if they add up to the records that were read.
    pub(super) fn finish(self, summary: &Summary) -> Result<DedupTotals, DedupError> {
        let mut totals = self.totals.into_inner();
        // All pending rows that are not kept were counted as duplicates, also any that were not resolved.
        let not_duplicates = self.seen_pending.into_inner() + self.pending.into_inner();
        totals.duplicates = (totals.duplicates + self.resolved.into_inner()).saturating_sub(not_duplicates);
        let DedupTotals { kept, duplicates, seen, faulty, .. } = totals;
        let records = summary.records;
        match kept + duplicates + seen + faulty == records && faulty == summary.tally.faulty {
            true => Ok(totals),
            false => Err(DedupError::Lost { records, kept, duplicates, seen, faulty }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_rows_that_were_not_resolved_are_lost() {
        for resolved in 0..4 {
            let counts = DedupCounts::default();
            counts.add(&[RowState::Keep, RowState::Pending, RowState::Duplicate, RowState::Pending]);
            counts.add_resolved(resolved, 0);
            counts.add_all_decided(1);
            let finished = counts.finish(&Summary { records: 4, ..Summary::default() });
            assert_eq!(finished.is_ok(), resolved == 2);
        }
    }
}
