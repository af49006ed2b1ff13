//! The memory of the end of a dedup run: [`ResolutionBudget`].

use super::super::Budget;
use super::options::DedupOptions;

/// The memory to decide about pending rows, besides their entries and the keys of other rows, for consumers with equal shares.
#[derive(Debug)]
pub(super) struct ResolutionBudget {
    bytes: usize,
    /// Sorted entries, and if needed the new keys.
    consumers: usize,
}

impl ResolutionBudget {
    /// The share of `budget`, which is that of a job with or without a key set. Entries take a half of it without a key set, an
    /// eighth with one; the key set takes the rest, and is freed before the resolution, unless new keys are collected.
    pub(super) fn new(budget: &Budget, options: &DedupOptions, has_keys: bool) -> ResolutionBudget {
        let eighths = if has_keys && options.gather_new { 1 } else { 4 };
        ResolutionBudget { bytes: budget.eighths(eighths), consumers: 1 + usize::from(options.gather_new) }
    }

    /// Bytes of each consumer.
    pub(super) fn share(&self) -> usize {
        self.bytes / self.consumers
    }
}
