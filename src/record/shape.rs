//! Members of JSON objects that one program wrote, one a line. In: a chunk, its [`Marks`], where an object begins. Out:
//! the members that [`Members`] gives, in order, by what their keys mean to the caller.
//!
//! Such a program writes the same keys with the same spaces over and over. What stands between two values, say
//! `", "status": "`, is a **step**; it is read by [`Members`] once and kept in a [`Shape`], with what its key means and
//! which steps followed it last. From then on one comparison of a few words takes the place of reading it, and a string
//! ends at the next mark. Whatever does not match is read by [`Members`] again, so that the two never differ.

use super::Span;
use super::json::{Members, Value};
use crate::kernel::{Bitmaps, ByteSet, Classifier};

/// Stop: what ends the plain part of a string, or a line. Attention: what begins an object. NUL is in both because a
/// classifier's sets have it.
const MARKS: Classifier = Classifier::new(ByteSet::of(b"{\0"), [0, 0], ByteSet::of(b"\"\\\n\0"), [0, 0]);

/// Bytes of the longest step that is kept.
const STEP_LEN: usize = 32;

/// Most steps that are kept: indexes have a dozen, other objects as many as they have keys.
const MOST_STEPS: usize = 128;

/// Pseudo-step before the first member.
const START: u8 = 0;

/// Pseudo-step after one that is not kept; nothing is guessed after it.
const UNKNOWN: u8 = 1;

/// Where a chunk has quotes, backslashes, line ends and opening braces.
#[derive(Debug, Default)]
pub(super) struct Marks(Bitmaps);

impl Marks {
    /// Describes `chunk` from now on.
    pub(super) fn classify(&mut self, chunk: &[u8]) {
        self.0.classify(chunk, &MARKS);
    }

    /// First `{` at or after `from`, if not NUL or the end.
    #[inline(always)]
    pub(super) fn next_brace(&self, from: usize) -> usize {
        self.0.next_attention_near(from)
    }

    /// First quote, backslash or `LF` at or after `from`, if not NUL or the end.
    #[inline(always)]
    pub(super) fn next_stop(&self, from: usize) -> usize {
        self.0.next_stop(from)
    }

    /// The quote that ends the string of which byte `at` is the first, and whether a backslash stands before it. `None`
    /// if the line ends first.
    #[inline(always)]
    fn string_end(&self, chunk: &[u8], at: usize) -> Option<(usize, bool)> {
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

/// What comes after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Follows {
    /// A string, of which the step has the first quote.
    Text,
    /// A number, a word, an object or an array.
    Other,
    /// Nothing: the step has the closing brace.
    End,
}

/// What stands between two values: the closing quote of the first, if it is a string, to the opening one of the second.
#[derive(Clone, Copy, Debug)]
struct Step<M> {
    /// Its bytes, and 0 behind them.
    words: [u64; STEP_LEN / 8],
    /// All bits of its bytes.
    masks: [u64; STEP_LEN / 8],
    len: u8,
    follows: Follows,
    /// Of its key.
    meaning: M,
    /// Steps that came after it, the last one first.
    next: [u8; 2],
}

impl<M: Copy + Default> Step<M> {
    /// One that nothing matches.
    fn pseudo() -> Step<M> {
        let words = [1; STEP_LEN / 8];
        let (follows, next) = (Follows::End, [UNKNOWN; 2]);
        Step { words, masks: [0; STEP_LEN / 8], len: 0, follows, meaning: M::default(), next }
    }

    fn new(text: &[u8], follows: Follows, meaning: M) -> Step<M> {
        let (mut bytes, mut masks) = ([0; STEP_LEN], [0; STEP_LEN]);
        bytes[..text.len()].copy_from_slice(text);
        masks[..text.len()].fill(0xFF);
        Step { words: words(&bytes), masks: words(&masks), len: text.len() as u8, follows, meaning, next: [UNKNOWN; 2] }
    }

