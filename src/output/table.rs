//! Batches of any schema in, one Parquet file out: [`TableWriter`], for what a job writes beside its rows. Written as outputs
//! are: under a temporary name that becomes the final one when the file is whole.

use std::collections::HashMap;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::error::WriteError;
use super::sink::{self, OutputTarget, Sink};
use super::{Destination, OutputError};

/// A table that is being written. Dropped without [`TableWriter::finish`], it leaves nothing behind.
pub struct TableWriter {
    writer: ArrowWriter<Sink>,
    target: OutputTarget,
    rows: u64,
}

impl TableWriter {
    /// Opens a table.
    ///
    /// # Errors
    /// The file cannot be made there.
    pub fn create(path: &Path, schema: SchemaRef, metadata: &[(String, String)]) -> Result<TableWriter, OutputError> {
        let (sink, target) = sink::create(&Destination::File(path.to_path_buf()))?;
        let pairs = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        let properties = WriterProperties::builder()
            .set_created_by(concat!("irikey version ", env!("CARGO_PKG_VERSION")).to_string())
            .set_compression(Codec::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(pairs))
            .build();
        // Readers that take the schema from Arrow's own entry take the metadata from there as well.
        let schema = Schema::clone(&schema).with_metadata(metadata.iter().cloned().collect::<HashMap<_, _>>());
        match ArrowWriter::try_new(sink, schema.into(), Some(properties)) {
            Ok(writer) => Ok(TableWriter { writer, target, rows: 0 }),
            Err(error) => Err(target.blame(WriteError::from(error))),
        }
    }

    /// Appends rows.
    ///
    /// # Errors
    /// They could not be written.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        self.rows += batch.num_rows() as u64;
        self.writer.write(batch).map_err(|error| self.target.blame(WriteError::from(error)))
    }

    /// How many rows were appended.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes what a file ends with, makes it durable and gives it its name.
    ///
    /// # Errors
    /// Some of it failed; then nothing bears the name that did not bear it before.
    pub fn finish(self) -> Result<(), OutputError> {
        let TableWriter { writer, target, .. } = self;
        let sink = writer.into_inner().map_err(|error| target.blame(WriteError::from(error)))?;
        target.commit(sink)
    }
}
