//! `conform`: runs files of conformance cases through `eval` and counts, by profile and operation, how many pass. The
//! format of cases is documented in `data/cases/README.md`. A line that is not a case is an error that names file and
//! line; it is never skipped silently.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use serde_json::Value;

use super::args::parse_number_from;
use super::error::CommandError;
use super::eval::{answer, parse_json};
use super::terminal::{print_error, print_lines};
use crate::process::{exit, plain_error};

const EXAMPLES: &str = "\
Examples:
  irikey conform data/cases/*.jsonl";

/// Run conformance cases and count how many pass
///
/// A case is a question for `irikey eval` and the expected answer; data/cases/README.md in the sources describes the
/// format. The exit code is 1 if a case fails, and 4 if a line is not a case or a file cannot be read. Cases of
/// unsupported operations are counted separately.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConformArgs {
    /// Files of cases, JSON lines
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Number of failed cases to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_number_from::<usize, 0>,
          allow_negative_numbers = true)]
    show: usize,
}

pub(crate) fn run(args: &ConformArgs) -> Result<u8, CommandError> {
    let mut score = Score::default();
    args.files.iter().for_each(|file| run_file(file, &mut score));
    for error in &score.errors {
        print_error(error);
    }
    Ok(match print_lines(&score.to_text(args.show)) {
        exit::SUCCESS if !score.errors.is_empty() => exit::INPUT,
        exit::SUCCESS if score.count(Outcome::Failed) > 0 => exit::DIFFERENT,
        status => status,
    })
}

/// Runs all cases of a file.
fn run_file(file: &Path, score: &mut Score) {
    match fs::read(file) {
        Ok(text) => run_cases(&text, file, score),
        Err(error) => {
            score.unread_files += 1;
            score.errors.push(format!("{}: cannot read: {}; check the path", file.display(), plain_error(&error)));
        }
    }
}

/// Runs all cases of the text of a file. Blank lines are ignored.
fn run_cases(text: &[u8], file: &Path, score: &mut Score) {
    for (i, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let evaluate = |case: ConformCase| {
            let (outcome, answer) = case.evaluate()?;
            Ok((case, outcome, answer))
        };
        let place = format!("{}:{}", file.display(), i + 1);
        match ConformCase::new(line).and_then(evaluate) {
            Ok((case, outcome, answer)) => score.add(&place, case, outcome, &answer),
            Err(message) => score.errors.push(format!("{place}: {message}")),
        }
    }
}

/// Members that mark a case as open: the documents disagree, or a later one has withdrawn it.
const MARKS: [&str; 4] = ["ambiguous", "conflict", "superseded", "xfail"];

/// A question with the expected answer.
struct ConformCase {
    id: String,
    op: String,
    profile: String,
    is_marked: bool,
    question: Value,
    has_lone_surrogates: bool,
}

#[derive(Clone, Copy)]
enum Outcome {
    Passed,
    Failed,
    Unsupported,
    /// Marked as open.
    Skipped,
}

const OUTCOMES: [(Outcome, &str); 4] = [
    (Outcome::Passed, "passed"),
    (Outcome::Failed, "failed"),
    (Outcome::Unsupported, "unsupported"),
    (Outcome::Skipped, "skipped"),
];

impl ConformCase {
    /// Parses a line.
    fn new(line: &[u8]) -> Result<ConformCase, String> {
        let (question, has_lone_surrogates) = parse_json(line).map_err(|error| format!("not JSON: {error}"))?;
        let text = |name: &str| question.get(name).and_then(Value::as_str).map(str::to_string);
        let needed = |name: &str| text(name).ok_or_else(|| format!("the case has no string \"{name}\""));
        let (id, op) = (needed("id")?, needed("op")?);
        if question.get("expect").is_none() {
            return Err("the case has no \"expect\" (null expects a rejection)".to_string());
        }
        let is_marked = MARKS.iter().any(|mark| question.get(mark).is_some_and(is_set));
        let profile = text("profile").unwrap_or_else(|| "rfc3987".to_string());
        Ok(ConformCase { id, op, profile, is_marked, question, has_lone_surrogates })
    }

    /// Compares the answer with the expected one. Cases that are marked as open are not evaluated.
    fn evaluate(&self) -> Result<(Outcome, Value), String> {
        if self.is_marked {
            return Ok((Outcome::Skipped, Value::Null));
        }
        let answer = answer(&self.question, self.has_lone_surrogates);
        if let Some(message) = answer.get("error").and_then(Value::as_str) {
            return Err(message.to_string());
        }
        let outcome = match is_expected(&self.question["expect"], self.question.get("at"), &answer) {
            _ if answer.get("unsupported").is_some_and(is_set) => Outcome::Unsupported,
            true => Outcome::Passed,
            false => Outcome::Failed,
        };
        Ok((outcome, answer))
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
                return *hex == HEXLOWER.encode(text.as_bytes());
            }
            output.is_object() && fields.iter().all(|(name, value)| output.get(name) == Some(value))
        }
        (expect, Some(output)) => expect == output,
    }
}

#[derive(Default)]
struct Score {
    /// By profile and operation, in the order of [`OUTCOMES`].
    counts: BTreeMap<(String, String), [u64; 4]>,
    /// Cases that failed.
    failures: Vec<String>,
    /// Files that cannot be read, and lines that are not cases.
    errors: Vec<String>,
    /// The number of files among these.
    unread_files: usize,
}

impl Score {
    fn add(&mut self, place: &str, case: ConformCase, outcome: Outcome, answer: &Value) {
        let ConformCase { id, op, profile, question, .. } = case;
        if matches!(outcome, Outcome::Failed) {
            let input = ["input", "input_hex", "input_utf16"].iter().find_map(|name| question.get(name));
            let given = answer.get("output").or(answer.get("fault")).unwrap_or(&Value::Null);
            let (input, expect) = (input.unwrap_or(&Value::Null), &question["expect"]);
            self.failures.push(format!("{place}: {id}: {op} {input}: expected {expect}, answered {given}\n"));
        }
        self.counts.entry((profile, op)).or_default()[outcome as usize] += 1;
    }

    fn count(&self, outcome: Outcome) -> u64 {
        self.counts.values().map(|counts| counts[outcome as usize]).sum()
    }

    /// One line per profile and operation, up to `show` failures, and the totals.
    fn to_text(&self, show: usize) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        for ((profile, op), counts @ [passed, failed, ..]) in &self.counts {
            let _ = writeln!(text, "{profile:12} {op:24} {passed:6} of {}{}", passed + failed, not_run(*counts));
        }
        text.extend(self.failures.iter().take(show).map(String::as_str));
        let count = self.failures.len();
        if count > show {
            let _ = writeln!(text, "and {} more; --show {count} shows them", count - show);
        }
        text + &self.closing()
    }

    fn closing(&self) -> String {
        let counts = OUTCOMES.map(|(outcome, _)| self.count(outcome));
        let [passed, failed, ..] = counts;
        let fails = if failed == 1 { "fails" } else { "fail" };
        let invalid = match self.errors.len() - self.unread_files {
            0 => String::new(),
            1 => ", 1 line is not a case".to_string(),
            more => format!(", {more} lines are not cases"),
        };
        let unread = match self.unread_files {
            0 => String::new(),
            1 => ", 1 file cannot be read".to_string(),
            more => format!(", {more} files cannot be read"),
        };
        let all = counts.iter().sum::<u64>();
        format!("{passed} of {all} cases pass, {failed} {fails}{}{invalid}{unread}\n", not_run(counts))
    }
}

/// How many cases were not run; empty if all were.
fn not_run(counts: [u64; 4]) -> String {
    let named = OUTCOMES.into_iter().skip(2).filter(|(outcome, _)| counts[*outcome as usize] > 0);
    named.map(|(outcome, name)| format!(", {} {name}", counts[outcome as usize])).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn score(lines: &str) -> Score {
        let mut score = Score::default();
        run_cases(lines.as_bytes(), Path::new("x.jsonl"), &mut score);
        score
    }

    #[test]
    fn every_line_is_accounted_for() {
        let lines = r#"{"id": "a", "op": "normalize", "input": "HTTP://a", "expect": "http://a/"}
{"id": "b", "op": "normalize", "input": "HTTP://a", "expect": "http://b/"}

{"id": "c", "op": "no_such_op", "input": "x", "expect": "x"}
{"id": "d", "op": "normalize", "input": "HTTP://a", "expect": "http://c/", "ambiguous": true}
{"id": "e", "op": "normalize", "input": "x", "expect": null, "profile": "rfc3987"}
{"id": "f", "op": "normalize", "input": "x:", "expect": null, "profile": "no such profile"}
{"id": "g", "op": "normalize"}
not JSON
{"id": "h", "op": "normalize", "expect": 1}
"#;
        let score = score(lines);
        assert_eq!(OUTCOMES.map(|(outcome, _)| score.count(outcome)), [2, 1, 2, 1]);
        let errors = &score.errors;
        assert_eq!(errors.len(), 3);
        assert!(errors[0].starts_with("x.jsonl:8: the case has no \"expect\""), "{errors:?}");
        assert!(errors[1].starts_with("x.jsonl:9: not JSON"), "{errors:?}");
        assert!(errors[2].starts_with("x.jsonl:10: \"input\""), "{errors:?}");
        let text = score.to_text(20);
        assert!(text.contains("x.jsonl:2: b: normalize"), "{text}");
        assert!(
            text.ends_with("2 of 6 cases pass, 1 fails, 2 unsupported, 1 skipped, 3 lines are not cases\n"),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_no_line() {
        let mut score = score("not JSON\n");
        run_file(Path::new("no such file"), &mut score);
        assert!(score.errors[1].starts_with("no such file: cannot read: "), "{:?}", score.errors);
        assert_eq!(score.to_text(20), "0 of 0 cases pass, 0 fail, 1 line is not a case, 1 file cannot be read\n");
    }

    #[test]
    fn own_cases_pass() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cases");
        let mut all = 0;
        for entry in fs::read_dir(folder).expect("data/cases") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|suffix| suffix == "jsonl") {
                let score = score(&fs::read_to_string(&path).expect("UTF-8"));
                assert!(
                    score.errors.is_empty() && score.count(Outcome::Failed) == 0,
                    "{}: {}",
                    path.display(),
                    score.to_text(99)
                );
                assert_eq!(score.count(Outcome::Unsupported), 0, "{}", path.display());
                all += score.count(Outcome::Passed);
            }
        }
        assert!(all > 1200, "only {all} cases: where are the others?");
    }

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
