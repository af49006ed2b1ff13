//! Access logs of web servers, by Apache's format string (mod_log_config). In: a chunk of whole lines. Out: the records:
//! the request's target, its base if the format names the host, status and time, in a text of our own.
//!
//! `%r` or `%U%q` is the URL; `%v`, `%V` or `%{Host}i` the host of its base, whose scheme is http; `%s` or `%>s` the status;
//! `%t` the time. Other directives reach up to the literal text behind them. `\"`, `\\` and `\xhh` are undone, as Apache
//! wrote them. A line that the format does not fit is a record with a fault, and so is a request that is none; the line
//! is its URL then. Blank lines are no records.

use super::collected::{Collected, filled_lines};
use super::copies::put;
use super::fields::{FieldSet, FieldValues};
use super::{Records, Span, time};
use crate::iri::{CLASSIFIER, FaultKind};
use crate::kernel::Bitmaps;
use std::borrow::Cow;

/// What a directive stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Directive {
    Request,
    Path,
    Query,
    Host,
    Status,
    Time,
    Other,
}

/// A format string, taken apart: each directive and the literal text behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFormat {
    first: Vec<u8>,
    items: Vec<(Directive, Vec<u8>)>,
}

/// NCSA's common log format.
const COMMON: &str = "%h %l %u %t \"%r\" %>s %b";

impl Default for LogFormat {
    /// The common log format and whatever stands behind it: the combined one too.
    fn default() -> LogFormat {
        LogFormat::common_and_rest()
    }
}

impl LogFormat {
    fn common_and_rest() -> LogFormat {
        // What stands behind the status does not matter.
        LogFormat::take_apart("%h %l %u %t \"%r\" %>s")
    }

    /// A format by name (`common`, `combined`, `vhost_combined`) or by its string.
    ///
    /// # Errors
    /// There is no URL in it; a sentence.
    pub fn parse(text: &str) -> Result<LogFormat, String> {
        let format = match text {
            "common" => LogFormat::take_apart(COMMON),
            "combined" => LogFormat::common_and_rest(),
            "vhost_combined" => LogFormat::take_apart("%v:%p %h %l %u %t \"%r\" %>s"),
            _ => LogFormat::take_apart(text),
        };
        let has_url =
            format.items.iter().any(|(directive, _)| matches!(directive, Directive::Request | Directive::Path));
        if has_url { Ok(format) } else { Err("a log format needs %r or %U for the URL".to_string()) }
    }

    fn take_apart(text: &str) -> LogFormat {
        let mut format = LogFormat { first: Vec::new(), items: Vec::new() };
        let mut rest = text.as_bytes();
        while let Some((&byte, tail)) = rest.split_first() {
            if byte == b'%' && tail.first() != Some(&b'%') {
                let (directive, len) = directive(tail);
                format.items.push((directive, Vec::new()));
                rest = &tail[len..];
                continue;
            }
            rest = if byte == b'%' { &tail[1..] } else { tail };
            format.items.last_mut().map_or(&mut format.first, |(_, literal)| literal).push(byte);
        }
        format
    }
}

/// The directive behind a `%`, and its length: modifiers, `{name}`, a letter.
fn directive(text: &[u8]) -> (Directive, usize) {
    let modifiers = text.iter().take_while(|byte| b"<>!,0123456789".contains(byte)).count();
    let mut at = modifiers;
    let mut name = &b""[..];
    if text.get(at) == Some(&b'{') {
        let len = memchr::memchr(b'}', &text[at..]).unwrap_or(text.len() - at - 1);
        name = &text[at + 1..at + len.max(1)];
        at += len + 1;
    }
    let letter = text.get(at).copied().unwrap_or(b' ');
    let is_named = !name.is_empty();
    let found = match letter {
        b'r' => Directive::Request,
        b'U' => Directive::Path,
        b'q' => Directive::Query,
        b'v' | b'V' => Directive::Host,
        b'i' if name.eq_ignore_ascii_case(b"host") => Directive::Host,
        b's' => Directive::Status,
        b't' if !is_named => Directive::Time,
        _ => Directive::Other,
    };
    (found, (at + 1).min(text.len()))
}

