//! Encodes rows for an output. This is the expensive step of writing, so that workers do it in parallel.

use std::fmt;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;

use super::error::{OutputError, WriteError};
use super::index_lines::{self, GzipMember};
use super::lines;
use super::options::OutputFormat;
use super::packing::TextPacking;
use super::row_group::{EncodedRowGroup, RowGroupSlice, RowGroups};
use crate::batch::{BatchBuilder, ColumnSet, SourceRun};
use crate::canon::{Policy, Rows};

/// Encodes rows for one output. Workers share it.
pub struct Encoder {
    pub(super) builder: BatchBuilder,
    pub(super) format: OutputFormat,
    /// Encodes row groups of Parquet; other formats have none.
    pub(super) row_groups: Option<RowGroups>,
    pub(super) packing: TextPacking,
}

/// Encoded rows of one output, to be appended in order.
pub struct EncodedRows {
    pub(super) body: EncodedBody,
    rows: u64,
}

/// How many rows the files of an output have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileRows {
    /// Number of rows of all files so far.
    pub(crate) written: u64,
    /// Rows of a file.
    pub(crate) limit: u64,
}

impl FileRows {
    /// Returns the number of rows until the current file is full, at least one.
    pub(crate) fn remaining(self) -> u64 {
        self.limit - self.written % self.limit
    }

    /// Returns whether the last of `count` more rows fills a file.
    pub(crate) fn end_after(self, count: u64) -> bool {
        count > 0 && (self.written + count).is_multiple_of(self.limit)
    }
}

pub(super) enum EncodedBody {
    Empty,
    /// A slice of a row group, for [`Encoder::join`].
    Slice(RowGroupSlice),
    RowGroup(EncodedRowGroup),
    Batch(RecordBatch),
    Bytes(Vec<u8>),
    Members(Vec<GzipMember>),
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<_> = self.columns().names().collect();
        f.debug_struct("Encoder").field("columns", &columns).finish_non_exhaustive()
    }
}

