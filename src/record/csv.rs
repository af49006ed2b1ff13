//! CSV and TSV through the crate csv-core: the URL, base and charset fields of each record, unquoted, in a text of
//! the decoder. RFC 4180 and more: records may differ in their number of fields, and bytes need not be UTF-8.
//!
//! That crate decides: a record ends at `LF`, `CR LF` or `CR` outside quotes; blank lines are not records; a quote
//! opens only at the beginning of a field. Tables whose delimiter is a tab have no quotes, unless they are asked for. A
//! line with a quote that is not closed properly is a record with a fault (see `Boundary`), and the line is its URL. A
//! record with too few fields for its URL has a fault and an empty URL; a record with too few fields for its base or a charset
//! has an empty base or charset. In a table that this program wrote, the text of a record with an empty URL is in another column
//! ([`CsvColumns::input`]); such a record has a fault as well.

mod columns;
mod comments;
mod fields;

pub use columns::{ColumnChoice, ColumnChoiceError, CsvColumns, CsvFirstRecord, CsvHeader, CsvOptions, CsvQuote};
pub(crate) use columns::{URL_COLUMN_NAMES, without_quotes};
pub(crate) use comments::CsvComments;
use fields::{CsvField, CsvFieldReader, CsvRecord, CsvRecordReader, build_reader};

use super::boundary::{Boundary, Quoting};
use super::buffer::{RecordBuffer, without_cr};
use super::decoder::TextDecoder;
use super::records::Records;
use crate::iri::FaultKind;
use crate::kernel::{Bitmaps, Span};
use csv_core::Reader;

/// The delimiter of a source and the columns that are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvLayout {
    /// The byte between fields.
    pub delimiter: u8,
    /// The byte around fields, if there is one.
    pub quote: Option<u8>,
    /// Where the fields are.
    pub columns: CsvColumns,
}

impl Default for CsvLayout {
    fn default() -> CsvLayout {
        CsvLayout { delimiter: b',', quote: Some(b'"'), columns: CsvColumns::default() }
    }
}

/// Decoder of CSV.
#[derive(Debug)]
pub struct Csv {
    layout: CsvLayout,
    /// Reads tables of the layout.
    reader: Box<Reader>,
    /// The record that is read.
    record: CsvRecord,
    fields: DecodedFields,
    /// Memory of the field that is read.
    field: Vec<u8>,
    rows: RecordBuffer,
}

impl Default for Csv {
    fn default() -> Csv {
        let layout = CsvLayout::default();
        Csv {
            reader: build_reader(layout.delimiter, layout.quote),
            layout,
            record: CsvRecord::default(),
            fields: DecodedFields::default(),
            field: Vec::new(),
            rows: RecordBuffer::default(),
        }
    }
}

/// Texts up to this length are read record by record, which takes half the time of reading field by field. A record
/// takes up to 28 bytes of memory per byte of text.
const MAX_RECORDS_LEN: usize = if cfg!(test) { 64 } else { 2 << 20 };

/// The decoded fields of a long record.
#[derive(Debug, Default)]
struct DecodedFields {
    text: Vec<u8>,
    /// The columns and where their fields are in `text`.
    spans: Vec<(usize, Span)>,
}

impl DecodedFields {
    fn clear(&mut self) {
        self.text.clear();
        self.spans.clear();
    }

    /// Keeps the field of `column` if it is decoded.
    fn insert(&mut self, columns: &CsvColumns, column: usize, value: &[u8]) {
        let decoded = [Some(columns.url), columns.input, columns.base, columns.charset, columns.query_charset];
        if decoded.contains(&Some(column)) {
            self.spans.push((column, Span::new(self.text.len(), value.len())));
            self.text.extend_from_slice(value);
        }
    }

    fn get(&self, column: usize) -> Option<&[u8]> {
        self.spans.iter().find(|(other, _)| *other == column).map(|(_, span)| span.of(&self.text))
    }
}

impl TextDecoder for Csv {
    type Settings = CsvLayout;

    fn quoting(layout: &CsvLayout) -> Option<Quoting> {
        layout.quote.map(|quote| Quoting { quote, delimiter: layout.delimiter })
    }

