//! Keys of URLs: 128-bit hashes of a rung's text, recipes, and the parts of hosts by the Public Suffix List.
//!
//! ```text
//! text of a rung --KeyAlgorithm::key--> 128-bit key
//! URL --Recipe::write_key--> text of a key of crawl software (SURT and others)
//! host --psl::HostParts--> suffixes and registered domains
//! ```
//!
//! Keys are stable: the name and the version of an algorithm or a recipe always mean the same keys.

pub mod psl;
mod recipe;

pub(crate) use recipe::RecipeKeys;
pub use recipe::{Draft, RULES, Recipe, RecipeError, Rule, RuleSet};

use std::fmt;

/// A key as it is stored: the 128-bit hash, most significant byte first.
pub type KeyBytes = [u8; 16];

/// The hash function of keys.
///
/// ```
/// use irikey::key::KeyAlgorithm;
/// assert_eq!(KeyAlgorithm::named("blake3-128"), Some(KeyAlgorithm::Blake3));
/// assert_eq!(KeyAlgorithm::Blake3.to_string(), "blake3-128");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyAlgorithm {
    /// XXH3 with 128 bits and seed 0, in its canonical (big-endian) form.
    #[default]
    Xxh3,
    /// The first 128 bits of BLAKE3, for inputs that an attacker may choose.
    Blake3,
}

/// Writes the name.
impl fmt::Display for KeyAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl KeyAlgorithm {
    /// Returns the algorithm with this name; `None` if there is none.
    pub fn named(name: &str) -> Option<KeyAlgorithm> {
        [KeyAlgorithm::Xxh3, KeyAlgorithm::Blake3].into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// Returns the name that the metadata of files use.
    pub const fn name(self) -> &'static str {
        match self {
            KeyAlgorithm::Xxh3 => "xxh3-128",
            KeyAlgorithm::Blake3 => "blake3-128",
        }
    }

    /// Returns the version, which is raised if the key of an unchanged text ever changes.
    pub(crate) const fn version(self) -> u32 {
        1
    }

    /// Returns the key of a rung's text.
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
            KeyAlgorithm::Blake3 => *blake3::hash(text).as_bytes().first_chunk().expect("a hash has 32 bytes"),
        }
    }

    /// Returns the key of a row with a fault: the key of its text with every bit inverted. No sound row has such a key, except
    /// by a collision of the hash.
    ///
    /// ```
    /// use irikey::key::KeyAlgorithm;
    /// let (key, fault_key) = (KeyAlgorithm::Xxh3.key(b"not a url"), KeyAlgorithm::Xxh3.fault_key(b"not a url"));
    /// assert!(key.iter().zip(fault_key).all(|(byte, inverted)| inverted == !byte));
    /// ```
    pub fn fault_key(self, text: &[u8]) -> KeyBytes {
        self.key(text).map(|byte| !byte)
    }

    /// Appends the keys of many texts: text `i` is `texts[ends[i]..ends[i + 1]]`.
    pub(crate) fn push_keys(self, texts: &[u8], ends: &[i32], keys: &mut Vec<KeyBytes>) {
        match self {
            KeyAlgorithm::Xxh3 => crate::kernel::push_xxh3_128(texts, ends, keys),
            KeyAlgorithm::Blake3 => {
                keys.extend(ends.windows(2).map(|ends| self.key(&texts[ends[0] as usize..ends[1] as usize])));
            }
        }
    }
}
/// Appends `items` with `separator` between them.
fn write_joined<'a>(items: impl Iterator<Item = &'a [u8]>, separator: u8, out: &mut Vec<u8>) {
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.push(separator);
        }
        out.extend_from_slice(item);
    }
}
