//! Splitting a reference into components (RFC 3986 section 3 and appendix B).
//!
//! [`Parts`] holds offsets into the input: nothing is copied and any bytes can be split. Whether a component contains
//! only allowed characters is checked elsewhere, for example by [`super::check_iri`].

use std::ops::Range;

use super::class::{ALPHA, SCHEME_TAIL};
use super::fault::Component;

/// Byte offsets of the components of a reference of less than 4 GiB.
///
/// ```
/// use irikey::iri::Parts;
/// let text = b"http://u@h:80/p?q#f";
/// let parts = Parts::split(text);
/// assert_eq!(parts.scheme(text), Some(&b"http"[..]));
/// assert_eq!(parts.host(text), Some(&b"h"[..]));
/// assert_eq!(parts.port(text), Some(&b"80"[..]));
/// assert_eq!(parts.path(text), b"/p");
/// assert_eq!(parts.fragment(text), Some(&b"f"[..]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Parts {
    /// Length of the scheme, without its `:`; `None` for a relative reference.
    pub scheme_len: Option<u32>,
    /// The authority, if the reference has a `//` before the path.
    pub authority: Option<Authority>,
    /// Start of the path.
    pub path_at: u32,
    /// End of the path: the offset of the `?` if there is a query.
    pub path_end: u32,
    /// Start of the query, after its `?`.
    pub query_at: Option<u32>,
    /// End of the query.
    pub query_end: u32,
    /// Start of the fragment, after its `#`.
    pub fragment_at: Option<u32>,
}

/// Byte offsets in `authority = [ userinfo "@" ] host [ ":" port ]`, RFC 3986 section 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Authority {
    /// First byte after `//`.
    pub at: u32,
    /// Start of the host. If it is not `at`, the userinfo and its `@` are before the host.
    pub host_at: u32,
    /// End of the host.
    pub host_end: u32,
    /// End of the authority. If it is not `host_end`, a `:` and the port are after the host.
    pub end: u32,
}

/// Length of the scheme at the start of `text`, without its `:`; `None` if there is no scheme.
pub fn find_scheme(text: &[u8]) -> Option<usize> {
    let first = text.first()?;
    let len = 1 + text[1..].iter().take_while(|&&byte| SCHEME_TAIL.contains(byte)).count();
    (ALPHA.contains(*first) && text.get(len) == Some(&b':')).then_some(len)
}

/// Returns whether `text` is a scheme (RFC 3986 section 3.1).
pub(crate) fn is_scheme(text: &[u8]) -> bool {
    text.first().is_some_and(|first| ALPHA.contains(*first)) && text.iter().all(|byte| SCHEME_TAIL.contains(*byte))
}

impl Parts {
    /// Splits `text`. Any text can be split. The userinfo ends at the first `@`; the port begins after the last `:`
    /// outside brackets.
    ///
    /// These are also the components of draft-weber-iri-guidelines-00 section 5, except that a port there has digits
    /// only. Today's URL Standard ends the userinfo at the last `@`.
    ///
    /// # Panics
    /// If `text` has 4 GiB or more: offsets are `u32`.
    pub fn split(text: &[u8]) -> Parts {
        assert!(text.len() <= u32::MAX as usize, "a reference has less than 4 GiB");
        let scheme_len = find_scheme(text);
        let after_scheme = scheme_len.map_or(0, |len| len + 1);
        let fragment_at = memchr::memchr(b'#', &text[after_scheme..]).map(|at| after_scheme + at + 1);
        let query_end = fragment_at.map_or(text.len(), |at| at - 1);
        let query_at = memchr::memchr(b'?', &text[after_scheme..query_end]).map(|at| after_scheme + at + 1);
        let path_end = query_at.map_or(query_end, |at| at - 1);
        let hier_part = &text[after_scheme..path_end];
        let authority = hier_part.strip_prefix(b"//").map(|rest| {
            let at = after_scheme + 2;
            Authority::split(text, at..at + memchr::memchr(b'/', rest).unwrap_or(rest.len()))
        });
        Parts {
            scheme_len: scheme_len.map(|len| len as u32),
            authority,
            path_at: authority.map_or(after_scheme as u32, |authority| authority.end),
            path_end: path_end as u32,
            query_at: query_at.map(|at| at as u32),
            query_end: query_end as u32,
            fragment_at: fragment_at.map(|at| at as u32),
        }
    }

