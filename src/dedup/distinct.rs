//! How many keys there are of each kind: [`Kinds`]. A key may be of several kinds at once, such as the rungs on which it
//! is some row's key; in: keys with their kinds, a bit each; out: a count for each kind, exact, in bounded memory.

use super::entry::{Entry, Layout, Texts};
use super::error::SpillError;
use super::known::{Found, Known, LANES};
use super::partition::{PARTITIONS, Scattered};
use super::spill::Spill;
use std::collections::BTreeMap;
use std::path::Path;

/// How many kinds there may be.
pub const KINDS: usize = 8;

/// Keys with their kinds, shared by workers.
///
/// ```
/// use irikey::dedup::{Kinds, Scattered};
/// let kinds = Kinds::new(usize::MAX, &std::env::temp_dir());
/// kinds.add(0, &[(7, 0b01), (8, 0b11), (7, 0b10)], &mut Scattered::default())?;
/// let counts = kinds.count(usize::MAX)?;
/// assert_eq!(counts[..2], [2, 2]);
/// # Ok::<(), irikey::dedup::SpillError>(())
/// ```
#[derive(Debug)]
pub struct Kinds {
    known: Known<u8>,
    spill: Spill,
}

impl Kinds {
    /// No keys; those to come take at most about `limit` bytes of memory, and otherwise room in `directory`.
    pub fn new(limit: usize, directory: &Path) -> Kinds {
        let layout = Layout { has_rank: true, ..Layout::default() };
        Kinds { known: Known::new(limit / 8 * 7), spill: Spill::new(layout, limit / 8, directory) }
    }

    /// Adds keys. Workers that begin at different lanes do not wait for each other.
    ///
    /// # Errors
    /// A temporary file could not be written.
    pub fn add(&self, first_lane: usize, keys: &[(u128, u8)], scratch: &mut Scattered) -> Result<(), SpillError> {
        // Where others have the number of a row, there are the kinds.
        scratch.scatter(keys.iter().map(|&(key, kinds)| (key, u32::from(kinds))), 0);
        let mut unknown = Vec::new();
        for lane in 0..LANES {
            self.known.meet((first_lane + lane) % LANES, scratch, |key, kinds, found| match found {
                Found::New(known) | Found::Known(known) => *known |= kinds as u8,
                Found::Unknown => unknown.push((key, kinds)),
            });
        }
        if unknown.is_empty() {
            return Ok(());
        }
        scratch.scatter(unknown.iter().copied(), 0);
        let entry = |key, kinds| (Entry { key, rank: u128::from(kinds), ..Entry::default() }, Texts::default());
        self.spill.extend(scratch, |_| true, entry)
    }

    /// How many keys there are of each kind, found with about `limit` bytes of memory.
    ///
    /// # Errors
    /// A temporary file could not be read or written.
    pub fn count(self, limit: usize) -> Result<[u64; KINDS], SpillError> {
        let Kinds { known, spill } = self;
        let mut counts = [0; KINDS];
        for table in known.into_tables() {
            table.iter().for_each(|(_, kinds)| add(&mut counts, kinds));
        }
        (0..PARTITIONS).try_for_each(|place| count_spilled(&spill, place, limit, &mut counts))?;
        Ok(counts)
    }
}

fn count_spilled(spill: &Spill, place: usize, limit: usize, counts: &mut [u64; KINDS]) -> Result<(), SpillError> {
    // What a map takes for a key that is there once.
    const ENTRY_LEN: usize = 64;
    let len = usize::try_from(spill.count(place)).unwrap_or(usize::MAX).saturating_mul(ENTRY_LEN);
    if len > limit
        && let Some(parts) = spill.part(place, limit / 2)?
    {
        return (0..PARTITIONS).try_for_each(|place| count_spilled(&parts, place, limit, counts));
    }
    let mut keys: BTreeMap<u128, u8> = BTreeMap::new();
    spill.visit(place, |entry, _| {
        *keys.entry(entry.key).or_default() |= entry.rank as u8;
        Ok(())
    })?;
    spill.forget(place);
    keys.values().for_each(|kinds| add(counts, *kinds));
    Ok(())
}

fn add(counts: &mut [u64; KINDS], kinds: u8) {
    counts.iter_mut().enumerate().for_each(|(kind, count)| *count += u64::from(kinds >> kind & 1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn counts_agree_with_sets() {
        let directory = tempfile::tempdir().unwrap();
        let hash = |i: u64| crate::dedup::number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()));
        let keys: Vec<(u128, u8)> = (0..40_000u64).map(|i| (hash(i * i % 9_001), 1 << (i % 3) | 8)).collect();
        let mut sets = vec![HashSet::new(); KINDS];
        for (key, kinds) in &keys {
            (0..KINDS).filter(|kind| kinds >> kind & 1 == 1).for_each(|kind| {
                sets[kind].insert(*key);
            });
        }
        for limit in [usize::MAX, 300_000, 0] {
            let kinds = Kinds::new(limit, directory.path());
            for (i, some) in keys.chunks(1_500).enumerate() {
                kinds.add(i % LANES, some, &mut Scattered::default()).unwrap();
            }
            assert_eq!(kinds.spill.written() > 0, limit < usize::MAX);
            assert!(kinds.count(limit).unwrap().into_iter().eq(sets.iter().map(|set| set.len() as u64)), "{limit}");
        }
    }
}
