//! Applies rules about content to paths: [`PathRules`].

use super::path_text::{PLACEHOLDER, PathText, has_shape};
use super::removal::RemovalLog;
use super::rule::{ContentRule, PathContext, ScopedRule, SegmentPlace, ends_segment};
use super::url_parts::{is_general_form, name_and_value};
use super::value_shape::ValueShape;
use crate::kernel::{any_byte, any_pair, append, append_range, find_byte, positions};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Most segments before one whose value makes no difference.
pub(super) const MAX_SEGMENTS_BEFORE: usize = 7;

/// The numbers of the rules of one kind, with the paths that each is for. A rule for all paths comes first.
#[derive(Clone, Debug, Default)]
pub(super) struct RulePlaces {
    everywhere: Option<u16>,
    somewhere: Vec<(PathContext, u16)>,
}

impl RulePlaces {
    pub(super) fn add(&mut self, context: &PathContext, number: u16) {
        match context {
            PathContext::Any => self.everywhere = Some(number),
            _ => self.somewhere.push((context.clone(), number)),
        }
    }

    /// Returns whether there is a rule.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.everywhere.is_some() || !self.somewhere.is_empty()
    }

    /// Returns the number of the rule that is for `path`.
    #[inline]
    pub(super) fn number(&self, path: &[u8]) -> Option<u16> {
        self.everywhere.or_else(|| self.find(|context| context.contains(path)))
    }

    /// Does what [`Self::number`] does, without regard to letter case.
    fn number_ignoring_case(&self, path: &[u8]) -> Option<u16> {
        self.everywhere.or_else(|| self.find(|context| context.contains_ignoring_case(path)))
    }

    fn find(&self, is_for: impl Fn(&PathContext) -> bool) -> Option<u16> {
        self.somewhere.iter().find(|(context, _)| is_for(context)).map(|(_, number)| *number)
    }
}

/// The segments before one whose value makes no difference, and the shape of the value.
type ValuePlace = (Vec<Vec<u8>>, Option<ValueShape>);

/// Rules about paths in the form that they are applied in, with their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct PathRules {
    /// There are rules.
    is_used: bool,
    /// There are no rules about segments and ends of paths but those about values.
    has_only_values: bool,
    doubled_slashes: RulePlaces,
    final_slash: RulePlaces,
    path_case: RulePlaces,
    documents: Vec<(Vec<u8>, PathContext, u16)>,
    path_parameters: Vec<(Vec<u8>, PathContext, u16)>,
    segments: Vec<(SegmentPlace, Vec<u8>, PathContext, u16)>,
    segment_values: Vec<(ValuePlace, PathContext, u16)>,
}

/// Buffers for [`PathRules::write`].
#[derive(Debug, Default)]
pub(super) struct PathBuffers {
    path: Vec<u8>,
    /// Where the segments are in the path.
    segments: Vec<Range<usize>>,
}

/// The place of a segment whose value was replaced.
const REPLACED: Range<usize> = usize::MAX..usize::MAX;

/// Which rules may apply to a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathChanges {
    /// Those about path parameters, letter case, and doubled slashes. What remains is the plain path.
    to_plain: bool,
    /// Those about whole segments and the final slash, or the path lacks its slash.
    of_segments: bool,
}

impl PathChanges {
    /// Returns whether a rule may apply.
    #[inline(always)]
    pub(super) fn any(self) -> bool {
        self.to_plain | self.of_segments
    }
}

impl PathRules {
    /// Adds a rule, if it is about paths.
    pub(super) fn add(&mut self, ScopedRule { rule, context }: &ScopedRule, number: u16) {
        self.is_used |= rule.is_about_paths();
        let place = || context.clone();
        match rule.clone() {
            ContentRule::DoubledSlashes => self.doubled_slashes.add(context, number),
            ContentRule::FinalSlash => self.final_slash.add(context, number),
            ContentRule::PathCase => self.path_case.add(context, number),
            ContentRule::Document(name) => self.documents.push((name, place(), number)),
            ContentRule::PathParameter(name) => self.path_parameters.push((name, place(), number)),
            ContentRule::Segment(at, name) => self.segments.push((at, name, place(), number)),
            ContentRule::SegmentValue(before, shape) => self.segment_values.push(((before, shape), place(), number)),
            _ => (),
        }
        let has_ends = self.final_slash.is_used() || !self.documents.is_empty() || !self.segments.is_empty();
        self.has_only_values = !self.segment_values.is_empty() && !has_ends;
    }

