//! What takes the place of remote objects in a build without the feature `remote`: every use is an error.

use std::convert::Infallible;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::Transfer;
use super::error::RemoteError;
use super::url::RemoteUrl;

/// No object exists.
#[derive(Clone, Debug)]
pub(crate) struct RemoteObject(Infallible);

/// No object has blocks.
pub(crate) struct ReadAheadBlocks(Infallible);

/// No object is read.
pub(crate) struct RemoteReader(Infallible);

/// No object is open.
#[allow(dead_code, reason = "nothing opens objects in this build")]
pub(crate) enum OpenedObject {
    Ranges(Arc<ReadAheadBlocks>),
    Stream(Box<dyn Read + Send>),
}

/// Whether an option of this name exists.
pub(super) fn is_store_key(_key: &str) -> bool {
    true
}

impl RemoteObject {
    pub(crate) fn named(_url: &RemoteUrl) -> Result<RemoteObject, RemoteError> {
        let advice = "install irikey with the feature remote, or fetch the file first";
        Err(RemoteError::new("this irikey was built without remote sources", advice))
    }

    pub(crate) fn exists(_url: &RemoteUrl) -> bool {
        false
    }

    pub(crate) fn name(&self) -> &str {
        match self.0 {}
    }

    pub(crate) fn is_named_as_packed(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn len(&self) -> Option<u64> {
        match self.0 {}
    }

    pub(crate) fn tag(&self) -> Option<&str> {
        match self.0 {}
    }

    pub(crate) fn modified_ns(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn found(self) -> Result<RemoteObject, RemoteError> {
        match self.0 {}
    }

    pub(crate) fn has_ranges(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn read(&self, _range: Range<u64>) -> Result<Bytes, RemoteError> {
        match self.0 {}
    }

    pub(crate) fn read_ranges(&self, _ranges: &[Range<u64>]) -> Result<Vec<(u64, Bytes)>, RemoteError> {
        match self.0 {}
    }

    pub(crate) fn open(&self) -> Result<OpenedObject, RemoteError> {
        match self.0 {}
    }
}

/// Lists nothing.
pub(crate) fn has_objects(url: &RemoteUrl) -> Result<bool, RemoteError> {
    RemoteObject::named(url).map(|_| false)
}

/// Lists nothing.
pub(crate) fn list(url: &RemoteUrl) -> Result<Vec<RemoteObject>, RemoteError> {
    RemoteObject::named(url).map(|object| vec![object])
}

/// What was requested and transferred.
pub(crate) fn transfer() -> Option<Transfer> {
    None
}

/// No object is written.
#[derive(Debug)]
pub(crate) struct RemoteWriter(Infallible);

impl RemoteWriter {
    pub(crate) fn create(url: &RemoteUrl, _is_new: bool) -> io::Result<RemoteWriter> {
        Ok(RemoteWriter(RemoteObject::named(url)?.0))
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        match self.0 {}
    }
}

impl Write for RemoteWriter {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0 {}
    }
}

impl ReadAheadBlocks {
    pub(crate) fn len(&self) -> u64 {
        match self.0 {}
    }
}

impl RemoteReader {
    pub(crate) fn new(blocks: Arc<ReadAheadBlocks>, _at: u64) -> RemoteReader {
        match blocks.0 {}
    }
}

impl Seek for RemoteReader {
    fn seek(&mut self, _to: SeekFrom) -> io::Result<u64> {
        match self.0 {}
    }
}

impl Read for RemoteReader {
    fn read(&mut self, _into: &mut [u8]) -> io::Result<usize> {
        match self.0 {}
    }
}
