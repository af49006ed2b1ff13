//! Deduplication while records are read: [`DedupJob`] decides about the rows of a row group as far as possible.
//!
//! The keys of a row group are inserted into the key set in the order of row groups, one group of partitions after the other,
//! while other row groups are decoded and encoded. Each such step is a stage that row groups pass in order.

use super::super::{Budget, Progress, RowGroup, RunRequest, Ticket, memory};
use super::candidate_keys::{CandidateKeys, EvidenceColumns};
use super::compaction::StoreCompaction;
use super::options::DedupOptions;
use super::resolution_budget::ResolutionBudget;
use super::row_groups::{RowGroupBuilder, concat_batches};
use super::second_pass::{SecondPassChoice, SecondPassGroup, SecondPassGroups};
use super::summary::{DedupCounts, DedupError, DedupOutput, RowState, SURELY_KEPT};
use super::survey::RunSurvey;
use crate::batch::{BatchBuilder, SourceRun};
use crate::canon::Rows;
use crate::dedup::seen::{SeenError, SeenSet};
use crate::dedup::{Decisions, EntrySpill, Inserted, KeepPolicy, KeySet, PARTITION_GROUPS, PartitionedKeys};
use crate::output::{EncodedRows, Encoder, OutputError};
use crate::spill::{PendingRows, RowGroupExtent, RowSpool};
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use parking_lot::Mutex;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The stage that finds out whether the row group is pending. It follows the stages of the groups of partitions.
const PENDING_STAGE: usize = PARTITION_GROUPS;
/// The stage that combines rows into output row groups.
const ROW_GROUP_STAGE: usize = PARTITION_GROUPS + 1;
/// The number of stages of a dedup run.
pub(super) const STAGE_COUNT: usize = PARTITION_GROUPS + 2;

/// What a row group becomes.
pub(super) enum DedupStep {
    /// An encoded row group.
    Encoded(EncodedRows),
    /// Its rows are part of the row group of a later step.
    Combined,
    /// Rows encoded for the spool.
    Spooled(Vec<u8>, RowGroupExtent),
    /// Its rows are read a second time.
    ReadAgain(SecondPassGroup),
}

/// The row groups that cannot be decided while records are read. They are either in the spool or read a second time.
pub(super) struct PendingRowGroups {
    pub(super) spool: RowSpool,
    pub(super) groups: SecondPassGroups,
}

impl PendingRowGroups {
    /// No row groups. The spool will be in `directory`.
    pub(super) fn new(directory: &Path) -> PendingRowGroups {
        PendingRowGroups { spool: RowSpool::new(directory), groups: SecondPassGroups::default() }
    }
}

impl DedupStep {
    /// Appends rows to the output or to the pending ones.
    pub(super) fn append(
        self,
        PendingRowGroups { spool, groups }: &mut PendingRowGroups,
        append: &mut impl FnMut(DedupOutput) -> Result<(), OutputError>,
    ) -> Result<(), DedupError> {
        match self {
            DedupStep::Encoded(encoded) => {
                groups.count_decided();
                append(DedupOutput::Kept(encoded))?;
            }
            DedupStep::Combined => groups.count_decided(),
            DedupStep::Spooled(encoded, extent) => spool.append(&encoded, extent)?,
            DedupStep::ReadAgain(group) => groups.push(group),
        }
        Ok(())
    }
}

/// A dedup run while records are read.
pub(super) struct DedupJob<'a> {
    pub(super) options: &'a DedupOptions,
    pub(super) encoder: &'a Encoder,
    pub(super) evidence: Option<EvidenceColumns>,
    candidates: CandidateKeys,
    /// Keys of earlier jobs, if they fit into memory.
    pub(super) seen: Option<SeenSet>,
    /// Keys of this job; `None` if all row groups are pending.
    pub(super) keys: Option<KeySet<()>>,
    spill: EntrySpill,
    pub(super) resolution: ResolutionBudget,
    /// A row group is pending, and therefore all later ones, to keep the order of the input.
    has_pending: AtomicBool,
    /// `None` if rows are never read a second time.
    second_pass: Option<SecondPassChoice<'a>>,
    progress: &'a Progress,
    pub(super) counts: DedupCounts,
    pub(super) row_groups: Mutex<RowGroupBuilder>,
    pub(super) compaction: StoreCompaction,
    pub(super) survey: Option<RunSurvey>,
    buffers: Mutex<Vec<RowGroupBuffers>>,
}

/// Buffers of a row group, reused for their memory.
#[derive(Default)]
struct RowGroupBuffers {
    keys: PartitionedKeys,
    states: Vec<RowState>,
    /// The rows that may be written.
    kept: Vec<u32>,
    /// The row group is pending. All of its rows are then written later, to keep the order of the input.
    is_pending: bool,
}

