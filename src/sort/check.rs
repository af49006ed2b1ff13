//! Files read again, to see whether their rows stand in order: [`Check`]. In: Parquet, Arrow IPC, and lines of CDX and
//! CDXJ, packed or not. Out: how many rows, or the first place where one stands too early.
//!
//! Of a CDX or CDXJ line, key and time count, which lie in its first two fields; of another line all of it.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;
use arrow::row::{OwnedRow, RowConverter};
use arrow::util::display::array_value_to_string;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::errors::ParquetError;

use super::{OrderColumn, SortBy};
use crate::input::{Defect, OpenOptions, Opened, Origin, open};

/// Lines are read in pieces of this many bytes.
const PIECE_LEN: usize = 256 << 10;

/// Why files are not in order, or cannot be told to be.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A row stands too early.
    #[error("{}: row {row}: {found} stands after {before}", path.display())]
    OutOfOrder {
        /// The file.
        path: PathBuf,
        /// The row that should stand earlier, from 1.
        row: u64,
        /// What it holds in the columns of the order.
        found: String,
        /// What the row before it holds.
        before: String,
    },
    /// The file does not say what it is sorted by.
    #[error("{}: says nothing of its order / name the columns with --by", .0.display())]
    NoOrder(PathBuf),
    /// It has no such column, or one without an order.
    #[error("{}: {error}", path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ArrowError,
    },
    /// It is no Parquet that can be read.
    #[error("{}: {error}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ParquetError,
    },
    /// It cannot be read.
    #[error("{}: {defect}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        defect: Defect,
    },
}

/// Rows of files, one after the other.
#[derive(Debug, Default)]
pub struct Check {
    by: Option<SortBy>,
    /// Of the first table, with its types.
    columns: Option<(RowConverter, Vec<DataType>)>,
    last_row: Option<(OwnedRow, String)>,
    last_line: Option<Vec<u8>>,
    rows: u64,
}

impl Check {
    /// Nothing was read yet. Without `by`, tables say themselves what they are sorted by.
    pub fn new(by: Option<SortBy>) -> Check {
        Check { by, ..Check::default() }
    }

    /// Rows of all files so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Reads a file; its rows come after those of the files before it. Gives how many there are.
    ///
    /// # Errors
    /// The first row that stands too early; whatever keeps the file from being read.
    pub fn file(&mut self, path: &Path) -> Result<u64, CheckError> {
        let before = self.rows;
        let read = |defect| CheckError::Read { path: path.to_path_buf(), defect };
        let mut file = File::open(path).map_err(|error| read(Defect::Open(error)))?;
        let mut magic = [0; 6];
        let count = std::io::Read::read(&mut file, &mut magic).map_err(|error| read(Defect::Read(error)))?;
        match &magic[..count] {
            [b'P', b'A', b'R', b'1', ..] => self.parquet(path)?,
            b"ARROW1" => self.arrow(path)?,
            _ => self.lines(path)?,
        }
        Ok(self.rows - before)
    }

    fn parquet(&mut self, path: &Path) -> Result<(), CheckError> {
        let failed = |error| CheckError::Parquet { path: path.to_path_buf(), error };
        let file = File::open(path).map_err(|error| failed(ParquetError::External(Box::new(error))))?;
        let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(failed)?;
        let by = match &self.by {
            Some(by) => by.clone(),
            None => said(&builder).ok_or_else(|| CheckError::NoOrder(path.to_path_buf()))?,
        };
        let mask = ProjectionMask::columns(builder.parquet_schema(), by.names());
        let reader = builder.with_projection(mask).with_batch_size(8192).build().map_err(failed)?;
        let first = self.rows;
        reader.into_iter().try_for_each(|batch| {
            let batch = batch.map_err(|error| CheckError::Columns { path: path.to_path_buf(), error })?;
            self.batch(path, &by, &batch, first)
        })?;
        self.by.get_or_insert(by);
        Ok(())
    }

    fn arrow(&mut self, path: &Path) -> Result<(), CheckError> {
        let failed = |error| CheckError::Columns { path: path.to_path_buf(), error };
        let file = File::open(path)
            .map_err(|error| CheckError::Read { path: path.to_path_buf(), defect: Defect::Open(error) })?;
        let reader = FileReader::try_new_buffered(file, None).map_err(failed)?;
        let said = reader.schema().metadata().get("irikey.sort").map(|order| SortBy::parse(order.split(',')));
        let by = self.by.clone().or(said).ok_or_else(|| CheckError::NoOrder(path.to_path_buf()))?;
        let first = self.rows;
        for batch in reader {
            self.batch(path, &by, &batch.map_err(failed)?, first)?;
        }
        self.by.get_or_insert(by);
        Ok(())
    }

