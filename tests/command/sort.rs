//! Tests of sorted outputs, directories of parts, indexes, `--resume` and `check-sorted`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use serde_json::Value;

use crate::{gzip, irikey, printed, read_json, sample, succeed};

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

fn names(directory: &Path) -> Vec<String> {
    let name = |path: &PathBuf| path.strip_prefix(directory).unwrap().display().to_string();
    files_below(directory).iter().map(name).collect()
}

/// Runs `canon` on the crawl sample and returns its lines.
fn lines(more: &[&str]) -> Vec<String> {
    let input = sample("crawl.cdxj");
    let arguments = [&["canon", "-q", &input][..], more].concat();
    succeed(&arguments).lines().map(str::to_string).collect()
}

#[test]
fn sorted_rows_are_in_order_and_complete() {
    let columns = ["--output-format", "jsonl", "--columns", "url_surtkey,fetch_time,record,uri"];
    let mut expected = lines(&columns);
    let field = |line: &String, name: &str| serde_json::from_str::<Value>(line).unwrap()[name].clone();
    let text = |line: &String, name: &str| field(line, name).as_str().map(str::to_string);
    expected.sort_by_key(|line| {
        let (key, time) = (text(line, "url_surtkey"), text(line, "fetch_time"));
        (key.is_none(), key, time.is_none(), time)
    });
    for more in [&["--threads", "1"][..], &["--threads", "3", "--row-group-size", "2k", "--memory", "18M"]] {
        assert_eq!(lines(&[&columns[..], &["--sort", "url_surtkey,fetch_time"], more].concat()), expected);
    }
    let descending = lines(&[&columns[..], &["--sort", "-record"]].concat());
    let records: Vec<_> = descending.iter().map(|line| field(line, "record").as_u64().unwrap()).collect();
    assert!(records.windows(2).all(|pair| pair[0] > pair[1]));
}

#[test]
fn parquet_metadata_has_the_order() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("x.parquet");
    let (input, target) = (sample("crawl.cdxj"), target.to_str().unwrap());
    succeed(&["canon", "-q", &input, "-o", target, "--sort", "url_surtkey,-fetch_time", "--bloom-filter"]);
    let reader = parquet::file::serialized_reader::SerializedFileReader::new(std::fs::File::open(target).unwrap());
    let metadata = parquet::file::reader::FileReader::metadata(&reader.unwrap()).clone();
    let group = metadata.row_group(0);
    let sorting = group.sorting_columns().unwrap();
    let name = |place: i32| group.column(place as usize).column_path().string();
    let sorting: Vec<_> = sorting.iter().map(|column| (name(column.column_idx), column.descending)).collect();
    assert_eq!(sorting, [("url_surtkey".to_string(), false), ("fetch_time".to_string(), true)]);
    let column = |name: &str| group.columns().iter().find(|column| column.column_path().string() == name).unwrap();
    assert!(column("url_surtkey").statistics().unwrap().min_bytes_opt().is_some());
    assert!(column("url_surtkey").column_index_offset().is_some());
    assert!(column("key").bloom_filter_offset().is_some() && column("url_surtkey").bloom_filter_offset().is_none());
    let message = succeed(&["check-sorted", target]);
    assert!(message.contains("335 rows in order"), "{message}");
    let unsorted = irikey(&["check-sorted", target, "--by", "uri"], b"", Stdio::piped());
    assert_eq!(unsorted.status.code(), Some(1));
    let error = String::from_utf8_lossy(&unsorted.stderr).into_owned();
    assert!(error.contains("x.parquet: row ") && error.contains(" comes after "), "{error}");
}

#[test]
fn what_cannot_be_checked_by_columns_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let [csv, parquet, archive, zip] =
        ["x.csv", "x.parquet", "x.warc", "x.zip"].map(|name| directory.path().join(name).display().to_string());
    for target in [&csv, &parquet] {
        succeed(&["canon", "-q", &sample("crawl.cdxj"), "-o", target, "--sort", "uri"]);
    }
    assert_rejected(&["check-sorted", &csv], 1, "whole lines were compared as bytes");
    assert_rejected(&["check-sorted", "--by", "uri", &csv], 2, "this file has lines, which have no columns");
    std::fs::write(&archive, "WARC/1.1\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\n").unwrap();
    std::fs::write(&zip, "PK\x03\x04\n").unwrap();
    assert_rejected(&["check-sorted", &archive], 2, "this is a web archive, whose records have no order");
    assert_rejected(&["check-sorted", &zip], 4, "ZIP archive");
    assert_rejected(&["check-sorted", "--by", "uri", "no-such.parquet"], 4, "no-such.parquet: cannot open: ");
    assert_rejected(
        &["check-sorted", "--by", "nope", &parquet],
        2,
        "no column `nope`; the columns are source, record, ",
    );
    assert_rejected(
        &["check-sorted", directory.path().to_str().unwrap()],
        2,
        "is a directory; name its files, such as ",
    );
    let parts = format!("{}/parts", directory.path().display());
    for (flags, pattern) in
        [("--part-rows 9", "part-*\n"), ("--hive crawl=A --partition host:2", "*/*/part-* with --each")]
    {
        let flags: Vec<_> = flags.split(' ').collect();
        succeed(&[&["canon", "-q", &sample("crawl.cdxj"), "-o", &parts][..], &flags].concat());
        assert_rejected(&["check-sorted", &parts], 2, &format!("name its files, such as {parts}/{pattern}"));
        std::fs::remove_dir_all(&parts).unwrap();
    }
}

