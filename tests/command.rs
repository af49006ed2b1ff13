//! Tests of the command `irikey`: exit codes, messages, output that does not depend on threads and chunks, and the results
//! of whole runs compared with the oracle.

#![cfg(feature = "cli")]

#[allow(dead_code, reason = "the oracle is shared with tests/core.rs, which uses all of it")]
mod oracle;

#[path = "command/damaged_tables.rs"]
mod damaged_tables;
#[path = "command/dedup.rs"]
mod dedup;
#[path = "command/destinations.rs"]
mod destinations;
#[path = "command/documentation.rs"]
mod documentation;
#[cfg(unix)]
#[path = "command/durability.rs"]
mod durability;
#[path = "command/extract.rs"]
mod extract;
#[cfg(unix)]
#[path = "command/help.rs"]
mod help;
#[path = "command/indexes.rs"]
mod indexes;
#[path = "command/intake.rs"]
mod intake;
#[cfg(target_os = "linux")]
#[path = "command/kills.rs"]
mod kills;
#[path = "command/learn.rs"]
mod learn;
#[path = "command/learn_parts.rs"]
mod learn_parts;
#[path = "command/outputs.rs"]
mod outputs;
#[cfg(target_os = "linux")]
#[path = "command/power_loss.rs"]
mod power_loss;
#[path = "command/reference_tables.rs"]
mod reference_tables;
#[cfg(feature = "remote")]
#[path = "command/remote.rs"]
mod remote;
#[cfg(target_os = "linux")]
#[path = "command/signals.rs"]
mod signals;
#[path = "command/sort.rs"]
mod sort;
#[path = "command/speed_table.rs"]
mod speed_table;
#[cfg(unix)]
#[path = "command/terminal.rs"]
mod terminal;
#[cfg(unix)]
#[path = "command/usage.rs"]
mod usage;

use std::fs::{self, File};
use std::path::Path;

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Runs the command with `input` on its standard input.
fn irikey(arguments: &[&str], input: &[u8], stdout: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
    command.args(arguments).stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The write fails if the command exits without reading, for example because of its flags.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// A ZIP archive of stored members (APPNOTE.TXT 4.3).
fn zip(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let (len, header_at) = ((content.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes());
        let fixed = [&[20, 0, 0, 0, 0, 0, 0, 0, 0, 0][..], &crc.sum().to_le_bytes(), &len, &len].concat();
        let names = [&(name.len() as u16).to_le_bytes()[..], &[0, 0]].concat();
        bytes.extend([b"PK\x03\x04", &fixed[..], &names, name.as_bytes(), content].concat());
        let place = [&[0; 10][..], &header_at].concat();
        directory.extend([b"PK\x01\x02\x14\0", &fixed[..], &names, &place, name.as_bytes()].concat());
    }
    let count = (members.len() as u16).to_le_bytes();
    let (len, at) = ((directory.len() as u32).to_le_bytes(), (bytes.len() as u32).to_le_bytes());
    [&bytes[..], &directory, b"PK\x05\x06\0\0\0\0", &count, &count, &len, &at, &[0, 0]].concat()
}

const LINES: &[u8] = b"http://a/\n\nhttp://b/\n";

#[test]
fn canon_writes_one_line_per_record_and_a_summary() {
    let ran = irikey(&["canon"], LINES, Stdio::piped());
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(0), LINES));
    let summary = String::from_utf8(ran.stderr).unwrap();
    assert!(summary.starts_with("records        3  100.0 %\n"), "{summary}");
    let ran = irikey(&["canon", "--quiet", "--fail-on-fault"], LINES, Stdio::piped());
    assert_eq!((ran.status.code(), ran.stdout.as_slice(), ran.stderr.as_slice()), (Some(3), LINES, &b""[..]));
}

#[test]
fn the_report_balances_and_names_the_policy() {
    let directory = tempfile::tempdir().unwrap();
    let (out, report) = (directory.path().join("x.parquet"), directory.path().join("x.json"));
    let flags = ["canon", "-", "-o", out.to_str().unwrap(), "--report", report.to_str().unwrap()];
    assert_eq!(irikey(&flags, LINES, Stdio::null()).status.code(), Some(0));
    let report = read_json(report);
    let count = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(count("records"), count("unchanged") + count("changed") + count("faulty"));
    assert_eq!((count("records"), report["output"]["rows"].as_u64()), (3, Some(3)));
    assert_eq!(report["policy"]["profile"], "rfc3987");
}

#[test]
fn failures_have_exit_codes_and_leave_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let status = |arguments: &[&str]| irikey(arguments, LINES, Stdio::null()).status.code();
    assert_eq!(status(&["canon", "-o", &path("x.unknown")]), Some(2));
    assert_eq!(status(&["canon", "--no-such-flag"]), Some(2));
    assert_eq!(status(&["canon", "-o", &path("no/x.csv")]), Some(5));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    assert_eq!(status(&["canon", &path("missing.txt"), "-q"]), Some(4));
    assert_eq!(status(&["schema", "--json"]), Some(0));
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_standard_output_is_no_error_and_a_full_one_is() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = irikey(&["canon"], LINES, writer.into());
    assert_eq!((ran.status.code(), ran.stderr.as_slice()), (Some(0), &b""[..]));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ran = irikey(&["canon"], LINES, full.into());
    assert_eq!(ran.status.code(), Some(5));
    let message = String::from_utf8(ran.stderr).unwrap();
    assert!(message.starts_with("irikey: standard output: cannot write: no space left on device;"), "{message}");
    for job in [&["--help"][..], &["help", "canon"], &["--version"], &["explain", "a:"]] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = irikey(job, b"", full.into());
        let message = String::from_utf8(ran.stderr).unwrap();
        let expected = (Some(5), "irikey: standard output: cannot write: no space left on device\n");
        assert_eq!((ran.status.code(), message.as_str()), expected, "{job:?}");
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(irikey(&["--help"], b"", writer.into()).status.code(), Some(0));
}

/// Runs the command and returns its standard output. Panics if the exit code is not 0.
fn printed(arguments: &[&str], input: &[u8]) -> String {
    let ran = irikey(arguments, input, Stdio::piped());
    assert_eq!(ran.status.code(), Some(0), "{arguments:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// Runs a command that reads no standard input, and returns what it prints. Panics if the exit code is not 0.
fn succeed(arguments: &[&str]) -> String {
    printed(arguments, b"")
}

/// Reads a file with one JSON value, such as a report.
fn read_json(path: impl AsRef<Path>) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// One gzip member.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Pseudo-random numbers of 31 bits, the same on every run.
fn random_numbers(mut state: u64) -> impl FnMut() -> usize {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    }
}

/// Parses one JSON value per line.
fn parse_json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The path of a sample.
fn sample(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples").join(name).display().to_string()
}

#[test]
fn output_bytes_do_not_depend_on_threads_and_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("urls.txt");
    let lines = fs::read(sample("urls.txt")).unwrap();
    fs::write(&input, lines.repeat(40)).unwrap();
    let settings: [&[&str]; 6] = [
        &["--threads", "1"],
        &["--threads", "2"],
        &["--threads", "7", "--chunk-size", "1"],
        &["--no-mmap"],
        &["--no-mmap", "--chunk-size", "100", "--threads", "3"],
        &["--chunk-size", "64M"],
    ];
    for suffix in ["parquet", "arrow", "arrows", "csv", "tsv", "jsonl", "txt"] {
        let mut first = None;
        for setting in settings {
            let out = directory.path().join("out").with_extension(suffix);
            let (input, output) = (input.to_str().unwrap(), out.to_str().unwrap());
            let flags = ["canon", "-q", input, "-o", output, "--row-group-size", "50K"];
            printed(&[&flags[..], setting].concat(), b"");
            let bytes = fs::read(&out).unwrap();
            assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{suffix} {setting:?}");
        }
    }
}

