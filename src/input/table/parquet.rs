//! Parquet files, decoded in **units**: ranges of rows that can be decoded independently. A unit is a row group, or a part of
//! a long one; the units depend on the file and the columns only. Several threads decode units ahead of the reader.
//!
//! If only one column is read and it has texts, its batches are copied from its pages (`text_pages`). The decoder reads all
//! other batches, and those in which `text_pages` finds an uncommon feature.
//!
//! `parquet_pages` checks the lengths in a file before the decoder uses them. A defect of a unit follows those of its rows
//! that could be decoded. The decoder is code of another crate and the file may hold anything, so a panic of the decoder is
//! a defect as well.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::fmt::Display;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ParquetRecordBatchReader, RowSelection, RowSelector};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::Length;

use super::columns::{TableOptions, TableProjection};
use super::guard::{DECODER_PANICKED, catch_panic};
use super::page_memory::PageMemory;
use super::parquet_batches::mask_of_columns;
use super::parquet_pages::{CheckedRowGroup, chunk_range, chunk_start, columns, first_repeated, rows_are_missing};
use super::parquet_thrift::load_metadata;
use super::positioned_file::PositionedFile;
use super::rows::{BatchRows, OpenedTable, PositionedRows, check_types};
use super::text_pages::TextPages;
use super::text_schema::{only_text_column, with_text_as_bytes};
use crate::input::error::Defect;
use crate::input::stored_file::StoredFile;
use crate::ordered::{QueueLimits, ReadAhead};
use crate::record::RecordBuffer;

/// Approximate length of a unit: uncompressed bytes of the columns that are read.
const UNIT_LEN: u64 = 8 << 20;

/// Maximum number of units of a row group, and maximum ratio of a unit's length to its length in the file. A unit looks for
/// its first row from the first page of its row group on, so that many short units would take time that grows with the square
/// of the number of pages. The length of a column is what the file states.
const MAX_GROUP_UNITS: u64 = 256;
const MAX_EXPANSION: u64 = 128;

/// Limit of rows that are decoded at a time.
const BATCH_ROWS: u64 = 4 << 10;

/// Approximate bytes of the columns that are decoded at a time.
const BATCH_LEN: u64 = 1 << 20;

/// Limit of units per thread that are taken ahead of the reader. It is high because some units have few rows.
const UNITS_AHEAD: usize = 16;

/// Opens `file`. Its rows are in order.
pub(super) fn open(file: &StoredFile, options: &TableOptions) -> Result<OpenedTable, Defect> {
    let parquet = Arc::new(ParquetTable::open(file, options)?);
    let (file_len, mut units) = (parquet.file.len(), parquet.units(UNIT_LEN));
    let has_input = parquet.projection.input.is_some();
    if options.threads < 2 || units.clone().nth(1).is_none() {
        let rows = Box::new(units.flat_map(move |unit| parquet.read(unit)));
        return Ok(OpenedTable { rows, file_len, has_input });
    }
    let limits =
        QueueLimits { window: UNITS_AHEAD * options.threads, bytes: options.held_len.saturating_mul(options.threads) };
    let rows = ReadAhead::spawn(
        options.threads,
        limits,
        move |_| units.next().map(|unit| (1, parquet.read(unit))),
        |unit_rows, sender| {
            for rows in unit_rows {
                let len = rows.records.as_ref().map_or(0, RecordBuffer::text_len);
                if !sender.push(rows, len) {
                    return;
                }
            }
        },
    );
    let decoder_panicked = || PositionedRows { records: Err(Defect::Table("Parquet", DECODER_PANICKED.into())), at: 0 };
    let rows = rows.map_err(Defect::Open)?.map(move |rows| rows.unwrap_or_else(|_| decoder_panicked()));
    Ok(OpenedTable { rows: Box::new(rows), file_len, has_input })
}