    #[inline(always)]
    fn matches(&self, bytes: &[u8; STEP_LEN]) -> bool {
        let mut differs = 0;
        for ((word, mask), want) in words(bytes).into_iter().zip(self.masks).zip(self.words) {
            differs |= word & mask ^ want;
        }
        differs == 0
    }
}

#[inline(always)]
fn words(bytes: &[u8; STEP_LEN]) -> [u64; STEP_LEN / 8] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// Steps seen so far; a decoder keeps them. `M` is what a key means.
#[derive(Debug)]
pub(super) struct Shape<M> {
    steps: Vec<Step<M>>,
}

impl<M: Copy + Default> Default for Shape<M> {
    fn default() -> Shape<M> {
        Shape { steps: vec![Step::pseudo(); 2] }
    }
}

impl<M: Copy + Default> Shape<M> {
    /// Which step `text` is, a new one if need be.
    fn step(&mut self, text: &[u8], follows: Follows, meaning: M) -> u8 {
        if text.len() > STEP_LEN {
            return UNKNOWN;
        }
        let step = Step::new(text, follows, meaning);
        let is_same = |other: &Step<M>| (other.words, other.len, other.follows) == (step.words, step.len, step.follows);
        match self.steps.iter().position(is_same) {
            Some(place) => place as u8,
            None if self.steps.len() < MOST_STEPS => {
                self.steps.push(step);
                (self.steps.len() - 1) as u8
            }
            None => UNKNOWN,
        }
    }

    /// After step `before` came `step`.
    fn follow(&mut self, before: u8, step: u8) {
        if before != UNKNOWN && step != UNKNOWN {
            let next = &mut self.steps[usize::from(before)].next;
            *next = [step, next[0]];
        }
    }
}

/// A member: what its key means, and its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<M> {
    /// Of its key.
    pub(super) meaning: M,
    /// What it is.
    pub(super) kind: Kind,
    /// Where it stands in the chunk; strings between their quotes.
    pub(super) span: Span,
    /// It is a string with a backslash.
    pub(super) has_escapes: bool,
}

/// As [`Value`] tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Bare,
    Nested,
}

/// The members of one object.
pub(super) struct Walk<'a, M> {
    chunk: &'a [u8],
    marks: &'a Marks,
    shape: &'a mut Shape<M>,
    /// Where the next step begins: at the quote that closes the last value, or behind it.
    at: usize,
    step: u8,
    /// The last value was a string.
    is_after_text: bool,
    is_broken: bool,
}

