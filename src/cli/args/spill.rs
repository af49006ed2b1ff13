//! The flags that bound memory, and say what takes its place.

use std::path::PathBuf;

use clap::Args;

use crate::cli::size::parse_size;
use crate::run::memory;

/// Least memory for keys, bytes.
const LEAST: usize = 1 << 20;

/// Flags of every command that keeps keys.
#[derive(Debug, Args)]
pub struct SpillArgs {
    /// Memory to take, in bytes [default: half of what there is]. Past it, keys and what belongs to them go to --tmp; the
    /// result stays the same
    #[arg(long, value_name = "BYTES", value_parser = parse_size, help_heading = "Work")]
    memory: Option<usize>,
    /// Directory of temporary files [default: the system's]. They bear no names and vanish with the process
    #[arg(long, value_name = "DIR", help_heading = "Work")]
    tmp: Option<PathBuf>,
}

impl SpillArgs {
    /// Bytes for keys: what is allowed, less what rows take on their way.
    ///
    /// # Errors
    /// So little that none is left.
    pub fn key_memory(&self, threads: usize, row_group_len: usize) -> Result<usize, String> {
        let rows = memory::of_rows(threads, row_group_len);
        let Some(memory) = self.memory else {
            return Ok((memory::available() / 2).saturating_sub(rows).max(64 * LEAST));
        };
        match memory.checked_sub(rows).filter(|keys| *keys >= LEAST) {
            Some(keys) => Ok(keys),
            None => Err(format!(
                "--memory: {threads} threads take about {}M for rows on their way, and keys need some as well; allow more, \
                 or set --threads or --row-group-size lower",
                (rows >> 20) + 1
            )),
        }
    }

    /// The directory of temporary files.
    pub fn directory(&self) -> PathBuf {
        self.tmp.clone().unwrap_or_else(std::env::temp_dir)
    }
}
