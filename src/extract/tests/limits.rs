//! Documents of which a part is longer or nested deeper than allowed.

use super::*;

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
fn a_value_may_have_ten_megabytes() {
    let value = "y".repeat(10 << 20);
    let document = read(format!("<a href='{value}'>").as_bytes(), Markup::Html);
    assert_eq!(document.links[0].url.len(), value.len());
    let document = read(format!("<a href='{value}'/>").as_bytes(), Markup::Xml);
    assert_eq!(document.links[0].url.len(), value.len());
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
    let (name, rel) = ("é".repeat(600), format!("x{}", "é".repeat(600)));
    for markup in [format!("<{name}x href='y' rel='{rel}'/>"), format!("<e{name} href='y' rel='{rel}'/>")] {
        let link = &read(markup.as_bytes(), Markup::Xml).links[0];
        assert!(markup.contains(&link.element) && link.element.len() > 1020, "{}", link.element);
        assert_eq!(link.rel, rel[..1023]);
    }
}

#[test]
fn bytes_of_names_that_are_not_text_become_escapes() {
    let link = &read(b"<a rel='x\xFFy' href='z'>", Markup::Html).links[0];
    assert_eq!((&*link.rel, &*link.url), ("x%FFy", &b"z"[..]));
}
