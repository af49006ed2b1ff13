//! Entries in, one verdict for each row out: [`Resolver`] settles a partition, [`Verdicts`] holds what was settled.

use super::entry::Entry;
use super::error::SpillError;
use super::keep::Keep;
use super::partition::PARTITIONS;
use super::spill::Spill;
use crate::iri::Rung;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept and stands for so many rows, itself included.
    Kept(u64),
    /// Another row stands for it.
    Duplicate {
        /// Ordinal of the representative.
        of: u64,
        /// The lowest rung on which the two are equal.
        rung: Rung,
    },
    /// Its key was seen by an earlier run.
    Seen,
}

/// Verdicts on the rows of a run: one bit a row, or a number where more is asked for. Shared by workers.
#[derive(Debug)]
pub struct Verdicts {
    first: u64,
    words: Vec<AtomicU64>,
    is_detailed: bool,
}

const KEPT: u64 = 1 << 63;
const RUNG_SHIFT: u32 = 61;
const NUMBER: u64 = (1 << RUNG_SHIFT) - 1;

impl Verdicts {
    /// Verdicts on `count` rows from ordinal `first` on, none of them kept until somebody says so. Only detailed ones
    /// tell why.
    pub fn new(first: u64, count: u64, is_detailed: bool) -> Verdicts {
        let words = if is_detailed { count } else { count.div_ceil(64) };
        Verdicts { first, words: (0..words).map(|_| AtomicU64::new(0)).collect(), is_detailed }
    }

    fn set(&self, ordinal: u64, verdict: Verdict) {
        let at = ordinal - self.first;
        match (verdict, self.is_detailed) {
            (Verdict::Kept(_), false) => {
                self.words[(at / 64) as usize].fetch_or(1 << (at % 64), Ordering::Relaxed);
            }
            (Verdict::Duplicate { .. } | Verdict::Seen, false) => (),
            (Verdict::Kept(count), true) => self.words[at as usize].store(KEPT | count, Ordering::Relaxed),
            (Verdict::Duplicate { of, rung }, true) => {
                let rung = 1 + rung as u64;
                self.words[at as usize].store(rung << RUNG_SHIFT | of, Ordering::Relaxed);
            }
            (Verdict::Seen, true) => (),
        }
    }

    /// The row is kept.
    pub fn is_kept(&self, ordinal: u64) -> bool {
        let at = ordinal - self.first;
        if self.is_detailed {
            return self.words[at as usize].load(Ordering::Relaxed) & KEPT != 0;
        }
        self.words[(at / 64) as usize].load(Ordering::Relaxed) >> (at % 64) & 1 == 1
    }

    /// All that is known of a row; `None` unless verdicts are detailed.
    pub fn get(&self, ordinal: u64) -> Option<Verdict> {
        let word = self.words.get((ordinal - self.first) as usize).filter(|_| self.is_detailed)?;
        let word = word.load(Ordering::Relaxed);
        if word & KEPT != 0 {
            return Some(Verdict::Kept(word & NUMBER));
        }
        let rung = match word >> RUNG_SHIFT {
            0 => return Some(Verdict::Seen),
            1 => Rung::Simple,
            2 => Rung::Syntax,
            _ => Rung::Scheme,
        };
        Some(Verdict::Duplicate { of: word & NUMBER, rung })
    }
}

/// How verdicts are found.
pub struct Resolver<'a, Settled> {
    /// Which row of a key is kept.
    pub keep: Keep,
    /// Bytes of memory to take, about.
    pub limit: usize,
    /// Where verdicts go.
    pub verdicts: &'a Verdicts,
    /// Told of each key and its representative's ordinal, keys ascending; if it says no, none of its rows is kept.
    pub settled: Settled,
    /// Counts the rows of keys that it said no to.
    pub refused: u64,
}

