//! Renders batches as lines: delimited text, JSON lines, or URIs. Every line ends with `LF`, so encoded rows can be concatenated.

use arrow::array::{Array, AsArray, RecordBatch};

use super::values::{ColumnValues, write_json_text};
use crate::batch::ColumnSet;
use crate::canon::TextColumn;

/// Length of the buffer of a writer of delimited text in bytes, if no field is longer.
const BUFFER_LEN: usize = 8 << 10;

const IN_MEMORY: &str = "writing to memory does not fail";

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

/// The header of a file of delimited text. Names of columns `NAME=`, which users choose, are quoted if necessary.
pub(super) fn header(columns: &ColumnSet, delimiter: u8) -> Vec<u8> {
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(Vec::new());
    writer.write_record(columns.names()).expect(IN_MEMORY);
    writer.into_inner().expect(IN_MEMORY)
}

/// Delimited text as in RFC 4180, but with `LF` as the line end: fields are quoted if necessary, nulls are empty.
pub(super) fn delimited(columns: &ColumnSet, batch: &RecordBatch, delimiter: u8) -> Vec<u8> {
    let out = Vec::with_capacity(batch.get_array_memory_size());
    append_delimited(&column_values(columns, batch), batch.num_rows(), delimiter, out)
}

/// Appends the first `count` values of these columns to `out`, row by row.
fn append_delimited(values: &[ColumnValues<'_>], count: usize, delimiter: u8, out: Vec<u8>) -> Vec<u8> {
    // The writer searches the rest of a field for quotes whenever its buffer is full.
    let longest = values.iter().map(ColumnValues::longest).max().unwrap_or(0);
    let mut builder = csv::WriterBuilder::new();
    let mut writer = builder.delimiter(delimiter).buffer_capacity(longest.max(BUFFER_LEN)).from_writer(out);
    let mut scratch = Vec::new();
    for row in 0..count {
        for column in values {
            writer.write_field(column.raw(row, &mut scratch)).expect(IN_MEMORY);
        }
        writer.write_record(None::<&[u8]>).expect(IN_MEMORY);
    }
    writer.into_inner().expect(IN_MEMORY)
}

/// Renders one JSON object per line with all columns, including nulls.
pub(super) fn json(columns: &ColumnSet, batch: &RecordBatch) -> Vec<u8> {
    let values = column_values(columns, batch);
    let mut names = Vec::with_capacity(values.len());
    for (i, name) in columns.names().enumerate() {
        let mut lead = vec![if i == 0 { b'{' } else { b',' }];
        write_json_text(name, &mut lead);
        lead.push(b':');
        names.push(lead);
    }
    let mut out = Vec::with_capacity(batch.get_array_memory_size() * 2);
    for row in 0..batch.num_rows() {
        for (name, column) in names.iter().zip(&values) {
            out.extend_from_slice(name);
            column.write_json(row, &mut out);
        }
        out.extend_from_slice(b"}\n");
    }
    out
}

fn column_values<'a>(columns: &ColumnSet, batch: &'a RecordBatch) -> Vec<ColumnValues<'a>> {
    columns.iter().zip(batch.columns()).map(|(column, array)| ColumnValues::of(column.kind, array)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use arrow::array::{ArrayRef, BinaryArray};

    use super::*;
    use crate::batch::ColumnKind;

    /// Writes `count` fields of `len` bytes, which need quotes, and returns the time that it takes.
    fn time_of(len: usize, count: usize) -> Duration {
        let field = [&b"\""[..], &b"a".repeat(len - 1)].concat();
        let fields: ArrayRef = Arc::new(BinaryArray::from_iter_values(std::iter::repeat_n(&field, count)));
        let values = [ColumnValues::of(ColumnKind::Bytes, &fields)];
        let begin = Instant::now();
        let out = append_delimited(&values, count, b',', Vec::new());
        let time = begin.elapsed();
        let row = [&b"\"\"\""[..], &field[1..], b"\"\n"].concat();
        assert!(out == row.repeat(count));
        time
    }

    #[test]
    fn names_in_headers_are_quoted() {
        let columns = ColumnSet::named(["uri", "key", "a\"b=", "c\td="]).unwrap();
        assert_eq!(header(&columns, b','), b"uri,key,\"a\"\"b\",c\td\n");
        assert_eq!(header(&columns, b'\t'), b"uri\tkey\t\"a\"\"b\"\t\"c\td\"\n");
    }

    #[test]
    fn the_time_does_not_grow_with_the_length_of_a_field() {
        const LEN: usize = 4 << 20;
        let is_linear = || time_of(LEN, 1) < time_of(LEN / 64, 64) * 16;
        assert!((0..10).any(|_| is_linear()));
    }
}
