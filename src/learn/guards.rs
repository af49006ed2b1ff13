//! Which redirects join what they connect: a [`Verdict`] on each. In: redirects, each once. Out: the same with verdicts.
//! The guards come one after the other, and a redirect that one of them refuses does not count for those that follow: self,
//! weak, other site, ambiguous, loop, sink. Only what makes a sink is counted over all redirects.

use super::classes::{NOWHERE, find_loops};
use super::nodes::Nodes;
use super::observed::{Evidence, Observed};
use super::redirect::{Code, Limits, Verdict};
use super::spelling::{Change, Spelling};
use crate::iri::Parts;
use crate::key::psl::HostParts;

/// A redirect under judgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub from: u32,
    pub to: u32,
    pub evidence: Evidence,
    /// What the two differ in, if they may be spellings of one URL.
    pub change: Option<Change>,
    pub verdict: Verdict,
}

impl Edge {
    fn is_open(&self) -> bool {
        self.verdict == Verdict::Accepted
    }
}

/// The redirects with their verdicts, by their URL.
pub(super) fn judge(observed: &Observed, limits: &Limits) -> Vec<Edge> {
    let mut edges: Vec<Edge> =
        observed.redirects.iter().map(|(&(from, to), &one)| edge(observed, from, to, one)).collect();
    edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    for edge in &mut edges {
        edge.verdict = match edge {
            _ if edge.from == edge.to => Verdict::SelfRedirect,
            _ if edge.evidence.code != Code::Permanent && !limits.weak => Verdict::Weak,
            _ if limits.same_site && edge.change.is_none() && !is_one_site(&observed.nodes, edge) => Verdict::OtherSite,
            _ => Verdict::Accepted,
        };
    }
    refuse_ambiguous(&mut edges);
    refuse_loops(&mut edges, observed.nodes.len());
    refuse_sinks(&mut edges, observed.nodes.len(), limits.max_sources);
    edges
}

fn edge(observed: &Observed, from: u32, to: u32, mut evidence: Evidence) -> Edge {
    let nodes = &observed.nodes;
    if evidence.code == Code::Unknown {
        // Where one record has the status and another one the target.
        evidence.code = observed.statuses.get(&nodes.key(from)).copied().unwrap_or(Code::Unknown);
    }
    let change = || Spelling::of(nodes.uri(from))?.change_to(&Spelling::of(nodes.uri(to))?);
    Edge { from, to, evidence, change: change(), verdict: Verdict::Accepted }
}

fn is_one_site(nodes: &Nodes, edge: &Edge) -> bool {
    let [from, to] = [edge.from, edge.to].map(|node| {
        let uri = nodes.uri(node);
        let host = Parts::split(uri).host(uri).unwrap_or_default();
        HostParts::of(host).private_domain.unwrap_or(host)
    });
    from == to
}

/// A URL that redirected to several targets is none of them. Where some redirects of it are permanent, only these count.
fn refuse_ambiguous(edges: &mut [Edge]) {
    for edges in edges.chunk_by_mut(|a, b| a.from == b.from) {
        let strongest = edges.iter().filter(|edge| edge.is_open()).map(|edge| edge.evidence.code).min();
        let targets = edges.iter().filter(|edge| edge.is_open() && Some(edge.evidence.code) == strongest).count();
        for edge in edges.iter_mut().filter(|edge| edge.is_open()) {
            if targets > 1 || Some(edge.evidence.code) != strongest {
                edge.verdict = Verdict::Ambiguous;
            }
        }
    }
}

fn refuse_loops(edges: &mut [Edge], nodes: usize) {
    let is_loop = find_loops(&leads(edges, nodes));
    edges.iter_mut().filter(|edge| edge.is_open() && is_loop[edge.from as usize]).for_each(|edge| {
        edge.verdict = Verdict::Loop;
    });
}

fn refuse_sinks(edges: &mut [Edge], nodes: usize, max_sources: u64) {
    let mut sources = vec![0u64; nodes];
    let counts = |edge: &&Edge| edge.from != edge.to && edge.change.is_none();
    edges.iter().filter(counts).for_each(|edge| sources[edge.to as usize] += 1);
    for edge in edges.iter_mut().filter(|edge| edge.is_open() && edge.change.is_none()) {
        if sources[edge.to as usize] > max_sources {
            edge.verdict = Verdict::Sink;
        }
    }
}

/// Where each node leads by accepted redirects; no node has two.
pub(super) fn leads(edges: &[Edge], nodes: usize) -> Vec<u32> {
    let mut next = vec![NOWHERE; nodes];
    edges.iter().filter(|edge| edge.is_open()).for_each(|edge| next[edge.from as usize] = edge.to);
    next
}
