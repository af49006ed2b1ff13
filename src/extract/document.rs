//! What is known of a document before and after its links were extracted, and its text while they are.

use std::fmt;

use crate::encoding::{Charset, DocumentCursor, is_utf8};

/// The markup language of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Markup {
    /// HTML, also if it claims to be XHTML and is served as HTML.
    Html,
    /// XML and languages based on it: XHTML, SVG, feeds, sitemaps.
    Xml,
    /// `robots.txt` (RFC 9309), of which the `Sitemap` lines are references.
    Robots,
    /// One URL per line, such as a sitemap in text.
    Urls,
    /// JSON Feed.
    JsonFeed,
}

/// What is known of a document besides its bytes.
#[derive(Clone, Debug)]
pub struct DocumentContext {
    /// Its markup language; detected if `None`.
    pub markup: Option<Markup>,
    /// Its charset according to the transport. A byte order mark has priority over it, and it has priority over a
    /// declaration in the document.
    pub charset: Option<Charset>,
    /// The charset of documents that declare none.
    pub default_charset: Charset,
    /// The absolute IRI at which the document was found.
    pub base: Option<Vec<u8>>,
    /// Whether links have a text.
    pub text: bool,
}

impl Default for DocumentContext {
    fn default() -> DocumentContext {
        DocumentContext { markup: None, charset: None, default_charset: Charset::UTF_8, base: None, text: false }
    }
}

/// A reference in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The reference in UTF-8 without white space around it; in NFC if the charset of the document is not a Unicode one.
    /// Bytes of an HTML document in UTF-8 that are not UTF-8 stay as they are. Empty if there is a defect.
    pub url: Vec<u8>,
    /// Its base: an index in [`Document::bases`].
    pub base: usize,
    /// Name of the element without prefix; in lower case in HTML.
    pub element: String,
    /// Name of the attribute, without prefix except for `xml:` and `xlink:`. Empty if the reference is the content of the
    /// element.
    pub attribute: &'static str,
    /// What the reference is for the document: the attribute `rel` of the element as it is written; in feeds, sitemaps and
    /// `robots.txt` a word for the meaning of the element, such as `sitemap`, `image` or `identifier`. May be empty.
    pub rel: String,
    /// Text of an `a` element without markup, white space collapsed and at most 1 KiB long; the attribute `alt` of others.
    /// Empty if there is none or it was not requested.
    pub text: String,
    /// Byte of the document at which the value of the attribute or the content begins.
    pub offset: u64,
    /// Why there is no URL, and the byte of the document where the defect is.
    pub defect: Option<(DefectKind, u64)>,
}

/// The kinds of defects of a document or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefectKind {
    /// Bytes that are not text in the charset of the document.
    Undecodable,
    /// A reference to a character that does not exist, or to an undeclared entity.
    CharacterReference,
    /// The document declares an unknown charset.
    UnknownCharset,
    /// The base that the document declares is too long, or the document declares too many: the relative references that it
    /// applies to cannot be resolved.
    LongBase,
    /// The byte order mark contradicts the charset that the transport or the document declares.
    ContradictingCharset,
    /// The document ends within a tag or an element.
    Truncated,
    /// The document is not well-formed XML; the rest was not read.
    IllFormed,
}

impl DefectKind {
    /// The name in outputs.
    pub const fn name(self) -> &'static str {
        match self {
            DefectKind::Undecodable => "undecodable",
            DefectKind::CharacterReference => "character-reference",
            DefectKind::UnknownCharset => "unknown-charset",
            DefectKind::LongBase => "long-base",
            DefectKind::ContradictingCharset => "contradicting-charset",
            DefectKind::Truncated => "truncated",
            DefectKind::IllFormed => "ill-formed",
        }
    }

    /// Whether a part of the document was not read because of the defect.
    pub(crate) const fn ends_document(self) -> bool {
        matches!(self, DefectKind::Truncated | DefectKind::IllFormed)
    }
}

/// All defects of one kind in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentDefect {
    /// The kind.
    pub kind: DefectKind,
    /// Byte of the document where the first one is.
    pub at: u64,
    /// How many there are.
    pub count: u64,
    /// A sentence about the first one.
    pub detail: String,
}

impl fmt::Display for DocumentDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.at, self.detail)?;
        match self.count {
            0 | 1 => Ok(()),
            2 => write!(f, " (and at 1 more place)"),
            count => write!(f, " (and at {} more places)", count - 1),
        }
    }
}

