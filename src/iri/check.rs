//! Is it an IRI, an IRI-reference, a URI? The grammar of RFC 3987 section 2.2, with the first fault it finds: kind,
//! component and byte offset. In: text. Out: its [`Parts`], or a [`Fault`]. Repairs nothing.

use super::class::{self, HEXDIG, PATH, QUERY, REG_NAME, USERINFO};
use super::host::is_ip_literal;
use super::parts::{Authority, Parts};
use super::{Component, Fault, FaultKind};
use crate::kernel::ByteSet;

/// What ends a host, or begins one, when the authority is taken apart.
const HOST_DELIMS: ByteSet = ByteSet::of(b"[]@:");

/// Whether characters beyond ASCII are in the alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alphabet {
    /// RFC 3986: none.
    Uri,
    /// RFC 3987: `ucschar`, and `iprivate` in queries.
    Iri,
}

/// `IRI = scheme ":" ihier-part [ "?" iquery ] [ "#" ifragment ]`, RFC 3987 section 2.2.
///
/// # Errors
/// The first fault, in the order scheme, authority, path, query, fragment. Bidirectional formatting characters are
/// derived by the grammar; [`check_bidi_controls`] refuses them.
///
/// ```
/// use irikey::iri::{FaultKind, check_iri};
/// assert!(check_iri("http://résumé.example.org/?q=\u{E000}").is_ok());
/// assert_eq!(check_iri("//example.org/").unwrap_err().kind, FaultKind::Relative);
/// assert_eq!(check_iri("http://h/a b").unwrap_err().at, 10);
/// ```
pub fn check_iri(text: &str) -> Result<Parts, Fault> {
    absolute(check_reference(text.as_bytes(), Alphabet::Iri)?)
}

/// `IRI-reference = IRI / irelative-ref`, RFC 3987 section 2.2.
///
/// # Errors
/// As [`check_iri`], less the one that there is no scheme.
pub fn check_iri_reference(text: &str) -> Result<Parts, Fault> {
    check_reference(text.as_bytes(), Alphabet::Iri)
}

/// `URI`, RFC 3986 appendix A.
///
/// # Errors
/// As [`check_iri`]; every byte above 127 is one.
pub fn check_uri(text: &str) -> Result<Parts, Fault> {
    absolute(check_reference(text.as_bytes(), Alphabet::Uri)?)
}

/// `URI-reference`, RFC 3986 appendix A.
///
/// # Errors
/// As [`check_uri`], less the one that there is no scheme.
pub fn check_uri_reference(text: &str) -> Result<Parts, Fault> {
    check_reference(text.as_bytes(), Alphabet::Uri)
}

/// RFC 3987 section 4.1: "IRIs MUST NOT contain bidirectional formatting characters (LRM, RLM, LRE, RLE, PDF, LRO, and
/// RLO)", whatever section 2.2 derives.
///
/// # Errors
/// The first such character.
pub fn check_bidi_controls(text: &str) -> Result<(), Fault> {
    match text.char_indices().find(|&(_, c)| class::is_bidi_control(c)) {
        None => Ok(()),
        Some((at, _)) => Err(Fault::new(FaultKind::BidiControl, component_at(&Parts::split(text.as_bytes()), at), at)),
    }
}

/// The component that byte `at` belongs to.
pub(super) fn component_at(parts: &Parts, at: usize) -> Component {
    let at = at as u32;
    if parts.fragment_at.is_some_and(|start| at >= start) {
        return Component::Fragment;
    }
    if parts.query_at.is_some_and(|start| at >= start) {
        return Component::Query;
    }
    match parts.authority {
        Some(authority) if at < authority.host_at => Component::Userinfo,
        Some(authority) if at < authority.host_end => Component::Host,
        Some(authority) if at < authority.end => Component::Port,
        _ => Component::Path,
    }
}

fn absolute(parts: Parts) -> Result<Parts, Fault> {
    match parts.scheme_len {
        Some(_) => Ok(parts),
        None => Err(Fault::new(FaultKind::Relative, Component::Reference, 0)),
    }
}

/// A whole reference. `text` may be any bytes: what is no character is no character of the alphabet either.
fn check_reference(text: &[u8], alphabet: Alphabet) -> Result<Parts, Fault> {
    if text.len() > u32::MAX as usize / 4 {
        return Err(Fault::new(FaultKind::TooLong, Component::Reference, 0));
    }
    let parts = Parts::split(text);
    if parts.scheme_len.is_none() {
        check_path_noscheme(text)?;
    }
    let run = |from: u32, to: u32, component, single: &ByteSet| {
        check_run(text, from as usize, to as usize, component, single, alphabet)
    };
    if let Some(authority) = parts.authority {
        if authority.host_at > authority.at {
            run(authority.at, authority.host_at - 1, Component::Userinfo, &USERINFO)?;
        }
        if !is_ip_literal(parts.host(text).unwrap_or_default()) {
            run(authority.host_at, authority.host_end, Component::Host, &REG_NAME)
                .map_err(|fault| in_brackets(text, fault, authority.host_at))?;
        }
        if authority.end > authority.host_end {
            check_port(text, authority.host_end as usize + 1, authority.end as usize)?;
        }
    }
    run(parts.path_at, parts.path_end, Component::Path, &PATH)?;
    if let Some(at) = parts.query_at {
        run(at, parts.query_end, Component::Query, &QUERY)?;
    }
    if let Some(at) = parts.fragment_at {
        run(at, text.len() as u32, Component::Fragment, &QUERY)?;
    }
    Ok(parts)
}

