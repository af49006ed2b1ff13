//! Domain names by themselves, judged as registries and resolvers judge them (UTS 46 section 4, IDNA2008). In: a name.
//! Out: its ASCII or Unicode form, or nothing when it is no name: stricter than hosts of URIs, which need only be one
//! of each other's spellings ([`super::idn_to_ascii`]).

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};

/// `ToASCII` of UTS 46: non-transitional, hyphens, joiners, bidi rule and DNS lengths checked, also the length of the
/// root's empty label. `None` where any check fails.
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

/// `ToUnicode` of UTS 46, with the same checks but those of lengths. `None` where one of them fails.
///
/// ```
/// use irikey::iri::domain_to_unicode;
/// assert_eq!(domain_to_unicode(b"XN--FA-HIA.de").as_deref(), Some("faß.de"));
/// assert_eq!(domain_to_unicode(b"xn--a.de"), None);
/// ```
pub fn domain_to_unicode(name: &[u8]) -> Option<String> {
    let (unicode, verdict) = Uts46::new().to_unicode(name, AsciiDenyList::EMPTY, Hyphens::Check);
    verdict.ok().map(|()| unicode.into_owned())
}
