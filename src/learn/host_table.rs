//! Numbers by host, which are looked up for every URL of a host that may have rules: [`HostTable`].

use super::text_map::fold;
use crate::kernel::prefetch;
use std::hash::{BuildHasher, RandomState};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A hash table by host. Hosts of up to 48 bytes are hashed and compared as three words, without a loop or a branch on their
/// length. A lookup reads two places of memory, which can be prefetched.
#[derive(Clone, Debug)]
pub(super) struct HostTable {
    /// Random, so that an input cannot be made of hosts with equal hashes.
    seeds: [u64; 6],
    /// Each is 0, or the upper half of the hash of an entry, and one more than the place of the entry in the lower half. Their
    /// number is a power of two, and at least twice that of the entries.
    slots: Vec<u64>,
    entries: Vec<HostEntry>,
    /// The hosts, one after the other.
    texts: Vec<u8>,
}

/// An entry has 64 bytes, the length of a line of most caches.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct HostEntry {
    words: HostWords,
    /// Where the host is in the texts.
    at: usize,
    len: u32,
    number: u32,
}

const WORD_LEN: usize = 16;

/// The longest host that its words contain.
const MAX_WHOLE_LEN: usize = 3 * WORD_LEN;

/// Three parts of a host, which overlap if the host has less than 48 bytes. All of them are the host with zeros after it, if it
/// has less than 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HostWords([u128; 3]);

impl HostWords {
    /// Returns the words of the host at the beginning of `buffer` that has `len` bytes.
    #[inline(always)]
    fn of(buffer: &[u8], len: usize) -> HostWords {
        /// Item `i` keeps the first `i` of 16 bytes.
        const FIRST_BYTES: [u128; WORD_LEN + 1] = {
            let (mut masks, mut len) = ([0; WORD_LEN + 1], 1);
            while len <= WORD_LEN {
                masks[len] = !0 >> (8 * (WORD_LEN - len));
                len += 1;
            }
            masks
        };
        let last_at = len.saturating_sub(WORD_LEN);
        let Some(near) = buffer.get(..last_at + WORD_LEN) else { return HostWords::near_end(&buffer[..len]) };
        let used = FIRST_BYTES[len.min(WORD_LEN)];
        let word = |at: usize| near[at..].first_chunk().map_or(0, |word| u128::from_le_bytes(*word) & used);
        HostWords([word(0), word(last_at.min(WORD_LEN)), word(last_at)])
    }

    /// Returns the words of a host of less than 16 bytes that too few others follow.
    #[cold]
    fn near_end(host: &[u8]) -> HostWords {
        let mut bytes = [0; WORD_LEN];
        bytes[..host.len()].copy_from_slice(host);
        HostWords([u128::from_le_bytes(bytes); 3])
    }
}

/// A host that is looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostLookup<'t> {
    words: HostWords,
    hash: u64,
    host: &'t [u8],
}

impl<'t> HostLookup<'t> {
    /// Returns the host.
    pub(super) fn host(&self) -> &'t [u8] {
        self.host
    }
}

impl Default for HostTable {
    fn default() -> HostTable {
        let random = RandomState::new();
        let seeds = [0, 1, 2, 3, 4, 5].map(|number| random.hash_one(number));
        HostTable { seeds, slots: vec![0], entries: Vec::new(), texts: Vec::new() }
    }
}

