//! Learns patterns: what a host does to all of its URLs.
//!
//! For every scheme of a host and for every ending of its paths, URLs vote for a rule. The rule with the most votes is
//! learned if enough URLs confirm it and hardly any contradicts it.
//!
//! | observation of a URL | vote for the origin's rule | vote for the ending's rule |
//! |---|---|---|
//! | redirect to another origin of the same host | that rule | none |
//! | redirect that also changes the slash | that rule | that rule, at the target's host |
//! | redirect that changes only the slash | none | that rule |
//! | redirect elsewhere, or a success answer | against | against |
//!
//! Redirects that are weak, part of a loop, or from a URL to itself do not vote.

use super::graph::{NOWHERE, UrlNodes, find_loops};
use super::observations::Observations;
use super::redirect::{LearnLimits, RedirectEdge, RedirectVerdict};
use super::rewrite::{OriginRule, RewriteRule};
use super::spelling::{PathEnding, Spelling};
use std::collections::{BTreeMap, BTreeSet};

/// Number of examples, and of counter-examples, per pattern.
const EXAMPLES: usize = 3;

/// A rule that a host applies to its URLs, with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The authority, as in URIs.
    pub host: Vec<u8>,
    /// The rule.
    pub rule: RewriteRule,
    /// Number of distinct URLs that confirm the rule.
    pub support: u64,
    /// Number of distinct URLs that the rule applies to and that contradict it.
    pub counter: u64,
    /// The first URLs that confirm the rule, by bytes.
    pub examples: Vec<Vec<u8>>,
    /// The first URLs that contradict the rule, by bytes.
    pub counter_examples: Vec<Vec<u8>>,
}

/// Numbers of rules that some URLs confirmed and that were not learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedRules {
    /// Too few URLs confirmed them.
    pub support: u64,
    /// Too many URLs contradicted them.
    pub confidence: u64,
    /// They would loop together with other rules.
    pub circular: u64,
}

impl Pattern {
    /// Returns the share of URLs that confirm the rule among those it applies to.
    pub(crate) fn confidence(&self) -> f64 {
        self.support as f64 / (self.support + self.counter).max(1) as f64
    }
}

/// A number of distinct URLs and the first of them.
#[derive(Clone, Debug, Default)]
struct UrlSample {
    count: u64,
    first: Vec<Vec<u8>>,
}

impl UrlSample {
    fn add(&mut self, uri: &[u8]) {
        self.count += 1;
        self.add_example(uri);
    }

    fn add_example(&mut self, uri: &[u8]) {
        let at = self.first.partition_point(|first| &first[..] < uri);
        if at < EXAMPLES && self.first.get(at).is_none_or(|first| first != uri) {
            self.first.insert(at, uri.to_vec());
            self.first.truncate(EXAMPLES);
        }
    }

    fn add_all(&mut self, other: &UrlSample) {
        self.count += other.count;
        other.first.iter().for_each(|uri| self.add_example(uri));
    }
}

/// The votes of the URLs that one rule can apply to.
#[derive(Debug, Default)]
struct RuleVotes {
    rules: BTreeMap<RewriteRule, UrlSample>,
    against: UrlSample,
}

/// What one rule is learned for: a scheme of a host, or an ending of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VoteSlot {
    Origin { is_https: bool },
    PathEnding(PathEnding),
}

/// Votes by host, ordered so that results are deterministic.
type HostVotes = BTreeMap<Vec<u8>, BTreeMap<VoteSlot, RuleVotes>>;

/// Returns the patterns, sorted by host and rule, and the numbers of rules that were not learned.
pub(super) fn learn(
    observed: &Observations,
    edges: &[RedirectEdge],
    limits: &LearnLimits,
) -> (Vec<Pattern>, RefusedRules) {
    let mut votes = HostVotes::new();
    edges.iter().for_each(|edge| count_redirect(&mut votes, &observed.nodes, edge));
    let (mut patterns, mut refused) = (Vec::new(), RefusedRules::default());
    for (host, mut slots) in votes {
        count_answers(&mut slots, &host, observed);
        for pattern in slots.into_values().filter_map(|votes| best_rule(&host, votes)) {
            match pattern {
                _ if pattern.support < limits.min_support.max(1) => refused.support += 1,
                _ if pattern.confidence() < limits.min_confidence => refused.confidence += 1,
                _ => patterns.push(pattern),
            }
        }
    }
    let learned = patterns.len();
    remove_loops(&mut patterns);
    refused.circular = (learned - patterns.len()) as u64;
    patterns.sort_unstable_by(|a, b| (&a.host, a.rule).cmp(&(&b.host, b.rule)));
    (patterns, refused)
}

fn votes_of<'v>(votes: &'v mut HostVotes, host: &[u8], slot: VoteSlot) -> &'v mut RuleVotes {
    votes.entry(host.to_vec()).or_default().entry(slot).or_default()
}