#[test]
fn results_of_the_samples_equal_the_oracle() {
    let lines = fs::read(sample("urls.txt")).unwrap();
    let texts = printed(&["canon", "-q", "-"], &lines);
    let records: Vec<_> = lines.strip_suffix(b"\n").unwrap_or(&lines).split(|byte| *byte == b'\n').collect();
    assert_eq!(texts.lines().count(), records.len());
    for (record, text) in records.iter().zip(texts.lines()) {
        let record = record.strip_suffix(b"\r").unwrap_or(record);
        let expect = oracle::ladder::normalize(record, oracle::ladder::Rung::Scheme, false).unwrap_or_default();
        assert_eq!(text, expect, "{}", String::from_utf8_lossy(record));
    }
    assert_eq!(texts, printed(&["canon", "-q", &sample("urls.txt.gz")], b""));
}

#[test]
fn targets_of_the_sample_pairs_equal_the_oracle() {
    let flags = ["canon", "-q", &sample("pairs.csv"), "--base-column", "base", "--column", "relative"];
    let texts = printed(&flags, b"");
    let mut reader = csv::Reader::from_path(sample("pairs.csv")).unwrap();
    let pairs: Vec<_> = reader.records().collect::<Result<_, _>>().unwrap();
    assert_eq!(texts.lines().count(), pairs.len());
    for (pair, text) in pairs.iter().zip(texts.lines()) {
        // An absolute reference needs no base; an invalid base does not matter.
        let target = if oracle::components::split(&pair[1]).scheme.is_some() {
            Some(pair[1].to_string())
        } else {
            oracle::resolve::resolve(&pair[0], &pair[1], oracle::resolve::Base::Normalized)
        };
        let normalize =
            |target: String| oracle::ladder::normalize(target.as_bytes(), oracle::ladder::Rung::Scheme, false).ok();
        assert_eq!(text, target.and_then(normalize).unwrap_or_default(), "{pair:?}");
    }
}

#[test]
fn a_truncated_gzip_file_gives_its_complete_records_and_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("short.gz");
    let packed = fs::read(sample("urls.txt.gz")).unwrap();
    fs::write(&path, &packed[..packed.len() - 40]).unwrap();
    let ran = irikey(&["canon", path.to_str().unwrap()], b"", Stdio::piped());
    assert_eq!(ran.status.code(), Some(4));
    let message = String::from_utf8(ran.stderr).unwrap();
    assert!(message.contains("short.gz: after ") && message.contains("the gzip data ends early"), "{message}");
    let whole = printed(&["canon", "-q", &sample("urls.txt")], b"");
    let text = String::from_utf8(ran.stdout).unwrap();
    assert!(text.len() > 1000 && whole.starts_with(&text));
}

#[test]
fn faults_and_flags_are_columns() {
    let flags = ["canon", "-q", "--output-format", "jsonl", "--columns", "record,input,uri,fault,fault_at,flags", "-"];
    let printed = printed(&flags, b"http://h:8a/\nhttp://h/a b\n\xFF\n");
    let rows = parse_json_lines(&printed);
    assert_eq!(rows.len(), 3);
    assert_eq!((&rows[0]["fault"], &rows[0]["fault_at"]), (&"port".into(), &10.into()));
    assert_eq!((&rows[1]["uri"], &rows[1]["flags"][0]), (&"http://h/a%20b".into(), &"excluded".into()));
    assert_eq!((&rows[2]["fault"], &rows[2]["input"]["hex"]), (&"relative".into(), &"ff".into()));
}

#[test]
fn iris_spoofing_flags_and_skeletons_are_columns() {
    let flags = ["canon", "-q", "--output-format", "jsonl", "--columns", "iri,spoofing_flags,host_skeleton", "-"];
    let lines = "http://xn--bcher-kva.example/%C3%A9%2F\nhttp://раураӏ.example/\nhttp://h/%D7%90a\nx y\nmailto:a\n";
    // A skeleton is not a host name: UTS 39 maps m to rn.
    let expect = [
        r#"{"iri":"http://bücher.example/é%2F","spoofing_flags":["encoded-slash"],"host_skeleton":"bücher.exarnple"}"#,
        r#"{"iri":"http://раураӏ.example/","spoofing_flags":["ascii-look-alike"],"host_skeleton":"paypal.exarnple"}"#,
        r#"{"iri":"http://h/אa","spoofing_flags":["bidi-structure"],"host_skeleton":"h"}"#,
        r#"{"iri":null,"spoofing_flags":[],"host_skeleton":null}"#,
        r#"{"iri":"mailto:a","spoofing_flags":[],"host_skeleton":null}"#,
    ];
    assert_eq!(printed(&flags, lines.as_bytes()).lines().collect::<Vec<_>>(), expect);
    // An IRI has only characters that its profile allows.
    for (profile, iri) in [
        ("rfc3987", "http://h/\u{2028}é?\u{E000}"),
        ("duerst-01", "http://h/\u{2028}é?%EE%80%80"),
        ("duerst-00", "http://h/%E2%80%A8é?%EE%80%80"),
    ] {
        let flags = ["canon", "-q", "--columns", "iri", "--profile", profile];
        assert_eq!(printed(&flags, b"http://h/%E2%80%A8%C3%A9?%EE%80%80\n"), format!("iri\n{iri}\n"));
    }
}

#[test]
fn strict_rejects_what_lenient_repairs() {
    let lines = b"http://h/a b\nhttp://h/%zz\nhttp://h/\xE2\x80\xAE\nhttp://h/\xFF\nhttp://h/%c3%a9\n";
    assert_eq!(printed(&["canon", "-q", "--strict"], lines), "\n\n\n\nhttp://h/%C3%A9\n");
    let lenient = "http://h/a%20b\nhttp://h/%zz\nhttp://h/%E2%80%AE\nhttp://h/%FF\nhttp://h/%C3%A9\n";
    assert_eq!(printed(&["canon", "-q"], lines), lenient);
}

