//! Keys of recipes as cases. In: `data/cases/surt.jsonl` and `recipes.jsonl`. Out: a failure that names every case that is missed.

use irikey::key::{Draft, Recipe};
use serde_json::Value;

use crate::cases::read;

#[test]
fn every_recipe_gives_the_keys_of_its_cases() {
    let mut misses = Vec::new();
    let mut draft = Draft::default();
    for case in read("surt.jsonl").into_iter().chain(read("recipes.jsonl")) {
        let name = match case.opts["dialect"].as_str() {
            Some(dialect) => format!("{}-{dialect}", case.op),
            None => case.opts["recipe"].as_str().expect("a dialect or a recipe").to_string(),
        };
        let recipe = Recipe::parse(&name).expect("a recipe");
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
