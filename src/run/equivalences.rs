//! Reads the file that `irikey learn` writes: [`read_equivalences`].

use std::path::Path;

use parquet::arrow::ProjectionMask;
use parquet::errors::ParquetError;
use thiserror::Error;

use crate::batch::{EquivalencesReader, EquivalencesTableError};
#[cfg(feature = "cli")]
use crate::batch::{EvidenceRow, find_evidence};
use crate::canon::Policy;
use crate::input::{
    CheckedParquet, PositionedFile, StoredFile, catch_panic, error_and_advice, mask_of_columns, read_file,
};
use crate::learn::Equivalences;
use crate::remote::RemoteUrl;

/// The columns that are read.
const COLUMNS: [&str; 7] = ["kind", "uri", "key", "representative_key", "host", "pattern", "context"];

/// Rows that are read at a time.
const BATCH_ROWS: usize = 1024;

/// Why equivalences cannot be read from a file.
#[derive(Debug, Error)]
pub(crate) enum EquivalencesError {
    /// The file cannot be opened.
    #[error("cannot open: {}", error_and_advice(.0))]
    Open(#[from] std::io::Error),
    /// The path is that of a directory.
    #[error("is a directory; name the file that irikey learn wrote")]
    Directory,
    /// The file is not Parquet, or is damaged.
    #[error("{0}; give a file that irikey learn wrote")]
    Parquet(#[from] ParquetError),
    /// The table is not one of equivalences, or does not fit the policy.
    #[error(transparent)]
    Refused(#[from] EquivalencesTableError),
}

/// Reads the equivalences in the Parquet file at `path`, for keys of `policy`.
pub(crate) fn read_equivalences(path: &Path, policy: &Policy) -> Result<Equivalences, EquivalencesError> {
    catch_table_panic(|| {
        let table = open_table(path)?;
        let mut reader = EquivalencesReader::new(table.metadata.schema(), policy)?;
        let mask = mask_of_columns(table.metadata.parquet_schema(), COLUMNS);
        for batch in table.batches(&mask, BATCH_ROWS)? {
            reader.add(&batch?)?;
        }
        Ok(reader.finish()?)
    })
}

/// Returns the evidence in the rows of the file whose texts in some columns are `wanted`, one per entry.
#[cfg(feature = "cli")]
pub(crate) fn read_evidence(
    path: &Path,
    wanted: &[Vec<(&str, String)>],
) -> Result<Vec<Option<EvidenceRow>>, EquivalencesError> {
    catch_table_panic(|| {
        let mut found = vec![None; wanted.len()];
        for batch in open_table(path)?.batches(&ProjectionMask::all(), BATCH_ROWS)? {
            let batch = batch?;
            for (row, texts) in found.iter_mut().zip(wanted).filter(|(row, _)| row.is_none()) {
                *row = find_evidence(&batch, texts);
            }
        }
        Ok(found)
    })
}

/// Opens the file at `path`. A file in a store is read whole.
pub(super) fn open_table(path: &Path) -> Result<CheckedParquet, EquivalencesError> {
    let file = match RemoteUrl::of_path(path) {
        Some(_) => PositionedFile::of_bytes(read_file(path)?.into()),
        None if path.is_dir() => return Err(EquivalencesError::Directory),
        None => PositionedFile::open(&StoredFile::Path(path.to_path_buf()))?,
    };
    Ok(CheckedParquet::open(file)?)
}

/// Runs `read`, which reads a table of equivalences; a panic of the decoder is an error of the table.
pub(super) fn catch_table_panic<T>(
    read: impl FnOnce() -> Result<T, EquivalencesError>,
) -> Result<T, EquivalencesError> {
    catch_panic(read, |message| ParquetError::General(message).into())
}
