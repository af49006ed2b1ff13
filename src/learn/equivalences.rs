//! Computes keys of the rung `protocol` from classes, patterns and rules about content.
//!
//! A class takes precedence over rules: it was observed for the URL itself. Rules about content come before patterns, and
//! both are applied until none applies to the result. The key of a representative is its own key, so applying equivalences twice
//! changes nothing. URLs with equal keys on the rung `scheme` have equal keys here.
//!
//! Rules about content are for a host, for a registered domain (`*.example.org`) or for all hosts (`*`). A URL costs one
//! lookup of its host; only if rules of domains exist, a host without own rules costs one more per label.

use super::content::{ContentRule, ContentRuleSet, RuleBuffers, ScopedRule, UrlParts};
use super::rewrite::{OriginRule, RewriteRule};
use super::spelling::Spelling;
use super::text_map::TextMap;
use crate::key::{KeyAlgorithm, KeyBytes};
use std::collections::HashMap;

/// Maximum number of times that patterns or rules are applied to one URL: a host has four origins, and each has its slash
/// rules and its rules about content. A longer chain is a loop.
pub(super) const MOST_STEPS: usize = 16;

/// Buffers for [`Equivalences::key_with`].
#[derive(Debug, Default)]
pub(crate) struct KeyBuffers {
    rules: RuleBuffers,
    uri: Vec<u8>,
    next: Vec<u8>,
}

/// What was applied to a URL in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    origin: KeyOrigin,
    /// The rules about content of the host change nothing any more.
    is_settled: bool,
    /// Nothing else applies, except a class.
    is_last: bool,
}

/// What determined the key of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Neither a class nor a pattern: the URL has its own key.
    None,
    /// The URL is a member of a class and not its representative.
    Class,
    /// Patterns of its host, possibly followed by a class.
    Pattern,
    /// Rules about content, possibly followed by patterns and a class.
    Rule,
}

/// A contradiction between equivalences.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EquivalencesConflict {
    /// A key has two representatives, or its representative has another one.
    #[error("the class of {0} has more than one representative")]
    Class(String),
    /// A pattern cannot apply to its host, or contradicts another pattern of the host.
    #[error("pattern {1} of host {0} contradicts its other patterns or cannot apply to it")]
    Pattern(String, String),
}

/// The rules of a host.
#[derive(Clone, Debug, Default)]
struct HostRules {
    /// The rule for URLs of `http`, and the one for `https`.
    origins: [Option<OriginRule>; 2],
    slashes: [bool; 3],
    /// Rules about content: those of the host, of its domain and of all hosts.
    content: ContentRuleSet,
}

impl HostRules {
    /// Returns the patterns that may apply to a URL, those of origins before those of slashes.
    fn patterns(&self, uri: &Spelling<'_>) -> impl Iterator<Item = RewriteRule> {
        let origin = self.origins[usize::from(uri.is_https)].map(RewriteRule::Origin);
        let slashes = SLASHES.into_iter().zip(self.slashes).filter(|(_, is_on)| *is_on).map(|(rule, _)| rule);
        origin.into_iter().chain(slashes)
    }

    fn has_patterns(&self) -> bool {
        self.slashes.contains(&true) || self.origins.iter().any(Option::is_some)
    }

    /// Returns whether a pattern of the host decides what the rule is about. Patterns are what the host itself does.
    fn decides(&self, rule: &ContentRule) -> bool {
        match rule {
            ContentRule::Scheme | ContentRule::SameAs { .. } => self.origins.iter().any(Option::is_some),
            ContentRule::FinalSlash => self.slashes.contains(&true),
            _ => false,
        }
    }
}

const SLASHES: [RewriteRule; 3] = [RewriteRule::AddSlash, RewriteRule::AddSlashToFiles, RewriteRule::StripSlash];

