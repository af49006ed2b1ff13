//! JSON documents: answers of Wayback CDX servers and HAR files give the same rows however they are read, also damaged.

use crate::collect::{Out, Row, auto, file, gzip, path, pipe, run};

/// An answer of a CDX server with so many captures, and their URLs.
fn answer(count: usize) -> (String, Vec<String>) {
    let urls: Vec<String> = (0..count).map(|i| format!("http://example.org/{i}?a[]={{\"}}")).collect();
    let row = |url: &String| {
        format!(",\n[\"org,example)/\", \"20140103030321\", \"{}\", \"text/html\", \"200\"]", url.replace('"', "\\\""))
    };
    let rows: String = urls.iter().map(row).collect();
    (
        format!(
            "[[\"urlkey\",\"timestamp\",\"original\",\"mimetype\",\"statuscode\"]{rows},\n[],\n[\"org%2Cexample%29%2F+2014\"]]\n"
        ),
        urls,
    )
}

/// A HAR file with so many entries, and their URLs.
fn har(count: usize) -> (String, Vec<String>) {
    let urls: Vec<String> = (0..count).map(|i| format!("http://example.org/{i}")).collect();
    let entry = |url: &String| {
        let body = "}]\\\"\\u0000".repeat(url.len() % 7 * 100);
        format!(
            "{{\"request\": {{\"method\": \"GET\", \"url\": \"{url}\"}}, \"startedDateTime\": \"2026-01-01T01:00:00.5+01:00\",\n \
             \"response\": {{\"status\": 301, \"redirectURL\": \"/x\", \"content\": {{\"mimeType\": \"text/html; charset=utf-8\", \
             \"text\": \"{body}\"}}}}}}"
        )
    };
    let entries: Vec<String> = urls.iter().map(entry).collect();
    (
        format!(
            "{{\n  \"log\": {{\"version\": \"1.2\", \"pages\": [{{}}], \"entries\": [{}]}}\n}}\n",
            entries.join(",\n")
        ),
        urls,
    )
}

/// Reads a document in many ways, which must give the same rows and errors.
fn read(text: &[u8]) -> (Vec<Row>, Vec<String>, u64) {
    let directory = tempfile::tempdir().unwrap();
    let name = file(&directory, "x.json", text);
    let result = |out: Out| {
        let message = |error: &irikey::input::InputError| error.to_string().split_once(": ").unwrap().1.to_string();
        let errors: Vec<_> = out.summary.input_errors.iter().map(message).collect();
        (out.rows, errors, out.summary.headers)
    };
    let expected = result(run(path(&name), &auto(1, 1 << 20, 3_000)));
    for (threads, row_group_len, step) in [(3, 1 << 20, 100_000), (2, 500, 999), (1, 1, 7)] {
        assert!(result(run(path(&name), &auto(threads, row_group_len, 3_000))) == expected, "{threads}");
        if text.len() < 20_000 || step > 100 {
            assert!(result(run(pipe(text, step), &auto(threads, row_group_len, 3_000))) == expected, "{step}");
        }
    }
    let packed = run(pipe(&gzip(text), 999), &auto(2, 2_000, 3_000));
    assert!(packed.rows == expected.0);
    expected
}

/// The URLs as they are in the document.
fn urls_of(rows: &[Row]) -> Vec<String> {
    let text = |row: &Row| if row.differs { row.input.clone() } else { row.uri.clone() };
    rows.iter().map(|row| String::from_utf8(text(row)).unwrap()).collect()
}

#[test]
fn records_of_documents() {
    for (count, documents) in [(3, [answer(3), har(3)]), (1500, [answer(1500), har(1500)])] {
        for (number, (text, urls)) in documents.into_iter().enumerate() {
            let (rows, errors, headers) = read(text.as_bytes());
            assert_eq!((rows.len(), errors.len()), (count, 0), "{errors:?}");
            assert_eq!((urls_of(&rows), headers), (urls, [3, 0][number]));
            assert!(rows.iter().all(|row| row.fault.is_none()));
            let begin = text[rows[1].offset as usize..].chars().next();
            assert_eq!(begin, Some(['[', '{'][number]));
        }
    }
}

/// Positions in a document in UTF-16 are bytes of the file.
#[test]
fn positions_in_utf_16() {
    let text = "\u{FEFF}[[\"original\"],\n[\"http://a.org/ü\u{1F600}\"],\n[\"http://b.org/\"]] x";
    let (rows, errors, _) = read(&text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>());
    let at = |part: &str| 2 * text[..text.find(part).unwrap()].encode_utf16().count() as u64;
    assert_eq!([rows[0].offset, rows[1].offset], [at("[\"http://a"), at("[\"http://b")]);
    assert!(errors[0].contains(&format!("at byte {}:", at(" x") + 2)), "{errors:?}");
}

#[test]
fn damaged_documents_give_the_records_before_the_damage() {
    for (text, urls) in [answer(40), har(40)] {
        for len in [200, text.len() / 2, text.len() - 3] {
            let (rows, errors, _) = read(&text.as_bytes()[..len]);
            assert_eq!(rows.len() > 3, len > 200, "{} rows of {len} bytes", rows.len());
            assert!(
                urls.starts_with(&urls_of(&rows)) && errors.len() == 1 && errors[0].contains("ends early"),
                "{errors:?}"
            );
        }
        let (rows, errors, _) = read(format!("{text} garbage").as_bytes());
        assert!(urls_of(&rows) == urls && errors[0].contains("does not have its format"), "{errors:?}");
        assert!(errors[0].contains(&format!("at byte {}", text.len() + 1)), "{errors:?}");
    }
    // Without its end, a row goes on to the end of the document.
    let (rows, errors, _) = read(answer(40).0.replace("200\"]", "200\"").as_bytes());
    assert!(rows.is_empty() && errors.len() == 1 && errors[0].contains("ends early"), "{rows:?} {errors:?}");
}

/// Any change of a byte gives rows or an error, in every way of reading the same.
#[test]
fn every_change_of_a_byte_is_read() {
    for (text, _) in [answer(2), har(2)] {
        for at in (2..text.len()).step_by(1 + text.len() / 80) {
            for change in [b'"', b'\\', b']'] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = change;
                let out = run(pipe(&bytes, 64), &auto(1, 1 << 20, 3_000));
                let whole = run(pipe(&bytes, 1 << 20), &auto(2, 300, 3_000));
                assert!(out.rows == whole.rows, "{at} {change}");
                assert_eq!(out.summary.input_errors.len(), whole.summary.input_errors.len());
            }
        }
    }
}
