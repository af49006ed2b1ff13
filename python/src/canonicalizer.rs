//! [`Canonicalizer`]: the class of Python that canonicalizes batches, tables, readers, arrays and files.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::answer::{Batch, Table};
use crate::argument::{Options, or_default};
use crate::arrays::{Array, Operands, import_list, is_list};
use crate::configuration::Configuration;
use crate::engine::{Counted, Engine, Signals, check_schema};
use crate::files::{self, ReadOptions};
use crate::import::export;
use crate::intake::Inputs;
use crate::reader::{Answers, Reader};
use crate::scalars::{raise, single, single_key, single_uri, text_of};
use crate::schema::Schema;
use crate::stream::Stream;

/// Computes canonical URIs and keys by one policy. Can be pickled (its configuration, not its counters) and shared between
/// threads; counts what it processes.
///
/// - url, base, charset, query_charset: names of columns; the default of url is "url" in a batch, and in a file what the command
///   finds. Each of the last three may also be lit(value), one value for all rows, or (name, lit(value)), a value for rows
///   that have none. charset is that of URLs and bases that are bytes; text is not decoded again. query_charset is the charset of
///   the document that contains the URL, for its query.
/// - rung: "scheme", "syntax" or "simple", the rung of uri and key; "protocol" is "scheme" with keys of representatives.
/// - recipe: name of a recipe, or rules to add and to remove; the column key is then that of the recipe.
/// - columns: names of result columns; the default is uri, key, fault, fault_at and flags.
/// - strict: refuse what the grammar refuses instead of repairing and flagging it.
/// - drop_fragment, literal_base, assume_scheme, max_url, profile, key_hash, trim, inner_spaces, character_references,
///   backslashes: as the flags of the command.
/// - psl: a Public Suffix List, equivalences: what irikey learn wrote; each a path, or its contents as bytes (those of
///   equivalences by irikey.equivalences()).
/// - types: "arrow", or "spark" for types that Spark reads.
#[pyclass(frozen, module = "irikey")]
pub struct Canonicalizer(pub Arc<Engine>);

