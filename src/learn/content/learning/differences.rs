//! What two URLs of a host with equal contents differ in: the rules by which they would be equal. [`find_differences`].

use super::super::path_rules::MAX_SEGMENTS_BEFORE;
use super::super::rule::{ContentRule, PathContext, ScopedRule, SegmentPlace, extension_of};
use super::super::url_parts::{UrlParts, general_segment, name_and_value, parameters_of};
use super::super::value_shape::ValueShape;
use std::collections::{BTreeMap, BTreeSet};

/// Last segments that often name their directory.
const DOCUMENTS: [&[u8]; 14] = [
    b"index.html",
    b"index.htm",
    b"index.php",
    b"index.asp",
    b"index.aspx",
    b"index.jsp",
    b"index.shtml",
    b"index.cgi",
    b"default.html",
    b"default.htm",
    b"default.asp",
    b"default.aspx",
    b"home.html",
    b"index",
];

/// Maximum number of query parameters in which two spellings of one URL differ.
const MAX_PARAMETERS: usize = 8;

/// Maximum number of path parameters, and of segments with a name, in which two spellings of one URL differ.
const MAX_PATH_RULES: usize = 64;

/// Maximum number of segments of the context of a rule.
const MAX_CONTEXT_SEGMENTS: usize = 3;

/// Returns whether a rule may be about a parameter or segment with this name.
pub(super) fn is_rule_name(name: &[u8]) -> bool {
    const MAX_LEN: usize = 64;
    !name.is_empty() && name.len() <= MAX_LEN
}

/// Rules that explain a difference.
#[derive(Clone, Debug, Default)]
pub(super) struct Differences {
    /// The rules by which the URLs would be equal.
    pub(super) rules: Vec<ScopedRule>,
    /// Narrower rules, which are tried if one of those is refused.
    pub(super) narrower: Vec<ScopedRule>,
    /// Contexts in which the whole query may make no difference, with the name of a parameter that differs.
    pub(super) queries: Vec<(PathContext, Vec<u8>)>,
}

/// Which rules are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DifferenceDetail {
    /// Only [`Differences::rules`].
    Rules,
    /// All of [`Differences`].
    All,
}

/// Returns the rules by which two URLs of one host would be equal; `None` if no rules can explain their difference.
pub(super) fn find_differences(a: &UrlParts<'_>, b: &UrlParts<'_>, detail: DifferenceDetail) -> Option<Differences> {
    let mut found = Differences::default();
    if a.is_https() != b.is_https() {
        let is_possible = a.has_host_name_only() && b.has_host_name_only();
        found.rules.push(is_possible.then_some(ContentRule::Scheme)?.into());
    }
    if a.fragment() != b.fragment() {
        found.rules.push(ContentRule::Fragment.into());
    }
    if a.path() != b.path() {
        compare_paths(a.path(), b.path(), &mut found.rules)?;
    }
    if a.query() != b.query() {
        compare_queries(a, b, detail, &mut found)?;
    }
    if detail == DifferenceDetail::All {
        add_contexts(a.path(), b.path(), &mut found);
    }
    Some(found)
}

/// Adds the rules for some paths only, those that contain both.
fn add_contexts(a: &[u8], b: &[u8], found: &mut Differences) {
    let is_limited = |rule: &&ScopedRule| {
        let has_places = matches!(
            rule.rule,
            ContentRule::Scheme
                | ContentRule::FinalSlash
                | ContentRule::PathCase
                | ContentRule::DoubledSlashes
                | ContentRule::Document(_)
                | ContentRule::PathParameter(_)
                | ContentRule::SegmentParameter(_)
                | ContentRule::ParameterOrder
                | ContentRule::EmptyParameters
        );
        has_places && rule.context == PathContext::Any
    };
    if !found.rules.iter().any(|rule| is_limited(&rule)) {
        return;
    }
    let is_case_ignored = found.rules.iter().any(|rule| rule.rule == ContentRule::PathCase);
    let contexts = contexts(&if is_case_ignored { a.to_ascii_lowercase() } else { a.to_vec() });
    let is_common = |context: &&PathContext| match context {
        PathContext::Prefix(_) if is_case_ignored => context.contains_ignoring_case(b),
        PathContext::Prefix(_) => context.contains(b),
        _ => false,
    };
    let contexts: Vec<&PathContext> = contexts.iter().filter(is_common).collect();
    let limited = found.rules.iter().filter(is_limited).flat_map(|ScopedRule { rule, .. }| {
        contexts.iter().map(|context| ScopedRule { rule: rule.clone(), context: (*context).clone() })
    });
    found.narrower.extend(limited);
}

