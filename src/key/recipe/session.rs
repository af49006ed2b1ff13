//! Session identifiers in paths and queries, as webarchive-commons, Python surt and Heritrix find them.
//!
//! The programs search with regular expressions whose first part is greedy, so the last match is removed. Letters match
//! in either case.

use std::ops::Range;

use crate::kernel::strip_prefix_ignoring_case;

/// A session parameter: `name=` followed by a value of a fixed length, then `&` or the end.
pub(super) struct SessionParameter {
    name: &'static [u8],
    /// Number of letters between the name and `=`.
    suffix_len: usize,
    value_len: usize,
    has_digits: bool,
}

pub(super) const JAVA: SessionParameter =
    SessionParameter { name: b"jsessionid", suffix_len: 0, value_len: 32, has_digits: true };
pub(super) const PHP: SessionParameter =
    SessionParameter { name: b"phpsessid", suffix_len: 0, value_len: 32, has_digits: true };
pub(super) const SID: SessionParameter =
    SessionParameter { name: b"sid", suffix_len: 0, value_len: 32, has_digits: true };
pub(super) const ASP: SessionParameter =
    SessionParameter { name: b"aspsessionid", suffix_len: 8, value_len: 24, has_digits: false };

/// Length of the shortest query that contains a session parameter, unless the query has several fields.
pub(super) const MIN_LEN: usize = SID.len();

/// Removes the last session parameter of each kind from a query, and returns whether there was one. The `&` before a
/// removed parameter stays.
pub(super) fn strip_query(query: &mut Vec<u8>) -> bool {
    if !may_have_session(query) {
        return false;
    }
    let before = query.len();
    for parameter in [JAVA, PHP, SID, ASP] {
        remove_field(query, parameter.find_last(query));
    }
    remove_field(query, find_cold_fusion(query));
    query.len() != before
}

/// Returns whether a field ends 32 or 24 bytes after an `=`, or begins like the second half of a session of ColdFusion.
/// Most queries have no such field.
fn may_have_session(query: &[u8]) -> bool {
    let ends_field = |at: usize| at == query.len() || query.get(at) == Some(&b'&');
    let begins_token = |at: usize| strip_prefix_ignoring_case(&query[at..], TOKEN).is_some();
    memchr::memchr_iter(b'=', query).any(|at| ends_field(at + 33) || ends_field(at + 25))
        || memchr::memchr_iter(b'&', query).any(begins_token)
}

/// Removes a range, if there is one, and the `&` after it.
pub(super) fn remove_field(text: &mut Vec<u8>, range: Option<Range<usize>>) {
    if let Some(range) = range {
        let end = range.end + usize::from(text.get(range.end) == Some(&b'&'));
        text.drain(range.start..end);
    }
}

impl SessionParameter {
    /// Returns the range of the last occurrence in `text`.
    pub(super) fn find_last(&self, text: &[u8]) -> Option<Range<usize>> {
        // Most texts are shorter than a parameter.
        if text.len() < self.len() {
            return None;
        }
        memchr::memrchr_iter(b'=', text).find_map(|equals| self.range_around(equals, text))
    }

    /// Returns the range of the parameter whose `=` is at `equals`, if there is one.
    fn range_around(&self, equals: usize, text: &[u8]) -> Option<Range<usize>> {
        let start = equals.checked_sub(self.name.len() + self.suffix_len)?;
        let end = equals + 1 + self.value_len;
        let value = text.get(equals + 1..end)?;
        let (name, suffix) = text[start..equals].split_at(self.name.len());
        let is_value = |byte: &u8| byte.is_ascii_alphabetic() || (self.has_digits && byte.is_ascii_digit());
        let is_match = name.eq_ignore_ascii_case(self.name)
            && suffix.iter().all(u8::is_ascii_alphabetic)
            && value.iter().all(is_value)
            && matches!(text.get(end), None | Some(b'&'));
        is_match.then_some(start..end)
    }

