//! A canonical http or https URI, taken apart into what sites spell in several ways: its origin and its path's end. In:
//! text of the `scheme` rung. Out: [`Spelling`], and what two of them differ in, if it is nothing else.

use crate::iri::Parts;

/// A web URI by its parts; put together again they are the URI.
///
/// ```
/// use irikey::learn::{SlashChange, Spelling};
/// let [a, b] = [&b"http://example.org/a"[..], b"https://www.example.org/a/"].map(|uri| Spelling::of(uri).unwrap());
/// let change = a.change_to(&b).unwrap();
/// assert!(change.origin && change.slash == Some(SlashChange::Added));
/// assert!(a.change_to(&Spelling::of(b"https://example.org/b").unwrap()).is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelling<'a> {
    /// The scheme is `https`, else `http`.
    pub is_https: bool,
    /// Userinfo, host and port.
    pub authority: &'a [u8],
    /// The path.
    pub path: &'a [u8],
    /// Query and fragment, with their marks.
    pub tail: &'a [u8],
    /// The authority is a host alone: only then are its scheme and its `www.` spellings.
    pub is_bare_host: bool,
}

/// How a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathEnding {
    /// In a slash.
    Slash,
    /// In a segment without a dot.
    Name,
    /// In a segment with a dot, as names of files have.
    File,
    /// It is `/` alone, or ends in several slashes: nothing to add or to strip.
    Other,
}

/// What happened to the slash at a path's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlashChange {
    /// It was added.
    Added,
    /// It was taken off.
    Stripped,
}

/// What two spellings of one URL differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpellingChange {
    /// In scheme, or in `www.` before the host.
    pub origin: bool,
    /// In the slash at the path's end.
    pub slash: Option<SlashChange>,
}

impl<'a> Spelling<'a> {
    /// The parts of `uri`; `None` if its scheme is another one.
    pub fn of(uri: &'a [u8]) -> Option<Spelling<'a>> {
        let parts = Parts::split(uri);
        let is_https = match parts.scheme(uri)? {
            b"https" => true,
            b"http" => false,
            _ => return None,
        };
        let authority = parts.authority(uri)?;
        let is_bare_host = parts.host(uri) == Some(authority);
        Some(Spelling {
            is_https,
            authority,
            path: parts.path(uri),
            tail: &uri[parts.path_end as usize..],
            is_bare_host,
        })
    }

    /// How the path ends.
    pub fn ending(&self) -> PathEnding {
        let segment = memchr::memrchr(b'/', self.path).map_or(self.path, |at| &self.path[at + 1..]);
        match segment {
            b"" if self.path.len() < 2 || self.path.ends_with(b"//") => PathEnding::Other,
            b"" => PathEnding::Slash,
            _ if segment.contains(&b'.') => PathEnding::File,
            _ => PathEnding::Name,
        }
    }

    /// Appends scheme and authority.
    pub fn write_origin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.is_https { b"https://" } else { b"http://" });
        out.extend_from_slice(self.authority);
    }

    /// What is different in `other`, if both may be spellings of one URL; `None` if they may not, or are equal.
    pub fn change_to(&self, other: &Spelling<'_>) -> Option<SpellingChange> {
        let origin = (self.is_https, self.authority) != (other.is_https, other.authority);
        let hosts =
            self.is_bare_host && other.is_bare_host && without_www(self.authority) == without_www(other.authority);
        let slash = match (self.ending(), other.ending()) {
            _ if self.path == other.path => None,
            (PathEnding::Name | PathEnding::File, PathEnding::Slash)
                if other.path.strip_suffix(b"/") == Some(self.path) =>
            {
                Some(SlashChange::Added)
            }
            (PathEnding::Slash, PathEnding::Name | PathEnding::File)
                if self.path.strip_suffix(b"/") == Some(other.path) =>
            {
                Some(SlashChange::Stripped)
            }
            _ => return None,
        };
        let is_spelling = (hosts || !origin) && self.tail == other.tail && (origin || slash.is_some());
        is_spelling.then_some(SpellingChange { origin, slash })
    }
}

/// A host less the `www.` before it.
pub(super) fn without_www(host: &[u8]) -> &[u8] {
    host.strip_prefix(b"www.").filter(|rest| !rest.is_empty()).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(a: &str, b: &str) -> Option<SpellingChange> {
        Spelling::of(a.as_bytes())?.change_to(&Spelling::of(b.as_bytes())?)
    }

    #[test]
    fn spellings_of_one_url_and_others() {
        use SlashChange::{Added, Stripped};
        let cases = [
            ("http://a/x", "https://a/x", Some((true, None))),
            ("https://a/x", "https://www.a/x", Some((true, None))),
            ("https://www.a/x", "http://a/x/", Some((true, Some(Added)))),
            ("http://a/x.html", "http://a/x.html/", Some((false, Some(Added)))),
            ("http://a/x/?q", "http://a/x?q", Some((false, Some(Stripped)))),
            ("http://a:8080/x", "http://a:8080/x/", Some((false, Some(Added)))),
            ("http://a/", "http://a/", None),
            ("http://a/x", "http://a/x?q", None),
            ("http://a/x/", "http://a/x//", None),
            ("http://a/", "http://a//", None),
            ("http://a:8080/x", "https://a:8080/x", None),
            ("http://u@a/x", "https://u@a/x", None),
            ("http://a/x", "https://b/x", None),
            ("http://www./x", "http:///x", None),
            ("ftp://a/x", "ftp://a/x/", None),
        ];
        for (a, b, want) in cases {
            let want = want.map(|(origin, slash)| SpellingChange { origin, slash });
            assert_eq!(change(a, b), want, "{a} {b}");
        }
    }
}
