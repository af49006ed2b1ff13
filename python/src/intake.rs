//! Reads the records of a record batch. Their texts are copied with a separator after each: copying takes a few nanoseconds per
//! row, and a search for a byte of a URL that has none would otherwise go on in the rows after it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Schema};
use irikey::iri::{Component, Fault, FaultKind};
use irikey::record::{RecordBuffer, RecordOffsets, Records};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use crate::charsets::{Charsets, base_beside};
use crate::column::{Column, TextRows, Values};
use crate::configuration::{Configuration, Operand};
use crate::import::{Exported, Imported, checked};
use crate::schema::arrow_error;

/// Limit of the URLs of one result batch, in bytes. Arrow's offsets reach 2 GiB.
pub const MOST_TEXT: usize = 600 << 20;

/// How many times as long percent-encoding makes a text. A result batch ends when a column of its texts exceeds so many times the
/// limit: bases make texts longer as well.
pub const MAX_GROWTH: usize = 3;

/// The limit in use, which tests lower.
pub static TEXT_LIMIT: AtomicUsize = AtomicUsize::new(MOST_TEXT);

/// Text that is processed at a time, in bytes, so that it and its bitmaps stay in the cache of a core.
pub const CHUNK_LEN: usize = 256 << 10;

/// The fault of a row without a URL; its columns become null.
const NULL: Fault = Fault::new(FaultKind::NoUrl, Component::Reference, 0);

/// The input columns of a configuration.
pub struct Inputs {
    pub url: Column,
    base: Option<Column>,
    charsets: Charsets,
    query_charset: Option<Column>,
}

