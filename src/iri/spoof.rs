//! Detection of misleading references: RFC 3987 sections 6.1, 7.5 and 8, RFC 3986 sections 7.3 and 7.6, UTS 39.
//!
//! [`find_spoofing`] returns flags and the position of the first finding of each kind. The checks use Unicode tables
//! and the spelling only: there is no list of brands and no network access. Nothing is rejected. Escapes are examined
//! as the octets that they encode, and hosts as labels in their Unicode form, however they are written.

use unicode_normalization::{IsNormalized, is_nfc, is_nfc_quick, is_nfkc_quick};
use unicode_security::{GeneralSecurityProfile, RestrictionLevel, RestrictionLevelDetection};

use super::bidi::{BidiPart, BidiRules, BidiViolation, check_bidi};
use super::class::is_any_bidi_control;
use super::fault::Component;
use super::flags::SpoofingFlags;
use super::host::idn::idn_to_unicode;
use super::map::{HostMapping, decode_labels, to_iri};
use super::parts::Parts;
use super::percent::{decode_escapes, escape_value, octets, percent_encode};
use crate::kernel::{ByteSet, offset_in};

/// The result of [`find_spoofing`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoofingReport {
    /// The flags of all findings.
    pub flags: SpoofingFlags,
    /// The first finding of each kind in each component, in the order of the checks.
    pub findings: Vec<SpoofingFinding>,
}

/// One misleading property of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoofingFinding {
    /// The property; exactly one flag.
    pub flag: SpoofingFlags,
    /// The component that has the property.
    pub component: Component,
    /// Byte offset in the reference of the character or escape, or of the component if the whole component is meant.
    pub at: usize,
}

impl SpoofingReport {
    /// Adds a finding for each flag in `flags`.
    fn add_all(&mut self, flags: SpoofingFlags, component: Component, at: usize) {
        let set = SpoofingFlags::ALL.iter().filter(|(flag, ..)| flags.intersects(*flag));
        set.for_each(|(flag, ..)| self.add(*flag, component, at));
    }

    /// Adds a finding, unless the component already has one with this flag.
    fn add(&mut self, flag: SpoofingFlags, component: Component, at: usize) {
        if !self.findings.iter().any(|finding| finding.flag == flag && finding.component == component) {
            self.flags |= flag;
            self.findings.push(SpoofingFinding { flag, component, at });
        }
    }
}

/// Finds properties of a reference that may mislead a person or a filter. A reference in ASCII without `@`, `xn--` and certain
/// escapes has none; that is checked first.
///
/// ```
/// use irikey::iri::{SpoofingFlags, find_spoofing};
/// assert!(find_spoofing(b"http://example.org/a/../b?c=d").flags.is_empty());
/// assert_eq!(find_spoofing("http://раураӏ.example/".as_bytes()).flags, SpoofingFlags::ASCII_LOOK_ALIKE);
/// let report = find_spoofing(b"http://www.example.com@example.org/%2e%2e/");
/// assert_eq!(report.flags.names().collect::<Vec<_>>(), ["hidden-dots", "userinfo-host"]);
/// assert_eq!(report.findings[1].at, 35);
/// ```
pub fn find_spoofing(reference: &[u8]) -> SpoofingReport {
    let mut report = SpoofingReport::default();
    if !is_plain(reference) {
        check_all(reference, &mut report);
    }
    report
}

/// Adds the findings of all checks to `report`.
fn check_all(reference: &[u8], report: &mut SpoofingReport) {
    for (component, text) in Parts::split(reference).encoded_components(reference) {
        let at = offset_in(reference, text);
        check_octets(&Octets::new(text, at), component, report);
        match component {
            Component::Host => check_labels(text, at, report),
            Component::Path => check_segments(text, at, report),
            Component::Userinfo if looks_like_host(text) => report.add(SpoofingFlags::USERINFO_HOST, component, at),
            _ => {}
        }
    }
    check_directions(reference, report);
}

