//! Data for the tests of decompressors, and how they are read.

use super::error::Defect;
use super::peek::PeekReader;
use super::unpacker::Unpacker;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Cursor, Read, Write};

/// Lines that compress to about half.
pub(super) fn lines(count: u32) -> Vec<u8> {
    let line = |i: u32| format!("http://example.org/{}\n", i.wrapping_mul(0x9e37_79b9)).into_bytes();
    (0..count).flat_map(line).collect()
}

/// One gzip member.
pub(super) fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn peek_reader(bytes: &[u8]) -> PeekReader {
    PeekReader::new(Box::new(Cursor::new(bytes.to_vec())))
}

/// A reader of bytes that arrive in pieces of `len` bytes.
fn peek_reader_of_pieces(bytes: &[u8], len: usize) -> PeekReader {
    PeekReader::new(Box::new(Pieces { bytes: Cursor::new(bytes.to_vec()), len }))
}

struct Pieces {
    bytes: Cursor<Vec<u8>>,
    len: usize,
}

impl Read for Pieces {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(self.len);
        self.bytes.read(&mut into[..len])
    }
}

/// Asserts that the bytes before damage, and the defect, do not depend on how many bytes are read or arrive at a time. `count`
/// bytes of `packed` are damaged, one after the other.
pub(super) fn check_damage(packed: &[u8], count: usize, new: impl Fn(PeekReader) -> Box<dyn Unpacker>) {
    for at in (4..packed.len()).step_by(1 + packed.len() / count) {
        let mut packed = packed.to_vec();
        packed[at] ^= 4;
        let outcome = |step, arriving| {
            let (bytes, defect) = read_all(step, &mut *new(peek_reader_of_pieces(&packed, arriving)));
            (bytes.len(), defect.map(|defect| defect.to_string()))
        };
        let whole = outcome(1 << 20, 1 << 20);
        for (step, arriving) in [(1000, 1 << 20), (7, 1 << 20), (1 << 20, 90), (77, 1000)] {
            assert_eq!(outcome(step, arriving), whole, "byte {at}, {step} read, {arriving} arrive");
        }
    }
}

/// Reads `step` bytes at a time to the end or to a defect. Returns all bytes, and the defect.
pub(super) fn read_all(step: usize, unpacker: &mut dyn Unpacker) -> (Vec<u8>, Option<Defect>) {
    let (mut all, mut into) = (Vec::new(), vec![0; step]);
    loop {
        match unpacker.read(&mut into) {
            Ok(0) => return (all, None),
            Ok(count) => all.extend_from_slice(&into[..count]),
            Err(defect) => return (all, Some(defect)),
        }
    }
}
