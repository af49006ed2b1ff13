//! What `learn --validate` prints and reports.

use serde_json::{Map, Value, json};

use crate::cli::terminal::count_of;
use crate::learn::content::{PairShare, RuleScores, wilson_interval};
use crate::run::Validation;

pub(super) fn to_text(validation: &Validation) -> String {
    let scores = [
        ("held-out captures of sites that rules were learned from", &validation.known_sites),
        ("captures of other sites", &validation.other_sites),
    ];
    let text: String = scores
        .iter()
        .filter(|(_, scores)| scores.urls > 0)
        .map(|(name, scores)| scores_to_text(name, scores))
        .collect();
    if text.is_empty() {
        "validation: no captures were held out, because there are too few\n".to_string()
    } else {
        text
    }
}

fn scores_to_text(name: &str, scores: &RuleScores) -> String {
    let RuleScores { hosts, urls, forms, pairs, repeated, .. } = scores;
    let places = |urls, hosts| format!("{} of {}", count_of(urls, "URL"), count_of(hosts, "host"));
    let mut text = format!("validation on {name}: {}\n", places(*urls, *hosts));
    let mut add = |name: &str, value: String| text.push_str(&format!("  {name:10} {value}\n"));
    add("precision", Share::of_pairs(&pairs.merged).to_text("no pairs of URLs that rules make equal"));
    add("recall", Share::of_pairs(&pairs.equal).to_text("no pairs of URLs with equal contents"));
    if repeated.all > 0 {
        add("agreement", format!("{} pairs of captures of one URL", Share::of_pairs(repeated).to_text("no")));
    }
    add("reduction", Share::of(urls - forms, *urls).to_text("no URLs"));
    if scores.changing_hosts > 0 {
        let places = places(scores.changing_urls, scores.changing_hosts);
        add("left out", format!("{places} whose contents change from capture to capture"));
    }
    if scores.sink_urls > 0 {
        let urls = count_of(scores.sink_urls, "URL");
        add("left out", format!("{urls} with contents of many dissimilar URLs, for recall"));
    }
    for (kind, score) in &scores.kinds {
        let precision = Share::of(score.support, score.support + score.counter);
        let precision = precision.to_text("no contents that confirm or contradict these rules");
        text.push_str(&format!("  {kind:24} {precision}\n"));
    }
    text
}

/// A share of things that were counted.
struct Share {
    part: u64,
    all: u64,
    /// The share and its bounds; `None` if there is nothing to count.
    interval: Option<(f64, (f64, f64))>,
}

impl Share {
    fn of_pairs(pairs: &PairShare) -> Share {
        Share { part: pairs.part, all: pairs.all, interval: pairs.interval() }
    }

    /// Returns the share of independent things.
    fn of(part: u64, all: u64) -> Share {
        let share = part as f64 / all as f64;
        Share { part, all, interval: (all > 0).then(|| (share, wilson_interval(share, all as f64))) }
    }

    /// Returns the text for the terminal, which is `none` if there is nothing to count.
    fn to_text(&self, none: &str) -> String {
        let Some((share, (low, high))) = self.interval else { return none.to_string() };
        let [share, low, high] = [share, low, high].map(|share| format!("{:.1}", share * 100.0));
        format!("{share} % ({low} to {high}), {} of {}", self.part, self.all)
    }

    fn to_json(&self) -> Value {
        let (share, bounds) = self.interval.unzip();
        let (low, high) = bounds.unzip();
        json!({"part": self.part, "all": self.all, "share": share, "low": low, "high": high})
    }
}

/// The member `validation` of the report.
pub(super) fn to_json(validation: &Validation) -> Value {
    json!({"known_sites": scores_to_json(&validation.known_sites), "other_sites": scores_to_json(&validation.other_sites)})
}

fn scores_to_json(scores: &RuleScores) -> Value {
    let RuleScores { hosts, captures, urls, forms, pairs, repeated, .. } = scores;
    let kinds: Map<String, Value> = scores
        .kinds
        .iter()
        .map(|(kind, score)| {
            let precision = Share::of(score.support, score.support + score.counter).to_json();
            ((*kind).to_string(), json!({"precision": precision, "urls_made_equal": score.merged}))
        })
        .collect();
    json!({
        "hosts": hosts,
        "captures": captures,
        "urls": urls,
        "different_after_rules": forms,
        "precision": Share::of_pairs(&pairs.merged).to_json(),
        "recall": Share::of_pairs(&pairs.equal).to_json(),
        "agreement": Share::of_pairs(repeated).to_json(),
        "reduction": Share::of(urls - forms, *urls).to_json(),
        "changing_hosts": scores.changing_hosts,
        "changing_urls": scores.changing_urls,
        "sink_urls": scores.sink_urls,
        "kinds": kinds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_without_evidence_have_no_share() {
        let mut scores = RuleScores { hosts: 1, urls: 4, forms: 2, ..RuleScores::default() };
        scores.kinds.entry("ignore-query").or_default().merged = 2;
        let text = scores_to_text("captures", &scores);
        assert!(
            text.contains("\n  ignore-query             no contents that confirm or contradict these rules\n"),
            "{text}"
        );
    }
}
