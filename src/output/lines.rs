//! Renders batches as lines: delimited text, JSON lines, or URIs. Every line ends with `LF`, so encoded rows can be concatenated.

use arrow::array::{Array, AsArray, RecordBatch};

use super::values::{ColumnValues, write_json_text};
use crate::batch::ColumnSet;
use crate::canon::TextColumn;

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

/// The header of a file of delimited text.
pub(super) fn header(columns: &ColumnSet, delimiter: u8) -> Vec<u8> {
    let mut out = columns.names().collect::<Vec<_>>().join(char::from(delimiter).encode_utf8(&mut [0; 4])).into_bytes();
    out.push(b'\n');
    out
}

/// Delimited text as in RFC 4180, but with `LF` as the line end: fields are quoted if necessary, nulls are empty.
pub(super) fn delimited(columns: &ColumnSet, batch: &RecordBatch, delimiter: u8) -> Vec<u8> {
    let values = column_values(columns, batch);
    let out = Vec::with_capacity(batch.get_array_memory_size());
    let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(out);
    let mut scratch = Vec::new();
    for row in 0..batch.num_rows() {
        for column in &values {
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
