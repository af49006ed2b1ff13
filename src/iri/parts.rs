//! A reference taken apart: components as offsets into the input, nothing copied, nothing refused (RFC 3986
//! section 3 and appendix B). What a component may hold is `check.rs`'s business.

use std::ops::Range;

use super::class::{ALPHA, SCHEME_TAIL};

/// Where the components of a reference stand. Offsets are bytes; `u32`, so that a reference is shorter than 4 GiB.
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
    /// Length of the scheme, if there is one; its `:` follows.
    pub scheme_len: Option<u32>,
    /// What the `//` introduces, if it is there.
    pub authority: Option<Authority>,
    /// Start of the path.
    pub path_at: u32,
    /// End of the path: offset of the `?` if `query_at` is some.
    pub path_end: u32,
    /// Start of the query, after its `?`.
    pub query_at: Option<u32>,
    /// End of the query.
    pub query_end: u32,
    /// Start of the fragment, after its `#`.
    pub fragment_at: Option<u32>,
}

/// `authority = [ userinfo "@" ] host [ ":" port ]`, RFC 3986 section 3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority {
    /// First byte after `//`.
    pub at: u32,
    /// Start of the host; the userinfo and its `@` stand before it if it is not `at`.
    pub host_at: u32,
    /// End of the host.
    pub host_end: u32,
    /// End of the authority; a `:` and the port stand before it if it is not `host_end`.
    pub end: u32,
}

/// Length of the scheme that `text` begins with, its `:` not counted; `None` if there is none.
pub fn find_scheme(text: &[u8]) -> Option<usize> {
    let first = text.first()?;
    let len = 1 + text[1..].iter().take_while(|&&byte| SCHEME_TAIL.contains(byte)).count();
    (ALPHA.contains(*first) && text.get(len) == Some(&b':')).then_some(len)
}

impl Parts {
    /// Takes `text` apart. Total: any bytes have parts. The userinfo ends at the first `@`; the port begins after the
    /// last `:` that is not inside brackets.
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

    /// Every component by its name, in the order in which they stand; none where it is not there.
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

    /// The host; brackets are part of it.
    pub fn host<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        self.authority.map(|it| &text[it.host_at as usize..it.host_end as usize])
    }

    /// The port, without its `:`.
    pub fn port<'a>(&self, text: &'a [u8]) -> Option<&'a [u8]> {
        let it = self.authority?;
        (it.end > it.host_end).then(|| &text[it.host_end as usize + 1..it.end as usize])
    }

    /// The path; every reference has one, if an empty one.
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
}

impl Authority {
    /// Takes the authority that stands at `range` of `text` apart.
    pub fn split(text: &[u8], range: Range<usize>) -> Authority {
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
    fn every_byte_belongs_to_one_part() {
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
}
