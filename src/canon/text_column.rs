//! A column of texts, and removing rows from columns.

use std::ops::Range;

use crate::kernel::Appender;

/// A column of texts in the layout of Arrow's string arrays: text `i` is `values[offsets[i]..offsets[i + 1]]`.
///
/// ```
/// let mut column = irikey::canon::TextColumn::default();
/// assert!(column.is_empty());
/// column.values.extend_from_slice(b"http://example.org/");
/// column.end();
/// assert_eq!((column.len(), column.get(0)), (1, &b"http://example.org/"[..]));
/// ```
#[derive(Debug, Clone)]
pub struct TextColumn {
    /// The bytes of all texts.
    pub values: Vec<u8>,
    /// One more offset than texts; the first is 0. They are `i32` because Arrow's are.
    pub offsets: Vec<i32>,
}

impl Default for TextColumn {
    fn default() -> TextColumn {
        TextColumn { values: Vec::new(), offsets: vec![0] }
    }
}

impl TextColumn {
    /// Returns an empty column.
    pub fn new() -> TextColumn {
        TextColumn::default()
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns text `i`.
    pub fn get(&self, i: usize) -> &[u8] {
        &self.values[self.offsets[i] as usize..self.offsets[i + 1] as usize]
    }

    /// Ends the text whose bytes were appended to `values` since the last call.
    #[inline(always)]
    pub fn end(&mut self) {
        self.offsets.push(self.values.len() as i32);
    }

    /// Calls [`TextColumn::end`] `count` times. Up to 16 times need no branch on `count`.
    #[inline(always)]
    pub(super) fn end_times(&mut self, count: usize) {
        const STEP: usize = 16;
        let mut ends = Appender::new(&mut self.offsets, count + STEP);
        for first in (0..count).step_by(STEP) {
            ends.append([self.values.len() as i32; STEP], (count - first).min(STEP));
        }
        ends.finish();
    }

    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.offsets.truncate(1);
    }

    /// Keeps the texts in `ranges`, which must ascend and not overlap. An empty column stays empty.
    pub(super) fn retain(&mut self, ranges: &[Range<usize>]) {
        if self.is_empty() {
            return;
        }
        let TextColumn { values, offsets } = self;
        let (mut row, mut len) = (0, 0);
        for range in ranges {
            let (from, to) = (offsets[range.start], offsets[range.end]);
            values.copy_within(from as usize..to as usize, len as usize);
            // Offsets only move to the left, so those that are read have not been overwritten.
            for at in range.clone() {
                offsets[row + 1] = offsets[at + 1] - from + len;
                row += 1;
            }
            len += to - from;
        }
        values.truncate(len as usize);
        offsets.truncate(row + 1);
    }
}

/// Keeps the items in `ranges`, which must ascend and not overlap. A column that the policy does not ask for is empty and
/// stays so.
pub(super) fn retain_items<T: Copy>(items: &mut Vec<T>, ranges: &[Range<usize>]) {
    if items.is_empty() {
        return;
    }
    let mut len = 0;
    for range in ranges {
        items.copy_within(range.clone(), len);
        len += range.len();
    }
    items.truncate(len);
}
