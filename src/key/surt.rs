//! How the two SURT programs read a URL and write its key. In: bytes of a URL, however broken. Out: a draft for the
//! rules, or the key where the program makes it without them, or the fault for which it gives none.
//!
//! | recipe | equals | reads |
//! |---|---|---|
//! | `surt-wayback` | webarchive-commons from 1.3 on, `WaybackURLKeyMaker` | six schemes before `://`; everything else is put behind `http://` |
//! | `surt-ia` | Python surt 0.3.1, `surt()` | any scheme; `http:` with any number of slashes |
//!
//! Known differences: hosts beyond ASCII go through UTS 46 as it now is, with the four characters that IDNA 2003 maps
//! differently mapped as there; code points newer than Unicode 3.2 may be mapped otherwise than the programs do, and a
//! right-to-left label that ends in a digit is taken, which Python's IDNA refuses. Java's digits beyond ASCII are no
//! port.
//!
//! Both are what archives' indices were made with, so their mistakes are kept. Where the programs take text, we take
//! bytes: those that are not UTF-8 are percent-encoded as they stand.

use super::recipe::Draft;
use super::recipe::draft::write_reversed;
use crate::iri::{Component, Fault, FaultKind, find_scheme};

/// What a reader made of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The draft holds its components.
    Parts,
    /// The key is written already; rules do not apply.
    Key,
}

/// Reads as `WaybackURLKeyMaker` and its parser do.
///
/// # Errors
/// The port is no number that fits 32 bits with a sign.
pub(super) fn read_wayback(url: &[u8], draft: &mut Draft, out: &mut Vec<u8>) -> Result<Reading, Fault> {
    if url.is_empty() {
        out.push(b'-');
        return Ok(Reading::Key);
    }
    if url.starts_with(b"filedesc") || url.starts_with(b"warcinfo") {
        out.extend_from_slice(url);
        return Ok(Reading::Key);
    }
    if let Some(host) = url.strip_prefix(b"dns:") {
        write_reversed(host, out);
        out.push(b')');
        return Ok(Reading::Key);
    }
    let mut text = trim(url);
    let cleaned;
    if text.iter().any(|byte| matches!(byte, b'\n' | b'\r' | b'\t' | 0xC2 | 0xE2)) {
        cleaned = without_stray_spacing(text);
        text = &cleaned;
    }
    if [&b"dns:"[..], b"filedesc:", b"warcinfo:"].iter().any(|scheme| text.starts_with(scheme)) {
        // Hidden behind spacing, these reach the parser, whose answer is cut at a `(`.
        let key = memchr::memchr(b'(', text).map_or(url, |at| &text[at + 1..]);
        out.extend_from_slice(key);
        return Ok(Reading::Key);
    }
    let (scheme, rest) = split_known_scheme(text);
    draft.scheme.extend_from_slice(scheme);
    read_wayback_authority(split_rest(rest, draft), draft)?;
    Ok(Reading::Parts)
}

/// Java's `trim`.
fn trim(text: &[u8]) -> &[u8] {
    let is_inner = |byte: &u8| *byte > b' ';
    let Some(first) = text.iter().position(is_inner) else { return b"" };
    let last = text.iter().rposition(is_inner).unwrap_or(first);
    &text[first..=last]
}

/// Without TAB, LF, CR, U+0085, U+2028 and U+2029.
fn without_stray_spacing(text: &[u8]) -> Vec<u8> {
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

/// The scheme and what follows its `//`. Text that begins with none of six schemes is wholly what follows `http://`;
/// further slashes are taken off where the scheme is `http` or `https` in lower case.
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

/// Puts path, query and fragment of what follows `//` into the draft; gives the authority.
fn split_rest<'a>(text: &'a [u8], draft: &mut Draft) -> &'a [u8] {
    let path_at = memchr::memchr3(b'/', b'?', b'#', text).unwrap_or(text.len());
    split_path(&text[path_at..], draft);
    &text[..path_at]
}

