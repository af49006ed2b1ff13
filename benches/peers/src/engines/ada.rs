//! ada-url: WHATWG parse of an absolute URL, `href` read.

use crate::engine::Engine;
use crate::input::Input;
use crate::sink::Sink;

/// Ada through its Rust crate; one allocation a URL is part of its interface.
pub struct Ada;

impl Engine for Ada {
    const NAME: &'static str = "ada";
    const PACKAGE: &'static str = "ada-url";
    const JOB: &'static str = "WHATWG parse + href";

    fn run<S: Sink>(input: &Input<'_>, sink: &mut S) {
        for line in &input.lines {
            match line.text.map(|text| ada_url::Url::parse(text, None)) {
                Some(Ok(url)) => sink.accept(url.href().as_bytes()),
                _ => sink.reject(),
            }
        }
    }
}
