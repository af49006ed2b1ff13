//! From what was observed to what is believed: [`Observations::learn`]. In: redirects, answers, limits. Out: [`Learned`], the
//! members of classes and the patterns with their evidence, and how every single redirect was judged.

use super::classes::{NOWHERE, UnionFind, find_loops};
use super::equivalences::Equivalences;
use super::guards::{self, RedirectEdge};
use super::observed::{Observations, RecordPlace};
use super::patterns::{self, Pattern, RefusedRules};
use super::redirect::{LearnLimits, RedirectCode, RedirectVerdict};
use crate::key::{KeyAlgorithm, KeyBytes};

/// Why a URL is in its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberReason {
    /// It is the representative: where the redirects end.
    Representative,
    /// It redirected, and this is the strongest status that it did so with.
    Redirect(RedirectCode),
    /// The redirects of its class end here, nobody saw it answer for itself, and a pattern of its host speaks of it.
    Pattern,
}

impl MemberReason {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
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
    /// The URL, canonical.
    pub uri: Vec<u8>,
    /// Its key on the `scheme` rung.
    pub key: KeyBytes,
    /// The URL that stands for the class.
    pub representative: Vec<u8>,
    /// Its key.
    pub representative_key: KeyBytes,
    /// Why it is in the class.
    pub how: MemberReason,
    /// What it redirected to; nothing for the representative.
    pub target: Option<Vec<u8>>,
    /// Records that say so.
    pub records: u64,
    /// The first of them.
    pub first: Option<RecordPlace>,
}

/// What became of the redirects: by records, the sum of all verdicts is [`LearnCounts::read`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LearnCounts {
    /// Redirects that records named.
    pub read: u64,
    /// Records, by [`RedirectVerdict::ALL`].
    pub records: [u64; RedirectVerdict::ALL.len()],
    /// Different redirects, by [`RedirectVerdict::ALL`]; none of other statuses, nor unparsable ones.
    pub redirects: [u64; RedirectVerdict::ALL.len()],
    /// Different accepted ones that change scheme or `www.`, and nothing but that and a slash.
    pub origin_changes: u64,
    /// Different accepted ones that change the slash, and nothing but that and the origin.
    pub slash_changes: u64,
    /// UnionFind.
    pub classes: u64,
    /// The members of the largest.
    pub largest: u64,
    /// Different URLs that answered for themselves.
    pub served: u64,
    /// Rules that were not learned.
    pub refused: RefusedRules,
}

/// What was learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Learned {
    /// Members of classes, representatives among them; by the representative's bytes, then by their own.
    pub members: Vec<ClassMember>,
    /// Patterns, by host and rule.
    pub patterns: Vec<Pattern>,
    /// What became of the redirects.
    pub counts: LearnCounts,
}

impl Observations {
    /// What follows from all that was observed. `algorithm` is what the keys were made with.
    ///
    /// ```
    /// use irikey::key::KeyAlgorithm;
    /// use irikey::learn::{LearnLimits, Observations, RecordPlace, RowGroupObservations};
    /// let url = |text: &'static str| (text.as_bytes(), KeyAlgorithm::Xxh3.key(text.as_bytes()));
    /// let (mut sightings, mut observed) = (RowGroupObservations::default(), Observations::default());
    /// let place = RecordPlace { source: 0, record: 1 };
    /// sightings.redirect(url("http://a.example/"), url("https://a.example/"), Some(301), place);
    /// observed.add(sightings);
    /// let learned = observed.learn(&LearnLimits::default(), KeyAlgorithm::Xxh3);
    /// assert_eq!(learned.members[0].representative, b"https://a.example/");
    /// ```
    pub fn learn(mut self, limits: &LearnLimits, algorithm: KeyAlgorithm) -> Learned {
        let edges = guards::judge(&self, limits);
        let (patterns, refused) = patterns::learn(&self, &edges, limits);
        let mut counts = LearnCounts { refused, served: self.served.len() as u64, ..count(&self, &edges) };
        let next = follow_patterns(&mut self, &edges, &patterns, algorithm);
        let members = members(&self, &edges, &next, &mut counts);
        Learned { members, patterns, counts }
    }
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

/// Where each node leads: by redirects, and where these end and nobody saw the URL answer, by patterns.
fn follow_patterns(
    observed: &mut Observations,
    edges: &[RedirectEdge],
    patterns: &[Pattern],
    algorithm: KeyAlgorithm,
) -> Vec<u32> {
    let mut next = guards::leads(edges, observed.nodes.len());
    let mut hosts = Equivalences::new(algorithm);
    for pattern in patterns {
        // Those that contradict each other were refused before.
        let added = hosts.add_pattern(&pattern.host, pattern.rule);
        debug_assert!(added.is_ok());
    }
    let ends: Vec<u32> =
        edges.iter().filter(|edge| edge.verdict == RedirectVerdict::Accepted).map(|edge| edge.to).collect();
    let mut by_pattern = Vec::new();
    for end in ends {
        let (uri, key) = (observed.nodes.uri(end), observed.nodes.key(end));
        if next[end as usize] == NOWHERE
            && !observed.is_served(&key)
            && let Some((text, key)) = hosts.follow(uri)
        {
            let target = observed.nodes.intern(&text, key);
            next.resize(observed.nodes.len(), NOWHERE);
            next[end as usize] = target;
            by_pattern.push(end);
        }
    }
    // What is observed goes before what is inferred.
    let is_loop = find_loops(&next);
    by_pattern.into_iter().filter(|end| is_loop[*end as usize]).for_each(|end| next[end as usize] = NOWHERE);
    next
}

/// The members of all classes of two or more.
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
    let accepted = edges.iter().filter(|edge| edge.verdict == RedirectVerdict::Accepted);
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
