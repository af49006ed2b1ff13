//! A batch of a table's columns in, its rows out, as many at a time as fit into little memory: a short column may stand
//! for long texts.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryViewArray, PrimitiveArray};
use arrow::array::{LargeBinaryArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type, TimestampMillisecondType};
use arrow::error::ArrowError;

use super::super::error::Defect;
use super::columns::{NUMBERS, TEXTS, Wanted};
use crate::record::fields::Field;
use crate::record::table::TableRecords;

/// Bytes of text that rows are taken until.
const TEXT_LEN: usize = 256 << 10;

/// A batch, and how far its rows were taken.
pub(super) struct Batch {
    url: Texts,
    base: Option<Texts>,
    time: Option<PrimitiveArray<TimestampMillisecondType>>,
    status: Option<PrimitiveArray<Int32Type>>,
    place: Option<PrimitiveArray<Int64Type>>,
    length: Option<PrimitiveArray<Int64Type>>,
    texts: [Option<Texts>; TEXTS.len()],
    count: usize,
    taken: usize,
}

impl Batch {
    /// The wanted columns of `batch`, in the types that records want.
    pub(super) fn of(batch: &RecordBatch, wanted: &Wanted) -> Result<Batch, ArrowError> {
        let texts = |name: &str| batch.column_by_name(name).map(Texts::of).transpose();
        let carried = |(name, is_wanted): (&'static str, fn(_) -> bool)| is_wanted(wanted.carry).then_some(name);
        let mut carried_texts = [const { None }; TEXTS.len()];
        for (array, column) in carried_texts.iter_mut().zip(TEXTS) {
            *array = carried(column).map_or(Ok(None), texts)?;
        }
        let [time, status, place, length] = NUMBERS.map(carried);
        let missing = || Texts::Plain(BinaryArray::new_null(batch.num_rows()));
        Ok(Batch {
            url: texts(&wanted.url)?.unwrap_or_else(missing),
            base: wanted.base.as_deref().map_or(Ok(None), texts)?,
            time: numbers(batch, time)?,
            status: numbers(batch, status)?,
            place: numbers(batch, place)?,
            length: numbers(batch, length)?,
            texts: carried_texts,
            count: batch.num_rows(),
            taken: 0,
        })
    }

    /// The next rows, the first of which is `number` in its table; none if all were taken. `number` goes with them.
    pub(super) fn take(&mut self, wanted: &Wanted, number: &mut u64) -> Option<Result<TableRecords, Defect>> {
        let mut records = TableRecords::new(wanted.carry);
        records.reserve((self.count - self.taken).min(TEXT_LEN / 32), TEXT_LEN + TEXT_LEN / 16);
        while self.taken < self.count && records.text_len() < TEXT_LEN {
            if self.len(self.taken) > wanted.max_record_len {
                if records.is_empty() {
                    return Some(Err(Defect::RecordTooLong(wanted.max_record_len)));
                }
                // It comes up again, first of all.
                break;
            }
            self.put(self.taken, *number, &mut records);
            self.taken += 1;
            *number += 1;
        }
        (!records.is_empty()).then_some(Ok(records))
    }

    /// Bytes of all texts of a row.
    fn len(&self, row: usize) -> usize {
        let texts = [&self.url].into_iter().chain(&self.base).chain(self.texts.iter().flatten());
        texts.map(|texts| texts.get(row).map_or(0, <[u8]>::len)).sum()
    }

    fn put(&self, row: usize, number: u64, records: &mut TableRecords) {
        records.begin(number, self.url.get(row));
        if let Some(base) = &self.base {
            records.base(base.get(row).unwrap_or_default());
        }
        let [redirect, digest, charset, mime, detected_mime, languages, filename] =
            self.texts.each_ref().map(|texts| records.text(texts.as_ref().and_then(|texts| texts.get(row))));
        records.end(Field {
            time: number_of(&self.time, row),
            status: number_of(&self.status, row),
            redirect,
            redirected_from: None,
            digest,
            charset,
            mime,
            detected_mime,
            languages,
            filename,
            capture_offset: number_of(&self.place, row),
            capture_length: number_of(&self.length, row),
        });
    }
}

fn numbers<T: ArrowPrimitiveType>(
    batch: &RecordBatch,
    name: Option<&str>,
) -> Result<Option<PrimitiveArray<T>>, ArrowError> {
    let column = name.and_then(|name| batch.column_by_name(name));
    column.map(|array| cast(array, &T::DATA_TYPE).map(|array| array.as_primitive::<T>().clone())).transpose()
}

fn number_of<T: ArrowPrimitiveType>(array: &Option<PrimitiveArray<T>>, row: usize) -> Option<T::Native> {
    array.as_ref().filter(|array| array.is_valid(row)).map(|array| array.value(row))
}

/// A column of texts or bytes, as it came where that can be.
enum Texts {
    Plain(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
}

impl Texts {
    fn of(array: &ArrayRef) -> Result<Texts, ArrowError> {
        // Text of any kind is bytes; a dictionary has to be laid out first.
        let array = match array.data_type() {
            DataType::Dictionary(_, values) => &cast(array, values)?,
            _ => array,
        };
        Ok(match array.data_type() {
            DataType::Utf8View | DataType::BinaryView => {
                Texts::View(cast(array, &DataType::BinaryView)?.as_binary_view().clone())
            }
            DataType::LargeUtf8 | DataType::LargeBinary => {
                Texts::Large(cast(array, &DataType::LargeBinary)?.as_binary::<i64>().clone())
            }
            _ => Texts::Plain(cast(array, &DataType::Binary)?.as_binary::<i32>().clone()),
        })
    }

    #[inline]
    fn get(&self, row: usize) -> Option<&[u8]> {
        match self {
            Texts::Plain(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::Large(array) => array.is_valid(row).then(|| array.value(row)),
            Texts::View(array) => array.is_valid(row).then(|| array.value(row)),
        }
    }
}
