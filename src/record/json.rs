//! A JSON reader for one level at a time: members of objects and elements of arrays, as slices, without allocation.
//!
//! Nested values are skipped as a whole; strings are unescaped on request. The reader accepts more than RFC 8259: strings
//! need not be UTF-8, and numbers are not checked.

use std::borrow::Cow;

use crate::encoding::push_code_point;
use crate::kernel::{marks_of_byte, parse_digits};

/// The value of a member or an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonValue<'a> {
    /// A string without its quotes, still escaped.
    Text(&'a [u8]),
    /// A number, `true`, `false` or `null`.
    Bare(&'a [u8]),
    /// An object or an array with its brackets.
    Nested(&'a [u8]),
}

impl<'a> JsonValue<'a> {
    /// The text of a string, still escaped; `None` for any other value.
    pub(super) fn text(self) -> Option<&'a [u8]> {
        if let JsonValue::Text(text) = self { Some(text) } else { None }
    }

    /// An object or an array with its brackets; `None` for any other value.
    pub(super) fn nested(self) -> Option<&'a [u8]> {
        if let JsonValue::Nested(text) = self { Some(text) } else { None }
    }
}

/// A text as a value of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonText<'a> {
    /// A string without its quotes, still escaped.
    Escaped(&'a [u8]),
    /// The digits of `{"hex": "..."}`, as this program writes bytes that are not UTF-8.
    Hex(&'a [u8]),
}

impl<'a> JsonText<'a> {
    /// The text that `value` stands for; `None` for a value of another kind.
    #[inline]
    pub(super) fn of(value: JsonValue<'a>) -> Option<JsonText<'a>> {
        match value {
            JsonValue::Text(text) => Some(JsonText::Escaped(text)),
            JsonValue::Nested(object) => digits_of_hex(object).map(JsonText::Hex),
            JsonValue::Bare(_) => None,
        }
    }

    /// Appends the text, decoded.
    #[inline]
    pub(super) fn write(self, out: &mut Vec<u8>) {
        let digit = |digit: &u8| char::from(*digit).to_digit(16).unwrap_or_default() as u8;
        match self {
            JsonText::Escaped(text) => unescape(text, out),
            JsonText::Hex(digits) => {
                out.extend(digits.as_chunks::<2>().0.iter().map(|[high, low]| digit(high) << 4 | digit(low)));
            }
        }
    }
}

/// The digits of an object with the only member `hex`.
#[cold]
fn digits_of_hex(object: &[u8]) -> Option<&[u8]> {
    let mut members = JsonMembers::new(object);
    let (b"hex", JsonValue::Text(digits)) = members.next()? else { return None };
    let is_whole = members.next().is_none() && !members.is_broken();
    let is_hex = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    (is_whole && is_hex).then_some(digits)
}

/// Appends the members of `object`, each after a comma, to a line of JSON: without those whose names are in `left_out`, and
/// nothing if it is no object.
#[cfg(feature = "pipeline")]
pub(crate) fn append_members(object: &str, left_out: &[&str], line: &mut Vec<u8>) {
    if !JsonMembers::is_object(object.as_bytes()) {
        return;
    }
    let (mut members, mut name) = (JsonMembers::new(object.as_bytes()), Vec::new());
    let mut rest = members.rest();
    while let Some((key, _)) = members.next() {
        let member = &rest[..rest.len() - members.rest().len()];
        rest = members.rest();
        name.clear();
        unescape(key, &mut name);
        if left_out.iter().all(|known| known.as_bytes() != name) {
            let key_at = memchr::memchr(b'"', member).unwrap_or(0);
            line.extend_from_slice(b", ");
            // Only a table can have an object on several lines.
            line.extend(member[key_at..].iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
        }
    }
}

/// The members of an object.
#[derive(Clone, Debug)]
pub(super) struct JsonMembers<'a> {
    rest: &'a [u8],
    is_first: bool,
    is_broken: bool,
}

impl<'a> JsonMembers<'a> {
    /// The members of the object with which `text` begins.
    pub(super) fn new(text: &'a [u8]) -> JsonMembers<'a> {
        let rest = text.trim_ascii_start().strip_prefix(b"{");
        JsonMembers { rest: rest.unwrap_or_default(), is_first: true, is_broken: rest.is_none() }
    }

    /// Whether `text` begins with an object that is not broken.
    pub(super) fn are_whole(text: &[u8]) -> bool {
        JsonMembers::find_end(text).is_some()
    }

    /// Whether `text` is an object that is not broken, and nothing else.
    pub(super) fn is_object(text: &[u8]) -> bool {
        JsonMembers::find_end(text).is_some_and(|rest| rest.trim_ascii().is_empty())
    }

    /// The text after the object with which `text` begins; `None` if that is broken.
    fn find_end(text: &[u8]) -> Option<&[u8]> {
        let mut members = JsonMembers::new(text);
        members.by_ref().for_each(drop);
        (!members.is_broken()).then(|| members.after_object())
    }

    /// The members of an object after a value.
    pub(super) fn after(text: &'a [u8]) -> JsonMembers<'a> {
        JsonMembers { rest: text, is_first: false, is_broken: false }
    }

    /// The text after the last member.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The text after the `}`; known after the last member of an object that is not broken.
    pub(super) fn after_object(&self) -> &'a [u8] {
        unspaced(self.rest).strip_prefix(b"}").unwrap_or_default()
    }

    /// Whether there is no object or it has no `}`; known after the last member.
    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn member(&mut self) -> Option<(&'a [u8], JsonValue<'a>)> {
        let text = unspaced(self.rest);
        let text = if self.is_first { text } else { unspaced(text.strip_prefix(b",")?) };
        let (key, text) = quoted(text)?;
        let text = unspaced(unspaced(text).strip_prefix(b":")?);
        let (value, rest) = value(text)?;
        self.is_first = false;
        self.rest = rest;
        Some((key, value))
    }
}

impl<'a> Iterator for JsonMembers<'a> {
    type Item = (&'a [u8], JsonValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken || unspaced(self.rest).first() == Some(&b'}') {
            return None;
        }
        let member = self.member();
        self.is_broken = member.is_none();
        member
    }
}

/// The value at the end of a path of keys and indexes, if it exists. Of several members with one name, the first is used.
pub(super) fn at_path<'a>(text: &'a [u8], path: &[impl AsRef<[u8]>]) -> Option<JsonValue<'a>> {
    let (first, rest) = path.split_first()?;
    let value = match text.trim_ascii_start().first()? {
        b'[' => JsonElements::new(text).nth(array_index(first.as_ref())?)?,
        _ => JsonMembers::new(text).find(|(key, _)| is_name(key, first.as_ref()))?.1,
    };
    if rest.is_empty() { Some(value) } else { at_path(value.nested()?, rest) }
}

