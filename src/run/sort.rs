//! Rows in the order of columns: [`sort`]. Each span is sorted by its worker; what comes of the spans are runs, in memory
//! and past its limit in temporary files; merged, they are groups of rows, which workers gather and encode side by side.
//! In: as [`super::canon`]. Out: the same rows, in one order, with what each belongs to. [`Sorter`] does the two steps one by
//! one.

use super::error::RunError;
use super::in_order::produced_in_order;
use super::lanes::Turn;
use super::options::RunOptions;
use super::summary::{Progress, Summary};
use super::{canon_in_turn, memory};
use crate::batch::{BatchBuilder, Columns, SourceRun};
use crate::canon::{Policy, Rows};
use crate::dedup::SpillError;
use crate::input::Sources;
use crate::output::{Encoder, OutputError, Part};
use crate::sort::{Group, Limits, Merger, Packed, Partition, Runs, Shape, SortBy};
use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::error::ArrowError;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// This part of the memory for runs is left to the allocator: blocks come and go in many lengths, and what lies between
/// them is not given back. Without it peaks were up to a tenth above what was allowed.
const SLACK: usize = 4;

/// What is wanted of a sort.
#[derive(Clone, Debug)]
pub struct SortOptions {
    /// The columns to sort by.
    pub by: SortBy,
    /// How rows are parted before they are sorted.
    pub partition: Option<Partition>,
    /// Where parts end.
    pub cut: PartCut,
    /// Bytes of memory for runs.
    pub memory: usize,
    /// The directory of temporary files.
    pub directory: PathBuf,
}

/// Where parts end. No two parts share a value of the first column to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartCut {
    /// There is one.
    None,
    /// After so many rows.
    Rows(u64),
    /// So that there are about so many.
    Count(u32),
}

/// Encoded rows, and what they belong to.
pub struct Sorted {
    /// The rows.
    pub part: Part,
    /// Their partition, from 0.
    pub partition: u32,
    /// Their part of it, from 0.
    pub number: u32,
    /// What the first of them holds in the first column to sort by, if that is a text.
    pub first_key: Option<String>,
}

/// What a sort came to.
#[derive(Debug)]
pub struct SortSummary {
    /// The run's counts.
    pub summary: Summary,
    /// Runs before they were merged.
    pub runs: usize,
    /// Bytes of temporary files.
    pub spilled: u64,
}

/// What ends a sort.
#[derive(Debug, thiserror::Error)]
pub enum SortError {
    /// The output could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A temporary file could not be used.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// Rows were lost. A defect of this program.
    #[error("{rows} rows were sorted and {written} written; this is a defect of irikey, do not use the output")]
    Lost {
        /// Rows made.
        rows: u64,
        /// Rows that came out.
        written: u64,
    },
}

impl From<ArrowError> for SortError {
    fn from(error: ArrowError) -> SortError {
        SortError::Spill(error.into())
    }
}

/// Gives the rows of `inputs` to `append` in the order that is wanted, encoded by `encoder`. Rows must be made with the
/// columns of [`made_columns`].
///
/// # Errors
/// As [`super::canon`]; besides, temporary files that cannot be used.
pub fn sort(
    inputs: Sources,
    options: &RunOptions,
    wanted: &SortOptions,
    policy: &Policy,
    encoder: &Encoder,
    append: impl FnMut(Sorted) -> Result<(), OutputError> + Send,
    progress: &Progress,
) -> Result<SortSummary, RunError<SortError>> {
    let sorter = Sorter::new(&inputs.names(), options, wanted, policy, encoder)?;
    let mut runs = sorter.no_runs();
    let summary = sorter.runs(inputs, 0, |blocks| runs.add(blocks), progress)?;
    let count = runs.len();
    let (rows, spilled) = sorter.merge(runs, append)?;
    if rows != summary.rows {
        return Err(RunError::Output(SortError::Lost { rows: summary.rows, written: rows }));
    }
    let summary = Summary { memory: memory::peaks(), ..summary };
    Ok(SortSummary { summary, runs: count, spilled })
}

/// A sort in two steps, between which a job may end and be taken up again: runs of the inputs, and their merge.
pub struct Sorter<'a> {
    builder: BatchBuilder,
    shape: Shape,
    options: &'a RunOptions,
    wanted: &'a SortOptions,
    policy: &'a Policy,
    encoder: &'a Encoder,
}

