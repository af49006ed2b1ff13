//! [`Engine`]: a configuration, reusable buffers, and counters. Threads share it: each call takes buffers from a pool and
//! returns them.

use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, RecordBatch};
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use irikey::batch::{BatchBuilder, SourceRun};
use irikey::canon::{Canonicalizer as Core, Policy, Rows, Tally};
use irikey::iri::{Component, Fault, FaultKind, find_scheme};
use irikey::kernel::Bitmaps;
use irikey::key::{Draft, KeyBytes};
use irikey::process::use_huge_pages;
use irikey::record::RecordBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::charsets::base_beside;
use crate::configuration::{Configuration, Outputs, RULES, Types};
use crate::intake::{CHUNK_LEN, Inputs, MAX_GROWTH, MOST_TEXT, Scratch, TEXT_LIMIT, null_where};
use crate::schema::{answer_batch, answer_schema, arrow_error, policy_metadata, spark_type};

/// How long a call works before it lets Python handle signals, such as Ctrl-C.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Longest text whose buffers are kept, in bytes. Only a single row is longer: of several rows that are processed together,
/// each of the four columns has at most [`CHUNK_LEN`].
const MAX_KEPT_LEN: usize = 4 * CHUNK_LEN;

/// A configured canonicalizer of batches.
pub struct Engine {
    pub configuration: Configuration,
    pub policy: Policy,
    /// The policy without its charset, which applies to some of the records: see [`crate::charsets`].
    core_policy: Policy,
    pub schema: SchemaRef,
    outputs: Outputs,
    builder: BatchBuilder,
    types: Types,
    /// Most rows that are processed at a time: the base of the policy may become a part of each.
    chunk_rows: usize,
    /// Boxed, because a worker has kilobytes, and each call moves one out and in.
    idle: Mutex<Vec<Box<Worker>>>,
    counted: Mutex<Counted>,
    /// The engine of [`Self::key`], if this one does not compute the texts of the recipe.
    of_keys: OnceLock<Box<Engine>>,
}

/// The buffers of one call.
struct Worker {
    core: Core,
    bitmaps: Bitmaps,
    scratch: Scratch,
    records: RecordBuffer,
    rows: Rows,
}

/// One reference, and whether it is text.
pub struct Reference<'a> {
    pub url: Cow<'a, [u8]>,
    pub is_text: bool,
    /// Its base, and whether that is text.
    pub base: Option<(Cow<'a, [u8]>, bool)>,
}

/// The counters of an engine.
#[derive(Clone, Default)]
pub struct Counted {
    /// Counts of rows whose URL is not null.
    pub tally: Tally,
    /// Rows whose URL is null.
    pub nulls: u64,
}

/// The fault of a reference for which a recipe has no text.
pub const EMPTY: Fault = Fault::new(FaultKind::Empty, Component::Reference, 0);

/// Whether a call handles signals while it works. Only calls that return to Python themselves can: an exception would be lost
/// in a stream that another library reads.
#[derive(Clone, Copy, PartialEq)]
pub enum Signals {
    Handled,
    Left,
}

