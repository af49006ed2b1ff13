//! JSON, one level at a time: members of objects and elements of arrays, without allocation. In: bytes that begin with
//! `{`. Out: keys and values as slices, in order; strings unescaped on request. What is nested is passed over whole.
//! (RFC 8259; wider: strings need not be UTF-8, and numbers are whatever stands there.)

/// A value of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Between its quotes, escapes not undone.
    Text(&'a [u8]),
    /// A number, `true`, `false` or `null`.
    Bare(&'a [u8]),
    /// An object or an array, with its brackets.
    Nested(&'a [u8]),
}

/// Members of an object.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    rest: &'a [u8],
    is_first: bool,
    is_broken: bool,
}

impl<'a> Members<'a> {
    /// The members of the object that `text` begins with.
    pub fn new(text: &'a [u8]) -> Members<'a> {
        let rest = text.trim_ascii_start().strip_prefix(b"{");
        Members { rest: rest.unwrap_or_default(), is_first: true, is_broken: rest.is_none() }
    }

    /// The members of an object from behind a value on.
    pub(super) fn after(text: &'a [u8]) -> Members<'a> {
        Members { rest: text, is_first: false, is_broken: false }
    }

    /// What follows the last value given.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// What follows the `}`, once the members are through and nothing is broken.
    pub(super) fn behind(&self) -> &'a [u8] {
        unspaced(self.rest).strip_prefix(b"}").unwrap_or_default()
    }

    /// The text was no object, or ended before its `}`; known once the members are through.
    pub fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn member(&mut self) -> Option<(&'a [u8], Value<'a>)> {
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

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken || unspaced(self.rest).first() == Some(&b'}') {
            return None;
        }
        let member = self.member();
        self.is_broken = member.is_none();
        member
    }
}

/// The value at the end of a path of keys, if it is there. Of members of one name the first counts.
///
/// ```
/// use irikey::record::json::{Value, at_path};
/// let text = br#"{"a": {"b": [1], "c": "x"}}"#;
/// assert_eq!(at_path(text, &["a", "c"]), Some(Value::Text(b"x")));
/// assert_eq!(at_path(text, &["c"]), None);
/// ```
pub fn at_path<'a>(text: &'a [u8], path: &[impl AsRef<[u8]>]) -> Option<Value<'a>> {
    let (first, rest) = path.split_first()?;
    let value = match text.trim_ascii_start().first()? {
        b'[' => {
            let place: usize = std::str::from_utf8(first.as_ref()).ok()?.parse().ok()?;
            Elements::new(text).nth(place)?
        }
        _ => Members::new(text).find(|(key, _)| *key == first.as_ref())?.1,
    };
    match value {
        _ if rest.is_empty() => Some(value),
        Value::Nested(inner) => at_path(inner, rest),
        _ => None,
    }
}

/// Elements of an array.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// The elements of the array that `text` begins with; none if it is no array.
    pub fn new(text: &'a [u8]) -> Elements<'a> {
        Elements { rest: text.trim_ascii_start().strip_prefix(b"[").unwrap_or_default() }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        let text = self.rest.trim_ascii_start();
        let text = text.strip_prefix(b",").unwrap_or(text).trim_ascii_start();
        // Where an element cannot be read, nothing after it can.
        let (value, rest) = value(text).unwrap_or((Value::Bare(b""), b""));
        self.rest = rest;
        (value != Value::Bare(b"")).then_some(value)
    }
}

/// Without white space at the beginning; nearly always there is none, or one space.
#[inline]
fn unspaced(text: &[u8]) -> &[u8] {
    match text {
        [first, ..] if *first > b' ' => text,
        [b' ', second, ..] if *second > b' ' => &text[1..],
        _ => text.trim_ascii_start(),
    }
}

/// The string that `text` begins with, and what follows it.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
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

