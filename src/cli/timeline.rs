//! Throughput and memory over time, for the report: a thread that looks every so often. In: a run's progress, the clock,
//! what the system says of memory. Out: [`Moment`]s, never more than a few hundred: when there are too many, every second
//! one goes and the pauses double.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::run::{Progress, memory};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const MOST: usize = 256;

/// How far a run was, and how much memory it had.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moment {
    /// Seconds since the beginning.
    pub seconds: f64,
    /// Records decoded.
    pub records: u64,
    /// Anonymous memory, bytes; 0 where the system does not tell.
    pub memory: u64,
}

/// A thread that looks.
pub(super) struct Timeline {
    is_over: Arc<AtomicBool>,
    looker: JoinHandle<Vec<Moment>>,
}

impl Timeline {
    /// Begins to look.
    pub(super) fn start(progress: &Arc<Progress>) -> Timeline {
        let (is_over, progress) = (Arc::new(AtomicBool::new(false)), progress.clone());
        let told = is_over.clone();
        let looker = thread::spawn(move || {
            let (begun, mut moments, mut pause) = (Instant::now(), Vec::new(), FIRST_PAUSE);
            loop {
                let is_last = told.load(Ordering::Relaxed);
                let memory = memory::anonymous().unwrap_or(0);
                moments.push(Moment { seconds: begun.elapsed().as_secs_f64(), records: progress.records(), memory });
                if is_last {
                    return moments;
                }
                if moments.len() >= MOST {
                    halve(&mut moments);
                    pause *= 2;
                }
                thread::park_timeout(pause);
            }
        });
        Timeline { is_over, looker }
    }

    /// Looks once more; gives all moments.
    pub(super) fn finish(self) -> Vec<Moment> {
        self.is_over.store(true, Ordering::Relaxed);
        self.looker.thread().unpark();
        // A looker that panicked has said so; the run is none the worse.
        self.looker.join().unwrap_or_default()
    }
}

fn halve(moments: &mut Vec<Moment>) {
    let mut is_odd = false;
    moments.retain(|_| {
        is_odd = !is_odd;
        is_odd
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_moment_is_the_end() {
        let progress = Arc::new(Progress::new());
        let moments = Timeline::start(&progress).finish();
        assert!(!moments.is_empty());
        let mut many: Vec<_> = (0..9u64).map(|records| Moment { records, ..Moment::default() }).collect();
        halve(&mut many);
        assert_eq!(many.iter().map(|moment| moment.records).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
    }
}
