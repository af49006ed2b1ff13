//! Why rows that wait for a verdict could not be kept.

use std::io;
use std::path::PathBuf;

use arrow::error::ArrowError;

/// What went wrong with a temporary file. The run ends; nothing bears the output's name.
#[derive(Debug, thiserror::Error)]
pub enum SpillError {
    /// It could not be made.
    #[error(
        "{}: cannot make a temporary file there: {error}; name a directory that can be written with --tmp, or allow \
         more memory with --memory", directory.display()
    )]
    Create {
        /// The directory for temporary files.
        directory: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It could not be written.
    #[error(
        "{}: cannot write a temporary file there: {error}; make room, name another directory with --tmp, or allow more \
         memory with --memory; nothing was written under the output's name", directory.display()
    )]
    Write {
        /// The directory for temporary files.
        directory: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It could not be read back.
    #[error("{}: cannot read a temporary file back: {error}; check the device", directory.display())]
    Read {
        /// The directory for temporary files.
        directory: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A batch could not be turned into bytes, or back.
    #[error("rows that wait in temporary files: {0}")]
    Arrow(#[from] ArrowError),
}
