//! Maps an IRI to a URI, and a URI to an IRI: RFC 3987 sections 3.1 and 3.2.
//!
//! Section 3.1: step 1 (conversion to Unicode, normalization of legacy charsets) is done before: the input is UTF-8 or malformed.
//! Nothing is decoded, the case does not change, and existing escapes do not change.

use super::components::{self, Components};
use super::grammar;
use super::scheme_rules::{host_to_ascii, percent_decode};

/// Section 3.1, step 2, for one octet: "Convert the octet to %HH, where HH is the hexadecimal notation of the octet
/// value [...] uppercase letters".
pub fn push_percent_encoded(byte: u8, out: &mut String) {
    out.push_str(&format!("%{byte:02X}"));
}

/// Step 2 for a whole reference: percent-encodes every octet of a non-ASCII character ("ucschar", "iprivate"), and the
/// characters that a URI must not contain: controls, space, `<>"{}|\^` and backtick ("Systems accepting IRIs
/// MAY also deal with the printable characters in US-ASCII that are not allowed in URIs").
/// `%`, `[`, `]` and `#` "MUST NOT be converted". Bytes that are not UTF-8 are encoded too.
pub fn encode(input: &[u8]) -> String {
    let mut out = String::new();
    for &byte in input {
        match byte {
            0x00..=0x20 | 0x7F..=0xFF => push_percent_encoded(byte, &mut out),
            b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'\\' | b'^' | b'`' => push_percent_encoded(byte, &mut out),
            _ => out.push(char::from(byte)),
        }
    }
    out
}

/// Section 3.1, with the host percent-encoded. Without `lenient`, rejects text that is not an IRI reference. With
/// `lenient`, also encodes characters that neither grammar allows. In both modes the result is a URI reference, so a
/// stray `%`, `[` or `]` is rejected.
pub fn to_uri(input: &[u8], lenient: bool) -> Option<String> {
    if !lenient && !grammar::is_iri_reference(std::str::from_utf8(input).ok()?) {
        return None;
    }
    Some(encode(input)).filter(|uri| grammar::is_uri_reference(uri))
}

/// Section 3.1 with the alternative that it allows: "replace the ireg-name part of the IRI by the part converted using the
/// ToASCII operation". Escapes in the host are decoded first. The host is percent-encoded if it has no ASCII form or if
/// the input is not UTF-8.
pub fn to_uri_ascii(input: &[u8], lenient: bool) -> Option<String> {
    if !lenient && !grammar::is_iri_reference(std::str::from_utf8(input).ok()?) {
        return None;
    }
    let Ok(text) = std::str::from_utf8(input) else { return to_uri(input, lenient) };
    let split = components::split(text);
    let authority = split.authority.as_deref().map(|authority| {
        let mut parts = components::split_authority(authority);
        let ascii = host_to_ascii(&percent_decode(&parts.host)).filter(|_| !parts.host.is_ascii());
        parts.host = ascii.unwrap_or(parts.host);
        components::recompose_authority(&parts)
    });
    to_uri(components::recompose(&Components { authority, ..split }).as_bytes(), lenient)
}

/// An octet of a URI after step 2 of section 3.2.
struct Octet<'a> {
    value: u8,
    /// The escape that it was converted from.
    escape: Option<&'a str>,
    is_in_query: bool,
}

/// Section 3.2, steps 1 and 2: "Represent the URI as a sequence of octets in US-ASCII. Convert all percent-encodings [...] to
/// the corresponding octets, except those corresponding to "%", characters in "reserved", and characters in US-ASCII not
/// allowed in URIs." What remains of ASCII is unreserved.
fn octets(uri: &str) -> Vec<Octet<'_>> {
    let end = uri.find('#').unwrap_or(uri.len());
    let query = uri[..end].find('?').map_or(end, |at| at + 1)..end;
    let (mut octets, mut at) = (Vec::new(), 0);
    while at < uri.len() {
        let is_in_query = query.contains(&at);
        let converted = uri.get(at..at + 3).filter(|text| grammar::pct_encoded(text)).and_then(|escape| {
            let value = u8::from_str_radix(&escape[1..], 16).expect("two hexadecimal digits");
            (!value.is_ascii() || grammar::unreserved(value.into())).then_some((value, escape))
        });
        match converted {
            Some((value, escape)) => octets.push(Octet { value, escape: Some(escape), is_in_query }),
            None => octets.push(Octet { value: uri.as_bytes()[at], escape: None, is_in_query }),
        }
        at += converted.map_or(1, |(_, escape)| escape.len());
    }
    octets
}

/// The character that the octets begin with, if they begin with a "strictly legal UTF-8 octet sequence".
fn first_character(octets: &[Octet<'_>]) -> Option<char> {
    let values: Vec<u8> = octets.iter().take(4).map(|octet| octet.value).collect();
    (1..=values.len()).find_map(|len| std::str::from_utf8(&values[..len]).ok()?.chars().next())
}

/// Whether `text` ends in a stray `%`, or in one and a digit, so that a digit after it would form an escape.
fn lacks_digits(text: &str) -> bool {
    match text.as_bytes() {
        [.., b'%'] => true,
        [.., b'%', digit] => digit.is_ascii_hexdigit(),
        _ => false,
    }
}

/// Section 3.2 for a URI reference, which is ASCII. The host stays as it is.
///
/// Step 3 encodes octets again that are not UTF-8; step 4 encodes characters again that sections 2.2, 4.1 and 6.1 exclude: what
/// the grammar does not derive, and controls of the writing direction, with those that Unicode added later (U+061C and
/// U+2066 to U+2069). A digit also stays encoded if it would form an escape with a stray `%`, because the result would be the
/// IRI of another URI.
pub fn to_iri(uri: &str) -> String {
    let octets = octets(uri);
    let (mut iri, mut at) = (String::new(), 0);
    while at < octets.len() {
        let octet = &octets[at];
        let character = first_character(&octets[at..]);
        let is_allowed = |c: &char| {
            let is_in_grammar = grammar::ucschar(*c) || (octet.is_in_query && grammar::iprivate(*c));
            let is_control =
                grammar::has_bidi_formatting(&c.to_string()) || "\u{61C}\u{2066}\u{2067}\u{2068}\u{2069}".contains(*c);
            is_in_grammar && !is_control
        };
        match (character, octet.escape) {
            (Some(c), None) => iri.push(c),
            (Some(c), Some(escape)) if c.is_ascii_hexdigit() && lacks_digits(&iri) => iri.push_str(escape),
            (Some(c), Some(_)) if c.is_ascii() => iri.push(c),
            (Some(c), Some(_)) if is_allowed(&c) => iri.push(c),
            (character, _) => {
                for octet in &octets[at..at + character.map_or(1, char::len_utf8)] {
                    push_percent_encoded(octet.value, &mut iri);
                }
            }
        }
        at += character.map_or(1, char::len_utf8);
    }
    iri
}
