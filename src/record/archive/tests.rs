//! Whole, truncated and malformed archives, in pieces of any length.

use super::*;
use crate::kernel::Span;
use crate::record::fields::FieldSet;
use crate::record::{RecordBuffer, RecordOffsets};

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
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let offsets = if let RecordOffsets::Each(offsets) = records.offsets { offsets } else { &[] };
    let row = |i: usize| {
        let fault = records.faults.iter().find(|(row, _)| *row as usize == i).map(|(_, fault)| fault.kind);
        let flags = records.flags.iter().find(|(row, _)| *row as usize == i).map_or(0, |(_, flags)| flags.0);
        let field = |column: &[Option<Span>]| column[i].map_or(String::new(), |span| text(span.of(records.text)));
        let fields = &records.fields;
        let (redirect, charset) = (field(fields.redirects), field(fields.charsets));
        (text(records.urls[i].of(records.text)), fault, flags, fields.statuses[i], redirect, charset, offsets[i])
    };
    (0..records.urls.len()).map(row).collect()
}

fn read(text: &[u8], step: usize) -> (Vec<Row>, Result<(), TruncatedArchive>) {
    let (mut parser, mut batch) = (ArchiveParser::default(), unlimited());
    for bytes in text.chunks(step) {
        assert_eq!(parser.push(bytes, &mut batch), bytes.len());
    }
    let end = parser.finish(&mut batch);
    assert_eq!(parser.taken(), text.len() as u64);
    (rows(&batch.into_rows()), end)
}

fn row(url: &str, offset: usize) -> Row {
    (url.into(), None, 0, None, String::new(), String::new(), offset as u64)
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
    for step in [1, 2, 7, 100, 10_000] {
        assert_eq!(read(text.as_bytes(), step), (want.to_vec(), Ok(())), "{step}");
    }
}

#[test]
fn every_truncation_gives_whole_heads_and_is_reported() {
    let text = sample();
    let whole = read(text.as_bytes(), 100).0;
    for len in 1..text.len() {
        let (got, ended) = read(&text.as_bytes()[..len], 64);
        let same = got.iter().zip(&whole).take_while(|(a, b)| (&a.0, a.6) == (&b.0, b.6)).count();
        assert_eq!(same, got.len(), "{len}");
        let is_cut = got.last().is_some_and(|row| row.2 & Flags::CUT.0 != 0);
        assert!(ended.is_err() || !is_cut, "{len}");
    }
}

#[test]
fn stray_bytes_are_skipped_and_flagged() {
    let stray = format!("garbage\nmore of it\r\n\r\n{}", record("WARC-Type: resource\r\nWARC-Target-URI: x:y", ""));
    let (rows, ended) = read(stray.as_bytes(), 5);
    assert_eq!((rows[0].0.as_str(), rows[0].2, rows[0].6, ended), ("x:y", Flags::STRAY_BYTES.0, 22, Ok(())));
    let headless = "WARC/1.0\r\nWARC-Target-URI: x:y\r\n\r\n";
    let (rows, ended) = read(headless.as_bytes(), 5);
    assert_eq!((rows[0].1, ended), (Some(FaultKind::NotOfFormat), Ok(())));
    let (rows, ended) = read(&vec![b'x'; 5 << 20], 1 << 20);
    assert_eq!((rows.len(), ended.is_ok()), (0, true));
}

#[test]
fn records_of_other_types_are_counted_and_skipped() {
    let text = sample();
    let mut parser = ArchiveParser::of_types(&["Response".into(), "request".into()]);
    let mut batch = unlimited();
    parser.push(text.as_bytes(), &mut batch);
    assert_eq!(parser.finish(&mut batch), Ok(()));
    let rows = rows(&batch.into_rows());
    assert_eq!((rows.len(), rows[0].5.as_str(), parser.skipped_count()), (2, "EUC-JP", 2));
}

#[test]
fn arc_records_of_both_versions() {
    let text = "filedesc://x.arc 0.0.0.0 20140216050221 text/plain 10\n1 0 Some\nx\n\
        http://a.org/b c 192.0.2.1 20140216050221 text/html 41\nHTTP/1.1 301 Moved\nLocation: /z\n\nbodybody\n\
        dns:a.org 192.0.2.1 20140216050222 text/dns 200 - - 77 x.arc 5\n12345\n";
    let (rows, ended) = read(text.as_bytes(), 9);
    let got: Vec<_> = rows.iter().map(|row| (row.0.as_str(), row.3, row.4.as_str())).collect();
    let want = [("filedesc://x.arc", None, ""), ("http://a.org/b c", Some(301), "/z"), ("dns:a.org", Some(200), "")];
    assert_eq!((got, ended), (want.to_vec(), Ok(())));
}

#[test]
fn a_full_batch_pauses_the_parser() {
    let text = sample();
    let whole = read(text.as_bytes(), 100).0;
    let (mut parser, mut rest, mut paused) = (ArchiveParser::default(), text.as_bytes(), Vec::new());
    loop {
        let limits = BatchLimits { target_len: 1, max_record_len: usize::MAX };
        let mut batch = CaptureBatch::new(FieldSet::ALL, limits);
        rest = &rest[parser.push(rest, &mut batch)..];
        let is_last = !batch.is_full();
        if is_last {
            assert_eq!(parser.finish(&mut batch), Ok(()));
        }
        assert!(!batch.is_empty());
        paused.extend(rows(&batch.into_rows()));
        if is_last {
            break;
        }
    }
    assert_eq!(paused, whole);
}

#[test]
fn links_of_one_page_fill_several_batches() {
    let links: String = (0..10).map(|i| format!(r#"{{"url":"/{i}"}},"#)).collect();
    let html = format!(r#"{{"Links":[{links}{{"url":"/10"}}]}}"#);
    let json =
        format!(r#"{{"Envelope":{{"Payload-Metadata":{{"HTTP-Response-Metadata":{{"HTML-Metadata":{html}}}}}}}}}"#);
    let text = record("WARC-Type: metadata\r\nWARC-Target-URI: http://a.org/", &json).repeat(2);
    let (mut parser, mut rest, mut lens) = (ArchiveParser::of_links(), text.as_bytes(), Vec::new());
    while !rest.is_empty() {
        let limits = BatchLimits { target_len: 4 * 80, max_record_len: usize::MAX };
        let mut batch = CaptureBatch::new(FieldSet::ALL, limits);
        rest = &rest[parser.push(rest, &mut batch)..];
        let rows = batch.into_rows();
        assert!(rows.records().bases.iter().all(|base| base.of(rows.records().text) == b"http://a.org/"));
        lens.push(rows.len());
    }
    assert_eq!(lens, [5, 5, 5, 5, 2]);
}

#[test]
fn a_record_that_is_too_long_ends_the_batch() {
    let text = sample();
    let limits = BatchLimits { target_len: usize::MAX, max_record_len: 10 };
    let (mut parser, mut batch) = (ArchiveParser::default(), CaptureBatch::new(FieldSet::ALL, limits));
    parser.push(text.as_bytes(), &mut batch);
    let second = text.match_indices("WARC/1.0\r\n").nth(1).unwrap().0;
    assert_eq!((batch.too_long_at(), batch.is_full(), batch.into_rows().len()), (Some(second as u64), true, 1));
}
