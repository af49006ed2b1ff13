//! Blocks of sorted rows: sorting a batch into encoded blocks, decoding them with the bytes by which their rows compare,
//! and gathering rows that were picked from several blocks. All of it is [`SortSchema`].
//!
//! Dictionary columns are stored as their indices, because every batch of a run has the same dictionaries.

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicUsize};

use arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, OffsetSizeTrait, RecordBatch, UInt32Array, UInt64Array, make_array,
    new_empty_array,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::{interleave_record_batch, take_record_batch};
use arrow::datatypes::{DataType, Field, Int8Type, Int32Type, Schema, SchemaRef, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use arrow::ipc::CompressionType;
use arrow::row::{OwnedRow, RowConverter, Rows};

use super::offset_code::{OffsetCode, RowWords};
use super::order::SortBy;
use super::partition::Partition;
use super::prefix::sort_by_text;
use crate::spill::{decode_batch, encode_batch};

/// Maximum number of rows of a block, so that a merge holds little of each run.
const MAX_BLOCK_ROWS: usize = 4096;

/// About the most bytes of a block; it has at least one row.
const MAX_BLOCK_LEN: usize = 512 << 10;

/// Bytes of memory for runs that are not compressed: compressing a row takes longer than sorting it.
#[derive(Debug)]
pub(crate) struct PlainMemory(AtomicUsize);

#[derive(Debug)]
pub(crate) struct EncodedBlock {
    /// An Arrow IPC stream.
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: usize,
    /// Estimated bytes of memory of the decoded block.
    pub(crate) memory_len: usize,
}

/// Consecutive sorted rows, ready to be merged.
#[derive(Debug)]
pub(super) struct SortedBlock {
    batch: RecordBatch,
    /// Bytes by which rows compare, without the ordinal; `None` if rows are only sorted by their ordinal.
    keys: Option<Rows>,
    /// The position of each row in the input, which orders rows of equal keys.
    pub(super) ordinals: ScalarBuffer<u64>,
    partitions: Option<ScalarBuffer<u32>>,
    /// Bytes of each row's texts.
    pub(super) row_lens: Vec<u32>,
    /// The code of each row after the row of the run before it.
    pub(super) codes: Vec<OffsetCode>,
}

/// A row of a block.
pub(super) type BlockRow<'a> = (&'a SortedBlock, usize);

/// Consecutive rows of the merged order, picked from blocks.
#[derive(Debug)]
pub(crate) struct PickedRows {
    pub(super) blocks: Vec<Arc<SortedBlock>>,
    /// Index in `blocks`, and row in that block.
    pub(super) picks: Vec<(usize, usize)>,
    /// Partition of all these rows; 0 if rows are not partitioned.
    pub(crate) partition: u32,
    /// Part within the partition, from 0.
    pub(crate) part: u32,
}

impl PlainMemory {
    /// `len` bytes for all runs together. If it is 0, all runs are compressed.
    pub(crate) fn new(len: usize) -> PlainMemory {
        PlainMemory(AtomicUsize::new(len))
    }

    /// Returns the codec of a run of `len` bytes. `None` if that much memory remains; it is then reserved for the run.
    fn codec_of_run(&self, len: usize) -> Option<CompressionType> {
        let taken =
            self.0.fetch_update(atomic::Ordering::Relaxed, atomic::Ordering::Relaxed, |left| left.checked_sub(len));
        taken.is_err().then_some(CompressionType::LZ4_FRAME)
    }
}

/// The schema of the batches of a sort, and the order of their rows.
#[derive(Debug)]
pub(crate) struct SortSchema {
    schema: SchemaRef,
    /// Schema of stored blocks: without dictionaries, with ordinals and partitions.
    block_schema: SchemaRef,
    /// Index of the column that determines the partition, and how.
    partition: Option<(usize, Partition)>,
    /// Indices of the columns to sort by.
    order: Vec<usize>,
    converter: Option<RowConverter>,
    /// Converter of the first of these columns alone, because two parts of the output never share a value of this column. The
    /// bytes of a row begin with those of its first column, and the bytes of a value are never a prefix of those of another.
    first_converter: Option<RowConverter>,
    /// The dictionary of each column, the same in every batch.
    dictionaries: Vec<Option<ArrayRef>>,
}

