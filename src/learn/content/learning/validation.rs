//! Scores rules on captures that they were not learned from: [`RuleScores`].

use super::super::rule::ScopedRule;
use super::captures::{HostCaptures, MAX_CLEAR_NOISE};
use super::host::learn_host;
use super::judged_rule::{ContentLimits, learned_set};
use super::near::DocumentEvidence;
use super::pairs::{PairCounts, PairShare, pairs_of};
use super::trial::Trial;
use std::collections::BTreeMap;

/// What captures show about a kind of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindScore {
    /// Contents for which a rule made no difference.
    pub(crate) support: u64,
    /// Pages that a rule merged with others.
    pub(crate) counter: u64,
    /// URLs that a rule made equal to another one.
    pub(crate) merged: u64,
}

/// Scores of rules on the captures of many hosts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RuleScores {
    pub(crate) hosts: u64,
    pub(crate) captures: u64,
    pub(crate) urls: u64,
    /// URLs that differ after the rules.
    pub(crate) forms: u64,
    /// Pairs of URLs of hosts whose contents do not change from capture to capture.
    pub(crate) pairs: PairCounts,
    /// Pairs of captures of one URL of these hosts, and those of them with equal contents.
    pub(crate) repeated: PairShare,
    /// The other hosts, and their URLs.
    pub(crate) changing_hosts: u64,
    pub(crate) changing_urls: u64,
    /// URLs that only had contents of many dissimilar URLs.
    pub(crate) sink_urls: u64,
    pub(crate) kinds: BTreeMap<&'static str, KindScore>,
}

impl RuleScores {
    /// Adds the captures of a host for which `rules` hold. `noise` is the [`HostCaptures::noise`] of other captures of the
    /// host; `captures` may be too few to show it.
    pub(crate) fn add(&mut self, captures: &HostCaptures, rules: &[ScopedRule], noise: f64) {
        let trial = Trial::new(captures);
        let (evidence, forms) = trial.evaluate(rules);
        self.hosts += 1;
        self.captures += captures.captures();
        self.urls += captures.len() as u64;
        self.forms += forms.count() as u64;
        if captures.noise().max(noise) > MAX_CLEAR_NOISE {
            self.changing_hosts += 1;
            self.changing_urls += captures.len() as u64;
            return;
        }
        for (rule, evidence) in rules.iter().zip(evidence).filter(|(_, evidence)| evidence.merged > 0) {
            let kind = self.kinds.entry(rule.rule.kind()).or_default();
            kind.support += evidence.support;
            kind.counter += evidence.counter;
            kind.merged += evidence.merged;
        }
        // Where rules are missing, a page with many spellings is not a sink.
        let own = learn_host(captures, &DocumentEvidence::default(), &ContentLimits::default());
        let own_forms = trial.forms(&learned_set(&own.rules));
        let sinks = &trial.sinks(&forms) & &trial.sinks(&own_forms);
        self.pairs.add(&trial.count_pairs(&forms, &sinks));
        self.sink_urls += trial.count_urls_of(&sinks);
        for url in 0..captures.len() {
            let counts = || captures.counts(url).map(u64::from);
            self.repeated.add_group(counts().map(pairs_of).sum(), pairs_of(counts().sum()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_counted() {
        let mut captures = HostCaptures::default();
        let pages = [
            ("http://a/1?s=1", 1),
            ("http://a/1?s=2", 1),
            ("http://a/1?s=3", 9),
            ("http://a/2?t=1", 2),
            ("http://a/2?t=2", 2),
        ];
        pages.into_iter().for_each(|(uri, content)| captures.push(uri.as_bytes(), content));
        let rules = [ScopedRule::parse("ignore-parameter s")];
        let mut scores = RuleScores::default();
        scores.add(&captures, &rules, 0.0);
        assert_eq!((scores.urls, scores.forms), (5, 3));
        let PairCounts { merged, equal } = scores.pairs;
        assert_eq!((merged.all, merged.part, equal.all, equal.part), (3, 1, 2, 1));
        assert_eq!((scores.repeated.all, scores.sink_urls, scores.changing_hosts), (0, 0, 0));
        assert_eq!(scores.kinds["ignore-parameter"], KindScore { support: 1, counter: 1, merged: 2 });
    }

    #[test]
    fn pairs_of_hosts_whose_contents_change_are_left_out() {
        let scores = |variants: u64| {
            let (mut captures, mut scores) = (HostCaptures::default(), RuleScores::default());
            for (page, capture) in (0..40).flat_map(|page| (0..4).map(move |capture| (page, capture))) {
                captures
                    .push(format!("http://a/{:02}?s={}", page / 2, page % 2).as_bytes(), 9 * page + capture % variants);
            }
            scores.add(&captures, &[ScopedRule::parse("ignore-parameter s")], 0.0);
            scores
        };
        let stable = scores(1);
        assert_eq!((stable.pairs.merged.all, stable.changing_hosts), (20, 0));
        assert_eq!((stable.repeated.all, stable.repeated.part), (240, 240));
        // Other captures of the host show that it changes.
        let (mut captures, mut of_changing) = (HostCaptures::default(), RuleScores::default());
        (10..20).for_each(|page| captures.push(format!("http://a/{page}").as_bytes(), page));
        of_changing.add(&captures, &[], 0.5);
        assert_eq!((of_changing.changing_hosts, of_changing.changing_urls), (1, 10));
        let changing = scores(4);
        assert_eq!((changing.urls, changing.forms), (40, 20));
        assert_eq!((changing.changing_hosts, changing.changing_urls), (1, 40));
        assert!(changing.pairs.merged.interval().is_none() && changing.kinds.is_empty());
    }

    #[test]
    fn pages_with_many_spellings_are_no_sinks() {
        let (mut captures, mut scores) = (HostCaptures::default(), RuleScores::default());
        for (page, session) in (0..20).flat_map(|page| (0..12).map(move |session| (page, session))) {
            captures
                .push(format!("http://a/{page:02}?sid={:032x}", (12 * page + session) as u128 + 1).as_bytes(), page);
        }
        scores.add(&captures, &[], 0.0);
        // Rules for these pages are missing.
        assert_eq!((scores.sink_urls, scores.pairs.equal.all, scores.pairs.equal.part), (0, 20 * 66, 0));
    }

    #[test]
    fn urls_of_sinks_are_counted() {
        let (mut captures, mut scores) = (HostCaptures::default(), RuleScores::default());
        (10..40).for_each(|page| captures.push(format!("http://a/{page}").as_bytes(), 7));
        scores.add(&captures, &[], 0.0);
        assert_eq!((scores.sink_urls, scores.pairs.equal.interval()), (30, None));
    }
}
