//! Reads crawl data with the readers of the command: every format, compressed or not; files, directories, archives and objects.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use irikey::batch::{BatchBuilder, BatchError};
use irikey::canon::Policy;
use irikey::input::{ListError, Source, Sources, list};
use irikey::record::archive::RecordTypes;
use irikey::record::csv::ColumnChoiceError;
use irikey::record::{FormatOptions, InputFormat};
use irikey::run::{self, MAX_THREADS, Progress, ReadError, RowGroup, RunError, RunOptions, RunRequest, Summary};
use pyo3::exceptions::{PyFileNotFoundError, PyKeyError, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tempfile::NamedTempFile;

use crate::argument::copied_bytes;
use crate::configuration::{Configuration, python_terms};
use crate::engine::{Engine, typed};
use crate::schema::{answer_batch, answer_schema, policy_metadata};

/// The first bytes of ZIP archives, of Parquet and Arrow files, and of Arrow streams, whose reader also needs a file.
const READ_FROM_END: [&[u8]; 4] = [b"PK\x03\x04", b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"];

/// How long a call waits before it lets Python handle signals, such as Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(5);

/// How long a call waits for its thread to stop after an exception, so that the thread does not go on unseen.
const STOP_TIMEOUT: Duration = Duration::from_millis(200);

/// How a file is read.
pub struct ReadOptions {
    /// Names of result columns; those of the canonicalizer if there are none.
    pub columns: Option<Vec<String>>,
    pub format: String,
    /// Name in messages and in the column `source`, instead of the path.
    pub name: Option<String>,
    /// Types of archive records that become rows; those of captures if empty.
    pub record_types: Vec<String>,
    /// 0 means one per core.
    pub threads: i64,
}

/// The rows of the sources, and the counts of the run.
pub struct ReadRows {
    pub batches: Vec<RecordBatch>,
    pub schema: SchemaRef,
    pub summary: Summary,
}

/// Why a part of the output was not made.
#[derive(Debug)]
enum PartError {
    Batch(BatchError),
    /// Python raised an exception, such as KeyboardInterrupt.
    Stopped,
}

impl std::fmt::Display for PartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PartError::Batch(error) => error.fmt(f),
            PartError::Stopped => f.write_str("the run was interrupted"),
        }
    }
}

impl std::error::Error for PartError {}

/// Reads `source`, a path or bytes.
///
/// # Errors
/// An option is invalid, the path cannot be opened, or a signal handler raised an exception. A damaged file is not an error:
/// the summary has it, and the rows are those before the damage.
pub fn read(py: Python<'_>, engine: &Engine, source: &Bound<'_, PyAny>, options: ReadOptions) -> PyResult<ReadRows> {
    let columns = options.columns.clone().or_else(|| engine.configuration.columns.clone());
    let configuration = Configuration { columns, ..engine.configuration.clone() };
    let outputs = configuration.outputs(true)?;
    let policy = configuration.policy(&outputs.columns, Some(&engine.policy))?;
    let types = configuration.types()?;
    let run_options = run_options(&configuration, &options)?;
    let (sources, file) = open(source, options.name)?;
    let metadata = policy_metadata(&policy);
    let builder = BatchBuilder::new(outputs.columns.clone(), &metadata, &policy, &sources.names());
    let is_stopped = Arc::new(AtomicBool::new(false));
    let run = ReadRun { sources, options: run_options, policy, builder, is_stopped: is_stopped.clone(), _file: file };
    let (batches, summary) =
        wait_for(py, move || run.batches(), &is_stopped)?.map_err(|error| run_exception(&error))?;
    let schema = answer_schema(&outputs, &metadata, types);
    let answer = |batch: &RecordBatch| answer_batch(batch, &outputs, &schema, |array| typed(array, types));
    let batches = batches.iter().map(answer).collect::<PyResult<_>>()?;
    Ok(ReadRows { batches, schema, summary })
}

