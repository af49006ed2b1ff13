//! What becomes of rows: [`Verdicts`], and what was noticed on the way to them, [`Collisions`].

use crate::iri::Rung;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What becomes of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is kept and stands for so many rows, itself included.
    Kept(u64),
    /// Another row stands for it.
    Duplicate {
        /// Ordinal of the representative.
        of: u64,
        /// The lowest rung on which the two are equal; `None` if only the key that rows compete for is no rung's, and
        /// all that they have in common.
        rung: Option<Rung>,
    },
    /// Its key was seen by an earlier run.
    Seen,
}

/// Verdicts on the rows of a run: one bit a row, or a number where more is asked for. Shared by workers.
#[derive(Debug)]
pub struct Verdicts {
    first: u64,
    words: Vec<AtomicU64>,
    is_detailed: bool,
}

const KEPT: u64 = 1 << 63;
const RUNG_SHIFT: u32 = 60;
const NUMBER: u64 = (1 << RUNG_SHIFT) - 1;

impl Verdicts {
    /// Verdicts on `count` rows from ordinal `first` on, none of them kept until somebody says so. Only detailed ones
    /// tell why.
    pub fn new(first: u64, count: u64, is_detailed: bool) -> Verdicts {
        let words = if is_detailed { count } else { count.div_ceil(64) };
        Verdicts { first, words: (0..words).map(|_| AtomicU64::new(0)).collect(), is_detailed }
    }

    pub(super) fn set(&self, ordinal: u64, verdict: Verdict) {
        let at = ordinal - self.first;
        match (verdict, self.is_detailed) {
            (Verdict::Kept(_), false) => {
                self.words[(at / 64) as usize].fetch_or(1 << (at % 64), Relaxed);
            }
            (Verdict::Duplicate { .. } | Verdict::Seen, false) => (),
            (Verdict::Kept(count), true) => self.words[at as usize].store(KEPT | count, Relaxed),
            (Verdict::Duplicate { of, rung }, true) => {
                let rung = rung.map_or(4, |rung| 1 + rung as u64);
                self.words[at as usize].store(rung << RUNG_SHIFT | of, Relaxed);
            }
            (Verdict::Seen, true) => (),
        }
    }

    /// The row is kept.
    pub fn is_kept(&self, ordinal: u64) -> bool {
        let at = ordinal - self.first;
        if self.is_detailed {
            return self.words[at as usize].load(Relaxed) & KEPT != 0;
        }
        self.words[(at / 64) as usize].load(Relaxed) >> (at % 64) & 1 == 1
    }

    /// How many of `count` rows from ordinal `first` on are kept.
    pub fn kept_count(&self, first: u64, count: u64) -> u64 {
        (first..first + count).filter(|ordinal| self.is_kept(*ordinal)).count() as u64
    }

    /// All that is known of a row; `None` unless verdicts are detailed.
    pub fn get(&self, ordinal: u64) -> Option<Verdict> {
        let word = self.words.get((ordinal - self.first) as usize).filter(|_| self.is_detailed)?;
        let word = word.load(Relaxed);
        if word & KEPT != 0 {
            return Some(Verdict::Kept(word & NUMBER));
        }
        let rung = match word >> RUNG_SHIFT {
            0 => return Some(Verdict::Seen),
            1 => Some(Rung::Simple),
            2 => Some(Rung::Syntax),
            3 => Some(Rung::Scheme),
            _ => None,
        };
        Some(Verdict::Duplicate { of: word & NUMBER, rung })
    }
}

/// Two texts that have one key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Collision {
    /// Their key.
    pub key: u128,
    /// The texts, or their first bytes.
    pub texts: [Vec<u8>; 2],
    /// Ordinals of rows that have them.
    pub ordinals: [u64; 2],
}

/// How often texts differed whose keys were equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collisions {
    /// Texts that have the key of a lesser text.
    pub count: u64,
    /// The first of them, by their keys.
    pub examples: Vec<Collision>,
}

impl Collisions {
    /// Examples that are kept.
    pub const EXAMPLES: usize = 8;
    /// Bytes of a text that are kept.
    const TEXT_LEN: usize = 2 << 10;

    /// Adds what was found elsewhere.
    pub fn merge(&mut self, other: Collisions) {
        self.count += other.count;
        self.examples.extend(other.examples);
        self.examples.sort_unstable();
        self.examples.truncate(Collisions::EXAMPLES);
    }

    pub(super) fn add(&mut self, key: u128, texts: [&[u8]; 2], ordinals: [u64; 2]) {
        self.count += 1;
        if self.examples.len() < Collisions::EXAMPLES {
            let texts = texts.map(|text| text[..text.len().min(Collisions::TEXT_LEN)].to_vec());
            self.examples.push(Collision { key, texts, ordinals });
        }
    }
}
