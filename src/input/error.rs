//! Errors of sources. A [`ListError`] prevents a run; a [`Defect`] ends one source of a run and is reported as an
//! [`InputError`]. An error in a record is neither of these: it is a fault, which becomes a row.

use crate::record::UnsupportedFormat;
use crate::record::archive::ArchiveDamage;
use crate::record::csv::ColumnChoiceError;
use crate::remote::RemoteError;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

use crate::process::{path_name, plain_error, remedy, visible};

/// An argument that names no readable input.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListError {
    /// The file does not exist, or cannot be opened.
    #[error("{}: cannot open: {}; {}", path_name(path), plain(error), open_advice(path, error))]
    Open {
        /// The path as given in the argument or the list.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The directory has no file to read.
    #[error("{}: no files in this directory (names that begin with . or _ are skipped); name the files themselves", path_name(.0))]
    EmptyDirectory(PathBuf),
    /// The directory has a part of an output: another job writes it, or was interrupted.
    #[error(
        "{}: this output of irikey is not complete; run the job that writes it again, or name the files that are to be read",
        path_name(.0)
    )]
    IncompleteDirectory(PathBuf),
    /// The list of paths is empty.
    #[error("@{}: no paths in this list; write one path per line", path_name(.0))]
    EmptyList(PathBuf),
    /// The list of paths cannot be read.
    #[error(
        "@{}: cannot read the list of inputs: {}; if this is an input whose name begins with @, write ./@NAME",
        path_name(path),
        plain(error)
    )]
    List {
        /// Path of the list, without the `@`.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A path in the list is not UTF-8, on a system where paths must be.
    #[error("@{}: line {line}: this path is not UTF-8; rename the file", path_name(path))]
    ListPath {
        /// Path of the list, without the `@`.
        path: PathBuf,
        /// Line in the list, counted from 1.
        line: usize,
    },
    /// No member of a ZIP archive has the name.
    #[error("{}: no member has this name; the members are: {members}", path_name(path))]
    NoMember {
        /// The archive, `!`, and the name or pattern.
        path: PathBuf,
        /// The names of the first members, and the number of the others.
        members: String,
    },
    /// Several inputs cannot be read.
    #[error("{} inputs cannot be read, so the job did not begin:{}", .0.len(), list_text(.0))]
    Several(Vec<ListError>),
    /// Standard input is named twice, but can be read only once.
    #[error("-: standard input is named more than once, for example as - and as /dev/stdin; name it once")]
    StdinTwice,
}

/// What a store answered, or the description of a system error.
fn plain(error: &io::Error) -> String {
    RemoteError::of_io(error).map_or_else(|| plain_error(error), |error| error.found.clone())
}

/// Why a file cannot be opened, and what to do.
pub(crate) fn error_and_advice(error: &io::Error) -> String {
    format!("{}; {}", plain(error), advice(error))
}

/// An argument that begins with `@` is a list, so a path that does is a name in a list.
fn open_advice<'a>(path: &Path, error: &'a io::Error) -> &'a str {
    match path.as_os_str().as_encoded_bytes() {
        [b'@', _, ..] => "a list cannot name another list; name both lists in the command",
        _ => advice(error),
    }
}

fn advice(error: &io::Error) -> &str {
    if let Some(error) = RemoteError::of_io(error) {
        return &error.advice;
    }
    if let Some(remedy) = remedy(error) {
        return remedy;
    }
    match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "make it readable for this user",
        _ => "check the file",
    }
}

fn read_advice(error: &io::Error) -> &str {
    let usual = || remedy(error).unwrap_or("check the device and run again");
    RemoteError::of_io(error).map_or_else(usual, |error| &error.advice)
}

/// One line per error; many errors are cut.
fn list_text(errors: &[ListError]) -> String {
    const SHOWN: usize = 20;
    let mut text: String =
        errors.iter().take(SHOWN).map(|error| format!("\n  {}", visible(&error.to_string()))).collect();
    if let Some(more) = errors.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!("\n  and {more} more"));
    }
    text
}