impl<'a, M: Copy + Default> Walk<'a, M> {
    /// The members of the object that begins at `at` and ends in the same line.
    #[inline(always)]
    pub(super) fn new(chunk: &'a [u8], marks: &'a Marks, shape: &'a mut Shape<M>, at: usize) -> Walk<'a, M> {
        Walk { chunk, marks, shape, at, step: START, is_after_text: false, is_broken: false }
    }

    /// No object began there, or it ended before its `}`; known once the members are through.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Behind the `}`, once the members of an object that is not broken are through.
    pub(super) fn end(&self) -> usize {
        self.at
    }

    /// The next member; not to be called again once there was none.
    #[inline(always)]
    pub(super) fn next(&mut self, meaning: impl Fn(&[u8]) -> M) -> Option<Found<M>> {
        let found = match self.known_step() {
            Some(step) => self.value(step),
            None => Err(()),
        };
        match found {
            Ok(found) => found,
            Err(()) => self.learn(meaning),
        }
    }

    /// The step that stands here, if it is one of those that came here last.
    #[inline(always)]
    fn known_step(&mut self) -> Option<u8> {
        let bytes = self.chunk.get(self.at..)?.first_chunk::<STEP_LEN>()?;
        let [last, other] = self.shape.steps[usize::from(self.step)].next;
        if self.shape.steps[usize::from(last)].matches(bytes) {
            return Some(last);
        }
        if !self.shape.steps[usize::from(other)].matches(bytes) {
            return None;
        }
        self.shape.steps[usize::from(self.step)].next = [other, last];
        Some(other)
    }

    /// Takes a step and the value behind it. An error where [`Members`] has to look: nothing was taken then.
    #[inline(always)]
    fn value(&mut self, step: u8) -> Result<Option<Found<M>>, ()> {
        let Step { len, follows, meaning, .. } = self.shape.steps[usize::from(step)];
        let at = self.at + usize::from(len);
        let (kind, end, has_escapes) = match follows {
            Follows::Text => {
                let (end, has_escapes) = self.marks.string_end(self.chunk, at).ok_or(())?;
                (Kind::Text, end, has_escapes)
            }
            Follows::Other => (Kind::Bare, self.bare_end(at).ok_or(())?, false),
            Follows::End => {
                self.at = at;
                return Ok(None);
            }
        };
        (self.at, self.step, self.is_after_text) = (end, step, kind == Kind::Text);
        Ok(Some(Found { meaning, kind, span: span(at, end), has_escapes }))
    }

    /// Where the number or word that begins at `at` ends. `None` if it is neither, or the line ends.
    #[inline(always)]
    fn bare_end(&self, at: usize) -> Option<usize> {
        let rest = self.chunk.get(at..)?;
        if matches!(rest.first()?, b'"' | b'{' | b'[' | 0..=b' ') {
            return None;
        }
        let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
        let len = rest.iter().position(is_end)?;
        (len > 0 && rest[len] != b'\n').then_some(at + len)
    }

    /// Reads the next member in full, and keeps its step.
    #[cold]
    fn learn(&mut self, meaning: impl Fn(&[u8]) -> M) -> Option<Found<M>> {
        let line_end = memchr::memchr(b'\n', &self.chunk[self.at..]).map_or(self.chunk.len(), |len| self.at + len);
        let line = &self.chunk[self.at + usize::from(self.is_after_text)..line_end];
        let mut members = if self.step == START { Members::new(line) } else { Members::after(line) };
        let member = members.next();
        self.is_broken = members.is_broken();
        if self.is_broken {
            return None;
        }
        let Some((key, value)) = member else {
            let end = line_end - members.behind().len();
            self.keep(end, Follows::End, M::default());
            self.at = end;
            return None;
        };
        let (kind, text) = match value {
            Value::Text(text) => (Kind::Text, text),
            Value::Bare(text) => (Kind::Bare, text),
            Value::Nested(text) => (Kind::Nested, text),
        };
        let end = line_end - members.rest().len() - usize::from(kind == Kind::Text);
        let at = end - text.len();
        let meaning = meaning(key);
        self.keep(at, if kind == Kind::Text { Follows::Text } else { Follows::Other }, meaning);
        (self.at, self.is_after_text) = (end, kind == Kind::Text);
        Some(Found { meaning, kind, span: span(at, end), has_escapes: memchr::memchr(b'\\', text).is_some() })
    }

    /// Keeps the step that ends at `to`.
    fn keep(&mut self, to: usize, follows: Follows, meaning: M) {
        let step = self.shape.step(&self.chunk[self.at..to], follows, meaning);
        self.shape.follow(self.step, step);
        self.step = step;
    }
}

fn span(at: usize, end: usize) -> Span {
    Span { at: at as u32, len: (end - at) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Key, kind and text of each member, and whether the object is broken.
    type Told = (Vec<(Vec<u8>, Kind, Vec<u8>)>, bool);

    const KEYS: [&str; 6] = ["a", "url", "status", "a key that is longer than any step may be", "a\\\"b", ""];

    fn of_members(line: &[u8]) -> Told {
        let mut members = Members::new(line);
        let tell = |(key, value): (&[u8], Value<'_>)| {
            let (kind, text) = match value {
                Value::Text(text) => (Kind::Text, text),
                Value::Bare(text) => (Kind::Bare, text),
                Value::Nested(text) => (Kind::Nested, text),
            };
            (key.to_vec(), kind, text.to_vec())
        };
        (members.by_ref().map(tell).collect(), members.is_broken())
    }

    /// Keys mean their places in `KEYS`, less one; all others mean 0.
    fn of_walk(
        chunk: &[u8],
        at: usize,
        marks: &Marks,
        shape: &mut Shape<usize>,
    ) -> (Vec<(usize, Kind, Vec<u8>)>, bool) {
        let mut walk = Walk::new(chunk, marks, shape, at);
        let mut list = Vec::new();
        while let Some(found) = walk.next(meaning) {
            let text = found.span.of(chunk);
            assert!(found.kind != Kind::Text || found.has_escapes == text.contains(&b'\\'));
            list.push((found.meaning, found.kind, text.to_vec()));
        }
        assert!(walk.is_broken() || chunk[walk.end() - 1] == b'}');
        (list, walk.is_broken())
    }

    fn meaning(key: &[u8]) -> usize {
        KEYS.iter().position(|name| name.as_bytes() == key).map_or(0, |place| place + 1)
    }

    fn member() -> impl Strategy<Value = String> {
        let key = prop::sample::select(&KEYS[..]);
        let value = "\"([a-z]{0,3}|\\\\\"|\\\\\\\\|\\\\u0041|[a-z ]{60,140}|\u{0}|\\{)\"|[0-9]{1,3}|-?[0-9]|null|\\[1,\\{\"b\":2\\}\\]|\\{\\}|\\[\\]\\{?|\"";
        (key, "( |\t)?", "( )?", value)
            .prop_map(|(key, before, after, value)| format!("\"{key}\"{before}:{after}{value}"))
    }

    fn object() -> impl Strategy<Value = String> {
        let members = prop::collection::vec(member(), 0..6);
        let ends = prop::sample::select(&["}", "}", "}", " }", "", ",}", "}x", "\\", "\"", "]"][..]);
        (
            members,
            prop::sample::select(&["{", "{", "{ ", " {", "["][..]),
            prop::sample::select(&[", ", ",", " , ", ""][..]),
            ends,
        )
            .prop_map(|(members, begin, comma, end)| format!("{begin}{}{end}", members.join(comma)))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

        /// The same shape for all lines, as a decoder has it: what one line taught must not mislead in another.
        #[test]
        fn equals_members_line_after_line(objects in prop::collection::vec(object(), 1..12), ends_in_line in any::<bool>()) {
            let mut lines: Vec<&str> = objects.iter().flat_map(|object| [&object[..]; 2]).collect();
            lines.extend(objects.iter().map(|object| &object[..]));
            let mut chunk = lines.join("\n").into_bytes();
            chunk.extend_from_slice(if ends_in_line { b"" } else { b"\n" });
            let (mut marks, mut shape) = (Marks::default(), Shape::default());
            marks.classify(&chunk);
            let mut at = 0;
            for line in lines {
                let (want, is_broken) = of_members(line.as_bytes());
                let want: Vec<_> = want.into_iter().map(|(key, kind, text)| (meaning(&key), kind, text)).collect();
                prop_assert_eq!(of_walk(&chunk, at, &marks, &mut shape), (want, is_broken), "{}", line);
                at += line.len() + 1;
            }
        }
    }

    #[test]
    fn what_repeats_is_known() {
        let line = r#"{"url": "http://a/", "status": 200, "x": "\"", "digest": "Q"}"#;
        // Nothing is guessed where less than a step is left.
        let chunk = ([line; 3].join("\n") + &" ".repeat(STEP_LEN)).into_bytes();
        let (mut marks, mut shape) = (Marks::default(), Shape::default());
        marks.classify(&chunk);
        for i in 0..3 {
            let mut walk = Walk::new(&chunk, &marks, &mut shape, i * (line.len() + 1));
            let mut learned = 0;
            while walk
                .next(|key| {
                    assert_eq!(i, 0, "{key:?}");
                    meaning(key)
                })
                .is_some()
            {
                learned += 1;
            }
            assert_eq!((learned, walk.is_broken()), (4, false));
        }
    }
}