/// Classes of URLs and patterns of hosts.
///
/// ```
/// use irikey::key::KeyAlgorithm;
/// use irikey::learn::{Equivalences, RewriteRule};
/// let key = |uri: &str| KeyAlgorithm::Xxh3.key(uri.as_bytes());
/// let (mut equivalences, old, new) = (Equivalences::new(KeyAlgorithm::Xxh3), "http://a.example/old", "http://a.example/new");
/// equivalences.add_member(key(old), key(new)).unwrap();
/// equivalences.add_pattern(b"b.example", RewriteRule::named("http->https").unwrap()).unwrap();
/// equivalences.check().unwrap();
/// assert_eq!(equivalences.key(old.as_bytes(), key(old)).0, key(new));
/// let insecure = "http://b.example/";
/// assert_eq!(equivalences.key(insecure.as_bytes(), key(insecure)).0, key("https://b.example/"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Equivalences {
    pub(super) algorithm: KeyAlgorithm,
    pub(super) representatives: TextMap<KeyBytes, KeyBytes>,
    hosts: TextMap<Vec<u8>, HostRules>,
    /// Rules about content by the host that they are for, or `*.` and a domain, or `*`.
    rules: HashMap<Vec<u8>, Vec<ScopedRule>>,
    /// For hosts that are not in `hosts`: the rules by domain. The empty domain has those of all hosts.
    general: TextMap<Vec<u8>, ContentRuleSet>,
    /// Sum of the hashes of all entries, which does not depend on their order.
    digest: u128,
}

impl Equivalences {
    /// Creates an empty set for keys of `algorithm`.
    pub fn new(algorithm: KeyAlgorithm) -> Equivalences {
        Equivalences { algorithm, ..Equivalences::default() }
    }

    /// Adds `key` to the class of `representative`.
    ///
    /// # Errors
    /// The key has another representative already.
    pub fn add_member(&mut self, key: KeyBytes, representative: KeyBytes) -> Result<(), EquivalencesConflict> {
        for (key, representative) in [(representative, representative), (key, representative)] {
            match self.representatives.insert(key, representative) {
                None => self.mix(&[&key[..], &representative].concat()),
                Some(before) if before == representative => (),
                Some(_) => return Err(EquivalencesConflict::Class(hex(&key))),
            }
        }
        Ok(())
    }

    /// Adds a rule that the host applies to all of its URLs that are in no class.
    ///
    /// # Errors
    /// The rule cannot apply to the host, or contradicts an earlier rule.
    pub fn add_pattern(&mut self, host: &[u8], rule: RewriteRule) -> Result<(), EquivalencesConflict> {
        let refused = || EquivalencesConflict::Pattern(String::from_utf8_lossy(host).into_owned(), rule.name());
        let rules = self.hosts.entry(host.to_vec()).or_default();
        match rule {
            RewriteRule::Origin(origin) => {
                let slot = &mut rules.origins[usize::from(origin.from_https)];
                if origin.host(host).is_none() || slot.is_some_and(|before| before != origin) {
                    return Err(refused());
                }
                *slot = Some(origin);
            }
            slash => {
                SLASHES.iter().zip(&mut rules.slashes).for_each(|(rule, is_on)| *is_on |= *rule == slash);
                if rules.slashes[2] && (rules.slashes[0] || rules.slashes[1]) {
                    return Err(refused());
                }
            }
        }
        self.mix(&[host, b" ", rule.name().as_bytes()].concat());
        Ok(())
    }

    /// Adds a rule about content. `scope` is a host, `*.` and a domain, or `*`.
    pub(crate) fn add_rule(&mut self, scope: &[u8], rule: ScopedRule) {
        let text = format!(" {} {}", rule.context, rule.rule);
        self.mix(&[scope, text.as_bytes()].concat());
        let rules = self.rules.entry(scope.to_vec()).or_default();
        if !rules.contains(&rule) {
            rules.push(rule);
            rules.sort_unstable();
        }
    }

    /// Prepares the rules about content to be applied.
    pub(super) fn compile(&mut self) {
        let mut hosts = std::mem::take(&mut self.hosts);
        for host in self.rules.keys().filter(|scope| !scope.starts_with(b"*")) {
            hosts.entry(host.clone()).or_default();
        }
        self.hosts = hosts;
        let contents: Vec<(Vec<u8>, ContentRuleSet)> =
            self.hosts.keys().map(|host| (host.clone(), self.set_for(host))).collect();
        for (host, content) in contents {
            self.hosts.entry(host).or_default().content = content;
        }
        let domains = self.rules.keys().filter_map(|scope| scope.strip_prefix(b"*"));
        let domains = domains.map(|domain| domain.strip_prefix(b".").unwrap_or(domain));
        self.general = domains.map(|domain| (domain.to_vec(), self.set_for(domain))).collect();
    }

