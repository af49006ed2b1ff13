//! Renders batches as lines: delimited text, JSON lines, or URIs. Every line ends with `LF`, so encoded rows can be concatenated.

use arrow::array::{Array, AsArray, RecordBatch};

use super::options::OutputFormat;
use super::values::{ColumnValues, write_json_text};
use crate::batch::ColumnKind;
use crate::canon::TextColumn;

/// Renders the URIs of rows, one per line; an empty line for rows without a URI.
pub(super) fn uris_of_rows(uris: &TextColumn) -> Vec<u8> {
    let mut out = Vec::with_capacity(uris.values.len() + uris.len());
    for i in 0..uris.len() {
        out.extend_from_slice(uris.get(i));
        out.push(b'\n');
    }
    out
}

/// Renders the URIs of a batch as [`uris_of_rows`] does. Its first column is the URI.
pub(super) fn uris_of_batch(batch: &RecordBatch) -> Vec<u8> {
    let uris = batch.column(0).as_string::<i32>();
    let mut out = Vec::with_capacity(uris.value_data().len() + uris.len());
    for uri in uris {
        out.extend_from_slice(uri.unwrap_or_default().as_bytes());
        out.push(b'\n');
    }
    out
}

/// The header of a file of delimited text; empty for JSON lines. Names of columns `NAME=`, which users choose, are quoted if
/// necessary.
pub(super) fn header<'a>(format: OutputFormat, names: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(delimiter) = format.delimiter() {
        let mut writer = FieldWriter::new(delimiter);
        names.enumerate().for_each(|(i, name)| writer.write(i, name.as_bytes(), &mut out));
        writer.end(&mut out);
    }
    out
}

/// Renders the rows of a batch, whose columns are of these kinds, as JSON lines or as delimited text.
pub(super) fn rows_of_batch(
    format: OutputFormat,
    kinds: impl Iterator<Item = ColumnKind>,
    batch: &RecordBatch,
) -> Vec<u8> {
    let values: Vec<_> = kinds.zip(batch.columns()).map(|(kind, array)| ColumnValues::of(kind, array)).collect();
    match format.delimiter() {
        Some(delimiter) => delimited(&values, batch, delimiter),
        None => json(&values, batch),
    }
}

/// Delimited text as in RFC 4180, but with `LF` as the line end: fields are quoted if necessary, nulls are empty.
fn delimited(values: &[ColumnValues<'_>], batch: &RecordBatch, delimiter: u8) -> Vec<u8> {
    let (mut writer, mut scratch) = (FieldWriter::new(delimiter), Vec::new());
    let mut out = Vec::with_capacity(batch.get_array_memory_size());
    for row in 0..batch.num_rows() {
        for (i, column) in values.iter().enumerate() {
            writer.write(i, column.raw(row, &mut scratch), &mut out);
        }
        writer.end(&mut out);
    }
    out
}

/// Writes fields of delimited text to memory.
pub(super) struct FieldWriter(csv_core::Writer);

impl FieldWriter {
    pub(super) fn new(delimiter: u8) -> FieldWriter {
        FieldWriter(csv_core::WriterBuilder::new().delimiter(delimiter).build())
    }

    /// Appends field `i` of a row.
    pub(super) fn write(&mut self, i: usize, field: &[u8], out: &mut Vec<u8>) {
        if i > 0 {
            extend(out, 2, |room| self.0.delimiter(room).1);
        }
        // A quote before the field, and at most two for each byte.
        extend(out, 1 + 2 * field.len(), |room| self.0.field(field, room).2);
    }

    /// Ends a row. A row of one empty field is written in quotes.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        extend(out, 4, |room| self.0.terminator(room).1);
    }
}

/// Appends the bytes that `write` puts at the start of `max_len` bytes; it returns their number.
fn extend(out: &mut Vec<u8>, max_len: usize, write: impl FnOnce(&mut [u8]) -> usize) {
    let start = out.len();
    out.resize(start + max_len, 0);
    let len = write(&mut out[start..]);
    out.truncate(start + len);
}

/// Renders one JSON object per line with all columns, including nulls.
fn json(values: &[ColumnValues<'_>], batch: &RecordBatch) -> Vec<u8> {
    let mut names = Vec::with_capacity(values.len());
    for (i, field) in batch.schema_ref().fields().iter().enumerate() {
        let mut lead = vec![if i == 0 { b'{' } else { b',' }];
        write_json_text(field.name(), &mut lead);
        lead.push(b':');
        names.push(lead);
    }
    let mut out = Vec::with_capacity(batch.get_array_memory_size() * 2);
    for row in 0..batch.num_rows() {
        for (name, column) in names.iter().zip(values) {
            out.extend_from_slice(name);
            column.write_json(row, &mut out);
        }
        out.extend_from_slice(b"}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use arrow::array::{ArrayRef, BinaryArray};

    use super::*;
    use crate::batch::ColumnSet;

    /// Writes `count` fields of `len` bytes, which need quotes, and returns the time that it takes.
    fn time_of(len: usize, count: usize) -> Duration {
        let field = [&b"\""[..], &b"a".repeat(len - 1)].concat();
        let fields: ArrayRef = Arc::new(BinaryArray::from_iter_values(std::iter::repeat_n(&field, count)));
        let batch = RecordBatch::try_from_iter([("field", fields)]).unwrap();
        let begin = Instant::now();
        let out = rows_of_batch(OutputFormat::Csv, [ColumnKind::Bytes].into_iter(), &batch);
        let time = begin.elapsed();
        let row = [&b"\"\"\""[..], &field[1..], b"\"\n"].concat();
        assert!(out == row.repeat(count));
        time
    }

    #[test]
    fn names_in_headers_are_quoted() {
        let columns = ColumnSet::named(["uri", "key", "a\"b=", "c\td="]).unwrap();
        assert_eq!(header(OutputFormat::Csv, columns.names()), b"uri,key,\"a\"\"b\",c\td\n");
        assert_eq!(header(OutputFormat::Tsv, columns.names()), b"uri\tkey\t\"a\"\"b\"\t\"c\td\"\n");
    }

    #[test]
    fn the_time_does_not_grow_with_the_length_of_a_field() {
        const LEN: usize = 4 << 20;
        let is_linear = || time_of(LEN, 1) < time_of(LEN / 64, 64) * 16;
        assert!((0..10).any(|_| is_linear()));
    }
}
