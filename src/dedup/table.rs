//! A set of keys, as compact as an array and as quick as a hash table: buckets of 15 keys, each with a byte of every key
//! at its head.
//!
//! Keys are hashes already, so a key's bucket follows from its value: bucket `key / 2^128 * count`. A search reads the
//! bucket's head and compares that key alone whose byte agrees, so that a key that is not there costs one visit to memory
//! nearly always, and one that is there two, close together. What a full bucket has no room for is in those after it, and
//! its head says so. Buckets stand in the order of keys, so that growing is one pass from left to right. A bucket costs
//! 256 bytes and its values; 72 to 90 % of the places are taken.

/// A head, and the keys. In the head, byte `i` is the last one of key `i`; the last byte says how many keys there are, and
/// whether there are [`MORE`].
type Bucket = [u128; 16];

/// Keys of a bucket.
const KEYS: usize = 15;

/// Set in the last byte of a head: keys of this bucket are in the next one.
const MORE: u128 = 0x80 << 120;

/// How many buckets there are at first.
const FIRST_BUCKETS: usize = 16;

/// Buckets up to which a table doubles; beyond, it grows by a quarter.
const DOUBLES_UP_TO: usize = 256;

/// Buckets after the last, for keys that it has no room for.
const SPARE: usize = 2;

/// Keys whose buckets are fetched together, so that the machine waits for memory once and not for each.
pub const TOGETHER: usize = 16;

/// Keys with values of one partition: all of them share their first `PREFIX_BITS` bits.
///
/// ```
/// use irikey::dedup::Table;
/// let mut table: Table<u32> = Table::new(0);
/// for key in [7, 3, 7] {
///     table.upsert(key, |count, _is_new| *count += 1);
/// }
/// let mut all: Vec<_> = table.iter().collect();
/// all.sort();
/// assert_eq!(all, [(3, 1), (7, 2)]);
/// ```
#[derive(Debug, Clone)]
pub struct Table<V> {
    buckets: Vec<Bucket>,
    /// [`KEYS`] for each bucket.
    values: Vec<V>,
    len: usize,
    /// Buckets that are the place of some key; those that follow hold what the last one has no room for.
    home_count: usize,
    prefix_bits: u32,
}

impl<V: Copy + Default> Table<V> {
    /// No keys. All that will come agree in their first `prefix_bits` bits.
    pub fn new(prefix_bits: u32) -> Table<V> {
        Table { buckets: Vec::new(), values: Vec::new(), len: 0, home_count: 0, prefix_bits }
    }

    /// A table of `keys`, each of which is there once.
    pub fn of(keys: &[u128], prefix_bits: u32) -> Table<V> {
        let home_count = (keys.len() * 10).div_ceil(KEYS * 9).max(1);
        let mut table = Table::with_homes(home_count, prefix_bits);
        keys.iter().for_each(|&key| {
            table.put(table.home(key), key);
        });
        table
    }

    fn with_homes(home_count: usize, prefix_bits: u32) -> Table<V> {
        let count = home_count + SPARE;
        let (buckets, values) = (vec![[0; 16]; count], vec![V::default(); count * KEYS]);
        Table { buckets, values, len: 0, home_count, prefix_bits }
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
        self.buckets.capacity() * size_of::<Bucket>() + self.values.capacity() * size_of::<V>()
    }

    /// Bytes of memory that the next growth takes beside what there is, while both tables stand.
    pub fn growth_len(&self) -> usize {
        (grown(self.home_count) + SPARE) * (size_of::<Bucket>() + KEYS * size_of::<V>())
    }

    /// So many more keys do not make the table grow.
    pub fn has_room(&self, count: usize) -> bool {
        (self.len + count) * 10 <= self.home_count * KEYS * 9
    }

    /// Calls `change` with the value of `key`, a default one if the key is new, and with whether it is.
    #[inline(always)]
    pub fn upsert(&mut self, key: u128, change: impl FnOnce(&mut V, bool)) {
        if !self.has_room(1) {
            self.grow();
        }
        match self.find(key) {
            Ok(place) => change(&mut self.values[place], false),
            Err(bucket) => {
                let place = self.put(bucket, key);
                change(&mut self.values[place], true);
            }
        }
    }

    /// The value of `key`.
    #[inline(always)]
    pub fn get(&mut self, key: u128) -> Option<&mut V> {
        let place = self.find(key).ok()?;
        Some(&mut self.values[place])
    }

    /// [`Table::upsert`] of `keys` one after the other, `change` being told which it is. Much quicker than one by one.
    pub fn upsert_all(&mut self, keys: &[u128], mut change: impl FnMut(usize, &mut V, bool)) {
        for (i, together) in keys.chunks(TOGETHER).enumerate() {
            self.touch(together);
            for (j, &key) in together.iter().enumerate() {
                self.upsert(key, |value, is_new| change(i * TOGETHER + j, value, is_new));
            }
        }
    }

    /// Looks `keys` up; `found` is told which it is, and its value if it is there.
    pub fn get_all(&mut self, keys: &[u128], mut found: impl FnMut(usize, Option<&mut V>)) {
        for (i, together) in keys.chunks(TOGETHER).enumerate() {
            self.touch(together);
            together.iter().enumerate().for_each(|(j, &key)| found(i * TOGETHER + j, self.get(key)));
        }
    }

