//! The rows of some keys, in memory, in the order of their keys: [`Candidates`]. In: entries as bytes. Out: groups of one
//! key and one canonical text. An entry takes the bytes that its layout gives it and 16 more.

use super::entry::{Entry, Layout, Texts};
use std::cmp::Ordering;
use std::ops::Range;

/// Bytes that an entry takes beside those of its layout.
pub const INDEX_LEN: usize = size_of::<(u64, usize)>();

/// Entries to be sorted.
#[derive(Debug)]
pub struct Candidates {
    layout: Layout,
    bytes: Vec<u8>,
    /// First bits of each entry's key, and where it begins.
    index: Vec<(u64, usize)>,
}

impl Candidates {
    /// None yet; there will be so many, of so many bytes.
    pub fn new(layout: Layout, count: usize, len: usize) -> Candidates {
        Candidates { layout, bytes: Vec::with_capacity(len), index: Vec::with_capacity(count) }
    }

    /// Adds whole entries.
    pub fn extend(&mut self, block: &[u8]) {
        let first = self.bytes.len();
        self.bytes.extend_from_slice(block);
        let mut at = 0;
        while block.len() - at >= self.layout.entry_len() {
            let (entry, _, len) = self.layout.read_one(&block[at..]);
            self.index.push(((entry.key >> 64) as u64, first + at));
            at += len;
        }
    }

    /// Puts them in order: by key, canonical text and ordinal.
    pub fn sort(&mut self) {
        let mut index = std::mem::take(&mut self.index);
        index.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| self.compare(a.1, b.1)));
        self.index = index;
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let [(a, a_texts), (b, b_texts)] = [a, b].map(|at| self.at(at));
        let by_text = || match self.layout.has_canonical {
            true => a_texts.canonical.cmp(b_texts.canonical),
            // Not even nothing is compared with nothing: keys meet often.
            false => Ordering::Equal,
        };
        a.key.cmp(&b.key).then_with(by_text).then(a.ordinal.cmp(&b.ordinal))
    }

    fn at(&self, at: usize) -> (Entry, Texts<'_>) {
        let (entry, texts, _) = self.layout.read_one(&self.bytes[at..]);
        (entry, texts)
    }

    /// The entries of a range of places in the order.
    pub fn of(&self, range: Range<usize>) -> impl Iterator<Item = (Entry, Texts<'_>)> {
        self.index[range].iter().map(|(_, at)| self.at(*at))
    }

    /// Ranges of entries, once sorted, that have key and canonical text in common.
    pub fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        let is_one = |a: &(u64, usize), b: &(u64, usize)| {
            a.0 == b.0 && {
                let [(a, a_texts), (b, b_texts)] = [a, b].map(|(_, at)| self.at(*at));
                a.key == b.key && (!self.layout.has_canonical || a_texts.canonical == b_texts.canonical)
            }
        };
        self.index.chunk_by(is_one).scan(0, |end, group| {
            *end += group.len();
            Some(*end - group.len()..*end)
        })
    }
}
