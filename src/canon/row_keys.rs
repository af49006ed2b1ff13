//! The keys of rows: the hashes of their URIs, except for the keys of other rungs and of rows with a fault.

use std::sync::Arc;

use super::policy::{Policy, Rung};
use super::reference::{PreparedReference, ReferenceWriter};
use super::rows::Rows;
use crate::iri::{Changes, MarkedReference};
use crate::key::KeyBytes;

/// Makes the keys of rows by one policy. It collects those that are not the hash of their row's URI while the rows of a chunk are
/// written. All others are computed afterwards, because hashing many texts at once is faster.
#[derive(Debug)]
pub(super) struct RowKeys {
    policy: Arc<Policy>,
    /// The only key of a row is the key of its URI.
    pub(super) has_key_of_uri: bool,
    /// Buffer for the text of a further rung.
    rung_text: Vec<u8>,
    /// The keys of the current chunk that differ from the key of their row's URI.
    deviating: Vec<DeviatingKey>,
}

/// A row whose URI was written.
pub(super) struct WrittenRow<'a> {
    pub(super) row: usize,
    pub(super) reference: MarkedReference<'a>,
    pub(super) prepared: &'a PreparedReference,
    /// The changes that led from the reference to the URI.
    pub(super) changes: Changes,
}

/// A key of a row that is not the hash of its URI.
#[derive(Debug)]
struct DeviatingKey {
    row: usize,
    /// 0 for the key, then the further keys.
    column: usize,
    key: KeyBytes,
}

impl RowKeys {
    pub(super) fn new(policy: &Arc<Policy>) -> RowKeys {
        RowKeys {
            has_key_of_uri: policy.rung != Rung::Simple && policy.more_keys.is_empty(),
            policy: Arc::clone(policy),
            rung_text: Vec::new(),
            deviating: Vec::new(),
        }
    }

    /// Computes the keys of a row that are not the key of its URI.
    pub(super) fn push_deviating(&mut self, written: &WrittenRow<'_>, references: &mut ReferenceWriter) {
        let WrittenRow { row, prepared, changes, .. } = *written;
        let is_simple = changes.is_empty() && !prepared.in_target;
        let is_syntax = self.policy.rung != Rung::Scheme || !changes.intersects(Changes::OF_SCHEME);
        for column in 0..=self.policy.more_keys.len() {
            let (rung, deviates) = match column.checked_sub(1).map(|further| self.policy.more_keys[further]) {
                None => (Rung::Simple, self.policy.rung == Rung::Simple && !is_simple),
                Some(Rung::Simple) => (Rung::Simple, !is_simple),
                Some(Rung::Syntax) => (Rung::Syntax, !is_syntax),
                Some(Rung::Scheme) => (Rung::Scheme, self.policy.rung != Rung::Scheme),
            };
            if deviates {
                let key = self.rung_key(written, rung, references);
                self.deviating.push(DeviatingKey { row, column, key });
            }
        }
    }

    /// Adds the keys of a row with a fault, whose record is `record`.
    pub(super) fn push_fault(&mut self, row: usize, record: &[u8]) {
        let key = self.policy.algorithm.fault_key(record);
        let columns = 0..=self.policy.more_keys.len();
        self.deviating.extend(columns.map(|column| DeviatingKey { row, column, key }));
    }

    /// Appends the keys of the rows from `first` on: those of their URIs, except for the deviating keys.
    pub(super) fn append(&mut self, first: usize, rows: &mut Rows) {
        self.policy.algorithm.push_keys(&rows.uri.values, &rows.uri.offsets[first..], &mut rows.key);
        rows.more_keys.iter_mut().for_each(|keys| keys.extend_from_slice(&rows.key[first..]));
        for DeviatingKey { row, column, key } in self.deviating.drain(..) {
            match column {
                0 => rows.key[row] = key,
                further => rows.more_keys[further - 1][row] = key,
            }
        }
    }

    /// Returns the key of a row on another rung than that of its URI.
    fn rung_key(&mut self, written: &WrittenRow<'_>, rung: Rung, references: &mut ReferenceWriter) -> KeyBytes {
        let WrittenRow { reference, prepared, .. } = *written;
        let algorithm = self.policy.algorithm;
        if rung == Rung::Simple {
            return algorithm.key(references.simple_text(reference.bytes(), prepared));
        }
        let mut text = std::mem::take(&mut self.rung_text);
        text.clear();
        // Faults do not depend on the rung, and the URI was written without one.
        let written = references.write_rung(reference, prepared, rung, &mut text);
        debug_assert!(written.is_ok());
        let key = algorithm.key(&text);
        self.rung_text = text;
        key
    }
}
