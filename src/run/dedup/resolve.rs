//! The end of a dedup run: [`resolve`] decides about pending rows, partition by partition, and [`finish`] writes those that are
//! kept, in input order.

use super::super::{RunError, Summary, in_order::in_order, memory};
use super::candidate_keys::EvidenceColumns;
use super::job::{DedupJob, PendingRowGroups, filter};
use super::new_keys::{NewKeys, PartitionKeys};
use super::options::DedupOptions;
use super::row_groups::{RowGroupBuilder, RowGroupFill, concat_batches};
use super::summary::{DedupCounts, DedupError, DedupOutput, DedupSummary, DedupTotals, SURELY_KEPT};
use crate::dedup::evidence::{self, RecordLocator};
use crate::dedup::seen::{KeyCursor, RunWriter, SeenError, SeenStore};
use crate::dedup::{
    Collisions, Decisions, EntrySpill, KeySet, KeyTable, PARTITION_BITS, PARTITIONS, PartitionResolver,
    resolve_by_order,
};
use crate::output::{Encoder, OutputError};
use crate::process::release_free_memory;
use crate::spill::{PendingRows, RowSpool};
use arrow::array::RecordBatch;
use parking_lot::Mutex;
use std::ops::Range;

/// What is known of a run when all records have been read.
pub(super) struct ReadRun {
    pub(super) names: Vec<String>,
    pub(super) threads: usize,
    pub(super) summary: Summary,
}

/// What was decided about pending rows.
pub(super) struct Resolved {
    pub(super) decisions: Decisions,
    collisions: Collisions,
    new_keys: Option<RunWriter>,
    /// Bytes of temporary files.
    spilled: u64,
}

/// Decides about pending rows when all records have been read, and collects new keys.
pub(super) fn resolve(
    job: &mut DedupJob<'_>,
    pending: &PendingRowGroups,
    read: &ReadRun,
) -> Result<Resolved, RunError<DedupError>> {
    let PendingRowGroups { spool, groups } = pending;
    let has_pending = !spool.is_empty() || !groups.is_empty();
    let options = job.options;
    // The key set is freed for the resolution, unless its keys are collected.
    let keys = job.keys.take().filter(|_| options.gather_new);
    let tables: Vec<_> = keys.into_iter().flat_map(KeySet::into_tables).collect();
    release_free_memory();
    let spill = job.take_spill();
    let (decisions, share) = begin_decisions(job, if has_pending { read.summary.rows } else { 0 });
    let resolution = DuplicateResolution {
        options,
        store: options.seen.as_deref().filter(|_| job.seen.is_none()),
        decisions: &decisions,
        counts: &job.counts,
        threads: read.threads,
        limit: share / read.threads,
        new_keys: NewKeys::new(share / partitions_in_progress(read.threads), &options.directory),
        collisions: Mutex::default(),
    };
    let new_keys = resolution.resolve(&spill, tables, has_pending)?;
    let (collisions, keys_len) = (resolution.collisions.into_inner(), resolution.new_keys.written_len());
    if let Some(survey) = &mut job.survey {
        survey.decide_pending(&decisions, options.seen.as_deref()).map_err(RunError::output)?;
    }
    job.seen = None;
    decisions.sort_reasons().map_err(RunError::output)?;
    let spilled = spool.written_len() + spill.written_len() + keys_len + decisions.written_len();
    if !groups.is_empty() {
        job.counts.add_all_decided(decisions.all_kept_count());
        groups.add_kept(&decisions);
    }
    Ok(Resolved { decisions, collisions, new_keys, spilled })
}

/// Returns decisions on the rows of a run, and the bytes of memory of each consumer besides them.
fn begin_decisions(job: &DedupJob<'_>, rows: u64) -> (Decisions, usize) {
    let (decisions, share) = (Decisions::new(rows), job.resolution.share(rows));
    match job.options.has_evidence {
        true => (decisions.with_reasons(share, &job.options.directory), share),
        false => (decisions, share),
    }
}

/// Ends a run when all pending rows are decided: appends those of the spool that are kept, and checks that no row was lost.
pub(super) fn finish(
    job: DedupJob<'_>,
    Resolved { decisions, collisions, new_keys, spilled }: Resolved,
    (spool, ReadRun { names, threads, summary }): (&RowSpool, ReadRun),
    append: impl FnMut(DedupOutput) -> Result<(), OutputError> + Send,
) -> Result<DedupSummary, RunError<DedupError>> {
    let DedupJob { encoder, evidence, counts, row_groups, compaction, survey, .. } = job;
    let locator = RecordLocator::new(names, &summary.source_records);
    let unfinished = row_groups.into_inner();
    let evidence = evidence.as_ref();
    let (locator, decisions) = (&locator, &decisions);
    let writer = PendingWriter { encoder, evidence, spool, locator, threads, decisions, counts: &counts };
    writer.write(unfinished, append)?;
    memory::sample();
    let totals = DedupTotals { spilled, ..counts.finish(&summary).map_err(RunError::Output)? };
    let (findings, merged) = (survey.map(|survey| survey.finish(&totals)), compaction.finish()?);
    let summary = Summary { distinct_keys: totals.kept, is_distinct_exact: true, memory: memory::peaks(), ..summary };
    Ok(DedupSummary { summary, totals, collisions, findings, new_keys, merged })
}

