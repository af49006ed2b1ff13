//! `file` URLs by the URL Standard: its states *file*, *file slash*, *file host* and *path*.
//!
//! The url crate predates the rules of the standard for hosts and empty segments of these URLs. Queries, fragments and
//! hosts are still parsed by the crate. References are expected without surrounding white space, bases as `href`.

use url::{EncodingOverride, ParseError, Position, Url};

use super::host::parse_host;
use crate::iri::class::{ALPHA, CONTROL, NON_ASCII};
use crate::iri::parts::find_scheme;
use crate::iri::percent::write_encoded;
use crate::kernel::ByteSet;

/// The standard's path percent-encode set.
const PATH_ENCODED: ByteSet = CONTROL.or(NON_ASCII).or(ByteSet::of(b" \"#<>?^`{}"));

/// A `file` URL. The path is a list of segments; the host may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FileUrl {
    host: String,
    path: Vec<String>,
    /// Query and fragment as written, with `?` and `#`.
    tail: String,
}

/// The part of `reference` after `file:`, or all of it if it has no scheme and its base is a `file` URL; `None` if the
/// result is not a `file` URL.
pub(super) fn find_file<'a>(reference: &'a str, base: Option<&str>) -> Option<&'a str> {
    match find_scheme(reference.as_bytes()) {
        Some(len) => reference[..len].eq_ignore_ascii_case("file").then(|| &reference[len + 1..]),
        None => base.is_some_and(|base| base.starts_with("file:")).then_some(reference),
    }
}

/// The `href` of the `file` URL whose text after the scheme is `rest`.
pub(super) fn file_href(rest: &str, base: Option<&str>, encoding: EncodingOverride) -> Result<String, ParseError> {
    let base = base.and_then(FileUrl::of_href);
    let tail_at = rest.find(['?', '#']).unwrap_or(rest.len());
    let (hierarchy, tail) = rest.split_at(tail_at);
    let mut url = file_state(hierarchy, base.as_ref())?;
    // An empty reference and a reference with only a fragment keep the query of the base.
    let kept = if hierarchy.is_empty() && !tail.starts_with('?') { base.as_ref().map(FileUrl::query) } else { None };
    url.tail = kept.unwrap_or_default().to_string() + &encode_tail(tail, encoding)?;
    Ok(url.href())
}

/// *File state*: nothing of `hierarchy` is read yet.
fn file_state(hierarchy: &str, base: Option<&FileUrl>) -> Result<FileUrl, ParseError> {
    if let Some(rest) = hierarchy.strip_prefix(is_slash) {
        return file_slash_state(rest, base);
    }
    let Some(base) = base else { return Ok(FileUrl::default().path_state(hierarchy)) };
    let mut url = FileUrl { tail: String::new(), ..base.clone() };
    if hierarchy.is_empty() {
        return Ok(url);
    }
    if starts_with_drive(hierarchy) {
        url.path.clear()
    } else {
        url.shorten()
    }
    Ok(url.path_state(hierarchy))
}

/// *File slash state*: one slash is read.
fn file_slash_state(rest: &str, base: Option<&FileUrl>) -> Result<FileUrl, ParseError> {
    if let Some(rest) = rest.strip_prefix(is_slash) {
        return file_host_state(rest);
    }
    let mut url = FileUrl::default();
    if let Some(base) = base {
        url.host.clone_from(&base.host);
        let drive = base.path.first().filter(|first| is_drive(first) && first.ends_with(':'));
        if !starts_with_drive(rest) {
            url.path.extend(drive.cloned());
        }
    }
    Ok(url.path_state(rest))
}

/// *File host state*: two slashes are read. A drive letter here is not a host.
fn file_host_state(rest: &str) -> Result<FileUrl, ParseError> {
    let (host, path) = rest.split_at(rest.find(is_slash).unwrap_or(rest.len()));
    if is_drive(host) {
        return Ok(FileUrl::default().path_state(rest));
    }
    let host = if host.is_empty() { String::new() } else { parse_host(host)? };
    let host = if host == "localhost" { String::new() } else { host };
    Ok(FileUrl { host, ..FileUrl::default() }.path_state(path.strip_prefix(is_slash).unwrap_or(path)))
}

impl FileUrl {
    /// Parses an `href`.
    fn of_href(href: &str) -> Option<FileUrl> {
        let rest = href.strip_prefix("file://")?;
        let (hierarchy, tail) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let (host, path) = hierarchy.split_once('/')?;
        let path = path.split('/').map(str::to_string).collect();
        Some(FileUrl { host: host.to_string(), path, tail: tail.to_string() })
    }