/// The index of an element: digits without a leading zero (RFC 6901 section 4).
fn array_index(text: &[u8]) -> Option<usize> {
    let text = Some(text).filter(|text| *text == b"0" || !text.starts_with(b"0"))?;
    parse_digits(text, 10)?.try_into().ok()
}

/// The elements of an array.
#[derive(Clone, Debug)]
pub(super) struct JsonElements<'a> {
    rest: &'a [u8],
}

impl<'a> JsonElements<'a> {
    /// The elements of the array with which `text` begins; none if it is not an array.
    pub(super) fn new(text: &'a [u8]) -> JsonElements<'a> {
        JsonElements { rest: text.trim_ascii_start().strip_prefix(b"[").unwrap_or(&text[..0]) }
    }

    /// The elements of an array from `rest` on, the text after an element.
    pub(super) fn after(rest: &'a [u8]) -> JsonElements<'a> {
        JsonElements { rest }
    }

    /// The text after the last element.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for JsonElements<'a> {
    type Item = JsonValue<'a>;

    fn next(&mut self) -> Option<JsonValue<'a>> {
        let text = self.rest.trim_ascii_start();
        let text = text.strip_prefix(b",").unwrap_or(text).trim_ascii_start();
        // After a malformed element, nothing can be read.
        let (value, rest) = value(text).unwrap_or((JsonValue::Bare(b""), b""));
        self.rest = rest;
        (value != JsonValue::Bare(b"")).then_some(value)
    }
}

/// Removes white space at the beginning, of which there is rarely more than one space.
#[inline]
fn unspaced(text: &[u8]) -> &[u8] {
    match text {
        [first, ..] if *first > b' ' => text,
        [b' ', second, ..] if *second > b' ' => &text[1..],
        _ => text.trim_ascii_start(),
    }
}

/// The string with which `text` begins, and the text after it.
pub(crate) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let mut at = 0;
    loop {
        at += find_mark(text.get(at..)?)?;
        if text[at] == b'"' {
            return Some((&text[..at], &text[at + 1..]));
        }
        at += 2;
    }
}

