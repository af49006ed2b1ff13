//! Zstandard files (RFC 8878) of any number of frames, and `.warc.zst` files with a dictionary: [`ZstdReader`].
//!
//! The file of a web archive begins with a skippable frame that holds the dictionary of the other frames, which may itself be
//! compressed ("Zstandard compression of WARC files", iipc.github.io/warc-specifications). Such files may follow each
//! other. Every record has a frame of its own; the ends of frames are reported like those of gzip members.

use super::error::Defect;
use super::peek::PeekReader;
use super::unpacker::{MemberEnd, Unpacker};
use std::io::{self, Read};
use std::vec::Drain;
use zstd::stream::raw::{DParameter, Decoder, Operation};

/// Largest window, in bytes: more than the program uses without a special option. A decoder needs this memory, and a file of
/// a few bytes can ask for 4 GiB.
pub(super) const MAX_DICTIONARY_LOG: u32 = 27;
pub(super) const MAX_DICTIONARY_LEN: u64 = 1 << MAX_DICTIONARY_LOG;

/// Largest dictionary of a web archive, in bytes: the limit of the program.
const MAX_ARCHIVE_DICTIONARY_LEN: u64 = 32 << 20;

/// Magic numbers of a frame that may hold a dictionary, of a dictionary, and of a frame, little-endian.
const DICTIONARY_FRAME: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];
const DICTIONARY: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];
pub(super) const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Length of the header of a block.
const BLOCK_HEADER_LEN: usize = 3;

/// The decoder takes the first bytes of a frame in steps of this length: less than a frame has.
const FRAME_START_LEN: usize = 5;

/// Decompresses the frames of a zstd file.
///
/// The decoder forgets what it decompressed in a call that finds damage. So each call decompresses at most one block, and only
/// after all bytes of the block before were returned. Then the bytes before damage do not depend on the lengths of reads.
pub(super) struct ZstdReader {
    input: PeekReader,
    decoder: Decoder<'static>,
    /// The decoder takes at most this many bytes in the next call.
    step_len: usize,
    /// The decoder may hold bytes for which there was no space.
    may_hold: bool,
    /// Between frames, where the file may end.
    is_between_frames: bool,
    /// Bytes decompressed so far.
    unpacked: u64,
    /// Ends of frames that were not taken yet.
    ends: Vec<MemberEnd>,
}

impl ZstdReader {
    pub(super) fn new(input: PeekReader) -> Result<ZstdReader, Defect> {
        Ok(ZstdReader {
            input,
            decoder: decoder(&[])?,
            step_len: FRAME_START_LEN,
            may_hold: false,
            is_between_frames: true,
            unpacked: 0,
            ends: Vec::new(),
        })
    }

    fn push_end(&mut self) {
        self.ends.push(MemberEnd { unpacked: self.unpacked, packed: self.input.consumed() });
    }

    /// Reads a frame that may hold a dictionary for the frames after it. Frames with other contents are skipped.
    fn read_dictionary(&mut self) -> Result<(), Defect> {
        let mut content = self.read_skippable_frame()?;
        if content.starts_with(&FRAME) {
            content = unpack_dictionary(&content)?;
        }
        if content.starts_with(&DICTIONARY) {
            self.decoder = decoder(&content)?;
        }
        self.push_end();
        Ok(())
    }

    /// Reads a skippable frame (RFC 8878 section 3.1.2). Returns its content, or nothing if it is longer than any dictionary.
    fn read_skippable_frame(&mut self) -> Result<Vec<u8>, Defect> {
        let mut content = Vec::new();
        let len = self.input.skip_frame("zstd", |bytes| {
            if content.len() as u64 <= MAX_ARCHIVE_DICTIONARY_LEN {
                content.extend_from_slice(bytes);
            }
        })?;
        if len > MAX_ARCHIVE_DICTIONARY_LEN {
            content.clear();
        }
        Ok(content)
    }
}

impl Unpacker for ZstdReader {
    fn consumed(&self) -> u64 {
        self.input.consumed()
    }

