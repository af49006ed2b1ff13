//! Tests of the command: preprocessing of records by flags (profiles, repairs, charsets by column, UTF-16), and the faults
//! of records that cannot be preprocessed.

use std::fs;
use std::process::Stdio;

use super::{gzip, irikey, parse_json_lines, printed, read_json, sample};

/// Runs `canon` and returns the columns of every row as JSON.
fn rows(flags: &[&str], columns: &str, input: &[u8]) -> Vec<serde_json::Value> {
    let fixed = ["canon", "-q", "--output-format", "jsonl", "--columns", columns];
    parse_json_lines(&printed(&[&fixed[..], flags].concat(), input))
}

fn lines(rows: &[serde_json::Value]) -> Vec<String> {
    rows.iter().map(serde_json::Value::to_string).collect()
}

#[test]
fn profiles_change_what_is_accepted_and_encoded() {
    let line = "http://h/A\u{30A} [#a#b\nhttp:\\\\H\\%7e?'\n".as_bytes();
    let of = |profile: &str| printed(&["canon", "-q", "--profile", profile], line);
    let rfc = "http://h/A%CC%8A%20[#a#b\nhttp:%5C%5CH%5C~?'\n";
    assert_eq!(of("rfc3987"), rfc);
    assert_eq!(of("duerst-00"), rfc);
    assert_eq!(of("duerst-01"), rfc);
    assert_eq!(of("masinter-07"), rfc.replace("A%CC%8A", "%C3%85"));
    assert_eq!(of("weber-00"), rfc.replace("[#a#b", "%5B#a%23b"));
    assert_eq!(of("whatwg"), "http://h/A%CC%8A%20[#a#b\nhttp://h/%7e?%27\n");
    assert_eq!(of("whatwg"), printed(&["canon", "-q", "--profile", "whatwg", "--rung", "syntax"], line));
}

/// The format of every sample, also if the name of the file says something else, or nothing.
#[test]
fn summaries_and_reports_name_the_format_of_each_input() {
    let formats = [
        ("crawl.access.log", "access-log"),
        ("crawl.arc", "arc"),
        ("crawl.arrow", "arrow"),
        ("crawl.cdx", "cdx"),
        ("crawl.cdx.json", "cdx"),
        ("crawl.cdxj", "cdxj"),
        ("crawl.csv", "csv"),
        ("crawl.har", "har"),
        ("crawl.jsonl", "jsonl"),
        ("crawl.log", "crawl-log"),
        ("crawl.parquet", "parquet"),
        ("crawl.recover", "frontier-journal"),
        ("crawl.warc.zst", "warc"),
        ("crawl.wat.gz", "wat"),
        ("urls.txt.gz", "lines"),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let stderr =
        |arguments: &[&str], input: &[u8]| String::from_utf8(irikey(arguments, input, Stdio::null()).stderr).unwrap();
    let (report, unread) = (path("report.json"), path("cluster.idx"));
    for (name, format) in formats {
        let summary = stderr(&["canon", &sample(name), "-o", &path("out.jsonl"), "--report", &report], b"");
        assert!(summary.contains(&format!("\nread as {format}\n")), "{name}: {summary}");
        let report = read_json(&report);
        assert_eq!((&report["input_formats"][0], &report["formats"][format]), (&format.into(), &1.into()), "{name}");
    }
    let bytes = fs::read(sample("crawl.cdxj")).unwrap();
    assert!(stderr(&["dedup"], &bytes).contains("\nread as cdxj\n"));
    assert!(stderr(&["count", "--format", "tsv", "--column", "1"], &bytes).contains("read as tsv\n"));

    let [cdx, urls] = ["crawl.cdx", "urls.txt"].map(sample);
    for command in [&["count"][..], &["diff", "--key", "scheme,surt-ia"], &["learn", "-o", &path("out.parquet")]] {
        let summary = stderr(&[command, &[&cdx, &cdx, &urls, "--report", &report]].concat(), b"");
        assert!(summary.contains("read as cdx (2 inputs), lines (1)\n"), "{summary}");
        assert_eq!(read_json(&report)["formats"], serde_json::json!({"cdx": 2, "lines": 1}), "{command:?}");
        assert!(!stderr(&[command, &["-q", &cdx]].concat(), b"").contains("read as"));
    }
    // An input that is not read has no format: because of its content, or because of a limit.
    fs::write(&unread, "com,a)/ 20140127171200\tcdx-00000.gz\t0\t275\t1\n").unwrap();
    for flags in [&["--limit", "3", &urls][..], &[&unread]] {
        fs::remove_file(&report).unwrap();
        let job = ["canon", &cdx, "-o", &path("out.txt"), "--report", &report];
        stderr(&[&job[..], flags].concat(), b"");
        assert_eq!(read_json(&report)["input_formats"], serde_json::json!(["cdx", null]), "{flags:?}");
    }
}

#[test]
fn every_kind_of_report_names_damaged_inputs() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let (input, out) = (path("short.cdxj.gz"), path("out.parquet"));
    let packed = gzip(&fs::read(sample("redirects.cdxj")).unwrap());
    fs::write(&input, &packed[..packed.len() - 9]).unwrap();
    let commands: [&[&str]; 5] = [
        &["canon", "-o", &out],
        &["dedup", "-o", &out],
        &["count"],
        &["diff", "--key", "simple,scheme"],
        &["learn", "-o", &out],
    ];
    for command in commands {
        for suffix in ["txt", "html", "json"] {
            let report = path(&format!("report.{suffix}"));
            let ran = irikey(&[command, &["-q", &input, "--report", &report]].concat(), b"", Stdio::null());
            assert_eq!(ran.status.code(), Some(4), "{command:?}: {}", String::from_utf8_lossy(&ran.stderr));
            let report = fs::read_to_string(report).unwrap();
            assert!(
                report.contains("short.cdxj.gz") && report.contains("the gzip data ends early"),
                "{command:?} {suffix}"
            );
        }
    }
}

