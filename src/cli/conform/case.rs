//! One conformance case: parsing its line, and comparing an answer with the expected one.

use serde_json::Value;

use crate::cli::eval::parse_question;

/// Members that mark a case as open: the documents disagree, or a later one has withdrawn it.
const MARKS: [&str; 4] = ["ambiguous", "conflict", "superseded", "xfail"];

/// A question with the expected answer.
pub(super) struct ConformCase {
    pub(super) id: String,
    pub(super) op: String,
    pub(super) profile: String,
    is_marked: bool,
    line: Value,
}

/// The result of a case.
pub(super) enum CaseOutcome {
    Passed,
    /// With the actual answer.
    Failed(Value),
    Unsupported,
    /// Marked as open.
    Skipped,
    /// The question is malformed; with the reason.
    Malformed(String),
}

impl ConformCase {
    /// Parses a line.
    ///
    /// # Errors
    /// The line is not a case; with the reason.
    pub(super) fn new(line: &[u8]) -> Result<ConformCase, String> {
        let line = parse_question(line).map_err(|error| format!("not JSON: {error}"))?;
        let text = |name: &str| line.get(name).and_then(Value::as_str).map(str::to_string);
        let needed = |name: &str| text(name).ok_or_else(|| format!("the case has no string \"{name}\""));
        let (id, op) = (needed("id")?, needed("op")?);
        if line.get("expect").is_none() {
            return Err("the case has no \"expect\" (null expects a rejection)".to_string());
        }
        let is_marked = MARKS.iter().any(|mark| line.get(mark).is_some_and(is_set));
        Ok(ConformCase { id, op, profile: text("profile").unwrap_or_else(|| "rfc3987".to_string()), is_marked, line })
    }

    /// Compares the answer with the expected one. Cases that are marked as open are not evaluated.
    pub(super) fn evaluate(&self, answer: impl FnOnce() -> Value) -> CaseOutcome {
        if self.is_marked {
            return CaseOutcome::Skipped;
        }
        let answer = answer();
        if let Some(message) = answer.get("error").and_then(Value::as_str) {
            return CaseOutcome::Malformed(message.to_string());
        }
        if answer.get("unsupported").is_some_and(is_set) {
            return CaseOutcome::Unsupported;
        }
        match is_expected(&self.line["expect"], self.line.get("at"), &answer) {
            true => CaseOutcome::Passed,
            false => CaseOutcome::Failed(answer),
        }
    }

    /// The line, for the report of a failure.
    pub(super) fn line(&self) -> &Value {
        &self.line
    }
}

fn is_set(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && *value != ""
}

/// `expect` is null for a rejection (at byte `at`, if that is given), `{"not": null}` for anything but a rejection,
/// `{"hex": ...}` for bytes, an object for an object with at least these members, and otherwise the output itself.
fn is_expected(expect: &Value, at: Option<&Value>, answer: &Value) -> bool {
    let output = answer.get("output");
    match (expect, output) {
        (Value::Null, None) => answer.get("fault").is_some_and(|fault| at.is_none_or(|at| fault.get("at") == Some(at))),
        (Value::Null, Some(output)) => output.is_null() && at.is_none(),
        (_, None) => false,
        (Value::Object(fields), Some(output)) => {
            if fields.len() == 1 && fields.get("not") == Some(&Value::Null) {
                return !output.is_null();
            }
            if let (1, Some(hex), Value::String(text)) = (fields.len(), fields.get("hex"), output) {
                return *hex == hex_of(text);
            }
            output.is_object() && fields.iter().all(|(name, value)| output.get(name) == Some(value))
        }
        (expect, Some(output)) => expect == output,
    }
}

fn hex_of(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_expected;

    #[test]
    fn answers_are_compared() {
        let fault = json!({"fault": {"kind": "port", "component": "port", "at": 9}});
        let output = |value| json!({"output": value});
        let cases = [
            (json!(null), None, fault.clone(), true),
            (json!(null), Some(json!(9)), fault.clone(), true),
            (json!(null), Some(json!(8)), fault.clone(), false),
            (json!(null), None, output(json!(null)), true),
            (json!(null), None, output(json!("x")), false),
            (json!({"not": null}), None, output(json!("x")), true),
            (json!({"not": null}), None, output(json!(null)), false),
            (json!({"not": null}), None, fault, false),
            (json!({"hex": "c3a9"}), None, output(json!("é")), true),
            (json!({"hex": "c3a8"}), None, output(json!("é")), false),
            (json!({"host": "a"}), None, output(json!({"host": "a", "port": null})), true),
            (json!({"host": "b"}), None, output(json!({"host": "a"})), false),
            (json!({"host": null}), None, output(json!({})), false),
            (json!(["a"]), None, output(json!(["a"])), true),
            (json!(true), None, output(json!(false)), false),
        ];
        for (expect, at, answer, is_met) in cases {
            assert_eq!(is_expected(&expect, at.as_ref(), &answer), is_met, "{expect} {answer}");
        }
    }
}
