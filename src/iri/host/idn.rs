//! Internationalized domain names by UTS 46, in two strengths.
//!
//! Hosts of URIs are converted leniently ([`idn_to_ascii`], [`idn_to_unicode`]): two spellings of one name must get one
//! form, whether or not a registry would accept the name. [`domain_to_ascii`] and [`domain_to_unicode`] validate a
//! domain name as registries and resolvers do.

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

use crate::iri::class::{SUB_DELIMS, UNRESERVED};
use crate::iri::flags::Flags;
use crate::iri::percent::{decode_escapes, octets};

/// Versions of Unicode, newest first, each with a character that it added and that hosts may contain.
const NEW_CHARACTERS: [(&str, &str); 3] = [("18.0", "\u{18E00}"), ("17.0", "\u{11DB0}"), ("16.0", "\u{10D4A}")];

/// Returns the version of the Unicode data with which hosts are mapped, which is that of the newest character that they
/// know. It is part of file metadata, because canonical hosts depend on it.
pub(crate) fn unicode_version() -> &'static str {
    let is_known = |character: &str| idn_to_ascii(character.as_bytes()).0.is_some();
    NEW_CHARACTERS.iter().find(|(_, character)| is_known(character)).map_or("before 16.0", |(version, _)| version)
}

/// Converts a domain name to ASCII: `ToASCII` of UTS 46 section 4, non-transitional, with checks of hyphens, joiners,
/// the bidi rule and DNS lengths, including the length of the root's empty label. Returns `None` if a check fails.
///
/// ```
/// use irikey::iri::domain_to_ascii;
/// assert_eq!(domain_to_ascii("faß.DE".as_bytes()).as_deref(), Some("xn--fa-hia.de"));
/// assert_eq!(domain_to_ascii("-ä.de".as_bytes()), None);
/// assert_eq!(domain_to_ascii(b"a..de"), None);
/// ```
pub fn domain_to_ascii(name: &[u8]) -> Option<String> {
    let ascii = Uts46::new().to_ascii(name, AsciiDenyList::EMPTY, Hyphens::Check, DnsLength::Verify);
    ascii.ok().map(|ascii| ascii.into_owned())
}

/// Converts a domain name to Unicode: `ToUnicode` of UTS 46, with the checks of [`domain_to_ascii`] except those of
/// lengths. Returns `None` if a check fails.
///
/// ```
/// use irikey::iri::domain_to_unicode;
/// assert_eq!(domain_to_unicode(b"XN--FA-HIA.de").as_deref(), Some("faß.de"));
/// assert_eq!(domain_to_unicode(b"xn--a.de"), None);
/// ```
pub fn domain_to_unicode(name: &[u8]) -> Option<String> {
    let (unicode, result) = Uts46::new().to_unicode(name, AsciiDenyList::EMPTY, Hyphens::Check);
    result.ok().map(|()| unicode.into_owned())
}

/// Returns true if `host` may have a different ASCII form: it contains an escape or a label that begins with `xn--`.
///
/// `host` is in lower case and its non-ASCII characters are escaped. An IP literal has no labels, even if an
/// `IPvFuture` contains `xn--`.
pub(crate) fn may_be_idn(host: &[u8]) -> bool {
    let has_a_label = || memchr::memmem::find_iter(host, b"xn--").any(|at| at == 0 || host[at - 1] == b'.');
    !host.starts_with(b"[") && (memchr::memchr(b'%', host).is_some() || has_a_label())
}

/// The ASCII form of a DNS host that syntax-based normalization has written, by UTS 46 (non-transitional, without
/// checks of hyphens and lengths), and flags.
///
/// `None` means that the host stays: it has an escaped `sub-delims` character, its decoded bytes are not UTF-8, UTS 46 rejects
/// them, or the result is empty or contains a character outside `unreserved`, which could be confused with a delimiter.
pub(crate) fn idn_to_ascii(host: &[u8]) -> (Option<String>, Flags) {
    if has_escaped_sub_delim(host) {
        return (None, Flags::HOST_NOT_IDNA);
    }
    decoded_to_ascii(&decode_escapes(host), memchr::memchr(b'%', host).is_some())
}

/// Returns true if `host` has an escape of a `sub-delims` character. RFC 3986 section 2.2 distinguishes it from the
/// character, but NFC would compose both with a combining mark: `=` and U+0338 are `≠`.
fn has_escaped_sub_delim(host: &[u8]) -> bool {
    octets(host).any(|(octet, is_escaped)| is_escaped && SUB_DELIMS.contains(octet))
}

