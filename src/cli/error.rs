//! Why a command failed, and the exit code that follows from it.

use std::fmt::Display;
use std::io;
use std::path::Path;

use super::terminal::{print_error, print_to_stderr};
use crate::dedup::seen::SeenError;
use crate::input::{ListError, error_and_advice, shown_path};
use crate::output::OutputError;
use crate::process::{error_and_remedy, exit, path_name};
use crate::remote::{RemoteError, RemoteUrl};
use crate::run::{BudgetError, DedupError, ObserveError, PartsError, RunError, SortError};

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The flags are wrong, contradict each other, or do not fit what they name.
    #[error("{0}")]
    Usage(String),
    /// An input cannot be read at all.
    #[error("{0}")]
    Input(String),
    /// Arguments name no readable inputs.
    #[error(transparent)]
    Sources(#[from] ListError),
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Another job has locked what this one would change.
    #[error("{0}")]
    Busy(String),
    /// A file other than inputs and outputs cannot be used: a spill file, a manifest, a seen store, a report.
    #[error("{0}")]
    SideFile(String),
    /// A bug in this program.
    #[error("internal error: {0}; please report it with the input")]
    Internal(String),
}

impl CommandError {
    pub(crate) fn usage(message: impl Into<String>) -> CommandError {
        CommandError::Usage(message.into())
    }

    /// The file or object at `path`, which `flag` names, cannot be used.
    pub(crate) fn unusable(flag: &str, path: &Path, error: &dyn Display) -> CommandError {
        // A path may follow a part of the value.
        let space = if flag.ends_with(':') { "" } else { " " };
        CommandError::Usage(format!("{flag}{space}{}: {error}", path_name(&shown_path(path))))
    }

    /// The file or object at `path`, which `flag` names, cannot be opened.
    pub(crate) fn not_opened(flag: &str, path: &Path, error: &io::Error) -> CommandError {
        CommandError::unusable(flag, path, &format!("cannot open: {}", error_and_advice(error)))
    }

    /// The file at `path` cannot be used for `operation`; it is neither an input nor an output.
    pub(crate) fn side_file(path: &Path, operation: &str, error: io::Error) -> CommandError {
        CommandError::SideFile(format!("{}: cannot {operation}: {}", path_name(path), error_and_remedy(&error)))
    }

    /// The file at `path`, which a flag or an argument names, cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> CommandError {
        CommandError::Input(format!("{}: cannot read: {}", path_name(path), error_and_remedy(error)))
    }

    /// Refuses a name of an object or of a file on a server, for a command that reads local files only.
    pub(crate) fn refuse_remote(path: &Path) -> Result<(), CommandError> {
        let refuse = |url: RemoteUrl| {
            let name = url.name();
            Err(CommandError::Usage(format!("{name}: this command reads local files only; copy them to a disk")))
        };
        RemoteUrl::of_path(path).map_or(Ok(()), refuse)
    }

    /// Returns whether the error is a wrong `--store-option` that only the store could find.
    fn is_of_options(&self) -> bool {
        let in_list = |error: &ListError| match error {
            ListError::Open { error, .. } | ListError::List { error, .. } => RemoteError::is_of_options(error),
            _ => false,
        };
        match self {
            CommandError::Sources(ListError::Several(errors)) => errors.iter().any(in_list),
            CommandError::Sources(error) => in_list(error),
            CommandError::Output(OutputError::Io { error, .. }) => RemoteError::is_of_options(error),
            _ => false,
        }
    }

    /// Prints the error of `irikey COMMAND` and returns its exit code. A closed pipe is a success: its reader has read
    /// enough.
    pub(crate) fn report(&self, command: &str) -> u8 {
        match self {
            CommandError::Output(OutputError::ClosedPipe) => return exit::SUCCESS,
            CommandError::Usage(message) => {
                print_error(message);
                print_to_stderr(&format!("For more information, try 'irikey {command} --help'.\n"));
            }
            // A list of errors has one per line, each made visible.
            CommandError::Sources(error @ ListError::Several(_)) => print_to_stderr(&format!("irikey: {error}\n")),
            error => print_error(&error.to_string()),
        }
        match self {
            error if error.is_of_options() => exit::USAGE,
            // A directory in the place of a file, or one that has files already, is a usage error.
            CommandError::Usage(_) | CommandError::Output(OutputError::Directory(_) | OutputError::NotEmpty(_)) => {
                exit::USAGE
            }
            CommandError::Input(_) | CommandError::Sources(_) => exit::INPUT,
            CommandError::Busy(_) | CommandError::Output(OutputError::Locked(_)) => exit::BUSY,
            CommandError::Output(_) | CommandError::SideFile(_) => exit::OUTPUT,
            CommandError::Internal(_) => exit::INTERNAL,
        }
    }
}

impl<E: Into<CommandError> + Display> From<RunError<E>> for CommandError {
    fn from(error: RunError<E>) -> CommandError {
        match error {
            RunError::Output(error) => error.into(),
            RunError::Read(_) | RunError::Threads(_) => CommandError::Usage(error.to_string()),
            RunError::Policy(_) | RunError::Panicked(_) | RunError::Unbalanced { .. } => {
                CommandError::Internal(error.to_string())
            }
        }
    }
}

impl From<SortError> for CommandError {
    fn from(error: SortError) -> CommandError {
        match error {
            SortError::Output(error) => CommandError::Output(error),
            SortError::Spill(error) => CommandError::SideFile(error.to_string()),
            SortError::Columns { .. } => CommandError::Usage(error.to_string()),
            SortError::Lost { .. } => CommandError::Internal(error.to_string()),
        }
    }
}

impl From<SeenError> for CommandError {
    fn from(error: SeenError) -> CommandError {
        match error {
            SeenError::Missing(_) | SeenError::NotAStore(_) | SeenError::OtherPolicy { .. } => {
                CommandError::Usage(error.to_string())
            }
            SeenError::Locked(_) => CommandError::Busy(error.to_string()),
            SeenError::Damaged { .. } => CommandError::Input(error.to_string()),
            SeenError::Io { .. } | SeenError::NotDurable { .. } => CommandError::SideFile(error.to_string()),
        }
    }
}

impl From<DedupError> for CommandError {
    fn from(error: DedupError) -> CommandError {
        match error {
            DedupError::Output(error) => CommandError::Output(error),
            DedupError::TooManyRows { .. } => CommandError::Usage(error.to_string()),
            DedupError::Spill(error) => CommandError::SideFile(error.to_string()),
            DedupError::Seen(error) => error.into(),
            DedupError::Changed | DedupError::NotReadAgain(_) => CommandError::Input(error.to_string()),
            DedupError::Lost { .. } => CommandError::Internal(error.to_string()),
        }
    }
}

impl From<ObserveError> for CommandError {
    fn from(error: ObserveError) -> CommandError {
        match error {
            ObserveError::Spill(error) | ObserveError::Parts(PartsError::Spill(error)) => {
                CommandError::SideFile(error.to_string())
            }
            ObserveError::Parts(error) => CommandError::Usage(format!("--merge {error}")),
            ObserveError::TooLarge { .. } => CommandError::Usage(format!(
                "--memory: {error}; nothing was written; allow more memory, or learn from a part of the crawl"
            )),
        }
    }
}

impl From<BudgetError> for CommandError {
    fn from(error: BudgetError) -> CommandError {
        CommandError::Usage(error.to_string())
    }
}