/// Returns the spoofing flags of a record: those of `record`, whose charset was decoded, and [`SpoofingFlags::BIDI_STRUCTURE`] of
/// its URI with escapes and A-labels decoded. `uri` is empty if the record has no URI.
///
/// ```
/// use irikey::iri::{SpoofingFlags, spoofing_flags};
/// assert_eq!(spoofing_flags(b"http://h/a%2Fb", b"http://h/a%2Fb"), SpoofingFlags::ENCODED_SLASH);
/// assert_eq!(spoofing_flags(b"http://h/%D7%90b", b"http://h/%D7%90b"), SpoofingFlags::BIDI_STRUCTURE);
/// ```
pub fn spoofing_flags(record: &[u8], uri: &[u8]) -> SpoofingFlags {
    let mut report = find_spoofing(record);
    if !report.flags.intersects(SpoofingFlags::BIDI_STRUCTURE) && may_have_wide_iri(uri) {
        let iri = to_iri(&String::from_utf8_lossy(&decode_labels(uri)), HostMapping::Percent);
        check_directions(iri.as_bytes(), &mut report);
    }
    report.flags
}

/// Returns true if the IRI of a URI may have non-ASCII characters: the URI has escapes of non-ASCII octets or A-labels.
fn may_have_wide_iri(uri: &[u8]) -> bool {
    let is_wide = |at: usize| uri.get(at + 1).is_some_and(|digit| *digit >= b'8');
    memchr::memchr_iter(b'%', uri).any(is_wide) || memchr::memmem::find(uri, b"xn--").is_some()
}

/// Printable ASCII characters whose escapes no check finds, whatever is next to them: they are not part of dot segments, other
/// escapes, A-labels or names of hosts.
const PLAIN_IF_ESCAPED: ByteSet = ByteSet::of(b" !\"#$&'()*+,:;<=>?[]^_`{|}~");

/// Returns true if no check can find anything.
fn is_plain(reference: &[u8]) -> bool {
    let is_plain_escape =
        |at: usize| escape_value(&reference[at..]).is_some_and(|octet| PLAIN_IF_ESCAPED.contains(octet));
    reference.is_ascii()
        && memchr::memchr(b'@', reference).is_none()
        && memchr::memchr_iter(b'%', reference).all(is_plain_escape)
        && !memchr::memmem::find_iter(reference, b"--").any(|at| has_ace_prefix(&reference[..at + 2]))
}

fn has_ace_prefix(text: &[u8]) -> bool {
    text.last_chunk::<4>().is_some_and(|end| end.eq_ignore_ascii_case(b"xn--"))
}

/// The octets of a component with escapes decoded once. Empty if the component is ASCII without escapes.
struct Octets {
    octets: Vec<u8>,
    /// Offset of each octet, or of its escape, in the reference.
    at: Vec<usize>,
    /// Whether each octet was written as an escape.
    is_escaped: Vec<bool>,
    /// The component as written is UTF-8; its escapes need not be.
    is_utf8: bool,
}

impl Octets {
    fn new(text: &[u8], start: usize) -> Octets {
        let is_utf8 = std::str::from_utf8(text).is_ok();
        let mut decoded = Octets { octets: Vec::new(), at: Vec::new(), is_escaped: Vec::new(), is_utf8 };
        if text.is_ascii() && memchr::memchr(b'%', text).is_none() {
            return decoded;
        }
        let mut at = start;
        for (octet, is_escaped) in octets(text) {
            decoded.octets.push(octet);
            decoded.at.push(at);
            decoded.is_escaped.push(is_escaped);
            at += if is_escaped { 3 } else { 1 };
        }
        decoded
    }
}

