//! Work that spans do in order though other work of theirs runs side by side: [`Turn`]. Each lane is a place through
//! which the spans of a run pass one after the other, by their numbers; different spans may be in different lanes at the
//! same time. What happens in a lane so depends on the input alone.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The lanes of a run.
#[derive(Debug)]
pub struct Lanes {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// The span whose turn it is, by lane.
    next: [u64; Turn::LANES],
    is_stopped: bool,
}

impl Lanes {
    /// Lanes that no span has passed yet.
    pub fn new() -> Lanes {
        Lanes { state: Mutex::new(State { next: [0; Turn::LANES], is_stopped: false }), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the run: everyone who waits, or comes to wait, is told so.
    pub fn stop(&self) {
        self.lock().is_stopped = true;
        self.changed.notify_all();
    }
}

/// A span's place among the others.
#[derive(Debug)]
pub struct Turn<'a> {
    pub(super) index: u64,
    pub(super) first_row: u64,
    pub(super) lanes: &'a Lanes,
}

impl Turn<'_> {
    /// How many lanes there are.
    pub const LANES: usize = 11;

    /// Ordinal of the span's first row in the whole run, from 0.
    pub fn first_row(&self) -> u64 {
        self.first_row
    }

    /// Does `work` in a lane, once all earlier spans have passed it; `None` if the run is stopped instead. A span passes
    /// each lane at most once, and if one span passes a lane, all do.
    pub fn pass<R>(&self, lane: usize, work: impl FnOnce() -> R) -> Option<R> {
        let waits = |state: &mut State| !state.is_stopped && state.next[lane] != self.index;
        let state = self.lanes.changed.wait_while(self.lanes.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        if state.is_stopped {
            return None;
        }
        drop(state);
        let result = work();
        self.lanes.lock().next[lane] += 1;
        self.lanes.changed.notify_all();
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    #[test]
    fn spans_pass_every_lane_in_order() {
        let (lanes, next) = (Lanes::new(), AtomicU64::new(0));
        let passed: Vec<Mutex<Vec<u64>>> = (0..Turn::LANES).map(|_| Mutex::default()).collect();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, Ordering::SeqCst);
                        if index >= 100 {
                            return;
                        }
                        let turn = Turn { index, first_row: 0, lanes: &lanes };
                        for (lane, passed) in passed.iter().enumerate() {
                            turn.pass(lane, || passed.lock().unwrap().push(index)).unwrap();
                        }
                    }
                });
            }
        });
        assert!(passed.iter().all(|passed| passed.lock().unwrap().iter().copied().eq(0..100)));
    }

    #[test]
    fn stopping_wakes_those_who_wait() {
        let lanes = Lanes::new();
        thread::scope(|scope| {
            let waits = scope.spawn(|| Turn { index: 1, first_row: 0, lanes: &lanes }.pass(0, || ()));
            lanes.stop();
            assert_eq!(waits.join().unwrap(), None);
        });
    }
}
