//! Counts distinct keys of several kinds, exactly and in bounded memory: [`KeyCounter`].
//!
//! A key may be of several kinds at once, such as the rungs on which it is the key of some row; kinds are the bits of a
//! byte. No key needs an answer before the end, so each worker collects keys in a [`KeyBuffer`] until they are many in
//! relation to the table of their partition. Then the table is read into the cache once for all of them.

use super::entries::{EntryLayout, EntrySpill, EntryTexts, PendingEntry};
use super::key_set::{Inserted, KeySet, PARTITIONS, PartitionedKeys, partition_of};
use super::key_table::KeyTable;
use crate::spill::SpillError;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Most kinds of keys.
pub(crate) const MAX_KINDS: usize = 8;

/// Keys are inserted when a partition has at least this number and an eighth of the keys in its table, or when the buffer
/// is full.
const MIN_INSERT: usize = 1 << 10;

/// Distinct keys with their kinds, shared by workers.
#[derive(Debug)]
pub(crate) struct KeyCounter {
    /// Most keys of a partition in a buffer.
    max_buffered: usize,
    keys: KeySet<u8>,
    spill: EntrySpill,
}

/// The keys of one worker that are not in the tables yet.
#[derive(Debug)]
pub(crate) struct KeyBuffer {
    partitions: Vec<BufferedKeys>,
    /// Keys and kinds that did not fit into the tables.
    unknown: Vec<(u128, u32)>,
    partitioned: PartitionedKeys,
    /// How often a key of the tables got these kinds for the first time, by the bits of the kinds.
    new_kinds: Vec<u64>,
}

/// The buffered keys of a partition.
#[derive(Clone, Debug, Default)]
struct BufferedKeys {
    keys: Vec<u128>,
    kinds: Vec<u8>,
    /// Keys that the table of the partition had at the last insertion.
    table_len: usize,
}

impl BufferedKeys {
    /// Most bytes of memory of a key: vectors may have twice the capacity that they use.
    const KEY_LEN: usize = 2 * (size_of::<u128>() + size_of::<u8>());
}

impl Default for KeyBuffer {
    fn default() -> KeyBuffer {
        KeyBuffer {
            partitions: vec![BufferedKeys::default(); PARTITIONS],
            unknown: Vec::new(),
            partitioned: PartitionedKeys::default(),
            new_kinds: vec![0; 1 << MAX_KINDS],
        }
    }
}

impl KeyBuffer {
    /// Adds a key with the bits of its kinds.
    #[inline(always)]
    pub(crate) fn push(&mut self, key: u128, kinds: u8) {
        let buffered = &mut self.partitions[partition_of(key, 0)];
        buffered.keys.push(key);
        buffered.kinds.push(kinds);
    }
}

impl KeyCounter {
    /// A counter for this number of workers. Keys and buffers take about `limit` bytes of memory; further keys go to a
    /// temporary file in `directory`.
    pub(crate) fn new(limit: usize, workers: usize, directory: &Path) -> KeyCounter {
        let layout = EntryLayout { has_kinds: true, ..EntryLayout::default() };
        KeyCounter {
            max_buffered: limit / 8 / PARTITIONS / workers.max(1) / BufferedKeys::KEY_LEN,
            keys: KeySet::new(limit / 8 * 6),
            spill: EntrySpill::new(layout, limit / 8, directory),
        }
    }

    /// Inserts the keys of those partitions of which the buffer has many, beginning with `first_partition`. Workers that
    /// begin with different partitions do not wait for each other.
    pub(crate) fn insert_full(&self, buffer: &mut KeyBuffer, first_partition: usize) -> Result<(), SpillError> {
        for partition in (0..PARTITIONS).map(|i| (first_partition + i) % PARTITIONS) {
            let buffered = &buffer.partitions[partition];
            if buffered.keys.len() >= self.max_buffered.min(MIN_INSERT.max(buffered.table_len / 8)) {
                self.insert(partition, buffer);
            }
        }
        self.spill_unknown(buffer)
    }

    /// Inserts all keys of a buffer.
    pub(crate) fn insert_all(&self, buffer: &mut KeyBuffer) -> Result<(), SpillError> {
        (0..PARTITIONS).try_for_each(|partition| {
            self.insert(partition, buffer);
            self.spill_unknown(buffer)
        })
    }

    fn insert(&self, partition: usize, buffer: &mut KeyBuffer) {
        let BufferedKeys { keys, kinds, table_len } = &mut buffer.partitions[partition];
        *table_len = self.keys.insert_partition(partition, (keys, kinds), |key, kinds, inserted| match inserted {
            Inserted::New(known) | Inserted::Present(known) => {
                buffer.new_kinds[usize::from(kinds & !*known)] += 1;
                *known |= kinds;
            }
            Inserted::Unknown => buffer.unknown.push((key, u32::from(kinds))),
        });
        keys.clear();
        kinds.clear();
    }

