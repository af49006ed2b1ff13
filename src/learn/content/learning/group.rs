//! What the URLs that rules make equal show about each of the rules: [`UrlGroup`].
//!
//! URLs of a group whose contents agree ([`Agreement`]) are a *component*: a page, as far as the captures show. If a rule removed
//! different texts from URLs of one component, the component is evidence for the rule. A group should have one component. If it
//! has several, the rules merge different pages, and there are three ways to find the rule that is the reason:
//!
//! - What the rule removed distinguishes the components: no two of them have a URL from which it removed the same text.
//! - Two URLs of different components differ only in what the rule removed.
//! - Otherwise each rule that changed URLs of the group may be the reason: the components are *unexplained*.

use super::super::removal::Removed;
use super::agreement::Agreement;
use super::captures::{ContentHash, UrlContent};
use super::evidence::{GroupNoise, RuleEvidence};
use crate::learn::graph::UnionFind;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Maximum number of pairs of URLs that are kept as examples.
const MAX_EXAMPLES: usize = 2;

/// Minimum number of URLs of a group that shows how much noise the contents of the host have.
const MIN_NOISY_URLS: usize = 4;

/// Maximum number of URLs of a group whose counter-examples are compared with the noise in other groups. Of more URLs, most
/// share their content with another one, or they are different pages.
const MAX_FEW_URLS: usize = 8;

/// URLs of one form, with the components that they belong to.
pub(super) struct UrlGroup<'a> {
    /// Numbers of URLs of the host.
    urls: &'a [u32],
    /// The component of each URL.
    components: Vec<u32>,
    /// The first URL of each component.
    firsts: Vec<usize>,
    /// The number of URLs of each component.
    sizes: Vec<usize>,
    /// The most frequent content of each component; of those, the least. 0 for the one of sinks.
    contents: Vec<ContentHash>,
    /// The component of the URLs that only had contents that are sinks, if there are any.
    sinks: Option<u32>,
    /// The number of URLs that had the most frequent content.
    most_equal: usize,
}

