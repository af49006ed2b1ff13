//! A shortcut for the keys of common URLs in the recipes `surt-wayback` and `surt-ia`.
//!
//! The rules of a recipe define its keys, but few of them change a common URL: up to 128 bytes with the scheme `http` or
//! `https`, a host of lower-case names, no port, no escapes except necessary ones, and no dot segments. The key of such a
//! URL is written directly. For any other URL there is no shortcut. Tests compare both ways, and the rules that they report.

use std::ops::Range;

use super::draft::Draft;
use super::host::{lower, www_len};
use super::rule_set::RuleSet;
use super::{path, session};
use crate::kernel::{ShortText, append, low_bits};

const FRAGMENT: RuleSet = RuleSet::of_rule("fragment");
const WWW: RuleSet = RuleSet::of_rule("www");
const WWW_ONCE: RuleSet = RuleSet::of_rule("www-once");
const PATH_SEGMENTS: RuleSet = RuleSet::of_rule("path-segments");
const PATH_CASE: RuleSet = RuleSet::of_rule("path-case");
const PATH_SLASH: RuleSet = RuleSet::of_rule("path-slash");
const QUERY_SESSION: RuleSet = RuleSet::of_rule("query-session");
const QUERY_CASE: RuleSet = RuleSet::of_rule("query-case");
const QUERY_SORT: RuleSet = RuleSet::of_rule("query-sort");
const QUERY_EMPTY: RuleSet = RuleSet::of_rule("query-empty");

/// Appends the key of `url` in the recipe `surt-wayback` and returns the rules that changed something. Returns `None` and
/// appends nothing if there is no shortcut.
pub(super) fn write_wayback(url: &[u8], draft: &mut Draft, out: &mut Vec<u8>) -> Option<RuleSet> {
    write(url, (WWW, usize::MAX), draft, out)
}

/// Like [`write_wayback`], in the recipe `surt-ia`.
pub(super) fn write_ia(url: &[u8], draft: &mut Draft, out: &mut Vec<u8>) -> Option<RuleSet> {
    write(url, (WWW_ONCE, 1), draft, out)
}

/// The parts of a common URL.
struct CommonUrl {
    text: ShortText,
    host: Range<usize>,
    path: Range<usize>,
    /// Without its `?`.
    query: Option<Range<usize>>,
    dots: u128,
    has_fragment: bool,
    upper: u128,
}

