//! A bar on stderr, drawn by a thread of its own from numbers that the run counts. The run never waits for it.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::When;
use super::summary::thousands;

const PERIOD: Duration = Duration::from_millis(120);

/// How far a run is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    /// Bytes of input read, as they lie in their files.
    pub(super) bytes: u64,
    /// Records done.
    pub(super) records: u64,
}

/// A bar that is being drawn; gone when dropped.
pub(super) struct Bar {
    is_over: Arc<AtomicBool>,
    drawer: Option<JoinHandle<()>>,
}

impl Bar {
    /// Begins to draw, if `when` says so. `total` is the length of the input in bytes, where it is known.
    pub(super) fn start(when: When, total: Option<u64>, sample: impl Fn() -> Sample + Send + 'static) -> Option<Bar> {
        let is_wanted = match when {
            When::Auto => std::io::stderr().is_terminal(),
            When::Always => true,
            When::Never => false,
        };
        is_wanted.then(|| {
            let is_over = Arc::new(AtomicBool::new(false));
            let told = is_over.clone();
            let drawer = thread::spawn(move || draw(total, &told, sample));
            Bar { is_over, drawer: Some(drawer) }
        })
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(drawer) = self.drawer.take() {
            drawer.thread().unpark();
            // A drawer that panicked has said so; the run is none the worse.
            let _ = drawer.join();
        }
    }
}

fn draw(total: Option<u64>, is_over: &AtomicBool, sample: impl Fn() -> Sample) {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
    bar.set_style(style(total.is_some()));
    let begun = Instant::now();
    while !is_over.load(Ordering::Relaxed) {
        let Sample { bytes, records } = sample();
        bar.set_position(bytes);
        let rate = records as f64 / begun.elapsed().as_secs_f64().max(1e-3);
        bar.set_message(format!("{} records, {}/s", thousands(records), thousands(rate as u64)));
        thread::park_timeout(PERIOD);
    }
    bar.finish_and_clear();
}

fn style(is_total_known: bool) -> ProgressStyle {
    let template = match is_total_known {
        true => "{bar:28} {bytes}/{total_bytes} {bytes_per_sec}  {msg}  ETA {eta}",
        false => "{spinner} {bytes} {bytes_per_sec}  {msg}",
    };
    // The templates are constants; one that did not parse would only look plain.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_parse_and_the_drawer_stops() {
        for template in [true, false] {
            let _ = style(template);
        }
        assert!(Bar::start(When::Never, None, Sample::default).is_none());
        drop(Bar::start(When::Always, Some(1), || Sample { bytes: 1, records: 1 }));
    }
}
