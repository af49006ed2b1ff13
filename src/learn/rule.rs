//! What a host may do to all of its URLs, one rule for each way, and each with a name: [`RewriteRule`]. In: a spelling. Out: the
//! other spelling of the same URL.

use super::spelling::{PathEnding, SlashChange, Spelling, SpellingChange, without_www};

/// What becomes of `www.` before a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Www {
    /// Nothing.
    Kept,
    /// It is put there.
    Added,
    /// It is taken off.
    Stripped,
}

/// What becomes of scheme and host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OriginRule {
    /// It is for URLs of `https`, else of `http`.
    pub from_https: bool,
    /// They become `https`, else `http`.
    pub to_https: bool,
    /// What becomes of `www.`
    pub www: Www,
}

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RewriteRule {
    /// Scheme and host change.
    Origin(OriginRule),
    /// Paths that end in a segment without a dot get a slash.
    AddSlash,
    /// Paths that end in a segment with a dot get a slash.
    AddSlashToFiles,
    /// Paths that end in a slash lose it.
    StripSlash,
}

impl OriginRule {
    /// The rule that leads from one origin to another; `None` if they are the same or of different hosts.
    pub(super) fn between(from: &Spelling<'_>, to: &Spelling<'_>) -> Option<OriginRule> {
        let www = match () {
            () if from.authority == to.authority => Www::Kept,
            () if without_www(to.authority) == from.authority => Www::Added,
            () if without_www(from.authority) == to.authority => Www::Stripped,
            () => return None,
        };
        let rule = OriginRule { from_https: from.is_https, to_https: to.is_https, www };
        (rule.from_https != rule.to_https || www != Www::Kept).then_some(rule)
    }

    /// The host that `host` becomes; `None` if the rule cannot be one of this host.
    pub(super) fn host(self, host: &[u8]) -> Option<Vec<u8>> {
        match self.www {
            Www::Kept => Some(host.to_vec()),
            Www::Added if without_www(host) == host => Some([b"www.", host].concat()),
            Www::Stripped if without_www(host) != host => Some(without_www(host).to_vec()),
            Www::Added | Www::Stripped => None,
        }
    }
}

impl RewriteRule {
    /// All of them.
    pub fn all() -> Vec<RewriteRule> {
        let mut rules = Vec::new();
        for from_https in [false, true] {
            for to_https in [true, false] {
                for www in [Www::Kept, Www::Added, Www::Stripped] {
                    if from_https != to_https || www != Www::Kept {
                        rules.push(RewriteRule::Origin(OriginRule { from_https, to_https, www }));
                    }
                }
            }
        }
        rules.extend([RewriteRule::AddSlash, RewriteRule::AddSlashToFiles, RewriteRule::StripSlash]);
        rules
    }

    /// Its name in files: `http->https`, `http->https+www`, `https->https-www`, `add-slash` and so on.
    pub fn name(self) -> String {
        let scheme = |is_https| if is_https { "https" } else { "http" };
        match self {
            RewriteRule::Origin(OriginRule { from_https, to_https, www }) => {
                let www = match www {
                    Www::Kept => "",
                    Www::Added => "+www",
                    Www::Stripped => "-www",
                };
                format!("{}->{}{www}", scheme(from_https), scheme(to_https))
            }
            RewriteRule::AddSlash => "add-slash".to_string(),
            RewriteRule::AddSlashToFiles => "add-slash-to-files".to_string(),
            RewriteRule::StripSlash => "strip-slash".to_string(),
        }
    }

    /// The rule of this name.
    ///
    /// ```
    /// use irikey::learn::RewriteRule;
    /// assert!(RewriteRule::all().into_iter().all(|rule| RewriteRule::named(&rule.name()) == Some(rule)));
    /// ```
    pub fn named(name: &str) -> Option<RewriteRule> {
        RewriteRule::all().into_iter().find(|rule| rule.name() == name)
    }

    /// The rule of slashes that a path with this ending may be under.
    pub(super) fn of_ending(ending: PathEnding) -> Option<RewriteRule> {
        match ending {
            PathEnding::Name => Some(RewriteRule::AddSlash),
            PathEnding::File => Some(RewriteRule::AddSlashToFiles),
            PathEnding::Slash => Some(RewriteRule::StripSlash),
            PathEnding::Other => None,
        }
    }

    /// The rule of slashes that a change of a path with this ending shows.
    pub(super) fn of_change(change: SpellingChange, ending: PathEnding) -> Option<RewriteRule> {
        change.slash.and_then(|slash| match (slash, ending) {
            (SlashChange::Added, PathEnding::Name | PathEnding::File) | (SlashChange::Stripped, PathEnding::Slash) => {
                RewriteRule::of_ending(ending)
            }
            _ => None,
        })
    }

    /// What `uri` becomes; `None` if the rule does not speak of it.
    pub fn apply(self, uri: &Spelling<'_>) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(uri.path.len() + uri.authority.len() + uri.tail.len() + 16);
        match self {
            RewriteRule::Origin(rule) if uri.is_bare_host && uri.is_https == rule.from_https => {
                let host = rule.host(uri.authority)?;
                Spelling { is_https: rule.to_https, authority: &host, ..*uri }.write_origin(&mut out);
                out.extend_from_slice(uri.path);
            }
            RewriteRule::Origin(_) => return None,
            _ if RewriteRule::of_ending(uri.ending()) != Some(self) => return None,
            RewriteRule::StripSlash => {
                uri.write_origin(&mut out);
                out.extend_from_slice(&uri.path[..uri.path.len() - 1]);
            }
            RewriteRule::AddSlash | RewriteRule::AddSlashToFiles => {
                uri.write_origin(&mut out);
                out.extend_from_slice(uri.path);
                out.push(b'/');
            }
        }
        out.extend_from_slice(uri.tail);
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_does_what_it_is_called() {
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
            let made = rule.apply(&Spelling::of(uri.as_bytes()).unwrap());
            assert_eq!(made.as_deref(), want.map(str::as_bytes), "{name} {uri}");
        }
        assert_eq!(RewriteRule::all().len(), 13);
    }
}
