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

#[test]
fn only_the_first_base_with_an_address_counts() {
    let cases: [(&str, &str); 7] = [
        ("<base href='http://b/c/d'><base href='http://z/'>", "http://b/c/d"),
        ("<base href='c/'>", "http://d/x/c/"),
        ("<base href='//b/c'>", "http://b/c"),
        ("<base target=_top><base href='/e'>", "http://d/e"),
        ("<!-- <base href='/e'> --><script>'<base href=/f>'</script><BASE HREF=/g>", "http://d/g"),
        ("<base href='javascript:x'><base href='/e'>", "http://d/x/y"),
        ("<base href='&#0;'><base href='/e'>", "http://d/x/y"),
    ];
    for (text, base) in cases {
        assert_eq!(html(&format!("{text}<a href=k>")).pop().unwrap(), format!("a href k {base}"), "{text}");
        assert_eq!(html(&format!("<a href=k>{text}"))[0], format!("a href k {base}"), "{text}");
    }
    let xhtml = "<html xmlns='http://www.w3.org/1999/xhtml'><a href='k'/><base href='z/'/></html>";
    assert_eq!(xml(xhtml), ["a href k http://d/x/z/", "base href z/ http://d/x/y"]);
}

/// `element attribute rel url`
fn with_rel(text: &str, markup: Markup) -> Vec<String> {
    let show = |link: &Link| format!("{} {} {} {}", link.element, link.attribute, link.rel, url_or_defect(link));
    read(text.as_bytes(), markup).links.iter().map(show).collect()
}

#[test]
fn relations_of_links() {
    let text =
        "<link href=a rel='alternate  Stylesheet'><a href=b rel=nofollow rel=x><img src=c><form action=d rel=help>";
    let expected = ["link href alternate  Stylesheet a", "a href nofollow b", "img src  c", "form action help d"];
    assert_eq!(with_rel(text, Markup::Html), expected);
    let text = "<feed xmlns='http://www.w3.org/2005/Atom'><link rel='self' href='a'/><link href='b'/></feed>";
    assert_eq!(with_rel(text, Markup::Xml), ["link href self a", "link href  b"]);
}

#[test]
fn texts_of_links() {
    let texts = |text: &str, markup: Markup| -> Vec<(String, String)> {
        let context = DocumentContext { markup: Some(markup), text: true, ..DocumentContext::default() };
        let links = extract(text.as_bytes(), &context).links;
        links.into_iter().map(|link| (String::from_utf8(link.url).unwrap(), link.text)).collect()
    };
    let pair = |url: &str, text: &str| (url.to_string(), text.to_string());
    let text = "<p>no<a href=a ping=p> One <b>two</b>\n<img src=i alt='An &amp; image'>three&eacute;</a>no<a href=b>x<a href=c>y";
    let expected = [
        pair("a", "One two threeé"),
        pair("p", "One two threeé"),
        pair("i", "An & image"),
        pair("b", "x"),
        pair("c", "y"),
    ];
    assert_eq!(texts(text, Markup::Html), expected);
    let text = "<html xmlns='http://www.w3.org/1999/xhtml'><a href='a'>O<i>n</i>e &amp; <![CDATA[<two>]]></a>no<a href='b'/>no</html>";
    assert_eq!(texts(text, Markup::Xml), [pair("a", "One & <two>"), pair("b", "")]);
    let text = "<html xmlns='http://www.w3.org/1999/xhtml' xmlns:z='z'><a href='a'>One <br/><z:a/>two <z:a>three</z:a> \
                <img alt='An &amp; image' src='i'/>four</a>no<a href='b'>x<a href='c'>y</a></a></html>";
    let expected = [pair("a", "One two three four"), pair("i", "An & image"), pair("b", "x"), pair("c", "y")];
    assert_eq!(texts(text, Markup::Xml), expected);
    let long = format!("<a href=a>{}<a href=b>{}", "é ".repeat(1_000), "<img src=c>".repeat(3_000));
    let found = texts(&long, Markup::Html);
    assert_eq!((found.len(), found[0].1.len() <= 1 << 10, found[1].1.len()), (3_002, true, 0));
    assert!(found[0].1.starts_with("é é") && found[0].1.len() > 1_000);
}

