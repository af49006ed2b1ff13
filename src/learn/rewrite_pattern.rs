//! Patterns by which a host rewrites all of its URLs: [`RewritePattern`].

use super::content::{origin_start, scheme_name};
use super::spelling::{PathEnding, SlashChange, Spelling, SpellingChange, without_www};

/// What a pattern does to a leading `www.` of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WwwChange {
    /// Nothing changes.
    Kept,
    /// `www.` is added.
    Added,
    /// `www.` is removed.
    Stripped,
}

/// A change of scheme or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginPattern {
    /// The pattern applies to URLs of `https`; otherwise to those of `http`.
    pub from_https: bool,
    /// The result has the scheme `https`; otherwise `http`.
    pub to_https: bool,
    /// The change of `www.`.
    pub www: WwwChange,
}

/// A pattern by which a host rewrites all of its URLs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RewritePattern {
    /// Changes scheme or host.
    Origin(OriginPattern),
    /// Adds a slash to paths that end with a segment without a dot.
    AddSlash,
    /// Adds a slash to paths that end with a segment with a dot.
    AddSlashToFiles,
    /// Removes a final slash.
    StripSlash,
}

impl OriginPattern {
    /// Returns the pattern that rewrites one origin to another, or `None` if they are equal or of unrelated hosts.
    pub(super) fn between(from: &Spelling<'_>, to: &Spelling<'_>) -> Option<OriginPattern> {
        let www = match () {
            () if from.authority == to.authority => WwwChange::Kept,
            () if without_www(to.authority) == from.authority => WwwChange::Added,
            () if without_www(from.authority) == to.authority => WwwChange::Stripped,
            () => return None,
        };
        let pattern = OriginPattern { from_https: from.is_https, to_https: to.is_https, www };
        (pattern.from_https != pattern.to_https || www != WwwChange::Kept).then_some(pattern)
    }

    /// Returns the host that `host` is rewritten to, in two parts, or `None` if the pattern cannot apply to this host.
    fn host_parts(self, host: &[u8]) -> Option<[&[u8]; 2]> {
        let rest = without_www(host);
        match self.www {
            WwwChange::Kept => Some([b"", host]),
            WwwChange::Added if rest == host => Some([b"www.", host]),
            WwwChange::Stripped if rest != host => Some([b"", rest]),
            WwwChange::Added | WwwChange::Stripped => None,
        }
    }

    /// Returns the host that `host` is rewritten to, or `None` if the pattern cannot apply to this host.
    pub(super) fn host(self, host: &[u8]) -> Option<Vec<u8>> {
        self.host_parts(host).map(|parts| parts.concat())
    }
}

impl RewritePattern {
    /// Returns all patterns.
    pub(crate) const fn all() -> [RewritePattern; 13] {
        use WwwChange::{Added, Kept, Stripped};
        const fn origin(from_https: bool, to_https: bool, www: WwwChange) -> RewritePattern {
            RewritePattern::Origin(OriginPattern { from_https, to_https, www })
        }
        [
            origin(false, true, Kept),
            origin(false, true, Added),
            origin(false, true, Stripped),
            origin(false, false, Added),
            origin(false, false, Stripped),
            origin(true, true, Added),
            origin(true, true, Stripped),
            origin(true, false, Kept),
            origin(true, false, Added),
            origin(true, false, Stripped),
            RewritePattern::AddSlash,
            RewritePattern::AddSlashToFiles,
            RewritePattern::StripSlash,
        ]
    }

    /// Returns the name in files: `http->https`, `http->https+www`, `https->https-www`, `add-slash` and so on.
    pub fn name(self) -> String {
        match self {
            RewritePattern::Origin(OriginPattern { from_https, to_https, www }) => {
                let www = match www {
                    WwwChange::Kept => "",
                    WwwChange::Added => "+www",
                    WwwChange::Stripped => "-www",
                };
                format!("{}->{}{www}", scheme_name(from_https), scheme_name(to_https))
            }
            RewritePattern::AddSlash => "add-slash".to_string(),
            RewritePattern::AddSlashToFiles => "add-slash-to-files".to_string(),
            RewritePattern::StripSlash => "strip-slash".to_string(),
        }
    }

    /// Returns the pattern with this name.
    pub fn named(name: &str) -> Option<RewritePattern> {
        RewritePattern::all().into_iter().find(|pattern| pattern.name() == name)
    }

