//! Attribute values that hold several references, or one among other things: a value in, the references in it out, each
//! as a range of the value. HTML Standard: "parse a srcset attribute", "shared declarative refresh steps".

use std::ops::Range;

use super::attributes::Shape;

/// The references of a value of this shape; where there is one, without white space around it.
pub(super) fn references(value: &[u8], shape: Shape) -> Vec<Range<usize>> {
    match shape {
        Shape::One => vec![trimmed(value, 0..value.len())],
        Shape::Spaced => spaced(value),
        Shape::SchemaPairs => spaced(value).into_iter().skip(1).step_by(2).collect(),
        Shape::SourceSet => source_set(value),
        Shape::Refresh => refresh(value).into_iter().collect(),
    }
}

/// ASCII white space as HTML has it; XML has no form feed, and attribute values cannot hold one there.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0C)
}

fn trimmed(value: &[u8], range: Range<usize>) -> Range<usize> {
    let start = range.clone().find(|at| !is_space(value[*at])).unwrap_or(range.end);
    let end = (start..range.end).rfind(|at| !is_space(value[*at])).map_or(start, |at| at + 1);
    start..end
}

/// From `at` on, the first byte that `is_end`; the end of the value if there is none.
fn find(value: &[u8], at: usize, is_end: impl Fn(u8) -> bool) -> usize {
    value[at..].iter().position(|byte| is_end(*byte)).map_or(value.len(), |offset| at + offset)
}

fn spaced(value: &[u8]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    loop {
        let start = find(value, at, |byte| !is_space(byte));
        if start == value.len() {
            return ranges;
        }
        at = find(value, start, is_space);
        ranges.push(start..at);
    }
}

/// Candidates: a reference up to white space, less commas at its end; then, unless it ended in one, descriptors up to a
/// comma outside parentheses.
fn source_set(value: &[u8]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut at = 0;
    loop {
        let start = find(value, at, |byte| !is_space(byte) && byte != b',');
        if start == value.len() {
            return ranges;
        }
        at = find(value, start, is_space);
        let end = value[..at].iter().rposition(|byte| *byte != b',').map_or(start, |last| last + 1);
        ranges.push(start..end.max(start));
        if end == at {
            at = descriptors_end(value, at);
        }
    }
}

fn descriptors_end(value: &[u8], from: usize) -> usize {
    let mut is_inside = false;
    for (at, byte) in value.iter().enumerate().skip(from) {
        match byte {
            b'(' => is_inside = true,
            b')' => is_inside = false,
            b',' if !is_inside => return at + 1,
            _ => {}
        }
    }
    value.len()
}

/// `5; url='next.html'`: the reference, if the value has one.
fn refresh(value: &[u8]) -> Option<Range<usize>> {
    let mut at = find(value, 0, |byte| !is_space(byte));
    let digits = find(value, at, |byte| !byte.is_ascii_digit());
    if digits == at && value.get(at) != Some(&b'.') {
        return None;
    }
    at = find(value, digits, |byte| !byte.is_ascii_digit() && byte != b'.');
    if at < value.len() && !is_space(value[at]) && !b";,".contains(&value[at]) {
        return None;
    }
    at = find(value, at, |byte| !is_space(byte));
    if value.get(at).is_some_and(|byte| b";,".contains(byte)) {
        at = find(value, at + 1, |byte| !is_space(byte));
    }
    if at == value.len() {
        return None;
    }
    let at = refresh_name_end(value, at).unwrap_or(at);
    match value.get(at) {
        Some(quote @ (b'"' | b'\'')) => Some(trimmed(value, at + 1..find(value, at + 1, |byte| byte == *quote))),
        _ => Some(trimmed(value, at..value.len())),
    }
}

/// The byte after `url =`, if that stands there.
fn refresh_name_end(value: &[u8], at: usize) -> Option<usize> {
    let name = value.get(at..at + 3)?;
    let equals = find(value, at + 3, |byte| !is_space(byte));
    let is_name = name.eq_ignore_ascii_case(b"url") && value.get(equals) == Some(&b'=');
    is_name.then(|| find(value, equals + 1, |byte| !is_space(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, shape: Shape) -> Vec<&str> {
        references(value.as_bytes(), shape).into_iter().map(|range| &value[range]).collect()
    }

    #[test]
    fn one_or_several() {
        assert_eq!(found(" \n a b \t", Shape::One), ["a b"]);
        assert_eq!(found("  ", Shape::One), [""]);
        assert_eq!(found(" a  b ", Shape::Spaced), ["a", "b"]);
        assert_eq!(found("urn:x a.xsd urn:y b.xsd urn:z", Shape::SchemaPairs), ["a.xsd", "b.xsd"]);
    }

    #[test]
    fn source_sets() {
        let cases: [(&str, &[&str]); 8] = [
            ("a.png 1x, b.png 2x", &["a.png", "b.png"]),
            ("a.png,b.png", &["a.png,b.png"]),
            ("a.png, b.png", &["a.png", "b.png"]),
            ("data:image/png;base64,AA== 100w,\n b?c,d 1.5x", &["data:image/png;base64,AA==", "b?c,d"]),
            ("a (x, y) 1x, b", &["a", "b"]),
            (" ,, a ,", &["a"]),
            ("a,,", &["a"]),
            (" , ", &[]),
        ];
        for (value, expected) in cases {
            assert_eq!(found(value, Shape::SourceSet), expected, "{value}");
        }
    }

    #[test]
    fn refreshes() {
        let cases: [(&str, &[&str]); 12] = [
            ("5; url=next.html", &["next.html"]),
            ("0;URL='a b' x", &["a b"]),
            ("0 , Url = \"a", &["a"]),
            ("0.5.1 ;url=a ", &["a"]),
            (".5 a", &["a"]),
            ("5;next.html", &["next.html"]),
            ("5;urn:x", &["urn:x"]),
            ("5;url", &["url"]),
            ("5", &[]),
            ("5;", &[]),
            ("x;url=a", &[]),
            ("5x;url=a", &[]),
        ];
        for (value, expected) in cases {
            assert_eq!(found(value, Shape::Refresh), expected, "{value}");
        }
    }
}
