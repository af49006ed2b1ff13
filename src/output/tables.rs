//! Parquet files of any schema ([`TableWriter`]). They are written under a temporary name, as other outputs.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression as Codec, ZstdLevel};

use super::error::{OutputError, WriteError};
use super::options::Destination;
use super::row_group;
use super::sink::{self, OutputTarget, Sink};

/// Bytes of memory of a row group, at which [`TableWriter`] ends it.
const MAX_ROW_GROUP_MEMORY: usize = 16 << 20;

/// Writes record batches as a Parquet file. Removes the file if it is dropped before [`TableWriter::finish`].
pub(crate) struct TableWriter {
    writer: ArrowWriter<Sink>,
    target: OutputTarget,
    rows: u64,
}

impl TableWriter {
    /// Opens a file for batches of `schema`.
    pub(crate) fn create(
        destination: &Destination,
        schema: SchemaRef,
        metadata: &[(String, String)],
    ) -> Result<TableWriter, OutputError> {
        let (sink, target) = sink::create(destination)?;
        let compression = Codec::ZSTD(ZstdLevel::default());
        let properties = row_group::file_properties(metadata.to_vec()).set_compression(compression).build();
        // Readers that use the embedded Arrow schema also use the metadata of that schema.
        let schema = Schema::clone(&schema).with_metadata(metadata.iter().cloned().collect::<HashMap<_, _>>());
        match ArrowWriter::try_new(sink, schema.into(), Some(properties)) {
            Ok(writer) => Ok(TableWriter { writer, target, rows: 0 }),
            Err(error) => Err(target.error(WriteError::from(error))),
        }
    }

    pub(crate) fn append(&mut self, batch: &RecordBatch) -> Result<(), OutputError> {
        self.rows += batch.num_rows() as u64;
        let written = self.writer.write(batch);
        let written = written.and_then(|()| match self.writer.memory_size() > MAX_ROW_GROUP_MEMORY {
            true => self.writer.flush(),
            false => Ok(()),
        });
        written.map_err(|error| self.target.error(WriteError::from(error)))
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes the footer, makes the file durable and gives it its final name.
    ///
    /// # Errors
    /// Writing or renaming failed; no partial file has the final name.
    pub(crate) fn finish(self) -> Result<(), OutputError> {
        let TableWriter { writer, target, .. } = self;
        let sink = writer.into_inner().map_err(|error| target.error(WriteError::from(error)))?;
        target.commit(sink)
    }
}
