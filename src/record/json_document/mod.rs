//! Records within one JSON document: responses of Wayback CDX servers, whose rows are arrays, and HAR files.
//!
//! ```text
//! bytes --ElementScanner--> one element of the array of records --JsonLayout--> row
//! ```
//!
//! A push parser that holds one element at a time. Of a long string in HAR, such as the body of a response, only the beginning
//! is held, and fields are not read from it; URLs are held whole. An element that is not a record is a row with a fault. What
//! is not part of an array of records is skipped.
//!
//! - A CDX server responds with `[["urlkey", "timestamp", "original"], ["org,a)/", "20140103030321", "http://a.org/"], ...]`: the
//!   first row names the columns. An empty row and a row of one member at the end are a key to resume, which is counted
//!   like a header. Several responses may follow each other, and a response without a row is `[]`.
//! - HAR (HTTP Archive 1.2) has its records in `log.entries`.

mod cdx_rows;
mod har;
mod json_record;
#[cfg(test)]
mod tests;
mod value_scanner;

use super::buffer::RecordBuffer;
use super::json::{JsonElements, JsonValue};
use crate::encoding::utf16_len;
use cdx_rows::CdxRows;
use json_record::JsonRecord;
use value_scanner::{HeldLimits, ValueScanner};

/// Maximum length of a string of HAR that is held, in bytes, unless it is a URL or `--max-record` is less.
const MAX_STRING_LEN: usize = 4 << 20;

/// Maximum number of bytes of a key that are compared.
const MAX_KEY_LEN: usize = 32;

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
            [b'[', rest @ ..] => match rest.trim_ascii_start() {
                [b']', after @ ..] => are_cdx_responses(after).then_some(JsonLayout::CdxRows),
                row => begins_with_header(row).then_some(JsonLayout::CdxRows),
            },
            text @ [b'{', ..] => {
                let (key, value) = first_member(text)?;
                (key == b"log" && is_har_log(value)).then_some(JsonLayout::Har)
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

    /// The limits of what is held of a record of at most `value_len` bytes. URLs have no limit of their own, because two
    /// different URLs could have the same beginning. Rows of CDX servers have no other long strings.
    fn limits(self, value_len: usize) -> HeldLimits {
        match self {
            JsonLayout::CdxRows => HeldLimits { string_len: value_len, value_len, whole_keys: &[] },
            JsonLayout::Har => {
                HeldLimits { string_len: MAX_STRING_LEN.min(value_len), value_len, whole_keys: har::URL_KEYS }
            }
        }
    }
}

/// Whether what follows an empty response of a CDX server is nothing, or further responses.
fn are_cdx_responses(text: &[u8]) -> bool {
    let mut rest = text.trim_ascii_start();
    while let Some(response) = rest.strip_prefix(b"[").map(<[u8]>::trim_ascii_start) {
        match response.strip_prefix(b"]") {
            Some(after) => rest = after.trim_ascii_start(),
            None => return begins_with_header(response),
        }
    }
    rest.is_empty()
}

/// Whether a text begins with a row that names columns.
fn begins_with_header(text: &[u8]) -> bool {
    let names: Vec<JsonValue<'_>> = JsonElements::new(text).take(cdx_rows::MAX_COLUMNS).collect();
    text.starts_with(b"[") && cdx_rows::is_header(&names)
}

/// The first key of an object that may be cut short, and the text from its value on.
fn first_member(object: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = object.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"")?;
    let end = memchr::memchr(b'"', text)?;
    let value = text[end + 1..].trim_ascii_start().strip_prefix(b":")?;
    Some((&text[..end], value.trim_ascii_start()))
}

/// Whether the object begins with a member of a HAR log.
fn is_har_log(text: &[u8]) -> bool {
    let names: [&[u8]; 6] = [b"version", b"creator", b"browser", b"pages", b"entries", b"comment"];
    first_member(text).is_some_and(|(key, _)| names.contains(&key))
}

/// Where the parser is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum DocumentState {
    /// Before a document.
    #[default]
    Start,
    /// In an object on the way to the records, this many objects deep, before a key.
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
    /// The text was decoded from UTF-16, and positions are those before that.
    is_utf16: bool,
    /// The next byte, and where the current record begins.
    at: u64,
    record_at: u64,
    value: ValueScanner,
    /// The current document has an array of records.
    has_records: bool,
    /// What is known of the rows of a CDX server.
    cdx_rows: CdxRows,
}

/// How a document ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentEnd {
    Whole,
    /// Within the document, after this many bytes of an unfinished record.
    Truncated(u64),
    /// At something that is not such a document.
    Broken,
}

impl JsonDocumentParser {
    /// A parser of a document that begins at byte `at` of its source.
    pub(crate) fn new(layout: JsonLayout, at: u64, max_record_len: usize) -> JsonDocumentParser {
        let limits = layout.limits(max_record_len);
        let (state, value) = (DocumentState::Start, ValueScanner::default());
        JsonDocumentParser {
            layout,
            limits,
            state,
            is_utf16: false,
            at,
            record_at: at,
            value,
            has_records: false,
            cdx_rows: CdxRows::default(),
        }
    }

    /// States whether the text is decoded from UTF-16.
    pub(crate) fn set_utf16(&mut self, is_utf16: bool) {
        self.is_utf16 = is_utf16;
    }

    /// Whether the text is decoded from UTF-16.
    pub(crate) fn is_utf16(&self) -> bool {
        self.is_utf16
    }

    /// The byte of the source up to which it was parsed.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// The number of rows of CDX servers that are not records.
    pub(crate) fn header_count(&self) -> u64 {
        self.cdx_rows.header_count()
    }

    /// Size of the last record in bytes, as far as it was held.
    pub(crate) fn record_len(&self) -> usize {
        self.value.text.len()
    }

    /// Parses bytes until a row was appended, or to their end. Returns how many were parsed. Parses nothing after a
    /// fault of the document.
    pub(crate) fn push(&mut self, bytes: &[u8], rows: &mut RecordBuffer) -> usize {
        let (count, mut taken) = (rows.len(), 0);
        while taken < bytes.len() && rows.len() == count && self.state != DocumentState::Broken {
            let len = self.step(&bytes[taken..], rows);
            self.at += if self.is_utf16 { utf16_len(&bytes[taken..taken + len]) } else { len } as u64;
            taken += len;
        }
        taken
    }

    /// Whether the parser met something that is not such a document.
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
                let (len, is_end) = self.value.push(bytes, HeldLimits::NOTHING);
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
            self.has_records = false;
            self.cdx_rows.begin_response();
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

    /// Reads a key, with its quotes, of an object that is `depth` objects deep.
    fn read_key(&mut self, bytes: &[u8], depth: usize) -> usize {
        let limits = HeldLimits { string_len: MAX_KEY_LEN, value_len: 2 * MAX_KEY_LEN, whole_keys: &[] };
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
            let ValueScanner { text, cuts, is_too_long, .. } = &self.value;
            let record = JsonRecord { at: self.record_at, text, cuts, is_too_long: *is_too_long };
            match self.layout {
                JsonLayout::CdxRows => self.cdx_rows.push(&record, rows),
                JsonLayout::Har => har::push_entry(&record, rows),
            }
        }
        len
    }
}
