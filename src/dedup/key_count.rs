//! Counts distinct keys of several kinds, exactly and in bounded memory: [`KeyCounter`].
//!
//! A key may be of several kinds at once, such as the rungs on which it is the key of some row; kinds are the bits of a
//! number ([`KindBits`]). No key needs an answer before the end, so each worker collects keys in a [`KeyBuffer`] and inserts
//! many of one partition at a time.

use super::entries::{EntryLayout, EntrySpill, EntryTexts, PendingEntry};
use super::key_set::{Inserted, KeySet, PARTITIONS, partition_of};
use super::parallel::for_each;
use super::spilled_table::{EntryValue, SpilledTable, for_each_table};
use crate::spill::SpillError;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of kinds of keys that fit into a byte.
pub(crate) const MAX_KINDS: usize = u8::BITS as usize;

/// The kinds of a key, as the bits of a number. Few kinds take less memory.
pub(crate) trait KindBits: Copy + Default + Into<u64> + Send + Sync {
    /// Bytes of the number.
    const LEN: usize;

    /// The first bits of a number.
    fn from_bits(bits: u64) -> Self;
}

/// The only kind of all keys. It takes no memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OnlyKind;

impl From<OnlyKind> for u64 {
    fn from(OnlyKind: OnlyKind) -> u64 {
        1
    }
}

impl KindBits for OnlyKind {
    const LEN: usize = 1;

    #[inline(always)]
    fn from_bits(_: u64) -> OnlyKind {
        OnlyKind
    }
}

impl KindBits for u8 {
    const LEN: usize = size_of::<u8>();

    #[inline(always)]
    fn from_bits(bits: u64) -> u8 {
        bits as u8
    }
}

impl KindBits for u64 {
    const LEN: usize = size_of::<u64>();

    #[inline(always)]
    fn from_bits(bits: u64) -> u64 {
        bits
    }
}

impl<K: KindBits> EntryValue for K {
    fn of(entry: &PendingEntry) -> K {
        K::from_bits(entry.kinds)
    }

    fn merge(self, other: K) -> K {
        K::from_bits(self.into() | other.into())
    }
}

/// Keys are inserted when a partition has at least this number, or when the buffer is full. More keys at a time are inserted
/// hardly faster, but take more memory. The vectors of a partition rarely get longer than 2,048 keys, and then double.
const INSERT_LEN: usize = 1_700;

/// Each time, keys are inserted beginning with another partition, this many partitions further.
const PARTITION_STEP: usize = 23;

/// Distinct keys with their kinds, shared by workers.
#[derive(Debug)]
pub(crate) struct KeyCounter<K> {
    /// Bytes of memory.
    limit: usize,
    workers: usize,
    /// Maximum number of keys of a partition in a buffer.
    max_buffered: usize,
    keys: KeySet<K>,
    spill: EntrySpill,
    /// See [`PARTITION_STEP`].
    next_partition: AtomicUsize,
}

/// The keys of one worker that are not in the tables yet.
#[derive(Debug)]
pub(crate) struct KeyBuffer<K> {
    partitions: Vec<BufferedKeys<K>>,
    /// Keys and kinds of a partition that did not fit into its table.
    unknown: Vec<(u128, K)>,
    counts: KindCounts,
}

/// How often keys got kinds for the first time, by the values of each byte of the kinds.
#[derive(Debug)]
struct KindCounts(Vec<[u64; 1 << MAX_KINDS]>);

impl KindCounts {
    fn new<K: KindBits>() -> KindCounts {
        KindCounts(vec![[0; 1 << MAX_KINDS]; K::LEN])
    }

    #[inline(always)]
    fn add<K: KindBits>(&mut self, kinds: u64) {
        let bytes = kinds.to_le_bytes();
        // The number of bytes is known to the compiler: usually one.
        (0..K::LEN).for_each(|i| self.0[i][usize::from(bytes[i])] += 1);
    }

    /// Adds the number of keys of each kind to `totals`.
    fn add_to(&self, totals: &mut [u64]) {
        for (counts, totals) in self.0.iter().zip(totals.chunks_mut(MAX_KINDS)) {
            for (byte, count) in counts.iter().enumerate() {
                totals.iter_mut().enumerate().for_each(|(kind, total)| *total += (byte >> kind & 1) as u64 * count);
            }
        }
    }
}

/// The buffered keys of a partition.
#[derive(Clone, Debug, Default)]
struct BufferedKeys<K> {
    keys: Vec<u128>,
    kinds: Vec<K>,
}

