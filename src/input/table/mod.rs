//! Reads the rows of Parquet and Arrow IPC files as [`RecordBuffer`](crate::record::RecordBuffer). Only the columns
//! that are needed are decoded. The position of a row is its number in the file, from 0.
//!
//! The URL is in the requested column, otherwise in the first column with a known name. Carried fields are in the columns
//! that Common Crawl's index has for them. Columns inside structs are not searched.
//!
//! ```text
//! Parquet --parquet: units of rows, decoded ahead--> batches --rows--> RecordBuffer, in the order of the file
//! Arrow IPC -------------------reader--------------> batches --rows--> RecordBuffer
//! ```

mod columns;
mod parquet;
mod reader;
mod rows;

pub(crate) use columns::{TableColumns, TableOptions};
pub(crate) use reader::TableReader;
