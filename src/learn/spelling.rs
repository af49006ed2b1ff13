//! Parts of a canonical http or https URI that sites spell in several ways: its origin and the end of its path.

use super::content::{UrlOrigin, origin_start};

/// An http or https URI in parts. Their concatenation is the URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spelling<'a> {
    /// The scheme is `https`; otherwise it is `http`.
    pub(crate) is_https: bool,
    /// Userinfo, host and port.
    pub(crate) authority: &'a [u8],
    /// The path.
    pub(crate) path: &'a [u8],
    /// Query and fragment, with `?` and `#`.
    pub(crate) tail: &'a [u8],
    /// The authority is a host alone. Only then can scheme and `www.` differ between spellings of one URL.
    pub(crate) is_bare_host: bool,
}

/// How a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum PathEnding {
    /// With a slash.
    Slash,
    /// With a segment without a dot.
    Name,
    /// With a segment with a dot, like the name of a file.
    File,
    /// The path is `/` or ends with several slashes: no slash is added or removed.
    Other,
}

/// A change of the slash at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SlashChange {
    /// The slash was added.
    Added,
    /// The slash was removed.
    Stripped,
}

/// The difference between two spellings of one URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpellingChange {
    /// The scheme differs, or `www.` before the host.
    pub(crate) origin: bool,
    /// The change of the slash at the end of the path.
    pub(crate) slash: Option<SlashChange>,
}

impl PathEnding {
    pub(super) const ALL: [PathEnding; 4] = [PathEnding::Slash, PathEnding::Name, PathEnding::File, PathEnding::Other];

    /// Returns the ending with this number: its place among all endings.
    pub(super) fn numbered(number: u8) -> PathEnding {
        PathEnding::ALL.get(usize::from(number)).copied().unwrap_or(PathEnding::Other)
    }
}

impl<'a> Spelling<'a> {
    /// Splits a canonical URI. Returns `None` if its scheme is neither http nor https.
    pub(crate) fn of(uri: &'a [u8]) -> Option<Spelling<'a>> {
        let origin = UrlOrigin::of(uri)?;
        let rest = &uri[origin.len()..];
        let (path, tail) = rest.split_at(memchr::memchr2(b'?', b'#', rest).unwrap_or(rest.len()));
        let UrlOrigin { is_https, authority } = origin;
        Some(Spelling { is_https, authority, path, tail, is_bare_host: origin.is_bare_host() })
    }

    /// Returns how the path ends.
    pub(crate) fn ending(&self) -> PathEnding {
        let segment = memchr::memrchr(b'/', self.path).map_or(self.path, |at| &self.path[at + 1..]);
        match segment {
            b"" if self.path.len() < 2 || self.path.ends_with(b"//") => PathEnding::Other,
            b"" => PathEnding::Slash,
            _ if segment.contains(&b'.') => PathEnding::File,
            _ => PathEnding::Name,
        }
    }

    /// Appends scheme and authority to `out`.
    pub(crate) fn write_origin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(origin_start(self.is_https));
        out.extend_from_slice(self.authority);
    }

    /// Returns the change from this URI to `other`, if both can be spellings of one URL and differ.
    pub(crate) fn change_to(&self, other: &Spelling<'_>) -> Option<SpellingChange> {
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

/// Returns a host without a leading `www.`.
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
    fn changes_are_found_between_spellings_of_one_url_only() {
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
