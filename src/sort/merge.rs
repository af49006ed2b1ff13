//! Runs in, groups of rows out, in order: [`Merger`]. It compares and picks; what it picks is gathered by whoever has
//! time. A group ends where its limits, a part or a partition end, which rows alone decide.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::Shape;
use super::block::Block;
use super::runs::Cursor;
use crate::dedup::SpillError;

/// Where groups and parts end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most rows of a group.
    pub group_rows: usize,
    /// About the most bytes of a group's texts; a group of one row may have more.
    pub group_len: usize,
    /// Rows after which a part ends, once the first column of the order changes; no parts if there are none.
    pub part_rows: Option<u64>,
}

impl Limits {
    /// Of rows that are only packed again.
    pub(super) const OF_BLOCKS: Limits = Limits { group_rows: 8192, group_len: 1 << 20, part_rows: None };
}

impl Default for Limits {
    fn default() -> Limits {
        // Whole members of zipnum, 3000 lines each.
        Limits { group_rows: 129_000, group_len: 16 << 20, part_rows: None }
    }
}

/// Rows that follow each other.
#[derive(Debug)]
pub struct Group {
    pub(super) blocks: Vec<Arc<Block>>,
    /// Places in `blocks`, and rows there.
    pub(super) picks: Vec<(usize, usize)>,
    /// The partition that they belong to; 0 if there are none.
    pub partition: u32,
    /// The part of that partition, from 0.
    pub part: u32,
}

impl Group {
    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.picks.len()
    }
}

/// The earliest row of a run that was not picked yet.
#[derive(Debug)]
struct Head {
    block: Arc<Block>,
    row: usize,
    run: usize,
}

impl Ord for Head {
    /// Reversed: the heap gives the greatest.
    fn cmp(&self, other: &Head) -> Ordering {
        other.block.compare(other.row, &self.block, self.row)
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

/// A merge under way.
#[derive(Debug)]
pub struct Merger<'a> {
    shape: &'a Shape,
    cursors: Vec<Cursor>,
    heap: BinaryHeap<Head>,
    limits: Limits,
    /// Place of each run's block in the group that is being picked.
    slots: Vec<Option<usize>>,
    partition: u32,
    part: u32,
    part_rows: u64,
    last: Option<(Arc<Block>, usize)>,
}

impl<'a> Merger<'a> {
    pub(super) fn of(shape: &'a Shape, mut cursors: Vec<Cursor>, limits: Limits) -> Result<Merger<'a>, SpillError> {
        let mut heap = BinaryHeap::with_capacity(cursors.len());
        for (run, cursor) in cursors.iter_mut().enumerate() {
            if let Some(block) = cursor.next_block(shape)? {
                heap.push(Head { block: Arc::new(block), row: 0, run });
            }
        }
        let slots = vec![None; cursors.len()];
        Ok(Merger { shape, cursors, heap, limits, slots, partition: 0, part: 0, part_rows: 0, last: None })
    }

    /// The next rows in order; `None` if there are no more.
    ///
    /// # Errors
    /// The temporary file could not be read.
    pub fn next_group(&mut self) -> Result<Option<Group>, SpillError> {
        self.slots.iter_mut().for_each(|slot| *slot = None);
        let mut group = Group { blocks: Vec::new(), picks: Vec::new(), partition: 0, part: 0 };
        let mut len = 0;
        while let Some(head) = self.heap.peek() {
            let (row_len, is_first) = (head.block.lens[head.row] as usize, group.picks.is_empty());
            let is_full = group.picks.len() == self.limits.group_rows || len + row_len > self.limits.group_len;
            if !is_first && (is_full || self.ends_part()?) {
                break;
            }
            if is_first {
                self.begin()?;
                (group.partition, group.part) = (self.partition, self.part);
            }
            len += row_len;
            self.pick(&mut group)?;
        }
        Ok((!group.picks.is_empty()).then_some(group))
    }

    /// The next row stands in another partition or part than the last one.
    fn ends_part(&self) -> Result<bool, SpillError> {
        let (Some(head), Some((last, row))) = (self.heap.peek(), &self.last) else { return Ok(false) };
        if place(&head.block, head.row) != place(last, *row) {
            return Ok(true);
        }
        if self.limits.part_rows.is_none_or(|rows| self.part_rows < rows) {
            return Ok(false);
        }
        Ok(self.shape.first_key(&head.block, head.row)? != self.shape.first_key(last, *row)?)
    }

    /// A group begins: in the same part as the one before it, or in the next one.
    fn begin(&mut self) -> Result<(), SpillError> {
        let Some(head) = self.heap.peek() else { return Ok(()) };
        let partition = place(&head.block, head.row);
        let is_other = self.last.is_none() || partition != self.partition;
        if is_other {
            (self.partition, self.part, self.part_rows) = (partition, 0, 0);
        } else if self.ends_part()? {
            (self.part, self.part_rows) = (self.part + 1, 0);
        }
        Ok(())
    }

    /// Takes the earliest row.
    fn pick(&mut self, group: &mut Group) -> Result<(), SpillError> {
        let Some(mut head) = self.heap.peek_mut() else { return Ok(()) };
        let slot = *self.slots[head.run].get_or_insert_with(|| {
            group.blocks.push(Arc::clone(&head.block));
            group.blocks.len() - 1
        });
        group.picks.push((slot, head.row));
        self.part_rows += 1;
        match &mut self.last {
            Some((block, row)) if Arc::ptr_eq(block, &head.block) => *row = head.row,
            last => *last = Some((Arc::clone(&head.block), head.row)),
        }
        if head.row + 1 < head.block.lens.len() {
            head.row += 1;
            return Ok(());
        }
        self.slots[head.run] = None;
        match self.cursors[head.run].next_block(self.shape)? {
            Some(block) => (head.block, head.row) = (Arc::new(block), 0),
            None => drop(std::collections::binary_heap::PeekMut::pop(head)),
        }
        Ok(())
    }
}

fn place(block: &Block, row: usize) -> u32 {
    block.partitions.as_ref().map_or(0, |places| places[row])
}
