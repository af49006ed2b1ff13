//! A concurrent set of keys with a memory limit ([`KeySet`]), and the partitioning of keys ([`PartitionedKeys`]).
//!
//! [`KeySet::insert`] takes the keys of one row group, grouped by partition, and reports for each key whether it is new,
//! present or unknown. When the limit is reached, a partition is *frozen*: lookups still find every key that was
//! inserted, but new keys are not stored and are reported as unknown. The caller spills unknown keys and resolves them
//! after the input has been read.
//!
//! Keys are hashes, so their first bits distribute them evenly over partitions. The table of a partition is small enough
//! to stay in the cache while the keys of one row group are inserted. Each partition has a lock, so that workers rarely wait
//! for each other.

use super::block_arena::BlockArena;
use super::key_growth::KeyGrowth;
use super::key_table::KeyTable;
use crate::key::KeyBytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Bits of a key that choose its partition.
pub(crate) const PARTITION_BITS: u32 = 6;
/// Number of partitions.
pub(crate) const PARTITIONS: usize = 1 << PARTITION_BITS;

/// Number of groups of partitions, into which row groups insert their keys one after the other.
pub(crate) const PARTITION_GROUPS: usize = 8;
const GROUP_PARTITIONS: usize = PARTITIONS / PARTITION_GROUPS;

/// A table grows when it has space for fewer keys than this, so that keys are inserted in large batches.
const MIN_BATCH: usize = 64;

/// A key as a number, which compares as its bytes do.
#[inline(always)]
pub(crate) fn key_number(key: &KeyBytes) -> u128 {
    u128::from_be_bytes(*key)
}

/// The partition of a key, by the bits after its first `prefix_bits`, which are at most 58.
#[inline(always)]
pub(crate) fn partition_of(key: u128, prefix_bits: u32) -> usize {
    (((key >> 64) as u64) << prefix_bits >> (64 - PARTITION_BITS)) as usize
}

/// Keys grouped by partition, each with its row number; within a partition, rows ascend. Reused for its memory.
#[derive(Debug, Default)]
pub(crate) struct PartitionedKeys {
    keys: Vec<u128>,
    rows: Vec<u32>,
    /// The start of each partition, and the end of the last one.
    starts: Vec<u32>,
}

impl PartitionedKeys {
    /// Replaces the contents by `keys` with their rows.
    pub(crate) fn fill(&mut self, keys: impl Iterator<Item = (u128, u32)> + Clone) {
        let mut ends = [0u32; PARTITIONS];
        keys.clone().for_each(|(key, _)| ends[partition_of(key, 0)] += 1);
        self.starts.clear();
        self.starts.push(0);
        let mut at = 0;
        for end in &mut ends {
            let count = *end;
            *end = at;
            at += count;
            self.starts.push(at);
        }
        self.keys.resize(at as usize, 0);
        self.rows.resize(at as usize, 0);
        let (all_keys, all_rows) = (&mut self.keys[..], &mut self.rows[..]);
        for (key, row) in keys {
            let end = &mut ends[partition_of(key, 0)];
            all_keys[*end as usize] = key;
            all_rows[*end as usize] = row;
            *end += 1;
        }
    }

    /// The keys of a partition and their rows.
    pub(crate) fn partition(&self, partition: usize) -> (&[u128], &[u32]) {
        let range = self.starts[partition] as usize..self.starts[partition + 1] as usize;
        (&self.keys[range.clone()], &self.rows[range])
    }
}

