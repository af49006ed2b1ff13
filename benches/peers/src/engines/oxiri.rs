//! oxiri: RFC 3987 validation of an IRI; its text is the input, nothing is normalised.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;

/// oxiri.
pub struct Oxiri;

impl Engine for Oxiri {
    const NAME: &'static str = "oxiri";
    const PACKAGE: &'static str = "oxiri";
    const JOB: &'static str = "RFC 3987 validate only";

    fn run<S: Sink>(input: &Input<'_>, sink: &mut S) {
        for line in &input.lines {
            match line.text.map(::oxiri::Iri::parse) {
                Some(Ok(iri)) => sink.accept(iri.as_str().as_bytes()),
                _ => sink.reject(),
            }
        }
    }
}
