//! Between IRIs and URIs, RFC 3987 section 3: a reference in, its mapping out. Nothing is normalised: the case of
//! existing escapes stays, hosts stay unless their ASCII or Unicode form is asked for.

use idna::uts46::{AsciiDenyList, Hyphens, Uts46};

use super::check::{check_iri_reference, check_uri_reference};
use super::class::{self, UNRESERVED};
use super::host::idn_to_ascii;
use super::parts::Parts;
use super::percent::{encode, escape_value};
use super::{Component, Fault, FaultKind, Intake};
use crate::encoding::is_utf8;
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
/// use irikey::iri::{HostMapping, Intake, to_uri};
/// let uri = to_uri("http://résumé.example.org/é".as_bytes(), Intake::Strict, HostMapping::Ascii).unwrap();
/// assert_eq!(uri, "http://xn--rsum-bpad.example.org/%C3%A9");
/// assert!(to_uri(b"a%b", Intake::Lenient, HostMapping::Percent).is_err());
/// ```
pub fn to_uri(reference: &[u8], intake: Intake, host: HostMapping) -> Result<String, Fault> {
    if intake == Intake::Strict {
        let text = std::str::from_utf8(reference)
            .map_err(|error| Fault::new(FaultKind::NotUtf8, Component::Reference, error.valid_up_to()))?;
        check_iri_reference(text)?;
    }
    let to_ascii = |host: &[u8]| if host.is_ascii() { None } else { idn_to_ascii(host).0 };
    let encoded = if host == HostMapping::Ascii && is_utf8(reference) {
        encode(&map_host(reference, to_ascii))
    } else {
        encode(reference)
    };
    // Every byte beyond ASCII has become an escape, so nothing is lost here.
    let uri = String::from_utf8_lossy(&encoded).into_owned();
    check_uri_reference(&uri)?;
    Ok(uri)
}

/// URI -> IRI, section 3.2: escapes decoded where they are UTF-8 of characters that sections 2.2, 4.1 and 6.1 allow,
/// never as another charset. `%`, reserved and excluded ASCII stay escaped. In: any reference that is UTF-8.
///
/// ```
/// use irikey::iri::{HostMapping, to_iri};
/// assert_eq!(to_iri("http://h/D%C3%BCrst%7E%2F%FC", HostMapping::Percent), "http://h/Dürst~%2F%FC");
/// ```
pub fn to_iri(reference: &str, host: HostMapping) -> String {
    let text = match host {
        HostMapping::Unicode => map_host(reference.as_bytes(), idn_to_unicode),
        HostMapping::Percent | HostMapping::Ascii => reference.as_bytes().to_vec(),
    };
    let parts = Parts::split(&text);
    let query = parts.query_at.map_or(0..0, |at| at as usize..parts.query_end as usize);
    let mut iri = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let component = if query.contains(&at) { Component::Query } else { Component::Path };
        match escape_value(&text[at..]) {
            None => {
                iri.push(text[at]);
                at += 1;
            }
            Some(octet) if octet >= 0x80 => at += decode_run(&text[at..], component, &mut iri),
            Some(octet) => {
                if UNRESERVED.contains(octet) {
                    iri.push(octet)
                } else {
                    iri.extend_from_slice(&text[at..at + 3])
                }
                at += 3;
            }
        }
    }
    String::from_utf8_lossy(&iri).into_owned()
}

/// Steps 2 to 4 of section 3.2 for the run of escapes above 7F that `text` begins with; returns the run's length.
fn decode_run(text: &[u8], component: Component, iri: &mut Vec<u8>) -> usize {
    let escapes = text.chunks(3).map_while(escape_value);
    let octets: Vec<u8> = escapes.take_while(|&octet| octet >= 0x80).collect();
    let mut rest = &octets[..];
    while !rest.is_empty() {
        let (character, len) = bstr::decode_utf8(rest);
        match character {
            Some(c) if is_decoded(c, component) => iri.extend_from_slice(&rest[..len]),
            _ => percent_encode(&rest[..len], iri),
        }
        rest = &rest[len..];
    }
    octets.len() * 3
}

/// Step 4: what sections 2.2, 4.1 and 6.1 leave.
fn is_decoded(c: char, component: Component) -> bool {
    let is_derived = class::is_ucschar(c) || (component == Component::Query && class::is_iprivate(c));
    is_derived && !class::is_bidi_control_of_today(c)
}

/// The Unicode form of a host, if it has one.
pub fn idn_to_unicode(host: &[u8]) -> Option<String> {
    let (unicode, result) = Uts46::new().to_unicode(host, AsciiDenyList::EMPTY, Hyphens::Allow);
    result.is_ok().then(|| unicode.into_owned())
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
