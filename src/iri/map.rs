//! Mapping between IRIs and URIs: RFC 3987 section 3.
//!
//! Nothing is normalized here: existing escapes keep their case, and hosts stay unless their ASCII or Unicode form is
//! requested. Queries can be encoded in the charset of their document first (draft-weber-iri-guidelines-00 section
//! 6.1).

use std::borrow::Cow;

use super::check::{ParseMode, check_iri_reference, check_uri_reference, check_utf8};
use super::class::{self, UNRESERVED};
use super::fault::{Component, Fault, FaultKind};
use super::flags::Flags;
use super::host::idn::{idn_to_ascii, idn_to_unicode};
use super::parts::{Parts, find_scheme};
use super::percent;
use super::scheme::Scheme;
use crate::encoding::{Charset, Encoded, UnmappableMode, is_utf8};

/// The form of the host in the result of a mapping. `Ascii` makes a difference for [`to_uri`] only, and `Unicode` for [`to_iri`]
/// only.
///
/// | | [`to_uri`] | [`to_iri`] |
/// |---|---|---|
/// | `Percent` | escapes of non-ASCII characters | escapes decoded, A-labels stay |
/// | `Ascii` | `ToASCII` | as `Percent` |
/// | `Unicode` | as `Percent` | `ToUnicode` |
///
/// ```
/// use irikey::iri::{HostMapping::{Ascii, Percent, Unicode}, ParseMode, to_iri, to_uri};
/// let uri = |host| to_uri("http://bücher/".as_bytes(), ParseMode::Strict, host).unwrap();
/// assert_eq!([Percent, Ascii, Unicode].map(uri), ["http://b%C3%BCcher/", "http://xn--bcher-kva/", "http://b%C3%BCcher/"]);
/// let iri = |host| to_iri("http://xn--bcher-kva/", host);
/// assert_eq!([Percent, Ascii, Unicode].map(iri), ["http://xn--bcher-kva/", "http://xn--bcher-kva/", "http://bücher/"]);
/// assert_eq!(to_iri("http://b%C3%BCcher/", Percent), "http://bücher/");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HostMapping {
    /// The host is mapped as every other component: non-ASCII characters become escapes in a URI, and escapes are decoded in
    /// an IRI.
    #[default]
    Percent,
    /// In a URI: `ToASCII` by UTS 46 (section 3.1: MAY) for hosts with non-ASCII characters; escapes if that fails.
    Ascii,
    /// In an IRI: `ToUnicode` by UTS 46 (section 3.2: MAY) for hosts of DNS schemes, and without a scheme. The host is mapped as
    /// by `Percent` if that fails, or if `ToASCII` of the result would not give the same host again.
    Unicode,
}

/// Maps an IRI reference to a URI reference (section 3.1). The mapping is idempotent, and the identity on URI
/// references.
///
/// # Errors
/// In strict mode: the input is not an IRI reference. In lenient mode, in which excluded ASCII characters are encoded
/// too (step 2 allows that): the result is not a URI reference, and `at` is an offset into the result.
///
/// ```
/// use irikey::iri::{HostMapping, ParseMode, to_uri};
/// let uri = to_uri("http://résumé.example.org/é".as_bytes(), ParseMode::Strict, HostMapping::Ascii).unwrap();
/// assert_eq!(uri, "http://xn--rsum-bpad.example.org/%C3%A9");
/// assert!(to_uri(b"a%b", ParseMode::Lenient, HostMapping::Percent).is_err());
/// ```
pub fn to_uri(reference: &[u8], mode: ParseMode, host: HostMapping) -> Result<String, Fault> {
    if mode == ParseMode::Strict {
        check_iri_reference(check_utf8(reference)?)?;
    }
    let uri = to_uri_unchecked(reference, host);
    check_uri_reference(&uri)?;
    Ok(uri)
}

/// Applies step 2 of section 3.1 to any bytes. The result is ASCII, but not necessarily a URI reference.
pub(super) fn to_uri_unchecked(reference: &[u8], host: HostMapping) -> String {
    let to_ascii = |_: Option<&[u8]>, host: &[u8]| if host.is_ascii() { None } else { idn_to_ascii(host).0 };
    let encoded = if host == HostMapping::Ascii && is_utf8(reference) {
        percent::percent_encode(&map_host(reference, to_ascii))
    } else {
        percent::percent_encode(reference)
    };
    // Every non-ASCII byte has become an escape, so the conversion is lossless.
    String::from_utf8_lossy(&encoded).into_owned()
}

/// The charset of the document that contains a reference; the reference's query is encoded in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryCharset {
    /// The document's charset. For Unicode charsets other than UTF-8, UTF-8 is used.
    pub charset: Charset,
    /// What happens to characters that the charset cannot encode.
    pub unmappable: UnmappableMode,
}

