//! Blocks of an object, requested ahead of those who read them: [`ReadAheadBlocks`].

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::task::AbortHandle;

use super::client::client;
use super::error::RemoteError;
use super::object::RemoteObject;
use super::options::{block_len, read_ahead};
use super::repetition::lost_task;

/// Maximum number of blocks that are requested ahead of the one that is read.
const BLOCKS_AHEAD: u64 = 8;

/// Blocks that are kept behind the last one that was read, for threads that are behind.
const BLOCKS_BEHIND: u64 = 2;

/// The bytes of an object, in blocks of equal length. At most `blocks_ahead` + [`BLOCKS_BEHIND`] + 1 blocks are in memory,
/// which is half of [`read_ahead`] unless that is less than four blocks; a reader that is further behind than that has
/// blocks of its own until one of the others drops them.
pub(crate) struct ReadAheadBlocks {
    object: RemoteObject,
    len: u64,
    block_len: u64,
    blocks_ahead: u64,
    /// The first bytes of the object, if they are less than a block.
    first_bytes: Bytes,
    slots: Arc<Slots>,
}

/// The blocks that were requested.
#[derive(Default)]
struct Slots {
    by_number: Mutex<BTreeMap<u64, Slot>>,
    /// A block arrived, or its request was dropped.
    changed: Condvar,
}

enum Slot {
    Requested(AbortHandle),
    Arrived(Result<Bytes, RemoteError>),
}

impl Slots {
    /// Stores a block if it is still requested.
    fn put(&self, number: u64, block: Result<Bytes, RemoteError>) {
        if let Some(slot) = self.by_number.lock().get_mut(&number) {
            *slot = Slot::Arrived(block);
        }
        self.changed.notify_all();
    }
}

impl ReadAheadBlocks {
    /// The bytes of `object`, which has `len` of them, and may begin with `first_bytes`.
    pub(super) fn new(object: RemoteObject, len: u64, first_bytes: Option<Bytes>) -> ReadAheadBlocks {
        let block_len = block_len();
        let in_memory = read_ahead() as u64 / 2 / block_len;
        let blocks_ahead = in_memory.saturating_sub(BLOCKS_BEHIND + 1).clamp(1, BLOCKS_AHEAD);
        let slots = Arc::<Slots>::default();
        let mut first_bytes = first_bytes.unwrap_or_default();
        if !first_bytes.is_empty() && first_bytes.len() as u64 == len.min(block_len) {
            slots.by_number.lock().insert(0, Slot::Arrived(Ok(std::mem::take(&mut first_bytes))));
        }
        ReadAheadBlocks { object, len, block_len, blocks_ahead, first_bytes, slots }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Waits for the block that contains byte `at`. Returns its bytes from there on; none at the end.
    fn read_at(&self, at: u64) -> Result<Bytes, RemoteError> {
        if at >= self.len {
            return Ok(Bytes::new());
        }
        if at < self.first_bytes.len() as u64 {
            return Ok(self.first_bytes.slice(at as usize..));
        }
        let number = at / self.block_len;
        let mut slots = self.slots.by_number.lock();
        self.request(&mut slots, number)?;
        loop {
            match slots.get(&number) {
                Some(Slot::Arrived(Ok(block))) => return Ok(block.slice((at % self.block_len) as usize..)),
                Some(Slot::Arrived(Err(error))) => return Err(error.clone()),
                Some(Slot::Requested(_)) => self.slots.changed.wait(&mut slots),
                // A reader that is far ahead dropped the block.
                None => self.request(&mut slots, number)?,
            }
        }
    }

    /// Requests a block and those after it, and drops those that are far behind. The number of requests grows with the
    /// blocks that were read, so that little is requested needlessly if only the beginning is read.
    fn request(&self, slots: &mut BTreeMap<u64, Slot>, number: u64) -> Result<(), RemoteError> {
        let count = self.len.div_ceil(self.block_len);
        let ahead = (number + 1).saturating_mul(2).min(self.blocks_ahead);
        for wanted in number..count.min(number + 1 + ahead) {
            if let Entry::Vacant(slot) = slots.entry(wanted) {
                slot.insert(Slot::Requested(self.spawn(wanted)?));
            }
        }
        let oldest =
            slots.last_key_value().map_or(0, |(last, _)| last.saturating_sub(self.blocks_ahead + BLOCKS_BEHIND));
        while let Some(entry) = slots.first_entry().filter(|entry| *entry.key() < oldest.min(number)) {
            if entry.remove().abandon() {
                // Readers that wait for this block must request it again.
                self.slots.changed.notify_all();
            }
        }
        Ok(())
    }

    fn spawn(&self, number: u64) -> Result<AbortHandle, RemoteError> {
        let (object, slots) = (self.object.clone(), Arc::clone(&self.slots));
        let range: Range<u64> = number * self.block_len..self.len.min((number + 1) * self.block_len);
        Ok(client()?.spawn(async move {
            let fetched = AssertUnwindSafe(object.fetch(range)).catch_unwind().await;
            // Readers wait for the block, even if the request panicked.
            slots.put(number, fetched.unwrap_or_else(|_| Err(lost_task().error(&object.store))));
        }))
    }
}

impl Slot {
    /// Stops the request. Returns whether it was running.
    fn abandon(self) -> bool {
        match self {
            Slot::Requested(task) => {
                task.abort();
                true
            }
            Slot::Arrived(_) => false,
        }
    }
}

impl Drop for ReadAheadBlocks {
    fn drop(&mut self) {
        std::mem::take(&mut *self.slots.by_number.lock()).into_values().for_each(|slot| _ = slot.abandon());
    }
}

/// Reads an object from a byte on. Several readers share the blocks.
pub(crate) struct RemoteReader {
    blocks: Arc<ReadAheadBlocks>,
    at: u64,
    block: Bytes,
}

impl RemoteReader {
    pub(crate) fn new(blocks: Arc<ReadAheadBlocks>, at: u64) -> RemoteReader {
        RemoteReader { blocks, at, block: Bytes::new() }
    }
}

impl Seek for RemoteReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(offset) => self.blocks.len().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        let at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        if at != self.at {
            (self.at, self.block) = (at, Bytes::new());
        }
        Ok(at)
    }
}

impl Read for RemoteReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.block.is_empty() {
            self.block = self.blocks.read_at(self.at)?;
        }
        let count = self.block.len().min(into.len());
        into[..count].copy_from_slice(&self.block.split_to(count));
        self.at += count as u64;
        Ok(count)
    }
}
