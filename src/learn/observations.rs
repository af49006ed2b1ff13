//! What records state about redirects and answers.
//!
//! Workers collect [`RowGroupObservations`], which [`Observations`] sums up: each distinct redirect with its number of
//! records and its first record, and per origin the number of distinct URLs that answered with a success status. Only
//! sums, sets and minima are kept, so the order of the row groups does not matter.

use super::graph::UrlNodes;
use super::redirect::{RecordPlace, RedirectCode, RedirectEdge, RedirectEvidence};
use super::spelling::Spelling;
use crate::key::{KeyAlgorithm, KeyBytes};
use std::collections::{HashMap, HashSet};

/// What the records of one row group state.
#[derive(Debug, Default)]
pub struct RowGroupObservations {
    texts: Vec<u8>,
    redirects: Vec<ObservedRedirect>,
    other_status: u64,
    unparsable: u64,
}

#[derive(Debug)]
struct ObservedRedirect {
    from_len: u32,
    to_len: u32,
    keys: [KeyBytes; 2],
    code: RedirectCode,
    place: RecordPlace,
}

impl RowGroupObservations {
    /// Adds a record that states that `from` redirected to `to`: canonical URIs and their keys.
    pub fn redirect(
        &mut self,
        from: (&[u8], KeyBytes),
        to: (&[u8], KeyBytes),
        status: Option<i32>,
        place: RecordPlace,
    ) {
        let code = match status.map(RedirectCode::of) {
            None => RedirectCode::Unknown,
            Some(Some(code)) => code,
            Some(None) => return self.other_status += 1,
        };
        self.texts.extend_from_slice(from.0);
        self.texts.extend_from_slice(to.0);
        let (from_len, to_len) = (from.0.len() as u32, to.0.len() as u32);
        self.redirects.push(ObservedRedirect { from_len, to_len, keys: [from.1, to.1], code, place });
    }

    /// Adds `count` records that state a redirect whose URL or target has a fault.
    pub(crate) fn unparsable(&mut self, count: u64) {
        self.unparsable += count;
    }
}

/// URLs of an origin that answered with a success status, by the ending of their paths.
#[derive(Debug, Default)]
pub(super) struct OriginAnswers {
    pub(super) counts: [u64; 4],
    /// The least URL by bytes.
    pub(super) examples: [Option<Vec<u8>>; 4],
}

/// What all records state.
///
/// Memory: about 700 bytes per distinct redirect, including what [`Observations::learn`] needs.
#[derive(Debug, Default)]
pub struct Observations {
    pub(super) nodes: UrlNodes,
    pub(super) redirects: HashMap<(u32, u32), RedirectEvidence>,
    /// The weakest status that a URL answered with where the record states no target.
    pub(super) statuses: HashMap<KeyBytes, RedirectCode>,
    /// First bits of the keys of URLs that answered with a success status.
    pub(super) served: HashSet<u64>,
    /// By scheme and authority.
    pub(super) origins: HashMap<Vec<u8>, OriginAnswers>,
    pub(super) other_status: u64,
    pub(super) unparsable: u64,
    /// Number of distinct URLs that answered with a success status.
    pub(super) served_count: u64,
    /// Authorities of all URLs in redirects: only their answers matter.
    authorities: HashSet<Vec<u8>>,
    algorithm: KeyAlgorithm,
}

/// Bytes per node for the set of authorities and for the answers of their origins; most nodes share an authority.
const AUTHORITY_LEN: usize = 64;

/// Bytes per node while learning: a class member with its three texts, and the arrays of the graph.
const NODE_LEN: usize = 272;

impl Observations {
    /// Returns an upper bound of the memory in bytes after `more` was added, including what [`Self::learn`] needs.
    pub(crate) fn memory_len(&self, more: &RowGroupObservations) -> usize {
        let redirects = self.redirects.len() + more.redirects.len();
        let nodes = self.nodes.len() + 2 * more.redirects.len();
        // Nodes have numbers of 32 bits, and learning adds at most one node per node.
        if u32::try_from(nodes.saturating_mul(2)).is_err() {
            return usize::MAX;
        }
        let texts_len = self.nodes.texts_len() + more.texts.len();
        collection_len(texts_len, 1)
            + collection_len(nodes, size_of::<usize>() + size_of::<KeyBytes>())
            + collection_len(nodes, size_of::<(KeyBytes, u32)>() + 1)
            + collection_len(redirects, size_of::<((u32, u32), RedirectEvidence)>() + 1)
            + nodes * (NODE_LEN + AUTHORITY_LEN)
            + redirects * (size_of::<RedirectEdge>() + 64)
            + 4 * texts_len
    }

