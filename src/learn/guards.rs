//! Which redirects join what they connect: a [`RedirectVerdict`] on each. In: redirects, each once. Out: the same with verdicts.
//! The guards come one after the other, and a redirect that one of them refuses does not count for those that follow: self,
//! weak, other site, ambiguous, loop, sink. Only what makes a sink is counted over all redirects.

use super::classes::{NOWHERE, find_loops};
use super::nodes::UrlNodes;
use super::observed::{Observations, RedirectEvidence};
use super::redirect::{LearnLimits, RedirectCode, RedirectVerdict};
use super::spelling::{Spelling, SpellingChange};
use crate::iri::Parts;
use crate::key::psl::HostParts;

/// A redirect under judgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct RedirectEdge {
    pub from: u32,
    pub to: u32,
    pub evidence: RedirectEvidence,
    /// What the two differ in, if they may be spellings of one URL.
    pub change: Option<SpellingChange>,
    pub verdict: RedirectVerdict,
}

impl RedirectEdge {
    fn is_open(&self) -> bool {
        self.verdict == RedirectVerdict::Accepted
    }
}

/// The redirects with their verdicts, by their URL.
pub(super) fn judge(observed: &Observations, limits: &LearnLimits) -> Vec<RedirectEdge> {
    let mut edges: Vec<RedirectEdge> =
        observed.redirects.iter().map(|(&(from, to), &one)| edge(observed, from, to, one)).collect();
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
        // Where one record has the status and another one the target.
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

/// A URL that redirected to several targets is none of them. Where some redirects of it are permanent, only these count.
fn refuse_ambiguous(edges: &mut [RedirectEdge]) {
    for edges in edges.chunk_by_mut(|a, b| a.from == b.from) {
        let strongest = edges.iter().filter(|edge| edge.is_open()).map(|edge| edge.evidence.code).min();
        let targets = edges.iter().filter(|edge| edge.is_open() && Some(edge.evidence.code) == strongest).count();
        for edge in edges.iter_mut().filter(|edge| edge.is_open()) {
            if targets > 1 || Some(edge.evidence.code) != strongest {
                edge.verdict = RedirectVerdict::Ambiguous;
            }
        }
    }
}

fn refuse_loops(edges: &mut [RedirectEdge], nodes: usize) {
    let is_loop = find_loops(&leads(edges, nodes));
    edges.iter_mut().filter(|edge| edge.is_open() && is_loop[edge.from as usize]).for_each(|edge| {
        edge.verdict = RedirectVerdict::Loop;
    });
}

fn refuse_sinks(edges: &mut [RedirectEdge], nodes: usize, max_sources: u64) {
    let mut sources = vec![0u64; nodes];
    let counts = |edge: &&RedirectEdge| edge.from != edge.to && edge.change.is_none();
    edges.iter().filter(counts).for_each(|edge| sources[edge.to as usize] += 1);
    for edge in edges.iter_mut().filter(|edge| edge.is_open() && edge.change.is_none()) {
        if sources[edge.to as usize] > max_sources {
            edge.verdict = RedirectVerdict::Sink;
        }
    }
}

/// Where each node leads by accepted redirects; no node has two.
pub(super) fn leads(edges: &[RedirectEdge], nodes: usize) -> Vec<u32> {
    let mut next = vec![NOWHERE; nodes];
    edges.iter().filter(|edge| edge.is_open()).for_each(|edge| next[edge.from as usize] = edge.to);
    next
}
