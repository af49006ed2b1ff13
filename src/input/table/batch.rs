//! A batch of a table's columns in, its rows out, as many at a time as fit into little memory: a short column may stand
//! for long texts.

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryArray, BinaryViewArray, PrimitiveArray};
use arrow::array::{LargeBinaryArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int32Type, Int64Type, TimestampMillisecondType};
use arrow::error::ArrowError;

use super::super::error::Defect;
use super::columns::Wanted;
use crate::iri::FaultKind;
use crate::kernel::Span;
use crate::record::RecordBuffer;
use crate::record::fields::{
    CarriedField, DigestField, FieldKind, FieldSet, FieldValues, IntegerField, LabelField, StatusField, TimeField,
    UriField, carried_fields,
};

/// Bytes of text that rows are taken until.
const TEXT_LEN: usize = 256 << 10;

/// A batch, and how far its rows were taken.
pub(super) struct Batch {
    url: Texts,
    base: Option<Texts>,
    carried: CarriedArrays,
    count: usize,
    taken: usize,
}

impl Batch {
    /// The wanted columns of `batch`, in the types that records want.
    pub(super) fn of(batch: &RecordBatch, wanted: &Wanted) -> Result<Batch, ArrowError> {
        let texts = |name: &str| batch.column_by_name(name).map(Texts::of).transpose();
        let missing = || Texts::Plain(BinaryArray::new_null(batch.num_rows()));
        Ok(Batch {
            url: texts(&wanted.url)?.unwrap_or_else(missing),
            base: wanted.base.as_deref().map_or(Ok(None), texts)?,
            carried: CarriedArrays::of(batch, wanted.carry)?,
            count: batch.num_rows(),
            taken: 0,
        })
    }

    /// The next rows, the first of which is `number` in its table; none if all were taken. `number` goes with them.
    pub(super) fn take(&mut self, wanted: &Wanted, number: &mut u64) -> Option<Result<RecordBuffer, Defect>> {
        let mut records = RecordBuffer::new(wanted.carry);
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
        let texts = [&self.url].into_iter().chain(&self.base);
        texts.map(|texts| texts.len(row)).sum::<usize>() + self.carried.len(row)
    }

    fn put(&self, row: usize, number: u64, records: &mut RecordBuffer) {
        let url = self.url.get(row);
        if url.is_none() {
            records.refuse(FaultKind::NoUrl);
        }
        records.begin(number);
        records.push_url(url.unwrap_or_default());
        if let Some(base) = &self.base {
            records.push_base(base.get(row).unwrap_or_default());
        }
        let values = self.carried.values(row, records);
        records.push_fields(values);
    }
}

/// A kind of field that a table can hold.
trait TableField: FieldKind {
    /// Its column, in the type that records need.
    type Array;

    /// Casts the column.
    fn cast(column: &ArrayRef) -> Result<Self::Array, ArrowError>;

    /// Returns the value of a row; text is copied to `records`.
    fn value(array: &Self::Array, row: usize, records: &mut RecordBuffer) -> Option<Self::Value>;

    /// Bytes of text in a row.
    fn text_len(_: &Self::Array, _: usize) -> usize {
        0
    }
}

/// Kinds whose values are numbers.
macro_rules! number_fields {
    ($($kind:ident: $number:ident),*) => {
        $(impl TableField for $kind {
            type Array = PrimitiveArray<$number>;

            fn cast(column: &ArrayRef) -> Result<Self::Array, ArrowError> {
                Ok(cast(column, &$number::DATA_TYPE)?.as_primitive().clone())
            }

            #[inline]
            fn value(array: &Self::Array, row: usize, _: &mut RecordBuffer) -> Option<Self::Value> {
                array.is_valid(row).then(|| array.value(row))
            }
        })*
    };
}
number_fields!(TimeField: TimestampMillisecondType, StatusField: Int32Type, IntegerField: Int64Type);

/// Kinds whose values are text.
macro_rules! text_fields {
    ($($kind:ident),*) => {
        $(impl TableField for $kind {
            type Array = Texts;

            fn cast(column: &ArrayRef) -> Result<Texts, ArrowError> {
                Texts::of(column)
            }

            #[inline]
            fn value(array: &Texts, row: usize, records: &mut RecordBuffer) -> Option<Span> {
                records.copy(array.get(row))
            }

            #[inline]
            fn text_len(array: &Texts, row: usize) -> usize {
                array.len(row)
            }
        })*
    };
}
text_fields!(UriField, DigestField, LabelField);

macro_rules! define_arrays {
    ($($id:ident {
        field: $field:ident, buffer: $buffer:ident, kind: $kind:ident,
        column: $column:literal, json: $json:expr, cdxj: $cdxj:expr, meaning: $meaning:literal,
    })*) => {
        /// The columns of carried fields that are read and that the table has.
        struct CarriedArrays {
            $($field: Option<<$kind as TableField>::Array>,)*
        }

        impl CarriedArrays {
            fn of(batch: &RecordBatch, carry: FieldSet) -> Result<CarriedArrays, ArrowError> {
                let column = |field: CarriedField| {
                    carry.contains(field).then(|| batch.column_by_name(field.column())).flatten()
                };
                Ok(CarriedArrays { $($field: column(CarriedField::$id).map($kind::cast).transpose()?,)* })
            }

            /// Returns the fields of a row; text is copied to `records`.
            #[inline]
            fn values(&self, row: usize, records: &mut RecordBuffer) -> FieldValues {
                FieldValues { $($field: self.$field.as_ref().and_then(|array| $kind::value(array, row, records)),)* }
            }

            /// Bytes of text in a row.
            #[inline]
            fn len(&self, row: usize) -> usize {
                0 $(+ self.$field.as_ref().map_or(0, |array| $kind::text_len(array, row)))*
            }
        }
    };
}
carried_fields!(define_arrays);

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
    #[inline]
    fn len(&self, row: usize) -> usize {
        self.get(row).map_or(0, <[u8]>::len)
    }
}
