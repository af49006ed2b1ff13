//! What takes the place of remote objects in a build without the feature `remote`: every use is an error.

use std::convert::Infallible;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::Transfer;
use super::error::RemoteError;
use super::url::RemoteUrl;

/// An object. None exists.
#[derive(Clone, Debug)]
pub(crate) struct AbsentObject(Infallible);

/// Ranges that were requested. None exist.
#[derive(Debug)]
pub(crate) struct AbsentRequest(Infallible);

/// An object that is read or written. None exists.
#[derive(Debug)]
pub(crate) struct AbsentStream(Infallible);

/// Lists nothing.
pub(crate) fn has_objects(url: &RemoteUrl) -> Result<bool, RemoteError> {
    AbsentObject::named(url).map(|object| object.never())
}

/// Lists nothing.
pub(crate) fn list(
    url: &RemoteUrl,
    _has_rows: impl Fn(&AbsentObject) -> bool,
) -> Result<Vec<AbsentObject>, RemoteError> {
    AbsentObject::named(url).map(|object| object.never())
}

/// Clears nothing.
pub(crate) fn clear_object(url: &RemoteUrl) -> io::Result<()> {
    Ok(AbsentObject::named(url).map(|object| object.never())?)
}

/// Deletes nothing.
pub(crate) fn delete_objects(urls: &[RemoteUrl]) -> io::Result<()> {
    urls.iter().try_for_each(clear_object)
}

pub(crate) fn transfer() -> Option<Transfer> {
    None
}

impl AbsentObject {
    pub(crate) fn named(_url: &RemoteUrl) -> Result<AbsentObject, RemoteError> {
        let advice = "install irikey with the feature remote, or fetch the file first";
        Err(RemoteError::new("this irikey was built without remote sources", advice))
    }

    /// Anything, because there is no object.
    pub(super) fn never<T>(&self) -> T {
        match self.0 {}
    }

    pub(crate) fn exists(_url: &RemoteUrl) -> bool {
        false
    }

    pub(crate) fn name(&self) -> &str {
        self.never()
    }

    pub(crate) fn identity(&self) -> String {
        self.never()
    }

    pub(crate) fn address(&self) -> String {
        self.never()
    }

    pub(crate) fn is_query_hidden(&self) -> bool {
        self.never()
    }

    pub(crate) fn named_compression(&self) -> Option<&'static str> {
        self.never()
    }

    pub(crate) fn is_named_as_archive(&self) -> bool {
        self.never()
    }

    pub(crate) fn found_of(_objects: Vec<AbsentObject>) -> Vec<(usize, AbsentObject)> {
        Vec::new()
    }

    pub(crate) fn blocks_until(&self, _end: u64) -> Result<Arc<AbsentStream>, RemoteError> {
        self.never()
    }

    pub(crate) fn len(&self) -> Option<u64> {
        self.never()
    }

    pub(crate) fn tag(&self) -> Option<&str> {
        self.never()
    }

    pub(crate) fn media_type(&self) -> Option<&str> {
        self.never()
    }

    pub(crate) fn modified_ns(&self) -> u64 {
        self.never()
    }

    pub(crate) fn found(self) -> Result<AbsentObject, RemoteError> {
        self.never()
    }

    pub(crate) fn has_ranges(&self) -> bool {
        self.never()
    }

    pub(crate) fn read(&self, _range: Range<u64>) -> Result<Bytes, RemoteError> {
        self.never()
    }

    pub(crate) fn first_request_len(&self) -> u64 {
        self.never()
    }

    pub(crate) fn begin(&mut self) {
        self.never()
    }

    pub(crate) fn request_ranges(&self, _ranges: &[Range<u64>]) -> Result<AbsentRequest, RemoteError> {
        self.never()
    }
}

impl AbsentRequest {
    pub(crate) fn wait(self) -> Result<Vec<(u64, Bytes)>, RemoteError> {
        match self.0 {}
    }
}

impl AbsentStream {
    pub(crate) fn create(url: &RemoteUrl, _is_new: bool) -> io::Result<AbsentStream> {
        Err(AbsentObject::named(url).map_or_else(io::Error::from, |object| object.never()))
    }

    pub(crate) fn new(blocks: Arc<AbsentStream>, _at: u64) -> AbsentStream {
        match blocks.0 {}
    }

    pub(crate) fn len(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self.0 {}
    }
}

impl Read for AbsentStream {
    fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}

impl Seek for AbsentStream {
    fn seek(&mut self, _to: SeekFrom) -> io::Result<u64> {
        match self.0 {}
    }
}

impl Write for AbsentStream {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}
