//! The canonical form of a host that is not an IP literal.
//!
//! [`push_plain_form`] is a fast path for DNS names that consist of ASCII and of letters which UTS 46 and NFC never
//! change; that covers most internationalized names of crawl data without a table lookup. All other hosts take the
//! general path, [`HostForm::by_steps`]: percent-encoding and case as for any component, then ToASCII by UTS 46.

use std::borrow::Cow;

use super::idn::{decoded_to_ascii, idn_to_ascii, may_be_idn};
use super::punycode;
use crate::iri::class::UPPER;
use crate::iri::fault::Component;
use crate::iri::flags::{Changes, Flags};
use crate::iri::percent::{escape_value, map_component};
use crate::kernel::any_byte;

/// The form of a host is at most this many times as long as the host.
///
/// An escape takes three bytes for one. The form of an internationalized label is longer only if the label is short, because its
/// prefix `xn--` has a fixed length, or if UTS 46 maps characters to several: the longest form is that of a label that is the
/// three bytes of U+337F, of which UTS 46 makes four characters and Punycode 17 bytes. UTS 46 maps one character to up to 18, but
/// there are spaces among these, and then the host keeps its escapes. The characters of a longer label share the prefix, and
/// Punycode encodes the difference of each from the one before.
pub(crate) const MAX_HOST_GROWTH: usize = 8;

/// The text of a host in a URI, with flags and changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostForm<'a> {
    /// The host's text.
    pub(crate) text: Cow<'a, [u8]>,
    /// What was noticed.
    pub(crate) flags: Flags,
    /// The steps that changed the host.
    pub(crate) changes: Changes,
}

impl HostForm<'static> {
    /// The form of `host`: syntax-based normalization, then UTS 46 if `is_network`, for a scheme whose hosts are DNS names.
    pub(super) fn by_steps(host: &[u8], is_network: bool) -> Self {
        let (mut text, mut flags, mut changes) = map_component(host, Component::Host);
        if lower_case_outside_escapes(&mut text) {
            changes |= Changes::CASE;
        }
        if is_network && may_be_idn(&text) {
            // A host without escapes is used as it was written: UTS 46 also maps its case.
            let has_new_escapes = memchr::memchr(b'%', host).is_none() && memchr::memchr(b'%', &text).is_some();
            let (ascii, idn_flags) = if has_new_escapes { decoded_to_ascii(host, true) } else { idn_to_ascii(&text) };
            flags |= idn_flags;
            if let Some(ascii) = ascii.filter(|ascii| ascii.as_bytes() != text) {
                text = ascii.into_bytes();
                changes |= Changes::IDNA;
            }
        }
        HostForm { text: text.into(), flags, changes }
    }
}

/// Converts ASCII letters to lower case, except the digits of escapes. Returns true if a letter changed.
pub(crate) fn lower_case_outside_escapes(host: &mut [u8]) -> bool {
    let mut at = 0;
    let mut is_changed = false;
    while at < host.len() {
        if escape_value(&host[at..]).is_some() {
            at += 3;
            continue;
        }
        is_changed |= UPPER.contains(host[at]);
        host[at].make_ascii_lowercase();
        at += 1;
    }
    is_changed
}

/// Letters of the scripts of most internationalized names. Each letter is valid in UTS 46 and mapped to itself, is not
/// a mark, does not combine with a letter before it, and is not written from right to left. A text of these letters and
/// ASCII is in NFC, and the bidi rule and the joiner rules do not apply to it.
const fn is_plain_letter(code: u32) -> bool {
    match code {
        // Latin: pairs of upper and lower case, and the two letters with horns.
        0xDF..=0xF6 | 0xF8..=0xFF | 0x1A1 | 0x1B0 => true,
        0x101..=0x131 | 0x135..=0x137 | 0x14B..=0x177 | 0x1EA1..=0x1EFF => code % 2 == 1,
        0x13A..=0x13E | 0x142..=0x148 | 0x17A..=0x17E => code.is_multiple_of(2),
        // Greek, Cyrillic, Georgian.
        0x3AC..=0x3CE | 0x430..=0x45F | 0x10D0..=0x10FA => true,
        // Kana, iteration and length marks, Han, Hangul.
        0x3041..=0x3096 | 0x30A1..=0x30FA | 0x3005 | 0x3007 | 0x30FC | 0x3400..=0x4DBF | 0x4E00..=0x9FFF => true,
        0xAC00..=0xD7A3 => true,
        _ => false,
    }
}

/// A bit for each character of the basic multilingual plane that labels of the fast path may contain: ASCII, in upper or lower
/// case, and plain letters.
static PLAIN: [u64; 0x1_0000 / 64] = {
    let mut masks = [0; 0x1_0000 / 64];
    let mut code = 0;
    while code < 0x1_0000 {
        let is_plain = if code < 0x80 { is_plain_ascii(code as u8) } else { is_plain_letter(code) };
        masks[code as usize / 64] |= (is_plain as u64) << (code % 64);
        code += 1;
    }
    masks
};

