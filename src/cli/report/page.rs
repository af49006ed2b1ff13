//! A [`Report`] as one self-contained HTML page: charts are inline SVG, and no script, font or picture is fetched. All text
//! is escaped, because names and messages may come from the input.

use std::fmt::Write;

use super::advice::advice;
use super::chart::{Bar, LineChart, bar_chart};
use super::contents::{Report, SourceError};
use super::html::{Table, chart_and_table, escape, section, settings, share};
use super::survey;
use crate::cli::progress::TimelineSample;
use crate::cli::terminal::{count_of, format_bytes, thousands};
use crate::iri::FaultKind;
use crate::output::FinishedOutput;
use crate::process::path_name;
use crate::run::{FaultExample, Summary};

const STYLE: &str = include_str!("page.css");

/// Maximum number of points of a chart over time.
const MAX_POINTS: usize = 40;

/// Maximum number of rows of the table next to a chart over time.
const MAX_TIMELINE_ROWS: usize = 8;

/// Maximum number of rows of the tables of inputs and outputs.
const MAX_FILES: usize = 100;

/// Returns a page with this title and a body in HTML.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\
         <footer>Written by irikey {}.</footer>\n</body>\n</html>\n",
        escape(title),
        env!("CARGO_PKG_VERSION")
    )
}

pub(super) fn page(report: &Report) -> String {
    let mut html = String::new();
    let title = format!("irikey {} report", report.command_name());
    header(&mut html, report, &title);
    headline(&mut html, report);
    results(&mut html, report);
    if let Some(found) = &report.findings {
        survey::sections(&mut html, found, &report.duplicates_by_level(found));
    }
    rules_of_recipes(&mut html, report);
    steps(&mut html, report);
    faults(&mut html, report);
    advice_section(&mut html, &report.summary);
    input_errors(&mut html, &report.errors);
    course(&mut html, report);
    files(&mut html, report);
    settings(&mut html, "Policy", "Settings that the keys and URIs depend on", report.policy.describe());
    document(&title, &html)
}

fn header(html: &mut String, report: &Report, title: &str) {
    let (class, status) = match report.errors.len() {
        0 => ("good", "Complete: no input had an error.".to_string()),
        1 => ("bad", "Incomplete: 1 input could not be read completely.".to_string()),
        count => ("bad", format!("Incomplete: {} inputs could not be read completely.", thousands(count as u64))),
    };
    let inputs = count_of(report.sources.len() as u64, "input");
    let date = if report.finished.is_empty() { String::new() } else { format!("{} UTC, ", report.finished) };
    let _ = writeln!(
        html,
        "<header>\n<h1>{}</h1>\n<p class=\"note\">{}irikey {}, {inputs}</p>\n<p class=\"status {class}\">{status}</p>\n\
         <pre><code>{}</code></pre>\n</header>",
        escape(title),
        escape(&date),
        env!("CARGO_PKG_VERSION"),
        escape(&report.command)
    );
}

/// The most important numbers.
fn headline(html: &mut String, report: &Report) {
    let mut body = String::from("<dl class=\"figures\">\n");
    for (name, number, note) in result_figures(report).into_iter().chain(cost_figures(report)) {
        let _ =
            writeln!(body, "<div><dt>{name}</dt><dd>{} <small>{}</small></dd></div>", escape(&number), escape(&note));
    }
    body.push_str("</dl>\n");
    section(html, "Summary", "", &body);
}

