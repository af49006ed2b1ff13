//! Rows of plain fields in, CSV or JSON lines out, in a file or on standard output: for outputs that are not made of
//! canonical rows. Columns are declared once; a row has as many fields.

use std::io::Write;

use super::cells::{write_json_bytes, write_json_text, write_number};
use super::error::{OutputError, WriteError};
use super::sink::{self, OutputTarget, Sink};
use super::{Destination, FinishedOutput, OutputFormat};

/// A field of a row.
#[derive(Clone, Copy, Debug)]
pub enum PlainValue<'a> {
    /// Nothing: empty in CSV, null in JSON.
    Null,
    /// Text, or bytes that are none: as they are in CSV, `{"hex": ...}` in JSON.
    Bytes(&'a [u8]),
    /// A number.
    Number(u64),
}

impl<'a> From<&'a str> for PlainValue<'a> {
    fn from(text: &'a str) -> PlainValue<'a> {
        PlainValue::Bytes(text.as_bytes())
    }
}

/// An output of plain rows. Dropped without [`RowWriter::finish`], it leaves nothing behind.
pub struct RowWriter {
    sink: Sink,
    target: OutputTarget,
    format: OutputFormat,
    names: Vec<&'static str>,
    rows: u64,
    line: Vec<u8>,
}

impl RowWriter {
    /// Opens an output of these columns. `format` is [`OutputFormat::JsonLines`] or one of delimited text.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub fn create(
        destination: &Destination,
        format: OutputFormat,
        names: &[&'static str],
    ) -> Result<RowWriter, OutputError> {
        let (sink, target) = sink::create(destination)?;
        let mut writer = RowWriter { sink, target, format, names: names.to_vec(), rows: 0, line: Vec::new() };
        if format != OutputFormat::JsonLines {
            let header: Vec<PlainValue> = names.iter().map(|name| PlainValue::from(*name)).collect();
            writer.write_csv(&header);
            writer.put()?;
        }
        Ok(writer)
    }

    /// Appends a row.
    ///
    /// # Errors
    /// It could not be written.
    pub fn append(&mut self, fields: &[PlainValue]) -> Result<(), OutputError> {
        self.rows += 1;
        match self.format {
            OutputFormat::JsonLines => self.write_json(fields),
            _ => self.write_csv(fields),
        }
        self.put()
    }

    /// Makes the output durable and gives it its name.
    ///
    /// # Errors
    /// Some of it failed; then nothing bears the name that did not bear it before.
    pub fn finish(self) -> Result<FinishedOutput, OutputError> {
        let path = self.target.path().map(std::path::Path::to_path_buf);
        let finished = FinishedOutput { path, bytes: self.sink.written(), rows: self.rows, parts: 1 };
        self.target.commit(self.sink)?;
        Ok(finished)
    }

    fn put(&mut self) -> Result<(), OutputError> {
        let written = self.sink.write_all(&self.line);
        self.line.clear();
        written.map_err(|error| self.target.blame(WriteError::from(error)))
    }

    fn write_csv(&mut self, fields: &[PlainValue]) {
        let delimiter = self.format.delimiter().unwrap_or(b',');
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(&mut self.line);
        for field in fields {
            // The writer fails where its sink does, and memory does not.
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
            self.line.push(if i == 0 { b'{' } else { b',' });
            write_json_text(name, &mut self.line);
            self.line.push(b':');
            match field {
                PlainValue::Null => self.line.extend_from_slice(b"null"),
                PlainValue::Bytes(bytes) => write_json_bytes(bytes, &mut self.line),
                PlainValue::Number(number) => write_number(*number, &mut self.line),
            }
        }
        self.line.extend_from_slice(b"}\n");
    }
}
