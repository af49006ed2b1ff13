//! Generalizes rules of hosts to their registered domain, and rules about query parameters to all hosts: [`OpenSite`],
//! [`GeneralRules`].

use super::super::removal::IgnoredRemovals;
use super::super::rule::{ContentRule, PathContext, ScopedRule};
use super::super::rule_set::RuleBuffers;
use super::super::url_parts::UrlParts;
use super::alias::{HostSample, find_aliases};
use super::captures::{ContentHash, HostCaptures};
use super::host::learn_host;
use super::judged_rule::{ContentLimits, JudgedRule, LearnedRules, RuleRefusal, learned_set, wilson_lower_bound};
use super::near::DocumentEvidence;
use crate::key::psl::HostParts;
use crate::key::{KeyAlgorithm, KeyBytes};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of hosts that agree on a rule of their domain.
const MIN_HOSTS: u64 = 3;

/// Minimum of the lower bound of the share of domains that agree on a rule for all hosts.
const MIN_AGREEMENT: f64 = 0.9;

/// Maximum number of rules that are counted for all hosts.
const MAX_COUNTED: usize = 1 << 18;

/// The scope of rules for all hosts.
pub(crate) const EVERYWHERE: &[u8] = b"*";

/// Returns whether a rule can be about the host of an authority alone. It cannot be if the authority is empty, or begins with
/// `*`: a scope of this text is all hosts, or those of a domain.
pub(crate) fn can_be_scope(authority: &[u8]) -> bool {
    !authority.is_empty() && !authority.starts_with(EVERYWHERE)
}

/// Returns the registered domain of an authority, with its final dot and port if there are any; the last two labels under an
/// unknown suffix. An address, or a public suffix, is its own site.
pub(crate) fn site_of(authority: &[u8]) -> &[u8] {
    let digits = authority.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    // Userinfo stays: it is before the host, as the labels of a subdomain are.
    let name = authority[..authority.len() - digits].strip_suffix(b":").unwrap_or(authority);
    let host = memchr::memrchr(b'@', name).map_or(name, |at| &name[at + 1..]);
    if HostParts::of(host).last_parts[0].is_none() {
        return authority;
    }
    let parts = HostParts::of(name);
    let start = match (parts.private_domain, parts.private_suffix) {
        (Some(domain), _) => parts.name.len() - domain.len(),
        (None, Some(_)) => 0,
        (None, None) => memchr::memrchr_iter(b'.', parts.name).nth(1).map_or(0, |at| at + 1),
    };
    &authority[start..]
}

/// What was learned of a host, with what is needed to compare it with the other hosts of its site.
#[derive(Clone, Debug)]
pub(crate) struct LearnedHost {
    pub(crate) host: Vec<u8>,
    pub(crate) rules: LearnedRules,
    sample: Option<HostSample>,
}

impl LearnedHost {
    /// Learns the rules of a host.
    pub(crate) fn learn(
        host: Vec<u8>,
        captures: &HostCaptures,
        documents: &DocumentEvidence,
        limits: &ContentLimits,
    ) -> LearnedHost {
        let rules = learn_host(captures, documents, limits);
        let sample = HostSample::of(&host, captures, &rules);
        LearnedHost { host, rules, sample }
    }

    /// Returns whether the host needs a parameter, and has not judged the rule about some values of it.
    fn needs_all_values(&self, name: &[u8], rule: &ScopedRule) -> bool {
        let LearnedRules { rules, parameters, .. } = &self.rules;
        parameters.contains_key(name) && rules.iter().all(|judged| judged.rule != *rule)
    }

    /// Returns the URLs that the learned rules of the host make of captured ones, as keys, each with a content of these; with
    /// `is_complete`, also the URLs that stay as they are. They are in order, and different.
    pub(crate) fn forms(
        &self,
        captures: &HostCaptures,
        is_complete: bool,
        algorithm: KeyAlgorithm,
    ) -> Vec<(KeyBytes, ContentHash)> {
        let (set, mut buffers, mut form) = (learned_set(&self.rules.rules), RuleBuffers::default(), Vec::new());
        let mut forms = Vec::new();
        for i in 0..captures.len() {
            let Some(url) = UrlParts::of(captures.uri(i)) else { continue };
            set.write(&url, &mut buffers, &mut IgnoredRemovals, &mut form);
            if is_complete || form != url.uri() {
                let key = algorithm.key(&form);
                forms.extend(captures.contents(i).iter().map(|known| (key, known.content)));
            }
        }
        forms.sort_unstable();
        forms.dedup();
        forms
    }
}

