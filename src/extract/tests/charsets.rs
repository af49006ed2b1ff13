//! Which charset a document has, and what malformed text becomes.

use super::*;

/// A document, the charset of its transport, the charset in which it is read, the defects.
type ChoiceCase = (&'static [u8], Option<Charset>, &'static str, &'static [DefectKind]);

#[test]
fn byte_order_mark_transport_and_declaration_have_this_priority() {
    let given = Charset::named("koi8-r");
    let title = format!("<title>{}</title>", "x".repeat(5_000));
    let around = |first: &str, rest: &str| -> &'static [u8] { format!("{first}{title}{rest}").leak().as_bytes() };
    let late = |rest: &str| around("", rest);
    let cases: [ChoiceCase; 33] = [
        (late("<meta charset=windows-1251>"), None, "windows-1251", &[]),
        (late("<meta charset=windows-1251>"), given, "KOI8-R", &[]),
        (late("<body><meta http-equiv=content-type content='text/html; charset=gbk'>"), None, "GBK", &[]),
        (late("<script>'<meta charset=gbk>'</script><!-- <meta charset=gbk> -->"), None, "UTF-8", &[]),
        (late("<meta charset=klingon><meta charset=gbk>"), None, "GBK", &[]),
        (b"<meta charset=klingon><meta charset=gbk>", None, "GBK", &[]),
        (around("<meta charset=klingon>", "<meta charset=gbk>"), None, "GBK", &[]),
        (around("<meta charset=klingon>", "<meta charset=dothraki>"), None, "UTF-8", &[DefectKind::UnknownCharset]),
        (around("<meta charset=klingon>", "<meta charset=gbk>"), given, "KOI8-R", &[DefectKind::UnknownCharset]),
        (b"<?xml version='1.0' encoding='gbk'?><html><meta charset=klingon>", None, "GBK", &[]),
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
        (b"<meta http-equiv=content-type content='charset=\"gbk'><meta charset=gb18030>", None, "gb18030", &[]),
        (b"<meta http-equiv=content-type content='charset='>", None, "UTF-8", &[]),
        (b"<meta http-equiv=' content-type' content='charset=gbk'>", None, "UTF-8", &[]),
        (b"<!-- <meta charset=gb18030> -->", None, "UTF-8", &[]),
        (b"<meta charset=utf-16>", None, "UTF-8", &[]),
        (b"<meta charset=x-user-defined>", None, "windows-1252", &[]),
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

/// UTF-16 without a byte order mark is known from elsewhere.
#[test]
fn markup_is_recognized_in_utf16() {
    for (text, markup, count) in [
        ("http://a/\nhttp://b/\n", Markup::Urls, 2),
        (" <rss><channel><link>http://a/</link></channel></rss>", Markup::Xml, 1),
        ("User-agent: *\nSitemap: http://a/\n", Markup::Robots, 1),
        (r#"{"version":"https://jsonfeed.org/version/1","feed_url":"f"}"#, Markup::JsonFeed, 1),
        ("<p><a href=x>\u{e9}", Markup::Html, 1),
    ] {
        for (name, bytes) in [
            ("utf-16le", text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()),
            ("utf-16be", text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
        ] {
            let charset = Charset::named(name);
            let given = DocumentContext { charset, ..DocumentContext::default() };
            let default = DocumentContext { default_charset: charset.unwrap(), ..DocumentContext::default() };
            for context in [given, default] {
                let document = extract(&bytes, &context);
                assert_eq!((document.markup, document.links.len()), (markup, count), "{name} {text}");
            }
        }
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
