//! Recognizes a job that has added its keys to a store of seen keys before: [`JobIdentity`]. If a scheduler runs it again, all
//! its keys are in the store, and its output would be replaced by an empty one.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_128;

use super::error::CommandError;
use super::file_roles::absolute;
use super::file_stamp::FileStamp;
use super::job::Job;
use super::manifest::describe_job;
use super::terminal::print_error;
use crate::dedup::seen::{FinishedJob, SeenStore};
use crate::input::{Origin, Source, Sources, shown_path};
use crate::process::{HandleName, path_name};
use crate::remote::RemoteUrl;

/// A job whose inputs are regular files and whose output is a file.
pub(crate) struct JobIdentity {
    /// Hash of everything that the output depends on, but the times of the inputs.
    id: String,
    /// Hash of the times of the inputs.
    times: String,
    output: PathBuf,
    /// Files that the job writes besides the output.
    tables: Vec<PathBuf>,
}

impl JobIdentity {
    /// The job that writes `output` and these tables, where it writes some; `more` is what the output depends on besides the
    /// job. `None` if an input is not a regular file, or the output is an open handle such as `/dev/stdout`.
    pub(crate) fn new(
        job: &Job,
        sources: &Sources,
        (output, tables): (&Path, [Option<&Path>; 2]),
        more: Vec<Value>,
    ) -> Option<JobIdentity> {
        let (inputs, times) = describe_inputs(sources)?;
        if HandleName::of(output).is_some() {
            return None;
        }
        let (output, tables) = (place_of(output), tables.map(|table| table.map(place_of)));
        let names = tables.each_ref().map(|table| table.as_deref().map(path_name));
        let more = Value::Array(more.into_iter().chain([json!(names)]).collect());
        let hash = |value: &Value| format!("{:032x}", xxh3_128(value.to_string().as_bytes()));
        let id = hash(&json!([describe_job(job), inputs, path_name(&output), more]));
        Some(JobIdentity { id, times: hash(&times), output, tables: tables.into_iter().flatten().collect() })
    }

    /// The entry of the job in the store.
    pub(crate) fn finished(self, output_len: u64) -> FinishedJob {
        FinishedJob { id: self.id, times: self.times, output_len }
    }

    /// The job was done before, and its output is complete. Prints this.
    ///
    /// # Errors
    /// The job was done before, but the output is not that of the job any more; or the inputs have other times, so that it
    /// is not clear whether this is the same job.
    pub(crate) fn is_done(&self, store: &SeenStore) -> Result<bool, CommandError> {
        let Some(FinishedJob { times, output_len, .. }) = store.finished_job(&self.id) else { return Ok(false) };
        let (name, found) = (shown_path(&self.output), std::fs::metadata(&self.output));
        let (name, is_same) = (path_name(&name), found.is_ok_and(|data| data.is_file() && data.len() == *output_len));
        let is_missing = |table: &&PathBuf| RemoteUrl::of_path(table).is_none() && !table.is_file();
        if let Some(table) = self.tables.iter().find(is_missing).filter(|_| *times == self.times && is_same) {
            return Err(CommandError::Usage(format!(
                "{}: this job has been done before and its keys are in the store, so that its output would be empty; but \
                 this table, which it wrote as well, no longer exists here; restore it, or name another output or store",
                path_name(table)
            )));
        }
        if *times == self.times && is_same {
            print_error(&format!(
                "{name}: this job has been done before: the output is complete and its keys are in the store, so nothing was \
                 changed"
            ));
            return Ok(true);
        }
        if *times == self.times {
            return Err(CommandError::Usage(format!(
                "{name}: this job has been done before and its keys are in the store, so that its output would be empty; but \
                 the output of {output_len} bytes that it wrote no longer exists here or has changed; restore it, or name \
                 another output or store"
            )));
        }
        if is_same {
            return Err(CommandError::Usage(format!(
                "{name}: this output was written by the same job with inputs of the same names and sizes, but other times; if \
                 the inputs are new, move the output away; otherwise the job has been done, and its output would be empty"
            )));
        }
        Ok(false)
    }
}

/// The path of an output without links; the name of an object as it is.
fn place_of(path: &Path) -> PathBuf {
    if RemoteUrl::of_path(path).is_some() { path.to_path_buf() } else { absolute(path) }
}

/// The inputs of a job with their sizes, and their times; `None` if one is not a regular file.
fn describe_inputs(sources: &Sources) -> Option<(Value, Value)> {
    let describe = |source: &Source| {
        let path = path_name(&absolute(source.origin.file()?));
        let FileStamp { size, modified } = FileStamp::of(source).ok()?;
        let file = match &source.origin {
            Origin::Member(_) => json!([path, size, source.name]),
            _ => json!([path, size]),
        };
        Some((file, json!(modified)))
    };
    let (files, times): (Vec<_>, Vec<_>) =
        sources.0.iter().map(describe).collect::<Option<Vec<_>>>()?.into_iter().unzip();
    Some((files.into(), times.into()))
}
