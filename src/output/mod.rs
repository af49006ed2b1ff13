//! Writes rows as Parquet, Arrow IPC, CSV, TSV, JSON lines, CDXJ, zipnum or text, to a file, a directory or standard output.
//!
//! ```text
//! workers:         Rows --Encoder::encode--> EncodedRows   build the batch, encode, compress, render
//!                  Rows --slices--join----->               the same by several workers, each of which has a slice of the rows
//! writing thread:  EncodedRows --Output::append-> Sink     append bytes in order
//!                  Output::finish: footer, flush, fsync, rename to the final name
//! ```
//!
//! A file is written under a temporary name in the directory of its final name, and renamed when it is complete and on
//! disk. Until then, a file with the final name stays as it was.
//!
//! - `options`: formats, codecs, and what an output contains
//! - `encoder`: encodes rows, with `row_group` and `pages` (Parquet), `lines` and `values` (text), `index_lines`
//!   (CDXJ, zipnum)
//! - `writer`: appends encoded rows, on a `sink`; `directory`: a directory of such files, with a `directory_mark` until it
//!   is complete; `cluster`: their index of members
//! - `packing`: compressed text
//! - `tables`, `plain_rows`: files of other rows than canonical ones

mod cluster;
mod directory;
mod directory_mark;
mod encoder;
mod error;
mod index_lines;
mod lines;
mod options;
mod packing;
mod pages;
mod plain_rows;
mod row_group;
mod sink;
mod tables;
mod values;
mod writer;

pub(crate) use directory::{
    DirectoryLayout, NewReadBack, PartDirectory, has_visible_files, is_part_file, lock_directory,
};
pub(crate) use encoder::FileRows;
pub use encoder::{EncodedRows, Encoder};
pub use error::OutputError;
pub(crate) use index_lines::{INDEX_KEY, INDEX_REST, index_columns, index_rows, index_schema};
pub use options::{Arrangement, Compression, CompressionError, Destination, OutputFormat, OutputOptions};
pub(crate) use options::{ReadBack, metadata};
#[cfg(feature = "fuzzing")]
pub(crate) use pages::compress_pages;
pub(crate) use plain_rows::{PlainColumn, PlainValue, RowBlock, RowEncoder, RowWriter};
pub(crate) use sink::{check_creatable, check_name, target_path, write_file};
pub(crate) use tables::TableWriter;
pub use writer::{FinishedOutput, Output, create, create_arranged};
