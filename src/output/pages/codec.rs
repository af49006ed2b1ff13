//! One page in, compressed; contexts and buffers kept from page to page. Refuses nothing that Parquet has a codec for;
//! snappy is left to the general encoder.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use parquet::basic::Compression as Codec;
use parquet::errors::ParquetError;
use zstd::zstd_safe::{CParameter, compress_bound};

use crate::output::Compression;

/// Level 1 of zstd, made for pages of URLs: matches of at least 7 bytes found through a table of 2^13 entries, which
/// leaves the first-level cache room for the text. Whole runs take 10 % less time than with the level as it is, and
/// files are 3 % larger.
const LEVEL_1: [CParameter; 2] = [CParameter::HashLog(13), CParameter::MinMatch(7)];

/// The codecs of one output: as many as there are threads that compress at once, each kept for the next page.
pub(in crate::output) struct Codecs {
    compression: Compression,
    idle: Mutex<Vec<PageCodec>>,
}

impl Codecs {
    /// The codecs of a compression, if it is one of those made here.
    pub(in crate::output) fn new(compression: Compression) -> Option<Codecs> {
        (compression != Compression::Snappy).then(|| Codecs { compression, idle: Mutex::default() })
    }

    /// Their name in a column's metadata.
    pub(super) fn name(&self) -> Codec {
        self.compression.codec()
    }

    /// What `work` makes with one of them.
    pub(super) fn with<R>(
        &self,
        work: impl FnOnce(&mut PageCodec) -> Result<R, ParquetError>,
    ) -> Result<R, ParquetError> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let codec = idle().pop();
        let mut codec = codec.map_or_else(|| PageCodec::new(self.compression), Ok)?;
        let made = work(&mut codec)?;
        idle().push(codec);
        Ok(made)
    }

    /// How many there are that nobody is using.
    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Compresses one page after another.
pub(super) struct PageCodec {
    kind: CodecState,
    /// A page before compression; callers fill it.
    pub(super) page: Vec<u8>,
    compressed: Vec<u8>,
    /// Lengths of a page's texts.
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
            Compression::Snappy => return Err(ParquetError::NYI("snappy is the general encoder's".into())),
        };
        Ok(PageCodec { kind, page: Vec::new(), compressed: Vec::new(), lengths: Vec::new() })
    }

    /// `page`, compressed. One that is as it was is `page` itself, to be given back with [`PageCodec::reclaim`].
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

    /// Takes back the memory of a page that is written, if nobody else has it.
    pub(super) fn reclaim(&mut self, page: Bytes) {
        if matches!(self.kind, CodecState::None)
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
