//! The recipes `surt-wayback` and `surt-ia`: the sort-friendly keys (SURT) of web archives.
//!
//! | recipe | equals | reads |
//! |---|---|---|
//! | `surt-wayback` | webarchive-commons since 1.3 (IPv6: 1.1.11), `WaybackURLKeyMaker` | six schemes before `://`; all other text follows `http://` |
//! | `surt-ia` | Python surt 0.3.1, `surt()` | any scheme; `http:` with any number of slashes |
//!
//! Indexes of archives were made with these programs, so their mistakes are reproduced. Where the programs process text,
//! these recipes process bytes: bytes that are not UTF-8 are percent-encoded.
//!
//! Known differences: `mailto:user@host`, which webarchive-commons turns into the home page of the host, has no key in
//! `surt-wayback`. Non-ASCII hosts are processed by the current UTS 46, with the mapping of IDNA 2003 for the four
//! characters that differ. Code points newer than Unicode 3.2 may be mapped differently. A right-to-left label that ends
//! in a digit is accepted, which Python's IDNA rejects. Non-ASCII digits, which Java accepts, are not a port.

use super::definition::RecipeDefinition;
use super::draft::{
    Draft, is_account_scheme, is_line_break_or_tab, split_at_colon, trim_to, write_reversed, write_surt,
};
use super::host::parse_port;
use super::surt_shortcut;
use crate::iri::{Component, Fault, FaultKind, find_scheme};
use crate::kernel::any_byte;

pub(super) const SURT_WAYBACK: RecipeDefinition = RecipeDefinition {
    name: "surt-wayback",
    version: 2,
    read: read_wayback,
    rules: "fragment userinfo scheme-case host-ascii host-dots host-ipv4 host-case www port path-escapes \
            path-segments query-escapes path-case path-session path-slash query-session query-case query-sort \
            query-empty",
    write: write_surt,
    shortcut: Some(&surt_shortcut::WAYBACK),
};

pub(super) const SURT_IA: RecipeDefinition = RecipeDefinition {
    name: "surt-ia",
    version: 1,
    read: read_ia,
    rules: "fragment userinfo host-ascii-ignoring host-dot-pairs host-ipv4-short host-case host-empty www-once \
            port path-escapes path-segments query-escapes del-escapes path-case path-session path-slash \
            query-session query-case query-sort query-empty",
    write: write_ia,
    shortcut: Some(&surt_shortcut::IA),
};

/// Splits a URL like `WaybackURLKeyMaker` and its parser.
///
/// # Errors
/// The port is not a number that fits into a signed 32-bit integer, or the URL names an account.
fn read_wayback(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    if url.is_empty() {
        draft.literal_key.set(Some(b"-"));
        return Ok(());
    }
    if url.starts_with(b"filedesc") || url.starts_with(b"warcinfo") {
        draft.literal_key.set(Some(url));
        return Ok(());
    }
    if let Some(host) = url.strip_prefix(b"dns:") {
        let mut key = Vec::with_capacity(host.len() + 1);
        write_reversed(host, &mut key);
        key.push(b')');
        draft.literal_key.set(Some(&key));
        return Ok(());
    }
    // Java's `trim`.
    let mut text = trim_to(url, |byte| *byte > b' ');
    let cleaned;
    if any_byte(text, |byte| is_line_break_or_tab(byte) | (byte == 0xC2) | (byte == 0xE2)) {
        cleaned = without_line_breaks(text);
        text = &cleaned;
    }
    if [&b"dns:"[..], b"filedesc:", b"warcinfo:"].iter().any(|scheme| text.starts_with(scheme)) {
        // With white space before them, these URLs reach the parser, whose result is cut at a `(`.
        let key = memchr::memchr(b'(', text).map_or(url, |at| &text[at + 1..]);
        draft.literal_key.set(Some(key));
        return Ok(());
    }
    if find_scheme(text).is_some_and(|len| is_account_scheme(&text[..len])) {
        return Err(Fault::new(FaultKind::Scheme, Component::Scheme, 0));
    }
    let (scheme, rest) = split_known_scheme(text);
    draft.scheme.extend_from_slice(scheme);
    read_wayback_authority(draft.read_after_authority(rest), draft)
}

/// Returns `text` without TAB, LF, CR, U+0085, U+2028 and U+2029.
fn without_line_breaks(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, tail)) = rest.split_first() {
        let len = match rest {
            [b'\n' | b'\r' | b'\t', ..] => 1,
            [0xC2, 0x85, ..] => 2,
            [0xE2, 0x80, 0xA8 | 0xA9, ..] => 3,
            _ => {
                out.push(byte);
                rest = tail;
                continue;
            }
        };
        rest = &rest[len..];
    }
    out
}

/// Returns the scheme and the text after its `//`. Text that does not begin with one of six schemes follows `http://`.
/// More slashes are removed if the scheme is `http` or `https` in lower case.
fn split_known_scheme(text: &[u8]) -> (&[u8], &[u8]) {
    const KNOWN: [&[u8]; 6] = [b"http", b"https", b"ftp", b"mms", b"rtsp", b"wais"];
    let known = find_scheme(text).map(|len| (&text[..len], &text[len + 1..]));
    let known = known.filter(|(scheme, _)| KNOWN.iter().any(|name| scheme.eq_ignore_ascii_case(name)));
    let known = known.and_then(|(scheme, rest)| Some((scheme, rest.strip_prefix(b"//")?)));
    let (scheme, rest) = known.unwrap_or((b"http", text));
    match scheme {
        b"http" | b"https" => (scheme, without_slashes(rest)),
        _ => (scheme, rest),
    }
}

