//! Rules of urlcanon's `aggressive` canonicalizer, and its way to read. In: bytes of a URL; a [`Draft`]. Out: the draft,
//! and whether the rule fired. It never refuses a URL; whatever stands before the first `:` is a scheme to it.
//!
//! Known differences: hosts are made ASCII before they are read as addresses, there after; a lone `@` is an authority; hosts beyond ASCII
//! go through UTS 46 alone, there through IDNA 2008 first; numbers with a sign or `_` in them are no addresses here.

use std::net::Ipv4Addr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::draft::Draft;
use super::escapes::{decode_all, reduce, write_escape};
use super::session::{plain_len, tagged_len};

/// The schemes of browsers, and gopher, with their ports.
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

/// Reads a URL: controls and spaces around it are gone, and tabs and line ends within it; without a scheme it is http.
pub fn read(url: &[u8], draft: &mut Draft) {
    let mut text = url.to_vec();
    let is_inner = |byte: &u8| *byte > b' ';
    text.truncate(text.iter().rposition(is_inner).map_or(0, |last| last + 1));
    text.drain(..text.iter().position(is_inner).unwrap_or(0));
    text.retain(|byte| !matches!(byte, b'\t' | b'\n' | b'\r'));
    let mut rest = &text[..];
    if rest.first().is_some_and(u8::is_ascii_alphabetic)
        && let Some(colon) = memchr::memchr(b':', rest)
    {
        draft.scheme.extend(rest[..colon].iter().map(u8::to_ascii_lowercase));
        rest = &rest[colon + 1..];
    }
    let end = rest.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(rest.len());
    draft.read_tail(&rest[end..]);
    read_pathish(&rest[..end], draft);
    if draft.scheme.is_empty() {
        draft.scheme.extend_from_slice(b"http");
        // What was read as the path of a URL without a scheme is read anew as that of an http one.
        let path = std::mem::take(&mut draft.path);
        if !path.is_empty() {
            read_pathish(&path, draft);
        }
    } else {
        reduce(&mut draft.scheme, &mut draft.spare);
    }
}

/// What stands between the scheme and the query.
fn read_pathish(text: &[u8], draft: &mut Draft) {
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

/// The userinfo ends at the last `@`, the host behind its `]` or at the first `:`; files have a host alone.
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

/// Takes the default port of a browser's scheme away.
pub fn drop_special_port(draft: &mut Draft) -> bool {
    let default = SPECIAL.iter().find(|(name, _)| *name == &draft.scheme[..]).map(|(_, port)| *port);
    default.is_some_and(|port| !port.is_empty() && draft.port.get() == Some(port)) && draft.port.remove()
}

/// Decodes the host until no escape is left, makes that of a browser's scheme ASCII by UTS 46, and encodes the least. A
/// host with bytes that names do not have stays as it is.
pub fn special_host(draft: &mut Draft) -> bool {
    let (spare, is_special) = (&mut draft.spare, is_special(&draft.scheme));
    let Some(host) = draft.host.get_mut() else { return false };
    spare.clear();
    spare.extend_from_slice(host);
    decode_all(spare);
    if is_special && let Some(ascii) = name_to_ascii(spare) {
        spare.clear();
        spare.extend_from_slice(&ascii);
    }
    let changed = write_least(spare, b"", host);
    spare.clear();
    changed
}

/// Letters, digits, hyphens and what UTS 46 makes into them, in labels of at most 63 bytes.
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

/// Makes `text` what `decoded` is, with spaces, controls, `#`, `%`, bytes from DEL on and those of `more` encoded; true
/// if it was something else.
fn write_least(decoded: &[u8], more: &[u8], text: &mut Vec<u8>) -> bool {
    let before = std::mem::take(text);
    push_least(decoded, more, text);
    before != *text
}

fn push_least(decoded: &[u8], more: &[u8], out: &mut Vec<u8>) {
    for &byte in decoded {
        if byte <= b' ' || byte >= 0x7F || matches!(byte, b'#' | b'%') || more.contains(&byte) {
            write_escape(byte, out);
        } else {
            out.push(byte);
        }
    }
}

/// Writes a host of one to four numbers, decimal, octal or hexadecimal, as browsers read them: an IPv4 address.
pub fn ipv4_of_browser(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut() else { return false };
    let Some(address) = ipv4(host) else { return false };
    let text = address.to_string().into_bytes();
    let changed = text != *host;
    *host = text;
    changed
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
    let is_number = digits.iter().all(|&byte| char::from(byte).is_digit(radix));
    u64::from_str_radix(std::str::from_utf8(digits).ok().filter(|_| is_number)?, radix).ok()
}

/// Decodes escapes of the path, also those that decoding makes, and encodes the least, `?` too.
pub fn least_path_escapes(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    spare.clear();
    spare.extend_from_slice(&draft.path);
    decode_all(spare);
    write_least(spare, b"?", &mut draft.path)
}

/// The same for each name and value of the query, in which `&` and `=` stay encoded.
pub fn least_field_escapes(draft: &mut Draft) -> bool {
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
            push_least(spare, b"&=", query);
        }
    }
    before != *query
}

