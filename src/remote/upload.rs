//! Writes objects: [`RemoteWriter`].
//!
//! ```text
//! write --parts of equal length--> channel --> task: multipart upload --complete--> the object has its name
//!                                                    \-- error, dropped --abort--> nothing is left
//! ```
//!
//! An object shorter than a part is written by one request when it is complete. The object is not visible before that. If the
//! response to the last request is lost, the object is read back to find out whether it was written.

use parking_lot::{Condvar, Mutex};
use std::io::{self, Write};
use std::pin::pin;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::{StreamExt, stream};
use object_store::path::Path;
use object_store::retry::{RetryContext, RetryPolicy};
use object_store::{MultipartUpload, PutMode, PutMultipartOptions, PutOptions};
use tokio::sync::mpsc::{self, Sender};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::client::client;
use super::error::RemoteError;
use super::failure::{Failure, UNUSABLE_KEY, is_transient_status};
use super::object::location_of;
use super::options::{self, retry_pause, retry_timeout};
use super::store::{RemoteStore, StorePurpose};
use super::url::RemoteUrl;
use super::written_content::{WrittenContent, WrittenContentHasher};
use crate::process::before_termination;

/// Bytes per part, unless the option `part_size` is given. S3 accepts 10,000 parts of at least 5 MiB.
const PART_LEN: u64 = 8 << 20;

/// Parts that are sent at a time.
const PARTS_AT_A_TIME: usize = 4;

/// Time to abort an upload.
const ABORT_TIME: Duration = Duration::from_secs(10);

/// Where an object is written.
#[derive(Clone, Debug)]
struct ObjectPlace {
    store: RemoteStore,
    /// The same store. Requests are repeated for some seconds only.
    reader: RemoteStore,
    location: Path,
}

/// An object that is being written. Dropping it aborts the upload.
#[derive(Debug)]
pub(crate) struct RemoteWriter {
    place: ObjectPlace,
    /// An object that exists is not replaced.
    is_new: bool,
    part_len: usize,
    buffer: Vec<u8>,
    /// The hash of all bytes that were written.
    hasher: WrittenContentHasher,
    upload: Option<RunningUpload>,
}

/// The uploads of this process: whether they are to end, and how many run.
struct Uploads {
    cancel: watch::Sender<bool>,
    running: Mutex<usize>,
    ended: Condvar,
}

static UPLOADS: LazyLock<Uploads> =
    LazyLock::new(|| Uploads { cancel: watch::Sender::new(false), running: Mutex::new(0), ended: Condvar::new() });

impl Uploads {
    fn count(&self, change: impl FnOnce(&mut usize)) {
        change(&mut self.running.lock());
        self.ended.notify_all();
    }

    /// Aborts all uploads, and waits until the stores have responded.
    fn abort(&self) {
        self.cancel.send_replace(true);
        let mut running = self.running.lock();
        // Lifecycle rules of the bucket remove what is left after this time.
        self.ended.wait_while_for(&mut running, |running| *running > 0, ABORT_TIME);
    }
}

/// An upload of parts.
#[derive(Debug)]
struct RunningUpload {
    messages: Sender<Message>,
    ended: Receiver<Result<(), RemoteError>>,
}

#[derive(Debug)]
enum Message {
    Part(Bytes),
    /// No part follows. The parts have this content.
    Complete(WrittenContent),
}