/// A run that reads sources. It uses no object of Python, because its thread may outlive the call.
struct ReadRun {
    sources: Sources,
    options: RunOptions,
    policy: Policy,
    builder: BatchBuilder,
    is_stopped: Arc<AtomicBool>,
    /// The file to which bytes were written; it is removed at the end.
    _file: Option<NamedTempFile>,
}

impl ReadRun {
    /// Returns the batches of the rows, and the counts.
    fn batches(self) -> Result<(Vec<RecordBatch>, Summary), RunError<PartError>> {
        let (progress, mut batches) = (Progress::new(), Vec::new());
        let encode = |group: RowGroup<'_>| match self.is_stopped.load(Ordering::Relaxed) {
            true => Err(PartError::Stopped),
            false => self.builder.build(group.rows, group.runs).map(Some).map_err(PartError::Batch),
        };
        let request = RunRequest::new(self.sources, &self.options, &self.policy, &progress);
        let summary = run::canon(request, encode, |batch| {
            batches.push(batch);
            Ok(())
        })?;
        Ok((batches, summary))
    }
}

fn run_options(configuration: &Configuration, options: &ReadOptions) -> PyResult<RunOptions> {
    let wrong = || PyValueError::new_err(format!("threads is from 1 to {MAX_THREADS}, or 0 for one per core"));
    let threads = usize::try_from(options.threads).ok().filter(|threads| *threads <= MAX_THREADS);
    Ok(RunOptions {
        format: input_format(&options.format, configuration)?,
        threads: threads.ok_or_else(wrong)?,
        record_types: record_types(&options.record_types)?,
        // A mapped file that is cut short while it is read would end the process.
        mmap: false,
        count_distinct: false,
        ..RunOptions::default()
    })
}

/// Returns the format `name`, with the columns that the configuration names.
///
/// # Errors
/// There is no such format, or its records have no columns although one is named.
fn input_format(name: &str, configuration: &Configuration) -> PyResult<InputFormat> {
    let csv = configuration.table_columns();
    let named =
        [("url", &csv.url), ("base", &csv.base), ("charset", &csv.charset), ("query_charset", &csv.query_charset)];
    let named = named.into_iter().find_map(|(parameter, column)| Some((parameter, column.clone()?)));
    let options = FormatOptions { csv, is_table: named.is_some(), ..FormatOptions::default() };
    let unknown = || PyValueError::new_err(format!("unknown format {name:?}; see irikey canon --help"));
    let format = InputFormat::named(name, &options).ok_or_else(unknown)?;
    match named.filter(|_| !format.has_columns()) {
        None => Ok(format),
        Some((parameter, column)) => Err(PyValueError::new_err(format!(
            "{parameter}: column {column} is for tables, and the format is {name:?}; use format=\"csv\" or \"tsv\"{}",
            if parameter == "url" { "" } else { ", or pass irikey.lit(value)" }
        ))),
    }
}

/// Returns the types of records that become rows.
fn record_types(names: &[String]) -> PyResult<RecordTypes> {
    if names.is_empty() {
        return Ok(RecordTypes::Captures);
    }
    match names.iter().find(|name| !RecordTypes::is_name(name)) {
        None => Ok(RecordTypes::of_list(names)),
        Some(unknown) => Err(PyValueError::new_err(format!(
            "record_types: unknown type {unknown:?}; expected one of {}",
            RecordTypes::NAMES.join(", ")
        ))),
    }
}

