//! The comparison ladder. In: bytes of a reference with a scheme. Out: the canonical URI of a rung, or a refusal.
//! RFC 3987 section 5.3 (5.3.1 simple, 5.3.2 syntax, 5.3.3 scheme), one named step after another over strings.
//!
//! Lenient intake refuses only what cannot be taken apart (see [`check_parts`]); strict intake refuses whatever the
//! grammar of section 2.2 or the ban of section 4.1 refuses, and otherwise gives the same text.

use super::components::{self, Authority, Components};
use super::dots::remove_dot_segments;
use super::{grammar, mapping, scheme_rules};

/// The steps of section 5.3 that need no observation of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// Section 5.3.1
    Simple,
    /// Section 5.3.2
    Syntax,
    /// Section 5.3.3
    Scheme,
}

/// The text of `rung` for `input`. Every rung refuses the same inputs, but that [`Rung::Simple`], which changes
/// nothing, has no text either for bytes that are not UTF-8.
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

/// Strict intake: UTF-8, section 2.2's `IRI`, section 4.1.
fn check_strict(input: &[u8]) -> Result<(), ()> {
    let text = std::str::from_utf8(input).map_err(|_| ())?;
    if grammar::is_iri(text) && !grammar::has_bidi_formatting(text) { Ok(()) } else { Err(()) }
}

/// Section 3.1 on the whole reference, before it is taken apart: no character that is encoded is a delimiter, and an
/// encoded byte after a stray `%` begins with `%` itself, so that no escape comes to be.
fn map_to_uri(input: &[u8]) -> String {
    mapping::encode(input)
}

/// What lenient intake refuses: nothing there; no scheme, or text before the first `:` (before any `/ ? #`) that is no
/// scheme; and an authority with a second `@`, a `[` or `]` elsewhere than around an IP-literal that is the whole
/// host, a port of other characters than digits, or a `:` in a reg-name.
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
    let userinfo_fits = !parts.userinfo.as_deref().unwrap_or("").contains(['[', ']']);
    // A ':' left in a reg-name is a port that is no number: `a:b:80`. Were it kept, dropping the port would make the
    // next reading take `b` for one.
    let host_fits = grammar::is_ip_literal(&parts.host) || !parts.host.contains(['[', ']', ':']);
    let port_fits = parts.port.as_deref().unwrap_or("").bytes().all(|byte| byte.is_ascii_digit());
    if userinfo_fits && host_fits && port_fits { Ok(()) } else { Err(()) }
}

/// Section 5.3.2 on a mapped reference.
fn syntax_based(mapped: &str) -> String {
    let mut uri = components::split(mapped);
    percent_encoding_normalisation(&mut uri);
    case_normalisation(&mut uri);
    path_segment_normalisation(&mut uri);
    components::guard_path(&mut uri);
    components::recompose(&uri)
}

/// Section 5.3.2.3: escapes of unreserved characters are decoded; of the others, section 5.3.2.1: "the hexadecimal
/// digits within a percent-encoding triplet [...] should be normalized to use uppercase letters".
fn percent_encoding_normalisation(uri: &mut Components) {
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

/// One pass over one component; what was decoded is not looked at again, so `%2541` stays.
///
/// A stray `%` is kept, and must not become an escape by what is decoded after it: in `%%341` and `%4%31` the escape
/// of a hexadecimal digit stays one, or the next pass would read `%41`.
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

/// The text ends with a `%`, or with a `%` and one hexadecimal digit: a triplet's own `%` stands three from its end.
fn ends_in_open_escape(text: &str) -> bool {
    match text.as_bytes() {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Section 5.3.2.1: scheme and the host's ASCII letters in lower case, whatever stands beside them; the digits of the
/// host's escapes stay in upper case.
fn case_normalisation(uri: &mut Components) {
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

/// Section 5.3.2.4, on the decoded path, so that `%2E` is a dot. A path that does not begin with `/` keeps its dots:
/// to `mailto:a/../b` they are no hierarchy.
fn path_segment_normalisation(uri: &mut Components) {
    if uri.path.starts_with('/') {
        uri.path = remove_dot_segments(&uri.path);
    }
}
