//! Classes of URLs, patterns of hosts and rules about content: [`EquivalencesBuilder`] takes them, [`Equivalences`] are ready
//! to be applied.

#[cfg(feature = "pipeline")]
use super::content::ContentRule;
use super::content::ScopedRule;
use super::host_rules::{HostPatterns, HostRuleIndex, NamedRules, domains_of};
use super::rewrite_pattern::RewritePattern;
use super::text_map::TextMap;
use crate::iri::octets;
use crate::key::{KeyAlgorithm, KeyBytes};
use data_encoding::HEXLOWER;
use std::collections::BTreeSet;

/// A contradiction between equivalences.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EquivalencesConflict {
    /// A key has two representatives, or its representative has another one.
    #[error("the class of {0} has more than one representative")]
    Class(String),
    /// A pattern cannot apply to its host, or contradicts another pattern of the host; or canonical URLs cannot have the host.
    #[error("pattern {1} of host {0} contradicts its other patterns or cannot apply to it")]
    Pattern(String, String),
}

/// Classes of URLs, patterns of hosts and rules about content: what `irikey learn` writes.
///
/// ```
/// use irikey::key::KeyAlgorithm;
/// use irikey::learn::{EquivalencesBuilder, RewritePattern};
/// let key = |uri: &str| KeyAlgorithm::Xxh3.key(uri.as_bytes());
/// let (mut builder, old, new) = (EquivalencesBuilder::new(KeyAlgorithm::Xxh3), "http://a.example/old", "http://a.example/new");
/// builder.add_member(key(old), key(new)).unwrap();
/// builder.add_pattern(b"b.example", RewritePattern::named("http->https").unwrap()).unwrap();
/// let equivalences = builder.build().unwrap();
/// assert_eq!(equivalences.key(old.as_bytes(), key(old)).0, key(new));
/// let insecure = "http://b.example/";
/// assert_eq!(equivalences.key(insecure.as_bytes(), key(insecure)).0, key("https://b.example/"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Equivalences {
    entries: EquivalencesBuilder,
    /// The patterns and the rules about content in the form that they are applied in.
    pub(super) by_host: HostRuleIndex,
}

/// Takes the entries of [`Equivalences`], in any order.
#[derive(Clone, Debug, Default)]
pub struct EquivalencesBuilder {
    algorithm: KeyAlgorithm,
    representatives: TextMap<KeyBytes, KeyBytes>,
    /// The patterns of hosts that have some.
    patterns: TextMap<Vec<u8>, HostPatterns>,
    /// Rules about content by the host that they are for, or `*.` and a domain, or `*`.
    rules: TextMap<Vec<u8>, BTreeSet<ScopedRule>>,
    /// The length of the longest domain that has rules.
    max_domain_len: usize,
    /// Sum of the hashes of all entries, which does not depend on their order.
    digest: u128,
}

impl EquivalencesBuilder {
    /// Creates an empty set for keys of `algorithm`.
    pub fn new(algorithm: KeyAlgorithm) -> EquivalencesBuilder {
        EquivalencesBuilder { algorithm, ..EquivalencesBuilder::default() }
    }

    /// Adds `key` to the class of `representative`.
    ///
    /// # Errors
    /// The key or the representative has another representative already. Nothing is added.
    pub fn add_member(&mut self, key: KeyBytes, representative: KeyBytes) -> Result<(), EquivalencesConflict> {
        for key in [representative, key] {
            if self.representatives.get(&key).is_some_and(|known| *known != representative) {
                return Err(EquivalencesConflict::Class(HEXLOWER.encode(&key)));
            }
        }
        for key in [representative, key] {
            if self.representatives.insert(key, representative).is_none() {
                self.mix(&[&key[..], &representative].concat());
            }
        }
        Ok(())
    }

