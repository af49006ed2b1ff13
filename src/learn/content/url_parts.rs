//! The parts of URLs that rules are about: [`UrlParts`].

use crate::kernel::{BufferedText, any_byte, find_byte, low_bits, mask_of, positions, positions_of};

/// An http or https URI, and where the parts are that rules are about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UrlParts<'a> {
    /// The URI, and what follows it in its buffer.
    pub(super) text: BufferedText<'a>,
    /// Where the path begins in the URI.
    pub(super) path_at: usize,
    pub(super) path_end: usize,
    /// Where path and query end.
    pub(super) query_end: usize,
    /// Masks of the slashes and of the semicolons in the path, if it has at most 64 bytes.
    pub(super) delimiters_of_path: Option<[u64; 2]>,
    /// Masks of the ampersands and of the semicolons in the query, if it has at most 64 bytes.
    pub(super) separators: Option<[u64; 2]>,
}

impl<'a> UrlParts<'a> {
    /// Splits a canonical URI; `None` if its scheme is neither http nor https.
    pub(crate) fn of(uri: &'a [u8]) -> Option<UrlParts<'a>> {
        UrlOrigin::of(uri).map(|origin| UrlParts::of_any(uri.into(), origin.len()))
    }

    /// Splits a URI whose path begins at `path_at`.
    pub(crate) fn of_any(text: BufferedText<'a>, path_at: usize) -> UrlParts<'a> {
        let rest = &text.text()[path_at..];
        let mask = |text: &[u8], byte| mask_of(text, |other| other == byte);
        let ends = match rest.split_at_checked(64) {
            None => PartEnds::of_short(|byte| mask(rest, byte), rest.len()),
            Some((low, high)) if high.len() <= 64 => {
                PartEnds::of_long(|byte| u128::from(mask(low, byte)) | u128::from(mask(high, byte)) << 64, rest.len())
            }
            Some(_) => PartEnds::unknown(rest),
        };
        UrlParts::with_ends(text, path_at, ends)
    }

    /// Does what [`Self::of_any`] does, if at most 128 bytes follow the origin, and 64 or 128 bytes in the buffer. This is
    /// faster.
    #[inline(always)]
    pub(crate) fn of_short(text: BufferedText<'a>, path_at: usize) -> Option<UrlParts<'a>> {
        let (len, buffer) = (text.text().len() - path_at, &text.buffer()[path_at..]);
        let ends = if len <= 64 {
            let (block, is_text) = (buffer.first_chunk::<64>()?, low_bits(len) as u64);
            PartEnds::of_short(
                #[inline(always)]
                |byte| mask_of(block, |other| other == byte) & is_text,
                len,
            )
        } else {
            let (block, is_text) = (buffer.first_chunk::<128>().filter(|_| len <= 128)?, low_bits(len));
            let [low, high] = block.as_chunks::<64>().0 else { return None };
            PartEnds::of_long(
                #[inline(always)]
                |byte| {
                    let (low, high) = (mask_of(low, |other| other == byte), mask_of(high, |other| other == byte));
                    (u128::from(low) | u128::from(high) << 64) & is_text
                },
                len,
            )
        };
        Some(UrlParts::with_ends(text, path_at, ends))
    }

    #[inline(always)]
    fn with_ends(text: BufferedText<'a>, path_at: usize, ends: PartEnds) -> UrlParts<'a> {
        UrlParts {
            text,
            path_at,
            path_end: path_at + ends.path,
            query_end: path_at + ends.query,
            delimiters_of_path: ends.delimiters_of_path,
            separators: ends.separators,
        }
    }

    /// Returns the URI.
    #[inline(always)]
    pub(crate) fn uri(&self) -> &'a [u8] {
        self.text.text()
    }

    /// Returns whether the scheme is https; otherwise it is http.
    #[inline(always)]
    pub(crate) fn is_https(&self) -> bool {
        self.text.buffer()[4] == b's'
    }

    /// Returns userinfo, host and port.
    #[inline(always)]
    pub(crate) fn authority(&self) -> &'a [u8] {
        &self.text.buffer()[b"http://".len() + usize::from(self.is_https())..self.path_at]
    }

    /// Returns the path, with the first slash. It is empty only if the URI is not canonical.
    #[inline(always)]
    pub(super) fn path(&self) -> &'a [u8] {
        &self.text.buffer()[self.path_at..self.path_end]
    }

    /// Returns the query, without `?`.
    #[inline(always)]
    pub(super) fn query(&self) -> Option<&'a [u8]> {
        (self.path_end < self.query_end).then(|| &self.text.buffer()[self.path_end + 1..self.query_end])
    }

