//! Independent work on items by several threads: [`for_each`].

use crate::spill::SpillError;
use rayon::ThreadPoolBuilder;
use rayon::iter::{ParallelBridge, ParallelIterator};

/// Calls `work` with every item, on `threads` threads, each of which works on one item at a time. Returns the first error of a
/// thread; the others still finish the item that they work on.
pub(super) fn for_each<T: Send>(
    threads: usize,
    mut items: impl Iterator<Item = T> + Send,
    work: impl Fn(T) -> Result<(), SpillError> + Sync + Send,
) -> Result<(), SpillError> {
    match ThreadPoolBuilder::new().num_threads(threads.max(1)).build() {
        Ok(pool) => pool.install(|| items.par_bridge().try_for_each(work)),
        // Without threads, this one does the same work.
        Err(_) => items.try_for_each(work),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::{io, iter};

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