impl<'a> Sorter<'a> {
    /// A sort of all sources of these names, as [`sort`].
    ///
    /// # Errors
    /// A column that is not there or has no order.
    pub fn new(
        names: &[String],
        options: &'a RunOptions,
        wanted: &'a SortOptions,
        policy: &'a Policy,
        encoder: &'a Encoder,
    ) -> Result<Sorter<'a>, RunError<SortError>> {
        let columns = made_columns(encoder.columns(), &wanted.by, wanted.partition.as_ref());
        let builder = BatchBuilder::new(columns, &[], policy, names);
        let (schema, dictionaries) = (builder.schema(), builder.dictionaries());
        let shape = Shape::new(schema, dictionaries, &wanted.by, wanted.partition.clone());
        let shape = shape.map_err(|error| RunError::Output(error.into()))?;
        Ok(Sorter { builder, shape, options, wanted, policy, encoder })
    }

    /// Where runs can be collected.
    pub fn no_runs(&self) -> Runs {
        Runs::new(self.wanted.memory - self.wanted.memory / SLACK, &self.wanted.directory)
    }

    /// Gives the rows of `inputs`, of which the first is number `first_source` of all sources, to `add`, span by span and
    /// each span sorted.
    ///
    /// # Errors
    /// As [`sort`].
    pub fn runs(
        &self,
        inputs: Sources,
        first_source: u32,
        mut add: impl FnMut(Vec<Packed>) -> Result<(), SpillError> + Send,
        progress: &Progress,
    ) -> Result<Summary, RunError<SortError>> {
        let encode = |turn: &Turn<'_>, rows: &mut Rows, from: &[SourceRun]| -> Result<Option<Vec<Packed>>, SortError> {
            let renumbered = |run: &SourceRun| SourceRun { source: first_source + run.source, ..*run };
            let from: Vec<SourceRun> = from.iter().map(renumbered).collect();
            let mut batch = self.builder.build(rows, &from).map_err(OutputError::from)?;
            if self.encoder.is_index() {
                batch = with_keys(batch)?;
            }
            let blocks = self.shape.sort(&batch, first_ordinal(first_source) + turn.first_row())?;
            self.builder.reclaim(batch, rows);
            Ok(Some(blocks))
        };
        canon_in_turn(inputs, self.options, self.policy, encode, |blocks| Ok(add(blocks)?), progress)
    }

    /// Gives the rows of all `runs` to `append`, in order; says how many there were, and the bytes of temporary files.
    ///
    /// # Errors
    /// As [`sort`].
    pub fn merge(
        &self,
        runs: Runs,
        mut append: impl FnMut(Sorted) -> Result<(), OutputError> + Send,
    ) -> Result<(u64, u64), RunError<SortError>> {
        let failed = |error: SpillError| RunError::Output(SortError::Spill(error));
        let (options, rows) = (self.options.clamped(), runs.rows());
        let mut runs = runs.reduce(&self.shape).map_err(failed)?;
        let spilled = runs.written();
        // What is encoded at a time takes about as much memory as on the way here.
        let group_len = options.row_group_len.saturating_mul(2);
        let limits = Limits { group_len, part_rows: part_rows(self.wanted.cut, rows), ..Limits::default() };
        let merger = Mutex::new(runs.merger(&self.shape, limits).map_err(failed)?);
        let mut written = 0;
        let take = |sorted: Sorted| {
            written += sorted.part.rows();
            Ok(append(sorted)?)
        };
        let next = || Ok(lock(&merger).next_group()?);
        produced_in_order(options.threads, next, |group| self.encode(&group), take)?;
        match written == rows {
            true => Ok((rows, spilled)),
            false => Err(RunError::Output(SortError::Lost { rows, written })),
        }
    }

    fn encode(&self, group: &Group) -> Result<Sorted, SortError> {
        let batch = self.shape.gather(group)?;
        let first = self.wanted.by.names().next();
        let column = first.and_then(|name| batch.column_by_name(name)?.as_string_opt::<i32>());
        let first_key = column.filter(|keys| keys.is_valid(0)).map(|keys| keys.value(0).to_string());
        memory::sample();
        let part = self.encoder.encode_batch(&self.encoder.project(&batch)?)?;
        Ok(Sorted { part, partition: group.partition, number: group.part, first_key })
    }
}

/// Ordinal of the first row of a source whose runs are made by themselves: rows of sources before it come before it.
fn first_ordinal(source: u32) -> u64 {
    u64::from(source) << SOURCE_ROWS_BITS
}

/// A source has fewer rows than this many bits count, and there are fewer sources than the other bits count.
const SOURCE_ROWS_BITS: u32 = 40;

fn lock<'m, 'a>(merger: &'m Mutex<Merger<'a>>) -> std::sync::MutexGuard<'m, Merger<'a>> {
    merger.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Rows of an index stand where their line does: that of a row without a SURT key begins with `-`.
fn with_keys(batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
    let Some(at) = batch.schema_ref().index_of("url_surtkey").ok().filter(|&at| batch.column(at).null_count() > 0)
    else {
        return Ok(batch);
    };
    let keys = batch.column(at).as_string::<i32>().iter().map(|key| Some(key.unwrap_or("-")));
    let keys: StringArray = keys.collect();
    let (schema, mut columns, _) = batch.into_parts();
    columns[at] = Arc::new(keys);
    RecordBatch::try_new(schema, columns)
}

/// The columns that rows have to be made with: those of the output, and those that it is sorted and parted by.
pub fn made_columns(columns: &Columns, by: &SortBy, partition: Option<&Partition>) -> Columns {
    let names = columns.names().map(|name| -> &str { name });
    let names = names.chain(by.names()).chain(partition.map(Partition::column));
    // Names that no column bears were refused where they were read.
    Columns::named(names).unwrap_or_else(|_| columns.clone())
}

fn part_rows(cut: PartCut, rows: u64) -> Option<u64> {
    match cut {
        PartCut::None => None,
        PartCut::Rows(rows) => Some(rows.max(1)),
        PartCut::Count(count) => Some(rows.div_ceil(u64::from(count.max(1))).max(1)),
    }
}