/// The first quote or backslash. Keys and most values are short: eight bytes at a time, without a call, find it sooner
/// than a search that is made for long texts.
#[inline]
fn find_mark(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    // The lowest bit set belongs to the first byte that equals `byte`; above it there may be wrong ones.
    let equal = |word: u64, byte: u8| {
        let zero = word ^ (ONES * u64::from(byte));
        zero.wrapping_sub(ONES) & !zero & (ONES << 7)
    };
    let (words, _) = text.as_chunks::<8>();
    for (i, word) in words.iter().take(3).enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = equal(word, b'"') | equal(word, b'\\');
        if found != 0 {
            return Some(i * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let at = words.len().min(3) * 8;
    memchr::memchr2(b'"', b'\\', &text[at..]).map(|more| at + more)
}

fn value(text: &[u8]) -> Option<(Value<'_>, &[u8])> {
    match text.first()? {
        b'"' => quoted(text).map(|(inner, rest)| (Value::Text(inner), rest)),
        b'{' | b'[' => {
            let len = nested_len(text)?;
            Some((Value::Nested(&text[..len]), &text[len..]))
        }
        _ => {
            let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
            let len = text.iter().position(is_end)?;
            (len > 0).then(|| (Value::Bare(&text[..len]), &text[len..]))
        }
    }
}

/// Length of the object or array that `text` begins with; brackets are counted, not matched.
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

/// Appends a string's text with its escapes undone. A lone surrogate becomes what WTF-8 has for it, which is no UTF-8
/// and stays apart from every other text; an escape that is none stays as it is.
pub fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let len = unescape_one(rest, out);
        rest = &rest[len..];
    }
    out.extend_from_slice(rest);
}

/// Undoes the escape that `text` begins with; gives its length.
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
    let Some(high) = unit(text) else {
        out.push(b'\\');
        return 1;
    };
    let low = unit(&text[6..]).filter(|low| (0xDC00..0xE000).contains(low) && (0xD800..0xDC00).contains(&high));
    let code = low.map_or(high, |low| 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00));
    match char::from_u32(code) {
        Some(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend([0xE0 | (code >> 12) as u8, 0x80 | (code >> 6) as u8 & 0x3F, 0x80 | code as u8 & 0x3F]),
    }
    if low.is_some() { 12 } else { 6 }
}

/// `\uXXXX`
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |sum, &digit| Some(sum << 4 | char::from(digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_wherever_they_stand() {
        for len in 0..40 {
            for at in 0..=len {
                for mark in [b'"', b'\\'] {
                    // Neighbours of the marks, which a careless comparison of eight bytes takes for them.
                    let mut text: Vec<u8> = (0..len).map(|i| [b'#', b'!', b']', b'[', 0xA2, 0][i % 6]).collect();
                    assert_eq!(find_mark(&text), None);
                    text.insert(at, mark);
                    text.extend(b"\"\\");
                    assert_eq!(find_mark(&text), Some(at), "{len} {at}");
                }
            }
        }
    }

    fn members(text: &str) -> (Vec<(String, Value<'_>)>, bool) {
        let mut members = Members::new(text.as_bytes());
        let list = members.by_ref().map(|(key, value)| (String::from_utf8_lossy(key).into_owned(), value)).collect();
        (list, members.is_broken())
    }

    #[test]
    fn members_in_order() {
        let text = r#" {"a": "x\"}", "b":1.5 , "c":{"d":["}",{}]},"e":[] ,"f":null}"#;
        let (list, is_broken) = members(text);
        let want = [
            ("a", Value::Text(br#"x\"}"#)),
            ("b", Value::Bare(b"1.5")),
            ("c", Value::Nested(br#"{"d":["}",{}]}"#)),
            ("e", Value::Nested(b"[]")),
            ("f", Value::Bare(b"null")),
        ];
        assert_eq!(list, want.map(|(key, value)| (key.to_string(), value)));
        assert!(!is_broken);
        assert_eq!(members("{}"), (vec![], false));
    }

    #[test]
    fn every_prefix_is_broken_and_gives_what_is_whole() {
        let text = r#"{"a":"x\\","b":[1],"c":2}"#;
        for len in 0..text.len() {
            let (list, is_broken) = members(&text[..len]);
            assert!(is_broken && list.len() < 4, "{len}");
        }
        for text in ["[]", "{a:1}", r#"{"a" 1}"#, r#"{"a":1 "b":2}"#, r#"{"a":}"#, r#"{"a":]}"#, r#"{"a":[}"#] {
            let _ = members(text);
        }
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