/// Objects are not said to be files that do not exist.
#[test]
fn commands_of_local_files_refuse_objects() {
    for command in [&["check-sorted"][..], &["seen", "info"], &["seen", "verify"], &["seen", "merge"]] {
        let text = "s3://bucket/x: this command reads local files only";
        assert_rejected(&[command, &["s3://bucket/x"]].concat(), 2, text);
    }
}

/// Nothing of a pipe is lost when its format is recognized.
#[test]
fn pipes_are_checked_from_their_first_byte() {
    // A file with this name is not read instead.
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(sample("crawl.parquet"), directory.path().join("-")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
    let ran = command.args(["check-sorted", "-"]).current_dir(&directory).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), "-: 0 rows in order\n");
    for path in ["-", "/dev/stdin"] {
        if path == "-" || cfg!(target_os = "linux") {
            assert!(printed(&["check-sorted", path], b"a\nb\nc").contains("3 rows in order"), "{path}");
            let unsorted = irikey(&["check-sorted", path], b"zzzzzz\naaa\nbbb\n", Stdio::piped());
            assert_eq!(unsorted.status.code(), Some(1), "{path}");
            let table = irikey(&["check-sorted", path], b"PAR1\x15\x04", Stdio::piped());
            let message = String::from_utf8_lossy(&table.stderr).into_owned();
            assert!(table.status.code() == Some(2) && message.contains("in files only"), "{path}: {message}");
        }
    }
}

#[test]
fn parts_of_a_directory_do_not_overlap() {
    let directory = tempfile::tempdir().unwrap();
    let (input, target) = (sample("crawl.cdxj"), directory.path().join("index"));
    let flags = ["--sort", "url_surtkey", "--part-rows", "100", "--hive", "crawl=A,subset=warc"];
    let canon = [&["canon", "-q", &input, "-o", target.to_str().unwrap()][..], &flags].concat();
    succeed(&canon);
    let found = names(&target);
    assert_eq!(found[0], "crawl=A/subset=warc/_manifest.json");
    assert!(found.len() > 3 && found[1] == "crawl=A/subset=warc/part-00000.parquet", "{found:?}");
    let parts: Vec<_> = files_below(&target)[1..].iter().map(|path| path.display().to_string()).collect();
    let check: Vec<&str> = ["check-sorted"].into_iter().chain(parts.iter().map(String::as_str)).collect();
    succeed(&check);
    let manifest = read_json(target.join(&found[0]));
    let rows = manifest["parts"].as_array().unwrap().iter().map(|part| part["rows"].as_u64().unwrap());
    assert_eq!(rows.sum::<u64>(), 335);
    let again = irikey(&canon, b"", Stdio::piped());
    assert_eq!(again.status.code(), Some(2), "a directory with parts is not overwritten");
    assert_eq!(names(&target), found);
}

#[test]
fn partitions_do_not_depend_on_threads() {
    let directory = tempfile::tempdir().unwrap();
    let input = sample("crawl.cdxj");
    let run = |name: &str, how: &str, threads: &str| {
        let target = directory.path().join(name);
        let path = target.to_str().unwrap();
        succeed(&[
            "canon",
            "-q",
            &input,
            "-o",
            path,
            "--partition",
            how,
            "--threads",
            threads,
            "--row-group-size",
            "3k",
        ]);
        let bytes = files_below(&target).iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
        (names(&target), bytes)
    };
    let hosts = run("a", "host:5", "1");
    assert!(hosts == run("b", "host:5", "3"));
    assert!(hosts.0.iter().any(|name| name.starts_with("host_hash=") && name.ends_with("/part-00000.parquet")));
    let ranges = run("c", "surt:4", "2");
    assert!(
        ranges.0.contains(&"splits.txt".to_string()) && ranges.0.contains(&"surt_range=3/part-00000.parquet".into())
    );
    let splits = directory.path().join("c/splits.txt");
    let again = run("d", &format!("surt:{}", splits.display()), "1");
    let parts = |(names, bytes): &(Vec<String>, Vec<Vec<u8>>)| {
        let parts = names.iter().cloned().zip(bytes.clone());
        parts.filter(|(name, _)| name.ends_with(".parquet")).collect::<Vec<_>>()
    };
    assert!(parts(&ranges) == parts(&again), "the same split points give the same files");
}

