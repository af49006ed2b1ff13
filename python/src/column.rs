//! A column of URLs, bases or charsets as bytes, and which of its values are text.

use std::fmt::Display;
use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BinaryViewArray, ByteView, GenericBinaryArray, LargeBinaryArray,
    MAX_INLINE_VIEW_LEN, OffsetSizeTrait, new_empty_array,
};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use irikey::record::RecordBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::schema::arrow_error;

/// Which values of an array are text. Text was decoded before, so that no charset applies to it (RFC 3987 section 3.1, step 1).
#[derive(Clone, Debug)]
pub enum TextRows {
    All,
    None,
    Some(BooleanBuffer),
}

impl TextRows {
    /// Returns the rows of an array of this type.
    pub fn of(kind: &DataType) -> TextRows {
        match kind {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => TextRows::All,
            DataType::Dictionary(_, values) => TextRows::of(values),
            DataType::RunEndEncoded(_, values) => TextRows::of(values.data_type()),
            _ => TextRows::None,
        }
    }

    /// Returns whether row `row` is text.
    pub fn contains(&self, row: usize) -> bool {
        match self {
            TextRows::All => true,
            TextRows::None => false,
            TextRows::Some(rows) => rows.value(row),
        }
    }
}

/// An array of URLs, bases or charsets. Its type is that of bytes also if its values are text, because URLs need not be UTF-8.
#[derive(Clone)]
pub struct Values {
    pub array: ArrayRef,
    pub text: TextRows,
}

/// A column of bytes, converted from any type of text or bytes.
pub struct Column {
    bytes: Bytes,
    pub text: TextRows,
}

/// The values of a column.
pub enum Bytes {
    Binary(BinaryArray),
    Large(LargeBinaryArray),
    View(BinaryViewArray),
}

impl Bytes {
    /// See [`Column::of`].
    fn of(array: &ArrayRef, what: &dyn Display) -> PyResult<Bytes> {
        Ok(match array.data_type() {
            DataType::Binary => Bytes::Binary(array.as_binary::<i32>().clone()),
            DataType::Utf8 => Bytes::Binary(array.as_string::<i32>().clone().into()),
            DataType::LargeBinary => Bytes::Large(array.as_binary::<i64>().clone()),
            DataType::LargeUtf8 => Bytes::Large(array.as_string::<i64>().clone().into()),
            DataType::BinaryView => Bytes::View(array.as_binary_view().clone()),
            DataType::Utf8View => Bytes::View(array.as_string_view().clone().to_binary_view()),
            DataType::Null => Bytes::of(&cast(array, &DataType::LargeBinary).map_err(arrow_error)?, what)?,
            DataType::Dictionary(..) | DataType::RunEndEncoded(..) => {
                Bytes::of(&without_encoding(array.clone())?, what)?
            }
            other => {
                return Err(PyTypeError::new_err(format!("{what} has the type {other}; expected text or bytes")));
            }
        })
    }
}

/// Returns an array with the value of each row instead of keys of a dictionary or of runs. These values may have more than 2 GiB
/// together.
pub fn without_encoding(array: ArrayRef) -> PyResult<ArrayRef> {
    let values = match array.data_type() {
        DataType::Dictionary(_, values) => values,
        DataType::RunEndEncoded(_, values) => values.data_type(),
        _ => return Ok(array),
    };
    cast(&array, &with_long_offsets(values)).map_err(arrow_error)
}

impl Column {
    /// Returns the values of an array, which messages call `what`.
    ///
    /// # Errors
    /// The array holds neither text nor bytes.
    pub fn of(values: &Values, what: &dyn Display) -> PyResult<Column> {
        Ok(Column { bytes: Bytes::of(&values.array, what)?, text: values.text.clone() })
    }

    /// Returns a column whose values are all text, or all bytes.
    pub fn new(bytes: Bytes, is_text: bool) -> Column {
        Column { bytes, text: if is_text { TextRows::All } else { TextRows::None } }
    }

    /// Checks that columns of the type `kind` can be converted.
    ///
    /// # Errors
    /// As [`Column::of`].
    pub fn check(kind: &DataType, what: &dyn Display) -> PyResult<()> {
        Bytes::of(&new_empty_array(kind), what).map(|_| ())
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.array().len()
    }

    fn array(&self) -> &dyn Array {
        match &self.bytes {
            Bytes::Binary(array) => array,
            Bytes::Large(array) => array,
            Bytes::View(array) => array,
        }
    }

    /// Returns row `row`, empty if it is null.
    pub fn value(&self, row: usize) -> &[u8] {
        match &self.bytes {
            _ if self.array().is_null(row) => &[],
            Bytes::Binary(array) => array.value(row),
            Bytes::Large(array) => array.value(row),
            Bytes::View(array) => array.value(row),
        }
    }

    /// Copies rows `from..to`, none of which is null, as the URLs of the next records.
    pub fn copy_urls(&self, from: usize, to: usize, records: &mut RecordBuffer) {
        match &self.bytes {
            Bytes::Binary(array) => records.push_urls(texts(array, from, to)),
            Bytes::Large(array) => records.push_urls(texts(array, from, to)),
            Bytes::View(array) => records.push_urls(viewed_texts(array, from, to)),
        }
    }

    /// Returns the rows that are null.
    pub fn nulls(&self) -> Option<&NullBuffer> {
        self.array().nulls()
    }

    /// Returns the length of rows `from..to` in bytes.
    pub fn text_len(&self, from: usize, to: usize) -> usize {
        match &self.bytes {
            Bytes::Binary(array) => text_len(array, from, to),
            Bytes::Large(array) => text_len(array, from, to),
            Bytes::View(array) => array.views()[from..to].iter().map(|view| viewed_len(*view)).sum(),
        }
    }

    /// Returns the end of the longest range of rows from `from` up to `end` with at most `most` bytes, but at least one row.
    pub fn cut(&self, from: usize, end: usize, most: usize) -> usize {
        match &self.bytes {
            Bytes::Binary(array) => cut(array, from, end, most),
            Bytes::Large(array) => cut(array, from, end, most),
            Bytes::View(array) => cut_views(array, from, end, most),
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

/// Returns the type for texts or bytes that may have more than 2 GiB together.
fn with_long_offsets(values: &DataType) -> DataType {
    match values {
        DataType::Utf8 => DataType::LargeUtf8,
        DataType::Binary => DataType::LargeBinary,
        other => other.clone(),
    }
}
