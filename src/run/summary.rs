//! Counts of a run: while it goes, [`Progress`]; when it is over, [`Summary`].

use super::cut::StoppedSource;
use super::distinct::DistinctKeys;
use super::error::RunError;
use super::memory::{self, MemoryPeaks};
use crate::canon::Tally;
use crate::input::InputError;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a run is; may be read from any thread at any time.
#[derive(Debug, Default)]
pub struct Progress {
    read: AtomicU64,
    /// 1 more than the bytes in all; 0 if they are not known.
    total: AtomicU64,
    records: AtomicU64,
    rows: AtomicU64,
}

impl Progress {
    /// At the beginning.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Bytes of the sources read so far, packed ones as they are.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes of the sources in all, if all are regular files.
    pub fn total(&self) -> Option<u64> {
        self.total.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Records decoded.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Rows made.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    pub(super) fn set_total(&self, total: Option<u64>) {
        self.total.store(total.map_or(0, |total| total.saturating_add(1)), Ordering::Relaxed);
    }

    pub(super) fn add_read(&self, count: u64) {
        self.read.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn add(&self, records: u64, rows: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

/// What a run did. The counts balance: `records == tally.rows == rows`, and the tally within itself.
#[derive(Debug)]
pub struct Summary {
    /// Bytes of records, decompressed; headers and byte-order marks are not counted.
    pub bytes: u64,
    /// Records that the decoders gave.
    pub records: u64,
    /// Header and comment lines, which are no records.
    pub headers: u64,
    /// Records of archives whose type was not wanted; no rows.
    pub skipped: u64,
    /// Rows in parts that were appended.
    pub rows: u64,
    /// What happened to them.
    pub tally: Tally,
    /// Records of each source, in the order of the sources.
    pub source_records: Vec<u64>,
    /// Sources that ended early, in the order of the sources.
    pub input_errors: Vec<InputError>,
    /// DistinctKeys values of the `key` column.
    pub distinct_keys: u64,
    /// `distinct_keys` is a count; else an estimate, within 2 % nearly always.
    pub is_distinct_exact: bool,
    /// Peaks of memory.
    pub memory: MemoryPeaks,
}

/// What one worker counted.
#[derive(Debug, Default)]
pub struct Totals {
    /// Bytes of records, decompressed.
    pub bytes: u64,
    pub records: u64,
    /// Lines that are no records.
    pub headers: u64,
    /// Records whose type was not wanted.
    pub skipped: u64,
    pub tally: Tally,
    pub distinct: DistinctKeys,
}

impl Totals {
    pub fn add(&mut self, other: Totals) {
        self.bytes += other.bytes;
        self.records += other.records;
        self.headers += other.headers;
        self.skipped += other.skipped;
        self.tally.add(&other.tally);
        self.distinct.merge(&other.distinct);
    }
}

/// Adds up, and checks that nothing was lost.
pub fn summarize<E>(
    totals: Totals,
    names: Vec<String>,
    source_records: Vec<u64>,
    appended: u64,
    stopped: Vec<StoppedSource>,
) -> Result<Summary, RunError<E>> {
    let Totals { bytes, records, headers, skipped, tally, distinct } = totals;
    let numbered: u64 = source_records.iter().sum();
    if [tally.rows, appended, numbered].iter().any(|&count| count != records) || !tally.is_balanced() {
        return Err(RunError::Unbalanced { records, rows: tally.rows, appended });
    }
    let input_error = |stopped: StoppedSource| InputError {
        source_number: stopped.source,
        name: names[stopped.source as usize].clone(),
        defect: stopped.defect,
        offset: stopped.offset,
        packed: stopped.packed,
        lost: stopped.lost,
        // The source ended there, so all of its records came before.
        records: source_records[stopped.source as usize],
    };
    let input_errors = stopped.into_iter().map(input_error).collect();
    let (distinct_keys, is_distinct_exact) = distinct.count();
    // An estimate may be a little more than all there are.
    let distinct_keys = distinct_keys.min(appended);
    let memory = memory::peaks();
    let rows = appended;
    Ok(Summary {
        bytes,
        records,
        headers,
        skipped,
        rows,
        tally,
        source_records,
        input_errors,
        distinct_keys,
        is_distinct_exact,
        memory,
    })
}
