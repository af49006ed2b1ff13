//! Functions for single references, as `str` or `bytes`. A reference that cannot be parsed raises [`Fault`].

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::OnceLock;

use irikey::canon::Rung;
use irikey::iri::{
    Base, Fault as RowFault, FaultKind, Flags, HostMapping, ParseMode, Parts, find_scheme, normalize_to_rung,
    spoofing_flags, to_iri, whatwg_href,
};
use irikey::key::{Draft, KeyAlgorithm, Recipe};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::argument::{self, or_default};
use crate::configuration::{Configuration, Operand, algorithm, parse_recipe, python_terms};
use crate::engine::{EMPTY, Engine, Reference};
use crate::intake::MOST_TEXT;

pyo3::create_exception!(
    irikey,
    Fault,
    PyValueError,
    "A reference cannot be parsed. The attributes `kind` and `component` are names; `at` is the offset of the fault in bytes, \
     for a str in the bytes of its UTF-8."
);

/// Converts a fault to an exception.
pub fn raise(py: Python<'_>, fault: RowFault) -> PyErr {
    exception(py, fault, python_terms(&fault.to_string()))
}

/// Converts a fault of a function that takes no policy to an exception, which advises nothing that needs one.
fn raise_without_policy(py: Python<'_>, fault: RowFault) -> PyErr {
    let message = python_terms(&fault.to_string());
    exception(
        py,
        fault,
        message.replace("needs assume_scheme=", "needs one, such as https:").replace(" (max_url=)", ""),
    )
}

fn exception(py: Python<'_>, fault: RowFault, message: String) -> PyErr {
    let error = Fault::new_err(message);
    let value = error.value(py);
    let set = value
        .setattr("kind", fault.kind.name())
        .and_then(|()| value.setattr("component", fault.component.name()))
        .and_then(|()| value.setattr("at", fault.at));
    set.err().unwrap_or(error)
}

/// Returns the bytes of a reference, a `str`, `bytes`, or an object that [`argument::copied_bytes`] copies; borrowed if possible.
/// Surrogates of a `str` are encoded by [`escaped`].
///
/// # Errors
/// The value has another type, or is too long.
pub fn bytes_of<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    read(value).map(|(bytes, _)| bytes)
}

/// Returns the bytes of a reference, and whether it is text.
///
/// # Errors
/// As [`bytes_of`].
#[inline(always)]
pub fn read<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<(Cow<'a, [u8]>, bool)> {
    let (bytes, is_text) = read_any_length(value)?;
    match bytes.len() {
        len if len > MOST_TEXT => {
            Err(PyValueError::new_err(format!("the reference has {len} bytes; at most {MOST_TEXT} are expected")))
        }
        _ => Ok((bytes, is_text)),
    }
}

#[inline(always)]
fn read_any_length<'a>(value: &'a Bound<'_, PyAny>) -> PyResult<(Cow<'a, [u8]>, bool)> {
    if let Ok(text) = value.cast::<PyString>() {
        let encoded = match text.to_str() {
            Ok(text) => Cow::Borrowed(text.as_bytes()),
            Err(_) => Cow::Owned(escaped(text.call_method1("encode", ("utf-8", "surrogatepass"))?.extract()?)),
        };
        return Ok((encoded, true));
    }
    match value.cast::<PyBytes>() {
        Ok(bytes) => Ok((Cow::Borrowed(bytes.as_bytes()), false)),
        Err(_) => Ok((Cow::Owned(read_other(value)?), false)),
    }
}

/// Returns the bytes of a reference that is neither `str` nor `bytes`.
#[cold]
fn read_other(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    if let Some(bytes) = argument::copied_bytes(value)? {
        return Ok(bytes);
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!("expected a reference as str or bytes, found {kind}")))
}

/// Returns the bytes of a text with surrogates, which `encoded` has as three bytes each (WTF-8). U+DC80 to U+DCFF stand for
/// the bytes that Python's `surrogateescape` could not decode; other surrogates remain three bytes.
fn escaped(encoded: Vec<u8>) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(encoded.len()), &encoded[..]);
    while let Some(at) = rest.iter().position(|byte| *byte == 0xED) {
        bytes.extend_from_slice(&rest[..at]);
        match rest[at..] {
            // U+DC80 is ED B2 80, and U+DCFF is ED B3 BF.
            [_, high @ (0xB2 | 0xB3), low, ..] => bytes.push(high << 6 | low & 0x3F),
            _ => bytes.extend_from_slice(&rest[at..at + 3]),
        }
        rest = &rest[at + 3..];
    }
    bytes.extend_from_slice(rest);
    bytes
}

/// Returns bytes as a `str`; those that are not UTF-8 are escaped by Python's `surrogateescape`, so that none is lost.
pub fn text_of<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => Ok(PyBytes::new(py, bytes).call_method1("decode", ("utf-8", "surrogateescape"))?.cast_into()?),
    }
}