fn check_octets(decoded: &Octets, component: Component, report: &mut SpoofingReport) {
    let octets = &decoded.octets[..];
    // Findings in escaped non-ASCII octets count only if all octets of the component turn out to be UTF-8.
    let mut pending = Vec::new();
    let mut is_other_charset = false;
    let mut nth = 0;
    while nth < octets.len() {
        let (character, len) = bstr::decode_utf8(&octets[nth..]);
        let malformed = malformed_utf8(&octets[nth..]);
        let (flags, len) = match character {
            Some(c) if c.is_ascii() && !decoded.is_escaped[nth] => (SpoofingFlags::NONE, 1),
            Some(c) if c.is_ascii() => (ascii_escape_flag(&octets[nth..], component), 1),
            Some(c) => (character_flags(c), len),
            None => malformed.unwrap_or((SpoofingFlags::NONE, 1)),
        };
        is_other_charset |= character.is_none() && malformed.is_none();
        let is_provisional = octets[nth] >= 0x80 && (decoded.is_escaped[nth] || !decoded.is_utf8);
        if !flags.is_empty() && is_provisional {
            pending.push((flags, decoded.at[nth]));
        } else if !flags.is_empty() {
            report.add_all(flags, component, decoded.at[nth]);
        }
        nth += len;
    }
    // In a legacy charset any sequence of octets may occur: C0 B4 is a common word in GBK.
    if !is_other_charset {
        pending.into_iter().for_each(|(flags, at)| report.add_all(flags, component, at));
    }
    if std::str::from_utf8(octets).is_ok_and(|text| !is_nfc(text)) {
        report.add(SpoofingFlags::NOT_NFC, component, decoded.at[0]);
    }
}

/// Flag and length of an overlong form of two, three or four octets (RFC 3629 section 3 excludes them) or of a
/// surrogate.
fn malformed_utf8(octets: &[u8]) -> Option<(SpoofingFlags, usize)> {
    let (flag, len) = match *octets {
        [0xC0 | 0xC1, ..] => (SpoofingFlags::OVERLONG, 2),
        [0xE0, 0x80..=0x9F, ..] => (SpoofingFlags::OVERLONG, 3),
        [0xF0, 0x80..=0x8F, ..] => (SpoofingFlags::OVERLONG, 4),
        [0xED, 0xA0..=0xBF, ..] => (SpoofingFlags::SURROGATE, 3),
        _ => return None,
    };
    octets.get(1..len)?.iter().all(|octet| octet & 0xC0 == 0x80).then_some((flag, len))
}

/// The flag of an escaped ASCII character. `octets` are the decoded octets from this character on.
fn ascii_escape_flag(octets: &[u8], component: Component) -> SpoofingFlags {
    let is_data = matches!(component, Component::Query | Component::Fragment);
    match octets[0] {
        b'/' | b'\\' if !is_data => SpoofingFlags::ENCODED_SLASH,
        b'%' if escape_value(octets).is_some() => SpoofingFlags::DOUBLE_ENCODED,
        0..=0x1F | 0x7F => SpoofingFlags::ENCODED_CONTROL,
        _ => SpoofingFlags::NONE,
    }
}

/// The flags of a non-ASCII character, escaped or not.
fn character_flags(c: char) -> SpoofingFlags {
    let is_changed = |verdict| verdict == IsNormalized::No;
    let is_compatibility =
        is_changed(is_nfkc_quick(std::iter::once(c))) && !is_changed(is_nfc_quick(std::iter::once(c)));
    let compatibility = if is_compatibility { SpoofingFlags::COMPATIBILITY } else { SpoofingFlags::NONE };
    let kind = match c {
        '\u{80}'..='\u{9F}' => SpoofingFlags::ENCODED_CONTROL,
        '\u{200C}' | '\u{200D}' => SpoofingFlags::JOINER,
        c if is_any_bidi_control(c) => SpoofingFlags::BIDI_CONTROL,
        c if is_default_ignorable(c) => SpoofingFlags::INVISIBLE,
        // BRAILLE PATTERN BLANK is not a space in Unicode, but it is displayed as one.
        c if c.is_whitespace() || c == '\u{2800}' => SpoofingFlags::SPACE,
        c if looks_like_delim(c) => SpoofingFlags::DELIM_LOOK_ALIKE,
        _ => SpoofingFlags::NONE,
    };
    kind | compatibility
}

