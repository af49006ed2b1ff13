//! Mapping an IRI to a URI. In: bytes. Out: a URI reference, or nothing. RFC 3987 section 3.1.
//!
//! Step 1 (to Unicode, normalisation of legacy charsets) is done before: the bytes are UTF-8 or they are not. Nothing
//! is decoded, no case is changed, and escapes that stand there stay as they are.

use super::components::{self, Components};
use super::grammar;
use super::scheme_rules::{host_to_ascii, percent_decode};

/// Section 3.1, step 2, for one octet: "Convert the octet to %HH, where HH is the hexadecimal notation of the octet
/// value [...] uppercase letters".
pub fn push_percent_encoded(byte: u8, out: &mut String) {
    out.push_str(&format!("%{byte:02X}"));
}

/// Step 2 for a whole reference: every octet of a non-ASCII character is percent-encoded ("ucschar", "iprivate"), and
/// with them what must not stand in a URI at all: controls, space, `<>"{}|\^` and backtick ("Systems accepting IRIs
/// MAY also deal with the printable characters in US-ASCII that are not allowed in URIs").
/// `%`, `[`, `]` and `#` "MUST NOT be converted". Bytes that are not UTF-8 are octets like the others here.
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

/// Section 3.1, host percent-encoded. Not `lenient`: what is no IRI reference is refused. `lenient`: characters that
/// neither grammar has are encoded too. In both cases the result is a URI reference or nothing, so that a stray `%`,
/// `[` or `]` is refused.
pub fn to_uri(input: &[u8], lenient: bool) -> Option<String> {
    if !lenient && !grammar::is_iri_reference(std::str::from_utf8(input).ok()?) {
        return None;
    }
    Some(encode(input)).filter(|uri| grammar::is_uri_reference(uri))
}

/// Section 3.1 with the choice it gives: "replace the ireg-name part of the IRI by the part converted using the
/// ToASCII operation". Escapes in it are decoded first; a host that has no ASCII form is percent-encoded after all, and
/// so is that of a text that is not UTF-8.
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
