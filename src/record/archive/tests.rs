//! Whole, truncated, damaged and malformed archives, in memory and in pieces of any length.

mod index;

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
fn every_truncation_gives_whole_heads_and_is_reported() {
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
        // The last head lost its first letter.
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
fn arc_records_of_both_versions() {
    let text = "filedesc://x.arc 0.0.0.0 20140216050221 text/plain 10\n1 0 Some\nx\n\
        http://a.org/b c 192.0.2.1 20140216050221 text/html 41\nHTTP/1.1 301 Moved\nLocation: /z\n\nbodybody\n\
        dns:a.org 192.0.2.1 20140216050222 text/dns 200 - - 77 x.arc 5\n12345\n";
    let (rows, ended) = read(text.as_bytes(), 9);
    let got: Vec<_> = rows.iter().map(|row| (row.0.as_str(), row.3, row.4.as_str())).collect();
    let want = [("filedesc://x.arc", None, ""), ("http://a.org/b c", Some(301), "/z"), ("dns:a.org", Some(200), "")];
    assert_eq!((got, ended), (want.to_vec(), ArchiveEnd::Whole));
}

#[test]
fn arc_heads_that_programs_wrote() {
    let text = "\nfiledesc://x.arc 0.0.0.0 201402160502 text/plain 5\n1 0 S\n\nhttp://a.org/ 192.0.2.1 201402160502 text/html -1\n\
        HTTP/1.1 200 OK\n\nbody\nhttp://b.org/ 192.0.2.1 20140216050221 text/html 5\n12345\n\
        http://c.org/ 192.0.2.1 20140216050221 text/html 3\n12\nhttp://d.org/ 192.0.2.1 20140216050221 text/html 5\n12\n\
        http://e.org/ 192.0.2.1 20140216050221 text/html 2\n12345\n";
    assert!(is_archive(text.as_bytes()));
    for step in [0, 1, 10, 1000] {
        let (rows, ended, damage) = parse(ArchiveParser::default(), text.as_bytes(), (step, usize::MAX));
        let got: Vec<_> = rows[0].iter().map(|row| (row.0.as_str(), row.2)).collect();
        let cut = Flags::CUT.0;
        let want = [
            ("filedesc://x.arc", 0),
            ("http://a.org/", cut),
            ("http://b.org/", 0),
            ("http://c.org/", 0),
            ("http://d.org/", cut),
            // Nothing follows that could have a flag.
            ("http://e.org/", cut),
        ];
        assert_eq!((got, ended), (want.to_vec(), ArchiveEnd::Whole), "{step}");
        assert_eq!(damage, ArchiveDamage::default());
    }
}

#[test]
fn an_arc_that_ends_within_a_head_is_truncated() {
    let info = "filedesc://x.arc 0.0.0.0 201402160502 text/plain 5\n1 0 S\n\n";
    let arc = |content: &str| {
        let len = content.len();
        format!("{info}http://a.org/ 192.0.2.1 20140216050221 text/html {len}\n{content}")
    };
    let of = |text: &str, step| parse(ArchiveParser::default(), text.as_bytes(), (step, usize::MAX));
    let stray = |len, at| ArchiveDamage { stray_len: len, stray_count: 1, short_count: 0, at: Some(at as u64) };
    let heads =
        ["h", "http", "https", "http:", "http://b.org/ 192.0.2.1 2014", "d", "dns:b", "f", "ftp:", "w", "filedesc"];
    // The last content has a line that looks like a head.
    let contents = ["12345", "1\nhttp://c.org/ 192.0.2.1 20140216050221 text/html 1\n2"];
    for (step, content) in [0, 1, 7, 1000].into_iter().flat_map(|step| contents.map(|content| (step, content))) {
        let whole = arc(content);
        let rows = of(&(whole.clone() + "\n"), step).0;
        assert_eq!(rows[0].iter().map(|row| row.2).collect::<Vec<_>>(), [0, 0]);
        let digests = index_fields(whole.as_bytes(), step);
        for head in heads {
            let text = format!("{whole}\n{head}");
            let end = ArchiveEnd::Truncated(head.len() as u64);
            assert_eq!(of(&text, step), (rows.clone(), end, ArchiveDamage::default()), "{step} {text}");
            assert_eq!(index_fields(text.as_bytes(), step), digests, "{step} {text}");
        }
    }
    for step in [0, 1, 7, 1000] {
        let whole = arc("12345");
        // Other bytes after a line end are not part of the record.
        let (rows, end, damage) = of(&format!("{whole}\n1234"), step);
        assert_eq!((rows[0][1].2, end, damage), (0, ArchiveEnd::Whole, stray(4, whole.len() + 1)), "{step}");
        // Bytes right after the content are its rest, although they could begin a head.
        let (rows, end, damage) = of(&format!("{whole}http"), step);
        assert_eq!((rows[0][1].2, end, damage), (Flags::CUT.0, ArchiveEnd::Whole, ArchiveDamage::default()), "{step}");
        // In a WARC, the head has another first word.
        let warc = record("WARC-Type: resource\r\nWARC-Target-URI: x:y", "1");
        let (rows, end, damage) = of(&format!("{warc}http"), step);
        assert_eq!((rows[0][0].2, end, damage), (Flags::CUT.0, ArchiveEnd::Whole, ArchiveDamage::default()), "{step}");
        let (rows, end, damage) = of(&format!("{warc}WARC"), step);
        assert_eq!((rows[0][0].2, end, damage), (0, ArchiveEnd::Truncated(4), ArchiveDamage::default()), "{step}");
    }
}

/// Ten records; the length of the fourth is too long by `excess`, and the payload of the second shows a head.
fn with_wrong_length(excess: usize) -> Vec<String> {
    let fields = |i| format!("WARC-Type: resource\r\nWARC-Target-URI: http://a.org/{i}");
    let payload =
        |i| if i == 1 { "a\r\n\r\nWARC/1.0\r\nContent-Length: 3\r\n\r\nxyz".to_string() } else { "p".repeat(9) };
    let of = |i| record(&fields(i), &payload(i));
    let wrong = |i| of(i).replace("Length: 9", &format!("Length: {}", 9 + excess));
    (0..10).map(|i| if i == 3 { wrong(i) } else { of(i) }).collect()
}

#[test]
fn a_wrong_length_costs_no_record() {
    for excess in [1, 4, 5, 9, 12, 110, 300, 10_000, usize::MAX / 3] {
        let text = with_wrong_length(excess).concat();
        for step in [0, 1, 3, 64, 1000, 1 << 20] {
            let (rows, ended, damage) = parse(ArchiveParser::default(), text.as_bytes(), (step, 200));
            let rows = rows.concat();
            assert_eq!((rows.len(), ended), (10, ArchiveEnd::Whole), "{excess} {step}");
            for (i, row) in rows.iter().enumerate() {
                // An excess of up to the line ends is the same as fewer line ends.
                let is_cut = i == 3 && excess > 4;
                let want = (format!("http://a.org/{i}"), if is_cut { Flags::CUT.0 } else { 0 });
                assert_eq!((row.0.clone(), row.2), want, "{excess} {step}");
            }
            assert_eq!((damage.stray_len, damage.short_count), (0, u64::from(excess > 8)), "{excess}");
        }
    }
}

#[test]
fn a_record_ends_with_its_gzip_member() {
    for (excess, ends_of) in [(0, 1), (1000, 1), (usize::MAX / 3, 1), (1000, 2), (5, 1)] {
        let records = with_wrong_length(excess);
        let text = records.concat();
        for step in [1, 3, 64, 1000, 1 << 20] {
            let mut parser = ArchiveParser::default();
            let mut at = 0;
            for (i, record) in records.iter().enumerate() {
                at += record.len() as u64;
                if i % ends_of == 0 {
                    parser.push_member_end(at, at / 2);
                }
            }
            let (rows, ended, damage) = parse(parser, text.as_bytes(), (step, 200));
            assert_eq!((rows.concat().len(), ended), (10, ArchiveEnd::Whole), "{excess} {step}");
            assert_eq!(damage.short_count, u64::from(excess > 8), "{excess} {step}");
        }
    }
}

#[test]
fn members_that_are_blocks_end_no_record() {
    let text = with_wrong_length(0).concat();
    let whole = read(text.as_bytes(), 0);
    for block_len in [7, 100, 333] {
        for step in [1, 1000] {
            let mut parser = ArchiveParser::default();
            (1..)
                .map(|i| i * block_len)
                .take_while(|at| *at < text.len() as u64)
                .for_each(|at| parser.push_member_end(at, at));
            let (rows, ended, damage) = parse(parser, text.as_bytes(), (step, usize::MAX));
            assert_eq!((rows.concat(), ended), whole.clone(), "{block_len}");
            assert_eq!(damage, ArchiveDamage::default());
        }
    }
}

/// The position of a record is that of its gzip member. Once a member begins within a record, members are not records.
#[test]
fn positions_are_those_of_members_that_are_records() {
    let url = |i: u32| format!("WARC-Type: resource\r\nWARC-Target-URI: http://{i}/");
    let text: String = (0..5).map(|i| record(&url(i), "content")).collect();
    let len = text.len() as u64 / 5;
    let positions = |ends: &[u64], step: usize| {
        let mut parser = ArchiveParser::default();
        parser.set_file("a.warc.gz", true);
        ends.iter().for_each(|end| parser.push_member_end(*end, 10 * end));
        let (batches, _) = parse_batches(&mut parser, text.as_bytes(), (step, usize::MAX));
        let fields = batches[0].records().fields;
        fields.capture_offsets.iter().copied().zip(fields.capture_lengths.iter().copied()).collect::<Vec<_>>()
    };
    let position = |i: u64| (Some((10 * i * len) as i64), Some(10 * len as i64));
    for step in [1, 64, 10_000] {
        let ends: Vec<u64> = (1..=5).map(|i| i * len).collect();
        assert_eq!(positions(&ends, step), (0..5).map(position).collect::<Vec<_>>(), "{step}");
        // The third record has two members.
        let ends = [len, 2 * len, 2 * len + 50, 3 * len, 4 * len, 5 * len];
        let none = (None, None);
        assert_eq!(positions(&ends, step), [position(0), position(1), none, none, none], "{step}");
        // The second and the third record have one member.
        let ends = [len, 3 * len, 4 * len, 5 * len];
        assert_eq!(positions(&ends, step), [position(0), none, none, position(3), position(4)], "{step}");
    }
}

/// Members within a record are not passed one by one for each record whose length is that of all that follow.
#[test]
fn records_with_wrong_lengths_in_blocks_are_those_without_blocks() {
    let head = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://h/\r\nContent-Length: 30000000\r\n\r\n";
    let wrong = format!("{head}x\nWARC/1.0\n\n\r\n\r\n").repeat(200);
    for text in [wrong, with_wrong_length(0).concat(), with_wrong_length(1000).concat(), sample()] {
        let whole = parse(ArchiveParser::default(), text.as_bytes(), (64, usize::MAX));
        for block_len in [7, 13, 53, 333] {
            let ends = || (1..).map(|i| i * block_len).take_while(|at| *at <= text.len() as u64);
            let parser = || {
                let mut parser = ArchiveParser::default();
                ends().for_each(|at| parser.push_member_end(at, at / 2));
                parser
            };
            for step in [1, 64, 1000] {
                assert_eq!(parse(parser(), text.as_bytes(), (step, usize::MAX)), whole, "{block_len} {step}");
            }
            let mut parser = parser();
            parse_whole(&mut parser, &text, &mut unlimited());
            let (count, pass_count) = (ends().count() as u64, parser.members.pass_count);
            assert!(pass_count <= 2 * count, "{pass_count} of {count}");
        }
    }
}

#[test]
fn long_heads_are_a_fault_for_any_pieces() {
    let long = |len: usize| {
        let fields = format!("WARC-Type: resource\r\nWARC-Target-URI: http://a/\r\nX: {}", "x".repeat(len));
        record(&fields, "content") + &record("WARC-Type: resource\r\nWARC-Target-URI: http://b/", "c")
    };
    let fixed = long(0).find("\r\n\r\n").unwrap() + 4;
    let max_len = MAX_HEAD_LEN as usize - fixed;
    for (len, fault) in [(max_len, None), (max_len + 1, Some(FaultKind::TooLong)), (3 << 20, Some(FaultKind::TooLong))]
    {
        let text = long(len);
        let whole = read(text.as_bytes(), 0);
        assert_eq!((whole.0[0].1, whole.0.len(), whole.1), (fault, 2, ArchiveEnd::Whole));
        assert_eq!((whole.0[1].0.as_str(), whole.0[1].2), ("http://b/", 0));
        for step in [100_000, 1 << 20, (1 << 20) + 1, 4 << 20] {
            assert_eq!(read(text.as_bytes(), step), whole, "{len} {step}");
        }
    }
}

#[test]
fn a_full_batch_pauses_the_parser() {
    let text = sample();
    let whole = read(text.as_bytes(), 100).0;
    for step in [0, 10, 1000] {
        let (paused, end, _) = parse(ArchiveParser::default(), text.as_bytes(), (step, 1));
        assert_eq!((paused.len(), paused.concat(), end), (4, whole.clone(), ArchiveEnd::Whole));
    }
}

#[test]
fn links_of_one_page_fill_several_batches() {
    let links: String = (0..10).map(|i| format!(r#"{{"url":"/{i}"}},"#)).collect();
    let text = wat_record(&format!(r#"{links}{{"url":"/10"}}"#)).repeat(2);
    let of_links = |step| {
        let (batches, end, _) = parse(ArchiveParser::of_links(), text.as_bytes(), (step, 4 * 80));
        assert_eq!(end, ArchiveEnd::Whole);
        batches
    };
    assert_eq!(of_links(0).iter().map(Vec::len).collect::<Vec<_>>(), [5, 5, 5, 5, 2]);
    assert_eq!((of_links(1), of_links(100)), (of_links(0), of_links(0)));
}

/// A page and the labels of a link can be much longer than the link, and a file can compress them well.
#[test]
fn long_texts_of_links_fill_a_batch() {
    const TARGET_LEN: usize = 64 << 10;
    let page = |len: usize, html: &str| {
        let json = envelope(&format!(r#"{{"HTML-Metadata":{html}}}"#));
        record(&format!("WARC-Type: metadata\r\nWARC-Target-URI: http://a.org/{}", "x".repeat(len)), &json)
    };
    let links = |link: &str| [link; 300].join(",");
    let label = "y".repeat(1000);
    let labels = format!(r#"{{"url":"/","path":"{label}","rel":"{label}","text":"{label}"}}"#);
    for (text, count, text_len) in [
        // Each row has the page.
        (
            page(10_000, &format!(r#"{{"Head":{{"Base":"http://b/"}},"Links":[{}]}}"#, links(r#"{"url":"/"}"#))),
            300,
            10_000,
        ),
        (page(0, &format!(r#"{{"Links":[{}]}}"#, links(&labels))), 300, 3000),
        // The base is too long.
        (page(100_000, "{}").repeat(9), 9, 100_000),
    ] {
        let (batches, _) = parse_batches(&mut ArchiveParser::of_links(), text.as_bytes(), (0, TARGET_LEN));
        assert_eq!(batches.iter().map(RecordBuffer::len).sum::<usize>(), count);
        let longest = batches.iter().map(RecordBuffer::len).max().unwrap_or(0);
        assert!(longest * text_len <= 2 * TARGET_LEN + text_len, "{longest} rows with {text_len} bytes");
    }
}

#[test]
fn a_record_that_is_too_long_is_a_fault() {
    let text = sample();
    let limits = BatchLimits { target_len: usize::MAX, max_record_len: 20 };
    let (mut parser, mut batch) = (ArchiveParser::default(), CaptureBatch::new(FieldSet::ALL, limits));
    parse_whole(&mut parser, &text, &mut batch);
    let rows = rows(&batch.into_rows());
    let faults: Vec<_> = rows.iter().map(|row| row.1).collect();
    assert_eq!(faults, [Some(FaultKind::NoUrl), Some(FaultKind::TooLong), Some(FaultKind::TooLong), None]);
    assert_eq!((rows[1].0.as_str(), rows[1].3), ("", Some(302)));
}

/// A link whose texts are longer than a record may be is a row with a fault, and the links after it are rows.
#[test]
fn a_link_that_is_too_long_is_a_fault() {
    let long = "x".repeat(200);
    let links = format!(r#"{{"url":"/1"}},{{"url":"/{long}"}},{{"url":"/2","text":"{long}"}},{{"url":"/3"}}"#);
    let text = wat_record(&links);
    let limits = BatchLimits { target_len: usize::MAX, max_record_len: 200 };
    let (mut parser, mut batch) = (ArchiveParser::of_links(), CaptureBatch::new(FieldSet::ALL, limits));
    assert!(batch.is_empty());
    parser.begin(0, true);
    parse_whole(&mut parser, &text, &mut batch);
    assert!(!batch.is_empty());
    let batch = batch.into_rows();
    let records = batch.records();
    let pages = records.fields.pages.iter().map(|page| page.map(|page| page.of(records.text)));
    assert!(pages.eq([Some(&b"http://a.org/"[..]); 4]));
    let found: Vec<_> = rows(&batch).into_iter().map(|row| (row.0, row.1)).collect();
    let too_long = || (String::new(), Some(FaultKind::TooLong));
    assert_eq!(found, [("/1".to_string(), None), too_long(), too_long(), ("/3".to_string(), None)]);
}

/// A metadata record states what was detected in the response before it, if both have the same URL.
#[test]
fn detected_languages_and_charsets_are_those_of_the_response_before() {
    let response =
        |url: &str| record(&format!("WARC-Type: response\r\nWARC-Target-URI: {url}"), "HTTP/1.1 200 OK\r\n\r\nbody");
    let detected = "charset-detected: EUC-JP\r\nlanguages-cld2: {\"languages\":[{\"code-iso-639-3\":\"spa\"},{\"code-iso-639-3\":\"eng\"}]}\r\n";
    let metadata = record("WARC-Type: metadata\r\nWARC-Target-URI: http://a.org/", detected);
    let languages = |text: &str| {
        let mut batch = unlimited();
        parse_whole(&mut ArchiveParser::default(), text, &mut batch);
        let rows = batch.into_rows();
        let records = rows.records();
        let column = |column: &[Option<Span>]| column.iter().map(|field| shown(&records, *field)).collect::<Vec<_>>();
        (column(records.fields.languages), column(records.fields.charsets))
    };
    let texts = |texts: [&str; 2]| texts.map(str::to_string).to_vec();
    let same = languages(&[response("http://a.org/"), metadata.clone()].concat());
    assert_eq!(same, (texts(["spa,eng"; 2]), texts(["EUC-JP"; 2])));
    let other = languages(&[response("http://b.org/"), metadata].concat());
    assert_eq!(other, (texts(["", "spa,eng"]), texts(["", "EUC-JP"])));
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
