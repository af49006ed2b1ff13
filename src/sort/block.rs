//! What blocks of sorted rows are made of: [`Shape`]. In: batches of spans. Out: packed blocks in order; blocks again,
//! with the bytes by which their rows compare; batches of rows that were picked from blocks.
//!
//! Columns of a dictionary travel as their indices: the dictionaries are the same in every batch of a run.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, RecordBatch, UInt32Array, UInt64Array, make_array, new_empty_array,
};
use arrow::buffer::ScalarBuffer;
use arrow::compute::{interleave_record_batch, take_record_batch};
use arrow::datatypes::{DataType, Field, Int8Type, Int32Type, Schema, SchemaRef, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow::row::{OwnedRow, RowConverter, Rows};

use super::{Group, Partition, SortBy};

/// A block has at most so many rows, so that a merge holds little of each run.
const BLOCK_ROWS: usize = 4096;

/// And about so many bytes, but at least one row.
const BLOCK_LEN: usize = 512 << 10;

/// A block as bytes.
#[derive(Debug)]
pub struct Packed {
    /// An Arrow IPC stream.
    pub bytes: Vec<u8>,
    /// Its rows.
    pub rows: usize,
    /// Bytes of memory that it takes when it is unpacked, about.
    pub memory_len: usize,
}

/// Rows that follow each other in order, ready to be merged.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) batch: RecordBatch,
    /// By which rows compare, the ordinal aside; none if there is no order but the input's.
    pub(super) keys: Option<Rows>,
    pub(super) ordinals: ScalarBuffer<u64>,
    /// None if there are no partitions.
    pub(super) partitions: Option<ScalarBuffer<u32>>,
    /// Bytes of each row's texts.
    pub(super) lens: Vec<u32>,
}

/// What the batches of a job look like, and by what they are sorted.
#[derive(Debug)]
pub struct Shape {
    schema: SchemaRef,
    flat: SchemaRef,
    /// Place of the column that rows are parted by, and how.
    partition: Option<(usize, Partition)>,
    /// Places of the columns to sort by.
    places: Vec<usize>,
    converter: Option<RowConverter>,
    /// Of the first column alone: what parts do not share.
    first: Option<RowConverter>,
    /// Those of every batch, by column.
    dictionaries: Vec<Option<ArrayRef>>,
}

impl Shape {
    /// The shape of batches of `schema`, of which all have the same `dictionaries`, one a column.
    ///
    /// # Errors
    /// A column that is not there or has no order.
    pub fn new(
        schema: &SchemaRef,
        dictionaries: Vec<Option<ArrayRef>>,
        by: &SortBy,
        partition: Option<Partition>,
    ) -> Result<Shape, ArrowError> {
        let places = by.places(schema)?;
        let types =
            |places: &[usize]| places.iter().map(|&at| schema.field(at).data_type().clone()).collect::<Vec<_>>();
        let partition = match partition {
            Some(partition) => Some((schema.index_of(partition.column())?, partition)),
            None => None,
        };
        let first = SortBy::of(by.columns().iter().take(1).cloned().collect());
        Ok(Shape {
            flat: flat_schema(schema, partition.is_some()),
            schema: schema.clone(),
            partition,
            converter: (!places.is_empty()).then(|| by.converter(types(&places))).transpose()?,
            first: (!places.is_empty()).then(|| first.converter(types(&places[..1]))).transpose()?,
            places,
            dictionaries,
        })
    }

