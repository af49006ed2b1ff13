//! XML in, the attributes that hold references out, with the base that `xml:base` sets for each (XML Base, nested). Of
//! elements of the XHTML namespace the same attributes count as in HTML.
//!
//! A document that is not well-formed is read up to there. Entities of a DTD are not expanded, and no DTD is read: an
//! attribute that refers to one is a defect.

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event, attributes::Attribute as XmlAttribute};
use quick_xml::name::{Namespace, ResolveResult};
use quick_xml::reader::NsReader;

use super::attributes::{self, Shape, XHTML};
use super::links::{Attribute, Found, join};
use super::{Body, DefectKind};

/// The attributes of a document that was found at `base`.
pub(super) fn read(body: &Body, base: &[u8]) -> Found {
    let mut found = Found { bases: vec![base.to_vec()], ..Found::default() };
    // The body of an XML document is text: see `Body::new`.
    let text = std::str::from_utf8(body.text()).unwrap_or_default();
    let mut reader = NsReader::from_str(text);
    let mut scopes = vec![0];
    loop {
        let event = match reader.read_event() {
            Ok(event) => event,
            Err(error) => {
                let place = usize::try_from(reader.error_position()).unwrap_or(text.len());
                found.stopped = Some((DefectKind::IllFormed, place.min(text.len()), error.to_string()));
                return found;
            }
        };
        let base = scopes.last().copied().unwrap_or_default();
        match event {
            Event::Start(tag) => scopes.push(take(text, &reader, &tag, base, &mut found)),
            Event::Empty(tag) => {
                take(text, &reader, &tag, base, &mut found);
            }
            Event::End(_) => {
                scopes.pop();
            }
            Event::Eof if scopes.len() > 1 => {
                let detail = format!("the document ends, and {} elements are open", scopes.len() - 1);
                found.stopped = Some((DefectKind::Truncated, text.len(), detail));
                return found;
            }
            Event::Eof => return found,
            _ => {}
        }
    }
}

/// The attributes of a tag; gives the base of what it holds.
fn take(text: &str, reader: &NsReader<&[u8]>, tag: &BytesStart, outer: usize, found: &mut Found) -> usize {
    let (namespace, local) = reader.resolver().resolve_element(tag.name());
    let is_html = matches!(namespace, ResolveResult::Bound(Namespace(XHTML)));
    let element = local.as_ref().to_string();
    let mut inner = outer;
    let first = found.attributes.len();
    let is_refresh = is_html && is_refresh(tag);
    for attribute in tag.attributes().with_checks(false).flatten() {
        let (namespace, local) = reader.resolver().resolve_attribute(attribute.key);
        let known = match namespace {
            ResolveResult::Unbound if is_html => attributes::html(element.as_bytes(), local.as_ref().as_bytes()),
            ResolveResult::Unbound => attributes::xml(None, local.as_ref()),
            ResolveResult::Bound(Namespace(namespace)) => attributes::xml(Some(namespace), local.as_ref()),
            ResolveResult::Unknown(_) => None,
        };
        let Some((name, shape)) = known.filter(|(_, shape)| *shape != Shape::Refresh || is_refresh) else { continue };
        let (value, span, bad_reference) = value(text, &attribute);
        if name == "xml:base" && bad_reference.is_none() {
            found.bases.push(join(&found.bases[outer], value.trim_ascii()));
            inner = found.bases.len() - 1;
        }
        if is_html && element == "base" && name == "href" && found.html_base.is_none() {
            found.html_base = Some(found.attributes.len());
        }
        found.attributes.push(Attribute {
            element: element.clone(),
            name,
            shape,
            value,
            span,
            bad_reference,
            base: outer,
        });
    }
    // An element's own references stand under its own xml:base; that one stands under what is around it.
    found.attributes[first..].iter_mut().filter(|other| other.name != "xml:base").for_each(|other| other.base = inner);
    inner
}

fn is_refresh(tag: &BytesStart) -> bool {
    let equivalent = tag.try_get_attribute("http-equiv").ok().flatten();
    equivalent.is_some_and(|attribute| attribute.value.trim_ascii().eq_ignore_ascii_case("refresh"))
}

/// A value with its references resolved, where it stands in the text, and where a reference in it is to nothing.
fn value(text: &str, attribute: &XmlAttribute) -> (Vec<u8>, std::ops::Range<usize>, Option<usize>) {
    let start = place_of(text, &attribute.value);
    let span = start..start + attribute.value.len();
    match attribute.normalized_value_with(XmlVersion::Implicit1_0, 1, resolve_predefined_entity) {
        Ok(value) => (value.into_owned().into_bytes(), span, None),
        Err(_) => (Vec::new(), span, Some(start)),
    }
}

/// Where a part of `text` stands in it.
fn place_of(text: &str, part: &str) -> usize {
    let distance = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
    distance.filter(|at| at + part.len() <= text.len()).unwrap_or_default()
}
