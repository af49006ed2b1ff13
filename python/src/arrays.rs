//! Arrays of URLs: imports them from Arrow or lists, and returns one column.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayData, ArrayRef, AsArray, LargeBinaryBuilder, LargeStringArray, RecordBatch, RecordBatchOptions,
    StructArray, make_array,
};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::pyarrow::FromPyArrow;
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyString, PyTuple};

use crate::configuration::Configuration;
use crate::engine::{Engine, Signals};
use crate::intake::null_where;
use crate::scalars::bytes_of;
use crate::schema::arrow_error;

/// One column: pyarrow.array(array), polars.Series(array).
#[pyclass(frozen, module = "irikey")]
pub struct Array(pub ArrayRef);

#[pymethods]
impl Array {
    /// The array as a pair of capsules. A requested schema is ignored; consumers cast.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let schema =
            FFI_ArrowSchema::try_from(Field::new("", self.0.data_type().clone(), true)).map_err(arrow_error)?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        let array = PyCapsule::new_with_value(py, FFI_ArrowArray::new(&self.0.to_data()), c"arrow_array")?;
        PyTuple::new(py, [schema, array])
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The values as str, bytes, int or None.
    pub fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
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

/// Imports an array, or a list of str, bytes and None.
pub fn import_array(value: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    if !is_list(value) {
        return Ok(make_array(ArrayData::from_pyarrow_bound(value)?));
    }
    let mut bytes = LargeBinaryBuilder::new();
    for (row, value) in value.try_iter()?.enumerate() {
        let value = value?;
        if value.is_none() {
            bytes.append_null();
            continue;
        }
        match value.cast::<PyString>().ok().and_then(|text| text.to_cow().ok()) {
            Some(text) => bytes.append_value(text.as_bytes()),
            None => bytes.append_value(bytes_of(&value).map_err(|error| in_row(value.py(), row, error))?),
        }
    }
    Ok(Arc::new(bytes.finish()))
}

fn in_row(py: Python<'_>, row: usize, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(format!("row {row}: {}", error.value(py)))
    } else {
        error
    }
}

/// Returns the fields of a structure as columns; rows of a null structure are null.
pub fn batch_of(rows: &StructArray) -> PyResult<RecordBatch> {
    let (fields, columns, nulls) = rows.clone().into_parts();
    let columns = columns.into_iter().map(|column| null_where(column, nulls.as_ref())).collect::<PyResult<Vec<_>>>()?;
    let fields: Vec<Field> = fields.iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options).map_err(arrow_error)
}

/// The arrays of a call: URLs, and bases and charsets if there are any.
pub struct Operands {
    urls: ArrayRef,
    others: Vec<(&'static str, ArrayRef)>,
}

impl Operands {
    /// # Errors
    /// An argument is no array, or the lengths differ.
    pub fn import(
        urls: &Bound<'_, PyAny>,
        base: Option<&Bound<'_, PyAny>>,
        charset: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Operands> {
        let urls = import_array(urls)?;
        let mut others = Vec::new();
        for (name, values) in [("base", base), ("charset", charset)] {
            let Some(values) = values else { continue };
            let array = import_array(values)?;
            if array.len() != urls.len() {
                let message = format!("{name} has {} values; expected {}, one per URL", array.len(), urls.len());
                return Err(PyValueError::new_err(message));
            }
            others.push((name, array));
        }
        Ok(Operands { urls, others })
    }

    /// Returns the column `column` of the results.
    pub fn answer(&self, engine: &Engine, column: &str) -> PyResult<ArrayRef> {
        if let Some(dictionary) = self.urls.as_any_dictionary_opt()
            && self.others.is_empty()
            && dictionary.values().len() <= dictionary.len()
        {
            let values = Operands { urls: dictionary.values().clone(), others: Vec::new() }.answer(engine, column)?;
            return Ok(dictionary.with_values(values));
        }
        let Configuration { url, base, charset, .. } = &engine.configuration;
        let column_of = |name: &str| match name {
            "base" => base.column.clone(),
            _ => charset.column.clone(),
        };
        let mut columns = vec![(url.clone(), self.urls.clone())];
        for (name, array) in &self.others {
            let no_column = || PyValueError::new_err(format!("{name}: the canonicalizer was made without {name}="));
            columns.push((column_of(name).ok_or_else(no_column)?, array.clone()));
        }
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
        let answers = engine.answer(&batch.map_err(arrow_error)?, Signals::Handled)?;
        let found = |batch: &RecordBatch| {
            let unknown = || PyKeyError::new_err(format!("unknown column {column:?} of the canonicalizer"));
            batch.column_by_name(column).cloned().ok_or_else(unknown)
        };
        let mut found = answers.iter().map(found).collect::<PyResult<Vec<_>>>()?;
        match found.len() {
            1 => Ok(found.remove(0)),
            _ => concat(&found.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(arrow_error),
        }
    }
}
