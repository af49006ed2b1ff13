//! Arrays of URLs: imports them from Arrow or lists, and returns one column.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, AsArray, BooleanBufferBuilder, LargeBinaryBuilder, LargeStringArray, RecordBatch,
};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyList, PyTuple};

use crate::answer::{Capsules, Requested, array_capsules};
use crate::column::{Column, TextRows, Values, without_encoding};
use crate::configuration::Configuration;
use crate::engine::{Engine, Signals};
use crate::import::export;
use crate::intake::Inputs;
use crate::scalars::read;
use crate::schema::arrow_error;

/// One column: pyarrow.array(array), polars.Series(array).
#[pyclass(frozen, module = "irikey")]
pub struct Array(pub ArrayRef);

#[pymethods]
impl Array {
    /// The array as a pair of capsules. A requested schema is ignored; consumers cast.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(&self, py: Python<'py>, requested_schema: Option<Requested>) -> Capsules<'py> {
        let schema = FFI_ArrowSchema::try_from(Field::new("", self.0.data_type().clone(), true));
        array_capsules(py, requested_schema, schema, &self.0.to_data())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The values as str, bytes, int or None.
    pub fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.0.as_any_dictionary_opt().is_some() {
            return Array(without_encoding(self.0.clone())?).to_pylist(py);
        }
        let list = match self.0.data_type() {
            DataType::FixedSizeBinary(_) => {
                PyList::new(py, self.0.as_fixed_size_binary().iter().map(|key| key.map(|key| PyBytes::new(py, key))))?
            }
            DataType::Binary => {
                PyList::new(py, self.0.as_binary::<i32>().iter().map(|key| key.map(|key| PyBytes::new(py, key))))?
            }
            kind if kind.is_integer() => {
                let numbers = cast(&self.0, &DataType::Int64).map_err(arrow_error)?;
                PyList::new(py, numbers.as_primitive::<arrow::datatypes::Int64Type>().iter())?
            }
            _ => {
                let texts = cast(&self.0, &DataType::LargeUtf8).map_err(arrow_error)?;
                let texts: &LargeStringArray = texts.as_string();
                PyList::new(py, texts.iter())?
            }
        };
        Ok(list.into_any())
    }

    fn __repr__(&self) -> String {
        format!("irikey.Array({} values, {})", self.0.len(), self.0.data_type())
    }
}

/// Returns whether a value is a list of references instead of Arrow data.
pub fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}

/// Imports an array or a list of references, the argument `name`.
fn import_array(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Values> {
    if is_list(value) {
        return import_list(value);
    }
    let Some(exported) = export(value)? else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{name}: {kind} is no array: it has no __arrow_c_array__")));
    };
    let values = exported.import()?.values()?;
    Column::check(values.array.data_type(), &name)?;
    Ok(values)
}

/// Imports a list of str, bytes and values that are missing.
pub fn import_list(value: &Bound<'_, PyAny>) -> PyResult<Values> {
    let (mut bytes, mut text) = (LargeBinaryBuilder::new(), BooleanBufferBuilder::new(0));
    let (mut text_count, mut bytes_count) = (0, 0);
    for (row, value) in value.try_iter()?.enumerate() {
        let value = value?;
        let found = if value.is_none() { Ok(None) } else { read(&value).map(Some) };
        let (value, is_text) = match found {
            Ok(Some((value, is_text))) => (Some(value), is_text),
            Ok(None) => (None, false),
            Err(_) if is_missing(&value)? => (None, false),
            Err(error) => return Err(in_row(value.py(), row, error)),
        };
        text_count += usize::from(is_text);
        bytes_count += usize::from(value.is_some() && !is_text);
        bytes.append_option(value);
        text.append(is_text);
    }
    let text = match (text_count, bytes_count) {
        (_, 0) => TextRows::All,
        (0, _) => TextRows::None,
        _ => TextRows::Some(text.finish()),
    };
    Ok(Values { array: Arc::new(bytes.finish()), text })
}