/// Locks a mutex even if it is poisoned: a panic leaves no partial update, because counters are added at once.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Engine {
    /// # Errors
    /// An option is invalid.
    pub fn new(configuration: Configuration) -> PyResult<Engine> {
        let outputs = configuration.outputs(false)?;
        let (policy, types) = (configuration.policy(&outputs.columns, None)?, configuration.types()?);
        let metadata = policy_metadata(&policy);
        Ok(Engine {
            builder: BatchBuilder::new(outputs.columns.clone(), &metadata, &policy, &[String::new()]),
            schema: answer_schema(&outputs, &metadata, types),
            outputs,
            types,
            chunk_rows: (CHUNK_LEN / policy.base.as_ref().map_or(1, |base| base.len().max(1))).max(1),
            idle: Mutex::new(Vec::new()),
            counted: Mutex::new(Counted::default()),
            of_keys: OnceLock::new(),
            core_policy: Policy { charset: None, ..policy.clone() },
            policy,
            configuration,
        })
    }

    /// Returns the counters since the engine was created.
    pub fn counted(&self) -> Counted {
        lock(&self.counted).clone()
    }

    fn worker(&self) -> Box<Worker> {
        let idle = lock(&self.idle).pop();
        idle.unwrap_or_else(|| {
            Box::new(Worker {
                core: Core::new(&self.core_policy),
                bitmaps: Bitmaps::default(),
                scratch: Scratch::default(),
                records: RecordBuffer::default(),
                rows: Rows::default(),
            })
        })
    }

    /// Keeps the buffers of a call for later calls, unless a text of `longest` bytes has made them long.
    fn keep(&self, worker: Box<Worker>, longest: usize) {
        if longest <= MAX_KEPT_LEN {
            lock(&self.idle).push(worker);
        }
    }

    /// Canonicalizes one reference and gives its URI to `found`. The counters do not change.
    ///
    /// # Errors
    /// The fault of the reference.
    pub fn uri<T>(&self, reference: &Reference<'_>, found: impl FnOnce(&[u8]) -> T) -> Result<T, Fault> {
        self.row_of(reference, |rows| fault_of(rows).map(|()| found(rows.uri.get(0))))
    }

    /// Returns the column `key` of one reference. The counters do not change.
    ///
    /// # Errors
    /// The outer error: the configuration is invalid. The inner one: the fault of the reference, or that of the recipe if it
    /// has no key for the reference.
    pub fn key(&self, reference: &Reference<'_>) -> PyResult<Result<KeyBytes, Fault>> {
        if self.configuration.recipe.is_none() {
            let keys = |rows: &Rows| if self.configuration.is_protocol() { rows.protocol[0] } else { rows.key[0] };
            return Ok(self.row_of(reference, |rows| fault_of(rows).map(|()| keys(rows))));
        }
        self.key_text(reference, |text| self.policy.algorithm.key(text))
    }

    /// Gives the text of the key of one reference to `found`: that of the recipe, or the URI without one. The counters do not
    /// change.
    ///
    /// # Errors
    /// As [`Self::key`].
    pub fn key_text<T>(&self, reference: &Reference<'_>, found: impl FnOnce(&[u8]) -> T) -> PyResult<Result<T, Fault>> {
        if self.configuration.recipe.is_none() {
            return Ok(self.uri(reference, found));
        }
        let engine = self.with_recipe()?;
        Ok(engine.row_of(reference, |rows| engine.recipe_text(rows, &reference.url).map(found)))
    }

    /// Returns an engine whose rows have the texts of the recipe. It is another one if no column of this engine needs them, so
    /// that batches do not compute them.
    fn with_recipe(&self) -> PyResult<&Engine> {
        if self.recipe_place().is_some() {
            return Ok(self);
        }
        if let Some(made) = self.of_keys.get() {
            return Ok(made);
        }
        let mut configuration = self.configuration.clone();
        configuration.columns.get_or_insert_default().push("key".to_string());
        let made = Engine::new(configuration)?;
        Ok(self.of_keys.get_or_init(|| Box::new(made)))
    }

    /// Returns the place of the configuration's recipe among those of the policy.
    fn recipe_place(&self) -> Option<usize> {
        self.policy.recipes.iter().position(|recipe| recipe.column == RULES)
    }

    /// Returns the text that the recipe makes of a reference, the only row of `rows`.
    fn recipe_text<'a>(&self, rows: &'a Rows, reference: &[u8]) -> Result<&'a [u8], Fault> {
        let place = self.recipe_place().ok_or(EMPTY)?;
        match rows.recipe_texts[place].get(0) {
            [] => fault_of(rows)?,
            text => return Ok(text),
        }
        // The recipe reads a reference with a scheme, and the URI of any other.
        let url = if find_scheme(reference).is_some() { reference } else { rows.uri.get(0) };
        let written = self.policy.recipes[place].recipe.write_key(url, &mut Draft::default(), &mut Vec::new());
        Err(written.err().unwrap_or(EMPTY))
    }

    /// Canonicalizes one reference and gives its row to `found`.
    fn row_of<T>(&self, reference: &Reference<'_>, found: impl FnOnce(&Rows) -> T) -> T {
        let mut worker = self.worker();
        let Worker { core, bitmaps, records, rows, .. } = &mut *worker;
        records.clear();
        rows.clear();
        let Reference { url, is_text, base } = reference;
        records.push_url(url);
        if let Some((base, is_base_text)) = base {
            records.push_base(&base_beside(base, [*is_base_text, *is_text], || self.policy.charset));
        }
        let mut records = records.classified_records(bitmaps);
        records.charset = self.policy.charset.filter(|_| !is_text);
        core.append(&records, bitmaps, rows);
        let result = found(rows);
        self.keep(worker, url.len() + base.as_ref().map_or(0, |(base, _)| base.len()));
        result
    }

    /// Returns the result for a batch: several batches if the text is too long for one.
    ///
    /// # Errors
    /// A URL is too long; a signal handler raised an exception.
    pub fn answer(&self, inputs: &Inputs, signals: Signals) -> PyResult<Vec<RecordBatch>> {
        let mut worker = self.worker();
        let mut call = Call {
            engine: self,
            inputs,
            worker: &mut worker,
            signals,
            last_signals: None,
            longest: 0,
            counted: Counted::default(),
        };
        let mut answers = Vec::new();
        let (mut from, count) = (0, inputs.url.len());
        while from < count || answers.is_empty() {
            let limit = TEXT_LIMIT.load(Ordering::Relaxed);
            let to = inputs.url.cut(from, count, limit);
            let (batch, end) = call.answer_rows(from, to, MAX_GROWTH * limit)?;
            answers.push(batch);
            from = end;
        }
        let Call { counted, longest, .. } = call;
        self.count(&counted);
        self.keep(worker, longest);
        Ok(answers)
    }

    /// Makes a batch of rows.
    fn build(&self, rows: &mut Rows, nulls: Option<&NullBuffer>) -> PyResult<RecordBatch> {
        let count = rows.len();
        let run = SourceRun { source: 0, first_record: 1, rows: count as u32 };
        let batch = self.builder.build(rows, &[run]).map_err(|error| PyValueError::new_err(error.to_string()))?;
        answer_batch(&batch, &self.outputs, &self.schema, |array| typed(null_where(array, nulls)?, self.types))
    }

    /// Adds the counters of a call that has ended: one that is interrupted is usually made again. Rows that are null are faulty
    /// rows of the core, but not of the caller.
    fn count(&self, call: &Counted) {
        let mut counted = lock(&self.counted);
        counted.tally.add(&call.tally);
        counted.nulls += call.nulls;
        counted.tally.faulty -= call.nulls;
        counted.tally.faults[FaultKind::NoUrl as usize] -= call.nulls;
    }
}

