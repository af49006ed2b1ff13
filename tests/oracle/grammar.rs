//! The grammar: RFC 3987 section 2.2, RFC 3986 appendix A.
//!
//! Each rule has a function with its name. The function reports whether the rule derives the whole text, and tries every
//! position of the literals of the rule. [`Charset`] chooses between the two RFCs: the URI grammar is the
//! IRI grammar whose `iunreserved` and `iquery` have no characters above US-ASCII.

/// Which RFC's character rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// RFC 3987.
    Iri,
    /// RFC 3986.
    Uri,
}
use Charset::{Iri, Uri};

/// `IRI`
pub fn is_iri(text: &str) -> bool {
    iri(text, Iri)
}

/// `IRI-reference`
pub fn is_iri_reference(text: &str) -> bool {
    iri_reference(text, Iri)
}

/// `absolute-IRI`
pub fn is_absolute_iri(text: &str) -> bool {
    absolute_iri(text, Iri)
}

/// `URI`
pub fn is_uri(text: &str) -> bool {
    iri(text, Uri)
}

/// `URI-reference`
pub fn is_uri_reference(text: &str) -> bool {
    iri_reference(text, Uri)
}

/// Section 4.1: "IRIs MUST NOT contain bidirectional formatting characters (LRM, RLM, LRE, RLE, LRO, RLO, and PDF)".
pub fn has_bidi_formatting(text: &str) -> bool {
    text.contains(['\u{200E}', '\u{200F}', '\u{202A}', '\u{202B}', '\u{202D}', '\u{202E}', '\u{202C}'])
}

/// Both sides of every occurrence of `literal` in `text`.
fn splits<'a>(text: &'a str, literal: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    (0..text.len())
        .filter(move |&at| text.as_bytes()[at..].starts_with(literal.as_bytes()))
        .map(move |at| (&text[..at], &text[at + literal.len()..]))
}

/// `rule [ literal tail ]`
fn with_optional(text: &str, literal: &str, rule: impl Fn(&str) -> bool, tail: impl Fn(&str) -> bool) -> bool {
    rule(text) || splits(text, literal).any(|(left, right)| rule(left) && tail(right))
}

/// `*( character / pct-encoded )`
fn characters(text: &str, is_character: impl Fn(char) -> bool) -> bool {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if is_character(first) {
            rest = &rest[first.len_utf8()..];
        } else if rest.get(..3).is_some_and(pct_encoded) {
            rest = &rest[3..];
        } else {
            return false;
        }
    }
    true
}

/// `IRI = scheme ":" ihier-part [ "?" iquery ] [ "#" ifragment ]`
fn iri(text: &str, set: Charset) -> bool {
    with_optional(text, "#", |left| absolute_iri(left, set), |right| ifragment(right, set))
}

/// `absolute-IRI = scheme ":" ihier-part [ "?" iquery ]`
fn absolute_iri(text: &str, set: Charset) -> bool {
    let hierarchical = |rest: &str| with_optional(rest, "?", |left| ihier_part(left, set), |right| iquery(right, set));
    splits(text, ":").any(|(left, right)| is_scheme(left) && hierarchical(right))
}

/// `ihier-part = "//" iauthority ipath-abempty / ipath-absolute / ipath-rootless / ipath-empty`
fn ihier_part(text: &str, set: Charset) -> bool {
    net_path(text, set) || ipath_absolute(text, set) || ipath_rootless(text, set) || ipath_empty(text)
}

/// `IRI-reference = IRI / irelative-ref`
fn iri_reference(text: &str, set: Charset) -> bool {
    iri(text, set) || irelative_ref(text, set)
}

/// `irelative-ref = irelative-part [ "?" iquery ] [ "#" ifragment ]`
fn irelative_ref(text: &str, set: Charset) -> bool {
    let before_fragment =
        |left: &str| with_optional(left, "?", |part| irelative_part(part, set), |query| iquery(query, set));
    with_optional(text, "#", before_fragment, |right| ifragment(right, set))
}

/// `irelative-part = "//" iauthority ipath-abempty / ipath-absolute / ipath-noscheme / ipath-empty`
fn irelative_part(text: &str, set: Charset) -> bool {
    net_path(text, set) || ipath_absolute(text, set) || ipath_noscheme(text, set) || ipath_empty(text)
}

/// `"//" iauthority ipath-abempty`
fn net_path(text: &str, set: Charset) -> bool {
    let Some(rest) = text.strip_prefix("//") else { return false };
    // An iauthority has no "/", an ipath-abempty begins with one.
    let end = rest.find('/').unwrap_or(rest.len());
    iauthority(&rest[..end], set) && ipath_abempty(&rest[end..], set)
}

/// `iauthority = [ iuserinfo "@" ] ihost [ ":" port ]`
fn iauthority(text: &str, set: Charset) -> bool {
    let host_and_port = |rest: &str| with_optional(rest, ":", |host| ihost(host, set), port);
    host_and_port(text) || splits(text, "@").any(|(left, right)| iuserinfo(left, set) && host_and_port(right))
}

