//! Documents in, the IRIs in them out, each with its base: HTML by the HTML Standard's tokenizer (crate html5gum), XML by
//! crate quick-xml. What an XML or HTML file says of its charset and base is followed (RFC 3987 section 3.1 step 1,
//! RFC 3986 section 5.1.1, XML Base); nothing is resolved, normalised or checked here.
//!
//! ```text
//! bytes --charset--> text --html | xml--> attributes --links--> Link { url, base, element, attribute, offset }
//! ```
//!
//! Refuses to guess: what is no text, a character reference to no character, an entity that nobody declared, make a row
//! with a defect and no URL. Runs no scripts, loads no DTD, expands no entity but the five of XML.

mod attributes;
mod charset;
mod html;
mod links;
mod lists;
#[cfg(test)]
mod tests;
mod xml;

use std::fmt;

use crate::encoding::{Charset, Malformed};

/// How a document is marked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Markup {
    /// HTML, also where it says to be XHTML and is served as HTML.
    Html,
    /// XML and all that is written in it.
    Xml,
}

/// What is known of a document besides its bytes.
#[derive(Clone, Debug)]
pub struct Context {
    /// Its markup; found out by looking where it is not said.
    pub markup: Option<Markup>,
    /// Its charset as its transport named it; weaker than a byte order mark, stronger than what the document says.
    pub charset: Option<Charset>,
    /// The charset where nobody names one.
    pub default_charset: Charset,
    /// Where it was found: an absolute IRI.
    pub base: Option<Vec<u8>>,
}

impl Default for Context {
    fn default() -> Context {
        Context { markup: None, charset: None, default_charset: Charset::UTF_8, base: None }
    }
}

/// A reference that a document holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The reference in UTF-8, white space around it removed; in NFC where the document's charset is not a Unicode one.
    /// Bytes of an HTML document in UTF-8 that are not UTF-8 stay as they are. Empty where there is a defect.
    pub url: Vec<u8>,
    /// What it is relative to: an entry of [`Document::bases`].
    pub base: usize,
    /// Name of the element, without prefix; HTML's in lower case.
    pub element: String,
    /// Name of the attribute, without prefix except for `xml:` and `xlink:`.
    pub attribute: &'static str,
    /// Byte of the document at which the attribute's value begins.
    pub offset: u64,
    /// Why there is no URL, and the byte of the document where that shows.
    pub defect: Option<(DefectKind, u64)>,
}

/// What is wrong with a document or a link in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefectKind {
    /// Bytes that are no text in the document's charset.
    Undecodable,
    /// A reference to a character that does not exist, or to an entity that is not declared.
    CharacterReference,
    /// The document names a charset that nobody knows.
    UnknownCharset,
    /// The document's byte order mark and what its transport or itself says of its charset contradict each other.
    ContradictingCharset,
    /// The document ends within a tag.
    Truncated,
    /// The document is not well-formed XML; what follows was not read.
    IllFormed,
}

impl DefectKind {
    /// Every kind.
    pub const ALL: [DefectKind; 6] = [
        DefectKind::Undecodable,
        DefectKind::CharacterReference,
        DefectKind::UnknownCharset,
        DefectKind::ContradictingCharset,
        DefectKind::Truncated,
        DefectKind::IllFormed,
    ];

    /// The name in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            DefectKind::Undecodable => "undecodable",
            DefectKind::CharacterReference => "character-reference",
            DefectKind::UnknownCharset => "unknown-charset",
            DefectKind::ContradictingCharset => "contradicting-charset",
            DefectKind::Truncated => "truncated",
            DefectKind::IllFormed => "ill-formed",
        }
    }

    /// Part of the document was not read because of it.
    pub const fn ends_document(self) -> bool {
        matches!(self, DefectKind::Truncated | DefectKind::IllFormed)
    }
}

/// Something wrong with a document: once for each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// What.
    pub kind: DefectKind,
    /// Byte of the document where it shows first.
    pub at: u64,
    /// How often.
    pub count: u64,
    /// What was found, for a person.
    pub detail: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.detail)?;
        if self.count > 1 { write!(f, " (and {} more)", self.count - 1) } else { Ok(()) }
    }
}

