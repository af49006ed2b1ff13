//! Writes URLs without what makes no difference: [`UrlEditor`].

use crate::kernel::{Appender, COPY_LEN, append, append_range};
use std::ops::Range;

/// Appends a URL, or a path, without some of its parts, which are left out from the first to the last. What remains between
/// two of them is copied at once. Nothing is written before the first part is left out.
pub(super) struct UrlEditor<'t, 'o> {
    /// The URL, and what follows it in its buffer.
    text: &'t [u8],
    out: &'o mut Vec<u8>,
    /// Everything before this place of the text was written or left out.
    done: usize,
    is_changed: bool,
}

impl<'t, 'o> UrlEditor<'t, 'o> {
    #[inline(always)]
    pub(super) fn new(text: &'t [u8], out: &'o mut Vec<u8>) -> UrlEditor<'t, 'o> {
        UrlEditor { text, out, done: 0, is_changed: false }
    }

    /// Leaves out a part of the text, which begins where the last one ended or later.
    #[inline(always)]
    pub(super) fn cut(&mut self, part: Range<usize>) {
        self.insert_part(self.done..part.start);
        self.done = part.end;
        self.is_changed = true;
    }

    /// Appends bytes where the last part was left out.
    #[inline(always)]
    pub(super) fn insert(&mut self, bytes: &[u8]) {
        append(self.out, bytes);
    }

    /// Appends a part of the text where the last part was left out.
    #[inline(always)]
    pub(super) fn insert_part(&mut self, part: Range<usize>) {
        append_range(self.out, self.text, part.start, part.len());
    }

    /// Appends parts of the text where the last part was left out: at most `len` bytes, with the first of two bytes before
    /// the first one, and the second before the others.
    #[inline(always)]
    pub(super) fn insert_parts(
        &mut self,
        parts: impl Iterator<Item = Range<usize>>,
        (mut before, separator): (u8, u8),
        len: usize,
    ) {
        let mut out = Appender::new(self.out, len + COPY_LEN);
        for part in parts {
            out.push(std::mem::replace(&mut before, separator));
            out.append_range(self.text, part.start, part.len());
        }
        out.finish();
    }

    /// Replaces a part of the text by another text, which `edit` may change.
    pub(super) fn replace(&mut self, part: Range<usize>, text: &[u8], edit: impl FnOnce(&mut UrlEditor<'_, '_>)) {
        self.cut(part);
        let mut editor = UrlEditor::new(text, self.out);
        edit(&mut editor);
        editor.finish(text.len());
    }

    /// Returns whether a part was left out.
    #[inline(always)]
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns where byte `at` of the text will be in the output, if nothing else before it is left out.
    #[inline(always)]
    pub(super) fn place_of(&self, at: usize) -> usize {
        self.out.len() + at - self.done
    }

    /// Appends the rest of the text, which has `len` bytes.
    #[inline(always)]
    pub(super) fn finish(mut self, len: usize) {
        self.insert_part(self.done..len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_left_out_is_written() {
        let text = [b"http://h/a/b?c".to_vec(), vec![b'.'; 200]].concat();
        for text in [&text[..14], &text] {
            let mut out = b"before".to_vec();
            let mut editor = UrlEditor::new(text, &mut out);
            assert_eq!((editor.place_of(9), editor.is_changed()), (15, false));
            editor.cut(4..7);
            editor.insert(b"s:");
            editor.replace(8..10, b"/abc", |editor| editor.cut(2..3));
            assert_eq!((editor.place_of(12), editor.is_changed()), (6 + 4 + 2 + 1 + 3 + 2, true));
            editor.cut(12..14);
            editor.insert_parts([13..14, 9..10].into_iter(), (b'?', b'&'), 4);
            editor.finish(14);
            assert_eq!(out, b"beforehttps:h/ac/b?c&a", "{}", String::from_utf8_lossy(&out));
        }
        let mut out = Vec::new();
        UrlEditor::new(&text, &mut out).finish(14);
        assert_eq!(out, &text[..14]);
    }
}
