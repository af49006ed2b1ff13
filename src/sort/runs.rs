//! Sorted runs, in memory up to a limit and past it in a file without a name: [`Runs`]. In: packed blocks. Out: cursors
//! for a merge; where there are more runs than memory has room for, they are merged to fewer first.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use super::block::Block;
use super::kept;
use super::merge::{Limits, Merger};
use super::{Packed, Shape};
use crate::dedup::{Scratch, SpillError};

/// Runs of one level of merges.
#[derive(Debug)]
pub struct Runs {
    runs: Vec<Run>,
    file: Arc<Scratch>,
    /// Bytes of memory for blocks and merges together.
    limit: usize,
    /// Bytes of blocks that may be held in memory.
    held_limit: usize,
    held: usize,
    rows: u64,
    /// What the largest block takes when it is unpacked.
    largest: usize,
    /// Bytes that went to files of earlier levels.
    written: u64,
}

/// Blocks in order.
#[derive(Debug, Default)]
struct Run(VecDeque<Place>);

#[derive(Debug)]
enum Place {
    Memory(Vec<u8>),
    File { file: Arc<Scratch>, offset: u64, len: usize },
}

/// Where a merge stands in a run.
#[derive(Debug)]
pub(super) struct Cursor {
    run: Run,
}

impl Runs {
    /// No runs yet; they take about `limit` bytes of memory, and otherwise room in `directory`.
    pub fn new(limit: usize, directory: &Path) -> Runs {
        Runs {
            runs: Vec::new(),
            file: Arc::new(Scratch::new(directory)),
            limit,
            held_limit: limit / 2,
            held: 0,
            rows: 0,
            largest: 1,
            written: 0,
        }
    }

    /// Adds a run.
    ///
    /// # Errors
    /// The temporary file could not be written.
    pub fn add(&mut self, blocks: Vec<Packed>) -> Result<(), SpillError> {
        self.runs.push(Run::default());
        self.extend(blocks)
    }

    /// Adds blocks to the last run.
    fn extend(&mut self, blocks: Vec<Packed>) -> Result<(), SpillError> {
        for Packed { bytes, rows, memory_len } in blocks {
            self.rows += rows as u64;
            self.largest = self.largest.max(memory_len);
            let place = if self.held + bytes.len() <= self.held_limit {
                self.held += bytes.len();
                Place::Memory(bytes)
            } else {
                Place::File { file: Arc::clone(&self.file), offset: self.file.append(&bytes)?, len: bytes.len() }
            };
            if let Some(run) = self.runs.last_mut() {
                run.0.push_back(place);
            }
        }
        Ok(())
    }

    /// Adds the runs that a file keeps; they stay there.
    ///
    /// # Errors
    /// It cannot be read, or is not what [`super::KeptRuns`] wrote.
    pub fn add_kept(&mut self, path: &Path) -> Result<(), SpillError> {
        let file = Arc::new(Scratch::open(path)?);
        let mut last = None;
        for kept::Entry { run, offset, len, rows, memory_len } in kept::entries(&file)? {
            if last != Some(run) {
                self.runs.push(Run::default());
                last = Some(run);
            }
            self.rows += rows;
            self.largest = self.largest.max(memory_len as usize);
            if let Some(run) = self.runs.last_mut() {
                run.0.push_back(Place::File { file: Arc::clone(&file), offset, len: len as usize });
            }
        }
        Ok(())
    }

    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// There are no runs.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Bytes that went to temporary files.
    pub fn written(&self) -> u64 {
        self.written + self.file.written()
    }

    /// How many runs a merge has memory for.
    fn fan_in(&self) -> usize {
        (self.limit / 2 / self.largest).max(2)
    }

    /// Merges runs until there are no more than a merge has memory for.
    ///
    /// # Errors
    /// A temporary file could not be read or written.
    pub fn reduce(mut self, shape: &Shape) -> Result<Runs, SpillError> {
        while self.runs.len() > self.fan_in() {
            // What this level holds in memory goes as it is merged; the next one has to stay out of its way.
            let mut next = Runs { held_limit: 0, ..Runs::new(self.limit, self.file.directory()) };
            (next.largest, next.written) = (self.largest, self.written());
            let (fan_in, mut rest) = (self.fan_in(), std::mem::take(&mut self.runs).into_iter());
            loop {
                let some: Vec<Run> = rest.by_ref().take(fan_in).collect();
                if some.is_empty() {
                    break;
                }
                next.runs.push(Run::default());
                let mut merger = Merger::of(shape, cursors(some), Limits::OF_BLOCKS)?;
                while let Some(group) = merger.next_group()? {
                    next.extend(shape.pack(&shape.gather_flat(&group)?)?)?;
                }
            }
            self = next;
        }
        Ok(self)
    }

    /// A merge of all runs.
    ///
    /// # Errors
    /// The temporary file could not be read.
    pub fn merger<'a>(&'a mut self, shape: &'a Shape, limits: Limits) -> Result<Merger<'a>, SpillError> {
        let runs = std::mem::take(&mut self.runs);
        Merger::of(shape, cursors(runs), limits)
    }
}

fn cursors(runs: Vec<Run>) -> Vec<Cursor> {
    runs.into_iter().map(|run| Cursor { run }).collect()
}

impl Cursor {
    /// The next block, whose memory is the caller's from now on.
    pub(super) fn next_block(&mut self, shape: &Shape) -> Result<Option<Block>, SpillError> {
        let bytes = match self.run.0.pop_front() {
            None => return Ok(None),
            Some(Place::Memory(bytes)) => bytes,
            Some(Place::File { file, offset, len }) => {
                let mut bytes = Vec::new();
                file.read(offset, len, &mut bytes)?;
                bytes
            }
        };
        Ok(Some(shape.unpack(&bytes)?))
    }
}