/// Reads `\` in a path as `/`, in browsers' schemes.
pub fn slash_path(draft: &mut Draft) -> bool {
    let fires = is_special(&draft.scheme) && draft.path.contains(&b'\\');
    if fires {
        draft.path.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
    }
    fires
}

/// Has a path begin with `/`, in browsers' schemes.
pub fn root_path(draft: &mut Draft) -> bool {
    let fires = is_special(&draft.scheme) && !draft.path.starts_with(b"/");
    if fires {
        draft.path.insert(0, b'/');
    }
    fires
}

/// Leaves one slash where there are many, in browsers' schemes.
pub fn squeeze_slashes(draft: &mut Draft) -> bool {
    let before = draft.path.len();
    if is_special(&draft.scheme) {
        draft.path.dedup_by(|next, last| *next == b'/' && *last == b'/');
    }
    draft.path.len() != before
}

/// Makes https http.
pub fn https_to_http(draft: &mut Draft) -> bool {
    draft.scheme == b"https" && draft.scheme.pop().is_some()
}

/// Takes session identifiers of Java, PHP, ASP and ColdFusion out of the query, whatever their length from a least one
/// on; of two that follow each other only the first.
pub fn drop_query_session(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let Some(query) = draft.query.get_mut() else { return false };
    spare.clear();
    let fields: Vec<&[u8]> = query.split(|&byte| byte == b'&').collect();
    let (mut i, mut is_free) = (0, true);
    while i < fields.len() {
        if i > 0 {
            spare.push(b'&');
        }
        let len = if is_free { session_len(&fields[i..]) } else { 0 };
        if len == 0 {
            spare.extend_from_slice(fields[i]);
        }
        is_free = len == 0;
        i += len.max(1);
    }
    let changed = spare != query;
    std::mem::swap(spare, query);
    changed
}

/// How many fields the session identifier has that they begin with; 0 if it is none.
fn session_len(fields: &[&[u8]]) -> usize {
    let is_word = |value: &[u8], least| value.len() >= least && value.iter().all(u8::is_ascii_alphanumeric);
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

/// Takes the session segments of ASP.NET out of a path that ends in `.aspx`, and `;jsessionid=` off the end of any.
pub fn drop_path_session(draft: &mut Draft) -> bool {
    let path = &mut draft.path;
    let before = path.len();
    if path.ends_with(b".aspx") {
        let mut at = 0;
        while let Some(slash) = memchr::memchr(b'/', &path[at..]) {
            at += slash + 1;
            // What comes behind one that went away has no slash of its own before it.
            if let Some(len) = plain_len(&path[at..]).or_else(|| tagged_len(&path[at..])) {
                path.drain(at..at + len);
            }
        }
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

/// Takes `&` off both ends of the query, and all but one of many.
pub fn squeeze_ampersands(draft: &mut Draft) -> bool {
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

/// Sorts the query's fields by their bytes.
pub fn sort_query_bytes(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let Some(query) = draft.query.get_mut() else { return false };
    let mut fields: Vec<&[u8]> = query.split(|&byte| byte == b'&').collect();
    if fields.is_sorted() {
        return false;
    }
    fields.sort();
    spare.clear();
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            spare.push(b'&');
        }
        spare.extend_from_slice(field);
    }
    std::mem::swap(spare, query);
    true
}
