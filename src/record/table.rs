//! Rows of a table, whose columns were decoded elsewhere, as records. In: fields, row by row. Out: [`Records`], whose spans
//! point into one text of copies; as many rows as are made of one batch of the table are kept together.

use super::copies::Copies;
use super::fields::{FieldBuffers, FieldSet, FieldValues};
use super::{Offsets, Records, Span};
use crate::iri::{CLASSIFIER, Component, Fault, FaultKind};
use crate::kernel::Bitmaps;

/// Rows of a table, copied out of its columns.
///
/// ```
/// use irikey::kernel::Bitmaps;
/// use irikey::record::fields::{FieldSet, FieldValues};
/// use irikey::record::table::TableRecords;
/// let mut rows = TableRecords::new(FieldSet::ALL);
/// rows.begin(7, Some(b"http://example.org/"));
/// let digest = rows.text(Some(b"sha1:X"));
/// rows.end(FieldValues { digest, ..FieldValues::default() });
/// let mut bitmaps = Bitmaps::default();
/// let records = rows.records(&mut bitmaps);
/// assert_eq!(records.urls[0].of(records.text), b"http://example.org/");
/// assert_eq!(records.fields.digests[0].unwrap().of(records.text), b"sha1:X");
/// ```
#[derive(Debug, Default)]
pub struct TableRecords {
    copies: Copies,
    numbers: Vec<u64>,
    faults: Vec<(u32, Fault)>,
    fields: FieldBuffers,
}

impl TableRecords {
    /// No rows yet, of which these fields are kept.
    pub fn new(carry: FieldSet) -> TableRecords {
        let mut rows = TableRecords::default();
        rows.fields.set_carry(carry);
        rows
    }

    /// Makes room for so many more rows and bytes of text.
    pub fn reserve(&mut self, rows: usize, text_len: usize) {
        self.numbers.reserve(rows);
        self.copies.reserve(rows, text_len);
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// There is none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Bytes of their text.
    pub fn text_len(&self) -> usize {
        self.copies.text_len()
    }

    /// Row `number` of the table begins, with its URL; without one it is refused. Its other fields follow.
    pub fn begin(&mut self, number: u64, url: Option<&[u8]>) {
        if url.is_none() {
            let fault = Fault::new(FaultKind::NoUrl, Component::Reference, 0);
            self.faults.push((self.numbers.len() as u32, fault));
        }
        self.numbers.push(number);
        self.copies.push_url(url.unwrap_or_default());
    }

    /// The base of the row that has begun; each has one, if only an empty one, or none has.
    pub fn base(&mut self, base: &[u8]) {
        self.copies.push_base(base);
    }

    /// A text of the row that has begun; an empty one says nothing.
    pub fn text(&mut self, text: Option<&[u8]>) -> Option<Span> {
        text.filter(|text| !text.is_empty()).map(|text| self.copies.put(text))
    }

    /// The row that has begun ends, with what is carried.
    pub fn end(&mut self, field: FieldValues) {
        self.fields.push(field);
    }

    /// All of them; `bitmaps` describe their text afterwards. A row's offset is its number.
    pub fn records(&self, bitmaps: &mut Bitmaps) -> Records<'_> {
        let records = self.copies.records();
        bitmaps.classify(records.text, &CLASSIFIER);
        Records { offsets: Offsets::Each(&self.numbers), faults: &self.faults, fields: self.fields.views(), ..records }
    }
}
