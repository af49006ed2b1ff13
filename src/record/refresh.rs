//! Refreshes of pages, in header fields and in `meta` elements (HTML Standard, "shared declarative refresh steps").

use crate::kernel::{find_byte_from, trimmed_ascii_range};
use std::ops::Range;

/// The place of the target in a refresh such as `5; url='next.html'`; `None` if it has none, or is malformed.
pub(crate) fn refresh_target(value: &[u8]) -> Option<Range<usize>> {
    let mut at = find_byte_from(value, 0, |byte| !byte.is_ascii_whitespace());
    let digits = find_byte_from(value, at, |byte| !byte.is_ascii_digit());
    if digits == at && value.get(at) != Some(&b'.') {
        return None;
    }
    at = find_byte_from(value, digits, |byte| !byte.is_ascii_digit() && byte != b'.');
    if at < value.len() && !value[at].is_ascii_whitespace() && !b";,".contains(&value[at]) {
        return None;
    }
    at = find_byte_from(value, at, |byte| !byte.is_ascii_whitespace());
    if value.get(at).is_some_and(|byte| b";,".contains(byte)) {
        at = find_byte_from(value, at + 1, |byte| !byte.is_ascii_whitespace());
    }
    if at == value.len() {
        return None;
    }
    let at = name_end(value, at).unwrap_or(at);
    match value.get(at) {
        Some(quote @ (b'"' | b'\'')) => {
            Some(trimmed_ascii_range(value, at + 1..find_byte_from(value, at + 1, |byte| byte == *quote)))
        }
        _ => Some(trimmed_ascii_range(value, at..value.len())),
    }
}

/// The position after `url =`, if the value has it at `at`.
fn name_end(value: &[u8], at: usize) -> Option<usize> {
    let name = value.get(at..at + 3)?;
    let equals = find_byte_from(value, at + 3, |byte| !byte.is_ascii_whitespace());
    let is_name = name.eq_ignore_ascii_case(b"url") && value.get(equals) == Some(&b'=');
    is_name.then(|| find_byte_from(value, equals + 1, |byte| !byte.is_ascii_whitespace()))
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
