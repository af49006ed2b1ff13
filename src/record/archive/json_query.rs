//! The JSON body of a request as a query, as pywb writes it: every value that is neither an object nor a list becomes
//! `name=value`, where the name is that of the innermost member around it.

use super::form::FormWriter;
use crate::record::json::{bare_len, unescape};
use std::collections::HashMap;

/// JSON that is nested deeper is not read. The limit bounds the recursion.
const MAX_DEPTH: usize = 500;

/// Writes the values of `text` to `form`. Returns `None` if the text is neither JSON (RFC 8259) nor JSON with `NaN`, which
/// Python reads. What is written then has no meaning.
pub(super) fn write_json(text: &[u8], form: &mut FormWriter) -> Option<()> {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let mut walker = JsonWalker { rest: text, form, counts: HashMap::new() };
    walker.value(b"", 0)?;
    walker.skip_space();
    walker.rest.is_empty().then_some(())
}

/// Reads JSON once, from its beginning to its end.
struct JsonWalker<'a, 'f> {
    rest: &'a [u8],
    form: &'f mut FormWriter,
    /// How often each name was written. Names do not count any more once the form is full.
    counts: HashMap<Vec<u8>, u32>,
}

impl JsonWalker<'_, '_> {
    fn skip_space(&mut self) {
        let len = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
        self.rest = &self.rest[len..];
    }

    /// Takes `byte` after white space, if it is next.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_space();
        self.rest = self.rest.strip_prefix(&[byte])?;
        Some(())
    }

    fn value(&mut self, name: &[u8], depth: usize) -> Option<()> {
        self.skip_space();
        match self.rest.first()? {
            b'{' => self.items(b'}', depth, |walker| {
                walker.skip_space();
                let name = walker.string()?;
                walker.take(b':')?;
                walker.value(&name, depth + 1)
            }),
            b'[' => self.items(b']', depth, |walker| walker.value(name, depth + 1)),
            b'"' => {
                let text = self.string()?;
                self.write(name, &text);
                Some(())
            }
            _ => {
                let (word, rest) = self.rest.split_at(bare_len(self.rest).unwrap_or(self.rest.len()));
                self.rest = rest;
                self.write(name, scalar(word)?.as_bytes());
                Some(())
            }
        }
    }

    /// Reads the items of an object or a list up to the bracket `end`.
    fn items(&mut self, end: u8, depth: usize, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.rest = &self.rest[1..];
        if depth == MAX_DEPTH {
            return None;
        }
        if self.take(end).is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            if self.take(end).is_some() {
                return Some(());
            }
            self.take(b',')?;
        }
    }

    /// Reads a string. Control characters, unknown escapes and lone surrogates are errors.
    fn string(&mut self) -> Option<Vec<u8>> {
        let text = self.rest.strip_prefix(b"\"")?;
        let mut at = 0;
        loop {
            match text.get(at)? {
                b'"' => break,
                b'\\' => {
                    is_escape(&text[at + 1..]).then_some(())?;
                    at += 2;
                }
                0..=0x1F => return None,
                _ => at += 1,
            }
        }
        self.rest = &text[at + 1..];
        let mut out = Vec::with_capacity(at);
        unescape(&text[..at], &mut out);
        // A lone surrogate is not UTF-8.
        std::str::from_utf8(&out).is_ok().then_some(out)
    }

    fn write(&mut self, name: &[u8], value: &[u8]) {
        if name.is_empty() || self.form.is_full() {
            return;
        }
        let count = self.counts.entry(name.to_vec()).or_default();
        *count += 1;
        match *count {
            1 => self.form.field(name, value),
            count => self.form.field(&[name, format!(".{count}_").as_bytes()].concat(), value),
        }
    }
}

/// Whether an escape follows a backslash.
fn is_escape(text: &[u8]) -> bool {
    match text.first() {
        Some(b'u') => text.get(1..5).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)),
        byte => byte.is_some_and(|byte| b"\"\\/bfnrt".contains(byte)),
    }
}

/// A number or a word as pywb writes it; `None` if it is neither.
fn scalar(word: &[u8]) -> Option<String> {
    let word = std::str::from_utf8(word).ok()?;
    if matches!(word, "true" | "false" | "null") {
        return Some(word.to_string());
    }
    if word == "NaN" {
        return Some("nan".to_string());
    }
    let digits = word.strip_prefix('-').unwrap_or(word);
    let (whole, rest) = digits.split_at(digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len()));
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
        return None;
    }
    if rest.is_empty() {
        return Some(if word == "-0" { "0" } else { word }.to_string());
    }
    is_fraction(rest).then_some(())?;
    let number: f64 = word.parse().ok().filter(|number: &f64| number.is_finite())?;
    Some(float(number))
}

/// `.digits`, an exponent, or both.
fn is_fraction(text: &str) -> bool {
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (fraction, exponent) = match text.split_once(['e', 'E']) {
        Some((fraction, exponent)) => (fraction, Some(exponent)),
        None => (text, None),
    };
    let is_sound = fraction.is_empty() || fraction.strip_prefix('.').is_some_and(are_digits);
    is_sound && exponent.is_none_or(|exponent| are_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
}

/// A whole number with all its digits, any other number with as few digits as identify it, as Python writes them.
fn float(number: f64) -> String {
    if number == 0.0 {
        return "0".to_string();
    }
    if number.fract() == 0.0 {
        return format!("{number:.0}");
    }
    let scientific = format!("{number:e}");
    match scientific.split_once("e-") {
        Some((digits, exponent)) if exponent.parse().is_ok_and(|exponent: u32| exponent > 4) => {
            format!("{digits}e-{exponent:0>2}")
        }
        _ => number.to_string(),
    }
}
