//! Percent-encoding: RFC 3986 sections 2.1 and 6.2.2.2, RFC 3987 sections 3.1 and 5.3.2.3.
//!
//! These functions decode and encode escapes and report what lenient mode repairs. Every escape is decoded at most
//! once: `%2541` never becomes `A`.

use std::borrow::Cow;

use super::class::{self, CONTROL, EXCLUDED, HEXDIG, UNRESERVED};
use super::fault::Component;
use super::flags::{Changes, Flags};
use crate::kernel::{escape, mask_of_triples};

/// Value of a hexadecimal digit; 255 for other bytes.
const HEX_VALUE: [u8; 256] = {
    let mut values = [255; 256];
    let mut digit = 0;
    while digit < 16 {
        values[b"0123456789ABCDEF"[digit] as usize] = digit as u8;
        values[b"0123456789abcdef"[digit] as usize] = digit as u8;
        digit += 1;
    }
    values
};

/// The octet that the escape at the start of `text` encodes; `None` if `text` does not start with `%` and two
/// hexadecimal digits.
#[inline(always)]
pub(crate) fn escape_value(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = *text else { return None };
    let (high, low) = (HEX_VALUE[high as usize], HEX_VALUE[low as usize]);
    (high | low < 16).then_some(high << 4 | low)
}

/// The text with an escape for each byte that is not part of a UTF-8 sequence.
pub(crate) fn escape_invalid_utf8(text: &[u8]) -> Cow<'_, str> {
    let mut chunks = text.utf8_chunks();
    let mut out = Vec::new();
    for chunk in &mut chunks {
        if chunk.invalid().is_empty() && out.is_empty() {
            return Cow::Borrowed(chunk.valid());
        }
        out.extend_from_slice(chunk.valid().as_bytes());
        crate::kernel::percent_encode(chunk.invalid(), &mut out);
    }
    // Every byte that is not UTF-8 has become an escape, so the conversion is lossless.
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

/// Returns the octets of `text` with every escape decoded once, and whether each was written as an escape. A stray `%`
/// stays.
pub(crate) fn octets(text: &[u8]) -> impl Iterator<Item = (u8, bool)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let escaped = escape_value(rest);
        let octet = escaped.or(rest.first().copied())?;
        rest = &rest[if escaped.is_some() { 3 } else { 1 }..];
        Some((octet, escaped.is_some()))
    })
}

/// Decodes every escape of `text` once; a stray `%` stays.
pub(crate) fn decode_escapes(text: &[u8]) -> Cow<'_, [u8]> {
    match memchr::memchr(b'%', text) {
        None => Cow::Borrowed(text),
        Some(_) => Cow::Owned(octets(text).map(|(octet, _)| octet).collect()),
    }
}

/// Appends `text` to `out`. The bytes for which `is_encoded` returns true become escapes.
pub(crate) fn write_encoded(text: &[u8], is_encoded: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| is_encoded(*byte)) {
        let (plain, encoded) = rest.split_at(at);
        out.extend_from_slice(plain);
        let len = encoded.iter().position(|byte| !is_encoded(*byte)).unwrap_or(encoded.len());
        crate::kernel::percent_encode(&encoded[..len], out);
        rest = &encoded[len..];
    }
    out.extend_from_slice(rest);
}

/// The flag for one non-ASCII character of `component`, or for a byte that is not UTF-8 (`None`).
pub(super) fn non_ascii_flag(character: Option<char>, component: Component) -> Flags {
    match character {
        None => Flags::NOT_UTF8,
        Some(c) if class::is_bidi_control(c) => Flags::BIDI_CONTROL,
        Some(c) if class::is_iri_char(c, component == Component::Query) => Flags::NONE,
        Some('\u{80}'..='\u{9F}') => Flags::CONTROL,
        Some(_) => Flags::NOT_UCSCHAR,
    }
}

