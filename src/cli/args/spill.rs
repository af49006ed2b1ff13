//! The flags that bound memory, and say what takes its place.

use std::path::PathBuf;

use clap::Args;

use crate::cli::size::parse_size;
use crate::run::memory;

/// Least memory for keys, bytes.
const LEAST: usize = 1 << 20;

/// How memory is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Threads that there may be.
    pub threads: usize,
    /// Bytes for keys and what belongs to them.
    pub keys: usize,
}

/// Flags of every command that keeps keys.
#[derive(Debug, Args)]
pub struct SpillArgs {
    /// Memory to take, in bytes [default: half of what there is]: anonymous memory; mapped inputs are the system's. Past it,
    /// keys and what belongs to them, or rows that are sorted, go to --tmp, and there are fewer threads if need be; the
    /// result stays the same
    #[arg(long, value_name = "BYTES", value_parser = parse_size, help_heading = "Work")]
    memory: Option<usize>,
    /// Directory of temporary files [default: the system's]. They bear no names and vanish with the process
    #[arg(long, value_name = "DIR", help_heading = "Work")]
    tmp: Option<PathBuf>,
}

impl SpillArgs {
    /// How the memory that is allowed is shared: rows on their way take `per_thread` bytes a thread, and the rest is for
    /// keys. There are fewer than `threads` if that leaves keys less than a sixteenth.
    ///
    /// # Errors
    /// So little that none is left.
    pub fn budget(&self, threads: usize, per_thread: usize) -> Result<Budget, String> {
        let rows = |threads: usize| memory::BASE.saturating_add(threads.saturating_mul(per_thread));
        let Some(memory) = self.memory else {
            let keys = (memory::available() / 2).saturating_sub(rows(threads)).max(64 * LEAST);
            return Ok(Budget { threads, keys });
        };
        let of = |threads| Some(Budget { threads, keys: memory.checked_sub(rows(threads))? });
        let fair = (1..=threads).rev().filter_map(of).find(|budget| budget.keys >= (memory / 16).max(LEAST));
        fair.or_else(|| of(1).filter(|budget| budget.keys >= LEAST)).ok_or_else(|| {
            format!(
                "--memory: rows on their way take about {}M on one thread, and keys need some as well; allow more, or set \
                 --row-group-size lower",
                (rows(1) >> 20) + 1
            )
        })
    }

    /// The directory of temporary files.
    pub fn directory(&self) -> PathBuf {
        self.tmp.clone().unwrap_or_else(std::env::temp_dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_given_up_before_the_job_is() {
        let args = |memory| SpillArgs { memory: Some(memory), tmp: None };
        let rows = |threads: usize| memory::BASE + threads * (8 << 20);
        let budget = |memory| args(memory).budget(3, 8 << 20);
        assert_eq!(budget(rows(3) + (6 << 20)), Ok(Budget { threads: 3, keys: 6 << 20 }));
        assert_eq!(budget(rows(3) + LEAST), Ok(Budget { threads: 2, keys: rows(1) - memory::BASE + LEAST }));
        assert_eq!(budget(rows(1) + LEAST), Ok(Budget { threads: 1, keys: LEAST }));
        assert!(budget(rows(1)).unwrap_err().contains("--row-group-size"));
        let all = SpillArgs { memory: None, tmp: None }.budget(5, 8 << 20).unwrap();
        assert!(all.threads == 5 && all.keys >= 64 * LEAST);
    }
}
