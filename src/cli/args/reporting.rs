//! The flags that say what a person or a script is told.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Whether to show something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// When stderr is a terminal
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Flags of every command that reads inputs to their end.
#[derive(Debug, Args)]
pub struct ReportingArgs {
    /// Write the closing numbers, the policy and all errors to FILE: as a page with plots to .html, as text to .txt, else
    /// as JSON. Of dedup, canon and sort; other commands write JSON
    #[arg(long, value_name = "FILE", help_heading = "Reporting")]
    report: Option<PathBuf>,
    /// Exit with status 3 when a record has a fault; the output is written all the same
    #[arg(long, help_heading = "Reporting")]
    fail_on_fault: bool,
    /// No closing summary and no progress; errors are still told
    #[arg(short, long, conflicts_with = "progress", help_heading = "Reporting")]
    quiet: bool,
    /// Show a progress bar on stderr
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto, help_heading = "Reporting")]
    progress: When,
}

/// What is told.
#[derive(Clone, Debug)]
pub struct Reporting {
    /// Where the report goes.
    pub report: Option<PathBuf>,
    /// Faults make the exit status 3.
    pub fail_on_fault: bool,
    /// Errors only.
    pub quiet: bool,
    /// Whether to show progress.
    pub progress: When,
}

impl ReportingArgs {
    /// The report is one that people read.
    pub fn is_for_people(&self) -> bool {
        let suffix = self.report.as_ref().and_then(|path| path.extension()?.to_str());
        matches!(suffix, Some("html" | "htm" | "txt"))
    }

    /// What the flags mean.
    pub fn reporting(&self) -> Reporting {
        Reporting {
            report: self.report.clone(),
            fail_on_fault: self.fail_on_fault,
            quiet: self.quiet,
            progress: if self.quiet { When::Never } else { self.progress },
        }
    }
}
