//! The sort job: [`sort`]. Each worker sorts its row groups into runs, which stay in memory up to a limit and are spilled
//! beyond it; then the runs are merged, and workers gather and encode the merged rows in parallel. [`Sorter`] has the two
//! steps one by one, for jobs that can be resumed.

use super::error::RunError;
use super::in_order::produced_in_order;
use super::options::{RunOptions, RunRequest};
use super::summary::{Phase, Summary};
use super::{RowGroup, canon, memory};
use crate::batch::{BatchBuilder, ColumnSet, SourceRun};
use crate::canon::Policy;
use crate::output::{EncodedRows, Encoder, INDEX_KEY, INDEX_REST, OutputError, index_rows, index_schema};
use crate::sort::{EncodedBlock, MergeLimits, Partition, PickedRows, PlainMemory, SortBy, SortSchema, SortedRuns};
use crate::spill::SpillError;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use std::path::PathBuf;
use std::sync::Arc;

/// One `ALLOCATOR_SHARE`-th of the memory for runs is left to the allocator, which cannot reuse all gaps between blocks of
/// different lengths. Without it, peaks were up to a tenth above the limit.
const ALLOCATOR_SHARE: usize = 4;

/// One `PLAIN_SHARE`-th of the memory for runs is for runs that are not compressed. The others take a third of the memory.
const PLAIN_SHARE: usize = 4;

/// What a sort does.
#[derive(Clone, Debug)]
pub struct SortOptions {
    /// The columns to sort by.
    pub by: SortBy,
    /// How rows are partitioned before they are sorted.
    pub partition: Option<Partition>,
    /// Where parts end.
    pub cut: PartCut,
    /// Bytes of memory for runs.
    pub memory: usize,
    /// Directory of temporary files.
    pub directory: PathBuf,
}

/// Where parts of the output end. No two parts share a value of the first column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartCut {
    /// The output is one part.
    None,
    /// After this many rows.
    Rows(u64),
    /// So that there are about this many parts.
    Count(u32),
}

/// Encoded rows of a sorted output.
#[derive(Debug)]
pub struct SortedRows {
    /// The rows.
    pub encoded: EncodedRows,
    /// Their partition, from 0.
    pub partition: u32,
    /// Their part within the partition, from 0.
    pub part: u32,
    /// The value of the first row in the first column to sort by, if that is a text.
    pub(crate) first_key: Option<String>,
}

/// The result of a sort.
#[derive(Debug)]
pub struct SortSummary {
    /// Counts of the run.
    pub summary: Summary,
    /// Bytes of temporary files.
    pub spilled: u64,
}

/// Why a sort failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SortError {
    /// The output cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A temporary file cannot be used.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// A column to sort or to partition by is missing, or its type has no order.
    #[error("cannot sort by {by}: {error}")]
    Columns {
        /// The columns to sort by.
        by: SortBy,
        /// The error.
        error: ArrowError,
    },
    /// Rows were lost: a bug in irikey.
    #[error("{rows} rows were sorted, but {written} were written; this is a bug in irikey: do not use the output")]
    Lost {
        /// Rows that were sorted.
        rows: u64,
        /// Rows that were written.
        written: u64,
    },
}

impl From<ArrowError> for SortError {
    fn from(error: ArrowError) -> SortError {
        SortError::Spill(error.into())
    }
}

/// Sorts the rows of the request and passes them, encoded by `encoder`, to `append`: partition by partition, and part by part.
/// The policy has to make the columns of the output and those to sort by.
///
/// # Errors
/// As [`super::canon`]; also if a column to sort by is missing or has no order, and if temporary files cannot be used.
pub fn sort(
    request: RunRequest<'_>,
    options: &SortOptions,
    encoder: &Encoder,
    append: impl FnMut(SortedRows) -> Result<(), OutputError> + Send,
) -> Result<SortSummary, RunError<SortError>> {
    let RunRequest { options: run, progress, .. } = request;
    request.check_output(encoder)?;
    let sorter = Sorter::new(&request.sources.names(), options, request.policy, encoder)?;
    let mut runs = sorter.new_runs();
    let summary = sorter.sort_runs(request, 0, |blocks| runs.add(blocks))?;
    progress.begin(Phase::Write);
    let (rows, spilled) = sorter.merge(run, runs, append)?;
    if rows != summary.rows {
        return Err(RunError::Output(SortError::Lost { rows: summary.rows, written: rows }));
    }
    let summary = Summary { memory: memory::peaks(), ..summary };
    Ok(SortSummary { summary, spilled })
}

