//! The pool of buffers of pages.

use bytes::Bytes;
use parking_lot::Mutex;

/// Minimum length of buffers that are kept.
const MIN_LEN: usize = 1 << 16;

/// Buffers of written chunks, for reuse: the system clears new memory page by page.
#[derive(Debug, Default)]
pub(in crate::output) struct PageBuffers(Mutex<Vec<Vec<u8>>>);

impl PageBuffers {
    /// Returns a buffer with a capacity of at least `len` bytes.
    pub(super) fn take(&self, len: usize) -> Vec<u8> {
        let mut buffers = self.0.lock();
        let capacities = || buffers.iter().map(Vec::capacity).enumerate();
        let fitting = capacities().filter(|(_, capacity)| *capacity >= len).min_by_key(|(_, capacity)| *capacity);
        // A buffer that is too small grows, so that the pool never has more buffers than were in use at once.
        let chosen = fitting.or_else(|| capacities().max_by_key(|(_, capacity)| *capacity));
        let mut buffer = chosen.map(|(at, _)| buffers.swap_remove(at)).unwrap_or_default();
        buffer.reserve(len);
        buffer
    }

    /// Returns the buffer of `pages` to the pool, if it has no other owner.
    pub(in crate::output) fn put(&self, pages: Bytes) {
        if pages.len() >= MIN_LEN
            && let Ok(mut pages) = pages.try_into_mut()
        {
            // Growing would copy old content.
            pages.clear();
            self.0.lock().push(pages.into());
        }
    }

    /// Number of buffers in the pool.
    #[cfg(test)]
    pub(in crate::output) fn count(&self) -> usize {
        self.0.lock().len()
    }
}
