//! A [`Report`] in, an aligned table for a person out.

use std::fmt::Write;

use super::report::Report;
use crate::dedup::Findings;
use crate::iri::{Changes, FaultKind, Flags, SpoofingFlags};
use crate::key::RULES;

/// The closing summary: one line of totals, then a table of what happened; counts of 0 are left out.
pub fn summary(report: &Report) -> String {
    let tally = &report.tally;
    let mut rows = vec![Line::new(0, "records", tally.rows), Line::new(1, "unchanged", tally.unchanged)];
    rows.push(Line::new(1, "changed", tally.changed));
    rows.extend(lines(Changes::ALL.iter().map(|(_, name, _)| *name), &tally.changes));
    rows.push(Line::new(1, "faulty", tally.faulty));
    rows.extend(lines(FaultKind::ALL.into_iter().map(FaultKind::name), &tally.faults));
    if tally.flags.iter().any(|count| *count > 0) {
        rows.push(Line { count: None, ..Line::new(0, "flags", 0) });
        rows.extend(lines(Flags::ALL.iter().map(|(_, name, _)| *name), &tally.flags));
    }
    if tally.spoofing_flags.iter().any(|count| *count > 0) {
        rows.push(Line { count: None, ..Line::new(0, "spoofing_flags", 0) });
        rows.extend(lines(SpoofingFlags::ALL.iter().map(|(_, name, _)| *name), &tally.spoofing_flags));
    }
    if report.has_equivalences {
        rows.push(Line::new(0, "keys of a representative", tally.by_class + tally.by_pattern));
        rows.push(Line::new(2, "by class", tally.by_class));
        rows.push(Line::new(2, "by pattern", tally.by_pattern));
    }
    for (name, recipe) in report.recipes.iter().zip(&tally.recipes) {
        rows.push(Line::new(0, &format!("keys by {name}"), recipe.keys));
        rows.extend(lines(RULES.iter().map(|rule| rule.name), &recipe.applied));
    }
    match &report.dedup {
        Some(dedup) => {
            rows.push(Line::new(0, "kept", dedup.kept));
            rows.push(Line::new(0, "duplicates", dedup.duplicates));
            if dedup.seen > 0 {
                rows.push(Line::new(0, "seen before", dedup.seen));
            }
            if dedup.undated > 0 {
                rows.push(Line::beside("without a time", dedup.undated));
            }
            if let Some((count, _)) = dedup.collisions {
                rows.push(Line::beside("collisions of keys", count));
            }
        }
        None if report.resumed.is_some() => {}
        None => {
            let distinct = if report.distinct_is_exact { "distinct keys" } else { "distinct keys, about" };
            rows.push(Line::new(0, distinct, report.distinct));
        }
    }
    if report.skipped > 0 {
        rows.push(Line::beside("of other types, skipped", report.skipped));
    }
    if report.headers > 0 {
        rows.push(Line::beside("headers, no records", report.headers));
    }
    if let Some(found) = &report.findings {
        rows.extend(survey(found, &report.steps()));
    }
    let mut text = table(&rows, tally.rows);
    text.push_str(&speed(report));
    text
}

/// What a survey found, as numbers of records, groups and URIs; about, if it took a sample.
fn survey(found: &Findings, steps: &[String; 4]) -> Vec<Line> {
    let about = if found.share < 1.0 { ", about" } else { "" };
    let number = |value: f64| value.round().max(0.0) as u64;
    let mut rows = vec![Line { count: None, ..Line::new(0, &format!("duplicates by rung{about}"), 0) }];
    rows.extend(steps.iter().zip(found.by_step).map(|(name, count)| Line::new(1, name, number(count))));
    rows.push(Line { count: None, ..Line::new(0, &format!("groups by size{about}"), 0) });
    let size = |from: u64, to: u64| if from >= to { to.to_string() } else { format!("{from} to {to}") };
    rows.extend(
        found
            .sizes
            .iter()
            .map(|class| Line { depth: 1, ..Line::beside(&size(class.from, class.to), number(class.groups)) }),
    );
    for (name, rule) in &found.rules {
        rows.push(Line::beside(&format!("URIs merged by {name}{about}"), number(rule.merged)));
        rows.push(Line { depth: 1, ..Line::beside("compared by digest", rule.compared) });
        rows.push(Line { depth: 1, ..Line::beside("differing", rule.differing) });
    }
    rows.push(Line { count: None, ..Line::new(0, "hosts", 0) });
    rows.extend(found.hosts.iter().map(|host| Line::new(1, &visible(&host.host), host.records)));
    rows
}

