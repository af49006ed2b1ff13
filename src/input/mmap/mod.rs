//! Files mapped into memory, see [`MappedFile`].
//!
//! Another process may write to a mapped file.
//! - If the file shrinks, reading a missing page raises SIGBUS. The handler in `signal.rs` prints a message and ends the
//!   process with exit code 4.
//! - If bytes change while they are mapped, the run sees a mixture of old and new bytes. Therefore mapped bytes are only
//!   searched for delimiters and copied, and everything else works on the copies: a worker reads each chunk into a buffer
//!   before it decodes it ([`Block::copied`](super::Block::copied)), the parser of archives copies headers and contents, and
//!   the decompressors read into buffers. A search reads a byte and returns a position within the slice, so a change can move
//!   the end of a record, but it cannot make checked UTF-8 invalid: the rows are those of some mixture of the bytes. The
//!   rows of such a run do not repeat; `--no-mmap` has the same limit.
//!
//! Rust requires that the bytes of a shared slice do not change. The language does not define searches of a file that
//! another process writes to; the searches that are used here (`memchr` and loops over bytes) read every byte once and
//! trust no byte that they read before.

#[cfg(unix)]
mod signal;
#[cfg(all(test, unix))]
mod tests;

#[cfg(unix)]
use crate::process::read_at;
use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Length of released ranges after which pages are removed from the resident memory. Each time, the system interrupts all
/// threads.
#[cfg(unix)]
const RELEASE_LEN: usize = 8 << 20;

/// Pages up to this far before the end of a released range are removed with it. Ranges are released almost in order.
#[cfg(unix)]
const RELEASE_WINDOW: usize = 256 << 20;

/// A file mapped into memory, watched for SIGBUS while it exists. Dereferences to its bytes, which another process may
/// change at any time: search or copy them, but do not parse them in place.
#[derive(Debug)]
pub(crate) struct MappedFile {
    map: Mmap,
    #[cfg(unix)]
    file: File,
    /// Byte of the file at which the mapping begins.
    #[cfg(unix)]
    start: u64,
    #[cfg(unix)]
    slot: usize,
    /// Bytes of the ranges that were released.
    #[cfg(unix)]
    released: AtomicUsize,
}

impl MappedFile {
    /// Maps all of `file`; `path` is its name in messages. Returns `None` if the file cannot be mapped, or if too many files
    /// are mapped to watch another one. The caller then reads the file.
    pub(crate) fn new(file: &File, path: &Path) -> Option<MappedFile> {
        MappedFile::watched(&MmapOptions::new(), 0, file, path)
    }

    /// Maps a range of `file`, like [`MappedFile::new`].
    pub(crate) fn of_range(file: &File, range: Range<u64>, path: &Path) -> Option<MappedFile> {
        let len = usize::try_from(range.end.checked_sub(range.start)?).ok()?;
        // A mapping may reach past the end of its file, and reading there raises SIGBUS.
        let is_within = file.metadata().is_ok_and(|metadata| range.end <= metadata.len());
        let mut options = MmapOptions::new();
        is_within.then(|| MappedFile::watched(options.offset(range.start).len(len), range.start, file, path))?
    }

    fn watched(options: &MmapOptions, start: u64, file: &File, path: &Path) -> Option<MappedFile> {
        // SAFETY: the map is read-only and private to this value. Another process may change its bytes; the module
        // documentation states how they are used, so that no memory error follows.
        let map = unsafe { options.map(file) }.ok()?;
        #[cfg(unix)]
        {
            // Advice: without it the kernel reads less ahead.
            let _ = map.advise(memmap2::Advice::Sequential);
            let file = file.try_clone().ok()?;
            let slot = signal::watch(&map, path)?;
            Some(MappedFile { map, file, start, slot, released: AtomicUsize::new(0) })
        }
        #[cfg(not(unix))]
        {
            let _ = (path, start);
            Some(MappedFile { map })
        }
    }

    /// Copies the bytes from `at` on into `copy`, without an access to their pages if possible: a page fault costs more than
    /// a part of a system call.
    pub(crate) fn copy_at(&self, at: usize, copy: &mut [u8]) {
        #[cfg(unix)]
        let done = self.read_at(at, copy);
        #[cfg(not(unix))]
        let done = 0;
        let rest = &mut copy[done..];
        rest.copy_from_slice(&self.map[at + done..][..rest.len()]);
    }

    /// Reads the bytes from `at` on from the file, up to an error. Returns how many. If the file has shrunk, the process ends
    /// as it does by SIGBUS, which is not raised for the rest of the last page: that is filled with zeros.
    #[cfg(unix)]
    fn read_at(&self, at: usize, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            match read_at(&self.file, &mut into[done..], self.start + (at + done) as u64) {
                Ok(0) => signal::end_unreadable(self.slot),
                Ok(count) => done += count,
                Err(_) => break,
            }
        }
        done
    }

    /// States that the bytes of `range` were read. From time to time, removes the pages of such ranges from the resident memory
    /// of this process, which would otherwise grow to the length of the file. The pages can still be read, from the page cache
    /// or the file.
    pub(crate) fn release(&self, range: Range<usize>) {
        #[cfg(unix)]
        {
            let before = self.released.fetch_add(range.len(), Ordering::Relaxed);
            if before / RELEASE_LEN < (before + range.len()) / RELEASE_LEN {
                self.remove_pages(range.end.saturating_sub(RELEASE_WINDOW)..range.end);
            }
        }
        #[cfg(not(unix))]
        let _ = range;
    }

    /// Removes the whole pages of `range` from the resident memory.
    #[cfg(unix)]
    fn remove_pages(&self, range: Range<usize>) {
        // A multiple of the length of a page works as well.
        const PAGE_LEN: usize = 64 << 10;
        let (start, end) = (range.start.next_multiple_of(PAGE_LEN), range.end.min(self.map.len()));
        let end = end - end % PAGE_LEN;
        if start < end {
            // SAFETY: MADV_DONTNEED on a shared, read-only mapping of a file changes no byte: the pages are read from the file
            // again when they are accessed, so slices of the map stay valid. The range is within the map.
            let _ = unsafe { self.map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, end - start) };
        }
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

/// Reads a mapped file like an open one.
pub(super) struct MappedReader {
    mapping: Arc<MappedFile>,
    at: usize,
}

impl MappedReader {
    /// Reads from byte `start` on.
    pub(super) fn new(mapping: Arc<MappedFile>, start: usize) -> MappedReader {
        MappedReader { mapping, at: start }
    }
}

impl Read for MappedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = into.len().min(self.mapping.len() - self.at);
        self.mapping.copy_at(self.at, &mut into[..count]);
        self.at += count;
        Ok(count)
    }
}
