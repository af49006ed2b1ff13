//! Parallel work whose results are taken as they are finished: [`as_finished`].

use super::error::RunError;
use super::in_order::panic_text;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Calls `work` with every unit, on `threads` threads, and `take` with the results, in the order in which they are finished, so
/// that no result waits for a slow unit. About one result per thread waits until earlier ones are taken.
///
/// # Errors
/// The first error of `work` or `take`, or a panic. No unit is begun after an error; `take` still gets the results of the units in
/// progress, unless it has failed itself.
pub(crate) fn as_finished<J: Send, P: Send, E: Send>(
    threads: usize,
    units: impl Iterator<Item = J> + Send,
    work: impl Fn(J) -> Result<P, E> + Sync,
    mut take: impl FnMut(P) -> Result<(), E>,
) -> Result<(), RunError<E>> {
    let (units, is_stopped) = (Mutex::new(units), AtomicBool::new(false));
    let threads = threads.max(1);
    let (sender, results) = mpsc::sync_channel(threads);
    let one = || {
        let unit = if is_stopped.load(Ordering::Relaxed) { None } else { units.lock().next() };
        unit.map(|unit| work(unit).map_err(RunError::Output))
    };
    let produce = |sender: mpsc::SyncSender<_>| {
        let panicked = |panic: Box<dyn std::any::Any + Send>| Some(Err(RunError::Panicked(panic_text(panic.as_ref()))));
        while let Some(result) = catch_unwind(AssertUnwindSafe(&one)).unwrap_or_else(panicked) {
            is_stopped.fetch_or(result.is_err(), Ordering::Relaxed);
            // Results are received until all senders are dropped.
            let _ = sender.send(result);
        }
    };
    thread::scope(|scope| {
        let (mut failed, mut can_take) = (None, true);
        for number in 0..threads {
            let (sender, builder) = (sender.clone(), thread::Builder::new().name(format!("irikey-input-{number}")));
            if let Err(error) = builder.spawn_scoped(scope, || produce(sender)) {
                is_stopped.store(true, Ordering::Relaxed);
                failed = Some(RunError::Threads(error.to_string()));
                break;
            }
        }
        drop(sender);
        for result in results {
            let taken = result.and_then(|result| match can_take {
                true => take(result).map_err(RunError::Output).inspect_err(|_| can_take = false),
                false => Ok(()),
            });
            if let Err(error) = taken {
                is_stopped.store(true, Ordering::Relaxed);
                failed.get_or_insert(error);
            }
        }
        failed.map_or(Ok(()), Err)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    /// A slow unit is finished last; its result keeps no other one waiting.
    #[test]
    fn results_are_taken_as_they_are_finished() {
        const COUNT: usize = 100;
        let taken_count = AtomicUsize::new(0);
        let work = |unit: usize| {
            let is_waiting = |_: &u32| unit == 0 && taken_count.load(Ordering::Relaxed) + 1 < COUNT;
            (0..10_000_000).take_while(is_waiting).for_each(|_| thread::yield_now());
            Ok::<_, &str>(unit)
        };
        let mut taken = Vec::new();
        let take = |unit| {
            taken.push(unit);
            taken_count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        as_finished(2, 0..COUNT, work, take).unwrap();
        assert_eq!((taken.len(), taken.last()), (COUNT, Some(&0)));
        taken.sort_unstable();
        assert!(taken.into_iter().eq(0..COUNT));
    }

    #[test]
    fn after_an_error_no_unit_is_begun_and_what_is_finished_is_taken() {
        let (begun, mut taken) = (AtomicUsize::new(0), Vec::new());
        let work = |unit: usize| {
            begun.fetch_add(1, Ordering::Relaxed);
            // The unit before the one that fails is finished after it.
            while unit == 6 && begun.load(Ordering::Relaxed) < 8 {
                thread::yield_now();
            }
            if unit == 7 { Err("seven") } else { Ok(unit) }
        };
        let ran = as_finished(2, 0..100, work, |unit| {
            taken.push(unit);
            Ok(())
        });
        assert!(matches!(ran, Err(RunError::Output("seven"))));
        taken.sort_unstable();
        assert!(begun.into_inner() <= 9 && taken.starts_with(&[0, 1, 2, 3, 4, 5, 6]), "{taken:?}");
        let mut count = 0;
        let full = as_finished(3, 0..100, Ok::<_, &str>, |_| {
            count += 1;
            if count == 5 { Err("full") } else { Ok(()) }
        });
        assert!(matches!(full, Err(RunError::Output("full"))) && count == 5);
        let panicked = as_finished(2, 0..9, |_| -> Result<(), &str> { panic!("nine") }, |()| Ok(()));
        assert!(matches!(panicked, Err(RunError::Panicked(text)) if text == "nine"));
    }
}
