//! A [`Report`] as one self-contained HTML page: plots are inline SVG, and no script, font or picture is fetched. All text
//! is escaped, because names and messages may come from the input.

use std::fmt::Write;

use super::contents::Report;
use super::text::summary;
use crate::cli::progress::TimelineSample;
use crate::cli::terminal::thousands;
use crate::dedup::Findings;
use crate::iri::FaultKind;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;\
background:#fff}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse}td,th{padding:.15rem \
.8rem .15rem 0;text-align:left;vertical-align:top;overflow-wrap:anywhere}td.n,th.n{text-align:right;white-space:nowrap}\
pre{overflow-x:auto}svg{display:block;max-width:100%;height:auto}svg text{font:12px system-ui,sans-serif;fill:#444}\
.note{color:#666}rect{fill:#3b6ea5}polyline{fill:none;stroke:#3b6ea5;stroke-width:1.5}line{stroke:#ccc}";

/// The whole page.
pub(super) fn page(report: &Report) -> String {
    let mut html = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width\">\n<title>irikey report</title>\n");
    // Writing to a string does not fail.
    let _ = writeln!(html, "<style>{STYLE}</style></head><body>\n<h1>irikey {}</h1>", env!("CARGO_PKG_VERSION"));
    let _ = writeln!(html, "<pre>{}</pre>", escape(&summary(report)));
    if let Some(dedup) = &report.dedup {
        let totals = &dedup.totals;
        let counts = [("kept", totals.kept), ("duplicates", totals.duplicates), ("seen before", totals.seen)];
        let counts = counts.into_iter().chain([("faulty", report.summary.tally.faulty)]);
        section(&mut html, "Results by record", "", &bar_chart(counts.map(|(name, n)| (name.to_string(), n as f64))));
    }
    if let Some(found) = &report.findings {
        findings(&mut html, found, &report.levels());
    }
    faults(&mut html, report);
    let records: Vec<_> = rates(&report.timeline);
    section(&mut html, "Records per second over the run", "", &line_chart(&records));
    let memory: Vec<_> = report.timeline.iter().map(|at| (at.seconds, at.memory as f64 / 1e6)).collect();
    section(&mut html, "Anonymous memory in MB over the run", "", &line_chart(&memory));
    let policy = report.policy.iter().filter(|(_, value)| !value.is_empty());
    let rows = policy.map(|(name, value)| vec![(*name).to_string(), value.clone()]).collect();
    section(&mut html, "Policy", "", &table(&["", ""], rows));
    html.push_str("</body></html>\n");
    html
}

fn findings(html: &mut String, found: &Findings, levels: &[String; 4]) {
    let note = match found.share {
        share if share >= 1.0 => "Counted over all groups.".to_string(),
        share => {
            format!("Estimated from {} groups, {:.3} % of all keys.", thousands(found.sampled), share * 100.0)
        }
    };
    let by_step = levels.iter().cloned().zip(found.by_step);
    section(html, "Duplicates by the lowest rung on which they are equal", &note, &bar_chart(by_step));
    let size = |from: u64, to: u64| if from >= to { to.to_string() } else { format!("{from} to {to}") };
    let sizes = found.sizes.iter().map(|class| (size(class.from, class.to), class.groups));
    section(html, "Groups by number of records", &note, &bar_chart(sizes));
    if !found.rules.is_empty() {
        let (all, differing) = found.repeated;
        let note = format!(
            "URIs that a rule merged with the first URI of their group, and whether the content digests of both differ. For \
             comparison: of {} URIs that were fetched several times, {} had different digests ({}).",
            thousands(all),
            thousands(differing),
            share(differing, all)
        );
        let rows = found.rules.iter().map(|(name, rule)| {
            let examples: Vec<_> = rule.examples.iter().map(|(a, b)| format!("{a} and {b}")).collect();
            let (merged, compared) = (thousands(rule.merged.round() as u64), thousands(rule.compared));
            vec![name.clone(), merged, compared, share(rule.differing, rule.compared), examples.join("; ")]
        });
        let head = ["rule", "merged", "compared", "different", "examples of different ones"];
        section(html, "URIs merged by lossy rules, and false merges", &note, &table(&head, rows.collect()));
    }
    let rows = found.hosts.iter().map(|host| {
        let duplicates = host.duplicates.round() as u64;
        vec![host.host.clone(), thousands(host.records), thousands(duplicates)]
    });
    let note = match found.host_error {
        0 => String::new(),
        error => format!(
            "Too many hosts to count each exactly: the numbers of records may be up to {} too low.",
            thousands(error)
        ),
    };
    section(html, "Hosts with the most records", &note, &table(&["host", "records", "duplicates"], rows.collect()));
}

fn faults(html: &mut String, report: &Report) {
    let faults = FaultKind::ALL.into_iter().zip(report.summary.tally.faults).filter(|(_, count)| *count > 0);
    let rows: Vec<_> = faults.map(|(kind, count)| (kind.name().to_string(), count as f64)).collect();
    if !rows.is_empty() {
        section(html, "Faults", "", &bar_chart(rows));
    }
    let rows: Vec<_> = report.errors.iter().map(|error| vec![error.source.clone(), error.message.clone()]).collect();
    if !rows.is_empty() {
        section(html, "Inputs that could not be read completely", "", &table(&["input", "error"], rows));
    }
}

fn section(html: &mut String, title: &str, note: &str, body: &str) {
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>\n", escape(note)) };
    let _ = writeln!(html, "<h2>{}</h2>\n{note}{body}", escape(title));
}

fn share(part: u64, all: u64) -> String {
    if all == 0 { "-".to_string() } else { format!("{:.1} %", part as f64 * 100.0 / all as f64) }
}

/// Records per second between neighboring samples.
fn rates(samples: &[TimelineSample]) -> Vec<(f64, f64)> {
    let rate = |pair: &[TimelineSample]| {
        let seconds = (pair[1].seconds - pair[0].seconds).max(1e-3);
        (pair[1].seconds, (pair[1].records - pair[0].records) as f64 / seconds)
    };
    samples.windows(2).map(rate).collect()
}

/// A table. Cells with digits and without letters are aligned as numbers.
fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let is_number = |cell: &str| cell.bytes().any(|byte| byte.is_ascii_digit()) && !cell.contains(char::is_alphabetic);
    let cell = |tag: &str, cell: &str| {
        let class = if is_number(cell) { " class=\"n\"" } else { "" };
        format!("<{tag}{class}>{}</{tag}>", escape(cell))
    };
    let line = |tag: &str, cells: &mut dyn Iterator<Item = &str>| -> String {
        let cells: String = cells.map(|text| cell(tag, text)).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let mut html = String::from("<table>\n");
    html.push_str(&line("th", &mut head.iter().copied()));
    rows.iter().for_each(|row| html.push_str(&line("td", &mut row.iter().map(String::as_str))));
    html + "</table>"
}

/// A bar chart, each bar with its name and number.
fn bar_chart(values: impl IntoIterator<Item = (String, f64)>) -> String {
    const ROW: usize = 22;
    let values: Vec<_> = values.into_iter().collect();
    let most = values.iter().map(|(_, value)| *value).fold(1.0, f64::max);
    let height = values.len() * ROW + 4;
    let mut svg = format!("<svg viewBox=\"0 0 720 {height}\" width=\"720\" height=\"{height}\" role=\"img\">\n");
    for (i, (name, value)) in values.iter().enumerate() {
        let (y, width) = (i * ROW, value / most * 400.0);
        let number = thousands(value.round().max(0.0) as u64);
        let _ = writeln!(
            svg,
            "<text x=\"150\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"160\" y=\"{}\" width=\"{width:.1}\" \
             height=\"15\"/><text x=\"{:.1}\" y=\"{}\">{number}</text>",
            y + 15,
            escape(name),
            y + 3,
            width + 168.0,
            y + 15
        );
    }
    svg + "</svg>"
}

/// A line chart with the highest values of both axes.
fn line_chart(points: &[(f64, f64)]) -> String {
    let most = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).fold(0.0, f64::max).max(1e-9);
    let (right, top) = (most(|point| point.0), most(|point| point.1));
    let place = |(x, y): &(f64, f64)| format!("{:.1},{:.1}", 80.0 + x / right * 620.0, 150.0 - y / top * 130.0);
    let line: Vec<_> = points.iter().map(place).collect();
    format!(
        "<svg viewBox=\"0 0 720 175\" width=\"720\" height=\"175\" role=\"img\">\n<line x1=\"80\" y1=\"150\" x2=\"700\" \
         y2=\"150\"/><line x1=\"80\" y1=\"20\" x2=\"80\" y2=\"150\"/>\n<polyline points=\"{}\"/>\n<text x=\"74\" y=\"24\" \
         text-anchor=\"end\">{}</text><text x=\"74\" y=\"154\" text-anchor=\"end\">0</text><text x=\"700\" y=\"168\" \
         text-anchor=\"end\">{right:.2} s</text>\n</svg>",
        line.join(" "),
        thousands(top.round() as u64)
    )
}

