//! Text of a rung in, 128-bit key out. The hashes are frozen: what a version names never changes.

pub mod psl;
pub mod recipe;
pub mod surt;

pub use recipe::{Draft, RULES, Recipe, RecipeError, Rule, RuleSet};

/// A key as it is stored: the 128-bit hash, most significant byte first.
pub type KeyBytes = [u8; 16];

/// The hash that makes keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyAlgorithm {
    /// XXH3 with 128 bits and seed 0, in its canonical (big-endian) form.
    #[default]
    Xxh3,
    /// The first 128 bits of BLAKE3, for inputs that an adversary may choose.
    Blake3,
}

impl KeyAlgorithm {
    /// The name in `--key-hash` and in files' metadata.
    pub const fn name(self) -> &'static str {
        match self {
            KeyAlgorithm::Xxh3 => "xxh3-128",
            KeyAlgorithm::Blake3 => "blake3-128",
        }
    }

    /// Version of the recipe "hash of the rung's text"; raised if a key of unchanged text would ever change.
    pub const fn version(self) -> u32 {
        1
    }

    /// The key of a rung's text.
    ///
    /// ```
    /// use irikey::key::KeyAlgorithm;
    /// let key = KeyAlgorithm::Xxh3.key(b"http://example.org/");
    /// assert_eq!(key, KeyAlgorithm::Xxh3.key(b"http://example.org/"));
    /// assert_ne!(key, KeyAlgorithm::Blake3.key(b"http://example.org/"));
    /// ```
    #[inline(always)]
    pub fn key(self, text: &[u8]) -> KeyBytes {
        match self {
            KeyAlgorithm::Xxh3 => xxhash_rust::xxh3::xxh3_128(text).to_be_bytes(),
            KeyAlgorithm::Blake3 => {
                let mut key = [0; 16];
                key.copy_from_slice(&blake3::hash(text).as_bytes()[..16]);
                key
            }
        }
    }

    /// Appends the keys of texts that stand end to end: text `i` is `texts[ends[i]..ends[i + 1]]`.
    pub fn push_keys(self, texts: &[u8], ends: &[i32], keys: &mut Vec<KeyBytes>) {
        match self {
            KeyAlgorithm::Xxh3 => crate::kernel::push_xxh3_128(texts, ends, keys),
            KeyAlgorithm::Blake3 => {
                keys.extend(ends.windows(2).map(|ends| self.key(&texts[ends[0] as usize..ends[1] as usize])));
            }
        }
    }
}
