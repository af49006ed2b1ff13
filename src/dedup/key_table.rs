//! A compact hash table for keys that are hashes already: [`KeyTable`]. It is fast although neither the table nor a batch of
//! lookups fits into the cache.
//!
//! The home group of a key follows from its value: `key / 2^128 * groups`. A group has 16 slots. A tag, one byte of the
//! key, is stored apart for each slot, and the 16 tags of a group are compared at once: a new key costs one comparison of
//! tags and one write, a known key one comparison of tags and one of keys, almost without mispredicted branches. A key
//! that does not fit into its home group is stored in the next group with a free slot. A slot costs 17 bytes and the size
//! of the value; 72 to 90 % of the slots are taken. Growing appends blocks and then moves keys within the table, from the end.

use crate::kernel::{positions_of, prefetch};

/// Slots of a group.
const GROUP_SLOTS: usize = 16;

/// Groups of a block, the unit of allocation.
const BLOCK_GROUPS: usize = 16;

/// Up to this number of blocks a table doubles when it grows; larger tables grow by a quarter.
const MAX_DOUBLING_BLOCKS: usize = 16;

/// The slot of a key is prefetched this many keys before it is looked up, and the tags of its group twice as many keys
/// before.
const PREFETCH_DISTANCE: usize = 8;

/// The tag of a free slot.
const FREE_TAG: u8 = 0;

/// Keys of one partition, with values. All keys have their first `prefix_bits` bits in common.
#[derive(Debug, Clone)]
pub(crate) struct KeyTable<V> {
    blocks: Vec<Box<TableBlock<V>>>,
    len: usize,
    /// Groups that can be the home of a key. A few more may follow, for keys that do not fit into the last ones.
    groups: usize,
    prefix_bits: u32,
}

/// Groups that are allocated together. The slots of a group are filled in order.
#[derive(Debug, Clone, Default)]
struct TableBlock<V> {
    heads: [GroupHead<V>; BLOCK_GROUPS],
    keys: [[u128; GROUP_SLOTS]; BLOCK_GROUPS],
}

/// What is read of a group besides a key: short values are in the cache line of the tags.
#[derive(Debug, Clone, Default)]
struct GroupHead<V> {
    /// [`FREE_TAG`], or a byte of the key in the slot.
    tags: [u8; GROUP_SLOTS],
    values: [V; GROUP_SLOTS],
}

/// The result of a search, as group and slot.
enum SlotSearch {
    /// The slot of the key.
    Taken(usize, usize),
    /// The slot that the key would have.
    Free(usize, usize),
}

impl<V: Copy + Default> KeyTable<V> {
    /// An empty table for keys that have their first `prefix_bits` bits in common.
    pub(crate) fn new(prefix_bits: u32) -> KeyTable<V> {
        KeyTable { blocks: Vec::new(), len: 0, groups: 0, prefix_bits }
    }

