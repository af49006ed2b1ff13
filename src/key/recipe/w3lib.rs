//! Rules of w3lib's `canonicalize_url`, which Scrapy tells requests apart by, and its way to read and write. In: bytes of
//! a URL; a [`Draft`]. Out: the draft, and whether the rule fired; the key. Ports and `www.` stay, fields of queries come
//! back as forms encode them. Refuses what that program raises an error for: broken brackets, ports above 65535.
//!
//! Known differences: a zone of an IPv6 address; hosts that compatibility normalisation gives a `/`, `?`, `#`, `@`, `:`
//! or `\` are taken here; IPv4-mapped addresses are written with dots, as by Python from 3.13 on.

use std::net::Ipv6Addr;

use super::draft::Draft;
use super::escapes::{escape, is_unreserved, is_uri_text, write_decoded, write_escape};
use super::host::to_ascii;
use crate::iri::{Component, Fault, FaultKind, find_scheme};

/// Schemes in which `\` is read as `/`.
const SPECIAL: [&[u8]; 6] = [b"ftp", b"file", b"http", b"https", b"ws", b"wss"];

/// Schemes whose last segment may have parameters behind a `;` (Python's `uses_params`).
const WITH_PARAMS: [&[u8]; 14] = [
    b"",
    b"ftp",
    b"hdl",
    b"prospero",
    b"http",
    b"https",
    b"shttp",
    b"rtsp",
    b"rtspu",
    b"sip",
    b"sips",
    b"mms",
    b"sftp",
    b"tel",
];

/// Schemes that are written with `//` even without an authority (Python's `uses_netloc`).
const WITH_AUTHORITY: [&[u8]; 25] = [
    b"ftp",
    b"http",
    b"gopher",
    b"nntp",
    b"telnet",
    b"imap",
    b"wais",
    b"file",
    b"mms",
    b"https",
    b"shttp",
    b"snews",
    b"prospero",
    b"rtsp",
    b"rtsps",
    b"rtspu",
    b"rsync",
    b"svn",
    b"svn+ssh",
    b"sftp",
    b"nfs",
    b"git",
    b"git+ssh",
    b"ws",
    b"wss",
];

/// Reads a URL: controls and spaces around it and line ends within it are gone, bytes that are not UTF-8 escaped.
///
/// # Errors
/// The authority's brackets hold no IPv6 address, or the port is no number up to 65535.
pub fn read(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let mut text = Vec::with_capacity(url.len());
    for chunk in url.utf8_chunks() {
        text.extend_from_slice(chunk.valid().as_bytes());
        chunk.invalid().iter().for_each(|&byte| write_escape(byte, &mut text));
    }
    text.retain(|byte| !matches!(byte, b'\t' | b'\n' | b'\r'));
    let mut text = trim(&mut text);
    if let Some(len) = find_scheme(text) {
        draft.scheme.extend(text[..len].iter().map(u8::to_ascii_lowercase));
        text = &mut text[len + 1..];
    }
    if SPECIAL.contains(&&draft.scheme[..]) {
        let end = text.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(text.len());
        text[..end].iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
    }
    let mut rest = &text[..];
    if let Some(after) = rest.strip_prefix(b"//") {
        let end = after.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(after.len());
        read_authority(&after[..end], draft)?;
        rest = &after[end..];
    }
    draft.read_tail(rest);
    Ok(())
}

fn trim(text: &mut [u8]) -> &mut [u8] {
    let is_inner = |byte: &u8| *byte > b' ';
    let first = text.iter().position(is_inner).unwrap_or(text.len());
    let end = text.iter().rposition(is_inner).map_or(first, |last| last + 1);
    &mut text[first..end]
}

