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

/// A Bloom filter of texts: small, so that most texts that are not in a large table need no lookup in it.
#[derive(Clone, Debug, Default)]
pub(super) struct TextFilter {
    builder: TextHashBuilder,
    /// Three bits of one word are set for each text. Without words, every text may be contained.
    words: Vec<u64>,
}

/// Bits per text. With three of 64 in a word, less than one of a hundred other texts is found.
const FILTER_BITS: usize = 16;

impl TextFilter {
    /// Returns a filter that contains every text.
    pub(super) fn of_everything() -> TextFilter {
        TextFilter::default()
    }

    /// Returns a filter of these texts.
    pub(super) fn new<'t>(texts: impl Iterator<Item = &'t [u8]> + Clone) -> TextFilter {
        let words = vec![0; (texts.clone().count() * FILTER_BITS / 64 + 1).next_power_of_two()];
        let mut filter = TextFilter { builder: TextHashBuilder::default(), words };
        for text in texts {
            let (at, bits) = filter.place(text);
            filter.words[at] |= bits;
        }
        filter
    }

    /// Returns whether the filter contains the text, or one with like hashes.
    #[inline(always)]
    pub(super) fn may_contain(&self, text: &[u8]) -> bool {
        let (at, bits) = self.place(text);
        self.words.get(at).is_none_or(|word| word & bits == bits)
    }

    /// Returns the word of a text, and its bits in the word.
    #[inline(always)]
    fn place(&self, text: &[u8]) -> (usize, u64) {
        let hash = xxh3_64_with_seed(text, self.builder.0);
        let bits = 1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63);
        ((hash >> 32) as usize & self.words.len().wrapping_sub(1), bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_contain_their_texts_and_few_others() {
        let texts = |from: usize| (from..from + 10_000).map(|i| format!("site{i}.example").into_bytes());
        let (known, others): (Vec<_>, Vec<_>) = (texts(0).collect(), texts(20_000).collect());
        let filter = TextFilter::new(known.iter().map(Vec::as_slice));
        assert!(known.iter().all(|text| filter.may_contain(text)));
        let found = others.iter().filter(|text| filter.may_contain(text)).count();
        assert!(found < 200, "{found}");
        assert!(!TextFilter::new([].into_iter()).may_contain(b"a"));
        assert!(TextFilter::of_everything().may_contain(b"a"));
    }
}
