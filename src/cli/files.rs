//! The output of `canon` and `dedup`: one file, standard output, or a directory of files, in the order of the input or sorted. A
//! sorted file whose format has an order is read again and checked before it gets its final name.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::error::CommandError;
use super::job::Job;
use super::report::pairs_to_json;
use super::terminal::print_error;
use crate::output::{
    self, Destination, DirectoryLayout, EncodedRows, Encoder, FinishedOutput, NewReadBack, Output, OutputError,
    PartDirectory, ReadBack,
};
use crate::process::part_names::{MANIFEST, SPLITS};
use crate::process::path_name;
use crate::run::{SortedRows, sorted_rows_counter};
use crate::sort::{Partition, SplitPoints};

/// The output while it is written.
pub(crate) enum OutputFiles {
    /// A file, or standard output.
    Single(Box<Output>, Option<ReadBack>),
    /// A directory.
    Directory(Box<OutputDirectory>),
}

/// A directory of parts while it is written.
pub(crate) struct OutputDirectory {
    series: PartDirectory,
    /// The directory above all parts.
    root: PathBuf,
    /// Rows written to all parts.
    rows: u64,
    /// The current part, if rows are written in the order of the input.
    part: PartPlace,
    /// The split points, if the parts are ranges.
    splits: Option<SplitPoints>,
}

/// A part of rows in the order of the input.
struct PartPlace {
    number: u32,
    rows: u64,
    /// Rows with which a part ends, if there are several.
    limit: Option<u64>,
}

impl PartPlace {
    /// Returns the number of the part to which the next `rows` rows belong: a part ends when it has as many rows as the limit, or
    /// more.
    fn next(&mut self, rows: u64) -> u32 {
        if self.limit.is_some_and(|limit| self.rows >= limit) {
            (self.number, self.rows) = (self.number + 1, 0);
        }
        self.rows += rows;
        self.number
    }
}

pub(crate) struct WrittenFiles {
    /// The output as a whole; `None` if there is none, because an input has an error and there are no records.
    pub(crate) whole: Option<FinishedOutput>,
    pub(crate) files: Vec<FinishedOutput>,
}

impl WrittenFiles {
    /// The files of the directory at `path`.
    pub(crate) fn in_directory(path: PathBuf, files: Vec<FinishedOutput>) -> WrittenFiles {
        let sum = |count: fn(&FinishedOutput) -> u64| files.iter().map(count).sum();
        let (bytes, rows, row_groups) = (sum(|file| file.bytes), sum(|file| file.rows), sum(|file| file.row_groups));
        WrittenFiles { whole: Some(FinishedOutput { path: Some(path), bytes, rows, row_groups }), files }
    }
}

impl OutputFiles {
    /// Opens the output of a job over sources of these names. If the job was interrupted before, as its manifest says, its
    /// parts are removed also from a directory without a mark.
    ///
    /// # Errors
    /// The destination cannot be written, or is a directory that has parts already.
    pub(crate) fn create(
        job: &Job,
        sources: &[String],
        is_interrupted: bool,
    ) -> Result<(Encoder, OutputFiles), CommandError> {
        let layout = &job.layout;
        let by = layout.arrangement.by.clone();
        let options = job.output_options(sources);
        let format = options.format;
        let threads = job.options.clamped().threads;
        let read_back = move |threads| Box::new(sorted_rows_counter(by.clone(), format, threads)) as ReadBack;
        let is_read_back = !layout.arrangement.by.is_empty();
        let path = match &job.destination {
            Destination::File(path) | Destination::NewFile(path) if layout.is_directory => path.clone(),
            destination => {
                let (encoder, output) = output::create_arranged(destination, options, &layout.arrangement)?;
                return Ok((encoder, OutputFiles::Single(Box::new(output), is_read_back.then(|| read_back(threads)))));
            }
        };
        let ranges = layout.ranges.map(|count| (Partition::SURT_DIRECTORY, count));
        let partitions = layout.partition.as_ref().map(|by| (by.directory_name(), by.count()));
        let root = layout.root(&path);
        let (fixed, partitions) = (layout.hive.clone(), partitions.or(ranges));
        // One of several parts is read while threads merge the rows of the next; a single part is read after all other work.
        let has_parts = partitions.is_some() || layout.part_rows.is_some();
        let threads = if has_parts { 1 } else { threads };
        let existing = job.destination.existing();
        let place = DirectoryLayout { directory: path, fixed, partitions, existing, is_interrupted };
        let new_read_back = is_read_back.then(|| Box::new(move || read_back(threads)) as NewReadBack);
        let (encoder, series) = PartDirectory::create(place, options, &layout.arrangement, new_read_back)?;
        let splits = ranges.map(|_| SplitPoints::default());
        let part = PartPlace { number: 0, rows: 0, limit: layout.part_rows };
        let directory = OutputDirectory { series, root, rows: 0, part, splits };
        Ok((encoder, OutputFiles::Directory(Box::new(directory))))
    }

