//! Makes links of the attributes that a parser found: splits values into references, normalizes them to NFC if the charset
//! requires it, and sets offsets in the document and the base of HTML's `base` element.

use std::ops::Range;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::attributes::{ReferenceSyntax, references};
use super::document::{DefectKind, DefectList, DocumentDefect, DocumentText, Link};
use crate::iri::{Base, find_scheme};

/// An attribute that holds references.
pub(super) struct LinkAttribute {
    pub(super) element: String,
    pub(super) name: &'static str,
    pub(super) syntax: ReferenceSyntax,
    /// Its value, character references resolved.
    pub(super) value: Vec<u8>,
    /// Where its value is in the text.
    pub(super) span: Range<usize>,
    /// Position in the text of a reference to no character in the value.
    pub(super) bad_reference: Option<usize>,
    /// Its base: an index in [`LinkAttributes::bases`].
    pub(super) base: usize,
}

/// The attributes of a document that hold references.
#[derive(Default)]
pub(super) struct LinkAttributes {
    pub(super) attributes: Vec<LinkAttribute>,
    /// Bases that elements set for their content. The first one is that of the context.
    pub(super) bases: Vec<Vec<u8>>,
    /// Index of the `href` attribute of the first `base` element.
    pub(super) html_base: Option<usize>,
    /// Why the parser stopped before the end.
    pub(super) stop: Option<ParserStop>,
}

/// A defect after which a parser cannot continue.
pub(super) struct ParserStop {
    pub(super) kind: DefectKind,
    /// Position in the text.
    pub(super) position: usize,
    pub(super) detail: String,
}

/// Resolves a reference against a base, if the base is absolute; otherwise returns the reference.
pub(super) fn join(base: &[u8], reference: &[u8]) -> Vec<u8> {
    if find_scheme(reference).is_some() || base.is_empty() {
        return reference.to_vec();
    }
    Base::new(base).and_then(|base| base.resolve(reference)).unwrap_or_else(|_| reference.to_vec())
}

/// Makes the links of a document and the list of their bases.
pub(super) fn make_links(
    text: &DocumentText,
    found: LinkAttributes,
    base: Vec<u8>,
    defects: &mut DefectList,
) -> (Vec<Vec<u8>>, Vec<Link>) {
    let LinkAttributes { attributes, mut bases, html_base, stop } = found;
    if bases.is_empty() {
        bases.push(base);
    }
    let offsets = OffsetTable::new(text, &attributes, stop.as_ref().map(|stop| stop.position));
    let mut links = Vec::with_capacity(attributes.len());
    let mut declared_base = None;
    for (i, attribute) in attributes.iter().enumerate() {
        let first = links.len();
        push_links(text, attribute, &offsets, &mut links);
        if html_base == Some(i) {
            declared_base =
                links.get(first).and_then(|link| resolve_html_base(&bases[0], link)).map(|base| (first, base));
        }
    }
    if let Some((base_link, base)) = declared_base {
        // The reference of the base element itself is relative to the address of the document.
        bases.push(base);
        let others = links.iter_mut().enumerate().filter(|(i, link)| *i != base_link && link.base == 0);
        others.for_each(|(_, link)| link.base = bases.len() - 1);
    }
    for (kind, at) in links.iter().filter_map(|link| link.defect) {
        if kind == DefectKind::CharacterReference {
            defects.add(kind, at, || "a reference to no character or to an undeclared entity".to_string());
        }
    }
    if let Some(ParserStop { kind, position, detail }) = stop {
        defects.0.push(DocumentDefect { kind, at: offsets.get(position), count: 1, detail });
    }
    (bases, links)
}

/// The base that a `base` element sets; `None` if it has a defect or a scheme that HTML does not allow.
fn resolve_html_base(outer: &[u8], link: &Link) -> Option<Vec<u8>> {
    let base = join(outer, &link.url);
    let is_opaque = ["data:", "javascript:"]
        .iter()
        .any(|scheme| base.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes())));
    (link.defect.is_none() && !is_opaque).then_some(base)
}

/// Appends the links of one attribute.
fn push_links(text: &DocumentText, attribute: &LinkAttribute, offsets: &OffsetTable, links: &mut Vec<Link>) {
    let bad_reference = attribute.bad_reference.map(|at| (DefectKind::CharacterReference, offsets.get(at)));
    let undecodable = text.find_malformed(attribute.span.start, attribute.span.end);
    let defect = undecodable.map(|at| (DefectKind::Undecodable, at)).or(bad_reference);
    for range in references(&attribute.value, attribute.syntax) {
        let url = if defect.is_some() { Vec::new() } else { to_nfc(text, &attribute.value[range]) };
        links.push(Link {
            url,
            base: attribute.base,
            element: attribute.element.clone(),
            attribute: attribute.name,
            offset: offsets.get(attribute.span.start),
            defect,
        });
    }
}

/// Normalizes a reference to NFC if the charset of the document is not a Unicode one (RFC 3987 section 3.1, step 1b).
fn to_nfc(text: &DocumentText, reference: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(reference) {
        Ok(reference) if !text.charset.is_unicode() && !is_nfc(reference) => {
            reference.nfc().collect::<String>().into_bytes()
        }
        _ => reference.to_vec(),
    }
}

/// Positions in the text and their offsets in the document.
struct OffsetTable {
    positions: Vec<usize>,
    offsets: Vec<u64>,
}

impl OffsetTable {
    fn new(text: &DocumentText, attributes: &[LinkAttribute], stop: Option<usize>) -> OffsetTable {
        let of_attributes =
            attributes.iter().flat_map(|attribute| [Some(attribute.span.start), attribute.bad_reference]);
        let mut positions: Vec<usize> = of_attributes.flatten().chain(stop).collect();
        positions.sort_unstable();
        positions.dedup();
        OffsetTable { offsets: text.offsets(&positions), positions }
    }

    fn get(&self, position: usize) -> u64 {
        self.positions.binary_search(&position).ok().and_then(|i| self.offsets.get(i)).copied().unwrap_or_default()
    }
}