#[inline(always)]
fn is_plain(c: char) -> bool {
    let code = c as usize;
    PLAIN.get(code / 64).is_some_and(|mask| mask >> (code % 64) & 1 != 0)
}

#[inline(always)]
const fn is_plain_ascii(byte: u8) -> bool {
    ((byte | 0x20).wrapping_sub(b'a') < 26) | (byte.wrapping_sub(b'0') < 10) | (byte == b'-') | (byte == b'_')
}

/// The prefix of A-labels (RFC 5890 section 2.3.2.1).
const A_LABEL_PREFIX: &[u8; 4] = b"xn--";

/// Buffers for one label, and what is known from earlier hosts.
#[derive(Debug, Default)]
pub(super) struct LabelBuffers {
    label: Vec<char>,
    order: Vec<u32>,
    /// The last top-level label that was an A-label and plain. Hosts of a crawl have few different ones.
    top_label: Vec<u8>,
}

/// Appends the form of a DNS host whose labels are all plain to `text`, and returns the changes. `None` if the general path
/// must decide; then `text` may have a part of the form. The result equals that of [`HostForm::by_steps`].
pub(super) fn push_plain_form(host: &[u8], buffers: &mut LabelBuffers, text: &mut Vec<u8>) -> Option<Changes> {
    if host.is_ascii() {
        return push_ascii_labels(host, &mut buffers.top_label, text);
    }
    let LabelBuffers { label, order, .. } = buffers;
    let mut changes = Changes::NONE;
    label.clear();
    for c in std::str::from_utf8(host).ok()?.chars() {
        if c == '.' {
            changes |= push_label(label, order, text)?;
            text.push(b'.');
            label.clear();
            continue;
        }
        if !is_plain(c) || label.len() == punycode::MAX_LABEL_LEN {
            return None;
        }
        changes |= if c.is_ascii_uppercase() { Changes::CASE } else { Changes::NONE };
        label.push(c.to_ascii_lowercase());
    }
    Some(changes | push_label(label, order, text)?)
}

/// Appends the form of labels of ASCII characters and the dots between them. `top_label` is a top-level A-label known to be
/// plain, or empty.
fn push_ascii_labels(labels: &[u8], top_label: &mut Vec<u8>, text: &mut Vec<u8>) -> Option<Changes> {
    if any_byte(labels, |byte| !is_plain_ascii(byte) & (byte != b'.')) {
        return None;
    }
    let at = text.len();
    text.extend_from_slice(labels);
    text[at..].make_ascii_lowercase();
    let is_changed = any_byte(labels, |byte| byte.wrapping_sub(b'A') < 26);
    let mut labels = text[at..].rsplit(|byte| *byte == b'.');
    let top = labels.next().filter(|label| *label != top_label.as_slice());
    if !top.is_none_or(is_plain_ascii_label) || !labels.all(is_plain_ascii_label) {
        return None;
    }
    if let Some(top) = top.filter(|label| label.starts_with(A_LABEL_PREFIX)) {
        top_label.clear();
        top_label.extend_from_slice(top);
    }
    Some(if is_changed { Changes::CASE } else { Changes::NONE })
}

/// Returns true if UTS 46 leaves a label of plain characters in lower case as it is.
fn is_plain_ascii_label(label: &[u8]) -> bool {
    let Some(encoded) = label.strip_prefix(A_LABEL_PREFIX) else { return label.len() <= punycode::MAX_LABEL_LEN };
    // Punycode in lower case decodes to at most one label, and that label encodes to the same bytes: the A-label stays.
    let (ascii, deltas) = punycode::split(encoded);
    // Whether the decoded label begins with `xn--`: then no character is inserted before the end of that prefix.
    let mut has_prefix = ascii.starts_with(A_LABEL_PREFIX);
    let is_u_label = punycode::decode(deltas, ascii.len() as u32, |c, at| {
        has_prefix &= at as usize >= A_LABEL_PREFIX.len();
        is_plain(c)
    });
    is_u_label && !has_prefix && !deltas.is_empty() && label.len() <= punycode::MAX_LABEL_LEN
}