    /// Sorts the rows of a span, of which the first is number `first_row` of the run, and packs them.
    ///
    /// # Errors
    /// Arrow refused.
    pub fn sort(&self, batch: &RecordBatch, first_row: u64) -> Result<Vec<Packed>, ArrowError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let partitions = self.partition.as_ref().map(|(at, by)| by.of(batch.column(*at).as_string::<i32>()));
        let keys = self.keys(self.places.iter().map(|&at| Ok(batch.column(at).clone())))?;
        let place = |row: u32| partitions.as_ref().map_or(0, |places| places.value(row as usize));
        let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
        // Stable: rows that are equal so far stay in the order of the input.
        order.sort_by(|&a, &b| {
            place(a).cmp(&place(b)).then_with(|| compare(keys.as_ref(), a as usize, keys.as_ref(), b as usize))
        });
        let ordinals = (0..batch.num_rows() as u64).map(|row| first_row + row);
        let flat = self.flatten(batch, UInt64Array::from_iter_values(ordinals), partitions)?;
        let sorted = take_record_batch(&flat, &UInt32Array::from(order))?;
        self.pack(&sorted)
    }

    /// Cuts sorted rows into blocks and packs these.
    pub(super) fn pack(&self, sorted: &RecordBatch) -> Result<Vec<Packed>, ArrowError> {
        let (lens, mut blocks, mut from, mut len) = (lens(sorted.columns()), Vec::new(), 0, 0);
        for (row, next) in lens.iter().map(|len| *len as usize).enumerate() {
            if row > from && (row - from == BLOCK_ROWS || len + next > BLOCK_LEN) {
                blocks.push(pack(&sorted.slice(from, row - from), len)?);
                (from, len) = (row, 0);
            }
            len += next;
        }
        if from < sorted.num_rows() {
            blocks.push(pack(&sorted.slice(from, sorted.num_rows() - from), len)?);
        }
        Ok(blocks)
    }

    /// Reads a block that was packed.
    pub(super) fn unpack(&self, bytes: &[u8]) -> Result<Block, ArrowError> {
        let mut reader = StreamReader::try_new(bytes, None)?;
        let batch = reader.next().transpose()?.unwrap_or_else(|| RecordBatch::new_empty(self.flat.clone()));
        let extra = self.schema.fields().len();
        Ok(Block {
            keys: self.keys(self.places.iter().map(|&at| self.restored(&batch, at)))?,
            ordinals: batch.column(extra).as_primitive::<UInt64Type>().values().clone(),
            partitions: self
                .partition
                .is_some()
                .then(|| batch.column(extra + 1).as_primitive::<UInt32Type>().values().clone()),
            lens: lens(&batch.columns()[..extra]),
            batch,
        })
    }

    /// The rows of a group, in order, in the columns of the job's batches.
    ///
    /// # Errors
    /// Arrow refused.
    pub fn gather(&self, group: &Group) -> Result<RecordBatch, ArrowError> {
        let flat = self.gather_flat(group)?;
        let columns = (0..self.schema.fields().len()).map(|at| self.restored(&flat, at));
        RecordBatch::try_new(self.schema.clone(), columns.collect::<Result<_, _>>()?)
    }

    pub(super) fn gather_flat(&self, group: &Group) -> Result<RecordBatch, ArrowError> {
        let batches: Vec<&RecordBatch> = group.blocks.iter().map(|block| &block.batch).collect();
        interleave_record_batch(&batches, &group.picks)
    }

    /// A row in the first column of the order, to see whether two agree there.
    pub(super) fn first_key(&self, block: &Block, row: usize) -> Result<Option<OwnedRow>, ArrowError> {
        let Some(first) = &self.first else { return Ok(None) };
        let column = self.restored(&block.batch, self.places[0])?.slice(row, 1);
        Ok(Some(first.convert_columns(&[column])?.row(0).owned()))
    }

    /// There are partitions.
    pub fn is_parted(&self) -> bool {
        self.partition.is_some()
    }

    /// What rows compare by, of the columns of the order.
    fn keys(&self, columns: impl Iterator<Item = Result<ArrayRef, ArrowError>>) -> Result<Option<Rows>, ArrowError> {
        let Some(converter) = &self.converter else { return Ok(None) };
        converter.convert_columns(&columns.collect::<Result<Vec<_>, _>>()?).map(Some)
    }

    /// Without dictionaries, and with ordinals and partitions.
    fn flatten(
        &self,
        batch: &RecordBatch,
        ordinals: UInt64Array,
        partitions: Option<UInt32Array>,
    ) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<ArrayRef> = batch.columns().iter().map(indices).collect();
        columns.push(Arc::new(ordinals));
        columns.extend(partitions.map(|places| Arc::new(places) as ArrayRef));
        RecordBatch::try_new(self.flat.clone(), columns)
    }

    /// A column with its dictionary.
    fn restored(&self, flat: &RecordBatch, at: usize) -> Result<ArrayRef, ArrowError> {
        let column = flat.column(at);
        let kept = self.dictionaries.get(at).cloned().flatten();
        let values = || kept.unwrap_or_else(|| new_empty_array(&DataType::Utf8));
        Ok(match self.schema.field(at).data_type() {
            DataType::Dictionary(keys, _) if **keys == DataType::Int32 => {
                Arc::new(DictionaryArray::try_new(column.as_primitive::<Int32Type>().clone(), values())?)
            }
            DataType::Dictionary(..) => {
                Arc::new(DictionaryArray::try_new(column.as_primitive::<Int8Type>().clone(), values())?)
            }
            _ => column.clone(),
        })
    }
}

