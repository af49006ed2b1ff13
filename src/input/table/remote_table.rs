//! A table in a store, of which only the wanted bytes are requested: [`RemoteTable`].
//!
//! The end of the file is requested first: it contains the metadata. The column chunks of a row group are requested when
//! the first of its units is decoded, side by side; chunks that are close to each other in one request. They are dropped
//! with the last unit.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;

use crate::remote::{RemoteError, RemoteObject};

/// Bytes at the end of a file that are requested first.
const TAIL_LEN: u64 = 512 << 10;

/// Bytes that are requested where the wanted length is not known.
const PIECE_LEN: u64 = 64 << 10;

/// Column chunks of one row group that are longer in total are requested page by page.
const MAX_CHUNKS_LEN: u64 = 512 << 20;

/// A table in a store.
pub(super) struct RemoteTable {
    object: RemoteObject,
    len: u64,
    tail: Segment,
    groups: Mutex<HashMap<usize, Weak<FetchedChunks>>>,
}

/// The column chunks of a row group.
#[derive(Default)]
pub(super) struct FetchedChunks(OnceLock<Result<Vec<Segment>, RemoteError>>);

/// Bytes of a file.
struct Segment {
    at: u64,
    bytes: Bytes,
}

impl Segment {
    /// The bytes of `range`, if the segment has all of them.
    fn get(&self, range: &Range<u64>) -> Option<Bytes> {
        let start = usize::try_from(range.start.checked_sub(self.at)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.at)?).ok()?;
        (end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }
}

impl RemoteTable {
    /// Requests the end of an object.
    pub(super) fn open(object: &RemoteObject) -> Result<RemoteTable, RemoteError> {
        let object = object.clone().found()?;
        let len = object.len().filter(|_| object.has_ranges()).ok_or_else(RemoteError::without_ranges)?;
        let at = len.saturating_sub(TAIL_LEN);
        let tail = Segment { at, bytes: object.read(at..len)? };
        Ok(RemoteTable { object, len, tail, groups: Mutex::default() })
    }

    /// Requests nothing in advance.
    pub(super) fn of_rows(object: &RemoteObject) -> Result<RemoteTable, RemoteError> {
        let object = object.clone().found()?;
        let len = object.len().ok_or_else(RemoteError::without_ranges)?;
        Ok(RemoteTable { object, len, tail: Segment { at: len, bytes: Bytes::new() }, groups: Mutex::default() })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// The chunks of a row group, which are at `ranges`. They are requested once as long as they are in use. What reaches past
    /// the end of the file is left out.
    pub(super) fn chunks(&self, group: usize, mut ranges: Vec<Range<u64>>) -> Result<Arc<FetchedChunks>, RemoteError> {
        ranges.retain(|range| range.end <= self.len);
        let chunks = {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            groups.retain(|_, chunks| chunks.strong_count() > 0);
            let chunks = groups.get(&group).and_then(Weak::upgrade).unwrap_or_default();
            groups.insert(group, Arc::downgrade(&chunks));
            chunks
        };
        let len: u64 = ranges.iter().map(|range| range.end - range.start).fold(0, u64::saturating_add);
        let fetched = chunks.0.get_or_init(|| match len {
            ..=MAX_CHUNKS_LEN => {
                let segments = self.object.read_ranges(&ranges)?;
                Ok(segments.into_iter().map(|(at, bytes)| Segment { at, bytes }).collect())
            }
            _ => Ok(Vec::new()),
        });
        fetched.as_ref().map_err(Clone::clone)?;
        Ok(chunks)
    }

    /// The bytes of `range`, which is within the file.
    pub(super) fn read(&self, range: Range<u64>, chunks: Option<&FetchedChunks>) -> io::Result<Bytes> {
        match self.fetched(&range, chunks) {
            Some(bytes) => Ok(bytes),
            None => Ok(self.object.read(range)?),
        }
    }

    /// At least one byte from `at` on; none at the end of the file.
    pub(super) fn read_some(&self, at: u64, len: usize, chunks: Option<&FetchedChunks>) -> io::Result<Bytes> {
        let end = self.len.min(at.saturating_add(len as u64));
        if at >= end {
            return Ok(Bytes::new());
        }
        match self.fetched(&(at..end), chunks).or_else(|| self.fetched(&(at..at + 1), chunks)) {
            Some(bytes) => Ok(bytes),
            None => Ok(self.object.read(at..self.len.min(at + PIECE_LEN.max(len as u64)))?),
        }
    }

    fn fetched(&self, range: &Range<u64>, chunks: Option<&FetchedChunks>) -> Option<Bytes> {
        let segments = chunks.and_then(|chunks| chunks.0.get()?.as_ref().ok());
        let chunks = segments.into_iter().flatten();
        chunks.chain([&self.tail]).find_map(|segment| segment.get(range))
    }
}
