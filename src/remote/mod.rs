//! Objects in stores (S3, Google Cloud Storage, Azure) and files on HTTP servers, by blocking calls.
//!
//! ```text
//! s3://bucket/key --RemoteUrl--> RemoteObject --open--> ReadAheadBlocks --> RemoteReader: Read
//!                                                  \--> StreamedBody: Read   (a server without ranges)
//! ```
//!
//! The requests are those of the crate `object_store`. They run on two threads of an asynchronous runtime, which nothing
//! outside this module sees: callers wait for a message or a condition variable, and never inside the runtime.
//!
//! An object has one version ([`RemoteError`] if it changes): every request names the entity tag of the first one, and the
//! version of every response is compared. A failed request is repeated, and continues at the byte where it failed.
//!
//! Without the feature `remote` there is no runtime: URLs are recognized, and every use is an error (`absent`).

#[cfg(not(feature = "remote"))]
mod absent;
#[cfg(feature = "remote")]
mod buffer;
#[cfg(feature = "remote")]
mod client;
#[cfg(feature = "remote")]
mod credentials;
mod error;
#[cfg(feature = "remote")]
mod failure;
#[cfg(feature = "remote")]
mod first_response;
#[cfg(feature = "remote")]
mod http_client;
#[cfg(feature = "remote")]
mod limited_body;
#[cfg(feature = "remote")]
mod listing;
#[cfg(feature = "remote")]
mod listing_page;
#[cfg(feature = "remote")]
mod listing_pages;
#[cfg(feature = "remote")]
mod object;
mod opened;
mod options;
#[cfg(feature = "remote")]
mod read_ahead;
#[cfg(feature = "remote")]
mod repetition;
#[cfg(feature = "remote")]
mod response_header;
#[cfg(feature = "remote")]
mod service;
#[cfg(feature = "remote")]
mod store;
#[cfg(feature = "remote")]
mod streamed;
#[cfg(feature = "remote")]
mod time_limits;
#[cfg(feature = "remote")]
mod upload;
mod url;
#[cfg(feature = "remote")]
mod written_content;

#[cfg(not(feature = "remote"))]
pub(crate) use absent::{
    AbsentObject as RemoteObject, AbsentRequest as RangesRequest, AbsentStream as ReadAheadBlocks,
    AbsentStream as RemoteReader, AbsentStream as RemoteWriter, clear_object, delete_objects, has_objects, list,
    transfer,
};
#[cfg(feature = "remote")]
pub(crate) use client::transfer;
pub(crate) use error::RemoteError;
#[cfg(feature = "remote")]
pub(crate) use listing::{has_objects, list};
#[cfg(feature = "remote")]
pub(crate) use object::{RangesRequest, RemoteObject};
pub(crate) use options::{MAX_READ_AHEAD, StoreOption, has_options, read_ahead, set_options, set_read_ahead};
#[cfg(feature = "remote")]
pub(crate) use read_ahead::{ReadAheadBlocks, RemoteReader};
#[cfg(feature = "remote")]
pub(crate) use upload::{RemoteWriter, clear_object, delete_objects};
pub(crate) use url::{RemoteUrl, has_hidden_part, is_table_name, redact_argument, unknown_scheme, without_query};

/// What was requested of stores and servers, and what they sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Requests, repetitions included.
    pub(crate) requests: u64,
    /// Requests that failed in a way after which they are repeated.
    pub(crate) failed_requests: u64,
    /// Bytes that were received, without headers.
    pub(crate) received: u64,
}
