//! Arrays of URLs: imports them from Arrow or lists, and returns one column.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray, LargeBinaryBuilder, LargeStringArray, RecordBatch, new_empty_array};
use arrow::compute::{cast, concat, take};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

use crate::answer::{Capsules, Requested, array_capsules};
use crate::column::Column;
use crate::configuration::Configuration;
use crate::engine::{Engine, Signals};
use crate::import::{checked, export};
use crate::intake::Inputs;
use crate::scalars::bytes_of;
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
            return Array(without_dictionary(self.0.clone())?).to_pylist(py);
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

/// Returns an array with the values of each row instead of keys of a dictionary.
fn without_dictionary(array: ArrayRef) -> PyResult<ArrayRef> {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => take(dictionary.values(), dictionary.keys(), None).map_err(arrow_error),
        None => Ok(array),
    }
}

/// Returns whether a value is a list of references instead of Arrow data.
pub fn is_list(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}

/// Imports an array or a list of references, the argument `name`.
fn import_array(name: &str, value: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if is_list(value) {
        return import_list(value);
    }
    let Some(exported) = export(value)? else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{name}: {kind} is no array: it has no __arrow_c_array__")));
    };
    let array = checked(exported.import()?)?;
    Column::of(&new_empty_array(array.data_type()), &name)?;
    Ok(array)
}

/// Imports a list of str, bytes and None.
pub fn import_list(value: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let mut bytes = LargeBinaryBuilder::new();
    for (row, value) in value.try_iter()?.enumerate() {
        let value = value?;
        if value.is_none() {
            bytes.append_null();
            continue;
        }
        bytes.append_value(bytes_of(&value).map_err(|error| in_row(value.py(), row, error))?);
    }
    Ok(Arc::new(bytes.finish()))
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
    pub urls: ArrayRef,
    pub others: Vec<(&'static str, ArrayRef)>,
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
            let array = import_array(name, values)?;
            if array.len() != urls.len() {
                let message = format!("{name} has {} values; expected {}, one per URL", array.len(), urls.len());
                return Err(PyValueError::new_err(message));
            }
            others.push((name, array));
        }
        Ok(Operands { urls, others })
    }

    /// Returns the column `column` of the results.
    pub fn answer(&self, engine: &Engine, column: &str, signals: Signals) -> PyResult<ArrayRef> {
        if let Some(dictionary) = self.urls.as_any_dictionary_opt()
            && self.others.is_empty()
            && dictionary.values().len() <= dictionary.len()
        {
            let values = Operands { urls: dictionary.values().clone(), others: Vec::new() };
            // Few libraries read a dictionary whose values have a dictionary, as the column `fault` has.
            let values = without_dictionary(values.answer(engine, column, signals)?)?;
            return Ok(dictionary.with_values(values));
        }
        let answers = engine.answer(&self.inputs(&engine.configuration)?, signals)?;
        let found = |batch: &RecordBatch| {
            let unknown = || PyKeyError::new_err(format!("unknown column {column:?} of the canonicalizer"));
            batch.column_by_name(column).cloned().ok_or_else(unknown)
        };
        let mut found = answers.iter().map(found).collect::<PyResult<Vec<_>>>()?;
        match found.len() {
            1 => Ok(found.remove(0)),
            _ => concat(&found.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(|error| match error {
                ArrowError::OffsetOverflowError(_) => PyValueError::new_err(format!(
                    "the column {column:?} of the results has more than 2 GiB of text; pass fewer values at a time, or a \
                     chunked array with shorter chunks"
                )),
                error => arrow_error(error),
            }),
        }
    }

    fn inputs(&self, configuration: &Configuration) -> PyResult<Inputs> {
        let Configuration { base, charset, .. } = configuration;
        let mut columns = vec![(configuration.url_column(), &self.urls)];
        for (name, array) in &self.others {
            let operand = if *name == "base" { base } else { charset };
            let no_column = || PyValueError::new_err(format!("{name}: the canonicalizer was made without {name}="));
            columns.push((operand.column.as_deref().ok_or_else(no_column)?, array));
        }
        Inputs::of(configuration, |name| {
            let found = columns.iter().find(|(column, _)| *column == name).map(|(_, array)| (*array).clone());
            found.ok_or_else(|| PyKeyError::new_err(format!("no array for the column {name:?} of the canonicalizer")))
        })
    }
}
