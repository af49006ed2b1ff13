//! Tests of the modules without input and output: the cases of `data/cases` and properties over generated references.
//!
//! Every case and every property runs on each engine that `core/engine.rs` lists. The engine `oracle` is a literal
//! transcription of the RFCs; the engines of the library must give the same results.

mod oracle;

#[path = "core/bidi.rs"]
mod bidi;
#[path = "core/cases.rs"]
mod cases;
#[path = "core/crawl_files.rs"]
mod crawl_files;
#[path = "core/engine.rs"]
mod engine;
#[path = "core/generated.rs"]
mod generated;
#[path = "core/generators.rs"]
mod generators;
#[path = "core/golden.rs"]
mod golden;
#[cfg(feature = "pipeline")]
#[path = "core/idna.rs"]
mod idna;
#[path = "core/intake.rs"]
mod intake;
#[path = "core/learn.rs"]
mod learn;
#[path = "core/linear_time.rs"]
mod linear_time;
#[path = "core/mutated.rs"]
mod mutated;
#[path = "core/properties.rs"]
mod properties;
#[path = "core/readers.rs"]
mod readers;
#[path = "core/source.rs"]
mod source;
#[path = "core/structure.rs"]
mod structure;
#[path = "core/surt.rs"]
mod surt;
#[path = "core/total.rs"]
mod total;
