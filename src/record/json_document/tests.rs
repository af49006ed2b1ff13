use super::har::referrer;
use super::*;
use crate::iri::FaultKind;

type Row = (u64, String, Option<i32>, Option<FaultKind>);

/// The rows of a document that arrives in parts of `step` bytes, its headers, and how it ends.
fn parse(layout: JsonLayout, text: &str, step: usize) -> (Vec<Row>, u64, DocumentEnd) {
    let mut parser = JsonDocumentParser::new(layout, 0, 1 << 20);
    let mut rows = RecordBuffer::default();
    for mut part in text.as_bytes().chunks(step) {
        while !part.is_empty() && !parser.is_broken() {
            part = &part[parser.push(part, &mut rows)..];
        }
    }
    let records = rows.records();
    let row = |(i, url)| (records.each_offset()[i], url, records.fields.statuses[i], records.fault(i));
    let rows = records.shown_urls().into_iter().enumerate().map(row).collect();
    (rows, parser.header_count(), parser.finish())
}

/// The method and the kind of resource of each entry.
fn methods_and_link_types(text: &str) -> Vec<[Option<String>; 2]> {
    let mut parser = JsonDocumentParser::new(JsonLayout::Har, 0, 1 << 20);
    let mut rows = RecordBuffer::default();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        rest = &rest[parser.push(rest, &mut rows)..];
    }
    let records = rows.records();
    let columns = records.fields.methods.iter().zip(records.fields.link_types);
    columns.map(|(method, link_type)| [*method, *link_type].map(|span| Some(records.show(span?)))).collect()
}

const RESPONSE: &str = "[[\"urlkey\",\"timestamp\",\"original\",\"statuscode\"],\n\
    [\"org,a)/\",\"20140103030321\",\"http:\\/\\/a.org\\/]\\\"\",\"200\"],\n[\"a\"], 7, \"x\",\n[\"k\",null,null,\"-\"],[],[\"resume\"]]\n";

#[test]
fn rows_of_a_cdx_server() {
    assert_eq!(JsonLayout::detect(RESPONSE.as_bytes()), Some(JsonLayout::CdxRows));
    let refused = |at, text: &str| (at, text.to_string(), None, Some(FaultKind::NotOfFormat));
    let expected = vec![
        (49, "http://a.org/]\"".to_string(), Some(200), None),
        refused(107, "[\"a\"]"),
        refused(114, "7"),
        refused(117, "\"x\""),
        (122, "[\"k\",null,null,\"-\"]".to_string(), None, Some(FaultKind::NoUrl)),
    ];
    for step in [1, 2, 7, 1000] {
        assert_eq!(parse(JsonLayout::CdxRows, RESPONSE, step), (expected.clone(), 3, DocumentEnd::Whole), "{step}");
    }
    let twice = parse(JsonLayout::CdxRows, &RESPONSE.repeat(2), 9);
    assert_eq!((twice.0.len(), twice.1, twice.2), (10, 6, DocumentEnd::Whole));
    assert_eq!(parse(JsonLayout::CdxRows, "[]", 1), (vec![], 0, DocumentEnd::Whole));
}

#[test]
fn responses_without_rows_are_recognized() {
    let header = "[[\"original\"]]";
    for text in ["[]", "\n[ ]\r\n", "[]\n[]\n", &format!("[]\n{header}"), header] {
        assert_eq!(JsonLayout::detect(text.as_bytes()), Some(JsonLayout::CdxRows), "{text}");
        let (rows, headers, end) = parse(JsonLayout::CdxRows, text, 2);
        assert_eq!((rows, headers, end), (vec![], u64::from(text.contains("original")), DocumentEnd::Whole), "{text}");
    }
    for text in ["[", "[[]]", "[]x", "[]\nhttp://a/", "[]\n[{}]", "[1]"] {
        assert_eq!(JsonLayout::detect(text.as_bytes()), None, "{text}");
    }
}

