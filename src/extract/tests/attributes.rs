//! References in attributes of HTML and XML: their bases, relations and texts.

use super::*;

#[test]
fn html_attributes_are_found_on_their_elements() {
    let cases: [(&str, &[&str]); 24] = [
        ("<a href=' x '>", &["a href x http://d/x/y"]),
        ("<A HREF=x>", &["a href x http://d/x/y"]),
        ("<a href>", &["a href  http://d/x/y"]),
        ("<a href='x' href='y'>", &["a href x http://d/x/y"]),
        (
            "<img src=a srcset='b 1x, c 2x'>",
            &["img src a http://d/x/y", "img srcset b http://d/x/y", "img srcset c http://d/x/y"],
        ),
        // A parser makes img of image, except in SVG.
        (
            "<image src=a srcset='b'><svg><image href=c srcset=d></svg>",
            &["img src a http://d/x/y", "img srcset b http://d/x/y", "image href c http://d/x/y"],
        ),
        (
            "<applet archive='a, b'><object archive='c d'>",
            &[
                "applet archive a http://d/x/y",
                "applet archive b http://d/x/y",
                "object archive c http://d/x/y",
                "object archive d http://d/x/y",
            ],
        ),
        ("<form action=a><button formaction=b>", &["form action a http://d/x/y", "button formaction b http://d/x/y"]),
        ("<blockquote cite=a><q cite=b><p cite=c>", &["blockquote cite a http://d/x/y", "q cite b http://d/x/y"]),
        ("<object data=a><video poster=b><td data=c>", &["object data a http://d/x/y", "video poster b http://d/x/y"]),
        ("<svg><use xlink:href='#a'/>", &["use xlink:href #a http://d/x/y"]),
        ("<meta http-equiv=Refresh content='0; url=a'>", &["meta content a http://d/x/y"]),
        ("<meta name=description content='0; url=a'>", &[]),
        // White space is part of an enumerated attribute.
        ("<meta http-equiv=' refresh' content='0; url=a'>", &[]),
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
        // In foreign content, a tag that ends in `/>` has no content; in HTML it has.
        ("<svg><style/><title/><script/></svg><a href=x>", &["a href x http://d/x/y"]),
        ("<p><math><svg/></math><style/><a href=x></style><a href=y>", &["a href y http://d/x/y"]),
        // A noncharacter is a character of HTML.
        ("<a href='x&#xFFFE;'>", &["a href x\u{FFFE} http://d/x/y"]),
    ];
    for (text, expected) in cases {
        assert_eq!(html(text), expected, "{text}");
    }
}