/// Returns a column of results in one of these types.
pub fn typed(array: ArrayRef, types: Types) -> PyResult<ArrayRef> {
    if types == Types::Arrow { Ok(array) } else { as_spark_type(array) }
}

/// Converts a column to the type that Spark reads.
fn as_spark_type(array: ArrayRef) -> PyResult<ArrayRef> {
    match array.data_type() {
        DataType::FixedSizeBinary(width) => {
            let keys = array.as_fixed_size_binary();
            let offsets = OffsetBuffer::from_lengths(std::iter::repeat_n(*width as usize, keys.len()));
            let bytes: Buffer = keys.values().clone();
            Ok(Arc::new(BinaryArray::try_new(offsets, bytes, keys.nulls().cloned()).map_err(arrow_error)?))
        }
        kind => match spark_type(kind) {
            to if to == *kind => Ok(array),
            to => cast(&array, &to).map_err(arrow_error),
        },
    }
}

/// One call of [`Engine::answer`].
struct Call<'a> {
    engine: &'a Engine,
    inputs: &'a Inputs,
    worker: &'a mut Worker,
    signals: Signals,
    /// When the first chunk ended, or signals were handled last.
    last_signals: Option<Instant>,
    /// Length of the longest text that was processed at a time, in bytes.
    longest: usize,
    counted: Counted,
}

