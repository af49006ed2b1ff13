//! What records showed, gathered: a worker's [`RowGroupObservations`] of a span, and all of them in [`Observations`]. In: canonical URIs
//! with their keys, statuses, places. Out: each redirect once, with how often and where first it was seen; how many
//! different URLs of each origin answered for themselves. Sums, sets and minima alone, so that no order matters.

use super::guards::RedirectEdge;
use super::learned::ClassMember;
use super::memory;
use super::nodes::UrlNodes;
use super::redirect::RedirectCode;
use super::spelling::{PathEnding, Spelling};
use crate::key::KeyBytes;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

/// A record: the place of its source's name among all names in order, and its ordinal in there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordPlace {
    /// Rank of the source's name.
    pub source: u32,
    /// Ordinal of the record, from 1.
    pub record: u64,
}

/// What the records of a span showed.
#[derive(Debug, Default)]
pub struct RowGroupObservations {
    texts: Vec<u8>,
    redirects: Vec<SeenRedirect>,
    statuses: Vec<(KeyBytes, RedirectCode)>,
    origins: HashMap<Vec<u8>, RowGroupAnswers>,
    other_status: u64,
    unparsable: u64,
}

#[derive(Debug)]
struct SeenRedirect {
    from_len: u32,
    to_len: u32,
    keys: [KeyBytes; 2],
    code: RedirectCode,
    place: RecordPlace,
}

#[derive(Debug, Default)]
struct RowGroupAnswers {
    fingerprints: Vec<(u64, PathEnding)>,
    examples: [Option<Vec<u8>>; 4],
}

impl RowGroupObservations {
    /// A record says that `from` redirected to `to`: canonical URIs and their keys.
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
        self.redirects.push(SeenRedirect { from_len, to_len, keys: [from.1, to.1], code, place });
    }

    /// So many records name a redirect whose URL or target cannot be read.
    pub fn unparsable(&mut self, count: u64) {
        self.unparsable += count;
    }

    /// A record says that `uri` answered with `status` and does not name a target.
    pub fn answer(&mut self, uri: &[u8], key: KeyBytes, status: i32) {
        if let Some(code) = RedirectCode::of(status) {
            self.statuses.push((key, code));
        } else if (200..300).contains(&status)
            && let Some(spelling) = Spelling::of(uri)
        {
            let mut origin = Vec::new();
            spelling.write_origin(&mut origin);
            let (ending, answers) = (spelling.ending(), self.origins.entry(origin).or_default());
            answers.fingerprints.push((fingerprint(&key), ending));
            keep_least(&mut answers.examples[ending as usize], uri);
        }
    }
}

/// A redirect, however often it was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct RedirectEvidence {
    pub records: u64,
    /// The strongest.
    pub code: RedirectCode,
    pub first: RecordPlace,
}

/// URLs of an origin that answered for themselves, by their paths' endings.
#[derive(Debug, Default)]
pub(super) struct OriginAnswers {
    pub counts: [u64; 4],
    /// The least of them, by bytes.
    pub examples: [Option<Vec<u8>>; 4],
}

/// What all records showed. Memory, besides what [`Observations::learn`] takes: some 100 bytes and two URIs for each different
/// redirect, 9 to 36 bytes for each different URL that answered for itself, two URIs and 200 bytes for each of their
/// origins.
#[derive(Debug, Default)]
pub struct Observations {
    pub(super) nodes: UrlNodes,
    pub(super) redirects: HashMap<(u32, u32), RedirectEvidence>,
    /// The weakest status that a URL answered with where no target was named.
    pub(super) statuses: HashMap<KeyBytes, RedirectCode>,
    /// First bits of the keys of URLs that answered for themselves.
    pub(super) served: HashSet<u64>,
    /// By scheme and authority.
    pub(super) origins: HashMap<Vec<u8>, OriginAnswers>,
    pub(super) other_status: u64,
    pub(super) unparsable: u64,
    /// Bytes of the names of origins, and of the URLs that are their examples.
    origins_len: usize,
}

