//! Tests of `irikey learn`: the verdicts on the samples, output that does not depend on threads, and rejected flags and
//! inputs.

use super::{irikey, parse_json_lines, printed, read_json, sample};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

fn path(directory: &tempfile::TempDir, name: &str) -> String {
    directory.path().join(name).display().to_string()
}

fn rows(path: &str) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap()
}

/// The texts of some columns, row by row; null is an empty text.
fn texts(rows: &RecordBatch, columns: &[&str]) -> Vec<Vec<String>> {
    let text = |name: &str, row: usize| {
        let column = rows.column_by_name(name).unwrap().as_string::<i32>();
        if column.is_valid(row) { column.value(row).to_string() } else { String::new() }
    };
    (0..rows.num_rows()).map(|row| columns.iter().map(|name| text(name, row)).collect()).collect()
}

fn learn(inputs: &[&str], flags: &[&str], directory: &tempfile::TempDir) -> (RecordBatch, Value) {
    let (out, report) = (path(directory, "learned.parquet"), path(directory, "learned.json"));
    let inputs: Vec<String> = inputs.iter().map(|name| sample(name)).collect();
    let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
    printed(&[&["learn", "-q", "-o", &out, "--report", &report], &inputs[..], flags].concat(), b"");
    (rows(&out), read_json(report))
}

#[test]
fn every_redirect_of_the_samples_has_a_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let (rows, report) = learn(&["redirects.cdxj", "redirects.log"], &[], &directory);
    let verdicts: Vec<(&str, u64)> = report["verdicts"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, count)| (name.as_str(), count.as_u64().unwrap()))
        .collect();
    let expected = [
        ("accepted", 15),
        ("self", 1),
        ("loop", 3),
        ("sink", 10),
        ("contradicted", 0),
        ("weak", 4),
        ("ambiguous", 2),
        ("other-site", 0),
        ("other-status", 2),
        ("unparsable", 3),
    ];
    assert_eq!(verdicts, expected);
    assert_eq!(report["redirects"], 40);
    let common =
        ["input_bytes", "peak_memory_bytes", "peak_anonymous_bytes"].map(|name| report[name].as_u64().unwrap() > 0);
    assert_eq!((common, &report["advice"], &report["errors"]), ([true; 3], &json!([]), &json!([])));
    let member = |uri: &str| {
        let all = texts(&rows, &["uri", "representative_uri", "how", "target_uri"]);
        all.into_iter().find(|row| row[0] == uri).map(|row| row[1..].join(" "))
    };
    let cases = [
        ("http://example.org/d?q=1", Some("https://example.org/d?q=1 permanent https://example.org/d?q=1")),
        ("http://old.example.net/page", Some("http://new.example.net/pages/1 permanent http://new.example.net/page")),
        ("http://new.example.net/pages/1", Some("http://new.example.net/pages/1 representative ")),
        ("http://sink.example.net/", Some("https://sink.example.net/ permanent https://sink.example.net/")),
        ("http://sink.example.net/deleted/1", None),
        ("http://log.example.org/a", Some("https://log.example.org/a permanent https://log.example.org/a")),
        ("http://log.example.org/in", None),
        ("http://self.example.net/~a", None),
        ("http://many.example.net/", None),
        ("http://loop.example.net/1", None),
    ];
    for (uri, expected) in cases {
        assert_eq!(member(uri).as_deref(), expected, "{uri}");
    }
    let patterns: Vec<_> = texts(&rows, &["host", "pattern"]).into_iter().filter(|row| !row[0].is_empty()).collect();
    let expected =
        [["example.com", "http->https+www"], ["example.org", "http->https"], ["www.example.com", "add-slash"]];
    assert_eq!(patterns, expected);
}

#[test]
fn flags_change_which_redirects_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let count = |flags: &[&str], name: &str| learn(&["redirects.cdxj"], flags, &directory).1["verdicts"][name].clone();
    assert_eq!((count(&["--weak"], "weak"), count(&["--weak"], "accepted")), (0.into(), 16.into()));
    assert_eq!(count(&["--max-sources", "10"], "sink"), 0);
    assert_eq!(count(&["--max-sources", "9"], "sink"), 10);
    let patterns = |flags: &[&str]| learn(&["redirects.cdxj"], flags, &directory).1["patterns"].clone();
    assert_eq!((patterns(&["--min-support", "5"]), patterns(&["--min-support", "6"])), (2.into(), 0.into()));
}

#[test]
fn output_bytes_do_not_depend_on_threads_and_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let input = path(&directory, "many.cdxj");
    let lines = fs::read_to_string(sample("redirects.cdxj")).unwrap();
    let many: String = (0..400).map(|i| lines.replace("example.", &format!("site{}.example.", i % 97))).collect();
    fs::write(&input, many).unwrap();
    let settings: [&[&str]; 3] = [&["--threads", "1"], &["--threads", "3", "--chunk-size", "1K"], &["--no-mmap"]];
    let mut first = None;
    for setting in settings {
        let out = path(&directory, "out.parquet");
        printed(&[&["learn", "-q", &input, "-o", &out], setting].concat(), b"");
        let bytes = fs::read(&out).unwrap();
        assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{setting:?}");
    }
}

#[test]
fn every_format_with_redirects_gives_the_same_verdicts() {
    let directory = tempfile::tempdir().unwrap();
    let verdicts = |inputs: &[&str]| learn(inputs, &[], &directory).1["verdicts"].clone();
    let cdxj = verdicts(&["crawl.cdxj"]);
    assert!(cdxj["accepted"].as_u64().unwrap() > 0, "{cdxj}");
    for name in ["crawl.warc.gz", "crawl.cdx", "crawl.jsonl", "crawl.arc"] {
        assert_eq!(verdicts(&[name]), cdxj, "{name}");
    }
    let table = path(&directory, "crawl.parquet");
    let columns = "uri,fetch_status,fetch_redirect,record,fault";
    printed(&["canon", "-q", &sample("crawl.cdxj"), "-o", &table, "--columns", columns], b"");
    assert_eq!(verdicts(&[&table])["accepted"], cdxj["accepted"]);
}

#[test]
fn unsuitable_flags_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let out = path(&directory, "x.parquet");
    let rejected: [(&[&str], &str); 5] = [
        (&["-o", "x.csv"], "expected a file name that ends in .parquet"),
        (&["-o", &out, "--rung", "syntax"], "remove --rung"),
        (&["-o", &out, "--profile", "whatwg"], "does not support --profile whatwg"),
        (&["-o", &out, "--min-confidence", "0.5"], "above 0.5"),
        (&["-o", &out, "--min-support", "0"], "expected a whole number without a unit, 1 or more"),
    ];
    for (flags, advice) in rejected {
        let ran = irikey(&[&["learn", "-"], flags].concat(), b"", Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{message}");
        assert!(message.contains(advice), "{message}");
        assert!(!Path::new(&out).exists());
    }
}

#[test]
fn help_shows_no_flag_that_is_always_refused() {
    let has_flag = |command: &str, flag: &str| {
        let help = printed(&[command, "--help"], b"");
        help.lines().any(|line| line.trim_start().starts_with(flag))
    };
    assert!(has_flag("canon", "--rung <") && has_flag("learn", "--strict") && !has_flag("learn", "--rung"));
}