    /// Returns a number that compares as the pattern does.
    pub(super) fn number(self) -> u8 {
        match self {
            RewritePattern::Origin(OriginPattern { from_https, to_https, www }) => {
                6 * u8::from(from_https) + 3 * u8::from(to_https) + www as u8
            }
            RewritePattern::AddSlash => 12,
            RewritePattern::AddSlashToFiles => 13,
            RewritePattern::StripSlash => 14,
        }
    }

    /// Returns the pattern with this number.
    pub(super) fn numbered(number: u8) -> Option<RewritePattern> {
        RewritePattern::all().into_iter().find(|pattern| pattern.number() == number)
    }

    /// Returns the slash pattern that can apply to a path with this ending.
    fn of_ending(ending: PathEnding) -> Option<RewritePattern> {
        match ending {
            PathEnding::Name => Some(RewritePattern::AddSlash),
            PathEnding::File => Some(RewritePattern::AddSlashToFiles),
            PathEnding::Slash => Some(RewritePattern::StripSlash),
            PathEnding::Other => None,
        }
    }

    /// Returns the slash pattern that a change of a path with this ending confirms.
    pub(super) fn of_change(change: SpellingChange, ending: PathEnding) -> Option<RewritePattern> {
        change.slash.and_then(|slash| match (slash, ending) {
            (SlashChange::Added, PathEnding::Name | PathEnding::File) | (SlashChange::Stripped, PathEnding::Slash) => {
                RewritePattern::of_ending(ending)
            }
            _ => None,
        })
    }

    /// Replaces the contents of `out` by the URI that `uri` is rewritten to. Returns whether the pattern applies to `uri`.
    pub(super) fn write(self, uri: &Spelling<'_>, out: &mut Vec<u8>) -> bool {
        out.clear();
        match self {
            RewritePattern::Origin(pattern) if uri.is_bare_host && uri.is_https == pattern.from_https => {
                let Some([start, host]) = pattern.host_parts(uri.authority) else { return false };
                out.extend_from_slice(origin_start(pattern.to_https));
                out.extend_from_slice(start);
                out.extend_from_slice(host);
                out.extend_from_slice(uri.path);
            }
            RewritePattern::Origin(_) => return false,
            _ if RewritePattern::of_ending(uri.ending()) != Some(self) => return false,
            RewritePattern::StripSlash => {
                uri.write_origin(out);
                out.extend_from_slice(&uri.path[..uri.path.len() - 1]);
            }
            RewritePattern::AddSlash | RewritePattern::AddSlashToFiles => {
                uri.write_origin(out);
                out.extend_from_slice(uri.path);
                out.push(b'/');
            }
        }
        out.extend_from_slice(uri.tail);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_rewrite_as_named() {
        let cases = [
            ("http->https", "http://a/x", Some("https://a/x")),
            ("http->https", "https://a/x", None),
            ("http->https", "http://a:8080/x", None),
            ("http->https+www", "http://a/x?q#f", Some("https://www.a/x?q#f")),
            ("http->https+www", "http://www.a/x", None),
            ("https->https-www", "https://www.a/", Some("https://a/")),
            ("https->http-www", "https://a/", None),
            ("add-slash", "http://a:8080/x?q", Some("http://a:8080/x/?q")),
            ("add-slash", "http://a/x.html", None),
            ("add-slash-to-files", "http://a/x.html", Some("http://a/x.html/")),
            ("strip-slash", "http://a/x/", Some("http://a/x")),
            ("strip-slash", "http://a/", None),
            ("strip-slash", "http://a/x//", None),
        ];
        for (name, uri, want) in cases {
            let pattern = RewritePattern::named(name).unwrap();
            let mut out = b"before".to_vec();
            let is_written = pattern.write(&Spelling::of(uri.as_bytes()).unwrap(), &mut out);
            assert_eq!(is_written.then_some(&out[..]), want.map(str::as_bytes), "{name} {uri}");
        }
        assert!(
            RewritePattern::all().into_iter().all(|pattern| RewritePattern::named(&pattern.name()) == Some(pattern))
        );
        let mut patterns = RewritePattern::all();
        assert!(patterns.iter().all(|pattern| RewritePattern::numbered(pattern.number()) == Some(*pattern)));
        patterns.sort_unstable();
        assert!(patterns.is_sorted_by_key(|pattern| pattern.number()));
    }
}
