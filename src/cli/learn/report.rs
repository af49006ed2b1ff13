//! What `learn` prints and reports: text for the terminal, JSON, and the page of [`super::page`].

use std::path::PathBuf;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::args::LearnArgs;
use super::page::LearnPage;
use super::validation;
use crate::canon::Policy;
use crate::cli::args::reporting::ReportFormat;
use crate::cli::error::CommandError;
use crate::cli::report::{SourceError, advice_to_text, conclude, counts, replaced_to_text};
use crate::cli::terminal::format_counts;
use crate::learn::content::KindTotals;
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
    pub(super) validation: Option<Validation>,
    /// Files that were replaced.
    pub(super) replaced: Vec<PathBuf>,
    pub(super) started: Instant,
}

impl LearnReport<'_> {
    /// Prints errors and summary, writes the report, and returns the exit code.
    pub(super) fn conclude(&self) -> Result<u8, CommandError> {
        let summary = &self.observed.summary;
        let (errors, text) = (SourceError::of_run(summary), self.to_text());
        conclude(&self.args.reporting, &errors, summary, &text, |format| match format {
            ReportFormat::Page => self.to_html(&text),
            ReportFormat::Text => text.clone(),
            ReportFormat::Json => format!("{:#}\n", self.to_json(&errors)),
        })
    }

    fn to_text(&self) -> String {
        let ObserveResult { summary, redirects, documents, .. } = &self.observed;
        let content = self.content_counts();
        counts_to_text(&redirects.counts, &content, summary)
            + &documents_to_text(self.args, documents, &content)
            + &self.validation.as_ref().map_or(String::new(), validation::to_text)
            + &replaced_to_text(&self.replaced)
            + &advice_to_text(summary)
    }

    fn to_html(&self, text: &str) -> String {
        let settings = [self.limits.describe(), self.policy.describe()].concat();
        let content = self.observed.content.as_ref();
        LearnPage { text, patterns: &self.patterns, content, settings: &settings }.to_html()
    }

    fn to_json(&self, errors: &[SourceError]) -> Value {
        let ObserveResult { summary, redirects, content, documents, .. } = &self.observed;
        let mut json = counts_to_json(&redirects.counts, summary, errors);
        json["content"] = content.as_ref().map_or(Value::Null, content_to_json);
        if self.args.reads_documents() {
            json["documents"] = documents_to_json(documents, &self.content_counts());
        }
        json["validation"] = self.validation.as_ref().map_or(Value::Null, validation::to_json);
        json["limits"] = pairs_to_json(self.limits.describe());
        json["policy"] = pairs_to_json(self.policy.describe());
        json["seconds"] = json!(self.started.elapsed().as_secs_f64());
        json
    }

    fn content_counts(&self) -> ContentCounts {
        self.observed.content.as_ref().map(|content| content.counts.clone()).unwrap_or_default()
    }
}

fn counts_to_text(counts: &LearnCounts, content: &ContentCounts, summary: &Summary) -> String {
    let refused = &counts.refused;
    let verdicts = RedirectVerdict::ALL.iter().zip(counts.records).filter(|(_, count)| *count > 0);
    let verdicts: Vec<_> = verdicts.map(|(verdict, count)| (format!("  {}", verdict.name()), count)).collect();
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
        ("captures with content", content.captures),
        ("  different URLs of them", content.urls),
        ("  different after rules about content", content.forms),
        ("rules about content", content.rules),
        ("  for all hosts of a domain", content.rules_for_domains),
        ("rules about content for all hosts", content.rules_for_all_hosts),
        ("  refused, contradicted by captures", content.refused_counter_examples),
        ("  refused, too little support", content.refused_support),
    ];
    let records = [("records", summary.tally.rows), ("redirects", counts.read)];
    let verdicts = verdicts.iter().map(|(label, count)| (label.as_str(), *count));
    format_counts(records.into_iter().chain(verdicts).chain(results))
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

fn pairs_to_json(pairs: Vec<(&'static str, String)>) -> Value {
    pairs.into_iter().map(|(name, value)| (name.to_string(), json!(value))).collect::<Map<_, _>>().into()
}

fn content_to_json(content: &LearnedContent) -> Value {
    let counts = &content.counts;
    let by_kind = |number: fn(&KindTotals) -> u64| {
        let kinds = content.highlights.kinds.iter();
        kinds.map(|(kind, totals)| ((*kind).to_string(), json!(number(totals)))).collect::<Map<_, _>>()
    };
    json!({
        "captures": counts.captures,
        "urls": counts.urls,
        "different_after_rules": counts.forms,
        "hosts": counts.hosts,
        "hosts_with_rules": counts.hosts_with_rules,
        "rules": counts.rules,
        "rules_for_domains": counts.rules_for_domains,
        "rules_for_all_hosts": counts.rules_for_all_hosts,
        "rules_by_kind": by_kind(|kind| kind.rules),
        "merged_by_kind": by_kind(|kind| kind.merged),
        "refused": {"counter_examples": counts.refused_counter_examples, "support": counts.refused_support},
        "spilled_bytes": content.spilled,
    })
}

fn counts_to_json(found: &LearnCounts, summary: &Summary, errors: &[SourceError]) -> Value {
    let by_verdict = |numbers: &[u64]| {
        counts(RedirectVerdict::ALL.iter().map(|verdict| verdict.name()).zip(numbers.iter().copied()))
    };
    json!({
        "irikey": env!("CARGO_PKG_VERSION"),
        "records": summary.tally.rows,
        "faulty": summary.tally.faulty,
        "redirects": found.read,
        "verdicts": by_verdict(&found.records),
        "different_redirects": by_verdict(&found.redirects),
        "origin_changes": found.origin_changes,
        "slash_changes": found.slash_changes,
        "classes": found.classes,
        "members": found.members,
        "largest_class": found.largest,
        "served": found.served,
        "patterns": found.patterns,
        "patterns_refused": {
            "support": found.refused.support,
            "confidence": found.refused.confidence,
            "circular": found.refused.circular,
        },
        "peak_anonymous_bytes": summary.memory.peak_anonymous,
        "errors": errors.iter().map(SourceError::to_json).collect::<Vec<_>>(),
    })
}
