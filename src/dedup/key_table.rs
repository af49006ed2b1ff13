//! A compact hash table for keys that are hashes already: [`KeyTable`]. It is fast although neither the table nor a batch of
//! lookups fits into the cache.
//!
//! The home group of a key follows from its value: `key / 2^128 * groups`. A group has 16 slots. A tag, one byte of the
//! key, is stored apart for each slot, and the 16 tags of a group are compared at once: a new key costs one comparison of
//! tags and one write, a known key one comparison of tags and one of keys, almost without mispredicted branches. A key
//! that does not fit into its home group is stored in the next group with a free slot. Keys are looked up in short batches,
//! in three steps: find the home groups, find the slots, compare the keys. Each step prefetches what the next one reads, and
//! is a batch ahead of it ([`Lookahead`]).
//!
//! A slot costs 17 bytes and the size of the value; 74 to 92 % of the slots are taken. Growing appends blocks and then moves
//! keys within the table, from the end. That takes a third of the time if the table always grows by a quarter, so that the
//! number of keys to expect is used if it is known.

use super::block_arena::{BlockArena, Blocks};
use crate::kernel::{positions_of, prefetch};
use std::cmp::Reverse;
use std::iter;
use std::sync::Arc;

/// Slots of a group.
const GROUP_SLOTS: usize = 16;

/// Groups of a block, the unit of allocation.
const BLOCK_GROUPS: usize = 64;

/// Up to this number of blocks a table doubles when it grows.
const MAX_DOUBLING_BLOCKS: usize = 4;

/// Largest share of taken slots, in hundredths. Beyond it, keys of a group often do not fit into the group.
const MAX_LOAD: usize = 92;

/// Keys are looked up in batches of this length: the first step prefetches the tags of all, the second one the slots.
const BATCH_LEN: usize = 16;

/// The tag of a free slot.
const FREE_TAG: u8 = 0;

/// Keys of one partition, with values. All keys have their first `prefix_bits` bits in common.
#[derive(Debug)]
pub(crate) struct KeyTable<V> {
    blocks: Blocks<TableBlock<V>>,
    len: usize,
    /// Groups that can be the home of a key. A few more may follow, for keys that do not fit into the last ones.
    groups: usize,
    prefix_bits: u32,
    /// See [`KeyTable::expect`].
    expected: usize,
}

/// Groups that are allocated together. The slots of a group are filled in order.
#[derive(Debug, Clone, Copy)]
struct TableBlock<V> {
    heads: [GroupHead<V>; BLOCK_GROUPS],
    keys: [[u128; GROUP_SLOTS]; BLOCK_GROUPS],
}

/// The tags and values of a group, which are read before the keys. Short values are in the cache line of the tags.
#[derive(Debug, Clone, Copy, Default)]
struct GroupHead<V> {
    /// [`FREE_TAG`], or a byte of the key in the slot.
    tags: [u8; GROUP_SLOTS],
    values: [V; GROUP_SLOTS],
}

/// Where the keys of the next batches probably are.
struct Lookahead<'a> {
    /// The keys that are not in a batch yet.
    keys: &'a [u128],
    next: Batch<'a>,
    /// The batch after the next one, of which only the home groups are known.
    after_next: Batch<'a>,
}

/// Keys that are looked up together.
#[derive(Clone, Copy)]
struct Batch<'a> {
    keys: &'a [u128],
    /// The home groups of the keys; once the slots are known, the groups after them for keys whose home group is full and has
    /// no such tag.
    groups: [u32; BATCH_LEN],
    /// In that group the first slot with the tag of the key, otherwise the first free slot, otherwise [`GROUP_SLOTS`].
    slots: [u8; BATCH_LEN],
}

