//! A set of keys with values, compact and quick where neither it nor what asks it fits the cache.
//!
//! Keys are hashes already, so a key's place follows from its value: group `key / 2^128 * groups`, of sixteen slots. Of
//! each slot a byte of its key is kept apart, and the sixteen of a group are compared at once: a new key costs one look at
//! them and one write, a known one a look and a comparison, and hardly ever a guess of the processor's that fails. What
//! does not fit its group goes to the next one with a free slot. A slot costs 17 bytes and the size of the value; 71 to
//! 89 % of them are taken. Growing is one pass over the table where it lies, from its end.

use crate::kernel::{positions_of, prefetch};

/// Slots of a group.
const GROUP: usize = 16;

/// How many groups there are at first.
const FIRST_GROUPS: usize = 16;

/// Groups up to which a table doubles; beyond, it grows by a quarter.
const DOUBLES_UP_TO: usize = 1 << 8;

/// Groups that follow the last at first, and each time that they do not suffice, for keys that have no room in it.
const MORE_GROUPS: usize = 2;

/// So many keys ahead of the one that is looked up, its slot is asked for, and twice as many ahead its group's bytes:
/// memory has answered when their turn comes.
const AHEAD: usize = 8;

/// No byte of a key: the slot is free.
const FREE: u8 = 0;

/// Keys with values of one partition: all of them share their first `PREFIX_BITS` bits.
///
/// ```
/// use irikey::dedup::Table;
/// let mut table: Table<u32> = Table::new(0);
/// table.upsert_all(&[7, 3, 7], |_, count, _is_new| *count += 1);
/// let mut counts: Vec<_> = table.iter().collect();
/// counts.sort();
/// assert_eq!(counts, [(3, 1), (7, 2)]);
/// ```
#[derive(Debug, Clone)]
pub struct Table<V> {
    /// [`FREE`], or a byte of the slot's key.
    tags: Vec<[u8; GROUP]>,
    keys: Vec<u128>,
    values: Vec<V>,
    len: usize,
    /// Groups that are the place of some key; a few more follow.
    groups: usize,
    prefix_bits: u32,
}

/// What a search came to.
enum Slot {
    Taken(usize),
    /// The one that the key would have.
    Free(usize),
}

impl<V: Copy + Default> Table<V> {
    /// No keys. All that will come agree in their first `prefix_bits` bits.
    pub fn new(prefix_bits: u32) -> Table<V> {
        Table { tags: Vec::new(), keys: Vec::new(), values: Vec::new(), len: 0, groups: 0, prefix_bits }
    }

    /// A table of `keys`, each given once, with room for hardly any more.
    pub fn of(keys: &[u128], prefix_bits: u32) -> Table<V> {
        let mut table = Table::new(prefix_bits);
        table.groups = (keys.len() * 20).div_ceil(17 * GROUP);
        table.resize(table.groups + MORE_GROUPS);
        let mut taken = vec![0; table.tags.len()];
        keys.iter().for_each(|&key| table.put_again(key, V::default(), &mut taken));
        table.len = keys.len();
        table
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory.
    pub fn memory_len(&self) -> usize {
        self.keys.capacity() * size_of::<u128>()
            + self.tags.capacity() * GROUP
            + self.values.capacity() * size_of::<V>()
    }

    /// Bytes of memory of the table when it has grown: more than the growth adds, but while it grows the allocator may
    /// need room for both.
    pub fn growth_len(&self) -> usize {
        (grown(self.groups) + MORE_GROUPS) * GROUP * (size_of::<u128>() + 1 + size_of::<V>())
    }

    /// How many more keys do not make the table grow.
    pub fn room(&self) -> usize {
        (self.groups * GROUP / 9 * 8).saturating_sub(self.len)
    }

    /// Calls `change` for each of `keys`, one after the other: with which it is, with its value, a default one if the key
    /// is new, and with whether it is. The table grows as it has to.
    pub fn upsert_all(&mut self, keys: &[u128], mut change: impl FnMut(usize, &mut V, bool)) {
        let mut done = 0;
        while done < keys.len() {
            if self.room() == 0 {
                self.grow();
            }
            let end = (done + self.room()).min(keys.len());
            self.visit(&keys[done..end], |table, i, slot| {
                let (at, is_new) = match slot {
                    Slot::Taken(at) => (at, false),
                    Slot::Free(at) => {
                        if at == table.keys.len() {
                            table.resize(table.tags.len() + MORE_GROUPS);
                        }
                        table.put(at, keys[done + i], V::default());
                        table.len += 1;
                        (at, true)
                    }
                };
                change(done + i, &mut table.values[at], is_new);
            });
            done = end;
        }
    }

    /// Looks `keys` up; `found` is told which it is, and its value if it is there.
    pub fn get_all(&mut self, keys: &[u128], mut found: impl FnMut(usize, Option<&mut V>)) {
        if self.groups == 0 {
            return (0..keys.len()).for_each(|i| found(i, None));
        }
        self.visit(keys, |table, i, slot| match slot {
            Slot::Taken(at) => found(i, Some(&mut table.values[at])),
            Slot::Free(_) => found(i, None),
        });
    }

    /// Tells `found` which of `keys` are there.
    pub fn contains_all(&self, keys: &[u128], mut found: impl FnMut(usize)) {
        if self.groups == 0 {
            return;
        }
        for (i, &key) in keys.iter().enumerate() {
            self.prefetch_ahead(keys, i);
            if let Slot::Taken(_) = self.search(key) {
                found(i);
            }
        }
    }

    /// Keys with their values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u128, V)> {
        let slots = self.tags.as_flattened().iter().zip(self.keys.iter().zip(&self.values));
        slots.filter(|(tag, _)| **tag != FREE).map(|(_, (key, value))| (*key, *value))
    }