#[test]
fn inputs_of_which_nothing_can_be_learned_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let out = path(&directory, "x.parquet");
    fs::write(&out, "kept").unwrap();
    let refused = |input: &[u8], advice: &str| {
        let ran = irikey(&["learn", "-", "-o", &out], input, Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{message}");
        assert!(message.contains(advice), "{message}");
        assert_eq!(fs::read(&out).unwrap(), b"kept");
    };
    let without_digests = b"k)/ 20260101000000 {\"url\":\"http://a/\",\"status\":\"200\"}\n";
    refused(b"http://a/\nhttp://b/\n", "of 2 records, none states a redirect, and none the digest");
    refused(without_digests, "of 1 record, none states a redirect, and none the digest");
    // No record is no evidence either, but may be all that there is.
    let ran = irikey(&["learn", "-", "-o", &out], b"", Stdio::null());
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    printed(&["learn", "-q", "-", "-o", &out, "--no-content"], without_digests);
}

/// What can be read of a damaged input is learned from, and the exit code says that something is missing.
#[test]
fn damaged_inputs_and_tables_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out) = (path(&directory, "in.cdxj"), path(&directory, "out.parquet"));
    let archive = path(&directory, "cut.warc");
    fs::write(&input, captures("a.example", 20)).unwrap();
    fs::write(&archive, b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a/\r\nContent-Length: 9999\r\n\r\nHTTP/1.1 200 OK\r\n")
        .unwrap();
    let ran = irikey(&["learn", "-q", &input, &archive, "-o", &out], b"", Stdio::null());
    let message = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(4), "{message}");
    assert!(message.contains("cut.warc"), "{message}");
    assert_eq!(content_rules(&rows(&out)), ["a.example ignore-parameter sid", "a.example ignore-parameter-order"]);
    let table = fs::read(&out).unwrap();
    for bytes in [&table[..table.len() / 2], b"PAR1PAR1", &table[..4], b""] {
        fs::write(&out, bytes).unwrap();
        let ran = irikey(
            &["canon", "-q", &input, "--key", "protocol", "--equivalences", &out, "-o", "/dev/null"],
            b"",
            Stdio::null(),
        );
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{message}");
        assert!(
            message.contains("out.parquet") && message.contains("irikey learn") && !message.contains("panicked"),
            "{message}"
        );
    }
}

/// Archives whose records state no digest: it is computed from the payload, and compares with digests of indexes.
#[test]
fn digests_of_archives_are_computed_where_none_is_stated() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, out) = (path(&directory, "in.warc"), path(&directory, "out.parquet"));
    let record = |page: u32, session: u32| {
        let body = format!("<html><p>page {page}</p></html>").repeat(20);
        let content = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Session: {session}\r\n\r\n{body}");
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/view?id={page}&sid={session}\r\n\
             WARC-Date: 2026-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{page}-{session}>\r\n\
             Content-Type: application/http;msgtype=response\r\nContent-Length: {}\r\n\r\n{content}\r\n\r\n",
            content.len()
        )
    };
    let records = (0..8).flat_map(|page| (0..3).map(move |session| record(page, session)));
    fs::write(&archive, records.collect::<String>()).unwrap();
    printed(&["learn", "-q", &archive, "-o", &out], b"");
    assert_eq!(content_rules(&rows(&out)), ["a.example ignore-parameter sid"]);
    // The same captures by their index: half of them from there.
    let index = path(&directory, "in.cdxj");
    fs::write(&index, printed(&["canon", "-q", &archive, "--output-format", "cdxj"], b"")).unwrap();
    let digests = fs::read_to_string(&index).unwrap();
    assert_eq!(digests.matches("\"digest\"").count(), 24, "{digests}");
    printed(&["learn", "-q", &archive, &index, "-o", &out], b"");
    assert_eq!(content_rules(&rows(&out)), ["a.example ignore-parameter sid"]);
}

/// Archives may state the milliseconds of a capture, which indexes do not.
#[test]
fn an_archive_and_its_index_have_the_same_captures() {
    let directory = tempfile::tempdir().unwrap();
    let [archive, index, out, report] =
        ["in.warc", "in.cdxj", "out.parquet", "out.json"].map(|name| path(&directory, name));
    let record = |page: u32| {
        let body = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{}", "page ".repeat(40));
        let len = body.len();
        format!(
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{page}\r\n\
             WARC-Date: 2026-01-01T00:00:0{page}.{page}23Z\r\nWARC-Record-ID: <urn:uuid:{page}>\r\n\
             Content-Type: application/http;msgtype=response\r\nContent-Length: {len}\r\n\r\n{body}\r\n\r\n"
        )
    };
    fs::write(&archive, (1..9).map(record).collect::<String>()).unwrap();
    fs::write(&index, printed(&["canon", "-q", &archive, "--output-format", "cdxj"], b"")).unwrap();
    let inputs: [&[&str]; 3] = [&[&archive], &[&index], &[&archive, &index]];
    for inputs in inputs {
        printed(&[&["learn", "-q", "-o", &out, "--report", &report], inputs].concat(), b"");
        assert_eq!(read_json(&report)["content"]["captures"], 8, "{inputs:?}");
    }
}

/// The record of a page in HTML; `head` are further header fields.
fn page_record(uri: &str, head: &str, html: &str) -> String {
    let content = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{head}\r\n{html}");
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {uri}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\
         Content-Type: application/http;msgtype=response\r\nContent-Length: {}\r\n\r\n{content}\r\n\r\n",
        content.len()
    )
}

/// Pages whose every capture states another time have no equal digests, but nearly equal texts.
#[test]
fn nearly_equal_texts_are_evidence_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, out, report) =
        (path(&directory, "in.warc"), path(&directory, "out.parquet"), path(&directory, "report.json"));
    let text = |page: u32| (0..2000).map(|i| format!("w{} ", (i * (page + 7) + i * i) % 9973)).collect::<String>();
    let record = |page: u32, session: u32| {
        let html = format!("<p>It is {session} to {page}{session}.</p><p>{}</p>", text(page));
        page_record(&format!("http://a.example/view?id={page}&sid={session}"), "", &html)
    };
    let records = (0..10).flat_map(|page| (0..3).map(move |session| record(page, session)));
    fs::write(&archive, records.collect::<String>()).unwrap();
    printed(&["learn", "-q", &archive, "-o", &out, "--report", &report], b"");
    assert_eq!(read_json(&report)["content"]["rules"], 0);
    let flags = ["--near-duplicates", "6", "--report", &report];
    printed(&[&["learn", "-q", &archive, "-o", &out], &flags[..]].concat(), b"");
    assert_eq!(content_rules(&rows(&out)), ["a.example ignore-parameter sid"]);
    let documents = &read_json(&report)["documents"];
    assert_eq!((&documents["texts"], &documents["near_contents"]), (&30.into(), &20.into()), "{documents}");
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&out).unwrap()).unwrap();
    assert_eq!(reader.schema().metadata()["irikey.learn.near_duplicates"], "6");
    // A list of inputs on standard input is read once.
    printed(&["learn", "-q", "@-", "-o", &out, "--near-duplicates", "6"], archive.as_bytes());
    assert_eq!(content_rules(&rows(&out)), ["a.example ignore-parameter sid"]);
    let ran = irikey(&["learn", "-", "-o", &out, "--near-duplicates", "3"], b"", Stdio::null());
    assert!(String::from_utf8(ran.stderr).unwrap().contains("read archives twice") && ran.status.code() == Some(2));
    let ran = irikey(&["learn", &archive, "-o", &out, "--canonical-links", "--limit", "1"], b"", Stdio::null());
    assert!(String::from_utf8(ran.stderr).unwrap().contains("--limit would not apply") && ran.status.code() == Some(2));
    #[cfg(target_os = "linux")]
    {
        let ran = irikey(&["learn", "/dev/stdin", "--canonical-links", "-o", &out], b"x", Stdio::null());
        assert_eq!(ran.status.code(), Some(2), "a pipe with a name is read twice");
    }
}

