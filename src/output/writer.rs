//! Opens outputs, appends encoded rows in order, and finishes files.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;
use arrow::ipc::writer::{FileWriter, StreamWriter};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::cluster::{MemberPlace, location, write_index};
use super::encoder::{EncodedBody, EncodedRows, Encoder};
use super::error::{OutputError, WriteError};
use super::index_lines::GzipMember;
use super::lines;
use super::options::{Arrangement, Destination, OutputFormat, OutputOptions, ReadBack, ReadBackError};
use super::packing::{TextPacking, gzip};
use super::pages::PageSink;
use super::row_group::{self, ParquetSettings, RowGroups};
use super::sink::{self, NO_FILE, OutputTarget, Sink};
use crate::batch::BatchBuilder;
use crate::process::part_names::member_index_paths;
use crate::process::{PendingFile, lock_directory_of, path_name};

/// An output that is being written. Removes the file if it is dropped before [`Output::finish`].
pub struct Output {
    writer: Writer,
    target: OutputTarget,
    rows: u64,
    row_groups: u64,
    /// The format declares the order of rows, so that the file can be read back and verified.
    has_order: bool,
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Output { target, rows, row_groups, .. } = self;
        f.debug_struct("Output")
            .field("target", target)
            .field("rows", rows)
            .field("row_groups", row_groups)
            .finish_non_exhaustive()
    }
}

enum Writer {
    Parquet(SerializedFileWriter<PageSink>),
    Arrow(FileWriter<Sink>),
    ArrowStream(StreamWriter<Sink>),
    Bytes(Sink),
    /// Gzip members, and where they are.
    Zipnum(Sink, Vec<MemberPlace>),
}

/// An output whose bytes are all written.
struct EndedOutput {
    sink: Sink,
    target: OutputTarget,
    finished: FinishedOutput,
    /// The members of zipnum.
    members: Option<Vec<MemberPlace>>,
}

/// A complete file of a directory.
pub(super) struct FinishedPart {
    pub(super) output: FinishedOutput,
    /// The members of zipnum.
    pub(super) members: Option<Vec<MemberPlace>>,
    /// A regular file, which does not have its name yet.
    pub(super) pending: Option<PendingFile>,
}

/// A complete output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedOutput {
    /// Its path; `None` for standard output.
    pub path: Option<PathBuf>,
    /// Length in bytes.
    pub bytes: u64,
    /// Number of rows.
    pub rows: u64,
    /// Number of row groups with rows: record batches in Arrow; in text formats, the pieces that were encoded and appended.
    pub row_groups: u64,
}

/// Opens an output: the encoder that workers share, and the output that encoded rows are appended to.
///
/// # Errors
/// The destination is a directory, its directory does not exist, or it is not writable.
pub fn create(destination: &Destination, options: OutputOptions) -> Result<(Encoder, Output), OutputError> {
    create_arranged(destination, options, &Arrangement::default())
}

/// Opens an output as [`create`] does, for rows that the caller appends in an order.
///
/// # Errors
/// As [`create`].
pub fn create_arranged(
    destination: &Destination,
    options: OutputOptions,
    arrangement: &Arrangement,
) -> Result<(Encoder, Output), OutputError> {
    let packing = TextPacking::of(destination.path(), options.format.is_packable());
    let (encoder, files) = encoder(options, arrangement, packing)?;
    Ok((encoder, files.open(destination)?))
}

/// Opens the files of an output, whose rows have the same encoder.
pub(super) struct FileOpener {
    pub(super) format: OutputFormat,
    schema: SchemaRef,
    /// Settings of Parquet files.
    properties: WriterProperties,
    /// The header of a text file.
    header: Vec<u8>,
}

/// Makes the encoder of an output, and what opens its files.
pub(super) fn encoder(
    options: OutputOptions,
    arrangement: &Arrangement,
    packing: TextPacking,
) -> Result<(Encoder, FileOpener), OutputError> {
    let (format, metadata) = (options.format, options.metadata(arrangement));
    let builder = BatchBuilder::new(options.columns, &metadata, &options.policy, &options.sources);
    let settings = ParquetSettings { compression: options.compression, arrangement, metadata };
    let properties = row_group::properties(&builder, &settings);
    let header = header(format, packing, &builder).map_err(WriteError::from)?;
    let row_groups = (format == OutputFormat::Parquet).then(|| RowGroups::new(&builder, &settings, &properties));
    let row_groups = row_groups.transpose().map_err(WriteError::from)?;
    let files = FileOpener { format, schema: builder.schema().clone(), properties, header };
    Ok((Encoder { builder, format, row_groups, packing }, files))
}

