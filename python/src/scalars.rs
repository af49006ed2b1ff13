//! Functions for single references, as `str` or `bytes`. A reference that cannot be parsed raises [`Fault`].

use irikey::canon::Rung;
use irikey::iri::whatwg_href;
use irikey::iri::{
    Base, Fault as RowFault, Flags, HostMapping, ParseMode, Parts, find_scheme, find_spoofing, normalize_to_rung,
    to_iri,
};
use irikey::key::{Draft, KeyAlgorithm, Recipe};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::configuration::rung;

pyo3::create_exception!(
    irikey,
    Fault,
    PyValueError,
    "A reference cannot be parsed; has the attributes `kind`, `component` and `at`."
);

/// Converts a fault to an exception.
fn raise(py: Python<'_>, fault: RowFault) -> PyErr {
    let error = Fault::new_err(fault.to_string());
    let value = error.value(py);
    let set = value
        .setattr("kind", fault.kind.name())
        .and_then(|()| value.setattr("component", fault.component.name()))
        .and_then(|()| value.setattr("at", fault.at));
    set.err().unwrap_or(error)
}

/// Returns the bytes of a `str` or `bytes`.
fn bytes_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.as_bytes().to_vec());
    }
    match value.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes().to_vec()),
        Err(_) => Err(PyTypeError::new_err(format!(
            "expected a reference as str or bytes, found {}",
            value.get_type().name()?
        ))),
    }
}

