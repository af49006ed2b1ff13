//! The decisions about the rows of a job: [`Decisions`].
//!
//! One bit of memory per row states whether the row is kept. The reason takes 64 bits, but is needed for the tables of
//! duplicates only, which are written in the order of rows. Reasons are therefore stored in temporary files:
//!
//! ```text
//! Decisions::set, rows in any order --EntrySpill, by ranges of rows--> sort_reasons --file in the order of rows--> reasons
//! ```

use super::entries::{EntryLayout, EntrySpill, EntryTexts, PendingEntry};
use super::key_set::PARTITIONS;
use crate::iri::Rung;
use crate::spill::{FileRange, ScratchFile, SpillError};
use std::iter;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is decided about a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The row is kept and represents this number of rows, including itself.
    Kept(u64),
    /// Another row is kept instead.
    Duplicate {
        /// Ordinal of the kept row.
        of: u64,
        /// The lowest rung on which the two rows are equal; `None` if only the compared key is equal, which is not the key
        /// of a rung.
        rung: Option<Rung>,
    },
    /// An earlier job has seen the key.
    Seen,
}

/// The decisions on the rows of a run, shared by workers.
#[derive(Debug)]
pub(crate) struct Decisions {
    count: u64,
    /// One bit per row.
    kept: Vec<AtomicU64>,
    reasons: Option<ReasonSpool>,
}

/// The reason of a duplicate is a word of 64 bits. From this bit on, it has the number of the rung on which both rows are equal;
/// below, the ordinal of the kept row.
const RUNG_SHIFT: u32 = 60;
/// The bits of the ordinal.
const ORDINAL: u64 = (1 << RUNG_SHIFT) - 1;
/// Bytes of the word that is the reason of a decision.
const WORD_LEN: usize = size_of::<u64>();

impl Decisions {
    /// Decisions on `count` rows without their reasons; initially no row is kept.
    pub(crate) fn new(count: u64) -> Decisions {
        let kept = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Decisions { count, kept, reasons: None }
    }

    /// Bytes of memory of the decisions on `count` rows, without their reasons.
    pub(crate) fn memory_len(count: u64) -> usize {
        usize::try_from(count.div_ceil(64)).map_or(usize::MAX, |words| words.saturating_mul(WORD_LEN))
    }

    /// The same with reasons, in about `limit` bytes of memory and in temporary files in `directory`.
    pub(crate) fn with_reasons(self, limit: usize, directory: &Path) -> Decisions {
        let layout = EntryLayout { has_ordinal: true, ..EntryLayout::default() };
        let (spill, sorted) = (EntrySpill::new(layout, limit, directory), ScratchFile::new(directory));
        let range_len = self.count.div_ceil(PARTITIONS as u64).max(1);
        Decisions { reasons: Some(ReasonSpool { range_len, spill, sorted }), ..self }
    }

    pub(super) fn has_reasons(&self) -> bool {
        self.reasons.is_some()
    }

    pub(super) fn set(&self, ordinal: u64, decision: Decision) -> Result<(), SpillError> {
        if let Decision::Kept(_) = decision {
            self.kept[(ordinal / 64) as usize].fetch_or(1 << (ordinal % 64), Relaxed);
        }
        let word = match decision {
            // These need no word: without one, a row is kept alone, or seen.
            Decision::Kept(..=1) | Decision::Seen => return Ok(()),
            Decision::Kept(count) => count,
            Decision::Duplicate { of, rung } => rung.map_or(4, |rung| 1 + rung as u64) << RUNG_SHIFT | of,
        };
        self.reasons.as_ref().map_or(Ok(()), |reasons| reasons.add(ordinal, word))
    }

    /// Keeps those of 64 rows from ordinal `first` on whose bit in `rows` is set.
    pub(crate) fn keep(&self, first: u64, rows: u64) {
        let (word, shift) = ((first / 64) as usize, first % 64);
        self.kept[word].fetch_or(rows << shift, Relaxed);
        if let Some(rest) = rows.checked_shr(64 - shift as u32).filter(|rest| *rest != 0) {
            self.kept[word + 1].fetch_or(rest, Relaxed);
        }
    }

    /// Number of all kept rows.
    pub(crate) fn all_kept_count(&self) -> u64 {
        self.kept.iter().map(|word| u64::from(word.load(Relaxed).count_ones())).sum()
    }

    /// The row is kept.
    pub(crate) fn is_kept(&self, ordinal: u64) -> bool {
        self.kept[(ordinal / 64) as usize].load(Relaxed) >> (ordinal % 64) & 1 == 1
    }

    /// Number of kept rows among `count` rows from ordinal `first` on.
    pub(crate) fn kept_count(&self, first: u64, count: u64) -> u64 {
        (first..first + count).filter(|ordinal| self.is_kept(*ordinal)).count() as u64
    }

    /// Bytes written to temporary files.
    pub(crate) fn written_len(&self) -> u64 {
        self.reasons.as_ref().map_or(0, |reasons| reasons.spill.written_len() + reasons.sorted.written_len())
    }

