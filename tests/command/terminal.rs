//! What reaches a terminal: control characters in names, URLs and columns are never printed raw.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{irikey, printed, sample};

/// ESC, BEL, a newline, a right-to-left override, the C1 control CSI, and bytes that are not UTF-8.
const HOSTILE: &[u8] = b"e\x1b[31m\x07\nx\xe2\x80\xaey\xc2\x9bz\xff";

/// The same in UTF-8.
const HOSTILE_TEXT: &str = "e\u{1b}[31m\u{7}\nx\u{202e}y\u{9b}z";

/// Runs the command in a directory.
fn run_in(directory: &Path, arguments: &[&OsStr]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
    command.args(arguments).current_dir(directory).stdin(Stdio::null());
    command.output().unwrap()
}

/// Raw control characters, other than line ends and tabs, or bidirectional formatting.
fn raw(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let is_raw = |c: char| (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c);
    let is_bad = text.contains(is_raw) || std::str::from_utf8(bytes).is_err();
    // A line that begins as the rest of a name would be one that the name could make up.
    let is_broken = text.lines().any(|line| line.starts_with("x\u{202e}") || line.starts_with("x\\u{202e}"));
    (is_bad || is_broken).then(|| text.into_owned())
}

#[test]
fn hostile_names_are_never_printed_raw() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let name = OsStr::from_bytes(HOSTILE);
    let with = |suffix: &str| OsString::from_iter([name, OsStr::new(suffix)]);
    let list = |name: &OsStr| OsString::from_iter([OsStr::new("@"), name]);
    fs::write(path.join(name), b"http://example.org/\nhttp://[bad\n").unwrap();
    // Damaged files, so that errors name them.
    let gzip = fs::read(sample("urls.txt.gz")).unwrap();
    fs::write(path.join(with(".gz")), &gzip[..gzip.len() / 2]).unwrap();
    fs::write(path.join(with(".html")), b"<a href='http://[bad'>x</a>").unwrap();
    fs::write(path.join(with(".parquet")), b"PAR1 and no more").unwrap();
    fs::write(path.join(with(".list")), b"missing\x1b\nmissing\xc2\x9b\n").unwrap();
    fs::create_dir(path.join(with(".dir"))).unwrap();
    let csv = format!("\"{}\",page\nhttp://a/,b\n", HOSTILE_TEXT.replace('"', ""));
    fs::write(path.join(with(".csv")), csv).unwrap();
    let (plain, gz, html, parquet) = (name.to_os_string(), with(".gz"), with(".html"), with(".parquet"));
    let (csv, store, missing, listed) = (with(".csv"), with(".keys"), with(".missing"), list(&with(".list")));
    let (out, report, empty) = (with(".out.csv"), with(".html"), with(".dir"));
    let word = OsStr::new;
    let mut count = 0;
    let mut check = |arguments: Vec<&OsStr>, checks_stdout: bool| {
        let ran = run_in(path, &arguments);
        count += usize::from(!ran.stderr.is_empty());
        assert!(raw(&ran.stderr).is_none(), "{arguments:?}: {}", raw(&ran.stderr).unwrap());
        if checks_stdout {
            assert!(raw(&ran.stdout).is_none(), "{arguments:?}: {}", raw(&ran.stdout).unwrap());
        }
    };
    for command in ["canon", "dedup", "count", "learn", "extract", "diff", "check-sorted"] {
        for input in [&plain, &gz, &html, &parquet, &missing, &listed, &list(&missing), &empty] {
            let mut arguments = vec![word(command), input.as_os_str()];
            if command == "diff" {
                arguments.extend(["--key", "scheme", "--key", "simple"].map(word));
            }
            // Rows on standard output are data. They are escaped only on a terminal.
            check(arguments.clone(), !matches!(command, "canon" | "dedup" | "extract"));
            if !matches!(command, "diff" | "check-sorted" | "count") {
                check([arguments.clone(), vec![word("-o"), &out]].concat(), true);
                check([arguments.clone(), vec![word("-o"), &out, word("--no-clobber")]].concat(), true);
                check([arguments.clone(), vec![word("-o"), &missing]].concat(), true);
                check([arguments, vec![word("-o"), &plain]].concat(), true);
            }
        }
    }
    for flags in [["--column"], ["--base-column"], ["--columns"], ["--sort"], ["--key"], ["--profile"], ["--charset"]] {
        check(vec![word("canon"), &csv, word(flags[0]), name], false);
        check(vec![word("canon"), &csv, word(flags[0]), OsStr::new(HOSTILE_TEXT)], false);
    }
    for flag in ["--psl", "--equivalences", "--tmp", "--rules", "--partition", "--memory", "--no-such", "--report"] {
        check(vec![word("canon"), &plain, word("-q"), word(flag), OsStr::new(HOSTILE_TEXT)], false);
    }
    check(vec![word("dedup"), &plain, word("--seen"), &store, word("--update-seen"), word("-o"), &out], true);
    check(vec![word("dedup"), &plain, word("--seen"), &missing], false);
    for action in ["info", "verify", "merge"] {
        check(vec![word("seen"), word(action), &store], true);
        check(vec![word("seen"), word(action), &missing], true);
    }
    let iri = OsStr::new("http://h\u{1b}\u{9b}\u{202e}/\u{7}\n");
    for flags in [&[][..], &["--json"], &["--profile", "whatwg"]] {
        let flags: Vec<_> = flags.iter().map(|flag| word(flag)).collect();
        check([vec![word("explain"), iri, name], flags.clone()].concat(), true);
        if flags.len() < 2 {
            check([vec![word("compare"), iri, name], flags.clone()].concat(), true);
            check([vec![word("compare"), iri, iri, word("--base"), iri], flags].concat(), true);
        }
    }
    check(vec![iri], true);
    check(vec![word("conform"), &missing], true);
    check(vec![word("bench"), &missing], true);
    check(vec![word("completions"), iri], true);
    check(
        vec![word("canon"), &plain, word("-o"), &out, word("--report"), &report, word("--progress"), word("never")],
        true,
    );
    assert!(raw(&fs::read(path.join(&report)).unwrap()).is_none());
    assert!(count > 150, "only {count} commands printed messages");
}

