//! Which attributes hold IRIs, by the HTML Standard's index of attributes, SVG and XLink, and by custom in other XML; and
//! how many each holds.

/// How an attribute's value holds references.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One.
    One,
    /// Some, with white space between.
    Spaced,
    /// Image candidates: references with descriptors, commas between.
    SourceSet,
    /// A refresh: seconds, then a reference.
    Refresh,
    /// Pairs of a namespace, which is a name, and a reference.
    SchemaPairs,
}

/// An attribute of HTML: its name, the elements that it means this on (all, where none is named), its shape.
type Html = (&'static str, &'static [&'static str], Shape);

const HTML: [Html; 29] = [
    ("href", &[], Shape::One),
    ("src", &[], Shape::One),
    ("srcset", &["img", "source"], Shape::SourceSet),
    ("imagesrcset", &["link"], Shape::SourceSet),
    ("action", &["form"], Shape::One),
    ("formaction", &["button", "input"], Shape::One),
    ("cite", &["blockquote", "del", "ins", "q"], Shape::One),
    ("data", &["object"], Shape::One),
    ("poster", &["video"], Shape::One),
    ("ping", &["a", "area"], Shape::Spaced),
    ("itemid", &[], Shape::One),
    ("itemtype", &[], Shape::Spaced),
    ("manifest", &["html"], Shape::One),
    // Obsolete, and in pages all the same.
    ("archive", &["object"], Shape::Spaced),
    ("background", &["body", "table", "tbody", "td", "tfoot", "th", "thead", "tr"], Shape::One),
    ("classid", &["object"], Shape::One),
    ("codebase", &["applet", "object"], Shape::One),
    ("dynsrc", &["img"], Shape::One),
    ("icon", &["menuitem"], Shape::One),
    ("longdesc", &["frame", "iframe", "img"], Shape::One),
    ("lowsrc", &["img"], Shape::One),
    ("pluginspage", &["embed"], Shape::One),
    ("pluginurl", &["embed"], Shape::One),
    ("profile", &["head"], Shape::Spaced),
    ("urn", &["a", "link"], Shape::One),
    ("usemap", &["img", "input", "object"], Shape::One),
    ("xlink:href", &[], Shape::One),
    // Of meta, where http-equiv says refresh: see `html`.
    ("content", &["meta"], Shape::Refresh),
    ("xml:base", &[], Shape::One),
];

/// Attributes without a namespace that hold IRIs by custom, on any element of XML: `xs:anyURI` as feeds, sitemaps, OPML,
/// XML Signature, XSLT, XInclude, XML Schema and WSDL name it.
const XML: [&str; 14] = [
    "href",
    "src",
    "uri",
    "URI",
    "url",
    "location",
    "schemaLocation",
    "resource",
    "action",
    "cite",
    "poster",
    "xmlUrl",
    "htmlUrl",
    "icon",
];

/// Namespaces and their attributes.
const QUALIFIED: [(&str, &str, &str, Shape); 6] = [
    ("http://www.w3.org/1999/xlink", "href", "xlink:href", Shape::One),
    ("http://www.w3.org/XML/1998/namespace", "base", "xml:base", Shape::One),
    ("http://www.w3.org/2001/XMLSchema-instance", "noNamespaceSchemaLocation", "noNamespaceSchemaLocation", Shape::One),
    ("http://www.w3.org/2001/XMLSchema-instance", "schemaLocation", "schemaLocation", Shape::SchemaPairs),
    ("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "about", "about", Shape::One),
    ("http://www.w3.org/1999/02/22-rdf-syntax-ns#", "resource", "resource", Shape::One),
];

/// Elements of this namespace are HTML's.
pub(super) const XHTML: &str = "http://www.w3.org/1999/xhtml";

/// What attribute `name` of HTML element `element` holds, both in lower case.
pub(super) fn html(element: &[u8], name: &[u8]) -> Option<(&'static str, Shape)> {
    let is_meant = |elements: &[&str]| elements.is_empty() || elements.iter().any(|other| other.as_bytes() == element);
    let found = HTML.iter().find(|(attribute, elements, _)| attribute.as_bytes() == name && is_meant(elements))?;
    Some((found.0, found.2))
}

/// What an attribute of any other XML element holds; `namespace` is the attribute's.
pub(super) fn xml(namespace: Option<&str>, name: &str) -> Option<(&'static str, Shape)> {
    match namespace {
        None => XML.iter().find(|attribute| **attribute == name).map(|attribute| (*attribute, Shape::One)),
        Some(namespace) => {
            let found = QUALIFIED.iter().find(|(space, local, ..)| *space == namespace && *local == name)?;
            Some((found.2, found.3))
        }
    }
}
