//! Encodes rows as parts of an output. This is the expensive part of writing, so that workers do it in parallel.

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;

use super::error::{OutputError, WriteError};
use super::index_lines::{self, GzipMember};
use super::lines;
use super::packing::TextPacking;
use super::row_group::{ColumnChunk, RowGroups};
use crate::batch::{BatchBuilder, ColumnSet, SourceRun};
use crate::canon::Rows;

/// Encodes rows as parts of one output. Workers share it.
pub struct Encoder {
    pub(super) builder: BatchBuilder,
    pub(super) plan: EncodingPlan,
    pub(super) packing: TextPacking,
}

/// How parts are encoded.
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

/// Encoded rows of one output, to be appended in order.
pub struct Part {
    pub(super) body: PartBody,
    rows: u64,
}

/// The encoded form of a part.
pub(super) enum PartBody {
    Empty,
    RowGroup(Vec<ColumnChunk>),
    Batch(RecordBatch),
    Bytes(Vec<u8>),
    Members(Vec<GzipMember>),
}

impl Part {
    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }
}

impl Encoder {
    /// Encodes `rows`, which come from `runs` in this order, as one row group, record batch or sequence of lines.
    /// Afterwards `rows` and its tally are empty; its memory is kept if possible.
    ///
    /// # Errors
    /// The rows do not form a batch, or the format cannot encode them.
    pub fn encode(&self, rows: &mut Rows, runs: &[SourceRun]) -> Result<Part, OutputError> {
        let count = rows.len() as u64;
        let body = if rows.is_empty() { PartBody::Empty } else { self.body(rows, runs)? };
        rows.clear();
        Ok(Part { body, rows: count })
    }

    /// Encodes `rows` as [`Encoder::encode`] does, but ends a part after every `part_rows` rows of the output.
    /// `first_row` is the number of output rows before these.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    pub(crate) fn encode_parts(
        &self,
        rows: &mut Rows,
        runs: &[SourceRun],
        (first_row, part_rows): (u64, u64),
    ) -> Result<Vec<Part>, OutputError> {
        let count = rows.len() as u64;
        let mut next = part_rows - first_row % part_rows;
        if count <= next {
            return Ok(vec![self.encode(rows, runs)?]);
        }
        let batch = self.batch(rows, runs)?;
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < count {
            let places = UInt64Array::from_iter_values(at..next.min(count));
            let rows = take_record_batch(&batch, &places).map_err(WriteError::from)?;
            parts.push(self.encode_batch(&rows)?);
            (at, next) = (next, next.saturating_add(part_rows));
        }
        self.reclaim(batch, rows);
        Ok(parts)
    }

    fn body(&self, rows: &mut Rows, runs: &[SourceRun]) -> Result<PartBody, OutputError> {
        if matches!(self.plan, EncodingPlan::Text) {
            return self.packed(lines::text(&rows.uri));
        }
        let batch = self.builder.build(rows, runs)?;
        let body = self.batch_body(&batch)?;
        if !matches!(body, PartBody::Batch(_)) {
            self.builder.reclaim(batch, rows);
        }
        Ok(body)
    }

    /// Returns the columns of the output.
    pub(crate) fn columns(&self) -> &ColumnSet {
        self.builder.columns()
    }

    /// Returns the schema of the output's batches.
    pub(crate) fn schema(&self) -> &SchemaRef {
        self.builder.schema()
    }

    /// Builds the batch of `rows` without encoding it, for [`Encoder::encode_batch`].
    ///
    /// # Errors
    /// The rows do not form a batch.
    pub(crate) fn batch(&self, rows: &mut Rows, runs: &[SourceRun]) -> Result<RecordBatch, OutputError> {
        Ok(self.builder.build(rows, runs)?)
    }

    /// Moves the memory of a batch back to `rows`, which are empty afterwards.
    pub(crate) fn reclaim(&self, batch: RecordBatch, rows: &mut Rows) {
        self.builder.reclaim(batch, rows);
    }

    /// Returns the columns of this output from a batch that has more columns. Rows of an index stay as they are.
    ///
    /// # Errors
    /// A column is missing.
    pub(crate) fn project(&self, batch: &RecordBatch) -> Result<RecordBatch, OutputError> {
        if self.is_index() {
            return Ok(batch.clone());
        }
        let place = |name| batch.schema_ref().index_of(name);
        let places = self.columns().names().map(place).collect::<Result<Vec<_>, _>>().map_err(WriteError::from)?;
        let columns = places.into_iter().map(|at| batch.column(at).clone()).collect();
        Ok(RecordBatch::try_new(self.schema().clone(), columns).map_err(WriteError::from)?)
    }

    /// Returns whether the output is an index of captures, whose rows need a key.
    pub(crate) fn is_index(&self) -> bool {
        matches!(self.plan, EncodingPlan::Cdxj | EncodingPlan::Zipnum)
    }

    /// Returns whether parts stay separate in the output, so that small parts make reading slower.
    pub(crate) fn has_groups(&self) -> bool {
        let is_packed = self.packing != TextPacking::None;
        is_packed || matches!(self.plan, EncodingPlan::Parquet(_) | EncodingPlan::Batch | EncodingPlan::Zipnum)
    }

    /// Encodes a batch of this output's columns.
    ///
    /// # Errors
    /// The format cannot encode the batch.
    pub(crate) fn encode_batch(&self, batch: &RecordBatch) -> Result<Part, OutputError> {
        let rows = batch.num_rows() as u64;
        let body = if rows == 0 { PartBody::Empty } else { self.batch_body(batch)? };
        Ok(Part { body, rows })
    }

    fn packed(&self, lines: Vec<u8>) -> Result<PartBody, OutputError> {
        Ok(PartBody::Bytes(self.packing.pack(lines).map_err(WriteError::from)?))
    }

    fn batch_body(&self, batch: &RecordBatch) -> Result<PartBody, OutputError> {
        Ok(match &self.plan {
            EncodingPlan::Parquet(groups) => PartBody::RowGroup(groups.encode(batch)?),
            EncodingPlan::Delimited(delimiter) => {
                self.packed(lines::delimited(self.builder.columns(), batch, *delimiter))?
            }
            EncodingPlan::JsonLines => self.packed(lines::json(self.builder.columns(), batch))?,
            EncodingPlan::Cdxj => PartBody::Bytes(index_lines::cdxj(batch).map_err(WriteError::from)?),
            EncodingPlan::Zipnum => PartBody::Members(index_lines::zipnum(batch).map_err(WriteError::from)?),
            EncodingPlan::Text => self.packed(lines::uris(batch))?,
            EncodingPlan::Batch => PartBody::Batch(batch.clone()),
        })
    }
}
