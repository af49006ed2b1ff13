//! [`Canonicalizer`]: a configuration, reusable buffers, and counters. Threads may share it: each call takes buffers from a pool
//! and returns them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch, RecordBatchOptions};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ffi_stream::RecordBatchStreamReader;
use arrow::pyarrow::FromPyArrow;
use irikey::batch::{BatchBuilder, SourceRun};
use irikey::canon::{Canonicalizer as Core, Policy, Rows, Tally};
use irikey::iri::{CLASSIFIER, Changes, FaultKind, Flags};
use irikey::kernel::Bitmaps;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::answer::{Batch, Table};
use crate::configuration::{Configuration, Types};
use crate::intake::{CHUNK_LEN, Inputs, MOST_TEXT, Scratch, null_where};
use crate::schema::{Schema, answer_schema, arrow_error};

/// Computes canonical URIs and keys for columns of URLs.
#[pyclass(frozen, module = "irikey")]
pub struct Canonicalizer {
    configuration: Configuration,
    policy: Policy,
    builder: BatchBuilder,
    schema: SchemaRef,
    types: Types,
    idle: Mutex<Vec<Worker>>,
    counted: Mutex<Counted>,
}

/// The buffers of one call.
struct Worker {
    core: Core,
    bitmaps: Bitmaps,
    scratch: Scratch,
}

#[derive(Clone, Default)]
struct Counted {
    tally: Tally,
    nulls: u64,
}

/// Locks a mutex even if it is poisoned: a panic leaves no partial update, because counters are added at once.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl Canonicalizer {
    #[new]
    #[pyo3(signature = (*, url="url".to_string(), base=None, charset=None, query_charset=None, key="scheme".to_string(), columns=None,
        base_uri=None, strict=false, drop_fragment=false, literal_base=false, assume_scheme=None,
        profile="rfc3987".to_string(), key_hash="xxh3".to_string(), types="arrow".to_string(), equivalences=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python, each with its default")]
    fn new(
        url: String,
        base: Option<String>,
        charset: Option<String>,
        query_charset: Option<String>,
        key: String,
        columns: Option<Vec<String>>,
        base_uri: Option<String>,
        strict: bool,
        drop_fragment: bool,
        literal_base: bool,
        assume_scheme: Option<String>,
        profile: String,
        key_hash: String,
        types: String,
        equivalences: Option<Vec<u8>>,
    ) -> PyResult<Canonicalizer> {
        let configuration = Configuration {
            url,
            base,
            charset,
            query_charset,
            key,
            columns,
            base_uri,
            strict,
            drop_fragment,
            literal_base,
            assume_scheme,
            profile,
            key_hash,
            types,
            equivalences: equivalences.map(Arc::from),
        };
        let (policy, columns, types) = (configuration.policy()?, configuration.columns()?, configuration.types()?);
        let metadata: Vec<_> =
            policy.describe().into_iter().map(|(name, value)| (format!("irikey.{name}"), value)).collect();
        Ok(Canonicalizer {
            builder: BatchBuilder::new(columns.clone(), &metadata, &policy, &[String::new()]),
            schema: answer_schema(&columns, &metadata, types),
            types,
            idle: Mutex::new(Vec::new()),
            counted: Mutex::new(Counted::default()),
            policy,
            configuration,
        })
    }

    /// Returns one row per row of a batch (an object with `__arrow_c_array__`), or of a table or stream (one with
    /// `__arrow_c_stream__`); null if the URL is null.
    fn canonicalize<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if data.hasattr("__arrow_c_array__")? {
            let batch = RecordBatch::from_pyarrow_bound(data)?;
            let mut batches = py.detach(|| self.answer(&batch))?;
            return match batches.len() {
                1 => Ok(Bound::new(py, Batch(batches.remove(0)))?.into_any()),
                _ => Ok(Bound::new(py, Table { batches, schema: self.schema.clone() })?.into_any()),
            };
        }
        if !data.hasattr("__arrow_c_stream__")? {
            let kind = data.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "{kind} is not Arrow data: it has neither __arrow_c_array__ nor __arrow_c_stream__"
            )));
        }
        let reader = RecordBatchStreamReader::from_pyarrow_bound(data)?;
        let mut batches = Vec::new();
        // A stream of another library may need the interpreter to produce its next batch, so the loop holds it.
        for batch in reader {
            let batch = batch.map_err(arrow_error)?;
            batches.extend(py.detach(|| self.answer(&batch))?);
        }
        Ok(Bound::new(py, Table { batches, schema: self.schema.clone() })?.into_any())
    }

    fn __call__<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.canonicalize(py, data)
    }

    /// The counters since the object was created: `rows` = `unchanged` + `changed` + `faulty` + `nulls`; `faults`, `flags`
    /// and `changes` by name.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Counted { tally, nulls } = lock(&self.counted).clone();
        let counters = PyDict::new(py);
        let counts = [
            ("rows", tally.rows),
            ("unchanged", tally.unchanged),
            ("changed", tally.changed),
            ("faulty", tally.faulty),
            ("nulls", nulls),
        ];
        for (name, count) in counts {
            counters.set_item(name, count)?;
        }
        let named = |names: Vec<&'static str>, counts: &[u64]| {
            let these = PyDict::new(py);
            for (name, count) in names.into_iter().zip(counts).filter(|(_, count)| **count > 0) {
                these.set_item(name, count)?;
            }
            PyResult::Ok(these)
        };
        counters.set_item("faults", named(FaultKind::ALL.map(FaultKind::name).to_vec(), &tally.faults)?)?;
        counters.set_item("flags", named(Flags::ALL.iter().map(|flag| flag.1).collect(), &tally.flags)?)?;
        counters.set_item("changes", named(Changes::ALL.iter().map(|change| change.1).collect(), &tally.changes)?)?;
        Ok(counters)
    }

    /// The columns of results.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
    }

    /// The options of the constructor.
    #[getter]
    fn configuration<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.configuration.arguments(py)
    }

    /// Pickles the configuration; the counters of a copy begin at 0.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::empty(py), self.configuration.arguments(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("irikey.Canonicalizer(**{})", self.configuration.arguments(py)?.repr()?))
    }
}

