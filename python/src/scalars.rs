//! Single references: `str` or `bytes` in, a text, a key or a dictionary out. What irikey refuses raises [`Fault`].

use irikey::canon::Rung;
use irikey::iri::whatwg_href;
use irikey::iri::{Base, Fault as RowFault, Flags, HostMapping, ParseMode, Parts, normalize_to_rung, find_scheme, find_spoofing, to_iri};
use irikey::key::{Draft, KeyAlgorithm, Recipe};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::configuration::rung;

pyo3::create_exception!(irikey, Fault, PyValueError, "A reference that is refused; has `kind`, `component` and `at`.");

/// A fault as an exception.
fn raise(py: Python<'_>, fault: RowFault) -> PyErr {
    let error = Fault::new_err(fault.to_string());
    let value = error.value(py);
    let set = value
        .setattr("kind", fault.kind.name())
        .and_then(|()| value.setattr("component", fault.component.name()))
        .and_then(|()| value.setattr("at", fault.at));
    set.err().unwrap_or(error)
}

/// The bytes of a `str` or a `bytes`.
fn bytes_of(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(text.to_cow()?.as_bytes().to_vec());
    }
    match value.cast::<PyBytes>() {
        Ok(bytes) => Ok(bytes.as_bytes().to_vec()),
        Err(_) => Err(PyTypeError::new_err(format!("a reference is str or bytes, not {}", value.get_type().name()?))),
    }
}

/// The reference against the base, if it needs one and there is one.
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

fn intake(strict: bool) -> ParseMode {
    if strict { ParseMode::Strict } else { ParseMode::Lenient }
}

fn algorithm(name: &str) -> PyResult<KeyAlgorithm> {
    match name {
        "xxh3" => Ok(KeyAlgorithm::Xxh3),
        "blake3" => Ok(KeyAlgorithm::Blake3),
        other => Err(PyValueError::new_err(format!("key_hash is \"xxh3\" or \"blake3\", not {other:?}"))),
    }
}

fn climbed(py: Python<'_>, reference: &[u8], on: Rung, strict: bool) -> PyResult<(Vec<u8>, Flags)> {
    normalize_to_rung(reference, on, intake(strict)).map_err(|fault| raise(py, fault))
}

/// The canonical URI of a reference.
#[pyfunction]
#[pyo3(signature = (reference, base=None, *, rung="scheme", strict=false))]
pub fn uri(
    py: Python<'_>,
    reference: &Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
    rung: &str,
    strict: bool,
) -> PyResult<String> {
    let text = climbed(py, &absolute(py, reference, base)?, self::rung(rung)?, strict)?.0;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// The canonical IRI of a reference: its URI with what section 3.2 of RFC 3987 lets one decode, and a Unicode host.
#[pyfunction]
#[pyo3(signature = (reference, base=None, *, strict=false))]
pub fn iri(
    py: Python<'_>,
    reference: &Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
    strict: bool,
) -> PyResult<String> {
    let text = climbed(py, &absolute(py, reference, base)?, Rung::Scheme, strict)?.0;
    Ok(to_iri(&String::from_utf8_lossy(&text), HostMapping::Unicode))
}

/// The 16 bytes of a reference's key.
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
    let text = climbed(py, &absolute(py, reference, base)?, self::rung(rung)?, strict)?.0;
    Ok(PyBytes::new(py, &algorithm(key_hash)?.key(&text)))
}

/// The SURT key of a URL: dialect "wayback" as webarchive-commons makes it, "ia" as Python's surt does.
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

/// The target of a reference against a base, by RFC 3986 section 5, not normalised.
#[pyfunction]
#[pyo3(signature = (base, reference))]
pub fn resolve(py: Python<'_>, base: &Bound<'_, PyAny>, reference: &Bound<'_, PyAny>) -> PyResult<String> {
    let base = Base::new(&bytes_of(base)?).map_err(|fault| raise(py, fault))?;
    let target = base.resolve(&bytes_of(reference)?).map_err(|fault| raise(py, fault))?;
    String::from_utf8(target).map_err(|_| PyValueError::new_err("the target is not UTF-8"))
}

/// The lowest rung on which two references are equivalent: "simple", "syntax" or "scheme"; None if there is none.
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
        if climbed(py, &a, rung, strict)?.0 == climbed(py, &b, rung, strict)?.0 {
            return Ok(Some(rung.name()));
        }
    }
    Ok(None)
}

/// Everything that is known of a reference: texts and keys of the rungs, components, flags, what may mislead, what a
/// browser makes of it.
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
        (text, found) = climbed(py, &absolute, rung, strict)?;
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
