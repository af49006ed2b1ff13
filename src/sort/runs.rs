//! Sorted runs, in memory up to a limit and beyond it in a temporary file: [`SortedRuns`].

use std::path::Path;
use std::sync::Arc;

use super::block::{EncodedBlock, SortSchema};
use super::merge::{BlockLocation, BlockQueue, MergeLimits, Merger};
use super::run_file::{RunFileEntry, read_entries};
use crate::spill::{ScratchFile, SpillError};

/// Sorted runs that will be merged.
#[derive(Debug)]
pub(crate) struct SortedRuns {
    runs: Vec<BlockQueue>,
    file: Arc<ScratchFile>,
    /// Bytes of memory for blocks and merges together.
    limit: usize,
    /// Bytes of blocks that may stay in memory.
    held_limit: usize,
    held: usize,
    rows: u64,
    /// Memory of the largest block when it is decoded.
    largest: usize,
    /// Bytes of temporary files of earlier merges.
    written: u64,
}

impl SortedRuns {
    /// No runs. They take about `limit` bytes of memory, and the rest is in a temporary file in `directory`.
    pub(crate) fn new(limit: usize, directory: &Path) -> SortedRuns {
        SortedRuns {
            runs: Vec::new(),
            file: Arc::new(ScratchFile::new(directory)),
            limit,
            held_limit: limit / 2,
            held: 0,
            rows: 0,
            largest: 1,
            written: 0,
        }
    }

    /// Adds a run.
    pub(crate) fn add(&mut self, blocks: Vec<EncodedBlock>) -> Result<(), SpillError> {
        self.runs.push(BlockQueue::default());
        self.extend_last(blocks)
    }

    /// Appends blocks to the last run.
    fn extend_last(&mut self, blocks: Vec<EncodedBlock>) -> Result<(), SpillError> {
        for EncodedBlock { bytes, rows, memory_len } in blocks {
            let location = if self.held + bytes.len() <= self.held_limit {
                self.held += bytes.len();
                BlockLocation::Memory(bytes)
            } else {
                BlockLocation::File(Arc::clone(&self.file), self.file.append(&bytes)?)
            };
            self.push_block(location, rows as u64, memory_len);
        }
        Ok(())
    }

    fn push_block(&mut self, location: BlockLocation, rows: u64, memory_len: usize) {
        self.rows += rows;
        self.largest = self.largest.max(memory_len);
        if let Some(run) = self.runs.last_mut() {
            run.0.push_back(location);
        }
    }

    /// Adds the runs of a file that [`super::RunFileWriter`] wrote. Their blocks stay in the file.
    pub(crate) fn add_file(&mut self, path: &Path) -> Result<(), SpillError> {
        let file = Arc::new(ScratchFile::open(path)?);
        let mut last = None;
        for RunFileEntry { run, range, rows, memory_len } in read_entries(&file)? {
            if last.replace(run) != Some(run) {
                self.runs.push(BlockQueue::default());
            }
            self.push_block(BlockLocation::File(Arc::clone(&file), range), rows, memory_len as usize);
        }
        Ok(())
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes written to temporary files.
    pub(crate) fn written_len(&self) -> u64 {
        self.written + self.file.written_len()
    }

    /// How many runs can be merged at a time within the limit.
    fn fan_in(&self) -> usize {
        (self.limit / 2 / self.largest).max(2)
    }

    /// Merges runs until all that remain can be merged at a time.
    pub(crate) fn reduce(mut self, schema: &SortSchema) -> Result<SortedRuns, SpillError> {
        while self.runs.len() > self.fan_in() {
            // The blocks of this level leave memory only as they are merged, so those of the next level go to disk.
            let mut next = SortedRuns { held_limit: 0, ..SortedRuns::new(self.limit, self.file.directory()) };
            (next.largest, next.written) = (self.largest, self.written_len());
            let (fan_in, mut rest) = (self.fan_in(), std::mem::take(&mut self.runs).into_iter());
            loop {
                let runs: Vec<BlockQueue> = rest.by_ref().take(fan_in).collect();
                if runs.is_empty() {
                    break;
                }
                next.runs.push(BlockQueue::default());
                let mut merger = Merger::new(schema, runs, MergeLimits::INTERMEDIATE)?;
                while let Some(picked) = merger.next_rows()? {
                    next.extend_last(schema.encode(&schema.gather_flat(&picked)?)?)?;
                }
            }
            self = next;
        }
        Ok(self)
    }

    /// Starts the merge of all runs.
    pub(crate) fn merger<'a>(&mut self, schema: &'a SortSchema, limits: MergeLimits) -> Result<Merger<'a>, SpillError> {
        Merger::new(schema, std::mem::take(&mut self.runs), limits)
    }
}
