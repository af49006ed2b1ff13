//! Errors that stop a run. A damaged source does not: the summary has its [`crate::input::InputError`].

use crate::canon::MAX_TEXT_LEN;
use crate::record::csv::ColumnChoiceError;
use thiserror::Error;

/// The error that stopped a run. `E` is the error of the caller's output.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError<E> {
    /// `encode` or `append` failed. A closed pipe is such an error, which the caller may treat as success.
    #[error(transparent)]
    Output(E),
    /// The sources cannot be read with these options.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output was created for rows of another policy, which its metadata would describe.
    #[error("the run and the output have different policies: {0} differs; give both the same policy")]
    Policy(&'static str),
    /// The threads could not be started.
    #[error("cannot start worker threads: {0}; use fewer with --threads")]
    Threads(String),
    /// A worker panicked, which is a bug in this program.
    #[error("a worker failed: {0}; this is a bug in irikey")]
    Panicked(String),
    /// The numbers of records read, rows made and rows appended differ, which is a bug in this program.
    #[error(
        "the counts do not balance: {records} records decoded, {rows} rows made, {appended} rows appended; \
         this is a bug in irikey: do not use the output"
    )]
    Unbalanced {
        /// Records decoded.
        records: u64,
        /// Rows that the canonicalizers counted.
        rows: u64,
        /// Rows appended.
        appended: u64,
    },
}

impl<E> RunError<E> {
    /// An error of the output, or of what a job does besides reading.
    pub(super) fn output(error: impl Into<E>) -> RunError<E> {
        RunError::Output(error.into())
    }
}

/// An error of reading that stops a run, whatever its output is.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A source lacks a requested column.
    #[error("{name}: {error}")]
    Columns {
        /// Name of the source.
        name: String,
        /// The error.
        error: ColumnChoiceError,
    },
    /// The texts of a row group exceed what Arrow's 32-bit offsets can address.
    #[error(
        "the texts of one row group would exceed {MAX_TEXT_LEN} bytes in a column (there are {0} bytes already); \
         use a smaller --row-group-size or a shorter base"
    )]
    TooMuchText(usize),
}