fn compare_paths(a: &[u8], b: &[u8], rules: &mut Vec<ScopedRule>) -> Option<()> {
    let [(mut a, a_parameters), (mut b, b_parameters)] = [a, b].map(without_path_parameters);
    for name in a_parameters.keys().chain(b_parameters.keys()) {
        if a_parameters.get(name) != b_parameters.get(name) {
            push(rules, is_rule_name(name).then(|| ContentRule::PathParameter(name.clone()))?);
            (rules.len() <= MAX_PATH_RULES).then_some(())?;
        }
    }
    remove_segment_parameters(&mut a, &mut b, rules)?;
    if a == b {
        return Some(());
    }
    let has_doubled_slashes = |path: &[u8]| path.windows(2).any(|pair| pair == b"//");
    if has_doubled_slashes(&a) != has_doubled_slashes(&b) {
        rules.push(ContentRule::DoubledSlashes.into());
        [&mut a, &mut b].into_iter().for_each(|path| path.dedup_by(|a, b| (*a, *b) == (b'/', b'/')));
    }
    let before = rules.len();
    let is_explained = compare_segments(&a, &b, rules).is_some();
    // Segments that differ in letter case only have no values.
    let has_value = rules[before..].iter().any(|rule| matches!(rule.rule, ContentRule::SegmentValue(..)));
    if is_explained && !(has_value && a.eq_ignore_ascii_case(&b)) {
        return Some(());
    }
    rules.truncate(before);
    let lower = [&a, &b].map(|path| path.to_ascii_lowercase());
    if lower == [a, b] {
        return None;
    }
    rules.push(ContentRule::PathCase.into());
    compare_segments(&lower[0], &lower[1], rules)
}

fn push(rules: &mut Vec<ScopedRule>, rule: ContentRule) {
    let rule = ScopedRule::from(rule);
    if !rules.contains(&rule) {
        rules.push(rule);
    }
}

/// Returns the path without path parameters, and these by their names in lower case.
fn without_path_parameters(path: &[u8]) -> (Vec<u8>, BTreeMap<Vec<u8>, Vec<u8>>) {
    let (mut rest, mut parameters) = (Vec::with_capacity(path.len()), BTreeMap::new());
    for (i, segment) in path.split(|byte| *byte == b'/').enumerate() {
        rest.extend_from_slice(if i > 0 { b"/" } else { b"" });
        let mut parts = segment.split(|byte| *byte == b';');
        rest.extend_from_slice(parts.next().unwrap_or_default());
        for (name, value) in parts.map(name_and_value) {
            parameters.insert(name.to_ascii_lowercase(), value.to_vec());
        }
    }
    (rest, parameters)
}

/// Adds rules for the segments `name=value` in which two paths differ, and removes these segments; `None` if they are too many.
fn remove_segment_parameters(a: &mut Vec<u8>, b: &mut Vec<u8>, rules: &mut Vec<ScopedRule>) -> Option<()> {
    let names = {
        let [a, b] = [&*a, &*b].map(|path| segment_parameters(path));
        let differing = a.keys().chain(b.keys()).filter(|name| a.get(*name) != b.get(*name));
        differing.map(|name| name.to_vec()).collect::<BTreeSet<_>>()
    };
    if names.len() > MAX_PATH_RULES {
        return None;
    }
    let is_kept = |segment: &&[u8]| !segment.contains(&b'=') || !names.contains(name_and_value(segment).0);
    for path in [a, b].into_iter().filter(|_| !names.is_empty()) {
        let kept: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(is_kept).collect();
        let kept = kept.join(&b'/');
        *path = if kept.is_empty() { b"/".to_vec() } else { kept };
    }
    names.into_iter().for_each(|name| push(rules, ContentRule::SegmentParameter(name)));
    Some(())
}

/// Returns the values of the segments `name=value` of a path, those of one name in their order.
fn segment_parameters(path: &[u8]) -> BTreeMap<&[u8], Vec<&[u8]>> {
    let mut parameters: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
    for segment in path.split(|byte| *byte == b'/').filter(|segment| segment.contains(&b'=')) {
        let (name, value) = name_and_value(segment);
        if is_rule_name(name) {
            parameters.entry(name).or_default().push(value);
        }
    }
    parameters
}

/// A path in segments, and how it ends.
struct PathEnd<'a> {
    segments: Vec<&'a [u8]>,
    document: Option<&'a [u8]>,
    has_slash: bool,
}

