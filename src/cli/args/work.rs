//! The flags that say with what means a job is done. Results do not depend on them.

use clap::Args;

use super::sizes::at_most_text;
use crate::cli::size::parse_size;

/// Flags of every command that takes workers.
#[derive(Debug, Args)]
pub struct WorkArgs {
    /// Worker threads [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..), help_heading = "Work")]
    threads: Option<u16>,
    /// Input that a worker takes at a time, in bytes. At most 512M. The output does not depend on it
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "1M", help_heading = "Work")]
    chunk_size: usize,
}

/// The means of a job.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// Worker threads.
    pub threads: usize,
    /// Bytes of input that a worker takes at a time.
    pub chunk_len: usize,
}

impl WorkArgs {
    /// What the flags mean.
    ///
    /// # Errors
    /// A chunk that is too large.
    pub fn work(&self) -> Result<Work, String> {
        at_most_text("--chunk-size", self.chunk_size)?;
        Ok(Work { threads: self.threads.map_or_else(cores, usize::from), chunk_len: self.chunk_size })
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
