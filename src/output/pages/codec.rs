//! Compresses pages with reusable contexts and buffers. The general encoder compresses snappy.

use parking_lot::Mutex;

use bytes::Bytes;
use parquet::basic::Compression as Codec;
use parquet::errors::ParquetError;
use zstd::zstd_safe::{CParameter, compress_bound};

use crate::output::options::Compression;

/// Parameters of zstd level 1 for pages of URLs: matches of at least 7 bytes, and a hash table of 2^13 entries, which leaves
/// room for text in the first-level cache. Whole runs take 10 % less time than with the default parameters, and files are
/// 3 % larger.
const LEVEL_1: [CParameter; 2] = [CParameter::HashLog(13), CParameter::MinMatch(7)];

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

/// Compresses pages one after the other.
pub(super) struct PageCodec {
    kind: CodecState,
    /// The page before compression, filled by the caller.
    pub(super) page: Vec<u8>,
    compressed: Vec<u8>,
    /// Lengths of the texts of a page.
    pub(super) lengths: Vec<i32>,
}

enum CodecState {
    None,
    Lz4,
    Zstd(zstd::bulk::Compressor<'static>),
}

impl PageCodec {
    fn new(compression: Compression) -> Result<PageCodec, ParquetError> {
        let kind = match compression {
            Compression::None => CodecState::None,
            Compression::Lz4 => CodecState::Lz4,
            Compression::Zstd(level) => CodecState::Zstd(compressor(level)?),
            Compression::Snappy => return Err(ParquetError::NYI("the general encoder compresses snappy".into())),
        };
        Ok(PageCodec { kind, page: Vec::new(), compressed: Vec::new(), lengths: Vec::new() })
    }

    /// Returns the compressed page. Without compression it is `page` itself; return it with [`PageCodec::reclaim`].
    pub(super) fn compress(&mut self) -> Result<Bytes, ParquetError> {
        let len = match &mut self.kind {
            CodecState::None => return Ok(Bytes::from(std::mem::take(&mut self.page))),
            CodecState::Lz4 => {
                self.compressed.resize(lz4_flex::block::get_maximum_output_size(self.page.len()), 0);
                lz4_flex::block::compress_into(&self.page, &mut self.compressed)
                    .map_err(|error| ParquetError::External(Box::new(error)))?
            }
            CodecState::Zstd(compressor) => {
                self.compressed.resize(compress_bound(self.page.len()), 0);
                compressor.compress_to_buffer(&self.page, &mut self.compressed[..])?
            }
        };
        Ok(Bytes::copy_from_slice(&self.compressed[..len]))
    }

    /// Takes back the buffer of a written page, if it has no other owner.
    pub(super) fn reclaim(&mut self, page: Bytes) {
        if matches!(self.kind, CodecState::None)
            && let Ok(mut page) = page.try_into_mut()
        {
            // Growing would copy old content.
            page.clear();
            self.page = page.into();
        }
    }
}

fn compressor(level: u8) -> Result<zstd::bulk::Compressor<'static>, ParquetError> {
    let mut compressor = zstd::bulk::Compressor::new(i32::from(level))?;
    if level == 1 {
        LEVEL_1.into_iter().try_for_each(|parameter| compressor.set_parameter(parameter))?;
    }
    Ok(compressor)
}
