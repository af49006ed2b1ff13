//! Tables of the keys of spilled entries, in bounded memory: [`for_each_table`].

use super::entries::{EntrySpill, PendingEntry};
use super::key_set::PARTITIONS;
use super::key_table::KeyTable;
use crate::spill::SpillError;

/// What a table stores for a key: the values of all its entries, merged in any order.
pub(super) trait EntryValue: Copy + Default {
    /// The value of one entry.
    fn of(entry: &PendingEntry) -> Self;

    /// The value of two sets of entries of the same key.
    fn merge(self, other: Self) -> Self;
}

/// A table of all keys of a partition.
pub(super) struct SpilledTable<'a, V> {
    pub(super) table: KeyTable<V>,
    /// Number of entries of the keys.
    pub(super) entry_count: u64,
    /// Where the entries are, in case they are read again.
    pub(super) spill: &'a EntrySpill,
    pub(super) partition: usize,
}

/// Calls `each` with tables that together have every key of a partition once. A table takes at most about `limit` bytes of
/// memory: the partition is split if it has more keys. Removes the entries of each table after the call.
pub(super) fn for_each_table<V: EntryValue>(
    spill: &EntrySpill,
    partition: usize,
    limit: usize,
    each: &mut impl FnMut(SpilledTable<'_, V>) -> Result<(), SpillError>,
) -> Result<(), SpillError> {
    // A key, its value and its tag; at least 72 % of the slots of a table are taken.
    let key_len = (size_of::<u128>() + size_of::<V>() + 1) * 7 / 5;
    if spill.count(partition).saturating_mul(key_len) > limit
        && let Some(parts) = spill.split(partition, limit / 2)?
    {
        return (0..PARTITIONS).try_for_each(|partition| for_each_table(&parts, partition, limit, each));
    }
    let mut table: KeyTable<V> = KeyTable::new(spill.key_prefix_bits());
    // Probably fewer, but growing to half of it or less costs more time than memory.
    table.expect(spill.count(partition));
    let (mut keys, mut values, mut entry_count) = (Vec::new(), Vec::new(), 0);
    spill.visit_blocks(partition, |block| {
        keys.clear();
        values.clear();
        spill.entries(block).for_each(|(entry, _)| {
            keys.push(entry.key);
            values.push(V::of(&entry));
        });
        entry_count += keys.len() as u64;
        table.upsert_all(&keys, |i, known, is_new| *known = if is_new { values[i] } else { known.merge(values[i]) });
        Ok(())
    })?;
    each(SpilledTable { table, entry_count, spill, partition })?;
    spill.clear(partition);
    Ok(())
}
