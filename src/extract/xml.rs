//! Finds the attributes of XML that hold references, and the elements of feeds and sitemaps whose content is one, each with
//! the base that `xml:base` sets for it (XML Base, nested). In elements of the XHTML namespace the same attributes are
//! read as in HTML.
//!
//! A document that is not well-formed is read up to the error. Two errors are accepted: an `&` that begins no reference is
//! text, because feeds are full of them, and an attribute needs no quotes and no value, as in HTML. No DTD is read and no entity
//! of a DTD is expanded: a value that refers to one has a defect.

use std::ops::Range;

use quick_xml::Error;
use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event, attributes::Attribute as XmlAttribute};
use quick_xml::name::{Namespace, NamespaceError, ResolveResult};
use quick_xml::reader::NsReader;

use super::attributes::{self, ReferenceSyntax, XHTML};
use super::document::DefectKind;
use super::feeds::{IDENTIFIER, Vocabulary, parent_name};
use super::links::{LinkAttribute, LinkSink, ParserStop, short_name};
use crate::iri::find_scheme;
use crate::kernel::offset_in;

const SVG: &str = "http://www.w3.org/2000/svg";

/// Reads a document and gives its references to `sink`.
pub(super) fn read(text: &str, sink: &mut LinkSink<'_>) {
    let mut reader = NsReader::from_str(text);
    reader.config_mut().allow_dangling_amp = true;
    let mut collector = XmlCollector {
        text,
        reader,
        sink,
        scopes: Vec::new(),
        vocabulary: Vocabulary::Other,
        namespace: None,
        content: None,
        text_templates: 0,
    };
    if let Some(stop) = collector.read_elements() {
        collector.sink.stop(stop);
    }
}

/// An open element.
struct Scope {
    /// The base of its content.
    base: usize,
    /// Its name, if the meaning of its children depends on it; otherwise empty.
    name: &'static str,
    /// It is an `a` element of XHTML, which has a text.
    is_anchor: bool,
    /// It is a script or a style sheet, or within one: its text is not that of a link.
    is_in_script: bool,
    /// The number of `template` elements of XHTML that it is or is within.
    templates: usize,
}

/// An element whose content is a reference.
struct ElementContent {
    element: String,
    rel: &'static str,
    base: usize,
    /// Where it begins in the text.
    at: usize,
    value: String,
    bad_reference: Option<usize>,
}

/// Collects the attributes of the elements.
struct XmlCollector<'a, 'b, 'c> {
    text: &'a str,
    reader: NsReader<&'a [u8]>,
    sink: &'b mut LinkSink<'c>,
    scopes: Vec<Scope>,
    vocabulary: Vocabulary,
    /// The namespace of the vocabulary; `None` before the root.
    namespace: Option<String>,
    /// The open element, if its content is a reference.
    content: Option<ElementContent>,
    /// The number of templates around the last `a` element: the content of others is not part of its text.
    text_templates: usize,
}

/// What the attributes of a tag determine.
struct TagScope {
    /// The base of the content of the element.
    base: usize,
    is_anchor: bool,
    /// The attribute `alt` of an element of XHTML.
    alt: Option<Vec<u8>>,
}

