//! Sorted runs as blocks of bytes, in memory up to a limit and beyond it in a temporary file: [`HeldRuns`].

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use crate::spill::{FileRange, ScratchFile, SpillError};

/// Where the bytes of a block are.
#[derive(Debug)]
pub(super) enum BlockPlace {
    Memory(Vec<u8>),
    File(Arc<ScratchFile>, FileRange),
    /// In a file of an earlier job, with the XXH3-64 of the bytes. There may be more files than a process can open.
    RunFile(Arc<Path>, FileRange, u64),
}

/// The blocks of a run that were not read yet, in order.
pub(super) type BlockQueue = VecDeque<BlockPlace>;

/// Bytes of memory that a run takes besides its blocks: its queue, which may be in a vector of twice the length, and its first
/// row while it is merged.
const RUN_LEN: usize = 2 * size_of::<BlockQueue>() + 160;

impl BlockPlace {
    /// Bytes of the block.
    fn len(&self) -> u64 {
        match self {
            BlockPlace::Memory(held) => held.len() as u64,
            BlockPlace::File(_, range) | BlockPlace::RunFile(_, range, _) => range.len as u64,
        }
    }

    /// Replaces `bytes` by those of the block. Returns the file in which the block is, unless their hash was checked.
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
            BlockPlace::RunFile(path, range, hash) => {
                let file = ScratchFile::open(&path)?;
                file.read(range, bytes)?;
                if xxh3_64(bytes) != hash {
                    return Err(file.corrupt(&"the sorted rows are damaged; remove this file and start again"));
                }
                Ok(None)
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
        // Most runs of short row groups have one block.
        self.runs.push(BlockQueue::with_capacity(1));
        self.held += RUN_LEN;
    }

    /// Appends a block to the last run; it takes `memory_len` bytes while it is merged.
    pub(super) fn append(&mut self, block: Vec<u8>, memory_len: usize) -> Result<(), SpillError> {
        let len = block.len() + size_of::<BlockPlace>();
        let place = if self.held + len <= self.held_limit {
            self.held += len;
            BlockPlace::Memory(block)
        } else {
            BlockPlace::File(Arc::clone(&self.file), self.file.append(&block)?)
        };
        self.append_place(place, memory_len);
        Ok(())
    }

    /// Appends a block that stays where it is.
    pub(super) fn append_place(&mut self, place: BlockPlace, memory_len: usize) {
        self.largest = self.largest.max(memory_len + RUN_LEN);
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

    /// Merges runs until all that remain can be merged at a time: the smallest ones, and no more than necessary. Rows are not
    /// equal, or interchangeable, so the order of runs does not matter. `merge` appends the blocks of some runs, merged, to the
    /// last of other runs.
    pub(super) fn reduce(
        &mut self,
        merge: impl Fn(Vec<BlockQueue>, &mut HeldRuns) -> Result<(), SpillError>,
    ) -> Result<(), SpillError> {
        while self.runs.len() > self.fan_in() {
            let fan_in = self.fan_in();
            let mut next = HeldRuns::new(self.limit, self.file.directory(), self.min_fan_in);
            // Blocks leave memory only as they are merged, so the merged ones go to disk.
            (next.held_limit, next.largest, next.written) = (0, self.largest, self.written_len());
            let mut runs = std::mem::take(&mut self.runs);
            runs.sort_by_key(|run| run.iter().map(BlockPlace::len).sum::<u64>());
            let rest = runs.split_off(merged_count(runs.len(), fan_in));
            let mut runs = runs.into_iter().peekable();
            while runs.peek().is_some() {
                next.begin_run();
                merge(runs.by_ref().take(fan_in).collect(), &mut next)?;
            }
            next.runs.extend(rest);
            *self = next;
        }
        Ok(())
    }

    pub(super) fn take(&mut self) -> Vec<BlockQueue> {
        std::mem::take(&mut self.runs)
    }
}

/// How many of `count` runs are merged, `fan_in` at a time, so that a power of `fan_in` runs remains: the greatest one that is
/// less than `count`.
fn merged_count(count: usize, fan_in: usize) -> usize {
    let mut rest = fan_in;
    while let Some(more) = rest.checked_mul(fan_in).filter(|more| *more < count) {
        rest = more;
    }
    let removed = count.saturating_sub(rest);
    // A merge of `fan_in` runs leaves one of them.
    removed + removed.div_ceil(fan_in - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Merges runs whose block is a number: the merged run has the sum as its length. Returns the lengths of all runs in the
    /// end, and the bytes that merges wrote.
    fn reduced(lens: &[usize], fan_in: usize) -> (Vec<usize>, usize) {
        let directory = tempfile::tempdir().unwrap();
        // Memory for nothing, so that the fan-in is the minimum.
        let mut runs = HeldRuns::new(0, directory.path(), fan_in);
        for len in lens {
            runs.begin_run();
            runs.append(vec![0; *len], 1).unwrap();
        }
        let len_of = |run: &BlockQueue| run.iter().map(BlockPlace::len).sum::<u64>() as usize;
        let before = runs.written_len();
        let merge = |runs: Vec<BlockQueue>, merged: &mut HeldRuns| {
            assert!(runs.len() > 1 && runs.len() <= fan_in);
            merged.append(vec![0; runs.iter().map(len_of).sum()], 1)
        };
        runs.reduce(merge).unwrap();
        let written = (runs.written_len() - before) as usize;
        (runs.take().iter().map(len_of).collect(), written)
    }

    /// Only as many runs are merged as necessary, and the smallest ones.
    #[test]
    fn one_run_too_many_merges_two() {
        let (mut lens, written) = reduced(&[500, 3, 400, 2, 300], 4);
        lens.sort_unstable();
        assert_eq!((&lens[..], written), (&[5, 300, 400, 500][..], 5));
        assert_eq!(reduced(&[7, 8], 2), (vec![7, 8], 0));
    }

    /// For every number of runs, no more bytes are written than if each level merged all of them, and nothing is lost.
    #[test]
    fn merges_write_no_more_than_whole_levels() {
        for (fan_in, count) in [2, 3, 8].into_iter().flat_map(|fan_in| (1..100).map(move |count| (fan_in, count))) {
            let (lens, written) = reduced(&vec![1; count], fan_in);
            assert_eq!(lens.iter().sum::<usize>(), count);
            assert!(lens.len() <= fan_in);
            let mut levels = 0;
            while count > fan_in.pow(levels + 1) {
                levels += 1;
            }
            assert!(written <= count * levels as usize, "{fan_in} {count}: {written}");
        }
    }
}