/// `iuserinfo = *( iunreserved / pct-encoded / sub-delims / ":" )`
fn iuserinfo(text: &str, set: Charset) -> bool {
    characters(text, |c| iunreserved(c, set) || sub_delims(c) || c == ':')
}

/// `ihost = IP-literal / IPv4address / ireg-name`; every IPv4address is an ireg-name as well.
fn ihost(text: &str, set: Charset) -> bool {
    is_ip_literal(text) || ipv4address(text) || ireg_name(text, set)
}

/// `ireg-name = *( iunreserved / pct-encoded / sub-delims )`
fn ireg_name(text: &str, set: Charset) -> bool {
    characters(text, |c| iunreserved(c, set) || sub_delims(c))
}

/// `port = *DIGIT`
fn port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `ipath-abempty = *( "/" isegment )`
fn ipath_abempty(text: &str, set: Charset) -> bool {
    text.is_empty() || text.strip_prefix('/').is_some_and(|rest| rest.split('/').all(|part| isegment(part, set)))
}

/// `ipath-absolute = "/" [ isegment-nz *( "/" isegment ) ]`
fn ipath_absolute(text: &str, set: Charset) -> bool {
    text.strip_prefix('/').is_some_and(|rest| rest.is_empty() || ipath_rootless(rest, set))
}

/// `ipath-noscheme = isegment-nz-nc *( "/" isegment )`
fn ipath_noscheme(text: &str, set: Charset) -> bool {
    let end = text.find('/').unwrap_or(text.len());
    isegment_nz_nc(&text[..end], set) && ipath_abempty(&text[end..], set)
}

/// `ipath-rootless = isegment-nz *( "/" isegment )`
fn ipath_rootless(text: &str, set: Charset) -> bool {
    let end = text.find('/').unwrap_or(text.len());
    isegment_nz(&text[..end], set) && ipath_abempty(&text[end..], set)
}

/// `ipath-empty = 0<ipchar>`
fn ipath_empty(text: &str) -> bool {
    text.is_empty()
}

/// `isegment = *ipchar`
fn isegment(text: &str, set: Charset) -> bool {
    characters(text, |c| ipchar(c, set))
}

/// `isegment-nz = 1*ipchar`
fn isegment_nz(text: &str, set: Charset) -> bool {
    !text.is_empty() && isegment(text, set)
}

/// `isegment-nz-nc = 1*( iunreserved / pct-encoded / sub-delims / "@" )`
fn isegment_nz_nc(text: &str, set: Charset) -> bool {
    !text.is_empty() && characters(text, |c| iunreserved(c, set) || sub_delims(c) || c == '@')
}

/// `ipchar = iunreserved / pct-encoded / sub-delims / ":" / "@"`, without `pct-encoded`, which `characters` handles.
fn ipchar(c: char, set: Charset) -> bool {
    iunreserved(c, set) || sub_delims(c) || c == ':' || c == '@'
}

/// `iquery = *( ipchar / iprivate / "/" / "?" )`
fn iquery(text: &str, set: Charset) -> bool {
    characters(text, |c| ipchar(c, set) || (set == Iri && iprivate(c)) || c == '/' || c == '?')
}

/// `ifragment = *( ipchar / "/" / "?" )`
fn ifragment(text: &str, set: Charset) -> bool {
    characters(text, |c| ipchar(c, set) || c == '/' || c == '?')
}

/// `iunreserved = ALPHA / DIGIT / "-" / "." / "_" / "~" / ucschar`
fn iunreserved(c: char, set: Charset) -> bool {
    unreserved(c) || (set == Iri && ucschar(c))
}

/// ```text
/// ucschar = %xA0-D7FF / %xF900-FDCF / %xFDF0-FFEF
///         / %x10000-1FFFD / %x20000-2FFFD / %x30000-3FFFD
///         / %x40000-4FFFD / %x50000-5FFFD / %x60000-6FFFD
///         / %x70000-7FFFD / %x80000-8FFFD / %x90000-9FFFD
///         / %xA0000-AFFFD / %xB0000-BFFFD / %xC0000-CFFFD
///         / %xD0000-DFFFD / %xE1000-EFFFD
/// ```
pub fn ucschar(c: char) -> bool {
    matches!(u32::from(c),
        0xA0..=0xD7FF | 0xF900..=0xFDCF | 0xFDF0..=0xFFEF
        | 0x10000..=0x1FFFD | 0x20000..=0x2FFFD | 0x30000..=0x3FFFD
        | 0x40000..=0x4FFFD | 0x50000..=0x5FFFD | 0x60000..=0x6FFFD
        | 0x70000..=0x7FFFD | 0x80000..=0x8FFFD | 0x90000..=0x9FFFD
        | 0xA0000..=0xAFFFD | 0xB0000..=0xBFFFD | 0xC0000..=0xCFFFD
        | 0xD0000..=0xDFFFD | 0xE1000..=0xEFFFD)
}

/// `iprivate = %xE000-F8FF / %xF0000-FFFFD / %x100000-10FFFD`
pub fn iprivate(c: char) -> bool {
    matches!(u32::from(c), 0xE000..=0xF8FF | 0xF0000..=0xFFFFD | 0x100000..=0x10FFFD)
}

