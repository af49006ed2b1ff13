//! The parser of the URL Standard, by the url crate: shows what a browser makes of a reference, for comparison with the
//! RFC.
//!
//! A failure becomes the closest [`Fault`], without an offset, because the standard defines none. Where the crate
//! differs from the current standard, its input or result is corrected: `file` URLs are parsed in `file.rs`; hosts in
//! `host.rs`; `reference.rs` splits other references, so that slashes, `\\`, drive letters and `^` in them have the meaning that
//! the standard specifies; the last space of an opaque path before a query or fragment is encoded.

mod file;
mod host;
mod reference;

use std::borrow::Cow;

use url::{EncodingOverride, ParseError, Position, Url};

use self::file::{file_href, find_file};
use self::host::parse_host;
use self::reference::{DRIVE_MASK, SplitReference};
use super::fault::{Component, Fault, FaultKind};
use super::map::QueryCharset;

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
    let base = base.map_err(|_| Fault::of_reference(FaultKind::Base))?;
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
    let reference = SplitReference::new(&reference, base);
    let base = base.filter(|_| reference.is_relative).map(|base| SplitReference::new(base, None));
    let domain = reference.domain().or_else(|| base.as_ref()?.domain()).map(parse_host).transpose()?;
    let base = base.map(|base| Url::parse(&base.text())).transpose()?;
    let url = Url::options().base_url(base.as_ref()).encoding_override(encoding).parse(&reference.text())?;
    reference.check_authority()?;
    Ok(correct(&url, domain.as_deref()))
}

/// The first steps of the parser: removes controls and spaces at both ends, and all tabs and line ends.
fn strip(reference: &str) -> Cow<'_, str> {
    let inner = reference.trim_matches(|c: char| c <= ' ');
    match inner.contains(['\t', '\n', '\r']) {
        true => inner.replace(['\t', '\n', '\r'], "").into(),
        false => inner.into(),
    }
}

/// The `href` as the current standard requires, with the domain of a special URL.
fn correct(url: &Url, domain: Option<&str>) -> String {
    let host = domain.unwrap_or(&url[Position::BeforeHost..Position::AfterHost]);
    let (path, tail) = (url.path(), &url[Position::AfterPath..]);
    let path = match path.strip_suffix(' ') {
        _ if !url.cannot_be_a_base() && path.contains(DRIVE_MASK) => path.replace(DRIVE_MASK, "").into(),
        Some(path) if url.cannot_be_a_base() && !tail.is_empty() => format!("{path}%20").into(),
        _ => Cow::Borrowed(path),
    };
    [&url[..Position::BeforeHost], host, &url[Position::AfterHost..Position::BeforePath], &path, tail].concat()
}

/// Gives a closure the signature that is generic over the lifetime of the text; closures do not infer that.
fn encoder<F: Fn(&str) -> Cow<'_, [u8]>>(encode: F) -> F {
    encode
}

/// The bytes of a query in the document's charset. Characters that the charset cannot encode become escaped character
/// references, which the parser does not change.
fn encoded(text: &str, query: Option<QueryCharset>) -> Vec<u8> {
    match query.map(|query| query.charset.encode(text, query.unmappable)) {
        Some(Ok(encoded)) => encoded.runs.into_iter().flat_map(|(run, _)| run).collect(),
        _ => text.as_bytes().to_vec(),
    }
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
