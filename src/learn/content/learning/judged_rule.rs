//! What is learned about rules, and what that needs: [`JudgedRule`], [`ContentLimits`].

use super::super::rule::ScopedRule;
use super::super::rule_set::ContentRuleSet;
use super::pairs::wilson_bounds;
use std::collections::BTreeMap;

/// What rules about content need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ContentLimits {
    /// Minimum number of contents for which a rule made no difference.
    pub(crate) min_contents: u64,
    /// Minimum share of right merges, as captures show it.
    pub(crate) min_precision: f64,
    /// Share of captures that rules are not learned from, but tried on.
    pub(crate) held_out: f64,
    /// Contents are equal whose texts differ in at most this many bits of their hashes.
    pub(crate) near_bits: Option<u32>,
}

impl Default for ContentLimits {
    fn default() -> ContentLimits {
        ContentLimits { min_contents: 5, min_precision: 0.99, held_out: 0.0, near_bits: None }
    }
}

/// Why a rule was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleRefusal {
    /// Too many pages would be merged with others.
    CounterExamples,
    /// Too few contents confirm it.
    Support,
    /// It forms a circle with patterns or with other rules.
    Circular,
}

impl RuleRefusal {
    /// Returns the name in files.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            RuleRefusal::CounterExamples => "counter-examples",
            RuleRefusal::Support => "support",
            RuleRefusal::Circular => "circular",
        }
    }

    /// Returns the reason with this name.
    pub(crate) fn named(name: &str) -> Option<RuleRefusal> {
        let all = [RuleRefusal::CounterExamples, RuleRefusal::Support, RuleRefusal::Circular];
        all.into_iter().find(|refusal| refusal.name() == name)
    }
}

/// A rule with what the captures show about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JudgedRule {
    pub(crate) rule: ScopedRule,
    /// Contents for which the rule made no difference.
    pub(crate) support: u64,
    /// Pages that the rule would merge with others.
    pub(crate) counter: u64,
    /// URLs that the rule makes equal to others.
    pub(crate) merged: u64,
    /// Lower bound of the share of right merges.
    pub(crate) lower_bound: f64,
    /// The rule was learned because pages name the URL that it makes as canonical: contents alone are too few.
    pub(crate) needs_canonical: bool,
    /// `None` if the rule was learned.
    pub(crate) refusal: Option<RuleRefusal>,
    /// Pairs of URLs, one after the other.
    pub(crate) examples: Vec<Vec<u8>>,
    pub(crate) counter_examples: Vec<Vec<u8>>,
}

impl JudgedRule {
    /// Returns a learned rule without examples, of which all counter-examples count.
    pub(super) fn new(rule: ScopedRule, support: u64, counter: u64, merged: u64) -> JudgedRule {
        JudgedRule {
            rule,
            support,
            counter,
            merged,
            lower_bound: wilson_lower_bound(support as f64, (support + counter) as f64),
            needs_canonical: false,
            refusal: None,
            examples: Vec::new(),
            counter_examples: Vec::new(),
        }
    }
}

/// What was learned of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LearnedRules {
    /// Rules, learned and refused, in their order.
    pub(crate) rules: Vec<JudgedRule>,
    /// For each query parameter without a learned rule: pages that ignoring it would merge with others.
    pub(crate) parameters: BTreeMap<Vec<u8>, u64>,
    /// Rules that nothing suggests on this host, and that its captures contradict: a rule of its domain must be none of these.
    pub(crate) contradicted: Vec<ScopedRule>,
    /// URLs, and URLs that differ after the rules.
    pub(crate) urls: u64,
    pub(crate) forms: u64,
}

/// Returns the lower bound of the share of successes (Wilson, 95 % one-sided).
pub(crate) fn wilson_lower_bound(successes: f64, all: f64) -> f64 {
    if all <= 0.0 { 0.0 } else { wilson_bounds(successes / all, all, 1.645).0 }
}

/// Returns how many contents without counter-examples a part of a site needs, so that chance explains this in at most 5 % of all
/// cases. `wrong_share` is the share of counter-examples on the whole site.
pub(super) fn contents_beyond_chance(wrong_share: f64) -> u64 {
    const LN_20: f64 = 3.0;
    if wrong_share <= 0.0 { 0 } else { (LN_20 / wrong_share).ceil() as u64 }
}

/// Returns the share of wrong merges.
pub(super) fn share_of(excess: f64, support: u64) -> f64 {
    if excess == 0.0 { 0.0 } else { excess / (excess + support as f64) }
}

/// Returns the set of the rules of a host that were learned.
pub(crate) fn learned_set(rules: &[JudgedRule]) -> ContentRuleSet {
    ContentRuleSet::new(rules.iter().filter(|rule| rule.refusal.is_none()).map(|rule| &rule.rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_shares() {
        assert!((wilson_lower_bound(5.0, 5.0) - 0.649).abs() < 0.001);
        assert_eq!(wilson_lower_bound(0.0, 0.0), 0.0);
        assert_eq!((contents_beyond_chance(0.0), contents_beyond_chance(0.2), contents_beyond_chance(1.0)), (0, 15, 3));
    }
}
