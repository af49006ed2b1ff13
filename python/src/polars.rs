//! Expressions of Polars: functions that Polars finds in this library by their names and calls on its own threads, without
//! the interpreter. They implement version 0.1 of its interface for plug-ins.
//!
//! ```text
//! series of URLs (and of bases) --take--> arrays --Operands--> arrays --give--> series
//! ```
//!
//! An expression carries its canonicalizer as a pickled dictionary, so that it can be sent to other processes. The dictionary
//! begins with a digest of the canonicalizer, by which [`engine`] finds it in a cache.

#![expect(unsafe_code, reason = "the interface passes structures of C")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use arrow::array::{Array, ArrayRef, UInt32Array, make_array, new_null_array};
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use irikey::key::{KeyAlgorithm, KeyBytes};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrays::Operands;
use crate::canonicalizer::Canonicalizer;
use crate::column::{Column, TextRows, Values};
use crate::engine::{Engine, Signals, lock};
use crate::import::import_parts;
use crate::schema::arrow_error;

/// The version of the interface: the major number in the upper 16 bits, the minor one in the lower.
const VERSION: u32 = 1;

/// Most engines in the cache.
const MAX_CACHED: usize = 64;

/// Most bytes that the pickled arguments of the cached engines have together: an engine holds suffix lists and equivalences of
/// about this length. The last engine is cached even if it is larger.
const MAX_CACHED_LEN: usize = 256 << 20;

/// What precedes the digest in pickled arguments: the key `digest`, the instruction that memoizes it, and the instruction for
/// bytes with their length.
const BEFORE_DIGEST: &[u8] = b"digest\x94C\x10";

/// The pickled arguments begin with the digest, after the instructions for the protocol, a frame and a dictionary.
const DIGEST_END: usize = 64;

/// A series as Polars passes it: a field, and chunks that it describes.
#[repr(C)]
struct SeriesExport {
    field: *mut FFI_ArrowSchema,
    arrays: *mut *mut FFI_ArrowArray,
    len: usize,
    /// Frees the structures, but releases no array: the receiver moves arrays out.
    release: Option<unsafe extern "C" fn(*mut SeriesExport)>,
    private_data: *mut c_void,
}

impl Drop for SeriesExport {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the creator set the function for this series, and clears it when it has been called.
            unsafe { release(self) }
        }
    }
}

/// What a series of ours owns.
struct Owned {
    _field: Box<FFI_ArrowSchema>,
    arrays: Box<[*mut FFI_ArrowArray]>,
}

/// Frees the structures of a series that [`give`] made.
unsafe extern "C" fn release(series: *mut SeriesExport) {
    // SAFETY: the receiver passes the series that it got, once.
    let series = unsafe { &mut *series };
    // SAFETY: `give` made both from boxes.
    let owned = unsafe { Box::from_raw(series.private_data.cast::<Owned>()) };
    for array in &owned.arrays {
        // SAFETY: as above. The receiver has moved the array out, so that it is not dropped.
        drop(unsafe { Box::from_raw(array.cast::<ManuallyDrop<FFI_ArrowArray>>()) });
    }
    series.release = None;
}

/// A series that was taken.
struct Series {
    name: String,
    text: TextRows,
    chunks: Vec<ArrayRef>,
}

impl Series {
    /// Returns the chunks as one array.
    fn array(&self) -> PyResult<ArrayRef> {
        match &self.chunks[..] {
            [only] => Ok(only.clone()),
            chunks => concat(&chunks.iter().map(AsRef::as_ref).collect::<Vec<_>>()).map_err(arrow_error),
        }
    }

    /// Returns an array of values of this series.
    fn values(&self, array: ArrayRef) -> Values {
        Values { array, text: self.text.clone() }
    }
}

/// Takes over a series that Polars passed. Text is taken as bytes.
///
/// # Safety
/// `series` is valid by the interface.
unsafe fn take_series(series: SeriesExport) -> PyResult<Series> {
    // SAFETY: a series has `len` chunks, which its field describes. `from_raw` moves them out.
    let (field, arrays) = unsafe {
        let arrays = std::slice::from_raw_parts(series.arrays, series.len).iter();
        (&*series.field, arrays.map(|array| FFI_ArrowArray::from_raw(*array)).collect::<Vec<_>>())
    };
    // Polars gives arrays without a type a buffer that Arrow does not.
    let kind = DataType::try_from(field).map_err(arrow_error)?;
    let is_null = kind == DataType::Null;
    let import = |array: FFI_ArrowArray| match is_null {
        true => Ok(new_null_array(&DataType::Null, array.len())),
        // SAFETY: as above.
        false => unsafe { import_parts(array, field) }.map(|imported| make_array(imported.data)),
    };
    let chunks = arrays.into_iter().map(import).collect::<PyResult<_>>()?;
    Ok(Series { name: field.name().unwrap_or_default().to_string(), text: TextRows::of(&kind), chunks })
}

