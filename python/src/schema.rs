//! The schema of results: as Arrow (`__arrow_c_schema__`), as Spark DDL, and as the JSON of a `StructType`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use arrow::ffi::FFI_ArrowSchema;
use irikey::canon::Policy;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::argument::{FromArgument, or_default};
use crate::configuration::{Configuration, Outputs, Types};

/// Columns and their types.
#[pyclass(frozen, module = "irikey")]
#[derive(Debug)]
pub struct Schema(pub SchemaRef);

/// Converts an Arrow error to an exception.
pub fn arrow_error(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Returns the capsule of a schema.
pub fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(arrow_error)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

#[pymethods]
impl Schema {
    /// The Arrow schema as a PyCapsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }

    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The columns as Spark DDL, such as `uri STRING, key BINARY NOT NULL`.
    fn spark_ddl(&self) -> String {
        let column = |field: &Arc<Field>| {
            let null = if field.is_nullable() { "" } else { " NOT NULL" };
            let name = field.name().replace('`', "``");
            format!("`{name}` {}{null}", spark_name(field.data_type()).to_ascii_uppercase())
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
            let (column, is_nullable) = (json_text(field.name()), field.is_nullable());
            format!(r#"{{"name":{column},"type":"{name}","nullable":{is_nullable},"metadata":{{}}}}"#)
        };
        let fields = self.0.fields().iter().map(column).collect::<Vec<_>>().join(",");
        format!(r#"{{"type":"struct","fields":[{fields}]}}"#)
    }

    fn __repr__(&self) -> String {
        let columns = self.0.fields().iter().map(|field| format!("{}: {}", field.name(), field.data_type()));
        format!("irikey.Schema({})", columns.collect::<Vec<_>>().join(", "))
    }
}

/// Returns a text as JSON, in quotes.
fn json_text(text: &str) -> String {
    let mut json = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            '\0'..='\x1F' => json += &format!("\\u{:04x}", u32::from(c)),
            _ => json.push(c),
        }
    }
    json.push('"');
    json
}

/// Returns Spark's name of a type.
fn spark_name(kind: &DataType) -> &'static str {
    match spark_type(kind) {
        DataType::Binary => "binary",
        DataType::Int64 => "bigint",
        DataType::Boolean => "boolean",
        DataType::Timestamp(..) => "timestamp",
        _ => "string",
    }
}

/// Returns the type that Spark reads instead: it has no fixed-size binary, dictionary or unsigned types.
pub fn spark_type(kind: &DataType) -> DataType {
    match kind {
        DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Dictionary(_, values) => values.as_ref().clone(),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Int8 | DataType::Int16 | DataType::Int32 => DataType::Int64,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        other => other.clone(),
    }
}

/// Returns the metadata of the schema of results: the policy.
pub fn policy_metadata(policy: &Policy) -> Vec<(String, String)> {
    policy.describe().into_iter().map(|(name, value)| (format!("irikey.{name}"), value)).collect()
}

/// Returns the schema of results, also those of files, with these columns or the default ones. The metadata are those of the
/// default policy.
#[pyfunction]
pub fn _schema(columns: Option<&Bound<'_, PyAny>>, types: &Bound<'_, PyAny>) -> PyResult<Schema> {
    let columns = or_default("columns", columns, None)?;
    let types = String::from_argument("types", types)?;
    let configuration = Configuration { columns, types, ..Configuration::default() };
    let (outputs, types) = (configuration.outputs(true)?, configuration.types()?);
    let policy = outputs.columns.complete_policy(Policy::default());
    Ok(Schema(answer_schema(&outputs, &policy_metadata(&policy), types)))
}

/// Returns the schema of results. All columns are nullable, because a row is null if its URL is null.
pub fn answer_schema(outputs: &Outputs, metadata: &[(String, String)], types: Types) -> SchemaRef {
    let schema = outputs.columns.schema(metadata);
    let field = |(name, place): &(String, usize)| {
        let kind = schema.field(*place).data_type();
        Field::new(name, if types == Types::Arrow { kind.clone() } else { spark_type(kind) }, true)
    };
    let fields: Vec<Field> = outputs.selected.iter().map(field).collect();
    Arc::new(arrow::datatypes::Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Returns the batch of results for a batch that the core made: the selected columns, each after `convert`.
pub fn answer_batch(
    made: &RecordBatch,
    outputs: &Outputs,
    schema: &SchemaRef,
    convert: impl Fn(ArrayRef) -> PyResult<ArrayRef>,
) -> PyResult<RecordBatch> {
    let array = |(_, place): &(String, usize)| convert(made.column(*place).clone());
    let arrays = outputs.selected.iter().map(array).collect::<PyResult<Vec<_>>>()?;
    // Without columns, the batch has rows as well.
    let options = RecordBatchOptions::new().with_row_count(Some(made.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), arrays, &options).map_err(arrow_error)
}