/// Without `--sort`, no two rows of a partition have to be in the same part.
#[test]
fn parts_of_partitions_in_the_order_of_the_input_have_the_rows_that_were_requested() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("parts");
    let flags = ["--partition", "host:2", "--part-rows", "50"];
    succeed(&[&["canon", "-q", &sample("crawl.cdxj"), "-o", target.to_str().unwrap()][..], &flags].concat());
    let manifest = read_json(target.join("_manifest.json"));
    let rows = |partition: u64| -> Vec<u64> {
        let parts = manifest["parts"].as_array().unwrap().iter();
        let parts = parts.filter(|part| part["path"].as_str().unwrap().starts_with(&format!("host_hash={partition}/")));
        parts.map(|part| part["rows"].as_u64().unwrap()).collect()
    };
    let [first, second] = [rows(0), rows(1)];
    assert_eq!(first.iter().chain(&second).sum::<u64>(), 335);
    for rows in [first, second] {
        let (last, others) = rows.split_last().unwrap();
        assert!(!others.is_empty() && others.iter().all(|rows| *rows == 50) && (1..=50).contains(last), "{rows:?}");
    }
}

#[test]
fn indexes_are_sorted_and_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let input = sample("crawl.cdxj");
    let [cdxj, zipnum] = ["x.cdxj", "y.cdx.gz"].map(|name| directory.path().join(name).display().to_string());
    succeed(&["canon", "-q", &input, "-o", &cdxj]);
    succeed(&["canon", "-q", &input, "-o", &zipnum]);
    succeed(&["check-sorted", "-q", &cdxj]);
    succeed(&["check-sorted", "-q", &zipnum]);
    let text = std::fs::read_to_string(&cdxj).unwrap();
    assert_eq!(text.lines().count(), 335);
    let columns = ["--output-format", "jsonl", "--columns", "uri,key,fault,fetch_time,fetch_status,content_digest"];
    let rows = |file: &str| {
        let arguments = [&["canon", "-q", file][..], &columns].concat();
        let mut rows: Vec<_> = succeed(&arguments).lines().map(str::to_string).collect();
        rows.sort();
        rows
    };
    assert!(rows(&cdxj) == rows(&input) && rows(&zipnum) == rows(&input));
    let index = std::fs::read_to_string(directory.path().join("y.idx")).unwrap();
    let fields: Vec<&str> = index.lines().next().unwrap().split('\t').collect();
    let first = text.lines().next().unwrap();
    assert!(first.starts_with(&format!("{} {{", fields[0])), "{first} {index}");
    let len = std::fs::metadata(&zipnum).unwrap().len().to_string();
    assert_eq!(fields[1..], ["y.cdx.gz", "0", &len, "1"]);
}

/// The positions and fields of captures survive the conversion from index to index.
#[test]
fn indexes_keep_the_positions_of_captures() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let archive = name("crawl.warc.gz");
    std::fs::copy(sample("crawl.warc.gz"), &archive).unwrap();
    let columns = "uri,fetch_time,fetch_status,content_digest,content_charset,content_mime_type,content_mime_detected,\
        content_languages,content_truncated,warc_filename,warc_record_offset,warc_record_length,warc_segment";
    let rows = |file: &str| {
        let arguments = ["canon", "-q", file, "--output-format", "jsonl", "--columns", columns];
        let mut rows: Vec<_> = succeed(&arguments).lines().map(str::to_string).collect();
        rows.sort();
        rows
    };
    let own = name("own.cdxj");
    std::fs::write(&own, concat!(
        r#"org,example)/ 20260101000000 {"url": "http://example.org/", "mime": "text/html", "mime-detected": "text/plain", "#,
        r#""status": "200", "digest": "B2LT", "length": "9", "offset": "2147483647", "filename": "a/b.warc.gz", "#,
        r#""charset": "UTF-8", "languages": "eng,deu", "redirect": "http://example.org/x", "truncated": "length"}"#, "\n",
    )).unwrap();
    for input in [archive.clone(), sample("crawl.cdx"), own.clone()] {
        let [cdxj, zipnum] = ["x.cdxj", "y.cdx.gz"].map(name);
        succeed(&["canon", "-q", &input, "-o", &cdxj, "--archive-paths"]);
        succeed(&["canon", "-q", &cdxj, "-o", &zipnum, "--archive-paths"]);
        let expected = rows(&input);
        assert!(expected.iter().all(|row| row.contains("\"content_mime_type\":\"text/html\"")), "{}", expected[0]);
        assert!(rows(&cdxj) == expected && rows(&zipnum) == expected, "{input}");
        if input == own {
            assert_eq!(
                std::fs::read(&cdxj).unwrap(),
                std::fs::read(&own).unwrap(),
                "the members and their order do not change"
            );
        }
    }
    succeed(&["canon", "-q", &archive, "-o", &name("z.cdxj")]);
    let bytes = std::fs::read(&archive).unwrap();
    for line in std::fs::read_to_string(name("z.cdxj")).unwrap().lines() {
        let capture: Value = serde_json::from_str(&line[line.find(" {\"url\"").unwrap() + 1..]).unwrap();
        let number = |member: &str| capture[member].as_str().unwrap().parse::<usize>().unwrap();
        let member = &bytes[number("offset")..][..number("length")];
        let mut text = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(member), &mut text).unwrap();
        let text = String::from_utf8_lossy(&text);
        assert!(text.starts_with("WARC/1.0\r\n") && text.contains(capture["url"].as_str().unwrap()), "{line}");
        assert_eq!(capture["filename"], "crawl.warc.gz", "the directory of the archive is not part of the index");
    }
}