    fn take_ends(&mut self) -> Option<Drain<'_, MemberEnd>> {
        Some(self.ends.drain(..))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<usize, Defect> {
        while !into.is_empty() {
            if self.is_between_frames && self.input.peek(8)?.starts_with(&DICTIONARY_FRAME) {
                self.read_dictionary()?;
                continue;
            }
            let packed = self.input.peek(1)?;
            let is_ended = packed.is_empty();
            if is_ended && self.is_between_frames {
                break;
            }
            let step_len = if self.may_hold { 0 } else { packed.len().min(self.step_len) };
            let status = self.decoder.run_on_buffers(&packed[..step_len], into);
            let status = status.map_err(|error| defect(&error))?;
            self.input.consume(status.bytes_read);
            self.unpacked += status.bytes_written as u64;
            self.may_hold = status.bytes_written == into.len();
            if status.bytes_read > 0 || status.bytes_written > 0 {
                self.is_between_frames = status.remaining == 0;
                self.step_len = step_len_of(status.remaining);
                if self.is_between_frames {
                    self.push_end();
                }
            }
            if status.bytes_written > 0 {
                return Ok(status.bytes_written);
            }
            if is_ended && !self.is_between_frames {
                return Err(Defect::Truncated("zstd"));
            }
        }
        Ok(0)
    }
}

/// Returns the bytes up to the end of what the decoder reads, if it asks for `requested` bytes: the header of the next block
/// is a step of its own.
fn step_len_of(requested: usize) -> usize {
    match requested {
        0 => FRAME_START_LEN,
        1..=BLOCK_HEADER_LEN => requested,
        _ => requested - BLOCK_HEADER_LEN,
    }
}

fn decoder(dictionary: &[u8]) -> Result<Decoder<'static>, Defect> {
    let mut decoder = Decoder::with_dictionary(dictionary).map_err(|error| defect(&error))?;
    decoder.set_parameter(DParameter::WindowLogMax(MAX_DICTIONARY_LOG)).map_err(|error| defect(&error))?;
    Ok(decoder)
}

fn unpack_dictionary(packed: &[u8]) -> Result<Vec<u8>, Defect> {
    let mut frame = zstd::stream::read::Decoder::with_buffer(packed).map_err(|error| defect(&error))?.single_frame();
    frame.window_log_max(MAX_DICTIONARY_LOG).map_err(|error| defect(&error))?;
    let mut dictionary = Vec::new();
    let limit = MAX_ARCHIVE_DICTIONARY_LEN;
    let read = frame.take(limit + 1).read_to_end(&mut dictionary).map_err(|error| defect(&error))?;
    if read as u64 > limit { Err(Defect::Dictionary("zstd", limit)) } else { Ok(dictionary) }
}