#[test]
fn bases_fragments_and_schemes_on_request() {
    let base = ["canon", "-q", "--base", "http://a/b/c/d;p?q#f"];
    assert_eq!(printed(&base, b"../g\n\n//h/\nmailto:x\n"), "http://a/b/g\nhttp://a/b/c/d;p?q\nhttp://h/\nmailto:x\n");
    assert_eq!(printed(&["canon", "-q", "--drop-fragment"], b"http://a/#b\n"), "http://a/\n");
    let assume = ["canon", "-q", "--assume-scheme", "https"];
    // A dot alone does not make a host: the last line is a relative reference without a base.
    let text = b"example.org/x\n//h/\nnodot\n.hidden/x\n";
    assert_eq!(printed(&assume, text), "https://example.org/x\nhttps://h/\n\n\n");
    let json = [&assume[..], &["--output-format", "jsonl", "--columns", "input,flags"]].concat();
    assert_eq!(printed(&json, b"a.b/\n"), "{\"input\":\"a.b/\",\"flags\":[\"assumed-scheme\"]}\n");
    let status = |flags: &str, base: &str| {
        let flags: Vec<&str> = flags.split_whitespace().chain(["--base", base]).collect();
        irikey(&[&["canon", "-q"], &flags[..]].concat(), b"x\n", Stdio::null()).status.code()
    };
    // A base that every relative record would refuse is a usage error.
    for (flags, base, code) in [
        ("", "a/b", 2),
        ("", "http://h/a b", 0),
        ("--strict", "http://h/a b", 2),
        ("", "http://a@b@c/", 2),
        ("--profile weber-00", "http://a@b@c/", 0),
        ("--profile whatwg", "http://a@b@c/", 0),
        ("--profile whatwg", "http://h:99999/", 2),
    ] {
        assert_eq!(status(flags, base), Some(code), "{flags} {base}");
    }
}

#[test]
fn charsets_are_transcoded_and_queries_encoded() {
    let viet = b"http://example.org/Vi\xEA\xF2t\n";
    assert_eq!(printed(&["canon", "-q", "--charset", "windows-1258"], viet), "http://example.org/Vi%E1%BB%87t\n");
    let rose = b"http://r\xE9sum\xE9.example/\xE9?\xE9#\xE9\nftp://h/?\xE9\nhttp://h/a\n";
    let latin = ["canon", "-q", "--charset", "iso-8859-1"];
    let utf8 = "http://xn--rsum-bpad.example/%C3%A9?%C3%A9#%C3%A9\nftp://h/?%C3%A9\nhttp://h/a\n";
    assert_eq!(printed(&latin, rose), utf8);
    let query = [&latin[..], &["--query-charset", "iso-8859-1"]].concat();
    assert_eq!(printed(&query, rose), utf8.replace("?%C3%A9#", "?%E9#"));
    let japanese = printed(&["canon", "-q", "--query-charset", "Shift_JIS"], "http://h/?ア\nhttp://h/?é\n".as_bytes());
    assert_eq!(japanese, "http://h/?%83A\nhttp://h/?%C3%A9\n");
    let broken = ["canon", "-q", "--charset", "euc-jp", "--output-format", "jsonl", "--columns", "fault,fault_at"];
    assert_eq!(printed(&broken, b"http://h/\xA4\xA2\xFF\n"), "{\"fault\":\"undecodable\",\"fault_at\":11}\n");
    let russian = printed(&["canon", "-q", "--charset", "windows-1251"], b"http://h/\xEF\xF0\n");
    assert_eq!(russian, printed(&["canon", "-q", "--charset", "koi8-r"], b"http://h/\xD0\xD2\n"));
    assert_eq!(
        printed(&["canon", "-q", "--base", "http://h/a/", "--charset", "big5"], b"\xA4@\n"),
        "http://h/a/%E4%B8%80\n"
    );
}

#[test]
fn bases_have_the_charset_of_their_records() {
    let flags = ["canon", "-q", "--format", "csv", "--column", "u", "--base-column", "b"];
    let rows = |charset: &str, text: &[u8]| {
        let columns = ["--charset", charset, "--output-format", "jsonl", "--columns", "uri,fault"];
        printed(&[&flags[..], &columns].concat(), text)
    };
    let decoded = rows("windows-1251", b"b,u\nhttp://h/\xEF\xF0/,\xE0\n");
    assert_eq!(decoded, "{\"uri\":\"http://h/%D0%BF%D1%80/%D0%B0\",\"fault\":null}\n");
    // A base that is not used is not decoded.
    let undecodable = rows("euc-jp", b"b,u\nhttp://h/\x81/,x\nhttp://h/\x81/,http://h/\n");
    assert_eq!(undecodable, "{\"uri\":null,\"fault\":\"base\"}\n{\"uri\":\"http://h/\",\"fault\":null}\n");
}

#[test]
fn offsets_of_faults_count_from_the_record() {
    let columns = ["--output-format", "jsonl", "--columns", "fault,fault_at"];
    let at = |flags: &[&str], line: &[u8]| printed(&[&["canon", "-q"], flags, &columns].concat(), line);
    let port = "{\"fault\":\"port\",\"fault_at\":4}\n";
    assert_eq!(at(&["--base", "http://example.org/a/b"], b"//h:8\n//h:x\n").lines().nth(1), Some(port.trim_end()));
    assert_eq!(at(&["--assume-scheme", "https"], b"//h:x\n"), port);
    assert_eq!(at(&["--assume-scheme", "https"], b"h.i@:x\n"), port.replace('4', "5"));
    let strict = at(&["--strict"], b"http://[::1/\nhttp://a[b/\n");
    assert_eq!(strict, "{\"fault\":\"ip-literal\",\"fault_at\":7}\n{\"fault\":\"character\",\"fault_at\":8}\n");
}

/// Escaped dots are decoded before dot segments are removed, also in references that are resolved.
#[test]
fn references_have_the_keys_of_their_absolute_spellings() {
    let keys = |flags: &[&str], line: &[u8]| {
        printed(&[&["canon", "-q", "--output-format", "csv", "--columns", "uri,key"], flags].concat(), line)
    };
    for (reference, absolute, uri) in [
        ("/a/b/%2e%2e/../c", "http://h/a/b/%2E%2E/../c", "http://h/c"),
        ("//h/a/%2e%2E/../c", "http://h/a/../../c", "http://h/c"),
        ("a/.%2e/../c", "http://h/x/y/a/../../c", "http://h/x/c"),
        ("%2e/../c", "http://h/x/y/./../c", "http://h/x/c"),
        ("%2e%2e", "http://h/x/y/..", "http://h/x/"),
        ("a%2e/../c?%2e%2e/", "http://h/x/y/c?../", "http://h/x/y/c?../"),
    ] {
        let resolved = keys(&["--base", "http://h/x/y/z"], reference.as_bytes());
        assert_eq!(resolved, keys(&[], absolute.as_bytes()), "{reference}");
        assert!(resolved.contains(&format!("\n{uri},")), "{resolved}");
    }
    let literal = keys(&["--base", "http://h/x/y/z", "--literal-base"], b"a/%2e%2e/../c");
    assert!(literal.contains("\nhttp://h/x/y/a/c,"), "{literal}");
}

/// Texts of keys that differ are different texts, too.
#[test]
fn texts_of_keys_have_escapes_for_bytes_that_are_not_utf8() {
    let csv = ["canon", "-q", "--output-format", "csv", "--columns", "url_surtkey"];
    assert_eq!(printed(&csv, b"filedesc:\xff\nfiledesc:\xfe\n"), "url_surtkey\nfiledesc:%FF\nfiledesc:%FE\n");
}

#[test]
fn explain_shows_the_spoofing_flags_of_a_row() {
    for url in ["http://h/%d7%90a", "http://X%d8%a8/", "http://h/a%2fb", "http://www.example.com@h/"] {
        let rows = printed(&["canon", "-q", "--output-format", "jsonl", "--columns", "spoofing_flags"], url.as_bytes());
        let flags = &parse_json_lines(&rows)[0]["spoofing_flags"];
        let explained: serde_json::Value = serde_json::from_str(&printed(&["explain", "--json", url], b"")).unwrap();
        assert_eq!(&explained["spoofing_flags"], flags, "{url}");
        let text = printed(&["explain", url], b"");
        assert!(flags.as_array().unwrap().iter().all(|flag| text.contains(flag.as_str().unwrap())), "{text}");
    }
}