    /// Every component with its name, in order of appearance; `None` for a component that is missing.
    pub fn components<'a>(&self, text: &'a [u8]) -> [(&'static str, Option<&'a [u8]>); 7] {
        [
            ("scheme", self.scheme(text)),
            ("userinfo", self.userinfo(text)),
            ("host", self.host(text)),
            ("port", self.port(text)),
            ("path", Some(self.path(text))),
            ("query", self.query(text)),
            ("fragment", self.fragment(text)),
        ]
    }

    /// The components that may contain escapes and non-ASCII characters.
    pub(super) fn encoded_components<'a>(&self, text: &'a [u8]) -> impl Iterator<Item = (Component, &'a [u8])> {
        let components = [
            (Component::Userinfo, self.userinfo(text)),
            (Component::Host, self.host(text)),
            (Component::Path, Some(self.path(text))),
            (Component::Query, self.query(text)),
            (Component::Fragment, self.fragment(text)),
        ];
        components.into_iter().filter_map(|(component, part)| Some((component, part?)))
    }

    /// The scheme, without its `:`.
    pub fn scheme<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.scheme_len.map(|len| &text[..len as usize])
    }

    /// The authority, without its `//`.
    pub fn authority<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.authority.map(|authority| &text[authority.at as usize..authority.end as usize])
    }

    /// The userinfo, without its `@`.
    pub fn userinfo<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let authority = self.authority?;
        (authority.host_at > authority.at).then(|| &text[authority.at as usize..authority.host_at as usize - 1])
    }

    /// The host, including the brackets of an IP literal.
    pub fn host<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.authority.map(|authority| &text[authority.host_at as usize..authority.host_end as usize])
    }

    /// The port, without its `:`.
    pub fn port<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let authority = self.authority?;
        (authority.end > authority.host_end).then(|| &text[authority.host_end as usize + 1..authority.end as usize])
    }

    /// The path. Every reference has one; it may be empty.
    pub fn path<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        &text[self.path_at as usize..self.path_end as usize]
    }

    /// The query, without its `?`.
    pub fn query<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.query_at.map(|at| &text[at as usize..self.query_end as usize])
    }

    /// The fragment, without its `#`.
    pub fn fragment<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.fragment_at.map(|at| &text[at as usize..])
    }

    /// The component that contains byte `at`. Before an authority, the scheme and `//` count as userinfo; otherwise the scheme
    /// counts as path. `@` counts as userinfo, the `:` of a port as port, and `?` and `#` as the component before them.
    pub(super) fn component_at(&self, at: usize) -> Component {
        let at = at as u32;
        if self.fragment_at.is_some_and(|start| at >= start) {
            return Component::Fragment;
        }
        if self.query_at.is_some_and(|start| at >= start) {
            return Component::Query;
        }
        match self.authority {
            Some(authority) if at < authority.host_at => Component::Userinfo,
            Some(authority) if at < authority.host_end => Component::Host,
            Some(authority) if at < authority.end => Component::Port,
            _ => Component::Path,
        }
    }
}

impl Authority {
    /// Splits the authority in `text[range]`.
    pub(crate) fn split(text: &[u8], range: Range<usize>) -> Authority {
        let host_at = memchr::memchr(b'@', &text[range.clone()]).map_or(range.start, |at| range.start + at + 1);
        let brackets_end = memchr::memrchr(b']', &text[host_at..range.end]).map_or(host_at, |at| host_at + at + 1);
        let host_end = memchr::memrchr(b':', &text[brackets_end..range.end]).map_or(range.end, |at| brackets_end + at);
        Authority { at: range.start as u32, host_at: host_at as u32, host_end: host_end as u32, end: range.end as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_schemes_are_not_split_off() {
        for text in ["no-colon/path", "1http://x/", "ht tp://x/", "a_b:c", "é:x", "/a:b", ":a", ""] {
            assert_eq!(Parts::split(text.as_bytes()).scheme_len, None, "{text}");
        }
        assert_eq!(Parts::split(b"HT+t-p.1:x").scheme_len, Some(8));
    }

    #[test]
    fn authorities_are_split_at_the_first_at_and_the_last_colon() {
        let cases = [
            ("//a@b@c/", Some("a"), "b@c", None),
            ("//a:b:c/", None, "a:b", Some("c")),
            ("//[::1]:80", None, "[::1]", Some("80")),
            ("//[::1", None, "[:", Some("1")),
            ("//h:", None, "h", Some("")),
            ("//:@:", Some(":"), "", Some("")),
            ("//h:８", None, "h", Some("８")),
        ];
        for (text, userinfo, host, port) in cases {
            let (parts, text) = (Parts::split(text.as_bytes()), text.as_bytes());
            let found = (parts.userinfo(text), parts.host(text), parts.port(text));
            assert_eq!(found, (userinfo.map(str::as_bytes), Some(host.as_bytes()), port.map(str::as_bytes)));
        }
    }
}
