//! Decides about every redirect, joins URLs into classes, and combines classes and patterns: [`Observations::learn`].
//!
//! The checks of redirects run one after the other: self, weak, other site, ambiguous, loop, sink. A redirect that one
//! check refuses does not count for the checks that follow, except that sinks are counted over all redirects.

use super::equivalences::Equivalences;
use super::graph::{NOWHERE, UnionFind, UrlNodes, find_loops};
use super::observations::Observations;
use super::patterns::{self, Pattern, RefusedRules};
use super::redirect::{LearnLimits, RecordPlace, RedirectCode, RedirectEdge, RedirectEvidence, RedirectVerdict};
use super::spelling::Spelling;
use crate::iri::Parts;
use crate::key::psl::HostParts;
use crate::key::{KeyAlgorithm, KeyBytes};

/// Why a URL is in its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberReason {
    /// It is the representative: the URL where the redirects end.
    Representative,
    /// It redirected; the strongest code that was observed.
    Redirect(RedirectCode),
    /// The redirects of its class end here, it never answered with a success status, and a pattern of its host applies.
    Pattern,
}

impl MemberReason {
    /// Returns the name in files.
    #[cfg(feature = "batch")]
    pub(crate) const fn name(self) -> &'static str {
        match self {
            MemberReason::Representative => "representative",
            MemberReason::Redirect(code) => code.name(),
            MemberReason::Pattern => "pattern",
        }
    }
}

/// A URL of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassMember {
    /// The canonical URL.
    pub uri: Vec<u8>,
    /// Its key on the rung `scheme`.
    pub key: KeyBytes,
    /// The representative of the class.
    pub representative: Vec<u8>,
    /// The key of the representative.
    pub representative_key: KeyBytes,
    /// Why the URL is in the class.
    pub how: MemberReason,
    /// The target of its redirect; `None` for the representative.
    pub target: Option<Vec<u8>>,
    /// Number of records that state the redirect.
    pub records: u64,
    /// The first of these records.
    pub first: Option<RecordPlace>,
}

/// Counts of redirects by verdict, and of what was learned. The records of all verdicts sum up to [`LearnCounts::read`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnCounts {
    /// Redirects that records state.
    pub read: u64,
    /// Records by [`RedirectVerdict::ALL`].
    pub records: [u64; RedirectVerdict::ALL.len()],
    /// Distinct redirects by [`RedirectVerdict::ALL`]; those of other statuses and unparsable ones are not counted.
    pub redirects: [u64; RedirectVerdict::ALL.len()],
    /// Distinct accepted redirects that change the scheme or `www.`, and nothing else except the final slash.
    pub origin_changes: u64,
    /// Distinct accepted redirects that change the final slash, and nothing else except the origin.
    pub slash_changes: u64,
    /// Classes.
    pub classes: u64,
    /// Members of the largest class.
    pub largest: u64,
    /// Distinct URLs that answered with a success status.
    pub served: u64,
    /// Rules that were not learned.
    pub refused: RefusedRules,
}

/// What was learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// Members of classes, including representatives, sorted by representative and URL.
    pub members: Vec<ClassMember>,
    /// Patterns, sorted by host and rule.
    pub patterns: Vec<Pattern>,
    /// Counts of redirects and results.
    pub counts: LearnCounts,
}

impl Observations {
    /// Learns equivalences from all observations. `algorithm` is the one that their keys were made with.
    ///
    /// ```
    /// use irikey::key::KeyAlgorithm;
    /// use irikey::learn::{LearnLimits, Observations, RecordPlace, RowGroupObservations};
    /// let url = |text: &'static str| (text.as_bytes(), KeyAlgorithm::Xxh3.key(text.as_bytes()));
    /// let (mut group, mut observations) = (RowGroupObservations::default(), Observations::default());
    /// let place = RecordPlace { source: 0, record: 1 };
    /// group.redirect(url("http://a.example/"), url("https://a.example/"), Some(301), place);
    /// observations.add(group);
    /// let learned = observations.learn(&LearnLimits::default(), KeyAlgorithm::Xxh3);
    /// assert_eq!(learned.members[0].representative, b"https://a.example/");
    /// ```
    pub fn learn(mut self, limits: &LearnLimits, algorithm: KeyAlgorithm) -> Learned {
        let edges = judge(&self, limits);
        let (patterns, refused) = patterns::learn(&self, &edges, limits);
        let mut counts = LearnCounts { refused, served: self.served_count, ..count(&self, &edges) };
        let next = follow_patterns(&mut self, &edges, &patterns, algorithm);
        let members = members(&self, &edges, &next, &mut counts);
        Learned { members, patterns, counts }
    }
}