/// `Default_Ignorable_Code_Point` of Unicode's DerivedCoreProperties.
fn is_default_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}' | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// Returns true if `c` looks like a delimiter. Letters are excluded: KATAKANA NO looks like a slash and is common in
/// Japanese paths.
fn looks_like_delim(c: char) -> bool {
    if c.is_alphanumeric() {
        return false;
    }
    let mut buffer = [0; 4];
    let mut skeleton = unicode_security::skeleton(c.encode_utf8(&mut buffer));
    skeleton.next().is_some_and(|first| "./:?#@%\\".contains(first)) && skeleton.next().is_none()
}

/// Applies UTS 39 to each non-ASCII label.
fn check_labels(host: &[u8], at: usize, report: &mut SpoofingReport) {
    let Some(text) = unicode_form(host) else { return };
    // A site does not choose its top-level domain, and some of them, such as Russian ones, look like ASCII.
    let top_level_at = text.trim_end_matches('.').rfind('.').unwrap_or(text.len());
    for label in text.split('.').filter(|label| !label.is_ascii()) {
        let is_allowed = |c: &char| c.is_ascii() || c.identifier_allowed();
        if !label.chars().all(|c| is_allowed(&c)) {
            report.add(SpoofingFlags::DISCOURAGED, Component::Host, at);
        }
        // The restriction level covers characters that are allowed in identifiers; other characters have their own
        // flag.
        let scripts: String = label.chars().filter(|c| c.identifier_allowed()).collect();
        if !scripts.as_str().check_restriction_level(RestrictionLevel::HighlyRestrictive) {
            report.add(SpoofingFlags::MIXED_SCRIPT, Component::Host, at);
        }
        let is_top_level = offset_in(text.as_bytes(), label.as_bytes()) > top_level_at;
        if !is_top_level && unicode_security::skeleton(label).all(|c| c.is_ascii()) {
            report.add(SpoofingFlags::ASCII_LOOK_ALIKE, Component::Host, at);
        }
    }
}

/// The host as a person reads it, in lower case: its Unicode form by UTS 46, or its characters if there is no such
/// form. `None` for an IP literal and for bytes that are not UTF-8.
fn unicode_form(host: &[u8]) -> Option<String> {
    if host.starts_with(b"[") {
        return None;
    }
    let decoded = decode_escapes(host);
    idn_to_unicode(&decoded).or_else(|| Some(std::str::from_utf8(&decoded).ok()?.to_lowercase()))
}

/// Returns the UTS 39 skeleton of a host's Unicode form in lower case. Hosts that look alike have the same skeleton.
/// The skeleton is a key to group by, not a host.
///
/// The skeleton of an IP literal is its text in lower case. The skeleton of a host that is not UTF-8 is its text with
/// the octets escaped; a replacement character would put different hosts into one group.
///
/// ```
/// use irikey::iri::skeleton;
/// assert_eq!(skeleton("раураӏ.example".as_bytes()), skeleton(b"PayPal.example"));
/// assert_eq!(skeleton(b"xn--80aa0cbo65f.example"), skeleton(b"paypal.example"));
/// assert_ne!(skeleton("bücher.example".as_bytes()), skeleton(b"bucher.example"));
/// ```
pub fn skeleton(host: &[u8]) -> String {
    match unicode_form(host) {
        // The percent sign looks like characters outside ASCII.
        Some(text) if text.is_ascii() && !text.contains('%') => ascii_skeleton(&text),
        Some(text) => unicode_security::skeleton(&text).collect(),
        None => String::from_utf8_lossy(&percent_encode(host)).to_ascii_lowercase(),
    }
}