/// Resolves the pending rows of all partitions.
struct DuplicateResolution<'a> {
    options: &'a DedupOptions,
    /// Keys of earlier jobs, if they were not compared while records were read.
    store: Option<&'a SeenStore>,
    decisions: &'a Decisions,
    counts: &'a DedupCounts,
    threads: usize,
    /// Bytes of memory of a thread, to sort entries.
    limit: usize,
    new_keys: NewKeys,
    collisions: Mutex<Collisions>,
}

impl DuplicateResolution<'_> {
    /// Resolves all partitions. Returns the new keys, if they are collected. `tables` has those of rows that were not pending,
    /// by partition.
    fn resolve(
        &self,
        spill: &EntrySpill,
        tables: Vec<KeyTable<()>>,
        has_pending: bool,
    ) -> Result<Option<RunWriter>, RunError<DedupError>> {
        let store = self.options.seen.as_ref().filter(|_| self.options.gather_new);
        let writer = store.map(|store| store.writer()).transpose();
        let (mut writer, mut tables) = (writer.map_err(RunError::output)?, tables.into_iter());
        if has_pending || writer.is_some() {
            let write = |keys: PartitionKeys| {
                let table = tables.next().unwrap_or_else(|| KeyTable::new(PARTITION_BITS));
                let written = writer.as_mut().map_or(Ok(()), |writer| self.new_keys.write(&keys, &table, writer));
                memory::sample();
                written
            };
            in_order(self.threads, PARTITIONS, |partition| self.resolve_partition(spill, partition), write)?;
        }
        Ok(writer)
    }

    /// Resolves the pending rows of a partition. Returns their new keys, if they are collected.
    fn resolve_partition(&self, spill: &EntrySpill, partition: usize) -> Result<PartitionKeys, DedupError> {
        let needs_keys = self.store.is_some() || self.options.gather_new;
        let how = (self.options.keep, self.limit);
        if !needs_keys && let Some(resolved) = resolve_by_order(spill, partition, how, self.decisions)? {
            self.counts.add_resolved(resolved, 0);
            memory::sample();
            return Ok(PartitionKeys::default());
        }
        let (mut keys, mut seen) = (PartitionKeys::default(), None);
        let accept = |key| -> Result<bool, DedupError> {
            let is_seen = match self.store {
                Some(store) => is_seen(store, &mut seen, key)?,
                None => false,
            };
            if self.options.gather_new && !is_seen {
                self.new_keys.push(&mut keys, key)?;
            }
            Ok(!is_seen)
        };
        let mut resolver = PartitionResolver::new(self.options.keep, self.limit, self.decisions, accept);
        resolver.resolve(spill, partition)?;
        memory::sample();
        let PartitionResolver { resolved, refused, collisions, .. } = resolver;
        self.counts.add_resolved(resolved, refused);
        self.collisions.lock().merge(collisions);
        Ok(keys)
    }
}

/// Returns whether a store has a key. Keys ascend; the cursor is opened for the first one, so that a partition without pending
/// rows reads nothing.
fn is_seen<'a>(store: &'a SeenStore, cursor: &mut Option<KeyCursor<'a>>, key: u128) -> Result<bool, SeenError> {
    match cursor {
        Some(cursor) => cursor.seek(key),
        None => cursor.insert(store.cursor(key)?).seek(key),
    }
}

/// Maximum number of partitions that are resolved, but not written.
fn partitions_in_progress(threads: usize) -> usize {
    threads.saturating_mul(2).min(PARTITIONS)
}

/// Spool entries that a worker turns into output at a time.
struct PendingUnit {
    entries: Range<usize>,
    /// No unit before this one belongs to the same output row group.
    begins_group: bool,
    ends_group: bool,
}

/// The output of a [`PendingUnit`].
struct UnitOutput {
    /// Rows of the tables of duplicates, and a whole output row group.
    output: Vec<DedupOutput>,
    /// Kept rows of a part of an output row group.
    batches: Vec<RecordBatch>,
    ends_group: bool,
}

/// Writes pending rows that are kept, and the tables of duplicates.
struct PendingWriter<'a> {
    encoder: &'a Encoder,
    evidence: Option<&'a EvidenceColumns>,
    spool: &'a RowSpool,
    locator: &'a RecordLocator,
    threads: usize,
    decisions: &'a Decisions,
    counts: &'a DedupCounts,
}

