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

pub use build::{BatchBuilder, BatchError};
pub use columns::{COLUMNS, OWN_RULES};
pub use equivalences::{
    EQUIVALENCE_COLUMNS, EQUIVALENCES_VERSION, EquivalencesReader, NoEquivalences, equivalences_batches,
    equivalences_metadata, equivalences_schema,
};
pub use parts::UrlPart;
pub use schema::{Column, ColumnId, ColumnKind, Columns, KEY_LEN, UnknownColumn};

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