/// Three contents are too few for a rule, unless pages name the URL that the rule makes as canonical.
#[test]
fn canonical_links_are_evidence_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let (archive, out, report) =
        (path(&directory, "in.warc"), path(&directory, "out.parquet"), path(&directory, "report.json"));
    let record = |page: u32, copy: u32, is_canonical: bool| {
        let uri = format!("http://a.example/view?id={page}&ref={copy}");
        let text = format!("<p>page {page}</p>").repeat(20);
        match (is_canonical, page % 2) {
            (false, _) => page_record(&uri, "", &format!("<title>x</title>{text}")),
            (_, 0) => page_record(&uri, "", &format!("<link rel=canonical href='/view?id={page}'>{text}")),
            _ => page_record(&uri, &format!("Link: </view?id={page}>; rel=\"canonical\"\r\n"), &text),
        }
    };
    let learned = |is_canonical: bool, flags: &[&str]| {
        let twice = (0..3).flat_map(|page| [0, 1].map(|copy| (page, copy)));
        let records = twice.chain([(3, 0), (4, 0)]).map(|(page, copy)| record(page, copy, is_canonical));
        fs::write(&archive, records.collect::<String>()).unwrap();
        printed(&[&["learn", "-q", &archive, "-o", &out, "--report", &report], flags].concat(), b"");
        texts(&rows(&out), &["kind", "pattern", "how"]).into_iter().map(|row| row.join(" ")).collect::<Vec<_>>()
    };
    let refused = ["refused ignore-parameter ref support"];
    assert_eq!(learned(true, &[]), refused);
    assert_eq!(learned(false, &["--canonical-links"]), refused);
    assert_eq!(learned(true, &["--canonical-links"]), ["rule ignore-parameter ref content+canonical"]);
    let documents = &read_json(&report)["documents"];
    assert_eq!(
        (&documents["canonical_links"], &documents["rules_by_canonical"]),
        (&8.into(), &1.into()),
        "{documents}"
    );
}

#[test]
fn the_report_is_a_page_with_rules_to_judge() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out, report) =
        (path(&directory, "in.cdxj"), path(&directory, "out.parquet"), path(&directory, "r.html"));
    let other = captures("b.example", 30).replace("id=7&", "id=7&x=<b>&");
    // Ignoring this parameter is right for most pages, but not for all.
    let doubtful = (0..40).flat_map(|page| {
        (0..3).map(move |copy| {
            let digest = if page % 8 == 0 { page * 10 + copy } else { page * 10 };
            format!("k)/ 20260101000000 {{\"url\":\"http://c.example/p{page}?v={copy}\",\"status\":\"200\",\"digest\":\"CCCC-{digest:08}\"}}\n")
        })
    });
    fs::write(&input, captures("a.example", 20) + &other + &doubtful.collect::<String>()).unwrap();
    printed(&["learn", "-q", &input, "-o", &out, "--report", &report], b"");
    let page = fs::read_to_string(&report).unwrap();
    for part in [
        "Reduction by kind of rule",
        "<td class=\"n\">2</td>",
        "Hosts with the greatest reduction",
        "Refused rules to judge",
        "http://c.example/p",
        "ignore-parameter v",
        "</html>",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(!page.contains("<b>") && !page.contains("<script") && !page.contains("src="));
}

/// Answers of more hosts and URLs than memory holds are spilled, and the result is the same.
#[test]
fn answers_are_spilled() {
    let directory = tempfile::tempdir().unwrap();
    let [input, out, report] = ["in.cdxj", "out.parquet", "report.json"].map(|name| path(&directory, name));
    let line = |i: u32| {
        format!(
            "k)/ 20260101000000 {{\"url\":\"http://h{i}.example/some/page/with/a/path/{i}\",\"status\":\"200\",\"digest\":\"DIGEST-{i:08}\"}}\n"
        )
    };
    let redirects = (0..50).map(|i| {
        format!("k)/ 20260101000000 {{\"url\":\"http://a.example/{i}\",\"status\":\"301\",\"redirect\":\"https://a.example/{i}\"}}\n")
    });
    let alone =
        (50..60).map(|i| format!("k)/ 20260101000000 {{\"url\":\"http://a.example/{i}\",\"status\":\"200\"}}\n"));
    let lines: String = (0..36_000).map(line).chain(redirects).chain(alone).collect();
    fs::write(&input, lines + &captures("b.example", 20)).unwrap();
    let learned = |memory: &str, threads: &str| {
        let flags = ["--threads", threads, "--memory", memory, "--report", &report];
        printed(&[&["learn", "-q", &input, "-o", &out], &flags[..]].concat(), b"");
        (fs::read(&out).unwrap(), read_json(&report)["content"]["spilled_bytes"].as_u64().unwrap())
    };
    let ((first, first_spilled), (second, second_spilled)) = (learned("74M", "1"), learned("1G", "2"));
    assert!(first == second && first_spilled > 1_000_000 + second_spilled, "{first_spilled} {second_spilled}");
    let patterns = texts(&rows(&out), &["kind", "pattern"]);
    assert!(patterns.contains(&vec!["rule".to_string(), "ignore-parameter sid".to_string()]));
    // Ten of sixty URLs answered without a redirect, which contradicts the pattern.
    assert!(!patterns.iter().any(|row| row[0] == "pattern"), "{patterns:?}");
}

/// Redirects of all kinds, more than memory holds: chains over hosts, loops, sinks, several targets, statuses that other records
/// state, ends that patterns extend.
fn many_redirects() -> String {
    let redirect = |from: String, to: String, status: &str| {
        format!("k)/ 20260101000000 {{\"url\":\"{from}\",{status}\"redirect\":\"{to}\"}}\n")
    };
    let permanent = "\"status\":\"301\",";
    let lines = (0..30_000u32).flat_map(|i| {
        let (host, page) = (format!("h{}.example", i % 500), i / 500);
        let (from, to) = match i % 11 {
            0..4 => (format!("http://{host}/p{page}"), format!("https://{host}/p{page}")),
            4 => (format!("https://{host}/p{page}"), format!("https://www.{host}/p{page}")),
            5 => (format!("http://{host}/c{page}"), format!("http://h{}.example/c{}", (i + 11) % 500, (i + 11) / 500)),
            6 => (format!("http://{host}/l{}", page % 3), format!("http://{host}/l{}", (page + 1) % 3)),
            7 => (format!("http://{host}/s{page}"), format!("http://h{}.example/", i % 50)),
            8 => (format!("http://{host}/m{}", page / 20), format!("http://{host}/x{page}")),
            9 => (format!("http://{host}/u{page}"), format!("ftp://{host}/u{page}")),
            _ => (format!("urn:x:{i}"), format!("http://{host}/urn/{page}")),
        };
        let known = format!("k)/ 20260101000000 {{\"url\":\"{from}\",\"status\":\"308\"}}\n");
        let served = format!("k)/ 20260101000000 {{\"url\":\"{to}\",\"status\":\"200\"}}\n");
        let status = if i % 13 == 0 { "" } else { permanent };
        let other = match i % 13 {
            0 => known,
            1 => served,
            _ => String::new(),
        };
        [redirect(from, to, status), other]
    });
    lines.collect()
}

