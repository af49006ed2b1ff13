//! Rows of a Wayback CDX server: arrays of values, of which the first names the columns.

use super::json_record::JsonRecord;
use crate::iri::FaultKind;
use crate::record::buffer::{RecordBuffer, append, append_with};
use crate::record::cdx;
use crate::record::fields::FieldValues;
use crate::record::json::{JsonElements, JsonValue, unescape};

/// Maximum number of columns of a response.
pub(super) const MAX_COLUMNS: usize = 64;

/// What is known of the rows of a response.
#[derive(Debug, Default)]
pub(super) struct CdxRows {
    /// The columns by the letters of CDX, 0 for those that are not read; `None` before the first row.
    letters: Option<Vec<u8>>,
    /// An empty row was read: what follows is the key to resume.
    is_ending: bool,
    /// Rows that are not records, of all responses.
    header_count: u64,
}

/// Whether the values of a row name columns, one of which is the URL.
pub(super) fn is_header(values: &[JsonValue<'_>]) -> bool {
    values.iter().any(|value| letter(value) == b'a')
}

/// The letter of CDX for a column; 0 if it is not read.
fn letter(name: &JsonValue<'_>) -> u8 {
    match name {
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
    }
}

impl CdxRows {
    /// Number of rows that are not records.
    pub(super) fn header_count(&self) -> u64 {
        self.header_count
    }

    /// Begins a response, whose columns are not known yet.
    pub(super) fn begin_response(&mut self) {
        (self.letters, self.is_ending) = (None, false);
    }

    /// Appends a row, unless it names the columns or holds the key to resume.
    pub(super) fn push(&mut self, record: &JsonRecord<'_>, rows: &mut RecordBuffer) {
        let values: Vec<_> = JsonElements::new(record.text).take(MAX_COLUMNS + 1).collect();
        if !record.text.starts_with(b"[") || record.is_too_long {
            return record.refuse(rows);
        }
        match &self.letters {
            None if values.len() <= MAX_COLUMNS && is_header(&values) => {
                self.letters = Some(values.iter().map(letter).collect());
                self.header_count += 1;
            }
            None => record.refuse(rows),
            Some(_) if values.is_empty() || (self.is_ending && values.len() == 1) => {
                self.is_ending = values.is_empty();
                self.header_count += 1;
            }
            Some(letters) if letters.len() != values.len() => record.refuse(rows),
            Some(letters) => push_values(record, letters.iter().copied().zip(values), rows),
        }
    }
}

/// Appends a row of values, each with the letter of its column.
fn push_values<'a>(
    record: &JsonRecord<'_>,
    values: impl Iterator<Item = (u8, JsonValue<'a>)>,
    rows: &mut RecordBuffer,
) {
    rows.begin(record.at);
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
        append(&mut rows.text, record.beginning())
    });
    rows.columns.push(url, &fields);
}