/// Returns the redirects with their verdicts, sorted by their URLs.
fn judge(observed: &Observations, limits: &LearnLimits) -> Vec<RedirectEdge> {
    let mut edges: Vec<RedirectEdge> =
        observed.redirects.iter().map(|(&(from, to), &evidence)| edge(observed, from, to, evidence)).collect();
    edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    for edge in &mut edges {
        edge.verdict = match edge {
            _ if edge.from == edge.to => RedirectVerdict::SelfRedirect,
            _ if edge.evidence.code != RedirectCode::Permanent && !limits.weak => RedirectVerdict::Weak,
            _ if limits.same_site && edge.change.is_none() && !is_one_site(&observed.nodes, edge) => {
                RedirectVerdict::OtherSite
            }
            _ => RedirectVerdict::Accepted,
        };
    }
    refuse_ambiguous(&mut edges);
    refuse_loops(&mut edges, observed.nodes.len());
    refuse_sinks(&mut edges, observed.nodes.len(), limits.max_sources);
    edges
}

fn edge(observed: &Observations, from: u32, to: u32, mut evidence: RedirectEvidence) -> RedirectEdge {
    let nodes = &observed.nodes;
    if evidence.code == RedirectCode::Unknown {
        // One record states the target; another record of the same URL may state the status.
        evidence.code = observed.statuses.get(&nodes.key(from)).copied().unwrap_or(RedirectCode::Unknown);
    }
    let change = || Spelling::of(nodes.uri(from))?.change_to(&Spelling::of(nodes.uri(to))?);
    RedirectEdge { from, to, evidence, change: change(), verdict: RedirectVerdict::Accepted }
}

fn is_one_site(nodes: &UrlNodes, edge: &RedirectEdge) -> bool {
    let [from, to] = [edge.from, edge.to].map(|node| {
        let uri = nodes.uri(node);
        let host = Parts::split(uri).host(uri).unwrap_or_default();
        HostParts::of(host).private_domain.unwrap_or(host)
    });
    from == to
}

/// Refuses the redirects of URLs with several targets. If some redirects of a URL have a stronger code, only these count.
fn refuse_ambiguous(edges: &mut [RedirectEdge]) {
    for edges in edges.chunk_by_mut(|a, b| a.from == b.from) {
        let strongest = edges.iter().filter(|edge| edge.is_accepted()).map(|edge| edge.evidence.code).min();
        let targets = edges.iter().filter(|edge| edge.is_accepted() && Some(edge.evidence.code) == strongest).count();
        for edge in edges.iter_mut().filter(|edge| edge.is_accepted()) {
            if targets > 1 || Some(edge.evidence.code) != strongest {
                edge.verdict = RedirectVerdict::Ambiguous;
            }
        }
    }
}

fn refuse_loops(edges: &mut [RedirectEdge], nodes: usize) {
    let is_loop = find_loops(&redirect_targets(edges, nodes));
    edges.iter_mut().filter(|edge| edge.is_accepted() && is_loop[edge.from as usize]).for_each(|edge| {
        edge.verdict = RedirectVerdict::Loop;
    });
}

fn refuse_sinks(edges: &mut [RedirectEdge], nodes: usize, max_sources: u64) {
    let mut sources = vec![0u64; nodes];
    let counts = |edge: &&RedirectEdge| edge.from != edge.to && edge.change.is_none();
    edges.iter().filter(counts).for_each(|edge| sources[edge.to as usize] += 1);
    for edge in edges.iter_mut().filter(|edge| edge.is_accepted() && edge.change.is_none()) {
        if sources[edge.to as usize] > max_sources {
            edge.verdict = RedirectVerdict::Sink;
        }
    }
}

/// Returns where each node leads by accepted redirects; a node has at most one.
fn redirect_targets(edges: &[RedirectEdge], nodes: usize) -> Vec<u32> {
    let mut next = vec![NOWHERE; nodes];
    edges.iter().filter(|edge| edge.is_accepted()).for_each(|edge| next[edge.from as usize] = edge.to);
    next
}

