//! The flags that limit memory.

use std::path::PathBuf;

use clap::Args;

use super::input::InputArgs;
use super::values::parse_size;
use crate::cli::error::CommandError;
use crate::process::plain_error;
use crate::remote::{MAX_READ_AHEAD, set_read_ahead};
use crate::run::Budget;

/// Flags of every command that keeps keys or sorts rows.
#[derive(Debug, Args)]
pub(crate) struct SpillArgs {
    /// Limit memory to BYTES, such as 1.5G, 2GiB (powers of 1024) or 2GB (powers of 1000) [default: half of the memory
    /// of the machine, or of what the control group or ulimit -v allows]. Keys and rows that do not fit are spilled to --tmp,
    /// and fewer threads run if necessary; the output is the same. The limit is on anonymous memory; mapped inputs do not
    /// count
    #[arg(long, value_name = "BYTES", value_parser = parse_size, help_heading = "Work")]
    memory: Option<usize>,
    /// Write temporary files to DIR [default: the directory of the system]. They have no names and disappear with the process
    #[arg(long, value_name = "DIR", help_heading = "Work")]
    tmp: Option<PathBuf>,
}

impl SpillArgs {
    /// The memory of a job over `input`, without what is used to read ahead in stores.
    pub(crate) fn budget(&self, input: &InputArgs) -> Budget {
        let mut budget = Budget::new(self.memory);
        if input.may_be_remote() {
            set_read_ahead(budget.reserve_eighth(MAX_READ_AHEAD));
        }
        budget
    }

    /// The directory of temporary files.
    ///
    /// # Errors
    /// Files cannot be created in the directory that a flag names.
    pub(crate) fn directory(&self) -> Result<PathBuf, CommandError> {
        let Some(path) = &self.tmp else { return Ok(std::env::temp_dir()) };
        match tempfile::tempfile_in(path) {
            Ok(_) => Ok(path.clone()),
            Err(error) => Err(CommandError::Usage(format!(
                "--tmp {}: cannot create temporary files in this directory: {}; name a writable directory",
                path.display(),
                plain_error(&error)
            ))),
        }
    }
}