const HAR: &str = r#" {"log": {"version": "1.2", "pages": [{"id": "p", "title": "]}"}], "x": -1.5e3, "entries": [
    {"pageref": "p", "_resourceType": "fetch", "request": {"method": "post", "url": "http://a/\u00e9", "headers": [7, {"name": "Accept"}, {"name": "referer", "value": "http://p/"}]}, "response": {"status": 200, "content": {"text": "\"}]\\"}}},
    {"request": {"method": "GET"}, "response": {"status": 0}}, {"a" 1}, []
  ], "comment": null}, "more": [1, {"entries": [{}]}]}"#;

#[test]
fn entries_of_har() {
    assert_eq!(JsonLayout::detect(HAR.as_bytes()), Some(JsonLayout::Har));
    let (rows, headers, end) = parse(JsonLayout::Har, HAR, 1 << 20);
    let kinds: Vec<_> = rows.iter().map(|row| (row.2, row.3)).collect();
    let broken = (None, Some(FaultKind::NotOfFormat));
    assert_eq!(kinds, [(Some(200), None), (None, Some(FaultKind::NoUrl)), broken, broken]);
    let entry = br#"{"request": {"headers": [7, {"name": "Accept"}, {"name": "referer", "value": "http://p/"}]}}"#;
    assert_eq!(referrer(entry), Some(&b"http://p/"[..]));
    assert_eq!(referrer(b"{}"), None);
    let (first, none) = (["POST", "fetch"].map(|text| Some(text.to_string())), [None, None]);
    assert_eq!(methods_and_link_types(HAR), [first, none.clone(), none.clone(), none]);
    assert_eq!((rows[0].1.as_str(), headers, end), ("http://a/é", 0, DocumentEnd::Whole));
    for step in [1, 3, 50] {
        assert_eq!(parse(JsonLayout::Har, HAR, step).0, rows, "{step}");
    }
}

#[test]
fn every_truncation_gives_the_rows_before_it() {
    for (layout, text) in [(JsonLayout::CdxRows, RESPONSE.trim_end()), (JsonLayout::Har, HAR)] {
        let whole = parse(layout, text, 1000).0;
        for len in 2..text.len() {
            let (rows, _, end) = parse(layout, &text[..len], 1000);
            assert!(whole.starts_with(&rows) && matches!(end, DocumentEnd::Truncated(_)), "{len} {end:?}");
        }
    }
    for text in [
        "[[\"original\"]]]",
        "{\"log\":[]}",
        "{\"log\":{\"entries\":{}}}",
        "{1}",
        "{\"log\":{}}",
        "{\"log\":{\"entries\":[]}}x",
        "true",
    ] {
        let layout = if text.starts_with('[') { JsonLayout::CdxRows } else { JsonLayout::Har };
        assert_eq!(parse(layout, text, 3).2, DocumentEnd::Broken, "{text}");
    }
}

/// A URL of JSON that ends with `last` and is longer than what is held of other strings.
fn long_url(last: char) -> String {
    format!("http://a/{}{last}", "\\n".repeat(MAX_STRING_LEN / 2 + 50))
}

/// The rows of a document whose records may have `max_len` bytes.
fn rows_of(layout: JsonLayout, text: &str, max_len: usize) -> RecordBuffer {
    let mut parser = JsonDocumentParser::new(layout, 0, max_len);
    let mut rows = RecordBuffer::default();
    for mut part in text.as_bytes().chunks(100_003) {
        while !part.is_empty() && !parser.is_broken() {
            part = &part[parser.push(part, &mut rows)..];
        }
    }
    rows
}

