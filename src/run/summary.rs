//! Counts of a run: [`Progress`] while it works, [`Summary`] when it has ended.

use super::distinct::DistinctKeys;
use super::error::RunError;
use super::memory::{self, MemoryPeaks};
use crate::canon::Tally;
use crate::input::InputError;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a run is. Any thread may read it at any time.
#[derive(Debug, Default)]
pub struct Progress {
    read: AtomicU64,
    /// Total number of bytes plus 1; 0 if the total is not known.
    total: AtomicU64,
    records: AtomicU64,
    rows: AtomicU64,
}

impl Progress {
    /// Progress of a run that has not begun.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Bytes of the sources read so far; packed bytes of packed sources.
    pub fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes of all sources, if all are regular files.
    pub fn total(&self) -> Option<u64> {
        self.total.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Records decoded so far.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Rows made so far.
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

/// Result of a run. The counts balance: `records`, `tally.rows` and `rows` are equal, and the tally is balanced.
#[derive(Debug, Default)]
pub struct Summary {
    /// Unpacked bytes of records; headers and byte order marks are not counted.
    pub bytes: u64,
    /// Records decoded.
    pub records: u64,
    /// Header and comment lines, which are not records.
    pub headers: u64,
    /// Archive records that were skipped because of their type; they have no rows.
    pub skipped: u64,
    /// Rows appended.
    pub rows: u64,
    /// How the rows came out.
    pub tally: Tally,
    /// Records of each source, in the order of the sources.
    pub source_records: Vec<u64>,
    /// Sources that ended early, in the order of the sources.
    pub input_errors: Vec<InputError>,
    /// Number of distinct values in the column `key`.
    pub distinct_keys: u64,
    /// Whether `distinct_keys` is exact. Otherwise it is an estimate, which is almost always within 2 %.
    pub is_distinct_exact: bool,
    /// Peaks of memory.
    pub memory: MemoryPeaks,
}

impl Summary {
    /// Returns whether errors of the sources are the reason why there are no rows.
    pub(crate) fn is_nothing_read(&self) -> bool {
        self.records == 0 && !self.input_errors.is_empty()
    }
}

/// Counts of one worker, or of all workers.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// Unpacked bytes of records.
    pub(super) bytes: u64,
    pub(super) records: u64,
    /// Lines that are not records.
    pub(super) headers: u64,
    /// Records that were skipped because of their type.
    pub(super) skipped: u64,
    pub(super) tally: Tally,
    pub(super) distinct: DistinctKeys,
}

impl Totals {
    pub(super) fn add(&mut self, other: Totals) {
        self.bytes += other.bytes;
        self.records += other.records;
        self.headers += other.headers;
        self.skipped += other.skipped;
        self.tally.add(&other.tally);
        self.distinct.merge(&other.distinct);
    }
}

/// Checks that no record was lost, and makes the summary of a run. `appended` is the number of rows appended.
///
/// # Errors
/// [`RunError::Unbalanced`].
pub(super) fn summarize<E>(
    totals: Totals,
    source_records: Vec<u64>,
    input_errors: Vec<InputError>,
    appended: u64,
) -> Result<Summary, RunError<E>> {
    let Totals { bytes, records, headers, skipped, tally, distinct } = totals;
    let numbered: u64 = source_records.iter().sum();
    if [tally.rows, appended, numbered].iter().any(|&count| count != records) || !tally.is_balanced() {
        return Err(RunError::Unbalanced { records, rows: tally.rows, appended });
    }
    let (distinct_keys, is_distinct_exact) = distinct.count();
    Ok(Summary {
        bytes,
        records,
        headers,
        skipped,
        rows: appended,
        tally,
        source_records,
        input_errors,
        // An estimate may exceed the number of rows a little.
        distinct_keys: distinct_keys.min(appended),
        is_distinct_exact,
        memory: memory::peaks(),
    })
}
