//! Parquet files, decoded in **units**: ranges of rows that can be decoded independently. A unit is a row group, or a part of
//! a long one; the units depend on the file and the columns only. Several threads decode units ahead of the reader.
//!
//! `parquet_pages` checks the lengths in a file before the decoder uses them. A defect of a unit follows those of its rows
//! that could be decoded. The decoder is code of another crate and the file may hold anything, so a panic of the decoder is
//! a defect as well.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, RowSelection, RowSelector,
};
use parquet::arrow::{FieldLevels, ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ColumnChunkMetaData, FileMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::Length;
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::columns::{TableOptions, TableProjection};
use super::guard::{DECODER_PANICKED, catch_panic};
use super::page_memory::PageMemory;
use super::parquet_pages::CheckedRowGroup;
use super::positioned_file::{PositionedFile, TableFile};
use super::rows::{BatchRows, PositionedRows, check_types};
use crate::input::error::Defect;
use crate::ordered::{QueueLimits, ReadAhead};
use crate::record::RecordBuffer;
use crate::remote::RemoteError;

/// Approximate length of a unit: uncompressed bytes of the columns that are read.
const UNIT_LEN: u64 = 8 << 20;

/// Limit of rows that are decoded at a time.
const BATCH_ROWS: u64 = 4 << 10;

/// Approximate bytes of the columns that are decoded at a time.
const BATCH_LEN: u64 = 1 << 20;

/// Limit of units per thread that are taken ahead of the reader. It is high because some units have few rows.
const UNITS_AHEAD: usize = 16;

/// Opens `file`. Returns its rows in order, and the length of the file in bytes.
///
/// # Errors
/// The file cannot be read, is damaged, or lacks a requested column.
pub(super) fn open(
    file: &TableFile,
    options: &TableOptions,
) -> Result<(Box<dyn Iterator<Item = PositionedRows> + Send>, u64), Defect> {
    let parquet = ParquetTable::open(file, options)?;
    let (file_len, mut units) = (parquet.file.len(), parquet.units());
    if options.threads < 2 || units.clone().nth(1).is_none() {
        return Ok((Box::new(units.flat_map(move |unit| parquet.read(unit))), file_len));
    }
    let limits =
        QueueLimits { window: UNITS_AHEAD * options.threads, bytes: options.held_len.saturating_mul(options.threads) };
    let rows = ReadAhead::spawn(
        options.threads,
        limits,
        move |_| units.next(),
        move |unit, sender| {
            for rows in parquet.read(unit) {
                let len = rows.records.as_ref().map_or(0, RecordBuffer::text_len);
                if !sender.push(rows, len) {
                    return;
                }
            }
        },
    );
    let decoder_panicked = || PositionedRows { records: Err(Defect::Table("Parquet", DECODER_PANICKED.into())), at: 0 };
    let rows = rows.map_err(Defect::Open)?.map(move |rows| rows.unwrap_or_else(|_| decoder_panicked()));
    Ok((Box::new(rows), file_len))
}

/// A file, and the columns to read.
struct ParquetTable {
    file: PositionedFile,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    /// The columns of `mask` as fields of batches.
    levels: FieldLevels,
    projection: TableProjection,
    memory: Arc<PageMemory>,
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
    group: usize,
    from: u64,
    number: u64,
}

impl ParquetTable {
    fn open(file: &TableFile, options: &TableOptions) -> Result<ParquetTable, Defect> {
        let file = PositionedFile::open(file).map_err(Defect::Open)?;
        let damaged =
            |error: ParquetError| remote_defect(&error).unwrap_or_else(|| Defect::Table("Parquet", error.to_string()));
        let load = || ArrowReaderMetadata::load(&file, ArrowReaderOptions::new());
        let metadata = catch_panic(load, ParquetError::General).map_err(damaged)?;
        let projection = TableProjection::find(metadata.schema(), options)?;
        check_types(metadata.schema(), &projection)?;
        let project = || {
            // If the columns cannot be read as bytes, they are read as they are.
            let metadata = with_text_as_bytes(&metadata, &projection).unwrap_or(metadata);
            let mask = ProjectionMask::columns(metadata.parquet_schema(), projection.names());
            let (schema, fields) = (metadata.parquet_schema(), metadata.schema().fields());
            let levels = parquet_to_arrow_field_levels(schema, mask.clone(), Some(fields))?;
            Ok((metadata, mask, levels))
        };
        let (metadata, mask, levels) = catch_panic(project, ParquetError::General).map_err(damaged)?;
        Ok(ParquetTable { file, metadata, mask, levels, projection, memory: Arc::default() })
    }

    fn units(&self) -> ParquetUnits {
        ParquetUnits { metadata: self.metadata.clone(), mask: self.mask.clone(), group: 0, from: 0, number: 0 }
    }

    /// Decodes the rows of a unit.
    fn read(&self, unit: ParquetUnit) -> UnitRows {
        let build = || {
            let metadata = self.metadata.clone();
            let file = self.file.with_chunks(unit.group, |group| self.chunks(group))?;
            let memory = self.memory.clone();
            let row_group = CheckedRowGroup { file, metadata, group: unit.group, memory };
            row_group.check()?;
            let rows = RowSelection::from(vec![
                RowSelector::skip(unit.from as usize),
                RowSelector::select(unit.rows as usize),
            ]);
            ParquetRecordBatchReader::try_new_with_row_groups(&self.levels, &row_group, unit.batch_rows, Some(rows))
        };
        let (batches, failed) = match catch_panic(build, ParquetError::General) {
            Ok(batches) => (Some(batches), None),
            Err(error) => (None, Some(error)),
        };
        let at = self.group_start(unit.group);
        UnitRows { unit, batches, failed, rows: None, projection: self.projection.clone(), number: unit.number, at }
    }

    /// Where the columns of a row group that are read are in the file, as far as the file states it; `None` after the last
    /// group.
    fn chunks(&self, group: usize) -> Option<Vec<Range<u64>>> {
        let group = self.metadata.metadata().row_groups().get(group)?;
        let columns = (0..group.num_columns()).filter(|&i| self.mask.leaf_included(i)).map(|i| group.column(i));
        Some(columns.filter_map(chunk_range).collect())
    }

    /// Byte offset in the file of the first column of a row group that is read.
    fn group_start(&self, group: usize) -> u64 {
        let group = self.metadata.metadata().row_group(group);
        let columns = (0..group.num_columns()).filter(|&i| self.mask.leaf_included(i)).map(|i| group.column(i));
        let starts = columns.map(|column| column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset()));
        starts.min().and_then(|start| u64::try_from(start).ok()).unwrap_or(0).min(self.file.len())
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
            let len = self.len(group).max(1);
            // The number of equal units whose length is nearest to `UNIT_LEN`.
            let count = (len.saturating_add(UNIT_LEN / 2) / UNIT_LEN).clamp(1, rows.max(1));
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
    /// Uncompressed bytes of the columns of a row group that are read.
    fn len(&self, group: &RowGroupMetaData) -> u64 {
        let columns = (0..group.num_columns()).filter(|&i| self.mask.leaf_included(i));
        let lens = columns.map(|i| u64::try_from(group.column(i).uncompressed_size()).unwrap_or(0));
        lens.fold(0, u64::saturating_add)
    }
}

/// The rows of a unit in order. Nothing follows an error.
struct UnitRows {
    unit: ParquetUnit,
    batches: Option<ParquetRecordBatchReader>,
    /// An error that is reported first.
    failed: Option<ParquetError>,
    rows: Option<BatchRows>,
    projection: TableProjection,
    /// Number of the next row in the file.
    number: u64,
    at: u64,
}

impl Iterator for UnitRows {
    type Item = PositionedRows;

    fn next(&mut self) -> Option<PositionedRows> {
        if let Some(error) = self.failed.take() {
            return Some(self.damaged(&error));
        }
        loop {
            if let Some(records) = self.rows.as_mut().and_then(|rows| rows.take(&self.projection, &mut self.number)) {
                return Some(PositionedRows { records, at: self.at });
            }
            match self.next_batch()? {
                Ok(rows) => self.rows = Some(rows),
                Err(error) => {
                    (self.batches, self.rows) = (None, None);
                    return Some(self.damaged(&error));
                }
            }
        }
    }
}

impl UnitRows {
    fn next_batch(&mut self) -> Option<ParquetResult<BatchRows>> {
        let (batches, projection) = (self.batches.as_mut()?, &self.projection);
        let rows = |batch: RecordBatch| Ok(BatchRows::new(&batch, projection)?);
        let next = || batches.next().transpose()?.map(rows).transpose();
        match catch_panic(next, ParquetError::General) {
            Ok(Some(rows)) => Some(Ok(rows)),
            Err(error) => Some(Err(error)),
            Ok(None) => {
                self.batches = None;
                let (decoded, expected) = (self.number - self.unit.number, self.unit.rows);
                let missing = || format!("{} rows are missing at the end of a page or column", expected - decoded);
                (decoded != expected).then(|| Err(ParquetError::General(missing())))
            }
        }
    }

    fn damaged(&self, error: &ParquetError) -> PositionedRows {
        let group = self.unit.group;
        let message = || format!("row group {group} is damaged: {error}; fetch the file again");
        let defect = remote_defect(error).unwrap_or_else(|| Defect::Table("Parquet", message()));
        PositionedRows { records: Err(defect), at: self.at }
    }
}

/// Where a column chunk is in its file, if the file states a place.
pub(crate) fn chunk_range(column: &ColumnChunkMetaData) -> Option<Range<u64>> {
    let start = column.dictionary_page_offset().unwrap_or_else(|| column.data_page_offset());
    let (start, len) = (u64::try_from(start).ok()?, u64::try_from(column.compressed_size()).ok()?);
    Some(start..start.checked_add(len)?)
}

/// The defect of an object that cannot be read.
fn remote_defect(error: &ParquetError) -> Option<Defect> {
    let ParquetError::External(error) = error else { return None };
    let error = RemoteError::of_io(error.downcast_ref()?)?;
    Some(Defect::Read(error.clone().into()))
}

/// `metadata` with the text columns of the projection declared as columns of bytes, and read as views, which share the
/// memory of pages and dictionaries. Some writers declare bytes as text that are not UTF-8; one such value would make the
/// whole batch unreadable, but as bytes it concerns its own row only.
///
/// # Errors
/// The columns cannot be read in these types.
fn with_text_as_bytes(
    metadata: &ArrowReaderMetadata,
    projection: &TableProjection,
) -> ParquetResult<ArrowReaderMetadata> {
    let file = metadata.metadata().file_metadata();
    let columns = file.schema().get_fields().iter().zip(metadata.schema().fields());
    let (types, fields): (Vec<TypePtr>, Vec<Arc<Field>>) = columns
        .map(|(column, field)| {
            match projection.has(field.name()) && column.is_primitive() && is_text_or_bytes(field.data_type()) {
                true => {
                    let field = field.as_ref().clone().with_data_type(DataType::BinaryView);
                    Ok((Arc::new(bytes_column(column)?), Arc::new(field)))
                }
                false => Ok((Arc::clone(column), Arc::clone(field))),
            }
        })
        .collect::<ParquetResult<_>>()?;
    let root = Type::group_type_builder(file.schema().name()).with_fields(types).build()?;
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(Arc::new(root))),
        file.column_orders().cloned(),
    );
    let schema = Schema::new_with_metadata(fields, metadata.schema().metadata().clone());
    let groups = metadata.metadata().row_groups().to_vec();
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(Arc::new(ParquetMetaData::new(file, groups)), options)
}

/// The column `text` without its declaration as text.
fn bytes_column(text: &Type) -> ParquetResult<Type> {
    let info = text.get_basic_info();
    Type::primitive_type_builder(text.name(), text.get_physical_type())
        .with_repetition(info.repetition())
        .with_id(info.has_id().then(|| info.id()))
        .build()
}

fn is_text_or_bytes(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => true,
        DataType::Dictionary(_, values) => is_text_or_bytes(values),
        _ => false,
    }
}