/// `ipath-noscheme = isegment-nz-nc *( "/" isegment )`: without a scheme the first segment has no `:`.
pub(super) fn check_path_noscheme(text: &[u8]) -> Result<(), Fault> {
    let segment_end = memchr::memchr3(b'/', b'?', b'#', text).unwrap_or(text.len());
    let Some(colon) = memchr::memchr(b':', &text[..segment_end]) else { return Ok(()) };
    let is_bad = |(i, byte): (usize, &u8)| {
        if i == 0 { !class::ALPHA.contains(*byte) } else { !class::SCHEME_TAIL.contains(*byte) }
    };
    let at = text[..colon].iter().enumerate().position(is_bad).unwrap_or(colon);
    Err(Fault::new(FaultKind::Scheme, Component::Scheme, at))
}

/// `port = *DIGIT`, RFC 3986 section 3.2.3.
pub(super) fn check_port(text: &[u8], from: usize, to: usize) -> Result<(), Fault> {
    match text[from..to].iter().position(|byte| !byte.is_ascii_digit()) {
        None => Ok(()),
        Some(at) => Err(Fault::new(FaultKind::Port, Component::Port, from + at)),
    }
}

/// The authority of a reference, if it has one, as even lenient intake must be able to read it: one userinfo, a host
/// that is an IP-literal or has no brackets and no `:`, a port of digits.
///
/// # Errors
/// What could be read in more than one way.
pub fn check_authority(text: &[u8]) -> Result<(), Fault> {
    Parts::split(text).authority.map_or(Ok(()), |authority| check_authority_lenient(text, authority))
}

/// What even lenient intake must be able to read: one userinfo, a host that is an IP-literal or has no brackets and no
/// `:`, a port of digits. Anything else could be read in more than one way.
pub(super) fn check_authority_lenient(text: &[u8], authority: Authority) -> Result<(), Fault> {
    let (host_at, host_end) = (authority.host_at as usize, authority.host_end as usize);
    if let Some(at) = memchr::memchr2(b'[', b']', &text[authority.at as usize..host_at]) {
        return Err(Fault::new(FaultKind::Character, Component::Userinfo, authority.at as usize + at));
    }
    let host = &text[host_at..host_end];
    if !is_ip_literal(host) {
        if host.starts_with(b"[") {
            return Err(Fault::new(FaultKind::IpLiteral, Component::Host, host_at));
        }
        if let Some(at) = host.iter().position(|&byte| HOST_DELIMS.contains(byte)) {
            return Err(Fault::new(FaultKind::Character, Component::Host, host_at + at));
        }
    }
    if authority.end > authority.host_end { check_port(text, host_end + 1, authority.end as usize) } else { Ok(()) }
}

/// A bad character at a host's `[` means that the literal is malformed.
fn in_brackets(text: &[u8], fault: Fault, host_at: u32) -> Fault {
    if fault.at == host_at && text[host_at as usize] == b'[' {
        Fault { kind: FaultKind::IpLiteral, ..fault }
    } else {
        fault
    }
}

/// A run of single characters of one component and escapes.
fn check_run(
    text: &[u8],
    from: usize,
    to: usize,
    component: Component,
    single: &ByteSet,
    alphabet: Alphabet,
) -> Result<(), Fault> {
    let mut at = from;
    while at < to {
        let byte = text[at];
        if single.contains(byte) {
            at += 1;
        } else if byte == b'%' {
            match text[at + 1..to] {
                [high, low, ..] if HEXDIG.contains(high) && HEXDIG.contains(low) => at += 3,
                _ => return Err(Fault::new(FaultKind::PctEncoded, component, at)),
            }
        } else {
            at += check_character(&text[at..to], component, alphabet).ok_or(Fault::new(
                FaultKind::Character,
                component,
                at,
            ))?;
        }
    }
    Ok(())
}

/// Length of the character beyond ASCII that `text` begins with, if the component may hold it.
fn check_character(text: &[u8], component: Component, alphabet: Alphabet) -> Option<usize> {
    let (character, len) = bstr::decode_utf8(text);
    let character = character.filter(|_| alphabet == Alphabet::Iri)?;
    let allowed = class::is_ucschar(character) || (component == Component::Query && class::is_iprivate(character));
    allowed.then_some(len)
}
