//! What many workers do, put back in order: [`Order`]. Spans are numbered as they are cut; here they get the ordinals
//! of their records, and their parts are appended, both by that number. In: spans in any order. Out: their order again,
//! with never more than a window of them under way.
//!
//! Nobody waits for ever: whoever works on the earliest span waits for nobody, and [`Order::stop`] wakes all.

use crate::batch::SourceRun;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Spans under way.
#[derive(Debug)]
pub struct Order<P> {
    state: Mutex<State<P>>,
    changed: Condvar,
    /// A span may be this far ahead of the next one to append.
    window: u64,
}

#[derive(Debug)]
struct State<P> {
    is_stopped: bool,
    /// The span whose records are numbered next.
    to_number: u64,
    /// Records numbered so far, by source.
    counts: Vec<u64>,
    /// Their sum.
    numbered: u64,
    /// The span whose part is appended next.
    to_append: u64,
    /// Parts that wait for their turn, with their rows.
    ready: BTreeMap<u64, (P, u64)>,
    /// A worker is appending, and will see to what becomes ready meanwhile.
    is_appending: bool,
    /// Rows of the parts appended so far.
    appended: u64,
}

impl<P> Order<P> {
    /// For this many sources.
    pub fn new(source_count: usize, window: usize) -> Order<P> {
        let state = State {
            is_stopped: false,
            to_number: 0,
            counts: vec![0; source_count],
            numbered: 0,
            to_append: 0,
            ready: BTreeMap::new(),
            is_appending: false,
            appended: 0,
        };
        Order { state: Mutex::new(state), changed: Condvar::new(), window: window.max(1) as u64 }
    }

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `is_so`; false if the run is stopped instead.
    fn wait_until(&self, is_so: impl Fn(&State<P>) -> bool) -> Option<MutexGuard<'_, State<P>>> {
        let waits = |state: &mut State<P>| !state.is_stopped && !is_so(state);
        let state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        (!state.is_stopped).then_some(state)
    }

    /// Ends the run: everyone who waits, or comes to wait, is told so.
    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }

    /// The run was stopped.
    pub fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Waits until span `index` is within the window; false if stopped.
    pub fn wait_for_room(&self, index: u64) -> bool {
        self.wait_until(|state| index < state.to_append + self.window).is_some()
    }

    /// Fills in `first_record` of the runs of span `index`, once all earlier spans have been counted, and says how many
    /// records these had; `None` if stopped.
    pub fn number(&self, index: u64, runs: &mut [SourceRun]) -> Option<u64> {
        let mut state = self.wait_until(|state| state.to_number == index)?;
        let first_row = state.numbered;
        for run in runs {
            let count = &mut state.counts[run.source as usize];
            run.first_record = *count + 1;
            *count += u64::from(run.rows);
            state.numbered += u64::from(run.rows);
        }
        state.to_number += 1;
        drop(state);
        self.changed.notify_all();
        Some(first_row)
    }

    /// Appends the part of span `index` and those that waited for it, or leaves it to whoever appends now; false if
    /// stopped.
    ///
    /// # Errors
    /// What `append` says. Nothing is appended after that: the caller has to stop the run.
    pub fn put<E>(
        &self,
        index: u64,
        part: P,
        rows: u64,
        mut append: impl FnMut(P) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut state = self.lock();
        state.ready.insert(index, (part, rows));
        if state.is_appending {
            return Ok(!state.is_stopped);
        }
        state.is_appending = true;
        while !state.is_stopped {
            let next = state.to_append;
            let Some((part, rows)) = state.ready.remove(&next) else { break };
            drop(state);
            // After an error `is_appending` stays: nobody else may append what comes after the gap.
            append(part)?;
            state = self.lock();
            state.to_append += 1;
            state.appended += rows;
            self.changed.notify_all();
        }
        state.is_appending = false;
        Ok(!state.is_stopped)
    }

    /// Records of each source and rows appended in all.
    pub fn finish(self) -> (Vec<u64>, u64) {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (state.counts, state.appended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    #[test]
    fn parts_come_out_in_order_and_within_the_window() {
        let order = Order::new(1, 4);
        let next = AtomicU64::new(0);
        let appended = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::SeqCst);
                        if index >= 200 || !order.wait_for_room(index) {
                            return;
                        }
                        assert!(index < order.lock().to_append + 4);
                        let mut runs = [SourceRun { source: 0, first_record: 0, rows: index as u32 % 3 }];
                        assert_eq!(order.number(index, &mut runs).map(|first| first + 1), Some(runs[0].first_record));
                        let done = order.put(index, runs[0].first_record, 1, |part| {
                            appended.lock().unwrap().push(part);
                            Ok::<(), ()>(())
                        });
                        assert_eq!(done, Ok(true));
                    }
                });
            }
        });
        let want: Vec<u64> = (0..200).map(|i| 1 + (0..i).map(|i| i % 3).sum::<u64>()).collect();
        assert_eq!(appended.into_inner().unwrap(), want);
        assert_eq!(order.finish().1, 200);
    }

    #[test]
    fn stopping_wakes_those_who_wait_and_nothing_follows_an_error() {
        let order: Order<u8> = Order::new(1, 1);
        thread::scope(|scope| {
            let room = scope.spawn(|| order.wait_for_room(5));
            let numbers = scope.spawn(|| order.number(5, &mut []));
            assert_eq!(order.put(1, 1, 1, |_| Err("never: 0 comes first")), Ok(true));
            assert_eq!(order.put(0, 0, 1, |_| Err("full")), Err("full"));
            order.stop();
            assert!(!room.join().unwrap() && numbers.join().unwrap().is_none());
        });
        assert_eq!(order.put(2, 2, 1, |_| Err("appended after an error")), Ok(false));
    }
}