#[pymethods]
impl Canonicalizer {
    #[new]
    #[pyo3(
        signature = (**options),
        text_signature = "(*, url=None, base=None, charset=None, query_charset=None, rung=None, recipe=None, columns=None, \
            strict=False, drop_fragment=False, literal_base=False, assume_scheme=None, max_url=1048576, profile='rfc3987', \
            key_hash='xxh3', trim=False, inner_spaces=None, character_references=None, backslashes=None, psl=None, \
            equivalences=None, types='arrow')"
    )]
    fn new(options: Option<&Bound<'_, PyDict>>) -> PyResult<Canonicalizer> {
        Ok(Canonicalizer(Arc::new(Engine::new(Configuration::of(Options(options))?)?)))
    }

    /// Returns one row per row of data; null if the URL is null.
    ///
    /// A batch, an array or a list of str or bytes gives a Batch, or a Table if the texts are too long for one; a data frame, or
    /// an object with a length and __arrow_c_stream__, a Table; any other object with __arrow_c_stream__ a Reader, which reads
    /// as it is read.
    #[pyo3(signature = (data))]
    fn canonicalize<'py>(canonicalizer: &Bound<'py, Self>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let this = canonicalizer.get();
        if is_direct(data)? {
            return this.rows(data);
        }
        // Objects of some libraries must be converted before.
        let converted = arrays_module(data.py())?.call_method1("importable", (data, canonicalizer))?;
        this.rows(&converted)
    }

    #[pyo3(signature = (data))]
    fn __call__<'py>(canonicalizer: &Bound<'py, Self>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::canonicalize(canonicalizer, data)
    }

    /// Returns one column for an array of URLs: a list for a list, an Array for an object with __arrow_c_array__, and an array of
    /// the same kind for a series, a chunked array, or an array of numpy. base and charset are arrays of the same length. Each
    /// value of a dictionary is canonicalized once, and counts once in the counters.
    #[pyo3(signature = (values, column=None, base=None, charset=None),
        text_signature = "($self, values, column='uri', base=None, charset=None)")]
    fn array<'py>(
        canonicalizer: &Bound<'py, Self>,
        values: &Bound<'py, PyAny>,
        column: Option<&Bound<'py, PyAny>>,
        base: Option<&Bound<'py, PyAny>>,
        charset: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, column) = (values.py(), or_default("column", column, "uri".to_string())?);
        if !is_direct(values)? {
            let others = PyDict::new(py);
            base.map_or(Ok(()), |base| others.set_item("base", base))?;
            charset.map_or(Ok(()), |charset| others.set_item("charset", charset))?;
            return arrays_module(py)?.call_method1("column_of", (canonicalizer, column, values, others));
        }
        let (base, charset) = (operand("base", base)?, operand("charset", charset)?);
        let (engine, operands) = (&canonicalizer.get().0, Operands::import(values, base.as_ref(), charset.as_ref())?);
        let array = py.detach(|| operands.answer(engine, &column, Signals::Handled))?;
        if is_list(values) { Array(array).to_pylist(py) } else { Ok(Bound::new(py, Array(array))?.into_any()) }
    }

    /// Returns the canonical URI of one reference, the value of the column uri, also with a recipe: see key_text.
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

    /// Returns what irikey.uri returns: the canonical URI of one reference, and with a recipe the text of the recipe's key.
    /// Raises Fault if the recipe has no key for it.
    #[pyo3(signature = (reference, base=None))]
    fn key_text<'py>(
        &self,
        py: Python<'py>,
        reference: &Bound<'py, PyAny>,
        base: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyString>> {
        self.0.key_text(&single(reference, base)?, |text| text_of(py, text))?.map_err(|fault| raise(py, fault))?
    }

    /// Reads a file of crawl data (a path, or its bytes) with the readers of the command. Returns the rows as a Table, and
    /// the counts of the run: records, headers, skipped, errors and the counters.
    #[pyo3(signature = (source, *, columns=None, format=None, name=None, record_types=None, threads=None),
        text_signature = "($self, source, *, columns=None, format='auto', name=None, record_types=None, threads=0)")]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python, each with its default")]
    fn read<'py>(
        &self,
        py: Python<'py>,
        source: &Bound<'py, PyAny>,
        columns: Option<&Bound<'py, PyAny>>,
        format: Option<&Bound<'py, PyAny>>,
        name: Option<&Bound<'py, PyAny>>,
        record_types: Option<&Bound<'py, PyAny>>,
        threads: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, Table>, Bound<'py, PyDict>)> {
        let options = ReadOptions {
            columns: or_default("columns", columns, None)?,
            format: or_default("format", format, "auto".to_string())?,
            name: or_default("name", name, None)?,
            record_types: or_default("record_types", record_types, Vec::new())?,
            threads: or_default("threads", threads, 0)?,
        };
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

/// Returns whether the core imports a value as it is: a list, or an object that exports an array or a batch.
fn is_direct(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(is_list(value) || value.hasattr(intern!(value.py(), "__arrow_c_array__"))?)
}

/// Returns an array of bases or charsets, converted if the core does not import it as it is.
fn operand<'py>(name: &str, value: Option<&Bound<'py, PyAny>>) -> PyResult<Option<Bound<'py, PyAny>>> {
    value
        .map(|value| match is_direct(value)? {
            true => Ok(value.clone()),
            false => arrays_module(value.py())?.call_method1("array_of", (name, value)),
        })
        .transpose()
}

/// Returns the module that converts objects of other libraries.
fn arrays_module(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import(intern!(py, "irikey._arrays"))
}

impl Canonicalizer {
    /// Returns the rows of data that needs no conversion.
    fn rows<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = data.py();
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
    counters.set_item("faults", occurred(py, tally.named_faults())?)?;
    counters.set_item("flags", occurred(py, tally.named_flags())?)?;
    counters.set_item("changes", occurred(py, tally.named_changes())?)?;
    Ok(counters)
}

/// Names and counts of what occurred.
fn occurred<'py>(py: Python<'py>, counts: impl Iterator<Item = (&'static str, u64)>) -> PyResult<Bound<'py, PyDict>> {
    let named = PyDict::new(py);
    counts.filter(|(_, count)| *count > 0).try_for_each(|(name, count)| named.set_item(name, count))?;
    Ok(named)
}
