//! The flags that say with how many threads and how much memory a job works. Its output does not depend on them.

use std::path::{Path, PathBuf};

use clap::Args;

use super::values::{named_path, parse_number, parse_size, parse_size_up_to};
use crate::cli::error::CommandError;
use crate::process::{plain_error, remedy, without_termination};
use crate::run::{MAX_ROW_GROUP_LEN, MAX_THREADS, core_count};

/// The number of threads.
#[derive(Debug, Args)]
pub(crate) struct ThreadArgs {
    /// Worker threads, at most 512 [default: one per core]
    #[arg(short = 'j', long, value_name = "N", value_parser = parse_number::<u16, 1, { MAX_THREADS as u64 }>,
          allow_negative_numbers = true, help_heading = "Work")]
    threads: Option<u16>,
}

impl ThreadArgs {
    /// The number of threads, by default that of the cores.
    pub(crate) fn count(&self) -> usize {
        self.threads.map_or_else(core_count, usize::from)
    }
}

/// Flags of every command that reads inputs to their end.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    #[command(flatten)]
    pub(super) threads: ThreadArgs,
    /// Bytes of text that a worker normalizes at a time; the output does not depend on it. At most 128M
    #[arg(long, value_name = "BYTES", value_parser = parse_size_up_to::<MAX_ROW_GROUP_LEN>, default_value = "1M",
          help_heading = "Work")]
    pub(super) chunk_size: usize,
    /// Limit memory to BYTES, such as 1.5G, 2GiB (powers of 1024) or 2GB (powers of 1000) [default: half of the memory
    /// of the machine, or of what the control group or ulimit -v allows]. Keys and rows that do not fit are spilled to --tmp,
    /// and fewer threads run if necessary; the output is the same. The limit is on anonymous memory; mapped inputs do not
    /// count
    #[arg(long, value_name = "BYTES", value_parser = parse_size, help_heading = "Work")]
    pub(super) memory: Option<usize>,
    /// Write temporary files to DIR [default: TMPDIR, or the directory of the system]. They have no names and disappear with
    /// the process
    #[arg(long, value_name = "DIR", value_parser = named_path(), help_heading = "Work")]
    tmp: Option<PathBuf>,
}

impl WorkArgs {
    /// The directory of temporary files, for a job that may need some.
    ///
    /// # Errors
    /// No file can be created in the directory that the flag or TMPDIR names. That of the system is not checked, because it does
    /// not exist in some containers, and few jobs use it.
    pub(crate) fn directory(&self) -> Result<PathBuf, CommandError> {
        self.check_tmp()?;
        let directory = std::env::temp_dir();
        if self.tmp.is_none() && std::env::var_os("TMPDIR").is_some() {
            check_temporary("TMPDIR", &directory)?;
        }
        Ok(self.tmp.clone().unwrap_or(directory))
    }

    /// Checks the directory that the flag names.
    pub(crate) fn check_tmp(&self) -> Result<(), CommandError> {
        self.tmp.as_deref().map_or(Ok(()), |path| check_temporary("--tmp", path))
    }
}

/// Checks that temporary files can be created in the directory that `setting` names.
fn check_temporary(setting: &str, path: &Path) -> Result<(), CommandError> {
    match without_termination(|| tempfile::tempfile_in(path)) {
        Ok(_) => Ok(()),
        Err(error) => Err(CommandError::Usage(format!(
            "{setting} {}: cannot create temporary files in this directory: {}; {}",
            path.display(),
            plain_error(&error),
            remedy(&error).unwrap_or("name a writable directory with --tmp")
        ))),
    }
}