/// What an allocation takes beside its bytes.
const ALLOCATED: usize = 16;

impl Observations {
    /// Bytes of memory once `sightings` are added, and while what all of them showed is learned from: never less than it
    /// takes, but for what is on the stack.
    pub fn memory_len(&self, sightings: &RowGroupObservations) -> usize {
        let (redirects, answered) = (sightings.redirects.len(), sightings.origins.values());
        let answers: usize = answered.map(|answers| answers.fingerprints.len()).sum();
        let origins = memory::of_map(&self.origins, sightings.origins.len()) + self.origins_len;
        let sets = memory::of_set(&self.served, answers) + memory::of_map(&self.statuses, sightings.statuses.len());
        let redirects_len = memory::of_map(&self.redirects, redirects);
        let nodes = self.nodes.memory_len(redirects * 2, sightings.texts.len());
        nodes + redirects_len + sets + origins + self.learning_len(redirects, sightings.texts.len())
    }

    /// Bytes that learning takes besides, once there are so many more redirects, with so many bytes of text: edges, where
    /// each URL leads, members with their texts, evidence of hosts.
    fn learning_len(&self, more: usize, text_len: usize) -> usize {
        const OF_NODE: usize =
            size_of::<ClassMember>() + 3 * ALLOCATED + 4 * size_of::<u64>() + size_of::<Option<RedirectEvidence>>();
        const OF_REDIRECT: usize = size_of::<RedirectEdge>() + 64;
        let nodes = self.nodes.len() + more * 2;
        nodes * OF_NODE + (self.redirects.len() + more) * OF_REDIRECT + 4 * (self.nodes.texts_len() + text_len)
    }

    /// Adds what a span showed.
    pub fn add(&mut self, sightings: RowGroupObservations) {
        self.other_status += sightings.other_status;
        self.unparsable += sightings.unparsable;
        let mut texts = &sightings.texts[..];
        for SeenRedirect { from_len, to_len, keys: [from, to], code, place } in sightings.redirects {
            let (from_text, rest) = texts.split_at(from_len as usize);
            let (to_text, rest) = rest.split_at(to_len as usize);
            texts = rest;
            let nodes = (self.nodes.intern(from_text, from), self.nodes.intern(to_text, to));
            let one = RedirectEvidence { records: 0, code, first: place };
            let evidence = self.redirects.entry(nodes).or_insert(one);
            evidence.records += 1;
            evidence.code = evidence.code.min(code);
            evidence.first = evidence.first.min(place);
        }
        for (key, code) in sightings.statuses {
            let weakest = self.statuses.entry(key).or_insert(code);
            *weakest = code.max(*weakest);
        }
        for (origin, seen) in sightings.origins {
            let len = origin.len();
            let entry = self.origins.entry(origin);
            self.origins_len += if matches!(entry, Entry::Vacant(_)) { len + ALLOCATED } else { 0 };
            let answers = entry.or_default();
            for (fingerprint, ending) in seen.fingerprints {
                answers.counts[ending as usize] += u64::from(self.served.insert(fingerprint));
            }
            for (least, uri) in answers.examples.iter_mut().zip(seen.examples) {
                let Some(uri) = uri else { continue };
                self.origins_len -= least.as_ref().map_or(0, |least| least.len() + ALLOCATED);
                keep_least(least, &uri);
                self.origins_len += least.as_ref().map_or(0, |least| least.len() + ALLOCATED);
            }
        }
    }

    /// How many different redirects there are.
    pub fn redirect_count(&self) -> u64 {
        self.redirects.len() as u64
    }

    /// The URL answered for itself, as some record says.
    pub(super) fn is_served(&self, key: &KeyBytes) -> bool {
        self.served.contains(&fingerprint(key))
    }
}

/// Enough of a key to tell URLs of one crawl apart where only a count depends on it.
fn fingerprint(key: &KeyBytes) -> u64 {
    key.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

fn keep_least(least: &mut Option<Vec<u8>>, uri: &[u8]) {
    if least.as_deref().is_none_or(|least| uri < least) {
        *least = Some(uri.to_vec());
    }
}
