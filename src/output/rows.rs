//! Rows of plain fields in, CSV or JSON lines out, in a file or on standard output: for outputs that are not made of
//! canonical rows. Columns are declared once; a row has as many fields.

use std::io::Write;

use super::cells::{write_json_bytes, write_json_text, write_number};
use super::error::{Cause, OutputError};
use super::sink::{self, Sink, Target};
use super::{Destination, Finished, Format};

/// A field of a row.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// Nothing: empty in CSV, null in JSON.
    Null,
    /// Text, or bytes that are none: as they are in CSV, `{"hex": ...}` in JSON.
    Bytes(&'a [u8]),
    /// A number.
    Number(u64),
}

impl<'a> From<&'a str> for Field<'a> {
    fn from(text: &'a str) -> Field<'a> {
        Field::Bytes(text.as_bytes())
    }
}

/// An output of plain rows. Dropped without [`RowWriter::finish`], it leaves nothing behind.
pub struct RowWriter {
    sink: Sink,
    target: Target,
    format: Format,
    names: Vec<&'static str>,
    rows: u64,
    line: Vec<u8>,
}

impl RowWriter {
    /// Opens an output of these columns. `format` is [`Format::JsonLines`] or one of delimited text.
    ///
    /// # Errors
    /// The destination cannot be written.
    pub fn create(destination: &Destination, format: Format, names: &[&'static str]) -> Result<RowWriter, OutputError> {
        let (sink, target) = sink::create(destination)?;
        let mut writer = RowWriter { sink, target, format, names: names.to_vec(), rows: 0, line: Vec::new() };
        if format != Format::JsonLines {
            let header: Vec<Field> = names.iter().map(|name| Field::from(*name)).collect();
            writer.write_csv(&header);
            writer.put()?;
        }
        Ok(writer)
    }

    /// Appends a row.
    ///
    /// # Errors
    /// It could not be written.
    pub fn append(&mut self, fields: &[Field]) -> Result<(), OutputError> {
        self.rows += 1;
        match self.format {
            Format::JsonLines => self.write_json(fields),
            _ => self.write_csv(fields),
        }
        self.put()
    }

    /// Makes the output durable and gives it its name.
    ///
    /// # Errors
    /// Some of it failed; then nothing bears the name that did not bear it before.
    pub fn finish(self) -> Result<Finished, OutputError> {
        let path = self.target.path().map(std::path::Path::to_path_buf);
        let finished = Finished { path, bytes: self.sink.written(), rows: self.rows, parts: 1 };
        self.target.commit(self.sink)?;
        Ok(finished)
    }

    fn put(&mut self) -> Result<(), OutputError> {
        let written = self.sink.write_all(&self.line);
        self.line.clear();
        written.map_err(|error| self.target.blame(Cause::from(error)))
    }

    fn write_csv(&mut self, fields: &[Field]) {
        let delimiter = self.format.delimiter().unwrap_or(b',');
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(&mut self.line);
        for field in fields {
            // The writer fails where its sink does, and memory does not.
            let _ = match field {
                Field::Null => writer.write_field(b""),
                Field::Bytes(bytes) => writer.write_field(bytes),
                Field::Number(number) => writer.write_field(number.to_string()),
            };
        }
        let _ = writer.write_record(None::<&[u8]>);
    }

    fn write_json(&mut self, fields: &[Field]) {
        for (i, (name, field)) in self.names.iter().zip(fields).enumerate() {
            self.line.push(if i == 0 { b'{' } else { b',' });
            write_json_text(name, &mut self.line);
            self.line.push(b':');
            match field {
                Field::Null => self.line.extend_from_slice(b"null"),
                Field::Bytes(bytes) => write_json_bytes(bytes, &mut self.line),
                Field::Number(number) => write_number(*number, &mut self.line),
            }
        }
        self.line.extend_from_slice(b"}\n");
    }
}
