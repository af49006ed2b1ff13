//! A table in a store, of which only the wanted bytes are requested: [`RemoteTable`].
//!
//! The end of the file is requested first: it contains the metadata. The column chunks of a row group are requested before
//! the first of its units is decoded, side by side; chunks that are close to each other in one request. Those of the row
//! groups that follow are requested at the same time, as far as memory allows. Units of a row group keep its chunks as long
//! as they are decoded, so that nothing is requested twice if a thread is behind.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use crate::process::try_reserve_exact;
use crate::remote::{RangesRequest, RemoteError, RemoteObject, read_ahead};

/// Bytes at the end of a file that are requested first.
const TAIL_LEN: u64 = 512 << 10;

/// Bytes that are requested where the wanted length is not known.
const PIECE_LEN: u64 = 64 << 10;

/// Column chunks of one row group that are longer in total are requested page by page.
const MAX_CHUNKS_LEN: u64 = 512 << 20;

/// Maximum number of row groups that are requested ahead.
const GROUPS_AHEAD: usize = 16;

/// A table in a store.
pub(super) struct RemoteTable {
    object: RemoteObject,
    len: u64,
    tail: Segment,
    /// The row groups that were requested last.
    groups: Mutex<BTreeMap<usize, Arc<FetchedChunks>>>,
}

/// The column chunks of a row group.
#[derive(Default)]
pub(super) struct FetchedChunks {
    /// Bytes of the chunks.
    len: u64,
    request: Mutex<Option<Result<RangesRequest, RemoteError>>>,
    segments: OnceLock<Result<Vec<Segment>, RemoteError>>,
}

/// Bytes of a file.
struct Segment {
    at: u64,
    bytes: Bytes,
}

impl Segment {
    /// The bytes from `at` to `end`, as many as the segment has; `None` if it does not have the first.
    fn get_some(&self, at: u64, end: u64) -> Option<Bytes> {
        let end = end.min(self.at + self.bytes.len() as u64);
        let start = at.checked_sub(self.at).filter(|_| at < end)?;
        // Both are within the segment.
        Some(self.bytes.slice(start as usize..(end - self.at) as usize))
    }
}

impl FetchedChunks {
    /// Waits until the chunks have arrived.
    pub(super) fn wait(&self) -> Result<(), RemoteError> {
        let fetched = self.segments.get_or_init(|| {
            let request = self.request.lock().take();
            let parts = request.map_or_else(|| Ok(Vec::new()), |request| request?.wait())?;
            Ok(parts.into_iter().map(|(at, bytes)| Segment { at, bytes }).collect())
        });
        fetched.as_ref().map(|_| ()).map_err(Clone::clone)
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

    /// Requests nothing in advance. The version of `object` must be known, so that its rows are of this version.
    pub(super) fn of_rows(object: &RemoteObject) -> Result<RemoteTable, RemoteError> {
        let len = object.len().ok_or_else(RemoteError::without_ranges)?;
        let object = object.clone();
        Ok(RemoteTable { object, len, tail: Segment { at: len, bytes: Bytes::new() }, groups: Mutex::default() })
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Requests the chunks of a row group, and those of groups after it. Calls are in the order of the groups. `ranges`
    /// returns where the chunks of a group are, and `None` after the last group. What reaches past the end of the file is
    /// left out.
    pub(super) fn chunks(&self, group: usize, ranges: impl Fn(usize) -> Option<Vec<Range<u64>>>) -> Arc<FetchedChunks> {
        let mut groups = self.groups.lock();
        groups.retain(|number, _| *number >= group);
        let space = read_ahead() as u64 / 2;
        for number in group..=group + GROUPS_AHEAD {
            if groups.contains_key(&number) {
                continue;
            }
            let Some(ranges) = ranges(number) else { break };
            let (ranges, len) = self.missing(ranges);
            let ahead = groups.range(group + 1..).map(|(_, chunks)| chunks.len).fold(len, u64::saturating_add);
            if number > group && ahead > space {
                break;
            }
            groups.insert(number, Arc::new(self.request(&ranges, len)));
        }
        groups.get(&group).cloned().unwrap_or_default()
    }

    /// The ranges that are not in the tail, and their length.
    fn missing(&self, mut ranges: Vec<Range<u64>>) -> (Vec<Range<u64>>, u64) {
        ranges.retain(|range| range.end <= self.len && range.start < self.tail.at);
        let len = ranges.iter().map(|range| range.end - range.start).fold(0, u64::saturating_add);
        (ranges, len)
    }

    fn request(&self, ranges: &[Range<u64>], len: u64) -> FetchedChunks {
        let request = (1..=MAX_CHUNKS_LEN).contains(&len).then(|| self.object.request_ranges(ranges));
        FetchedChunks { len, request: Mutex::new(request), segments: OnceLock::new() }
    }

    /// The bytes of `range`, which is within the file.
    pub(super) fn read(&self, range: Range<u64>, chunks: Option<&FetchedChunks>) -> io::Result<Bytes> {
        match self.fetched(&range, chunks) {
            _ if range.is_empty() => Ok(Bytes::new()),
            Some(bytes) => Ok(bytes),
            None => Ok(self.object.read(range)?),
        }
    }

    /// Bytes from `at` on, `len` of them if they are known; at least one, and none at the end of the file.
    pub(super) fn read_some(&self, at: u64, len: usize, chunks: Option<&FetchedChunks>) -> io::Result<Bytes> {
        let end = self.len.min(at.saturating_add(len as u64));
        if at >= end {
            return Ok(Bytes::new());
        }
        match self.segments(chunks).find_map(|segment| segment.get_some(at, end)) {
            Some(bytes) => Ok(bytes),
            None => Ok(self.object.read(at..self.len.min(at + PIECE_LEN.max(len as u64)))?),
        }
    }

    /// The bytes of `range` from what was requested, if it has all of them. They are copied if they are in several segments.
    fn fetched(&self, range: &Range<u64>, chunks: Option<&FetchedChunks>) -> Option<Bytes> {
        let get_some = |at: u64| self.segments(chunks).find_map(|segment| segment.get_some(at, range.end));
        let mut part = get_some(range.start)?;
        let len = usize::try_from(range.end - range.start).ok()?;
        if part.len() == len {
            return Some(part);
        }
        let mut bytes = Vec::new();
        try_reserve_exact(&mut bytes, len).ok()?;
        loop {
            bytes.extend_from_slice(&part);
            if bytes.len() == len {
                return Some(bytes.into());
            }
            part = get_some(range.start + bytes.len() as u64)?;
        }
    }

    /// What was requested so far.
    fn segments<'a>(&'a self, chunks: Option<&'a FetchedChunks>) -> impl Iterator<Item = &'a Segment> {
        let segments = chunks.and_then(|chunks| chunks.segments.get()?.as_ref().ok());
        segments.into_iter().flatten().chain([&self.tail])
    }
}