/// The links of a document.
#[derive(Clone, Debug)]
pub struct Document {
    /// The markup language as which it was read.
    pub markup: Markup,
    /// The charset in which it was read.
    pub charset: Charset,
    /// The bases of its links. The first one is that of the context; empty if there is none.
    pub bases: Vec<Vec<u8>>,
    /// The references, in the order of the document.
    pub links: Vec<Link>,
    /// Its defects, at most one entry per kind.
    pub defects: Vec<DocumentDefect>,
}

/// What is known of a document whose links were given to a consumer: see [`Document`].
pub(crate) struct ReadDocument {
    pub(crate) markup: Markup,
    pub(crate) charset: Charset,
    pub(crate) defects: Vec<DocumentDefect>,
}

/// How a document is read.
pub(super) struct CharsetChoice {
    pub(super) charset: Charset,
    /// Length of the byte order mark, which is not part of the text.
    pub(super) mark_len: usize,
    pub(super) markup: Markup,
    pub(super) defects: DefectList,
}

/// The text of a document as its parser reads it.
pub(super) struct DocumentText<'a> {
    bytes: &'a [u8],
    /// Offset of `bytes` in the document: the length of the byte order mark.
    at: usize,
    pub(super) charset: Charset,
    /// Set if the parser does not read `bytes` themselves.
    decoded: Option<String>,
    /// How many sequences of bytes are not text, and the offset of the first one in the document.
    pub(super) malformed: Option<(u64, u64)>,
}

impl<'a> DocumentText<'a> {
    pub(super) fn new(document: &'a [u8], choice: &CharsetChoice) -> DocumentText<'a> {
        let CharsetChoice { charset, mark_len: at, markup, .. } = *choice;
        let bytes = &document[at..];
        let mut text = DocumentText { bytes, at, charset, decoded: None, malformed: None };
        if charset != Charset::UTF_8 || !is_utf8(bytes) {
            // Other languages in UTF-8 are read as they are: a URL keeps bytes that are not UTF-8, as in a list of lines.
            let is_decoded = charset != Charset::UTF_8 || markup == Markup::Xml;
            let read = if is_decoded { charset.transcode_document(bytes) } else { charset.count_malformed(bytes) };
            let first = (read.first_malformed + at) as u64;
            text.malformed = (read.malformed_count > 0).then_some((read.malformed_count, first));
            text.decoded = is_decoded.then_some(read.text);
        }
        text
    }

    /// The text that the parser reads: UTF-8, except for documents that claim to be UTF-8 and are not.
    pub(super) fn text(&self) -> &[u8] {
        self.decoded.as_ref().map_or(self.bytes, |text| text.as_bytes())
    }

    /// Places at the beginning of the text.
    pub(super) fn places(&self) -> DocumentPlaces<'_> {
        let cursor = self.decoded.as_ref().map(|_| self.charset.document_cursor(self.bytes));
        DocumentPlaces { text: self.text(), at: self.at, cursor }
    }
}

/// Maps ascending positions in the text to offsets in the document.
pub(super) struct DocumentPlaces<'a> {
    text: &'a [u8],
    at: usize,
    /// Set if the text was decoded.
    cursor: Option<DocumentCursor<'a>>,
}

impl DocumentPlaces<'_> {
    /// The offset in the document of a position, not before that of the last call.
    pub(super) fn offset(&mut self, position: usize) -> u64 {
        let in_bytes = self.cursor.as_mut().map_or(position, |cursor| cursor.offset(position));
        (in_bytes + self.at) as u64
    }

    /// The offset in the document of the first bytes in `from..to` of the text that could not be decoded.
    pub(super) fn find_malformed(&mut self, from: usize, to: usize) -> Option<u64> {
        const REPLACEMENT: &[u8] = "\u{FFFD}".as_bytes();
        let cursor = self.cursor.as_mut()?;
        memchr::memmem::find(self.text.get(from..to)?, REPLACEMENT)?;
        cursor.find_malformed(from, to).map(|at| (at + self.at) as u64)
    }
}

/// Defects, one entry per kind.
#[derive(Debug, Default)]
pub(super) struct DefectList(pub(super) Vec<DocumentDefect>);

impl DefectList {
    pub(super) fn add(&mut self, kind: DefectKind, at: u64, detail: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|defect| defect.kind == kind) {
            Some(defect) => defect.count += 1,
            None => self.0.push(DocumentDefect { kind, at, count: 1, detail: detail() }),
        }
    }
}
