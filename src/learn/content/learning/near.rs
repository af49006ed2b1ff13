//! Evidence from documents besides digests: texts that are nearly equal, and canonical links. [`DocumentEvidence`].

use super::captures::{ContentHash, HostCaptures};
use crate::learn::graph::UnionFind;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of texts, and of canonical links, of a host that are kept.
const MAX_KEPT: usize = 100_000;

/// Maximum length of the URLs of the canonical links of a host that are kept, in bytes.
const MAX_CANONICAL_LEN: usize = 20 << 20;

/// Maximum number of contents that one is compared with, in each of the tables of [`NearTexts`].
const MAX_COMPARED: usize = 32;

/// What the documents of a host show.
#[derive(Clone, Debug, Default)]
pub(crate) struct DocumentEvidence {
    /// The hash of the text of each content.
    texts: BTreeMap<ContentHash, u64>,
    /// Pages, and the URLs that they name as canonical.
    canonical: Vec<(Vec<u8>, Vec<u8>)>,
    /// The length of these URLs.
    canonical_len: usize,
}

impl DocumentEvidence {
    /// Adds the hash of the text of a content.
    pub(crate) fn add_text(&mut self, content: ContentHash, hash: u64) {
        if self.texts.len() < MAX_KEPT {
            let known = self.texts.entry(content).or_insert(hash);
            *known = hash.min(*known);
        }
    }

    /// Adds a page that names another URL as the canonical one.
    pub(crate) fn add_canonical(&mut self, page: &[u8], canonical: &[u8]) {
        let len = self.canonical_len + page.len() + canonical.len();
        if self.canonical.len() < MAX_KEPT && len <= MAX_CANONICAL_LEN {
            self.canonical.push((page.to_vec(), canonical.to_vec()));
            self.canonical_len = len;
        }
    }

    /// Returns the length of the URLs of all canonical links.
    pub(crate) fn canonical_len(&self) -> usize {
        self.canonical_len
    }

    /// Returns the pages with the URLs that they name as canonical.
    pub(super) fn canonical(&self) -> &[(Vec<u8>, Vec<u8>)] {
        &self.canonical
    }

    /// Replaces contents with near texts by one of them. Two texts are near if their hashes differ in at most `bits` bits.
    /// Contents become equal also if a chain of near texts connects them. Returns the number of contents that were replaced.
    ///
    /// A text is compared with at most [`MAX_COMPARED`] others in each table, so that near texts may be missed.
    pub(crate) fn unite_near(&self, bits: u32, captures: &mut HostCaptures) -> u64 {
        let contents: Vec<ContentHash> = self.texts.keys().copied().collect();
        let (mut near, mut sets) = (NearTexts::new(bits), UnionFind::new(contents.len()));
        for (i, hash) in (0..).zip(self.texts.values()) {
            near.add(*hash, i, &mut sets);
        }
        let mut firsts: HashMap<u32, ContentHash> = HashMap::new();
        let mut united = HashMap::new();
        for (i, content) in (0..).zip(&contents) {
            let first = *firsts.entry(sets.find(i)).or_insert(*content);
            if first != *content {
                united.insert(*content, first);
            }
        }
        if !united.is_empty() {
            captures.replace_contents(&united);
        }
        united.len() as u64
    }
}

/// Texts by parts of their hashes. Hashes that differ in `bits` bits agree in one of `bits + 1` parts, by which they are found.
struct NearTexts {
    bits: u32,
    tables: Vec<HashMap<u64, Vec<(u64, u32)>>>,
}

impl NearTexts {
    fn new(bits: u32) -> NearTexts {
        NearTexts { bits, tables: vec![HashMap::new(); bits as usize + 1] }
    }

    /// Adds text `i` and unites it with the earlier texts that are near.
    fn add(&mut self, hash: u64, i: u32, sets: &mut UnionFind) {
        let parts = self.tables.len();
        for (at, table) in self.tables.iter_mut().enumerate() {
            let (from, to) = (at * 64 / parts, (at + 1) * 64 / parts);
            let others = table.entry(hash >> from & (u64::MAX >> (64 - (to - from)))).or_default();
            for (_, j) in others.iter().filter(|(other, _)| (other ^ hash).count_ones() <= self.bits) {
                sets.join(*j, i);
            }
            if others.len() < MAX_COMPARED {
                others.push((hash, i));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_links_take_bounded_memory() {
        let (mut evidence, long) = (DocumentEvidence::default(), "x".repeat(1 << 20));
        for page in 0..100 {
            evidence.add_canonical(format!("http://a/{page}").as_bytes(), format!("http://a/{long}").as_bytes());
        }
        assert_eq!(evidence.canonical().len(), 19);
        evidence.add_canonical(b"http://a/x", b"http://a/y");
        assert_eq!(evidence.canonical().len(), 20, "shorter links still fit");
        assert!(evidence.canonical_len() <= MAX_CANONICAL_LEN);
    }

    #[test]
    fn contents_with_near_texts_become_equal() {
        let mut host = HostCaptures::default();
        for (uri, content) in [("http://a/1", 10), ("http://a/2", 11), ("http://a/2", 12), ("http://a/3", 13)] {
            host.push(uri.as_bytes(), content);
        }
        let mut evidence = DocumentEvidence::default();
        for (content, hash) in [(10, 0xff00), (11, 0xff01), (12, 0xff08), (13, 0x00ff)] {
            evidence.add_text(content, hash);
        }
        let contents_of = |host: &HostCaptures, url| {
            let contents = host.contents(url).iter();
            contents.map(|known| (known.content, known.count)).collect::<Vec<_>>()
        };
        let contents = |host: &HostCaptures| (0..host.len()).map(|url| contents_of(host, url)).collect::<Vec<_>>();
        let mut same = host.clone();
        assert_eq!(evidence.unite_near(0, &mut same), 0);
        assert_eq!(contents(&same), contents(&host));
        assert_eq!(evidence.unite_near(1, &mut host), 2);
        assert_eq!(contents(&host), [vec![(10, 1)], vec![(10, 2)], vec![(13, 1)]]);
    }
}
