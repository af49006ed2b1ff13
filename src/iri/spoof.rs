//! What may mislead a person or a filter: RFC 3987 sections 6.1, 7.5 and 8, RFC 3986 sections 7.3 and 7.6, UTS 39. In: a
//! reference, any bytes. Out: flags, and where each was first found. Judges by tables of Unicode and by spelling alone:
//! it knows no brands, asks no resolver, and refuses nothing.
//!
//! Escapes are looked at as the octets they stand for; hosts as labels in their Unicode form, however they are written.

use unicode_normalization::{IsNormalized, is_nfc, is_nfc_quick, is_nfkc_quick};
use unicode_security::{GeneralSecurityProfile, RestrictionLevel, RestrictionLevelDetection};

use super::bidi::{BidiPart, BidiRules, BidiViolation, check_bidi};
use super::class::is_any_bidi_control;
use super::map::{idn_to_unicode, to_iri};
use super::parts::Parts;
use super::percent::{decode_escapes, encode, escape_value};
use super::{Component, HostMapping, SpoofingFlags};

/// What was found in a reference.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoofingReport {
    /// All that was found.
    pub flags: SpoofingFlags,
    /// The first of each kind in each component, in the order of the checks.
    pub findings: Vec<SpoofingFinding>,
}

/// One thing found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpoofingFinding {
    /// One flag.
    pub flag: SpoofingFlags,
    /// The component that shows it.
    pub component: Component,
    /// Byte offset into the reference: of the character or escape, or of the component where it is the whole.
    pub at: usize,
}

impl SpoofingReport {
    fn note_all(&mut self, flags: SpoofingFlags, component: Component, at: usize) {
        let set = SpoofingFlags::ALL.iter().filter(|(flag, ..)| flags.intersects(*flag));
        set.for_each(|(flag, ..)| self.note(*flag, component, at));
    }

    fn note(&mut self, flag: SpoofingFlags, component: Component, at: usize) {
        if !self.findings.iter().any(|finding| finding.flag == flag && finding.component == component) {
            self.flags |= flag;
            self.findings.push(SpoofingFinding { flag, component, at });
        }
    }
}

/// Looks at a reference. Plain ASCII without `%`, `@` and `xn--` has nothing to show and costs one walk.
///
/// ```
/// use irikey::iri::{SpoofingFlags, find_spoofing};
/// assert!(find_spoofing(b"http://example.org/a/../b?c=d").flags.is_empty());
/// assert_eq!(find_spoofing("http://раураӏ.example/".as_bytes()).flags, SpoofingFlags::ASCII_LOOK_ALIKE);
/// let look = find_spoofing(b"http://www.example.com@example.org/%2e%2e/");
/// assert_eq!(look.flags.names().collect::<Vec<_>>(), ["hidden-dots", "userinfo-host"]);
/// assert_eq!(look.findings[1].at, 35);
/// ```
pub fn find_spoofing(reference: &[u8]) -> SpoofingReport {
    let mut look = SpoofingReport::default();
    if is_plain(reference) {
        return look;
    }
    let parts = Parts::split(reference);
    let components = [
        (Component::Userinfo, parts.userinfo(reference)),
        (Component::Host, parts.host(reference)),
        (Component::Path, Some(parts.path(reference))),
        (Component::Query, parts.query(reference)),
        (Component::Fragment, parts.fragment(reference)),
    ];
    for (component, text) in components {
        let Some(text) = text else { continue };
        // Components are slices of the reference: the distance of their starts is their offset.
        let at = text.as_ptr().addr() - reference.as_ptr().addr();
        look_at_octets(&Octets::new(text, at), component, &mut look);
        match component {
            Component::Host => look_at_labels(text, at, &mut look),
            Component::Path => look_at_segments(text, at, &mut look),
            Component::Userinfo if looks_like_host(text) => look.note(SpoofingFlags::USERINFO_HOST, component, at),
            _ => {}
        }
    }
    look_at_directions(reference, &mut look);
    look
}

/// What misleads in a record as it was written, and in the directions of its URI's right-to-left parts, escaped ones and
/// A-labels too; `uri` is empty where there is none.
///
/// ```
/// use irikey::iri::{SpoofingFlags, spoofing_flags};
/// assert_eq!(spoofing_flags(b"http://h/a%2Fb", b"http://h/a%2Fb"), SpoofingFlags::ENCODED_SLASH);
/// assert_eq!(spoofing_flags(b"http://h/%D7%90b", b"http://h/%D7%90b"), SpoofingFlags::BIDI_STRUCTURE);
/// ```
pub fn spoofing_flags(record: &[u8], uri: &[u8]) -> SpoofingFlags {
    let found = find_spoofing(record).flags;
    let has_hidden_characters = memchr::memchr(b'%', uri).is_some() || memchr::memmem::find(uri, b"xn--").is_some();
    if !has_hidden_characters {
        return found;
    }
    let iri = to_iri(&String::from_utf8_lossy(uri), HostMapping::Unicode);
    if find_spoofing(iri.as_bytes()).flags.intersects(SpoofingFlags::BIDI_STRUCTURE) {
        return found | SpoofingFlags::BIDI_STRUCTURE;
    }
    found
}

