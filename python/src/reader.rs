//! Results of readers: [`Reader`] computes each batch when it is read, so that memory is bounded by one batch.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use pyo3::exceptions::{PyMemoryError, PyNotImplementedError, PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::answer::{AnswerSchema, Batch, Capsule, Requested, stream_capsule};
use crate::engine::{Engine, Signals, lock};
use crate::import::Imported;
use crate::intake::Inputs;
use crate::stream::Stream;

/// The results for the batches of a stream.
pub struct Answers {
    engine: Arc<Engine>,
    source: Stream,
    /// The batch that was read last, until it has results: a signal handler may raise an exception before.
    current: Option<Imported>,
    pending: VecDeque<RecordBatch>,
}

impl Answers {
    pub fn new(engine: Arc<Engine>, source: Stream) -> Answers {
        Answers { engine, source, current: None, pending: VecDeque::new() }
    }

    /// Returns the next batch; after an error that is not one of the source, the next call tries the same batch again. The
    /// interpreter must not be held: the source may need it in another thread.
    fn next_batch(&mut self, signals: Signals) -> PyResult<Option<RecordBatch>> {
        if self.pending.is_empty() {
            if self.current.is_none() {
                self.current = self.source.next_batch()?;
            }
            let Some(batch) = &self.current else { return Ok(None) };
            let inputs = Inputs::of_imported(&self.engine.configuration, batch)?;
            self.pending.extend(self.engine.answer(&inputs, signals)?);
            self.current = None;
        }
        Ok(self.pending.pop_front())
    }
}

impl Iterator for Answers {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // A consumer may call with or without the interpreter.
        let next = Python::attach(|py| py.detach(|| self.next_batch(Signals::Left)));
        next.map_err(stream_error).transpose()
    }
}

/// Returns an exception as an error whose number in a stream of C tells its class.
fn stream_error(error: PyErr) -> ArrowError {
    let message = error.to_string();
    Python::attach(|py| match error {
        error if error.is_instance_of::<PyOSError>(py) => ArrowError::IoError(message, std::io::Error::other(error)),
        error if error.is_instance_of::<PyMemoryError>(py) => ArrowError::MemoryError(message),
        error if error.is_instance_of::<PyNotImplementedError>(py) => ArrowError::NotYetImplemented(message),
        error => ArrowError::ExternalError(Box::new(error)),
    })
}

impl RecordBatchReader for Answers {
    fn schema(&self) -> SchemaRef {
        self.engine.schema.clone()
    }
}

/// Batches that are computed as they are read, once: pyarrow.RecordBatchReader.from_stream(reader), or iterate over it.
#[pyclass(frozen, extends = AnswerSchema, module = "irikey")]
pub struct Reader(Mutex<Option<Answers>>);

impl Reader {
    pub fn of(answers: Answers) -> PyClassInitializer<Reader> {
        PyClassInitializer::from(AnswerSchema(answers.schema())).add_subclass(Reader(Mutex::new(Some(answers))))
    }
}

#[pymethods]
impl Reader {
    /// The remaining batches as a stream, which takes them away from this object.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(&self, py: Python<'py>, requested_schema: Option<Requested>) -> Capsule<'py> {
        let taken = py.detach(|| lock(&self.0).take());
        let read = || PyValueError::new_err("this reader was read already; canonicalize its source again");
        stream_capsule(py, requested_schema, taken.ok_or_else(read)?)
    }

    fn __iter__(reader: PyRef<'_, Self>) -> PyRef<'_, Self> {
        reader
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Batch>>> {
        let next = py.detach(|| match &mut *lock(&self.0) {
            Some(answers) => answers.next_batch(Signals::Handled),
            None => Ok(None),
        })?;
        next.map(|batch| Bound::new(py, Batch::of(batch))).transpose()
    }

    fn __repr__(reader: PyRef<'_, Self>) -> String {
        format!("irikey.Reader({} columns)", reader.as_super().0.fields().len())
    }
}