impl Block {
    /// Compares two rows; never equal for different ones.
    pub(super) fn compare(&self, row: usize, other: &Block, other_row: usize) -> Ordering {
        let place = |block: &Block, row: usize| block.partitions.as_ref().map_or(0, |places| places[row]);
        let places = place(self, row).cmp(&place(other, other_row));
        places
            .then_with(|| compare(self.keys.as_ref(), row, other.keys.as_ref(), other_row))
            .then_with(|| self.ordinals[row].cmp(&other.ordinals[other_row]))
    }
}

fn compare(keys: Option<&Rows>, row: usize, other: Option<&Rows>, other_row: usize) -> Ordering {
    match (keys, other) {
        (Some(keys), Some(other)) => keys.row(row).cmp(&other.row(other_row)),
        _ => Ordering::Equal,
    }
}

fn flat_schema(schema: &SchemaRef, is_parted: bool) -> SchemaRef {
    let flat = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(keys, _) => Arc::new(Field::new(field.name(), (**keys).clone(), field.is_nullable())),
        _ => field.clone(),
    };
    let mut fields: Vec<_> = schema.fields().iter().map(flat).collect();
    fields.push(Arc::new(Field::new("ordinal", DataType::UInt64, false)));
    if is_parted {
        fields.push(Arc::new(Field::new("partition", DataType::UInt32, false)));
    }
    Arc::new(Schema::new(fields))
}

fn indices(array: &ArrayRef) -> ArrayRef {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => make_array(dictionary.keys().to_data()),
        None => array.clone(),
    }
}

/// Bytes of each row's texts, and 8 for every other column.
fn lens(columns: &[ArrayRef]) -> Vec<u32> {
    let mut lens = vec![0; columns.first().map_or(0, |column| column.len())];
    for column in columns {
        let offsets = match column.data_type() {
            DataType::Utf8 => column.as_string::<i32>().offsets(),
            DataType::Binary => column.as_binary::<i32>().offsets(),
            _ => {
                lens.iter_mut().for_each(|len| *len += 8);
                continue;
            }
        };
        lens.iter_mut().zip(offsets.windows(2)).for_each(|(len, pair)| *len += (pair[1] - pair[0]) as u32);
    }
    lens
}

fn pack(block: &RecordBatch, len: usize) -> Result<Packed, ArrowError> {
    let mut bytes = Vec::with_capacity(len / 2);
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let mut writer = StreamWriter::try_new_with_options(&mut bytes, block.schema_ref(), options)?;
    writer.write(block)?;
    writer.finish()?;
    drop(writer);
    // The rows, and the bytes by which they compare.
    let memory_len = len * 2 + block.num_rows() * 64;
    Ok(Packed { bytes, rows: block.num_rows(), memory_len })
}
