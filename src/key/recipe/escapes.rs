//! Escapes as crawl software treats them: decoded until none remains, then only the bytes encoded that must be. RFC 3986
//! section 2.4 forbids decoding twice; these keys require it.

use crate::iri::{escape_value, write_encoded};
use crate::kernel::{any_byte, any_pair, append, find_byte, non_ascii_len, percent_encode};

/// Decodes every escape, including those that decoding creates, in one pass; returns whether there was one. One pass
/// suffices because a decoded byte can only complete an escape that begins in the text before it: `%` begins an escape
/// and never ends one.
pub(super) fn decode_all(text: &mut Vec<u8>) -> bool {
    let Some(first) = memchr::memchr(b'%', text) else { return false };
    let mut end = first;
    for from in first..text.len() {
        text[end] = text[from];
        end += 1;
        while end >= first + 3 {
            let Some(byte) = escape_value(&text[end - 3..end]) else { break };
            end -= 2;
            text[end - 1] = byte;
        }
    }
    let changed = end != text.len();
    text.truncate(end);
    changed
}

/// The bytes that both SURT programs do not escape: ASCII above the space except `%` and `#`.
#[inline(always)]
pub(super) fn is_kept_in_surt(byte: u8) -> bool {
    (byte > b' ') & (byte < 0x80) & (byte != b'%') & (byte != b'#')
}

/// Decodes all escapes, encodes only what must be encoded, and returns whether the text changed.
pub(super) fn reduce(text: &mut Vec<u8>, spare: &mut Vec<u8>) -> bool {
    if !any_byte(text, |byte| !is_kept_in_surt(byte)) {
        return false;
    }
    spare.clear();
    spare.extend_from_slice(text);
    decode_all(spare);
    encode(spare, text)
}

/// Appends what [`reduce`] makes of `text`, in one pass, and returns whether that differs. Returns `None`, after a part was
/// appended, if decoding once is not enough because a `%` remains; if a line separator outside ASCII may be to be removed; or
/// if the result contains DEL.
pub(super) fn write_reduced(text: &[u8], out: &mut Vec<u8>) -> Option<bool> {
    let (mut rest, mut is_changed) = (text, false);
    loop {
        let kept_len = find_byte(rest, |byte| !is_kept_in_surt(byte) | (byte == 0x7F)).unwrap_or(rest.len());
        let (kept, other) = rest.split_at(kept_len);
        append(out, kept);
        match *other {
            [] => return Some(is_changed),
            [b'%', ..] => {
                let (code, tail) = other.split_first_chunk::<3>()?;
                match escape_value(code)? {
                    b'%' | 0x7F => return None,
                    byte if is_kept_in_surt(byte) => {
                        out.push(byte);
                        is_changed = true;
                    }
                    _ => {
                        out.extend_from_slice(&code.map(|byte| byte.to_ascii_uppercase()));
                        is_changed |= !is_upper(code);
                    }
                }
                rest = tail;
            }
            [0x80..=0xFF, ..] => {
                let (encoded, tail) = other.split_at(non_ascii_len(other));
                if any_pair(encoded, |byte, next| ((byte == 0xC2) & (next == 0x85)) | ((byte == 0xE2) & (next == 0x80)))
                {
                    return None;
                }
                percent_encode(encoded, out);
                is_changed = true;
                rest = tail;
            }
            _ => return None,
        }
    }
}

/// Replaces `text` by `decoded` with as few escapes as possible, and returns whether the text changed.
pub(super) fn encode(decoded: &[u8], text: &mut Vec<u8>) -> bool {
    if is_encoding_of(text, decoded) {
        return false;
    }
    text.clear();
    write_encoded(decoded, |byte| !is_kept_in_surt(byte), text);
    true
}

fn is_encoding_of(text: &[u8], decoded: &[u8]) -> bool {
    let mut rest = text;
    for &byte in decoded {
        let len = if is_kept_in_surt(byte) { 1 } else { 3 };
        let Some((head, tail)) = rest.split_at_checked(len) else { return false };
        let same = if len == 1 { head[0] == byte } else { is_upper(head) && escape_value(head) == Some(byte) };
        if !same {
            return false;
        }
        rest = tail;
    }
    rest.is_empty()
}

fn is_upper(text: &[u8]) -> bool {
    !text.iter().any(u8::is_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::decode_escapes;

    /// Decodes pass after pass until nothing changes, as the programs do.
    fn decode_by_passes(mut text: Vec<u8>) -> Vec<u8> {
        loop {
            let next = decode_escapes(&text).into_owned();
            if next == text {
                return text;
            }
            text = next;
        }
    }

    #[test]
    fn one_pass_equals_repeated_passes() {
        for number in 0..6usize.pow(8) / 7 {
            let mut text: Vec<u8> = (0..8).map(|i| b"%%25f4"[number * 7 / 6usize.pow(i) % 6]).collect();
            let expected = decode_by_passes(text.clone());
            decode_all(&mut text);
            assert_eq!(text, expected, "{number}");
        }
    }

    #[test]
    fn one_pass_writes_what_reduce_makes_or_nothing() {
        #[rustfmt::skip]
        let pieces: [&[u8]; 16] = [
            b"a", b"/B.c", b"%41", b"%2f", b"%C3%A9", b"%c3", b"\xC3\xA9", b"\xFF", b"%20", b"%23", b"%7f", b"%25",
            b"%", b"4", b" ", b"\xC2\x85",
        ];
        let mut written = 0;
        for number in 0..16usize.pow(4) {
            let text = (0..4).map(|i| pieces[number / 16usize.pow(i) % 16]).collect::<Vec<_>>().concat();
            let (mut reduced, mut out) = (text.clone(), Vec::new());
            let is_changed = reduce(&mut reduced, &mut Vec::new());
            if let Some(changed) = write_reduced(&text, &mut out) {
                assert_eq!((changed, &out), (is_changed, &reduced), "{}", text.escape_ascii());
                written += 1;
            }
        }
        assert_eq!(written, 14_729);
    }

    #[test]
    fn reduce_encodes_only_what_must_be_encoded() {
        for (text, expected) in
            [("%2525252F %e9", "/%20%E9"), ("%", "%25"), ("%zz%2", "%25zz%252"), ("\u{7f}\u{e9}", "\u{7f}%C3%A9")]
        {
            let mut text = text.as_bytes().to_vec();
            reduce(&mut text, &mut Vec::new());
            assert_eq!(text, expected.as_bytes());
        }
    }
}
