//! A path and the delimiters in it: [`PathText`].

use super::rule::SegmentPlace;
use super::sought_name::SoughtName;
use super::url_parts::{UrlParts, general_segment};
use super::value_shape::ValueShape;
use crate::kernel::{any_byte, any_pair, mask_of, masks_of, positions_by_mask};
use std::ops::Range;

/// What is written instead of a value that makes no difference. No canonical URI contains it, so it equals no value.
pub(super) const PLACEHOLDER: &[u8] = b"<>";

/// A path in the text that contains it.
#[derive(Clone, Copy)]
pub(super) struct PathText<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) path: &'a [u8],
    /// Masks of the slashes and of the semicolons in the path, if they are known.
    delimiters: Option<[u64; 2]>,
}

impl<'a> PathText<'a> {
    pub(super) fn of(path: &'a [u8]) -> PathText<'a> {
        PathText { text: path, at: 0, path, delimiters: None }
    }

    /// Does what [`Self::of`] does, and finds the delimiters of a short path.
    #[inline(always)]
    pub(super) fn masked(path: &'a [u8]) -> PathText<'a> {
        PathText { delimiters: masks_of(path, *b"/;"), ..PathText::of(path) }
    }

    /// Returns the path of a URL.
    #[inline(always)]
    pub(super) fn of_url(url: &UrlParts<'a>) -> PathText<'a> {
        PathText { text: url.text.buffer(), at: url.path_at, path: url.path(), delimiters: url.delimiters_of_path }
    }

    /// Returns where the path is in its text.
    #[inline(always)]
    pub(super) fn range(self) -> Range<usize> {
        self.at..self.at + self.path.len()
    }

    #[inline(always)]
    pub(super) fn has_semicolons(self) -> bool {
        match self.delimiters {
            Some([_, semicolons]) => semicolons != 0,
            None => any_byte(self.path, |byte| byte == b';'),
        }
    }

    #[inline(always)]
    pub(super) fn has_doubled_slashes(self) -> bool {
        match self.delimiters {
            Some([slashes, _]) => slashes & slashes << 1 != 0,
            None => any_pair(self.path, |byte, next| (byte == b'/') & (next == b'/')),
        }
    }

    /// Returns the places of the segments. No segment follows a final slash.
    #[inline(always)]
    pub(super) fn segments(self) -> impl Iterator<Item = Range<usize>> {
        let slashes = self.delimiters.map(|[slashes, _]| slashes);
        let mut slashes = positions_by_mask(self.path, slashes, |byte| byte == b'/');
        let mut next_at = if self.path.starts_with(b"/") { slashes.next().map(|at| at + 1) } else { Some(0) };
        std::iter::from_fn(
            #[inline(always)]
            move || {
                let at = next_at.filter(|at| *at < self.path.len())?;
                let end = slashes.next();
                next_at = end.map(|end| end + 1);
                Some(at..end.unwrap_or(self.path.len()))
            },
        )
    }

    /// Returns where the last segment begins in the text, if it has the name and no slash follows it.
    #[inline(always)]
    pub(super) fn last_segment(self, name: &SoughtName) -> Option<usize> {
        let start = self.path.len().checked_sub(name.len()).filter(|start| *start > 0)?;
        let is_last = self.path[start - 1] == b'/' && name.is_at(self.text, self.at + start, name.len());
        is_last.then_some(self.at + start)
    }

    /// Returns the place in the text of the first or last segment, if it has the name, and of a slash next to it. One slash
    /// of the path remains.
    #[inline(always)]
    pub(super) fn find_segment(self, place: SegmentPlace, name: &SoughtName) -> Option<Range<usize>> {
        let Range { start, end } = self.range();
        match place {
            SegmentPlace::First => {
                let after = start + 1 + name.len();
                let is_first = after <= end
                    && name.is_at(self.text, start + 1, name.len())
                    && (after == end || self.text[after] == b'/');
                is_first.then_some(start + 1..end.min(after + 1))
            }
            SegmentPlace::Last => {
                let has_slash = self.path.ends_with(b"/");
                let trimmed = PathText { path: &self.path[..self.path.len() - usize::from(has_slash)], ..self };
                let at = trimmed.last_segment(name)?;
                // The slash before the first segment remains, and the one after another segment.
                Some(if at == start + 1 { at..end } else { at - 1..trimmed.range().end })
            }
        }
    }

    /// Returns the place in the path of the value that the rule is about, if it has the shape and is not the placeholder.
    #[inline(always)]
    pub(super) fn matching_value(self, rule: &ValueRule) -> Option<Range<usize>> {
        let slashes = self.delimiters.map(|[slashes, _]| slashes);
        let mut slashes = positions_by_mask(self.path, slashes, |byte| byte == b'/');
        let mut at = slashes.next()? + 1;
        for form in &rule.before {
            let end = slashes.next()?;
            if !form.is_at(self.text, self.at + at, end - at) {
                return None;
            }
            at = end + 1;
        }
        let end = slashes.next().unwrap_or(self.path.len());
        (at < self.path.len() && rule.has_shape(&self.path[at..end])).then_some(at..end)
    }
}

/// A rule about the value of a segment.
#[derive(Clone, Debug)]
pub(super) struct ValueRule {
    /// The segments before it.
    before: Vec<SegmentForm>,
    shape: Option<ValueShape>,
}

/// What a segment before a value must be.
#[derive(Clone, Debug)]
enum SegmentForm {
    /// A number.
    Number,
    /// Neither a number nor a name.
    Other,
    /// This name.
    Name(SoughtName),
}

impl ValueRule {
    pub(super) fn new(before: &[Vec<u8>], shape: Option<ValueShape>) -> ValueRule {
        ValueRule { before: before.iter().map(|form| SegmentForm::of(form)).collect(), shape }
    }

    /// Returns the number of segments before the value.
    pub(super) fn len_before(&self) -> usize {
        self.before.len()
    }

    /// Returns whether the first of `segments` match, and the next one is a value that makes no difference.
    pub(super) fn matches<'p>(&self, mut segments: impl Iterator<Item = &'p [u8]>) -> bool {
        let mut is_next = |form: &SegmentForm| segments.next().is_some_and(|text| form.is_at(text, 0, text.len()));
        self.before.iter().all(&mut is_next) && segments.next().is_some_and(|value| self.has_shape(value))
    }

    /// Returns whether a value has the shape and is not the placeholder.
    #[inline(always)]
    fn has_shape(&self, value: &[u8]) -> bool {
        value != PLACEHOLDER && self.shape.is_none_or(|shape| shape.is_of(value))
    }
}

impl SegmentForm {
    /// Returns the form that [`general_segment`] returns as `form`.
    fn of(form: &[u8]) -> SegmentForm {
        match form {
            b"#" => SegmentForm::Number,
            b"*" => SegmentForm::Other,
            name => SegmentForm::Name(SoughtName::new(name.to_vec())),
        }
    }

    /// Returns whether the part of `text` with `len` bytes from `at` on has this form.
    #[inline(always)]
    fn is_at(&self, text: &[u8], at: usize, len: usize) -> bool {
        match self {
            SegmentForm::Name(name) => name.is_at(text, at, len),
            SegmentForm::Number => len > 0 && has_only(text, at, len, |byte| byte.wrapping_sub(b'0') < 10),
            SegmentForm::Other => general_segment(&text[at..at + len]) == b"*",
        }
    }
}

/// Returns whether all of the `len` bytes of `text` from `at` on pass a test, which has no branches.
#[inline(always)]
fn has_only(text: &[u8], at: usize, len: usize, is_right: impl Fn(u8) -> bool) -> bool {
    match text[at..].first_chunk::<32>() {
        Some(bytes) if len <= 32 => mask_of(bytes, |byte| !is_right(byte)) << (32 - len) & 0xFFFF_FFFF == 0,
        _ => !any_byte(&text[at..at + len], |byte| !is_right(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_those_of_segments() {
        let long = "abcdefghijklmnopqrst";
        let texts = [
            "",
            "1",
            "12345678901234567890123456789012345",
            "a",
            "A_b",
            "a1",
            "*",
            "#",
            "-",
            long,
            &format!("{long}u"),
        ];
        for a in texts.into_iter().filter(|text| *text == "#" || general_segment(text.as_bytes()) == text.as_bytes()) {
            for b in texts {
                for after in ["", "/0123456789012345678901234567890123456789"] {
                    let text = format!("/{b}{after}");
                    let found = SegmentForm::of(a.as_bytes()).is_at(text.as_bytes(), 1, b.len());
                    assert_eq!(found, general_segment(b.as_bytes()) == a.as_bytes(), "{a} {b}");
                }
            }
        }
    }
}
