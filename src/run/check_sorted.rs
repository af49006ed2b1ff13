//! Reads files to check that their rows are sorted: Parquet, Arrow IPC, and lines of text, which may be compressed.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use arrow::datatypes::Schema;
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::record_batch::RecordBatchReader;
use parquet::arrow::arrow_reader::ArrowReaderMetadata;
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;

use super::error::RunError;
use super::in_order::produced_in_order;
use crate::input::detect::{ContentType, Packing, SNIFF_LEN, TableFormat, content_type, packing};
use crate::input::{
    CheckedParquet, Defect, OpenOptions, Origin, ParquetBatches, PositionedFile, Source, StoredFile, catch_panic,
    check_ipc_lengths, check_stream_lengths, mask_of_columns, without_types,
};
use crate::output::OutputFormat;
use crate::process::path_name;
use crate::record::archive::is_archive;
use crate::sort::{OrderCheck, OrderColumn, OrderError, SORT_METADATA_KEY, SortBy, line_key};

/// Bytes of text read at a time.
const READ_LEN: usize = 256 << 10;

/// Longest line in bytes, of which more than the first two fields is compared.
const MAX_LINE_LEN: usize = if cfg!(test) { 1 << 20 } else { 128 << 20 };

/// Rows of a Parquet file read at a time.
const BATCH_ROWS: usize = 8192;

/// A file that is not sorted, or cannot be checked.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct CheckSortedError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub reason: CheckSortedReason,
}

/// Why a file is not sorted, or cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckSortedReason {
    /// A row is out of order, or columns cannot be compared.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// The file does not declare an order.
    #[error("the file does not declare what it is sorted by; name the columns with --by")]
    NoOrder,
    /// The file has no column with a name of the order.
    #[error("there is no column `{column}`; the columns are {columns}")]
    NoColumn {
        /// The name.
        column: String,
        /// The names that exist, separated by commas.
        columns: String,
    },
    /// The order names columns, but the file has lines.
    #[error(
        "this file has lines, which have no columns, but --by or the first file asks for an order by columns; check files of lines in \
         a command of their own, or use --each"
    )]
    NoColumns,
    /// A table comes from a pipe, but its footer at the end has to be read first.
    #[error("Parquet and Arrow IPC are checked in files only, not in pipes; write this one to a file")]
    NoFile,
    /// The records of a web archive have no order.
    #[error("this is a web archive, whose records have no order; check its index (CDX or CDXJ)")]
    Archive,
    /// A line after this many rows is too long.
    #[error("there is a line of more than {MAX_LINE_LEN} bytes after {0} rows; check that this is text")]
    LineTooLong(u64),
    /// An Arrow or Parquet file cannot be decoded.
    #[error("{}", without_types(&.0.to_string()))]
    Decode(#[from] ParquetError),
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] Defect),
}

/// Checks that the rows of a file are in order and come after the rows that `check` saw before. Returns their number. The path
/// `-` is standard input, which has lines, as pipes have. Row groups of Parquet are read on `threads` threads.
///
/// # Errors
/// A row is out of order, or the file cannot be read.
pub fn check_sorted(path: &Path, check: &mut OrderCheck, threads: usize) -> Result<u64, CheckSortedError> {
    FileCheck { threads, format: None }.check(path, check)
}

/// How files are checked.
#[derive(Clone, Copy)]
struct FileCheck {
    /// Threads that read row groups of Parquet.
    threads: usize,
    /// The format; `None` if the beginning of each file shows it.
    format: Option<OutputFormat>,
}

/// The format of tables that an output of this format is; `None` if it has lines.
fn table_format(format: OutputFormat) -> Option<TableFormat> {
    match format {
        OutputFormat::Parquet => Some(TableFormat::Parquet),
        OutputFormat::Arrow => Some(TableFormat::Arrow),
        OutputFormat::ArrowStream => Some(TableFormat::ArrowStream),
        _ => None,
    }
}

/// The format of tables of a source that begins with `head`, which is not compressed; `None` if it has lines.
///
/// # Errors
/// Its records have no order.
fn detect_table(head: &[u8]) -> Result<Option<TableFormat>, CheckSortedReason> {
    match content_type(head) {
        ContentType::Table(format) => Ok(Some(format)),
        // A table whose first page is damaged, as its reader will report.
        ContentType::Records(_) if matches!(head, [b'P', b'A', b'R', b'1', 0x80..=0xff, ..]) => {
            Ok(Some(TableFormat::Parquet))
        }
        ContentType::Unsupported(format) => Err(Defect::Unsupported(format).into()),
        _ if is_archive(head) => Err(CheckSortedReason::Archive),
        _ => Ok(None),
    }
}