/// A file, and the columns to read.
struct ParquetTable {
    file: PositionedFile,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// The columns of `mask` as fields of batches.
    levels: FieldLevels,
    /// [`first_repeated`] of the columns of `mask`.
    first_repeated: usize,
    projection: TableProjection,
    memory: Arc<PageMemory>,
    /// The column that is read, if it is the only one and has texts.
    text_column: Option<usize>,
    /// With one thread: the number of a row group, and its texts after the unit that was read last.
    kept_texts: Option<Mutex<Option<(usize, TextPages)>>>,
}

/// Consecutive rows of one row group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ParquetUnit {
    group: usize,
    /// Number of the first row in its group.
    from: u64,
    rows: u64,
    /// Number of the first row in the file.
    number: u64,
    batch_rows: usize,
}

/// The units of a file in order.
#[derive(Clone)]
struct ParquetUnits {
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    unit_len: u64,
    group: usize,
    from: u64,
    number: u64,
}

impl ParquetTable {
    fn open(file: &StoredFile, options: &TableOptions) -> Result<ParquetTable, Defect> {
        let file = PositionedFile::open(file).map_err(Defect::Open)?;
        let damaged = |error: ParquetError| defect_of(&error, &error);
        let metadata = catch_panic(|| load_metadata(&file), ParquetError::General).map_err(damaged)?;
        let projection = TableProjection::find(metadata.schema(), options)?;
        check_types(metadata.schema(), &projection)?;
        let project = || {
            // If the columns cannot be read as bytes, they are read as they are.
            let metadata = with_text_as_bytes(&metadata, &projection).unwrap_or(metadata);
            let mask = mask_of_columns(metadata.parquet_schema(), projection.names());
            let (schema, fields) = (metadata.parquet_schema(), metadata.schema().fields());
            let levels = parquet_to_arrow_field_levels(schema, mask.clone(), Some(fields))?;
            Ok((metadata, mask, levels))
        };
        let (metadata, mask, levels) = catch_panic(project, ParquetError::General).map_err(damaged)?;
        let text_column = only_text_column(&metadata, &mask, &projection);
        let first_repeated = first_repeated(metadata.metadata(), &mask, file.len());
        let kept_texts = (options.threads < 2).then(Mutex::default);
        let memory = Arc::default();
        Ok(ParquetTable { file, metadata, mask, levels, first_repeated, projection, memory, text_column, kept_texts })
    }

    /// The units of the file, which have about `unit_len` bytes.
    fn units(&self, unit_len: u64) -> ParquetUnits {
        let (metadata, mask) = (self.metadata.clone(), self.mask.clone());
        ParquetUnits { metadata, mask, unit_len, group: 0, from: 0, number: 0 }
    }

    /// The rows of a unit. Its bytes are requested now, so units are in order; they are decoded when the first row is taken.
    fn read(self: &Arc<Self>, unit: ParquetUnit) -> UnitRows {
        UnitRows {
            table: Arc::clone(self),
            unit,
            file: self.file.with_chunks(unit.group, |group| self.chunks(group)),
            source: RowSource::Unread,
            buffers: VecDeque::new(),
            rows: None,
            number: unit.number,
            at: self.group_start(unit.group),
        }
    }

    /// The texts from the first row of a unit on, if the unit before it was read last.
    fn take_texts(&self, unit: ParquetUnit) -> Option<TextPages> {
        let (group, texts) = self.kept_texts.as_ref()?.lock().take()?;
        ((group, texts.row()) == (unit.group, unit.from)).then_some(texts)
    }

    /// Keeps the texts after a unit.
    fn keep_texts(&self, unit: ParquetUnit, texts: TextPages) {
        if let Some(kept) = &self.kept_texts {
            *kept.lock() = Some((unit.group, texts));
        }
    }

    /// Where the columns of a row group that are read are in the file, as far as the file states it; `None` after the last
    /// group.
    fn chunks(&self, group: usize) -> Option<Vec<Range<u64>>> {
        let group = self.metadata.metadata().row_groups().get(group)?;
        Some(columns(group, &self.mask).filter_map(chunk_range).collect())
    }

