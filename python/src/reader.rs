//! Results of readers: [`Reader`] computes each batch when it is read, so that memory is bounded by one batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::answer::Batch;
use crate::engine::{Engine, Signals, lock};
use crate::schema::{Schema, arrow_error, schema_capsule};

/// The results for the batches of a stream.
pub struct Answers {
    engine: Arc<Engine>,
    source: RecordBatchStreamReader,
    pending: VecDeque<RecordBatch>,
}

impl Answers {
    pub fn new(engine: Arc<Engine>, source: RecordBatchStreamReader) -> Answers {
        Answers { engine, source, pending: VecDeque::new() }
    }

    /// Returns the next batch. The interpreter must not be held: the source may need it in another thread.
    fn next_batch(&mut self, signals: Signals) -> PyResult<Option<RecordBatch>> {
        while self.pending.is_empty() {
            let Some(batch) = self.source.next() else { return Ok(None) };
            self.pending.extend(self.engine.answer(&batch.map_err(arrow_error)?, signals)?);
        }
        Ok(self.pending.pop_front())
    }
}

impl Iterator for Answers {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // A consumer may call with or without the interpreter.
        let next = Python::attach(|py| py.detach(|| self.next_batch(Signals::Left)));
        next.map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl RecordBatchReader for Answers {
    fn schema(&self) -> SchemaRef {
        self.engine.schema.clone()
    }
}

/// Batches that are computed as they are read, once: pyarrow.RecordBatchReader.from_stream(reader), or iterate over it.
#[pyclass(frozen, module = "irikey")]
pub struct Reader {
    answers: Mutex<Option<Answers>>,
    schema: SchemaRef,
}

impl Reader {
    pub fn new(answers: Answers) -> Reader {
        Reader { schema: answers.schema(), answers: Mutex::new(Some(answers)) }
    }
}

#[pymethods]
impl Reader {
    /// The remaining batches as a stream, which takes them away from this object.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let taken = py.detach(|| lock(&self.answers).take());
        let answers = taken
            .ok_or_else(|| PyValueError::new_err("this reader was read already; canonicalize its source again"))?;
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(answers)), c"arrow_array_stream")
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

    fn __iter__(reader: PyRef<'_, Self>) -> PyRef<'_, Self> {
        reader
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let next = py.detach(|| match &mut *lock(&self.answers) {
            Some(answers) => answers.next_batch(Signals::Handled),
            None => Ok(None),
        })?;
        Ok(next.map(Batch))
    }

    fn __repr__(&self) -> String {
        format!("irikey.Reader({} columns)", self.schema.fields().len())
    }
}