/// The rows are sorted in several spilled runs. Mapped inputs do not count as memory.
#[cfg(target_os = "linux")]
#[test]
fn a_sort_stays_within_the_memory_limit() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let line = |i: u64| {
        format!("http://{:x}.example.org/{i}/path/of/some/length?query=value\n", i.wrapping_mul(0x9e37_79b9) % 99_991)
    };
    std::fs::write(name("in.txt"), (0..200_000).map(line).collect::<String>()).unwrap();
    for (threads, memory, group) in [("1", 20, "64k"), ("3", 32, "256k"), ("32", 64, "64k")] {
        let (input, out, report) = (name("in.txt"), name("out.parquet"), name("report.json"));
        let allowed = format!("{memory}M");
        let flags = ["--sort", "url_surtkey", "--memory", &allowed, "--row-group-size", group, "--threads", threads];
        succeed(&[&["canon", "-q", &input, "-o", &out, "--report", &report][..], &flags].concat());
        let report = read_json(&report);
        let peak = report["peak_anonymous_bytes"].as_u64().unwrap();
        assert!(peak <= memory << 20, "{threads} threads: {peak}");
        assert!(report["temporary_bytes"].as_u64().unwrap() > 1 << 20, "{threads} threads");
        std::fs::remove_file(out).unwrap();
    }
}

/// References may be resolved against a base that is much longer than they are. Blocks of such rows are compressed to a small
/// part of their length.
#[cfg(target_os = "linux")]
#[test]
fn a_sort_of_resolved_references_stays_within_the_memory_limit() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let (input, out, report) = (name("in.txt"), name("out.csv"), name("report.json"));
    for (base_len, lines, columns) in [(240, 40_000, "url_surtkey"), (4000, 10_000, "uri")] {
        let base = format!("http://example.org/{}", "x/".repeat(base_len / 2));
        std::fs::write(&input, (0..lines).map(|i| format!("{:015}\n", i * 7919 % 10_007)).collect::<String>()).unwrap();
        let mut whole = None;
        for (memory, threads) in [(34, "1"), (48, "2")] {
            let allowed = format!("{memory}M");
            let flags = ["--sort", columns, "--memory", &allowed, "--row-group-size", "1M", "--threads", threads];
            succeed(&[&["canon", "-q", &input, "-o", &out, "--base", &base, "--report", &report][..], &flags].concat());
            let peak = read_json(&report)["peak_anonymous_bytes"].as_u64().unwrap();
            assert!(peak <= memory << 20, "base of {base_len} bytes, {threads} threads: {peak}");
            let rows = std::fs::read(&out).unwrap();
            assert!(*whole.get_or_insert_with(|| rows.clone()) == rows, "base of {base_len} bytes");
            std::fs::remove_file(&out).unwrap();
        }
    }
}

/// Writes six files of lines and returns their paths.
fn write_inputs(directory: &Path, lines: usize) -> Vec<String> {
    (0..6)
        .map(|i| {
            let path = directory.join(format!("in-{i}.txt"));
            let text: String = (0..lines).map(|line| format!("HTTP://Example.org/{i}/{line}\n")).collect();
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        })
        .collect()
}

/// The arguments of a run that creates one part per input and can be resumed.
fn resume<'a>(inputs: &'a [String], target: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let flags = ["canon", "-q", "-o", target, "--resume", "--output-format", "jsonl", "--threads", "1"];
    flags.into_iter().chain(inputs.iter().map(String::as_str)).chain(more.iter().copied()).collect()
}

fn parts(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let files = files_below(directory).into_iter().filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    files
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn a_killed_job_is_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = write_inputs(directory.path(), 40_000);
    let [whole, target] = ["whole", "resumed"].map(|name| directory.path().join(name));
    succeed(&resume(&inputs, whole.to_str().unwrap(), &[]));
    assert_eq!(parts(&whole).len(), 6);
    let path = target.to_str().unwrap();
    kill_in_time(&resume(&inputs, path, &[]), &target, || target.join("part-00000.jsonl").exists());
    succeed(&resume(&inputs, path, &[]));
    assert!(parts(&target) == parts(&whole));
    let left = names(&target);
    assert_eq!(left.len(), 7, "the parts and the manifest: {left:?}");
}

