//! Between IRIs and URIs, RFC 3987 section 3: a reference in, its mapping out. Nothing is normalised: the case of
//! existing escapes stays, hosts stay unless their ASCII or Unicode form is asked for.
//!
//! A query can be mapped by the charset of its document first, draft-weber-iri-guidelines-00 section 6.1.

use std::borrow::Cow;

use idna::uts46::{AsciiDenyList, Hyphens, Uts46};

use super::check::{check_iri_reference, check_uri_reference, component_at};
use super::class::{self, UNRESERVED};
use super::host::{begins_like_an_a_label, idn_to_ascii};
use super::parts::Parts;
use super::percent::{encode, escape_value};
use super::{Component, Fault, FaultKind, ParseMode};
use crate::encoding::{Charset, Encoded, UnmappableMode, is_utf8};
use crate::kernel::percent_encode;

/// Which form a mapping gives a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostMapping {
    /// Characters beyond ASCII as escapes, as in every other component.
    #[default]
    Percent,
    /// ToASCII (section 3.1: MAY), by UTS 46, of hosts with characters beyond ASCII; escapes where that fails.
    Ascii,
    /// ToUnicode (section 3.2: MAY), by UTS 46; A-labels where that fails.
    Unicode,
}

/// IRI -> URI, section 3.1. Idempotent, and the identity on URI references.
///
/// # Errors
/// With strict intake, what is no IRI reference. With lenient intake excluded ASCII characters are encoded too (step 2
/// allows it), and the fault is what still keeps the result from being a URI reference; its offset is one into the
/// result.
///
/// ```
/// use irikey::iri::{HostMapping, ParseMode, to_uri};
/// let uri = to_uri("http://résumé.example.org/é".as_bytes(), ParseMode::Strict, HostMapping::Ascii).unwrap();
/// assert_eq!(uri, "http://xn--rsum-bpad.example.org/%C3%A9");
/// assert!(to_uri(b"a%b", ParseMode::Lenient, HostMapping::Percent).is_err());
/// ```
pub fn to_uri(reference: &[u8], intake: ParseMode, host: HostMapping) -> Result<String, Fault> {
    if intake == ParseMode::Strict {
        let text = std::str::from_utf8(reference)
            .map_err(|error| Fault::new(FaultKind::NotUtf8, Component::Reference, error.valid_up_to()))?;
        check_iri_reference(text)?;
    }
    let uri = to_uri_unchecked(reference, host);
    check_uri_reference(&uri)?;
    Ok(uri)
}

/// Step 2 of section 3.1 on any bytes; what comes out is ASCII, and a URI reference if what went in allows it.
pub(super) fn to_uri_unchecked(reference: &[u8], host: HostMapping) -> String {
    let to_ascii = |host: &[u8]| if host.is_ascii() { None } else { idn_to_ascii(host).0 };
    let encoded = if host == HostMapping::Ascii && is_utf8(reference) {
        encode(&map_host(reference, to_ascii))
    } else {
        encode(reference)
    };
    // Every byte beyond ASCII has become an escape, so nothing is lost here.
    String::from_utf8_lossy(&encoded).into_owned()
}

/// The charset of the document that a reference stands in, for its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryCharset {
    /// The document's charset; UTF-8 is used in place of any other Unicode charset.
    pub charset: Charset,
    /// What becomes of characters that it lacks.
    pub unmappable: UnmappableMode,
}

/// References with this scheme (the base's where they have none) have their queries in the document's charset:
/// "http" and "https", draft-weber-iri-guidelines-00 section 6.1.
pub fn uses_query_charset(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
}

/// `reference` with the characters beyond ASCII of its query as escapes of their bytes in the document's charset; the
/// rest, and what the query's ASCII characters are, stays for [`to_uri`] or the ladder. The flag tells that a character
/// was not in the charset. Whether the scheme is one for this, [`uses_query_charset`] says.
///
/// # Errors
/// With [`UnmappableMode::Fail`] the first character that the charset lacks.
///
/// ```
/// use irikey::encoding::{Charset, UnmappableMode};
/// use irikey::iri::{QueryCharset, encode_query};
/// let query = QueryCharset { charset: Charset::named("iso-8859-1").unwrap(), unmappable: UnmappableMode::Fail };
/// assert_eq!(encode_query("http://h/é?é#é", query).unwrap().0, "http://h/é?%E9#é");
/// assert_eq!(encode_query("/é?я", query).unwrap_err().at, 4);
/// ```
pub fn encode_query(reference: &str, query: QueryCharset) -> Result<(Cow<'_, str>, bool), Fault> {
    let parts = Parts::split(reference.as_bytes());
    let Some(start) = parts.query_at else { return Ok((reference.into(), false)) };
    let (start, end) = (start as usize, parts.query_end as usize);
    if reference[start..end].is_ascii() {
        return Ok((reference.into(), false));
    }
    let Encoded { runs, has_unmappable } = query
        .charset
        .encode(&reference[start..end], query.unmappable)
        .map_err(|at| Fault::new(FaultKind::Unencodable, Component::Query, start + at))?;
    let mut mapped = reference.as_bytes()[..start].to_vec();
    for (run, is_beyond_ascii) in runs {
        // The second byte of a Shift_JIS character may be a `|`, and one of ISO-2022-JP a `#`.
        for octets in run.chunk_by(|a, b| UNRESERVED.contains(*a) == UNRESERVED.contains(*b)) {
            let is_encoded = is_beyond_ascii && !UNRESERVED.contains(octets[0]);
            if is_encoded { percent_encode(octets, &mut mapped) } else { mapped.extend_from_slice(octets) }
        }
    }
    mapped.extend_from_slice(&reference.as_bytes()[end..]);
    Ok((String::from_utf8_lossy(&mapped).into_owned().into(), has_unmappable))
}

