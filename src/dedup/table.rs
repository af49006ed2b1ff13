//! A set of keys as compact as an array and as quick as a hash table: an open-addressing table kept in order.
//!
//! Keys are hashes already, so a key's place follows from its value: slot `key / 2^128 * capacity`. Keys stand in
//! ascending order, each at its place or as little after it as the keys before it allow (ordered linear probing: Amble
//! and Knuth 1974, "Ordered hash tables"). A search ends at the first greater key, which at the highest load allowed
//! here takes four slots on average whether the key is there or not; growing is one pass from left to right; and the
//! keys come out sorted. A slot costs the 16 bytes of its key and the size of the value; 68 to 85 % of them are taken.

use crate::kernel::prefetch_item;

/// How many slots there are at first.
const FIRST_CAPACITY: usize = 256;

/// Slots up to which a table doubles; beyond, it grows by a quarter.
const DOUBLES_UP_TO: usize = 1 << 12;

/// So many keys ahead of the one that is looked up, slots are asked for: memory has answered when their turn comes.
pub const AHEAD: usize = 16;

/// Keys with values of one partition: all of them share their first `PREFIX_BITS` bits.
///
/// ```
/// use irikey::dedup::Table;
/// let mut table: Table<u32> = Table::new(0);
/// for key in [7, 3, 7] {
///     table.upsert(key, |count, _is_new| *count += 1);
/// }
/// assert_eq!(table.iter().collect::<Vec<_>>(), [(3, 1), (7, 2)]);
/// ```
#[derive(Debug, Clone)]
pub struct Table<V> {
    /// 0 where a slot is free. Ascending otherwise.
    keys: Vec<u128>,
    values: Vec<V>,
    /// The value of key 0, which no slot can hold.
    zero: Option<V>,
    len: usize,
    /// Slots that are the place of some key; a few more follow for the keys pushed past the last.
    capacity: usize,
    prefix_bits: u32,
}

impl<V: Copy + Default> Table<V> {
    /// No keys. All that will come agree in their first `prefix_bits` bits.
    pub fn new(prefix_bits: u32) -> Table<V> {
        Table { keys: Vec::new(), values: Vec::new(), zero: None, len: 0, capacity: 0, prefix_bits }
    }

    /// A table of `keys`, ascending and each once.
    pub fn from_sorted(keys: &[u128], prefix_bits: u32) -> Table<V> {
        let mut table = Table::new(prefix_bits);
        let (zero, keys) = keys.split_at(keys.iter().take_while(|key| **key == 0).count());
        table.zero = (!zero.is_empty()).then(V::default);
        table.capacity = (keys.len() * 20).div_ceil(17);
        let mut slots = Slots::new(table.capacity, prefix_bits);
        keys.iter().for_each(|&key| slots.push(key, V::default()));
        (table.keys, table.values, table.len) = (slots.keys, slots.values, keys.len());
        table
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.len + usize::from(self.zero.is_some())
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory.
    pub fn memory_len(&self) -> usize {
        self.keys.capacity() * size_of::<u128>() + self.values.capacity() * size_of::<V>()
    }

    /// Bytes of memory that the next growth takes beside what there is, while both tables stand.
    pub fn growth_len(&self) -> usize {
        slots(grown(self.capacity)) * (size_of::<u128>() + size_of::<V>())
    }

    /// So many more keys do not make the table grow.
    pub fn has_room(&self, count: usize) -> bool {
        (self.len + count) * 20 <= self.capacity * 17
    }

    /// Calls `change` with the value of `key`, a default one if the key is new, and with whether it is.
    pub fn upsert(&mut self, key: u128, change: impl FnOnce(&mut V, bool)) {
        if key == 0 {
            let is_new = self.zero.is_none();
            return change(self.zero.get_or_insert_default(), is_new);
        }
        let at = self.search(key);
        if self.keys.get(at) == Some(&key) {
            return change(&mut self.values[at], false);
        }
        let at = self.make_room(at, key);
        change(&mut self.values[at], true);
    }

    /// The value of `key`.
    pub fn get(&mut self, key: u128) -> Option<&mut V> {
        if key == 0 {
            return self.zero.as_mut();
        }
        let at = self.search(key);
        (self.keys.get(at) == Some(&key)).then(|| &mut self.values[at])
    }

    /// [`Table::upsert`] of `keys` one after the other, `change` being told which it is. Much quicker than one by one.
    pub fn upsert_all(&mut self, keys: &[u128], mut change: impl FnMut(usize, &mut V, bool)) {
        self.prefetch(&keys[..AHEAD.min(keys.len())]);
        for (i, &key) in keys.iter().enumerate() {
            self.prefetch(ahead(keys, i));
            self.upsert(key, |value, is_new| change(i, value, is_new));
        }
    }

    /// Looks `keys` up; `found` is told which it is, and its value if it is there.
    pub fn get_all(&mut self, keys: &[u128], mut found: impl FnMut(usize, Option<&mut V>)) {
        self.prefetch(&keys[..AHEAD.min(keys.len())]);
        for (i, &key) in keys.iter().enumerate() {
            self.prefetch(ahead(keys, i));
            found(i, self.get(key));
        }
    }

    /// Tells `found` which of `keys` are there.
    pub fn contains_all(&self, keys: &[u128], mut found: impl FnMut(usize)) {
        self.prefetch(&keys[..AHEAD.min(keys.len())]);
        for (i, &key) in keys.iter().enumerate() {
            self.prefetch(ahead(keys, i));
            let is_there = if key == 0 { self.zero.is_some() } else { self.keys.get(self.search(key)) == Some(&key) };
            if is_there {
                found(i);
            }
        }
    }

    /// Keys with their values, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u128, V)> {
        let taken = self.keys.iter().zip(&self.values).filter(|(key, _)| **key != 0).map(|(key, value)| (*key, *value));
        self.zero.map(|value| (0, value)).into_iter().chain(taken)
    }

