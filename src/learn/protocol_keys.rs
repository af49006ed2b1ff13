//! Computes keys of the rung `protocol` from classes, patterns and rules about content: [`KeyResolver`].
//!
//! A class takes precedence over rules: it was observed for the URL itself. Rules about content come before patterns, and
//! both are applied until none applies to the result. The key of a representative is its own key, so applying equivalences twice
//! changes nothing. URLs with equal keys on the rung `scheme` have equal keys here.

use super::content::{RuleBuffers, UrlOrigin, UrlParts};
use super::equivalences::{Equivalences, EquivalencesConflict, hex};
use super::host_rules::{HostRules, KeyOrigin};
use super::rewrite::RewriteRule;
use super::spelling::Spelling;
use crate::key::KeyBytes;

/// Maximum number of times that patterns or rules are applied to one URL: a host has four origins, and each has its slash
/// rules and its rules about content. A longer chain is a loop.
pub(super) const MOST_STEPS: usize = 16;

/// Computes the keys of many URLs, of which successive ones are often of one host.
#[derive(Debug)]
pub(crate) struct KeyResolver<'e, 't> {
    equivalences: &'e Equivalences,
    /// The last URL up to the slash after its authority, and the rules of its host.
    last_origin: &'t [u8],
    last_rules: Option<&'e HostRules>,
    buffers: FollowBuffers,
}

/// Buffers for URLs that rules result in.
#[derive(Debug, Default)]
struct FollowBuffers {
    rules: RuleBuffers,
    uri: Vec<u8>,
    next: Vec<u8>,
}

impl<'e, 't> KeyResolver<'e, 't> {
    pub(crate) fn new(equivalences: &'e Equivalences) -> KeyResolver<'e, 't> {
        KeyResolver { equivalences, last_origin: b"", last_rules: None, buffers: FollowBuffers::default() }
    }

    /// Does what [`Equivalences::key`] does.
    #[inline]
    pub(crate) fn key(&mut self, uri: &'t [u8], key: KeyBytes) -> (KeyBytes, KeyOrigin) {
        let equivalences = self.equivalences;
        if let Some(representative) = equivalences.representative(&key) {
            return (representative, if representative == key { KeyOrigin::None } else { KeyOrigin::Class });
        }
        let Some((origin, rules)) = self.find_rules(uri) else { return (key, KeyOrigin::None) };
        match equivalences.follow_rules(uri, (&origin.split(uri), rules), &mut self.buffers) {
            Some(found) if self.buffers.uri != uri => found,
            _ => (key, KeyOrigin::None),
        }
    }

    /// Returns the origin of a URL and the rules of its host; `None` if there are no rules for it.
    #[inline(always)]
    fn find_rules(&mut self, uri: &'t [u8]) -> Option<(UrlOrigin<'t>, &'e HostRules)> {
        // Most other hosts have no slash at this place, which costs less than a comparison.
        let at_slash = self.last_origin.len().wrapping_sub(1);
        if uri.get(at_slash) == Some(&b'/') && uri.starts_with(self.last_origin) {
            return Some((UrlOrigin::of(self.last_origin)?, self.last_rules?));
        }
        if self.equivalences.by_host.is_empty() {
            return None;
        }
        let origin = UrlOrigin::of(uri)?;
        let rules = self.equivalences.by_host.find(origin.authority);
        if uri.get(origin.len()) == Some(&b'/') {
            (self.last_origin, self.last_rules) = (&uri[..=origin.len()], rules);
        }
        Some((origin, rules?))
    }
}

impl Equivalences {
    /// Prepares and checks the complete set.
    ///
    /// # Errors
    /// A representative has another representative, or patterns or rules form a loop.
    pub fn check(&mut self) -> Result<(), EquivalencesConflict> {
        let is_closed = |key: &KeyBytes| self.representatives.get(key) == Some(key);
        if let Some(key) = self.representatives.values().find(|key| !is_closed(key)) {
            return Err(EquivalencesConflict::Class(hex(key)));
        }
        if let Some(host) = self.find_loops().into_iter().min() {
            let pattern = self.by_host.hosts.get(&host).and_then(HostRules::origin_pattern);
            let name = pattern.map_or_else(|| "same-as".to_string(), RewriteRule::name);
            return Err(EquivalencesConflict::Pattern(String::from_utf8_lossy(&host).into_owned(), name));
        }
        Ok(())
    }

    /// Returns the hosts whose patterns and rules never end when they are applied one after the other.
    pub(crate) fn find_loops(&mut self) -> Vec<Vec<u8>> {
        self.compile();
        let mut buffers = FollowBuffers::default();
        let mut is_loop = |host: &[u8], rules: &HostRules, scheme: &[u8]| {
            let uri = [scheme, b"://", host, b"/"].concat();
            let Some(url) = UrlParts::of(&uri) else { return false };
            rules.apply((&uri, &url), false, &mut buffers.rules, &mut buffers.uri).is_some()
                && self.follow_rules(&uri, (&url, rules), &mut buffers).is_none()
        };
        let hosts = self.by_host.hosts.iter();
        let hosts = hosts.filter(|(host, rules)| is_loop(host, rules, b"http") || is_loop(host, rules, b"https"));
        hosts.map(|(host, _)| host.clone()).collect()
    }

    /// Returns the key of the URL's representative, and what determined it. `uri` and `key` are those of the rung `scheme`.
    pub fn key(&self, uri: &[u8], key: KeyBytes) -> (KeyBytes, KeyOrigin) {
        KeyResolver::new(self).key(uri, key)
    }

