//! The parsing algorithm of draft-weber-iri-guidelines-00 section 5: any text in, components out. Total: it refuses
//! nothing, and says of a port only that it is none.
//!
//! It is the split of RFC 3986 appendix B, with the three choices that a browser of its time made in an authority: the
//! userinfo ends at the first `@` (WHATWG: the last), the port begins after the last `:` outside brackets, and what
//! stands there is a port only if it is digits.

use super::parts::Parts;

/// A reference taken apart; what is absent is `None`, what is empty is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split<'a> {
    /// Section 5.1: before the first `:`, if that is a scheme's text.
    pub scheme: Option<&'a str>,
    /// Section 5.2.1: before the first `@` of the authority.
    pub userinfo: Option<&'a str>,
    /// Section 5.2.2: between userinfo and port.
    pub host: Option<&'a str>,
    /// Section 5.2.3: after the last `:` of the authority, if it is digits.
    pub port: Option<&'a str>,
    /// There was a port, and it was none; it belongs to no component.
    pub is_port_invalid: bool,
    /// Section 5.3.
    pub path: &'a str,
    /// Section 5.4: between `?` and `#`.
    pub query: Option<&'a str>,
    /// Section 5.5: after `#`.
    pub fragment: Option<&'a str>,
}

/// Takes `text` apart.
///
/// ```
/// let split = irikey::iri::weber_split("http://a@b@c:8x/é é#");
/// assert_eq!((split.userinfo, split.host, split.port), (Some("a"), Some("b@c"), None));
/// assert!(split.is_port_invalid);
/// assert_eq!((split.path, split.fragment), ("/é é", Some("")));
/// ```
pub fn split(text: &str) -> Split<'_> {
    let bytes = text.as_bytes();
    let parts = Parts::split(bytes);
    let port = parts.port(bytes);
    let is_port = port.is_some_and(|port| port.iter().all(u8::is_ascii_digit));
    Split {
        scheme: shown(parts.scheme(bytes)),
        userinfo: shown(parts.userinfo(bytes)),
        host: shown(parts.host(bytes)),
        port: shown(port.filter(|_| is_port)),
        is_port_invalid: port.is_some() && !is_port,
        path: shown(Some(parts.path(bytes))).unwrap_or_default(),
        query: shown(parts.query(bytes)),
        fragment: shown(parts.fragment(bytes)),
    }
}

/// Components end at ASCII delimiters, so each of them is text.
fn shown(part: Option<&[u8]>) -> Option<&str> {
    part.and_then(|part| std::str::from_utf8(part).ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::split;

    #[test]
    fn schemes_are_identified_or_absent() {
        for text in ["no-colon/path", "1http://x/", "ht tp://x/", "a_b:c", "é:x", "/a:b", ":a", ""] {
            assert_eq!(split(text).scheme, None, "{text}");
        }
        assert_eq!(split("HT+t-p.1:x").scheme, Some("HT+t-p.1"));
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
            let found = split(text);
            assert_eq!((found.userinfo, found.host), (userinfo, Some(host)), "{text}");
            assert_eq!((found.port, found.is_port_invalid), (port, is_port_invalid), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_is_lost(text in "(http:)?(//)?[a:@\\[\\]0-9?#/é\\\\ ]{0,20}") {
            let found = split(&text);
            let parts = [found.scheme, found.userinfo, found.host, found.port, Some(found.path), found.query, found.fragment];
            let kept: usize = parts.iter().flatten().map(|part| part.len()).sum();
            let delimiters = |part: Option<&str>, len: usize| part.map_or(0, |_| len);
            let marks = delimiters(found.scheme, 1) + delimiters(found.userinfo, 1) + delimiters(found.host, 2)
                + delimiters(found.port, 1) + delimiters(found.query, 1) + delimiters(found.fragment, 1);
            prop_assert!(found.is_port_invalid || kept + marks == text.len());
        }
    }
}
