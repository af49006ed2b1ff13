//! The memory of a job: [`Budget`]. Each consumer states its need and gets a share; if the budget is too small for the
//! job, the error states what each consumer needs.
//!
//! Worker threads come first: their rows in flight take a fixed amount per thread. The rest is for data that grows with
//! the input (keys, sorted runs, redirects), which is spilled or refused when its share is exhausted.

use super::memory;
use super::options::SLICE_LEN;
use crate::batch::{ColumnKind, ColumnSet};
use std::fmt;

/// Bytes of memory of a process before it does anything.
const BASE: usize = 16 << 20;

/// Bytes of memory of each thread after the first one that do not depend on the length of row groups: its stack, buffers and
/// tables. Measured with row groups of 64 KiB, where a thread takes 1.1 MB more than its rows. The first thread is part of
/// [`BASE`].
const THREAD: usize = 3 << 19;

/// Bytes of memory of the samples of a survey, and of what is counted in them at the end. The samples of a row group are
/// smaller, because the samples of the run bound them.
const SURVEY: usize = 24 << 20;

/// Bytes of memory of a table of duplicates or groups: the row group that is being written, see
/// [`TableWriter`](crate::output::TableWriter).
const TABLE: usize = 24 << 20;

/// Minimum memory for data that grows with the input, bytes.
const MIN_DATA: usize = 1 << 20;

/// Minimum memory for such data if the user set no limit, bytes.
const MIN_DEFAULT_DATA: usize = 64 << 20;

/// Bytes of memory that are not handed out yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    remaining: usize,
    /// The user set the limit; otherwise it is a part of the memory of the machine.
    is_limited: bool,
}

/// What a worker thread needs for rows in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerNeed {
    /// Bytes of memory per thread.
    bytes: usize,
    /// Bytes of memory of the row group that all threads share.
    shared: usize,
    /// Bytes of memory that do not depend on the length of row groups, for all threads together.
    fixed: usize,
    /// Length of the rows of a thread: a row group, or a slice.
    rows_len: usize,
    /// Length of the row group that threads encode together.
    shared_len: usize,
    /// The rows are for an output, so that the user can choose the length of row groups.
    is_chosen: bool,
    /// What the rest of the memory is for, if it grows with the input.
    data: Option<&'static str>,
}

impl WorkerNeed {
    /// For row groups of this length on their way to an output: rows, their batch, what is left of it, and the encoded row
    /// group, twice because one may wait to be written. Measured on different lines of 30 bytes with the default columns,
    /// where it is 5.5 to 7 times the length; longer lines take less.
    pub(crate) fn rows(row_group_len: usize) -> WorkerNeed {
        WorkerNeed { is_chosen: true, data: None, ..WorkerNeed::keys(row_group_len) }
    }

    /// For row groups of this length that threads encode together, slice by slice: an encoded row group, and for each thread
    /// the rows and pages of its slices. Measured on different lines of 16 bytes with the default columns, where they are 5
    /// times the length of a row group and 14 times the length of a slice.
    pub(crate) fn slices(row_group_len: usize) -> WorkerNeed {
        let rows_len = row_group_len.min(SLICE_LEN);
        let (bytes, shared) = (rows_len.saturating_mul(16), row_group_len.saturating_mul(5));
        WorkerNeed { bytes, shared, fixed: 0, rows_len, shared_len: row_group_len, is_chosen: true, data: None }
    }

    /// For row groups that are read from Parquet files, of this length without compression. Measured on different lines of 77
    /// bytes with the default columns, where a thread takes 3.3 times the length, or 4.3 times if rows are pending.
    pub(crate) fn read_rows(row_group_len: usize) -> WorkerNeed {
        WorkerNeed { bytes: row_group_len.saturating_mul(5), ..WorkerNeed::keys(row_group_len) }
    }

    /// For row groups of this length of which only keys are used.
    pub(crate) fn keys(row_group_len: usize) -> WorkerNeed {
        let bytes = row_group_len.saturating_mul(8);
        let (rows_len, data) = (row_group_len, Some("keys"));
        WorkerNeed { bytes, shared: 0, fixed: 0, rows_len, shared_len: 0, is_chosen: false, data }
    }

    /// Also for rows that are pending until all rows are known, and are copied to temporary files. Measured on different lines of
    /// 12 to 17 bytes, where a thread takes 11.5 times the length. `data` is what decides about them.
    pub(crate) fn with_pending_rows(self, data: &'static str) -> WorkerNeed {
        WorkerNeed { bytes: self.bytes.saturating_add(self.rows_len.saturating_mul(4)), ..self.with_data(data) }
    }

