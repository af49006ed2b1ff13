//! Rows as evidence wants them: with the columns of its tables beside those of the output.

use super::{DedupKey, DedupOptions};
use crate::batch::{BatchBuilder, ColumnSet};
use crate::canon::{Policy, Rows, Rung};
use crate::dedup::{Entry, evidence, number};
use crate::key::KeyBytes;
use crate::output::Encoder;
use crate::spill::SpillError;
use arrow::array::RecordBatch;

/// What evidence is made of.
pub struct Evidence {
    /// Of the output's columns and those of the tables.
    pub builder: BatchBuilder,
    /// Which of the further keys are those of `simple` and `syntax`.
    rungs: [Option<usize>; 2],
    /// What to call a key that is no rung's.
    pub key_name: &'static str,
}

impl Evidence {
    pub fn new(wanted: &DedupOptions, encoder: &Encoder, policy: &Policy, names: &[String]) -> Evidence {
        let columns = ColumnSet::named(encoder.columns().names().chain(evidence::COLUMNS)).unwrap_or_default();
        let rung = |rung| policy.more_keys.iter().position(|key| *key == rung);
        Evidence {
            builder: BatchBuilder::new(columns, &[], policy, names),
            rungs: [rung(Rung::Simple), rung(Rung::Syntax)],
            key_name: match wanted.key {
                DedupKey::Recipe(place) => policy.recipes.get(place).map_or("", |wanted| wanted.column),
                DedupKey::Protocol => "protocol",
                DedupKey::Rung | DedupKey::More(_) => policy.rung.name(),
            },
        }
    }

    /// The entry with the first bits of its row's keys.
    pub fn add_rungs(&self, rows: &Rows, row: usize, entry: Entry) -> Entry {
        let first_bits = |key: &KeyBytes| (number(key) >> 64) as u64;
        let [simple, syntax] = self.rungs.map(|key| key.map_or(0, |key| first_bits(&rows.more_keys[key][row])));
        Entry { simple, syntax, rung: first_bits(&rows.key[row]), ..entry }
    }

    /// Rows in the columns of the output.
    pub fn project(&self, rows: &RecordBatch, encoder: &Encoder) -> Result<RecordBatch, SpillError> {
        let columns = encoder.columns().names().filter_map(|name| rows.column_by_name(name).cloned()).collect();
        Ok(RecordBatch::try_new(encoder.schema().clone(), columns)?)
    }
}