impl XmlCollector<'_, '_, '_> {
    /// Reads all elements; returns why it stopped before the end.
    fn read_elements(&mut self) -> Option<ParserStop> {
        while !self.sink.is_done() {
            let before = self.position();
            let event = match self.reader.read_event() {
                Ok(event) => event,
                Err(error) => return Some(self.stop_of(&error, before)),
            };
            match event {
                Event::Start(tag) => {
                    let scope = self.begin_element(&tag, before);
                    self.scopes.push(scope);
                }
                Event::Empty(tag) => {
                    let scope = self.begin_element(&tag, before);
                    self.content = None;
                    self.end_element(Some(scope));
                }
                Event::End(_) => {
                    self.end_content(before);
                    let scope = self.scopes.pop();
                    self.end_element(scope);
                }
                Event::Text(text) => self.push_text(&text.xml10_content()),
                Event::CData(text) => self.push_text(&text.xml10_content()),
                Event::GeneralRef(reference) => self.push_reference(&reference, before),
                Event::Eof if !self.scopes.is_empty() => {
                    let detail = match self.scopes.len() {
                        1 => "the document ends and an element is still open".to_string(),
                        count => format!("the document ends and {count} elements are still open"),
                    };
                    return Some(ParserStop { kind: DefectKind::Truncated, position: self.text.len(), detail });
                }
                Event::Eof => return None,
                _ => {}
            }
        }
        None
    }

    /// Why the parser stops at an error of the event that begins at `before`.
    fn stop_of(&self, error: &Error, before: usize) -> ParserStop {
        // The crate has no position for errors of namespaces, which are in the tag that was read.
        let is_of_namespace = matches!(error, Error::Namespace(_));
        let position = if is_of_namespace { before } else { self.clamped(self.reader.error_position()) };
        let detail = match error {
            // The message of the crate has advice to programmers.
            Error::Namespace(NamespaceError::TooManyBindings(limit)) => {
                format!("more than {limit} namespaces are in scope")
            }
            error => error.to_string(),
        };
        ParserStop { kind: DefectKind::IllFormed, position, detail }
    }

    /// Where the next event begins in the text.
    fn position(&self) -> usize {
        self.clamped(self.reader.buffer_position())
    }

    /// A position of the reader, within the text.
    fn clamped(&self, position: u64) -> usize {
        usize::try_from(position).unwrap_or(usize::MAX).min(self.text.len())
    }

    fn push_text(&mut self, text: &str) {
        if let Some(content) = &mut self.content {
            content.value.push_str(text);
        }
        if !self.is_in_script() && self.template_count() == self.text_templates {
            self.sink.push_text(text.as_bytes());
        }
    }

    /// Whether the open element is a script or a style sheet, or within one.
    fn is_in_script(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.is_in_script)
    }

    /// The number of templates that are open: their content is not part of the document.
    fn template_count(&self) -> usize {
        self.scopes.last().map_or(0, |scope| scope.templates)
    }

    fn push_reference(&mut self, reference: &BytesRef<'_>, at: usize) {
        let character = reference.resolve_char_ref();
        let mut buffer = [0; 4];
        let text = match &character {
            Ok(Some(character)) => Some(&*character.encode_utf8(&mut buffer)),
            Ok(None) => resolve_predefined_entity(reference),
            Err(_) => None,
        };
        match (text, &mut self.content) {
            (Some(text), _) => {
                let text = text.to_string();
                self.push_text(&text);
            }
            (None, Some(content)) => {
                content.bad_reference.get_or_insert(at);
            }
            (None, None) => {}
        }
    }

    /// Gives the attributes of a tag that begins at `at` to the sink; returns the scope of its content.
    fn begin_element(&mut self, tag: &BytesStart<'_>, at: usize) -> Scope {
        let outer = self.scopes.last().map_or(0, |scope| scope.base);
        let parent = self.scopes.last().map_or("", |scope| scope.name);
        self.end_content(at);
        let is_core = self.is_core(tag);
        let TagScope { base, is_anchor, alt } = self.push_attributes(tag, outer);
        let local = tag.local_name();
        let element = local.as_ref();
        if let Some(rel) = self.vocabulary.rel_of_content(parent, element, is_core) {
            let is_identifier = element == "guid"
                && attribute_of(tag, "isPermaLink").is_some_and(|value| value.trim().eq_ignore_ascii_case("false"));
            let (element, at) = (short_name(element.as_bytes()), self.position());
            let rel = if is_identifier { IDENTIFIER } else { rel };
            self.content = Some(ElementContent { element, rel, base, at, value: String::new(), bad_reference: None });
        }
        match alt {
            _ if is_anchor => {
                self.text_templates = self.template_count();
                self.sink.begin_text();
            }
            Some(alt) => self.sink.set_text(&alt),
            None => self.sink.end_tag(),
        }
        let (is_script, is_template) = self.has_hidden_content(tag);
        let is_in_script = self.is_in_script() || is_script;
        let templates = self.template_count() + usize::from(is_template);
        Scope { base, name: parent_name(element), is_anchor, is_in_script, templates }
    }

    /// Whether an element is a script or a style sheet of XHTML or SVG, and whether it is a template of XHTML.
    fn has_hidden_content(&self, tag: &BytesStart<'_>) -> (bool, bool) {
        let (namespace, local) = self.reader.resolver().resolve_element(tag.name());
        let is_of = |name: &str| matches!(namespace, ResolveResult::Bound(Namespace(bound)) if bound == name);
        match local.as_ref() {
            "script" | "style" => (is_of(XHTML) || is_of(SVG), false),
            "template" => (false, is_of(XHTML)),
            _ => (false, false),
        }
    }

    /// Ends an element.
    fn end_element(&mut self, scope: Option<Scope>) {
        if scope.is_some_and(|scope| scope.is_anchor) {
            self.sink.end_text();
        }
    }

    /// Whether an element is in the namespace of the vocabulary. The root decides both; in RSS 1.0 a child of the root does.
    fn is_core(&mut self, tag: &BytesStart<'_>) -> bool {
        let (namespace, local) = self.reader.resolver().resolve_element(tag.name());
        let namespace = match &namespace {
            ResolveResult::Bound(Namespace(namespace)) => *namespace,
            ResolveResult::Unbound => "",
            ResolveResult::Unknown(_) => return false,
        };
        if self.scopes.is_empty() {
            self.vocabulary = Vocabulary::of_root(local.as_ref());
            self.namespace = Some(namespace.to_string());
        } else if self.scopes.len() == 1 && matches!(local.as_ref(), "channel" | "item") {
            self.namespace = Some(namespace.to_string());
        }
        self.vocabulary != Vocabulary::Other && self.namespace.as_deref() == Some(namespace)
    }

    /// Gives the content of the open element, if it is a reference, to the sink. It ends at `end`.
    fn end_content(&mut self, end: usize) {
        let Some(content) = self.content.take() else { return };
        let ElementContent { element, rel, base, at, value, bad_reference } = content;
        let value = value.trim_ascii();
        let is_reference = rel != IDENTIFIER || find_scheme(value.as_bytes()).is_some();
        if bad_reference.is_none() && (value.is_empty() || !is_reference) {
            return;
        }
        let attribute = LinkAttribute::content(&element, rel, value.as_bytes(), at..end.max(at));
        self.sink.push(&LinkAttribute { bad_reference, base, ..attribute });
        self.sink.end_tag();
    }

    /// Gives the attributes of a tag to the sink; `outer` is the base of the element around it.
    fn push_attributes(&mut self, tag: &BytesStart<'_>, outer: usize) -> TagScope {
        let (namespace, local) = self.reader.resolver().resolve_element(tag.name());
        let is_html = matches!(namespace, ResolveResult::Bound(Namespace(XHTML)));
        let element = &short_name(local.as_ref().as_bytes());
        let html_element = is_html.then_some(element.as_str());
        let rel = attribute_of(tag, "rel").unwrap_or_default();
        let is_refresh =
            is_html && attribute_of(tag, "http-equiv").is_some_and(|value| value.eq_ignore_ascii_case("refresh"));
        let is_anchor = html_element == Some("a");
        if is_anchor {
            self.sink.end_text();
        }
        let inner = self.push_bases(tag, outer);
        for attribute in attributes_of(tag) {
            let known = self.known_attribute(&attribute, html_element);
            let known = known.filter(|(_, syntax)| *syntax != ReferenceSyntax::Refresh || is_refresh);
            let Some((name, syntax)) = known else { continue };
            let (value, span, bad_reference) = value(self.text, &attribute);
            let is_html_base = html_element == Some("base") && name == "href" && self.template_count() == 0;
            let base = if name == "xml:base" { outer } else { inner };
            let (rel, value) = (rel.as_bytes(), &value);
            let attribute =
                LinkAttribute { element, name, rel, syntax, value, span, bad_reference, is_html_base, base };
            if !self.sink.push(&attribute) {
                break;
            }
        }
        let alt = attributes_of(tag).filter(|attribute| is_html && attribute.key.as_ref() == "alt").last();
        TagScope { base: inner, is_anchor, alt: alt.map(|alt| value(self.text, &alt).0) }
    }

    /// Gives the `xml:base` of a tag to the sink, which is relative to the base of the element around it, and returns the base of
    /// the element: it applies to all its references, also to those before it in the tag.
    fn push_bases(&mut self, tag: &BytesStart<'_>, outer: usize) -> usize {
        let mut inner = outer;
        for attribute in attributes_of(tag).filter(|attribute| attribute.key.as_ref() == "xml:base") {
            let (value, span, bad_reference) = value(self.text, &attribute);
            if bad_reference.is_none() {
                inner = self.sink.push_base(outer, value.trim_ascii(), span);
            }
        }
        inner
    }

    /// The name and the syntax of an attribute that holds references. An element of XHTML comes with its name.
    fn known_attribute(
        &self,
        attribute: &XmlAttribute<'_>,
        html_element: Option<&str>,
    ) -> Option<(&'static str, ReferenceSyntax)> {
        let (namespace, local) = self.reader.resolver().resolve_attribute(attribute.key);
        match (namespace, html_element) {
            (ResolveResult::Unbound, Some(element)) => attributes::html(element.as_bytes(), local.as_ref().as_bytes()),
            (ResolveResult::Unbound, None) => attributes::xml(None, local.as_ref()),
            (ResolveResult::Bound(Namespace(namespace)), _) => attributes::xml(Some(namespace), local.as_ref()),
            (ResolveResult::Unknown(_), _) => None,
        }
    }
}

