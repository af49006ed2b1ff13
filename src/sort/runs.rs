//! Sorted runs of rows: [`SortedRuns`].

use std::path::Path;
use std::sync::Arc;

use super::block::{EncodedBlock, PlainMemory, SortSchema};
use super::held_runs::{BlockPlace, HeldRuns};
use super::merge::{MergeLimits, Merger};
use super::run_file::{RunFileEntry, read_entries};
use crate::spill::{ScratchFile, SpillError};

/// Sorted runs that will be merged.
#[derive(Debug)]
pub(crate) struct SortedRuns {
    runs: HeldRuns,
    rows: u64,
}

impl SortedRuns {
    /// No runs. They take about `limit` bytes of memory, and the rest is in a temporary file in `directory`.
    pub(crate) fn new(limit: usize, directory: &Path) -> SortedRuns {
        SortedRuns { runs: HeldRuns::new(limit, directory, 2), rows: 0 }
    }

    pub(crate) fn add(&mut self, blocks: Vec<EncodedBlock>) -> Result<(), SpillError> {
        self.runs.begin_run();
        self.rows += blocks.iter().map(|block| block.rows as u64).sum::<u64>();
        append(&mut self.runs, blocks)
    }

    /// Adds the runs of a file that [`super::RunFileWriter`] wrote. Their blocks stay in the file.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<(), SpillError> {
        let file = Arc::new(ScratchFile::open(path)?);
        let mut last = None;
        for RunFileEntry { run, range, rows, memory_len } in read_entries(&file)? {
            if last.replace(run) != Some(run) {
                self.runs.begin_run();
            }
            self.rows += rows;
            self.runs.append_place(BlockPlace::File(Arc::clone(&file), range), memory_len as usize);
        }
        Ok(())
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes written to temporary files.
    pub(crate) fn written_len(&self) -> u64 {
        self.runs.written_len()
    }

    /// Merges runs until all that remain can be merged at a time.
    pub(crate) fn reduce(self, schema: &SortSchema) -> Result<SortedRuns, SpillError> {
        let runs = self.runs.reduce(|runs, merged| {
            let mut merger = Merger::new(schema, runs, MergeLimits::INTERMEDIATE)?;
            while let Some(picked) = merger.next_rows()? {
                append(merged, schema.encode(&schema.gather_flat(&picked)?, &PlainMemory::new(0))?)?;
            }
            Ok(())
        })?;
        Ok(SortedRuns { runs, rows: self.rows })
    }

    pub(crate) fn merger<'a>(&mut self, schema: &'a SortSchema, limits: MergeLimits) -> Result<Merger<'a>, SpillError> {
        Merger::new(schema, self.runs.take(), limits)
    }
}

/// Appends blocks to the last run.
fn append(runs: &mut HeldRuns, blocks: Vec<EncodedBlock>) -> Result<(), SpillError> {
    blocks.into_iter().try_for_each(|block| runs.append(block.bytes, block.memory_len))
}
