//! A column of URLs, bases or charsets as bytes.

use std::fmt::Display;
use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, ByteView, GenericBinaryArray, LargeBinaryArray,
    MAX_INLINE_VIEW_LEN, OffsetSizeTrait,
};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use irikey::record::RecordBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::schema::arrow_error;

/// A column of bytes, converted from any type of text or bytes.
pub enum Column {
    Binary(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
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
            DataType::BinaryView => Column::View(array.as_binary_view().clone()),
            DataType::Utf8View => Column::View(array.as_string_view().clone().to_binary_view()),
            DataType::Dictionary(..) | DataType::Null => {
                let bytes = match array.data_type() {
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
            Column::View(array) => array,
        }
    }

    /// Returns row `row`, empty if it is null.
    pub fn value(&self, row: usize) -> &[u8] {
        match self {
            _ if self.array().is_null(row) => &[],
            Column::Binary(array) => array.value(row),
            Column::Large(array) => array.value(row),
            Column::View(array) => array.value(row),
        }
    }

    /// Copies rows `from..to`, none of which is null, as the URLs of the next records.
    pub fn copy_urls(&self, from: usize, to: usize, records: &mut RecordBuffer) {
        match self {
            Column::Binary(array) => records.push_urls(texts(array, from, to)),
            Column::Large(array) => records.push_urls(texts(array, from, to)),
            Column::View(array) => records.push_urls(viewed_texts(array, from, to)),
        }
    }

    /// Returns the rows that are null.
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.array().nulls()
    }

    /// Returns the length of rows `from..to` in bytes.
    pub fn text_len(&self, from: usize, to: usize) -> usize {
        match self {
            Column::Binary(array) => text_len(array, from, to),
            Column::Large(array) => text_len(array, from, to),
            Column::View(array) => array.views()[from..to].iter().map(|view| viewed_len(*view)).sum(),
        }
    }

    /// Returns the end of the longest range of rows from `from` up to `end` with at most `most` bytes, but at least one row.
    pub fn cut(&self, from: usize, end: usize, most: usize) -> usize {
        match self {
            Column::Binary(array) => cut(array, from, end, most),
            Column::Large(array) => cut(array, from, end, most),
            Column::View(array) => cut_views(array, from, end, most),
        }
    }
}

fn text_len<O: OffsetSizeTrait>(array: &GenericBinaryArray<O>, from: usize, to: usize) -> usize {
    array.value_offsets()[to].as_usize() - array.value_offsets()[from].as_usize()
}

/// See [`Column::cut`].
fn cut<O: OffsetSizeTrait>(array: &GenericBinaryArray<O>, from: usize, end: usize, most: usize) -> usize {
    let (offsets, second) = (array.value_offsets(), (from + 1).min(end));
    let last = offsets[from].as_usize().saturating_add(most);
    second + offsets[second + 1..=end].partition_point(|row_end| row_end.as_usize() <= last)
}

/// See [`Column::cut`].
fn cut_views(array: &BinaryViewArray, from: usize, end: usize, most: usize) -> usize {
    let mut len = 0;
    let is_too_much = |view: &u128| {
        len += viewed_len(*view);
        len > most
    };
    let cut = array.views()[from..end].iter().position(is_too_much).map_or(end, |count| from + count);
    cut.max((from + 1).min(end))
}

/// Returns the texts of rows `from..to`, each as a range of bytes.
fn texts<O: OffsetSizeTrait>(
    array: &GenericBinaryArray<O>,
    from: usize,
    to: usize,
) -> impl Iterator<Item = (&[u8], Range<usize>)> {
    let ends = array.value_offsets()[from..=to].array_windows();
    ends.map(|[start, end]| (array.values().as_slice(), start.as_usize()..end.as_usize()))
}

/// Returns the texts of rows `from..to`, each as a range of bytes of a buffer, or of the views if it is short.
fn viewed_texts(array: &BinaryViewArray, from: usize, to: usize) -> impl Iterator<Item = (&[u8], Range<usize>)> {
    let (views, buffers) = (array.views(), array.data_buffers());
    (from..to).zip(&views[from..to]).map(move |(row, view)| {
        let (bytes, start) = if viewed_len(*view) <= MAX_INLINE_VIEW_LEN as usize {
            (views.inner().as_slice(), row * size_of::<u128>() + size_of::<u32>())
        } else {
            let ByteView { buffer_index, offset, .. } = ByteView::from(*view);
            (buffers[buffer_index as usize].as_slice(), offset as usize)
        };
        (bytes, start..start + viewed_len(*view))
    })
}

/// Returns the length of the text of a view: its first four bytes.
fn viewed_len(view: u128) -> usize {
    view as u32 as usize
}

/// Returns the type for the values of all rows of a dictionary, which may have more than 2 GiB together.
fn with_long_offsets(values: &DataType) -> DataType {
    match values {
        DataType::Utf8 => DataType::LargeUtf8,
        DataType::Binary => DataType::LargeBinary,
        other => other.clone(),
    }
}