/// The attributes of a tag; they need no quotes and no value. Duplicates are not looked for, which would take quadratic time.
fn attributes_of<'a>(tag: &'a BytesStart<'_>) -> impl Iterator<Item = XmlAttribute<'a>> {
    let mut attributes = tag.html_attributes();
    attributes.with_checks(false);
    attributes.flatten()
}

/// The value of an attribute without a prefix, character references not resolved.
fn attribute_of<'a>(tag: &'a BytesStart<'_>, name: &str) -> Option<std::borrow::Cow<'a, str>> {
    attributes_of(tag).find(|attribute| attribute.key.as_ref() == name).map(|attribute| attribute.value)
}

/// The value of an attribute with its references resolved, and its position in the text. If a reference cannot be resolved, the
/// value is empty, and the last item is where it begins.
fn value(text: &str, attribute: &XmlAttribute) -> (Vec<u8>, Range<usize>, Option<usize>) {
    let start = value_start(text, attribute);
    let span = start..start + attribute.value.len();
    let resolve = |attribute: &XmlAttribute| {
        let value = attribute.normalized_value_with(XmlVersion::Implicit1_0, 1, resolve_predefined_entity);
        value.ok().map(|value| value.into_owned().into_bytes())
    };
    let escaped = || XmlAttribute { key: attribute.key, value: escape_ampersands(&attribute.value).into() };
    match resolve(attribute).or_else(|| resolve(&escaped())) {
        Some(value) => (value, span, None),
        None => (Vec::new(), span, Some(start)),
    }
}

