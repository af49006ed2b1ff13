//! Work on all partitions: [`for_each_partition`].

use super::key_set::PARTITIONS;
use crate::spill::SpillError;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `work` with the number of every partition, on `threads` threads. Returns the first error of a thread; the others
/// still finish the partition that they work on.
pub(super) fn for_each_partition(
    threads: usize,
    work: impl Fn(usize) -> Result<(), SpillError> + Sync,
) -> Result<(), SpillError> {
    let next_partition = AtomicUsize::new(0);
    let work_on_some = || {
        let next = || Some(next_partition.fetch_add(1, Ordering::Relaxed)).filter(|partition| *partition < PARTITIONS);
        let worked = std::iter::from_fn(next).try_for_each(&work);
        // After an error, no thread begins another partition.
        worked.inspect_err(|_| next_partition.store(PARTITIONS, Ordering::Relaxed))
    };
    thread::scope(|scope| {
        // Without further threads, this one does the same work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, work_on_some).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let own = work_on_some();
        let mut joined = others.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        own.and(joined.try_for_each(|worked| worked))
    })
}
