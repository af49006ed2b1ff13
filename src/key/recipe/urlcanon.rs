//! The recipe `urlcanon-aggressive`: the `aggressive` canonicalizer of urlcanon.
//!
//! It accepts every URL. Everything before the first `:` is a scheme.
//!
//! Known differences: urlcanon reads addresses, and removes dots around hosts, before it converts hosts to ASCII, this recipe
//! afterwards. Hosts that UTS 46 maps to nothing are empty here; urlcanon keeps them. A lone `@` or port is an authority
//! here. Non-ASCII hosts are converted by UTS 46 alone, in urlcanon by IDNA 2008 first. Numbers with a sign, `_` or white
//! space are not addresses here. A host of dots is empty here, in urlcanon the address 0.0.0.0. A port that is not a number
//! stays as it is; urlcanon decodes its escapes and encodes its spaces and non-ASCII bytes.

use std::net::Ipv4Addr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::definition::RecipeDefinition;
use super::draft::{self, Draft, is_line_break_or_tab, replace_text, trim_to};
use super::escapes::{decode_all, reduce};
use super::session::{tagged_len, untagged_len};
use crate::iri::class::{CONTROL, NON_ASCII};
use crate::iri::{Fault, write_encoded};
use crate::kernel::{ByteSet, parse_digits};
use crate::key::write_joined;

pub(super) const URLCANON_AGGRESSIVE: RecipeDefinition = RecipeDefinition {
    name: "urlcanon-aggressive",
    version: 3,
    read,
    rules: "fragment userinfo host-ascii-special host-dots host-ipv4-browser host-ipv6 www-once port-special \
            scheme-http path-decode-all path-backslashes path-root path-dots-rfc path-slashes path-case \
            path-session-any path-slash query-decode-all query-sort-case query-case query-session-any query-ampersands \
            query-sort-bytes query-empty",
    write: draft::write_url,
    shortcut: None,
};

/// The special schemes of browsers, and gopher, with their default ports.
const SPECIAL: [(&[u8], &[u8]); 7] = [
    (b"ftp", b"21"),
    (b"gopher", b"70"),
    (b"http", b"80"),
    (b"https", b"443"),
    (b"ws", b"80"),
    (b"wss", b"443"),
    (b"file", b""),
];

fn is_special(scheme: &[u8]) -> bool {
    SPECIAL.iter().any(|(name, _)| *name == scheme)
}

/// Splits a URL: removes controls and spaces around it and tabs and line breaks within it. The default scheme is http.
fn read(url: &[u8], draft: &mut Draft) -> Result<(), Fault> {
    let mut text = trim_to(url, |byte| *byte > b' ').to_vec();
    text.retain(|byte| !is_line_break_or_tab(*byte));
    let mut rest = &text[..];
    if rest.first().is_some_and(u8::is_ascii_alphabetic)
        && let Some(colon) = memchr::memchr(b':', rest)
    {
        draft.scheme.extend(rest[..colon].iter().map(u8::to_ascii_lowercase));
        rest = &rest[colon + 1..];
    }
    let end = rest.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(rest.len());
    draft.read_tail(&rest[end..]);
    read_authority_and_path(&rest[..end], draft);
    if draft.scheme.is_empty() {
        draft.scheme.extend_from_slice(b"http");
        // The path of the URL without a scheme is split again, as that of an http URL.
        let path = std::mem::take(&mut draft.path);
        if !path.is_empty() {
            read_authority_and_path(&path, draft);
        }
    } else {
        reduce(&mut draft.scheme, &mut draft.spare);
    }
    Ok(())
}

/// Splits the text between the scheme and the query.
fn read_authority_and_path(text: &[u8], draft: &mut Draft) {
    let is_slash = |byte: &u8| matches!(byte, b'/' | b'\\');
    let slash_count = match &draft.scheme[..] {
        b"file" if text.len() > 1 && text[..2].iter().all(is_slash) => 2,
        b"file" => {
            draft.host.set(Some(b""));
            return draft.path.extend_from_slice(text);
        }
        scheme if is_special(scheme) => text.iter().take_while(|byte| is_slash(byte)).count(),
        _ if text.starts_with(b"//") => 2,
        _ => return draft.path.extend_from_slice(text),
    };
    let rest = &text[slash_count..];
    let ends = |byte: &u8| *byte == b'/' || (*byte == b'\\' && is_special(&draft.scheme));
    let end = rest.iter().position(ends).unwrap_or(rest.len());
    draft.path.extend_from_slice(&rest[end..]);
    if slash_count > 0 || end > 0 {
        read_authority(&rest[..end], draft);
    }
}

/// Splits an authority. The userinfo ends at the last `@`, the host after its `]` or at the first `:`. File URLs only have
/// a host.
fn read_authority(authority: &[u8], draft: &mut Draft) {
    if draft.scheme == b"file" {
        return draft.host.set(Some(authority));
    }
    let at = memchr::memrchr(b'@', authority);
    draft.userinfo.set(at.map(|at| &authority[..at]));
    let rest = &authority[at.map_or(0, |at| at + 1)..];
    let literal = rest.first().filter(|byte| **byte == b'[').and_then(|_| memchr::memchr(b']', rest));
    let end = match literal {
        Some(close) if matches!(rest.get(close + 1), None | Some(b':')) => close + 1,
        _ => memchr::memchr(b':', rest).unwrap_or(rest.len()),
    };
    draft.host.set(Some(&rest[..end]));
    draft.port.set(rest.get(end + 1..));
}

