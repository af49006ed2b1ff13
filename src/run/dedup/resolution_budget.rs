//! The memory of the end of a dedup run: [`ResolutionBudget`].

use super::super::{Budget, Progress};
use super::options::DedupOptions;
use super::summary::DedupError;
use crate::dedup::Decisions;

/// Bytes for decisions that are always there, also for jobs with very little memory: 8 million rows.
const MIN_DECISIONS: usize = 1 << 20;

/// The memory to decide about pending rows, besides their entries and the keys of other rows: for the decisions, and for
/// consumers with equal shares.
#[derive(Debug)]
pub(super) struct ResolutionBudget {
    bytes: usize,
    /// The share of the memory of the job.
    eighths: usize,
    /// Sorted entries, and if needed the new keys and the reasons of decisions.
    consumers: usize,
}

impl ResolutionBudget {
    /// The share of `budget`, which is that of a job with or without a key set. Entries take a half of it without a key set, an
    /// eighth with one; the key set takes the rest, and is freed before the resolution, unless new keys are collected.
    pub(super) fn new(budget: &Budget, options: &DedupOptions, has_keys: bool) -> ResolutionBudget {
        let eighths = if has_keys && options.gather_new { 1 } else { 4 };
        let consumers = 1 + usize::from(options.gather_new) + usize::from(options.has_evidence);
        ResolutionBudget { bytes: budget.eighths(eighths), eighths, consumers }
    }

    /// Bytes of each consumer, besides decisions on `rows` rows.
    pub(super) fn share(&self, rows: u64) -> usize {
        self.bytes.saturating_sub(Decisions::memory_len(rows)).max(self.bytes / 4) / self.consumers
    }

    /// Checks that decisions on the first `rows` rows fit, and leave a quarter for the consumers.
    ///
    /// # Errors
    /// [`DedupError::TooManyRows`], with the memory that all rows will need, if the length of the input is known.
    pub(super) fn check_rows(&self, rows: u64, progress: &Progress) -> Result<(), DedupError> {
        if Decisions::memory_len(rows) <= (self.bytes / 4 * 3).max(MIN_DECISIONS) {
            return Ok(());
        }
        let (read, total) = (progress.read().max(1), progress.total().unwrap_or(0));
        let all_rows = rows as f64 * (total as f64 / read as f64).max(1.0);
        let needed = Decisions::memory_len(all_rows as u64) / 3 * 4;
        let more = needed.saturating_sub(self.bytes) / self.eighths * 8;
        Err(DedupError::TooManyRows { rows, more: (more >> 20) as u64 + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With as much memory as the message names, the rows fit.
    #[test]
    fn too_many_rows_are_refused_until_there_is_enough_memory() {
        let progress = Progress::default();
        progress.set_total(Some(1_000));
        progress.add_read(500);
        let of = |memory: usize, gather_new| {
            let options = DedupOptions { gather_new, ..DedupOptions::default() };
            ResolutionBudget::new(&Budget::of(memory), &options, true)
        };
        for (gather_new, memory) in [(true, 16 << 20), (true, 64 << 20), (false, 16 << 20)] {
            assert!(of(memory, gather_new).check_rows(8 << 20, &progress).is_ok());
            let rows = 80_000_000;
            let refused = of(memory, gather_new).check_rows(rows, &progress);
            let Err(DedupError::TooManyRows { more, .. }) = refused else { panic!("{refused:?}") };
            let enough = of(memory + ((more as usize) << 20), gather_new);
            assert!(enough.check_rows(2 * rows, &progress).is_ok(), "{more}");
            let less = of(memory + ((more as usize - 2) << 20), gather_new);
            assert!(less.check_rows(2 * rows, &progress).is_err(), "{more}");
            assert!(enough.share(2 * rows) >= enough.bytes / 4 / enough.consumers);
        }
    }
}
