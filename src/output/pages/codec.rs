//! The bodies of pages of texts, compressed with reusable contexts and buffers. The general encoder compresses snappy.

use parking_lot::Mutex;

use parquet::basic::Compression as Codec;
use parquet::errors::ParquetError;

use super::chunk::PageBody;
use super::lz4_block::{MAX_DISTANCE, write_block};
use super::matches::{MAX_LEN, MatchFinder};
use super::zstd_context::ZstdContext;
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
    Zstd(ZstdCodec),
}

impl PageCodec {
    fn new(compression: Compression) -> Result<PageCodec, ParquetError> {
        let compressor = match compression {
            Compression::None => None,
            Compression::Lz4 => Some(Compressor::Lz4(MatchFinder::new(MAX_DISTANCE))),
            Compression::Zstd(level) => Some(Compressor::Zstd(ZstdCodec::new(level)?)),
            Compression::Snappy => return Err(ParquetError::NYI("the general encoder compresses snappy".into())),
        };
        Ok(PageCodec { compressor, page: Vec::new(), compressed: Vec::new(), lengths: Vec::new() })
    }

    /// Returns the body of the page that consists of `page` and the bytes of its texts. To compress them, `page` takes them up.
    pub(super) fn body<'a>(&'a mut self, texts: &'a [u8]) -> Result<PageBody<'a>, ParquetError> {
        let PageCodec { compressor, page, compressed, .. } = self;
        let Some(compressor) = compressor else { return Ok(PageBody::uncompressed([page, texts])) };
        page.extend_from_slice(texts);
        match compressor {
            Compressor::Lz4(matches) => compress_lz4(matches, page, compressed)?,
            Compressor::Zstd(codec) => codec.compress(page, compressed)?,
        }
        Ok(PageBody { parts: [compressed, &[]], uncompressed_len: page.len() })
    }
}

/// Returns `pages`, each compressed after the one before it with the same contexts, for the fuzz targets.
#[cfg(feature = "fuzzing")]
pub(crate) fn compress_pages(compression: Compression, pages: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, ParquetError> {
    let mut codec = PageCodec::new(compression)?;
    let compress = |page: &Vec<u8>| {
        codec.page.clear();
        codec.body(page).map(|body| body.parts.concat())
    };
    pages.iter().map(compress).collect()
}

/// Replaces `compressed` by the page as an LZ4 block.
fn compress_lz4(matches: &mut MatchFinder, page: &[u8], compressed: &mut Vec<u8>) -> Result<(), ParquetError> {
    if let Some(found) = matches.find(page) {
        write_block(found, page.len(), compressed);
        return Ok(());
    }
    compressed.resize(lz4_flex::block::get_maximum_output_size(page.len()), 0);
    let len =
        lz4_flex::block::compress_into(page, compressed).map_err(|error| ParquetError::External(Box::new(error)))?;
    compressed.truncate(len);
    Ok(())
}

/// Compresses pages with zstd. At level 1, [`super::matches`] finds the matches.
struct ZstdCodec {
    context: ZstdContext,
    matches: Option<MatchFinder>,
}

impl ZstdCodec {
    fn new(level: u8) -> Result<ZstdCodec, ParquetError> {
        Ok(ZstdCodec { context: ZstdContext::new(level)?, matches: (level == 1).then(|| MatchFinder::new(MAX_LEN)) })
    }

    /// Replaces `compressed` by the compressed page.
    fn compress(&mut self, page: &[u8], compressed: &mut Vec<u8>) -> Result<(), ParquetError> {
        if let Some(found) = self.matches.as_mut().and_then(|finder| finder.find(page))
            && self.context.compress_sequences(found, page.len(), compressed).is_ok()
        {
            return Ok(());
        }
        self.context.compress(page, compressed)
    }
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
                codec.page.clear();
                let body = codec.body(page).unwrap();
                assert_eq!(body.uncompressed_len, page.len());
                let compressed = body.parts.concat();
                // The bytes of a page do not depend on the pages that a thread has compressed before.
                let mut alone = PageCodec::new(compression).unwrap();
                assert!(alone.body(page).unwrap().parts.concat() == compressed);
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
            (MatchFinder::new(MAX_LEN), ZstdContext::new(1).unwrap(), Vec::new());
        let found = finder.find(&page).expect("suited");
        assert!(context.compress_sequences(found, page.len(), &mut compressed).is_err());
        let mut codec = ZstdCodec::new(1).unwrap();
        for page in [&page[..], &page[..1 << 17], &page] {
            codec.compress(page, &mut compressed).unwrap();
            assert!(compressed.len() < page.len() && zstd::bulk::decompress(&compressed, page.len()).unwrap() == page);
        }
    }
}
