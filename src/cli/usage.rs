//! Help and errors about flags, as the parser of flags makes them, in the words of the other messages.

use std::ffi::OsString;
use std::io;

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use super::terminal::{print_error, print_to_stderr, visible};

/// Prints help to standard output, or an error about flags to stderr. Messages repeat arguments, which may come from a script:
/// if these have hidden characters, the message is that of the arguments as they are shown.
pub(crate) fn print_usage(error: &Error, words: &[OsString], command: &Command) -> io::Result<()> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let shown: Vec<_> = words.iter().map(|word| visible(word).into_owned()).collect();
    if shown == words {
        return print_message(error, &words, command);
    }
    match command.clone().try_get_matches_from(&shown) {
        Err(error) => print_message(&error, &shown, command),
        Ok(_) => {
            print_error("an argument has characters that this command does not accept");
            Ok(())
        }
    }
}

fn print_message(error: &Error, words: &[String], command: &Command) -> io::Result<()> {
    match message(error, words, command) {
        Some(message) => {
            print_to_stderr(&message);
            Ok(())
        }
        None => error.print(),
    }
}

/// The message of an error, with the prefix and the last line of all usage errors; `None` for help.
fn message(error: &Error, words: &[String], command: &Command) -> Option<String> {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ")?;
    let text = text.split_once("\n\nFor more information").map_or(text, |(text, _)| text).trim_end();
    let subcommand = words.iter().skip(1).find_map(|word| command.find_subcommand(word));
    let name = subcommand.map_or("irikey".to_string(), |subcommand| format!("irikey {}", subcommand.get_name()));
    let text = match flag_of_others(error, subcommand, command) {
        Some(others) => others,
        None => without_tip_on_values(text),
    };
    Some(format!("irikey: {text}\n\nFor more information, try '{name} --help'.\n"))
}

/// Which commands have the unknown flag of an error, if any has.
fn flag_of_others(error: &Error, own: Option<&Command>, command: &Command) -> Option<String> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(flag))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let has_flag = |command: &&Command| {
        let mut flags = command.get_arguments().filter(|argument| !argument.is_hide_set());
        flags.any(|argument| argument.get_long().is_some_and(|long| flag.strip_prefix("--") == Some(long)))
    };
    let others = command.get_subcommands().filter(|command| !command.is_hide_set()).filter(has_flag);
    let others: Vec<_> = others.map(Command::get_name).collect();
    let (last, before) = others.split_last()?;
    let others = if before.is_empty() { last.to_string() } else { format!("{} and {last}", before.join(", ")) };
    let own = own.map_or(String::new(), |own| format!(", not of irikey {}", own.get_name()));
    Some(format!("{flag} is a flag of irikey {others}{own}"))
}

/// A message without the tip to write `-- --flag`: hardly any value begins with `--`.
fn without_tip_on_values(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("  tip: to pass '-")).collect();
    // No two of the blank lines around tips follow each other.
    lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
    lines.join("\n")
}
