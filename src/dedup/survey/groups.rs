//! A sample of whole groups of duplicates: [`GroupSet`].

use std::collections::BTreeMap;

/// A row without a fault, as the survey sees it.
#[derive(Clone, Debug)]
pub(crate) struct SurveyRow<'a> {
    /// The key that the row competes for.
    pub(crate) key: u128,
    /// First bits of its keys of the rungs `simple` and `syntax`, and of the policy's rung.
    pub(crate) rungs: [u64; 3],
    pub(crate) uri: &'a [u8],
    /// Hash of the digest of its content, if the response had content.
    pub(crate) digest: Option<u64>,
}

/// Maximum length of the sample, in bytes. It is longer than any group.
const MAX_LEN: usize = 4 << 20;

/// Maximum number of different spellings of a group that are remembered.
const MAX_SPELLINGS: usize = 4096;

/// Maximum number of different URIs of a group that are remembered.
const MAX_URIS: usize = 256;

/// Maximum length of a URI that is remembered, in bytes.
const MAX_URI_LEN: usize = 1024;

/// Maximum number of different digests of a URI.
const MAX_DIGESTS: usize = 4;

/// Low bits of a key, by which groups are sampled, and the key.
type GroupKey = (u64, u128);

/// The keys of a row, from the strongest rung: texts that are equal on a rung are equal on every rung before it.
type Spelling = [u64; 3];

/// A sampled group of duplicates.
#[derive(Debug, Default)]
pub(super) struct GroupSample {
    pub(super) rows: u64,
    /// The smallest different spellings, in order.
    spellings: Vec<Spelling>,
    /// The URIs with the smallest keys of the policy's rung, in the order of these keys.
    pub(super) uris: Vec<UriSample>,
}

/// A URI of a group.
#[derive(Debug)]
pub(super) struct UriSample {
    rung: u64,
    /// Empty if the URI is too long, or if URIs are not compared.
    pub(super) uri: Box<[u8]>,
    pub(super) rows_with_digest: u64,
    /// The smallest different digests, in order.
    pub(super) digests: Vec<u64>,
}

/// Inserts a value into an ordered set of the `max` smallest values.
fn insert_smallest<T: Ord>(set: &mut Vec<T>, value: T, max: usize) {
    if let Err(at) = set.binary_search(&value)
        && at < max
    {
        set.truncate(max - 1);
        set.insert(at, value);
    }
}

impl GroupSample {
    /// Bytes of memory that count for the group: at least those that it takes, about. The number depends on the set of rows
    /// only and does not decrease when rows are added. A group with [`MAX_URIS`] URIs therefore counts as if all were as long
    /// as possible: which of them it has, and how long they are, changes when further ones replace them.
    fn len(&self, has_uris: bool) -> usize {
        let len = |text: usize, digests: usize| size_of::<UriSample>() + text + size_of::<u64>() * digests;
        let uris = match self.uris.len() {
            MAX_URIS => MAX_URIS * len(if has_uris { MAX_URI_LEN } else { 0 }, MAX_DIGESTS),
            _ => self.uris.iter().map(|uri| len(uri.uri.len(), uri.digests.len())).sum(),
        };
        2 * size_of::<GroupSample>() + self.spellings.len() * size_of::<Spelling>() + uris
    }

    fn add(&mut self, row: &SurveyRow<'_>, has_uris: bool) {
        let [simple, syntax, rung] = row.rungs;
        self.rows += 1;
        insert_smallest(&mut self.spellings, [rung, syntax, simple], MAX_SPELLINGS);
        let is_compared = has_uris && row.uri.len() <= MAX_URI_LEN;
        if let Some(uri) = self.uri(rung, || if is_compared { row.uri.into() } else { Box::default() })
            && let Some(digest) = row.digest
        {
            uri.rows_with_digest += 1;
            insert_smallest(&mut uri.digests, digest, MAX_DIGESTS);
        }
    }

