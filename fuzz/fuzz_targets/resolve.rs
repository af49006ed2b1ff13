//! Fuzz target: a base and a reference, separated by a line end. For each engine, the target is an IRI, dot segments are
//! removed as a stack would remove them, and the result equals the oracle's.

#![no_main]
#![allow(dead_code, reason = "the modules are shared with the tests; a target uses parts of them")]

#[path = "../../tests/core/engine.rs"]
mod engine;
#[path = "../../tests/oracle/mod.rs"]
mod oracle;
#[path = "../../tests/core/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let (base, reference) = input.split_once('\n').unwrap_or(("http://a/b/c/d;p?q", input));
    for engine in engine::engines() {
        properties::a_target_is_an_iri(engine, base, reference).expect("a target is an IRI");
        properties::dots_equal_a_stack(engine, reference).expect("dot segments are removed as by a stack");
        properties::agree_on_targets(&engine::Oracle, engine, base, reference).expect("the engine equals the oracle");
    }
});
