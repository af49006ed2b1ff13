//! The url crate: parses an absolute URL by the WHATWG standard and returns `as_str`.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;

/// The url crate.
#[derive(Default)]
pub struct Url;

impl Engine for Url {
    const NAME: &'static str = "url";
    const PACKAGE: &'static str = "url";
    const JOB: &'static str = "WHATWG parse + as_str";

    fn run<S: Sink>(&mut self, input: &Input<'_>, sink: &mut S) {
        for line in &input.lines {
            match line.text.map(::url::Url::parse) {
                Some(Ok(url)) => sink.accept(url.as_str().as_bytes()),
                _ => sink.reject(),
            }
        }
    }
}