impl SortSchema {
    /// The order of batches of `schema` that all have the same `dictionaries`, one entry per column.
    ///
    /// # Errors
    /// A column is missing or its type has no order.
    pub(crate) fn new(
        schema: &SchemaRef,
        dictionaries: Vec<Option<ArrayRef>>,
        by: &SortBy,
        partition: Option<Partition>,
    ) -> Result<SortSchema, ArrowError> {
        let order = by.indices(schema)?;
        let types = |order: &[usize]| order.iter().map(|&at| schema.field(at).data_type().clone()).collect::<Vec<_>>();
        let partition = match partition {
            Some(partition) => Some((schema.index_of(partition.column())?, partition)),
            None => None,
        };
        let first = SortBy::from_columns(by.columns().iter().take(1).cloned().collect());
        Ok(SortSchema {
            block_schema: block_schema(schema, partition.is_some()),
            schema: schema.clone(),
            partition,
            converter: (!order.is_empty()).then(|| by.converter(types(&order))).transpose()?,
            first_converter: (!order.is_empty()).then(|| first.converter(types(&order[..1]))).transpose()?,
            order,
            dictionaries,
        })
    }

    /// Sorts a batch whose first row has ordinal `first_row`, and encodes it as a run of blocks.
    pub(crate) fn sort(
        &self,
        batch: &RecordBatch,
        first_row: u64,
        plain: &PlainMemory,
    ) -> Result<Vec<EncodedBlock>, ArrowError> {
        if batch.num_rows() == 0 {
            return Ok(Vec::new());
        }
        let partitions = self.partition.as_ref().map(|(at, by)| by.of(batch.column(*at).as_string::<i32>()));
        let keys = self.keys(self.order.iter().map(|&at| Ok(batch.column(at).clone())))?;
        let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
        let partition = |row: u32| partitions.as_ref().map_or(0, |partitions| partitions.value(row as usize));
        order.sort_by_key(|row| partition(*row));
        // Rows with equal keys stay in the order of the input.
        if let Some(keys) = &keys {
            let partitions = order.chunk_by_mut(|a, b| partition(*a) == partition(*b));
            partitions.for_each(|rows| sort_by_text(rows, |row| keys.row(row as usize).data()));
        }
        let ordinals = (0..batch.num_rows() as u64).map(|row| first_row + row);
        let flat = self.flatten(batch, UInt64Array::from_iter_values(ordinals), partitions)?;
        let sorted = take_record_batch(&flat, &UInt32Array::from(order))?;
        encode_run(&sorted, plain)
    }

    /// Decodes a block of a run that comes after the row `before`; `None` for the first block.
    pub(super) fn decode(&self, bytes: Vec<u8>, before: Option<BlockRow<'_>>) -> Result<SortedBlock, ArrowError> {
        let batch = decode_batch(Buffer::from_vec(bytes))?;
        let extra = self.schema.fields().len();
        let has_partitions = self.partition.is_some();
        let mut block = SortedBlock {
            keys: self.keys(self.order.iter().map(|&at| self.restore_column(&batch, at)))?,
            ordinals: batch.column(extra).as_primitive::<UInt64Type>().values().clone(),
            partitions: has_partitions.then(|| batch.column(extra + 1).as_primitive::<UInt32Type>().values().clone()),
            row_lens: row_lens(&batch.columns()[..extra]),
            batch,
            codes: Vec::new(),
        };
        block.codes = block.codes_after(before);
        Ok(block)
    }

    /// Picked rows as a batch of the schema of the sort.
    pub(crate) fn gather(&self, picked: &PickedRows) -> Result<RecordBatch, ArrowError> {
        let flat = picked.gather_flat()?;
        let columns = (0..self.schema.fields().len()).map(|at| self.restore_column(&flat, at));
        RecordBatch::try_new(self.schema.clone(), columns.collect::<Result<_, _>>()?)
    }

    /// The value of a row in the first column of the order, to be compared with rows by [`SortedBlock::begins_with`].
    pub(super) fn first_key(&self, block: &SortedBlock, row: usize) -> Result<Option<OwnedRow>, ArrowError> {
        let Some(first) = &self.first_converter else { return Ok(None) };
        let column = self.restore_column(&block.batch.slice(row, 1), self.order[0])?;
        Ok(Some(first.convert_columns(&[column])?.row(0).owned()))
    }

    /// The comparable bytes of the columns of the order.
    fn keys(&self, columns: impl Iterator<Item = Result<ArrayRef, ArrowError>>) -> Result<Option<Rows>, ArrowError> {
        let Some(converter) = &self.converter else { return Ok(None) };
        converter.convert_columns(&columns.collect::<Result<Vec<_>, _>>()?).map(Some)
    }

