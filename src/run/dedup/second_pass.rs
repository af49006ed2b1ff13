//! Rows that are read a second time instead of being stored in a temporary file: [`SecondPassGroups`].
//!
//! When the memory for keys is exhausted, rows are decided at the end of the input only. If all sources are files that can
//! be read again, the first pass then finds keys only, and notes of each row group what the second pass needs
//! ([`SecondPassGroup`]). After the decisions, the second pass makes the rows of these row groups again and writes those that
//! are kept. This takes less time than writing all rows to a temporary file and reading them back, and less disk space.

use super::super::options::SkippedGroups;
use super::super::{Progress, RunRequest, Ticket};
use super::summary::RowState;
use crate::batch::SourceRun;
use crate::canon::Rows;
use crate::dedup::{Decisions, key_number};
use std::sync::OnceLock;

/// Rows are read a second time if the sources have at most this many times as many bytes as the rows would have in a
/// temporary file. The text of a web page is much longer than its URL, and is not read twice.
const MAX_READ_RATIO: u64 = 4;

/// Bytes of a row in a temporary file, besides its URI: key and ordinal.
const ROW_LEN: u64 = 24;

/// Whether rows are read a second time, if the sources allow it.
#[derive(Debug)]
pub(super) struct SecondPassChoice<'a> {
    /// Progress of the first pass.
    progress: &'a Progress,
    /// Maximum number of row groups that are read but not decided.
    groups_ahead: u64,
    is_chosen: OnceLock<bool>,
}

impl<'a> SecondPassChoice<'a> {
    /// Rows are read a second time if that is less work, which is decided when the first row group is pending.
    pub(super) fn new(progress: &'a Progress, threads: usize) -> SecondPassChoice<'a> {
        SecondPassChoice { progress, groups_ahead: threads as u64 * 2, is_chosen: OnceLock::new() }
    }

    /// Returns the choice. It is made at the first call, by the rows of a row group, and holds for all row groups. The output
    /// does not depend on it.
    pub(super) fn is_chosen(&self, rows: &Rows) -> bool {
        *self.is_chosen.get_or_init(|| {
            let count = rows.len() as u64;
            let row_len = rows.uri.values.len() as u64 / count.max(1) + ROW_LEN;
            let all = self.progress.rows().max(count) + self.groups_ahead * count;
            self.progress.read() <= all.saturating_mul(row_len).saturating_mul(MAX_READ_RATIO)
        })
    }
}

/// A row group whose rows are made again by the second pass.
#[derive(Debug)]
pub(super) struct SecondPassGroup {
    first_row: u64,
    rows: u64,
    /// Depends on the keys of all rows and on their order, to notice sources that change.
    checksum: u128,
    /// Rows that are kept whatever is decided about others, one bit per row; empty if there are none.
    kept: Vec<u64>,
    /// Source and number of the first record; `None` if there are no rows.
    start: Option<SourceRun>,
}

impl SecondPassGroup {
    pub(super) fn new(first_row: u64, rows: &Rows, runs: &[SourceRun], states: &[RowState]) -> SecondPassGroup {
        let mut kept = Vec::new();
        if states.contains(&RowState::Keep) {
            let word = |states: &[RowState]| {
                states.iter().rev().fold(0, |word, state| word << 1 | u64::from(*state == RowState::Keep))
            };
            kept = states.chunks(64).map(word).collect();
        }
        let (rows, checksum, start) = (rows.len() as u64, checksum(rows), runs.first().copied());
        SecondPassGroup { first_row, rows, checksum, kept, start }
    }
}

fn checksum(rows: &Rows) -> u128 {
    rows.key.iter().fold(0, |sum: u128, key| sum.rotate_left(1).wrapping_add(key_number(key)))
}

/// The row groups of the second pass, in order.
#[derive(Debug, Default)]
pub(super) struct SecondPassGroups {
    /// Number of row groups before them, which are decided.
    decided: u64,
    groups: Vec<SecondPassGroup>,
}

impl SecondPassGroups {
    /// Counts a row group that is not pending.
    pub(super) fn count_decided(&mut self) {
        self.decided += 1;
    }

    /// Appends a row group.
    pub(super) fn push(&mut self, group: SecondPassGroup) {
        match group.rows {
            0 if self.groups.is_empty() => self.decided += 1,
            0 => (),
            _ => self.groups.push(group),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Adds the rows that are kept whatever is decided about others to the decisions.
    pub(super) fn add_kept(&self, decisions: &Decisions) {
        for group in &self.groups {
            group.kept.iter().enumerate().for_each(|(i, word)| decisions.keep(group.first_row + i as u64 * 64, *word));
        }
    }

    /// The request of the second pass. `source_records` are the records of each source in the first pass.
    pub(super) fn request<'a>(&self, request: RunRequest<'a>, source_records: &[u64]) -> RunRequest<'a> {
        let Some(start) = self.groups.first().and_then(|group| group.start) else { return request };
        let before = |(source, count): (usize, &u64)| match source.cmp(&(start.source as usize)) {
            std::cmp::Ordering::Less => *count,
            std::cmp::Ordering::Equal => start.first_record - 1,
            std::cmp::Ordering::Greater => 0,
        };
        let source_records = source_records.iter().enumerate().map(before).collect();
        RunRequest { skipped: SkippedGroups { count: self.decided, source_records }, ..request }
    }

    /// Whether the rows of a row group are those of the first pass.
    pub(super) fn has(&self, ticket: &Ticket<'_>, rows: &Rows) -> bool {
        let find = || self.groups.binary_search_by_key(&ticket.first_row(), |group| group.first_row).ok();
        let is_same = |group: &SecondPassGroup| group.rows == rows.len() as u64 && group.checksum == checksum(rows);
        rows.is_empty() || find().is_some_and(|at| is_same(&self.groups[at]))
    }

    /// Number of rows of all row groups.
    pub(super) fn row_count(&self) -> u64 {
        self.groups.iter().map(|group| group.rows).sum()
    }
}