/// Removes the default port of a special scheme.
pub(super) fn drop_special_port(draft: &mut Draft) -> bool {
    let default = SPECIAL.iter().find(|(name, _)| *name == &draft.scheme[..]).map(|(_, port)| *port);
    default.is_some_and(|port| !port.is_empty() && draft.port.get() == Some(port)) && draft.port.remove()
}

/// Decodes escapes of the host until none remains, converts the host of a special scheme to ASCII by UTS 46 if it is a
/// name, and encodes only what must be encoded.
pub(super) fn special_host(draft: &mut Draft) -> bool {
    let (spare, is_special) = (&mut draft.spare, is_special(&draft.scheme));
    let Some(host) = draft.host.get_mut() else { return false };
    spare.clear();
    spare.extend_from_slice(host);
    decode_all(spare);
    if is_special && let Some(ascii) = name_to_ascii(spare) {
        spare.clear();
        spare.extend_from_slice(&ascii);
    }
    write_least(spare, &LEAST_ENCODED, host)
}

/// Converts a host of letters, digits, hyphens and characters that UTS 46 maps to these, with labels of up to 63 bytes.
fn name_to_ascii(host: &[u8]) -> Option<Vec<u8>> {
    let ascii = if host.is_ascii() {
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        host.iter().all(is_name).then(|| host.to_ascii_lowercase())?
    } else {
        let ascii = Uts46::new().to_ascii(host, AsciiDenyList::STD3, Hyphens::Allow, DnsLength::Ignore).ok()?;
        ascii.into_owned().into_bytes()
    };
    ascii.split(|&byte| byte == b'.').all(|label| label.len() <= 63).then_some(ascii)
}

/// Bytes that are encoded in every component; the other ones stay as they are.
const LEAST_ENCODED: ByteSet = CONTROL.or(NON_ASCII).or(ByteSet::of(b" #%"));

/// Bytes that are encoded in paths.
const ENCODED_IN_PATH: ByteSet = LEAST_ENCODED.or(ByteSet::of(b"?"));

/// Bytes that are encoded in the names and values of queries.
const ENCODED_IN_FIELD: ByteSet = LEAST_ENCODED.or(ByteSet::of(b"&="));

/// Replaces `text` by `decoded` with the bytes of `encoded` as escapes, and returns whether the text changed.
fn write_least(decoded: &[u8], encoded: &ByteSet, text: &mut Vec<u8>) -> bool {
    let before = std::mem::take(text);
    write_encoded(decoded, |byte| encoded.contains(byte), text);
    before != *text
}

/// Converts a host of one to four decimal, octal or hexadecimal numbers to an IPv4 address, as browsers do.
pub(super) fn ipv4_of_browser(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut() else { return false };
    let Some(address) = ipv4(host) else { return false };
    replace_text(host, &mut address.to_string().into_bytes())
}

fn ipv4(host: &[u8]) -> Option<Ipv4Addr> {
    let host = host.strip_suffix(b".").unwrap_or(host);
    if host.is_empty() {
        return None;
    }
    let parts = host.split(|&byte| byte == b'.').map(ipv4_part).collect::<Option<Vec<u64>>>()?;
    let (last, heads) = parts.split_last()?;
    if heads.len() > 3 || *last >= 1 << (32 - 8 * heads.len()) || heads.iter().any(|head| *head > 255) {
        return None;
    }
    let high = heads.iter().enumerate().fold(0, |sum, (i, head)| sum | head << (24 - 8 * i));
    Some(Ipv4Addr::from((high | last) as u32))
}

fn ipv4_part(part: &[u8]) -> Option<u64> {
    let (digits, radix) = match part {
        [] | [b'0', b'x' | b'X'] => return Some(0),
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        [b'0', digits @ ..] if !digits.is_empty() => (digits, 8),
        digits => (digits, 10),
    };
    parse_digits(digits, radix)
}

/// Decodes escapes of the path, including those that decoding creates, and encodes only what must be encoded, and `?`.
pub(super) fn decode_path_fully(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    spare.clear();
    spare.extend_from_slice(&draft.path);
    decode_all(spare);
    write_least(spare, &ENCODED_IN_PATH, &mut draft.path)
}

/// Like [`decode_path_fully`] for each name and value of the query, in which `&` and `=` are encoded.
pub(super) fn least_field_escapes(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let Some(query) = draft.query.get_mut() else { return false };
    let before = std::mem::take(query);
    for (i, field) in before.split(|&byte| byte == b'&').enumerate() {
        if i > 0 {
            query.push(b'&');
        }
        for (j, token) in field.splitn(2, |&byte| byte == b'=').enumerate() {
            if j > 0 {
                query.push(b'=');
            }
            spare.clear();
            spare.extend_from_slice(token);
            decode_all(spare);
            write_encoded(spare, |byte| ENCODED_IN_FIELD.contains(byte), query);
        }
    }
    before != *query
}

