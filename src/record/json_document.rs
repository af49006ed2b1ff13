//! Records within one JSON document: answers of Wayback CDX servers, whose rows are arrays, and HAR files.
//!
//! ```text
//! bytes --ElementScanner--> one element of the array of records --JsonLayout--> row
//! ```
//!
//! A push parser that holds one element at a time. Of a long string, such as the body of a response, only the beginning is
//! held. An element that is no record is a row with a fault. What is not part of an array of records is skipped.
//!
//! - A CDX server answers `[["urlkey", "timestamp", "original"], ["org,a)/", "20140103030321", "http://a.org/"], ...]`: the
//!   first row names the columns. An empty row and a row of one member at the end are a key to resume, which is counted
//!   like a header. Several answers may follow each other.
//! - HAR (HTTP Archive 1.2) has its records in `log.entries`.

use super::buffer::{RecordBuffer, append_with};
use super::cdx;
use super::fields::FieldValues;
use super::json::{JsonElements, JsonMembers, JsonValue, at_path, unescape};
use super::media_type;
use super::time;
use crate::iri::FaultKind;
use std::str::FromStr;

/// Most bytes of a string that are held, unless `--max-record` is less. A URL is shorter.
const MAX_STRING_LEN: usize = 4 << 20;

/// Most bytes of a key that are compared.
const MAX_KEY_LEN: usize = 32;

/// Most bytes that stand for a record that cannot be read.
const MAX_REFUSED_LEN: usize = 64 << 10;

/// Most columns of an answer of a CDX server.
const MAX_COLUMNS: usize = 64;

/// What the records of a document are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JsonLayout {
    /// Rows of a Wayback CDX server.
    CdxRows,
    /// Entries of a HAR file.
    Har,
}

impl JsonLayout {
    /// The layout of a document that begins with `head`, if it is one of these.
    pub(super) fn detect(head: &[u8]) -> Option<JsonLayout> {
        match head.trim_ascii_start() {
            [b'[', rest @ ..] => {
                let row = rest.trim_ascii_start();
                let first = if row.starts_with(b"[") { row } else { return None };
                let names: Vec<_> = JsonElements::new(first).take(MAX_COLUMNS).collect();
                let has_url = |value: &JsonValue<'_>| matches!(value, JsonValue::Text(b"original" | b"url"));
                names.iter().any(has_url).then_some(JsonLayout::CdxRows)
            }
            text @ [b'{', ..] => {
                let key = JsonHead(text).first_key()?;
                (key.0 == b"log" && is_har_log(key.1)).then_some(JsonLayout::Har)
            }
            _ => None,
        }
    }

    /// The keys of the objects that lead to the array of records.
    fn path(self) -> &'static [&'static [u8]] {
        match self {
            JsonLayout::CdxRows => &[],
            JsonLayout::Har => &[b"log", b"entries"],
        }
    }
}

/// The beginning of an object, which may be cut.
struct JsonHead<'a>(&'a [u8]);

impl<'a> JsonHead<'a> {
    /// The first key, and the text of its value.
    fn first_key(&self) -> Option<(&'a [u8], &'a [u8])> {
        let text = self.0.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"")?;
        let end = memchr::memchr(b'"', text)?;
        let value = text[end + 1..].trim_ascii_start().strip_prefix(b":")?;
        Some((&text[..end], value.trim_ascii_start()))
    }
}

/// Whether the object begins with a member of a HAR log.
fn is_har_log(text: &[u8]) -> bool {
    let names: [&[u8]; 6] = [b"version", b"creator", b"browser", b"pages", b"entries", b"comment"];
    JsonHead(text).first_key().is_some_and(|(key, _)| names.contains(&key))
}

/// Finds the end of one JSON value that arrives in parts, and keeps the value with long strings cut.
#[derive(Debug, Default)]
struct ValueScanner {
    depth: u32,
    state: ValueState,
    /// Bytes of the current string.
    string_len: usize,
    text: Vec<u8>,
    /// The value is longer than allowed; `text` is its beginning.
    is_too_long: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ValueState {
    #[default]
    Begin,
    Plain,
    String,
    Escape,
    /// A number or a word outside brackets.
    Bare,
}

/// Limits of what is held.
#[derive(Clone, Copy, Debug)]
struct HeldLimits {
    string_len: usize,
    value_len: usize,
}

impl ValueScanner {
    fn clear(&mut self) {
        let text = std::mem::take(&mut self.text);
        *self = ValueScanner { text, ..ValueScanner::default() };
        self.text.clear();
    }

