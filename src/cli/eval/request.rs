//! Questions and answers: a question's operation, input bytes and options, and the JSON of its answer.

use data_encoding::HEXLOWER_PERMISSIVE;
use serde_json::{Value, json};

use crate::iri::{Base, Component, Fault, FaultKind, ParseMode, Rung};

/// What an operation returns. Both an answer and an error are printed.
pub(super) type EvalResult = Result<Answer, Answer>;

/// The answer to a question.
pub(super) enum Answer {
    /// The result of the operation.
    Output(Value),
    /// The input is rejected.
    Fault(Fault),
    /// The operation, profile or option is not supported.
    Unsupported,
    /// The question is malformed.
    Error(String),
}

impl From<Fault> for Answer {
    fn from(fault: Fault) -> Answer {
        Answer::Fault(fault)
    }
}

impl Answer {
    pub(super) fn into_line(self, id: Value) -> Value {
        match self {
            Answer::Output(output) => json!({"id": id, "output": output}),
            Answer::Fault(fault) => json!({"id": id, "fault": fault_value(fault)}),
            Answer::Unsupported => json!({"id": id, "unsupported": true}),
            Answer::Error(message) => json!({"id": id, "error": message}),
        }
    }
}

/// A fault as JSON: `kind`, `component`, `at` (byte offset).
pub(crate) fn fault_value(fault: Fault) -> Value {
    json!({"kind": fault.kind.name(), "component": fault.component.name(), "at": fault.at})
}

pub(super) fn output(value: impl Into<Value>) -> Answer {
    Answer::Output(value.into())
}

/// A question, borrowed from its JSON.
pub(super) struct Request<'a> {
    pub(super) op: &'a str,
    /// The input texts, as bytes because they may not be UTF-8.
    pub(super) inputs: Vec<Vec<u8>>,
    base: Option<&'a str>,
    rung: Option<&'a Value>,
    pub(super) form: &'a str,
    pub(super) profile: &'a str,
    opts: Option<&'a Value>,
}

impl<'a> Request<'a> {
    /// Parses a question.
    ///
    /// # Errors
    /// An [`Answer`] that says what is wrong, or the fault of lone surrogates. The URL Standard replaces these by U+FFFD
    /// (`USVString`), so they are not a fault there.
    pub(super) fn new(question: &'a Value, has_lone_surrogates: bool) -> Result<Request<'a>, Answer> {
        let op = text(question, "op")?.ok_or_else(|| Answer::Error("\"op\" is missing".into()))?;
        let profile = text(question, "profile")?.unwrap_or("rfc3987");
        let is_whatwg = op == "whatwg_parse" || profile == "whatwg";
        let inputs = inputs(question, is_whatwg)?;
        if has_lone_surrogates && !is_whatwg {
            let at = inputs.iter().find_map(|input| memchr::memmem::find(input, "\u{FFFD}".as_bytes()));
            return Err(not_utf8(at.unwrap_or_default()));
        }
        Ok(Request {
            op,
            inputs,
            base: text(question, "base")?,
            rung: question.get("rung"),
            form: text(question, "form")?.unwrap_or("uri"),
            profile,
            opts: question.get("opts"),
        })
    }

    /// The only input.
    pub(super) fn input(&self) -> Result<&[u8], Answer> {
        match &self.inputs[..] {
            [input] => Ok(input),
            _ => Err(Answer::Error(format!("\"{}\" takes one \"input\"", self.op))),
        }
    }

    /// The only input, which is UTF-8.
    pub(super) fn input_text(&self) -> Result<&str, Answer> {
        text_of(self.input()?)
    }

    pub(super) fn pair(&self) -> Result<[&[u8]; 2], Answer> {
        match &self.inputs[..] {
            [a, b] => Ok([a, b]),
            _ => Err(Answer::Error(format!("\"{}\" takes an \"input\" of two strings", self.op))),
        }
    }

    /// The rung; by default the scheme rung. Rung 4 needs observations.
    pub(super) fn rung(&self) -> Result<Rung, Answer> {
        match self.rung.map(|rung| rung.as_u64()) {
            Some(Some(1)) => Ok(Rung::Simple),
            Some(Some(2)) => Ok(Rung::Syntax),
            None | Some(Some(3)) => Ok(Rung::Scheme),
            Some(Some(4)) => Err(Answer::Unsupported),
            Some(_) => Err(Answer::Error("\"rung\" is 1, 2, 3 or 4".into())),
        }
    }

    /// The question is about the protocol rung (RFC 3987 section 5.3.4).
    pub(super) fn is_on_protocol_rung(&self) -> bool {
        self.rung.and_then(Value::as_u64) == Some(4)
    }

    /// The observed redirect (from, to), if there is one.
    pub(super) fn redirect(&self) -> Result<Option<[&'a str; 2]>, Answer> {
        let malformed = || Answer::Error("\"redirect\" is a list of two strings, or an empty one".into());
        let texts: Vec<&str> = match self.opts.and_then(|opts| opts.get("redirect")) {
            None | Some(Value::Null) => Vec::new(),
            Some(list) => {
                let texts = list.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
                texts.ok_or_else(malformed)?
            }
        };
        match texts[..] {
            [] => Ok(None),
            [from, to] => Ok(Some([from, to])),
            _ => Err(malformed()),
        }
    }

    /// The base, if there is one; with its dot segments if the option `literal_base` is set.
    pub(super) fn base(&self) -> Result<Option<Base>, Answer> {
        let is_literal = self.opt_bool("literal_base") == Some(true);
        let new = if is_literal { Base::literal } else { Base::new };
        self.base.map(|base| new(base.as_bytes())).transpose().map_err(Answer::Fault)
    }

    /// The base's text, if there is one.
    pub(super) fn base_text(&self) -> Option<&'a str> {
        self.base
    }

