//! What stops a run. Damaged sources do not: they are [`crate::input::InputError`]s in the summary.

use crate::record::csv::CsvColumnsError;
use thiserror::Error;

/// The error that stopped a run; `E` is the caller's, from its output.
#[derive(Debug, Error)]
pub enum RunError<E> {
    /// `encode` or `append` failed; among these is a closed pipe, which the caller may take for success.
    #[error(transparent)]
    Output(E),
    /// A source's columns are not those asked for.
    #[error("{name}: {error}")]
    Columns {
        /// Name of the source.
        name: String,
        /// Why.
        error: CsvColumnsError,
    },
    /// The threads could not be started.
    #[error("cannot start worker threads: {0}; ask for fewer with --threads")]
    Threads(String),
    /// One span's rows are too much text for one row group.
    #[error("the rows of one row group hold {0} bytes of text, too many; make row groups or the base shorter")]
    TooMuchText(usize),
    /// A worker panicked. A defect of this program.
    #[error("a worker failed: {0}; this is a defect of irikey, please report it with the input")]
    Panicked(String),
    /// Records read, rows made and rows appended differ. A defect of this program.
    #[error(
        "the counts do not balance: {records} records decoded, {rows} rows made, {appended} rows appended; \
         this is a defect of irikey, do not use the output"
    )]
    Unbalanced {
        /// Records that the decoders gave.
        records: u64,
        /// Rows that the canonicalizers counted.
        rows: u64,
        /// Rows in parts that were appended.
        appended: u64,
    },
}
