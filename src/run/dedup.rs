//! Records in, one row of each key out: [`dedup`]. What [`super::canon`] does, with a verdict on every row before it is
//! encoded. The rows of a span meet the known keys in the order of the spans, one group of partitions after the other,
//! while other spans are decoded and encoded; rows whose verdict has to wait are encoded after all have been read.

use super::{Progress, RunError, RunOptions, Summary, Turn, canon_in_turn, in_order::in_order, memory};
use crate::batch::{BatchBuilder, Columns, SourceRun};
use crate::canon::{Policy, Rows, Rung};
use crate::dedup::evidence::{self, Places};
use crate::dedup::seen::{RunWriter, SeenError, SeenSet, Store};
use crate::dedup::{
    Entry, Found, Keep, Known, LANES, Layout, PARTITION_BITS, PARTITIONS, Resolver, Scattered, Spill, SpillError,
    Spool, Table, Verdicts, Waiting, number,
};
use crate::input::Sources;
use crate::output::{Encoder, OutputError, Part};
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is asked of a dedup.
#[derive(Clone, Debug)]
pub struct DedupOptions {
    /// Which row of a key is kept.
    pub keep: Keep,
    /// Rows with a fault are written, each where it stands; else they are only counted. They never compete.
    pub keep_faulty: bool,
    /// Bytes of memory that keys and waiting entries may take.
    pub memory: usize,
    /// Where temporary files go.
    pub directory: PathBuf,
    /// Keys of earlier runs, whose rows are left out.
    pub seen: Option<Arc<Store>>,
    /// Gather the keys that are not among them, in [`Deduped::new_keys`].
    pub gather_new: bool,
    /// Tell of duplicates and groups. All rows wait then, and take 8 bytes of memory each.
    pub has_evidence: bool,
}

impl Default for DedupOptions {
    fn default() -> DedupOptions {
        DedupOptions {
            keep: Keep::First,
            keep_faulty: false,
            memory: usize::MAX,
            directory: std::env::temp_dir(),
            seen: None,
            gather_new: false,
            has_evidence: false,
        }
    }
}

/// What a dedup came to: `kept + duplicates + seen + faulty` is the number of records.
#[derive(Debug)]
pub struct Deduped {
    /// What reading came to.
    pub summary: Summary,
    /// Rows kept: one a key.
    pub kept: u64,
    /// Rows that another one stands for.
    pub duplicates: u64,
    /// Rows whose key earlier runs have seen.
    pub seen: u64,
    /// Rows with a fault.
    pub faulty: u64,
    /// Rows that were written: those kept, and those with a fault where they are.
    pub written: u64,
    /// Bytes of temporary files.
    pub spilled: u64,
    /// The keys of the kept rows, if they were to be gathered: what to add to the store once the output is safe.
    pub new_keys: Option<RunWriter>,
}

