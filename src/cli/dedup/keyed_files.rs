//! Inputs of `dedup` that have keys already.

use super::args::DedupArgs;
use crate::batch::{ColumnId, ColumnSet, value_in};
use crate::cli::error::CommandError;
use crate::cli::job::Job;
use crate::input::{Defect, InputError, KeyedFile, Origin, Source, Sources, StoredFile};
use crate::output::OutputFormat;
use crate::run::{DedupOptions, KeyedFileDefect, KeyedFileError, KeyedFiles};

/// The inputs as tables of rows with keys, if all are such files and no flag chooses another column. The output then has
/// their columns, unless a flag chooses others, and the job has memory for their row groups.
pub(super) fn keyed_files(
    sources: &Sources,
    job: &mut Job,
    dedup: &mut DedupOptions,
    args: &DedupArgs,
) -> Result<Option<KeyedFiles>, CommandError> {
    if !args.input.is_auto() {
        return Ok(None);
    }
    let mut inputs = OpenedInputs::open(sources);
    let Some(first) = inputs.keyed.first() else { return Ok(None) };
    let unused = [("--limit", args.input.limit.is_some()), ("--base-column", args.input.base_column.is_some())];
    if let Some((flag, _)) = unused.iter().find(|(_, is_given)| *is_given) {
        let message = format!(
            "{}: {flag} does not apply to files with keys; remove it, or make all keys again with --column uri",
            first.name
        );
        return Err(CommandError::Usage(message));
    }
    if let Some(other) = inputs.others.first() {
        return Err(CommandError::Usage(format!(
            "{}: this file has keys, but the input {other} is not a Parquet file with keys; write it as Parquet with irikey canon \
             first, or, if all inputs have a column uri, make all keys again with --column uri",
            first.name
        )));
    }
    if !args.output.are_columns_chosen(job.output.format) {
        let is_known = |name: &&str| ColumnSet::named([*name]).is_ok();
        let names: Vec<&str> = first.columns().filter(is_known).collect();
        job.output.columns = ColumnSet::named(names).map_err(|error| CommandError::Internal(error.to_string()))?;
    }
    inputs.add_path_values(&job.output.columns);
    inputs.check_columns(&job.output.columns)?;
    let longest = inputs.keyed.iter().map(KeyedFile::max_row_group_len).max().unwrap_or(0);
    dedup.memory = args.reserve_row_groups(longest, &mut job.options)?.unwrap_or(dedup.memory);
    let key = args.key_column(&job.policy);
    // A report for people has a survey only where there is something to survey.
    let dedup = DedupOptions { survey: args.survey, ..dedup.clone() };
    let files = KeyedFiles::new((inputs.keyed, inputs.unread), key, &job.policy, &dedup);
    let files = files.map_err(|error| CommandError::Usage(error.to_string()))?;
    let has_one_dictionary = job.output.format == OutputFormat::Arrow;
    Ok(Some(if has_one_dictionary { files.with_shared_dictionaries() } else { files }))
}

/// The inputs of a job, by whether they have keys.
struct OpenedInputs {
    keyed: Vec<KeyedFile>,
    /// Files that cannot be read.
    unread: Vec<InputError>,
    /// Names of the inputs without keys.
    others: Vec<String>,
}

impl OpenedInputs {
    fn open(sources: &Sources) -> OpenedInputs {
        let mut inputs = OpenedInputs { keyed: Vec::new(), unread: Vec::new(), others: Vec::new() };
        for (number, source) in sources.0.iter().enumerate() {
            match open_keyed_file(source) {
                Ok(Some(file)) => inputs.keyed.push(file),
                Ok(None) => inputs.others.push(source.name.clone()),
                Err(defect) => inputs.unread.push(InputError::new(number as u32, source.name.clone(), defect)),
            }
        }
        inputs
    }

    /// Adds columns `NAME=` of the output, which files need not have.
    fn add_path_values(&mut self, columns: &ColumnSet) {
        let of_paths = columns.iter().filter(|column| matches!(column.id, ColumnId::PathValue(_)));
        let names: Vec<_> = of_paths.map(|column| column.name).collect();
        for file in &mut self.keyed {
            file.set_constants(names.iter().map(|name| (*name, value_in(&file.name, name))).collect());
        }
    }

    /// Checks that every file with keys has the columns of the output.
    fn check_columns(&self, columns: &ColumnSet) -> Result<(), CommandError> {
        for file in &self.keyed {
            let has = |name| file.columns().any(|column| column == name);
            let needed = columns.iter().filter(|column| !matches!(column.id, ColumnId::PathValue(_)));
            let mut missing = needed.map(|column| column.name).filter(|name| !has(*name));
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
            KeyedFile::open(&source.name, &StoredFile::Path(path.clone()))
        }
        // Every other object would cost requests before the job begins.
        Origin::Remote(object) if source.name.ends_with(".parquet") => {
            KeyedFile::open(&source.name, &StoredFile::Remote(object.clone()))
        }
        Origin::Unreadable(Defect::Special) => Err(Defect::Special),
        Origin::Stdin | Origin::Member(_) | Origin::Remote(_) | Origin::Unreadable(_) | Origin::Reader(_) => Ok(None),
    }
}
