//! The catalogue of all rules, in the one order in which they apply.

use super::draft::Draft;
use super::escapes::reduce;
use super::host::lower;
use super::rule_set::RuleSet;
use super::{crawler_commons, heritrix, host, path, session, urlcanon, w3lib};

/// One lossy step of recipes. Rules are independent of each other except for their order in [`RULES`].
#[derive(Debug)]
pub struct Rule {
    /// The name, as in `--rules +www`.
    pub name: &'static str,
    /// What the rule does, in one sentence.
    pub meaning: &'static str,
    /// Changes the draft and returns whether it did.
    pub(super) apply: fn(&mut Draft) -> bool,
}

macro_rules! rules {
    ($($name:literal $apply:expr, $meaning:literal;)*) => {
        /// All rules, in the order in which they apply.
        ///
        /// ```
        /// use irikey::key::RULES;
        /// let www = RULES.iter().find(|rule| rule.name == "www").unwrap();
        /// assert_eq!(www.meaning, "remove www., www1. and so on from the host, repeatedly");
        /// ```
        pub static RULES: &[Rule] = &[$(Rule { name: $name, meaning: $meaning, apply: $apply },)*];
    };
}

rules! {
    "all-case" heritrix::lower_all, "convert everything to lower case";
    "fragment" |draft| draft.fragment.remove(), "remove the fragment";
    "userinfo" |draft| draft.userinfo.remove(), "remove user name and password";
    "userinfo-web" heritrix::drop_web_userinfo, "remove user name and password of http, https, ftp and ftps URLs";
    "userinfo-recode" w3lib::recode_userinfo, "decode user name and password and encode them again";
    "scheme-case" |draft| lower(&mut draft.scheme), "convert the scheme to lower case";
    "host-ascii" host::host_to_ascii, "decode escapes of the host and convert its labels to ASCII by IDNA";
    "host-ascii-ignoring" host::host_to_ascii_ignoring,
        "like host-ascii, and remove bytes of the host that are not UTF-8";
    "host-ascii-or-raw" w3lib::host_to_ascii_or_raw,
        "convert a non-ASCII host to lower case, and to ASCII by IDNA if it is valid";
    "host-ascii-special" urlcanon::special_host,
        "decode escapes of the host; for schemes of browsers, convert it to ASCII by UTS 46";
    "path-escapes" |draft| reduce(&mut draft.path, &mut draft.spare),
        "decode escapes of the path until none remains, then encode only what must be encoded";
    "query-escapes" |Draft { query, spare, .. }| query.get_mut().is_some_and(|query| reduce(query, spare)),
        "decode escapes of the query until none remains, then encode only what must be encoded";
    "del-escapes" host::escape_del, "encode DEL in host, path and query";
    "host-ipv4-browser" urlcanon::ipv4_of_browser, "convert one to four numbers to an IPv4 address, as browsers do";
    "host-dots" host::squeeze_host_dots, "remove dots at both ends of the host, and repeated dots";
    "host-dot-pairs" host::halve_host_dots,
        "remove dots at both ends of the host, and one of every two adjacent dots";
    "host-ipv4" host::ipv4_of_four, "convert one number, or four octal or decimal numbers, to an IPv4 address";
    "host-ipv4-short" host::ipv4_of_any,
        "convert one number, or one to four numbers as inet_aton reads them, to an IPv4 address";
    "host-ipv6" w3lib::shorten_ipv6, "write an IPv6 address as in RFC 5952";
    "host-case" |draft| draft.host.get_mut().is_some_and(|host| lower(host)), "convert the host to lower case";
    "host-final-dot" crawler_commons::drop_final_dot, "remove one dot at the end of the host";
    "host-empty" |draft| draft.host.get().is_some_and(<[u8]>::is_empty) && draft.host.remove(),
        "treat an empty host as absent";
    "www" host::drop_www, "remove www., www1. and so on from the host, repeatedly";
    "www-once" host::drop_www_once, "remove www., www1. and so on from the host, once";
    "www-pages" heritrix::drop_www_of_pages, "like www-once, except for home pages";
    "port" host::drop_default_port, "remove the default port of http and https";
    "port-special" urlcanon::drop_special_port, "remove the default port of a browser's scheme";
    "scheme-http" |draft| draft.scheme == b"https" && draft.scheme.pop().is_some(), "replace https by http";
    "path-fill" crawler_commons::fill_path, "replace an empty path after a host by /";
    "path-fill-any" w3lib::fill_any_path, "replace an empty path by /";
    "escapes-tidy" crawler_commons::tidy_escapes,
        "encode what must be encoded, decode unreserved characters, convert hex digits to upper case";
    "path-decode" w3lib::decode_path,
        "decode escapes of the path once, except % / ; ?, then encode only what must be encoded";
    "path-decode-all" urlcanon::decode_path_fully,
        "decode escapes of the path until none remains, then encode only what must be encoded, and ?";
    "path-backslashes" urlcanon::slash_path, "replace \\ by / in paths, for schemes of browsers";
    "path-root" urlcanon::root_path, "let paths begin with /, for schemes of browsers";
    "path-dots-rfc" path::resolve_dots, "remove dot segments as in RFC 3986";
    "path-dots-params" w3lib::resolve_dots,
        "remove dot segments as in RFC 3986, but before the ; of the last segment, for schemes whose paths have parameters";
    "path-slashes" urlcanon::squeeze_slashes, "replace repeated / by one, for schemes of browsers";
    "path-dots" crawler_commons::normalize_path,
        "remove dot segments, including leading ones, and empty segments of the path";
    "path-segments" path::remove_segments, "remove dot segments and empty segments of the path";
    "path-case" |draft| lower(&mut draft.path), "convert the path to lower case";
    "path-session" |draft| session::strip_path(&mut draft.path), "remove session segments of ASP.NET from the path";
    "path-session-any" urlcanon::drop_path_session,
        "remove session segments of ASP.NET and a final ;jsessionid= from the path";
    "session-last" heritrix::drop_sessions,
        "remove the last session parameter of each kind from path, query or fragment";
    "query-fix" heritrix::fix_query,
        "remove an unnecessary ?, or an unnecessary & at the start or the end of the query";
    "path-slash" path::drop_final_slash, "remove a final slash from the path";
    "query-form" w3lib::form_query, "decode the fields of the query, sort them, and encode them as forms do";
    "query-decode-all" urlcanon::least_field_escapes,
        "decode escapes of the query's fields until none remains, then encode only what must be encoded";
    "query-sort-case" urlcanon::sort_query_bytes,
        "sort the fields of the query by their bytes, before the query is converted to lower case";
    "query-session" |draft| draft.query.get_mut().is_some_and(session::strip_query),
        "remove session parameters from the query";
    "query-case" |draft| draft.query.get_mut().is_some_and(|query| lower(query)), "convert the query to lower case";
    "query-session-any" urlcanon::drop_query_session, "remove session parameters of any length from the query";
    "query-ampersands" urlcanon::squeeze_ampersands, "remove unnecessary & from the query";
    "query-sort-bytes" urlcanon::sort_query_bytes, "sort the fields of the query by their bytes";
    "query-sort" path::sort_query, "sort the fields of the query by name, then by value";
    "query-names" crawler_commons::sort_query_names,
        "sort the fields of the query by name; remove fields without a name, and = without a value";
    "query-empty" |draft| draft.query.get().is_some_and(<[u8]>::is_empty) && draft.query.remove(),
        "remove an empty query";
}

