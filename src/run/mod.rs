//! Wires the rooms together; the only one with threads. In: sources, options, a policy, and two closures of the caller:
//! `encode` makes a part out of rows, `append` writes parts in order. Out: a [`Summary`] whose counts balance.
//!
//! ```text
//!            one at a time            each worker                                  one at a time, in order
//! Sources --[Cutter: spans]--> pieces --decode--> records --canon--> Rows --encode--> part --[Order]--> append
//!                                         |                           ^
//!                                         +--[Order: record ordinals]-+
//! ```
//!
//! A **span** is what becomes one part (a row group): the whole records that begin within one stretch of
//! `row_group_len` bytes of the sources laid end to end. So parts, like rows, depend on the sources, the format and
//! `row_group_len` alone, and not on threads, chunk length, mapping or timing. At most two spans a thread are ahead of
//! the next one to append, which bounds memory.

mod body;
mod check_sorted;
mod count;
mod cut;
mod dedup;
mod distinct;
mod error;
mod in_order;
mod lanes;
mod learn;
pub mod memory;
mod options;
mod order;
mod sort;
mod summary;
mod worker;

pub(crate) use check_sorted::sorted_rows_counter;
pub use check_sorted::{CheckSortedError, check_sorted};
pub use count::{Counted, Counting, count};
pub use dedup::{DedupError, DedupKey, DedupOptions, Deduped, Given, TableError, Tables, dedup, dedup_tables};
pub use distinct::{Distinct, HyperLogLog};
pub use error::RunError;
pub use in_order::produced_in_order;
pub use lanes::Turn;
pub use learn::{ObserveError, Watched, observe};
pub use options::{MAX_RECORD_LEN, MAX_ROW_GROUP_LEN, RunOptions};
pub(crate) use sort::columns_to_sort;
pub use sort::{PartCut, SortError, SortOptions, SortSummary, SortedPart, Sorter, sort};
pub use summary::{Progress, Summary};

use crate::batch::SourceRun;
use crate::canon::{Policy, Rows};
use crate::input::Sources;
use cut::Cutter;
use lanes::Lanes;
use order::Order;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use summary::Totals;
use worker::Worker;

/// Canonicalises every record of `inputs`: each span's rows go through `encode`, on a worker, and what that gives goes
/// through `append`, one part at a time, in the order of the input. `encode` may take the rows' memory.
///
/// Damaged sources do not end the run: they are in the summary, and their rows before the damage are in the output.
///
/// # Errors
/// The first error of `encode` or `append`, unchanged in [`RunError::Output`]; columns that are not there; a panic in a
/// worker; counts that do not balance. No further part is appended after an error.
pub fn canon<P, E>(
    inputs: Sources,
    options: &RunOptions,
    policy: &Policy,
    encode: impl Fn(&mut Rows, &[SourceRun]) -> Result<P, E> + Sync,
    append: impl FnMut(P) -> Result<(), E> + Send,
    progress: &Progress,
) -> Result<Summary, RunError<E>>
where
    P: Send,
    E: std::error::Error + Send,
{
    let encode = |_: &Turn<'_>, rows: &mut Rows, runs: &[SourceRun]| encode(rows, runs).map(Some);
    canon_in_turn(inputs, options, policy, encode, append, progress)
}

