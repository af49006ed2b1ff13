//! Applies rules about content to URLs: [`ContentRuleSet`].

use super::rule::{ContentRule, PathContext, ScopedRule, SegmentPlace, ValueShape, ends_segment};
use super::url_parts::{UrlParts, is_general_form, name_and_value};
use crate::kernel::{any_byte, any_pair, append, append_some, find_byte, positions};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Most segments before one whose value makes no difference.
pub(super) const MAX_SEGMENTS_BEFORE: usize = 3;

/// What a rule removed from a URL, or `NOTHING`. It tells apart the URLs that the rule makes equal.
pub(crate) type Removed = u64;

/// Takes note of the rules that change a URL.
pub(crate) trait RemovalLog {
    /// A rule, by its number, removed something.
    fn add(&mut self, rule: u16, removed: impl FnOnce() -> Removed);
}

/// Collects what each rule removed from a URL: number of the rule and hash of the text.
pub(super) type RemovedByRule = Vec<(u16, Removed)>;

impl RemovalLog for RemovedByRule {
    fn add(&mut self, rule: u16, removed: impl FnOnce() -> Removed) {
        self.push((rule, removed()));
    }
}

/// Whether applying the rules to their result may change it again.
struct Repetition<'a> {
    rules: &'a [u16],
    is_needed: bool,
}

impl RemovalLog for Repetition<'_> {
    fn add(&mut self, rule: u16, _removed: impl FnOnce() -> Removed) {
        self.is_needed |= self.rules.contains(&rule);
    }
}

/// Rules in the form that they are applied in. The number of a rule is its place in the list that the set was made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContentRuleSet {
    scheme: Option<u16>,
    doubled_slashes: Option<u16>,
    final_slash: Option<u16>,
    path_case: Option<u16>,
    parameter_order: Option<u16>,
    empty_parameters: Option<u16>,
    fragment: Option<u16>,
    documents: Vec<(Vec<u8>, u16)>,
    path_parameters: Vec<(Vec<u8>, u16)>,
    segments: Vec<(SegmentPlace, Vec<u8>, u16)>,
    segment_values: Vec<(Vec<Vec<u8>>, Option<ValueShape>, u16)>,
    parameters: Vec<(Vec<u8>, Option<ValueShape>, PathContext, u16)>,
    queries: Vec<(PathContext, u16)>,
    kept: Vec<Vec<u8>>,
    same_as: [Option<(bool, Vec<u8>, u16)>; 2],
    /// Rules after which others, or the same one again, may apply.
    repeated: Vec<u16>,
    /// There are rules about paths, and about queries.
    has_path_rules: bool,
    has_query_rules: bool,
    /// There are rules for some paths only.
    has_contexts: bool,
    count: u16,
}

/// Buffers for [`ContentRuleSet::write`].
#[derive(Debug, Default)]
pub(crate) struct RuleBuffers {
    path: Vec<u8>,
    /// Where the segments are in `path`.
    segments: Vec<Range<usize>>,
    /// Where the remaining parameters are in the query.
    parameters: Vec<Range<usize>>,
}

