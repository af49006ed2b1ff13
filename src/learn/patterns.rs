//! What hosts do to all their URLs, learned: [`Pattern`]s. In: redirects with verdicts, and how many URLs of each origin
//! answered for themselves. Out: for every scheme of a host, and for every ending of its paths, the rule that most URLs
//! showed, if enough did and hardly any contradicts.
//!
//! | of a URL was seen | says of its origin's rule | says of its ending's rule |
//! |---|---|---|
//! | a redirect to another origin of the same host | this one | nothing |
//! | ... that also changes the slash | this one | this one, at the target |
//! | a redirect that changes the slash alone | nothing | this one |
//! | a redirect elsewhere, or an answer of its own | none | none |
//!
//! Redirects that are weak, go round, or are those of a URL to itself say nothing.

use super::classes::{NOWHERE, find_loops};
use super::guards::RedirectEdge;
use super::nodes::UrlNodes;
use super::observed::Observations;
use super::redirect::{LearnLimits, RedirectVerdict};
use super::rule::{OriginRule, RewriteRule};
use super::spelling::{PathEnding, Spelling};
use std::collections::{BTreeMap, BTreeSet};

/// Examples that are kept of each kind.
const EXAMPLES: usize = 3;

/// A rule of a host.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    /// The authority, as it stands in URIs.
    pub host: Vec<u8>,
    /// What is done to its URLs.
    pub rule: RewriteRule,
    /// Different URLs that showed it.
    pub support: u64,
    /// Different URLs that it speaks of and that showed something else.
    pub counter: u64,
    /// The first of the former, by bytes.
    pub examples: Vec<Vec<u8>>,
    /// The first of the latter.
    pub counter_examples: Vec<Vec<u8>>,
}

/// Rules that some URLs showed and that were not learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedRules {
    /// Too few URLs showed them.
    pub support: u64,
    /// Too many showed something else.
    pub confidence: u64,
    /// Together with others they would go round.
    pub circular: u64,
}

impl Pattern {
    /// The share of the URLs that showed it among all that it speaks of.
    pub fn confidence(&self) -> f64 {
        self.support as f64 / (self.support + self.counter).max(1) as f64
    }
}

/// Different URLs, with the first few.
#[derive(Clone, Debug, Default)]
struct UrlSample {
    count: u64,
    first: Vec<Vec<u8>>,
}

impl UrlSample {
    fn add(&mut self, uri: &[u8]) {
        self.count += 1;
        self.example(uri);
    }

    fn example(&mut self, uri: &[u8]) {
        let at = self.first.partition_point(|first| &first[..] < uri);
        if at < EXAMPLES && self.first.get(at).is_none_or(|first| first != uri) {
            self.first.insert(at, uri.to_vec());
            self.first.truncate(EXAMPLES);
        }
    }

    fn add_all(&mut self, other: &UrlSample) {
        self.count += other.count;
        other.first.iter().for_each(|uri| self.example(uri));
    }
}

/// What the URLs that one rule may speak of showed.
#[derive(Debug, Default)]
struct RuleVotes {
    rules: BTreeMap<RewriteRule, UrlSample>,
    otherwise: UrlSample,
}

/// One for each scheme of a host, and one for each ending of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum VoteSlot {
    Origin { is_https: bool },
    PathEnding(PathEnding),
}

/// HostVotes of hosts. Ordered, so that what comes of them is.
type HostVotes = BTreeMap<Vec<u8>, BTreeMap<VoteSlot, RuleVotes>>;

/// The patterns, by host and rule; and what was not learned.
pub(super) fn learn(
    observed: &Observations,
    edges: &[RedirectEdge],
    limits: &LearnLimits,
) -> (Vec<Pattern>, RefusedRules) {
    let mut cells = HostVotes::new();
    edges.iter().for_each(|edge| show(&mut cells, &observed.nodes, edge));
    let (mut patterns, mut refused) = (Vec::new(), RefusedRules::default());
    for (host, mut slots) in cells {
        // Only where something was shown do answers matter.
        answer(&mut slots, &host, observed);
        for pattern in slots.into_values().filter_map(|cell| best(&host, cell)) {
            match pattern {
                _ if pattern.support < limits.min_support.max(1) => refused.support += 1,
                _ if pattern.confidence() < limits.min_confidence => refused.confidence += 1,
                _ => patterns.push(pattern),
            }
        }
    }
    let learned = patterns.len();
    refuse_circles(&mut patterns);
    refused.circular = (learned - patterns.len()) as u64;
    patterns.sort_unstable_by(|a, b| (&a.host, a.rule).cmp(&(&b.host, b.rule)));
    (patterns, refused)
}

