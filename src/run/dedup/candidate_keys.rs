//! What the rows of a run compete with: the key that they are compared by, their rank, and the texts that decide the rest
//! ([`CandidateKeys`]); and the columns of the tables of duplicates ([`EvidenceColumns`]).

use super::super::RowKey;
use super::options::DedupOptions;
use crate::batch::BatchBuilder;
use crate::canon::{Policy, Rows, Rung};
use crate::dedup::{
    Candidate, EntryLayout, EntryTexts, KeepPolicy, PartitionedKeys, PendingEntry, evidence, key_number,
};
use crate::key::{KeyAlgorithm, KeyBytes};
use crate::output::Encoder;

/// Finds the keys, ranks and texts of rows.
#[derive(Debug)]
pub(super) struct CandidateKeys {
    key: RowKey,
    keep: KeepPolicy,
    algorithm: KeyAlgorithm,
    /// The bits of keys that count.
    mask: u128,
    layout: EntryLayout,
}

impl CandidateKeys {
    pub(super) fn new(options: &DedupOptions, policy: &Policy) -> CandidateKeys {
        // Rows with the same key of a rung have the same URI, so that URIs decide nothing between them.
        let has_uri = options.keep == KeepPolicy::Best && options.key != RowKey::Rung;
        let layout = EntryLayout {
            has_ordinal: true,
            kinds_len: 0,
            has_rank: options.keep.compares_time(),
            has_rungs: options.has_evidence,
            has_canonical: options.verify,
            has_uri,
        };
        let mask = u128::MAX.checked_shl(u128::BITS - options.key_bits.clamp(1, u128::BITS)).unwrap_or(u128::MAX);
        CandidateKeys { key: options.key, keep: options.keep, algorithm: policy.algorithm, mask, layout }
    }

    /// The fields that entries store.
    pub(super) fn layout(&self) -> EntryLayout {
        self.layout
    }

    /// Partitions the keys of the rows `selected`, which ascend.
    pub(super) fn partition(
        &self,
        rows: &Rows,
        selected: impl Iterator<Item = usize> + Clone,
        out: &mut PartitionedKeys,
    ) {
        let keys = self.key.of_rows(rows, self.algorithm);
        let keyed = selected.map(|row| (key_number(&keys[row]) & self.mask, row as u32));
        out.fill(keyed);
    }

    /// The key that a row competes for.
    pub(super) fn key(&self, rows: &Rows, row: usize) -> u128 {
        key_number(&self.key.of_row(rows, row, self.algorithm)) & self.mask
    }

    /// The text that a row's key is a hash of.
    fn canonical<'r>(&self, rows: &'r Rows, row: usize) -> &'r [u8] {
        match self.key {
            RowKey::Recipe(index) if !rows.recipe_texts[index].get(row).is_empty() => rows.recipe_texts[index].get(row),
            _ => rows.uri.get(row),
        }
    }

    /// The entry of a row, without the keys of rungs, and its texts.
    pub(super) fn entry<'r>(
        &self,
        rows: &'r Rows,
        row: usize,
        key: u128,
        ordinal: u64,
    ) -> (PendingEntry, EntryTexts<'r>) {
        let uri = rows.uri.get(row);
        let (time, status) = (time(rows, row), rows.carried.statuses.get(row).copied().flatten());
        let rank = if self.layout.has_rank { self.keep.rank(&Candidate { time, status, uri, ordinal }) } else { 0 };
        let canonical = if self.layout.has_canonical { self.canonical(rows, row) } else { &[] };
        (PendingEntry { key, ordinal, rank, ..PendingEntry::default() }, EntryTexts { canonical, uri })
    }

    /// Counts the selected rows without a time, if the policy compares times.
    pub(super) fn count_undated(&self, rows: &Rows, selected: impl Iterator<Item = usize>) -> u64 {
        match self.keep.compares_time() {
            true => selected.filter(|row| time(rows, *row).is_none()).count() as u64,
            false => 0,
        }
    }
}

fn time(rows: &Rows, row: usize) -> Option<i64> {
    rows.carried.times.get(row).copied().flatten()
}

/// The keys of rows on the rungs `simple` and `syntax`, which are among the policy's `more_keys`, and on its own rung.
#[derive(Debug)]
pub(super) struct RungKeys {
    /// Indices of the first two in `more_keys`.
    lower: [Option<usize>; 2],
}

impl RungKeys {
    pub(super) fn new(policy: &Policy) -> RungKeys {
        RungKeys { lower: [Rung::Simple, Rung::Syntax].map(|rung| policy.key_index(rung)) }
    }

    /// First 64 bits of each of the three keys of a row. A rung that `more_keys` lacks has the key of the policy's own rung.
    pub(super) fn of_row(&self, rows: &Rows, row: usize) -> [u64; 3] {
        let first_bits = |key: &KeyBytes| (key_number(key) >> 64) as u64;
        let own = &rows.key[row];
        let [simple, syntax] = self.lower.map(|index| index.map_or(own, |index| &rows.more_keys[index][row]));
        [simple, syntax, own].map(first_bits)
    }
}

/// The columns of pending rows when tables of duplicates are written: those of the output and of the tables.
pub(super) struct EvidenceColumns {
    pub(super) builder: BatchBuilder,
    rungs: RungKeys,
    /// Name of the compared key; empty if that is the key of a rung.
    pub(super) key_name: &'static str,
}

impl EvidenceColumns {
    pub(super) fn new(options: &DedupOptions, encoder: &Encoder, policy: &Policy, names: &[String]) -> EvidenceColumns {
        let mut columns = encoder.columns().clone();
        columns.add_named(evidence::COLUMNS);
        EvidenceColumns {
            builder: BatchBuilder::new(columns, &[], policy, names),
            rungs: RungKeys::new(policy),
            key_name: match options.key {
                RowKey::Recipe(index) => policy.recipes.get(index).map_or("", |recipe| recipe.column),
                RowKey::Protocol => "protocol",
                RowKey::Rung | RowKey::More(_) => "",
            },
        }
    }

    /// Adds the keys of rungs to the entry of a row.
    pub(super) fn add_rungs(&self, rows: &Rows, row: usize, entry: PendingEntry) -> PendingEntry {
        let [simple, syntax, rung] = self.rungs.of_row(rows, row);
        PendingEntry { simple, syntax, rung, ..entry }
    }
}
