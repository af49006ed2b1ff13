//! A shortcut for the keys of common URLs in the recipes `surt-wayback` and `surt-ia`.
//!
//! The rules of a recipe define its keys, but few of them change a common URL: the scheme `http` or `https`, a host of
//! names, and no dot segments. The key of such a URL is written directly. For any other URL there is no shortcut. Tests
//! compare both ways, and the rules that they report.
//!
//! ```text
//! masks of the URL --CommonAuthority--> labels of the host in reverse order
//!                  --CommonTail-------> path and query in lower case, escapes reduced, fields sorted
//! ```

use std::ops::Range;

use super::draft::Draft;
use super::escapes::write_reduced;
use super::host::lower;
use super::rule_set::RuleSet;
use super::surt_parts::{CommonAuthority, CommonTail, MaskedUrl};
use super::surt_query::{write_common_query, write_escaped_query, write_reduced_query};
use crate::kernel::{Appender, MAX_MASKED_LEN, any_pair};

const FRAGMENT: RuleSet = RuleSet::of_rule("fragment");
const SCHEME_CASE: RuleSet = RuleSet::of_rule("scheme-case");
const HOST_CASE: RuleSet = RuleSet::of_rule("host-case");
const WWW: RuleSet = RuleSet::of_rule("www");
const WWW_ONCE: RuleSet = RuleSet::of_rule("www-once");
const PORT: RuleSet = RuleSet::of_rule("port");
const PATH_ESCAPES: RuleSet = RuleSet::of_rule("path-escapes");
const PATH_SEGMENTS: RuleSet = RuleSet::of_rule("path-segments");
const PATH_CASE: RuleSet = RuleSet::of_rule("path-case");
const PATH_SLASH: RuleSet = RuleSet::of_rule("path-slash");

/// Where the shortcuts of two recipes differ.
#[derive(Debug)]
pub(super) struct SurtShortcut {
    /// The rule that removes `www.`.
    www: RuleSet,
    /// How often it does.
    max_www: usize,
    /// The rule that converts the scheme, if there is one.
    scheme_case: RuleSet,
}

pub(super) const WAYBACK: SurtShortcut = SurtShortcut { www: WWW, max_www: usize::MAX, scheme_case: SCHEME_CASE };
pub(super) const IA: SurtShortcut = SurtShortcut { www: WWW_ONCE, max_www: 1, scheme_case: RuleSet::NONE };

impl SurtShortcut {
    /// Appends the key of `url` and returns the rules that changed something. Returns `None` and appends nothing if there is
    /// no shortcut.
    #[inline(always)]
    pub(super) fn write(&self, url: MaskedUrl<'_>, draft: &mut Draft, out: &mut Vec<u8>) -> Option<RuleSet> {
        let text = url.text;
        let authority = CommonAuthority::read(&url)?;
        let name_at = authority.name_at(text, self.max_www);
        let [scheme_upper, host_upper] = authority.has_upper;
        let applied = (self.scheme_case.filter(scheme_upper))
            .or(HOST_CASE.filter(host_upper))
            .or(self.www.filter(name_at > authority.host.start))
            .or(PORT.filter(authority.port.is_default));
        // An escape is at most three times as long as its byte, and a copy may write 128 bytes more than it keeps.
        let mut appender = Appender::new(out, 5 * MAX_MASKED_LEN);
        write_host(url.buffer, &authority, name_at, &mut appender);
        if text.len() > MAX_MASKED_LEN {
            return Some(applied.or(write_long_tail(&text[authority.port.end..], appender, draft)?));
        }
        let tail = CommonTail::read(&url, authority.port.end)?;
        let tail_applied = if tail.has_escapes {
            write_escaped_tail(&url, &tail, appender, draft)?
        } else {
            write_tail(&url, &tail, appender, draft)
        };
        Some(applied.or(tail_applied).or(FRAGMENT.filter(tail.end < text.len())))
    }
}

/// Appends path and query, which have no escapes, and returns the rules that changed them.
#[inline(always)]
fn write_tail(url: &MaskedUrl<'_>, tail: &CommonTail, mut appender: Appender<'_>, draft: &mut Draft) -> RuleSet {
    let path = write_path(url, tail.path.clone(), &mut appender);
    let Some(query) = tail.query.clone() else {
        appender.finish();
        return path;
    };
    path.or(write_common_query(url, query, appender, draft))
}