    /// A table of distinct `keys`, with little space for more.
    pub(crate) fn of(keys: &[u128], prefix_bits: u32) -> KeyTable<V> {
        let mut table = KeyTable::new(prefix_bits);
        table.set_blocks((keys.len() * 20).div_ceil(17 * GROUP_SLOTS * BLOCK_GROUPS));
        let mut taken = vec![0; table.groups];
        keys.iter().for_each(|&key| table.reinsert(key, V::default(), &mut taken));
        table.len = keys.len();
        table
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The table has no keys.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory of the table.
    pub(crate) fn memory_len(&self) -> usize {
        self.blocks.len() * size_of::<TableBlock<V>>() + self.blocks.capacity() * size_of::<usize>()
    }

    /// Bytes of memory that [`KeyTable::grow`] takes, of which it frees a part.
    pub(crate) fn growth_len(&self) -> usize {
        let more = grown(self.groups / BLOCK_GROUPS) - self.groups / BLOCK_GROUPS;
        // The pointers to the blocks, and two bytes per group while keys move.
        more * (size_of::<TableBlock<V>>() + size_of::<usize>()) + self.groups * 2
    }

    /// Number of keys that can be inserted before the table has to grow.
    pub(crate) fn free_len(&self) -> usize {
        (self.groups * GROUP_SLOTS / 10 * 9).saturating_sub(self.len)
    }

    /// Inserts `keys` in order and calls `change` for each with its index, its value (the default if the key is new), and
    /// whether it is new. The table grows if needed.
    pub(crate) fn upsert_all(&mut self, keys: &[u128], mut change: impl FnMut(usize, &mut V, bool)) {
        let mut done = 0;
        while done < keys.len() {
            if self.free_len() == 0 {
                self.grow();
            }
            let end = (done + self.free_len()).min(keys.len());
            let some = &keys[done..end];
            for (i, &key) in some.iter().enumerate() {
                self.prefetch_ahead(some, i);
                let (group, slot, is_new) = match self.search(key) {
                    SlotSearch::Taken(group, slot) => (group, slot, false),
                    SlotSearch::Free(group, slot) => {
                        self.set_slot(group, slot, key, V::default());
                        self.len += 1;
                        (group, slot, true)
                    }
                };
                change(done + i, self.value(group, slot), is_new);
            }
            done = end;
        }
    }

    /// Looks up `keys` and calls `found` for each with its index, and its value if the table has it.
    pub(crate) fn get_all(&mut self, keys: &[u128], mut found: impl FnMut(usize, Option<&mut V>)) {
        for (i, &key) in keys.iter().enumerate() {
            self.prefetch_ahead(keys, i);
            match self.search(key) {
                SlotSearch::Taken(group, slot) => found(i, Some(self.value(group, slot))),
                SlotSearch::Free(..) => found(i, None),
            }
        }
    }

    /// Calls `found` with the index of each of `keys` that the table has.
    pub(crate) fn contains_all(&self, keys: &[u128], mut found: impl FnMut(usize)) {
        for (i, &key) in keys.iter().enumerate() {
            self.prefetch_ahead(keys, i);
            if let SlotSearch::Taken(..) = self.search(key) {
                found(i);
            }
        }
    }

    /// The keys and their values, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u128, V)> {
        let groups = self.blocks.iter().flat_map(|block| (0..BLOCK_GROUPS).map(move |group| (block, group)));
        groups.flat_map(|(block, group)| {
            let head = &block.heads[group];
            (0..taken_slots(&head.tags)).map(move |slot| (block.keys[group][slot], head.values[slot]))
        })
    }

    /// Prefetches what the lookups of keys after number `i` will read.
    #[inline(always)]
    fn prefetch_ahead(&self, keys: &[u128], i: usize) {
        if let Some((block, group)) = keys.get(i + 2 * PREFETCH_DISTANCE).and_then(|&key| self.group(self.home(key))) {
            prefetch(&block.heads, group);
        }
        let soon = keys.get(i + PREFETCH_DISTANCE);
        if let Some((&key, (block, group))) = soon.and_then(|key| Some((key, self.group(self.home(*key))?))) {
            // The first slot with the same tag, or the first free slot: nearly always the slot of the key.
            let tags = &block.heads[group].tags;
            let matches = positions_of(tag(key), tags);
            let slot = if matches == 0 { positions_of(FREE_TAG, tags) } else { matches }.trailing_zeros() as usize;
            prefetch(&block.keys[group], slot);
        }
    }

    /// The block of a group, and the index of the group in it.
    #[inline(always)]
    fn group(&self, group: usize) -> Option<(&TableBlock<V>, usize)> {
        self.blocks.get(group / BLOCK_GROUPS).map(|block| (&**block, group % BLOCK_GROUPS))
    }

    #[inline(always)]
    fn value(&mut self, group: usize, slot: usize) -> &mut V {
        &mut self.blocks[group / BLOCK_GROUPS].heads[group % BLOCK_GROUPS].values[slot]
    }