    fn set_settings(&mut self, layout: &CsvLayout) {
        if (layout.delimiter, layout.quote) != (self.layout.delimiter, self.layout.quote) {
            self.reader = build_reader(layout.delimiter, layout.quote);
        }
        self.layout.clone_from(layout);
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        self.rows.clear();
        let mut boundary = Boundary::new(Csv::quoting(&self.layout), usize::MAX);
        let mut at = 0;
        while let Some(broken) = boundary.find_broken(chunk) {
            self.decode_sound(&chunk[at..broken.start], offset + at as u64);
            self.push_broken(&chunk[broken.clone()], offset + broken.start as u64);
            at = broken.end;
        }
        self.decode_sound(&chunk[at..], offset + at as u64);
        self.rows.classified_records(bitmaps)
    }
}

impl Csv {
    /// Decodes records whose quotes are closed.
    fn decode_sound(&mut self, text: &[u8], offset: u64) {
        match text.len() {
            0 => (),
            len if len <= MAX_RECORDS_LEN => self.decode_records(text, offset),
            _ => self.decode_fields(text, offset),
        }
    }

    fn decode_records(&mut self, text: &[u8], offset: u64) {
        let Csv { layout: CsvLayout { columns, .. }, reader, record, rows, .. } = self;
        let mut reader = CsvRecordReader::new(reader, text);
        let mut record_at = 0;
        while reader.read(record) {
            let offset = offset + record_start(text, record_at) as u64;
            push(rows, columns, |column| record.get(column), offset);
            record_at = reader.position();
        }
    }

    /// Does the same without holding a record, which may have millions of fields.
    fn decode_fields(&mut self, text: &[u8], offset: u64) {
        let Csv { layout: CsvLayout { columns, .. }, reader, fields, field, rows, .. } = self;
        let mut reader = CsvFieldReader::new(reader, text, field);
        let (mut column, mut record_at) = (0, 0);
        fields.clear();
        while let Some(CsvField { value, ends_record }) = reader.next() {
            fields.insert(columns, column, value);
            column += 1;
            if ends_record {
                let offset = offset + record_start(text, record_at) as u64;
                push(rows, columns, |column| fields.get(column), offset);
                fields.clear();
                (column, record_at) = (0, reader.position());
            }
        }
    }

    /// Appends a line whose quotes are not closed.
    fn push_broken(&mut self, line: &[u8], offset: u64) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        self.rows.refuse(FaultKind::NotOfFormat);
        self.rows.begin(offset);
        self.rows.push_url(without_cr(line));
        push_labels(&mut self.rows, &self.layout.columns, |_| None);
    }
}

/// Appends a record, of which `field` returns the fields by their columns.
fn push<'a>(rows: &mut RecordBuffer, columns: &CsvColumns, field: impl Fn(usize) -> Option<&'a [u8]>, offset: u64) {
    let text = match (field(columns.url), columns.input) {
        (Some([]), Some(input)) => {
            rows.refuse(FaultKind::NoUrl);
            field(input)
        }
        (Some(url), _) => Some(url),
        (None, _) => {
            rows.refuse(FaultKind::MissingColumn);
            None
        }
    };
    rows.begin(offset);
    rows.push_url(text.unwrap_or_default());
    push_labels(rows, columns, field);
}

/// Appends the base and the charsets of the current record.
fn push_labels<'a>(rows: &mut RecordBuffer, columns: &CsvColumns, field: impl Fn(usize) -> Option<&'a [u8]>) {
    let value = |column: usize| field(column).unwrap_or_default();
    if let Some(column) = columns.base {
        rows.push_base(value(column));
    }
    if let Some(column) = columns.charset {
        rows.push_charset(value(column));
    }
    if let Some(column) = columns.query_charset {
        rows.push_query_charset(value(column));
    }
}

