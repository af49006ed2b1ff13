//! Applies rules about content to queries: [`QueryRules`].

use super::path_rules::RulePlaces;
use super::removal::RemovalLog;
use super::rule::{ContentRule, PathContext, ScopedRule};
use super::url_parts::{UrlParts, name_and_value, separator_of};
use super::value_shape::ValueShape;
use crate::kernel::{append_range, low_bits, masks_of, positions_by_mask};
use std::cmp::Ordering;
use xxhash_rust::xxh3::xxh3_64;

/// Rules about queries in the form that they are applied in, with their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct QueryRules {
    /// There are rules that change queries.
    is_used: bool,
    parameter_order: RulePlaces,
    empty_parameters: RulePlaces,
    parameters: Vec<ParameterRule>,
    queries: Vec<(PathContext, u16)>,
    kept: Vec<Vec<u8>>,
}

/// A rule about a parameter.
#[derive(Clone, Debug)]
struct ParameterRule {
    /// The first bytes of the name, and a mask of them.
    first: [u64; 2],
    name: Vec<u8>,
    shape: Option<ValueShape>,
    context: PathContext,
    number: u16,
}

/// A query in the text of its URL.
#[derive(Clone, Copy)]
pub(super) struct QueryText<'a> {
    /// The URL, and what follows it in its buffer.
    pub(super) text: &'a [u8],
    /// Where the query begins in the text.
    pub(super) at: usize,
    pub(super) query: &'a [u8],
    /// Masks of the ampersands and of the semicolons, if they are known.
    pub(super) separators: Option<[u64; 2]>,
}

/// What remains of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryForm {
    /// Everything.
    Whole,
    /// These parts, with this separator between them.
    Parts(u8),
}

/// A part of a query that remains: a parameter, or several with the separators between them.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryPart {
    at: u32,
    end: u32,
    /// The first bytes of the name, in an order that compares as they do. 0 unless parameters are sorted.
    name: u64,
}

impl ParameterRule {
    fn new(name: Vec<u8>, shape: Option<ValueShape>, context: PathContext, number: u16) -> ParameterRule {
        let mask = !0_u64 >> (64 - 8 * name.len().clamp(1, 8));
        ParameterRule { first: [word_at(&name, 0) & mask, mask], name, shape, context, number }
    }

    /// Returns the value of `parameter`, which begins with `word`, if it has the name of the rule.
    #[inline(always)]
    fn value<'q>(&self, parameter: &'q [u8], word: u64) -> Option<&'q [u8]> {
        let [first, mask] = self.first;
        if (word ^ first) & mask != 0 || self.name.len() > 8 && !parameter.starts_with(&self.name) {
            return None;
        }
        match parameter.get(self.name.len()..)? {
            [b'=', value @ ..] => Some(value),
            [] => Some(b""),
            _ => None,
        }
    }
}

impl QueryRules {
    /// Adds a rule, if it is about queries.
    pub(super) fn add(&mut self, ScopedRule { rule, context }: &ScopedRule, number: u16) {
        self.is_used |= rule.is_about_queries();
        match rule.clone() {
            ContentRule::ParameterOrder => self.parameter_order.add(context, number),
            ContentRule::EmptyParameters => self.empty_parameters.add(context, number),
            ContentRule::Parameter(name, shape) => {
                self.parameters.push(ParameterRule::new(name, shape, context.clone(), number));
            }
            ContentRule::Query => self.queries.push((context.clone(), number)),
            ContentRule::KeepParameter(name) => self.kept.push(name),
            _ => (),
        }
    }

    /// Returns whether there are rules that change queries.
    #[inline(always)]
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Returns whether a rule says that the parameter matters.
    pub(super) fn keeps(&self, name: &[u8]) -> bool {
        self.kept.iter().any(|kept| kept == name)
    }

