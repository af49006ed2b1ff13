//! Results for Python: [`Batch`] and [`Table`], which any library accepts that implements the Arrow PyCapsule interface
//! (pyarrow, polars, duckdb, pandas, nanoarrow).

use arrow::array::{Array, ArrayData, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow::ffi_stream::FFI_ArrowArrayStream;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::schema::{Schema, arrow_error, schema_capsule};

/// What the results of batches have in common: their schema.
#[pyclass(frozen, subclass, module = "irikey", name = "_Rows")]
#[derive(Debug)]
pub struct AnswerSchema(pub SchemaRef);

#[pymethods]
impl AnswerSchema {
    /// The Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }

    /// The columns and their types.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.clone())
    }
}

/// A record batch: `pyarrow.record_batch(batch)`, `polars.DataFrame(batch)`, `duckdb.sql("... FROM batch")`.
#[pyclass(frozen, extends = AnswerSchema, module = "irikey")]
#[derive(Debug)]
pub struct Batch(RecordBatch);

impl Batch {
    pub fn of(batch: RecordBatch) -> PyClassInitializer<Batch> {
        PyClassInitializer::from(AnswerSchema(batch.schema())).add_subclass(Batch(batch))
    }
}

#[pymethods]
impl Batch {
    /// The batch as a pair of capsules. A requested schema is ignored; consumers cast.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(&self, py: Python<'py>, requested_schema: Option<Requested>) -> Capsules<'py> {
        let schema = FFI_ArrowSchema::try_from(self.0.schema().as_ref());
        array_capsules(py, requested_schema, schema, &StructArray::from(self.0.clone()).to_data())
    }

    /// The batch as a stream with one batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(&self, py: Python<'py>, requested_schema: Option<Requested>) -> Capsule<'py> {
        let batches = RecordBatchIterator::new([Ok(self.0.clone())], self.0.schema());
        stream_capsule(py, requested_schema, batches)
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("irikey.Batch({} rows, {} columns)", self.0.num_rows(), self.0.num_columns())
    }
}

/// Record batches with one schema: `pyarrow.table(rows)`, `polars.DataFrame(rows)`, `duckdb.sql("... FROM rows")`.
#[pyclass(frozen, extends = AnswerSchema, module = "irikey")]
#[derive(Debug)]
pub struct Table {
    batches: Vec<RecordBatch>,
    schema: SchemaRef,
}

impl Table {
    pub fn of(batches: Vec<RecordBatch>, schema: SchemaRef) -> PyClassInitializer<Table> {
        PyClassInitializer::from(AnswerSchema(schema.clone())).add_subclass(Table { batches, schema })
    }
}

#[pymethods]
impl Table {
    /// The table as a stream of its batches.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(&self, py: Python<'py>, requested_schema: Option<Requested>) -> Capsule<'py> {
        let batches = self.batches.clone().into_iter().map(Ok);
        stream_capsule(py, requested_schema, RecordBatchIterator::new(batches, self.schema.clone()))
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("irikey.Table({} rows, {} columns)", self.num_rows(), self.schema.fields().len())
    }
}

/// What `__arrow_c_stream__` returns.
pub type Capsule<'py> = PyResult<Bound<'py, PyCapsule>>;

/// What `__arrow_c_array__` returns: the capsules of a schema and an array.
pub type Capsules<'py> = PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)>;

/// The schema that a consumer requests of `__arrow_c_array__` or `__arrow_c_stream__`, any object. It has no effect, as the
/// interface allows: consumers cast.
#[derive(Clone, Copy)]
pub struct Requested;

impl<'py> FromPyObject<'_, 'py> for Requested {
    type Error = PyErr;

    fn extract(_: Borrowed<'_, 'py, PyAny>) -> PyResult<Requested> {
        Ok(Requested)
    }
}

/// Returns what `__arrow_c_array__` returns.
pub fn array_capsules<'py>(
    py: Python<'py>,
    _: Option<Requested>,
    schema: Result<FFI_ArrowSchema, ArrowError>,
    array: &ArrayData,
) -> Capsules<'py> {
    let schema = PyCapsule::new_with_value(py, schema.map_err(arrow_error)?, c"arrow_schema")?;
    Ok((schema, PyCapsule::new_with_value(py, FFI_ArrowArray::new(array), c"arrow_array")?))
}

/// Returns what `__arrow_c_stream__` returns.
pub fn stream_capsule(
    py: Python<'_>,
    _: Option<Requested>,
    batches: impl RecordBatchReader + Send + 'static,
) -> Capsule<'_> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
}
