//! What a report shows of rules: their effect by kind, the hosts with the greatest effect, and the refused rules that were
//! closest to being learned: [`RuleHighlights`].

use super::super::rule::ContentRule;
use super::general::{LearnedHost, ScopeRule};
use super::judged_rule::RuleRefusal;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of hosts, and of doubtful rules, that are kept.
const MAX_KEPT: usize = 20;

/// What the learned rules of one kind do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindTotals {
    pub(crate) rules: u64,
    /// Contents for which the rules made no difference.
    pub(crate) support: u64,
    /// URLs that the rules made equal to others.
    pub(crate) merged: u64,
}

/// What the rules of a host do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostReduction {
    pub(crate) host: Vec<u8>,
    pub(crate) urls: u64,
    /// URLs that differ after the rules.
    pub(crate) forms: u64,
}

impl HostReduction {
    /// Returns the number of URLs that are equal to others after the rules.
    pub(crate) fn merged(&self) -> u64 {
        self.urls.saturating_sub(self.forms)
    }
}

/// The effect of rules by kind, the hosts with the greatest effect, and the refused rules that nearly became rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RuleHighlights {
    pub(crate) kinds: BTreeMap<&'static str, KindTotals>,
    /// The most URLs first.
    pub(crate) hosts: Vec<HostReduction>,
    /// Rules that captures contradict, those with the least counter-examples per content first.
    pub(crate) doubtful: Vec<ScopeRule>,
}

impl RuleHighlights {
    /// Adds a host.
    pub(crate) fn add_host(&mut self, host: &LearnedHost) {
        let (urls, forms) = (host.rules.urls, host.rules.forms);
        let least = self.hosts.get(MAX_KEPT - 1).map_or(0, HostReduction::merged);
        if urls.saturating_sub(forms) > least {
            let found = HostReduction { host: host.host.clone(), urls, forms };
            let at = self.hosts.partition_point(|other| other.merged() >= found.merged());
            self.hosts.insert(at, found);
            self.hosts.truncate(MAX_KEPT);
        }
    }

    /// The number of learned rules of all kinds.
    pub(crate) fn rule_count(&self) -> u64 {
        self.kinds.values().map(|totals| totals.rules).sum()
    }

    /// Adds a rule, learned or refused.
    pub(crate) fn add_rule(&mut self, rule: &ScopeRule) {
        let judged = &rule.judged;
        match judged.refusal {
            None if !matches!(judged.rule.rule, ContentRule::KeepParameter(_)) => {
                let kind = self.kinds.entry(judged.rule.rule.kind()).or_default();
                kind.rules += 1;
                kind.support += judged.support;
                kind.merged += judged.merged;
            }
            Some(RuleRefusal::CounterExamples) if judged.support > 0 => self.add_doubtful(rule),
            _ => (),
        }
    }

    fn add_doubtful(&mut self, rule: &ScopeRule) {
        // Of equal shares, the one with more evidence comes first.
        let rank = |rule: &ScopeRule| {
            let (support, counter) = (rule.judged.support, rule.judged.counter);
            (counter.saturating_mul(1_000_000) / (support + counter).max(1), Reverse(support))
        };
        let at = self.doubtful.partition_point(|other| rank(other) <= rank(rule));
        if at < MAX_KEPT {
            self.doubtful.insert(at, rule.clone());
            self.doubtful.truncate(MAX_KEPT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_refused_rules_are_kept() {
        let rule = |host: u64, support, counter| {
            let mut rule = ScopeRule::by_hand(format!("h{host}").as_bytes(), ContentRule::Query.into());
            (rule.judged.support, rule.judged.counter) = (support, counter);
            rule.judged.refusal = Some(RuleRefusal::CounterExamples);
            rule
        };
        let mut found = RuleHighlights::default();
        (0..100).for_each(|host| found.add_rule(&rule(host, host, 10)));
        found.add_rule(&rule(200, 0, 1));
        found.add_rule(&rule(300, 990, 100));
        assert_eq!(found.doubtful.len(), MAX_KEPT);
        assert_eq!((&found.doubtful[0].scope[..], &found.doubtful[1].scope[..]), (&b"h300"[..], &b"h99"[..]));
        assert!(found.kinds.is_empty());
    }
}
