//! Jobs that can be interrupted and resumed: `canon --resume`.
//!
//! ```text
//! input --canon--> part ---------------------------> manifest: finished     (order of the input)
//! input --canon, sort--> runs in _runs ------------> manifest: finished     (sorted or partitioned)
//!                        runs of all inputs --merge--> parts of the output
//! ```
//!
//! The manifest records every input when it is finished, so that a second run, however the first one ended, finds out what
//! is finished and does the rest. The directory is then the same as after one run. A merge that was interrupted starts
//! again; after it, the runs are removed. Inputs that the system could not read are read again, and then all runs are merged
//! again. Other flags, and inputs that have changed, are refused.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::json;

use super::error::CommandError;
use super::file_stamp::FileStamp;
use super::files::{OutputFiles, WrittenFiles, check_written};
use super::job::Job;
use super::manifest::{InputStates, Manifest, PendingInput, describe_job, finished_from_json, finished_to_json};
use super::progress::watch;
use super::report::{Report, ResumedInputs};
use super::terminal::count_of;
use crate::output::{self, Arrangement, Destination, FinishedOutput, OutputError};
use crate::process::part_names::MANIFEST;
use crate::process::{DirectoryLock, Existing, NewDirectories, PendingFile, commit_all, parent};
use crate::remote::RemoteUrl;
use crate::run::{
    self, Advice, InputRun, MAX_SORTED_SOURCE_ROWS, MAX_SORTED_SOURCES, OrderedSummaries, RunError, RunOptions,
    RunRequest, SortError, Sorter, Summary, ThreadShares,
};
use crate::sort::RunFileWriter;

/// Directory of sorted runs, below the output.
const RUNS: &str = "_runs";

/// What is finished if the manifest cannot be written in the end.
const COMPLETE: &str = "the parts are complete";

/// Suffix of a file of sorted runs.
const RUNS_SUFFIX: &str = "runs";

/// State of the merge in the manifest, from the first part of the output until all are finished.
const MERGING: &str = "merging";

/// A job, its directory, and what is finished of it.
struct ResumableJob<'a> {
    job: &'a Job<'a>,
    directory: &'a Path,
    names: &'a [String],
    /// The names of the inputs in the manifest.
    identities: &'a [String],
    manifest: Manifest,
    /// The parts, or files of runs, of finished inputs.
    finished: Vec<FinishedOutput>,
    summaries: OrderedSummaries,
}

/// Inputs that took less time are recorded together, because each record waits for the disk.
const SHORT: Duration = Duration::from_millis(200);

/// Inputs that are recorded together at most.
const MAX_BATCH: usize = 64;

struct FinishedInput {
    input: PendingInput,
    part: FinishedOutput,
    /// The part, which does not have its name yet.
    file: Option<PendingFile>,
    summary: Summary,
    hash: String,
    elapsed: Duration,
}

/// Does everything that is not finished.
pub(crate) fn perform(job: &Job) -> Result<Report, CommandError> {
    let started = Instant::now();
    let directory = local_directory(&job.destination)?;
    let is_sorted = job.layout.is_sorted();
    let mut sources = job.input.sources()?;
    if is_sorted {
        check_source_count(sources.0.len())?;
    }
    sources.find_objects();
    let stamps = sources.0.iter().map(FileStamp::of).collect::<Result<Vec<_>, _>>()?;
    let replaced = job.files.check(&sources)?;
    let (parts, suffix) = match is_sorted {
        true => (directory.join(RUNS), RUNS_SUFFIX),
        false => (directory.to_path_buf(), job.output.format.suffixes()[0]),
    };
    let (_created, _lock) = lock_parts(&parts)?;
    let (names, identities) = (sources.names(), sources.identities());
    let mut manifest = Manifest::open(&parts, describe_job(job))?;
    if is_sorted && !manifest.has_inputs(&identities) {
        return Err(other_runs(directory));
    }
    let InputStates { pending, finished, mut errors, faulty } = manifest.divide(sources, stamps, (&parts, suffix))?;
    let resumed = ResumedInputs { count: finished.len() as u64, faulty };
    let places: Vec<usize> = pending.iter().map(|input| input.place).collect();
    let summaries = OrderedSummaries::default();
    let mut resumable =
        ResumableJob { job, directory, names: &names, identities: &identities, manifest, finished, summaries };
    let made = match is_sorted {
        true => resumable.sort(pending),
        false => resumable.write_parts(pending),
    };
    let (mut summary, WrittenFiles { whole, files }) = made.inspect_err(|_| resumable.manifest.remove_unused())?;
    resumable.complete(&mut summary, &places);
    let mut report = job.report(names, summary, whole, started.elapsed());
    errors.append(&mut report.errors);
    Ok(Report { files, resumed: Some(resumed), errors, replaced, ..report })
}