    #[inline(always)]
    fn home(&self, key: u128) -> usize {
        home(key, self.groups, self.prefix_bits)
    }

    /// Finds the slot of `key`, or the free slot for it, which may be in a new group after the last.
    #[inline(always)]
    fn search(&self, key: u128) -> SlotSearch {
        let (mut at, tag) = (self.home(key), tag(key));
        while let Some((block, group)) = self.group(at) {
            let tags = &block.heads[group].tags;
            let mut matches = positions_of(tag, tags);
            while matches != 0 {
                let slot = matches.trailing_zeros() as usize;
                if block.keys[group][slot] == key {
                    return SlotSearch::Taken(at, slot);
                }
                matches &= matches - 1;
            }
            let free = positions_of(FREE_TAG, tags);
            if free != 0 {
                return SlotSearch::Free(at, free.trailing_zeros() as usize);
            }
            at += 1;
        }
        SlotSearch::Free(at, 0)
    }

    #[inline(always)]
    fn set_slot(&mut self, group: usize, slot: usize, key: u128, value: V) {
        if group / BLOCK_GROUPS == self.blocks.len() {
            self.add_block();
        }
        let (block, group) = (&mut self.blocks[group / BLOCK_GROUPS], group % BLOCK_GROUPS);
        let head = &mut block.heads[group];
        (head.tags[slot], head.values[slot], block.keys[group][slot]) = (tag(key), value, key);
    }

    #[cold]
    fn add_block(&mut self) {
        self.blocks.push(Box::default());
    }

    fn set_blocks(&mut self, count: usize) {
        self.groups = count * BLOCK_GROUPS;
        self.blocks.reserve_exact(count.saturating_sub(self.blocks.len()));
        (self.blocks.len()..count).for_each(|_| self.add_block());
    }

    /// Appends blocks and moves every key to its new home. Homes are in the order of keys, so that going from the last
    /// group to the first, hardly any key moves to a group that still holds old keys.
    pub(crate) fn grow(&mut self) {
        let before = self.blocks.len() * BLOCK_GROUPS;
        self.set_blocks(grown(self.groups / BLOCK_GROUPS));
        // Counts the taken slots of the groups that are done. Reading a byte that was just written is faster than reading
        // the sixteen tags around it.
        let mut taken = vec![0; self.blocks.len() * BLOCK_GROUPS];
        let mut later = Vec::new();
        for old in (0..before).rev() {
            let (block, group) = (&mut self.blocks[old / BLOCK_GROUPS], old % BLOCK_GROUPS);
            let (keys, GroupHead { tags, values }) = (block.keys[group], std::mem::take(&mut block.heads[group]));
            let count = taken_slots(&tags);
            for (&key, &value) in keys[..count].iter().zip(&values[..count]) {
                match self.home(key) < old {
                    true => later.push((key, value)),
                    false => self.reinsert(key, value, &mut taken),
                }
            }
        }
        later.into_iter().for_each(|(key, value)| self.reinsert(key, value, &mut taken));
    }

    /// Stores a key in the first group from its home on that has a free slot.
    #[inline(always)]
    fn reinsert(&mut self, key: u128, value: V, taken: &mut Vec<u8>) {
        let mut group = self.home(key);
        while taken.get(group).is_some_and(|count| usize::from(*count) == GROUP_SLOTS) {
            group += 1;
        }
        if group == taken.len() {
            taken.resize(group + BLOCK_GROUPS, 0);
        }
        self.set_slot(group, usize::from(taken[group]), key, value);
        taken[group] += 1;
    }
}

/// Number of taken slots of a group.
#[inline(always)]
fn taken_slots(tags: &[u8; GROUP_SLOTS]) -> usize {
    GROUP_SLOTS - positions_of(FREE_TAG, tags).count_ones() as usize
}

