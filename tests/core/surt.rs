//! Runs the cases of `data/cases/surt.jsonl` and `recipes.jsonl`: the keys of the recipes. Reports every failure.

use irikey::key::{Draft, Recipe};
use serde_json::Value;

use crate::cases::read;

#[test]
fn keys_of_recipes_equal_the_cases() {
    let mut failures = Vec::new();
    let mut draft = Draft::default();
    for case in read("surt.jsonl").into_iter().chain(read("recipes.jsonl")) {
        let name = match case.opts["dialect"].as_str() {
            Some(dialect) => format!("{}-{dialect}", case.op),
            None => case.opts["recipe"].as_str().expect("the case names a dialect or a recipe").to_string(),
        };
        let recipe = Recipe::parse(&name).expect("the name of a recipe");
        let mut key = Vec::new();
        let got = match recipe.write_key(&case.input, &mut draft, &mut key) {
            Ok(_) => Value::from(String::from_utf8(key).expect("these keys are text")),
            Err(_) => Value::Null,
        };
        if got != case.expect {
            let input = String::from_utf8_lossy(&case.input);
            failures.push(format!("{}: input {input:?}, expected {}, found {got}", case.id, case.expect));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
