//! Applies rules about content to paths: [`PathRules`].

use super::removal::RemovalLog;
use super::rule::{ContentRule, PathContext, ScopedRule, SegmentPlace, ends_segment};
use super::url_parts::{is_general_form, name_and_value};
use super::value_shape::ValueShape;
use crate::kernel::{any_byte, any_pair, append, find_byte, positions};
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
    /// Where the segments are in `path`.
    segments: Vec<Range<usize>>,
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
    }

    /// Returns whether a rule may apply to `path`, or the path lacks its slash.
    #[inline]
    pub(super) fn change(&self, path: &[u8]) -> bool {
        if !self.is_used || path.is_empty() {
            return path.is_empty();
        }
        let inner = path.strip_prefix(b"/").unwrap_or(path);
        let has_slash = inner.ends_with(b"/");
        let trimmed = inner.strip_suffix(b"/").unwrap_or(inner);
        let is_last = |name: &[u8]| trimmed.strip_suffix(name).is_some_and(|rest| matches!(rest, [] | [.., b'/']));
        self.final_slash.is_used() && has_slash
            || self.path_case.is_used() && any_byte(path, |byte| byte.is_ascii_uppercase())
            || self.doubled_slashes.is_used() && any_pair(path, |byte, next| (byte == b'/') & (next == b'/'))
            || !self.path_parameters.is_empty() && any_byte(path, |byte| byte == b';')
            || self.documents.iter().any(|(name, ..)| !has_slash && is_last(name))
            || self.segments.iter().any(|(place, name, ..)| match place {
                SegmentPlace::First => trimmed.strip_prefix(&name[..]).is_some_and(ends_segment),
                SegmentPlace::Last => is_last(name),
            })
            || !inner.is_empty()
                && self.segment_values.iter().any(|((before, shape), ..)| {
                    matching_value((before, *shape), trimmed.split(|byte| *byte == b'/')).is_some()
                })
    }

    /// Writes a path that rules change. Returns it before segments were left out.
    pub(super) fn write<'b>(
        &self,
        path: &[u8],
        buffers: &'b mut PathBuffers,
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) -> &'b [u8] {
        let PathBuffers { path: plain, segments } = buffers;
        plain.clear();
        self.write_plain_path(path, plain, removed);
        let len = plain.len();
        self.write_segments((&mut *plain, segments), removed, out);
        &plain[..len]
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

    /// Writes the segments of `path` without those that make no difference.
    fn write_segments(
        &self,
        (path, segments): (&mut Vec<u8>, &mut Vec<Range<usize>>),
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) {
        let mut has_slash = split_segments(path, segments);
        let is_document = |(name, context, _): &&(Vec<u8>, PathContext, u16)| {
            segments.last().is_some_and(|last| name[..] == path[last.clone()]) && context.contains(path)
        };
        let final_slash = self.final_slash.number(path);
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
        for segment in segments.iter() {
            out.push(b'/');
            append(out, &path[segment.clone()]);
        }
        match final_slash {
            _ if segments.is_empty() => out.push(b'/'),
            Some(number) if has_slash => removed.add(number, || 1),
            _ if has_slash => out.push(b'/'),
            _ => (),
        }
    }

    /// Replaces values of segments by `*`, which is added to the end of `path`.
    fn replace_values(&self, path: &mut Vec<u8>, segments: &mut [Range<usize>], removed: &mut impl RemovalLog) {
        let len = path.len();
        for ((before, shape), context, number) in &self.segment_values {
            let texts = segments.iter().map(|segment| &path[segment.clone()]);
            if let Some(value) = matching_value((before, *shape), texts)
                && context.contains(&path[..len])
            {
                removed.add(*number, || xxh3_64(value) | 1);
                segments[before.len()] = path.len()..path.len() + 1;
                path.push(b'*');
            }
        }
    }
}

/// Finds the segments of `path`. Returns whether it ends with a slash that follows a segment.
fn split_segments(path: &[u8], segments: &mut Vec<Range<usize>>) -> bool {
    segments.clear();
    let first = usize::from(path.starts_with(b"/"));
    let mut from = first;
    for at in positions(&path[first..], |byte| byte == b'/').map(|at| at + first) {
        segments.push(from..at);
        from = at + 1;
    }
    let has_slash = !segments.is_empty() && from == path.len();
    if from < path.len() {
        segments.push(from..path.len());
    }
    has_slash
}

/// Returns the segment after those that match `before`, if it has the shape and is not `*`.
fn matching_value<'p>(
    (before, shape): (&[Vec<u8>], Option<ValueShape>),
    mut segments: impl Iterator<Item = &'p [u8]>,
) -> Option<&'p [u8]> {
    for want in before {
        segments.next().filter(|segment| is_general_form(want, segment))?;
    }
    segments.next().filter(|value| *value != b"*" && shape.is_none_or(|shape| ValueShape::of(value) == shape))
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
