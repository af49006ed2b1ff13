//! Parallel work whose results are appended in order: [`OrderedPool`] for work that has serial stages or a state per
//! worker, [`in_order`] for numbered work, [`produced_in_order`] for work that one thread at a time produces.

use super::error::RunError;
use crate::ordered::{QueueLimits, ReorderQueue, StageTicket, Stages};
use parking_lot::Mutex;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Threads that work in parallel and append results in order.
#[derive(Debug)]
pub(super) struct OrderedPool {
    threads: rayon::ThreadPool,
    stage_count: usize,
    /// Maximum number of units between `next` and the end of `append`, see [`OrderedPool::run`].
    window: usize,
}

impl OrderedPool {
    /// Starts `threads` threads for work with `stage_count` serial stages, see [`StageTicket::pass`].
    pub(super) fn new<E>(threads: usize, stage_count: usize) -> Result<OrderedPool, RunError<E>> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|number| format!("irikey-{number}"))
            .build();
        let threads = pool.map_err(|error| RunError::Threads(error.to_string()))?;
        let window = threads.current_num_threads() * 2;
        Ok(OrderedPool { threads, stage_count, window })
    }

    /// The same pool, in which `count` more units may be between `next` and the end of `append`.
    pub(super) fn with_larger_window(self, count: usize) -> OrderedPool {
        OrderedPool { window: self.window.saturating_add(count), ..self }
    }

    /// Calls `work` on all threads with the units that `next` returns, until that returns `None`, and `append` with the
    /// results, in the order of the units. `work` returns `None` if a stage did, because the run was stopped. At most two
    /// units per thread, and those of [`OrderedPool::with_larger_window`], are between `next` and the end of `append`, which
    /// bounds memory. `next` also returns the weight of a unit: the number of units for which it counts. A unit that weighs
    /// more than all these is worked on alone. Returns the workers.
    ///
    /// # Errors
    /// The first error of any of the functions, or a panic. Nothing is appended after an error.
    pub(super) fn run<W: Send, J, P: Send, E: Send>(
        &self,
        new_worker: impl Fn() -> W + Sync,
        mut next: impl FnMut() -> Result<Option<(usize, J)>, RunError<E>> + Send,
        work: impl Fn(&mut W, &StageTicket<'_>, J) -> Result<Option<P>, RunError<E>> + Sync,
        append: impl FnMut(P) -> Result<(), E> + Send,
    ) -> Result<Vec<W>, RunError<E>> {
        // The window bounds bytes, too, if units are bounded: in a run, a unit of weight 1 is a row group or less.
        let queue = ReorderQueue::new(QueueLimits { window: self.window, bytes: usize::MAX });
        let stages = Stages::new(self.stage_count);
        let (source, append, failed) = (Mutex::new(move |_| next()), Mutex::new(append), Mutex::new(None));
        let fail = |error| {
            failed.lock().get_or_insert(error);
            queue.stop();
            stages.stop();
        };
        let one = |worker: &mut W| -> Result<bool, RunError<E>> {
            let Some((mut sender, unit)) = queue.take(&source)? else { return Ok(false) };
            let ticket = StageTicket::new(sender.number(), &stages);
            let Some(result) = work(worker, &ticket, unit)? else { return Ok(false) };
            sender.push(result, 0);
            sender.finish();
            queue.drain(|result| (append.lock())(result).map_err(RunError::Output))
        };
        let workers = self.threads.broadcast(|_| {
            let mut worker = new_worker();
            loop {
                match catch_unwind(AssertUnwindSafe(|| one(&mut worker))) {
                    Ok(Ok(true)) => continue,
                    Ok(Ok(false)) => (),
                    Ok(Err(error)) => fail(error),
                    Err(panic) => fail(RunError::Panicked(panic_text(panic.as_ref()))),
                }
                return worker;
            }
        });
        failed.into_inner().map_or(Ok(workers), Err)
    }
}

/// Calls `work` with every number below `count`, on `threads` threads, and `append` with the results, in order.
pub(super) fn in_order<P: Send, E: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> Result<P, E> + Sync,
    append: impl FnMut(P) -> Result<(), E> + Send,
) -> Result<(), RunError<E>> {
    let mut numbers = 0..count;
    produced_in_order(threads.min(count), move || Ok(numbers.next()), work, append)
}