/// Why a dedup failed.
#[derive(Debug, thiserror::Error)]
pub enum DedupError {
    /// Of the output.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Of a temporary file.
    #[error(transparent)]
    Spill(#[from] SpillError),
    /// Of the store of seen keys.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// Rows read, kept and left out differ. A defect of this program.
    #[error("{records} records gave {kept} rows kept, {duplicates} duplicates, {seen} seen and {faulty} with a fault")]
    Lost {
        /// Records read.
        records: u64,
        /// Rows kept.
        kept: u64,
        /// Duplicates.
        duplicates: u64,
        /// Rows seen before.
        seen: u64,
        /// Rows with a fault.
        faulty: u64,
    },
}

/// What a dedup gives away.
pub enum Given {
    /// Rows to be kept, encoded.
    Kept(Part),
    /// Rows of [`evidence::duplicates_schema`].
    Duplicates(RecordBatch),
    /// Rows of [`evidence::groups_schema`].
    Groups(RecordBatch),
}

/// Keeps one row of each key of `inputs` and gives it to `append`, encoded by `encoder`, in the order of the input; with
/// evidence, where it is wanted. Evidence takes a policy whose further keys are those of the rungs `simple` and `syntax`,
/// others among them.
///
/// # Errors
/// As [`super::canon`]; besides, temporary files that cannot be written.
pub fn dedup(
    inputs: Sources,
    options: &RunOptions,
    wanted: &DedupOptions,
    policy: &Policy,
    encoder: &Encoder,
    mut append: impl FnMut(Given) -> Result<(), OutputError> + Send,
    progress: &Progress,
) -> Result<Deduped, RunError<DedupError>> {
    let threads = options.clamped().threads;
    let names = inputs.names();
    let job = Job::new(wanted, encoder, policy, &names).map_err(|error| RunError::Output(error.into()))?;
    let mut spool = Spool::new(&wanted.directory);
    let decide = |turn: &Turn<'_>, rows: &mut Rows, runs: &[SourceRun]| job.span(turn, rows, runs);
    let take = |step: Step| match step {
        Step::Ready(part) => Ok(append(Given::Kept(part))?),
        Step::Waits(packed, rows) => Ok(spool.append(&packed, rows)?),
    };
    let summary = canon_in_turn(inputs, options, policy, decide, take, progress)?;
    let spilled = spool.written() + job.spill.written();
    let places = Places::new(names, &summary.source_records);
    let (counts, new_keys) = job.settle(&spool, &places, summary.rows, threads, append)?;
    memory::sample();
    Ok(Deduped { spilled, new_keys, ..counts.check(summary)? })
}

/// What becomes of a span.
enum Step {
    Ready(Part),
    /// Rows packed for the spool, and how many.
    Waits(Vec<u8>, u64),
}

/// What is known of a row when its span has met the known keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Keep,
    Duplicate,
    Seen,
    Waits,
    /// It has a fault, and is written.
    KeepFaulty,
    /// It has a fault, and is not.
    DropFaulty,
}

/// Set in the ordinal of a waiting row that is kept for sure.
const SURE: u64 = 1 << 63;

struct Job<'a> {
    wanted: &'a DedupOptions,
    encoder: &'a Encoder,
    evidence: Option<Evidence>,
    /// Keys of earlier runs, if they are few enough for memory.
    seen: Option<SeenSet>,
    /// None if the representative is not known before the end.
    known: Option<Known<()>>,
    spill: Spill,
    /// From some span on all rows wait, so that they stay in order.
    has_waiting: AtomicBool,
    counts: Counts,
    scratch: Mutex<Vec<Scratch>>,
}

#[derive(Default)]
struct Scratch {
    keys: Scattered,
    states: Vec<State>,
}

#[derive(Default)]
struct Counts {
    kept: AtomicU64,
    duplicates: AtomicU64,
    seen: AtomicU64,
    /// Rows that waited and turned out to be seen.
    refused: AtomicU64,
    faulty: AtomicU64,
    written: AtomicU64,
}

