//! Decompressors for LZ4 frames, bzip2 and xz.
//!
//! Each reads any number of frames or streams in a row, and returns all bytes that its library delivers before a defect,
//! and then the defect.

use super::detect::is_skippable_frame;
use super::error::Defect;
use super::peek::PeekReader;
use super::unpacker::Unpacker;
use super::zstd_frames::MAX_DICTIONARY_LEN;
use crate::process::repeat_interrupted;
use bzip2::{Decompress, Status};
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;
use parking_lot::Mutex;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::ops::Range;
use std::sync::Arc;

/// Name of bzip2 in messages.
const BZIP2: &str = "bzip2";

/// Maximum number of bytes that one call of the decompressor for bzip2 decompresses.
const BZIP2_STEP_LEN: usize = 4 << 10;

/// Decompresses the streams of a bzip2 file.
///
/// The decompressor drops what it decompressed in a call that finds damage. So a call either takes compressed bytes, up to the
/// end of a block at most, or decompresses the next [`BZIP2_STEP_LEN`] bytes of that block. Then the bytes before damage do not
/// depend on the lengths of reads, nor on how many compressed bytes arrive at a time.
pub(super) struct Bzip2Reader {
    input: PeekReader,
    decoder: Decompress,
    /// The bytes of the last step. Those in `rest` were not returned yet.
    step: Box<[u8]>,
    rest: Range<usize>,
    /// The decompressor may hold bytes of a block.
    may_hold: bool,
    /// Between streams, where the file may end.
    is_between_streams: bool,
    /// Damage that follows the bytes in `rest`.
    defect: Option<Defect>,
}

impl Bzip2Reader {
    pub(super) fn new(input: PeekReader) -> Bzip2Reader {
        Bzip2Reader {
            input,
            decoder: Decompress::new(false),
            step: vec![0; BZIP2_STEP_LEN].into(),
            rest: 0..0,
            may_hold: false,
            is_between_streams: true,
            defect: None,
        }
    }

    /// Takes compressed bytes. Returns `false` at the end of the file.
    fn take_packed(&mut self) -> Result<bool, Defect> {
        let packed = self.input.peek(1)?;
        let is_ended = packed.is_empty();
        if is_ended && self.is_between_streams {
            return Ok(false);
        }
        let before = self.decoder.total_in();
        let result = self.decoder.decompress(packed, &mut []);
        self.input.consume((self.decoder.total_in() - before) as usize);
        self.is_between_streams = false;
        match result {
            Err(error) => return Err(damaged_bzip2(&error)),
            Ok(Status::MemNeeded) => return Err(Defect::Read(ErrorKind::OutOfMemory.into())),
            Ok(Status::StreamEnd) => {
                self.decoder = Decompress::new(false);
                self.is_between_streams = true;
            }
            Ok(_) if is_ended => return Err(Defect::Truncated(BZIP2)),
            Ok(_) => self.may_hold = true,
        }
        Ok(true)
    }

    /// Decompresses the next bytes of the block that the decompressor holds.
    fn unpack_step(&mut self) {
        let before = self.decoder.total_out();
        let result = self.decoder.decompress(&[], &mut self.step);
        self.rest = 0..(self.decoder.total_out() - before) as usize;
        self.may_hold = self.rest.len() == self.step.len();
        self.defect = result.err().map(|error| damaged_bzip2(&error));
    }
}

fn damaged_bzip2(error: &bzip2::Error) -> Defect {
    Defect::Damaged(BZIP2, error.to_string())
}

impl Unpacker for Bzip2Reader {
    fn consumed(&self) -> u64 {
        self.input.consumed()
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        while self.rest.is_empty() && !into.is_empty() {
            if let Some(defect) = self.defect.take() {
                return Err(defect);
            }
            if self.may_hold {
                self.unpack_step();
            } else if !self.take_packed()? {
                break;
            }
        }
        let count = into.len().min(self.rest.len());
        into[..count].copy_from_slice(&self.step[self.rest.start..][..count]);
        self.rest.start += count;
        Ok(count)
    }
}

/// Adapts a decoder that implements [`Read`].
pub(super) struct DecoderAdapter {
    name: &'static str,
    decoder: Box<dyn Read + Send>,
    input: Arc<Mutex<AdapterInput>>,
    /// The decoder reports the end after every frame, and does not read skippable frames.
    stops_between_frames: bool,
    is_between_frames: bool,
    is_done: bool,
}