/// A function that [`crate::output`] calls with a file of this format that is written but has no name yet, to count its rows and
/// to check that they are sorted by `by`, on `threads` threads. The rows of each file must come after those of the file before it.
pub(crate) fn sorted_rows_counter(
    by: SortBy,
    format: OutputFormat,
    threads: usize,
) -> impl FnMut(&Path) -> Result<u64, Box<dyn Error + Send + Sync>> + Send + 'static {
    let mut check = OrderCheck::new(Some(by));
    let file_check = FileCheck { threads, format: Some(format) };
    move |path| file_check.check(path, &mut check).map_err(CheckSortedError::into_cause)
}

impl CheckSortedError {
    /// The error of the system if a read failed.
    fn into_cause(self) -> Box<dyn Error + Send + Sync> {
        match self.reason {
            CheckSortedReason::Read(Defect::Open(error) | Defect::Read(error)) => Box::new(error),
            CheckSortedReason::Decode(ParquetError::External(error)) if error.is::<io::Error>() => error,
            reason => Box::new(CheckSortedError { reason, ..self }),
        }
    }
}

impl FileCheck {
    /// Checks the rows of a file, which come after those that `check` saw before. Returns their number.
    fn check(self, path: &Path, check: &mut OrderCheck) -> Result<u64, CheckSortedError> {
        check.start_file();
        let before = check.rows();
        match self.check_rows(path, check) {
            Ok(()) => Ok(check.rows() - before),
            Err(reason) => Err(CheckSortedError { path: path.to_path_buf(), reason }),
        }
    }

    fn check_rows(self, path: &Path, check: &mut OrderCheck) -> Result<(), CheckSortedReason> {
        let table = match self.format {
            Some(format) => table_format(format),
            None => table_in_file(path, check)?,
        };
        // A panic of a decoder is an error of the file.
        let panicked = |message| ParquetError::General(message).into();
        match table {
            Some(TableFormat::Parquet) => catch_panic(|| check_parquet(path, check, self.threads), panicked),
            Some(TableFormat::Arrow) => catch_panic(|| check_arrow(path, check), panicked),
            Some(TableFormat::ArrowStream) => catch_panic(|| check_stream(path, check), panicked),
            None => check_lines(path, check, self.format.is_none()),
        }
    }
}

/// The format of tables of a file; `None` if it has lines, or is a pipe.
///
/// # Errors
/// It does not exist; its records have no order; it has lines, but the user named columns.
fn table_in_file(path: &Path, check: &OrderCheck) -> Result<Option<TableFormat>, CheckSortedReason> {
    let mut head = Vec::new();
    // What is read from a pipe cannot be read again.
    if path != Path::new("-") && fs::metadata(path).map_err(Defect::Open)?.is_file() {
        let file = File::open(path).map_err(Defect::Open)?;
        file.take(SNIFF_LEN as u64).read_to_end(&mut head).map_err(Defect::Read)?;
    }
    let table = if packing(&head) == Packing::Plain { detect_table(&head)? } else { None };
    match table {
        None if check.has_columns() => Err(CheckSortedReason::NoColumns),
        table => Ok(table),
    }
}

/// The order to check by, whose columns the schema has.
fn order(check: &mut OrderCheck, declared: Option<SortBy>, schema: &Schema) -> Result<SortBy, CheckSortedReason> {
    let by = check.order_or(declared).ok_or(CheckSortedReason::NoOrder)?;
    let missing = by.names().find(|name| schema.column_with_name(name).is_none()).map(str::to_string);
    let Some(column) = missing else { return Ok(by) };
    let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    Err(CheckSortedReason::NoColumn { column, columns: columns.join(", ") })
}

