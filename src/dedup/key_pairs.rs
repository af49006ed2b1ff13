//! Pairs of keys, one key of each of two sides, exactly and in bounded memory: [`KeyPairs`] finds the keys of one side that
//! are paired with several keys of the other.
//!
//! ```text
//! pairs of a row group --KeySet--> new ----------------------------------> entries by the first key --+
//!                        |                                             +-> entries by the second key -+-> MergedKeys
//!                        +--> unknown: out of memory --distinct pairs--+
//! ```
//!
//! A pair is inserted into the set as one number ([`pair_number`]). Row groups are inserted in order, so that a new pair
//! has its first row. Unknown pairs are in an order of their own; of these, the least row is found at the end.

use super::entries::{EntryLayout, EntrySpill, EntryTexts, PendingEntry};
use super::key_set::{Inserted, KeySet, PARTITIONS, PartitionedKeys, partition_of};
use super::key_table::KeyTable;
use super::parallel::for_each;
use super::spilled_table::{EntryValue, SpilledTable, for_each_table};
use crate::spill::SpillError;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum number of rows of a group of merged keys that are listed.
const MAX_MEMBERS: usize = 4;

/// A factor that spreads the bits of the first key. It is even, so that the number of a pair of equal keys is an odd multiple
/// of the key: different keys have different numbers.
const FIRST_FACTOR: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c834;

/// A pair of keys as one number, which is as random as the keys. The second key follows from it and the first.
#[inline(always)]
fn pair_number([first, second]: [u128; 2]) -> u128 {
    first.wrapping_mul(FIRST_FACTOR).wrapping_add(second)
}

/// The keys of a pair with this number and this first key.
fn pair_keys(number: u128, first: u128) -> [u128; 2] {
    [first, number.wrapping_sub(first.wrapping_mul(FIRST_FACTOR))]
}

/// Distinct pairs of keys with their first rows, shared by workers.
#[derive(Debug)]
pub(crate) struct KeyPairs {
    /// The numbers of pairs.
    set: KeySet<()>,
    /// Entries of pairs that are not in the set, by their number; their rank is the first key.
    unknown: EntrySpill,
    /// Entries of distinct pairs, by the key of each side.
    sides: [EntrySpill; 2],
}

/// The pairs of a row group, reused for their memory.
#[derive(Debug, Default)]
pub(crate) struct PairBuffer {
    /// The keys of each row; any keys if the row has no pair.
    keys: Vec<[u128; 2]>,
    partitioned: PartitionedKeys,
    new: Vec<u32>,
    unknown: Vec<u32>,
}

impl PairBuffer {
    /// Replaces the pairs by those of the next row group: `keys` of each row, for the rows in `paired`.
    pub(crate) fn fill(&mut self, keys: impl Iterator<Item = [u128; 2]>, paired: impl Iterator<Item = u32> + Clone) {
        self.keys.clear();
        self.keys.extend(keys);
        let keys = &self.keys;
        self.partitioned.fill(paired.map(|row| (pair_number(keys[row as usize]), row)));
        self.new.clear();
        self.unknown.clear();
    }

    /// The key of a row on one side.
    pub(crate) fn key(&self, row: u32, side: usize) -> u128 {
        self.keys[row as usize][side]
    }

    /// The rows that may be the first ones of their pairs, in ascending order.
    pub(crate) fn first_rows(&self) -> Vec<u32> {
        let mut rows = [&self.new[..], &self.unknown].concat();
        rows.sort_unstable();
        rows
    }
}

/// The keys of one side that are paired with several keys of the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MergedKeys {
    /// Distinct keys of this side.
    pub(crate) distinct: u64,
    /// Keys that are in several pairs.
    pub(crate) keys: u64,
    /// Pairs beyond the first of each key.
    pub(crate) merges: u64,
    /// The groups with the least rows, in the order of these: the least rows of the pairs of one key, at most
    /// [`MAX_MEMBERS`].
    pub(crate) groups: Vec<Vec<u64>>,
}

impl KeyPairs {
    /// No pairs. They take about `limit` bytes of memory; further ones go to temporary files in `directory`.
    pub(crate) fn new(limit: usize, directory: &Path) -> KeyPairs {
        let side = EntryLayout { has_ordinal: true, ..EntryLayout::default() };
        let unknown = EntryLayout { has_rank: true, ..side };
        KeyPairs {
            set: KeySet::new(limit / 2),
            unknown: EntrySpill::new(unknown, limit / 8, directory),
            sides: [(); 2].map(|()| EntrySpill::new(side, limit / 16 * 3, directory)),
        }
    }

    /// Inserts the pairs of one group of partitions, after those of all earlier row groups.
    pub(crate) fn insert(&self, group: usize, buffer: &mut PairBuffer) {
        let PairBuffer { partitioned, new, unknown, .. } = buffer;
        self.set.insert(group, partitioned, |_, row, inserted| match inserted {
            Inserted::New(()) => new.push(row),
            Inserted::Unknown => unknown.push(row),
            Inserted::Present(()) => (),
        });
    }

