//! Learns the rules of one host from its captures: [`learn_host`].
//!
//! 1. URLs with equal contents differ in something: [`find_differences`] names the rules by which they would be equal.
//! 2. All these rules are tried together, because many hide each other: where every URL has a session identifier, no two URLs are
//!    equal but for the order of their parameters. The rule with the most counter-examples is refused, until no rule has
//!    more of them than the noise of the host explains.
//! 3. Narrower rules (values of a shape, some paths) are tried in the place of refused ones.
//! 4. Rules with too little support are left out.

use super::captures::HostCaptures;
use super::differences::{DifferenceDetail, find_differences};
use super::near::DocumentEvidence;
use super::parameters::needed_parameters;
use super::rule::{ContentRule, PathContext, ScopedRule};
use super::rule_set::ContentRuleSet;
use super::trial::{Forms, RuleEvidence, Trial};
use super::url_parts::UrlParts;
use super::value_shape::ValueShape;
use std::collections::{BTreeMap, BTreeSet};

/// Most rules that are tried together.
const MAX_CANDIDATES: usize = 64;

/// Most URLs with one content that are compared: those of other contents differ in the same parts.
const MAX_COMPARED: usize = 16;

/// Names of parameters under a path after which the whole query may make no difference.
const MANY_NAMES: usize = 8;

/// What rules about content need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ContentLimits {
    /// Least number of contents for which a rule made no difference.
    pub(crate) min_contents: u64,
    /// Least share of right merges, as captures show it.
    pub(crate) min_precision: f64,
    /// Share of captures that rules are not learned from, but tried on.
    pub(crate) held_out: f64,
    /// Contents are equal whose texts differ in at most so many bits of their hashes.
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

/// A rule with what the captures say about it.
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

/// What was learned of a host.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LearnedRules {
    /// Rules, learned and refused, in their order.
    pub(crate) rules: Vec<JudgedRule>,
    /// For query parameters of which no rule was learned: pages that ignoring it would merge with others.
    pub(crate) parameters: BTreeMap<Vec<u8>, u64>,
    /// URLs, and URLs that differ after the rules.
    pub(crate) urls: u64,
    pub(crate) forms: u64,
}

/// Returns the lower bound of the share of successes (Wilson, 95 % one-sided).
pub(crate) fn wilson_lower_bound(successes: f64, all: f64) -> f64 {
    const Z: f64 = 1.645;
    if all <= 0.0 {
        return 0.0;
    }
    let share = successes / all;
    let middle = share + Z * Z / (2.0 * all);
    let spread = Z * (share * (1.0 - share) / all + Z * Z / (4.0 * all * all)).sqrt();
    ((middle - spread) / (1.0 + Z * Z / all)).max(0.0)
}

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
        let narrower = found.narrower.into_iter().filter(is_wanted).collect();
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

/// Returns for each rule the number of pages from whose URL it alone makes the URL that they name as canonical.
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

/// Returns whether the rule is about values that software makes, each of which occurs once.
fn is_about_made_values(rule: &ContentRule) -> bool {
    match rule {
        ContentRule::Parameter(_, shape) | ContentRule::SegmentValue(_, shape) => {
            shape.is_some_and(ValueShape::is_made)
        }
        _ => false,
    }
}

