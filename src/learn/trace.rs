//! Reports which class, rules and patterns lead from a URL to its key: [`Equivalences::trace`].

use super::content::{ContentRule, ContentRuleSet, RuleBuffers, ScopedRule, UrlParts};
use super::equivalences::Equivalences;
use super::host_rules::KeyOrigin;
use super::protocol_keys::MAX_STEPS;
use super::spelling::Spelling;
use crate::key::KeyBytes;

/// A class, rule or pattern that applies to a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceStep {
    pub(crate) origin: KeyOrigin,
    /// The host, domain or `*` that the rule is for; empty for a class.
    pub(crate) scope: String,
    /// The rule or pattern; empty for a class.
    pub(crate) name: String,
    /// The paths that the rule is for.
    pub(crate) context: String,
    /// The URL before the step.
    pub(crate) uri: Vec<u8>,
    /// The URL that the rules result in; empty for a class.
    pub(crate) result: Vec<u8>,
    /// The key of the representative, for a class.
    pub(crate) representative: Option<KeyBytes>,
}

impl TraceStep {
    fn new(origin: KeyOrigin, uri: &[u8]) -> TraceStep {
        TraceStep {
            origin,
            scope: String::new(),
            name: String::new(),
            context: String::new(),
            uri: uri.to_vec(),
            result: Vec::new(),
            representative: None,
        }
    }
}

impl Equivalences {
    /// Returns what applies to `uri`, in order: the steps that determine [`Equivalences::key`]. There are none if rules and
    /// patterns do not end after [`MAX_STEPS`].
    pub(crate) fn trace(&self, uri: &[u8]) -> Vec<TraceStep> {
        let scope_text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (mut steps, mut text) = (Vec::new(), uri.to_vec());
        for _ in 0..=MAX_STEPS {
            let key = self.algorithm().key(&text);
            if let Some(representative) = self.representative(&key) {
                if representative != key {
                    let step = TraceStep::new(KeyOrigin::Class, &text);
                    steps.push(TraceStep { representative: Some(representative), ..step });
                }
                return steps;
            }
            let Some((result, origin)) = self.step(&text) else { return steps };
            let step = TraceStep { result: result.clone(), ..TraceStep::new(origin, &text) };
            if origin == KeyOrigin::Rule {
                steps.extend(self.content_rules_of(&text).into_iter().map(|(scope, rule)| TraceStep {
                    scope: scope_text(&scope),
                    name: rule.rule.to_string(),
                    context: rule.context.to_string(),
                    ..step.clone()
                }));
            } else {
                let host = Spelling::of(&text).map_or(&b""[..], |spelling| spelling.authority);
                let name = self.pattern_of(&text).map_or(String::new(), |pattern| pattern.name());
                steps.push(TraceStep { scope: scope_text(host), name, ..step });
            }
            text = result;
        }
        Vec::new()
    }

    /// Returns the rules about content that change `uri`, each with its scope.
    fn content_rules_of(&self, uri: &[u8]) -> Vec<(Vec<u8>, &ScopedRule)> {
        let Some(url) = UrlParts::of(uri) else { return Vec::new() };
        let rules = self.rules_for(url.authority());
        let apply = |is_used: &dyn Fn(&ScopedRule) -> bool| {
            let (mut removed, mut text) = (Vec::new(), Vec::new());
            let set = ContentRuleSet::new(rules.iter().map(|(_, rule)| *rule).filter(|rule| is_used(rule)));
            set.write(&url, &mut RuleBuffers::default(), &mut removed, &mut text);
            (text, removed)
        };
        let (result, removed) = apply(&|_| true);
        // Rules of these kinds are also noted for URLs that they do not change, such as those with sorted parameters.
        let is_always_noted = |rule: &ContentRule| {
            matches!(rule, ContentRule::Scheme | ContentRule::SameAs { .. } | ContentRule::ParameterOrder)
        };
        let changes =
            |rule: &ContentRule| !is_always_noted(rule) || apply(&|other| other.rule.kind() != rule.kind()).0 != result;
        let is_applied = |number: usize| removed.iter().any(|(applied, _)| usize::from(*applied) == number);
        let applied = rules.iter().enumerate().filter(|(number, (_, rule))| is_applied(*number) && changes(&rule.rule));
        applied.map(|(_, rule)| rule.clone()).collect()
    }
}
