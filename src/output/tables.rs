//! Files of rows that are not canonical rows: delimited text or JSON lines of plain values ([`RowWriter`]), and Parquet of
//! any schema ([`TableWriter`]). They are written under a temporary name, as other outputs.

use std::collections::HashMap;
use std::io::Write;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::error::{OutputError, WriteError};
use super::options::{Destination, OutputFormat};
use super::packing::TextPacking;
use super::sink::{self, OutputTarget, Sink};
use super::values::{write_json_bytes, write_json_text, write_number};
use super::writer::FinishedOutput;

/// A value of a plain row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PlainValue<'a> {
    /// No value: empty in CSV, null in JSON.
    Null,
    /// Text. Bytes that are not UTF-8 are written unchanged to CSV and as `{"hex": ...}` to JSON.
    Bytes(&'a [u8]),
    /// A number.
    Number(u64),
}

impl<'a> From<&'a str> for PlainValue<'a> {
    fn from(text: &'a str) -> PlainValue<'a> {
        PlainValue::Bytes(text.as_bytes())
    }
}

/// Writes plain rows as delimited text or JSON lines. Removes the file if it is dropped before [`RowWriter::finish`].
pub(crate) struct RowWriter {
    sink: Sink,
    target: OutputTarget,
    format: OutputFormat,
    packing: TextPacking,
    names: Vec<&'static str>,
    rows: u64,
    /// Lines that are not written yet: one, or those of a member or frame.
    lines: Vec<u8>,
}

/// Bytes of text in a member or frame.
const PACKED_LEN: usize = 1 << 20;

impl RowWriter {
    /// Opens an output of these columns. `format` is [`OutputFormat::JsonLines`] or delimited text.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub(crate) fn create(
        destination: &Destination,
        format: OutputFormat,
        names: &[&'static str],
    ) -> Result<RowWriter, OutputError> {
        let (sink, target) = sink::create(destination)?;
        let (packing, names) = (TextPacking::of(destination.path(), format.is_packable()), names.to_vec());
        let mut writer = RowWriter { sink, target, format, packing, names, rows: 0, lines: Vec::new() };
        if format != OutputFormat::JsonLines {
            let header: Vec<PlainValue> = writer.names.iter().map(|name| PlainValue::from(*name)).collect();
            writer.write_csv(&header);
        }
        writer.put()?;
        Ok(writer)
    }

    /// Appends a row.
    ///
    /// # Errors
    /// The row cannot be written.
    pub(crate) fn append(&mut self, fields: &[PlainValue]) -> Result<(), OutputError> {
        self.rows += 1;
        match self.format {
            OutputFormat::JsonLines => self.write_json(fields),
            _ => self.write_csv(fields),
        }
        if self.packing == TextPacking::None || self.lines.len() >= PACKED_LEN { self.put() } else { Ok(()) }
    }

    /// Makes the output durable and gives it its final name.
    ///
    /// # Errors
    /// Writing or renaming failed; no partial file has the final name.
    pub(crate) fn finish(mut self) -> Result<FinishedOutput, OutputError> {
        if !self.lines.is_empty() {
            self.put()?;
        }
        let path = self.target.path().map(std::path::Path::to_path_buf);
        let finished = FinishedOutput { path, bytes: self.sink.written(), rows: self.rows, parts: 1 };
        self.target.commit(self.sink)?;
        Ok(finished)
    }

    fn put(&mut self) -> Result<(), OutputError> {
        let written = match self.packing {
            TextPacking::None => self.sink.write_all(&self.lines),
            packing => packing.pack(std::mem::take(&mut self.lines)).and_then(|packed| self.sink.write_all(&packed)),
        };
        self.lines.clear();
        written.map_err(|error| self.target.error(WriteError::from(error)))
    }

    fn write_csv(&mut self, fields: &[PlainValue]) {
        let delimiter = self.format.delimiter().unwrap_or(b',');
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(&mut self.lines);
        for field in fields {
            // Writing to memory does not fail.
            let _ = match field {
                PlainValue::Null => writer.write_field(b""),
                PlainValue::Bytes(bytes) => writer.write_field(bytes),
                PlainValue::Number(number) => writer.write_field(number.to_string()),
            };
        }
        let _ = writer.write_record(None::<&[u8]>);
    }

    fn write_json(&mut self, fields: &[PlainValue]) {
        for (i, (name, field)) in self.names.iter().zip(fields).enumerate() {
            self.lines.push(if i == 0 { b'{' } else { b',' });
            write_json_text(name, &mut self.lines);
            self.lines.push(b':');
            match field {
                PlainValue::Null => self.lines.extend_from_slice(b"null"),
                PlainValue::Bytes(bytes) => write_json_bytes(bytes, &mut self.lines),
                PlainValue::Number(number) => write_number(*number, &mut self.lines),
            }
        }
        self.lines.extend_from_slice(b"}\n");
    }
}

/// Bytes of memory of a row group, at which [`TableWriter`] ends it.
const MAX_ROW_GROUP_MEMORY: usize = 16 << 20;

/// Writes record batches as a Parquet file. Removes the file if it is dropped before [`TableWriter::finish`].
pub(crate) struct TableWriter {
    writer: ArrowWriter<Sink>,
    target: OutputTarget,
    rows: u64,
}

impl TableWriter {
    /// Opens a file for batches of `schema`.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn create(
        destination: &Destination,
        schema: SchemaRef,
        metadata: &[(String, String)],
    ) -> Result<TableWriter, OutputError> {
        let (sink, target) = sink::create(destination)?;
        let pairs = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("irikey version ", env!("CARGO_PKG_VERSION")).to_string())
            .set_compression(Codec::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(pairs))
            .build();
        // Readers that use the embedded Arrow schema also use the metadata of that schema.
        let schema = Schema::clone(&schema).with_metadata(metadata.iter().cloned().collect::<HashMap<_, _>>());
        match ArrowWriter::try_new(sink, schema.into(), Some(properties)) {
            Ok(writer) => Ok(TableWriter { writer, target, rows: 0 }),
            Err(error) => Err(target.error(WriteError::from(error))),
        }
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// The batch cannot be written.
    pub(crate) fn append(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        self.rows += batch.num_rows() as u64;
        let written = self.writer.write(batch);
        let written = written.and_then(|()| match self.writer.memory_size() > MAX_ROW_GROUP_MEMORY {
            true => self.writer.flush(),
            false => Ok(()),
        });
        written.map_err(|error| self.target.error(WriteError::from(error)))
    }

    /// Returns the number of rows that were appended.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the footer, makes the file durable and gives it its final name.
    ///
    /// # Errors
    /// Writing or renaming failed; no partial file has the final name.
    pub(crate) fn finish(self) -> Result<(), OutputError> {
        let TableWriter { writer, target, .. } = self;
        let sink = writer.into_inner().map_err(|error| target.error(WriteError::from(error)))?;
        target.commit(sink)
    }
}
