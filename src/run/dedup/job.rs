//! The way of a span through a dedup: [`Job::span`]. Its rows meet the known keys in the order of the spans, one group of
//! partitions after the other, while other spans are decoded and encoded; rows whose verdict has to wait are packed.

use super::super::{Ticket, memory};
use super::competing::Competing;
use super::counts::{Counts, SURE, State, ordinals};
use super::evidence::Evidence;
use super::joining::{Joining, join};
use super::upkeep::Upkeep;
use super::{DedupError, DedupOptions, Given};
use crate::batch::SourceRun;
use crate::canon::{Policy, Rows};
use crate::dedup::seen::{SeenError, SeenSet};
use crate::dedup::{Found, Keep, Known, LANES, Scattered, Spill};
use crate::output::{Encoder, OutputError, Part};
use crate::spill::{PendingRows, RowGroupExtent, RowSpool, SpillError};
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// The lane in which it is told whether spans have to wait, behind those of the known keys.
const WAITING_LANE: usize = LANES;
/// The lane in which a survey takes spans in.
pub const SURVEY_LANE: usize = LANES + 1;
/// The lane in which rows are joined to row groups.
const JOINING_LANE: usize = LANES + 2;
/// Stages that every row group passes in order.
pub const STAGE_COUNT: usize = LANES + 3;

/// What becomes of a span.
pub enum Step {
    Ready(Part),
    /// Its rows are in a row group with those of a later one.
    Joins,
    /// Rows packed for the spool, and what they are of.
    Waits(Vec<u8>, RowGroupExtent),
}

impl Step {
    /// Appends rows to the output, or to those that wait.
    pub fn take(
        self,
        spool: &mut RowSpool,
        append: &mut impl FnMut(Given) -> Result<(), OutputError>,
    ) -> Result<(), DedupError> {
        match self {
            Step::Ready(part) => Ok(append(Given::Kept(part))?),
            Step::Joins => Ok(()),
            Step::Waits(packed, extent) => Ok(spool.append(&packed, extent)?),
        }
    }
}

/// A dedup while records are read.
pub struct Job<'a> {
    pub wanted: &'a DedupOptions,
    pub encoder: &'a Encoder,
    pub evidence: Option<Evidence>,
    competing: Competing,
    /// Keys of earlier runs, if they are few enough for memory.
    pub seen: Option<SeenSet>,
    /// None if the representative is not known before the end.
    pub known: Option<Known<()>>,
    pub spill: Spill,
    /// From some span on all rows wait, so that they stay in order.
    has_waiting: AtomicBool,
    pub counts: Counts,
    pub joining: Mutex<Joining>,
    /// Of the store of seen keys.
    pub upkeep: Upkeep,
    scratch: Mutex<Vec<Scratch>>,
}

#[derive(Default)]
struct Scratch {
    keys: Scattered,
    states: Vec<State>,
    stretches: Vec<Range<usize>>,
}

