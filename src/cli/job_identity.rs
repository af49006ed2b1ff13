//! Recognizes a job that has added its keys to a seen store before: [`JobIdentity`]. If a scheduler runs it again, all
//! its keys are in the store, and its output would be replaced by an empty one.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::args::is_written_in_place;
use super::error::CommandError;
use super::file_roles::absolute;
use super::file_stamp::FileStamp;
use super::job::Job;
use super::manifest::describe_job;
use super::terminal::print_error;
use crate::dedup::seen::{FinishedJob, SeenStore};
use crate::input::{Origin, Sources, shown_path};
use crate::process::part_names::MANIFEST;
use crate::process::{exit, path_name};
use crate::remote::RemoteUrl;

/// A job whose inputs are regular files and whose output is a file, or a directory of parts.
pub(crate) struct JobIdentity {
    /// Hash of everything that the output depends on, but the times of the inputs.
    id: String,
    /// The same without the sizes of the inputs.
    names: String,
    /// Hash of the inputs with their sizes and of the output, without the flags.
    files: String,
    /// Hash of the times of the inputs.
    times: String,
    output: PathBuf,
    /// Files that the job writes besides the output.
    tables: Vec<PathBuf>,
}

impl JobIdentity {
    /// The job that writes `output` and these tables, where it writes some; `more` is what the output depends on besides the
    /// job. `None` if an input is not a regular file, or the output is a device, a pipe or an open handle such as
    /// `/dev/stdout`, which does not keep what was written.
    pub(crate) fn new(
        job: &Job,
        sources: &Sources,
        (output, tables): (&Path, [Option<&Path>; 2]),
        more: Vec<Value>,
    ) -> Option<JobIdentity> {
        let (names, sizes, times) = describe_inputs(sources)?;
        if is_written_in_place(output) {
            return None;
        }
        let (output, tables) = (place_of(output), tables.map(|table| table.map(place_of)));
        let table_names = tables.each_ref().map(|table| table.as_deref().map(path_name));
        let more = Value::Array(more.into_iter().chain([json!(table_names)]).collect());
        let hash = |value: &Value| format!("{:032x}", xxh3_128(value.to_string().as_bytes()));
        let files = hash(&json!([names, sizes, path_name(&output)]));
        let names = json!([describe_job(job), names, path_name(&output), more]);
        let tables = tables.into_iter().flatten().collect();
        let (id, names, times) = (hash(&json!([names, sizes])), hash(&names), hash(&times));
        Some(JobIdentity { id, names, files, times, output, tables })
    }

    /// The entry of the job in the store. `status` is its exit code with `--fail-on-fault`, whether that was given or not.
    pub(crate) fn finished(self, output_len: u64, status: u8) -> FinishedJob {
        let JobIdentity { id, names, files, times, .. } = self;
        FinishedJob { id, times, output_len, status, names, files }
    }

    /// The exit code of the job if it was done before and its output is still there. Prints this. Faults of its records count
    /// if this run has `--fail-on-fault`.
    ///
    /// # Errors
    /// The job was done before, but the output is not that of the job any more; or the inputs have other times, so that it
    /// is not clear whether this is the same job; or the output has rows that a new output would lack, because their keys are
    /// already in the store: rows of inputs that were damaged, or rows that a job with other flags wrote.
    pub(crate) fn status_before(&self, store: &SeenStore, fail_on_fault: bool) -> Result<Option<u8>, CommandError> {
        let name = path_name(&shown_path(&self.output));
        let Some(done) = store.finished_jobs().iter().find(|job| job.id == self.id) else {
            return self.check_output(store).map(|()| None);
        };
        let (has_same_times, is_same) = (done.times == self.times, self.is_output_of(done));
        let is_missing = |table: &&PathBuf| RemoteUrl::of_path(table).is_none() && !table.is_file();
        match (has_same_times, is_same, self.tables.iter().find(is_missing)) {
            (true, true, Some(table)) => Err(CommandError::Usage(format!(
                "{}: this job has been done before and its keys are in the store, so its output would be empty; but \
                 this table, which it wrote as well, no longer exists here; restore it, or name another output or store",
                path_name(table)
            ))),
            (true, true, None) => {
                let (status, ended) = match done.status {
                    exit::FAULTS if fail_on_fault => {
                        (exit::FAULTS, "the output is complete, but records have a fault".to_string())
                    }
                    exit::FAULTS | exit::SUCCESS => (exit::SUCCESS, "the output is complete".to_string()),
                    status => (status, format!("it ended with exit code {status}")),
                };
                let advice = match status {
                    exit::INPUT => format!("; to read its inputs again, {}", self.move_away()),
                    _ => String::new(),
                };
                print_error(&format!(
                    "{name}: this job has been done before: {ended} and its keys are in the store, so nothing was changed{advice}"
                ));
                Ok(Some(status))
            }
            // Inputs that could not be read may be readable now.
            (true, false, _) if done.status == exit::INPUT && !self.output.exists() => Ok(None),
            (true, false, _) => Err(CommandError::Usage(format!(
                "{name}: this job has been done before and its keys are in the store, so its output would be empty; but \
                 the output of {} bytes that it wrote no longer exists here or has changed; restore it, or name another \
                 output or store",
                done.output_len
            ))),
            (false, true, _) => Err(CommandError::Usage(format!(
                "{name}: this output was written by the same job with inputs of the same names and sizes, but other times; if \
                 the inputs are new, {}; otherwise the job has been done, and its output would be empty",
                self.move_away()
            ))),
            (false, false, _) => self.check_output(store).map(|()| None),
        }
    }