    /// The same with this name for the data that grows with the input.
    pub(crate) fn with_data(self, data: &'static str) -> WorkerNeed {
        WorkerNeed { data: Some(data), ..self }
    }

    /// Also for the keys of the rungs `simple` and `syntax`, in the rows and in their batch.
    pub(crate) fn with_lower_keys(self) -> WorkerNeed {
        WorkerNeed { bytes: self.bytes.saturating_add(self.rows_len.saturating_mul(2)), ..self }
    }

    /// Also for columns that are not among the default ones, in the rows and in their batch. A text is at most about as long as
    /// the URL. Other values are compared with the bytes for which a record counts at least. Of the encoded row group that
    /// threads share, columns take three quarters as much. Measured with all columns, on lines of 1 and of 40 bytes.
    pub(crate) fn with_columns(self, columns: &ColumnSet) -> WorkerNeed {
        let sixteenths = columns.iter().filter(|column| !column.is_default).map(|column| match column.kind {
            ColumnKind::Text | ColumnKind::Repeating | ColumnKind::Bytes => 24,
            ColumnKind::Key => 16,
            ColumnKind::Count | ColumnKind::Time | ColumnKind::Long => 8,
            _ => 4,
        });
        let sixteenths: usize = sixteenths.sum();
        let of_rows = (self.rows_len / 16).saturating_mul(sixteenths);
        let of_shared = (self.shared_len / 64 * 3).saturating_mul(sixteenths);
        let (bytes, shared) = (self.bytes.saturating_add(of_rows), self.shared.saturating_add(of_shared));
        WorkerNeed { bytes, shared, ..self }
    }

    /// Also for a survey of duplicates: the samples of the row group of a thread, and those of the run.
    pub(crate) fn with_survey(self) -> WorkerNeed {
        WorkerNeed { bytes: self.bytes.saturating_add(SURVEY / 2), fixed: self.fixed + SURVEY, ..self }
    }

    /// Also for `count` tables that are written beside the output.
    pub(crate) fn with_tables(self, count: usize) -> WorkerNeed {
        WorkerNeed { fixed: self.fixed + count * TABLE, ..self }
    }

    /// Whether a thread needs more than with `other`.
    pub(crate) fn is_more_than(&self, other: WorkerNeed) -> bool {
        self.bytes > other.bytes
    }

    /// Maximum number of runs at the same time: one whose workers are reserved already, and as many further ones as `remaining`
    /// bytes allow.
    pub(crate) fn runs_within(&self, remaining: usize) -> usize {
        remaining.checked_div(self.shared).map_or(usize::MAX, |more| 1 + more)
    }

    /// Bytes of memory of the process and of everything but the rows of threads.
    fn base(&self) -> usize {
        BASE.saturating_add(self.shared).saturating_add(self.fixed)
    }

    /// Bytes of memory of this many workers and the process.
    fn of_workers(&self, threads: usize) -> usize {
        let more = threads.saturating_sub(1).saturating_mul(THREAD);
        self.base().saturating_add(threads.saturating_mul(self.bytes)).saturating_add(more)
    }

    /// The length of row groups for which `limit` bytes would be enough, KiB.
    fn fitting_row_group(&self, limit: usize) -> u128 {
        let spare = limit.saturating_sub(BASE + MIN_DATA).saturating_sub(self.fixed) as u128;
        let [bytes, shared, rows_len] = [self.bytes, self.shared, self.rows_len].map(|len| len.max(1) as u128);
        let fitting = match self.shared_len as u128 {
            0 => rows_len * spare / bytes,
            shared_len => {
                let by_slices = spare.saturating_sub(bytes) * shared_len / shared;
                // A row group that is shorter than a slice is a slice.
                let by_rows = spare * shared_len * rows_len / (shared * rows_len + bytes * shared_len);
                if by_slices >= rows_len { by_slices } else { by_rows }
            }
        };
        fitting >> 10
    }
}

/// The budget is too small for a job with a single thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetError {
    limit: usize,
    need: WorkerNeed,
}

impl Budget {
    /// The budget of a job: `limit` bytes, or half of the memory that the process may have.
    pub(crate) fn new(limit: Option<usize>) -> Budget {
        Budget { remaining: limit.unwrap_or_else(|| memory::limit() / 2), is_limited: limit.is_some() }
    }

    /// A budget of `bytes` for the data of a job.
    pub(super) fn of(bytes: usize) -> Budget {
        Budget { remaining: bytes, is_limited: true }
    }