    /// Asks for the slots of keys that will be looked up soon. A search goes on from the slot for as much again nearly as
    /// often as not.
    #[inline(always)]
    pub fn prefetch(&self, keys: &[u128]) {
        for &key in keys {
            prefetch_item(&self.keys, self.place(key));
            if size_of::<V>() > 0 {
                prefetch_item(&self.values, self.place(key));
            }
        }
    }

    #[inline(always)]
    fn place(&self, key: u128) -> usize {
        place(key, self.capacity, self.prefix_bits)
    }

    /// The slot of `key`, or of the one that it would come before; the number of slots if there is none.
    #[inline(always)]
    fn search(&self, key: u128) -> usize {
        let mut at = self.place(key);
        while at < self.keys.len() && self.keys[at] != 0 && self.keys[at] < key {
            at += 1;
        }
        at
    }

    /// Puts a key that is not there where `search` sent it, or, when that takes growing, elsewhere.
    fn make_room(&mut self, mut at: usize, key: u128) -> usize {
        if !self.has_room(1) {
            self.grow();
            at = self.search(key);
        }
        let free = self.keys[at..].iter().position(|&other| other == 0);
        let free = free.map_or_else(|| self.add_slots(), |count| at + count);
        self.keys.copy_within(at..free, at + 1);
        self.values.copy_within(at..free, at + 1);
        self.keys[at] = key;
        self.values[at] = V::default();
        self.len += 1;
        at
    }

    /// More slots after the last, which only keys that are no hashes can want; gives the first of them.
    fn add_slots(&mut self) -> usize {
        let first = self.keys.len();
        self.keys.resize(first + 64, 0);
        self.values.resize(first + 64, V::default());
        first
    }

    /// Moves all keys to a larger table, in order.
    pub fn grow(&mut self) {
        self.capacity = grown(self.capacity);
        let mut larger = Slots::<V>::new(self.capacity, self.prefix_bits);
        for (&key, &value) in self.keys.iter().zip(&self.values).filter(|(key, _)| **key != 0) {
            larger.push(key, value);
        }
        (self.keys, self.values) = (larger.keys, larger.values);
    }
}

/// A table that is filled in ascending order.
struct Slots<V> {
    keys: Vec<u128>,
    values: Vec<V>,
    capacity: usize,
    prefix_bits: u32,
    /// The first slot that is free for good.
    next: usize,
}

impl<V: Copy + Default> Slots<V> {
    fn new(capacity: usize, prefix_bits: u32) -> Slots<V> {
        let count = slots(capacity);
        Slots { keys: vec![0; count], values: vec![V::default(); count], capacity, prefix_bits, next: 0 }
    }

    fn push(&mut self, key: u128, value: V) {
        let at = place(key, self.capacity, self.prefix_bits).max(self.next);
        if at >= self.keys.len() {
            self.keys.push(0);
            self.values.push(V::default());
        }
        (self.keys[at], self.values[at]) = (key, value);
        self.next = at + 1;
    }
}

/// The key that follows `at` by [`AHEAD`], if there is one.
#[inline(always)]
fn ahead(keys: &[u128], at: usize) -> &[u128] {
    keys.get(at + AHEAD).map_or(&[], std::slice::from_ref)
}

/// The place of a key among `capacity` slots, by the 64 bits after its prefix.
#[inline(always)]
fn place(key: u128, capacity: usize, prefix_bits: u32) -> usize {
    let bits = (key << prefix_bits) >> 64;
    ((bits * capacity as u128) >> 64) as usize
}

/// Slots in all of a table with this many places.
fn slots(capacity: usize) -> usize {
    capacity + (capacity / 64).clamp(16, 64)
}

fn grown(capacity: usize) -> usize {
    match capacity {
        0 => FIRST_CAPACITY,
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
        assert!(table.iter().eq(map.iter().map(|(key, count)| (*key, *count))));
        table.get_all(&keys, |i, found| assert_eq!(found.copied(), map.get(&keys[i]).copied()));
        assert_eq!(table.get(key(u64::MAX)).is_some(), map.contains_key(&key(u64::MAX)));
        let sorted: Vec<u128> = map.keys().copied().collect();
        let (half, mut found) = (Table::<()>::from_sorted(&sorted[..sorted.len() / 2], prefix_bits), Vec::new());
        half.contains_all(&sorted, |i| found.push(i));
        assert!(found.into_iter().eq(0..sorted.len() / 2) && half.len() == sorted.len() / 2);
        table
    }

    #[test]
    fn a_table_is_a_map_in_order() {
        check((0..30_000).map(|i| key(i * i % 20_011)), 0);
        // The same prefix: shifted in from the left.
        check((0..30_000).map(|i| key(i * 7 % 20_011) >> 6 | 5 << 122), 6);
        check([0, 1, u128::MAX, 0, 2, u128::MAX - 1].into_iter(), 0);
        assert!(Table::<()>::new(3).is_empty() && Table::<()>::new(3).get(5).is_none());
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
            table.upsert(key(i), |(), _| ());
            if i > 20_000 {
                let per_key = table.memory_len() as f64 / table.len() as f64;
                assert!(per_key < 24.0, "{per_key} at {i}");
            }
        }
    }
}
