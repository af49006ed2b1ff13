//! Learns the rules of one host from its captures: [`learn_host`].
//!
//! 1. URLs with equal contents differ in something: [`find_differences`] names the rules by which they would be equal.
//! 2. All these rules are tried together, because many hide each other: where every URL has a session identifier, no two
//!    URLs differ only in the order of their parameters. The rule with the most counter-examples is refused, until no
//!    rule has more of them than the noise of the host explains.
//! 3. If the remaining rules merge pages and no rule distinguishes them, the rule with the most such pages is refused.
//! 4. Narrower rules (values of a shape, some paths) are tried in place of refused ones.
//! 5. Rules with too little support are left out.
//! 6. Rules that other hosts of the domain may have are tried as well: captures may contradict them.

use super::super::rule::{ContentRule, PathContext, ScopedRule};
use super::super::rule_set::ContentRuleSet;
use super::super::url_parts::UrlParts;
use super::super::value_shape::ValueShape;
use super::captures::{HostCaptures, explaining_noise};
use super::differences::{DifferenceDetail, find_differences};
use super::evidence::RuleEvidence;
use super::judged_rule::{
    ContentLimits, JudgedRule, LearnedRules, RuleRefusal, contents_beyond_chance, share_of, wilson_lower_bound,
};
use super::near::DocumentEvidence;
use super::parameters::needed_parameters;
use super::trial::{Forms, Trial};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of rules that are tried together.
const MAX_CANDIDATES: usize = 64;

/// Maximum number of URLs with one content that are compared: those of other contents differ in the same parts.
const MAX_COMPARED: usize = 16;

/// Names of parameters under a path after which the whole query may make no difference.
const MANY_NAMES: usize = 8;

/// Maximum number of names of path parameters and of segments `name=value` that are tried for rules of the domain.
const MAX_PROBED_NAMES: usize = 32;

/// Rules without names, which a domain may have although nothing suggests them on one of its hosts.
const PROBED_RULES: [ContentRule; 7] = [
    ContentRule::Scheme,
    ContentRule::DoubledSlashes,
    ContentRule::FinalSlash,
    ContentRule::PathCase,
    ContentRule::ParameterOrder,
    ContentRule::EmptyParameters,
    ContentRule::Fragment,
];

/// Learns which differences of the URLs of a host make no difference.
pub(crate) fn learn_host(
    captures: &HostCaptures,
    documents: &DocumentEvidence,
    limits: &ContentLimits,
) -> LearnedRules {
    let trial = Trial::new(captures);
    let (noise, refused, canonical) = (captures.noise(), BTreeMap::new(), count_canonical(documents));
    let mut learner = HostLearner { captures, trial, limits, noise, canonical, refused };
    let mut found = learner.candidates(DifferenceDetail::Rules);
    let has_many_names = found.has_many_names();
    let mut tried = learner.reduce(most_frequent(std::mem::take(&mut found.rules)));
    if !learner.refused.is_empty() || has_many_names {
        found = learner.candidates(DifferenceDetail::All);
        let is_wanted = |(rule, _): &(ScopedRule, u64)| learner.is_narrower(rule);
        let mut narrower: BTreeMap<_, _> = found.narrower.into_iter().filter(is_wanted).collect();
        narrower.retain(|_, contents| *contents >= learner.limits.min_contents.div_ceil(2));
        let queries = found.queries.into_iter().map(|context| ScopedRule { rule: ContentRule::Query, context });
        let mut rules = tried.rules;
        let known = rules.len();
        rules.extend(most_frequent(narrower).into_iter().chain(queries));
        // Without narrower rules, nothing changes.
        let is_new = rules.len() > known;
        tried = if is_new { learner.reduce(rules) } else { TriedRules { rules, ..tried } };
    }
    learner.finish(tried)
}

/// Returns for each rule the number of pages whose URL it alone turns into the URL that they name as canonical.
fn count_canonical(documents: &DocumentEvidence) -> BTreeMap<ScopedRule, u64> {
    let mut counts = BTreeMap::new();
    for (page, canonical) in documents.canonical() {
        let (Some(page), Some(canonical)) = (UrlParts::of(page), UrlParts::of(canonical)) else { continue };
        let is_one_host = page.authority() == canonical.authority();
        let found = if is_one_host { find_differences(&page, &canonical, DifferenceDetail::Rules) } else { None };
        if let Some([rule]) = found.as_ref().map(|found| found.rules.as_slice()) {
            *counts.entry(rule.clone()).or_default() += 1;
        }
    }
    counts
}

