//! Finds the attributes of XML that hold references, each with the base that `xml:base` sets for it (XML Base, nested). In
//! elements of the XHTML namespace the same attributes count as in HTML.
//!
//! A document that is not well-formed is read up to the error. No DTD is read and no entity of a DTD is expanded: an
//! attribute that refers to one has a defect.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event, attributes::Attribute as XmlAttribute};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

use super::attributes::{self, ReferenceSyntax, XHTML};
use super::document::{DefectKind, DocumentText};
use super::links::{LinkAttribute, LinkAttributes, ParserStop, element_name};

/// The attributes of a document that was found at `base`.
pub(super) fn read(text: &DocumentText, base: &[u8]) -> LinkAttributes {
    // The text of an XML document is always UTF-8: see `DocumentText::new`.
    let text = std::str::from_utf8(text.text()).unwrap_or_default();
    let found = LinkAttributes { bases: vec![base.to_vec()], bases_len: base.len(), ..LinkAttributes::default() };
    let mut collector = XmlCollector { text, reader: NsReader::from_str(text), found };
    let stop = collector.read_elements();
    collector.found.stop = collector.found.stop.or(stop);
    collector.found
}

/// Collects the attributes of the elements.
struct XmlCollector<'a> {
    text: &'a str,
    reader: NsReader<&'a [u8]>,
    found: LinkAttributes,
}

impl XmlCollector<'_> {
    /// Reads all elements; returns why it stopped before the end.
    fn read_elements(&mut self) -> Option<ParserStop> {
        let end = self.text.len();
        let mut scopes = vec![0];
        while self.found.stop.is_none() {
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let position = usize::try_from(self.reader.error_position()).unwrap_or(end).min(end);
                    return Some(ParserStop { kind: DefectKind::IllFormed, position, detail: error.to_string() });
                }
            };
            let base = scopes.last().copied().unwrap_or_default();
            match event {
                Event::Start(tag) => scopes.push(self.push_attributes(&tag, base)),
                Event::Empty(tag) => {
                    self.push_attributes(&tag, base);
                }
                Event::End(_) => {
                    scopes.pop();
                }
                Event::Eof if scopes.len() > 1 => {
                    let detail = format!("the document ends and {} elements are still open", scopes.len() - 1);
                    return Some(ParserStop { kind: DefectKind::Truncated, position: end, detail });
                }
                Event::Eof => return None,
                _ => {}
            }
        }
        None
    }

    /// Appends the attributes of a tag; `outer` is the base of the element around it. Returns the base of its content.
    fn push_attributes(&mut self, tag: &BytesStart, outer: usize) -> usize {
        let resolver = self.reader.resolver();
        let (namespace, local) = resolver.resolve_element(tag.name());
        let is_html = matches!(namespace, ResolveResult::Bound(Namespace(XHTML)));
        let element = element_name(local.as_ref().as_bytes());
        let found = &mut self.found;
        let (mut inner, first) = (outer, found.attributes.len());
        let is_refresh = is_html && is_refresh(tag);
        for attribute in tag.attributes().with_checks(false).flatten() {
            let (namespace, local) = resolver.resolve_attribute(attribute.key);
            let known = match namespace {
                ResolveResult::Unbound if is_html => attributes::html(element.as_bytes(), local.as_ref().as_bytes()),
                ResolveResult::Unbound => attributes::xml(None, local.as_ref()),
                ResolveResult::Bound(Namespace(namespace)) => attributes::xml(Some(namespace), local.as_ref()),
                ResolveResult::Unknown(_) => None,
            };
            let known = known.filter(|(_, syntax)| *syntax != ReferenceSyntax::Refresh || is_refresh);
            let Some((name, syntax)) = known else { continue };
            let (value, span, bad_reference) = value(self.text, &attribute);
            if name == "xml:base" && bad_reference.is_none() {
                inner = found.push_base(outer, value.trim_ascii());
            }
            if is_html && element == "base" && name == "href" && found.html_base.is_none() {
                found.html_base = Some(found.attributes.len());
            }
            let element = element.clone();
            if !found.push(LinkAttribute { element, name, syntax, value, span, bad_reference, base: outer }) {
                break;
            }
        }
        // The xml:base of an element applies to its own references; the xml:base itself is relative to the element around it.
        let own = found.attributes[first..].iter_mut().filter(|attribute| attribute.name != "xml:base");
        own.for_each(|attribute| attribute.base = inner);
        inner
    }
}

fn is_refresh(tag: &BytesStart) -> bool {
    // The check for duplicates takes quadratic time.
    let mut attributes = tag.attributes();
    let equivalent = attributes.with_checks(false).flatten().find(|attribute| attribute.key.as_ref() == "http-equiv");
    equivalent.is_some_and(|attribute| attribute.value.trim_ascii().eq_ignore_ascii_case("refresh"))
}

/// The value of an attribute with its references resolved, its position in the text, and the position of a reference to
/// nothing.
fn value(text: &str, attribute: &XmlAttribute) -> (Vec<u8>, std::ops::Range<usize>, Option<usize>) {
    let start = position_of(text, &attribute.value);
    let span = start..start + attribute.value.len();
    match attribute.normalized_value_with(XmlVersion::Implicit1_0, 1, resolve_predefined_entity) {
        Ok(value) => (value.into_owned().into_bytes(), span, None),
        Err(_) => (Vec::new(), span, Some(start)),
    }
}

/// The position in `text` of a part of it.
fn position_of(text: &str, part: &str) -> usize {
    let distance = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
    distance.filter(|at| at + part.len() <= text.len()).unwrap_or_default()
}