impl HostTable {
    /// Adds a host that the table does not contain.
    pub(super) fn insert(&mut self, host: &[u8], number: u32) {
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            self.slots = vec![0; 2 * self.slots.len()];
            (0..self.entries.len()).for_each(|entry| self.fill_slot(entry));
        }
        let words = HostWords::of(host, host.len());
        self.entries.push(HostEntry { words, at: self.texts.len(), len: host.len() as u32, number });
        self.texts.extend_from_slice(host);
        self.fill_slot(self.entries.len() - 1);
    }

    /// Fills a free slot for an entry.
    fn fill_slot(&mut self, place: usize) {
        let entry = &self.entries[place];
        let hash = self.hash(&entry.words, self.host(entry));
        let mut at = self.slot_of(hash);
        while self.slots[at] != 0 {
            at = self.slot_of(at as u64 + 1);
        }
        self.slots[at] = hash >> 32 << 32 | (place as u64 + 1);
    }

    /// Returns the place of the slot where the search for a hash begins.
    #[inline(always)]
    fn slot_of(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// Starts a lookup of the host at the beginning of `buffer` that has `len` bytes: prefetches its slot.
    #[inline(always)]
    pub(super) fn start<'t>(&self, buffer: &'t [u8], len: usize) -> HostLookup<'t> {
        let (words, host) = (HostWords::of(buffer, len), &buffer[..len]);
        let hash = self.hash(&words, host);
        prefetch(&self.slots, self.slot_of(hash));
        HostLookup { words, hash, host }
    }

    /// Continues a lookup: prefetches the entry.
    #[inline(always)]
    pub(super) fn prefetch_entry(&self, lookup: &HostLookup<'_>) {
        let slot = self.slots[self.slot_of(lookup.hash)];
        prefetch(&self.entries, (slot as u32 as usize).wrapping_sub(1));
    }

    /// Completes a lookup: returns the number of the host.
    #[inline(always)]
    pub(super) fn find(&self, lookup: &HostLookup<'_>) -> Option<u32> {
        let HostLookup { words, hash, host } = lookup;
        let mut at = self.slot_of(*hash);
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            if (slot ^ hash) >> 32 == 0 {
                let entry = &self.entries[slot as u32 as usize - 1];
                let is_whole = host.len() <= MAX_WHOLE_LEN;
                let is_equal = entry.words == *words && entry.len as usize == host.len();
                if is_equal && (is_whole || self.host(entry) == *host) {
                    return Some(entry.number);
                }
            }
            at = self.slot_of(at as u64 + 1);
        }
    }

    /// Returns all hosts with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.entries.iter().map(|entry| (self.host(entry), entry.number))
    }

    fn host(&self, entry: &HostEntry) -> &[u8] {
        &self.texts[entry.at..entry.at + entry.len as usize]
    }

    #[inline(always)]
    fn hash(&self, words: &HostWords, host: &[u8]) -> u64 {
        let [a, b, c, d, e, f] = self.seeds;
        let of_word = |word: u128, a: u64, b: u64| fold(word as u64 ^ a, (word >> 64) as u64 ^ b);
        let HostWords([first, second, last]) = *words;
        let more = if host.len() <= MAX_WHOLE_LEN { host.len() as u64 } else { xxh3_64_with_seed(host, a) };
        of_word(first, a, b) ^ of_word(second, c, d ^ more) ^ of_word(last, e, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts of all lengths, with the same first and last bytes, and with one byte that differs.
    fn hosts() -> Vec<String> {
        let host = |len: usize, at: usize| (0..len).map(|i| if i == at { 'b' } else { 'a' }).collect::<String>();
        (0..70).flat_map(|len| (0..=len).map(move |at| host(len, at))).collect()
    }

    #[test]
    fn entries_have_the_length_of_a_line_of_a_cache() {
        assert_eq!(size_of::<HostEntry>(), 64);
    }

    #[test]
    fn numbers_are_those_of_equal_hosts() {
        let (mut table, hosts) = (HostTable::default(), hosts());
        assert_eq!(table.find(&table.start(b"", 0)), None);
        for (number, host) in (0..).zip(&hosts).step_by(2) {
            table.insert(host.as_bytes(), number);
        }
        for (number, host) in (0..).zip(&hosts) {
            let expected = Some(number).filter(|number| number % 2 == 0);
            for rest in ["", "/", "/a-longer-path/than/16/bytes"] {
                let text = format!("{host}{rest}");
                let lookup = table.start(text.as_bytes(), host.len());
                table.prefetch_entry(&lookup);
                assert_eq!((table.find(&lookup), lookup.host()), (expected, host.as_bytes()), "{text}");
            }
        }
        let found: Vec<(&[u8], u32)> = table.iter().collect();
        let expected: Vec<(&[u8], u32)> = hosts.iter().map(String::as_bytes).zip(0..).step_by(2).collect();
        assert_eq!(found, expected);
    }
}
