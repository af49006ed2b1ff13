//! Which attributes hold IRIs, and how their values are split into references.
//!
//! The lists follow the index of attributes of the HTML Standard, SVG and XLink, and the customs of other XML languages.

use std::ops::Range;

use crate::kernel::{find_byte_from, trimmed_ascii_range};
use crate::record::refresh::refresh_target;

/// How the value of an attribute holds references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReferenceSyntax {
    /// One reference.
    One,
    /// References separated by white space.
    Spaced,
    /// References separated by commas.
    Commas,
    /// Image candidates: references with descriptors, separated by commas.
    SourceSet,
    /// A refresh: seconds, then a reference.
    Refresh,
    /// Pairs of a namespace, which is only a name, and a reference.
    SchemaPairs,
}

/// An attribute of HTML: its name, the elements on which it has this meaning (an empty list for all), its syntax.
type HtmlAttribute = (&'static str, &'static [&'static str], ReferenceSyntax);

const HTML: [HtmlAttribute; 33] = [
    ("href", &[], ReferenceSyntax::One),
    ("src", &[], ReferenceSyntax::One),
    ("srcset", &["img", "source"], ReferenceSyntax::SourceSet),
    ("imagesrcset", &["link"], ReferenceSyntax::SourceSet),
    ("action", &["form"], ReferenceSyntax::One),
    ("formaction", &["button", "input"], ReferenceSyntax::One),
    ("cite", &["blockquote", "del", "ins", "q"], ReferenceSyntax::One),
    ("data", &["object"], ReferenceSyntax::One),
    ("poster", &["video"], ReferenceSyntax::One),
    ("ping", &["a", "area"], ReferenceSyntax::Spaced),
    ("attributionsrc", &["a", "area", "img", "script"], ReferenceSyntax::Spaced),
    ("itemid", &[], ReferenceSyntax::One),
    ("itemtype", &[], ReferenceSyntax::Spaced),
    ("manifest", &["html"], ReferenceSyntax::One),
    // Obsolete, but used in pages.
    ("archive", &["applet"], ReferenceSyntax::Commas),
    ("archive", &["object"], ReferenceSyntax::Spaced),
    ("background", &["body", "table", "tbody", "td", "tfoot", "th", "thead", "tr"], ReferenceSyntax::One),
    ("classid", &["object"], ReferenceSyntax::One),
    ("codebase", &["applet", "object"], ReferenceSyntax::One),
    ("dynsrc", &["img"], ReferenceSyntax::One),
    ("icon", &["menuitem"], ReferenceSyntax::One),
    ("longdesc", &["frame", "iframe", "img"], ReferenceSyntax::One),
    ("lowsrc", &["img"], ReferenceSyntax::One),
    ("pluginspage", &["embed"], ReferenceSyntax::One),
    ("pluginurl", &["embed"], ReferenceSyntax::One),
    ("profile", &["head"], ReferenceSyntax::Spaced),
    ("urn", &["a", "link"], ReferenceSyntax::One),
    ("usemap", &["img", "input", "object"], ReferenceSyntax::One),
    ("xlink:href", &[], ReferenceSyntax::One),
    // MathML in HTML; the tokenizer gives names in lower case.
    ("altimg", &["math"], ReferenceSyntax::One),
    ("definitionurl", &[], ReferenceSyntax::One),
    // Only of a meta element with http-equiv=refresh: see `html`.
    ("content", &["meta"], ReferenceSyntax::Refresh),
    ("xml:base", &[], ReferenceSyntax::One),
];

/// Attributes without a namespace that hold IRIs by custom, on any element of XML: the `xs:anyURI` attributes of feeds,
/// sitemaps, OPML, XML Signature, XSLT, XInclude, XML Schema and WSDL.
#[rustfmt::skip]
const XML: [&str; 14] = [
    "href", "src", "uri", "URI", "url", "location", "schemaLocation", "resource", "action", "cite", "poster", "xmlUrl",
    "htmlUrl", "icon",
];

/// Attributes with a namespace: namespace, local name, reported name, syntax.
const QUALIFIED: [(&str, &str, &str, ReferenceSyntax); 6] = [
    ("http://www.w3.org/1999/xlink", "href", "xlink:href", ReferenceSyntax::One),
    ("http://www.w3.org/XML/1998/namespace", "base", "xml:base", ReferenceSyntax::One),
    (
        "http://www.w3.org/2001/XMLSchema-instance",
        "noNamespaceSchemaLocation",
        "noNamespaceSchemaLocation",
        ReferenceSyntax::One,
    ),
    ("http://www.w3.org/2001/XMLSchema-instance", "schemaLocation", "schemaLocation", ReferenceSyntax::SchemaPairs),
    ("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "about", "about", ReferenceSyntax::One),
    ("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "resource", "resource", ReferenceSyntax::One),
];

/// The namespace of HTML elements.
pub(super) const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// The reported name and the syntax of attribute `name` of the HTML element `element`, both in lower case; `None` if it
/// holds no references.
pub(super) fn html(element: &[u8], name: &[u8]) -> Option<(&'static str, ReferenceSyntax)> {
    let applies = |elements: &[&str]| elements.is_empty() || elements.iter().any(|other| other.as_bytes() == element);
    let found = HTML.iter().find(|(attribute, elements, _)| attribute.as_bytes() == name && applies(elements))?;
    Some((found.0, found.2))
}

/// The reported name and the syntax of an attribute of another XML element; `namespace` is that of the attribute.
pub(super) fn xml(namespace: Option<&str>, name: &str) -> Option<(&'static str, ReferenceSyntax)> {
    match namespace {
        None => XML.iter().find(|attribute| **attribute == name).map(|attribute| (*attribute, ReferenceSyntax::One)),
        Some(namespace) => {
            let found = QUALIFIED.iter().find(|(space, local, ..)| *space == namespace && *local == name)?;
            Some((found.2, found.3))
        }
    }
}

/// Calls `handle` with the ranges of the references in a value, without white space around them (HTML Standard, "parse a
/// srcset attribute" and "shared declarative refresh steps"), until it returns false.
pub(super) fn for_each_reference(value: &[u8], syntax: ReferenceSyntax, handle: &mut dyn FnMut(Range<usize>) -> bool) {
    match syntax {
        ReferenceSyntax::One => {
            handle(trimmed_ascii_range(value, 0..value.len()));
        }
        ReferenceSyntax::Spaced => spaced(value, handle),
        ReferenceSyntax::Commas => commas(value, handle),
        ReferenceSyntax::SchemaPairs => {
            let mut is_namespace = false;
            spaced(value, &mut |range| {
                is_namespace = !is_namespace;
                is_namespace || handle(range)
            });
        }
        ReferenceSyntax::SourceSet => source_set(value, handle),
        ReferenceSyntax::Refresh => {
            refresh_target(value).map(handle);
        }
    }
}

fn spaced(value: &[u8], handle: &mut dyn FnMut(Range<usize>) -> bool) {
    let mut at = 0;
    loop {
        let start = find_byte_from(value, at, |byte| !byte.is_ascii_whitespace());
        at = find_byte_from(value, start, |byte| byte.is_ascii_whitespace());
        if start == value.len() || !handle(start..at) {
            return;
        }
    }
}

fn commas(value: &[u8], handle: &mut dyn FnMut(Range<usize>) -> bool) {
    let mut start = 0;
    while start < value.len() {
        let end = find_byte_from(value, start, |byte| byte == b',');
        let range = trimmed_ascii_range(value, start..end);
        if !range.is_empty() && !handle(range) {
            return;
        }
        start = end + 1;
    }
}

/// Candidates: a reference up to white space, without commas at its end; if there were no commas, descriptors follow up to
/// a comma outside parentheses.
fn source_set(value: &[u8], handle: &mut dyn FnMut(Range<usize>) -> bool) {
    let mut at = 0;
    loop {
        let start = find_byte_from(value, at, |byte| !byte.is_ascii_whitespace() && byte != b',');
        if start == value.len() {
            return;
        }
        at = find_byte_from(value, start, |byte| byte.is_ascii_whitespace());
        let end = value[..at].iter().rposition(|byte| *byte != b',').map_or(start, |last| last + 1);
        if !handle(start..end.max(start)) {
            return;
        }
        if end == at {
            at = descriptors_end(value, at);
        }
    }
}

fn descriptors_end(value: &[u8], from: usize) -> usize {
    let mut is_inside = false;
    for (at, byte) in value.iter().enumerate().skip(from) {
        match byte {
            b'(' => is_inside = true,
            b')' => is_inside = false,
            b',' if !is_inside => return at + 1,
            _ => {}
        }
    }
    value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(value: &str, syntax: ReferenceSyntax) -> Vec<&str> {
        let mut found = Vec::new();
        for_each_reference(value.as_bytes(), syntax, &mut |range| {
            found.push(&value[range]);
            true
        });
        found
    }

    #[test]
    fn one_or_several() {
        assert_eq!(found(" \n a b \t", ReferenceSyntax::One), ["a b"]);
        assert_eq!(found("  ", ReferenceSyntax::One), [""]);
        assert_eq!(found(" a  b ", ReferenceSyntax::Spaced), ["a", "b"]);
        assert_eq!(found(", a b ,,c,", ReferenceSyntax::Commas), ["a b", "c"]);
        assert_eq!(found("a", ReferenceSyntax::Commas), ["a"]);
        assert_eq!(found("urn:x a.xsd urn:y b.xsd urn:z", ReferenceSyntax::SchemaPairs), ["a.xsd", "b.xsd"]);
    }

    #[test]
    fn source_sets() {
        let cases: [(&str, &[&str]); 8] = [
            ("a.png 1x, b.png 2x", &["a.png", "b.png"]),
            ("a.png,b.png", &["a.png,b.png"]),
            ("a.png, b.png", &["a.png", "b.png"]),
            ("data:image/png;base64,AA== 100w,\n b?c,d 1.5x", &["data:image/png;base64,AA==", "b?c,d"]),
            ("a (x, y) 1x, b", &["a", "b"]),
            (" ,, a ,", &["a"]),
            ("a,,", &["a"]),
            (" , ", &[]),
        ];
        for (value, expected) in cases {
            assert_eq!(found(value, ReferenceSyntax::SourceSet), expected, "{value}");
        }
    }
}
