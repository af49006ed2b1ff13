//! Reads the rows of Parquet and Arrow IPC files as [`RecordBuffer`](crate::record::RecordBuffer). Only the columns
//! that are needed are decoded. The position of a row is its number in the file, from 0.
//!
//! The URL is in the requested column, otherwise in the first column with a known name. Carried fields are in the columns
//! that Common Crawl's index has for them. Columns inside structs are not searched.
//!
//! ```text
//! Parquet --parquet_thrift: footer, page headers; parquet_pages: pages--> checked pages
//!   --parquet: units of rows, decoded ahead--> batches --rows--> RecordBuffer, in order
//!   --text_pages, if only URLs are read------------------------> RecordBuffer, in order
//!   --parquet_batches, for files that are not inputs-----------> batches
//! Arrow IPC --ipc_lengths: check----reader---> batches --rows--> RecordBuffer
//! ```
//!
//! The decoders are code of other crates and a file may hold anything: a panic of a decoder is a defect of its source
//! (`guard`).

mod columns;
mod guard;
mod ipc_lengths;
mod page_memory;
mod parquet;
mod parquet_batches;
mod parquet_codec;
mod parquet_pages;
mod parquet_thrift;
mod positioned_file;
mod reader;
mod remote_table;
mod rows;
mod text_pages;
mod text_schema;

pub(crate) use columns::{TableColumns, TableOptions};
pub(crate) use guard::{catch_panic, set_panic_hook};
pub(crate) use ipc_lengths::{check_ipc_lengths, check_stream_lengths};
pub(super) use parquet::defect_of;
pub(crate) use parquet_batches::{CheckedParquet, ParquetBatches, mask_of_columns};
pub(super) use parquet_pages::{chunk_range, first_repeated};
pub(super) use parquet_thrift::load_metadata;
pub(crate) use positioned_file::PositionedFile;
pub(crate) use reader::TableReader;
