//! An open store: [`RemoteStore`].

use std::sync::Arc;

use object_store::ObjectStore;

use super::url::RemoteScheme;

/// A bucket, or a file on an HTTP server.
#[derive(Clone, Debug)]
pub(super) struct RemoteStore {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) scheme: RemoteScheme,
    /// No credentials were found.
    pub(super) is_anonymous: bool,
}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StorePurpose {
    Read,
    Write,
}