    /// Returns whether there are rules.
    #[inline(always)]
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Returns which rules may apply to a path.
    #[inline(always)]
    pub(super) fn changes(&self, path: PathText<'_>) -> PathChanges {
        if !self.is_used {
            return PathChanges { to_plain: false, of_segments: path.path.is_empty() };
        }
        let to_plain = self.path_case.is_used() && any_byte(path.path, |byte| byte.is_ascii_uppercase())
            || self.doubled_slashes.is_used() && path.has_doubled_slashes()
            || !self.path_parameters.is_empty() && path.has_semicolons();
        PathChanges { to_plain, of_segments: self.changes_segments(path) }
    }

    /// Returns whether a rule about segments or the final slash may apply to the path, or it lacks its slash.
    #[inline(always)]
    fn changes_segments(&self, path: PathText<'_>) -> bool {
        let Some((_, inner)) = path.path.split_first() else { return true };
        let has_slash = inner.ends_with(b"/");
        let trimmed = inner.strip_suffix(b"/").unwrap_or(inner);
        let is_last = |name: &[u8]| trimmed.strip_suffix(name).is_some_and(|rest| matches!(rest, [] | [.., b'/']));
        self.final_slash.is_used() && has_slash
            || self.documents.iter().any(|(name, ..)| !has_slash && is_last(name))
            || self.segments.iter().any(|(place, name, ..)| match place {
                SegmentPlace::First => trimmed.strip_prefix(&name[..]).is_some_and(ends_segment),
                SegmentPlace::Last => is_last(name),
            })
            || self.has_matching_value(path)
    }

    #[inline(always)]
    fn has_matching_value(&self, path: PathText<'_>) -> bool {
        // A loop is compiled for the caller's instruction set; `any` may become a call.
        for ((before, shape), ..) in &self.segment_values {
            if path.matching_value((before, *shape)).is_some() {
                return true;
            }
        }
        false
    }

