//! Where rows go and in which form: compressed text, directories, columns on standard output; and lists of inputs.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{irikey, printed, sample};

fn unpacked(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let mut text = Vec::new();
    match path.extension().is_some_and(|suffix| suffix == "gz") {
        true => drop(flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text).unwrap()),
        false => drop(zstd::Decoder::new(&bytes[..]).unwrap().read_to_end(&mut text).unwrap()),
    }
    text
}

#[test]
fn the_suffix_compresses_text_in_the_same_bytes_for_any_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let urls = sample("urls.txt");
    for (format, name) in [("csv", "x.csv"), ("tsv", "x.tsv"), ("jsonl", "x.ndjson"), ("text", "x.txt")] {
        let plain = irikey(&["canon", "-q", &urls, "--output-format", format], b"", Stdio::piped()).stdout;
        for suffix in ["gz", "zst"] {
            let out = path(&format!("{name}.{suffix}"));
            let flags = ["canon", "-q", &urls, "--row-group-size", "1K", "-o", out.to_str().unwrap()];
            let mut written = Vec::new();
            for more in [&["--threads", "1"][..], &["--threads", "3", "--chunk-size", "300"]] {
                assert!(printed(&[&flags, more].concat(), b"").is_empty());
                assert!(unpacked(&out) == plain, "{out:?}");
                written.push(fs::read(&out).unwrap());
            }
            assert!(written[0] == written[1] && written[0].len() < plain.len(), "{out:?}");
        }
    }
    // irikey reads what it wrote.
    let again = printed(&["canon", "-q", path("x.txt.gz").to_str().unwrap()], b"");
    assert_eq!(again.lines().count(), printed(&["canon", "-q", &urls], b"").lines().count());
}

#[test]
fn dedup_extract_and_empty_inputs_write_compressed_text() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let out = |name: &str| path(name).display().to_string();
    printed(&["dedup", "-q", "-", "-o", &out("d.csv.zst"), "--columns", "uri"], b"http://a/\nHTTP://A\nhttp://b/\n");
    assert_eq!(unpacked(&path("d.csv.zst")), b"uri\nhttp://a/\nhttp://b/\n");
    for name in ["e.txt.gz", "e.jsonl.zst", "e.csv.gz"] {
        printed(&["canon", "-q", "-", "--format", "lines", "-o", &out(name)], b"");
        assert_eq!(unpacked(&path(name)).is_empty(), !name.contains("csv"), "{name}");
        assert!(fs::metadata(path(name)).unwrap().len() > 0);
    }
    let page = "<a href='http://h/1'>1</a>".repeat(50_000);
    printed(&["extract", "-q", "-", "-o", &out("x.jsonl.gz")], page.as_bytes());
    let links = String::from_utf8(unpacked(&path("x.jsonl.gz"))).unwrap();
    assert_eq!(links.lines().count(), 50_000);
    assert!(links.contains("\"record_offset\":9,"), "{}", &links[..200]);
}

#[test]
fn a_slash_makes_a_directory_of_one_part() {
    let directory = tempfile::tempdir().unwrap();
    let out = format!("{}/", directory.path().join("index").display());
    printed(&["canon", "-q", &sample("crawl.cdx"), "-o", &out, "--sort", "url_surtkey"], b"");
    let part = format!("{out}part-00000.parquet");
    assert!(printed(&["check-sorted", &part], b"").contains("rows in order"));
    assert_eq!(fs::read_dir(&out).unwrap().filter(|entry| is_part(entry.as_ref().unwrap())).count(), 1);
    let unsorted = format!("{}/", directory.path().join("rows").display());
    printed(&["canon", "-q", &sample("urls.txt"), "--row-group-size", "1K", "-o", &unsorted], b"");
    assert_eq!(fs::read_dir(&unsorted).unwrap().filter(|entry| is_part(entry.as_ref().unwrap())).count(), 1);
}

