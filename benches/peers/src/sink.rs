//! Receivers of an engine's results: counts and a digest before the clock starts, almost nothing while it runs.

use std::hint::black_box;
use xxhash_rust::xxh3::Xxh3;

/// Takes one result per line, in the order of the lines.
pub trait Sink {
    /// The engine accepted the line and wrote this text.
    fn accept(&mut self, text: &[u8]);
    /// The engine rejected the line.
    fn reject(&mut self);
    /// The engine returns many lines at once: `texts` concatenated, and the same one by one, `None` for a rejected line.
    fn answer<'a>(&mut self, texts: &[u8], apart: impl Iterator<Item = Option<&'a [u8]>>);
}

/// What an engine did with the lines, before it is timed.
pub struct Statement {
    /// Accepted lines.
    pub accepted: usize,
    /// Rejected lines.
    pub rejected: usize,
    digest: Xxh3,
}

impl Statement {
    /// A statement without lines.
    pub fn new() -> Statement {
        Statement { accepted: 0, rejected: 0, digest: Xxh3::new() }
    }

    /// XXH3-64 of all texts, each followed by `LF`; a rejected line is an `LF` only.
    pub fn digest(&self) -> u64 {
        self.digest.digest()
    }
}

impl Sink for Statement {
    fn accept(&mut self, text: &[u8]) {
        self.accepted += 1;
        self.digest.update(text);
        self.digest.update(b"\n");
    }

    fn reject(&mut self) {
        self.rejected += 1;
        self.digest.update(b"\n");
    }

    fn answer<'a>(&mut self, _: &[u8], apart: impl Iterator<Item = Option<&'a [u8]>>) {
        apart.for_each(|text| match text {
            Some(text) => self.accept(text),
            None => self.reject(),
        });
    }
}

/// Keeps the optimizer from removing work; costs almost nothing.
#[derive(Default)]
pub struct Timed {
    /// Length of all texts in bytes.
    pub bytes: usize,
}

impl Sink for Timed {
    #[inline(always)]
    fn accept(&mut self, text: &[u8]) {
        self.bytes += black_box(text).len();
    }

    #[inline(always)]
    fn reject(&mut self) {}

    /// Columns are passed on as they are; reading each line again is not part of the job.
    #[inline(always)]
    fn answer<'a>(&mut self, texts: &[u8], _: impl Iterator<Item = Option<&'a [u8]>>) {
        self.bytes += black_box(texts).len();
    }
}