    /// Byte offset in the file of the first column of a row group that is read.
    fn group_start(&self, group: usize) -> u64 {
        let group = self.metadata.metadata().row_group(group);
        let start = columns(group, &self.mask).map(chunk_start).min();
        start.and_then(|start| u64::try_from(start).ok()).unwrap_or(0).min(self.file.len())
    }
}

impl Iterator for ParquetUnits {
    type Item = ParquetUnit;

    fn next(&mut self) -> Option<ParquetUnit> {
        let groups = self.metadata.metadata().row_groups();
        loop {
            let group = groups.get(self.group)?;
            // A negative number becomes a unit without rows, which is then reported as damaged.
            let rows = u64::try_from(group.num_rows()).unwrap_or(0);
            if self.from >= rows && !(self.from == 0 && group.num_rows() < 0) {
                (self.group, self.from) = (self.group + 1, 0);
                continue;
            }
            let len = self.len(group, ColumnChunkMetaData::uncompressed_size).max(1);
            let packed_len = self.len(group, ColumnChunkMetaData::compressed_size);
            let most = (packed_len / (self.unit_len / MAX_EXPANSION).max(1)).clamp(1, MAX_GROUP_UNITS);
            // The number of equal units whose length is nearest to `unit_len`.
            let count = (len.saturating_add(self.unit_len / 2) / self.unit_len).clamp(1, rows.max(1)).min(most);
            let unit_rows = rows.div_ceil(count);
            let batch_rows = (u128::from(BATCH_LEN) * u128::from(rows) / u128::from(len)).clamp(1, BATCH_ROWS.into());
            let unit = ParquetUnit {
                group: self.group,
                from: self.from,
                rows: unit_rows.min(rows - self.from),
                number: self.number,
                batch_rows: batch_rows as usize,
            };
            self.from += unit.rows.max(1);
            self.number = self.number.saturating_add(unit.rows);
            return Some(unit);
        }
    }
}

impl ParquetUnits {
    /// Bytes of the columns of a row group that are read, by the length of a column.
    fn len(&self, group: &RowGroupMetaData, of: fn(&ColumnChunkMetaData) -> i64) -> u64 {
        let lens = columns(group, &self.mask).map(|column| u64::try_from(of(column)).unwrap_or(0));
        lens.fold(0, u64::saturating_add)
    }
}

/// The rows of a unit in order. Nothing follows an error.
struct UnitRows {
    table: Arc<ParquetTable>,
    unit: ParquetUnit,
    /// The file with the column chunks of the row group.
    file: PositionedFile,
    source: RowSource,
    /// Rows that were read from pages of texts.
    buffers: VecDeque<RecordBuffer>,
    /// Rows that were decoded.
    rows: Option<BatchRows>,
    /// Number of the next row in the file.
    number: u64,
    at: u64,
}

/// Where the next rows of a unit come from.
enum RowSource {
    /// Nothing was read so far.
    Unread,
    /// The pages of texts, from the next row on.
    Texts(TextPages),
    Decoder(ParquetRecordBatchReader),
    /// All rows were read, or there was an error.
    Ended,
}

impl Iterator for UnitRows {
    type Item = PositionedRows;

    fn next(&mut self) -> Option<PositionedRows> {
        loop {
            let projection = &self.table.projection;
            let decoded = || self.rows.as_mut().and_then(|rows| rows.take(projection, &mut self.number));
            if let Some(records) = self.buffers.pop_front().map(Ok).or_else(decoded) {
                return Some(PositionedRows { records, at: self.at });
            }
            let read = match std::mem::replace(&mut self.source, RowSource::Ended) {
                RowSource::Unread => self.begin(),
                RowSource::Texts(texts) => self.read_texts(texts),
                RowSource::Decoder(batches) => self.read_batch(batches),
                RowSource::Ended => return None,
            };
            match read {
                Ok(source) => self.source = source,
                Err(error) => return Some(self.damaged(&error)),
            }
        }
    }
}

