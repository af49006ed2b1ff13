//! A fast reader for the members of JSON objects that one program wrote, one object per line.
//!
//! Such a program writes the same keys with the same white space in every line. The text between two values, for example
//! `", "status": "`, is a **separator**. [`JsonMembers`] parses a separator once; [`MemberCache`] keeps it with the meaning
//! of its key and the separators that followed it last. From then on, a comparison of a few words replaces parsing, and a
//! string ends at the next bit of a bitmap. Whatever does not match is parsed by [`JsonMembers`] again, so that both
//! readers always give the same members.

use super::json::{JsonMembers, JsonValue, bare_len};
use super::json_bitmaps::JsonBitmaps;
use crate::kernel::Span;

/// Longest separator that is kept, in bytes.
const SEPARATOR_LEN: usize = 32;

/// Maximum number of separators that are kept: indexes have a dozen, other objects as many as they have keys.
const MAX_SEPARATORS: usize = 128;

/// The pseudo-separator before the first member.
const START: u8 = 0;

/// The pseudo-separator in place of one that is not kept; nothing is predicted after it.
const UNKNOWN: u8 = 1;

/// What kind of value comes after a separator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextValue {
    /// A string; its opening quote belongs to the separator.
    Text,
    /// A number, a word, an object or an array.
    Other,
    /// None: the separator ends with the closing brace.
    End,
}

/// The text between two values: from the closing quote of the first, if it is a string, to the opening quote of the second.
#[derive(Clone, Copy, Debug)]
struct Separator<M> {
    /// Its bytes, padded with 0.
    words: [u64; SEPARATOR_LEN / 8],
    /// The bits of `words` that are compared.
    masks: [u64; SEPARATOR_LEN / 8],
    len: u8,
    next_value: NextValue,
    /// The meaning of its key.
    meaning: M,
    /// The separators that came after it, the last one first.
    next: [u8; 2],
}

impl<M: Copy + Default> Separator<M> {
    /// A separator that matches nothing.
    fn pseudo() -> Separator<M> {
        let words = [1; SEPARATOR_LEN / 8];
        let (next_value, next) = (NextValue::End, [UNKNOWN; 2]);
        Separator { words, masks: [0; SEPARATOR_LEN / 8], len: 0, next_value, meaning: M::default(), next }
    }

    fn new(text: &[u8], next_value: NextValue, meaning: M) -> Separator<M> {
        let (mut bytes, mut masks) = ([0; SEPARATOR_LEN], [0; SEPARATOR_LEN]);
        bytes[..text.len()].copy_from_slice(text);
        masks[..text.len()].fill(0xFF);
        Separator {
            words: words(&bytes),
            masks: words(&masks),
            len: text.len() as u8,
            next_value,
            meaning,
            next: [UNKNOWN; 2],
        }
    }

    #[inline(always)]
    fn matches(&self, bytes: &[u8; SEPARATOR_LEN]) -> bool {
        let mut differs = 0;
        for ((word, mask), want) in words(bytes).into_iter().zip(self.masks).zip(self.words) {
            differs |= word & mask ^ want;
        }
        differs == 0
    }
}

#[inline(always)]
fn words(bytes: &[u8; SEPARATOR_LEN]) -> [u64; SEPARATOR_LEN / 8] {
    let (words, _) = bytes.as_chunks::<8>();
    std::array::from_fn(|i| u64::from_le_bytes(words[i]))
}

/// The separators seen so far; a decoder keeps them from chunk to chunk. `M` is the meaning of a key.
#[derive(Debug)]
pub(super) struct MemberCache<M> {
    separators: Vec<Separator<M>>,
}

impl<M: Copy + Default> Default for MemberCache<M> {
    fn default() -> MemberCache<M> {
        MemberCache { separators: vec![Separator::pseudo(); 2] }
    }
}

impl<M: Copy + Default> MemberCache<M> {
    /// The number of the separator `text`, which is added if it is new.
    fn separator(&mut self, text: &[u8], next_value: NextValue, meaning: M) -> u8 {
        if text.len() > SEPARATOR_LEN {
            return UNKNOWN;
        }
        let separator = Separator::new(text, next_value, meaning);
        let is_same = |other: &Separator<M>| {
            (other.words, other.len, other.next_value) == (separator.words, separator.len, separator.next_value)
        };
        match self.separators.iter().position(is_same) {
            Some(place) => place as u8,
            None if self.separators.len() < MAX_SEPARATORS => {
                self.separators.push(separator);
                (self.separators.len() - 1) as u8
            }
            None => UNKNOWN,
        }
    }

    /// Notes that `separator` came after `before`.
    fn set_successor(&mut self, before: u8, separator: u8) {
        if before != UNKNOWN && separator != UNKNOWN {
            let next = &mut self.separators[usize::from(before)].next;
            *next = [separator, next[0]];
        }
    }
}

/// A member: the meaning of its key, and its value.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonMember<M> {
    /// The meaning of its key.
    pub(super) meaning: M,
    /// The kind of its value.
    pub(super) kind: JsonKind,
    /// Where the value is in the chunk; for a string, between its quotes.
    pub(super) span: Span,
    /// The value is a string with a backslash.
    pub(super) has_escapes: bool,
}

