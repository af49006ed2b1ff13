//! Parts in, in order; bytes appended to the sink. Whatever fails here says which output it was.

use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::ipc::writer::{FileWriter, StreamWriter};
use parquet::file::writer::SerializedFileWriter;

use super::encoder::{Body, Encoder, Part, Recipe};
use super::error::{Cause, OutputError};
use super::sink::{Sink, Target};
use super::{Compression, Format, lines, row_group};
use crate::batch::BatchBuilder;

/// An output that is being written. Dropped without [`Output::finish`], it leaves nothing behind.
pub struct Output {
    writer: Writer,
    target: Target,
    rows: u64,
    parts: u64,
}

enum Writer {
    Parquet(SerializedFileWriter<Sink>),
    Arrow(FileWriter<Sink>),
    ArrowStream(StreamWriter<Sink>),
    Bytes(Sink),
}

/// An output that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its name; none for standard output.
    pub path: Option<PathBuf>,
    /// Its length in bytes.
    pub bytes: u64,
    /// How many rows it has.
    pub rows: u64,
    /// How many parts with rows it was made of: row groups, record batches.
    pub parts: u64,
}

/// Pairs an encoder with the output that takes its parts.
pub(super) fn open(
    format: Format,
    compression: Compression,
    builder: BatchBuilder,
    metadata: Vec<(String, String)>,
    (sink, target): (Sink, Target),
) -> Result<(Encoder, Output), OutputError> {
    let opened = start(format, compression, &builder, metadata, sink);
    let (writer, recipe) = opened.map_err(|cause| target.blame(cause))?;
    Ok((Encoder { builder, recipe }, Output { writer, target, rows: 0, parts: 0 }))
}

/// Writes what the format begins with.
fn start(
    format: Format,
    compression: Compression,
    builder: &BatchBuilder,
    metadata: Vec<(String, String)>,
    mut sink: Sink,
) -> Result<(Writer, Recipe), Cause> {
    let schema = builder.schema();
    Ok(match format {
        Format::Parquet => {
            let (writer, groups) = row_group::open(sink, builder, compression, metadata)?;
            (Writer::Parquet(writer), Recipe::Parquet(groups))
        }
        Format::Arrow => (Writer::Arrow(FileWriter::try_new(sink, schema)?), Recipe::Batch),
        Format::ArrowStream => (Writer::ArrowStream(StreamWriter::try_new(sink, schema)?), Recipe::Batch),
        Format::Csv => {
            sink.write_all(&lines::csv_header(builder.columns()))?;
            (Writer::Bytes(sink), Recipe::Csv)
        }
        Format::JsonLines => (Writer::Bytes(sink), Recipe::JsonLines),
        Format::Text => (Writer::Bytes(sink), Recipe::Text),
    })
}

impl Output {
    /// Appends a part; the caller keeps the order. After an error the output can only be aborted or dropped.
    ///
    /// # Errors
    /// The part is of another output, or the bytes could not be written.
    pub fn append(&mut self, part: Part) -> Result<(), OutputError> {
        let rows = part.rows();
        let written: Result<(), Cause> = match (&mut self.writer, part.body) {
            (_, Body::Nothing) => return Ok(()),
            (Writer::Parquet(writer), Body::RowGroup(chunks)) => row_group::append(writer, chunks).map_err(Cause::from),
            (Writer::Arrow(writer), Body::Batch(batch)) => writer.write(&batch).map_err(Cause::from),
            (Writer::ArrowStream(writer), Body::Batch(batch)) => writer.write(&batch).map_err(Cause::from),
            (Writer::Bytes(sink), Body::Bytes(bytes)) => sink.write_all(&bytes).map_err(Cause::from),
            _ => return Err(OutputError::ForeignPart),
        };
        written.map_err(|cause| self.target.blame(cause))?;
        self.rows += rows;
        self.parts += 1;
        Ok(())
    }

    /// How many rows were appended.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes what the format ends with, makes it durable and gives it its name.
    ///
    /// # Errors
    /// Some of it failed; then nothing bears the name that did not bear it before.
    pub fn finish(self) -> Result<Finished, OutputError> {
        let Output { writer, target, rows, parts } = self;
        let ended: Result<Sink, Cause> = match writer {
            Writer::Parquet(writer) => writer.into_inner().map_err(Cause::from),
            Writer::Arrow(writer) => writer.into_inner().map_err(Cause::from),
            Writer::ArrowStream(writer) => writer.into_inner().map_err(Cause::from),
            Writer::Bytes(sink) => Ok(sink),
        };
        let sink = ended.map_err(|cause| target.blame(cause))?;
        let finished = Finished { path: target.path().map(Path::to_path_buf), bytes: sink.written(), rows, parts };
        target.commit(sink)?;
        Ok(finished)
    }

    /// Removes what was written under a temporary name. Dropping the output does the same, without a word.
    ///
    /// # Errors
    /// It could not be removed; the message says where it is.
    pub fn abort(self) -> Result<(), OutputError> {
        self.target.abort()
    }

    /// The name that the bytes have while the output is not whole, for whoever must remove it when the process is
    /// told to die.
    pub fn temporary_path(&self) -> Option<&Path> {
        self.target.temporary_path()
    }
}
