//! Applies rules about content to queries: [`QueryRules`].

use super::path_rules::RulePlaces;
use super::removal::RemovalObserver;
use super::rule::{ContentRule, PathContext, ScopedRule};
use super::sought_name::{SoughtName, word_at};
use super::url_editor::UrlEditor;
use super::url_parts::{UrlParts, name_and_value, separator_of};
use super::value_shape::ValueShape;
use crate::kernel::{find_byte, low_bits, marks_of_byte, masks_of, positions_by_mask};
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
    text: &'a [u8],
    /// Where the query begins in the text.
    at: usize,
    query: &'a [u8],
    /// The plain path of the URL.
    path: &'a [u8],
    /// Masks of the ampersands and of the semicolons, if they are known.
    separators: Option<[u64; 2]>,
}

/// A parameter that remains of a query whose parameters are sorted.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryPart {
    at: u32,
    end: u32,
    name_end: u32,
    /// The first bytes of the name, in an order that compares as they do.
    name: u64,
}

impl QueryRules {
    /// Adds a rule, if it is about queries.
    pub(super) fn add(&mut self, ScopedRule { rule, context }: &ScopedRule, number: u16) {
        match rule.clone() {
            ContentRule::ParameterOrder => self.parameter_order.add(context, number),
            ContentRule::EmptyParameters => self.empty_parameters.add(context, number),
            ContentRule::Parameter(name, shape) => {
                let (name, context) = (SoughtName::new(name), context.clone());
                self.parameters.push(ParameterRule { name, shape, context, number });
            }
            ContentRule::Query => self.queries.push((context.clone(), number)),
            ContentRule::KeepParameter(name) => return self.kept.push(name),
            _ => return,
        }
        self.is_used = true;
    }

    /// Returns whether there are rules that change queries.
    #[inline(always)]
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Returns whether there are rules about the order of parameters.
    pub(super) fn sorts(&self) -> bool {
        self.parameter_order.is_used()
    }

    /// Returns whether a rule states that the parameter matters.
    pub(super) fn keeps(&self, name: &[u8]) -> bool {
        self.kept.iter().any(|kept| kept == name)
    }

    /// Removes the parameters of a query that make no difference. Returns whether the remaining query has other parameters than
    /// before.
    /// `may_sort` is true if there may be rules about the order of parameters.
    #[inline(always)]
    pub(super) fn edit(
        &self,
        query: QueryText<'_>,
        may_sort: bool,
        parts: &mut Vec<QueryPart>,
        removed: &mut impl RemovalObserver,
        editor: &mut UrlEditor<'_, '_>,
    ) -> bool {
        if let Some((_, number)) = self.queries.iter().find(|(context, _)| context.contains(query.path)) {
            removed.add(*number, || xxh3_64(query.query) | 1);
            editor.cut(query.at - 1..query.at + query.query.len());
            return false;
        }
        let order = if may_sort { self.parameter_order.number(query.path) } else { None };
        match query.short() {
            Some(short) if order.is_none() => self.cut_parameters(query, short, removed, editor),
            _ => self.rebuild(query, order, parts, removed, editor),
        }
    }

    /// Leaves out parameters of a short query, each with the separator after it, or before it if none follows. Returns what
    /// [`Self::edit`] does.
    #[inline(always)]
    fn cut_parameters(
        &self,
        query: QueryText<'_>,
        short: ShortQuery<'_>,
        removed: &mut impl RemovalObserver,
        editor: &mut UrlEditor<'_, '_>,
    ) -> bool {
        let (len, mut separators, mut at) = (query.query.len(), short.separators, 0);
        // Bit `i` belongs to the parameter that begins at byte `i`.
        let (mut left_out, mut kept) = (0_u64, 0_u64);
        loop {
            let end = len.min(separators.trailing_zeros() as usize);
            match self.rule_of_parameter(query, at..end, short.word_at(at)) {
                Some(number) => {
                    removed.add(number, || xxh3_64(&query.query[at..end]) | 1);
                    left_out |= 1 << at;
                }
                None => kept |= 1 << at,
            }
            if separators == 0 {
                break;
            }
            separators &= separators - 1;
            at = end + 1;
        }
        if left_out == 0 {
            return false;
        }
        while left_out != 0 {
            let from = left_out.trailing_zeros() as usize;
            let kept_after = kept & (!0 << from);
            if kept_after == 0 {
                editor.cut(query.at + from - 1..query.at + len);
                break;
            }
            let to = kept_after.trailing_zeros() as usize;
            editor.cut(query.at + from..query.at + to);
            left_out &= !0 << to;
        }
        kept.is_power_of_two()
            && query.has_parameters_between_semicolons(short.separator, kept.trailing_zeros() as usize)
    }