/// Returns true if the query of `reference` uses the document's charset: the scheme is "http" or "https",
/// draft-weber-iri-guidelines-00 section 6.1. A reference without a scheme has the scheme of its base.
pub(crate) fn uses_query_charset(reference: &[u8]) -> bool {
    let scheme = find_scheme(reference).map(|len| &reference[..len]);
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https"))
}

/// A reference whose query was encoded.
pub(crate) struct EncodedQuery {
    pub(crate) reference: Vec<u8>,
    /// The charset cannot encode all characters.
    pub(crate) has_unmappable: bool,
    /// The flags of the query before it was encoded.
    pub(crate) flags: Flags,
}

/// Encodes the query of `reference` in the document's charset: its non-ASCII characters become escapes of their bytes.
/// The other components and the ASCII characters of the query stay, for [`to_uri`] or the ladder to map. Returns `None` if there
/// is nothing to encode; a query that is not UTF-8 stays. The caller checks whether the scheme uses the document's charset.
///
/// # Errors
/// With [`UnmappableMode::Fail`], the first character that the charset cannot encode.
pub(crate) fn encode_query(reference: &[u8], query: QueryCharset) -> Result<Option<EncodedQuery>, Fault> {
    let parts = Parts::split(reference);
    let Some(start) = parts.query_at else { return Ok(None) };
    let (start, end) = (start as usize, parts.query_end as usize);
    let text = std::str::from_utf8(&reference[start..end]).ok().filter(|text| !text.is_ascii());
    let Some(text) = text else { return Ok(None) };
    let flags = percent::component_flags(text.as_bytes(), Component::Query);
    let Encoded { runs, has_unmappable } = query
        .charset
        .encode(text, query.unmappable)
        .map_err(|at| Fault::new(FaultKind::Unencodable, Component::Query, start + at))?;
    let mut mapped = reference[..start].to_vec();
    for (run, is_beyond_ascii) in runs {
        // The second byte of a Shift_JIS character may be `|`, and a byte of ISO-2022-JP may be `#`.
        percent::write_encoded(&run, |byte| is_beyond_ascii && !UNRESERVED.contains(byte), &mut mapped);
    }
    mapped.extend_from_slice(&reference[end..]);
    Ok(Some(EncodedQuery { reference: mapped, has_unmappable, flags }))
}

/// Maps a URI reference to an IRI reference (section 3.2): decodes escapes that are UTF-8 of characters which sections
/// 2.2 and 4.1 allow. Escapes of `%`, of reserved and excluded ASCII characters, and of octets that are not UTF-8
/// stay, and so do those of digits that would form an escape with a stray `%` before them.
///
/// ```
/// use irikey::iri::{HostMapping, to_iri};
/// assert_eq!(to_iri("http://h/D%C3%BCrst%7E%2F%FC", HostMapping::Percent), "http://h/Dürst~%2F%FC");
/// ```
pub fn to_iri(reference: &str, host: HostMapping) -> String {
    to_iri_by(reference, host, is_decoded)
}

/// [`to_iri`] with another rule for the characters that are decoded in a component.
pub(super) fn to_iri_by(reference: &str, host: HostMapping, is_decoded: impl Fn(char, Component) -> bool) -> String {
    let text = match host {
        HostMapping::Unicode => map_host(reference.as_bytes(), unicode_host),
        HostMapping::Percent | HostMapping::Ascii => reference.as_bytes().into(),
    };
    let parts = Parts::split(&text);
    let mut iri = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(len) = memchr::memchr(b'%', &text[at..]) {
        iri.extend_from_slice(&text[at..at + len]);
        at += len;
        match percent::escape_value(&text[at..]) {
            None => {
                iri.push(b'%');
                at += 1;
            }
            Some(_) => {
                let component = parts.component_at(at);
                at += decode_run(&text[at..], |c| is_decoded(c, component), &mut iri);
            }
        }
    }
    iri.extend_from_slice(&text[at..]);
    String::from_utf8_lossy(&iri).into_owned()
}

/// Applies steps 2 to 4 of section 3.2 to the run of escapes at the start of `text`, and returns the length of the run.
/// An ASCII escape that is not decoded stays unchanged; a non-ASCII one gets upper-case digits, as in step 3.
fn decode_run(text: &[u8], is_decoded: impl Fn(char) -> bool, iri: &mut Vec<u8>) -> usize {
    let octets: Vec<u8> = text.chunks(3).map_while(percent::escape_value).collect();
    let mut at = 0;
    while at < octets.len() {
        let (character, len) = bstr::decode_utf8(&octets[at..]);
        match character {
            Some(c) if is_decoded(c) && !percent::would_complete_an_escape(octets[at], iri) => {
                iri.extend_from_slice(&octets[at..at + len]);
            }
            Some(c) if c.is_ascii() => iri.extend_from_slice(&text[3 * at..3 * at + 3]),
            _ => crate::kernel::percent_encode(&octets[at..at + len], iri),
        }
        at += len;
    }
    octets.len() * 3
}