/// The library reports every error by its text only.
fn defect(error: &io::Error) -> Defect {
    match error.to_string() {
        text if text.contains("too much memory") => Defect::Dictionary("zstd", MAX_DICTIONARY_LEN),
        text => Defect::Damaged("zstd", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::test_data::{check_damage, lines, peek_reader, read_all};
    use std::io::Write;

    fn unpack_zstd(bytes: Vec<u8>) -> (Vec<u8>, Option<Defect>) {
        read_all(1000, &mut ZstdReader::new(peek_reader(&bytes)).unwrap())
    }

    #[test]
    fn several_zstd_frames_are_read_and_truncation_and_garbage_are_defects() {
        let text = &lines(120)[..];
        let frame = zstd::encode_all(text, 1).unwrap();
        let skippable = b"\x50\x2a\x4d\x18\x03\0\0\0abc".to_vec();
        let packed = [skippable.clone(), frame.clone(), frame.clone(), skippable].concat();
        let (bytes, defect) = unpack_zstd(packed);
        assert!(defect.is_none() && bytes == text.repeat(2));
        for len in 1..frame.len() {
            let (bytes, defect) = unpack_zstd([&frame[..], &frame[..len]].concat());
            assert!(bytes.starts_with(text) && defect.is_some(), "{len}");
        }
        let (bytes, defect) = unpack_zstd([&frame[..], b"garbage!"].concat());
        assert!(bytes == text && matches!(defect, Some(Defect::Damaged(..))));
    }

    #[test]
    fn a_flipped_bit_gives_the_same_bytes_and_defect_for_any_read() {
        let pack = |text: &[u8]| {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
            encoder.include_checksum(true).unwrap();
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let long: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8 | 1).collect();
        for packed in [pack(&lines(30)).repeat(2), pack(&[&lines(9000)[..], &long].concat())] {
            check_damage(&packed, 90, |input| Box::new(ZstdReader::new(input).unwrap()));
        }
    }

    const TEXT: &[u8] = b"WARC/1.0\r\nWARC-Type: response\r\n";

    /// A dictionary, and a frame that needs it.
    fn archive() -> (Vec<u8>, Vec<u8>) {
        let sample = include_bytes!("../../data/samples/crawl.warc.zst");
        let len = u32::from_le_bytes(*sample[4..].first_chunk().unwrap()) as usize;
        let dictionary = zstd::decode_all(&sample[8..8 + len]).unwrap();
        let mut encoder = zstd::stream::write::Encoder::with_dictionary(Vec::new(), 3, &dictionary).unwrap();
        encoder.write_all(TEXT).unwrap();
        (dictionary, encoder.finish().unwrap())
    }

    fn dictionary_frame(content: &[u8]) -> Vec<u8> {
        [&DICTIONARY_FRAME[..], &(content.len() as u32).to_le_bytes(), content].concat()
    }

    #[test]
    fn frames_with_a_dictionary_are_read() {
        let (dictionary, frame) = archive();
        let want = TEXT.repeat(2);
        assert!(matches!(unpack_zstd(frame.repeat(2)).1, Some(Defect::Damaged(..))));
        let packed = zstd::encode_all(&dictionary[..], 1).unwrap();
        for content in [&dictionary, &packed] {
            let file = [dictionary_frame(content), frame.repeat(2)].concat();
            assert!(matches!(unpack_zstd(file.clone()), (bytes, None) if bytes == want));
            let plain = zstd::encode_all(&b"x"[..], 1).unwrap();
            let two = [&file[..], &plain, &dictionary_frame(b"no dictionary"), &file].concat();
            assert!(matches!(unpack_zstd(two), (bytes, None) if bytes == [&want[..], b"x", &want].concat()));
            // Other contents change nothing.
            let again = [&file[..], &dictionary_frame(b"no dictionary"), &frame].concat();
            assert!(matches!(unpack_zstd(again), (bytes, None) if bytes == TEXT.repeat(3)));
            for len in 1..file.len() - 1 {
                let (bytes, defect) = unpack_zstd(file[..len].to_vec());
                let is_whole = len == content.len() + 8 || len == file.len() - frame.len();
                assert!(want.starts_with(&bytes) && defect.is_none() == is_whole, "{len} {defect:?}");
            }
        }
    }

    #[test]
    fn ends_of_frames_are_reported() {
        let (dictionary, frame) = archive();
        let head = dictionary_frame(&dictionary);
        let file = [&head[..], &frame, &frame].concat();
        let mut reader = ZstdReader::new(peek_reader(&file)).unwrap();
        let _ = read_all(5, &mut reader);
        let ends: Vec<_> = reader.take_ends().unwrap().map(|end| (end.unpacked, end.packed as usize)).collect();
        let (head, frame) = (head.len(), frame.len());
        let len = TEXT.len() as u64;
        assert_eq!(ends, [(0, head), (len, head + frame), (2 * len, head + 2 * frame)]);
    }

    /// A dictionary of a few bytes that expands without end, or that states another length, takes no memory.
    #[test]
    fn long_dictionaries_are_refused() {
        let bomb = zstd::encode_all(std::io::repeat(0).take(MAX_ARCHIVE_DICTIONARY_LEN + 1), 1).unwrap();
        assert!(matches!(unpack_zstd(dictionary_frame(&bomb)).1, Some(Defect::Dictionary("zstd", _))));
        let mut long = dictionary_frame(b"");
        long[4..8].fill(0xff);
        assert!(matches!(unpack_zstd(long).1, Some(Defect::Truncated("zstd"))));
    }

    #[test]
    fn a_window_that_is_too_long_is_refused() {
        // Magic number, no checksum and no length, a window of 2^27 or 2^28 bytes, and one last block of one byte.
        let zstd = |window_log: u8| {
            let head = [0x28, 0xb5, 0x2f, 0xfd, 0, (window_log - 10) << 3];
            [&head[..], &[1 | 1 << 3, 0, 0, b'x']].concat()
        };
        let unpack = |window_log| unpack_zstd(zstd(window_log));
        assert!(matches!(unpack(27), (bytes, None) if bytes == b"x"));
        assert!(matches!(unpack(28).1, Some(Defect::Dictionary("zstd", _))));
    }
}
