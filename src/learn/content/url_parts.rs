//! The parts of URLs that rules are about: [`UrlParts`].

use crate::kernel::{
    BufferedText, DelimiterMasks, MAX_MASKED_LEN, UrlMasks, any_byte, find_byte, low_bits, masks_of, positions,
    positions_of,
};

/// An http or https URI in the parts that rules are about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UrlParts<'a> {
    /// The URI, and what follows it in its buffer.
    pub(super) text: BufferedText<'a>,
    pub(super) is_https: bool,
    /// Userinfo, host and port.
    pub(super) authority: &'a [u8],
    /// Where the path begins in the URI.
    pub(super) path_at: usize,
    /// With the first slash; empty only if the URI is not canonical.
    pub(super) path: &'a [u8],
    /// Without `?`.
    pub(super) query: Option<&'a [u8]>,
    /// Without `#`.
    pub(super) fragment: Option<&'a [u8]>,
    /// Masks of the slashes and of the semicolons in the path, if it has at most 64 bytes.
    pub(super) delimiters_of_path: Option<[u64; 2]>,
    /// Masks of the ampersands and of the semicolons in the query, if it has at most 64 bytes.
    pub(super) separators: Option<[u64; 2]>,
}

impl<'a> UrlParts<'a> {
    /// Splits a canonical URI; `None` if its scheme is neither http nor https.
    pub(crate) fn of(uri: &'a [u8]) -> Option<UrlParts<'a>> {
        UrlOrigin::of(uri).map(|origin| origin.split(uri))
    }

    /// Returns the URI.
    #[inline(always)]
    pub(crate) fn uri(&self) -> &'a [u8] {
        self.text.text()
    }