#[test]
fn xml_attributes_are_found_with_nested_bases() {
    let xlink = r#"xmlns:l="http://www.w3.org/1999/xlink""#;
    let cases: [(String, &[&str]); 12] = [
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
        ("<a href='?a&amp;b&c=1&d&#38;'/>".into(), &["a href ?a&b&c=1&d& http://d/x/y"]),
        ("<a href='&a&b;'/>".into(), &["a href character-reference http://d/x/y"]),
        (
            "<a is href=x /><b href=y/><c href/>".into(),
            &["a href x http://d/x/y", "b href y http://d/x/y", "c href  http://d/x/y"],
        ),
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

/// In SVG and MathML, a CDATA section is text. In HTML, it is a comment that the first `>` ends.
#[test]
fn cdata_is_text_in_foreign_content() {
    for text in [
        "<svg><g><![CDATA[ > <a href=no> ]] ]]]><a href=yes></g></svg>",
        "<svg><desc><![CDATA[><a href=no>]]></desc><![CDATA[]><a href=no>]]]><a href=yes></svg>",
        "<svg><title>t</title><svg/><svg></svg><![CDATA[><a href=no>]]><a href=yes></svg>",
        "<math><mi><![CDATA[><a href=no>]]></mi><mi>x</mi><![CDATA[><a href=no>]]></math><a href=yes>",
        "<svg><foreignObject><p></svg><svg><![CDATA[><a href=no>]]></svg></p></foreignObject>\
         <![CDATA[><a href=no>]]></svg><a href=yes>",
        "<![CDATA[><a href=yes>]]>",
        "<svg/><![CDATA[><a href=yes>]]>",
        "<svg></svg><![CDATA[><a href=yes>]]>",
        "<svg><foreignObject><p><![CDATA[><a href=yes>]]></p></foreignObject></svg>",
        "<svg><g><svg><p><![CDATA[><a href=yes>]]></p></svg>",
        "<svg><g></p><![CDATA[><a href=yes>]]></svg>",
    ] {
        let links = read(text.as_bytes(), Markup::Html).links;
        let [link] = &links[..] else { panic!("{text}: {links:?}") };
        let expected = text.find("yes").unwrap() as u64;
        assert_eq!((&link.url[..], link.offset), (&b"yes"[..], expected), "{text}");
    }
    // HTML in foreign content ends with the element that contains it.
    let script = "<svg><foreignObject><title></foreignObject></title><desc></desc><script><a href=no></script></foreignObject></svg>";
    assert_eq!(html(&format!("{script}<a href=yes>")), ["a href yes http://d/x/y"]);
    assert_eq!(
        html("<svg><foreignObject><div><title>t</title><base href=/b/></div></foreignObject></svg><a href=yes>"),
        ["base href /b/ http://d/x/y", "a href yes http://d/b/"]
    );
    assert_eq!(
        html("<svg><title><title>t</title><script><a href=no></script></title></svg><a href=yes>"),
        ["a href yes http://d/x/y"]
    );
    // An element of HTML has content although its tag ends in a slash.
    assert_eq!(
        html("<svg><desc><script/><a href=no></script></desc><script/><a href=yes></svg>"),
        ["a href yes http://d/x/y"]
    );
}

/// The content of these elements is markup in SVG and MathML. In HTML, also inside of SVG, it is text.
#[test]
fn content_is_markup_in_foreign_content() {
    let names = ["iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"];
    for name in names {
        for text in [
            format!("<svg><{name}><a href=yes></{name}></svg>"),
            format!("<math><{name}><a href=yes></{name}></math>"),
            format!("<svg><desc><a href=yes><{name}><a href=no>"),
            format!("<svg><title></title></svg><a href=yes><{name}><a href=no>"),
            format!("<svg><style></svg><a href=yes><{name}><a href=no>"),
            format!("<svg><title></svg><a href=yes><{name}><a href=no>"),
            format!("<svg><g><p><a href=yes><{name}><a href=no>"),
            // The end of the element around it ends the SVG.
            format!("<div><svg><g></div><a href=yes><{name}><a href=no>"),
            format!("<button><svg><g></button><a href=yes><{name}><a href=no>"),
            format!("<a><svg><g></a><a href=yes><{name}><a href=no>"),
            format!("<svg><a><g></a><{name}><a href=yes></{name}></svg>"),
        ] {
            assert_eq!(html(&text), ["a href yes http://d/x/y"], "{text}");
        }
    }
    let text =
        "<svg><style><![CDATA[<a href=no>]]><use href=a></style><script>'<image href=b>'</script><a href=c></svg>";
    assert_eq!(html(text), ["use href a http://d/x/y", "image href b http://d/x/y", "a href c http://d/x/y"]);
}

#[test]
fn only_the_first_base_with_an_address_counts() {
    let cases: [(&str, &str); 14] = [
        ("<base href='http://b/c/d'><base href='http://z/'>", "http://b/c/d"),
        ("<base href='c/'>", "http://d/x/c/"),
        ("<base href='//b/c'>", "http://b/c"),
        ("<base target=_top><base href='/e'>", "http://d/e"),
        ("<!-- <base href='/e'> --><script>'<base href=/f>'</script><BASE HREF=/g>", "http://d/g"),
        ("<base href='javascript:x'><base href='/e'>", "http://d/x/y"),
        ("<base href='http://[b/'><base href='/e'>", "http://d/x/y"),
        ("<base href='&#0;'><base href='/e'>", "http://d/x/y"),
        ("<base href='//[/'>", "http://d/x/y"),
        ("<base href='http://'>", "http://d/x/y"),
        ("<base href='HTTPS://u@:80/'>", "http://d/x/y"),
        ("<base href='about:blank'>", "about:blank"),
        ("<base href='file:///e/'>", "file:///e/"),
        ("<base href='x-y:/e/'>", "x-y:/e/"),
    ];
    for (text, base) in cases {
        assert_eq!(html(&format!("{text}<a href=k>")).pop().unwrap(), format!("a href k {base}"), "{text}");
        assert_eq!(html(&format!("<a href=k>{text}"))[0], format!("a href k {base}"), "{text}");
    }
    let xhtml = "<html xmlns='http://www.w3.org/1999/xhtml'><a href='k'/><base href='z/'/></html>";
    assert_eq!(xml(xhtml), ["a href k http://d/x/z/", "base href z/ http://d/x/y"]);
}

/// The content of a template is not part of the document, and `base` elements of SVG and MathML are not those of HTML.
#[test]
fn a_base_outside_of_the_document_does_not_count() {
    for text in [
        "<template><base href=/no/></template><base href=/b/>",
        "<template><p><template></template><base href=/no/></template><base href=/b/>",
        "<template/><base href=/no/></template><base href=/b/>",
        "<template><svg><desc><base href=/no/></template><base href=/b/>",
        "<svg><base href=/no/></svg><base href=/b/>",
        "<math><base href=/no/ /></math><base href=/b/>",
        "<template><svg></svg><base href=/no/></template></template><base href=/b/>",
        // Here, HTML continues.
        "<svg><p><base href=/b/>",
        "<svg><desc><base href=/b/></svg>",
        "</template><base href=/b/>",
        "<svg><template></svg><base href=/b/>",
    ] {
        for text in [format!("{text}<a href=k>"), format!("<a href=k>{text}")] {
            let links = html(&text);
            assert!(links.contains(&"a href k http://d/b/".to_string()), "{text}: {links:?}");
            // Every base has a row.
            assert_eq!(links.len(), 1 + text.matches("<base").count(), "{text}");
        }
    }
    let xhtml = "<html xmlns='http://www.w3.org/1999/xhtml'><template><p><base href='/no/'/></p></template>\
                 <svg xmlns='http://www.w3.org/2000/svg'><base href='/no/'/><template/></svg><base href='/b/'/><a href='k'/></html>";
    assert_eq!(xml(xhtml).last().unwrap(), "a href k http://d/b/");
    let other = "<html xmlns='http://www.w3.org/1999/xhtml'><template xmlns='x'><base xmlns='http://www.w3.org/1999/xhtml' href='/b/'/>\
                 </template><a href='k'/></html>";
    assert_eq!(xml(other).last().unwrap(), "a href k http://d/b/");
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
    let text = "<a href=a>x<script>'<b>'</script>y<svg><style>.c{}</style><style/></svg>z</a>";
    assert_eq!(texts(text, Markup::Html), [pair("a", "xyz")]);
    let text = "<a href=a>x<svg><style>.c<g>{}</g>.d</style>y<script>s<title>t<style>u</style></title>v<![CDATA[w]]></script>z</a>";
    assert_eq!(texts(text, Markup::Html), [pair("a", "xyz")]);
    let text = "<a href=a>x<svg><style>.c</svg>y<svg><g><script>'<p>z</a>";
    assert_eq!(texts(text, Markup::Html), [pair("a", "xyz")]);
    let text = "<a href=a>x<svg><text><![CDATA[<y>]]></text></svg>z</a>";
    assert_eq!(texts(text, Markup::Html), [pair("a", "x<y>z")]);
    let text = "<a href=a alt=no>x</a><a href=b>y<template>no<svg></template>z</a><template><a href=c alt=no>v<p>w</a></template>";
    assert_eq!(texts(text, Markup::Html), [pair("a", "x"), pair("b", "yz"), pair("c", "vw")]);
    let text = "<html xmlns='http://www.w3.org/1999/xhtml'><a href='a' alt='no'>x</a><a href='b'>y<template>no<p/></template>z</a>\
                <template><a href='c'>v<p>w</p></a></template></html>";
    assert_eq!(texts(text, Markup::Xml), [pair("a", "x"), pair("b", "yz"), pair("c", "vw")]);
    let text = format!("<a href=a>{}\u{1F600}</a>", "x".repeat((1 << 10) - 3));
    assert_eq!(texts(&text, Markup::Html), [pair("a", &"x".repeat((1 << 10) - 3))]);
    let text = "<html xmlns='http://www.w3.org/1999/xhtml'><a href='a'>O<i>n</i>e &amp; <![CDATA[<two>]]></a>no<a href='b'/>no</html>";
    assert_eq!(texts(text, Markup::Xml), [pair("a", "One & <two>"), pair("b", "")]);
    let text = "<html xmlns='http://www.w3.org/1999/xhtml' xmlns:z='z'><a href='a'>x<script>'&lt;'<![CDATA[<b>]]><b>c</b></script>y\
                <svg xmlns='http://www.w3.org/2000/svg'><style>.c{}</style><style/>z</svg><z:style>Z</z:style></a></html>";
    assert_eq!(texts(text, Markup::Xml), [pair("a", "xyzZ")]);
    let text = "<html xmlns='http://www.w3.org/1999/xhtml' xmlns:z='z'><a href='a'>One <br/><z:a/>two <z:a>three</z:a> \
                <img alt='An &amp; image' src='i'/>four</a>no<a href='b'>x<a href='c'>y</a></a></html>";
    let expected = [pair("a", "One two three four"), pair("i", "An & image"), pair("b", "x"), pair("c", "y")];
    assert_eq!(texts(text, Markup::Xml), expected);
    // White space does not count for the length of a text.
    for space in [" ".repeat(4_095), "\n ".repeat(5_000)] {
        let text = format!("<a href=a>{space}é{space}x<b>{space}y</b></a>");
        assert_eq!(texts(&text, Markup::Html), [pair("a", "é x y")]);
    }
    let long = format!("<a href=a>{}<a href=b>{}", "é ".repeat(1_000), "<img src=c>".repeat(3_000));
    let found = texts(&long, Markup::Html);
    assert_eq!((found.len(), found[0].1.len() <= 1 << 10, found[1].1.len()), (3_002, true, 0));
    assert!(found[0].1.starts_with("é é") && found[0].1.len() > 1_000);
}
