//! The parser of the URL Standard, by the url crate: shows what a browser makes of a reference, for comparison with the
//! RFC.
//!
//! A failure becomes the closest [`Fault`], without an offset, because the standard defines none. Where the crate
//! differs from the current standard, its input or result is corrected: `file` URLs are parsed in `file.rs`; hosts in
//! `host.rs`; additional slashes before the host of a relative reference are ignored if the base has a special scheme,
//! and a `\\` is part of its path if not; `^` in a path is encoded; so is the last space of an opaque path before a
//! query or fragment.

mod file;
mod host;

use std::borrow::Cow;

use url::{EncodingOverride, ParseError, Position, Url};

use self::file::{file_href, find_file};
use self::host::{is_mapped, mask_a_labels, unmask_a_labels};
use super::fault::{Component, Fault, FaultKind};
use super::host::idn::has_nested_a_label;
use super::map::QueryCharset;
use super::parts::find_scheme;

/// The special schemes except `file`.
const SPECIAL: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Returns the `href` of `reference`, resolved against `base` if there is one. [`super::Parts::split`] splits an `href`
/// as the standard does.
///
/// # Errors
/// The standard's parser fails for `reference` or `base`.
///
/// ```
/// use irikey::iri::whatwg_href;
/// assert_eq!(whatwg_href("\\a\\..\\é", Some("HTTP://EX.org:80"), None).unwrap(), "http://ex.org/%C3%A9");
/// assert!(whatwg_href("/a", None, None).is_err());
/// ```
pub fn whatwg_href(reference: &str, base: Option<&str>, query: Option<QueryCharset>) -> Result<String, Fault> {
    let base = base.map(|base| parse(base, None, None)).transpose();
    let base = base.map_err(|_| Fault::new(FaultKind::Base, Component::Reference, 0))?;
    parse(reference, base.as_deref(), query).map_err(fault)
}

/// The basic URL parser; `base` is an `href`.
fn parse(reference: &str, base: Option<&str>, query: Option<QueryCharset>) -> Result<String, ParseError> {
    let encode = encoder(|text| encoded(text, query).into());
    let encoding: EncodingOverride = match query {
        Some(_) => Some(&encode),
        None => None,
    };
    let reference = strip(reference);
    if let Some(rest) = find_file(&reference, base) {
        return file_href(rest, base, encoding);
    }
    let reference = correct_start(&reference, base);
    match parse_by_crate(&reference, base, encoding) {
        Err(ParseError::IdnaError) => {
            let (reference, base) = (mask_a_labels(&reference), base.map(mask_a_labels));
            unmask_a_labels(&parse_by_crate(&reference, base.as_deref(), encoding)?)
        }
        result => result,
    }
}

fn parse_by_crate(reference: &str, base: Option<&str>, encoding: EncodingOverride) -> Result<String, ParseError> {
    let base = base.map(Url::parse).transpose()?;
    let url = Url::options().base_url(base.as_ref()).encoding_override(encoding).parse(reference)?;
    // Hosts of other schemes are opaque.
    match SPECIAL.contains(&url.scheme()) && is_mapped(reference) && url.domain().is_some_and(has_nested_a_label) {
        true => Err(ParseError::IdnaError),
        false => Ok(correct(&url)),
    }
}

/// *Relative slash state* for the crate, which knows neither additional slashes before a host nor a `\\` in the path of
/// a URL that is not special.
fn correct_start<'a>(reference: &'a str, base: Option<&str>) -> Cow<'a, str> {
    let is_special = |base: &str| base.split_once(':').is_some_and(|(scheme, _)| SPECIAL.contains(&scheme));
    let is_slash = |c| c == '/' || c == '\\';
    match base.filter(|_| find_scheme(reference.as_bytes()).is_none()) {
        Some(base) if is_special(base) && reference.chars().take_while(|c| is_slash(*c)).count() > 2 => {
            format!("//{}", reference.trim_start_matches(is_slash)).into()
        }
        Some(base) if !is_special(base) && reference.starts_with('\\') => format!("./{reference}").into(),
        _ => reference.into(),
    }
}

/// The first steps of the parser: removes controls and spaces at both ends, and all tabs and line ends.
fn strip(reference: &str) -> Cow<'_, str> {
    let inner = reference.trim_matches(|c: char| c <= ' ');
    match inner.contains(['\t', '\n', '\r']) {
        true => inner.replace(['\t', '\n', '\r'], "").into(),
        false => inner.into(),
    }
}

/// The `href` as the current standard requires.
fn correct(url: &Url) -> String {
    let (path, tail) = (url.path(), &url[Position::AfterPath..]);
    let path = match path.strip_suffix(' ') {
        _ if !url.cannot_be_a_base() => path.replace('^', "%5E"),
        Some(path) if !tail.is_empty() => format!("{path}%20"),
        _ => path.to_string(),
    };
    [&url[..Position::BeforePath], &path, tail].concat()
}

/// Gives a closure the signature that is generic over the lifetime of the text; closures do not infer that.
fn encoder<F: Fn(&str) -> Cow<'_, [u8]>>(encode: F) -> F {
    encode
}

/// The bytes of a query in the document's charset. Characters that the charset cannot encode become escaped character
/// references, which the parser does not change.
fn encoded(text: &str, query: Option<QueryCharset>) -> Vec<u8> {
    let runs = query.and_then(|query| query.charset.encode(text, query.unmappable).ok()).map(|encoded| encoded.runs);
    let mut bytes = Vec::new();
    for (run, is_beyond_ascii) in runs.unwrap_or_else(|| vec![(text.as_bytes().to_vec(), false)]) {
        for &byte in &run {
            match byte {
                b'&' | b'#' | b';' if is_beyond_ascii => bytes.extend_from_slice(format!("%{byte:02X}").as_bytes()),
                _ => bytes.push(byte),
            }
        }
    }
    bytes
}

/// The fault that is closest to a parse error.
fn fault(error: ParseError) -> Fault {
    let (kind, component) = match error {
        ParseError::RelativeUrlWithoutBase | ParseError::RelativeUrlWithCannotBeABaseBase => {
            (FaultKind::Relative, Component::Reference)
        }
        ParseError::InvalidPort => (FaultKind::Port, Component::Port),
        ParseError::InvalidIpv6Address => (FaultKind::IpLiteral, Component::Host),
        ParseError::Overflow => (FaultKind::TooLong, Component::Reference),
        _ => (FaultKind::Character, Component::Host),
    };
    Fault::new(kind, component, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::{Charset, UnmappableMode};

    #[test]
    fn queries_are_encoded_in_the_documents_charset() {
        let charset = Charset::named("shift_jis").unwrap();
        let query = QueryCharset { charset, unmappable: UnmappableMode::CharacterReference };
        assert_eq!(whatwg_href("http://h/é?é&ア", None, Some(query)).unwrap(), "http://h/%C3%A9?%26%23233%3B&%83A");
    }

    #[test]
    fn parse_errors_become_faults() {
        let cases = [
            ("/a", FaultKind::Relative),
            ("http://h:8x", FaultKind::Port),
            ("http://[::", FaultKind::IpLiteral),
            ("http://é.xn--xn---epa/", FaultKind::Character),
        ];
        for (text, kind) in cases {
            assert_eq!(whatwg_href(text, None, None).unwrap_err().kind, kind, "{text}");
        }
        assert_eq!(whatwg_href("a", Some("b"), None).unwrap_err().kind, FaultKind::Base);
    }
}