#[test]
fn explain_shows_the_key_of_a_row_with_a_fault() {
    for profile in ["rfc3987", "whatwg"] {
        let flags = ["--profile", profile];
        let rows = printed(
            &[&["canon", "-q", "--output-format", "jsonl", "--columns", "key"], &flags[..]].concat(),
            b"http://h:x/",
        );
        let explain = |more: &[&str]| printed(&[&["explain", "http://h:x/"], &flags[..], more].concat(), b"");
        let json: serde_json::Value = serde_json::from_str(&explain(&["--json"])).unwrap();
        let key = parse_json_lines(&rows)[0]["key"].as_str().unwrap().to_string();
        assert_eq!((json["fault_key"].as_str(), &json["rungs"]), (Some(&key[..]), &serde_json::json!({})));
        assert!(explain(&[]).contains(&key));
    }
}

#[test]
fn explain_prints_steps_rungs_and_the_fault() {
    let text = printed(&["explain", "HTTP://EXAMPLE.com:80/%7eb", "http://h:8a/"], b"");
    for expected in
        ["pct-decoded", "http://example.com/~b", "http://example.com:80/~b", "\n          ^ fault: port at byte 10"]
    {
        assert!(text.contains(expected), "{expected} is missing in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&printed(&["explain", "--json", "http://h"], b"")).unwrap();
    assert_eq!(json["rungs"]["scheme"]["text"], "http://h/");
    assert_eq!(json["rungs"]["syntax"]["text"], "http://h");
}

#[test]
fn explain_shows_the_step_of_a_browser() {
    let steps = |url: &str| {
        let explained = printed(&["explain", "--json", "--profile", "whatwg", url], b"");
        serde_json::from_str::<serde_json::Value>(&explained).unwrap()["steps"].clone()
    };
    let steps_of_odd = steps("HTTP://EXAMPLE.com:80/a/../b");
    assert_eq!(steps_of_odd[0]["step"], "whatwg");
    assert_eq!(steps_of_odd[0]["text"], "http://example.com/b");
    assert_eq!(
        (steps_of_odd.as_array().map(Vec::len), steps("http://example.com/b")),
        (Some(1), serde_json::json!([]))
    );
}

/// The href is that of `canon --profile whatwg` with the same flags.
#[test]
fn explain_shows_what_a_browser_makes_of_a_record() {
    let cases: [(&[&str], &str, Option<&str>); 8] = [
        (&["--query-charset", "latin1"], "http://h/?é", Some("http://h/?%E9")),
        (&["--query-charset", "latin1"], "http://h/?я", Some("http://h/?%26%231103%3B")),
        (&["--base", "file:///C:/../x"], "y", Some("file:///C:/y")),
        (&["--base", "http:/h/../x"], "y", Some("http://h/y")),
        (&["--assume-scheme", "https"], "www.h/é", Some("https://www.h/%C3%A9")),
        (&["--character-references", "html"], "http://h/?a&amp;b", Some("http://h/?a&b")),
        (&["--drop-fragment", "--key", "nutch"], "http://h/a b#c", Some("http://h/a%20b#c")),
        (&["--strict"], "http://h:99999/", None),
    ];
    for (flags, url, expected) in cases {
        let profiles: &[&str] = if flags[0] == "--strict" { &["rfc3987"] } else { &["rfc3987", "whatwg"] };
        for profile in profiles {
            let arguments = [&["explain", "--json", "--profile", profile, url], flags].concat();
            let explained: serde_json::Value = serde_json::from_str(&printed(&arguments, b"")).unwrap();
            assert_eq!(explained["whatwg_href"].as_str(), expected, "{arguments:?}");
        }
    }
}

/// A fault refers to the text after repairs, which is shown above its caret.
#[test]
fn explain_shows_the_text_to_which_a_fault_refers() {
    let cases: [(&[&str], &str, &str); 5] = [
        (&["--trim"], "  http://h:x/", "  http://h:x/\nhttp://h:x/\n         ^ fault: port at byte 9"),
        (
            &["--character-references", "html"],
            "http://&amp;[/",
            "http://&amp;[/\nhttp://&[/\n        ^ fault: character in host at byte 8",
        ),
        (&["--charset", "windows-1252"], "http://\u{e9}:x/", ":x/\n          ^ fault: port at byte"),
        (
            &["--assume-scheme", "https", "--strict"],
            "h.org/a b",
            "h.org/a b\nhttps://h.org/a b\n               ^ fault: character in path at byte 15",
        ),
        (&["--base", "http://example.org/"], "//h:x/", "//h:x/\n    ^ fault: port at byte 4"),
    ];
    for (flags, iri, expected) in cases {
        let text = printed(&[&["explain", iri], flags].concat(), b"");
        assert!(text.contains(expected), "{text}");
        let json: serde_json::Value =
            serde_json::from_str(&printed(&[&["explain", "--json", iri], flags].concat(), b"")).unwrap();
        let is_within = |part: &serde_json::Value| {
            let [from, len] = ["at", "len"].map(|name| part[name].as_u64().unwrap());
            (from..=from + len).contains(&json["fault"]["at"].as_u64().unwrap())
        };
        let component = json["fault"]["component"].as_str().unwrap();
        assert!(is_within(&json["components"][component]), "{json}");
    }
}

#[test]
fn resume_refuses_standard_input_before_it_creates_anything() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let ran = irikey(&["canon", "--resume", "-", "-o", out.to_str().unwrap()], b"http://a/\n", Stdio::null());
    assert_eq!((ran.status.code(), out.exists()), (Some(2), false));
}

#[test]
fn compare_names_the_lowest_rung() {
    let cases = [
        ("http://h/", "http://h/", "equivalent on rung simple\n", 0),
        ("http://h/%7e", "http://h/~", "equivalent on rung syntax\n", 0),
        ("http://h:80", "http://h/", "equivalent on rung scheme\n", 0),
        ("http://h/", "https://h/", "not equivalent on any rung up to scheme\n", 1),
    ];
    for (a, b, text, status) in cases {
        let ran = irikey(&["compare", a, b], b"", Stdio::piped());
        assert_eq!((ran.status.code(), String::from_utf8(ran.stdout).unwrap().as_str()), (Some(status), text));
    }
    assert_eq!(irikey(&["compare", "x", "y"], b"", Stdio::null()).status.code(), Some(2));
    assert_eq!(printed(&["compare", "x", "x"], b""), "equivalent on rung simple\n");
}

/// What `explain` shows of each line with these flags, and the rows of `canon` with the same flags.
#[cfg(unix)]
fn explained_and_rows(lines: &[&[u8]], flags: &[&str]) -> [Vec<serde_json::Value>; 2] {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let key = ["--key", "simple,surt-ia,surt-wayback,w3lib,rules", "--rules", "nutch,+www"];
    let canon = ["canon", "-q", "--format", "lines", "--output-format", "jsonl", "--columns", "+spoofing_flags"];
    let rows = printed(&[&canon[..], &key, flags].concat(), &lines.join(&b'\n'));
    let mut explain = Command::new(env!("CARGO_BIN_EXE_irikey"));
    explain.args(["explain", "--json"]).args(key).args(flags).arg("--");
    let explained = explain.args(lines.iter().map(|line| OsStr::from_bytes(line))).output().unwrap();
    assert_eq!(explained.status.code(), Some(0), "{}", String::from_utf8_lossy(&explained.stderr));
    [String::from_utf8(explained.stdout).unwrap(), rows].map(|text| parse_json_lines(&text))
}

/// The URIs, keys, faults and flags that `explain` shows are those of the rows of `canon` with the same flags.
#[cfg(unix)]
#[test]
fn explain_shows_the_row_of_canon() {
    let samples = fs::read(sample("urls.txt")).unwrap();
    let more: [&[u8]; 8] = [
        b" http://h/a b\t",
        b"example.org:80/x#y",
        b"../x?\xd0\xb6#f",
        b"http://h/&amp;&lt;a",
        b"http:\\\\h\\a",
        b"http://\xe9.example/?\xe9",
        b"/a/%2e%2e/b http://h/#a",
        b"http://h/a#b#c",
    ];
    let lines: Vec<_> = samples.split(|byte| *byte == b'\n').chain(more).filter(|line| !line.is_empty()).collect();
    let lines: Vec<_> = lines.into_iter().filter(|line| !line.contains(&0) && !line.contains(&b'\r')).collect();
    let base = ["--base", "http://Base.example/%7ea/./b?c"];
    let mut jobs: Vec<Vec<&str>> = [
        "",
        "--strict",
        "--rung syntax",
        "--drop-fragment --key-hash blake3",
        "--assume-scheme https --trim",
        "--max-url 30",
        "--charset windows-1251",
        "--query-charset koi8-r",
        "--inner-spaces remove --character-references html --backslashes slash",
        "--inner-spaces split --character-references xml --backslashes encode --strict",
        "--profile weber-00",
        "--profile masinter-07 --assume-scheme http",
        "--profile whatwg --drop-fragment",
    ]
    .map(|flags| flags.split_whitespace().collect())
    .into();
    let with_base =
        jobs.iter().map(|flags| [&flags[..], &base].concat()).chain([[&base[..], &["--literal-base"]].concat()]);
    jobs.extend(with_base.collect::<Vec<_>>());
    let (mut sound, mut faulty) = (0, 0);
    for flags in jobs {
        let [explained, rows] = explained_and_rows(&lines, &flags);
        assert!(rows.len() >= lines.len() && explained.len() == rows.len(), "{flags:?}");
        let rung = if flags.contains(&"syntax") { "syntax" } else { "scheme" };
        for (explained, row) in explained.iter().zip(&rows) {
            let (rungs, recipe) = (&explained["rungs"], |name: &str| &explained["recipes"][name]["key"]);
            for name in ["surt_ia", "surt_wayback", "w3lib", "rules"] {
                let found = recipe(&name.replace('_', "-"));
                assert_eq!(found, &row[format!("key_{name}")], "{flags:?} {row} {explained}");
            }
            let fault = &explained["fault"];
            assert_eq!((&fault["kind"], &fault["at"]), (&row["fault"], &row["fault_at"]), "{flags:?} {row}");
            assert_eq!(explained["spoofing_flags"], row["spoofing_flags"], "{flags:?} {row}");
            if row["fault"].is_string() {
                faulty += 1;
                assert_eq!((&explained["fault_key"], &row["key_simple"]), (&row["key"], &row["key"]), "{flags:?}");
                continue;
            }
            sound += 1;
            assert_eq!(rungs[rung]["text"], row["uri"], "{flags:?} {row} {explained}");
            assert_eq!(rungs[rung]["key"], row["key"], "{flags:?} {row}");
            assert_eq!(rungs["simple"]["key"], row["key_simple"], "{flags:?} {row} {explained}");
            assert_eq!(explained["flags"], row["flags"], "{flags:?} {row}");
            assert_eq!(rungs.as_object().unwrap().len(), if rung == "syntax" { 2 } else { 3 });
            // The steps lead from the input to the URI. The URL Standard has no steps.
            let last = explained["steps"].as_array().unwrap().iter().rev().find_map(|step| step["text"].as_str());
            let last = last.unwrap_or(explained["input"].as_str().unwrap());
            assert!(last == row["uri"] || flags.contains(&"whatwg"), "{flags:?} {row} {explained}");
        }
    }
    assert!(sound > 8000 && faulty > 500, "{sound} sound rows, {faulty} with a fault");
}

#[test]
fn messages_of_single_iris_name_flags_that_exist() {
    for job in [&["compare", "x", "y"][..], &["compare", "a:", "b:", "--literal-base"], &["explain", "x"]] {
        let ran = irikey(job, b"", Stdio::piped());
        let text = [ran.stdout, ran.stderr].map(|text| String::from_utf8(text).unwrap()).concat();
        assert!(text.contains("--base") && !text.contains("--base-column"), "{text}");
    }
    for command in ["compare", "explain"] {
        assert!(!printed(&[command, "--help"], b"").contains("--base-column"));
    }
    assert_eq!(printed(&["compare", "HTTP://h#a", "http://h", "--drop-fragment"], b""), "equivalent on rung syntax\n");
    let different = irikey(&["compare", "http://h:80", "http://h", "--rung", "syntax"], b"", Stdio::piped());
    let expected = (Some(1), "not equivalent on any rung up to syntax\n");
    assert_eq!((different.status.code(), std::str::from_utf8(&different.stdout).unwrap()), expected);
    let several = irikey(&["compare", "a: b:", "c:", "--inner-spaces", "split"], b"", Stdio::null());
    assert_eq!(several.status.code(), Some(2));
}

#[test]
fn explain_and_compare_apply_a_profile() {
    let (slashes, backslashes) = ("http://h/a", "http:\\\\h\\a");
    let status = |more: &[&str]| {
        let arguments = [&["compare", slashes, backslashes][..], more].concat();
        irikey(&arguments, b"", Stdio::null()).status.code()
    };
    assert_eq!(
        (status(&[]), status(&["--profile", "whatwg"]), status(&["--profile", "none"])),
        (Some(1), Some(0), Some(2))
    );
    let text = printed(&["compare", slashes, backslashes, "--profile", "whatwg"], b"");
    assert_eq!(text, "equivalent on rung syntax\n");
    let explained = |more: &[&str]| -> serde_json::Value {
        let arguments = [&["explain", "--json", backslashes][..], more].concat();
        serde_json::from_str(&printed(&arguments, b"")).unwrap()
    };
    assert_eq!(explained(&["--profile", "whatwg"])["rungs"]["scheme"]["text"], slashes);
    assert_ne!(explained(&[])["rungs"]["scheme"]["text"], slashes);
}

#[test]
fn eval_answers_in_order() {
    let questions = b"{\"id\": 1, \"op\": \"normalize\", \"input\": \"HTTP://h\", \"rung\": 3}\n\nnonsense\n\
        {\"id\": [2], \"op\": \"compare\", \"input\": [\"a:b\", \"A:b\"], \"rung\": 2}\n";
    let answers = printed(&["eval"], questions);
    let answers = parse_json_lines(&answers);
    assert_eq!(answers.len(), 3);
    assert_eq!((&answers[0]["id"], &answers[0]["output"]), (&1.into(), &"http://h/".into()));
    assert!(answers[1]["error"].is_string() && answers[1]["id"].is_null());
    assert_eq!(answers[2]["output"], true);
    let surt = |dialect: &str, url: &str| {
        let question = serde_json::json!({"id": 1, "op": "surt", "input": url, "opts": {"dialect": dialect}});
        let answer: serde_json::Value =
            serde_json::from_str(&printed(&["eval"], question.to_string().as_bytes())).unwrap();
        answer["output"].as_str().unwrap_or_default().to_string()
    };
    for dialect in ["wayback", "ia"] {
        assert_eq!(surt(dialect, "http://www.Example.org:80/A/?b=2&a=1#f"), "org,example)/a?a=1&b=2");
    }
}

#[test]
fn bench_measures_stages_and_compares_reports() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("bench.json");
    let json = printed(&["bench", &sample("urls.txt"), "--rounds", "1", "--json"], b"");
    let measured: serde_json::Value = serde_json::from_str(&json).unwrap();
    let names: Vec<_> = measured["stages"].as_array().unwrap().iter().map(|stage| &stage["name"]).collect();
    let stages = ["read", "classify", "split", "validate", "canonicalize", "hash", "encode", "write"];
    assert_eq!(names, [&stages[..], &["core", "total", "copy", "copy + hash"]].concat());
    assert_eq!(measured["lines"], 381);
    fs::write(&report, json).unwrap();
    let table = printed(&["bench", &sample("urls.txt"), "--rounds", "1", "--compare", report.to_str().unwrap()], b"");
    assert!(table.lines().any(|line| line.starts_with("encode ") && line.ends_with(" %")), "{table}");
    fs::write(&report, "{}").unwrap();
    let rejected = irikey(&["bench", "-", "--compare", report.to_str().unwrap()], b"", Stdio::null());
    assert_eq!(rejected.status.code(), Some(2));
    assert_eq!(irikey(&["bench", "-"], b"", Stdio::null()).status.code(), Some(4));
    let refused = irikey(&["bench", directory.path().to_str().unwrap()], b"", Stdio::null());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(4) && message.contains(": is a directory; name one of its files"),
        "{message}"
    );
    // Short files of Parquet are decoded, too.
    let table = directory.path().join("urls.parquet").display().to_string();
    printed(&["canon", "-q", "-", "-o", &table], b"http://a/\nhttp://b/\nhttp://c/\n");
    assert_eq!(printed(&["bench", "--floor", &table], b""), "3\n");
}

