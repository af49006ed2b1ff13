//! `learn` as a person or a script runs it: what the samples show, the same bytes however the work is done, and what is
//! refused.

use super::{irikey, printed, sample};
use arrow::array::{Array, AsArray, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
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

/// The texts of some columns, row by row; nothing where a row has none.
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
    (rows(&out), serde_json::from_slice(&fs::read(report).unwrap()).unwrap())
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
    let want = [
        ("accepted", 15),
        ("self", 1),
        ("loop", 3),
        ("sink", 10),
        ("weak", 4),
        ("ambiguous", 2),
        ("other-site", 0),
        ("other-status", 2),
        ("unparsable", 3),
    ];
    assert_eq!(verdicts, want);
    assert_eq!(report["redirects"], 40);
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
    for (uri, want) in cases {
        assert_eq!(member(uri).as_deref(), want, "{uri}");
    }
    let patterns: Vec<_> = texts(&rows, &["host", "pattern"]).into_iter().filter(|row| !row[0].is_empty()).collect();
    let want = [["example.com", "http->https+www"], ["example.org", "http->https"], ["www.example.com", "add-slash"]];
    assert_eq!(patterns, want);
}

#[test]
fn flags_say_what_is_believed() {
    let directory = tempfile::tempdir().unwrap();
    let count = |flags: &[&str], name: &str| learn(&["redirects.cdxj"], flags, &directory).1["verdicts"][name].clone();
    assert_eq!((count(&["--weak"], "weak"), count(&["--weak"], "accepted")), (0.into(), 16.into()));
    assert_eq!(count(&["--max-sources", "10"], "sink"), 0);
    assert_eq!(count(&["--max-sources", "9"], "sink"), 10);
    let patterns = |flags: &[&str]| learn(&["redirects.cdxj"], flags, &directory).1["patterns"].clone();
    assert_eq!((patterns(&["--min-support", "5"]), patterns(&["--min-support", "6"])), (2.into(), 0.into()));
}

#[test]
fn the_same_bytes_however_the_work_is_done() {
    let directory = tempfile::tempdir().unwrap();
    let input = path(&directory, "many.cdxj");
    let lines = fs::read_to_string(sample("redirects.cdxj")).unwrap();
    let many: String = (0..400).map(|i| lines.replace("example.", &format!("site{}.example.", i % 97))).collect();
    fs::write(&input, many).unwrap();
    let ways: [&[&str]; 3] = [&["--threads", "1"], &["--threads", "3", "--chunk-size", "1K"], &["--no-mmap"]];
    let mut first = None;
    for way in ways {
        let out = path(&directory, "out.parquet");
        printed(&[&["learn", "-q", &input, "-o", &out], way].concat(), b"");
        let bytes = fs::read(&out).unwrap();
        assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{way:?}");
    }
}

#[test]
fn formats_with_a_redirect_say_the_same() {
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
fn what_cannot_be_learned_from_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let out = path(&directory, "x.parquet");
    let refused: [(&[&str], &str); 5] = [
        (&["-o", "x.csv"], "name a file that ends in .parquet"),
        (&["-o", &out, "--rung", "syntax"], "leave --rung out"),
        (&["-o", &out, "--profile", "whatwg"], "does not take --profile whatwg"),
        (&["-o", &out, "--min-confidence", "0.5"], "above 0.5"),
        (&["-o", &out, "--min-support", "0"], "1.."),
    ];
    for (flags, advice) in refused {
        let ran = irikey(&[&["learn", "-"], flags].concat(), b"", Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{message}");
        assert!(message.contains(advice), "{message}");
        assert!(!Path::new(&out).exists());
    }
    // Nothing to learn from is nothing learned.
    let ran = irikey(&["learn", "-", "-o", &out], b"http://a/\nhttp://b/\n", Stdio::null());
    assert_eq!(ran.status.code(), Some(0));
    assert!(String::from_utf8(ran.stderr).unwrap().contains("redirects                             0"));
}
