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
    /// keys. There are fewer than `threads` if that leaves keys less than a sixteenth. Row groups of `row_group_len` bytes
    /// never shrink to fit, for the output is not to depend on memory; who has too little is told which would.
    ///
    /// # Errors
    /// So little that none is left.
    pub fn budget(&self, threads: usize, per_thread: usize, row_group_len: Option<usize>) -> Result<Budget, String> {
        let rows = |threads: usize| memory::BASE.saturating_add(threads.saturating_mul(per_thread));
        let Some(memory) = self.memory else {
            let keys = (memory::available() / 2).saturating_sub(rows(threads)).max(64 * LEAST);
            return Ok(Budget { threads, keys });
        };
        let of = |threads| Some(Budget { threads, keys: memory.checked_sub(rows(threads))? });
        let fair = (1..=threads).rev().filter_map(of).find(|budget| budget.keys >= (memory / 16).max(LEAST));
        fair.or_else(|| of(1).filter(|budget| budget.keys >= LEAST)).ok_or_else(|| {
            let least = (rows(1) + LEAST).div_ceil(1 << 20);
            let room = memory.saturating_sub(memory::BASE + LEAST);
            let fitting = row_group_len.map(|len| (len as u128 * room as u128 / per_thread.max(1) as u128) >> 10);
            let instead = match fitting {
                Some(fitting) if fitting > 0 => format!(", or --row-group-size {fitting}K"),
                _ => String::new(),
            };
            format!("--memory: one thread takes {least}M, most of it for rows on their way; allow that much{instead}")
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
        let budget = |memory| args(memory).budget(3, 8 << 20, Some(1 << 20));
        assert_eq!(budget(rows(3) + (6 << 20)), Ok(Budget { threads: 3, keys: 6 << 20 }));
        assert_eq!(budget(rows(3) + LEAST), Ok(Budget { threads: 2, keys: rows(1) - memory::BASE + LEAST }));
        assert_eq!(budget(rows(1) + LEAST), Ok(Budget { threads: 1, keys: LEAST }));
        let told = budget(rows(1)).unwrap_err();
        assert!(told.contains("takes 25M") && told.contains("--row-group-size 896K"), "{told}");
        assert_eq!(args(rows(1)).budget(1, 7 << 20, None), Ok(Budget { threads: 1, keys: LEAST }));
        assert!(!args(LEAST).budget(1, 7 << 20, Some(1 << 20)).unwrap_err().contains("--row-group-size"));
        let all = SpillArgs { memory: None, tmp: None }.budget(5, 8 << 20, None).unwrap();
        assert!(all.threads == 5 && all.keys >= 64 * LEAST);
    }
}
