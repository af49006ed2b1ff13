//! Objects, and their ranges: [`RemoteObject`].

use std::ops::Range;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta};

use super::client::client;
use super::credentials::{retry_pause, retry_timeout};
use super::error::RemoteError;
use super::failure::{Failure, changed};
use super::service::UnknownLength;
use super::store::RemoteStore;
use super::url::{RemoteScheme, RemoteUrl};

/// The longest pause between repetitions of a request.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Ranges with a shorter gap between them are one request.
const MAX_GAP: u64 = 1 << 20;

/// Bytes per request of a long range.
const REQUEST_LEN: u64 = 8 << 20;

/// Requests of one call at a time.
const REQUESTS_AT_A_TIME: usize = 8;

/// An object of a store, or a file on an HTTP server.
#[derive(Clone, Debug)]
pub(crate) struct RemoteObject {
    /// The name without credentials.
    name: String,
    pub(super) store: RemoteStore,
    pub(super) location: Path,
    /// The version that is read; `None` until the first request.
    version: Option<ObjectVersion>,
    /// The server sends ranges.
    has_ranges: bool,
}

/// What distinguishes two contents of an object.
#[derive(Clone, Debug)]
struct ObjectVersion {
    /// Bytes; `None` if the server does not say it.
    len: Option<u64>,
    /// The entity tag without quotes, which are missing in listings of Azure.
    tag: Option<String>,
    /// Time of the last change, seconds since 1970; 0 if the server does not say it.
    modified: i64,
}

impl ObjectVersion {
    fn of(meta: &ObjectMeta, is_len_known: bool) -> ObjectVersion {
        let tag = meta.e_tag.as_ref().map(|tag| tag.trim_matches('"').to_string());
        ObjectVersion { len: is_len_known.then_some(meta.size), tag, modified: meta.last_modified.timestamp() }
    }

    fn is_same(&self, other: &ObjectVersion) -> bool {
        let is_same_tag = match (&self.tag, &other.tag) {
            (Some(tag), Some(other)) => tag == other,
            _ => self.modified == other.modified,
        };
        is_same_tag && self.len == other.len
    }
}

impl RemoteObject {
    /// The object `url` names. No request is made.
    pub(crate) fn named(url: &RemoteUrl) -> Result<RemoteObject, RemoteError> {
        let location = match url.scheme {
            RemoteScheme::Http => Path::default(),
            _ => Path::parse(&url.key).map_err(|_| {
                RemoteError::new("the key has an empty part, or one that is . or ..", "rename the object")
            })?,
        };
        let store = client()?.store(url)?;
        Ok(RemoteObject { name: url.name(), store, location, version: None, has_ranges: true })
    }

    /// An object of a listing.
    pub(super) fn listed(url: &RemoteUrl, store: &RemoteStore, meta: ObjectMeta) -> RemoteObject {
        let version = Some(ObjectVersion::of(&meta, true));
        let name = url.name_of(meta.location.as_ref());
        RemoteObject { name, store: store.clone(), location: meta.location, version, has_ranges: true }
    }

    /// The name without credentials.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name ends like that of a packed file.
    pub(crate) fn is_named_as_packed(&self) -> bool {
        let path = self.name.split('?').next().unwrap_or_default();
        [".gz", ".zst", ".bz2", ".xz", ".lz4"].iter().any(|suffix| path.ends_with(suffix))
    }

    /// Length in bytes, as far as it is known.
    pub(crate) fn len(&self) -> Option<u64> {
        self.version.as_ref()?.len
    }

