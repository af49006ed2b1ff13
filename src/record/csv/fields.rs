//! Readers of tables in memory: of records ([`CsvRecordReader`]), and of fields one after another ([`CsvFieldReader`]) for texts
//! whose records may have so many fields that none is held as a whole. Both read with a [`Reader`] of csv-core. Building one
//! takes as long as reading about 100 records, so that the caller builds it once ([`build_reader`]).

use csv_core::{ReadFieldResult, ReadRecordResult, Reader, ReaderBuilder};

/// Maximum length of a field that fits without growing the buffer, in bytes.
const FIELD_LEN: usize = 4 << 10;

/// Maximum number of fields of a record that fit without growing the memory for their ends.
const FIELD_COUNT: usize = 64;

/// A reader of csv-core for tables of this dialect.
pub(super) fn build_reader(delimiter: u8, quote: Option<u8>) -> Box<Reader> {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(delimiter).quote(quote.unwrap_or(b'"')).quoting(quote.is_some());
    Box::new(builder.build())
}

/// Prepares a reader for another text.
fn reset(reader: &mut Reader) {
    reader.reset();
    // csv-core drops a byte order mark at the beginning of what it reads. That of the source was dropped before, and any other
    // belongs to a field. Blank lines before a record have no effect.
    reader.read_field(b"\n", &mut []);
}

/// A record: its fields without their quotes, one after another.
#[derive(Debug, Default)]
pub(super) struct CsvRecord {
    bytes: Vec<u8>,
    /// Where each field ends in `bytes`. There may be more ends after those of the record.
    ends: Vec<usize>,
    /// Number of fields.
    count: usize,
}

impl CsvRecord {
    pub(super) fn get(&self, column: usize) -> Option<&[u8]> {
        let end = *self.ends[..self.count].get(column)?;
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        Some(&self.bytes[start..end])
    }
}

/// Reads the records in a text, which begins with a record.
#[derive(Debug)]
pub(super) struct CsvRecordReader<'a> {
    reader: &'a mut Reader,
    text: &'a [u8],
    /// Bytes of `text` that were read.
    position: usize,
}

impl<'a> CsvRecordReader<'a> {
    pub(super) fn new(reader: &'a mut Reader, text: &'a [u8]) -> CsvRecordReader<'a> {
        reset(reader);
        CsvRecordReader { reader, text, position: 0 }
    }

    /// Number of bytes that were read; those of the next record begin there, possibly with line ends.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Reads the next record into `record`, whose memory is used again. Returns false after the last record.
    pub(super) fn read(&mut self, record: &mut CsvRecord) -> bool {
        let CsvRecord { bytes, ends, count } = record;
        let mut len = 0;
        *count = 0;
        loop {
            // Without more input, the reader ends the last record.
            let rest = &self.text[self.position..];
            let (result, read, written, ended) = self.reader.read_record(rest, &mut bytes[len..], &mut ends[*count..]);
            self.position += read;
            len += written;
            *count += ended;
            match result {
                ReadRecordResult::InputEmpty => (),
                ReadRecordResult::OutputFull => bytes.resize((2 * bytes.len()).max(FIELD_LEN), 0),
                ReadRecordResult::OutputEndsFull => ends.resize((2 * ends.len()).max(FIELD_COUNT), 0),
                ReadRecordResult::Record => return true,
                ReadRecordResult::End => return false,
            }
        }
    }
}

/// Reads the fields of the records in a text, which begins with a record.
#[derive(Debug)]
pub(super) struct CsvFieldReader<'a> {
    reader: &'a mut Reader,
    text: &'a [u8],
    /// Bytes of `text` that were read.
    position: usize,
    buffer: &'a mut Vec<u8>,
}

/// A field without its quotes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CsvField<'a> {
    pub(super) value: &'a [u8],
    /// It is the last field of its record.
    pub(super) ends_record: bool,
}

