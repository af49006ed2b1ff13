//! The URL Standard's parser, by the url crate: what a browser makes of a reference, to be shown beside what the RFC
//! says. In: a reference, its base, its document's charset. Out: `href`, or the fault nearest to why it failed, without
//! an offset: the standard names none.
//!
//! Where the crate is behind the standard, its answer is corrected: file URLs are read in `file.rs`, `^` in a path is
//! encoded, so is the last space of an opaque path before a query or fragment, and an A-label within an A-label is none.

mod file;

use std::borrow::Cow;

use url::{EncodingOverride, ParseError, Position, Url};

use self::file::{file_href, find_file};
use super::host::has_nested_a_label;
use super::{Component, Fault, FaultKind, QueryCharset, weber_split};

/// The components of an `href`; `None` where it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WhatwgParts {
    /// Without its `:`.
    pub scheme: String,
    /// User name and password as written, without the `@`.
    pub userinfo: Option<String>,
    /// The host, in its ASCII form if the scheme is special.
    pub host: Option<String>,
    /// The port, unless it is the scheme's default.
    pub port: Option<String>,
    /// The path, opaque or not.
    pub path: String,
    /// Without its `?`.
    pub query: Option<String>,
    /// Without its `#`.
    pub fragment: Option<String>,
}

/// The `href` of `reference`, resolved against `base` if there is one.
///
/// # Errors
/// What the standard's parser returns failure for, the base included.
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

/// The components of the `href` of `reference`.
///
/// # Errors
/// As [`whatwg_href`].
pub fn whatwg_parts(reference: &str, base: Option<&str>, query: Option<QueryCharset>) -> Result<WhatwgParts, Fault> {
    let href = whatwg_href(reference, base, query)?;
    // An `href` has no delimiter out of place, so that any split of it is the standard's.
    let split = weber_split(&href);
    let own = |part: Option<&str>| part.map(str::to_string);
    Ok(WhatwgParts {
        scheme: split.scheme.unwrap_or_default().to_string(),
        userinfo: own(split.userinfo),
        host: own(split.host),
        port: own(split.port),
        path: split.path.to_string(),
        query: own(split.query),
        fragment: own(split.fragment),
    })
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
    let base = base.map(Url::parse).transpose()?;
    let url = Url::options().base_url(base.as_ref()).encoding_override(encoding).parse(&reference)?;
    // Hosts of other schemes are opaque.
    let is_special = matches!(url.scheme(), "http" | "https" | "ws" | "wss" | "ftp" | "file");
    match is_special && url.domain().is_some_and(has_nested_a_label) {
        true => Err(ParseError::IdnaError),
        false => Ok(correct(&url)),
    }
}

/// The parser's first steps: controls and spaces off both ends, tabs and line ends out of everything.
fn strip(reference: &str) -> Cow<'_, str> {
    let inner = reference.trim_matches(|c: char| c <= ' ');
    match inner.contains(['\t', '\n', '\r']) {
        true => inner.replace(['\t', '\n', '\r'], "").into(),
        false => inner.into(),
    }
}

/// The `href` as the standard has it today.
fn correct(url: &Url) -> String {
    let (path, tail) = (url.path(), &url[Position::AfterPath..]);
    let path = match path.strip_suffix(' ') {
        _ if !url.cannot_be_a_base() => path.replace('^', "%5E"),
        Some(path) if !tail.is_empty() => format!("{path}%20"),
        _ => path.to_string(),
    };
    [&url[..Position::BeforePath], &path, tail].concat()
}

/// Says of a closure that it encodes texts of any lifetime, which it would not say of itself.
fn encoder<F: Fn(&str) -> Cow<'_, [u8]>>(encode: F) -> F {
    encode
}

/// A query's bytes; what the charset lacks as escaped character references, which the parser leaves as they are.
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

/// The fault that a parse error comes nearest to.
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
    fn queries_are_written_in_the_documents_charset() {
        let charset = Charset::named("shift_jis").unwrap();
        let query = QueryCharset { charset, unmappable: UnmappableMode::CharacterReference };
        assert_eq!(whatwg_href("http://h/é?é&ア", None, Some(query)).unwrap(), "http://h/%C3%A9?%26%23233%3B&%83A");
    }

    #[test]
    fn failures_are_faults() {
        let cases = [
            ("/a", FaultKind::Relative),
            ("http://h:8x", FaultKind::Port),
            ("http://[::", FaultKind::IpLiteral),
            ("http://xn--xn---epa/", FaultKind::Character),
        ];
        for (text, kind) in cases {
            assert_eq!(whatwg_href(text, None, None).unwrap_err().kind, kind, "{text}");
        }
        assert_eq!(whatwg_href("a", Some("b"), None).unwrap_err().kind, FaultKind::Base);
    }
}