/// The flag for one ASCII byte of `component`; none if the grammar allows the byte there.
pub(super) fn ascii_flag(byte: u8, component: Component) -> Flags {
    let is_stray = match byte {
        b'[' | b']' => component != Component::Host,
        b'#' => component == Component::Fragment,
        _ => false,
    };
    match byte {
        _ if is_stray => Flags::STRAY_DELIM,
        byte if EXCLUDED.contains(byte) => Flags::EXCLUDED,
        byte if CONTROL.contains(byte) => Flags::CONTROL,
        _ => Flags::NONE,
    }
}

/// Returns true for the bytes that become escapes in a URI: non-ASCII bytes (RFC 3987 section 3.1 step 2) and those
/// that lenient mode repairs.
#[inline(always)]
fn is_encoded(byte: u8) -> bool {
    byte >= 0x80 || EXCLUDED.contains(byte) || CONTROL.contains(byte)
}

/// The flags for everything that lenient mode repairs or keeps in a component.
pub(super) fn component_flags(text: &[u8], component: Component) -> Flags {
    let mut flags = Flags::NONE;
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        if byte >= 0x80 {
            let (character, len) = bstr::decode_utf8(&text[at..]);
            flags |= non_ascii_flag(character, component);
            at += len;
            continue;
        }
        if byte == b'%' && escape_value(&text[at..]).is_none() {
            flags |= Flags::STRAY_PERCENT;
        }
        flags |= ascii_flag(byte, component);
        at += 1;
    }
    flags
}

/// Decodes escapes of unreserved characters, once (RFC 3987 section 5.3.2.3). All other escapes and stray `%` stay, and
/// so do escapes for which [`would_complete_an_escape`] returns true.
pub(super) fn decode_unreserved(text: &[u8]) -> Vec<u8> {
    map_escapes(text, |octet, escape, out| {
        if UNRESERVED.contains(octet) && !would_complete_an_escape(octet, out) {
            out.push(octet);
        } else {
            out.extend_from_slice(escape);
        }
    })
}

/// Returns true if `octet`, written after `out`, would become a digit of an escape that starts with a stray `%`.
///
/// `%%341` would become `%41`, and the next normalization would turn that into `A`. Keeping such an escape makes
/// normalization idempotent.
#[inline(always)]
pub(super) fn would_complete_an_escape(octet: u8, out: &[u8]) -> bool {
    match *out {
        [.., b'%'] => HEXDIG.contains(octet),
        [.., b'%', digit] => HEXDIG.contains(octet) && HEXDIG.contains(digit),
        _ => false,
    }
}

/// Converts the digits of escapes to upper case (RFC 3987 section 5.3.2.1).
pub(super) fn upper_case_escapes(text: &[u8]) -> Vec<u8> {
    map_escapes(text, |_, escape, out| out.extend_from_slice(&escape.to_ascii_uppercase()))
}

/// Returns whether `text` begins with an escape that every rung keeps as it is.
#[inline(always)]
pub(super) fn is_canonical_escape(text: &[u8]) -> bool {
    let is_undecoded = escape_value(text).is_some_and(|octet| !UNRESERVED.contains(octet));
    is_undecoded && text[1].max(text[2]) < b'a'
}

/// [`is_canonical_escape`] of three bytes: an escape with digits in upper case, of an octet that is not an unreserved character.
/// There is no branch, so that the compiler vectorizes it.
#[inline(always)]
pub(super) fn is_canonical_triple(percent: u8, high: u8, low: u8) -> bool {
    let digit_value = |digit: u8| {
        let (number, letter) = (digit.wrapping_sub(b'0'), digit.wrapping_sub(b'A'));
        if number < 10 { number } else { if letter < 6 { letter + 10 } else { 0xFF } }
    };
    let (high, low) = (digit_value(high), digit_value(low));
    let octet = high << 4 | low;
    let is_alphanumeric = ((octet | 0x20).wrapping_sub(b'a') < 26) | (octet.wrapping_sub(b'0') < 10);
    let is_unreserved = is_alphanumeric | (octet == b'-') | (octet == b'.') | (octet == b'_') | (octet == b'~');
    (percent == b'%') & (high < 16) & (low < 16) & !is_unreserved
}

