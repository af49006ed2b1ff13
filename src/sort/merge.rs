//! K-way merge of sorted runs: [`Merger`]. It only compares and picks rows; the caller gathers the picked rows, on any
//! thread. The rows alone determine where [`PickedRows`] end: at a limit, a part or a partition.

use std::cmp::Ordering;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::sync::Arc;

use arrow::row::OwnedRow;

use super::block::{PickedRows, SortSchema, SortedBlock};
use super::held_runs::BlockQueue;
use crate::spill::SpillError;

/// Where picked rows and parts end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MergeLimits {
    /// Maximum number of rows picked at a time.
    pub(crate) rows: usize,
    /// About the most bytes of texts picked at a time; a single row may have more.
    pub(crate) len: usize,
    /// Rows after which a part ends as soon as the first column of the order changes, or at once if there is no order; `None`
    /// for a single part.
    pub(crate) part_rows: Option<u64>,
}

impl MergeLimits {
    /// Limits for rows that are only encoded as blocks again.
    pub(super) const INTERMEDIATE: MergeLimits = MergeLimits { rows: 8192, len: 1 << 20, part_rows: None };
}

impl Default for MergeLimits {
    fn default() -> MergeLimits {
        // A multiple of 3000: the lines of a ZipNum member.
        MergeLimits { rows: 129_000, len: 16 << 20, part_rows: None }
    }
}

/// The first row of a run that was not picked yet.
#[derive(Debug)]
struct RunHead {
    block: Arc<SortedBlock>,
    row: usize,
    run: usize,
}

impl Ord for RunHead {
    /// Reversed, because the heap gives the greatest element.
    fn cmp(&self, other: &RunHead) -> Ordering {
        other.block.compare(other.row, &self.block, self.row)
    }
}

impl PartialOrd for RunHead {
    fn partial_cmp(&self, other: &RunHead) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunHead {
    fn eq(&self, other: &RunHead) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for RunHead {}

#[derive(Debug)]
pub(crate) struct Merger<'a> {
    schema: &'a SortSchema,
    runs: Vec<BlockQueue>,
    heap: BinaryHeap<RunHead>,
    limits: MergeLimits,
    /// Index of each run's block among the blocks of the rows that are being picked.
    picked_blocks: Vec<Option<usize>>,
    partition: u32,
    part: u32,
    part_rows: u64,
    /// The value of the rows of a full part in the first column of the order; the part ends before another one.
    full_part_key: Option<OwnedRow>,
    last: Option<(Arc<SortedBlock>, usize)>,
}

impl<'a> Merger<'a> {
    pub(super) fn new(
        schema: &'a SortSchema,
        mut runs: Vec<BlockQueue>,
        limits: MergeLimits,
    ) -> Result<Merger<'a>, SpillError> {
        let mut heap = BinaryHeap::with_capacity(runs.len());
        for (run, queue) in runs.iter_mut().enumerate() {
            if let Some(block) = next_block(queue, schema)? {
                heap.push(RunHead { block: Arc::new(block), row: 0, run });
            }
        }
        let picked_blocks = vec![None; runs.len()];
        let (part_rows, full_part_key, last) = (0, None, None);
        Ok(Merger { schema, runs, heap, limits, picked_blocks, partition: 0, part: 0, part_rows, full_part_key, last })
    }

    /// Picks the next rows in order; `None` after the last.
    pub(crate) fn next_rows(&mut self) -> Result<Option<PickedRows>, SpillError> {
        self.picked_blocks.fill(None);
        let mut picked = PickedRows { blocks: Vec::new(), picks: Vec::new(), partition: 0, part: 0 };
        let mut len = 0;
        while let Some(head) = self.heap.peek() {
            let (row_len, is_first) = (head.block.row_lens[head.row] as usize, picked.picks.is_empty());
            let is_full = picked.picks.len() == self.limits.rows || len + row_len > self.limits.len;
            if !is_first && (is_full || self.is_part_end()?) {
                break;
            }
            if is_first {
                self.start_rows()?;
                (picked.partition, picked.part) = (self.partition, self.part);
            }
            len += row_len;
            self.pick(&mut picked)?;
        }
        Ok((!picked.picks.is_empty()).then_some(picked))
    }

    /// The next row is in another partition or part than the last one.
    fn is_part_end(&mut self) -> Result<bool, SpillError> {
        let (Some(head), Some((last, row))) = (self.heap.peek(), &self.last) else { return Ok(false) };
        if head.block.partition(head.row) != last.partition(*row) {
            return Ok(true);
        }
        if self.limits.part_rows.is_none_or(|rows| self.part_rows < rows) {
            return Ok(false);
        }
        if self.full_part_key.is_none() {
            self.full_part_key = self.schema.first_key(last, *row)?;
        }
        // Without an order, rows share nothing.
        Ok(self.full_part_key.as_ref().is_none_or(|key| !head.block.begins_with(head.row, key)))
    }

    /// Finds the partition and part of the next row.
    fn start_rows(&mut self) -> Result<(), SpillError> {
        let Some(head) = self.heap.peek() else { return Ok(()) };
        let partition = head.block.partition(head.row);
        if self.last.is_none() || partition != self.partition {
            (self.partition, self.part, self.part_rows) = (partition, 0, 0);
        } else if self.is_part_end()? {
            (self.part, self.part_rows) = (self.part + 1, 0);
        } else {
            return Ok(());
        }
        self.full_part_key = None;
        Ok(())
    }

    /// Picks the first row of the heap.
    fn pick(&mut self, picked: &mut PickedRows) -> Result<(), SpillError> {
        let Some(mut head) = self.heap.peek_mut() else { return Ok(()) };
        let block = *self.picked_blocks[head.run].get_or_insert_with(|| {
            picked.blocks.push(Arc::clone(&head.block));
            picked.blocks.len() - 1
        });
        picked.picks.push((block, head.row));
        self.part_rows += 1;
        match &mut self.last {
            Some((block, row)) if Arc::ptr_eq(block, &head.block) => *row = head.row,
            last => *last = Some((Arc::clone(&head.block), head.row)),
        }
        if head.row + 1 < head.block.row_lens.len() {
            head.row += 1;
            return Ok(());
        }
        self.picked_blocks[head.run] = None;
        match next_block(&mut self.runs[head.run], self.schema)? {
            Some(block) => (head.block, head.row) = (Arc::new(block), 0),
            None => drop(PeekMut::pop(head)),
        }
        Ok(())
    }
}

fn next_block(blocks: &mut BlockQueue, schema: &SortSchema) -> Result<Option<SortedBlock>, SpillError> {
    let Some(place) = blocks.pop_front() else { return Ok(None) };
    let mut bytes = Vec::new();
    place.read(&mut bytes)?;
    Ok(Some(schema.decode(bytes)?))
}