    /// Replaces dictionaries by their indices, and appends ordinals and partitions.
    fn flatten(
        &self,
        batch: &RecordBatch,
        ordinals: UInt64Array,
        partitions: Option<UInt32Array>,
    ) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<ArrayRef> = batch.columns().iter().map(dictionary_indices).collect();
        columns.push(Arc::new(ordinals));
        columns.extend(partitions.map(|partitions| Arc::new(partitions) as ArrayRef));
        RecordBatch::try_new(self.block_schema.clone(), columns)
    }

    /// A column of a stored block, with its dictionary.
    fn restore_column(&self, flat: &RecordBatch, at: usize) -> Result<ArrayRef, ArrowError> {
        let column = flat.column(at);
        let dictionary = self.dictionaries.get(at).cloned().flatten();
        let values = || dictionary.unwrap_or_else(|| new_empty_array(&DataType::Utf8));
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

/// Cuts sorted rows into blocks and encodes these.
pub(super) fn encode_run(sorted: &RecordBatch, plain: &PlainMemory) -> Result<Vec<EncodedBlock>, ArrowError> {
    let row_lens = row_lens(sorted.columns());
    let codec = plain.codec_of_run(row_lens.iter().map(|len| *len as usize).sum());
    let mut encoder = BlockEncoder { codec, buffer: Vec::new() };
    let (mut blocks, mut from, mut len) = (Vec::new(), 0, 0);
    for (row, row_len) in row_lens.iter().map(|len| *len as usize).enumerate() {
        if row > from && (row - from == MAX_BLOCK_ROWS || len + row_len > MAX_BLOCK_LEN) {
            blocks.push(encoder.encode(&sorted.slice(from, row - from), len)?);
            (from, len) = (row, 0);
        }
        len += row_len;
    }
    if from < sorted.num_rows() {
        blocks.push(encoder.encode(&sorted.slice(from, sorted.num_rows() - from), len)?);
    }
    Ok(blocks)
}

impl PickedRows {
    /// The rows as a batch of the schema of stored blocks.
    pub(super) fn gather_flat(&self) -> Result<RecordBatch, ArrowError> {
        let batches: Vec<&RecordBatch> = self.blocks.iter().map(|block| &block.batch).collect();
        let rows = interleave_record_batch(&batches, &self.picks)?;
        // Which blocks have nulls depends on the memory of the sort, and the writer of Parquet ends pages at other rows if a
        // column could have nulls.
        let columns = rows.columns().iter().map(without_unused_nulls).collect::<Result<_, _>>()?;
        RecordBatch::try_new(rows.schema(), columns)
    }
}

impl SortedBlock {
    pub(super) fn partition(&self, row: usize) -> u32 {
        self.partitions.as_ref().map_or(0, |partitions| partitions[row])
    }

    /// The first column of a row has the value of `first`.
    pub(super) fn begins_with(&self, row: usize, first: &OwnedRow) -> bool {
        self.keys.as_ref().is_some_and(|keys| keys.row(row).as_ref().starts_with(first.as_ref()))
    }

    /// The words by which a row compares.
    fn words(&self, row: usize) -> RowWords<'_> {
        let key = self.keys.as_ref().map_or(&[][..], |keys| keys.row(row).data());
        RowWords { partition: self.partition(row), key }
    }

    /// Compares two rows whose first `shared` words are equal, by partition, key and ordinal; different rows are never equal.
    /// Also returns the code of the later row after the earlier one.
    pub(super) fn compare(&self, row: usize, other: BlockRow<'_>, shared: usize) -> (Ordering, OffsetCode) {
        let (block, other_row) = other;
        let (ordering, code) = self.words(row).compare(block.words(other_row), shared);
        (ordering.then_with(|| self.ordinals[row].cmp(&block.ordinals[other_row])), code)
    }

    /// The code of each row after the one before it. The first row comes after `before`.
    fn codes_after(&self, before: Option<BlockRow<'_>>) -> Vec<OffsetCode> {
        let first = match before {
            Some((block, row)) => block.compare(row, (self, 0), 0).1,
            None => OffsetCode::of_first(self.partition(0)),
        };
        let rest = (1..self.row_lens.len()).map(|row| self.compare(row - 1, (self, row), 0).1);
        std::iter::once(first).chain(rest).collect()
    }
}

fn block_schema(schema: &SchemaRef, has_partitions: bool) -> SchemaRef {
    let flat = |field: &Arc<Field>| match field.data_type() {
        DataType::Dictionary(keys, _) => Arc::new(Field::new(field.name(), (**keys).clone(), field.is_nullable())),
        _ => field.clone(),
    };
    let mut fields: Vec<_> = schema.fields().iter().map(flat).collect();
    fields.push(Arc::new(Field::new("ordinal", DataType::UInt64, false)));
    if has_partitions {
        fields.push(Arc::new(Field::new("partition", DataType::UInt32, false)));
    }
    Arc::new(Schema::new(fields))
}

fn dictionary_indices(array: &ArrayRef) -> ArrayRef {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => make_array(dictionary.keys().to_data()),
        None => array.clone(),
    }
}

