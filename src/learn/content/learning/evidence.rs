//! What the captures of a host show about a rule: [`RuleEvidence`].

use super::captures::ContentHash;
use std::collections::HashSet;

/// What the captures of a host show about a rule.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct RuleEvidence {
    /// Contents for which the rule made no difference. One content under several pages, such as a notice, counts once.
    pub(super) support: u64,
    /// These contents, until they are counted; some repeatedly.
    pub(super) contents: Vec<ContentHash>,
    /// Pages that the rule would make equal to others.
    pub(super) counter: u64,
    /// URLs that the rule makes equal to another one.
    pub(super) merged: u64,
    /// Pages that would be equal to others, and that nothing that a rule removed distinguishes from them: each rule that changed
    /// their URLs may be the reason.
    pub(super) unexplained: u64,
    /// How much contents differ in groups of URLs that share them.
    pub(super) noise: GroupNoise,
    /// Pairs of URLs: numbers of URLs of the host.
    pub(super) examples: Vec<(u32, u32)>,
    pub(super) counter_examples: Vec<(u32, u32)>,
}

impl RuleEvidence {
    /// Counts the contents for which the rule made no difference, after all groups were judged. `scattered` contents are no
    /// evidence.
    pub(super) fn count_contents(&mut self, scattered: &HashSet<ContentHash>) {
        let mut contents = std::mem::take(&mut self.contents);
        contents.sort_unstable();
        contents.dedup();
        contents.retain(|content| !scattered.contains(content));
        self.support = contents.len() as u64;
    }
}

/// How much contents differ in the groups of a rule, some of whose URLs share them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GroupNoise {
    /// Groups of some URLs of which at least two share their content.
    pub(super) groups: u64,
    /// URLs in these groups, and those of them that share their content with another one.
    pub(super) urls: u64,
    pub(super) shared: u64,
    /// URLs in these groups that have one of the two contents that are most frequent in their group.
    pub(super) most_two: u64,
    /// Sum over these groups of the share of pairs of URLs whose contents differ.
    pub(super) disagreement: f64,
    /// URLs in these groups that were captured repeatedly, and the sum of the shares of pairs of their captures that differ.
    pub(super) repeated: (u64, f64),
    /// The group has many URLs, most of which share their content: what others have is noise.
    pub(super) is_settled: bool,
    /// Counter-examples in such groups.
    pub(super) settled_counter: u64,
    /// URLs that the rule makes equal to another one, in groups of few URLs.
    pub(super) few_merged: u64,
    /// Counter-examples in groups of few URLs whose contents are sinks.
    pub(super) few_sinks: u64,
}

impl GroupNoise {
    /// Adds a group.
    pub(super) fn add(&mut self, group: &GroupNoise) {
        self.groups += group.groups;
        self.urls += group.urls;
        self.shared += group.shared;
        self.most_two += group.most_two;
        self.disagreement += group.disagreement;
        self.repeated = (self.repeated.0 + group.repeated.0, self.repeated.1 + group.repeated.1);
    }

    /// Returns the share of pairs of URLs of a group whose contents differ; `None` if too few groups show it, if most URLs
    /// do not share their contents, if more pairs differ than two variants of a page explain, if as many differ and there
    /// are more than two variants, or if repeated captures of one URL agree much more: then the URL selects the content.
    pub(super) fn mean_disagreement(&self) -> Option<f64> {
        const MIN_GROUPS: u64 = 5;
        const MIN_SHARED: f64 = 0.7;
        // Two variants of a page disagree in half of the pairs, and in 60 % of those of five URLs; three in two thirds.
        const MAX_NOISE: f64 = 0.61;
        // Few groups with three variants may disagree as little as those with two, but have a third content.
        const MAX_DOMINATED: f64 = 0.55;
        const MIN_OF_TWO: f64 = 0.92;
        const MIN_REPEATED: u64 = 5;
        let mean = self.disagreement / self.groups.max(1) as f64;
        let (repeated, sum) = self.repeated;
        let is_selected_by_url = repeated >= MIN_REPEATED && 2.0 * sum < mean * repeated as f64;
        let is_shared = self.shared as f64 >= MIN_SHARED * self.urls as f64;
        let has_two_variants = self.most_two as f64 >= MIN_OF_TWO * self.urls as f64;
        let is_noise = mean <= MAX_NOISE && (mean <= MAX_DOMINATED || has_two_variants) && !is_selected_by_url;
        (self.groups >= MIN_GROUPS && is_shared && is_noise).then_some(mean)
    }
}