impl<'a> DedupJob<'a> {
    /// A job over sources of these names. Policy and progress are those of the request.
    pub(super) fn new(
        options: &'a DedupOptions,
        encoder: &'a Encoder,
        request: &RunRequest<'a>,
        names: &[String],
    ) -> Result<DedupJob<'a>, SeenError> {
        let RunRequest { policy, progress, .. } = *request;
        let compaction = StoreCompaction::start(options)?;
        let mut budget = Budget::of(options.memory);
        budget.reserve_half(compaction.memory_len());
        let seen_len = options.seen.as_ref().map_or(0, |store| SeenSet::memory_len(store.count()));
        let fits = !options.has_evidence && !options.verify && budget.reserve_half(seen_len);
        let seen = options.seen.as_ref().filter(|_| fits);
        let seen = seen.map(|store| SeenSet::read(store.cursor(0)?)).transpose()?;
        // The resolution of pending rows needs further memory while new keys are still in the key set.
        let spill_share = EntrySpill::share(budget.remaining());
        let key_limit = if options.gather_new { budget.eighths(6) } else { budget.remaining() - spill_share };
        let keys = (options.keep == KeepPolicy::First && fits).then(|| KeySet::new(key_limit));
        let spill_limit = if keys.is_some() { spill_share } else { budget.remaining() / 2 };
        let candidates = CandidateKeys::new(options, policy);
        Ok(DedupJob {
            options,
            encoder,
            evidence: options.has_evidence.then(|| EvidenceColumns::new(options, encoder, policy, names)),
            seen,
            has_pending: AtomicBool::new(keys.is_none()),
            second_pass: None,
            progress,
            spill: EntrySpill::new(candidates.layout(), spill_limit, &options.directory),
            resolution: ResolutionBudget::new(&budget, options, keys.is_some()),
            keys,
            candidates,
            counts: DedupCounts::default(),
            row_groups: Mutex::new(RowGroupBuilder::new(encoder)),
            compaction,
            survey: options.survey.then(|| RunSurvey::new(options, policy)),
            buffers: Mutex::default(),
        })
    }

    /// The same with rows that are read a second time if possible, instead of being stored in a temporary file. The tables of
    /// duplicates need all rows.
    pub(super) fn with_second_pass(self, choice: SecondPassChoice<'a>) -> DedupJob<'a> {
        DedupJob { second_pass: Some(choice).filter(|_| self.evidence.is_none()), ..self }
    }

    /// Takes the pending entries.
    pub(super) fn take_spill(&mut self) -> EntrySpill {
        let none = EntrySpill::new(self.candidates.layout(), 0, &self.options.directory);
        std::mem::replace(&mut self.spill, none)
    }

    /// Decides about the rows of a row group as far as possible; `None` if the run was stopped.
    pub(super) fn add_rows(&self, row_group: RowGroup<'_>) -> Result<Option<DedupStep>, DedupError> {
        let RowGroup { rows, runs, ticket, .. } = row_group;
        let mut buffers = self.buffers.lock().pop().unwrap_or_default();
        if self.decide(&ticket, rows, &mut buffers)?.is_none() {
            return Ok(None);
        }
        if let Some(survey) = &self.survey {
            survey.add(&self.candidates, ticket.first_row(), rows, &buffers.states);
        }
        if buffers.is_pending && self.second_pass.as_ref().is_some_and(|choice| choice.is_chosen(rows)) {
            let group = SecondPassGroup::new(ticket.first_row(), rows, runs, &buffers.states);
            self.buffers.lock().push(buffers);
            return Ok(Some(DedupStep::ReadAgain(group)));
        }
        self.write(rows, runs, &ticket, buffers)
    }

    /// Writes the rows of a row group that the second pass has read and that are kept; `None` if the run was stopped.
    pub(super) fn add_rows_again(
        &self,
        RowGroup { rows, runs, ticket, .. }: RowGroup<'_>,
        decisions: &Decisions,
    ) -> Result<Option<DedupStep>, DedupError> {
        let mut buffers = self.buffers.lock().pop().unwrap_or_default();
        buffers.is_pending = false;
        let state = |row| match decisions.is_kept(ticket.first_row() + row) {
            true => RowState::Keep,
            false => RowState::Duplicate,
        };
        buffers.states.clear();
        buffers.states.extend((0..rows.len() as u64).map(state));
        self.mark_faulty(rows, &mut buffers.states);
        self.write(rows, runs, &ticket, buffers)
    }

    /// Lets the rows of later row groups be combined, without rows of this one; `None` if the run was stopped.
    pub(super) fn pass_without_rows(&self, ticket: &Ticket<'_>) -> Option<DedupStep> {
        ticket.pass(ROW_GROUP_STAGE, || DedupStep::Combined)
    }

    /// Encodes the rows that may be written for the spool or the output, or combines them with those of later row groups;
    /// `None` if the run was stopped.
    fn write(
        &self,
        rows: &mut Rows,
        runs: &[SourceRun],
        ticket: &Ticket<'_>,
        mut buffers: RowGroupBuffers,
    ) -> Result<Option<DedupStep>, DedupError> {
        let (batch, selected) = self.select(rows, runs, &mut buffers)?;
        let step = self.finish_rows(ticket, selected, &buffers)?;
        self.builder().reclaim(batch, rows);
        self.buffers.lock().push(buffers);
        Ok(step)
    }

    /// Sets the states of rows with a fault.
    fn mark_faulty(&self, rows: &Rows, states: &mut [RowState]) {
        let faulty = if self.options.keep_faulty { RowState::KeepFaulty } else { RowState::DropFaulty };
        rows.faults.iter().for_each(|(row, _)| states[*row as usize] = faulty);
    }

    /// The builder of the batches of rows that are pending or written.
    fn builder(&self) -> &BatchBuilder {
        self.evidence.as_ref().map_or(self.encoder.builder(), |evidence| &evidence.builder)
    }

    /// Builds the columns of rows. Returns a batch whose memory is given back to the rows, and the batch of the rows that may
    /// be written.
    fn select(
        &self,
        rows: &mut Rows,
        runs: &[SourceRun],
        buffers: &mut RowGroupBuffers,
    ) -> Result<(RecordBatch, RecordBatch), DedupError> {
        let RowGroupBuffers { states, kept, .. } = buffers;
        find_kept(states, kept);
        if kept.len() * 2 >= rows.len() {
            let batch = self.builder().build_kept(rows, runs, kept).map_err(OutputError::from)?;
            return Ok((batch.clone(), batch));
        }
        // A few rows are copied: they are kept until others fill the row group, and must not keep the memory of all rows in use.
        let batch = self.builder().build(rows, runs).map_err(OutputError::from)?;
        let selected = filter(&batch, states.iter().map(|state| state.may_be_written()))?;
        Ok((batch, selected))
    }

    /// As [`DedupJob::add_rows`], for rows that were read as a batch.
    pub(super) fn add_batch(
        &self,
        ticket: &Ticket<'_>,
        rows: &Rows,
        batch: &RecordBatch,
    ) -> Result<Option<DedupStep>, DedupError> {
        let mut buffers = self.buffers.lock().pop().unwrap_or_default();
        if self.decide(ticket, rows, &mut buffers)?.is_none() {
            return Ok(None);
        }
        let batch = self.encoder.project(batch)?;
        let selected = filter(&batch, buffers.states.iter().map(|state| state.may_be_written()))?;
        let step = self.finish_rows(ticket, selected, &buffers)?;
        self.buffers.lock().push(buffers);
        Ok(step)
    }

    /// Finds the state of every row and spills the entries of pending rows; `None` if the run was stopped.
    fn decide(
        &self,
        ticket: &Ticket<'_>,
        rows: &Rows,
        buffers: &mut RowGroupBuffers,
    ) -> Result<Option<()>, DedupError> {
        let Some(is_pending) = self.find_states(ticket, rows, buffers) else { return Ok(None) };
        buffers.is_pending = is_pending;
        if is_pending {
            self.resolution.check_rows(ticket.first_row() + rows.len() as u64, self.progress)?;
        }
        let RowGroupBuffers { keys, states, .. } = buffers;
        if states.contains(&RowState::Pending) {
            let entry = |key, row| {
                let ordinal = ticket.first_row() + u64::from(row);
                let (entry, texts) = self.candidates.entry(rows, row as usize, key, ordinal);
                let with_rungs = |evidence: &EvidenceColumns| evidence.add_rungs(rows, row as usize, entry);
                (self.evidence.as_ref().map_or(entry, with_rungs), texts)
            };
            self.spill.extend(keys, |row| states[row as usize] == RowState::Pending, entry)?;
        }
        self.counts.add(states);
        Ok(Some(()))
    }

    /// Finds the state of every row. Returns whether the row group is pending, or `None` if the run was stopped.
    fn find_states(&self, ticket: &Ticket<'_>, rows: &Rows, buffers: &mut RowGroupBuffers) -> Option<bool> {
        let RowGroupBuffers { keys, states, .. } = buffers;
        states.clear();
        states.resize(rows.len(), RowState::Pending);
        self.mark_faulty(rows, states);
        let competes = |row: &usize| states[*row] == RowState::Pending;
        let undated = self.candidates.count_undated(rows, (0..rows.len()).filter(competes));
        self.counts.totals.lock().undated += undated;
        match rows.faults.is_empty() {
            true => self.candidates.partition(rows, 0..rows.len(), keys),
            false => self.candidates.partition(rows, (0..rows.len()).filter(competes), keys),
        }
        if let Some(seen) = &self.seen {
            seen.find(keys, |row| states[row as usize] = RowState::Seen);
            let competes = |row: &usize| states[*row] == RowState::Pending;
            self.candidates.partition(rows, (0..rows.len()).filter(competes), keys);
        }
        let Some(set) = &self.keys else { return Some(true) };
        for group in 0..PARTITION_GROUPS {
            ticket.pass(group, || {
                set.insert(group, keys, |_, row, inserted| {
                    states[row as usize] = match inserted {
                        Inserted::New(()) => RowState::Keep,
                        Inserted::Present(()) => RowState::Duplicate,
                        Inserted::Unknown => RowState::Pending,
                    };
                });
            })?;
        }
        set.set_progress(self.progress.read(), self.progress.total());
        // All earlier row groups have passed this stage, so that a pending row group is never followed by one that is not.
        let is_pending = || self.has_pending.fetch_or(set.is_frozen(), Ordering::AcqRel) || set.is_frozen();
        ticket.pass(PENDING_STAGE, is_pending)
    }

    /// Encodes the selected rows of a row group for the spool or the output, or combines them with those of later row groups;
    /// `None` if the run was stopped.
    fn finish_rows(
        &self,
        ticket: &Ticket<'_>,
        selected: RecordBatch,
        RowGroupBuffers { states, is_pending, .. }: &RowGroupBuffers,
    ) -> Result<Option<DedupStep>, DedupError> {
        let (first_row, rows) = (ticket.first_row(), states.len() as u64);
        if *is_pending {
            let ordinals = pending_ordinals(first_row, states);
            let surely_kept = ordinals.iter().filter(|ordinal| **ordinal & SURELY_KEPT != 0).count() as u64;
            let encoded = RowSpool::encode(&PendingRows { batch: selected, ordinals })?;
            memory::sample();
            return Ok(Some(DedupStep::Spooled(encoded, RowGroupExtent { first_row, rows, surely_kept })));
        }
        self.counts.totals.lock().written += selected.num_rows() as u64;
        // Pending row groups follow all others, and are combined when they are decided.
        let combine = || self.row_groups.lock().add(selected, rows);
        let Some(full) = ticket.pass(ROW_GROUP_STAGE, combine) else { return Ok(None) };
        let Some(batches) = full else { return Ok(Some(DedupStep::Combined)) };
        let batch = concat_batches(self.encoder.schema(), batches)?;
        let step = DedupStep::Encoded(self.encoder.encode_batch(&batch)?);
        // Rows, batch and encoded rows are all in memory: a peak.
        memory::sample();
        Ok(Some(step))
    }
}