/// Files of the streaming format are tables, too. Times are shown if they are out of order.
#[test]
fn streams_of_arrow_are_checked() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (urls, captures) = (sample("urls.txt"), sample("crawl.cdxj"));
    printed(&["canon", "-q", &urls, "--sort", "uri", "-o", &path("s.arrows")], b"");
    assert!(printed(&["check-sorted", &path("s.arrows")], b"").ends_with(" rows in order\n"));
    for name in ["t.arrows", "t.parquet"] {
        printed(&["canon", "-q", &captures, "-o", &path(name), "--columns", "+fetch_time"], b"");
        let ran = irikey(&["check-sorted", "--by", "-fetch_time", &path(name)], b"", Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(1), "{message}");
        assert!(message.contains("row 2: \"20") && message.contains(" comes after \"20"), "{message}");
    }
}

/// Which blocks of a sort have nulls depends on its memory and on `--resume`; the bytes do not.
#[test]
fn nulls_of_other_rows_do_not_change_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("a.txt"), (0..60_000).map(|i| format!("http://e.org/{i:06}\n")).collect::<String>()).unwrap();
    std::fs::write(path("b.txt"), "bad\n").unwrap();
    let (a, b) = (path("a.txt"), path("b.txt"));
    let [whole, resumed] = ["whole", "resumed"].map(path);
    let sorted = ["canon", "-q", &a, &b, "--sort", "uri", "--part-rows", "30000", "-o"];
    printed(&[&sorted[..], &[&whole]].concat(), b"");
    printed(&[&sorted[..], &[&resumed, "--resume"]].concat(), b"");
    let bytes = |folder: &str| {
        let parts = files_below(Path::new(folder)).into_iter();
        parts
            .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
            .map(|path| std::fs::read(path).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(bytes(&whole).len(), 3);
    assert!(bytes(&whole) == bytes(&resumed));
}

/// Names that readers of Hive partitions skip, or find twice.
#[test]
fn names_of_hive_directories_are_those_of_no_column() {
    for name in ["_x=1", ".x=1", "host_hash=9", "surt_range=9", "uri=x"] {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("t").display().to_string();
        let ran = irikey(&["canon", "-q", "-", "-o", &target, "--hive", name], b"http://a/\n", Stdio::null());
        assert_eq!(ran.status.code(), Some(2), "{name}");
    }
}

/// A message about long lines shows where they differ, and not all of them.
#[test]
fn messages_about_order_are_short() {
    let same = "a".repeat(100_000);
    let check = |lines: &str| {
        let ran = irikey(&["check-sorted", "-"], lines.as_bytes(), Stdio::null());
        assert_eq!(ran.status.code(), Some(1));
        String::from_utf8(ran.stderr).unwrap()
    };
    let message = check(&format!("{same}c{same}\n{same}b{same}\n"));
    assert!(message.len() < 600 && message.contains("aab") && message.contains("aac"), "{message}");
    assert_eq!(check("c\nb\n"), "irikey: -: row 2: \"b\" comes after \"c\"\n");
    let directory = tempfile::tempdir().unwrap();
    let table = directory.path().join("x.parquet").display().to_string();
    printed(&["canon", "-q", "-o", &table], format!("http://b/{same}\nhttp://a/{same}\n").as_bytes());
    let ran = irikey(&["check-sorted", "--by", "uri", &table], b"", Stdio::null());
    let message = String::from_utf8(ran.stderr).unwrap();
    assert!(message.len() < 1000 && message.contains("\"http://a/aa"), "{message}");
}

#[test]
fn the_report_of_a_resumed_job_is_about_all_inputs() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let inputs = ["a.txt", "b.txt"].map(path);
    std::fs::write(&inputs[0], "http://a/\nhttp://b/\n").unwrap();
    std::fs::write(&inputs[1], "http://a/\n\nx\n").unwrap();
    let (target, json, page) = (path("parts"), path("x.json"), path("x.html"));
    succeed(&resume(&inputs[..1], &target, &[]));
    succeed(&resume(&inputs, &target, &["--report", &json]));
    let examples = read_json(&json)["fault_examples"].clone();
    let example = |i: usize| (examples[i]["source"].clone(), examples[i]["record"].clone());
    assert_eq!([example(0), example(1)], [2, 3].map(|record| (inputs[1].clone().into(), record.into())));
    succeed(&resume(&inputs, &target, &["--report", &page]));
    let page = std::fs::read_to_string(page).unwrap();
    for (input, records) in inputs.iter().zip([2, 3]) {
        let row = format!("<th scope=\"row\">{input}</th><td>lines</td><td class=\"n\">{records}</td>");
        assert!(page.contains(&row), "{page}");
    }
    assert_eq!(read_json(&json)["input_formats"], serde_json::json!(["lines", "lines"]));
}

