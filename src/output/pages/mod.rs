//! Encodes simple columns of Parquet files faster than the general encoder of the `parquet` crate.
//!
//! - `values`: keys, counts and sources, which need no codec
//! - `texts`: text in `DELTA_LENGTH_BYTE_ARRAY`, with the codecs of `codec` and the packed lengths of `delta`
//! - `matches`: a search for matches that is made for URLs; `zstd_context` and `lz4_block` write them for zstd at level 1
//!   and for LZ4
//! - `rle`: which rows of a nullable column have a value, and indices of dictionaries
//! - `chunk`: column chunks as sequences of pages; `header`: the headers of pages; `buffers`: the pool of their buffers
//! - `splice`: writes the pages of column chunks to the file without copying them

mod buffers;
mod chunk;
mod codec;
mod delta;
mod header;
mod lz4_block;
mod matches;
mod rle;
mod splice;
mod texts;
mod values;
mod zstd_context;

pub(super) use buffers::PageBuffers;
pub(super) use chunk::{EncodedPages, PageChunk};
pub(super) use codec::Codecs;
#[cfg(feature = "fuzzing")]
pub(crate) use codec::compress_pages;
pub(super) use splice::PageSink;
pub(super) use texts::{TextBuffers, texts};
pub(super) use values::{counts, keys, sources};