/// Resolves a relative reference against the base, if there is one, as for rows.
fn absolute<'a>(
    py: Python<'_>,
    reference: &'a Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
) -> PyResult<Cow<'a, [u8]>> {
    let reference = bytes_of(reference)?;
    match base {
        Some(base) if find_scheme(&reference).is_none() => {
            let base = Base::new(&bytes_of(base)?).map_err(|fault| raise_without_policy(py, fault))?;
            base.resolve(&reference).map(Cow::Owned).map_err(|fault| raise_without_policy(py, fault))
        }
        _ => Ok(reference),
    }
}

fn parse_mode(strict: bool) -> ParseMode {
    if strict { ParseMode::Strict } else { ParseMode::Lenient }
}

fn normalized(py: Python<'_>, reference: &[u8], on: Rung, strict: bool) -> PyResult<(Vec<u8>, Flags)> {
    normalize_to_rung(reference, on, parse_mode(strict)).map_err(|fault| raise_without_policy(py, fault))
}

/// Returns the bytes of a base, and whether it is text.
fn read_base<'a>(base: &'a Bound<'_, PyAny>) -> PyResult<(Cow<'a, [u8]>, bool)> {
    read(base).map_err(|error| match error.is_instance_of::<PyTypeError>(base.py()) {
        true => PyTypeError::new_err(format!("base: {}", error.value(base.py()))),
        false => error,
    })
}

/// Returns a reference and its base as the engine takes them.
#[inline(always)]
pub fn single<'a>(reference: &'a Bound<'_, PyAny>, base: Option<&'a Bound<'_, PyAny>>) -> PyResult<Reference<'a>> {
    let (url, is_text) = read(reference)?;
    Ok(Reference { url, is_text, base: base.map(read_base).transpose()? })
}

/// Canonicalizes one reference, relative to `base`, and converts its URI.
pub fn single_uri<T>(
    engine: &Engine,
    reference: &Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
    convert: impl FnOnce(&[u8]) -> PyResult<T>,
) -> PyResult<T> {
    engine.uri(&single(reference, base)?, convert).map_err(|fault| raise(reference.py(), fault))?
}

/// Returns the key of one reference, relative to `base`.
pub fn single_key<'py>(
    engine: &Engine,
    reference: &Bound<'py, PyAny>,
    base: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let key = engine.key(&single(reference, base)?)?.map_err(|fault| raise(reference.py(), fault))?;
    Ok(PyBytes::new(reference.py(), &key))
}

/// Returns the engine of functions for single references with these options. Each is made once.
pub fn engine(rung: &str, strict: bool, key_hash: &str) -> PyResult<&'static Engine> {
    static ENGINES: [[OnceLock<Engine>; 4]; Rung::ALL.len()] =
        [const { [const { OnceLock::new() }; 4] }; Rung::ALL.len()];
    let rung = crate::configuration::rung(rung, &[])?;
    let is_blake3 = algorithm(key_hash)? == KeyAlgorithm::Blake3;
    let place = &ENGINES[rung as usize][usize::from(strict) + 2 * usize::from(is_blake3)];
    if let Some(engine) = place.get() {
        return Ok(engine);
    }
    let made = Engine::new(Configuration {
        base: Operand { column: Some("base".to_string()), literal: None },
        rung: rung.name().to_string(),
        strict,
        key_hash: key_hash.to_string(),
        ..Configuration::default()
    })?;
    Ok(place.get_or_init(|| made))
}

thread_local! {
    /// The recipe that this thread used last, by the text that it was parsed from.
    static LAST_RECIPE: RefCell<Option<(String, Recipe, Draft)>> = const { RefCell::new(None) };
}

/// Returns the text of a recipe's key. As for rows, a recipe reads the reference, or the URI that `engine` makes of one that is
/// relative.
pub fn recipe_text(
    engine: &Engine,
    reference: &Bound<'_, PyAny>,
    base: Option<&Bound<'_, PyAny>>,
    recipe: &str,
) -> PyResult<Vec<u8>> {
    let single = single(reference, base)?;
    let raise = |fault| raise(reference.py(), fault);
    if single.url.len() > engine.policy.max_url_len.0 {
        return Err(raise(RowFault { kind: FaultKind::TooLong, ..EMPTY }));
    }
    let resolved = match &single.base {
        Some((base, _)) if find_scheme(&single.url).is_none() => {
            Base::new(base).map_err(raise)?;
            // A reference without a URI is read as it is.
            engine.uri(&single, <[u8]>::to_vec).ok()
        }
        _ => None,
    };
    let url = resolved.as_deref().unwrap_or(&single.url);
    let mut text = Vec::new();
    let written = LAST_RECIPE.with_borrow_mut(|last| -> PyResult<_> {
        let (_, recipe, draft) = match last {
            Some(last) if last.0 == recipe => last,
            _ => last.insert((recipe.to_string(), parse_recipe(recipe)?, Draft::default())),
        };
        Ok(recipe.write_key(url, draft, &mut text))
    })?;
    // Making an exception may collect garbage, whose finalizers may call this function.
    written.map_err(raise)?;
    if text.is_empty() { Err(raise(EMPTY)) } else { Ok(text) }
}