    /// Finds the parts of a query that make a difference. `path` is the plain path of the URL.
    #[inline(always)]
    pub(super) fn find_parts(
        &self,
        (text, path): (QueryText<'_>, &[u8]),
        parts: &mut Vec<QueryPart>,
        removed: &mut impl RemovalLog,
    ) -> QueryForm {
        let query = text.query;
        parts.clear();
        if let Some((_, number)) = self.queries.iter().find(|(context, _)| context.contains(path)) {
            removed.add(*number, || xxh3_64(query) | 1);
            return QueryForm::Parts(b'&');
        }
        let order = self.parameter_order.number(path);
        let (separator, mask) = text.separators();
        let mut separators = positions_by_mask(query, mask, move |byte| byte == separator);
        let (mut at, mut form) = (0, QueryForm::Whole);
        loop {
            let separator_at = separators.next();
            let end = separator_at.unwrap_or(query.len());
            let word = word_at(text.text, text.at + at);
            let parameter = &query[at..end];
            if let Some(number) = self.rule_of_parameter(parameter, word, path) {
                removed.add(number, || xxh3_64(parameter) | 1);
                form = QueryForm::Parts(separator);
            } else if order.is_none()
                && let Some(last) = parts.last_mut().filter(|last| last.end as usize + 1 == at)
            {
                last.end = end as u32;
            } else {
                let name = if order.is_some() { name_number(word, parameter.len()) } else { 0 };
                parts.push(QueryPart { at: at as u32, end: end as u32, name });
            }
            if separator_at.is_none() {
                break;
            }
            at = end + 1;
        }
        if let Some(number) = order.filter(|_| parts.len() > 1) {
            removed.add(number, || {
                let hash = |order: u64, part: &QueryPart| {
                    xxh3_64(&[order, xxh3_64(part.of(query))].map(u64::to_le_bytes).concat())
                };
                parts.iter().fold(0, hash) | 1
            });
            // Of several values of one name, many sites use the first or the last.
            if !parts.is_sorted_by(|a, b| a.compare_names(b, query).is_le()) {
                parts.sort_by(|a, b| a.compare_names(b, query));
                form = QueryForm::Parts(separator);
            }
        }
        form
    }

    /// Returns the number of the rule by which the parameter, which begins with `word`, makes no difference.
    #[inline(always)]
    fn rule_of_parameter(&self, parameter: &[u8], word: u64, path: &[u8]) -> Option<u16> {
        if parameter.is_empty() {
            return self.empty_parameters.number(path);
        }
        // A loop is compiled for the caller's instruction set; `find` may become a call.
        for rule in &self.parameters {
            if let Some(value) = rule.value(parameter, word)
                && rule.shape.is_none_or(|shape| shape.is_of(value))
                && rule.context.contains(path)
            {
                let is_kept = !self.kept.is_empty() && self.keeps(name_and_value(parameter).0);
                return Some(rule.number).filter(|_| !is_kept);
            }
        }
        None
    }
}

impl QueryForm {
    /// Returns whether what remains of a query is one part that semicolons separate, so that rules apply to its parameters.
    #[inline(always)]
    pub(super) fn has_new_parameters(self, query: &[u8], parts: &[QueryPart]) -> bool {
        match parts {
            [part] => self == QueryForm::Parts(b'&') && separator_of(part.of(query)) == b';',
            _ => false,
        }
    }
}

impl<'a> QueryText<'a> {
    /// Returns the query of a URL.
    #[inline(always)]
    pub(super) fn of(url: &UrlParts<'a>) -> Option<QueryText<'a>> {
        let (text, at) = (url.text.buffer(), url.path_at + url.path.len() + 1);
        url.query.map(|query| QueryText { text, at, query, separators: url.separators })
    }

    /// Returns the byte that separates parameters, and a mask of its positions if it is known.
    #[inline(always)]
    fn separators(&self) -> (u8, Option<u64>) {
        match self.separators {
            None => (separator_of(self.query), None),
            Some([0, semicolons]) if semicolons != 0 => match has_equals_between(self.query, semicolons) {
                true => (b';', Some(semicolons)),
                false => (b'&', Some(0)),
            },
            Some([ampersands, _]) => (b'&', Some(ampersands)),
        }
    }

    /// Appends what remains of the query, with its question mark.
    #[inline(always)]
    pub(super) fn write(&self, form: QueryForm, parts: &[QueryPart], out: &mut Vec<u8>) {
        let QueryForm::Parts(separator) = form else {
            return append_range(out, self.text, self.at - 1, self.query.len() + 1);
        };
        let mut before = b'?';
        for part in parts {
            out.push(std::mem::replace(&mut before, separator));
            append_range(out, self.text, self.at + part.at as usize, (part.end - part.at) as usize);
        }
    }
}

impl QueryPart {
    fn of(self, query: &[u8]) -> &[u8] {
        &query[self.at as usize..self.end as usize]
    }