    /// Searches for keys one after the other while memory is asked for the next ones.
    #[inline(always)]
    fn visit(&mut self, keys: &[u128], mut each: impl FnMut(&mut Table<V>, usize, Slot)) {
        for (i, &key) in keys.iter().enumerate() {
            self.prefetch_ahead(keys, i);
            let slot = self.search(key);
            each(self, i, slot);
        }
    }

    /// Asks for what later ones of `keys` will need, after key `i`.
    #[inline(always)]
    fn prefetch_ahead(&self, keys: &[u128], i: usize) {
        if let Some(&key) = keys.get(i + 2 * AHEAD) {
            prefetch(&self.tags, self.place(key));
        }
        if let Some(&key) = keys.get(i + AHEAD) {
            let place = self.place(key);
            let group = &self.tags[place];
            // Its own slot or the first free one: where it will be, but for a key that another one has a byte in common with.
            let found = positions_of(tag(key), group);
            let slot = if found == 0 { positions_of(FREE, group) } else { found }.trailing_zeros() as usize;
            prefetch(&self.keys, place * GROUP + slot);
            if size_of::<V>() > 0 {
                prefetch(&self.values, place * GROUP + slot);
            }
        }
    }

    #[inline(always)]
    fn place(&self, key: u128) -> usize {
        place(key, self.groups, self.prefix_bits)
    }

    /// The slot of `key`, or that which it would have, the first after the last one if there is none.
    #[inline(always)]
    fn search(&self, key: u128) -> Slot {
        let (mut group, tag) = (self.place(key), tag(key));
        while let Some(tags) = self.tags.get(group) {
            let mut alike = positions_of(tag, tags);
            while alike != 0 {
                let at = group * GROUP + alike.trailing_zeros() as usize;
                if self.keys[at] == key {
                    return Slot::Taken(at);
                }
                alike &= alike - 1;
            }
            let free = positions_of(FREE, tags);
            if free != 0 {
                return Slot::Free(group * GROUP + free.trailing_zeros() as usize);
            }
            group += 1;
        }
        Slot::Free(self.keys.len())
    }

    #[inline(always)]
    fn put(&mut self, at: usize, key: u128, value: V) {
        self.tags[at / GROUP][at % GROUP] = tag(key);
        self.keys[at] = key;
        self.values[at] = value;
    }

    /// To so many groups, those for keys without room included.
    fn resize(&mut self, groups: usize) {
        let slots = groups * GROUP;
        let more = slots - self.keys.len();
        self.tags.reserve_exact(groups - self.tags.len());
        self.tags.resize(groups, [FREE; GROUP]);
        self.keys.reserve_exact(more);
        self.keys.resize(slots, 0);
        self.values.reserve_exact(more);
        self.values.resize(slots, V::default());
    }