/// [`canon`], with an `encode` that knows the span's place among the others and may do part of its work in their order.
/// It gives `None` when [`Turn::pass`] did: the run is being stopped.
///
/// # Errors
/// As [`canon`].
pub fn canon_in_turn<P, E>(
    inputs: Sources,
    options: &RunOptions,
    policy: &Policy,
    encode: impl Fn(&Turn<'_>, &mut Rows, &[SourceRun]) -> Result<Option<P>, E> + Sync,
    append: impl FnMut(P) -> Result<(), E> + Send,
    progress: &Progress,
) -> Result<Summary, RunError<E>>
where
    P: Send,
    E: std::error::Error + Send,
{
    let options = options.clamped();
    progress.set_total(inputs.total_len());
    let names = inputs.names();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .thread_name(|i| format!("irikey-{i}"))
        .build()
        .map_err(|error| RunError::Threads(error.to_string()))?;
    let shared = Shared {
        cutter: Mutex::new(Cutter::new(inputs, &options, policy, progress)),
        order: Order::new(names.len(), options.threads * 2),
        lanes: Lanes::new(),
        distinct: Distinct::default(),
        options: &options,
        progress,
        encode,
        append: Mutex::new(append),
        failed: Mutex::new(None),
    };
    let totals = pool.broadcast(|_| shared.work(policy));
    let Shared { cutter, order, failed, .. } = shared;
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let (counts, appended) = order.finish();
    let cutter = cutter.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (headers, bytes, skipped) = (cutter.header_count(), cutter.archive_bytes(), cutter.skipped());
    let mut all = Totals { headers, bytes, skipped, ..Totals::default() };
    let stopped = cutter.into_stopped();
    totals.into_iter().for_each(|totals| all.add(totals));
    pool.install(|| summary::summarize(all, names, counts, appended, stopped))
}

/// What the workers of a run share.
struct Shared<'a, P, E, Encode, Append> {
    cutter: Mutex<Cutter<'a>>,
    order: Order<P>,
    lanes: Lanes,
    /// What the workers' counts of keys are beside.
    distinct: Distinct,
    options: &'a RunOptions,
    progress: &'a Progress,
    encode: Encode,
    append: Mutex<Append>,
    /// The first error.
    failed: Mutex<Option<RunError<E>>>,
}

impl<P, E, Encode, Append> Shared<'_, P, E, Encode, Append>
where
    P: Send,
    E: std::error::Error + Send,
    Encode: Fn(&Turn<'_>, &mut Rows, &[SourceRun]) -> Result<Option<P>, E> + Sync,
    Append: FnMut(P) -> Result<(), E> + Send,
{
    /// One worker's life. An error or a panic stops all.
    fn work(&self, policy: &Policy) -> Totals {
        let mut worker = Worker::new(self.options, policy, self.distinct.beside());
        let result = catch_unwind(AssertUnwindSafe(|| {
            while self.span(&mut worker)? {}
            Ok(())
        }));
        match result {
            Ok(Ok(())) => (),
            Ok(Err(error)) => self.fail(error),
            Err(panic) => self.fail(RunError::Panicked(panic_text(panic.as_ref()))),
        }
        worker.into_totals()
    }

    /// Takes a span all the way; false when there are no more, or the run has been stopped.
    fn span(&self, worker: &mut Worker) -> Result<bool, RunError<E>> {
        let Some((index, span)) = self.next_span()? else { return Ok(false) };
        if !worker.decode(span, self.progress, || self.order.is_stopped())? {
            return Ok(false);
        }
        let Some(first_row) = self.order.number(index, worker.runs_mut()) else { return Ok(false) };
        let rows = worker.rows().len() as u64;
        let (all, runs) = worker.results();
        let turn = Turn { index, first_row, lanes: &self.lanes };
        let Some(part) = (self.encode)(&turn, all, runs).map_err(RunError::Output)? else { return Ok(false) };
        worker.clear();
        memory::sample();
        self.order.put(index, part, rows, |part| {
            let mut append = self.append.lock().unwrap_or_else(PoisonError::into_inner);
            append(part).map_err(RunError::Output)
        })
    }

    /// The next span and its number, once there is room for it.
    fn next_span(&self) -> Result<Option<(u64, cut::Span)>, RunError<E>> {
        let mut cutter = self.cutter.lock().unwrap_or_else(PoisonError::into_inner);
        let index = cutter.cut_count();
        // Whoever waits here keeps the others from cutting, who would have to wait as well.
        if !self.order.wait_for_room(index) {
            return Ok(None);
        }
        let span = cutter.next_span().map_err(|(name, error)| RunError::Columns { name, error })?;
        Ok(span.map(|span| (index, span)))
    }

    fn fail(&self, error: RunError<E>) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.order.stop();
        self.lanes.stop();
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_string(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_string(),
    }
}
