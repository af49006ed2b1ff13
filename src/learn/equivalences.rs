//! Computes keys of the rung `protocol` from classes and patterns.
//!
//! A class takes precedence over patterns: it was observed for the URL itself. Patterns are applied until none applies
//! to the result. The key of a representative is its own key, so applying equivalences twice changes nothing. URLs with
//! equal keys on the rung `scheme` have equal keys here.

use super::rewrite::{OriginRule, RewriteRule};
use super::spelling::Spelling;
use crate::key::{KeyAlgorithm, KeyBytes};
use std::collections::HashMap;

/// Maximum number of patterns that are applied to one URL: a host has four origins, and each has its slash rules. A longer
/// chain is a loop.
const MOST_STEPS: usize = 10;

/// What determined the key of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Neither a class nor a pattern: the URL has its own key.
    None,
    /// The URL is a member of a class and not its representative.
    Class,
    /// Patterns of its host, possibly followed by a class.
    Pattern,
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
#[derive(Clone, Copy, Debug, Default)]
struct HostRules {
    /// The rule for URLs of `http`, and the one for `https`.
    origins: [Option<OriginRule>; 2],
    slashes: [bool; 3],
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
    algorithm: KeyAlgorithm,
    representatives: HashMap<KeyBytes, KeyBytes>,
    hosts: HashMap<Vec<u8>, HostRules>,
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

    /// Checks the complete set.
    ///
    /// # Errors
    /// A representative has another representative, or patterns form a loop.
    pub fn check(&self) -> Result<(), EquivalencesConflict> {
        let is_closed = |key: &KeyBytes| self.representatives.get(key) == Some(key);
        if let Some(key) = self.representatives.values().find(|key| !is_closed(key)) {
            return Err(EquivalencesConflict::Class(hex(key)));
        }
        for (host, rules) in &self.hosts {
            for (rule, scheme) in rules.origins.iter().zip(["http", "https"]) {
                let uri = [scheme.as_bytes(), b"://", host, b"/"].concat();
                if let Some(rule) = rule
                    && self.follow(&uri).is_none()
                {
                    let host = String::from_utf8_lossy(host).into_owned();
                    return Err(EquivalencesConflict::Pattern(host, RewriteRule::Origin(*rule).name()));
                }
            }
        }
        Ok(())
    }

    /// Returns the key of the URL's representative, and what determined it. `uri` and `key` are those of the rung `scheme`.
    pub fn key(&self, uri: &[u8], key: KeyBytes) -> (KeyBytes, KeyOrigin) {
        if let Some(representative) = self.representatives.get(&key) {
            return (*representative, if *representative == key { KeyOrigin::None } else { KeyOrigin::Class });
        }
        match self.follow(uri) {
            Some((text, _)) if text == uri => (key, KeyOrigin::None),
            Some((_, key)) => (key, KeyOrigin::Pattern),
            None => (key, KeyOrigin::None),
        }
    }

    /// Applies patterns until none applies to the result or a class contains it. Returns the last URL and the key of its
    /// representative, or `None` if no pattern applies or the patterns loop.
    pub(super) fn follow(&self, uri: &[u8]) -> Option<(Vec<u8>, KeyBytes)> {
        let mut text = self.step(uri)?;
        for _ in 0..MOST_STEPS {
            let key = self.algorithm.key(&text);
            if let Some(representative) = self.representatives.get(&key) {
                return Some((text, *representative));
            }
            match self.step(&text) {
                Some(next) => text = next,
                None => return Some((text, key)),
            }
        }
        None
    }

    /// Applies one pattern; rules of origins come before those of slashes.
    fn step(&self, uri: &[u8]) -> Option<Vec<u8>> {
        if self.hosts.is_empty() {
            return None;
        }
        let spelling = Spelling::of(uri)?;
        let rules = self.hosts.get(spelling.authority)?;
        let origin = rules.origins[usize::from(spelling.is_https)].map(RewriteRule::Origin);
        let slashes = SLASHES.iter().zip(rules.slashes).filter(|(_, is_on)| *is_on).map(|(rule, _)| *rule);
        origin.into_iter().chain(slashes).find_map(|rule| rule.apply(&spelling))
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
