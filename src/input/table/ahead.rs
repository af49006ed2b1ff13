//! Units of a Parquet file, decoded by several threads ahead of who reads them. In: units. Out: their rows, in the order
//! of the file; that of the threads shows nowhere.
//!
//! What waits to be read is bounded in bytes: past that, only the thread that has the unit which is being read goes on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, spawn};

use super::super::error::Defect;
use super::units::{Parquet, Unit, Units};
use super::{Rowset, TableOptions};
use crate::record::RecordBuffer;

/// Units that may be begun ahead of the one that is read, for each thread; some hold few rows.
const UNITS_AHEAD: u64 = 16;

/// Rows of a file, in order.
pub(super) struct Ahead {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    held_len: usize,
    units_ahead: u64,
}

struct State {
    units: Units,
    /// How many units were taken by threads.
    begun: u64,
    /// The unit that is being read.
    wanted: u64,
    /// What waits, by unit.
    queues: BTreeMap<u64, Queue>,
    /// Bytes of all that waits.
    held: usize,
    is_over: bool,
}

#[derive(Default)]
struct Queue {
    rows: VecDeque<Rowset>,
    is_whole: bool,
}

impl Ahead {
    pub(super) fn new(parquet: Parquet, units: Units, options: &TableOptions) -> Ahead {
        let threads = options.threads;
        let state = State { units, begun: 0, wanted: 0, queues: BTreeMap::new(), held: 0, is_over: false };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            held_len: options.held_len.saturating_mul(threads),
            units_ahead: UNITS_AHEAD * threads as u64,
        });
        let parquet = Arc::new(parquet);
        let work = || {
            let (shared, parquet) = (Arc::clone(&shared), Arc::clone(&parquet));
            spawn(move || while shared.unit(&parquet) {})
        };
        let threads = std::iter::repeat_with(work).take(threads).collect();
        Ahead { shared, threads }
    }
}

impl Iterator for Ahead {
    type Item = Rowset;

    fn next(&mut self) -> Option<Rowset> {
        let mut state = self.shared.lock();
        loop {
            let waiting = &mut *state;
            if let Some(queue) = waiting.queues.get_mut(&waiting.wanted) {
                if let Some(rows) = queue.rows.pop_front() {
                    waiting.held -= held_by(&rows);
                    self.shared.changed.notify_all();
                    return Some(rows);
                }
                if queue.is_whole {
                    waiting.queues.remove(&waiting.wanted);
                    waiting.wanted += 1;
                    self.shared.changed.notify_all();
                    continue;
                }
            } else if waiting.begun == waiting.wanted && waiting.units.clone().next().is_none() {
                return None;
            }
            state = self.shared.wait(state);
        }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A thread that panicked has left its unit with an error.
            let _ = thread.join();
        }
    }
}

/// Bytes of rows that wait.
fn held_by(rows: &Rowset) -> usize {
    rows.records.as_ref().map_or(0, RecordBuffer::text_len)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes a unit; false when there are no more.
    fn unit(&self, parquet: &Parquet) -> bool {
        let Some((number, unit)) = self.begin() else { return false };
        let mut turn = Turn { shared: self, number, is_whole: false };
        for rows in parquet.read(unit) {
            if !turn.put(rows) {
                return false;
            }
        }
        turn.is_whole = true;
        true
    }

    /// The next unit, once it is near enough.
    fn begin(&self) -> Option<(u64, Unit)> {
        let mut state = self.lock();
        while !state.is_over && state.begun >= state.wanted + self.units_ahead {
            state = self.wait(state);
        }
        if state.is_over {
            return None;
        }
        let unit = state.units.next()?;
        let number = state.begun;
        state.begun += 1;
        state.queues.insert(number, Queue::default());
        Some((number, unit))
    }
}

/// A thread's unit, which is whole at its end, also if that is a panic's.
struct Turn<'a> {
    shared: &'a Shared,
    number: u64,
    is_whole: bool,
}

impl Turn<'_> {
    /// Hands rows on, once there is room; false when nobody wants them.
    fn put(&mut self, rows: Rowset) -> bool {
        let mut state = self.shared.lock();
        while !state.is_over && state.held >= self.shared.held_len && !state.is_awaited(self.number) {
            state = self.shared.wait(state);
        }
        if state.is_over {
            return false;
        }
        state.held += held_by(&rows);
        let Some(queue) = state.queues.get_mut(&self.number) else { return false };
        queue.rows.push_back(rows);
        drop(state);
        self.shared.changed.notify_all();
        true
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if let Some(queue) = state.queues.get_mut(&self.number) {
            if !self.is_whole && queue.rows.back().is_none_or(|rows| rows.records.is_ok()) {
                let lost = Defect::Table("Parquet", "its decoder gave up".into());
                queue.rows.push_back(Rowset { records: Err(lost), at: 0 });
            }
            queue.is_whole = true;
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl State {
    /// Who reads waits for rows of this unit.
    fn is_awaited(&self, number: u64) -> bool {
        self.wanted == number && self.queues.get(&number).is_some_and(|queue| queue.rows.is_empty())
    }
}
