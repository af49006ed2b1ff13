//! A file that several threads read at independent positions: [`PositionedFile`].

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

use super::page_memory::PageMemory;
use super::remote_table::{FetchedChunks, RemoteTable};
use crate::input::stored_file::StoredFile;
use crate::process::{read_at, try_reserve_exact};

/// Bytes that are read at a time where the length is not known.
const BUFFER_LEN: usize = 1 << 10;

/// A file that several threads read at independent positions.
#[derive(Clone)]
pub(crate) struct PositionedFile {
    bytes: PositionedBytes,
    len: u64,
}

#[derive(Clone)]
enum PositionedBytes {
    File(Arc<File>),
    Memory(Bytes),
    Remote(Arc<RemoteTable>, Option<Arc<FetchedChunks>>),
}

impl PositionedFile {
    pub(crate) fn open(file: &StoredFile) -> io::Result<PositionedFile> {
        match file {
            StoredFile::Path(path) => {
                let file = File::open(path)?;
                let len = file.metadata()?.len();
                Ok(PositionedFile { bytes: PositionedBytes::File(Arc::new(file)), len })
            }
            StoredFile::Remote(object) => Ok(PositionedFile::remote(RemoteTable::open(object)?)),
        }
    }

    /// A file that was read whole.
    pub(crate) fn of_bytes(bytes: Bytes) -> PositionedFile {
        let len = bytes.len() as u64;
        PositionedFile { bytes: PositionedBytes::Memory(bytes), len }
    }

    fn remote(table: RemoteTable) -> PositionedFile {
        let len = table.len();
        PositionedFile { bytes: PositionedBytes::Remote(Arc::new(table), None), len }
    }

    /// A file whose metadata were read before. An object must have the [version](StoredFile::found) of these metadata.
    pub(crate) fn of_rows(file: &StoredFile) -> io::Result<PositionedFile> {
        let StoredFile::Remote(object) = file else { return PositionedFile::open(file) };
        Ok(PositionedFile::remote(RemoteTable::of_rows(object)?))
    }

    /// The same file with the column chunks of a row group, which are requested now if reads are expensive. Calls are in the
    /// order of the groups. `ranges` returns where the chunks of a group are, and `None` after the last group.
    pub(crate) fn with_chunks(
        &self,
        group: usize,
        ranges: impl Fn(usize) -> Option<Vec<Range<u64>>>,
    ) -> PositionedFile {
        let bytes = match &self.bytes {
            PositionedBytes::Remote(table, _) => {
                PositionedBytes::Remote(Arc::clone(table), Some(table.chunks(group, ranges)))
            }
            bytes => bytes.clone(),
        };
        PositionedFile { bytes, len: self.len }
    }

    /// Waits until the column chunks have arrived.
    pub(crate) fn wait(&self) -> io::Result<()> {
        match &self.bytes {
            PositionedBytes::Remote(_, Some(chunks)) => Ok(chunks.wait()?),
            PositionedBytes::Remote(_, None) | PositionedBytes::File(_) | PositionedBytes::Memory(_) => Ok(()),
        }
    }

    /// Reads a page of `len` bytes at `start`, into memory of earlier pages if it comes from a disk.
    pub(super) fn page(&self, start: u64, len: usize, memory: &Arc<PageMemory>) -> ParquetResult<Bytes> {
        match &self.bytes {
            PositionedBytes::File(_) if start.checked_add(len as u64).is_some_and(|end| end <= self.len) => {
                memory.page(len, |into| Ok(self.reader(start).read_exact(into)?))
            }
            // Other bytes are in memory already, and what reaches past the end is an error.
            _ => self.get_bytes(start, len),
        }
    }

    /// Reads from byte `at` on.
    pub(crate) fn reader(&self, at: u64) -> PositionedReader {
        PositionedReader { file: self.clone(), at, piece: Bytes::new() }
    }
}

impl Length for PositionedFile {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for PositionedFile {
    type T = BufReader<PositionedReader>;

    fn get_read(&self, start: u64) -> ParquetResult<BufReader<PositionedReader>> {
        Ok(BufReader::with_capacity(BUFFER_LEN, self.reader(start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let past_end = || ParquetError::EOF(format!("{length} bytes at byte {start} reach past the end of the file"));
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(past_end());
        }
        match &self.bytes {
            PositionedBytes::Remote(table, chunks) => {
                return Ok(table.read(start..start + length as u64, chunks.as_deref())?);
            }
            PositionedBytes::Memory(bytes) => return Ok(bytes.slice(start as usize..start as usize + length)),
            PositionedBytes::File(_) => (),
        }
        let mut bytes = Vec::new();
        let reserved = try_reserve_exact(&mut bytes, length);
        reserved.map_err(|_| ParquetError::General(format!("not enough memory for {length} bytes")))?;
        match self.reader(start).take(length as u64).read_to_end(&mut bytes)? {
            read if read == length => Ok(bytes.into()),
            _ => Err(past_end()),
        }
    }
}

/// Reads a file from a byte on.
pub(crate) struct PositionedReader {
    file: PositionedFile,
    at: u64,
    /// Bytes of a remote file that were read ahead.
    piece: Bytes,
}

impl Read for PositionedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = match &self.file.bytes {
            PositionedBytes::File(file) => read_at(file, into, self.at)?,
            PositionedBytes::Memory(bytes) => {
                let start = usize::try_from(self.at).unwrap_or(usize::MAX).min(bytes.len());
                (&bytes[start..]).read(into)?
            }
            PositionedBytes::Remote(table, chunks) => {
                if self.piece.is_empty() {
                    self.piece = table.read_some(self.at, into.len(), chunks.as_deref())?;
                }
                let count = self.piece.len().min(into.len());
                into[..count].copy_from_slice(&self.piece.split_to(count));
                count
            }
        };
        self.at += count as u64;
        Ok(count)
    }
}