impl<Settled: FnMut(u128, u64) -> bool> Resolver<'_, Settled> {
    /// Settles the rows of a partition. One that would take too much memory is parted again.
    ///
    /// # Errors
    /// A temporary file could not be read or written.
    pub fn resolve(&mut self, spill: &Spill, place: usize) -> Result<(), SpillError> {
        let count = usize::try_from(spill.count(place)).unwrap_or(usize::MAX);
        if count.saturating_mul(size_of::<Entry>()) > self.limit {
            return match spill.part(place, self.limit / 2)? {
                Some(parts) => (0..PARTITIONS).try_for_each(|place| self.resolve(&parts, place)),
                None => self.fold(spill, place),
            };
        }
        let mut entries = Vec::with_capacity(count);
        spill.visit(place, |entry| {
            entries.push(entry);
            Ok(())
        })?;
        spill.forget(place);
        entries.sort_unstable();
        for group in entries.chunk_by(|a, b| a.key == b.key) {
            let Some(best) = group.iter().copied().reduce(|a, b| self.better(a, b)) else { continue };
            let is_kept = (self.settled)(best.key, best.ordinal);
            self.refused += if is_kept { 0 } else { group.len() as u64 };
            group.iter().for_each(|entry| self.tell(entry, &best, group.len() as u64, is_kept));
        }
        Ok(())
    }

    /// Settles the rows of few keys, however many they are, reading them twice.
    fn fold(&mut self, spill: &Spill, place: usize) -> Result<(), SpillError> {
        let mut keys: BTreeMap<u128, (Entry, u64, bool)> = BTreeMap::new();
        spill.visit(place, |entry| {
            let (best, count, _) = keys.entry(entry.key).or_insert((entry, 0, false));
            *best = self.better(*best, entry);
            *count += 1;
            Ok(())
        })?;
        for (key, (best, count, is_kept)) in &mut keys {
            *is_kept = (self.settled)(*key, best.ordinal);
            self.refused += if *is_kept { 0 } else { *count };
        }
        spill.visit(place, |entry| {
            if let Some((best, count, is_kept)) = keys.get(&entry.key) {
                self.tell(&entry, best, *count, *is_kept);
            }
            Ok(())
        })?;
        spill.forget(place);
        Ok(())
    }

    fn better(&self, a: Entry, b: Entry) -> Entry {
        let is_b_better = match (b.rank.cmp(&a.rank), self.keep) {
            (std::cmp::Ordering::Equal, Keep::Last) => b.ordinal > a.ordinal,
            (std::cmp::Ordering::Equal, _) => b.ordinal < a.ordinal,
            (order, _) => order.is_gt(),
        };
        if is_b_better { b } else { a }
    }

    fn tell(&self, entry: &Entry, best: &Entry, count: u64, is_kept: bool) {
        let verdict = match (is_kept, entry.ordinal == best.ordinal) {
            (false, _) => Verdict::Seen,
            (true, true) => Verdict::Kept(count),
            (true, false) => Verdict::Duplicate { of: best.ordinal, rung: lowest_rung(entry, best) },
        };
        self.verdicts.set(entry.ordinal, verdict);
    }
}

fn lowest_rung(a: &Entry, b: &Entry) -> Rung {
    match (a.simple == b.simple, a.syntax == b.syntax) {
        (true, _) => Rung::Simple,
        (_, true) => Rung::Syntax,
        _ => Rung::Scheme,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Layout, Scattered};
    use super::*;
    use std::collections::BTreeMap;

    /// Verdicts on keys, by parting or without, from memory or from a file, and by a map.
    #[test]
    fn verdicts_agree_with_a_map() {
        let directory = tempfile::tempdir().unwrap();
        let hash = |i: u64| crate::dedup::number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()));
        // Some keys are hashes, one is very frequent, and some lie close together.
        let key = |i: u64| match i % 5 {
            0 => 1 << 90,
            1 => u128::from(i % 40),
            _ => hash(i * i % 1013),
        };
        let keys: Vec<(u128, u32)> = (0..5_000).map(|i| (key(i), i as u32)).collect();
        let mut scattered = Scattered::default();
        scattered.scatter(keys.iter().copied(), 0);
        for (keep, limit, is_detailed) in [
            (Keep::First, usize::MAX, false),
            (Keep::Last, 10_000, true),
            (Keep::First, 10_000, true),
            (Keep::Last, 200_000, false),
        ] {
            let spill = Spill::new(Layout::default(), limit, directory.path());
            let entry = |key, row| Entry { key, ordinal: 100 + u64::from(row), ..Entry::default() };
            spill.extend(&scattered, |_| true, entry).unwrap();
            assert_eq!(spill.written() > 0, limit < usize::MAX);
            let verdicts = Verdicts::new(100, keys.len() as u64, is_detailed);
            let mut settled = Vec::new();
            let tell = |key, ordinal| {
                settled.push((key, ordinal));
                key != 6
            };
            let mut resolver = Resolver { keep, limit, verdicts: &verdicts, settled: tell, refused: 0 };
            (0..PARTITIONS).for_each(|place| resolver.resolve(&spill, place).unwrap());
            let mut groups: BTreeMap<u128, Vec<u64>> = BTreeMap::new();
            keys.iter().for_each(|(key, row)| groups.entry(*key).or_default().push(100 + u64::from(*row)));
            let best = |group: &[u64]| if keep == Keep::First { group[0] } else { group[group.len() - 1] };
            let refused = resolver.refused;
            assert_eq!(refused, keys.iter().filter(|(key, _)| *key == 6).count() as u64);
            assert!(settled.into_iter().eq(groups.iter().map(|(key, group)| (*key, best(group)))));
            for (&key, group) in &groups {
                for &ordinal in group {
                    assert_eq!(verdicts.is_kept(ordinal), key != 6 && ordinal == best(group));
                    let want = match ordinal == best(group) {
                        _ if key == 6 => Verdict::Seen,
                        true => Verdict::Kept(group.len() as u64),
                        false => Verdict::Duplicate { of: best(group), rung: Rung::Simple },
                    };
                    assert_eq!(verdicts.get(ordinal), is_detailed.then_some(want));
                }
            }
        }
    }
}
