//! Syntax checks: is a text an IRI, an IRI reference, a URI? The grammar is that of RFC 3987 section 2.2.
//!
//! A check returns the components ([`Parts`]) or the first [`Fault`] with kind, component and byte offset. Nothing is
//! repaired. [`ParseMode`] selects between this grammar and the lenient rules for crawl data.

use std::fmt;

use super::class::{self, ALPHA, HEXDIG, PATH, QUERY, REG_NAME, SCHEME_TAIL, USERINFO};
use super::fault::{Component, Fault, FaultKind};
use super::host::ip::is_ip_literal;
use super::parts::{Authority, Parts};
use crate::kernel::ByteSet;

/// What happens to text that the grammar of RFC 3987 section 2.2 does not derive.
///
/// ```
/// use irikey::iri::ParseMode;
/// assert_eq!(ParseMode::named("strict"), Some(ParseMode::Strict));
/// assert_eq!(ParseMode::Strict.to_string(), "strict");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ParseMode {
    /// Characters that are not allowed in an IRI are percent-encoded or kept, and flagged. Only a reference that cannot
    /// be split into components without ambiguity is a fault. This mode is for crawl data.
    #[default]
    Lenient,
    /// Everything that the grammar or section 4.1 forbids is a fault.
    Strict,
}

/// Writes the name.
impl fmt::Display for ParseMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ParseMode {
    /// The mode with this name; `None` if there is none.
    pub fn named(name: &str) -> Option<ParseMode> {
        [ParseMode::Lenient, ParseMode::Strict].into_iter().find(|mode| mode.name() == name)
    }

    /// The name in file metadata.
    pub const fn name(self) -> &'static str {
        match self {
            ParseMode::Lenient => "lenient",
            ParseMode::Strict => "strict",
        }
    }

    /// Checks one absolute IRI and splits it into components.
    ///
    /// # Errors
    /// The first fault.
    ///
    /// ```
    /// use irikey::iri::{FaultKind, ParseMode};
    /// assert!(ParseMode::Lenient.check(b"http://h/a b").is_ok());
    /// assert_eq!(ParseMode::Strict.check(b"http://h/a b").unwrap_err().kind, FaultKind::Character);
    /// ```
    pub fn check(self, text: &[u8]) -> Result<Parts, Fault> {
        match self {
            ParseMode::Lenient => check_lenient(text),
            ParseMode::Strict => check_strict(text, check_iri),
        }
    }
}

/// Checks `text` as strict mode does: not empty, UTF-8, derived by the grammar of `check`, and without the characters
/// that section 4.1 forbids.
pub(super) fn check_strict(text: &[u8], check: impl Fn(&str) -> Result<Parts, Fault>) -> Result<Parts, Fault> {
    let text = check_utf8(check_not_empty(text)?)?;
    let parts = check(text)?;
    check_bidi_controls(text)?;
    Ok(parts)
}

fn check_lenient(text: &[u8]) -> Result<Parts, Fault> {
    check_len(text)?;
    let parts = Parts::split(check_not_empty(text)?);
    if parts.scheme_len.is_none() {
        return Err(missing_scheme(text));
    }
    if let Some(authority) = parts.authority {
        check_authority_lenient(text, authority)?;
    }
    Ok(parts)
}

/// Checks that the offsets of [`Parts`] can address `text`. Otherwise they would wrap, and different texts could become one.
pub(super) fn check_len(text: &[u8]) -> Result<(), Fault> {
    if text.len() > u32::MAX as usize { Err(Fault::of_reference(FaultKind::TooLong)) } else { Ok(()) }
}

fn check_not_empty(text: &[u8]) -> Result<&[u8], Fault> {
    if text.is_empty() { Err(Fault::of_reference(FaultKind::Empty)) } else { Ok(text) }
}

/// The reason why `text` has no scheme.
pub(super) fn missing_scheme(text: &[u8]) -> Fault {
    let relative = Fault::of_reference(FaultKind::Relative);
    check_not_empty(text).and_then(check_path_noscheme).err().unwrap_or(relative)
}

/// Returns `text` as a string.
///
/// # Errors
/// The first bytes that are not UTF-8.
pub(crate) fn check_utf8(text: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(text).map_err(|error| Fault::new(FaultKind::NotUtf8, Component::Reference, error.valid_up_to()))
}