/// Creates the directory of the parts, and locks it. The lock has to be dropped first, because its file is in the directory.
fn lock_parts(parts: &Path) -> Result<(NewDirectories, DirectoryLock), CommandError> {
    let created = NewDirectories::create(parts);
    let created = created.map_err(|error| CommandError::side_file(parts, "create the directory", error))?;
    let lock = output::lock_directory(parts)?;
    match lock.is_marked() {
        true => Err(OutputError::NotEmpty(parts.to_path_buf()).into()),
        false => Ok((created, lock)),
    }
}

fn other_runs(directory: &Path) -> CommandError {
    CommandError::Usage(format!(
        "{}: the directory has sorted runs of other inputs, or of these in another order; name the same inputs, or use \
         another directory",
        directory.display()
    ))
}

/// Refuses more inputs than can be told apart in the order of a sort.
fn check_source_count(count: usize) -> Result<(), CommandError> {
    match count {
        0..=MAX_SORTED_SOURCES => Ok(()),
        _ => Err(CommandError::Usage(format!(
            "--resume sorts at most {MAX_SORTED_SOURCES} inputs, but there are {count}; concatenate some of them"
        ))),
    }
}

fn local_directory(destination: &Destination) -> Result<&Path, CommandError> {
    match destination.path() {
        None => Err(CommandError::usage("--resume writes files; name their directory with -o")),
        Some(path) if RemoteUrl::of_path(path).is_some() => {
            Err(CommandError::usage("--resume writes its state on disk; name a local directory with -o"))
        }
        Some(path) => Ok(path),
    }
}

