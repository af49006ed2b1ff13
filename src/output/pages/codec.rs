//! The bodies of pages of texts, compressed with reusable contexts and buffers. The general encoder compresses snappy.

use parking_lot::Mutex;

use parquet::basic::Compression as Codec;
use parquet::errors::ParquetError;

use super::chunk::PageBody;
use super::lz4_block::{self, write_block};
use super::matches::MatchFinder;
use super::zstd_context::{self, ZstdContext};
use crate::output::options::Compression;

/// The codecs of one output: one per thread that compresses at the same time. Idle codecs are reused.
pub(in crate::output) struct Codecs {
    compression: Compression,
    idle: Mutex<Vec<PageCodec>>,
}

impl Codecs {
    /// Returns the codecs of a compression, unless the general encoder handles it.
    pub(in crate::output) fn new(compression: Compression) -> Option<Codecs> {
        compression.has_page_codec().then(|| Codecs { compression, idle: Mutex::default() })
    }

    /// Returns the name in the metadata of a column.
    pub(super) fn name(&self) -> Codec {
        self.compression.codec()
    }

    /// Returns about how many bytes pages of `len` bytes of text have.
    pub(super) fn expected_len(&self, len: usize) -> usize {
        if self.compression == Compression::None { len + len / 16 } else { len / 2 }
    }

    /// Calls `work` with an idle or new codec.
    pub(super) fn with<R>(
        &self,
        work: impl FnOnce(&mut PageCodec) -> Result<R, ParquetError>,
    ) -> Result<R, ParquetError> {
        let codec = self.idle.lock().pop();
        let mut codec = codec.map_or_else(|| PageCodec::new(self.compression), Ok)?;
        let made = work(&mut codec)?;
        self.idle.lock().push(codec);
        Ok(made)
    }

    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        self.idle.lock().len()
    }
}

/// Makes the bodies of pages of texts, one after the other.
pub(super) struct PageCodec {
    /// None if pages are not compressed.
    compressor: Option<Compressor>,
    /// What precedes the texts of a page, filled by the caller: levels and lengths.
    pub(super) page: Vec<u8>,
    compressed: Vec<u8>,
    /// Lengths of the texts of a page.
    pub(super) lengths: Vec<i32>,
}

enum Compressor {
    Lz4(MatchFinder),
    /// At level 1, [`super::matches`] finds the matches.
    Zstd(ZstdContext, Option<MatchFinder>),
}

impl Compressor {
    fn zstd(level: u8) -> Result<Compressor, ParquetError> {
        let matches = (level == 1).then(|| MatchFinder::new(zstd_context::LIMITS));
        Ok(Compressor::Zstd(ZstdContext::new(level)?, matches))
    }

    /// Replaces `compressed` by the page that consists of `head` and `texts`, with the matches of [`super::matches`]. Returns
    /// false if that search does not suit the page.
    fn compress_matches(&mut self, head: &[u8], texts: &[u8], compressed: &mut Vec<u8>) -> bool {
        let len = head.len() + texts.len();
        match self {
            Compressor::Lz4(matches) => {
                matches.find(head, texts).map(|found| write_block(found, len, compressed)).is_some()
            }
            Compressor::Zstd(context, matches) => {
                let found = matches.as_mut().and_then(|matches| matches.find(head, texts));
                found.is_some_and(|found| context.compress_sequences(found, len, compressed).is_ok())
            }
        }
    }

    /// Replaces `compressed` by the page as the codec alone compresses it.
    fn compress(&mut self, page: &[u8], compressed: &mut Vec<u8>) -> Result<(), ParquetError> {
        match self {
            Compressor::Lz4(_) => compress_lz4(page, compressed),
            Compressor::Zstd(context, _) => context.compress(page, compressed),
        }
    }
}

impl PageCodec {
    fn new(compression: Compression) -> Result<PageCodec, ParquetError> {
        let compressor = match compression {
            Compression::None => None,
            Compression::Lz4 => Some(Compressor::Lz4(MatchFinder::new(lz4_block::LIMITS))),
            Compression::Zstd(level) => Some(Compressor::zstd(level)?),
            Compression::Snappy => return Err(ParquetError::NYI("the general encoder compresses snappy".into())),
        };
        Ok(PageCodec { compressor, page: Vec::new(), compressed: Vec::new(), lengths: Vec::new() })
    }

    /// Returns the body of the page that consists of `page` and the bytes of its texts. `page` may take them up.
    pub(super) fn body<'a>(&'a mut self, texts: &'a [u8]) -> Result<PageBody<'a>, ParquetError> {
        let PageCodec { compressor, page, compressed, .. } = self;
        let Some(compressor) = compressor else { return Ok(PageBody::uncompressed([page, texts])) };
        let uncompressed_len = page.len() + texts.len();
        if !compressor.compress_matches(page, texts, compressed) {
            page.extend_from_slice(texts);
            compressor.compress(page, compressed)?;
        }
        Ok(PageBody { parts: [compressed, &[]], uncompressed_len })
    }
}

