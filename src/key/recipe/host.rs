//! Rules for scheme, userinfo, host and port that several recipes share.

use std::net::Ipv4Addr;

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use super::draft::{Draft, replace_text};
use super::escapes::{decode_all, encode};
use crate::iri::write_encoded;
use crate::kernel::{any_byte, parse_bytes, parse_digits};

/// Removes the default port of `http` and `https`. For the programs, 0 is the default port of all other schemes.
pub(super) fn drop_default_port(draft: &mut Draft) -> bool {
    let Some(port) = draft.port.get() else { return false };
    let default: &[u8] = match &draft.scheme {
        scheme if scheme.eq_ignore_ascii_case(b"http") => b"80",
        scheme if scheme.eq_ignore_ascii_case(b"https") => b"443",
        _ => b"0",
    };
    port == default && draft.port.remove()
}

/// Converts ASCII letters to lower case and returns whether there was an upper-case one.
pub(super) fn lower(text: &mut [u8]) -> bool {
    let changed = any_byte(text, |byte| byte.is_ascii_uppercase());
    if changed {
        text.make_ascii_lowercase();
    }
    changed
}

/// Decodes escapes of the host until none remains, converts its labels to ASCII (IDNA), and encodes other non-ASCII bytes.
pub(super) fn host_to_ascii(draft: &mut Draft) -> bool {
    convert_host(draft, |bytes| match std::str::from_utf8(bytes) {
        Ok(host) => Some(to_ascii(host).unwrap_or_else(|| host.to_lowercase())),
        Err(_) => None,
    })
}

/// Like [`host_to_ascii`], and removes bytes that are not UTF-8, like the error handler `ignore` of Python. The host stays
/// if it is invalid in IDNA.
pub(super) fn host_to_ascii_ignoring(draft: &mut Draft) -> bool {
    convert_host(draft, |bytes| to_ascii(&bytes.utf8_chunks().map(|chunk| chunk.valid()).collect::<String>()))
}

fn convert_host(draft: &mut Draft, to_ascii: impl Fn(&[u8]) -> Option<String>) -> bool {
    let spare = &mut draft.spare;
    let Some(host) = draft.host.get_mut() else { return false };
    if !any_byte(host, |byte| (byte >= 0x80) | (byte <= b' ') | (byte == b'%') | (byte == b'#')) {
        return false;
    }
    spare.clear();
    spare.extend_from_slice(host);
    decode_all(spare);
    match to_ascii(spare) {
        Some(ascii) if !spare.is_ascii() => encode(ascii.as_bytes(), host),
        _ => encode(spare, host),
    }
}

/// ToASCII of IDNA 2003, with the mapping of UTS 46: label by label, ASCII labels unchanged. Returns `None` if a label is
/// invalid.
pub(super) fn to_ascii(host: &str) -> Option<String> {
    if host.is_empty() {
        return Some(String::new());
    }
    let mut labels: Vec<&str> = host.split(['.', '\u{3002}', '\u{FF0E}', '\u{FF61}']).collect();
    let has_root = labels.pop_if(|last| last.is_empty()).is_some();
    let ascii: Option<Vec<_>> = labels.into_iter().map(label_to_ascii).collect();
    Some(ascii?.join(".") + if has_root { "." } else { "" })
}

fn label_to_ascii(label: &str) -> Option<String> {
    if label.is_ascii() {
        return (1..=63).contains(&label.len()).then(|| label.into());
    }
    // The four characters that IDNA 2003 maps and the current UTS 46 keeps.
    let label = label.replace(['ß', 'ẞ'], "ss").replace('ς', "σ").replace(['\u{200C}', '\u{200D}'], "");
    let ascii =
        Uts46::new().to_ascii(label.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore).ok()?;
    (1..=63).contains(&ascii.len()).then(|| ascii.into_owned())
}

/// Encodes DEL in host, path and query.
pub(super) fn escape_del(draft: &mut Draft) -> bool {
    let spare = &mut draft.spare;
    let parts = [draft.host.get_mut(), Some(&mut draft.path), draft.query.get_mut()];
    let mut is_changed = false;
    for part in parts.into_iter().flatten().filter(|part| memchr::memchr(0x7F, part).is_some()) {
        spare.clear();
        write_encoded(part, |byte| byte == 0x7F, spare);
        std::mem::swap(spare, part);
        is_changed = true;
    }
    is_changed
}

/// Replaces repeated dots by one and removes dots at both ends.
pub(super) fn squeeze_host_dots(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut() else { return false };
    let before = host.len();
    host.dedup_by(|next, last| *next == b'.' && *last == b'.');
    trim_dots(host);
    host.len() != before
}

