//! Pieces of work, side by side, with what comes of them appended in order: [`in_order`] if they are numbered,
//! [`produced_in_order`] if somebody has to make them one after the other.

use super::error::RunError;
use super::order::Order;
use super::panic_text;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// Calls `work` with every number below `count`, on `threads` threads, and `append` with what it gives, in order.
///
/// # Errors
/// The first error of either; a panic. Nothing is appended after an error.
pub fn in_order<P: Send, E: Send>(
    threads: usize,
    count: usize,
    work: impl Fn(usize) -> Result<P, E> + Sync,
    append: impl FnMut(P) -> Result<(), E> + Send,
) -> Result<(), RunError<E>> {
    let mut numbers = 0..count;
    produced_in_order(threads.min(count), move || Ok(numbers.next()), work, append)
}

/// Calls `work` with whatever `next` gives, until that is nothing, on `threads` threads, and `append` with what comes of
/// it, in the order in which `next` gave it. No more than two pieces a thread are under way.
///
/// # Errors
/// The first error of any of them; a panic. Nothing is appended after an error.
pub fn produced_in_order<J, P: Send, E: Send>(
    threads: usize,
    next: impl FnMut() -> Result<Option<J>, E> + Send,
    work: impl Fn(J) -> Result<P, E> + Sync,
    append: impl FnMut(P) -> Result<(), E> + Send,
) -> Result<(), RunError<E>> {
    let threads = threads.max(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("irikey-{i}")).build();
    let pool = pool.map_err(|error| RunError::Threads(error.to_string()))?;
    let (order, next) = (Order::new(0, threads * 2), Mutex::new((0, next)));
    let (append, failed) = (Mutex::new(append), Mutex::new(None));
    let one = || -> Result<bool, E> {
        let (index, piece) = {
            let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
            // Whoever waits here keeps the others from taking a piece, who would have to wait as well.
            if !order.wait_for_room(next.0) {
                return Ok(false);
            }
            let Some(piece) = (next.1)()? else { return Ok(false) };
            next.0 += 1;
            (next.0 - 1, piece)
        };
        let part = work(piece)?;
        order.put(index, part, 0, |part| append.lock().unwrap_or_else(PoisonError::into_inner)(part))
    };
    let fail = |error| {
        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        order.stop();
    };
    pool.broadcast(|_| {
        loop {
            match catch_unwind(AssertUnwindSafe(one)) {
                Ok(Ok(true)) => (),
                Ok(Ok(false)) => return,
                Ok(Err(error)) => return fail(RunError::Output(error)),
                Err(panic) => return fail(RunError::Panicked(panic_text(panic.as_ref()))),
            }
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_in_order_until_an_error() {
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
}
