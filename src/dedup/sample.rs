//! A group of rows as a survey remembers it: a [`Group`], its spellings and URIs, each with some of its digests. Of large
//! groups the least are remembered, so that no order matters.

use std::collections::{BTreeMap, BTreeSet};

/// Spellings that are told apart in one group.
pub(super) const MOST_SPELLINGS: usize = 4096;

/// Digests that are told apart of one URI.
pub(super) const MOST_DIGESTS: usize = 4;

#[derive(Debug, Default)]
pub(super) struct Group {
    pub rows: u64,
    pub simple: BTreeSet<u64>,
    pub syntax: BTreeSet<u64>,
    /// By the key of the rung.
    pub members: BTreeMap<u64, Member>,
}

#[derive(Debug, Default)]
pub(super) struct Member {
    pub uri: Vec<u8>,
    /// Rows with a digest.
    pub digested: u64,
    pub digests: BTreeSet<u64>,
}

pub(super) fn insert_least(set: &mut BTreeSet<u64>, value: u64, most: usize) {
    if set.len() < most || set.last().is_some_and(|last| value < *last) {
        set.insert(value);
        if set.len() > most {
            set.pop_last();
        }
    }
}

impl Group {
    pub fn weight(&self) -> usize {
        let digests: usize = self.members.values().map(|member| member.digests.len()).sum();
        self.simple.len() + self.syntax.len() + 2 * self.members.len() + digests
    }

    pub fn trim(&mut self) {
        while self.members.len() > MOST_SPELLINGS {
            self.members.pop_last();
        }
    }

    pub fn merge(&mut self, other: Group) {
        self.rows += other.rows;
        other.simple.into_iter().for_each(|one| insert_least(&mut self.simple, one, MOST_SPELLINGS));
        other.syntax.into_iter().for_each(|one| insert_least(&mut self.syntax, one, MOST_SPELLINGS));
        for (key, member) in other.members {
            let mine = self.members.entry(key).or_insert_with(|| Member { uri: member.uri, ..Member::default() });
            mine.digested += member.digested;
            member.digests.into_iter().for_each(|one| insert_least(&mut mine.digests, one, MOST_DIGESTS));
        }
        self.trim();
    }
}