#[test]
fn redirects_are_spilled() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out, report) =
        (path(&directory, "in.cdxj"), path(&directory, "out.parquet"), path(&directory, "report.json"));
    fs::write(&input, many_redirects()).unwrap();
    let learned = |memory: &str, threads: &str| {
        let flags = ["--threads", threads, "--memory", memory, "--report", &report];
        printed(&[&["learn", "-q", &input, "-o", &out], &flags[..]].concat(), b"");
        (fs::read(&out).unwrap(), read_json(&report))
    };
    let (first, all) = learned("1G", "2");
    for name in ["accepted", "loop", "sink", "ambiguous"] {
        assert!(all["verdicts"][name].as_u64().unwrap() > 1000, "{}", all["verdicts"]);
    }
    assert!(all["patterns"].as_u64().unwrap() > 100 && all["largest_class"].as_u64().unwrap() > 2000, "{all}");
    let hows = texts(&rows(&out), &["how"]);
    assert!(hows.iter().filter(|how| how[0] == "pattern").count() > 100);
    for (memory, threads) in [("74M", "1"), ("124M", "3")] {
        let (bytes, spilled) = learned(memory, threads);
        assert!(bytes == first, "{memory}");
        let count = spilled["content"]["spilled_bytes"].as_u64().unwrap();
        assert!(count > 0 || memory == "124M", "{spilled}");
    }
}

/// Captures of a host whose URLs carry a session identifier and have parameters in any order, with some noise.
fn captures(host: &str, pages: u32) -> String {
    let line = |page: u32, session: u32| {
        let sid = format!("{:032x}", u128::from(page * 7 + session) * 0x9e37_79b9_7f4a_7c15);
        let query = match (page + session) % 2 {
            0 => format!("id={page}&v=1&sid={sid}"),
            _ => format!("v=1&sid={sid}&id={page}"),
        };
        format!(
            "k)/ 20260101000000 {{\"url\":\"http://{host}/view?{query}\",\"status\":\"200\",\"digest\":\"{host}-PAGE-{page}\"}}\n"
        )
    };
    (0..pages).flat_map(|page| (0..4).map(move |session| line(page, session))).collect()
}

/// Scope, rule and context of the rules about content in a table.
fn content_rules(rows: &RecordBatch) -> Vec<String> {
    let rules = texts(rows, &["kind", "host", "pattern", "context"]);
    rules.into_iter().filter(|row| row[0] == "rule").map(|row| row[1..].join(" ").trim_end().to_string()).collect()
}

#[test]
fn rules_about_content_are_learned_and_applied() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out, report) =
        (path(&directory, "in.cdxj"), path(&directory, "out.parquet"), path(&directory, "r.json"));
    // On the second host, the parameter that looks like a session makes a difference; the pages of the third are alone.
    let other = captures("b.example", 20);
    let other =
        other.lines().enumerate().map(|(i, line)| format!("{}\n", line.replace("PAGE-", &format!("PAGE-{i}-"))));
    let alone = (0..50).map(|i| {
        format!("k)/ 20260101000000 {{\"url\":\"http://c.example/{i}?sid={i}\",\"status\":\"200\",\"digest\":\"CCCC-{i:08}\"}}\n")
    });
    fs::write(&input, captures("a.example", 20) + &other.chain(alone).collect::<String>()).unwrap();
    printed(&["learn", "-q", &input, "-o", &out, "--report", &report], b"");
    assert_eq!(content_rules(&rows(&out)), ["a.example ignore-parameter sid", "a.example ignore-parameter-order"]);
    let content = &read_json(&report)["content"];
    assert_eq!(content["rules_by_kind"]["ignore-parameter"], 1);
    assert_eq!((&content["rules"], &content["rules_for_domains"]), (&2.into(), &0.into()));
    let lines =
        b"http://a.example/view?sid=1&id=77\nhttp://a.example/view?id=77&sid=2\nhttp://b.example/view?sid=1&id=77\n\
        http://b.example/view?id=77&sid=2\nhttp://c.example/7?sid=7\nhttp://c.example/7\n";
    let flags = ["dedup", "-q", "-", "--key", "protocol", "--equivalences", &out];
    assert_eq!(printed(&flags, lines).lines().count(), 5);
    let explained = printed(&["explain", "http://a.example/view?sid=1&id=77", "--equivalences", &out], b"");
    for text in ["a.example: ignore-parameter sid", "content: 20 for, 0 against", "http://a.example/view?id=77"] {
        assert!(explained.contains(text), "{explained}");
    }
    let explained = printed(&["explain", "--json", "http://b.example/view?sid=1", "--equivalences", &out], b"");
    assert_eq!(parse_json_lines(&explained)[0]["equivalences"], json!([]));
    printed(&["learn", "-q", &input, "-o", &out, "--no-content", "--report", &report], b"");
    assert!(read_json(&report)["content"].is_null());
    assert_eq!(printed(&flags, lines).lines().count(), 6);
}

/// A page without its session identifier redirects to the start page. The pages with one have contents of their own.
#[test]
fn pages_do_not_get_the_redirect_of_the_url_that_a_rule_makes() {
    let directory = tempfile::tempdir().unwrap();
    let [input, out, report] = ["in.cdxj", "out.parquet", "report.json"].map(|name| path(&directory, name));
    let page = |page: u32, session: &str| format!("http://a.example/view?id={page}{session}");
    let line = |url: &str, rest: &str| format!("k)/ 20260101000000 {{\"url\": \"{url}\", {rest}}}\n");
    let mut captures = line("http://a.example/start", "\"status\": \"200\", \"digest\": \"CONTENT-START\"");
    for number in 0..8 {
        captures += &line(&page(number, ""), "\"status\": \"301\", \"redirect\": \"http://a.example/start\"");
        for session in ["&sid=0a5b77e1c2d91f3c", "&sid=0a5b77e1c2d98a7e"] {
            let content = format!("\"status\": \"200\", \"digest\": \"CONTENT-{number}\"");
            captures += &line(&page(number, session), &content);
        }
    }
    fs::write(&input, &captures).unwrap();
    printed(&["learn", "-q", &input, "-o", &out, "--report", &report], b"");
    assert_eq!(content_rules(&rows(&out)), ["a.example ignore-parameter sid"]);
    assert_eq!(read_json(&report)["verdicts"]["contradicted"], 8);
    let flags = ["--key", "protocol", "--equivalences", &out];
    let kept = printed(&[&["dedup", "-q", &input], &flags[..]].concat(), b"");
    assert_eq!(kept.lines().count(), 9, "{kept}");
    // Without the sessions, the redirects are accepted: the pages without one are no longer there.
    let few: Vec<&str> = captures.lines().filter(|line| !line.contains("sid")).collect();
    fs::write(&input, few.join("\n")).unwrap();
    printed(&["learn", "-q", &input, "-o", &out, "--report", &report], b"");
    assert_eq!(read_json(&report)["verdicts"]["accepted"], 8);
}