/// Calls `work` with the units that `next` returns, until that returns `None`, on `threads` threads, and `append` with
/// the results, in the order of the units. At most two units per thread are in progress.
///
/// # Errors
/// The first error of any of them, or a panic. Nothing is appended after an error.
pub(super) fn produced_in_order<J, P: Send, E: Send>(
    threads: usize,
    mut next: impl FnMut() -> Result<Option<J>, E> + Send,
    work: impl Fn(J) -> Result<P, E> + Sync,
    append: impl FnMut(P) -> Result<(), E> + Send,
) -> Result<(), RunError<E>> {
    let next = move || next().map(|unit| unit.map(|unit| (1, unit))).map_err(RunError::Output);
    let work = |(): &mut (), _: &StageTicket<'_>, unit| work(unit).map(Some).map_err(RunError::Output);
    OrderedPool::new(threads, 0)?.run(|| (), next, work, append)?;
    Ok(())
}

pub(super) fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_string(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_are_appended_in_order_until_an_error() {
        for threads in [1, 3] {
            let mut all = Vec::new();
            let append = |i| {
                all.push(i);
                if i == 60 { Err("full") } else { Ok(()) }
            };
            let ran = in_order(threads, 100, Ok::<_, &str>, append);
            assert!(matches!(ran, Err(RunError::Output("full"))));
            assert!(all.into_iter().eq(0..=60));
            let ran = in_order(threads, 100, |i| if i == 7 { panic!("seven") } else { Ok::<_, &str>(i) }, |_| Ok(()));
            assert!(matches!(ran, Err(RunError::Panicked(text)) if text == "seven"));
            assert!(in_order(threads, 0, Ok::<_, &str>, |_| Ok(())).is_ok());
        }
    }

    /// Later units may fail for other reasons, or not at all.
    #[test]
    fn the_first_error_of_the_source_is_reported_and_nothing_follows_it() {
        for attempt in 0..300 {
            let (mut number, mut appended) = (0, 0);
            let next = || {
                number += 1;
                if number == 7 || number == 9 { Err(number) } else { Ok(Some(number)) }
            };
            let append = |number| {
                appended = number;
                Ok(())
            };
            let ran = produced_in_order(4, next, Ok, append);
            assert!(matches!(ran, Err(RunError::Output(7))), "attempt {attempt}: {ran:?}");
            assert!(number == 7 && appended < 7, "attempt {attempt}: {number}, {appended}");
        }
    }

    /// Without a limit, a slow unit does not keep others waiting.
    #[test]
    fn units_are_taken_while_the_first_one_is_in_progress() {
        const COUNT: usize = 1_000;
        let (pool, done) =
            (OrderedPool::new::<&str>(2, 0).unwrap().with_larger_window(usize::MAX), AtomicUsize::new(1));
        let mut numbers = 0..COUNT;
        let work = |(): &mut (), _: &StageTicket<'_>, number| {
            let is_waiting = |_: &u32| number == 0 && done.load(Ordering::Relaxed) < COUNT;
            (0..10_000_000).take_while(is_waiting).for_each(|_| std::thread::yield_now());
            assert!(!is_waiting(&0), "{} units", done.load(Ordering::Relaxed));
            done.fetch_add(1, Ordering::Relaxed);
            Ok(Some(number))
        };
        let mut appended = Vec::new();
        let append = |number| {
            appended.push(number);
            Ok::<_, &str>(())
        };
        pool.run(|| (), || Ok(numbers.next().map(|number| (1, number))), work, append).unwrap();
        assert!(done.into_inner() == COUNT + 1 && appended.into_iter().eq(0..COUNT));
    }

    #[test]
    fn a_failed_worker_wakes_workers_that_wait_for_a_stage() {
        let pool = OrderedPool::new::<&str>(3, 1).unwrap();
        let mut numbers = 0..100;
        let work = |(): &mut (), ticket: &StageTicket<'_>, number| match number {
            20 => Err(RunError::Output("twenty")),
            _ => Ok(ticket.pass(0, || number)),
        };
        let mut last = None;
        let append = |number| {
            last = Some(number);
            Ok(())
        };
        let ran = pool.run(|| (), || Ok(numbers.next().map(|number| (1, number))), work, append);
        assert!(matches!(ran, Err(RunError::Output("twenty"))));
        assert!(last <= Some(19));
    }
}
