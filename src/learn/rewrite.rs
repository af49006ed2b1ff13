//! Patterns: rules by which a host rewrites all of its URLs, and the spelling of a URL to which a rule leads.

use super::content::{origin_start, scheme_name};
use super::spelling::{PathEnding, SlashChange, Spelling, SpellingChange, without_www};

/// What a rule does to a leading `www.` of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WwwChange {
    /// Nothing changes.
    Kept,
    /// `www.` is added.
    Added,
    /// `www.` is removed.
    Stripped,
}

/// A rule that changes scheme or host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginRule {
    /// The rule applies to URLs of `https`; otherwise to those of `http`.
    pub from_https: bool,
    /// The result has the scheme `https`; otherwise `http`.
    pub to_https: bool,
    /// The change of `www.`.
    pub www: WwwChange,
}

/// A rule of a host for all of its URLs; files and documentation call it a *pattern*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RewriteRule {
    /// Changes scheme or host.
    Origin(OriginRule),
    /// Adds a slash to paths that end with a segment without a dot.
    AddSlash,
    /// Adds a slash to paths that end with a segment with a dot.
    AddSlashToFiles,
    /// Removes a final slash.
    StripSlash,
}

impl OriginRule {
    /// Returns the rule that rewrites one origin to another, or `None` if they are equal or of unrelated hosts.
    pub(super) fn between(from: &Spelling<'_>, to: &Spelling<'_>) -> Option<OriginRule> {
        let www = match () {
            () if from.authority == to.authority => WwwChange::Kept,
            () if without_www(to.authority) == from.authority => WwwChange::Added,
            () if without_www(from.authority) == to.authority => WwwChange::Stripped,
            () => return None,
        };
        let rule = OriginRule { from_https: from.is_https, to_https: to.is_https, www };
        (rule.from_https != rule.to_https || www != WwwChange::Kept).then_some(rule)
    }

    /// Returns the host that `host` is rewritten to, in two parts, or `None` if the rule cannot apply to this host.
    fn host_parts(self, host: &[u8]) -> Option<[&[u8]; 2]> {
        let rest = without_www(host);
        match self.www {
            WwwChange::Kept => Some([b"", host]),
            WwwChange::Added if rest == host => Some([b"www.", host]),
            WwwChange::Stripped if rest != host => Some([b"", rest]),
            WwwChange::Added | WwwChange::Stripped => None,
        }
    }

    /// Returns the host that `host` is rewritten to, or `None` if the rule cannot apply to this host.
    pub(super) fn host(self, host: &[u8]) -> Option<Vec<u8>> {
        self.host_parts(host).map(|parts| parts.concat())
    }
}

impl RewriteRule {
    /// Returns all rules.
    pub(crate) const fn all() -> [RewriteRule; 13] {
        use WwwChange::{Added, Kept, Stripped};
        const fn origin(from_https: bool, to_https: bool, www: WwwChange) -> RewriteRule {
            RewriteRule::Origin(OriginRule { from_https, to_https, www })
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
            RewriteRule::AddSlash,
            RewriteRule::AddSlashToFiles,
            RewriteRule::StripSlash,
        ]
    }

    /// Returns the name in files: `http->https`, `http->https+www`, `https->https-www`, `add-slash` and so on.
    pub fn name(self) -> String {
        match self {
            RewriteRule::Origin(OriginRule { from_https, to_https, www }) => {
                let www = match www {
                    WwwChange::Kept => "",
                    WwwChange::Added => "+www",
                    WwwChange::Stripped => "-www",
                };
                format!("{}->{}{www}", scheme_name(from_https), scheme_name(to_https))
            }
            RewriteRule::AddSlash => "add-slash".to_string(),
            RewriteRule::AddSlashToFiles => "add-slash-to-files".to_string(),
            RewriteRule::StripSlash => "strip-slash".to_string(),
        }
    }

    /// Returns the rule with this name.
    pub fn named(name: &str) -> Option<RewriteRule> {
        RewriteRule::all().into_iter().find(|rule| rule.name() == name)
    }

    /// Returns a number that compares as the rule does.
    pub(super) fn number(self) -> u8 {
        match self {
            RewriteRule::Origin(OriginRule { from_https, to_https, www }) => {
                6 * u8::from(from_https) + 3 * u8::from(to_https) + www as u8
            }
            RewriteRule::AddSlash => 12,
            RewriteRule::AddSlashToFiles => 13,
            RewriteRule::StripSlash => 14,
        }
    }

    /// Returns the rule with this number.
    pub(super) fn numbered(number: u8) -> Option<RewriteRule> {
        RewriteRule::all().into_iter().find(|rule| rule.number() == number)
    }

    /// Returns the slash rule that can apply to a path with this ending.
    fn of_ending(ending: PathEnding) -> Option<RewriteRule> {
        match ending {
            PathEnding::Name => Some(RewriteRule::AddSlash),
            PathEnding::File => Some(RewriteRule::AddSlashToFiles),
            PathEnding::Slash => Some(RewriteRule::StripSlash),
            PathEnding::Other => None,
        }
    }

    /// Returns the slash rule that a change of a path with this ending confirms.
    pub(super) fn of_change(change: SpellingChange, ending: PathEnding) -> Option<RewriteRule> {
        change.slash.and_then(|slash| match (slash, ending) {
            (SlashChange::Added, PathEnding::Name | PathEnding::File) | (SlashChange::Stripped, PathEnding::Slash) => {
                RewriteRule::of_ending(ending)
            }
            _ => None,
        })
    }

    /// Replaces the contents of `out` by the URI that `uri` is rewritten to. Returns whether the rule applies to `uri`.
    pub(super) fn write(self, uri: &Spelling<'_>, out: &mut Vec<u8>) -> bool {
        out.clear();
        match self {
            RewriteRule::Origin(rule) if uri.is_bare_host && uri.is_https == rule.from_https => {
                let Some([start, host]) = rule.host_parts(uri.authority) else { return false };
                out.extend_from_slice(origin_start(rule.to_https));
                out.extend_from_slice(start);
                out.extend_from_slice(host);
                out.extend_from_slice(uri.path);
            }
            RewriteRule::Origin(_) => return false,
            _ if RewriteRule::of_ending(uri.ending()) != Some(self) => return false,
            RewriteRule::StripSlash => {
                uri.write_origin(out);
                out.extend_from_slice(&uri.path[..uri.path.len() - 1]);
            }
            RewriteRule::AddSlash | RewriteRule::AddSlashToFiles => {
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
            let rule = RewriteRule::named(name).unwrap();
            let mut out = b"before".to_vec();
            let is_written = rule.write(&Spelling::of(uri.as_bytes()).unwrap(), &mut out);
            assert_eq!(is_written.then_some(&out[..]), want.map(str::as_bytes), "{name} {uri}");
        }
        assert!(RewriteRule::all().into_iter().all(|rule| RewriteRule::named(&rule.name()) == Some(rule)));
        let mut rules = RewriteRule::all();
        assert!(rules.iter().all(|rule| RewriteRule::numbered(rule.number()) == Some(*rule)));
        rules.sort_unstable();
        assert!(rules.is_sorted_by_key(|rule| rule.number()));
    }
}
