//! Reference resolution: RFC 3986 section 5.2, which RFC 3987 section 6.5 adopts for IRIs.
//!
//! Characters stay as they are: nothing is encoded or decoded here, except the dots of dot segments (`%2e%2e`) by
//! [`Base::new`] and [`Base::resolve`]. Normalization would decode them later, when the dot segments next to them are
//! already removed: then `a/%2e%2e/../b` and `a/../../b` would have different targets.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bstr::BStr;
use memchr::memmem;

use super::check::{check_authority_lenient, check_len, check_path_noscheme};
use super::fault::{Component, Fault, FaultKind};
use super::parts::{Parts, find_scheme};
use super::percent;
use super::scheme::Scheme;
use crate::kernel::strip_prefix_ignoring_case;

/// Returns whether a `base` element of HTML can set `base`, which was resolved against the address of the document. If it
/// cannot, that address is the base (HTML Standard, section 4.2.3): the base is not valid, lacks the host that its scheme
/// requires, or has a scheme that is excluded. A base without a scheme, of a document without an address, can be set.
pub(crate) fn may_be_html_base(base: &[u8]) -> bool {
    let has_scheme = |scheme: &[u8]| strip_prefix_ignoring_case(base, scheme).is_some();
    let is_excluded = has_scheme(b"data:") || has_scheme(b"javascript:");
    !is_excluded && (find_scheme(base).is_none() || Base::new(base).is_ok_and(|base| !base.lacks_host()))
}

/// A base IRI for resolving references. Create it once and use it for many references.
///
/// ```
/// use irikey::iri::Base;
/// let base = Base::new(b"http://a/b/c/d;p?q").unwrap();
/// assert_eq!(base.resolve(b"../g").unwrap(), b"http://a/b/g");
/// assert_eq!(base.resolve(b"http:g").unwrap(), b"http:g");
/// assert_eq!(Base::new(b"http://a/../b#f").unwrap().to_string(), "http://a/b");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Base {
    text: Vec<u8>,
    parts: Parts,
    is_literal: bool,
}

/// The part of a base that precedes a relative reference in its target (RFC 3986 section 5.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BasePart {
    /// The scheme, for an authority.
    Scheme,
    /// Scheme and authority, for an absolute path.
    Authority,
    /// The path up to its last slash, for a relative path.
    Directory,
    /// The path, for a query.
    Path,
    /// The query, for a fragment.
    Query,
}

impl BasePart {
    /// The number of parts.
    pub(crate) const COUNT: usize = 5;
}

/// Writes the text; bytes that are not UTF-8 as U+FFFD.
impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(BStr::new(&self.text), f)
    }
}

impl Base {
    /// Creates a base. Its fragment is dropped (section 5.1), escaped dots of dot segments (`%2e`) are decoded, and dot segments
    /// of an absolute path are removed, as every browser does; [`Base::literal`] keeps them.
    ///
    /// # Errors
    /// [`FaultKind::Base`] if `text` has no scheme or an ambiguous authority; `at` is an offset into `text`.
    /// [`FaultKind::TooLong`] if `text` has 4 GiB or more.
    pub fn new(text: &[u8]) -> Result<Base, Fault> {
        let mut base = Base::literal(text)?;
        let (from, to) = (base.parts.path_at as usize, base.parts.path_end as usize);
        let path = &base.text[from..to];
        let may_have_dots = memmem::find(path, b"/.").is_some() || memmem::find(path, b"%2").is_some();
        if may_have_dots {
            let mut path = decode_dot_segments(path);
            if path[0] == b'/' {
                remove_dot_segments(&mut path);
            }
            let guard = path_guard(base.parts.authority.is_some(), &path);
            base.text.splice(from..to, guard.iter().chain(&path).copied());
            base.parts = Parts::split(&base.text);
        }
        base.is_literal = false;
        Ok(base)
    }

    /// Creates a base that is used exactly as section 5.2.2 specifies, without its fragment.
    ///
    /// # Errors
    /// As [`Base::new`].
    pub fn literal(text: &[u8]) -> Result<Base, Fault> {
        check_len(text)?;
        let parts = Parts::split(text);
        let invalid_base = |at: u32, component| Fault { kind: FaultKind::Base, component, at };
        if parts.scheme_len.is_none() {
            return Err(invalid_base(0, Component::Reference));
        }
        if let Some(authority) = parts.authority {
            check_authority_lenient(text, authority).map_err(|fault| invalid_base(fault.at, fault.component))?;
        }
        let text = text[..parts.query_end as usize].to_vec();
        Ok(Base { text, parts: Parts { fragment_at: None, ..parts }, is_literal: true })
    }

