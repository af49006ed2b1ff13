//! Small documents and arbitrary bytes: the links that are found, their bases, and the defects that are reported.

use proptest::prelude::*;

use super::*;
use crate::encoding::Charset;

fn read(bytes: &[u8], markup: Markup) -> Document {
    extract(
        bytes,
        &DocumentContext { markup: Some(markup), base: Some(b"http://d/x/y".to_vec()), ..DocumentContext::default() },
    )
}

/// `element attribute url base`, with the name of the defect in place of the URL if there is one.
fn shown(document: &Document) -> Vec<String> {
    let show = |link: &Link| {
        let url =
            link.defect.map_or(String::from_utf8_lossy(&link.url).into_owned(), |(kind, _)| kind.name().to_string());
        let base = String::from_utf8_lossy(&document.bases[link.base]);
        format!("{} {} {url} {base}", link.element, link.attribute)
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

#[test]
fn html_attributes_are_found_on_their_elements() {
    let cases: [(&str, &[&str]); 18] = [
        ("<a href=' x '>", &["a href x http://d/x/y"]),
        ("<A HREF=x>", &["a href x http://d/x/y"]),
        ("<a href>", &["a href  http://d/x/y"]),
        ("<a href='x' href='y'>", &["a href x http://d/x/y"]),
        (
            "<img src=a srcset='b 1x, c 2x'>",
            &["img src a http://d/x/y", "img srcset b http://d/x/y", "img srcset c http://d/x/y"],
        ),
        ("<form action=a><button formaction=b>", &["form action a http://d/x/y", "button formaction b http://d/x/y"]),
        ("<blockquote cite=a><q cite=b><p cite=c>", &["blockquote cite a http://d/x/y", "q cite b http://d/x/y"]),
        ("<object data=a><video poster=b><td data=c>", &["object data a http://d/x/y", "video poster b http://d/x/y"]),
        ("<svg><use xlink:href='#a'/>", &["use xlink:href #a http://d/x/y"]),
        ("<meta http-equiv=Refresh content='0; url=a'>", &["meta content a http://d/x/y"]),
        ("<meta name=description content='0; url=a'>", &[]),
        ("<!-- <a href=x> --><script>'<a href=x>'</script><title><a href=x></title>", &[]),
        ("<noscript><img src=a></noscript>", &["img src a http://d/x/y"]),
        ("<a href='&amp;eacute;&#x26;&eacute;&notanentity;'>", &["a href &eacute;&é&notanentity; http://d/x/y"]),
        ("<a href=x></a href=y>", &["a href x http://d/x/y"]),
        (
            "<a href='/a'><base href='../b/'><a href=c><base href='z/'>",
            &[
                "a href /a http://d/b/",
                "base href ../b/ http://d/x/y",
                "a href c http://d/b/",
                "base href z/ http://d/b/",
            ],
        ),
        ("<base href='data:x'><a href=c>", &["base href data:x http://d/x/y", "a href c http://d/x/y"]),
        ("<a ping='x  y'>", &["a ping x http://d/x/y", "a ping y http://d/x/y"]),
    ];
    for (text, expected) in cases {
        assert_eq!(html(text), expected, "{text}");
    }
}

#[test]
fn xml_attributes_are_found_with_nested_bases() {
    let xlink = r#"xmlns:l="http://www.w3.org/1999/xlink""#;
    let cases: [(String, &[&str]); 9] = [
        ("<a href=' x '/>".into(), &["a href x http://d/x/y"]),
        (format!("<a {xlink} l:href='x' l:title='y'/>"), &["a xlink:href x http://d/x/y"]),
        ("<a n:href='x'/>".into(), &[]),
        (
            "<a xml:base='b/' href='c'><d xml:base='/e/'><f href='g'/></d><h href='i'/></a>".into(),
            &[
                "a xml:base b/ http://d/x/y",
                "a href c http://d/x/b/",
                "d xml:base /e/ http://d/x/b/",
                "f href g http://d/e/",
                "h href i http://d/x/b/",
            ],
        ),
        (
            "<a xmlns='http://www.w3.org/1999/xhtml' cite='no'><q cite='yes'/><img srcset='a 1x,b'/></a>".into(),
            &["q cite yes http://d/x/y", "img srcset a http://d/x/y", "img srcset b http://d/x/y"],
        ),
        ("<a href='&amp;amp;&#x44F;&#1103;'/>".into(), &["a href &amp;яя http://d/x/y"]),
        ("<a href='&nbsp;x'/>".into(), &["a href character-reference http://d/x/y"]),
        ("<a href='&#xD800;'/>".into(), &["a href character-reference http://d/x/y"]),
        (
            "<x i:schemaLocation='urn:a a.xsd' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'/>".into(),
            &["x schemaLocation a.xsd http://d/x/y"],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(xml(&text), expected, "{text}");
    }
}

/// A document, the charset of its transport, the charset in which it is read, the defects.
type ChoiceCase = (&'static [u8], Option<Charset>, &'static str, &'static [DefectKind]);

/// A document, the number of its links, its defects and where they are.
type EndCase = (&'static [u8], Markup, usize, &'static [(DefectKind, u64)]);

#[test]
fn byte_order_mark_transport_and_declaration_have_this_priority() {
    let given = Charset::named("koi8-r");
    let cases: [ChoiceCase; 15] = [
        (b"<a href=x>", None, "UTF-8", &[]),
        (b"<a href=x>", given, "KOI8-R", &[]),
        (b"<meta charset=windows-1251>", None, "windows-1251", &[]),
        (b"<meta charset=windows-1251>", given, "KOI8-R", &[]),
        (b"<META http-equiv='Content-Type' content='text/html; charset = \"Shift_JIS\"'>", None, "Shift_JIS", &[]),
        (b"<meta http-equiv=content-type content=text/html><meta charset=gb18030>", None, "gb18030", &[]),
        (b"<!-- <meta charset=gb18030> -->", None, "UTF-8", &[]),
        (b"<meta charset=utf-16>", None, "UTF-8", &[]),
        (b"<meta charset=klingon>", None, "UTF-8", &[DefectKind::UnknownCharset]),
        (b"\xEF\xBB\xBF<meta charset=gb18030>", None, "UTF-8", &[DefectKind::ContradictingCharset]),
        (b"\xFF\xFE<\0a\0", given, "UTF-16LE", &[DefectKind::ContradictingCharset]),
        (b"\xFE\xFF\0<\0?\0x\0m\0l", None, "UTF-16BE", &[]),
        (b"<\0?\0x\0m\0l\0", None, "UTF-16LE", &[]),
        (b"<?xml version='1.0' encoding='ISO-8859-2'?><a/>", None, "ISO-8859-2", &[]),
        (b"<?xml version='1.0' encoding='UTF-16'?><a/>", None, "UTF-8", &[DefectKind::ContradictingCharset]),
    ];
    for (bytes, charset, name, expected) in cases {
        let document = extract(bytes, &DocumentContext { charset, ..DocumentContext::default() });
        let kinds: Vec<_> =
            document.defects.iter().map(|defect| defect.kind).filter(|kind| !kind.ends_document()).collect();
        assert_eq!((document.charset.name(), kinds.as_slice()), (name, expected), "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn every_replacement_is_reported() {
    let koi = "<a href='ok'><a href='";
    let bytes = [b"<meta charset=shift_jis>", koi.as_bytes(), b"\x83\x86\x82'><p>\x82</p>"].concat();
    let document = read(&bytes, Markup::Html);
    assert_eq!(shown(&document)[1], "a href undecodable http://d/x/y");
    assert_eq!(document.links[1].defect, Some((DefectKind::Undecodable, 48)));
    assert_eq!(defects(&document), [(DefectKind::Undecodable, 48, 2)]);
    for broken in ["&#xD800;", "&#0;", "&#x110000;", "\0"] {
        let document =
            read(format!("<a href='y'><a title='{broken}' href='x{broken}' src=z>").as_bytes(), Markup::Html);
        let links = shown(&document);
        assert_eq!(links[0], "a href y http://d/x/y");
        assert_eq!(links[1], "a href character-reference http://d/x/y", "{broken}");
        assert_eq!(links[2], "a src z http://d/x/y", "{broken}");
    }
}

#[test]
fn malformed_bytes_of_a_utf8_page_stay() {
    let document = read(b"<a href='caf\xE9'>", Markup::Html);
    assert_eq!((document.links[0].url.as_slice(), document.links[0].defect), (&b"caf\xE9"[..], None));
    assert_eq!(defects(&document), [(DefectKind::Undecodable, 12, 1)]);
    let document = read(b"<a href='caf\xE9'/>", Markup::Xml);
    assert_eq!(document.links[0].defect, Some((DefectKind::Undecodable, 12)));
}

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

#[test]
fn a_value_may_have_ten_megabytes() {
    let value = "y".repeat(10 << 20);
    let document = read(format!("<a href='{value}'>").as_bytes(), Markup::Html);
    assert_eq!(document.links[0].url.len(), value.len());
    let document = read(format!("<a href='{value}'/>").as_bytes(), Markup::Xml);
    assert_eq!(document.links[0].url.len(), value.len());
}

const TAGS: &str = "[ -~é\u{0}\u{FFFD}я<>='\"&;/#!?\\n-]{0,60}|(<(a|base|meta|\\?xml|!DOCTYPE|script|/a) (href|src|srcset|charset|encoding|xml:base|http-equiv)=['\"]?[a-z&#;x0-9 ,é]{0,9}['\"]?/?>){0,6}";

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
            let document = extract(bytes, &DocumentContext { markup: Some(markup), charset, ..DocumentContext::default() });
            for link in &document.links {
                prop_assert!(link.offset <= bytes.len() as u64 && link.base < document.bases.len());
                prop_assert!(link.defect.is_none_or(|(_, at)| at <= bytes.len() as u64 && link.url.is_empty()));
            }
            prop_assert!(document.links.is_sorted_by_key(|link| link.offset));
            prop_assert!(document.defects.iter().all(|defect| defect.at <= bytes.len() as u64 && defect.count > 0));
        }
    }
}

#[test]
fn long_bases_are_defects_of_relative_references() {
    let base = |len: usize| format!("http://{}/", "a".repeat(len - 8));
    for (len, url) in [(links::MAX_BASE_LEN, "y"), (links::MAX_BASE_LEN + 1, "long-base")] {
        let markup = format!("<base href='{}'><a href=y><a href=http://z/>", base(len));
        let (document, page) = (read(markup.as_bytes(), Markup::Html), "http://d/x/y");
        let shown_base = if url == "y" { base(len) } else { page.to_string() };
        assert_eq!(
            shown(&document)[1..],
            [format!("a href {url} {shown_base}"), format!("a href http://z/ {shown_base}")]
        );
        let expected: &[_] = if url == "y" { &[] } else { &[(DefectKind::LongBase, len as u64 + 22, 1)] };
        assert_eq!(defects(&document), expected);
        let markup = format!("<a xml:base='{}'><b xml:base='z/' href='y'/><b href='http://z/'/></a>", base(len - 2));
        let document = read(markup.as_bytes(), Markup::Xml);
        let inner = if url == "y" { format!("{}z/", base(len - 2)) } else { page.to_string() };
        assert_eq!(shown(&document)[2], format!("b href {url} {inner}"));
        assert_eq!(document.links[3].url, b"http://z/");
    }
}

#[test]
fn nested_bases_have_bounded_memory() {
    let markup = "<a xml:base='xxxxxxxxxxxxxxxx/'>".repeat(60_000);
    let document = read(markup.as_bytes(), Markup::Xml);
    assert!(document.bases.iter().map(Vec::len).sum::<usize>() < 64 << 20);
    assert_eq!(document.links.len(), 60_000);
    let kinds: Vec<_> = document.defects.iter().map(|defect| defect.kind).collect();
    assert_eq!(kinds, [DefectKind::LongBase, DefectKind::Truncated]);
}

#[test]
fn long_element_names_are_truncated() {
    let markup = format!("<{} href='y'/>", "e".repeat(5_000));
    assert_eq!(read(markup.as_bytes(), Markup::Xml).links[0].element.len(), 1 << 10);
}

#[test]
fn documents_with_too_many_references_are_bounded() {
    let count = attributes::MAX_LINKS;
    for (text, first_len) in [
        ("<a href>".repeat(count + 5), count),
        (format!("<a href=x><a ping='{}'><a href>", "a ".repeat(count + 5)), count),
        (format!("<img srcset='{}'>", "a 1x, ".repeat(count + 5)), count),
        (format!("<?xml version='1.0'?><a>{}", "<b href='x'/>".repeat(count + 5)), count),
    ] {
        let document = extract(text.as_bytes(), &DocumentContext::default());
        assert_eq!(document.links.len(), first_len);
        let kinds: Vec<_> = document.defects.iter().map(|defect| defect.kind).collect();
        assert_eq!(kinds, [DefectKind::TooManyReferences]);
    }
    let document = extract("<a href>".repeat(count).as_bytes(), &DocumentContext::default());
    assert_eq!((document.links.len(), document.defects.len()), (count, 0));
}
