//! What becomes of an engine's answers: stated (counts and a digest, before the clock) or timed.

use std::hint::black_box;
use xxhash_rust::xxh3::Xxh3;

/// Takes one answer a line, in the order of the lines.
pub trait Sink {
    /// The engine wrote this text for the line.
    fn accept(&mut self, text: &[u8]);
    /// The engine refused the line.
    fn reject(&mut self);
    /// The engine answered many lines at once: `texts` end to end, and apart, `None` for a line that it refused.
    fn answer<'a>(&mut self, texts: &[u8], apart: impl Iterator<Item = Option<&'a [u8]>>);
}

/// What an engine does with the job, told before it is timed.
pub struct Statement {
    /// Lines that got a text.
    pub accepted: usize,
    /// Lines that were refused.
    pub rejected: usize,
    digest: Xxh3,
}

impl Statement {
    /// Nothing answered yet.
    pub fn new() -> Statement {
        Statement { accepted: 0, rejected: 0, digest: Xxh3::new() }
    }

    /// XXH3-64 of all texts, each followed by `LF`; a refused line gives the `LF` alone.
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

/// Keeps the optimiser from leaving out work, and costs next to nothing.
#[derive(Default)]
pub struct Timed {
    /// Bytes of all texts.
    pub bytes: usize,
}

impl Sink for Timed {
    #[inline(always)]
    fn accept(&mut self, text: &[u8]) {
        self.bytes += black_box(text).len();
    }

    #[inline(always)]
    fn reject(&mut self) {}

    /// Whoever answers in columns hands on columns: to look at each line once more is no part of the job.
    #[inline(always)]
    fn answer<'a>(&mut self, texts: &[u8], _: impl Iterator<Item = Option<&'a [u8]>>) {
        self.bytes += black_box(texts).len();
    }
}