/// The skeleton of an ASCII text without percent signs: each character becomes itself, or what it looks like (UTS 39,
/// confusables.txt), whatever characters are next to it.
fn ascii_skeleton(text: &str) -> String {
    let mut skeleton = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' => skeleton.push_str("''"),
            '0' => skeleton.push('O'),
            '1' | 'I' | '|' => skeleton.push('l'),
            '`' => skeleton.push('\''),
            'm' => skeleton.push_str("rn"),
            _ => skeleton.push(character),
        }
    }
    skeleton
}

/// Finds dot segments that appear only after decoding: `%2e%2e`, `..%2F`, `%252e`.
fn check_segments(path: &[u8], at: usize, report: &mut SpoofingReport) {
    let mut start = 0;
    for segment in path.split(|&byte| byte == b'/') {
        if memchr::memchr(b'%', segment).is_some() {
            let once = decode_escapes(segment);
            let is_dots =
                |octets: &[u8]| octets.split(|b| b"/\\".contains(b)).any(|piece| piece == b"." || piece == b"..");
            if is_dots(&once) || is_dots(&decode_escapes(&once)) {
                report.add(SpoofingFlags::HIDDEN_DOTS, Component::Path, at + start);
            }
        }
        start += segment.len() + 1;
    }
}

/// Last labels that make userinfo look like a host, in addition to all labels of two letters (countries).
const COMMON_TOP_LEVELS: [&str; 19] = [
    "com", "net", "org", "edu", "gov", "mil", "int", "info", "biz", "name", "app", "dev", "xyz", "shop", "site",
    "online", "bank", "example", "test",
];

/// Returns true if a name in `userinfo` looks like a host: it begins with `www.` or ends in a common top-level domain.
/// A name with `@`, as in FTP accounts, looks like a mail address instead.
fn looks_like_host(userinfo: &[u8]) -> bool {
    let decoded = decode_escapes(userinfo);
    let is_name_byte = |&byte: &u8| byte.is_ascii_alphanumeric() || b".-_@".contains(&byte) || byte >= 0x80;
    decoded.split(|byte| !is_name_byte(byte)).any(|piece| {
        let name = String::from_utf8_lossy(piece).to_ascii_lowercase();
        let labels: Vec<&str> = name.split('.').collect();
        let end = labels[labels.len() - 1];
        let is_country = end.len() == 2 && end.bytes().all(|byte| byte.is_ascii_lowercase());
        labels.len() > 1
            && labels.iter().all(|label| !label.is_empty())
            && !name.contains('@')
            && (labels[0] == "www" || is_country || COMMON_TOP_LEVELS.contains(&end))
    })
}

/// Applies RFC 3987 section 4.2 to references that are UTF-8.
fn check_directions(reference: &[u8], report: &mut SpoofingReport) {
    let Ok(text) = std::str::from_utf8(reference) else { return };
    for problem in check_bidi(text, BidiRules::Rfc3987) {
        if problem.violation != BidiViolation::Control {
            report.add(SpoofingFlags::BIDI_STRUCTURE, component_of(problem.part), problem.at);
        }
    }
}

