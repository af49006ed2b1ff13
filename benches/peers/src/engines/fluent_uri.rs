//! fluent-uri: parses an IRI by RFC 3987, then calls `normalize`, which allocates a new one.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;

/// fluent-uri, which rejects what the grammar refuses; it has no lenient mode.
#[derive(Default)]
pub struct FluentUri;

impl Engine for FluentUri {
    const NAME: &'static str = "fluent_uri";
    const PACKAGE: &'static str = "fluent-uri";
    const JOB: &'static str = "RFC 3987 parse + normalize, IRI out";

    fn run<S: Sink>(&mut self, input: &Input<'_>, sink: &mut S) {
        for line in &input.lines {
            match line.text.map(::fluent_uri::Iri::parse) {
                Some(Ok(iri)) => sink.accept(iri.normalize().as_str().as_bytes()),
                _ => sink.reject(),
            }
        }
    }
}
