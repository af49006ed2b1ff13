//! Several runs of a store made one, beside whatever else goes on: [`Merge`]. In: runs that nobody changes. Out: a sorted
//! run of all their keys, whole on the disk but without a name, until [`super::Store::add`] takes it in.

use super::cursor::Cursor;
use super::error::SeenError;
use super::run_file::{Run, RunInfo, RunWriter, Sealed};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Keys between two looks at whether merging should stop.
const TOGETHER: usize = 1 << 12;

/// Runs to be merged: the last ones of a store.
#[derive(Debug)]
pub struct Merge {
    runs: Vec<Run>,
    writer: RunWriter,
}

/// The merged run, and what it replaces.
#[derive(Debug)]
pub struct Merged {
    pub(super) of: Vec<RunInfo>,
    pub(super) run: Sealed,
}

impl Merge {
    /// Of these runs, opened once more, so that it can be done by another thread.
    pub(super) fn new(directory: &Path, runs: &[Run], writer: RunWriter) -> Result<Merge, SeenError> {
        let runs = runs.iter().map(|run| Run::open(directory, run.info().clone())).collect::<Result<_, _>>()?;
        Ok(Merge { runs, writer })
    }

    /// Merges; `None` if `is_stopped` comes to be set before the end.
    ///
    /// # Errors
    /// A file could not be read or written.
    pub fn run(mut self, is_stopped: &AtomicBool) -> Result<Option<Merged>, SeenError> {
        let mut cursor = Cursor::new(&self.runs, 0)?;
        let mut keys = Vec::with_capacity(TOGETHER);
        loop {
            while keys.len() < TOGETHER
                && let Some(key) = cursor.take_next()?
            {
                keys.push(key);
            }
            if is_stopped.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if keys.is_empty() {
                break;
            }
            self.writer.extend(keys.drain(..))?;
        }
        let of = self.runs.iter().map(|run| run.info().clone()).collect();
        Ok(Some(Merged { of, run: self.writer.seal()? }))
    }
}

/// The first of the runs, by their numbers of keys, that are merged next: the last one, and those before it that have less
/// than twice the keys of all after them together. So keys are copied a few times, and runs stay few.
pub(super) fn first_due(counts: &[u64]) -> usize {
    let (mut first, mut sum) = (counts.len(), 0);
    while first > 0 && (first == counts.len() || counts[first - 1] < 2 * sum) {
        first -= 1;
        sum += counts[first];
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_runs_are_merged_before_large_ones() {
        assert_eq!(first_due(&[]), 0);
        assert_eq!(first_due(&[5]), 0);
        assert_eq!(first_due(&[100, 40, 30, 6]), 3);
        assert_eq!(first_due(&[100, 40, 30, 16]), 0);
        assert_eq!(first_due(&[1000, 40, 30, 16]), 1);
    }

    /// However many jobs of one size there are, runs stay few.
    #[test]
    fn runs_stay_few() {
        let mut counts: Vec<u64> = Vec::new();
        for _ in 0..1000 {
            let merged = counts.split_off(first_due(&counts)).into_iter().sum();
            counts.extend([merged, 7].into_iter().filter(|count| *count > 0));
            assert!(counts.len() <= 12, "{counts:?}");
        }
    }
}