/// Ordinals of the rows that are not dropped, with [`SURELY_KEPT`].
fn pending_ordinals(first_row: u64, states: &[RowState]) -> Vec<u64> {
    let ordinal = |(row, state): (usize, &RowState)| match state {
        RowState::Keep | RowState::KeepFaulty => Some((first_row + row as u64) | SURELY_KEPT),
        RowState::Pending => Some(first_row + row as u64),
        RowState::Duplicate | RowState::Seen | RowState::DropFaulty => None,
    };
    states.iter().enumerate().filter_map(ordinal).collect()
}

/// Finds the rows that may be written.
fn find_kept(states: &[RowState], kept: &mut Vec<u32>) {
    kept.resize(states.len(), 0);
    let mut count = 0;
    for (row, state) in states.iter().enumerate() {
        // Whether a row is kept cannot be predicted, so a branch would take longer than this store.
        kept[count] = row as u32;
        count += usize::from(state.may_be_written());
    }
    kept.truncate(count);
}

/// The selected rows of a batch.
pub(super) fn filter(batch: &RecordBatch, is_selected: impl Iterator<Item = bool>) -> Result<RecordBatch, OutputError> {
    let is_selected = BooleanArray::from_iter(is_selected.map(Some));
    if is_selected.true_count() == batch.num_rows() {
        return Ok(batch.clone());
    }
    filter_record_batch(batch, &is_selected).map_err(OutputError::Arrow)
}
