//! Converts arguments. The message about a wrong one names the argument, the type that was expected and the one that was found:
//! the errors of PyO3 have the name in a note only, which Python 3.10 does not show.

use std::convert::Infallible;
use std::sync::Arc;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyMemoryView, PyString};

/// Returns the exception for an argument of another type, which is named with its module: `numpy.bool` is not `bool`.
fn wrong(name: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let kind = value.get_type().fully_qualified_name();
    let kind = kind.map_or_else(|_| "another type".to_string(), |kind| kind.to_string());
    PyTypeError::new_err(format!("{name}: expected {expected}, found {kind}"))
}

/// Returns a text.
pub fn text<'a>(name: &str, value: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    value.cast::<PyString>().map_err(|_| wrong(name, value, "str"))?.to_str()
}

/// Returns a copy of the bytes of a `bytearray` or a `memoryview`, which other threads may change; `None` for any other object.
/// Other objects with buffers are numbers of numpy, for example, which are no text.
pub fn copied_bytes(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        return Ok(Some(PyByteArray::from(value)?.to_vec()));
    }
    Ok(None)
}

/// A type of arguments.
pub trait FromArgument: Sized {
    /// Converts the argument `name`.
    ///
    /// # Errors
    /// `TypeError` if `value` has another type; what `open` raises if it names a file that cannot be read.
    fn from_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Self>;
}

impl<T: FromArgument> FromArgument for Option<T> {
    fn from_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<T>> {
        T::from_argument(name, value).map(Some)
    }
}

impl FromArgument for String {
    fn from_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
        text(name, value).map(str::to_string)
    }
}

impl FromArgument for bool {
    fn from_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        value.cast::<PyBool>().map(|flag| flag.is_true()).map_err(|_| wrong(name, value, "bool"))
    }
}

impl FromArgument for i64 {
    /// Returns a whole number of any size; -1, which is outside of every range, instead of one that has more than 64 bits.
    fn from_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<i64> {
        match value.extract::<i64>() {
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(-1),
            number => number.map_err(|_| wrong(name, value, "int")),
        }
    }
}

impl FromArgument for Vec<String> {
    /// Returns a list of names; a single text is a mistake.
    fn from_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
        if let Ok(text) = value.cast::<PyString>() {
            let text = text.repr()?;
            return Err(PyTypeError::new_err(format!("{name} is a list of names such as [{text}], not a str")));
        }
        let items = value.try_iter().map_err(|_| wrong(name, value, "a list of names"))?;
        items.map(|item| item.and_then(|item| String::from_argument(name, &item))).collect()
    }
}

/// The contents of a file.
#[derive(Clone, Debug)]
pub struct Contents(pub Arc<[u8]>);

impl FromArgument for Contents {
    /// Returns bytes, or those of the file that a path names.
    fn from_argument(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Contents> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(Contents(Arc::from(bytes.as_bytes())));
        }
        let py = value.py();
        if !value.is_instance_of::<PyString>() && !value.hasattr(intern!(py, "__fspath__"))? {
            let bytes = value.extract::<Vec<u8>>().map_err(|_| wrong(name, value, "bytes or a path"))?;
            return Ok(Contents(Arc::from(bytes)));
        }
        let read = py.import("irikey._policy")?.call_method1("contents", (name, value))?;
        Ok(Contents(Arc::from(read.cast::<PyBytes>()?.as_bytes())))
    }
}

impl<'py> IntoPyObject<'py> for &Contents {
    type Target = PyBytes;
    type Output = Bound<'py, PyBytes>;
    type Error = Infallible;

    fn into_pyobject(self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, Infallible> {
        Ok(PyBytes::new(py, &self.0))
    }
}

/// Returns an argument, or the default if it is missing or None.
pub fn or_default<T: FromArgument>(name: &str, value: Option<&Bound<'_, PyAny>>, default: T) -> PyResult<T> {
    value.map_or(Ok(default), |value| T::from_argument(name, value))
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
    pub fn get<T: FromArgument>(&self, name: &str) -> PyResult<Option<T>> {
        let value = self.0.map(|options| options.get_item(name)).transpose()?.flatten();
        value.filter(|value| !value.is_none()).map(|value| T::from_argument(name, &value)).transpose()
    }
}
