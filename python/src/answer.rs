//! Results for Python: [`Batch`] and [`Table`], which any library accepts that implements the Arrow PyCapsule interface
//! (pyarrow, polars, duckdb, pandas, nanoarrow).

use arrow::array::{Array, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow::datatypes::SchemaRef;
use arrow::ffi::FFI_ArrowArray;
use arrow::ffi_stream::FFI_ArrowArrayStream;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::schema::{Schema, schema_capsule};

/// A record batch: `pyarrow.record_batch(batch)`, `polars.DataFrame(batch)`, `duckdb.sql("... FROM batch")`.
#[pyclass(frozen, module = "irikey")]
#[derive(Debug)]
pub struct Batch(pub RecordBatch);

#[pymethods]
impl Batch {
    /// The batch as a pair of capsules. A requested schema is ignored; consumers cast.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        let schema = schema_capsule(py, &self.0.schema())?;
        let array = FFI_ArrowArray::new(&StructArray::from(self.0.clone()).to_data());
        PyTuple::new(py, [schema, PyCapsule::new_with_value(py, array, c"arrow_array")?])
    }

    /// The batch as a stream with one batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        stream(py, vec![self.0.clone()], self.0.schema())
    }

    /// The Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }

    /// The columns and their types.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema())
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

/// Record batches with one schema: `pyarrow.table(table)`, `polars.DataFrame(table)`, `duckdb.sql("... FROM table")`.
#[pyclass(frozen, module = "irikey")]
#[derive(Debug)]
pub struct Table {
    pub batches: Vec<RecordBatch>,
    pub schema: SchemaRef,
}

#[pymethods]
impl Table {
    /// The table as a stream of its batches.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        stream(py, self.batches.clone(), self.schema.clone())
    }

    /// The Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The columns and their types.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
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

fn stream(py: Python<'_>, batches: Vec<RecordBatch>, schema: SchemaRef) -> PyResult<Bound<'_, PyCapsule>> {
    let batches: Box<dyn RecordBatchReader + Send> =
        Box::new(RecordBatchIterator::new(batches.into_iter().map(Ok), schema));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(batches), c"arrow_array_stream")
}
