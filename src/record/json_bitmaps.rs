//! The marks of JSON in a chunk of lines, found many bytes at a time: [`JsonBitmaps`].

use crate::kernel::{Bitmaps, ByteSet, Classifier};

/// Stop bits: bytes that end the plain part of a string, or a line. Attention bits: `{`. NUL is in both sets because every
/// set of a classifier contains it.
const JSON_CLASSIFIER: Classifier = Classifier::new(ByteSet::of(b"{\0"), [0, 0], ByteSet::of(b"\"\\\n\0"), [0, 0]);

/// Positions of quotes, backslashes, line ends and opening braces in a chunk.
#[derive(Debug, Default)]
pub(super) struct JsonBitmaps(Bitmaps);

impl JsonBitmaps {
    /// Classifies `chunk`.
    pub(super) fn classify(&mut self, chunk: &[u8]) {
        self.0.classify(chunk, &JSON_CLASSIFIER);
    }

    /// The first `{` at or after `from`, unless NUL or the end comes first.
    #[inline(always)]
    pub(super) fn next_brace(&self, from: usize) -> usize {
        self.0.next_attention_near(from)
    }

    /// The first quote, backslash or `LF` at or after `from`, unless NUL or the end comes first.
    #[inline(always)]
    pub(super) fn next_stop(&self, from: usize) -> usize {
        self.0.next_stop(from)
    }

    /// The quote that ends the string whose first byte is `at`, and whether the string has a backslash. `None` if the
    /// line ends first.
    #[inline(always)]
    pub(super) fn string_end(&self, chunk: &[u8], at: usize) -> Option<(usize, bool)> {
        let end = self.next_stop(at);
        if chunk.get(end) == Some(&b'"') { Some((end, false)) } else { self.string_end_escaped(chunk, end) }
    }

    #[cold]
    fn string_end_escaped(&self, chunk: &[u8], mut at: usize) -> Option<(usize, bool)> {
        let mut has_escapes = false;
        loop {
            match chunk.get(at)? {
                b'"' => return Some((at, has_escapes)),
                b'\n' => return None,
                b'\\' if chunk.get(at + 1).is_none_or(|&byte| byte == b'\n') => return None,
                b'\\' => {
                    has_escapes = true;
                    at += 2;
                }
                _ => at += 1,
            }
            at = self.next_stop(at);
        }
    }
}
