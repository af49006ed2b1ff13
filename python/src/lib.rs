//! `irikey._irikey`: the core of irikey for Python. Arrow data is exchanged through the PyCapsule interface without copying;
//! single references are `str`, `bytes`, `bytearray` or `memoryview`.
//!
//! ```text
//! object with __arrow_c_array__ or __arrow_c_stream__ --intake--> Records --engine--> Rows
//!                                   Batch | Table | Reader | Array <-- RecordBatch <---'
//! file --files (the readers of the command)--> Table
//! ```
//!
//! Invalid data gives faults in rows, and invalid calls raise exceptions; nothing panics.

mod aligned;
mod answer;
mod argument;
mod arrays;
mod canonicalizer;
mod charsets;
mod column;
mod configuration;
mod engine;
mod files;
mod import;
mod intake;
mod plain;
mod polars;
mod reader;
mod scalars;
mod schema;
mod single;
mod stream;

use irikey::iri::{FaultKind, Flags, SpoofingFlags};
use pyo3::prelude::*;

/// The native part of the package `irikey`.
#[pymodule]
mod _irikey {
    use super::*;

    #[pymodule_export]
    use super::answer::{AnswerSchema, Batch, Table};
    #[pymodule_export]
    use super::arrays::Array;
    #[pymodule_export]
    use super::canonicalizer::Canonicalizer;
    #[pymodule_export]
    use super::configuration::Literal;
    #[pymodule_export]
    use super::reader::Reader;
    #[pymodule_export]
    use super::scalars::{Fault, compare, explain, resolve, surt};
    #[pymodule_export]
    use super::schema::{_schema, Schema};
    #[pymodule_export]
    use super::single::{iri, key, uri};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("_FAULTS", FaultKind::ALL.map(FaultKind::name).to_vec())?;
        module.add("_FLAGS", Flags::ALL.iter().map(|(bit, name, _)| (*name, bit.0)).collect::<Vec<_>>())?;
        module
            .add("_SPOOFING_FLAGS", SpoofingFlags::ALL.iter().map(|(bit, name, _)| (*name, bit.0)).collect::<Vec<_>>())
    }

    /// Returns a list of str, bytes and None as an array of bytes.
    #[pyfunction]
    fn _binary(values: &Bound<'_, PyAny>) -> PyResult<super::arrays::Array> {
        super::arrays::import_list(values).map(|values| super::arrays::Array(values.array))
    }

    /// Sets the limit of the text of one result batch, in bytes; for tests. Returns the limit before.
    #[pyfunction]
    fn _set_text_limit(bytes: usize) -> usize {
        super::intake::TEXT_LIMIT.swap(bytes, std::sync::atomic::Ordering::Relaxed)
    }

    /// Runs the command with these arguments and returns its exit code.
    #[pyfunction]
    fn _main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
        py.detach(|| irikey::cli::main_with(arguments))
    }
}
