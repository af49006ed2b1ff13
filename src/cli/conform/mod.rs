//! `conform`: files of published cases in, what passed by profile and op out. Each case is asked of `eval`; what its
//! answer is held against is in `data/cases/README.md`. Refuses to pass over a line that is no case: it is an error that
//! names file and line.

mod case;
mod score;

use std::fs;
use std::path::{Path, PathBuf};

use self::case::{Case, Verdict};
use self::score::Score;
use super::eval::answer_line;
use super::{print, say};
use crate::process::exit;

/// Asks the cases of JSON lines files and says how many of each op and profile pass
///
/// A case is a question of `irikey eval` with what it expects; data/cases/README.md of the sources describes it. Exit
/// status 1 if a case fails, 4 if a line is no case or a file cannot be read. Cases of ops that are not offered are
/// counted apart.
#[derive(Debug, clap::Args)]
pub struct ConformArgs {
    /// Files of cases, JSON lines
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Only the cases of this op
    #[arg(long, value_name = "OP")]
    op: Option<String>,
    /// Only the cases of this profile
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Print a JSON object, with every case that failed
    #[arg(long)]
    json: bool,
    /// Cases that failed to show; with --json all of them are there
    #[arg(long, value_name = "N", default_value_t = 20)]
    show: usize,
}

pub(super) fn run(args: &ConformArgs) -> u8 {
    let mut score = Score::default();
    for file in &args.files {
        match fs::read(file) {
            Ok(text) => ask_all(&text, file, args, &mut score),
            Err(error) => score.refuse(file, None, format!("cannot read: {error}")),
        }
    }
    for error in &score.errors {
        say(&error.to_string());
    }
    let text = if args.json { format!("{:#}\n", score.to_json()) } else { score.to_text(args.show) };
    match print(&text) {
        exit::SUCCESS if !score.errors.is_empty() => exit::INPUT,
        exit::SUCCESS if score.failed() > 0 => exit::DIFFERENT,
        status => status,
    }
}

/// Asks every case of `text`, which is the file's; blank lines are none.
fn ask_all(text: &[u8], file: &Path, args: &ConformArgs, score: &mut Score) {
    for (i, line) in text.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let case = match Case::new(line) {
            Ok(case) => case,
            Err(message) => {
                score.refuse(file, Some(i + 1), message);
                continue;
            }
        };
        let is_asked = args.op.as_ref().is_none_or(|op| *op == case.op)
            && args.profile.as_ref().is_none_or(|profile| *profile == case.profile);
        if !is_asked {
            continue;
        }
        match case.judge(|| answer_line(line)) {
            Verdict::Malformed(message) => score.refuse(file, Some(i + 1), message),
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
        ask_all(lines.as_bytes(), Path::new("x.jsonl"), &args, &mut score);
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
        assert!(errors[0].starts_with("x.jsonl:8: the case lacks \"expect\""), "{errors:?}");
        assert!(errors[1].starts_with("x.jsonl:9: not JSON"), "{errors:?}");
        assert!(errors[2].starts_with("x.jsonl:10: \"input\""), "{errors:?}");
        let text = score.to_text(20);
        assert!(text.contains("x.jsonl:2: b: normalize"), "{text}");
        assert!(
            text.ends_with("2 of 6 cases pass, 1 fails, 2 not offered, 1 skipped, 3 lines are no cases\n"),
            "{text}"
        );
        assert_eq!(score.to_json()["failures"][0]["id"], "b");
    }

    #[test]
    fn our_own_cases_pass() {
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
