//! DNS names whose ASCII form shows without tables: labels of ASCII, and of letters that UTS 46 and NFC leave as they
//! are wherever they stand. In: the bytes of a host. Out: its form by UTS 46, or nothing when another path must judge.

use idna::punycode;

use super::HostForm;
use crate::iri::{Changes, Flags};

/// Letters of the scripts that most internationalised names are written in, each of which is valid in UTS 46 and mapped
/// to itself, a starter that composes with nothing before it, no mark, and not written from right to left. A text of
/// them and of ASCII is in NFC, and neither the bidi rule nor the rules on joiners have a say in it.
const fn is_plain_letter(c: char) -> bool {
    let code = c as u32;
    match code {
        // Latin: in pairs of an upper and a lower case, and the two letters with horns.
        0xDF..=0xF6 | 0xF8..=0xFF | 0x1A1 | 0x1B0 => true,
        0x101..=0x131 | 0x135..=0x137 | 0x14B..=0x177 | 0x1EA1..=0x1EFF => code % 2 == 1,
        0x13A..=0x13E | 0x142..=0x148 | 0x17A..=0x17E => code.is_multiple_of(2),
        // Greek, Cyrillic, Georgian.
        0x3AC..=0x3CE | 0x430..=0x45F | 0x10D0..=0x10FA => true,
        // Kana and the marks of repetition and length, Han, Hangul.
        0x3041..=0x3096 | 0x30A1..=0x30FA | 0x3005 | 0x3007 | 0x30FC | 0x3400..=0x4DBF | 0x4E00..=0x9FFF => true,
        0xAC00..=0xD7A3 => true,
        _ => false,
    }
}

/// What a label may have of ASCII, in either case.
const fn is_plain_ascii(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// The form of a DNS host, by UTS 46 as [`super::idn_to_ascii`] asks for it, if all its labels are plain.
pub(super) fn plain_form(host: &[u8]) -> Option<HostForm<'static>> {
    let name = std::str::from_utf8(host).ok()?;
    let (mut text, mut changes) = (Vec::with_capacity(2 * host.len()), Changes::NONE);
    for label in name.split('.') {
        changes |= push_label(label, &mut text)?;
        text.push(b'.');
    }
    text.pop();
    Some(HostForm { text: text.into(), flags: Flags::NONE, changes })
}

/// Appends the form of a label; says what changed it.
fn push_label(label: &str, text: &mut Vec<u8>) -> Option<Changes> {
    let is_plain = |c: char| if c.is_ascii() { is_plain_ascii(c as u8) } else { is_plain_letter(c) };
    if !label.chars().all(is_plain) {
        return None;
    }
    let (at, mut changes) = (text.len(), Changes::NONE);
    text.extend_from_slice(label.as_bytes());
    let label = &mut text[at..];
    if label.iter().any(u8::is_ascii_uppercase) {
        label.make_ascii_lowercase();
        changes = Changes::CASE;
    }
    let label = std::str::from_utf8(label).ok()?;
    match (label.strip_prefix("xn--"), label.is_ascii()) {
        (None, true) => Some(changes),
        // Bytes in lower case decode to one label at most, and that label encodes to them: nothing is to be rewritten.
        (Some(encoded), true) => {
            let decoded = punycode::decode(encoded)?;
            let is_u_label = decoded.iter().all(|&c| is_plain(c))
                && !decoded.iter().all(char::is_ascii)
                && !decoded.starts_with(&['x', 'n', '-', '-']);
            is_u_label.then_some(changes)
        }
        (None, false) => {
            let encoded = punycode::encode_str(label)?;
            text.truncate(at);
            text.extend_from_slice(b"xn--");
            text.extend_from_slice(encoded.as_bytes());
            Some(changes | Changes::PCT_ENCODED | Changes::IDNA)
        }
        (Some(_), false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use unicode_bidi::{BidiClass, bidi_class};
    use unicode_normalization::char::{canonical_combining_class, is_combining_mark};
    use unicode_normalization::{IsNormalized, is_nfc_quick};

    #[test]
    fn plain_letters_are_left_as_they_are_wherever_they_stand() {
        let letters: Vec<char> = ('\u{80}'..=char::MAX).filter(|&c| is_plain_letter(c)).collect();
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
    fn forms_of_names_as_crawls_have_them_are_plain() {
        let form = |host: &str| plain_form(host.as_bytes()).map(|form| String::from_utf8(form.text.into()).unwrap());
        assert_eq!(form("WWW.Müller.de").as_deref(), Some("www.xn--mller-kva.de"));
        assert_eq!(form("Xn--Mller-KVA.de").as_deref(), Some("xn--mller-kva.de"));
        assert_eq!(form("пример.xn--p1ai.").as_deref(), Some("xn--e1afmkfd.xn--p1ai."));
        assert_eq!(form("xn--mller-kva!.de"), None);
        // Digits that end too soon, no letter beyond ASCII, a label that begins like an A-label, and a mark.
        for other in ["xn--mller-kv", "xn--muller-", "xn--", "xn--xn---epa", "xn--ä", "a\u{308}", "u%41", "MÜller"] {
            assert_eq!(form(other), None, "{other}");
        }
    }

    /// Pieces of labels: such as a plain form is made of, and such as it must leave alone or might get wrong.
    fn piece() -> impl Strategy<Value = String> {
        let some =
            ["xn--", "XN--", "-", "--", "_", "1", "mller-kva", "KVA", "ß", "ς", "é", "e\u{301}", "\u{301}", "İ", "ŉ"];
        let more = [
            "пр",
            "П",
            "か",
            "\u{3099}",
            "한",
            "\u{1112}",
            "\u{11AB}",
            "א",
            "ا",
            "\u{200D}",
            "क\u{94D}",
            "。",
            "%C3%A9",
            "+",
        ];
        prop_oneof![
            4 => "[a-z0-9]{1,4}",
            3 => prop::sample::select([&some[..], &more[..]].concat()).prop_map(str::to_owned),
            2 => any::<char>().prop_map(String::from),
            2 => "[ß-ÿā-žა-ჰά-ώа-џ一-龥가-힣]{1,4}",
        ]
    }

    fn label() -> impl Strategy<Value = String> {
        let raw = prop::collection::vec(piece(), 0..4).prop_map(|pieces| pieces.concat());
        let encoded = prop::collection::vec(piece(), 1..4)
            .prop_map(|pieces| format!("xn--{}", punycode::encode_str(&pieces.concat()).unwrap_or_default()));
        prop_oneof![3 => raw, 2 => encoded, 1 => "xn--[a-z0-9-]{0,8}"]
    }

    proptest! {
        #[test]
        fn a_plain_form_is_the_one_that_tables_give(labels in prop::collection::vec(label(), 1..4)) {
            let host = labels.join(".");
            if let Some(form) = plain_form(host.as_bytes()) {
                prop_assert_eq!(form, HostForm::by_steps(host.as_bytes(), true), "{}", host);
            }
        }
    }
}