/// What a line said.
#[derive(Default)]
struct Line<'a> {
    url: Cow<'a, [u8]>,
    host: &'a [u8],
    field: FieldValues,
}

/// Decoder of access logs; keeps the memory of its text and spans.
#[derive(Debug, Default)]
pub struct AccessLog {
    format: LogFormat,
    text: Vec<u8>,
    found: Collected,
}

impl AccessLog {
    /// The chunks that follow have these fields.
    pub fn set_carry(&mut self, carry: FieldSet) {
        self.found.set_carry(carry);
    }

    /// The chunks that follow are in this format.
    pub fn set_format(&mut self, format: &LogFormat) {
        self.format.clone_from(format);
    }

    /// Every record of `chunk`, which begins at byte `offset` of the source; `bitmaps` describe the records' text
    /// afterwards.
    ///
    /// ```
    /// use irikey::{kernel::Bitmaps, record::access_log::AccessLog};
    /// let line = b"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a?b HTTP/1.0\" 200 2326";
    /// let (mut log, mut bitmaps) = (AccessLog::default(), Bitmaps::default());
    /// let records = log.decode(line, 0, &mut bitmaps);
    /// assert_eq!(records.urls[0].of(records.text), b"/a?b");
    /// assert_eq!(records.fields.statuses, [Some(200)]);
    /// ```
    pub fn decode<'a>(&'a mut self, chunk: &[u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        self.text.clear();
        self.found.clear();
        for (at, line) in filled_lines(chunk) {
            self.found.begin(offset + at as u64);
            self.line(line);
        }
        bitmaps.classify(&self.text, &CLASSIFIER);
        self.found.records(&self.text)
    }

    fn line(&mut self, line: &[u8]) {
        let read = read(line, &self.format);
        let kind = match &read {
            None => Some(FaultKind::NotOfFormat),
            Some(said) if said.url.is_empty() => Some(FaultKind::NoUrl),
            Some(_) => None,
        };
        if let Some(kind) = kind {
            self.found.refuse(kind);
        }
        let said = read.unwrap_or_default();
        let url = self.put(&[if kind.is_some() { line } else { &said.url }]);
        let base = if said.host.is_empty() { self.put(&[]) } else { self.put(&[b"http://", said.host, b"/"]) };
        self.found.base(base);
        self.found.push(url, said.field);
    }

    fn put(&mut self, texts: &[&[u8]]) -> Span {
        put(&mut self.text, |out| texts.iter().for_each(|text| out.extend_from_slice(text)))
    }
}

/// `line` is unmistakably a record of the common format: its time is one, too.
pub(super) fn is_record(line: &[u8]) -> bool {
    read(line, &LogFormat::default()).is_some_and(|said| said.field.time.is_some())
}

fn read<'a>(line: &'a [u8], format: &LogFormat) -> Option<Line<'a>> {
    let mut rest = line.strip_prefix(&format.first[..])?;
    let mut said = Line::default();
    for (directive, literal) in &format.items {
        let is_quoted = literal.first() == Some(&b'"');
        let len = match (directive, &literal[..]) {
            // A time has spaces within its brackets.
            (Directive::Time, _) if rest.starts_with(b"[") => memchr::memchr(b']', rest)? + 1,
            (_, b"") => rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len()),
            _ => find(rest, literal, is_quoted)?,
        };
        let value = &rest[..len];
        rest = rest[len..].strip_prefix(&literal[..])?;
        match directive {
            Directive::Request => said.url = target(value),
            Directive::Path | Directive::Query if value != b"-" => {
                said.url.to_mut().extend_from_slice(&undo_escapes(value))
            }
            Directive::Host if value != b"-" => said.host = value,
            Directive::Status => said.field.status = status(value)?,
            Directive::Time => said.field.time = time::from_log(value),
            _ => {}
        }
    }
    Some(said)
}

/// `-` is none; what is no number is no status, and the line not of the format.
fn status(value: &[u8]) -> Option<Option<i32>> {
    if value == b"-" {
        return Some(None);
    }
    std::str::from_utf8(value).ok()?.parse().ok().map(Some)
}

