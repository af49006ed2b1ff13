//! Parallel work whose results are taken as they are finished: [`as_finished`].

use super::error::RunError;
use super::in_order::panic_text;
use parking_lot::{Condvar, Mutex};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Units of work, and the threads that they use.
struct Units<I> {
    /// The next units, each with the number of threads that it uses, and its index.
    units: Mutex<std::iter::Enumerate<I>>,
    /// Number of threads in all.
    threads: usize,
    free_threads: Mutex<usize>,
    /// Threads became free, or the work was stopped.
    changed: Condvar,
    is_stopped: AtomicBool,
}

/// The result of a unit, or its error after its place, counted from 1.
type UnitResult<P, E> = Result<Option<P>, (usize, RunError<E>)>;

impl<J, I: Iterator<Item = (usize, J)>> Units<I> {
    fn new(units: I, threads: usize) -> Units<I> {
        Units {
            units: Mutex::new(units.enumerate()),
            threads,
            free_threads: Mutex::new(threads),
            changed: Condvar::new(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Calls `work` with the next units until none is left, and sends the results.
    fn run<P, E>(
        &self,
        work: impl Fn(J, &AtomicBool) -> Result<Option<P>, RunError<E>>,
        sender: mpsc::SyncSender<UnitResult<P, E>>,
    ) {
        let panicked = |panic: Box<dyn Any + Send>| Err(RunError::Panicked(panic_text(panic.as_ref())));
        while let Some((index, threads, unit)) = self.begin() {
            let result = catch_unwind(AssertUnwindSafe(|| work(unit, &self.is_stopped))).unwrap_or_else(panicked);
            if result.is_err() {
                self.stop();
            }
            self.end(threads);
            // Results are received until all senders are dropped, unless the receiver panics.
            if sender.send(result.map_err(|error| (index + 1, error))).is_err() {
                self.stop();
            }
        }
    }

    /// Takes the next unit when its threads are free. Returns its index, the number of its threads, and the unit; `None` after
    /// the last one, or if the work was stopped.
    fn begin(&self) -> Option<(usize, usize, J)> {
        // Held while this unit waits for threads, so that units begin in order.
        let mut units = self.units.lock();
        let (index, (threads, unit)) = units.next().filter(|_| !self.is_stopped())?;
        let threads = threads.clamp(1, self.threads);
        let mut free = self.free_threads.lock();
        while *free < threads && !self.is_stopped() {
            self.changed.wait(&mut free);
        }
        if self.is_stopped() {
            return None;
        }
        *free -= threads;
        Some((index, threads, unit))
    }

    /// Frees the threads of a unit.
    fn end(&self, threads: usize) {
        *self.free_threads.lock() += threads;
        self.changed.notify_one();
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        // Whoever holds the lock has seen the flag or waits once it is released.
        drop(self.free_threads.lock());
        self.changed.notify_one();
    }
}

/// Calls `work` with every unit, and `take` with the results, in the order in which they are finished, so that no result waits
/// for a slow unit. Each unit comes with the number of threads that it uses; the units in progress together use at most
/// `threads`. Units begin in order. About one result per thread waits until earlier ones are taken.
///
/// After an error no unit is begun, and the flag that `work` gets is set, so that it may give up and return `None`. `take` still
/// gets the results of the units in progress, unless it has failed itself.
///
/// # Errors
/// The first error of `take`; otherwise that of the first unit, in their order, that failed or panicked.
pub(crate) fn as_finished<J: Send, P: Send, E: Send>(
    threads: usize,
    units: impl Iterator<Item = (usize, J)> + Send,
    work: impl Fn(J, &AtomicBool) -> Result<Option<P>, RunError<E>> + Sync,
    mut take: impl FnMut(P) -> Result<(), E>,
) -> Result<(), RunError<E>> {
    let threads = threads.max(1);
    let worker_count = units.size_hint().1.map_or(threads, |count| count.min(threads));
    let (units, work) = (&Units::new(units, threads), &work);
    let (sender, results) = mpsc::sync_channel(worker_count);
    thread::scope(|scope| {
        let mut first_error = FirstError(None);
        for number in 0..worker_count {
            let (sender, builder) = (sender.clone(), thread::Builder::new().name(format!("irikey-input-{number}")));
            if let Err(error) = builder.spawn_scoped(scope, || units.run(work, sender)) {
                units.stop();
                first_error.add(usize::MAX, RunError::Threads(error.to_string()));
                break;
            }
        }
        drop(sender);
        for result in results {
            let taken = result.and_then(|result| match result {
                Some(result) if !first_error.is_of_take() => take(result).map_err(|error| (0, RunError::Output(error))),
                _ => Ok(()),
            });
            if let Err((place, error)) = taken {
                units.stop();
                first_error.add(place, error);
            }
        }
        first_error.0.map_or(Ok(()), |(_, error)| Err(error))
    })
}

/// The error of the first unit that has one, after its place; 0 for an error of `take`.
struct FirstError<E>(Option<(usize, RunError<E>)>);

impl<E> FirstError<E> {
    fn add(&mut self, place: usize, error: RunError<E>) {
        if self.0.as_ref().is_none_or(|(first, _)| place < *first) {
            self.0 = Some((place, error));
        }
    }

    fn is_of_take(&self) -> bool {
        matches!(self.0, Some((0, _)))
    }
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
        let work = |unit: usize, _: &AtomicBool| {
            let is_waiting = |_: &u32| unit == 0 && taken_count.load(Ordering::Relaxed) + 1 < COUNT;
            (0..10_000_000).take_while(is_waiting).for_each(|_| thread::yield_now());
            Ok::<_, RunError<&str>>(Some(unit))
        };
        let mut taken = Vec::new();
        let take = |unit| {
            taken.push(unit);
            taken_count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        as_finished(2, (0..COUNT).map(|unit| (1, unit)), work, take).unwrap();
        assert_eq!((taken.len(), taken.last()), (COUNT, Some(&0)));
        taken.sort_unstable();
        assert!(taken.into_iter().eq(0..COUNT));
    }

    #[test]
    fn after_an_error_no_unit_is_begun_and_what_is_finished_is_taken() {
        let units = |count: usize| (0..count).map(|unit| (1, unit));
        let (begun, mut taken) = (AtomicUsize::new(0), Vec::new());
        let work = |unit: usize, _: &AtomicBool| {
            begun.fetch_add(1, Ordering::Relaxed);
            // The unit before the one that fails is finished after it.
            while unit == 6 && begun.load(Ordering::Relaxed) < 8 {
                thread::yield_now();
            }
            if unit == 7 { Err(RunError::Output("seven")) } else { Ok(Some(unit)) }
        };
        let ran = as_finished(2, units(100), work, |unit| {
            taken.push(unit);
            Ok(())
        });
        assert!(matches!(ran, Err(RunError::Output("seven"))));
        taken.sort_unstable();
        assert!(begun.into_inner() <= 9 && taken.starts_with(&[0, 1, 2, 3, 4, 5, 6]), "{taken:?}");
        let mut count = 0;
        let full = as_finished(
            3,
            units(100),
            |unit, _| Ok(Some(unit)),
            |_| {
                count += 1;
                if count == 5 { Err("full") } else { Ok(()) }
            },
        );
        assert!(matches!(full, Err(RunError::Output("full"))) && count == 5);
        let panicked =
            as_finished(2, units(9), |_, _| -> Result<Option<()>, RunError<&str>> { panic!("nine") }, |()| Ok(()));
        assert!(matches!(panicked, Err(RunError::Panicked(text)) if text == "nine"));
    }

    /// Of units that fail side by side, the first one counts, however late it fails; units in progress see that they may give up.
    #[test]
    fn the_error_is_that_of_the_first_unit() {
        for _ in 0..20 {
            let work = |unit: usize, is_stopped: &AtomicBool| {
                while unit < 2 && !is_stopped.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                if unit == 0 { Ok(None) } else { Err(RunError::Output(unit)) }
            };
            let ran = as_finished(4, (0..100).map(|unit| (1, unit)), work, |()| Ok(()));
            assert!(matches!(ran, Err(RunError::Output(1))), "{ran:?}");
        }
    }

    /// The units in progress never use more threads than there are, and each gets its number.
    #[test]
    fn units_wait_for_their_threads() {
        const THREADS: usize = 5;
        let (used, most, begun) = (AtomicUsize::new(0), AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = |(unit, threads): (usize, usize), _: &AtomicBool| {
            let in_use = used.fetch_add(threads, Ordering::Relaxed) + threads;
            most.fetch_max(in_use, Ordering::Relaxed);
            begun.lock().push(unit);
            thread::sleep(std::time::Duration::from_micros(50));
            used.fetch_sub(threads, Ordering::Relaxed);
            Ok::<_, RunError<&str>>(Some(()))
        };
        // The last units ask for more threads than there are.
        let threads = (0..60).map(|unit| if unit > 55 { 9 } else { unit % 6 });
        let units = threads.enumerate().map(|(unit, threads)| (threads, (unit, threads.clamp(1, THREADS))));
        let mut count = 0;
        let take = |()| {
            count += 1;
            Ok(())
        };
        as_finished(THREADS, units, work, take).unwrap();
        assert_eq!((count, most.into_inner()), (60, THREADS));
        // A unit may begin just before the one before it is noted, but none overtakes many.
        let begun = begun.into_inner();
        assert!(begun.iter().enumerate().all(|(place, unit)| place.abs_diff(*unit) <= THREADS), "{begun:?}");
    }
}
