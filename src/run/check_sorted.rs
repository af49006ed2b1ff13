//! Reads files to check that their rows are sorted: Parquet, Arrow IPC, and lines of text, which may be compressed.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;
use parquet::file::metadata::SortingColumn;

use crate::input::{Defect, OpenOptions, Opened, Origin, catch_panic, open};
use crate::sort::{OrderCheck, OrderColumn, OrderError, SORT_METADATA_KEY, SortBy};

/// Bytes of text read at a time.
const READ_LEN: usize = 256 << 10;

/// Longest line in bytes.
const MAX_LINE_LEN: usize = if cfg!(test) { 1 << 20 } else { 128 << 20 };

/// Rows of a Parquet file read at a time.
const BATCH_ROWS: usize = 8192;

/// How Parquet files and Arrow IPC files begin.
const PARQUET_MAGIC: &[u8] = b"PAR1";
const ARROW_MAGIC: &[u8] = b"ARROW1";

/// Why a file is not sorted, or cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckSortedError {
    /// A row is out of order, or columns cannot be compared.
    #[error("{}: {error}", path.display())]
    Order {
        /// The file.
        path: PathBuf,
        /// The row, or the reason.
        error: OrderError,
    },
    /// The file does not declare an order.
    #[error("{}: the file does not declare what it is sorted by; name the columns with --by", .0.display())]
    NoOrder(PathBuf),
    /// The file has no column with a name of the order.
    #[error("{}: there is no column `{column}`; the columns are {columns}", path.display())]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The name.
        column: String,
        /// The names that exist, separated by commas.
        columns: String,
    },
    /// The order names columns, but the file has lines.
    #[error("{}: this file has lines, not columns; --by is for Parquet and Arrow IPC files", .0.display())]
    NoColumns(PathBuf),
    /// A table comes from a pipe, but its footer at the end has to be read first.
    #[error("{}: Parquet and Arrow IPC are checked in files only, not in pipes", .0.display())]
    NoFile(PathBuf),
    /// A line is too long.
    #[error("{}: there is a line of more than {MAX_LINE_LEN} bytes after {rows} rows; check that this is text", path.display())]
    LineTooLong {
        /// The file.
        path: PathBuf,
        /// Rows before it.
        rows: u64,
    },
    /// An Arrow or Parquet file cannot be decoded.
    #[error("{}: {error}", path.display())]
    Decode {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: ParquetError,
    },
    /// The file cannot be read.
    #[error("{}: {defect}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        defect: Defect,
    },
}

/// Checks that the rows of a file are in order and come after the rows that `check` saw before. Returns their number. The path
/// `-` is standard input, which has lines, as pipes have.
///
/// # Errors
/// A row is out of order, or the file cannot be read.
pub fn check_sorted(path: &Path, check: &mut OrderCheck) -> Result<u64, CheckSortedError> {
    let is_by_columns = check.has_columns();
    check_file(SortedFile { path, check, is_by_columns })
}

fn check_file(mut file: SortedFile<'_>) -> Result<u64, CheckSortedError> {
    file.check.start_file();
    let before = file.check.rows();
    file.check()?;
    Ok(file.check.rows() - before)
}

/// A function that [`crate::output`] calls with a file that is written but has no name yet, to count its rows and to check
/// that they are sorted by `by`. The rows of each file must come after those of the file before it.
pub(crate) fn sorted_rows_counter(
    by: SortBy,
) -> impl FnMut(&Path) -> Result<u64, Box<dyn Error + Send + Sync>> + Send + 'static {
    let mut check = OrderCheck::new(Some(by));
    // The columns of lines of CDXJ are their key and time.
    move |path| Ok(check_file(SortedFile { path, check: &mut check, is_by_columns: false })?)
}

struct SortedFile<'a> {
    path: &'a Path,
    check: &'a mut OrderCheck,
    /// Lines are refused, because the user named columns.
    is_by_columns: bool,
}