impl<'a> Lookahead<'a> {
    /// Begins with the first batch of `keys`. The table has groups.
    #[inline(always)]
    fn new<V: Copy + Default>(table: &KeyTable<V>, keys: &'a [u128]) -> Lookahead<'a> {
        let none = Batch { keys: &[], groups: [0; BATCH_LEN], slots: [0; BATCH_LEN] };
        let mut lookahead = Lookahead { keys, next: none, after_next: none };
        lookahead.advance(table);
        lookahead.advance(table);
        lookahead
    }

    /// Returns the next batch, and looks up the following ones. Its groups and slots were found before the keys of
    /// the previous batch were inserted.
    #[inline(always)]
    fn advance<V: Copy + Default>(&mut self, table: &KeyTable<V>) -> Batch<'a> {
        let current = self.next;
        self.next = self.after_next;
        self.next.find_slots(table);
        (self.after_next.keys, self.keys) = self.keys.split_at(self.keys.len().min(BATCH_LEN));
        self.after_next.find_homes(table);
        current
    }
}

impl Batch<'_> {
    /// Finds and prefetches the home groups.
    #[inline(always)]
    fn find_homes<V: Copy + Default>(&mut self, table: &KeyTable<V>) {
        for (home, &key) in self.groups.iter_mut().zip(self.keys) {
            let at = table.home(key);
            *home = at as u32;
            prefetch(&table.blocks[at / BLOCK_GROUPS].heads, at % BLOCK_GROUPS);
        }
    }

    /// Finds and prefetches the slots.
    #[inline(always)]
    fn find_slots<V: Copy + Default>(&mut self, table: &KeyTable<V>) {
        for ((slot, at), &key) in self.slots.iter_mut().zip(&mut self.groups).zip(self.keys) {
            let mut found = table.first_slot_for(key, *at as usize);
            if found == GROUP_SLOTS && (*at as usize + 1) < table.groups {
                *at += 1;
                found = table.first_slot_for(key, *at as usize);
            }
            *slot = found as u8;
            let (block, group) = table.group(*at as usize);
            prefetch(&block.keys[group], found);
        }
    }

    /// The keys with their groups and slots.
    #[inline(always)]
    fn places(&self) -> impl Iterator<Item = (u128, usize, usize)> {
        let places = self.keys.iter().zip(&self.groups).zip(&self.slots);
        places.map(|((&key, &group), &slot)| (key, group as usize, usize::from(slot)))
    }
}

impl<V: Copy + Default> KeyTable<V> {
    /// An empty table for keys that have their first `prefix_bits` bits in common.
    pub(crate) fn new(prefix_bits: u32) -> KeyTable<V> {
        KeyTable::in_arena(prefix_bits, BlockArena::of_table())
    }

    /// As [`KeyTable::new`], with the memory of `arena`.
    pub(super) fn in_arena(prefix_bits: u32, arena: Arc<BlockArena>) -> KeyTable<V> {
        KeyTable { blocks: Blocks::new(arena), len: 0, groups: 0, prefix_bits, expected: 0 }
    }

    /// A table of distinct `keys`, with little space for more.
    pub(crate) fn of(keys: &[u128], prefix_bits: u32) -> KeyTable<V> {
        let mut table = KeyTable::new(prefix_bits);
        if keys.is_empty() {
            return table;
        }
        table.set_blocks(blocks_of(keys.len()));
        let mut taken = vec![0; table.groups];
        keys.iter().for_each(|&key| table.reinsert(table.home(key), key, V::default(), &mut taken));
        table.len = keys.len();
        table
    }

    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory of the table.
    pub(crate) fn memory_len(&self) -> usize {
        self.blocks.memory_len()
    }

    /// Bytes of memory of a table of `count` keys, see [`KeyTable::of`].
    pub(crate) fn len_of(count: usize) -> usize {
        if count == 0 { 0 } else { blocks_of(count).saturating_mul(size_of::<TableBlock<V>>()) }
    }

    /// Number of keys that fit into `bytes` of memory.
    pub(crate) fn keys_in(bytes: usize) -> usize {
        bytes / size_of::<TableBlock<V>>() * (GROUP_SLOTS * BLOCK_GROUPS) / 100 * MAX_LOAD
    }

    /// Expects that the table will have `count` keys in the end; 0 if that is not known.
    pub(crate) fn expect(&mut self, count: usize) {
        self.expected = count;
    }

