//! What `learn` prints and reports: text for the terminal, JSON, and an HTML page with what rules about content do, and which
//! refused rules a person should judge.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Value, json};

use super::args::LearnArgs;
use super::hand_rules::HandCounts;
use super::validation;
use crate::canon::Policy;
use crate::cli::args::ReportFormat;
use crate::cli::error::CommandError;
use crate::cli::report::{
    Bar, RunOutcome, SourceError, Table, advice, bar_chart, chart_and_table, counts, document, escape, formats_to_text,
    input_errors, pairs_to_json, replaced_to_text, section, settings, share, with_run_figures,
};
use crate::cli::terminal::{format_counts, thousands};
use crate::learn::content::{HostReduction, KindTotals, ScopeRule};
use crate::learn::{LearnCounts, LearnLimits, Pattern, RedirectVerdict};
use crate::run::{ContentCounts, DocumentCounts, LearnedContent, ObserveResult, Summary, Validation};

/// What the job knows at its end.
pub(super) struct LearnReport<'a> {
    pub(super) args: &'a LearnArgs,
    pub(super) limits: LearnLimits,
    pub(super) policy: Policy,
    pub(super) observed: ObserveResult,
    /// Patterns with the most support.
    pub(super) patterns: Vec<Pattern>,
    /// What the rules of `--rules` changed.
    pub(super) hand: Option<HandCounts>,
    pub(super) validation: Option<Validation>,
    pub(super) replaced: Vec<PathBuf>,
    pub(super) started: Instant,
}

impl LearnReport<'_> {
    /// Prints errors and summary, writes the report, and returns the exit code.
    pub(super) fn conclude(&self) -> Result<u8, CommandError> {
        let summary = &self.observed.summary;
        let (errors, text) = (SourceError::of_run(summary), self.to_text());
        RunOutcome::new(summary, &errors).conclude(&self.args.reporting, &text, |format| match format {
            ReportFormat::Page => self.to_html(&text, &errors),
            ReportFormat::Text => text.clone(),
            ReportFormat::Json => format!("{:#}\n", self.to_json()),
        })
    }

    fn to_text(&self) -> String {
        let ObserveResult { summary, documents, .. } = &self.observed;
        let content = self.content_counts();
        counts_to_text(&self.redirects_to_rows(), &content, summary)
            + self.unused_redirects()
            + &documents_to_text(self.args, documents, &content)
            + &self.hand.map_or(String::new(), hand_to_text)
            + &self.validation.as_ref().map_or(String::new(), validation::to_text)
            + &formats_to_text(summary)
            + &replaced_to_text(&self.replaced)
    }

    /// Labels and numbers about redirects. A part has only the number of redirects, because it is written without them.
    fn redirects_to_rows(&self) -> Vec<(String, u64)> {
        let counts = &self.observed.redirects.counts;
        if self.args.part { vec![("redirects".to_string(), counts.read)] } else { learned_redirects_to_rows(counts) }
    }

    /// A line about the redirects of a part, if there are any.
    fn unused_redirects(&self) -> &'static str {
        let has_unused = self.args.part && self.observed.redirects.counts.read > 0;
        if has_unused {
            "a part is written without redirects; give these inputs also to the job with --merge\n"
        } else {
            ""
        }
    }

    fn to_html(&self, text: &str, errors: &[SourceError]) -> String {
        let mut html = String::from("<header>\n<h1>irikey learn report</h1>\n</header>\n");
        let advice = advice(&self.observed.summary);
        let lines = text.lines().map(str::to_string).chain(advice.iter().map(ToString::to_string));
        let lines: String = lines.map(|line| escape(&line) + "\n").collect();
        section(&mut html, "Summary", "", &format!("<pre><code>{lines}</code></pre>\n"));
        if let Some(content) = &self.observed.content {
            kinds(&mut html, content);
            hosts(&mut html, content);
            doubtful(&mut html, content);
        }
        patterns(&mut html, &self.patterns);
        input_errors(&mut html, errors);
        let pairs = [self.limits.describe(), self.policy.describe()].concat();
        settings(&mut html, "Settings", "Limits of learning, and settings that keys depend on", pairs);
        document("irikey learn report", &html)
    }

    fn to_json(&self) -> Value {
        let ObserveResult { summary, redirects, content, documents, .. } = &self.observed;
        let counts = json!({
            "irikey": env!("CARGO_PKG_VERSION"),
            "records": summary.tally.rows,
            "faulty": summary.tally.faulty,
            "redirects": redirects.counts.read,
        });
        let mut json = with_run_figures(counts, summary);
        if !self.args.part {
            redirects_to_json(&redirects.counts, &mut json);
        }
        json["content"] = content.as_ref().map_or(Value::Null, content_to_json);
        if self.args.reads_documents() {
            json["documents"] = documents_to_json(documents, &self.content_counts());
        }
        if let Some(HandCounts { added, left_out }) = self.hand {
            json["rules_by_hand"] = json!({"added": added, "left_out": left_out});
        }
        json["validation"] = self.validation.as_ref().map_or(Value::Null, validation::to_json);
        json["limits"] = pairs_to_json(self.limits.describe()).into();
        json["policy"] = pairs_to_json(self.policy.describe()).into();
        json["seconds"] = json!(self.started.elapsed().as_secs_f64());
        json
    }

    fn content_counts(&self) -> ContentCounts {
        self.observed.content.as_ref().map(|content| content.counts.clone()).unwrap_or_default()
    }
}

