//! Extracts the IRIs of documents, each with its base: HTML, XML (feeds and sitemaps among them), JSON Feed,
//! `robots.txt`, lists.
//!
//! HTML is read by the tokenizer of the HTML Standard (crate html5gum), XML by the crate quick-xml. The charset and the
//! base that a document declares are used (RFC 3987 section 3.1 step 1, RFC 3986 section 5.1.1, XML Base). References are
//! not resolved, normalized or checked.
//!
//! ```text
//! bytes --charset--> DocumentText --html | xml | lines | json_feed--> LinkAttribute --LinkSink--> Link
//!                                    | feeds: elements whose content is a reference
//! ```
//!
//! Links are given to the caller as they are found (`extract_each`): the memory of a document is bounded by its length.
//! Bytes that are not text, invalid character references and undeclared entities are not replaced: they give a link with
//! a defect and without a URL. No scripts run, no DTD is loaded, and no entity is expanded except the five of XML.

mod attributes;
mod charset;
mod content_tracker;
mod document;
mod feeds;
mod headers;
mod html;
mod json_feed;
mod lines;
mod link_text;
mod links;
mod paused_reader;
mod similarity;
#[cfg(test)]
mod tests;
mod xml;

pub use document::{DefectKind, Document, DocumentContext, DocumentDefect, Link, Markup};

pub(crate) use charset::{document_head, utf16_of_xml};
use document::{CharsetChoice, DocumentText, ReadDocument};
pub(crate) use headers::{HTTP_ELEMENT, HeaderField, for_each_header_link};
pub(crate) use links::LinkScope;
use links::{HtmlBase, LinkConsumer, LinkGoal, LinkSink, find_html_base};
pub(crate) use similarity::similarity_hash;

/// Extracts the links of a document.
///
/// ```
/// use irikey::extract::{DocumentContext, extract};
/// let page = b"<meta charset=windows-1251><base href='http://example.org/a/'><a href='\xFF.html'>";
/// let document = extract(page, &DocumentContext::default());
/// let link = &document.links[1];
/// assert_eq!((link.url.as_slice(), document.charset.name()), ("\u{44F}.html".as_bytes(), "windows-1251"));
/// assert_eq!(document.bases[link.base], b"http://example.org/a/");
/// ```
pub fn extract(bytes: &[u8], context: &DocumentContext) -> Document {
    let (mut links, mut bases) = (Vec::new(), vec![context.base.clone().unwrap_or_default()]);
    let ReadDocument { markup, charset, defects } = extract_each(bytes, context, &mut |link, scope| {
        links.push(link);
        if bases.len() < scope.bases.len() {
            bases.extend_from_slice(&scope.bases[bases.len()..]);
        }
        true
    });
    Document { markup, charset, bases, links, defects }
}

/// Extracts the links of a document and calls `consumer` with each one, until it returns false.
pub(crate) fn extract_each(bytes: &[u8], context: &DocumentContext, consumer: LinkConsumer<'_>) -> ReadDocument {
    let mut choice = charset::choose(bytes, context);
    let mut defects = std::mem::take(&mut choice.defects.0);
    let text = DocumentText::new(bytes, &choice);
    let base = context.base.as_deref().unwrap_or_default();
    if let Some((count, at)) = text.malformed {
        let detail = format!("the bytes there are not text in {}", choice.charset.name());
        defects.push(DocumentDefect { kind: DefectKind::Undecodable, at, count, detail });
    }
    let html_base = declared_base(&text, &choice, base);
    let mut sink = LinkSink::new(&text, base, context.text, LinkGoal::GiveLinks(html_base, consumer));
    parse(&text, &choice, &mut sink);
    sink.finish();
    defects.append(&mut sink.defects.0);
    ReadDocument { markup: choice.markup, charset: choice.charset, defects }
}

impl Markup {
    /// The markup of a text in ASCII or UTF-8, by its first bytes.
    pub(crate) fn of_content(text: &[u8]) -> Markup {
        charset::detect_markup(text, None)
    }
}

/// Runs the parser of a document.
fn parse(text: &DocumentText<'_>, choice: &CharsetChoice, sink: &mut LinkSink<'_>) {
    match choice.markup {
        Markup::Html => html::read(text.text(), sink),
        // The text of an XML document is always UTF-8: see `DocumentText::new`.
        Markup::Xml => xml::read(std::str::from_utf8(text.text()).unwrap_or_default(), sink),
        Markup::Robots => lines::read_robots(text.text(), sink),
        Markup::Urls => lines::read_urls(text.text(), sink),
        Markup::JsonFeed => json_feed::read(text.text(), sink),
    }
}

/// The base that a `base` element of HTML or XHTML declares. Most documents have none, and are not parsed for it.
fn declared_base(text: &DocumentText<'_>, choice: &CharsetChoice, base: &[u8]) -> Option<HtmlBase> {
    let contains = |part: &str| memchr::memmem::find(text.text(), part.as_bytes()).is_some();
    let has_base = match choice.markup {
        Markup::Html => charset::find_ignoring_case(text.text(), b"<base").is_some(),
        // Sitemaps use the namespace for links to translations.
        Markup::Xml => contains(attributes::XHTML) && (contains("<base") || contains(":base")),
        Markup::Robots | Markup::Urls | Markup::JsonFeed => false,
    };
    has_base.then(|| find_html_base(text, base, |sink| parse(text, choice, sink)))?
}