    /// Tells `found` which of `keys` are there.
    pub fn contains_all(&self, keys: &[u128], mut found: impl FnMut(usize)) {
        for (i, together) in keys.chunks(TOGETHER).enumerate() {
            self.touch(together);
            for (j, &key) in together.iter().enumerate() {
                if self.find(key).is_ok() {
                    found(i * TOGETHER + j);
                }
            }
        }
    }

    /// Keys with their values, nearly in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u128, V)> {
        let values = self.values.chunks_exact(KEYS);
        self.buckets.iter().zip(values).flat_map(|(bucket, values)| {
            let keys = &bucket[1..=len(bucket[0])];
            keys.iter().copied().zip(values.iter().copied())
        })
    }

    /// Moves all keys to a larger table.
    pub fn grow(&mut self) {
        let mut larger = Table::with_homes(grown(self.home_count), self.prefix_bits);
        for (key, value) in self.iter() {
            let place = larger.put(larger.home(key), key);
            larger.values[place] = value;
        }
        *self = larger;
    }

    /// Reads the heads of the keys' buckets, and then what a search will compare or change: none of these reads waits for
    /// another of its kind.
    #[inline(always)]
    fn touch(&self, keys: &[u128]) {
        let mut sum = 0;
        if self.home_count > 0 {
            keys.iter().for_each(|&key| sum ^= self.buckets[self.home(key)][0]);
            for &key in keys {
                let bucket = &self.buckets[self.home(key)];
                let end = 0x80u128 << (8 * len(bucket[0]));
                sum ^= bucket[1 + first(candidates(bucket[0], key) | end).min(KEYS - 1)];
            }
        }
        std::hint::black_box(sum);
    }

    /// The bucket of a key, by the 64 bits after its prefix.
    #[inline(always)]
    fn home(&self, key: u128) -> usize {
        let bits = ((key << self.prefix_bits) >> 64) as u64;
        ((u128::from(bits) * self.home_count as u128) >> 64) as usize
    }

    /// The place of `key`, or the bucket in which it would be.
    #[inline(always)]
    fn find(&self, key: u128) -> Result<usize, usize> {
        let mut at = self.home(key);
        while let Some(bucket) = self.buckets.get(at) {
            let mut places = candidates(bucket[0], key);
            while places != 0 {
                let place = first(places);
                if bucket[1 + place] == key {
                    return Ok(at * KEYS + place);
                }
                places &= places - 1;
            }
            if bucket[0] & MORE == 0 {
                break;
            }
            at += 1;
        }
        Err(at)
    }

    /// Puts a key that is not there into a bucket, or into the first one after it that has room, and says where.
    #[inline(always)]
    fn put(&mut self, mut at: usize, key: u128) -> usize {
        while len(self.buckets[at][0]) == KEYS {
            self.pass(at);
            at += 1;
        }
        let bucket = &mut self.buckets[at];
        let place = len(bucket[0]);
        bucket[0] = (bucket[0] | u128::from(key as u8) << (8 * place)) + (1 << 120);
        bucket[1 + place] = key;
        self.len += 1;
        at * KEYS + place
    }

    /// A key passes over a bucket, for it is full, or over the end, where there are more buckets then: only keys that are
    /// no hashes want many of those.
    #[cold]
    fn pass(&mut self, at: usize) {
        self.buckets[at][0] |= MORE;
        if at + 1 == self.buckets.len() {
            self.buckets.reserve_exact(SPARE);
            self.buckets.resize(at + 1 + SPARE, [0; 16]);
            self.values.reserve_exact(SPARE * KEYS);
            self.values.resize(self.buckets.len() * KEYS, V::default());
        }
    }
}

/// How many keys a bucket has, by its head.
#[inline(always)]
fn len(head: u128) -> usize {
    (head >> 120) as usize & KEYS
}

/// Bit `8 i + 7` is set if key `i` of a bucket may be `key`, by its byte in the head.
#[inline(always)]
fn candidates(head: u128, key: u128) -> u128 {
    const LOW: u128 = u128::MAX / 255;
    const HIGH: u128 = LOW << 7;
    let differs = head ^ (LOW * (key & 0xff));
    // The lowest zero byte is found exactly; a byte above it may be told in error, which costs a comparison.
    let zero = differs.wrapping_sub(LOW) & !differs & HIGH;
    zero & !(u128::MAX << (8 * len(head)))
}

/// The first of the places that [`candidates`] tells.
#[inline(always)]
fn first(places: u128) -> usize {
    places.trailing_zeros() as usize / 8
}

fn grown(home_count: usize) -> usize {
    match home_count {
        0 => FIRST_BUCKETS,
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
        let mut all: Vec<_> = table.iter().collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(map.iter().map(|(key, count)| (*key, *count))));
        table.get_all(&keys, |i, found| assert_eq!(found.copied(), map.get(&keys[i]).copied()));
        assert_eq!(table.get(key(u64::MAX)).is_some(), map.contains_key(&key(u64::MAX)));
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
