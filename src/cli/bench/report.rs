//! The result of `bench`: a table, or JSON that a later run can compare itself with.

use std::fmt::Write;

use serde_json::{Value, json};

use super::stages::{Clock, Times};
use crate::cli::terminal::count_of;
use crate::output::Compression;

/// A sum or difference of clocks.
type Sum = fn(&dyn Fn(Clock) -> f64) -> f64;

/// The stages in order, and how each is computed from the clocks.
const STAGES: [(&str, Sum); 8] = [
    ("read", |of| of(Clock::Read)),
    ("classify", |of| of(Clock::Classify)),
    ("split", |of| of(Clock::Decode) - of(Clock::Classify)),
    ("validate", |of| of(Clock::Validate)),
    ("canonicalize", |of| of(Clock::Rows) - of(Clock::Validate) - of(Clock::Hash)),
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

/// What was measured, and on which corpus.
#[derive(Debug)]
pub(super) struct BenchReport {
    pub(super) corpus: String,
    pub(super) compression: Compression,
    pub(super) times: Times,
}

/// An earlier report: nanoseconds per line by stage.
#[derive(Debug)]
pub(super) struct EarlierReport(Vec<(String, f64)>);

impl EarlierReport {
    /// Parses the output of [`BenchReport::to_json`].
    pub(super) fn parse(text: &str) -> Option<EarlierReport> {
        let report: Value = serde_json::from_str(text).ok()?;
        let stages = report["stages"].as_array()?;
        let times =
            stages.iter().map(|stage| Some((stage["name"].as_str()?.to_string(), stage["ns_per_line"].as_f64()?)));
        let earlier = EarlierReport(times.collect::<Option<_>>()?);
        (earlier.of("copy")? > 0.0).then_some(earlier)
    }

    fn of(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(stage, _)| stage == name).map(|(_, time)| *time)
    }
}

impl BenchReport {
    /// The report that [`EarlierReport::parse`] reads.
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

    /// One line per stage; with an earlier report, the change since then.
    pub(super) fn to_text(&self, earlier: Option<&EarlierReport>) -> String {
        let (lines, bytes) = (self.times.lines, self.times.bytes);
        let mut text = format!(
            "{}: {lines} lines of {:.1} bytes, one thread, median of {}, {}\n\n",
            self.corpus,
            bytes as f64 / lines as f64,
            count_of(self.times.rounds() as u64, "round"),
            self.compression,
        );
        let (total, [copy, ..]) = (self.total(), self.times.per_line(TOTALS[2].1));
        let _ = write!(
            text,
            "{:12}  {:>8}  {:>15}  {:>6}  {:>6}  {:>6}",
            "stage", "ns/line", "least to most", "GB/s", "share", "copies"
        );
        text.push_str(if earlier.is_some() { "  change\n" } else { "\n" });
        for (name, sum) in STAGES.iter().chain(&TOTALS) {
            let [median, least, most] = self.times.per_line(sum);
            let range = format!("{least:.1} to {most:.1}");
            let _ = write!(
                text,
                "{name:12}  {median:8.1}  {range:>15}  {:>6}  {:>4} %  {:>6}",
                finite::<2>(self.gigabytes(median)),
                finite::<0>(100.0 * median / total),
                finite::<1>(median / copy),
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
        let _ = writeln!(
            text,
            "\ncore (classify to hash) takes {} times as long as copy + hash",
            finite::<2>(core / floor)
        );
        text
    }

    fn total(&self) -> f64 {
        self.times.per_line(TOTALS[1].1)[0]
    }

    /// Gigabytes of input per second at this many nanoseconds per line; infinite if the clock did not advance.
    fn gigabytes(&self, per_line: f64) -> f64 {
        self.times.bytes as f64 / self.times.lines as f64 / per_line
    }
}

/// The number with so many digits after the point; `-` if it is a quotient by zero, because the clock did not advance.
fn finite<const DIGITS: usize>(number: f64) -> String {
    if number.is_finite() { format!("{number:.DIGITS$}") } else { "-".to_string() }
}

/// Ratio of a time, in copies, to that of the earlier report.
fn ratio(copies: f64, earlier: &EarlierReport, name: &str) -> Option<f64> {
    let before = earlier.of(name)? / earlier.of("copy")?;
    Some(copies / before).filter(|ratio| ratio.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_by_zero_are_not_numbers() {
        assert_eq!([3.0, f64::INFINITY, f64::NAN].map(finite::<1>), ["3.0", "-", "-"]);
        assert_eq!(json!(f64::INFINITY), Value::Null);
    }
}
