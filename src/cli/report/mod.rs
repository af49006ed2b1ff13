//! The report of a job: the summary of its run and what the job knows besides, as text for the terminal, as JSON and as an
//! HTML page for `--report`.

mod advice;
mod chart;
mod contents;
mod html;
mod page;
mod survey;
mod text;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

pub(crate) use self::advice::advice;
pub(crate) use self::chart::{Bar, bar_chart};
use self::contents::advice_to_json;
pub(crate) use self::contents::{
    CollisionReport, DedupReport, Report, ResumedInputs, SourceError, counts, pairs_to_json, replaced_to_json,
};
pub(crate) use self::html::{Table, chart_and_table, escape, section, settings, share};
pub(crate) use self::page::{document, input_errors};
pub(crate) use self::text::{formats_to_text, replaced_to_text};
use super::args::{ReportFormat, ReportingArgs};
use super::error::CommandError;
use super::terminal::{print_error, print_json, print_lines, print_to_stderr, visible};
use crate::output::{OutputError, write_file};
use crate::process::{error_and_remedy, exit};
use crate::run::Summary;

/// The state of an output that was not written, because an input has an error and there are no records.
pub(crate) const NO_OUTPUT: &str = "there is no output";

/// How a run ended: what is printed at its end, and what its exit code depends on.
pub(crate) struct RunOutcome<'a> {
    errors: &'a [SourceError],
    summary: &'a Summary,
    /// Number of records with a fault, also of earlier runs of a resumed job.
    faulty: u64,
    /// Whether the output exists, for an error of the report.
    output_state: &'static str,
}

impl<'a> RunOutcome<'a> {
    /// The outcome of a run with this summary, whose inputs had these errors.
    pub(crate) fn new(summary: &'a Summary, errors: &'a [SourceError]) -> RunOutcome<'a> {
        let output_state = "the output is complete";
        RunOutcome { errors, summary, faulty: summary.tally.faulty, output_state }
    }

    /// Prints errors, `text`, which is the summary, and advice; writes the report if one is requested, and returns the exit code.
    /// A report as text has advice and errors after what `render` gives.
    pub(crate) fn conclude(
        &self,
        reporting: &ReportingArgs,
        text: &str,
        render: impl FnOnce(ReportFormat) -> String,
    ) -> Result<u8, CommandError> {
        let messages = self.errors.iter().map(|SourceError { source, message }| format!("{source}: {message}"));
        let advice = advice(self.summary);
        messages.clone().for_each(|message| print_error(&message));
        if !reporting.quiet {
            print_to_stderr(text);
            advice.iter().for_each(|advice| print_error(&advice.to_string()));
        }
        if let Some(path) = &reporting.report {
            let format = ReportFormat::of_path(path);
            let mut report = render(format);
            if format == ReportFormat::Text {
                report.extend(advice.iter().map(|advice| format!("{}\n", visible(&advice.to_string()))));
                messages.for_each(|message| report += &format!("error: {}\n", visible(&message)));
            }
            write_report(reporting, path, &report, self.output_state)?;
        }
        Ok(self.status(reporting.fail_on_fault))
    }

    /// The exit code. `fail_on_fault`: faults of records count.
    fn status(&self, fail_on_fault: bool) -> u8 {
        match self.errors {
            [_, ..] => exit::INPUT,
            [] if fail_on_fault && self.faulty > 0 => exit::FAULTS,
            [] => exit::SUCCESS,
        }
    }
}

impl Report {
    /// Prints errors and summary, writes the report, and returns the exit code.
    pub(crate) fn conclude(&self, reporting: &ReportingArgs) -> Result<u8, CommandError> {
        let render = |format: ReportFormat| match format {
            ReportFormat::Page => page::page(self),
            ReportFormat::Text => text::summary(self),
            ReportFormat::Json => format!("{:#}\n", self.to_json()),
        };
        self.outcome().conclude(reporting, &text::summary(self), render)?;
        Ok(self.status(reporting.fail_on_fault))
    }

    /// The exit code of the job, if its report can be written. `fail_on_fault`: faults of records count.
    pub(crate) fn status(&self, fail_on_fault: bool) -> u8 {
        match (&self.dedup, self.errors.is_empty()) {
            (Some(DedupReport { collisions: Some((1.., _)), .. }), true) => exit::COLLISION,
            _ => self.outcome().status(fail_on_fault),
        }
    }

