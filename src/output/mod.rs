//! Rows in, one output out: Parquet, Arrow IPC, CSV, JSON lines or text, in a file or on standard output.
//!
//! ```text
//! workers:  Rows --Encoder::encode--> Part      all that costs time: batch, encoding, compression, rendering
//! one:      Part --Output::append-->  Sink      only appends, in order
//!           Output::finish: flush, fsync, rename to the final name
//! ```
//!
//! A file is written under a temporary name beside its final one and gets that name only when it is whole; until
//! then whatever bore the name stays as it was.

mod cells;
mod encoder;
mod error;
mod format;
mod index_lines;
mod lines;
mod pages;
mod row_group;
mod rows;
mod series;
mod sink;
mod sync;
mod table;
mod writer;

use std::error::Error;
use std::path::{Path, PathBuf};

pub use encoder::{Encoder, Part};
pub use error::OutputError;
pub use format::{Compression, OutputFormat};
pub use index_lines::index_columns;
pub use rows::{PlainValue, RowWriter};
pub(crate) use series::NewReadBack;
pub use series::{DirectoryLayout, PartDirectory};
pub use table::TableWriter;
pub use writer::{FinishedOutput, Output};

use crate::batch::{BatchBuilder, ColumnSet};
use crate::canon::Policy;
use crate::sort::SortBy;

/// Where an output goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// A file of this name.
    File(PathBuf),
    /// Standard output.
    Stdout,
}

/// What an output is made of, and how.
#[derive(Clone, Debug)]
pub struct OutputOptions {
    /// The format.
    pub format: OutputFormat,
    /// Codec of the text columns; Parquet only.
    pub compression: Compression,
    /// Columns in order; [`OutputFormat::Text`] writes the URI whatever they are.
    pub columns: ColumnSet,
    /// What the rows are made under.
    pub policy: Policy,
    /// Says how the file was made: see [`metadata`]. Kept by Parquet and Arrow.
    pub metadata: Vec<(String, String)>,
    /// Names of the sources; a run's `source` counts in this list.
    pub sources: Vec<String>,
}

/// What a file says about how it was made: the policy, the version of this library, how many sources there were.
pub fn metadata(policy: &Policy, sources: usize) -> Vec<(String, String)> {
    let mut pairs: Vec<_> =
        policy.describe().into_iter().map(|(name, value)| (format!("irikey.{name}"), value)).collect();
    pairs.push(("irikey.version".to_string(), env!("CARGO_PKG_VERSION").to_string()));
    pairs.push(("irikey.sources".to_string(), sources.to_string()));
    pairs
}

/// How the rows of an output stand, and what helps to find them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrangement {
    /// What they are sorted by; nothing if they are not. Parquet says so, and keeps statistics of these columns.
    pub by: SortBy,
    /// Parquet has a bloom filter of the column `key` in every row group.
    pub bloom: bool,
}

/// Reads a file back before it gets its final name: counts its rows, or says why it is not as written.
pub(crate) type ReadBack = Box<dyn FnMut(&Path) -> Result<u64, Box<dyn Error + Send + Sync>> + Send>;

/// Opens an output: the encoder that workers share, and the one place where their parts are appended.
///
/// # Errors
/// The destination is a directory, stands in none, or cannot be written.
pub fn create(destination: &Destination, options: OutputOptions) -> Result<(Encoder, Output), OutputError> {
    create_arranged(destination, options, &Arrangement::default())
}

/// [`create`], for rows that the caller gives in an order.
///
/// # Errors
/// As [`create`].
pub fn create_arranged(
    destination: &Destination,
    options: OutputOptions,
    arrangement: &Arrangement,
) -> Result<(Encoder, Output), OutputError> {
    let OutputOptions { format, compression, columns, policy, metadata, sources } = options;
    let builder = BatchBuilder::new(columns, &metadata, &policy, &sources);
    writer::open(format, (compression, arrangement), builder, metadata, sink::create(destination)?)
}
