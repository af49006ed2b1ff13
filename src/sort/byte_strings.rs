//! External sort of byte strings: [`BytesSorter`]. Records of equal bytes are interchangeable, so the result does not depend on
//! the order in which they come, on threads or on memory.
//!
//! ```text
//! records --BytesBuffer::take_run--> BytesRun: sorted and front-coded
//!     --BytesRuns--> memory, and beyond its limit a temporary file --BytesMerger--> all records in order
//! ```
//!
//! Sorted URLs share long prefixes. A run stores each record as the length of the prefix that it shares with the record before,
//! and the rest. The merge compares these lengths first and bytes only where they are equal (a tournament tree with common
//! prefixes), so that most comparisons are comparisons of two numbers.

use std::path::Path;
use std::sync::Arc;

use arrow::error::ArrowError;

use super::held_runs::{BlockQueue, HeldRuns};
use super::loser_tree::LoserTree;
use super::prefix::sort_by_text;
use crate::kernel::{common_prefix_len, push_varint, read_varint};
use crate::spill::{ScratchFile, SpillError};

/// About the most bytes of a block of a run; it has at least one record.
const BLOCK_LEN: usize = 16 << 10;

/// Minimum number of runs that are merged at a time.
const MIN_FAN_IN: usize = 8;

/// Records that are not sorted yet.
#[derive(Debug, Default)]
pub(crate) struct BytesBuffer {
    texts: Vec<u8>,
    /// Where each record begins.
    starts: Vec<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct BytesRun {
    blocks: Vec<Vec<u8>>,
}

impl BytesBuffer {
    /// Adds a record that `write` appends to the bytes it is given.
    pub(crate) fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.starts.push(self.texts.len());
        write(&mut self.texts);
    }

    /// Estimated bytes of memory of the records while they are sorted.
    fn memory_len(&self) -> usize {
        self.texts.len() + self.starts.len() * 40
    }

    /// Sorts the records and removes them from the buffer.
    pub(crate) fn take_run(&mut self) -> BytesRun {
        let record_at = |place: u32| {
            let end = self.starts.get(place as usize + 1).copied().unwrap_or(self.texts.len());
            &self.texts[self.starts[place as usize]..end]
        };
        let mut places: Vec<u32> = (0..self.starts.len() as u32).collect();
        sort_by_text(&mut places, record_at);
        let (mut encoder, mut last) = (RunEncoder::default(), &b""[..]);
        for record in places.into_iter().map(record_at) {
            encoder.push(record, common_prefix_len(last, record));
            last = record;
        }
        let run = encoder.finish();
        self.texts.clear();
        self.starts.clear();
        run
    }
}

#[derive(Debug, Default)]
struct RunEncoder {
    run: BytesRun,
    block: Vec<u8>,
}

impl RunEncoder {
    /// Adds a record that shares a prefix of `shared` bytes with the one before.
    fn push(&mut self, record: &[u8], shared: usize) {
        let rest = &record[shared..];
        push_varint(shared as u64, &mut self.block);
        push_varint(rest.len() as u64, &mut self.block);
        self.block.extend_from_slice(rest);
        if self.block.len() >= BLOCK_LEN {
            // A copy takes no more memory than its length.
            self.run.blocks.push(self.block.clone());
            self.block.clear();
        }
    }

    fn finish(mut self) -> BytesRun {
        if !self.block.is_empty() {
            self.block.shrink_to_fit();
            self.run.blocks.push(self.block);
        }
        self.run
    }
}

#[derive(Debug)]
pub(crate) struct BytesRuns(HeldRuns);

impl BytesRuns {
    /// No runs. They take about `limit` bytes of memory, and the rest is in a temporary file in `directory`.
    pub(crate) fn new(limit: usize, directory: &Path) -> BytesRuns {
        BytesRuns(HeldRuns::new(limit, directory, MIN_FAN_IN))
    }

    pub(crate) fn add(&mut self, run: BytesRun) -> Result<(), SpillError> {
        if !run.blocks.is_empty() {
            self.0.begin_run();
        }
        append(&mut self.0, run.blocks)
    }

    /// Bytes written to temporary files.
    pub(crate) fn written_len(&self) -> u64 {
        self.0.written_len()
    }

