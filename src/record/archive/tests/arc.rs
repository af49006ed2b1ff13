//! ARC files.

use super::*;

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

/// What an HTTP header does not state is that of the columns. The first record of a file is one of the type `warcinfo`.
#[test]
fn columns_of_arc_headers() {
    let text = "filedesc://x.arc 0.0.0.0 20140216050221 text/plain 10\n1 0 Some\nx\n\
        http://a.org/ 192.0.2.1 20140216050222 text/html 302 - /b 77 x.arc 4\nbody\n\
        http://b.org/ 192.0.2.1 20140216050222 - 5\n12345\n\
        http://c.org/ 192.0.2.1 20140216050222 no-type 302 - /c 77 x.arc 18\nHTTP/1.1 301 OK\n\nx\n";
    let mut parser = ArchiveParser::of_types(RecordTypes::of_list(&["response".into()]), FieldSet::ALL);
    let mut batch = unlimited();
    assert_eq!(parse_whole(&mut parser, text, &mut batch), ArchiveEnd::Whole);
    let rows = batch.into_rows();
    let records = rows.records();
    let fields = &records.fields;
    let row = |i: usize| (fields.statuses[i], shown(&records, fields.redirects[i]), shown(&records, fields.mimes[i]));
    let want = [(Some(302), "/b", "text/html"), (None, "", ""), (Some(301), "/c", "")];
    assert_eq!([0, 1, 2].map(row), want.map(|(status, url, mime)| (status, url.to_string(), mime.to_string())));
    assert_eq!((records.urls.len(), parser.skipped_count()), (3, 1));
}

#[test]
fn arc_headers_that_programs_wrote() {
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
fn an_arc_that_ends_within_a_header_is_truncated() {
    let info = "filedesc://x.arc 0.0.0.0 201402160502 text/plain 5\n1 0 S\n\n";
    let arc = |content: &str| {
        let len = content.len();
        format!("{info}http://a.org/ 192.0.2.1 20140216050221 text/html {len}\n{content}")
    };
    let of = |text: &str, step| parse(ArchiveParser::default(), text.as_bytes(), (step, usize::MAX));
    let stray = |len, at| ArchiveDamage { stray_len: len, stray_count: 1, short_count: 0, at: Some(at as u64) };
    let headers =
        ["h", "http", "https", "http:", "http://b.org/ 192.0.2.1 2014", "d", "dns:b", "f", "ftp:", "w", "filedesc"];
    // The last content has a line that looks like a header.
    let contents = ["12345", "1\nhttp://c.org/ 192.0.2.1 20140216050221 text/html 1\n2"];
    for (step, content) in [0, 1, 7, 1000].into_iter().flat_map(|step| contents.map(|content| (step, content))) {
        let whole = arc(content);
        let rows = of(&(whole.clone() + "\n"), step).0;
        assert_eq!(rows[0].iter().map(|row| row.2).collect::<Vec<_>>(), [0, 0]);
        let digests = index_fields(whole.as_bytes(), step);
        for header in headers {
            let text = format!("{whole}\n{header}");
            let end = ArchiveEnd::Truncated(header.len() as u64);
            assert_eq!(of(&text, step), (rows.clone(), end, ArchiveDamage::default()), "{step} {text}");
            assert_eq!(index_fields(text.as_bytes(), step), digests, "{step} {text}");
        }
    }
    for step in [0, 1, 7, 1000] {
        let whole = arc("12345");
        // Other bytes after a line end are not part of the record.
        let (rows, end, damage) = of(&format!("{whole}\n1234"), step);
        assert_eq!((rows[0][1].2, end, damage), (0, ArchiveEnd::Whole, stray(4, whole.len() + 1)), "{step}");
        // Bytes right after the content are its rest, although they could begin a header.
        let (rows, end, damage) = of(&format!("{whole}http"), step);
        assert_eq!((rows[0][1].2, end, damage), (Flags::CUT.0, ArchiveEnd::Whole, ArchiveDamage::default()), "{step}");
        // In a WARC, the header has another first word.
        let warc = record("WARC-Type: resource\r\nWARC-Target-URI: x:y", "1");
        let (rows, end, damage) = of(&format!("{warc}http"), step);
        assert_eq!((rows[0][0].2, end, damage), (Flags::CUT.0, ArchiveEnd::Whole, ArchiveDamage::default()), "{step}");
        let (rows, end, damage) = of(&format!("{warc}WARC"), step);
        assert_eq!((rows[0][0].2, end, damage), (0, ArchiveEnd::Truncated(4), ArchiveDamage::default()), "{step}");
    }
}