/// The first quote or backslash. Keys and most values are short: an inlined loop over eight bytes at a time is faster than
/// a search for long texts.
#[inline]
fn find_mark(text: &[u8]) -> Option<usize> {
    let (words, _) = text.as_chunks::<8>();
    for (i, word) in words.iter().take(3).enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = marks_of_byte(word, b'"') | marks_of_byte(word, b'\\');
        if found != 0 {
            return Some(i * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let at = words.len().min(3) * 8;
    memchr::memchr2(b'"', b'\\', &text[at..]).map(|more| at + more)
}

fn value(text: &[u8]) -> Option<(JsonValue<'_>, &[u8])> {
    match text.first()? {
        b'"' => quoted(text).map(|(inner, rest)| (JsonValue::Text(inner), rest)),
        b'{' | b'[' => {
            let len = nested_len(text)?;
            Some((JsonValue::Nested(&text[..len]), &text[len..]))
        }
        _ => {
            let len = bare_len(text)?;
            (len > 0).then(|| (JsonValue::Bare(&text[..len]), &text[len..]))
        }
    }
}

/// The length of the number or word with which `text` begins, 0 if there is none; `None` if nothing ends it.
#[inline(always)]
pub(super) fn bare_len(text: &[u8]) -> Option<usize> {
    text.iter().position(|byte| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace())
}

/// The length of the object or array with which `text` begins; brackets are counted, not matched.
fn nested_len(text: &[u8]) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => at = text.len() - quoted(&text[at..])?.1.len() - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Whether `key`, the still escaped name of a member, is `name`.
#[inline]
pub(super) fn is_name(key: &[u8], name: &[u8]) -> bool {
    // Every escape is longer than its character.
    (key == name || key.len() > name.len()) && *unescaped(key) == *name
}

/// The text of a string, without escapes; it is borrowed if the string has no escapes.
pub(crate) fn unescaped(string: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\\', string).is_none() {
        return Cow::Borrowed(string);
    }
    let mut text = Vec::new();
    unescape(string, &mut text);
    Cow::Owned(text)
}

/// Appends a string unescaped. A lone surrogate becomes its three bytes of WTF-8, which are not UTF-8 and differ from every
/// other text; an invalid escape stays as it is.
pub(crate) fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let len = unescape_one(rest, out);
        rest = &rest[len..];
    }
    out.extend_from_slice(rest);
}

/// Appends the character of the escape with which `text` begins; returns the length of the escape.
fn unescape_one(text: &[u8], out: &mut Vec<u8>) -> usize {
    let byte = match text.get(1) {
        Some(b'"' | b'\\' | b'/') => text[1],
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'u') => return unescape_unit(text, out),
        _ => {
            out.push(b'\\');
            return 1;
        }
    };
    out.push(byte);
    2
}

fn unescape_unit(text: &[u8], out: &mut Vec<u8>) -> usize {
    let Some((code, len)) = code_point(text) else {
        out.push(b'\\');
        return 1;
    };
    push_code_point(code, out);
    len
}

/// The code point of the escape `\u` with which `text` begins, and the length of the escape, or of both for a pair of
/// surrogates.
fn code_point(text: &[u8]) -> Option<(u32, usize)> {
    let high = unit(text)?;
    let low = unit(&text[6..]).filter(|low| (0xDC00..0xE000).contains(low) && (0xD800..0xDC00).contains(&high));
    Some(low.map_or((high, 6), |low| (0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00), 12)))
}

/// The position of the first escape of a lone surrogate in a string.
pub(crate) fn find_lone_surrogate(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr(b'\\', &text[at..])?;
        match code_point(&text[at..]) {
            Some((0xD800..0xE000, _)) => return Some(at),
            Some((_, len)) => at += len,
            // The character after the backslash may be a backslash.
            None => at = text.len().min(at + 2),
        }
    }
}

/// `\uXXXX`
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |sum, &digit| Some(sum << 4 | char::from(digit).to_digit(16)?))
}

