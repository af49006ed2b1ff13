//! Errors of building batches.

use arrow::error::ArrowError;

use crate::iri::Rung;

/// Why no batch could be built. Except for `TooLong`, these are mistakes of the caller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The text of a column exceeds the 32-bit offsets of Arrow.
    #[error(
        "column {column} has {bytes} bytes of text in one row group, more than the limit of 2 GiB; use a smaller --row-group-size"
    )]
    TooLong {
        /// The column.
        column: &'static str,
        /// Bytes of its text.
        bytes: usize,
    },
    /// A column does not have one entry per row.
    #[error("column {column} has {found} entries, expected {expected}")]
    Uneven {
        /// The column.
        column: &'static str,
        /// Number of rows.
        expected: usize,
        /// Number of entries of the column.
        found: usize,
    },
    /// The offsets of texts do not ascend from 0 to the end of their bytes.
    #[error("column {0} has invalid offsets")]
    InvalidOffsets(&'static str),
    /// The faults are not in the order of their rows, or one belongs to no row.
    #[error("the faults are not in the order of their rows, or one belongs to no row")]
    InvalidFaults,
    /// A column of values of the directories of sources has no values.
    #[error("column {0} has no values of directories")]
    MissingPathValues(&'static str),
    /// A run refers to a source past the end of the list.
    #[error("source {0} is not in the list of sources")]
    UnknownSource(u32),
    /// The rows lack the key of a rung that a column needs.
    #[error("the rows have no key of rung {}", .0.name())]
    MissingKey(Rung),
    /// The rows lack the records' texts, because their policy does not keep them.
    #[error("the rows have no input, because their policy has no keep_input")]
    MissingInput,
    /// The rows lack keys of representatives.
    #[error("the rows have no key of rung protocol, which requires equivalences")]
    MissingProtocol,
    /// The rows lack the key of a recipe that a column needs.
    #[error("the rows have no key of recipe {0}")]
    MissingRecipe(&'static str),
    /// Arrow reported an error.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
}
