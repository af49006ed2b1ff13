//! Begins to read objects: [`OpenedObject`].

use std::io::Read;
use std::sync::Arc;

#[cfg(not(feature = "remote"))]
use super::absent::{AbsentObject as RemoteObject, AbsentStream as ReadAheadBlocks, AbsentStream as RemoteReader};
use super::error::RemoteError;
#[cfg(feature = "remote")]
use super::{object::RemoteObject, read_ahead::ReadAheadBlocks, read_ahead::RemoteReader, streamed::StreamedBody};

/// An object that is being read.
#[cfg_attr(not(feature = "remote"), allow(dead_code, reason = "nothing opens objects in this build"))]
pub(crate) enum OpenedObject {
    /// Its ranges can be read in any order.
    Ranges(Arc<ReadAheadBlocks>),
    /// Its bytes arrive in order, once.
    Stream(Box<dyn Read + Send>),
}

impl OpenedObject {
    /// The bytes in order.
    pub(crate) fn into_reader(self) -> Box<dyn Read + Send> {
        match self {
            OpenedObject::Ranges(blocks) => Box::new(RemoteReader::new(blocks, 0)),
            OpenedObject::Stream(body) => body,
        }
    }

    /// The blocks; `None` if the server sends no ranges.
    pub(crate) fn blocks(&self) -> Option<&Arc<ReadAheadBlocks>> {
        if let OpenedObject::Ranges(blocks) = self { Some(blocks) } else { None }
    }
}

impl RemoteObject {
    /// Begins to read the object.
    #[cfg(feature = "remote")]
    pub(crate) fn open(&self) -> Result<OpenedObject, RemoteError> {
        let mut object = self.clone();
        object.begin();
        let first_bytes = object.take_first_bytes();
        let object = object.found()?;
        match (object.has_ranges(), object.len()) {
            (true, Some(len)) => Ok(OpenedObject::Ranges(Arc::new(ReadAheadBlocks::new(object, len, first_bytes)))),
            _ => Ok(OpenedObject::Stream(Box::new(StreamedBody::open(object)?))),
        }
    }

    /// The bytes of the object up to byte `end`.
    ///
    /// # Errors
    /// The object does not exist, or the server sends no ranges of it.
    #[cfg(feature = "remote")]
    pub(crate) fn blocks_until(&self, end: u64) -> Result<Arc<ReadAheadBlocks>, RemoteError> {
        let object = self.clone().found()?;
        let len = object.len().filter(|_| object.has_ranges()).ok_or_else(RemoteError::without_ranges)?;
        Ok(Arc::new(ReadAheadBlocks::new(object, len.min(end), None)))
    }

    /// There is no object in this build.
    #[cfg(not(feature = "remote"))]
    pub(crate) fn open(&self) -> Result<OpenedObject, RemoteError> {
        self.clone().found().and_then(|object| object.never())
    }
}
