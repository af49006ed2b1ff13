//! Reads sources: lists, opens, maps and decompresses files, and decodes tables. The URLs in them are bytes here.
//!
//! ```text
//! arguments --list--> Sources --open--> Opened::Mapped(MappedFile) --> Block: a range of the mapping
//!                                       Opened::Stream(Stream)     --> Block: a buffer
//!                                          | Unpacker: gzip, gzip_ahead, zstd_frames, decoders
//!                                          | peek: lookahead
//! ZIP archive --zip--> members, each a source --zip_reader--> Stream
//!                               TableReader (Parquet, Arrow IPC)   --> RecordBuffer: rows
//! ```
//!
//! The first bytes of a source decide how it is decompressed, not its name (`detect`). Regular files are mapped into memory,
//! other sources are read. A damaged source yields all data before the damage and then a [`Defect`], which ends that source
//! but not the run. Long gzip and Parquet files are decompressed and decoded ahead by several threads, with
//! `ordered`.
//!
//! Not sources, but read here as well: bodies of HTTP responses in archives (`http_body`), Parquet files of rows with keys
//! (`keyed`), and small files, such as lists (`whole_file`).

mod block;
mod decoders;
mod deflate;
pub(crate) mod detect;
mod error;
mod gzip;
mod gzip_ahead;
mod http_body;
mod keyed;
mod list;
pub(crate) mod mmap;
mod peek;
mod source;
mod stored_file;
mod stream;
mod table;
#[cfg(test)]
mod test_data;
mod unpacker;
mod whole_file;
mod zip;
mod zip_reader;
mod zstd_frames;

pub(crate) use block::{Block, BlockPool, Buffer};
pub use error::{Defect, InputError, ListError};
pub(crate) use error::{error_and_advice, without_types};
pub(crate) use gzip_ahead::{AHEAD_LEN, AheadThreads, may_have_members};
pub(crate) use http_body::{BodyDefect, DecodedBody, decode_body, unpack_body};
pub(crate) use keyed::KeyedFile;
pub use list::{Sources, list};
pub(crate) use list::{list_name, list_prefixed};
pub(crate) use source::Origin;
pub use source::Source;
pub(crate) use stored_file::StoredFile;
pub(crate) use stream::{OpenOptions, Opened, Stream};
pub(crate) use table::{
    CheckedParquet, ParquetBatches, PositionedFile, TableColumns, TableOptions, TableReader, catch_panic,
    check_ipc_lengths, check_stream_lengths, mask_of_columns, set_panic_hook,
};
pub(crate) use unpacker::MemberEnd;
pub(crate) use whole_file::{copy_objects, read_file, shown_path};
