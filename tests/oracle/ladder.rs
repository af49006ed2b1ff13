//! The comparison ladder of RFC 3987 section 5.3 (5.3.1 simple, 5.3.2 syntax, 5.3.3 scheme): normalizes a reference with a
//! scheme to the canonical URI of a rung. Each step is a function over strings.
//!
//! The lenient mode rejects only references that cannot be split into components (see [`check_parts`]). The strict mode
//! also rejects what the grammar of section 2.2 or section 4.1 does not allow; its results are those of the lenient mode.

use super::components::{self, Authority, Components};
use super::dots::remove_dot_segments;
use super::{grammar, mapping, scheme_rules};

/// The steps of section 5.3 that need no data from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Section 5.3.1
    Simple,
    /// Section 5.3.2
    Syntax,
    /// Section 5.3.3
    Scheme,
}

/// Returns the text of `rung` for `input`. Every rung rejects the same inputs, except that [`Rung::Simple`] also rejects
/// bytes that are not UTF-8, because it does not change the input.
pub fn normalize(input: &[u8], rung: Rung, strict: bool) -> Result<String, ()> {
    if strict {
        check_strict(input)?;
    }
    let mapped = map_to_uri(input);
    check_parts(&mapped)?;
    match rung {
        Rung::Simple => String::from_utf8(input.to_vec()).map_err(|_| ()),
        Rung::Syntax => Ok(syntax_based(&mapped)),
        Rung::Scheme => Ok(scheme_rules::scheme_based(&syntax_based(&mapped))),
    }
}

/// The strict mode: UTF-8, the rule `IRI` of section 2.2, and section 4.1.
fn check_strict(input: &[u8]) -> Result<(), ()> {
    let text = std::str::from_utf8(input).map_err(|_| ())?;
    if grammar::is_iri(text) && !grammar::has_bidi_formatting(text) { Ok(()) } else { Err(()) }
}

/// Section 3.1 on the whole reference, before it is split into components. No character that is encoded is a delimiter,
/// and an encoded byte after a stray `%` begins with `%` itself, so that encoding does not complete an escape.
fn map_to_uri(input: &[u8]) -> String {
    mapping::encode(input)
}

/// The checks of the lenient mode. Rejects: an empty reference; a missing scheme, or text before the first `:` (before
/// any `/ ? #`) that is not a scheme; and an authority with a second `@`, with a `[` or `]` that does not enclose an
/// IP-literal that is the whole host, with a port that is not digits, or with a `:` in a reg-name.
fn check_parts(mapped: &str) -> Result<(), ()> {
    let split = components::split(mapped);
    if !split.scheme.as_deref().is_some_and(grammar::is_scheme) {
        return Err(());
    }
    let Some(authority) = &split.authority else { return Ok(()) };
    if authority.matches('@').count() > 1 {
        return Err(());
    }
    let parts = components::split_authority(authority);
    let is_userinfo_valid = !parts.userinfo.as_deref().unwrap_or("").contains(['[', ']']);
    // A ':' in a reg-name is a port that is not a number: `a:b:80`. If it were accepted, removing the port would make
    // `b` the port of the result.
    let is_host_valid = grammar::is_ip_literal(&parts.host) || !parts.host.contains(['[', ']', ':']);
    let is_port_valid = parts.port.as_deref().unwrap_or("").bytes().all(|byte| byte.is_ascii_digit());
    if is_userinfo_valid && is_host_valid && is_port_valid { Ok(()) } else { Err(()) }
}

/// Section 5.3.2 on a mapped reference.
fn syntax_based(mapped: &str) -> String {
    let mut uri = components::split(mapped);
    percent_encoding_normalization(&mut uri);
    case_normalization(&mut uri);
    path_segment_normalization(&mut uri);
    components::guard_path(&mut uri);
    components::recompose(&uri)
}

/// Section 5.3.2.3: escapes of unreserved characters are decoded; of the others, section 5.3.2.1: "the hexadecimal
/// digits within a percent-encoding triplet [...] should be normalized to use uppercase letters".
fn percent_encoding_normalization(uri: &mut Components) {
    uri.authority = uri.authority.as_deref().map(|authority| {
        let parts = components::split_authority(authority);
        components::recompose_authority(&Authority {
            userinfo: parts.userinfo.as_deref().map(decode_unreserved),
            host: decode_unreserved(&parts.host),
            port: parts.port,
        })
    });
    uri.path = decode_unreserved(&uri.path);
    uri.query = uri.query.as_deref().map(decode_unreserved);
    uri.fragment = uri.fragment.as_deref().map(decode_unreserved);
}

/// Decodes escapes of unreserved characters in one pass over a component. Decoded text is not decoded again, so `%2541`
/// does not change.
///
/// A stray `%` is kept, and the text that is decoded after it must not complete an escape: in `%%341` and `%4%31` the
/// escape of a hexadecimal digit is not decoded, because the next pass would read `%41`.
fn decode_unreserved(component: &str) -> String {
    let mut out = String::new();
    let mut rest = component;
    while let Some(first) = rest.chars().next() {
        let Some(triplet) = rest.get(..3).filter(|triplet| grammar::pct_encoded(triplet)) else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let decoded = char::from(u8::from_str_radix(&triplet[1..], 16).expect("two hexadecimal digits"));
        let completes_escape = decoded.is_ascii_hexdigit() && ends_in_open_escape(&out);
        if grammar::unreserved(decoded) && !completes_escape {
            out.push(decoded);
        } else {
            out.push_str(&triplet.to_ascii_uppercase());
        }
        rest = &rest[3..];
    }
    out
}

/// Reports whether the text ends with a `%`, or with a `%` and one hexadecimal digit.
fn ends_in_open_escape(text: &str) -> bool {
    match text.as_bytes() {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Section 5.3.2.1: converts the scheme and the ASCII letters of the host to lower case, also next to other characters.
/// The digits of escapes in the host are in upper case.
fn case_normalization(uri: &mut Components) {
    uri.scheme = uri.scheme.as_deref().map(str::to_ascii_lowercase);
    uri.authority = uri.authority.as_deref().map(|authority| {
        let mut parts = components::split_authority(authority);
        parts.host = lower_case_host(&parts.host);
        components::recompose_authority(&parts)
    });
}

fn lower_case_host(host: &str) -> String {
    let mut out = String::new();
    let mut rest = host;
    while let Some(first) = rest.chars().next() {
        let is_triplet = rest.get(..3).is_some_and(grammar::pct_encoded);
        let run = if is_triplet { 3 } else { first.len_utf8() };
        out.push_str(&if is_triplet { rest[..run].to_ascii_uppercase() } else { rest[..run].to_ascii_lowercase() });
        rest = &rest[run..];
    }
    out
}

/// Section 5.3.2.4, on the decoded path, so that `%2E` is a dot. A path that does not begin with `/` keeps its dots,
/// because the path of `mailto:a/../b` is not hierarchical.
fn path_segment_normalization(uri: &mut Components) {
    if uri.path.starts_with('/') {
        uri.path = remove_dot_segments(&uri.path);
    }
}
