//! The query of a common URL, for the shortcut of the SURT recipes.

use std::cmp::Ordering;
use std::ops::Range;

use super::draft::Draft;
use super::escapes::write_reduced;
use super::host::lower;
use super::rule_set::RuleSet;
use super::surt_parts::MaskedUrl;
use super::{path, session};
use crate::kernel::{Appender, append, low_bits, marks_of_byte};

const QUERY_ESCAPES: RuleSet = RuleSet::of_rule("query-escapes");
const QUERY_SESSION: RuleSet = RuleSet::of_rule("query-session");
const QUERY_CASE: RuleSet = RuleSet::of_rule("query-case");
const QUERY_SORT: RuleSet = RuleSet::of_rule("query-sort");
const QUERY_EMPTY: RuleSet = RuleSet::of_rule("query-empty");

/// Appends `?` and the query of `url`, which has no escapes. Returns the rules that changed it.
#[inline(always)]
pub(super) fn write_common_query(
    url: &MaskedUrl<'_>,
    query: Range<usize>,
    mut appender: Appender<'_>,
    draft: &mut Draft,
) -> RuleSet {
    if query.is_empty() {
        appender.finish();
        return QUERY_EMPTY;
    }
    let ampersands = ampersands(url, &query);
    let upper = QUERY_CASE.filter(url.has_upper(&query));
    if ampersands == 0 && query.len() < session::MIN_LEN {
        appender.push(b'?');
        appender.append_in_lower_case::<128>(url.buffer, query);
        appender.finish();
        return upper;
    }
    let may_have_session = query.len() >= session::MIN_LEN && has_session_value(url, &query, ampersands);
    let fields = if may_have_session { None } else { Fields::read(url.buffer, &query, ampersands) };
    let Some(mut fields) = fields else {
        draft.query.set(Some(&url.text[query]));
        return write_query(draft, appender.finish());
    };
    let is_sorted = fields.sort(url.text);
    for (i, field) in fields.items[..fields.count].iter().enumerate() {
        appender.push(if i == 0 { b'?' } else { b'&' });
        appender.append_in_lower_case::<32>(url.buffer, field.range());
    }
    appender.finish();
    upper.or(QUERY_SORT.filter(!is_sorted))
}

/// Appends `?` and the query of `url`, which may have escapes. Returns the rules that changed it, or `None` if others might.
pub(super) fn write_escaped_query(
    url: &MaskedUrl<'_>,
    query: Range<usize>,
    mut appender: Appender<'_>,
    draft: &mut Draft,
) -> Option<RuleSet> {
    if query.is_empty() {
        appender.finish();
        return Some(QUERY_EMPTY);
    }
    if ampersands(url, &query) != 0 || query.len() >= session::MIN_LEN {
        let start = appender.start();
        let out = appender.finish();
        let applied = write_reduced_query(&url.text[query], draft, out);
        if applied.is_none() {
            out.truncate(start);
        }
        return applied;
    }
    appender.push(b'?');
    // An `&` would begin another field.
    let reduced = url.write_reduced(query, b"&", &mut appender)?;
    appender.finish();
    Some(QUERY_ESCAPES.filter(reduced.is_changed).or(QUERY_CASE.filter(reduced.has_upper)))
}

/// Returns the positions of `&` in `query`.
#[inline(always)]
fn ampersands(url: &MaskedUrl<'_>, query: &Range<usize>) -> u128 {
    url.masks.all(|class| class.ampersands) & low_bits(query.end) & !low_bits(query.start)
}

/// Returns whether a field ends 32 or 24 bytes after an `=`, as in the session parameters of a fixed length.
fn has_session_value(url: &MaskedUrl<'_>, query: &Range<usize>, ampersands: u128) -> bool {
    let equals = url.masks.all(|class| class.equals) & !low_bits(query.start);
    [33, 25].iter().any(|&len| {
        let last = query.end.checked_sub(len).map_or(0, |at| 1 << at);
        equals & (ampersands >> len | last) != 0
    })
}

/// Maximum number of fields that are sorted here.
const MAX_FIELDS: usize = 8;

/// The fields of a short query.
struct Fields {
    items: [Field; MAX_FIELDS],
    count: usize,
}

/// A field of a query.
#[derive(Clone, Copy, Default)]
struct Field {
    /// Its first eight bytes in lower case, zeros after its end and instead of the first `=`, as a big-endian number.
    /// If two fields differ in it, it orders them.
    prefix: u64,
    at: u8,
    end: u8,
}

