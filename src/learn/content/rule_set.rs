//! Applies rules about content to URLs: [`ContentRuleSet`]. [`delimited`] has shorter ways for many URLs at a time.

pub(super) mod delimited;

use super::path_rules::{PathBuffers, PathChanges, PathRules, RulePlaces};
use super::path_text::PathText;
use super::query_rules::{QueryPart, QueryRules, QueryText};
use super::removal::{RemovalLog, Removed};
use super::rule::{ContentRule, PathContext, ScopedRule};
use super::url_parts::UrlParts;
use crate::kernel::{append, append_range, append_some};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

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
    scheme: RulePlaces,
    fragment: RulePlaces,
    path: PathRules,
    query: QueryRules,
    same_as: [Vec<AliasOf>; 2],
    /// Rules after which others, or the same one again, may apply.
    repeated: Vec<u16>,
    /// Rules after which others may apply if there are rules for some paths or hosts only: also those that change paths to what
    /// they leave alone afterwards.
    moving: Vec<u16>,
    /// There are rules for some paths only.
    has_contexts: bool,
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

/// Buffers for [`ContentRuleSet::write`].
#[derive(Debug, Default)]
pub(crate) struct RuleBuffers {
    path: PathBuffers,
    /// What remains of the query.
    query: Vec<QueryPart>,
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
        if rule.is_repeated() {
            self.repeated.push(number);
        }
        if rule.is_repeated() || rule.is_about_paths() {
            self.moving.push(number);
        }
        self.has_contexts |= *context != PathContext::Any;
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

    /// Returns whether `url` has what a rule about anything but paths is about.
    #[inline(always)]
    fn may_change_besides_path(&self, url: &UrlParts<'_>) -> bool {
        self.may_change_origin(url)
            || self.query.is_used() && url.query.is_some()
            || self.fragment.is_used() && url.fragment.is_some()
    }

    /// Returns whether a rule may change scheme or host of `url`.
    #[inline(always)]
    fn may_change_origin(&self, url: &UrlParts<'_>) -> bool {
        !self.same_as[usize::from(url.is_https)].is_empty() || self.scheme.is_used()
    }

    /// Writes the form of `url` that is the same for all URLs that the rules make equal, and adds to `removed` what each
    /// rule removed. Applying the rules to the form again changes nothing, or what they could not see before: what was left at its
    /// ends, paths of other contexts, and parameters that semicolons separate.
    pub(crate) fn write(
        &self,
        url: &UrlParts<'_>,
        buffers: &mut RuleBuffers,
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) {
        let _ = self.write_parts((url, self.path.changes(PathText::of_url(url))), buffers, removed, out);
    }

    /// Does what [`Self::write`] does. `changes` says which rules about paths apply. Returns where the path is in `out`, and whether
    /// the query has other parameters than before.
    fn write_parts(
        &self,
        (url, changes): (&UrlParts<'_>, PathChanges),
        buffers: &mut RuleBuffers,
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) -> (Range<usize>, bool) {
        out.clear();
        let (buffer, path_len) = (url.text.buffer(), url.path.len());
        let RuleBuffers { path: path_buffers, query: parts } = buffers;
        if self.may_change_origin(url) {
            self.write_origin(url, removed, out);
        } else {
            append_range(out, buffer, 0, url.path_at);
        }
        let path_at = out.len();
        let plain_path = if changes.any() {
            self.path.write((PathText::of_url(url), changes), path_buffers, removed, out)
        } else {
            append_range(out, buffer, url.path_at, path_len);
            url.path
        };
        let written_path = path_at..out.len();
        let mut has_new_parameters = false;
        if let Some(query) = QueryText::of(url) {
            let form = self.query.find_parts((query, plain_path), parts, removed);
            has_new_parameters = form.has_new_parameters(query.query, parts);
            query.write(form, parts, out);
        }
        if let Some(fragment) = url.fragment {
            match self.fragment.number(url.path) {
                Some(number) => removed.add(number, || xxh3_64(fragment)),
                None => {
                    out.push(b'#');
                    append(out, fragment);
                }
            }
        }
        (written_path, has_new_parameters)
    }

    fn write_origin(&self, url: &UrlParts<'_>, removed: &mut impl RemovalLog, out: &mut Vec<u8>) {
        let UrlParts { mut is_https, mut authority, .. } = *url;
        if let Some(number) = self.scheme.number(url.path).filter(|_| url.has_host_name_only()) {
            removed.add(number, || 1 + u64::from(is_https));
            is_https = true;
        }
        let aliases = &self.same_as[usize::from(url.is_https)];
        if let Some(alias) = aliases.iter().rfind(|alias| alias.context.contains(url.path))
            && url.has_host_name_only()
        {
            removed.add(alias.number, || xxh3_64(authority));
            (is_https, authority) = (alias.is_https, &alias.host);
        }
        let (scheme, len) = if is_https { (*b"https://", 8) } else { (*b"http://\0", 7) };
        append_some(out, scheme, len);
        append(out, authority);
    }

    /// Does what [`Self::write`] does, and returns whether the rules are to be applied to the result again. Writes nothing and
    /// returns `None` if the URL has nothing that a rule is about.
    #[inline]
    pub(crate) fn rewrite(&self, url: &UrlParts<'_>, buffers: &mut RuleBuffers, out: &mut Vec<u8>) -> Option<bool> {
        let changes = self.path.changes(PathText::of_url(url));
        if !changes.any() && !self.may_change_besides_path(url) {
            return None;
        }
        let mut repetition = self.repetition();
        let (path, has_new_parameters) = self.write_parts((url, changes), buffers, &mut repetition, out);
        Some(has_new_parameters || self.is_repeated(&repetition, &out[path]))
    }

    #[inline(always)]
    fn repetition(&self) -> Repetition<'_> {
        let rules = if self.depends_on_paths_or_hosts() { &self.moving } else { &self.repeated };
        Repetition { rules, is_needed: false }
    }

    #[inline(always)]
    fn is_repeated(&self, repetition: &Repetition<'_>, path: &[u8]) -> bool {
        repetition.is_needed && (self.depends_on_paths_or_hosts() || self.path.changes(PathText::of(path)).any())
    }

    /// Returns whether another path, scheme or host may have the effect that other rules apply.
    fn depends_on_paths_or_hosts(&self) -> bool {
        self.has_contexts || self.same_as.iter().any(|aliases| !aliases.is_empty())
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
        let cases: [(&[&str], &str, &str); 37] = [
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