    /// Takes bytes of the value; returns how many, and whether the value has ended.
    fn push(&mut self, bytes: &[u8], limits: HeldLimits) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            let (len, is_end) = self.step(&bytes[at..], limits);
            at += len;
            if is_end {
                return (at, true);
            }
        }
        (at, false)
    }

    /// Takes at least one byte, unless the value has ended.
    fn step(&mut self, bytes: &[u8], limits: HeldLimits) -> (usize, bool) {
        let is_outer = self.depth == 0;
        match self.state {
            ValueState::String => {
                let len = memchr::memchr2(b'"', b'\\', bytes);
                self.hold_string(&bytes[..len.unwrap_or(bytes.len())], limits);
                let Some(len) = len else { return (bytes.len(), false) };
                if bytes[len] == b'\\' {
                    self.state = ValueState::Escape;
                    return (len + 1, false);
                }
                self.hold(b"\"", limits);
                self.state = ValueState::Plain;
                (len + 1, is_outer)
            }
            ValueState::Escape => {
                self.hold_string(&[b'\\', bytes[0]], limits);
                self.state = ValueState::String;
                (1, false)
            }
            ValueState::Bare if matches!(bytes[0], b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n') => (0, true),
            ValueState::Begin | ValueState::Plain | ValueState::Bare => {
                let is_mark = |byte: &u8| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']');
                let plain = if is_outer { 0 } else { bytes.iter().position(is_mark).unwrap_or(bytes.len()) };
                if plain > 0 {
                    self.hold(&bytes[..plain], limits);
                    return (plain, false);
                }
                self.hold(&bytes[..1], limits);
                match bytes[0] {
                    b'"' if self.state != ValueState::Bare => (self.state, self.string_len) = (ValueState::String, 0),
                    b'{' | b'[' if self.state != ValueState::Bare => {
                        (self.depth, self.state) = (self.depth.saturating_add(1), ValueState::Plain);
                    }
                    b'}' | b']' if !is_outer => self.depth -= 1,
                    _ => self.state = ValueState::Bare,
                }
                (1, !is_outer && self.depth == 0)
            }
        }
    }

    /// Holds bytes of a string, up to its limit. An escape is held whole or not at all, like all that follows it.
    fn hold_string(&mut self, bytes: &[u8], limits: HeldLimits) {
        let room = limits.string_len.saturating_sub(self.string_len);
        self.string_len += bytes.len();
        match bytes {
            [b'\\', _] if room < 2 => {}
            _ => self.hold(&bytes[..bytes.len().min(room)], limits),
        }
    }

    fn hold(&mut self, bytes: &[u8], limits: HeldLimits) {
        let room = limits.value_len - self.text.len().min(limits.value_len);
        self.is_too_long |= bytes.len() > room;
        self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// Where the parser is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DocumentState {
    /// Before a document.
    #[default]
    Start,
    /// In an object on the way to the records, so many objects deep, before a key.
    Key(usize),
    /// After the key; whether it is on the way.
    Colon(usize, bool),
    /// In a key.
    InKey(usize),
    /// In a value that is skipped.
    Skipped(usize),
    /// In the array of records.
    Records,
    /// In a record.
    Record,
    /// After something that is not expected.
    Broken,
}

/// Parses the bytes of a document.
#[derive(Debug)]
pub(crate) struct JsonDocumentParser {
    layout: JsonLayout,
    limits: HeldLimits,
    state: DocumentState,
    /// The next byte, and where the current record begins.
    at: u64,
    record_at: u64,
    value: ValueScanner,
    /// The current document has an array of records.
    has_records: bool,
    /// The columns of a CDX server, once they are known.
    columns: Option<CdxRowColumns>,
    /// Rows that are no records.
    header_count: u64,
}

/// How a document ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentEnd {
    Whole,
    /// Within the document, after so many bytes of an unfinished record.
    Truncated(u64),
    /// At something that is no such document.
    Broken,
}

impl JsonDocumentParser {
    /// A parser of a document that begins at byte `at` of its source.
    pub(crate) fn new(layout: JsonLayout, at: u64, max_record_len: usize) -> JsonDocumentParser {
        let limits = HeldLimits { string_len: MAX_STRING_LEN.min(max_record_len), value_len: max_record_len };
        let (state, value) = (DocumentState::Start, ValueScanner::default());
        JsonDocumentParser {
            layout,
            limits,
            state,
            at,
            record_at: at,
            value,
            has_records: false,
            columns: None,
            header_count: 0,
        }
    }

