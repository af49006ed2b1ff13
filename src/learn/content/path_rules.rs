//! Applies rules about content to paths: [`PathRules`].

use super::path_text::{PLACEHOLDER, PathText, ValueRule};
use super::removal::RemovalObserver;
use super::rule::{ContentRule, PathContext, ScopedRule, SegmentPlace};
use super::sought_name::SoughtName;
use super::url_editor::UrlEditor;
use super::url_parts::name_and_value;
use crate::kernel::{any_byte, any_pair, append, find_byte, positions};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of segments before one whose value makes no difference.
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

/// Which rules about segments and ends of paths there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SegmentRules {
    #[default]
    None,
    /// Those about documents and the final slash.
    Ends,
    /// One about a segment.
    OneSegment,
    /// One about a value.
    OneValue,
    Several,
}

/// Rules about paths in the form that they are applied in, with their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct PathRules {
    /// There are rules.
    is_used: bool,
    /// The rules do not apply to what they result in, as long as they are for all paths.
    is_applied_once: bool,
    of_segments: SegmentRules,
    doubled_slashes: RulePlaces,
    final_slash: RulePlaces,
    path_case: RulePlaces,
    documents: Vec<(SoughtName, PathContext, u16)>,
    path_parameters: Vec<(Vec<u8>, PathContext, u16)>,
    segment_parameters: Vec<(Vec<u8>, PathContext, u16)>,
    segments: Vec<(SegmentPlace, SoughtName, PathContext, u16)>,
    segment_values: Vec<(ValueRule, PathContext, u16)>,
}

/// Buffers for [`PathRules::edit`].
#[derive(Debug, Default)]
pub(super) struct PathBuffers {
    path: Vec<u8>,
    /// Where the segments are in the path.
    segments: Vec<Range<usize>>,
}

/// The place of a segment whose value was replaced.
const REPLACED: Range<usize> = usize::MAX..usize::MAX;

impl PathRules {
    /// Adds a rule, if it is about paths.
    pub(super) fn add(&mut self, ScopedRule { rule, context }: &ScopedRule, number: u16) {
        let place = || context.clone();
        match rule.clone() {
            ContentRule::DoubledSlashes => self.doubled_slashes.add(context, number),
            ContentRule::FinalSlash => self.final_slash.add(context, number),
            ContentRule::PathCase => self.path_case.add(context, number),
            ContentRule::Document(name) => self.documents.push((SoughtName::new(name), place(), number)),
            ContentRule::PathParameter(name) => self.path_parameters.push((name, place(), number)),
            ContentRule::SegmentParameter(name) => self.segment_parameters.push((name, place(), number)),
            ContentRule::Segment(at, name) => self.segments.push((at, SoughtName::new(name), place(), number)),
            ContentRule::SegmentValue(before, shape) => {
                self.segment_values.push((ValueRule::new(&before, shape), place(), number));
            }
            _ => return,
        }
        // After a rule of another kind, nothing remains for it to apply to.
        let leaves_more = matches!(rule, ContentRule::FinalSlash | ContentRule::Segment(..));
        self.is_applied_once = !self.is_used && !leaves_more;
        self.is_used = true;
        let has_ends = self.final_slash.is_used() || !self.documents.is_empty();
        self.of_segments = match (has_ends, self.segments.len(), self.segment_values.len()) {
            (false, 0, 0) => SegmentRules::None,
            (true, 0, 0) => SegmentRules::Ends,
            (false, 1, 0) => SegmentRules::OneSegment,
            (false, 0, 1) => SegmentRules::OneValue,
            _ => SegmentRules::Several,
        };
    }

    /// Returns whether there are rules.
    #[inline(always)]
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Returns whether rules may apply to a path that they resulted in, as long as they are for all paths.
    pub(super) fn may_apply_again(&self, path: &[u8]) -> bool {
        if !self.is_used || self.is_applied_once {
            return false;
        }
        let path = PathText::masked(path);
        self.may_change_to_plain(path) || self.may_change_segments(path)
    }

    /// Returns whether rules about parameters in the path, letter case and doubled slashes may apply to a path.
    #[inline(always)]
    fn may_change_to_plain(&self, path: PathText<'_>) -> bool {
        self.path_case.is_used() && any_byte(path.path, |byte| byte.is_ascii_uppercase())
            || self.doubled_slashes.is_used() && path.has_doubled_slashes()
            || !self.path_parameters.is_empty() && path.has_semicolons()
            || !self.segment_parameters.is_empty() && any_byte(path.path, |byte| byte == b'=')
    }