#[test]
fn diff_reports_what_only_one_key_merges() {
    let urls = b"http://www.example.org/A\nhttp://example.org/a\nhttp://example.org/b\nhttp://example.org:80/b\n";
    let flags = ["diff", "--key", "scheme", "--key", "surt-wayback", "--json"];
    let ran = irikey(&flags, urls, Stdio::piped());
    assert_eq!(ran.status.code(), Some(0));
    let found: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let [scheme, surt] = [0, 1].map(|i| &found["differences"][i]);
    assert_eq!((scheme["merged_by"].as_str(), scheme["keys"].as_u64()), (Some("scheme"), Some(0)));
    assert_eq!((surt["keys"].as_u64(), surt["merges"].as_u64()), (Some(1), Some(1)));
    assert_eq!(surt["examples"][0], serde_json::json!(["http://www.example.org/A", "http://example.org/a"]));
    let merges_of = |rule: &str| {
        let rules = found["rules"].as_array().unwrap().iter();
        rules.filter(|found| found["rule"] == rule).map(|found| found["merges"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!(["www", "path-case", "port", "query-sort"].map(merges_of), [1, 1, 1, 0]);
    let own = ["diff", "--key", "scheme", "--key", "rules", "--rules", "surt-wayback,-www", "--json"];
    let found: serde_json::Value = serde_json::from_str(&printed(&own, urls)).unwrap();
    assert_eq!(found["differences"][1]["merges"], 0, "{found}");
    assert!(found["rules"].as_array().unwrap().iter().all(|rule| rule["recipe"] == "rules" && rule["rule"] != "www"));
    let both = printed(&["diff", "--key", "scheme,surt-wayback", "--json"], urls);
    assert_eq!(both.as_bytes(), ran.stdout);
    let same = ["diff", "--key", "scheme", "--key", "scheme"];
    let three = ["diff", "--key", "scheme,simple,syntax"];
    let small = ["diff", "--key", "scheme,simple", "--memory", "1M"];
    for rejected in [&same[..3], &same, &three, &small, &own[..5], &[&flags[..], &own[5..7]].concat()] {
        assert_eq!(irikey(rejected, urls, Stdio::null()).status.code(), Some(2), "{rejected:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    for (name, expected) in [("a.json", "\"differences\": ["), ("a.txt", "merges what"), ("a.html", "<caption>Merges")]
    {
        let report = directory.path().join(name);
        printed(&["diff", "-q", "--key", "scheme,surt-wayback", "--report", report.to_str().unwrap()], urls);
        let written = fs::read_to_string(&report).unwrap();
        assert!(written.contains(expected) && written.contains("http://www.example.org/A"), "{written}");
    }
}

#[test]
fn columns_of_indexes_and_keys_of_recipes() {
    let cdxj = br#"org,example)/ 20140127171200 {"url": "http://www.Example.co.uk:8080/A?b#c", "status": "301", "redirect": "/x"}
"#;
    let columns = "url_surtkey,url_protocol,url_host_name,url_host_registered_domain,url_port,url_path,url_query,fragment,\
                   fetch_time,fetch_status,fetch_redirect,url_rules";
    let flags = ["canon", "-q", "--output-format", "jsonl", "--columns", columns, "--rules", "+www,+fragment"];
    let ran = irikey(&flags, cdxj, Stdio::piped());
    let row: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let expected = serde_json::json!({
        "url_surtkey": "uk,co,example:8080)/a?b",
        "url_protocol": "http",
        "url_host_name": "www.example.co.uk",
        "url_host_registered_domain": "example.co.uk",
        "url_port": 8080,
        "url_path": "/A",
        "url_query": "b",
        "fragment": "c",
        "fetch_time": "2014-01-27T17:12:00Z",
        "fetch_status": 301,
        "fetch_redirect": "http://www.example.co.uk:8080/x",
        "url_rules": "http://Example.co.uk:8080/A?b",
    });
    assert_eq!(row, expected);
    let rejected = ["canon", "-q", "--output-format", "jsonl", "--key", "rules"];
    assert_eq!(irikey(&rejected, cdxj, Stdio::null()).status.code(), Some(2));
}

/// `canon` reads the rows that `extract` writes for a page; faults and damage set the exit code.
#[test]
fn canon_reads_the_output_of_extract() {
    let page = b"<meta charset=windows-1251><base href=/a/><a href='\xFF.html'><img src='&#xD800;'><a href=x";
    let ran = irikey(&["extract", "-", "--base", "http://example.org/p"], page, Stdio::piped());
    let message = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(4), "{message}");
    assert!(message.contains("-: byte 79: the document ends in the tag <a"), "{message}");
    assert!(
        message.ends_with(
            "3 references (1 faulty) in 1 document (html); 1 wrong character reference; 1 truncated document\n"
        ),
        "{message}"
    );
    let rows = String::from_utf8(ran.stdout.clone()).unwrap();
    let lines: Vec<_> = rows.lines().collect();
    assert_eq!(lines[0], "url,base,charset,element,attribute,record_offset,source,fault,fault_at");
    assert_eq!(lines[1], "/a/,http://example.org/p,windows-1251,base,href,38,-,,");
    assert_eq!(lines[2], "\u{44F}.html,http://example.org/a/,windows-1251,a,href,51,-,,");
    assert_eq!(lines[3], ",,windows-1251,img,src,69,-,character-reference,77");
    let canon = ["canon", "--quiet", "--format", "csv", "--base-column", "base"];
    let ran = irikey(&canon, &ran.stdout, Stdio::piped());
    let uris = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(uris, "http://example.org/a/\nhttp://example.org/a/%D1%8F.html\n\n");
}

#[test]
fn tsv_can_be_written_and_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.tsv");
    let columns = ["--columns", "record,input,uri,fault"];
    let lines = b"http://a/x\ty\nHTTP://b\nx\"y\n";
    printed(&[&["canon", "-q", "-", "-o", path.to_str().unwrap()][..], &columns].concat(), lines);
    let expected = "record\tinput\turi\tfault\n1\t\"http://a/x\ty\"\thttp://a/x%09y\t\n2\tHTTP://b\thttp://b/\t\n\
                    3\t\"x\"\"y\"\t\trelative\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    let again = printed(&["canon", "-q", path.to_str().unwrap(), "--quote", "\"", "--column", "uri"], b"");
    assert_eq!(again, "http://a/x%09y\nhttp://b/\n\n");
    let rows = printed(&["extract", "-q", "--output-format", "tsv"], b"<a href=x>");
    assert_eq!(rows.lines().next().map(|header| header.split('\t').count()), Some(9));
}

