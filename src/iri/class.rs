//! The character classes of the grammar: one constant per ABNF rule of RFC 3986 appendix A and RFC 3987 section 2.2.
//!
//! ASCII classes are [`ByteSet`]s that are built from each other as the ABNF builds them. Classes of non-ASCII
//! characters are functions.

use crate::kernel::{ByteSet, Classifier};

/// `ALPHA`, RFC 5234.
pub(crate) const ALPHA: ByteSet = UPPER.or(ByteSet::range(b'a', b'z'));
/// The upper-case letters of `ALPHA`.
pub(crate) const UPPER: ByteSet = ByteSet::range(b'A', b'Z');
/// `DIGIT`, RFC 5234.
pub(crate) const DIGIT: ByteSet = ByteSet::range(b'0', b'9');
/// `HEXDIG`, RFC 5234, in upper and lower case.
pub(crate) const HEXDIG: ByteSet = DIGIT.or(ByteSet::range(b'A', b'F')).or(ByteSet::range(b'a', b'f'));
/// The bytes after the first of `scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`, RFC 3986 section 3.1.
pub(crate) const SCHEME_TAIL: ByteSet = ALPHA.or(DIGIT).or(ByteSet::of(b"+-."));
/// `unreserved = ALPHA / DIGIT / "-" / "." / "_" / "~"`, RFC 3986 section 2.3.
pub(crate) const UNRESERVED: ByteSet = ALPHA.or(DIGIT).or(ByteSet::of(b"-._~"));
/// `sub-delims`, RFC 3986 section 2.2.
pub(crate) const SUB_DELIMS: ByteSet = ByteSet::of(b"!$&'()*+,;=");
/// The single bytes of `reg-name = *( unreserved / pct-encoded / sub-delims )`, RFC 3986 section 3.2.2.
pub(crate) const REG_NAME: ByteSet = UNRESERVED.or(SUB_DELIMS);
/// The single bytes of `userinfo = *( unreserved / pct-encoded / sub-delims / ":" )`, RFC 3986 section 3.2.1. The
/// address of an `IPvFuture` has the same bytes.
pub(crate) const USERINFO: ByteSet = REG_NAME.or(ByteSet::of(b":"));
/// The single bytes of `pchar = unreserved / pct-encoded / sub-delims / ":" / "@"`, RFC 3986 section 3.3.
const PCHAR: ByteSet = USERINFO.or(ByteSet::of(b"@"));
/// The single bytes of `path`, RFC 3986 section 3.3.
pub(crate) const PATH: ByteSet = PCHAR.or(ByteSet::of(b"/"));
/// The single bytes of `query = *( pchar / "/" / "?" )` and of `fragment`, RFC 3986 sections 3.4 and 3.5.
pub(crate) const QUERY: ByteSet = PATH.or(ByteSet::of(b"?"));
/// ASCII characters that no rule derives and that RFC 3987 section 3.1 allows systems to encode: `<>"{}|\^`, backtick,
/// space.
pub(crate) const EXCLUDED: ByteSet = ByteSet::of(b"<>\"{}|\\^` ");
/// C0 controls and DEL.
pub(crate) const CONTROL: ByteSet = ByteSet::range(0, 0x1F).or(ByteSet::of(&[0x7F]));
/// Bytes of non-ASCII characters, and bytes that are not text.
pub(crate) const NON_ASCII: ByteSet = ByteSet::range(0x80, 0xFF);

/// Bytes that no rung changes in a host.
const HOST_UNCHANGED: ByteSet = ByteSet::range(b'a', b'z').or(DIGIT).or(ByteSet::of(b"-._"));

/// The classifier whose bitmaps the fast normalization pass reads.
///
/// *Attention* marks every byte of a path, query or fragment that cannot be copied without inspection, including the
/// `.` of a possible dot segment. *Stop* marks every byte that ends a run of unchanged host bytes, including the second
/// `-` of `--`, because only a label with `--` can begin with `xn--`.
pub(crate) const CLASSIFIER: Classifier = Classifier::new(
    EXCLUDED.or(CONTROL).or(NON_ASCII).or(ByteSet::of(b"%[]#")),
    [b'/', b'.'],
    HOST_UNCHANGED.not(),
    [b'-', b'-'],
);

/// `ucschar`, RFC 3987 section 2.2.
pub(crate) const fn is_ucschar(c: char) -> bool {
    matches!(c, '\u{A0}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFEF}')
        || (c as u32 >= 0x10000 && c as u32 & 0xFFFF <= 0xFFFD && (c as u32) < 0xE0000)
        || (c as u32 >= 0xE1000 && c as u32 <= 0xEFFFD)
}

/// `iprivate`, RFC 3987 section 2.2: allowed only in a query.
const fn is_iprivate(c: char) -> bool {
    matches!(c, '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{FFFFD}' | '\u{100000}'..='\u{10FFFD}')
}

/// A non-ASCII character that the grammar of RFC 3987 section 2.2 allows, in a query or elsewhere.
pub(crate) const fn is_iri_char(c: char, is_query: bool) -> bool {
    is_ucschar(c) || (is_query && is_iprivate(c))
}

/// The bidirectional formatting characters that RFC 3987 section 4.1 forbids: LRM, RLM, LRE, RLE, PDF, LRO, RLO.
pub(crate) const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}')
}

/// [`is_bidi_control`] and the controls that Unicode added later: ALM and the isolates. URI->IRI never decodes them.
pub(crate) const fn is_any_bidi_control(c: char) -> bool {
    is_bidi_control(c) || matches!(c, '\u{61C}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ucschar_and_iprivate_are_disjoint_and_exclude_noncharacters() {
        for code in 0x80..=0x10FFFF {
            let Some(c) = char::from_u32(code) else { continue };
            assert!(!(is_ucschar(c) && is_iprivate(c)), "{code:X}");
            if code & 0xFFFE == 0xFFFE || (0xFDD0..=0xFDEF).contains(&code) {
                assert!(!is_ucschar(c) && !is_iprivate(c), "{code:X}");
            }
        }
    }

    #[test]
    fn every_ascii_byte_is_either_allowed_or_encoded() {
        for byte in 0..=0x7F {
            let is_allowed = QUERY.contains(byte) || b"#[]%".contains(&byte);
            assert!(is_allowed ^ (EXCLUDED.contains(byte) || CONTROL.contains(byte)), "{byte}");
        }
    }
}
