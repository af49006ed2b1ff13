//! Tries rules on the captures of a host: [`Trial`]. It groups URLs that the rules make equal, and compares their contents.
//!
//! URLs of a group that have a content in common are a *component*. If a rule removed different texts from URLs of one component, the
//! component is evidence for the rule. If a group has several components, and what a rule removed tells them apart, the rule has
//! counter-examples: they are other pages. A content under many unlike URLs (an error page, a login) is a *sink* and no evidence for
//! any rule.

use super::captures::{Content, HostCaptures};
use super::removal::Removed;
use super::rule::ScopedRule;
use super::rule_set::{ContentRuleSet, RuleBuffers};
use super::url_parts::UrlParts;
use crate::learn::graph::UnionFind;
use std::collections::{BTreeMap, HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

/// Most groups, as the rules that are tried make them, in which a content may occur; a content in more is a sink.
const MAX_GROUPS_OF_CONTENT: usize = 8;

/// Most pairs of URLs that are kept as examples.
const MAX_EXAMPLES: usize = 2;

/// What the captures of a host say about a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RuleEvidence {
    /// Contents for which the rule made no difference.
    pub(super) support: u64,
    /// Pages that the rule would make equal to others.
    pub(super) counter: u64,
    /// URLs that the rule makes equal to another one.
    pub(super) merged: u64,
    /// Groups of four or more URLs with several components in each of which the rule made no difference: pages that the host
    /// serves in variants.
    pub(super) variants: u64,
    /// Components in such groups, and in those with one such component, of which there is no other URL.
    pub(super) alone: u64,
    /// Pairs of URLs: numbers of URLs of the host.
    pub(super) examples: Vec<(u32, u32)>,
    pub(super) counter_examples: Vec<(u32, u32)>,
}

/// Numbers of pairs of URLs of one host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PairCounts {
    /// Pairs that rules make equal.
    pub(crate) merged: u64,
    /// Those of them with equal contents.
    pub(crate) right: u64,
    /// Pairs with equal contents that are not sinks.
    pub(crate) equal: u64,
    /// Those of them that rules make equal.
    pub(crate) found: u64,
}

impl PairCounts {
    pub(super) fn add(&mut self, other: &PairCounts) {
        self.merged += other.merged;
        self.right += other.right;
        self.equal += other.equal;
        self.found += other.found;
    }
}

/// The captures of a host, prepared for trials.
pub(super) struct Trial<'a> {
    captures: &'a HostCaptures,
    urls: Vec<Option<UrlParts<'a>>>,
}

/// The URLs in the form that rules give them.
pub(super) struct Forms {
    /// Hash of the form of each URL.
    hashes: Vec<u64>,
    removed: Vec<(u16, Removed)>,
    /// Where the entries in `removed` of each URL end.
    removed_ends: Vec<u32>,
}

impl Forms {
    fn removed(&self, url: usize) -> &[(u16, Removed)] {
        let from = if url == 0 { 0 } else { self.removed_ends[url - 1] };
        &self.removed[from as usize..self.removed_ends[url] as usize]
    }

    /// Returns the number of different forms.
    pub(super) fn count(&self) -> usize {
        let mut hashes = self.hashes.clone();
        hashes.sort_unstable();
        hashes.dedup();
        hashes.len()
    }
}

impl<'a> Trial<'a> {
    pub(super) fn new(captures: &'a HostCaptures) -> Trial<'a> {
        let urls = (0..captures.len()).map(|i| UrlParts::of(captures.uri(i))).collect();
        Trial { captures, urls }
    }

    pub(super) fn url(&self, i: u32) -> Option<&UrlParts<'a>> {
        self.urls[i as usize].as_ref()
    }

    /// Returns whether a URL has a query.
    pub(super) fn has_queries(&self) -> bool {
        self.urls.iter().flatten().any(|url| url.query.is_some())
    }