#[test]
fn limit_stops_after_the_given_number_of_records() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.json");
    for name in ["urls.txt", "crawl.cdxj", "crawl.warc.gz", "crawl.csv", "crawl.parquet"] {
        let name = sample(name);
        let flags =
            ["canon", "-q", &name, &name, "--output-format", "csv", "--columns", "source,record,uri,fetch_status"];
        let whole = printed(&flags, b"");
        let records = whole.lines().count() - 1;
        for limit in [0, 1, records / 2, records - 1, records, records + 1] {
            let limit_text = limit.to_string();
            let more = ["--limit", &limit_text, "--report", report.to_str().unwrap()];
            for setting in [&["-j", "1"][..], &["-j", "3", "--chunk-size", "100", "--row-group-size", "1K"]] {
                let limited = printed(&[&flags[..], &more, setting].concat(), b"");
                let expected: String = whole.lines().take(1 + limit).map(|line| format!("{line}\n")).collect();
                assert_eq!(limited, expected, "{name}: {limit}");
                let report = read_json(&report);
                assert_eq!(report["records"], limit.min(records), "{name}: {limit}");
            }
        }
    }
    assert_eq!(printed(&["dedup", "-q", "--limit", "2"], b"a:1\na:1\na:2\n"), "a:1\n");
}

