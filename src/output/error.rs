//! Why an output could not be written: place, operation, reason, and what to do.

use std::io;
use std::path::PathBuf;

use arrow::error::ArrowError;
use parquet::errors::ParquetError;

use crate::batch::BatchError;

/// Why an output ends without being whole. Nothing bears the final name then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The reader of standard output has gone, which is its right: not a failure to tell anybody about.
    #[error("standard output: closed by its reader")]
    ClosedPipe,
    /// The output's name is a directory's.
    #[error("{}: is a directory; name a file, for example {}", .0.display(), .0.join("uris.parquet").display())]
    Directory(PathBuf),
    /// The output's directory is not there.
    #[error("{}: cannot create: {} is no directory; make it first", path.display(), parent.display())]
    NoDirectory {
        /// The output.
        path: PathBuf,
        /// What should be its directory.
        parent: PathBuf,
    },
    /// The output's directory has parts of an earlier run.
    #[error("{}: has parts already; remove them, or choose another directory", .0.display())]
    NotEmpty(PathBuf),
    /// What was written is not what was to be written, when it is read again.
    #[error("{place}: not as it was written: {reason}; nothing bears its name that did not before")]
    NotAsWritten {
        /// The output.
        place: String,
        /// What was found.
        reason: String,
    },
    /// The operating system refused.
    #[error("{place}: cannot {operation}: {}; {advice}", reason(error))]
    Io {
        /// Path, or `standard output`.
        place: String,
        /// What was tried.
        operation: &'static str,
        /// What came of it.
        error: io::Error,
        /// What became of the output, or what to do.
        advice: &'static str,
    },
    /// Rows made no batch.
    #[error("{0}")]
    Batch(#[from] BatchError),
    /// Parquet refused to encode.
    #[error("cannot encode: {0}")]
    Parquet(ParquetError),
    /// Arrow refused to encode.
    #[error("cannot encode: {0}")]
    Arrow(ArrowError),
    /// A part that another encoder made.
    #[error("this part was not made for this output")]
    ForeignPart,
}

/// The reason in the words that systems use, without the number.
fn reason(error: &io::Error) -> String {
    let known = match error.kind() {
        io::ErrorKind::StorageFull => "no space left on device",
        io::ErrorKind::QuotaExceeded => "disk quota exceeded",
        io::ErrorKind::FileTooLarge => "file too large for this file system or limit",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::ReadOnlyFilesystem => "read-only file system",
        io::ErrorKind::NotFound => "no such file or directory",
        _ => return error.to_string(),
    };
    known.to_string()
}

/// What an encoder's error wraps: the system's refusal, or its own.
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
    /// For causes that no file was involved in.
    fn from(cause: WriteError) -> OutputError {
        match cause {
            WriteError::Io(error) => OutputError::Parquet(ParquetError::External(Box::new(error))),
            WriteError::Parquet(error) => OutputError::Parquet(error),
            WriteError::Arrow(error) => OutputError::Arrow(error),
        }
    }
}
