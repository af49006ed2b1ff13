//! Merges runs of the seen store while a job runs: [`StoreCompaction`].

use super::super::RunError;
use super::super::in_order::panic_text;
use super::options::DedupOptions;
use crate::dedup::seen::{MergedRuns, SeenError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// A thread that merges runs of the seen store while the job runs. Dropping it stops the thread.
#[derive(Debug, Default)]
pub(super) struct StoreCompaction {
    is_stopped: Arc<AtomicBool>,
    memory_len: usize,
    thread: Option<JoinHandle<Result<Option<MergedRuns>, SeenError>>>,
}

impl StoreCompaction {
    /// Starts a merge, if the job will add keys to the store and a merge is due.
    pub(super) fn start(options: &DedupOptions) -> Result<StoreCompaction, SeenError> {
        let mut compaction = StoreCompaction::default();
        let store = options.seen.as_ref().filter(|_| options.gather_new);
        if let Some(merge) = store.map(|store| store.due_merge()).transpose()?.flatten() {
            compaction.memory_len = merge.memory_len();
            let is_stopped = Arc::clone(&compaction.is_stopped);
            // If no thread can be started, a later job merges.
            let thread = Builder::new().name("irikey-merge".to_string()).spawn(move || merge.run(&is_stopped));
            compaction.thread = thread.ok();
        }
        Ok(compaction)
    }

    /// Bytes of memory of the merge.
    pub(super) fn memory_len(&self) -> usize {
        self.memory_len
    }

    /// Waits for the merge. Its result is an error if it failed; the store has not changed.
    ///
    /// # Errors
    /// The merge panicked.
    pub(super) fn finish<E>(mut self) -> Result<Result<Option<MergedRuns>, SeenError>, RunError<E>> {
        let Some(thread) = self.thread.take() else { return Ok(Ok(None)) };
        thread.join().map_err(|panic| RunError::Panicked(panic_text(panic.as_ref())))
    }
}

impl Drop for StoreCompaction {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread removes its file.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_that_panics_is_an_error_of_the_run() {
        let mut compaction = StoreCompaction::default();
        compaction.thread = Some(std::thread::spawn(|| panic!("no such run")));
        let finished = compaction.finish::<SeenError>();
        assert!(matches!(finished, Err(RunError::Panicked(text)) if text == "no such run"));
        assert!(matches!(StoreCompaction::default().finish::<SeenError>(), Ok(Ok(None))));
    }
}