    /// Stores the pairs of a row group that were not in the set before. All groups of partitions have been inserted.
    pub(crate) fn store(&self, buffer: &mut PairBuffer, first_row: u64) -> Result<(), SpillError> {
        let PairBuffer { keys, partitioned, new, unknown } = buffer;
        let entry =
            |key, row: u32| PendingEntry { key, ordinal: first_row + u64::from(row), ..PendingEntry::default() };
        for (side, spill) in self.sides.iter().enumerate() {
            partitioned.fill(new.iter().map(|&row| (keys[row as usize][side], row)));
            spill.extend(partitioned, |_| true, |key, row| (entry(key, row), EntryTexts::default()))?;
        }
        if unknown.is_empty() {
            return Ok(());
        }
        partitioned.fill(unknown.iter().map(|&row| (pair_number(keys[row as usize]), row)));
        let entry = |key, row: u32| PendingEntry { rank: keys[row as usize][0], ..entry(key, row) };
        self.unknown.extend(partitioned, |_| true, |key, row| (entry(key, row), EntryTexts::default()))
    }

    /// Bytes written to temporary files.
    pub(crate) fn written_len(&self) -> u64 {
        self.sides.iter().chain([&self.unknown]).map(EntrySpill::written_len).sum()
    }

    /// Finds the merged keys of both sides, with at most `max_groups` groups of each, by `threads` threads with about
    /// `limit` bytes of memory.
    pub(crate) fn finish(self, threads: usize, limit: usize, max_groups: usize) -> Result<[MergedKeys; 2], SpillError> {
        let KeyPairs { set, unknown, sides } = self;
        // Frees memory for what follows.
        drop(set);
        let limit = limit / threads.max(1);
        for_each(threads, 0..PARTITIONS, |partition| {
            for_each_table(&unknown, partition, limit, &mut |pairs| add_distinct(&pairs, &sides))
        })?;
        drop(unknown);
        let group = |side: EntrySpill| -> Result<MergedKeys, SpillError> {
            let grouping = Grouping { max_groups, result: Mutex::default() };
            for_each(threads, 0..PARTITIONS, |partition| {
                for_each_table(&side, partition, limit, &mut |pairs| grouping.add(&pairs))
            })?;
            Ok(grouping.result.into_inner())
        };
        let [first, second] = sides;
        Ok([group(first)?, group(second)?])
    }
}

/// The first key of a pair, and its least row.
#[derive(Clone, Copy, Debug, Default)]
struct FirstRow {
    first: u128,
    ordinal: u64,
}

impl EntryValue for FirstRow {
    fn of(entry: &PendingEntry) -> FirstRow {
        FirstRow { first: entry.rank, ordinal: entry.ordinal }
    }

    fn merge(self, other: FirstRow) -> FirstRow {
        FirstRow { ordinal: self.ordinal.min(other.ordinal), ..self }
    }
}

/// Adds the distinct pairs of a table to both sides, with the least row of each.
fn add_distinct(pairs: &SpilledTable<'_, FirstRow>, sides: &[EntrySpill; 2]) -> Result<(), SpillError> {
    for (side, spill) in sides.iter().enumerate() {
        for (number, FirstRow { first, ordinal }) in pairs.table.iter() {
            let key = pair_keys(number, first)[side];
            let entry = PendingEntry { key, ordinal, ..PendingEntry::default() };
            spill.add(partition_of(key, 0), std::iter::once((entry, EntryTexts::default())))?;
        }
    }
    Ok(())
}

/// Groups the distinct pairs of one side by their key.
struct Grouping {
    max_groups: usize,
    result: Mutex<MergedKeys>,
}

/// The pairs of a key.
#[derive(Clone, Copy, Debug, Default)]
struct KeyGroup {
    first_row: u64,
    pairs: u64,
}

impl EntryValue for KeyGroup {
    fn of(entry: &PendingEntry) -> KeyGroup {
        KeyGroup { first_row: entry.ordinal, pairs: 1 }
    }

    fn merge(self, other: KeyGroup) -> KeyGroup {
        KeyGroup { first_row: self.first_row.min(other.first_row), pairs: self.pairs + other.pairs }
    }
}

impl Grouping {
    /// Adds the pairs of a table.
    fn add(&self, pairs: &SpilledTable<'_, KeyGroup>) -> Result<(), SpillError> {
        let SpilledTable { table, spill, partition, .. } = pairs;
        let groups = members(spill, *partition, self.first_keys(table))?;
        let merged = table.iter().filter(|(_, group)| group.pairs > 1);
        let (keys, merges) = merged.fold((0, 0), |(keys, merges), (_, group)| (keys + 1, merges + group.pairs - 1));
        let mut result = self.result.lock();
        result.distinct += table.len() as u64;
        result.keys += keys;
        result.merges += merges;
        result.groups.extend(groups);
        result.groups.sort_unstable();
        result.groups.truncate(self.max_groups);
        Ok(())
    }