impl RemoteWriter {
    /// Begins to write the object `url`. If `is_new`, an object that exists is kept.
    ///
    /// # Errors
    /// The store cannot be written; [`io::ErrorKind::AlreadyExists`].
    pub(crate) fn create(url: &RemoteUrl, is_new: bool) -> io::Result<RemoteWriter> {
        url.check_writable()?;
        if url.is_list() {
            return Err(RemoteError::not_an_output().into());
        }
        let place = ObjectPlace::of(url)?;
        let part_len = options::bytes("part_size").unwrap_or(PART_LEN) as usize;
        if is_new && wait(exists(place.clone()))? {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let (buffer, hasher) = (Vec::new(), WrittenContentHasher::default());
        Ok(RemoteWriter { place, is_new, part_len, buffer, hasher, upload: None })
    }

    /// Completes the object, which gets its name now.
    ///
    /// # Errors
    /// It cannot be written; [`io::ErrorKind::AlreadyExists`] if it must be new and another one has the name.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        let rest = Bytes::from(std::mem::take(&mut self.buffer));
        let Some(upload) = self.upload.take() else {
            return wait(put(self.place.clone(), rest, self.is_new));
        };
        if self.is_new && wait(exists(self.place.clone()))? {
            upload.abort();
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if !rest.is_empty() {
            upload.send(Message::Part(rest))?;
        }
        upload.send(Message::Complete(self.hasher.finish()))?;
        Ok(upload.ended.recv().unwrap_or_else(|_| Err(lost()))?)
    }

    /// Sends the buffer as a part.
    fn send_part(&mut self) -> io::Result<()> {
        let part = std::mem::replace(&mut self.buffer, Vec::with_capacity(self.part_len));
        let upload = match &self.upload {
            Some(upload) => upload,
            None => self.upload.insert(RunningUpload::start(self.place.clone())?),
        };
        upload.send(Message::Part(part.into()))
    }
}

impl Write for RemoteWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() == self.part_len {
            self.send_part()?;
        }
        let count = bytes.len().min(self.part_len - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        self.hasher.add(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for RemoteWriter {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            upload.abort();
        }
    }
}

impl RunningUpload {
    fn start(place: ObjectPlace) -> Result<RunningUpload, RemoteError> {
        let (messages, receiver) = mpsc::channel(1);
        let (sender, ended) = sync_channel(1);
        before_termination(|| UPLOADS.abort());
        UPLOADS.count(|running| *running += 1);
        client()?.spawn(async move {
            let ended = upload(&place, receiver).await;
            UPLOADS.count(|running| *running -= 1);
            // The writer may be gone.
            let _ = sender.send(ended);
        });
        Ok(RunningUpload { messages, ended })
    }

    /// Waits until the task takes `message`.
    fn send(&self, message: Message) -> io::Result<()> {
        match self.messages.blocking_send(message) {
            Ok(()) => Ok(()),
            // The task has ended, and reports why.
            Err(_) => Err(self.ended.recv().ok().and_then(Result::err).unwrap_or_else(lost).into()),
        }
    }

    /// Ends the upload without an object.
    fn abort(self) {
        drop(self.messages);
        // A store that does not respond keeps the parts until lifecycle rules remove them.
        let _ = self.ended.recv_timeout(ABORT_TIME);
    }
}

/// Sends parts until the object is complete, or aborts the upload.
async fn upload(place: &ObjectPlace, mut messages: mpsc::Receiver<Message>) -> Result<(), RemoteError> {
    let options = PutMultipartOptions::default().with_retry_policy(Arc::new(UntilTimeout));
    let begun = place.store.store.put_multipart_opts(&place.location, options).await;
    let mut upload = begun.map_err(|error| Failure::of(&error).error(&place.store))?;
    let mut cancelled = UPLOADS.cancel.subscribe();
    let sent = {
        let (sending, cancelled) = (pin!(send_parts(&mut *upload, &mut messages)), pin!(cancelled.wait_for(|is| *is)));
        match select(sending, cancelled).await {
            Either::Left((sent, _)) => sent,
            Either::Right(_) => Ok(None),
        }
    };
    let sent = match sent {
        Ok(Some(content)) => complete(&mut *upload, place, content).await,
        Ok(None) => Err(object_store::Error::Generic { store: "remote", source: "the upload was aborted".into() }),
        Err(error) => Err(error),
    };
    match sent {
        Ok(()) => Ok(()),
        Err(error) => {
            // Lifecycle rules of the bucket remove what the abort cannot remove.
            let _ = upload.abort().await;
            Err(Failure::of(&error).error(&place.store))
        }
    }
}

async fn complete(
    upload: &mut dyn MultipartUpload,
    place: &ObjectPlace,
    content: WrittenContent,
) -> object_store::Result<()> {
    let Err(error) = upload.complete().await else { return Ok(()) };
    match content.is_written((&place.reader, &place.location), &error).await {
        true => Ok(()),
        false => Err(error),
    }
}

/// Sends parts. Returns the content of the object when it is complete.
async fn send_parts(
    upload: &mut dyn MultipartUpload,
    messages: &mut mpsc::Receiver<Message>,
) -> object_store::Result<Option<WrittenContent>> {
    let mut sending = JoinSet::new();
    let ended =
        |joined: Result<object_store::Result<()>, tokio::task::JoinError>| joined.map_err(object_store::Error::from)?;
    loop {
        let message = messages.recv().await;
        let limit = if matches!(message, Some(Message::Part(_))) { PARTS_AT_A_TIME - 1 } else { 0 };
        while sending.len() > limit {
            sending.join_next().await.map_or(Ok(()), ended)?;
        }
        match message {
            Some(Message::Part(part)) => _ = sending.spawn(upload.put_part(part.into())),
            Some(Message::Complete(content)) => return Ok(Some(content)),
            None => return Ok(None),
        }
    }
}

/// Retries the requests of parts for as long as other requests.
#[derive(Debug)]
struct UntilTimeout;

#[async_trait]
impl RetryPolicy for UntilTimeout {
    async fn retry(&self, context: RetryContext) -> bool {
        let is_transient = match context.failure {
            object_store::retry::RetryFailure::Status(status) => is_transient_status(status.as_u16()),
            _ => true,
        };
        let is_retried = is_transient && context.elapsed < retry_timeout();
        if is_retried {
            tokio::time::sleep(retry_pause() * 4).await;
        }
        is_retried
    }
}

/// Writes a whole object.
async fn put(place: ObjectPlace, bytes: Bytes, is_new: bool) -> io::Result<()> {
    let mode = if is_new { PutMode::Create } else { PutMode::Overwrite };
    let options = PutOptions { mode, ..PutOptions::default() };
    let put = place.store.store.put_opts(&place.location, bytes.clone().into(), options).await;
    let Err(error) = put else { return Ok(()) };
    let mut hasher = WrittenContentHasher::default();
    hasher.add(&bytes);
    if hasher.finish().is_written((&place.reader, &place.location), &error).await {
        return Ok(());
    }
    match error {
        object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. } if is_new => {
            Err(io::ErrorKind::AlreadyExists.into())
        }
        error => Err(Failure::of(&error).error(&place.store).into()),
    }
}

