//! Threads that watch the counters of a run: a progress bar on stderr, and samples of throughput and memory for the
//! report. The run never waits for them.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::args::{ReportingArgs, ShowProgress};
use super::terminal::thousands;
use crate::run::{Phase, Progress, memory};

const BAR_PERIOD: Duration = Duration::from_millis(120);
const FIRST_SAMPLE_PERIOD: Duration = Duration::from_millis(50);

/// Highest number of samples. When it is reached, every second sample is dropped and the period doubles.
const MAX_SAMPLES: usize = 256;

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

/// Does `work` and shows a progress bar meanwhile. Also returns samples of throughput and memory, if a report is written.
/// `total`: length of the input in bytes, if it is known.
pub(crate) fn watch<R>(
    reporting: &ReportingArgs,
    total: Option<u64>,
    work: impl FnOnce(&Progress) -> R,
) -> (R, Vec<TimelineSample>) {
    let (progress, is_over) = (Progress::new(), AtomicBool::new(false));
    let is_shown = match reporting.progress() {
        ShowProgress::Auto => std::io::stderr().is_terminal(),
        ShowProgress::Always => true,
        ShowProgress::Never => false,
    };
    thread::scope(|scope| {
        // If a thread cannot be started, the run goes on without the bar or the samples.
        let start_bar = || thread::Builder::new().spawn_scoped(scope, || draw(total, &is_over, &progress)).ok();
        let bar = is_shown.then(start_bar).flatten();
        let start_samples = |_| thread::Builder::new().spawn_scoped(scope, || sample(&is_over, &progress)).ok();
        let samples = reporting.report.as_ref().and_then(start_samples);
        let threads = [bar.as_ref().map(|bar| bar.thread().clone()), samples.as_ref().map(|all| all.thread().clone())];
        let stop = StopOnDrop { is_over: &is_over, threads };
        let result = work(&progress);
        drop(stop);
        // The panic hook has reported a thread that panicked; the run is not affected.
        bar.map(|bar| bar.join());
        (result, samples.and_then(|samples| samples.join().ok()).unwrap_or_default())
    })
}

/// Stops the threads that watch a run, also if the run panics.
struct StopOnDrop<'a> {
    is_over: &'a AtomicBool,
    threads: [Option<Thread>; 2],
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.iter().flatten().for_each(Thread::unpark);
    }
}

fn draw(total: Option<u64>, is_over: &AtomicBool, progress: &Progress) {
    let mut line = ProgressLine::new(ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr()));
    while !is_over.load(Ordering::Relaxed) {
        line.update(progress);
        thread::park_timeout(BAR_PERIOD);
    }
    line.bar.finish_and_clear();
}

/// The line that shows what a run does and how far it is.
struct ProgressLine {
    bar: ProgressBar,
    phase: Phase,
    /// When the phase began.
    started: Instant,
}

impl ProgressLine {
    fn new(bar: ProgressBar) -> ProgressLine {
        let mut line = ProgressLine { bar, phase: Phase::Read, started: Instant::now() };
        line.begin(Phase::Read);
        line
    }

    /// Begins a phase, which has a rate and an end of its own.
    fn begin(&mut self, phase: Phase) {
        (self.phase, self.started) = (phase, Instant::now());
        self.bar.set_style(style(phase, self.bar.length().is_some()));
        self.bar.reset();
    }

    fn update(&mut self, progress: &Progress) {
        let phase = progress.phase();
        if phase != self.phase {
            self.begin(phase);
        }
        let counted = progress.second_pass().filter(|_| phase == Phase::ReadAgain).unwrap_or(progress);
        self.bar.set_message(message(phase, counted.records(), self.started.elapsed()));
        match phase {
            Phase::Read | Phase::ReadAgain => self.bar.set_position(counted.read()),
            _ => self.bar.tick(),
        }
    }
}

/// What a run does. Only reading has a rate: how much there is to do in other phases is not known.
fn message(phase: Phase, records: u64, elapsed: Duration) -> String {
    let rate = records as f64 / elapsed.as_secs_f64().max(1e-3);
    let (records, rate) = (thousands(records), thousands(rate as u64));
    match phase {
        Phase::Read => format!("{records} records, {rate}/s"),
        Phase::Resolve => format!("{records} records read; finding duplicates"),
        Phase::ReadAgain => format!("{records} records, {rate}/s, second reading"),
        Phase::Write => format!("{records} records read; writing rows"),
        Phase::Learn => format!("{records} records read; learning from them"),
    }
}

fn style(phase: Phase, is_total_known: bool) -> ProgressStyle {
    let template = match phase {
        Phase::Read | Phase::ReadAgain if is_total_known => {
            "{bar:28} {bytes}/{total_bytes} {bytes_per_sec}  {msg}  ETA {eta}"
        }
        Phase::Read | Phase::ReadAgain => "{spinner} {bytes} {bytes_per_sec}  {msg}",
        _ => "{spinner} {msg}  {elapsed}",
    };
    // The templates are constants; one that does not parse only looks plain.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
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
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct TestCli {
        #[command(flatten)]
        reporting: ReportingArgs,
    }

    fn reporting(flags: &str) -> ReportingArgs {
        TestCli::try_parse_from(flags.split(' ')).unwrap().reporting
    }

    #[test]
    fn the_threads_stop_with_the_work() {
        let (result, samples) = watch(&reporting("canon --progress always --report x.html"), Some(1), |_| 7);
        assert!(result == 7 && !samples.is_empty(), "the last sample is taken at the end");
        assert_eq!(watch(&reporting("canon --progress never"), None, |_| 7), (7, Vec::new()));
        let panics = || watch(&reporting("canon --progress always"), None, |_| panic!("as the test wants"));
        assert!(std::panic::catch_unwind(panics).is_err());
    }

    #[test]
    fn the_line_shows_each_phase_from_its_beginning() {
        let progress = Progress::new();
        let mut line = ProgressLine::new(ProgressBar::with_draw_target(Some(9), ProgressDrawTarget::hidden()));
        let mut shown = || {
            line.update(&progress);
            (line.bar.position(), line.bar.message().split("; ").last().unwrap_or_default().to_string())
        };
        progress.add_read(9);
        assert_eq!(shown(), (9, "0 records, 0/s".to_string()));
        progress.begin(Phase::Resolve);
        assert_eq!(shown(), (0, "finding duplicates".to_string()));
        progress.begin_second_pass().add_read(4);
        assert_eq!(shown(), (4, "0 records, 0/s, second reading".to_string()));
        progress.begin(Phase::Write);
        assert_eq!(shown(), (0, "writing rows".to_string()));
    }

    #[test]
    fn every_second_sample_is_dropped() {
        let mut many: Vec<_> =
            (0..9u64).map(|records| TimelineSample { records, ..TimelineSample::default() }).collect();
        drop_every_second(&mut many);
        assert_eq!(many.iter().map(|sample| sample.records).collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
    }
}
