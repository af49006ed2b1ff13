//! Heads, records and links that are too long, and batches that are full.

use super::*;

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
