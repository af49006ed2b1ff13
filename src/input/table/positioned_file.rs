//! A file that several threads read at independent positions: [`PositionedFile`].

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::reader::{ChunkReader, Length};

/// Bytes that are read at a time where the length is not known.
const BUFFER_LEN: usize = 1 << 10;

/// A file that several threads read at independent positions.
#[derive(Clone)]
pub(super) struct PositionedFile {
    file: Arc<File>,
    len: u64,
}

impl PositionedFile {
    pub(super) fn open(path: &Path) -> io::Result<PositionedFile> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        Ok(PositionedFile { file: Arc::new(file), len })
    }

    /// Reads from byte `at` on.
    pub(super) fn reader(&self, at: u64) -> PositionedReader {
        PositionedReader { file: self.clone(), at }
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
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!("{length} bytes at byte {start} reach past the end of the file")));
        }
        let mut bytes = Vec::new();
        let reserved = bytes.try_reserve_exact(length);
        reserved.map_err(|_| ParquetError::General(format!("not enough memory for {length} bytes")))?;
        match self.reader(start).take(length as u64).read_to_end(&mut bytes)? {
            read if read == length => Ok(bytes.into()),
            _ => Err(ParquetError::EOF(format!("{length} bytes at byte {start} reach past the end of the file"))),
        }
    }
}

/// Reads a file from a byte on.
pub(super) struct PositionedReader {
    file: PositionedFile,
    at: u64,
}

impl Read for PositionedReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let count = std::os::unix::fs::FileExt::read_at(&*self.file.file, into, self.at)?;
        #[cfg(windows)]
        let count = std::os::windows::fs::FileExt::seek_read(&*self.file.file, into, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}
