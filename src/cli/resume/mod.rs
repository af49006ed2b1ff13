//! A job that can be taken up again: `--resume`. In: inputs and a directory. Out: a part for each input, and a manifest
//! that names inputs, policy and finished parts, written anew after every part. Whenever the job ends, however it ends, a
//! second run finds in it what is done and does the rest; the directory is then the same as that of one run. What is sorted
//! or partitioned has runs instead of parts, which are merged at the end: [`sorted`].
//!
//! A run under another policy is refused, and so is an input that is not what it was: its part would not be that of its
//! name.

mod manifest;
mod sorted;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::canon::{Failure, bar, output_options, report};
use super::canon_args::Job;
use super::drive::{self, Ran};
use super::files::Written;
use super::report::Report;
use crate::input::{Origin, Source, Sources};
use crate::output::{self, Arrangement, Destination, FinishedOutput};
use crate::run::{self, Progress, RunError};
use manifest::{Manifest, Rest, Task, hash, policy, remove_leftovers};

/// Does what is not done yet.
pub(super) fn perform(job: &Job) -> Result<Report, Failure> {
    let directory = match &job.outputs.destination {
        Destination::File(path) => path.clone(),
        Destination::Stdout => return Err(Failure::Usage("--resume makes files; name their directory with -o".into())),
    };
    if job.outputs.sorting.is_sorted() {
        return sorted::perform(job, &directory);
    }
    let begun = Instant::now();
    make_directory(&directory)?;
    remove_leftovers(&directory);
    let sources = drive::sources(&job.inputs).map_err(Failure::Input)?;
    let names = sources.names();
    let mut manifest = Manifest::open(&directory, policy(job))?;
    let Rest { tasks, mut files, mut errors } = manifest.rest(sources, &directory, job.outputs.format.suffixes()[0])?;
    let resumed = files.len() as u64;
    let progress = Arc::new(Progress::new());
    let bar = bar(job.reporting.progress, None, &progress);
    let work = |task: Task, threads: usize| one(job, task, threads, &progress);
    let ran = run_all(job.work.threads, tasks, &mut manifest, &mut files, work);
    drop(bar);
    let mut ran = ran?;
    errors.append(&mut ran.errors);
    ran.errors = errors;
    let Written { all, files } = Written::of(directory, files);
    let report = report(job, names, ran, all, begun.elapsed());
    Ok(Report { files, resumed: Some(resumed), ..report })
}

/// Several inputs side by side while there are enough of them, and one with all threads otherwise: parts are the same.
fn run_all(
    threads: usize,
    tasks: Vec<Task>,
    manifest: &mut Manifest,
    files: &mut Vec<FinishedOutput>,
    work: impl Fn(Task, usize) -> Result<Done, Failure> + Sync,
) -> Result<Ran, Failure> {
    let (beside, threads) = if tasks.len() >= threads { (threads, 1) } else { (1, threads) };
    let mut all = Ran::default();
    let mut tasks = tasks.into_iter();
    let append = |Done { task, finished, ran, hash }: Done| {
        manifest.add(&task, &hash, &finished, ran.errors.first().map(|error| error.message.as_str()))?;
        files.push(finished);
        all.add(ran);
        Ok(())
    };
    run::produced_in_order(beside, || Ok(tasks.next()), |task| work(task, threads), append).map_err(
        |error| match error {
            RunError::Output(failure) => failure,
            RunError::Threads(message) | RunError::Panicked(message) => Failure::Internal(message),
            _ => Failure::Internal("the inputs could not be shared out".into()),
        },
    )?;
    Ok(all)
}

/// An input that is done: its part, what it came to, and what it was.
struct Done {
    task: Task,
    finished: FinishedOutput,
    ran: Ran,
    hash: String,
}

/// The input of a task, to be opened.
fn source(task: &Task) -> Result<Sources, Failure> {
    match &task.source.origin {
        Origin::Path(path) => match Source::path(path.clone()) {
            Ok(source) => Ok(Sources(vec![source])),
            Err(error) => Err(Failure::Input(error.to_string())),
        },
        _ => Err(Failure::Usage("--resume takes files".into())),
    }
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    let failed = |error| Failure::Temporary(format!("{}: cannot make the directory: {error}", path.display()));
    fs::create_dir_all(path).map_err(failed)
}

/// One input from its first byte to its part's name.
fn one(job: &Job, task: Task, threads: usize, progress: &Progress) -> Result<Done, Failure> {
    let sources = source(&task)?;
    let options = output_options(&job.outputs, &job.policy, std::slice::from_ref(&task.source.name));
    let arrangement = Arrangement { bloom: job.outputs.sorting.bloom, ..Arrangement::default() };
    let destination = Destination::File(task.part.clone());
    let (encoder, mut output) = output::create_arranged(&destination, options, &arrangement)?;
    let mut how = drive::options(&job.inputs, &job.work, job.outputs.row_group_len);
    how.threads = threads;
    let encode = |rows: &mut _, runs: &[_]| encoder.encode(rows, runs);
    let append = |part| output.append(part);
    let summary = run::canon(
        run::RunRequest::new(sources, &how, &job.policy, progress),
        |group| encode(group.rows, group.runs).map(Some),
        append,
    )?;
    if output.rows() != summary.rows {
        return Err(Failure::Internal(format!("{} rows of {} were written", output.rows(), summary.rows)));
    }
    let finished = output.finish()?;
    let hash = hash(&task.source)?;
    Ok(Done { task, finished, ran: drive::ran(summary), hash })
}