/// A name from the input, without what a terminal would take for more than a character.
fn visible(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect()
}

struct Line {
    depth: usize,
    label: String,
    count: Option<u64>,
    /// It counts records that are among all of them.
    is_share: bool,
}

impl Line {
    fn new(depth: usize, label: &str, count: u64) -> Line {
        Line { depth, label: label.to_string(), count: Some(count), is_share: true }
    }

    /// A count of what is no record of the run.
    fn beside(label: &str, count: u64) -> Line {
        Line { is_share: false, ..Line::new(0, label, count) }
    }
}

fn lines<'a>(names: impl Iterator<Item = &'a str>, counts: &[u64]) -> impl Iterator<Item = Line> {
    names.zip(counts).filter(|(_, count)| **count > 0).map(|(name, count)| Line::new(2, name, *count))
}

fn table(lines: &[Line], all: u64) -> String {
    let labels = lines.iter().map(|line| line.depth * 2 + line.label.len()).max().unwrap_or(0);
    let numbers = lines.iter().map(|line| thousands(line.count.unwrap_or(0)).len()).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let label = format!("{}{}", "  ".repeat(line.depth), line.label);
        // Writing to a string does not fail.
        let _ = match line.count {
            None => writeln!(text, "{label}"),
            Some(count) if all == 0 || !line.is_share => {
                writeln!(text, "{label:labels$}  {:>numbers$}", thousands(count))
            }
            Some(count) => {
                let share = count as f64 * 100.0 / all as f64;
                writeln!(text, "{label:labels$}  {:>numbers$}  {share:5.1} %", thousands(count))
            }
        };
    }
    text
}

fn speed(report: &Report) -> String {
    let mut text = format!(
        "{:.2} s with {} thread{}: {} records/s",
        report.elapsed.as_secs_f64(),
        report.threads,
        if report.threads == 1 { "" } else { "s" },
        thousands(report.records_per_second() as u64),
    );
    // Of tables that are read by column, nobody knows how many bytes were.
    if report.input_bytes > 0 {
        let (all, speed) = (bytes(report.input_bytes as f64), bytes(report.bytes_per_second()));
        text = format!("{all} in {text}, {speed}/s");
    }
    if let Some(peak) = report.peak_memory {
        text.push_str(&format!("; peak memory {}", bytes(peak as f64)));
    }
    if let Some((output, path)) = report.output.as_ref().and_then(|output| Some((output, output.path.as_ref()?))) {
        text.push_str(&format!("\n{}: {}", path.display(), bytes(output.bytes as f64)));
        if !report.files.is_empty() {
            text.push_str(&format!(" in {} files", thousands(report.files.len() as u64)));
        }
        if let Some(resumed) = report.resumed.filter(|count| *count > 0) {
            text.push_str(&format!("; {} of the inputs were done before", thousands(resumed)));
        }
    }
    text.push('\n');
    text
}

/// A number of bytes with a decimal unit.
fn bytes(count: f64) -> String {
    match count {
        count if count < 1e3 => format!("{count:.0} B"),
        count if count < 1e6 => format!("{:.1} kB", count / 1e3),
        count if count < 1e9 => format!("{:.1} MB", count / 1e6),
        count => format!("{:.2} GB", count / 1e9),
    }
}

/// `1234567` as `1,234,567`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn thousands_are_apart() {
        let cases =
            [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567"), (u64::MAX, "18,446,744,073,709,551,615")];
        for (number, text) in cases {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn the_table_is_aligned() {
        let mut report = Report { distinct: 900, elapsed: Duration::from_secs(2), threads: 2, ..Report::default() };
        report.input_bytes = 3_000_000;
        report.tally.rows = 2000;
        report.tally.unchanged = 1500;
        report.tally.changed = 490;
        report.tally.changes[1] = 490;
        report.tally.faulty = 10;
        report.tally.faults[FaultKind::Port as usize] = 10;
        report.tally.flags[1] = 8;
        report.tally.spoofing_flags[13] = 20;
        let expected = "\
records               2,000  100.0 %
  unchanged           1,500   75.0 %
  changed               490   24.5 %
    case                490   24.5 %
  faulty                 10    0.5 %
    port                 10    0.5 %
flags
    excluded              8    0.4 %
spoofing_flags
    encoded-slash        20    1.0 %
distinct keys, about    900   45.0 %
3.0 MB in 2.00 s with 2 threads: 1,000 records/s, 1.5 MB/s
";
        assert_eq!(summary(&report), expected);
    }
}