/// A column that does not exist is a usage error in every format.
#[test]
fn columns_that_do_not_exist_have_one_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out.csv").display().to_string();
    for suffix in ["csv", "jsonl", "parquet", "arrow"] {
        let table = directory.path().join(format!("table.{suffix}")).display().to_string();
        let made = irikey(&["canon", "-q", "-", "-o", &table, "--columns", "uri,key"], b"http://h/\n", Stdio::null());
        assert_eq!(made.status.code(), Some(0));
        for column in ["nope", "3"] {
            let ran = irikey(&["canon", "-q", &table, "--column", column, "-o", &out], b"", Stdio::null());
            let message = String::from_utf8(ran.stderr).unwrap();
            let is_told = (message.contains("there is no column") || message.contains("JSON lines"))
                && message.contains("canon --help");
            assert!(ran.status.code() == Some(2) && is_told, "{suffix} {column}: {message}");
            assert!(!fs::exists(&out).unwrap(), "{suffix}");
        }
    }
}

/// Columns are chosen in tables; of other formats, the message names the format instead of columns that do not exist.
#[test]
fn columns_that_are_chosen_of_other_formats_are_refused() {
    let (jsonl, cdxj) = (sample("crawl.jsonl"), sample("crawl.cdxj"));
    let directory = tempfile::tempdir().unwrap();
    let unknown = directory.path().join("unknown").display().to_string();
    fs::write(&unknown, "{\"a\": \"http://h/\"}\n{\"a\": \"http://h/,\"}\n").unwrap();
    let cases = [
        (&unknown, "1", "column number 1: JSON lines have members, not columns; choose one by its name"),
        (
            &unknown,
            "x",
            "none of the first ones has a text in a member \"x\"; the members of the first one are a; choose one",
        ),
        (
            &jsonl,
            "x",
            "the members of the first one are timestamp, url, status, digest, charset; choose one with --column",
        ),
        (&jsonl, "1", "column number 1: JSON lines have members, not columns; choose one by its name"),
        (&cdxj, "url", "there is no column \"url\", because the records look like cdxj; leave out the flags"),
        (&sample("crawl.csv"), "x", "the columns are 1 \"number\", 2 \"url\""),
    ];
    for (input, column, expected) in cases {
        let ran = irikey(&["canon", "-q", input, "--column", column], b"", Stdio::piped());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains(expected), "{message}");
    }
    let table = irikey(&["canon", "-q", &cdxj, "--column", "x", "--format", "csv"], b"", Stdio::piped());
    assert!(String::from_utf8(table.stderr).unwrap().contains("the columns are 1"));
}

/// Only records of archives have types. The formats of inputs are known at the end.
#[test]
fn types_of_records_without_an_archive_are_noted() {
    let directory = tempfile::tempdir().unwrap();
    let learned = directory.path().join("learned.parquet").display().to_string();
    let [list, wat, warc, arc, cdxj] =
        ["urls.txt", "crawl.wat.gz", "crawl.warc.gz", "crawl.arc", "redirects.cdxj"].map(sample);
    let noted = |command: &[&str], inputs: &[&String]| {
        let inputs: Vec<_> = inputs.iter().map(|input| input.as_str()).collect();
        let ran = irikey(&[command, &["--record-types", "response"], &inputs[..]].concat(), b"", Stdio::piped());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(0), "{command:?} {inputs:?}: {message}");
        message.contains("--record-types had no effect, because no input is WARC or ARC")
    };
    for command in [&["canon"][..], &["dedup"], &["count"], &["diff", "--key", "simple,scheme"]] {
        assert!(noted(command, &[&list]) && !noted(command, &[&list, &warc]), "{command:?}");
    }
    assert!(noted(&["learn", "-o", &learned], &[&cdxj]));
    assert!(noted(&["canon"], &[&list, &wat]) && !noted(&["canon"], &[&arc]));
    assert!(!noted(&["canon", "-q"], &[&list]));
    // Without a record, nothing was read in a wrong way.
    assert!(!noted(&["canon"], &[&"/dev/null".to_string()]));
}

/// A table on standard input has no name by which it could be recognized. With the flags that the summary names, it is read.
#[test]
fn advice_on_tables_on_standard_input_works() {
    let tables = [
        "id,url,title\n1,@,x\n",
        "url,id\n@,1\nhttp://b/,2\n",
        "id\turl\n1\t@\n",
        "id;url\n1;@\n",
        "\"id\",\"url\"\n\"1\",\"@\"\n",
        "id,address\n1,@\n",
        "1,@\n2,http://b/\n",
        "id\taddress\n1\t@\n",
        "id;address\n1;@\n",
        "1|x|@\n",
        "@\tnutch.score=10\n",
    ];
    for table in tables {
        let table = table.replace('@', "http://a/x");
        let ran = irikey(&["canon"], table.as_bytes(), Stdio::null());
        let summary = String::from_utf8(ran.stderr).unwrap();
        let advice = summary.lines().find(|line| line.starts_with("irikey: -: ")).unwrap_or_default();
        let flags = advice.split_once("; use ").expect(&table).1.replace('\'', "");
        let rows = printed(&[&["canon", "-q"], &flags.split(' ').collect::<Vec<_>>()[..]].concat(), table.as_bytes());
        assert_eq!(rows.lines().next(), Some("http://a/x"), "{table}: {advice}");
    }
}

