//! Errors of remote objects: [`RemoteError`].

use std::io;

use thiserror::Error;

/// Why an object cannot be read or written. It never contains credentials, and no text of a server but its error code.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{found}; {advice}")]
pub(crate) struct RemoteError {
    /// What was found.
    pub(crate) found: String,
    /// What to do next.
    pub(crate) advice: String,
    /// The options of the stores are wrong.
    is_of_options: bool,
}

impl RemoteError {
    pub(super) fn new(found: impl Into<String>, advice: impl Into<String>) -> RemoteError {
        RemoteError { found: found.into(), advice: advice.into(), is_of_options: false }
    }

    /// An output is no object in a store.
    pub(super) fn not_an_output() -> RemoteError {
        let advice = "name an object, such as s3://BUCKET/KEY, gs://BUCKET/KEY or az://CONTAINER/KEY";
        RemoteError::new("outputs are objects in stores", advice)
    }

    /// The options of the stores are wrong.
    #[cfg(feature = "remote")]
    pub(super) fn of_options(cause: &str) -> RemoteError {
        let found = format!("the options of the store are wrong: {cause}");
        RemoteError { is_of_options: true, ..RemoteError::new(found, "check --store-option and the environment") }
    }

    /// The server does not send ranges, which a table needs.
    pub(crate) fn without_ranges() -> RemoteError {
        let advice = "fetch the file with another program first";
        RemoteError::new(
            "the server does not send ranges of this file, which Parquet, Arrow and ZIP files need",
            advice,
        )
    }

    /// The server sent a page for people.
    pub(crate) fn page() -> RemoteError {
        let advice = "check the name in a browser, and whether the server wants a log-in";
        RemoteError::new("the server sends a page of HTML or XML instead of compressed data", advice)
    }

    /// The error inside `error`, if it is one of a remote object.
    pub(crate) fn of_io(error: &io::Error) -> Option<&RemoteError> {
        error.get_ref()?.downcast_ref()
    }

    /// Whether `error` is that of wrong options.
    pub(crate) fn is_of_options(error: &io::Error) -> bool {
        RemoteError::of_io(error).is_some_and(|error| error.is_of_options)
    }
}

impl From<RemoteError> for io::Error {
    fn from(error: RemoteError) -> io::Error {
        io::Error::other(error)
    }
}