    /// Merges runs until all that remain can be merged at a time.
    pub(crate) fn reduce(&mut self) -> Result<(), SpillError> {
        self.0.reduce(|runs, merged| {
            let (mut merger, mut encoder) = (BytesMerger::new(runs)?, RunEncoder::default());
            while let Some(shared) = merger.advance()? {
                encoder.push(merger.record(), shared);
                append(merged, encoder.run.blocks.drain(..))?;
            }
            append(merged, encoder.finish().blocks)
        })
    }

    pub(crate) fn merger(mut self) -> Result<BytesMerger, SpillError> {
        self.reduce()?;
        BytesMerger::new(self.0.take())
    }
}

/// Appends blocks to the last run.
fn append(runs: &mut HeldRuns, blocks: impl IntoIterator<Item = Vec<u8>>) -> Result<(), SpillError> {
    blocks.into_iter().try_for_each(|block| {
        // A run that is merged holds a block and a record.
        let memory_len = 2 * block.len();
        runs.append(block, memory_len)
    })
}

/// The first record of a run that was not returned yet.
#[derive(Debug, Default)]
struct BytesHead {
    record: Vec<u8>,
    /// Bytes that the record shares with the record that won against it; of the winner, with the record returned before.
    shared: usize,
    blocks: BlockQueue,
    block: Vec<u8>,
    at: usize,
    file: Option<Arc<ScratchFile>>,
    is_done: bool,
}

impl BytesHead {
    /// Reads the next record.
    fn advance(&mut self) -> Result<(), SpillError> {
        if self.at == self.block.len() {
            self.at = 0;
            let Some(place) = self.blocks.pop_front() else {
                self.is_done = true;
                self.block = Vec::new();
                return Ok(());
            };
            self.file = place.read(&mut self.block)?;
        }
        self.decode().ok_or_else(|| damaged(self.file.as_deref()))
    }

    fn decode(&mut self) -> Option<()> {
        let (shared, bytes) = read_varint(&self.block[self.at..])?;
        let (len, bytes) = read_varint(bytes)?;
        let shared = usize::try_from(shared).ok().filter(|shared| *shared <= self.record.len())?;
        let (rest, after) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
        self.record.truncate(shared);
        self.record.extend_from_slice(rest);
        self.shared = shared;
        self.at = self.block.len() - after.len();
        Some(())
    }
}

fn damaged(file: Option<&ScratchFile>) -> SpillError {
    const REASON: &str = "a sorted record is damaged";
    file.map_or_else(|| SpillError::Arrow(ArrowError::SchemaError(REASON.to_string())), |file| file.corrupt(&REASON))
}

/// A merge in progress.
#[derive(Debug)]
pub(crate) struct BytesMerger {
    heads: Vec<BytesHead>,
    tree: LoserTree,
    is_started: bool,
}

impl BytesMerger {
    fn new(runs: Vec<BlockQueue>) -> Result<BytesMerger, SpillError> {
        let mut heads: Vec<BytesHead> =
            runs.into_iter().map(|blocks| BytesHead { blocks, ..BytesHead::default() }).collect();
        heads.iter_mut().try_for_each(BytesHead::advance)?;
        let tree = LoserTree::new(heads.len(), |a, b| wins(&mut heads, a, b));
        Ok(BytesMerger { heads, tree, is_started: false })
    }

    pub(crate) fn next_record(&mut self) -> Result<Option<&[u8]>, SpillError> {
        Ok(self.advance()?.map(|_| self.record()))
    }

    /// Goes to the next record, and returns how many bytes it shares with the one before.
    pub(crate) fn advance(&mut self) -> Result<Option<usize>, SpillError> {
        let Some(last) = self.tree.winner() else { return Ok(None) };
        if std::mem::replace(&mut self.is_started, true) {
            self.heads[last].advance()?;
            self.tree.replay(|a, b| wins(&mut self.heads, a, b));
        }
        let head = self.tree.winner().map(|run| &self.heads[run]);
        Ok(head.filter(|head| !head.is_done).map(|head| head.shared))
    }

    pub(crate) fn record(&self) -> &[u8] {
        self.tree.winner().map_or(b"", |run| &self.heads[run].record)
    }

    /// The error for a record that its owner cannot read.
    pub(crate) fn damaged(&self) -> SpillError {
        damaged(self.tree.winner().and_then(|run| self.heads[run].file.as_deref()))
    }
}