#[test]
fn validation_tries_rules_on_captures_that_were_held_out() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out, report) =
        (path(&directory, "in.cdxj"), path(&directory, "out.parquet"), path(&directory, "r.json"));
    let all: String = (0..30).map(|site| captures(&format!("h{site}.example"), 40)).collect();
    fs::write(&input, all).unwrap();
    let flags = ["learn", "-q", &input, "-o", &out, "--report", &report];
    printed(&[&flags[..], &["--validate", "0.3"]].concat(), b"");
    let validation = &read_json(&report)["validation"];
    let known = &validation["known_sites"];
    let other = &validation["other_sites"];
    assert_eq!(known["hosts"].as_u64().unwrap() + other["hosts"].as_u64().unwrap(), 30);
    assert!(other["hosts"].as_u64().unwrap() > 3, "{other}");
    assert_eq!((&known["precision"]["share"], &known["recall"]["share"]), (&1.0.into(), &1.0.into()), "{known}");
    assert!(known["precision"]["low"].as_f64() > Some(0.9), "{known}");
    assert!(known["kinds"]["ignore-parameter"]["urls_made_equal"].as_u64() > Some(0), "{known}");
    // What was held out was not learned from.
    let learned = content_rules(&rows(&out));
    let hosts = learned.iter().filter(|rule| rule.ends_with("ignore-parameter-order")).count() as u64;
    assert_eq!(hosts + other["hosts"].as_u64().unwrap(), 30);
}

/// Captures of sections of a host, whose items have a placeholder on the first day and contents of their own on later days.
fn launched(host: &str, sections: u32) -> String {
    let line = |section: u32, item: u32, day: u32| {
        let content = if day == 1 { format!("SOON-{section}") } else { format!("ITEM-{section}-{item}") };
        format!(
            "k)/ 202601{day:02}12{item:02}00 {{\"url\":\"http://{host}/s{section}?id={item}\",\"status\":\"200\",\"digest\":\"{host}-{content}\"}}\n"
        )
    };
    let items = (0..sections).flat_map(|section| (10..16).map(move |item| (section, item)));
    items.flat_map(|(section, item)| [1, 20, 28].map(|day| line(section, item, day))).collect()
}

/// The placeholder of the first day alone makes all items of a section one page; later captures refute it.
#[test]
fn pages_that_were_equal_on_one_day_are_not_merged() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out, report) =
        (path(&directory, "in.cdxj"), path(&directory, "out.parquet"), path(&directory, "r.json"));
    let all: String = launched("a.example", 8);
    let of_first_day: String =
        all.lines().filter(|line| line.contains(" 20260101")).map(|line| format!("{line}\n")).collect();
    fs::write(&input, of_first_day).unwrap();
    printed(&["learn", "-q", &input, "-o", &out], b"");
    assert_eq!(content_rules(&rows(&out)), ["a.example ignore-parameter id"]);
    fs::write(&input, &all).unwrap();
    printed(&["learn", "-q", &input, "-o", &out, "--report", &report], b"");
    assert_eq!(content_rules(&rows(&out)), [""; 0]);
    let flags = ["dedup", "-q", &input, "--key", "protocol", "--equivalences", &out];
    assert_eq!(printed(&flags, b"").lines().count(), 48);
}

#[test]
fn rules_that_hosts_agree_on_are_counted_apart() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out, report) =
        (path(&directory, "in.cdxj"), path(&directory, "out.parquet"), path(&directory, "r.json"));
    let hosts = ["x.d.example", "y.d.example", "z.d.example", "c.example"];
    fs::write(&input, hosts.map(|host| captures(host, 20)).concat()).unwrap();
    printed(&["learn", "-q", &input, "-o", &out, "--report", &report], b"");
    let expected = ["c.example", "*.d.example"]
        .map(|host| ["ignore-parameter sid", "ignore-parameter-order"].map(|rule| format!("{host} {rule}")));
    assert_eq!(content_rules(&rows(&out)), expected.concat());
    let content = &read_json(&report)["content"];
    let count = |name: &str| content[name].as_u64();
    assert_eq!((count("rules"), count("rules_for_domains"), count("rules_for_all_hosts")), (Some(4), Some(2), Some(0)));
}

/// Captures of a host on which each of the URLs that [`captures`] makes is another page.
fn contradicting_captures(host: &str, pages: u32) -> String {
    let lines = captures(host, pages);
    lines.lines().enumerate().map(|(i, line)| line.replace("PAGE-", &format!("PAGE-{i}-")) + "\n").collect()
}

/// One host of a domain contradicts a rule, although it is learned after many others, or after those of a public suffix below the
/// domain.
#[test]
fn all_hosts_of_a_domain_agree_on_its_rules() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out) = (path(&directory, "in.cdxj"), path(&directory, "out.parquet"));
    let many: Vec<String> = (0..1_030).map(|i| format!("h{i:04}.d.example")).collect();
    let few = ["aaa", "aab", "aac", "x.s3"].map(|host| format!("{host}.amazonaws.com")).to_vec();
    for (hosts, last) in [(many, "zzz.d.example"), (few, "zzz.amazonaws.com")] {
        let agreeing: String = hosts.iter().map(|host| captures(host, 8)).collect();
        let domain = last.strip_prefix("zzz").unwrap();
        let rule = format!("*{domain} ignore-parameter sid");
        for (of_last, is_agreed) in [(captures(last, 8), true), (contradicting_captures(last, 8), false)] {
            fs::write(&input, agreeing.clone() + &of_last).unwrap();
            printed(&["learn", "-q", &input, "-o", &out], b"");
            let rules = content_rules(&rows(&out));
            assert_eq!(rules.contains(&rule), is_agreed, "{rule}: {rules:?}");
        }
    }
}

/// A domain has one vote, however many hosts it has.
/// Three hosts have the same pages under two spellings, and on a fourth host all of these are different pages.
#[test]
fn a_host_that_only_contradicts_a_rule_prevents_it_for_its_domain() {
    let directory = tempfile::tempdir().unwrap();
    let [input, out] = ["in.cdxj", "out.parquet"].map(|name| path(&directory, name));
    type Spelling = fn(u32, u32) -> String;
    let spellings: [(&str, Spelling); 5] = [
        ("ignore-final-slash", |page, i| format!("/x{page}{}", ["", "/"][i as usize])),
        ("ignore-doubled-slashes", |page, i| format!("/{}x{page}", ["", "/"][i as usize])),
        ("ignore-fragment", |page, i| format!("/x{page}{}", ["", "#!a"][i as usize])),
        ("ignore-path-parameter jsessionid", |page, i| format!("/x{page};jsessionid={page:016x}{i}a")),
        ("ignore-parameter sid", |page, i| format!("/x{page}?sid={page:016x}{i}a")),
    ];
    for (rule, spelling) in spellings {
        let mut rules = Vec::new();
        for has_contradiction in [false, true] {
            let mut captures = String::new();
            for (host, page, i) in ["a", "b", "c", "d"]
                .into_iter()
                .flat_map(|host| (0..14).flat_map(move |page| (0..2).map(move |i| (host, page, i))))
            {
                let content = if host != "d" {
                    0
                } else if has_contradiction {
                    i
                } else {
                    page + 100
                };
                let is_left_out = host == "d" && !has_contradiction && i == 1;
                let url = format!("http://{host}.f.example{}", spelling(page, i));
                let capture = format!(
                    "k)/ 2026010{}000000 {{\"url\": \"{url}\", \"status\": \"200\", \"digest\": \"CONTENT-{host}-{page}-{content}\"}}\n",
                    i + 1
                );
                captures += if is_left_out { "" } else { &capture };
            }
            fs::write(&input, captures).unwrap();
            printed(&["learn", "-q", &input, "-o", &out], b"");
            rules.push(content_rules(&rows(&out)));
        }
        assert_eq!(rules[0], [format!("*.f.example {rule}")]);
        assert_eq!(rules[1], ["a", "b", "c"].map(|host| format!("{host}.f.example {rule}")), "{rule}");
    }
}