    /// Leaves out parameters of any query, and sorts the others if `order` is the number of a rule. Returns what [`Self::edit`]
    /// does.
    fn rebuild(
        &self,
        query: QueryText<'_>,
        order: Option<u16>,
        parts: &mut Vec<QueryPart>,
        removed: &mut impl RemovalObserver,
        editor: &mut UrlEditor<'_, '_>,
    ) -> bool {
        let (separator, mask) = query.separators();
        let mut separators = positions_by_mask(query.query, mask, move |byte| byte == separator);
        let (text, mut at, mut is_changed) = (query.query, 0, false);
        parts.clear();
        while at <= text.len() {
            let end = separators.next().unwrap_or(text.len());
            let word = word_at(query.text, query.at + at);
            if let Some(number) = self.rule_of_parameter(query, at..end, word) {
                removed.add(number, || xxh3_64(&text[at..end]) | 1);
                is_changed = true;
            } else {
                parts.push(QueryPart::new(text, at..end, word));
            }
            at = end + 1;
        }
        if let Some(number) = order.filter(|_| parts.len() > 1) {
            removed.add(number, || {
                let hash = |order: u64, part: &QueryPart| {
                    xxh3_64(&[order, xxh3_64(part.of(text))].map(u64::to_le_bytes).concat())
                };
                parts.iter().fold(0, hash) | 1
            });
            // Of several values of one name, many sites use the first or the last.
            if !parts.is_sorted_by(|a, b| a.compare_names(b, text).is_le()) {
                parts.sort_by(|a, b| a.compare_names(b, text));
                is_changed = true;
            }
        }
        if !is_changed {
            return false;
        }
        editor.cut(query.at - 1..query.at + text.len());
        let places = parts.iter().map(|part| query.at + part.at as usize..query.at + part.end as usize);
        editor.insert_parts(places, (b'?', separator), text.len() + 1);
        matches!(parts[..], [part] if query.has_parameters_between_semicolons(separator, part.at as usize))
    }

    /// Returns the number of the rule by which a parameter of the query, which begins with `word`, makes no difference.
    #[inline(always)]
    fn rule_of_parameter(&self, query: QueryText<'_>, parameter: Range<usize>, word: u64) -> Option<u16> {
        if parameter.is_empty() {
            return self.empty_parameters.number(query.path);
        }
        // A loop is compiled for the caller's instruction set; `find` may become a call.
        for rule in &self.parameters {
            if rule.name.may_begin(word) && self.applies(rule, &query.query[parameter.clone()], query.path) {
                return Some(rule.number);
            }
        }
        None
    }

    /// Returns whether a parameter makes no difference by `rule`.
    fn applies(&self, rule: &ParameterRule, parameter: &[u8], path: &[u8]) -> bool {
        let value = match parameter.strip_prefix(rule.name.text()) {
            Some([b'=', value @ ..]) => value,
            Some([]) => b"",
            _ => return false,
        };
        rule.shape.is_none_or(|shape| shape.is_of(value))
            && rule.context.contains(path)
            && (self.kept.is_empty() || !self.keeps(name_and_value(parameter).0))
    }
}

impl<'a> QueryText<'a> {
    /// Returns the query of a URL, whose plain path is `path`.
    #[inline(always)]
    pub(super) fn of(url: &UrlParts<'a>, path: &'a [u8]) -> Option<QueryText<'a>> {
        let (text, at) = (url.text.buffer(), url.path_end + 1);
        url.query().map(|query| QueryText { text, at, query, path, separators: url.separators })
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

    /// Returns the query in the form of short ones. It needs 72 bytes of the buffer.
    #[inline(always)]
    fn short(&self) -> Option<ShortQuery<'a>> {
        let block = self.text[self.at..].first_chunk().filter(|_| self.query.len() < 64)?;
        let (separator, separators) = self.separators();
        separators.map(|separators| ShortQuery { block, separator, separators })
    }

    /// Returns whether the parameter at `at`, which is all that remains of the query, consists of parameters that semicolons
    /// separate, to which no rule was applied.
    #[inline(always)]
    fn has_parameters_between_semicolons(&self, separator: u8, at: usize) -> bool {
        let may_have_semicolons = self.separators.is_none_or(|[_, semicolons]| semicolons != 0);
        may_have_semicolons && separator == b'&' && {
            let rest = &self.query[at..];
            separator_of(find_byte(rest, |byte| byte == b'&').map_or(rest, |end| &rest[..end])) == b';'
        }
    }
}

/// A query of less than 64 bytes.
#[derive(Clone, Copy)]
struct ShortQuery<'a> {
    /// The query, and what follows it.
    block: &'a [u8; 72],
    separator: u8,
    /// A mask of the separators.
    separators: u64,
}

impl ShortQuery<'_> {
    /// Returns the bytes from `at` on as a number, like [`word_at`].
    #[inline(always)]
    fn word_at(&self, at: usize) -> u64 {
        let at = at % 64;
        self.block[at..at + 8].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }
}