/// Nothing that any check would note.
fn is_plain(reference: &[u8]) -> bool {
    reference.is_ascii()
        && memchr::memchr2(b'%', b'@', reference).is_none()
        && !memchr::memmem::find_iter(reference, b"--").any(|at| has_ace_prefix(&reference[..at + 2]))
}

fn has_ace_prefix(text: &[u8]) -> bool {
    text.last_chunk::<4>().is_some_and(|end| end.eq_ignore_ascii_case(b"xn--"))
}

/// A component with its escapes decoded once, and where each octet came from.
struct Octets {
    octets: Vec<u8>,
    /// Offset of each octet, or of its escape, in the reference.
    at: Vec<usize>,
    /// Whether it was an escape.
    is_escaped: Vec<bool>,
    /// The component as written is UTF-8, whatever its escapes are.
    is_utf8: bool,
}

impl Octets {
    fn new(text: &[u8], start: usize) -> Octets {
        let is_utf8 = std::str::from_utf8(text).is_ok();
        let mut decoded = Octets { octets: Vec::new(), at: Vec::new(), is_escaped: Vec::new(), is_utf8 };
        if text.is_ascii() && memchr::memchr(b'%', text).is_none() {
            return decoded;
        }
        let mut at = 0;
        while at < text.len() {
            let octet = escape_value(&text[at..]);
            decoded.octets.push(octet.unwrap_or(text[at]));
            decoded.at.push(start + at);
            decoded.is_escaped.push(octet.is_some());
            at += if octet.is_some() { 3 } else { 1 };
        }
        decoded
    }
}

fn look_at_octets(decoded: &Octets, component: Component, look: &mut SpoofingReport) {
    let octets = &decoded.octets[..];
    // What is found beyond ASCII, until all octets are known to be of one charset; written characters are.
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
        if octets[nth] >= 0x80 && (decoded.is_escaped[nth] || !decoded.is_utf8) {
            pending.push((flags, decoded.at[nth]));
        } else {
            look.note_all(flags, component, decoded.at[nth]);
        }
        nth += len;
    }
    // In a legacy charset any octets may meet: C0 B4 is a common word in GBK.
    if !is_other_charset {
        pending.into_iter().for_each(|(flags, at)| look.note_all(flags, component, at));
    }
    if std::str::from_utf8(octets).is_ok_and(|text| !is_nfc(text)) {
        look.note(SpoofingFlags::NOT_NFC, component, decoded.at[0]);
    }
}

/// Overlong forms of two, three and four octets (RFC 3629 section 3 excludes them), and surrogates; with their length.
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

/// What an escape of an ASCII character shows; `octets` are decoded, what follows it too.
fn ascii_escape_flag(octets: &[u8], component: Component) -> SpoofingFlags {
    let is_data = matches!(component, Component::Query | Component::Fragment);
    match octets[0] {
        b'/' | b'\\' if !is_data => SpoofingFlags::ENCODED_SLASH,
        b'%' if escape_value(octets).is_some() => SpoofingFlags::DOUBLE_ENCODED,
        0..=0x1F | 0x7F => SpoofingFlags::ENCODED_CONTROL,
        _ => SpoofingFlags::NONE,
    }
}

/// What a character beyond ASCII shows, escaped or not.
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
        // BRAILLE PATTERN BLANK is no space to Unicode, but to the eye.
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

/// Letters are left out: KATAKANA NO looks like a slash, and is in many a Japanese path.
fn looks_like_delim(c: char) -> bool {
    if c.is_alphanumeric() {
        return false;
    }
    let mut buffer = [0; 4];
    let mut skeleton = unicode_security::skeleton(c.encode_utf8(&mut buffer));
    skeleton.next().is_some_and(|first| "./:?#@%\\".contains(first)) && skeleton.next().is_none()
}