    /// The byte of the source up to which it was parsed.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// The number of rows of CDX servers that are no records.
    pub(crate) fn header_count(&self) -> u64 {
        self.header_count
    }

    /// Size of the last record in bytes, as far as it was held.
    pub(crate) fn record_len(&self) -> usize {
        self.value.text.len()
    }

    /// Parses bytes until a row was appended, or to their end. Returns how many were parsed. Parses nothing after what is no
    /// such document.
    pub(crate) fn push(&mut self, bytes: &[u8], rows: &mut RecordBuffer) -> usize {
        let (count, mut taken) = (rows.len(), 0);
        while taken < bytes.len() && rows.len() == count && self.state != DocumentState::Broken {
            let len = self.step(&bytes[taken..], rows);
            (taken, self.at) = (taken + len, self.at + len as u64);
        }
        taken
    }

    /// Whether the parser met something that is no such document.
    pub(crate) fn is_broken(&self) -> bool {
        self.state == DocumentState::Broken
    }

    /// Ends the document.
    pub(crate) fn finish(&self) -> DocumentEnd {
        match self.state {
            DocumentState::Start => DocumentEnd::Whole,
            DocumentState::Broken => DocumentEnd::Broken,
            DocumentState::Record => DocumentEnd::Truncated(self.at - self.record_at),
            _ => DocumentEnd::Truncated(0),
        }
    }

    fn step(&mut self, bytes: &[u8], rows: &mut RecordBuffer) -> usize {
        use DocumentState::{Broken, Colon, InKey, Key, Record, Records, Skipped, Start};
        match self.state {
            InKey(depth) => return self.read_key(bytes, depth),
            Skipped(depth) => {
                let limits = HeldLimits { string_len: 0, value_len: 0 };
                let (len, is_end) = self.value.push(bytes, limits);
                self.state = if is_end { Key(depth) } else { Skipped(depth) };
                return len;
            }
            Record => return self.read_record(bytes, rows),
            _ if matches!(bytes[0], b' ' | b'\t' | b'\r' | b'\n' | b',') => return 1,
            Start => self.begin_path(bytes[0], 0),
            Key(depth) => match bytes[0] {
                b'"' => {
                    self.value.clear();
                    self.state = InKey(depth);
                    return 0;
                }
                b'}' => self.end_container(depth),
                _ => self.state = Broken,
            },
            Colon(..) if bytes[0] == b':' => return 1,
            Colon(depth, true) => self.begin_path(bytes[0], depth),
            Colon(depth, false) => {
                self.value.clear();
                self.state = Skipped(depth);
                return 0;
            }
            Records if bytes[0] == b']' => self.end_container(self.layout.path().len()),
            Records => {
                self.value.clear();
                (self.state, self.record_at) = (Record, self.at);
                return 0;
            }
            Broken => {}
        }
        usize::from(self.state != Broken)
    }

    /// Begins the value that is on the way to the records, after `depth` keys.
    fn begin_path(&mut self, byte: u8, depth: usize) {
        let is_last = depth == self.layout.path().len();
        self.state = match (byte, is_last) {
            (b'[', true) => DocumentState::Records,
            (b'{', false) => DocumentState::Key(depth + 1),
            _ => DocumentState::Broken,
        };
        if depth == 0 {
            (self.has_records, self.columns) = (false, None);
        }
        self.has_records |= self.state == DocumentState::Records;
    }

    /// Ends the object or array that is `depth` objects deep.
    fn end_container(&mut self, depth: usize) {
        let is_object = !matches!(self.state, DocumentState::Records);
        let outer = if is_object { depth - 1 } else { depth };
        self.state = match outer {
            0 if self.has_records => DocumentState::Start,
            0 => DocumentState::Broken,
            _ => DocumentState::Key(outer),
        };
    }
}

impl JsonDocumentParser {
    /// Reads a key, with its quotes, of an object that is `depth` objects deep.
    fn read_key(&mut self, bytes: &[u8], depth: usize) -> usize {
        let limits = HeldLimits { string_len: MAX_KEY_LEN, value_len: 2 * MAX_KEY_LEN };
        let (len, is_end) = self.value.push(bytes, limits);
        if is_end {
            let key = self.value.text.trim_ascii();
            let wanted = self.layout.path()[depth - 1];
            self.state = DocumentState::Colon(depth, key.strip_prefix(b"\"") == Some(&[wanted, b"\""].concat()));
        }
        len
    }