    /// Returns whether the base is an http or https reference with an authority, and [`Base::new`] removed the dot segments of its
    /// path, which it does unless the base is literal.
    pub(crate) fn is_normalized_http(&self) -> bool {
        let scheme = self.parts.scheme(&self.text).map(Scheme::from_name);
        !self.is_literal && self.parts.authority.is_some() && matches!(scheme, Some(Scheme::Http | Scheme::Https))
    }

    /// Returns whether the base has no host, although its scheme requires one (URL Standard, section 3.1).
    fn lacks_host(&self) -> bool {
        let scheme = self.parts.scheme(&self.text).map(Scheme::from_name);
        scheme.is_some_and(Scheme::is_network) && self.parts.host(&self.text).is_none_or(<[u8]>::is_empty)
    }

    /// Appends the base to `out`, from its start to the end of `part`. After [`BasePart::Authority`] and instead of an empty
    /// path of [`BasePart::Directory`], `/` is appended. The base must have an authority.
    pub(crate) fn write_part(&self, part: BasePart, out: &mut Vec<u8>) {
        let (path_at, path_end) = (self.parts.path_at as usize, self.parts.path_end as usize);
        let (end, rest) = match part {
            BasePart::Scheme => (self.parts.scheme_len.map_or(0, |len| len as usize + 1), &b""[..]),
            BasePart::Authority => (path_at, &b"/"[..]),
            BasePart::Directory => (path_at, self.merge_prefix()),
            BasePart::Path => (path_end, &b""[..]),
            BasePart::Query => (self.text.len(), &b""[..]),
        };
        out.extend_from_slice(&self.text[..end]);
        out.extend_from_slice(rest);
    }

    /// Returns the text of the base as it is used: without its fragment, and without dot segments unless it is literal.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Resolves `reference` (RFC 3986 section 5.2). Segments of escaped dots in it (`%2e%2e`) are dot segments, as for browsers,
    /// unless the base is literal.
    ///
    /// The algorithm removes dot segments also from a reference with a scheme, and from paths without a leading slash:
    /// `mailto:a/../b` becomes `mailto:/b`. Normalization keeps such dots, so [`crate::canon::Canonicalizer`] resolves only
    /// references without a scheme.
    ///
    /// ```
    /// let base = irikey::iri::Base::new(b"http://a/b/c").unwrap();
    /// assert_eq!(base.resolve(b"../d").unwrap(), b"http://a/d");
    /// assert_eq!(base.resolve(b"%2e%2e/d/%2e%2e/../e").unwrap(), b"http://a/e");
    /// ```
    ///
    /// # Errors
    /// [`FaultKind::Scheme`] if the first segment of a relative reference contains `:`.
    pub fn resolve(&self, reference: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut target = Vec::new();
        self.write_resolved(reference, &mut target)?;
        Ok(target)
    }

    /// Appends the result of [`Base::resolve`] to `out`.
    ///
    /// # Errors
    /// As [`Base::resolve`]; nothing is appended in that case.
    pub(crate) fn write_resolved(&self, reference: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        self.write(reference, !self.is_literal, out)
    }

    /// Resolves `reference` by the literal algorithm of RFC 3986 section 5.2.2; escaped dots are not dot segments. For conformance
    /// tests; canonicalization uses [`Base::resolve`].
    ///
    /// ```
    /// let base = irikey::iri::Base::new(b"http://a/b/c").unwrap();
    /// assert_eq!(base.resolve_rfc3986(b"%2e%2e/d/%2e%2e/../e").unwrap(), b"http://a/b/%2e%2e/d/e");
    /// ```
    ///
    /// # Errors
    /// As [`Base::resolve`].
    pub fn resolve_rfc3986(&self, reference: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut target = Vec::new();
        self.write(reference, false, &mut target)?;
        Ok(target)
    }