/// Returns the counter-examples against a rule about values that software makes, less those that the host explains by
/// changing its content; `noise` is the share of pairs of captures of one URL that differ. If such values, each of which
/// occurs once, selected the content, most URLs of a group would not share it with others. So where most URLs of large groups
/// do, the others are noise: variants of pages, dates, errors. As much noise is expected in small groups. `None` if the
/// groups show no noise.
fn made_value_excess(evidence: &RuleEvidence, noise: f64) -> Option<f64> {
    let groups = &evidence.noise;
    let expected = noise.max(groups.mean_disagreement()?) * groups.few_merged as f64;
    let counter = evidence.counter.saturating_sub(groups.settled_counter + groups.few_sinks);
    Some((counter as f64 - expected - 2.0 * expected.sqrt()).max(0.0))
}

/// Rules that differences of URLs with equal contents suggest, and the number of contents that do.
#[derive(Default)]
struct Candidates {
    rules: BTreeMap<ScopedRule, u64>,
    narrower: BTreeMap<ScopedRule, u64>,
    queries: BTreeSet<PathContext>,
}

impl Candidates {
    /// Returns whether so many parameters differ that the whole query may make no difference.
    fn has_many_names(&self) -> bool {
        self.rules.keys().filter(|rule| matches!(rule.rule, ContentRule::Parameter(..))).count() >= MANY_NAMES
    }
}

/// Returns the rule of which a rule for some values or some paths is a part.
fn wide_rule(rule: &ScopedRule) -> ScopedRule {
    ScopedRule::from(match &rule.rule {
        ContentRule::Parameter(name, _) => ContentRule::Parameter(name.clone(), None),
        rule => rule.clone(),
    })
}

fn most_frequent(found: BTreeMap<ScopedRule, u64>) -> Vec<ScopedRule> {
    let mut found: Vec<_> = found.into_iter().filter(|(_, contents)| *contents > 1).collect();
    // A stable sort: rules with equal counts stay in their order.
    found.sort_by_key(|(_, contents)| std::cmp::Reverse(*contents));
    found.truncate(MAX_CANDIDATES);
    found.into_iter().map(|(rule, _)| rule).collect()
}

/// Rules that were tried together, with the evidence about each and the forms that they give the URLs.
struct TriedRules {
    rules: Vec<ScopedRule>,
    evidence: Vec<RuleEvidence>,
    /// `None` without rules: the URLs stay as they are.
    forms: Option<Forms>,
}

struct HostLearner<'a> {
    captures: &'a HostCaptures,
    trial: Trial<'a>,
    limits: &'a ContentLimits,
    noise: f64,
    /// Pages whose canonical links confirm each rule.
    canonical: BTreeMap<ScopedRule, u64>,
    refused: BTreeMap<ScopedRule, (RuleEvidence, RuleRefusal)>,
}

