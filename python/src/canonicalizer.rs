//! [`Canonicalizer`]: the class of Python that canonicalizes batches, tables, readers, arrays and files.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::answer::{Batch, Table};
use crate::arrays::{Array, Operands, import_list, is_list};
use crate::configuration::{Configuration, Operand, whole_number};
use crate::engine::{Counted, Engine, Signals, check_schema, named_counts};
use crate::files::{self, ReadOptions};
use crate::import::export;
use crate::intake::Inputs;
use crate::reader::{Answers, Reader};
use crate::scalars::{single_key, single_uri, text_of};
use crate::schema::Schema;
use crate::stream::Stream;

/// Computes canonical URIs and keys by one policy. Can be pickled (its configuration, not its counters) and shared between
/// threads; counts what it processes.
///
/// - url, base, charset, query_charset: names of columns; the default of url is "url" in a batch, and in a file what the command
///   finds. Each of the last three may also be lit(value), one value for all rows, or (name, lit(value)), a value for rows
///   that have none. query_charset is the charset of the document that contains the URL, for its query.
/// - rung: "scheme", "syntax" or "simple", the rung of uri and key; "protocol" is "scheme" with keys of representatives.
/// - recipe: name of a recipe, or rules to add and to remove; the column key is then that of the recipe.
/// - columns: names of result columns; the default is uri, key, fault, fault_at and flags.
/// - strict: refuse what the grammar refuses instead of repairing and flagging it.
/// - drop_fragment, literal_base, assume_scheme, max_url, profile, key_hash, trim, inner_spaces, character_references,
///   backslashes: as the flags of the command.
/// - psl: contents of a Public Suffix List. equivalences: see irikey.equivalences().
/// - types: "arrow", or "spark" for types that Spark reads.
#[pyclass(frozen, module = "irikey")]
pub struct Canonicalizer(pub Arc<Engine>);

