//! The part of `explain` about a file of equivalences: which class, rules and patterns lead to the key of the rung `protocol`,
//! with their evidence.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::error::CommandError;
use super::terminal::visible;
use crate::batch::EvidenceRow;
use crate::canon::Policy;
use crate::key::{KeyAlgorithm, KeyBytes};
use crate::learn::{Equivalences, KeyOrigin, TraceStep};
use crate::run::{read_equivalences, read_evidence};

/// A file of equivalences.
pub(super) struct KnownEquivalences {
    path: PathBuf,
    equivalences: Arc<Equivalences>,
}

/// What the equivalences do to one URL.
pub(super) struct AppliedEquivalences {
    key: KeyBytes,
    steps: Vec<(TraceStep, Option<EvidenceRow>)>,
}

impl KnownEquivalences {
    pub(super) fn read(path: &Path, policy: &Policy) -> Result<KnownEquivalences, CommandError> {
        let read = read_equivalences(path, policy);
        let equivalences = read.map_err(|error| CommandError::Usage(format!("{}: {error}", path.display())))?;
        Ok(KnownEquivalences { path: path.to_path_buf(), equivalences: Arc::new(equivalences) })
    }

    /// Applies the equivalences to a URL on the rung `scheme`.
    pub(super) fn apply(&self, uri: &[u8]) -> Result<AppliedEquivalences, CommandError> {
        let steps = self.equivalences.trace(uri);
        let uris: Vec<_> = steps.iter().map(|step| String::from_utf8_lossy(&step.uri)).collect();
        let wanted: Vec<Vec<(&str, &str)>> = steps
            .iter()
            .zip(&uris)
            .map(|(step, uri)| match step.origin {
                KeyOrigin::Class => vec![("kind", "member"), ("uri", uri)],
                KeyOrigin::Rule => {
                    vec![("kind", "rule"), ("host", &step.scope), ("pattern", &step.name), ("context", &step.context)]
                }
                _ => vec![("kind", "pattern"), ("host", &step.scope), ("pattern", &step.name)],
            })
            .collect();
        let evidence = read_evidence(&self.path, &wanted);
        let evidence = evidence.map_err(|error| CommandError::Usage(format!("{}: {error}", self.path.display())))?;
        drop(wanted);
        let key = self.equivalences.key(uri, KeyAlgorithm::default().key(uri)).0;
        Ok(AppliedEquivalences { key, steps: steps.into_iter().zip(evidence).collect() })
    }
}

impl AppliedEquivalences {
    pub(super) fn key(&self) -> KeyBytes {
        self.key
    }

    /// Lines for the terminal.
    pub(super) fn show(&self) -> String {
        let mut text = String::from("\nequivalences\n");
        for (step, evidence) in &self.steps {
            let context = if step.context.is_empty() { String::new() } else { format!(" of {}", step.context) };
            let name = match step.origin {
                KeyOrigin::Class => "member of a class".to_string(),
                _ => format!("{}: {}{context}", step.scope, step.name),
            };
            text.push_str(&format!("  {}\n", visible(&name)));
            let evidence = evidence.as_ref().map_or("  no evidence in the file".to_string(), evidence_to_text);
            text.push_str(&format!("  {}\n", visible(&evidence)));
            let result = match evidence_result(step) {
                Some(result) => result,
                None => continue,
            };
            text.push_str(&format!("    {}\n", visible(&result)));
        }
        if self.steps.is_empty() {
            text.push_str("  none applies\n");
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let step = |(step, evidence): &(TraceStep, Option<EvidenceRow>)| {
            let kind = match step.origin {
                KeyOrigin::Class => "member",
                KeyOrigin::Rule => "rule",
                _ => "pattern",
            };
            json!({
                "kind": kind,
                "host": step.scope,
                "pattern": step.name,
                "context": step.context,
                "result": evidence_result(step),
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

fn evidence_result(step: &TraceStep) -> Option<String> {
    (!step.result.is_empty()).then(|| String::from_utf8_lossy(&step.result).into_owned())
}

fn evidence_to_text(evidence: &EvidenceRow) -> String {
    let EvidenceRow { how, support, counter, lower_bound, examples, representative } = evidence;
    if let Some(representative) = representative {
        return format!("  {how}; representative {representative}");
    }
    if how == "hand" {
        return "  added by hand".to_string();
    }
    let mut text = format!("  {}", if how.is_empty() { "redirects" } else { how });
    let counts = support.zip(*counter).map(|(support, counter)| format!(": {support} for, {counter} against"));
    text.push_str(&counts.unwrap_or_default());
    text.push_str(&lower_bound.map(|bound| format!(", lower bound {bound:.3}")).unwrap_or_default());
    if let [first, second, ..] = &examples[..] {
        text.push_str(&format!("; such as {first} and {second}"));
    }
    text
}