impl HostLearner<'_> {
    /// Compares URLs with equal contents.
    fn candidates(&self, detail: DifferenceDetail) -> Candidates {
        let contents = |url: usize| self.captures.contents(url).iter().map(move |known| (known.content, url as u32));
        let mut pairs: Vec<(u64, u32)> = (0..self.captures.len()).flat_map(contents).collect();
        pairs.sort_unstable();
        let (mut found, mut query_names) = (Candidates::default(), BTreeMap::<PathContext, BTreeSet<Vec<u8>>>::new());
        for urls in pairs.chunk_by(|a, b| a.0 == b.0).filter(|urls| urls.len() > 1) {
            let step = urls.len().div_ceil(MAX_COMPARED);
            let urls: Vec<u32> = urls.iter().step_by(step).map(|(_, url)| *url).collect();
            let (mut rules, mut narrower) = (BTreeSet::new(), BTreeSet::new());
            let neighbors = urls.windows(2).map(|pair| (pair[0], pair[1]));
            let ends = (urls.len() > 2).then(|| (urls[0], urls[urls.len() - 1]));
            for (a, b) in neighbors.chain(ends) {
                let (Some(a), Some(b)) = (self.trial.url(a), self.trial.url(b)) else { continue };
                let Some(differences) = find_differences(a, b, detail) else { continue };
                rules.extend(differences.rules);
                narrower.extend(differences.narrower);
                for (context, name) in differences.queries {
                    let names = query_names.entry(context).or_default();
                    if names.len() < MANY_NAMES {
                        names.insert(name);
                    }
                }
            }
            rules.into_iter().for_each(|rule| *found.rules.entry(rule).or_default() += 1);
            narrower.into_iter().for_each(|rule| *found.narrower.entry(rule).or_default() += 1);
        }
        found.queries = query_names
            .into_iter()
            .filter(|(_, names)| names.len() >= MANY_NAMES)
            .map(|(context, _)| context)
            .collect();
        found
    }

    /// Returns whether a rule of which this is a part was refused.
    fn is_narrower(&self, rule: &ScopedRule) -> bool {
        self.refused.contains_key(&wide_rule(rule))
    }

    /// Refuses rules with counter-examples until the others have none that noise does not explain.
    fn reduce(&mut self, mut rules: Vec<ScopedRule>) -> TriedRules {
        loop {
            let tried = self.try_rules(rules);
            let TriedRules { rules: all, evidence, .. } = &tried;
            let mut shares: Vec<f64> =
                all.iter().zip(evidence).map(|(rule, evidence)| self.wrong_share(rule, evidence)).collect();
            let worst_of = |shares: &[f64]| shares.iter().copied().fold(0.0, f64::max);
            let is_unexplained = worst_of(&shares) <= 1.0 - self.limits.min_precision;
            if is_unexplained {
                shares = evidence.iter().map(|evidence| self.unexplained_share(evidence)).collect();
            }
            let worst = worst_of(&shares);
            if worst <= 1.0 - self.limits.min_precision {
                return tried;
            }
            // Rules that are nearly always wrong are refused at once; of the others, some are innocent.
            let limit = worst.min(0.8);
            let judged: Vec<_> = tried.rules.into_iter().zip(tried.evidence.into_iter().zip(shares)).collect();
            rules = Vec::new();
            for (rule, (mut evidence, share)) in judged {
                evidence.counter += if is_unexplained { evidence.unexplained } else { 0 };
                match share >= limit {
                    true => drop(self.refused.insert(rule, (evidence, RuleRefusal::CounterExamples))),
                    false => rules.push(rule),
                }
            }
        }
    }

    fn try_rules(&self, rules: Vec<ScopedRule>) -> TriedRules {
        if rules.is_empty() {
            return TriedRules { rules, evidence: Vec::new(), forms: None };
        }
        let (evidence, forms) = self.trial.evaluate(&rules);
        TriedRules { rules, evidence, forms: Some(forms) }
    }

    /// Returns the counter-examples that the noise of the host does not explain. In groups of few URLs, equal contents may be
    /// a coincidence: noise of the groups of a rule only explains counter-examples if they are not more than the contents that
    /// confirm the rule.
    fn excess(&self, rule: &ScopedRule, evidence: &RuleEvidence) -> f64 {
        let noise = explaining_noise(self.noise, evidence.support, evidence.counter);
        let excess = (evidence.counter as f64 - 1.2 * noise * evidence.merged as f64).max(0.0);
        let is_confirmed = evidence.support >= evidence.counter;
        let may_be_noise = excess > 0.0 && is_confirmed && self.is_about_made_values(&rule.rule);
        let of_made_values = if may_be_noise { made_value_excess(evidence, noise) } else { None };
        of_made_values.map_or(excess, |of_made_values| of_made_values.min(excess))
    }

    /// Returns whether the rule is about values that software makes, each of which occurs once.
    fn is_about_made_values(&self, rule: &ContentRule) -> bool {
        match rule {
            ContentRule::Parameter(_, shape) | ContentRule::SegmentValue(_, shape) => {
                shape.is_some_and(ValueShape::is_made)
            }
            ContentRule::PathParameter(name) => self.trial.has_made_path_parameters(name),
            _ => false,
        }
    }

    fn wrong_share(&self, rule: &ScopedRule, evidence: &RuleEvidence) -> f64 {
        share_of(self.excess(rule, evidence), evidence.support)
    }

    /// Returns the share of pages that are merged with others, and that no rule explains.
    fn unexplained_share(&self, evidence: &RuleEvidence) -> f64 {
        let excess = evidence.unexplained as f64 - 1.2 * self.noise * evidence.merged as f64;
        share_of(excess.max(0.0), evidence.support)
    }

    fn lower_bound(&self, rule: &ScopedRule, evidence: &RuleEvidence) -> f64 {
        wilson_lower_bound(evidence.support as f64, evidence.support as f64 + self.excess(rule, evidence))
    }

    /// Leaves out rules with too little support, and returns the result.
    fn finish(mut self, mut tried: TriedRules) -> LearnedRules {
        let TriedRules { rules, evidence, forms } = loop {
            let TriedRules { rules, evidence, forms } = tried;
            let is_supported =
                |(rule, evidence): (&ScopedRule, &RuleEvidence)| evidence.support >= self.needed_support(rule);
            if rules.iter().zip(&evidence).all(is_supported) {
                break TriedRules { rules, evidence, forms };
            }
            let mut kept = Vec::new();
            for (rule, evidence) in rules.into_iter().zip(evidence) {
                if evidence.support >= self.needed_support(&rule) {
                    kept.push(rule);
                } else if evidence.support + evidence.counter > 0 {
                    self.refused.insert(rule, (evidence, RuleRefusal::Support));
                }
            }
            tried = self.try_rules(kept);
        };
        let contradicted = self.contradicted(&rules);
        let learned = rules.iter().cloned().zip(evidence).map(|(rule, evidence)| (rule, (evidence, None)));
        let refused = std::mem::take(&mut self.refused).into_iter();
        let refused = refused.map(|(rule, (evidence, refusal))| (rule, (evidence, Some(refusal))));
        let all: BTreeMap<_, _> = refused.chain(learned).collect();
        let judged = all.into_iter().map(|(rule, (evidence, refusal))| self.judged(rule, &evidence, refusal)).collect();
        LearnedRules {
            rules: judged,
            parameters: needed_parameters(&self.trial, &ContentRuleSet::new(&rules), self.noise),
            contradicted,
            urls: self.captures.len() as u64,
            forms: forms.map_or(self.captures.len(), |forms| forms.count()) as u64,
        }
    }

    /// Returns the rules that were not tried on this host, and that its captures contradict after the `learned` rules. Query
    /// parameters are not among them: [`needed_parameters`] finds these.
    fn contradicted(&self, learned: &[ScopedRule]) -> Vec<ScopedRule> {
        let names = self.trial.path_names(MAX_PROBED_NAMES);
        let named = names.into_iter().map(|(is_segment, name)| match is_segment {
            true => ContentRule::SegmentParameter(name),
            false => ContentRule::PathParameter(name),
        });
        let probes = PROBED_RULES.into_iter().chain(named).map(ScopedRule::from);
        let is_new = |rule: &ScopedRule| !learned.contains(rule) && !self.refused.contains_key(rule);
        let mut rules = learned.to_vec();
        rules.extend(probes.filter(is_new));
        let (evidence, _) = self.trial.evaluate(&rules);
        let tried = rules.into_iter().zip(evidence).skip(learned.len());
        let limit = 1.0 - self.limits.min_precision;
        tried.filter(|(rule, evidence)| self.wrong_share(rule, evidence) > limit).map(|(rule, _)| rule).collect()
    }

    /// The number of contents that must support a rule: half of the usual number if as many pages confirm the rule by their
    /// canonical links. Canonical links alone are not evidence, because many sites name one page for all.
    fn needed_support(&self, rule: &ScopedRule) -> u64 {
        const MIN_CONTENTS: u64 = 2;
        let needed = self.needed_contents(rule);
        let is_canonical = self.canonical.get(rule).is_some_and(|pages| *pages >= needed);
        if is_canonical { needed.div_ceil(2).max(MIN_CONTENTS).min(needed) } else { needed }
    }

    /// Rules that apply to more URLs that were not captured need more support.
    fn needed_contents(&self, rule: &ScopedRule) -> u64 {
        let needed = match &rule.rule {
            ContentRule::SegmentValue(_, None) | ContentRule::Query => 3 * self.limits.min_contents,
            ContentRule::SegmentValue(..) | ContentRule::Segment(..) | ContentRule::SegmentParameter(_) => {
                2 * self.limits.min_contents
            }
            // Other values than those of sessions are parts of names.
            ContentRule::PathParameter(name) if !self.trial.has_made_path_parameters(name) => {
                2 * self.limits.min_contents
            }
            _ => self.limits.min_contents,
        };
        if rule.context == PathContext::Any {
            return needed;
        }
        match self.refused.get(&wide_rule(rule)) {
            Some((evidence, RuleRefusal::CounterExamples)) => {
                needed.max(contents_beyond_chance(share_of(evidence.counter as f64, evidence.support)))
            }
            _ => needed,
        }
    }

    fn judged(&self, rule: ScopedRule, evidence: &RuleEvidence, refusal: Option<RuleRefusal>) -> JudgedRule {
        let texts = |pairs: &[(u32, u32)]| {
            let urls = pairs.iter().flat_map(|(a, b)| [*a, *b]);
            urls.map(|url| self.captures.uri(url as usize).to_vec()).collect()
        };
        JudgedRule {
            lower_bound: self.lower_bound(&rule, evidence),
            needs_canonical: refusal.is_none() && evidence.support < self.needed_contents(&rule),
            rule,
            support: evidence.support,
            counter: evidence.counter,
            merged: evidence.merged,
            refusal,
            examples: texts(&evidence.examples),
            counter_examples: texts(&evidence.counter_examples),
        }
    }
}

#[cfg(test)]
mod tests;