    /// Returns the fragment, without `#`.
    #[inline(always)]
    pub(super) fn fragment(&self) -> Option<&'a [u8]> {
        self.uri().get(self.query_end + 1..)
    }

    /// Appends path, query and fragment.
    #[cfg(feature = "pipeline")]
    pub(crate) fn write_rest(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.uri()[self.path_at..]);
    }

    /// Returns whether the authority is the name of a host alone, so that another scheme may name the same server.
    #[inline(always)]
    pub(super) fn has_host_name_only(&self) -> bool {
        // IPv6 addresses have colons, too.
        !any_byte(self.authority(), |byte| (byte == b'@') | (byte == b':'))
    }
}

/// Returns the name of the scheme of an http or https URI.
pub(crate) fn scheme_name(is_https: bool) -> &'static str {
    if is_https { "https" } else { "http" }
}

/// Returns what precedes the authority in an http or https URI.
#[inline(always)]
pub(crate) fn origin_start(is_https: bool) -> &'static [u8] {
    if is_https { b"https://" } else { b"http://" }
}

/// Scheme and authority of an http or https URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UrlOrigin<'a> {
    pub(crate) is_https: bool,
    /// Userinfo, host and port.
    pub(crate) authority: &'a [u8],
}

impl<'a> UrlOrigin<'a> {
    /// Returns the origin of a canonical URI; `None` if its scheme is neither http nor https.
    #[inline(always)]
    pub(crate) fn of(uri: &'a [u8]) -> Option<UrlOrigin<'a>> {
        let (is_https, rest) = match uri.strip_prefix(b"http")? {
            [b's', b':', b'/', b'/', rest @ ..] => (true, rest),
            [b':', b'/', b'/', rest @ ..] => (false, rest),
            _ => return None,
        };
        Some(UrlOrigin { is_https, authority: &rest[..authority_len(rest)] })
    }

    /// Returns whether a canonical URI has such an origin.
    #[inline(always)]
    pub(crate) fn is_of(uri: &[u8]) -> bool {
        let Some(first) = uri.first_chunk() else { return uri == b"http://" };
        // There is no branch that depends on the scheme.
        let word = u64::from_le_bytes(*first);
        let without_s = word >> (8 * u32::from(first[4] == b's'));
        let after = (without_s >> 32) as u32 ^ u32::from_le_bytes(*b"://\0");
        (word as u32 ^ u32::from_le_bytes(*b"http")) | after & 0xFF_FFFF == 0
    }

    /// Returns the origin that is written like this, with the scheme http or https.
    #[inline(always)]
    pub(crate) fn of_text(text: &'a [u8]) -> UrlOrigin<'a> {
        let is_https = text.get(4) == Some(&b's');
        UrlOrigin { is_https, authority: text.get(b"http://".len() + usize::from(is_https)..).unwrap_or(b"") }
    }

    /// Returns the number of bytes of scheme, `://` and authority.
    pub(crate) fn len(&self) -> usize {
        b"http://".len() + usize::from(self.is_https) + self.authority.len()
    }

    /// Returns whether the authority is a host alone: it has neither userinfo nor port.
    pub(crate) fn is_bare_host(&self) -> bool {
        // The colons of an IPv6 address are in brackets.
        let may_have_port = !self.authority.ends_with(b"]");
        !any_byte(self.authority, |byte| (byte == b'@') | ((byte == b':') & may_have_port))
    }
}

/// Where path and query end in what follows the authority of a URL, and the delimiters in them.
struct PartEnds {
    path: usize,
    query: usize,
    /// See [`UrlParts`].
    delimiters_of_path: Option<[u64; 2]>,
    separators: Option<[u64; 2]>,
}

impl PartEnds {
    /// Returns those of a text of at most 64 bytes. `mask` returns the places of a byte.
    #[inline(always)]
    fn of_short(mask: impl Fn(u8) -> u64, len: usize) -> PartEnds {
        let query = len.min(mask(b'#').trailing_zeros() as usize);
        let path = query.min(mask(b'?').trailing_zeros() as usize);
        let (before_end, in_path) = (low_bits(query) as u64, low_bits(path) as u64);
        let of_query = |mask: u64| (mask & before_end) >> path.min(63) >> 1;
        PartEnds {
            path,
            query,
            delimiters_of_path: Some([mask(b'/') & in_path, mask(b';') & in_path]),
            separators: Some([of_query(mask(b'&')), of_query(mask(b';'))]),
        }
    }

    /// Returns those of a text of at most 128 bytes.
    #[inline(always)]
    fn of_long(mask: impl Fn(u8) -> u128, len: usize) -> PartEnds {
        let query = len.min(mask(b'#').trailing_zeros() as usize);
        let path = query.min(mask(b'?').trailing_zeros() as usize);
        let of_query = |byte: u8| ((mask(byte) & low_bits(query)) >> path.min(127) >> 1) as u64;
        let of_path = |byte: u8| (mask(byte) & low_bits(path)) as u64;
        PartEnds {
            path,
            query,
            delimiters_of_path: (path <= 64).then(|| [of_path(b'/'), of_path(b';')]),
            separators: (query <= path + 65).then(|| [of_query(b'&'), of_query(b';')]),
        }
    }

    /// Returns those of a text whose delimiters are unknown.
    fn unknown(text: &[u8]) -> PartEnds {
        let query = memchr::memchr(b'#', text).unwrap_or(text.len());
        let path = memchr::memchr(b'?', &text[..query]).unwrap_or(query);
        PartEnds { path, query, delimiters_of_path: None, separators: None }
    }
}

/// Returns the number of bytes before the first `/`, `?` or `#`.
#[inline(always)]
fn authority_len(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk::<16>) {
        let found = positions_of(b'/', block) | positions_of(b'?', block) | positions_of(b'#', block);
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += 16;
    }
    at + text[at..].iter().take_while(|byte| !b"/?#".contains(byte)).count()
}

/// Returns the byte that separates the parameters of a query. Some sites use `;` instead of `&` (HTML 4.01, section B.2.2).
pub(super) fn separator_of(query: &[u8]) -> u8 {
    let has_semicolons = || {
        let (mut at, mut count) = (0, 0);
        for end in positions(query, |byte| byte == b';').chain([query.len()]) {
            let parameter = &query[at..end];
            if !parameter.is_empty() && find_byte(parameter, |byte| byte == b'=').is_none() {
                return false;
            }
            (at, count) = (end + 1, count + usize::from(!parameter.is_empty()));
        }
        count > 1
    };
    // Most queries have no semicolon.
    if any_byte(query, |byte| byte == b';') && !any_byte(query, |byte| byte == b'&') && has_semicolons() {
        b';'
    } else {
        b'&'
    }
}

/// Splits a query into its parameters.
pub(super) fn parameters_of(query: &[u8]) -> impl Iterator<Item = &[u8]> {
    let separator = separator_of(query);
    query.split(move |byte| *byte == separator)
}

/// Splits a query parameter or a path parameter into its name and its value; the value is empty without `=`.
pub(super) fn name_and_value(parameter: &[u8]) -> (&[u8], &[u8]) {
    match find_byte(parameter, |byte| byte == b'=') {
        Some(at) => (&parameter[..at], &parameter[at + 1..]),
        None => (parameter, b""),
    }
}

/// Returns the segment in the form that rules about values of segments use: a name, `#` for a number, `*` for others.
pub(super) fn general_segment(segment: &[u8]) -> &[u8] {
    match segment {
        [_, ..] if segment.iter().all(u8::is_ascii_digit) => b"#",
        [_, ..] if segment.len() <= 20 && segment.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_') => {
            segment
        }
        _ => b"*",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Authority, path, query and fragment.
    type Split = (&'static str, &'static str, Option<&'static str>, Option<&'static str>);

    #[test]
    fn urls_are_split_at_the_first_of_each_delimiter() {
        let cases: [(&str, Split); 9] = [
            ("http://a/", ("a", "/", None, None)),
            ("https://u@a:80/b?c#d", ("u@a:80", "/b", Some("c"), Some("d"))),
            ("http://a/b#c?d", ("a", "/b", None, Some("c?d"))),
            ("http://a/?#", ("a", "/", Some(""), Some(""))),
            ("http://a/?b?c#d#e", ("a", "/", Some("b?c"), Some("d#e"))),
            ("http://a?b/c", ("a", "", Some("b/c"), None)),
            ("http://a#b/c", ("a", "", None, Some("b/c"))),
            ("http://a", ("a", "", None, None)),
            ("http://", ("", "", None, None)),
        ];
        for (uri, (authority, path, query, fragment)) in cases {
            let url = UrlParts::of(uri.as_bytes()).unwrap();
            let (query, fragment) = (query.map(str::as_bytes), fragment.map(str::as_bytes));
            let is_https = uri.starts_with("https");
            let found = (url.is_https(), url.authority(), url.path(), url.query(), url.fragment());
            assert_eq!(found, (is_https, authority.as_bytes(), path.as_bytes(), query, fragment), "{uri}");
        }
        for len in 0..70 {
            let host = "h".repeat(len);
            for rest in ["", "/", "/x/y?z", "?x", "#x"] {
                let uri = format!("https://{host}{rest}");
                assert_eq!(UrlParts::of(uri.as_bytes()).map(|url| url.authority()), Some(host.as_bytes()), "{uri}");
            }
        }
        for uri in [
            "http://a/",
            "https://a",
            "http://",
            "https://",
            "http:/",
            "http:///",
            "https:/a/",
            "httpss://",
            "Http://a/",
            "httq://a/",
        ] {
            let uri = uri.as_bytes();
            assert_eq!(UrlOrigin::is_of(uri), UrlOrigin::of(uri).is_some(), "{}", String::from_utf8_lossy(uri));
        }
        assert!([&b"ftp://a/"[..], b"http:/a", b"http", b""].iter().all(|uri| UrlParts::of(uri).is_none()));
    }

    #[test]
    fn delimiters_are_those_of_their_part() {
        let positions = |text: &[u8], byte: u8| {
            (0..text.len()).filter(|at| text[*at] == byte).fold(0, |mask, at| mask | 1_u64 << at)
        };
        let (mut short, mut long) = (0, 0);
        for path_len in (0..30).chain(60..68) {
            for query_len in (0..30).chain(58..68) {
                for end in ["", "#", "#a/b;c&d"] {
                    let query: String = "a=1&b;c/&?".chars().cycle().take(query_len).collect();
                    let path: String = "x;/y//".chars().cycle().take(path_len).collect();
                    let uri = format!("http://h/{path}?{query}{end}");
                    let buffer = format!("{uri}/?#&;{}", "/&;".repeat(50));
                    let path_at = UrlOrigin::of(uri.as_bytes()).unwrap().len();
                    let text = BufferedText::within(buffer.as_bytes(), 0, uri.len());
                    let is_short = uri.len() - path_at <= 128;
                    let url_of_short = UrlParts::of_short(text, path_at);
                    assert_eq!(url_of_short.is_some(), is_short, "{uri}");
                    for url in [UrlParts::of(uri.as_bytes()), url_of_short].into_iter().flatten() {
                        assert_eq!((url.uri(), url.query()), (uri.as_bytes(), Some(query.as_bytes())));
                        assert_eq!(url.path().len(), path_len + 1);
                        let masks = |text: &[u8], bytes: [u8; 2]| {
                            let is_known = uri.len() - path_at <= 128 && text.len() <= 64;
                            is_known.then(|| bytes.map(|byte| positions(text, byte)))
                        };
                        assert_eq!(url.delimiters_of_path, masks(url.path(), *b"/;"), "{uri}");
                        assert_eq!(url.separators, masks(query.as_bytes(), *b"&;"), "{uri}");
                        let is_short = url.delimiters_of_path.is_some() && url.separators.is_some();
                        (short, long) = (short + u32::from(is_short), long + u32::from(!is_short));
                    }
                }
            }
        }
        assert!(short > 5000 && long > 1000, "{short} {long}");
    }
}