/// Appends the labels of the host from byte `name_at` on in reverse order, the port, and a `)`.
#[inline(always)]
fn write_host(buffer: &[u8], authority: &CommonAuthority, name_at: usize, appender: &mut Appender<'_>) {
    let mut dots = authority.dots >> name_at << name_at;
    let mut end = authority.host.end;
    while dots != 0 {
        let dot = 63 - dots.leading_zeros() as usize;
        appender.append_in_lower_case::<16>(buffer, dot + 1..end);
        appender.push(b',');
        dots ^= 1 << dot;
        end = dot;
    }
    appender.append_in_lower_case::<32>(buffer, name_at..end);
    if !authority.port.digits.is_empty() && !authority.port.is_default {
        appender.push(b':');
        appender.append_in_lower_case::<16>(buffer, authority.port.digits.clone());
    }
    appender.push(b')');
}

/// Appends the path and returns the rules that changed it.
#[inline(always)]
fn write_path(url: &MaskedUrl<'_>, mut path: Range<usize>, appender: &mut Appender<'_>) -> RuleSet {
    if path.is_empty() {
        appender.push(b'/');
        return PATH_SEGMENTS;
    }
    let has_upper = url.has_upper(&path);
    let has_slash = path.len() > 1 && url.text[path.end - 1] == b'/';
    path.end -= usize::from(has_slash);
    appender.append_in_lower_case::<128>(url.buffer, path);
    PATH_CASE.filter(has_upper).or(PATH_SLASH.filter(has_slash))
}

/// Appends path and query, which have escapes, and returns the rules that changed them. Returns `None` if other rules might
/// change them.
#[inline(never)]
fn write_escaped_tail(
    url: &MaskedUrl<'_>,
    tail: &CommonTail,
    mut appender: Appender<'_>,
    draft: &mut Draft,
) -> Option<RuleSet> {
    let mut path = tail.path.clone();
    let has_slash = path.len() > 1 && url.text[path.end - 1] == b'/';
    path.end -= usize::from(has_slash);
    if path.is_empty() {
        appender.push(b'/');
    }
    let reduced = url.write_reduced(path, b"/.(", &mut appender)?;
    let applied = (PATH_SEGMENTS.filter(tail.path.is_empty()))
        .or(PATH_ESCAPES.filter(reduced.is_changed))
        .or(PATH_CASE.filter(reduced.has_upper))
        .or(PATH_SLASH.filter(has_slash));
    match tail.query.clone() {
        None => drop(appender.finish()),
        Some(query) => return Some(applied.or(write_escaped_query(url, query, appender, draft)?)),
    }
    Some(applied)
}

/// Completes the key of a URL that is too long for masks: `tail` is its path, query and fragment. Returns `None` and appends
/// nothing if other rules might change path or query.
#[inline(never)]
fn write_long_tail(tail: &[u8], appender: Appender<'_>, draft: &mut Draft) -> Option<RuleSet> {
    let tail_len = memchr::memchr(b'#', tail).unwrap_or(tail.len());
    let fragment = FRAGMENT.filter(tail_len < tail.len());
    let path_len = memchr::memchr(b'?', &tail[..tail_len]).unwrap_or(tail_len);
    let (path, query) = tail[..tail_len].split_at(path_len);
    let start = appender.start();
    let out = appender.finish();
    let written = append_path(path, out).and_then(|applied| match query.split_first() {
        Some((_, query)) => Some(applied.or(write_reduced_query(query, draft, out)?)),
        None => Some(applied),
    });
    if written.is_none() {
        out.truncate(start);
    }
    Some(written?.or(fragment))
}

/// Appends the path, of which escapes are decoded, and returns the rules that changed it. Returns `None` after a part was
/// appended if other rules might change it.
fn append_path(path: &[u8], out: &mut Vec<u8>) -> Option<RuleSet> {
    if path.is_empty() {
        out.push(b'/');
        return Some(PATH_SEGMENTS);
    }
    let at = out.len();
    let is_reduced = write_reduced(path, out)?;
    let reduced = &mut out[at..];
    let needs_rules =
        any_pair(reduced, |byte, next| ((byte == b'/') & ((next == b'/') | (next == b'.'))) | (byte == b'('));
    if needs_rules {
        return None;
    }
    let is_lowered = lower(reduced);
    let has_slash = reduced.len() > 1 && reduced.ends_with(b"/");
    out.truncate(out.len() - usize::from(has_slash));
    Some(PATH_ESCAPES.filter(is_reduced).or(PATH_CASE.filter(is_lowered)).or(PATH_SLASH.filter(has_slash)))
}

#[cfg(test)]
mod tests {
    use super::super::{Recipe, RecipeKeys};
    use super::*;
    use crate::kernel::{BufferedText, UrlMasks, mask_urls};