/// A long record takes several times its length, so that workers take such records one after the other. Six at a time would
/// take more than 500 MiB here.
#[test]
#[cfg(target_os = "linux")]
fn threads_do_not_multiply_the_memory_of_long_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let mut text = zstd::Encoder::new(File::create(path("urls.zst")).unwrap(), 1).unwrap();
    let line = [&b"http://h/"[..], &vec![b'a'; 40 << 20], b"\n"].concat();
    (0..6).for_each(|_| text.write_all(&line).unwrap());
    text.finish().unwrap();
    let flags = ["--threads", "6", "--max-url", "64M", "--key", "surt-ia", "--report", &path("report.json")];
    printed(&[&["canon", "-q", &path("urls.zst"), "-o", &path("out.parquet")][..], &flags].concat(), b"");
    let report = read_json(directory.path().join("report.json"));
    assert_eq!((&report["threads"], &report["records"], &report["faulty"]), (&6.into(), &6.into(), &0.into()));
    let peak = report["peak_anonymous_bytes"].as_u64().unwrap();
    assert!(peak <= 320 << 20, "{peak}");
}

/// Threads that decompress a gzip file of many members ahead take memory of the job.
#[test]
#[cfg(target_os = "linux")]
fn gzip_files_are_decompressed_within_the_memory_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let line = |number: u64| format!("http://h/{:x}\n", number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).repeat(10);
    // 256 KiB of such members are more than 4 MiB, to which a section is decompressed at most.
    let members = (0..300).map(|member| {
        let lines: String = (0..2000).map(|i| line(member * 2000 + i)).collect();
        gzip(lines.as_bytes())
    });
    fs::write(path("urls.gz"), members.collect::<Vec<_>>().concat()).unwrap();
    for limit in [96, 256] {
        let memory = format!("{limit}M");
        let flags = ["--threads", "16", "--memory", &memory, "--report", &path("report.json")];
        printed(&[&["count", "-q", &path("urls.gz")][..], &flags].concat(), b"");
        let report = read_json(path("report.json"));
        assert_eq!(report["records"], 6_000_000, "{limit}");
        let peak = report["peak_anonymous_bytes"].as_u64().unwrap();
        println!("{limit} MiB: {:.1} MiB", peak as f64 / f64::from(1 << 20));
        assert!(peak <= limit << 20, "{limit}: {peak}");
    }
}

/// A table of any length may begin with blank lines.
#[test]
#[cfg(target_os = "linux")]
fn blank_lines_before_a_table_are_skipped_within_the_memory_limit() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (name, before) in [("blank.csv.gz", ""), ("stated.csv.gz", "sep=,\n"), ("comment.csv.gz", "#c\n")] {
        let text = [before.as_bytes(), &vec![b'\n'; 128 << 20], b"url\nhttp://a/\n"].concat();
        fs::write(path(name), gzip(&text)).unwrap();
        let flags = ["--memory", "64M", "--threads", "2", "--report", &path("report.json")];
        printed(&[&["count", "-q", &path(name)][..], &flags].concat(), b"");
        let report = read_json(path("report.json"));
        // So many blank lines after a comment make it the header.
        assert_eq!(report["records"], if before == "#c\n" { 2 } else { 1 }, "{name}");
        // Anonymous memory is sampled only per row group. The blank lines, read as a whole, would need 256 MiB.
        let peak = report["peak_memory_bytes"].as_u64().unwrap();
        assert!(peak <= 128 << 20, "{name}: {peak}");
    }
}