/// The characters that a grammar allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alphabet {
    /// RFC 3986: ASCII only.
    Uri,
    /// RFC 3987: also `ucschar`, and `iprivate` in queries.
    Iri,
}

/// Checks `IRI = scheme ":" ihier-part [ "?" iquery ] [ "#" ifragment ]`, RFC 3987 section 2.2.
///
/// # Errors
/// The first fault, in the order scheme, authority, path, query, fragment. The grammar derives bidirectional formatting
/// characters; use [`check_bidi_controls`] to reject them as section 4.1 requires.
///
/// ```
/// use irikey::iri::{FaultKind, check_iri};
/// assert!(check_iri("http://résumé.example.org/?q=\u{E000}").is_ok());
/// assert_eq!(check_iri("//example.org/").unwrap_err().kind, FaultKind::Relative);
/// assert_eq!(check_iri("http://h/a b").unwrap_err().at, 10);
/// ```
pub fn check_iri(text: &str) -> Result<Parts, Fault> {
    require_scheme(check_reference(text.as_bytes(), Alphabet::Iri)?)
}

/// Checks `IRI-reference = IRI / irelative-ref`, RFC 3987 section 2.2.
///
/// # Errors
/// As [`check_iri`], except that the scheme may be missing.
pub fn check_iri_reference(text: &str) -> Result<Parts, Fault> {
    check_reference(text.as_bytes(), Alphabet::Iri)
}

/// Checks `URI`, RFC 3986 appendix A.
///
/// # Errors
/// As [`check_iri`]; in addition every non-ASCII character is a fault.
pub fn check_uri(text: &str) -> Result<Parts, Fault> {
    require_scheme(check_reference(text.as_bytes(), Alphabet::Uri)?)
}

/// Checks `URI-reference`, RFC 3986 appendix A.
///
/// # Errors
/// As [`check_uri`], except that the scheme may be missing.
pub fn check_uri_reference(text: &str) -> Result<Parts, Fault> {
    check_reference(text.as_bytes(), Alphabet::Uri)
}

/// Checks RFC 3987 section 4.1: "IRIs MUST NOT contain bidirectional formatting characters (LRM, RLM, LRE, RLE, PDF,
/// LRO, and RLO)". The grammar of section 2.2 allows them.
///
/// # Errors
/// The first such character.
pub fn check_bidi_controls(text: &str) -> Result<(), Fault> {
    check_controls(text, class::is_bidi_control)
}

/// Checks that `text` contains none of the bidirectional formatting characters that `is_forbidden` names.
pub(super) fn check_controls(text: &str, is_forbidden: fn(char) -> bool) -> Result<(), Fault> {
    let Some(at) = text.find(is_forbidden) else { return Ok(()) };
    let component = Parts::split(text.as_bytes()).component_at(at);
    Err(Fault::new(FaultKind::BidiControl, component, at))
}

fn require_scheme(parts: Parts) -> Result<Parts, Fault> {
    match parts.scheme_len {
        Some(_) => Ok(parts),
        None => Err(Fault::of_reference(FaultKind::Relative)),
    }
}

/// Checks a whole reference. `text` may contain any bytes: a byte that is not part of a character is not in the
/// alphabet.
fn check_reference(text: &[u8], alphabet: Alphabet) -> Result<Parts, Fault> {
    check_len(text)?;
    let parts = Parts::split(text);
    if parts.scheme_len.is_none() {
        check_path_noscheme(text)?;
    }
    let check = |from: u32, to: u32, component, allowed: &ByteSet| {
        ComponentRule { component, allowed, alphabet }.check(&text[..to as usize], from as usize)
    };
    if let Some(authority) = parts.authority {
        let Authority { at, host_at, host_end, end } = authority;
        if host_at > at {
            check(at, host_at - 1, Component::Userinfo, &USERINFO)?;
        }
        if !is_ip_literal(parts.host(text).unwrap_or_default()) {
            // A host that begins with `[` is a malformed IP literal.
            check(host_at, host_end, Component::Host, &REG_NAME).map_err(|fault| match text[host_at as usize] {
                b'[' if fault.at == host_at => Fault { kind: FaultKind::IpLiteral, ..fault },
                _ => fault,
            })?;
        }
        if end > host_end {
            check_port(text, host_end as usize + 1, end as usize)?;
        }
    }
    check(parts.path_at, parts.path_end, Component::Path, &PATH)?;
    if let Some(at) = parts.query_at {
        check(at, parts.query_end, Component::Query, &QUERY)?;
    }
    if let Some(at) = parts.fragment_at {
        check(at, text.len() as u32, Component::Fragment, &QUERY)?;
    }
    Ok(parts)
}