#[test]
fn a_job_with_another_policy_or_input_is_not_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = write_inputs(directory.path(), 10);
    let target = directory.path().join("out");
    let path = target.to_str().unwrap();
    succeed(&resume(&inputs[..2], path, &[]));
    let first = parts(&target);
    succeed(&resume(&inputs, path, &[]));
    assert!(parts(&target).len() == 6 && parts(&target)[..2] == first[..]);
    assert_rejected(
        &resume(&inputs, path, &["--strict"]),
        2,
        "made with intake \"lenient\", but this job has \"strict\"",
    );
    assert_rejected(&resume(&inputs, path, &["--columns", "uri"]), 2, "columns");
    assert_rejected(
        &resume(&inputs, path, &["--max-record", "1K"]),
        2,
        "made with max-record 134217728, but this job has 1024",
    );
    // A setting that is described only if it was chosen.
    let limited = directory.path().join("limited");
    succeed(&resume(&inputs, limited.to_str().unwrap(), &["--max-url", "1K"]));
    assert_rejected(&resume(&inputs, limited.to_str().unwrap(), &[]), 2, "made with max_url \"1024\"");
    let (archive, index) = (sample("crawl.warc.gz"), directory.path().join("index"));
    let flags = ["canon", "-q", "--resume", "--output-format", "cdxj", "-o", index.to_str().unwrap(), &archive];
    succeed(&flags);
    assert_rejected(&[&flags[..], &["--archive-paths"]].concat(), 2, "made with archive_paths false");
    std::fs::write(directory.path().join("in-3.txt"), "http://example.org/other\n").unwrap();
    assert_rejected(&resume(&inputs, path, &[]), 4, "in-3.txt: the input has changed since its part was made");
}

/// Numbers that were changed by hand, of inputs whose runs are not finished.
#[test]
fn changed_numbers_of_parts_lose_no_row() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = ["a", "b"].map(|name| directory.path().join(name).display().to_string());
    // Equal URIs, which are sorted by their inputs.
    let texts = ["http://example.org/\n", "HTTP://example.org/\n"];
    inputs.iter().zip(texts).for_each(|(input, text)| std::fs::write(input, text).unwrap());
    let target = directory.path().join("out");
    let (path, manifest) = (target.to_str().unwrap(), target.join("_runs/_manifest.json"));
    let job = resume(&inputs, path, &["--sort", "uri", "--columns", "source,input"]);
    succeed(&job);
    let (whole, text) = (parts(&target), std::fs::read_to_string(&manifest).unwrap());
    let change = |numbers: [u64; 2]| {
        let mut changed: serde_json::Value = serde_json::from_str(&text).unwrap();
        changed["merge"] = serde_json::Value::Null;
        let entries = changed["inputs"].as_object_mut().unwrap().values_mut();
        entries.zip(numbers).for_each(|(entry, number)| *entry = serde_json::json!({"part": number}));
        std::fs::write(&manifest, changed.to_string()).unwrap();
        // Without any part, the job would start again.
        std::fs::write(target.join("_runs/part-00077.runs"), "").unwrap();
        ["_manifest.json", "part-00000.jsonl"].iter().for_each(|name| std::fs::remove_file(target.join(name)).unwrap());
    };
    for numbers in [[1, 0], [1 << 32 | 1, 0], [1 << 24, 0]] {
        change(numbers);
        succeed(&job);
        assert!(parts(&target) == whole, "{numbers:?}: {:?}", parts(&target));
    }
    for numbers in [[0, 0], [0, u64::MAX]] {
        change(numbers);
        assert_rejected(&job, 2, "not a manifest of --resume (the part of");
        std::fs::write(target.join("_manifest.json"), "").unwrap();
        std::fs::write(target.join("part-00000.jsonl"), "").unwrap();
    }
}

/// What an earlier run could not read of an input is reported by every later run.
#[test]
fn errors_of_finished_inputs_are_reported_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let packed = gzip(&b"http://a/\n".repeat(1000));
    let inputs = ["a.txt", "b.txt.gz"].map(path);
    std::fs::write(&inputs[0], "http://a/\n").unwrap();
    std::fs::write(&inputs[1], &packed[..packed.len() - 9]).unwrap();
    let (target, report) = (path("parts"), path("report.json"));
    for _ in 0..2 {
        assert_rejected(&resume(&inputs, &target, &["--report", &report]), 4, "b.txt.gz");
        let sources = read_json(&report)["errors"].clone();
        assert!(sources.to_string().contains("b.txt.gz") && !sources.to_string().contains("a.txt\""), "{sources}");
    }
}

/// Members of a ZIP archive are inputs of their own.
#[test]
fn members_of_an_archive_are_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("parts");
    let job = ["canon", "-q", "-o", target.to_str().unwrap(), "--resume", "--output-format", "jsonl"];
    let input = directory.path().join("crawl.wacz");
    let archived = |name: &str| std::fs::read(sample(name)).unwrap();
    let members =
        [("archive/a.warc.gz", archived("crawl.warc.gz")), ("archive/b.warc.gz", archived("exchanges.warc.gz"))];
    std::fs::write(&input, crate::zip(&members)).unwrap();
    let job = [&job[..], &[input.to_str().unwrap()]].concat();
    succeed(&job);
    let whole = parts(&target);
    assert_eq!(whole.len(), 2);
    std::fs::remove_file(target.join(&whole[1].0)).unwrap();
    succeed(&job);
    assert!(parts(&target) == whole);
}

