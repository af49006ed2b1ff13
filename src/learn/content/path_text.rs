//! A path and the delimiters in it: [`PathText`].

use super::url_parts::{UrlParts, is_general_form};
use super::value_shape::ValueShape;
use crate::kernel::{any_byte, any_pair, positions_by_mask};
use std::ops::Range;

/// What is written instead of a value that makes no difference.
pub(super) const PLACEHOLDER: &[u8] = b"*";

/// A path in the text that contains it.
#[derive(Clone, Copy)]
pub(super) struct PathText<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    pub(super) path: &'a [u8],
    /// Masks of the slashes and of the semicolons in the path, if they are known.
    pub(super) delimiters: Option<[u64; 2]>,
}

impl<'a> PathText<'a> {
    pub(super) fn of(path: &'a [u8]) -> PathText<'a> {
        PathText { text: path, at: 0, path, delimiters: None }
    }

    /// Returns the path of a URL.
    #[inline(always)]
    pub(super) fn of_url(url: &UrlParts<'a>) -> PathText<'a> {
        PathText { text: url.text.buffer(), at: url.path_at, path: url.path, delimiters: url.delimiters_of_path }
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

    /// Returns the place of the segment after those that match `before`, if it has the shape and is not the placeholder.
    #[inline(always)]
    pub(super) fn matching_value(self, (before, shape): (&[Vec<u8>], Option<ValueShape>)) -> Option<Range<usize>> {
        let slashes = self.delimiters.map(|[slashes, _]| slashes);
        let mut slashes = positions_by_mask(self.path, slashes, |byte| byte == b'/');
        let mut at = slashes.next()? + 1;
        for want in before {
            let end = slashes.next()?;
            if !is_general_form(want, &self.path[at..end]) {
                return None;
            }
            at = end + 1;
        }
        let end = slashes.next().unwrap_or(self.path.len());
        (at < self.path.len() && has_shape(&self.path[at..end], shape)).then_some(at..end)
    }
}

/// Returns whether a value has the shape and is not the placeholder.
#[inline(always)]
pub(super) fn has_shape(value: &[u8], shape: Option<ValueShape>) -> bool {
    value != PLACEHOLDER && shape.is_none_or(|shape| shape.is_of(value))
}
