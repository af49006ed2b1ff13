//! The catalogue: every single rule there is, in the one order in which rules apply. In: nothing. Out: names, meanings,
//! and sets of rules as bits.

use super::draft::Draft;
use super::{commons, heritrix, host, path, urlcanon, w3lib};

/// One lossy step. Rules do not know of each other; what they share is their place in [`RULES`].
#[derive(Debug)]
pub struct Rule {
    /// As in `--rules +www`.
    pub name: &'static str,
    /// One sentence for a person.
    pub meaning: &'static str,
    /// Changes the draft; true if it did.
    pub(super) apply: fn(&mut Draft) -> bool,
}

macro_rules! rules {
    ($($name:literal $apply:path: $meaning:literal,)*) => {
        /// All rules, in the order in which they apply.
        pub static RULES: &[Rule] = &[$(Rule { name: $name, meaning: $meaning, apply: $apply },)*];
    };
}

rules! {
    "all-case" heritrix::lower_all: "everything is lower-cased",
    "fragment" path::drop_fragment: "the fragment is taken away",
    "userinfo" host::drop_userinfo: "user name and password are taken away",
    "userinfo-web" heritrix::drop_web_userinfo: "user name and password are taken from http, https, ftp and ftps URLs",
    "userinfo-recode" w3lib::recode_userinfo: "user name and password are decoded and encoded anew",
    "scheme-case" host::lower_scheme: "the scheme is lower-cased",
    "host-ascii" host::host_to_ascii: "the host's escapes are decoded, its labels made ASCII by IDNA",
    "host-ascii-ignoring" host::host_to_ascii_ignoring: "the same, and bytes of the host that are not UTF-8 vanish",
    "host-ascii-or-raw" w3lib::host_to_ascii_or_raw: "a host beyond ASCII is lower-cased and made ASCII by IDNA",
    "host-ascii-special" urlcanon::special_host: "escapes of the host are decoded, that of a browser's scheme made ASCII by UTS 46",
    "path-escapes" path::reduce_path: "escapes of the path are decoded until none is left, the least is encoded",
    "query-escapes" path::reduce_query: "escapes of the query are decoded until none is left, the least is encoded",
    "del-escapes" host::escape_del: "DEL is encoded in host, path and query",
    "host-ipv4-browser" urlcanon::ipv4_of_browser: "one to four numbers, as browsers read them, become an IPv4 address",
    "host-dots" host::squeeze_host_dots: "dots of the host at the ends, and all but one of many, are taken away",
    "host-dot-pairs" host::halve_host_dots: "dots of the host at the ends are taken away, and one of each two neighbours",
    "host-ipv4" host::ipv4_of_four: "one number, or four octal or decimal parts, become an IPv4 address",
    "host-ipv4-short" host::ipv4_of_any: "one number, or one to four parts as inet_aton reads them, become an IPv4 address",
    "host-ipv6" w3lib::shorten_ipv6: "an IPv6 address is written as RFC 5952 has it",
    "host-case" host::lower_host: "the host is lower-cased",
    "host-final-dot" commons::drop_final_dot: "one dot at the end of the host is taken away",
    "host-empty" host::drop_empty_host: "an empty host is taken for none",
    "www" host::drop_www: "www., www1. and so on are taken from the host, as often as they stand there",
    "www-once" host::drop_www_once: "www., www1. and so on are taken from the host, once",
    "www-pages" heritrix::drop_www_of_pages: "the same, but not from home pages",
    "port" host::drop_default_port: "the default port of http and https is taken away",
    "port-special" urlcanon::drop_special_port: "the default port of a browser's scheme is taken away",
    "scheme-http" urlcanon::https_to_http: "https becomes http",
    "path-fill" commons::fill_path: "an empty path behind a host becomes /",
    "path-fill-any" w3lib::fill_any_path: "an empty path becomes /",
    "escapes-tidy" commons::tidy_escapes: "what must be is encoded, unreserved decoded, hex digits upper-cased",
    "path-decode" w3lib::least_path_escapes: "escapes of the path but of % / ; ? are decoded once, the least is encoded",
    "path-decode-all" urlcanon::least_path_escapes: "escapes of the path are decoded until none is left, the least and ? are encoded",
    "path-backslashes" urlcanon::slash_path: "\\ in paths of browsers' schemes becomes /",
    "path-root" urlcanon::root_path: "paths of browsers' schemes begin with /",
    "path-dots-rfc" w3lib::resolve_dots: "dot segments are taken out as RFC 3986 says",
    "path-slashes" urlcanon::squeeze_slashes: "one / stays where there are many, in browsers' schemes",
    "path-dots" commons::normalize_path: "dot segments, leading ones too, and empty segments of the path are taken out",
    "path-segments" path::remove_segments: "dot segments and empty segments of the path are taken out",
    "path-case" path::lower_path: "the path is lower-cased",
    "path-session" path::drop_path_session: "ASP.NET's session segments are taken out of the path",
    "path-session-any" urlcanon::drop_path_session: "session segments of ASP.NET and a final ;jsessionid= are taken out of the path",
    "session-last" heritrix::drop_sessions: "session parameters are taken out of path, query or fragment, the last of each kind",
    "query-fix" heritrix::fix_query: "an idle ? goes, or an idle & at the query's beginning or end",
    "path-slash" path::drop_final_slash: "a final slash is taken from the path",
    "query-form" w3lib::form_query: "the query's fields are decoded, sorted, and encoded as forms do",
    "query-decode-all" urlcanon::least_field_escapes: "escapes of the query's fields are decoded until none is left, the least is encoded",
    "query-session" path::drop_query_session: "session parameters are taken out of the query",
    "query-case" path::lower_query: "the query is lower-cased",
    "query-session-any" urlcanon::drop_query_session: "session parameters of any length are taken out of the query",
    "query-ampersands" urlcanon::squeeze_ampersands: "idle & are taken out of the query",
    "query-sort-bytes" urlcanon::sort_query_bytes: "the query's fields are sorted by their bytes",
    "query-sort" path::sort_query: "the query's fields are sorted by name, then by value",
    "query-names" commons::sort_query_names: "the query's fields are sorted by name alone, nameless ones and idle = taken out",
    "query-empty" path::drop_empty_query: "an empty query is taken away",
}

