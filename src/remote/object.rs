//! Objects, and their ranges: [`RemoteObject`].

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta};

use super::buffer::ResponseBuffer;
use super::client::{Running, client};
use super::error::RemoteError;
use super::failure::{Failure, UNUSABLE_KEY, changed};
use super::first_response::{FirstBytes, FirstResponse, ObjectVersion};
use super::options::block_len;
use super::repetition::{FetchError, Repetition, lost_task};
use super::response_header::ShorterRange;
use super::store::{RemoteStore, StorePurpose};
use super::url::{RemoteScheme, RemoteUrl, ShownName, is_archive_name, is_table_name, without_query};
use crate::record::compression_of_name;

/// Ranges with a shorter gap between them are one request.
const MAX_GAP: u64 = 1 << 20;

/// Bytes per request of a long range.
const REQUEST_LEN: u64 = 8 << 20;

/// Bytes of the first request of a table: only its format is recognized by them.
const TABLE_PREFETCH_LEN: u64 = 4 << 10;

/// Requests of one call at a time.
const REQUESTS_AT_A_TIME: usize = 8;

/// Objects whose versions are requested at a time.
const OBJECTS_AT_A_TIME: usize = 32;

/// An object of a store, or a file on an HTTP server.
#[derive(Clone, Debug)]
pub(crate) struct RemoteObject {
    name: Arc<ShownName>,
    /// The objects of a listing share it.
    pub(super) store: Arc<RemoteStore>,
    pub(super) location: Path,
    /// The version that is read; `None` until the first request.
    version: Option<ObjectVersion>,
    /// The server sends ranges.
    has_ranges: bool,
    /// The response to the request of the first bytes, if it was sent.
    first_response: Option<Arc<FirstResponse>>,
}

/// The location with this key; `None` if there is none. `Path::parse` removes a slash at the beginning, which is part of another
/// key.
pub(super) fn location_of(key: &str) -> Option<Path> {
    Path::parse(key).ok().filter(|_| !key.starts_with('/'))
}

impl RemoteObject {
    /// The object `url` names. No request is made.
    pub(crate) fn named(url: &RemoteUrl) -> Result<RemoteObject, RemoteError> {
        let location = match url.scheme {
            RemoteScheme::Http => Path::default(),
            _ => location_of(&url.key)
                .ok_or_else(|| RemoteError::new(format!("this is a key {UNUSABLE_KEY}"), "rename the object"))?,
        };
        let store = client()?.store(url, StorePurpose::Read)?.into();
        Ok(RemoteObject {
            name: url.shown_name().into(),
            store,
            location,
            version: None,
            has_ranges: true,
            first_response: None,
        })
    }

    /// An object of a listing.
    pub(super) fn listed(url: &RemoteUrl, store: &Arc<RemoteStore>, meta: ObjectMeta) -> RemoteObject {
        let version = Some(ObjectVersion::of_listing(&meta));
        let name = url.shown_name_of(meta.location.as_ref()).into();
        RemoteObject {
            name,
            store: Arc::clone(store),
            location: meta.location,
            version,
            has_ranges: true,
            first_response: None,
        }
    }

    /// The name without credentials.
    pub(crate) fn name(&self) -> &str {
        &self.name.text
    }

    /// A text without credentials that no other object has.
    pub(crate) fn identity(&self) -> String {
        self.name.identity()
    }

    /// The address from which the object is sent: that after redirects, which is known from the first response on; otherwise
    /// the name.
    fn shown_address(&self) -> ShownName {
        let redirected = self.version.as_ref().and_then(|version| version.final_address.as_deref());
        redirected.map_or_else(|| (*self.name).clone(), ShownName::new)
    }

    /// The address from which the object is sent, without credentials. A redirect is known from the first response on.
    pub(crate) fn address(&self) -> String {
        self.shown_address().text
    }

    /// The address lacks a part of the query.
    pub(crate) fn is_query_hidden(&self) -> bool {
        self.shown_address().is_query_hidden()
    }

    /// The name, on an HTTP server without a query.
    fn path(&self) -> &str {
        without_query(&self.name.text)
    }

