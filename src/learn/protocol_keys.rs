//! Computes keys of the rung `protocol` from classes, patterns and rules about content: [`Equivalences::key`].
//!
//! A class takes precedence over rules: it was observed for the URL itself. Rules about content come before patterns, and
//! both are applied until none applies to the result. The key of a representative is its own key, so applying equivalences
//! twice changes nothing. URLs with equal keys on the rung `scheme` have equal keys here.

use super::content::{RuleBuffers, UrlParts};
use super::equivalences::{Equivalences, EquivalencesConflict};
use super::host_rules::{HostRules, KeyOrigin, Step};
use super::rewrite_pattern::RewritePattern;
use super::spelling::Spelling;
use crate::key::KeyBytes;
use data_encoding::HEXLOWER;

/// Maximum number of times that patterns or rules are applied to one URL: a host has four origins, and each has its slash
/// rules and its rules about content. A longer chain is a loop.
pub(super) const MAX_STEPS: usize = 16;

/// Buffers for URLs that rules result in.
#[derive(Debug, Default)]
pub(super) struct FollowBuffers {
    pub(super) rules: RuleBuffers,
    /// The last URL.
    pub(super) uri: Vec<u8>,
    next: Vec<u8>,
}

/// What applying rules and patterns led to: the last URL, which is in [`FollowBuffers`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Followed {
    /// The key of its representative, if equivalences have classes. Otherwise it is the key of the URL.
    pub(super) key: Option<KeyBytes>,
    /// What was applied first.
    pub(super) origin: KeyOrigin,
    /// Only one step was made. Otherwise the last URL may be the first one.
    pub(super) is_one_step: bool,
}

impl Equivalences {
    /// Checks the complete set.
    ///
    /// # Errors
    /// A representative has another representative, or patterns or rules form a loop.
    pub(super) fn check(&self) -> Result<(), EquivalencesConflict> {
        let is_closed = |key: &KeyBytes| self.representatives().get(key) == Some(key);
        if let Some(key) = self.representatives().values().find(|key| !is_closed(key)) {
            return Err(EquivalencesConflict::Class(HEXLOWER.encode(key)));
        }
        if let Some(host) = self.find_loops().into_iter().min() {
            let name = self.first_pattern_of_origin(&host).map_or_else(|| "same-as".to_string(), RewritePattern::name);
            return Err(EquivalencesConflict::Pattern(String::from_utf8_lossy(&host).into_owned(), name));
        }
        Ok(())
    }

    /// Returns the hosts, and the domains with `*.`, whose patterns and rules never end when they are applied one after the
    /// other.
    pub(crate) fn find_loops(&self) -> Vec<Vec<u8>> {
        let mut buffers = FollowBuffers::default();
        let mut is_loop_of = |host: &[u8], rules: &HostRules, scheme: &[u8], path: &[u8]| {
            let uri = [scheme, b"://", host, b"/", path].concat();
            let Some(url) = UrlParts::of(&uri) else { return false };
            rules.apply(&url, false, &mut buffers.rules, &mut buffers.uri).is_some()
                && self.follow_rules(&url, rules, &mut buffers).is_none()
        };
        let mut is_loop = |host: &[u8], rules: &HostRules, scheme: &[u8]| {
            let mut paths = std::iter::once(&b""[..]).chain(rules.content.alias_paths());
            paths.any(|path| is_loop_of(host, rules, scheme, path))
        };
        let hosts = self.by_host.hosts().map(|(host, rules)| (&b""[..], host, rules));
        // Domains have no patterns. Without aliases, their rules do not lead to other hosts, and end.
        let domains = self.by_host.domains().filter(|(_, rules)| rules.content.alias_paths().next().is_some());
        let all = hosts.chain(domains.map(|(domain, rules)| (&b"*."[..], domain, rules)));
        let loops = all.filter(|(_, host, rules)| is_loop(host, rules, b"http") || is_loop(host, rules, b"https"));
        loops.map(|(prefix, host, _)| [prefix, host].concat()).collect()
    }

    /// Returns the key of the URL's representative, and what determined it. `uri` and `key` are those of the rung `scheme`.
    pub fn key(&self, uri: &[u8], key: KeyBytes) -> (KeyBytes, KeyOrigin) {
        if let Some(representative) = self.representative(&key) {
            return (representative, if representative == key { KeyOrigin::None } else { KeyOrigin::Class });
        }
        match self.follow(uri) {
            Some((last, found)) if last != uri => found,
            _ => (key, KeyOrigin::None),
        }
    }

    pub(super) fn representative(&self, key: &KeyBytes) -> Option<KeyBytes> {
        if self.representatives().is_empty() { None } else { self.representatives().get(key).copied() }
    }

