//! Recognizes an object that was written although the response of the store is lost: [`WrittenContent`].

use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange};
use xxhash_rust::xxh3::Xxh3;

use super::failure::Failure;
use super::first_response::ObjectVersion;
use super::store::RemoteStore;

/// Bytes per request that reads an object back.
const REQUEST_LEN: u64 = 64 << 20;

/// Length and hash of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenContent {
    len: u64,
    hash: u128,
}

/// Makes a [`WrittenContent`] from bytes in order.
#[derive(Clone, Default)]
pub(super) struct WrittenContentHasher {
    len: u64,
    state: Xxh3,
}

impl std::fmt::Debug for WrittenContentHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WrittenContentHasher({} bytes)", self.len)
    }
}

impl WrittenContentHasher {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.state.update(bytes);
    }

    pub(super) fn finish(&self) -> WrittenContent {
        WrittenContent { len: self.len, hash: self.state.digest128() }
    }
}

impl WrittenContent {
    /// After a request to write an object has failed with `error`: whether the store has performed it all the same, and only
    /// its response was lost. A repetition then finds that the object exists, or that the upload does not. The object is read
    /// back.
    pub(super) async fn is_written(
        self,
        (store, location): (&RemoteStore, &Path),
        error: &object_store::Error,
    ) -> bool {
        let may_be_written = matches!(Failure::of(error).status, None | Some(404 | 408 | 409 | 412 | 429 | 500..));
        may_be_written && self.is_stored(store, location).await.unwrap_or(false)
    }

    async fn is_stored(self, store: &RemoteStore, location: &Path) -> object_store::Result<bool> {
        let head = GetOptions { head: true, ..GetOptions::default() };
        let version = ObjectVersion::of_response(&store.store.get_opts(location, head).await?);
        let mut found = WrittenContentHasher::default();
        while version.len == Some(self.len) && found.len < self.len {
            let range = found.len..self.len.min(found.len + REQUEST_LEN);
            let if_match = version.strong_tag();
            let options = GetOptions { range: Some(GetRange::Bounded(range)), if_match, ..GetOptions::default() };
            let result = store.store.get_opts(location, options).await?;
            if !version.is_same(&ObjectVersion::of_response(&result)) {
                return Ok(false);
            }
            let (mut body, before) = (result.into_stream(), found.len);
            while let Some(part) = body.next().await {
                found.add(&part?);
            }
            if found.len == before {
                return Ok(false);
            }
        }
        Ok(found.finish() == self)
    }
}