impl PathEnd<'_> {
    fn of(path: &[u8]) -> PathEnd<'_> {
        let mut segments: Vec<&[u8]> = path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/').collect();
        let (mut has_slash, mut document) = (false, None);
        match segments.last().copied() {
            Some(b"") => {
                segments.pop();
                has_slash = !segments.is_empty();
            }
            Some(last) if DOCUMENTS.iter().any(|known| last.eq_ignore_ascii_case(known)) => {
                document = segments.pop();
                has_slash = !segments.is_empty();
            }
            _ => (),
        }
        PathEnd { segments, document, has_slash }
    }
}

fn compare_segments(a: &[u8], b: &[u8], rules: &mut Vec<ScopedRule>) -> Option<()> {
    let [a, b] = [a, b].map(PathEnd::of);
    if a.document != b.document {
        let documents = a.document.into_iter().chain(b.document);
        documents.for_each(|name| push(rules, ContentRule::Document(name.to_vec())));
    }
    if a.has_slash != b.has_slash && !a.segments.is_empty() && !b.segments.is_empty() {
        push(rules, ContentRule::FinalSlash);
    }
    let (short, long) =
        if a.segments.len() <= b.segments.len() { (a.segments, b.segments) } else { (b.segments, a.segments) };
    match long.len() - short.len() {
        0 => compare_values(&short, &long, rules),
        1 => push(rules, left_out(&short, &long)?),
        _ => return None,
    }
    Some(())
}

/// Adds rules for the segments whose values differ. Rules that are too many or not possible are left out: then the URLs stay
/// apart.
fn compare_values(a: &[&[u8]], b: &[&[u8]], rules: &mut Vec<ScopedRule>) {
    for at in (0..a.len()).filter(|at| a[*at] != b[*at]) {
        if at > MAX_SEGMENTS_BEFORE {
            continue;
        }
        // A value before this one that differs as well makes no difference either. What replaces it is neither a name nor a
        // number.
        let general = |(a, b): (&&[u8], &&[u8])| if a == b { general_segment(a).to_vec() } else { b"*".to_vec() };
        let before = a[..at].iter().zip(b).map(general).collect();
        let shapes = [a[at], b[at]].map(ValueShape::of);
        let shape = (shapes[0] == shapes[1] && shapes[0].is_made()).then_some(shapes[0]);
        push(rules, ContentRule::SegmentValue(before, shape));
    }
}

/// Returns the rule for the segment of `long` without which it is `short`.
fn left_out(short: &[&[u8]], long: &[&[u8]]) -> Option<ContentRule> {
    let is_name = |name: &&[u8]| !name.is_empty() && name.len() <= 20 && ValueShape::of(name) == ValueShape::Other;
    let (first, last) = (long.first()?, long.last()?);
    if long[1..] == *short {
        return Some(*first).filter(is_name).map(|name| ContentRule::Segment(SegmentPlace::First, name.to_vec()));
    }
    let is_last = long[..long.len() - 1] == *short && !short.is_empty();
    is_last.then_some(*last).filter(is_name).map(|name| ContentRule::Segment(SegmentPlace::Last, name.to_vec()))
}

fn compare_queries(
    a: &UrlParts<'_>,
    b: &UrlParts<'_>,
    detail: DifferenceDetail,
    found: &mut Differences,
) -> Option<()> {
    let lists = [a, b].map(|url| url.query().map_or(Vec::new(), |query| parameters_of(query).collect::<Vec<_>>()));
    let counts = lists.each_ref().map(|list| list.iter().filter(|parameter| parameter.is_empty()).count());
    if counts[0] != counts[1] {
        push(&mut found.rules, ContentRule::EmptyParameters);
    }
    let differing = differing_names(&lists);
    if differing.len() > MAX_PARAMETERS {
        return None;
    }
    let names = differing.iter().filter(|name| is_rule_name(name));
    names.for_each(|name| push(&mut found.rules, ContentRule::Parameter(name.to_vec(), None)));
    if detail == DifferenceDetail::All {
        let contexts = contexts(a.path());
        for name in &differing {
            let parameters = lists.iter().flatten().map(|parameter| name_and_value(parameter));
            let values = parameters.filter(|(other, _)| other == name).map(|(_, value)| value);
            narrower_rules(name, values, &contexts, found);
        }
        for context in contexts.iter().chain([&PathContext::Any]) {
            found.queries.extend(differing.iter().map(|name| (context.clone(), name.to_vec())));
        }
    }
    let kept = lists.each_ref().map(|list| {
        list.iter()
            .filter(|parameter| !parameter.is_empty() && differing.binary_search(&name_and_value(parameter).0).is_err())
    });
    let [a, b] = kept;
    if !a.eq(b) {
        push(&mut found.rules, ContentRule::ParameterOrder);
    }
    Some(())
}

