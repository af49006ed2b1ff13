//! Counts of a run: [`Progress`] while it works, [`Summary`] when it has ended.

use super::memory::MemoryPeaks;
use crate::batch::SourceRun;
use crate::canon::{MAX_FAULT_EXAMPLES, Policy, Rows, Tally};
use crate::input::InputError;
use crate::iri::{Fault, FaultKind, Flags, Spaces};
use crate::record::FormatAdvice;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a run does at a time. Most runs only read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// It reads the sources, and makes rows of their records.
    #[default]
    Read,
    /// It decides about rows whose keys did not fit into memory.
    Resolve,
    /// It reads the sources a second time, and writes the rows that are kept.
    ReadAgain,
    /// It writes rows that were sorted, or that were pending until all records had been read.
    Write,
    /// It learns from what the records state.
    Learn,
}

/// How far a run is. Any thread may read it at any time.
#[derive(Debug, Default)]
pub struct Progress {
    phase: Mutex<Phase>,
    second_pass: OnceLock<Box<Progress>>,
    read: AtomicU64,
    total: OnceLock<Option<u64>>,
    records: AtomicU64,
    rows: AtomicU64,
}

impl Progress {
    /// Progress of a run that has not begun.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// What the run does now.
    pub fn phase(&self) -> Phase {
        *self.phase.lock()
    }

    /// Progress of the second reading of the sources, if it has begun. It does not count in the numbers of this progress.
    pub fn second_pass(&self) -> Option<&Progress> {
        self.second_pass.get().map(Box::as_ref)
    }

    /// Bytes of the sources read so far; compressed bytes of compressed sources.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes of all sources, if all are regular files.
    pub fn total(&self) -> Option<u64> {
        *self.total.get()?
    }

    /// Records decoded so far.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Rows made so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, phase: Phase) {
        *self.phase.lock() = phase;
    }

    /// Begins the second reading of the sources. Returns the progress that counts it.
    pub(crate) fn begin_second_pass(&self) -> &Progress {
        let second_pass = self.second_pass.get_or_init(Box::default);
        self.begin(Phase::ReadAgain);
        second_pass
    }

    /// Sets the total, unless it was set before: a run may be one of several with this progress.
    pub(super) fn set_total(&self, total: Option<u64>) {
        self.total.get_or_init(|| total);
    }

    pub(crate) fn add_read(&self, count: u64) {
        self.read.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, records: u64, rows: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

/// One of the first records with a kind of fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FaultExample {
    /// Number of the row in the run, from 0.
    pub(crate) row: u64,
    /// Index of the source.
    pub(crate) source: usize,
    /// Ordinal of the record in its source, from 1.
    pub(crate) record: u64,
    pub(crate) fault: Fault,
    /// The beginning of the record.
    pub(crate) text: String,
}

/// Keeps the first examples of each kind of fault. They do not depend on the order in which examples are added.
fn keep_first(examples: &mut Vec<FaultExample>) {
    examples.sort_unstable_by_key(|example| (example.fault.kind, example.row));
    let all = std::mem::take(examples);
    for kind in all.chunk_by(|a, b| a.fault.kind == b.fault.kind) {
        examples.extend_from_slice(&kind[..kind.len().min(MAX_FAULT_EXAMPLES)]);
    }
}

