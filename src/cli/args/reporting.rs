//! The flags that say what is reported on stderr, to a file and by the exit status.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::output::ReplaceArgs;

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

/// Flags of every command that reads inputs to their end.
#[derive(Debug, Args)]
pub(crate) struct ReportingArgs {
    #[command(flatten)]
    pub(crate) replace: ReplaceArgs,
    /// Write counts, policy and errors to FILE: .html is a page with plots, .txt is text, anything else is JSON. Commands
    /// other than canon, dedup and learn always write JSON
    #[arg(long, value_name = "FILE", help_heading = "Reporting")]
    pub(crate) report: Option<PathBuf>,
    /// Exit with status 3 if a record has a fault; the output is written all the same
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
    /// When to show a progress bar.
    pub(crate) fn progress(&self) -> ShowProgress {
        if self.quiet { ShowProgress::Never } else { self.progress }
    }

    /// The report is for people, not for programs.
    pub(crate) fn is_for_people(&self) -> bool {
        let suffix = self.report.as_ref().and_then(|path| path.extension()?.to_str());
        matches!(suffix, Some("html" | "htm" | "txt"))
    }
}