/// Where `literal` begins; within quotes, where it begins with one, a backslash takes the next byte with it.
fn find(text: &[u8], literal: &[u8], is_quoted: bool) -> Option<usize> {
    match literal {
        [byte] if !is_quoted => return memchr::memchr(*byte, text),
        _ if !is_quoted => return memchr::memmem::find(text, literal),
        _ => {}
    }
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'\\', b'"', text.get(at..)?)?;
        match text[at] {
            b'\\' => at += 2,
            _ if text[at..].starts_with(literal) => return Some(at),
            _ => at += 1,
        }
    }
}

/// The target of `GET target HTTP/1.1`; spaces in it shift nothing. Empty if the request is none.
fn target(request: &[u8]) -> Cow<'_, [u8]> {
    let Some(after_method) = memchr::memchr(b' ', request).map(|at| &request[at + 1..]) else { return b"".into() };
    let mut spaces = memchr::memrchr_iter(b' ', after_method);
    let end = spaces.find(|&space| after_method[space..].starts_with(b" HTTP/")).unwrap_or(after_method.len());
    undo_escapes(&after_method[..end])
}

fn undo_escapes(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', text) else { return text.into() };
    let mut out = Vec::with_capacity(text.len());
    out.extend_from_slice(&text[..first]);
    let mut rest = &text[first..];
    while let Some((&byte, tail)) = rest.split_first() {
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let (byte, len) = match tail {
            _ if byte != b'\\' => (byte, 1),
            [b'x', high, low, ..] => hex(&[*high, *low]).map_or((byte, 1), |byte| (byte, 4)),
            [next @ (b'"' | b'\\'), ..] => (*next, 2),
            _ => (byte, 1),
        };
        out.push(byte);
        rest = &rest[len..];
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (String, String, Option<i32>, Option<i64>, Option<FaultKind>);

    fn rows(format: &str, text: &str) -> Vec<Row> {
        let (mut log, mut bitmaps) = (AccessLog::default(), Bitmaps::default());
        log.set_format(&LogFormat::parse(format).unwrap());
        let records = log.decode(text.as_bytes(), 0, &mut bitmaps);
        let show = |span: Span| String::from_utf8_lossy(span.of(records.text)).into_owned();
        let fault = |i: usize| records.faults.iter().find(|(row, _)| *row as usize == i).map(|(_, fault)| fault.kind);
        let fields = &records.fields;
        let row =
            |i: usize| (show(records.urls[i]), show(records.bases[i]), fields.statuses[i], fields.times[i], fault(i));
        (0..records.urls.len()).map(row).collect()
    }

    const LINE: &str = r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /a b?\"c\x41 HTTP/1.0" 404 -"#;
    const TIME: Option<i64> = Some(971_211_336_000);

    #[test]
    fn formats_by_name_and_by_string() {
        let want = ("/a b?\"cA".to_string(), String::new(), Some(404), TIME, None);
        assert_eq!(rows("common", LINE), std::slice::from_ref(&want));
        assert_eq!(rows("combined", &format!("{LINE} \"http://r/\" \"agent\"\r\n\n")), std::slice::from_ref(&want));
        let with_host = ("/a b?\"cA".to_string(), "http://h.example/".to_string(), Some(404), TIME, None);
        assert_eq!(rows("vhost_combined", &format!("h.example:80 {LINE} \"-\" \"x\"")), [with_host]);
        let own = rows("%{Host}i %U%q %s", "h /p ?q=1 200");
        assert_eq!(own, [("h /p ?q=1 200".into(), "".into(), None, None, Some(FaultKind::NotOfFormat))]);
        let own = rows("%{Host}i|%U|%q|%s", "h|/p|?q=1|200");
        assert_eq!(own, [("/p?q=1".into(), "http://h/".into(), Some(200), None, None)]);
        assert!(LogFormat::parse("%h %s").is_err());
    }

    #[test]
    fn what_does_not_fit_has_a_fault() {
        let broken = "192.0.2.1 - - [x] \"-\" 408 -";
        assert_eq!(rows("common", broken), [(broken.into(), "".into(), Some(408), None, Some(FaultKind::NoUrl))]);
        for line in ["x", "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /", "a b c [d] \"GET / HTTP/1.0\" x 1"] {
            assert_eq!(rows("common", line)[0].4, Some(FaultKind::NotOfFormat), "{line}");
        }
    }
}