/// The start of the record that is read from `at` on: after blank lines, and after the `LF` of the `CR LF` that
/// ends the record before.
fn record_start(chunk: &[u8], at: usize) -> usize {
    let rest = &chunk[at.min(chunk.len())..];
    at + rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::Fault;

    fn decoder(columns: CsvColumns) -> Csv {
        let mut csv = Csv::default();
        csv.set_settings(&CsvLayout { columns, ..CsvLayout::default() });
        csv
    }

    fn decode(text: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let (mut csv, mut bitmaps) = (Csv::default(), Bitmaps::default());
        let records = csv.decode(text, 100, &mut bitmaps);
        records.urls.iter().zip(records.each_offset()).map(|(url, &at)| (url.of(records.text).to_vec(), at)).collect()
    }

    #[test]
    fn offsets_are_where_records_begin() {
        let text = b"\r\n\na,b\r\n\"c\nd\",e\n\n\"f\"\"\"\rg";
        let want = [("a", 103), ("c\nd", 108), ("f\"", 117), ("g", 123)];
        assert_eq!(decode(text), want.map(|(url, at)| (url.as_bytes().to_vec(), at)));
    }

    #[test]
    fn a_byte_order_mark_within_a_source_stays() {
        assert_eq!(decode(b"\xEF\xBB\xBFa\nb\n"), [(b"\xEF\xBB\xBFa".to_vec(), 100), (b"b".to_vec(), 105)]);
    }

    #[test]
    fn records_between_broken_ones_are_read_with_the_current_layout() {
        let (mut csv, mut bitmaps) = (Csv::default(), Bitmaps::default());
        let text = b"\"a;b\",1\n\"x\nc,d\n".repeat(3);
        for (delimiter, quote, want) in [
            (b',', Some(b'"'), ["a;b", "\"x", "c"]),
            (b';', Some(b'"'), ["a;b,1", "\"x", "c,d"]),
            (b',', None, ["\"a;b\"", "\"x", "c"]),
            (b';', Some(b'\''), ["\"a", "\"x", "c,d"]),
            (b',', Some(b'"'), ["a;b", "\"x", "c"]),
        ] {
            csv.set_settings(&CsvLayout { delimiter, quote, columns: CsvColumns::default() });
            let records = csv.decode(&text, 0, &mut bitmaps);
            let urls: Vec<_> = records.urls.iter().map(|url| url.of(records.text)).collect();
            assert_eq!(urls, want.map(str::as_bytes).repeat(3), "{delimiter} {quote:?}");
            assert_eq!(records.faults.len(), if quote == Some(b'"') { 3 } else { 0 }, "{delimiter} {quote:?}");
        }
    }

    #[test]
    fn texts_of_records_without_a_url_are_in_another_column() {
        let mut csv = decoder(CsvColumns { url: 1, input: Some(2), ..CsvColumns::default() });
        let mut bitmaps = Bitmaps::default();
        for long in ["c".to_string(), "c".repeat(MAX_RECORDS_LEN)] {
            let text = format!("0,u,a\n1,,\"b,\"\n2,,\n3,\n4\n5,,{long}\n");
            let records = csv.decode(text.as_bytes(), 0, &mut bitmaps);
            let urls: Vec<_> = records.urls.iter().map(|url| url.of(records.text)).collect();
            assert_eq!(urls, [&b"u"[..], b"b,", b"", b"", b"", long.as_bytes()]);
            let faults: Vec<_> = records.faults.iter().map(|(row, fault)| (*row, fault.kind)).collect();
            let (no_url, missing) = (FaultKind::NoUrl, FaultKind::MissingColumn);
            assert_eq!(faults, [(1, no_url), (2, no_url), (3, no_url), (4, missing), (5, no_url)]);
        }
    }

    #[test]
    fn missing_fields_and_shared_bases() {
        let mut csv = decoder(CsvColumns { url: 1, base: Some(0), ..CsvColumns::default() });
        let mut bitmaps = Bitmaps::default();
        let records = csv.decode(b"base,u1\nbase,u2\nbase\nother,u3\n", 0, &mut bitmaps);
        assert_eq!(records.text, b"u1\nbase\nu2\n\nu3\nother\n");
        let fault = Fault::of_reference(FaultKind::MissingColumn);
        assert_eq!(records.faults, [(2, fault)]);
        let bases: Vec<_> = records.bases.iter().map(|base| base.of(records.text)).collect();
        assert_eq!(bases, [&b"base"[..], b"base", b"base", b"other"]);
        assert!(records.urls.windows(2).all(|pair| pair[0].at + pair[0].len <= pair[1].at));
    }
}
