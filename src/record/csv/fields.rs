//! Readers of tables in memory: records by the csv crate ([`reader`]), and fields one after another ([`CsvFieldReader`]) for
//! texts whose records may have so many fields that none is held as a whole.

use csv_core::{ReadFieldResult, Reader, ReaderBuilder};
use std::io::Read;

/// Maximum length of a field that fits without growing the buffer, in bytes.
const FIELD_LEN: usize = 4 << 10;

/// Reads the fields of the records in a text, which begins with a record.
#[derive(Debug)]
pub(super) struct CsvFieldReader<'a> {
    reader: Box<Reader>,
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
    pub(super) fn new(delimiter: u8, quote: Option<u8>, text: &'a [u8], buffer: &'a mut Vec<u8>) -> CsvFieldReader<'a> {
        let mut builder = ReaderBuilder::new();
        builder.delimiter(delimiter).quote(quote.unwrap_or(b'"')).quoting(quote.is_some());
        let mut reader = Box::new(builder.build());
        // The crate drops a byte order mark at the beginning of what it reads. That of the source was dropped before, and
        // any other belongs to a field. Blank lines before a record have no effect.
        reader.read_field(b"\n", &mut []);
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

/// Bytes that the csv crate copies at a time; the text is in the CPU cache anyway.
const READ_LEN: usize = 32 << 10;

/// What [`reader`] reads before the text: a blank line, which is not a record. The csv crate drops a byte order mark at the
/// beginning of its input. The mark of the source was dropped before; one at the beginning of a text belongs to a record.
pub(super) const PREFIX: &[u8] = b"\n";

/// A reader of the records in `bytes`, which begin with a record, after [`PREFIX`].
pub(super) fn reader(delimiter: u8, quote: Option<u8>, bytes: &[u8]) -> csv::Reader<impl Read + '_> {
    csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .quote(quote.unwrap_or(b'"'))
        .quoting(quote.is_some())
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(READ_LEN.min(bytes.len() + PREFIX.len()))
        .from_reader(PREFIX.chain(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The records of a text by fields, and the position after each.
    fn records(delimiter: u8, quote: Option<u8>, text: &[u8]) -> Vec<(Vec<Vec<u8>>, usize)> {
        let mut buffer = Vec::new();
        let mut reader = CsvFieldReader::new(delimiter, quote, text, &mut buffer);
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

    /// The same by the csv crate.
    fn expected(delimiter: u8, quote: Option<u8>, text: &[u8]) -> Vec<(Vec<Vec<u8>>, usize)> {
        let mut builder = csv::ReaderBuilder::new();
        builder.delimiter(delimiter).quote(quote.unwrap_or(b'"')).quoting(quote.is_some());
        let mut reader = builder.has_headers(false).flexible(true).from_reader(text);
        let (mut record, mut records) = (csv::ByteRecord::new(), Vec::new());
        while reader.read_byte_record(&mut record).unwrap() {
            records.push((record.iter().map(<[u8]>::to_vec).collect(), reader.position().byte() as usize));
        }
        records
    }

    #[test]
    fn long_fields_are_read() {
        let long = "x".repeat(3 * FIELD_LEN);
        let text = format!("{long},\"{long}\"\"\",\n{long}");
        assert_eq!(records(b',', Some(b'"'), text.as_bytes()), expected(b',', Some(b'"'), text.as_bytes()));
    }

    #[test]
    fn a_byte_order_mark_belongs_to_its_field() {
        assert_eq!(records(b',', None, b"\xEF\xBB\xBFa,b")[0].0, [&b"\xEF\xBB\xBFa"[..], b"b"]);
    }

    proptest! {
        #[test]
        fn fields_are_those_of_the_csv_crate(text in "[a\",;\r\n\t]{0,40}", quote in prop::option::of(Just(b'"'))) {
            for delimiter in [b',', b';', b'\t'] {
                prop_assert_eq!(
                    records(delimiter, quote, text.as_bytes()),
                    expected(delimiter, quote, text.as_bytes())
                );
            }
        }
    }
}