/// A number of the headline: its name, the number, and a note.
type Figure = (&'static str, String, String);

fn result_figures(report: &Report) -> Vec<Figure> {
    let (summary, tally) = (&report.summary, &report.summary.tally);
    let of_records = |part: u64| format!("{} of the records", share(part, tally.rows));
    let mut figures = vec![("Records read", thousands(tally.rows), String::new())];
    match &report.dedup {
        Some(dedup) => {
            let totals = &dedup.totals;
            figures.push(("Kept", thousands(totals.kept), of_records(totals.kept)));
            figures.push(("Duplicates", thousands(totals.duplicates), of_records(totals.duplicates)));
            if totals.seen > 0 {
                figures.push(("Seen before", thousands(totals.seen), of_records(totals.seen)));
            }
        }
        None => {
            figures.push(("Changed", thousands(tally.changed), of_records(tally.changed)));
            if report.resumed.is_none() {
                let about = if summary.is_distinct_exact { "" } else { ", within 2 %" };
                let note = format!("{}{about}", of_records(summary.distinct_keys));
                figures.push(("Distinct keys", thousands(summary.distinct_keys), note));
            }
        }
    }
    figures.push(("With a fault", thousands(tally.faulty), of_records(tally.faulty)));
    figures
}

/// Time, memory, and bytes that were received and written.
fn cost_figures(report: &Report) -> Vec<Figure> {
    let summary = &report.summary;
    let threads = count_of(report.threads as u64, "thread");
    let per_second = thousands(report.records_per_second() as u64);
    let bytes = format!("{}/s", format_bytes(report.bytes_per_second()));
    let mut figures = vec![
        ("Time", format!("{:.2} s", report.elapsed.as_secs_f64()), threads),
        ("Records per second", per_second, if summary.bytes > 0 { bytes } else { String::new() }),
    ];
    if let Some(peak) = summary.memory.peak_resident {
        figures.push(("Peak memory", format_bytes(peak as f64), String::new()));
    }
    if let Some(transfer) = report.transfer.filter(|transfer| transfer.requests > 0) {
        let failed = format!(", {} failed", thousands(transfer.failed_requests));
        let failed = if transfer.failed_requests > 0 { failed } else { String::new() };
        let requests = format!("by {}{failed}", count_of(transfer.requests, "request"));
        figures.push(("Received", format_bytes(transfer.received as f64), requests));
    }
    if let Some(output) = &report.output {
        figures.push(("Output", format_bytes(output.bytes as f64), count_of(output.rows, "row")));
    }
    figures
}

/// What became of the records.
fn results(html: &mut String, report: &Report) {
    let tally = &report.summary.tally;
    let counts: Vec<(&str, u64)> = match &report.dedup {
        Some(dedup) => {
            let totals = &dedup.totals;
            let seen = (totals.seen > 0).then_some(("seen before", totals.seen));
            let counts = [("kept", totals.kept), ("duplicates", totals.duplicates)].into_iter().chain(seen);
            counts.chain([("faulty", totals.faulty)]).collect()
        }
        None => vec![("unchanged", tally.unchanged), ("changed", tally.changed), ("faulty", tally.faulty)],
    };
    let bars: Vec<Bar> = counts.iter().map(|(name, count)| Bar::new(*name, *count)).collect();
    let rows = counts.iter().map(|(name, count)| vec![name.to_string(), thousands(*count), share(*count, tally.rows)]);
    let total = vec!["all records".to_string(), thousands(tally.rows), share(tally.rows, tally.rows)];
    let table = Table::new("Records by result", &["result", "#records", "#share"], rows.chain([total]));
    let note = "Every record is counted once. These numbers are exact.";
    section(html, "What became of the records", note, &table.with_bars("results", ("records", ""), &bars));
}

fn rules_of_recipes(html: &mut String, report: &Report) {
    for (name, recipe) in report.recipes() {
        let title = format!("Rules of {name}");
        let note = format!("Keys that a rule changed, of {} keys.", thousands(recipe.keys));
        counts(html, (&title, &note), recipe.named_rules(), recipe.keys);
    }
}

/// What normalization changed, and what it noticed.
fn steps(html: &mut String, report: &Report) {
    let tally = &report.summary.tally;
    let rows = tally.rows;
    let note = "Records that a step changed; a record may be changed by several steps.";
    counts(html, ("Normalization steps", note), tally.named_changes(), rows);
    let note = "Records with an unusual trait that is not a fault.";
    counts(html, ("Flags", note), tally.named_flags(), rows);
    let note = "Records that may mislead a reader.";
    counts(html, ("Spoofing flags", note), tally.named_spoofing_flags(), rows);
}

/// A section of counts that are not 0, if there are any.
fn counts(html: &mut String, (title, note): (&str, &str), counts: impl Iterator<Item = (&'static str, u64)>, all: u64) {
    let mut counts: Vec<_> = counts.filter(|(_, count)| *count > 0).collect();
    if counts.is_empty() {
        return;
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let bars: Vec<Bar> = counts.iter().map(|(name, count)| Bar::new(*name, *count)).collect();
    let rows = counts.iter().map(|(name, count)| vec![name.to_string(), thousands(*count), share(*count, all)]);
    let table = Table::new("Counts", &["name", "#records", "#share"], rows);
    let id: String = title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    section(html, title, note, &chart_and_table(&bar_chart(&id, title, ("records", ""), &bars), &table));
}

fn faults(html: &mut String, report: &Report) {
    let tally = &report.summary.tally;
    let faults = FaultKind::ALL.into_iter().zip(tally.faults).filter(|(_, count)| *count > 0);
    let faults: Vec<(FaultKind, u64)> = faults.collect();
    if !faults.is_empty() {
        let bars: Vec<Bar> = faults.iter().map(|(kind, count)| Bar::new(kind.name(), *count)).collect();
        let row = |(kind, count): &(FaultKind, u64)| {
            vec![kind.name().to_string(), thousands(*count), share(*count, tally.rows), kind.meaning().to_string()]
        };
        let columns = &["=fault", "#records", "#share", "rule"];
        let table = Table::new("Records by fault", columns, faults.iter().map(row));
        let mut body = table.with_bars("faults", ("records", ""), &bars);
        let row = |example: &FaultExample| {
            let source = report.sources.get(example.source).map_or("", String::as_str);
            let kind = example.fault.kind.name().to_string();
            vec![kind, format!("{source}, record {}", thousands(example.record)), example.text.clone()]
        };
        let rows = report.summary.fault_examples.iter().map(row);
        body.push_str(&Table::new("The first records with each fault", &["=fault", "place", "record"], rows).to_html());
        section(html, "Faults", "Records without a canonical URI, by the reason.", &body);
    }
}

/// Advice on the inputs, if there is any.
pub(super) fn advice_section(html: &mut String, summary: &Summary) {
    let items: String =
        advice(summary).iter().map(|advice| format!("<p>{}</p>\n", escape(&advice.to_string()))).collect();
    if !items.is_empty() {
        section(html, "Advice", "", &items);
    }
}

/// The inputs that could not be read completely, if there are any.
pub(crate) fn input_errors(html: &mut String, errors: &[SourceError]) {
    if !errors.is_empty() {
        let rows = errors.iter().map(|SourceError { source, message }| vec![source.clone(), message.clone()]);
        let table = Table::new("Records before an error were processed", &["input", "error"], rows);
        section(html, "Inputs that could not be read completely", "", &table.to_html());
    }
}

/// Throughput and memory over time.
fn course(html: &mut String, report: &Report) {
    let rates = rates(&report.timeline);
    let table = |caption, columns, points: &[(f64, f64)], format: fn(f64) -> String| {
        let step = points.len().div_ceil(MAX_TIMELINE_ROWS).max(1);
        let rows = points.iter().rev().step_by(step).map(|(at, value)| vec![format!("{at:.2}"), format(*value)]);
        let mut rows: Vec<_> = rows.collect();
        rows.reverse();
        Table::new(caption, columns, rows)
    };
    if !rates.is_empty() {
        let chart = LineChart { id: "rate", title: "Records per second", unit: "records per second", points: &rates };
        let columns = &["#seconds", "#records per second"];
        let table = table("Throughput over time", columns, &rates, |rate| thousands(rate.round() as u64));
        section(html, "Throughput", "", &chart_and_table(&chart.to_svg(), &table));
    }
    let memory: Vec<(f64, f64)> = thin(&report.timeline).map(|at| (at.seconds, at.memory as f64 / 1e6)).collect();
    if memory.iter().any(|(_, megabytes)| *megabytes > 0.0) {
        let chart = LineChart { id: "memory", title: "Memory", unit: "MB of anonymous memory", points: &memory };
        let table = table("Memory over time", &["#seconds", "#MB"], &memory, |megabytes| format!("{megabytes:.1}"));
        let note = "Memory of the process without mapped files.";
        section(html, "Memory", note, &chart_and_table(&chart.to_svg(), &table));
    }
}

/// At most about [`MAX_POINTS`] samples, with the first and the last.
fn thin(samples: &[TimelineSample]) -> impl Iterator<Item = &TimelineSample> {
    let step = samples.len().div_ceil(MAX_POINTS).max(1);
    let last = samples.last().filter(|_| !(samples.len() - 1).is_multiple_of(step));
    samples.iter().step_by(step).chain(last)
}

/// Records per second between neighboring samples: two points for each pair, so that a single pair is a line.
fn rates(samples: &[TimelineSample]) -> Vec<(f64, f64)> {
    let thinned: Vec<_> = thin(samples).collect();
    let pairs = thinned.windows(2).filter(|pair| pair[1].seconds > pair[0].seconds);
    let rate = |pair: &[&TimelineSample]| {
        let rate = (pair[1].records - pair[0].records) as f64 / (pair[1].seconds - pair[0].seconds);
        [(pair[0].seconds, rate), (pair[1].seconds, rate)]
    };
    pairs.flat_map(rate).collect()
}

fn files(html: &mut String, report: &Report) {
    let counts = report.summary.source_records.iter().map(|count| thousands(*count));
    let counts = counts.chain(std::iter::repeat(String::new()));
    let formats = report.summary.source_formats.iter().map(|name| name.as_deref().unwrap_or("unknown").to_string());
    let formats = formats.chain(std::iter::repeat(String::new()));
    let inputs = report.sources.iter().zip(counts).zip(formats);
    let inputs = inputs.map(|((name, count), format)| vec![name.clone(), format, count]);
    let note = match report.sources.len().saturating_sub(MAX_FILES) {
        0 => String::new(),
        more => format!("The first {MAX_FILES} inputs; {} more are not listed.", thousands(more as u64)),
    };
    let table = Table::new("Records by input", &["input", "format", "#records"], inputs.take(MAX_FILES));
    section(html, "Inputs", &note, &table.to_html());
    let outputs = report.output.iter().filter(|_| report.files.is_empty()).chain(&report.files);
    let row = |file: &FinishedOutput| {
        let path = file.path.as_deref().map_or("standard output".to_string(), path_name);
        vec![path, thousands(file.rows), format_bytes(file.bytes as f64)]
    };
    let rows: Vec<_> = outputs.take(MAX_FILES).map(row).collect();
    if !rows.is_empty() {
        let note = match report.replaced.len() as u64 {
            0 => String::new(),
            1 => "1 file existed before and was replaced.".to_string(),
            count => format!("{} files existed before and were replaced.", thousands(count)),
        };
        let table = Table::new("Rows and bytes by file", &["output", "#rows", "#size"], rows);
        section(html, "Outputs", &note, &table.to_html());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::Policy;
    use crate::cli::report::contents::DedupReport;
    use crate::dedup::{Estimate, Findings, HostFindings, KeyFindings, RuleFindings, SizeClass};
    use crate::iri::{Component, Fault};
    use crate::run::DedupTotals;

    /// A report with every section, whose texts are all `text`.
    fn report(text: &str) -> Report {
        let estimate = Estimate { value: 3, margin: 1 };
        let rule =
            RuleFindings { merged: estimate, examples: vec![(text.into(), text.into())], ..RuleFindings::default() };
        let findings = Findings {
            sizes: vec![SizeClass { from: 1, to: 1, groups: estimate }],
            by_step: [estimate; 4],
            rules: [(text.to_string(), rule)].into(),
            hosts: vec![HostFindings { host: text.into(), records: estimate, duplicates: Estimate::default() }],
            keys: vec![KeyFindings { uri: text.into(), records: estimate }],
            ..Findings::default()
        };
        let mut report = Report {
            command: text.to_string(),
            sources: vec![text.to_string()],
            errors: vec![SourceError { source: text.to_string(), message: text.to_string() }],
            policy: Policy { base: Some(text.into()), ..Policy::default() },
            dedup: Some(DedupReport {
                totals: DedupTotals { kept: 1, ..DedupTotals::default() },
                ..DedupReport::default()
            }),
            findings: Some(findings),
            timeline: (0..3u64).map(|at| TimelineSample { seconds: at as f64, records: at, memory: at }).collect(),
            replaced: vec![text.into(), text.into()],
            output: Some(FinishedOutput { path: Some(text.into()), bytes: 1, rows: 1, row_groups: 1 }),
            ..Report::default()
        };
        let fault = Fault { kind: FaultKind::Port, component: Component::Port, at: 0 };
        report.summary.fault_examples.push(FaultExample { row: 0, source: 0, record: 1, fault, text: text.into() });
        report.summary.tally.faults[FaultKind::Port as usize] = 1;
        report
    }

    #[test]
    fn input_is_escaped_and_nothing_is_fetched() {
        let html = page(&report("</pre><script>alert('1')</script>\u{1b}\u{202e}\u{9b}\"&"));
        let fetching = ["http:", "https:", "src=", "href=", "url(", "@import"];
        for bad in ["<script", "alert('", "\u{1b}", "\u{202e}", "\u{9b}", "\"&\""].into_iter().chain(fetching) {
            assert!(!html.contains(bad), "{bad}");
        }
        assert!(html.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\\u{1b}\\u{202e}\\u{9b}&quot;&amp;"));
        assert!(html.contains("2 files existed before and were replaced."));
        let count = |what: &str| html.matches(what).count();
        assert!(count("<svg") >= 7 && count("<svg") == count("</svg>") && count("<svg") == count("</desc>"));
        assert!(count("<table>") > count("<svg") && count("<table>") == count("</table>"));
        assert_eq!(count("<section>"), count("</section>"));
        assert!(!html.contains("NaN") && !html.contains("inf"));
    }

    #[test]
    fn an_empty_report_is_a_page() {
        let html = page(&Report::default());
        assert!(html.contains("<td class=\"n\">0</td>") && html.ends_with("</html>\n"));
        assert!(!html.contains("NaN") && !html.contains("inf"));
    }

    #[test]
    fn rates_of_short_runs_are_lines() {
        let sample = |seconds, records| TimelineSample { seconds, records, memory: 0 };
        assert!(rates(&[]).is_empty() && rates(&[sample(0.1, 5)]).is_empty());
        assert_eq!(rates(&[sample(0.0, 0), sample(0.5, 100)]), [(0.0, 200.0), (0.5, 200.0)]);
        let many: Vec<_> = (0..200).map(|at| sample(f64::from(at), at as u64 * 7)).collect();
        assert_eq!(rates(&many).last(), Some(&(199.0, 7.0)));
    }
}
