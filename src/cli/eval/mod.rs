//! `eval`: answers questions about single references, as JSON lines, in order. It is the interface for conformance
//! suites. A malformed question is answered with an `error`; only failures to read the input or to write the output end
//! the command.

mod ops;
mod profile_ops;
mod request;

use std::io::{self, BufRead, Write};
use std::path::Path;

use serde_json::Value;

use self::request::{Answer, Request};
pub(crate) use self::request::{fault_value, parse_json};
use crate::cli::error::CommandError;
use crate::output::OutputError;
use crate::process::{check_stdin, check_stdout, exit};

const EXAMPLES: &str = "\
Examples:
  echo '{\"id\": 1, \"op\": \"normalize\", \"input\": \"HTTP://h\"}' | irikey eval";

/// Answer questions on standard input, one JSON object per line
///
/// A question has an "id", an "op" and an "input" (or "input_hex", or "input_utf16"). Its answer has the "id" and one of
/// "output", "fault", "unsupported": true, and "error", which says what is wrong with the question.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct EvalArgs {}

/// Answers all lines of standard input, except blank ones.
pub(crate) fn run(_args: &EvalArgs) -> Result<u8, CommandError> {
    let unread = |error| CommandError::unreadable(Path::new("standard input"), &error);
    check_stdin().map_err(unread)?;
    check_stdout().map_err(unwritten)?;
    let (mut questions, mut answers) = (io::stdin().lock(), io::BufWriter::new(io::stdout().lock()));
    let mut line = Vec::new();
    loop {
        line.clear();
        if questions.read_until(b'\n', &mut line).map_err(unread)? == 0 {
            answers.flush().map_err(unwritten)?;
            return Ok(exit::SUCCESS);
        }
        if !line.trim_ascii().is_empty() {
            writeln!(answers, "{}", answer_line(&line)).map_err(unwritten)?;
        }
    }
}

fn unwritten(error: io::Error) -> CommandError {
    match error.kind() {
        io::ErrorKind::BrokenPipe => OutputError::ClosedPipe.into(),
        _ => CommandError::side_file(Path::new("standard output"), "write", error),
    }
}

/// Answers one line of any content.
pub(crate) fn answer_line(line: &[u8]) -> Value {
    match parse_json(line) {
        Ok((question, has_lone_surrogates)) => answer(&question, has_lone_surrogates),
        Err(error) => Answer::Error(format!("not JSON: {error}")).into_line(Value::Null),
    }
}

/// Answers a question that [`parse_json`] returned.
pub(crate) fn answer(question: &Value, has_lone_surrogates: bool) -> Value {
    let id = question.get("id").cloned().unwrap_or(Value::Null);
    let request = Request::new(question, has_lone_surrogates);
    request.and_then(|request| ops::answer(&request)).unwrap_or_else(|answer| answer).into_line(id)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::answer_line;

    #[test]
    fn malformed_questions_are_answered() {
        let cases = [
            (r#"{"#, "error"),
            (r#"[]"#, "error"),
            (r#"{"id": 1}"#, "error"),
            (r#"{"id": 1, "op": "normalize"}"#, "error"),
            (r#"{"id": 1, "op": "compare", "input": "a"}"#, "error"),
            (r#"{"id": 1, "op": "normalize", "input": "a:b", "rung": 9}"#, "error"),
            (r#"{"id": 1, "op": 2, "input": "a:b"}"#, "error"),
            (r#"{"id": 1, "op": "resolve", "input": "b", "base": 2}"#, "error"),
            (r#"{"id": 1, "op": "normalize", "input": "a:b", "base": null}"#, "output"),
            (r#"{"id": 1, "op": "compare", "input": ["a:", "b:"], "rung": 4, "opts": {"redirect": "a:"}}"#, "error"),
            (r#"{"id": 1, "op": "compare", "input": ["a:", "b:"], "rung": 4, "opts": {"redirect": [1, 2]}}"#, "error"),
            (r#"{"id": 1, "op": "compare", "input": ["a:", "b:"], "rung": 4, "opts": {"redirect": []}}"#, "output"),
            (r#"{"id": 1, "op": "no_such_op", "input": "a:b"}"#, "unsupported"),
            (r#"{"id": 1, "op": "normalize", "input_hex": "zz"}"#, "error"),
            (r#"{"id": 1, "op": "to_uri", "input_utf16": [55296]}"#, "fault"),
            (r#"{"id": 1, "op": "to_uri", "input": "a\ud800"}"#, "fault"),
            (r#"{"id": 1, "op": "is_nfc", "input": "a\\ud800\ud83d\ude00"}"#, "output"),
            (r#"{"id": 1, "op": "normalize", "input": "a:b"}"#, "output"),
        ];
        for (question, key) in cases {
            assert!(answer_line(question.as_bytes()).get(key).is_some(), "{question}");
        }
    }

    #[test]
    fn lone_surrogates_are_replaced_by_whatwg_and_faults_otherwise() {
        let lone = r#"{"id": 1, "op": "whatwg_parse", "input": "http://h/\ud800\ud83d\ude00x"}"#;
        assert_eq!(answer_line(lone.as_bytes())["output"]["href"], "http://h/%EF%BF%BD%F0%9F%98%80x");
        let units = r#"{"id": 1, "op": "normalize", "profile": "whatwg", "input_utf16": [97, 58, 56320]}"#;
        assert_eq!(answer_line(units.as_bytes())["output"], "a:%EF%BF%BD");
        let other = r#"{"id": 1, "op": "validate_iri", "input": "a:\udc00"}"#;
        assert_eq!(answer_line(other.as_bytes())["fault"]["at"], 2);
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(answer_line(&line).get("id").is_some());
        }

        #[test]
        fn any_input_is_answered(
            op in "(validate_(iri|uri)(_reference)?|parse|resolve|normalize|normalize_path|compare|to_uri|to_iri|to_uri_idempotent|percent_encode_bytes|idna_to_ascii|idna_to_unicode|is_nfc)",
            input in "(http|HTTP|urn|file|x)?:?(//)?\\PC{0,30}",
            rung in 1u8..4,
        ) {
            let input = if op == "compare" { serde_json::json!([input, input]) } else { serde_json::json!(input) };
            let question = serde_json::json!({"id": 7, "op": op, "input": input, "rung": rung, "base": "http://a/b/c"});
            let answer = answer_line(question.to_string().as_bytes());
            prop_assert_eq!(&answer["id"], 7);
            prop_assert!(answer.get("error").is_none());
        }
    }
}
