//! Small documents and arbitrary bytes: the links that are found, their bases, and the defects that are reported.

mod attributes;
mod charsets;
mod formats;
mod limits;

use proptest::prelude::*;

use super::*;
use crate::encoding::Charset;

fn read(bytes: &[u8], markup: Markup) -> Document {
    extract(
        bytes,
        &DocumentContext { markup: Some(markup), base: Some(b"http://d/x/y".to_vec()), ..DocumentContext::default() },
    )
}

/// The URL, or the name of the defect if there is one.
fn url_or_defect(link: &Link) -> String {
    link.defect.map_or(String::from_utf8_lossy(&link.url).into_owned(), |(kind, _)| kind.name().to_string())
}

/// `element attribute url base`
fn shown(document: &Document) -> Vec<String> {
    let show = |link: &Link| {
        let base = String::from_utf8_lossy(&document.bases[link.base]);
        format!("{} {} {} {base}", link.element, link.attribute, url_or_defect(link))
    };
    document.links.iter().map(show).collect()
}

fn html(text: &str) -> Vec<String> {
    shown(&read(text.as_bytes(), Markup::Html))
}

fn xml(text: &str) -> Vec<String> {
    shown(&read(text.as_bytes(), Markup::Xml))
}

fn defects(document: &Document) -> Vec<(DefectKind, u64, u64)> {
    document.defects.iter().map(|defect| (defect.kind, defect.at, defect.count)).collect()
}

/// `element attribute rel url`
fn with_rel(text: &str, markup: Markup) -> Vec<String> {
    let show = |link: &Link| format!("{} {} {} {}", link.element, link.attribute, link.rel, url_or_defect(link));
    read(text.as_bytes(), markup).links.iter().map(show).collect()
}

#[test]
fn markup_is_recognized() {
    let cases: [(&str, Markup); 14] = [
        ("<?xml version='1.0'?><a/>", Markup::Xml),
        ("\n<?xml version='1.0'?><!-- c --><!DOCTYPE html><html>", Markup::Html),
        ("<?xml version='1.0'?><!DOCTYPE html PUBLIC 'x'>\n<HTML xmlns='x'>", Markup::Html),
        ("<!DOCTYPE html><a>", Markup::Html),
        ("<urlset xmlns='x'>", Markup::Xml),
        ("<!-- c --><rss version='2.0'>", Markup::Xml),
        ("<feed>", Markup::Xml),
        ("<rdf:RDF >", Markup::Xml),
        ("<feedback>", Markup::Html),
        ("User-agent: *", Markup::Robots),
        ("# c\n\nSitemap: http://a/", Markup::Robots),
        ("http://a/b\nc", Markup::Urls),
        ("http://a/b c", Markup::Html),
        ("", Markup::Html),
    ];
    for (text, markup) in cases {
        assert_eq!(extract(text.as_bytes(), &DocumentContext::default()).markup, markup, "{text}");
    }
}

/// A document, the number of its links, its defects and where they are.
type EndCase = (&'static [u8], Markup, usize, &'static [(DefectKind, u64)]);

#[test]
fn truncated_documents_are_reported() {
    let cases: [EndCase; 6] = [
        (b"<a href=x><a href='y", Markup::Html, 1, &[(DefectKind::Truncated, 10)]),
        (b"<a href=x><!-- ", Markup::Html, 1, &[]),
        (b"<a href='x'><b href='y'", Markup::Xml, 1, &[(DefectKind::IllFormed, 12)]),
        (b"<a href='x'><b href='y'/>", Markup::Xml, 2, &[(DefectKind::Truncated, 25)]),
        (b"<a href='x'></b><c href='z'/>", Markup::Xml, 1, &[(DefectKind::IllFormed, 12)]),
        (b"", Markup::Xml, 0, &[]),
    ];
    for (bytes, markup, links, expected) in cases {
        let document = read(bytes, markup);
        let found: Vec<_> = document.defects.iter().map(|defect| (defect.kind, defect.at)).collect();
        assert_eq!((document.links.len(), found.as_slice()), (links, expected), "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn offsets_count_bytes_of_the_document() {
    let text = "\u{FEFF}<p>\u{1F600}é</p><a href='é'><img src=x>";
    let places = |document: &Document| document.links.iter().map(|link| link.offset).collect::<Vec<_>>();
    let at = |value: &str| text.find(value).unwrap();
    assert_eq!(places(&read(text.as_bytes(), Markup::Html)), [at("é'") as u64, at("x>") as u64]);
    let sixteen: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let in_units = |value: &str| 2 * text[..at(value)].encode_utf16().count() as u64;
    assert_eq!(places(&read(&sixteen, Markup::Html)), [in_units("é'"), in_units("x>")]);
}

/// Characters of markup; tags of elements that matter; links with bases.
const TAGS: &str = concat!(
    "[ -~é\u{0}\u{FFFD}я<>='\"&;/#!?\\n-]{0,60}",
    "|(<(a|base|meta|\\?xml|!DOCTYPE|script|/a) (href|src|srcset|charset|encoding|xml:base|http-equiv)=",
    "['\"]?[a-z&#;x0-9 ,é]{0,9}['\"]?/?>){0,6}",
    "|(é?<(a|base) (href|xml:base)='[a-z/.& é]{0,9}'/?>){1,6}",
);

proptest! {
    #[test]
    fn arbitrary_bytes_are_read(
        text in TAGS,
        noise in proptest::collection::vec(any::<u8>(), 0..40),
        label in proptest::option::of("utf-8|utf-16|shift_jis|gb18030|windows-1258|iso-2022-jp"),
        is_xml in any::<bool>(),
    ) {
        let bytes = [noise.as_slice(), text.as_bytes(), &noise].concat();
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let markup = if is_xml { Markup::Xml } else { Markup::Html };
            let charset = label.as_deref().and_then(Charset::named);
            let base = Some(b"http://d/x/y".to_vec());
            let document = extract(bytes, &DocumentContext { markup: Some(markup), charset, base, ..DocumentContext::default() });
            // Every base but the first is the target of a link that declares a base.
            let targets: Vec<_> = document.links.iter().filter(|link| link.element == "base" || link.attribute == "xml:base").map(|link| {
                let base = crate::iri::Base::new(&document.bases[link.base]);
                base.and_then(|base| base.resolve(&link.url)).unwrap_or_else(|_| link.url.clone())
            }).collect();
            prop_assert!(document.bases[1..].iter().all(|base| targets.contains(base)), "{:?} {:?}", document.bases, targets);
            for link in &document.links {
                prop_assert!(link.offset <= bytes.len() as u64 && link.base < document.bases.len());
                prop_assert!(link.defect.is_none_or(|(_, at)| at <= bytes.len() as u64 && link.url.is_empty()));
                // The URL is in the document at its offset, if it has no character references and line ends.
                let rest = document.charset.transcode_document(&bytes[link.offset as usize..]).text;
                let begin: Vec<u8> = rest.trim_ascii_start().bytes().take(link.url.len()).collect();
                let is_literal = link.url.is_ascii() && begin.iter().all(|byte| *byte >= b' ' && *byte != b'&');
                let is_one = matches!(link.attribute, "href" | "src" | "xml:base");
                prop_assert!(!is_literal || !is_one || begin == link.url, "{:?} {:?}", link, rest);
            }
            prop_assert!(document.links.is_sorted_by_key(|link| link.offset));
            prop_assert!(document.defects.iter().all(|defect| defect.at <= bytes.len() as u64 && defect.count > 0));
        }
    }
}
