//! Applies rules about content to URLs: [`ContentRuleSet`].

use super::path_rules::{PathBuffers, PathRules, RulePlaces};
use super::path_text::PathText;
use super::query_rules::{QueryPart, QueryRules, QueryText};
use super::removal::{IgnoredRemovals, RemovalObserver};
use super::rule::{ContentRule, PathContext, ScopedRule};
use super::url_editor::UrlEditor;
use super::url_parts::{UrlParts, origin_start};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Rules in the form that they are applied in. The number of a rule is its place in the list that the set was made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct ContentRuleSet {
    scheme: RulePlaces,
    fragment: RulePlaces,
    path: PathRules,
    query: QueryRules,
    same_as: [Vec<AliasOf>; 2],
    /// There are rules about schemes or hosts.
    changes_origins: bool,
    /// There are rules for some paths only.
    has_contexts: bool,
    /// The kinds of the rules, one bit per kind.
    kinds: u16,
    count: u16,
}

/// An origin of which the host is an alias, for some paths.
#[derive(Clone, Debug)]
struct AliasOf {
    is_https: bool,
    host: Vec<u8>,
    context: PathContext,
    number: u16,
}

/// Which parts of URLs rules are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleSubject {
    /// Queries, whose order makes a difference.
    Query,
    /// Queries, also their order.
    QueryOrder,
    /// Paths only.
    Path,
    /// Several parts, other parts, or none.
    #[default]
    Other,
}

impl RuleSubject {
    /// The numbers of the variants, as parameters of functions that are compiled for each of them.
    pub(crate) const QUERY: u8 = RuleSubject::Query as u8;
    pub(crate) const QUERY_ORDER: u8 = RuleSubject::QueryOrder as u8;
    pub(crate) const PATH: u8 = RuleSubject::Path as u8;
    pub(crate) const OTHER: u8 = RuleSubject::Other as u8;
}

/// Buffers for applying rules.
#[derive(Debug, Default)]
pub(crate) struct RuleBuffers {
    path: PathBuffers,
    /// What remains of the query.
    query: Vec<QueryPart>,
}

/// What rules did to a URL besides what is in the output.
struct Edited {
    /// Where the path will be in the output.
    path: Range<usize>,
    /// Scheme, host or path changed.
    is_moved: bool,
    /// The query has other parameters than before.
    has_new_parameters: bool,
}

