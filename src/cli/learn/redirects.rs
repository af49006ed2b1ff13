//! Writes what `learn` learned of redirects to the table: [`write_redirects`].

use arrow::record_batch::RecordBatch;

use crate::batch::{BatchError, EquivalenceRows};
use crate::cli::error::CommandError;
use crate::learn::{Equivalences, LearnedRedirects, Pattern};
use crate::output::{OutputError, TableWriter};
use crate::run::{DiskStore, ObserveError};

/// Most patterns that the report shows.
const MAX_SHOWN: usize = 20;

/// Patterns that are needed after they were written.
#[derive(Debug, Default)]
pub(super) struct WrittenPatterns {
    /// Those with the most support.
    pub(super) shown: Vec<Pattern>,
    /// All of them, if rules about content have to be compared with them.
    pub(super) applied: Equivalences,
}

/// Writes members of classes and patterns of hosts. `is_compared` says that all patterns are needed afterwards.
pub(super) fn write_redirects(
    redirects: &mut LearnedRedirects<DiskStore>,
    sources: &[String],
    table: &mut TableWriter,
    is_compared: bool,
) -> Result<WrittenPatterns, CommandError> {
    let (mut rows, mut written) = (EquivalenceRows::default(), WrittenPatterns::default());
    while let Some(member) = redirects.next_member().map_err(ObserveError::Spill)? {
        rows.add_member(&member, sources).map_err(BatchError::from).map_err(OutputError::from)?;
        append_full(&mut rows, table)?;
    }
    append(&mut rows, table)?;
    while let Some(pattern) = redirects.next_pattern().map_err(ObserveError::Spill)? {
        rows.add_pattern(&pattern);
        append_full(&mut rows, table)?;
        written.add(pattern, is_compared);
    }
    append(&mut rows, table)?;
    Ok(written)
}

impl WrittenPatterns {
    fn add(&mut self, pattern: Pattern, is_compared: bool) {
        if is_compared {
            // Patterns that contradict each other were refused before.
            let added = self.applied.add_pattern(&pattern.host, pattern.rule);
            debug_assert!(added.is_ok());
        }
        let at = self.shown.partition_point(|shown| shown.support >= pattern.support);
        if at < MAX_SHOWN {
            self.shown.insert(at, pattern);
            self.shown.truncate(MAX_SHOWN);
        }
    }
}

fn append_full(rows: &mut EquivalenceRows, table: &mut TableWriter) -> Result<(), CommandError> {
    if rows.is_full() { append(rows, table) } else { Ok(()) }
}

fn append(rows: &mut EquivalenceRows, table: &mut TableWriter) -> Result<(), CommandError> {
    let batch: Option<RecordBatch> = rows.take_batch().map_err(BatchError::from).map_err(OutputError::from)?;
    Ok(batch.map_or(Ok(()), |batch| table.append(&batch))?)
}