    /// Writes a path that these rules change. Returns the plain path.
    #[inline(always)]
    pub(super) fn write<'b>(
        &self,
        (path, changes): (PathText<'b>, PathChanges),
        buffers: &'b mut PathBuffers,
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) -> &'b [u8] {
        let PathBuffers { path: plain, segments } = buffers;
        let path = if changes.to_plain {
            plain.clear();
            self.write_plain_path(path.path, plain, removed);
            PathText::of(plain)
        } else {
            path
        };
        if self.segments.is_empty() && self.segment_values.is_empty() && path.path.len() > 1 {
            self.write_end(path, removed, out);
        } else if let [((before, shape), context, number)] = &self.segment_values[..]
            && self.has_only_values
        {
            match path.matching_value((before, *shape)).filter(|_| context.contains(path.path)) {
                Some(value) => {
                    removed.add(*number, || xxh3_64(&path.path[value.clone()]) | 1);
                    append_range(out, path.text, path.at, value.start);
                    append(out, PLACEHOLDER);
                    append_range(out, path.text, path.at + value.end, path.path.len() - value.end);
                }
                None => append_range(out, path.text, path.at, path.path.len()),
            }
        } else {
            self.write_segments(path, segments, removed, out);
        }
        path.path
    }

    /// Writes the path without path parameters, in lower case, and without doubled slashes, as far as rules say so.
    fn write_plain_path(&self, path: &[u8], out: &mut Vec<u8>, removed: &mut impl RemovalLog) {
        if self.path_parameters.is_empty() {
            append(out, path);
        } else {
            self.write_without_path_parameters(path, out, removed);
        }
        if let Some(number) = self.path_case.number_ignoring_case(out) {
            lower_case(out, number, removed);
        }
        if let Some(number) = self.doubled_slashes.number(out)
            && any_pair(out, |byte, next| (byte == b'/') & (next == b'/'))
        {
            removed.add(number, || xxh3_64(out));
            out.dedup_by(|a, b| (*a, *b) == (b'/', b'/'));
        }
    }

    fn write_without_path_parameters(&self, path: &[u8], out: &mut Vec<u8>, removed: &mut impl RemovalLog) {
        let mut from = 0;
        for at in positions(path, |byte| byte == b';') {
            let after = &path[at + 1..];
            let len = find_byte(after, |byte| (byte == b';') | (byte == b'/')).unwrap_or(after.len());
            let (name, value) = name_and_value(&after[..len]);
            let is_for = |(known, context, _): &&(Vec<u8>, PathContext, u16)| {
                known.eq_ignore_ascii_case(name) && context.contains(path)
            };
            if let Some((.., number)) = self.path_parameters.iter().find(is_for) {
                removed.add(*number, || xxh3_64(value) | 1);
                append(out, &path[from..at]);
                from = at + 1 + len;
            }
        }
        append(out, &path[from..]);
    }

    /// Writes the path without its document and its final slash, as far as rules say so. There are no other rules about segments.
    #[inline(always)]
    fn write_end(&self, path: PathText<'_>, removed: &mut impl RemovalLog, out: &mut Vec<u8>) {
        let PathText { text, at, path, delimiters } = path;
        let mut end = path.len();
        if path[end - 1] == b'/' {
            match self.final_slash.number(path) {
                Some(number) => removed.add(number, || 1),
                None => return append_range(out, text, at, end),
            }
            return append_range(out, text, at, end - 1);
        }
        let last_at = match delimiters {
            Some([slashes, _]) => 64 - slashes.leading_zeros() as usize,
            None => memchr::memrchr(b'/', path).map_or(0, |at| at + 1),
        };
        for (name, context, number) in &self.documents {
            if path[last_at..] == name[..] && context.contains(path) {
                removed.add(*number, || 1);
                end = last_at;
                if let Some(number) = self.final_slash.number(path).filter(|_| last_at > 1) {
                    removed.add(number, || 1);
                    end -= 1;
                }
                break;
            }
        }
        append_range(out, text, at, end);
    }

    /// Writes the segments of `path` without those that make no difference.
    fn write_segments(
        &self,
        path: PathText<'_>,
        segments: &mut Vec<Range<usize>>,
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) {
        segments.clear();
        segments.extend(path.segments());
        let PathText { text, at, path, .. } = path;
        let mut has_slash = path.ends_with(b"/") && !segments.is_empty();
        let is_document = |(name, context, _): &&(Vec<u8>, PathContext, u16)| {
            segments.last().is_some_and(|last| name[..] == path[last.clone()]) && context.contains(path)
        };
        if let Some((.., number)) = self.documents.iter().filter(|_| !has_slash).find(is_document) {
            removed.add(*number, || 1);
            segments.pop();
            has_slash = true;
        }
        for (place, name, _, number) in self.segments.iter().filter(|(.., context, _)| context.contains(path)) {
            let at = match place {
                SegmentPlace::First => segments.first().map(|_| 0),
                SegmentPlace::Last => segments.len().checked_sub(1),
            };
            if let Some(at) = at.filter(|at| path[segments[*at].clone()] == name[..]) {
                removed.add(*number, || 1);
                segments.remove(at);
            }
        }
        self.replace_values(path, segments, removed);
        // Adjacent segments are copied together.
        let mut copied = 0..0;
        for segment in segments.iter() {
            if *segment == REPLACED {
                append_range(out, text, at + copied.start, copied.len());
                out.push(b'/');
                append(out, PLACEHOLDER);
                copied = 0..0;
            } else if !copied.is_empty() && copied.end + 1 == segment.start {
                copied.end = segment.end;
            } else {
                append_range(out, text, at + copied.start, copied.len());
                out.push(b'/');
                copied = segment.clone();
            }
        }
        append_range(out, text, at + copied.start, copied.len());
        match self.final_slash.number(path) {
            _ if segments.is_empty() => out.push(b'/'),
            Some(number) if has_slash => removed.add(number, || 1),
            _ if has_slash => out.push(b'/'),
            _ => (),
        }
    }

    /// Replaces values of segments by the placeholder.
    fn replace_values(&self, path: &[u8], segments: &mut [Range<usize>], removed: &mut impl RemovalLog) {
        for ((before, shape), context, number) in &self.segment_values {
            let text = |segment: &Range<usize>| if *segment == REPLACED { PLACEHOLDER } else { &path[segment.clone()] };
            if let Some(value) = matching_value((before, *shape), segments.iter().map(text))
                && context.contains(path)
            {
                removed.add(*number, || xxh3_64(value) | 1);
                segments[before.len()] = REPLACED;
            }
        }
    }
}

/// Returns the segment after those that match `before`, if it has the shape and is not `*`.
fn matching_value<'p>(
    (before, shape): (&[Vec<u8>], Option<ValueShape>),
    mut segments: impl Iterator<Item = &'p [u8]>,
) -> Option<&'p [u8]> {
    for want in before {
        segments.next().filter(|segment| is_general_form(want, segment))?;
    }
    segments.next().filter(|value| has_shape(value, shape))
}

fn lower_case(path: &mut [u8], number: u16, removed: &mut impl RemovalLog) {
    if !any_byte(path, |byte| byte.is_ascii_uppercase()) {
        return;
    }
    let before = xxh3_64(path);
    let (mut at, mut is_changed) = (0, false);
    while at < path.len() {
        // The digits of an escape stay in upper case, as in every canonical URI.
        if path[at] == b'%' {
            at += 3;
            continue;
        }
        is_changed |= path[at].is_ascii_uppercase();
        path[at].make_ascii_lowercase();
        at += 1;
    }
    if is_changed {
        removed.add(number, || before | 1);
    }
}