/// Returns the header of delimited text. Other text formats have no header. If the output is compressed, the header is a member or
/// frame, which may be empty, so that an output without rows is a valid file.
fn header(format: OutputFormat, packing: TextPacking, builder: &BatchBuilder) -> io::Result<Vec<u8>> {
    if !format.is_packable() {
        return Ok(Vec::new());
    }
    packing.pack(lines::header(format, builder.columns().names()))
}

impl FileOpener {
    /// Opens a file. Writes its header, and in binary formats its start.
    pub(super) fn open(&self, destination: &Destination) -> Result<Output, OutputError> {
        let (sink, target) = sink::create(destination)?;
        if let (OutputFormat::Zipnum, OutputTarget::Direct(path)) = (self.format, &target) {
            return Err(OutputError::NotRegular { path: path.clone(), format: self.format.name() });
        }
        let writer = self.writer(sink).map_err(|error| target.error(error))?;
        Ok(Output { writer, target, rows: 0, row_groups: 0, has_order: self.format.has_order() })
    }

    fn writer(&self, mut sink: Sink) -> Result<Writer, WriteError> {
        sink.write_all(&self.header)?;
        Ok(match self.format {
            OutputFormat::Parquet => {
                let sink = PageSink::new(sink);
                Writer::Parquet(row_group::open(sink, &self.schema, &self.properties)?.into_serialized_writer()?.0)
            }
            OutputFormat::Arrow => Writer::Arrow(FileWriter::try_new(sink, &self.schema)?),
            OutputFormat::ArrowStream => Writer::ArrowStream(StreamWriter::try_new(sink, &self.schema)?),
            OutputFormat::Zipnum => Writer::Zipnum(sink, Vec::new()),
            _ => Writer::Bytes(sink),
        })
    }
}

impl Output {
    /// Appends encoded rows. After an error the output can only be aborted or dropped.
    ///
    /// # Errors
    /// The rows were encoded for another output, or writing failed.
    pub fn append(&mut self, encoded: EncodedRows) -> Result<(), OutputError> {
        let rows = encoded.rows();
        let written: Result<(), WriteError> = match (&mut self.writer, encoded.body) {
            (_, EncodedBody::Empty) => return Ok(()),
            (Writer::Parquet(writer), EncodedBody::RowGroup(group)) => {
                row_group::append(writer, group).map_err(WriteError::from)
            }
            (Writer::Arrow(writer), EncodedBody::Batch(batch)) => writer.write(&batch).map_err(WriteError::from),
            (Writer::ArrowStream(writer), EncodedBody::Batch(batch)) => writer.write(&batch).map_err(WriteError::from),
            (Writer::Bytes(sink), EncodedBody::Bytes(bytes)) => sink.write_all(&bytes).map_err(WriteError::from),
            (Writer::Zipnum(sink, places), EncodedBody::Members(members)) => {
                members.into_iter().try_for_each(|GzipMember { key, bytes }| {
                    places.push(MemberPlace { key, offset: sink.written(), len: bytes.len() });
                    sink.write_all(&bytes).map_err(WriteError::from)
                })
            }
            _ => return Err(OutputError::ForeignRows),
        };
        written.map_err(|error| self.target.error(error))?;
        if matches!(&self.writer, Writer::Parquet(writer) if row_group::has_too_many(writer)) {
            let path = self.target.path().unwrap_or(Path::new("standard output"));
            return Err(OutputError::TooManyRowGroups(path.to_path_buf()));
        }
        self.rows += rows;
        self.row_groups += 1;
        Ok(())
    }

    /// Returns the number of rows that were appended.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the footer, makes the file durable and renames it to its final name.
    ///
    /// # Errors
    /// Writing or renaming failed; no partial file has the final name.
    pub fn finish(self) -> Result<FinishedOutput, OutputError> {
        self.finish_verified(None)
    }

    /// [`Output::finish`], after `read_back`, if it is given, has read the file again and found all rows. Standard output and
    /// formats that declare no order are not read back.
    ///
    /// # Errors
    /// As [`Output::finish`]; also if `read_back` fails or finds another number of rows.
    pub(crate) fn finish_verified(self, read_back: Option<&mut ReadBack>) -> Result<FinishedOutput, OutputError> {
        self.end(read_back)?.commit()
    }

    /// Writes the footer of a regular file, which keeps its temporary name: the caller commits several files together.
    pub(crate) fn finish_pending(self) -> Result<(FinishedOutput, Option<PendingFile>), OutputError> {
        let FinishedPart { output, pending, .. } = self.finish_part(None)?;
        Ok((output, pending))
    }

