//! A store's runs, merged while the job that will add to it goes on: [`Upkeep`]. In: the store. Out, at the job's end: the
//! merged run, to be taken in together with the new keys.

use super::DedupOptions;
use crate::dedup::seen::{Merged, SeenError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// A thread that merges, if there is anything to merge. A job that ends before its time stops it.
#[derive(Debug, Default)]
pub struct Upkeep {
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Option<Merged>, SeenError>>>,
}

impl Upkeep {
    /// Begins, if the job will add to a store whose runs have become many.
    pub fn begin(wanted: &DedupOptions) -> Result<Upkeep, SeenError> {
        let mut upkeep = Upkeep::default();
        let store = wanted.seen.as_ref().filter(|_| wanted.gather_new);
        if let Some(merge) = store.map(|store| store.merge_due()).transpose()?.flatten() {
            let is_stopped = Arc::clone(&upkeep.is_stopped);
            // Without a thread there is no merging this time.
            upkeep.thread = Builder::new().name("irikey-merge".to_string()).spawn(move || merge.run(&is_stopped)).ok();
        }
        Ok(upkeep)
    }

    /// Waits for what was begun.
    ///
    /// # Errors
    /// Merging failed, which does the store no harm.
    pub fn finish(mut self) -> Result<Option<Merged>, SeenError> {
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or(Ok(None))
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its file goes with it.
            let _ = thread.join();
        }
    }
}
