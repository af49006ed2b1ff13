//! `canon`: a job from its flags to its exit status. In: flags. Out: the output, a summary on stderr, the report.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::args::{Outputs, Reporting, When};
use super::canon_args::{CanonArgs, Job};
use super::drive::{self, Ran};
use super::files::{Files, Written};
use super::progress::{Bar, Sample};
use super::report::{DedupReport, Report};
use super::{page, resume, say, summary};
use crate::canon::{Policy, RecipeColumn};
use crate::output::{self, FinishedOutput, OutputError, OutputOptions};
use crate::process::exit;
use crate::run::{Progress, RunError, SortError};

/// Why a job ended without its output.
pub(super) enum Failure {
    Usage(String),
    Input(String),
    Output(OutputError),
    /// A file beside the output that the job needs.
    Temporary(String),
    Internal(String),
}

impl<E: Into<Failure> + std::fmt::Display> From<RunError<E>> for Failure {
    fn from(error: RunError<E>) -> Failure {
        match error {
            RunError::Output(error) => error.into(),
            RunError::Columns { .. } | RunError::Threads(_) | RunError::TooMuchText(_) => {
                Failure::Usage(error.to_string())
            }
            RunError::Panicked(_) | RunError::Unbalanced { .. } => Failure::Internal(error.to_string()),
        }
    }
}

impl From<SortError> for Failure {
    fn from(error: SortError) -> Failure {
        match error {
            SortError::Output(error) => Failure::Output(error),
            SortError::Spill(error) => Failure::Temporary(error.to_string()),
            SortError::Lost { .. } => Failure::Internal(error.to_string()),
        }
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Failure {
        Failure::Output(error)
    }
}

pub(super) fn run(args: &CanonArgs) -> u8 {
    let job = match args.job() {
        Ok(job) => job,
        Err(message) => return fail(&format!("{message}\nFor more, try 'irikey canon --help'."), exit::USAGE),
    };
    let done = if job.outputs.sorting.resume { resume::perform(&job) } else { perform(&job) };
    match done {
        Ok(report) => close(&job.reporting, &report, &summary(&report)),
        Err(failure) => failure.tell(),
    }
}

impl Failure {
    /// Tells a person; gives the exit status.
    pub(super) fn tell(self) -> u8 {
        match self {
            Failure::Output(OutputError::ClosedPipe) => exit::SUCCESS,
            Failure::Output(error) => fail(&error.to_string(), exit::OUTPUT),
            Failure::Temporary(message) => fail(&message, exit::OUTPUT),
            Failure::Usage(message) => fail(&message, exit::USAGE),
            Failure::Input(message) => fail(&message, exit::INPUT),
            Failure::Internal(message) => fail(&format!("internal error: {message}; please report it"), exit::INTERNAL),
        }
    }
}

pub(super) fn fail(message: &str, status: u8) -> u8 {
    say(message);
    status
}

/// Everything up to the output's final name.
fn perform(job: &Job) -> Result<Report, Failure> {
    let begun = Instant::now();
    let sources = drive::sources(&job.inputs).map_err(Failure::Input)?;
    let (names, total) = (sources.names(), sources.total_len());
    let (encoder, mut files) = Files::create(job, &names)?;
    let progress = Arc::new(Progress::new());
    let bar = bar(job.reporting.progress, total, &progress);
    let ran = drive::run(job, sources, &encoder, &mut files, &progress);
    drop(bar);
    let ran = ran?;
    let Written { all, files } = files.finish(job, &ran.tally)?;
    let report = report(job, names, ran, all, begun.elapsed());
    Ok(Report { files, ..report })
}

/// The numbers of a run that wrote its output.
pub(super) fn report(job: &Job, sources: Vec<String>, ran: Ran, output: FinishedOutput, elapsed: Duration) -> Report {
    Report {
        sources,
        tally: ran.tally,
        has_spoofing_flags: job.policy.spoofing_flags,
        has_equivalences: job.policy.equivalences.is_some(),
        headers: ran.headers,
        skipped: ran.skipped,
        recipes: job.policy.recipes.iter().map(RecipeColumn::describe).collect(),
        distinct: ran.distinct,
        distinct_is_exact: ran.distinct_is_exact,
        input_bytes: ran.input_bytes,
        elapsed,
        peak_memory: ran.peak_memory,
        peak_anonymous: ran.peak_anonymous,
        threads: job.work.threads,
        policy: job.policy.describe(),
        output_format: job.outputs.format.name(),
        output: Some(output),
        errors: ran.errors,
        files: Vec::new(),
        resumed: None,
        timeline: Vec::new(),
        findings: None,
        dedup: None,
    }
}

/// A bar that shows how far a run is.
pub(super) fn bar(when: When, total: Option<u64>, progress: &Arc<Progress>) -> Option<Bar> {
    let progress = progress.clone();
    Bar::start(when, total, move || Sample { bytes: progress.read(), records: progress.records() })
}

pub(super) fn output_options(outputs: &Outputs, policy: &Policy, sources: &[String]) -> OutputOptions {
    OutputOptions {
        format: outputs.format,
        compression: outputs.compression,
        columns: outputs.columns.clone(),
        policy: policy.clone(),
        metadata: output::metadata(policy, sources.len()),
        sources: sources.to_vec(),
    }
}

/// Tells what the run came to; gives the exit status.
pub(super) fn close(reporting: &Reporting, report: &Report, summary: &str) -> u8 {
    for error in &report.errors {
        say(&format!("{}: {}", error.source, error.message));
    }
    if !reporting.quiet {
        eprint_all(summary);
    }
    if let Some(path) = &reporting.report
        && let Err(error) = write_report(path, report)
    {
        return fail(
            &format!("{}: cannot write the report: {error}; the output is whole", path.display()),
            exit::OUTPUT,
        );
    }
    match report {
        Report { dedup: Some(DedupReport { collisions: Some((1.., _)), .. }), .. } => exit::COLLISION,
        Report { errors, .. } if !errors.is_empty() => exit::INPUT,
        Report { tally, .. } if reporting.fail_on_fault && tally.faulty > 0 => exit::FAULTS,
        _ => exit::SUCCESS,
    }
}

/// In the form that the name's suffix asks for.
fn write_report(path: &Path, report: &Report) -> std::io::Result<()> {
    let text = match path.extension().and_then(|suffix| suffix.to_str()) {
        Some("html" | "htm") => page::page(report),
        Some("txt") => summary(report),
        _ => format!("{:#}\n", report.to_json()),
    };
    std::fs::write(path, text)
}

/// On stderr, whoever listens.
fn eprint_all(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes());
}
