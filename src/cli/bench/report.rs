//! [`Times`] in, a table for a person or JSON for a later run out.

use std::fmt::Write;

use serde_json::{Value, json};

use super::stages::{Clock, Times};
use crate::output::Compression;

/// A sum or difference of clocks.
type Sum = fn(&dyn Fn(Clock) -> f64) -> f64;

/// The stages in the order of the way, and how each follows from the clocks.
const STAGES: [(&str, Sum); 8] = [
    ("read", |of| of(Clock::Read)),
    ("classify", |of| of(Clock::Classify)),
    ("split", |of| of(Clock::Decode) - of(Clock::Classify)),
    ("validate", |of| of(Clock::Validate)),
    ("canonicalise", |of| of(Clock::Rows) - of(Clock::Validate) - of(Clock::Hash)),
    ("hash", |of| of(Clock::Hash)),
    ("encode", |of| of(Clock::Encode)),
    ("write", |of| of(Clock::Write)),
];

const TOTALS: [(&str, Sum); 4] = [
    ("core", |of| of(Clock::Decode) + of(Clock::Rows)),
    ("total", |of| of(Clock::Read) + of(Clock::Decode) + of(Clock::Rows) + of(Clock::Encode) + of(Clock::Write)),
    ("copy", |of| of(Clock::Copy)),
    ("copy + hash", |of| of(Clock::CopyHash)),
];

/// What was measured, and over what.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) corpus: String,
    pub(super) compression: Compression,
    pub(super) times: Times,
}

/// An earlier report: nanoseconds a line by name.
#[derive(Debug)]
pub(super) struct Earlier(Vec<(String, f64)>);

impl Earlier {
    /// Reads what [`Measured::to_json`] wrote.
    pub(super) fn parse(text: &str) -> Option<Earlier> {
        let report: Value = serde_json::from_str(text).ok()?;
        let stages = report["stages"].as_array()?;
        let times =
            stages.iter().map(|stage| Some((stage["name"].as_str()?.to_string(), stage["ns_per_line"].as_f64()?)));
        let earlier = Earlier(times.collect::<Option<_>>()?);
        (earlier.of("copy")? > 0.0).then_some(earlier)
    }

    fn of(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(stage, _)| stage == name).map(|(_, time)| *time)
    }
}

impl Measured {
    /// The report that [`Earlier::parse`] reads.
    pub(super) fn to_json(&self) -> Value {
        let total = self.total();
        let stages = STAGES.iter().chain(&TOTALS).map(|(name, sum)| {
            let [median, least, most] = self.times.per_line(sum);
            json!({
                "name": name,
                "ns_per_line": median,
                "least": least,
                "most": most,
                "gb_per_s": self.gigabytes(median),
                "share": median / total,
            })
        });
        json!({
            "irikey": env!("CARGO_PKG_VERSION"),
            "corpus": self.corpus,
            "lines": self.times.lines,
            "bytes": self.times.bytes,
            "rounds": self.times.rounds(),
            "compression": self.compression.to_string(),
            "stages": stages.collect::<Vec<_>>(),
        })
    }

    /// A line a stage; with an `earlier` report, the ratio to it.
    pub(super) fn table(&self, earlier: Option<&Earlier>) -> String {
        let (lines, bytes) = (self.times.lines, self.times.bytes);
        let mut text = format!(
            "{}: {lines} lines of {:.1} bytes, one thread, median of {} rounds, {}\n\n",
            self.corpus,
            bytes as f64 / lines as f64,
            self.times.rounds(),
            self.compression,
        );
        let (total, [copy, ..]) = (self.total(), self.times.per_line(TOTALS[2].1));
        let _ = write!(
            text,
            "{:12}  {:>8}  {:>15}  {:>6}  {:>6}  {:>6}",
            "stage", "ns/line", "least to most", "GB/s", "share", "copies"
        );
        text.push_str(if earlier.is_some() { "  than before\n" } else { "\n" });
        for (name, sum) in STAGES.iter().chain(&TOTALS) {
            let [median, least, most] = self.times.per_line(sum);
            let range = format!("{least:.1} to {most:.1}");
            let _ = write!(
                text,
                "{name:12}  {median:8.1}  {range:>15}  {:6.2}  {:4.0} %  {:6.1}",
                self.gigabytes(median),
                100.0 * median / total,
                median / copy,
            );
            if let Some(ratio) = earlier.and_then(|earlier| ratio(median / copy, earlier, name)) {
                let _ = write!(text, "  {:+8.0} %", 100.0 * (ratio - 1.0));
            }
            text.push('\n');
            if *name == "write" {
                text.push('\n');
            }
        }
        let ([core, ..], [floor, ..]) = (self.times.per_line(TOTALS[0].1), self.times.per_line(TOTALS[3].1));
        let _ = writeln!(text, "\ncore, all from classify to hash, is {:.2} times copy + hash", core / floor);
        text
    }

    fn total(&self) -> f64 {
        self.times.per_line(TOTALS[1].1)[0]
    }

    /// Of input, a second, at so many nanoseconds a line.
    fn gigabytes(&self, per_line: f64) -> f64 {
        self.times.bytes as f64 / self.times.lines as f64 / per_line.max(f64::MIN_POSITIVE)
    }
}

/// How many times as many copies a stage takes as it did.
fn ratio(copies: f64, earlier: &Earlier, name: &str) -> Option<f64> {
    let before = earlier.of(name)? / earlier.of("copy")?;
    (before > 0.0).then(|| copies / before)
}