/// A job can read the directory that another job wrote: its files about parts hold no records.
#[test]
fn a_directory_of_parts_is_an_input() {
    let directory = tempfile::tempdir().unwrap();
    let out = |name: &str| format!("{}/", directory.path().join(name).display());
    let rows = |name: &str| printed(&["canon", "-q", name, "--columns", "uri,fault"], b"").lines().count();
    for (name, flags) in [
        ("ranges", "--partition surt:3"),
        ("zipnum", "--output-format zipnum"),
        ("hosts", "--partition host:2 --output-format zipnum"),
    ] {
        let (input, out) = (sample("crawl.cdx"), out(name));
        let words = ["canon", "-q", &input, "-o", &out].into_iter().chain(flags.split(' '));
        printed(&words.collect::<Vec<_>>(), b"");
        let parts = parts_below(Path::new(&out));
        assert!(
            !parts.is_empty() && rows(&out) == 1 + parts.iter().map(|part| rows(part) - 1).sum::<usize>(),
            "{name}"
        );
        // Named files are read, and so are files of these names that no job wrote.
        if name == "ranges" {
            assert_eq!(rows(&format!("{out}splits.txt")), 3);
            fs::remove_file(format!("{out}_manifest.json")).unwrap();
            assert_eq!(rows(&out), 3 + parts.iter().map(|part| rows(part) - 1).sum::<usize>());
        }
    }
}

/// The index of a ZipNum file beside it holds no records.
#[test]
fn a_directory_with_a_zipnum_file_is_an_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let rows = || printed(&["canon", "-q", directory.path().to_str().unwrap()], b"").lines().count();
    for name in ["x.cdx.gz", "y.cdxj.gz"] {
        printed(&["canon", "-q", &sample("crawl.cdx"), "-o", &path(name)], b"");
    }
    assert!(["x.idx", "x.loc", "y.idx", "y.loc"].iter().all(|name| fs::exists(path(name)).unwrap()));
    let expected = printed(&["canon", "-q", &path("x.cdx.gz"), &path("y.cdxj.gz")], b"").lines().count();
    assert_eq!(rows(), expected);
    // Other files with such suffixes are read.
    fs::write(path("z.loc"), "http://h/\n").unwrap();
    assert_eq!(rows(), expected + 1);
    // Data may have any name.
    for name in ["v.gz", "w"] {
        printed(&["canon", "-q", &sample("crawl.cdx"), "-o", &path(name), "--output-format", "zipnum"], b"");
    }
    assert!(["v.idx", "v.loc", "w.idx", "w.loc"].iter().all(|name| fs::exists(path(name)).unwrap()));
    assert_eq!(rows(), 2 * expected + 1);
}

/// The paths of the parts below a directory.
fn parts_below(directory: &Path) -> Vec<String> {
    let entries: Vec<_> = fs::read_dir(directory).unwrap().map(Result::unwrap).collect();
    let below = entries.iter().filter(|entry| entry.path().is_dir()).flat_map(|entry| parts_below(&entry.path()));
    let parts = entries.iter().filter(|entry| is_part(entry)).map(|entry| entry.path().display().to_string());
    parts.chain(below).collect()
}

fn is_part(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with("part-")
}

#[test]
fn a_directory_in_the_place_of_a_file_is_a_usage_error() {
    let directory = tempfile::tempdir().unwrap();
    let text = |name: &str| directory.path().join(name).display().to_string();
    fs::create_dir(text("d.parquet")).unwrap();
    let (input, taken, missing) = (sample("redirects.cdxj"), text("d.parquet"), text("missing.parquet/"));
    let other = text("other/");
    let commands: [(&[&str], String); 12] = [
        (&["canon", "-o", &taken], format!("{taken}: -o names a directory; name a file such as {taken}/uris.parquet")),
        (&["dedup", "-o", &taken], format!("{taken}: -o names a directory")),
        (&["dedup", "--groups", &taken], format!("{taken}: names a directory; name a file")),
        (&["learn", "-o", &taken], format!("{taken}: names a directory; name a file")),
        (&["extract", "-o", &taken], format!("{taken}: -o names a directory; name a file such as {taken}/links.csv")),
        (&["extract", "-o", &other], format!("{other}: -o names a directory; name a file such as {other}links.csv")),
        (
            &["canon", "--report", &taken],
            format!("{taken}: --report names a directory; name a file such as {taken}/report.html"),
        ),
        (&["count", "--report", &taken], format!("{taken}: --report names a directory")),
        (&["dedup", "--duplicates", &missing], format!("{missing}: names a directory; name a file")),
        (&["learn", "-o", &missing], format!("{missing}: names a directory; name a file")),
        (&["extract", "-o", &missing], format!("{missing}: -o names a directory; name a file")),
        (&["canon", "--report", &missing], format!("{missing}: names a directory; name a file")),
    ];
    for (command, expected) in commands {
        let ran = irikey(&[command, &[&input]].concat(), b"", Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains(&expected), "{command:?}: {message}");
        assert!(ran.stdout.is_empty(), "{command:?}");
    }
}

