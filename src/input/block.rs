//! Memory of sources: [`Buffer`] is filled by a reader, [`Block`] is a range of a buffer or of a mapped file that threads
//! can share, and [`BlockPool`] reuses the memory of blocks.

use super::mmap::MappedFile;
use parking_lot::Mutex;
use std::ops::{Deref, Range};
use std::sync::{Arc, Weak};

/// Shorter buffers are freed instead of kept.
const MIN_KEPT_LEN: usize = 256 << 10;

/// Keeps the memory of released buffers, so that reading does not page-fault in new memory for every row group.
#[derive(Debug)]
pub(crate) struct BlockPool {
    free: Mutex<Vec<Vec<u8>>>,
    max_count: usize,
    max_len: usize,
}

impl BlockPool {
    /// A pool that keeps at most `max_count` buffers of at most `max_len` bytes each.
    pub(crate) fn new(max_count: usize, max_len: usize) -> Arc<BlockPool> {
        Arc::new(BlockPool { free: Mutex::new(Vec::new()), max_count, max_len })
    }

    /// An empty buffer, with the memory of a released one if there is one.
    pub(crate) fn take(self: &Arc<BlockPool>) -> Buffer {
        let bytes = self.free.lock().pop().unwrap_or_default();
        Buffer { bytes, len: 0, pool: Arc::downgrade(self) }
    }

    fn release(&self, bytes: Vec<u8>) {
        let mut free = self.free.lock();
        if free.len() < self.max_count && (MIN_KEPT_LEN..=self.max_len).contains(&bytes.len()) {
            free.push(bytes);
        }
    }
}

/// Memory to read into. The first `len` bytes are filled; the bytes after them are initialized. The default buffer belongs
/// to no pool. Dereferences to the filled bytes.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    len: usize,
    pool: Weak<BlockPool>,
}

impl Buffer {
    /// Returns the part that is not filled, so that the buffer is filled up to `want` bytes at most. Grows by doubling, so
    /// that a short source never allocates a long buffer.
    pub(crate) fn unfilled(&mut self, want: usize) -> &mut [u8] {
        if self.bytes.len() < want && self.bytes.len() == self.len {
            let grown = (self.bytes.len() * 2).max(64 << 10).min(want);
            self.bytes.resize(grown, 0);
        }
        let end = want.min(self.bytes.len()).max(self.len);
        &mut self.bytes[self.len..end]
    }

    /// Marks the first `count` bytes of the part that [`Buffer::unfilled`] returned as filled.
    pub(crate) fn filled(&mut self, count: usize) {
        self.len = (self.len + count).min(self.bytes.len());
    }

    /// Discards all filled bytes after the first `len` ones.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        let len = self.len + bytes.len();
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        self.bytes[self.len..len].copy_from_slice(bytes);
        self.len = len;
    }

    /// Returns the bytes of `range` as a block, and removes them and all bytes before them. A short range is copied; a long
    /// range takes the memory, and the remaining bytes are copied to a buffer of `pool`.
    pub(crate) fn split_off(&mut self, range: Range<usize>, pool: &Arc<BlockPool>) -> Block {
        if range.len() * 2 < self.bytes.len() {
            let block = Block::from(self.bytes[range.clone()].to_vec());
            self.bytes.copy_within(range.end..self.len, 0);
            self.len -= range.end;
            return block;
        }
        let mut rest = pool.take();
        rest.extend(&self.bytes[range.end..self.len]);
        let full = std::mem::replace(self, rest);
        Block { memory: BlockMemory::Owned(Arc::new(full)), range }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.release(std::mem::take(&mut self.bytes));
        }
    }
}

#[derive(Clone, Debug)]
enum BlockMemory {
    Mapped(Arc<MappedFile>),
    Owned(Arc<Buffer>),
}

/// Owned or mapped bytes of a source, decompressed. Cloning copies no bytes.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    memory: BlockMemory,
    range: Range<usize>,
}