/// Always reads the same number of bytes from a decoder that drops what it decompressed in the read that finds damage. So their
/// number does not depend on the lengths of the caller's reads.
struct FixedReads<R>(BufReader<R>);

impl<R: Read> Read for FixedReads<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.0.fill_buf()?.read(into)?;
        self.0.consume(count);
        Ok(count)
    }
}

/// The compressed input, which the decoder owns and the adapter inspects.
struct AdapterInput {
    reader: PeekReader,
    /// Why reading failed. The error of the decoder has fewer details.
    failed: Option<Defect>,
    /// The decoder requested bytes after the end.
    has_run_out: bool,
}

/// What the decoder reads from.
struct SharedInput(Arc<Mutex<AdapterInput>>);

impl Read for SharedInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut input = self.0.lock();
        match input.reader.read(into) {
            Ok(count) => {
                input.has_run_out |= count == 0 && !into.is_empty();
                Ok(count)
            }
            Err(defect) => {
                input.failed = Some(defect);
                Err(ErrorKind::Other.into())
            }
        }
    }
}

impl DecoderAdapter {
    pub(super) fn lz4(input: PeekReader) -> DecoderAdapter {
        let adapter = DecoderAdapter::new("lz4", input, |input| Box::new(FrameDecoder::new(input)));
        DecoderAdapter { stops_between_frames: true, is_between_frames: true, ..adapter }
    }

    pub(super) fn xz(input: PeekReader) -> DecoderAdapter {
        // The decoder needs a little more than the dictionary.
        let limit_kib = (MAX_DICTIONARY_LEN >> 10) as u32 + 1024;
        let decoder = |input| XzReader::new_mem_limit(input, true, limit_kib);
        DecoderAdapter::new("xz", input, |input| {
            Box::new(FixedReads(BufReader::with_capacity(4 << 10, decoder(input))))
        })
    }

    fn new(
        name: &'static str,
        reader: PeekReader,
        decoder: impl FnOnce(SharedInput) -> Box<dyn Read + Send>,
    ) -> DecoderAdapter {
        let input = Arc::new(Mutex::new(AdapterInput { reader, failed: None, has_run_out: false }));
        let decoder = decoder(SharedInput(Arc::clone(&input)));
        DecoderAdapter { name, decoder, input, stops_between_frames: false, is_between_frames: false, is_done: false }
    }

    /// Whether another frame follows, after skippable ones, which are skipped. A decoder that ran out of bytes was inside a
    /// frame, but does not report that.
    fn has_more_frames(&self) -> Result<bool, Defect> {
        let mut input = self.input.lock();
        if input.has_run_out {
            return Err(Defect::Truncated(self.name));
        }
        while is_skippable_frame(input.reader.peek(4)?) {
            input.reader.skip_frame(self.name, |_| {})?;
        }
        Ok(!input.reader.peek(1)?.is_empty())
    }

    fn defect(&self, error: &io::Error) -> Defect {
        match (self.input.lock().failed.take(), error.kind()) {
            (Some(defect), _) => defect,
            (None, ErrorKind::UnexpectedEof) => Defect::Truncated(self.name),
            (None, ErrorKind::OutOfMemory) => Defect::Dictionary(self.name, MAX_DICTIONARY_LEN),
            (None, _) => Defect::Damaged(self.name, error.to_string()),
        }
    }
}

