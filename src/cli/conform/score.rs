//! The results of conformance cases: counts by profile and operation, failed cases, and invalid lines, as text or JSON.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::case::{CaseOutcome, ConformCase};

/// Results of the cases of one operation in one profile.
#[derive(Clone, Copy, Debug, Default)]
struct OutcomeCounts {
    passed: u64,
    failed: u64,
    unsupported: u64,
    skipped: u64,
}

/// A case that failed.
#[derive(Debug)]
struct FailedCase {
    place: String,
    id: String,
    question: Value,
    answer: Value,
}

/// A file that cannot be read, or a line that is not a case.
#[derive(Debug)]
pub(super) struct InvalidCase {
    file: PathBuf,
    line: Option<usize>,
    message: String,
}

impl fmt::Display for InvalidCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file.display(), self.message),
            None => write!(f, "{}: {}", self.file.display(), self.message),
        }
    }
}

/// The results of all cases.
#[derive(Debug, Default)]
pub(super) struct Score {
    counts: BTreeMap<(String, String), OutcomeCounts>,
    failures: Vec<FailedCase>,
    pub(super) errors: Vec<InvalidCase>,
}

impl Score {
    pub(super) fn add_invalid(&mut self, file: &Path, line: Option<usize>, message: String) {
        self.errors.push(InvalidCase { file: file.to_path_buf(), line, message });
    }

    pub(super) fn add(&mut self, file: &Path, line: usize, case: &ConformCase, verdict: CaseOutcome) {
        let counts = self.counts.entry((case.profile.clone(), case.op.clone())).or_default();
        match verdict {
            CaseOutcome::Passed => counts.passed += 1,
            CaseOutcome::Unsupported => counts.unsupported += 1,
            CaseOutcome::Skipped => counts.skipped += 1,
            CaseOutcome::Malformed(message) => self.add_invalid(file, Some(line), message),
            CaseOutcome::Failed(answer) => {
                counts.failed += 1;
                let place = format!("{}:{line}", file.display());
                self.failures.push(FailedCase { place, id: case.id.clone(), question: case.line().clone(), answer });
            }
        }
    }

    fn sum(&self, count: impl Fn(&OutcomeCounts) -> u64) -> u64 {
        self.counts.values().map(count).sum()
    }

    pub(super) fn passed(&self) -> u64 {
        self.sum(|counts| counts.passed)
    }

    pub(super) fn failed(&self) -> u64 {
        self.sum(|counts| counts.failed)
    }

    pub(super) fn unsupported(&self) -> u64 {
        self.sum(|counts| counts.unsupported)
    }

    pub(super) fn skipped(&self) -> u64 {
        self.sum(|counts| counts.skipped)
    }

    /// One line per profile and operation, up to `show` failures, and the totals.
    pub(super) fn to_text(&self, show: usize) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        for ((profile, op), counts) in &self.counts {
            let run = counts.passed + counts.failed;
            let _ = write!(text, "{profile:12} {op:24} {:6} of {run}", counts.passed);
            for (count, what) in [(counts.unsupported, "unsupported"), (counts.skipped, "skipped")] {
                if count > 0 {
                    let _ = write!(text, ", {count} {what}");
                }
            }
            text.push('\n');
        }
        for failure in self.failures.iter().take(show) {
            let question = &failure.question;
            let op = question["op"].as_str().unwrap_or_default();
            let input = ["input", "input_hex", "input_utf16"].iter().find_map(|name| question.get(name));
            let given = failure.answer.get("output").or(failure.answer.get("fault")).unwrap_or(&Value::Null);
            let (place, id, input) = (&failure.place, &failure.id, input.unwrap_or(&Value::Null));
            let _ = writeln!(text, "{place}: {id}: {op} {input}: expected {}, answered {given}", question["expect"]);
        }
        if self.failures.len() > show {
            let _ =
                writeln!(text, "and {} more; --show {} shows them", self.failures.len() - show, self.failures.len());
        }
        text + &self.closing()
    }

    fn closing(&self) -> String {
        let all = self.passed() + self.failed() + self.unsupported() + self.skipped();
        let fails = if self.failed() == 1 { "fails" } else { "fail" };
        let mut text = format!("{} of {all} cases pass, {} {fails}", self.passed(), self.failed());
        for (count, what) in [(self.unsupported(), "unsupported"), (self.skipped(), "skipped")] {
            if count > 0 {
                let _ = write!(text, ", {count} {what}");
            }
        }
        match self.errors.len() {
            0 => {}
            1 => text.push_str(", 1 line is not a case"),
            more => {
                let _ = write!(text, ", {more} lines are not cases");
            }
        }
        text + "\n"
    }

    pub(super) fn to_json(&self) -> Value {
        let counts = |counts: &OutcomeCounts| {
            json!({
                "passed": counts.passed, "failed": counts.failed,
                "unsupported": counts.unsupported, "skipped": counts.skipped,
            })
        };
        let by_op = |((profile, op), these): (&(String, String), &OutcomeCounts)| {
            let mut row = json!({"profile": profile, "op": op});
            if let (Value::Object(row), Value::Object(counts)) = (&mut row, counts(these)) {
                row.extend(counts);
            }
            row
        };
        let all = OutcomeCounts {
            passed: self.passed(),
            failed: self.failed(),
            unsupported: self.unsupported(),
            skipped: self.skipped(),
        };
        json!({
            "cases": counts(&all),
            "by_op": self.counts.iter().map(by_op).collect::<Vec<_>>(),
            "failures": self.failures.iter().map(|failure| json!({
                "place": failure.place, "id": failure.id, "case": failure.question, "answer": failure.answer,
            })).collect::<Vec<_>>(),
            "errors": self.errors.iter().map(|error| json!({
                "file": error.file.display().to_string(), "line": error.line, "message": error.message,
            })).collect::<Vec<_>>(),
        })
    }
}