/// Returns the names of parameters whose values differ, in order.
fn differing_names<'a>(lists: &[Vec<&'a [u8]>; 2]) -> Vec<&'a [u8]> {
    let of_names = |list: &Vec<&'a [u8]>| {
        let parameters = list.iter().filter(|parameter| !parameter.is_empty());
        parameters.map(|parameter| name_and_value(parameter)).collect::<Vec<_>>()
    };
    let [mut a, mut b] = lists.each_ref().map(of_names);
    let names_are_equal = a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.0 == b.0);
    let mut differing: Vec<&[u8]> = if names_are_equal {
        a.iter().zip(&b).filter(|(a, b)| a != b).map(|(a, _)| a.0).collect()
    } else {
        // Parameters of one name stay in their order.
        [&mut a, &mut b].into_iter().for_each(|list| list.sort_by_key(|(name, _)| *name));
        let values = |list: &[(&'a [u8], &'a [u8])], name: &[u8]| {
            let from = list.partition_point(|(other, _)| *other < name);
            let values = list[from..].iter().take_while(|(other, _)| *other == name);
            values.map(|(_, value)| *value).collect::<Vec<_>>()
        };
        let mut all: Vec<&[u8]> = a.iter().chain(&b).map(|(name, _)| *name).collect();
        all.sort_unstable();
        all.dedup();
        all.into_iter().filter(|name| values(&a, name) != values(&b, name)).collect()
    };
    differing.sort_unstable();
    differing.dedup();
    differing
}

/// The narrower contexts of a path.
fn contexts(path: &[u8]) -> Vec<PathContext> {
    let segments: Vec<&[u8]> = path.split(|byte| *byte == b'/').skip(1).collect();
    let extension = segments.last().and_then(|last| extension_of(last));
    // Numbers and identifiers name pages, but not parts of a site.
    let is_name =
        |(at, name): &(usize, &&[u8])| is_rule_name(name) && (*at == 0 || ValueShape::of(name) == ValueShape::Other);
    let names = segments.iter().enumerate().take_while(is_name).count();
    let first = (1..=names.min(MAX_CONTEXT_SEGMENTS)).map(|len| PathContext::Prefix(segments[..len].join(&b'/')));
    first.chain(extension.map(|extension| PathContext::Extension(extension.to_vec()))).collect()
}

