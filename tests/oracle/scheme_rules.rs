//! Scheme-based normalization: RFC 3987 section 5.3.3, RFC 5952 (IPv6 text), RFC 8089 (file), RFC 8141 (urn) and UTS 46
//! (hosts). The input is the result of the rung `syntax`, so that URIs that are equal there are equal here. Trailing dots
//! of hosts, empty queries, fragments and userinfo are kept.

use std::net::Ipv6Addr;

use idna::AsciiDenyList;
use idna::uts46::{DnsLength, Hyphens, Uts46};

use super::components::{self, Authority, Components};
use super::grammar;

/// Applies all rules, in the order of their definitions below.
pub fn scheme_based(syntax_form: &str) -> String {
    let mut uri = components::split(syntax_form);
    let scheme = uri.scheme.clone().unwrap_or_default();
    if let Some(authority) = &uri.authority {
        let mut parts = components::split_authority(authority);
        port_rule(&scheme, &mut parts);
        ipv6_rule(&mut parts);
        idn_rule(&scheme, &mut parts);
        file_localhost_rule(&scheme, &mut parts);
        uri.authority = Some(components::recompose_authority(&parts));
    }
    empty_path_rule(&scheme, &mut uri);
    file_authority_rule(&scheme, &mut uri);
    urn_rule(&scheme, &mut uri);
    components::recompose(&uri)
}

/// The schemes whose hosts are DNS names, and their default ports.
fn default_port(scheme: &str) -> Option<u32> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ftp" => Some(21),
        _ => None,
    }
}

/// Removes an empty port for any scheme. For the schemes with a default port, removes leading zeros and the default port.
/// A number above 65535 is not a port and does not change.
fn port_rule(scheme: &str, parts: &mut Authority) {
    if parts.port.as_deref() == Some("") {
        parts.port = None;
    }
    let (Some(default), Some(digits)) = (default_port(scheme), &parts.port) else { return };
    let significant = digits.trim_start_matches('0');
    let number = if significant.is_empty() { Ok(0) } else { significant.parse::<u32>() };
    match number {
        Ok(number) if number == default => parts.port = None,
        Ok(number) if number <= 65535 => parts.port = Some(number.to_string()),
        Ok(_) | Err(_) => {}
    }
}

/// RFC 5952 section 4, any scheme.
fn ipv6_rule(parts: &mut Authority) {
    let inner = parts.host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(address) = inner.and_then(|inner| inner.parse::<Ipv6Addr>().ok()) {
        parts.host = format!("[{address}]");
    }
}

/// For the DNS schemes, converts a host with escapes, U-labels or A-labels to one form. Other ASCII hosts already have it.
fn idn_rule(scheme: &str, parts: &mut Authority) {
    let is_dns = default_port(scheme).is_some();
    let is_literal = parts.host.starts_with('[');
    let may_be_idn = parts.host.contains('%') || parts.host.split('.').any(|label| label.starts_with("xn--"));
    if is_dns
        && !is_literal
        && may_be_idn
        && let Some(ascii) = host_to_ascii(&percent_decode(&parts.host))
    {
        parts.host = ascii;
    }
}

/// UTS 46 ToASCII, non-transitional, hyphens anywhere, no length limits. Returns `None` if the bytes are not UTF-8, if
/// UTS 46 fails, or if the result is not a DNS host: if it is empty or has other characters than `a-z 0-9 - . _ ~`.
pub fn host_to_ascii(host: &[u8]) -> Option<String> {
    std::str::from_utf8(host).ok()?;
    let ascii = Uts46::new().to_ascii(host, AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore).ok()?;
    // UTS 46 section 4.1, criterion 4: the decoded text of an A-label must not begin with "xn--".
    let (unicode, _) = Uts46::new().to_unicode(ascii.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
    if unicode.split('.').any(|label| label.starts_with("xn--")) {
        return None;
    }
    let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~');
    (!ascii.is_empty() && ascii.bytes().all(is_allowed)).then(|| ascii.into_owned())
}

/// Decodes every valid escape once; a stray `%` does not change.
pub fn percent_decode(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(triplet) = rest.get(..3).filter(|triplet| grammar::pct_encoded(triplet)) {
            out.push(u8::from_str_radix(&triplet[1..], 16).expect("two hexadecimal digits"));
            rest = &rest[3..];
        } else {
            out.extend_from_slice(first.to_string().as_bytes());
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// RFC 8089 section 2: "localhost" is the same as an empty host.
fn file_localhost_rule(scheme: &str, parts: &mut Authority) {
    if scheme == "file" && parts.host == "localhost" && parts.userinfo.is_none() && parts.port.is_none() {
        parts.host = String::new();
    }
}

/// RFC 3987 section 5.3.3: "http://example.com" and "http://example.com/".
fn empty_path_rule(scheme: &str, uri: &mut Components) {
    if uri.authority.is_some() && uri.path.is_empty() && default_port(scheme).is_some() {
        uri.path = "/".to_string();
    }
}

/// RFC 8089 appendix B: `file:/x` is `file:///x`. With an authority the path needs no guard; in the form of the rung
/// `syntax`, `/.//` at the beginning of a path is always a guard.
fn file_authority_rule(scheme: &str, uri: &mut Components) {
    if scheme == "file" && uri.authority.is_none() && uri.path.starts_with('/') {
        uri.authority = Some(String::new());
        if uri.path.starts_with("/.//") {
            uri.path = uri.path["/.".len()..].to_string();
        }
    }
}

/// RFC 8141 section 3.1: the NID is case-insensitive. `NID = (alphanum) 0*30(ldh) (alphanum)`, section 2.
fn urn_rule(scheme: &str, uri: &mut Components) {
    if scheme != "urn" || uri.authority.is_some() {
        return;
    }
    let Some((nid, nss)) = uri.path.split_once(':') else { return };
    let is_alphanum = |byte: &u8| byte.is_ascii_alphanumeric();
    let is_nid = (2..=32).contains(&nid.len())
        && nid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && nid.as_bytes().first().is_some_and(is_alphanum)
        && nid.as_bytes().last().is_some_and(is_alphanum);
    if is_nid {
        uri.path = format!("{}:{nss}", nid.to_ascii_lowercase());
    }
}
