//! Rows in, parts out: everything about an output that costs time, so that workers do it side by side.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use super::error::WriteError;
use super::index_lines::{self, GzipMember};
use super::row_group::{ColumnChunk, RowGroups};
use super::{OutputError, lines};
use crate::batch::{BatchBuilder, ColumnSet, SourceRun};
use crate::canon::Rows;

/// Turns rows into parts of one output; shared by workers.
pub struct Encoder {
    pub(super) builder: BatchBuilder,
    pub(super) recipe: EncodingPlan,
}

/// What a part is made of.
pub(super) enum EncodingPlan {
    Parquet(RowGroups),
    Batch,
    /// Delimited text with this byte between fields.
    Delimited(u8),
    JsonLines,
    Cdxj,
    Zipnum,
    Text,
}

/// Rows encoded for one output, to be appended in order.
pub struct Part {
    pub(super) body: PartBody,
    rows: u64,
}

pub(super) enum PartBody {
    Nothing,
    RowGroup(Vec<ColumnChunk>),
    Batch(RecordBatch),
    Bytes(Vec<u8>),
    Members(Vec<GzipMember>),
}

impl Part {
    /// How many rows it holds.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many bytes of memory it holds, so that a queue of parts can be bounded.
    pub fn memory_len(&self) -> usize {
        match &self.body {
            PartBody::Nothing => 0,
            PartBody::RowGroup(chunks) => chunks.iter().map(ColumnChunk::len).sum(),
            PartBody::Batch(batch) => batch.get_array_memory_size(),
            PartBody::Bytes(bytes) => bytes.capacity(),
            PartBody::Members(members) => members.iter().map(|member| member.bytes.capacity()).sum(),
        }
    }
}

impl Encoder {
    /// Encodes `rows`, which came from `runs` in this order. Afterwards `rows` is empty, tally included, and keeps
    /// what memory can be kept. Each call that has rows makes one row group, record batch or run of lines.
    ///
    /// # Errors
    /// The rows make no batch, or the format refuses them; nothing about files.
    pub fn encode(&self, rows: &mut Rows, runs: &[SourceRun]) -> Result<Part, OutputError> {
        let count = rows.len() as u64;
        let body = if rows.is_empty() { PartBody::Nothing } else { self.body(rows, runs)? };
        rows.clear();
        Ok(Part { body, rows: count })
    }

    fn body(&self, rows: &mut Rows, runs: &[SourceRun]) -> Result<PartBody, OutputError> {
        if matches!(self.recipe, EncodingPlan::Text) {
            return Ok(PartBody::Bytes(lines::text(&rows.uri)));
        }
        let batch = self.builder.build(rows, runs)?;
        let body = self.batch_body(&batch)?;
        if !matches!(body, PartBody::Batch(_)) {
            self.builder.reclaim(batch, rows);
        }
        Ok(body)
    }

    /// The columns of the output.
    pub fn columns(&self) -> &ColumnSet {
        self.builder.columns()
    }

    /// The schema of the output's batches.
    pub fn schema(&self) -> &SchemaRef {
        self.builder.schema()
    }

    /// What [`Encoder::encode`] would encode: to be filtered, kept, and given to [`Encoder::encode_batch`].
    ///
    /// # Errors
    /// The rows make no batch.
    pub fn batch(&self, rows: &mut Rows, runs: &[SourceRun]) -> Result<RecordBatch, OutputError> {
        Ok(self.builder.build(rows, runs)?)
    }

    /// Gives the memory of a batch back to the rows that it was made of, which are empty afterwards.
    pub fn reclaim(&self, batch: RecordBatch, rows: &mut Rows) {
        self.builder.reclaim(batch, rows);
    }

    /// The columns of this output among those of a batch that has more.
    ///
    /// # Errors
    /// One is not there.
    pub fn project(&self, batch: &RecordBatch) -> Result<RecordBatch, OutputError> {
        let place = |name| batch.schema_ref().index_of(name);
        let places = self.columns().names().map(place).collect::<Result<Vec<_>, _>>().map_err(WriteError::from)?;
        let columns = places.into_iter().map(|at| batch.column(at).clone()).collect();
        Ok(RecordBatch::try_new(self.schema().clone(), columns).map_err(WriteError::from)?)
    }

    /// Rows need a key to have a place: see [`super::index_columns`].
    pub fn is_index(&self) -> bool {
        matches!(self.recipe, EncodingPlan::Cdxj | EncodingPlan::Zipnum)
    }

    /// Each part stays apart in the output, so that small ones cost readers more.
    pub fn has_groups(&self) -> bool {
        matches!(self.recipe, EncodingPlan::Parquet(_) | EncodingPlan::Batch | EncodingPlan::Zipnum)
    }

    /// Encodes rows that are a batch of this output's columns already.
    ///
    /// # Errors
    /// The format refuses them.
    pub fn encode_batch(&self, batch: &RecordBatch) -> Result<Part, OutputError> {
        let rows = batch.num_rows() as u64;
        let body = if rows == 0 { PartBody::Nothing } else { self.batch_body(batch)? };
        Ok(Part { body, rows })
    }

    fn batch_body(&self, batch: &RecordBatch) -> Result<PartBody, OutputError> {
        Ok(match &self.recipe {
            EncodingPlan::Parquet(groups) => PartBody::RowGroup(groups.encode(batch)?),
            EncodingPlan::Delimited(delimiter) => {
                PartBody::Bytes(lines::delimited(self.builder.columns(), batch, *delimiter))
            }
            EncodingPlan::JsonLines => PartBody::Bytes(lines::json(self.builder.columns(), batch)),
            EncodingPlan::Cdxj => PartBody::Bytes(index_lines::cdxj(batch)),
            EncodingPlan::Zipnum => PartBody::Members(index_lines::zipnum(batch).map_err(WriteError::from)?),
            EncodingPlan::Text => PartBody::Bytes(lines::uris(batch)),
            EncodingPlan::Batch => PartBody::Batch(batch.clone()),
        })
    }
}
