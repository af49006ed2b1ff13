//! One reference. In: any bytes. Asserts for every engine that the properties hold and that it equals the oracle.

#![no_main]
#![allow(dead_code, reason = "modules shared with the tests, of which a target uses a part")]

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
