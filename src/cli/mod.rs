//! The person at the terminal: flags in; progress, summary, report and an exit status out.
//!
//! ```text
//! command line --clap--> CanonArgs --job--> Job --drive--> Report --> summary on stderr, --report FILE
//! ```
//!
//! Rows and files are made in the rooms below; here is only what depends on flags, a terminal, a clock.

mod args;
mod bench;
mod canon;
mod canon_args;
mod check_sorted;
mod compare;
mod conform;
mod count;
mod dedup;
mod dedup_args;
mod diff;
mod drive;
mod eval;
mod explain;
mod extract;
mod files;
mod learn;
mod page;
mod progress;
mod reading;
mod report;
mod resume;
mod schema;
mod seen;
mod size;
mod summary;
mod timeline;

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::process::{self, exit};

pub use args::{
    FormArgs, InputArgs, InputFormat, Inputs, OutputArgs, Outputs, Reporting, ReportingArgs, When, Work, WorkArgs,
};
pub use canon_args::{CanonArgs, Job};
pub use report::{InputFailure, Report};
pub use size::parse_size;
pub use summary::summary;
pub use timeline::Moment;

/// Canonical URIs and 128-bit equivalence keys for crawl data, by RFC 3987 and RFC 3986.
#[derive(Debug, Parser)]
#[command(name = "irikey", version, max_term_width = 100, after_long_help = exit_help())]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the canonical URI and the key of every URL of the inputs
    Canon(Box<CanonArgs>),
    /// Write one row of each key: what canon writes, without duplicates
    Dedup(Box<dedup_args::DedupArgs>),
    /// Count the distinct URLs of the inputs on every rung
    Count(Box<count::CountArgs>),
    Learn(Box<learn::LearnArgs>),
    /// Look at a store of seen keys, check it, or merge its runs
    Seen(seen::SeenArgs),
    /// Print the columns of the output with their meaning, and the names of flags, changes and faults
    Schema(schema::SchemaArgs),
    Explain(explain::ExplainArgs),
    Compare(compare::CompareArgs),
    Diff(Box<diff::DiffArgs>),
    Eval(eval::EvalArgs),
    Bench(bench::BenchArgs),
    Conform(conform::ConformArgs),
    CheckSorted(check_sorted::CheckSortedArgs),
    Extract(Box<extract::ExtractArgs>),
}

/// The exit statuses, for the end of a help text.
fn exit_help() -> String {
    let lines: Vec<_> = exit::ALL.iter().map(|(status, meaning)| format!("  {status}  {meaning}")).collect();
    format!("Exit status:\n{}", lines.join("\n"))
}

/// Runs the command that the process was given.
pub fn main() -> ExitCode {
    process::remove_temporary_files_on_signals();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help asked for goes to standard output, where a reader may have gone; a mistake goes to stderr.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::SUCCESS });
        }
    };
    // The panic hook has already said where it was; the output's temporary file goes as the stack unwinds.
    let status = catch_unwind(AssertUnwindSafe(|| run(cli))).unwrap_or_else(|_| {
        say("internal error: the run has stopped and its output was removed; please report the lines above");
        exit::INTERNAL
    });
    ExitCode::from(status)
}

fn run(cli: Cli) -> u8 {
    match cli.command {
        Command::Canon(args) => canon::run(&args),
        Command::Dedup(args) => dedup::run(&args),
        Command::Count(args) => count::run(&args),
        Command::Learn(args) => learn::run(&args),
        Command::Seen(args) => seen::run(&args),
        Command::Schema(args) => schema::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Conform(args) => conform::run(&args),
        Command::CheckSorted(args) => check_sorted::run(&args),
        Command::Extract(args) => extract::run(&args),
    }
}

/// One message on stderr. A stderr that is closed is nobody's business.
fn say(message: &str) {
    let _ = writeln!(std::io::stderr(), "irikey: {message}");
}

/// Text on standard output; gives the exit status. A reader who has gone has read enough.
fn print(text: &str) -> u8 {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => exit::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit::SUCCESS,
        Err(error) => {
            say(&format!("standard output: cannot write: {error}"));
            exit::OUTPUT
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn flags_are_declared_consistently() {
        super::Cli::command().debug_assert();
    }
}
