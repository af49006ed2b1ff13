//! Parsing of JSON with lone surrogates in strings, such as `"\\ud800"`. The grammar of RFC 8259 allows them, and test
//! suites of browsers have some. They are replaced by U+FFFD, and the caller is told whether there were any.

use serde_json::Value;

/// Parses a line of JSON.
///
/// # Errors
/// The line is not JSON for another reason than lone surrogates.
pub(super) fn read(line: &[u8]) -> Result<(Value, bool), serde_json::Error> {
    match serde_json::from_slice(line) {
        Ok(value) => Ok((value, false)),
        Err(error) => match without_lone_surrogates(line) {
            Some(line) => Ok((serde_json::from_slice(&line)?, true)),
            None => Err(error),
        },
    }
}

/// The line with `fffd` in place of lone surrogates; `None` if there are none.
fn without_lone_surrogates(line: &[u8]) -> Option<Vec<u8>> {
    let mut out = line.to_vec();
    let mut is_changed = false;
    let mut at = 0;
    while at < out.len() {
        match (escaped_unit(&out[at..]), out.get(at + 6..).and_then(escaped_unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => at += 12,
            (Some(0xD800..=0xDFFF), _) => {
                out[at + 2..at + 6].copy_from_slice(b"fffd");
                is_changed = true;
                at += 6;
            }
            // An escaped backslash does not begin another escape.
            _ if out[at] == b'\\' => at += 2,
            _ => at += 1,
        }
    }
    is_changed.then_some(out)
}

/// The code unit of the escape that `text` begins with.
fn escaped_unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        let text =
            |json: &str| read(json.as_bytes()).map(|(value, has)| (value.as_str().unwrap_or("").to_string(), has)).ok();
        assert_eq!(text(r#""\ud83d\ude00""#), Some(("\u{1F600}".to_string(), false)));
        assert_eq!(text(r#""\ud83d\ud83d\ude00\uDC00""#), Some(("\u{FFFD}\u{1F600}\u{FFFD}".to_string(), true)));
        assert_eq!(text(r#""\\ud800\ud800""#), Some(("\\ud800\u{FFFD}".to_string(), true)));
        assert_eq!((text(r#""\ud8"#), text(r#""\ud800"#), text("nonsense")), (None, None, None));
    }
}
