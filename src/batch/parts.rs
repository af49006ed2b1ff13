//! Columns of parts of the URI, named and typed as in Common Crawl's columnar index.
//!
//! The index contains the parts of URLs as they were fetched; these columns contain parts of the canonical URI, so a
//! default port is null. The host of a `dns:` URI is its path, as in the index.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, StringBuilder};

use crate::canon::Rows;
use crate::iri::Parts;
use crate::kernel::parse_bytes;
use crate::key::psl::{HostParts, SuffixList};

/// A part of a URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlPart {
    /// The scheme.
    Protocol,
    /// The host without a final dot.
    HostName,
    /// A label of the host, by its index from the end, from 0.
    LastPart(u8),
    /// The public suffix of the host, ICANN section.
    RegistrySuffix,
    /// The registry suffix and the label before it.
    RegisteredDomain,
    /// The public suffix of the host, both sections.
    PrivateSuffix,
    /// The private suffix and the label before it.
    PrivateDomain,
    /// The labels of the host in reverse order.
    NameReversed,
    /// The port.
    Port,
    /// The path.
    Path,
    /// The query.
    Query,
    /// The fragment.
    Fragment,
}

/// Computes the array of a part; null for rows without a URI or without the part.
pub(super) fn array(part: UrlPart, rows: &Rows, suffixes: &SuffixList) -> ArrayRef {
    if part == UrlPart::Port {
        return Arc::new((0..rows.len()).map(|row| port(rows.uri.get(row))).collect::<Int32Array>());
    }
    let mut array = StringBuilder::with_capacity(rows.len(), rows.len() * 16);
    let mut reversed = Vec::new();
    for row in 0..rows.len() {
        let uri = rows.uri.get(row);
        let text = (!uri.is_empty()).then(|| text(part, uri, suffixes, &mut reversed)).flatten();
        // A URI is ASCII.
        array.append_option(text.and_then(|text| std::str::from_utf8(text).ok()));
    }
    Arc::new(array.finish())
}

fn text<'a>(part: UrlPart, uri: &'a [u8], suffixes: &SuffixList, reversed: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let parts = Parts::split(uri);
    match part {
        UrlPart::Protocol => return parts.scheme(uri),
        UrlPart::Path => return Some(parts.path(uri)),
        UrlPart::Query => return parts.query(uri),
        UrlPart::Fragment => return parts.fragment(uri),
        _ => {}
    }
    let host = match parts.scheme(uri)? {
        b"dns" => parts.path(uri),
        _ => parts.host(uri)?,
    };
    let host = HostParts::by(host, suffixes);
    match part {
        UrlPart::HostName => Some(host.name),
        UrlPart::LastPart(place) => host.last_parts.get(usize::from(place)).copied().flatten(),
        UrlPart::RegistrySuffix => host.registry_suffix,
        UrlPart::RegisteredDomain => host.registered_domain,
        UrlPart::PrivateSuffix => host.private_suffix,
        UrlPart::PrivateDomain => host.private_domain,
        _ => {
            reversed.clear();
            host.write_reversed(reversed).then_some(reversed)
        }
    }
}

/// Returns the port, or `None` if it does not fit into 31 bits.
fn port(uri: &[u8]) -> Option<i32> {
    parse_bytes(Parts::split(uri).port(uri)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found() {
        let cases = [
            (UrlPart::Protocol, "http://a/", Some("http")),
            (UrlPart::HostName, "http://www.example.org./x", Some("www.example.org")),
            (UrlPart::HostName, "dns:www.example.org", Some("www.example.org")),
            (UrlPart::HostName, "mailto:a@b", None),
            (UrlPart::LastPart(0), "http://192.0.2.1/", None),
            (UrlPart::LastPart(2), "http://www.example.org/", Some("www")),
            (UrlPart::RegisteredDomain, "http://a.b.github.io/", Some("github.io")),
            (UrlPart::PrivateDomain, "http://a.b.github.io/", Some("b.github.io")),
            (UrlPart::NameReversed, "http://www.example.org/", Some("org.example.www")),
            (UrlPart::Path, "http://a/", Some("/")),
            (UrlPart::Query, "http://a/?", Some("")),
            (UrlPart::Query, "http://a/", None),
            (UrlPart::Fragment, "http://a/#x", Some("x")),
        ];
        for (part, uri, want) in cases {
            let mut reversed = Vec::new();
            let got = text(part, uri.as_bytes(), &SuffixList::EMBEDDED, &mut reversed);
            assert_eq!(got, want.map(str::as_bytes), "{part:?} {uri}");
        }
        assert_eq!([port(b"http://a:81/"), port(b"http://a/"), port(b"x://a:99999999999/")], [Some(81), None, None]);
    }
}