impl CommonUrl {
    /// Splits `url` and converts it to lower case. Returns `None` if a rule other than those of this file might change it.
    #[inline(always)]
    fn read(url: &[u8]) -> Option<CommonUrl> {
        let host_at = match url {
            [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => 7,
            [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => 8,
            _ => return None,
        };
        let mut text = ShortText::new(url)?;
        let end = first_at_or(text.positions(|byte| byte == b'#'), url.len());
        let within = |from: usize, to: usize| low_bits(to) & !low_bits(from);
        let host_end = first_at_or(text.positions(|byte| !is_host_byte(byte)) & within(host_at, end), end);
        let slashes = text.positions(|byte| byte == b'/');
        let dots = text.positions(|byte| byte == b'.');
        let query_mark = first_at_or(text.positions(|byte| byte == b'?') & within(host_end, end), end);
        let ends_host = matches!(url[host_end..end].first(), None | Some(b'/' | b'?'));
        let path = host_end..query_mark;
        let pairs = slashes & (slashes | dots) >> 1 & within(path.start, path.end.saturating_sub(1));
        let percents = text.positions(|byte| byte == b'%') & within(host_at, end);
        let is_common = ends_host && pairs == 0 && text.positions(needs_rules) & within(host_at, end) == 0;
        let escapes_are_kept =
            percents == 0 || percents & !(kept_escapes(&text) & low_bits(end.saturating_sub(2))) == 0;
        if !is_common || !escapes_are_kept || !is_common_host(&url[host_at..host_end], dots >> host_at) {
            return None;
        }
        let upper = text.positions(|byte| byte.wrapping_sub(b'A') < 26);
        text.make_lower_case();
        let query = (query_mark < end).then(|| query_mark + 1..end);
        Some(CommonUrl { text, host: host_at..host_end, path, query, dots, has_fragment: end < url.len(), upper })
    }

    /// Returns whether the URL had an upper-case letter in `range`.
    #[inline(always)]
    fn had_upper(&self, range: &Range<usize>) -> bool {
        self.upper & low_bits(range.end) & !low_bits(range.start) != 0
    }

    /// Appends the labels of the host from byte `from` on in reverse order, and a `)`.
    #[inline(always)]
    fn write_host(&self, from: usize, out: &mut Vec<u8>) {
        let mut dots = self.dots & low_bits(self.host.end) & !low_bits(from);
        let mut end = self.host.end;
        while dots != 0 {
            let dot = 127 - dots.leading_zeros() as usize;
            self.text.append_few_to(dot + 1..end, out);
            out.push(b',');
            dots &= low_bits(dot);
            end = dot;
        }
        self.text.append_few_to(from..end, out);
        out.push(b')');
    }

    /// Appends the path and returns the rules that changed it.
    #[inline(always)]
    fn write_path(&self, out: &mut Vec<u8>) -> RuleSet {
        if self.path.is_empty() {
            out.push(b'/');
            return PATH_SEGMENTS;
        }
        self.text.append_to(self.path.clone(), out);
        let has_slash = self.path.len() > 1 && out.ends_with(b"/");
        out.truncate(out.len() - usize::from(has_slash));
        PATH_CASE.filter(self.had_upper(&self.path)).or(PATH_SLASH.filter(has_slash))
    }
}

/// Appends the key of `url`. `www` is the rule that removes `www.`, and how often it does.
fn write(url: &[u8], (www, most): (RuleSet, usize), draft: &mut Draft, out: &mut Vec<u8>) -> Option<RuleSet> {
    let common = CommonUrl::read(url)?;
    let host = common.host.clone();
    let mut name_at = host.start;
    for _ in 0..most {
        let Some(len) = www_len(&url[name_at..host.end]) else { break };
        name_at += len;
    }
    common.write_host(name_at, out);
    let applied = common.write_path(out);
    let query_applied = match &common.query {
        Some(query) => write_query(&url[query.clone()], &common, draft, out),
        None => RuleSet::NONE,
    };
    let is_changed = (FRAGMENT.filter(common.has_fragment)).or(www.filter(name_at > host.start));
    Some(applied.or(query_applied).or(is_changed))
}

/// Appends `?` and the query, if it is not empty.
fn write_query(query: &[u8], common: &CommonUrl, draft: &mut Draft, out: &mut Vec<u8>) -> RuleSet {
    let range = common.query.clone().unwrap_or_default();
    if !query.is_empty() && query.len() < session::MIN_LEN && !query.contains(&b'&') {
        out.push(b'?');
        common.text.append_to(range.clone(), out);
        return QUERY_CASE.filter(common.had_upper(&range));
    }
    draft.clear();
    draft.query.set(Some(query));
    let applied = QUERY_SESSION
        .filter(draft.query.get_mut().is_some_and(session::strip_query))
        .or(QUERY_CASE.filter(draft.query.get_mut().is_some_and(|query| lower(query))))
        .or(QUERY_SORT.filter(path::sort_query(draft)));
    match draft.query.get() {
        Some(query) if !query.is_empty() => {
            out.push(b'?');
            append(out, query);
            applied
        }
        _ => applied.or(QUERY_EMPTY),
    }
}

/// Returns the first position of a mask, or `otherwise` if it has none.
#[inline(always)]
fn first_at_or(mask: u128, otherwise: usize) -> usize {
    (mask.trailing_zeros() as usize).min(otherwise)
}

/// Returns whether no rule changes `byte` in a host.
#[inline(always)]
fn is_host_byte(byte: u8) -> bool {
    (byte.wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte == b'-') | (byte == b'.') | (byte == b'_')
}

/// Returns whether a rule might change a host, path or query because of `byte`, or recognize a session by it. For `%`, see
/// [`kept_escapes`].
#[inline(always)]
fn needs_rules(byte: u8) -> bool {
    (byte <= b' ') | (byte >= 0x7F) | (byte == b'(')
}

/// Returns the positions of bytes that begin an escape, if they are `%`, which the rules decode and encode again: upper-case
/// escapes of bytes outside ASCII, the space and `#`.
#[inline(always)]
fn kept_escapes(text: &ShortText) -> u128 {
    let is_upper_digit = |byte: u8| (byte.wrapping_sub(b'0') < 10) | (byte.wrapping_sub(b'A') < 6);
    let high = text.positions(|byte| (byte == b'8') | (byte == b'9') | (byte.wrapping_sub(b'A') < 6));
    let other = text.positions(|byte| byte == b'2') >> 1 & text.positions(|byte| (byte == b'0') | (byte == b'3')) >> 2;
    high >> 1 & text.positions(is_upper_digit) >> 2 | other
}

/// Returns whether `host`, whose dots are known, has no empty label and is not an IPv4 address.
#[inline(always)]
fn is_common_host(host: &[u8], dots: u128) -> bool {
    let dots = dots & low_bits(host.len());
    let has_empty_label = dots & (dots << 1 | 1) != 0 || host.ends_with(b".");
    !has_empty_label && host.last().is_some_and(|last| !last.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::super::Recipe;
    use super::*;

    /// Pieces of URLs, common ones and those that rules change.
    const PIECES: [&str; 67] = [
        "a",
        "b1",
        "example",
        "www.",
        "www2.",
        "WWW.",
        "org",
        "Com",
        ".",
        "..",
        "-",
        "_",
        "1",
        "127.0.0.1",
        "0x7f",
        ":80",
        ":8080",
        ":",
        "u@",
        "@",
        "[::1]",
        "/",
        "//",
        "/.",
        "/..",
        "/./",
        "/../",
        "/a.b/",
        "/(a)/",
        "/Path/To/Page",
        "/page.aspx",
        "?",
        "&",
        "=",
        "?b=2&a=1",
        "?a=1&b=2",
        "&a",
        "?A=B",
        "#",
        "#frag",
        "%",
        "%41",
        "%2525",
        "%c3%a9",
        "%C3%A9",
        "%E2%82%AC",
        "%20",
        "%23",
        "%2",
        "%80%2F",
        "%7F%FF",
        "é",
        "\u{7f}",
        " ",
        "\t",
        "\n",
        "\\",
        "http://",
        "https://",
        "ftp://",
        "HTTP://",
        "http:/",
        "dns:",
        "jsessionid=0123456789abcdefABCDEF0123456789",
        "sid=0123456789abcdefABCDEF0123456789",
        "&ASPSESSIONIDabcdefgh=abcdefghijklmnopqrstuvwx&x=1",
        "?cfid=12&cftoken=34",
    ];

    /// Every URL, and the share of URLs with a shortcut.
    #[test]
    fn shortcuts_equal_the_rules() {
        for name in ["surt-wayback", "surt-ia"] {
            let recipe = Recipe::parse(name).unwrap();
            let (mut draft, mut seed, mut shortcuts) = (Draft::default(), 1u64, 0);
            for number in 0..40_000 {
                let mut choose = |count: usize| {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (seed >> 33) as usize % count
                };
                let mut url = if number % 4 > 0 { "http://www.example.org/".to_string() } else { String::new() };
                (0..choose(6)).for_each(|_| url.push_str(PIECES[choose(PIECES.len())]));
                let (mut expected, mut key) = (b"before".to_vec(), b"before".to_vec());
                let rules = recipe.write_by_rules(url.as_bytes(), &mut draft, &mut expected);
                let shortcut = recipe.shortcut.expect("the recipe has one");
                match shortcut(url.as_bytes(), &mut draft, &mut key) {
                    Some(applied) => {
                        assert_eq!((Ok(applied), &key), (rules, &expected), "{name} {url:?}");
                        shortcuts += 1;
                    }
                    None => assert_eq!(key, b"before", "{name} {url:?}"),
                }
            }
            assert!((10_000..32_000).contains(&shortcuts), "{shortcuts}");
        }
    }
}