/// Replaces two adjacent dots by one and three by two, and removes dots at both ends.
pub(super) fn halve_host_dots(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut() else { return false };
    let before = host.len();
    trim_dots(host);
    let mut is_second = false;
    host.retain(|&byte| {
        let was_dropped = is_second && byte == b'.';
        is_second = byte == b'.' && !was_dropped;
        !was_dropped
    });
    host.len() != before
}

fn trim_dots(host: &mut Vec<u8>) {
    let end = host.iter().rposition(|&byte| byte != b'.').map_or(0, |last| last + 1);
    host.truncate(end);
    let at = host.iter().position(|&byte| byte != b'.').unwrap_or(0);
    host.drain(..at);
}

/// Removes `www.`, `www2.` and so on from the start of the host, repeatedly.
pub(super) fn drop_www(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut() else { return false };
    let mut at = 0;
    while let Some(len) = www_len(&host[at..]) {
        at += len;
    }
    host.drain(..at);
    at > 0
}

/// Removes one `www.`, `www2.` or the like from the start of the host.
pub(super) fn drop_www_once(draft: &mut Draft) -> bool {
    let Some(host) = draft.host.get_mut() else { return false };
    let len = www_len(host).unwrap_or(0);
    host.drain(..len);
    len > 0
}

/// Returns the length of the `www.`, `www2.` or the like with which `host` begins.
pub(super) fn www_len(host: &[u8]) -> Option<usize> {
    let rest = host.strip_prefix(b"www")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (rest.get(digits) == Some(&b'.')).then_some(digits + 4)
}

/// Writes IPv4 addresses in decimal. Reads them like webarchive-commons: one decimal number of up to 63 bits modulo
/// 2^32, or four parts, all octal if the first begins with `0`, otherwise all decimal.
pub(super) fn ipv4_of_four(draft: &mut Draft) -> bool {
    replace_by_address(draft, |host| {
        if !host.is_empty() && host.iter().all(u8::is_ascii_digit) {
            let number: i64 = parse_bytes(host)?;
            return Some(Ipv4Addr::from(number as u32));
        }
        let radix = if host.first()? == &b'0' { 8 } else { 10 };
        let mut octets = [0; 4];
        let mut parts = host.split(|&byte| byte == b'.');
        for octet in &mut octets {
            *octet = u8::try_from(parse_digits(parts.next()?, radix)?).ok()?;
        }
        parts.next().is_none().then(|| Ipv4Addr::from(octets))
    })
}

/// Writes IPv4 addresses in decimal. Reads them like Python surt: one decimal number modulo 2^32, or one to four parts,
/// each octal if it begins with `0`, where the last part fills the remaining bytes (`inet_aton`).
pub(super) fn ipv4_of_any(draft: &mut Draft) -> bool {
    replace_by_address(draft, |host| {
        if !host.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') || host.is_empty() {
            return None;
        }
        if !host.contains(&b'.') {
            let digits = host.iter().map(|&byte| u32::from(byte - b'0'));
            return Some(digits.fold(0u32, |sum, digit| sum.wrapping_mul(10).wrapping_add(digit)).into());
        }
        if host[0] == b'0' && host.iter().any(|byte| matches!(byte, b'8' | b'9')) {
            return None;
        }
        let parts: Vec<&[u8]> = host.split(|&byte| byte == b'.').collect();
        let (last, heads) = parts.split_last()?;
        if heads.len() > 3 {
            return None;
        }
        let mut address = 0u32;
        for (i, head) in heads.iter().enumerate() {
            address |= u32::from(u8::try_from(parse_digits(head, radix_of(head))?).ok()?) << (24 - 8 * i);
        }
        let last = parse_digits(last, radix_of(last))?;
        (last < 1 << (32 - 8 * heads.len())).then(|| Ipv4Addr::from(address | last as u32))
    })
}

fn radix_of(part: &[u8]) -> u32 {
    if part.first() == Some(&b'0') { 8 } else { 10 }
}

/// Parses a port of digits, which may have leading zeros. `None` if it is not a number up to 65535.
pub(super) fn parse_port(digits: &[u8]) -> Option<u16> {
    parse_digits(digits, 10)?.try_into().ok()
}

/// Replaces a host that begins with a digit by the address that `address` reads from it.
fn replace_by_address(draft: &mut Draft, address: impl Fn(&[u8]) -> Option<Ipv4Addr>) -> bool {
    let Some(host) = draft.host.get_mut() else { return false };
    if !host.first().is_some_and(u8::is_ascii_digit) {
        return false;
    }
    let Some(address) = address(host) else { return false };
    replace_text(host, &mut address.to_string().into_bytes())
}