impl<'a> Job<'a> {
    fn new(
        wanted: &'a DedupOptions,
        encoder: &'a Encoder,
        policy: &Policy,
        names: &[String],
    ) -> Result<Job<'a>, SeenError> {
        let seen_len = wanted.seen.as_ref().map_or(0, |store| SeenSet::memory_len(store.count()));
        let seen_len = usize::try_from(seen_len).unwrap_or(usize::MAX);
        let fits = seen_len <= wanted.memory / 2 && !wanted.has_evidence;
        let seen = wanted.seen.as_ref().filter(|_| fits).map(|store| SeenSet::read(store)).transpose()?;
        let memory = if fits { wanted.memory - seen_len } else { wanted.memory };
        let known = (wanted.keep == Keep::First && fits).then(|| Known::new(memory / 8 * 7));
        let spill_limit = if known.is_some() { memory / 8 } else { memory };
        let evidence = wanted.has_evidence.then(|| Evidence::new(encoder, policy, names));
        let layout = Layout { has_rungs: wanted.has_evidence, ..Layout::default() };
        Ok(Job {
            wanted,
            encoder,
            evidence,
            seen,
            has_waiting: AtomicBool::new(known.is_none()),
            known,
            spill: Spill::new(layout, spill_limit, &wanted.directory),
            counts: Counts::default(),
            scratch: Mutex::default(),
        })
    }

    /// Takes a span's rows as far as can be told now.
    fn span(&self, turn: &Turn<'_>, rows: &mut Rows, runs: &[SourceRun]) -> Result<Option<Step>, DedupError> {
        let mut scratch = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let Some(must_wait) = self.meet(turn, rows, &mut scratch) else { return Ok(None) };
        let Scratch { keys, states } = &scratch;
        if states.contains(&State::Waits) {
            let rungs = |row| self.evidence.as_ref().map_or((0, 0), |evidence| evidence.rungs(rows, row));
            let entry = |key, row| {
                let (simple, syntax) = rungs(row as usize);
                Entry { key, ordinal: turn.first_row() + u64::from(row), rank: 0, simple, syntax }
            };
            self.spill.extend(keys, |row| states[row as usize] == State::Waits, entry)?;
        }
        self.counts.add(states);
        let batch = match &self.evidence {
            Some(evidence) => evidence.builder.build(rows, runs).map_err(OutputError::from)?,
            None => self.encoder.batch(rows, runs)?,
        };
        let some = filter(&batch, states.iter().map(|state| state.is_wanted()))?;
        let step = if must_wait {
            let ordinals = ordinals(turn.first_row(), states);
            let count = ordinals.len() as u64;
            Step::Waits(Spool::pack(&Waiting { batch: some, ordinals })?, count)
        } else {
            self.counts.written.fetch_add(some.num_rows() as u64, Ordering::Relaxed);
            Step::Ready(self.encoder.encode_batch(&some)?)
        };
        match &self.evidence {
            Some(evidence) => evidence.builder.reclaim(batch, rows),
            None => self.encoder.reclaim(batch, rows),
        }
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        Ok(Some(step))
    }

    /// Finds the state of every row; says whether the span's rows have to wait, or `None` if the run is stopped.
    fn meet(&self, turn: &Turn<'_>, rows: &Rows, scratch: &mut Scratch) -> Option<bool> {
        let Scratch { keys, states } = scratch;
        states.clear();
        states.resize(rows.len(), State::Waits);
        let faulty = if self.wanted.keep_faulty { State::KeepFaulty } else { State::DropFaulty };
        rows.faults.iter().for_each(|(row, _)| states[*row as usize] = faulty);
        let competing = |row: &usize| states[*row] == State::Waits;
        keys.scatter((0..rows.len()).filter(competing).map(|row| (number(&rows.key[row]), row as u32)), 0);
        if let Some(seen) = &self.seen {
            seen.meet(keys, |row| states[row as usize] = State::Seen);
            let competing = |row: &usize| states[*row] == State::Waits;
            keys.scatter((0..rows.len()).filter(competing).map(|row| (number(&rows.key[row]), row as u32)), 0);
        }
        let Some(known) = &self.known else { return Some(true) };
        for lane in 0..LANES {
            turn.pass(lane, || {
                known.meet(lane, keys, |row, found| {
                    states[row as usize] = match found {
                        Found::New(()) => State::Keep,
                        Found::Known(()) => State::Duplicate,
                        Found::Unknown => State::Waits,
                    };
                });
            })?;
        }
        // All earlier spans have been here, so that none waits after one that does not.
        turn.pass(LANES, || self.has_waiting.fetch_or(known.is_frozen(), Ordering::AcqRel) || known.is_frozen())
    }

    /// Settles the rows that wait, gathers new keys, and appends the rows to be kept.
    fn settle(
        self,
        spool: &Spool,
        places: &Places,
        rows: u64,
        threads: usize,
        mut append: impl FnMut(Given) -> Result<(), OutputError> + Send,
    ) -> Result<(Counts, Option<RunWriter>), RunError<DedupError>> {
        let Job { wanted, encoder, evidence, seen, known, spill, counts, .. } = self;
        let verdicts = Verdicts::new(0, if spool.is_empty() { 0 } else { rows }, wanted.has_evidence);
        // Their memory is for what follows, unless their keys are to be gathered.
        let tables: Vec<_> = known.filter(|_| wanted.gather_new).into_iter().flat_map(Known::into_tables).collect();
        let share = if tables.is_empty() { 2 } else { 16 };
        let settling = Settling {
            wanted,
            store: wanted.seen.as_deref().filter(|_| seen.is_none()),
            verdicts: &verdicts,
            limit: wanted.memory / threads / share,
            tables,
        };
        let mut writer = match (&wanted.seen, wanted.gather_new) {
            (Some(store), true) => Some(store.writer().map_err(|error| RunError::Output(error.into()))?),
            _ => None,
        };
        if !spool.is_empty() || writer.is_some() {
            let take = |keys: Vec<u128>| Ok(writer.as_mut().map_or(Ok(()), |writer| writer.extend(keys))?);
            in_order(threads, PARTITIONS, |place| settling.partition(&spill, place, &counts), take)?;
        }
        drop((spill, seen, settling));
        let encode = |i| {
            let Waiting { batch, ordinals } = spool.read(i)?;
            let kept: Vec<bool> = ordinals.iter().map(|&at| at & SURE != 0 || verdicts.is_kept(at)).collect();
            counts.add_settled(&ordinals, &kept);
            memory::sample();
            let rows = filter(&batch, kept.into_iter())?;
            let Some(evidence) = &evidence else { return Ok(vec![Given::Kept(encoder.encode_batch(&rows)?)]) };
            let kept = Given::Kept(encoder.encode_batch(&evidence.project(&rows, encoder)?)?);
            let competing: Vec<_> = ordinals.iter().map(|&at| (at & SURE == 0).then_some(at)).collect();
            let duplicates = evidence::duplicates(&batch, &competing, &verdicts, places).map_err(SpillError::from)?;
            let groups = evidence::groups(&batch, &competing, &verdicts).map_err(SpillError::from)?;
            Ok(vec![kept, Given::Duplicates(duplicates), Given::Groups(groups)])
        };
        let append = |given: Vec<Given>| Ok(given.into_iter().try_for_each(&mut append)?);
        in_order(threads, spool.len(), encode, append)?;
        Ok((counts, writer))
    }
}