#[test]
fn sitemaps() {
    let head = "<?xml version='1.0' encoding='UTF-8'?>";
    let names = "xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:i='http://www.google.com/schemas/sitemap-image/1.1' \
                 xmlns:v='http://www.google.com/schemas/sitemap-video/1.1' xmlns:x='http://www.w3.org/1999/xhtml'";
    let text = format!(
        "{head}<urlset {names}><url><loc> http://a/?b&amp;c </loc><lastmod>2024-01-01</lastmod>\
         <x:link rel='alternate' hreflang='de' href='http://a/de'/>\
         <i:image><i:loc>http://a/i.png</i:loc><i:license>http://a/l</i:license></i:image>\
         <v:video><v:thumbnail_loc>http://a/t</v:thumbnail_loc><v:title>no</v:title>\
         <v:content_loc><![CDATA[http://a/v?x&y]]></v:content_loc><v:player_loc allow_embed='yes'>http://a/p</v:player_loc>\
         </v:video></url><url><loc/></url><url><loc>http://a/z</loc></url></urlset>"
    );
    let expected = [
        "loc   http://a/?b&c",
        "link href alternate http://a/de",
        "loc  image http://a/i.png",
        "license  license http://a/l",
        "thumbnail_loc  thumbnail http://a/t",
        "content_loc  video http://a/v?x&y",
        "player_loc  player http://a/p",
        "loc   http://a/z",
    ];
    assert_eq!(with_rel(&text, Markup::Xml), expected);
    let index = "<sitemapindex><sitemap><loc>http://a/s.xml.gz</loc></sitemap><sitemap><loc>http://a/t&x;</loc></sitemap></sitemapindex>";
    assert_eq!(with_rel(index, Markup::Xml), ["loc  sitemap http://a/s.xml.gz", "loc  sitemap character-reference"]);
    let undeclared =
        "<urlset><url><loc>http://a/</loc><image:image><image:loc>http://a/i</image:loc></image:image></url></urlset>";
    assert_eq!(with_rel(undeclared, Markup::Xml), ["loc   http://a/", "loc  image http://a/i"]);
}

#[test]
fn feeds() {
    let rss = "<rss version='2.0' xmlns:a='http://www.w3.org/2005/Atom'><channel><link>http://a/</link><a:link rel='self' href='f'/>\
               <image><url>i.png</url><title>no</title><link>l</link></image><docs>http://d/</docs><item><title>no</title>\
               <link>http://a/?a=1&b=2</link><guid>p</guid><comments>c</comments>\
               <enclosure url='e.mp3' type='audio/mpeg'/><source url='s.xml'>no</source></item>\
               <item><guid isPermaLink='false'>12</guid><guid isPermaLink='false'>tag:a,1:2</guid><guid isPermaLink='true'>q</guid></item></channel></rss>";
    let expected = [
        "link   http://a/",
        "link href self f",
        "url  image i.png",
        "link   l",
        "docs  docs http://d/",
        "link   http://a/?a=1&b=2",
        "guid  permalink p",
        "comments  comments c",
        "enclosure url  e.mp3",
        "source url  s.xml",
        "guid  identifier tag:a,1:2",
        "guid  permalink q",
    ];
    assert_eq!(with_rel(rss, Markup::Xml), expected);
    let rdf = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/' xmlns:d='urn:d'>\
               <channel rdf:about='c'><link>l</link><d:link>no</d:link><items><rdf:Seq><rdf:li rdf:resource='i'/></rdf:Seq></items></channel>\
               <item rdf:about='i'><link>i</link></item></rdf:RDF>";
    assert_eq!(
        with_rel(rdf, Markup::Xml),
        ["channel about  c", "link   l", "li resource  i", "item about  i", "link   i"]
    );
    let atom = "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://f/g/'><id>urn:uuid:1</id><icon>i</icon><author><name>no</name><uri>u</uri></author>\
                <entry xml:base='e/'><id>http://f/1</id><link rel='enclosure' href='x'/><content src='y'/></entry><entry><id>5</id></entry></feed>";
    assert_eq!(
        xml(atom),
        [
            "feed xml:base http://f/g/ http://d/x/y",
            "id  urn:uuid:1 http://f/g/",
            "icon  i http://f/g/",
            "uri  u http://f/g/",
            "entry xml:base e/ http://f/g/",
            "id  http://f/1 http://f/g/e/",
            "link href x http://f/g/e/",
            "content src y http://f/g/e/",
        ]
    );
    let opml = "<opml><head><docs>d</docs></head><body><outline text='no' xmlUrl='x' htmlUrl='h'><outline url='u'/></outline></body></opml>";
    assert_eq!(
        with_rel(opml, Markup::Xml),
        ["docs  docs d", "outline xmlUrl  x", "outline htmlUrl  h", "outline url  u"]
    );
    let other = "<doc><link>no</link><loc>no</loc><id>no</id></doc>";
    assert_eq!(with_rel(other, Markup::Xml), [""; 0]);
}