    /// Brings the reasons into the order of rows, when all rows are decided. Takes as much memory as the decisions without their
    /// reasons.
    pub(crate) fn sort_reasons(&self) -> Result<(), SpillError> {
        self.reasons.as_ref().map_or(Ok(()), |reasons| reasons.sort(self.count))
    }

    /// The decisions on the rows with ordinals in `range`, with their reasons, after [`Decisions::sort_reasons`].
    pub(crate) fn reasons(&self, range: Range<u64>) -> Result<DecisionReasons<'_>, SpillError> {
        let mut bytes = Vec::new();
        if let Some(reasons) = &self.reasons {
            let len = (range.end - range.start) as usize * WORD_LEN;
            reasons.sorted.read(FileRange { offset: range.start * WORD_LEN as u64, len }, &mut bytes)?;
        }
        Ok(DecisionReasons { decisions: self, first: range.start, bytes })
    }
}

/// The reasons of decisions, on disk.
#[derive(Debug)]
struct ReasonSpool {
    /// Rows of a partition of `spill`.
    range_len: u64,
    /// Ordinals, with words as keys.
    spill: EntrySpill,
    /// One word per row, in the order of rows.
    sorted: ScratchFile,
}

impl ReasonSpool {
    fn add(&self, ordinal: u64, word: u64) -> Result<(), SpillError> {
        let entry = PendingEntry { key: word.into(), ordinal, ..PendingEntry::default() };
        self.spill.add((ordinal / self.range_len) as usize, iter::once((entry, EntryTexts::default())))
    }

    fn sort(&self, count: u64) -> Result<(), SpillError> {
        for partition in 0..PARTITIONS {
            let first = partition as u64 * self.range_len;
            let mut words = vec![[0; WORD_LEN]; count.saturating_sub(first).min(self.range_len) as usize];
            self.spill.visit(partition, |entry, _| {
                words[(entry.ordinal - first) as usize] = (entry.key as u64).to_le_bytes();
                Ok(())
            })?;
            self.spill.clear(partition);
            self.sorted.append(words.as_flattened())?;
        }
        Ok(())
    }
}

/// The decisions on a range of rows, with their reasons.
#[derive(Debug)]
pub(crate) struct DecisionReasons<'a> {
    decisions: &'a Decisions,
    first: u64,
    /// A word per row; empty without reasons.
    bytes: Vec<u8>,
}

impl DecisionReasons<'_> {
    /// The decision on a row of the range.
    pub(super) fn get(&self, ordinal: u64) -> Decision {
        let words = self.bytes.as_chunks().0;
        let word = words.get((ordinal - self.first) as usize).map_or(0, |word| u64::from_le_bytes(*word));
        if self.decisions.is_kept(ordinal) {
            return Decision::Kept(word.max(1));
        }
        let rung = match word >> RUNG_SHIFT {
            0 => return Decision::Seen,
            1 => Some(Rung::Simple),
            2 => Some(Rung::Syntax),
            3 => Some(Rung::Scheme),
            _ => None,
        };
        Decision::Duplicate { of: word & ORDINAL, rung }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_kept_by_bits() {
        for first in [0, 1, 63, 64, 100] {
            let decisions = Decisions::new(200);
            decisions.keep(first, 1 | 1 << 30 | 1 << 63);
            let kept: Vec<u64> = (0..200).filter(|ordinal| decisions.is_kept(*ordinal)).collect();
            assert_eq!(kept, [first, first + 30, first + 63]);
            assert_eq!(decisions.all_kept_count(), 3);
        }
        // The bits of the last rows are all in the last word.
        Decisions::new(70).keep(66, 0b1111);
    }

    /// Decisions are set in any order and read back by ranges, whatever fits into memory.
    #[test]
    fn reasons_are_read_back_by_ranges() {
        let directory = tempfile::tempdir().unwrap();
        let decision = |i: u64| match i % 7 {
            0 => Decision::Kept(1),
            1 => Decision::Kept(1 + i * i),
            2 => Decision::Seen,
            3 => Decision::Duplicate { of: i * 3 % 10_007, rung: None },
            4 => Decision::Duplicate { of: 0, rung: Some(Rung::Simple) },
            5 => Decision::Duplicate { of: ORDINAL, rung: Some(Rung::Syntax) },
            _ => Decision::Duplicate { of: i, rung: Some(Rung::Scheme) },
        };
        for (limit, count) in [(usize::MAX, 10_007), (20_000, 10_007), (0, 500), (0, 1)] {
            let decisions = Decisions::new(count).with_reasons(limit, directory.path());
            (0..count).map(|i| i * 5_003 % count).for_each(|i| decisions.set(i, decision(i)).unwrap());
            decisions.sort_reasons().unwrap();
            assert_eq!(Decisions::memory_len(count), decisions.kept.len() * WORD_LEN);
            for (first, last) in [(0, count - 1), (count / 3, count / 2), (count - 1, count - 1)] {
                let reasons = decisions.reasons(first..last + 1).unwrap();
                (first..=last).for_each(|i| assert_eq!(reasons.get(i), decision(i), "{i} of {count}"));
            }
        }
    }
}