    fn read_record(&mut self, bytes: &[u8], rows: &mut RecordBuffer) -> usize {
        let (len, is_end) = self.value.push(bytes, self.limits);
        if is_end {
            self.state = DocumentState::Records;
            match self.layout {
                JsonLayout::CdxRows => self.push_cdx_row(rows),
                JsonLayout::Har => self.push_har_entry(rows),
            }
        }
        len
    }
}

impl JsonDocumentParser {
    /// Appends the row of a CDX server, unless it names the columns or holds the key to resume.
    fn push_cdx_row(&mut self, rows: &mut RecordBuffer) {
        let text = &self.value.text;
        let values: Vec<_> = JsonElements::new(text).take(MAX_COLUMNS + 1).collect();
        if !text.starts_with(b"[") || self.value.is_too_long {
            return self.refuse(rows);
        }
        let Some(columns) = &mut self.columns else {
            self.columns = CdxRowColumns::of_header(&values);
            match self.columns {
                Some(_) => self.header_count += 1,
                None => self.refuse(rows),
            }
            return;
        };
        let is_resume_key = columns.is_ending && values.len() == 1;
        if values.is_empty() || is_resume_key {
            columns.is_ending = values.is_empty();
            self.header_count += 1;
        } else if columns.letters.len() != values.len() {
            self.refuse(rows);
        } else {
            let letters = columns.letters.iter().copied();
            push_cdx_values(rows, (self.record_at, text), letters.zip(values));
        }
    }

    /// Appends an entry of a HAR file.
    fn push_har_entry(&mut self, rows: &mut RecordBuffer) {
        let text = &self.value.text[..];
        let mut members = JsonMembers::new(text);
        members.by_ref().for_each(drop);
        if self.value.is_too_long || members.is_broken() {
            return self.refuse(rows);
        }
        let string = |path: &[&str]| match at_path(text, path) {
            Some(JsonValue::Text(value)) if !value.is_empty() => Some(value),
            _ => None,
        };
        let url = string(&["request", "url"]);
        let media_type = string(&["response", "content", "mimeType"]).unwrap_or_default();
        let status = match at_path(text, &["response", "status"]) {
            Some(JsonValue::Bare(status)) => number(status),
            _ => None,
        };
        rows.begin(self.record_at);
        if url.is_none() {
            rows.refuse(FaultKind::NoUrl);
        }
        let url = append_with(&mut rows.text, |out| match url {
            Some(url) => unescape(url, out),
            None => out.extend_from_slice(beginning(text)),
        });
        let mut copy = |text: &[u8]| {
            let span = append_with(&mut rows.text, |out| unescape(text, out));
            Some(span).filter(|_| !text.is_empty())
        };
        let fields = FieldValues {
            time: string(&["startedDateTime"]).and_then(time::from_iso_with_zone),
            // Without a response, the status is 0.
            status: status.filter(|status| *status != 0),
            redirect: copy(string(&["response", "redirectURL"]).unwrap_or_default()),
            mime: copy(media_type::without_parameters(media_type)),
            charset: copy(media_type::charset(media_type)),
            page: copy(referrer(text).unwrap_or_default()),
            ..FieldValues::default()
        };
        rows.columns.push(url, fields);
    }

    /// Appends a record that cannot be read.
    fn refuse(&self, rows: &mut RecordBuffer) {
        rows.begin(self.record_at);
        rows.refuse(if self.value.is_too_long { FaultKind::TooLong } else { FaultKind::NotOfFormat });
        rows.push_url(beginning(&self.value.text));
        rows.push_fields(FieldValues::default());
    }
}

/// The page that an entry of a HAR file names as its referrer.
fn referrer(entry: &[u8]) -> Option<&[u8]> {
    let Some(JsonValue::Nested(headers)) = at_path(entry, &["request", "headers"]) else { return None };
    JsonElements::new(headers).find_map(|header| {
        let JsonValue::Nested(header) = header else { return None };
        let text = |key: &str| match at_path(header, &[key]) {
            Some(JsonValue::Text(text)) => Some(text),
            _ => None,
        };
        text("name").filter(|name| name.eq_ignore_ascii_case(b"referer")).and_then(|_| text("value"))
    })
}