/// Makes a series of arrays of one type.
fn give(name: &str, kind: &DataType, chunks: &[ArrayRef]) -> PyResult<SeriesExport> {
    let field = Field::new(name, kind.clone(), true);
    let mut field = Box::new(FFI_ArrowSchema::try_from(field).map_err(arrow_error)?);
    let export = |chunk: &ArrayRef| Box::into_raw(Box::new(FFI_ArrowArray::new(&chunk.to_data())));
    let mut arrays: Box<[_]> = chunks.iter().map(export).collect();
    Ok(SeriesExport {
        field: &raw mut *field,
        arrays: arrays.as_mut_ptr(),
        len: arrays.len(),
        release: Some(release),
        private_data: Box::into_raw(Box::new(Owned { _field: field, arrays })).cast(),
    })
}

/// An engine in the cache.
struct CachedEngine {
    digest: KeyBytes,
    /// Length of its pickled arguments in bytes.
    len: usize,
    engine: Arc<Engine>,
}

/// Engines of expressions by digest, the last used one first.
static CACHE: Mutex<VecDeque<CachedEngine>> = Mutex::new(VecDeque::new());

/// Returns the digest of pickled arguments: the one that they begin with, or a digest of all their bytes if they do not begin
/// with one. Polars calls once per chunk, and comparing or hashing 25 MB of equivalences takes milliseconds.
fn digest_of(pickled: &[u8]) -> KeyBytes {
    let head = &pickled[..pickled.len().min(DIGEST_END)];
    let at = head.windows(BEFORE_DIGEST.len()).position(|window| window == BEFORE_DIGEST);
    let digest = at.and_then(|at| head[at + BEFORE_DIGEST.len()..].first_chunk());
    digest.copied().unwrap_or_else(|| KeyAlgorithm::Xxh3.key(pickled))
}

/// Returns the engine of an expression from its pickled arguments, and caches it.
fn engine(pickled: &[u8]) -> PyResult<Arc<Engine>> {
    let digest = digest_of(pickled);
    if let Some(engine) = cached(&digest) {
        return Ok(engine);
    }
    // The lock is not held meanwhile: the thread that holds the interpreter may wait for it.
    let engine = Python::attach(|py| -> PyResult<_> {
        let arguments = py.import("pickle")?.call_method1("loads", (PyBytes::new(py, pickled),))?;
        Ok(arguments.get_item("canonicalizer")?.cast::<Canonicalizer>()?.get().0.clone())
    })?;
    insert(CachedEngine { digest, len: pickled.len(), engine: engine.clone() });
    Ok(engine)
}

/// Returns a cached engine, which becomes the last used one.
fn cached(digest: &KeyBytes) -> Option<Arc<Engine>> {
    let mut cache = lock(&CACHE);
    let place = cache.iter().position(|entry| entry.digest == *digest)?;
    let entry = cache.remove(place)?;
    let engine = entry.engine.clone();
    cache.push_front(entry);
    Some(engine)
}

/// Inserts an engine into the cache, and removes the least recently used ones that exceed its limits.
fn insert(entry: CachedEngine) {
    let mut cache = lock(&CACHE);
    // Another thread may have inserted it meanwhile.
    cache.retain(|other| other.digest != entry.digest);
    cache.push_front(entry);
    let lens = cache.iter().scan(0, |sum, entry| {
        *sum += entry.len;
        Some(*sum)
    });
    let count = lens.take(MAX_CACHED).take_while(|sum| *sum <= MAX_CACHED_LEN).count();
    let removed = cache.split_off(count.max(1));
    // Freeing equivalences takes time, and other threads need not wait for it.
    drop(cache);
    drop(removed);
}

/// Returns an array with `len` values: Polars passes a literal as a series of one value.
fn broadcast(array: ArrayRef, len: usize) -> PyResult<ArrayRef> {
    match array.len() {
        found if found == len => Ok(array),
        1 => take(&array, &UInt32Array::from(vec![0; len]), None).map_err(arrow_error),
        found => Err(PyValueError::new_err(format!("base has {found} values; expected {len}, one per URL"))),
    }
}