/// Returns the SURT key of a URL: dialect "wayback" is that of webarchive-commons, "ia" that of Python's surt.
#[pyfunction]
#[pyo3(signature = (reference, dialect=None), text_signature = "(reference, dialect='wayback')")]
pub fn surt<'py>(reference: &Bound<'py, PyAny>, dialect: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyString>> {
    let recipe = match dialect.map_or(Ok("wayback"), |dialect| argument::text("dialect", dialect))? {
        dialect @ ("wayback" | "ia") => format!("surt-{dialect}"),
        other => return Err(PyValueError::new_err(format!("dialect is \"wayback\" or \"ia\", not {other:?}"))),
    };
    let text = recipe_text(engine(Rung::Scheme.name(), false, "xxh3")?, reference, None, &recipe)?;
    text_of(reference.py(), &text)
}

/// Resolves a reference against a base by RFC 3986 section 5, without normalizing the target.
#[pyfunction]
#[pyo3(signature = (base, reference))]
pub fn resolve<'py>(
    py: Python<'py>,
    base: &Bound<'py, PyAny>,
    reference: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyString>> {
    let base = Base::literal(&bytes_of(base)?).map_err(|fault| raise(py, fault))?;
    text_of(py, &base.resolve_rfc3986(&bytes_of(reference)?).map_err(|fault| raise(py, fault))?)
}

/// Returns the lowest rung on which two references are equivalent, or None, and their URIs on that rung or the highest one.
/// Relative references without a base have no URIs; equal ones are equivalent on the rung "simple", as for the command.
#[pyfunction]
#[pyo3(signature = (a, b, base=None, *, strict=None), text_signature = "(a, b, base=None, *, strict=False)")]
pub fn compare<'py>(
    py: Python<'py>,
    a: &Bound<'py, PyAny>,
    b: &Bound<'py, PyAny>,
    base: Option<&Bound<'py, PyAny>>,
    strict: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Option<&'static str>, Bound<'py, PyString>, Bound<'py, PyString>)> {
    let strict = or_default("strict", strict, false)?;
    let (a, b) = (absolute(py, a, base)?, absolute(py, b, base)?);
    let on = match irikey::iri::compare(&a, &b, parse_mode(strict)) {
        Err(fault) if fault.kind == FaultKind::Relative && a == b => {
            return Ok((Some(Rung::Simple.name()), text_of(py, &a)?, text_of(py, &b)?));
        }
        found => found.map_err(|fault| raise_without_policy(py, fault))?,
    };
    let text = |reference: &[u8]| text_of(py, &normalized(py, reference, on.unwrap_or_default(), strict)?.0);
    Ok((on.map(Rung::name), text(&a)?, text(&b)?))
}

/// Describes a reference: texts and keys of the rungs, components, flags, spoofing flags, and the result of a browser's
/// parser.
#[pyfunction]
#[pyo3(signature = (reference, base=None, *, strict=None), text_signature = "(reference, base=None, *, strict=False)")]
pub fn explain<'py>(
    py: Python<'py>,
    reference: &Bound<'py, PyAny>,
    base: Option<&Bound<'py, PyAny>>,
    strict: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let strict = or_default("strict", strict, false)?;
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
        step.set_item("text", text_of(py, &text)?)?;
        step.set_item("key", PyBytes::new(py, &KeyAlgorithm::Xxh3.key(&text)))?;
        rungs.set_item(rung.name(), step)?;
    }
    let uri = String::from_utf8_lossy(&text).into_owned();
    explained.set_item("iri", to_iri(&uri, HostMapping::Unicode))?;
    explained.set_item("uri", &uri)?;
    explained.set_item("rungs", rungs)?;
    explained.set_item("components", components(py, &text)?)?;
    explained.set_item("flags", flags.names().collect::<Vec<_>>())?;
    explained.set_item("spoofing_flags", spoofing_flags(&input, uri.as_bytes()).names().collect::<Vec<_>>())?;
    let base = base.map(bytes_of).transpose()?;
    explained.set_item("browser", browser(&input, base.as_deref()))?;
    Ok(explained)
}

/// Returns the `href` that a browser makes of a reference, if there is one.
fn browser(reference: &[u8], base: Option<&[u8]>) -> Option<String> {
    let base = base.map(std::str::from_utf8).transpose().ok()?;
    whatwg_href(std::str::from_utf8(reference).ok()?, base, None).ok()
}

fn components<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    let components = PyDict::new(py);
    for (name, part) in Parts::split(text).components(text) {
        components.set_item(name, part.map(|part| text_of(py, part)).transpose()?)?;
    }
    Ok(components)
}
