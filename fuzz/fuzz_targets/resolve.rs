//! A base and a reference. In: text, cut at its first line end. Asserts for every engine that targets are IRIs, that
//! dot segments go as a stack takes them, and that it equals the oracle.

#![no_main]
#![allow(dead_code, reason = "modules shared with the tests, of which a target uses a part")]

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
        properties::dots_equal_a_stack(engine, reference).expect("dots go as a stack takes them");
        properties::agree_on_targets(&engine::Oracle, engine, base, reference).expect("the engine equals the oracle");
    }
});