    /// Applies rules and patterns until none applies to the result or a class contains it. Returns the last URL, the key of its
    /// representative, and what was applied first; or `None` if nothing applies or the rules loop.
    pub(super) fn follow(&self, uri: &[u8]) -> Option<(Vec<u8>, (KeyBytes, KeyOrigin))> {
        let (url, mut buffers) = (UrlParts::of(uri)?, FollowBuffers::default());
        let followed = self.follow_rules(&url, self.by_host.find(url.authority())?, &mut buffers)?;
        let key = followed.key.unwrap_or_else(|| self.algorithm().key(&buffers.uri));
        Some((buffers.uri, (key, followed.origin)))
    }

    /// Applies rules and patterns, the first time those of the URL's host, until none applies to the result or a class contains
    /// it. Returns `None` if nothing applies or the rules loop.
    #[inline(always)]
    pub(super) fn follow_rules(
        &self,
        url: &UrlParts<'_>,
        rules: &HostRules,
        buffers: &mut FollowBuffers,
    ) -> Option<Followed> {
        let first = rules.apply(url, false, &mut buffers.rules, &mut buffers.uri)?;
        if first.is_last && self.representatives().is_empty() {
            return Some(Followed { key: None, origin: first.origin, is_one_step: true });
        }
        self.follow_further(url, rules, first, buffers)
    }

    /// Applies rules and patterns after the first step.
    fn follow_further(
        &self,
        url: &UrlParts<'_>,
        rules: &HostRules,
        first: Step,
        buffers: &mut FollowBuffers,
    ) -> Option<Followed> {
        let FollowBuffers { rules: of_rules, uri: text, next } = buffers;
        let (mut last, origin) = (first, first.origin);
        for steps in 1..=MAX_STEPS {
            let is_one_step = steps == 1;
            let own = if self.representatives().is_empty() { None } else { Some(self.algorithm().key(text)) };
            if let Some(representative) = own.and_then(|own| self.representative(&own)) {
                return Some(Followed { key: Some(representative), origin, is_one_step });
            }
            let step = match if last.is_last { None } else { UrlParts::of(text) } {
                None => None,
                Some(made) => {
                    let is_same_host = made.authority() == url.authority();
                    let rules = if is_same_host { Some(rules) } else { self.by_host.find(made.authority()) };
                    rules.and_then(|rules| rules.apply(&made, last.is_settled, of_rules, next))
                }
            };
            let Some(step) = step else { return Some(Followed { key: own, origin, is_one_step }) };
            last = step;
            std::mem::swap(text, next);
        }
        None
    }

    /// Applies the rules about content, otherwise one pattern, once.
    #[cfg(feature = "cli")]
    pub(super) fn step(&self, uri: &[u8]) -> Option<(Vec<u8>, KeyOrigin)> {
        let (url, mut out) = (UrlParts::of(uri)?, Vec::new());
        let rules = self.by_host.find(url.authority())?;
        let step = rules.apply(&url, false, &mut RuleBuffers::default(), &mut out)?;
        Some((out, step.origin))
    }