/// URI -> IRI, section 3.2: escapes decoded where they are UTF-8 of characters that sections 2.2, 4.1 and 6.1 allow,
/// never as another charset. `%`, reserved and excluded ASCII stay escaped. In: any reference that is UTF-8.
///
/// ```
/// use irikey::iri::{HostMapping, to_iri};
/// assert_eq!(to_iri("http://h/D%C3%BCrst%7E%2F%FC", HostMapping::Percent), "http://h/Dürst~%2F%FC");
/// ```
pub fn to_iri(reference: &str, host: HostMapping) -> String {
    to_iri_by(reference, host, is_decoded)
}

/// [`to_iri`] with another idea of what may be decoded where.
pub(super) fn to_iri_by(reference: &str, host: HostMapping, is_decoded: impl Fn(char, Component) -> bool) -> String {
    let text = match host {
        HostMapping::Unicode => map_host(reference.as_bytes(), idn_to_unicode),
        HostMapping::Percent | HostMapping::Ascii => reference.as_bytes().to_vec(),
    };
    let parts = Parts::split(&text);
    let mut iri = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match escape_value(&text[at..]) {
            None => {
                iri.push(text[at]);
                at += 1;
            }
            Some(_) => {
                let component = component_at(&parts, at);
                at += decode_run(&text[at..], |c| is_decoded(c, component), &mut iri);
            }
        }
    }
    String::from_utf8_lossy(&iri).into_owned()
}

/// Steps 2 to 4 of section 3.2 for the run of escapes that `text` begins with; returns the run's length. What stays
/// escaped stays as it is below 80, and has upper-case digits above, as step 3 writes them.
fn decode_run(text: &[u8], is_decoded: impl Fn(char) -> bool, iri: &mut Vec<u8>) -> usize {
    let octets: Vec<u8> = text.chunks(3).map_while(escape_value).collect();
    let mut at = 0;
    while at < octets.len() {
        let (character, len) = bstr::decode_utf8(&octets[at..]);
        match character {
            Some(c) if is_decoded(c) => iri.extend_from_slice(&octets[at..at + len]),
            Some(c) if c.is_ascii() => iri.extend_from_slice(&text[3 * at..3 * at + 3]),
            _ => percent_encode(&octets[at..at + len], iri),
        }
        at += len;
    }
    octets.len() * 3
}

/// Step 4: what sections 2.2, 4.1 and 6.1 leave.
pub(super) fn is_decoded(c: char, component: Component) -> bool {
    if c.is_ascii() {
        return UNRESERVED.contains(c as u8);
    }
    let is_derived = class::is_ucschar(c) || (component == Component::Query && class::is_iprivate(c));
    is_derived && !class::is_any_bidi_control(c)
}

/// The Unicode form of a host, if it has one.
pub fn idn_to_unicode(host: &[u8]) -> Option<String> {
    let (unicode, result) = Uts46::new().to_unicode(host, AsciiDenyList::EMPTY, Hyphens::Allow);
    (result.is_ok() && !begins_like_an_a_label(&unicode)).then(|| unicode.into_owned())
}

/// `text` with its host replaced by what `map` makes of it.
fn map_host(text: &[u8], map: impl Fn(&[u8]) -> Option<String>) -> Vec<u8> {
    let parts = Parts::split(text);
    let (Some(authority), Some(host)) = (parts.authority, parts.host(text)) else { return text.to_vec() };
    match map(host) {
        Some(mapped) if !host.starts_with(b"[") => {
            [&text[..authority.host_at as usize], mapped.as_bytes(), &text[authority.host_end as usize..]].concat()
        }
        _ => text.to_vec(),
    }
}