    fn outcome(&self) -> RunOutcome<'_> {
        let outcome = RunOutcome::new(&self.summary, &self.errors);
        let faulty = outcome.faulty + self.resumed.map_or(0, |resumed| resumed.faulty);
        let output_state = if self.output.is_some() { outcome.output_state } else { NO_OUTPUT };
        RunOutcome { faulty, output_state, ..outcome }
    }
}

/// The result of a command that prints it on standard output, and its report.
pub(crate) struct PrintedResult<'a> {
    pub(crate) command: &'static str,
    pub(crate) summary: &'a Summary,
    /// Files that the report replaces.
    pub(crate) replaced: &'a [PathBuf],
    pub(crate) text: String,
    /// What `--json` prints.
    pub(crate) json: Value,
    /// The report, see [`with_run_figures`].
    pub(crate) report: Value,
    /// The result in the report as a page.
    pub(crate) tables: Vec<Table>,
}

impl PrintedResult<'_> {
    /// Prints the result, errors and messages, writes the report, and returns the exit code.
    pub(crate) fn conclude(self, is_json: bool, reporting: &ReportingArgs) -> Result<u8, CommandError> {
        let status = if is_json { print_json(&format!("{:#}\n", self.json)) } else { print_lines(&self.text) };
        if status != exit::SUCCESS {
            return Ok(status);
        }
        let summary = self.summary;
        let messages = formats_to_text(summary) + &replaced_to_text(self.replaced);
        let errors = SourceError::of_run(summary);
        RunOutcome::new(summary, &errors).conclude(reporting, &messages, |format| match format {
            ReportFormat::Page => page_of_tables(self.command, &self.tables, Some(summary)),
            ReportFormat::Text => self.text,
            ReportFormat::Json => format!("{:#}\n", self.report),
        })
    }
}

/// Returns the report of a command as a page that has tables only: these, and what the summary of a run says about its inputs.
pub(crate) fn page_of_tables(command: &str, tables: &[Table], summary: Option<&Summary>) -> String {
    let title = format!("irikey {command} report");
    let tables: String = tables.iter().map(Table::to_html).collect();
    let mut html = format!("<header>\n<h1>{title}</h1>\n</header>\n<section>\n{tables}</section>\n");
    if let Some(summary) = summary {
        page::advice_section(&mut html, summary);
        input_errors(&mut html, &SourceError::of_run(summary));
    }
    document(&title, &html)
}

/// Adds the figures of a run to a JSON object.
pub(crate) fn with_run_figures(mut json: Value, summary: &Summary) -> Value {
    json["formats"] = counts(summary.sources_by_format()).into();
    json["input_bytes"] = summary.bytes.into();
    json["peak_memory_bytes"] = summary.memory.peak_resident.into();
    json["peak_anonymous_bytes"] = summary.memory.peak_anonymous.into();
    json["advice"] = advice_to_json(summary);
    json["errors"] = SourceError::of_run(summary).iter().map(SourceError::to_json).collect();
    json
}

/// Returns the error of a job after its report. If the reader of standard output closed it early, the job ended there, and the
/// report says only this: how many records were counted until then depends on timing.
pub(crate) fn after_closed_pipe(error: CommandError, reporting: &ReportingArgs) -> CommandError {
    const CLOSED: &str = "the reader of the output closed it before the end, so the job was stopped and has no counts";
    let (CommandError::Output(OutputError::ClosedPipe), Some(path)) = (&error, &reporting.report) else { return error };
    let report = match ReportFormat::of_path(path) {
        ReportFormat::Page => document("irikey report", &format!("<header>\n<p>{CLOSED}</p>\n</header>\n")),
        ReportFormat::Text => format!("{CLOSED}\n"),
        ReportFormat::Json => format!("{:#}\n", json!({"output_closed_early": true})),
    };
    write_report(reporting, path, &report, CLOSED).err().unwrap_or(error)
}

/// Writes a report. An error ends with `state`, that of the output.
pub(crate) fn write_report(
    reporting: &ReportingArgs,
    path: &Path,
    report: &str,
    state: &str,
) -> Result<(), CommandError> {
    let failed = |error: OutputError| match error {
        OutputError::Io { place, operation, error, .. } => {
            format!("--report {place}: cannot {operation}: {}; {state}", error_and_remedy(&error))
        }
        error => format!("--report: {error}; {state}"),
    };
    write_file(&reporting.replace.file(path), report.as_bytes()).map_err(|error| CommandError::SideFile(failed(error)))
}