/// UTS 39 on each label that is not ASCII.
fn look_at_labels(host: &[u8], at: usize, look: &mut SpoofingReport) {
    let Some(text) = unicode_form(host) else { return };
    // A top-level domain is no one's choice, and some, as those of Russian names, look like ASCII throughout.
    let registered = text.trim_end_matches('.').rfind('.').unwrap_or(text.len());
    for label in text.split('.').filter(|label| !label.is_ascii()) {
        let is_allowed = |c: &char| c.is_ascii() || c.identifier_allowed();
        if !label.chars().all(|c| is_allowed(&c)) {
            look.note(SpoofingFlags::DISCOURAGED, Component::Host, at);
        }
        // The level is of what identifiers may hold; what they may not has its own flag.
        let scripts: String = label.chars().filter(|c| c.identifier_allowed()).collect();
        if !scripts.as_str().check_restriction_level(RestrictionLevel::HighlyRestrictive) {
            look.note(SpoofingFlags::MIXED_SCRIPT, Component::Host, at);
        }
        let is_top_level = label.as_ptr().addr() - text.as_ptr().addr() > registered;
        if !is_top_level && unicode_security::skeleton(label).all(|c| c.is_ascii()) {
            look.note(SpoofingFlags::ASCII_LOOK_ALIKE, Component::Host, at);
        }
    }
}

/// The host that a person reads, in lower case: the Unicode form by UTS 46, or where it has none its characters. `None`
/// for an IP-literal and for bytes that are not UTF-8.
fn unicode_form(host: &[u8]) -> Option<String> {
    if host.starts_with(b"[") {
        return None;
    }
    let decoded = decode_escapes(host);
    idn_to_unicode(&decoded).or_else(|| Some(std::str::from_utf8(&decoded).ok()?.to_lowercase()))
}

/// The UTS 39 skeleton of a host's Unicode form in lower case: hosts that look alike have one skeleton. It is a key to
/// group by, not a host. An IP-literal is its own, in lower case; so is a host that is not UTF-8, its octets escaped, since
/// a replacement character would put different hosts into one group.
///
/// ```
/// use irikey::iri::skeleton;
/// assert_eq!(skeleton("раураӏ.example".as_bytes()), skeleton(b"PayPal.example"));
/// assert_eq!(skeleton(b"xn--80aa0cbo65f.example"), skeleton(b"paypal.example"));
/// assert_ne!(skeleton("bücher.example".as_bytes()), skeleton(b"bucher.example"));
/// ```
pub fn skeleton(host: &[u8]) -> String {
    match unicode_form(host) {
        Some(text) => unicode_security::skeleton(&text).collect(),
        None => String::from_utf8_lossy(&encode(host)).to_ascii_lowercase(),
    }
}

/// Dot segments that only a decoder sees: `%2e%2e`, `..%2F`, `%252e`.
fn look_at_segments(path: &[u8], at: usize, look: &mut SpoofingReport) {
    let mut start = 0;
    for segment in path.split(|&byte| byte == b'/') {
        if memchr::memchr(b'%', segment).is_some() {
            let once = decode_escapes(segment);
            let is_dots =
                |octets: &[u8]| octets.split(|b| b"/\\".contains(b)).any(|piece| piece == b"." || piece == b"..");
            if is_dots(&once) || is_dots(&decode_escapes(&once)) {
                look.note(SpoofingFlags::HIDDEN_DOTS, Component::Path, at + start);
            }
        }
        start += segment.len() + 1;
    }
}

/// Last labels of names that userinfo is made to look like, beside the two letters of a country.
const KNOWN_ENDS: [&str; 19] = [
    "com", "net", "org", "edu", "gov", "mil", "int", "info", "biz", "name", "app", "dev", "xyz", "shop", "site",
    "online", "bank", "example", "test",
];

/// Userinfo, up to whatever ends a name in it, that is a host name with `www.` or a known end. One with an `@`, as FTP
/// accounts have it, is not: it looks like a mail address.
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
            && (labels[0] == "www" || is_country || KNOWN_ENDS.contains(&end))
    })
}

/// Section 4.2, for references written in characters.
fn look_at_directions(reference: &[u8], look: &mut SpoofingReport) {
    let Ok(text) = std::str::from_utf8(reference) else { return };
    for problem in check_bidi(text, BidiRules::Rfc3987) {
        if problem.violation != BidiViolation::Control {
            look.note(SpoofingFlags::BIDI_STRUCTURE, component_of(problem.part), problem.at);
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

    #[test]
    fn default_ignorables_are_those_that_skeletons_leave_out() {
        for c in (0..=0x10FFFF).filter_map(char::from_u32) {
            let is_left_out = unicode_security::skeleton(c.encode_utf8(&mut [0; 4])).next().is_none();
            assert_eq!(is_default_ignorable(c), is_left_out, "{:X}", u32::from(c));
        }
    }

    #[test]
    fn findings_stand_where_they_say() {
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
    fn flags_of_every_kind_have_names_of_their_own() {
        let mut names: Vec<_> = SpoofingFlags::ALL.iter().map(|(_, name, _)| *name).collect();
        names.extend(super::super::Flags::ALL.iter().map(|(_, name, _)| *name));
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}
