//! All fuzz targets in one program: the environment variable `IRIKEY_FUZZ` names the target. `scripts/fuzz` runs them.
//!
//! A target is a function over bytes that panics if a property does not hold. Every target also fails if an execution
//! holds more memory than its input can justify (see [`memory`]).

#![no_main]

mod jobs;
mod memory;
mod records;
mod runs;
mod texts;
mod time;

/// Modules of the tests, so that targets and tests check the same properties.
#[path = "../../tests/core/engine.rs"]
#[allow(dead_code, reason = "shared with the tests; the targets use parts of it")]
mod engine;
#[path = "../../tests/oracle/mod.rs"]
#[allow(dead_code, reason = "shared with the tests; the targets use parts of it")]
mod oracle;
#[path = "../../tests/run/pieces.rs"]
mod pieces;
#[path = "../../tests/core/properties.rs"]
#[allow(dead_code, reason = "shared with the tests; the targets use parts of it")]
mod properties;

use libfuzzer_sys::{Corpus, fuzz_target};
use std::sync::OnceLock;

/// A property of any bytes.
type Target = fn(&[u8]) -> Corpus;

/// The name of each target and its function. `scripts/fuzz` reads the names from these lines.
const TARGETS: &[(&str, Target)] = &[
    ("normalize", texts::normalize),
    ("resolve", texts::resolve),
    ("profiles", texts::profiles),
    ("recipes", texts::recipes),
    ("charsets", texts::charsets),
    ("extract", texts::extract),
    ("eval", texts::eval),
    ("explain", texts::explain),
    ("lines", records::lines),
    ("csv", records::csv),
    ("archives", records::archives),
    ("documents", records::documents),
    ("unpack", records::unpack),
    ("members", records::members),
    ("tables", records::tables),
    ("outputs", jobs::outputs),
    ("pages", jobs::pages),
    ("dedup", jobs::dedup),
    ("keys", jobs::keys),
    ("sort", jobs::sort),
    ("time", time::grows_linearly),
];

static TARGET: OnceLock<Target> = OnceLock::new();

fn choose_target() {
    let name = std::env::var("IRIKEY_FUZZ").unwrap_or_default();
    let names = || TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let Some((_, target)) = TARGETS.iter().find(|(known, _)| *known == name) else {
        eprintln!("IRIKEY_FUZZ is {name:?}; expected one of {}", names());
        std::process::exit(2);
    };
    TARGET.get_or_init(|| *target);
    // The library catches panics of the crates that decode tables; these are no findings.
    irikey::cli::fuzzing::set_panic_hook();
}

fuzz_target!(init: choose_target(), |input: &[u8]| -> Corpus {
    let target = TARGET.get().expect("the target was chosen at the start");
    memory::check(input.len(), || target(input))
});