    /// Adds the observations of a row group.
    pub fn add(&mut self, group: RowGroupObservations) {
        self.other_status += group.other_status;
        self.unparsable += group.unparsable;
        let mut texts = &group.texts[..];
        for ObservedRedirect { from_len, to_len, keys: [from, to], code, place } in group.redirects {
            let (from_text, rest) = texts.split_at(from_len as usize);
            let (to_text, rest) = rest.split_at(to_len as usize);
            texts = rest;
            let nodes = (self.nodes.intern(from_text, from), self.nodes.intern(to_text, to));
            let new = RedirectEvidence { records: 0, code, first: place };
            let evidence = self.redirects.entry(nodes).or_insert(new);
            evidence.records += 1;
            evidence.code = evidence.code.min(code);
            evidence.first = evidence.first.min(place);
        }
    }

    /// Prepares for answers that are added after all redirects; keys are made by `algorithm`.
    pub fn prepare_answers(&mut self, algorithm: KeyAlgorithm) {
        let authorities = (0..self.nodes.len() as u32).filter_map(|node| Spelling::of(self.nodes.uri(node)));
        self.authorities = authorities.map(|spelling| spelling.authority.to_vec()).collect();
        self.algorithm = algorithm;
    }

    /// Adds a distinct URL that answered with a success status. Only URLs on hosts of redirects take memory.
    pub fn add_served(&mut self, uri: &[u8]) {
        let Some(spelling) = Spelling::of(uri) else { return };
        self.served_count += 1;
        if !self.authorities.contains(spelling.authority) {
            return;
        }
        let key = self.algorithm.key(uri);
        if self.nodes.contains(&key) {
            self.served.insert(fingerprint(&key));
        }
        let mut origin = Vec::new();
        spelling.write_origin(&mut origin);
        let answers = self.origins.entry(origin).or_default();
        answers.counts[spelling.ending() as usize] += 1;
        keep_least(&mut answers.examples[spelling.ending() as usize], uri);
    }

    /// Adds the status of a redirect of a URL whose record states no target.
    pub fn add_status(&mut self, uri: &[u8], code: RedirectCode) {
        let key = self.algorithm.key(uri);
        if self.nodes.contains(&key) {
            let weakest = self.statuses.entry(key).or_insert(code);
            *weakest = code.max(*weakest);
        }
    }

    /// Returns the number of distinct redirects.
    pub(crate) fn redirect_count(&self) -> u64 {
        self.redirects.len() as u64
    }

    /// Returns whether a record states that the URL answered with a success status.
    pub(super) fn is_served(&self, key: &KeyBytes) -> bool {
        self.served.contains(&fingerprint(key))
    }
}

/// Returns an upper bound of the bytes of a vector or hash table with `count` entries of `entry_len` bytes while it
/// grows: its capacity is a power of two, at most 7/8 of a table are in use, and the old memory is half of the new.
fn collection_len(count: usize, entry_len: usize) -> usize {
    if count == 0 { 0 } else { (count * 8).div_ceil(7).max(8).next_power_of_two() * 3 / 2 * entry_len }
}

/// Returns the first bits of a key: enough to distinguish the URLs of one crawl where only a count depends on them.
fn fingerprint(key: &KeyBytes) -> u64 {
    key.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

fn keep_least(least: &mut Option<Vec<u8>>, uri: &[u8]) {
    if least.as_deref().is_none_or(|least| uri < least) {
        *least = Some(uri.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::ClassMember;

    #[test]
    fn memory_of_collections_is_bounded() {
        let (mut items, mut set) = (Vec::new(), HashSet::new());
        for i in 0..100_000u64 {
            let (old_items, old_set) = (items.capacity(), set.capacity());
            items.push(i);
            set.insert(i);
            let (bound, set_bound) = (collection_len(items.len(), 8), collection_len(set.len(), 9));
            let growth = |old: usize, new: usize| if old == new { new } else { old + new };
            assert!(growth(old_items, items.capacity()) * 8 <= bound, "{i}");
            assert!(growth(old_set, set.capacity()) * 9 <= set_bound, "{i}");
        }
    }

    #[test]
    fn a_node_has_room_for_its_member() {
        /// Overhead of an allocation in bytes.
        const ALLOCATION: usize = 16;
        let arrays = 4 * size_of::<u64>() + size_of::<Option<RedirectEvidence>>();
        assert!(size_of::<ClassMember>() + 3 * ALLOCATION + arrays <= NODE_LEN);
    }
}