    /// Appends the target of `reference` to `out`. With `decodes_dots`, segments of escaped dots in it are dot segments.
    fn write(&self, reference: &[u8], decodes_dots: bool, out: &mut Vec<u8>) -> Result<(), Fault> {
        let r = Parts::split(reference);
        if r.scheme_len.is_none() {
            check_path_noscheme(reference)?;
        }
        let base = &self.text[..];
        let scheme = r.scheme(reference).or(self.parts.scheme(base)).unwrap_or_default();
        let has_own_authority = r.scheme_len.is_some() || r.authority.is_some();
        let authority = if has_own_authority { r.authority(reference) } else { self.parts.authority(base) };
        let mut path = Cow::Borrowed(r.path(reference));
        if decodes_dots && memmem::find(&path, b"%2").is_some() {
            path = Cow::Owned(decode_dot_segments(&path));
        }
        out.extend_from_slice(scheme);
        out.push(b':');
        if let Some(authority) = authority {
            out.extend_from_slice(b"//");
            out.extend_from_slice(authority);
        }
        let mut query = r.query(reference);
        if has_own_authority || path.starts_with(b"/") {
            push_path(out, &[&path], authority.is_some());
        } else if path.is_empty() {
            out.extend_from_slice(self.parts.path(base));
            query = query.or(self.parts.query(base));
        } else {
            push_path(out, &[self.merge_prefix(), &path], authority.is_some());
        }
        for (mark, part) in [(b'?', query), (b'#', r.fragment(reference))] {
            if let Some(part) = part {
                out.push(mark);
                out.extend_from_slice(part);
            }
        }
        Ok(())
    }

    /// The part of the base's path that a relative path is appended to (section 5.2.3, "merge").
    fn merge_prefix(&self) -> &[u8] {
        let path = self.parts.path(&self.text);
        if path.is_empty() && self.parts.authority.is_some() {
            return b"/";
        }
        &path[..memchr::memrchr(b'/', path).map_or(0, |at| at + 1)]
    }
}

/// Appends a path, removes its dot segments, and guards it against being read as an authority.
fn push_path(out: &mut Vec<u8>, pieces: &[&[u8]], has_authority: bool) {
    let path_at = out.len();
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    let len = move_kept_segments(&mut out[path_at..]);
    out.truncate(path_at + len);
    let guard = path_guard(has_authority, &out[path_at..]);
    out.splice(path_at..path_at, guard.iter().copied());
}

/// Decodes the dots of dot segments: `/%2e%2E/a%2eb` becomes `/../a%2eb`.
fn decode_dot_segments(path: &[u8]) -> Vec<u8> {
    let decoded = path.split(|&byte| byte == b'/').map(|segment| {
        let decoded = percent::decode_escapes(segment);
        if matches!(&*decoded, b"." | b"..") { decoded } else { segment.into() }
    });
    decoded.collect::<Vec<_>>().join(&b'/')
}

/// The prefix `/.` for a path that begins with `//` in a reference without an authority; without the prefix such a path
/// would be read as an authority. Otherwise an empty text.
pub(super) fn path_guard(has_authority: bool, path: &[u8]) -> &'static [u8] {
    if !has_authority && path.starts_with(b"//") { b"/." } else { b"" }
}

/// Removes the dot segments of `path` (RFC 3986 section 5.2.4).
///
/// The result equals that of the RFC's algorithm also for paths that do not begin with `/`.
///
/// ```
/// let mut path = b"/a/b/c/./../../g".to_vec();
/// irikey::iri::remove_dot_segments(&mut path);
/// assert_eq!(path, b"/a/g");
/// ```
pub fn remove_dot_segments(path: &mut Vec<u8>) {
    let len = move_kept_segments(path);
    path.truncate(len);
}

/// Moves what [`remove_dot_segments`] keeps of `path` to its start, and returns its length. The bytes after it are unspecified.
fn move_kept_segments(path: &mut [u8]) -> usize {
    let mut from = leading_dots_len(path);
    let mut to = 0;
    if path.get(from).is_some_and(|&byte| byte != b'/') {
        // Step E for a first segment without a slash before it.
        let end = segment_end(path, from);
        path.copy_within(from..end, 0);
        (to, from) = (end - from, end);
    }
    let gap = remove_between(path, to..from, path.len(), |_| false);
    path.copy_within(gap.end.., gap.start);
    path.len() - gap.len()
}

