//! Makes links of the attributes that a parser found: splits values into references, normalizes them to NFC if the charset
//! requires it, and sets offsets in the document and the base of HTML's `base` element.

use std::ops::Range;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::attributes::{MAX_LINKS, ReferenceSyntax, references};
use super::document::{DefectKind, DefectList, DocumentDefect, DocumentText, Link};
use crate::iri::{Base, find_scheme};

/// Longest base that a document can declare, in bytes. Every link has a base, so the size of the output is bounded by
/// this length times the number of links.
pub(super) const MAX_BASE_LEN: usize = 16 << 10;

/// Most bytes of the bases of one document together.
const MAX_BASES_LEN: usize = 64 << 20;

/// The index of a base that exceeds these limits. Bases that are relative to it exceed them too.
pub(super) const LONG_BASE: usize = usize::MAX;

/// Longest name of an element in a link, in bytes. A longer name is truncated.
const MAX_ELEMENT_LEN: usize = 1 << 10;

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
    /// Its base: an index in [`LinkAttributes::bases`], or [`LONG_BASE`].
    pub(super) base: usize,
}

/// The attributes of a document that hold references.
#[derive(Default)]
pub(super) struct LinkAttributes {
    pub(super) attributes: Vec<LinkAttribute>,
    /// Bases that elements set for their content. The first one is that of the context.
    pub(super) bases: Vec<Vec<u8>>,
    /// Length of `bases` together, in bytes.
    pub(super) bases_len: usize,
    /// Index of the `href` attribute of the first `base` element.
    pub(super) html_base: Option<usize>,
    /// Why the parser stopped before the end.
    pub(super) stop: Option<ParserStop>,
}

impl LinkAttributes {
    /// Appends an attribute. Returns false if there are too many: then the parser can stop.
    pub(super) fn push(&mut self, attribute: LinkAttribute) -> bool {
        let has_room = self.attributes.len() < MAX_LINKS;
        if has_room {
            self.attributes.push(attribute);
        } else if self.stop.is_none() {
            self.stop = Some(ParserStop::too_many(attribute.span.start));
        }
        has_room
    }

    /// Resolves the base that an element sets against the base `outer` of the element around it. Returns its index, or
    /// [`LONG_BASE`].
    pub(super) fn push_base(&mut self, outer: usize, reference: &[u8]) -> usize {
        let is_absolute = find_scheme(reference).is_some();
        let outer_base = match self.bases.get(outer) {
            Some(base) if !is_absolute => &base[..],
            None if !is_absolute => return LONG_BASE,
            _ => &[],
        };
        let len = outer_base.len() + reference.len();
        // The base of the context may be longer than a base that the document declares.
        let is_long = reference.len() > MAX_BASE_LEN || len > MAX_BASE_LEN.max(self.bases[0].len());
        if is_long || self.bases_len + len > MAX_BASES_LEN {
            return LONG_BASE;
        }
        let base = join(outer_base, reference);
        self.bases_len += base.len();
        self.bases.push(base);
        self.bases.len() - 1
    }
}

/// Returns the name of an element for links.
pub(super) fn element_name(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(MAX_ELEMENT_LEN)]).into_owned()
}

/// A defect after which a parser cannot continue.
pub(super) struct ParserStop {
    pub(super) kind: DefectKind,
    /// Position in the text.
    pub(super) position: usize,
    pub(super) detail: String,
}

impl ParserStop {
    /// The document has more than [`MAX_LINKS`] references.
    fn too_many(position: usize) -> ParserStop {
        let detail = format!("the document has more than {MAX_LINKS} references; those from here on were not read");
        ParserStop { kind: DefectKind::TooManyReferences, position, detail }
    }
}

/// Resolves a reference against a base, if the base is absolute; otherwise returns the reference.
fn join(base: &[u8], reference: &[u8]) -> Vec<u8> {
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
    let LinkAttributes { attributes, mut bases, html_base, mut stop, .. } = found;
    if bases.is_empty() {
        bases.push(base);
    }
    let offsets = OffsetTable::new(text, &attributes, stop.as_ref().map(|stop| stop.position));
    let mut links = Vec::with_capacity(attributes.len());
    let mut declared_base = None;
    for (i, attribute) in attributes.iter().enumerate() {
        let first = links.len();
        if !push_links(text, attribute, &offsets, &mut links) {
            stop = Some(ParserStop::too_many(attribute.span.start));
            break;
        }
        if html_base == Some(i) {
            declared_base =
                links.get(first).and_then(|link| resolve_html_base(&bases[0], link)).map(|base| (first, base));
        }
    }
    if let Some((base_link, base)) = declared_base {
        // The reference of the base element itself is relative to the address of the document.
        let is_long = base.len() > MAX_BASE_LEN.max(bases[0].len());
        let index = if is_long { LONG_BASE } else { bases.len() };
        bases.extend(Some(base).filter(|_| !is_long));
        let others = links.iter_mut().enumerate().filter(|(i, link)| *i != base_link && link.base == 0);
        others.for_each(|(_, link)| link.base = index);
    }
    links.iter_mut().filter(|link| link.base == LONG_BASE).for_each(remove_long_base);
    for (kind, at) in links.iter().filter_map(|link| link.defect) {
        match kind {
            DefectKind::CharacterReference => {
                defects.add(kind, at, || "a reference to no character or to an undeclared entity".to_string());
            }
            DefectKind::LongBase => defects.add(kind, at, || {
                format!(
                    "the base of this reference is longer than {MAX_BASE_LEN} bytes, or the bases of the document are \
                     longer than {MAX_BASES_LEN} bytes"
                )
            }),
            _ => {}
        }
    }
    if let Some(ParserStop { kind, position, detail }) = stop {
        defects.0.push(DocumentDefect { kind, at: offsets.get(position), count: 1, detail });
    }
    (bases, links)
}

/// Replaces [`LONG_BASE`]: an absolute reference does not need the base, and a relative one becomes a defect.
fn remove_long_base(link: &mut Link) {
    link.base = 0;
    if link.defect.is_none() && find_scheme(&link.url).is_none() {
        link.url.clear();
        link.defect = Some((DefectKind::LongBase, link.offset));
    }
}

/// The base that a `base` element sets; `None` if it has a defect or a scheme that HTML does not allow.
fn resolve_html_base(outer: &[u8], link: &Link) -> Option<Vec<u8>> {
    let base = join(outer, &link.url);
    let is_opaque = ["data:", "javascript:"]
        .iter()
        .any(|scheme| base.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes())));
    (link.defect.is_none() && !is_opaque).then_some(base)
}

/// Appends the links of one attribute, as far as there may be more links. Returns whether these are all.
fn push_links(text: &DocumentText, attribute: &LinkAttribute, offsets: &OffsetTable, links: &mut Vec<Link>) -> bool {
    let bad_reference = attribute.bad_reference.map(|at| (DefectKind::CharacterReference, offsets.get(at)));
    let undecodable = text.find_malformed(attribute.span.start, attribute.span.end);
    let defect = undecodable.map(|at| (DefectKind::Undecodable, at)).or(bad_reference);
    for range in references(&attribute.value, attribute.syntax) {
        if links.len() == MAX_LINKS {
            return false;
        }
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
    true
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