fn count(observed: &Observations, edges: &[RedirectEdge]) -> LearnCounts {
    let mut counts = LearnCounts::default();
    for edge in edges {
        counts.records[edge.verdict as usize] += edge.evidence.records;
        counts.redirects[edge.verdict as usize] += 1;
        if let (RedirectVerdict::Accepted, Some(change)) = (edge.verdict, edge.change) {
            counts.origin_changes += u64::from(change.origin);
            counts.slash_changes += u64::from(change.slash.is_some());
        }
    }
    counts.records[RedirectVerdict::OtherStatus as usize] = observed.other_status;
    counts.records[RedirectVerdict::Unparsable as usize] = observed.unparsable;
    counts.read = counts.records.iter().sum();
    counts
}

/// Returns where each node leads: by redirects; where these end at a URL that never answered with a success status, by
/// patterns.
fn follow_patterns(
    observed: &mut Observations,
    edges: &[RedirectEdge],
    patterns: &[Pattern],
    algorithm: KeyAlgorithm,
) -> Vec<u32> {
    let mut next = redirect_targets(edges, observed.nodes.len());
    let mut hosts = Equivalences::new(algorithm);
    for pattern in patterns {
        // Patterns that contradict each other were refused before.
        let added = hosts.add_pattern(&pattern.host, pattern.rule);
        debug_assert!(added.is_ok());
    }
    let ends: Vec<u32> = edges.iter().filter(|edge| edge.is_accepted()).map(|edge| edge.to).collect();
    let mut by_pattern = Vec::new();
    for end in ends {
        let (uri, key) = (observed.nodes.uri(end), observed.nodes.key(end));
        if next[end as usize] == NOWHERE
            && !observed.is_served(&key)
            && let Some((text, key, _)) = hosts.follow(uri)
        {
            let target = observed.nodes.intern(&text, key);
            next.resize(observed.nodes.len(), NOWHERE);
            next[end as usize] = target;
            by_pattern.push(end);
        }
    }
    // A pattern must not close a loop of observed redirects.
    let is_loop = find_loops(&next);
    by_pattern.into_iter().filter(|end| is_loop[*end as usize]).for_each(|end| next[end as usize] = NOWHERE);
    next
}

/// Returns the members of all classes of two or more URLs.
fn members(
    observed: &Observations,
    edges: &[RedirectEdge],
    next: &[u32],
    counts: &mut LearnCounts,
) -> Vec<ClassMember> {
    let nodes = &observed.nodes;
    let mut classes = UnionFind::new(nodes.len());
    let joined = (0u32..).zip(next).filter(|(_, to)| **to != NOWHERE);
    joined.for_each(|(from, to)| classes.join(from, *to));
    let mut ends = vec![NOWHERE; nodes.len()];
    for node in (0..nodes.len() as u32).filter(|node| next[*node as usize] == NOWHERE) {
        ends[classes.find(node) as usize] = node;
    }
    let mut evidence = vec![None; nodes.len()];
    let accepted = edges.iter().filter(|edge| edge.is_accepted());
    accepted.for_each(|edge| evidence[edge.from as usize] = Some(edge.evidence));
    let mut members = Vec::new();
    for node in 0..nodes.len() as u32 {
        let size = u64::from(classes.size(node));
        if size < 2 {
            continue;
        }
        let (end, to, seen) = (ends[classes.find(node) as usize], next[node as usize], evidence[node as usize]);
        counts.classes += u64::from(end == node);
        counts.largest = counts.largest.max(size);
        members.push(ClassMember {
            uri: nodes.uri(node).to_vec(),
            key: nodes.key(node),
            representative: nodes.uri(end).to_vec(),
            representative_key: nodes.key(end),
            how: match seen {
                Some(seen) => MemberReason::Redirect(seen.code),
                None if to != NOWHERE => MemberReason::Pattern,
                None => MemberReason::Representative,
            },
            target: (to != NOWHERE).then(|| nodes.uri(to).to_vec()),
            records: seen.map_or(0, |seen| seen.records),
            first: seen.map(|seen| seen.first),
        });
    }
    members.sort_unstable_by(|a, b| (&a.representative, &a.uri).cmp(&(&b.representative, &b.uri)));
    members
}
