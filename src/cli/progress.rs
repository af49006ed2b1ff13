//! Threads that watch the counters of a run: a progress bar on stderr, and samples of throughput and memory for the
//! report. The run never waits for them.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::ShowProgress;
use super::terminal::thousands;
use crate::run::{Progress, memory};

const BAR_PERIOD: Duration = Duration::from_millis(120);
const FIRST_SAMPLE_PERIOD: Duration = Duration::from_millis(50);

/// Highest number of samples. When it is reached, every second sample is dropped and the period doubles.
const MAX_SAMPLES: usize = 256;

/// A thread that calls a function now and then until it is stopped.
struct Watcher<T> {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Watcher<T> {
    fn start(watch: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Watcher<T> {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = is_over.clone();
        Watcher { is_over, thread: Some(thread::spawn(move || watch(&flag))) }
    }

    /// Stops the thread. `None` if it panicked, which the panic hook has reported; the run is not affected.
    fn stop(&mut self) -> Option<T> {
        self.is_over.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        thread.thread().unpark();
        thread.join().ok()
    }
}

/// A progress bar on stderr. Dropping it removes the bar.
pub(crate) struct TerminalBar(Watcher<()>);

impl TerminalBar {
    /// Shows a bar if `show` says so. `total`: length of the input in bytes, if it is known.
    pub(crate) fn start(show: ShowProgress, total: Option<u64>, progress: &Arc<Progress>) -> Option<TerminalBar> {
        let is_shown = match show {
            ShowProgress::Auto => std::io::stderr().is_terminal(),
            ShowProgress::Always => true,
            ShowProgress::Never => false,
        };
        let progress = progress.clone();
        is_shown.then(|| TerminalBar(Watcher::start(move |is_over| draw(total, is_over, &progress))))
    }
}

impl Drop for TerminalBar {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn draw(total: Option<u64>, is_over: &AtomicBool, progress: &Progress) {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    bar.set_style(style(total.is_some()));
    let started = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let records = progress.records();
        bar.set_position(progress.read());
        let rate = records as f64 / started.elapsed().as_secs_f64().max(1e-3);
        bar.set_message(format!("{} records, {}/s", thousands(records), thousands(rate as u64)));
        thread::park_timeout(BAR_PERIOD);
    }
    bar.finish_and_clear();
}

fn style(is_total_known: bool) -> ProgressStyle {
    let template = match is_total_known {
        true => "{bar:28} {bytes}/{total_bytes} {bytes_per_sec}  {msg}  ETA {eta}",
        false => "{spinner} {bytes} {bytes_per_sec}  {msg}",
    };
    // The templates are constants; one that does not parse only looks plain.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The state of a run at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TimelineSample {
    /// Seconds since the start.
    pub(crate) seconds: f64,
    /// Records decoded.
    pub(crate) records: u64,
    /// Anonymous memory in bytes; 0 if the system does not report it.
    pub(crate) memory: u64,
}

/// A thread that samples a run.
pub(crate) struct Timeline(Watcher<Vec<TimelineSample>>);

impl Timeline {
    /// Starts sampling.
    pub(crate) fn start(progress: &Arc<Progress>) -> Timeline {
        let progress = progress.clone();
        Timeline(Watcher::start(move |is_over| sample(is_over, &progress)))
    }

    /// Takes a last sample and returns all.
    pub(crate) fn finish(mut self) -> Vec<TimelineSample> {
        self.0.stop().unwrap_or_default()
    }
}

fn sample(is_over: &AtomicBool, progress: &Progress) -> Vec<TimelineSample> {
    let (started, mut samples, mut period) = (Instant::now(), Vec::new(), FIRST_SAMPLE_PERIOD);
    loop {
        let is_last = is_over.load(Ordering::Relaxed);
        let memory = memory::anonymous().unwrap_or(0);
        samples.push(TimelineSample { seconds: started.elapsed().as_secs_f64(), records: progress.records(), memory });
        if is_last {
            return samples;
        }
        if samples.len() >= MAX_SAMPLES {
            drop_every_second(&mut samples);
            period *= 2;
        }
        thread::park_timeout(period);
    }
}

fn drop_every_second(samples: &mut Vec<TimelineSample>) {
    let mut is_odd = false;
    samples.retain(|_| {
        is_odd = !is_odd;
        is_odd
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_parse_and_the_bar_stops() {
        for template in [true, false] {
            let _ = style(template);
        }
        let progress = Arc::new(Progress::new());
        assert!(TerminalBar::start(ShowProgress::Never, None, &progress).is_none());
        drop(TerminalBar::start(ShowProgress::Always, Some(1), &progress));
    }

    #[test]
    fn the_last_sample_is_taken_at_the_end() {
        assert!(!Timeline::start(&Arc::new(Progress::new())).finish().is_empty());
        let mut many: Vec<_> =
            (0..9u64).map(|records| TimelineSample { records, ..TimelineSample::default() }).collect();
        drop_every_second(&mut many);
        assert_eq!(many.iter().map(|sample| sample.records).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
    }
}
