//! A sample of records: [`RecordSet`].

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowFate {
    Kept,
    Duplicate,
    /// An earlier job has seen its key.
    Seen,
    /// It is decided at the end of the run.
    Pending,
}

/// Records in the sample.
pub(super) const MAX_RECORDS: usize = 1 << 16;

/// Maximum number of bytes of a URI that are remembered: enough for its host.
const MAX_URI_LEN: usize = 256;

/// A sampled record.
#[derive(Debug)]
pub(super) struct RecordSample {
    pub(super) key: u128,
    /// The beginning of the URI.
    pub(super) uri: Box<[u8]>,
    pub(super) fate: RowFate,
}

impl RecordSample {
    pub(super) fn new(key: u128, uri: &[u8], fate: RowFate) -> RecordSample {
        RecordSample { key, uri: uri[..uri.len().min(MAX_URI_LEN)].into(), fate }
    }
}

/// A sampled record, and the hash and the ordinal by which it was sampled.
type Entry = (u64, u64, RecordSample);

/// The records with the lowest hashes of their ordinals.
#[derive(Debug)]
pub(super) struct RecordSet {
    /// The lowest records are among these; see [`RecordSet::shrink`].
    entries: Vec<Entry>,
    /// Records with greater hashes are not in the sample.
    bound: u64,
}

/// A hash of an ordinal: SplitMix64, a bijection that spreads neighbors.
#[inline]
fn hash(ordinal: u64) -> u64 {
    let mut hash = ordinal.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    hash ^ hash >> 31
}

impl RecordSet {
    pub(super) fn new(bound: u64) -> RecordSet {
        RecordSet { entries: Vec::new(), bound }
    }

    pub(super) fn bound(&self) -> u64 {
        self.bound
    }

    #[inline]
    pub(super) fn takes(&self, ordinal: u64) -> bool {
        hash(ordinal) <= self.bound
    }

    pub(super) fn add(&mut self, ordinal: u64, sample: RecordSample) {
        self.entries.push((hash(ordinal), ordinal, sample));
        self.shrink();
    }

    /// Adds the records of another set. The order does not matter.
    pub(super) fn merge(&mut self, other: RecordSet) {
        let bound = self.bound;
        self.entries.extend(other.entries.into_iter().filter(|entry| entry.0 <= bound));
        self.shrink();
    }

    /// Removes records that are not among the lowest, when there are enough of them to be worth the time.
    fn shrink(&mut self) {
        if self.entries.len() >= MAX_RECORDS * 3 / 2 {
            self.keep_lowest();
        }
    }

    fn keep_lowest(&mut self) {
        if self.entries.len() > MAX_RECORDS {
            // Hashes of different ordinals differ.
            self.entries.select_nth_unstable_by_key(MAX_RECORDS - 1, |entry| entry.0);
            self.entries.truncate(MAX_RECORDS);
            self.bound = self.entries.last().map_or(self.bound, |entry| entry.0);
        }
    }

    pub(super) fn decide_pending(&mut self, is_kept: impl Fn(u64) -> bool) {
        for (_, ordinal, sample) in self.entries.iter_mut().filter(|entry| entry.2.fate == RowFate::Pending) {
            sample.fate = if is_kept(*ordinal) { RowFate::Kept } else { RowFate::Duplicate };
        }
    }

    /// The keys of the records that were not kept.
    pub(super) fn left_out_keys(&self) -> impl Iterator<Item = u128> {
        self.entries.iter().filter(|entry| entry.2.fate == RowFate::Duplicate).map(|entry| entry.2.key)
    }

    pub(super) fn mark_seen(&mut self, is_seen: impl Fn(u128) -> bool) {
        let samples = self.entries.iter_mut().map(|entry| &mut entry.2);
        samples.filter(|sample| is_seen(sample.key)).for_each(|sample| sample.fate = RowFate::Seen);
    }

    /// The sample.
    pub(super) fn into_samples(mut self) -> Vec<RecordSample> {
        self.keep_lowest();
        self.entries.into_iter().map(|entry| entry.2).collect()
    }
}