    /// The URI with this key, which is added unless there are too many.
    fn uri(&mut self, rung: u64, text: impl FnOnce() -> Box<[u8]>) -> Option<&mut UriSample> {
        match self.uris.binary_search_by_key(&rung, |uri| uri.rung) {
            Ok(at) => Some(&mut self.uris[at]),
            Err(MAX_URIS..) => None,
            Err(at) => {
                self.uris.truncate(MAX_URIS - 1);
                let uri = UriSample { rung, uri: text(), rows_with_digest: 0, digests: Vec::new() };
                self.uris.insert(at, uri);
                Some(&mut self.uris[at])
            }
        }
    }

    fn merge(&mut self, other: GroupSample) {
        self.rows += other.rows;
        other.spellings.into_iter().for_each(|spelling| insert_smallest(&mut self.spellings, spelling, MAX_SPELLINGS));
        for sample in other.uris {
            if let Some(uri) = self.uri(sample.rung, || sample.uri) {
                uri.rows_with_digest += sample.rows_with_digest;
                sample.digests.into_iter().for_each(|digest| insert_smallest(&mut uri.digests, digest, MAX_DIGESTS));
            }
        }
    }

    /// Numbers of different texts on the rungs `simple` and `syntax`, and on the policy's rung. They do not increase.
    pub(super) fn distinct(&self) -> [u64; 3] {
        let count = |len: usize| self.spellings.chunk_by(|a, b| a[..len] == b[..len]).count() as u64;
        [self.spellings.len() as u64, count(2), count(1)]
    }
}

/// The groups with the lowest key bits that fit into memory.
#[derive(Debug)]
pub(super) struct GroupSet {
    groups: BTreeMap<GroupKey, GroupSample>,
    /// Sum of the lengths of `groups`.
    len: usize,
    /// Groups with greater low key bits are not in the sample.
    bound: u64,
    has_uris: bool,
}

impl GroupSet {
    pub(super) fn new(bound: u64, has_uris: bool) -> GroupSet {
        GroupSet { groups: BTreeMap::new(), len: 0, bound, has_uris }
    }

    pub(super) fn bound(&self) -> u64 {
        self.bound
    }

    /// All groups of the run are in the sample.
    pub(super) fn is_whole(&self) -> bool {
        self.bound == u64::MAX
    }

    #[inline]
    pub(super) fn takes(&self, key: u128) -> bool {
        key as u64 <= self.bound
    }

    pub(super) fn add(&mut self, row: &SurveyRow<'_>) {
        let has_uris = self.has_uris;
        self.update(row.key, |group| group.add(row, has_uris));
        self.shrink();
    }

    /// Adds the groups of another set. The result does not depend on the order: a group that is removed because lower ones
    /// fill the memory would be removed in any order, because the lengths of groups never decrease.
    pub(super) fn merge(&mut self, other: GroupSet) {
        self.bound = self.bound.min(other.bound);
        for ((_, key), group) in other.groups {
            if self.takes(key) {
                self.update(key, |sample| sample.merge(group));
            }
        }
        self.shrink();
    }

    fn update(&mut self, key: u128, update: impl FnOnce(&mut GroupSample)) {
        let group = self.groups.entry((key as u64, key)).or_default();
        let before = if group.rows == 0 { 0 } else { group.len(self.has_uris) };
        update(group);
        self.len = self.len - before + group.len(self.has_uris);
    }

    /// Removes the groups above the bound, and lowers the bound until the rest fits.
    fn shrink(&mut self) {
        while let Some((&(low_bits, _), _)) = self.groups.last_key_value() {
            if low_bits <= self.bound && self.len <= MAX_LEN {
                return;
            }
            let removed = self.groups.pop_last();
            self.len -= removed.map_or(0, |(_, group)| group.len(self.has_uris));
            self.bound = self.bound.min(low_bits.saturating_sub(1));
        }
    }

    /// The groups in the order of their low key bits, which is a random order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &GroupSample> {
        self.groups.values()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = u128> {
        self.groups.keys().map(|(_, key)| *key)
    }

    /// Removes groups for a reason that does not depend on the sample.
    pub(super) fn retain(&mut self, keep: impl Fn(u128) -> bool) {
        self.groups.retain(|(_, key), _| keep(*key));
    }
}