#[test]
fn json_of_inspection_commands_keeps_hidden_characters_by_their_numbers() {
    let iri = "http://h/\u{9b}\u{202e}\u{e0041}\u{1b}";
    let text = printed(&["explain", iri, "--json"], b"");
    assert!(text.contains("\\u009b\\u202e\\udb40\\udc41\\u001b"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["input"], iri);
}

/// Rows that go to a file or a pipe are not changed; on a terminal they are escaped, as `ls` does.
#[test]
fn rows_are_escaped_only_on_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let input = directory.path().join("input.txt");
    fs::write(&input, "http://[\u{1b}]2;x\u{7}\u{9b}\u{202e}\n").unwrap();
    let command = format!("{} canon -q {} --output-format tsv", env!("CARGO_BIN_EXE_irikey"), input.display());
    let piped = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert!(String::from_utf8(piped.stdout).unwrap().contains("http://[\u{1b}]2;x\u{7}\u{9b}\u{202e}\t"));
    // `script` of util-linux runs a command on a terminal of its own.
    let Ok(shown) = Command::new("script").args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output() else {
        return;
    };
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("http://[\\u{1b}]2;x\\u{7}\\u{9b}\\u{202e}\t"), "{shown:?}");
}

#[test]
fn binary_rows_are_not_written_to_a_terminal() {
    for command in ["canon", "dedup", "extract"] {
        let command =
            format!("{} {command} {} --output-format parquet", env!("CARGO_BIN_EXE_irikey"), sample("urls.txt"));
        let script = ["-qec", &command, "/dev/null"];
        let Ok(shown) = Command::new("script").args(script).stdin(Stdio::null()).output() else { return };
        let message = String::from_utf8_lossy(&shown.stdout);
        assert!(shown.status.code() == Some(2) && message.contains("parquet is binary"), "{command}: {message}");
    }
}

#[test]
fn most_relative_records_give_advice() {
    let advice = |lines: &[u8]| String::from_utf8(irikey(&["canon", "--format", "lines"], lines, Stdio::null()).stderr);
    let message = advice(b"a\nb\nhttp://h/\n").unwrap();
    assert!(
        message.contains("\nirikey: fault relative in 2 of 3 records: ") && message.contains("--base-column"),
        "{message}"
    );
    assert!(!advice(b"a\nhttp://h/\n").unwrap().contains("--base-column"));
    let out = irikey(&["canon", "--format", "cdxj"], b"http://a/\n\nhttp://b/\n", Stdio::null());
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(message.contains("\nirikey: fault not-of-format in 2 of 2 records: "), "{message}");
    let out = irikey(&["canon", "--format", "jsonl", "--column", "b"], b"{\"a\":\"http://a/\"}\n", Stdio::null());
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(message.contains("\nirikey: fault no-url in 1 of 1 record: "), "{message}");
    let charset_advice = |flags: &[&str], text: &[u8]| {
        let out = irikey(&[&["canon"], flags].concat(), text, Stdio::null());
        let message = String::from_utf8_lossy(&out.stderr);
        message.split_once("\nirikey: ").map_or(String::new(), |(_, advice)| advice.trim_end().to_string())
    };
    let line = b"http://h/\x83\n";
    let expected = "flag not-utf8 in 1 of 1 record: these URLs are not UTF-8; name their charset with --charset";
    assert_eq!(charset_advice(&[], line), expected);
    assert_eq!(charset_advice(&["--strict"], line), expected.replace("flag", "fault"));
    let expected = "flag not-utf8 in 1 of 1 record: these URLs are not UTF-8, as JSON has to be; \
                    convert the inputs, for example with iconv";
    assert_eq!(charset_advice(&[], b"{\"url\":\"http://h/\x83\"}\n"), expected);
    assert!(irikey(&["canon", "-q", "--format", "lines"], b"a\n", Stdio::null()).stderr.is_empty());
}

