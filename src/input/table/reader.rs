//! Reads tables in the order of their rows: [`TableReader`].

use std::io::{BufReader, Read, Seek, SeekFrom};

use arrow::array::RecordBatchReader;
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};

use super::columns::{TableOptions, TableProjection};
use super::guard::catch_panic;
use super::ipc_lengths::{check_ipc_lengths, check_stream_lengths};
use super::parquet;

use super::rows::{BatchRows, OpenedTable, PositionedRows, check_types};
use crate::input::error::Defect;
use crate::input::stored_file::StoredFile;
use crate::record::RecordBuffer;

pub(crate) struct TableReader {
    table: OpenedTable,
    /// Byte offset in the file of the rows that were returned last, as far as it is known.
    at: u64,
    is_ended: bool,
}

impl TableReader {
    /// Opens a Parquet file.
    ///
    /// # Errors
    /// The file cannot be read, is damaged, or lacks a requested column.
    pub(crate) fn parquet(file: &StoredFile, options: &TableOptions) -> Result<TableReader, Defect> {
        Ok(TableReader { table: parquet::open(file, options)?, at: 0, is_ended: false })
    }

    /// Opens an Arrow IPC file, or a file of the streaming format.
    pub(crate) fn arrow(file: &StoredFile, is_stream: bool, options: &TableOptions) -> Result<TableReader, Defect> {
        let open = || file.open().map_err(Defect::Open);
        let mut opened = open()?;
        let file_len = opened.seek(SeekFrom::End(0)).map_err(Defect::Open)?;
        let (sound_len, checked) = match is_stream {
            true => check_stream_lengths(&mut opened),
            false => (0, check_ipc_lengths(&mut opened)),
        };
        let checked = checked.map_err(|message| damaged(ArrowError::ParseError(message)));
        // What is before the damage in a stream can be read, if it has a schema.
        let damage = match checked {
            Err(defect) if sound_len == 0 => return Err(defect),
            checked => checked.err().map(|defect| (defect, sound_len)),
        };
        let read = |projection: Option<Vec<usize>>| {
            let file = open()?;
            let reader = || -> Result<Box<dyn RecordBatchReader + Send>, ArrowError> {
                Ok(match is_stream {
                    true => Box::new(StreamReader::try_new(BufReader::new(file.take(sound_len)), projection)?),
                    false => Box::new(FileReader::try_new(file, projection)?),
                })
            };
            catch_panic(reader, ArrowError::ParseError).map_err(damaged)
        };
        let schema = read(None)?.schema();
        let projection = TableProjection::find(&schema, options)?;
        check_types(&schema, &projection)?;
        let places = (0..schema.fields().len()).filter(|&i| projection.has(schema.field(i).name())).collect();
        let reader = read(Some(places))?;
        let has_input = projection.input.is_some();
        let rows = ArrowRows { batches: reader, projection, rows: None, number: 0, damage };
        Ok(TableReader { table: OpenedTable { rows: Box::new(rows), file_len, has_input }, at: 0, is_ended: false })
    }

    /// Reads the next rows. Returns `None` at the end, and after an error.
    ///
    /// # Errors
    /// The file is damaged. All rows before the damage were returned.
    pub(crate) fn read(&mut self) -> Result<Option<RecordBuffer>, Defect> {
        if self.is_ended {
            return Ok(None);
        }
        match self.table.rows.next() {
            Some(PositionedRows { records, at }) => {
                (self.at, self.is_ended) = (at, records.is_err());
                records.map(Some)
            }
            None => {
                (self.at, self.is_ended) = (self.table.file_len, true);
                Ok(None)
            }
        }
    }

    /// Whether rows without a `uri` have their text in the column `input`.
    pub(crate) fn has_input(&self) -> bool {
        self.table.has_input
    }

    /// Bytes of the file read so far, as far as they are known.
    pub(crate) fn taken(&self) -> u64 {
        self.at
    }
}

/// The rows of an Arrow IPC file.
struct ArrowRows {
    batches: Box<dyn RecordBatchReader + Send>,
    projection: TableProjection,
    rows: Option<BatchRows>,
    /// Number of the next row.
    number: u64,
    /// What follows the batches, and its byte offset.
    damage: Option<(Defect, u64)>,
}

impl Iterator for ArrowRows {
    type Item = PositionedRows;

    fn next(&mut self) -> Option<PositionedRows> {
        loop {
            if let Some(records) = self.rows.as_mut().and_then(|rows| rows.take(&self.projection, &mut self.number)) {
                return Some(PositionedRows { records, at: 0 });
            }
            let (batches, projection) = (&mut self.batches, &self.projection);
            let next = || batches.next().transpose()?.map(|batch| BatchRows::new(&batch, projection)).transpose();
            match catch_panic(next, ArrowError::ParseError) {
                Ok(Some(rows)) => self.rows = Some(rows),
                Ok(None) => return self.damage.take().map(|(defect, at)| PositionedRows { records: Err(defect), at }),
                Err(error) => return Some(PositionedRows { records: Err(damaged(error)), at: 0 }),
            }
        }
    }
}

fn damaged(error: ArrowError) -> Defect {
    let cause = if let ArrowError::IoError(_, cause) = &error { Some(cause) } else { None };
    // Messages of flatbuffers end with line feeds.
    Defect::of_table("Arrow IPC", cause, &error.to_string().trim_end())
}