    /// A string among the options.
    pub(super) fn opt(&self, name: &str) -> Option<&'a str> {
        self.opts?.get(name)?.as_str()
    }

    pub(super) fn opt_bool(&self, name: &str) -> Option<bool> {
        self.opts?.get(name)?.as_bool()
    }

    /// The option `lenient`.
    pub(super) fn parse_mode(&self) -> Option<ParseMode> {
        self.opt_bool("lenient").map(|is_lenient| if is_lenient { ParseMode::Lenient } else { ParseMode::Strict })
    }

    /// Whether an option is given that is not in `known`.
    pub(super) fn has_other_opts(&self, known: &[&str]) -> bool {
        let opts = self.opts.and_then(Value::as_object);
        opts.is_some_and(|opts| opts.keys().any(|name| !known.contains(&name.as_str())))
    }
}

/// A member of a question that is a string, if it has one.
fn text<'q>(question: &'q Value, name: &str) -> Result<Option<&'q str>, Answer> {
    match question.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Answer::Error(format!("\"{name}\" is not a string"))),
    }
}

pub(super) fn text_of(bytes: &[u8]) -> Result<&str, Answer> {
    std::str::from_utf8(bytes).map_err(|error| not_utf8(error.valid_up_to()))
}

fn not_utf8(at: usize) -> Answer {
    Answer::Fault(Fault::new(FaultKind::NotUtf8, Component::Reference, at))
}

fn inputs(question: &Value, is_whatwg: bool) -> Result<Vec<Vec<u8>>, Answer> {
    let malformed = |what: &str| Answer::Error(what.into());
    if let Some(hex) = question.get("input_hex") {
        let bytes = hex.as_str().and_then(|hex| HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok());
        let bytes = bytes.ok_or_else(|| malformed("\"input_hex\" is not a string of pairs of hexadecimal digits"))?;
        return Ok(vec![bytes]);
    }
    if let Some(units) = question.get("input_utf16") {
        return utf16_text(units, is_whatwg).map(|text| vec![text]);
    }
    match question.get("input") {
        Some(Value::String(text)) => Ok(vec![text.as_bytes().to_vec()]),
        Some(Value::Array(texts)) => {
            let texts = texts.iter().map(|text| Some(text.as_str()?.as_bytes().to_vec()));
            texts.collect::<Option<_>>().ok_or_else(|| malformed("\"input\" has an element that is not a string"))
        }
        _ => Err(malformed("\"input\", \"input_hex\" or \"input_utf16\" is missing or of the wrong type")),
    }
}

/// Converts UTF-16 code units to UTF-8. A lone surrogate is a fault at its byte, or U+FFFD in profile `whatwg`.
fn utf16_text(units: &Value, is_whatwg: bool) -> Result<Vec<u8>, Answer> {
    let units = units.as_array().map(|units| units.iter().map(|unit| u16::try_from(unit.as_u64()?).ok()));
    let units: Option<Vec<u16>> = units.and_then(|units| units.collect());
    let units = units.ok_or_else(|| Answer::Error("\"input_utf16\" is not a list of code units".into()))?;
    let mut text = String::new();
    for unit in char::decode_utf16(units) {
        match unit {
            Ok(character) => text.push(character),
            Err(_) if is_whatwg => text.push(char::REPLACEMENT_CHARACTER),
            Err(_) => return Err(not_utf8(text.len())),
        }
    }
    Ok(text.into_bytes())
}

/// Parses a line of JSON, and returns whether its strings had lone surrogates, such as `"\\ud800"`. The grammar of RFC
/// 8259 allows them, and test suites of browsers have some. They are replaced by U+FFFD.
///
/// # Errors
/// The line is not JSON for another reason than lone surrogates.
pub(crate) fn parse_json(line: &[u8]) -> Result<(Value, bool), serde_json::Error> {
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
    use super::parse_json;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        let text = |json: &str| {
            parse_json(json.as_bytes()).map(|(value, has)| (value.as_str().unwrap_or("").to_string(), has)).ok()
        };
        assert_eq!(text(r#""\ud83d\ude00""#), Some(("\u{1F600}".to_string(), false)));
        assert_eq!(text(r#""\ud83d\ud83d\ude00\uDC00""#), Some(("\u{FFFD}\u{1F600}\u{FFFD}".to_string(), true)));
        assert_eq!(text(r#""\\ud800\ud800""#), Some(("\\ud800\u{FFFD}".to_string(), true)));
        assert_eq!((text(r#""\ud8"#), text(r#""\ud800"#), text("nonsense")), (None, None, None));
    }
}