#[test]
fn many_hosts_of_a_domain_are_one_vote() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out) = (path(&directory, "in.cdxj"), path(&directory, "part.parquet"));
    let hosts = (0..1_030).map(|i| captures(&format!("h{i:04}.d.example"), 8));
    fs::write(&input, hosts.collect::<String>()).unwrap();
    printed(&["learn", "-q", &input, "--part", "-o", &out], b"");
    let votes = texts(&rows(&out), &["kind", "pattern"]);
    let of_sid = votes.iter().position(|row| *row == ["votes", "ignore-parameter sid"]).expect("votes");
    let agreeing = rows(&out).column_by_name("records").map(|column| column.as_primitive::<UInt64Type>().value(of_sid));
    assert_eq!(agreeing, Some(1));
}

/// Where nothing can be judged, validation says so instead of printing a share.
#[test]
fn validation_says_what_cannot_be_judged() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out) = (path(&directory, "in.cdxj"), path(&directory, "out.parquet"));
    let validate = |captures: &[(String, u64)]| {
        let line = |(at, (url, content)): (usize, &(String, u64))| {
            let day = 1 + at * 20 / captures.len();
            format!(
                "k)/ 202601{day:02}000000 {{\"url\":\"{url}\",\"status\":\"200\",\"digest\":\"CCCC-{content:08}\"}}\n"
            )
        };
        fs::write(&input, captures.iter().enumerate().map(line).collect::<String>()).unwrap();
        let flags = ["learn", &input, "-o", &out, "--validate", "0.2"];
        let ran = irikey(&flags, b"", Stdio::piped());
        (ran.status.code(), [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap()).concat())
    };
    let (own, equal) =
        ("precision  no pairs of URLs that rules make equal", "recall     no pairs of URLs with equal contents");
    // `a.example` is of those that are held out whole, if there are others: a single site is not.
    let page = |page: u64, session: u64| {
        format!("http://a.example/{page}?sid={:032x}", u128::from(page + 1000 * session + 1) << 70)
    };
    type Captures = Vec<(String, u64)>;
    let cases: [(&str, Captures, &[&str]); 4] = [
        ("no duplicates", (0..200).map(|i| (page(i, 0), i)).collect(), &[own, equal, "reduction  0.0 %"]),
        (
            "one content",
            (0..200).map(|i| (page(i, 0), 1)).collect(),
            &[own, equal, "left out   40 URLs with contents of many dissimilar URLs, for recall"],
        ),
        (
            "contents that always change",
            (0..400).map(|i| (page(i % 20, 0), i)).collect(),
            &[own, equal, "left out   20 URLs of 1 host whose contents change from capture to capture"],
        ),
        (
            "sessions",
            (0..400).map(|i| (page(i % 20, i / 20), i % 20)).collect(),
            // 20 pages with six pairs each.
            &["precision  100.0 % (83.9 to 100.0), 120 of 120", "recall     100.0 % (83.9 to 100.0), 120 of 120"],
        ),
    ];
    for (name, captures, wanted) in cases {
        let (code, text) = validate(&captures);
        assert_eq!(code, Some(0), "{name}: {text}");
        for wanted in wanted {
            assert!(text.contains(wanted), "{name}: {wanted}: {text}");
        }
    }
    let (code, text) = validate(&[(page(0, 0), 0)]);
    assert!(code == Some(0) && text.contains("validation: no captures were held out"), "{code:?} {text}");
    // Both sites are chosen.
    let sites = ["a", "d"].map(|site| (format!("http://{site}.example/"), 1));
    let (code, text) = validate(&sites);
    assert!(code == Some(2) && text.contains("--validate held out all captures"), "{code:?} {text}");
}

#[test]
fn rules_are_exported_and_edited_by_hand() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out, rules) =
        (path(&directory, "in.cdxj"), path(&directory, "out.parquet"), path(&directory, "rules.csv"));
    fs::write(&input, captures("a.example", 20)).unwrap();
    let (nutch, storm, sql) = (path(&directory, "n.xml"), path(&directory, "s.json"), path(&directory, "r.sql"));
    let files =
        [format!("csv={rules}"), format!("nutch={nutch}"), format!("stormcrawler={storm}"), format!("sql={sql}")];
    let exports: Vec<&str> = files.iter().flat_map(|file| ["--export", file]).collect();
    printed(&[&["learn", "-q", &input, "-o", &out], &exports[..]].concat(), b"");
    let table = fs::read_to_string(&rules).unwrap();
    assert!(table.contains("a.example,ignore-parameter sid,,content,20,0,0."), "{table}");
    let expression = "^(https?://a\\.example(?:/[^?#]*)?)\\?sid(?:=[^&#;]*)?(#.*)?$";
    assert!(
        fs::read_to_string(&nutch)
            .unwrap()
            .contains(&format!("<pattern>{}</pattern>", expression.replace('&', "&amp;")))
    );
    let filter = read_json(storm.clone());
    assert_eq!(filter["params"]["urlNormalizers"].as_array().unwrap().len(), 3);
    assert_eq!(filter["params"]["urlNormalizers"][0], json!({"pattern": expression, "substitution": "$1$2"}));
    assert!(fs::read_to_string(&sql).unwrap().contains(&format!("VALUES (0, '{expression}', '\\1\\2')")));
    // Where a file cannot be created is known before anything is read.
    let (missing, other) = (format!("sql={}", path(&directory, "missing/r.sql")), path(&directory, "other.parquet"));
    let ran = irikey(&["learn", "-q", &input, "-o", &other, "--export", &missing], b"", Stdio::null());
    assert!(ran.status.code() == Some(5) && !Path::new(&other).exists(), "{}", String::from_utf8_lossy(&ran.stderr));
    // One rule is struck out, another one is added.
    let edited = table.replace("ignore-parameter sid,,content", "ignore-parameter sid,,strike")
        + "*.example,ignore-query,*.css,hand\n*.example,ignore-query,*.css,hand\n";
    fs::write(&rules, edited).unwrap();
    let report = path(&directory, "report.json");
    let ran = irikey(&["learn", &input, "-o", &out, "--rules", &rules, "--report", &report], b"", Stdio::null());
    let summary = String::from_utf8(ran.stderr).unwrap();
    assert!(
        summary.contains("learned rules left out by --rules  1\nrules added by --rules             1\n"),
        "{summary}"
    );
    let report = read_json(report);
    assert_eq!(report["rules_by_hand"], json!({"added": 1, "left_out": 1}));
    assert_eq!(report["content"]["rules"], 2, "before rules are left out");
    assert_eq!(content_rules(&rows(&out)), ["a.example ignore-parameter-order", "*.example ignore-query *.css"]);
    let hows: Vec<_> = texts(&rows(&out), &["how"]).into_iter().map(|row| row[0].clone()).collect();
    assert_eq!(hows, ["content", "hand"]);
    let flags = ["dedup", "-q", "-", "--key", "protocol", "--equivalences", &out];
    assert_eq!(printed(&flags, b"http://b.example/x.css?1\nhttp://b.example/x.css?2\n").lines().count(), 1);
    let explained = printed(&["explain", "http://b.example/x.css?1", "--equivalences", &out], b"");
    assert!(
        explained.contains("*.example: ignore-query of *.css") && explained.contains("added by hand"),
        "{explained}"
    );
    let ran = irikey(&["learn", &input, "-o", &out, "--rules", "s3://b/r.csv"], b"", Stdio::null());
    assert!(
        String::from_utf8(ran.stderr).unwrap().contains("--rules s3://b/r.csv: this file is read from a local disk")
    );
    fs::write(&rules, "host,pattern,how\na.example,ignore-query,Hand\n").unwrap();
    let ran = irikey(&["learn", &input, "-o", &out, "--rules", &rules], b"", Stdio::null());
    let message = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.code() == Some(2) && message.contains("row 2: the column how is \"Hand\""), "{message}");
    // An alias that leads back is refused, and nothing is replaced.
    fs::write(
        &rules,
        "host,pattern,how\na.example,same-as http://b.example,hand\nb.example,same-as http://a.example,hand\n",
    )
    .unwrap();
    let before = fs::read(&out).unwrap();
    let ran = irikey(&["learn", "-q", &input, "-o", &out, "--rules", &rules], b"", Stdio::null());
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8(ran.stderr).unwrap().contains("loop") && fs::read(&out).unwrap() == before);
}