    /// Reserves memory for up to `threads` workers and returns their number. There are fewer if the data of the job would
    /// otherwise have less than a sixteenth of the budget. Row groups are never made smaller, because the output does not
    /// depend on memory.
    ///
    /// # Errors
    /// The budget is too small for one worker.
    pub(crate) fn reserve_workers(&mut self, threads: usize, need: WorkerNeed) -> Result<usize, BudgetError> {
        let workers = |threads| need.of_workers(threads);
        if !self.is_limited {
            self.remaining = self.remaining.saturating_sub(workers(threads)).max(MIN_DEFAULT_DATA);
            return Ok(threads);
        }
        let limit = self.remaining;
        let data = |threads| Some((threads, limit.checked_sub(workers(threads))?));
        let fair = (1..=threads).rev().filter_map(data).find(|(_, data)| *data >= (limit / 16).max(MIN_DATA));
        let (threads, data) =
            fair.or_else(|| data(1).filter(|(_, data)| *data >= MIN_DATA)).ok_or(BudgetError { limit, need })?;
        self.remaining = data;
        Ok(threads)
    }

    /// Reserves an eighth of the memory, at most `most` bytes, and returns its length.
    pub(crate) fn reserve_eighth(&mut self, most: usize) -> usize {
        let bytes = self.eighths(1).min(most);
        self.remaining -= bytes;
        bytes
    }

    /// Reserves `bytes` if at least as many remain after it. Returns whether it did.
    pub(super) fn reserve_half(&mut self, bytes: usize) -> bool {
        let has_space = bytes <= self.remaining / 2;
        self.remaining -= if has_space { bytes } else { 0 };
        has_space
    }

    /// The share of a consumer that needs this many eighths of what remains.
    pub(super) fn eighths(&self, count: usize) -> usize {
        self.remaining / 8 * count
    }

    /// Bytes that are not reserved.
    pub(crate) fn remaining(&self) -> usize {
        self.remaining
    }
}

impl std::error::Error for BudgetError {}

impl fmt::Display for BudgetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BudgetError { limit, need } = *self;
        let mib = |bytes: usize| bytes.div_ceil(1 << 20);
        let (base, bytes) = (need.base(), need.bytes);
        let least = base.saturating_add(bytes).saturating_add(MIN_DATA);
        let (process, workers) = (if need.data.is_none() { base + MIN_DATA } else { base }, mib(bytes));
        let (limit_text, process) = (size_text(limit), mib(process));
        write!(f, "--memory {limit_text} is too small: the process and what threads share need {process}M, ")?;
        match need.data {
            Some(data) => write!(f, "the rows of one thread {workers}M, and {data} {}M", mib(MIN_DATA))?,
            None => write!(f, "and the rows of one thread {workers}M")?,
        }
        write!(f, "; set --memory to {}M or more", mib(least))?;
        let fitting = need.fitting_row_group(limit);
        if need.is_chosen && fitting > 0 {
            write!(f, ", or --row-group-size to {fitting}K or less")?;
        }
        Ok(())
    }
}