/// The userinfo ends at the last `@`, the host at the first `:` behind it. An authority without a byte is none.
fn read_authority(authority: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let at = memchr::memrchr(b'@', authority);
    let rest = &authority[at.map_or(0, |at| at + 1)..];
    let brackets = [b'[', b']'].map(|bracket| memchr::memchr(bracket, authority).is_some());
    let (host, port) = match brackets {
        [false, false] => split_at_colon(rest),
        [true, true] => bracketed(rest).ok_or(Fault::new(FaultKind::IpLiteral, Component::Host, 0))?,
        _ => return Err(Fault::new(FaultKind::IpLiteral, Component::Host, 0)),
    };
    let port = match port.filter(|port| !port.is_empty()) {
        Some(port) => Some(number(port).ok_or(Fault::new(FaultKind::Port, Component::Port, 0))?),
        None => None,
    };
    if at.is_some() || port.is_some() || !host.is_empty() {
        draft.userinfo.set(at.map(|at| &authority[..at]));
        draft.port.set(port.map(|port| port.to_string()).as_deref().map(str::as_bytes));
        draft.host.set(Some(host));
    }
    Ok(())
}

fn split_at_colon(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    match memchr::memchr(b':', text) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    }
}

/// `[IPv6]` with its brackets, or what stands in those of an IPvFuture; then `:port` or nothing.
fn bracketed(text: &[u8]) -> Option<(&[u8], Option<&[u8]>)> {
    let close = memchr::memchr(b']', text)?;
    let inner = text.strip_prefix(b"[")?.get(..close - 1)?;
    let port = match &text[close + 1..] {
        [] => None,
        rest => Some(rest.strip_prefix(b":")?),
    };
    if inner.first() == Some(&b'v') {
        let dot = memchr::memchr(b'.', inner)?;
        let is_future = dot > 1 && inner[1..dot].iter().all(u8::is_ascii_hexdigit) && dot + 1 < inner.len();
        let host = if inner.contains(&b':') { &text[..=close] } else { inner };
        return is_future.then_some((host, port));
    }
    address(inner).is_some().then_some((&text[..=close], port))
}

fn address(text: &[u8]) -> Option<Ipv6Addr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn number(digits: &[u8]) -> Option<u16> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Decodes user name and password and encodes them anew.
pub fn recode_userinfo(draft: &mut Draft) -> bool {
    let (spare, is_kept) = (&mut draft.spare, |byte| is_unreserved(byte) || b"!$&'()*+,".contains(&byte));
    let Some(userinfo) = draft.userinfo.get_mut() else { return false };
    let mut decoded = Vec::with_capacity(userinfo.len());
    spare.clear();
    for (i, part) in userinfo.splitn(2, |&byte| byte == b':').enumerate() {
        if i > 0 {
            spare.push(b':');
        }
        decoded.clear();
        write_decoded(part, &mut decoded);
        decoded.iter().for_each(|&byte| if is_kept(byte) { spare.push(byte) } else { write_escape(byte, spare) });
    }
    swap(spare, userinfo)
}

/// Lower-cases a host beyond ASCII and makes it ASCII by IDNA; where that fails it stays in lower case.
pub fn host_to_ascii_or_raw(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut().filter(|host| !host.is_ascii()) else { return false };
    let Ok(text) = std::str::from_utf8(host) else { return false };
    let text = text.to_lowercase();
    let ascii = to_ascii(&text).unwrap_or(text).into_bytes();
    let changed = ascii != *host;
    *host = ascii;
    changed
}

/// Writes an IPv6 address in brackets as RFC 5952 has it.
pub fn shorten_ipv6(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut() else { return false };
    let inner = host.strip_prefix(b"[").and_then(|inner| inner.strip_suffix(b"]"));
    let Some(address) = inner.and_then(address) else { return false };
    let text = format!("[{address}]").into_bytes();
    let changed = text != *host;
    *host = text;
    changed
}

/// Where the parameters of the last segment begin, at their `;`; the path's end if it has none.
fn params_at(draft: &Draft) -> usize {
    let path = &draft.path;
    let segment = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    let semicolon = memchr::memchr(b';', &path[segment..]).map(|at| segment + at);
    semicolon.filter(|_| WITH_PARAMS.contains(&&draft.scheme[..])).unwrap_or(path.len())
}

