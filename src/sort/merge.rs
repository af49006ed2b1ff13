//! K-way merge of sorted runs: [`Merger`]. It only compares and picks rows; the caller gathers the picked rows, on any
//! thread. The rows alone determine where [`PickedRows`] end: at a limit, a part or a partition.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::row::OwnedRow;

use super::block::{BlockRow, PickedRows, SortSchema, SortedBlock};
use super::held_runs::BlockQueue;
use super::loser_tree::LoserTree;
use super::offset_code::OffsetCode;
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
        // A multiple of 3000, the lines of a full ZipNum member. Rows that reach `len` first end with a shorter member.
        MergeLimits { rows: 129_000, len: 16 << 20, part_rows: None }
    }
}

/// The first row of a run that was not picked yet.
#[derive(Debug)]
struct RunHead {
    block: Arc<SortedBlock>,
    row: usize,
    /// The code of the row relative to the last row that was picked, or to the row of another run that won against it since
    /// then; [`OffsetCode::NO_ROW`] after the last row.
    code: OffsetCode,
    /// The blocks after this one.
    blocks: BlockQueue,
    /// Index of the block among those of the rows that are being picked.
    picked_block: Option<usize>,
}

impl RunHead {
    /// The first row of a run; `None` if the run is empty.
    fn new(mut blocks: BlockQueue, schema: &SortSchema) -> Result<Option<RunHead>, SpillError> {
        let Some(block) = next_block(&mut blocks, schema, None)? else { return Ok(None) };
        let code = block.codes[0];
        Ok(Some(RunHead { block: Arc::new(block), row: 0, code, blocks, picked_block: None }))
    }

    /// Goes to the next row.
    fn advance(&mut self, schema: &SortSchema) -> Result<(), SpillError> {
        if self.row + 1 < self.block.codes.len() {
            self.row += 1;
        } else {
            self.picked_block = None;
            match next_block(&mut self.blocks, schema, Some((&self.block, self.row)))? {
                Some(block) => (self.block, self.row) = (Arc::new(block), 0),
                None => {
                    self.code = OffsetCode::NO_ROW;
                    return Ok(());
                }
            }
        }
        self.code = self.block.codes[self.row];
        Ok(())
    }
}

/// Returns whether the row of run `a` comes before that of run `b`. The codes of both are those after the same row. If the words
/// of the later row are compared, it gets its code after the earlier one.
fn wins(heads: &mut [RunHead], a: usize, b: usize) -> bool {
    let (one, other) = (&heads[a], &heads[b]);
    match one.code.cmp(&other.code) {
        Ordering::Equal => (),
        ordering => return ordering == Ordering::Less,
    }
    match one.code {
        OffsetCode::NO_ROW => return true,
        OffsetCode::EQUAL => return one.block.ordinals[one.row] < other.block.ordinals[other.row],
        _ => (),
    }
    let (ordering, code) = one.block.compare(one.row, (&other.block, other.row), one.code.shared_words());
    let is_first = ordering == Ordering::Less;
    heads[if is_first { b } else { a }].code = code;
    is_first
}

#[derive(Debug)]
pub(crate) struct Merger<'a> {
    schema: &'a SortSchema,
    heads: Vec<RunHead>,
    tree: LoserTree,
    limits: MergeLimits,
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
        runs: Vec<BlockQueue>,
        limits: MergeLimits,
    ) -> Result<Merger<'a>, SpillError> {
        let heads = runs.into_iter().filter_map(|run| RunHead::new(run, schema).transpose());
        let mut heads = heads.collect::<Result<Vec<_>, _>>()?;
        let tree = LoserTree::new(heads.len(), |a, b| wins(&mut heads, a, b));
        let (part_rows, full_part_key, last) = (0, None, None);
        Ok(Merger { schema, heads, tree, limits, partition: 0, part: 0, part_rows, full_part_key, last })
    }

    /// The head with the next row; `None` after the last row.
    fn head(&self) -> Option<&RunHead> {
        self.tree.winner().map(|run| &self.heads[run]).filter(|head| head.code != OffsetCode::NO_ROW)
    }

    /// Picks the next rows in order; `None` after the last.
    pub(crate) fn next_rows(&mut self) -> Result<Option<PickedRows>, SpillError> {
        self.heads.iter_mut().for_each(|head| head.picked_block = None);
        let mut picked = PickedRows { blocks: Vec::new(), picks: Vec::new(), partition: 0, part: 0 };
        let mut len = 0;
        while let Some(head) = self.head() {
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
        let (Some(head), Some((last, row))) = (self.head(), &self.last) else { return Ok(false) };
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
        let key = self.full_part_key.as_ref().zip(self.head());
        Ok(key.is_none_or(|(key, head)| !head.block.begins_with(head.row, key)))
    }

    /// Finds the partition and part of the next row.
    fn start_rows(&mut self) -> Result<(), SpillError> {
        let Some(head) = self.head() else { return Ok(()) };
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

    /// Picks the next row.
    fn pick(&mut self, picked: &mut PickedRows) -> Result<(), SpillError> {
        let Some(run) = self.tree.winner() else { return Ok(()) };
        let head = &mut self.heads[run];
        let block = *head.picked_block.get_or_insert_with(|| {
            picked.blocks.push(Arc::clone(&head.block));
            picked.blocks.len() - 1
        });
        picked.picks.push((block, head.row));
        self.part_rows += 1;
        match &mut self.last {
            Some((block, row)) if Arc::ptr_eq(block, &head.block) => *row = head.row,
            last => *last = Some((Arc::clone(&head.block), head.row)),
        }
        head.advance(self.schema)?;
        self.tree.replay(|a, b| wins(&mut self.heads, a, b));
        Ok(())
    }
}

fn next_block(
    blocks: &mut BlockQueue,
    schema: &SortSchema,
    before: Option<BlockRow<'_>>,
) -> Result<Option<SortedBlock>, SpillError> {
    let Some(place) = blocks.pop_front() else { return Ok(None) };
    let mut bytes = Vec::new();
    place.read(&mut bytes)?;
    Ok(Some(schema.decode(bytes, before)?))
}
