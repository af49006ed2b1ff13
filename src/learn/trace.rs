//! Reports which class, rules and patterns lead from a URL to its key: [`Equivalences::trace`].

use super::content::{ContentRuleSet, RuleBuffers, UrlParts};
use super::equivalences::Equivalences;
use super::host_rules::KeyOrigin;
use super::protocol_keys::MOST_STEPS;
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

impl Equivalences {
    /// Returns what applies to `uri`, in order: the steps that determine [`Equivalences::key`]. There are none if rules and
    /// patterns do not end after [`MOST_STEPS`].
    pub(crate) fn trace(&self, uri: &[u8]) -> Vec<TraceStep> {
        let (mut steps, mut text) = (Vec::new(), uri.to_vec());
        for _ in 0..=MOST_STEPS {
            let step = |origin, uri: &[u8]| TraceStep {
                origin,
                scope: String::new(),
                name: String::new(),
                context: String::new(),
                uri: uri.to_vec(),
                result: Vec::new(),
                representative: None,
            };
            let key = self.algorithm.key(&text);
            if let Some(representative) = self.representatives.get(&key) {
                let representative = Some(*representative).filter(|representative| *representative != key);
                steps.extend(
                    representative.map(|key| TraceStep { representative: Some(key), ..step(KeyOrigin::Class, &text) }),
                );
                return steps;
            }
            let Some((result, origin)) = self.step(&text) else { return steps };
            let scope = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let step = TraceStep { result: result.clone(), ..step(origin, &text) };
            match origin {
                KeyOrigin::Rule => {
                    steps.extend(self.content_rules_of(&text).into_iter().map(|(host, name, context)| TraceStep {
                        scope: scope(&host),
                        name,
                        context,
                        ..step.clone()
                    }))
                }
                _ => {
                    let host = Spelling::of(&text).map_or(&b""[..], |spelling| spelling.authority);
                    let name = self.pattern_of(&text).map_or(String::new(), |pattern| pattern.name());
                    steps.push(TraceStep { scope: scope(host), name, ..step });
                }
            }
            text = result;
        }
        Vec::new()
    }

    /// Returns scope, name and context of the rules about content that change `uri`.
    fn content_rules_of(&self, uri: &[u8]) -> Vec<(Vec<u8>, String, String)> {
        let Some(url) = UrlParts::of(uri) else { return Vec::new() };
        let rules = self.rules_for(url.authority());
        let set = ContentRuleSet::new(rules.iter().map(|(_, rule)| *rule));
        let mut removed = Vec::new();
        set.write(&url, &mut RuleBuffers::default(), &mut removed, &mut Vec::new());
        let mut numbers: Vec<usize> = removed.into_iter().map(|(number, _)| usize::from(number)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let rules = numbers.into_iter().filter_map(|number| rules.get(number));
        let is_change = |rule: &ContentRuleSet| {
            let mut text = Vec::new();
            rule.write(&url, &mut RuleBuffers::default(), &mut Vec::new(), &mut text);
            text != uri
        };
        // The order of parameters may be right already.
        let rules = rules.filter(|(_, rule)| is_change(&ContentRuleSet::new([*rule])));
        rules.map(|(scope, rule)| (scope.clone(), rule.rule.to_string(), rule.context.to_string())).collect()
    }
}