#[test]
fn formats_that_are_recognized_by_content_have_no_name() {
    let out = irikey(&["canon", "--format", "parquet"], b"", Stdio::piped());
    let message = String::from_utf8(out.stderr).unwrap();
    assert!(
        out.status.code() == Some(2) && message.contains("--format parquet: these files are recognized by content")
    );
    let help = printed(&["help", "canon"], b"");
    assert!(help.contains("- frontier-journal:") && !help.contains("- wacz:"), "{help}");
}

#[test]
fn strict_applies_the_grammar_of_the_profile() {
    let line = "http://h/a b\nhttp://é/\nhttp://h/?\u{E000}\n".as_bytes();
    let of = |profile: &str| printed(&["canon", "-q", "--strict", "--profile", profile], line);
    assert_eq!(of("rfc3987"), "\nhttp://xn--9ca/\nhttp://h/?%EE%80%80\n");
    assert_eq!(of("duerst-01"), "http://h/a%20b\nhttp://xn--9ca/\n\n");
    assert_eq!(of("masinter-07"), "http://h/a%20b\n\n\n");
    let flagged = rows(&["--profile", "duerst-01"], "uri,flags", "http://h/?\u{E000}\n".as_bytes());
    assert_eq!(lines(&flagged), [r#"{"uri":"http://h/?%EE%80%80","flags":["not-ucschar"]}"#]);
}

#[test]
fn whatwg_gives_the_result_of_browsers_above_the_simple_rung() {
    let text = " http://0x7F.1:80/a/../b\\c\nhttp://127.0.0.1/b/c\nno\nhttp://h/\u{FF}\n".as_bytes();
    let text = [text, b"http://h/\xFF\n"].concat();
    let keys = rows(&["--profile", "whatwg"], "uri,fault,key,key_simple,key_syntax,key_scheme", &text);
    assert_eq!(keys[0]["uri"], "http://127.0.0.1/b/c");
    assert_eq!((&keys[0]["key"], &keys[0]["key_syntax"]), (&keys[1]["key"], &keys[0]["key_scheme"]));
    assert!(keys[0]["key_simple"] != keys[1]["key_simple"]);
    assert_eq!((&keys[2]["fault"], &keys[4]["fault"]), (&"relative".into(), &"not-utf8".into()));
    let based = ["canon", "-q", "--profile", "whatwg", "--base", "http://h/a/b", "--drop-fragment"];
    assert_eq!(printed(&based, b"http:c#f\n\\\\x\\y\n\n"), "http://h/a/c\nhttp://x/y\nhttp://h/a/b\n");
    let query = ["canon", "-q", "--profile", "whatwg", "--query-charset", "latin1"];
    assert_eq!(printed(&query, "http://h/?éя\n".as_bytes()), "http://h/?%E9%26%231103%3B\n");
    // No query is in UTF-8 because the charset lacks a character: it applies to http only, where browsers escape.
    let flags = ["--profile", "whatwg", "--query-charset", "iso-8859-2"];
    let flags = rows(&flags, "flags", "a://h/?‾\nws://h/?‾\nhttp://h/?‾\n".as_bytes());
    assert_eq!(lines(&flags).concat(), r#"{"flags":[]}"#.repeat(3));
    let usage = |flags: &[&str]| irikey(&[&["canon"], flags].concat(), b"", Stdio::null()).status.code();
    assert_eq!(usage(&["--profile", "whatwg", "--strict"]), Some(2));
    assert_eq!(usage(&["--profile", "klingon"]), Some(2));
}

#[test]
fn repairs_are_optional_and_flagged() {
    let repaired = |flags: &[&str], line: &str| lines(&rows(flags, "uri,flags", line.as_bytes())).concat();
    let plain = r#"{"uri":"http://h/a","flags":[]}"#;
    assert_eq!(repaired(&["--trim"], "\t http://h/a \n"), r#"{"uri":"http://h/a","flags":["trimmed"]}"#);
    assert_eq!(repaired(&["--trim"], "http://h/a\n"), plain);
    let removed = repaired(&["--inner-spaces", "remove"], "http://h/ a\n");
    assert_eq!(removed, r#"{"uri":"http://h/a","flags":["inner-space"]}"#);
    let encoded = repaired(&["--inner-spaces", "encode", "--strict"], "http://h/ a\n");
    assert_eq!(encoded, r#"{"uri":"http://h/%20a","flags":["inner-space"]}"#);
    let html = repaired(&["--character-references", "html"], "http://h/?a&amp;b&eacute;&amp;amp;\n");
    assert_eq!(html, r#"{"uri":"http://h/?a&b%C3%A9&amp;","flags":["character-reference"]}"#);
    let xml = repaired(&["--character-references", "xml"], "http://h/?a&amp;b&eacute;\n");
    assert_eq!(xml, r#"{"uri":"http://h/?a&b&eacute;","flags":["character-reference"]}"#);
    let slashes = repaired(&["--backslashes", "slash"], "http:\\\\h\\a\n");
    assert_eq!(slashes, r#"{"uri":"http://h/a","flags":["backslash"]}"#);
    let weber = repaired(&["--profile", "weber-00"], " http://h/a\n");
    assert_eq!(weber, r#"{"uri":"http://h/a","flags":["trimmed"]}"#);
}

#[test]
fn each_reference_of_a_field_is_a_record() {
    let flags = ["--inner-spaces", "split", "--character-references", "xml", "--base", "http://h/"];
    let split = rows(&flags, "record,record_offset,input,uri,flags,fault", b"a  /b&#32;c\n\nhttp://h/d\n/e /%%//f\n");
    let found: Vec<_> =
        split.iter().map(|row| format!("{} {} {}", row["record"], row["record_offset"], row["uri"])).collect();
    let expected = [
        r#"1 0 "http://h/a""#,
        r#"2 3 "http://h/b""#,
        r#"3 10 "http://h/c""#,
        r#"4 12 "http://h/""#,
        r#"5 13 "http://h/d""#,
        r#"6 24 "http://h/e""#,
        r#"7 27 "http://h/%%//f""#,
    ];
    assert_eq!(found, expected);
    assert_eq!((&split[0]["flags"][0], &split[3]["flags"][0]), (&"split".into(), &serde_json::Value::Null));
    assert_eq!(split[2]["input"], "c");
    let table = "page,refs\nhttp://p/,a b\nhttp://q/,\"c\n\"\n";
    let columns = ["--format", "csv", "--column", "refs", "--base-column", "page", "--trim", "--inner-spaces", "split"];
    let split = lines(&rows(&columns, "record,record_offset,uri", table.as_bytes()));
    let expected = [
        r#"{"record":1,"record_offset":10,"uri":"http://p/a"}"#,
        r#"{"record":2,"record_offset":10,"uri":"http://p/b"}"#,
        r#"{"record":3,"record_offset":24,"uri":"http://q/c"}"#,
    ];
    assert_eq!(split, expected);
}

#[test]
fn columns_name_the_charsets_of_records() {
    let table =
        b"url,cs,doc\nhttp://h/\xE9?\xE9,latin1,\nhttp://h/\xCE\xB1?\xCE\xB1, UTF-8 ,iso-8859-7\nhttp://h/,klingon,\n\
        http://h/x,utf-16,\nhttp://h/\xE9,shift_jis,\nhttp://h/\xC3\xA9,,\nhttp://h/,,hz-gb-2312\n";
    let flags = ["--format", "csv", "--charset-column", "cs", "--query-charset-column", "doc"];
    let expected = [
        r#"{"uri":"http://h/%C3%A9?%C3%A9","fault":null,"fault_at":null}"#,
        r#"{"uri":"http://h/%CE%B1?%E1","fault":null,"fault_at":null}"#,
        r#"{"uri":null,"fault":"unknown-charset","fault_at":0}"#,
        r#"{"uri":null,"fault":"undecodable","fault_at":0}"#,
        r#"{"uri":null,"fault":"undecodable","fault_at":9}"#,
        r#"{"uri":"http://h/%C3%A9","fault":null,"fault_at":null}"#,
        r#"{"uri":null,"fault":"unknown-charset","fault_at":0}"#,
    ];
    assert_eq!(lines(&rows(&flags, "uri,fault,fault_at", table)), expected);
    let fallback = [&flags[..], &["--charset", "latin1"]].concat();
    assert_eq!(rows(&fallback, "uri", table)[5]["uri"], "http://h/%C3%83%C2%A9");
    // The query of a browser depends on its charset, and so does each key.
    let table = b"url,doc\nhttp://h/?\xC3\xA9,latin1\nhttp://h/?\xC3\xA9,utf-8\n";
    let flags = ["--query-charset-column", "doc", "--profile", "whatwg", "--key", "simple"];
    let of_charsets = rows(&flags, "uri,key_simple", table);
    assert_eq!(of_charsets[0]["uri"], "http://h/?%E9");
    assert_ne!(of_charsets[0]["key_simple"], of_charsets[1]["key_simple"]);
    for format in ["lines", "jsonl"] {
        let refused = irikey(&["canon", "--format", format, "--charset-column", "cs"], b"", Stdio::piped());
        assert_eq!(refused.status.code(), Some(2), "{format}");
    }
}

#[test]
fn json_documents_in_utf16_have_positions_and_are_decoded_once() {
    let text = utf16("\u{FEFF}[[\"original\"],[\"http://h/ü\"]]", false);
    for flags in [&["-"][..], &["-", "--charset", "utf-16le"]] {
        assert_eq!(
            lines(&rows(flags, "record_offset,uri", &text)),
            [r#"{"record_offset":30,"uri":"http://h/%C3%BC"}"#]
        );
    }
}

/// JSON is UTF-8 (RFC 8259 section 8.1), also where characters are escaped.
#[test]
fn a_charset_does_not_apply_to_json() {
    let texts = [
        "{\"url\":\"http://h/é\"}\n",
        "{\"url\":\"http://h/\\u00e9\"}\n",
        "h)/ 20260101000000 {\"url\":\"http://h/é\"}\n",
        "[[\"original\"],[\"http://h/é\"]]",
        "{\"log\":{\"entries\":[{\"request\":{\"url\":\"http://h/é\"}}]}}",
    ];
    for text in texts {
        let rows = rows(&["--charset", "latin1"], "uri", text.as_bytes());
        assert_eq!(lines(&rows), [r#"{"uri":"http://h/%C3%A9"}"#], "{text}");
    }
    assert_eq!(rows(&["--charset", "latin1"], "uri", b"http://h/\xE9\n")[0]["uri"], "http://h/%C3%A9");
    let json = "{\"Envelope\":{\"Payload-Metadata\":{\"HTTP-Response-Metadata\":{\"HTML-Metadata\":{\"Links\":[\
                {\"path\":\"A@/href\",\"url\":\"http://h/é\"}]}}}}}";
    let head = "WARC/1.0\r\nWARC-Type: metadata\r\nWARC-Target-URI: http://p/\r\nContent-Type: application/json";
    let record = format!("{head}\r\nContent-Length: {}\r\n\r\n{json}\r\n\r\n", json.len());
    let links = rows(&["--charset", "latin1", "--format", "wat"], "uri,page", record.as_bytes());
    assert_eq!(lines(&links), [r#"{"uri":"http://h/%C3%A9","page":"http://p/"}"#]);
}

/// Records that are not of a table of text have no charsets. The flags are not ignored.
#[test]
fn columns_of_charsets_are_refused_for_other_formats() {
    let directory = tempfile::tempdir().unwrap();
    let parquet = directory.path().join("a.parquet");
    let parquet = parquet.to_str().unwrap();
    let made = irikey(&["canon", "-", "-q", "-o", parquet], b"http://h/\n", Stdio::piped());
    assert!(made.status.success());
    for flag in ["--charset-column", "--query-charset-column"] {
        for (path, format) in [("-", "jsonl"), (parquet, "parquet")] {
            let refused =
                irikey(&["canon", path, flag, "source"], br#"{"url":"http://h/","source":"x"}"#, Stdio::piped());
            let message = String::from_utf8(refused.stderr).unwrap();
            assert!(message.contains(&format!("records of the format {format} do not have")), "{message}");
            assert_eq!(refused.status.code(), Some(2), "{flag} {format}");
        }
    }
}

fn utf16(text: &str, is_big: bool) -> Vec<u8> {
    text.encode_utf16().flat_map(|unit| if is_big { unit.to_be_bytes() } else { unit.to_le_bytes() }).collect()
}

#[test]
fn utf16_is_detected_by_its_byte_order_mark() {
    let text = "http://h/é\r\n\nhttp://H/\u{1F600}\nhttp://h/a\n";
    let expected = [
        r#"{"record_offset":2,"uri":"http://h/%C3%A9"}"#,
        r#"{"record_offset":26,"uri":null}"#,
        r#"{"record_offset":28,"uri":"http://h/%F0%9F%98%80"}"#,
        r#"{"record_offset":52,"uri":"http://h/a"}"#,
    ];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("urls.txt");
    for is_big in [false, true] {
        let bytes = utf16(&format!("\u{FEFF}{text}"), is_big);
        assert_eq!(lines(&rows(&["-"], "record_offset,uri", &bytes)), expected);
        // Files of this length are mapped, and split into many row groups.
        let long = [bytes, utf16(text, is_big).repeat(3000)].concat();
        fs::write(&path, &long).unwrap();
        let path = path.to_str().unwrap();
        let first = rows(&["--threads", "1", path], "record,record_offset,uri", b"");
        assert_eq!(first.len(), 4 * 3001);
        assert_eq!(first[11_999]["record_offset"], 2 + 2 * 36 * 2999 + 50);
        let parts = ["--row-group-size", "3000", "--chunk-size", "100"];
        assert!(rows(&[&parts[..], &[path]].concat(), "record,record_offset,uri", b"") == first);
        assert!(rows(&[&parts[..], &["--no-mmap", path]].concat(), "record,record_offset,uri", b"") == first);
    }
    let label = |label: &str| printed(&["canon", "-q", "--charset", label], &utf16("http://h/é\n", true));
    assert_eq!(label("utf-16be"), "http://h/%C3%A9\n");
    let table = utf16("\u{FEFF}id,url\n1,\"http://h/\u{FC}\"\n", false);
    let row = rows(&["--format", "csv"], "record_offset,uri", &table);
    assert_eq!(lines(&row), [r#"{"record_offset":16,"uri":"http://h/%C3%BC"}"#]);
}

#[test]
fn wrong_byte_order_marks_and_truncated_characters_are_reported() {
    let run = |flags: &[&str], input: &[u8]| {
        let ran = irikey(&[&["canon", "-q"], flags].concat(), input, Stdio::piped());
        (ran.status.code(), String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap())
    };
    for (label, text) in [
        ("utf-16be", utf16("\u{FEFF}http://h/\n", false)),
        ("utf-8", utf16("\u{FEFF}http://h/\n", false)),
        ("windows-1252", b"\xEF\xBB\xBFhttp://h/\n".to_vec()),
        ("utf-16le", b"\xEF\xBB\xBFhttp://h/\n".to_vec()),
    ] {
        let (status, text, message) = run(&["--charset", label], &text);
        assert_eq!((status, text.as_str()), (Some(4), ""), "{label}");
        assert!(message.contains("-: its byte order mark is not that of "), "{message}");
    }
    for cut in [1, 2] {
        let whole = utf16("\u{FEFF}http://h/a\nhttp://h/\u{1F600}", true);
        let (status, text, message) = run(&[], &whole[..whole.len() - cut]);
        assert_eq!((status, text.as_str()), (Some(4), "http://h/a\n"), "{cut}");
        assert!(message.contains("after 1 record,") && message.contains("ends within a character"), "{message}");
    }
}

#[test]
fn lone_surrogates_are_faults_of_their_records() {
    let mut bytes = utf16("\u{FEFF}http://h/a\nhttp://h/x", false);
    bytes.extend([0x00, 0xD8]);
    bytes.extend(utf16("y\nhttp://h/b\n", false));
    let expected = [
        r#"{"uri":"http://h/a","fault":null,"fault_at":null}"#,
        r#"{"uri":null,"fault":"undecodable","fault_at":10}"#,
        r#"{"uri":"http://h/b","fault":null,"fault_at":null}"#,
    ];
    assert_eq!(lines(&rows(&["-"], "uri,fault,fault_at", &bytes)), expected);
}

#[test]
fn truncated_characters_and_nested_references_are_handled() {
    for (label, line, at) in [
        ("shift_jis", &b"http://h/\x83\n"[..], 9),
        ("gb18030", b"http://h/a\x81\x30\x81\n", 10),
        ("utf-8", b"http://h/\xE2\x82\n", 9),
    ] {
        let row = rows(&["--charset", label], "uri,fault,fault_at", line);
        let expected = format!(r#"{{"uri":null,"fault":"undecodable","fault_at":{at}}}"#);
        assert_eq!(lines(&row), [expected], "{label}");
    }
    let nested = b"http://h/?&amp;amp;lt;&#38;amp;\nhttp://h/&#xD800;\nhttp://h/&#0;\nhttp://h/&#99999999999;\n";
    let row = rows(&["--character-references", "html"], "uri,fault,fault_at", nested);
    assert_eq!(row[0]["uri"], "http://h/?&amp;lt;&amp;");
    for row in &row[1..] {
        assert_eq!((&row["fault"], &row["fault_at"]), (&"character".into(), &9.into()));
    }
}

#[test]
fn a_field_of_ten_megabytes_is_one_record() {
    let long = [&b" http://h/"[..], &b"&amp;&#xE9; ".repeat(900_000), b"\nhttp://h/b\n"].concat();
    let flags = ["--trim", "--inner-spaces", "remove", "--character-references", "html"];
    assert_eq!(rows(&flags, "uri,fault", &long)[0]["fault"], "too-long");
    let row = rows(&[&flags[..], &["--max-url", "16M"]].concat(), "uri,flags", &long);
    assert_eq!(row[0]["uri"].as_str().map(str::len), Some("http://h/".len() + 900_000 * "&%C3%A9".len()));
    assert_eq!(row[1]["uri"], "http://h/b");
    let split = printed(&["canon", "-q", "--inner-spaces", "split", "--base", "http://h/"], &long);
    assert_eq!(split.lines().count(), 900_001);
    assert!(split.lines().take(900_000).all(|line| line.ends_with("/&amp;&#xE9;")));
}

#[test]
fn a_scheme_is_assumed_for_a_host_and_a_port() {
    let text = b"localhost:8080/a\nExample.org:8080\nexample.org:x\ntel.a:1a\nhttp://h/\n";
    let expected = ["https://localhost:8080/a", "https://example.org:8080/", "example.org:x", "tel.a:1a", "http://h/"];
    assert_eq!(
        lines(&rows(&["--assume-scheme", "https"], "uri", text)),
        expected.map(|uri| format!("{{\"uri\":\"{uri}\"}}"))
    );
    // Escapes of digits are decoded, and the result would be read as a host and a port.
    let escaped = b"localhost:%38080\na.b:8%30?x\nlocalhost:%2F80\nlocalhost:%38%3080801\n";
    let faults = lines(&rows(&["--assume-scheme", "https"], "uri,fault", escaped));
    let expected = [
        r#"{"uri":null,"fault":"port"}"#,
        r#"{"uri":null,"fault":"port"}"#,
        r#"{"uri":"localhost:%2F80","fault":null}"#,
        r#"{"uri":"localhost:8080801","fault":null}"#,
    ];
    assert_eq!(faults, expected);
    let href = ["--assume-scheme", "https", "--profile", "whatwg"];
    assert_eq!(lines(&rows(&href, "uri", b"localhost:%38080\n")), [r#"{"uri":"localhost:%38080"}"#]);
    let without = lines(&rows(&[], "uri", b"localhost:8080/a\n"));
    assert_eq!(without, ["{\"uri\":\"localhost:8080/a\"}"]);
}

#[test]
fn sources_of_foreign_formats_are_refused_with_advice() {
    let directory = tempfile::tempdir().unwrap();
    let good = directory.path().join("good.txt");
    std::fs::write(&good, "http://a/\n").unwrap();
    let utf16: Vec<u8> = "http://b/\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: [(&[u8], &str); 6] = [
        (b"7z\xbc\xaf\x27\x1c\0\x04", "7z x"),
        (b"[\n  {\"url\": \"http://b/\"}\n]\n", "jq -c '.[]'"),
        (b"{\n  \"url\": \"http://b/\"\n}\n", "jq -c ."),
        (b"http://b/\rhttp://c/\r", "tr '"),
        (&utf16, "--charset utf-16le"),
        (b"<!DOCTYPE html>\n<a href=x>", "irikey extract"),
    ];
    for (bytes, advice) in cases {
        let bad = directory.path().join("bad");
        std::fs::write(&bad, bytes).unwrap();
        let out = irikey(
            &["canon", bad.to_str().unwrap(), good.to_str().unwrap(), "--output-format", "text"],
            b"",
            Stdio::piped(),
        );
        let message = String::from_utf8_lossy(&out.stderr);
        assert_eq!((out.status.code(), &out.stdout[..]), (Some(4), &b"http://a/\n"[..]), "{message}");
        assert!(message.contains(advice), "{message}");
    }
}

#[test]
fn a_list_in_a_list_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("x.lst");
    fs::write(&list, "@y.lst\n").unwrap();
    let ran = irikey(&["count", &format!("@{}", list.display())], b"", Stdio::piped());
    let message = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.code() == Some(4) && message.contains("a list cannot name another list"), "{message}");
}

#[test]
fn the_summary_says_what_to_try() {
    let cases: [(&[u8], &str); 4] = [
        (b"http://a/\tnutch.score=1\nhttp://b/\tnutch.score=2\n", "--format tsv --no-header --column 1"),
        (b"http://a/ http://b/\n", "--inner-spaces split"),
        (b"# comment\n", "grep -v"),
        (b"{\"page\": 1}\n", "--format jsonl"),
    ];
    for (text, advice) in cases {
        let out = irikey(&["canon", "-", "-o", "/dev/null"], text, Stdio::piped());
        let message = String::from_utf8_lossy(&out.stderr);
        assert!(message.contains(advice), "{message}");
    }
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("links.csv");
    std::fs::write(&table, "page,href\nhttp://a/,../b\n").unwrap();
    let out = irikey(&["canon", table.to_str().unwrap(), "-o", "/dev/null"], b"", Stdio::piped());
    assert!(String::from_utf8_lossy(&out.stderr).contains("--base-column page"));
    let out = irikey(&["canon", "-", "-o", "/dev/null"], b"http://a/\n../b c\nhttp://d/\n", Stdio::piped());
    assert!(!String::from_utf8_lossy(&out.stderr).contains("spaces split"));
}

#[test]
fn advice_on_spaces_ends_when_it_is_followed() {
    for (flags, is_given) in
        [(&[][..], true), (&["--inner-spaces", "split"], false), (&["--inner-spaces", "encode"], false)]
    {
        for command in [&["canon", "-o", "/dev/null"][..], &["count"], &["dedup", "-o", "/dev/null"]] {
            let ran = irikey(&[command, flags].concat(), b"x y\nz y\n", Stdio::piped());
            let message = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(message.contains("--inner-spaces split"), is_given, "{command:?} {flags:?}: {message}");
        }
    }
}

#[test]
fn spoofing_flags_are_counted_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.json");
    let report = |columns: &str| {
        let flags = ["canon", "--report", path.to_str().unwrap(), "--output-format", "jsonl", "--columns", columns];
        let ran = irikey(&flags, "http://h/%2F\nhttp://h/%2f\nhttp://h/\u{5D0}a\n".as_bytes(), Stdio::piped());
        let json = read_json(&path);
        (json, String::from_utf8(ran.stderr).unwrap())
    };
    let (json, summary) = report("uri,spoofing_flags");
    assert_eq!(
        (&json["spoofing_flags"]["encoded-slash"], &json["spoofing_flags"]["bidi-structure"]),
        (&2.into(), &1.into())
    );
    assert!(summary.contains("spoofing flags\n") && summary.contains("encoded-slash"), "{summary}");
    let (json, summary) = report("uri");
    assert!(json["spoofing_flags"].is_null() && !summary.contains("spoofing flags"));
}

#[test]
fn bidi_results_are_columns() {
    let text = "http://h/a/\u{5D0}\u{5D1}1c\nhttp://\u{5D0}\u{5D1}.example/\nhttp://h/a\nno\n";
    let expected = [
        r#"{"iri_visual":"http://h/a/1באc","bidi":"bidi-mixed in path segment at byte 16; bidi-edge in path segment at byte 16"}"#,
        r#"{"iri_visual":"http://בא.example/","bidi":null}"#,
        r#"{"iri_visual":null,"bidi":null}"#,
        r#"{"iri_visual":null,"bidi":null}"#,
    ];
    assert_eq!(lines(&rows(&["-"], "iri_visual,bidi", text.as_bytes())), expected);
}

/// The draft displays the labels of a host from left to right, and allows no digits in a right-to-left component.
#[test]
fn bidi_results_follow_the_rules_of_the_profile() {
    let text = "http://ab.\u{5D0}\u{5D1}.\u{5D2}\u{5D3}/\u{5D0}1\u{5D1}";
    for (profile, visual, has_problems) in [
        ("rfc3987", "http://ab.\u{5D1}1\u{5D0}/\u{5D3}\u{5D2}.\u{5D1}\u{5D0}", false),
        ("duerst-01", "http://ab.\u{5D1}\u{5D0}.\u{5D3}\u{5D2}/\u{5D1}1\u{5D0}", true),
    ] {
        let row = rows(&["-", "--profile", profile], "iri_visual,bidi", text.as_bytes());
        let row = &row[0];
        assert_eq!((row["iri_visual"].as_str(), row["bidi"].is_null()), (Some(visual), !has_problems), "{profile}");
        let flags = ["explain", "--json", "--profile", profile, text];
        let explained: serde_json::Value = serde_json::from_slice(&irikey(&flags, b"", Stdio::piped()).stdout).unwrap();
        let problems = explained["bidi"].as_array().map(|problems| !problems.is_empty());
        assert_eq!((explained["visual"].as_str(), problems), (Some(visual), Some(has_problems)), "{profile}");
    }
}

/// The first object is longer than what is read to detect the format, or than what is read at first.
#[test]
fn long_objects_are_recognized() {
    for (before, len) in [("", 2 << 20), ("\n", 5 << 10), ("!comment\n\n ", 70 << 10)] {
        let long = format!("{before}{{\"html\": \"{}\", \"url\": \"HTTP://a\"}}\n", "x".repeat(len));
        let lines = format!("{long}{{\"url\": \"http://b/\"}}\n");
        assert_eq!(
            printed(&["canon", "-q"], lines.as_bytes()).trim_start(),
            "http://a/\nhttp://b/\n",
            "{before:?} {len}"
        );
    }
}

/// In a table that irikey wrote, the text of a row without a URI is in another column.
#[test]
fn texts_of_rows_without_a_uri_are_read_from_tables() {
    let folder = tempfile::tempdir().unwrap();
    // TSV has quotes around texts with tabs.
    let lines = |i| format!("HTTP://a/{i}\nhttp://b/{i}\t\"\nhttp://h:{i}x/\t\n../{i}\n\"../{i}\t\n");
    let lines: String = (0..3000).map(lines).collect();
    let of_lines = rows(&[], "uri,key,input", lines.as_bytes());
    for name in ["x.parquet", "x.arrow", "x.arrows", "x.csv", "x.tsv", "x.jsonl"] {
        let path = folder.path().join(name).display().to_string();
        printed(&["canon", "-q", "-o", &path, "--row-group-size", "64K"], lines.as_bytes());
        for flags in [&["--threads", "1"][..], &["--threads", "2"], &["--column", "uri"]] {
            let again = rows(&[&[&*path], flags].concat(), "uri,key,input,fault", b"");
            assert_eq!(again.len(), of_lines.len());
            for (first, second) in of_lines.iter().zip(&again) {
                assert_eq!((&first["uri"], &first["key"]), (&second["uri"], &second["key"]), "{name}");
                let (text, fault) = match first["uri"].is_null() {
                    true => (&first["input"], &"no-url".into()),
                    false => (&serde_json::Value::Null, &serde_json::Value::Null),
                };
                assert_eq!((&second["input"], &second["fault"]), (text, fault), "{name}");
            }
        }
    }
}

/// Rows in JSON are recognized, although none has a URI, and bytes that are not UTF-8 stay as they are.
#[test]
fn texts_of_faulty_rows_are_read_from_json_without_a_name() {
    let faulty = (0..20).map(|i| format!("http://h:{i}x/\n").into_bytes()).chain([b"http://h:\xFF/\n".to_vec()]);
    let of_lines = rows(&[], "uri,key,input", &faulty.flatten().collect::<Vec<u8>>());
    let json: String = of_lines.iter().map(|row| format!("{row}\n")).collect();
    let again = rows(&[], "uri,key,input", json.as_bytes());
    assert_eq!(again, of_lines);
    assert!(json.contains(r#"{"hex":"#), "{json}");
}

#[test]
fn lists_of_hosts_with_ports_have_advice() {
    let hosts = b"example.org:80/p\nexample.com:8080\nlocalhost:3000/x\n";
    let messages = |flags: &[&str]| {
        let ran = irikey(&[&["canon", "-o", "/dev/null"], flags].concat(), hosts, Stdio::null());
        String::from_utf8(ran.stderr).unwrap()
    };
    assert!(messages(&[]).contains("use --assume-scheme https"));
    assert!(!messages(&["--assume-scheme", "https"]).contains("--assume-scheme"));
}

/// The rows of a table that irikey wrote have no URL in another column.
#[test]
fn advice_on_own_tables_names_no_other_column() {
    let folder = tempfile::tempdir().unwrap();
    let lines = "http://h:x/\n../a\nhttp://b/\n".repeat(9);
    for name in ["x.parquet", "x.arrow", "x.csv", "x.jsonl"] {
        let path = folder.path().join(name).display().to_string();
        printed(&["canon", "-q", "-o", &path], lines.as_bytes());
        let message = String::from_utf8(irikey(&["canon", &path], b"", Stdio::null()).stderr).unwrap();
        assert!(message.contains("no-url") && !message.contains("--column"), "{message}");
        assert!(message.contains(&format!("{name}: rows without a uri")), "{message}");
    }
    let message = String::from_utf8(irikey(&["canon"], b"{\"url\":1}\n", Stdio::null()).stderr).unwrap();
    assert!(!message.contains("rows without a uri"), "{message}");
}

/// Both sources are opened for the row group in which the limit is reached.
#[test]
fn no_advice_names_a_source_after_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["first.txt", "second.txt"].map(|name| folder.path().join(name).display().to_string());
    paths.iter().for_each(|path| fs::write(path, "x y\nz y\n").unwrap());
    for (limit, advised) in [("2", [true, false]), ("3", [true, true])] {
        let ran = irikey(&["canon", "-o", "/dev/null", "--limit", limit, &paths[0], &paths[1]], b"", Stdio::piped());
        let message = String::from_utf8(ran.stderr).unwrap();
        let is_advised = |path: &String| message.contains(&format!("{path}: the records contain spaces"));
        assert_eq!(paths.each_ref().map(is_advised), advised, "{limit}: {message}");
    }
}

#[test]
fn a_name_of_an_unknown_scheme_is_refused_with_the_known_ones() {
    let code = |name: &str| irikey(&["canon", name], b"", Stdio::piped()).status.code();
    for (name, scheme) in [("ftp://h/x", "ftp"), ("git+ssh://h/x", "git+ssh")] {
        let message = String::from_utf8(irikey(&["canon", name], b"", Stdio::piped()).stderr).unwrap();
        let expected =
            format!("irikey does not read {scheme}://; download it, or name an address that begins with one of s3://");
        assert!(message.contains(&expected) && code(name) == code("no/file"), "{message}");
    }
    for name in ["c://h/x", "1a://h/x", "a b://h/x", "https//h", "no/file"] {
        let message = String::from_utf8(irikey(&["canon", name], b"", Stdio::piped()).stderr).unwrap();
        assert!(message.contains("no such file"), "{message}");
    }
}

/// A table has URIs; what differed only on a lower rung before is equal.
#[test]
fn advice_on_own_tables_says_of_what_keys_are_made() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["x.parquet", "x.arrow", "x.csv", "x.jsonl"] {
        let path = folder.path().join(name).display().to_string();
        printed(&["canon", "-q", "-o", &path], b"http://a/\nHTTP://a\n");
        let is_advised = |flags: &[&str]| {
            let ran = irikey(&[flags, &[&path]].concat(), b"", Stdio::piped());
            String::from_utf8(ran.stderr).unwrap().contains(&format!("{name}: keys are made of the URIs in this table"))
        };
        for flags in [&["count"][..], &["diff", "--key", "scheme,surt-ia"], &["canon", "--key", "simple"]] {
            assert!(is_advised(flags), "{name}: {flags:?}");
        }
        for flags in [&["count", "--key", "scheme"][..], &["canon"]] {
            assert!(!is_advised(flags), "{name}: {flags:?}");
        }
    }
}

/// Bytes before the first record of an archive are reported, and no records.
#[test]
fn an_archive_after_other_bytes_is_not_read_as_lines() {
    let (mut archive, columns) = (Vec::new(), "uri,key,fault,fetch_status");
    let packed = fs::read(sample("crawl.warc.gz")).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&packed[..]), &mut archive).unwrap();
    let expected = printed(&["canon", "-q", "--columns", columns], &packed);
    for (junk, code, message) in
        [("junk\nhttp://a/\n", 4, "15 bytes in 1 place belong to no record"), ("\u{feff}\n", 0, "")]
    {
        let bytes = [junk.as_bytes(), &archive].concat();
        let ran = irikey(&["canon", "-q", "--columns", columns], &bytes, Stdio::piped());
        let error = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.code() == Some(code) && error.contains(message), "{error}");
        assert_eq!(String::from_utf8_lossy(&ran.stdout), expected);
    }
}
