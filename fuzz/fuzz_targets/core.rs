//! Fuzz target: one reference of arbitrary bytes. For each engine, the properties hold and the result equals the oracle's.

#![no_main]
#![allow(dead_code, reason = "the modules are shared with the tests; a target uses parts of them")]

#[path = "../../tests/core/engine.rs"]
mod engine;
#[path = "../../tests/oracle/mod.rs"]
mod oracle;
#[path = "../../tests/core/properties.rs"]
mod properties;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    for engine in engine::engines() {
        properties::of_one_reference(engine, input).expect("a property holds");
        properties::agree(&engine::Oracle, engine, input).expect("the engine equals the oracle");
    }
});
