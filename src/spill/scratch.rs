//! A temporary file that blocks of bytes are appended to and read back from: [`ScratchFile`].

use arrow::error::ArrowError;
use lz4_flex::block::{compress_prepend_size, decompress_size_prepended};
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::process::{plain_error, read_exact_at, remedy, without_termination, write_all_at};

/// Why data could not be spilled. It ends the run; the output file does not get its final name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpillError {
    /// The temporary file could not be created in this directory.
    #[error(
        "{path}: cannot create a temporary file there: {reason}; {advice}", path = .0.display(), reason = plain_error(.1),
        advice = remedy(.1).unwrap_or("choose a writable directory with --tmp, or allow more memory with --memory")
    )]
    Create(PathBuf, io::Error),
    /// The temporary file in this directory could not be written.
    #[error(
        "{path}: cannot write a temporary file there: {reason}; {advice}; the output was not written", path = .0.display(), reason = plain_error(.1),
        advice = advice(.1, "free disk space, choose another directory with --tmp, or allow more memory with --memory")
    )]
    Write(PathBuf, io::Error),
    /// A file of sorted runs, from which a later job may go on, could not be written to this directory.
    #[error(
        "{path}: cannot write sorted runs there: {reason}; {advice}, then run the job again", path = .0.display(), reason = plain_error(.1),
        advice = advice(.1, "free disk space there, or make the directory writable")
    )]
    Runs(PathBuf, io::Error),
    /// The temporary file in this directory, or this file of sorted runs, could not be read back.
    #[error(
        "{path}: cannot read a temporary file back: {reason}; {advice}", path = .0.display(), reason = plain_error(.1),
        advice = advice(.1, "check the storage device")
    )]
    Read(PathBuf, io::Error),
    /// A record batch could not be encoded or decoded.
    #[error(
        "cannot encode or decode rows of a temporary file: {0}; check the storage device of --tmp, and run the job again"
    )]
    Arrow(#[from] ArrowError),
}

/// What to do about an error. `usual` has more detailed advice for a full disk.
fn advice(error: &io::Error, usual: &'static str) -> &'static str {
    remedy(error).filter(|_| error.kind() != io::ErrorKind::StorageFull).unwrap_or(usual)
}

/// The place of a block in a [`ScratchFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileRange {
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

/// A temporary file without a name, created by the first write. Threads may share it, and do not wait for each other.
#[derive(Debug)]
pub(crate) struct ScratchFile {
    /// The directory of the file, or the path of a file that has a name.
    path: PathBuf,
    file: OnceLock<File>,
    /// Length of the file, with what is being written.
    len: AtomicU64,
}

impl ScratchFile {
    /// A file in `directory`, which is not created yet.
    pub(crate) fn new(directory: &Path) -> ScratchFile {
        ScratchFile { path: directory.to_path_buf(), file: OnceLock::new(), len: AtomicU64::new(0) }
    }

    /// Opens a file with a name, which an earlier job wrote.
    pub(crate) fn open(path: &Path) -> Result<ScratchFile, SpillError> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (len, file) = opened.map_err(|error| SpillError::Read(path.to_path_buf(), error))?;
        Ok(ScratchFile { path: path.to_path_buf(), file: OnceLock::from(file), len: AtomicU64::new(len) })
    }

    /// The file, which is created if it does not exist.
    fn file(&self) -> Result<&File, SpillError> {
        if self.file.get().is_none() {
            // On some file systems the file has a name for a moment.
            let created = without_termination(|| tempfile::tempfile_in(&self.path));
            let created = created.map_err(|error| SpillError::Create(self.path.clone(), error))?;
            // If another thread was faster, this file vanishes.
            let _ = self.file.set(created);
        }
        Ok(self.file.wait())
    }

    pub(crate) fn append(&self, bytes: &[u8]) -> Result<FileRange, SpillError> {
        let file = self.file()?;
        let offset = self.len.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        write_all_at(file, bytes, offset).map_err(|error| SpillError::Write(self.path.clone(), error))?;
        Ok(FileRange { offset, len: bytes.len() })
    }

    pub(crate) fn append_lz4(&self, bytes: &[u8]) -> Result<FileRange, SpillError> {
        self.append(&compress_prepend_size(bytes))
    }

    /// Replaces the contents of `into` with the bytes at `range`.
    pub(crate) fn read(&self, range: FileRange, into: &mut Vec<u8>) -> Result<(), SpillError> {
        into.resize(range.len, 0);
        let read = read_exact_at(self.file()?, into, range.offset);
        read.map_err(|error| SpillError::Read(self.path.clone(), error))
    }

    /// Reads what [`ScratchFile::append_lz4`] wrote; `compressed` is a buffer.
    pub(crate) fn read_lz4(&self, range: FileRange, compressed: &mut Vec<u8>) -> Result<Vec<u8>, SpillError> {
        self.read(range, compressed)?;
        decompress_size_prepended(compressed).map_err(|error| self.corrupt(&error))
    }

    /// The error for bytes that are not those that were written.
    pub(crate) fn corrupt(&self, reason: &dyn fmt::Display) -> SpillError {
        let error = io::Error::new(io::ErrorKind::InvalidData, reason.to_string());
        SpillError::Read(self.path.clone(), error)
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.path
    }

    /// Bytes in the file.
    pub(crate) fn written_len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let (file, mut bytes) = (ScratchFile::new(directory.path()), Vec::new());
        let (plain, packed) = (file.append(b"plain").unwrap(), file.append_lz4(&[7; 1000]).unwrap());
        assert!(packed.len < 1000 && file.written_len() == 5 + packed.len as u64);
        file.read(plain, &mut bytes).unwrap();
        assert_eq!(bytes, b"plain");
        assert_eq!(file.read_lz4(packed, &mut bytes).unwrap(), [7; 1000]);
        assert!(file.read_lz4(plain, &mut bytes).is_err(), "bytes that LZ4 did not write");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn a_missing_directory_is_named_in_the_error() {
        let missing = tempfile::tempdir().unwrap().path().join("missing");
        let error = ScratchFile::new(&missing).append(b"x").unwrap_err().to_string();
        assert!(error.contains("missing: cannot create a temporary file") && error.contains("--tmp"), "{error}");
    }
}