/// What ends a source early, or what was found in it besides records.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Defect {
    /// The file cannot be opened any more; it could when the inputs were listed.
    #[error("cannot open: {}", error_and_advice(.0))]
    Open(io::Error),
    /// A pipe, socket or device that was found in a directory.
    #[error("not a regular file, and therefore not read with its directory; name it as an input, or remove it")]
    Special,
    /// A read failed.
    #[error("cannot read further: {}; {}", plain(.0), read_advice(.0))]
    Read(io::Error),
    /// The file is shorter than it was when it was opened.
    #[error(
        "the file was {0} bytes long and was truncated to {1} while it was read; run again when no other process writes to it"
    )]
    Shrunk(u64, u64),
    /// Bytes after the last gzip member that are neither a member nor zeros.
    #[error(
        "the bytes after the last gzip member are not gzip data; they were not read: remove them, or fetch the file again"
    )]
    GzipGarbage,
    /// The file ends within a member, frame or stream of this compression.
    #[error("the {0} data ends early: the file was cut short; fetch it again ({0} -t checks it)")]
    Truncated(&'static str),
    /// What follows in a JSON document is not what its format has there.
    #[error("the JSON document does not have its format from here on; the rest was not read; check it with jq")]
    JsonBroken,
    /// A JSON document ends early.
    #[error("the JSON document ends early: it was cut short; fetch it again")]
    JsonTruncated,
    /// A member, frame or stream of this compression is damaged, or other bytes follow the last frame or stream.
    #[error("damaged {0} data: {1}; fetch the file again ({0} -t checks it)")]
    Damaged(&'static str, String),
    /// A frame or stream of this compression needs a larger dictionary than this many bytes.
    #[error(
        "decompressing this {0} data needs a dictionary of more than {len} MiB of memory; decompress it with the {0} program first",
        len = .1 >> 20
    )]
    Dictionary(&'static str, u64),
    /// A ZIP archive or one of its members cannot be read.
    #[error("cannot read this from a ZIP archive: {0}")]
    Zip(String),
    /// A table lacks a column that was chosen, or the source is no table. This stops the run.
    #[error(transparent)]
    NoColumn(ColumnChoiceError),
    /// No column of a Parquet or Arrow file holds URLs by its name, or a column has the wrong type, or its name is not unique.
    #[error("{0}")]
    Columns(String),
    /// A Parquet or Arrow file cannot be read.
    #[error("{0}: {text}{advice}", text = without_types(.1), advice = table_advice(.1))]
    Table(&'static str, String),
    /// A WARC or ARC file ends within a record.
    #[error("the last record ends early: the archive was cut short; fetch it again")]
    ArchiveTruncated,
    /// Bytes of an archive belong to no record, or records are shorter than their length says. The archive was read to its
    /// end.
    #[error("{0}; check that this is a WARC or ARC file, and fetch it again (warcio check finds the records)")]
    ArchiveDamaged(ArchiveDamage),
    /// The text is in an encoding in which lines do not end with the byte LF.
    #[error("this is {0} text; convert it first, for example with iconv -t UTF-8")]
    Encoding(&'static str),
    /// The byte order mark belongs to another charset than the requested one.
    #[error("its byte order mark is not that of {0}; omit --charset, or remove the mark")]
    ForeignMark(&'static str),
    /// UTF-16 text ends within a character.
    #[error("the UTF-16 text ends within a character: the file was cut short; fetch it again")]
    Utf16Truncated,
    /// The source is of a format that is not read.
    #[error("this is {}; {}", .0.name, .0.advice)]
    Unsupported(UnsupportedFormat),
    /// No end of a record within this many bytes.
    #[error(
        "no record ends within the next {0} bytes, so the source was read only up to here; check that this is text, or allow longer \
         records with --max-record"
    )]
    RecordTooLong(usize),
    /// A row of a table has more than this many bytes of text.
    #[error(
        "the next row has more than {0} bytes of text, so the table was read only up to here; allow longer rows with --max-record"
    )]
    RowTooLong(usize),
}

impl Defect {
    /// The system could not open or read the source, which may be undamaged: reading it again may succeed.
    pub(crate) fn is_of_system(&self) -> bool {
        matches!(self, Defect::Open(_) | Defect::Read(_))
    }

    /// The defect of a table that cannot be read: `cause` if it is an error of the system or of a store, otherwise what `message`
    /// says.
    pub(super) fn of_table(format: &'static str, cause: Option<&io::Error>, message: &dyn Display) -> Defect {
        let remote = || Some(RemoteError::of_io(cause?)?.clone().into());
        let of_system = || Some(io::Error::from_raw_os_error(cause?.raw_os_error()?));
        match remote().or_else(of_system) {
            Some(error) => Defect::Read(error),
            None => Defect::Table(format, message.to_string()),
        }
    }

    pub(super) fn zip_damage(what: &str) -> Defect {
        Defect::Zip(format!("{what}; fetch the archive again (unzip -t checks it)"))
    }

