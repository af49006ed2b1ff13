//! Why what was learned of parts of the captures cannot be merged: [`PartsError`].

use super::super::equivalences::EquivalencesError;
use crate::spill::SpillError;
use std::path::PathBuf;

/// Why parts cannot be merged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PartsError {
    /// A part cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The part.
        path: PathBuf,
        /// What is wrong.
        #[source]
        error: EquivalencesError,
    },
    /// Parts were learned with different limits.
    #[error("{}: the part was learned with {theirs}, but {} with {ours}; use the same flags for all parts", path.display(), first.display())]
    Limits {
        /// The part.
        path: PathBuf,
        /// The first part.
        first: PathBuf,
        /// The limits of the part.
        theirs: String,
        /// The limits of the first part.
        ours: String,
    },
    /// Several parts have rules of one registered domain.
    #[error(
        "{}: has rules of {site}, as {} has; all captures of a registered domain must be in one part",
        paths[1].display(), paths[0].display()
    )]
    Site {
        /// The parts.
        paths: [PathBuf; 2],
        /// The domain.
        site: String,
    },
    /// A temporary file cannot be used.
    #[error(transparent)]
    Spill(#[from] SpillError),
}
