//! The flags that say what is reported on stderr, to a file and by the exit code.

use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::output::ReplaceArgs;
use crate::cli::file_roles::FileRoles;

/// When to show a progress bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowProgress {
    /// When stderr is a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The format of a report, by the suffix of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    /// An HTML page.
    Page,
    Text,
    Json,
}

impl ReportFormat {
    pub(crate) fn of_path(path: &Path) -> ReportFormat {
        let suffix = path.extension().unwrap_or_default();
        match ["html", "htm", "txt"].into_iter().find(|known| suffix.eq_ignore_ascii_case(known)) {
            Some("html" | "htm") => ReportFormat::Page,
            Some(_) => ReportFormat::Text,
            None => ReportFormat::Json,
        }
    }
}

/// The help of `--no-clobber` for a command whose only file is the report.
pub(crate) const NO_CLOBBER_REPORT_HELP: &str = "\
Do not replace the report: if it exists, exit with code 2 before anything is read; if it appears while the job runs, \
exit with code 5";

/// Flags of every command that reads inputs to their end.
#[derive(Debug, Args)]
pub(crate) struct ReportingArgs {
    #[command(flatten)]
    pub(crate) replace: ReplaceArgs,
    /// Write counts and errors to FILE: as a page if it ends in .html, as text if it ends in .txt, otherwise as JSON
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(check_report_path), help_heading = "Reporting")]
    pub(crate) report: Option<PathBuf>,
    /// Exit with code 3 if a record has a fault; the output is complete nevertheless
    #[arg(long, help_heading = "Reporting")]
    pub(crate) fail_on_fault: bool,
    /// Print neither summary nor progress, only errors
    #[arg(short, long, conflicts_with = "progress", help_heading = "Reporting")]
    pub(crate) quiet: bool,
    /// Show a progress bar on stderr
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ShowProgress::Auto, help_heading = "Reporting")]
    progress: ShowProgress,
}

impl ReportingArgs {
    /// The files of a command with these arguments, without its outputs and other inputs.
    pub(crate) fn files(&self, arguments: &[PathBuf]) -> FileRoles {
        FileRoles::new(arguments, self.replace.no_clobber, self.report.as_deref())
    }

    /// When to show a progress bar.
    pub(crate) fn progress(&self) -> ShowProgress {
        if self.quiet { ShowProgress::Never } else { self.progress }
    }

    /// What was counted is printed or written to a file.
    pub(crate) fn has_summary(&self) -> bool {
        !self.quiet || self.report.is_some()
    }

    /// The report is for people, not for programs.
    pub(crate) fn is_for_people(&self) -> bool {
        self.report.as_deref().is_some_and(|path| ReportFormat::of_path(path) != ReportFormat::Json)
    }
}

/// Refuses the name by which other flags mean standard output.
fn check_report_path(path: PathBuf) -> Result<PathBuf, &'static str> {
    if path.as_os_str() == "-" { Err("name a file; /dev/stdout is standard output") } else { Ok(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_of_a_report_may_have_any_case() {
        let format = |name: &str| ReportFormat::of_path(Path::new(name));
        assert_eq!([format("a.html"), format("A.HTM")], [ReportFormat::Page; 2]);
        assert_eq!(
            (format("a.TXT"), format("a.json"), format("html")),
            (ReportFormat::Text, ReportFormat::Json, ReportFormat::Json)
        );
    }
}