    /// Makes room, and puts every key where it belongs then. As places are in the order of keys, hardly any key's new
    /// place is before its old one: from the last group back, each finds the groups from its own on done already.
    pub fn grow(&mut self) {
        let before = self.tags.len();
        self.groups = grown(self.groups);
        self.resize((self.groups + MORE_GROUPS).max(before));
        // How many slots of the groups that are done are taken: the processor forwards a byte written just now sooner
        // than sixteen of which it is one.
        let mut taken = vec![0; self.tags.len()];
        let mut later = Vec::new();
        for group in (0..before).rev() {
            let tags = std::mem::replace(&mut self.tags[group], [FREE; GROUP]);
            let count = GROUP - positions_of(FREE, &tags).count_ones() as usize;
            let at = group * GROUP;
            let (mut keys, mut values) = ([0; GROUP], [V::default(); GROUP]);
            keys.copy_from_slice(&self.keys[at..at + GROUP]);
            values.copy_from_slice(&self.values[at..at + GROUP]);
            for (&key, &value) in keys[..count].iter().zip(&values[..count]) {
                match self.place(key) < group {
                    true => later.push((key, value)),
                    false => self.put_again(key, value, &mut taken),
                }
            }
        }
        later.into_iter().for_each(|(key, value)| self.put_again(key, value, &mut taken));
    }

    /// Puts a key into the first group from its place on that has a free slot.
    #[inline(always)]
    fn put_again(&mut self, key: u128, value: V, taken: &mut Vec<u8>) {
        let mut group = self.place(key);
        while taken.get(group).is_some_and(|count| usize::from(*count) == GROUP) {
            group += 1;
        }
        if group == taken.len() {
            taken.resize(group + MORE_GROUPS, 0);
            self.resize(group + MORE_GROUPS);
        }
        self.put(group * GROUP + usize::from(taken[group]), key, value);
        taken[group] += 1;
    }
}

/// A byte of a key that its place says nothing of, and that no free slot has.
#[inline(always)]
fn tag(key: u128) -> u8 {
    (key as u8).max(FREE + 1)
}

/// The place of a key among `groups`, by what follows its prefix in its first 64 bits.
#[inline(always)]
fn place(key: u128, groups: usize, prefix_bits: u32) -> usize {
    let bits = ((key >> 64) as u64) << prefix_bits;
    ((u128::from(bits) * groups as u128) >> 64) as usize
}

fn grown(groups: usize) -> usize {
    match groups {
        0 => FIRST_GROUPS,
        few if few < DOUBLES_UP_TO => few * 2,
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

    /// Runs the same upserts on a table and on a map.
    fn check(keys: impl Iterator<Item = u128>, prefix_bits: u32) -> Table<u32> {
        let (mut table, mut map) = (Table::new(prefix_bits), BTreeMap::<u128, u32>::new());
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
        table.get_all(&keys, |i, found| assert_eq!(found.copied(), map.get(&keys[i]).copied()));
        table.get_all(&[key(u64::MAX)], |_, found| assert_eq!(found.is_some(), map.contains_key(&key(u64::MAX))));
        let sorted: Vec<u128> = map.keys().copied().collect();
        let (half, mut found) = (Table::<()>::of(&sorted[..sorted.len() / 2], prefix_bits), Vec::new());
        half.contains_all(&sorted, |i| found.push(i));
        assert!(found.into_iter().eq(0..sorted.len() / 2) && half.len() == sorted.len() / 2);
        table
    }

    #[test]
    fn a_table_is_a_map() {
        check((0..30_000).map(|i| key(i * i % 20_011)), 0);
        // The same prefix: shifted in from the left.
        check((0..30_000).map(|i| key(i * 7 % 20_011) >> 6 | 5 << 122), 6);
        check([0, 1, u128::MAX, 0, 2, u128::MAX - 1].into_iter(), 0);
        let mut none = Table::<()>::new(3);
        assert!(none.is_empty());
        none.get_all(&[5], |_, found| assert!(found.is_none()));
        none.contains_all(&[5], |_| panic!("it has no keys"));
    }

    /// Keys that are no hashes are slow, not wrong.
    #[test]
    fn crowds_at_either_end_are_no_loss() {
        check((0..3_000u128).map(|i| i * i % 1_009), 0);
        check((0..3_000u128).map(|i| u128::MAX - i % 1_009), 0);
        check((0..3_000u128).rev(), 0);
    }

    #[test]
    fn a_key_takes_less_than_24_bytes() {
        let mut table: Table<()> = Table::new(0);
        for i in 0..200_000 {
            table.upsert_all(&[key(i)], |_, (), _| ());
            if i > 20_000 {
                let per_key = table.memory_len() as f64 / table.len() as f64;
                assert!(per_key < 24.0, "{per_key} at {i}");
            }
        }
    }
}
