//! Raw bytes of a source, with a look ahead: [`Feed`]. In: any reader. Out: bytes, and how many were taken. It knows
//! neither packing nor records.

use super::error::Defect;
use std::io::{self, Read};

/// Bytes asked of the reader at a time.
const FEED_LEN: usize = 128 << 10;

/// A reader whose next bytes can be looked at before they are taken.
pub struct Feed {
    reader: Box<dyn Read + Send>,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    /// Bytes taken so far.
    taken: u64,
    is_ended: bool,
}

impl Feed {
    pub fn new(reader: Box<dyn Read + Send>) -> Feed {
        Feed { reader, bytes: vec![0; FEED_LEN].into(), start: 0, end: 0, taken: 0, is_ended: false }
    }

    /// Bytes taken so far: the offset of the next one.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The next bytes: at least `count` of them (which is small), or all there are.
    pub fn look(&mut self, count: usize) -> Result<&[u8], Defect> {
        while self.end - self.start < count && !self.is_ended {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            let count = read(&mut self.reader, &mut self.bytes[self.end..])?;
            self.is_ended = count == 0;
            self.end += count;
        }
        Ok(&self.bytes[self.start..self.end])
    }

    /// Takes `count` of the bytes looked at.
    pub fn take(&mut self, count: usize) {
        self.start += count;
        self.taken += count as u64;
    }

    /// Reads into `into`; 0 is the end.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        let ahead = &self.bytes[self.start..self.end];
        let count = if ahead.is_empty() && !self.is_ended {
            // Nothing is kept here, so the bytes need not pass through.
            let count = read(&mut self.reader, into)?;
            self.is_ended = count == 0 && !into.is_empty();
            self.taken += count as u64;
            return Ok(count);
        } else {
            ahead.len().min(into.len())
        };
        into[..count].copy_from_slice(&ahead[..count]);
        self.take(count);
        Ok(count)
    }
}

fn read(reader: &mut dyn Read, into: &mut [u8]) -> Result<usize, Defect> {
    loop {
        match reader.read(into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            // A reader that claims more than there was room for is wrong, and must not make us so.
            Ok(count) => return Ok(count.min(into.len())),
            Err(error) => return Err(Defect::Read(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, interrupted before each.
    struct Slow(&'static [u8], bool);

    impl Read for Slow {
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
    fn looking_takes_nothing() {
        let mut feed = Feed::new(Box::new(Slow(b"abcdef", false)));
        assert_eq!(feed.look(3).unwrap(), b"abc");
        feed.take(1);
        assert_eq!(feed.look(4).unwrap(), b"bcde");
        let mut into = [0; 8];
        assert_eq!(feed.read(&mut into[..2]).unwrap(), 2);
        assert_eq!(feed.read(&mut into[2..]).unwrap(), 2);
        assert_eq!(feed.read(&mut into[4..]).unwrap(), 1);
        assert_eq!((&into[..5], feed.taken()), (&b"bcdef"[..], 6));
        assert_eq!((feed.read(&mut into).unwrap(), feed.look(1).unwrap().len()), (0, 0));
    }
}
