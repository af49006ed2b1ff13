//! Attributes that a parser found in, links out: split, in NFC where the charset asks for it, with offsets in the
//! document's bytes and with the base that HTML's `base` element sets for all of them.

use std::ops::Range;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::attributes::Shape;
use super::lists::references;
use super::{Body, Defect, DefectKind, Defects, Link};
use crate::iri::{Base, find_scheme};

/// An attribute that holds references.
pub(super) struct Attribute {
    pub(super) element: String,
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// Its value, character references resolved.
    pub(super) value: Vec<u8>,
    /// Where its value stands in the text.
    pub(super) span: Range<usize>,
    /// Where a reference to no character stands in it, place in the text.
    pub(super) bad_reference: Option<usize>,
    /// Its base: an entry of [`Found::bases`].
    pub(super) base: usize,
}

/// What a parser found.
#[derive(Default)]
pub(super) struct Found {
    pub(super) attributes: Vec<Attribute>,
    /// Bases that elements set for their inside; the first is the context's.
    pub(super) bases: Vec<Vec<u8>>,
    /// The attribute that is the first `base` element's `href`.
    pub(super) html_base: Option<usize>,
    /// Why it stopped before the end: the kind, the place in the text, what was found.
    pub(super) stopped: Option<(DefectKind, usize, String)>,
}

/// A reference against a base, as far as that can be done: a base that is none is said by whoever resolves against it.
pub(super) fn join(base: &[u8], reference: &[u8]) -> Vec<u8> {
    if find_scheme(reference).is_some() || base.is_empty() {
        return reference.to_vec();
    }
    Base::new(base).and_then(|base| base.resolve(reference)).unwrap_or_else(|_| reference.to_vec())
}

/// The links of what was found, and their bases.
pub(super) fn settle(body: &Body, found: Found, base: Vec<u8>, defects: &mut Defects) -> (Vec<Vec<u8>>, Vec<Link>) {
    let Found { attributes, mut bases, html_base, stopped } = found;
    if bases.is_empty() {
        bases.push(base);
    }
    let offsets = Offsets::new(body, &attributes, stopped.as_ref().map(|(_, place, _)| *place));
    let mut links = Vec::with_capacity(attributes.len());
    let mut set_by_html = None;
    for (i, attribute) in attributes.iter().enumerate() {
        let first = links.len();
        push(body, attribute, &offsets, &mut links);
        if html_base == Some(i) {
            set_by_html = links.get(first).and_then(|link| html_base_of(&bases[0], link)).map(|base| (first, base));
        }
    }
    if let Some((own, base)) = set_by_html {
        // The base element's own reference is relative to where the document was found.
        bases.push(base);
        let all_but_own = links.iter_mut().enumerate().filter(|(i, link)| *i != own && link.base == 0);
        all_but_own.for_each(|(_, link)| link.base = bases.len() - 1);
    }
    for (kind, at) in links.iter().filter_map(|link| link.defect) {
        if kind == DefectKind::CharacterReference {
            defects.note(kind, at, || "a reference there is to no character, or to no declared entity".to_string());
        }
    }
    if let Some((kind, place, detail)) = stopped {
        defects.0.push(Defect { kind, at: offsets.of(place), count: 1, detail });
    }
    (bases, links)
}

/// The base that a `base` element sets; none where it has a defect or names one that HTML does not take.
fn html_base_of(outer: &[u8], link: &Link) -> Option<Vec<u8>> {
    let base = join(outer, &link.url);
    let is_opaque = ["data:", "javascript:"]
        .iter()
        .any(|scheme| base.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes())));
    (link.defect.is_none() && !is_opaque).then_some(base)
}

/// The links of one attribute.
fn push(body: &Body, attribute: &Attribute, offsets: &Offsets, links: &mut Vec<Link>) {
    let bad_reference = attribute.bad_reference.map(|place| (DefectKind::CharacterReference, offsets.of(place)));
    let undecodable = body.find_malformed(attribute.span.start, attribute.span.end);
    let defect = undecodable.map(|at| (DefectKind::Undecodable, at)).or(bad_reference);
    for range in references(&attribute.value, attribute.shape) {
        let url = if defect.is_some() { Vec::new() } else { normalized(body, &attribute.value[range]) };
        links.push(Link {
            url,
            base: attribute.base,
            element: attribute.element.clone(),
            attribute: attribute.name,
            offset: offsets.of(attribute.span.start),
            defect,
        });
    }
}

/// A reference in NFC, where the document is in a charset that is not a Unicode one (RFC 3987 section 3.1, step 1b).
fn normalized(body: &Body, reference: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(reference) {
        Ok(text) if !body.charset.is_unicode() && !is_nfc(text) => text.nfc().collect::<String>().into_bytes(),
        _ => reference.to_vec(),
    }
}

/// Places in the text and where they are in the document.
struct Offsets {
    places: Vec<usize>,
    offsets: Vec<u64>,
}

impl Offsets {
    fn new(body: &Body, attributes: &[Attribute], stopped: Option<usize>) -> Offsets {
        let of_attributes =
            attributes.iter().flat_map(|attribute| [Some(attribute.span.start), attribute.bad_reference]);
        let mut places: Vec<usize> = of_attributes.flatten().chain(stopped).collect();
        places.sort_unstable();
        places.dedup();
        Offsets { offsets: body.offsets(&places), places }
    }

    fn of(&self, place: usize) -> u64 {
        self.places.binary_search(&place).ok().and_then(|i| self.offsets.get(i)).copied().unwrap_or_default()
    }
}