    /// Returns userinfo, host and port.
    pub(crate) fn authority(&self) -> &'a [u8] {
        self.authority
    }

    /// Returns whether the scheme is https; otherwise it is http.
    pub(crate) fn is_https(&self) -> bool {
        self.is_https
    }

    /// Appends path, query and fragment.
    #[cfg(feature = "pipeline")]
    pub(crate) fn write_rest(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.path);
        for (mark, text) in [(b'?', self.query), (b'#', self.fragment)] {
            if let Some(text) = text {
                out.push(mark);
                out.extend_from_slice(text);
            }
        }
    }

    /// Returns whether the authority is the name of a host alone, so that another scheme may name the same server.
    pub(super) fn has_host_name_only(&self) -> bool {
        !self.authority.ends_with(b"]") && is_host(self.authority)
    }
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
        uri.starts_with(b"http://") || uri.starts_with(b"https://")
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

    /// Returns whether the authority is a host alone.
    pub(crate) fn is_bare_host(&self) -> bool {
        is_host(self.authority)
    }

    /// Splits the URI that has this origin.
    #[inline(always)]
    pub(crate) fn split(self, uri: &'a [u8]) -> UrlParts<'a> {
        let masks =
            masks_of(&uri[self.len()..], *b"/?#&;").map(|[slashes, questions, hashes, ampersands, semicolons]| {
                let low = DelimiterMasks { slashes, questions, hashes, ampersands, semicolons };
                UrlMasks { low, high: DelimiterMasks::default() }
            });
        self.split_with(uri.into(), masks.as_ref())
    }

    /// Does what [`Self::split`] does. `masks` has the delimiters in what follows the origin.
    #[inline(always)]
    pub(crate) fn split_with(self, text: BufferedText<'a>, masks: Option<&UrlMasks<DelimiterMasks>>) -> UrlParts<'a> {
        let UrlOrigin { is_https, authority } = self;
        let (path_at, uri) = (self.len(), text.text());
        let rest = &uri[path_at..];
        let masks = masks.filter(|_| rest.len() <= MAX_MASKED_LEN);
        let (query_at, fragment_at) = match masks {
            Some(masks) => masks.ends_of_parts(),
            None => {
                let find = |byte| memchr::memchr(byte, rest).unwrap_or(rest.len());
                (find(b'?'), find(b'#'))
            }
        };
        let end = fragment_at.min(rest.len());
        let path = &rest[..query_at.min(end)];
        let query = (query_at < end).then(|| &rest[query_at + 1..end]);
        UrlParts {
            text,
            is_https,
            authority,
            path_at,
            path,
            query,
            fragment: (fragment_at < rest.len()).then(|| &rest[fragment_at + 1..]),
            delimiters_of_path: masks.and_then(|masks| masks.delimiters_of_path(path.len())),
            separators: masks.and_then(|masks| masks.separators(path.len() + 1, query.map_or(0, <[u8]>::len))),
        }
    }
}

/// The delimiters in what follows the authority of a URL.
pub(crate) type RestMasks = UrlMasks<DelimiterMasks>;

impl RestMasks {
    /// Returns where the query begins, with its question mark, and where the fragment does. Each is 128 if there is none, and
    /// the query may be within the fragment.
    #[inline(always)]
    pub(super) fn ends_of_parts(&self) -> (usize, usize) {
        let first = |class: fn(&DelimiterMasks) -> u64| self.all(class).trailing_zeros() as usize;
        (first(|masks| masks.questions), first(|masks| masks.hashes))
    }

    /// Returns masks of the slashes and of the semicolons in the path, if it has at most 64 bytes.
    #[inline(always)]
    pub(super) fn delimiters_of_path(&self, len: usize) -> Option<[u64; 2]> {
        (len <= 64).then(|| [self.low.slashes, self.low.semicolons].map(|mask| mask & low_bits(len) as u64))
    }

    /// Returns masks of the ampersands and of the semicolons in the query, if it has at most 64 bytes.
    #[inline(always)]
    pub(super) fn separators(&self, at: usize, len: usize) -> Option<[u64; 2]> {
        let of_query = |mask: u128| mask.checked_shr(at as u32).unwrap_or(0) as u64 & low_bits(len) as u64;
        (len <= 64).then(|| [self.all(|masks| masks.ampersands), self.all(|masks| masks.semicolons)].map(of_query))
    }
}

/// Returns whether an authority has neither userinfo nor port.
fn is_host(authority: &[u8]) -> bool {
    // The colons of an IPv6 address are in brackets.
    let may_have_port = !authority.ends_with(b"]");
    !any_byte(authority, |byte| (byte == b'@') | ((byte == b':') & may_have_port))
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
            let found = (url.is_https, url.authority, url.path, url.query, url.fragment);
            assert_eq!(found, (is_https, authority.as_bytes(), path.as_bytes(), query, fragment), "{uri}");
        }
        for len in 0..70 {
            let host = "h".repeat(len);
            for rest in ["", "/", "/x/y?z", "?x", "#x"] {
                let uri = format!("https://{host}{rest}");
                assert_eq!(UrlParts::of(uri.as_bytes()).map(|url| url.authority), Some(host.as_bytes()), "{uri}");
            }
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
                    let mut masks = [UrlMasks::default()];
                    let origin = UrlOrigin::of(uri.as_bytes()).unwrap();
                    let rest = BufferedText::within(buffer.as_bytes(), origin.len(), uri.len() - origin.len());
                    crate::kernel::mask_delimiters(&[rest], &mut masks);
                    let text = BufferedText::within(buffer.as_bytes(), 0, uri.len());
                    let has_masks = [uri.len() - origin.len() <= 64, uri.len() - origin.len() <= MAX_MASKED_LEN];
                    let urls = [origin.split(uri.as_bytes()), origin.split_with(text, Some(&masks[0]))];
                    for (url, has_masks) in urls.into_iter().zip(has_masks) {
                        assert_eq!((url.uri(), url.query), (uri.as_bytes(), Some(query.as_bytes())));
                        assert_eq!(url.path.len(), path_len + 1);
                        let masks = |text: &[u8], bytes: [u8; 2]| {
                            let is_known = has_masks && text.len() <= 64;
                            is_known.then(|| bytes.map(|byte| positions(text, byte)))
                        };
                        assert_eq!(url.delimiters_of_path, masks(url.path, *b"/;"), "{uri}");
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