    fn set_for(&self, host: &[u8]) -> ContentRuleSet {
        ContentRuleSet::new(self.rules_for(host).into_iter().map(|(_, rule)| rule))
    }

    /// Returns the rules about content that hold for a host: its own, those of its domains and those of all hosts.
    pub(super) fn rules_for(&self, host: &[u8]) -> Vec<(Vec<u8>, &ScopedRule)> {
        let domains =
            domains_of(host).map(|domain| if domain.is_empty() { b"*".to_vec() } else { [b"*.", domain].concat() });
        let patterns = self.hosts.get(host);
        let is_open = |rule: &&ScopedRule| patterns.is_none_or(|patterns| !patterns.decides(&rule.rule));
        let rules_of = |scope: Vec<u8>| {
            let rules = self.rules.get(&scope).into_iter().flatten().filter(is_open);
            rules.map(|rule| (scope.clone(), rule)).collect::<Vec<_>>()
        };
        std::iter::once(host.to_vec()).chain(domains).flat_map(rules_of).collect()
    }

    /// Returns the rules about content that hold for a host and change URLs, except for aliases of the host.
    #[cfg(feature = "pipeline")]
    pub(crate) fn rules_of(&self, host: &[u8]) -> Vec<ScopedRule> {
        let rules = self.rules_for(host);
        let kept: Vec<&ContentRule> = rules.iter().map(|(_, rule)| &rule.rule).collect();
        let is_kept = |name: &Vec<u8>| kept.contains(&&ContentRule::KeepParameter(name.clone()));
        let changes = |rule: &ContentRule| match rule {
            ContentRule::SameAs { .. } | ContentRule::KeepParameter(_) => false,
            ContentRule::Parameter(name, _) => !is_kept(name),
            _ => true,
        };
        rules.iter().filter(|(_, rule)| changes(&rule.rule)).map(|(_, rule)| (*rule).clone()).collect()
    }

    /// Returns the pattern that rewrites `uri`.
    pub(super) fn pattern_of(&self, uri: &[u8]) -> Option<RewriteRule> {
        let spelling = Spelling::of(uri)?;
        self.hosts.get(spelling.authority)?.patterns(&spelling).find(|rule| rule.apply(&spelling).is_some())
    }

