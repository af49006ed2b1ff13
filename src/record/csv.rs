//! CSV and TSV through the csv crate: whole records of a chunk in, their URL, base and charset fields out, unquoted, end
//! to end in a text of our own. RFC 4180, and wider: records may differ in their number of fields, and bytes need not be
//! UTF-8.
//!
//! What the csv crate decides: a record ends at `LF`, `CR LF` or `CR` outside quotes; blank lines are no records; a
//! quote opens only at the beginning of a field; an unclosed one reaches to the end of the source. A record with too
//! few fields for its URL has a fault and an empty URL; one with too few for its base or a charset has an empty one.

mod columns;

pub use columns::{Column, Columns, ColumnsError, CsvOptions, First, Header, KNOWN};

use super::boundary::Quoting;
use super::copies::Copies;
use super::{Offsets, Records};
use crate::iri::{CLASSIFIER, Component, Fault, FaultKind};
use crate::kernel::Bitmaps;
use ::csv::{ByteRecord, Reader, ReaderBuilder};
use std::io::Read;

/// Bytes that the csv crate copies at a time; a chunk is in the cache anyway.
const READ_LEN: usize = 32 << 10;

impl CsvOptions {
    /// How the dialect quotes.
    pub fn quoting(&self) -> Quoting {
        Quoting { quote: b'"', delimiter: self.delimiter }
    }

    /// A reader of the records in `bytes`, which begin with a record. `prefix` is for [`guard`].
    fn reader<'a>(&self, prefix: &'a [u8], bytes: &'a [u8]) -> Reader<impl Read + 'a> {
        ReaderBuilder::new()
            .delimiter(self.delimiter)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(READ_LEN.min(bytes.len() + 1))
            .from_reader(prefix.chain(bytes))
    }
}

/// The csv crate drops a byte-order mark at the beginning of whatever it reads. Ours was dropped with the source's
/// first bytes: one that begins a chunk belongs to a record. A blank line before it keeps it.
fn guard(bytes: &[u8]) -> &'static [u8] {
    if bytes.starts_with(b"\xEF\xBB\xBF") { b"\n" } else { b"" }
}

/// Decoder of CSV; keeps the memory of its text and spans.
#[derive(Debug, Default)]
pub struct Csv {
    options: CsvOptions,
    columns: Columns,
    record: ByteRecord,
    copies: Copies,
    offsets: Vec<u64>,
    faults: Vec<(u32, Fault)>,
}

impl Csv {
    /// A decoder that takes the first column until told otherwise.
    pub fn new(options: &CsvOptions) -> Csv {
        Csv { options: options.clone(), ..Csv::default() }
    }

    /// The chunks that follow have this byte between fields.
    pub fn set_delimiter(&mut self, delimiter: u8) {
        self.options.delimiter = delimiter;
    }

    /// The chunks that follow have their fields in these columns.
    pub fn set_columns(&mut self, columns: Columns) {
        self.columns = columns;
    }

    /// Every record of `chunk`, which begins at byte `offset` of the source; `bitmaps` describe the records' text
    /// afterwards. The chunk is shorter than 2 GiB.
    pub fn decode<'a>(&'a mut self, chunk: &'a [u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        self.copies.clear();
        self.offsets.clear();
        self.faults.clear();
        let prefix = guard(chunk);
        let mut reader = self.options.reader(prefix, chunk);
        let mut record = std::mem::take(&mut self.record);
        loop {
            let at = (reader.position().byte() as usize).saturating_sub(prefix.len());
            // Memory can always be read and fields need not be UTF-8, so there is no error that could hide records.
            match reader.read_byte_record(&mut record) {
                Ok(true) => self.push(&record, offset + begin(chunk, at) as u64),
                Ok(false) => break,
                Err(error) => unreachable!("reading memory as CSV failed: {error}"),
            }
        }
        self.record = record;
        let records = self.copies.records();
        bitmaps.classify(records.text, &CLASSIFIER);
        Records { offsets: Offsets::Each(&self.offsets), faults: &self.faults, ..records }
    }

    fn push(&mut self, record: &ByteRecord, offset: u64) {
        let url = record.get(self.columns.url);
        if url.is_none() {
            let fault = Fault::new(FaultKind::MissingColumn, Component::Reference, 0);
            self.faults.push((self.copies.len() as u32, fault));
        }
        self.offsets.push(offset);
        self.copies.push_url(url.unwrap_or_default());
        let field = |column: usize| record.get(column).unwrap_or_default();
        if let Some(column) = self.columns.base {
            self.copies.push_base(field(column));
        }
        if let Some(column) = self.columns.charset {
            self.copies.push_charset(field(column));
        }
        if let Some(column) = self.columns.query_charset {
            self.copies.push_query_charset(field(column));
        }
    }
}

/// Where a record begins that the csv crate places at `at`: past blank lines, and past the `LF` of the `CR LF` that
/// ended the record before.
fn begin(chunk: &[u8], at: usize) -> usize {
    let rest = &chunk[at.min(chunk.len())..];
    at + rest.iter().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(options: &CsvOptions, columns: Columns, text: &[u8]) -> Vec<(Vec<u8>, u64)> {
        let mut csv = Csv::new(options);
        csv.set_columns(columns);
        let mut bitmaps = Bitmaps::default();
        let records = csv.decode(text, 100, &mut bitmaps);
        let Offsets::Each(offsets) = records.offsets else { panic!("CSV has one offset a record") };
        records.urls.iter().zip(offsets).map(|(url, &at)| (url.of(records.text).to_vec(), at)).collect()
    }

    #[test]
    fn offsets_are_where_records_begin() {
        let text = b"\r\n\na,b\r\n\"c\nd\",e\n\n\"f\"\"\"\rg";
        let want = [("a", 103), ("c\nd", 108), ("f\"", 117), ("g", 123)];
        let want = want.map(|(url, at)| (url.as_bytes().to_vec(), at));
        assert_eq!(decode(&CsvOptions::default(), Columns::default(), text), want);
    }

    #[test]
    fn a_bom_within_a_source_stays() {
        let got = decode(&CsvOptions::default(), Columns::default(), b"\xEF\xBB\xBFa\nb\n");
        assert_eq!(got, [(b"\xEF\xBB\xBFa".to_vec(), 100), (b"b".to_vec(), 105)]);
    }

    #[test]
    fn missing_fields_and_shared_bases() {
        let mut csv = Csv::new(&CsvOptions::default());
        csv.set_columns(Columns { url: 1, base: Some(0), ..Columns::default() });
        let mut bitmaps = Bitmaps::default();
        let records = csv.decode(b"base,u1\nbase,u2\nbase\nother,u3\n", 0, &mut bitmaps);
        assert_eq!(records.text, b"u1\nbase\nu2\n\nu3\nother\n");
        let fault = Fault::new(FaultKind::MissingColumn, Component::Reference, 0);
        assert_eq!(records.faults, [(2, fault)]);
        let bases: Vec<_> = records.bases.iter().map(|base| base.of(records.text)).collect();
        assert_eq!(bases, [&b"base"[..], b"base", b"base", b"other"]);
        assert!(records.urls.windows(2).all(|pair| pair[0].at + pair[0].len <= pair[1].at));
    }
}