fn without_slashes(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|&&byte| byte == b'/').count()..]
}

/// Splits an authority. The userinfo ends at the first `@`, the host after its `]` or at the first `:`. An IPv6 address
/// loses its brackets, unless it has dots.
fn read_wayback_authority(authority: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let at = memchr::memchr(b'@', authority);
    draft.userinfo.set(at.map(|at| &authority[..at]));
    let rest = &authority[at.map_or(0, |at| at + 1)..];
    let close = memchr::memchr(b']', rest).filter(|_| rest.starts_with(b"["));
    let (host, port) = match close {
        Some(close) => {
            let inner = &rest[1..close];
            let is_plain = inner.iter().all(|&byte| byte == b':' || byte.is_ascii_hexdigit());
            (if is_plain { inner } else { &rest[..=close] }, split_at_colon(&rest[close..]).1)
        }
        None => split_at_colon(rest),
    };
    draft.host.set(Some(host));
    draft.read_java_port(port)
}

/// Splits a URL like Python's `surt.surt`.
///
/// # Errors
/// The port is not a number up to 65535, or the URL is only white space, for which the program raises an error.
fn read_ia(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    if url.is_empty() {
        draft.literal_key.set(Some(b"-"));
        return Ok(());
    }
    if url.starts_with(b"filedesc") {
        draft.literal_key.set(Some(url));
        return Ok(());
    }
    // Python's `strip`.
    let mut text = trim_to(url, |byte| !matches!(byte, b' ' | b'\t'..=b'\r'));
    let cleaned: Vec<u8>;
    if any_byte(text, is_line_break_or_tab) {
        cleaned = text.iter().copied().filter(|byte| !is_line_break_or_tab(*byte)).collect();
        text = &cleaned;
    }
    if text.is_empty() {
        return Err(Fault::of_reference(FaultKind::Empty));
    }
    while let Some(rest) = after_http(text).filter(|rest| after_http(rest).is_some()) {
        text = rest;
    }
    let (scheme, rest) = match find_scheme(text) {
        Some(len) => (&text[..len], &text[len + 1..]),
        None => (&b"http"[..], text),
    };
    draft.scheme.extend_from_slice(scheme);
    let has_scheme = rest.len() < text.len();
    let after_slashes = if has_scheme { rest.strip_prefix(b"//") } else { Some(rest) };
    match after_slashes {
        Some(rest) => read_ia_authority(draft.read_after_authority(rest), draft)?,
        None => draft.read_tail(rest),
    }
    if scheme.starts_with(b"http") && draft.host.get().is_none() {
        take_host_from_path(draft);
    }
    Ok(())
}

/// Returns the text after `http://` or `https://` in lower case.
fn after_http(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"http://").or_else(|| text.strip_prefix(b"https://"))
}

/// Reads `http:/host/path` and `http:host/path`: the first segment of the path is the host, colons included.
fn take_host_from_path(draft: &mut Draft) {
    let rest = without_slashes(&draft.path);
    let host_at = draft.path.len() - rest.len();
    if rest.is_empty() {
        draft.path.truncate(1);
        return;
    }
    let host_len = memchr::memchr(b'/', rest).unwrap_or(rest.len());
    draft.host.set(Some(&rest[..host_len]));
    draft.path.drain(..host_at + host_len);
    if draft.path.is_empty() {
        draft.path.push(b'/');
    }
}

/// Splits an authority. Final colons are ignored, the userinfo ends at the last `@`, brackets are not part of the host,
/// and an empty host is absent.
fn read_ia_authority(authority: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let end = authority.iter().rposition(|&byte| byte != b':').map_or(0, |last| last + 1);
    let authority = &authority[..end];
    let at = memchr::memrchr(b'@', authority);
    draft.userinfo.set(at.map(|at| &authority[..at]));
    let rest = &authority[at.map_or(0, |at| at + 1)..];
    let (host, port) = match memchr::memchr(b'[', rest) {
        Some(open) => {
            let inner = &rest[open + 1..];
            let close = memchr::memchr(b']', inner).unwrap_or(inner.len());
            (&inner[..close], split_at_colon(&inner[close..]).1)
        }
        None => split_at_colon(rest),
    };
    draft.host.set(Some(host).filter(|host| !host.is_empty()));
    let Some(port) = port.filter(|port| !port.is_empty()) else { return Ok(()) };
    match parse_port(port) {
        None => Err(Fault::new(FaultKind::Port, Component::Port, 0)),
        Some(0) => Ok(()),
        Some(number) => {
            draft.port.set(Some(number.to_string().as_bytes()));
            Ok(())
        }
    }
}

/// Writes a draft with a host as a SURT, and one without as scheme and path.
fn write_ia(draft: &Draft, out: &mut Vec<u8>) -> Result<(), Fault> {
    if draft.host.get().is_some_and(|host| !host.is_empty()) {
        return write_surt(draft, out);
    }
    out.extend_from_slice(&draft.scheme);
    out.push(b':');
    if draft.path.is_empty() && draft.query.get().is_some() {
        out.push(b'/');
    }
    draft.write_tail(out);
    Ok(())
}