impl<'a> Job<'a> {
    pub fn new(
        wanted: &'a DedupOptions,
        encoder: &'a Encoder,
        policy: &Policy,
        names: &[String],
    ) -> Result<Job<'a>, SeenError> {
        let seen_len = wanted.seen.as_ref().map_or(0, |store| SeenSet::memory_len(store.count()));
        let seen_len = usize::try_from(seen_len).unwrap_or(usize::MAX);
        let must_wait = wanted.has_evidence || wanted.verify;
        let fits = seen_len <= wanted.memory / 2 && !must_wait;
        let seen = wanted.seen.as_ref().filter(|_| fits).map(|store| SeenSet::read(store)).transpose()?;
        let memory = if fits { wanted.memory - seen_len } else { wanted.memory };
        // What settling takes comes on top, of keys that are gathered and of rows that all wait.
        let known_limit = if wanted.gather_new { memory / 8 * 6 } else { memory / 8 * 7 };
        let known = (wanted.keep == Keep::First && fits).then(|| Known::new(known_limit));
        let spill_limit = if known.is_some() { memory / 8 } else { memory / 2 };
        let evidence = wanted.has_evidence.then(|| Evidence::new(wanted, encoder, policy, names));
        let competing = Competing::new(wanted, policy);
        let spill = Spill::new(competing.layout(), spill_limit, &wanted.directory);
        Ok(Job {
            wanted,
            encoder,
            evidence,
            seen,
            has_waiting: AtomicBool::new(known.is_none()),
            known,
            spill,
            competing,
            counts: Counts::default(),
            joining: Mutex::new(Joining::new(encoder)),
            upkeep: Upkeep::begin(wanted)?,
            scratch: Mutex::default(),
        })
    }

    /// Where rows wait.
    pub fn spool(&self) -> RowSpool {
        RowSpool::new(&self.wanted.directory)
    }

    /// Takes a span's rows as far as can be told now.
    pub fn span(&self, ticket: &Ticket<'_>, rows: &mut Rows, runs: &[SourceRun]) -> Result<Option<Step>, DedupError> {
        let mut scratch = self.scratch();
        let Some(must_wait) = self.decide(ticket, rows, &mut scratch)? else { return Ok(None) };
        gather_stretches(&scratch.states, &mut scratch.stretches);
        let (batch, some) = self.columns(rows, runs, &scratch)?;
        let step = self.step(ticket, must_wait, some, &scratch.states)?;
        match &self.evidence {
            Some(evidence) => evidence.builder.reclaim(batch, rows),
            None => self.encoder.reclaim(batch, rows),
        }
        self.put_back(scratch);
        Ok(step)
    }

    /// The columns of a span, whose memory is to be given back to its rows, and what is wanted of them.
    fn columns(
        &self,
        rows: &mut Rows,
        runs: &[SourceRun],
        scratch: &Scratch,
    ) -> Result<(RecordBatch, RecordBatch), DedupError> {
        let build = |rows: &mut Rows, runs: &[SourceRun]| match &self.evidence {
            Some(evidence) => Ok(evidence.builder.build(rows, runs).map_err(OutputError::from)?),
            None => self.encoder.batch(rows, runs),
        };
        let stretches = &scratch.stretches;
        if stretches.iter().map(Range::len).sum::<usize>() * 2 >= rows.len() {
            rows.retain(stretches);
            let batch = build(rows, &SourceRun::retain(runs, stretches))?;
            return Ok((batch.clone(), batch));
        }
        // Few rows wait for others to fill a row group, and must not hold the memory of all.
        let batch = build(rows, runs)?;
        let some = filter(&batch, wanted(&scratch.states))?;
        Ok((batch, some))
    }

    /// The same for rows that were columns before.
    pub fn table_span(
        &self,
        ticket: &Ticket<'_>,
        rows: &Rows,
        batch: &RecordBatch,
    ) -> Result<Option<Step>, DedupError> {
        let mut scratch = self.scratch();
        let Some(must_wait) = self.decide(ticket, rows, &mut scratch)? else { return Ok(None) };
        let columns = self.encoder.columns().names().filter_map(|name| batch.column_by_name(name).cloned()).collect();
        let batch = RecordBatch::try_new(self.encoder.schema().clone(), columns).map_err(SpillError::from)?;
        let some = filter(&batch, wanted(&scratch.states))?;
        let step = self.step(ticket, must_wait, some, &scratch.states)?;
        self.put_back(scratch);
        Ok(step)
    }

    fn scratch(&self) -> Scratch {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    fn put_back(&self, scratch: Scratch) {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
    }

    /// Finds the state of every row and writes down those that wait; says whether the span's rows have to wait, or `None`
    /// if the run is stopped.
    fn decide(&self, ticket: &Ticket<'_>, rows: &Rows, scratch: &mut Scratch) -> Result<Option<bool>, DedupError> {
        let Some(must_wait) = self.meet(ticket, rows, scratch) else { return Ok(None) };
        let Scratch { keys, states, .. } = scratch;
        if states.contains(&State::Waits) {
            let entry = |key, row| {
                let ordinal = ticket.first_row() + u64::from(row);
                let (entry, texts) = self.competing.entry(rows, row as usize, key, ordinal);
                let rungs = |evidence: &Evidence| evidence.add_rungs(rows, row as usize, entry);
                (self.evidence.as_ref().map_or(entry, rungs), texts)
            };
            self.spill.extend(keys, |row| states[row as usize] == State::Waits, entry)?;
        }
        self.counts.add(states);
        Ok(Some(must_wait))
    }

    /// Packs those rows of a span that are wanted, or encodes them, or leaves them to a later span; `None` if the run is
    /// stopped.
    fn step(
        &self,
        ticket: &Ticket<'_>,
        must_wait: bool,
        some: RecordBatch,
        states: &[State],
    ) -> Result<Option<Step>, DedupError> {
        let (first, rows) = (ticket.first_row(), states.len() as u64);
        if must_wait {
            let ordinals = ordinals(first, states);
            let sure = ordinals.iter().filter(|ordinal| **ordinal & SURE != 0).count() as u64;
            let step = Step::Waits(
                RowSpool::encode(&PendingRows { batch: some, ordinals })?,
                RowGroupExtent { first_row: first, rows, surely_kept: sure },
            );
            memory::sample();
            return Ok(Some(step));
        }
        self.counts.written.fetch_add(some.num_rows() as u64, Ordering::Relaxed);
        // Those that wait come after all that do not, and are joined when they are settled.
        let joining = || self.joining.lock().unwrap_or_else(PoisonError::into_inner).add(some, rows);
        let Some(full) = ticket.pass(JOINING_LANE, joining) else { return Ok(None) };
        let Some(batches) = full else { return Ok(Some(Step::Joins)) };
        let joined = join(self.encoder.schema(), batches).map_err(SpillError::from)?;
        let step = Step::Ready(self.encoder.encode_batch(&joined)?);
        // Rows, batch and part are all there: this is most.
        memory::sample();
        Ok(Some(step))
    }

    /// Finds the state of every row; says whether the span's rows have to wait, or `None` if the run is stopped.
    fn meet(&self, ticket: &Ticket<'_>, rows: &Rows, scratch: &mut Scratch) -> Option<bool> {
        let Scratch { keys, states, .. } = scratch;
        states.clear();
        states.resize(rows.len(), State::Waits);
        let faulty = if self.wanted.keep_faulty { State::KeepFaulty } else { State::DropFaulty };
        rows.faults.iter().for_each(|(row, _)| states[*row as usize] = faulty);
        let competing = |row: &usize| states[*row] == State::Waits;
        let undated = self.competing.count_undated(rows, (0..rows.len()).filter(competing));
        self.counts.undated.fetch_add(undated, Ordering::Relaxed);
        match rows.faults.is_empty() {
            true => self.competing.scatter(rows, 0..rows.len(), keys),
            false => self.competing.scatter(rows, (0..rows.len()).filter(competing), keys),
        }
        if let Some(seen) = &self.seen {
            seen.meet(keys, |row| states[row as usize] = State::Seen);
            let competing = |row: &usize| states[*row] == State::Waits;
            self.competing.scatter(rows, (0..rows.len()).filter(competing), keys);
        }
        let Some(known) = &self.known else { return Some(true) };
        for lane in 0..LANES {
            ticket.pass(lane, || {
                known.meet(lane, keys, |_, row, found| {
                    states[row as usize] = match found {
                        Found::New(()) => State::Keep,
                        Found::Known(()) => State::Duplicate,
                        Found::Unknown => State::Waits,
                    };
                });
            })?;
        }
        // All earlier spans have been here, so that none waits after one that does not.
        ticket
            .pass(WAITING_LANE, || self.has_waiting.fetch_or(known.is_frozen(), Ordering::AcqRel) || known.is_frozen())
    }
}

fn wanted(states: &[State]) -> impl Iterator<Item = bool> {
    states.iter().map(|state| state.is_wanted())
}

/// The rows that are wanted, as far as they follow each other.
fn gather_stretches(states: &[State], stretches: &mut Vec<Range<usize>>) {
    stretches.clear();
    let mut row = 0;
    for stretch in states.chunk_by(|a, b| a.is_wanted() == b.is_wanted()) {
        if stretch[0].is_wanted() {
            stretches.push(row..row + stretch.len());
        }
        row += stretch.len();
    }
}

/// The rows of a batch that are wanted.
pub fn filter(batch: &RecordBatch, wanted: impl Iterator<Item = bool>) -> Result<RecordBatch, SpillError> {
    let wanted = BooleanArray::from_iter(wanted.map(Some));
    if wanted.true_count() == batch.num_rows() {
        return Ok(batch.clone());
    }
    Ok(filter_record_batch(batch, &wanted)?)
}
