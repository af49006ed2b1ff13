//! Escapes as the crawlers' canonicalizers treat them: decoded until none is left, then the few bytes encoded that must
//! be. In: bytes of a component. Out: the same buffer, changed. (RFC 3986 section 2.4 forbids decoding twice; these
//! keys do it all the same.)

/// Decodes every escape, and every escape that decoding makes. One walk: a decoded byte can only complete an escape
/// that begins in what was written already, and `%` begins one but never ends one, so the order does not matter.
pub fn decode_all(text: &mut Vec<u8>) -> bool {
    let Some(first) = memchr::memchr(b'%', text) else { return false };
    let mut end = first;
    for from in first..text.len() {
        text[end] = text[from];
        end += 1;
        while end >= first + 3 {
            let Some(byte) = escape(&text[end - 3..end]) else { break };
            end -= 2;
            text[end - 1] = byte;
        }
    }
    let changed = end != text.len();
    text.truncate(end);
    changed
}

/// The byte that `%XX` stands for.
pub fn escape(text: &[u8]) -> Option<u8> {
    let [b'%', high, low] = *text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(high)? << 4 | digit(low)?) as u8)
}

/// Appends `byte` as `%XX`.
pub fn write_escape(byte: u8, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
}

/// Appends `text` with each escape decoded, once.
pub fn write_decoded(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while at < text.len() {
        let found = text.get(at..at + 3).and_then(escape);
        out.push(found.unwrap_or(text[at]));
        at += if found.is_some() { 3 } else { 1 };
    }
}

/// `unreserved`, RFC 3986 section 2.3.
pub fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// `unreserved` and `reserved` but `#`, `[` and `]`: what stands in paths and queries as it is.
pub fn is_uri_text(byte: u8) -> bool {
    is_unreserved(byte) || b":/?@!$&'()*+,;=".contains(&byte)
}

/// What both SURT programs leave as it is: ASCII above the space, but `%` and `#`.
pub fn is_kept_in_surt(byte: u8) -> bool {
    byte > b' ' && byte < 0x80 && byte != b'%' && byte != b'#'
}

/// Decodes all escapes and encodes the least; true if the text is another one afterwards.
pub fn reduce(text: &mut Vec<u8>, spare: &mut Vec<u8>) -> bool {
    if text.iter().all(|&byte| is_kept_in_surt(byte)) {
        return false;
    }
    spare.clear();
    spare.extend_from_slice(text);
    decode_all(spare);
    encode(spare, text)
}

/// Makes `text` what `decoded` is with the least escapes; true if it was something else.
pub fn encode(decoded: &[u8], text: &mut Vec<u8>) -> bool {
    if is_encoding_of(text, decoded) {
        return false;
    }
    text.clear();
    for &byte in decoded {
        if is_kept_in_surt(byte) {
            text.push(byte);
        } else {
            write_escape(byte, text);
        }
    }
    true
}

fn is_encoding_of(text: &[u8], decoded: &[u8]) -> bool {
    let mut rest = text;
    for &byte in decoded {
        let len = if is_kept_in_surt(byte) { 1 } else { 3 };
        let Some((head, tail)) = rest.split_at_checked(len) else { return false };
        let same = if len == 1 { head[0] == byte } else { is_upper(head) && escape(head) == Some(byte) };
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

    /// As the programs do it: pass after pass until nothing changes.
    fn decode_by_passes(mut text: Vec<u8>) -> Vec<u8> {
        loop {
            let mut next = Vec::new();
            let mut at = 0;
            while at < text.len() {
                match text.get(at..at + 3).and_then(escape) {
                    Some(byte) => {
                        next.push(byte);
                        at += 3;
                    }
                    None => {
                        next.push(text[at]);
                        at += 1;
                    }
                }
            }
            if next == text {
                return text;
            }
            text = next;
        }
    }

    #[test]
    fn one_walk_equals_pass_after_pass() {
        for number in 0..6usize.pow(8) / 7 {
            let mut text: Vec<u8> = (0..8).map(|i| b"%%25f4"[number * 7 / 6usize.pow(i) % 6]).collect();
            let want = decode_by_passes(text.clone());
            decode_all(&mut text);
            assert_eq!(text, want, "{number}");
        }
    }

    #[test]
    fn least_encoding() {
        for (text, want) in
            [("%2525252F %e9", "/%20%E9"), ("%", "%25"), ("%zz%2", "%25zz%252"), ("\u{7f}\u{e9}", "\u{7f}%C3%A9")]
        {
            let mut text = text.as_bytes().to_vec();
            reduce(&mut text, &mut Vec::new());
            assert_eq!(text, want.as_bytes());
        }
    }
}
