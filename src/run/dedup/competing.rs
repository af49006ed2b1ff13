//! What rows compete for and with: the key that they are compared by, their rank, and the texts that settle what these
//! leave open. In: rows as canonicalised. Out: keys by partition, and entries.

use super::DedupOptions;
use crate::canon::{Policy, Rows};
use crate::dedup::{Candidate, Entry, Keep, Layout, Scattered, Texts, number};
use crate::key::{KeyAlgorithm, KeyBytes};

/// What rows are compared by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DedupKey {
    /// The key of the policy's rung.
    #[default]
    Rung,
    /// One of the policy's further keys, by its place.
    More(usize),
    /// The key of one of the policy's recipes, by its place; of the policy's rung where the recipe gives none.
    Recipe(usize),
    /// That of the representative by the policy's equivalences.
    Protocol,
}

/// How rows of a run compete.
#[derive(Debug)]
pub struct Competing {
    key: DedupKey,
    keep: Keep,
    algorithm: KeyAlgorithm,
    /// Bits of keys that count are 1.
    mask: u128,
    layout: Layout,
}

impl Competing {
    pub fn new(wanted: &DedupOptions, policy: &Policy) -> Competing {
        // Rows that agree in a rung's key have one URI, or one that says nothing else.
        let is_decided_by_uri = wanted.keep == Keep::Best && wanted.key != DedupKey::Rung;
        let layout = Layout {
            has_rank: wanted.keep.wants_time(),
            has_rungs: wanted.has_evidence,
            has_canonical: wanted.verify,
            has_uri: is_decided_by_uri,
        };
        let mask = u128::MAX.checked_shl(u128::BITS - wanted.key_bits.clamp(1, u128::BITS)).unwrap_or(u128::MAX);
        Competing { key: wanted.key, keep: wanted.keep, algorithm: policy.algorithm, mask, layout }
    }

    /// What is kept of entries.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Orders the keys of rows, ascending ones, by partition.
    pub fn scatter(&self, rows: &Rows, wanted: impl Iterator<Item = usize> + Clone, out: &mut Scattered) {
        let of = |keys: &[KeyBytes], out: &mut Scattered| {
            let keyed = wanted.clone().map(|row| (number(&keys[row]) & self.mask, row as u32));
            out.scatter(keyed, 0);
        };
        match self.key {
            DedupKey::Rung => of(&rows.key, out),
            DedupKey::More(place) => of(&rows.more_keys[place], out),
            DedupKey::Protocol => of(&rows.protocol, out),
            DedupKey::Recipe(place) => {
                let keys: Vec<_> = (0..rows.len()).map(|row| self.recipe_key(rows, place, row)).collect();
                of(&keys, out);
            }
        }
    }

    /// The key that a row competes for.
    pub fn key(&self, rows: &Rows, row: usize) -> u128 {
        let key = match self.key {
            DedupKey::Rung => rows.key[row],
            DedupKey::More(place) => rows.more_keys[place][row],
            DedupKey::Recipe(place) => self.recipe_key(rows, place, row),
            DedupKey::Protocol => rows.protocol[row],
        };
        number(&key) & self.mask
    }

    fn recipe_key(&self, rows: &Rows, place: usize, row: usize) -> KeyBytes {
        match rows.recipe_texts[place].get(row) {
            [] => rows.key[row],
            text => self.algorithm.key(text),
        }
    }

    /// The text that a row's key is the hash of.
    fn canonical<'r>(&self, rows: &'r Rows, row: usize) -> &'r [u8] {
        match self.key {
            DedupKey::Recipe(place) if !rows.recipe_texts[place].get(row).is_empty() => {
                rows.recipe_texts[place].get(row)
            }
            _ => rows.uri.get(row),
        }
    }

    /// The entry of a row, less what it tells of rungs, and its texts.
    pub fn entry<'r>(&self, rows: &'r Rows, row: usize, key: u128, ordinal: u64) -> (Entry, Texts<'r>) {
        let uri = rows.uri.get(row);
        let (time, status) = (time(rows, row), rows.carried.statuses.get(row).copied().flatten());
        let rank = if self.layout.has_rank { self.keep.rank(&Candidate { time, status, uri, ordinal }) } else { 0 };
        let canonical = if self.layout.has_canonical { self.canonical(rows, row) } else { &[] };
        (Entry { key, ordinal, rank, ..Entry::default() }, Texts { canonical, uri })
    }

    /// How many rows have no time, if the policy looks at times.
    pub fn count_undated(&self, rows: &Rows, wanted: impl Iterator<Item = usize>) -> u64 {
        match self.keep.wants_time() {
            true => wanted.filter(|row| time(rows, *row).is_none()).count() as u64,
            false => 0,
        }
    }
}

fn time(rows: &Rows, row: usize) -> Option<i64> {
    rows.carried.times.get(row).copied().flatten()
}
