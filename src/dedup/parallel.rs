//! Independent work on items by several threads: [`for_each`].

use crate::spill::SpillError;
use parking_lot::Mutex;
use std::panic::resume_unwind;
use std::{iter, thread};

/// Calls `work` with every item, on `threads` threads. Returns the first error of a thread; the others still finish the item
/// that they work on.
pub(super) fn for_each<T: Send>(
    threads: usize,
    items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> Result<(), SpillError> + Sync,
) -> Result<(), SpillError> {
    let items = Mutex::new(Some(items));
    let work_on_some = || {
        let worked = iter::from_fn(|| items.lock().as_mut()?.next()).try_for_each(&work);
        // After an error, no thread begins another item.
        worked.inspect_err(|_| *items.lock() = None)
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn every_item_is_worked_on_until_an_error() {
        for threads in [0, 1, 3] {
            let sum = AtomicU64::new(0);
            let add = |item: u64| {
                sum.fetch_add(item, Ordering::Relaxed);
                match item {
                    1000 => Err(SpillError::Read(PathBuf::new(), io::ErrorKind::Other.into())),
                    _ => Ok(()),
                }
            };
            assert!(for_each(threads, 0..1000, add).is_ok());
            assert_eq!(sum.swap(0, Ordering::Relaxed), 499_500);
            assert!(for_each(threads, [1000].into_iter().chain(iter::repeat(0)), add).is_err());
        }
    }
}
