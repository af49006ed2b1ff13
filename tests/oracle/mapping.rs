//! Maps an IRI to a URI: RFC 3987 section 3.1.
//!
//! Step 1 (conversion to Unicode, normalization of legacy charsets) is done before: the input is UTF-8 or malformed.
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