/// Counts the votes of a redirect.
fn count_redirect(votes: &mut HostVotes, nodes: &UrlNodes, edge: &RedirectEdge) {
    let uri = nodes.uri(edge.from);
    let (Some(from), to) = (Spelling::of(uri), Spelling::of(nodes.uri(edge.to))) else { return };
    let (origin, ending) = (VoteSlot::Origin { is_https: from.is_https }, VoteSlot::PathEnding(from.ending()));
    match (edge.verdict, edge.change, to) {
        (RedirectVerdict::Accepted, Some(change), Some(to)) => {
            if let Some(rule) = OriginRule::between(&from, &to) {
                votes_of(votes, from.authority, origin).rules.entry(RewriteRule::Origin(rule)).or_default().add(uri);
            }
            if let Some(rule) = RewriteRule::of_change(change, from.ending()) {
                votes_of(votes, to.authority, ending).rules.entry(rule).or_default().add(uri);
            }
        }
        (
            RedirectVerdict::Accepted | RedirectVerdict::Ambiguous | RedirectVerdict::Sink | RedirectVerdict::OtherSite,
            ..,
        ) => {
            votes_of(votes, from.authority, origin).against.add(uri);
            votes_of(votes, from.authority, ending).against.add(uri);
        }
        _ => (),
    }
}

/// Counts the URLs of a host that answered with a success status. They only matter where a redirect voted.
fn count_answers(slots: &mut BTreeMap<VoteSlot, RuleVotes>, host: &[u8], observed: &Observations) {
    for is_https in [false, true] {
        let mut origin = Vec::new();
        Spelling { is_https, authority: host, path: b"", tail: b"", is_bare_host: true }.write_origin(&mut origin);
        let Some(answers) = observed.origins.get(&origin) else { continue };
        for ending in [PathEnding::Slash, PathEnding::Name, PathEnding::File, PathEnding::Other] {
            let (count, example) = (answers.counts[ending as usize], &answers.examples[ending as usize]);
            for slot in [VoteSlot::Origin { is_https }, VoteSlot::PathEnding(ending)] {
                let Some(votes) = slots.get_mut(&slot) else { continue };
                votes.against.count += count;
                example.iter().for_each(|uri| votes.against.add_example(uri));
            }
        }
    }
}

/// Returns the rule with the most votes; votes for other rules count against it.
fn best_rule(host: &[u8], votes: RuleVotes) -> Option<Pattern> {
    let RuleVotes { mut rules, mut against } = votes;
    let (&rule, _) = rules.iter().rev().max_by_key(|(_, urls)| urls.count)?;
    let confirming = rules.remove(&rule)?;
    rules.values().for_each(|other| against.add_all(other));
    let (support, counter) = (confirming.count, against.count);
    Some(Pattern {
        host: host.to_vec(),
        rule,
        support,
        counter,
        examples: confirming.first,
        counter_examples: against.first,
    })
}

/// Removes patterns that would never end when they are applied one after the other: origins that lead to each other in a
/// loop, and slashes that one rule of a host adds and another removes.
fn remove_loops(patterns: &mut Vec<Pattern>) {
    let mut numbers = BTreeMap::new();
    let mut number = |host: Vec<u8>, is_https: bool| {
        let next = numbers.len();
        *numbers.entry((host, is_https)).or_insert(next)
    };
    let mut steps = Vec::new();
    for pattern in patterns.iter() {
        let RewriteRule::Origin(rule) = pattern.rule else { continue };
        let Some(host) = rule.host(&pattern.host) else { continue };
        steps.push((number(pattern.host.clone(), rule.from_https), number(host, rule.to_https)));
    }
    let mut next = vec![NOWHERE; numbers.len()];
    steps.into_iter().for_each(|(from, to)| next[from] = to as u32);
    let loops = find_loops(&next);
    let stripped: BTreeSet<Vec<u8>> = hosts_with(patterns, |rule| rule == RewriteRule::StripSlash);
    let added = hosts_with(patterns, |rule| matches!(rule, RewriteRule::AddSlash | RewriteRule::AddSlashToFiles));
    patterns.retain(|pattern| match pattern.rule {
        RewriteRule::Origin(rule) => {
            numbers.get(&(pattern.host.clone(), rule.from_https)).is_some_and(|at| !loops[*at])
        }
        _ => !(stripped.contains(&pattern.host) && added.contains(&pattern.host)),
    });
}

fn hosts_with(patterns: &[Pattern], predicate: impl Fn(RewriteRule) -> bool) -> BTreeSet<Vec<u8>> {
    patterns.iter().filter(|pattern| predicate(pattern.rule)).map(|pattern| pattern.host.clone()).collect()
}