    /// Returns the URLs, each with its first content.
    pub(super) fn urls_and_contents(&self) -> impl Iterator<Item = (&UrlParts<'a>, Content)> {
        let contents = (0..self.urls.len()).map(|url| self.captures.contents(url).first().map(|(content, _)| *content));
        self.urls.iter().zip(contents).filter_map(|(url, content)| Some((url.as_ref()?, content?)))
    }

    /// Returns the URLs in the form that `rules` give them.
    pub(super) fn forms(&self, rules: &ContentRuleSet) -> Forms {
        let (mut buffers, mut form, mut removed) = (RuleBuffers::default(), Vec::new(), Vec::new());
        let mut forms = Forms { hashes: Vec::new(), removed: Vec::new(), removed_ends: Vec::new() };
        for (i, url) in self.urls.iter().enumerate() {
            removed.clear();
            let text = match url {
                Some(url) => {
                    rules.write(url, &mut buffers, &mut removed, &mut form);
                    &form
                }
                None => self.captures.uri(i),
            };
            forms.hashes.push(xxh3_64(text));
            forms.removed.append(&mut removed);
            forms.removed_ends.push(forms.removed.len() as u32);
        }
        forms
    }

    /// Tries `rules` together and returns the evidence about each.
    pub(super) fn evaluate(&self, rules: &[ScopedRule]) -> (Vec<RuleEvidence>, Forms) {
        let forms = self.forms(&ContentRuleSet::new(rules));
        let mut evidence = vec![RuleEvidence::default(); rules.len()];
        let sinks = self.sinks(&forms);
        let mut order: Vec<u32> = (0..self.urls.len() as u32).collect();
        order.sort_unstable_by_key(|url| (forms.hashes[*url as usize], *url));
        for group in order.chunk_by(|a, b| forms.hashes[*a as usize] == forms.hashes[*b as usize]) {
            if group.len() > 1 {
                self.judge_group(group, &forms, &sinks, &mut evidence);
            }
        }
        (evidence, forms)
    }

    /// Counts pairs of URLs.
    pub(super) fn count_pairs(&self, forms: &Forms) -> PairCounts {
        let pairs = |count: usize| count as u64 * (count as u64).saturating_sub(1) / 2;
        let mut counts = PairCounts::default();
        let mut order: Vec<u32> = (0..self.urls.len() as u32).collect();
        order.sort_unstable_by_key(|url| (forms.hashes[*url as usize], *url));
        for group in order.chunk_by(|a, b| forms.hashes[*a as usize] == forms.hashes[*b as usize]) {
            counts.merged += pairs(group.len());
            let mut components = self.components(group, &HashSet::new());
            components.sort_unstable();
            counts.right += components.chunk_by(|a, b| a == b).map(|urls| pairs(urls.len())).sum::<u64>();
        }
        let sinks = self.sinks(forms);
        let first = |url: usize| self.captures.contents(url).first().map(|(content, _)| *content);
        let contents = (0..self.urls.len()).filter_map(|url| Some((first(url)?, forms.hashes[url])));
        let mut contents: Vec<_> = contents.filter(|(content, _)| !sinks.contains(content)).collect();
        contents.sort_unstable();
        for urls in contents.chunk_by(|a, b| a.0 == b.0) {
            counts.equal += pairs(urls.len());
            counts.found += urls.chunk_by(|a, b| a.1 == b.1).map(|urls| pairs(urls.len())).sum::<u64>();
        }
        counts
    }

    /// Returns the contents of too many groups.
    fn sinks(&self, forms: &Forms) -> HashSet<Content> {
        let contents_of = |url: usize| self.captures.contents(url).iter().map(move |(content, _)| *content);
        let pairs = (0..self.urls.len()).flat_map(|url| contents_of(url).map(move |content| (content, url)));
        let mut pairs: Vec<(Content, u64)> = pairs.map(|(content, url)| (content, forms.hashes[url])).collect();
        pairs.sort_unstable();
        pairs.dedup();
        let many = pairs.chunk_by(|a, b| a.0 == b.0).filter(|groups| groups.len() > MAX_GROUPS_OF_CONTENT);
        many.map(|groups| groups[0].0).collect()
    }