impl ContentRuleSet {
    /// Returns the set of these rules. A later rule about the same part replaces an earlier one.
    pub(crate) fn new<'r>(rules: impl IntoIterator<Item = &'r ScopedRule>) -> ContentRuleSet {
        let mut set = ContentRuleSet::default();
        rules.into_iter().for_each(|rule| set.add(rule));
        set
    }

    /// Adds a rule, with the next number.
    pub(crate) fn add(&mut self, scoped: &ScopedRule) {
        let ScopedRule { rule, context } = scoped;
        let number = self.count;
        self.count = self.count.saturating_add(1);
        self.changes_origins |= matches!(rule, ContentRule::Scheme | ContentRule::SameAs { .. });
        self.has_contexts |= *context != PathContext::Any;
        self.kinds |= 1 << rule.kind_number();
        self.path.add(scoped, number);
        self.query.add(scoped, number);
        match rule {
            ContentRule::Scheme => self.scheme.add(context, number),
            ContentRule::Fragment => self.fragment.add(context, number),
            ContentRule::SameAs { from_https, is_https, host } => {
                for from in [false, true] {
                    if from_https.is_none_or(|only| only == from) {
                        let (host, context) = (host.clone(), context.clone());
                        self.same_as[usize::from(from)].push(AliasOf { is_https: *is_https, host, context, number });
                    }
                }
            }
            _ => (),
        }
    }

    /// Returns the first segments of the paths for which the host is an alias; an empty text for all paths.
    pub(crate) fn alias_paths(&self) -> impl Iterator<Item = &[u8]> {
        self.same_as.iter().flatten().map(|alias| match &alias.context {
            PathContext::Prefix(first) => &first[..],
            _ => b"",
        })
    }

    /// Returns which parts of URLs the rules are about.
    pub(crate) fn subject(&self) -> RuleSubject {
        match (self.query.is_used(), self.path.is_used()) {
            _ if self.changes_origins || self.fragment.is_used() => RuleSubject::Other,
            (true, false) if self.query.sorts() => RuleSubject::QueryOrder,
            (true, false) => RuleSubject::Query,
            (false, true) => RuleSubject::Path,
            _ => RuleSubject::Other,
        }
    }

    /// Returns a number that sets of the same kinds of rules share.
    pub(crate) fn kinds(&self) -> u16 {
        self.kinds
    }

    /// Writes the form of `url` that is the same for all URLs that the rules make equal, and adds to `removed` what each
    /// rule removed. Applying the rules to the form again changes nothing, or what they could not see before: what was left
    /// at its ends, paths of other contexts, and parameters that semicolons separate.
    pub(crate) fn write(
        &self,
        url: &UrlParts<'_>,
        buffers: &mut RuleBuffers,
        removed: &mut impl RemovalObserver,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        let mut editor = UrlEditor::new(url.text.buffer(), out);
        self.edit::<{ RuleSubject::OTHER }>(url, buffers, removed, &mut editor);
        editor.finish(url.uri().len());
    }

    /// Appends what [`Self::write`] writes, if it is another URL. Returns whether the rules are to be applied to it again.
    /// `SUBJECT` is the subject of the rules, or [`RuleSubject::OTHER`].
    #[inline(always)]
    pub(crate) fn append_changed<const SUBJECT: u8>(
        &self,
        url: &UrlParts<'_>,
        buffers: &mut RuleBuffers,
        out: &mut Vec<u8>,
    ) -> Option<bool> {
        let mut editor = UrlEditor::new(url.text.buffer(), out);
        let edited = self.edit::<SUBJECT>(url, buffers, &mut IgnoredRemovals, &mut editor);
        if !editor.is_changed() {
            return None;
        }
        editor.finish(url.uri().len());
        Some(edited.has_new_parameters || edited.is_moved && self.may_apply_again(&out[edited.path]))
    }

    /// Leaves out of a URL what makes no difference.
    #[inline(always)]
    fn edit<'t, const SUBJECT: u8>(
        &self,
        url: &UrlParts<'t>,
        buffers: &mut RuleBuffers,
        removed: &mut impl RemovalObserver,
        editor: &mut UrlEditor<'t, '_>,
    ) -> Edited {
        let has_others = SUBJECT == RuleSubject::OTHER;
        if has_others {
            self.edit_origin(url, removed, editor);
        }
        let from = editor.place_of(url.path_at);
        let plain_path = if SUBJECT == RuleSubject::PATH || has_others && self.path.is_used() {
            self.path.edit(PathText::of_url(url), &mut buffers.path, removed, editor)
        } else {
            url.path()
        };
        if url.path_at == url.path_end {
            editor.cut(url.path_at..url.path_at);
            editor.insert(b"/");
        }
        let (path, is_moved) = (from..editor.place_of(url.path_end), editor.is_changed());
        let has_new_parameters = match QueryText::of(url, plain_path) {
            Some(query) if SUBJECT != RuleSubject::PATH && self.query.is_used() => {
                let may_sort = SUBJECT != RuleSubject::QUERY;
                self.query.edit(query, may_sort, &mut buffers.query, removed, editor)
            }
            _ => false,
        };
        if has_others
            && self.fragment.is_used()
            && let Some(fragment) = url.fragment()
            && let Some(number) = self.fragment.number(url.path())
        {
            removed.add(number, || xxh3_64(fragment));
            editor.cut(url.query_end..url.uri().len());
        }
        Edited { path, is_moved, has_new_parameters }
    }

    /// Replaces scheme and host, each only if there is a rule for it.
    #[inline(always)]
    fn edit_origin(&self, url: &UrlParts<'_>, removed: &mut impl RemovalObserver, editor: &mut UrlEditor<'_, '_>) {
        if !self.changes_origins || !url.has_host_name_only() {
            return;
        }
        let (mut is_https, mut authority) = (url.is_https(), url.authority());
        let aliases = &self.same_as[usize::from(is_https)];
        if let Some(number) = self.scheme.number(url.path()) {
            removed.add(number, || 1 + u64::from(is_https));
            is_https = true;
        }
        if let Some(alias) = aliases.iter().rfind(|alias| alias.context.contains(url.path())) {
            removed.add(alias.number, || xxh3_64(authority));
            (is_https, authority) = (alias.is_https, &alias.host);
        }
        if (is_https, authority) != (url.is_https(), url.authority()) {
            editor.cut(0..url.path_at);
            editor.insert(origin_start(is_https));
            editor.insert(authority);
        }
    }

    /// Returns whether another rule, or the same one, may apply to a result with this path, because scheme, host or path
    /// changed.
    #[inline(always)]
    fn may_apply_again(&self, path: &[u8]) -> bool {
        self.has_contexts || self.same_as.iter().any(|aliases| !aliases.is_empty()) || self.path.may_apply_again(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(rules: &[&str]) -> ContentRuleSet {
        ContentRuleSet::new(&rules.iter().map(|text| ScopedRule::parse(text)).collect::<Vec<_>>())
    }

    fn form(rules: &[&str], uri: &str) -> String {
        let (mut out, url) = (Vec::new(), UrlParts::of(uri.as_bytes()).unwrap());
        set(rules).write(&url, &mut RuleBuffers::default(), &mut Vec::new(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rules_remove_what_they_name() {
        let cases: [(&[&str], &str, &str); 45] = [
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
            (&["ignore-segment-parameter ref"], "http://a/dp/12/ref=x_1?q", "http://a/dp/12?q"),
            (&["ignore-segment-parameter ref"], "http://a/ref=/b/ref=2/", "http://a/b/"),
            (&["ignore-segment-parameter ref"], "http://a/ref=1", "http://a/"),
            (&["ignore-segment-parameter ref"], "http://a/ref/REF=1/b;ref=1", "http://a/ref/REF=1/b;ref=1"),
            (&["/b/: ignore-segment-parameter ref"], "http://a/c/ref=1", "http://a/c/ref=1"),
            (&["ignore-path-case", "ignore-segment-parameter ref"], "http://a/b/REF=1", "http://a/b"),
            (&["ignore-segment /print/..."], "http://a/print/b", "http://a/b"),
            (&["ignore-segment .../amp"], "http://a/b/amp/", "http://a/b/"),
            (&["ignore-segment-value /shop/<hex>"], "http://a/shop/0123456789abcdef/x", "http://a/shop/<>/x"),
            (&["ignore-segment-value /shop/<hex>"], "http://a/shop/new/x", "http://a/shop/new/x"),
            // `*` is a value like others.
            (&["ignore-segment-value /shop/<hex>"], "http://a/shop/*/x", "http://a/shop/*/x"),
            (&["ignore-segment-value /shop/*"], "http://a/shop/*/x", "http://a/shop/<>/x"),
            (&["ignore-segment-value /a/#/*"], "http://a/a/12/some-words", "http://a/a/12/<>"),
            (&["ignore-parameter sid"], "http://a/?sid=1&x=2", "http://a/?x=2"),
            (&["ignore-parameter sid"], "http://a/?sid=1", "http://a/"),
            (&["ignore-parameter sid=<uuid>"], "http://a/?sid=1", "http://a/?sid=1"),
            (&["/shop/: ignore-parameter sid"], "http://a/shop/b?sid=1", "http://a/shop/b"),
            (&["/shop/: ignore-parameter sid"], "http://a/b?sid=1", "http://a/b?sid=1"),
            (&["*.css: ignore-query"], "http://a/b.css?123", "http://a/b.css"),
            (&["ignore-parameter-order"], "http://a/?c&a=2&b", "http://a/?a=2&b&c"),
            (&["ignore-parameter-order"], "http://a/?b=1&a=2&b=0", "http://a/?a=2&b=1&b=0"),
            (&["ignore-parameter-order"], "http://a/?c=1;a=2", "http://a/?a=2;c=1"),
            (&["ignore-parameter sid"], "http://a/?a=1;sid=2;b=3", "http://a/?a=1;b=3"),
            (&["ignore-parameter sid"], "http://a/?a=1;sid=2&b=3", "http://a/?a=1;sid=2&b=3"),
            (&["/b/: ignore-final-slash"], "http://a/b/c/", "http://a/b/c"),
            (&["/b/: ignore-final-slash"], "http://a/c/", "http://a/c/"),
            (&["/b/c/: ignore-path-case"], "http://a/B/C/D", "http://a/b/c/d"),
            (&["/b/c/: ignore-path-case"], "http://a/B/D", "http://a/B/D"),
            (&["/b/: ignore-scheme"], "http://a/c", "http://a/c"),
            (&["/b/: same-as https://c"], "http://a/b/d", "https://c/b/d"),
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
            "ignore-segment-parameter ref",
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
        let segments = ["", "b", "B", "index.html", "x;sid=1", "12", "*", "%C3", "bb", "ref=b"];
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
                        let mut appended = b"before".to_vec();
                        let is_rewritten =
                            set.append_changed::<{ RuleSubject::OTHER }>(&url, &mut buffers, &mut appended).is_some();
                        assert_eq!(out != uri.as_bytes(), is_rewritten, "{rule} {uri}");
                        assert!(!is_rewritten && appended == b"before" || appended[6..] == out, "{rule} {uri}");
                        changed += usize::from(out != uri.as_bytes());
                        skipped += usize::from(!is_rewritten);
                    }
                }
            }
        }
        assert!(changed > 10_000 && skipped > 50_000, "{changed} {skipped}");
    }
}