#[test]
fn a_suffix_that_names_no_format_is_answered_with_those_that_do() {
    for (command, path, expected) in [
        (
            "extract",
            "x.html",
            "expected one of csv, tsv, jsonl, ndjson, parquet, pq, of which csv, tsv, jsonl, ndjson may",
        ),
        ("extract", "x.arrow", "x.arrow: the suffix names no format"),
        ("dedup", "x", "for a directory of parts, write x/; or use --output-format"),
        ("canon", "x", "for a directory of parts, write x/; or use --output-format"),
    ] {
        let ran = irikey(&[command, "-o", path], b"http://h/\n", Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains(expected), "{command} {path}: {message}");
    }
}

#[test]
fn columns_on_standard_output_are_csv() {
    assert_eq!(printed(&["canon", "-q", "--columns", "uri,fault"], b"HTTP://h\n"), "uri,fault\nhttp://h/,\n");
    assert!(
        printed(&["dedup", "-q", "--key", "simple", "--columns", "+host_skeleton"], b"http://h/\n").contains("key")
    );
}

#[test]
fn numbers_that_are_refused_are_answered_with_those_that_are_expected() {
    for (flag, number, expected) in [
        ("-j", "0", "from 1 to 512"),
        ("-j", "-1", "from 1 to 512"),
        ("--limit", "1k", "without a unit, 0 or more"),
        ("--limit", "-1", "0 or more"),
        ("--part-rows", "0", "1 or more"),
    ] {
        let ran = irikey(&["canon", "-q", flag, number], b"http://h/\n", Stdio::piped());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains(expected), "{flag} {number}: {message}");
    }
}

#[test]
fn a_column_that_is_named_twice_is_refused() {
    for arguments in [
        ["canon", "--columns", "uri, key,uri"],
        ["canon", "--sort", "uri,key,uri"],
        ["canon", "--sort", "uri, -uri"],
        ["check-sorted", "--by=-uri,uri", "x.parquet"],
    ] {
        let ran = irikey(&[&arguments[..], &["-q"]].concat(), b"http://h/\n", Stdio::piped());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains("names `uri` twice"), "{arguments:?}: {message}");
    }
    // Readers compare the names of columns and directories without case.
    for (hive, expected) in
        [("Uri=a", "`Uri` is a column"), ("crawl=a,Crawl=b", "names `crawl` twice"), ("Host_Hash=1", "--partition")]
    {
        let ran = irikey(&["canon", "-q", "-o", "refused/", "--hive", hive], b"http://h/\n", Stdio::piped());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains(expected), "{hive}: {message}");
    }
}

#[test]
fn lists_have_comments_or_end_names_with_nul() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    for name in ["a.txt", "#b\nc.txt"] {
        fs::write(path(name), "http://h/\n").unwrap();
    }
    let list = format!("@{}", path("list").display());
    fs::write(path("list"), format!("# inputs\n\n{}\r\n#{}\n", path("a.txt").display(), path("none").display()))
        .unwrap();
    assert_eq!(printed(&["canon", "-q", &list], b""), "http://h/\n");
    assert_eq!(printed(&["canon", "-q", "@-"], &fs::read(path("list")).unwrap()), "http://h/\n");
    fs::write(path("list"), format!("\u{feff}{}\r\n", path("a.txt").display())).unwrap();
    assert_eq!(printed(&["canon", "-q", &list], b""), "http://h/\n");
    let names = [path("#b\nc.txt"), path("a.txt")].map(|path| path.display().to_string());
    fs::write(path("list"), names.join("\0")).unwrap();
    assert_eq!(printed(&["canon", "-q", &list], b""), "http://h/\nhttp://h/\n");
}