impl ResumableJob<'_> {
    fn write_parts(&mut self, pending: Vec<PendingInput>) -> Result<(Summary, WrittenFiles), CommandError> {
        let job = self.job;
        let summary = self.run_all(pending, |input, request| write_part(job, input, request))?;
        self.manifest.write(COMPLETE)?;
        let mut files = std::mem::take(&mut self.finished);
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok((summary, WrittenFiles::in_directory(self.directory.to_path_buf(), files)))
    }

    /// Makes the sorted runs of pending inputs and merges all runs, unless an earlier run has done so. The runs are kept while an
    /// input has to be read again.
    fn sort(&mut self, pending: Vec<PendingInput>) -> Result<(Summary, WrittenFiles), CommandError> {
        let (summary, mut written) = match self.merged_files()? {
            Some(written) => (Summary::default(), written),
            None => self.sort_and_merge(pending)?,
        };
        if self.manifest.is_complete() {
            // A file that cannot be removed does no harm.
            let remove = |runs: &Path| fs::remove_file(runs).unwrap_or_default();
            self.finished.iter().filter_map(|file| file.path.as_deref()).for_each(remove);
        }
        written.whole.iter_mut().for_each(|whole| whole.path = Some(self.directory.to_path_buf()));
        Ok((summary, written))
    }

    fn sort_and_merge(&mut self, pending: Vec<PendingInput>) -> Result<(Summary, WrittenFiles), CommandError> {
        let (job, names) = (self.job, self.names);
        let Some(sort) = &job.sort else { return Err(CommandError::Internal("no columns to sort by".to_string())) };
        let (encoder, files) = OutputFiles::create(job, names, !self.manifest.merge.is_null())?;
        let sorter = Sorter::new(names, sort, &job.policy, &encoder)?.with_runs_in_files();
        let summary = self.run_all(pending, |input, request| write_runs(&sorter, input, request))?;
        self.manifest.merge = json!(MERGING);
        self.manifest.write("the sorted runs are complete; run the job again to merge them")?;
        let written = self.merge(&sorter, files)?;
        let merged = written.files.iter().map(|file| finished_to_json(file, self.directory));
        self.manifest.merge = json!({"files": merged.collect::<Vec<_>>()});
        self.manifest.write(COMPLETE)?;
        Ok((summary, written))
    }

    /// Merges the runs of all inputs into the files of the output.
    fn merge(&self, sorter: &Sorter, mut files: OutputFiles) -> Result<WrittenFiles, CommandError> {
        let mut runs = sorter.new_runs();
        for path in self.finished.iter().filter_map(|file| file.path.as_deref()) {
            runs.add_file(path).map_err(SortError::from)?;
        }
        sorter.merge(&self.job.options, runs, |sorted| files.append_sorted(sorted))?;
        files.finish(self.job, self.manifest.rows())
    }

    /// Does `work` on all pending inputs, as many at once as there are threads and memory, and records each in the manifest
    /// when it is finished. The parts do not depend on the threads of a run.
    fn run_all(
        &mut self,
        pending: Vec<PendingInput>,
        work: impl Fn(PendingInput, RunRequest<'_>) -> Result<FinishedInput, CommandError> + Sync,
    ) -> Result<Summary, CommandError> {
        let Job { reporting, policy, options, max_runs, .. } = self.job;
        let len = pending.iter().map(|input| input.stamp.size).sum();
        let inputs = pending.into_iter().map(|input| (input.stamp.size, input)).collect();
        let ThreadShares { threads, runs } = ThreadShares::new(inputs, options.threads, *max_runs);
        let runs = runs.into_iter().map(|run| (run.threads, run));
        let (mut batch, mut recorded) = (Vec::new(), Instant::now());
        let take = |(index, finished): (usize, FinishedInput)| -> Result<(), CommandError> {
            let is_short = finished.elapsed < SHORT;
            batch.push((index, finished));
            if is_short && batch.len() < MAX_BATCH && recorded.elapsed() < SHORT {
                return Ok(());
            }
            self.record(std::mem::take(&mut batch))?;
            recorded = Instant::now();
            Ok(())
        };
        let (result, _) = watch(reporting, Some(len), |progress| {
            let work = |InputRun { index, input, threads }: InputRun<PendingInput>, _: &AtomicBool| {
                let options = RunOptions { threads, ..options.clone() };
                let request = RunRequest::new(input.sources(), &options, policy, progress);
                work(input, request).map(|finished| Some((index, finished))).map_err(RunError::Output)
            };
            run::as_finished(threads, runs, work, take)
        });
        // What was finished before an error is recorded. The error is the reason for what fails after it.
        let recorded = self.record(batch);
        result?;
        recorded?;
        Ok(std::mem::take(&mut self.summaries.total))
    }

    /// Gives parts their names and records their inputs, which have an index among the pending ones.
    fn record(&mut self, mut batch: Vec<(usize, FinishedInput)>) -> Result<(), CommandError> {
        let file =
            |(_, finished): &mut (usize, FinishedInput)| Some((finished.file.take()?, finished.input.part.clone()));
        commit_all(batch.iter_mut().filter_map(file).collect(), Existing::Replace).map_err(OutputError::from)?;
        for (index, FinishedInput { input, part, summary, hash, .. }) in batch {
            self.manifest.add(&input, &hash, &part, &summary)?;
            self.finished.push(part);
            self.summaries.add(index, summary);
        }
        Ok(())
    }

    /// Completes the summary of a run over the inputs at these places by the other inputs, because the report lists all.
    fn complete(&self, summary: &mut Summary, places: &[usize]) {
        summary.source_records = self.identities.iter().map(|input| self.manifest.rows_of(input)).collect();
        summary.source_formats = self.identities.iter().map(|input| self.manifest.format_of(input)).collect();
        summary.fault_examples.iter_mut().for_each(|example| example.source = places[example.source]);
        if let Some((first, count)) = self.manifest.others_than(self.identities) {
            let source = self.directory.display().to_string();
            let inputs = count_of(count as u64, "input");
            let text = format!("the directory also has parts of {inputs} not named now, such as {first}");
            summary.advice.push(Advice { source: Some(source), text });
        }
    }

    /// The files that an earlier run has merged, if it has.
    fn merged_files(&self) -> Result<Option<WrittenFiles>, CommandError> {
        let files = self.manifest.merge["files"].as_array().filter(|_| self.manifest.is_complete());
        let Some(files) = files else { return Ok(None) };
        let files: Vec<FinishedOutput> = files.iter().map(|file| finished_from_json(file, self.directory)).collect();
        for file in &files {
            file.path.as_deref().map_or(Ok(()), |path| check_merged(path, Some(file.bytes)))?;
        }
        check_merged(&self.job.layout.root(self.directory).join(MANIFEST), None)?;
        Ok(Some(WrittenFiles::in_directory(self.directory.to_path_buf(), files)))
    }
}

