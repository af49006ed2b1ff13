//! Extracts the IRIs of HTML and XML documents, each with its base.
//!
//! HTML is read by the tokenizer of the HTML Standard (crate html5gum), XML by the crate quick-xml. The charset and the
//! base that a document declares are used (RFC 3987 section 3.1 step 1, RFC 3986 section 5.1.1, XML Base). References are
//! not resolved, normalized or checked.
//!
//! ```text
//! bytes --charset--> DocumentText --html | xml--> LinkAttributes --links--> Link { url, base, element, attribute, offset }
//! ```
//!
//! Bytes that are not text, a reference to no character and an undeclared entity are not replaced: they give a link with
//! a defect and without a URL. No scripts run, no DTD is loaded, and no entity is expanded except the five of XML.

mod attributes;
mod charset;
mod document;
mod html;
mod links;
#[cfg(test)]
mod tests;
mod xml;

pub use document::{DefectKind, Document, DocumentContext, DocumentDefect, Link, Markup};

use document::{DefectList, DocumentText};

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
    let mut choice = charset::choose(bytes, context);
    let mut defects = DefectList(std::mem::take(&mut choice.defects));
    let text = DocumentText::new(bytes, &choice);
    for bad in &text.malformed {
        defects.add(DefectKind::Undecodable, (bad.at + choice.mark_len) as u64, || {
            format!("the bytes there are not text in {}", choice.charset.name())
        });
    }
    let base = context.base.clone().unwrap_or_default();
    let attributes = match choice.markup {
        Markup::Html => html::read(&text),
        Markup::Xml => xml::read(&text, &base),
    };
    let (bases, links) = links::make_links(&text, attributes, base, &mut defects);
    Document { markup: choice.markup, charset: choice.charset, bases, links, defects: defects.0 }
}