/// Where the value of an attribute begins in the text: after its name, if it has none.
fn value_start(text: &str, attribute: &XmlAttribute) -> usize {
    let (text, name) = (text.as_bytes(), attribute.key.as_ref().as_bytes());
    let name_end = offset_in(text, name) + name.len();
    // The crate gives an attribute without a value a text that is not in the document.
    let has_value = !attribute.value.is_empty() || text[name_end..].trim_ascii_start().starts_with(b"=");
    if has_value { offset_in(text, attribute.value.as_bytes()) } else { name_end }
}

/// Writes `&amp;` for every `&` that begins no reference: no `;` follows before the next `&`.
fn escape_ampersands(value: &str) -> String {
    let mut parts = value.split('&');
    let mut escaped = parts.next().unwrap_or_default().to_string();
    for part in parts {
        escaped.push_str(if part.contains(';') { "&" } else { "&amp;" });
        escaped.push_str(part);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crate::encoding::Charset;
    use crate::extract::{DocumentContext, Markup, extract};

    #[test]
    fn bases_are_decoded_like_references() {
        let base_in = |label: &str, declared: &[u8]| {
            let text = [b"<r xml:base='", declared, b"'><a href='x'/></r>"].concat();
            let (markup, charset, base) = (Some(Markup::Xml), Charset::named(label), Some(b"http://d/".to_vec()));
            let document = extract(&text, &DocumentContext { markup, charset, base, ..DocumentContext::default() });
            String::from_utf8(document.bases[document.links[1].base].clone()).unwrap()
        };
        // Bytes that are not text.
        assert_eq!(base_in("shift_jis", b"http://h/\xFF/"), "http://d/");
        assert_eq!(base_in("utf-8", b"http://h/\xE9/"), "http://d/");
        assert_eq!(base_in("utf-8", "http://h/\u{FFFD}/".as_bytes()), "http://h/\u{FFFD}/");
        // RFC 3987 section 3.1, step 1b.
        assert_eq!(base_in("windows-1258", b"http://h/Vi\xEA\xF2t/"), "http://h/Vi\u{1EC7}t/");
    }
}