    /// The merged keys of a table that may be among the first ones of all partitions.
    fn first_keys(&self, table: &KeyTable<KeyGroup>) -> Vec<u128> {
        let result = self.result.lock();
        let is_full = result.groups.len() == self.max_groups;
        // Groups are sorted by their first rows, which differ.
        let end = result.groups.last().filter(|_| is_full).map_or(u64::MAX, |last| last[0]);
        drop(result);
        let merged = table.iter().filter(|(_, group)| group.pairs > 1 && group.first_row < end);
        let mut first: Vec<(u64, u128)> = merged.map(|(key, group)| (group.first_row, key)).collect();
        if first.len() > self.max_groups {
            first.select_nth_unstable(self.max_groups);
            first.truncate(self.max_groups);
        }
        first.into_iter().map(|(_, key)| key).collect()
    }
}

/// The least rows of the pairs of these keys.
fn members(spill: &EntrySpill, partition: usize, keys: Vec<u128>) -> Result<Vec<Vec<u64>>, SpillError> {
    let mut members: BTreeMap<u128, Vec<u64>> = keys.into_iter().map(|key| (key, Vec::new())).collect();
    if members.is_empty() {
        return Ok(Vec::new());
    }
    spill.visit(partition, |entry, _| {
        if let Some(rows) = members.get_mut(&entry.key) {
            rows.push(entry.ordinal);
            rows.sort_unstable();
            rows.truncate(MAX_MEMBERS);
        }
        Ok(())
    })?;
    Ok(members.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::super::key_set::{PARTITION_GROUPS, key_number};
    use super::*;
    use std::collections::BTreeSet;

    fn hash(i: u64) -> u128 {
        key_number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()))
    }

    /// Equal keys, a first key with very many pairs, a second one with many, and repeated pairs.
    fn pair(i: u64) -> [u128; 2] {
        let number = i * i % 7_919;
        match i % 7 {
            0 => [hash(0), hash(number)],
            1 => [hash(number), hash(number % 97)],
            2 => [hash(number / 2), hash(number)],
            _ => [hash(number); 2],
        }
    }

    fn expected(count: u64, side: usize, max_groups: usize) -> MergedKeys {
        let (mut rows, mut groups) = (BTreeMap::new(), BTreeMap::<u128, BTreeSet<u64>>::new());
        (0..count).for_each(|i| {
            rows.entry(pair(i)).or_insert(i);
        });
        rows.iter().for_each(|(keys, row)| {
            groups.entry(keys[side]).or_default().insert(*row);
        });
        let merged: Vec<&BTreeSet<u64>> = groups.values().filter(|rows| rows.len() > 1).collect();
        let mut first: Vec<Vec<u64>> =
            merged.iter().map(|rows| rows.iter().copied().take(MAX_MEMBERS).collect()).collect();
        first.sort();
        first.truncate(max_groups);
        let merges = merged.iter().map(|rows| rows.len() as u64 - 1).sum();
        MergedKeys { distinct: groups.len() as u64, keys: merged.len() as u64, merges, groups: first }
    }

    #[test]
    fn keys_of_a_pair_follow_from_its_number() {
        for keys in [[0, 0], [1, u128::MAX], [hash(1), hash(2)], [hash(3); 2]] {
            assert_eq!(pair_keys(pair_number(keys), keys[0]), keys);
        }
        let same: BTreeSet<u128> = (0..128).map(|bit| pair_number([1 << bit; 2])).collect();
        assert_eq!(same.len(), 128);
    }

    #[test]
    fn merged_keys_agree_with_maps() {
        const COUNT: u64 = 30_000;
        let directory = tempfile::tempdir().unwrap();
        for (limit, max_groups) in [(usize::MAX, 5), (300_000, 0), (200_000, 10_000), (100_000, 7), (0, 3)] {
            let pairs = KeyPairs::new(limit, directory.path());
            for first_row in (0..COUNT).step_by(1_000) {
                let mut buffer = PairBuffer::default();
                buffer.fill((first_row..first_row + 1_000).map(pair), 0..1_000);
                (0..PARTITION_GROUPS).for_each(|group| pairs.insert(group, &mut buffer));
                pairs.store(&mut buffer, first_row).unwrap();
                assert!(buffer.first_rows().is_sorted());
            }
            let unknown: usize = (0..PARTITIONS).map(|partition| pairs.unknown.count(partition)).sum();
            let is_spilled = pairs.written_len() > 0;
            match limit {
                usize::MAX => assert!(!is_spilled && unknown == 0),
                _ => assert!(is_spilled && unknown > 0, "{limit}"),
            }
            let found = pairs.finish(2, limit, max_groups).unwrap();
            assert!(found.iter().all(|side| side.keys > 100), "{found:?}");
            assert_eq!(found, [0, 1].map(|side| expected(COUNT, side, max_groups)), "{limit}");
        }
    }
}
