//! Packings that other crates unpack: LZ4 frames, bzip2, xz. In: packed bytes. Out: unpacked ones; whatever their reader
//! gives before a defect is given out before it is reported.

use super::error::Defect;
use super::read::Feed;
use bzip2::read::MultiBzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;
use std::io::{self, ErrorKind, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A reader of unpacked bytes.
pub struct Unpack {
    name: &'static str,
    reader: Box<dyn Read + Send>,
    shared: Arc<Mutex<Shared>>,
    /// Frames follow each other, and the reader stops after each.
    stops_between: bool,
    is_done: bool,
}

/// The feed, which the reader has, too.
struct Shared {
    feed: Feed,
    /// Why the feed failed; the reader would tell less.
    failed: Option<Defect>,
    /// The reader wanted more than there was.
    has_run_out: bool,
}

struct Tap(Arc<Mutex<Shared>>);

impl Read for Tap {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut shared = lock(&self.0);
        match shared.feed.read(into) {
            Ok(count) => {
                shared.has_run_out |= count == 0 && !into.is_empty();
                Ok(count)
            }
            Err(defect) => {
                shared.failed = Some(defect);
                Err(ErrorKind::Other.into())
            }
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Unpack {
    /// Of LZ4 frames.
    pub fn lz4(feed: Feed) -> Unpack {
        Unpack { stops_between: true, ..Unpack::new("lz4", feed, |tap| Box::new(FrameDecoder::new(tap))) }
    }

    /// Of bzip2 streams.
    pub fn bzip2(feed: Feed) -> Unpack {
        Unpack::new("bzip2", feed, |tap| Box::new(MultiBzDecoder::new(tap)))
    }

    /// Of xz streams.
    pub fn xz(feed: Feed) -> Unpack {
        Unpack::new("xz", feed, |tap| Box::new(XzReader::new(tap, true)))
    }

    fn new(name: &'static str, feed: Feed, reader: impl FnOnce(Tap) -> Box<dyn Read + Send>) -> Unpack {
        let shared = Arc::new(Mutex::new(Shared { feed, failed: None, has_run_out: false }));
        Unpack { name, reader: reader(Tap(Arc::clone(&shared))), shared, stops_between: false, is_done: false }
    }

    /// Packed bytes taken so far.
    pub fn taken(&self) -> u64 {
        lock(&self.shared).feed.taken()
    }

    /// Unpacks into `into`; 0 is the end.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        while !self.is_done {
            match self.reader.read(into) {
                Ok(0) if self.stops_between => self.is_done = !self.has_more()?,
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(self.defect(&error)),
            }
        }
        Ok(0)
    }

    /// After a frame: another one follows. A reader that ran out of bytes was within one, and does not say so.
    fn has_more(&mut self) -> Result<bool, Defect> {
        let mut shared = lock(&self.shared);
        if shared.has_run_out {
            return Err(Defect::Truncated(self.name));
        }
        Ok(!shared.feed.look(1)?.is_empty())
    }

    fn defect(&mut self, error: &io::Error) -> Defect {
        let mut shared = lock(&self.shared);
        match shared.failed.take() {
            Some(defect) => defect,
            None if shared.feed.look(1).is_ok_and(<[u8]>::is_empty) => Defect::Truncated(self.name),
            None => Defect::Damaged(self.name, error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Cursor, Write};

    fn text() -> Vec<u8> {
        (0..4000u32)
            .flat_map(|i| format!("http://example.org/{}\n", i.wrapping_mul(0x9e37_79b9)).into_bytes())
            .collect()
    }

    fn lz4(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// What `xz -0 --check=crc32` made of 40 times `http://example.org/` and LF.
    const XZ: &[u8] = include_bytes!("../../data/samples/forty.xz");

    fn drain(unpack: fn(Feed) -> Unpack, bytes: &[u8]) -> (Vec<u8>, Option<Defect>) {
        let mut unpack = unpack(Feed::new(Box::new(Cursor::new(bytes.to_vec()))));
        let mut all = Vec::new();
        let mut into = [0; 1000];
        loop {
            match unpack.read(&mut into) {
                Ok(0) => return (all, None),
                Ok(count) => all.extend_from_slice(&into[..count]),
                Err(defect) => return (all, Some(defect)),
            }
        }
    }

    #[test]
    fn streams_follow_each_other() {
        let twice = text().repeat(2);
        assert!(matches!(drain(Unpack::lz4, &lz4(&text()).repeat(2)), (got, None) if got == twice));
        assert!(matches!(drain(Unpack::bzip2, &bzip2(&text()).repeat(2)), (got, None) if got == twice));
        let forty = b"http://example.org/\n".repeat(80);
        assert!(matches!(drain(Unpack::xz, &XZ.repeat(2)), (got, None) if got == forty));
    }

    #[test]
    fn truncations_give_a_prefix_and_a_defect() {
        let forty = b"http://example.org/\n".repeat(40);
        type Case = (fn(Feed) -> Unpack, Vec<u8>, Vec<u8>);
        let cases: [Case; 3] = [
            (Unpack::lz4, lz4(&text()), text()),
            (Unpack::bzip2, bzip2(&text()), text()),
            (Unpack::xz, XZ.to_vec(), forty),
        ];
        for (unpack, packed, text) in cases {
            for len in (8..packed.len()).step_by(1 + packed.len() / 50) {
                let (got, defect) = drain(unpack, &packed[..len]);
                assert!(text.starts_with(&got), "{len}");
                assert!(matches!(defect, Some(Defect::Truncated(_) | Defect::Damaged(..))), "{len} {defect:?}");
            }
        }
    }

    #[test]
    fn flipped_bits_end_in_a_defect() {
        for at in [20, 200, 2000] {
            let mut packed = bzip2(&text());
            packed[at] ^= 4;
            assert!(drain(Unpack::bzip2, &packed).1.is_some(), "{at}");
        }
    }
}