/// What stands for a record that cannot be read.
fn beginning(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_REFUSED_LEN)]
}

fn number<N: FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The columns of the rows of a CDX server, by the letters of CDX; 0 for those that are not read.
#[derive(Debug)]
struct CdxRowColumns {
    letters: Vec<u8>,
    /// An empty row was read: what follows is the key to resume.
    is_ending: bool,
}

impl CdxRowColumns {
    /// The columns that a row names, if one of them is the URL.
    fn of_header(values: &[JsonValue<'_>]) -> Option<CdxRowColumns> {
        let letter = |value: &JsonValue<'_>| match value {
            JsonValue::Text(b"original" | b"url") => b'a',
            JsonValue::Text(b"timestamp") => b'b',
            JsonValue::Text(b"mimetype" | b"mime") => b'm',
            JsonValue::Text(b"statuscode" | b"status") => b's',
            JsonValue::Text(b"digest") => b'k',
            JsonValue::Text(b"redirect") => b'r',
            JsonValue::Text(b"length") => b'S',
            JsonValue::Text(b"offset") => b'V',
            JsonValue::Text(b"filename") => b'g',
            _ => 0,
        };
        let letters: Vec<u8> = values.iter().map(letter).collect();
        let is_header = letters.contains(&b'a') && values.len() <= MAX_COLUMNS;
        is_header.then_some(CdxRowColumns { letters, is_ending: false })
    }
}