/// Returns whether the host serves its pages in variants. If values that occur once determined the content, it would be different
/// for each, and not one of a few contents that many values share.
fn has_variants(evidence: &RuleEvidence) -> bool {
    const MIN_VARIANTS: u64 = 5;
    evidence.variants >= MIN_VARIANTS && 2 * evidence.variants >= evidence.alone
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
        let contents = |url: usize| self.captures.contents(url).iter().map(move |(content, _)| (*content, url as u32));
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
        let ContentRule::Parameter(name, _) = &rule.rule else { return false };
        self.refused.contains_key(&ScopedRule::from(ContentRule::Parameter(name.clone(), None)))
    }

    /// Refuses rules with counter-examples until the others have none that noise does not explain.
    fn reduce(&mut self, mut rules: Vec<ScopedRule>) -> TriedRules {
        loop {
            let tried = self.try_rules(rules);
            let TriedRules { rules: all, evidence, .. } = &tried;
            let shares: Vec<f64> =
                all.iter().zip(evidence).map(|(rule, evidence)| self.wrong_share(rule, evidence)).collect();
            let worst = shares.iter().copied().fold(0.0, f64::max);
            if worst <= 1.0 - self.limits.min_precision {
                return tried;
            }
            // Rules that are nearly always wrong are refused at once; of the others, some are innocent.
            let limit = worst.min(0.8);
            let judged: Vec<_> = tried.rules.into_iter().zip(tried.evidence.into_iter().zip(shares)).collect();
            rules = Vec::new();
            for (rule, (evidence, share)) in judged {
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

    /// Returns the counter-examples that the noise of the host does not explain.
    fn excess(&self, rule: &ScopedRule, evidence: &RuleEvidence) -> f64 {
        if is_about_made_values(&rule.rule) && has_variants(evidence) {
            return 0.0;
        }
        (evidence.counter as f64 - 1.2 * self.noise * evidence.merged as f64).max(0.0)
    }

    fn wrong_share(&self, rule: &ScopedRule, evidence: &RuleEvidence) -> f64 {
        let excess = self.excess(rule, evidence);
        if excess == 0.0 { 0.0 } else { excess / (excess + evidence.support as f64) }
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
        let learned = rules.iter().cloned().zip(evidence).map(|(rule, evidence)| (rule, (evidence, None)));
        let refused = std::mem::take(&mut self.refused).into_iter();
        let refused = refused.map(|(rule, (evidence, refusal))| (rule, (evidence, Some(refusal))));
        let all: BTreeMap<_, _> = refused.chain(learned).collect();
        let judged = all.into_iter().map(|(rule, (evidence, refusal))| self.judged(rule, &evidence, refusal)).collect();
        LearnedRules {
            rules: judged,
            parameters: needed_parameters(&self.trial, &ContentRuleSet::new(&rules), self.noise),
            urls: self.captures.len() as u64,
            forms: forms.map_or(self.captures.len(), |forms| forms.count()) as u64,
        }
    }

    /// The number of contents that must support a rule: half of the usual number if as many pages confirm the rule by their
    /// canonical links. Canonical links alone are not evidence, because many sites name one page for all.
    fn needed_support(&self, rule: &ScopedRule) -> u64 {
        const MIN_CONTENTS: u64 = 2;
        let needed = self.needed_contents(rule);
        let is_canonical = self.canonical.get(rule).is_some_and(|pages| *pages >= needed);
        if is_canonical { needed.div_ceil(2).max(MIN_CONTENTS).min(needed) } else { needed }
    }

    /// Rules that say more about URLs that were not captured need more support.
    fn needed_contents(&self, rule: &ScopedRule) -> u64 {
        match &rule.rule {
            ContentRule::SegmentValue(_, None) | ContentRule::Query => 3 * self.limits.min_contents,
            ContentRule::SegmentValue(..) | ContentRule::Segment(..) => 2 * self.limits.min_contents,
            _ => self.limits.min_contents,
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

/// Returns the set of the rules of a host that were learned.
pub(crate) fn learned_set(rules: &[JudgedRule]) -> ContentRuleSet {
    ContentRuleSet::new(rules.iter().filter(|rule| rule.refusal.is_none()).map(|rule| &rule.rule))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules that are learned from captures of URLs, as texts.
    fn learned(captures: &[(String, u64)]) -> Vec<String> {
        learned_with(captures, &DocumentEvidence::default())
    }

    fn learned_with(captures: &[(String, u64)], documents: &DocumentEvidence) -> Vec<String> {
        let mut sorted = captures.to_vec();
        sorted.sort();
        let mut host = HostCaptures::default();
        sorted.iter().for_each(|(uri, content)| host.push(uri.as_bytes(), *content));
        let rules = learn_host(&host, documents, &ContentLimits::default()).rules.into_iter();
        rules
            .filter(|rule| rule.refusal.is_none())
            .map(|rule| format!("{} {}", rule.rule.rule, rule.rule.context))
            .collect()
    }

    fn urls(count: u64, of: impl Fn(u64, u64) -> (String, u64)) -> Vec<(String, u64)> {
        (0..count).flat_map(|page| (0..5).map(move |copy| (page, copy))).map(|(page, copy)| of(page, copy)).collect()
    }

    /// A value that looks made.
    fn token(page: u64, copy: u64) -> String {
        format!("{:032x}", u128::from(page * 5 + copy + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
    }

    #[test]
    fn rules_that_hide_each_other_are_learned() {
        let order = |page, copy: u64| match copy % 2 {
            0 => (format!("http://a/v?id={page}&lang=x&sid={}", token(page, copy)), page),
            _ => (format!("http://a/v?sid={}&lang=x&id={page}", token(page, copy)), page),
        };
        assert_eq!(learned(&urls(20, order)), ["ignore-parameter sid ", "ignore-parameter-order "]);
    }

    #[test]
    fn parameters_that_matter_are_kept() {
        let own = |page, copy| (format!("http://a/v?id={page}&sid={}", token(page, copy)), page * 5 + copy);
        assert!(learned(&urls(20, own)).is_empty());
        // One value of twenty makes a difference.
        let rare = |page, copy| match (page * 5 + copy) % 20 {
            7 => (format!("http://a/v?id={page}&opt=7"), 1000 + page),
            other => (format!("http://a/v?id={page}&opt={other}{copy}"), page),
        };
        assert!(learned(&urls(40, rare)).is_empty());
    }

    #[test]
    fn an_error_page_under_many_urls_is_no_evidence() {
        let errors = |page, copy| (format!("http://a/{page}/x{copy}?q={page}{copy}"), 1);
        assert!(learned(&urls(40, errors)).is_empty());
    }

    #[test]
    fn variants_of_pages_are_no_counter_examples() {
        let variant =
            |page: u64, copy: u64| (format!("http://a/v?id={page}&sid={}", token(page, copy)), page * 2 + copy % 2);
        assert_eq!(learned(&urls(20, variant)), ["ignore-parameter sid=<hex> "]);
    }

    #[test]
    fn a_parameter_may_matter_under_other_paths_only() {
        let paths = |page, copy| match page % 2 {
            0 => (format!("http://a/shop/{page}?v={copy}"), page),
            _ => (format!("http://a/news/{page}?v={copy}"), page * 5 + copy),
        };
        assert_eq!(learned(&urls(40, paths)), ["ignore-parameter v /shop/"]);
    }

    #[test]
    fn canonical_links_confirm_rules_that_few_contents_support() {
        let page = |page, copy| (format!("http://a/v?id={page}&ref={copy}"), page);
        let few: Vec<_> = (0..3).flat_map(|id| (0..2).map(move |copy| page(id, copy))).collect();
        let canonical = |pages: std::ops::Range<u64>| {
            let mut documents = DocumentEvidence::default();
            for id in pages {
                documents.add_canonical(
                    format!("http://a/v?id={id}&ref=1").as_bytes(),
                    format!("http://a/v?id={id}").as_bytes(),
                );
                documents.add_canonical(format!("http://a/v?id={id}&ref=1").as_bytes(), b"http://a/");
            }
            documents
        };
        assert!(learned(&few).is_empty() && learned_with(&few, &canonical(0..4)).is_empty());
        assert_eq!(learned_with(&few, &canonical(0..5)), ["ignore-parameter ref "]);
        // Never alone, and not against contents.
        assert!(learned_with(&few[..2], &canonical(0..5)).is_empty());
        let different: Vec<_> = few.iter().cloned().chain((0..9).map(|id| (page(0, 9 + id).0, 100 + id))).collect();
        assert!(learned_with(&different, &canonical(0..5)).is_empty());
    }

    #[test]
    fn bounds_of_shares() {
        assert!((wilson_lower_bound(5.0, 5.0) - 0.649).abs() < 0.001);
        assert_eq!(wilson_lower_bound(0.0, 0.0), 0.0);
    }
}
