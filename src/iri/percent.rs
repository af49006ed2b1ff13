//! Percent-encoding, RFC 3986 sections 2.1 and 6.2.2.2, RFC 3987 sections 3.1 and 5.3.2.3: one escape at a time, and
//! the bytes that must become escapes. Decodes once, never twice.

use std::borrow::Cow;

use super::class::{self, CONTROL, EXCLUDED, HEXDIG, UNRESERVED};
use super::{Changes, Component, Flags};

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

/// The octet that the escape at the start of `text` stands for; `None` if two hexadecimal digits do not follow the `%`.
#[inline(always)]
pub fn escape_value(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = *text else { return None };
    let (high, low) = (HEX_VALUE[high as usize], HEX_VALUE[low as usize]);
    (high | low != 255 && high < 16 && low < 16).then_some(high << 4 | low)
}

/// Every escape of `text` decoded once; a stray `%` stays.
pub fn decode_escapes(text: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'%', text) else { return Cow::Borrowed(text) };
    let mut out = text[..first].to_vec();
    out.extend_from_slice(&map_escapes(&text[first..], |octet, _, out| out.push(octet)));
    Cow::Owned(out)
}

/// What lenient intake notices about one character beyond ASCII (or a byte that is none) in `component`.
pub fn non_ascii_flag(character: Option<char>, component: Component) -> Flags {
    match character {
        None => Flags::NOT_UTF8,
        Some(c) if class::is_bidi_control(c) => Flags::BIDI_CONTROL,
        Some(c) if class::is_ucschar(c) => Flags::NONE,
        Some(c) if component == Component::Query && class::is_iprivate(c) => Flags::NONE,
        Some('\u{80}'..='\u{9F}') => Flags::CONTROL,
        Some(_) => Flags::NOT_UCSCHAR,
    }
}

/// What lenient intake notices about an ASCII byte of `component` that its rule does not derive.
pub fn ascii_flag(byte: u8, component: Component) -> Flags {
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

/// The bytes that become escapes on the way to a URI: those beyond ASCII (section 3.1 step 2), and what lenient intake
/// repairs.
#[inline(always)]
pub fn is_encoded(byte: u8) -> bool {
    byte >= 0x80 || EXCLUDED.contains(byte) || CONTROL.contains(byte)
}

/// Flags of all that lenient intake repairs or lets pass in a component.
pub fn component_flags(text: &[u8], component: Component) -> Flags {
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

/// Section 5.3.2.3: escapes of unreserved characters decoded, once; all others and a stray `%` stay, and so does an
/// escape that [`would_complete_an_escape`].
pub fn decode_unreserved(text: &[u8]) -> Vec<u8> {
    map_escapes(text, |octet, escape, out| {
        if UNRESERVED.contains(octet) && !would_complete_an_escape(octet, out) {
            out.push(octet);
        } else {
            out.extend_from_slice(escape);
        }
    })
}

/// `octet`, written after `out`, would stand behind a stray `%` as one of its two digits: `%%341` would become `%41`,
/// and that `A` on the next pass. Then normalising would not be idempotent, and the escape stays.
#[inline(always)]
pub fn would_complete_an_escape(octet: u8, out: &[u8]) -> bool {
    match *out {
        [.., b'%'] => HEXDIG.contains(octet),
        [.., b'%', digit] => HEXDIG.contains(octet) && HEXDIG.contains(digit),
        _ => false,
    }
}

/// Section 5.3.2.1: the digits of escapes in upper case.
pub fn upper_case_escapes(text: &[u8]) -> Vec<u8> {
    map_escapes(text, |_, escape, out| out.extend_from_slice(&escape.to_ascii_uppercase()))
}

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

/// Section 3.1 step 2 and the repairs of lenient intake, for bytes in any charset: those beyond ASCII, controls and the
/// ASCII characters that no URI holds become escapes; `%` and reserved characters stay.
///
/// ```
/// assert_eq!(irikey::iri::percent_encode(b"M\xE4rz 1/%20"), b"M%E4rz%201/%20");
/// ```
pub fn encode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for run in text.chunk_by(|a, b| is_encoded(*a) == is_encoded(*b)) {
        if is_encoded(run[0]) { crate::kernel::percent_encode(run, &mut out) } else { out.extend_from_slice(run) }
    }
    out
}

/// Sections 5.3.2.3, 5.3.2.1 and 3.1 on one component: its text in a URI, what was noticed, what was changed.
pub fn map_component(text: &[u8], component: Component) -> (Vec<u8>, Flags, Changes) {
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
    let encoded = step(&upper, encode(&upper), Changes::PCT_ENCODED);
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
    fn decoding_happens_once() {
        assert_eq!(*decode_escapes(b"a%2541%41%"), *b"a%41A%");
        assert_eq!(decode_unreserved(b"%7euser%2f%2541%zz"), b"~user%2f%2541%zz");
        assert_eq!(upper_case_escapes(b"%7euser%2f%2541%zz"), b"%7Euser%2F%2541%zz");
    }
}