/// Replaces `\` in paths by `/`, for special schemes.
pub(super) fn slash_path(draft: &mut Draft) -> bool {
    let is_changed = is_special(&draft.scheme) && draft.path.contains(&b'\\');
    if is_changed {
        draft.path.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
    }
    is_changed
}

/// Inserts a `/` before a path that does not begin with one, for special schemes.
pub(super) fn root_path(draft: &mut Draft) -> bool {
    let is_changed = is_special(&draft.scheme) && !draft.path.starts_with(b"/");
    if is_changed {
        draft.path.insert(0, b'/');
    }
    is_changed
}

/// Replaces repeated slashes by one, for special schemes.
pub(super) fn squeeze_slashes(draft: &mut Draft) -> bool {
    let before = draft.path.len();
    if is_special(&draft.scheme) {
        draft.path.dedup_by(|next, last| *next == b'/' && *last == b'/');
    }
    draft.path.len() != before
}

/// Removes session identifiers of Java, PHP, ASP and ColdFusion with a minimum length from the query. Of two adjacent ones
/// only the first is removed.
pub(super) fn drop_query_session(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let Some(query) = draft.query.get_mut() else { return false };
    spare.clear();
    let fields: Vec<&[u8]> = query.split(|&byte| byte == b'&').collect();
    let (mut i, mut was_kept) = (0, true);
    while i < fields.len() {
        if i > 0 {
            spare.push(b'&');
        }
        let len = if was_kept { session_len(&fields[i..]) } else { 0 };
        if len == 0 {
            spare.extend_from_slice(fields[i]);
        }
        was_kept = len == 0;
        i += len.max(1);
    }
    replace_text(query, spare)
}

/// Returns the number of fields of the session identifier that `fields` begin with, 0 if there is none.
fn session_len(fields: &[&[u8]]) -> usize {
    let is_word = |value: &[u8], min_len| value.len() >= min_len && value.iter().all(u8::is_ascii_alphanumeric);
    let pair = |field: &[u8]| {
        let at = memchr::memchr(b'=', field)?;
        Some((field[..at].to_ascii_lowercase(), field[at + 1..].to_ascii_lowercase()))
    };
    let Some((name, value)) = pair(fields[0]) else { return 0 };
    let is_session = match &name[..] {
        b"jsessionid" => value.len() >= 10 && value.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'$'),
        b"sessionid" | b"phpsessid" | b"sid" => is_word(&value, 16),
        b"cfid" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
            let token = fields.get(1).and_then(|field| pair(field)).filter(|(name, _)| name == b"cftoken");
            let is_token = |value: &[u8]| value.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
            return 2 * usize::from(token.is_some_and(|(_, value)| !value.is_empty() && is_token(&value)));
        }
        name => {
            let suffix = name.strip_prefix(b"aspsessionid");
            suffix.is_some_and(|suffix| suffix.len() == 8 && suffix.iter().all(u8::is_ascii_alphabetic))
                && is_word(&value, 16)
        }
    };
    usize::from(is_session)
}

/// Removes session segments of ASP.NET from a path that ends in `.aspx`, and `;jsessionid=` from the end of any path.
pub(super) fn drop_path_session(draft: &mut Draft) -> bool {
    let path = &mut draft.path;
    let before = path.len();
    if path.ends_with(b".aspx") {
        let (mut at, mut kept_len) = (0, 0);
        while let Some(slash) = memchr::memchr(b'/', &path[at..]) {
            let segment = at + slash + 1;
            path.copy_within(at..segment, kept_len);
            kept_len += segment - at;
            at = segment;
            while let Some(len) = untagged_len(&path[at..]).or_else(|| tagged_len(&path[at..])) {
                at += len;
            }
        }
        path.drain(kept_len..at);
    }
    const JAVA: &[u8] = b";jsessionid=";
    if let Some(at) = path.len().checked_sub(JAVA.len() + 32)
        && path[at..].starts_with(JAVA)
        && path[at + JAVA.len()..].iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
    {
        path.truncate(at);
    }
    path.len() != before
}

/// Removes `&` at both ends of the query, and replaces repeated ones by one.
pub(super) fn squeeze_ampersands(draft: &mut Draft) -> bool {
    let Some(query) = draft.query.get_mut() else { return false };
    let before = query.len();
    query.dedup_by(|next, last| *next == b'&' && *last == b'&');
    if query.ends_with(b"&") {
        query.pop();
    }
    if query.starts_with(b"&") {
        query.remove(0);
    }
    query.len() != before
}

/// Sorts the fields of the query by their bytes.
pub(super) fn sort_query_bytes(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let Some(query) = draft.query.get_mut() else { return false };
    let mut fields: Vec<&[u8]> = query.split(|&byte| byte == b'&').collect();
    if fields.is_sorted() {
        return false;
    }
    fields.sort();
    spare.clear();
    write_joined(fields.into_iter(), b'&', spare);
    replace_text(query, spare)
}