/// Result of a run. The counts balance: `records`, `tally.rows` and `rows` are equal, and the tally is balanced.
#[derive(Debug, Default)]
pub struct Summary {
    /// Decompressed bytes of records; headers and byte order marks are not counted.
    pub bytes: u64,
    /// Records decoded.
    pub records: u64,
    /// Header and comment lines, which are not records.
    pub headers: u64,
    /// Archive records that were skipped because of their type; they have no rows.
    pub skipped: u64,
    /// Pages of WAT files, whose links are the records.
    pub(crate) pages: u64,
    /// Rows appended.
    pub rows: u64,
    /// How the rows came out.
    pub tally: Tally,
    /// The rows are those of files with keys, whose changes and flags are not counted again.
    pub(crate) has_keyed_rows: bool,
    /// The first records with each kind of fault, by kind.
    pub(crate) fault_examples: Vec<FaultExample>,
    /// Records of each source, in the order of the sources.
    pub source_records: Vec<u64>,
    /// The name of the format of each source; `None` if it was not read, or its format was not recognized.
    pub(crate) source_formats: Vec<Option<Cow<'static, str>>>,
    /// Sources that ended early, in the order of the sources.
    pub input_errors: Vec<InputError>,
    /// What to try, because most rows are faulty, contain white space or are relative.
    pub(crate) advice: Vec<Advice>,
    /// Number of distinct values in the column `key`; 0 if they are not counted.
    pub distinct_keys: u64,
    /// Whether `distinct_keys` is exact. Otherwise it is an estimate, which is almost always within 2 %.
    pub is_distinct_exact: bool,
    pub(crate) memory: MemoryPeaks,
}

impl Summary {
    /// Returns whether errors of the sources are the reason why there are no rows.
    pub(crate) fn is_nothing_read(&self) -> bool {
        self.records == 0 && !self.input_errors.is_empty()
    }

    /// Returns whether a source has one of these formats, by their names.
    pub(crate) fn has_format(&self, names: &[&str]) -> bool {
        self.source_formats.iter().flatten().any(|name| names.contains(&name.as_ref()))
    }

    /// Returns whether a source is an archive whose records have types.
    pub(crate) fn has_record_types(&self) -> bool {
        self.has_format(&["warc", "arc"])
    }

    /// Returns whether the records of all sources are strings of JSON, which are UTF-8 (RFC 8259 section 8.1).
    pub(crate) fn is_all_json(&self) -> bool {
        self.source_formats.iter().flatten().all(|name| matches!(name.as_ref(), "cdxj" | "har" | "jsonl" | "wat"))
    }

    /// The number of sources by the name of their format, the most frequent first.
    pub(crate) fn sources_by_format(&self) -> Vec<(&str, u64)> {
        let mut names: Vec<&str> = self.source_formats.iter().flatten().map(AsRef::as_ref).collect();
        names.sort_unstable();
        let mut counts: Vec<_> = names.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }

    /// Adds the examples of faults of a row group whose first row is number `first_row` of the run.
    pub(super) fn add_fault_examples(&mut self, rows: &Rows, runs: &[SourceRun], first_row: u64) {
        if rows.fault_examples.is_empty() {
            return;
        }
        for (row, text) in &rows.fault_examples {
            let Some(fault) = rows.fault(*row as usize) else { continue };
            let mut skipped = 0;
            let run = runs.iter().find(|run| {
                let is_after = *row < skipped + run.rows;
                skipped += if is_after { 0 } else { run.rows };
                is_after
            });
            let Some(run) = run else { continue };
            self.fault_examples.push(FaultExample {
                row: first_row + u64::from(*row),
                source: run.source as usize,
                record: run.first_record + u64::from(row - skipped),
                fault,
                text: String::from_utf8_lossy(text).into_owned(),
            });
        }
        keep_first(&mut self.fault_examples);
    }

    /// Adds the errors of a second reading of the sources, except of sources that had an error in the first one.
    pub(super) fn add_errors(&mut self, errors: Vec<InputError>) {
        for error in errors {
            if self.input_errors.iter().all(|known| known.source_number != error.source_number) {
                self.input_errors.push(error);
            }
        }
        self.input_errors.sort_by_key(|error| error.source_number);
    }