fn check_parquet(path: &Path, check: &mut OrderCheck, threads: usize) -> Result<(), CheckSortedReason> {
    // Its readers share one handle.
    let file = PositionedFile::open(&StoredFile::Path(path.to_path_buf())).map_err(Defect::Open)?;
    let table = CheckedParquet::open(file)?;
    let by = order(check, declared_order(&table.metadata), table.metadata.schema())?;
    let mask = mask_of_columns(table.metadata.parquet_schema(), by.names());
    let batches = table.batches(&mask, BATCH_ROWS)?;
    let template = check.of_later_rows()?;
    let mut groups = 0..batches.group_count();
    let next = move || Ok(groups.next().map(|group| batches.of_row_group(group)));
    let check_group = |mut group: ParquetBatches| {
        let mut rows = template.of_later_rows()?;
        let check_all = || group.try_for_each(|batch| Ok(rows.check_batch(&by, &batch?)?));
        let checked = catch_panic(check_all, |message| ParquetError::General(message).into());
        Ok((rows, checked))
    };
    // A row group is compared with the one before it, also if its own rows are out of order.
    let append = |(rows, checked): (OrderCheck, Result<(), CheckSortedReason>)| {
        let before = check.rows_of_file();
        check.append(rows)?;
        checked.map_err(|reason| match reason {
            CheckSortedReason::Order(error) => error.after_rows(before).into(),
            reason => reason,
        })
    };
    produced_in_order(threads, next, check_group, append).map_err(|error| match error {
        RunError::Output(reason) => reason,
        error => Defect::Read(io::Error::other(error.to_string())).into(),
    })
}

fn check_arrow(path: &Path, check: &mut OrderCheck) -> Result<(), CheckSortedReason> {
    let mut file = File::open(path).map_err(Defect::Open)?;
    check_ipc_lengths(&mut file).map_err(ParquetError::ArrowError)?;
    check_batches(FileReader::try_new_buffered(file, None).map_err(ParquetError::from)?, check)
}

fn check_stream(path: &Path, check: &mut OrderCheck) -> Result<(), CheckSortedReason> {
    let mut file = File::open(path).map_err(Defect::Open)?;
    check_stream_lengths(&mut file).1.map_err(ParquetError::ArrowError)?;
    file.rewind().map_err(Defect::Read)?;
    check_batches(StreamReader::try_new_buffered(file, None).map_err(ParquetError::from)?, check)
}

fn check_batches(reader: impl RecordBatchReader, check: &mut OrderCheck) -> Result<(), CheckSortedReason> {
    let declared = reader.schema().metadata().get(SORT_METADATA_KEY).map(|order| parse_order(order));
    let by = order(check, declared, &reader.schema())?;
    for batch in reader {
        check.check_batch(&by, &batch.map_err(ParquetError::from)?)?;
    }
    Ok(())
}

/// Checks lines. If `is_detected`, what begins like something else is refused, such as a table from a pipe.
fn check_lines(path: &Path, check: &mut OrderCheck, is_detected: bool) -> Result<(), CheckSortedReason> {
    let origin = if path == Path::new("-") { Origin::Stdin } else { Origin::Path(path.to_path_buf()) };
    let source = Source { name: path_name(path), origin, len: None };
    let mut stream = source.open(OpenOptions::sequential(false))?.into_stream();
    let (mut text, mut buffer) = (Vec::new(), vec![0; READ_LEN]);
    let first_row = check.rows();
    loop {
        let count = stream.read(&mut buffer)?;
        // The bytes before have no line end.
        let (mut start, mut at) = (0, text.len());
        text.extend_from_slice(&buffer[..count]);
        if is_detected && check.rows() == first_row && detect_table(&text)?.is_some() {
            return Err(CheckSortedReason::NoFile);
        }
        while let Some(len) = memchr::memchr(b'\n', &text[at..]) {
            check.check_line(&text[start..at + len])?;
            at += len + 1;
            start = at;
        }
        text.drain(..start);
        if text.len() > MAX_LINE_LEN {
            // The rest of a line does not matter if its first two fields are `key time`.
            let key_len = line_key(&text).len();
            if key_len == text.len() {
                return Err(CheckSortedReason::LineTooLong(check.rows() - first_row));
            }
            text.truncate(key_len + 1);
        }
        if count == 0 {
            break;
        }
    }
    if text.is_empty() { Ok(()) } else { Ok(check.check_line(&text)?) }
}

fn parse_order(order: &str) -> SortBy {
    SortBy::parse(order.split(','))
}