/// A rule, and the hosts that it is for: a host, `*.` and a registered domain, or `*`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ScopeRule {
    pub(crate) scope: Vec<u8>,
    pub(crate) judged: JudgedRule,
    /// A user added the rule.
    pub(crate) is_by_hand: bool,
}

impl ScopeRule {
    /// Returns a rule that was learned, or refused.
    pub(crate) fn learned(scope: Vec<u8>, judged: JudgedRule) -> ScopeRule {
        ScopeRule { scope, judged, is_by_hand: false }
    }

    /// Returns a rule that a user added.
    pub(crate) fn by_hand(scope: &[u8], rule: ScopedRule) -> ScopeRule {
        ScopeRule { is_by_hand: true, ..ScopeRule::learned(scope.to_vec(), JudgedRule::new(rule, 0, 0, 0)) }
    }
}

/// The votes of the hosts of a site on a rule, or the votes of sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Votes {
    pub(crate) agree: u64,
    pub(crate) disagree: u64,
    pub(crate) support: u64,
    pub(crate) counter: u64,
    pub(crate) merged: u64,
}

impl Votes {
    fn add(&mut self, other: Votes) {
        self.agree += other.agree;
        self.disagree += other.disagree;
        self.support += other.support;
        self.counter += other.counter;
        self.merged += other.merged;
    }

    fn judged(self, rule: ScopedRule) -> JudgedRule {
        JudgedRule::new(rule, self.support, self.counter, self.merged)
    }
}

/// The hosts of a site, while they are added.
#[derive(Debug)]
pub(crate) struct OpenSite {
    pub(crate) site: Vec<u8>,
    /// Hosts whose rules were not taken yet.
    hosts: Vec<LearnedHost>,
    /// The votes of the hosts whose rules were taken.
    votes: BTreeMap<ScopedRule, Votes>,
}

impl OpenSite {
    /// The site of an authority, without hosts.
    pub(crate) fn of(authority: &[u8]) -> OpenSite {
        OpenSite { site: site_of(authority).to_vec(), hosts: Vec::new(), votes: BTreeMap::new() }
    }

    /// Returns whether an authority is the site or below it. It may belong to another site: public suffixes can be below a
    /// registered domain.
    pub(crate) fn contains(&self, authority: &[u8]) -> bool {
        authority.strip_suffix(&self.site[..]).is_some_and(|rest| rest.is_empty() || rest.ends_with(b"."))
    }

    pub(crate) fn add(&mut self, host: LearnedHost) {
        self.hosts.push(host);
    }

    /// Number of hosts whose rules were not taken yet.
    pub(crate) fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// Takes the rules of the hosts so far, to which further hosts will not be compared. Their votes on rules of the site are
    /// kept.
    pub(crate) fn take_rules(&mut self, limits: &ContentLimits) -> Vec<ScopeRule> {
        self.count_votes();
        let mut rules = self.aliases(limits);
        rules.extend(self.take_own_rules(&BTreeMap::new()));
        rules
    }

    /// Counts the votes of the hosts. When there are very many rules, those that were not seen before are not counted, so that
    /// none of them becomes a rule of the site.
    fn count_votes(&mut self) {
        for (rule, votes) in votes_of(&self.hosts) {
            let is_full = self.votes.len() == MAX_COUNTED;
            match self.votes.entry(rule) {
                Entry::Occupied(all) => all.into_mut().add(votes),
                Entry::Vacant(new) if !is_full => drop(new.insert(votes)),
                Entry::Vacant(_) => {}
            }
        }
    }

    /// Returns which hosts are aliases of others.
    fn aliases(&mut self, limits: &ContentLimits) -> Vec<ScopeRule> {
        let samples: Vec<HostSample> = self.hosts.iter_mut().filter_map(|host| host.sample.take()).collect();
        let aliases = find_aliases(&samples, limits).into_iter();
        aliases.map(|(host, judged)| ScopeRule::learned(host.to_vec(), judged)).collect()
    }

