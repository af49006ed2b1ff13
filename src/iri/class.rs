//! The grammar's character classes: one constant per ABNF rule of RFC 3986 appendix A and RFC 3987 section 2.2, each
//! built from others. ASCII classes are [`ByteSet`]s; characters beyond ASCII are judged by functions.

use crate::kernel::{ByteSet, Classifier};

/// `ALPHA`, RFC 5234.
pub const ALPHA: ByteSet = UPPER.or(ByteSet::range(b'a', b'z'));
/// The upper-case half of `ALPHA`.
pub const UPPER: ByteSet = ByteSet::range(b'A', b'Z');
/// `DIGIT`, RFC 5234.
pub const DIGIT: ByteSet = ByteSet::range(b'0', b'9');
/// `HEXDIG`, RFC 5234, in either case.
pub const HEXDIG: ByteSet = DIGIT.or(ByteSet::range(b'A', b'F')).or(ByteSet::range(b'a', b'f'));
/// `scheme = ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`, RFC 3986 section 3.1; bytes after the first.
pub const SCHEME_TAIL: ByteSet = ALPHA.or(DIGIT).or(ByteSet::of(b"+-."));
/// `unreserved = ALPHA / DIGIT / "-" / "." / "_" / "~"`, RFC 3986 section 2.3.
pub const UNRESERVED: ByteSet = ALPHA.or(DIGIT).or(ByteSet::of(b"-._~"));
/// `sub-delims`, RFC 3986 section 2.2.
pub const SUB_DELIMS: ByteSet = ByteSet::of(b"!$&'()*+,;=");
/// `reg-name = *( unreserved / pct-encoded / sub-delims )`, RFC 3986 section 3.2.2; its single bytes.
pub const REG_NAME: ByteSet = UNRESERVED.or(SUB_DELIMS);
/// `userinfo = *( unreserved / pct-encoded / sub-delims / ":" )`, RFC 3986 section 3.2.1; its single bytes.
/// `IPvFuture` has the same after its `.`, less escapes.
pub const USERINFO: ByteSet = REG_NAME.or(ByteSet::of(b":"));
/// `pchar = unreserved / pct-encoded / sub-delims / ":" / "@"`, RFC 3986 section 3.3; its single bytes.
pub const PCHAR: ByteSet = USERINFO.or(ByteSet::of(b"@"));
/// `path = *( "/" segment )` and its relatives; single bytes.
pub const PATH: ByteSet = PCHAR.or(ByteSet::of(b"/"));
/// `query = *( pchar / "/" / "?" )`, RFC 3986 section 3.4; `fragment` has the same.
pub const QUERY: ByteSet = PATH.or(ByteSet::of(b"?"));
/// ASCII characters that no rule derives and RFC 3987 section 3.1 lets systems encode: `<>"{}|\^`, backtick, space.
pub const EXCLUDED: ByteSet = ByteSet::of(b"<>\"{}|\\^` ");
/// C0 controls and DEL.
pub const CONTROL: ByteSet = ByteSet::range(0, 0x1F).or(ByteSet::of(&[0x7F]));
/// Bytes of characters beyond ASCII, and bytes that are no text.
pub const NON_ASCII: ByteSet = ByteSet::range(0x80, 0xFF);

/// Bytes of a host that is canonical as it stands: it needs no lower-casing, decoding or mapping.
const HOST_AS_IS: ByteSet = ByteSet::range(b'a', b'z').or(DIGIT).or(ByteSet::of(b"-."));

/// What the fast pass wants marked. Attention: everything in path, query and fragment that is not copied as it is
/// without a look, the `.` of a possible dot segment among it. Stop: everything that ends a run of plain host bytes;
/// the second `-` of `--` too, since only then can a label begin with `xn--`.
pub const CLASSIFIER: Classifier = Classifier::new(
    EXCLUDED.or(CONTROL).or(NON_ASCII).or(ByteSet::of(b"%[]#")),
    [b'/', b'.'],
    HOST_AS_IS.not(),
    [b'-', b'-'],
);

/// `ucschar`, RFC 3987 section 2.2.
pub const fn is_ucschar(c: char) -> bool {
    matches!(c, '\u{A0}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFEF}')
        || (c as u32 >= 0x10000 && c as u32 & 0xFFFF <= 0xFFFD && (c as u32) < 0xE0000)
        || (c as u32 >= 0xE1000 && c as u32 <= 0xEFFFD)
}

/// `iprivate`, RFC 3987 section 2.2: allowed in a query only.
pub const fn is_iprivate(c: char) -> bool {
    matches!(c, '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..='\u{FFFFD}' | '\u{100000}'..='\u{10FFFD}')
}

/// The bidirectional formatting characters that RFC 3987 section 4.1 bans: LRM, RLM, LRE, RLE, PDF, LRO, RLO.
pub const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}')
}

/// [`is_bidi_control`] and those that Unicode added since: ALM and the isolates. Never decoded by URI->IRI.
pub const fn is_bidi_control_of_today(c: char) -> bool {
    is_bidi_control(c) || matches!(c, '\u{61C}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ucschar_and_iprivate_do_not_meet_and_leave_out_noncharacters() {
        for code in 0x80..=0x10FFFF {
            let Some(c) = char::from_u32(code) else { continue };
            assert!(!(is_ucschar(c) && is_iprivate(c)), "{code:X}");
            if code & 0xFFFE == 0xFFFE || (0xFDD0..=0xFDEF).contains(&code) {
                assert!(!is_ucschar(c) && !is_iprivate(c), "{code:X}");
            }
        }
    }

    #[test]
    fn no_byte_is_in_two_minds() {
        for byte in 0..=0x7F {
            let legal = QUERY.contains(byte) || b"#[]%".contains(&byte);
            assert!(legal ^ (EXCLUDED.contains(byte) || CONTROL.contains(byte)), "{byte}");
        }
    }
}
