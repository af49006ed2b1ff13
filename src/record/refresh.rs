//! Refreshes of pages, in header fields and in `meta` elements (HTML Standard, "shared declarative refresh steps").

use std::ops::Range;

/// The place of the target in a refresh such as `5; url='next.html'`; `None` if it has none, or is malformed.
pub(crate) fn refresh_target(value: &[u8]) -> Option<Range<usize>> {
    let mut at = find(value, 0, |byte| !byte.is_ascii_whitespace());
    let digits = find(value, at, |byte| !byte.is_ascii_digit());
    if digits == at && value.get(at) != Some(&b'.') {
        return None;
    }
    at = find(value, digits, |byte| !byte.is_ascii_digit() && byte != b'.');
    if at < value.len() && !value[at].is_ascii_whitespace() && !b";,".contains(&value[at]) {
        return None;
    }
    at = find(value, at, |byte| !byte.is_ascii_whitespace());
    if value.get(at).is_some_and(|byte| b";,".contains(byte)) {
        at = find(value, at + 1, |byte| !byte.is_ascii_whitespace());
    }
    if at == value.len() {
        return None;
    }
    let at = name_end(value, at).unwrap_or(at);
    match value.get(at) {
        Some(quote @ (b'"' | b'\'')) => Some(trimmed(value, at + 1..find(value, at + 1, |byte| byte == *quote))),
        _ => Some(trimmed(value, at..value.len())),
    }
}

/// The position after `url =`, if the value has it at `at`.
fn name_end(value: &[u8], at: usize) -> Option<usize> {
    let name = value.get(at..at + 3)?;
    let equals = find(value, at + 3, |byte| !byte.is_ascii_whitespace());
    let is_name = name.eq_ignore_ascii_case(b"url") && value.get(equals) == Some(&b'=');
    is_name.then(|| find(value, equals + 1, |byte| !byte.is_ascii_whitespace()))
}

/// The position of the first byte from `at` on for which `is_end` is true; otherwise the end of the value.
pub(crate) fn find(value: &[u8], at: usize, is_end: impl Fn(u8) -> bool) -> usize {
    value[at..].iter().position(|byte| is_end(*byte)).map_or(value.len(), |offset| at + offset)
}

/// The part of `range` without white space around it.
pub(crate) fn trimmed(text: &[u8], range: Range<usize>) -> Range<usize> {
    let part = text[range.clone()].trim_ascii_start();
    let start = range.end - part.len();
    start..start + part.trim_ascii_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_found() {
        for (value, expected) in [
            ("5; url=next.html", Some("next.html")),
            ("0;URL='a b' x", Some("a b")),
            ("0 , Url = \"a", Some("a")),
            ("0.5.1 ;url=a ", Some("a")),
            (".5 a", Some("a")),
            ("5 url=a", Some("a")),
            ("5;next.html", Some("next.html")),
            ("5;urn:x", Some("urn:x")),
            ("5;url", Some("url")),
            ("5", None),
            ("5;", None),
            ("x;url=a", None),
            ("; url=a", None),
            ("5x;url=a", None),
        ] {
            assert_eq!(refresh_target(value.as_bytes()).map(|range| &value[range]), expected, "{value}");
        }
    }
}
