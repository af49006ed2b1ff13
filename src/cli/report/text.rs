//! The closing summary: an aligned table of counts, then speed and output.

use std::fmt::Write;
use std::path::PathBuf;

use super::contents::{Report, ResumedInputs};
use crate::cli::terminal::{count_of, format_bytes, thousands, visible};
use crate::dedup::{Estimate, Findings};
use crate::process::path_name;
use crate::run::Summary;

pub(crate) fn replaced_to_text(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| format!("replaced {}\n", visible(&path_name(path)))).collect()
}

/// The formats in which the inputs were read, with the number of inputs if there are several.
pub(crate) fn formats_to_text(summary: &Summary) -> String {
    let inputs = |(at, (name, count)): (usize, (&str, u64))| match at {
        0 => format!("{name} ({})", count_of(count, "input")),
        _ => format!("{name} ({})", thousands(count)),
    };
    match &summary.sources_by_format()[..] {
        [] => String::new(),
        [(name, _)] => format!("read as {name}\n"),
        several => {
            let several: Vec<_> = several.iter().copied().enumerate().map(inputs).collect();
            format!("read as {}\n", several.join(", "))
        }
    }
}

/// The summary of a job. Counts that are 0 are left out, apart from the main ones.
pub(super) fn summary(report: &Report) -> String {
    let summary = &report.summary;
    let mut lines = record_lines(report);
    lines.extend(key_lines(report));
    lines.extend(result_lines(report));
    let not_records =
        [("pages", summary.pages), ("skipped, of other types", summary.skipped), ("header lines", summary.headers)];
    let not_records = not_records.into_iter().filter(|(_, count)| *count > 0);
    lines.extend(not_records.map(|(label, count)| SummaryLine::count(label, count)));
    if let Some(findings) = &report.findings {
        lines.extend(survey(findings, &report.duplicates_by_level(findings)));
    }
    table(&lines, summary.tally.rows) + &formats_to_text(summary) + &speed(report)
}

/// What became of the records, and what was noticed about them.
fn record_lines(report: &Report) -> Vec<SummaryLine> {
    let tally = &report.summary.tally;
    let mut lines = vec![SummaryLine::share(0, "records", tally.rows)];
    if !report.summary.has_keyed_rows {
        lines.push(SummaryLine::share(1, "unchanged", tally.unchanged));
        lines.push(SummaryLine::share(1, "changed", tally.changed));
        lines.extend(shares(tally.named_changes()));
    }
    lines.push(SummaryLine::share(1, "faulty", tally.faulty));
    lines.extend(shares(tally.named_faults()));
    lines.extend(section("flags", shares(tally.named_flags()).collect()));
    lines.extend(section("spoofing flags", shares(tally.named_spoofing_flags()).collect()));
    lines
}

/// What equivalences and recipes did to the keys.
fn key_lines(report: &Report) -> Vec<SummaryLine> {
    let (tally, mut lines) = (&report.summary.tally, Vec::new());
    if report.policy.equivalences.is_some() {
        let represented = tally.by_class + tally.by_pattern + tally.by_rule;
        lines.push(SummaryLine::share(0, "keys of a representative", represented));
        lines.push(SummaryLine::share(2, "by class", tally.by_class));
        lines.push(SummaryLine::share(2, "by pattern", tally.by_pattern));
        lines.push(SummaryLine::share(2, "by content rule", tally.by_rule));
    }
    for (name, recipe) in report.recipes() {
        lines.push(SummaryLine::share(0, &format!("keys by {name}"), recipe.keys));
        lines.extend(shares(recipe.named_rules()));
    }
    lines
}

/// What dedup left out, or the number of distinct keys.
fn result_lines(report: &Report) -> Vec<SummaryLine> {
    let summary = &report.summary;
    let Some(dedup) = &report.dedup else {
        let label = if summary.is_distinct_exact { "distinct keys" } else { "distinct keys, about" };
        let distinct = || SummaryLine::share(0, label, summary.distinct_keys);
        return report.resumed.is_none().then(distinct).into_iter().collect();
    };
    let totals = &dedup.totals;
    let mut lines =
        vec![SummaryLine::share(0, "kept", totals.kept), SummaryLine::share(0, "duplicates", totals.duplicates)];
    lines.extend((totals.seen > 0).then(|| SummaryLine::share(0, "seen before", totals.seen)));
    lines.extend((totals.undated > 0).then(|| SummaryLine::count("without a time", totals.undated)));
    lines.extend(dedup.collisions.as_ref().map(|(count, _)| SummaryLine::count("key collisions", *count)));
    lines
}

