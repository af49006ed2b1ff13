//! The numbers of lines of a mapped text: [`LineCounts`]. One worker cuts at a time, and row groups may depend on how many lines
//! a text has. So workers count the lines of later text before it is cut, and the one that cuts only adds numbers.

use crate::input::mmap::MappedFile;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Length of a block.
const BLOCK_LEN: usize = 256 << 10;

/// Bytes that are read at a time. They stay in the cache, and no pages of the file are mapped into memory.
const COPY_LEN: usize = 32 << 10;

/// The number of line ends of each block of a mapped file, as far as they were counted.
#[derive(Debug)]
pub(super) struct LineCounts {
    mapping: Arc<MappedFile>,
    /// [`UNKNOWN`] until the block is counted.
    blocks: Vec<AtomicU32>,
    /// The block that is counted next.
    next: AtomicUsize,
}

/// More than a block can have.
const UNKNOWN: u32 = u32::MAX;

impl LineCounts {
    /// No block is counted yet.
    pub(super) fn new(mapping: &Arc<MappedFile>) -> LineCounts {
        let blocks = (0..mapping.len() / BLOCK_LEN).map(|_| AtomicU32::new(UNKNOWN)).collect();
        LineCounts { mapping: Arc::clone(mapping), blocks, next: AtomicUsize::new(0) }
    }

    /// Counts the lines of as many bytes as `cut` has, of those after it that no other call has counted.
    pub(super) fn count_ahead(&self, cut: Range<usize>) {
        self.next.fetch_max(cut.end / BLOCK_LEN, Ordering::Relaxed);
        for _ in 0..cut.len().div_ceil(BLOCK_LEN) {
            let block = self.next.fetch_add(1, Ordering::Relaxed);
            if block >= self.blocks.len() {
                return;
            }
            self.of_block(block);
        }
    }

    /// The number of line ends in `range`.
    pub(super) fn of(&self, range: Range<usize>) -> usize {
        let whole = range.start.div_ceil(BLOCK_LEN)..range.end / BLOCK_LEN;
        if whole.is_empty() {
            return self.count(range);
        }
        let before = self.count(range.start..whole.start * BLOCK_LEN);
        let after = self.count(whole.end * BLOCK_LEN..range.end);
        before + whole.map(|block| self.of_block(block)).sum::<usize>() + after
    }

    /// The number of line ends of a block, which is counted if it was not.
    fn of_block(&self, block: usize) -> usize {
        let known = self.blocks[block].load(Ordering::Relaxed);
        if known != UNKNOWN {
            return known as usize;
        }
        let count = self.count(block * BLOCK_LEN..(block + 1) * BLOCK_LEN);
        self.blocks[block].store(count as u32, Ordering::Relaxed);
        count
    }

    /// Reads `range` and counts its line ends.
    fn count(&self, range: Range<usize>) -> usize {
        let mut copy = [0; COPY_LEN];
        let parts = range.clone().step_by(COPY_LEN).map(|at| {
            let copy = &mut copy[..COPY_LEN.min(range.end - at)];
            self.mapping.copy_at(at, copy);
            count_lines(copy)
        });
        parts.sum()
    }
}

/// The number of line ends of a text.
pub(super) fn count_lines(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::Path;

    fn mapped(text: &[u8]) -> Arc<MappedFile> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        Arc::new(MappedFile::new(&file, Path::new("lines.txt")).unwrap())
    }

    #[test]
    fn lines_of_ranges_equal_those_of_the_text() {
        let text: Vec<u8> = (0..BLOCK_LEN * 7 / 2).map(|i| if i * i % 7 < 3 { b'\n' } else { b'x' }).collect();
        let mapping = mapped(&text);
        let ends = [0, 1, BLOCK_LEN - 1, BLOCK_LEN, BLOCK_LEN + 9, BLOCK_LEN * 2, BLOCK_LEN * 3 + 1, text.len()];
        for ahead in [0..0, 0..1, 5..BLOCK_LEN * 2 + 5, 0..text.len()] {
            let counts = LineCounts::new(&mapping);
            counts.count_ahead(ahead);
            for (i, &start) in ends.iter().enumerate() {
                for &end in &ends[i..] {
                    assert_eq!(counts.of(start..end), count_lines(&text[start..end]), "{start}..{end}");
                }
            }
        }
    }

    #[test]
    fn text_after_a_cut_is_counted_once() {
        let counts = LineCounts::new(&mapped(&[b'\n'; BLOCK_LEN * 6]));
        let known = || counts.blocks.iter().map(|count| count.load(Ordering::Relaxed) != UNKNOWN).collect::<Vec<_>>();
        counts.count_ahead(0..BLOCK_LEN + 1);
        assert_eq!(known(), [false, true, true, false, false, false]);
        counts.count_ahead(BLOCK_LEN + 1..BLOCK_LEN + 2);
        assert_eq!(known(), [false, true, true, true, false, false]);
        // The bytes of the cut itself are not counted.
        counts.count_ahead(BLOCK_LEN * 4..BLOCK_LEN * 5);
        assert_eq!(known(), [false, true, true, true, false, true]);
        counts.count_ahead(0..BLOCK_LEN * 6);
        assert_eq!(known(), [false, true, true, true, false, true]);
    }
}