/// Refuses a finished file of a merge that does not exist any more, or has not the length with which it was finished.
fn check_merged(path: &Path, finished: Option<u64>) -> Result<(), CommandError> {
    let state = match (fs::metadata(path), finished) {
        (Err(_), _) => "no longer exists".to_string(),
        (Ok(file), Some(finished)) if file.len() != finished => {
            format!("has {} bytes instead of {finished} now", file.len())
        }
        _ => return Ok(()),
    };
    let path = path.display();
    Err(CommandError::Usage(format!(
        "{path}: the file was finished, but {state}; to start again, remove the files of this job and the directory {RUNS}"
    )))
}

fn write_part(job: &Job, input: PendingInput, request: RunRequest<'_>) -> Result<FinishedInput, CommandError> {
    let started = Instant::now();
    let output_options = job.output_options(std::slice::from_ref(&input.source.name));
    let arrangement = Arrangement { bloom: job.layout.arrangement.bloom, ..Arrangement::default() };
    let destination = Destination::File(input.part.clone());
    let (encoder, mut output) = output::create_arranged(&destination, output_options, &arrangement)?;
    let summary = run::canon_encoded(request, &encoder, None, |encoded| output.append(encoded))?;
    check_written(output.rows(), summary.rows)?;
    let hash = input.hash_unchanged(&summary)?;
    let (part, file) = output.finish_pending()?;
    Ok(FinishedInput { input, part, file, summary, hash, elapsed: started.elapsed() })
}

fn write_runs(sorter: &Sorter, input: PendingInput, request: RunRequest<'_>) -> Result<FinishedInput, CommandError> {
    let started = Instant::now();
    let mut runs = RunFileWriter::create(parent(&input.part)).map_err(SortError::from)?;
    // Not the number of the part, which depends on the manifest. `check_source_count` has checked that it is small.
    let summary = sorter.sort_runs(request, input.place as u32, |blocks| runs.add(blocks))?;
    if summary.rows > MAX_SORTED_SOURCE_ROWS {
        let message =
            format!("{}: --resume sorts at most {MAX_SORTED_SOURCE_ROWS} rows per input; divide it", input.source.name);
        return Err(CommandError::Input(message));
    }
    let hash = input.hash_unchanged(&summary)?;
    let (bytes, file) = runs.finish().map_err(SortError::from)?;
    let part = FinishedOutput { path: Some(input.part.clone()), bytes, rows: summary.rows, row_groups: 1 };
    Ok(FinishedInput { input, part, file: Some(file), summary, hash, elapsed: started.elapsed() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_inputs_of_a_sort_are_refused() {
        assert!(check_source_count(MAX_SORTED_SOURCES).is_ok());
        let error = check_source_count(MAX_SORTED_SOURCES + 1).unwrap_err().to_string();
        assert!(error.contains("at most 16777216 inputs, but there are 16777217"), "{error}");
    }
}