    /// Returns the rules about content of a host that has none itself.
    fn general_rules(&self, host: &[u8]) -> Option<&ContentRuleSet> {
        let everywhere = self.general.get(&b""[..]);
        match self.general.len() - usize::from(everywhere.is_some()) {
            0 => everywhere,
            _ => domains_of(host).find_map(|domain| self.general.get(domain)),
        }
    }

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
            let rules = self.hosts.get(&host).map(|rules| rules.origins).unwrap_or_default();
            let name = rules.into_iter().flatten().map(|rule| RewriteRule::Origin(rule).name()).next();
            let host = String::from_utf8_lossy(&host).into_owned();
            return Err(EquivalencesConflict::Pattern(host, name.unwrap_or_else(|| "same-as".to_string())));
        }
        Ok(())
    }

    /// Returns the hosts whose patterns and rules never end when they are applied one after the other.
    pub(crate) fn find_loops(&mut self) -> Vec<Vec<u8>> {
        self.compile();
        let is_loop = |host: &[u8], scheme: &[u8]| {
            let uri = [scheme, b"://", host, b"/"].concat();
            self.step(&uri).is_some() && self.follow(&uri).is_none()
        };
        let hosts = self.hosts.keys().filter(|host| is_loop(host, b"http") || is_loop(host, b"https"));
        hosts.cloned().collect()
    }

    /// Returns the key of the URL's representative, and what determined it. `uri` and `key` are those of the rung `scheme`.
    pub fn key(&self, uri: &[u8], key: KeyBytes) -> (KeyBytes, KeyOrigin) {
        self.key_with(uri, key, &mut KeyBuffers::default())
    }

    /// Does what [`Self::key`] does, with buffers for many URLs.
    pub(crate) fn key_with(&self, uri: &[u8], key: KeyBytes, buffers: &mut KeyBuffers) -> (KeyBytes, KeyOrigin) {
        if let Some(representative) = self.representative(&key) {
            return (representative, if representative == key { KeyOrigin::None } else { KeyOrigin::Class });
        }
        match self.follow_with(uri, buffers) {
            Some((key, origin)) if buffers.uri != uri => (key, origin),
            _ => (key, KeyOrigin::None),
        }
    }

    fn representative(&self, key: &KeyBytes) -> Option<KeyBytes> {
        if self.representatives.is_empty() { None } else { self.representatives.get(key).copied() }
    }

    /// Applies rules and patterns until none applies to the result or a class contains it. Returns the last URL, the key of
    /// its representative and what was applied first, or `None` if nothing applies or the rules loop.
    pub(super) fn follow(&self, uri: &[u8]) -> Option<(Vec<u8>, KeyBytes, KeyOrigin)> {
        let mut buffers = KeyBuffers::default();
        let (key, origin) = self.follow_with(uri, &mut buffers)?;
        Some((buffers.uri, key, origin))
    }

    /// Does what [`Self::follow`] does; the last URL is in `buffers`.
    fn follow_with(&self, uri: &[u8], buffers: &mut KeyBuffers) -> Option<(KeyBytes, KeyOrigin)> {
        let KeyBuffers { rules, uri: text, next } = buffers;
        let mut last = self.step_with(uri, false, rules, text)?;
        let origin = last.origin;
        for _ in 0..MOST_STEPS {
            if !self.representatives.is_empty()
                && let Some(representative) = self.representative(&self.algorithm.key(text))
            {
                return Some((representative, origin));
            }
            let step = if last.is_last { None } else { self.step_with(text, last.is_settled, rules, next) };
            let Some(step) = step else { return Some((self.algorithm.key(text), origin)) };
            last = step;
            std::mem::swap(text, next);
        }
        None
    }

    /// Applies the rules about content, otherwise one pattern.
    pub(super) fn step(&self, uri: &[u8]) -> Option<(Vec<u8>, KeyOrigin)> {
        let mut out = Vec::new();
        let Step { origin, .. } = self.step_with(uri, false, &mut RuleBuffers::default(), &mut out)?;
        Some((out, origin))
    }

    /// Does what [`Self::step`] does, and writes the result to `out`. `is_settled` says that no rule about content applies.
    fn step_with(&self, uri: &[u8], is_settled: bool, buffers: &mut RuleBuffers, out: &mut Vec<u8>) -> Option<Step> {
        if self.hosts.is_empty() && self.general.is_empty() {
            return None;
        }
        let url = UrlParts::of(uri)?;
        let rules = self.hosts.get(url.authority());
        let content = rules.map_or_else(|| self.general_rules(url.authority()), |rules| Some(&rules.content));
        if let Some(content) = content.filter(|content| !is_settled && !content.is_empty()) {
            let is_repeated = content.rewrite(&url, buffers, out);
            if out != uri {
                let is_last = !is_repeated && rules.is_none_or(|rules| !rules.has_patterns());
                return Some(Step { origin: KeyOrigin::Rule, is_settled: !is_repeated, is_last });
            }
        }
        let rules = rules.filter(|rules| rules.has_patterns())?;
        let spelling = Spelling::of(uri)?;
        let text = rules.patterns(&spelling).find_map(|rule| rule.apply(&spelling))?;
        *out = text;
        Some(Step { origin: KeyOrigin::Pattern, is_settled: false, is_last: false })
    }

    /// Returns a hexadecimal hash of all entries. Sets with equal hashes result in equal keys.
    pub fn identity(&self) -> String {
        hex(&self.digest.to_be_bytes())
    }

    fn mix(&mut self, entry: &[u8]) {
        let hash = u128::from_be_bytes(KeyAlgorithm::Blake3.key(entry));
        self.digest = self.digest.wrapping_add(hash);
    }
}

/// Returns the domains that contain a host, from the host itself to the empty domain.
fn domains_of(host: &[u8]) -> impl Iterator<Item = &[u8]> {
    let dots = memchr::memchr_iter(b'.', host).map(|at| &host[at + 1..]).filter(|domain| !domain.is_empty());
    std::iter::once(host).filter(|host| !host.is_empty()).chain(dots).chain([&b""[..]])
}

fn hex(key: &KeyBytes) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