/// What evidence is made of.
struct Evidence {
    /// Of the output's columns and those of the tables.
    builder: BatchBuilder,
    /// Which of the further keys are those of `simple` and `syntax`.
    rungs: [Option<usize>; 2],
}

impl Evidence {
    fn new(encoder: &Encoder, policy: &Policy, names: &[String]) -> Evidence {
        let columns = Columns::named(encoder.columns().names().chain(evidence::COLUMNS)).unwrap_or_default();
        let rung = |rung| policy.more_keys.iter().position(|key| *key == rung);
        Evidence {
            builder: BatchBuilder::new(columns, &[], policy, names),
            rungs: [rung(Rung::Simple), rung(Rung::Syntax)],
        }
    }

    /// First bits of a row's keys of `simple` and `syntax`.
    fn rungs(&self, rows: &Rows, row: usize) -> (u64, u64) {
        let [simple, syntax] =
            self.rungs.map(|key| key.map_or(0, |key| (number(&rows.more_keys[key][row]) >> 64) as u64));
        (simple, syntax)
    }

    /// Rows in the columns of the output.
    fn project(&self, rows: &RecordBatch, encoder: &Encoder) -> Result<RecordBatch, SpillError> {
        let columns = encoder.columns().names().filter_map(|name| rows.column_by_name(name).cloned()).collect();
        Ok(RecordBatch::try_new(encoder.schema().clone(), columns)?)
    }
}

/// What partitions are settled with.
struct Settling<'a> {
    wanted: &'a DedupOptions,
    /// Keys of earlier runs, if rows have not met them yet.
    store: Option<&'a Store>,
    verdicts: &'a Verdicts,
    limit: usize,
    /// Keys of rows that did not have to wait, by partition, if they are to be gathered.
    tables: Vec<Table<()>>,
}