/// A number of bytes as a user writes it.
fn size_text(bytes: usize) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}M", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{}K", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_reduced_before_the_job_is_refused() {
        let need = WorkerNeed::rows(1 << 20);
        let workers = |threads: usize| BASE + threads * (8 << 20) + (threads - 1) * THREAD;
        let reserve = |limit: usize, threads, need| {
            let mut budget = Budget::new(Some(limit));
            budget.reserve_workers(threads, need).map(|threads| (threads, budget.remaining()))
        };
        assert_eq!(reserve(workers(3) + (6 << 20), 3, need), Ok((3, 6 << 20)));
        assert_eq!(reserve(workers(3) + MIN_DATA, 3, need), Ok((2, (8 << 20) + THREAD + MIN_DATA)));
        assert_eq!(reserve(workers(1) + MIN_DATA, 3, need), Ok((1, MIN_DATA)));
        let error = reserve(workers(1), 3, need).unwrap_err().to_string();
        assert!(error.contains("--memory to 25M") && error.contains("--row-group-size to 896K"), "{error}");
        let smaller = WorkerNeed { bytes: 7 << 20, ..WorkerNeed::keys(1 << 20) };
        assert_eq!(reserve(workers(1), 1, smaller), Ok((1, MIN_DATA)));
        let smallest = WorkerNeed { is_chosen: true, ..smaller };
        assert!(!reserve(MIN_DATA, 1, smallest).unwrap_err().to_string().contains("--row-group-size"));
        let mut default = Budget::new(None);
        assert_eq!(default.reserve_workers(5, need), Ok(5));
        assert!(default.remaining() >= MIN_DEFAULT_DATA);
    }

    #[test]
    fn threads_that_share_row_groups_need_less() {
        let row_group = 8 << 20;
        let workers = |need| Budget::new(Some(256 << 20)).reserve_workers(16, need).unwrap();
        assert_eq!((workers(WorkerNeed::rows(row_group)), workers(WorkerNeed::slices(row_group))), (3, 10));
        // A row group that is shorter than a slice is a slice.
        assert_eq!(WorkerNeed::slices(1 << 10).bytes, 16 << 10);
    }

    /// Runs share the threads, but each has a row group of its own that its threads encode together.
    #[test]
    fn memory_limits_how_many_runs_are_side_by_side() {
        let slices = WorkerNeed::slices(8 << 20);
        assert_eq!([0, 39 << 20, 40 << 20, 100 << 20].map(|remaining| slices.runs_within(remaining)), [1, 1, 2, 3]);
        assert_eq!(WorkerNeed::rows(8 << 20).runs_within(0), usize::MAX);
    }

    /// A job that is refused is accepted with the row groups that the message names.
    #[test]
    fn row_groups_of_the_length_in_the_message_fit() {
        let columns = ColumnSet::default_and(["iri", "key_syntax"]).unwrap();
        let needs = [
            |len| WorkerNeed::slices(len),
            |len| WorkerNeed::slices(len).with_tables(1),
            |len| WorkerNeed::rows(len).with_pending_rows("keys").with_tables(1),
        ];
        for need in needs {
            let reserve = |len: usize, limit: usize| {
                Budget::new(Some(limit << 20)).reserve_workers(4, need(len).with_columns(&columns))
            };
            let mut refused_count = 0;
            for limit in [17, 18, 20, 30, 43, 50, 70, 90] {
                let Err(error) = reserve(16 << 20, limit) else { continue };
                let message = error.to_string();
                let Some((_, fitting)) = message.split_once("--row-group-size to ") else { continue };
                let fitting: usize = fitting.split('K').next().unwrap().parse().unwrap();
                assert!(reserve(fitting << 10, limit).is_ok(), "{message}");
                assert!(reserve((fitting << 10) * 5 / 4 + 2048, limit).is_err(), "{message}");
                refused_count += 1;
            }
            assert!(refused_count > 3, "{refused_count}");
        }
    }

    #[test]
    fn further_columns_are_part_of_the_need() {
        let columns = |names: &[&str]| ColumnSet::default_and(names.iter().copied()).unwrap();
        let rows = WorkerNeed::rows(16 << 10);
        assert_eq!(rows.with_columns(&ColumnSet::default()), rows);
        let more = columns(&["iri", "key_syntax", "fetch_time", "fetch_status"]);
        assert_eq!(rows.with_columns(&more).bytes - rows.bytes, (24 + 16 + 8 + 4) << 10);
        let slices = WorkerNeed::slices(8 << 20);
        let with_iri = slices.with_columns(&columns(&["iri"]));
        assert_eq!((with_iri.bytes - slices.bytes, with_iri.shared - slices.shared), (SLICE_LEN / 2 * 3, 9 << 20));
    }

    #[test]
    fn a_survey_and_tables_are_part_of_the_need() {
        let need = WorkerNeed::rows(1 << 20).with_lower_keys().with_survey().with_tables(2);
        let least = BASE + 3 * SURVEY / 2 + 2 * TABLE + (10 << 20) + MIN_DATA;
        let reserve = |limit| Budget::new(Some(limit)).reserve_workers(4, need);
        assert_eq!((reserve(least), reserve(least - 1).is_err()), (Ok(1), true));
        let message = reserve(least - 1).unwrap_err().to_string();
        assert!(message.contains(&format!("set --memory to {}M or more", least >> 20)), "{message}");
    }

    #[test]
    fn the_message_names_the_data_of_the_job() {
        let message = |need| Budget::new(Some(10 << 20)).reserve_workers(1, need).unwrap_err().to_string();
        let start = "--memory 10M is too small: the process and what threads share need";
        let rows = WorkerNeed::rows(1 << 20);
        let cases = [
            (rows, "17M, and the rows of one thread 8M; set --memory to 25M or more"),
            (WorkerNeed::keys(1 << 20), "16M, the rows of one thread 8M, and keys 1M; set --memory to 25M or more"),
            (
                rows.with_pending_rows("sorted rows"),
                "16M, the rows of one thread 12M, and sorted rows 1M; set --memory to 29M or more",
            ),
        ];
        for (need, end) in cases {
            assert_eq!(message(need), format!("{start} {end}"));
        }
    }

    #[test]
    fn shares_are_handed_out() {
        let mut budget = Budget::of(900);
        assert_eq!((budget.reserve_eighth(100), budget.reserve_eighth(0)), (100, 0));
        assert!(!budget.reserve_half(401) && budget.reserve_half(400));
        assert_eq!((budget.remaining(), budget.eighths(6)), (400, 300));
    }
}