    /// Takes the rules of the hosts, except those of the site. Parameters that a host needs are returned as rules to keep them,
    /// which matter only if there is a rule for all hosts.
    fn take_own_rules(&mut self, of_site: &BTreeMap<ScopedRule, Votes>) -> Vec<ScopeRule> {
        let mut rules = Vec::new();
        for LearnedHost { host, rules: LearnedRules { rules: judged, parameters, .. }, .. } in self.hosts.drain(..) {
            let own =
                judged.into_iter().filter(|judged| judged.refusal.is_some() || !of_site.contains_key(&judged.rule));
            rules.extend(own.map(|judged| ScopeRule::learned(host.clone(), judged)));
            let kept = parameters.into_iter().map(|(name, counter)| {
                let rule = ContentRule::KeepParameter(name).into();
                ScopeRule::learned(host.clone(), JudgedRule::new(rule, 0, counter, 0))
            });
            rules.extend(kept);
        }
        rules
    }
}

/// Rules of the hosts of all sites, counted to find rules for all hosts.
#[derive(Debug, Default)]
pub(crate) struct GeneralRules {
    votes: BTreeMap<ScopedRule, Votes>,
}

impl GeneralRules {
    /// Adds a site to which all of its hosts were added. Returns the rules of the site, and those of the hosts that were not
    /// taken yet.
    pub(crate) fn add_site(&mut self, mut site: OpenSite, limits: &ContentLimits) -> Vec<ScopeRule> {
        site.count_votes();
        let votes = std::mem::take(&mut site.votes);
        self.add_votes(&votes);
        let is_shared = |votes: &Votes| votes.agree >= MIN_HOSTS && votes.disagree == 0;
        let of_site: BTreeMap<ScopedRule, Votes> = votes.into_iter().filter(|(_, votes)| is_shared(votes)).collect();
        let scope = [b"*.", &site.site[..]].concat();
        let mut rules = site.aliases(limits);
        rules.extend(of_site.iter().map(|(rule, votes)| ScopeRule::learned(scope.clone(), votes.judged(rule.clone()))));
        rules.extend(site.take_own_rules(&of_site));
        rules
    }

    /// A site agrees if one of its hosts does and none disagrees.
    fn add_votes(&mut self, votes: &BTreeMap<ScopedRule, Votes>) {
        for (rule, votes) in votes.iter().filter(|(rule, _)| is_for_all_hosts(rule)) {
            let (agree, disagree) = (u64::from(votes.disagree == 0), u64::from(votes.disagree > 0));
            self.add_part(rule.clone(), Votes { agree, disagree, ..*votes });
        }
        if self.votes.len() > MAX_COUNTED {
            self.forget_rare();
        }
    }

    /// Forgets at least half of the rules: those on which the fewest sites agree.
    fn forget_rare(&mut self) {
        let mut least = 2;
        while self.votes.len() > MAX_COUNTED / 2 {
            self.votes.retain(|_, votes| votes.agree >= least);
            least += 1;
        }
    }

    /// Adds the votes of the sites of a part of the captures on a rule.
    pub(crate) fn add_part(&mut self, rule: ScopedRule, votes: Votes) {
        self.votes.entry(rule).or_default().add(votes);
    }

    /// Returns the votes of the sites.
    pub(crate) fn votes(&self) -> impl Iterator<Item = (&ScopedRule, &Votes)> {
        self.votes.iter()
    }

    /// Returns the rules for all hosts.
    pub(crate) fn finish(&self) -> BTreeMap<ScopedRule, JudgedRule> {
        let is_agreed = |votes: &Votes| {
            let all = (votes.agree + votes.disagree) as f64;
            wilson_lower_bound(votes.agree as f64, all) >= MIN_AGREEMENT
        };
        let agreed = self.votes.iter().filter(|(_, votes)| is_agreed(votes));
        agreed.map(|(rule, votes)| (rule.clone(), votes.judged(rule.clone()))).collect()
    }
}

