//! Converts arguments. The message about a wrong one names the argument, the type that was expected and the one that was found:
//! the errors of PyO3 have the name in a note only, which Python 3.10 does not show.

use std::sync::Arc;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString};

/// Returns the exception for an argument of another type.
fn wrong(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let kind = value.get_type().name().map_or_else(|_| "another type".to_string(), |kind| kind.to_string());
    PyTypeError::new_err(format!("{name}: expected {expected}, found {kind}"))
}

/// Returns a text.
pub fn text<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    value.cast::<PyString>().map_err(|_| wrong(name, value, "str"))?.to_str()
}

/// Returns a text, as [`text`].
pub fn string(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    text(name, value).map(str::to_string)
}

pub fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.cast::<PyBool>().map(|flag| flag.is_true()).map_err(|_| wrong(name, value, "bool"))
}

/// Returns a whole number of any size; -1, which is outside of every range, instead of one that has more than 64 bits.
pub fn whole_number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
    match value.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(-1),
        number => number.map_err(|_| wrong(name, value, "int")),
    }
}

/// Returns a list of names; a single text is a mistake.
pub fn names(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.repr()?;
        return Err(PyTypeError::new_err(format!("{name} is a list of names such as [{text}], not a str")));
    }
    let items = value.try_iter().map_err(|_| wrong(name, value, "a list of names"))?;
    items.map(|item| item.and_then(|item| string(name, &item))).collect()
}

/// Returns the contents of a file: bytes, or those of the file that a path names.
pub fn contents(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Arc<[u8]>> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Arc::from(bytes.as_bytes()));
    }
    let py = value.py();
    if !value.is_instance_of::<PyString>() && !value.hasattr(intern!(py, "__fspath__"))? {
        return value.extract::<Vec<u8>>().map(Arc::from).map_err(|_| wrong(name, value, "bytes or a path"));
    }
    let read = py.import("irikey._policy")?.call_method1("contents", (name, value))?;
    Ok(Arc::from(read.cast::<PyBytes>()?.as_bytes()))
}

/// Returns an argument, or the default if it is missing or None.
pub fn or_default<T>(
    name: &str,
    value: Option<&Bound<'_, PyAny>>,
    convert: impl FnOnce(&str, &Bound<'_, PyAny>) -> PyResult<T>,
    default: T,
) -> PyResult<T> {
    value.map_or(Ok(default), |value| convert(name, value))
}

/// Keyword arguments, each of which may be missing or None.
pub struct Options<'a, 'py>(pub Option<&'a Bound<'py, PyDict>>);

impl Options<'_, '_> {
    /// Refuses options without one of these names.
    ///
    /// # Errors
    /// `TypeError`, as Python raises it.
    pub fn check(&self, function: &str, known: &[&str]) -> PyResult<()> {
        for name in self.0.iter().flat_map(|options| options.keys()) {
            let name = name.cast_into::<PyString>()?;
            if !known.contains(&name.to_str()?) {
                let message = format!("{function}() got an unexpected keyword argument {}", name.repr()?);
                return Err(PyTypeError::new_err(message));
            }
        }
        Ok(())
    }

    /// Returns the option `name`.
    pub fn get<T>(
        &self,
        name: &str,
        convert: impl FnOnce(&str, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        let value = self.0.map(|options| options.get_item(name)).transpose()?.flatten();
        value.filter(|value| !value.is_none()).map(|value| convert(name, &value)).transpose()
    }
}