impl<'a> UrlGroup<'a> {
    /// Returns the group of URLs whose contents are these.
    pub(super) fn new<'c>(
        urls: &'a [u32],
        contents: impl Fn(u32) -> &'c [UrlContent],
        sinks: &HashSet<ContentHash>,
    ) -> UrlGroup<'a> {
        let Agreement { sets, contents: found } = Agreement::of(urls.len(), |at| contents(urls[at]), sinks);
        let most_equal = found.iter().map(|(_, (_, count))| *count).max().unwrap_or(0);
        let (components, firsts, sizes, contents) = (Vec::with_capacity(urls.len()), vec![], vec![], vec![]);
        let mut group = UrlGroup { urls, components, firsts, sizes, contents, sinks: None, most_equal };
        let mut numbers: HashMap<Option<u64>, u32> = HashMap::new();
        for (at, set) in sets.into_iter().enumerate() {
            let number = *numbers.entry(set).or_insert(group.firsts.len() as u32);
            if number as usize == group.firsts.len() {
                group.firsts.push(at);
                group.sizes.push(0);
            }
            group.sizes[number as usize] += 1;
            group.components.push(number);
        }
        group.sinks = numbers.get(&None).copied();
        group.contents = group.most_frequent_contents(found);
        group
    }

    /// Returns the most frequent content of each component. `contents`: each with its first URL and its number of URLs.
    fn most_frequent_contents(&self, contents: Vec<(ContentHash, (u32, usize))>) -> Vec<ContentHash> {
        let mut most = vec![(0, Reverse(0)); self.sizes.len()];
        for (content, (at, count)) in contents {
            let most = &mut most[self.components[at as usize] as usize];
            *most = (*most).max((count, Reverse(content)));
        }
        most.into_iter().map(|(_, Reverse(content))| content).collect()
    }

    /// Returns the number of URLs of each component.
    pub(super) fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Adds what the group shows about the rules that changed its URLs: `values` is what each rule removed from each URL.
    /// `disagreement` returns the share of pairs of captures of a URL that differ, if it was captured repeatedly.
    pub(super) fn judge(
        &self,
        values: &BTreeMap<u16, Vec<Removed>>,
        disagreement: impl Fn(u32) -> Option<f64>,
        evidence: &mut [RuleEvidence],
    ) {
        let part = |rule: u16, value: Removed| value.wrapping_mul(2 * u64::from(rule) + 0x9e37_79b9_7f4a_7c15);
        let all = |at: usize| values.iter().fold(0u64, |sum, (rule, values)| sum.wrapping_add(part(*rule, values[at])));
        let all: Vec<u64> = (0..self.urls.len()).map(all).collect();
        let noise = self.noise(disagreement);
        // For each component, a number that is different if a rule distinguishes it.
        let (mut distinguished, mut conflicts) = (vec![0u64; self.sizes.len()], 0);
        for (rule, values) in values {
            let others = all.iter().zip(values).map(|(all, value)| all.wrapping_sub(part(*rule, *value)));
            let evidence = &mut evidence[usize::from(*rule)];
            self.add_support(values, evidence);
            let (apart, has_sinks_apart) = self.distinguish(values, &mut distinguished);
            let direct = self.direct_conflicts(others);
            let counter = apart.len().max(direct.len()) as u64;
            evidence.counter += counter;
            conflicts += direct.len();
            let pairs = if direct.is_empty() { &apart } else { &direct };
            pairs.iter().for_each(|pair| self.add_example(*pair, &mut evidence.counter_examples));
            evidence.noise.add(&noise);
            match noise.is_settled {
                true => evidence.noise.settled_counter += counter,
                false if self.urls.len() <= MAX_FEW_URLS => {
                    evidence.noise.few_merged += self.urls.len() as u64 - 1;
                    evidence.noise.few_sinks += u64::from(has_sinks_apart);
                }
                false => (),
            }
        }
        self.add_unexplained(&distinguished, conflicts, values.keys(), evidence);
    }

    fn add_support(&self, values: &[Removed], evidence: &mut RuleEvidence) {
        evidence.merged += self.urls.len() as u64 - 1;
        let mut is_supported = vec![false; self.sizes.len()];
        for (at, component) in self.components.iter().enumerate() {
            let first = self.firsts[*component as usize];
            let is_known = std::mem::replace(&mut is_supported[*component as usize], values[first] != values[at]);
            if is_known {
                is_supported[*component as usize] = true;
            } else if values[first] != values[at] && Some(*component) != self.sinks {
                evidence.contents.push(self.contents[*component as usize]);
                self.add_example((first, at), &mut evidence.examples);
            }
        }
    }

    /// Returns a pair of URLs for each component that the rule distinguishes from the first one, and whether it distinguishes
    /// the URLs whose contents are sinks. Components that have a URL from which the rule removed the same text are not
    /// distinguished.
    fn distinguish(&self, values: &[Removed], distinguished: &mut [u64]) -> (Vec<(usize, usize)>, bool) {
        let mut sets = UnionFind::new(self.sizes.len());
        let mut by_value: HashMap<Removed, u32> = HashMap::with_capacity(values.len());
        for (value, component) in values.iter().zip(&self.components) {
            sets.join(*by_value.entry(*value).or_insert(*component), *component);
        }
        let mut counts: HashMap<u32, usize> = HashMap::new();
        let mut pairs = Vec::new();
        for component in 0..self.sizes.len() as u32 {
            let root = sets.find(component);
            let count = counts.entry(root).or_default();
            *count += 1;
            if *count == 1 && component > 0 {
                pairs.push((self.firsts[0], self.firsts[component as usize]));
            }
            let told = &mut distinguished[component as usize];
            *told = told.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23).wrapping_add(u64::from(root) + 1);
        }
        let has_sinks_apart = self.sinks.is_some_and(|sinks| counts.len() > 1 && counts[&sets.find(sinks)] == 1);
        (pairs, has_sinks_apart)
    }

    /// Returns pairs of URLs of different components that differ only in what the rule removed; `others` is a hash of what
    /// the other rules removed from each. There are at most as many as connect all components.
    fn direct_conflicts(&self, others: impl Iterator<Item = u64>) -> Vec<(usize, usize)> {
        if self.sizes.len() < 2 {
            return Vec::new();
        }
        let mut sets = UnionFind::new(self.sizes.len());
        let mut first: HashMap<u64, usize> = HashMap::with_capacity(self.urls.len());
        let mut pairs = Vec::new();
        for (at, others) in others.enumerate().filter(|(at, _)| Some(self.components[*at]) != self.sinks) {
            let first = *first.entry(others).or_insert(at);
            let (a, b) = (self.components[first], self.components[at]);
            if sets.find(a) != sets.find(b) {
                sets.join(a, b);
                pairs.push((first, at));
            }
        }
        pairs
    }

    /// Adds components that no rule distinguishes. If most URLs had one content, the others are noise: not a reason to
    /// refuse all rules of the group.
    fn add_unexplained<'r>(
        &self,
        distinguished: &[u64],
        conflicts: usize,
        rules: impl Iterator<Item = &'r u16>,
        evidence: &mut [RuleEvidence],
    ) {
        let pages: Vec<u32> = (0..self.sizes.len() as u32).filter(|component| Some(*component) != self.sinks).collect();
        let urls: usize = pages.iter().map(|page| self.sizes[*page as usize]).sum();
        let is_dominated = 3 * self.most_equal >= 2 * urls;
        let classes: HashSet<u64> = pages.iter().map(|page| distinguished[*page as usize]).collect();
        let unexplained = pages.len().saturating_sub(classes.len() + conflicts);
        if unexplained > 0 && !is_dominated {
            let pair = (self.firsts[pages[0] as usize], self.firsts[pages[pages.len() - 1] as usize]);
            for rule in rules {
                let evidence = &mut evidence[usize::from(*rule)];
                evidence.unexplained += unexplained as u64;
                self.add_example(pair, &mut evidence.counter_examples);
            }
        }
    }

    /// Returns how much the contents of the group differ although URLs share them.
    fn noise(&self, disagreement: impl Fn(u32) -> Option<f64>) -> GroupNoise {
        let pages = || self.sizes.iter().zip(0..).filter(|(_, page)| Some(*page) != self.sinks).map(|(size, _)| *size);
        let (urls, shared): (usize, usize) = (pages().sum(), pages().filter(|size| *size > 1).sum());
        if urls < MIN_NOISY_URLS || shared == 0 {
            return GroupNoise::default();
        }
        let equal: usize = pages().map(|size| size * (size - 1)).sum();
        let most_two = pages().fold([0, 0], |[most, next], size| [most.max(size), next.max(size.min(most))]);
        let repeated: Vec<f64> = self.urls.iter().filter_map(|url| disagreement(*url)).collect();
        GroupNoise {
            groups: 1,
            urls: urls as u64,
            shared: shared as u64,
            most_two: most_two.iter().sum::<usize>() as u64,
            disagreement: 1.0 - equal as f64 / (urls * (urls - 1)) as f64,
            repeated: (repeated.len() as u64, repeated.iter().sum()),
            is_settled: self.urls.len() > MAX_FEW_URLS && 2 * shared >= urls,
            ..GroupNoise::default()
        }
    }

    fn add_example(&self, (a, b): (usize, usize), examples: &mut Vec<(u32, u32)>) {
        if examples.len() < MAX_EXAMPLES {
            examples.push((self.urls[a], self.urls[b]));
        }
    }
}
