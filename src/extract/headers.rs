//! Links of HTTP header fields: `Link` (RFC 8288), `Location`, `Refresh`.

use super::attributes::{ReferenceSyntax, for_each_reference};
use super::document::Link;
use crate::record::link_header::LinkValues;

/// A header field that holds links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderField {
    Link,
    Location,
    Refresh,
}

/// The element of links of header fields.
pub(crate) const HTTP_ELEMENT: &str = "http";

/// Calls `handle` with each link of a field and, if the link is one from elsewhere than the document, the reference to
/// there, until it returns false. The base of all is the address of the document.
pub(crate) fn for_each_header_link(
    field: HeaderField,
    value: &[u8],
    handle: &mut dyn FnMut(Link, Option<Vec<u8>>) -> bool,
) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let link = |url: &[u8], attribute: &'static str, rel: String| Link {
        url: url.to_vec(),
        base: 0,
        element: HTTP_ELEMENT.to_string(),
        attribute,
        rel,
        text: String::new(),
        offset: 0,
        defect: None,
    };
    match field {
        HeaderField::Location => {
            handle(link(value.trim_ascii(), "location", "redirect".to_string()), None);
        }
        HeaderField::Refresh => for_each_reference(value, ReferenceSyntax::Refresh, &mut |range| {
            handle(link(&value[range], "refresh", "refresh".to_string()), None)
        }),
        HeaderField::Link => {
            for found in LinkValues::from(value, 0) {
                let link = Link { text: text(&found.title), ..link(found.target, "link", text(&found.rel)) };
                if !handle(link, found.anchor) {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_header_fields() {
        let links = |field, value: &str| {
            let mut found = Vec::new();
            for_each_header_link(field, value.as_bytes(), &mut |link, anchor| {
                let [url, anchor] =
                    [link.url, anchor.unwrap_or_default()].map(|bytes| String::from_utf8(bytes).unwrap());
                found.push(format!("{}@{} {} {} {url} {anchor}", link.element, link.attribute, link.rel, link.text));
                true
            });
            found
        };
        assert_eq!(links(HeaderField::Location, " /x "), ["http@location redirect  /x "]);
        assert_eq!(links(HeaderField::Refresh, "5; url=y"), ["http@refresh refresh  y "]);
        assert_eq!(links(HeaderField::Refresh, "5"), [""; 0]);
        let value = "<a>; rel=next; title=T, <b>; anchor=\"/c\"; rev=up";
        assert_eq!(links(HeaderField::Link, value), ["http@link next T a ", "http@link rev:up  b /c"]);
    }
}