impl Inputs {
    /// Returns the columns that a configuration names, of those that `find` returns.
    ///
    /// # Errors
    /// A column does not exist, or has another type.
    pub fn of(configuration: &Configuration, find: impl Fn(&str) -> PyResult<Values>) -> PyResult<Inputs> {
        let column = |name: &str| Column::of(&find(name)?, &format_args!("column {name:?}"));
        let named = |operand: &Operand| operand.column.as_deref().map(column).transpose();
        Ok(Inputs {
            url: column(configuration.url_column())?,
            base: named(&configuration.base)?,
            charsets: Charsets::new(named(&configuration.charset)?, &configuration.charset),
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
        let column = |name: &str| exported.plain_column(name);
        let named = |operand: &Operand| match &operand.column {
            Some(name) => column(name).map(Some),
            None => Some(None),
        };
        Some(Inputs {
            url: column(configuration.url_column())?,
            base: named(&configuration.base)?,
            charsets: Charsets::new(named(&configuration.charset)?, &configuration.charset),
            query_charset: named(&configuration.query_charset)?,
        })
    }

    /// Checks that batches of this schema have the inputs.
    ///
    /// # Errors
    /// As for [`Inputs::of`].
    pub fn check(configuration: &Configuration, schema: &Schema) -> PyResult<()> {
        configuration.input_columns().into_iter().try_for_each(|name| {
            let field = schema.field(only_place(configuration, schema.fields(), name)?);
            Column::check(field.data_type(), &format_args!("column {name:?}"))
        })
    }

    /// Returns the inputs in imported data: the columns of a structure, or an array of URLs. Other columns are not looked at.
    ///
    /// # Errors
    /// As for [`Inputs::of`]; a column has fewer rows than the structure, or offsets outside its bytes.
    pub fn of_imported(configuration: &Configuration, imported: &Imported) -> PyResult<Inputs> {
        let Some(fields) = imported.fields() else {
            return Inputs::of_urls(configuration, &imported.values()?);
        };
        let data = &imported.data;
        Inputs::of(configuration, |name| {
            let place = only_place(configuration, fields, name)?;
            let column = &data.child_data()[place];
            if column.len() < data.offset() + data.len() {
                return Err(PyValueError::new_err(format!("data: the column {name:?} has fewer rows than its batch")));
            }
            let column = checked(column.slice(data.offset(), data.len()))?;
            // Rows of a null structure are null.
            Ok(Values { array: null_where(column, data.nulls())?, text: TextRows::of(fields[place].data_type()) })
        })
    }

    /// Returns the columns.
    fn columns(&self) -> impl Iterator<Item = &Column> {
        [Some(&self.url), self.base.as_ref(), self.charsets.column.as_ref(), self.query_charset.as_ref()]
            .into_iter()
            .flatten()
    }

    /// Returns the length of rows `from..to` of all columns in bytes.
    pub fn text_len(&self, from: usize, to: usize) -> usize {
        self.columns().map(|column| column.text_len(from, to)).sum()
    }

    /// Returns the end of the longest range of rows from `from` up to `end` whose columns have at most `most` bytes each, but at
    /// least one row.
    pub fn cut(&self, from: usize, end: usize, most: usize) -> usize {
        self.columns().fold(end, |end, column| column.cut(from, end, most))
    }

    /// Returns the inputs if there is only a column of URLs.
    pub fn of_urls(configuration: &Configuration, urls: &Values) -> PyResult<Inputs> {
        let only = [Arc::new(Field::new(configuration.url_column(), urls.array.data_type().clone(), true))];
        Inputs::of(configuration, |name| match name == configuration.url_column() {
            true => Ok(urls.clone()),
            false => Err(unknown_column(configuration, &only, name)),
        })
    }
}

/// Returns the place of the only column `name`.
///
/// # Errors
/// No column has this name, or several have it.
fn only_place(configuration: &Configuration, fields: &[Arc<Field>], name: &str) -> PyResult<usize> {
    let mut places = fields.iter().enumerate().filter(|(_, field)| field.name() == name).map(|(place, _)| place);
    let place = places.next().ok_or_else(|| unknown_column(configuration, fields, name))?;
    match places.count() {
        0 => Ok(place),
        more => Err(PyValueError::new_err(format!(
            "data: {} columns have the name {name:?}; expected one: rename or drop the others",
            more + 1
        ))),
    }
}

/// Returns the exception for an input column that does not exist. The name of any but that of the URLs may be meant as a value.
fn unknown_column(configuration: &Configuration, fields: &[Arc<Field>], name: &str) -> PyErr {
    let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
    let expected = match names.is_empty() {
        true => "the data has no columns".to_string(),
        false => format!("expected one of {}", names.join(", ")),
    };
    let hint = if name == configuration.url_column() { "" } else { ", or irikey.lit(value) for all rows" };
    PyKeyError::new_err(format!("unknown column {name:?}; {expected}{hint}"))
}

/// Reusable buffers of records.
#[derive(Debug, Default)]
pub struct Scratch {
    copies: RecordBuffer,
    /// Rows whose URL is null. As records with a fault, they are neither resolved nor decoded.
    nulls: Vec<(u32, Fault)>,
}

impl Scratch {
    /// Returns the records of rows `from..to`, at least one row.
    pub fn records(&mut self, inputs: &Inputs, from: usize, to: usize) -> Records<'_> {
        self.nulls.clear();
        if let Some(nulls) = inputs.url.nulls().filter(|nulls| nulls.null_count() > 0) {
            let rows = (from..to).filter(|row| nulls.is_null(*row));
            self.nulls.extend(rows.map(|row| ((row - from) as u32, NULL)));
        }
        self.copy(inputs, from, to);
        let charset = inputs.charsets.of_all(&inputs.url);
        // Rows have no offset in a source, and no result column needs one.
        let offsets = RecordOffsets::Each(&[]);
        Records { faults: &self.nulls, offsets, charset, may_be_utf16: true, ..self.copies.records() }
    }

    fn copy(&mut self, inputs: &Inputs, from: usize, to: usize) {
        let Scratch { copies, nulls } = self;
        copies.clear();
        match nulls.is_empty() {
            true => inputs.url.copy_urls(from, to, copies),
            false => (from..to).for_each(|row| copies.push_url(inputs.url.value(row))),
        }
        let Inputs { url, charsets, .. } = inputs;
        if let Some(base) = &inputs.base {
            (from..to).for_each(|row| {
                let is_text = [base.text.contains(row), url.text.contains(row)];
                copies.push_base(&base_beside(base.value(row), is_text, || charsets.of_row(row)));
            });
        }
        if charsets.has_labels(url) {
            (from..to).for_each(|row| copies.push_charset(charsets.label(url, row)));
        }
        if let Some(charset) = &inputs.query_charset {
            (from..to).for_each(|row| copies.push_query_charset(charset.value(row)));
        }
    }
}

/// Sets rows to null whose URL is null.
pub fn null_where(array: ArrayRef, nulls: Option<&NullBuffer>) -> PyResult<ArrayRef> {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(array) };
    if *array.data_type() == DataType::Null {
        return Ok(array);
    }
    let together = NullBuffer::union(array.nulls(), Some(nulls));
    let data = array.to_data().into_builder().nulls(together).build().map_err(arrow_error)?;
    Ok(arrow::array::make_array(data))
}
