//! The charsets of rows. A charset applies to URLs and bases that are bytes: text was decoded before (RFC 3987 section 3.1,
//! step 1). The library decodes the URL of a record and its base in one charset, so that a base of the other kind is changed
//! before.

use std::borrow::Cow;
use std::io::Write as _;

use irikey::encoding::Charset;

use crate::column::{Column, TextRows};
use crate::configuration::Operand;

/// The charsets of rows: a column of labels, a label for all rows, or both; the latter is then for rows without a label.
pub struct Charsets {
    pub column: Option<Column>,
    common: Option<(Box<str>, Charset)>,
}

impl Charsets {
    /// `operand` is that of the configuration, whose literal is a known label.
    pub fn new(column: Option<Column>, operand: &Operand) -> Charsets {
        let common = operand.literal.as_deref().and_then(|label| Some((label.into(), Charset::named(label)?)));
        Charsets { column, common }
    }

    /// Returns whether records need labels: their charsets may differ.
    pub fn has_labels(&self, url: &Column) -> bool {
        match url.text {
            TextRows::All => false,
            TextRows::None => self.column.is_some(),
            TextRows::Some(_) => self.column.is_some() || self.common.is_some(),
        }
    }

    /// Returns the charset of all records; `None` if they have labels or need not be decoded.
    pub fn of_all(&self, url: &Column) -> Option<Charset> {
        let has_one = matches!(url.text, TextRows::None) && self.column.is_none();
        self.common.as_ref().filter(|_| has_one).map(|(_, charset)| *charset)
    }

    /// Returns the label of the record of a row, empty if it need not be decoded.
    pub fn label(&self, url: &Column, row: usize) -> &[u8] {
        if url.text.contains(row) { b"" } else { self.label_of_bytes(row) }
    }

    fn label_of_bytes(&self, row: usize) -> &[u8] {
        self.own_label(row).or(self.common.as_ref().map(|(label, _)| label.as_bytes())).unwrap_or_default()
    }

    /// Returns the label that the column has in a row.
    fn own_label(&self, row: usize) -> Option<&[u8]> {
        self.column.as_ref().map(|column| column.value(row).trim_ascii()).filter(|label| !label.is_empty())
    }

    /// Returns the charset of bytes in a row; `None` if there is none, or its label is unknown.
    pub fn of_row(&self, row: usize) -> Option<Charset> {
        match self.own_label(row) {
            Some(label) => Charset::named(std::str::from_utf8(label).ok()?),
            None => self.common.as_ref().map(|(_, charset)| *charset),
        }
    }
}

/// Returns the base of a URL as the library reads it: decoded in `charset` if the URL is bytes, and as it is if the URL is text.
/// `is_text` is whether the base is text, and whether the URL is. A base that cannot be decoded stays as it is.
pub fn base_beside(base: &[u8], is_text: [bool; 2], charset: impl FnOnce() -> Option<Charset>) -> Cow<'_, [u8]> {
    if is_text[0] == is_text[1] {
        return base.into();
    }
    match (charset(), is_text) {
        (Some(charset), [false, true]) => match charset.decode(base) {
            Ok(Cow::Borrowed(text)) => text.as_bytes().into(),
            Ok(Cow::Owned(text)) => text.into_bytes().into(),
            Err(_) => base.into(),
        },
        (Some(charset), _) => ascii_in(charset, base),
        (None, _) => base.into(),
    }
}

/// Returns a text as ASCII that is written in `charset`, which only UTF-16 writes in another way.
fn ascii_in(charset: Charset, text: &[u8]) -> Cow<'_, [u8]> {
    match charset.name() {
        "UTF-16LE" => escaped(text).into_iter().flat_map(|byte| [byte, 0]).collect(),
        "UTF-16BE" => escaped(text).into_iter().flat_map(|byte| [0, byte]).collect(),
        _ if text.is_ascii() => text.into(),
        _ => escaped(text).into(),
    }
}

/// Returns a text as ASCII: other characters are percent-encoded (section 3.1, step 2).
fn escaped(text: &[u8]) -> Vec<u8> {
    let mut ascii = Vec::with_capacity(3 * text.len());
    for byte in text {
        match byte.is_ascii() {
            true => ascii.push(*byte),
            // Writing to memory does not fail.
            false => drop(write!(ascii, "%{byte:02X}")),
        }
    }
    ascii
}