/// A content rule and a redirect that lead to each other's host do not make a file that cannot be read.
#[test]
fn redirects_decide_where_aliases_would_loop() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out) = (path(&directory, "in.cdxj"), path(&directory, "out.parquet"));
    let mut lines = String::new();
    for page in 0..40 {
        for host in ["a.example", "www.a.example"] {
            lines.push_str(&format!(
                "k)/ 20260101000000 {{\"url\":\"http://{host}/{page}\",\"status\":\"200\",\"digest\":\"PAGE-{page:04}\"}}\n"
            ));
        }
    }
    for page in 0..60 {
        lines.push_str(&format!(
            "k)/ 2026 {{\"url\":\"http://a.example/r{page}\",\"status\":\"301\",\"redirect\":\"http://www.a.example/r{page}\"}}\n"
        ));
    }
    fs::write(&input, lines).unwrap();
    printed(&["learn", "-q", &input, "-o", &out, "--min-confidence", "0.51"], b"");
    printed(&["count", "-q", &input, "--key", "protocol", "--equivalences", &out], b"");
    let refused = texts(&rows(&out), &["kind", "how", "host", "pattern"]);
    let refused: Vec<String> = refused.iter().filter(|row| row[1] == "circular").map(|row| row.join(" ")).collect();
    assert_eq!(refused, ["refused circular www.a.example same-as http://a.example for http"]);
    printed(&["learn", "-q", &input, "-o", &out], b"");
    assert_eq!(content_rules(&rows(&out)).len(), 1);
}

#[test]
fn rules_about_content_do_not_depend_on_order_threads_or_memory() {
    let directory = tempfile::tempdir().unwrap();
    let (input, reverse) = (path(&directory, "in.cdxj"), path(&directory, "reverse.cdxj"));
    let lines: Vec<String> = (0..40)
        .flat_map(|host| {
            captures(&format!("h{host}.site{}.example", host / 3), 12).lines().map(str::to_string).collect::<Vec<_>>()
        })
        .chain(launched("launched.example", 8).lines().map(str::to_string))
        .collect();
    fs::write(&input, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    fs::write(&reverse, lines.iter().rev().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let learned = |input: &str, flags: &[&str]| {
        let out = path(&directory, "out.parquet");
        printed(&[&["learn", "-q", input, "-o", &out], flags].concat(), b"");
        let rows = rows(&out);
        let columns = ["kind", "host", "pattern", "how"];
        (texts(&rows, &columns), format!("{:?}", rows.column_by_name("examples").unwrap()), fs::read(&out).unwrap())
    };
    let first = learned(&input, &["--threads", "1"]);
    let count =
        |scope: &str, name: &str| first.0.iter().filter(|row| row[1].starts_with(scope) && row[2] == name).count();
    // 13 domains with three hosts each, and one host alone.
    assert_eq!((count("*.site", "ignore-parameter-order"), count("h", "ignore-parameter-order")), (13, 1));
    assert_eq!(
        first.0.iter().filter(|row| row[0] == "refused").map(|row| &row[1..3]).collect::<Vec<_>>(),
        [["launched.example", "ignore-parameter id"]]
    );
    assert!(learned(&input, &["--threads", "3", "--chunk-size", "1K", "--memory", "120M"]).2 == first.2);
    let other = learned(&reverse, &["--threads", "2"]);
    assert!(other.0 == first.0 && other.1 == first.1);
}

/// Memory is reserved before it is allocated: the job succeeds within the limit, and fails with an error above it.
#[test]
fn the_memory_limit_is_kept_or_reported() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out, report) =
        (path(&directory, "in.cdxj"), path(&directory, "out.parquet"), path(&directory, "report.json"));
    let line = |i: u32| match i % 2 {
        0 => format!(
            "org,e)/{i} 20200101000000 {{\"url\":\"http://e.org/{i}\",\"status\":\"301\",\"redirect\":\"https://e.org/{i}\"}}\n"
        ),
        _ => format!("org,f)/{i} 20200101000000 {{\"url\":\"http://f{i}.org/{i}\",\"status\":\"200\"}}\n"),
    };
    std::fs::write(&input, (0..100_000).map(line).collect::<String>()).unwrap();
    let run = |memory: &str| {
        irikey(
            &["learn", "-q", &input, "-o", &out, "--threads", "1", "--memory", memory, "--report", &report],
            b"",
            Stdio::null(),
        )
    };
    let rejected = run("73M");
    let message = String::from_utf8(rejected.stderr).unwrap();
    assert!(
        rejected.status.code() == Some(2) && message.contains("--memory: ") && !Path::new(&out).exists(),
        "{message}"
    );
    assert!(String::from_utf8(run("40M").stderr).unwrap().contains("set --memory to 73M"));
    for limit in [80, 200] {
        assert_eq!(run(&format!("{limit}M")).status.code(), Some(0));
        let summary = read_json(&report);
        let peak = summary["peak_anonymous_bytes"].as_u64().unwrap_or(0);
        println!("{:.1} MiB", peak as f64 / f64::from(1 << 20));
        assert!(summary["members"] == 100_000 && peak <= limit << 20, "{peak} bytes");
    }
}

/// Learns from the samples and returns the path of the table.
fn equivalences(directory: &tempfile::TempDir) -> String {
    learn(&["redirects.cdxj", "redirects.log"], &[], directory);
    path(directory, "learned.parquet")
}