    /// The compression that the name states.
    pub(crate) fn named_compression(&self) -> Option<&'static str> {
        compression_of_name(self.path())
    }

    /// The name ends like that of a ZIP archive.
    pub(crate) fn is_named_as_archive(&self) -> bool {
        is_archive_name(self.path())
    }

    /// Number of bytes that the first request asks for: few of a table, of which only parts are read.
    pub(crate) fn first_request_len(&self) -> u64 {
        let len = if is_table_name(self.path()) { TABLE_PREFETCH_LEN } else { block_len() };
        self.len().map_or(len, |all| all.min(len))
    }

    /// Requests the beginning of the object, so that it is there when the object is opened.
    pub(crate) fn begin(&mut self) {
        if self.first_response.is_some() || self.len() == Some(0) || !self.has_ranges {
            return;
        }
        let (object, len) = (self.clone(), self.first_request_len());
        // Without a client, opening the object is an error.
        let request = client().map(|client| client.start(async move { object.fetch_first_bytes(len).await }));
        self.first_response = request.ok().map(|request| Arc::new(FirstResponse::new(request)));
    }

    /// The first bytes, if they were requested and not taken before.
    pub(super) fn take_first_bytes(&self) -> Option<Bytes> {
        self.first_response.as_ref()?.take_bytes()
    }

    /// Length in bytes, as far as it is known.
    pub(crate) fn len(&self) -> Option<u64> {
        self.version.as_ref()?.len
    }

    /// The entity tag without quotes, if the server sends one.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.version.as_ref()?.tag()
    }

    /// The field `Content-Type` of the first response; `None` before it, and for objects of a listing.
    pub(crate) fn media_type(&self) -> Option<&str> {
        self.version.as_ref()?.media_type.as_deref()
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
        if let Some(response) = &self.first_response {
            self.version = response.version()?.or(self.version);
        }
        if self.version.is_some() {
            return Ok(self);
        }
        let store = self.store.clone();
        let found = client()?.wait(self.find());
        found.unwrap_or_else(|| Err(lost_task().error(&store)))
    }

    /// [`RemoteObject::found`] for many objects at a time. Returns only those that were found, in order, each with its place in
    /// `objects`.
    pub(crate) fn found_of(objects: Vec<RemoteObject>) -> Vec<(usize, RemoteObject)> {
        if objects.is_empty() {
            // Nothing is asked, so the threads of the network are not started.
            return Vec::new();
        }
        let find = async move {
            let found = stream::iter(objects).map(RemoteObject::find).buffered(OBJECTS_AT_A_TIME);
            found.collect::<Vec<_>>().await
        };
        let found = client().ok().and_then(|client| client.wait(find)).unwrap_or_default();
        found.into_iter().enumerate().filter_map(|(place, object)| Some((place, object.ok()?))).collect()
    }

    async fn find(mut self) -> Result<RemoteObject, RemoteError> {
        let range = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        self.version = Some(match self.ask(range).await {
            // The server may know the length although it does not state it with ranges. It is not 0, because there was a range.
            Ok(version) if version.len.is_none() => {
                let head = self.ask(GetOptions { head: true, ..GetOptions::default() }).await;
                head.ok().filter(|head| head.len != Some(0)).unwrap_or(version)
            }
            Ok(version) => version,
            Err(failure) if failure.is_of_range() => {
                self.asked(GetOptions { head: true, ..GetOptions::default() }).await?
            }
            Err(failure) if failure.is_without_ranges => {
                self.has_ranges = false;
                self.asked(GetOptions::default()).await?
            }
            Err(failure) => return Err(failure.error(&self.store)),
        });
        Ok(self)
    }

    async fn asked(&self, options: GetOptions) -> Result<ObjectVersion, RemoteError> {
        self.ask(options).await.map_err(|failure| failure.error(&self.store))
    }

    /// Makes a request and drops the body of its response. The request is repeated if the server is busy, but not if it cannot
    /// be reached, because its name may be wrong.
    async fn ask(&self, options: GetOptions) -> Result<ObjectVersion, Failure> {
        let mut repetition = Repetition::new();
        loop {
            let failure = match self.store.store.get_opts(&self.location, options.clone()).await {
                Ok(result) => return Ok(ObjectVersion::of_response(&result)),
                Err(error) => Failure::of(&error),
            };
            if !failure.is_busy() || repetition.pause(|| failure.error(&self.store)).await.is_err() {
                return Err(failure);
            }
        }
    }

    /// Whether the object `url` exists and can be read.
    pub(crate) fn exists(url: &RemoteUrl) -> bool {
        RemoteObject::named(url).and_then(RemoteObject::found).is_ok()
    }

    /// The server sends ranges.
    pub(crate) fn has_ranges(&self) -> bool {
        self.has_ranges
    }

    pub(crate) fn read(&self, range: Range<u64>) -> Result<Bytes, RemoteError> {
        let object = self.clone();
        let read = client()?.wait(async move { object.fetch(range).await });
        read.unwrap_or_else(|| Err(lost_task().error(&self.store)))
    }

    /// Requests ranges at the same time; ranges that are close to each other become one request.
    pub(crate) fn request_ranges(&self, ranges: &[Range<u64>]) -> Result<RangesRequest, RemoteError> {
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
        Ok(RangesRequest { store: self.store.clone(), running: client()?.start(read) })
    }

    /// Reads a range, repeats failed requests, and continues at the byte where they failed.
    pub(super) async fn fetch(&self, range: Range<u64>) -> Result<Bytes, RemoteError> {
        let bytes = ResponseBuffer::new(range.end - range.start)?;
        self.fetch_rest(range, bytes).await
    }

    /// Requests the first `len` bytes, and with them the version of the object. If the object has no such range, or the
    /// server sends none, the error is transient: [`RemoteObject::found`] asks again.
    async fn fetch_first_bytes(&self, len: u64) -> Result<FirstBytes, FetchError> {
        if let Some(version) = &self.version {
            return Ok((version.clone(), self.fetch(0..len).await?));
        }
        let options = GetOptions { range: Some(GetRange::Bounded(0..len)), ..GetOptions::default() };
        let result = self.store.store.get_opts(&self.location, options).await;
        let result = result.map_err(|error| match Failure::of(&error) {
            failure if failure.is_of_range() || failure.is_without_ranges => FetchError::Transient(failure),
            _ => FetchError::of(&error, &self.store),
        })?;
        let version = ObjectVersion::of_response(&result);
        version.check_coding()?;
        let end = version.len.ok_or_else(|| FetchError::Transient(lost_task()))?.min(len);
        let mut bytes = ResponseBuffer::new(end)?;
        // If the response breaks, the missing bytes are requested again.
        let _ = append_body(result, end as usize, &mut bytes).await;
        let object = RemoteObject { version: Some(version.clone()), ..self.clone() };
        Ok((version, object.fetch_rest(0..end, bytes).await?))
    }

    /// Reads the rest of a range that begins with `bytes`.
    async fn fetch_rest(&self, range: Range<u64>, mut bytes: ResponseBuffer) -> Result<Bytes, RemoteError> {
        let len = (range.end - range.start) as usize;
        let mut repetition = Repetition::new();
        while bytes.len() < len {
            let before = bytes.len();
            let rest = range.start + before as u64..range.end;
            match self.fetch_into(rest, &mut bytes).await {
                Ok(()) => {}
                Err(FetchError::Final(error)) => return Err(error),
                Err(FetchError::Transient(failure)) => {
                    repetition.advance(bytes.len() - before);
                    repetition.pause(|| failure.error(&self.store)).await?;
                }
            }
        }
        Ok(bytes.into_bytes())
    }

    /// Appends what one request returns, which is the whole range unless the server chooses to send less. Nothing is appended
    /// that exceeds the range or is of another version.
    async fn fetch_into(&self, range: Range<u64>, bytes: &mut ResponseBuffer) -> Result<(), FetchError> {
        let (before, len) = (bytes.len(), bytes.len() + (range.end - range.start) as usize);
        let result = self.request(Some(GetRange::Bounded(range))).await?;
        let is_shorter = result.extensions.get::<ShorterRange>().is_some();
        append_body(result, len, bytes).await.map_err(|error| FetchError::of(&error, &self.store))?;
        match bytes.len() == len || (is_shorter && bytes.len() > before) {
            true => Ok(()),
            false => Err(FetchError::Transient(lost_task())),
        }
    }

    /// Makes a request for bytes of the version that is read.
    pub(super) async fn request(&self, range: Option<GetRange>) -> Result<GetResult, FetchError> {
        let if_match = self.version.as_ref().and_then(ObjectVersion::strong_tag);
        let options = GetOptions { range, if_match, ..GetOptions::default() };
        let result = self.store.store.get_opts(&self.location, options).await;
        let result = result.map_err(|error| FetchError::of(&error, &self.store))?;
        let found = ObjectVersion::of_response(&result);
        found.check_coding()?;
        let is_same = self.version.as_ref().is_none_or(|version| version.is_same(&found));
        if is_same { Ok(result) } else { Err(FetchError::Final(changed())) }
    }
}

/// Appends the body of a response, until there are `len` bytes.
async fn append_body(result: GetResult, len: usize, bytes: &mut ResponseBuffer) -> object_store::Result<()> {
    let mut body = result.into_stream();
    while let Some(part) = body.next().await {
        bytes.extend_to(len, &part?);
    }
    Ok(())
}

/// Ranges of an object that were requested.
#[derive(Debug)]
pub(crate) struct RangesRequest {
    store: Arc<RemoteStore>,
    running: Running<Result<Vec<(u64, Bytes)>, RemoteError>>,
}

impl RangesRequest {
    /// Waits for the ranges. Returns them in the order of their positions, each with its position. A long range is in parts
    /// that follow each other.
    pub(crate) fn wait(self) -> Result<Vec<(u64, Bytes)>, RemoteError> {
        let lost = || Err(lost_task().error(&self.store));
        self.running.wait().unwrap_or_else(lost)
    }
}

/// The ranges in the order of their positions; those with a gap of at most [`MAX_GAP`] bytes between them become one.
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