    /// Adds the evidence of the URLs of one form.
    fn judge_group(&self, group: &[u32], forms: &Forms, sinks: &HashSet<Content>, evidence: &mut [RuleEvidence]) {
        let components = self.components(group, sinks);
        let mut values: BTreeMap<u16, Vec<Removed>> = BTreeMap::new();
        for (at, url) in group.iter().enumerate() {
            for (rule, text) in forms.removed(*url as usize) {
                let values = values.entry(*rule).or_insert_with(|| vec![0; group.len()]);
                // A rule may remove several texts from a URL.
                values[at] = values[at].rotate_left(7) ^ text;
            }
        }
        for (rule, values) in values {
            if values.iter().any(|value| *value != values[0]) {
                judge_rule(group, &components, &values, &mut evidence[usize::from(rule)]);
            }
        }
    }

    /// Returns the component of each URL of a group; `NO_EVIDENCE` for URLs that only had contents that are sinks.
    fn components(&self, group: &[u32], sinks: &HashSet<Content>) -> Vec<u32> {
        let mut sets = UnionFind::new(group.len());
        let mut first: HashMap<Content, u32> = HashMap::with_capacity(group.len());
        let mut is_sink = vec![true; group.len()];
        for (at, url) in group.iter().enumerate() {
            for (content, _) in self.captures.contents(*url as usize) {
                if !sinks.contains(content) {
                    is_sink[at] = false;
                    sets.join(*first.entry(*content).or_insert(at as u32), at as u32);
                }
            }
        }
        (0..group.len()).map(|at| if is_sink[at] { NO_EVIDENCE } else { sets.find(at as u32) }).collect()
    }
}

/// Least number of URLs of a group in which variants of a page are recognized.
const MIN_GROUP_WITH_VARIANTS: usize = 4;

/// The component of URLs whose contents are sinks.
const NO_EVIDENCE: u32 = u32::MAX;

/// Adds the evidence of one group about one rule: `values` is what the rule removed from each URL.
fn judge_rule(group: &[u32], components: &[u32], values: &[Removed], evidence: &mut RuleEvidence) {
    evidence.merged += group.len() as u64 - 1;
    let mut by_component: BTreeMap<u32, (usize, bool)> = BTreeMap::new();
    // Components in which the rule removed the same text from URLs are not told apart by it.
    let mut sets = UnionFind::new(group.len());
    let mut by_value: HashMap<Removed, u32> = HashMap::with_capacity(group.len());
    for (at, component) in components.iter().enumerate() {
        let (first, is_supported) = by_component.entry(*component).or_insert((at, false));
        if values[*first] != values[at] && !*is_supported && *component != NO_EVIDENCE {
            *is_supported = true;
            add_example(&mut evidence.examples, (group[*first], group[at]));
        }
        sets.join(*first as u32, at as u32);
        sets.join(*by_value.entry(values[at]).or_insert(at as u32), at as u32);
    }
    let supported = by_component.values().filter(|(_, is_supported)| *is_supported).count() as u64;
    evidence.support += supported;
    if group.len() >= MIN_GROUP_WITH_VARIANTS && supported > 0 {
        let components = by_component.len() - usize::from(by_component.contains_key(&NO_EVIDENCE));
        evidence.variants += u64::from(supported > 1);
        evidence.alone += components as u64 - supported;
    }
    let mut firsts = by_component.values().map(|(first, _)| *first);
    let Some(one) = firsts.next() else { return };
    let mut roots: BTreeMap<u32, usize> = BTreeMap::from([(sets.find(one as u32), one)]);
    for first in firsts {
        let root = sets.find(first as u32);
        if roots.insert(root, first).is_none() {
            evidence.counter += 1;
            add_example(&mut evidence.counter_examples, (group[one], group[first]));
        }
    }
}

fn add_example(examples: &mut Vec<(u32, u32)>, pair: (u32, u32)) {
    if examples.len() < MAX_EXAMPLES {
        examples.push(pair);
    }
}