/// Nothing that was done is taken from a manifest of another version, or from a line of the log that changed.
#[test]
fn manifests_of_other_versions_and_changed_lines_are_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = write_inputs(directory.path(), 40_000);
    let [whole, target] = ["whole", "resumed"].map(|name| directory.path().join(name));
    succeed(&resume(&inputs, whole.to_str().unwrap(), &[]));
    let path = target.to_str().unwrap();
    let (manifest, log) = (target.join("_manifest.json"), target.join("_manifest.log"));
    let lines = || std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
    kill_in_time(&resume(&inputs, path, &[]), &target, || lines() >= 2);
    let text = std::fs::read_to_string(&log).unwrap();
    let first = text.find('\n').unwrap() + 1;
    std::fs::write(&log, text[..first].replacen("\"rows\":40000", "\"rows\":40001", 1) + &text[first..]).unwrap();
    assert!(std::fs::read_to_string(&log).unwrap() != text);
    succeed(&resume(&inputs, path, &[]));
    assert!(parts(&target) == parts(&whole));
    let text = std::fs::read_to_string(&manifest).unwrap();
    assert!(!text.contains("40001"), "the changed line was used: {text}");
    std::fs::write(&manifest, text.replacen("\"manifest_version\": 2", "\"manifest_version\": 3", 1)).unwrap();
    assert_rejected(&resume(&inputs, path, &[]), 2, "another manifest format");
    assert!(parts(&target) == parts(&whole));
}

#[test]
fn a_part_that_was_cut_short_is_not_finished() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = write_inputs(directory.path(), 100);
    for format in ["parquet", "arrow", "arrow-stream", "csv", "tsv", "jsonl", "text", "sorted"] {
        let target = directory.path().join(format);
        let path = target.to_str().unwrap();
        let flags = if format == "sorted" { ["--sort", "uri"] } else { ["--output-format", format] };
        let flags = ["canon", "-q", "-j", "2", "-o", path, "--resume"].into_iter().chain(flags);
        let job: Vec<&str> = flags.chain(inputs[..2].iter().map(String::as_str)).collect();
        succeed(&job);
        succeed(&job);
        let part = files_below(&target).into_iter().find(|path| path.to_string_lossy().contains("part-00000")).unwrap();
        if format == "sorted" {
            continue;
        }
        let whole = std::fs::read(&part).unwrap();
        std::fs::write(&part, &whole[1..]).unwrap();
        assert_rejected(&job, 2, &format!("has {} bytes, but was finished with {}", whole.len() - 1, whole.len()));
        std::fs::remove_file(&part).unwrap();
        succeed(&job);
        assert!(std::fs::read(&part).unwrap() == whole, "{format}");
    }
}

/// Runs the command; its exit code must be `status` and its message must contain `text`.
fn assert_rejected(arguments: &[&str], status: i32, text: &str) {
    let ran = irikey(arguments, b"", Stdio::piped());
    let error = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.code() == Some(status) && error.contains(text), "{error}");
}

/// Starts a job and kills it with SIGKILL when `is_reached` returns true. Returns whether the job was still running.
fn kill(arguments: &[&str], is_reached: impl Fn() -> bool) -> bool {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_irikey"));
    let mut child = command.args(arguments).spawn().unwrap();
    while !is_reached() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    // The process has no exit code if a signal ended it.
    let is_killed = status.code().is_none();
    assert!(is_killed || status.success(), "the job failed before it was killed: {status}");
    is_killed
}

/// Starts a job that writes to the directory `target`, as often as it ends before it is killed.
fn kill_in_time(arguments: &[&str], target: &Path, is_reached: impl Fn() -> bool) {
    let mut attempts = 1;
    while !kill(arguments, &is_reached) {
        assert!(attempts < 20, "the job always ended before it was killed");
        attempts += 1;
        std::fs::remove_dir_all(target).unwrap();
    }
}

/// Reports whether a part that was written after `started` exists below a directory. A running job may delete the entries
/// at any time.
fn has_part_since(directory: &Path, started: SystemTime) -> bool {
    std::fs::read_dir(directory).into_iter().flatten().flatten().any(|entry| {
        let is_part = entry.file_name().to_string_lossy().starts_with("part-0");
        let modified = || entry.metadata().and_then(|metadata| metadata.modified());
        (is_part && modified().is_ok_and(|modified| modified > started))
            || (entry.file_name() != "_runs" && has_part_since(&entry.path(), started))
    })
}

/// The names and contents of the files below a directory, without those of `_runs`.
fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let names = names(directory).into_iter().filter(|name| !name.starts_with("_runs"));
    names.map(|name| (name.clone(), std::fs::read(directory.join(name)).unwrap())).collect()
}

