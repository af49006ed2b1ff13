//! Why a store of seen keys cannot be used. Nothing in it has changed then.

use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum SeenError {
    /// There is no store.
    #[error("{}: no store of seen keys is there; make one with dedup --update-seen", .0.display())]
    Missing(PathBuf),
    /// The directory has other things in it.
    #[error("{}: not a store of seen keys, and not empty; name another directory", .0.display())]
    NotAStore(PathBuf),
    /// Another process adds to it.
    #[error("{}: another process is adding to this store; wait for it to end, or use another store", .0.display())]
    Locked(PathBuf),
    /// Its keys were made otherwise.
    #[error("{}: its keys were made otherwise: {differences}; use the same flags, or another store", directory.display())]
    OtherPolicy {
        /// The store.
        directory: PathBuf,
        /// What differs: name, value there, value here.
        differences: String,
    },
    /// A file is not what the manifest says.
    #[error("{}: damaged: {what}; restore the store from a copy, or begin a new one", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        what: String,
    },
    /// The system refused.
    #[error("{}: cannot {operation}: {error}; the store is as it was", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl SeenError {
    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> SeenError {
        SeenError::Damaged { path: path.to_path_buf(), what: what.into() }
    }

    /// For `map_err`.
    pub(super) fn io(path: &Path, operation: &'static str) -> impl FnOnce(io::Error) -> SeenError {
        let path = path.to_path_buf();
        move |error| SeenError::Io { path, operation, error }
    }
}