/// Escapes text for elements and quoted attributes; control characters become U+FFFD.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('\u{FFFD}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::report::contents::{DedupReport, SourceError};
    use crate::dedup::{HostFindings, RuleFindings, SizeClass};
    use crate::run::DedupTotals;

    #[test]
    fn input_is_escaped_and_nothing_is_fetched() {
        let evil = "</pre><script>alert('1')</script>\u{1b}\"&".to_string();
        let rule = RuleFindings { examples: vec![(evil.clone(), evil.clone())], ..RuleFindings::default() };
        let findings = Findings {
            share: 0.5,
            sizes: vec![SizeClass { from: 1, to: 1, groups: 3.0, rows: 3.0 }],
            rules: [(evil.clone(), rule)].into(),
            hosts: vec![HostFindings { host: evil.clone(), records: 1, duplicates: 0.4 }],
            host_error: 2,
            ..Findings::default()
        };
        let report = Report {
            sources: vec![evil.clone()],
            errors: vec![SourceError { source: evil.clone(), message: evil }],
            policy: vec![("base", "<b>".to_string())],
            dedup: Some(DedupReport {
                totals: DedupTotals { kept: 1, ..DedupTotals::default() },
                ..DedupReport::default()
            }),
            findings: Some(findings),
            timeline: (0..3u64).map(|at| TimelineSample { seconds: at as f64, records: at, memory: at }).collect(),
            ..Report::default()
        };
        let html = page(&report);
        for bad in ["<script", "alert('", "<b>", "http:", "https:", "src=", "href=", "url(", "@import", "\u{1b}"] {
            assert!(!html.contains(bad), "{bad}");
        }
        assert!(html.contains("&lt;script&gt;alert(&#39;1&#39;)"));
        let count = |what: &str| html.matches(what).count();
        assert_eq!((count("<svg"), count("</svg>"), count("<table>"), count("</table>")), (5, 5, 4, 4));
        assert!(!html.contains("NaN") && !html.contains("inf"));
    }
}