/// Decodes escapes of the path but those of `%`, `/`, `;` and `?`, and encodes what may not stand in one. Of parameters
/// nothing is decoded; idle ones are taken away.
pub fn least_path_escapes(draft: &mut Draft) -> bool {
    let params_at = params_at(draft);
    let (path, spare) = (&mut draft.path, &mut draft.spare);
    let (head, params) = path.split_at(params_at);
    let is_kept = |byte| is_uri_text(byte) || matches!(byte, b'[' | b']' | b'|' | b'%');
    spare.clear();
    let mut at = 0;
    while at < head.len() {
        let found = head.get(at..at + 3).and_then(escape);
        match found.unwrap_or(head[at]) {
            byte if found.is_some() && b"%/;?".contains(&byte) => write_escape(byte, spare),
            byte if is_kept(byte) => spare.push(byte),
            byte => write_escape(byte, spare),
        }
        at += if found.is_some() { 3 } else { 1 };
    }
    if params.len() > 1 {
        let is_kept = |byte| is_uri_text(byte) || byte == b'%';
        params.iter().for_each(|&byte| if is_kept(byte) { spare.push(byte) } else { write_escape(byte, spare) });
    }
    swap(spare, path)
}

/// Gives a URL the path `/` if it has none, host or no host.
pub fn fill_any_path(draft: &mut Draft) -> bool {
    let fires = params_at(draft) == 0;
    if fires {
        draft.path.insert(0, b'/');
    }
    fires
}

/// Removes dot segments as RFC 3986 section 5.2.4 says, before parameters.
pub fn resolve_dots(draft: &mut Draft) -> bool {
    let params_at = params_at(draft);
    let (path, spare) = (&mut draft.path, &mut draft.spare);
    if !path.starts_with(b"/") || memchr::memmem::find(&path[..params_at], b"/.").is_none() {
        return false;
    }
    spare.clear();
    spare.extend_from_slice(&path[..params_at]);
    let len = crate::iri::remove_dot_segments(spare);
    spare.truncate(len);
    spare.extend_from_slice(&path[params_at..]);
    swap(spare, path)
}

/// Decodes the names and values of the query, sorts them, and encodes them as forms do: each with its `=`, spaces as `+`.
pub fn form_query(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let Some(query) = draft.query.get_mut() else { return false };
    let decoded = |text: &[u8]| {
        let spaced: Vec<u8> = text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
        let mut out = Vec::with_capacity(text.len());
        write_decoded(&spaced, &mut out);
        out
    };
    let fields = query.split(|&byte| byte == b'&').filter(|field| !field.is_empty()).map(|field| {
        let name_len = memchr::memchr(b'=', field).unwrap_or(field.len());
        (decoded(&field[..name_len]), decoded(field.get(name_len + 1..).unwrap_or_default()))
    });
    let mut fields: Vec<_> = fields.collect();
    fields.sort();
    spare.clear();
    for (i, (name, value)) in fields.iter().enumerate() {
        if i > 0 {
            spare.push(b'&');
        }
        write_form(name, spare);
        spare.push(b'=');
        write_form(value, spare);
    }
    swap(spare, query)
}

fn write_form(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b' ' => out.push(b'+'),
            byte if is_unreserved(byte) => out.push(byte),
            byte => write_escape(byte, out),
        }
    }
}

fn swap(spare: &mut Vec<u8>, text: &mut Vec<u8>) -> bool {
    let changed = spare != text;
    std::mem::swap(spare, text);
    changed
}

/// Appends the key: Python's way to put a URL together, which knows no empty query and writes `//` where schemes use it.
pub fn write(draft: &Draft, out: &mut Vec<u8>) {
    let has_authority = draft.host.get().is_some();
    let is_rooted = draft.path.is_empty() || draft.path.starts_with(b"/");
    if !draft.scheme.is_empty() {
        out.extend_from_slice(&draft.scheme);
        out.push(b':');
    }
    if has_authority {
        draft.write_authority(out);
    } else if draft.path.starts_with(b"//") || (is_rooted && WITH_AUTHORITY.contains(&&draft.scheme[..])) {
        out.extend_from_slice(b"//");
    }
    out.extend_from_slice(&draft.path);
    if let Some(query) = draft.query.get().filter(|query| !query.is_empty()) {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    if let Some(fragment) = draft.fragment.get().filter(|fragment| !fragment.is_empty()) {
        out.push(b'#');
        out.extend_from_slice(fragment);
    }
}