/// The tag of a key: a byte that its home group does not depend on, and never [`FREE_TAG`].
#[inline(always)]
fn tag(key: u128) -> u8 {
    (key as u8).max(FREE_TAG + 1)
}

/// The home group of a key, by those of its first 64 bits that follow the prefix.
#[inline(always)]
fn home(key: u128, groups: usize, prefix_bits: u32) -> usize {
    let bits = ((key >> 64) as u64) << prefix_bits;
    ((u128::from(bits) * groups as u128) >> 64) as usize
}

/// Number of blocks after growing.
fn grown(blocks: usize) -> usize {
    match blocks {
        0 => 1,
        few if few < MAX_DOUBLING_BLOCKS => few * 2,
        many => many + many / 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::KeyAlgorithm;
    use std::collections::BTreeMap;

    fn key(i: u64) -> u128 {
        u128::from_be_bytes(KeyAlgorithm::Xxh3.key(&i.to_le_bytes()))
    }

    /// Runs the same operations on a table and on a map.
    fn check(keys: impl Iterator<Item = u128>, prefix_bits: u32) -> KeyTable<u32> {
        let (mut table, mut map) = (KeyTable::new(prefix_bits), BTreeMap::<u128, u32>::new());
        let keys: Vec<u128> = keys.collect();
        for some in keys.chunks(100) {
            table.upsert_all(some, |i, count: &mut u32, is_new| {
                let known = map.entry(some[i]).or_insert(0);
                assert_eq!(is_new, *known == 0);
                *known += 1;
                *count += 1;
                assert_eq!(count, known);
            });
        }
        assert_eq!(table.len(), map.len());
        let mut pairs: Vec<_> = table.iter().collect();
        pairs.sort_unstable();
        assert!(pairs.into_iter().eq(map.iter().map(|(key, count)| (*key, *count))));
        let mut got = Vec::new();
        table.get_all(&keys, |i, found| got.push((i, found.copied())));
        assert!(got.into_iter().eq(keys.iter().map(|key| map.get(key).copied()).enumerate()));
        table.get_all(&[key(u64::MAX)], |_, found| assert_eq!(found.is_some(), map.contains_key(&key(u64::MAX))));
        let sorted: Vec<u128> = map.keys().copied().collect();
        let (half, mut found) = (KeyTable::<()>::of(&sorted[..sorted.len() / 2], prefix_bits), Vec::new());
        half.contains_all(&sorted, |i| found.push(i));
        assert!(found.into_iter().eq(0..sorted.len() / 2) && half.len() == sorted.len() / 2);
        table
    }

    #[test]
    fn a_table_behaves_like_a_map() {
        check((0..30_000).map(|i| key(i * i % 20_011)), 0);
        // All keys with the same prefix.
        check((0..30_000).map(|i| key(i * 7 % 20_011) >> 6 | 5 << 122), 6);
        check([0, 1, u128::MAX, 0, 2, u128::MAX - 1].into_iter(), 0);
        let mut none = KeyTable::<()>::new(3);
        assert!(none.is_empty());
        none.get_all(&[5], |_, found| assert!(found.is_none()));
        none.contains_all(&[5], |_| panic!("the table is empty"));
    }

    /// Keys that are not hashes make the table slow, but not wrong.
    #[test]
    fn clustered_keys_are_stored() {
        check((0..3_000u128).map(|i| i * i % 1_009), 0);
        check((0..3_000u128).map(|i| u128::MAX - i % 1_009), 0);
        check((0..3_000u128).rev(), 0);
    }

    #[test]
    fn a_key_takes_less_than_24_bytes_of_memory() {
        let mut table: KeyTable<()> = KeyTable::new(0);
        for i in 0..200_000 {
            table.upsert_all(&[key(i)], |_, (), _| ());
            if i > 20_000 {
                let per_key = table.memory_len() as f64 / table.len() as f64;
                assert!(per_key < 24.0, "{per_key} at {i}");
            }
        }
    }
}