impl<K> BufferedKeys<K> {
    /// Maximum memory of a key, in bytes: vectors may have twice the capacity that they use.
    const KEY_LEN: usize = 2 * (size_of::<u128>() + size_of::<K>());
}

impl<K: KindBits> Default for KeyBuffer<K> {
    fn default() -> KeyBuffer<K> {
        KeyBuffer {
            partitions: vec![BufferedKeys::default(); PARTITIONS],
            unknown: Vec::new(),
            counts: KindCounts::new::<K>(),
        }
    }
}

impl<K: KindBits> KeyBuffer<K> {
    /// Adds a key with the bits of its kinds.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: u128, kinds: K) {
        let buffered = &mut self.partitions[partition_of(key, 0)];
        buffered.keys.push(key);
        buffered.kinds.push(kinds);
    }
}

impl<K: KindBits> KeyCounter<K> {
    /// A counter for this number of workers. Keys and buffers take about `limit` bytes of memory; further keys go to a
    /// temporary file in `directory`.
    pub(crate) fn new(limit: usize, workers: usize, directory: &Path) -> KeyCounter<K> {
        let layout = EntryLayout { kinds_len: size_of::<K>(), ..EntryLayout::default() };
        let (spill_len, per_key) = (EntrySpill::share(limit), workers.max(1) * PARTITIONS * BufferedKeys::<K>::KEY_LEN);
        let max_buffered = (limit / 8 / per_key).min(INSERT_LEN);
        KeyCounter {
            limit,
            workers: workers.max(1),
            max_buffered,
            keys: KeySet::new(limit - spill_len - max_buffered * per_key),
            spill: EntrySpill::new(layout, spill_len, directory),
            next_partition: AtomicUsize::new(0),
        }
    }

    /// See [`KeySet::set_progress`].
    pub(crate) fn set_progress(&self, done: u64, total: Option<u64>) {
        self.keys.set_progress(done, total);
    }

    /// Inserts the keys of those partitions of which the buffer has many. Workers begin with different partitions, and leave
    /// those that another worker has locked for later, so that they rarely wait for each other.
    pub(crate) fn insert_full(&self, buffer: &mut KeyBuffer<K>) -> Result<(), SpillError> {
        let first = self.next_partition.fetch_add(PARTITION_STEP, Ordering::Relaxed);
        for is_last in [false, true] {
            for partition in (0..PARTITIONS).map(|i| first.wrapping_add(i) % PARTITIONS) {
                let is_full = buffer.partitions[partition].keys.len() >= self.max_buffered.max(1);
                if is_full && (is_last || !self.keys.is_locked(partition)) {
                    self.insert(partition, buffer)?;
                }
            }
        }
        Ok(())
    }

    /// Inserts all keys of the buffers of all workers.
    pub(crate) fn insert_rest(&self, buffers: &mut [KeyBuffer<K>]) -> Result<(), SpillError> {
        for_each(self.workers, buffers.iter_mut(), |buffer| self.insert_all(buffer))
    }

    /// Inserts all keys of a buffer.
    fn insert_all(&self, buffer: &mut KeyBuffer<K>) -> Result<(), SpillError> {
        (0..PARTITIONS).try_for_each(|partition| self.insert(partition, buffer))
    }

    /// Inserts the keys of a partition, and spills those that do not fit into its table, with their kinds.
    fn insert(&self, partition: usize, buffer: &mut KeyBuffer<K>) -> Result<(), SpillError> {
        let KeyBuffer { partitions, unknown, counts } = buffer;
        let BufferedKeys { keys, kinds } = &mut partitions[partition];
        self.keys.insert_partition(partition, (keys, kinds), |key, kinds, inserted| {
            let (known, before): (&mut K, u64) = match inserted {
                Inserted::New(known) => (known, 0),
                Inserted::Present(known) => {
                    let before = (*known).into();
                    (known, before)
                }
                Inserted::Unknown => return unknown.push((key, kinds)),
            };
            let kinds: u64 = kinds.into();
            counts.add::<K>(kinds & !before);
            *known = K::from_bits(kinds | before);
        });
        keys.clear();
        kinds.clear();
        if unknown.is_empty() {
            return Ok(());
        }
        let entry = |(key, kinds): (u128, K)| PendingEntry { key, kinds: kinds.into(), ..PendingEntry::default() };
        self.spill.add(partition, unknown.drain(..).map(|unknown| (entry(unknown), EntryTexts::default())))
    }