/// The result of inserting a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Inserted<'a, V> {
    /// The key was inserted, with a default value.
    New(&'a mut V),
    /// The key was in the set.
    Present(&'a mut V),
    /// The key is not in the set and was not inserted, because its partition is frozen.
    Unknown,
}

/// A set of keys with values, shared by workers.
#[derive(Debug)]
pub(crate) struct KeySet<V> {
    partitions: Vec<Mutex<KeyPartition<V>>>,
    limit: usize,
    /// Bytes of all tables, including the temporary memory of tables that are growing.
    used: AtomicUsize,
    is_frozen: AtomicBool,
    /// Number of keys.
    len: AtomicUsize,
    growth: Mutex<KeyGrowth>,
    /// Number of keys of a partition that are expected in the end; 0 if it is not known.
    expected: AtomicUsize,
}

#[derive(Debug)]
struct KeyPartition<V> {
    table: KeyTable<V>,
    is_frozen: bool,
}

impl<V: Copy + Default> KeySet<V> {
    /// An empty set, which will take at most `limit` bytes of memory.
    pub(crate) fn new(limit: usize) -> KeySet<V> {
        let arena = BlockArena::shared(limit);
        let table = || KeyTable::in_arena(PARTITION_BITS, Arc::clone(&arena));
        let partition = |_| Mutex::new(KeyPartition { table: table(), is_frozen: false });
        KeySet {
            partitions: (0..PARTITIONS).map(partition).collect(),
            limit: limit - arena.spare_len(),
            used: AtomicUsize::new(0),
            is_frozen: AtomicBool::new(false),
            len: AtomicUsize::new(0),
            growth: Mutex::default(),
            expected: AtomicUsize::new(0),
        }
    }

    /// States that the keys so far are those of the first `done` of `total` bytes of the input, so that tables grow to the size
    /// that they will probably need. Only time and memory depend on it.
    pub(crate) fn set_progress(&self, done: u64, total: Option<u64>) {
        let Some((total, mut growth)) = total.zip(self.growth.try_lock()) else { return };
        growth.add(done, self.len.load(Ordering::Relaxed));
        let expected = growth.expected(total) / PARTITIONS;
        // The numbers of keys of partitions differ a little.
        let most = expected + expected / 32 + MIN_BATCH;
        // Without memory for all, every partition gets the same share.
        let share = KeyTable::<V>::keys_in(self.limit / PARTITIONS);
        self.expected.store(most.min(share), Ordering::Relaxed);
    }

    /// At least one partition is frozen.
    pub(crate) fn is_frozen(&self) -> bool {
        self.is_frozen.load(Ordering::Acquire)
    }

    /// Inserts the keys of one group of partitions and calls `each` with every key, its row, and the result.
    pub(crate) fn insert(
        &self,
        group: usize,
        keys: &PartitionedKeys,
        mut each: impl FnMut(u128, u32, Inserted<'_, V>),
    ) {
        for partition in group * GROUP_PARTITIONS..(group + 1) * GROUP_PARTITIONS {
            self.insert_partition(partition, keys.partition(partition), &mut each);
        }
    }

    /// Inserts keys of one partition and calls `each` with every key, what belongs to it, and the result.
    pub(crate) fn insert_partition<T: Copy>(
        &self,
        partition: usize,
        (keys, rows): (&[u128], &[T]),
        mut each: impl FnMut(u128, T, Inserted<'_, V>),
    ) {
        let partition = &mut *self.partitions[partition].lock();
        let (mut done, len) = (0, partition.table.len());
        while done < keys.len() && self.has_space(partition, keys.len() - done) {
            let end = (done + partition.table.free_len()).min(keys.len());
            partition.table.upsert_all(&keys[done..end], |i, value, is_new| {
                let inserted = if is_new { Inserted::New(value) } else { Inserted::Present(value) };
                each(keys[done + i], rows[done + i], inserted);
            });
            done = end;
        }
        self.len.fetch_add(partition.table.len() - len, Ordering::Relaxed);
        partition.table.get_all(&keys[done..], |i, value| {
            each(keys[done + i], rows[done + i], value.map_or(Inserted::Unknown, Inserted::Present));
        });
    }

    /// Another worker inserts keys into a partition.
    pub(crate) fn is_locked(&self, partition: usize) -> bool {
        self.partitions[partition].is_locked()
    }

    /// Grows the table of a partition if it has too little space for `count` more keys. Freezes the partition if that
    /// would exceed the limit, and then returns false.
    fn has_space(&self, partition: &mut KeyPartition<V>, count: usize) -> bool {
        if !partition.is_frozen && partition.table.free_len() < MIN_BATCH.min(count) {
            partition.table.expect(self.expected.load(Ordering::Relaxed));
            if !self.grow(&mut partition.table) {
                partition.table.expect(0);
                partition.is_frozen = !self.grow(&mut partition.table);
                self.is_frozen.fetch_or(partition.is_frozen, Ordering::AcqRel);
            }
        }
        !partition.is_frozen
    }

    /// Grows a table. Returns false, and does nothing, if that would exceed the limit.
    fn grow(&self, table: &mut KeyTable<V>) -> bool {
        let (before, growth) = (table.memory_len(), table.growth_len());
        let has_memory = self.used.fetch_add(growth, Ordering::Relaxed) + growth <= self.limit;
        if has_memory {
            table.grow();
        }
        // The memory that growing took in addition is free again.
        let grown = table.memory_len() - before;
        self.used.fetch_sub(growth.saturating_sub(grown), Ordering::Relaxed);
        has_memory
    }

    /// The tables, in the order of their partitions.
    pub(crate) fn into_tables(self) -> impl Iterator<Item = KeyTable<V>> {
        self.partitions.into_iter().map(|partition| partition.into_inner().table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyAlgorithm;
    use std::collections::HashMap;

    #[test]
    fn keys_are_grouped_by_their_first_bits() {
        let mut keys = PartitionedKeys::default();
        keys.fill([(5, 0), (u128::MAX, 1), (6, 2)].into_iter());
        assert_eq!(keys.partition(0), (&[5, 6][..], &[0, 2][..]));
        assert_eq!(keys.partition(PARTITIONS - 1), (&[u128::MAX][..], &[1][..]));
    }

    fn keys(count: u64) -> Vec<(u128, u32)> {
        let key = |i: u64| u128::from_be_bytes(KeyAlgorithm::Xxh3.key(&(i * i % 7_919).to_le_bytes()));
        (0..count).map(|i| (key(i), i as u32)).collect()
    }

    /// If the length of the input is known, tables become as long as they have to be, also if memory is limited.
    #[test]
    fn tables_grow_to_the_expected_length() {
        let key = |i: u64| (u128::from_be_bytes(KeyAlgorithm::Xxh3.key(&i.to_le_bytes())), i as u32);
        let fill = |limit, has_total: bool| {
            let set: KeySet<()> = KeySet::new(limit);
            for first in (0..400_000).step_by(4_000) {
                let mut partitioned = PartitionedKeys::default();
                partitioned.fill((first..first + 4_000).map(key));
                (0..PARTITION_GROUPS).for_each(|group| set.insert(group, &partitioned, |_, _, _| ()));
                set.set_progress(first + 4_000, has_total.then_some(400_000));
            }
            assert!(set.used.load(Ordering::Relaxed) <= limit);
            (set.used.load(Ordering::Relaxed) as f64, set.len.load(Ordering::Relaxed) as f64)
        };
        let (used, len) = fill(usize::MAX, true);
        assert!(len == 400_000.0 && used / len < 22.0, "{}", used / len);
        // A fifth of the keys fits.
        let (_, with_total) = fill(1_600_000, true);
        let (_, without) = fill(1_600_000, false);
        assert!(with_total >= without && with_total > 60_000.0, "{with_total} {without}");
    }

    /// With any limit, what is reported is true; without a limit, no key is unknown.
    #[test]
    fn results_are_true_with_any_limit() {
        let keys = keys(20_000);
        for limit in [0, 100_000, 150_000, usize::MAX] {
            let set: KeySet<u32> = KeySet::new(limit);
            let (mut first, mut unknown) = (HashMap::new(), 0);
            for chunk in keys.chunks(1000) {
                let mut partitioned = PartitionedKeys::default();
                partitioned.fill(chunk.iter().copied());
                (0..PARTITION_GROUPS).for_each(|group| {
                    set.insert(group, &partitioned, |_, row, inserted| match inserted {
                        Inserted::New(value) => {
                            *value = row;
                            assert_eq!(first.insert(keys[row as usize].0, row), None);
                        }
                        Inserted::Present(value) => assert_eq!(first.get(&keys[row as usize].0), Some(&*value)),
                        Inserted::Unknown => {
                            unknown += 1;
                            assert_eq!(first.get(&keys[row as usize].0), None);
                        }
                    });
                });
                assert!(set.used.load(Ordering::Relaxed) <= limit);
            }
            assert_eq!(set.is_frozen(), limit != usize::MAX);
            assert_eq!(unknown > 0, limit != usize::MAX);
            let mut expected: Vec<u128> = first.into_keys().collect();
            expected.sort_unstable();
            let mut all: Vec<u128> = Vec::new();
            set.into_tables().for_each(|table| all.extend(table.iter().map(|(key, _)| key)));
            all.sort_unstable();
            assert_eq!(all, expected);
        }
    }
}
