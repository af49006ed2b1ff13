//! A reader whose bytes arrive in pieces. The fuzz targets share it.

use std::io::{self, Cursor, Read};

/// Returns at most `len` bytes per read, as a slow pipe does.
pub struct Pieces {
    bytes: Cursor<Vec<u8>>,
    len: usize,
}

impl Pieces {
    pub fn new(bytes: &[u8], len: usize) -> Pieces {
        Pieces { bytes: Cursor::new(bytes.to_vec()), len }
    }
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(self.len);
        self.bytes.read(&mut into[..len])
    }
}
