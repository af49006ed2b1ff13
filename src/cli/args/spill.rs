//! The flags that limit memory.

use std::path::PathBuf;

use clap::Args;

use super::values::parse_size;
use crate::run::Budget;

/// Flags of every command that keeps keys or sorts rows.
#[derive(Debug, Args)]
pub(crate) struct SpillArgs {
    /// Limit memory to BYTES [default: half of the available memory]. Keys, pending rows and sorted rows that do not fit are
    /// spilled to --tmp, and fewer threads run if necessary; the result is the same. The limit is on anonymous memory; mapped
    /// inputs do not count
    #[arg(long, value_name = "BYTES", value_parser = parse_size, help_heading = "Work")]
    memory: Option<usize>,
    /// Write temporary files to DIR [default: the directory of the system]. They have no names and vanish with the process
    #[arg(long, value_name = "DIR", help_heading = "Work")]
    tmp: Option<PathBuf>,
}

impl SpillArgs {
    /// The memory of the job.
    pub(crate) fn budget(&self) -> Budget {
        Budget::new(self.memory)
    }

    /// The directory of temporary files.
    pub(crate) fn directory(&self) -> PathBuf {
        self.tmp.clone().unwrap_or_else(std::env::temp_dir)
    }
}
