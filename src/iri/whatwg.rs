//! The URL Standard's parser, by the url crate: what a browser makes of a reference, to be shown beside what the RFC
//! says. In: a reference, its base, its document's charset. Out: `href`, or the fault nearest to why it failed, without
//! an offset: the standard names none.

use std::borrow::Cow;

use url::{EncodingOverride, ParseError, Position, Url};

use super::{Component, Fault, FaultKind, QueryCharset};

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
    Ok(parse(reference, base, query)?.into())
}

/// The components of the `href` of `reference`.
///
/// # Errors
/// As [`whatwg_href`].
pub fn whatwg_parts(reference: &str, base: Option<&str>) -> Result<WhatwgParts, Fault> {
    let url = parse(reference, base, None)?;
    let userinfo = &url[Position::BeforeUsername..Position::AfterPassword];
    Ok(WhatwgParts {
        scheme: url.scheme().to_string(),
        userinfo: Some(userinfo).filter(|it| !it.is_empty()).map(str::to_string),
        host: url.host_str().map(str::to_string),
        port: url.port().map(|port| port.to_string()),
        path: url.path().to_string(),
        query: url.query().map(str::to_string),
        fragment: url.fragment().map(str::to_string),
    })
}

fn parse(reference: &str, base: Option<&str>, query: Option<QueryCharset>) -> Result<Url, Fault> {
    let base = base.map(Url::parse).transpose().map_err(|_| Fault::new(FaultKind::Base, Component::Reference, 0))?;
    let encode = encoder(|text| encoded(text, query).into());
    let encoding: EncodingOverride = match query {
        Some(_) => Some(&encode),
        None => None,
    };
    Url::options().base_url(base.as_ref()).encoding_override(encoding).parse(reference).map_err(fault)
}

/// Says of a closure that it encodes texts of any lifetime, which it would not say of itself.
fn encoder<F: Fn(&str) -> Cow<'_, [u8]>>(encode: F) -> F {
    encode
}

/// A query's bytes; what the charset lacks as escaped character references, which the parser leaves as they are.
fn encoded(text: &str, query: Option<QueryCharset>) -> Vec<u8> {
    let runs = query.and_then(|query| query.charset.encode(text, query.lacking).ok()).map(|encoded| encoded.runs);
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
    use crate::encoding::{Charset, Lacking};

    #[test]
    fn queries_are_written_in_the_documents_charset() {
        let charset = Charset::named("shift_jis").unwrap();
        let query = QueryCharset { charset, lacking: Lacking::Reference };
        assert_eq!(whatwg_href("http://h/é?é&ア", None, Some(query)).unwrap(), "http://h/%C3%A9?%26%23233%3B&%83A");
    }

    #[test]
    fn failures_are_faults() {
        let cases =
            [("/a", FaultKind::Relative), ("http://h:8x", FaultKind::Port), ("http://[::", FaultKind::IpLiteral)];
        for (text, kind) in cases {
            assert_eq!(whatwg_href(text, None, None).unwrap_err().kind, kind, "{text}");
        }
        assert_eq!(whatwg_href("a", Some("b"), None).unwrap_err().kind, FaultKind::Base);
    }
}
