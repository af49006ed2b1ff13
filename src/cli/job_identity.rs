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
use crate::input::{Origin, Source, Sources};
use crate::process::HandleName;

/// A job whose inputs are regular files and whose output is a file.
pub(crate) struct JobIdentity {
    /// Hash of everything that the output depends on, but the times of the inputs.
    id: String,
    /// Hash of the times of the inputs.
    times: String,
    output: PathBuf,
}

impl JobIdentity {
    /// The job that writes `output`; `more` is what the output depends on besides the job. `None` if an input is no regular
    /// file, or the output is an open handle such as `/dev/stdout`.
    pub(crate) fn new(job: &Job, sources: &Sources, output: &Path, more: &Value) -> Option<JobIdentity> {
        let (inputs, times) = describe_inputs(sources)?;
        if HandleName::of(output).is_some() {
            return None;
        }
        let output = absolute(output);
        let hash = |value: &Value| format!("{:032x}", xxh3_128(value.to_string().as_bytes()));
        let id = hash(&json!([describe_job(job), inputs, output.to_string_lossy(), more]));
        Some(JobIdentity { id, times: hash(&times), output })
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
        let (name, found) = (self.output.display(), std::fs::metadata(&self.output));
        let is_same = found.as_ref().is_ok_and(|data| data.is_file() && data.len() == *output_len);
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

/// The inputs of a job with their sizes, and their times; `None` if one is not a regular file.
fn describe_inputs(sources: &Sources) -> Option<(Value, Value)> {
    let describe = |source: &Source| {
        let path = absolute(source.origin.file()?).to_string_lossy().into_owned();
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
