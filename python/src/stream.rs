//! Imports streams of batches through the Arrow PyCapsule interface: [`Stream`]. Arrow's own reader checks no offsets, and reads
//! them even if they are not aligned.

use std::ffi::{CStr, c_int};
use std::io::{self, ErrorKind};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use pyo3::exceptions::{PyMemoryError, PyNotImplementedError, PyOSError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::import::{Imported, import_parts};

/// A stream of another library.
pub struct Stream {
    stream: FFI_ArrowArrayStream,
    /// The schema as the stream states it.
    stated: FFI_ArrowSchema,
    pub schema: SchemaRef,
}

impl Drop for Stream {
    /// Releases the stream without the interpreter: the source may wait for another thread that needs it.
    fn drop(&mut self) {
        let stream = std::mem::replace(&mut self.stream, FFI_ArrowArrayStream::empty());
        // While the interpreter ends, threads cannot attach to it, and the closure is dropped with the stream.
        Python::try_attach(move |py| py.detach(move || drop(stream)));
    }
}

impl Stream {
    /// Returns the stream that an object with `__arrow_c_stream__` exports.
    ///
    /// # Errors
    /// The method fails, or does not return the capsule of a stream; the stream has no schema, or has values that are not
    /// batches.
    pub fn of(value: &Bound<'_, PyAny>) -> PyResult<Stream> {
        let capsule: Bound<'_, PyCapsule> = value.call_method0(intern!(value.py(), "__arrow_c_stream__"))?.extract()?;
        let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule with this name holds this structure, by the PyCapsule interface, and lives until this function
        // ends. `from_raw` moves the stream out of its capsule, which then releases nothing.
        #[expect(unsafe_code, reason = "the interface passes structures of C")]
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
        let (stated, schema) = (FFI_ArrowSchema::empty(), Arc::new(Schema::empty()));
        let mut stream = Stream { stream, stated, schema };
        value.py().detach(|| stream.read_schema())?;
        Ok(stream)
    }

    fn read_schema(&mut self) -> PyResult<()> {
        let get_schema = self.stream.get_schema().filter(|_| self.stream.release().is_some());
        let get_schema = get_schema.ok_or_else(|| PyValueError::new_err("the stream was read already"))?;
        // SAFETY: the function is that of this stream, which is not released, and the schema is an empty structure.
        #[expect(unsafe_code, reason = "the interface passes structures of C")]
        let status = unsafe { get_schema(&raw mut self.stream, &raw mut self.stated) };
        check(status, &mut self.stream, "the schema")?;
        self.schema = Arc::new(schema_of(&self.stated)?);
        Ok(())
    }

    /// Returns the next batch, a structure. It is not validated. The interpreter must not be held: the source may need it in
    /// another thread.
    ///
    /// # Errors
    /// The source fails, or its batch has fewer buffers or columns than its schema states: arrow panics then. Other types cannot
    /// be recognized here, because a stream states them once. Those of pyarrow's readers are compared before.
    pub fn next_batch(&mut self) -> PyResult<Option<Imported>> {
        let unlike = |_| {
            Err(PyValueError::new_err(
                "data: a batch of the stream does not have the columns and types of the stream's schema; \
                 give every batch the schema that the reader states",
            ))
        };
        catch_unwind(AssertUnwindSafe(|| self.import_next())).unwrap_or_else(unlike)
    }

    fn import_next(&mut self) -> PyResult<Option<Imported>> {
        let Some(get_next) = self.stream.get_next() else { return Ok(None) };
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: the function is that of this stream, which is not released, and the array is an empty structure.
        #[expect(unsafe_code, reason = "the interface passes structures of C")]
        let status = unsafe { get_next(&raw mut self.stream, &raw mut array) };
        check(status, &mut self.stream, "the next batch")?;
        if array.is_released() {
            return Ok(None);
        }
        // SAFETY: the stream states that this schema describes its arrays.
        #[expect(unsafe_code, reason = "the interface passes structures of C")]
        unsafe { import_parts(array, &self.stated) }.map(Some)
    }
}

/// Returns the schema of batches.
///
/// # Errors
/// `TypeError` if the values of the stream have no columns, `ValueError` if a column has a type that cannot be imported.
fn schema_of(stated: &FFI_ArrowSchema) -> PyResult<Schema> {
    if stated.format() == "+s" {
        return Schema::try_from(stated).map_err(|error| {
            let field = stated.children().find(|field| DataType::try_from(*field).is_err());
            let name = field.and_then(FFI_ArrowSchema::name).unwrap_or_default();
            PyValueError::new_err(format!("data: the type of column {name:?} cannot be read; drop or cast it: {error}"))
        });
    }
    let kind = DataType::try_from(stated).map_or_else(|_| stated.format().to_string(), |kind| kind.to_string());
    Err(PyTypeError::new_err(format!(
        "data: the stream has no columns, but values of the type {kind}; pass a table, or an array or list of URLs"
    )))
}

/// Returns an error with the message of the producer if a function of the stream has failed. Its class is that of the status, a
/// number of an error of the system. The interface passes only these two: an exception that Python code of the producer raised,
/// also `KeyboardInterrupt`, is no longer pending and cannot be raised again.
fn check(status: c_int, stream: &mut FFI_ArrowArrayStream, what: &str) -> PyResult<()> {
    if status == 0 {
        return Ok(());
    }
    let message = stream.get_last_error().and_then(|get_last_error| {
        // SAFETY: the function is that of this stream, whose last call has failed. Its text, if there is one, is a C string
        // that lives until the next call.
        #[expect(unsafe_code, reason = "the interface passes structures of C")]
        unsafe {
            let message = get_last_error(stream);
            (!message.is_null()).then(|| CStr::from_ptr(message).to_string_lossy().into_owned())
        }
    });
    let message = message.unwrap_or_else(|| format!("error {status}"));
    let message = format!("data: the stream cannot return {what}: {message}");
    Err(match io::Error::from_raw_os_error(status).kind() {
        ErrorKind::InvalidInput => PyValueError::new_err(message),
        ErrorKind::OutOfMemory => PyMemoryError::new_err(message),
        ErrorKind::Unsupported => PyNotImplementedError::new_err(message),
        // With a number, OSError chooses its subclass.
        _ => PyOSError::new_err((status, message)),
    })
}