impl RuleSet {
    /// Returns the set of the rules with these names, which are separated by spaces. `None` if a name is not
    /// that of a rule.
    pub(super) fn of(names: &str) -> Option<RuleSet> {
        names.split_whitespace().try_fold(RuleSet::NONE, |set, name| Some(set.with(find_rule(name)?)))
    }

    /// Returns the set of one rule.
    ///
    /// # Panics
    /// At compile time, if no rule has this name.
    pub(super) const fn of_rule(name: &str) -> RuleSet {
        let mut index = 0;
        while !is_equal(RULES[index].name.as_bytes(), name.as_bytes()) {
            index += 1;
        }
        RuleSet::NONE.with(index)
    }

    /// Returns the names, in the order in which the rules apply.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.iter().map(|index| RULES[index].name)
    }
}

/// Compares at compile time, when `==` is not available.
const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// Returns the index of a rule in [`RULES`].
pub(super) fn find_rule(name: &str) -> Option<usize> {
    RULES.iter().position(|rule| rule.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_fit_into_a_set() {
        assert!(RULES.len() <= 64);
        for (index, rule) in RULES.iter().enumerate() {
            assert_eq!(find_rule(rule.name), Some(index), "{}", rule.name);
        }
        assert_eq!(RuleSet::of("www nope"), None);
        assert_eq!(RuleSet::of_rule("www-once").names().collect::<Vec<_>>(), ["www-once"]);
    }
}