fn split_path(text: &[u8], draft: &mut Draft) {
    let fragment = memchr::memchr(b'#', text);
    let text = match fragment {
        Some(at) => {
            draft.fragment.set(Some(&text[at + 1..]));
            &text[..at]
        }
        None => text,
    };
    let query = memchr::memchr(b'?', text);
    draft.query.set(query.map(|at| &text[at + 1..]));
    draft.path.extend_from_slice(&text[..query.unwrap_or(text.len())]);
}

/// The userinfo ends at the first `@`, the host at the first `:` behind it.
fn read_wayback_authority(authority: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let at = memchr::memchr(b'@', authority);
    draft.userinfo.set(at.map(|at| &authority[..at]));
    let host_at = at.map_or(0, |at| at + 1);
    let (host, port) = split_at_colon(&authority[host_at..]);
    draft.host.set(Some(host));
    let Some(port) = port.filter(|port| !port.is_empty()) else { return Ok(()) };
    let number = std::str::from_utf8(port).ok().and_then(|port| port.parse::<i32>().ok());
    let number = number.ok_or(Fault::new(FaultKind::Port, Component::Port, 0))?;
    // The program's own sign for "no port".
    if number != -1 {
        draft.port.set(Some(number.to_string().as_bytes()));
    }
    Ok(())
}

fn split_at_colon(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b':', text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// Reads as Python's `surt.surt` does.
///
/// # Errors
/// The port is no number of at most 65535; the URL is all spacing, which that program fails at.
pub(super) fn read_ia(url: &[u8], draft: &mut Draft, out: &mut Vec<u8>) -> Result<Reading, Fault> {
    if url.is_empty() {
        out.push(b'-');
        return Ok(Reading::Key);
    }
    if url.starts_with(b"filedesc") {
        out.extend_from_slice(url);
        return Ok(Reading::Key);
    }
    let mut text = strip(url);
    let cleaned: Vec<u8>;
    if text.iter().any(|byte| matches!(byte, b'\n' | b'\r' | b'\t')) {
        cleaned = text.iter().copied().filter(|byte| !matches!(byte, b'\n' | b'\r' | b'\t')).collect();
        text = &cleaned;
    }
    if text.is_empty() {
        return Err(Fault::new(FaultKind::Empty, Component::Reference, 0));
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
        Some(rest) => read_ia_authority(split_rest(rest, draft), draft)?,
        None => split_path(rest, draft),
    }
    if scheme.starts_with(b"http") && draft.host.get().is_none() {
        take_host_from_path(draft);
    }
    Ok(Reading::Parts)
}

/// Python's `strip` of bytes.
fn strip(text: &[u8]) -> &[u8] {
    let is_inner = |byte: &u8| !matches!(byte, b' ' | b'\t'..=b'\r');
    let Some(first) = text.iter().position(is_inner) else { return b"" };
    let last = text.iter().rposition(is_inner).unwrap_or(first);
    &text[first..=last]
}

/// What follows `http://` or `https://` in lower case.
fn after_http(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"http://").or_else(|| text.strip_prefix(b"https://"))
}

/// `http:/host/path` and `http:host/path`: whatever stands first in the path is the host, colons and all.
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

/// Final colons do not count; the userinfo ends at the last `@`; brackets are no part of the host; an empty host is none.
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
    let digits = port.iter().all(u8::is_ascii_digit).then_some(port);
    let number = digits.and_then(|port| std::str::from_utf8(port).ok()?.parse::<u16>().ok());
    match number {
        None => Err(Fault::new(FaultKind::Port, Component::Port, 0)),
        Some(0) => Ok(()),
        Some(number) => {
            draft.port.set(Some(number.to_string().as_bytes()));
            Ok(())
        }
    }
}

/// Writes the key of a draft that has a host as a SURT; one without, as scheme and path.
pub(super) fn write_ia(draft: &Draft, out: &mut Vec<u8>) {
    if draft.host.get().is_some_and(|host| !host.is_empty()) {
        return draft.write_surt(out);
    }
    out.extend_from_slice(&draft.scheme);
    out.push(b':');
    if draft.path.is_empty() && draft.query.get().is_some() {
        out.push(b'/');
    }
    draft.write_rest(out);
}
