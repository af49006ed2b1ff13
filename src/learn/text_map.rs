//! Hash tables by short texts, which are looked up for every URL: [`TextMap`]. They hash with XXH3.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A table by host or key.
pub(super) type TextMap<K, V> = HashMap<K, V, TextHashBuilder>;

/// Makes hashers of texts. The seed is random, so that an input cannot be made of texts with equal hashes.
#[derive(Clone, Debug)]
pub(super) struct TextHashBuilder(u64);

impl Default for TextHashBuilder {
    fn default() -> TextHashBuilder {
        TextHashBuilder(RandomState::new().hash_one(0))
    }
}

impl BuildHasher for TextHashBuilder {
    type Hasher = TextHasher;

    fn build_hasher(&self) -> TextHasher {
        TextHasher(self.0)
    }
}

/// Hashes texts with XXH3.
#[derive(Debug)]
pub(super) struct TextHasher(u64);

impl Hasher for TextHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_usize(&mut self, len: usize) {
        self.0 = self.0.wrapping_add(len as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A Bloom filter: small, so that most keys that are not in a large table need no lookup in it.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyFilter {
    /// Three bits of one word are set for each key. Without words, every key may be contained.
    words: Vec<u64>,
}

/// Bits per key. With three of 64 in a word, less than one of a hundred other keys is found.
const FILTER_BITS: usize = 16;

impl KeyFilter {
    /// Returns a filter that contains every key.
    pub(super) fn of_everything() -> KeyFilter {
        KeyFilter::default()
    }

    /// Returns a filter of these keys.
    pub(super) fn new(keys: impl Iterator<Item = u128> + Clone) -> KeyFilter {
        let words = vec![0; (keys.clone().count() * FILTER_BITS / 64 + 1).next_power_of_two()];
        let mut filter = KeyFilter { words };
        for key in keys {
            let (at, bits) = filter.place(key);
            filter.words[at] |= bits;
        }
        filter
    }

    /// Returns whether the filter contains the key, or keys that set the same bits.
    #[inline(always)]
    pub(super) fn may_contain(&self, key: u128) -> bool {
        let (at, bits) = self.place(key);
        self.words.get(at).is_none_or(|word| word & bits == bits)
    }

    /// Returns the word of a key, and its bits in the word.
    #[inline(always)]
    fn place(&self, key: u128) -> (usize, u64) {
        // Odd numbers without a pattern, as in wyhash. Keys with equal hashes only cost a lookup.
        let hash = fold(key as u64 ^ 0xa076_1d64_78bd_642f, (key >> 64) as u64 ^ 0xe703_7ed1_a0b4_28db);
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
        ((hash >> 32) as usize & self.words.len().wrapping_sub(1), bits)
    }
}

/// Returns the two halves of the product, one xor the other. Each bit depends on most bits of both factors.
#[inline(always)]
pub(super) fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_contain_their_keys_and_few_others() {
        let keys = |from: u32| {
            (from..from + 10_000)
                .map(|i| u128::from_le_bytes(*format!("site{i:06}.examp").as_bytes().first_chunk().unwrap()))
        };
        let filter = KeyFilter::new(keys(0));
        assert!(keys(0).all(|key| filter.may_contain(key)));
        let found = keys(20_000).filter(|key| filter.may_contain(*key)).count();
        assert!(found < 200, "{found}");
        let short = KeyFilter::new((0u32..10_000).map(u128::from));
        let found = (20_000u32..30_000).filter(|key| short.may_contain(u128::from(*key))).count();
        assert!(found < 200, "{found}");
        assert!(!KeyFilter::new([].into_iter()).may_contain(1));
        assert!(KeyFilter::of_everything().may_contain(1));
    }
}