impl<M> JsonMember<M> {
    /// The position in the chunk after the value and its quote.
    #[inline(always)]
    pub(super) fn end(&self) -> usize {
        (self.span.at + self.span.len) as usize + usize::from(self.kind == JsonKind::Text)
    }
}

/// The kinds of [`JsonValue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonKind {
    Text,
    Bare,
    Nested,
}

impl JsonKind {
    /// The kind and the text of a value.
    fn split(value: JsonValue<'_>) -> (JsonKind, &[u8]) {
        match value {
            JsonValue::Text(text) => (JsonKind::Text, text),
            JsonValue::Bare(text) => (JsonKind::Bare, text),
            JsonValue::Nested(text) => (JsonKind::Nested, text),
        }
    }
}

/// Reads the members of one object.
pub(super) struct MemberReader<'a, M> {
    chunk: &'a [u8],
    json_bitmaps: &'a JsonBitmaps,
    cache: &'a mut MemberCache<M>,
    /// Where the next separator begins: at the quote that closes the last value, or after the value.
    at: usize,
    separator: u8,
    /// Where the line ends, once a member was parsed.
    line_end: Option<usize>,
    /// The last value was a string.
    is_after_text: bool,
    is_broken: bool,
}

impl<'a, M: Copy + Default> MemberReader<'a, M> {
    /// A reader of the object that begins at `at` and ends in the same line.
    #[inline(always)]
    pub(super) fn new(
        chunk: &'a [u8],
        json_bitmaps: &'a JsonBitmaps,
        cache: &'a mut MemberCache<M>,
        at: usize,
    ) -> MemberReader<'a, M> {
        MemberReader {
            chunk,
            json_bitmaps,
            cache,
            at,
            separator: START,
            line_end: None,
            is_after_text: false,
            is_broken: false,
        }
    }

    /// Whether there is no object or it has no `}`; known after the last member.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// The position after the `}`; known after the last member of an object that is not broken.
    pub(super) fn end(&self) -> usize {
        self.at
    }

    /// The next member. Must not be called again after it returned `None`.
    #[inline(always)]
    pub(super) fn next(&mut self, meaning: impl Fn(&[u8]) -> M) -> Option<JsonMember<M>> {
        let found = match self.predicted_separator() {
            Some(separator) => self.value(separator),
            None => Err(()),
        };
        match found {
            Ok(found) => found,
            Err(()) => self.parse_next(meaning),
        }
    }

    /// The separator at this position, if it is one of those that came here last.
    #[inline(always)]
    fn predicted_separator(&mut self) -> Option<u8> {
        let bytes = self.chunk.get(self.at..)?.first_chunk::<SEPARATOR_LEN>()?;
        let [last, other] = self.cache.separators[usize::from(self.separator)].next;
        if self.cache.separators[usize::from(last)].matches(bytes) {
            return Some(last);
        }
        if !self.cache.separators[usize::from(other)].matches(bytes) {
            return None;
        }
        self.cache.separators[usize::from(self.separator)].next = [other, last];
        Some(other)
    }

    /// Takes a separator and the value after it. An error means that [`JsonMembers`] has to parse the member; nothing was
    /// taken then.
    #[inline(always)]
    fn value(&mut self, separator: u8) -> Result<Option<JsonMember<M>>, ()> {
        let Separator { len, next_value, meaning, .. } = self.cache.separators[usize::from(separator)];
        let at = self.at + usize::from(len);
        let (kind, end, has_escapes) = match next_value {
            NextValue::Text => {
                let (end, has_escapes) = self.json_bitmaps.string_end(self.chunk, at).ok_or(())?;
                (JsonKind::Text, end, has_escapes)
            }
            NextValue::Other => (JsonKind::Bare, self.bare_end(at).ok_or(())?, false),
            NextValue::End => {
                self.at = at;
                return Ok(None);
            }
        };
        (self.at, self.separator, self.is_after_text) = (end, separator, kind == JsonKind::Text);
        Ok(Some(JsonMember { meaning, kind, span: Span::new(at, end - at), has_escapes }))
    }

    /// The end of the number or word that begins at `at`. `None` if it is neither, or the line ends.
    #[inline(always)]
    fn bare_end(&self, at: usize) -> Option<usize> {
        let rest = self.chunk.get(at..)?;
        if matches!(rest.first()?, b'"' | b'{' | b'[' | 0..=b' ') {
            return None;
        }
        let len = bare_len(rest)?;
        (len > 0 && rest[len] != b'\n').then_some(at + len)
    }

    /// Parses the next member, and keeps its separator.
    #[cold]
    fn parse_next(&mut self, meaning: impl Fn(&[u8]) -> M) -> Option<JsonMember<M>> {
        let (chunk, at) = (self.chunk, self.at);
        let find_line_end = || memchr::memchr(b'\n', &chunk[at..]).map_or(chunk.len(), |len| at + len);
        let line_end = *self.line_end.get_or_insert_with(find_line_end);
        let line = &self.chunk[self.at + usize::from(self.is_after_text)..line_end];
        let mut members = if self.separator == START { JsonMembers::new(line) } else { JsonMembers::after(line) };
        let member = members.next();
        self.is_broken = members.is_broken();
        if self.is_broken {
            return None;
        }
        let Some((key, value)) = member else {
            let end = line_end - members.after_object().len();
            self.keep_separator(end, NextValue::End, M::default());
            self.at = end;
            return None;
        };
        let (kind, text) = JsonKind::split(value);
        let end = line_end - members.rest().len() - usize::from(kind == JsonKind::Text);
        let at = end - text.len();
        let meaning = meaning(key);
        self.keep_separator(at, if kind == JsonKind::Text { NextValue::Text } else { NextValue::Other }, meaning);
        (self.at, self.is_after_text) = (end, kind == JsonKind::Text);
        Some(JsonMember {
            meaning,
            kind,
            span: Span::new(at, text.len()),
            has_escapes: memchr::memchr(b'\\', text).is_some(),
        })
    }

    /// Keeps the separator that ends at `to`.
    fn keep_separator(&mut self, to: usize, next_value: NextValue, meaning: M) {
        let separator = self.cache.separator(&self.chunk[self.at..to], next_value, meaning);
        self.cache.set_successor(self.separator, separator);
        self.separator = separator;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Key, kind and text of each member, and whether the object is broken.
    type ReadMembers = (Vec<(Vec<u8>, JsonKind, Vec<u8>)>, bool);

    const KEYS: [&str; 6] = ["a", "url", "status", "a key that is longer than any separator may be", "a\\\"b", ""];

    fn by_definition(line: &[u8]) -> ReadMembers {
        let mut members = JsonMembers::new(line);
        let to_owned = |(key, value): (&[u8], JsonValue<'_>)| {
            let (kind, text) = JsonKind::split(value);
            (key.to_vec(), kind, text.to_vec())
        };
        (members.by_ref().map(to_owned).collect(), members.is_broken())
    }

    /// A key of `KEYS` means its index plus 1; all others mean 0.
    fn by_reader(
        chunk: &[u8],
        at: usize,
        json_bitmaps: &JsonBitmaps,
        cache: &mut MemberCache<usize>,
    ) -> (Vec<(usize, JsonKind, Vec<u8>)>, bool) {
        let mut reader = MemberReader::new(chunk, json_bitmaps, cache, at);
        let mut list = Vec::new();
        while let Some(found) = reader.next(meaning) {
            let text = found.span.of(chunk);
            assert!(found.kind != JsonKind::Text || found.has_escapes == text.contains(&b'\\'));
            list.push((found.meaning, found.kind, text.to_vec()));
        }
        assert!(reader.is_broken() || chunk[reader.end() - 1] == b'}');
        (list, reader.is_broken())
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
        #![proptest_config(ProptestConfig { cases: 8 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

        /// One cache for all lines, as in a decoder: a separator of one line must not change the members of another.
        #[test]
        fn equals_members_line_after_line(objects in prop::collection::vec(object(), 1..12), ends_in_line in any::<bool>()) {
            let mut lines: Vec<&str> = objects.iter().flat_map(|object| [&object[..]; 2]).collect();
            lines.extend(objects.iter().map(|object| &object[..]));
            let mut chunk = lines.join("\n").into_bytes();
            chunk.extend_from_slice(if ends_in_line { b"" } else { b"\n" });
            let (mut json_bitmaps, mut cache) = (JsonBitmaps::default(), MemberCache::default());
            json_bitmaps.classify(&chunk);
            let mut at = 0;
            for line in lines {
                let (want, is_broken) = by_definition(line.as_bytes());
                let want: Vec<_> = want.into_iter().map(|(key, kind, text)| (meaning(&key), kind, text)).collect();
                prop_assert_eq!(by_reader(&chunk, at, &json_bitmaps, &mut cache), (want, is_broken), "{}", line);
                at += line.len() + 1;
            }
        }
    }

    #[test]
    fn repeated_separators_are_predicted() {
        let line = r#"{"url": "http://a/", "status": 200, "x": "\"", "digest": "Q"}"#;
        // Nothing is predicted within the last `SEPARATOR_LEN` bytes.
        let chunk = ([line; 3].join("\n") + &" ".repeat(SEPARATOR_LEN)).into_bytes();
        let (mut json_bitmaps, mut cache) = (JsonBitmaps::default(), MemberCache::default());
        json_bitmaps.classify(&chunk);
        for i in 0..3 {
            let mut reader = MemberReader::new(&chunk, &json_bitmaps, &mut cache, i * (line.len() + 1));
            let mut learned = 0;
            while reader
                .next(|key| {
                    assert_eq!(i, 0, "{key:?}");
                    meaning(key)
                })
                .is_some()
            {
                learned += 1;
            }
            assert_eq!((learned, reader.is_broken()), (4, false));
        }
    }
}