fn learned_redirects_to_rows(counts: &LearnCounts) -> Vec<(String, u64)> {
    let refused = &counts.refused;
    let verdicts = RedirectVerdict::ALL.iter().zip(counts.records).filter(|(_, count)| *count > 0);
    let verdicts = verdicts.map(|(verdict, count)| (format!("  {}", verdict.name()), count));
    let results = [
        ("different redirects accepted", counts.redirects[RedirectVerdict::Accepted as usize]),
        ("  that change scheme or www.", counts.origin_changes),
        ("  that change a final slash", counts.slash_changes),
        ("classes", counts.classes),
        ("  URLs in them", counts.members),
        ("  URLs in the largest", counts.largest),
        ("URLs that answered without a redirect", counts.served),
        ("patterns of hosts", counts.patterns),
        ("  refused, too little support", refused.support),
        ("  refused, too little confidence", refused.confidence),
        ("  refused, circular", refused.circular),
    ];
    let results = results.map(|(label, count)| (label.to_string(), count));
    [("redirects".to_string(), counts.read)].into_iter().chain(verdicts).chain(results).collect()
}

fn counts_to_text(redirects: &[(String, u64)], content: &ContentCounts, summary: &Summary) -> String {
    let results = [
        ("captures with content", content.captures),
        ("  different URLs of them", content.urls),
        ("  different after rules about content", content.forms),
        ("rules about content", content.rules),
        ("  for all hosts of a domain", content.rules_for_domains),
        ("rules about content for all hosts", content.rules_for_all_hosts),
        ("  refused, contradicted by captures", content.refused_counter_examples),
        ("  refused, too little support", content.refused_support),
    ];
    let redirects = redirects.iter().map(|(label, count)| (label.as_str(), *count));
    format_counts([("records", summary.tally.rows)].into_iter().chain(redirects).chain(results))
}

fn hand_to_text(HandCounts { added, left_out }: HandCounts) -> String {
    format_counts([("learned rules left out by --rules", left_out), ("rules added by --rules", added)])
}

/// Lines about the documents of archives; none if these were not read.
fn documents_to_text(args: &LearnArgs, documents: &DocumentCounts, content: &ContentCounts) -> String {
    let texts =
        [("  with a text to compare", documents.texts), ("contents with nearly equal texts", content.near_contents)];
    let links = [
        ("  with a canonical link to another URL", documents.canonical),
        ("rules that needed canonical links", content.rules_by_canonical),
    ];
    let texts = texts.into_iter().filter(|_| args.near_duplicates.is_some());
    let links = links.into_iter().filter(|_| args.canonical_links);
    let all = [("documents of archives", documents.documents), ("  that could not be decoded", documents.unread)];
    format_counts(all.into_iter().chain(texts).chain(links).filter(|_| args.reads_documents()))
}

fn documents_to_json(documents: &DocumentCounts, content: &ContentCounts) -> Value {
    json!({
        "read": documents.documents,
        "unread": documents.unread,
        "texts": documents.texts,
        "near_contents": content.near_contents,
        "canonical_links": documents.canonical,
        "rules_by_canonical": content.rules_by_canonical,
    })
}

fn content_to_json(content: &LearnedContent) -> Value {
    let found = &content.counts;
    let kinds = &content.highlights.kinds;
    let by_kind = |number: fn(&KindTotals) -> u64| counts(kinds.iter().map(|(kind, totals)| (*kind, number(totals))));
    json!({
        "captures": found.captures,
        "urls": found.urls,
        "different_after_rules": found.forms,
        "hosts": found.hosts,
        "hosts_with_rules": found.hosts_with_rules,
        "rules": found.rules,
        "rules_for_domains": found.rules_for_domains,
        "rules_for_all_hosts": found.rules_for_all_hosts,
        "rules_by_kind": by_kind(|kind| kind.rules),
        "merged_by_kind": by_kind(|kind| kind.merged),
        "refused": {"counter_examples": found.refused_counter_examples, "support": found.refused_support},
        "spilled_bytes": content.spilled,
    })
}

