//! Columns that rows carry from their records, as Arrow arrays.
//!
//! An empty text is null. Bytes that are not UTF-8 become escapes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int16Array, Int64Array, StringBuilder, TimestampMillisecondArray};

use super::column::ColumnKind;
use super::error::BatchError;
use crate::canon::{RowField, Rows, TextColumn};
use crate::iri::escape_invalid_utf8;
use crate::record::fields::{
    CarriedField, DigestField, IntegerField, LabelField, PageField, SegmentField, StatusField, TimeField, UriField,
    carried_fields,
};

/// How Arrow stores a kind of field.
trait ArrowField: RowField {
    const KIND: ColumnKind;

    fn array(column: &Self::Column) -> ArrayRef;
}

macro_rules! define_arrays {
    ($($id:ident {
        field: $field:ident, buffer: $buffer:ident, kind: $kind:ident,
        column: $column:literal, json: $json:expr, cdxj: $cdxj:expr, meaning: $meaning:literal,
    })*) => {
        pub(super) const fn kind(field: CarriedField) -> ColumnKind {
            match field { $(CarriedField::$id => <$kind as ArrowField>::KIND,)* }
        }

        /// Makes the array of a field's column.
        pub(super) fn array(field: CarriedField, rows: &Rows) -> Result<ArrayRef, BatchError> {
            match field {
                $(CarriedField::$id => {
                    let array = $kind::array(&rows.carried.$buffer);
                    check_len($column, rows.len(), array.len())?;
                    Ok(array)
                })*
            }
        }
    };
}
carried_fields!(define_arrays);

impl ArrowField for TimeField {
    const KIND: ColumnKind = ColumnKind::Time;

    fn array(column: &Vec<Option<i64>>) -> ArrayRef {
        Arc::new(column.iter().copied().collect::<TimestampMillisecondArray>().with_timezone("UTC"))
    }
}

/// Kinds whose columns are numbers, with at most as many bits as rows; a value that does not fit is null.
macro_rules! number_fields {
    ($($kind:ident: $wide:ty => $column:ident $array:ident;)*) => {
        $(impl ArrowField for $kind {
            const KIND: ColumnKind = ColumnKind::$column;

            fn array(column: &Vec<Option<$wide>>) -> ArrayRef {
                Arc::new(column.iter().map(|value| value.and_then(|value| value.try_into().ok())).collect::<$array>())
            }
        })*
    };
}
number_fields! {
    StatusField: i32 => Short Int16Array;
    IntegerField: i64 => Long Int64Array;
}

/// Kinds whose columns are text.
macro_rules! text_fields {
    ($($kind:ident: $column:ident;)*) => {
        $(impl ArrowField for $kind {
            const KIND: ColumnKind = ColumnKind::$column;

            fn array(column: &TextColumn) -> ArrayRef {
                text_or_null_array(column)
            }
        })*
    };
}
text_fields! {
    UriField: Text;
    PageField: Repeating;
    DigestField: Text;
    LabelField: Repeating;
    SegmentField: Repeating;
}

/// Makes a column of text; empty ones are null.
pub(super) fn text_or_null_array(column: &TextColumn) -> ArrayRef {
    let mut array = StringBuilder::with_capacity(column.len(), column.values.len());
    for i in 0..column.len() {
        let text = escape_invalid_utf8(column.get(i));
        array.append_option(Some(text).filter(|text| !text.is_empty()));
    }
    Arc::new(array.finish())
}

/// Checks that a column has one entry per row.
pub(super) fn check_len(column: &'static str, expected: usize, found: usize) -> Result<(), BatchError> {
    if expected == found { Ok(()) } else { Err(BatchError::Uneven { column, expected, found }) }
}
