//! A reader whose next bytes can be inspected before they are consumed: [`PeekReader`]. All decompressors read from it.

use super::error::Defect;
use super::unpacker::Unpacker;
use crate::process::repeat_interrupted;
use std::io::Read;

/// Bytes requested from the underlying reader at a time, unless more are inspected.
const BUFFER_LEN: usize = 512 << 10;

/// A buffered reader with lookahead that counts the bytes it has handed out.
pub(super) struct PeekReader {
    reader: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    consumed: u64,
    is_ended: bool,
    /// An error that follows the bytes in the buffer.
    failed: Option<Defect>,
}

impl PeekReader {
    pub(super) fn new(reader: Box<dyn Read + Send>) -> PeekReader {
        PeekReader::at(0, reader)
    }

    /// A reader of a source from byte `consumed` on.
    pub(super) fn at(consumed: u64, reader: Box<dyn Read + Send>) -> PeekReader {
        PeekReader { reader, bytes: vec![0; BUFFER_LEN], start: 0, end: 0, consumed, is_ended: false, failed: None }
    }

    /// Returns the next bytes without consuming them: at least `count` bytes, or fewer at the end of the source. Memory grows
    /// with what is read.
    pub(super) fn peek(&mut self, count: usize) -> Result<&[u8], Defect> {
        while self.end - self.start < count && !self.is_ended {
            if let Some(defect) = self.failed.take() {
                return Err(defect);
            }
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.end == self.bytes.len() {
                self.bytes.resize((2 * self.end).min(count.max(self.end + BUFFER_LEN)), 0);
            }
            let read_len = read(&mut self.reader, &mut self.bytes[self.end..])?;
            self.is_ended = read_len == 0;
            self.end += read_len;
        }
        Ok(&self.bytes[self.start..self.end])
    }

    /// Returns the next `count` bytes without consuming them, or fewer at the end of the source and before an error, which is
    /// returned when these bytes are consumed.
    pub(super) fn peek_up_to(&mut self, count: usize) -> &[u8] {
        if self.failed.is_none() {
            self.failed = self.peek(count).err();
        }
        &self.bytes[self.start..self.end.min(self.start + count)]
    }

    /// Returns the first `count` bytes of the source, as [`PeekReader::peek_up_to`] does.
    ///
    /// # Errors
    /// The source fails before its first byte.
    pub(super) fn head(&mut self, count: usize) -> Result<&[u8], Defect> {
        if self.peek_up_to(count).is_empty() {
            // Nothing comes before an error, if there is one.
            self.peek(1)?;
        }
        Ok(self.peek_up_to(count))
    }

    /// Consumes `count` bytes that [`PeekReader::peek`] returned.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        self.consumed += count as u64;
    }

    /// Consumes the bytes that are buffered.
    pub(super) fn consume_buffer(&mut self) {
        self.consume(self.end - self.start);
    }

    /// Consumes a skippable frame of Zstandard or LZ4 (RFC 8878 section 3.1.2), whose magic number comes next. `take` gets the
    /// bytes of its content, of which the length is returned.
    ///
    /// # Errors
    /// A read fails, or the source ends within the frame, which is of the compression called `name`.
    pub(super) fn skip_frame(&mut self, name: &'static str, mut take: impl FnMut(&[u8])) -> Result<u64, Defect> {
        let Some(&[_, _, _, _, a, b, c, d]) = self.peek(8)?.first_chunk::<8>() else {
            // The defect is at the end of the source.
            self.consume_buffer();
            return Err(Defect::Truncated(name));
        };
        let len = u64::from(u32::from_le_bytes([a, b, c, d]));
        self.consume(8);
        let mut rest = len;
        while rest > 0 {
            let bytes = self.peek(1)?;
            let count = bytes.len().min(usize::try_from(rest).unwrap_or(usize::MAX));
            if count == 0 {
                return Err(Defect::Truncated(name));
            }
            take(&bytes[..count]);
            self.consume(count);
            rest -= count as u64;
        }
        Ok(len)
    }
}

/// A source that is not compressed.
impl Unpacker for PeekReader {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        let buffered = &self.bytes[self.start..self.end];
        if buffered.is_empty() && !self.is_ended {
            if let Some(defect) = self.failed.take() {
                return Err(defect);
            }
            // Nothing is buffered: read directly into the target, without a copy.
            let count = read(&mut self.reader, into)?;
            self.is_ended = count == 0 && !into.is_empty();
            self.consumed += count as u64;
            return Ok(count);
        }
        let count = buffered.len().min(into.len());
        into[..count].copy_from_slice(&buffered[..count]);
        self.consume(count);
        Ok(count)
    }

    fn consumed(&self) -> u64 {
        self.consumed
    }
}

fn read(reader: &mut dyn Read, into: &mut [u8]) -> Result<usize, Defect> {
    let count = repeat_interrupted(|| reader.read(into)).map_err(Defect::of_read)?;
    // A faulty reader may report more bytes than fit; the count must stay within the slice.
    Ok(count.min(into.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Returns one byte at a time, and an interruption before each.
    struct SlowReader(&'static [u8], bool);

    impl Read for SlowReader {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let count = self.0.len().min(into.len()).min(1);
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn peeking_does_not_consume() {
        let mut reader = PeekReader::new(Box::new(SlowReader(b"abcdef", false)));
        assert_eq!(reader.peek(3).unwrap(), b"abc");
        reader.consume(1);
        assert_eq!(reader.peek(4).unwrap(), b"bcde");
        let mut into = [0; 8];
        assert_eq!(reader.read(&mut into[..2]).unwrap(), 2);
        assert_eq!(reader.read(&mut into[2..]).unwrap(), 2);
        assert_eq!(reader.read(&mut into[4..]).unwrap(), 1);
        assert_eq!((&into[..5], reader.consumed()), (&b"bcdef"[..], 6));
        assert_eq!((reader.read(&mut into).unwrap(), reader.peek(1).unwrap().len()), (0, 0));
    }

    /// Returns an error after its bytes.
    struct FailingReader(bool);

    impl Read for FailingReader {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0 = !self.0;
            if !self.0 {
                return Err(io::ErrorKind::Other.into());
            }
            into[..4].copy_from_slice(b"abcd");
            Ok(4)
        }
    }

    #[test]
    fn an_error_follows_the_bytes_before_it() {
        for ends_with_read in [false, true] {
            let mut reader = PeekReader::new(Box::new(FailingReader(false)));
            assert_eq!(reader.peek_up_to(3), b"abc");
            assert_eq!(reader.peek_up_to(9), b"abcd");
            assert_eq!(reader.peek(4).unwrap(), b"abcd");
            reader.consume(4);
            let failed = if ends_with_read { reader.read(&mut [0; 9]).err() } else { reader.peek(1).err() };
            assert!(matches!(failed, Some(Defect::Read(_))));
        }
    }
}