/// A handle that the caller has closed is no `/dev/null`: rows would be lost.
#[test]
#[cfg(unix)]
fn closed_standard_handles_are_errors_if_they_are_used() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("a.txt"), "HTTP://h\n").unwrap();
    let run = |script: &str| {
        let script = format!("'{}' {script}", env!("CARGO_BIN_EXE_irikey"));
        let ran = Command::new("sh").args(["-c", &script]).current_dir(directory.path()).output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    let unused = [
        "canon a.txt -o b.txt <&- >&- 2>&- && test \"$(cat b.txt)\" = http://h/",
        "canon -q a.txt > /dev/null",
        "canon -q a.txt <> /dev/null 1>&0",
        "seen info missing >&- || test $? = 2",
    ];
    for script in unused {
        assert_eq!(run(script).0, Some(0), "{script}");
    }
    let unwritten =
        ["canon a.txt", "dedup a.txt -o -", "canon a.txt -o /dev/stdout", "count a.txt", "--help", "eval < a.txt"];
    for words in unwritten {
        let (status, message) = run(&format!("{words} >&-"));
        assert!(status == Some(5) && message.contains("bad file descriptor"), "{words}: {message}");
    }
    for words in ["canon", "dedup -", "count @-", "eval"] {
        let (status, message) = run(&format!("{words} <&- > out"));
        assert!(status == Some(4) && message.contains("bad file descriptor"), "{words}: {message}");
    }
}

#[test]
fn a_dash_is_not_the_name_of_a_directory_or_of_a_file_beside_the_output() {
    let directory = tempfile::tempdir().unwrap();
    let refused = [
        "dedup --seen - --update-seen",
        "canon --tmp -",
        "canon --psl -",
        "canon --equivalences -",
        "canon --report -",
        "canon --partition surt:- -o d",
        "learn -o x.parquet --export csv=-",
        "learn -o x.parquet --merge -",
        "learn -o x.parquet --rules -",
        "seen merge -",
        "man --out -",
    ];
    for words in refused {
        let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
        let ran = command.args(words.split(' ')).current_dir(directory.path()).stdin(Stdio::null()).output().unwrap();
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains("invalid value '"), "{words}: {message}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Before the job, as `--tmp`: keys and rows may be spilled after hours.
#[test]
#[cfg(unix)]
fn a_temporary_directory_that_cannot_be_used_is_noticed_before_the_job() {
    let run = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
        let command = command.args(words.split(' ')).arg(sample("urls.txt")).env("TMPDIR", "/missing");
        let ran = command.output().unwrap();
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    for words in ["dedup", "canon --sort uri", "count", "diff --key simple,scheme"] {
        let (status, message) = run(words);
        assert!(status == Some(2) && message.contains("TMPDIR /missing: cannot create"), "{words}: {message}");
    }
    // These jobs need no temporary files, or have another directory.
    for words in ["canon -q", "count -q --approximate", "dedup -q --tmp ."] {
        assert_eq!(run(words), (Some(0), String::new()), "{words}");
    }
}

/// The reader of a pipe would take the report for rows.
#[test]
#[cfg(unix)]
fn two_outputs_are_not_written_to_one_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let run = |words: &[&str]| {
        let ran = irikey(words, b"http://h/\n", Stdio::piped());
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap(), ran.stdout)
    };
    let pipe = path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (out, report) in [("-", "/dev/stdout"), ("/dev/stdout", "/dev/fd/1"), (&*pipe, &*pipe)] {
        let (status, message, rows) = run(&["canon", "--output-format", "csv", "-o", out, "--report", report]);
        assert!(status == Some(2) && rows.is_empty() && message.contains("are the same file"), "{out}: {message}");
    }
    let (file, devices) = (path("x.csv"), ["-o", "/dev/null", "--report", "/dev/null"]);
    for words in [&devices[..], &["-o", &file, "--report", "/dev/stdout"], &["--report", "/dev/stderr"]] {
        assert_eq!(run(&[&["canon"], words].concat()).0, Some(0), "{words:?}");
    }
}
