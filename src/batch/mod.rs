//! Rows in, Arrow batches out: the one list of columns, and a builder that moves vectors instead of copying them.
//!
//! ```text
//! Rows + [SourceRun] --BatchBuilder--> RecordBatch --(encoded)--> reclaim --> the memory of Rows again
//! ```
//!
//! It knows neither files nor formats. A batch whose texts Arrow's 32-bit offsets cannot count is refused.

mod build;
mod carried;
mod columns;
mod derived;
mod equivalences;
mod parts;
mod schema;
mod text_array;

pub use build::{BatchBuilder, BatchError};
pub use columns::{COLUMNS, OWN_RULES};
pub use equivalences::{
    EQUIVALENCE_COLUMNS, EQUIVALENCES_VERSION, EquivalencesReader, EquivalencesTableError, equivalences_batches,
    equivalences_metadata, equivalences_schema,
};
pub use parts::UrlPart;
pub use schema::{Column, ColumnId, ColumnKind, ColumnSet, KEY_LEN, UnknownColumn};

use std::ops::Range;

/// Rows of one source that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceRun {
    /// Which source: its place in the list of sources.
    pub source: u32,
    /// Ordinal in its source of the first row, counted from 1.
    pub first_record: u64,
    /// How many rows.
    pub rows: u32,
}

impl SourceRun {
    /// What is left of `runs` of the rows in `stretches`, ascending ones that do not overlap.
    ///
    /// ```
    /// use irikey::batch::SourceRun;
    /// let run = |first_record, rows| SourceRun { source: 0, first_record, rows };
    /// assert_eq!(SourceRun::retain(&[run(1, 5), run(1, 5)], &[1..2, 4..7]), [run(2, 1), run(5, 1), run(1, 2)]);
    /// ```
    pub fn retain(runs: &[SourceRun], stretches: &[Range<usize>]) -> Vec<SourceRun> {
        let mut kept = Vec::with_capacity(runs.len() + stretches.len());
        let (mut stretches, mut first) = (stretches.iter().cloned(), 0);
        let mut next = stretches.next();
        for run in runs {
            let end = first + run.rows as usize;
            while let Some(stretch) = next.as_mut().filter(|stretch| stretch.start < end) {
                let part = stretch.start..stretch.end.min(end);
                let first_record = run.first_record + (part.start - first) as u64;
                kept.push(SourceRun { first_record, rows: part.len() as u32, ..*run });
                stretch.start = part.end;
                if stretch.start == stretch.end {
                    next = stretches.next();
                }
            }
            first = end;
        }
        kept
    }
}
