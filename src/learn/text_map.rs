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