/// Resolves a relative reference against the base, if there is one.
fn absolute(py: Python<'_>, reference: &Bound<'_, PyAny>, base: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<u8>> {
    let reference = bytes_of(reference)?;
    match base {
        Some(base) if find_scheme(&reference).is_none() => {
            let base = Base::new(&bytes_of(base)?).map_err(|fault| raise(py, fault))?;
            base.resolve(&reference).map_err(|fault| raise(py, fault))
        }
        _ => Ok(reference),
    }
}

fn parse_mode(strict: bool) -> ParseMode {
    if strict { ParseMode::Strict } else { ParseMode::Lenient }
}

fn algorithm(name: &str) -> PyResult<KeyAlgorithm> {
    match name {
        "xxh3" => Ok(KeyAlgorithm::Xxh3),
        "blake3" => Ok(KeyAlgorithm::Blake3),
        other => Err(PyValueError::new_err(format!("key_hash is \"xxh3\" or \"blake3\", not {other:?}"))),
    }
}

fn normalized(py: Python<'_>, reference: &[u8], on: Rung, strict: bool) -> PyResult<(Vec<u8>, Flags)> {
    normalize_to_rung(reference, on, parse_mode(strict)).map_err(|fault| raise(py, fault))
}

/// Returns the canonical URI of a reference.
#[pyfunction]
#[pyo3(signature = (reference, base=None, *, rung="scheme", strict=false))]
pub fn uri(
    py: Python<'_>,
    reference: &Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
    rung: &str,
    strict: bool,
) -> PyResult<String> {
    let text = normalized(py, &absolute(py, reference, base)?, self::rung(rung)?, strict)?.0;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the canonical IRI of a reference: the URI decoded by RFC 3987 section 3.2, with a Unicode host.
#[pyfunction]
#[pyo3(signature = (reference, base=None, *, strict=false))]
pub fn iri(
    py: Python<'_>,
    reference: &Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
    strict: bool,
) -> PyResult<String> {
    let text = normalized(py, &absolute(py, reference, base)?, Rung::Scheme, strict)?.0;
    Ok(to_iri(&String::from_utf8_lossy(&text), HostMapping::Unicode))
}

/// Returns the key of a reference, 16 bytes.
#[pyfunction]
#[pyo3(signature = (reference, base=None, *, rung="scheme", strict=false, key_hash="xxh3"))]
pub fn key<'py>(
    py: Python<'py>,
    reference: &Bound<'py, PyAny>,
    base: Option<&Bound<'py, PyAny>>,
    rung: &str,
    strict: bool,
    key_hash: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let text = normalized(py, &absolute(py, reference, base)?, self::rung(rung)?, strict)?.0;
    Ok(PyBytes::new(py, &algorithm(key_hash)?.key(&text)))
}

/// Returns the SURT key of a URL: dialect "wayback" is that of webarchive-commons, "ia" that of Python's surt.
#[pyfunction]
#[pyo3(signature = (reference, dialect="wayback"))]
pub fn surt(py: Python<'_>, reference: &Bound<'_, PyAny>, dialect: &str) -> PyResult<String> {
    let recipe = match dialect {
        "wayback" | "ia" => Recipe::parse(&format!("surt-{dialect}")),
        other => return Err(PyValueError::new_err(format!("dialect is \"wayback\" or \"ia\", not {other:?}"))),
    };
    let recipe = recipe.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut text = Vec::new();
    let written = recipe.write_key(&bytes_of(reference)?, &mut Draft::default(), &mut text);
    written.map_err(|fault| raise(py, fault))?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Resolves a reference against a base by RFC 3986 section 5, without normalizing the target.
#[pyfunction]
#[pyo3(signature = (base, reference))]
pub fn resolve(py: Python<'_>, base: &Bound<'_, PyAny>, reference: &Bound<'_, PyAny>) -> PyResult<String> {
    let base = Base::new(&bytes_of(base)?).map_err(|fault| raise(py, fault))?;
    let target = base.resolve(&bytes_of(reference)?).map_err(|fault| raise(py, fault))?;
    String::from_utf8(target).map_err(|_| PyValueError::new_err("the target is not UTF-8"))
}

/// Returns the lowest rung on which two references are equivalent: "simple", "syntax", "scheme", or None.
#[pyfunction]
#[pyo3(signature = (a, b, base=None, *, strict=false))]
pub fn compare(
    py: Python<'_>,
    a: &Bound<'_, PyAny>,
    b: &Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
    strict: bool,
) -> PyResult<Option<&'static str>> {
    let (a, b) = (absolute(py, a, base)?, absolute(py, b, base)?);
    for rung in Rung::ALL {
        if normalized(py, &a, rung, strict)?.0 == normalized(py, &b, rung, strict)?.0 {
            return Ok(Some(rung.name()));
        }
    }
    Ok(None)
}

/// Describes a reference: texts and keys of the rungs, components, flags, spoofing flags, and the result of a browser's
/// parser.
#[pyfunction]
#[pyo3(signature = (reference, base=None, *, strict=false))]
pub fn explain<'py>(
    py: Python<'py>,
    reference: &Bound<'py, PyAny>,
    base: Option<&Bound<'py, PyAny>>,
    strict: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let input = bytes_of(reference)?;
    let absolute = absolute(py, reference, base)?;
    let explained = PyDict::new(py);
    let rungs = PyDict::new(py);
    let mut flags = Flags::NONE;
    let mut text = Vec::new();
    for rung in Rung::ALL {
        let found;
        (text, found) = normalized(py, &absolute, rung, strict)?;
        flags |= found;
        let step = PyDict::new(py);
        step.set_item("text", String::from_utf8_lossy(&text))?;
        step.set_item("key", PyBytes::new(py, &KeyAlgorithm::Xxh3.key(&text)))?;
        rungs.set_item(rung.name(), step)?;
    }
    let uri = String::from_utf8_lossy(&text).into_owned();
    explained.set_item("iri", to_iri(&uri, HostMapping::Unicode))?;
    explained.set_item("uri", &uri)?;
    explained.set_item("rungs", rungs)?;
    explained.set_item("components", components(py, &text)?)?;
    explained.set_item("flags", flags.names().collect::<Vec<_>>())?;
    explained.set_item("spoofing_flags", find_spoofing(&input).flags.names().collect::<Vec<_>>())?;
    let href = std::str::from_utf8(&absolute).ok().and_then(|text| whatwg_href(text, None, None).ok());
    explained.set_item("browser", href)?;
    Ok(explained)
}

fn components<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let components = PyDict::new(py);
    for (name, part) in Parts::split(text).components(text) {
        components.set_item(name, part.map(String::from_utf8_lossy))?;
    }
    Ok(components)
}
