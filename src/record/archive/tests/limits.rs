//! Headers, records and links that are too long, and batches that are full.

use super::*;
use crate::record::archive::links::MAX_BASE_LEN;

#[test]
fn long_headers_are_a_fault_for_any_pieces() {
    let long = |len: usize| {
        let fields = format!("WARC-Type: resource\r\nWARC-Target-URI: http://a/\r\nX: {}", "x".repeat(len));
        record(&fields, "content") + &record("WARC-Type: resource\r\nWARC-Target-URI: http://b/", "c")
    };
    let fixed = long(0).find("\r\n\r\n").unwrap() + 4;
    let max_len = MAX_HEADER_LEN as usize - fixed;
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
    let limits = BatchLimits { target_len: usize::MAX, max_record_len: "http://a.org/".len() };
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
    // With the page and the base, the longest link has 200 bytes.
    let longest = format!("/{}", "y".repeat(200 - 2 * "http://a.org/".len() - 1));
    let links = format!(
        r#"{{"url":"/1"}},{{"url":"{longest}"}},{{"url":"{longest}y"}},{{"url":"/2","text":"{long}"}},{{"url":"/3"}}"#
    );
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
    assert!(pages.eq([Some(&b"http://a.org/"[..]); 5]));
    let found: Vec<_> = rows(&batch).into_iter().map(|row| (row.0, row.1)).collect();
    let too_long = || (String::new(), Some(FaultKind::TooLong));
    let whole = |url: &str| (url.to_string(), None);
    assert_eq!(found, [whole("/1"), whole(&longest), too_long(), too_long(), whole("/3")]);
}

/// Every row of a page has its URL, unless it is longer than a base may be.
#[test]
fn a_page_that_is_too_long_is_left_out_of_its_links() {
    for (len, has_page) in [(MAX_BASE_LEN, true), (MAX_BASE_LEN + 1, false)] {
        let page = format!("http://a.org/{}", "x".repeat(len - "http://a.org/".len()));
        let json = envelope(r#"{"HTML-Metadata":{"Head":{"Base":"http://b/"},"Links":[{"url":"y"},{"url":"z"}]}}"#);
        let text = record(&format!("WARC-Type: metadata\r\nWARC-Target-URI: {page}"), &json);
        let mut batch = unlimited();
        parse_whole(&mut ArchiveParser::of_links(), &text, &mut batch);
        let rows = batch.into_rows();
        let records = rows.records();
        let pages: Vec<_> = records.fields.pages.iter().map(|span| span.map(|span| records.show(span))).collect();
        assert_eq!(pages, vec![has_page.then_some(page); 2], "{len}");
    }
}

/// The size of a batch is that of its texts and 64 bytes for each record.
#[test]
fn a_batch_is_full_when_it_reaches_its_size() {
    let text = record("WARC-Type: resource\r\nWARC-Target-URI: http://a.org/", "").repeat(2);
    let row_len = 64 + "http://a.org/".len();
    for (target_len, lens) in [(row_len, vec![1, 1]), (row_len + 1, vec![2])] {
        let (batches, ..) = parse(ArchiveParser::default(), text.as_bytes(), (0, target_len));
        assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), lens);
    }
    let mut batch = unlimited();
    parse_whole(&mut ArchiveParser::default(), &text, &mut batch);
    assert_eq!(batch.len(), 2 * row_len);
}

/// Requests are only read for an index; otherwise their bodies make no record too long.
#[test]
fn the_body_of_a_request_counts_if_it_is_read() {
    let request = format!("POST / HTTP/1.1\r\n\r\n{}", "x".repeat(100));
    let text = record("WARC-Type: request\r\nWARC-Target-URI: http://a.org/", &request)
        + &record("WARC-Type: response\r\nWARC-Target-URI: http://a.org/", "HTTP/1.1 200 OK\r\n\r\n");
    let limits = BatchLimits { target_len: usize::MAX, max_record_len: 100 };
    for (carry, fault) in [(FieldSet::default(), None), (FieldSet::ALL, Some(FaultKind::TooLong))] {
        let mut batch = CaptureBatch::new(carry, limits);
        parse_whole(&mut ArchiveParser::of_types(RecordTypes::All, carry), &text, &mut batch);
        let rows = batch.into_rows();
        assert_eq!([0, 1].map(|row| rows.records().fault(row)), [None, fault]);
    }
}

/// A header in the rest of a line that is too long is a part of that line, also if the bytes before it were read alone.
#[test]
fn a_header_does_not_begin_within_a_line() {
    let text = "x".repeat(2 << 20) + &record("WARC-Type: resource\r\nWARC-Target-URI: http://a.org/", "1");
    for step in [0, 1 << 20] {
        let (rows, end, damage) = parse(ArchiveParser::default(), text.as_bytes(), (step, usize::MAX));
        assert_eq!((rows.concat(), end, damage.stray_count), (vec![], ArchiveEnd::Whole, 1), "{step}");
    }
}

/// Lines that are too far back are no reason not to look for others.
#[test]
fn a_record_ends_at_a_header_after_lines_that_are_too_far_back() {
    let header = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a/\r\nContent-Length: 99999999\r\n\r\n";
    let inner = "WARC/1.0\r\nWARC-Target-URI: http://b/\r\n\r\n";
    let max_len = HeaderSearch::MAX_LEN as usize;
    let lines = "x\nWARC/\n".repeat(max_len / 8);
    let few = format!("WARC/\n{}WARC/\n", "x".repeat(max_len / 2));
    for before in [lines, few] {
        let text = [header, &before, inner, &"x".repeat(max_len - inner.len())].concat();
        for step in [0, 1 << 20, 16 << 20] {
            let (rows, ended) = read(text.as_bytes(), step);
            assert_eq!(rows.iter().map(|row| &row.0[..]).collect::<Vec<_>>(), ["http://a/", "http://b/"], "{step}");
            assert_eq!((rows[0].2, ended), (Flags::CUT.0, ArchiveEnd::Whole), "{step}");
        }
    }
}

/// What follows a line that may be a header is kept up to a limit, which is the same for an archive in memory.
#[test]
fn a_record_ends_at_a_header_that_is_not_too_far_back() {
    let header = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a/\r\nContent-Length: 99999999\r\n\r\n";
    let inner = "WARC/1.0\r\nWARC-Target-URI: http://b/\r\n\r\n";
    let max_len = HeaderSearch::MAX_LEN as usize - inner.len();
    for (len, urls, end) in [
        (max_len, vec!["http://a/", "http://b/"], ArchiveEnd::Whole),
        (max_len + 1, vec!["http://a/"], ArchiveEnd::Truncated(0)),
    ] {
        let text = [header, inner, &"x".repeat(len)].concat();
        for step in [0, 16 << 20] {
            let (rows, ended) = read(text.as_bytes(), step);
            assert_eq!(rows.iter().map(|row| &row.0[..]).collect::<Vec<_>>(), urls, "{len} {step}");
            assert_eq!((rows[0].2, ended), (Flags::CUT.0, end), "{len} {step}");
        }
    }
}
