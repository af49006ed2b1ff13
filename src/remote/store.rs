//! An open store: [`RemoteStore`].

use std::fmt::Debug;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::list::PaginatedListStore;

use super::url::RemoteScheme;

/// A bucket, or a file on an HTTP server.
#[derive(Clone, Debug)]
pub(super) struct RemoteStore {
    pub(super) store: Arc<dyn ObjectStore>,
    /// The same; `None` for a file on an HTTP server.
    pub(super) pages: Option<Arc<dyn PagedStore>>,
    pub(super) scheme: RemoteScheme,
    /// No credentials were found.
    pub(super) is_anonymous: bool,
}

/// A store whose listings are read page by page.
pub(super) trait PagedStore: PaginatedListStore + Debug {}

impl<S: PaginatedListStore + Debug> PagedStore for S {}

/// What a store is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum StorePurpose {
    Read,
    Write,
}