    /// Checks that the output does not have rows that a new one would lack, because their keys are in the store: rows of the same
    /// inputs by a job with other flags, or rows of inputs that could not be read completely and are repaired now.
    fn check_output(&self, store: &SeenStore) -> Result<(), CommandError> {
        let find = |is_like: &dyn Fn(&FinishedJob) -> bool| {
            store.finished_jobs().iter().any(|job| is_like(job) && self.is_output_of(job))
        };
        let is_incomplete = |job: &FinishedJob| job.names == self.names && job.status == exit::INPUT;
        let reason = if find(&is_incomplete) {
            "the same job with inputs of other sizes, which could not be read completely (exit code 4)"
        } else if find(&|job| job.files == self.files) {
            "a job with the same inputs and other flags or another version of irikey"
        } else {
            return Ok(());
        };
        Err(CommandError::Usage(format!(
            "{}: this output was written by {reason}, and the keys of its rows are in the store, so the new output would \
             lack these rows; {}, or name another output or store",
            path_name(&shown_path(&self.output)),
            self.move_away()
        )))
    }

    /// What to do before the job can be done again.
    fn move_away(&self) -> &'static str {
        match self.tables[..] {
            [] => "move the output away",
            _ => "move the output and the tables of --duplicates and --groups away",
        }
    }

    /// The output is still as long as that of `job`.
    fn is_output_of(&self, job: &FinishedJob) -> bool {
        let len = if self.output.is_dir() { parts_len(&self.output) } else { file_len(&self.output) };
        len == Some(job.output_len)
    }
}

fn file_len(path: &Path) -> Option<u64> {
    std::fs::metadata(path).ok().filter(|data| data.is_file()).map(|data| data.len())
}

/// The length of all parts in a directory, as its manifest lists them; `None` if one is not there.
fn parts_len(directory: &Path) -> Option<u64> {
    let manifest: Value = serde_json::from_slice(&std::fs::read(directory.join(MANIFEST)).ok()?).ok()?;
    let parts = manifest["parts"].as_array()?;
    parts.iter().map(|part| file_len(&directory.join(part["path"].as_str()?))).sum()
}

/// The path of an output without links; the name of an object as it is.
fn place_of(path: &Path) -> PathBuf {
    if RemoteUrl::of_path(path).is_some() { path.to_path_buf() } else { absolute(path) }
}

/// The names of the inputs of a job, their sizes, and their times; `None` if one is not a regular file.
fn describe_inputs(sources: &Sources) -> Option<(Value, Value, Value)> {
    let (mut names, mut sizes, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for source in &sources.0 {
        let path = path_name(&absolute(source.origin.file()?));
        let FileStamp { size, modified } = FileStamp::of(source).ok()?;
        names.push(match &source.origin {
            Origin::Member(_) => json!([path, source.name]),
            _ => json!([path]),
        });
        sizes.push(size);
        times.push(modified);
    }
    Some((names.into(), sizes.into(), times.into()))
}