impl fmt::Debug for EncodedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodedRows").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl EncodedRows {
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
    pub fn encode(&self, rows: &mut Rows, runs: &[SourceRun]) -> Result<EncodedRows, OutputError> {
        self.join(self.slices(rows, runs, None)?)
    }

    /// Returns the policy of the options, which has to make the rows.
    pub fn policy(&self) -> &Policy {
        self.builder.policy()
    }

    /// Number of buffers in the pool of the encoder.
    #[cfg(test)]
    pub(super) fn pooled_buffer_count(&self) -> usize {
        self.row_groups.as_ref().map_or(0, |groups| groups.pool.count())
    }

    /// Returns whether a row group can be joined from slices, so that several threads encode it. With Snappy, the general encoder
    /// encodes texts, which are most of the work, and it needs a whole row group.
    pub(crate) fn joins_slices(&self) -> bool {
        self.row_groups.as_ref().is_some_and(|groups| groups.codecs.is_some())
    }

    /// Encodes `rows` as slices, of which [`Encoder::join`] makes row groups: as one slice, unless `files` ends files of the
    /// output within these rows. Then each slice but the last one ends a file. Afterwards `rows` is empty as after
    /// [`Encoder::encode`].
    pub(crate) fn slices(
        &self,
        rows: &mut Rows,
        runs: &[SourceRun],
        files: Option<FileRows>,
    ) -> Result<Vec<EncodedRows>, OutputError> {
        let count = rows.len() as u64;
        let mut next = files.map_or(u64::MAX, FileRows::remaining);
        if count <= next {
            let body = if rows.is_empty() { EncodedBody::Empty } else { self.body(rows, runs)? };
            rows.clear();
            return Ok(vec![EncodedRows { body, rows: count }]);
        }
        let batch = self.builder.build(rows, runs)?;
        let (mut slices, mut at) = (Vec::new(), 0);
        while at < count {
            let places = UInt64Array::from_iter_values(at..next.min(count));
            let body = self.batch_body(&take_record_batch(&batch, &places).map_err(WriteError::from)?)?;
            slices.push(EncodedRows { body, rows: places.len() as u64 });
            (at, next) = (next, next.saturating_add(files.map_or(u64::MAX, |files| files.limit)));
        }
        self.builder.reclaim(batch, rows);
        Ok(slices)
    }

    /// Joins slices that follow each other. Only row groups of Parquet can have several.
    ///
    /// # Errors
    /// The format cannot encode the rows, or cannot join slices.
    pub(crate) fn join(&self, slices: Vec<EncodedRows>) -> Result<EncodedRows, OutputError> {
        let (mut rows, mut bodies) = (0, Vec::new());
        for slice in slices {
            rows += slice.rows;
            bodies.extend(Some(slice.body).filter(|body| !matches!(body, EncodedBody::Empty)));
        }
        let Some(groups) = &self.row_groups else {
            let body = bodies.pop().unwrap_or(EncodedBody::Empty);
            return if bodies.is_empty() { Ok(EncodedRows { body, rows }) } else { Err(OutputError::ForeignRows) };
        };
        let slice = |body| if let EncodedBody::Slice(slice) = body { Ok(slice) } else { Err(OutputError::ForeignRows) };
        let slices = bodies.into_iter().map(slice).collect::<Result<Vec<_>, _>>()?;
        let body = if slices.is_empty() { EncodedBody::Empty } else { EncodedBody::RowGroup(groups.join(slices)?) };
        Ok(EncodedRows { body, rows })
    }

    fn body(&self, rows: &mut Rows, runs: &[SourceRun]) -> Result<EncodedBody, OutputError> {
        if self.format == OutputFormat::Text {
            return self.packed(lines::uris_of_rows(&rows.uri));
        }
        let batch = self.builder.build(rows, runs)?;
        let body = self.batch_body(&batch)?;
        if !matches!(body, EncodedBody::Batch(_)) {
            self.builder.reclaim(batch, rows);
        }
        Ok(body)
    }

    pub(crate) fn columns(&self) -> &ColumnSet {
        self.builder.columns()
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        self.builder.schema()
    }

    /// Returns the builder of the batches that [`Encoder::encode_batch`] encodes.
    pub(crate) fn builder(&self) -> &BatchBuilder {
        &self.builder
    }

    /// Returns the columns of this output from a batch that has more columns. Rows of an index stay as they are.
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
        self.format.is_index()
    }

    /// Returns whether the output keeps rows that were encoded together as a group: a row group, a record batch, or a member or
    /// frame. Then few rows at a time make reading slower.
    pub(crate) fn has_groups(&self) -> bool {
        self.packing != TextPacking::None || self.format.is_binary()
    }

    pub(crate) fn encode_batch(&self, batch: &RecordBatch) -> Result<EncodedRows, OutputError> {
        let rows = batch.num_rows() as u64;
        let body = if rows == 0 { EncodedBody::Empty } else { self.batch_body(batch)? };
        self.join(vec![EncodedRows { body, rows }])
    }

    fn packed(&self, lines: Vec<u8>) -> Result<EncodedBody, OutputError> {
        Ok(EncodedBody::Bytes(self.packing.pack(lines).map_err(WriteError::from)?))
    }

    fn batch_body(&self, batch: &RecordBatch) -> Result<EncodedBody, OutputError> {
        Ok(match self.format {
            OutputFormat::Parquet | OutputFormat::Arrow | OutputFormat::ArrowStream => match &self.row_groups {
                Some(groups) => EncodedBody::Slice(groups.slice(batch)?),
                None => EncodedBody::Batch(batch.clone()),
            },
            OutputFormat::Csv | OutputFormat::Tsv | OutputFormat::JsonLines => {
                let kinds = self.columns().iter().map(|column| column.kind);
                self.packed(lines::rows_of_batch(self.format, kinds, batch))?
            }
            OutputFormat::Cdxj => EncodedBody::Bytes(index_lines::cdxj(batch).map_err(WriteError::from)?),
            OutputFormat::Zipnum => EncodedBody::Members(index_lines::zipnum(batch).map_err(WriteError::from)?),
            OutputFormat::Text => self.packed(lines::uris_of_batch(batch))?,
        })
    }
}
