//! Fields copied out of where they stood: quoted text, columns with gaps. In: fields, row by row. Out: [`Records`] whose
//! spans point into one text of copies.

use super::{Records, Span};

/// Appends what `write` writes, and `LF` behind it: halves of a character in neighbours must not look like one.
pub(super) fn put(text: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Span {
    let at = text.len();
    write(text);
    let len = text.len() - at;
    text.push(b'\n');
    Span { at: at as u32, len: len as u32 }
}

/// Copies of the fields that records are made of, column by column; keeps its memory.
///
/// ```
/// use irikey::record::copies::Copies;
/// let mut copies = Copies::default();
/// for path in ["a", "b"] {
///     copies.push_url(path.as_bytes());
///     copies.push_base(b"http://example.org/");
/// }
/// let records = copies.records();
/// assert_eq!(records.urls[1].of(records.text), b"b");
/// assert_eq!(records.bases[1], records.bases[0]);
/// ```
#[derive(Debug, Default)]
pub struct Copies {
    text: Vec<u8>,
    urls: Vec<Span>,
    bases: Vec<Span>,
    charsets: Vec<Option<Span>>,
    query_charsets: Vec<Option<Span>>,
}

impl Copies {
    /// Forgets all fields.
    pub fn clear(&mut self) {
        self.text.clear();
        self.urls.clear();
        self.bases.clear();
        self.charsets.clear();
        self.query_charsets.clear();
    }

    /// Records begun so far.
    pub fn len(&self) -> usize {
        self.urls.len()
    }

    /// No record has begun.
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }

    /// Makes room for so many more records and bytes of text.
    pub(super) fn reserve(&mut self, records: usize, text_len: usize) {
        self.urls.reserve(records);
        self.text.reserve(text_len);
    }

    /// Bytes of all copies.
    pub fn text_len(&self) -> usize {
        self.text.len()
    }

    /// Copies a field that is kept elsewhere.
    pub(super) fn put(&mut self, field: &[u8]) -> Span {
        put(&mut self.text, |text| text.extend_from_slice(field))
    }

    /// Begins a record with its URL. Its other fields follow, the same ones in every record.
    pub fn push_url(&mut self, field: &[u8]) {
        let url = self.put(field);
        self.urls.push(url);
    }

    /// The record's base.
    pub fn push_base(&mut self, field: &[u8]) {
        let base = put_again(&mut self.text, self.bases.last().copied(), field);
        self.bases.push(base);
    }

    /// Label of the charset that the record is written in.
    pub fn push_charset(&mut self, field: &[u8]) {
        let label = put_again(&mut self.text, self.charsets.last().copied().flatten(), field);
        self.charsets.push(Some(label));
    }

    /// Label of the charset of the document that the URL stood in.
    pub fn push_query_charset(&mut self, field: &[u8]) {
        let label = put_again(&mut self.text, self.query_charsets.last().copied().flatten(), field);
        self.query_charsets.push(Some(label));
    }

    /// All of it.
    pub fn records(&self) -> Records<'_> {
        Records {
            text: &self.text,
            urls: &self.urls,
            bases: &self.bases,
            charsets: &self.charsets,
            query_charsets: &self.query_charsets,
            ..Records::default()
        }
    }
}

/// Copies a field that neighbours often share; one copy then serves them all.
fn put_again(text: &mut Vec<u8>, last: Option<Span>, field: &[u8]) -> Span {
    last.filter(|last| last.of(text) == field).unwrap_or_else(|| put(text, |text| text.extend_from_slice(field)))
}
