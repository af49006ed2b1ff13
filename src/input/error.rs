//! What is wrong with sources. [`ListError`] stops a run before it begins; a [`Defect`] ends one source of a run, is
//! counted, and is reported as an [`InputError`]. What is wrong with records is neither: that is a fault, in a row.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Arguments that name no input.
#[derive(Debug, Error)]
pub enum ListError {
    /// It does not exist, or may not be read.
    #[error("{}: cannot open: {}; {}", path.display(), plain(error), advice(error))]
    Open {
        /// As the argument or the list has it.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A directory without a file to read.
    #[error("{}: no files in this directory (hidden files are skipped); name the files themselves", .0.display())]
    EmptyDirectory(PathBuf),
    /// A list of paths without a path.
    #[error("@{}: no paths in this list; write one path a line", .0.display())]
    EmptyList(PathBuf),
    /// A list of paths that cannot be read.
    #[error("@{}: cannot read the list of inputs: {}; write ./@NAME if this is a file of URLs", path.display(), plain(error))]
    List {
        /// The list, without its `@`.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A path in a list that is not text, on a system whose paths are.
    #[error("@{}: line {line}: this path is not UTF-8; rename the file", path.display())]
    ListPath {
        /// The list, without its `@`.
        path: PathBuf,
        /// Its line, counted from 1.
        line: usize,
    },
    /// Standard input can be read once.
    #[error("-: standard input is named more than once; name it once")]
    StdinTwice,
}

/// The system's words without "(os error 2)".
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_ascii_lowercase()
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => "make it readable for this user",
        _ => "check the file",
    }
}

/// What ended a source early.
#[derive(Debug, Error)]
pub enum Defect {
    /// It could be opened when the inputs were listed, and cannot be now.
    #[error("cannot open: {}; {}", plain(.0), advice(.0))]
    Open(io::Error),
    /// A read failed.
    #[error("cannot read on: {}; check the device and run again", plain(.0))]
    Read(io::Error),
    /// The file ends within a gzip member.
    #[error("the gzip data ends early: the file was cut short; fetch it again (gzip -t checks it)")]
    GzipTruncated,
    /// A gzip member is damaged.
    #[error("damaged gzip data: {0}; fetch the file again (gzip -t checks it)")]
    Gzip(&'static str),
    /// Bytes after the last gzip member that are neither a member nor zeros.
    #[error("bytes after the last gzip member that are no gzip data; they are not read")]
    GzipGarbage,
    /// The file ends within a zstd frame.
    #[error("the zstd data ends early: the file was cut short; fetch it again (zstd -t checks it)")]
    ZstdTruncated,
    /// A zstd frame is damaged, or wants more memory than allowed, or other bytes follow the last one.
    #[error("damaged zstd data: {0}; fetch the file again (zstd -t checks it)")]
    Zstd(String),
    /// The file ends within a frame or stream of this packing.
    #[error("the {0} data ends early: the file was cut short; fetch it again ({0} -t checks it)")]
    Truncated(&'static str),
    /// A frame or stream of this packing is damaged, or other bytes follow the last one.
    #[error("damaged {0} data: {1}; fetch the file again ({0} -t checks it)")]
    Damaged(&'static str, String),
    /// A Parquet or Arrow file cannot be read, or lacks a column.
    #[error("{0}: {1}")]
    Table(&'static str, String),
    /// A WARC or ARC file ends within a record.
    #[error("the last record ends early: the archive was cut short; fetch it again")]
    ArchiveTruncated,
    /// The text is in an encoding whose lines are not found by looking for the byte LF.
    #[error("this is {0} text; convert it first, for example with iconv -t UTF-8")]
    Encoding(&'static str),
    /// The byte order mark is of another charset than the one asked for.
    #[error("its byte order mark is not that of {0}; leave --charset out, or take the mark off")]
    ForeignMark(&'static str),
    /// UTF-16 that ends within a character.
    #[error("the UTF-16 text ends within a character: the file was cut short; fetch it again")]
    Utf16Truncated,
    /// Not text at all.
    #[error("this is {0}, not text; unpack or convert it first")]
    Binary(&'static str),
    /// The index of a zipnum cluster, which holds keys and no URLs.
    #[error("this is the index of a zipnum cluster, which contains no URLs; read the .gz files of the cluster instead")]
    ZipnumIndex,
    /// A record without an end in sight.
    #[error("no end of record within {0} bytes; allow more with --max-record, or check that this is text")]
    RecordTooLong(usize),
}

/// A [`Defect`] and where it was met.
#[derive(Debug, Error)]
#[error(
    "{name}: after {records} records, at {}byte {offset}: {defect}{}",
    if *.packed { "compressed " } else { "" },
    lost_text(*.lost),
)]
pub struct InputError {
    /// Number of the source in the list of sources.
    pub source_number: u32,
    /// Name of the source.
    pub name: String,
    /// What was found.
    pub defect: Defect,
    /// Byte of the source where: of the compressed file if `packed`, else of its text.
    pub offset: u64,
    /// `offset` counts compressed bytes.
    pub packed: bool,
    /// Bytes of an unfinished record before the defect, which is not taken.
    pub lost: u64,
    /// Records of the source before it; all of them are rows.
    pub records: u64,
}

fn lost_text(lost: u64) -> String {
    match lost {
        0 => String::new(),
        _ => format!(" (the {lost} bytes of an unfinished record before it are not taken)"),
    }
}