/// The findings of a survey. Numbers that were estimated from a sample have a margin of error.
fn survey(findings: &Findings, levels: &[(String, Estimate)]) -> Vec<SummaryLine> {
    let mut lines = vec![SummaryLine::title("duplicates by rung")];
    lines.extend(levels.iter().map(|(name, count)| SummaryLine::estimate(name, count)));
    lines.push(SummaryLine::title("groups by size"));
    let size = |from: u64, to: u64| if from >= to { to.to_string() } else { format!("{from} to {to}") };
    let sizes = findings.sizes.iter();
    lines.extend(sizes.map(|class| SummaryLine::number(&size(class.from, class.to), &class.groups)));
    for (name, rule) in &findings.rules {
        lines.push(SummaryLine::number(&format!("URIs merged by {name}"), &rule.merged).at_depth(0));
        lines.push(SummaryLine::count("compared by digest", rule.compared).at_depth(1));
        lines.push(SummaryLine::count("different digests", rule.differing).at_depth(1));
    }
    lines.push(SummaryLine::title("hosts with the most records"));
    lines.extend(findings.hosts.iter().map(|host| SummaryLine::estimate(&host.host, &host.records)));
    if !findings.keys.is_empty() {
        lines.push(SummaryLine::title("most repeated keys, by one of their URIs"));
        lines.extend(findings.keys.iter().map(|key| SummaryLine::estimate(&key.uri, &key.records)));
    }
    lines
}

struct SummaryLine {
    depth: usize,
    label: String,
    /// None in titles.
    count: Option<u64>,
    /// The count is a share of all records.
    is_share: bool,
    /// The margin of error of an estimate; 0 if the count is exact.
    margin: u64,
}

impl SummaryLine {
    /// A count of records, with its share of all records.
    fn share(depth: usize, label: &str, count: u64) -> SummaryLine {
        SummaryLine { depth, label: visible(label).into_owned(), count: Some(count), is_share: true, margin: 0 }
    }

    /// A count of something other than records.
    fn count(label: &str, count: u64) -> SummaryLine {
        SummaryLine { is_share: false, ..SummaryLine::share(0, label, count) }
    }

    /// A finding of a survey that is a number of records.
    fn estimate(label: &str, count: &Estimate) -> SummaryLine {
        SummaryLine { margin: count.margin, ..SummaryLine::share(1, label, count.value) }
    }

    /// A finding of a survey that is a number of something other than records.
    fn number(label: &str, count: &Estimate) -> SummaryLine {
        SummaryLine { is_share: false, ..SummaryLine::estimate(label, count) }
    }

    fn title(label: &str) -> SummaryLine {
        SummaryLine { count: None, ..SummaryLine::share(0, label, 0) }
    }

    fn at_depth(self, depth: usize) -> SummaryLine {
        SummaryLine { depth, ..self }
    }
}

/// The counts that are not 0.
fn shares(counts: impl Iterator<Item = (&'static str, u64)>) -> impl Iterator<Item = SummaryLine> {
    counts.filter(|(_, count)| *count > 0).map(|(name, count)| SummaryLine::share(2, name, count))
}

/// A title and its lines; nothing without lines.
fn section(title: &str, lines: Vec<SummaryLine>) -> impl Iterator<Item = SummaryLine> {
    let title = (!lines.is_empty()).then(|| SummaryLine::title(title));
    title.into_iter().chain(lines)
}

fn table(lines: &[SummaryLine], all: u64) -> String {
    let label_width = lines.iter().map(|line| line.depth * 2 + line.label.chars().count()).max().unwrap_or(0);
    let width = lines.iter().map(|line| thousands(line.count.unwrap_or(0)).len()).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let label = format!("{}{}", "  ".repeat(line.depth), line.label);
        let margin = if line.margin > 0 { format!("  ± {}", thousands(line.margin)) } else { String::new() };
        // Writing to a string does not fail.
        let _ = match line.count {
            None => writeln!(text, "{label}"),
            Some(count) if all == 0 || !line.is_share => {
                writeln!(text, "{label:label_width$}  {:>width$}{margin}", thousands(count))
            }
            Some(count) => {
                let share = count as f64 * 100.0 / all as f64;
                writeln!(text, "{label:label_width$}  {:>width$}  {share:5.1} %{margin}", thousands(count))
            }
        };
    }
    text
}

