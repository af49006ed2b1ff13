//! Items made by background threads ahead of their consumer, see [`ReadAhead`].

use super::queue::{Abandoned, ItemSender, QueueLimits, ReorderQueue};
use parking_lot::Mutex;
use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Items in the order of their tickets, made by several background threads. Dropping it stops the threads and waits until
/// they have ended.
#[derive(Debug)]
pub(crate) struct ReadAhead<T> {
    queue: Arc<ReorderQueue<T>>,
    threads: Vec<JoinHandle<()>>,
}

impl<T: Send + 'static> ReadAhead<T> {
    /// Starts the threads. `source` returns the weight (see [`QueueLimits::window`]) and the unit of work of a ticket number, or
    /// `None` after the last one; `work` makes the items of a unit, and returns early if a push returns false.
    pub(crate) fn spawn<J: 'static>(
        thread_count: usize,
        limits: QueueLimits,
        mut source: impl FnMut(u64) -> Option<(usize, J)> + Send + 'static,
        work: impl Fn(J, &mut ItemSender<'_, T>) + Send + Sync + 'static,
    ) -> io::Result<ReadAhead<T>> {
        let queue = Arc::new(ReorderQueue::new(limits));
        let source = Mutex::new(move |number| Ok::<_, Infallible>(source(number)));
        let worker = Arc::new(AheadWorker { queue: Arc::clone(&queue), source, work });
        let mut threads = Vec::new();
        for number in 0..thread_count {
            let worker = Arc::clone(&worker);
            match Builder::new().name(format!("irikey-read-{number}")).spawn(move || worker.run()) {
                Ok(thread) => threads.push(thread),
                // Fewer threads do the same work.
                Err(_) if !threads.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(ReadAhead { queue, threads })
    }

    /// Drops the items of all tickets before `number`; their work is not started any more.
    pub(crate) fn skip_to(&self, number: u64) {
        self.queue.skip_to(number);
    }
}

impl<T> Iterator for ReadAhead<T> {
    type Item = Result<T, Abandoned>;

    fn next(&mut self) -> Option<Result<T, Abandoned>> {
        self.queue.pop()
    }
}

impl<T> Drop for ReadAhead<T> {
    fn drop(&mut self) {
        self.queue.stop();
        for thread in self.threads.drain(..) {
            // Threads catch panics of the work, and the consumer has seen the abandoned ticket.
            let _ = thread.join();
        }
    }
}

/// What the threads of a [`ReadAhead`] share.
struct AheadWorker<T, Source, Work> {
    queue: Arc<ReorderQueue<T>>,
    source: Mutex<Source>,
    work: Work,
}

impl<T, J, Source, Work> AheadWorker<T, Source, Work>
where
    Source: FnMut(u64) -> Result<Option<(usize, J)>, Infallible>,
    Work: Fn(J, &mut ItemSender<'_, T>),
{
    fn run(&self) {
        loop {
            let taken = catch_unwind(AssertUnwindSafe(|| self.queue.take(&self.source)));
            // After a panic of the source, the consumer finds an abandoned ticket.
            let Ok(Ok(Some((mut sender, unit)))) = taken else { return };
            // A unit that panics is abandoned; the thread goes on, so that the units after it are still made.
            let worked = catch_unwind(AssertUnwindSafe(|| (self.work)(unit, &mut sender)));
            if worked.is_ok() {
                sender.finish();
            }
        }
    }
}