    fn href(&self) -> String {
        format!("file://{}/{}{}", self.host, self.path.join("/"), self.tail)
    }

    fn query(&self) -> &str {
        &self.tail[..self.tail.find('#').unwrap_or(self.tail.len())]
    }

    /// *Path state*: appends segments and applies dot segments.
    fn path_state(mut self, text: &str) -> FileUrl {
        let mut segments = text.split(is_slash).peekable();
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            match segment.to_ascii_lowercase().replace("%2e", ".").as_str() {
                ".." => {
                    self.shorten();
                    self.path.extend(is_last.then(String::new));
                }
                "." => self.path.extend(is_last.then(String::new)),
                _ if self.path.is_empty() && is_drive(segment) => self.path.push(segment.replace('|', ":")),
                _ => self.path.push(encode_segment(segment)),
            }
        }
        self
    }

    /// *Shorten a URL's path*: removes the last segment, except a single drive letter.
    fn shorten(&mut self) {
        if !matches!(&self.path[..], [drive] if is_drive(drive) && drive.ends_with(':')) {
            self.path.pop();
        }
    }
}

fn is_slash(c: char) -> bool {
    c == '/' || c == '\\'
}

/// *Windows drive letter*: a letter, then `:` or `|`.
fn is_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter, b':' | b'|'] if ALPHA.contains(*letter))
}

/// *Starts with a Windows drive letter*: in a hierarchy, a slash or nothing follows the letter.
fn starts_with_drive(text: &str) -> bool {
    text.split(is_slash).next().is_some_and(is_drive)
}

fn encode_segment(segment: &str) -> String {
    let mut out = Vec::with_capacity(segment.len());
    write_encoded(segment.as_bytes(), |byte| PATH_ENCODED.contains(byte), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Encodes query and fragment as for every special scheme.
fn encode_tail(tail: &str, encoding: EncodingOverride) -> Result<String, ParseError> {
    let base = Url::parse("http://h/")?;
    let url = Url::options().base_url(Some(&base)).encoding_override(encoding).parse(tail)?;
    Ok(url[Position::AfterPath..].to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::iri::whatwg_href;

    #[test]
    fn file_urls_with_hosts_drives_and_empty_segments() {
        let cases = [
            ("file:\\\\//", None, "file:////"),
            ("file://spider///", None, "file://spider///"),
            ("file://localhost//a//../..//", None, "file://///"),
            ("file://example.net/C:/", None, "file://example.net/C:/"),
            ("FILE:.//p", None, "file:////p"),
            ("C|\n/", Some("file://host/dir/file"), "file://host/C:/"),
            ("/", Some("file://h/C:/a/b"), "file://h/C:/"),
            ("/c:/foo/bar", Some("file://host/path"), "file://host/c:/foo/bar"),
            ("//localhost//pig", Some("file://lion/"), "file:////pig"),
            ("../..", Some("file:///C:/a?q#f"), "file:///C:/"),
            ("#g", Some("file://h/C:/a?q#f"), "file://h/C:/a?q#g"),
            ("", Some("file://h/a?q#f"), "file://h/a?q"),
            ("?é'", Some("file://h/a?q#f"), "file://h/a?%C3%A9%27"),
            ("file:a/%2E%2e/é^ b", None, "file:///%C3%A9%5E%20b"),
            ("http:a", Some("file:///x"), "http://a/"),
        ];
        for (reference, base, href) in cases {
            assert_eq!(whatwg_href(reference, base, None).as_deref(), Ok(href), "{reference} {base:?}");
        }
        for reference in ["file://a:80/", "file://u@h/", "file://%/", "file://[1/"] {
            assert!(whatwg_href(reference, None, None).is_err(), "{reference}");
        }
    }

    proptest! {
        #[test]
        fn parsing_an_href_returns_it_unchanged(
            reference in "(file:)?[/\\\\]{0,4}(h|é|C[|:])?([/\\\\]|[.]{1,2}|%2e|C[|:]|[a^é ]|[?#]){0,10}",
            base in "file://(h)?/(C:)?(/[a.]{0,2}){0,3}([?]q)?",
        ) {
            if let Ok(href) = whatwg_href(&reference, Some(&base), None) {
                prop_assert_eq!(whatwg_href(&href, None, None), Ok(href.clone()));
                prop_assert_eq!(whatwg_href(&href, Some("http://h/"), None), Ok(href));
            }
        }
    }
}
