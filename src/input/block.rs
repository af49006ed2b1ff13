//! Bytes of a source, owned or mapped, that may be handed from thread to thread: [`Block`]. In: a [`Buffer`] that was
//! read into, or a mapping. Out: a cheap, `Deref<Target = [u8]>` view whose last owner gives the memory back.

use super::mmap::MappedFile;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Buffers smaller than this are not worth keeping.
const KEPT_LEN: usize = 256 << 10;

/// Memory of blocks that are no longer in use, kept so that reading does not fault in fresh pages for every span.
#[derive(Debug)]
pub struct BufferPool {
    free: Mutex<Vec<Vec<u8>>>,
    most: usize,
    longest: usize,
}

impl BufferPool {
    /// A pool that keeps at most `most` buffers, each of at most `longest` bytes.
    pub fn new(most: usize, longest: usize) -> Arc<BufferPool> {
        Arc::new(BufferPool { free: Mutex::new(Vec::new()), most, longest })
    }

    /// An empty buffer, of memory used before if there is some.
    pub fn take(self: &Arc<BufferPool>) -> Buffer {
        let bytes = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        Buffer { bytes, len: 0, pool: Arc::downgrade(self) }
    }

    fn give_back(&self, bytes: Vec<u8>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.most && (KEPT_LEN..=self.longest).contains(&bytes.len()) {
            free.push(bytes);
        }
    }
}

/// Memory that is read into: `len` bytes are filled, those after are initialised and ready. The default one is of no
/// pool.
#[derive(Debug, Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    len: usize,
    pool: Weak<BufferPool>,
}

impl Buffer {
    /// How many bytes are filled.
    pub fn len(&self) -> usize {
        self.len
    }

    /// None is filled.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Room for up to `want` filled bytes in all: the unfilled rest. Grows by doubling towards `want`, so that a short
    /// source never costs a long buffer.
    pub fn room(&mut self, want: usize) -> &mut [u8] {
        if self.bytes.len() < want && self.bytes.len() == self.len {
            let grown = (self.bytes.len() * 2).max(64 << 10).min(want);
            self.bytes.resize(grown, 0);
        }
        let end = want.min(self.bytes.len()).max(self.len);
        &mut self.bytes[self.len..end]
    }

    /// `count` bytes of the room were filled.
    pub fn filled(&mut self, count: usize) {
        self.len = (self.len + count).min(self.bytes.len());
    }

    /// Appends bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        let len = self.len + bytes.len();
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        self.bytes[self.len..len].copy_from_slice(bytes);
        self.len = len;
    }

    /// Gives the bytes of `range` away as a block; those from `range.end` on stay. A short range is copied out, a long
    /// one takes the memory with it and what stays moves to other memory.
    pub fn split_off(&mut self, range: Range<usize>, pool: &Arc<BufferPool>) -> Block {
        if range.len() * 2 < self.bytes.len() {
            let block = Block::from(self.bytes[range.clone()].to_vec());
            self.bytes.copy_within(range.end..self.len, 0);
            self.len -= range.end;
            return block;
        }
        let mut rest = pool.take();
        rest.extend(&self.bytes[range.end..self.len]);
        let full = std::mem::replace(self, rest);
        Block { bytes: Bytes::Owned(Arc::new(full)), range }
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
            pool.give_back(std::mem::take(&mut self.bytes));
        }
    }
}

#[derive(Clone, Debug)]
enum Bytes {
    Mapped(Arc<MappedFile>),
    Owned(Arc<Buffer>),
}

/// A range of a source's (decompressed) bytes; cloning it copies nothing.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Bytes,
    range: Range<usize>,
}

impl Block {
    /// The bytes of `range` in `mapping`.
    ///
    /// # Panics
    /// When read, if the range is not within the mapping.
    pub fn mapped(mapping: &Arc<MappedFile>, range: Range<usize>) -> Block {
        Block { bytes: Bytes::Mapped(Arc::clone(mapping)), range }
    }

    /// Done with: memory goes back to the pool, mapped pages out of this process.
    pub fn release(self) {
        if let Bytes::Mapped(mapping) = &self.bytes {
            mapping.release(self.range.clone());
        }
    }
}

impl From<Vec<u8>> for Block {
    fn from(bytes: Vec<u8>) -> Block {
        let len = bytes.len();
        Block { bytes: Bytes::Owned(Arc::new(Buffer { bytes, len, pool: Weak::new() })), range: 0..len }
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let bytes: &[u8] = match &self.bytes {
            Bytes::Mapped(mapping) => mapping,
            Bytes::Owned(buffer) => buffer,
        };
        &bytes[self.range.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(pool: &Arc<BufferPool>, bytes: &[u8], want: usize) -> Buffer {
        let mut buffer = pool.take();
        for &byte in bytes {
            buffer.room(want)[0] = byte;
            buffer.filled(1);
        }
        buffer
    }

    #[test]
    fn what_is_split_off_and_what_stays() {
        let pool = BufferPool::new(2, 1 << 20);
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

    #[test]
    fn a_full_buffer_has_no_room() {
        let pool = BufferPool::new(2, 1 << 20);
        let mut full = buffer(&pool, b"abc", 3);
        assert!(full.room(3).is_empty() && full.room(1).is_empty());
        assert_eq!(full.room(5).len(), 2);
    }

    #[test]
    fn the_pool_keeps_few_and_neither_short_nor_long_ones() {
        let pool = BufferPool::new(1, 1 << 20);
        pool.give_back(vec![0; 10]);
        pool.give_back(vec![0; 2 << 20]);
        assert!(pool.free.lock().unwrap().is_empty());
        pool.give_back(vec![0; 1 << 19]);
        pool.give_back(vec![0; 1 << 19]);
        assert_eq!(pool.free.lock().unwrap().len(), 1);
    }
}