impl Fields {
    /// Splits `text[query]`. Returns `None` if there are too many fields, or a field may be the second half of a session
    /// of ColdFusion.
    #[inline(always)]
    fn read(text: &[u8], query: &Range<usize>, ampersands: u128) -> Option<Fields> {
        let mut fields = Fields { items: [Field::default(); MAX_FIELDS], count: 0 };
        let (mut at, mut rest) = (query.start, ampersands);
        loop {
            let end = (rest.trailing_zeros() as usize).min(query.end);
            *fields.items.get_mut(fields.count)? = Field::read(text, at..end)?;
            fields.count += 1;
            if rest == 0 {
                return Some(fields);
            }
            rest &= rest - 1;
            at = end + 1;
        }
    }

    /// Sorts the fields and returns whether they were sorted.
    #[inline(always)]
    fn sort(&mut self, text: &[u8]) -> bool {
        let fields = &mut self.items[..self.count];
        let mut was_sorted = true;
        for from in 1..fields.len() {
            let mut at = from;
            while at > 0 && fields[at].order(&fields[at - 1], text) == Ordering::Less {
                fields.swap(at, at - 1);
                was_sorted = false;
                at -= 1;
            }
        }
        was_sorted
    }
}

impl Field {
    /// Returns `None` if the field begins with `cftoken=`.
    #[inline(always)]
    fn read(text: &[u8], range: Range<usize>) -> Option<Field> {
        let mut near = [0; 8];
        match text.get(range.start..).and_then(<[u8]>::first_chunk::<8>) {
            Some(bytes) => near = *bytes,
            None => near[..range.len()].copy_from_slice(&text[range.clone()]),
        }
        let missing = 8 - range.len().min(8);
        let word = u64::from_le_bytes(near.map(|byte| byte.to_ascii_lowercase()));
        let word = word & (!0_u64).checked_shr(8 * missing as u32).unwrap_or(0);
        let equals = marks_of_byte(word, b'=');
        let first = equals & equals.wrapping_neg();
        let prefix = (word & !((first >> 7) * 0xFF)).swap_bytes();
        let is_token = word == u64::from_le_bytes(*b"cftoken=");
        (!is_token).then_some(Field { prefix, at: range.start as u8, end: range.end as u8 })
    }

    fn range(&self) -> Range<usize> {
        usize::from(self.at)..usize::from(self.end)
    }

    /// Compares by name, then by value, like [`path::sort_query`], in lower case.
    #[inline(always)]
    fn order(&self, other: &Field, text: &[u8]) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| order(&text[self.range()], &text[other.range()]))
    }
}

/// The order of fields in lower case.
#[cold]
fn order(one: &[u8], other: &[u8]) -> Ordering {
    let name_len = |field: &[u8]| memchr::memchr(b'=', field).unwrap_or(field.len());
    let ((name, value), (other_name, other_value)) = (one.split_at(name_len(one)), other.split_at(name_len(other)));
    let compare =
        |one: &[u8], other: &[u8]| one.iter().map(u8::to_ascii_lowercase).cmp(other.iter().map(u8::to_ascii_lowercase));
    // A value includes its `=`, so that a field without one comes first.
    compare(name, other_name).then_with(|| compare(value, other_value))
}

/// Appends `?` and `query`, whose escapes are reduced and which is then changed by the other rules. Returns `None`, after a
/// part was appended, if other rules might change it.
pub(super) fn write_reduced_query(query: &[u8], draft: &mut Draft, out: &mut Vec<u8>) -> Option<RuleSet> {
    draft.query.set(Some(b""));
    let is_changed = write_reduced(query, draft.query.get_mut()?)?;
    Some(QUERY_ESCAPES.filter(is_changed).or(write_query(draft, out)))
}

/// Appends `?` and the query of `draft` as the rules about sessions, case and order change it, unless it is empty then.
/// Returns the rules that changed it.
fn write_query(draft: &mut Draft, out: &mut Vec<u8>) -> RuleSet {
    let applied = QUERY_SESSION
        .filter(draft.query.get_mut().is_some_and(session::strip_query))
        .or(QUERY_CASE.filter(draft.query.get_mut().is_some_and(|query| lower(query))))
        .or(QUERY_SORT.filter(path::sort_query(draft)));
    match draft.query.get() {
        Some(query) if !query.is_empty() => {
            out.push(b'?');
            append(out, query);
            applied
        }
        _ => applied.or(QUERY_EMPTY),
    }
}
