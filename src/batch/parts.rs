//! Columns of parts of the URI, named and typed as in Common Crawl's columnar index.
//!
//! The index contains the parts of URLs as they were fetched; these columns contain parts of the canonical URI, so a
//! default port is null. The host of a `dns:` URI is its path, as in the index. The columns of all parts are computed in one pass.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Builder, StringBuilder};

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

impl UrlPart {
    /// The part is a suffix of the host that the Public Suffix List determines, or such a suffix and a label.
    fn needs_suffixes(self) -> bool {
        use UrlPart::*;
        matches!(self, RegistrySuffix | RegisteredDomain | PrivateSuffix | PrivateDomain)
    }
}

/// Computes the arrays of parts, one per part; null for rows without a URI or without the part.
pub(super) fn arrays(wanted: &[UrlPart], rows: &Rows, suffixes: &SuffixList) -> Vec<ArrayRef> {
    let mut columns: Vec<_> = wanted.iter().map(|part| PartColumn::new(*part, rows.len())).collect();
    let list = wanted.iter().any(|part| part.needs_suffixes()).then_some(suffixes);
    let mut host = Host::default();
    for row in 0..rows.len() {
        let uri = rows.uri.get(row);
        let parts = Parts::split(uri);
        host.set(host_of(uri, &parts), list);
        columns.iter_mut().for_each(|column| column.append(uri, &parts, &host));
    }
    columns.into_iter().map(PartColumn::finish).collect()
}

/// Returns the host of a URI; that of a `dns:` URI is its path.
fn host_of<'a>(uri: &'a [u8], parts: &Parts) -> Option<&'a [u8]> {
    match parts.scheme(uri)? {
        b"dns" => Some(parts.path(uri)),
        _ => parts.host(uri),
    }
}

/// The parts of the host of a row. They are computed once for adjacent rows with one host.
#[derive(Default)]
struct Host<'a> {
    text: Option<&'a [u8]>,
    parts: HostParts<'a>,
    /// The labels in reverse order; empty if the host is empty or an address.
    reversed: Vec<u8>,
}

impl<'a> Host<'a> {
    fn set(&mut self, text: Option<&'a [u8]>, list: Option<&SuffixList>) {
        if self.text == text {
            return;
        }
        self.text = text;
        let text = text.unwrap_or_default();
        self.parts = list.map_or_else(|| HostParts::without_suffixes(text), |list| HostParts::by(text, list));
        self.reversed.clear();
        self.parts.write_reversed(&mut self.reversed);
    }

    /// Returns a part of the host; `None` if it is a part of the URI that is not in the host.
    fn part(&self, part: UrlPart) -> Option<&[u8]> {
        self.text?;
        match part {
            UrlPart::HostName => Some(self.parts.name),
            UrlPart::LastPart(place) => self.parts.last_parts.get(usize::from(place)).copied().flatten(),
            UrlPart::RegistrySuffix => self.parts.registry_suffix,
            UrlPart::RegisteredDomain => self.parts.registered_domain,
            UrlPart::PrivateSuffix => self.parts.private_suffix,
            UrlPart::PrivateDomain => self.parts.private_domain,
            UrlPart::NameReversed => Some(&self.reversed[..]).filter(|reversed| !reversed.is_empty()),
            _ => None,
        }
    }
}

/// The array of a part that is being built.
enum PartColumn {
    Port(Int32Builder),
    Text(UrlPart, StringBuilder),
}

impl PartColumn {
    fn new(part: UrlPart, row_count: usize) -> PartColumn {
        match part {
            UrlPart::Port => PartColumn::Port(Int32Builder::with_capacity(row_count)),
            part => PartColumn::Text(part, StringBuilder::with_capacity(row_count, row_count * 16)),
        }
    }

    /// Appends the part of a row with this URI, which is empty if the row has none.
    fn append(&mut self, uri: &[u8], parts: &Parts, host: &Host<'_>) {
        match self {
            // A port that does not fit into 31 bits is null.
            PartColumn::Port(array) => array.append_option(parts.port(uri).and_then(parse_bytes)),
            PartColumn::Text(part, array) => {
                let text = match part {
                    UrlPart::Protocol => parts.scheme(uri),
                    UrlPart::Path => Some(parts.path(uri)).filter(|_| !uri.is_empty()),
                    UrlPart::Query => parts.query(uri),
                    UrlPart::Fragment => parts.fragment(uri),
                    part => host.part(*part),
                };
                // A URI is ASCII.
                array.append_option(text.and_then(|text| std::str::from_utf8(text).ok()));
            }
        }
    }

    fn finish(self) -> ArrayRef {
        match self {
            PartColumn::Port(mut array) => Arc::new(array.finish()),
            PartColumn::Text(_, mut array) => Arc::new(array.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Int32Type;

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
        let uris: Vec<&[u8]> = cases.iter().map(|(_, uri, _)| uri.as_bytes()).collect();
        let rows = rows_of(&uris);
        for (row, (part, uri, want)) in cases.iter().enumerate() {
            let array = arrays(&[*part], &rows, &SuffixList::EMBEDDED).remove(0);
            let array = array.as_string::<i32>();
            assert_eq!(array.is_valid(row).then(|| array.value(row)), *want, "{part:?} {uri}");
        }
    }

    #[test]
    fn parts_of_all_columns_are_those_of_each() {
        use UrlPart::*;
        let wanted = [NameReversed, PrivateDomain, Port, HostName, LastPart(1), Path];
        // Adjacent rows with one host, with another host, and without a host or a URI.
        let uris = ["http://a.b.io:81/", "http://a.b.io/x", "http://c.io/", "mailto:x", "", "http://c.io/"];
        let rows = rows_of(&uris.map(str::as_bytes));
        let together = arrays(&wanted, &rows, &SuffixList::EMBEDDED);
        for (part, array) in wanted.iter().zip(&together) {
            assert_eq!(array, &arrays(&[*part], &rows, &SuffixList::EMBEDDED)[0], "{part:?}");
        }
        let reversed = together[0].as_string::<i32>().iter().collect::<Vec<_>>();
        assert_eq!(reversed, [Some("io.b.a"), Some("io.b.a"), Some("io.c"), None, None, Some("io.c")]);
        let port = |uri: &str| arrays(&[Port], &rows_of(&[uri.as_bytes()]), &SuffixList::EMBEDDED).remove(0);
        let ports = ["http://a:81/", "http://a/", "x://a:99999999999/"].map(port);
        let ports = ports.map(|array| array.as_primitive::<Int32Type>().iter().next().unwrap());
        assert_eq!(ports, [Some(81), None, None]);
    }

    fn rows_of(uris: &[&[u8]]) -> Rows {
        let mut rows = Rows::default();
        for uri in uris {
            rows.uri.values.extend_from_slice(uri);
            rows.uri.end();
        }
        rows
    }
}