/// [`idn_to_ascii`] for a host whose escapes, if it had any, are already decoded.
pub(super) fn decoded_to_ascii(decoded: &[u8], had_escapes: bool) -> (Option<String>, Flags) {
    let ascii = Uts46::new()
        .to_ascii(decoded, AsciiDenyList::EMPTY, Hyphens::Allow, DnsLength::Ignore)
        .ok()
        .filter(|ascii| !ascii.is_empty() && ascii.bytes().all(|byte| UNRESERVED.contains(byte)))
        .filter(|ascii| !has_nested_a_label(ascii));
    match ascii {
        Some(ascii) => (Some(ascii.into_owned()), Flags::NONE),
        None if had_escapes => (None, Flags::HOST_NOT_IDNA),
        None => (None, Flags::BAD_A_LABEL),
    }
}

/// The Unicode form of a host, if it has one.
pub(crate) fn idn_to_unicode(host: &[u8]) -> Option<String> {
    let (unicode, result) = Uts46::new().to_unicode(host, AsciiDenyList::EMPTY, Hyphens::Allow);
    (result.is_ok() && !begins_like_an_a_label(&unicode)).then(|| unicode.into_owned())
}

/// Returns true if an A-label decodes to a label that itself begins with `xn--`. UTS 46 section 4.1 forbids that
/// (validity criterion 4 since revision 33), but the idna crate does not check it. Such an A-label begins with
/// `xn--xn--`.
pub(crate) fn has_nested_a_label(ascii: &str) -> bool {
    ascii.contains("xn--xn--") && {
        let (unicode, _) = Uts46::new().to_unicode(ascii.as_bytes(), AsciiDenyList::EMPTY, Hyphens::Allow);
        begins_like_an_a_label(&unicode)
    }
}

/// Returns true if a label of a Unicode form begins with `xn--`.
fn begins_like_an_a_label(unicode: &str) -> bool {
    unicode.split('.').any(|label| label.starts_with("xn--"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ascii_form_is_that_of_uts_46() {
        assert_eq!(idn_to_ascii(b"r%C3%A9sum%C3%A9.example").0.as_deref(), Some("xn--rsum-bpad.example"));
        assert_eq!(idn_to_ascii(b"xn--a.example"), (None, Flags::BAD_A_LABEL));
    }

    #[test]
    fn an_escaped_delimiter_is_not_composed() {
        assert_eq!(idn_to_ascii("a=\u{338}".as_bytes()).0.as_deref(), Some("xn--a-ufo"));
        assert_eq!(idn_to_ascii(b"a%3D%CC%B8"), (None, Flags::HOST_NOT_IDNA));
        assert_eq!(idn_to_ascii(b"a=%CC%B8").0.as_deref(), Some("xn--a-ufo"));
        // A host never has `<` itself, so that the escape stands for it.
        assert_eq!(idn_to_ascii(b"a%3C%CC%B8").0, idn_to_ascii("a<\u{338}".as_bytes()).0);
    }

    #[test]
    fn an_a_label_within_an_a_label_is_invalid() {
        assert_eq!(idn_to_ascii(b"xn--xn---epa"), (None, Flags::BAD_A_LABEL));
        assert_eq!(idn_to_ascii(b"a.xn--xn--a--gua.pt").0, None);
        assert_eq!(idn_to_unicode(b"xn--xn---epa"), None);
        // "xénn--", whose ASCII characters are xnn--.
        assert_eq!(idn_to_ascii("xénn--".as_bytes()).0.as_deref(), Some("xn--xnn---bsa"));
    }

    #[test]
    fn only_names_have_labels() {
        assert!(may_be_idn(b"a.xn--a") && may_be_idn(b"a%c3") && !may_be_idn(b"axn--a"));
        assert!(!may_be_idn(b"[v1.xn--a]"));
    }

    #[test]
    fn the_unicode_version_is_that_of_the_newest_known_character() {
        assert_eq!(unicode_version(), "18.0");
        // Legacy charsets are followed by NFC, so its data must have the same version.
        let (major, minor, _) = unicode_normalization::UNICODE_VERSION;
        assert_eq!(unicode_version(), format!("{major}.{minor}"));
        // If this fails, the locked data are newer: add a character of their version to `NEW_CHARACTERS`.
        let lock = include_str!("../../../Cargo.lock");
        assert!(lock.contains("name = \"icu_normalizer_data\"\nversion = \"2.4.0\""));
        let unassigned = "\u{11DFF}";
        assert_eq!(idn_to_ascii(unassigned.as_bytes()).0, None);
    }
}
