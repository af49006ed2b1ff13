//! The `irikey` command: flags in; progress, summary, report and an exit code out.
//!
//! ```text
//! args        groups of flags -> options of the library
//! job         the job that the flags of canon and dedup describe
//! file_roles  no output is an input         files              the files of an output
//! manifest, resume                          jobs that can be interrupted
//! job_identity                              jobs that were done before
//! file_stamp  whether an input has changed
//! progress    progress bar, timeline        report             summary as text, JSON, HTML
//! usage       errors about flags            help               help texts, manual pages
//! canon, dedup, count, learn, ...           one module per command
//! ```
//!
//! Everything that depends on flags, on a terminal or on a clock is here. Rows and files are made by the modules below.

mod args;
mod bench;
mod canon;
mod check_sorted;
mod completions;
mod conform;
mod count;
mod dedup;
mod diff;
mod error;
mod eval;
mod explain;
mod extract;
mod file_roles;
mod file_stamp;
mod files;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod help;
mod job;
mod job_identity;
mod learn;
mod manifest;
mod progress;
mod report;
mod resume;
mod schema;
mod seen;
mod single_iri;
mod terminal;
mod usage;

use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use self::error::CommandError;
use crate::process::{self, exit};
use crate::remote::{has_options, transfer};

const EXAMPLES: &str = "\
Examples:
  Write the canonical URIs and keys of a list of URLs, or of any other file of a crawl:
      irikey canon urls.txt.gz -o urls.parquet

  Keep one row per key, and leave out what earlier crawls had:
      irikey dedup crawl.warc.gz --seen keys/ --update-seen -o new.parquet

  Show how one URL is read:
      irikey explain 'HTTP://Example.org:80/%7Euser'

  Show every flag of a command, with examples:
      irikey help canon";

/// Canonical URIs and 128-bit equivalence keys for crawl data, by RFC 3987 and RFC 3986.
#[derive(Debug, Parser)]
#[command(name = "irikey", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Canon(Box<canon::CanonArgs>),
    Dedup(Box<dedup::DedupArgs>),
    Count(Box<count::CountArgs>),
    Learn(Box<learn::LearnArgs>),
    Extract(Box<extract::ExtractArgs>),
    Explain(explain::ExplainArgs),
    Compare(single_iri::CompareArgs),
    Diff(Box<diff::DiffArgs>),
    CheckSorted(check_sorted::CheckSortedArgs),
    Seen(seen::SeenArgs),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    Man(help::ManArgs),
    #[command(hide = true)]
    Eval(eval::EvalArgs),
    #[command(hide = true)]
    Conform(conform::ConformArgs),
    #[command(hide = true)]
    Bench(bench::BenchArgs),
}

/// The declaration of the command line. Commands that are hidden in the main list are those for developers.
fn declaration() -> clap::Command {
    let command = help::with_short_help(Cli::command());
    let short = format!("{EXAMPLES}\n\n{}", help::developer_commands(&command));
    let long = format!("{short}\n\n{}", help::exit_statuses());
    command.after_help(short).after_long_help(long)
}

/// Runs the command that the arguments of the process name.
#[doc(hidden)]
pub fn main() -> ExitCode {
    ExitCode::from(main_with(std::env::args_os()))
}

/// Runs the command that `arguments` name, the name of the program first, and returns its exit code.
#[doc(hidden)]
pub fn main_with(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    // A program that embeds the command may run without standard handles.
    process::reserve_standard_handles();
    process::raise_open_file_limit();
    process::remove_temporary_files_on_signals();
    crate::input::set_panic_hook();
    let words: Vec<OsString> = arguments.into_iter().collect();
    let parsed = declaration().try_get_matches_from(&words).and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => {
            let (error, words) = with_similar_command(error, words);
            let printed = usage::print_usage(&error, &words, &declaration()).and_then(|()| io::stdout().flush());
            let printed = printed.and_then(|()| process::check_stdout());
            return if error.use_stderr() { exit::USAGE } else { terminal::status_of_print(printed) };
        }
    };
    // The panic hook has printed the place; unwinding removes temporary files.
    let status = catch_unwind(AssertUnwindSafe(|| run(&cli.command))).unwrap_or_else(|_| {
        terminal::print_error(
            "internal error: the command was stopped and its output removed; please report the lines above",
        );
        exit::INTERNAL
    });
    // A job that fails because a signal has removed its files ends by the signal.
    process::wait_if_terminating();
    status
}

/// The error about an unknown command after `help`, as without `help`: it names a command that is similar.
fn with_similar_command(error: clap::Error, mut words: Vec<OsString>) -> (clap::Error, Vec<OsString>) {
    if error.kind() == ErrorKind::InvalidSubcommand && words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        if let Err(similar) = declaration().try_get_matches_from(&words) {
            return (similar, words);
        }
    }
    (error, words)
}

fn run(command: &Command) -> u8 {
    let (name, result) = match command {
        Command::Canon(args) => ("canon", canon::run(args)),
        Command::Dedup(args) => ("dedup", dedup::run(args)),
        Command::Count(args) => ("count", count::run(args)),
        Command::Learn(args) => ("learn", learn::run(args)),
        Command::Extract(args) => ("extract", extract::run(args)),
        Command::Explain(args) => ("explain", explain::run(args)),
        Command::Compare(args) => ("compare", single_iri::run_compare(args)),
        Command::Diff(args) => ("diff", diff::run(args)),
        Command::CheckSorted(args) => ("check-sorted", check_sorted::run(args)),
        Command::Seen(args) => ("seen", seen::run(args)),
        Command::Schema(args) => ("schema", schema::run(args, &declaration())),
        Command::Completions(args) => ("completions", completions::run_completions(args, declaration())),
        Command::Man(args) => ("man", help::run_man(args, declaration())),
        Command::Eval(args) => ("eval", eval::run(args)),
        Command::Conform(args) => ("conform", conform::run(args)),
        Command::Bench(args) => ("bench", bench::run(args)),
    };
    let status = result.unwrap_or_else(|error: CommandError| error.report(name));
    if status == exit::SUCCESS && has_options() && transfer().is_none() {
        terminal::print_error(
            "--store-option has no effect, because no input and no output is in a store or on a server",
        );
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_declared_consistently() {
        declaration().debug_assert();
    }

    #[test]
    fn all_commands_are_described_and_developer_commands_stand_apart() {
        let mut command = declaration();
        for subcommand in command.get_subcommands() {
            let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
            let verb = about.split(' ').next().unwrap_or_default();
            assert!(verb.starts_with(char::is_uppercase) && !verb.ends_with('s'), "{}: {about}", subcommand.get_name());
        }
        let help = command.render_help().to_string();
        let (main, developer) = help.split_once("Developer commands:").expect("a section for developers");
        for name in ["eval", "conform", "bench"] {
            assert!(!main.contains(&format!("\n  {name} ")) && developer.contains(&format!("\n  {name} ")), "{help}");
        }
    }
}