    /// [`Output::finish_pending`] for a file of a directory, [verified](Output::finish_verified) if `read_back` is given.
    pub(super) fn finish_part(self, read_back: Option<&mut ReadBack>) -> Result<FinishedPart, OutputError> {
        let EndedOutput { sink, target, finished, members } = self.end(read_back)?;
        Ok(FinishedPart { output: finished, members, pending: target.close(sink)?.into_pending()? })
    }

    /// Writes and flushes the end of the file. Removes the file unless `read_back` finds all rows in it.
    fn end(self, read_back: Option<&mut ReadBack>) -> Result<EndedOutput, OutputError> {
        let Output { writer, target, rows, row_groups, has_order } = self;
        let mut members = None;
        let ended: Result<Sink, WriteError> = match writer {
            Writer::Parquet(writer) => writer.into_inner().map(PageSink::into_sink).map_err(WriteError::from),
            Writer::Arrow(writer) => writer.into_inner().map_err(WriteError::from),
            Writer::ArrowStream(writer) => writer.into_inner().map_err(WriteError::from),
            Writer::Bytes(sink) => Ok(sink),
            Writer::Zipnum(sink, places) => end_members(sink, members.insert(places)),
        };
        let flushed = ended.and_then(|mut sink| sink.flush().map(|()| sink).map_err(WriteError::from));
        let sink = flushed.map_err(|error| target.error(error))?;
        if let Some((file, read_back)) = target.temporary_path().zip(read_back.filter(|_| has_order))
            && let Err(reason) = check_rows(file, read_back, rows)
        {
            let place = target.path().map_or_else(String::new, path_name);
            target.abort()?;
            return Err(not_as_written(place, reason));
        }
        let path = target.path().map(Path::to_path_buf);
        let finished = FinishedOutput { path, bytes: sink.written(), rows, row_groups };
        Ok(EndedOutput { sink, target, finished, members })
    }

    /// Removes the temporary file. Dropping the output does the same, but ignores errors.
    ///
    /// # Errors
    /// The file cannot be removed; the message contains its path.
    pub fn abort(self) -> Result<(), OutputError> {
        self.target.abort()
    }
}

impl EndedOutput {
    /// Renames the file, and writes the index of its members beside it.
    fn commit(self) -> Result<FinishedOutput, OutputError> {
        let EndedOutput { sink, target, finished, members } = self;
        match members.zip(finished.path.as_deref()) {
            Some((members, path)) => commit_with_index(target, sink, path, &members)?,
            None => target.commit(sink)?,
        }
        Ok(finished)
    }
}

/// Ends a series of gzip members. A file without members would be no gzip file, so it gets one without lines, which the index
/// does not list.
fn end_members(mut sink: Sink, members: &[MemberPlace]) -> Result<Sink, WriteError> {
    if members.is_empty() {
        sink.write_all(&gzip(&[])?)?;
    }
    Ok(sink)
}

/// Reads a file back, and checks its number of rows.
fn check_rows(path: &Path, read_back: &mut ReadBack, rows: u64) -> Result<(), ReadBackError> {
    match read_back(path)? {
        found if found == rows => Ok(()),
        found => Err(format!("{found} rows, expected {rows}").into()),
    }
}

/// The error of an output that could not be read back, or has other rows.
fn not_as_written(place: String, reason: ReadBackError) -> OutputError {
    match reason.downcast::<io::Error>() {
        Ok(error) => OutputError::Io { place, operation: "read back", error: *error, advice: NO_FILE },
        Err(reason) => OutputError::NotAsWritten { place, reason: reason.to_string() },
    }
}

