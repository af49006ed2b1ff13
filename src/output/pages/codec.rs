//! One page in, compressed; contexts and buffers kept from page to page. Refuses nothing that Parquet has a codec for;
//! snappy is left to the general encoder.

use bytes::Bytes;
use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::errors::ParquetError;
use zstd::zstd_safe::{CParameter, compress_bound};

use crate::output::Compression;

/// Level 1 of zstd, made for pages of URLs: matches of at least 7 bytes found through a table of 2^13 entries, which
/// leaves the first-level cache room for the text. Whole runs take 10 % less time than with the level as it is, and
/// files are 3 % larger.
const LEVEL_1: [CParameter; 2] = [CParameter::HashLog(13), CParameter::MinMatch(7)];

/// Compresses pages of one column after another.
pub(in crate::output) struct PageCodec {
    kind: Kind,
    /// A page before compression; callers fill it.
    pub(super) page: Vec<u8>,
    compressed: Vec<u8>,
    /// Lengths of a page's texts.
    pub(super) lengths: Vec<i32>,
}

enum Kind {
    None,
    Lz4,
    Zstd { level: u8, compressor: zstd::bulk::Compressor<'static> },
}

impl PageCodec {
    /// The codec of a compression, if it is one of those made here.
    pub(in crate::output) fn new(compression: Compression) -> Result<Option<PageCodec>, ParquetError> {
        let kind = match compression {
            Compression::None => Kind::None,
            Compression::Lz4 => Kind::Lz4,
            Compression::Zstd(level) => Kind::Zstd { level, compressor: compressor(level)? },
            Compression::Snappy => return Ok(None),
        };
        Ok(Some(PageCodec { kind, page: Vec::new(), compressed: Vec::new(), lengths: Vec::new() }))
    }

    /// Its name in a column's metadata.
    pub(super) fn name(&self) -> Codec {
        match &self.kind {
            Kind::None => Codec::UNCOMPRESSED,
            Kind::Lz4 => Codec::LZ4_RAW,
            Kind::Zstd { level, .. } => Codec::ZSTD(ZstdLevel::try_new(i32::from(*level)).unwrap_or_default()),
        }
    }

    /// `page`, compressed. One that is as it was is `page` itself, to be given back with [`PageCodec::reclaim`].
    pub(super) fn compress(&mut self) -> Result<Bytes, ParquetError> {
        let len = match &mut self.kind {
            Kind::None => return Ok(Bytes::from(std::mem::take(&mut self.page))),
            Kind::Lz4 => {
                self.compressed.resize(lz4_flex::block::get_maximum_output_size(self.page.len()), 0);
                lz4_flex::block::compress_into(&self.page, &mut self.compressed)
                    .map_err(|error| ParquetError::External(Box::new(error)))?
            }
            Kind::Zstd { compressor, .. } => {
                self.compressed.resize(compress_bound(self.page.len()), 0);
                compressor.compress_to_buffer(&self.page, &mut self.compressed[..])?
            }
        };
        Ok(Bytes::copy_from_slice(&self.compressed[..len]))
    }

    /// Takes back the memory of a page that is written, if nobody else has it.
    pub(super) fn reclaim(&mut self, page: Bytes) {
        if matches!(self.kind, Kind::None)
            && let Ok(mut page) = page.try_into_mut()
        {
            // What was in it would be moved.
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