/// Does what [`remove_dot_segments`] does, for a path that begins with `/` and whose dot segments all overlap `dots`. A query or
/// a fragment may follow the path in `text`. Returns the range of `text` that remains to be removed.
pub(super) fn remove_dot_segments_within(text: &mut [u8], dots: Range<usize>) -> Range<usize> {
    let from = last_slash(&text[..dots.start]);
    remove_between(text, from..from, dots.end, |byte| matches!(byte, b'?' | b'#'))
}

/// Steps B, C and E for the segments that follow `gap`, the bytes that were removed before, and begin before byte `until`. The
/// path ends where the text ends, or with a byte for which `is_end` is true. Returns the range that remains to be removed.
fn remove_between(text: &mut [u8], gap: Range<usize>, until: usize, is_end: impl Fn(u8) -> bool) -> Range<usize> {
    let Range { start: mut to, end: mut from } = gap;
    while from < until.min(text.len()) {
        let rest = &text[from + 1..];
        let dot_count = match rest {
            [b'.', b'.', ..] => 2,
            [b'.', ..] => 1,
            _ => 0,
        };
        let is_last = rest.get(dot_count).is_none_or(|byte| is_end(*byte));
        if dot_count == 0 || !is_last && rest[dot_count] != b'/' {
            let end = segment_end(text, from + 1);
            if to < from {
                text.copy_within(from..end, to);
            }
            (to, from) = (to + end - from, end);
            continue;
        }
        if dot_count == 2 {
            to = last_slash(&text[..to]);
        }
        from += 1 + dot_count;
        if is_last {
            text[to] = b'/';
            to += 1;
        }
    }
    to..from
}

/// Position of the last slash; 0 if there is none. Segments are short, so that a call of `memrchr` would take longer.
fn last_slash(path: &[u8]) -> usize {
    path.iter().rposition(|&byte| byte == b'/').unwrap_or(0)
}

/// Steps A and D: length of the dot segments that are removed at the start of a path without a leading slash.
fn leading_dots_len(path: &[u8]) -> usize {
    let mut rest = path;
    while let Some(shorter) = rest.strip_prefix(b"../").or_else(|| rest.strip_prefix(b"./")) {
        rest = shorter;
    }
    if matches!(rest, b"." | b"..") { path.len() } else { path.len() - rest.len() }
}

fn segment_end(path: &[u8], from: usize) -> usize {
    memchr::memchr(b'/', &path[from..]).map_or(path.len(), |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::{Base, remove_dot_segments};

    #[test]
    fn dot_segments_are_removed_with_and_without_a_leading_slash() {
        let cases = "> />/ .> ..> ./> /.>/ /..>/ /a/..>/ a/../b>/b ../../a>a ./../a>a mid/content=5/../6>mid/6 \
                     /a//../b>/a/b /...>/... /a/.b>/a/.b /a/b/..>/a/ /../../..>/ /a/./>/a/ .//a>/a /a/..//b>//b a/..>/";
        for (path, expected) in cases.split_whitespace().filter_map(|case| case.split_once('>')) {
            let mut bytes = path.as_bytes().to_vec();
            remove_dot_segments(&mut bytes);
            assert_eq!(bytes, expected.as_bytes(), "{path}");
        }
    }

    #[test]
    fn the_text_of_a_base_has_no_fragment() {
        for (base, text) in [("http://h/a?b#c", "http://h/a?b"), ("http://h/a", "http://h/a"), ("urn:a:b#", "urn:a:b")]
        {
            assert_eq!(Base::new(base.as_bytes()).unwrap().text(), text.as_bytes());
        }
    }

    #[test]
    fn dot_segments_of_a_base_are_decoded_and_those_of_an_absolute_path_removed() {
        let cases = "http://h/a/../b>http://h/b http://h/a/%2e%2E/b>http://h/b http://h/%2f/%2e>http://h/%2f/ \
                     http://h/%2f?/../>http://h/%2f?/../ http://h?%2e%2e>http://h?%2e%2e x:/a/..//b>x:/.//b \
                     urn:a/../b>urn:a/../b urn:a/%2E%2e/b>urn:a/../b";
        for (base, text) in cases.split_whitespace().filter_map(|case| case.split_once('>')) {
            assert_eq!(Base::new(base.as_bytes()).unwrap().text(), text.as_bytes());
            assert_eq!(Base::literal(base.as_bytes()).unwrap().text(), base.as_bytes());
        }
    }
}