/// Gives the data at `path`, the index of its members and its location their names, or completes these objects. Data may be
/// without an index for a moment, but an index is never beside data of another run: offsets of the one would lead into the
/// middle of members of the other.
fn commit_with_index(
    target: OutputTarget,
    data: Sink,
    path: &Path,
    members: &[MemberPlace],
) -> Result<(), OutputError> {
    let [index_path, location_path] = member_index_paths(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut lines = Vec::new();
    write_index(members, &name, 1, &mut lines);
    let write = |path: &Path, bytes: &[u8]| {
        let (mut sink, file) = sink::create(&target.destination(path.to_path_buf()))?;
        sink.write_all(bytes).map_err(|error| file.error(error.into()))?;
        let file = file.close(sink)?;
        file.sync()?;
        Ok::<_, OutputError>(file)
    };
    let (index, location) = (write(&index_path, &lines)?, write(&location_path, &location(&name))?);
    // Names of another job for the same file must not come between these.
    let _lock = target.temporary_path().and_then(lock_directory_of);
    let data = target.close(data)?;
    data.sync()?;
    data.remove_replaced(&index_path)?;
    data.commit()?;
    location.commit()?;
    index.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{ColumnSet, SourceRun};
    use crate::canon::{Policy, UrlCanonicalizer};
    use crate::input::{KeyedFile, StoredFile};
    use std::fs::File;

    /// A file that is read back gets its name only if all its rows are found.
    #[test]
    fn an_output_that_is_not_as_written_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let finish = |format, rows: Result<u64, &'static str>| {
            let (_, output) = create(&Destination::File(path.clone()), OutputOptions::of_uris(format)).unwrap();
            let mut read_back: ReadBack = Box::new(move |_| Ok(rows?));
            output
                .finish_verified(Some(&mut read_back))
                .map(|finished| finished.rows)
                .map_err(|error| error.to_string())
        };
        let message = |reason| {
            format!(
                "{}: the file does not contain what was written: {reason}; no partial file is left behind",
                path.display()
            )
        };
        for format in [OutputFormat::Parquet, OutputFormat::Arrow, OutputFormat::Cdxj] {
            assert_eq!(finish(format, Ok(1)), Err(message("1 rows, expected 0")));
            assert_eq!(finish(format, Err("not sorted")), Err(message("not sorted")));
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
            assert_eq!(finish(format, Ok(0)), Ok(0));
            std::fs::remove_file(&path).unwrap();
        }
        // Formats that declare no order are not read back.
        assert_eq!(finish(OutputFormat::Csv, Ok(1)), Ok(0));
    }

    /// Readers refuse footers that take too much memory; the writer ends before there is one.
    #[test]
    fn a_file_with_as_many_row_groups_as_the_writer_allows_can_be_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.parquet");
        let policy = Policy { keep_input: true, ..Policy::default() };
        let open = || {
            let (columns, sources) = (ColumnSet::default(), vec!["x".to_string()]);
            let of_uris = OutputOptions::of_uris(OutputFormat::Parquet);
            let options = OutputOptions { columns, sources, policy: policy.clone(), ..of_uris };
            create(&Destination::File(path.clone()), options).unwrap()
        };
        let mut urls = UrlCanonicalizer::new(&policy);
        let mut append = |(encoder, output): &mut (Encoder, Output)| {
            let rows = urls.canonicalize([(&b"http://a/%7e"[..], None)]).unwrap();
            output.append(encoder.encode(rows, &[SourceRun { source: 0, first_record: 1, rows: 1 }])?)
        };
        let mut output = open();
        let error = std::iter::repeat_with(|| append(&mut output)).find_map(Result::err).unwrap();
        assert!(matches!(&error, OutputError::TooManyRowGroups(at) if *at == path), "{error}");
        let count = output.1.rows();
        drop(output);
        let mut output = open();
        (0..count).for_each(|_| append(&mut output).unwrap());
        assert_eq!(output.1.finish().unwrap().row_groups, count);
        let file = KeyedFile::open("x.parquet", &StoredFile::Path(path)).unwrap().unwrap();
        assert_eq!((file.row_group_count() as u64, count > 50), (count, true));
    }

    /// Another job that gives its files the same names has the lock of the directory.
    #[test]
    fn members_and_their_index_get_their_names_while_no_other_job_does() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.cdx.gz");
        let names = [path.clone()].into_iter().chain(member_index_paths(&path));
        let files: Vec<_> = names.clone().map(|path| Destination::File(path.clone())).collect();
        files.iter().for_each(|file| sink::write_file(file, b"other").unwrap());
        let (_, output) =
            create(&Destination::File(path.clone()), OutputOptions::of_uris(OutputFormat::Zipnum)).unwrap();
        let lock = lock_directory_of(&path).expect("a file system with locks");
        let job = std::thread::spawn(|| output.finish());
        // Without the lock, the job ends in a small part of this time.
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(!job.is_finished());
        for name in names.clone() {
            assert_eq!(std::fs::read(&name).unwrap(), b"other", "{name:?}");
        }
        drop(lock);
        job.join().unwrap().unwrap();
        for name in names {
            assert_ne!(std::fs::read(&name).unwrap(), b"other", "{name:?}");
        }
        // The job has released its own lock.
        assert!(File::open(directory.path()).unwrap().try_lock().is_ok());
    }
}