/// Only query parameters have names that mean the same on many sites.
fn is_for_all_hosts(rule: &ScopedRule) -> bool {
    rule.context == PathContext::Any && matches!(rule.rule, ContentRule::Parameter(_, None))
}

fn is_for_domains(rule: &ScopedRule) -> bool {
    let is_of_host = matches!(
        rule.rule,
        ContentRule::SameAs { .. } | ContentRule::Segment(..) | ContentRule::SegmentValue(..) | ContentRule::Query
    );
    rule.context == PathContext::Any && !is_of_host
}

fn votes_of(hosts: &[LearnedHost]) -> BTreeMap<ScopedRule, Votes> {
    let mut votes: BTreeMap<ScopedRule, Votes> = BTreeMap::new();
    for LearnedRules { rules, parameters, contradicted, .. } in hosts.iter().map(|host| &host.rules) {
        let mut disagreeing: BTreeSet<ScopedRule> = contradicted.iter().cloned().collect();
        for judged in rules.iter().filter(|judged| is_for_domains(&judged.rule)) {
            match judged.refusal {
                None => {
                    let votes = votes.entry(judged.rule.clone()).or_default();
                    votes.agree += 1;
                    votes.support += judged.support;
                    votes.counter += judged.counter;
                    votes.merged += judged.merged;
                }
                Some(RuleRefusal::CounterExamples) => drop(disagreeing.insert(judged.rule.clone())),
                Some(_) => (),
            }
        }
        disagreeing.extend(parameters.keys().map(|name| ScopedRule::from(ContentRule::Parameter(name.clone(), None))));
        for rule in disagreeing {
            votes.entry(rule).or_default().disagree += 1;
        }
    }
    for (rule, votes) in &mut votes {
        if let ContentRule::Parameter(name, Some(_)) = &rule.rule {
            votes.disagree += hosts.iter().filter(|host| host.needs_all_values(name, rule)).count() as u64;
        }
    }
    votes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn votes_take_bounded_memory() {
        let mut general = GeneralRules::default();
        let votes = |names: std::ops::Range<usize>| {
            let rule = |i: usize| ScopedRule::from(ContentRule::Parameter(i.to_string().into_bytes(), None));
            names.map(|i| (rule(i), Votes { agree: 1, ..Votes::default() })).collect()
        };
        // Three sites agree on a name, two on many names, and one on many others.
        (0..3).for_each(|_| general.add_votes(&votes(0..1)));
        (0..2).for_each(|_| general.add_votes(&votes(1..MAX_COUNTED - 1)));
        general.add_votes(&votes(MAX_COUNTED..MAX_COUNTED + 10));
        assert_eq!(general.votes().map(|(_, votes)| votes.agree).collect::<Vec<_>>(), [3]);
    }

    #[test]
    fn sites_are_registered_domains() {
        let cases = [
            ("www.example.com", "example.com"),
            ("a.b.example.co.uk", "example.co.uk"),
            ("a.github.io", "a.github.io"),
            ("x.y.unknown-tld", "y.unknown-tld"),
            ("localhost", "localhost"),
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1:8080", "192.0.2.1:8080"),
            ("u@192.0.2.1.:8080", "u@192.0.2.1.:8080"),
            ("[::1]:8080", "[::1]:8080"),
            ("www.example.com:8080", "example.com:8080"),
            ("a.example.co.uk:8080", "example.co.uk:8080"),
            ("example.co.uk:8080", "example.co.uk:8080"),
            ("a.github.io:8080", "a.github.io:8080"),
            ("co.uk:8080", "co.uk:8080"),
            ("x.y.unknown-tld:8080", "y.unknown-tld:8080"),
            ("localhost:8080", "localhost:8080"),
            ("a.example.co.uk.", "example.co.uk."),
            ("x.y.unknown-tld.:8080", "y.unknown-tld.:8080"),
            ("y.unknown-tld.", "y.unknown-tld."),
            ("u@www.example.com", "example.com"),
            ("8080", "8080"),
            ("", ""),
        ];
        for (host, site) in cases {
            assert_eq!(String::from_utf8_lossy(site_of(host.as_bytes())), site);
        }
    }
}