impl PendingWriter<'_> {
    /// Appends the rows of the `unfinished` row group and then the pending rows.
    fn write(
        &self,
        unfinished: RowGroupBuilder,
        mut append: impl FnMut(DedupOutput) -> Result<(), OutputError> + Send,
    ) -> Result<(), RunError<DedupError>> {
        let RowGroupBuilder { fill, batches } = unfinished;
        let units = self.units(fill, !batches.is_empty());
        let batches = Mutex::new(batches);
        let work = |i: usize| {
            let first = if i == 0 { std::mem::take(&mut *batches.lock()) } else { Vec::new() };
            self.unit(&units[i], first)
        };
        let mut group = Vec::new();
        let append = |UnitOutput { output, batches, ends_group }: UnitOutput| {
            output.into_iter().try_for_each(&mut append)?;
            group.extend(batches);
            if ends_group && !group.is_empty() {
                append(self.encode(std::mem::take(&mut group))?)?;
            }
            Ok(())
        };
        in_order(self.threads, units.len(), work, append)
    }

    /// The work in the order of the spool: an output row group at a time, or less if tables of duplicates are written. A
    /// stretch of duplicates has few kept rows and may reach over any number of spool entries, but its tables are long.
    fn units(&self, fill: RowGroupFill, has_unfinished: bool) -> Vec<PendingUnit> {
        let whole = |entries| PendingUnit { entries, begins_group: true, ends_group: true };
        let row_groups = self.row_groups(fill, has_unfinished).into_iter();
        if self.evidence.is_none() {
            return row_groups.map(whole).collect();
        }
        let parts = |entries: Range<usize>| -> Vec<PendingUnit> {
            let part = |i| PendingUnit {
                entries: i..i + 1,
                begins_group: i == entries.start,
                ends_group: i + 1 == entries.end,
            };
            if entries.len() < 2 { vec![whole(entries)] } else { entries.clone().map(part).collect() }
        };
        row_groups.flat_map(parts).collect()
    }

    /// Ranges of spool entries that form an output row group. The first one continues the unfinished row group.
    fn row_groups(&self, mut fill: RowGroupFill, has_unfinished: bool) -> Vec<Range<usize>> {
        let spool = self.spool;
        let (mut row_groups, mut first) = (Vec::new(), 0);
        for (i, extent) in spool.extents().enumerate() {
            let kept = extent.surely_kept + self.decisions.kept_count(extent.first_row, extent.rows);
            if fill.add(kept, extent.rows) {
                row_groups.push(first..i + 1);
                first = i + 1;
            }
        }
        if first < spool.len() || (row_groups.is_empty() && has_unfinished) {
            row_groups.push(first..spool.len());
        }
        row_groups
    }

    /// The kept rows of a unit, after `batches`, and the rows of the tables of duplicates.
    fn unit(&self, unit: &PendingUnit, mut batches: Vec<RecordBatch>) -> Result<UnitOutput, DedupError> {
        let mut output = Vec::new();
        for i in unit.entries.clone() {
            let pending = self.spool.read(i)?;
            let is_kept: Vec<bool> = pending.ordinals.iter().map(|&ordinal| self.is_kept(ordinal)).collect();
            self.counts.add_decided(&pending.ordinals, &is_kept);
            let kept = filter(&pending.batch, is_kept.into_iter())?;
            // A batch without rows has lost its dictionaries.
            if kept.num_rows() > 0 {
                batches.push(match self.evidence {
                    Some(_) => self.encoder.project(&kept)?,
                    None => kept,
                });
            }
            if let Some(evidence) = self.evidence {
                output.extend(self.evidence_tables(evidence, &pending)?);
            }
            memory::sample();
        }
        if unit.begins_group && unit.ends_group {
            output.push(self.encode(std::mem::take(&mut batches))?);
        }
        Ok(UnitOutput { output, batches, ends_group: unit.ends_group })
    }

    /// Encodes an output row group.
    fn encode(&self, batches: Vec<RecordBatch>) -> Result<DedupOutput, DedupError> {
        let rows = concat_batches(self.encoder.schema(), batches)?;
        let kept = DedupOutput::Kept(self.encoder.encode_batch(&rows)?);
        memory::sample();
        Ok(kept)
    }

    fn is_kept(&self, ordinal: u64) -> bool {
        ordinal & SURELY_KEPT != 0 || self.decisions.is_kept(ordinal)
    }

    fn evidence_tables(
        &self,
        evidence: &EvidenceColumns,
        PendingRows { batch, ordinals }: &PendingRows,
    ) -> Result<[DedupOutput; 2], DedupError> {
        let competing = |&ordinal: &u64| (ordinal & SURELY_KEPT == 0).then_some(ordinal);
        let competing: Vec<_> = ordinals.iter().map(competing).collect();
        let mut ordinals = competing.iter().flatten().copied();
        let range = ordinals.next().map_or(0..0, |first| first..ordinals.next_back().unwrap_or(first) + 1);
        let reasons = self.decisions.reasons(range)?;
        let rows = (batch, &competing[..]);
        let duplicates = evidence::duplicates(rows, &reasons, self.locator, evidence.key_name);
        let groups = evidence::groups(rows, &reasons);
        let (duplicates, groups) = duplicates.and_then(|rows| Ok((rows, groups?))).map_err(OutputError::Arrow)?;
        Ok([DedupOutput::Duplicates(duplicates), DedupOutput::Groups(groups)])
    }
}