    /// Spills the keys that did not fit into the tables, with their kinds.
    fn spill_unknown(&self, buffer: &mut KeyBuffer) -> Result<(), SpillError> {
        let KeyBuffer { unknown, partitioned, .. } = buffer;
        if unknown.is_empty() {
            return Ok(());
        }
        partitioned.fill(unknown.iter().copied(), 0);
        unknown.clear();
        let entry = |key, kinds| PendingEntry { key, kinds: kinds as u8, ..PendingEntry::default() };
        self.spill.extend(partitioned, |_| true, |key, kinds| (entry(key, kinds), EntryTexts::default()))
    }

    /// The number of distinct keys of each kind, found by `threads` threads with about `limit` bytes of memory.
    /// [`KeyCounter::insert_all`] must have been called for each of `buffers`.
    pub(crate) fn finish(
        self,
        buffers: &[KeyBuffer],
        threads: usize,
        limit: usize,
    ) -> Result<[u64; MAX_KINDS], SpillError> {
        let KeyCounter { keys, spill, .. } = self;
        // Frees memory for the spilled keys.
        drop(keys);
        let mut counts = [0; MAX_KINDS];
        let new_kinds = buffers.iter().flat_map(|buffer| buffer.new_kinds.iter().enumerate());
        new_kinds.for_each(|(kinds, count)| add(&mut counts, kinds as u8, *count));
        let next_partition = AtomicUsize::new(0);
        let count_some = || {
            let mut counts = [0; MAX_KINDS];
            loop {
                let partition = next_partition.fetch_add(1, Ordering::Relaxed);
                if partition >= PARTITIONS {
                    return Ok(counts);
                }
                count_spilled(&spill, partition, limit / threads.max(1), &mut counts)?;
            }
        };
        let counted: Vec<Result<_, SpillError>> = thread::scope(|scope| {
            // Without further threads, this one does the same work.
            let spawn = |_| thread::Builder::new().spawn_scoped(scope, count_some).ok();
            let others: Vec<_> = (1..threads).filter_map(spawn).collect();
            let own = count_some();
            let joined = others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            joined.chain([own]).collect()
        });
        for of_thread in counted {
            counts.iter_mut().zip(of_thread?).for_each(|(count, more)| *count += more);
        }
        Ok(counts)
    }
}

/// Counts the keys of a partition with about `limit` bytes of memory, and removes them.
fn count_spilled(
    spill: &EntrySpill,
    partition: usize,
    limit: usize,
    counts: &mut [u64; MAX_KINDS],
) -> Result<(), SpillError> {
    // Most bytes of memory of a key in a table.
    const TABLE_KEY_LEN: usize = 26;
    if spill.count(partition).saturating_mul(TABLE_KEY_LEN) > limit
        && let Some(parts) = spill.split(partition, limit / 2)?
    {
        return (0..PARTITIONS).try_for_each(|partition| count_spilled(&parts, partition, limit, counts));
    }
    let mut table: KeyTable<u8> = KeyTable::new(spill.key_prefix_bits());
    let (mut keys, mut kinds) = (Vec::new(), Vec::new());
    spill.visit_blocks(partition, |block| {
        keys.clear();
        kinds.clear();
        spill.entries(block).for_each(|(entry, _)| {
            keys.push(entry.key);
            kinds.push(entry.kinds);
        });
        table.upsert_all(&keys, |i, known, _| *known |= kinds[i]);
        Ok(())
    })?;
    spill.clear(partition);
    table.iter().for_each(|(_, kinds)| add(counts, kinds, 1));
    Ok(())
}

fn add(counts: &mut [u64; MAX_KINDS], kinds: u8, keys: u64) {
    counts.iter_mut().enumerate().for_each(|(kind, count)| *count += u64::from(kinds >> kind & 1) * keys);
}

#[cfg(test)]
mod tests {
    use super::super::key_set::key_number;
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn counts_agree_with_sets() {
        let directory = tempfile::tempdir().unwrap();
        let hash = |i: u64| key_number(&crate::key::KeyAlgorithm::Xxh3.key(&i.to_le_bytes()));
        let keys: Vec<(u128, u8)> = (0..40_000u64).map(|i| (hash(i * i % 9_001), 1 << (i % 3) | 8)).collect();
        let mut sets = vec![HashSet::new(); MAX_KINDS];
        for (key, kinds) in &keys {
            (0..MAX_KINDS).filter(|kind| kinds >> kind & 1 == 1).for_each(|kind| {
                sets[kind].insert(*key);
            });
        }
        for limit in [usize::MAX, 300_000, 0] {
            let counter = KeyCounter::new(limit, 2, directory.path());
            let mut buffers = [KeyBuffer::default(), KeyBuffer::default()];
            for (i, chunk) in keys.chunks(1_500).enumerate() {
                chunk.iter().for_each(|(key, kinds)| buffers[i % 2].push(*key, *kinds));
                counter.insert_full(&mut buffers[i % 2], i % PARTITIONS).unwrap();
            }
            buffers.iter_mut().try_for_each(|buffer| counter.insert_all(buffer)).unwrap();
            assert_eq!(counter.spill.written_len() > 0, limit < usize::MAX);
            let counts = counter.finish(&buffers, 2, limit).unwrap();
            assert!(counts.into_iter().eq(sets.iter().map(|set| set.len() as u64)), "{limit}");
        }
    }
}
