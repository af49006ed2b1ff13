//! A set of keys with values, compact and quick where neither it nor what asks it fits the cache.
//!
//! Keys are hashes already, so a key's place follows from its value: group `key / 2^128 * groups`, of sixteen slots. Of
//! each slot a byte of its key is kept apart, and the sixteen of a group are compared at once: a new key costs one look at
//! them and one write, a known one a look and a comparison, and hardly ever a guess of the processor's that fails. What
//! does not fit its group goes to the next one with a free slot. A slot costs 17 bytes and the size of the value; 72 to
//! 90 % of them are taken. Growing adds blocks and is one pass over the table where it lies, from its end.

use crate::kernel::{positions_of, prefetch};

/// Slots of a group.
const GROUP: usize = 16;

/// Groups of a block, which is what memory is asked for.
const BLOCK: usize = 16;

/// Blocks up to which a table doubles; beyond, it grows by a quarter.
const DOUBLES_UP_TO: usize = 16;

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
    blocks: Vec<Box<Block<V>>>,
    len: usize,
    /// Groups that are the place of some key; a few more may follow, for keys that have no room in the last ones.
    groups: usize,
    prefix_bits: u32,
}

/// Groups that lie together, and closest together what is looked at first. Slots of a group are taken from the first on.
#[derive(Debug, Clone, Default)]
struct Block<V> {
    /// [`FREE`], or a byte of the slot's key.
    tags: [[u8; GROUP]; BLOCK],
    keys: [[u128; GROUP]; BLOCK],
    values: [[V; GROUP]; BLOCK],
}

/// What a search came to.
enum Slot {
    /// Group and slot in it.
    Taken(usize, usize),
    /// The one that the key would have.
    Free(usize, usize),
}

impl<V: Copy + Default> Table<V> {
    /// No keys. All that will come agree in their first `prefix_bits` bits.
    pub fn new(prefix_bits: u32) -> Table<V> {
        Table { blocks: Vec::new(), len: 0, groups: 0, prefix_bits }
    }

    /// A table of `keys`, each given once, with room for hardly any more.
    pub fn of(keys: &[u128], prefix_bits: u32) -> Table<V> {
        let mut table = Table::new(prefix_bits);
        table.set_blocks((keys.len() * 20).div_ceil(17 * GROUP * BLOCK));
        let mut taken = vec![0; table.groups];
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
        self.blocks.len() * size_of::<Block<V>>() + self.blocks.capacity() * size_of::<usize>()
    }

    /// Bytes of memory that growing adds.
    pub fn growth_len(&self) -> usize {
        let more = grown(self.groups / BLOCK) - self.groups / BLOCK;
        // Beside the blocks, what tells them apart while keys move.
        more * (size_of::<Block<V>>() + size_of::<usize>()) + self.groups * 2
    }