#[test]
fn the_protocol_key_is_the_key_of_the_representative() {
    let directory = tempfile::tempdir().unwrap();
    let learned = equivalences(&directory);
    let lines = b"http://example.org/a\nhttps://example.org/a\nHTTP://Example.org/unseen?q\nhttps://example.org/unseen?q\n\
        http://old.example.net/page\nhttp://new.example.net/pages/1\nhttp://sink.example.net/deleted/1\n\
        https://sink.example.net/\nhttp://example.com/new\nhttps://www.example.com/new/\nhttp://[bad\nmailto:a@example.org\n";
    let flags =
        ["canon", "-q", "-", "--output-format", "jsonl", "--columns", "uri,key,fault", "--key", "simple,syntax"];
    let plain = parse_json_lines(&printed(&flags, lines));
    let flags = [&flags[..8], &["simple,syntax,protocol", "--equivalences", &learned]].concat();
    let rows = parse_json_lines(&printed(&flags, lines));
    assert_eq!(rows.len(), plain.len());
    for (row, plain) in rows.iter().zip(&plain) {
        for name in ["uri", "key", "key_simple", "key_syntax", "fault"] {
            assert_eq!(row[name], plain[name]);
        }
    }
    // For each line: the number of the line whose key is the key `protocol` of this line.
    let representatives = [1, 1, 3, 3, 5, 5, 6, 7, 9, 9, 10, 11];
    for (row, representative) in rows.iter().zip(representatives) {
        assert_eq!(row["key_protocol"], rows[representative as usize]["key"], "{row}");
    }
    let report = path(&directory, "canon.json");
    printed(&[&flags[..], &["--report", &report]].concat(), lines);
    let report = read_json(report);
    assert_eq!(report["equivalences"], json!({"by_class": 2, "by_pattern": 2, "by_rule": 0}));
    assert_eq!(report["policy"]["equivalences"].as_str().unwrap().len(), 32);
}

#[test]
fn dedup_keeps_one_row_of_each_equivalence_class() {
    let directory = tempfile::tempdir().unwrap();
    let learned = equivalences(&directory);
    let lines = b"http://example.org/a\nhttps://example.org/a\nhttp://example.org/a#f\nhttp://example.org/zz\n\
        https://example.org/zz\nhttp://sink.example.net/deleted/1\nhttp://sink.example.net/deleted/2\n";
    let flags = ["dedup", "-q", "-", "--key", "protocol", "--equivalences", &learned];
    let expected = "http://example.org/a\nhttp://example.org/a#f\nhttp://example.org/zz\nhttp://sink.example.net/deleted/1\n\
        http://sink.example.net/deleted/2\n";
    assert_eq!(printed(&flags, lines), expected);
    let best = printed(&[&flags[..], &["--keep", "best"]].concat(), lines);
    assert_eq!(
        best,
        expected
            .replace("http://example.org/a\n", "https://example.org/a\n")
            .replace("http://example.org/zz", "https://example.org/zz")
    );
    let table = path(&directory, "duplicates.parquet");
    printed(&[&flags[..], &["--duplicates", &table]].concat(), lines);
    let equal = texts(&rows(&table), &["uri", "equal_on"]);
    assert_eq!(equal, [["https://example.org/a", "protocol"], ["https://example.org/zz", "protocol"]]);
    for approximate in [&[][..], &["--approximate"]] {
        let flags = ["count", "--json", "-", "--key", "scheme,protocol", "--equivalences", &learned];
        let counts =
            &parse_json_lines(&printed(&[&flags[..], approximate].concat(), lines).replace('\n', ""))[0]["distinct"];
        assert_eq!((&counts["scheme"], &counts["protocol"]), (&7.into(), &5.into()));
    }
    // Without the flag, equivalences do not apply.
    assert_eq!(printed(&["dedup", "-q", "-"], lines).lines().count(), 7);
}

#[test]
fn equivalences_of_other_keys_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let learned = equivalences(&directory);
    let urls = path(&directory, "urls.parquet");
    printed(&["canon", "-q", "-", "-o", &urls], b"http://a/\n");
    let protocol = |file: &str, more: &[&str]| {
        let out = path(&directory, "out.parquet");
        let flags = ["canon", "-", "-o", &out, "--key", "protocol", "--equivalences", file];
        let ran = irikey(&[&flags[..], more].concat(), b"http://a/\n", Stdio::null());
        assert_ne!(ran.status.code(), Some(0));
        assert!(!Path::new(&out).exists());
        String::from_utf8(ran.stderr).unwrap()
    };
    let rows = path(&directory, "rows.parquet");
    printed(&["canon", "-q", "-", "-o", &rows, "--key", "protocol", "--equivalences", &learned], b"http://a/\n");
    let folder = directory.path().to_str().unwrap();
    let cases: [(&str, &[&str], &str); 9] = [
        (&rows, &[], "not a table of equivalences; create one with irikey learn"),
        (folder, &[], "is a directory; name the file that irikey learn wrote"),
        (&learned, &["--key-hash", "blake3"], "learned with key \"xxh3-128\", but this run uses \"blake3-128\""),
        (&learned, &["--drop-fragment"], "learned with drop_fragment \"no\""),
        (&learned, &["--profile", "weber-00"], "learned with profile \"rfc3987\""),
        (&learned, &["--rung", "syntax"], "remove --rung"),
        (&urls, &[], "not a table of equivalences; create one with irikey learn"),
        ("missing.parquet", &[], "--equivalences missing.parquet: cannot open"),
        (&sample("redirects.cdxj"), &[], "give a file that irikey learn wrote"),
    ];
    for (file, flags, advice) in cases {
        let message = protocol(file, flags);
        assert!(message.contains(advice), "{message}");
    }
    let error_of = |flags: &[&str]| {
        let ran = irikey(flags, b"", Stdio::null());
        assert_eq!(ran.status.code(), Some(2));
        String::from_utf8(ran.stderr).unwrap()
    };
    assert!(error_of(&["dedup", "--key", "protocol"]).contains("needs --equivalences"));
    assert!(error_of(&["dedup", "--equivalences", &learned]).contains("--equivalences is used only by --key protocol"));
    assert!(error_of(&["dedup", "--key", "protocol", "--equivalences", &learned, "--verify"]).contains("--verify"));
}

#[test]
fn a_store_accepts_the_keys_of_one_table_of_equivalences() {
    let directory = tempfile::tempdir().unwrap();
    let learned = equivalences(&directory);
    let (seen, weak) = (path(&directory, "seen"), path(&directory, "weak.parquet"));
    printed(&["learn", "-q", &sample("redirects.cdxj"), "-o", &weak, "--weak"], b"");
    let dedup = |flags: &[&str]| {
        let flags = [&["dedup", "-q", "-", "--seen", &seen, "--update-seen"], flags].concat();
        irikey(&flags, b"http://example.org/a\n", Stdio::null()).status.code()
    };
    assert_eq!(dedup(&["--key", "protocol", "--equivalences", &learned]), Some(0));
    assert_eq!(dedup(&["--key", "protocol", "--equivalences", &learned]), Some(0));
    assert_eq!(dedup(&["--key", "protocol", "--equivalences", &weak]), Some(2));
    assert_eq!(dedup(&[]), Some(2));
}
