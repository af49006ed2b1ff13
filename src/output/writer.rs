//! Parts in, in order; bytes appended to the sink. Whatever fails here says which output it was.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::ipc::writer::{FileWriter, StreamWriter};
use parquet::file::writer::SerializedFileWriter;

use super::encoder::{Encoder, EncodingPlan, Part, PartBody};
use super::error::{OutputError, WriteError};
use super::pages::BufferPool;
use super::sink::{self, OutputTarget, Sink};
use super::{Arrangement, Compression, Destination, OutputFormat, ReadBack, index_lines, lines, row_group};
use crate::batch::BatchBuilder;

/// An output that is being written. Dropped without [`Output::finish`], it leaves nothing behind.
pub struct Output {
    writer: Writer,
    target: OutputTarget,
    rows: u64,
    parts: u64,
    /// Of zipnum.
    members: u64,
    /// What was written says in which order it stands, and can be read again.
    has_order: bool,
}

enum Writer {
    Parquet(SerializedFileWriter<Sink>, Arc<BufferPool>),
    Arrow(FileWriter<Sink>),
    ArrowStream(StreamWriter<Sink>),
    Bytes(Sink),
    /// Members, and lines of their index.
    Zipnum(Sink, Vec<u8>),
}

/// An output that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedOutput {
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
    format: OutputFormat,
    how: (Compression, &Arrangement),
    builder: BatchBuilder,
    metadata: Vec<(String, String)>,
    (sink, target): (Sink, OutputTarget),
) -> Result<(Encoder, Output), OutputError> {
    let opened = start(format, how, &builder, metadata, sink);
    let (writer, recipe) = opened.map_err(|cause| target.blame(cause))?;
    Ok((
        Encoder { builder, recipe },
        Output { writer, target, rows: 0, parts: 0, members: 0, has_order: format.has_order() },
    ))
}

/// Writes what the format begins with.
fn start(
    format: OutputFormat,
    (compression, arrangement): (Compression, &Arrangement),
    builder: &BatchBuilder,
    metadata: Vec<(String, String)>,
    mut sink: Sink,
) -> Result<(Writer, EncodingPlan), WriteError> {
    let schema = builder.schema();
    Ok(match format {
        OutputFormat::Parquet => {
            let (writer, groups) = row_group::open(sink, builder, compression, arrangement, metadata)?;
            (Writer::Parquet(writer, groups.spare()), EncodingPlan::Parquet(groups))
        }
        OutputFormat::Arrow => (Writer::Arrow(FileWriter::try_new(sink, schema)?), EncodingPlan::Batch),
        OutputFormat::ArrowStream => (Writer::ArrowStream(StreamWriter::try_new(sink, schema)?), EncodingPlan::Batch),
        OutputFormat::Csv | OutputFormat::Tsv => {
            let delimiter = format.delimiter().unwrap_or(b',');
            sink.write_all(&lines::header(builder.columns(), delimiter))?;
            (Writer::Bytes(sink), EncodingPlan::Delimited(delimiter))
        }
        OutputFormat::JsonLines => (Writer::Bytes(sink), EncodingPlan::JsonLines),
        OutputFormat::Cdxj => (Writer::Bytes(sink), EncodingPlan::Cdxj),
        OutputFormat::Zipnum => (Writer::Zipnum(sink, Vec::new()), EncodingPlan::Zipnum),
        OutputFormat::Text => (Writer::Bytes(sink), EncodingPlan::Text),
    })
}

impl Output {
    /// Appends a part; the caller keeps the order. After an error the output can only be aborted or dropped.
    ///
    /// # Errors
    /// The part is of another output, or the bytes could not be written.
    pub fn append(&mut self, part: Part) -> Result<(), OutputError> {
        let rows = part.rows();
        let written: Result<(), WriteError> = match (&mut self.writer, part.body) {
            (_, PartBody::Nothing) => return Ok(()),
            (Writer::Parquet(writer, spare), PartBody::RowGroup(chunks)) => {
                row_group::append(writer, chunks, spare).map_err(WriteError::from)
            }
            (Writer::Arrow(writer), PartBody::Batch(batch)) => writer.write(&batch).map_err(WriteError::from),
            (Writer::ArrowStream(writer), PartBody::Batch(batch)) => writer.write(&batch).map_err(WriteError::from),
            (Writer::Bytes(sink), PartBody::Bytes(bytes)) => sink.write_all(&bytes).map_err(WriteError::from),
            (Writer::Zipnum(sink, index), PartBody::Members(members)) => {
                let file = self.target.path().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy();
                members.iter().try_for_each(|member| {
                    let offset = sink.written();
                    self.members += 1;
                    index_lines::write_index(member, &file, offset, self.members, index);
                    sink.write_all(&member.bytes).map_err(WriteError::from)
                })
            }
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
    pub fn finish(self) -> Result<FinishedOutput, OutputError> {
        self.finish_if(|_, _| Ok(()))
    }

    /// [`Output::finish`], after `read_back` has read the file again and found all rows. Standard output and formats that
    /// declare no order are not read back.
    ///
    /// # Errors
    /// As [`Output::finish`]; also if `read_back` fails or finds another number of rows.
    pub(crate) fn finish_verified(self, read_back: &mut ReadBack) -> Result<FinishedOutput, OutputError> {
        let is_checked = self.has_order;
        self.finish_if(|path, rows| {
            let Some(path) = path.filter(|_| is_checked) else { return Ok(()) };
            match read_back(path) {
                Ok(found) if found == rows => Ok(()),
                Ok(found) => Err(format!("{found} rows instead of {rows}")),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    /// Ends the format; if `is_good` agrees with what lies under the temporary name, that becomes the final one.
    fn finish_if(
        self,
        is_good: impl FnOnce(Option<&Path>, u64) -> Result<(), String>,
    ) -> Result<FinishedOutput, OutputError> {
        let Output { writer, target, rows, parts, .. } = self;
        let mut index = None;
        let ended: Result<Sink, WriteError> = match writer {
            Writer::Parquet(writer, _) => writer.into_inner().map_err(WriteError::from),
            Writer::Arrow(writer) => writer.into_inner().map_err(WriteError::from),
            Writer::ArrowStream(writer) => writer.into_inner().map_err(WriteError::from),
            Writer::Bytes(sink) => Ok(sink),
            Writer::Zipnum(sink, lines) => {
                index = Some(lines);
                Ok(sink)
            }
        };
        let flushed = ended.and_then(|mut sink| sink.flush().map(|()| sink).map_err(WriteError::from));
        let sink = flushed.map_err(|cause| target.blame(cause))?;
        if let Err(reason) = is_good(target.temporary_path(), rows) {
            let place = target.path().map_or_else(String::new, |path| path.display().to_string());
            target.abort()?;
            return Err(OutputError::NotAsWritten { place, reason });
        }
        let path = target.path().map(Path::to_path_buf);
        let finished = FinishedOutput { path: path.clone(), bytes: sink.written(), rows, parts };
        if let (Some(lines), Some(path)) = (index, path) {
            write_beside(&path, &lines)?;
        }
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

/// The index of members: `x.idx` beside `x.cdx.gz`. It comes first: who finds the data finds its index.
fn write_beside(path: &Path, lines: &[u8]) -> Result<(), OutputError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let stem = [".gz", ".cdx", ".cdxj"].iter().fold(&name[..], |stem, end| stem.strip_suffix(end).unwrap_or(stem));
    let (mut sink, target) = sink::create(&Destination::File(path.with_file_name(format!("{stem}.idx"))))?;
    sink.write_all(lines).map_err(|error| target.blame(error.into()))?;
    target.commit(sink)
}