fn narrower_rules<'a>(
    name: &[u8],
    values: impl Iterator<Item = &'a [u8]>,
    contexts: &[PathContext],
    found: &mut Differences,
) {
    if !is_rule_name(name) {
        return;
    }
    let any = ContentRule::Parameter(name.to_vec(), None);
    let mut shapes = values.map(ValueShape::of);
    let in_contexts = |rule: &ContentRule| {
        let scoped = |context: &PathContext| ScopedRule { rule: rule.clone(), context: context.clone() };
        contexts.iter().map(scoped).collect::<Vec<_>>()
    };
    if let Some(shape) = shapes.next().filter(|first| first.is_made() && shapes.all(|shape| shape == *first)) {
        let rule = ContentRule::Parameter(name.to_vec(), Some(shape));
        found.narrower.extend(in_contexts(&rule));
        found.narrower.push(rule.into());
    }
    found.narrower.extend(in_contexts(&any));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn differences(a: &str, b: &str) -> Option<String> {
        let urls = [a, b].map(|uri| UrlParts::of(uri.as_bytes()).unwrap());
        let found = find_differences(&urls[0], &urls[1], DifferenceDetail::All)?;
        Some(found.rules.iter().map(|rule| rule.rule.to_string()).collect::<Vec<_>>().join(", "))
    }

    /// Comparing every name with all rules found so far would take quadratic time.
    #[test]
    fn many_different_names_are_not_explained() {
        for (separator, name) in [(";", ""), ("/", "=1")] {
            let path = |letter: char, count: usize| -> String {
                (0..count).map(|i| format!("{separator}{letter}{i}{name}")).collect()
            };
            let found = |count| {
                differences(&format!("http://h/p{}", path('a', count)), &format!("http://h/p{}", path('b', count)))
            };
            assert!(found(MAX_PATH_RULES / 2).is_some(), "{separator}");
            assert_eq!(found(MAX_PATH_RULES / 2 + 1), None, "{separator}");
        }
    }

    #[test]
    fn differences_are_named() {
        let cases = [
            ("http://a/x", "https://a/x", Some("ignore-scheme")),
            ("http://a/x?id=1&s=2", "http://a/x?s=3&id=1", Some("ignore-parameter s")),
            ("http://a/x?id=1&b=2", "http://a/x?b=2&id=1", Some("ignore-parameter-order")),
            ("http://a/x", "http://a/x?utm=2", Some("ignore-parameter utm")),
            ("http://a/x", "http://a/x?", Some("ignore-empty-parameters")),
            ("http://a/x", "http://a/x#y", Some("ignore-fragment")),
            ("http://a/x/", "http://a/x/index.html", Some("ignore-document index.html")),
            ("http://a/x", "http://a/x/index.html", Some("ignore-document index.html, ignore-final-slash")),
            ("http://a/", "http://a/index.html", Some("ignore-document index.html")),
            ("http://a/x", "http://a/X", Some("ignore-path-case")),
            ("http://a/x/B.aspx", "http://a/X/b.aspx?s=1", Some("ignore-path-case, ignore-parameter s")),
            ("http://a/x//y", "http://a/x/y", Some("ignore-doubled-slashes")),
            ("http://a/x;jsessionid=1", "http://a/x;jsessionid=2", Some("ignore-path-parameter jsessionid")),
            ("http://a/x/y", "http://a/print/x/y", Some("ignore-segment /print/...")),
            ("http://a/x/y", "http://a/x/y/amp", Some("ignore-segment .../amp")),
            ("http://a/a/12/one", "http://a/a/12/two", Some("ignore-segment-value /a/#/*")),
            ("http://a/s/0123456789abcdef/x", "http://a/s/0123456789abcdee/x", Some("ignore-segment-value /s/<hex>")),
            ("http://a/dp/12/ref=x_1", "http://a/dp/12/ref=y_2", Some("ignore-segment-parameter ref")),
            (
                "http://a/dp/12/ref=x_1/at=1",
                "http://a/dp/12/at=1/",
                Some("ignore-segment-parameter ref, ignore-final-slash"),
            ),
            ("http://a/ref=x", "http://a/", Some("ignore-segment-parameter ref")),
            ("http://a/id=1/ref=x", "http://a/id=2/ref=x", Some("ignore-segment-parameter id")),
            ("http://a/c/x/y/12", "http://a/c/u/v/12", Some("ignore-segment-value /c/*, ignore-segment-value /c/*/*")),
            ("http://a/1/y/12", "http://a/2/v/12", Some("ignore-segment-value /*, ignore-segment-value /*/*")),
            ("http://a/x/y/z", "http://a/x", None),
        ];
        for (a, b, want) in cases {
            assert_eq!(differences(a, b).as_deref(), want, "{a} {b}");
            assert_eq!(differences(b, a).map(|found| found.len()), want.map(str::len), "{b} {a}");
        }
    }

    /// What was learned is written as text, and must be read again.
    #[test]
    fn rules_are_read_as_they_are_written() {
        let names = ["a&b", "a,b", "'a'", "a:b", "a@b", "...", "a$1", "%C3%BC", "a+b", "~a!", "(a)", "*", "a;b", "sid"];
        let mut count = 0;
        for name in names {
            let paths = [
                format!("/x;{name}=1"),
                format!("/x/{name}=1"),
                format!("/x/{name}"),
                format!("/{name}/x"),
                format!("/x/{name}/y"),
                format!("/x.{name}/"),
                format!("/x?{name}=0123456789abcdef"),
                format!("/x?{name}=0123456789abcdee"),
                format!("/{name}/x?y=1"),
                format!("/{name}/X?y=2"),
            ];
            let uris = paths.each_ref().map(|path| format!("http://a{path}"));
            let urls = uris.each_ref().map(|uri| UrlParts::of(uri.as_bytes()).unwrap());
            let pairs = urls.iter().flat_map(|a| urls.iter().map(move |b| (a, b)));
            let found = pairs.filter_map(|(a, b)| find_differences(a, b, DifferenceDetail::All));
            for ScopedRule { rule, context } in found.flat_map(|found| [found.rules, found.narrower].concat()) {
                assert_eq!(ContentRule::parse(&rule.to_string()), Some(rule.clone()), "{rule}");
                assert_eq!(PathContext::parse(&context.to_string()), Some(context.clone()), "{context}");
                count += 1;
            }
        }
        assert!(count > 1000, "{count}");
    }
}
