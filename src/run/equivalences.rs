//! The file that `irikey learn` wrote, read again: [`read_equivalences`].

use std::fs::File;
use std::path::Path;

use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use thiserror::Error;

use crate::batch::{EquivalencesReader, EquivalencesTableError};
use crate::canon::Policy;
use crate::learn::Equivalences;

/// Columns that count.
const COLUMNS: [&str; 6] = ["kind", "uri", "key", "representative_key", "host", "pattern"];

/// Why a file gives no equivalences.
#[derive(Debug, Error)]
pub enum EquivalencesError {
    /// It cannot be opened.
    #[error("cannot open: {0}")]
    Open(#[from] std::io::Error),
    /// It is no Parquet file, or a damaged one.
    #[error("{0}; take a file that irikey learn wrote")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// What is in it does not do.
    #[error(transparent)]
    Refused(#[from] EquivalencesTableError),
}

/// The equivalences in the Parquet file at `path`, for keys of `policy`.
///
/// # Errors
/// See [`EquivalencesError`].
pub fn read_equivalences(path: &Path, policy: &Policy) -> Result<Equivalences, EquivalencesError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let mut reader = EquivalencesReader::new(builder.schema(), policy)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), COLUMNS);
    for batch in builder.with_projection(mask).build()? {
        reader.add(&batch.map_err(EquivalencesTableError::from)?)?;
    }
    Ok(reader.finish()?)
}