    /// Adds a rule that the host applies to all of its URLs that are in no class. The host is the authority of canonical URLs: in
    /// lower case, followed by `:` and the port if they have one.
    ///
    /// # Errors
    /// Canonical URLs cannot have this host, the rule cannot apply to it, or it contradicts an earlier rule. Nothing is added.
    pub fn add_pattern(&mut self, host: &[u8], rule: RewritePattern) -> Result<(), EquivalencesConflict> {
        let before = self.patterns.get(host).copied().unwrap_or_default();
        let mut patterns = before;
        if !is_canonical_authority(host) || !patterns.add(host, rule) {
            return Err(EquivalencesConflict::Pattern(String::from_utf8_lossy(host).into_owned(), rule.name()));
        }
        if patterns != before {
            self.patterns.insert(host.to_vec(), patterns);
            self.mix(&[host, b" ", rule.name().as_bytes()].concat());
        }
        Ok(())
    }

    /// Adds a rule about content. `scope` is a host, `*.` and a domain, or `*`.
    pub(crate) fn add_rule(&mut self, scope: &[u8], rule: ScopedRule) {
        let text = format!(" {} {}", rule.context, rule.rule);
        self.max_domain_len = self.max_domain_len.max(scope.strip_prefix(b"*.").map_or(0, <[u8]>::len));
        if self.rules.entry(scope.to_vec()).or_default().insert(rule) {
            self.mix(&[scope, text.as_bytes()].concat());
        }
    }

    /// Returns the equivalences, ready to be applied.
    ///
    /// # Errors
    /// A representative has another representative, or patterns or rules form a loop.
    pub fn build(self) -> Result<Equivalences, EquivalencesConflict> {
        let equivalences = self.build_unchecked();
        equivalences.check()?;
        Ok(equivalences)
    }

    /// Does what [`Self::build`] does, without the check.
    pub(crate) fn build_unchecked(self) -> Equivalences {
        let with_rules =
            self.rules.keys().filter(|scope| !scope.starts_with(b"*") && !self.patterns.contains_key(*scope));
        let hosts = self.patterns.keys().chain(with_rules).map(|host| NamedRules {
            is_domain: false,
            name: host,
            patterns: self.patterns.get(host).copied().unwrap_or_default(),
            rules: without_scopes(self.rules_for(host)),
        });
        let domains = self.rules.keys().filter_map(|scope| scope.strip_prefix(b"*"));
        let domains = domains.map(|domain| domain.strip_prefix(b".").unwrap_or(domain)).map(|domain| NamedRules {
            is_domain: true,
            name: domain,
            patterns: HostPatterns::default(),
            rules: without_scopes(self.rules_of_domains(domain)),
        });
        let by_host = HostRuleIndex::new(hosts.chain(domains).collect());
        Equivalences { entries: self, by_host }
    }

    /// Returns the rules about content that hold for a host: its own, those of its domains and those of all hosts.
    fn rules_for(&self, host: &[u8]) -> Vec<(Vec<u8>, &ScopedRule)> {
        let patterns = self.patterns.get(host);
        let is_open =
            |(_, rule): &(Vec<u8>, &ScopedRule)| patterns.is_none_or(|patterns| !patterns.decides(&rule.rule));
        self.rules_of_scope(host.to_vec()).chain(self.rules_of_domains(host)).filter(is_open).collect()
    }

    /// Returns the rules about content of the domains that contain a host, and those of all hosts.
    fn rules_of_domains(&self, host: &[u8]) -> impl Iterator<Item = (Vec<u8>, &ScopedRule)> {
        let domains = domains_of(host, self.max_domain_len);
        let scopes = domains.map(|domain| [b"*.", domain].concat()).chain([b"*".to_vec()]);
        scopes.flat_map(|scope| self.rules_of_scope(scope))
    }

    fn rules_of_scope(&self, scope: Vec<u8>) -> impl Iterator<Item = (Vec<u8>, &ScopedRule)> {
        let rules = self.rules.get(&scope).into_iter().flatten();
        rules.map(move |rule| (scope.clone(), rule))
    }

