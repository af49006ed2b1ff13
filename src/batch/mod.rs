//! Makes Arrow record batches of rows, without copying, and defines all output columns.
//!
//! ```text
//! Rows + [SourceRun] --BatchBuilder::build--> RecordBatch --(encoded)--> BatchBuilder::reclaim --> memory of Rows
//! ```
//!
//! - `columns`: the list of columns; `column`: their types; `schema`: sets of columns
//! - `build`: the builder; `carried`, `derived` and `parts`: columns that it computes from rows
//! - `footer_limit`: the limit on the footers of Parquet files
//! - `equivalences`: the table of learned equivalences and rules, with `rule_rows` and `row_cells`
//!
//! The module knows neither files nor formats. It refuses batches whose text exceeds the 32-bit offsets of Arrow.

#[cfg(target_endian = "big")]
compile_error!(
    "Arrow and Parquet are written in the byte order of the machine, so only little-endian machines are supported; the core \
     (default-features = false) has no such limit"
);

mod build;
mod carried;
mod column;
mod columns;
mod derived;
mod equivalences;
mod error;
#[cfg(feature = "pipeline")]
mod footer_limit;
mod parts;
mod path_values;
#[cfg(feature = "pipeline")]
mod row_cells;
#[cfg(feature = "pipeline")]
mod rule_rows;
mod schema;
mod source_run;
mod text_array;

/// The version of the crate arrow whose types this module has.
pub use arrow;
pub use build::BatchBuilder;
pub(crate) use column::KEY_LEN;
pub use column::{Column, ColumnId, ColumnKind};
pub use columns::COLUMNS;
#[cfg(feature = "pipeline")]
pub(crate) use columns::OWN_RULES;
#[cfg(feature = "cli")]
pub(crate) use equivalences::{
    EQUIVALENCE_COLUMNS, EquivalenceRows, EvidenceRow, equivalences_metadata, equivalences_schema, find_evidence,
};
pub use equivalences::{EquivalencesReader, EquivalencesTableError};
#[cfg(feature = "pipeline")]
pub(crate) use equivalences::{check_part, part_metadata};
pub use error::BatchError;
#[cfg(feature = "pipeline")]
pub(crate) use footer_limit::{max_footer_memory, row_group_memory};
pub use parts::UrlPart;
#[cfg(feature = "pipeline")]
pub(crate) use path_values::{DistinctValues, value_in};
#[cfg(feature = "pipeline")]
pub(crate) use rule_rows::{PartRow, applied_rule, part_row, rule_batch, vote_batch};
#[cfg(feature = "cli")]
pub(crate) use schema::similar_names;
pub use schema::{ColumnSet, UnknownColumn};
pub use source_run::SourceRun;
