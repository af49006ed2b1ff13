//! Target that looks for shapes of input whose time per byte grows with their length.
//!
//! An input is a prefix, a unit and a suffix. The unit is repeated to about `SHORT` bytes and to four times as many, and the
//! CPU time of the process is compared. A busy machine only makes times longer, so the least of several attempts counts.

use crate::records;
use crate::texts;
use libfuzzer_sys::Corpus;

/// Bytes of the shorter input.
const SHORT: usize = 6 << 10;

/// Time per byte may grow by this factor: caches are smaller than the longer input.
const FACTOR: f64 = 2.5;

/// Times below this are noise.
const NOISE: f64 = 100e-6;

/// Attempts before a shape counts as slow.
const ATTEMPTS: usize = 12;

/// What is measured: the targets that read any bytes, with fixed choices.
const SUBJECTS: &[(&[u8], fn(&[u8]) -> Corpus)] = &[
    (&[0, 0, 0], texts::profiles),
    (&[5, 0, 0], texts::profiles),
    (&[0, 255, 255], texts::recipes),
    (&[3, 255, 255], texts::recipes),
    (&[4, 255, 255], texts::recipes),
    (&[6, 255, 255], texts::recipes),
    (&[1, 0, 1], texts::extract),
    (&[2, 0, 3], texts::extract),
    (&[0, 0, 255, 255, 255], records::lines),
    (&[1, 0, 255, 255, 255], records::lines),
    (&[2, 0, 255, 255, 255], records::lines),
    (&[3, 0, 255, 255, 255], records::lines),
    (&[6, 0, 255, 255, 255], records::lines),
    (&[0, 0, 255, 255, 255], records::csv),
    (&[0, 255, 255, 255], records::archives),
    (&[1, 255, 255, 255], records::archives),
];

/// Seconds of CPU time of this process, with the threads that a run starts.
fn now() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the result.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The time per byte does not grow with the number of repetitions of a unit.
pub fn grows_linearly(input: &[u8]) -> Corpus {
    let [subject, prefix_len, suffix_len, ref shape @ ..] = *input else { return Corpus::Reject };
    let (choices, work) = SUBJECTS[usize::from(subject) % SUBJECTS.len()];
    let prefix_len = usize::from(prefix_len).min(shape.len());
    let (prefix, rest) = shape.split_at(prefix_len);
    let suffix_len = usize::from(suffix_len).min(rest.len());
    let (unit, suffix) = rest.split_at(rest.len() - suffix_len);
    if unit.is_empty() || unit.len() > 64 {
        return Corpus::Reject;
    }
    let text = |len: usize| [choices, prefix, &unit.repeat(len / unit.len()), suffix].concat();
    let (short, long) = (text(SHORT), text(4 * SHORT));
    let measure = |text: &[u8]| {
        let before = now();
        work(text);
        now() - before
    };
    let (mut least_short, mut least_long) = (f64::INFINITY, f64::INFINITY);
    let is_slow = |short: f64, long: f64| long > NOISE && long / short > 4.0 * FACTOR;
    for _ in 0..ATTEMPTS {
        least_short = least_short.min(measure(&short));
        least_long = least_long.min(measure(&long));
        if !is_slow(least_short, least_long) {
            return Corpus::Keep;
        }
    }
    panic!("{} bytes took {least_short} s, {} bytes {least_long} s", short.len(), long.len());
}