/// Appends the form of a label of plain characters in lower case, and returns the changes. `order` is a buffer.
fn push_label(label: &[char], order: &mut Vec<u32>, text: &mut Vec<u8>) -> Option<Changes> {
    let at = text.len();
    if label.iter().all(char::is_ascii) {
        text.extend(label.iter().map(|&c| c as u8));
        return is_plain_ascii_label(&text[at..]).then_some(Changes::NONE);
    }
    if label.starts_with(&A_LABEL_PREFIX.map(char::from)) {
        return None;
    }
    text.extend_from_slice(A_LABEL_PREFIX);
    punycode::encode(label, order, text);
    Some(Changes::PCT_ENCODED | Changes::IDNA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
    use proptest::prelude::*;
    use unicode_bidi::{BidiClass, bidi_class};
    use unicode_normalization::char::{canonical_combining_class, is_combining_mark};
    use unicode_normalization::{IsNormalized, is_nfc_quick};

    fn plain_form(host: &[u8]) -> Option<HostForm<'static>> {
        let mut text = Vec::new();
        let changes = push_plain_form(host, &mut LabelBuffers::default(), &mut text)?;
        Some(HostForm { text: text.into(), flags: Flags::NONE, changes })
    }

    #[test]
    fn uts_46_and_nfc_leave_plain_letters_unchanged() {
        let letters: Vec<char> = ('\u{80}'..=char::MAX).filter(|&c| is_plain(c)).collect();
        assert!(letters.len() > 30_000);
        for c in letters {
            let (unicode, verdict) = idna::domain_to_unicode(c.encode_utf8(&mut [0; 4]));
            assert!(verdict.is_ok() && unicode.chars().eq([c]), "U+{:04X}", c as u32);
            assert_eq!(is_nfc_quick([c].into_iter()), IsNormalized::Yes, "U+{:04X}", c as u32);
            assert!(canonical_combining_class(c) == 0 && !is_combining_mark(c), "U+{:04X}", c as u32);
            assert!(!matches!(bidi_class(c), BidiClass::R | BidiClass::AL | BidiClass::AN), "U+{:04X}", c as u32);
        }
    }

    #[test]
    fn common_names_take_the_fast_path() {
        let form = |host: &str| plain_form(host.as_bytes()).map(|form| String::from_utf8(form.text.into()).unwrap());
        assert_eq!(form("WWW.Müller.de").as_deref(), Some("www.xn--mller-kva.de"));
        assert_eq!(form("Xn--Mller-KVA.de").as_deref(), Some("xn--mller-kva.de"));
        assert_eq!(form("пример.xn--p1ai.").as_deref(), Some("xn--e1afmkfd.xn--p1ai."));
        assert_eq!(form("xn--mller-kva!.de"), None);
        // Punycode that ends early, no non-ASCII letter, a label that begins like an A-label, and a combining mark.
        for other in ["xn--mller-kv", "xn--muller-", "xn--", "xn--xn---epa", "xn--ä", "a\u{308}", "u%41", "MÜller"] {
            assert_eq!(form(other), None, "{other}");
        }
    }

    /// Parts of labels: some that the fast path handles, and some that it must reject or could get wrong.
    fn piece() -> impl Strategy<Value = String> {
        let pieces = "xn-- XN-- - -- _ 1 mller-kva KVA ß ς é e\u{301} \u{301} İ ŉ пр П か \u{3099} 한 \u{1112} \u{11AB} א ا \
                      \u{200D} क\u{94D} 。 %C3%A9 +";
        prop_oneof![
            4 => "[a-z0-9]{1,4}",
            3 => prop::sample::select(pieces.split(' ').collect::<Vec<_>>()).prop_map(str::to_owned),
            2 => any::<char>().prop_map(String::from),
            2 => "[ß-ÿā-žა-ჰά-ώа-џ一-龥가-힣]{1,4}",
        ]
    }

    fn label() -> impl Strategy<Value = String> {
        let raw = prop::collection::vec(piece(), 0..4).prop_map(|pieces| pieces.concat());
        let encoded = prop::collection::vec(piece(), 1..4)
            .prop_map(|pieces| format!("xn--{}", idna::punycode::encode_str(&pieces.concat()).unwrap_or_default()));
        let plain = "[a-zA-Z0-9-]{1,4}|[aß-ÿа-џ一-龥]{1,4}|(xn--|XN--)mller-kva";
        prop_oneof![3 => raw, 4 => plain, 2 => encoded, 1 => "xn--[a-z0-9-]{0,8}"]
    }

    proptest! {
        #[test]
        fn the_fast_path_equals_uts_46(labels in prop::collection::vec(label(), 1..4)) {
            let host = labels.join(".");
            if let Some(form) = plain_form(host.as_bytes()) {
                let ascii = Uts46::new().to_ascii(host.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore);
                let mut changes = if host.is_ascii() { Changes::NONE } else { Changes::PCT_ENCODED | Changes::IDNA };
                if host.contains(|c: char| c.is_ascii_uppercase()) {
                    changes |= Changes::CASE;
                }
                let text = ascii.expect("a valid name").into_owned().into_bytes();
                let expected = HostForm { text: text.into(), flags: Flags::NONE, changes };
                prop_assert_eq!(&form, &expected, "{}", host);
                prop_assert_eq!(form, HostForm::by_steps(host.as_bytes(), true), "{}", host);
            }
        }
    }
}
