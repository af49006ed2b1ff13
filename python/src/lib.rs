//! `irikey._irikey`: the core of irikey for Python. Arrow data is exchanged through the PyCapsule interface without copying;
//! single references are `str` or `bytes`.
//!
//! ```text
//! object with __arrow_c_array__ or __arrow_c_stream__ --intake--> Records --Canonicalizer--> Rows
//!                                                     Batch | Table <--answer-- RecordBatch <---'
//! ```
//!
//! Invalid data gives faults in rows, and invalid calls raise exceptions; nothing panics.

mod answer;
mod canonicalizer;
mod configuration;
mod intake;
mod scalars;
mod schema;

use pyo3::prelude::*;

/// The native part of the package `irikey`.
#[pymodule]
mod _irikey {
    use super::*;

    #[pymodule_export]
    use super::answer::{Batch, Table};
    #[pymodule_export]
    use super::canonicalizer::Canonicalizer;
    #[pymodule_export]
    use super::scalars::{Fault, compare, explain, iri, key, resolve, surt, uri};
    #[pymodule_export]
    use super::schema::Schema;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