/// The characters that a component may contain besides escapes.
struct ComponentRule<'a> {
    component: Component,
    /// ASCII characters.
    allowed: &'a ByteSet,
    /// Decides about non-ASCII characters.
    alphabet: Alphabet,
}

impl ComponentRule<'_> {
    /// Checks the component at the end of `text`, which begins at byte `at`.
    fn check(&self, text: &[u8], mut at: usize) -> Result<(), Fault> {
        let fault = |kind, at| Fault::new(kind, self.component, at);
        while at < text.len() {
            if self.allowed.contains(text[at]) {
                at += 1;
                continue;
            }
            at += match text[at..] {
                [b'%', high, low, ..] if HEXDIG.contains(high) && HEXDIG.contains(low) => 3,
                [b'%', ..] => return Err(fault(FaultKind::PctEncoded, at)),
                _ => self.non_ascii_len(&text[at..]).ok_or_else(|| fault(FaultKind::Character, at))?,
            };
        }
        Ok(())
    }

    /// Length of the non-ASCII character at the start of `text`, if the component may contain it.
    fn non_ascii_len(&self, text: &[u8]) -> Option<usize> {
        let (character, len) = bstr::decode_utf8(text);
        let is_allowed = |c| class::is_iri_char(c, self.component == Component::Query);
        (self.alphabet == Alphabet::Iri && character.is_some_and(is_allowed)).then_some(len)
    }
}

/// Checks `ipath-noscheme = isegment-nz-nc *( "/" isegment )`: without a scheme, the first segment contains no `:`.
pub(super) fn check_path_noscheme(text: &[u8]) -> Result<(), Fault> {
    let segment_end = memchr::memchr3(b'/', b'?', b'#', text).unwrap_or(text.len());
    let Some(colon) = memchr::memchr(b':', &text[..segment_end]) else { return Ok(()) };
    let is_bad = |(i, byte): (usize, &u8)| if i == 0 { !ALPHA.contains(*byte) } else { !SCHEME_TAIL.contains(*byte) };
    let at = text[..colon].iter().enumerate().position(is_bad).unwrap_or(colon);
    Err(Fault::new(FaultKind::Scheme, Component::Scheme, at))
}

/// Checks `port = *DIGIT`, RFC 3986 section 3.2.3, in `text[from..to]`.
pub(super) fn check_port(text: &[u8], from: usize, to: usize) -> Result<(), Fault> {
    match text[from..to].iter().position(|byte| !byte.is_ascii_digit()) {
        None => Ok(()),
        Some(at) => Err(Fault::new(FaultKind::Port, Component::Port, from + at)),
    }
}

/// Checks the authority of a reference, if it has one, by the rules of lenient mode; see [`check_authority_lenient`].
pub(crate) fn check_authority(text: &[u8]) -> Result<(), Fault> {
    Parts::split(text).authority.map_or(Ok(()), |authority| check_authority_lenient(text, authority))
}

/// Checks what lenient mode requires of an authority: at most one userinfo, a host that is an IP literal or has neither
/// brackets nor `:`, and a port of digits. Anything else could be read in more than one way.
pub(super) fn check_authority_lenient(text: &[u8], authority: Authority) -> Result<(), Fault> {
    /// Bytes that delimit the parts of an authority.
    const HOST_DELIMS: ByteSet = ByteSet::of(b"[]@:");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::iri::Base;

    /// The text is never read, so that it takes no memory.
    #[cfg(target_pointer_width = "64")]
    #[test]
    fn references_that_offsets_cannot_address_are_refused() {
        let text = vec![0; 1 << 32];
        let too_long = Fault::of_reference(FaultKind::TooLong);
        assert_eq!(check_reference(&text, Alphabet::Iri), Err(too_long));
        assert_eq!(ParseMode::Lenient.check(&text), Err(too_long));
        assert_eq!(Base::literal(&text).unwrap_err(), too_long);
    }
}
