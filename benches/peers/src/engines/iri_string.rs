//! iri-string: parses an IRI by RFC 3987, then calls `normalize` and writes a new string.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;
use ::iri_string::format::ToDedicatedString;
use ::iri_string::types::IriStr;

/// iri-string, which rejects what the grammar refuses; it has no lenient mode.
#[derive(Default)]
pub struct IriString;

impl Engine for IriString {
    const NAME: &'static str = "iri_string";
    const PACKAGE: &'static str = "iri-string";
    const JOB: &'static str = "RFC 3987 parse + normalize, IRI out";

    fn run<S: Sink>(&mut self, input: &Input<'_>, sink: &mut S) {
        for line in &input.lines {
            match line.text.map(IriStr::new) {
                Some(Ok(iri)) => sink.accept(iri.normalize().to_dedicated_string().as_str().as_bytes()),
                _ => sink.reject(),
            }
        }
    }
}