/// A set of rules; bit `i` stands for `RULES[i]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RuleSet(u64);

impl RuleSet {
    /// No rule.
    pub const NONE: RuleSet = RuleSet(0);

    /// The set of the rules with these names; `Err` is the first name that no rule has.
    ///
    /// # Errors
    /// No rule is called so.
    pub fn of<'n>(names: &[&'n str]) -> Result<RuleSet, &'n str> {
        names.iter().try_fold(RuleSet::NONE, |set, &name| Ok(set.with(find(name).ok_or(name)?)))
    }

    /// The set and the rule at `index` of [`RULES`].
    pub const fn with(self, index: usize) -> RuleSet {
        RuleSet(self.0 | 1 << index)
    }

    /// The set without the rule at `index` of [`RULES`].
    pub const fn without(self, index: usize) -> RuleSet {
        RuleSet(self.0 & !(1 << index))
    }

    /// The rule at `index` of [`RULES`] is in the set.
    pub const fn contains(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }

    /// There is no rule in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Places in [`RULES`], ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..RULES.len()).filter(move |&index| self.contains(index))
    }

    /// Names, in the order in which the rules apply.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter().map(|index| RULES[index].name)
    }
}

/// The place of a rule in [`RULES`].
pub fn find(name: &str) -> Option<usize> {
    RULES.iter().position(|rule| rule.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_and_fit_the_bits() {
        assert!(RULES.len() <= 64);
        for (index, rule) in RULES.iter().enumerate() {
            assert_eq!(find(rule.name), Some(index), "{}", rule.name);
        }
        assert_eq!(RuleSet::of(&["www", "nope"]), Err("nope"));
    }
}