    /// Bytes of memory that [`KeyTable::grow`] takes, of which it frees a part.
    pub(crate) fn growth_len(&self) -> usize {
        let more = self.grown() - self.groups / BLOCK_GROUPS;
        // The pointers to the blocks, and two bytes per group while keys move.
        more * (size_of::<TableBlock<V>>() + size_of::<usize>()) + self.groups * 2
    }

    /// Number of keys that can be inserted before the table has to grow.
    pub(crate) fn free_len(&self) -> usize {
        (self.groups * GROUP_SLOTS * MAX_LOAD / 100).saturating_sub(self.len)
    }

    /// Number of blocks after growing: enough for the expected keys, but at most twice and at least five quarters as many as
    /// now. So keys move rarely if the expectation is right, and little memory is wasted if it is wrong.
    fn grown(&self) -> usize {
        match self.groups / BLOCK_GROUPS {
            0 => 1,
            few if few < MAX_DOUBLING_BLOCKS => few * 2,
            many => blocks_of(self.expected).clamp(many + many / 4, many * 2),
        }
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
            self.upsert_some(&keys[done..end], |i, value, is_new| change(done + i, value, is_new));
            done = end;
        }
    }

    /// Inserts `keys`, for which the table has space.
    #[inline(always)]
    fn upsert_some(&mut self, keys: &[u128], mut change: impl FnMut(usize, &mut V, bool)) {
        let mut lookahead = Lookahead::new(self, keys);
        let mut done = 0;
        while done < keys.len() {
            let batch = lookahead.advance(self);
            for (i, (key, home, slot)) in (done..).zip(batch.places()) {
                if slot < GROUP_SLOTS {
                    let (block, group) = self.group_mut(home);
                    let (head, stored) = (&mut block.heads[group], &mut block.keys[group][slot]);
                    // If the slot is still free, no key was inserted into the group in between.
                    if head.tags[slot] == FREE_TAG {
                        (head.tags[slot], *stored) = (tag(key), key);
                        change(i, &mut head.values[slot], true);
                        self.len += 1;
                        continue;
                    }
                    if *stored == key {
                        change(i, &mut head.values[slot], false);
                        continue;
                    }
                }
                let (group, slot, is_new) = self.insert_after(key, home);
                let (block, group) = self.group_mut(group);
                change(i, &mut block.heads[group].values[slot], is_new);
            }
            done += batch.keys.len();
        }
    }

    /// Finds or inserts a key in group `at` or after it, and returns its group, its slot, and whether it is new.
    #[inline(never)]
    fn insert_after(&mut self, key: u128, at: usize) -> (usize, usize, bool) {
        let (at, slot, is_present) = self.search(key, at);
        if !is_present {
            self.set_slot(at, slot, key, V::default());
            self.len += 1;
        }
        (at, slot, !is_present)
    }

    /// Looks up `keys` and calls `found` for each with its index, and its value if the table has it.
    pub(crate) fn get_all(&mut self, keys: &[u128], mut found: impl FnMut(usize, Option<&mut V>)) {
        if self.groups == 0 {
            return (0..keys.len()).for_each(|i| found(i, None));
        }
        let mut lookahead = Lookahead::new(self, keys);
        let mut done = 0;
        while done < keys.len() {
            let batch = lookahead.advance(self);
            for (i, (key, home, slot)) in (done..).zip(batch.places()) {
                match self.find(key, home, slot) {
                    Some((group, slot)) => {
                        let (block, group) = self.group_mut(group);
                        found(i, Some(&mut block.heads[group].values[slot]));
                    }
                    None => found(i, None),
                }
            }
            done += batch.keys.len();
        }
    }

    /// Calls `found` with the index of each of `keys` that the table has.
    pub(crate) fn contains_all(&self, keys: &[u128], mut found: impl FnMut(usize)) {
        if self.groups == 0 {
            return;
        }
        let mut lookahead = Lookahead::new(self, keys);
        let mut done = 0;
        while done < keys.len() {
            let batch = lookahead.advance(self);
            let places = (done..).zip(batch.places());
            let present = places.filter(|(_, (key, home, slot))| self.find(*key, *home, *slot).is_some());
            present.for_each(|(i, _)| found(i));
            done += batch.keys.len();
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

    /// The keys in ascending order. Homes are in the order of keys, and a key is in a group after its home only if all groups
    /// between them are full. Thus a run of full groups, with the next one, has keys that are less than those of later groups.
    pub(crate) fn sorted_keys(&self) -> impl Iterator<Item = u128> {
        let mut groups = self.blocks.iter().flat_map(|block| block.heads.iter().zip(&block.keys));
        // The keys of a run of groups, the least one last.
        let mut run = Vec::new();
        iter::from_fn(move || {
            if run.is_empty() {
                for (head, keys) in groups.by_ref() {
                    let count = taken_slots(&head.tags);
                    run.extend_from_slice(&keys[..count]);
                    if count < GROUP_SLOTS && !run.is_empty() {
                        break;
                    }
                }
                run.sort_unstable_by_key(|key| Reverse(*key));
            }
            run.pop()
        })
    }

    /// Finds the group and slot of a key whose [`Lookahead`] found `home` and `slot`.
    #[inline(always)]
    fn find(&self, key: u128, home: usize, slot: usize) -> Option<(usize, usize)> {
        if slot < GROUP_SLOTS {
            let (block, group) = self.group(home);
            if block.heads[group].tags[slot] == FREE_TAG {
                return None;
            }
            if block.keys[group][slot] == key {
                return Some((home, slot));
            }
        }
        let (group, slot, is_present) = self.search(key, home);
        is_present.then_some((group, slot))
    }

    /// The block of a group that exists, and the index of the group in it.
    #[inline(always)]
    fn group(&self, group: usize) -> (&TableBlock<V>, usize) {
        (&self.blocks[group / BLOCK_GROUPS], group % BLOCK_GROUPS)
    }

    #[inline(always)]
    fn group_mut(&mut self, group: usize) -> (&mut TableBlock<V>, usize) {
        (&mut self.blocks[group / BLOCK_GROUPS], group % BLOCK_GROUPS)
    }

    /// The first slot of a group with the tag of `key`, otherwise the first free one, otherwise [`GROUP_SLOTS`].
    #[inline(always)]
    fn first_slot_for(&self, key: u128, group: usize) -> usize {
        let (block, group) = self.group(group);
        let tags = &block.heads[group].tags;
        let (matches, free) = (positions_of(tag(key), tags), positions_of(FREE_TAG, tags));
        first_slot(if matches == 0 { free } else { matches })
    }

    #[inline(always)]
    fn home(&self, key: u128) -> usize {
        home(key, self.groups, self.prefix_bits)
    }

    /// Finds group and slot of `key`, in group `at` or after it, and true; or the free slot for it, which may be in a new
    /// group after the last, and false.
    #[inline(never)]
    fn search(&self, key: u128, mut at: usize) -> (usize, usize, bool) {
        let tag = tag(key);
        while at < self.blocks.len() * BLOCK_GROUPS {
            let (block, group) = self.group(at);
            let tags = &block.heads[group].tags;
            let mut matches = positions_of(tag, tags);
            while matches != 0 {
                let slot = first_slot(matches);
                if block.keys[group][slot] == key {
                    return (at, slot, true);
                }
                matches &= matches - 1;
            }
            let free = positions_of(FREE_TAG, tags);
            if free != 0 {
                return (at, first_slot(free), false);
            }
            at += 1;
        }
        (at, 0, false)
    }

    #[inline(always)]
    fn set_slot(&mut self, group: usize, slot: usize, key: u128, value: V) {
        if group / BLOCK_GROUPS == self.blocks.len() {
            self.add_blocks(group / BLOCK_GROUPS + 1);
        }
        let (block, group) = self.group_mut(group);
        let head = &mut block.heads[group];
        (head.tags[slot], head.values[slot], block.keys[group][slot]) = (tag(key), value, key);
    }

    /// Appends blocks until there are `count`.
    #[cold]
    fn add_blocks(&mut self, count: usize) {
        let heads = [GroupHead::default(); BLOCK_GROUPS];
        self.blocks.grow_to(count, TableBlock { heads, keys: [[0; GROUP_SLOTS]; BLOCK_GROUPS] });
    }

    fn set_blocks(&mut self, count: usize) {
        self.groups = count * BLOCK_GROUPS;
        self.add_blocks(count);
    }

    /// Appends blocks, see [`KeyTable::grown`], and moves every key to its new home. Homes are in the order of keys, so that
    /// going from the last group to the first, hardly any key moves to a group that still holds old keys.
    #[inline(never)]
    pub(crate) fn grow(&mut self) {
        let before = self.blocks.len() * BLOCK_GROUPS;
        self.set_blocks(self.grown());
        // Counts the taken slots of the groups that are done. Reading a byte that was just written is faster than reading
        // the sixteen tags around it.
        let mut taken = vec![0; self.blocks.len() * BLOCK_GROUPS];
        let mut later = Vec::new();
        for old in (0..before).rev() {
            let (block, group) = self.group_mut(old);
            let (keys, GroupHead { tags, values }) = (block.keys[group], std::mem::take(&mut block.heads[group]));
            let count = taken_slots(&tags);
            for (&key, &value) in keys[..count].iter().zip(&values[..count]) {
                let home = self.home(key);
                match home < old {
                    true => later.push((key, value)),
                    false => self.reinsert(home, key, value, &mut taken),
                }
            }
        }
        later.into_iter().for_each(|(key, value)| self.reinsert(self.home(key), key, value, &mut taken));
    }

    /// Stores a key in the first group from its home on that has a free slot.
    #[inline(always)]
    fn reinsert(&mut self, home: usize, key: u128, value: V, taken: &mut Vec<u8>) {
        let mut group = home;
        while taken.get(group).is_some_and(|count| usize::from(*count) == GROUP_SLOTS) {
            group += 1;
        }
        if group == taken.len() {
            taken.resize(group + BLOCK_GROUPS, 0);
        }
        self.set_slot(group, usize::from(taken[group]) % GROUP_SLOTS, key, value);
        taken[group] += 1;
    }
}

/// The first slot of a mask of slots; [`GROUP_SLOTS`] if there is none.
#[inline(always)]
fn first_slot(mask: u32) -> usize {
    (mask | 1 << GROUP_SLOTS).trailing_zeros() as usize
}

/// Number of taken slots of a group.
#[inline(always)]
fn taken_slots(tags: &[u8; GROUP_SLOTS]) -> usize {
    first_slot(positions_of(FREE_TAG, tags))
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

/// Number of blocks for this number of keys.
fn blocks_of(keys: usize) -> usize {
    keys.saturating_mul(100) / (MAX_LOAD * GROUP_SLOTS * BLOCK_GROUPS) + 1
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
        assert!(table.sorted_keys().eq(map.keys().copied()));
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
        assert!(none.len() == 0 && none.sorted_keys().next().is_none());
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

    /// A table grows to the expected length, but at most to twice and at least to five quarters of its length.
    #[test]
    fn growth_depends_on_the_expected_number_of_keys() {
        let mut table: KeyTable<u32> = KeyTable::new(0);
        let expectations = [0, usize::MAX, 13_000, 1_000, 70_000];
        let mut blocks = Vec::new();
        for (i, key) in (0..).map(|i| (i, key(u64::from(i)))) {
            if table.free_len() == 0 {
                let Some(expected) = expectations.get(blocks.len().saturating_sub(2)) else { break };
                table.expect(*expected);
                let (before, growth) = (table.memory_len(), table.growth_len());
                table.grow();
                assert!(table.memory_len() - before <= growth);
                blocks.push(table.groups / BLOCK_GROUPS);
            }
            table.upsert_all(&[key], |_, value, is_new| {
                assert!(is_new);
                *value = i;
            });
        }
        assert_eq!(blocks, [1, 2, 4, 8, 14, 17, 34]);
        let mut values: Vec<u32> = table.iter().map(|(_, value)| value).collect();
        values.sort_unstable();
        assert!(values.into_iter().eq(0..table.len() as u32));
    }
}
