//! Errors of outputs. A message names the path, the operation, the reason and what to do.

use std::io;
use std::path::PathBuf;

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

use crate::batch::BatchError;
use crate::process::{path_name, plain_error, remedy};

/// Why an output is not complete. No partial file has the final name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The reader of standard output has closed the pipe. This is not a failure.
    #[error("standard output: closed by its reader")]
    ClosedPipe,
    /// The path of the output is that of a directory, or ends with a slash.
    #[error("{}: names a directory; name a file", path_name(.0))]
    Directory(PathBuf),
    /// The directory of the output does not exist.
    #[error("{}: cannot create: the directory {} does not exist; create it first", path_name(path), path_name(parent))]
    NoDirectory {
        /// The output.
        path: PathBuf,
        /// The missing directory.
        parent: PathBuf,
    },
    /// The output would be in a directory, but something else has its name.
    #[error("{}: cannot create: {} is not a directory; name another directory", path_name(path), path_name(parent))]
    NotADirectory {
        /// The output.
        path: PathBuf,
        /// What is not a directory.
        parent: PathBuf,
    },
    /// The directory contains parts of an earlier run, or other files.
    #[error("{}: the directory contains files already; remove them, or choose another directory; canon --resume continues a job \
         that it began there", path_name(.0))]
    NotEmpty(PathBuf),
    /// A file with the name of the output appeared while the job ran, and must not be replaced.
    #[error("{}: the file did not exist when the job began, but exists now; it was kept, and the output was not written", path_name(.0))]
    Exists(PathBuf),
    /// The output is not a regular file, but another file has to be written beside it.
    #[error(
        "{}: {format} writes an index beside its data, and this is not a regular file; name a file that ends in .cdx.gz",
        path_name(path)
    )]
    NotRegular {
        /// The output.
        path: PathBuf,
        /// The format.
        format: &'static str,
    },
    /// Another job is writing the directory.
    #[error("{}: another job is writing this directory; wait until it has ended, or choose another directory", path_name(.0))]
    Locked(PathBuf),
    /// Reading the output back gave other rows than were written.
    #[error("{place}: the file does not contain what was written: {reason}; no partial file is left behind")]
    NotAsWritten {
        /// The output.
        place: String,
        /// What reading back found.
        reason: String,
    },
    /// The row groups are too short, and too many for a reader.
    #[error(
        "{}: cannot write: the footer would take too much memory to read, because there are too many row groups; use larger row \
         groups (--row-group-size), or several files (--part-rows); no partial file is left behind",
        path_name(.0)
    )]
    TooManyRowGroups(PathBuf),
    /// The operating system reported an error.
    #[error("{place}: cannot {operation}: {}; {advice}{}", plain_error(error), more_advice(error, advice))]
    Io {
        /// Path, or `standard output`.
        place: String,
        /// What was attempted.
        operation: &'static str,
        /// The error.
        error: io::Error,
        /// The state of the output, or what to do.
        advice: &'static str,
    },
    /// The rows do not form a batch.
    #[error("{0}")]
    Batch(#[from] BatchError),
    /// Parquet could not encode the rows.
    #[error("cannot encode: {0}")]
    Parquet(ParquetError),
    /// Arrow could not encode the rows.
    #[error("cannot encode: {0}")]
    Arrow(ArrowError),
    /// The rows were encoded for another output.
    #[error("the rows were encoded for another output")]
    ForeignRows,
}

/// What to do about an error, unless `advice` contains it.
fn more_advice(error: &io::Error, advice: &str) -> String {
    remedy(error).filter(|remedy| *remedy != advice).map_or_else(String::new, |remedy| format!("; {remedy}"))
}

/// The error of an encoder or of the sink below it.
pub(super) enum WriteError {
    Io(io::Error),
    Parquet(ParquetError),
    Arrow(ArrowError),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> WriteError {
        WriteError::Io(error)
    }
}

impl From<ArrowError> for WriteError {
    fn from(error: ArrowError) -> WriteError {
        match error {
            ArrowError::IoError(_, error) => WriteError::Io(error),
            other => WriteError::Arrow(other),
        }
    }
}

impl From<ParquetError> for WriteError {
    fn from(error: ParquetError) -> WriteError {
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) => WriteError::Io(*error),
                Err(other) => WriteError::Parquet(ParquetError::External(other)),
            },
            other => WriteError::Parquet(other),
        }
    }
}

impl From<WriteError> for OutputError {
    /// Converts an error that does not concern a file.
    fn from(cause: WriteError) -> OutputError {
        match cause {
            WriteError::Io(error) => OutputError::Parquet(ParquetError::External(Box::new(error))),
            WriteError::Parquet(error) => OutputError::Parquet(error),
            WriteError::Arrow(error) => OutputError::Arrow(error),
        }
    }
}
