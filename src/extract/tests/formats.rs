//! Sitemaps, feeds, robots.txt and lists of URLs.

use super::*;

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

/// Bytes in the tag of a child that are not text are no part of the content before it.
#[test]
fn content_ends_before_the_tag_of_a_child() {
    let text = b"<urlset><url><loc>http://a/<b href='\xFF' src='http://b/'/></loc><loc>\xFF<b/></loc></url></urlset>";
    let context = DocumentContext { charset: Charset::named("shift_jis"), ..DocumentContext::default() };
    let document = extract(text, &context);
    let found: Vec<_> = document.links.iter().map(|link| (url_or_defect(link), link.offset as usize)).collect();
    let expected = [("http://a/", 18), ("undecodable", 36), ("http://b/", 44), ("undecodable", 67)];
    assert_eq!(found, expected.map(|(url, at)| (url.to_string(), at)));
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
fn json_feeds_have_escapes() {
    let feed = r#"{"version": "https://jsonfeed.org/version/1", "\u0066eed_url": "f\ud83d\ude00", "it\u0065ms": [{"\u0075rl": "\ud800x"},
        {"url": "x\\ud800"}, {"url": "a\udc00\ud800"}, {"url": "\u0075\"\\"}]}"#;
    let document = extract(feed.as_bytes(), &DocumentContext::default());
    let found: Vec<_> = document.links.iter().map(|link| (&link.element[..], url_or_defect(link))).collect();
    let bad = DefectKind::CharacterReference.name();
    let expected = [("feed_url", "f\u{1f600}"), ("url", bad), ("url", "x\\ud800"), ("url", bad), ("url", "u\"\\")];
    assert_eq!(found, expected.map(|(element, url)| (element, url.to_string())));
    let places: Vec<_> = document.links.iter().filter_map(|link| link.defect).map(|(_, at)| at as usize).collect();
    assert_eq!(places, [feed.find(r"\ud800x").unwrap(), feed.find(r"\udc00").unwrap()]);
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