impl Unpacker for DecoderAdapter {
    fn consumed(&self) -> u64 {
        self.input.lock().reader.consumed()
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        while !self.is_done {
            if self.is_between_frames {
                self.is_done = !self.has_more_frames()?;
                self.is_between_frames = false;
                continue;
            }
            match repeat_interrupted(|| self.decoder.read(into)) {
                Ok(0) if self.stops_between_frames => self.is_between_frames = true,
                Ok(count) => return Ok(count),
                Err(error) => return Err(self.defect(&error)),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::test_data::{check_damage, lines, peek_reader, read_all};
    use std::io::Write;

    fn text() -> Vec<u8> {
        lines(4000)
    }

    /// Lines of equal bytes.
    fn runs() -> Vec<u8> {
        let line = |i: u8| [vec![b'a' + i % 26; 4 + usize::from(i) * 3], b"\n".to_vec()].concat();
        (0..60).flat_map(line).collect()
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

    /// Output of `xz -0 --check=crc32` for 40 lines of `http://example.org/`.
    const XZ: &[u8] = include_bytes!("../../data/samples/forty.xz");

    type Unpack = fn(&[u8], usize) -> (Vec<u8>, Option<Defect>);

    fn unpack_lz4(bytes: &[u8], step: usize) -> (Vec<u8>, Option<Defect>) {
        read_all(step, &mut DecoderAdapter::lz4(peek_reader(bytes)))
    }

    fn unpack_xz(bytes: &[u8], step: usize) -> (Vec<u8>, Option<Defect>) {
        read_all(step, &mut DecoderAdapter::xz(peek_reader(bytes)))
    }

    fn unpack_bzip2(bytes: &[u8], step: usize) -> (Vec<u8>, Option<Defect>) {
        read_all(step, &mut Bzip2Reader::new(peek_reader(bytes)))
    }

    #[test]
    fn several_streams_are_read() {
        let twice = text().repeat(2);
        let mut readers: [(Box<dyn Unpacker>, usize); 3] = [
            (Box::new(DecoderAdapter::lz4(peek_reader(&lz4(&text())))), lz4(&text()).len()),
            (Box::new(DecoderAdapter::xz(peek_reader(XZ))), XZ.len()),
            (Box::new(Bzip2Reader::new(peek_reader(&bzip2(&text())))), bzip2(&text()).len()),
        ];
        for (reader, len) in &mut readers {
            let unpacked = read_all(1000, &mut **reader);
            assert!(unpacked.1.is_none() && reader.consumed() == *len as u64, "{}", reader.consumed());
        }
        assert!(matches!(unpack_bzip2(&bzip2(b""), 1000), (bytes, None) if bytes.is_empty()));
        assert!(matches!(unpack_lz4(&lz4(&text()).repeat(2), 1000), (bytes, None) if bytes == twice));
        assert!(matches!(unpack_bzip2(&bzip2(&text()).repeat(2), 1000), (bytes, None) if bytes == twice));
        let forty = b"http://example.org/\n".repeat(80);
        assert!(matches!(unpack_xz(&XZ.repeat(2), 1000), (bytes, None) if bytes == forty));
    }

    #[test]
    fn skippable_frames_are_skipped() {
        let skippable = |magic: u8, content: &[u8]| {
            [&[magic, 0x2a, 0x4d, 0x18][..], &(content.len() as u32).to_le_bytes(), content].concat()
        };
        let (first, second) = (skippable(0x50, b"about this file"), skippable(0x5f, &[4; 5000]));
        let frame = lz4(&text());
        let packed = [&first[..], &second, &frame, &second, &frame, &first].concat();
        for step in [7, 1000] {
            let (bytes, defect) = unpack_lz4(&packed, step);
            assert!(bytes == text().repeat(2) && defect.is_none(), "{step} {defect:?}");
        }
        for cut in 1..first.len() {
            let (bytes, defect) = unpack_lz4(&packed[..packed.len() - cut], 1000);
            // Of a skippable frame, at least its magic number is necessary to recognize it.
            assert!(bytes == text().repeat(2) && defect.is_some(), "{cut} {defect:?}");
        }
        assert!(matches!(unpack_lz4(&first, 9), (bytes, None) if bytes.is_empty()));
    }

    #[test]
    fn every_truncation_returns_a_prefix_and_a_defect() {
        let forty = b"http://example.org/\n".repeat(40);
        let cases: [(Unpack, Vec<u8>, Vec<u8>); 3] = [
            (unpack_lz4, lz4(&text()), text()),
            (unpack_bzip2, bzip2(&text()), text()),
            (unpack_xz, XZ.to_vec(), forty),
        ];
        for (unpack, packed, text) in cases {
            for len in (8..packed.len()).step_by(1 + packed.len() / 50) {
                let (bytes, defect) = unpack(&packed[..len], 1000);
                assert!(text.starts_with(&bytes), "{len}");
                assert!(matches!(defect, Some(Defect::Truncated(_) | Defect::Damaged(..))), "{len} {defect:?}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_gives_the_same_bytes_and_defect_for_any_read() {
        type New = fn(PeekReader) -> Box<dyn Unpacker>;
        let cases: [(New, Vec<u8>); 4] = [
            (|input| Box::new(DecoderAdapter::lz4(input)), lz4(&text())),
            (|input| Box::new(Bzip2Reader::new(input)), bzip2(&text())),
            // Streams that arrive at once, and runs of bytes, in which damage can show when most of a block is decompressed.
            (|input| Box::new(Bzip2Reader::new(input)), bzip2(&runs()).repeat(5)),
            (|input| Box::new(DecoderAdapter::xz(input)), XZ.to_vec()),
        ];
        for (new, packed) in cases {
            check_damage(&packed, 150, new);
        }
    }

    #[test]
    fn damaged_bzip2_is_not_reported_as_cut_short() {
        for at in [20, 200, 2000, bzip2(&text()).len() - 3] {
            let mut packed = bzip2(&text());
            packed[at] ^= 4;
            assert!(matches!(unpack_bzip2(&packed, 1000).1, Some(Defect::Damaged(..))), "{at}");
        }
    }

    #[test]
    fn truncation_and_damage_are_told_apart() {
        let mut checked = lz4_flex::frame::FrameEncoder::with_frame_info(
            lz4_flex::frame::FrameInfo::new().content_checksum(true),
            Vec::new(),
        );
        checked.write_all(&text()).unwrap();
        let cases: [(Unpack, Vec<u8>); 2] = [(unpack_lz4, checked.finish().unwrap()), (unpack_xz, XZ.to_vec())];
        for (unpack, mut packed) in cases {
            let defect = unpack(&packed[..packed.len() - 3], 1000).1;
            assert!(matches!(defect, Some(Defect::Truncated(_))), "{defect:?}");
            *packed.last_mut().unwrap() ^= 1;
            let defect = unpack(&packed, 1000).1;
            assert!(matches!(defect, Some(Defect::Damaged(..))), "{defect:?}");
        }
    }

    #[test]
    fn dictionaries_that_are_too_large_are_refused() {
        // The header of the first block names the size of the dictionary in one byte, and ends with its CRC-32.
        let mut xz = XZ.to_vec();
        let header = 12..12 + (usize::from(xz[12]) + 1) * 4;
        let property = header.clone().find(|at| xz[*at..].starts_with(&[0x21, 1])).unwrap() + 2;
        for (size, is_refused) in [(30, false), (31, true), (40, true)] {
            xz[property] = size;
            let mut crc = flate2::Crc::new();
            crc.update(&xz[header.start..header.end - 4]);
            xz[header.end - 4..header.end].copy_from_slice(&crc.sum().to_le_bytes());
            let (bytes, defect) = unpack_xz(&xz, 1000);
            assert_eq!(matches!(defect, Some(Defect::Dictionary("xz", _))), is_refused, "{size} {defect:?}");
            assert_eq!(bytes.is_empty(), is_refused);
        }
    }

    /// Returns its bytes, and then an error.
    struct Failing<'a>(&'a [u8]);

    impl Read for Failing<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.0.read(into)? {
                0 => Err(ErrorKind::PermissionDenied.into()),
                count => Ok(count),
            }
        }
    }

    /// An error of the file is not reported as damage of its content.
    #[test]
    fn errors_of_the_source_are_returned() {
        let (lz4, bzip2) = (lz4(&text()), bzip2(&text()));
        let reader = |packed: &[u8]| {
            let packed: &'static [u8] = packed[..packed.len() / 2].to_vec().leak();
            PeekReader::new(Box::new(Failing(packed)))
        };
        let unpackers: [Box<dyn Unpacker>; 3] = [
            Box::new(DecoderAdapter::lz4(reader(&lz4))),
            Box::new(DecoderAdapter::xz(reader(XZ))),
            Box::new(Bzip2Reader::new(reader(&bzip2))),
        ];
        for mut unpacker in unpackers {
            let defect = read_all(1000, &mut *unpacker).1;
            assert!(
                matches!(&defect, Some(Defect::Read(error)) if error.kind() == ErrorKind::PermissionDenied),
                "{defect:?}"
            );
        }
    }
}
