//! Scores rules on captures that they were not learned from: [`RuleScores`].

use super::captures::HostCaptures;
use super::rule::ScopedRule;
use super::trial::{PairCounts, Trial};
use std::collections::BTreeMap;

/// What captures say about a kind of rules.
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
    pub(crate) pairs: PairCounts,
    pub(crate) kinds: BTreeMap<&'static str, KindScore>,
}

impl RuleScores {
    /// Adds the captures of a host for which `rules` hold.
    pub(crate) fn add(&mut self, captures: &HostCaptures, rules: &[ScopedRule]) {
        let trial = Trial::new(captures);
        let (evidence, forms) = trial.evaluate(rules);
        for (rule, evidence) in rules.iter().zip(evidence).filter(|(_, evidence)| evidence.merged > 0) {
            let kind = self.kinds.entry(rule.rule.kind()).or_default();
            kind.support += evidence.support;
            kind.counter += evidence.counter;
            kind.merged += evidence.merged;
        }
        self.hosts += 1;
        self.captures += captures.captures();
        self.urls += captures.len() as u64;
        self.forms += forms.count() as u64;
        self.pairs.add(&trial.count_pairs(&forms));
    }
}

/// Returns bounds of the share of successes (Wilson, 95 %).
pub(crate) fn wilson_interval(successes: u64, all: u64) -> (f64, f64) {
    const Z: f64 = 1.96;
    if all == 0 {
        return (0.0, 1.0);
    }
    let (share, all) = (successes as f64 / all as f64, all as f64);
    let middle = share + Z * Z / (2.0 * all);
    let spread = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt();
    (((middle - spread) / (1.0 + Z * Z / all)).max(0.0), ((middle + spread) / (1.0 + Z * Z / all)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::super::rule::ContentRule;
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
        let rules = [ContentRule::parse("ignore-parameter s").unwrap().into()];
        let mut scores = RuleScores::default();
        scores.add(&captures, &rules);
        assert_eq!((scores.urls, scores.forms), (5, 3));
        assert_eq!(scores.pairs, PairCounts { merged: 3, right: 1, equal: 2, found: 1 });
        assert_eq!(scores.kinds["ignore-parameter"], KindScore { support: 1, counter: 1, merged: 2 });
        let (low, high) = wilson_interval(99, 100);
        assert!(low > 0.94 && low < 0.95 && high > 0.99 && high < 1.0);
    }
}