    /// Returns whether a rule about segments or the final slash may apply to the path.
    fn may_change_segments(&self, path: PathText<'_>) -> bool {
        let has_slash = path.path.len() > 1 && path.path.ends_with(b"/");
        let is_there = |place, name| path.find_segment(place, name).is_some();
        self.final_slash.is_used() && has_slash
            || !has_slash && self.documents.iter().any(|(name, ..)| is_there(SegmentPlace::Last, name))
            || self.segments.iter().any(|(place, name, ..)| is_there(*place, name))
            || self.segment_values.iter().any(|(rule, ..)| path.matching_value(rule).is_some())
    }

    /// Leaves out of a path what makes no difference. Returns the plain path: without what rules about parameters in the path,
    /// letter case and doubled slashes leave out.
    #[inline(always)]
    pub(super) fn edit<'b>(
        &self,
        path: PathText<'b>,
        buffers: &'b mut PathBuffers,
        removed: &mut impl RemovalObserver,
        editor: &mut UrlEditor<'_, '_>,
    ) -> &'b [u8] {
        let PathBuffers { path: plain, segments } = buffers;
        if self.may_change_to_plain(path) {
            plain.clear();
            self.write_plain_path(path.path, plain, removed);
            if plain[..] != *path.path {
                let edit = |editor: &mut UrlEditor<'_, '_>| self.edit_plain_path(plain, segments, removed, editor);
                editor.replace(path.range(), plain, edit);
                return plain;
            }
        }
        self.edit_segments(path, segments, removed, editor);
        path.path
    }

    /// Does what [`Self::edit_segments`] does, for a plain path that is not in the URL.
    fn edit_plain_path(
        &self,
        path: &[u8],
        segments: &mut Vec<Range<usize>>,
        removed: &mut impl RemovalObserver,
        editor: &mut UrlEditor<'_, '_>,
    ) {
        self.edit_segments(PathText::masked(path), segments, removed, editor);
    }

    /// Leaves out the segments, values and final slash that rules name.
    #[inline(always)]
    fn edit_segments(
        &self,
        path: PathText<'_>,
        segments: &mut Vec<Range<usize>>,
        removed: &mut impl RemovalObserver,
        editor: &mut UrlEditor<'_, '_>,
    ) {
        match self.of_segments {
            // The root has no segments.
            SegmentRules::None => (),
            _ if path.path.len() <= 1 => (),
            SegmentRules::Ends => self.cut_end(path, removed, editor),
            SegmentRules::OneSegment => {
                for (place, name, context, number) in &self.segments {
                    if let Some(segment) = path.find_segment(*place, name).filter(|_| context.contains(path.path)) {
                        removed.add(*number, || 1);
                        editor.cut(segment);
                    }
                }
            }
            SegmentRules::OneValue => {
                for (rule, context, number) in &self.segment_values {
                    if let Some(value) = path.matching_value(rule).filter(|_| context.contains(path.path)) {
                        removed.add(*number, || xxh3_64(&path.path[value.clone()]) | 1);
                        editor.cut(path.at + value.start..path.at + value.end);
                        editor.insert(PLACEHOLDER);
                    }
                }
            }
            SegmentRules::Several => self.edit_many_segments(path, segments, removed, editor),
        }
    }

    /// Writes the path without parameters, in lower case, and without doubled slashes; makes each change only if there is a rule
    /// for it.
    fn write_plain_path(&self, path: &[u8], out: &mut Vec<u8>, removed: &mut impl RemovalObserver) {
        if self.path_parameters.is_empty() {
            append(out, path);
        } else {
            self.write_without_path_parameters(path, out, removed);
        }
        if let Some(number) = self.path_case.number_ignoring_case(out) {
            lower_case(out, number, removed);
        }
        if !self.segment_parameters.is_empty() {
            *out = self.without_segment_parameters(out, removed);
        }
        if let Some(number) = self.doubled_slashes.number(out)
            && any_pair(out, |byte, next| (byte == b'/') & (next == b'/'))
        {
            removed.add(number, || xxh3_64(out));
            out.dedup_by(|a, b| (*a, *b) == (b'/', b'/'));
        }
    }

    fn write_without_path_parameters(&self, path: &[u8], out: &mut Vec<u8>, removed: &mut impl RemovalObserver) {
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

    /// Returns the path without the segments that are parameters.
    fn without_segment_parameters(&self, path: &[u8], removed: &mut impl RemovalObserver) -> Vec<u8> {
        let mut kept = Vec::with_capacity(path.len());
        for segment in path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/') {
            let (name, value) = name_and_value(segment);
            let has_value = name.len() < segment.len();
            let is_for = |(known, context, _): &&(Vec<u8>, PathContext, u16)| known == name && context.contains(path);
            match self.segment_parameters.iter().find(is_for).filter(|_| has_value) {
                Some((.., number)) => removed.add(*number, || xxh3_64(value) | 1),
                None => {
                    kept.push(b'/');
                    append(&mut kept, segment);
                }
            }
        }
        if kept.is_empty() {
            kept.push(b'/');
        }
        kept
    }

    /// Leaves out the document and the final slash, each only if there is a rule for it. There are no other rules about segments.
    #[inline(always)]
    fn cut_end(&self, path: PathText<'_>, removed: &mut impl RemovalObserver, editor: &mut UrlEditor<'_, '_>) {
        let Range { start, end } = path.range();
        if path.path.ends_with(b"/") {
            if let Some(number) = self.final_slash.number(path.path) {
                removed.add(number, || 1);
                editor.cut(end - 1..end);
            }
            return;
        }
        for (name, context, number) in &self.documents {
            let Some(mut from) = path.last_segment(name) else { continue };
            if context.contains(path.path) {
                removed.add(*number, || 1);
                if let Some(number) = self.final_slash.number(path.path).filter(|_| from > start + 1) {
                    removed.add(number, || 1);
                    from -= 1;
                }
                return editor.cut(from..end);
            }
        }
    }

    /// Leaves out segments, values and the final slash, for any rules.
    fn edit_many_segments(
        &self,
        path: PathText<'_>,
        segments: &mut Vec<Range<usize>>,
        removed: &mut impl RemovalObserver,
        editor: &mut UrlEditor<'_, '_>,
    ) {
        segments.clear();
        segments.extend(path.segments());
        let (range, at, path) = (path.range(), path.at, path.path);
        let mut has_slash = path.ends_with(b"/") && !segments.is_empty();
        let is_segment = |segment: &Range<usize>, name: &SoughtName| name.is_at(path, segment.start, segment.len());
        let is_document = |(name, context, _): &&(SoughtName, PathContext, u16)| {
            segments.last().is_some_and(|last| is_segment(last, name)) && context.contains(path)
        };
        let mut is_changed = false;
        if let Some((.., number)) = self.documents.iter().filter(|_| !has_slash).find(is_document) {
            removed.add(*number, || 1);
            segments.pop();
            (has_slash, is_changed) = (true, true);
        }
        for (place, name, _, number) in self.segments.iter().filter(|(.., context, _)| context.contains(path)) {
            let at = match place {
                SegmentPlace::First => segments.first().map(|_| 0),
                SegmentPlace::Last => segments.len().checked_sub(1),
            };
            if let Some(at) = at.filter(|at| is_segment(&segments[*at], name)) {
                removed.add(*number, || 1);
                segments.remove(at);
                is_changed = true;
            }
        }
        is_changed |= self.replace_values(path, segments, removed);
        if let Some(number) = self.final_slash.number(path).filter(|_| has_slash && !segments.is_empty()) {
            removed.add(number, || 1);
            (has_slash, is_changed) = (false, true);
        }
        if is_changed {
            editor.cut(range);
            insert_segments(at, segments, editor);
            if has_slash || segments.is_empty() {
                editor.insert(b"/");
            }
        }
    }

    /// Replaces values of segments by the placeholder. Returns whether there are such values.
    fn replace_values(&self, path: &[u8], segments: &mut [Range<usize>], removed: &mut impl RemovalObserver) -> bool {
        let mut is_changed = false;
        for (rule, context, number) in &self.segment_values {
            let text = |segment: &Range<usize>| if *segment == REPLACED { PLACEHOLDER } else { &path[segment.clone()] };
            if rule.matches(segments.iter().map(text)) && context.contains(path) {
                let value = &mut segments[rule.len_before()];
                removed.add(*number, || xxh3_64(&path[value.clone()]) | 1);
                *value = REPLACED;
                is_changed = true;
            }
        }
        is_changed
    }
}