#[test]
fn a_killed_sort_is_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = write_inputs(directory.path(), 8_000);
    let settings: [(&str, &[&str]); 3] = [
        // All rows are equal in these columns: the order is that of the inputs.
        ("parquet", &["--sort", "url_host_name,-fetch_time", "--part-rows", "12000"]),
        ("jsonl", &["--sort", "-uri", "--part-rows", "12000", "--hive", "crawl=A"]),
        ("parquet", &["--partition", "surt:4"]),
    ];
    let mut merge_kill_counts = [0; 2];
    for (i, (format, how)) in settings.into_iter().enumerate() {
        let [whole, target] = ["whole", "resumed"].map(|name| directory.path().join(format!("{name}-{i}")));
        let job = |target: &Path, more: &[&str]| -> Vec<String> {
            let flags = ["canon", "-q", "--output-format", format, "--columns", "source,record,uri", "--threads", "2"];
            let flags = flags.into_iter().chain(how.iter().copied()).chain(more.iter().copied());
            let target = ["-o".to_string(), target.display().to_string()];
            flags.map(str::to_string).chain(target).chain(inputs.iter().cloned()).collect()
        };
        let texts = |job: &'_ [String]| job.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let [plain, resumed] = [texts(&job(&whole, &[])), texts(&job(&target, &["--resume"]))];
        let [plain, resumed] = [&plain, &resumed].map(|job| job.iter().map(String::as_str).collect::<Vec<_>>());
        succeed(&plain);
        let runs = target.join("_runs");
        kill(&resumed, || runs.join("part-00001.runs").exists());
        let manifest = || std::fs::read_to_string(runs.join("_manifest.json")).unwrap_or_default();
        // Kills two jobs during the merge. The second job deletes the parts of the first and merges again.
        for kill_count in &mut merge_kill_counts {
            let started = SystemTime::now();
            let is_merging = || manifest().contains("\"merge\": \"merging\"") && has_part_since(&target, started);
            *kill_count += u32::from(kill(&resumed, is_merging));
        }
        succeed(&resumed);
        assert!(contents(&target) == contents(&whole), "{how:?}");
        assert_eq!(names(&runs), ["_manifest.json"]);
        // A finished job does not write its files again.
        let modified = |name: &String| std::fs::metadata(target.join(name)).unwrap().modified().unwrap();
        let times: Vec<_> = contents(&target).iter().map(|(name, _)| modified(name)).collect();
        succeed(&resumed);
        assert!(contents(&target).iter().map(|(name, _)| modified(name)).eq(times));
    }
    assert!(merge_kill_counts.iter().all(|count| *count > 0), "the jobs ended before the kills: {merge_kill_counts:?}");
}

#[test]
fn a_job_with_another_order_or_list_of_inputs_is_not_resumed() {
    let directory = tempfile::tempdir().unwrap();
    let inputs = write_inputs(directory.path(), 10);
    let target = directory.path().join("out");
    let path = target.to_str().unwrap();
    succeed(&resume(&inputs, path, &["--sort", "uri"]));
    assert_rejected(
        &resume(&inputs, path, &["--sort", "-uri"]),
        2,
        "made with sort \"uri\", but this job has \"-uri\"",
    );
    assert_rejected(
        &resume(&inputs, path, &["--sort", "uri", "--part-rows", "5"]),
        2,
        "made with part_rows null, but this job has 5",
    );
    assert_rejected(
        &resume(&inputs[1..], path, &["--sort", "uri"]),
        2,
        "of other inputs, or of these in another order",
    );
    let twice = [&inputs[..1], &inputs[..1]].concat();
    assert_rejected(&resume(&twice, directory.path().join("b").to_str().unwrap(), &[]), 2, "name it once");
    assert_rejected(&resume(&inputs, path, &["--part-rows", "5"]), 2, "remove --part-rows and --hive, or add --sort");
    for name in ["part-00000.jsonl", "_manifest.json"] {
        let finished = std::fs::read(target.join(name)).unwrap();
        std::fs::remove_file(target.join(name)).unwrap();
        let lost = format!("{name}: the file was finished, but no longer exists");
        assert_rejected(&resume(&inputs, path, &["--sort", "uri"]), 2, &lost);
        if name.starts_with("part-") {
            std::fs::write(target.join(name), &finished[1..]).unwrap();
            let message = format!("has {} bytes instead of {} now", finished.len() - 1, finished.len());
            assert_rejected(&resume(&inputs, path, &["--sort", "uri"]), 2, &message);
        }
        std::fs::write(target.join(name), finished).unwrap();
        succeed(&resume(&inputs, path, &["--sort", "uri"]));
    }
    std::fs::remove_file(target.join("part-00000.jsonl")).unwrap();
    std::fs::write(directory.path().join("in-3.txt"), "http://example.org/other\n").unwrap();
    assert_rejected(
        &resume(&inputs, path, &["--sort", "uri"]),
        4,
        "in-3.txt: the input has changed since its part was made",
    );
}
