//! Reads the file that `irikey learn` writes: [`read_equivalences`].

use std::fs::File;
use std::path::Path;

use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::errors::ParquetError;
use parquet::file::reader::ChunkReader;
use thiserror::Error;

use crate::batch::{EquivalencesReader, EquivalencesTableError};
#[cfg(feature = "cli")]
use crate::batch::{EvidenceRow, find_evidence};
use crate::canon::Policy;
use crate::input::{catch_panic, open_parquet, read_file};
use crate::learn::Equivalences;
use crate::process::error_and_remedy;
use crate::remote::RemoteUrl;

/// The columns that are read.
const COLUMNS: [&str; 7] = ["kind", "uri", "key", "representative_key", "host", "pattern", "context"];

/// Why equivalences cannot be read from a file.
#[derive(Debug, Error)]
pub(crate) enum EquivalencesError {
    /// The file cannot be opened.
    #[error("cannot open: {}", error_and_remedy(.0))]
    Open(#[from] std::io::Error),
    /// The file is not Parquet, or is damaged.
    #[error("{0}; give a file that irikey learn wrote")]
    Parquet(#[from] ParquetError),
    /// The table is not one of equivalences, or does not fit the policy.
    #[error(transparent)]
    Refused(#[from] EquivalencesTableError),
}

/// Reads the equivalences in the Parquet file at `path`, for keys of `policy`.
pub(crate) fn read_equivalences(path: &Path, policy: &Policy) -> Result<Equivalences, EquivalencesError> {
    catch_table_panic(|| match object_bytes(path)? {
        Some(bytes) => read_table(bytes, policy),
        None => read_table(File::open(path)?, policy),
    })
}

fn read_table(file: impl ChunkReader + 'static, policy: &Policy) -> Result<Equivalences, EquivalencesError> {
    let builder = open_parquet(file)?;
    let mut reader = EquivalencesReader::new(builder.schema(), policy)?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), COLUMNS);
    for batch in builder.with_projection(mask).build()? {
        reader.add(&batch.map_err(EquivalencesTableError::from)?)?;
    }
    Ok(reader.finish()?)
}

/// Returns the evidence in the rows of the file whose texts in some columns are `wanted`, one per entry.
#[cfg(feature = "cli")]
pub(crate) fn read_evidence(
    path: &Path,
    wanted: &[Vec<(&str, String)>],
) -> Result<Vec<Option<EvidenceRow>>, EquivalencesError> {
    catch_table_panic(|| match object_bytes(path)? {
        Some(bytes) => find_rows(bytes, wanted),
        None => find_rows(File::open(path)?, wanted),
    })
}

#[cfg(feature = "cli")]
fn find_rows(
    file: impl ChunkReader + 'static,
    wanted: &[Vec<(&str, String)>],
) -> Result<Vec<Option<EvidenceRow>>, EquivalencesError> {
    let mut found = vec![None; wanted.len()];
    for batch in open_parquet(file)?.build()? {
        let batch = batch.map_err(EquivalencesTableError::from)?;
        for (row, texts) in found.iter_mut().zip(wanted).filter(|(row, _)| row.is_none()) {
            *row = find_evidence(&batch, texts);
        }
    }
    Ok(found)
}

/// The bytes of a file in a store; `None` for a local file.
fn object_bytes(path: &Path) -> std::io::Result<Option<Bytes>> {
    RemoteUrl::of_path(path).map(|_| read_file(path).map(Bytes::from)).transpose()
}

/// Runs `read`, which reads a table of equivalences; a panic of the decoder is an error of the table.
pub(super) fn catch_table_panic<T>(
    read: impl FnOnce() -> Result<T, EquivalencesError>,
) -> Result<T, EquivalencesError> {
    catch_panic(read, |message| ParquetError::General(message).into())
}
