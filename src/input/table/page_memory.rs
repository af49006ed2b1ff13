//! Memory of Parquet pages, which is used again for later pages: [`PageMemory`]. The system clears new memory, which takes
//! longer than decompressing a page into it.

use parking_lot::Mutex;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};

use crate::process::try_reserve_exact;

/// Longest buffer that is kept, in bytes; most pages have about 1 MiB.
const MAX_KEPT_LEN: usize = 4 << 20;

/// Maximum number of buffers that are kept.
const MAX_KEPT_COUNT: usize = 16;

/// Buffers of pages that are no longer in use. They still have the bytes of these pages.
#[derive(Debug, Default)]
pub(crate) struct PageMemory(Mutex<Vec<Vec<u8>>>);

/// A page in memory that is kept when the page is dropped.
struct KeptPage {
    buffer: Vec<u8>,
    len: usize,
    memory: Arc<PageMemory>,
}

impl PageMemory {
    /// Makes a page of `len` bytes, all of which `fill` must overwrite if it succeeds.
    ///
    /// # Errors
    /// That of `fill`; there is not enough memory.
    pub(super) fn page(
        self: &Arc<Self>,
        len: usize,
        fill: impl FnOnce(&mut [u8]) -> ParquetResult<()>,
    ) -> ParquetResult<Bytes> {
        let buffer =
            self.take(len).ok_or_else(|| ParquetError::General(format!("not enough memory for {len} bytes")))?;
        let mut page = KeptPage { buffer, len, memory: Arc::clone(self) };
        fill(&mut page.buffer[..len])?;
        Ok(Bytes::from_owner(page))
    }

    /// Takes a buffer of at least `len` bytes. Returns `None` if there is not enough memory.
    fn take(&self, len: usize) -> Option<Vec<u8>> {
        let mut buffer = self.0.lock().pop().unwrap_or_default();
        if buffer.len() < len {
            // Growing would copy the old bytes.
            buffer = Vec::new();
            try_reserve_exact(&mut buffer, len).ok()?;
            buffer.resize(len, 0);
        }
        Some(buffer)
    }
}

impl AsRef<[u8]> for KeptPage {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl Drop for KeptPage {
    fn drop(&mut self) {
        let mut buffers = self.memory.0.lock();
        if self.buffer.len() <= MAX_KEPT_LEN && buffers.len() < MAX_KEPT_COUNT {
            buffers.push(std::mem::take(&mut self.buffer));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_no_part_of_a_page_is_in_use() {
        let memory = Arc::new(PageMemory::default());
        let page = |len, byte| {
            memory.page(len, |into| {
                into.fill(byte);
                Ok(())
            })
        };
        let first = page(100, 7).unwrap();
        let at = first.as_ptr();
        let part = first.slice(10..20);
        drop(first);
        assert_ne!(page(90, 0).unwrap().as_ptr(), at);
        memory.0.lock().clear();
        drop(part);
        let second = page(50, 8).unwrap();
        assert_eq!((second.as_ptr(), &second[..]), (at, &[8; 50][..]));
        assert!(page(usize::MAX, 0).is_err());
        drop(page(MAX_KEPT_LEN + 1, 0));
        assert_eq!(memory.0.lock().len(), 0);
    }
}
