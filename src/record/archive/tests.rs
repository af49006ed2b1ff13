//! Whole, truncated, damaged and malformed archives, in memory and in pieces of any length.

mod arc;
mod index;
mod limits;
mod members;

use super::documents::{ArchivedDocument, ContentState, DocumentKind};
use super::*;
use crate::iri::FaultKind;
use crate::kernel::Span;
use crate::record::fields::FieldSet;
use crate::record::{RecordBuffer, Records};
use proptest::prelude::*;

fn record(fields: &str, content: &str) -> String {
    format!("WARC/1.0\r\n{fields}\r\nContent-Length: {}\r\n\r\n{content}\r\n\r\n", content.len())
}

fn sample() -> String {
    let info = record("WARC-Type: warcinfo", "software: x\r\n");
    let response = record(
        "WARC-Type: response\r\nWARC-Target-URI: <http://a.org/b c>\r\nWARC-Date: 2014-01-03T03:03:21Z\r\nWARC-Payload-Digest: sha1:B2LT",
        "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Type: text/html\r\n\r\nWARC/1.0 \n\n body",
    );
    let metadata = record(
        "WARC-Type: metadata\r\nWARC-Target-URI: http://a.org/b c",
        "fetchTimeMs: 132\r\ncharset-detected: EUC-JP\r\n",
    );
    let request =
        record("warc-type: request\nwarc-target-uri:http://a.org/", "GET / HTTP/1.1\r\nLocation: /no\r\n\r\n");
    [info, response, metadata, request].concat()
}

/// URL, fault, flags, status, redirect, charset, offset of each record.
type Row = (String, Option<FaultKind>, u32, Option<i32>, String, String, u64);

fn unlimited() -> CaptureBatch {
    CaptureBatch::new(FieldSet::ALL, BatchLimits { target_len: usize::MAX, max_record_len: usize::MAX })
}

fn rows(buffer: &RecordBuffer) -> Vec<Row> {
    let records = buffer.records();
    let row = |(i, url)| {
        let flags = records.flags.iter().find(|(row, _)| *row as usize == i).map_or(0, |(_, flags)| flags.0);
        let fields = &records.fields;
        let (redirect, charset) = (shown(&records, fields.redirects[i]), shown(&records, fields.charsets[i]));
        (url, records.fault(i), flags, fields.statuses[i], redirect, charset, records.each_offset()[i])
    };
    records.shown_urls().into_iter().enumerate().map(row).collect()
}

/// The text of a field; empty without one.
fn shown(records: &Records<'_>, field: Option<Span>) -> String {
    field.map_or(String::new(), |span| records.show(span))
}

/// Parses `text`, all of which is visible, to its end.
fn parse_whole(parser: &mut ArchiveParser, text: &str, batch: &mut CaptureBatch) -> ArchiveEnd {
    let window = ArchiveWindow { at: 0, bytes: text.as_bytes() };
    loop {
        parser.push(window, batch);
        let end = parser.finish(window, batch);
        if end != ArchiveEnd::NotYet {
            return end;
        }
    }
}

