//! Sorted runs as blocks of bytes, in memory up to a limit and beyond it in a temporary file: [`HeldRuns`].

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use crate::spill::{FileRange, ScratchFile, SpillError};

/// Where the bytes of a block are.
#[derive(Debug)]
pub(super) enum BlockPlace {
    Memory(Vec<u8>),
    File(Arc<ScratchFile>, FileRange),
}

/// The blocks of a run that were not read yet, in order.
pub(super) type BlockQueue = VecDeque<BlockPlace>;

impl BlockPlace {
    /// Replaces `bytes` by those of the block. Returns the file in which the block is.
    pub(super) fn read(self, bytes: &mut Vec<u8>) -> Result<Option<Arc<ScratchFile>>, SpillError> {
        match self {
            BlockPlace::Memory(held) => {
                *bytes = held;
                Ok(None)
            }
            BlockPlace::File(file, range) => {
                file.read(range, bytes)?;
                Ok(Some(file))
            }
        }
    }
}

/// Sorted runs that will be merged.
#[derive(Debug)]
pub(super) struct HeldRuns {
    runs: Vec<BlockQueue>,
    file: Arc<ScratchFile>,
    /// Bytes of memory for blocks and merges together.
    pub(super) limit: usize,
    /// Bytes of blocks that may stay in memory.
    held_limit: usize,
    held: usize,
    /// The most memory that a block takes while it is merged.
    largest: usize,
    /// Minimum number of runs that are merged at a time.
    min_fan_in: usize,
    /// Bytes of temporary files of earlier merges.
    written: u64,
}

impl HeldRuns {
    /// No runs. They take about `limit` bytes of memory, and the rest is in a temporary file in `directory`.
    pub(super) fn new(limit: usize, directory: &Path, min_fan_in: usize) -> HeldRuns {
        HeldRuns {
            runs: Vec::new(),
            file: Arc::new(ScratchFile::new(directory)),
            limit,
            held_limit: limit / 2,
            held: 0,
            largest: 1,
            min_fan_in,
            written: 0,
        }
    }

    pub(super) fn begin_run(&mut self) {
        self.runs.push(BlockQueue::new());
    }

    /// Appends a block to the last run; it takes `memory_len` bytes while it is merged.
    pub(super) fn append(&mut self, block: Vec<u8>, memory_len: usize) -> Result<(), SpillError> {
        let place = if self.held + block.len() <= self.held_limit {
            self.held += block.len();
            BlockPlace::Memory(block)
        } else {
            BlockPlace::File(Arc::clone(&self.file), self.file.append(&block)?)
        };
        self.append_place(place, memory_len);
        Ok(())
    }

    /// Appends a block that stays where it is.
    pub(super) fn append_place(&mut self, place: BlockPlace, memory_len: usize) {
        self.largest = self.largest.max(memory_len);
        if let Some(run) = self.runs.last_mut() {
            run.push_back(place);
        }
    }

    /// Bytes written to temporary files.
    pub(super) fn written_len(&self) -> u64 {
        self.written + self.file.written_len()
    }

    /// How many runs can be merged at a time within the limit.
    fn fan_in(&self) -> usize {
        (self.limit / 2 / self.largest).max(self.min_fan_in)
    }

    /// Merges runs until all that remain can be merged at a time. `merge` appends the blocks of some runs, merged, to the
    /// last of other runs.
    pub(super) fn reduce(
        mut self,
        merge: impl Fn(Vec<BlockQueue>, &mut HeldRuns) -> Result<(), SpillError>,
    ) -> Result<HeldRuns, SpillError> {
        while self.runs.len() > self.fan_in() {
            let fan_in = self.fan_in();
            let mut next = HeldRuns::new(self.limit, self.file.directory(), self.min_fan_in);
            // The blocks of this level leave memory only as they are merged, so those of the next level go to disk.
            (next.held_limit, next.largest, next.written) = (0, self.largest, self.written_len());
            let mut rest = std::mem::take(&mut self.runs).into_iter().peekable();
            while rest.peek().is_some() {
                next.begin_run();
                merge(rest.by_ref().take(fan_in).collect(), &mut next)?;
            }
            self = next;
        }
        Ok(self)
    }

    pub(super) fn take(&mut self) -> Vec<BlockQueue> {
        std::mem::take(&mut self.runs)
    }
}
