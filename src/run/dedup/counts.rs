//! What becomes of rows, and how many there are of each fate: [`State`] and [`Counts`], which must balance.

use super::super::{RunError, Summary, memory};
use super::{DedupError, Deduped};
use crate::dedup::Collisions;
use std::sync::atomic::{AtomicU64, Ordering};

/// What is known of a row when its span has met the known keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Keep,
    Duplicate,
    Seen,
    Waits,
    /// It has a fault, and is written.
    KeepFaulty,
    /// It has a fault, and is not.
    DropFaulty,
}

/// Set in the ordinal of a waiting row that is kept for sure.
pub const SURE: u64 = 1 << 63;

#[derive(Default)]
pub struct Counts {
    pub kept: AtomicU64,
    pub duplicates: AtomicU64,
    pub seen: AtomicU64,
    /// Rows that waited and turned out to be seen.
    pub refused: AtomicU64,
    pub faulty: AtomicU64,
    pub undated: AtomicU64,
    pub written: AtomicU64,
}

impl State {
    /// The row may be written.
    pub fn is_wanted(self) -> bool {
        matches!(self, State::Keep | State::Waits | State::KeepFaulty)
    }
}

impl Counts {
    /// Counts a span's rows; those that wait are counted when they are settled.
    pub fn add(&self, states: &[State]) {
        let count = |state| states.iter().filter(|one| **one == state).count() as u64;
        self.kept.fetch_add(count(State::Keep), Ordering::Relaxed);
        self.duplicates.fetch_add(count(State::Duplicate), Ordering::Relaxed);
        self.seen.fetch_add(count(State::Seen), Ordering::Relaxed);
        self.faulty.fetch_add(count(State::KeepFaulty) + count(State::DropFaulty), Ordering::Relaxed);
    }

    pub fn add_settled(&self, ordinals: &[u64], kept: &[bool]) {
        let waited = ordinals.iter().zip(kept).filter(|(at, _)| **at & SURE == 0);
        let (all, new) = waited.fold((0, 0), |(all, new), (_, kept)| (all + 1, new + u64::from(*kept)));
        self.kept.fetch_add(new, Ordering::Relaxed);
        self.duplicates.fetch_add(all - new, Ordering::Relaxed);
        self.written.fetch_add(kept.iter().filter(|kept| **kept).count() as u64, Ordering::Relaxed);
    }

    pub fn check(self, summary: Summary) -> Result<Deduped, RunError<DedupError>> {
        let counts = [self.kept, self.duplicates, self.seen, self.faulty, self.refused, self.undated, self.written];
        let [kept, left_out, seen, faulty, refused, undated, written] = counts.map(AtomicU64::into_inner);
        let (records, duplicates) = (summary.records, left_out.saturating_sub(refused));
        if kept + duplicates + seen + faulty != records || faulty != summary.tally.faulty {
            return Err(RunError::Output(DedupError::Lost { records, kept, duplicates, seen, faulty }));
        }
        let summary = Summary { distinct_keys: kept, is_distinct_exact: true, memory: memory::peaks(), ..summary };
        let collisions = Collisions::default();
        Ok(Deduped {
            summary,
            kept,
            duplicates,
            seen,
            faulty,
            written,
            undated,
            collisions,
            findings: None,
            spilled: 0,
            new_keys: None,
            merged: Ok(None),
        })
    }
}

/// Ordinals of the rows that are not left out, marked where they are kept for sure.
pub fn ordinals(first_row: u64, states: &[State]) -> Vec<u64> {
    let ordinal = |(row, state): (usize, &State)| match state {
        State::Keep | State::KeepFaulty => Some((first_row + row as u64) | SURE),
        State::Waits => Some(first_row + row as u64),
        State::Duplicate | State::Seen | State::DropFaulty => None,
    };
    states.iter().enumerate().filter_map(ordinal).collect()
}
