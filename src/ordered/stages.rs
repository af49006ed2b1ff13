//! Serial sections of parallel work, see [`Stages`].

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, Ordering};

/// Serial sections that tickets pass in the order of their numbers. Different tickets may be in different stages at the
/// same time, so what happens in a stage depends on the input only and not on the timing of threads.
#[derive(Debug)]
pub(crate) struct Stages {
    stages: Vec<Stage>,
    is_stopped: AtomicBool,
}

#[derive(Debug, Default)]
struct Stage {
    /// Number of the ticket that may enter next.
    next: Mutex<u64>,
    changed: Condvar,
}

impl Stages {
    /// `count` stages that no ticket has passed yet.
    pub(crate) fn new(count: usize) -> Stages {
        let stages = std::iter::repeat_with(Stage::default).take(count).collect();
        Stages { stages, is_stopped: AtomicBool::new(false) }
    }

    /// Stops the work: threads that wait for a stage return, and no ticket enters a stage any more.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        for stage in &self.stages {
            // A thread that has read `is_stopped` under the lock is waiting by now, or will see the new value.
            drop(stage.next.lock());
            stage.changed.notify_all();
        }
    }
}

/// The place of a unit of work in the order of all units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StageTicket<'a> {
    number: u64,
    stages: &'a Stages,
}

impl<'a> StageTicket<'a> {
    /// The ticket `number`, counted from 0. Every number must have exactly one ticket.
    pub(crate) fn new(number: u64, stages: &'a Stages) -> StageTicket<'a> {
        StageTicket { number, stages }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stages.is_stopped.load(Ordering::Acquire)
    }

    /// Runs `work` in a stage after all earlier tickets have passed that stage. Returns `None` if the work was stopped
    /// instead. A ticket passes a stage at most once; if one ticket passes a stage, all tickets must.
    pub(crate) fn pass<R>(&self, stage: usize, work: impl FnOnce() -> R) -> Option<R> {
        let stage = &self.stages.stages[stage];
        stage.changed.wait_while(&mut stage.next.lock(), |next| !self.is_stopped() && *next != self.number);
        if self.is_stopped() {
            return None;
        }
        // The lock is not held here: only this ticket may be in the stage, and later tickets wait without blocking it.
        let result = work();
        *stage.next.lock() += 1;
        stage.changed.notify_all();
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    #[test]
    fn tickets_pass_every_stage_in_order() {
        let (stages, next) = (Stages::new(3), AtomicU64::new(0));
        let passed: Vec<Mutex<Vec<u64>>> = (0..3).map(|_| Mutex::default()).collect();
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::SeqCst);
                        if number >= 100 {
                            return;
                        }
                        let ticket = StageTicket::new(number, &stages);
                        for (stage, passed) in passed.iter().enumerate() {
                            ticket.pass(stage, || passed.lock().push(number)).unwrap();
                        }
                    }
                });
            }
        });
        assert!(passed.iter().all(|passed| passed.lock().iter().copied().eq(0..100)));
    }

    #[test]
    fn stopping_wakes_waiting_threads() {
        let stages = Stages::new(1);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| StageTicket::new(1, &stages).pass(0, || ()));
            thread::yield_now();
            stages.stop();
            assert_eq!(waiting.join().unwrap(), None);
        });
        assert_eq!(StageTicket::new(0, &stages).pass(0, || ()), None);
    }
}