    /// Compares the names of two parameters.
    #[inline(always)]
    fn compare_names(&self, other: &QueryPart, query: &[u8]) -> Ordering {
        self.name.cmp(&other.name).then_with(|| {
            // A shorter name has zeros at its end.
            let is_short = self.name & 0xFF == 0;
            let name = |part: &QueryPart| name_and_value(part.of(query)).0;
            if is_short { Ordering::Equal } else { name(self).cmp(name(other)) }
        })
    }
}

/// Returns whether a query of at most 64 bytes has several parameters between its semicolons, all with an equals sign.
#[inline(always)]
fn has_equals_between(query: &[u8], semicolons: u64) -> bool {
    let Some([equals]) = masks_of(query, [b'=']) else { return separator_of(query) == b';' };
    let (mut at, mut count) = (0, 0);
    for end in positions_by_mask(query, Some(semicolons), |_| false).chain([query.len()]) {
        if end > at {
            if (equals & low_bits(end) as u64) >> at == 0 {
                return false;
            }
            count += 1;
        }
        at = end + 1;
    }
    count > 1
}

/// Returns the bytes from `at` on as a number, the first one lowest, with zeros behind the text.
#[inline(always)]
fn word_at(text: &[u8], at: usize) -> u64 {
    let rest = &text[at..];
    rest.first_chunk().map_or_else(|| short_word(rest), |bytes| u64::from_le_bytes(*bytes))
}

fn short_word(text: &[u8]) -> u64 {
    text.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Returns the first bytes of the name of a parameter that has `len` bytes and begins with `word`, the first one highest.
#[inline(always)]
fn name_number(word: u64, len: usize) -> u64 {
    const ONES: u64 = !0 / 0xFF;
    // The lowest bit that is set belongs to the first equals sign.
    let differs = word ^ (ONES * b'=' as u64);
    let equals = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
    let len = (equals.trailing_zeros() as usize / 8).min(len);
    if len == 0 { 0 } else { (word & !0 >> (64 - 8 * len)).swap_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_split_alike_with_and_without_masks() {
        let texts =
            ["a=1;b=2", "a=1;;b=2;", ";a=1", "a=1", "a;b=2", "a=1;b", ";", "", "a=1&b=2;c=3", "a=1;b=2&", ";a=1;b=2"];
        for query in texts {
            let mask = |byte: u8| {
                query
                    .bytes()
                    .enumerate()
                    .filter(|(_, other)| *other == byte)
                    .fold(0, |mask, (at, _)| mask | 1_u64 << at)
            };
            let text = |separators| QueryText { text: query.as_bytes(), at: 0, query: query.as_bytes(), separators };
            let (with, without) = (text(Some([mask(b'&'), mask(b';')])).separators(), text(None).separators());
            assert_eq!(with, (without.0, Some(mask(without.0))), "{query}");
        }
    }

    #[test]
    fn names_compare_as_texts() {
        let texts =
            ["", "=1", "a", "a=1", "ab=", "ab", "abcdefg=1", "abcdefgh", "abcdefgh=1", "abcdefghi=2", "abcdefghj", "b"];
        let part = |text: &str, at: usize| QueryPart {
            at: at as u32,
            end: (at + text.len()) as u32,
            name: name_number(word_at(text.as_bytes(), 0), text.len()),
        };
        for a in texts {
            for b in texts {
                let query = format!("{a}&{b}");
                let found = part(a, 0).compare_names(&part(b, a.len() + 1), query.as_bytes());
                assert_eq!(found, name_and_value(a.as_bytes()).0.cmp(name_and_value(b.as_bytes()).0), "{a} {b}");
            }
        }
    }
}