    /// The entity tag, if the server sends one.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.version.as_ref()?.tag.as_deref()
    }

    /// Time of the last change, nanoseconds since 1970; 0 if it is not known.
    pub(crate) fn modified_ns(&self) -> u64 {
        let modified = self.version.as_ref().map_or(0, |version| version.modified);
        u64::try_from(modified).unwrap_or(0).saturating_mul(1_000_000_000)
    }

    /// Asks the server for the version of the object, unless it is known.
    ///
    /// # Errors
    /// The object does not exist or cannot be read.
    pub(crate) fn found(mut self) -> Result<RemoteObject, RemoteError> {
        if self.version.is_some() {
            return Ok(self);
        }
        let range = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        match self.ask(range) {
            Ok(version) => self.version = Some(version),
            // A range of an empty object cannot be satisfied.
            Err(failure) if failure.status == Some(416) => {
                self.version = Some(self.asked(GetOptions { head: true, ..GetOptions::default() })?);
            }
            Err(failure) if failure.is_without_ranges => {
                self.has_ranges = false;
                self.version = Some(self.asked(GetOptions::default())?);
            }
            Err(failure) => return Err(failure.error(&self.store)),
        }
        Ok(self)
    }

    fn asked(&self, options: GetOptions) -> Result<ObjectVersion, RemoteError> {
        self.ask(options).map_err(|failure| failure.error(&self.store))
    }

    /// Makes a request and drops its body.
    fn ask(&self, options: GetOptions) -> Result<ObjectVersion, Failure> {
        let object = self.clone();
        let ask = async move {
            let result = object.store.store.get_opts(&object.location, options).await;
            result.map(|result| version_of(&result)).map_err(|error| Failure::of(&error))
        };
        let waited = client().ok().and_then(|client| client.wait(ask));
        waited.unwrap_or_else(|| Err(Failure::of(&lost_task())))
    }

    /// Whether the object `url` exists and can be read.
    pub(crate) fn exists(url: &RemoteUrl) -> bool {
        RemoteObject::named(url).and_then(RemoteObject::found).is_ok()
    }

    /// The server sends ranges.
    pub(crate) fn has_ranges(&self) -> bool {
        self.has_ranges
    }

    /// Reads a range.
    pub(crate) fn read(&self, range: Range<u64>) -> Result<Bytes, RemoteError> {
        let object = self.clone();
        let read = client()?.wait(async move { object.fetch(range).await });
        read.unwrap_or_else(|| Err(Failure::of(&lost_task()).error(&self.store)))
    }

    /// Reads ranges side by side. Returns them in the order of their positions, each with its position; ranges that are
    /// close to each other are one.
    pub(crate) fn read_ranges(&self, ranges: &[Range<u64>]) -> Result<Vec<(u64, Bytes)>, RemoteError> {
        let mut requests = Vec::new();
        for range in coalesced(ranges) {
            let count = (range.end - range.start).div_ceil(REQUEST_LEN);
            let start = |part: u64| range.start + part * REQUEST_LEN;
            requests.extend((0..count).map(|part| start(part)..range.end.min(start(part + 1))));
        }
        let object = self.clone();
        let read = async move {
            let parts = stream::iter(requests).map(|range| {
                let object = object.clone();
                async move { Ok((range.start, object.fetch(range).await?)) }
            });
            parts.buffered(REQUESTS_AT_A_TIME).try_collect::<Vec<_>>().await
        };
        let read = client()?.wait(read);
        Ok(joined(read.unwrap_or_else(|| Err(Failure::of(&lost_task()).error(&self.store)))?))
    }

    /// Reads a range, repeats failed requests, and continues at the byte where they failed.
    pub(super) async fn fetch(&self, range: Range<u64>) -> Result<Bytes, RemoteError> {
        let len = (range.end - range.start) as usize;
        let mut bytes = Vec::new();
        bytes
            .try_reserve_exact(len)
            .map_err(|_| RemoteError::new(format!("not enough memory for {len} bytes"), "use fewer with --threads"))?;
        let mut repetition = Repetition::new();
        while bytes.len() < len {
            let before = bytes.len();
            let rest = range.start + before as u64..range.end;
            match self.fetch_into(rest, &mut bytes).await {
                Ok(()) => {}
                Err(FetchError::Final(error)) => return Err(error),
                Err(FetchError::Transient(failure)) => {
                    if bytes.len() > before {
                        repetition = Repetition::new();
                    }
                    repetition.pause(|| failure.error(&self.store)).await?;
                }
            }
        }
        Ok(bytes.into())
    }

    /// Appends what one request returns. Nothing is appended that exceeds the range or is of another version.
    async fn fetch_into(&self, range: Range<u64>, bytes: &mut Vec<u8>) -> Result<(), FetchError> {
        let len = bytes.len() + (range.end - range.start) as usize;
        let result = self.request(Some(GetRange::Bounded(range))).await?;
        let mut body = result.into_stream();
        while let Some(part) = body.next().await {
            let part = part.map_err(|error| FetchError::of(&error, &self.store))?;
            bytes.extend_from_slice(&part[..part.len().min(len - bytes.len())]);
        }
        match bytes.len() == len {
            true => Ok(()),
            false => Err(FetchError::Transient(Failure::of(&lost_task()))),
        }
    }

    /// Makes a request for bytes of the version that is read.
    pub(super) async fn request(&self, range: Option<GetRange>) -> Result<GetResult, FetchError> {
        let tag = self.version.as_ref().and_then(|version| version.tag.clone());
        // A weak tag never matches (RFC 9110 section 13.1.1).
        let if_match = tag.filter(|tag| !tag.starts_with("W/")).map(|tag| format!("\"{tag}\""));
        let options = GetOptions { range, if_match, ..GetOptions::default() };
        let result = self.store.store.get_opts(&self.location, options).await;
        let result = result.map_err(|error| FetchError::of(&error, &self.store))?;
        let is_same = self.version.as_ref().is_none_or(|version| version.is_same(&version_of(&result)));
        if is_same { Ok(result) } else { Err(FetchError::Final(changed())) }
    }
}

