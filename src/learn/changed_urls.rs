//! Collects URLs that rules resulted in, and hashes them: [`ChangedUrls`].

use super::equivalences::Equivalences;
use crate::key::KeyBytes;

/// How many bytes of URLs are collected before they are hashed. They stay in a cache of the processor.
const MAX_CHANGED_LEN: usize = 32 << 10;

/// URLs that rules resulted in. Hashing several of them at once is faster.
#[derive(Debug, Default)]
pub(super) struct ChangedUrls {
    pub(super) texts: Vec<u8>,
    /// URL `i` is `texts[ends[i]..ends[i + 1]]`.
    ends: Vec<i32>,
    /// The row of each URL.
    rows: Vec<u32>,
    keys: Vec<KeyBytes>,
}

impl ChangedUrls {
    /// Makes room for a URL, which is then appended to the texts. Returns where it begins.
    #[inline(always)]
    pub(super) fn begin(&mut self, equivalences: &Equivalences, keys: &mut [KeyBytes]) -> usize {
        if self.texts.len() >= MAX_CHANGED_LEN {
            self.hash(equivalences, keys);
        }
        self.texts.len()
    }

    /// Completes the URL that was appended: its key will replace that of its row.
    #[inline(always)]
    pub(super) fn end(&mut self, row: u32) {
        if self.ends.is_empty() {
            self.ends.push(0);
        }
        self.ends.push(self.texts.len() as i32);
        self.rows.push(row);
    }

    /// Replaces the keys of the rows by those of their URLs, or of the representatives of these, and removes the URLs.
    pub(super) fn hash(&mut self, equivalences: &Equivalences, keys: &mut [KeyBytes]) {
        if self.rows.is_empty() {
            return;
        }
        self.keys.clear();
        equivalences.algorithm().push_keys(&self.texts, &self.ends, &mut self.keys);
        for (row, key) in self.rows.drain(..).zip(&self.keys) {
            keys[row as usize] = equivalences.representative(key).unwrap_or(*key);
        }
        self.texts.clear();
        self.ends.clear();
    }
}
