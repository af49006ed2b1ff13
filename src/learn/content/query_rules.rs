//! Applies rules about content to queries: [`QueryRules`].

use super::path_rules::RulePlaces;
use super::removal::RemovalLog;
use super::rule::{ContentRule, PathContext, ScopedRule};
use super::sought_name::{SoughtName, word_at};
use super::url_editor::UrlEditor;
use super::url_parts::{UrlParts, name_and_value, separator_of};
use super::value_shape::ValueShape;
use crate::kernel::{low_bits, masks_of, positions_by_mask};
use std::cmp::Ordering;
use std::ops::Range;
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
    name: SoughtName,
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

/// A parameter that remains of a query whose parameters are sorted.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryPart {
    at: u32,
    end: u32,
    /// The first bytes of the name, in an order that compares as they do.
    name: u64,
}

impl ParameterRule {
    /// Returns the value of `parameter`, which is at `at` in `text` and begins with `word`, if it has the name of the rule.
    #[inline(always)]
    fn value<'q>(&self, (text, at): (&[u8], usize), parameter: &'q [u8], word: u64) -> Option<&'q [u8]> {
        if !self.name.begins(text, at, word) {
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
                let (name, context) = (SoughtName::new(name), context.clone());
                self.parameters.push(ParameterRule { name, shape, context, number });
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

    /// Leaves out of a query what makes no difference. `path` is the plain path of the URL. Returns whether what remains has other
    /// parameters than before.
    #[inline(always)]
    pub(super) fn edit(
        &self,
        (query, path): (QueryText<'_>, &[u8]),
        parts: &mut Vec<QueryPart>,
        removed: &mut impl RemovalLog,
        editor: &mut UrlEditor<'_, '_>,
    ) -> bool {
        if let Some((_, number)) = self.queries.iter().find(|(context, _)| context.contains(path)) {
            removed.add(*number, || xxh3_64(query.query) | 1);
            editor.cut(query.at - 1..query.at + query.query.len());
            return false;
        }
        match self.parameter_order.number(path) {
            None => self.cut_parameters((query, path), removed, editor),
            Some(number) => self.sort_parameters((query, path, number), parts, removed, editor),
        }
    }

    /// Leaves out parameters of a query whose order makes a difference, each with the separator after it or before it. Returns what
    /// [`Self::edit`] does.
    #[inline(always)]
    fn cut_parameters(
        &self,
        (text, path): (QueryText<'_>, &[u8]),
        removed: &mut impl RemovalLog,
        editor: &mut UrlEditor<'_, '_>,
    ) -> bool {
        let QueryText { at: query_at, query, .. } = text;
        let (separator, mask) = text.separators();
        let mut separators = positions_by_mask(query, mask, move |byte| byte == separator);
        let (mut at, mut cut_at, mut kept_count, mut kept) = (0, None, 0, 0..0);
        loop {
            let separator_at = separators.next();
            let end = separator_at.unwrap_or(query.len());
            if let Some(number) = self.rule_of_parameter(text, at..end, path) {
                removed.add(number, || xxh3_64(&query[at..end]) | 1);
                cut_at = cut_at.or(Some(at));
            } else {
                if let Some(from) = cut_at.take() {
                    editor.cut(query_at + from..query_at + at);
                }
                (kept_count, kept) = (kept_count + 1, at..end);
            }
            if separator_at.is_none() {
                break;
            }
            at = end + 1;
        }
        if let Some(from) = cut_at {
            editor.cut(query_at + from - 1..query_at + query.len());
        }
        let is_one = kept_count == 1 && kept.len() < query.len();
        is_one && text.may_have_parameters_between_semicolons(separator, kept)
    }

    /// Leaves out parameters of a query, and sorts the others. Returns what [`Self::edit`] does.
    fn sort_parameters(
        &self,
        (text, path, number): (QueryText<'_>, &[u8], u16),
        parts: &mut Vec<QueryPart>,
        removed: &mut impl RemovalLog,
        editor: &mut UrlEditor<'_, '_>,
    ) -> bool {
        let QueryText { at: query_at, query, .. } = text;
        let (separator, mask) = text.separators();
        let (mut at, mut is_changed) = (0, false);
        parts.clear();
        for end in positions_by_mask(query, mask, move |byte| byte == separator).chain([query.len()]) {
            if let Some(number) = self.rule_of_parameter(text, at..end, path) {
                removed.add(number, || xxh3_64(&query[at..end]) | 1);
                is_changed = true;
            } else {
                let name = name_number(word_at(text.text, query_at + at), end - at);
                parts.push(QueryPart { at: at as u32, end: end as u32, name });
            }
            at = end + 1;
        }
        if parts.len() > 1 {
            removed.add(number, || {
                let hash = |order: u64, part: &QueryPart| {
                    xxh3_64(&[order, xxh3_64(part.of(query))].map(u64::to_le_bytes).concat())
                };
                parts.iter().fold(0, hash) | 1
            });
        }
        // Of several values of one name, many sites use the first or the last.
        if !parts.is_sorted_by(|a, b| a.compare_names(b, query).is_le()) {
            parts.sort_by(|a, b| a.compare_names(b, query));
            is_changed = true;
        }
        if !is_changed {
            return false;
        }
        editor.cut(query_at - 1..query_at + query.len());
        let mut before = b'?';
        for part in &*parts {
            editor.insert(&[std::mem::replace(&mut before, separator)]);
            editor.insert_part(query_at + part.at as usize..query_at + part.end as usize);
        }
        match parts[..] {
            [part] => text.may_have_parameters_between_semicolons(separator, part.at as usize..part.end as usize),
            _ => false,
        }
    }

    /// Returns the number of the rule by which a parameter of the query makes no difference.
    #[inline(always)]
    fn rule_of_parameter(&self, text: QueryText<'_>, place: Range<usize>, path: &[u8]) -> Option<u16> {
        let (parameter, at) = (&text.query[place.clone()], text.at + place.start);
        if parameter.is_empty() {
            return self.empty_parameters.number(path);
        }
        let word = word_at(text.text, at);
        // A loop is compiled for the caller's instruction set; `find` may become a call.
        for rule in &self.parameters {
            if let Some(value) = rule.value((text.text, at), parameter, word)
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

    /// Returns whether the only part that remains of the query has parameters that semicolons separate, to which no rule was applied.
    #[inline(always)]
    fn may_have_parameters_between_semicolons(&self, separator: u8, part: Range<usize>) -> bool {
        let may_have_semicolons = self.separators.is_none_or(|[_, semicolons]| semicolons != 0);
        may_have_semicolons && separator == b'&' && separator_of(&self.query[part]) == b';'
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
