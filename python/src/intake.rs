//! Reads the records of a record batch. Records borrow the bytes of the column if possible; views, dictionaries, and rows with a
//! base or a charset are copied.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BinaryArray, LargeBinaryArray, OffsetSizeTrait, RecordBatch};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use irikey::encoding::is_utf8;
use irikey::iri::{Component, Fault, FaultKind};
use irikey::kernel::Span;
use irikey::record::{RecordBuffer, RecordOffsets, Records};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::configuration::{Configuration, Operand};
use crate::import::{Exported, checked};
use crate::schema::arrow_error;

/// Limit of the text of one result batch, in bytes: percent-encoding makes it up to three times as long, and Arrow's offsets
/// reach 2 GiB.
pub const MOST_TEXT: usize = 600 << 20;

/// The limit in use, which tests lower.
pub static TEXT_LIMIT: AtomicUsize = AtomicUsize::new(MOST_TEXT);

/// Text that is processed at a time, in bytes, so that it and its bitmaps stay in the cache of a core.
pub const CHUNK_LEN: usize = 256 << 10;

/// The fault of a row without a URL; its columns become null.
const NULL: Fault = Fault::new(FaultKind::NoUrl, Component::Reference, 0);

/// A column of bytes, converted from any type of text or bytes.
pub enum Column {
    Binary(BinaryArray),
    Large(LargeBinaryArray),
}