    fn mix(&mut self, entry: &[u8]) {
        let hash = u128::from_be_bytes(KeyAlgorithm::Blake3.key(entry));
        self.digest = self.digest.wrapping_add(hash);
    }
}

impl Equivalences {
    /// Returns the entries, to add others.
    #[cfg(feature = "cli")]
    pub(crate) fn into_builder(self) -> EquivalencesBuilder {
        self.entries
    }

    /// Returns the hash function of the keys.
    pub fn algorithm(&self) -> KeyAlgorithm {
        self.entries.algorithm
    }

    pub(super) fn representatives(&self) -> &TextMap<KeyBytes, KeyBytes> {
        &self.entries.representatives
    }

    /// Returns the first of the patterns of a host that change the origin.
    pub(super) fn first_pattern_of_origin(&self, host: &[u8]) -> Option<RewritePattern> {
        self.entries.patterns.get(host).and_then(HostPatterns::first_of_origin)
    }

    /// Returns the rules about content that hold for a host, each with its scope.
    pub(super) fn rules_for(&self, host: &[u8]) -> Vec<(Vec<u8>, &ScopedRule)> {
        self.entries.rules_for(host)
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

    /// Returns a hexadecimal hash of all entries. Sets with equal hashes result in equal keys.
    pub fn identity(&self) -> String {
        format!("{:032x}", self.entries.digest)
    }
}

/// Returns whether canonical URLs of some profile can have this authority: a host in lower case, perhaps with userinfo and port.
fn is_canonical_authority(authority: &[u8]) -> bool {
    let host = &authority[memchr::memrchr(b'@', authority).map_or(0, |at| at + 1)..];
    let is_upper = |(byte, is_escaped): (u8, bool)| !is_escaped && byte.is_ascii_uppercase();
    let is_allowed = |byte: &u8| byte.is_ascii_graphic() && !b"/?#\\".contains(byte);
    authority.iter().all(is_allowed) && !octets(host).any(is_upper)
}

fn without_scopes<'r>(rules: impl IntoIterator<Item = (Vec<u8>, &'r ScopedRule)>) -> Vec<&'r ScopedRule> {
    rules.into_iter().map(|(_, rule)| rule).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A set that refused an entry equals one that never saw it.
    #[test]
    fn refused_entries_change_nothing() {
        let [old, new, other] = [b"old", b"new", b"etc"].map(|text| KeyAlgorithm::Xxh3.key(text));
        let mut builder = EquivalencesBuilder::new(KeyAlgorithm::Xxh3);
        builder.add_member(old, new).unwrap();
        builder.add_pattern(b"a.b", RewritePattern::StripSlash).unwrap();
        let identity = builder.clone().build().unwrap().identity();
        assert!(builder.add_member(old, other).is_err());
        assert!(builder.add_member(other, old).is_err());
        assert!(builder.add_pattern(b"a.b", RewritePattern::AddSlash).is_err());
        builder.add_pattern(b"a.b", RewritePattern::StripSlash).unwrap();
        let equivalences = builder.build().unwrap();
        assert_eq!(equivalences.identity(), identity);
        for (key, representative) in [(old, new), (new, new), (other, other)] {
            assert_eq!(equivalences.key(b"", key).0, representative);
        }
    }

    #[test]
    fn patterns_are_only_for_authorities_of_canonical_urls() {
        let add = |host: &str| {
            EquivalencesBuilder::new(KeyAlgorithm::Xxh3).add_pattern(host.as_bytes(), RewritePattern::AddSlash)
        };
        for host in ["a.b", "a.b:8080", "[2001:db8::1]:80", "192.0.2.1", "b%C3%BC*", "a_b{", "U%20s@a.b", ""] {
            assert_eq!(add(host), Ok(()), "{host}");
        }
        for host in ["A.b", "u@A.b", "a.b/", "a b", "b\u{fc}cher", "http://a.b", "a?b"] {
            assert!(add(host).is_err(), "{host}");
        }
    }
}