/// The two steps of [`sort`], for a job that can be resumed: sorted runs of the sources, and their merge.
pub(crate) struct Sorter<'a> {
    builder: BatchBuilder,
    schema: SortSchema,
    options: &'a SortOptions,
    encoder: &'a Encoder,
    plain: PlainMemory,
}

impl<'a> Sorter<'a> {
    /// A sort of rows of the sources with these names.
    ///
    /// # Errors
    /// A column is missing or its type has no order.
    pub(crate) fn new(
        names: &[String],
        options: &'a SortOptions,
        policy: &Policy,
        encoder: &'a Encoder,
    ) -> Result<Sorter<'a>, RunError<SortError>> {
        let columns = columns_to_sort(encoder.columns(), &options.by, options.partition.as_ref());
        let builder = BatchBuilder::new(columns, &[], policy, names);
        let partition = options.partition.clone();
        let schema = match encoder.is_index() {
            true => {
                let schema = index_batch_schema(partition.as_ref());
                let dictionaries = vec![None; schema.fields().len()];
                SortSchema::new(&schema, dictionaries, &SortBy::parse([INDEX_KEY, INDEX_REST]), partition)
            }
            false => SortSchema::new(builder.schema(), builder.dictionaries(), &options.by, partition),
        };
        let failed = |error| RunError::Output(SortError::Columns { by: options.by.clone(), error });
        let schema = schema.map_err(failed)?;
        let plain = PlainMemory::new(run_memory(options) / PLAIN_SHARE);
        Ok(Sorter { builder, schema, options, encoder, plain })
    }

    /// The same sort, for runs that are written to files: all of them are compressed.
    pub(crate) fn with_runs_in_files(self) -> Sorter<'a> {
        Sorter { plain: PlainMemory::new(0), ..self }
    }

    /// An empty collection of runs, with the memory of this sort.
    pub(crate) fn new_runs(&self) -> SortedRuns {
        SortedRuns::new(run_memory(self.options), &self.options.directory)
    }

    /// Sorts each row group of the request and passes it to `add`. `first_source` is the number of the first source of the
    /// request among all sources of the sort. If it is not 0, the request has one source: at most [`MAX_SORTED_SOURCES`] may
    /// be sorted so, and each may have at most [`MAX_SORTED_SOURCE_ROWS`] rows.
    pub(crate) fn sort_runs(
        &self,
        request: RunRequest<'_>,
        first_source: u32,
        mut add: impl FnMut(Vec<EncodedBlock>) -> Result<(), SpillError> + Send,
    ) -> Result<Summary, RunError<SortError>> {
        let encode = |RowGroup { rows, runs: from, ticket, .. }: RowGroup<'_>| {
            let renumber = |run: &SourceRun| SourceRun { source: first_source + run.source, ..*run };
            let from: Vec<SourceRun> = from.iter().map(renumber).collect();
            let batch = self.builder.build(rows, &from).map_err(OutputError::from)?;
            let first_row = first_ordinal(first_source) + ticket.first_row();
            let blocks = match self.encoder.is_index() {
                true => {
                    let index = index_batch(&batch, self.options.partition.as_ref())?;
                    self.schema.sort(&index, first_row, &self.plain)?
                }
                false => self.schema.sort(&batch, first_row, &self.plain)?,
            };
            self.builder.reclaim(batch, rows);
            Ok(Some(blocks))
        };
        // Where the row groups of the input end makes no difference to sorted rows.
        canon(RunRequest { counts_bases: true, ..request }, encode, |blocks| Ok(add(blocks)?))
    }

    /// Merges `runs` and passes their rows to `append`. Returns the number of rows and the bytes of temporary files.
    pub(crate) fn merge(
        &self,
        run: &RunOptions,
        mut runs: SortedRuns,
        mut append: impl FnMut(SortedRows) -> Result<(), OutputError> + Send,
    ) -> Result<(u64, u64), RunError<SortError>> {
        let (run, rows) = (run.clamped(), runs.rows());
        runs.reduce(&self.schema).map_err(RunError::output)?;
        let spilled = runs.written_len();
        // Encoding twice the texts of a row group takes about as much memory as making a row group did.
        let len = run.row_group_len.saturating_mul(2);
        let part_rows = self.options.cut.rows_per_part(rows);
        let limits = MergeLimits { len, part_rows, ..MergeLimits::default() };
        let mut merger = runs.merger(&self.schema, limits).map_err(RunError::output)?;
        let mut written = 0;
        let take = |sorted: SortedRows| {
            written += sorted.encoded.rows();
            Ok(append(sorted)?)
        };
        let next = || Ok(merger.next_rows()?);
        produced_in_order(run.threads, next, |picked| self.encode(&picked), take)?;
        match written == rows {
            true => Ok((rows, spilled)),
            false => Err(RunError::Output(SortError::Lost { rows, written })),
        }
    }

    fn encode(&self, picked: &PickedRows) -> Result<SortedRows, SortError> {
        let batch = self.schema.gather(picked)?;
        let first = self.options.by.names().next();
        let column = first.and_then(|name| batch.column_by_name(name)?.as_string_opt::<i32>());
        let first_key = column.filter(|keys| keys.is_valid(0)).map(|keys| keys.value(0).to_string());
        memory::sample();
        let encoded = self.encoder.encode_batch(&self.encoder.project(&batch)?)?;
        Ok(SortedRows { encoded, partition: picked.partition, part: picked.part, first_key })
    }
}

