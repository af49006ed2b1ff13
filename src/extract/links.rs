//! Makes links of the attributes that a parser finds, one after the other: splits values into references, normalizes them
//! to NFC if the charset requires it, and sets offsets in the document and the base of HTML's `base` element.
//!
//! No list of links is kept, so that the memory of a document depends on its length only. The base that a `base` element
//! declares also applies to the links before it; it is found by a pass of its own ([`find_html_base`]).

use std::ops::Range;

use super::attributes::{ReferenceSyntax, for_each_reference};
use super::document::{DefectKind, DefectList, DocumentDefect, DocumentPlaces, DocumentText, Link};
use super::link_text::HeldLinks;
use crate::encoding::{Charset, nfc_of, truncated};
use crate::iri::{Base, escape_invalid_utf8, find_scheme, may_be_html_base};

/// Longest base that a document can declare, in bytes. Every link has a base, so the size of the output is bounded by
/// this length times the number of links.
pub(super) const MAX_BASE_LEN: usize = 16 << 10;

/// Maximum length of the bases of one document together, in bytes.
const MAX_BASES_LEN: usize = 64 << 20;

/// The index of a base that exceeds these limits. Bases that are relative to it exceed them too.
const LONG_BASE: usize = usize::MAX;

/// Longest name of an element in a link, and longest value of `rel`, in bytes. A longer one is truncated.
const MAX_NAME_LEN: usize = 1 << 10;

/// An attribute that holds references, or an element whose content is one.
pub(super) struct LinkAttribute<'a> {
    pub(super) element: &'a str,
    pub(super) name: &'static str,
    pub(super) rel: &'a [u8],
    pub(super) syntax: ReferenceSyntax,
    /// Its value, character references resolved.
    pub(super) value: &'a [u8],
    /// Where its value is in the text.
    pub(super) span: Range<usize>,
    /// Position in the text of the first invalid character reference of the value.
    pub(super) bad_reference: Option<usize>,
    /// It is the `href` of a `base` element of HTML that is part of the document.
    pub(super) is_html_base: bool,
    /// Its base: an index in the bases of the document, or [`LONG_BASE`].
    pub(super) base: usize,
}

impl<'a> LinkAttribute<'a> {
    /// An element whose content is one reference, at `span` of the text. The base is that of the document.
    pub(super) fn content(element: &'a str, rel: &'a str, value: &'a [u8], span: Range<usize>) -> LinkAttribute<'a> {
        LinkAttribute {
            element,
            name: "",
            rel: rel.as_bytes(),
            syntax: ReferenceSyntax::One,
            value,
            span,
            bad_reference: None,
            is_html_base: false,
            base: 0,
        }
    }
}

/// What is known of a document when one of its links is found.
pub(crate) struct LinkScope<'a> {
    /// The bases so far.
    pub(crate) bases: &'a [Vec<u8>],
    /// The charset in which it is read.
    pub(crate) charset: Charset,
}

/// Takes the links of a document in order. Returns false if it wants no more.
pub(super) type LinkConsumer<'a> = &'a mut dyn FnMut(Link, LinkScope<'_>) -> bool;

/// The base that the first `base` element with an `href` sets.
pub(super) struct HtmlBase {
    /// Where the value of that `href` begins: it is relative to the address of the document.
    position: usize,
    /// `None` if it is longer than [`MAX_BASE_LEN`].
    base: Option<Vec<u8>>,
}

/// What a parser is run for.
pub(super) enum LinkGoal<'a> {
    /// The base of the document.
    FindBase,
    /// Its links, of which the first base that HTML declares is known.
    GiveLinks(Option<HtmlBase>, LinkConsumer<'a>),
}

/// Takes the attributes that a parser finds.
pub(super) struct LinkSink<'a> {
    text: &'a DocumentText<'a>,
    places: DocumentPlaces<'a>,
    /// Places of the bases that elements of XML declare: they are read before the other attributes of their tags.
    base_places: DocumentPlaces<'a>,
    /// The first one is that of the context.
    pub(super) bases: Vec<Vec<u8>>,
    /// Length of `bases` together, in bytes.
    bases_len: usize,
    /// The position of the `href` of the `base` element, and its index in `bases` or [`LONG_BASE`].
    html_base: Option<(usize, usize)>,
    /// `None` while the base is sought.
    consumer: Option<LinkConsumer<'a>>,
    found_base: Option<HtmlBase>,
    texts: HeldLinks,
    pub(super) defects: DefectList,
    is_done: bool,
}

