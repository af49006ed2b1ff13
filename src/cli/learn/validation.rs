//! What `learn --validate` prints and reports.

use serde_json::{Map, Value, json};

use crate::learn::content::{RuleScores, wilson_interval};
use crate::run::Validation;

/// Lines for the terminal.
pub(super) fn to_text(validation: &Validation) -> String {
    let scores = [
        ("later captures of sites that rules were learned from", &validation.known_sites),
        ("captures of other sites", &validation.other_sites),
    ];
    let mut text = String::new();
    for (name, scores) in scores.into_iter().filter(|(_, scores)| scores.urls > 0) {
        let RuleScores { hosts, urls, forms, pairs, .. } = scores;
        text.push_str(&format!("validation on {name}: {urls} URLs of {hosts} hosts\n"));
        text.push_str(&format!("  precision  {}\n", share_to_text(pairs.right, pairs.merged)));
        text.push_str(&format!("  recall     {}\n", share_to_text(pairs.found, pairs.equal)));
        text.push_str(&format!("  reduction  {}\n", share_to_text(urls - forms, *urls)));
        for (kind, score) in &scores.kinds {
            let right = share_to_text(score.support, score.support + score.counter);
            text.push_str(&format!("  {kind:24} {right}\n"));
        }
    }
    text
}

fn share_to_text(part: u64, all: u64) -> String {
    if all == 0 {
        return "no pairs".to_string();
    }
    let (low, high) = wilson_interval(part, all);
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    format!("{} % ({} to {}), {part} of {all}", percent(part as f64 / all as f64), percent(low), percent(high))
}

/// The member `validation` of the report.
pub(super) fn to_json(validation: &Validation) -> Value {
    json!({"known_sites": scores_to_json(&validation.known_sites), "other_sites": scores_to_json(&validation.other_sites)})
}

fn scores_to_json(scores: &RuleScores) -> Value {
    let RuleScores { hosts, captures, urls, forms, pairs, kinds } = scores;
    let kinds: Map<String, Value> = kinds
        .iter()
        .map(|(kind, score)| {
            let precision = share_to_json(score.support, score.support + score.counter);
            ((*kind).to_string(), json!({"precision": precision, "urls_made_equal": score.merged}))
        })
        .collect();
    json!({
        "hosts": hosts,
        "captures": captures,
        "urls": urls,
        "different_after_rules": forms,
        "precision": share_to_json(pairs.right, pairs.merged),
        "recall": share_to_json(pairs.found, pairs.equal),
        "reduction": share_to_json(urls - forms, *urls),
        "kinds": kinds,
    })
}

fn share_to_json(part: u64, all: u64) -> Value {
    let (low, high) = wilson_interval(part, all);
    let share = if all == 0 { Value::Null } else { json!(part as f64 / all as f64) };
    json!({"part": part, "all": all, "share": share, "low": low, "high": high})
}
