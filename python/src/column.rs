//! A column of URLs, bases or charsets as bytes.

use std::fmt::Display;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, LargeBinaryArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::schema::arrow_error;

/// A column of bytes, converted from any type of text or bytes.
pub enum Column {
    Binary(BinaryArray),
    Large(LargeBinaryArray),
}

impl Column {
    /// Returns the bytes of an array, which messages call `what`.
    ///
    /// # Errors
    /// The array holds neither text nor bytes.
    pub fn of(array: &ArrayRef, what: &dyn Display) -> PyResult<Column> {
        Ok(match array.data_type() {
            DataType::Binary => Column::Binary(array.as_binary::<i32>().clone()),
            DataType::Utf8 => Column::Binary(array.as_string::<i32>().clone().into()),
            DataType::LargeBinary => Column::Large(array.as_binary::<i64>().clone()),
            DataType::LargeUtf8 => Column::Large(array.as_string::<i64>().clone().into()),
            DataType::Utf8View | DataType::BinaryView | DataType::Dictionary(..) | DataType::Null => {
                let bytes = match array.data_type() {
                    DataType::Utf8View => cast(array, &DataType::LargeUtf8),
                    DataType::Dictionary(_, values) => cast(array, &with_long_offsets(values)),
                    _ => cast(array, &DataType::LargeBinary),
                };
                let bytes = bytes.map_err(arrow_error)?;
                return Column::of(&bytes, what);
            }
            other => {
                return Err(PyTypeError::new_err(format!("{what} has the type {other}; expected text or bytes")));
            }
        })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.array().len()
    }

    fn array(&self) -> &dyn Array {
        match self {
            Column::Binary(array) => array,
            Column::Large(array) => array,
        }
    }

    /// Returns row `row`, empty if it is null.
    pub fn value(&self, row: usize) -> &[u8] {
        match self {
            _ if self.array().is_null(row) => &[],
            Column::Binary(array) => array.value(row),
            Column::Large(array) => array.value(row),
        }
    }

    /// Returns the rows that are null.
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.array().nulls()
    }

    /// Returns the start and the end of row `row` in the bytes of all rows.
    fn range(&self, row: usize) -> (usize, usize) {
        match self {
            Column::Binary(array) => (array.value_offsets()[row] as usize, array.value_offsets()[row + 1] as usize),
            Column::Large(array) => (array.value_offsets()[row] as usize, array.value_offsets()[row + 1] as usize),
        }
    }

    /// Returns the length of rows `from..to` in bytes.
    pub fn text_len(&self, from: usize, to: usize) -> usize {
        if from < to { self.range(to - 1).1 - self.range(from).0 } else { 0 }
    }

    /// Returns the end of the longest range of rows from `from` up to `end` with at most `most` bytes, but at least one row.
    pub fn cut(&self, from: usize, end: usize, most: usize) -> usize {
        if self.text_len(from, end) <= most {
            return end;
        }
        let (mut low, mut high) = ((from + 1).min(end), end);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.text_len(from, middle) <= most { low = middle } else { high = middle - 1 }
        }
        low
    }
}

/// Returns the type for the values of all rows of a dictionary, which may have more than 2 GiB together.
fn with_long_offsets(values: &DataType) -> DataType {
    match values {
        DataType::Utf8 => DataType::LargeUtf8,
        DataType::Binary => DataType::LargeBinary,
        other => other.clone(),
    }
}
