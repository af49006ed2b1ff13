//! What is known of an object from the first response: its version, which is compared with that of every later response so
//! that no two versions are mixed ([`ObjectVersion`]), and its first bytes, which are requested before the object is opened
//! ([`FirstResponse`]).

use parking_lot::{Mutex, MutexGuard};

use bytes::Bytes;
use object_store::{Attribute, GetResult, ObjectMeta};

use super::client::Running;
use super::error::RemoteError;
use super::repetition::FetchError;
use super::response_header::{FinalAddress, UnknownLength};

/// The properties by which two contents of an object are distinguished.
#[derive(Clone, Debug)]
pub(super) struct ObjectVersion {
    /// Bytes; `None` if the server does not send the length.
    pub(super) len: Option<u64>,
    /// The entity tag as the server sends it. Listings of Azure lack the quotes, which are added.
    tag: Option<String>,
    /// Time of the last change, seconds since 1970; 0 if the server does not send it.
    pub(super) modified: i64,
    /// The field `Content-Encoding` of the response, empty without one; `None` in listings. If the server encodes the object, it
    /// is these bytes that are read.
    pub(super) coding: Option<String>,
    /// The field `Content-Type` of the response; `None` in listings. Versions do not differ by it.
    pub(super) media_type: Option<String>,
    /// The address after redirects, if there were any. Versions do not differ by it.
    pub(super) final_address: Option<String>,
}

impl ObjectVersion {
    /// The version in a listing.
    pub(super) fn of_listing(meta: &ObjectMeta) -> ObjectVersion {
        let quoted = |tag: &String| if tag.contains('"') { tag.clone() } else { format!("\"{tag}\"") };
        let tag = meta.e_tag.as_ref().map(quoted);
        let (len, modified) = (Some(meta.size), meta.last_modified.timestamp());
        ObjectVersion { len, tag, modified, coding: None, media_type: None, final_address: None }
    }

    /// The entity tag without quotes.
    pub(super) fn tag(&self) -> Option<&str> {
        self.tag.as_deref().map(|tag| tag.trim_matches('"'))
    }

    /// The tag that requests of this version name. A weak one never matches (RFC 9110 section 13.1.1), and one without quotes is
    /// malformed (section 8.8.3).
    pub(super) fn strong_tag(&self) -> Option<String> {
        self.tag.clone().filter(|tag| tag.starts_with('"'))
    }

    /// Returns whether both are the same content.
    pub(super) fn is_same(&self, other: &ObjectVersion) -> bool {
        let is_same_tag = match (self.tag(), other.tag()) {
            (Some(tag), Some(other)) => tag == other,
            _ => self.modified == other.modified,
        };
        let is_same_len = self.len.zip(other.len).is_none_or(|(len, other)| len == other);
        let is_same_coding =
            self.coding.as_ref().zip(other.coding.as_ref()).is_none_or(|(coding, other)| coding == other);
        is_same_tag && is_same_len && is_same_coding
    }

    /// Refuses content in a coding that is not recognized by its first bytes, as gzip and zstd are.
    pub(super) fn check_coding(&self) -> Result<(), RemoteError> {
        const UNREADABLE: [&str; 4] = ["br", "deflate", "compress", "x-compress"];
        let codings = self.coding.as_deref().unwrap_or_default().split(',').map(str::trim);
        let Some(coding) = codings.into_iter().find(|coding| UNREADABLE.contains(coding)) else { return Ok(()) };
        let found = format!("the server sends the file in the encoding {coding}, which cannot be decoded here");
        Err(RemoteError::new(found, "fetch and decode the file with another program"))
    }

    /// The version that was sent.
    pub(super) fn of_response(result: &GetResult) -> ObjectVersion {
        let is_len_known = result.extensions.get::<UnknownLength>().is_none();
        let attribute = |attribute| result.attributes.get(&attribute).map(|value| value.to_string());
        let coding = attribute(Attribute::ContentEncoding).unwrap_or_default().to_ascii_lowercase();
        let coding = Some(if coding == "identity" { String::new() } else { coding });
        let media_type = attribute(Attribute::ContentType);
        let final_address = result.extensions.get::<FinalAddress>().map(|address| address.0.clone());
        let (len, tag) = (is_len_known.then_some(result.meta.size), result.meta.e_tag.clone());
        ObjectVersion { len, tag, coding, media_type, final_address, ..ObjectVersion::of_listing(&result.meta) }
    }
}

/// The version of an object, and its first bytes.
pub(super) type FirstBytes = (ObjectVersion, Bytes);

/// The response to the first request of an object. Objects that are cloned share it.
#[derive(Debug)]
pub(super) struct FirstResponse(Mutex<ResponseState>);

#[derive(Debug)]
enum ResponseState {
    Requested(Running<Result<FirstBytes, FetchError>>),
    /// The bytes are `None` once they were taken.
    Arrived(ObjectVersion, Option<Bytes>),
    Failed(RemoteError),
    /// The server does not send ranges, or the object is empty, or the request may succeed later.
    Nothing,
}

impl FirstResponse {
    /// Stores the request. The methods wait for its response.
    pub(super) fn new(request: Running<Result<FirstBytes, FetchError>>) -> FirstResponse {
        FirstResponse(Mutex::new(ResponseState::Requested(request)))
    }

    /// The version of the object; `None` if it is not known from the response.
    pub(super) fn version(&self) -> Result<Option<ObjectVersion>, RemoteError> {
        match &*self.arrived() {
            ResponseState::Arrived(version, _) => Ok(Some(version.clone())),
            ResponseState::Failed(error) => Err(error.clone()),
            ResponseState::Nothing | ResponseState::Requested(_) => Ok(None),
        }
    }

    /// Takes the bytes. Returns `None` if they were taken before.
    pub(super) fn take_bytes(&self) -> Option<Bytes> {
        match &mut *self.arrived() {
            ResponseState::Arrived(_, bytes) => bytes.take(),
            _ => None,
        }
    }

    /// Waits for the response, if it is needed for the first time, and returns the state.
    fn arrived(&self) -> MutexGuard<'_, ResponseState> {
        let mut state = self.0.lock();
        if matches!(*state, ResponseState::Requested(_))
            && let ResponseState::Requested(request) = std::mem::replace(&mut *state, ResponseState::Nothing)
        {
            *state = match request.wait() {
                Some(Ok((version, bytes))) => ResponseState::Arrived(version, Some(bytes)),
                Some(Err(FetchError::Final(error))) => ResponseState::Failed(error),
                Some(Err(FetchError::Transient(_))) | None => ResponseState::Nothing,
            };
        }
        state
    }
}
