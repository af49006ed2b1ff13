//! Runs the cases of `data/cases/*.jsonl` on every engine and reports every failure, not only the first.
//!
//! Each line is one case; `data/cases/README.md` describes its members. The number of cases per file is asserted, so
//! that a deleted case is noticed.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::engine::{Base, Engine, Kind, Rung, engines};
use crate::oracle::grammar;

/// Files whose cases run on every engine, and the number of cases in each.
const FILES: [(&str, usize); 9] = [
    ("grammar.jsonl", 159),
    ("resolve.jsonl", 87),
    ("dots.jsonl", 37),
    ("to_uri.jsonl", 32),
    ("to_iri.jsonl", 34),
    ("syntax.jsonl", 163),
    ("scheme.jsonl", 176),
    ("strict.jsonl", 31),
    ("simple.jsonl", 5),
];

/// Files whose cases run in other modules of this test, and the number of cases in each.
pub const OTHER_FILES: [(&str, usize); 4] =
    [("bidi.jsonl", 146), ("spoof.jsonl", 89), ("surt.jsonl", 164), ("recipes.jsonl", 81)];

/// Files whose cases run in the tests of the command `irikey eval`, and the number of cases in each.
const EVAL_FILES: [(&str, usize); 3] = [("encoding.jsonl", 69), ("preprocess.jsonl", 29), ("profiles.jsonl", 186)];

/// One case: a line of a file.
pub struct Case {
    pub id: String,
    pub op: String,
    pub input: Vec<u8>,
    pub base: String,
    pub profile: String,
    pub rung: u64,
    pub opts: Value,
    pub expect: Value,
}

impl Case {
    /// The value of a boolean option, or `None` if the case does not set it.
    fn opt_bool(&self, name: &str) -> Option<bool> {
        self.opts.get(name)?.as_bool()
    }
}

/// Reads the cases of one file of `data/cases`.
pub fn read(file: &str) -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cases").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| parse_case(file, line)).collect()
}

fn parse_case(file: &str, line: &str) -> Case {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{file}: {error}: {line}"));
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_string);
    let required = |field: &str| text(field).unwrap_or_else(|| panic!("{file}: missing member {field}: {line}"));
    required("why");
    Case {
        id: required("id"),
        op: required("op"),
        input: match (text("input_hex"), value.get("input")) {
            (Some(hex), _) => hex_to_bytes(&hex),
            // Two texts to compare; only the cases of `eval` have this form.
            (None, Some(Value::Array(_))) => Vec::new(),
            (None, _) => required("input").into_bytes(),
        },
        base: text("base").unwrap_or_default(),
        profile: text("profile").unwrap_or_else(|| "rfc3987".into()),
        rung: value.get("rung").and_then(Value::as_u64).unwrap_or(3),
        opts: value.get("opts").cloned().unwrap_or_default(),
        expect: value.get("expect").unwrap_or_else(|| panic!("{file}: missing member expect: {line}")).clone(),
    }
}

fn hex_to_bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map(|c| c.to_digit(16).expect("a hexadecimal digit") as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Reads all cases of [`FILES`]; the generators mutate their inputs.
pub fn all() -> Vec<Case> {
    FILES.iter().flat_map(|(file, _)| read(file)).collect()
}

fn answer(engine: &dyn Engine, case: &Case) -> Value {
    let input = case.input.as_slice();
    let text = || std::str::from_utf8(input).unwrap_or_else(|_| panic!("{}: {} needs text as input", case.id, case.op));
    match case.op.as_str() {
        "validate_iri" => engine.validate(Kind::Iri, input).into(),
        "validate_iri_reference" => engine.validate(Kind::IriReference, input).into(),
        "validate_uri" => engine.validate(Kind::Uri, input).into(),
        "validate_uri_reference" => engine.validate(Kind::UriReference, input).into(),
        // Only the oracle implements this rule.
        "validate_absolute_iri" => grammar::is_absolute_iri(text()).into(),
        "resolve" if case.opt_bool("literal_base") == Some(true) => {
            engine.resolve(&case.base, text(), Base::Literal).into()
        }
        "resolve" => engine.resolve(&case.base, text(), Base::Normalized).into(),
        "normalize_path" => engine.remove_dot_segments(text()).into(),
        "to_uri" if case.opts.get("idn").is_some() => engine.to_uri_ascii(input, false).into(),
        "to_uri" => engine.to_uri(input, case.opt_bool("lenient") == Some(true)).into(),
        "to_iri" => engine.to_iri(text()).into(),
        "normalize" => {
            let rung = [Rung::Simple, Rung::Syntax, Rung::Scheme][case.rung as usize - 1];
            engine.normalize(input, rung, case.opt_bool("lenient") == Some(false)).into()
        }
        op => panic!("{}: unknown operation {op}", case.id),
    }
}

#[test]
fn every_engine_equals_every_case() {
    let mut failures = Vec::new();
    for engine in engines() {
        for case in all() {
            let got = answer(engine, &case);
            if got != case.expect {
                let input = String::from_utf8_lossy(&case.input);
                failures.push(format!(
                    "{} {}: input {input:?}, expected {}, found {got}",
                    engine.name(),
                    case.id,
                    case.expect
                ));
            }
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_number_of_cases_is_as_recorded() {
    let mut ids = BTreeSet::new();
    for (file, count) in FILES.into_iter().chain(OTHER_FILES).chain(EVAL_FILES) {
        let cases = read(file);
        assert_eq!(cases.len(), count, "{file}: cases were added or deleted; update the number in FILES");
        for case in cases {
            assert!(ids.insert(case.id.clone()), "{file}: two cases have the id {}", case.id);
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/cases");
    let is_cases = |name: &std::ffi::OsStr| Path::new(name).extension().is_some_and(|suffix| suffix == "jsonl");
    let entries = std::fs::read_dir(folder).expect("data/cases").flatten();
    let found = entries.filter(|entry| is_cases(&entry.file_name())).count();
    assert_eq!(found, FILES.len() + OTHER_FILES.len() + EVAL_FILES.len(), "no test reads some file of data/cases");
}
