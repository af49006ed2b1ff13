//! What `learn --validate` prints and reports.

use serde_json::{Map, Value, json};

use crate::learn::content::{PairShare, RuleScores, wilson_interval};
use crate::run::Validation;

pub(super) fn to_text(validation: &Validation) -> String {
    let scores = [
        ("later captures of sites that rules were learned from", &validation.known_sites),
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
    let mut text = format!("validation on {name}: {urls} URLs of {hosts} hosts\n");
    let mut add = |name: &str, value: String| text.push_str(&format!("  {name:10} {value}\n"));
    add("precision", pairs_to_text(&pairs.merged, "no pairs of URLs that rules make equal"));
    add("recall", pairs_to_text(&pairs.equal, "no pairs of URLs with equal contents"));
    if let Some(agreement) = share_to_text(repeated) {
        add("agreement", format!("{agreement} pairs of captures of one URL"));
    }
    add("reduction", part_to_text(urls - forms, *urls));
    if scores.changing_hosts > 0 {
        let (urls, hosts) = (scores.changing_urls, scores.changing_hosts);
        add("left out", format!("{urls} URLs of {hosts} hosts whose contents change from capture to capture"));
    }
    if scores.sink_urls > 0 {
        add("left out", format!("{} URLs with contents of many unlike URLs, for recall", scores.sink_urls));
    }
    for (kind, score) in &scores.kinds {
        let precision = match score.support + score.counter {
            0 => "no contents that confirm or contradict these rules".to_string(),
            all => part_to_text(score.support, all),
        };
        text.push_str(&format!("  {kind:24} {precision}\n"));
    }
    text
}

fn pairs_to_text(pairs: &PairShare, none: &str) -> String {
    share_to_text(pairs).unwrap_or_else(|| none.to_string())
}

fn share_to_text(pairs: &PairShare) -> Option<String> {
    let (share, bounds) = pairs.interval()?;
    Some(format!("{}, {} of {}", percent_to_text(share, bounds), pairs.part, pairs.all))
}

/// The text for independent things; `all` is not 0.
fn part_to_text(part: u64, all: u64) -> String {
    let share = part as f64 / all as f64;
    format!("{}, {part} of {all}", percent_to_text(share, wilson_interval(share, all as f64)))
}

fn percent_to_text(share: f64, (low, high): (f64, f64)) -> String {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    format!("{} % ({} to {})", percent(share), percent(low), percent(high))
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
            let precision = part_to_json(score.support, score.support + score.counter);
            ((*kind).to_string(), json!({"precision": precision, "urls_made_equal": score.merged}))
        })
        .collect();
    json!({
        "hosts": hosts,
        "captures": captures,
        "urls": urls,
        "different_after_rules": forms,
        "precision": pairs_to_json(&pairs.merged),
        "recall": pairs_to_json(&pairs.equal),
        "agreement": pairs_to_json(repeated),
        "reduction": part_to_json(urls - forms, *urls),
        "changing_hosts": scores.changing_hosts,
        "changing_urls": scores.changing_urls,
        "sink_urls": scores.sink_urls,
        "kinds": kinds,
    })
}

fn pairs_to_json(pairs: &PairShare) -> Value {
    share_to_json((pairs.part, pairs.all), pairs.interval())
}

fn part_to_json(part: u64, all: u64) -> Value {
    let share = part as f64 / all as f64;
    share_to_json((part, all), (all > 0).then(|| (share, wilson_interval(share, all as f64))))
}

/// A share and its bounds, which are null if there is nothing to count.
fn share_to_json((part, all): (u64, u64), interval: Option<(f64, (f64, f64))>) -> Value {
    let (share, low, high) = match interval {
        Some((share, (low, high))) => (json!(share), json!(low), json!(high)),
        None => (Value::Null, Value::Null, Value::Null),
    };
    json!({"part": part, "all": all, "share": share, "low": low, "high": high})
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