impl Column {
    /// Returns the bytes of the column `name`.
    ///
    /// # Errors
    /// The column holds neither text nor bytes.
    pub fn of(array: &ArrayRef, name: &str) -> PyResult<Column> {
        Ok(match array.data_type() {
            DataType::Binary => Column::Binary(array.as_binary::<i32>().clone()),
            DataType::Utf8 => Column::Binary(array.as_string::<i32>().clone().into()),
            DataType::LargeBinary => Column::Large(array.as_binary::<i64>().clone()),
            DataType::LargeUtf8 => Column::Large(array.as_string::<i64>().clone().into()),
            DataType::Utf8View | DataType::BinaryView | DataType::Dictionary(..) | DataType::Null => {
                let bytes = match array.data_type() {
                    DataType::Utf8View => cast(array, &DataType::LargeUtf8),
                    DataType::Dictionary(_, values) => cast(array, values),
                    _ => cast(array, &DataType::LargeBinary),
                };
                let bytes = bytes.map_err(arrow_error)?;
                return Column::of(&bytes, name);
            }
            other => {
                return Err(PyTypeError::new_err(format!(
                    "column {name:?} has the type {other}; expected text or bytes"
                )));
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

    fn bytes(&self) -> &[u8] {
        match self {
            Column::Binary(array) => array.values(),
            Column::Large(array) => array.values(),
        }
    }

    fn range(&self, row: usize) -> (usize, usize) {
        match self {
            Column::Binary(array) => (array.value_offsets()[row] as usize, array.value_offsets()[row + 1] as usize),
            Column::Large(array) => (array.value_offsets()[row] as usize, array.value_offsets()[row + 1] as usize),
        }
    }

    /// Appends the spans of rows `from..to` in their bytes.
    fn push_spans(&self, from: usize, to: usize, spans: &mut Vec<Span>) {
        match self {
            Column::Binary(array) => push_spans(&array.value_offsets()[from..=to], spans),
            Column::Large(array) => push_spans(&array.value_offsets()[from..=to], spans),
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

/// Appends the spans between offsets, relative to the first one; together they cover less than 4 GiB.
fn push_spans<O: OffsetSizeTrait>(offsets: &[O], spans: &mut Vec<Span>) {
    let begin = offsets[0];
    let len = |from: O, to: O| (to - from).as_usize() as u32;
    spans.extend(offsets.windows(2).map(|ends| Span { at: len(begin, ends[0]), len: len(ends[0], ends[1]) }));
}

/// The input columns of a configuration.
pub struct Inputs {
    pub url: Column,
    base: Option<Column>,
    charset: Option<Column>,
    query_charset: Option<Column>,
}

impl Inputs {
    /// Returns the columns that a configuration names, of those that `find` returns.
    ///
    /// # Errors
    /// A column does not exist, or has another type.
    pub fn of(configuration: &Configuration, find: impl Fn(&str) -> PyResult<ArrayRef>) -> PyResult<Inputs> {
        let column = |name: &String| Column::of(&find(name)?, name);
        let named = |operand: &Operand| operand.column.as_ref().map(column).transpose();
        Ok(Inputs {
            url: column(&configuration.url)?,
            base: named(&configuration.base)?,
            charset: named(&configuration.charset)?,
            query_charset: named(&configuration.query_charset)?,
        })
    }

    /// Returns the inputs in data of another library.
    pub fn of_exported(configuration: &Configuration, exported: Exported<'_>) -> PyResult<Inputs> {
        match Inputs::plain(configuration, &exported) {
            Some(inputs) => Ok(inputs),
            None => Inputs::of_imported(configuration, &exported.import()?),
        }
    }

    /// Returns the inputs if all of them are plain columns.
    fn plain(configuration: &Configuration, exported: &Exported<'_>) -> Option<Inputs> {
        let column = |name: &String| exported.plain_column(name);
        let named = |operand: &Operand| match &operand.column {
            Some(name) => column(name).map(Some),
            None => Some(None),
        };
        Some(Inputs {
            url: column(&configuration.url)?,
            base: named(&configuration.base)?,
            charset: named(&configuration.charset)?,
            query_charset: named(&configuration.query_charset)?,
        })
    }

    /// Returns the inputs in a batch.
    pub fn of_batch(configuration: &Configuration, batch: &RecordBatch) -> PyResult<Inputs> {
        Inputs::of(configuration, |name| Ok(batch.column(only_place(batch.schema_ref().fields(), name)?).clone()))
    }

    /// Returns the inputs in imported data: the columns of a structure, or an array of URLs. Other columns are not looked at.
    fn of_imported(configuration: &Configuration, data: &ArrayData) -> PyResult<Inputs> {
        let DataType::Struct(fields) = data.data_type() else {
            let array = checked(data.clone())?;
            return Inputs::of_urls(configuration, &array);
        };
        Inputs::of(configuration, |name| {
            let place = only_place(fields, name)?;
            let column = checked(data.child_data()[place].slice(data.offset(), data.len()))?;
            // Rows of a null structure are null.
            null_where(column, data.nulls())
        })
    }

    /// Returns the inputs if there is only a column of URLs.
    pub fn of_urls(configuration: &Configuration, urls: &ArrayRef) -> PyResult<Inputs> {
        let only = [Arc::new(Field::new(&configuration.url, urls.data_type().clone(), true))];
        Inputs::of(configuration, |name| match name == configuration.url {
            true => Ok(urls.clone()),
            false => Err(unknown_column(name, &only)),
        })
    }
}

/// Returns the place of the only column `name`.
///
/// # Errors
/// No column has this name, or several have it.
fn only_place(fields: &[Arc<Field>], name: &str) -> PyResult<usize> {
    let mut places = fields.iter().enumerate().filter(|(_, field)| field.name() == name).map(|(place, _)| place);
    let place = places.next().ok_or_else(|| unknown_column(name, fields))?;
    match places.count() {
        0 => Ok(place),
        more => Err(PyValueError::new_err(format!(
            "data: {} columns have the name {name:?}; expected one: rename or drop the others",
            more + 1
        ))),
    }
}

fn unknown_column(name: &str, fields: &[Arc<Field>]) -> PyErr {
    let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
    PyKeyError::new_err(format!("unknown column {name:?}; expected one of {}", names.join(", ")))
}

/// Reusable buffers of records.
#[derive(Debug, Default)]
pub struct Scratch {
    lent: Vec<Span>,
    copies: RecordBuffer,
    /// Rows whose URL is null. As records with a fault, they are neither resolved nor decoded.
    nulls: Vec<(u32, Fault)>,
}

impl Scratch {
    /// Returns the records of rows `from..to`, at least one row.
    pub fn records<'a>(&'a mut self, inputs: &'a Inputs, from: usize, to: usize) -> Records<'a> {
        self.nulls.clear();
        if let Some(nulls) = inputs.url.nulls().filter(|nulls| nulls.null_count() > 0) {
            let rows = (from..to).filter(|row| nulls.is_null(*row));
            self.nulls.extend(rows.map(|row| ((row - from) as u32, NULL)));
        }
        let has_more = inputs.base.is_some() || inputs.charset.is_some() || inputs.query_charset.is_some();
        if has_more || !self.lend(&inputs.url, from, to) {
            self.copy(inputs, from, to);
            return Records { faults: &self.nulls, ..self.copies.records() };
        }
        let (begin, end) = (inputs.url.range(from).0, inputs.url.range(to - 1).1);
        // Rows have no offset in a source, and no result column needs one.
        let (text, offsets) = (&inputs.url.bytes()[begin..end], RecordOffsets::Each(&[]));
        Records { text, urls: &self.lent, offsets, faults: &self.nulls, ..Records::default() }
    }

    /// Borrows the bytes of the column. Returns false if the bytes of adjacent rows could form one character together.
    fn lend(&mut self, url: &Column, from: usize, to: usize) -> bool {
        self.lent.clear();
        let begin = url.range(from).0;
        let bytes = &url.bytes()[begin..url.range(to - 1).1];
        url.push_spans(from, to, &mut self.lent);
        if let Some(nulls) = url.nulls() {
            // The bytes of a null are undefined.
            (from..to).filter(|row| nulls.is_null(*row)).for_each(|row| self.lent[row - from].len = 0);
        }
        let is_continued = |span: &Span| bytes.get(span.at as usize).is_some_and(|byte| byte & 0xC0 == 0x80);
        !self.lent.iter().any(is_continued) || !is_utf8(bytes)
    }

    fn copy(&mut self, inputs: &Inputs, from: usize, to: usize) {
        self.copies.clear();
        for row in from..to {
            self.copies.push_url(inputs.url.value(row));
            if let Some(base) = &inputs.base {
                self.copies.push_base(base.value(row));
            }
            if let Some(charset) = &inputs.charset {
                self.copies.push_charset(charset.value(row));
            }
            if let Some(charset) = &inputs.query_charset {
                self.copies.push_query_charset(charset.value(row));
            }
        }
    }
}

/// Sets rows to null whose URL is null.
pub fn null_where(array: ArrayRef, nulls: Option<&NullBuffer>) -> PyResult<ArrayRef> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(array) };
    let together = NullBuffer::union(array.nulls(), Some(nulls));
    let data = array.to_data().into_builder().nulls(together).build().map_err(arrow_error)?;
    Ok(arrow::array::make_array(data))
}