    /// The number of distinct keys of each kind. [`KeyCounter::insert_rest`] must have been called with `buffers`.
    pub(crate) fn finish(self, buffers: &[KeyBuffer<K>]) -> Result<Vec<u64>, SpillError> {
        let KeyCounter { limit, workers, keys, spill, .. } = self;
        // Frees memory for the spilled keys.
        drop(keys);
        let mut totals = vec![0; K::LEN * MAX_KINDS];
        buffers.iter().for_each(|buffer| buffer.counts.add_to(&mut totals));
        let totals = Mutex::new(totals);
        for_each(workers, 0..PARTITIONS, |partition| {
            let mut counts = KindCounts::new::<K>();
            for_each_table(&spill, partition, limit / workers, &mut |spilled: SpilledTable<'_, K>| {
                spilled.table.iter().for_each(|(_, kinds)| counts.add::<K>(kinds.into()));
                Ok(())
            })?;
            counts.add_to(&mut totals.lock());
            Ok(())
        })?;
        Ok(totals.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::super::key_set::key_number;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn counts_agree_with_sets() {
        check::<u8>(0);
        check::<u64>(0);
        check::<u64>(50);
    }

    #[test]
    fn keys_of_one_kind_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let hash = |i: u64| key_number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()));
        for limit in [usize::MAX, 1_500_000, 0] {
            let counter = KeyCounter::<OnlyKind>::new(limit, 2, directory.path());
            let mut buffers = [KeyBuffer::default(), KeyBuffer::default()];
            for first in (0..200_000).step_by(5_000) {
                let buffer = &mut buffers[first as usize / 5_000 % 2];
                (first..first + 5_000).for_each(|i| buffer.push(hash(i * i % 150_001), OnlyKind));
                counter.set_progress(first + 5_000, Some(200_000));
                counter.insert_full(buffer).unwrap();
            }
            counter.insert_rest(&mut buffers).unwrap();
            assert_eq!(counter.spill.written_len() > 0, limit < usize::MAX);
            let distinct = (0..200_000u64).map(|i| i * i % 150_001).collect::<HashSet<_>>().len() as u64;
            assert_eq!(counter.finish(&buffers).unwrap(), [distinct, 0, 0, 0, 0, 0, 0, 0], "{limit}");
        }
    }

    /// Workers that meet in a partition neither lose keys nor count them twice.
    #[test]
    fn workers_count_every_key_once() {
        let directory = tempfile::tempdir().unwrap();
        let hash = |i: u64| key_number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()));
        // Partitions are full as soon as they have a key.
        let counter = KeyCounter::<u8> { max_buffered: 1, ..KeyCounter::new(4 << 20, 4, directory.path()) };
        let work = |worker: u64| {
            let mut buffer = KeyBuffer::default();
            for first in (0..20_000).step_by(100) {
                (first..first + 100).for_each(|i| buffer.push(hash(i + worker * 1_000), 1 << (i % 2)));
                counter.insert_full(&mut buffer).unwrap();
            }
            buffer
        };
        let mut buffers: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || work(worker))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        counter.insert_rest(&mut buffers).unwrap();
        assert_eq!(counter.finish(&buffers).unwrap()[..3], [11_500, 11_500, 0]);
    }

    /// Compares counts of four kinds, the first of which is bit number `first_kind`, with sets.
    fn check<K: KindBits + std::fmt::Debug>(first_kind: usize) {
        let directory = tempfile::tempdir().unwrap();
        let hash = |i: u64| key_number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()));
        let kinds = |i: u64| (1 << (i % 3) | 8) << first_kind;
        let keys: Vec<(u128, u64)> = (0..40_000u64).map(|i| (hash(i * i % 9_001), kinds(i))).collect();
        let mut sets = vec![HashSet::new(); size_of::<K>() * 8];
        for (key, kinds) in &keys {
            (0..sets.len()).filter(|kind| kinds >> kind & 1 == 1).for_each(|kind| {
                sets[kind].insert(*key);
            });
        }
        for limit in [usize::MAX, 300_000, 0] {
            let counter = KeyCounter::<K>::new(limit, 2, directory.path());
            let mut buffers = [KeyBuffer::default(), KeyBuffer::default()];
            for (i, chunk) in keys.chunks(1_500).enumerate() {
                chunk.iter().for_each(|(key, kinds)| buffers[i % 2].push(*key, K::from_bits(*kinds)));
                counter.insert_full(&mut buffers[i % 2]).unwrap();
            }
            buffers.iter_mut().try_for_each(|buffer| counter.insert_all(buffer)).unwrap();
            assert_eq!(counter.spill.written_len() > 0, limit < usize::MAX);
            let counts = counter.finish(&buffers).unwrap();
            assert!(counts.into_iter().eq(sets.iter().map(|set| set.len() as u64)), "{limit}");
        }
    }
}