impl Call<'_> {
    /// Returns the results of rows `from..to`, or of the first ones of these if their texts exceed `most_text` bytes; and the row
    /// after them.
    fn answer_rows(&mut self, from: usize, to: usize, most_text: usize) -> PyResult<(RecordBatch, usize)> {
        let url = &self.inputs.url;
        let text_len = url.text_len(from, to).min(MOST_TEXT);
        let Worker { core, bitmaps, scratch, rows, .. } = &mut *self.worker;
        rows.clear();
        rows.reserve(to - from, text_len);
        use_huge_pages(&mut rows.uri.values);
        use_huge_pages(&mut rows.key);
        let mut at = from;
        while at < to && longest_text(rows) <= most_text {
            let end = self.inputs.cut(at, to.min(at + self.engine.chunk_rows), CHUNK_LEN);
            let len = self.inputs.text_len(at, end);
            check_len(len, at)?;
            self.longest = self.longest.max(len);
            let records = scratch.records(self.inputs, at, end);
            records.classify(bitmaps);
            core.append(&records, bitmaps, rows);
            at = end;
            if at < to {
                handle_signals(self.signals, &mut self.last_signals)?;
            }
        }
        let nulls = url.nulls().map(|nulls| nulls.slice(from, at - from));
        self.counted.tally.add(&rows.tally);
        self.counted.nulls += nulls.as_ref().map_or(0, |nulls| nulls.null_count() as u64);
        let batch = self.engine.build(rows, nulls.as_ref());
        if text_len + (at - from) * size_of::<KeyBytes>() > CHUNK_LEN {
            // Only small calls gain from memory that is kept.
            *rows = Rows::default();
        }
        Ok((batch?, at))
    }
}

/// Returns the fault of the first row as an error.
fn fault_of(rows: &Rows) -> Result<(), Fault> {
    rows.faults.first().map_or(Ok(()), |(_, fault)| Err(*fault))
}

/// Returns the length of the longest column of texts in bytes. A column has at most 2000 MiB.
fn longest_text(rows: &Rows) -> usize {
    let columns = std::iter::once(&rows.uri).chain(&rows.recipe_texts);
    columns.map(|texts| texts.values.len()).max().unwrap_or_default()
}

/// Refuses a row that is too long. Rows that are processed together are short.
fn check_len(len: usize, row: usize) -> PyResult<()> {
    if len <= MOST_TEXT {
        return Ok(());
    }
    let message =
        format!("row {row}: the URL, its base and its charsets have {len} bytes; at most {MOST_TEXT} are expected");
    Err(PyValueError::new_err(message))
}

/// Handles signals if the last time is long ago. Python itself handles them after a call.
fn handle_signals(signals: Signals, last: &mut Option<Instant>) -> PyResult<()> {
    if signals == Signals::Left || last.get_or_insert_with(Instant::now).elapsed() < SIGNAL_INTERVAL {
        return Ok(());
    }
    *last = Some(Instant::now());
    Python::attach(|py| py.check_signals())
}

/// Checks the columns of a stream before its first batch.
///
/// # Errors
/// As [`Engine::answer`].
pub fn check_schema(schema: &Schema, configuration: &Configuration) -> PyResult<()> {
    Inputs::check(configuration, schema)
}