/// `scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`
pub fn is_scheme(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && characters.all(|c| c.is_ascii_alphanumeric() || c == '+' || c == '-' || c == '.')
}

/// `IP-literal = "[" ( IPv6address / IPvFuture ) "]"`
pub fn is_ip_literal(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inner.is_some_and(|inner| is_ipv6address(inner) || ipvfuture(inner))
}

/// `IPvFuture = "v" 1*HEXDIG "." 1*( unreserved / sub-delims / ":" )`; literals in ABNF are case-insensitive.
fn ipvfuture(text: &str) -> bool {
    let Some(rest) = text.strip_prefix(['v', 'V']) else { return false };
    splits(rest, ".").any(|(version, address)| {
        !version.is_empty()
            && version.bytes().all(|byte| byte.is_ascii_hexdigit())
            && !address.is_empty()
            && address.chars().all(|c| unreserved(c) || sub_delims(c) || c == ':')
    })
}

/// ```text
/// IPv6address =                            6( h16 ":" ) ls32
///             /                       "::" 5( h16 ":" ) ls32
///             / [               h16 ] "::" 4( h16 ":" ) ls32
///             / [ *1( h16 ":" ) h16 ] "::" 3( h16 ":" ) ls32
///             / [ *2( h16 ":" ) h16 ] "::" 2( h16 ":" ) ls32
///             / [ *3( h16 ":" ) h16 ] "::"    h16 ":"   ls32
///             / [ *4( h16 ":" ) h16 ] "::"              ls32
///             / [ *5( h16 ":" ) h16 ] "::"              h16
///             / [ *6( h16 ":" ) h16 ] "::"
/// ```
pub fn is_ipv6address(text: &str) -> bool {
    let around = |before: &dyn Fn(&str) -> bool, after: &dyn Fn(&str) -> bool| {
        splits(text, "::").any(|(left, right)| before(left) && after(right))
    };
    h16s_then(text, 6, ls32)
        || around(&|left| left.is_empty(), &|right| h16s_then(right, 5, ls32))
        || around(&|left| optional_h16s(left, 0), &|right| h16s_then(right, 4, ls32))
        || around(&|left| optional_h16s(left, 1), &|right| h16s_then(right, 3, ls32))
        || around(&|left| optional_h16s(left, 2), &|right| h16s_then(right, 2, ls32))
        || around(&|left| optional_h16s(left, 3), &|right| h16s_then(right, 1, ls32))
        || around(&|left| optional_h16s(left, 4), &ls32)
        || around(&|left| optional_h16s(left, 5), &h16)
        || around(&|left| optional_h16s(left, 6), &|right| right.is_empty())
}

/// `count( h16 ":" ) last`
fn h16s_then(text: &str, count: usize, last: fn(&str) -> bool) -> bool {
    match count {
        0 => last(text),
        _ => splits(text, ":").any(|(left, right)| h16(left) && h16s_then(right, count - 1, last)),
    }
}

/// `[ *max_count( h16 ":" ) h16 ]`
fn optional_h16s(text: &str, max_count: usize) -> bool {
    text.is_empty() || (0..=max_count).any(|count| h16s_then(text, count, h16))
}

/// `h16 = 1*4HEXDIG`
fn h16(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `ls32 = ( h16 ":" h16 ) / IPv4address`
fn ls32(text: &str) -> bool {
    splits(text, ":").any(|(left, right)| h16(left) && h16(right)) || ipv4address(text)
}

/// `IPv4address = dec-octet "." dec-octet "." dec-octet "." dec-octet`
fn ipv4address(text: &str) -> bool {
    let octets: Vec<&str> = text.split('.').collect();
    octets.len() == 4 && octets.into_iter().all(dec_octet)
}

/// ```text
/// dec-octet = DIGIT               ; 0-9
///           / %x31-39 DIGIT       ; 10-99
///           / "1" 2DIGIT          ; 100-199
///           / "2" %x30-34 DIGIT   ; 200-249
///           / "25" %x30-35        ; 250-255
/// ```
fn dec_octet(text: &str) -> bool {
    matches!(
        text.as_bytes(),
        [b'0'..=b'9']
            | [b'1'..=b'9', b'0'..=b'9']
            | [b'1', b'0'..=b'9', b'0'..=b'9']
            | [b'2', b'0'..=b'4', b'0'..=b'9']
            | [b'2', b'5', b'0'..=b'5']
    )
}

/// `pct-encoded = "%" HEXDIG HEXDIG`
pub fn pct_encoded(text: &str) -> bool {
    matches!(text.as_bytes(), [b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

/// `unreserved = ALPHA / DIGIT / "-" / "." / "_" / "~"`
pub fn unreserved(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_' || c == '~'
}

/// `sub-delims = "!" / "$" / "&" / "'" / "(" / ")" / "*" / "+" / "," / ";" / "="`
fn sub_delims(c: char) -> bool {
    matches!(c, '!' | '$' | '&' | '\'' | '(' | ')' | '*' | '+' | ',' | ';' | '=')
}