/// WAT is recognized by its name. Without the name it is WARC whose records have other types.
#[test]
fn skipped_records_give_advice_if_there_are_no_others() {
    let (wat, directory) = (fs::read(sample("crawl.wat.gz")).unwrap(), tempfile::tempdir().unwrap());
    let learned = directory.path().join("learned.parquet").display().to_string();
    let message = |flags: &[&str]| {
        let ran = irikey(flags, &wat, Stdio::null());
        assert!(ran.status.success());
        String::from_utf8(ran.stderr).unwrap()
    };
    for command in [&["canon"][..], &["dedup"], &["count"], &["learn", "-o", &learned]] {
        let message = message(command);
        assert!(message.contains("irikey: no record has one of the types that become rows; "), "{message}");
        assert!(message.contains("--record-types") && message.contains("--format wat"), "{message}");
    }
    for flags in [&["--format", "wat"][..], &["--record-types", "all"]] {
        let message = message(&[&["canon"], flags].concat());
        assert!(!message.contains("--record-types"), "{flags:?}: {message}");
    }
    assert_eq!(message(&["canon", "-q"]), "");
}

#[test]
fn count_gives_advice_and_its_report_in_three_formats() {
    let out = irikey(&["count"], b"a\0b\nc\n", Stdio::piped());
    let message = String::from_utf8_lossy(&out.stderr);
    assert!(message.contains("NUL bytes") && !message.contains("--base-column"), "{message}");
    let directory = tempfile::tempdir().unwrap();
    let report = |name: &str| {
        let path = directory.path().join(name);
        let out = irikey(&["count", "-q", "--report", path.to_str().unwrap()], b"http://h/\nx\n", Stdio::piped());
        assert!(out.status.success() && out.stderr.is_empty());
        fs::read_to_string(path).unwrap()
    };
    assert_eq!(serde_json::from_str::<serde_json::Value>(&report("r.json")).unwrap()["distinct"]["simple"], 1);
    assert!(report("r.txt").contains("\ndistinct, scheme  1\n"));
    let page = report("r.html");
    assert!(
        page.starts_with("<!doctype html>")
            && page.contains("<th scope=\"row\">distinct, scheme</th><td class=\"n\">1</td>")
    );
}

#[test]
fn messages_have_no_double_words_or_wrong_plurals() {
    let directory = tempfile::tempdir().unwrap();
    let gzip = fs::read(sample("urls.txt.gz")).unwrap();
    fs::write(directory.path().join("cut.gz"), &gzip[..gzip.len() / 2]).unwrap();
    fs::write(directory.path().join("one.txt"), "http://h:x/\n").unwrap();
    fs::write(directory.path().join("two.txt"), "http://h\nhttp://h/\n").unwrap();
    let text = |arguments: &[&str]| {
        let ran = run_in(directory.path(), &arguments.iter().map(OsStr::new).collect::<Vec<_>>());
        String::from_utf8([ran.stdout, ran.stderr].concat()).unwrap()
    };
    let message = text(&["explain", "1:x", "http://h:x/"]);
    assert!(message.contains("fault: scheme at byte 0: ") && message.contains("fault: port at byte 9: "), "{message}");
    let jobs: [&[&str]; 6] = [
        &["canon", "one.txt"],
        &["canon", "cut.gz"],
        &["extract", "one.txt"],
        &["extract", "cut.gz"],
        &["diff", "--key", "simple,scheme", "one.txt"],
        &["diff", "--key", "simple,scheme", "two.txt"],
    ];
    for arguments in jobs {
        let message = format!(" {}", text(arguments));
        let nouns = ["records", "rows", "bytes", "threads", "documents", "references", "keys", "merges"];
        let plurals = nouns.map(|noun| format!(" 1 {noun}"));
        for wrong in plurals.iter().map(String::as_str).chain(["; ;", ": :"]) {
            assert!(!message.contains(wrong), "{arguments:?}: {message}");
        }
    }
}

/// Different files have different names in errors, also if their names are not UTF-8.
#[test]
fn errors_name_files_as_reports_do() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("urls.txt"), "http://h/\n").unwrap();
    let (word, name) = (OsStr::new, OsStr::from_bytes);
    let check = |arguments: &[&OsStr], expected: &[&str]| {
        let ran = run_in(directory.path(), &[&[word("canon")], arguments].concat());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(!ran.status.success() && expected.iter().all(|text| message.contains(text)), "{message}");
    };
    check(&[name(b"a\xFE"), name(b"a\xFF")], &["bytes:a%FE: cannot open", "bytes:a%FF: cannot open"]);
    let output = name(b"a\xFF/x.csv");
    check(
        &[word("urls.txt"), word("-o"), output],
        &["bytes:a%FF/x.csv: cannot create: the directory bytes:a%FF does not"],
    );
    check(&[word("urls.txt"), word("--psl"), name(b"a\xFF")], &["bytes:a%FF: "]);
}