/// Bytes of memory for runs.
fn run_memory(options: &SortOptions) -> usize {
    options.memory - options.memory / ALLOCATOR_SHARE
}

/// Bits of the number of a row within its source, when the runs of each source are made by themselves. The other bits of
/// its ordinal are the number of the source.
const SOURCE_ROW_BITS: u32 = 40;

/// Maximum number of sources whose runs are made by themselves.
pub(crate) const MAX_SORTED_SOURCES: usize = 1 << (u64::BITS - SOURCE_ROW_BITS);

/// Maximum number of rows of a source whose runs are made by themselves.
pub(crate) const MAX_SORTED_SOURCE_ROWS: u64 = 1 << SOURCE_ROW_BITS;

/// Ordinal of the first row of a source: rows of earlier sources come before it.
fn first_ordinal(source: u32) -> u64 {
    u64::from(source) << SOURCE_ROW_BITS
}

/// The rows of an index, and the column that determines their partition.
fn index_batch(batch: &RecordBatch, partition: Option<&Partition>) -> Result<RecordBatch, ArrowError> {
    let rows = index_rows(batch)?;
    let mut columns = rows.columns().to_vec();
    columns.extend(match partition {
        Some(Partition::Surt(_)) => Some(columns[0].clone()),
        Some(partition @ Partition::Host(_)) => batch.column_by_name(partition.column()).cloned(),
        None => None,
    });
    RecordBatch::try_new(index_batch_schema(partition), columns)
}

fn index_batch_schema(partition: Option<&Partition>) -> SchemaRef {
    let mut fields = index_schema().fields().to_vec();
    fields.extend(partition.map(|partition| Arc::new(Field::new(partition.column(), DataType::Utf8, true))));
    Arc::new(Schema::new(fields))
}

/// The columns that rows need for a sort: those of the output, and those that they are sorted and partitioned by.
pub(crate) fn columns_to_sort(columns: &ColumnSet, by: &SortBy, partition: Option<&Partition>) -> ColumnSet {
    let mut all = columns.clone();
    all.add_named(by.names().chain(partition.map(Partition::column)));
    all
}

impl PartCut {
    /// Rows after which a part may end.
    fn rows_per_part(self, rows: u64) -> Option<u64> {
        match self {
            PartCut::None => None,
            PartCut::Rows(rows) => Some(rows.max(1)),
            PartCut::Count(count) => Some(rows.div_ceil(u64::from(count.max(1))).max(1)),
        }
    }
}
