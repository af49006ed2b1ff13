//! ada-url: parses an absolute URL by the WHATWG standard and returns its `href`.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;

/// Ada through its Rust crate, whose interface allocates once per URL.
#[derive(Default)]
pub struct Ada;

impl Engine for Ada {
    const NAME: &'static str = "ada";
    const PACKAGE: &'static str = "ada-url";
    const JOB: &'static str = "WHATWG parse + href";

    fn run<S: Sink>(&mut self, input: &Input<'_>, sink: &mut S) {
        for line in &input.lines {
            match line.text.map(|text| ada_url::Url::parse(text, None)) {
                Some(Ok(url)) => sink.accept(url.href().as_bytes()),
                _ => sink.reject(),
            }
        }
    }
}