fn speed(report: &Report) -> String {
    let mut text = format!(
        "{:.2} s with {}: {} records/s",
        report.elapsed.as_secs_f64(),
        count_of(report.threads as u64, "thread"),
        thousands(report.records_per_second() as u64),
    );
    // The number of bytes is not known for tables, of which only some columns are read.
    if report.summary.bytes > 0 {
        let (all, speed) = (format_bytes(report.summary.bytes as f64), format_bytes(report.bytes_per_second()));
        text = format!("{all} in {text}, {speed}/s");
    }
    if let Some(peak) = report.summary.memory.peak_resident {
        text.push_str(&format!("; peak memory {}", format_bytes(peak as f64)));
    }
    if let Some(transfer) = report.transfer.filter(|transfer| transfer.requests > 0) {
        let (received, requests) = (format_bytes(transfer.received as f64), count_of(transfer.requests, "request"));
        text.push_str(&format!("\nreceived {received} by {requests}"));
        if transfer.failed_requests > 0 {
            text.push_str(&format!(", {} of which failed and were repeated", thousands(transfer.failed_requests)));
        }
    }
    if let Some((output, path)) = report.output.as_ref().and_then(|output| Some((output, output.path.as_ref()?))) {
        text.push_str(&format!("\n{}: {}", visible(&path_name(path)), format_bytes(output.bytes as f64)));
        if !report.files.is_empty() {
            text.push_str(&format!(" in {}", count_of(report.files.len() as u64, "file")));
        }
        if let Some(ResumedInputs { count, faulty }) = report.resumed.filter(|resumed| resumed.count > 0) {
            text.push_str(&format!("; {} finished by an earlier run", count_of(count, "input")));
            if faulty > 0 {
                text.push_str(&format!(", with {}", count_of(faulty, "faulty record")));
            }
        }
    }
    text.push('\n');
    text + &replaced_to_text(&report.replaced)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::iri::FaultKind;

    #[test]
    fn the_table_is_aligned() {
        let mut report = Report { elapsed: Duration::from_secs(2), threads: 2, ..Report::default() };
        (report.summary.bytes, report.summary.distinct_keys) = (3_000_000, 900);
        let tally = &mut report.summary.tally;
        (tally.rows, tally.unchanged, tally.changed, tally.changes[1]) = (2000, 1500, 490, 490);
        (tally.faulty, tally.faults[FaultKind::Port as usize]) = (10, 10);
        (tally.flags[1], tally.spoofing_flags[13]) = (8, 20);
        let expected = "\
records               2,000  100.0 %
  unchanged           1,500   75.0 %
  changed               490   24.5 %
    case                490   24.5 %
  faulty                 10    0.5 %
    port                 10    0.5 %
flags
    excluded              8    0.4 %
spoofing flags
    encoded-slash        20    1.0 %
distinct keys, about    900   45.0 %
3.0 MB in 2.00 s with 2 threads: 1,000 records/s, 1.5 MB/s
";
        assert_eq!(summary(&report), expected);
    }

    #[test]
    fn the_formats_of_inputs_are_one_line() {
        let text = |names: &[Option<&'static str>]| {
            let source_formats = names.iter().map(|name| name.map(Into::into)).collect();
            formats_to_text(&Summary { source_formats, ..Summary::default() })
        };
        assert_eq!((text(&[]), text(&[None])), (String::new(), String::new()));
        assert_eq!(text(&[Some("cdxj"), None, Some("cdxj")]), "read as cdxj\n");
        let mixed = [Some("lines"), Some("warc"), None, Some("warc"), Some("csv")];
        assert_eq!(text(&mixed), "read as warc (2 inputs), csv (1), lines (1)\n");
    }
}