    pub(super) fn representative(&self, key: &KeyBytes) -> Option<KeyBytes> {
        if self.representatives.is_empty() { None } else { self.representatives.get(key).copied() }
    }

    /// Applies rules and patterns until none applies to the result or a class contains it. Returns the last URL and the key of its
    /// representative, or `None` if nothing applies or the rules loop.
    pub(super) fn follow(&self, uri: &[u8]) -> Option<(Vec<u8>, KeyBytes)> {
        let (url, mut buffers) = (UrlParts::of(uri)?, FollowBuffers::default());
        let (key, _) = self.follow_rules(uri, (&url, self.by_host.find(url.authority())?), &mut buffers)?;
        Some((buffers.uri, key))
    }

    /// Applies rules and patterns, the first time those of the URL's host, until none applies to the result or a class contains
    /// it. Returns the key of the last URL's representative and what was applied first, or `None` if nothing applies or the rules
    /// loop. The last URL is in `buffers`.
    fn follow_rules(
        &self,
        uri: &[u8],
        (url, rules): (&UrlParts<'_>, &HostRules),
        buffers: &mut FollowBuffers,
    ) -> Option<(KeyBytes, KeyOrigin)> {
        let FollowBuffers { rules: of_rules, uri: text, next } = buffers;
        let mut last = rules.apply((uri, url), false, of_rules, text)?;
        let origin = last.origin;
        for _ in 0..MOST_STEPS {
            if !self.representatives.is_empty()
                && let Some(representative) = self.representative(&self.algorithm.key(text))
            {
                return Some((representative, origin));
            }
            let step = match UrlParts::of(text).filter(|_| !last.is_last) {
                None => None,
                Some(made) => {
                    let is_same_host = made.authority() == url.authority();
                    let rules = if is_same_host { Some(rules) } else { self.by_host.find(made.authority()) };
                    rules.and_then(|rules| rules.apply((text, &made), last.is_settled, of_rules, next))
                }
            };
            let Some(step) = step else { return Some((self.algorithm.key(text), origin)) };
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
        let step = rules.apply((uri, &url), false, &mut RuleBuffers::default(), &mut out)?;
        Some((out, step.origin))
    }

    /// Returns the pattern that rewrites `uri`.
    #[cfg(feature = "cli")]
    pub(super) fn pattern_of(&self, uri: &[u8]) -> Option<RewriteRule> {
        let spelling = Spelling::of(uri)?;
        let rules = self.by_host.find(spelling.authority)?;
        rules.patterns(spelling.is_https).find(|rule| rule.write(&spelling, &mut Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::content::ContentRule;
    use super::*;
    use crate::key::KeyAlgorithm;

    fn key(uri: &str) -> KeyBytes {
        KeyAlgorithm::Xxh3.key(uri.as_bytes())
    }

    fn with(members: &[(&str, &str)], patterns: &[(&str, &str)]) -> Result<Equivalences, EquivalencesConflict> {
        let mut equivalences = Equivalences::new(KeyAlgorithm::Xxh3);
        members.iter().try_for_each(|(a, b)| equivalences.add_member(key(a), key(b)))?;
        for (host, rule) in patterns {
            equivalences.add_pattern(host.as_bytes(), RewriteRule::named(rule).unwrap())?;
        }
        equivalences.check()?;
        Ok(equivalences)
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
        let mut all =
            with(&[("https://a.b/old", "https://x/")], &[("e.b", "http->https"), ("e.b", "add-slash")]).unwrap();
        for (scope, rule) in rules {
            all.add_rule(scope.as_bytes(), ContentRule::parse(rule).unwrap().into());
        }
        all.check().unwrap();
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
        all.add_rule(b"a.b", ContentRule::parse("same-as https://m.a.b").unwrap().into());
        assert!(all.check().is_err());
    }

    #[test]
    fn rules_of_a_host_are_not_for_the_hosts_below_it() {
        let mut all = with(&[], &[("b.c", "add-slash")]).unwrap();
        for (scope, rule) in [("b.c", "ignore-parameter sid"), ("*.b.c", "ignore-final-slash")] {
            all.add_rule(scope.as_bytes(), ContentRule::parse(rule).unwrap().into());
        }
        all.check().unwrap();
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
    fn keys_do_not_depend_on_the_urls_before() {
        let mut all = with(&[], &[("e.b", "http->https")]).unwrap();
        for (scope, rule) in
            [("a.b", "ignore-parameter sid"), ("*.d.b", "ignore-final-slash"), ("m.b", "same-as https://a.b")]
        {
            all.add_rule(scope.as_bytes(), ContentRule::parse(rule).unwrap().into());
        }
        all.check().unwrap();
        let hosts = ["a.b", "a.bc", "a.b:80", "e.b", "x.d.b", "m.b", "q.r", "a.b"];
        let uri = |host| ["/x?sid=1", "/x/", "/y?sid=2&z", "/"].map(|rest| format!("http://{host}{rest}"));
        let uris: Vec<String> = hosts.into_iter().flat_map(uri).collect();
        let mut resolver = KeyResolver::new(&all);
        for uri in uris.iter().chain(uris.iter().rev()) {
            assert_eq!(resolver.key(uri.as_bytes(), key(uri)), all.key(uri.as_bytes(), key(uri)), "{uri}");
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
