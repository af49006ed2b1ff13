//! The body of one request, for servers that do not send ranges: [`StreamedBody`].

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::AbortHandle;

use super::client::client;
use super::error::RemoteError;
use super::failure::{Failure, SHORT_RESPONSE};
use super::object::RemoteObject;
use super::repetition::{FetchError, lost_task};
use super::store::RemoteStore;

/// Parts of a body that wait for the reader. A part has at most half a MiB.
const PARTS: usize = 16;

/// A part of a body; `None` after the last one.
type BodyPart = Result<Option<Bytes>, RemoteError>;

/// Reads the body of one request. A request that fails cannot be continued.
pub(super) struct StreamedBody {
    parts: Receiver<BodyPart>,
    part: Bytes,
    is_ended: bool,
    store: Arc<RemoteStore>,
    task: AbortHandle,
}

impl StreamedBody {
    pub(super) fn open(object: RemoteObject) -> Result<StreamedBody, RemoteError> {
        let ((sender, parts), store) = (channel(PARTS), object.store.clone());
        let task = client()?.spawn(send_body(object, sender));
        Ok(StreamedBody { parts, part: Bytes::new(), is_ended: false, store, task })
    }
}

async fn send_body(object: RemoteObject, sender: Sender<BodyPart>) {
    let mut body = match object.request(None).await {
        Ok(result) => result.into_stream(),
        Err(error) => {
            let error = match error {
                FetchError::Final(error) => error,
                FetchError::Transient(failure) => failure.error(&object.store),
            };
            // The receiver may be gone.
            let _ = sender.send(Err(error)).await;
            return;
        }
    };
    let mut rest = object.len();
    while let Some(part) = body.next().await {
        let part = part.map_err(|error| broken_body(&Failure::of(&error), &object.store));
        rest = rest.zip(part.as_ref().ok()).map(|(rest, part)| rest.saturating_sub(part.len() as u64));
        let is_failed = part.is_err();
        if sender.send(part.map(Some)).await.is_err() || is_failed {
            return;
        }
    }
    // A body without a length of its own seems to be complete when the connection ends.
    let end = if rest.is_some_and(|rest| rest > 0) { Err(broken_body(&lost_task(), &object.store)) } else { Ok(None) };
    let _ = sender.send(end).await;
}

/// The error of a body that ended early.
fn broken_body(failure: &Failure, store: &RemoteStore) -> RemoteError {
    // `object_store` has requested the rest.
    let found = match failure.is_without_ranges || failure.cause == SHORT_RESPONSE {
        true => SHORT_RESPONSE.to_string(),
        false => failure.error(store).found,
    };
    let advice = "allow more time with --store-option timeout=60m, or fetch the file with another program";
    RemoteError::new(format!("{found}, and the server does not send ranges"), advice)
}

impl Read for StreamedBody {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() && !self.is_ended {
            // A task that ends without the mark of the end has panicked.
            let part = self.parts.blocking_recv().unwrap_or_else(|| Err(broken_body(&lost_task(), &self.store)))?;
            self.is_ended = part.is_none();
            self.part = part.unwrap_or_default();
        }
        let count = self.part.len().min(into.len());
        into[..count].copy_from_slice(&self.part.split_to(count));
        Ok(count)
    }
}

impl Drop for StreamedBody {
    fn drop(&mut self) {
        self.task.abort();
    }
}