#[test]
fn contents_of_elements_have_their_place() {
    let text = "<?xml version='1.0'?><urlset><url><loc>\u{e4}</loc><loc>a&x;</loc><loc>b<c/>d</loc></url></urlset>";
    let document = read(text.as_bytes(), Markup::Xml);
    let places: Vec<_> = document.links.iter().map(|link| link.offset as usize).collect();
    let after = |tag: &str, count: usize| text.match_indices(tag).nth(count).unwrap().0 + tag.len();
    assert_eq!(places, [after("<loc>", 0), after("<loc>", 1), after("<loc>", 2)]);
    assert_eq!(document.links[1].defect, Some((DefectKind::CharacterReference, (after("<loc>", 1) + 1) as u64)));
    assert_eq!(document.links[2].url, b"b");
}

#[test]
fn robots_and_lists() {
    let text = "\u{feff}User-agent: *\r\nSITEMAP : http://a/1.xml # c\rsitemap:http://a/2.xml#no\n  Sitemap http://a/3.xml \n\
                Sitemapx: no\n# Sitemap: no\nSitemap:\nDisallow: /x\nsitemap: /4.xml";
    let links = with_rel(text, Markup::Robots);
    assert_eq!(
        links,
        ["  sitemap http://a/1.xml", "  sitemap http://a/2.xml", "  sitemap http://a/3.xml", "  sitemap /4.xml"]
    );
    let offset = read(text.as_bytes(), Markup::Robots).links[1].offset as usize;
    assert_eq!(&text[offset..offset + 14], "http://a/2.xml");
    assert_eq!(with_rel(" http://a/ \r\n\nb c\n", Markup::Urls), ["   http://a/", "   b c"]);
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

/// A document, the charset of its transport, the charset in which it is read, the defects.
type ChoiceCase = (&'static [u8], Option<Charset>, &'static str, &'static [DefectKind]);

/// A document, the number of its links, its defects and where they are.
type EndCase = (&'static [u8], Markup, usize, &'static [(DefectKind, u64)]);

#[test]
fn byte_order_mark_transport_and_declaration_have_this_priority() {
    let given = Charset::named("koi8-r");
    let late: &[u8] = Box::leak([&b"<title>"[..], &b"x".repeat(5_000), b"</title>"].concat().into_boxed_slice());
    let late = |rest: &str| -> &'static [u8] { Box::leak([late, rest.as_bytes()].concat().into_boxed_slice()) };
    let cases: [ChoiceCase; 25] = [
        (late("<meta charset=windows-1251>"), None, "windows-1251", &[]),
        (late("<meta charset=windows-1251>"), given, "KOI8-R", &[]),
        (late("<body><meta http-equiv=content-type content='text/html; charset=gbk'>"), None, "GBK", &[]),
        (late("<script>'<meta charset=gbk>'</script><!-- <meta charset=gbk> -->"), None, "UTF-8", &[]),
        (late("<meta charset=klingon><meta charset=gbk>"), None, "GBK", &[]),
        (b"<meta charset=klingon><meta charset=gbk>", None, "GBK", &[]),
        (b"<?xml version='1.0' encoding='windows-1251'?><html><br>", None, "windows-1251", &[]),
        (b"<?xml version='1.0' encoding='windows-1251'?><html><meta charset=gbk>", None, "GBK", &[]),
        (b"<?xml version='1.0' encoding='utf-16'?><html>", None, "UTF-8", &[]),
        (b"<?xml version='1.0' encoding='klingon'?><html>", None, "UTF-8", &[DefectKind::UnknownCharset]),
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
fn wrong_namespaces_are_an_error_at_their_tag() {
    let many: String = (0..200).map(|i| format!(" xmlns:n{i}='u'")).collect();
    for (declarations, detail) in [(&many[..], "128 namespaces are in scope"), (" xmlns:xml='u'", "prefix 'xml'")] {
        let document = read(format!("<r><a href='x'/><b{declarations}/></r>").as_bytes(), Markup::Xml);
        let defect = &document.defects[0];
        assert_eq!((document.links.len(), defect.kind, defect.at), (1, DefectKind::IllFormed, 16));
        assert!(defect.detail.contains(detail), "{defect:?}");
    }
    let deep = "<a>".repeat(1 << 16);
    let defect = &read(deep.as_bytes(), Markup::Xml).defects[0];
    assert_eq!((defect.kind, defect.at), (DefectKind::IllFormed, 3 * 65535));
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

const TAGS: &str = "[ -~é\u{0}\u{FFFD}я<>='\"&;/#!?\\n-]{0,60}|(<(a|base|meta|\\?xml|!DOCTYPE|script|/a) (href|src|srcset|charset|encoding|xml:base|http-equiv)=['\"]?[a-z&#;x0-9 ,é]{0,9}['\"]?/?>){0,6}|\
    (é?<(a|base) (href|xml:base)='[a-z/.& é]{0,9}'/?>){1,6}";

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
                base.and_then(|base| base.target(&link.url)).unwrap_or_else(|_| link.url.clone())
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
    let count = MAX_LINKS;
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

const FEED: &str = r#"{"version": "https:\/\/jsonfeed.org\/version\/1.1", "title": "url", "home_page_url": "\/", "feed_url": "f.json",
    "hubs": [{"type": "WebSub", "url": "https://h/"}], "icon": null, "expired": false, "authors": [{"url": "/me", "name": "x"}],
    "items": [{"id": "7", "url": "a\u00e9", "image": " i.png ", "tags": ["url", "/no"], "_x": {"url": "/no", "y": [{"url": "/no"}]},
        "attachments": [{"url": "m.mp3", "size_in_bytes": 1.5e3}]}, {"id": "urn:x:1", "external_url": "http://e/", "url": ""}]}"#;

#[test]
fn json_feeds() {
    let document = extract(FEED.as_bytes(), &DocumentContext::default());
    assert_eq!((document.markup, defects(&document)), (Markup::JsonFeed, vec![]));
    let shown: Vec<_> = document.links.iter().map(|link| [&link.element, &link.rel].map(String::as_str)).collect();
    let url = |link: &Link| String::from_utf8(link.url.clone()).unwrap();
    let expected = [
        (["home_page_url", "home"], "/"),
        (["feed_url", "self"], "f.json"),
        (["url", "hub"], "https://h/"),
        (["url", "author"], "/me"),
        (["url", ""], "a\u{e9}"),
        (["image", "image"], "i.png"),
        (["url", "enclosure"], "m.mp3"),
        (["id", "identifier"], "urn:x:1"),
        (["external_url", "external"], "http://e/"),
    ];
    assert_eq!(shown, expected.map(|(names, _)| names));
    assert_eq!(document.links.iter().map(url).collect::<Vec<_>>(), expected.map(|(_, url)| url));
    assert!(FEED.as_bytes()[document.links[1].offset as usize..].starts_with(b"f.json\""));
    let spaced = extract(format!("\u{FEFF}\r\n {FEED}\n").as_bytes(), &DocumentContext::default());
    assert_eq!((spaced.markup, spaced.links.len(), defects(&spaced)), (Markup::JsonFeed, document.links.len(), vec![]));
}

#[test]
fn broken_json_feeds_give_the_references_before() {
    let whole = read(FEED.as_bytes(), Markup::JsonFeed).links;
    for len in 1..FEED.len() {
        let part = read(&FEED.as_bytes()[..len], Markup::JsonFeed);
        assert!(whole.starts_with(&part.links), "{len}");
        assert_eq!(part.defects[0].kind, DefectKind::Truncated, "{len}");
    }
    let feed = |tail: &str| read(format!("{{\"feed_url\":\"f\",{tail}").as_bytes(), Markup::JsonFeed);
    for tail in ["\"items\": [}", "\"items\": ]", "?", &"[".repeat(100_000), &"{\"items\":".repeat(100_000)] {
        let document = feed(tail);
        assert_eq!((document.links.len(), document.defects[0].kind), (1, DefectKind::IllFormed), "{}", &tail[..1]);
    }
    assert_eq!(read(b"", Markup::JsonFeed).defects[0].kind, DefectKind::Truncated);
    for text in ["\"x\"", " 5", "null {}"] {
        assert_eq!(read(text.as_bytes(), Markup::JsonFeed).defects[0].kind, DefectKind::IllFormed, "{text}");
    }
}