impl UnitRows {
    /// The pages of texts, if these are all that is read, or the decoder.
    fn begin(&self) -> ParquetResult<RowSource> {
        let open = |column: usize| {
            let mut texts = TextPages::new(self.row_group()?.pages(column)?);
            Ok(texts.skip_to(self.unit.from).map(|()| texts))
        };
        let texts = self.table.text_column.filter(|_| self.unit.rows > 0).and_then(|column| {
            let continued = self.table.take_texts(self.unit);
            // The decoder reports the error.
            continued.or_else(|| catch_panic(|| open(column), ParquetError::General).ok().flatten())
        });
        texts.map_or_else(|| self.decoder(), |texts| Ok(RowSource::Texts(texts)))
    }

    /// The row group, whose column chunks have arrived.
    fn row_group(&self) -> ParquetResult<CheckedRowGroup> {
        self.file.wait()?;
        let (table, file, group) = (&self.table, self.file.clone(), self.unit.group);
        let (metadata, first_repeated, memory) = (table.metadata.clone(), table.first_repeated, table.memory.clone());
        CheckedRowGroup { file, metadata, group, first_repeated, memory }.check()
    }

    /// A decoder from the next row on.
    fn decoder(&self) -> ParquetResult<RowSource> {
        let unit = self.unit;
        let build = || {
            let row_group = self.row_group()?;
            let read = self.number - unit.number;
            let rows = RowSelection::from(vec![
                RowSelector::skip((unit.from + read) as usize),
                RowSelector::select((unit.rows - read) as usize),
            ]);
            let (levels, len) = (&self.table.levels, unit.batch_rows);
            ParquetRecordBatchReader::try_new_with_row_groups(levels, &row_group, len, Some(rows))
        };
        catch_panic(build, ParquetError::General).map(RowSource::Decoder)
    }

    /// Reads a batch of `texts`. If the pages have an uncommon feature, the decoder reads the rows instead.
    fn read_texts(&mut self, mut texts: TextPages) -> ParquetResult<RowSource> {
        let count = self.unit.rows - (self.number - self.unit.number);
        let count = count.min(self.unit.batch_rows as u64);
        if count == 0 {
            self.table.keep_texts(self.unit, texts);
            return Ok(RowSource::Ended);
        }
        let read = || texts.batch(count as usize, self.number, &self.table.projection).ok_or_else(String::new);
        match catch_panic(read, |message| message) {
            Ok(buffers) => {
                self.buffers = buffers;
                self.number += count;
                Ok(RowSource::Texts(texts))
            }
            Err(_) => self.decoder(),
        }
    }

    fn read_batch(&mut self, mut batches: ParquetRecordBatchReader) -> ParquetResult<RowSource> {
        let projection = &self.table.projection;
        let rows = |batch: RecordBatch| Ok(BatchRows::new(&batch, projection)?);
        let next = || batches.next().transpose()?.map(rows).transpose();
        self.rows = catch_panic(next, ParquetError::General)?;
        let (decoded, expected) = (self.number - self.unit.number, self.unit.rows);
        match self.rows {
            Some(_) => Ok(RowSource::Decoder(batches)),
            None if decoded == expected => Ok(RowSource::Ended),
            None => Err(rows_are_missing(expected - decoded)),
        }
    }

    fn damaged(&self, error: &ParquetError) -> PositionedRows {
        let group = self.unit.group;
        PositionedRows { records: Err(defect_of(error, &format_args!("row group {group}: {error}"))), at: self.at }
    }
}

/// The defect of a file whose decoder returned `error`. `message` describes it, unless `error` is that of a read.
pub(in crate::input) fn defect_of(error: &ParquetError, message: &dyn Display) -> Defect {
    let cause = if let ParquetError::External(cause) = error { cause.downcast_ref() } else { None };
    Defect::of_table("Parquet", cause, message)
}

#[cfg(test)]
mod tests;
