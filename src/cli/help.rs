//! What is generated from the declaration of the command line: parts of help texts, and manual pages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;

use super::args::named_path;
use super::error::CommandError;
use super::terminal::print;
use crate::output::{Destination, write_file};
use crate::process::exit;

/// The exit codes of all commands, for the end of the main help text.
pub(crate) fn exit_statuses() -> String {
    let lines: Vec<_> = exit::ALL.iter().map(|(status, meaning)| format!("  {status}  {}", wrapped(meaning))).collect();
    format!("Exit codes:\n{}", lines.join("\n"))
}

/// Text in lines of at most 95 characters, all but the first of which are indented by 5 spaces. The help is at most 100
/// columns wide, and would continue lines at its margin.
fn wrapped(text: &str) -> String {
    let (mut out, mut len) = (String::new(), 0);
    for word in text.split(' ') {
        if len + 1 + word.len() > 95 {
            out.push_str("\n    ");
            len = 0;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        len += word.len() + 1;
    }
    out
}

/// Commands with so many flags that their short help shows [`COMMON_FLAGS`] only.
const LONG_COMMANDS: [&str; 8] = ["canon", "dedup", "count", "learn", "diff", "extract", "explain", "compare"];

/// The flags that most users of a command need.
const COMMON_FLAGS: [&str; 35] = [
    "inputs",
    "iris",
    "a",
    "b",
    "help",
    "format",
    "column",
    "limit",
    "base",
    "drop_fragment",
    "assume_scheme",
    "profile",
    "rung",
    "strict",
    "key",
    "equivalences",
    "output",
    "output_format",
    "columns",
    "compression",
    "sort",
    "part_rows",
    "resume",
    "keep",
    "seen",
    "update_seen",
    "duplicates",
    "approximate",
    "json",
    "validate",
    "examples",
    "report",
    "threads",
    "memory",
    "quiet",
];

/// Hides what few users need from the help that `-h` prints; `--help` prints everything.
pub(crate) fn with_short_help(command: Command) -> Command {
    let shorten = |command: Command| {
        command.mut_args(|flag| {
            let is_common = COMMON_FLAGS.contains(&flag.get_id().as_str());
            if is_common { flag } else { flag.hide_short_help(true) }
        })
    };
    LONG_COMMANDS.iter().fold(command, |command, name| command.mut_subcommand(*name, shorten))
}

/// Examples, and where exit codes are listed, for the end of a long help text.
pub(crate) fn long_examples(examples: &str) -> String {
    format!("{examples}\n\nExit codes: 0 is success; `irikey help` lists all of them.")
}

/// The list of hidden commands, for the end of the main help text.
pub(crate) fn developer_commands(command: &Command) -> String {
    let hidden = command.get_subcommands().filter(|subcommand| subcommand.is_hide_set());
    let lines = hidden.map(|subcommand| {
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        format!("\n  {:12}  {about}", subcommand.get_name())
    });
    format!("Developer commands:{}", lines.collect::<String>())
}

const MAN_EXAMPLES: &str = "\
Examples:
  irikey man canon | man -l -
  irikey man --out ~/.local/share/man/man1";

/// Print a manual page, or write the pages of all commands to a directory
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// The command whose page is printed [default: the page of irikey, which lists the commands]
    #[arg(value_name = "COMMAND", conflicts_with = "out")]
    command: Option<String>,
    /// Write irikey.1 and a page for each command to this directory
    #[arg(long, value_name = "DIR", value_parser = named_path())]
    out: Option<PathBuf>,
}

pub(crate) fn run_man(args: &ManArgs, mut command: Command) -> Result<u8, CommandError> {
    command.build();
    let Some(directory) = &args.out else { return Ok(print(&page(page_command(args, &command)?))) };
    fs::create_dir_all(directory).map_err(|error| CommandError::side_file(directory, "create the directory", error))?;
    write_pages(&command, "irikey", directory)?;
    Ok(exit::SUCCESS)
}

/// The command whose page is printed.
fn page_command<'a>(args: &ManArgs, command: &'a Command) -> Result<&'a Command, CommandError> {
    let Some(name) = &args.command else { return Ok(command) };
    let unknown = || CommandError::Usage(format!("irikey has no command `{name}`; 'irikey help' lists the commands"));
    command.find_subcommand(name).ok_or_else(unknown)
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: &Command, name: &str, directory: &std::path::Path) -> Result<(), CommandError> {
    let path = directory.join(format!("{name}.1"));
    write_file(&Destination::File(path), page(command).as_bytes())?;
    let mut subcommands = command.get_subcommands().filter(|subcommand| subcommand.get_name() != "help");
    subcommands
        .try_for_each(|subcommand| write_pages(subcommand, &format!("{name}-{}", subcommand.get_name()), directory))
}

/// The manual page of a command, with the flags that its short help does not show.
fn page(command: &Command) -> String {
    let mut page = Vec::new();
    let command = command.clone().mut_args(|flag| flag.hide_short_help(false));
    // Writing to a vector does not fail.
    let _ = Man::new(command).render(&mut page);
    String::from_utf8_lossy(&page).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_flags_exist() {
        let command = super::super::declaration();
        let commands = LONG_COMMANDS.map(|name| command.find_subcommand(name).expect("a command of this name"));
        for flag in COMMON_FLAGS.into_iter().filter(|flag| *flag != "help") {
            let has = |command: &&Command| command.get_arguments().any(|argument| argument.get_id() == flag);
            assert!(commands.iter().any(has), "no command has the flag {flag}");
        }
    }
}