impl Canonicalizer {
    /// Returns the result for a batch: several batches if the text is too long for one.
    fn answer(&self, batch: &RecordBatch) -> PyResult<Vec<RecordBatch>> {
        let inputs = Inputs::of(batch, &self.configuration)?;
        let idle = lock(&self.idle).pop();
        let mut worker = idle.unwrap_or_else(|| Worker {
            core: Core::new(&self.policy),
            bitmaps: Bitmaps::default(),
            scratch: Scratch::default(),
        });
        let mut answers = Vec::new();
        let (mut from, count) = (0, batch.num_rows());
        while from < count || answers.is_empty() {
            let to = inputs.url.cut(from, count, MOST_TEXT);
            answers.push(self.answer_rows(&mut worker, &inputs, from, to)?);
            from = to;
        }
        lock(&self.idle).push(worker);
        Ok(answers)
    }

    fn answer_rows(&self, worker: &mut Worker, inputs: &Inputs, from: usize, to: usize) -> PyResult<RecordBatch> {
        let text_len = inputs.url.text_len(from, to);
        if text_len > MOST_TEXT {
            return Err(PyValueError::new_err(format!(
                "row {from}: the URL has {text_len} bytes; the limit is {MOST_TEXT}"
            )));
        }
        let mut rows = Rows::new(self.policy.more_keys.len());
        rows.reserve(to - from, text_len);
        let mut at = from;
        while at < to {
            let end = inputs.url.cut(at, to, CHUNK_LEN);
            let records = worker.scratch.records(inputs, at, end);
            worker.bitmaps.classify(records.text, &CLASSIFIER);
            worker.core.append(&records, &worker.bitmaps, &mut rows);
            at = end;
        }
        if self.configuration.is_protocol() {
            rows.key.clone_from(&rows.protocol);
        }
        let nulls = inputs.url.nulls().map(|nulls| nulls.slice(from, to - from));
        self.count(&rows.tally, nulls.as_ref());
        let run = SourceRun { source: 0, first_record: 1, rows: (to - from) as u32 };
        let batch = self.builder.build(&mut rows, &[run]).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let options = RecordBatchOptions::new().with_row_count(Some(to - from));
        let arrays = batch.columns().iter().map(|array| self.typed(array.clone(), nulls.as_ref()));
        let arrays = arrays.collect::<PyResult<Vec<_>>>()?;
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options).map_err(arrow_error)
    }

    /// Adds the counters of a batch. A null is not a record, but the core has counted it as an empty one.
    fn count(&self, tally: &Tally, nulls: Option<&NullBuffer>) {
        let nulls = nulls.map_or(0, |nulls| nulls.null_count() as u64);
        let mut counted = lock(&self.counted);
        counted.tally.add(tally);
        counted.nulls += nulls;
        counted.tally.faulty -= nulls;
        counted.tally.faults[FaultKind::Empty as usize] -= nulls;
    }

    /// Returns a column with the nulls of the URLs and the requested types.
    fn typed(&self, array: ArrayRef, nulls: Option<&NullBuffer>) -> PyResult<ArrayRef> {
        let array = null_where(array, nulls)?;
        if self.types == Types::Arrow {
            return Ok(array);
        }
        match array.data_type() {
            DataType::FixedSizeBinary(width) => {
                let keys = array.as_fixed_size_binary();
                let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(*width as usize, keys.len()));
                let bytes: Buffer = keys.values().clone();
                Ok(Arc::new(BinaryArray::try_new(offsets, bytes, keys.nulls().cloned()).map_err(arrow_error)?))
            }
            kind => match crate::schema::spark_type(kind) {
                to if to == *kind => Ok(array),
                to => cast(&array, &to).map_err(arrow_error),
            },
        }
    }
}
