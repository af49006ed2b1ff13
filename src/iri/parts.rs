//! Splitting a reference into components (RFC 3986 section 3 and appendix B).
//!
//! [`Parts`] holds offsets into the input: nothing is copied and any bytes can be split. Whether a component contains only
//! allowed characters is checked elsewhere, by [`super::check_iri`] and its relatives.

use std::ops::Range;

use super::class::{ALPHA, SCHEME_TAIL};
use super::fault::Component;

/// Byte offsets of the components of a reference. Offsets are `u32`: a reference is shorter than 4 GiB.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

impl Parts {
    /// Splits `text`. The userinfo ends at the first `@`; the port begins after the last `:` outside brackets.
    pub fn split(text: &[u8]) -> Parts {
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

    /// The scheme, without its `:`.
    pub fn scheme<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.scheme_len.map(|len| &text[..len as usize])
    }

    /// The authority, without its `//`.
    pub fn authority<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.authority.map(|it| &text[it.at as usize..it.end as usize])
    }

    /// The userinfo, without its `@`.
    pub fn userinfo<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let it = self.authority?;
        (it.host_at > it.at).then(|| &text[it.at as usize..it.host_at as usize - 1])
    }

    /// The host, including the brackets of an IP literal.
    pub fn host<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.authority.map(|it| &text[it.host_at as usize..it.host_end as usize])
    }

    /// The port, without its `:`.
    pub fn port<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let it = self.authority?;
        (it.end > it.host_end).then(|| &text[it.host_end as usize + 1..it.end as usize])
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

    /// The component that contains byte `at`. The scheme and all delimiters before the query count as part of the path, or
    /// of the part of the authority that follows them.
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
    pub fn split(text: &[u8], range: Range<usize>) -> Authority {
        let host_at = memchr::memchr(b'@', &text[range.clone()]).map_or(range.start, |at| range.start + at + 1);
        let brackets_end = memchr::memrchr(b']', &text[host_at..range.end]).map_or(host_at, |at| host_at + at + 1);
        let host_end = memchr::memrchr(b':', &text[brackets_end..range.end]).map_or(range.end, |at| brackets_end + at);
        Authority { at: range.start as u32, host_at: host_at as u32, host_end: host_end as u32, end: range.end as u32 }
    }
}

/// A reference that was split by the algorithm of draft-weber-iri-guidelines-00 section 5, which never fails.
///
/// A missing component is `None`; an empty component is an empty string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeberParts<'a> {
    /// Section 5.1: the text before the first `:`, if it is a valid scheme.
    pub scheme: Option<&'a str>,
    /// Section 5.2.1: the text before the first `@` of the authority.
    pub userinfo: Option<&'a str>,
    /// Section 5.2.2: the text between userinfo and port.
    pub host: Option<&'a str>,
    /// Section 5.2.3: the text after the last `:` of the authority, if it consists of digits.
    pub port: Option<&'a str>,
    /// There was a port that does not consist of digits; it belongs to no component.
    pub is_port_invalid: bool,
    /// Section 5.3.
    pub path: &'a str,
    /// Section 5.4: the text between `?` and `#`.
    pub query: Option<&'a str>,
    /// Section 5.5: the text after `#`.
    pub fragment: Option<&'a str>,
}