    /// Returns the pattern that rewrites `uri`.
    #[cfg(feature = "cli")]
    pub(super) fn pattern_of(&self, uri: &[u8]) -> Option<RewritePattern> {
        let spelling = Spelling::of(uri)?;
        let rules = self.by_host.find(spelling.authority)?;
        rules.patterns.of_scheme(spelling.is_https).find(|rule| rule.write(&spelling, &mut Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::ScopedRule;
    use super::super::equivalences::EquivalencesBuilder;
    use super::super::host_places::UrlColumn;
    use super::super::key_resolver::KeyResolver;
    use super::*;
    use crate::key::KeyAlgorithm;

    fn key(uri: &str) -> KeyBytes {
        KeyAlgorithm::Xxh3.key(uri.as_bytes())
    }

    fn with(members: &[(&str, &str)], patterns: &[(&str, &str)]) -> Result<Equivalences, EquivalencesConflict> {
        builder(members, patterns)?.build()
    }

    fn builder(
        members: &[(&str, &str)],
        patterns: &[(&str, &str)],
    ) -> Result<EquivalencesBuilder, EquivalencesConflict> {
        let mut builder = EquivalencesBuilder::new(KeyAlgorithm::Xxh3);
        members.iter().try_for_each(|(a, b)| builder.add_member(key(a), key(b)))?;
        for (host, rule) in patterns {
            builder.add_pattern(host.as_bytes(), RewritePattern::named(rule).unwrap())?;
        }
        Ok(builder)
    }

    fn with_rules(mut builder: EquivalencesBuilder, rules: &[(&str, &str)]) -> EquivalencesBuilder {
        rules.iter().for_each(|(scope, rule)| builder.add_rule(scope.as_bytes(), ScopedRule::parse(rule)));
        builder
    }

    #[test]
    fn classes_precede_patterns_and_patterns_are_applied_repeatedly() {
        let patterns = [("a.b", "http->https"), ("a.b", "https->https+www"), ("www.a.b", "add-slash")];
        let all = with(&[("http://a.b/x", "http://a.b/y"), ("https://www.a.b/z/", "http://c/")], &patterns).unwrap();
        let cases = [
            ("http://a.b/x", "http://a.b/y", KeyOrigin::Class),
            ("http://a.b/y", "http://a.b/y", KeyOrigin::None),
            ("http://a.b/q", "https://www.a.b/q/", KeyOrigin::Pattern),
            ("https://www.a.b/q/", "https://www.a.b/q/", KeyOrigin::None),
            ("http://a.b/z", "http://c/", KeyOrigin::Pattern),
            ("http://u@a.b/q", "http://u@a.b/q", KeyOrigin::None),
            ("ftp://a.b/q", "ftp://a.b/q", KeyOrigin::None),
        ];
        for (uri, want, fired) in cases {
            assert_eq!(all.key(uri.as_bytes(), key(uri)), (key(want), fired), "{uri}");
        }
    }

    #[test]
    fn rules_about_content_are_for_hosts_domains_or_all() {
        let rules = [
            ("a.b", "ignore-parameter sid"),
            ("*.b", "ignore-final-slash"),
            ("*", "ignore-parameter utm"),
            ("c.d", "keep-parameter utm"),
            ("m.a.b", "same-as https://a.b"),
        ];
        let patterns = [("e.b", "http->https"), ("e.b", "add-slash")];
        let mut builder = with_rules(builder(&[("https://a.b/old", "https://x/")], &patterns).unwrap(), &rules);
        let all = builder.clone().build().unwrap();
        let cases = [
            ("https://a.b/x/?sid=1&utm=2", "https://a.b/x", KeyOrigin::Rule),
            ("https://z.b/x/?sid=1&utm=2", "https://z.b/x?sid=1", KeyOrigin::Rule),
            ("https://b/x/", "https://b/x", KeyOrigin::Rule),
            ("https://z/x/?utm=2", "https://z/x/", KeyOrigin::Rule),
            ("https://c.d/x/?utm=2", "https://c.d/x/?utm=2", KeyOrigin::None),
            ("http://m.a.b/x?sid=1", "https://a.b/x", KeyOrigin::Rule),
            ("https://m.a.b/old?utm=1", "https://x/", KeyOrigin::Rule),
            // The host itself adds a slash.
            ("http://e.b/x?utm", "https://e.b/x/", KeyOrigin::Rule),
        ];
        for (uri, want, origin) in cases {
            assert_eq!(all.key(uri.as_bytes(), key(uri)), (key(want), origin), "{uri}");
        }
        builder.add_rule(b"a.b", ScopedRule::parse("same-as https://m.a.b"));
        assert!(builder.build().is_err());
        let mut domains = with_rules(EquivalencesBuilder::default(), &[("*.a.b", "same-as https://x.c.d")]);
        assert!(domains.clone().build().is_ok());
        domains.add_rule(b"*.c.d", ScopedRule::parse("same-as https://x.a.b"));
        assert!(domains.build().is_err());
    }

    #[test]
    fn rules_of_a_host_are_not_for_the_hosts_below_it() {
        let rules = [("b.c", "ignore-parameter sid"), ("*.b.c", "ignore-final-slash")];
        let all = with_rules(builder(&[], &[("b.c", "add-slash")]).unwrap(), &rules).build().unwrap();
        let cases = [
            ("http://b.c/x?sid=1", "http://b.c/x/"),
            ("http://a.b.c/x?sid=1", "http://a.b.c/x?sid=1"),
            // The pattern of b.c is about its own slashes.
            ("http://a.b.c/x/?sid=1", "http://a.b.c/x?sid=1"),
        ];
        for (uri, want) in cases {
            assert_eq!(all.key(uri.as_bytes(), key(uri)).0, key(want), "{uri}");
        }
    }

    #[test]
    fn rules_are_applied_until_none_applies() {
        let all = |rules: &[&str]| {
            let mut builder = EquivalencesBuilder::default();
            rules.iter().for_each(|text| builder.add_rule(b"a.b", ScopedRule::parse(text)));
            builder.build().unwrap()
        };
        let cases: [(&[&str], &str, &str); 5] = [
            // The path has another context afterwards.
            (&["ignore-path-case", "/b/: ignore-fragment"], "http://a.b/B#x", "http://a.b/b"),
            (&["ignore-path-case", "/b/: same-as https://c"], "http://a.b/B/D", "https://c/b/d"),
            (&["ignore-path-parameter s", "/b/: ignore-fragment"], "http://a.b/b;s=1/#x", "http://a.b/b/"),
            // Without the ampersand, semicolons separate parameters.
            (&["ignore-parameter s", "ignore-parameter b"], "http://a.b/?a=1;b=2&s=3", "http://a.b/?a=1"),
            (&["ignore-parameter s", "ignore-parameter-order"], "http://a.b/?s&b=1;a=2#x", "http://a.b/?a=2;b=1#x"),
        ];
        for (rules, uri, want) in cases {
            let all = all(rules);
            assert_eq!(all.key(uri.as_bytes(), key(uri)), (key(want), KeyOrigin::Rule), "{uri}");
            assert_eq!(all.key(want.as_bytes(), key(want)).0, key(want), "{want}");
            let mut keys = [key(uri)];
            let (values, offsets) = (uri.as_bytes().to_vec(), vec![0, uri.len() as i32]);
            KeyResolver::default().resolve(&all, UrlColumn { texts: &values, ends: &offsets }, &mut keys);
            assert_eq!(keys, [key(want)], "{uri}");
        }
    }

    #[test]
    fn a_host_may_have_many_rules() {
        let mut builder = EquivalencesBuilder::default();
        for name in 0..40_000 {
            builder.add_rule(b"a.b", ScopedRule::parse(&format!("ignore-parameter p{name}")));
        }
        let all = builder.build().unwrap();
        let (uri, want) = ("http://a.b/?p39999=1&q", "http://a.b/?q");
        assert_eq!(all.key(uri.as_bytes(), key(uri)).0, key(want));
    }

    #[test]
    #[cfg(feature = "cli")]
    fn rules_that_change_a_url_are_traced() {
        let rules = [
            ("a.b", "ignore-document index.html"),
            ("*.b", "ignore-final-slash"),
            ("a.b", "ignore-parameter sid"),
            ("a.b", "ignore-parameter-order"),
            ("*", "ignore-scheme"),
            ("m.b", "same-as https://a.b"),
        ];
        let all = with_rules(EquivalencesBuilder::default(), &rules).build().unwrap();
        let cases: [(&str, &[&str]); 7] = [
            ("https://a.b/x/index.html", &["ignore-document index.html", "ignore-final-slash"]),
            (
                "https://a.b/x/index.html?sid=1&y",
                &["ignore-document index.html", "ignore-parameter sid", "ignore-final-slash"],
            ),
            ("https://a.b/?a&sid=1&b", &["ignore-parameter sid"]),
            ("https://a.b/?b&sid=1&a", &["ignore-parameter sid", "ignore-parameter-order"]),
            ("http://a.b/?a&b", &["ignore-scheme"]),
            ("https://m.b/?a", &["same-as https://a.b"]),
            ("https://a.b/?a&b", &[]),
        ];
        for (uri, want) in cases {
            let names: Vec<String> = all.trace(uri.as_bytes()).into_iter().map(|step| step.name).collect();
            assert_eq!(names, want, "{uri}");
        }
    }

    #[test]
    #[cfg(feature = "cli")]
    fn what_never_ends_is_not_traced() {
        let rules = [("a.b", "ignore-segment .../p")];
        let all = with_rules(EquivalencesBuilder::default(), &rules).build().unwrap();
        for (count, is_changed) in [(MAX_STEPS, true), (MAX_STEPS + 1, false)] {
            let uri = format!("http://a.b/x{}", "/p".repeat(count));
            let steps = all.trace(uri.as_bytes());
            assert_eq!(
                (steps.len(), all.key(uri.as_bytes(), key(&uri)).0 != key(&uri)),
                (if is_changed { count } else { 0 }, is_changed)
            );
        }
    }

    #[test]
    fn contradictions_are_errors() {
        assert!(with(&[("http://a/", "http://b/"), ("http://a/", "http://c/")], &[]).is_err());
        assert!(with(&[("http://a/", "http://b/"), ("http://b/", "http://c/")], &[]).is_err());
        assert!(with(&[], &[("a.b", "http->https"), ("a.b", "https->http")]).is_err());
        assert!(with(&[], &[("a.b", "http->http+www"), ("www.a.b", "http->http-www")]).is_err());
        assert!(with(&[], &[("a.b", "http->http-www")]).is_err());
        assert!(with(&[], &[("a.b", "strip-slash"), ("a.b", "add-slash-to-files")]).is_err());
        assert!(with(&[], &[("a.b", "http->https"), ("a.b", "http->https")]).is_ok());
    }

    #[test]
    fn the_identity_depends_only_on_the_entries() {
        let (a, b) = (("http://a/", "http://b/"), ("http://c/", "http://b/"));
        assert_eq!(with(&[a, b], &[]).unwrap().identity(), with(&[b, a, b], &[]).unwrap().identity());
        assert_ne!(with(&[a, b], &[]).unwrap().identity(), with(&[a], &[]).unwrap().identity());
        assert_ne!(with(&[], &[("a", "add-slash")]).unwrap().identity(), with(&[], &[]).unwrap().identity());
    }
}