impl<'a> CsvFieldReader<'a> {
    /// A reader of `text`. `buffer` is only memory that is used again.
    pub(super) fn new(reader: &'a mut Reader, text: &'a [u8], buffer: &'a mut Vec<u8>) -> CsvFieldReader<'a> {
        reset(reader);
        if buffer.len() < FIELD_LEN {
            buffer.resize(FIELD_LEN, 0);
        }
        CsvFieldReader { reader, text, position: 0, buffer }
    }

    /// Number of bytes that were read; those of the next record begin there, possibly with line ends.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Reads the next field; `None` after the last record.
    pub(super) fn next(&mut self) -> Option<CsvField<'_>> {
        let mut len = 0;
        loop {
            // Without more input, the reader ends the last record.
            let (result, read, written) = self.reader.read_field(&self.text[self.position..], &mut self.buffer[len..]);
            self.position += read;
            len += written;
            match result {
                ReadFieldResult::InputEmpty => (),
                ReadFieldResult::OutputFull => self.buffer.resize(2 * self.buffer.len(), 0),
                ReadFieldResult::Field { record_end } => {
                    return Some(CsvField { value: &self.buffer[..len], ends_record: record_end });
                }
                ReadFieldResult::End => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Records = Vec<(Vec<Vec<u8>>, usize)>;

    /// The records of a text by fields, and the position after each.
    fn by_fields(reader: &mut Reader, text: &[u8]) -> Records {
        let mut buffer = Vec::new();
        let mut reader = CsvFieldReader::new(reader, text, &mut buffer);
        let (mut records, mut record) = (Vec::new(), Vec::new());
        while let Some(CsvField { value, ends_record }) = reader.next() {
            record.push(value.to_vec());
            if ends_record {
                records.push((std::mem::take(&mut record), reader.position()));
            }
        }
        assert!(record.is_empty());
        records
    }

    /// The same by records.
    fn by_records(reader: &mut Reader, text: &[u8]) -> Records {
        let (mut reader, mut record, mut records) =
            (CsvRecordReader::new(reader, text), CsvRecord::default(), Vec::new());
        while reader.read(&mut record) {
            let fields: Vec<_> = (0..).map_while(|column| record.get(column).map(<[u8]>::to_vec)).collect();
            records.push((fields, reader.position()));
        }
        records
    }

    /// The same by the csv crate.
    fn expected(delimiter: u8, quote: Option<u8>, text: &[u8]) -> Records {
        let mut builder = csv::ReaderBuilder::new();
        builder.delimiter(delimiter).quote(quote.unwrap_or(b'"')).quoting(quote.is_some());
        let mut reader = builder.has_headers(false).flexible(true).from_reader(text);
        let (mut record, mut records) = (csv::ByteRecord::new(), Vec::new());
        while reader.read_byte_record(&mut record).unwrap() {
            records.push((record.iter().map(<[u8]>::to_vec).collect(), reader.position().byte() as usize));
        }
        records
    }

    /// Asserts that both ways give the records of the csv crate, also with a reader that stopped within another text.
    fn check(delimiter: u8, quote: Option<u8>, text: &str) {
        let mut reader = build_reader(delimiter, quote);
        let expected = expected(delimiter, quote, text.as_bytes());
        for before in ["", "a,\"b", "a,b\n\"c\"", "x\r"] {
            reader.read_field(before.as_bytes(), &mut [0; 8]);
            assert_eq!(by_fields(&mut reader, text.as_bytes()), expected, "{text:?} {before:?}");
            reader.read_record(before.as_bytes(), &mut [0; 8], &mut [0; 8]);
            assert_eq!(by_records(&mut reader, text.as_bytes()), expected, "{text:?} {before:?}");
        }
    }

    #[test]
    fn long_fields_and_records_are_read() {
        let long = "x".repeat(3 * FIELD_LEN);
        check(b',', Some(b'"'), &format!("{long},\"{long}\"\"\",\n{long}"));
        for count in [FIELD_COUNT - 1, FIELD_COUNT, FIELD_COUNT + 1, 5 * FIELD_COUNT] {
            let commas = ",".repeat(count - 1);
            check(b',', Some(b'"'), &format!("{commas}\na{commas}b\r\n{commas}\"\"\n{commas}"));
        }
    }

    #[test]
    fn a_byte_order_mark_belongs_to_its_field() {
        let mut reader = build_reader(b',', None);
        for read in [by_fields, by_records] {
            assert_eq!(read(&mut reader, b"\xEF\xBB\xBFa,b")[0].0, [&b"\xEF\xBB\xBFa"[..], b"b"]);
        }
    }

    proptest! {
        #[test]
        fn records_are_those_of_the_csv_crate(text in "[a\",;\r\n\t]{0,40}", quote in prop::option::of(Just(b'"'))) {
            for delimiter in [b',', b';', b'\t'] {
                check(delimiter, quote, &text);
            }
        }
    }
}