/// Computes the series of an expression.
fn compute(series: &[Series], pickled: &[u8]) -> PyResult<SeriesExport> {
    let engine = engine(pickled)?;
    let column = engine.schema.field(0);
    let answer = |urls, others| Operands { urls, others }.answer(&engine, column.name(), Signals::Left);
    let chunks = match series {
        [urls] => {
            urls.chunks.iter().map(|chunk| answer(urls.values(chunk.clone()), Vec::new())).collect::<PyResult<_>>()?
        }
        [urls, bases] => {
            let (texts, base_texts) = (urls.array()?, bases.array()?);
            let len = if texts.len() == 1 { base_texts.len() } else { texts.len() };
            let base_values = bases.values(broadcast(base_texts, len)?);
            vec![answer(urls.values(broadcast(texts, len)?), vec![("base", base_values)])?]
        }
        _ => return Err(PyValueError::new_err(format!("found {} arguments; expected 1 or 2", series.len()))),
    };
    give(&series[0].name, column.data_type(), &chunks)
}

/// Returns the field of an expression, after a check of the types of its arguments.
fn field(arguments: &[FFI_ArrowSchema], pickled: &[u8]) -> PyResult<FFI_ArrowSchema> {
    for argument in arguments {
        let kind = DataType::try_from(argument).map_err(arrow_error)?;
        let name = argument.name().unwrap_or_default();
        Column::check(&kind, &format_args!("column {name:?}"))?;
    }
    let name = arguments.first().and_then(FFI_ArrowSchema::name).unwrap_or_default();
    let kind = engine(pickled)?.schema.field(0).data_type().clone();
    FFI_ArrowSchema::try_from(Field::new(name, kind, true)).map_err(arrow_error)
}

thread_local! {
    /// The message of the last error on this thread.
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// Runs a function; keeps the message if it fails, also by a panic.
fn catch<T>(function: impl FnOnce() -> PyResult<T>) -> Option<T> {
    let panicked = |_| Err(PyRuntimeError::new_err("irikey panicked; this is a bug in irikey"));
    catch_unwind(AssertUnwindSafe(function)).unwrap_or_else(panicked).map_err(keep_message).ok()
}

fn keep_message(error: PyErr) {
    let message = Python::attach(|py| error.value(py).to_string());
    LAST_ERROR.set(CString::new(message.replace('\0', "")).unwrap_or_default());
}

/// # Safety
/// The arguments are those of the interface: `len` series, which the function takes over, a pickled dictionary, and the place
/// of the result, which is written only if there is one.
unsafe fn write_series(series: *mut SeriesExport, len: usize, pickled: &[u8], result: *mut SeriesExport) {
    let found = catch(|| {
        // SAFETY: by the contract of this function; each series is read once.
        let series: Vec<_> = (0..len).map(|at| unsafe { series.add(at).read() }).collect();
        // SAFETY: as above.
        let taken = series.into_iter().map(|series| unsafe { take_series(series) }).collect::<Vec<_>>();
        compute(&taken.into_iter().collect::<PyResult<Vec<_>>>()?, pickled)
    });
    if let Some(found) = found {
        // SAFETY: the place holds an empty series, which need not be dropped.
        unsafe { result.write(found) }
    }
}

#[unsafe(no_mangle)]
extern "C" fn _polars_plugin_get_version() -> u32 {
    VERSION
}

#[unsafe(no_mangle)]
extern "C" fn _polars_plugin_get_last_error_message() -> *const c_char {
    LAST_ERROR.with_borrow(|message| message.as_ptr())
}

/// Computes the series of the expression `irikey`.
#[unsafe(no_mangle)]
unsafe extern "C" fn _polars_plugin_irikey(
    series: *mut SeriesExport,
    len: usize,
    pickled: *const u8,
    pickled_len: usize,
    result: *mut SeriesExport,
    _context: *const c_void,
) {
    // SAFETY: Polars passes what the interface demands.
    unsafe { write_series(series, len, std::slice::from_raw_parts(pickled, pickled_len), result) }
}

/// Returns the field of the expression `irikey`.
#[unsafe(no_mangle)]
unsafe extern "C" fn _polars_plugin_field_irikey(
    fields: *const FFI_ArrowSchema,
    len: usize,
    result: *mut FFI_ArrowSchema,
    pickled: *const u8,
    pickled_len: usize,
) {
    // SAFETY: Polars passes what the interface demands.
    let (fields, pickled) =
        unsafe { (std::slice::from_raw_parts(fields, len), std::slice::from_raw_parts(pickled, pickled_len)) };
    if let Some(found) = catch(|| field(fields, pickled)) {
        // SAFETY: the place holds an empty field, which need not be dropped.
        unsafe { result.write(found) }
    }
}
