//! Imports arrays through the Arrow PyCapsule interface. Text is imported as bytes: URLs need not be UTF-8, so that it is not
//! checked. [`Imported`] keeps which values were text.

use std::sync::Arc;

use arrow::array::{ArrayData, ArrayRef, make_array};
use arrow::datatypes::{DataType, Field, Fields};
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::aligned::aligned;
use crate::column::{Column, TextRows, Values, without_encoding};
use crate::plain::plain_column;
use crate::schema::arrow_error;

/// Arrow data that an object exports and that is not imported yet.
pub struct Exported<'py> {
    schema: Bound<'py, PyCapsule>,
    array: Arc<FFI_ArrowArray>,
}

/// Returns what an object with `__arrow_c_array__` exports; `None` if it has no such method.
///
/// # Errors
/// The method fails, or does not return the capsules of a schema and an array, or another consumer took what they held.
pub fn export<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Exported<'py>>> {
    let Some(method) = value.getattr_opt(intern!(value.py(), "__arrow_c_array__"))? else { return Ok(None) };
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = method.call0()?.extract()?;
    let is_schema_released = schema_in(&schema)?.release().is_none();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: a capsule with this name holds this structure, by the PyCapsule interface, and lives until this function ends.
    // `from_raw` moves the array out of its capsule, which then releases nothing.
    #[expect(unsafe_code, reason = "the interface passes structures of C")]
    let array = Arc::new(unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) });
    if is_schema_released || array.is_released() {
        return Err(PyValueError::new_err("the Arrow data was read already; export it again"));
    }
    Ok(Some(Exported { schema, array }))
}

fn schema_in<'a>(capsule: &'a Bound<'_, PyCapsule>) -> PyResult<&'a FFI_ArrowSchema> {
    let schema = capsule.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    // SAFETY: a capsule with this name holds this structure, by the PyCapsule interface, and is borrowed as long.
    #[expect(unsafe_code, reason = "the interface passes structures of C")]
    Ok(unsafe { schema.as_ref() })
}

impl Exported<'_> {
    /// Returns a column of a batch without importing the batch; `None` if only [`Self::import`] can read it or explain why it
    /// cannot be read. See [`plain_column`].
    pub fn plain_column(&self, name: &str) -> Option<Column> {
        // SAFETY: array and schema are those of one object, which states that they describe each other.
        #[expect(unsafe_code, reason = "the interface passes structures of C")]
        unsafe {
            plain_column(&self.array, schema_in(&self.schema).ok()?, name)
        }
    }

    /// Imports the data. It is not validated: see [`checked`].
    ///
    /// # Errors
    /// The type cannot be imported, or a column still borrows the data.
    pub fn import(self) -> PyResult<Imported> {
        let array = Arc::into_inner(self.array).ok_or_else(|| PyRuntimeError::new_err("the Arrow data is in use"))?;
        // SAFETY: as in `plain_column`.
        #[expect(unsafe_code, reason = "the interface passes structures of C")]
        unsafe {
            import_parts(array, schema_in(&self.schema)?)
        }
    }
}

/// Imported data.
pub struct Imported {
    /// The data, with bytes instead of text.
    pub data: ArrayData,
    /// The type as the producer states it.
    stated: DataType,
}

impl Imported {
    /// Returns the columns as the producer states them; `None` if the data is no structure.
    pub fn fields(&self) -> Option<&Fields> {
        match &self.stated {
            DataType::Struct(fields) => Some(fields),
            _ => None,
        }
    }

    /// Returns the data as an array.
    ///
    /// # Errors
    /// As [`checked`].
    pub fn values(&self) -> PyResult<Values> {
        Ok(Values { array: checked(self.data.clone())?, text: TextRows::of(&self.stated) })
    }
}

/// Imports an array. The data is not validated: see [`checked`].
///
/// # Safety
/// The schema describes the array, and both are valid by the C data interface of Arrow. Buffers need not be aligned.
///
/// # Errors
/// The type cannot be imported.
#[expect(unsafe_code, reason = "the caller guarantees that the structures of C are valid")]
pub unsafe fn import_parts(array: FFI_ArrowArray, schema: &FFI_ArrowSchema) -> PyResult<Imported> {
    let stated = DataType::try_from(schema).map_err(arrow_error)?;
    // SAFETY: the buffers are those that the schema describes, and arrow reads none that is not aligned; arrays of text and
    // arrays of bytes have the same buffers.
    let data = unsafe { from_ffi_and_data_type(aligned(array, schema), as_bytes(&stated)) }.map_err(arrow_error)?;
    Ok(Imported { data, stated })
}

/// Returns the type with bytes instead of text, also in the columns of a structure.
fn as_bytes(kind: &DataType) -> DataType {
    let field = |field: &Arc<Field>| match as_bytes(field.data_type()) {
        bytes if bytes == *field.data_type() => field.clone(),
        bytes => Arc::new(field.as_ref().clone().with_data_type(bytes)),
    };
    match kind {
        DataType::Utf8 => DataType::Binary,
        DataType::LargeUtf8 => DataType::LargeBinary,
        DataType::Utf8View => DataType::BinaryView,
        DataType::Dictionary(keys, values) => DataType::Dictionary(keys.clone(), Box::new(as_bytes(values))),
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), field(values)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect::<Fields>()),
        other => other.clone(),
    }
}

/// Returns imported data as an array, with a value for each row instead of runs.
///
/// # Errors
/// An offset, a view or a key of a dictionary is outside the data.
pub fn checked(data: ArrayData) -> PyResult<ArrayRef> {
    data.validate_full().map_err(arrow_error)?;
    match data.data_type() {
        DataType::RunEndEncoded(..) => without_encoding(make_array(data)),
        _ => Ok(make_array(data)),
    }
}