/// Inserts the segments of the path that is at `at`. Adjacent segments are copied together.
fn insert_segments(at: usize, segments: &[Range<usize>], editor: &mut UrlEditor<'_, '_>) {
    let mut copied = at..at;
    for segment in segments {
        if *segment == REPLACED {
            editor.insert_part(copied);
            editor.insert(b"/");
            editor.insert(PLACEHOLDER);
            copied = at..at;
        } else if !copied.is_empty() && copied.end + 1 == at + segment.start {
            copied.end = at + segment.end;
        } else {
            editor.insert_part(copied);
            editor.insert(b"/");
            copied = at + segment.start..at + segment.end;
        }
    }
    editor.insert_part(copied);
}

fn lower_case(path: &mut [u8], number: u16, removed: &mut impl RemovalObserver) {
    if !any_byte(path, |byte| byte.is_ascii_uppercase()) {
        return;
    }
    let before = xxh3_64(path);
    if !any_byte(path, |byte| byte == b'%') {
        path.make_ascii_lowercase();
        return removed.add(number, || before | 1);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what remains of a path, and what rules left out.
    fn edited(rules: &PathRules, path: PathText<'_>) -> (Vec<u8>, Vec<(u16, u64)>) {
        let (mut out, mut removed) = (b"before".to_vec(), Vec::new());
        let mut editor = UrlEditor::new(path.text, &mut out);
        rules.edit(path, &mut PathBuffers::default(), &mut removed, &mut editor);
        editor.finish(path.path.len());
        (out.split_off(6), removed)
    }

    #[test]
    fn the_ways_for_some_rules_do_what_the_one_for_any_rules_does() {
        let ways: [&[&str]; 14] = [
            &["ignore-final-slash"],
            &["/b/: ignore-final-slash"],
            &["ignore-document index.html"],
            &["ignore-document b", "/b/: ignore-document index.html"],
            &["ignore-document index.html", "ignore-final-slash", "ignore-document b"],
            &["ignore-document index.html", "/b/: ignore-final-slash", "ignore-doubled-slashes"],
            &["ignore-segment /b/..."],
            &["ignore-segment .../index.html"],
            &["/b/: ignore-segment .../a-long-name", "ignore-path-parameter sid"],
            &["ignore-segment /a-long-name/..."],
            &["ignore-segment-value /*"],
            &["ignore-segment-value /b/<hex>"],
            &["ignore-segment-value /#/b/*", "ignore-path-case"],
            &["/b/: ignore-segment-value /*/<number>"],
        ];
        let long = "b".repeat(70);
        let segments = ["", "b", "B", "index.html", "12", "*", "0123456789abcdef", "a-long-name", "b;sid=1", &long];
        let (mut changed, mut kept) = (0, 0);
        for texts in ways {
            let mut rules = PathRules::default();
            for (number, text) in (0..).zip(texts) {
                rules.add(&ScopedRule::parse(text), number);
            }
            assert_ne!(rules.of_segments, SegmentRules::Several);
            let any = PathRules { of_segments: SegmentRules::Several, ..rules.clone() };
            for (a, b, c) in segments.iter().flat_map(|a| segments.map(|b| segments.map(|c| (a, b, c)))).flatten() {
                for path in [format!("/{a}"), format!("/{a}/{b}"), format!("/{a}/{b}/{c}"), format!("/{a}/{b}/{c}/")] {
                    let path = path.as_bytes();
                    let expected = edited(&any, PathText::of(path));
                    for text in [PathText::of(path), PathText::masked(path)] {
                        assert_eq!(edited(&rules, text), expected, "{texts:?} {}", String::from_utf8_lossy(path));
                    }
                    // What remains is changed again only if the rules report that they may apply to it.
                    let again = edited(&rules, PathText::of(&expected.0)).0;
                    let is_settled = again == expected.0;
                    assert!(is_settled || texts[0].starts_with('/') || rules.may_apply_again(&expected.0), "{texts:?}");
                    (changed, kept) = (changed + u32::from(expected.0 != path), kept + u32::from(expected.0 == path));
                }
            }
        }
        assert!(changed > 5_000 && kept > 5_000, "{changed} {kept}");
    }
}