/// Bytes of each row: of its texts, and 8 for every other column.
fn row_lens(columns: &[ArrayRef]) -> Vec<u32> {
    let mut lens = vec![0; columns.first().map_or(0, |column| column.len())];
    for column in columns {
        match column.data_type() {
            DataType::Utf8 => add_lens(&mut lens, column.as_string::<i32>().offsets()),
            DataType::LargeUtf8 => add_lens(&mut lens, column.as_string::<i64>().offsets()),
            DataType::Binary => add_lens(&mut lens, column.as_binary::<i32>().offsets()),
            _ => lens.iter_mut().for_each(|len| *len += 8),
        }
    }
    lens
}

fn add_lens<T: OffsetSizeTrait>(lens: &mut [u32], offsets: &OffsetBuffer<T>) {
    let len = |pair: &[T]| (pair[1] - pair[0]).as_usize() as u32;
    lens.iter_mut().zip(offsets.windows(2)).for_each(|(sum, pair)| *sum = sum.saturating_add(len(pair)));
}

/// Encodes the blocks of a run.
struct BlockEncoder {
    codec: Option<CompressionType>,
    /// Memory for the next block.
    buffer: Vec<u8>,
}

impl BlockEncoder {
    /// Encodes a block of rows of `len` bytes. Blocks are stored in memory, so their capacity is their length, however well they
    /// are compressed.
    fn encode(&mut self, block: &RecordBatch, len: usize) -> Result<EncodedBlock, ArrowError> {
        self.buffer.clear();
        encode_batch(block, self.codec, &mut self.buffer)?;
        let bytes = self.buffer.as_slice().to_vec();
        // The rows, and the bytes by which they compare.
        let memory_len = len * 2 + block.num_rows() * 64;
        Ok(EncodedBlock { bytes, rows: block.num_rows(), memory_len })
    }
}

/// The same array, without a bitmap of nulls if there are none.
fn without_unused_nulls(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.nulls() {
        Some(nulls) if nulls.null_count() == 0 => Ok(make_array(array.to_data().into_builder().nulls(None).build()?)),
        _ => Ok(Arc::clone(array)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int8Array, StringArray};

    /// Texts that are prefixes of each other, also at the ends of the blocks of encoded rows, and null.
    fn texts() -> Vec<Option<String>> {
        let text = |len: usize| Some("\0".repeat(len / 2) + &"a".repeat(len - len / 2));
        let lens = [0, 1, 2, 7, 8, 9, 31, 32, 33, 64, 65, 200];
        let runs = lens.iter().flat_map(|len| [Some("a".repeat(*len)), text(*len)]);
        runs.chain([None]).collect()
    }

    /// A block whose rows are sorted by a column of `texts`, as they are or as a dictionary, and by their lengths.
    fn block_of(texts: &[Option<String>], is_dictionary: bool, descending: bool) -> (SortSchema, SortedBlock) {
        let words: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let indices = Int8Array::from_iter((0..).zip(texts).map(|(i, text)| text.as_ref().map(|_| i)));
        let (first, dictionary): (ArrayRef, _) = match is_dictionary {
            true => (Arc::new(DictionaryArray::try_new(indices, words.clone()).unwrap()), Some(words)),
            false => (words, None),
        };
        let lens = UInt64Array::from_iter_values(texts.iter().map(|text| text.as_ref().map_or(0, String::len) as u64));
        let fields =
            vec![Field::new("first", first.data_type().clone(), true), Field::new("second", DataType::UInt64, true)];
        let schema = Arc::new(Schema::new(fields));
        let by = SortBy::parse([if descending { "-first" } else { "first" }, "second"]);
        let sort = SortSchema::new(&schema, vec![dictionary, None], &by, None).unwrap();
        let batch = RecordBatch::try_new(schema, vec![first, Arc::new(lens)]).unwrap();
        let block = sort.decode(sort.sort(&batch, 0, &PlainMemory::new(0)).unwrap().remove(0).bytes, None).unwrap();
        (sort, block)
    }

    #[test]
    fn rows_begin_with_their_first_column_and_with_no_other_value() {
        // Each value occurs twice.
        let texts = [texts(), texts()].concat();
        for (is_dictionary, descending) in [(false, false), (false, true), (true, false), (true, true)] {
            let (sort, block) = block_of(&texts, is_dictionary, descending);
            let text = |row: usize| &texts[block.ordinals[row] as usize];
            for other in 0..texts.len() {
                let first = sort.first_key(&block, other).unwrap().unwrap();
                for row in 0..texts.len() {
                    assert_eq!(block.begins_with(row, &first), text(row) == text(other), "{row} {other}");
                }
            }
        }
    }
}