fn component_of(part: BidiPart) -> Component {
    match part {
        BidiPart::Userinfo => Component::Userinfo,
        BidiPart::Label => Component::Host,
        BidiPart::Segment | BidiPart::Extension => Component::Path,
        BidiPart::Name | BidiPart::Value => Component::Query,
        BidiPart::Fragment => Component::Fragment,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::TestRunner;
    use std::cell::Cell;

    #[test]
    fn skeletons_of_ascii_texts_are_those_of_uts_39() {
        let characters = || (0..128_u8).filter(|character| *character != b'%');
        let pairs = characters().flat_map(|a| characters().map(move |b| String::from_iter([a, b].map(char::from))));
        let differs = |text: &String| ascii_skeleton(text) != unicode_security::skeleton(text).collect::<String>();
        assert_eq!(pairs.filter(differs).collect::<Vec<_>>(), [""; 0]);
    }

    #[test]
    fn default_ignorable_characters_are_those_that_skeletons_omit() {
        for c in (0..=0x10FFFF).filter_map(char::from_u32) {
            let is_omitted = unicode_security::skeleton(c.encode_utf8(&mut [0; 4])).next().is_none();
            assert_eq!(is_default_ignorable(c), is_omitted, "{:X}", u32::from(c));
        }
    }

    #[test]
    fn findings_have_component_and_offset() {
        let found = find_spoofing("http://h/%41/%2e%2e/a%2fb%2f?%00\u{AD}#%2".as_bytes()).findings;
        let expected = [
            (SpoofingFlags::ENCODED_SLASH, Component::Path, 21),
            (SpoofingFlags::HIDDEN_DOTS, Component::Path, 13),
            (SpoofingFlags::ENCODED_CONTROL, Component::Query, 29),
            (SpoofingFlags::INVISIBLE, Component::Query, 32),
        ];
        assert_eq!(found, expected.map(|(flag, component, at)| SpoofingFinding { flag, component, at }));
    }

    #[test]
    fn nothing_is_found_in_plain_references() {
        let piece = "https?://|[a-z./%-]|%[2-7][0-9A-Fa-f]|%2[0-9a-f]|--|xn|[ -?A-~]";
        let (count, plain_count) = (Cell::new(0), Cell::new(0));
        let check = |pieces: Vec<String>| {
            let text = pieces.concat();
            count.set(count.get() + 1);
            if is_plain(text.as_bytes()) {
                let mut report = SpoofingReport::default();
                check_all(text.as_bytes(), &mut report);
                prop_assert_eq!(report, SpoofingReport::default(), "{}", text);
                plain_count.set(plain_count.get() + 1);
            }
            Ok(())
        };
        TestRunner::default().run(&prop::collection::vec(piece, 0..12), check).expect("no findings");
        // About 45 % of the texts are plain.
        assert!(5 * plain_count.get() > count.get(), "{} of {}", plain_count.get(), count.get());
    }

    #[test]
    fn common_references_are_plain() {
        for text in [
            "",
            "http://example.org/a/../b?c=d#e",
            "https://www.a--b.example:8080/x-_~.html",
            "http://h/a%20b%22?q=%3Cc%3E&d=%7B%7d#%28",
            "mailto:a",
        ] {
            assert!(is_plain(text.as_bytes()), "{text}");
        }
        for text in ["http://a@h/", "http://h/%41", "http://xn--a/", "http://XN--a/", "http://h/%", "http://\u{e4}/"] {
            assert!(!is_plain(text.as_bytes()), "{text}");
        }
    }

    /// Escapes of two characters, in every component.
    #[test]
    fn plain_escapes_are_plain_next_to_each_other() {
        let mut plain_count = 0;
        for (one, other) in (0x20..0x7F).flat_map(|one| (0x20..0x7F).map(move |other| (one, other))) {
            let pair = format!("%{one:02x}%{other:02X}");
            for text in [format!("http://h{pair}xn--/"), format!("/a/.{pair}."), format!("x:?{pair}41#{pair}2e")] {
                if is_plain(text.as_bytes()) {
                    let mut report = SpoofingReport::default();
                    check_all(text.as_bytes(), &mut report);
                    assert_eq!(report, SpoofingReport::default(), "{text}");
                    plain_count += 1;
                }
            }
        }
        // The last two texts, for all pairs of the 27 characters.
        assert_eq!(plain_count, 2 * 27 * 27);
    }

    #[test]
    fn no_flag_has_the_name_of_another() {
        let mut names: Vec<_> = SpoofingFlags::ALL.iter().map(|(_, name, _)| *name).collect();
        names.extend(crate::iri::Flags::ALL.iter().map(|(_, name, _)| *name));
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
