//! Decompresses pages of Parquet files: [`PageUnpacker`].
//!
//! For gzip, Brotli and LZ4 frames, the crate parquet writes all that a page expands to, and compares its length with the
//! header afterwards. A page of a few megabytes can expand to gigabytes. Here the output is a buffer of the length in the
//! header, which was used for earlier pages: the system clears new memory page by page.

use std::io::Read;

use brotli_decompressor::Decompressor;
use lz4_flex::block;
use lz4_flex::frame::FrameDecoder;
use parquet::basic::Compression;

use crate::input::deflate::WholeInflater;
use crate::kernel::unpack_snappy;

/// Bytes that Brotli reads at a time.
const BROTLI_BUFFER_LEN: usize = 4 << 10;

/// Decompresses the pages of one codec.
pub(super) enum PageUnpacker {
    Snappy,
    Zstd(zstd::bulk::Decompressor<'static>),
    Gzip(WholeInflater),
    Brotli,
    /// LZ4 without a frame.
    Lz4Raw,
    /// LZ4 as Hadoop frames it, as an LZ4 frame, or without a frame: the codec of old files, which do not state which of these it
    /// is.
    Lz4,
}

impl PageUnpacker {
    /// Returns `None` for pages that are not compressed, and for codecs that are not supported.
    pub(super) fn of(compression: Compression) -> Option<PageUnpacker> {
        match compression {
            Compression::SNAPPY => Some(PageUnpacker::Snappy),
            Compression::ZSTD(_) => zstd::bulk::Decompressor::new().ok().map(PageUnpacker::Zstd),
            Compression::LZ4_RAW => Some(PageUnpacker::Lz4Raw),
            Compression::GZIP(_) => WholeInflater::new().map(PageUnpacker::Gzip),
            Compression::BROTLI(_) => Some(PageUnpacker::Brotli),
            Compression::LZ4 => Some(PageUnpacker::Lz4),
            _ => None,
        }
    }

    /// Decompresses `packed`, and returns whether it is sound and has exactly the length of `into`.
    pub(super) fn unpack(&mut self, packed: &[u8], into: &mut [u8]) -> bool {
        match self {
            PageUnpacker::Snappy => unpack_snappy(packed, into),
            PageUnpacker::Zstd(decoder) => {
                decoder.decompress_to_buffer(packed, into).is_ok_and(|len| len == into.len())
            }
            PageUnpacker::Lz4Raw => unpack_lz4_block(packed, into).is_some(),
            PageUnpacker::Gzip(inflater) => unpack_gzip(inflater, packed, into),
            PageUnpacker::Brotli => reads_exactly(Decompressor::new(packed, BROTLI_BUFFER_LEN), into),
            PageUnpacker::Lz4 => {
                unpack_hadoop_lz4(packed, into).is_some()
                    || reads_exactly(FrameDecoder::new(packed), into)
                    || unpack_lz4_block(packed, into).is_some()
            }
        }
    }
}

/// Decompresses gzip members that follow each other.
fn unpack_gzip(inflater: &mut WholeInflater, mut packed: &[u8], mut into: &mut [u8]) -> bool {
    while !packed.is_empty() {
        let Some(len) = inflater.inflate_member(packed, into) else { return false };
        (packed, into) = (&packed[len.packed..], &mut into[len.unpacked..]);
    }
    into.is_empty()
}

/// Whether `reader` returns exactly as many bytes as `into` has.
fn reads_exactly(mut reader: impl Read, into: &mut [u8]) -> bool {
    reader.read_exact(into).is_ok() && matches!(reader.read(&mut [0]), Ok(0))
}

/// Decompresses blocks of Hadoop's codec, which writes their decompressed and compressed length before them as big-endian
/// integers.
fn unpack_hadoop_lz4(mut packed: &[u8], mut into: &mut [u8]) -> Option<()> {
    while let Some((unpacked_len, rest)) = packed.split_first_chunk() {
        let (packed_len, rest) = rest.split_first_chunk()?;
        let (block, rest) = rest.split_at_checked(u32::from_be_bytes(*packed_len) as usize)?;
        let (out, rest_out) = into.split_at_mut_checked(u32::from_be_bytes(*unpacked_len) as usize)?;
        unpack_lz4_block(block, out)?;
        (packed, into) = (rest, rest_out);
    }
    (packed.is_empty() && into.is_empty()).then_some(())
}

fn unpack_lz4_block(packed: &[u8], into: &mut [u8]) -> Option<()> {
    (block::decompress_into(packed, into).ok()? == into.len()).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::test_data;
    use lz4_flex::frame::FrameEncoder;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        test_data::gzip(bytes, flate2::Compression::default())
    }

    fn hadoop(blocks: &[&[u8]]) -> Vec<u8> {
        let frame = |bytes: &&[u8]| {
            let block = block::compress(bytes);
            [&(bytes.len() as u32).to_be_bytes()[..], &(block.len() as u32).to_be_bytes(), &block].concat()
        };
        blocks.iter().flat_map(frame).collect()
    }

    #[test]
    fn pages_have_the_length_that_is_stated_or_are_refused() {
        let text = b"http://example.org/a http://example.org/b http://example.org/c".repeat(20);
        let (head, tail) = text.split_at(700);
        let mut frame = FrameEncoder::new(Vec::new());
        frame.write_all(&text).unwrap();
        let gzip_codec = || PageUnpacker::of(Compression::GZIP(Default::default())).unwrap();
        let lz4_codec = || PageUnpacker::of(Compression::LZ4).unwrap();
        let codec = |compression| PageUnpacker::of(compression).unwrap();
        let packed: [(PageUnpacker, Vec<u8>); 8] = [
            (codec(Compression::SNAPPY), snap::raw::Encoder::new().compress_vec(&text).unwrap()),
            (codec(Compression::ZSTD(Default::default())), zstd::bulk::compress(&text, 1).unwrap()),
            (codec(Compression::LZ4_RAW), block::compress(&text)),
            (gzip_codec(), gzip(&text)),
            (gzip_codec(), [gzip(head), gzip(tail)].concat()),
            (lz4_codec(), hadoop(&[head, tail])),
            (lz4_codec(), frame.finish().unwrap()),
            (lz4_codec(), block::compress(&text)),
        ];
        for (i, (mut codec, packed)) in packed.into_iter().enumerate() {
            let mut into = vec![0; text.len()];
            assert!(codec.unpack(&packed, &mut into), "{i}");
            assert_eq!(into, text, "{i}");
            assert!(!codec.unpack(&packed, &mut into[1..]), "{i}: longer than stated");
            into.push(0);
            assert!(!codec.unpack(&packed, &mut into), "{i}: shorter than stated");
            assert!(!codec.unpack(&packed[..packed.len() / 2], &mut into[1..]), "{i}: cut short");
        }
    }

    #[test]
    fn brotli_pages_have_the_length_that_is_stated_or_are_refused() {
        // RFC 7932 section 9: a window of 16 bits, an uncompressed block of three bytes, and the empty last block.
        let packed = [0b0010_0000, 0x00, 0x10, b'a', b'b', b'c', 0x03];
        let mut into = [0; 4];
        let mut codec = PageUnpacker::of(Compression::BROTLI(Default::default())).unwrap();
        let mut unpack = |packed: &[u8], len: usize| codec.unpack(packed, &mut into[..len]);
        assert!(unpack(&packed, 3));
        assert!(!unpack(&packed, 2) && !unpack(&packed, 4) && !unpack(&packed[..6], 3));
        assert_eq!(into[..3], *b"abc");
    }
}
