//! A regular file in, its bytes as memory out. One of two places with `unsafe` (the other is the kernels).
//!
//! The hazard of a mapped file is that others may write to it. If it shrinks, touching what is gone raises SIGBUS:
//! `signal.rs` turns that into a message and exit status 4. If its bytes change under us, we see some mixture of old and
//! new bytes: no length or offset is ever taken from file bytes without a check, and the bytes are never taken for
//! UTF-8 without validation of the copy in use.

#[cfg(unix)]
mod signal;

use memmap2::Mmap;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;

/// A mapped file, watched for SIGBUS while it lives.
#[derive(Debug)]
pub struct MappedFile {
    map: Mmap,
    #[cfg(unix)]
    slot: usize,
}

impl MappedFile {
    /// Maps all of `file`, which `path` names in messages. `None` if it cannot be mapped, or if so many files are
    /// mapped that it could not be watched; read it then.
    pub fn new(file: &File, path: &Path) -> Option<MappedFile> {
        // SAFETY: the map is read-only and private to this value. That the bytes may change or vanish when another
        // process writes to the file is met as the head of this file says: SIGBUS is handled while the mapping is
        // watched, and no code relies on two reads of a byte being equal for its memory safety.
        let map = unsafe { Mmap::map(file) }.ok()?;
        #[cfg(unix)]
        {
            // Advice only: a kernel that does not take it reads ahead less.
            let _ = map.advise(memmap2::Advice::Sequential);
            let slot = signal::watch(&map, path)?;
            Some(MappedFile { map, slot })
        }
        #[cfg(not(unix))]
        {
            let _ = path;
            Some(MappedFile { map })
        }
    }
}

impl MappedFile {
    /// The bytes of `range` have been read and will hardly be read again: their pages may leave this process's
    /// resident memory, which would otherwise grow to the length of the file.
    pub fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        {
            // Whole pages only; a larger unit than the page serves as well.
            const PAGE_LEN: usize = 64 << 10;
            let (start, end) = (range.start.next_multiple_of(PAGE_LEN), range.end.min(self.map.len()));
            let end = end - end % PAGE_LEN;
            if start < end {
                // SAFETY: MADV_DONTNEED on a shared, read-only mapping of a file changes no byte: the pages are read
                // from the file again if they are touched, so slices of the map stay valid. The range lies within
                // the map.
                let _ =
                    unsafe { self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
            }
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(unix)]
impl Drop for MappedFile {
    fn drop(&mut self) {
        signal::unwatch(self.slot);
    }
}
