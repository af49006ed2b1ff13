//! `conform`: runs files of conformance cases through `eval` and counts, by profile and operation, how many pass. The
//! format of cases is documented in `data/cases/README.md`. A line that is not a case is an error that names file and
//! line; it is never skipped silently.

mod case;
mod score;

use std::fs;
use std::path::{Path, PathBuf};

use self::case::{CaseOutcome, ConformCase};
use self::score::Score;
use crate::cli::error::CommandError;
use crate::cli::eval::answer_line;
use crate::cli::terminal::{print_error, print_lines};
use crate::process::exit;

const EXAMPLES: &str = "\
Examples:
  irikey conform data/cases/*.jsonl
  irikey conform data/cases/*.jsonl --op normalize --json";

/// Run conformance cases and count how many pass
///
/// A case is a question for `irikey eval` and the expected answer; data/cases/README.md in the sources describes the
/// format. The exit status is 1 if a case fails, and 4 if a line is not a case or a file cannot be read. Cases of
/// unsupported operations are counted separately.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ConformArgs {
    /// Files of cases, JSON lines
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Run only the cases of this operation
    #[arg(long, value_name = "OP")]
    op: Option<String>,
    /// Run only the cases of this profile
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Print a JSON object with all failed cases
    #[arg(long)]
    json: bool,
    /// Number of failed cases to print; --json has all
    #[arg(long, value_name = "N", default_value_t = 20)]
    show: usize,
}

pub(crate) fn run(args: &ConformArgs) -> Result<u8, CommandError> {
    let mut score = Score::default();
    for file in &args.files {
        match fs::read(file) {
            Ok(text) => run_cases(&text, file, args, &mut score),
            Err(error) => score.add_invalid(file, None, format!("cannot read: {error}")),
        }
    }
    for error in &score.errors {
        print_error(&error.to_string());
    }
    let text = if args.json { format!("{:#}\n", score.to_json()) } else { score.to_text(args.show) };
    Ok(match print_lines(&text) {
        exit::SUCCESS if !score.errors.is_empty() => exit::INPUT,
        exit::SUCCESS if score.failed() > 0 => exit::DIFFERENT,
        status => status,
    })
}

/// Runs all cases of the text of a file. Blank lines are ignored.
fn run_cases(text: &[u8], file: &Path, args: &ConformArgs, score: &mut Score) {
    for (i, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let case = match ConformCase::new(line) {
            Ok(case) => case,
            Err(message) => {
                score.add_invalid(file, Some(i + 1), message);
                continue;
            }
        };
        let is_selected = args.op.as_ref().is_none_or(|op| *op == case.op)
            && args.profile.as_ref().is_none_or(|profile| *profile == case.profile);
        if !is_selected {
            continue;
        }
        match case.evaluate(|| answer_line(line)) {
            CaseOutcome::Malformed(message) => score.add_invalid(file, Some(i + 1), message),
            verdict => score.add(file, i + 1, &case, verdict),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn score(lines: &str) -> Score {
        let args = ConformArgs { files: Vec::new(), op: None, profile: None, json: false, show: 20 };
        let mut score = Score::default();
        run_cases(lines.as_bytes(), Path::new("x.jsonl"), &args, &mut score);
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
        assert_eq!((score.passed(), score.failed(), score.unsupported(), score.skipped()), (2, 1, 2, 1));
        let errors: Vec<_> = score.errors.iter().map(ToString::to_string).collect();
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
        assert_eq!(score.to_json()["failures"][0]["id"], "b");
    }

    #[test]
    fn own_cases_pass() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cases");
        let mut all = 0;
        for entry in fs::read_dir(folder).expect("data/cases") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|suffix| suffix == "jsonl") {
                let score = score(&fs::read_to_string(&path).expect("UTF-8"));
                assert!(score.errors.is_empty() && score.failed() == 0, "{}: {}", path.display(), score.to_text(99));
                assert_eq!(score.unsupported(), 0, "{}", path.display());
                all += score.passed();
            }
        }
        assert!(all > 1200, "only {all} cases: where are the others?");
    }
}
