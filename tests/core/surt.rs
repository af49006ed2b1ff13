//! SURT keys as cases. In: `data/cases/surt.jsonl`. Out: a failure that names every case that is missed.

use irikey::key::{Draft, Recipe};
use serde_json::Value;

use crate::cases::read;

#[test]
fn surt_cases() {
    let mut misses = Vec::new();
    let mut draft = Draft::default();
    for case in read("surt.jsonl") {
        let dialect = case.opts["dialect"].as_str().expect("a dialect");
        let recipe = Recipe::parse(&format!("{}-{dialect}", case.op)).expect("a recipe");
        let mut key = Vec::new();
        let got = match recipe.write_key(&case.input, &mut draft, &mut key) {
            Ok(_) => Value::from(String::from_utf8(key).expect("these keys are text")),
            Err(_) => Value::Null,
        };
        if got != case.expect {
            let input = String::from_utf8_lossy(&case.input);
            misses.push(format!("{}: {input:?} expect {} got {got}", case.id, case.expect));
        }
    }
    assert!(misses.is_empty(), "{} misses:\n{}", misses.len(), misses.join("\n"));
}
