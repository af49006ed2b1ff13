//! Applies rules about content to queries: [`QueryRules`].

use super::path_rules::RulePlaces;
use super::removal::RemovalLog;
use super::rule::{ContentRule, PathContext, ScopedRule};
use super::url_parts::{UrlParts, name_and_value};
use super::value_shape::ValueShape;
use crate::kernel::append;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

/// Rules about queries in the form that they are applied in, with their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct QueryRules {
    /// There are rules that change queries.
    is_used: bool,
    parameter_order: RulePlaces,
    empty_parameters: RulePlaces,
    parameters: Vec<(Vec<u8>, Option<ValueShape>, PathContext, u16)>,
    queries: Vec<(PathContext, u16)>,
    kept: Vec<Vec<u8>>,
}

impl QueryRules {
    /// Adds a rule, if it is about queries.
    pub(super) fn add(&mut self, ScopedRule { rule, context }: &ScopedRule, number: u16) {
        self.is_used |= rule.is_about_queries();
        match rule.clone() {
            ContentRule::ParameterOrder => self.parameter_order.add(context, number),
            ContentRule::EmptyParameters => self.empty_parameters.add(context, number),
            ContentRule::Parameter(name, shape) => self.parameters.push((name, shape, context.clone(), number)),
            ContentRule::Query => self.queries.push((context.clone(), number)),
            ContentRule::KeepParameter(name) => self.kept.push(name),
            _ => (),
        }
    }

    /// Returns whether rules may change the query of `url`.
    pub(super) fn may_change(&self, url: &UrlParts<'_>) -> bool {
        self.is_used && url.query.is_some()
    }

    /// Returns whether a rule says that the parameter matters.
    pub(super) fn keeps(&self, name: &[u8]) -> bool {
        self.kept.iter().any(|kept| kept == name)
    }

    /// Writes the query of a URL with this path without the parameters that make no difference.
    pub(super) fn write(
        &self,
        (url, path): (&UrlParts<'_>, &[u8]),
        kept: &mut Vec<Range<usize>>,
        removed: &mut impl RemovalLog,
        out: &mut Vec<u8>,
    ) {
        let query = url.query.unwrap_or_default();
        if let Some((_, number)) = self.queries.iter().find(|(context, _)| context.contains(path)) {
            return removed.add(*number, || xxh3_64(query) | 1);
        }
        kept.clear();
        let (mut at, mut all) = (0, 0);
        let (separator, ends) = url.separators();
        for end in ends.chain([query.len()]) {
            all += 1;
            let parameter = &query[at..end];
            match self.rule_of_parameter(parameter, path) {
                Some(number) => removed.add(number, || xxh3_64(parameter) | 1),
                None => kept.push(at..end),
            }
            at = end + 1;
        }
        if let Some(number) = self.parameter_order.number(path).filter(|_| kept.len() > 1) {
            removed.add(number, || {
                let hash = |order: u64, range: &Range<usize>| {
                    xxh3_64(&[order, xxh3_64(&query[range.clone()])].map(u64::to_le_bytes).concat())
                };
                kept.iter().fold(0, hash) | 1
            });
            // Of several values of one name, many sites use the first or the last.
            let name = |range: &Range<usize>| name_and_value(&query[range.clone()]).0;
            kept.sort_by(|a, b| name(a).cmp(name(b)));
        }
        if kept.is_empty() && all > 0 && (all > 1 || !query.is_empty() || self.empty_parameters.number(path).is_some())
        {
            return;
        }
        out.push(b'?');
        for (i, parameter) in kept.iter().enumerate() {
            if i > 0 {
                out.push(separator);
            }
            append(out, &query[parameter.clone()]);
        }
    }

    /// Returns the number of the rule by which the parameter makes no difference.
    fn rule_of_parameter(&self, parameter: &[u8], path: &[u8]) -> Option<u16> {
        if parameter.is_empty() {
            return self.empty_parameters.number(path);
        }
        let is_for = |(known, shape, context, _): &&(Vec<u8>, Option<ValueShape>, PathContext, u16)| {
            let value = match parameter.strip_prefix(&known[..]) {
                Some([b'=', value @ ..]) => value,
                Some([]) => b"",
                _ => return false,
            };
            shape.is_none_or(|shape| ValueShape::of(value) == shape) && context.contains(path)
        };
        let (.., number) = self.parameters.iter().find(is_for)?;
        Some(*number).filter(|_| self.kept.is_empty() || !self.keeps(name_and_value(parameter).0))
    }
}