fn cell<'c>(cells: &'c mut HostVotes, host: &[u8], slot: VoteSlot) -> &'c mut RuleVotes {
    cells.entry(host.to_vec()).or_default().entry(slot).or_default()
}

/// What a redirect shows.
fn show(cells: &mut HostVotes, nodes: &UrlNodes, edge: &RedirectEdge) {
    let uri = nodes.uri(edge.from);
    let (Some(from), to) = (Spelling::of(uri), Spelling::of(nodes.uri(edge.to))) else { return };
    let (origin, ending) = (VoteSlot::Origin { is_https: from.is_https }, VoteSlot::PathEnding(from.ending()));
    match (edge.verdict, edge.change, to) {
        (RedirectVerdict::Accepted, Some(change), Some(to)) => {
            if let Some(rule) = OriginRule::between(&from, &to) {
                cell(cells, from.authority, origin).rules.entry(RewriteRule::Origin(rule)).or_default().add(uri);
            }
            if let Some(rule) = RewriteRule::of_change(change, from.ending()) {
                cell(cells, to.authority, ending).rules.entry(rule).or_default().add(uri);
            }
        }
        (
            RedirectVerdict::Accepted | RedirectVerdict::Ambiguous | RedirectVerdict::Sink | RedirectVerdict::OtherSite,
            ..,
        ) => {
            cell(cells, from.authority, origin).otherwise.add(uri);
            cell(cells, from.authority, ending).otherwise.add(uri);
        }
        _ => (),
    }
}

/// LearnCounts the URLs of a host that answered for themselves.
fn answer(slots: &mut BTreeMap<VoteSlot, RuleVotes>, host: &[u8], observed: &Observations) {
    for is_https in [false, true] {
        let mut origin = Vec::new();
        Spelling { is_https, authority: host, path: b"", tail: b"", is_bare_host: true }.write_origin(&mut origin);
        let Some(answers) = observed.origins.get(&origin) else { continue };
        for ending in [PathEnding::Slash, PathEnding::Name, PathEnding::File, PathEnding::Other] {
            let (count, example) = (answers.counts[ending as usize], &answers.examples[ending as usize]);
            for slot in [VoteSlot::Origin { is_https }, VoteSlot::PathEnding(ending)] {
                let Some(cell) = slots.get_mut(&slot) else { continue };
                cell.otherwise.count += count;
                example.iter().for_each(|uri| cell.otherwise.example(uri));
            }
        }
    }
}

/// The rule that most URLs of a cell showed; the others speak against it.
fn best(host: &[u8], cell: RuleVotes) -> Option<Pattern> {
    let RuleVotes { mut rules, mut otherwise } = cell;
    let (&rule, _) = rules.iter().rev().max_by_key(|(_, urls)| urls.count)?;
    let shown = rules.remove(&rule)?;
    rules.values().for_each(|other| otherwise.add_all(other));
    let (support, counter) = (shown.count, otherwise.count);
    Some(Pattern {
        host: host.to_vec(),
        rule,
        support,
        counter,
        examples: shown.first,
        counter_examples: otherwise.first,
    })
}

/// Drops the patterns that, one applied after the other, would never come to an end. Origins are few to a host, so that
/// circles are found among them; slashes that are added and stripped again are those of one host.
fn refuse_circles(patterns: &mut Vec<Pattern>) {
    let mut numbers = BTreeMap::new();
    let mut number = |host: Vec<u8>, is_https: bool| {
        let next = numbers.len();
        *numbers.entry((host, is_https)).or_insert(next)
    };
    let mut leads = Vec::new();
    for pattern in patterns.iter() {
        let RewriteRule::Origin(rule) = pattern.rule else { continue };
        let Some(host) = rule.host(&pattern.host) else { continue };
        leads.push((number(pattern.host.clone(), rule.from_https), number(host, rule.to_https)));
    }
    let mut next = vec![NOWHERE; numbers.len()];
    leads.into_iter().for_each(|(from, to)| next[from] = to as u32);
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

fn hosts_with(patterns: &[Pattern], is_wanted: impl Fn(RewriteRule) -> bool) -> BTreeSet<Vec<u8>> {
    patterns.iter().filter(|pattern| is_wanted(pattern.rule)).map(|pattern| pattern.host.clone()).collect()
}
