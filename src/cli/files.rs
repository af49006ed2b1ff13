//! What `canon` writes: one file, standard output, or a directory of files, in the order of the input or sorted. In:
//! encoded rows and what they belong to. Out: the files, checked, and what they hold.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::args::Sorting;
use super::canon::{Failure, output_options};
use super::canon_args::Job;
use crate::canon::Tally;
use crate::output::{
    self, Arrangement, Destination, DirectoryLayout, Encoder, FinishedOutput, NewReadBack, Output, OutputError, Part,
    PartDirectory, ReadBack,
};
use crate::run::{SortedPart, sorted_rows_counter};
use crate::sort::{Partition, SORT_METADATA_KEY, SplitPoints};

/// The file that lists the parts of a directory, and what they were made under.
const MANIFEST: &str = "_manifest.json";

/// The file of split points of ranges that were made.
const SPLITS: &str = "splits.txt";

/// What is being written.
pub(super) enum Files {
    /// A file, or standard output.
    One(Box<Output>, Option<ReadBack>),
    /// A directory.
    Many(Box<Directory>),
}

/// A directory that is being written.
pub(super) struct Directory {
    series: PartDirectory,
    sorting: Sorting,
    root: PathBuf,
    rows: u64,
    /// Of the current part, if rows are in the order of the input.
    part: (u32, u64),
    splits: SplitPoints,
}

/// What was written.
pub(super) struct Written {
    /// All of it.
    pub(super) all: FinishedOutput,
    /// The files of a directory.
    pub(super) files: Vec<FinishedOutput>,
}

impl Written {
    /// The files of the directory at `path`.
    pub(super) fn of(path: PathBuf, files: Vec<FinishedOutput>) -> Written {
        let sum = |count: fn(&FinishedOutput) -> u64| files.iter().map(count).sum();
        let (bytes, rows, parts) = (sum(|file| file.bytes), sum(|file| file.rows), sum(|file| file.parts));
        Written { all: FinishedOutput { path: Some(path), bytes, rows, parts }, files }
    }
}

impl Files {
    /// Opens what the job writes.
    pub(super) fn create(job: &Job, names: &[String]) -> Result<(Encoder, Files), Failure> {
        let sorting = &job.outputs.sorting;
        let mut options = output_options(&job.outputs, &job.policy, names);
        if !sorting.by.is_empty() {
            options.metadata.push((SORT_METADATA_KEY.to_string(), sorting.by.to_string()));
        }
        let arrangement = Arrangement { by: sorting.by.clone(), bloom: sorting.bloom };
        let by = sorting.by.clone();
        let new_read_back: Option<NewReadBack> = (!by.is_empty())
            .then(|| Box::new(move || Box::new(sorted_rows_counter(by.clone())) as ReadBack) as NewReadBack);
        let path = match &job.outputs.destination {
            Destination::File(path) if sorting.is_directory() => path.clone(),
            destination => {
                let (encoder, output) = output::create_arranged(destination, options, &arrangement)?;
                return Ok((encoder, Files::One(Box::new(output), new_read_back.map(|new| new()))));
            }
        };
        let ranges = sorting.ranges.map(|count| ("surt_range", count));
        let partitions = sorting.partition.as_ref().map(|by: &Partition| (by.directory_name(), by.count()));
        let place =
            DirectoryLayout { directory: path.clone(), fixed: sorting.hive.clone(), partitions: partitions.or(ranges) };
        let root = sorting.hive.iter().fold(path, |path, part| path.join(part));
        let (encoder, series) = PartDirectory::create(place, options, arrangement, new_read_back)?;
        let (sorting, part, splits) = (sorting.clone(), (0, 0), SplitPoints::default());
        Ok((encoder, Files::Many(Box::new(Directory { series, sorting, root, rows: 0, part, splits }))))
    }

    /// Appends rows in the order of the input.
    pub(super) fn append(&mut self, part: Part) -> Result<(), OutputError> {
        match self {
            Files::One(output, _) => output.append(part),
            Files::Many(directory) => directory.append(part),
        }
    }

    /// Appends rows in the order that was asked for.
    pub(super) fn append_sorted(&mut self, sorted: SortedPart) -> Result<(), OutputError> {
        match self {
            Files::One(output, _) => output.append(sorted.part),
            Files::Many(directory) => directory.append_sorted(sorted),
        }
    }

