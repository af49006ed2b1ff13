//! A bounded queue that puts results of parallel work back in order, see [`ReorderQueue`].

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

/// How much work may be ahead of the consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// Weight of the tickets that are taken and not consumed yet; at least 1. A ticket that weighs more is alone.
    pub(crate) window: usize,
    /// Bytes of all items in the queue. The queue exceeds the limit by one item at most, and only if that is the item
    /// that the consumer needs next.
    pub(crate) bytes: usize,
}

/// A worker dropped its ticket without finishing it; it panicked or gave up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abandoned;

/// A bounded reorder queue. Workers take numbered tickets and push the items of each; the consumer gets the items of
/// ticket 0 first, then those of ticket 1, and so on.
///
/// The consumer is either one thread that calls [`ReorderQueue::pop`], or the workers themselves: each worker calls
/// [`ReorderQueue::drain`] after it has finished a ticket, and one of them consumes for all. A queue uses one of the two.
#[derive(Debug)]
pub(crate) struct ReorderQueue<T> {
    state: Mutex<QueueState<T>>,
    /// Signals workers that there is space, for a ticket or for an item.
    space: Condvar,
    /// Signals the consumer that the first slot has changed.
    items: Condvar,
    limits: QueueLimits,
    /// Changes only while `state` is locked.
    is_stopped: AtomicBool,
}

#[derive(Debug)]
struct QueueState<T> {
    /// Number of the first slot, which is consumed next.
    first: u64,
    /// One slot per ticket that was taken and is not consumed yet.
    slots: VecDeque<QueueSlot<T>>,
    /// Weight of all slots.
    weight: usize,
    /// Bytes of all items in the slots.
    held: usize,
    /// The source has no more work, or has failed.
    is_closed: bool,
    /// A worker consumes items now.
    is_draining: bool,
}

#[derive(Debug)]
struct QueueSlot<T> {
    /// How much of the window the ticket takes.
    weight: usize,
    /// Items and their lengths in bytes.
    items: VecDeque<(T, usize)>,
    status: SlotStatus,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotStatus {
    Open,
    Finished,
    Abandoned,
}

impl<T> QueueState<T> {
    /// Number of the next ticket.
    fn next_number(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// Index of the slot of ticket `number`; `None` if the consumer has passed it.
    fn slot(&mut self, number: u64) -> Option<&mut QueueSlot<T>> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.slots.get_mut(index)
    }

    /// The consumer waits for an item of ticket `number`.
    fn is_needed(&mut self, number: u64) -> bool {
        self.first == number && self.slots.front().is_some_and(|slot| slot.items.is_empty())
    }

    /// Takes the next item of the first slot.
    fn pop(&mut self) -> Option<T> {
        let (item, len) = self.slots.front_mut()?.items.pop_front()?;
        self.held -= len;
        Some(item)
    }

    /// Removes the first slot if its ticket is finished and all its items are consumed.
    fn advance(&mut self) -> bool {
        let is_finished = |slot: &QueueSlot<T>| slot.items.is_empty() && slot.status == SlotStatus::Finished;
        let is_finished = self.slots.front().is_some_and(is_finished);
        if is_finished {
            self.remove_first();
        }
        is_finished
    }