/// The ranges in the order of their positions; those with a gap of at most [`MAX_GAP`] bytes between them are one.
fn coalesced(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ranges: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut().filter(|last| range.start <= last.end.saturating_add(MAX_GAP)) {
            Some(last) => last.end = last.end.max(range.end),
            None => joined.push(range),
        }
    }
    joined
}

/// Parts that follow each other without a gap become one.
fn joined(parts: Vec<(u64, Bytes)>) -> Vec<(u64, Bytes)> {
    let is_next = |(at, bytes): &(u64, Bytes), (next, _): &(u64, Bytes)| at + bytes.len() as u64 == *next;
    let join = |parts: &[(u64, Bytes)]| match parts {
        [part] => part.clone(),
        _ => (parts[0].0, parts.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect()),
    };
    parts.chunk_by(is_next).map(join).collect()
}

fn version_of(result: &GetResult) -> ObjectVersion {
    let is_len_known = result.extensions.get::<UnknownLength>().is_none();
    ObjectVersion::of(&result.meta, is_len_known)
}

/// Why a request returned less than what was requested.
pub(super) enum FetchError {
    /// A repetition would fail as well.
    Final(RemoteError),
    /// A repetition may succeed.
    Transient(Failure),
}

impl FetchError {
    pub(super) fn of(error: &object_store::Error, store: &RemoteStore) -> FetchError {
        let failure = Failure::of(error);
        if failure.is_transient() { FetchError::Transient(failure) } else { FetchError::Final(failure.error(store)) }
    }
}

impl From<RemoteError> for FetchError {
    fn from(error: RemoteError) -> FetchError {
        FetchError::Final(error)
    }
}

/// The error of a task that ended without a result.
fn lost_task() -> object_store::Error {
    object_store::Error::Generic { store: "remote", source: "the answer ended early".into() }
}

/// Repetitions of a request, until [`retry_timeout`].
pub(super) struct Repetition {
    started: Instant,
    pause: Duration,
}

impl Repetition {
    pub(super) fn new() -> Repetition {
        Repetition { started: Instant::now(), pause: retry_pause() }
    }

    /// Waits before the next request.
    ///
    /// # Errors
    /// The time for repetitions is over: the result of `error`.
    pub(super) async fn pause(&mut self, error: impl FnOnce() -> RemoteError) -> Result<(), RemoteError> {
        if self.started.elapsed() + self.pause > retry_timeout() {
            return Err(error());
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        Ok(())
    }
}