/// Adds what was learned from redirects.
fn redirects_to_json(found: &LearnCounts, json: &mut Value) {
    let by_verdict = |numbers: &[u64]| {
        counts(RedirectVerdict::ALL.iter().map(|verdict| verdict.name()).zip(numbers.iter().copied()))
    };
    json["verdicts"] = by_verdict(&found.records).into();
    json["different_redirects"] = by_verdict(&found.redirects).into();
    json["origin_changes"] = json!(found.origin_changes);
    json["slash_changes"] = json!(found.slash_changes);
    json["classes"] = json!(found.classes);
    json["members"] = json!(found.members);
    json["largest_class"] = json!(found.largest);
    json["served"] = json!(found.served);
    json["patterns"] = json!(found.patterns);
    json["patterns_refused"] = json!({
        "support": found.refused.support,
        "confidence": found.refused.confidence,
        "circular": found.refused.circular,
    });
}

fn kinds(html: &mut String, content: &LearnedContent) {
    let mut kinds: Vec<_> = content.highlights.kinds.iter().collect();
    kinds.sort_by_key(|(_, totals)| std::cmp::Reverse(totals.merged));
    let counts = &content.counts;
    let note = format!(
        "{} of {} URLs are equal to others after the rules of their hosts ({}). A URL that several rules change is counted for each of \
         them.",
        thousands(counts.urls - counts.forms),
        thousands(counts.urls),
        share(counts.urls - counts.forms, counts.urls)
    );
    let bars: Vec<Bar> = kinds.iter().map(|(name, totals)| Bar::new(**name, totals.merged)).collect();
    let rows = kinds.iter().map(|(name, totals)| {
        let merged = share(totals.merged, counts.urls);
        vec![name.to_string(), thousands(totals.rules), thousands(totals.support), thousands(totals.merged), merged]
    });
    let columns = &["rule", "#rules", "#contents", "#URLs made equal", "#share"];
    let table = Table::new("Rules about content by kind", columns, rows);
    let body = match bars.is_empty() {
        true => "<p>No rule was learned.</p>\n".to_string(),
        false => chart_and_table(&bar_chart("kinds", "URLs made equal, by rule", ("URLs", ""), &bars), &table),
    };
    section(html, "Reduction by kind of rule", &note, &body);
}

fn hosts(html: &mut String, content: &LearnedContent) {
    let hosts = &content.highlights.hosts;
    if hosts.is_empty() {
        return;
    }
    let name = |host: &[u8]| String::from_utf8_lossy(host).into_owned();
    let bar = |host: &HostReduction| Bar { part: host.merged(), ..Bar::new(name(&host.host), host.urls) };
    let bars: Vec<Bar> = hosts.iter().take(10).map(bar).collect();
    let rows = hosts.iter().map(|host| {
        let reduction = share(host.merged(), host.urls);
        vec![name(&host.host), thousands(host.urls), thousands(host.forms), thousands(host.merged()), reduction]
    });
    let columns = &["host", "#URLs", "#after the rules", "#fewer", "#share"];
    let table = Table::new("Hosts with the greatest reduction", columns, rows);
    let note = "Of hosts with very many URLs, those of a sample are counted.";
    section(html, "Hosts", note, &table.with_bars("hosts", ("URLs", "made equal"), &bars));
}

fn doubtful(html: &mut String, content: &LearnedContent) {
    let rules = &content.highlights.doubtful;
    if rules.is_empty() {
        return;
    }
    let note = "Rules that were refused because captures contradict them, the closest first. If the pages of the counter-examples \
                are the same to you, add the rule by hand with --rules.";
    let row = |rule: &ScopeRule| {
        let judged = &rule.judged;
        vec![
            String::from_utf8_lossy(&rule.scope).into_owned(),
            judged.rule.rule.to_string(),
            judged.rule.context.to_string(),
            thousands(judged.support),
            thousands(judged.counter),
            pair(&judged.examples),
            pair(&judged.counter_examples),
        ]
    };
    let columns = &["host", "=rule", "=context", "#for", "#against", "equal content", "different content"];
    let table = Table::new("Refused rules to judge", columns, rules.iter().map(row));
    section(html, "Doubtful rules", note, &table.to_html());
}

/// The first pair of URLs.
fn pair(examples: &[Vec<u8>]) -> String {
    let texts: Vec<_> = examples.iter().take(2).map(|uri| String::from_utf8_lossy(uri)).collect();
    texts.join(" and ")
}

fn patterns(html: &mut String, patterns: &[Pattern]) {
    if patterns.is_empty() {
        return;
    }
    let rows = patterns.iter().map(|pattern| {
        let host = String::from_utf8_lossy(&pattern.host).into_owned();
        vec![host, pattern.rewrite.name(), thousands(pattern.support), thousands(pattern.counter)]
    });
    let table = Table::new("Patterns with the most support", &["host", "=pattern", "#for", "#against"], rows);
    section(html, "Patterns from redirects", "", &table.to_html());
}