    /// How many more keys do not make the table grow.
    pub fn room(&self) -> usize {
        (self.groups * GROUP / 10 * 9).saturating_sub(self.len)
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
            let some = &keys[done..end];
            for (i, &key) in some.iter().enumerate() {
                self.prefetch_ahead(some, i);
                let (group, slot, is_new) = match self.search(key) {
                    Slot::Taken(group, slot) => (group, slot, false),
                    Slot::Free(group, slot) => {
                        self.put(group, slot, key, V::default());
                        self.len += 1;
                        (group, slot, true)
                    }
                };
                change(done + i, &mut self.blocks[group / BLOCK].values[group % BLOCK][slot], is_new);
            }
            done = end;
        }
    }

    /// Looks `keys` up; `found` is told which it is, and its value if it is there.
    pub fn get_all(&mut self, keys: &[u128], mut found: impl FnMut(usize, Option<&mut V>)) {
        for (i, &key) in keys.iter().enumerate() {
            self.prefetch_ahead(keys, i);
            match self.search(key) {
                Slot::Taken(group, slot) => {
                    found(i, Some(&mut self.blocks[group / BLOCK].values[group % BLOCK][slot]));
                }
                Slot::Free(..) => found(i, None),
            }
        }
    }

    /// Tells `found` which of `keys` are there.
    pub fn contains_all(&self, keys: &[u128], mut found: impl FnMut(usize)) {
        for (i, &key) in keys.iter().enumerate() {
            self.prefetch_ahead(keys, i);
            if let Slot::Taken(..) = self.search(key) {
                found(i);
            }
        }
    }

    /// Keys with their values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u128, V)> {
        let groups = self.blocks.iter().flat_map(|block| (0..BLOCK).map(move |group| (block, group)));
        groups.flat_map(|(block, group)| {
            let taken = 0..count(&block.tags[group]);
            taken.map(move |slot| (block.keys[group][slot], block.values[group][slot]))
        })
    }

    /// Asks for what later ones of `keys` will need, after key `i`.
    #[inline(always)]
    fn prefetch_ahead(&self, keys: &[u128], i: usize) {
        if let Some((block, group)) = keys.get(i + 2 * AHEAD).and_then(|&key| self.group(self.place(key))) {
            prefetch(&block.tags, group);
        }
        let soon = keys.get(i + AHEAD);
        if let Some((&key, (block, group))) = soon.and_then(|key| Some((key, self.group(self.place(*key))?))) {
            // Its own slot or the first free one: where it will be, but for a key that another one has a byte in common with.
            let alike = positions_of(tag(key), &block.tags[group]);
            let slot =
                if alike == 0 { positions_of(FREE, &block.tags[group]) } else { alike }.trailing_zeros() as usize;
            prefetch(&block.keys[group], slot);
            if size_of::<V>() > 0 {
                prefetch(&block.values[group], slot);
            }
        }
    }

    /// The block of a group, and its place in it.
    #[inline(always)]
    fn group(&self, group: usize) -> Option<(&Block<V>, usize)> {
        self.blocks.get(group / BLOCK).map(|block| (&**block, group % BLOCK))
    }

    #[inline(always)]
    fn place(&self, key: u128) -> usize {
        place(key, self.groups, self.prefix_bits)
    }

    /// The slot of `key`, or that which it would have: in a group after the last one, if there is no other.
    #[inline(always)]
    fn search(&self, key: u128) -> Slot {
        let (mut place, tag) = (self.place(key), tag(key));
        while let Some((block, group)) = self.group(place) {
            let mut alike = positions_of(tag, &block.tags[group]);
            while alike != 0 {
                let slot = alike.trailing_zeros() as usize;
                if block.keys[group][slot] == key {
                    return Slot::Taken(place, slot);
                }
                alike &= alike - 1;
            }
            let free = positions_of(FREE, &block.tags[group]);
            if free != 0 {
                return Slot::Free(place, free.trailing_zeros() as usize);
            }
            place += 1;
        }
        Slot::Free(place, 0)
    }

    #[inline(always)]
    fn put(&mut self, group: usize, slot: usize, key: u128, value: V) {
        if group / BLOCK == self.blocks.len() {
            self.add_block();
        }
        let (block, group) = (&mut self.blocks[group / BLOCK], group % BLOCK);
        (block.tags[group][slot], block.keys[group][slot], block.values[group][slot]) = (tag(key), key, value);
    }

    #[cold]
    fn add_block(&mut self) {
        self.blocks.push(Box::default());
    }

    fn set_blocks(&mut self, count: usize) {
        self.groups = count * BLOCK;
        self.blocks.reserve_exact(count.saturating_sub(self.blocks.len()));
        (self.blocks.len()..count).for_each(|_| self.add_block());
    }

    /// Makes room, and puts every key where it belongs then. As places are in the order of keys, hardly any key's new
    /// place is before its old one: from the last group back, each finds the groups from its own on done already.
    pub fn grow(&mut self) {
        let before = self.blocks.len() * BLOCK;
        self.set_blocks(grown(self.groups / BLOCK));
        // How many slots of the groups that are done are taken: the processor forwards a byte written just now sooner
        // than sixteen of which it is one.
        let mut taken = vec![0; self.blocks.len() * BLOCK];
        let mut later = Vec::new();
        for place in (0..before).rev() {
            let (block, group) = (&mut self.blocks[place / BLOCK], place % BLOCK);
            let (keys, values) = (block.keys[group], block.values[group]);
            let count = count(&std::mem::replace(&mut block.tags[group], [FREE; GROUP]));
            for (&key, &value) in keys[..count].iter().zip(&values[..count]) {
                match self.place(key) < place {
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
            taken.resize(group + BLOCK, 0);
        }
        self.put(group, usize::from(taken[group]), key, value);
        taken[group] += 1;
    }
}

/// How many slots of a group are taken.
#[inline(always)]
fn count(tags: &[u8; GROUP]) -> usize {
    GROUP - positions_of(FREE, tags).count_ones() as usize
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

/// How many blocks follow so many.
fn grown(blocks: usize) -> usize {
    match blocks {
        0 => 1,
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