    /// The defect of a reader that reports it as an error of the system.
    pub(super) fn of_read(error: io::Error) -> Defect {
        error.downcast::<Defect>().unwrap_or_else(Defect::Read)
    }
}

/// A [`Defect`] and its place.
#[derive(Debug, Error)]
#[error(
    "{name}: {}{defect}{}",
    place_text(*.records, *.offset, *.is_compressed, .defect),
    lost_text(*.lost),
)]
pub struct InputError {
    /// Number of the source in the list of sources.
    pub source_number: u32,
    /// Name of the source.
    pub name: String,
    /// The defect.
    pub defect: Defect,
    /// Byte offset of the defect: in the compressed file if `is_compressed`, otherwise in the text; 0 if it is not known.
    pub offset: u64,
    /// `offset` counts compressed bytes.
    pub is_compressed: bool,
    /// Bytes of an incomplete record before the defect, which is dropped.
    pub lost: u64,
    /// Records of the source before the defect; all of them are rows.
    pub records: u64,
}

impl InputError {
    /// The error of a source from which nothing was read.
    pub(crate) fn new(source_number: u32, name: String, defect: Defect) -> InputError {
        InputError { source_number, name, defect, offset: 0, is_compressed: false, lost: 0, records: 0 }
    }
}

/// The message of a decoder without the types of errors around it, such as `External: Parquet argument error: `.
pub(crate) fn without_types(message: &str) -> String {
    const TYPES: [&str; 8] = [
        "External: ",
        "External error: ",
        "Parquet argument error: ",
        "Parquet error: ",
        "Parser error: ",
        "Ipc error: ",
        "EOF: ",
        "Io error: ",
    ];
    let text = TYPES.iter().fold(message.to_string(), |text, name| text.replace(name, ""));
    match text.split_once(" (os error ").map(|(before, after)| (before, after.split_once(')'))) {
        Some((before, Some((_, after)))) => format!("{before}{after}"),
        _ => text,
    }
}

/// What to do about a table that cannot be read; nothing if the message has advice, or if the reason is not damage.
fn table_advice(message: &str) -> &'static str {
    const OTHER: [&str; 6] = ["; ", "memory", "support", "implemented", "NYI", "Disabled"];
    let is_damage = !OTHER.iter().any(|text| message.contains(text));
    if is_damage { "; the file is damaged or was cut short: fetch it again" } else { "" }
}

/// Where a source ended; nothing if it could not be read at all.
fn place_text(records: u64, offset: u64, is_compressed: bool, defect: &Defect) -> String {
    let (plural, unit) = (if records == 1 { "" } else { "s" }, if is_compressed { "compressed byte" } else { "byte" });
    match (records, offset) {
        // The first byte of a document may be the one that is wrong.
        (0, 0) if !matches!(defect, Defect::JsonBroken) => String::new(),
        (1.., 0) => format!("after {records} record{plural}: "),
        _ => format!("after {records} record{plural}, at {unit} {offset}: "),
    }
}

fn lost_text(lost: u64) -> String {
    match lost {
        0 => String::new(),
        1 => " (1 byte of an incomplete record was dropped)".to_string(),
        _ => format!(" ({lost} bytes of an incomplete record were dropped)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_of_what_was_read_has_a_place_also_at_the_start() {
        let text = |defect| InputError::new(0, "x.har".to_string(), defect).to_string();
        let message = text(Defect::JsonBroken);
        assert!(message.starts_with("x.har: after 0 records, at byte 0: the JSON document does not"), "{message}");
        assert!(text(Defect::Special).starts_with("x.har: not a regular file"));
    }

    #[test]
    fn messages_of_decoders_do_not_name_types() {
        let message =
            "row group 2: External: Parquet argument error: External: stale file handle (os error 116); fetch it";
        assert_eq!(without_types(message), "row group 2: stale file handle; fetch it");
        assert_eq!(without_types("Parser error: Parser error: the schema is damaged"), "the schema is damaged");
    }

    #[test]
    fn damaged_tables_have_advice() {
        let message = |text: &str| Defect::Table("Parquet", text.to_string()).to_string();
        let expected = "Parquet: no footer; the file is damaged or was cut short: fetch it again";
        assert_eq!(message("Parquet error: no footer"), expected);
        for text in
            ["a page is damaged; fetch the file again", "NYI: x", "the footer is encrypted, which is not supported"]
        {
            assert_eq!(message(text), format!("Parquet: {text}"));
        }
    }
}