async fn exists(place: ObjectPlace) -> Result<bool, RemoteError> {
    let options = object_store::GetOptions { head: true, ..Default::default() };
    match place.store.store.get_opts(&place.location, options).await {
        Ok(_) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(Failure::of(&error).error(&place.store)),
    }
}

impl ObjectPlace {
    fn of(url: &RemoteUrl) -> Result<ObjectPlace, RemoteError> {
        let damaged = || RemoteError::new(format!("this is a key {UNUSABLE_KEY}"), "choose another key");
        let location = location_of(&url.key).ok_or_else(damaged)?;
        let store = |purpose| client()?.store(url, purpose);
        Ok(ObjectPlace { store: store(StorePurpose::Write)?, reader: store(StorePurpose::Read)?, location })
    }
}

/// Replaces the object `url` by an empty one, if it exists. Writers may have no right to delete objects.
pub(crate) fn clear_object(url: &RemoteUrl) -> io::Result<()> {
    let place = ObjectPlace::of(url)?;
    wait(async move {
        match exists(place.clone()).await? {
            true => put(place, Bytes::new(), false).await,
            false => Ok(()),
        }
    })
}

/// Deletes objects of one store. Objects that do not exist count as deleted.
///
/// # Errors
/// An object cannot be deleted. All other objects are deleted.
pub(crate) fn delete_objects(urls: &[RemoteUrl]) -> io::Result<()> {
    let places: Vec<_> = urls.iter().map(ObjectPlace::of).collect::<Result<_, _>>()?;
    let Some(store) = places.first().map(|place| place.reader.clone()) else { return Ok(()) };
    wait(async move {
        let locations = stream::iter(places.into_iter().map(|place| Ok(place.location)));
        let mut deleted = store.store.delete_stream(locations.boxed());
        let mut result = Ok(());
        while let Some(deleted) = deleted.next().await {
            match deleted {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => result = Err(Failure::of(&error).error(&store).into()),
            }
        }
        result
    })
}

/// Runs `work` in the runtime and waits for it.
fn wait<T: Send + 'static, E: From<RemoteError> + Send + 'static>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E> {
    client()?.wait(work).unwrap_or_else(|| Err(lost().into()))
}

fn lost() -> RemoteError {
    RemoteError::new("the upload ended early", "run again")
}
