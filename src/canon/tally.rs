//! Counts of rows, which workers make on their own and the run adds.

use crate::iri::{Changes, FaultKind, Flags, SpoofingFlags};
use crate::key::RULES;
use crate::learn::OriginCounts;

/// Counts of rows.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tally {
    /// All rows.
    pub rows: u64,
    /// Rows whose URI equals the record byte for byte.
    pub unchanged: u64,
    /// Rows whose URI differs from the record.
    pub changed: u64,
    /// Rows with a fault; `unchanged + changed + faulty == rows`.
    pub faulty: u64,
    /// Rows per fault kind, indexed by its discriminant.
    pub faults: [u64; FaultKind::ALL.len()],
    /// Rows per flag, indexed by its bit.
    pub flags: [u64; Flags::ALL.len()],
    /// Rows per spoofing flag, indexed by its bit; all 0 unless the policy asks for these flags.
    pub spoofing_flags: [u64; SpoofingFlags::ALL.len()],
    /// Rows per normalization step that changed them, indexed by its bit.
    pub changes: [u64; Changes::ALL.len()],
    /// Counts per recipe, in the order of the policy; empty until a recipe was evaluated.
    pub(crate) recipes: Vec<RecipeTally>,
    /// Rows whose protocol key is that of another member of their class.
    pub by_class: u64,
    /// Rows whose protocol key comes from a pattern of their host.
    pub by_pattern: u64,
    /// Rows whose protocol key comes from a rule about content.
    pub(crate) by_rule: u64,
    /// Redirects from and to the URLs of records, if the policy carries them.
    pub redirects: u64,
    /// Redirects that are not a valid reference, or are relative to an invalid URL.
    pub unreadable_redirects: u64,
}

impl Tally {
    /// Adds the counts of another worker.
    pub fn add(&mut self, other: &Tally) {
        self.rows += other.rows;
        self.unchanged += other.unchanged;
        self.changed += other.changed;
        self.faulty += other.faulty;
        self.by_class += other.by_class;
        self.by_pattern += other.by_pattern;
        self.by_rule += other.by_rule;
        self.redirects += other.redirects;
        self.unreadable_redirects += other.unreadable_redirects;
        add_all(&mut self.faults, &other.faults);
        add_all(&mut self.flags, &other.flags);
        add_all(&mut self.spoofing_flags, &other.spoofing_flags);
        add_all(&mut self.changes, &other.changes);
        self.recipes.resize_with(self.recipes.len().max(other.recipes.len()), RecipeTally::default);
        self.recipes.iter_mut().zip(&other.recipes).for_each(|(sum, other)| sum.add(other));
    }

    /// Rows per fault kind, with its name.
    pub fn named_faults(&self) -> impl Iterator<Item = (&'static str, u64)> {
        FaultKind::ALL.into_iter().map(FaultKind::name).zip(self.faults)
    }

    /// Rows per flag, with its name.
    pub fn named_flags(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Flags::ALL.iter().map(|(_, name, _)| *name).zip(self.flags)
    }

    /// Rows per spoofing flag, with its name.
    pub fn named_spoofing_flags(&self) -> impl Iterator<Item = (&'static str, u64)> {
        SpoofingFlags::ALL.iter().map(|(_, name, _)| *name).zip(self.spoofing_flags)
    }

    /// Rows per normalization step, with its name.
    pub fn named_changes(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Changes::ALL.iter().map(|(_, name, _)| *name).zip(self.changes)
    }

    /// Adds the counts of keys that equivalences determined.
    pub(super) fn add_representatives(&mut self, counts: OriginCounts) {
        self.by_class += counts.by_class;
        self.by_pattern += counts.by_pattern;
        self.by_rule += counts.by_rule;
    }

    /// Returns whether the counts agree with each other, so that no row was lost or counted twice.
    pub fn is_balanced(&self) -> bool {
        self.unchanged + self.changed + self.faulty == self.rows && self.faults.iter().sum::<u64>() == self.faulty
    }
}

/// Counts of the keys of one recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecipeTally {
    /// Rows with a key.
    pub(crate) keys: u64,
    /// Rows that each rule changed, indexed like [`RULES`].
    pub(crate) applied: Vec<u64>,
}

impl Default for RecipeTally {
    fn default() -> RecipeTally {
        RecipeTally { keys: 0, applied: vec![0; RULES.len()] }
    }
}

impl RecipeTally {
    /// Rows per rule, with its name.
    pub(crate) fn named_rules(&self) -> impl Iterator<Item = (&'static str, u64)> {
        RULES.iter().map(|rule| rule.name).zip(self.applied.iter().copied())
    }

    /// Adds the counts of another worker.
    pub(crate) fn add(&mut self, other: &RecipeTally) {
        self.keys += other.keys;
        add_all(&mut self.applied, &other.applied);
    }
}

/// Adds 1 to the count of each bit that is set.
pub(super) fn count_bits(mut bits: u32, counts: &mut [u64]) {
    while bits != 0 {
        counts[bits.trailing_zeros() as usize] += 1;
        bits &= bits - 1;
    }
}

fn add_all(sums: &mut [u64], counts: &[u64]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}