#[test]
fn long_urls_are_held_whole() {
    let [a, b] = ['A', 'B'].map(long_url);
    let har = format!(
        r#"{{"log":{{"entries":[{{"request":{{"url":"{a}"}},"response":{{"redirectURL" : "{b}"}}}},{{"request":{{"url" :
        "{b}"}}}}]}}}}"#
    );
    let cdx = format!(r#"[["original","redirect"],["{a}","{b}"],["{b}",null]]"#);
    let [a, b] = [a, b].map(|url| url.replace("\\n", "\n").into_bytes());
    for (layout, text) in [(JsonLayout::Har, har), (JsonLayout::CdxRows, cdx)] {
        let rows = rows_of(layout, &text, 16 * MAX_STRING_LEN);
        let records = rows.records();
        let texts: Vec<_> = records.urls.iter().map(|url| url.of(records.text)).collect();
        assert!(texts == [&a, &b] && records.faults.is_empty(), "{layout:?}");
        assert!(records.fields.redirects[0].is_some_and(|redirect| redirect.of(records.text) == b), "{layout:?}");
        // The limit of the record remains.
        let rows = rows_of(layout, &text, MAX_STRING_LEN);
        let faults: Vec<_> = rows.records().faults.iter().map(|(row, fault)| (*row, fault.kind)).collect();
        assert_eq!(faults, [(0, FaultKind::TooLong), (1, FaultKind::TooLong)], "{layout:?}");
    }
}

#[test]
fn fields_that_were_cut_are_null() {
    let long = "x".repeat(MAX_STRING_LEN + 1);
    let entry = |value: &str, kind: &str| {
        format!(
            r#"{{"_resourceType":"{kind}","request":{{"url":"http://a/","method":"POST",
            "headers":[{{"name":"Referer","value":"{value}"}}]}},
            "response":{{"content":{{"mimeType":"text/html;{value}","text":"{long}"}}}}}}"#
        )
    };
    let (cut, whole) = (entry(&long, &long), entry("http://p/", &long[2..]));
    let text = format!(r#"{{"log":{{"entries":[{cut},{whole}]}}}}"#);
    let rows = rows_of(JsonLayout::Har, &text, 16 * MAX_STRING_LEN);
    let (records, has) = (rows.records(), |spans: &[Option<_>]| [spans[0].is_some(), spans[1].is_some()]);
    assert!(records.faults.is_empty());
    let fields = [records.fields.pages, records.fields.mimes, records.fields.link_types];
    assert_eq!(fields.map(has), [[false, true]; 3]);
    assert_eq!(has(records.fields.methods), [true, true]);
}

/// In a number, a bracket opens a level and a quote begins a string for `ValueScanner`, but not for `JsonMembers`.
#[test]
fn a_url_that_was_cut_is_refused() {
    let url = "x".repeat(MAX_STRING_LEN + 1);
    let text = format!(r#"{{"log":{{"entries":[{{"a":1{{"x,"request":{{"url":"\"{url}\""}}}}]}}}}"#);
    let rows = rows_of(JsonLayout::Har, &text, 16 * MAX_STRING_LEN);
    assert!(matches!(rows.records().faults, [(0, fault)] if fault.kind == FaultKind::TooLong));
}

#[test]
fn long_strings_are_not_held() {
    let body = "\\n".repeat(MAX_STRING_LEN);
    let text = format!("{{\"log\":{{\"entries\":[{{\"b\":\"{body}\",\"request\":{{\"url\":\"http://a/\"}}}}]}}}}");
    let mut parser = JsonDocumentParser::new(JsonLayout::Har, 0, 3 * MAX_STRING_LEN);
    let mut rows = RecordBuffer::default();
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        rest = &rest[parser.push(&rest[..rest.len().min(1000)], &mut rows)..];
    }
    assert!(parser.value.text.capacity() <= 4 * MAX_STRING_LEN, "{}", parser.value.text.capacity());
    assert_eq!((rows.records().faults.len(), rows.records().urls[0].of(rows.records().text)), (0, &b"http://a/"[..]));
    let short = parse(JsonLayout::Har, &text, 1 << 20);
    assert_eq!(short.0[0].3, Some(FaultKind::TooLong));
}