/// Returns whether a value stands for a missing one: the float NaN, or pandas.NA.
fn is_missing(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(number.value().is_nan());
    }
    let kind = value.get_type();
    Ok(kind.name()? == "NAType" && kind.module()?.to_str()?.starts_with("pandas."))
}

/// Returns an error about a value with the number of its row.
fn in_row(py: Python<'_>, row: usize, error: PyErr) -> PyErr {
    let message = format!("row {row}: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(message)
    } else if error.is_instance_of::<PyValueError>(py) {
        PyValueError::new_err(message)
    } else {
        error
    }
}

/// The arrays of a call: URLs, and bases and charsets if there are any.
pub struct Operands {
    pub urls: Values,
    pub others: Vec<(&'static str, Values)>,
}

impl Operands {
    /// # Errors
    /// An argument is no array, or the lengths differ.
    pub fn import(
        urls: &Bound<'_, PyAny>,
        base: Option<&Bound<'_, PyAny>>,
        charset: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Operands> {
        let urls = import_array("values", urls)?;
        let mut others = Vec::new();
        for (name, values) in [("base", base), ("charset", charset)] {
            let Some(values) = values else { continue };
            let values = import_array(name, values)?;
            let (found, expected) = (values.array.len(), urls.array.len());
            if found != expected {
                let message = format!("{name} has {found} values; expected {expected}, one per URL");
                return Err(PyValueError::new_err(message));
            }
            others.push((name, values));
        }
        Ok(Operands { urls, others })
    }

    /// Returns the column `column` of the results, whose type does not depend on that of the URLs.
    pub fn answer(&self, engine: &Engine, column: &str, signals: Signals) -> PyResult<ArrayRef> {
        if let Some(dictionary) = self.urls.array.as_any_dictionary_opt()
            && self.others.is_empty()
            && dictionary.values().len() <= dictionary.len()
        {
            let urls = Values { array: dictionary.values().clone(), text: self.urls.text.clone() };
            let values = Operands { urls, others: Vec::new() }.answer(engine, column, signals)?;
            return take(&values, dictionary.keys(), None).map_err(|error| too_long(column, error));
        }
        let answers = engine.answer(&self.inputs(&engine.configuration)?, signals)?;
        let found = |batch: &RecordBatch| {
            let unknown = || PyKeyError::new_err(format!("unknown column {column:?} of the canonicalizer"));
            batch.column_by_name(column).cloned().ok_or_else(unknown)
        };
        let mut found = answers.iter().map(found).collect::<PyResult<Vec<_>>>()?;
        match found.len() {
            1 => Ok(found.remove(0)),
            _ => concat(&found.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(|error| too_long(column, error)),
        }
    }

    fn inputs(&self, configuration: &Configuration) -> PyResult<Inputs> {
        let Configuration { base, charset, .. } = configuration;
        let mut columns = vec![(configuration.url_column(), &self.urls)];
        for (name, values) in &self.others {
            let operand = if *name == "base" { base } else { charset };
            let no_column = || PyValueError::new_err(format!("{name}: the canonicalizer was made without {name}="));
            columns.push((operand.column.as_deref().ok_or_else(no_column)?, values));
        }
        Inputs::of(configuration, |name| {
            let found = columns.iter().find(|(column, _)| *column == name).map(|(_, values)| (*values).clone());
            found.ok_or_else(|| PyKeyError::new_err(format!("no array for the column {name:?} of the canonicalizer")))
        })
    }
}

/// Returns the exception for an error of Arrow while the column `column` was put together.
fn too_long(column: &str, error: ArrowError) -> PyErr {
    match error {
        ArrowError::OffsetOverflowError(_) => PyValueError::new_err(format!(
            "the column {column:?} of the results has more than 2 GiB of text; pass fewer values at a time, or a chunked \
             array with shorter chunks"
        )),
        error => arrow_error(error),
    }
}