impl<'a> LinkSink<'a> {
    /// A sink for the links of `text`, found at `base`.
    pub(super) fn new(text: &'a DocumentText<'a>, base: &[u8], wants_text: bool, goal: LinkGoal<'a>) -> LinkSink<'a> {
        let mut sink = LinkSink {
            text,
            places: text.places(),
            base_places: text.places(),
            bases: vec![base.to_vec()],
            bases_len: base.len(),
            html_base: None,
            consumer: None,
            found_base: None,
            texts: HeldLinks::new(wants_text),
            defects: DefectList::default(),
            is_done: false,
        };
        if let LinkGoal::GiveLinks(html_base, consumer) = goal {
            sink.consumer = Some(consumer);
            sink.html_base = html_base.map(|HtmlBase { position, base }| {
                sink.bases.extend(base);
                (position, if sink.bases.len() > 1 { 1 } else { LONG_BASE })
            });
        }
        sink
    }

    /// Whether the parser can stop.
    pub(super) fn is_done(&self) -> bool {
        self.is_done
    }

    /// Reports why the parser stops before the end of the document.
    pub(super) fn stop(&mut self, stop: ParserStop) {
        if !self.is_done && self.consumer.is_some() {
            let ParserStop { kind, position, detail } = stop;
            let at = self.places.offset(position);
            self.defects.0.push(DocumentDefect { kind, at, count: 1, detail });
        }
        self.finish();
    }

    /// Gives the links that are held for their text to the consumer.
    pub(super) fn finish(&mut self) {
        self.end_text();
        self.is_done = true;
    }

    /// Takes an attribute. Returns false if the parser can stop.
    pub(super) fn push(&mut self, attribute: &LinkAttribute<'_>) -> bool {
        if self.is_done {
            return false;
        }
        if self.consumer.is_none() {
            return self.find_html_base(attribute);
        }
        let (offset, defect) = self.locate(attribute);
        let base = match self.html_base {
            Some((position, index)) if attribute.base == 0 && attribute.span.start != position => index,
            _ => attribute.base,
        };
        let rel = short_name(attribute.rel);
        for_each_reference(attribute.value, attribute.syntax, &mut |range| {
            let mut link = Link {
                url: if defect.is_some() { Vec::new() } else { to_nfc(self.text, &attribute.value[range]) },
                base,
                element: attribute.element.to_string(),
                attribute: attribute.name,
                rel: rel.clone(),
                text: String::new(),
                offset,
                defect,
            };
            if base == LONG_BASE {
                remove_long_base(&mut link);
            }
            self.count_defect(&link);
            if self.texts.is_full() {
                self.end_text();
            }
            if let Some(link) = self.texts.push(link) {
                self.give(link);
            }
            !self.is_done
        });
        !self.is_done
    }

    /// Notes the base of the document if `attribute` sets it, and then returns false.
    fn find_html_base(&mut self, attribute: &LinkAttribute<'_>) -> bool {
        if attribute.is_html_base {
            let is_sound = self.locate(attribute).1.is_none();
            let reference = to_nfc(self.text, attribute.value.trim_ascii());
            let base = resolve_html_base(&self.bases[0], &reference).filter(|_| is_sound);
            self.found_base = base.map(|base| HtmlBase { position: attribute.span.start, base });
            self.is_done = true;
        }
        !self.is_done
    }

    /// The offset of a value, and the defect of its references.
    fn locate(&mut self, attribute: &LinkAttribute<'_>) -> (u64, Option<(DefectKind, u64)>) {
        let LinkAttribute { ref span, bad_reference, .. } = *attribute;
        let offset = self.places.offset(span.start);
        let bad_at = bad_reference.unwrap_or(span.end).clamp(span.start, span.end);
        let mut undecodable = self.places.find_malformed(span.start, bad_at);
        let bad_offset = bad_reference.filter(|_| undecodable.is_none()).map(|at| self.places.offset(at));
        undecodable = undecodable.or_else(|| self.places.find_malformed(bad_at, span.end));
        let undecodable = undecodable.map(|at| (DefectKind::Undecodable, at));
        (offset, undecodable.or(bad_offset.map(|at| (DefectKind::CharacterReference, at))))
    }

    fn give(&mut self, link: Link) {
        if let Some(consumer) = self.consumer.as_mut().filter(|_| !self.is_done) {
            self.is_done = !consumer(link, LinkScope { bases: &self.bases, charset: self.text.charset });
        }
    }

    fn count_defect(&mut self, link: &Link) {
        match link.defect {
            Some((kind @ DefectKind::CharacterReference, at)) => {
                self.defects.add(kind, at, || "a reference to no character or to an undeclared entity".to_string());
            }
            Some((kind @ DefectKind::LongBase, at)) => self.defects.add(kind, at, || {
                format!(
                    "the base of this reference is longer than {MAX_BASE_LEN} bytes, or the bases of the document are \
                     longer than {MAX_BASES_LEN} bytes"
                )
            }),
            _ => {}
        }
    }

    /// Ends a tag that has no text.
    pub(super) fn end_tag(&mut self) {
        self.give_texts(|texts| texts.end_tag());
    }

    /// Sets the text of the links of the tag that ends, and ends it.
    pub(super) fn set_text(&mut self, text: &[u8]) {
        self.texts.set(text);
        self.end_tag();
    }

    /// Ends a tag whose text follows.
    pub(super) fn begin_text(&mut self) {
        self.texts.begin();
    }

    /// Appends to the text of the open element, if there is one.
    pub(super) fn push_text(&mut self, text: &[u8]) {
        self.texts.append(text);
    }

    /// Ends the text of the open element, if there is one.
    pub(super) fn end_text(&mut self) {
        self.give_texts(|texts| texts.end());
    }

    fn give_texts(&mut self, take: impl Fn(&mut HeldLinks) -> Vec<Link>) {
        for link in take(&mut self.texts) {
            self.give(link);
        }
    }

    /// Resolves the base that an element sets at `span` of the text against the base `outer` of the element around it. Returns
    /// its index, or [`LONG_BASE`]. If there are bytes in it that are not text, the element has the base `outer`.
    pub(super) fn push_base(&mut self, outer: usize, reference: &[u8], span: Range<usize>) -> usize {
        if self.base_places.find_malformed(span.start, span.end).is_some() {
            return outer;
        }
        let reference = &to_nfc(self.text, reference)[..];
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

/// Returns the name of an element, or the value of `rel`, for links. Bytes that are not UTF-8 become escapes, as in all columns.
pub(super) fn short_name(name: &[u8]) -> String {
    escape_invalid_utf8(truncated(name, MAX_NAME_LEN)).into_owned()
}

/// A defect after which a parser cannot continue.
pub(super) struct ParserStop {
    pub(super) kind: DefectKind,
    /// Position in the text.
    pub(super) position: usize,
    pub(super) detail: String,
}

/// Resolves a reference against a base, if the base is absolute; otherwise returns the reference.
fn join(base: &[u8], reference: &[u8]) -> Vec<u8> {
    if find_scheme(reference).is_some() || base.is_empty() {
        return reference.to_vec();
    }
    Base::new(base).and_then(|base| base.resolve(reference)).unwrap_or_else(|_| reference.to_vec())
}

/// Finds the base that a document found at `base` declares by a `base` element; `parse` runs its parser.
pub(super) fn find_html_base(
    text: &DocumentText<'_>,
    base: &[u8],
    parse: impl FnOnce(&mut LinkSink<'_>),
) -> Option<HtmlBase> {
    let mut sink = LinkSink::new(text, base, false, LinkGoal::FindBase);
    parse(&mut sink);
    sink.found_base
}

/// Replaces [`LONG_BASE`]: an absolute reference does not need the base, and a relative one becomes a defect.
fn remove_long_base(link: &mut Link) {
    link.base = 0;
    if link.defect.is_none() && find_scheme(&link.url).is_none() {
        link.url.clear();
        link.defect = Some((DefectKind::LongBase, link.offset));
    }
}

/// The base that a `base` element of a document found at `outer` sets: `Some(None)` if it is too long; `None` if it cannot be
/// set, as [`may_be_html_base`] decides.
fn resolve_html_base(outer: &[u8], reference: &[u8]) -> Option<Option<Vec<u8>>> {
    let max_len = MAX_BASE_LEN.max(outer.len());
    if reference.len() > max_len {
        return Some(None);
    }
    let base = join(outer, reference);
    let is_long = base.len() > max_len;
    may_be_html_base(&base).then_some(Some(base).filter(|_| !is_long))
}

/// Normalizes a reference to NFC if the charset of the document is not a Unicode one (RFC 3987 section 3.1, step 1b).
fn to_nfc(text: &DocumentText<'_>, reference: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(reference).ok().filter(|_| !text.charset.is_unicode()).and_then(nfc_of) {
        Some(text) => text.into_bytes(),
        None => reference.to_vec(),
    }
}