    const fn len(&self) -> usize {
        self.name.len() + self.suffix_len + 1 + self.value_len
    }
}

/// What begins the second half of a session of ColdFusion.
const TOKEN: &[u8] = b"&cftoken=";

/// Returns the range of the last `cfid=[^&]+&cftoken=[^&]+`.
pub(super) fn find_cold_fusion(text: &[u8]) -> Option<Range<usize>> {
    const ID: &[u8] = b"cfid=";
    let mut fields_end = text.len();
    // From the last field to the first: the token follows a field that contains `cfid=`.
    while let Some(id_end) = memchr::memrchr(b'&', &text[..fields_end]) {
        let token_at = id_end + TOKEN.len();
        let has_token = strip_prefix_ignoring_case(&text[id_end..], TOKEN).is_some();
        if has_token && fields_end > token_at {
            let field_at = memchr::memrchr(b'&', &text[..id_end]).map_or(0, |at| at + 1);
            let field = &text[field_at..id_end];
            // The value of the identifier has at least one byte.
            let id =
                field[..field.len().saturating_sub(1)].windows(ID.len()).rposition(|id| id.eq_ignore_ascii_case(ID));
            if let Some(at) = id {
                return Some(field_at + at..fields_end);
            }
        }
        fields_end = id_end;
    }
    None
}

/// Removes a session segment of ASP.NET from a path, `/(x(24 characters)...)/` or `/(24 characters)/` before a name with
/// `.aspx`, and returns whether there was one.
pub(super) fn strip_path(path: &mut Vec<u8>) -> bool {
    let before = path.len();
    if memchr::memchr(b'(', path).is_none() {
        return false;
    }
    for segment_len in [tagged_len as fn(&[u8]) -> Option<usize>, untagged_len] {
        if let Some(range) = find_segment(path, segment_len) {
            path.drain(range);
        }
    }
    path.len() != before
}

/// Returns the range of the last matching segment with its final `/`.
fn find_segment(path: &[u8], len: impl Fn(&[u8]) -> Option<usize>) -> Option<Range<usize>> {
    let slashes = memchr::memrchr_iter(b'/', path);
    // No page name ends after this position, or it has a `?` before it.
    let mut searched_end = path.len();
    slashes.map(|slash| slash + 1).find_map(|at| {
        let end = at + len(&path[at..])?;
        if is_page(&path[end..searched_end]) {
            return Some(at..end);
        }
        searched_end = path.len().min(end + b".aspx".len());
        None
    })
}

/// `[^?]+\.aspx.*`
fn is_page(text: &[u8]) -> bool {
    let name = &text[..memchr::memchr(b'?', text).unwrap_or(text.len())];
    name.windows(5).skip(1).any(|window| window.eq_ignore_ascii_case(b".aspx"))
}

/// `\((?:[a-z]\([0-9a-z]{24}\))+\)/`
pub(super) fn tagged_len(text: &[u8]) -> Option<usize> {
    const GROUP_LEN: usize = 27;
    let mut rest = text.strip_prefix(b"(")?;
    let mut len = 1;
    while let Some((group, tail)) = rest.split_at_checked(GROUP_LEN) {
        if !group[0].is_ascii_alphabetic() || !is_session(&group[1..]) {
            break;
        }
        rest = tail;
        len += GROUP_LEN;
    }
    (len > 1 && rest.starts_with(b")/")).then_some(len + 2)
}

/// `\([0-9a-z]{24}\)/`
pub(super) fn untagged_len(text: &[u8]) -> Option<usize> {
    let (session, rest) = text.split_at_checked(26)?;
    (is_session(session) && rest.starts_with(b"/")).then_some(27)
}

/// `\([0-9a-z]{24}\)`
fn is_session(text: &[u8]) -> bool {
    let inner = text.strip_prefix(b"(").and_then(|text| text.strip_suffix(b")"));
    inner.is_some_and(|inner| inner.len() == 24 && inner.iter().all(u8::is_ascii_alphanumeric))
}
