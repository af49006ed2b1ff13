//! `irikey._irikey`: the kernel of irikey for Python. Arrow data in and out by the PyCapsule interface, without a copy;
//! single references as `str` or `bytes`.
//!
//! ```text
//! object with __arrow_c_array__ or __arrow_c_stream__ --intake--> Records --Canonicalizer--> Rows
//!                                                     Batch | Table <--answer-- RecordBatch <---'
//! ```
//!
//! No panic crosses the boundary: what data can be is a fault in a row, what a caller can get wrong is an exception.

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
