//! The keys of pending rows that a job adds to the seen store: [`NewKeys`].
//!
//! Workers decide about partitions out of order, but a run of keys is written in order. The keys of a partition that do not
//! fit into memory are therefore stored in a temporary file.

use super::summary::DedupError;
use crate::dedup::KeyTable;
use crate::dedup::seen::{RunWriter, SeenError};
use crate::spill::{FileRange, ScratchFile, SpillError};
use std::iter::{self, Peekable};
use std::path::Path;

/// Keys that are written to the temporary file and read back at a time.
const BLOCK_KEYS: usize = 4 << 10;

/// Minimum number of keys of a partition in memory.
const MIN_HELD: usize = 256;

/// The new keys of pending rows, in a temporary file. Workers share them.
#[derive(Debug)]
pub(super) struct NewKeys {
    file: ScratchFile,
    /// Maximum number of keys of a partition in memory.
    max_held: usize,
}

/// The new keys of the pending rows of a partition, ascending.
#[derive(Debug, Default)]
pub(super) struct PartitionKeys {
    written: Vec<FileRange>,
    /// The last keys.
    held: Vec<u128>,
}

impl NewKeys {
    /// No keys. Those of a partition take at most about `limit` bytes of memory; further ones go to a temporary file in
    /// `directory`.
    pub(super) fn new(limit: usize, directory: &Path) -> NewKeys {
        // Vectors double when they grow, so that a power of two wastes no capacity.
        let max_held = 1 << (limit / size_of::<u128>()).max(MIN_HELD).ilog2();
        NewKeys { file: ScratchFile::new(directory), max_held }
    }

    /// Adds the next key of a partition, which is greater than those before.
    pub(super) fn push(&self, keys: &mut PartitionKeys, key: u128) -> Result<(), SpillError> {
        if keys.held.len() == self.max_held {
            for block in keys.held.chunks(BLOCK_KEYS) {
                let bytes: Vec<u8> = block.iter().flat_map(|key| key.to_le_bytes()).collect();
                keys.written.push(self.file.append(&bytes)?);
            }
            keys.held.clear();
        }
        keys.held.push(key);
        Ok(())
    }

    /// Writes the keys of a partition to the run of a store: those of its table and those of its pending rows, which differ.
    pub(super) fn write(
        &self,
        keys: &PartitionKeys,
        table: &KeyTable<()>,
        writer: &mut RunWriter,
    ) -> Result<(), DedupError> {
        let (mut known, mut bytes) = (table.sorted_keys().peekable(), Vec::new());
        for range in &keys.written {
            self.file.read(*range, &mut bytes)?;
            let keys = bytes.as_chunks().0.iter().map(|key| u128::from_le_bytes(*key));
            merge(&mut known, keys, writer)?;
        }
        merge(&mut known, keys.held.iter().copied(), writer)?;
        Ok(writer.extend(known)?)
    }

    /// Bytes written to the temporary file.
    pub(super) fn written_len(&self) -> u64 {
        self.file.written_len()
    }
}

/// Writes `keys` to the run, each after the `known` keys that are less.
fn merge(
    known: &mut Peekable<impl Iterator<Item = u128>>,
    mut keys: impl Iterator<Item = u128>,
    writer: &mut RunWriter,
) -> Result<(), SeenError> {
    keys.try_for_each(|key| writer.extend(iter::from_fn(|| known.next_if(|known| *known < key)).chain([key])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dedup::seen::SeenStore;
    use crate::dedup::{PARTITION_BITS, key_number};
    use crate::key::KeyAlgorithm;
    use std::collections::BTreeSet;

    /// Keys of tables and of pending rows are written in order, from memory and from a file.
    #[test]
    fn keys_are_written_in_order_with_any_limit() {
        // The first bits of all keys are those of partition 0.
        let key = |i: u64| key_number(&KeyAlgorithm::Xxh3.key(&i.to_le_bytes())) >> PARTITION_BITS;
        let known: BTreeSet<u128> = (0..20_000).map(key).collect();
        let pending: BTreeSet<u128> = (20_000..50_000).map(key).collect();
        let none = BTreeSet::new();
        for (known, pending) in [(&known, &pending), (&none, &pending), (&known, &none), (&none, &none)] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("seen");
            let all: BTreeSet<u128> = known.union(pending).copied().collect();
            for limit in [usize::MAX, 100_000, 0] {
                let table = KeyTable::of(&known.iter().copied().collect::<Vec<_>>(), PARTITION_BITS);
                let (new_keys, mut keys) = (NewKeys::new(limit, directory.path()), PartitionKeys::default());
                pending.iter().try_for_each(|key| new_keys.push(&mut keys, *key)).unwrap();
                assert_eq!(new_keys.written_len() > 0, limit < usize::MAX && !pending.is_empty());
                assert!(keys.held.capacity() * size_of::<u128>() <= limit.max(MIN_HELD * size_of::<u128>()));
                let mut store = SeenStore::open_to_add(&path, &[]).unwrap();
                let mut writer = store.writer().unwrap();
                new_keys.write(&keys, &table, &mut writer).unwrap();
                store.add(writer, None, None).unwrap();
                let mut cursor = store.cursor(0).unwrap();
                assert!(all.iter().all(|key| cursor.seek(*key).unwrap()) && store.count() == all.len() as u64);
                std::fs::remove_dir_all(&path).unwrap();
            }
        }
    }
}