impl QueryPart {
    /// The parameter at `range` of a query, which begins with `word`.
    #[inline(always)]
    fn new(query: &[u8], range: Range<usize>, word: u64) -> QueryPart {
        let (at, end, name) = (range.start as u32, range.end as u32, name_number(word, range.len()));
        let is_short = name & 0xFF == 0;
        // The length of a short name is not needed.
        let name_end = if is_short { at } else { at + name_and_value(&query[range]).0.len() as u32 };
        QueryPart { at, end, name_end, name }
    }

    fn of(self, query: &[u8]) -> &[u8] {
        &query[self.at as usize..self.end as usize]
    }

    /// Compares the names of two parameters.
    #[inline(always)]
    fn compare_names(&self, other: &QueryPart, query: &[u8]) -> Ordering {
        // Of short names, which have zeros at the end of the number, both texts are empty.
        let name = |part: &QueryPart| &query[part.at as usize..part.name_end as usize];
        self.name.cmp(&other.name).then_with(|| name(self).cmp(name(other)))
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
    let len = (marks_of_byte(word, b'=').trailing_zeros() as usize / 8).min(len);
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
            let bytes = query.as_bytes();
            let text = |separators| QueryText { text: bytes, at: 0, query: bytes, path: b"/", separators };
            let (with, without) = (text(Some([mask(b'&'), mask(b';')])).separators(), text(None).separators());
            assert_eq!(with, (without.0, Some(mask(without.0))), "{query}");
        }
    }

    #[test]
    fn parameters_of_short_queries_are_cut_as_any_query_is_rebuilt() {
        let sets: [&[&str]; 6] = [
            &["ignore-parameter sid"],
            &["ignore-parameter sid=<hex>", "ignore-parameter x"],
            &["ignore-parameter a-long-name"],
            &["ignore-empty-parameters"],
            &["ignore-empty-parameters", "ignore-parameter x", "/b/: ignore-parameter sid"],
            &["ignore-parameter sid", "ignore-parameter x", "keep-parameter x"],
        ];
        let parameters =
            ["", "sid", "sid=0123456789abcdef", "x=1", "a-long-name", "a-long-name-too=1", "y;x=2", "y=1;z=2"];
        let (mut changed, mut kept, mut renewed) = (0, 0, 0);
        for texts in sets {
            let mut rules = QueryRules::default();
            for (number, text) in (0..).zip(texts) {
                rules.add(&ScopedRule::parse(text), number);
            }
            for (a, b, c) in parameters.iter().flat_map(|a| parameters.map(|b| parameters.map(|c| (a, b, c)))).flatten()
            {
                for (query, path) in [
                    (a.to_string(), "/"),
                    (format!("{a}&{b}"), "/b/c"),
                    (format!("{a}&{b}&{c}"), "/b"),
                    (format!("{a};{b}"), "/"),
                ] {
                    let text = format!("?{query}#{}", "&sid;x".repeat(20));
                    let masks = masks_of(query.as_bytes(), *b"&;").filter(|_| query.len() < 64);
                    let (text, query, path) = (text.as_bytes(), query.as_bytes(), path.as_bytes());
                    let query = QueryText { text, at: 1, query, path, separators: masks };
                    let edited = |is_short: bool| {
                        let (mut out, mut removed) = (Vec::new(), Vec::new());
                        let mut editor = UrlEditor::new(query.text, &mut out);
                        let is_renewed = match query.short().filter(|_| is_short) {
                            Some(short) => rules.cut_parameters(query, short, &mut removed, &mut editor),
                            None => rules.rebuild(query, None, &mut Vec::new(), &mut removed, &mut editor),
                        };
                        let is_changed = editor.is_changed();
                        editor.finish(1 + query.query.len());
                        (out, removed, is_renewed, is_changed)
                    };
                    let expected = edited(false);
                    assert_eq!(edited(true), expected, "{texts:?} {}", text.escape_ascii());
                    (changed, kept) = (changed + u32::from(expected.3), kept + u32::from(!expected.3));
                    renewed += u32::from(expected.2);
                }
            }
        }
        assert!(changed > 3_000 && kept > 1_000 && renewed > 20, "{changed} {kept} {renewed}");
    }

    #[test]
    fn names_compare_as_texts() {
        let texts =
            ["", "=1", "a", "a=1", "ab=", "ab", "abcdefg=1", "abcdefgh", "abcdefgh=1", "abcdefghi=2", "abcdefghj", "b"];
        for a in texts {
            for b in texts {
                let query = format!("{a}&{b}").into_bytes();
                let part = |range: Range<usize>| QueryPart::new(&query, range.clone(), word_at(&query[range], 0));
                let found = part(0..a.len()).compare_names(&part(a.len() + 1..query.len()), &query);
                assert_eq!(found, name_and_value(a.as_bytes()).0.cmp(name_and_value(b.as_bytes()).0), "{a} {b}");
            }
        }
    }
}