/// The JSON of a WAT record whose description of a response is `response`.
pub(super) fn envelope(response: &str) -> String {
    format!(r#"{{"Envelope":{{"Payload-Metadata":{{"HTTP-Response-Metadata":{response}}}}}}}"#)
}

/// A WAT record of a page with `links`.
fn wat_record(links: &str) -> String {
    let json = envelope(&format!(r#"{{"HTML-Metadata":{{"Links":[{links}]}}}}"#));
    record("WARC-Type: metadata\r\nWARC-Target-URI: http://a.org/", &json)
}

/// Parses `text`, of which `step` bytes more are visible at a time, or all if `step` is 0; then the text is in memory.
/// Batches have about `target_len` bytes.
fn parse_batches(
    parser: &mut ArchiveParser,
    text: &[u8],
    (step, target_len): (usize, usize),
) -> (Vec<RecordBuffer>, ArchiveEnd) {
    parser.begin(0, step == 0);
    let (mut seen, mut batches) = (0, Vec::new());
    loop {
        let mut batch = CaptureBatch::new(FieldSet::ALL, BatchLimits { target_len, max_record_len: usize::MAX });
        let end = loop {
            let from = if step == 0 { 0 } else { parser.keep_from() as usize };
            let window =
                ArchiveWindow { at: from as u64, bytes: &text[from..if step == 0 { text.len() } else { seen }] };
            parser.push(window, &mut batch);
            if batch.is_full() {
                break ArchiveEnd::NotYet;
            }
            if seen == text.len() || step == 0 {
                let end = parser.finish(window, &mut batch);
                if end != ArchiveEnd::NotYet {
                    break end;
                }
            }
            seen = text.len().min(seen + step);
        };
        batches.push(batch.into_rows());
        if end != ArchiveEnd::NotYet {
            return (batches, end);
        }
    }
}

/// The rows of each batch of [`parse_batches`], the end, and the damage.
fn parse(mut parser: ArchiveParser, text: &[u8], lens: (usize, usize)) -> (Vec<Vec<Row>>, ArchiveEnd, ArchiveDamage) {
    let (batches, end) = parse_batches(&mut parser, text, lens);
    (batches.iter().map(rows).collect(), end, parser.damage())
}

fn read(text: &[u8], step: usize) -> (Vec<Row>, ArchiveEnd) {
    let (rows, end, _) = parse(ArchiveParser::default(), text, (step, usize::MAX));
    (rows.concat(), end)
}

fn row(url: &str, offset: usize) -> Row {
    (url.into(), None, 0, None, String::new(), String::new(), offset as u64)
}

/// Ten records; the length of the fourth is too long by `excess`, and the payload of the second shows a header.
fn with_wrong_length(excess: usize) -> Vec<String> {
    let fields = |i| format!("WARC-Type: resource\r\nWARC-Target-URI: http://a.org/{i}");
    let payload =
        |i| if i == 1 { "a\r\n\r\nWARC/1.0\r\nContent-Length: 3\r\n\r\nxyz".to_string() } else { "p".repeat(9) };
    let of = |i| record(&fields(i), &payload(i));
    let wrong = |i| of(i).replace("Length: 9", &format!("Length: {}", 9 + excess));
    (0..10).map(|i| if i == 3 { wrong(i) } else { of(i) }).collect()
}

/// Digest, method and body of each response and resource.
fn index_fields(text: &[u8], step: usize) -> Vec<[String; 3]> {
    parse_for_index(text, step).0
}

/// Digest, method and body of each response and resource, and the parser after the end.
fn parse_for_index(text: &[u8], step: usize) -> (Vec<[String; 3]>, ArchiveParser) {
    let mut parser = ArchiveParser::of_types(RecordTypes::Replayable, FieldSet::ALL);
    let (batches, _) = parse_batches(&mut parser, text, (step, usize::MAX));
    let records = batches[0].records();
    let fields = &records.fields;
    let columns = [fields.payload_digests, fields.methods, fields.request_bodies];
    let row = |i: usize| columns.map(|column| shown(&records, column[i]));
    ((0..records.urls.len()).map(row).collect(), parser)
}

/// Position and length of each record in the file of the archive.
fn positions(batches: &[RecordBuffer]) -> Vec<(Option<i64>, Option<i64>)> {
    let of = |batch: &RecordBuffer| {
        let fields = batch.records().fields;
        fields.capture_offsets.iter().copied().zip(fields.capture_lengths.iter().copied()).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

#[test]
fn records_of_every_type_in_pieces_of_any_length() {
    let text = sample();
    let starts: Vec<usize> = text.match_indices("WARC/1.0\r\n").map(|(at, _)| at).collect();
    let mut want = [
        row("", 0),
        row("http://a.org/b c", starts[1]),
        row("http://a.org/b c", starts[2]),
        row("http://a.org/", starts[3]),
    ];
    want[0].1 = Some(FaultKind::NoUrl);
    (want[1].2, want[1].3, want[1].4) = (Flags::BRACKETED.0, Some(302), "/x".into());
    (want[1].5, want[2].5) = ("EUC-JP".into(), "EUC-JP".into());
    for step in [0, 1, 2, 7, 100, 10_000] {
        assert_eq!(read(text.as_bytes(), step), (want.to_vec(), ArchiveEnd::Whole), "{step}");
    }
}

#[test]
fn every_truncation_gives_whole_headers_and_is_reported() {
    let text = sample();
    let whole = read(text.as_bytes(), 100).0;
    for len in 1..text.len() {
        let (got, ended) = read(&text.as_bytes()[..len], 64);
        let same = got.iter().zip(&whole).take_while(|(a, b)| (&a.0, a.6) == (&b.0, b.6)).count();
        assert_eq!(same, got.len(), "{len}");
        let is_cut = got.last().is_some_and(|row| row.2 & Flags::CUT.0 != 0);
        assert!(ended != ArchiveEnd::Whole || !is_cut, "{len}");
    }
}

#[test]
fn stray_bytes_are_skipped_flagged_and_counted() {
    let damage = |text: &[u8], step| parse(ArchiveParser::default(), text, (step, usize::MAX)).2;
    let stray = format!("garbage\nmore of it\r\n\r\n{}", record("WARC-Type: resource\r\nWARC-Target-URI: x:y", ""));
    let (rows, ended) = read(stray.as_bytes(), 5);
    assert_eq!((rows[0].0.as_str(), rows[0].2, rows[0].6, ended), ("x:y", Flags::STRAY_BYTES.0, 22, ArchiveEnd::Whole));
    let headless = "WARC/1.0\r\nWARC-Target-URI: x:y\r\n\r\n";
    let (rows, ended) = read(headless.as_bytes(), 5);
    assert_eq!((rows[0].1, ended), (Some(FaultKind::NotOfFormat), ArchiveEnd::Whole));
    let long = vec![b'x'; 5 << 20];
    let (rows, ended) = read(&long, 1 << 20);
    assert_eq!((rows.len(), ended), (0, ArchiveEnd::Whole));
    for step in [0, 1, 5, 1 << 20] {
        let of = |stray_len, stray_count, at| ArchiveDamage { stray_len, stray_count, short_count: 0, at };
        assert_eq!(damage(stray.as_bytes(), step), of(20, 1, Some(0)));
        assert_eq!(damage(headless.as_bytes(), step), of(0, 0, None));
        assert_eq!(damage(&long[..1 << 21], step.max(4096)), of(1 << 21, 1, Some(0)));
        let whole = record("WARC-Type: resource\r\nWARC-Target-URI: x:y", "1");
        // The last header lost its first letter.
        let broken = format!("{whole}{}", &whole[1..]);
        let (at, len) = (whole.len() as u64, whole.len() as u64 - 1);
        assert_eq!(damage(broken.as_bytes(), step), of(len - 4, 1, Some(at)), "{step}");
        // A length that is too short by two bytes is only flagged.
        let short = format!("{}{whole}", whole.replace("Length: 1\r\n\r\n1", "Length: 1\r\n\r\n123"));
        assert_eq!(damage(short.as_bytes(), step), of(0, 0, None));
        assert_eq!(read(short.as_bytes(), step).0[1].2, Flags::STRAY_BYTES.0);
    }
}

#[test]
fn records_of_other_types_are_counted_and_skipped() {
    let text = sample();
    let mut parser =
        ArchiveParser::of_types(RecordTypes::of_list(&["Response".into(), "request".into()]), FieldSet::default());
    let mut batch = unlimited();
    assert_eq!(parse_whole(&mut parser, &text, &mut batch), ArchiveEnd::Whole);
    let rows = rows(&batch.into_rows());
    assert_eq!((rows.len(), rows[0].5.as_str(), parser.skipped_count()), (2, "EUC-JP", 2));
}

#[test]
fn types_are_selected_by_what_they_hold() {
    let types =
        ["warcinfo", "request", "response", "revisit", "resource", "metadata", "conversion", "continuation", "x"];
    let fields = |name: &str| format!("WARC-Type: {name}\r\nWARC-Target-URI: http://{name}/");
    let about_crawl = record(&(fields("metadata") + "f\r\nContent-Type: application/warc-fields"), "");
    let no_type = record("WARC-Target-URI: http://none/", "");
    let text = types.map(|name| record(&fields(name), "")).concat() + &about_crawl + &no_type;
    let of = |types: RecordTypes| {
        let (rows, ..) = parse(ArchiveParser::of_types(types, FieldSet::default()), text.as_bytes(), (0, usize::MAX));
        rows.concat()
            .iter()
            .map(|row| row.0.trim_start_matches("http://").trim_end_matches('/').to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(RecordTypes::All).len(), 11);
    assert_eq!(of(RecordTypes::of_list(&["response".into(), "ALL".into()])).len(), 11);
    assert_eq!(of(RecordTypes::Captures), ["response", "revisit", "resource", "conversion", "none"]);
    assert_eq!(of(RecordTypes::Replayable), ["response", "revisit", "resource", "metadata", "none"]);
    assert_eq!(of(RecordTypes::of_list(&[" Request".into()])), ["request", "none"]);
}

#[test]
fn fields_of_headers_are_those_of_rows() {
    let fields = "WARC-Type: resource\r\nWARC-Target-URI: http://a.org/\r\nWARC-Truncated: length\r\nContent-Type: a/b;c=d\r\n\
        WARC-Identified-Payload-Type: text/html; charset=x";
    let mut batch = unlimited();
    parse_whole(&mut ArchiveParser::default(), &record(fields, ""), &mut batch);
    let rows = batch.into_rows();
    let records = rows.records();
    let fields = &records.fields;
    let columns = [fields.truncated, fields.detected_mimes, fields.mimes];
    assert_eq!(columns.map(|column| shown(&records, column[0])), ["length", "text/html", "a/b"]);
}

/// The media type of an HTTP response is in its own header; that of other contents is in the header of their record.
#[test]
fn contents_have_the_media_type_of_their_record() {
    let of = |kind: &str, url: &str, content_type: &str, content: &str| {
        let fields = format!("WARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nContent-Type: {content_type}");
        record(&fields, content)
    };
    let http = "HTTP/1.1 200 OK\r\nContent-Type: text/css; charset=c\r\n\r\nbody";
    let untyped = "HTTP/1.1 200 OK\r\n\r\nbody";
    let cases = [
        ("response", "dns:a.org", "text/dns", "20140103 a.org", "text/dns", ""),
        ("response", "ftp://a.org/x", "text/plain; charset=KOI8-R", "x", "text/plain", "KOI8-R"),
        ("response", "http://a.org/", "application/http; msgtype=response", http, "text/css", "c"),
        ("response", "http://a.org/", "Application/HTTP;msgtype=response;charset=no", untyped, "", ""),
        ("response", "http://a.org/", "application/http; msgtype=response", "no header", "", ""),
        ("response", "http://a.org/", "message/http", untyped, "", ""),
        ("response", "http://a.org/", "text/html; charset=x", http, "text/css", "c"),
        ("resource", "http://a.org/", "text/html; charset=\"KOI8-R\"", "x", "text/html", "KOI8-R"),
        ("conversion", "http://a.org/", "text/plain;charset=x", "x", "text/plain", "x"),
        ("revisit", "http://a.org/", "application/http; charset=x", untyped, "warc/revisit", ""),
        ("metadata", "http://a.org/", "application/warc-fields; charset=x", "", "application/warc-fields", ""),
    ];
    let text: String =
        cases.iter().map(|(kind, url, content_type, content, ..)| of(kind, url, content_type, content)).collect();
    let mut batch = unlimited();
    parse_whole(&mut ArchiveParser::default(), &text, &mut batch);
    let rows = batch.into_rows();
    let records = rows.records();
    let (mimes, charsets) = (records.fields.mimes, records.fields.charsets);
    assert_eq!(mimes.len(), cases.len());
    for (i, (kind, _, content_type, content, mime, charset)) in cases.into_iter().enumerate() {
        let found = [mimes[i], charsets[i]].map(|field| shown(&records, field));
        assert_eq!(found, [mime, charset], "{kind} {content_type} {content}");
    }
}

/// Offsets of rows count from the beginning of the source, of which the archive may be a part.
#[test]
fn an_archive_may_begin_at_any_byte() {
    let mut parser = ArchiveParser::default();
    parser.begin(100, true);
    let text = record("WARC-Type: resource\r\nWARC-Target-URI: http://a.org/", "1");
    let (window, mut batch) = (ArchiveWindow { at: 100, bytes: text.as_bytes() }, unlimited());
    parser.push(window, &mut batch);
    assert_eq!(parser.finish(window, &mut batch), ArchiveEnd::Whole);
    assert_eq!(rows(&batch.into_rows()), [row("http://a.org/", 100)]);
}

/// A part of an HTTP header is not read, because a field that is not whole has another value.
#[test]
fn the_header_of_a_response_is_read_if_it_is_whole() {
    let http = "HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n";
    let next = record("WARC-Type: resource\r\nWARC-Target-URI: http://b.org/", "1");
    let of = |content: &str| {
        let fields = "WARC-Type: response\r\nWARC-Target-URI: http://a.org/\r\nContent-Length: 900";
        format!("WARC/1.0\r\n{fields}\r\n\r\n{content}")
    };
    let part = &http[..http.len() - 2];
    for step in [0, 1, 64, 1000] {
        // The archive ends, or another header follows.
        for (rest, count) in [("", 1), (&next[..], 2)] {
            for (content, status) in [(http, Some(302)), (&format!("{http}body\n"), Some(302)), (part, None)] {
                let (rows, _) = read((of(content) + rest).as_bytes(), step);
                assert_eq!((rows.len(), rows[0].2, rows[0].3), (count, Flags::CUT.0, status), "{step} {content}");
                assert_eq!(rows[0].4, if status.is_some() { "/x" } else { "" }, "{step} {content}");
            }
        }
    }
}

/// Documents have what the header of their own record states.
#[test]
fn documents_of_every_kind() {
    const MAX_LEN: u64 = 5;
    let longest = MAX_LEN + headers::MAX_HTTP_LEN;
    let arc = |url: &str| format!("{url} 192.0.2.1 20140216050221 a/b 3\nabc\n");
    let warc = |kind: &str, url: &str, content: &str| {
        let fields = format!("WARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nContent-Type: text/html; charset=KOI8-R");
        record(&fields, content)
    };
    let text = [
        arc("http://1/"),
        warc("resource", "http://2/", "def"),
        arc("http://3/"),
        warc("request", "http://4/", "GET / HTTP/1.1\r\n\r\n"),
        warc("conversion", "http://5/", &"x".repeat(longest as usize)),
        warc("revisit", "http://6/", &"x".repeat(longest as usize + 1)),
    ]
    .concat();
    use {ContentState::*, DocumentKind::*};
    let expected = [
        ("http://1/", "a/b", "", Response, Whole, 3),
        ("http://2/", "text/html", "KOI8-R", Resource, Whole, 3),
        ("http://3/", "a/b", "", Response, Whole, 3),
        ("http://5/", "text/html", "KOI8-R", Resource, Whole, longest as usize),
        ("http://6/", "warc/revisit", "KOI8-R", Revisit, TooLong, 0),
    ];
    for is_mapped in [false, true] {
        let (mut parser, mut batch) = (ArchiveParser::of_documents(MAX_LEN), unlimited());
        parser.begin(0, is_mapped);
        assert_eq!(parse_whole(&mut parser, &text, &mut batch), ArchiveEnd::Whole);
        let documents = batch.take_documents();
        let of = |document: &ArchivedDocument| {
            let texts = [&document.url, &document.mime, &document.charset]
                .map(|text| String::from_utf8_lossy(text).into_owned());
            (texts, document.kind, document.state, document.content.len())
        };
        let expected = expected
            .map(|(url, mime, charset, kind, state, len)| ([url, mime, charset].map(str::to_string), kind, state, len));
        assert_eq!(documents.iter().map(of).collect::<Vec<_>>(), expected, "{is_mapped}");
        assert_eq!((&documents[1].content[..], parser.skipped_count()), (&b"def"[..], 1));
        // No document exceeds the highest limit.
        let (mut parser, mut batch) = (ArchiveParser::of_documents(u64::MAX), unlimited());
        parser.begin(0, is_mapped);
        parse_whole(&mut parser, &text, &mut batch);
        assert!(batch.take_documents().iter().all(|document| document.state == Whole));
    }
}

/// Records that are no pages leave nothing behind for the page that follows.
#[test]
fn links_have_the_page_of_their_record() {
    let other = |kind: &str| record(&format!("WARC-Type: {kind}\r\nWARC-Target-URI: http://{kind}/"), "{}");
    let broken = record("WARC-Type: metadata\r\nWARC-Target-URI: <http://b.org/>", r#"{"Envelope":{"#);
    let text = [broken, other("warcinfo"), other("response"), wat_record(r#"{"url":"/1"}"#)].concat();
    for step in [0, 1, 64] {
        let (batches, _) = parse_batches(&mut ArchiveParser::of_links(), text.as_bytes(), (step, usize::MAX));
        let records = batches[0].records();
        assert_eq!([0, 1].map(|i| shown(&records, records.fields.pages[i])), ["http://b.org/", "http://a.org/"]);
        let found: Vec<_> = rows(&batches[0]).into_iter().map(|row| (row.0, row.1, row.2)).collect();
        let broken = (String::new(), Some(FaultKind::NotOfFormat), Flags::BRACKETED.0);
        assert_eq!(found, [broken, ("/1".to_string(), None, 0)], "{step}");
    }
}

/// Links have the flags about the damage of their record, and not those of the URL of the page.
#[test]
fn links_have_the_flags_of_their_record() {
    let json = envelope(r#"{"HTML-Metadata":{"Links":[{"url":"/1"},{"url":"/2"}]}}"#);
    let bracketed = record("WARC-Type: metadata\r\nWARC-Target-URI: <http://b.org/>", &json);
    let short = bracketed.replace(&format!("Length: {}", json.len()), &format!("Length: {}", json.len() + 100));
    let text = ["garbage\r\n\r\n", &bracketed, &bracketed, &short, &bracketed].concat();
    for step in [0, 1, 64] {
        let (batches, _) = parse_batches(&mut ArchiveParser::of_links(), text.as_bytes(), (step, usize::MAX));
        let found: Vec<_> = rows(&batches[0]).into_iter().map(|row| (row.1, Flags(row.2))).collect();
        let flags = [Flags::STRAY_BYTES, Flags::NONE, Flags::CUT, Flags::NONE];
        assert_eq!(found, flags.map(|flags| [(None, flags); 2]).concat(), "{step}");
    }
}

/// A metadata record states what was detected in the response before it, if both have the same URL.
#[test]
fn detected_languages_and_charsets_are_those_of_the_response_before() {
    let response = |url: &str| {
        let content = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=UTF-8\r\n\r\nbody";
        record(&format!("WARC-Type: response\r\nWARC-Target-URI: {url}"), content)
    };
    let languages_only = "languages-cld2: {\"languages\":[{\"code-iso-639-3\":\"spa\"},{\"code-iso-639-3\":\"eng\"}]}\r\nfetchTimeMs: 132\r\n";
    let metadata = |text: &str| record("WARC-Type: metadata\r\nWARC-Target-URI: http://a.org/", text);
    let detected = metadata(&format!("charset-detected: EUC-JP\r\n{languages_only}"));
    let languages = |text: &str| {
        let mut batch = unlimited();
        parse_whole(&mut ArchiveParser::default(), text, &mut batch);
        let rows = batch.into_rows();
        let records = rows.records();
        let column = |column: &[Option<Span>]| column.iter().map(|field| shown(&records, *field)).collect::<Vec<_>>();
        (column(records.fields.languages), column(records.fields.charsets))
    };
    let texts = |texts: [&str; 2]| texts.map(str::to_string).to_vec();
    let same = languages(&[response("http://a.org/"), detected.clone()].concat());
    assert_eq!(same, (texts(["spa,eng"; 2]), texts(["EUC-JP"; 2])));
    let other = languages(&[response("http://b.org/"), detected].concat());
    assert_eq!(other, (texts(["", "spa,eng"]), texts(["UTF-8", "EUC-JP"])));
    // Without a charset, that of the response stays.
    let same = languages(&[response("http://a.org/"), metadata(languages_only)].concat());
    assert_eq!(same, (texts(["spa,eng"; 2]), texts(["UTF-8", ""])));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    /// Damaged archives give the same rows and the same damage in memory and in any pieces.
    #[test]
    fn damaged_archives_do_not_depend_on_pieces(
        is_arc in any::<bool>(),
        lens in prop::collection::vec((0usize..60, -9i64..200), 1..8),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
        (step, target_len) in (1usize..100, prop::sample::select(&[1usize, 300, usize::MAX][..])),
    ) {
        let mut text = Vec::new();
        for (i, (len, error)) in lens.into_iter().enumerate() {
            // Most lengths are right.
            let stated = len as i64 + if i % 3 == 1 { error } else { 0 };
            let kind = ["response", "request", "metadata", "resource"][i % 4];
            let content = &"HTTP/1.1 200 OK\r\nLocation: x\r\n\r\nhttp://b/\nWARC/1.0\nx\n\n1234567890"[..len.min(69)];
            text.extend_from_slice(&match is_arc {
                true => format!("http://a.org/{i} 192.0.2.1 20140216050221 a/b {stated}\n{content}\n"),
                false => format!("WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.org/\r\nContent-Length: {stated}\r\n\r\n{content}\r\n\r\n"),
            }.into_bytes());
        }
        for (at, byte) in flips {
            let at = at.index(text.len());
            text[at] ^= byte & 0x1f;
        }
        let len = cut.map_or(text.len(), |at| at.index(text.len()));
        let of = |step| {
            let mut parser = ArchiveParser::default();
            parser.set_file("x", false);
            parse(parser, &text[..len], (step, target_len))
        };
        prop_assert_eq!(of(step), of(0));
        prop_assert_eq!(index_fields(&text[..len], step), index_fields(&text[..len], 0));
    }
}
