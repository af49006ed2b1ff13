//! A survey of duplicates in bounded memory: how large groups of duplicates are, which step made rows duplicates, where
//! members of a group have different content, and which hosts and keys have the most records.
//!
//! ```text
//! rows of a row group --RowGroupSurvey::add--> lowest groups and records --DuplicateSurvey::add--> the lowest of the run
//!     --decide_pending: which rows were kept--> --Findings::new: shares of the samples, applied to the exact totals--> Findings
//! ```
//!
//! There are two samples. [`GroupSet`] has whole groups, those with the lowest key bits. [`RecordSet`] has single records,
//! those with the lowest hashes of their ordinals. Both depend on the input alone, not on threads or the order in which row
//! groups are added. The findings are exact if everything fits.

mod findings;
mod groups;
mod records;

pub(crate) use findings::{Coverage, Estimate, Findings, HostFindings, RuleFindings, SurveyTotals};
#[cfg(all(test, feature = "cli"))]
pub(crate) use findings::{KeyFindings, SizeClass};

pub(crate) use groups::SurveyRow;
pub(crate) use records::RowFate;

use groups::GroupSet;
use parking_lot::Mutex;
use records::{RecordSample, RecordSet};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

/// The samples of one row group.
#[derive(Debug)]
pub(crate) struct RowGroupSurvey {
    groups: GroupSet,
    records: RecordSet,
}

impl RowGroupSurvey {
    /// Returns whether a group with this key may be in the sample.
    #[inline]
    pub(crate) fn takes_group(&self, key: u128) -> bool {
        self.groups.takes(key)
    }

    /// Adds a row to the sample of groups.
    pub(crate) fn add_to_group(&mut self, row: &SurveyRow<'_>) {
        self.groups.add(row);
    }

    /// Returns whether the record with this ordinal may be in the sample.
    #[inline]
    pub(crate) fn takes_record(&self, ordinal: u64) -> bool {
        self.records.takes(ordinal)
    }

    /// Adds a record to the sample of records.
    pub(crate) fn add_record(&mut self, ordinal: u64, key: u128, uri: &[u8], fate: RowFate) {
        self.records.add(ordinal, RecordSample::new(key, uri, fate));
    }
}

/// The samples of a run.
#[derive(Debug)]
struct Samples {
    groups: GroupSet,
    records: RecordSet,
}

/// The survey of a run.
#[derive(Debug)]
pub(crate) struct DuplicateSurvey {
    /// Copies of the bounds of the samples, which workers read without the lock.
    group_bound: AtomicU64,
    record_bound: AtomicU64,
    /// URIs of groups are compared: a group may have several.
    has_uris: bool,
    samples: Mutex<Samples>,
}

impl DuplicateSurvey {
    /// An empty survey. `has_uris`: rows with the same key may have different URIs.
    pub(crate) fn new(has_uris: bool) -> DuplicateSurvey {
        DuplicateSurvey {
            group_bound: AtomicU64::new(u64::MAX),
            record_bound: AtomicU64::new(u64::MAX),
            has_uris,
            samples: Mutex::new(Samples {
                groups: GroupSet::new(u64::MAX, has_uris),
                records: RecordSet::new(u64::MAX),
            }),
        }
    }

    /// Begins the survey of a row group.
    pub(crate) fn row_group(&self) -> RowGroupSurvey {
        RowGroupSurvey {
            groups: GroupSet::new(self.group_bound.load(Ordering::Relaxed), self.has_uris),
            records: RecordSet::new(self.record_bound.load(Ordering::Relaxed)),
        }
    }

    /// Adds a row group. The order does not matter.
    pub(crate) fn add(&self, row_group: RowGroupSurvey) {
        let Samples { groups, records } = &mut *self.samples.lock();
        groups.merge(row_group.groups);
        records.merge(row_group.records);
        self.group_bound.fetch_min(groups.bound(), Ordering::Relaxed);
        self.record_bound.fetch_min(records.bound(), Ordering::Relaxed);
    }

    /// Decides about pending records: `is_kept` is called with their ordinals.
    pub(crate) fn decide_pending(&mut self, is_kept: impl Fn(u64) -> bool) {
        self.samples.get_mut().records.decide_pending(is_kept);
    }

    /// Removes sampled groups and marks sampled records whose keys earlier jobs have seen. `is_seen` is called with
    /// ascending keys.
    pub(crate) fn remove_seen<E>(&mut self, mut is_seen: impl FnMut(u128) -> Result<bool, E>) -> Result<(), E> {
        let Samples { groups, records } = self.samples.get_mut();
        let mut keys: Vec<u128> = groups.keys().chain(records.left_out_keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut seen = HashSet::new();
        for key in keys {
            if is_seen(key)? {
                seen.insert(key);
            }
        }
        groups.retain(|key| !seen.contains(&key));
        records.mark_seen(|key| seen.contains(&key));
        Ok(())
    }

    /// The findings about rows whose numbers are `totals`. `rules` names the rules that give two URIs the same key.
    pub(crate) fn finish(self, totals: &SurveyTotals, rules: impl Fn(&[u8], &[u8]) -> Vec<String>) -> Findings {
        let Samples { groups, records } = self.samples.into_inner();
        Findings::new(&groups, &records.into_samples(), totals, rules)
    }
}

#[cfg(test)]
mod tests;