/// References to a base that many rows of a table share become as long as the base.
#[test]
#[cfg(target_os = "linux")]
fn references_to_a_shared_base_stay_within_the_memory_limit() {
    use arrow::array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let base = StringArray::from_iter_values([format!("http://h/{}/", "x".repeat(240 << 10))]);
    let bases = DictionaryArray::new(Int32Array::from(vec![0; 1000]), std::sync::Arc::new(base));
    let references = StringArray::from_iter_values((0..1000).map(|i| format!("r{i}")));
    let columns: [(&str, ArrayRef); 2] =
        [("url", std::sync::Arc::new(references)), ("base", std::sync::Arc::new(bases))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let create = |name: &str| File::create(path(name)).unwrap();
    let mut parquet = parquet::arrow::ArrowWriter::try_new(create("t.parquet"), batch.schema(), None).unwrap();
    parquet.write(&batch).unwrap();
    parquet.close().unwrap();
    let mut arrow = arrow::ipc::writer::FileWriter::try_new(create("t.arrow"), &batch.schema()).unwrap();
    arrow.write(&batch).unwrap();
    arrow.finish().unwrap();
    for name in ["t.parquet", "t.arrow"] {
        let flags = ["--base-column", "base", "--memory", "64M", "--threads", "2", "--report", &path("report.json")];
        printed(&[&["count", "-q", &path(name)][..], &flags].concat(), b"");
        let report = read_json(path("report.json"));
        assert_eq!((&report["records"], &report["faulty"]), (&1000.into(), &0.into()));
        let peak = report["peak_anonymous_bytes"].as_u64().unwrap();
        assert!(peak <= 64 << 20, "{name}: {peak}");
    }
}

/// How far a source is read after the last record depends on the length of row groups.
#[test]
fn errors_after_the_last_record_of_a_limit_are_not_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    fs::write(path("whole.har"), fs::read(sample("crawl.har")).unwrap()).unwrap();
    let text = fs::read(sample("crawl.har")).unwrap();
    fs::write(path("cut.har"), &text[..text.len() / 2]).unwrap();
    let run = |limit: &str, size: &str| {
        let (whole, cut) = (path("whole.har"), path("cut.har"));
        let flags = ["canon", "-q", &cut, &whole, &cut, "--limit", limit, "--row-group-size", size];
        let ran = irikey(&flags, b"", Stdio::piped());
        (ran.status.code(), ran.stdout.split(|&byte| byte == b'\n').count() - 1)
    };
    let one = run("1000000", "8M").1;
    for size in ["1K", "30K", "8M"] {
        // Some of these limits are at the end of a row group.
        (1..9).for_each(|limit| assert_eq!(run(&limit.to_string(), size), (Some(0), limit), "{size}"));
        // The first source has ended with its error.
        assert_eq!(run(&(one - 1).to_string(), size), (Some(4), one - 1), "{size}");
        assert_eq!(run("1000000", size), (Some(4), one), "{size}");
    }
}

#[test]
fn counts_of_a_limited_job_do_not_depend_on_the_chunk_size() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report.json");
    let input = directory.path().join("crawl.cdxj");
    let line = |host: &str| format!("com,{host})/ 20240101000000 {{\"url\": \"http://{host}.com/\"}}\n");
    fs::write(&input, format!("!a\n{}!b\n!c\n{}{}!d\n{}!e\n", line("w"), line("x"), line("y"), line("z"))).unwrap();
    let table = directory.path().join("urls.csv");
    fs::write(&table, "url\nhttp://a/\nhttp://b/\n").unwrap();
    let count = |name: &str, inputs: &[&Path], limit: &str, more: &[&str]| {
        let inputs = inputs.iter().map(|path| path.to_str().unwrap());
        let flags = ["canon", "-q", "--limit", limit, "--report", report.to_str().unwrap()];
        printed(&flags.into_iter().chain(inputs).chain(more.iter().copied()).collect::<Vec<_>>(), b"");
        read_json(&report)[name].as_u64().unwrap()
    };
    for size in ["10", "60", "100", "1M"] {
        let more = ["--chunk-size", size];
        let counts: Vec<_> =
            ["0", "1", "2", "3", "4", "9"].map(|limit| count("headers", &[&input], limit, &more)).into();
        assert_eq!(counts, [0, 1, 3, 3, 4, 5], "{size}");
        let counts: Vec<_> = ["1", "2", "3", "9"].map(|limit| count("headers", &[&table, &table], limit, &more)).into();
        assert_eq!(counts, [1, 1, 2, 2], "{size}");
        // Input is read past the last record, by the same length for any chunk size.
        assert_eq!(count("input_bytes", &[&input], "1", &more), fs::metadata(&input).unwrap().len(), "{size}");
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    for (shell, part) in [("bash", "complete -F"), ("zsh", "#compdef irikey"), ("fish", "complete -c irikey")] {
        let script = printed(&["completions", shell], b"");
        assert!(script.contains(part) && script.contains("check-sorted"), "{shell}");
    }
    assert!(printed(&["man"], b"").contains(".TH irikey 1"));
    let directory = tempfile::tempdir().unwrap();
    printed(&["man", "--out", directory.path().to_str().unwrap()], b"");
    for page in ["irikey.1", "irikey-canon.1", "irikey-seen-merge.1"] {
        assert!(directory.path().join(page).exists(), "{page}");
    }
    // Each flag is described, also those that -h does not show.
    let canon = fs::read_to_string(directory.path().join("irikey-canon.1")).unwrap();
    let entries: Vec<&str> = canon.split("\n.TP\n").skip(1).collect();
    assert!(entries.len() > 50, "{} flags", entries.len());
    let text_of = |entry: &str| entry.lines().skip(1).take_while(|line| !line.starts_with(".SH")).collect::<String>();
    let bare: Vec<_> = entries.iter().filter(|entry| text_of(entry).trim().is_empty()).collect();
    assert!(bare.is_empty(), "flags without a description: {bare:?}");
}

#[test]
fn extract_has_limits_and_exit_codes() {
    let status = |flags: &[&str], input: &[u8]| {
        irikey(&[&["extract", "-q"], flags].concat(), input, Stdio::piped()).status.code()
    };
    assert_eq!(status(&[], b"<a href=x>"), Some(0));
    assert_eq!(status(&["--max-document", "9"], b"<a href=x>"), Some(4));
    assert_eq!(status(&["--max-document", "10"], b"<a href=x>"), Some(0));
    assert_eq!(status(&["--fail-on-fault"], b"<a href='&#0;'>"), Some(3));
    assert_eq!(status(&["--charset", "klingon"], b""), Some(2));
    assert_eq!(status(&["--base", "x"], b""), Some(2));
    assert_eq!(status(&["-o", "x.cdxj"], b""), Some(2));
    assert_eq!(status(&["no such file"], b""), Some(4));
    let rows = irikey(&["extract", "-q", "--output-format", "jsonl"], b"<a href='\xFF'>", Stdio::piped()).stdout;
    let row: serde_json::Value = serde_json::from_slice(&rows).unwrap();
    assert_eq!(
        (&row["url"]["hex"], &row["base"], &row["record_offset"]),
        (&"ff".into(), &serde_json::Value::Null, &9.into())
    );
}

#[test]
fn conform_reports_failed_cases() {
    let directory = tempfile::tempdir().unwrap();
    let run = |cases: &str| {
        let file = directory.path().join("cases.jsonl");
        fs::write(&file, cases).unwrap();
        let ran = irikey(&["conform", file.to_str().unwrap()], b"", Stdio::piped());
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap())
    };
    let good = "{\"id\": \"a\", \"op\": \"to_uri\", \"input\": \"http://h/\", \"expect\": \"http://h/\"}\n";
    assert_eq!(run(good).0, Some(0));
    let (status, text, _) = run(&good.replace("http://h/\"}", "x\"}"));
    assert_eq!(status, Some(1));
    assert!(text.contains("cases.jsonl:1: a: to_uri") && text.ends_with("0 of 1 cases pass, 1 fails\n"), "{text}");
    let (status, _, message) = run(&format!("{good}nonsense\n"));
    assert_eq!(status, Some(4));
    assert!(message.contains("cases.jsonl:2: not JSON"), "{message}");
}
