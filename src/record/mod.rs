//! Decoders of crawl formats: bytes in, columns of [`Records`] out. Pure: they open no files.
//!
//! ```text
//! first bytes of a source --InputFormat::of_source--> SourceFormat
//!   Text     chunks of whole records (boundary) --Decoder--> Records    one file per format; the table is in format
//!   Csv      first record --CsvOptions::read_first--> columns, then as Text
//!   Archive  bytes --ArchiveParser--> CaptureBatch --> RecordBuffer --> Records
//! rows of Parquet and Arrow files (input) --> RecordBuffer --> Records
//! Records --Splitter, if a field may hold several references--> Records --canon--> rows
//! ```
//!
//! Every record, line or row of the input gives a record, apart from the following ones. A record that cannot be read has a
//! fault, so that a row reports every loss. Headers, comments, and records of archives that are not selected give
//! no record, and are counted. Blank lines give no record and are not counted.

pub mod access_log;
mod advice;
pub mod archive;
pub(crate) mod boundary;
mod buffer;
mod capture_fields;
pub mod cdx;
pub mod cdxj;
pub mod crawl_log;
pub mod csv;
mod decoder;
pub mod fields;
mod format;
mod http_method;
pub mod journal;
pub(crate) mod json;
mod json_bitmaps;
pub(crate) mod json_document;
pub mod json_lines;
pub mod lines;
pub(crate) mod link_header;
mod log_format;
mod media_type;
mod member_cache;
mod records;
pub(crate) mod refresh;
mod split;
mod time;
mod unsupported;

pub(crate) use advice::FormatAdvice;
pub use buffer::RecordBuffer;
#[cfg(feature = "pipeline")]
pub(crate) use buffer::{BASE_SHARE, UrlLimits};
pub(crate) use decoder::source_head_len;
pub use decoder::{FormatOptions, SourceHead, TextDecoder};
pub(crate) use format::{AUTO, Decoder, SourceFormat};
pub use format::{ArchiveRows, InputFormat, TextFormat};
#[cfg(feature = "pipeline")]
pub(crate) use format::{compression_of_name, format_of_first_record, is_name_of_format, without_compression_suffix};
#[cfg(feature = "pipeline")]
pub(crate) use media_type::charset as charset_of_media_type;
pub use records::{RecordOffsets, Records};
pub(crate) use split::Splitter;
#[cfg(feature = "pipeline")]
pub(crate) use time::{from_digits as time_from_digits, from_iso_with_zone as time_from_iso};
pub(crate) use unsupported::ENCRYPTED_PARQUET;
pub use unsupported::UnsupportedFormat;