    /// Pieces of URLs, common ones and those that rules change.
    #[rustfmt::skip]
    const PIECES: [&str; 79] = [
        "a", "b1", "example", "www.", "www2.", "WWW.", "org", "Com", ".", "..", "-", "_", "1", "127.0.0.1", "0x7f",
        ":80", ":8080", ":", "u@", "@", "[::1]", "/", "//", "/.", "/..", "/./", "/../", "/a.b/", "/(a)/",
        "/Path/To/Page", "/page.aspx", "?", "&", "=", "?b=2&a=1", "?a=1&b=2", "&a", "?A=B", "#", "#frag", "%",
        "%41", "%2525", "%c3%a9", "%C3%A9", "%E2%82%AC", "%20", "%23", "%2", "%80%2F", "%7F%FF", "é", "\u{7f}", " ",
        "\t", "\n", "\\", "http://", "https://", "ftp://", "HTTP://", "http:/", "dns:",
        "jsessionid=0123456789abcdefABCDEF0123456789", "sid=0123456789abcdefABCDEF0123456789",
        "&ASPSESSIONIDabcdefgh=abcdefghijklmnopqrstuvwx&x=1", "?cfid=12&cftoken=34", "&b=2", "&C=3&c",
        "&same-name=2&same-name=1", "&CFToken=9", "%3d%26", "%e2%80%a8", "%2E%2f%28", "\u{85}", "\u{2028}", ":443/",
        "www1.", "/a-long-segment-of-a-path-with-Upper-case-letters-and-forty-more-bytes",
    ];

    fn write_shortcut(recipe: &Recipe, url: &[u8], draft: &mut Draft, out: &mut Vec<u8>) -> Option<RuleSet> {
        let mut masks = [UrlMasks::default()];
        mask_urls(&[url.into()], &mut masks);
        recipe.shortcut.expect("the recipe has one").write(MaskedUrl::new(url.into(), &masks[0]), draft, out)
    }

    /// Returns a URL of common pieces and others.
    fn url(number: usize, seed: &mut u64) -> String {
        let mut choose = |count: usize| {
            *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (*seed >> 33) as usize % count
        };
        let mut url = if number.is_multiple_of(4) { String::new() } else { "http://www.example.org/".to_string() };
        (0..choose(6)).for_each(|_| url.push_str(PIECES[choose(PIECES.len())]));
        url
    }

    /// Every URL, the share of URLs with a shortcut, and all URLs in one buffer.
    #[test]
    fn shortcuts_equal_the_rules() {
        for name in ["surt-wayback", "surt-ia"] {
            let recipe = Recipe::parse(name).unwrap();
            let (mut draft, mut seed, mut shortcuts) = (Draft::default(), 1, 0);
            let (mut urls, mut spans, mut keys, mut ends, mut count) = (Vec::new(), Vec::new(), Vec::new(), vec![0], 0);
            let mut applied = [0; 64];
            for number in 0..40_000 {
                let url = url(number, &mut seed);
                let (mut expected, mut key) = (b"before".to_vec(), b"before".to_vec());
                let rules = recipe.write_by(recipe.rules, url.as_bytes(), &mut draft, &mut expected);
                match write_shortcut(&recipe, url.as_bytes(), &mut draft, &mut key) {
                    Some(applied) => {
                        assert_eq!((Ok(applied), &key), (rules, &expected), "{name} {url:?}");
                        shortcuts += 1;
                    }
                    None => assert_eq!(key, b"before", "{name} {url:?}"),
                }
                keys.extend_from_slice(&expected[b"before".len()..]);
                ends.push(keys.len() as i32);
                count += u64::from(rules.is_ok());
                rules.iter().flat_map(|rules| rules.iter()).for_each(|rule| applied[rule] += 1);
                spans.push((urls.len(), url.len()));
                urls.extend_from_slice(url.as_bytes());
            }
            assert!((10_000..32_000).contains(&shortcuts), "{shortcuts}");
            let (mut texts, mut text_ends, mut text_count, mut counts) = (Vec::new(), vec![0], 0, [0; 64]);
            let mut all =
                RecipeKeys { texts: &mut texts, ends: &mut text_ends, count: &mut text_count, applied: &mut counts };
            let urls = spans.iter().map(|&(at, len)| Some(BufferedText::within(&urls, at, len)));
            recipe.write_keys(urls, &mut draft, &mut all);
            assert_eq!((texts, text_ends, text_count, counts), (keys, ends, count, applied));
        }
    }
}
