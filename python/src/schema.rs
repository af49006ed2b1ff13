//! The schema of an answer: as Arrow by `__arrow_c_schema__`, as Spark's DDL, as the JSON of a `StructType`.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, SchemaRef};
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::configuration::Types;

/// Columns with their types.
#[pyclass(frozen, module = "irikey")]
#[derive(Debug)]
pub struct Schema(pub SchemaRef);

/// An Arrow mistake as an exception.
pub fn arrow_error(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The capsule of a schema.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(arrow_error)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

#[pymethods]
impl Schema {
    /// The Arrow schema, for whoever speaks the PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }

    /// Names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The columns as Spark's DDL, `uri STRING, key BINARY NOT NULL`.
    fn spark_ddl(&self) -> String {
        let column = |field: &Arc<Field>| {
            let null = if field.is_nullable() { "" } else { " NOT NULL" };
            format!("`{}` {}{null}", field.name(), spark_name(field.data_type()).to_ascii_uppercase())
        };
        self.0.fields().iter().map(column).collect::<Vec<_>>().join(", ")
    }

    /// The columns as the JSON of Spark's `StructType`.
    fn spark_json(&self) -> String {
        let column = |field: &Arc<Field>| {
            let name = match spark_name(field.data_type()) {
                "bigint" => "long",
                "int" => "integer",
                name => name,
            };
            // Names of columns are words.
            format!(
                r#"{{"name":"{}","type":"{name}","nullable":{},"metadata":{{}}}}"#,
                field.name(),
                field.is_nullable()
            )
        };
        let fields = self.0.fields().iter().map(column).collect::<Vec<_>>().join(",");
        format!(r#"{{"type":"struct","fields":[{fields}]}}"#)
    }

    fn __repr__(&self) -> String {
        let columns = self.0.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
        format!("irikey.Schema({})", columns.collect::<Vec<_>>().join(", "))
    }
}

/// Spark's name of what a type becomes there.
fn spark_name(kind: &DataType) -> &'static str {
    match spark_type(kind) {
        DataType::Binary => "binary",
        DataType::Int64 => "bigint",
        DataType::Boolean => "boolean",
        DataType::Timestamp(..) => "timestamp",
        _ => "string",
    }
}

/// What a type of ours becomes where Spark reads it: it knows no fixed width, no dictionary, nothing unsigned.
pub fn spark_type(kind: &DataType) -> DataType {
    match kind {
        DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Int8 | DataType::Int16 | DataType::Int32 => DataType::Int64,
        other => other.clone(),
    }
}

/// The schema of an answer: any row of it is null where the URL was.
pub fn answer_schema(columns: &irikey::batch::ColumnSet, metadata: &[(String, String)], types: Types) -> SchemaRef {
    let schema = columns.schema(metadata);
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| {
            let kind = match types {
                Types::Arrow => field.data_type().clone(),
                Types::Spark => spark_type(field.data_type()),
            };
            Field::new(field.name(), kind, true)
        })
        .collect();
    Arc::new(arrow::datatypes::Schema::new_with_metadata(fields, schema.metadata().clone()))
}