/// Returns whether the record of run `a` comes before that of run `b`. For each, the length is known that it shares with the
/// record that was returned last. No record is less than that one, so the one that shares more with it is less. Only records
/// that share the same length with it are compared, from there on.
fn wins(heads: &mut [BytesHead], a: usize, b: usize) -> bool {
    let (one, other) = (&heads[a], &heads[b]);
    if one.is_done || other.is_done {
        return other.is_done;
    }
    if one.shared != other.shared {
        return one.shared > other.shared;
    }
    let shared = one.shared;
    let common = shared + common_prefix_len(&one.record[shared..], &other.record[shared..]);
    let is_first = one.record[common..] <= other.record[common..];
    heads[if is_first { b } else { a }].shared = common;
    is_first
}

#[derive(Debug)]
pub(crate) struct BytesSorter {
    buffer: BytesBuffer,
    runs: BytesRuns,
}

impl BytesSorter {
    /// No records. They take about `limit` bytes of memory, and the rest is in a temporary file in `directory`.
    pub(crate) fn new(limit: usize, directory: &Path) -> BytesSorter {
        BytesSorter { buffer: BytesBuffer::default(), runs: BytesRuns::new(limit / 2, directory) }
    }

    pub(crate) fn push(&mut self, record: &[u8]) -> Result<(), SpillError> {
        self.buffer.push_with(|texts| texts.extend_from_slice(record));
        if self.buffer.memory_len() > self.runs.0.limit / 2 { self.end_run() } else { Ok(()) }
    }

    fn end_run(&mut self) -> Result<(), SpillError> {
        let run = self.buffer.take_run();
        self.runs.add(run)
    }

    /// Starts reading the records in order.
    pub(crate) fn sorted(mut self) -> Result<BytesMerger, SpillError> {
        self.end_run()?;
        self.buffer = BytesBuffer::default();
        self.runs.merger()
    }
}

#[cfg(test)]
mod tests {
    use super::super::held_runs::BlockPlace;
    use super::*;

    /// Texts with long common prefixes, duplicates and prefixes of each other.
    fn texts() -> Vec<Vec<u8>> {
        let text = |i: u64| {
            let hash = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut text = b"com\x01example".repeat(1 + (hash >> 60) as usize % 3);
            text.extend((0..hash >> 58).map(|at| b"ab\0\xff"[(hash >> (at % 50)) as usize % 4]));
            text
        };
        (0..5000).map(text).chain([vec![b'x'; 100_000], vec![b'x'; 100_001], Vec::new()]).collect()
    }

    #[test]
    fn records_are_sorted_within_any_limit() {
        let directory = tempfile::tempdir().unwrap();
        let mut expected = texts();
        expected.sort();
        for limit in [1 << 10, 64 << 10, 64 << 20] {
            let mut sorter = BytesSorter::new(limit, directory.path());
            texts().iter().for_each(|text| sorter.push(text).unwrap());
            let (mut sorted, mut found) = (sorter.sorted().unwrap(), Vec::new());
            while let Some(record) = sorted.next_record().unwrap() {
                found.push(record.to_vec());
            }
            assert!(found == expected, "{limit}");
            assert!(sorted.next_record().unwrap().is_none());
        }
        let empty = BytesSorter::new(1 << 20, directory.path());
        assert!(empty.sorted().unwrap().next_record().unwrap().is_none());
    }

    /// Otherwise runs in memory would take more than their blocks count for.
    #[test]
    fn blocks_take_no_more_memory_than_their_length() {
        let mut buffer = BytesBuffer::default();
        texts().iter().for_each(|text| buffer.push_with(|bytes| bytes.extend(text)));
        let blocks = buffer.take_run().blocks;
        assert!(blocks.len() > 2 && blocks.iter().all(|block| block.capacity() == block.len()));
    }

    #[test]
    fn damaged_blocks_are_errors() {
        let mut buffer = BytesBuffer::default();
        buffer.push_with(|bytes| bytes.extend(b"abc"));
        let whole = buffer.take_run().blocks.remove(0);
        let read = |block: &[u8]| {
            let runs = vec![BlockQueue::from([BlockPlace::Memory(block.to_vec())])];
            BytesMerger::new(runs).and_then(|mut merger| Ok(merger.next_record()?.map(<[u8]>::to_vec)))
        };
        assert_eq!(read(&whole).unwrap().unwrap(), b"abc");
        assert!((1..whole.len()).all(|len| read(&whole[..len]).is_err()));
        assert!(read(b"\x01\x00").is_err() && read(&[0xff; 30]).is_err());
    }
}