#[pymethods]
impl Canonicalizer {
    #[new]
    #[pyo3(signature = (*, url=None, base=None, charset=None, query_charset=None, rung=None, recipe=None,
        columns=None, strict=false, drop_fragment=false, literal_base=false, assume_scheme=None, max_url=1_048_576,
        profile="rfc3987", key_hash="xxh3", trim=false, inner_spaces=None,
        character_references=None, backslashes=None, psl=None, equivalences=None, types="arrow"))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python, each with its default")]
    fn new(
        url: Option<String>,
        base: Option<Operand>,
        charset: Option<Operand>,
        query_charset: Option<Operand>,
        rung: Option<String>,
        recipe: Option<String>,
        columns: Option<Vec<String>>,
        strict: bool,
        drop_fragment: bool,
        literal_base: bool,
        assume_scheme: Option<String>,
        #[pyo3(from_py_with = whole_number)] max_url: i64,
        profile: &str,
        key_hash: &str,
        trim: bool,
        inner_spaces: Option<String>,
        character_references: Option<String>,
        backslashes: Option<String>,
        psl: Option<Vec<u8>>,
        equivalences: Option<Vec<u8>>,
        types: &str,
    ) -> PyResult<Canonicalizer> {
        let configuration = Configuration {
            url,
            base: base.unwrap_or_default(),
            charset: charset.unwrap_or_default(),
            query_charset: query_charset.unwrap_or_default(),
            rung: rung.unwrap_or_else(|| "scheme".to_string()),
            recipe,
            columns,
            strict,
            drop_fragment,
            literal_base,
            assume_scheme,
            // `check` refuses 0.
            max_url: usize::try_from(max_url).unwrap_or(0),
            profile: profile.to_string(),
            key_hash: key_hash.to_string(),
            trim,
            inner_spaces,
            character_references,
            backslashes,
            psl: psl.map(Arc::from),
            equivalences: equivalences.map(Arc::from),
            types: types.to_string(),
        };
        Ok(Canonicalizer(Arc::new(Engine::new(configuration)?)))
    }

    /// Returns one row per row of data; null if the URL is null.
    ///
    /// A batch, an array or a list of str or bytes gives a Batch, or a Table if the texts are too long for one; an object with
    /// a length and __arrow_c_stream__ a Table; any other object with __arrow_c_stream__ a Reader, which reads as it is read.
    #[pyo3(signature = (data))]
    fn canonicalize<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(inputs) = self.inputs(data)? {
            let mut batches = py.detach(|| self.0.answer(&inputs, Signals::Handled))?;
            return match batches.len() {
                1 => Ok(Bound::new(py, Batch::of(batches.remove(0)))?.into_any()),
                _ => Ok(Bound::new(py, Table::of(batches, self.0.schema.clone()))?.into_any()),
            };
        }
        if !data.hasattr("__arrow_c_stream__")? {
            let kind = data.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "data: {kind} is not Arrow data: it has neither __arrow_c_array__ nor __arrow_c_stream__; expected a batch, \
                 table, reader, data frame, array or list"
            )));
        }
        let mut source = Stream::of(data)?;
        check_schema(&source.schema, &self.0.configuration)?;
        if !data.hasattr("__len__")? {
            let answers = Answers::new(self.0.clone(), source);
            return Ok(Bound::new(py, Reader::of(answers))?.into_any());
        }
        let mut batches = Vec::new();
        // Another thread of the stream's library may need the interpreter for the next batch.
        while let Some(batch) = py.detach(|| source.next_batch())? {
            let inputs = Inputs::of_imported(&self.0.configuration, &batch)?;
            batches.extend(py.detach(|| self.0.answer(&inputs, Signals::Handled))?);
            py.check_signals()?;
        }
        Ok(Bound::new(py, Table::of(batches, self.0.schema.clone()))?.into_any())
    }

    #[pyo3(signature = (data))]
    fn __call__<'py>(&self, py: Python<'py>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.canonicalize(py, data)
    }

    /// Returns one column for an array of URLs, a list for a list. base and charset are arrays of the same length. Each value
    /// of a dictionary is canonicalized once, and counts once in the counters.
    #[pyo3(signature = (values, column="uri", base=None, charset=None))]
    fn array<'py>(
        &self,
        py: Python<'py>,
        values: &Bound<'py, PyAny>,
        column: &str,
        base: Option<&Bound<'py, PyAny>>,
        charset: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let operands = Operands::import(values, base, charset)?;
        let array = py.detach(|| operands.answer(&self.0, column, Signals::Handled))?;
        if is_list(values) { Array(array).to_pylist(py) } else { Ok(Bound::new(py, Array(array))?.into_any()) }
    }

    /// Returns the canonical URI of one reference.
    #[pyo3(signature = (reference, base=None))]
    fn uri<'py>(
        &self,
        py: Python<'py>,
        reference: &Bound<'py, PyAny>,
        base: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyString>> {
        single_uri(&self.0, reference, base, |uri| text_of(py, uri))
    }

    /// Returns the key of one reference, 16 bytes: the value of the column key. Raises Fault if a recipe has no key for it.
    #[pyo3(signature = (reference, base=None))]
    fn key<'py>(
        &self,
        reference: &Bound<'py, PyAny>,
        base: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        single_key(&self.0, reference, base)
    }

    /// Reads a file of crawl data (a path, or its bytes) with the readers of the command. Returns the rows as a Table, and
    /// the counts of the run: records, headers, skipped, errors and the counters.
    #[pyo3(signature = (source, *, columns=None, format="auto", name=None, record_types=None, threads=0))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python, each with its default")]
    fn read<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        columns: Option<Vec<String>>,
        format: &str,
        name: Option<String>,
        record_types: Option<Vec<String>>,
        #[pyo3(from_py_with = whole_number)] threads: i64,
    ) -> PyResult<(Bound<'py, Table>, Bound<'py, PyDict>)> {
        let (format, record_types) = (format.to_string(), record_types.unwrap_or_default());
        let options = ReadOptions { columns, format, name, record_types, threads };
        let read = files::read(py, &self.0, source, options)?;
        let counts = counters(py, &Counted { tally: read.summary.tally.clone(), nulls: 0 })?;
        counts.set_item("records", read.summary.records)?;
        counts.set_item("headers", read.summary.headers)?;
        counts.set_item("skipped", read.summary.skipped)?;
        let errors: Vec<String> = read.summary.input_errors.iter().map(ToString::to_string).collect();
        counts.set_item("errors", errors)?;
        Ok((Bound::new(py, Table::of(read.batches, read.schema))?, counts))
    }

    /// The counters since the object was created: rows = unchanged + changed + faulty + nulls; faults, flags and changes by
    /// name. Calls of array with a dictionary count its values, not its rows.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, &self.0.counted())
    }

    /// The columns of results.
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema.clone())
    }

    /// The columns of a batch that are read; the first one holds the URLs.
    #[getter]
    fn _input_columns(&self) -> Vec<&str> {
        self.0.configuration.input_columns()
    }

    /// The options of the constructor.
    #[getter]
    fn configuration<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.0.configuration.arguments(py)
    }

    /// Pickles the configuration; the counters of a copy begin at 0.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::empty(py), self.0.configuration.arguments(py)?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("irikey.Canonicalizer(**{})", self.0.configuration.arguments(py)?.repr()?))
    }
}

impl Canonicalizer {
    /// Returns the inputs in a batch, an array or a list; `None` if the data is none of these.
    fn inputs(&self, data: &Bound<'_, PyAny>) -> PyResult<Option<Inputs>> {
        let configuration = &self.0.configuration;
        if is_list(data) {
            return Inputs::of_urls(configuration, &import_list(data)?).map(Some);
        }
        export(data)?.map(|exported| Inputs::of_exported(configuration, exported)).transpose()
    }
}

fn counters<'py>(py: Python<'py>, counted: &Counted) -> PyResult<Bound<'py, PyDict>> {
    let Counted { tally, nulls } = counted;
    let counters = PyDict::new(py);
    counters.set_item("rows", tally.rows)?;
    counters.set_item("unchanged", tally.unchanged)?;
    counters.set_item("changed", tally.changed)?;
    counters.set_item("faulty", tally.faulty)?;
    counters.set_item("nulls", nulls)?;
    for (name, counts) in named_counts(tally) {
        let named = PyDict::new(py);
        counts.into_iter().try_for_each(|(kind, count)| named.set_item(kind, count))?;
        counters.set_item(name, named)?;
    }
    Ok(counters)
}