/// Returns the sources that a path names, as the command reads it: a file, the members of an archive, the files in a folder,
/// an object; or the bytes of `source`. `name` replaces the path in the names of the sources. Bytes that are read from their
/// end, those of tables and of ZIP archives such as WACZ, are written to a file, which must exist until it has been read.
fn open(source: &Bound<'_, PyAny>, name: Option<String>) -> PyResult<(Sources, Option<NamedTempFile>)> {
    let copied = copied_bytes(source)?;
    if let Some(bytes) = source.cast::<PyBytes>().map(|bytes| bytes.as_bytes()).ok().or(copied.as_deref()) {
        let name = name.unwrap_or_else(|| "bytes".to_string());
        if !READ_FROM_END.iter().any(|magic| bytes.starts_with(magic)) {
            return Ok((Sources(vec![Source::reader(&name, std::io::Cursor::new(bytes.to_vec()))]), None));
        }
        let mut file = NamedTempFile::with_prefix("irikey-")?;
        file.write_all(bytes)?;
        return Ok((list_named(source.py(), file.path(), &name)?, Some(file)));
    }
    let path: PathBuf = source.extract()?;
    // To the command, `-` is standard input and `@` begins the name of a list.
    let is_special = path.as_os_str() == "-" || path.as_os_str().as_encoded_bytes().starts_with(b"@");
    let argument = if is_special { Path::new(".").join(&path) } else { path.clone() };
    let name = name.unwrap_or_else(|| path.to_string_lossy().into_owned());
    Ok((list_named(source.py(), &argument, &name)?, None))
}

/// Returns the sources that a path names, with `name` instead of the path.
fn list_named(py: Python<'_>, path: &Path, name: &str) -> PyResult<Sources> {
    let paths = [path.to_path_buf()];
    let listed = wait_for(py, move || list(&paths), &AtomicBool::new(false))?;
    let mut sources = listed.map_err(|error| not_opened(&error))?;
    let given = path.to_string_lossy();
    // The path of a folder may end with a slash, which its name may lack.
    let slash = if given.ends_with('/') && !name.ends_with('/') { "/" } else { "" };
    for source in &mut sources.0 {
        if let Some(rest) = source.name.strip_prefix(&*given) {
            source.name = format!("{name}{slash}{rest}");
        }
    }
    Ok(sources)
}

/// Returns the exception for a path that cannot be opened: for an error of the system the one that `open` of Python raises,
/// such as `FileNotFoundError`.
fn not_opened(error: &ListError) -> PyErr {
    let message = error.to_string();
    match error {
        ListError::Open { path, error } => match error.raw_os_error() {
            // With a number, OSError chooses its subclass.
            Some(number) => PyOSError::new_err((number, plain_text(error), path.as_os_str().to_os_string())),
            None if error.kind() == ErrorKind::InvalidInput => PyValueError::new_err(message),
            None => std::io::Error::new(error.kind(), message).into(),
        },
        ListError::EmptyDirectory(_) | ListError::NoMember { .. } => PyFileNotFoundError::new_err(message),
        _ => PyOSError::new_err(message),
    }
}

/// Returns the text of an error of the system without its number.
fn plain_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_string()
}

/// Runs `work` in a thread of its own, and handles signals until it ends. If a signal handler raises an exception, `is_stopped`
/// is set. The thread is left to itself if it does not end soon after that: opening or reading a pipe waits for its writer.
fn wait_for<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    is_stopped: &AtomicBool,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::channel();
    let send = move || drop(sender.send(work()));
    std::thread::Builder::new().name("irikey-read".to_string()).spawn(send)?;
    py.detach(move || {
        loop {
            match receiver.recv_timeout(SIGNAL_INTERVAL) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(PyRuntimeError::new_err("a worker of the reader failed"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Err(raised) = Python::attach(|py| py.check_signals()) {
                is_stopped.store(true, Ordering::Relaxed);
                let _ = receiver.recv_timeout(STOP_TIMEOUT);
                return Err(raised);
            }
        }
    })
}

/// Returns the exception for an error that stopped a run: `KeyError` for a column that a table lacks, as for a batch.
fn run_exception(error: &RunError<PartError>) -> PyErr {
    let RunError::Read(ReadError::Columns { name, error }) = error else {
        return PyValueError::new_err(python_terms(&error.to_string()));
    };
    // The name of the source does not change.
    let message = format!("{name}: {}", python_terms(&error.to_string()));
    match error {
        ColumnChoiceError::Missing { .. } => PyKeyError::new_err(message),
        _ => PyValueError::new_err(message),
    }
}
