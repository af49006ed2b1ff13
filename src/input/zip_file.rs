//! The bytes of a ZIP archive on disk or in a store, at any position: [`ZipBytes`].

use parking_lot::Mutex;
use std::io::{self, Read};

use parquet::file::reader::Length;
use rawzip::ReaderAt;

use super::table::{PositionedFile, TableFile};

/// Bytes of an object that are requested at a time.
const PIECE_LEN: u64 = 64 << 10;

/// An archive whose directory and headers are read.
pub(super) struct ZipBytes {
    file: PositionedFile,
    /// The bytes of an object that were requested last, and their position. Headers are close to each other.
    piece: Option<Mutex<(u64, Vec<u8>)>>,
}

impl ZipBytes {
    pub(super) fn open(file: &TableFile) -> io::Result<ZipBytes> {
        let piece = matches!(file, TableFile::Remote(_)).then(Mutex::default);
        Ok(ZipBytes { file: PositionedFile::open(file)?, piece })
    }

    /// Length of the archive.
    pub(super) fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ReaderAt for ZipBytes {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<usize> {
        let Some(piece) = &self.piece else { return self.file.reader(at).read(into) };
        let mut piece = piece.lock();
        let has_byte = at.checked_sub(piece.0).is_some_and(|offset| offset < piece.1.len() as u64);
        if !has_byte {
            piece.1.clear();
            piece.0 = at;
            let len = PIECE_LEN.max(into.len() as u64).min(self.file.len().saturating_sub(at));
            self.file.reader(at).take(len).read_to_end(&mut piece.1)?;
        }
        let rest = &piece.1[(at - piece.0) as usize..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}
