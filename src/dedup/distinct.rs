//! How many keys there are of each kind: [`Kinds`]. A key may be of several kinds at once, such as the rungs on which it
//! is some row's key; in: keys with their kinds, a bit each; out: a count for each kind, exact, in bounded memory.
//!
//! Nobody waits for an answer before the end, so that a worker's keys gather, by partition, until they are many beside
//! those of the partition's table: then the table is read into the cache once for all of them.

use super::entry::{Entry, Layout, Texts};
use super::known::{Found, Known};
use super::partition::{PARTITIONS, Scattered, partition};
use super::spill::Spill;
use crate::spill::SpillError;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::Path;

/// How many kinds there may be.
pub const KINDS: usize = 8;

/// So many keys are gathered at least, memory allowing, and past that an eighth of those in the table.
const FEWEST_TOGETHER: usize = 1 << 10;

/// Keys with their kinds, shared by workers.
///
/// ```
/// use irikey::dedup::{Gathering, Kinds};
/// let kinds = Kinds::new(usize::MAX, 1, &std::env::temp_dir());
/// let mut gathering = Gathering::default();
/// [(7, 0b01), (8, 0b11), (7, 0b10)].into_iter().for_each(|(key, bits)| gathering.push(key, bits));
/// kinds.take(&mut gathering, 0)?;
/// let counts = kinds.count([gathering], usize::MAX)?;
/// assert_eq!(counts[..2], [2, 2]);
/// # Ok::<(), irikey::spill::SpillError>(())
/// ```
#[derive(Debug)]
pub struct Kinds {
    /// How many keys of a partition a worker may gather.
    most_together: usize,
    known: Known<u8>,
    spill: Spill,
}

/// A worker's keys on their way to the tables.
#[derive(Debug)]
pub struct Gathering {
    partitions: Vec<Gathered>,
    /// Keys that there was no room for.
    unknown: Vec<(u128, u32)>,
    scratch: Scattered,
    /// How often a key of the tables came to be of such kinds, by their bits.
    news: Vec<u64>,
}

/// Those of a partition.
#[derive(Clone, Debug, Default)]
struct Gathered {
    keys: Vec<u128>,
    kinds: Vec<u32>,
    /// How many the table had last.
    known: usize,
}

impl Gathered {
    /// Bytes of memory that a key takes here, there being room for twice as many at worst.
    const KEY_LEN: usize = 2 * (size_of::<u128>() + size_of::<u32>());
}

impl Default for Gathering {
    fn default() -> Gathering {
        let partitions = vec![Gathered::default(); PARTITIONS];
        Gathering { partitions, unknown: Vec::new(), scratch: Scattered::default(), news: vec![0; 1 << KINDS] }
    }
}

impl Gathering {
    /// Adds a key, with a bit for each of its kinds.
    #[inline(always)]
    pub fn push(&mut self, key: u128, kinds: u8) {
        let gathered = &mut self.partitions[partition(key, 0)];
        gathered.keys.push(key);
        gathered.kinds.push(u32::from(kinds));
    }
}

impl Kinds {
    /// No keys; those to come take at most about `limit` bytes of memory with so many workers, and otherwise room in
    /// `directory`.
    pub fn new(limit: usize, workers: usize, directory: &Path) -> Kinds {
        let layout = Layout { has_rank: true, ..Layout::default() };
        Kinds {
            most_together: limit / 8 / PARTITIONS / workers.max(1) / Gathered::KEY_LEN,
            known: Known::new(limit / 8 * 6),
            spill: Spill::new(layout, limit / 8, directory),
        }
    }

    /// Takes what a worker has gathered, where that is much. Workers that begin at different partitions do not wait for
    /// each other.
    ///
    /// # Errors
    /// A temporary file could not be written.
    pub fn take(&self, gathering: &mut Gathering, first: usize) -> Result<(), SpillError> {
        for place in (0..PARTITIONS).map(|i| (first + i) % PARTITIONS) {
            let gathered = &gathering.partitions[place];
            if gathered.keys.len() >= self.most_together.min(FEWEST_TOGETHER.max(gathered.known / 8)) {
                self.meet(place, gathering);
            }
        }
        self.leave(gathering)
    }

    /// Takes what is gathered of a partition to its table.
    fn meet(&self, place: usize, gathering: &mut Gathering) {
        let Gathered { keys, kinds, known } = &mut gathering.partitions[place];
        *known = self.known.meet_keys(place, keys, kinds, |key, kinds, found| match found {
            Found::New(known) | Found::Known(known) => {
                gathering.news[usize::from(kinds as u8 & !*known)] += 1;
                *known |= kinds as u8;
            }
            Found::Unknown => gathering.unknown.push((key, kinds)),
        });
        keys.clear();
        kinds.clear();
    }

    /// Leaves keys that there was no room for to be counted at the end.
    fn leave(&self, gathering: &mut Gathering) -> Result<(), SpillError> {
        let Gathering { unknown, scratch, .. } = gathering;
        if unknown.is_empty() {
            return Ok(());
        }
        // Where others have the number of a row, there are the kinds.
        scratch.scatter(unknown.iter().copied(), 0);
        unknown.clear();
        let entry = |key, kinds| (Entry { key, rank: u128::from(kinds), ..Entry::default() }, Texts::default());
        self.spill.extend(scratch, |_| true, entry)
    }

    /// Takes all that a worker has gathered.
    fn take_all(&self, gathering: &mut Gathering) -> Result<(), SpillError> {
        (0..PARTITIONS).try_for_each(|place| {
            self.meet(place, gathering);
            self.leave(gathering)
        })
    }

    /// How many keys there are of each kind, those included that workers have still gathered, found with about `limit`
    /// bytes of memory and a thread for each of these workers.
    ///
    /// # Errors
    /// A temporary file could not be read or written.
    pub fn count(
        self,
        gathered: impl IntoIterator<Item = Gathering>,
        limit: usize,
    ) -> Result<[u64; KINDS], SpillError> {
        let mut gathered: Vec<Gathering> = gathered.into_iter().collect();
        std::thread::scope(|scope| {
            let take = |gathering| scope.spawn(|| self.take_all(gathering));
            let threads: Vec<_> = gathered.iter_mut().map(take).collect();
            threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })?;
        let Kinds { known, spill, .. } = self;
        // Its memory is for what follows.
        drop(known);
        let mut counts = [0; KINDS];
        let news = gathered.iter().flat_map(|gathering| gathering.news.iter().enumerate());
        news.for_each(|(kinds, count)| add(&mut counts, kinds as u8, *count));
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
    keys.values().for_each(|kinds| add(counts, *kinds, 1));
    Ok(())
}

fn add(counts: &mut [u64; KINDS], kinds: u8, keys: u64) {
    counts.iter_mut().enumerate().for_each(|(kind, count)| *count += u64::from(kinds >> kind & 1) * keys);
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
            let (kinds, mut gatherings) =
                (Kinds::new(limit, 2, directory.path()), [Gathering::default(), Gathering::default()]);
            for (i, some) in keys.chunks(1_500).enumerate() {
                some.iter().for_each(|(key, kinds)| gatherings[i % 2].push(*key, *kinds));
                kinds.take(&mut gatherings[i % 2], i % PARTITIONS).unwrap();
            }
            assert_eq!(kinds.spill.written() > 0, limit < usize::MAX);
            assert!(
                kinds.count(gatherings, limit).unwrap().into_iter().eq(sets.iter().map(|set| set.len() as u64)),
                "{limit}"
            );
        }
    }
}
