//! oxiri: validates an IRI by RFC 3987 without normalizing it; the text is the input.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;

/// oxiri, which only validates.
#[derive(Default)]
pub struct Oxiri;

impl Engine for Oxiri {
    const NAME: &'static str = "oxiri";
    const PACKAGE: &'static str = "oxiri";
    const JOB: &'static str = "RFC 3987 validate only";

    fn run<S: Sink>(&mut self, input: &Input<'_>, sink: &mut S) {
        for line in &input.lines {
            match line.text.map(::oxiri::Iri::parse) {
                Some(Ok(iri)) => sink.accept(iri.as_str().as_bytes()),
                _ => sink.reject(),
            }
        }
    }
}
