//! The recipe `w3lib`: `canonicalize_url` of w3lib, which Scrapy uses to compare requests.
//!
//! Ports and `www.` are kept, and fields of queries are encoded as in forms. URLs for which the program raises an error
//! have no key: malformed brackets and ports above 65535.
//!
//! Known differences: zones of IPv6 addresses; hosts in which compatibility normalization creates `/`, `?`, `#`, `@`, `:`
//! or `\` are accepted here; IPv4-mapped addresses are written with dots, as by Python since 3.13; hosts that IDNA 2003
//! converts and UTS 46 refuses, such as those with unassigned code points, stay as they are.

use std::net::Ipv6Addr;

use super::definition::RecipeDefinition;
use super::draft::{Draft, is_line_break_or_tab, replace_text, split_at_colon, trim_to};
use super::host::{parse_port, to_ascii};
use super::path;
use crate::iri::class::{QUERY, UNRESERVED};
use crate::iri::{
    Component, Fault, FaultKind, decode_escapes, escape_invalid_utf8, find_scheme, ipv6_text, octets, write_encoded,
    write_form_encoded,
};
use crate::kernel::{escape, parse_bytes};

pub(super) const W3LIB: RecipeDefinition = RecipeDefinition {
    name: "w3lib",
    version: 1,
    read,
    rules: "fragment userinfo-recode host-ascii-or-raw host-ipv6 host-case path-fill-any path-decode \
            path-dots-params query-form",
    write,
    shortcut: None,
};

/// Schemes in which `\` equals `/`.
const SPECIAL: [&[u8]; 6] = [b"ftp", b"file", b"http", b"https", b"ws", b"wss"];

/// Schemes whose last path segment may have parameters after a `;` (Python's `uses_params`).
#[rustfmt::skip]
const WITH_PARAMS: [&[u8]; 14] = [
    b"", b"ftp", b"hdl", b"prospero", b"http", b"https", b"shttp", b"rtsp", b"rtspu", b"sip", b"sips", b"mms", b"sftp",
    b"tel",
];

/// Schemes that are written with `//` even without an authority (Python's `uses_netloc`).
#[rustfmt::skip]
const WITH_AUTHORITY: [&[u8]; 25] = [
    b"ftp", b"http", b"gopher", b"nntp", b"telnet", b"imap", b"wais", b"file", b"mms", b"https", b"shttp", b"snews",
    b"prospero", b"rtsp", b"rtsps", b"rtspu", b"rsync", b"svn", b"svn+ssh", b"sftp", b"nfs", b"git", b"git+ssh", b"ws",
    b"wss",
];

/// Splits a URL: removes controls and spaces around it and line breaks within it, and escapes bytes that are not UTF-8.
///
/// # Errors
/// The brackets of the authority do not contain an IPv6 address, or the port is not a number up to 65535.
fn read(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let mut text = escape_invalid_utf8(trim_to(url, |byte| *byte > b' ')).into_owned().into_bytes();
    text.retain(|byte| !is_line_break_or_tab(*byte));
    if let Some(len) = find_scheme(&text) {
        draft.scheme.extend(text.drain(..=len).take(len).map(|byte| byte.to_ascii_lowercase()));
    }
    if SPECIAL.contains(&&draft.scheme[..]) {
        let end = text.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(text.len());
        text[..end].iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
    }
    match text.strip_prefix(b"//") {
        Some(rest) => read_authority(draft.read_after_authority(rest), draft),
        None => {
            draft.read_tail(&text);
            Ok(())
        }
    }
}

/// Splits an authority. The userinfo ends at the last `@`, the host at the first `:` after it. An empty authority is
/// absent.
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
        Some(port) => Some(parse_port(port).ok_or(Fault::new(FaultKind::Port, Component::Port, 0))?),
        None => None,
    };
    if at.is_some() || port.is_some() || !host.is_empty() {
        draft.userinfo.set(at.map(|at| &authority[..at]));
        draft.port.set(port.map(|port| port.to_string()).as_deref().map(str::as_bytes));
        draft.host.set(Some(host));
    }
    Ok(())
}

/// Splits `[IPv6]:port` and `[IPvFuture]:port`. An IPv6 address keeps its brackets, and so does an IPvFuture with a `:`.
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
    parse_bytes::<Ipv6Addr>(inner).is_some().then_some((&text[..=close], port))
}