impl Block {
    /// The bytes of `range` in `mapping`.
    ///
    /// # Panics
    /// When the bytes are read, if the range is not within the mapping.
    pub(crate) fn mapped(mapping: &Arc<MappedFile>, range: Range<usize>) -> Block {
        Block { memory: BlockMemory::Mapped(Arc::clone(mapping)), range }
    }

    /// The bytes of `range`, which no other process can change: mapped bytes are copied into `copy` first, which grows if
    /// necessary.
    ///
    /// # Panics
    /// If the range is not within the block.
    pub(crate) fn copied<'a>(&'a self, range: Range<usize>, copy: &'a mut Vec<u8>) -> &'a [u8] {
        let BlockMemory::Mapped(mapping) = &self.memory else { return &self[range] };
        assert!(range.end <= self.range.len());
        if copy.len() < range.len() {
            copy.resize(range.len(), 0);
        }
        let copy = &mut copy[..range.len()];
        mapping.copy_at(self.range.start + range.start, copy);
        copy
    }

    /// Drops the block. Owned memory returns to its pool; mapped pages leave the resident memory of this process.
    pub(crate) fn release(self) {
        if let BlockMemory::Mapped(mapping) = &self.memory {
            mapping.release(self.range.clone());
        }
    }
}

impl From<Vec<u8>> for Block {
    fn from(bytes: Vec<u8>) -> Block {
        let len = bytes.len();
        Block { memory: BlockMemory::Owned(Arc::new(Buffer { bytes, len, pool: Weak::new() })), range: 0..len }
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = match &self.memory {
            BlockMemory::Mapped(mapping) => mapping,
            BlockMemory::Owned(buffer) => buffer,
        };
        &bytes[self.range.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(pool: &Arc<BlockPool>, bytes: &[u8], want: usize) -> Buffer {
        let mut buffer = pool.take();
        for &byte in bytes {
            buffer.unfilled(want)[0] = byte;
            buffer.filled(1);
        }
        buffer
    }

    #[test]
    fn split_off_returns_the_range_and_keeps_the_rest() {
        let pool = BlockPool::new(2, 1 << 20);
        for (range, rest) in [(1..3, &b"defg"[..]), (0..7, b""), (1..6, b"g"), (2..2, b"cdefg")] {
            let mut long = buffer(&pool, b"abcdefg", 1 << 20);
            let mut exact = buffer(&pool, b"abcdefg", 7);
            for buffer in [&mut long, &mut exact] {
                let block = buffer.split_off(range.clone(), &pool);
                assert_eq!(&*block, &b"abcdefg"[range.clone()]);
                assert_eq!(&**buffer, rest);
            }
        }
    }

    /// Text is decoded from copies, because another process may change a mapped file.
    #[test]
    fn a_copy_of_mapped_bytes_does_not_change_with_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), [b'a'; 100]).unwrap();
        let mapping = Arc::new(MappedFile::new(file.as_file(), file.path()).unwrap());
        let block = Block::mapped(&mapping, 10..90);
        let mut copy = Vec::new();
        let copied = block.copied(5..10, &mut copy);
        let place = copied.as_ptr();
        assert!(!block.as_ptr_range().contains(&place));
        assert_eq!(copied, b"aaaaa");
        assert_eq!(Block::from(vec![1, 2, 3]).copied(1..2, &mut copy), [2]);
    }

    #[test]
    fn a_full_buffer_has_no_room() {
        let pool = BlockPool::new(2, 1 << 20);
        let mut full = buffer(&pool, b"abc", 3);
        assert!(full.unfilled(3).is_empty() && full.unfilled(1).is_empty());
        assert_eq!(full.unfilled(5).len(), 2);
    }

    #[test]
    fn the_pool_keeps_few_buffers_of_moderate_length() {
        let pool = BlockPool::new(1, 1 << 20);
        pool.release(vec![0; 10]);
        pool.release(vec![0; 2 << 20]);
        assert!(pool.free.lock().is_empty());
        pool.release(vec![0; 1 << 19]);
        pool.release(vec![0; 1 << 19]);
        assert_eq!(pool.free.lock().len(), 1);
    }
}