/// Whether a text begins a JSON Feed: its `version` is an address of jsonfeed.org.
pub(crate) fn is_json_feed(head: &[u8]) -> bool {
    let version = memchr::memmem::find(head, b"jsonfeed.org").map_or(&[][..], |at| &head[at + 12..]);
    let is_version = [&b"/version"[..], b"\\/version"].iter().any(|path| version.starts_with(path));
    head.trim_ascii_start().starts_with(b"{") && is_version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_at_every_position() {
        for len in 0..40 {
            for at in 0..=len {
                for mark in [b'"', b'\\'] {
                    // Neighbors of the marks, which a wrong comparison of eight bytes takes for them.
                    let mut text: Vec<u8> = (0..len).map(|i| [b'#', b'!', b']', b'[', 0xA2, 0][i % 6]).collect();
                    assert_eq!(find_mark(&text), None);
                    text.insert(at, mark);
                    text.extend(b"\"\\");
                    assert_eq!(find_mark(&text), Some(at), "{len} {at}");
                }
            }
        }
    }

    fn members(text: &str) -> (Vec<(String, JsonValue<'_>)>, bool) {
        let mut members = JsonMembers::new(text.as_bytes());
        let list = members.by_ref().map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), value)).collect();
        (list, members.is_broken())
    }

    #[test]
    fn members_in_order() {
        let text = r#" {"a": "x\"}", "b":1.5 , "c":{"d":["}",{}]},"e":[] ,"f":null}"#;
        let (list, is_broken) = members(text);
        let want = [
            ("a", JsonValue::Text(br#"x\"}"#)),
            ("b", JsonValue::Bare(b"1.5")),
            ("c", JsonValue::Nested(br#"{"d":["}",{}]}"#)),
            ("e", JsonValue::Nested(b"[]")),
            ("f", JsonValue::Bare(b"null")),
        ];
        assert_eq!(list, want.map(|(key, value)| (key.to_string(), value)));
        assert!(!is_broken);
        assert_eq!(members("{}"), (vec![], false));
    }

    #[test]
    fn every_prefix_is_broken_and_gives_its_whole_members() {
        let text = r#"{"a":"x\\","b":[1],"c":2}"#;
        for len in 0..text.len() {
            let (list, is_broken) = members(&text[..len]);
            assert!(is_broken && list.len() < 4, "{len}");
        }
        for text in ["[]", "{a:1}", r#"{"a" 1}"#, r#"{"a":1 "b":2}"#, r#"{"a":}"#, r#"{"a":]}"#, r#"{"a":[}"#] {
            assert!(members(text).1, "{text}");
        }
    }

    #[test]
    fn texts_are_strings_or_bytes_in_hexadecimal() {
        let text = |value: &str| {
            let line = format!("{{\"a\":{value}}}");
            let mut out = Vec::new();
            JsonText::of(at_path(line.as_bytes(), &["a"])?)?.write(&mut out);
            Some(out)
        };
        let cases = [("\"x\\n\"", &b"x\n"[..]), ("{\"hex\":\"\"}", b""), ("{ \"hex\" : \"fF00\" }", b"\xFF\0")];
        for (value, expected) in cases {
            assert_eq!(text(value).as_deref(), Some(expected), "{value}");
        }
        for value in [
            "1",
            "null",
            "[]",
            "{}",
            "{\"hex\":\"f\"}",
            "{\"hex\":\"fg\"}",
            "{\"hex\":\"ff\",\"x\":1}",
            "{\"x\":\"ff\"}",
        ] {
            assert_eq!(text(value), None, "{value}");
        }
    }

    #[test]
    fn values_at_paths() {
        let text = br#"{"a": {"b": [1], "c": "x"}}"#;
        assert_eq!(at_path(text, &["a", "c"]), Some(JsonValue::Text(b"x")));
        assert_eq!(at_path(text, &["c"]), None);
        assert_eq!(at_path(b"[1, 2]", &["1"]), Some(JsonValue::Bare(b"2")));
        for index in ["+1", "01", "00", "-0", "", "-", "2", "18446744073709551617"] {
            assert_eq!(at_path(b"[1, 2]", &[index]), None, "{index}");
        }
        let text = br#"{"\u00e9": 1, "\u00e9t\u00e9": {"a\/b": "x"}, "\n": 2}"#;
        assert_eq!(at_path(text, &["été", "a/b"]), Some(JsonValue::Text(b"x")));
        assert_eq!(at_path(text, &["\n"]), Some(JsonValue::Bare(b"2")));
        assert_eq!(at_path(text, &["\\n"]), None);
    }

    #[test]
    fn escapes() {
        let cases: [(&[u8], &[u8]); 7] = [
            (br#"a\/b\"c\\d"#, b"a/b\"c\\d"),
            (br"\u00fc\u4E2D", "ü中".as_bytes()),
            (br"\ud83d\ude00", "😀".as_bytes()),
            (br"\ud83dx", b"\xED\xA0\xBDx"),
            (br"\u12", br"\u12"),
            (br"\x\", br"\x\"),
            (br"\n\t", b"\n\t"),
        ];
        for (text, want) in cases {
            let mut out = Vec::new();
            unescape(text, &mut out);
            assert_eq!(out, want);
        }
    }
}
