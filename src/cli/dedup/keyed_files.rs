//! Inputs of `dedup` that have keys already.

use crate::batch::ColumnSet;
use crate::cli::error::CommandError;
use crate::input::{Defect, InputError, KeyedFile, Origin, Source, Sources, TableFile};
use crate::run::{KeyedFileDefect, KeyedFileError};

/// The inputs of a job, by whether they have keys.
pub(super) struct OpenedInputs {
    pub(super) keyed: Vec<KeyedFile>,
    /// Files that cannot be read.
    pub(super) unread: Vec<InputError>,
    /// Names of the inputs without keys.
    pub(super) others: Vec<String>,
}

impl OpenedInputs {
    pub(super) fn open(sources: &Sources) -> OpenedInputs {
        let mut inputs = OpenedInputs { keyed: Vec::new(), unread: Vec::new(), others: Vec::new() };
        for (number, source) in sources.0.iter().enumerate() {
            match open_keyed_file(source) {
                Ok(Some(file)) => inputs.keyed.push(file),
                Ok(None) => inputs.others.push(source.name.clone()),
                Err(defect) => inputs.unread.push(unread_error(number, source, defect)),
            }
        }
        inputs
    }

    /// Checks that every file with keys has the columns of the output.
    pub(super) fn check_columns(&self, columns: &ColumnSet) -> Result<(), CommandError> {
        for file in &self.keyed {
            let mut missing = columns.names().filter(|name| !file.columns().any(|column| column == *name));
            if let Some(name) = missing.next() {
                let reason = KeyedFileDefect::NoOutputColumn(name.to_string());
                let error = KeyedFileError { name: file.name.clone(), reason };
                return Err(CommandError::Usage(error.to_string()));
            }
        }
        Ok(())
    }
}

/// The source as a table of rows with keys; `None` if it is something else.
fn open_keyed_file(source: &Source) -> Result<Option<KeyedFile>, Defect> {
    match &source.origin {
        Origin::Path(path) => {
            std::fs::metadata(path).map_err(Defect::Open)?;
            KeyedFile::open(&source.name, &TableFile::Path(path.clone()))
        }
        // Every other object would cost requests before the job begins.
        Origin::Remote(object) if source.name.ends_with(".parquet") => {
            KeyedFile::open(&source.name, &TableFile::Remote(object.clone()))
        }
        Origin::Special => Err(Defect::Special),
        Origin::Stdin | Origin::Member(_) | Origin::Remote(_) | Origin::Unreadable(_) | Origin::Reader(_) => Ok(None),
    }
}

fn unread_error(number: usize, source: &Source, defect: Defect) -> InputError {
    let (source_number, name) = (number as u32, source.name.clone());
    InputError { source_number, name, defect, offset: 0, packed: false, lost: 0, records: 0 }
}