/// Returns `pages`, each compressed after the one before it with the same contexts, for the fuzz targets. A part of each page is
/// what precedes its texts.
#[cfg(feature = "fuzzing")]
pub(crate) fn compress_pages(compression: Compression, pages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ParquetError> {
    let mut codec = PageCodec::new(compression)?;
    let compress = |page: &Vec<u8>| {
        let (head, texts) = page.split_at(page.len() / 9);
        codec.page.clear();
        codec.page.extend(head);
        codec.body(texts).map(|body| body.parts.concat())
    };
    pages.iter().map(compress).collect()
}

/// Replaces `compressed` by the page as an LZ4 block.
fn compress_lz4(page: &[u8], compressed: &mut Vec<u8>) -> Result<(), ParquetError> {
    compressed.resize(lz4_flex::block::get_maximum_output_size(page.len()), 0);
    let len =
        lz4_flex::block::compress_into(page, compressed).map_err(|error| ParquetError::External(Box::new(error)))?;
    compressed.truncate(len);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_unpacked_to_the_same_bytes() {
        let urls: String =
            (0..9000).map(|i| format!("http://host{}.example/{}/index.html", i % 70, i * 7919 % 65537)).collect();
        let noise: Vec<u8> = (0..300_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let dashed: Vec<u8> = noise.iter().enumerate().map(|(i, byte)| if i % 8 == 0 { b'-' } else { *byte }).collect();
        // Words that are too long for the search of `matches`.
        let words: Vec<u8> = urls.bytes().filter(u8::is_ascii_alphanumeric).collect();
        let mut pages: Vec<&[u8]> = vec![b"", b"a", &noise, &dashed, urls.as_bytes(), &words];
        pages.extend((0..20).map(|i| &urls.as_bytes()[i..4090 + 2 * i]));
        for compression in [Compression::Zstd(1), Compression::Zstd(3), Compression::Lz4] {
            let mut codec = PageCodec::new(compression).unwrap();
            for page in pages.iter().chain(pages.iter().rev()) {
                let (head, texts) = page.split_at(page.len() / 9);
                codec.page.clear();
                codec.page.extend(head);
                let body = codec.body(texts).unwrap();
                assert_eq!(body.uncompressed_len, page.len());
                let compressed = body.parts.concat();
                // The bytes of a page do not depend on the pages that a thread has compressed before.
                let mut alone = PageCodec::new(compression).unwrap();
                alone.page.extend(head);
                assert!(alone.body(texts).unwrap().parts.concat() == compressed);
                let unpacked = match compression {
                    Compression::Lz4 => lz4_flex::block::decompress(&compressed, page.len()).unwrap(),
                    _ => zstd::bulk::decompress(&compressed, page.len()).unwrap(),
                };
                assert!(unpacked == *page);
            }
        }
    }

    #[test]
    fn higher_levels_make_shorter_pages() {
        let page: String =
            (0..9000).map(|i| format!("http://host{}.example/{}/index.html", i % 70, i * 7919 % 65537)).collect();
        let lens = [1, 3, 9, 19].map(|level| {
            let mut codec = PageCodec::new(Compression::Zstd(level)).unwrap();
            codec.body(page.as_bytes()).unwrap().parts[0].len()
        });
        assert!(lens.is_sorted_by(|a, b| a > b), "{lens:?}");
    }

    /// From sequences, zstd cannot write a block of the greatest length that does not become shorter.
    #[test]
    fn a_page_with_a_block_of_noise_is_compressed_without_sequences() {
        let urls: String = (0..6000).map(|i| format!("http://host{}.example/{}", i % 70, i * 7919 % 65537)).collect();
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        });
        let mut page = urls.into_bytes();
        page.truncate(1 << 17);
        page.extend(noise.take(1 << 17));
        let (mut finder, mut context, mut compressed) =
            (MatchFinder::new(zstd_context::LIMITS), ZstdContext::new(1).unwrap(), Vec::new());
        let found = finder.find(b"", &page).expect("suited");
        assert!(context.compress_sequences(found, page.len(), &mut compressed).is_err());
        let mut codec = PageCodec::new(Compression::Zstd(1)).unwrap();
        for page in [&page[..], &page[..1 << 17], &page] {
            codec.page.clear();
            let compressed = codec.body(page).unwrap().parts.concat();
            assert!(compressed.len() < page.len() && zstd::bulk::decompress(&compressed, page.len()).unwrap() == page);
        }
    }
}