impl SortedFile<'_> {
    fn check(&mut self) -> Result<(), CheckSortedError> {
        // What is read from a pipe cannot be read again.
        if !self.path.is_file() {
            return self.check_lines();
        }
        let file = File::open(self.path).map_err(|error| self.read_error(Defect::Open(error)))?;
        let mut magic = Vec::new();
        let read = file.take(ARROW_MAGIC.len() as u64).read_to_end(&mut magic);
        read.map_err(|error| self.read_error(Defect::Read(error)))?;
        match &magic[..] {
            magic if magic.starts_with(PARQUET_MAGIC) => self.check_table(Self::check_parquet),
            ARROW_MAGIC => self.check_table(Self::check_arrow),
            _ => self.check_lines(),
        }
    }

    /// Runs a check that decodes a table. A panic of the decoder is an error of the file.
    fn check_table(
        &mut self,
        check: impl FnOnce(&mut Self) -> Result<(), CheckSortedError>,
    ) -> Result<(), CheckSortedError> {
        let path = self.path;
        let error =
            |message| CheckSortedError::Decode { path: path.to_path_buf(), error: ParquetError::General(message) };
        catch_panic(|| check(self), error)
    }

    fn read_error(&self, defect: Defect) -> CheckSortedError {
        CheckSortedError::Read { path: self.path.to_path_buf(), defect }
    }

    fn decode_error(&self, error: impl Into<ParquetError>) -> CheckSortedError {
        CheckSortedError::Decode { path: self.path.to_path_buf(), error: error.into() }
    }

    fn order_error(&self, error: OrderError) -> CheckSortedError {
        CheckSortedError::Order { path: self.path.to_path_buf(), error }
    }

    /// The order to check by, whose columns the schema has.
    fn order(&mut self, declared: Option<SortBy>, schema: &Schema) -> Result<SortBy, CheckSortedError> {
        let path = self.path.to_path_buf();
        let Some(by) = self.check.order_or(declared) else { return Err(CheckSortedError::NoOrder(path)) };
        let missing = by.names().find(|name| schema.column_with_name(name).is_none()).map(str::to_string);
        let Some(column) = missing else { return Ok(by) };
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        Err(CheckSortedError::NoColumn { path, column, columns: columns.join(", ") })
    }

    fn check_parquet(&mut self) -> Result<(), CheckSortedError> {
        let file = File::open(self.path).map_err(|error| self.read_error(Defect::Open(error)))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| self.decode_error(error))?;
        let by = self.order(declared_order(&builder), builder.schema())?;
        let mask = ProjectionMask::columns(builder.parquet_schema(), by.names());
        let reader = builder.with_projection(mask).with_batch_size(BATCH_ROWS).build();
        for batch in reader.map_err(|error| self.decode_error(error))? {
            let batch = batch.map_err(|error| self.decode_error(error))?;
            self.check.check_batch(&by, &batch).map_err(|error| self.order_error(error))?;
        }
        Ok(())
    }

    fn check_arrow(&mut self) -> Result<(), CheckSortedError> {
        let file = File::open(self.path).map_err(|error| self.read_error(Defect::Open(error)))?;
        let reader = FileReader::try_new_buffered(file, None).map_err(|error| self.decode_error(error))?;
        let declared = reader.schema().metadata().get(SORT_METADATA_KEY).map(|order| parse_order(order));
        let by = self.order(declared, &reader.schema())?;
        for batch in reader {
            let batch = batch.map_err(|error: ArrowError| self.decode_error(error))?;
            self.check.check_batch(&by, &batch).map_err(|error| self.order_error(error))?;
        }
        Ok(())
    }

    fn check_lines(&mut self) -> Result<(), CheckSortedError> {
        if self.is_by_columns {
            return Err(CheckSortedError::NoColumns(self.path.to_path_buf()));
        }
        let is_stdin = self.path == Path::new("-");
        let origin = if is_stdin { Origin::Stdin } else { Origin::Path(self.path.to_path_buf()) };
        let opened = open(origin, OpenOptions { mmap: false, threads: 1 }).map_err(|defect| self.read_error(defect))?;
        // The file was opened without mapping, so it is a stream.
        let Opened::Stream(mut stream) = opened else { return Ok(()) };
        let (mut text, mut buffer) = (Vec::new(), vec![0; READ_LEN]);
        let first_row = self.check.rows();
        loop {
            let count = stream.read(&mut buffer).map_err(|defect| self.read_error(defect))?;
            // The bytes before have no line end.
            let (mut start, mut at) = (0, text.len());
            text.extend_from_slice(&buffer[..count]);
            if self.check.rows() == first_row && (text.starts_with(PARQUET_MAGIC) || text.starts_with(ARROW_MAGIC)) {
                return Err(CheckSortedError::NoFile(self.path.to_path_buf()));
            }
            while let Some(len) = memchr::memchr(b'\n', &text[at..]) {
                self.check_line(&text[start..at + len])?;
                at += len + 1;
                start = at;
            }
            text.drain(..start);
            if text.len() > MAX_LINE_LEN {
                let rows = self.check.rows() - first_row;
                return Err(CheckSortedError::LineTooLong { path: self.path.to_path_buf(), rows });
            }
            if count == 0 {
                break;
            }
        }
        if text.is_empty() { Ok(()) } else { self.check_line(&text) }
    }

    fn check_line(&mut self, line: &[u8]) -> Result<(), CheckSortedError> {
        self.check.check_line(line).map_err(|error| self.order_error(error))
    }
}

fn parse_order(order: &str) -> SortBy {
    SortBy::parse(order.split(','))
}

/// The order that a Parquet file declares, in its metadata or in its first row group.
fn declared_order(builder: &ParquetRecordBatchReaderBuilder<File>) -> Option<SortBy> {
    let metadata = builder.metadata();
    let mut pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    if let Some(order) = pairs.find(|pair| pair.key == SORT_METADATA_KEY).and_then(|pair| pair.value.as_deref()) {
        return Some(parse_order(order));
    }
    let sorting = metadata.row_groups().first()?.sorting_columns()?;
    let column = |column: &SortingColumn| {
        let index = usize::try_from(column.column_idx).ok()?;
        let name = builder.parquet_schema().columns().get(index)?.name().to_string();
        Some(OrderColumn { name, descending: column.descending, nulls_first: column.nulls_first })
    };
    sorting.iter().map(column).collect::<Option<Vec<_>>>().map(SortBy::from_columns).filter(|by| !by.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_limit() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let check = |len: usize| {
            std::fs::write(file.path(), [&b"\n"[..], &vec![b'a'; len]].concat()).unwrap();
            check_sorted(file.path(), &mut OrderCheck::new(None))
        };
        assert_eq!(check(MAX_LINE_LEN).unwrap(), 2);
        let error = check(MAX_LINE_LEN + 1).unwrap_err();
        assert!(matches!(error, CheckSortedError::LineTooLong { rows: 1, .. }), "{error}");
    }
}