impl ContentRuleSet {
    /// Returns the set of these rules. A later rule about the same part replaces an earlier one.
    pub(crate) fn new<'r>(rules: impl IntoIterator<Item = &'r ScopedRule>) -> ContentRuleSet {
        let mut set = ContentRuleSet::default();
        rules.into_iter().for_each(|rule| set.add(rule));
        set
    }

    /// Adds a rule, with the next number.
    pub(crate) fn add(&mut self, ScopedRule { rule, context }: &ScopedRule) {
        let number = self.count;
        self.count = self.count.saturating_add(1);
        if rule.is_repeated() {
            self.repeated.push(number);
        }
        self.has_path_rules |= rule.is_about_paths();
        self.has_query_rules |= rule.is_about_queries();
        self.has_contexts |= *context != PathContext::Any;
        match rule.clone() {
            ContentRule::Scheme => self.scheme = Some(number),
            ContentRule::DoubledSlashes => self.doubled_slashes = Some(number),
            ContentRule::FinalSlash => self.final_slash = Some(number),
            ContentRule::PathCase => self.path_case = Some(number),
            ContentRule::ParameterOrder => self.parameter_order = Some(number),
            ContentRule::EmptyParameters => self.empty_parameters = Some(number),
            ContentRule::Fragment => self.fragment = Some(number),
            ContentRule::Document(name) => self.documents.push((name, number)),
            ContentRule::PathParameter(name) => self.path_parameters.push((name, number)),
            ContentRule::Segment(place, name) => self.segments.push((place, name, number)),
            ContentRule::SegmentValue(before, shape) => self.segment_values.push((before, shape, number)),
            ContentRule::Parameter(name, shape) => self.parameters.push((name, shape, context.clone(), number)),
            ContentRule::Query => self.queries.push((context.clone(), number)),
            ContentRule::KeepParameter(name) => self.kept.push(name),
            ContentRule::SameAs { from_https, is_https, host } => {
                for from in [false, true] {
                    if from_https.is_none_or(|only| only == from) {
                        self.same_as[usize::from(from)] = Some((is_https, host.clone(), number));
                    }
                }
            }
        }
    }

    /// Returns whether a rule of this set says that the parameter matters.
    pub(crate) fn keeps(&self, name: &[u8]) -> bool {
        self.kept.iter().any(|kept| kept == name)
    }

    /// Returns whether `url` has what a rule about anything but paths is about.
    #[inline]
    fn may_change_besides_path(&self, url: &UrlParts<'_>) -> bool {
        self.same_as[usize::from(url.is_https)].is_some()
            || self.scheme.is_some() && !url.is_https
            || self.has_query_rules && url.query.is_some()
            || self.fragment.is_some() && url.fragment.is_some()
    }

    /// Returns whether a rule about paths applies to `path`, or the path lacks its slash.
    #[inline]
    fn changes_path(&self, path: &[u8]) -> bool {
        if !self.has_path_rules || path.is_empty() {
            return path.is_empty();
        }
        let inner = path.strip_prefix(b"/").unwrap_or(path);
        let has_slash = inner.ends_with(b"/");
        let trimmed = inner.strip_suffix(b"/").unwrap_or(inner);
        let is_last = |name: &[u8]| trimmed.strip_suffix(name).is_some_and(|rest| matches!(rest, [] | [.., b'/']));
        self.final_slash.is_some() && has_slash
            || self.path_case.is_some() && any_byte(path, |byte| byte.is_ascii_uppercase())
            || self.doubled_slashes.is_some() && any_pair(path, |byte, next| (byte == b'/') & (next == b'/'))
            || !self.path_parameters.is_empty() && any_byte(path, |byte| byte == b';')
            || self.documents.iter().any(|(name, _)| !has_slash && is_last(name))
            || self.segments.iter().any(|(place, name, _)| match place {
                SegmentPlace::First => trimmed.strip_prefix(&name[..]).is_some_and(ends_segment),
                SegmentPlace::Last => is_last(name),
            })
            || !inner.is_empty()
                && self.segment_values.iter().any(|(before, shape, _)| {
                    matching_value((before, *shape), trimmed.split(|byte| *byte == b'/')).is_some()
                })
    }

    /// Writes the form of `url` that is the same for all URLs that the rules make equal, and adds to `removed` what each
    /// rule removed. Applying the rules to the form again changes nothing, or what was left at its ends.
    pub(crate) fn write(
        &self,
        url: &UrlParts<'_>,
        buffers: &mut RuleBuffers,
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) {
        let _ = self.write_parts((url, self.changes_path(url.path)), buffers, removed, out);
    }

    /// Does what [`Self::write`] does. `changes_path` says whether rules about paths apply. Returns where the path is in `out`.
    #[inline]
    fn write_parts(
        &self,
        (url, changes_path): (&UrlParts<'_>, bool),
        buffers: &mut RuleBuffers,
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) -> Range<usize> {
        out.clear();
        self.write_origin(url, removed, out);
        let path_at = out.len();
        let RuleBuffers { path, segments, parameters } = buffers;
        let context = if changes_path {
            path.clear();
            self.write_plain_path(url.path, path, removed);
            let len = path.len();
            self.write_segments((&mut *path, segments), removed, out);
            &path[..len]
        } else {
            append(out, url.path);
            url.path
        };
        let written_path = path_at..out.len();
        if url.query.is_some() {
            self.write_query((url, context), parameters, removed, out);
        }
        if let Some(fragment) = url.fragment {
            match self.fragment {
                Some(number) => removed.add(number, || xxh3_64(fragment)),
                None => {
                    out.push(b'#');
                    append(out, fragment);
                }
            }
        }
        written_path
    }

    fn write_origin(&self, url: &UrlParts<'_>, removed: &mut impl RemovalLog, out: &mut Vec<u8>) {
        let UrlParts { mut is_https, mut authority, .. } = *url;
        if let Some(number) = self.scheme.filter(|_| url.has_host_name_only()) {
            removed.add(number, || 1 + u64::from(is_https));
            is_https = true;
        }
        if let Some((to_https, host, number)) = self.same_as[usize::from(url.is_https)].as_ref()
            && url.has_host_name_only()
        {
            removed.add(*number, || xxh3_64(authority));
            (is_https, authority) = (*to_https, host);
        }
        let (scheme, len) = if is_https { (*b"https://", 8) } else { (*b"http://\0", 7) };
        append_some(out, scheme, len);
        append(out, authority);
    }

    /// Does what [`Self::write`] does, and returns whether the rules are to be applied to the result again. Writes nothing and
    /// returns `None` if the URL has nothing that a rule is about.
    #[inline]
    pub(crate) fn rewrite(&self, url: &UrlParts<'_>, buffers: &mut RuleBuffers, out: &mut Vec<u8>) -> Option<bool> {
        let changes_path = self.changes_path(url.path);
        if !changes_path && !self.may_change_besides_path(url) {
            return None;
        }
        let mut repetition = Repetition { rules: &self.repeated, is_needed: false };
        let path = self.write_parts((url, changes_path), buffers, &mut repetition, out);
        let is_repeated = repetition.is_needed && (self.depends_on_paths_or_hosts() || self.changes_path(&out[path]));
        Some(is_repeated)
    }

    /// Returns whether another path, scheme or host may have the effect that other rules apply.
    fn depends_on_paths_or_hosts(&self) -> bool {
        self.has_contexts || self.same_as.iter().any(Option::is_some)
    }

    /// Writes the path without path parameters, in lower case, and without doubled slashes, as far as rules say so.
    fn write_plain_path(&self, path: &[u8], out: &mut Vec<u8>, removed: &mut impl RemovalLog) {
        if self.path_parameters.is_empty() {
            append(out, path);
        } else {
            self.write_without_path_parameters(path, out, removed);
        }
        if let Some(number) = self.path_case {
            lower_case(out, number, removed);
        }
        if let Some(number) = self.doubled_slashes
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
            if let Some((_, number)) = self.path_parameters.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
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
        let is_document =
            |(name, _): &&(Vec<u8>, u16)| segments.last().is_some_and(|last| name[..] == path[last.clone()]);
        if let Some((_, number)) = self.documents.iter().filter(|_| !has_slash).find(is_document) {
            removed.add(*number, || 1);
            segments.pop();
            has_slash = true;
        }
        for (place, name, number) in &self.segments {
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
        match self.final_slash {
            _ if segments.is_empty() => out.push(b'/'),
            Some(number) if has_slash => removed.add(number, || 1),
            _ if has_slash => out.push(b'/'),
            _ => (),
        }
    }

    /// Replaces values of segments by `*`, which is added to the end of `path`.
    fn replace_values(&self, path: &mut Vec<u8>, segments: &mut [Range<usize>], removed: &mut impl RemovalLog) {
        for (before, shape, number) in &self.segment_values {
            let texts = segments.iter().map(|segment| &path[segment.clone()]);
            if let Some(value) = matching_value((before, *shape), texts) {
                removed.add(*number, || xxh3_64(value) | 1);
                segments[before.len()] = path.len()..path.len() + 1;
                path.push(b'*');
            }
        }
    }

    /// Writes the query of a URL with this path without the parameters that make no difference.
    fn write_query(
        &self,
        (url, path): (&UrlParts<'_>, &[u8]),
        kept: &mut Vec<Range<usize>>,
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) {
        let query = url.query.unwrap_or_default();
        if let Some((_, number)) = self.queries.iter().find(|(context, _)| context.contains(path)) {
            return removed.add(*number, || xxh3_64(query) | 1);
        }
        kept.clear();
        let (mut at, mut all) = (0, 0);
        for end in url.ampersands().chain([query.len()]) {
            all += 1;
            let parameter = &query[at..end];
            match self.rule_of_parameter(parameter, path) {
                Some(number) => removed.add(number, || xxh3_64(parameter) | 1),
                None => kept.push(at..end),
            }
            at = end + 1;
        }
        if let Some(number) = self.parameter_order.filter(|_| kept.len() > 1) {
            removed.add(number, || {
                let hash = |order: u64, range: &Range<usize>| {
                    xxh3_64(&[order, xxh3_64(&query[range.clone()])].map(u64::to_le_bytes).concat())
                };
                kept.iter().fold(0, hash) | 1
            });
            kept.sort_by(|a, b| query[a.clone()].cmp(&query[b.clone()]));
        }
        if kept.is_empty() && all > 0 && (all > 1 || !query.is_empty() || self.empty_parameters.is_some()) {
            return;
        }
        out.push(b'?');
        for (i, parameter) in kept.iter().enumerate() {
            if i > 0 {
                out.push(b'&');
            }
            append(out, &query[parameter.clone()]);
        }
    }

    /// Returns the number of the rule by which the parameter makes no difference.
    fn rule_of_parameter(&self, parameter: &[u8], path: &[u8]) -> Option<u16> {
        if parameter.is_empty() {
            return self.empty_parameters;
        }
        let is_for = |(known, shape, context, _): &&(Vec<u8>, Option<ValueShape>, PathContext, u16)| {
            let value = match parameter.strip_prefix(&known[..]) {
                Some([b'=', value @ ..]) => value,
                Some([]) => b"",
                _ => return false,
            };
            shape.is_none_or(|shape| ValueShape::of(value) == shape) && context.contains(path)
        };
        let (.., number) = self.parameters.iter().find(is_for)?;
        Some(*number).filter(|_| self.kept.is_empty() || !self.keeps(name_and_value(parameter).0))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rules: &[&str]) -> ContentRuleSet {
        let rules = rules.iter().map(|text| {
            let (context, rule) = text.split_once(": ").unwrap_or(("", text));
            ScopedRule { rule: ContentRule::parse(rule).unwrap(), context: PathContext::parse(context).unwrap() }
        });
        ContentRuleSet::new(&rules.collect::<Vec<ScopedRule>>())
    }

    fn form(rules: &[&str], uri: &str) -> String {
        let (mut out, url) = (Vec::new(), UrlParts::of(uri.as_bytes()).unwrap());
        set(rules).write(&url, &mut RuleBuffers::default(), &mut Vec::new(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rules_remove_what_they_name() {
        let cases: [(&[&str], &str, &str); 27] = [
            (&[], "http://a/b//c/?x=1&&y#z", "http://a/b//c/?x=1&&y#z"),
            (&["ignore-scheme"], "http://a/", "https://a/"),
            (&["ignore-scheme"], "http://a:8080/", "http://a:8080/"),
            (&["ignore-doubled-slashes"], "http://a//b///c/", "http://a/b/c/"),
            (&["ignore-final-slash"], "http://a/b/", "http://a/b"),
            (&["ignore-final-slash"], "http://a/", "http://a/"),
            (&["ignore-path-case"], "http://a/B%C3%BC/X?Q", "http://a/b%C3%BC/x?Q"),
            (&["ignore-document index.html"], "http://a/b/index.html?q", "http://a/b/?q"),
            (&["ignore-document index.html"], "http://a/index.html", "http://a/"),
            (&["ignore-document index.html", "ignore-final-slash"], "http://a/b/index.html", "http://a/b"),
            (&["ignore-path-parameter jsessionid"], "http://a/b;jsessionid=1F/c;v=1?q", "http://a/b/c;v=1?q"),
            (&["ignore-segment /print/..."], "http://a/print/b", "http://a/b"),
            (&["ignore-segment .../amp"], "http://a/b/amp/", "http://a/b/"),
            (&["ignore-segment-value /shop/<hex>"], "http://a/shop/0123456789abcdef/x", "http://a/shop/*/x"),
            (&["ignore-segment-value /shop/<hex>"], "http://a/shop/new/x", "http://a/shop/new/x"),
            (&["ignore-segment-value /a/#/*"], "http://a/a/12/some-words", "http://a/a/12/*"),
            (&["ignore-parameter sid"], "http://a/?sid=1&x=2", "http://a/?x=2"),
            (&["ignore-parameter sid"], "http://a/?sid=1", "http://a/"),
            (&["ignore-parameter sid=<uuid>"], "http://a/?sid=1", "http://a/?sid=1"),
            (&["/shop/: ignore-parameter sid"], "http://a/shop/b?sid=1", "http://a/shop/b"),
            (&["/shop/: ignore-parameter sid"], "http://a/b?sid=1", "http://a/b?sid=1"),
            (&["*.css: ignore-query"], "http://a/b.css?123", "http://a/b.css"),
            (&["ignore-parameter-order"], "http://a/?c&a=2&b", "http://a/?a=2&b&c"),
            (&["ignore-empty-parameters"], "http://a/?", "http://a/"),
            (&["ignore-empty-parameters"], "http://a/?&a&&b&", "http://a/?a&b"),
            (&["ignore-fragment"], "http://a/#!x", "http://a/"),
            (&["ignore-parameter x", "keep-parameter x"], "http://a/?x=1", "http://a/?x=1"),
        ];
        for (rules, uri, want) in cases {
            assert_eq!(form(rules, uri), want, "{rules:?} {uri}");
            assert_eq!(form(rules, want), want, "{rules:?} {want}");
        }
        assert_eq!(form(&["ignore-fragment"], "http://a/?#x"), "http://a/?");
        assert_eq!(form(&["same-as https://www.a", "ignore-final-slash"], "http://a/x/"), "https://www.a/x");
    }

    #[test]
    fn urls_that_have_nothing_that_a_rule_is_about_do_not_change() {
        let rules = [
            "ignore-scheme",
            "ignore-doubled-slashes",
            "ignore-final-slash",
            "ignore-path-case",
            "ignore-document index.html",
            "ignore-path-parameter sid",
            "ignore-segment /b/...",
            "ignore-segment .../b",
            "ignore-segment-value /b/*",
            "ignore-segment-value /<number>",
            "ignore-segment-value /*",
            "ignore-parameter sid",
            "ignore-query",
            "ignore-parameter-order",
            "ignore-empty-parameters",
            "ignore-fragment",
            "same-as https://c",
            "keep-parameter sid",
        ];
        let segments = ["", "b", "B", "index.html", "x;sid=1", "12", "*", "%C3", "bb"];
        let ends = ["", "?", "?x=1&sid=2", "?sid", "#b", "?a&&b#"];
        let (mut changed, mut skipped) = (0, 0);
        for rule in rules {
            let set = set(&[rule]);
            let (mut buffers, mut out) = (RuleBuffers::default(), Vec::new());
            for (a, b, c) in segments.iter().flat_map(|a| segments.map(|b| segments.map(|c| (a, b, c)))).flatten() {
                for path in [format!("/{a}"), format!("/{a}/{b}"), format!("/{a}/{b}/{c}")] {
                    for uri in ends.iter().map(|end| format!("http://a{path}{end}")) {
                        let url = UrlParts::of(uri.as_bytes()).unwrap();
                        set.write(&url, &mut buffers, &mut Vec::new(), &mut out);
                        let is_rewritten = set.rewrite(&url, &mut buffers, &mut Vec::new()).is_some();
                        assert!(out == uri.as_bytes() || is_rewritten, "{rule} {uri}");
                        changed += usize::from(out != uri.as_bytes());
                        skipped += usize::from(!is_rewritten);
                    }
                }
            }
        }
        assert!(changed > 10_000 && skipped > 50_000, "{changed} {skipped}");
    }
}