/// Length of the run of escapes of octets that are not unreserved characters at the start of `text`, with digits in either case;
/// at most 63.
#[inline(always)]
pub(super) fn run_of_undecoded_escapes(text: &[u8; 66]) -> usize {
    /// Every third byte.
    const STARTS: u64 = 0x1249_2492_4924_9249;
    let upper = |digit: u8| if digit.wrapping_sub(b'a') < 6 { digit - 32 } else { digit };
    let undecoded = mask_of_triples(text, |percent, high, low| is_canonical_triple(percent, upper(high), upper(low)));
    (STARTS & !undecoded).trailing_zeros().min(63) as usize
}

/// Replaces each escape of `text` by what `write` appends for its octet and its text.
fn map_escapes(text: &[u8], write: impl Fn(u8, &[u8], &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if let Some(octet) = escape_value(&text[at..]) {
            write(octet, &text[at..at + 3], &mut out);
            at += 3;
        } else {
            out.push(text[at]);
            at += 1;
        }
    }
    out
}

/// Appends a name or a value of a form as Python's `quote_plus` does: spaces become `+`, and all bytes except `unreserved` become
/// escapes. The URL Standard (section 5.2) keeps `*` and encodes `~`.
pub(crate) fn write_form_encoded(text: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        match byte {
            b' ' => out.push(b'+'),
            _ if UNRESERVED.contains(byte) => out.push(byte),
            _ => out.extend_from_slice(&escape(byte)),
        }
    }
}

/// Percent-encodes the bytes that a URI cannot contain: non-ASCII bytes (RFC 3987 section 3.1 step 2), controls and
/// excluded ASCII characters. `%` and reserved characters stay. The bytes may be in any charset: `M\xE4rz 1/%20`
/// becomes `M%E4rz%201/%20`.
pub(crate) fn percent_encode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    write_encoded(text, is_encoded, &mut out);
    out
}

/// Applies RFC 3987 sections 5.3.2.3, 5.3.2.1 and 3.1 to one component. Returns its text in a URI, the flags and the
/// changes.
pub(super) fn map_component(text: &[u8], component: Component) -> (Vec<u8>, Flags, Changes) {
    let mut changes = Changes::NONE;
    let mut step = |before: &[u8], after: Vec<u8>, change| {
        if before != after {
            changes |= change;
        }
        after
    };
    let has_escapes = memchr::memchr(b'%', text).is_some();
    let upper = if has_escapes {
        let decoded = step(text, decode_unreserved(text), Changes::PCT_DECODED);
        Cow::Owned(step(&decoded, upper_case_escapes(&decoded), Changes::PCT_CASE))
    } else {
        Cow::Borrowed(text)
    };
    let encoded = step(&upper, percent_encode(&upper), Changes::PCT_ENCODED);
    (encoded, component_flags(text, component), changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_have_exactly_two_hexadecimal_digits() {
        assert_eq!(escape_value(b"%aF"), Some(0xAF));
        for text in [&b"%"[..], b"%a", b"%ag", b"%ga", b"a%41", b"%\xFFa", b""] {
            assert_eq!(escape_value(text), None, "{text:?}");
        }
    }

    #[test]
    fn canonical_escapes_are_the_same_with_and_without_branches() {
        for high in 0..=0xFF {
            for low in 0..=0xFF {
                assert_eq!(is_canonical_triple(b'%', high, low), is_canonical_escape(&[b'%', high, low]));
                assert!(!is_canonical_triple(high, b'2', b'F') || high == b'%');
            }
        }
    }

    #[test]
    fn escapes_are_decoded_once() {
        assert_eq!(*decode_escapes(b"a%2541%41%"), *b"a%41A%");
        assert_eq!(decode_unreserved(b"%7euser%2f%2541%zz"), b"~user%2f%2541%zz");
        assert_eq!(upper_case_escapes(b"%7euser%2f%2541%zz"), b"%7Euser%2F%2541%zz");
    }

    #[test]
    fn bytes_that_a_uri_cannot_contain_are_encoded() {
        assert_eq!(percent_encode(b"M\xE4rz 1/%20"), b"M%E4rz%201/%20");
    }
}