    /// Adds the summary of another worker, or of the next sources of the same job. The keys that both have are not known, so
    /// that distinct keys are not added.
    pub(crate) fn add(&mut self, mut other: Summary) {
        let (first_source, first_row) = (self.source_records.len(), self.rows);
        let number = |example: FaultExample| FaultExample {
            source: first_source + example.source,
            row: first_row + example.row,
            ..example
        };
        self.fault_examples.extend(other.fault_examples.into_iter().map(number));
        keep_first(&mut self.fault_examples);
        self.advice.append(&mut other.advice);
        self.advice.truncate(MAX_ADVICE);
        self.bytes += other.bytes;
        self.records += other.records;
        self.headers += other.headers;
        self.skipped += other.skipped;
        self.pages += other.pages;
        self.rows += other.rows;
        self.tally.add(&other.tally);
        self.source_records.append(&mut other.source_records);
        self.source_formats.append(&mut other.source_formats);
        let number =
            |error: InputError| InputError { source_number: first_source as u32 + error.source_number, ..error };
        self.input_errors.extend(other.input_errors.into_iter().map(number));
        self.memory.peak_resident = self.memory.peak_resident.max(other.memory.peak_resident);
        self.memory.peak_anonymous = self.memory.peak_anonymous.max(other.memory.peak_anonymous);
    }
}

const OWN_TABLE: &str = "rows without a uri have the fault no-url and the text in the column input, as irikey writes records \
                         with a fault; the column fault of this table names their faults";

const OWN_URIS: &str = "keys are made of the URIs in this table, not of the URLs that irikey read when it wrote the table, so \
                        lower rungs and recipes may merge more; for the keys of these URLs, read the original input";

const HOSTS_WITH_PORTS: &str = "the first records look like hosts with ports, and were read as URIs whose schemes are the \
                                hosts; use --assume-scheme https";

/// Maximum number of sources that have advice.
pub(super) const MAX_ADVICE: usize = 5;

/// Advice on one source, or on all of them: most often what to try because it was probably read in the wrong way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// Name of the source; `None` if the advice is on all sources.
    pub(crate) source: Option<String>,
    pub(crate) text: String,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Some(source) => write!(f, "{source}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// Advice on a source, which is given if the rows of the run call for it.
pub(super) struct PossibleAdvice {
    /// The number of the source.
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) advice: FormatAdvice,
}

/// The advice on sources, by their names, that the rows of a run with this policy call for.
pub(super) fn chosen_advice(tally: &Tally, policy: &Policy, advice: Vec<PossibleAdvice>) -> Vec<Advice> {
    let flagged = |flag: Flags| tally.flags[flag.0.trailing_zeros() as usize];
    let odd = tally.faulty + flagged(Flags::EXCLUDED).max(flagged(Flags::CONTROL));
    let faults = |kind: FaultKind| tally.faults[kind as usize];
    let has_choice_for_spaces = policy.preprocess.spaces != Spaces::Kept;
    let has_lossy_keys = !policy.more_keys.is_empty() || !policy.recipes.is_empty();
    let is_relative = tally.rows > 0 && faults(FaultKind::Relative) == tally.rows;
    let text = |advice: FormatAdvice| match advice {
        advice if advice.is_about_spaces() && has_choice_for_spaces => None,
        FormatAdvice::Format(text) => (odd * 2 > tally.rows).then(|| text.to_string()),
        FormatAdvice::Header(text) => (tally.faulty > 0).then(|| text.to_string()),
        FormatAdvice::BaseColumn(name) => {
            is_relative.then(|| format!("all records are relative references; use --base-column {name}"))
        }
        FormatAdvice::HostsWithPorts => policy.assume_scheme.is_none().then(|| HOSTS_WITH_PORTS.to_string()),
        FormatAdvice::OwnTable if faults(FaultKind::NoUrl) * 2 > tally.rows => Some(OWN_TABLE.to_string()),
        FormatAdvice::OwnTable => has_lossy_keys.then(|| OWN_URIS.to_string()),
    };
    let chosen = |possible: PossibleAdvice| Some(Advice { source: Some(possible.name), text: text(possible.advice)? });
    advice.into_iter().filter_map(chosen).collect()
}
