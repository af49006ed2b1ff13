//! The job that the flags of `canon` or `dedup` describe: inputs, policy, destination and reports.

use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use super::args::{FileLayout, InputArgs, ReportingArgs};
use super::file_roles::FileRoles;
use super::report::{Report, SourceError};
use crate::canon::Policy;
use crate::output::{Destination, FinishedOutput, OutputOptions};
use crate::remote::{redact_argument, transfer};
use crate::run::{RunOptions, SortOptions, Summary};

/// The flags of a command, checked against each other and turned into the options of the library.
pub(crate) struct Job<'a> {
    /// Which sources are read.
    pub(crate) input: &'a InputArgs,
    /// How they are read.
    pub(crate) options: RunOptions,
    /// For how many runs at once the memory is enough, if each source has a run of its own.
    pub(crate) max_runs: usize,
    /// What rows depend on.
    pub(crate) policy: Policy,
    pub(crate) destination: Destination,
    /// Format and columns of the output; [`Job::output_options`] adds the rest.
    pub(crate) output: OutputOptions,
    /// Order and files of the output.
    pub(crate) layout: FileLayout,
    /// The sort that makes this order, if there is one.
    pub(crate) sort: Option<SortOptions>,
    /// The files that are read and written.
    pub(crate) files: FileRoles,
    pub(crate) reporting: &'a ReportingArgs,
}

impl Job<'_> {
    pub(crate) fn output_options(&self, sources: &[String]) -> OutputOptions {
        OutputOptions { policy: self.policy.clone(), sources: sources.to_vec(), ..self.output.clone() }
    }

    /// The report of a run that wrote its output.
    pub(crate) fn report(
        &self,
        sources: Vec<String>,
        summary: Summary,
        output: Option<FinishedOutput>,
        elapsed: Duration,
    ) -> Report {
        Report {
            sources,
            errors: SourceError::of_run(&summary),
            summary,
            command: command_line(),
            finished: now(),
            elapsed,
            threads: self.options.clamped().threads,
            policy: self.policy.clone(),
            output_format: self.output.format.name(),
            output,
            transfer: transfer(),
            ..Report::default()
        }
    }
}

/// The command line of this process without credentials, quoted for a shell where it is necessary.
fn command_line() -> String {
    let mut previous = None;
    let shown = |word: OsString| {
        let given = word.to_string_lossy().into_owned();
        let redacted = redact_argument(&given, previous.replace(given.clone()).as_deref());
        match word.to_str() {
            None if redacted == given => quoted_bytes(word.as_encoded_bytes()),
            _ => quoted(&redacted),
        }
    };
    let name = std::iter::once("irikey".to_string());
    name.chain(std::env::args_os().skip(1).map(shown)).collect::<Vec<_>>().join(" ")
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=,+@%".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// A word that is not UTF-8, for shells that know the quotes `$'...'`.
fn quoted_bytes(word: &[u8]) -> String {
    let escape = |byte: &u8| match byte {
        b' '..=b'~' if !b"'\\".contains(byte) => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    format!("$'{}'", word.iter().map(escape).collect::<String>())
}

/// Date and time in UTC.
fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let time = arrow::temporal_conversions::timestamp_s_to_datetime(since.as_secs() as i64);
    time.map_or_else(String::new, |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!([quoted("-o=a/b"), quoted("it's"), quoted("")], ["-o=a/b", r"'it'\''s'", "''"]);
        assert_eq!(quoted_bytes(b"a b\xff'\n"), r"$'a b\xff\x27\x0a'");
    }
}