    fn rows(&self) -> u64 {
        match self {
            Files::One(output, _) => output.rows(),
            Files::Many(directory) => directory.rows,
        }
    }

    /// Gives the output its name, or ends its last part, but only if no record was lost or counted twice.
    pub(super) fn finish(self, job: &Job, tally: &Tally) -> Result<Written, Failure> {
        let written = self.rows();
        if !tally.is_balanced() || written != tally.rows {
            let (unchanged, changed, faulty) = (tally.unchanged, tally.changed, tally.faulty);
            let counts = format!("{unchanged} unchanged, {changed} changed, {faulty} faulty");
            if let Files::One(output, _) = self {
                output.abort()?;
            }
            return Err(Failure::Internal(format!("{} records, of them {counts}, gave {written} rows", tally.rows)));
        }
        self.close(job)
    }

    /// As [`Files::finish`], of rows that were counted before, in jobs that this one takes up.
    pub(super) fn finish_counted(self, job: &Job, rows: u64) -> Result<Written, Failure> {
        match self.rows() {
            written if written != rows => Err(Failure::Internal(format!("{rows} rows were sorted, {written} written"))),
            _ => self.close(job),
        }
    }

    fn close(self, job: &Job) -> Result<Written, Failure> {
        match self {
            Files::One(output, read_back) => {
                let all = match read_back {
                    Some(mut read_back) => output.finish_verified(&mut read_back)?,
                    None => output.finish()?,
                };
                Ok(Written { all, files: Vec::new() })
            }
            Files::Many(directory) => directory.finish(job),
        }
    }
}

impl Directory {
    fn append(&mut self, part: Part) -> Result<(), OutputError> {
        if part.rows() == 0 {
            return Ok(());
        }
        let (number, rows) = self.part;
        if self.sorting.part_rows.is_some_and(|most| rows >= most) {
            self.part = (number + 1, 0);
        }
        self.part.1 += part.rows();
        self.rows += part.rows();
        self.series.append(part, 0, self.part.0)
    }

    fn append_sorted(&mut self, sorted: SortedPart) -> Result<(), OutputError> {
        let SortedPart { part, partition, number, first_key } = sorted;
        self.rows += part.rows();
        let is_range = self.sorting.ranges.is_some();
        if is_range && number + 1 > self.splits.partitions() {
            // Rows without a key come last, where no point is needed.
            self.splits.push(first_key.unwrap_or_else(|| "\u{10FFFF}".to_string()));
        }
        match is_range {
            true => self.series.append(part, number, 0),
            false => self.series.append(part, partition, number),
        }
    }

    fn finish(self, job: &Job) -> Result<Written, Failure> {
        let Directory { series, sorting, root, splits, .. } = self;
        let path = series.directory().to_path_buf();
        let files = series.finish()?;
        if sorting.ranges.is_some() {
            write(&root.join(SPLITS), &splits.to_string())?;
        }
        write(&root.join(MANIFEST), &manifest(job, &sorting, &root, &files))?;
        Ok(Written::of(path, files))
    }
}

/// Parts with their rows, for jobs that take them up.
fn manifest(job: &Job, sorting: &Sorting, root: &Path, files: &[FinishedOutput]) -> String {
    let policy = job.policy.describe().into_iter().map(|(name, value)| (name.to_string(), json!(value)));
    let part = |file: &FinishedOutput| {
        let path = file.path.as_deref().map(|path| path.strip_prefix(root).unwrap_or(path).display().to_string());
        json!({"path": path, "rows": file.rows, "bytes": file.bytes})
    };
    let manifest = json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "format": job.outputs.format.name(),
        "columns": job.outputs.columns.names().collect::<Vec<_>>(),
        "sorted_by": sorting.by.to_string(),
        "policy": policy.collect::<serde_json::Map<_, _>>(),
        "parts": files.iter().map(part).collect::<Vec<_>>(),
    });
    format!("{manifest:#}\n")
}

/// Writes a small file, whole or not at all.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let temporary = path.with_extension("tmp");
    let written = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    written
        .map_err(|error| Failure::Temporary(format!("{}: cannot write: {error}; the parts are whole", path.display())))
}