impl Settling<'_> {
    /// Settles the waiting rows of a partition; gives the new keys, in order, if they are to be gathered.
    fn partition(&self, spill: &Spill, place: usize, counts: &Counts) -> Result<Vec<u128>, DedupError> {
        let from = (place as u128) << (u128::BITS - PARTITION_BITS);
        let mut seen = self.store.map(|store| store.cursor(from)).transpose()?;
        let (mut keys, mut failed) = (Vec::new(), None);
        let settled = |key, _| {
            let is_seen = seen.as_mut().is_some_and(|seen| {
                seen.has(key).unwrap_or_else(|error| {
                    failed = Some(error);
                    true
                })
            });
            if self.wanted.gather_new && !is_seen {
                keys.push(key);
            }
            !is_seen
        };
        let (keep, limit, verdicts) = (self.wanted.keep, self.limit, self.verdicts);
        let mut resolver = Resolver { keep, limit, verdicts, settled, refused: 0 };
        resolver.resolve(spill, place)?;
        counts.seen.fetch_add(resolver.refused, Ordering::Relaxed);
        // Counted among the duplicates when their rows come up.
        counts.refused.fetch_add(resolver.refused, Ordering::Relaxed);
        if let Some(error) = failed {
            return Err(error.into());
        }
        if let Some(table) = self.tables.get(place).filter(|table| !table.is_empty()) {
            keys.extend(table.iter().map(|(key, ())| key));
            // Two ascending runs, which this merges.
            keys.sort();
        }
        Ok(keys)
    }
}

impl State {
    /// The row may be written.
    fn is_wanted(self) -> bool {
        matches!(self, State::Keep | State::Waits | State::KeepFaulty)
    }
}

impl Counts {
    /// Counts a span's rows; those that wait are counted when they are settled.
    fn add(&self, states: &[State]) {
        let count = |state| states.iter().filter(|one| **one == state).count() as u64;
        self.kept.fetch_add(count(State::Keep), Ordering::Relaxed);
        self.duplicates.fetch_add(count(State::Duplicate), Ordering::Relaxed);
        self.seen.fetch_add(count(State::Seen), Ordering::Relaxed);
        self.faulty.fetch_add(count(State::KeepFaulty) + count(State::DropFaulty), Ordering::Relaxed);
    }

    fn add_settled(&self, ordinals: &[u64], kept: &[bool]) {
        let waited = ordinals.iter().zip(kept).filter(|(at, _)| **at & SURE == 0);
        let (all, new) = waited.fold((0, 0), |(all, new), (_, kept)| (all + 1, new + u64::from(*kept)));
        self.kept.fetch_add(new, Ordering::Relaxed);
        self.duplicates.fetch_add(all - new, Ordering::Relaxed);
        self.written.fetch_add(kept.iter().filter(|kept| **kept).count() as u64, Ordering::Relaxed);
    }

    fn check(self, summary: Summary) -> Result<Deduped, RunError<DedupError>> {
        let [kept, left_out, seen, faulty, refused, written] =
            [self.kept, self.duplicates, self.seen, self.faulty, self.refused, self.written].map(AtomicU64::into_inner);
        let (records, duplicates) = (summary.records, left_out.saturating_sub(refused));
        if kept + duplicates + seen + faulty != records || faulty != summary.tally.faulty {
            return Err(RunError::Output(DedupError::Lost { records, kept, duplicates, seen, faulty }));
        }
        let summary = Summary { memory: memory::peaks(), ..summary };
        Ok(Deduped { summary, kept, duplicates, seen, faulty, written, spilled: 0, new_keys: None })
    }
}

/// The rows of a batch that are wanted.
fn filter(batch: &RecordBatch, wanted: impl Iterator<Item = bool>) -> Result<RecordBatch, SpillError> {
    let wanted = BooleanArray::from_iter(wanted.map(Some));
    if wanted.true_count() == batch.num_rows() {
        return Ok(batch.clone());
    }
    Ok(filter_record_batch(batch, &wanted)?)
}

/// Ordinals of the rows that are not left out, marked where they are kept for sure.
fn ordinals(first_row: u64, states: &[State]) -> Vec<u64> {
    let ordinal = |(row, state): (usize, &State)| match state {
        State::Keep | State::KeepFaulty => Some((first_row + row as u64) | SURE),
        State::Waits => Some(first_row + row as u64),
        State::Duplicate | State::Seen | State::DropFaulty => None,
    };
    states.iter().enumerate().filter_map(ordinal).collect()
}