/// Decodes user name and password and encodes them again.
pub(super) fn recode_userinfo(draft: &mut Draft) -> bool {
    let is_encoded = |byte| !UNRESERVED.contains(byte) && !b"!$&'()*+,".contains(&byte);
    let spare = &mut draft.spare;
    let Some(userinfo) = draft.userinfo.get_mut() else { return false };
    spare.clear();
    for (i, part) in userinfo.splitn(2, |&byte| byte == b':').enumerate() {
        if i > 0 {
            spare.push(b':');
        }
        write_encoded(&decode_escapes(part), is_encoded, spare);
    }
    replace_text(userinfo, spare)
}

/// Converts a non-ASCII host to lower case, and to ASCII by IDNA if it is valid.
pub(super) fn host_to_ascii_or_raw(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut().filter(|host| !host.is_ascii()) else { return false };
    let Ok(text) = std::str::from_utf8(host) else { return false };
    let text = text.to_lowercase();
    replace_text(host, &mut to_ascii(&text).unwrap_or(text).into_bytes())
}

/// Writes an IPv6 address in brackets as in RFC 5952.
pub(super) fn shorten_ipv6(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut() else { return false };
    let Some(text) = ipv6_text(host) else { return false };
    replace_text(host, &mut text.into_bytes())
}

/// Returns the offset of the `;` before the parameters of the last segment, or the length of the path.
fn params_at(draft: &Draft) -> usize {
    let path = &draft.path;
    let segment = memchr::memrchr(b'/', path).map_or(0, |slash| slash + 1);
    let semicolon = memchr::memchr(b';', &path[segment..]).map(|at| segment + at);
    semicolon.filter(|_| WITH_PARAMS.contains(&&draft.scheme[..])).unwrap_or(path.len())
}

/// Decodes escapes of the path except those of `%`, `/`, `;` and `?`, and encodes what must be encoded. Nothing is decoded
/// in parameters; empty ones are removed.
pub(super) fn decode_path(draft: &mut Draft) -> bool {
    let params_at = params_at(draft);
    let (path, spare) = (&mut draft.path, &mut draft.spare);
    let (head, params) = path.split_at(params_at);
    let is_kept = |byte| QUERY.contains(byte) || matches!(byte, b'[' | b']' | b'|' | b'%');
    spare.clear();
    for (byte, is_escaped) in octets(head) {
        let stays_escaped = is_escaped && b"%/;?".contains(&byte);
        if is_kept(byte) && !stays_escaped { spare.push(byte) } else { spare.extend_from_slice(&escape(byte)) }
    }
    if params.len() > 1 {
        write_encoded(params, |byte| !QUERY.contains(byte) && byte != b'%', spare);
    }
    replace_text(path, spare)
}

/// Replaces an empty path by `/`, with or without a host.
pub(super) fn fill_any_path(draft: &mut Draft) -> bool {
    let is_empty = params_at(draft) == 0;
    if is_empty {
        draft.path.insert(0, b'/');
    }
    is_empty
}

/// Removes dot segments before the parameters.
pub(super) fn resolve_dots(draft: &mut Draft) -> bool {
    let params_at = params_at(draft);
    path::remove_dots_before(params_at, draft)
}

/// Decodes the names and values of the query, sorts them, and encodes them like forms: each with `=`, spaces as `+`.
pub(super) fn form_query(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let Some(query) = draft.query.get_mut() else { return false };
    let decoded = |text: &[u8]| {
        let spaced: Vec<u8> = text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
        decode_escapes(&spaced).into_owned()
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
        write_form_encoded(name, spare);
        spare.push(b'=');
        write_form_encoded(value, spare);
    }
    replace_text(query, spare)
}

/// Writes the URL like Python: without an empty query, and with `//` for the schemes that use it.
fn write(draft: &Draft, out: &mut Vec<u8>) -> Result<(), Fault> {
    let has_authority = draft.host.get().is_some();
    let is_rooted = draft.path.is_empty() || draft.path.starts_with(b"/");
    draft.write_scheme(out);
    if has_authority {
        draft.write_authority(out);
    } else if draft.path.starts_with(b"//") || (is_rooted && WITH_AUTHORITY.contains(&&draft.scheme[..])) {
        out.extend_from_slice(b"//");
    }
    out.extend_from_slice(&draft.path);
    for (delimiter, component) in [(b'?', &draft.query), (b'#', &draft.fragment)] {
        if let Some(text) = component.get().filter(|text| !text.is_empty()) {
            out.push(delimiter);
            out.extend_from_slice(text);
        }
    }
    Ok(())
}