/// Splits any text by draft-weber-iri-guidelines-00 section 5.
///
/// The result is that of RFC 3986 appendix B, with three choices for the authority that browsers made at the time: the
/// userinfo ends at the first `@` (today's URL Standard: at the last), the port begins after the last `:` outside brackets,
/// and only digits are a port.
///
/// ```
/// let parts = irikey::iri::weber_split("http://a@b@c:8x/é é#");
/// assert_eq!((parts.userinfo, parts.host, parts.port), (Some("a"), Some("b@c"), None));
/// assert!(parts.is_port_invalid);
/// assert_eq!((parts.path, parts.fragment), ("/é é", Some("")));
/// ```
pub fn weber_split(text: &str) -> WeberParts<'_> {
    let bytes = text.as_bytes();
    let parts = Parts::split(bytes);
    let port = parts.port(bytes);
    let is_port = port.is_some_and(|port| port.iter().all(u8::is_ascii_digit));
    // Components end at ASCII delimiters, so each of them is UTF-8.
    fn to_str(part: Option<&[u8]>) -> Option<&str> {
        part.and_then(|part| std::str::from_utf8(part).ok())
    }
    WeberParts {
        scheme: to_str(parts.scheme(bytes)),
        userinfo: to_str(parts.userinfo(bytes)),
        host: to_str(parts.host(bytes)),
        port: to_str(port.filter(|_| is_port)),
        is_port_invalid: port.is_some() && !is_port,
        path: to_str(Some(parts.path(bytes))).unwrap_or_default(),
        query: to_str(parts.query(bytes)),
        fragment: to_str(parts.fragment(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn joining_the_components_gives_the_reference() {
        let texts: [&[u8]; 12] = [
            b"",
            b":",
            b"a:",
            b"//",
            b"a://b",
            b"a://u@b:1",
            b"a:b?c#d",
            b"?#",
            b"#?",
            b"//@:",
            b"x://[::1]:2/",
            b"a:#",
        ];
        for text in texts {
            let parts = Parts::split(text);
            let mut joined = Vec::new();
            if let Some(scheme) = parts.scheme(text) {
                joined.extend_from_slice(&[scheme, b":"].concat());
            }
            if parts.authority.is_some() {
                joined.extend_from_slice(b"//");
                if let Some(userinfo) = parts.userinfo(text) {
                    joined.extend_from_slice(&[userinfo, b"@"].concat());
                }
                joined.extend_from_slice(parts.host(text).unwrap());
                if let Some(port) = parts.port(text) {
                    joined.extend_from_slice(&[b":", port].concat());
                }
            }
            joined.extend_from_slice(parts.path(text));
            if let Some(query) = parts.query(text) {
                joined.extend_from_slice(&[b"?", query].concat());
            }
            if let Some(fragment) = parts.fragment(text) {
                joined.extend_from_slice(&[b"#", fragment].concat());
            }
            assert_eq!(joined, text);
        }
    }

    #[test]
    fn invalid_schemes_are_not_split_off() {
        for text in ["no-colon/path", "1http://x/", "ht tp://x/", "a_b:c", "é:x", "/a:b", ":a", ""] {
            assert_eq!(weber_split(text).scheme, None, "{text}");
        }
        assert_eq!(weber_split("HT+t-p.1:x").scheme, Some("HT+t-p.1"));
    }

    #[test]
    fn authorities_are_split_at_the_first_at_and_the_last_colon() {
        let cases = [
            ("//a@b@c/", Some("a"), "b@c", None, false),
            ("//a:b:c/", None, "a:b", None, true),
            ("//[::1]:80", None, "[::1]", Some("80"), false),
            ("//[::1", None, "[:", Some("1"), false),
            ("//h:", None, "h", Some(""), false),
            ("//:@:", Some(":"), "", Some(""), false),
            ("//h:８", None, "h", None, true),
        ];
        for (text, userinfo, host, port, is_port_invalid) in cases {
            let found = weber_split(text);
            assert_eq!((found.userinfo, found.host), (userinfo, Some(host)), "{text}");
            assert_eq!((found.port, found.is_port_invalid), (port, is_port_invalid), "{text}");
        }
    }

    proptest! {
        #[test]
        fn weber_split_loses_no_text(text in "(http:)?(//)?[a:@\\[\\]0-9?#/é\\\\ ]{0,20}") {
            let found = weber_split(&text);
            let parts = [found.scheme, found.userinfo, found.host, found.port, Some(found.path), found.query, found.fragment];
            let kept: usize = parts.iter().flatten().map(|part| part.len()).sum();
            let delimiters = |part: Option<&str>, len: usize| part.map_or(0, |_| len);
            let marks = delimiters(found.scheme, 1) + delimiters(found.userinfo, 1) + delimiters(found.host, 2)
                + delimiters(found.port, 1) + delimiters(found.query, 1) + delimiters(found.fragment, 1);
            prop_assert!(found.is_port_invalid || kept + marks == text.len());
        }
    }
}
