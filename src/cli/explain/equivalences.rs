//! The part of `explain` about a file of equivalences: which class, rules and patterns lead to the key of the rung `protocol`,
//! with their evidence.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::batch::EvidenceRow;
use crate::canon::Policy;
use crate::cli::error::CommandError;
use crate::cli::terminal::visible;
use crate::key::{KeyAlgorithm, KeyBytes};
use crate::learn::{Equivalences, KeyOrigin, TraceStep};
use crate::run::read_evidence;

/// A file of equivalences.
pub(super) struct KnownEquivalences {
    path: PathBuf,
    equivalences: Arc<Equivalences>,
    algorithm: KeyAlgorithm,
}

/// What the equivalences do to one URL.
pub(super) struct AppliedEquivalences {
    pub(super) key: KeyBytes,
    steps: Vec<(TraceStep, Option<EvidenceRow>)>,
}

impl KnownEquivalences {
    /// The equivalences of the policy, which were read from the file at `path`.
    pub(super) fn new(path: &Path, policy: &Policy) -> Option<KnownEquivalences> {
        let equivalences = policy.equivalences.clone()?;
        Some(KnownEquivalences { path: path.to_path_buf(), equivalences, algorithm: policy.algorithm })
    }

    /// Applies the equivalences to a URL on the rung `scheme`.
    pub(super) fn apply(&self, uri: &[u8]) -> Result<AppliedEquivalences, CommandError> {
        let steps = self.equivalences.trace(uri);
        let wanted = |step: &TraceStep| match kind(step) {
            "member" => vec![("kind", "member".to_string()), ("uri", lossy(&step.uri))],
            kind => {
                let [host, pattern, context] = [&step.scope, &step.name, &step.context].map(String::clone);
                vec![("kind", kind.to_string()), ("host", host), ("pattern", pattern), ("context", context)]
            }
        };
        let wanted: Vec<_> = steps.iter().map(wanted).collect();
        let evidence = read_evidence(&self.path, &wanted);
        let evidence = evidence.map_err(|error| CommandError::unusable("--equivalences", &self.path, &error))?;
        let key = self.equivalences.key(uri, self.algorithm.key(uri)).0;
        Ok(AppliedEquivalences { key, steps: steps.into_iter().zip(evidence).collect() })
    }
}

impl AppliedEquivalences {
    pub(super) fn show(&self) -> String {
        let mut text = String::from("\nequivalences\n");
        for (step, evidence) in &self.steps {
            let context = if step.context.is_empty() { String::new() } else { format!(" of {}", step.context) };
            let name = match step.origin {
                KeyOrigin::Class => "member of a class".to_string(),
                _ => format!("{}: {}{context}", step.scope, step.name),
            };
            text.push_str(&format!("  {}\n", visible(&name)));
            let evidence = evidence.as_ref().map_or("no evidence in the file".to_string(), evidence_to_text);
            text.push_str(&format!("    {}\n", visible(&evidence)));
            if !step.result.is_empty() {
                text.push_str(&format!("    {}\n", visible(&lossy(&step.result))));
            }
        }
        if self.steps.is_empty() {
            text.push_str("  none applies\n");
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let step = |(step, evidence): &(TraceStep, Option<EvidenceRow>)| {
            json!({
                "kind": kind(step),
                "host": step.scope,
                "pattern": step.name,
                "context": step.context,
                "result": (!step.result.is_empty()).then(|| lossy(&step.result)),
                "how": evidence.as_ref().map(|evidence| evidence.how.clone()),
                "support": evidence.as_ref().and_then(|evidence| evidence.support),
                "counter": evidence.as_ref().and_then(|evidence| evidence.counter),
                "lower_bound": evidence.as_ref().and_then(|evidence| evidence.lower_bound),
                "representative": evidence.as_ref().and_then(|evidence| evidence.representative.clone()),
                "examples": evidence.as_ref().map(|evidence| evidence.examples.clone()),
            })
        };
        self.steps.iter().map(step).collect()
    }
}

/// The kind of the rows that explain a step.
fn kind(step: &TraceStep) -> &'static str {
    match step.origin {
        KeyOrigin::Class => "member",
        KeyOrigin::Rule => "rule",
        _ => "pattern",
    }
}

pub(super) fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

fn evidence_to_text(evidence: &EvidenceRow) -> String {
    let EvidenceRow { how, support, counter, lower_bound, examples, representative } = evidence;
    if let Some(representative) = representative {
        return format!("{how}; representative {representative}");
    }
    if how == "hand" {
        return "added by hand".to_string();
    }
    let mut text = if how.is_empty() { "redirects" } else { how }.to_string();
    let counts = support.zip(*counter).map(|(support, counter)| format!(": {support} for, {counter} against"));
    text.push_str(&counts.unwrap_or_default());
    text.push_str(&lower_bound.map(|bound| format!(", lower bound {bound:.3}")).unwrap_or_default());
    if let [first, second, ..] = &examples[..] {
        text.push_str(&format!("; such as {first} and {second}"));
    }
    text
}