    /// Appends rows in the order of the input.
    pub(crate) fn append(&mut self, encoded: EncodedRows) -> Result<(), OutputError> {
        match self {
            OutputFiles::Single(output, _) => output.append(encoded),
            OutputFiles::Directory(directory) => directory.append(encoded),
        }
    }

    /// Appends rows in the order of a sort.
    pub(crate) fn append_sorted(&mut self, sorted: SortedRows) -> Result<(), OutputError> {
        match self {
            OutputFiles::Single(output, _) => output.append(sorted.encoded),
            OutputFiles::Directory(directory) => directory.append_sorted(sorted),
        }
    }

    /// The rows that were appended.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            OutputFiles::Single(output, _) => output.rows(),
            OutputFiles::Directory(directory) => directory.rows,
        }
    }

    /// Completes the output, but only if it has `rows` rows, those of all records.
    ///
    /// # Errors
    /// It has another number of rows; the output cannot be written.
    pub(crate) fn finish(self, job: &Job, rows: u64) -> Result<WrittenFiles, CommandError> {
        check_written(self.rows(), rows)?;
        match self {
            OutputFiles::Single(output, mut read_back) => {
                let whole = Some(output.finish_verified(read_back.as_mut())?);
                Ok(WrittenFiles { whole, files: Vec::new() })
            }
            OutputFiles::Directory(directory) => directory.finish(job),
        }
    }

    /// Removes what was begun, because errors of the inputs left no record.
    pub(crate) fn abandon(self, destination: &Destination) -> Result<WrittenFiles, CommandError> {
        match self {
            OutputFiles::Single(output, _) => output.abort()?,
            OutputFiles::Directory(directory) => directory.series.abandon()?,
        }
        print_abandoned(destination);
        Ok(WrittenFiles { whole: None, files: Vec::new() })
    }
}

/// Checks that no row was lost or written twice.
pub(crate) fn check_written(written: u64, rows: u64) -> Result<(), CommandError> {
    match written == rows {
        true => Ok(()),
        false => Err(CommandError::Internal(format!("{written} of {rows} rows were written"))),
    }
}

impl OutputDirectory {
    fn append(&mut self, encoded: EncodedRows) -> Result<(), OutputError> {
        if encoded.rows() == 0 {
            return Ok(());
        }
        self.rows += encoded.rows();
        let part = self.part.next(encoded.rows());
        self.series.append(encoded, 0, part)
    }

    fn append_sorted(&mut self, sorted: SortedRows) -> Result<(), OutputError> {
        let SortedRows { encoded, partition, part, first_key } = sorted;
        self.rows += encoded.rows();
        let Some(splits) = &mut self.splits else { return self.series.append(encoded, partition, part) };
        if part + 1 > splits.partitions() {
            // Rows without a key come last, where no split point is needed.
            splits.push(first_key.unwrap_or_else(|| "\u{10FFFF}".to_string()));
        }
        self.series.append(encoded, part, 0)
    }

    fn finish(self, job: &Job) -> Result<WrittenFiles, CommandError> {
        let OutputDirectory { series, root, splits, .. } = self;
        let (path, existing) = (series.directory().to_path_buf(), job.destination.existing());
        let (files, mark) = series.finish()?;
        if let Some(splits) = splits {
            let splits_file = Destination::new(root.join(SPLITS), existing);
            write_atomically(&splits_file, &splits.to_string(), mark.consequence())?;
        }
        let manifest = manifest(job, &root, &files);
        // An interrupted job may have left one.
        let manifest_file = Destination::File(root.join(MANIFEST));
        write_atomically(&manifest_file, &format!("{manifest:#}\n"), mark.consequence())?;
        mark.complete()?;
        Ok(WrittenFiles::in_directory(path, files))
    }
}

/// Prints that the output was not written, because an input has an error and there are no records.
pub(crate) fn print_abandoned(destination: &Destination) {
    if let Some(path) = destination.path() {
        print_error(&format!(
            "{}: not written, because an input has an error and there are no records",
            path_name(path)
        ));
    }
}

/// The parts of a directory, for programs that read it.
fn manifest(job: &Job, root: &Path, files: &[FinishedOutput]) -> Value {
    let part = |file: &FinishedOutput| {
        let path = file.path.as_deref().map(|path| path.strip_prefix(root).unwrap_or(path).display().to_string());
        json!({"path": path, "rows": file.rows, "bytes": file.bytes})
    };
    json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "format": job.output.format.name(),
        "columns": job.output.columns.names().collect::<Vec<_>>(),
        "sorted_by": job.layout.arrangement.by.to_string(),
        "policy": pairs_to_json(job.policy.describe()),
        "parts": files.iter().map(part).collect::<Vec<_>>(),
    })
}

/// Writes a small file into the directory of the parts. It has its name only when it is complete. An error ends with
/// `parts_state`.
pub(crate) fn write_atomically(file: &Destination, text: &str, parts_state: &str) -> Result<(), CommandError> {
    output::write_file(file, text.as_bytes()).map_err(|error| CommandError::SideFile(format!("{error}; {parts_state}")))
}