    /// Rows of a table whose first row is number `first`, from 0.
    fn batch(&mut self, path: &Path, by: &SortBy, batch: &RecordBatch, first: u64) -> Result<(), CheckError> {
        let failed = |error| CheckError::Columns { path: path.to_path_buf(), error };
        let places = by.places(batch.schema_ref()).map_err(failed)?;
        let columns = places.iter().map(|&at| batch.column(at).clone());
        let columns = self.as_before(by, columns.collect()).map_err(failed)?;
        let Some((converter, _)) = &self.columns else { return Ok(()) };
        let rows = converter.convert_columns(&columns).map_err(failed)?;
        let show = |row: usize| columns.iter().map(|column| show(column, row)).collect::<Vec<_>>().join(", ");
        for row in 0..rows.num_rows() {
            let before = match row.checked_sub(1) {
                Some(before) => Some(rows.row(before)),
                None => self.last_row.as_ref().map(|(last, _)| last.row()),
            };
            if before.is_some_and(|before| rows.row(row) < before) {
                let last = self.last_row.as_ref().map_or("", |(_, text)| text).to_string();
                let before = row.checked_sub(1).map_or(last, show);
                let number = self.rows - first + row as u64 + 1;
                return Err(CheckError::OutOfOrder { path: path.to_path_buf(), row: number, found: show(row), before });
            }
        }
        if let Some(last) = rows.num_rows().checked_sub(1) {
            self.last_row = Some((rows.row(last).owned(), show(last)));
        }
        self.rows += rows.num_rows() as u64;
        Ok(())
    }

    /// Columns in the types of the first table.
    fn as_before(&mut self, by: &SortBy, columns: Vec<ArrayRef>) -> Result<Vec<ArrayRef>, ArrowError> {
        match &self.columns {
            Some((_, types)) => columns.iter().zip(types).map(|(column, kind)| cast(column, kind)).collect(),
            None => {
                let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
                self.columns = Some((by.converter(types.clone())?, types));
                Ok(columns)
            }
        }
    }

    fn lines(&mut self, path: &Path) -> Result<(), CheckError> {
        let failed = |defect| CheckError::Read { path: path.to_path_buf(), defect };
        let opened = open(Origin::Path(path.to_path_buf()), OpenOptions { mmap: false, threads: 1 }).map_err(failed)?;
        // Nothing was to be mapped.
        let Opened::Stream(mut stream) = opened else { return Ok(()) };
        let (mut text, mut piece, first) = (Vec::new(), vec![0; PIECE_LEN], self.rows);
        loop {
            let count = stream.read(&mut piece).map_err(failed)?;
            text.extend_from_slice(&piece[..count]);
            let mut at = 0;
            while let Some(len) = memchr::memchr(b'\n', &text[at..]) {
                self.line(path, &text[at..at + len], first)?;
                at += len + 1;
            }
            text.drain(..at);
            if count == 0 {
                break;
            }
        }
        if text.is_empty() { Ok(()) } else { self.line(path, &text, first) }
    }

    fn line(&mut self, path: &Path, line: &[u8], first: u64) -> Result<(), CheckError> {
        // The header of a CDX file is no row.
        if line.starts_with(b" CDX ") && self.rows == first {
            return Ok(());
        }
        let key = line_key(line);
        if let Some(last) = self.last_line.as_ref().filter(|last| key < &last[..]) {
            let show = |text: &[u8]| format!("{:?}", String::from_utf8_lossy(text));
            let (row, path) = (self.rows - first + 1, path.to_path_buf());
            return Err(CheckError::OutOfOrder { path, row, found: show(key), before: show(last) });
        }
        let last = self.last_line.get_or_insert_default();
        last.clear();
        last.extend_from_slice(key);
        self.rows += 1;
        Ok(())
    }
}

/// `key time` of a line that begins so; else the line.
fn line_key(line: &[u8]) -> &[u8] {
    let spaces: Vec<usize> = memchr::memchr_iter(b' ', line).take(2).collect();
    let [key_end, end] = spaces[..] else { return line };
    let time = &line[key_end + 1..end];
    let is_time = time == b"-" || (!time.is_empty() && time.iter().all(u8::is_ascii_digit));
    if is_time { &line[..end] } else { line }
}

/// The order that a Parquet file was written in, as its metadata or its row groups say.
fn said(builder: &ParquetRecordBatchReaderBuilder<File>) -> Option<SortBy> {
    let metadata = builder.metadata();
    let pairs = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let ours = pairs.filter(|pair| pair.key == "irikey.sort").find_map(|pair| pair.value.as_deref());
    if let Some(order) = ours {
        return Some(SortBy::parse(order.split(',')));
    }
    let sorting = metadata.row_groups().first()?.sorting_columns()?;
    let name =
        |place: i32| Some(builder.parquet_schema().columns().get(usize::try_from(place).ok()?)?.name().to_string());
    let column = |column: &parquet::file::metadata::SortingColumn| {
        let (descending, nulls_first) = (column.descending, column.nulls_first);
        Some(OrderColumn { name: name(column.column_idx)?, descending, nulls_first })
    };
    sorting.iter().map(column).collect::<Option<Vec<_>>>().map(SortBy::of).filter(|by| !by.is_empty())
}

fn show(column: &ArrayRef, row: usize) -> String {
    match column.is_null(row) {
        true => "null".to_string(),
        false => array_value_to_string(column, row).map_or_else(|error| error.to_string(), |text| format!("{text:?}")),
    }
}
