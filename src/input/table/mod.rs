//! Parquet and Arrow IPC files in, rows of them out (see [`RecordBuffer`]): only the columns that count are read. A row's
//! offset is its number in the file, from 0.
//!
//! The URL is in the column asked for, else in the first of the known names; what is carried is in columns named as in
//! Common Crawl's index. Columns within structs are not looked for.
//!
//! ```text
//! Parquet --units--> ranges of rows, by several threads --batch--> RecordBuffer, in the order of the file
//! Arrow IPC ------------------------------------------- --batch--> RecordBuffer
//! ```

mod ahead;
mod batch;
mod columns;
mod units;
mod untyped;

use std::fs::File;
use std::path::Path;

use arrow::array::RecordBatchReader;
use arrow::error::ArrowError;
use arrow::ipc::reader::FileReader;

use super::error::Defect;
use crate::record::RecordBuffer;
use crate::record::fields::FieldSet;
use ahead::Ahead;
use batch::Batch;
pub use columns::TableColumns;
use columns::Wanted;
use units::Parquet;

/// How a table is read.
#[derive(Clone, Debug)]
pub struct TableOptions {
    /// Which columns hold the URL and its base.
    pub columns: TableColumns,
    /// What is carried; columns of other things are not read.
    pub carry: FieldSet,
    /// Threads that may decode at once; with one, whoever reads decodes.
    pub threads: usize,
    /// The longest row, bytes of all texts that are read of it.
    pub max_record_len: usize,
    /// Bytes of rows that may wait to be read, for each thread.
    pub held_len: usize,
}

/// A table that is read.
pub struct TableReader {
    rows: Box<dyn Iterator<Item = Rowset> + Send>,
    /// Byte of the file where what was given last stands, as far as that is known.
    at: u64,
    file_len: u64,
    is_ended: bool,
}

/// Rows of a table that lie together in its file, or what is wrong there.
pub(super) struct Rowset {
    pub(super) records: Result<RecordBuffer, Defect>,
    /// Byte of the file where they stand, as far as that is known.
    pub(super) at: u64,
}

impl TableReader {
    /// Opens the Parquet file at `path`.
    ///
    /// # Errors
    /// It is none, or has no such column.
    pub fn parquet(path: &Path, options: &TableOptions) -> Result<TableReader, Defect> {
        let parquet = Parquet::open(path, options)?;
        let (file_len, units) = (parquet.len(), parquet.units());
        let rows: Box<dyn Iterator<Item = _> + Send> = if options.threads < 2 || units.clone().nth(1).is_none() {
            Box::new(units.flat_map(move |unit| parquet.read(unit)))
        } else {
            Box::new(Ahead::new(parquet, units, options))
        };
        Ok(TableReader { rows, at: 0, file_len, is_ended: false })
    }

    /// Opens the Arrow IPC file at `path`.
    ///
    /// # Errors
    /// As [`TableReader::parquet`].
    pub fn arrow(path: &Path, options: &TableOptions) -> Result<TableReader, Defect> {
        let open = || File::open(path).map_err(Defect::Open);
        let file_len = open()?.metadata().map_err(Defect::Open)?.len();
        let schema = FileReader::try_new(open()?, None).map_err(damaged)?.schema();
        let wanted = Wanted::find(&schema, options)?;
        let places = (0..schema.fields().len()).filter(|&i| wanted.has(schema.field(i).name())).collect();
        let reader = FileReader::try_new(open()?, Some(places)).map_err(damaged)?;
        let rows = ArrowRows { batches: Box::new(reader), wanted, rows: None, number: 0 };
        Ok(TableReader { rows: Box::new(rows), at: 0, file_len, is_ended: false })
    }

    /// The next rows; none at the end. Nothing follows an error.
    ///
    /// # Errors
    /// The file is damaged; rows before were given.
    pub fn read(&mut self) -> Result<Option<RecordBuffer>, Defect> {
        if self.is_ended {
            return Ok(None);
        }
        match self.rows.next() {
            Some(Rowset { records, at }) => {
                (self.at, self.is_ended) = (at, records.is_err());
                records.map(Some)
            }
            None => {
                (self.at, self.is_ended) = (self.file_len, true);
                Ok(None)
            }
        }
    }

    /// Bytes of the file that were read, as far as that is known.
    pub fn taken(&self) -> u64 {
        self.at
    }
}

/// Rows of an Arrow file.
struct ArrowRows {
    batches: Box<dyn RecordBatchReader + Send>,
    wanted: Wanted,
    rows: Option<Batch>,
    /// Of the next row.
    number: u64,
}

impl Iterator for ArrowRows {
    type Item = Rowset;

    fn next(&mut self) -> Option<Rowset> {
        loop {
            if let Some(records) = self.rows.as_mut().and_then(|rows| rows.take(&self.wanted, &mut self.number)) {
                return Some(Rowset { records, at: 0 });
            }
            let rows = self.batches.next()?.and_then(|batch| Batch::of(&batch, &self.wanted));
            match rows {
                Ok(rows) => self.rows = Some(rows),
                Err(error) => return Some(Rowset { records: Err(damaged(error)), at: 0 }),
            }
        }
    }
}

fn damaged(error: ArrowError) -> Defect {
    Defect::Table("Arrow IPC", error.to_string())
}