/// Appends a row, which begins at byte `at` of the source: values by the letters of their columns.
fn push_cdx_values<'a>(
    rows: &mut RecordBuffer,
    (at, row): (u64, &[u8]),
    values: impl Iterator<Item = (u8, JsonValue<'a>)>,
) {
    rows.begin(at);
    let (mut url, mut fields) = (None, FieldValues::default());
    for (letter, value) in values {
        let text = match value {
            JsonValue::Text(text) | JsonValue::Bare(text) if letter != 0 && text != b"null" => text,
            _ => continue,
        };
        let span = append_with(&mut rows.text, |out| unescape(text, out));
        match letter {
            b'a' if url.is_none() && span.len > 0 => url = Some(span),
            _ => cdx::set_field(&mut fields, letter, span.of(&rows.text), span),
        }
    }
    let url = url.unwrap_or_else(|| {
        rows.refuse(FaultKind::NoUrl);
        append_with(&mut rows.text, |out| out.extend_from_slice(beginning(row)))
    });
    rows.columns.push(url, fields);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::records::RecordOffsets;

    type Row = (u64, String, Option<i32>, Option<FaultKind>);

    /// The rows of a document that arrives in parts of `step` bytes, its headers, and how it ends.
    fn parse(layout: JsonLayout, text: &str, step: usize) -> (Vec<Row>, u64, DocumentEnd) {
        let mut parser = JsonDocumentParser::new(layout, 0, 1 << 20);
        let mut rows = RecordBuffer::default();
        for mut part in text.as_bytes().chunks(step) {
            while !part.is_empty() && !parser.is_broken() {
                part = &part[parser.push(part, &mut rows)..];
            }
        }
        let records = rows.records();
        let RecordOffsets::Each(offsets) = records.offsets else {
            return (Vec::new(), parser.header_count(), parser.finish());
        };
        let fault = |i: usize| records.faults.iter().find(|(row, _)| *row as usize == i).map(|(_, fault)| fault.kind);
        let show = |i: usize| String::from_utf8_lossy(records.urls[i].of(records.text)).into_owned();
        let row = |i: usize| (offsets[i], show(i), records.fields.statuses[i], fault(i));
        ((0..records.urls.len()).map(row).collect(), parser.header_count(), parser.finish())
    }

    const ANSWER: &str = "[[\"urlkey\",\"timestamp\",\"original\",\"statuscode\"],\n\
        [\"org,a)/\",\"20140103030321\",\"http:\\/\\/a.org\\/]\\\"\",\"200\"],\n[\"a\"], 7, \"x\",\n[\"k\",null,null,\"-\"],[],[\"resume\"]]\n";

    #[test]
    fn rows_of_a_cdx_server() {
        assert_eq!(JsonLayout::detect(ANSWER.as_bytes()), Some(JsonLayout::CdxRows));
        let refused = |at, text: &str| (at, text.to_string(), None, Some(FaultKind::NotOfFormat));
        let expected = vec![
            (49, "http://a.org/]\"".to_string(), Some(200), None),
            refused(107, "[\"a\"]"),
            refused(114, "7"),
            refused(117, "\"x\""),
            (122, "[\"k\",null,null,\"-\"]".to_string(), None, Some(FaultKind::NoUrl)),
        ];
        for step in [1, 2, 7, 1000] {
            assert_eq!(parse(JsonLayout::CdxRows, ANSWER, step), (expected.clone(), 3, DocumentEnd::Whole), "{step}");
        }
        let twice = parse(JsonLayout::CdxRows, &ANSWER.repeat(2), 9);
        assert_eq!((twice.0.len(), twice.1, twice.2), (10, 6, DocumentEnd::Whole));
        assert_eq!(parse(JsonLayout::CdxRows, "[]", 1), (vec![], 0, DocumentEnd::Whole));
    }

    const HAR: &str = r#" {"log": {"version": "1.2", "pages": [{"id": "p", "title": "]}"}], "x": -1.5e3, "entries": [
        {"pageref": "p", "request": {"url": "http://a/\u00e9", "headers": [7, {"name": "Accept"}, {"name": "referer", "value": "http://p/"}]}, "response": {"status": 200, "content": {"text": "\"}]\\"}}},
        {"request": {"method": "GET"}, "response": {"status": 0}}, {"a" 1}, []
      ], "comment": null}, "more": [1, {"entries": [{}]}]}"#;

    #[test]
    fn entries_of_har() {
        assert_eq!(JsonLayout::detect(HAR.as_bytes()), Some(JsonLayout::Har));
        let (rows, headers, end) = parse(JsonLayout::Har, HAR, 1 << 20);
        let kinds: Vec<_> = rows.iter().map(|row| (row.2, row.3)).collect();
        let broken = (None, Some(FaultKind::NotOfFormat));
        assert_eq!(kinds, [(Some(200), None), (None, Some(FaultKind::NoUrl)), broken, broken]);
        let entry = br#"{"request": {"headers": [7, {"name": "Accept"}, {"name": "referer", "value": "http://p/"}]}}"#;
        assert_eq!(referrer(entry), Some(&b"http://p/"[..]));
        assert_eq!(referrer(b"{}"), None);
        assert_eq!((rows[0].1.as_str(), headers, end), ("http://a/é", 0, DocumentEnd::Whole));
        for step in [1, 3, 50] {
            assert_eq!(parse(JsonLayout::Har, HAR, step).0, rows, "{step}");
        }
    }

    #[test]
    fn every_truncation_gives_the_rows_before_it() {
        for (layout, text) in [(JsonLayout::CdxRows, ANSWER.trim_end()), (JsonLayout::Har, HAR)] {
            let whole = parse(layout, text, 1000).0;
            for len in 2..text.len() {
                let (rows, _, end) = parse(layout, &text[..len], 1000);
                assert!(whole.starts_with(&rows) && matches!(end, DocumentEnd::Truncated(_)), "{len} {end:?}");
            }
        }
        for text in [
            "[[\"original\"]]]",
            "{\"log\":[]}",
            "{\"log\":{\"entries\":{}}}",
            "{1}",
            "{\"log\":{}}",
            "{\"log\":{\"entries\":[]}}x",
            "true",
        ] {
            let layout = if text.starts_with('[') { JsonLayout::CdxRows } else { JsonLayout::Har };
            assert_eq!(parse(layout, text, 3).2, DocumentEnd::Broken, "{text}");
        }
    }

    #[test]
    fn long_strings_are_not_held() {
        let body = "\\n".repeat(MAX_STRING_LEN);
        let text = format!("{{\"log\":{{\"entries\":[{{\"b\":\"{body}\",\"request\":{{\"url\":\"http://a/\"}}}}]}}}}");
        let mut parser = JsonDocumentParser::new(JsonLayout::Har, 0, 3 * MAX_STRING_LEN);
        let mut rows = RecordBuffer::default();
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            rest = &rest[parser.push(&rest[..rest.len().min(1000)], &mut rows)..];
        }
        assert!(parser.value.text.capacity() <= 4 * MAX_STRING_LEN, "{}", parser.value.text.capacity());
        assert_eq!(
            (rows.records().faults.len(), rows.records().urls[0].of(rows.records().text)),
            (0, &b"http://a/"[..])
        );
        let short = parse(JsonLayout::Har, &text, 1 << 20);
        assert_eq!(short.0[0].3, Some(FaultKind::TooLong));
    }
}