/// What was found in a document.
#[derive(Clone, Debug)]
pub struct Document {
    /// How it was read.
    pub markup: Markup,
    /// In which charset it was read.
    pub charset: Charset,
    /// The bases of its links; the first is that of the context. Empty where nobody names one.
    pub bases: Vec<Vec<u8>>,
    /// The references, in the order of the document.
    pub links: Vec<Link>,
    /// What is wrong with it, at most one of each kind.
    pub defects: Vec<Defect>,
}

/// The links of a document.
///
/// ```
/// use irikey::extract::{Context, extract};
/// let page = b"<meta charset=windows-1251><base href='http://example.org/a/'><a href='\xFF.html'>";
/// let read = extract(page, &Context::default());
/// let link = &read.links[1];
/// assert_eq!((link.url.as_slice(), read.charset.name()), ("\u{44F}.html".as_bytes(), "windows-1251"));
/// assert_eq!(read.bases[link.base], b"http://example.org/a/");
/// ```
pub fn extract(bytes: &[u8], context: &Context) -> Document {
    let choice = charset::choose(bytes, context);
    let mut defects = Defects(choice.defects);
    let body = Body::new(&bytes[choice.mark_len..], choice.mark_len, choice.charset, choice.markup);
    for bad in &body.malformed {
        defects.note(DefectKind::Undecodable, (bad.at + choice.mark_len) as u64, || {
            format!("the bytes there are no text in {}", choice.charset.name())
        });
    }
    let base = context.base.clone().unwrap_or_default();
    let found = match choice.markup {
        Markup::Html => html::read(&body),
        Markup::Xml => xml::read(&body, &base),
    };
    let (bases, links) = links::settle(&body, found, base, &mut defects);
    Document { markup: choice.markup, charset: choice.charset, bases, links, defects: defects.0 }
}

/// A document as its parser reads it.
struct Body<'a> {
    bytes: &'a [u8],
    /// Where `bytes` begin in the document: after its mark.
    at: usize,
    charset: Charset,
    /// Set where `bytes` are not what the parser reads.
    text: Option<String>,
    malformed: Vec<Malformed>,
}

impl<'a> Body<'a> {
    fn new(bytes: &'a [u8], at: usize, charset: Charset, markup: Markup) -> Body<'a> {
        let mut body = Body { bytes, at, charset, text: None, malformed: Vec::new() };
        if charset != Charset::UTF_8 || !crate::encoding::is_utf8(bytes) {
            let read = charset.transcode_document(bytes);
            body.malformed = read.malformed;
            // HTML in UTF-8 is read as it is: a URL with other bytes in it keeps them, as a line of a list does.
            body.text = (charset != Charset::UTF_8 || markup == Markup::Xml).then_some(read.text);
        }
        body
    }

    /// What the parser reads: UTF-8, but for HTML whose bytes are not.
    fn text(&self) -> &[u8] {
        self.text.as_ref().map_or(self.bytes, |text| text.as_bytes())
    }

    /// Offsets in the document of ascending places in the text.
    fn offsets(&self, places: &[usize]) -> Vec<u64> {
        let in_bytes = match self.text {
            Some(_) => self.charset.document_offsets(self.bytes, places),
            None => places.to_vec(),
        };
        in_bytes.into_iter().map(|offset| (offset + self.at) as u64).collect()
    }

    /// The first place of the text's `from..to` that was no text.
    fn find_malformed(&self, from: usize, to: usize) -> Option<u64> {
        self.text.as_ref()?;
        let first = self.malformed.partition_point(|bad| bad.text_at < from);
        self.malformed.get(first).filter(|bad| bad.text_at < to).map(|bad| (bad.at + self.at) as u64)
    }
}

/// One defect of each kind.
#[derive(Debug, Default)]
struct Defects(Vec<Defect>);

impl Defects {
    fn note(&mut self, kind: DefectKind, at: u64, detail: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|defect| defect.kind == kind) {
            Some(defect) => defect.count += 1,
            None => self.0.push(Defect { kind, at, count: 1, detail: detail() }),
        }
    }
}
