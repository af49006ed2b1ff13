//! The keys met so far, in tables by partition, within a budget of memory: [`Known`]. In: the keys of a span, scattered.
//! Out: for each whether it is new, known, or past what the budget lets us know. A table that may not grow any more is
//! frozen: what it holds stays right, and a key that it does not hold has not been met before the freezing.

use super::partition::{PARTITION_BITS, PARTITIONS, Scattered};
use super::table::Table;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Groups of partitions, each behind a lock of its own.
pub const LANES: usize = 8;
const PER_LANE: usize = PARTITIONS / LANES;

/// Keys for which a table has room at a time, if it may grow: with fewer they would come in dribs.
const TOGETHER: usize = 64;

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'a, V> {
    /// It was not met before, and is known from now on.
    New(&'a mut V),
    /// It was met before.
    Known(&'a mut V),
    /// It was not met before its table was frozen, and is not kept.
    Unknown,
}

/// Keys with values, shared by workers.
#[derive(Debug)]
pub struct Known<V> {
    lanes: Vec<Mutex<Vec<Partition<V>>>>,
    limit: usize,
    /// Bytes of all tables, and of what growth takes for a while.
    used: AtomicUsize,
    is_frozen: AtomicBool,
}

#[derive(Debug)]
struct Partition<V> {
    table: Table<V>,
    is_frozen: bool,
}

impl<V: Copy + Default> Known<V> {
    /// No keys; the tables will take at most `limit` bytes.
    pub fn new(limit: usize) -> Known<V> {
        let partition = || Partition { table: Table::new(PARTITION_BITS), is_frozen: false };
        let lane = || Mutex::new((0..PER_LANE).map(|_| partition()).collect());
        let lanes = (0..LANES).map(|_| lane()).collect();
        Known { lanes, limit, used: AtomicUsize::new(0), is_frozen: AtomicBool::new(false) }
    }

    /// Some table was frozen.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen.load(Ordering::Acquire)
    }

    /// Tells `found` of every key of a lane's partitions: the key, its row, and what was known of the key.
    pub fn meet(&self, lane: usize, keys: &Scattered, mut found: impl FnMut(u128, u32, Found<'_, V>)) {
        let mut partitions = self.lane(lane);
        for (i, partition) in partitions.iter_mut().enumerate() {
            let (keys, rows) = keys.of(lane * PER_LANE + i);
            self.meet_in(partition, keys, rows, &mut found);
        }
    }

    /// The same for keys of one partition; says how many of its keys are known then.
    pub fn meet_keys(
        &self,
        place: usize,
        keys: &[u128],
        rows: &[u32],
        mut found: impl FnMut(u128, u32, Found<'_, V>),
    ) -> usize {
        let partition = &mut self.lane(place / PER_LANE)[place % PER_LANE];
        self.meet_in(partition, keys, rows, &mut found);
        partition.table.len()
    }

    fn lane(&self, lane: usize) -> MutexGuard<'_, Vec<Partition<V>>> {
        self.lanes[lane].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meet_in(
        &self,
        partition: &mut Partition<V>,
        keys: &[u128],
        rows: &[u32],
        found: &mut impl FnMut(u128, u32, Found<'_, V>),
    ) {
        let mut met = 0;
        while met < keys.len() && self.has_room(partition, keys.len() - met) {
            let end = (met + partition.table.room()).min(keys.len());
            partition.table.upsert_all(&keys[met..end], |i, value, is_new| {
                let what = if is_new { Found::New(value) } else { Found::Known(value) };
                found(keys[met + i], rows[met + i], what);
            });
            met = end;
        }
        partition.table.get_all(&keys[met..], |at, value| {
            found(keys[met + at], rows[met + at], value.map_or(Found::Unknown, Found::Known));
        });
    }

    /// A few of `count` more keys fit into a table, if need be after it has grown.
    fn has_room(&self, partition: &mut Partition<V>, count: usize) -> bool {
        if !partition.is_frozen && partition.table.room() < TOGETHER.min(count) {
            let (before, growth) = (partition.table.memory_len(), partition.table.growth_len());
            if self.used.fetch_add(growth, Ordering::Relaxed) + growth <= self.limit {
                partition.table.grow();
                // What was wanted while keys moved is free again.
                let grown = partition.table.memory_len() - before;
                self.used.fetch_sub(growth.saturating_sub(grown), Ordering::Relaxed);
            } else {
                self.used.fetch_sub(growth, Ordering::Relaxed);
                partition.is_frozen = true;
                self.is_frozen.store(true, Ordering::Release);
            }
        }
        !partition.is_frozen
    }

    /// The tables, in the order of their partitions.
    pub fn into_tables(self) -> impl Iterator<Item = Table<V>> {
        let partitions =
            self.lanes.into_iter().flat_map(|lane| lane.into_inner().unwrap_or_else(PoisonError::into_inner));
        partitions.map(|partition| partition.table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyAlgorithm;
    use std::collections::HashMap;

    fn keys(count: u64) -> Vec<(u128, u32)> {
        let key = |i: u64| u128::from_be_bytes(KeyAlgorithm::Xxh3.key(&(i * i % 7_919).to_le_bytes()));
        (0..count).map(|i| (key(i), i as u32)).collect()
    }

    /// With any limit, what is said is true; without one, everything is known.
    #[test]
    fn what_is_found_is_true() {
        let keys = keys(20_000);
        for limit in [0, 100_000, 150_000, usize::MAX] {
            let known: Known<u32> = Known::new(limit);
            let (mut first, mut unknown) = (HashMap::new(), 0);
            for span in keys.chunks(1000) {
                let mut scattered = Scattered::default();
                scattered.scatter(span.iter().copied(), 0);
                (0..LANES).for_each(|lane| {
                    known.meet(lane, &scattered, |_, row, found| match found {
                        Found::New(value) => {
                            *value = row;
                            assert_eq!(first.insert(keys[row as usize].0, row), None);
                        }
                        Found::Known(value) => assert_eq!(first.get(&keys[row as usize].0), Some(&*value)),
                        Found::Unknown => {
                            unknown += 1;
                            assert_eq!(first.get(&keys[row as usize].0), None);
                        }
                    });
                });
                assert!(known.used.load(Ordering::Relaxed) <= limit);
            }
            assert_eq!(known.is_frozen(), limit != usize::MAX);
            assert_eq!(unknown > 0, limit != usize::MAX);
            let mut sorted: Vec<u128> = first.into_keys().collect();
            sorted.sort_unstable();
            let mut all: Vec<u128> = Vec::new();
            known.into_tables().for_each(|table| all.extend(table.iter().map(|(key, _)| key)));
            all.sort_unstable();
            assert_eq!(all, sorted);
        }
    }
}
