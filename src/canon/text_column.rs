//! A column of texts, and removing rows from columns.

use std::ops::Range;

use crate::kernel::{Appender, COPY_LEN};

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
    ///
    /// # Panics
    /// If there is no text `i`.
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

    /// Removes all texts and keeps the memory. The caller may have taken `values` and `offsets` before.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.offsets.clear();
        self.offsets.push(0);
    }

    /// Keeps the texts of `rows`, which must ascend. An empty column stays empty.
    pub(super) fn retain(&mut self, rows: &[u32]) {
        if self.is_empty() {
            return;
        }
        let TextColumn { values, offsets } = self;
        let mut len = 0;
        for (i, row) in rows.iter().enumerate() {
            // Offsets only move to the left, so those that are read have not been overwritten.
            let (start, end) = (offsets[*row as usize] as usize, offsets[*row as usize + 1] as usize);
            move_text(values, start..end, len);
            len += end - start;
            offsets[i + 1] = len as i32;
        }
        values.truncate(len);
        offsets.truncate(rows.len() + 1);
    }
}

/// Moves a text to the left, to `to`. Bytes between its new and its old end may be overwritten.
#[inline(always)]
fn move_text(values: &mut [u8], text: Range<usize>, to: usize) {
    match values.get(text.start..).and_then(<[u8]>::first_chunk::<COPY_LEN>) {
        // A copy of this many bytes needs no branch on the length, but must not overwrite the next text.
        Some(bytes) if text.len() <= COPY_LEN && to + COPY_LEN <= text.end => {
            let bytes = *bytes;
            values[to..to + COPY_LEN].copy_from_slice(&bytes);
        }
        _ => values.copy_within(text, to),
    }
}

/// Keeps the items of `rows`, which must ascend. A column that the policy does not ask for is empty and stays so.
pub(super) fn retain_items<T: Copy>(items: &mut Vec<T>, rows: &[u32]) {
    if items.is_empty() {
        return;
    }
    for (i, row) in rows.iter().enumerate() {
        items[i] = items[*row as usize];
    }
    items.truncate(rows.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_whose_vectors_were_taken_can_be_cleared() {
        let mut column = TextColumn::new();
        column.values.push(b'a');
        column.end();
        assert_eq!((std::mem::take(&mut column.values), std::mem::take(&mut column.offsets)), (vec![b'a'], vec![0, 1]));
        column.clear();
        assert_eq!((column.len(), column.offsets.as_slice()), (0, &[0][..]));
        column.values.push(b'b');
        column.end();
        assert_eq!((column.len(), column.get(0)), (1, &b"b"[..]));
    }

    /// The first text is removed. The others move by its length, over bytes that may belong to texts that have yet to move.
    #[test]
    fn retained_texts_keep_their_bytes() {
        let text: Vec<u8> = (0..=255).collect();
        for removed in 0..COPY_LEN + 3 {
            for len in 0..COPY_LEN + 3 {
                let mut column = TextColumn::new();
                for text in [&text[..removed], &text[..len], &text[1..], &text] {
                    column.values.extend(text);
                    column.end();
                }
                column.retain(&[1, 2, 3]);
                let retained: Vec<&[u8]> = (0..column.len()).map(|i| column.get(i)).collect();
                assert_eq!(retained, [&text[..len], &text[1..], &text], "{removed} {len}");
            }
        }
    }
}