/// Step 4 of section 3.2: returns true for characters that sections 2.2 and 4.1 allow in `component`. Section 6.1 discourages
/// more characters, for example U+00A0, but forbids none: they are decoded, and marked by [`super::SpoofingFlags`].
pub(super) fn is_decoded(c: char, component: Component) -> bool {
    if c.is_ascii() {
        return UNRESERVED.contains(c as u8);
    }
    class::is_iri_char(c, component == Component::Query) && !class::is_any_bidi_control(c)
}

/// The Unicode form of a host, if mapping it back gives the host.
fn unicode_host(scheme: Option<&[u8]>, host: &[u8]) -> Option<String> {
    if is_unicode_form(host) || scheme.is_some_and(|scheme| !Scheme::from_name(scheme).is_network()) {
        return None;
    }
    let unicode = idn_to_unicode(host)?;
    let ascii = idn_to_ascii(host).0;
    (ascii.is_some() && ascii == idn_to_ascii(unicode.as_bytes()).0).then_some(unicode)
}

/// Returns true if UTS 46 does not change an ASCII host: it has no capitals, no escapes and no A-labels.
fn is_unicode_form(host: &[u8]) -> bool {
    let stays = |byte: &u8| byte.is_ascii() && !byte.is_ascii_uppercase() && *byte != b'%';
    host.iter().all(stays) && !host.windows(4).any(|bytes| bytes == b"xn--")
}

/// Replaces the A-labels of the host by U-labels, in every scheme, because an application may display them so.
pub(super) fn decode_labels(text: &[u8]) -> Cow<'_, [u8]> {
    map_host(text, |_, host| idn_to_unicode(host))
}

/// Replaces the host of `text` by the result of `map` for scheme and host, if there is one. IP literals stay.
fn map_host(text: &[u8], map: impl Fn(Option<&[u8]>, &[u8]) -> Option<String>) -> Cow<'_, [u8]> {
    let parts = Parts::split(text);
    let (Some(authority), Some(host)) = (parts.authority, parts.host(text)) else { return text.into() };
    match map(parts.scheme(text), host) {
        Some(mapped) if !host.starts_with(b"[") => {
            let (before, after) = (&text[..authority.host_at as usize], &text[authority.host_end as usize..]);
            [before, mapped.as_bytes(), after].concat().into()
        }
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Charset, UnmappableMode};

    /// Mapping an IRI back gives the URI (section 3.2).
    #[test]
    fn hosts_become_unicode_if_they_can_be_mapped_back() {
        for (uri, iri) in [
            ("http://xn--bcher-kva/%C3%BC", "http://bücher/ü"),
            ("//xn--bcher-kva/", "//bücher/"),
            ("http://b%C3%BCcher/", "http://bücher/"),
            ("ssh://xn--bcher-kva/", "ssh://xn--bcher-kva/"),
            ("file://xn--bcher-kva/x", "file://xn--bcher-kva/x"),
            ("https://xn--bcher-kva.xn-%0A-p1ai/", "https://xn--bcher-kva.xn-%0A-p1ai/"),
            ("http://a%2Fb/", "http://a%2Fb/"),
            ("http://xn--a/", "http://xn--a/"),
        ] {
            assert_eq!(to_iri(uri, HostMapping::Unicode), iri);
        }
    }

    /// Texts of ASCII characters that hosts may have; escapes and A-labels among them are not decoded.
    #[test]
    fn hosts_that_are_unicode_forms_stay() {
        let letters = b"az09.-_~!$&'()*+,;=:xn";
        for seed in 0..20_000_u64 {
            let hash = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let host: Vec<u8> =
                (0..1 + hash % 12).map(|at| letters[(hash >> (4 * at)) as usize % letters.len()]).collect();
            let unicode = idn_to_unicode(&host);
            assert!(!is_unicode_form(&host) || unicode.is_none_or(|form| form.as_bytes() == host), "{host:?}");
        }
        assert!(!["xn--a", "a.xn--b", "A", "%61", "\u{fc}"].iter().any(|host| is_unicode_form(host.as_bytes())));
    }

    #[test]
    fn only_queries_are_encoded() {
        let charset = Charset::named("iso-8859-1").unwrap();
        let query = QueryCharset { charset, unmappable: UnmappableMode::Fail };
        let encoded = |reference: &str| encode_query(reference.as_bytes(), query);
        assert_eq!(
            encoded("http://h/\u{e9}?\u{e9}#\u{e9}").unwrap().unwrap().reference,
            "http://h/\u{e9}?%E9#\u{e9}".as_bytes()
        );
        assert_eq!(encoded("/\u{e9}?\u{44f}").err().map(|fault| fault.at), Some(4));
        for reference in ["http://h/\u{e9}", "\u{44f}#?\u{44f}", "/?a#\u{44f}", ""] {
            assert!(encoded(reference).unwrap().is_none());
        }
    }
}