    fn remove_first(&mut self) {
        if let Some(slot) = self.slots.pop_front() {
            self.held -= slot.items.iter().map(|(_, len)| len).sum::<usize>();
            self.weight -= slot.weight;
            self.first += 1;
        }
    }
}

impl<T> ReorderQueue<T> {
    pub(crate) fn new(limits: QueueLimits) -> ReorderQueue<T> {
        let slots = VecDeque::new();
        let state = QueueState { first: 0, slots, weight: 0, held: 0, is_closed: false, is_draining: false };
        ReorderQueue {
            state: Mutex::new(state),
            space: Condvar::new(),
            items: Condvar::new(),
            limits: QueueLimits { window: limits.window.max(1), ..limits },
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Waits until the queue is stopped or `has_space` holds.
    fn wait_for_space(&self, mut has_space: impl FnMut(&mut QueueState<T>) -> bool) -> MutexGuard<'_, QueueState<T>> {
        let mut state = self.state.lock();
        self.space.wait_while(&mut state, |state| !self.is_stopped() && !has_space(state));
        state
    }

    /// Stops the work: all waiting threads return, and nothing is consumed any more.
    pub(crate) fn stop(&self) {
        let state = self.state.lock();
        self.is_stopped.store(true, Ordering::Release);
        drop(state);
        self.space.notify_all();
        self.items.notify_all();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Takes the next unit of work from `source` and issues its ticket, once the window has space. `source` gets the
    /// number of the ticket; it returns the weight of the unit, usually 1, and the unit, or `None` after the last one. Returns
    /// `None` after the last unit, if the work was stopped, and if `source` has failed in another thread.
    ///
    /// # Errors
    /// An error of `source`. It is not called again after an error or a panic; its ticket is abandoned.
    pub(crate) fn take<J, E>(
        &self,
        source: &Mutex<impl FnMut(u64) -> Result<Option<(usize, J)>, E>>,
    ) -> Result<Option<(ItemSender<'_, T>, J)>, E> {
        // The lock is held while this thread waits for space: without space, no other thread could take work either.
        let mut source = source.lock();
        loop {
            let window = self.limits.window;
            let state = self.wait_for_space(|state| state.weight < window);
            if self.is_stopped() || state.is_closed {
                return Ok(None);
            }
            let number = state.next_number();
            drop(state);
            // Dropped before the lock of the source.
            let failure = SourceFailure(self);
            let unit = source(number)?;
            std::mem::forget(failure);
            let Some((weight, work)) = unit else {
                self.state.lock().is_closed = true;
                self.items.notify_all();
                return Ok(None);
            };
            let mut state = self.wait_for_space(|state| state.slots.is_empty() || state.weight + weight <= window);
            if self.is_stopped() {
                return Ok(None);
            }
            // Otherwise the consumer has skipped this number meanwhile.
            if state.next_number() == number {
                state.slots.push_back(QueueSlot { weight, items: VecDeque::new(), status: SlotStatus::Open });
                state.weight += weight;
                return Ok(Some((ItemSender { queue: self, number }, work)));
            }
        }
    }

    /// Takes the next item, in the order of the tickets; waits for it if necessary. Returns `None` after the last item, and
    /// if the queue was stopped.
    ///
    /// # Errors
    /// The next ticket was abandoned after the items that were returned so far. The items of later tickets follow.
    pub(crate) fn pop(&self) -> Option<Result<T, Abandoned>> {
        let mut state = self.state.lock();
        while !self.is_stopped() {
            if let Some(item) = state.pop() {
                state.advance();
                drop(state);
                self.space.notify_all();
                return Some(Ok(item));
            }
            match state.slots.front().map(|slot| slot.status) {
                Some(SlotStatus::Open) => (),
                Some(status) => {
                    state.remove_first();
                    self.space.notify_all();
                    if status == SlotStatus::Abandoned {
                        return Some(Err(Abandoned));
                    }
                    continue;
                }
                None if state.is_closed => return None,
                None => (),
            }
            self.items.wait(&mut state);
        }
        None
    }

    /// Drops all items of tickets before `number`, and does not issue such tickets any more.
    pub(crate) fn skip_to(&self, number: u64) {
        let mut state = self.state.lock();
        while state.first < number && !state.slots.is_empty() {
            state.remove_first();
        }
        state.first = state.first.max(number);
        drop(state);
        self.space.notify_all();
    }

    /// Consumes all items that are ready, in the order of their tickets. Only one thread does so at a time: another returns at
    /// once, because the first also consumes what is pushed meanwhile. Returns false if the work was stopped. Never passes an
    /// abandoned ticket, whose worker must stop the work.
    ///
    /// # Errors
    /// An error of `consume`. No item is consumed after it; the caller must stop the work.
    pub(crate) fn drain<E>(&self, mut consume: impl FnMut(T) -> Result<(), E>) -> Result<bool, E> {
        let mut state = self.state.lock();
        if state.is_draining {
            return Ok(!self.is_stopped());
        }
        state.is_draining = true;
        while !self.is_stopped() {
            let Some(item) = state.pop() else {
                if state.advance() {
                    self.space.notify_all();
                    continue;
                }
                break;
            };
            drop(state);
            self.space.notify_all();
            // After an error `is_draining` stays set: no other thread may consume what comes after the gap.
            consume(item)?;
            state = self.state.lock();
        }
        state.is_draining = false;
        Ok(!self.is_stopped())
    }
}

/// A call of the source. Dropping it, because of an error or a panic, closes the queue after a ticket that is abandoned.
struct SourceFailure<'a, T>(&'a ReorderQueue<T>);

impl<T> Drop for SourceFailure<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_closed = true;
        state.slots.push_back(QueueSlot { weight: 0, items: VecDeque::new(), status: SlotStatus::Abandoned });
        drop(state);
        self.0.items.notify_all();
    }
}

/// A worker's end of the queue: pushes the items of one ticket. Dropping it before [`ItemSender::finish`] marks the ticket
/// as abandoned.
#[derive(Debug)]
pub(crate) struct ItemSender<'a, T> {
    queue: &'a ReorderQueue<T>,
    number: u64,
}

impl<T> ItemSender<'_, T> {
    /// The number of the ticket, from 0.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Adds an item of `len` bytes, once there is space for it. Returns false if it is not wanted: the queue was stopped, or
    /// the consumer has skipped this ticket.
    pub(crate) fn push(&mut self, item: T, len: usize) -> bool {
        let (queue, number) = (self.queue, self.number);
        let has_space = |state: &mut QueueState<T>| {
            let held = state.held.saturating_add(len);
            held <= queue.limits.bytes || number < state.first || state.is_needed(number)
        };
        let mut state = queue.wait_for_space(has_space);
        if queue.is_stopped() {
            return false;
        }
        let is_first = number == state.first;
        let Some(slot) = state.slot(number) else { return false };
        slot.items.push_back((item, len));
        state.held += len;
        drop(state);
        if is_first {
            queue.items.notify_all();
        }
        true
    }

    /// Ends the ticket: it has no more items.
    pub(crate) fn finish(self) {
        self.end(SlotStatus::Finished);
        std::mem::forget(self);
    }

    fn end(&self, status: SlotStatus) {
        let mut state = self.queue.state.lock();
        if let Some(slot) = state.slot(self.number).filter(|slot| slot.status == SlotStatus::Open) {
            slot.status = status;
        }
        drop(state);
        self.queue.items.notify_all();
    }
}

impl<T> Drop for ItemSender<'_, T> {
    fn drop(&mut self) {
        self.end(SlotStatus::Abandoned);
    }
}

#[cfg(test)]
mod tests;