/// The order that a Parquet file declares, in its metadata or in its first row group.
fn declared_order(table: &ArrowReaderMetadata) -> Option<SortBy> {
    let metadata = table.metadata();
    let mut pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    if let Some(order) = pairs.find(|pair| pair.key == SORT_METADATA_KEY).and_then(|pair| pair.value.as_deref()) {
        return Some(parse_order(order));
    }
    let sorting = metadata.row_groups().first()?.sorting_columns()?;
    let column = |column: &SortingColumn| {
        let index = usize::try_from(column.column_idx).ok()?;
        // A field of a structure is no column.
        let [name] = table.parquet_schema().columns().get(index)?.path().parts() else { return None };
        let name = name.clone();
        Some(OrderColumn { name, descending: column.descending, nulls_first: column.nulls_first })
    };
    sorting.iter().map(column).collect::<Option<Vec<_>>>().map(SortBy::from_columns).filter(|by| !by.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int32Array, RecordBatch};
    use parquet::arrow::ArrowWriter;
    use std::sync::Arc;

    /// The error of a Parquet file with the numbers of a row group in each list, read with so many threads; the number of rows if
    /// they are in order.
    fn check_groups(groups: &[&[i32]], threads: usize) -> Result<u64, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let batch = |numbers: &[i32]| {
            let numbers: ArrayRef = Arc::new(Int32Array::from(numbers.to_vec()));
            RecordBatch::try_from_iter([("number", numbers)]).unwrap()
        };
        let mut writer = ArrowWriter::try_new(file.reopen().unwrap(), batch(&[]).schema(), None).unwrap();
        for numbers in groups {
            writer.write(&batch(numbers)).unwrap();
            writer.flush().unwrap();
        }
        writer.close().unwrap();
        let mut count = sorted_rows_counter(SortBy::parse(["number"]), OutputFormat::Parquet, threads);
        // The rows of a second file come after those of the first.
        let counts = [count(file.path()), count(file.path())];
        let [first, second] =
            counts.map(|rows| rows.map_err(|error| error.to_string().split_once(": ").unwrap().1.replace('"', "")));
        let is_one_number = groups.concat().iter().all(|number| *number == groups[0][0]);
        assert_eq!(second.is_ok(), is_one_number, "{second:?}");
        first
    }

    #[test]
    fn row_groups_are_in_order_and_follow_each_other() {
        let out_of_order = |message: &str| Err(message.to_string());
        for threads in [1, 3] {
            let check = |groups: &[&[i32]]| check_groups(groups, threads);
            assert_eq!(check(&[&[5, 5], &[5], &[5, 5, 5]]), Ok(6));
            assert_eq!(check(&[&[1, 2], &[2], &[2, 3, 4], &[7]]), Ok(7));
            assert_eq!(check(&[&[1, 2], &[3, 4], &[3, 9], &[1]]), out_of_order("row 5: 3 comes after 4"));
            assert_eq!(check(&[&[1, 2], &[3, 5, 4], &[4, 3], &[1]]), out_of_order("row 5: 4 comes after 5"));
            assert_eq!(check(&[&[1, 2], &[0, 5, 4], &[6]]), out_of_order("row 3: 0 comes after 2"));
        }
    }

    /// A line of an index may begin like a table, and be as long as the record that it describes.
    #[test]
    fn any_lines_of_an_index_are_read_back() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut lines: Vec<String> = ["ARROW1:a", "PAR1:a", "\u{7f}"].map(|key| format!("{key} - {{}}\n")).to_vec();
        lines[1] = format!("PAR1:a - {}\n", "x".repeat(3 * MAX_LINE_LEN));
        let check = |lines: &[String]| {
            std::fs::write(file.path(), lines.concat()).unwrap();
            let by = SortBy::parse(["url_surtkey_ia", "fetch_time"]);
            sorted_rows_counter(by, OutputFormat::Cdxj, 1)(file.path()).map_err(|error| error.to_string())
        };
        assert_eq!(check(&lines), Ok(3));
        assert_eq!(check(&lines[1..]), Ok(2));
        lines.swap(1, 2);
        let error = check(&lines).unwrap_err().replace('"', "");
        assert!(error.contains("row 3: PAR1:a - comes after "), "{error}");
    }

    #[test]
    fn a_line_has_a_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let check = |len: usize| {
            std::fs::write(file.path(), [&b"\n"[..], &vec![b'a'; len]].concat()).unwrap();
            check_sorted(file.path(), &mut OrderCheck::new(None), 1)
        };
        assert_eq!(check(MAX_LINE_LEN).unwrap(), 2);
        let error = check(MAX_LINE_LEN + 1).unwrap_err();
        assert!(matches!(error.reason, CheckSortedReason::LineTooLong(1)), "{error}");
    }
}
