//! How duplicates are found: [`DedupOptions`].

use super::super::RowKey;
use crate::dedup::KeepPolicy;
use crate::dedup::seen::SeenStore;
use std::path::PathBuf;
use std::sync::Arc;

/// How duplicates are found and what becomes of them.
#[derive(Clone, Debug)]
pub struct DedupOptions {
    /// The key that rows are compared by.
    pub key: RowKey,
    /// Which row of a key is kept. The policy has to carry the values that it compares.
    pub keep: KeepPolicy,
    /// Write rows with a fault, in input order; otherwise they are only counted. They never compete.
    pub keep_faulty: bool,
    /// Bytes of memory for keys and pending entries.
    pub memory: usize,
    /// Directory of temporary files.
    pub directory: PathBuf,
    /// Keys of earlier jobs, whose rows are dropped.
    pub seen: Option<Arc<SeenStore>>,
    /// Collect the keys that are not in the store, in `DedupSummary::new_keys`.
    pub gather_new: bool,
    /// Make the tables of duplicates and groups. All rows are pending then. The policy needs the keys of the rungs `simple`
    /// and `syntax` among its `more_keys`.
    pub has_evidence: bool,
    /// Compare canonical texts of rows with equal keys. All rows are pending then, with their texts.
    pub verify: bool,
    /// Survey duplicates for `DedupSummary::findings`, which takes about 25 MB, and half of that per thread. The policy needs
    /// the keys of the rungs `simple` and `syntax` among its `more_keys`, and has to carry statuses and digests.
    pub survey: bool,
    /// Number of bits of keys that are compared: 128, or fewer to provoke collisions.
    pub key_bits: u32,
}

impl Default for DedupOptions {
    fn default() -> DedupOptions {
        DedupOptions {
            key: RowKey::Rung,
            keep: KeepPolicy::First,
            keep_faulty: false,
            memory: usize::MAX,
            directory: std::env::temp_dir(),
            seen: None,
            gather_new: false,
            has_evidence: false,
            verify: false,
            survey: false,
            key_bits: u128::BITS,
        }
    }
}
