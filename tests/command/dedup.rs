//! Tests of `irikey dedup`, `count` and `seen`: results, memory limits, seen stores, and processes that are killed
//! while they update a store.

use super::{gzip, irikey, parse_json_lines, printed, read_json};
use arrow::array::ArrayRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Returns lines of which some are duplicates, in other spellings too, and some are faulty.
fn lines(from: u64, count: u64) -> Vec<u8> {
    let line = |i: u64| match i % 10 {
        0 => format!("HTTP://Example.org:80/{:x}\n", i / 3),
        1 | 2 => format!("http://example.org/{:x}\n", i / 3),
        3 => format!("http://[bad/{}\n", i % 7),
        _ => format!("https://www.example.com/path/{:x}?q=1\n", i * 2_654_435_761 % (count + 1)),
    };
    (from..from + count).map(line).collect::<String>().into_bytes()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn output_bytes_do_not_depend_on_threads_and_memory() {
    let directory = tempfile::tempdir().unwrap();
    let (input, tmp) = (directory.path().join("urls.txt"), directory.path().join("tmp"));
    fs::write(&input, lines(0, 100_000)).unwrap();
    fs::create_dir(&tmp).unwrap();
    let settings: [&[&str]; 5] = [
        &["--threads", "1"],
        &["--threads", "2", "--chunk-size", "10K"],
        &["--threads", "16"],
        &["--threads", "1", "--memory", "18M"],
        &["--threads", "5", "--memory", "19.5M", "--no-mmap"],
    ];
    for (keep, suffixes) in
        [("first", &["parquet", "arrow", "txt"][..]), ("last", &["parquet", "csv"]), ("best", &["parquet"])]
    {
        for suffix in suffixes {
            let mut first = None;
            for setting in settings {
                let (out, report) =
                    (directory.path().join("out").with_extension(suffix), directory.path().join("x.json"));
                let flags = ["dedup", "-q", text(&input), "-o", text(&out), "--row-group-size", "30K", "--keep", keep];
                let more = ["--tmp", text(&tmp), "--report", text(&report)];
                printed(&[&flags[..], &more, setting].concat(), b"");
                let bytes = fs::read(&out).unwrap();
                assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{suffix} {setting:?}");
                let report = read_json(report);
                let count = |name: &str| report["dedup"][name].as_u64().unwrap();
                assert_eq!(count("kept") + count("duplicates") + count("faulty"), 100_000);
                // The file is read a second time, so that only keys can be in temporary files.
                assert_eq!(
                    report["temporary_bytes"].as_u64().unwrap() > 0,
                    setting.contains(&"--memory"),
                    "{keep} {setting:?}"
                );
                assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
            }
        }
    }
}

/// Rows of a pipe wait in a temporary file. Some row groups have no row that is kept, and most that have one have lost some.
#[test]
fn output_bytes_do_not_depend_on_whether_rows_wait() {
    let directory = tempfile::tempdir().unwrap();
    let often = |count: usize| b"http://example.org/often/in/many/row/groups\n".repeat(count);
    let input = [often(2_000), lines(0, 60_000), often(2_000), lines(0, 1_000)].concat();
    for suffix in ["parquet", "arrow"] {
        for keep in ["first", "last"] {
            let out = directory.path().join("out").with_extension(suffix);
            let flags = ["dedup", "-q", "-", "-o", text(&out), "--row-group-size", "9K", "--keep", keep];
            let bytes = |setting: &[&str]| {
                printed(&[&flags[..], &["--keep-faulty"], setting].concat(), &input);
                fs::read(&out).unwrap()
            };
            let expected = bytes(&[]);
            assert!(bytes(&["--verify"]) == expected, "{suffix} {keep}");
            assert!(bytes(&["--memory", "17700K"]) == expected, "{suffix} {keep}");
        }
    }
}

/// Parts have whole row groups, so where they end depends on the input alone, too.
#[test]
fn parts_have_the_rows_of_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let (out, input) = (directory.path().join("out"), lines(0, 60_000));
    let read = |name: &str, setting: &[&str]| -> Vec<(u64, Vec<u8>)> {
        let _ = fs::remove_dir_all(&out);
        let flags = ["dedup", "-q", "-", "-o", text(&out), "--row-group-size", "20K", "--keep-faulty"];
        printed(&[&flags[..], &["--part-rows", "5000", "--output-format", name], setting].concat(), &input);
        let manifest = read_json(out.join("_manifest.json"));
        let part = |part: &serde_json::Value| {
            let bytes = fs::read(out.join(part["path"].as_str().unwrap())).unwrap();
            assert_eq!(part["bytes"], bytes.len());
            (part["rows"].as_u64().unwrap(), bytes)
        };
        manifest["parts"].as_array().unwrap().iter().map(part).collect()
    };
    let whole = printed(&["dedup", "-q", "--keep-faulty"], &input);
    for name in ["text", "parquet"] {
        let parts = read(name, &["--threads", "1"]);
        let rows: Vec<_> = parts.iter().map(|(rows, _)| *rows).collect();
        let (last, others) = rows.split_last().unwrap();
        // A row group has at most 1,000 rows: 20 KiB of lines with 20 bytes and more, and as many of those before it.
        assert!(others.len() > 3 && *last > 0 && others.iter().all(|rows| (5_000..7_000).contains(rows)), "{rows:?}");
        if name == "text" {
            let text: Vec<u8> = parts.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
            assert!(text == whole.as_bytes());
        }
        // Rows in temporary files.
        for setting in [&["--threads", "7"][..], &["--threads", "2", "--memory", "17700K"], &["--verify"]] {
            assert!(read(name, setting) == parts, "{name} {setting:?}");
        }
    }
}

#[test]
fn a_directory_has_a_part_without_rows_and_no_tables() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (out, table) = (path("out/"), path("out/twice.parquet"));
    let flags = ["dedup", "-q", "-o", &out, "--columns", "uri"];
    let refused = irikey(&[&flags[..], &["--duplicates", &table]].concat(), b"", Stdio::null());
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && message.contains("in the directory of -o"), "{message}");
    assert!(!Path::new(&out).exists());
    let report = path("x.json");
    printed(&[&flags[..], &["--report", &report]].concat(), b"");
    assert_eq!(read_json(&report)["files"].as_array().unwrap().len(), 1);
    assert_eq!(printed(&["canon", "-q", &out], b""), "");
    let again = irikey(&flags, b"", Stdio::null());
    assert_eq!(again.status.code(), Some(2), "the directory has a part");
}

/// Each row group of these files has a dictionary of its own, and an Arrow file has one for all.
#[test]
fn files_with_keys_are_written_as_arrow() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let files = [("a", 0), ("b", 2_500)].map(|(name, from)| {
        let (input, table) = (at(name), at(&format!("{name}.parquet")));
        fs::write(&input, lines(from, 5_000)).unwrap();
        printed(&["canon", "-q", &input, "-o", &table, "--row-group-size", "9K"], b"");
        (input, table)
    });
    let flags = ["--keep-faulty", "--row-group-size", "9K"];
    let rows = |inputs: [&str; 2], name: &str| {
        let out = at(name);
        printed(&[&["dedup", "-q", inputs[0], inputs[1], "-o", &out], &flags[..]].concat(), b"");
        let read = |file| arrow::ipc::reader::FileReader::try_new(file, None).unwrap();
        let texts = |batch: arrow::array::RecordBatch| {
            let text = |column: &ArrayRef, row| arrow::util::display::array_value_to_string(column, row).unwrap();
            (0..batch.num_rows()).map(|row| batch.columns().iter().map(|column| text(column, row)).collect()).collect()
        };
        let batches = read(fs::File::open(&out).unwrap());
        batches.flat_map(|batch| -> Vec<Vec<String>> { texts(batch.unwrap()) }).collect::<Vec<_>>()
    };
    let [(a, a_table), (b, b_table)] = &files;
    let expected = rows([a, b], "direct.arrow");
    assert!(expected.len() > 1_000 && rows([a_table, b_table], "keyed.arrow") == expected);
}

/// The records that a policy keeps, computed from the times and statuses that `canon` writes.
fn expected_records(rows: &[serde_json::Value], keep: &str, key: &str) -> Vec<u64> {
    let mut best: BTreeMap<&str, (Vec<String>, u64)> = BTreeMap::new();
    for (i, row) in rows.iter().enumerate().filter(|(_, row)| row["fault"].is_null()) {
        let (time, uri) = (row["fetch_time"].as_str().unwrap_or(""), row["uri"].as_str().unwrap());
        // Complements each digit, so that the newest time sorts first. A missing time sorts last.
        let newest: String = time.chars().map(|c| c.to_digit(10).map_or(c, |d| char::from(b'9' - d as u8))).collect();
        let last = |text: String| if time.is_empty() { "~".to_string() } else { text };
        let status = match row["fetch_status"].as_i64() {
            Some(status @ 200..600) => status / 100,
            Some(_) => 6,
            None => 7,
        };
        let scheme = if uri.starts_with("https:") { "0" } else { "1" };
        let rank = match keep {
            "newest" => vec![last(newest)],
            "oldest" => vec![last(time.to_string())],
            _ => vec![status.to_string(), last(newest), scheme.into(), format!("{:9}", uri.len()), uri.to_string()],
        };
        let mine = (rank, i as u64 + 1);
        let place = best
            .entry(row[key].as_str().unwrap_or_else(|| row["key"].as_str().unwrap()))
            .or_insert_with(|| mine.clone());
        *place = place.clone().min(mine);
    }
    let mut records: Vec<u64> = best.into_values().map(|(_, record)| record).collect();
    records.sort_unstable();
    records
}

/// The policies compare times and statuses, in every format that has them.
#[test]
fn newest_oldest_and_best_of_every_format() {
    let directory = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/samples");
    let table = directory.path().join("crawl.parquet");
    let (twice, names) = (directory.path().join("twice.cdx"), ["fetch_time", "fetch_status"]);
    let index = fs::read(samples.join("crawl.cdx")).unwrap();
    // The same captures again, later and with lower ranks.
    let again = String::from_utf8_lossy(&index).lines().skip(1).fold(String::new(), |text, line| {
        let mut fields: Vec<_> = line.split(' ').collect();
        if fields.len() > 4 {
            (fields[1], fields[4]) = ("20300101000000", ["-", "404", "200"][text.len() % 3]);
        }
        text + &fields.join(" ") + "\n"
    });
    fs::write(&twice, [&index, again.as_bytes()].concat()).unwrap();
    let columns = "record,url_surtkey,uri,key,fault,key_surt_wayback,fetch_time,fetch_status";
    let base = ["--base", "http://www.example.org/"];
    printed(&[&["canon", "-q", text(&twice), "-o", text(&table), "--columns", columns], &base[..]].concat(), b"");
    let mut outcomes = BTreeSet::new();
    let samples_with_both = ["crawl.cdxj", "crawl.log", "crawl.warc.gz", "crawl.jsonl", "crawl.access.log"];
    for path in samples_with_both.map(|name| samples.join(name)).iter().chain([&twice, &table]) {
        // The keys of the table are those of its source.
        let source = if *path == table { &twice } else { path };
        let all = ["canon", "-q", text(source), "--output-format", "jsonl", "--columns", columns];
        let all = printed(&[&all[..], &base].concat(), b"");
        let rows = parse_json_lines(&all);
        assert!(names.iter().all(|name| rows.iter().any(|row| !row[*name].is_null())), "{path:?}");
        for (keep, key) in [("newest", "key"), ("oldest", "key"), ("best", "key"), ("best", "key_surt_wayback")] {
            let expected = expected_records(&rows, keep, key);
            let by: &[&str] = if key == "key" { &["--verify"] } else { &["--key", "surt-wayback"] };
            for setting in [&["--threads", "1"][..], &["--threads", "16", "--row-group-size", "2K"]] {
                let flags =
                    ["dedup", "-q", text(path), "--keep", keep, "--output-format", "jsonl", "--columns", "record"];
                let kept = printed(&[&flags[..], &base, by, setting].concat(), b"");
                let record = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["record"].as_u64();
                assert_eq!(
                    kept.lines().filter_map(record).collect::<Vec<_>>(),
                    expected,
                    "{path:?} {keep} {key} {setting:?}"
                );
            }
            outcomes.insert(expected);
        }
    }
    assert!(outcomes.len() >= 7, "the policies give different results: {}", outcomes.len());
}

/// `dedup` reads tables that `canon` wrote with their keys and keeps the same rows as from the sources.
#[test]
fn tables_with_keys_give_the_same_rows_as_their_sources() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let (a, b, a_table, b_table) = (at("a.txt"), at("b.txt"), at("a.parquet"), at("b.parquet"));
    fs::write(&a, lines(0, 9_000)).unwrap();
    fs::write(&b, lines(3_000, 12_000)).unwrap();
    for (file, table) in [(&a, &a_table), (&b, &b_table)] {
        printed(&["canon", "-q", file, "-o", table, "--row-group-size", "40K", "--key", "simple"], b"");
    }
    let columns = "source,record,record_offset,input,uri,key,key_simple,fault,fault_at,flags";
    let more = ["--output-format", "jsonl", "--columns", columns];
    for flags in [&["--keep-faulty"][..], &["--keep", "last"], &["--verify"], &["--key", "simple"]] {
        let expected = printed(&[&["dedup", "-q", &a, &b], &more[..], flags].concat(), b"");
        assert!(expected.lines().count() > 3_000);
        for setting in [
            &["--threads", "1"][..],
            &["--threads", "16"],
            &["--threads", "2", "--memory", "20M", "--row-group-size", "9K"],
        ] {
            let kept = printed(&[&["dedup", "-q", &a_table, &b_table], &more[..], flags, setting].concat(), b"");
            assert!(kept == expected, "{flags:?} {setting:?}");
        }
    }
    // By default the columns are those of the file, and the output is valid input, also with a store.
    let (once, twice, store) = (at("once.parquet"), at("twice.parquet"), at("seen"));
    printed(&["dedup", "-q", &a_table, &b_table, "-o", &once], b"");
    printed(&["dedup", "-q", &once, "-o", &twice, "--seen", &store, "--update-seen"], b"");
    let rows = |path: &str| printed(&["dedup", "-q", path, "--output-format", "jsonl"], b"");
    assert!(rows(&once) == rows(&twice) && rows(&once).contains("key_simple"));
    assert_eq!(printed(&["dedup", "-q", &a, &b, "--seen", &store], b""), "");
}

/// A URL without a key of the recipe is compared by its URI, also if its row has no other key.
#[test]
fn rows_without_a_key_of_the_recipe_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let input = b"http://a/1\nmailto:x@y\nhttp://a/1/\nurn:a:b\n../x\nMAILTO:x@y\n";
    let (with_uri, bare) = (at("uri.parquet"), at("bare.parquet"));
    printed(&["canon", "-q", "-o", &with_uri, "--columns", "key_surt_wayback,uri"], input);
    printed(&["canon", "-q", "-o", &bare, "--columns", "key_surt_wayback,fault"], input);
    let flags = ["dedup", "-q", "--key", "surt-wayback", "--columns", "uri", "--output-format", "jsonl"];
    let direct = printed(&flags, input);
    assert_eq!(direct.lines().count(), 3);
    assert_eq!(printed(&[&flags[..], &[&with_uri]].concat(), b""), direct);
    let refused = ["dedup", "-q", "--key", "surt-wayback", "--output-format", "csv", &bare];
    let ran = irikey(&refused, b"", Stdio::piped());
    let message = String::from_utf8(ran.stderr).unwrap();
    assert!(ran.status.code() == Some(2) && message.contains("the file has no column key"), "{message}");
}

/// The faults of rows are known from one column in one file, and from another column in the next.
#[test]
fn rows_with_a_fault_are_found_in_files_of_different_columns() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let (by_fault, by_uri) = (at("fault.parquet"), at("uri.parquet"));
    let input = b"http://a/1\n../x\nhttp://a/2\n../x\n";
    printed(&["canon", "-q", "-o", &by_fault, "--columns", "key,fault"], input);
    printed(&["canon", "-q", "-o", &by_uri, "--columns", "key,uri"], input);
    let flags = ["dedup", "-q", "--columns", "key", "--output-format", "csv"];
    let expected = printed(&flags, input);
    assert_eq!(expected.lines().count(), 3);
    for files in [[&by_fault, &by_uri], [&by_uri, &by_fault]] {
        let files = files.map(String::as_str);
        assert_eq!(printed(&[&flags[..], &files].concat(), b""), expected);
    }
}

#[test]
fn tables_with_other_keys_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let (plain, syntax, blake, bare) = (at("p.parquet"), at("s.parquet"), at("b.parquet"), at("bare.parquet"));
    let input = b"http://a:80/\nhttp://a/\nhttp://a/\n";
    let canon = |out: &str, flags: &[&str]| printed(&[&["canon", "-q", "-o", out], flags].concat(), input);
    canon(&plain, &[]);
    canon(&syntax, &["--rung", "syntax"]);
    canon(&blake, &["--key-hash", "blake3"]);
    canon(&bare, &["--columns", "uri"]);
    let rejected: [(&[&str], &str); 7] = [
        (&[&syntax], r#"rung is "syntax" in the file and "scheme" in this run"#),
        (&[&blake], "key is"),
        (&[&plain, &syntax], "s.parquet: the keys of the file were made with other settings"),
        (&[&bare], "the file has no column key"),
        (&[&plain, "-"], "the input - is not a Parquet file with keys"),
        (&[&plain, "--keep", "newest"], "the file has no column fetch_time"),
        (&[&plain, "--key", "surt-wayback"], "recipes is"),
    ];
    for (flags, expected) in rejected {
        let ran = irikey(&[&["dedup", "-q"], flags].concat(), b"", Stdio::piped());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!((ran.status.code(), ran.stdout.len()), (Some(2), 0), "{flags:?}: {message}");
        assert!(message.contains(expected), "{flags:?}: {message}");
    }
    // The advice of the messages works.
    assert_eq!(printed(&["dedup", "-q", &syntax, "--rung", "syntax"], b""), "http://a:80/\nhttp://a/\n");
    assert_eq!(printed(&["dedup", "-q", &blake, "--key-hash", "blake3"], b""), "http://a/\n");
    assert_eq!(printed(&["dedup", "-q", &plain, &syntax, &bare, "--column", "uri"], b""), "http://a/\n");
    // A damaged table stops the run.
    let mut bytes = fs::read(&plain).unwrap();
    bytes[30..60].fill(0xff);
    fs::write(&plain, bytes).unwrap();
    let out = at("out.parquet");
    let ran = irikey(&["dedup", "-q", &plain, "-o", &out], b"", Stdio::null());
    assert!(ran.status.code() == Some(4) && !Path::new(&out).exists());
}

/// Keys that were made with one set of flags are not compared with those of another set, whichever was first.
#[test]
fn stores_and_keyed_files_belong_to_the_flags_that_change_keys() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let status = |arguments: &[&str]| {
        let ran = irikey(arguments, b"http://a/\n", Stdio::null());
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    let sets = [
        "",
        "--max-url 100",
        "--max-url 50",
        "--max-record 100",
        "--assume-scheme https",
        "--trim",
        "--inner-spaces remove",
        "--inner-spaces split",
        "--character-references xml",
        "--backslashes slash",
        "--charset windows-1251",
        "--query-charset koi8-r",
        "--base http://a/",
        "--base http://a/ --literal-base",
        "--strict",
        "--rung syntax",
        "--profile weber-00",
        "--key-hash blake3",
        "--drop-fragment",
        "--key simple",
        "--key surt-ia",
        "--key rules --rules +www",
        "--key rules --rules +fragment",
    ]
    .map(|flags| flags.split_whitespace().collect::<Vec<_>>());
    for (number, first) in sets.iter().enumerate() {
        let (store, keyed) = (at(&format!("store{number}")), at(&format!("keyed{number}.parquet")));
        let dedup = ["dedup", "-q", "-o", &at("out.txt"), "--seen", &store];
        assert_eq!(status(&[&dedup[..], &["--update-seen"], first].concat()).0, Some(0));
        assert_eq!(status(&[&["canon", "-q", "-o", &keyed], &first[..]].concat()).0, Some(0));
        for second in &sets {
            let (code, message) = status(&[&dedup[..], second].concat());
            assert_eq!(code, Some(if first == second { 0 } else { 2 }), "{first:?} {second:?}: {message}");
            // The file has a key of the rung, whatever other keys it has, and does not list the length of records.
            let is_comparable = |flags: &[&str]| matches!(flags, [] | ["--key" | "--max-record", ..]);
            let is_refused = !is_comparable(first) || !is_comparable(second);
            if first == second || is_refused && !second.contains(&"--key") {
                let dedup = ["dedup", "-q", &keyed, "-o", &at("out.parquet")];
                let (code, message) = status(&[&dedup[..], second].concat());
                assert_eq!(code, Some(if first == second { 0 } else { 2 }), "{first:?} {second:?}: {message}");
                assert_eq!(message.contains("made with other settings"), first != second, "{message}");
            }
        }
    }
}

/// Only columns depend on the suffix list, so a file that was made with another list has the same keys.
#[test]
fn keys_do_not_depend_on_the_suffix_list() {
    let directory = tempfile::tempdir().unwrap();
    let [list, keyed] = ["list.dat", "keyed.parquet"].map(|name| text(&directory.path().join(name)).to_string());
    fs::write(&list, "// ===BEGIN ICANN DOMAINS===\nexample\n").unwrap();
    let canon =
        ["canon", "-q", "-o", &keyed, "--key", "surt-ia", "--columns", "+url_host_registry_suffix", "--psl", &list];
    printed(&canon, b"http://a.example/\nhttp://www.a.example/\n");
    assert_eq!(printed(&["dedup", "-q", &keyed, "--key", "surt-ia"], b""), "http://a.example/\n");
    assert_eq!(printed(&["dedup", "-q", &keyed], b"").lines().count(), 2);
}

/// The bytes of a limit such as `48M` or `1G`.
#[cfg(target_os = "linux")]
fn bytes_of(limit: &str) -> u64 {
    let (number, unit) = limit.split_at(limit.len() - 1);
    number.parse::<u64>().unwrap() << if unit == "G" { 30 } else { 20 }
}

/// With any flags, anonymous memory stays within the limit, and the output equals that of a run without a limit.
#[cfg(target_os = "linux")]
#[test]
fn memory_stays_within_its_limit() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let (input, out, report, store) = (at("urls.txt"), at("out.parquet"), at("report.json"), at("seen"));
    fs::write(&input, lines(0, 600_000)).unwrap();
    printed(&["dedup", "-q", "-o", &out, "--seen", &store, "--update-seen"], &lines(300_000, 400_000));
    printed(&["dedup", "-q", "-o", &out, "--report", &report], b"http://a/\n");
    let program = read_json(&report)["peak_memory_bytes"].as_u64().unwrap();
    let (duplicates, groups) = (at("duplicates.parquet"), at("groups.parquet"));
    let jobs: [&[&str]; 7] = [
        &[],
        &["--survey"],
        &["--survey", "--duplicates", &duplicates, "--groups", &groups],
        &["--keep", "last"],
        &["--keep", "best", "--verify"],
        &["--seen", &store],
        &["--no-mmap", "--keep-faulty"],
    ];
    for job in jobs {
        let mut whole = None;
        // Keys alone would take 9 MB, a survey takes 36 MB, and each table 24 MB.
        let limits = match job {
            ["--survey"] => ["1G", "84M", "72M"],
            ["--survey", ..] => ["1G", "132M", "120M"],
            _ => ["1G", "48M", "32M"],
        };
        for limit in limits {
            let flags = ["dedup", "-q", &input, "-o", &out, "--tmp", text(directory.path()), "--report", &report];
            let more = ["--row-group-size", "1M", "--memory", limit];
            printed(&[&flags[..], &more, job].concat(), b"");
            let report = read_json(&report);
            let peak = report["peak_anonymous_bytes"].as_u64().unwrap();
            let allowed = bytes_of(limit);
            println!("{job:?} {limit}: {} threads, {:.1} MiB", report["threads"], peak as f64 / f64::from(1 << 20));
            assert!(peak <= allowed, "{job:?}: {peak} bytes of {allowed}");
            // Anonymous memory is sampled. The peak of resident memory is exact, but has the pages of the program.
            let resident = report["peak_memory_bytes"].as_u64().unwrap().saturating_sub(program);
            assert!(resident <= allowed, "{job:?}: {resident} bytes of {allowed}");
            assert!(
                *whole.get_or_insert_with(|| fs::read(&out).unwrap()) == fs::read(&out).unwrap(),
                "{job:?} {limit}"
            );
        }
    }
}

/// A worker reads a whole row group of a file with keys, however long the row groups of the output are.
#[test]
fn long_row_groups_of_files_with_keys_need_memory() {
    let directory = tempfile::tempdir().unwrap();
    let [rows, out] = ["rows.parquet", "out.parquet"].map(|name| text(&directory.path().join(name)).to_string());
    let canon = |len: &str| printed(&["canon", "-q", "-o", &rows, "--row-group-size", len], &lines(0, 100_000));
    let dedup = |limit: &str| {
        let flags = ["dedup", "-q", &rows, "-o", &out, "--row-group-size", "64K", "--memory", limit];
        irikey(&flags, b"", Stdio::null())
    };
    canon("64K");
    assert_eq!(dedup("24M").status.code(), Some(0));
    canon("64M");
    let refused = dedup("24M");
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.status.code() == Some(2) && message.contains("set --memory to "), "{message}");
    assert_eq!(dedup("64M").status.code(), Some(0));
}

/// New keys of many threads stay within the limit, whether they fit into memory while records are read or not.
#[cfg(target_os = "linux")]
#[test]
fn memory_of_new_keys_stays_within_its_limit() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let (input, out, report) = (at("urls.txt"), at("out.txt"), at("report.json"));
    fs::write(&input, lines(0, 1_000_000)).unwrap();
    let mut whole = None;
    // The new keys take 16 MB, and 22 MB in the key set.
    for (limit, threads) in [("1G", "2"), ("56M", "64"), ("32M", "32")] {
        let store = at(&format!("seen-{limit}"));
        let flags = ["dedup", "-q", &input, "-o", &out, "--seen", &store, "--update-seen", "--report", &report];
        let more = ["--row-group-size", "16K", "--no-mmap", "--memory", limit, "-j", threads];
        printed(&[&flags[..], &more, &["--tmp", text(directory.path())]].concat(), b"");
        let peak = read_json(&report)["peak_anonymous_bytes"].as_u64().unwrap();
        let allowed = bytes_of(limit);
        println!("{limit}: {:.1} MiB", peak as f64 / f64::from(1 << 20));
        assert!(peak <= allowed, "{limit}: {peak} bytes of {allowed}");
        let keys = fs::read(Path::new(&store).join("run-000001")).unwrap();
        assert!(*whole.get_or_insert_with(|| keys.clone()) == keys, "{limit}");
    }
}

/// The tables of a long stretch of duplicates, 150 MB here, are written while the duplicates are read back.
#[cfg(target_os = "linux")]
#[test]
fn tables_of_many_duplicates_need_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let (input, out, report, duplicates) =
        (at("urls.txt"), at("out.parquet"), at("report.json"), at("duplicates.parquet"));
    fs::write(&input, (0..100_000).map(|i| format!("http://example.org/{i}\n")).collect::<String>()).unwrap();
    let copies: Vec<String> = (0..9).map(|i| at(&format!("copy{i}.txt"))).collect();
    copies.iter().for_each(|copy| fs::copy(&input, copy).map(drop).unwrap());
    let inputs: Vec<&str> = [&input].into_iter().chain(&copies).map(String::as_str).collect();
    let flags = ["-q", "-o", &out, "--duplicates", &duplicates, "--report", &report, "--tmp", text(directory.path())];
    printed(&[&["dedup"], &inputs[..], &flags, &["--row-group-size", "1M", "--memory", "80M", "-j1"]].concat(), b"");
    let report = read_json(&report);
    let counts = &report["dedup"];
    assert_eq!((&counts["kept"], &counts["duplicates"]), (&100_000.into(), &900_000.into()));
    let peak = report["peak_anonymous_bytes"].as_u64().unwrap();
    assert!(peak <= 80 << 20, "{peak}");
}

/// Anonymous memory of a comparison of keys stays within the limit, and the result does not depend on it, on threads or on
/// chunks.
#[cfg(target_os = "linux")]
#[test]
fn memory_of_diff_stays_within_its_limit() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let (input, report) = (at("urls.txt"), at("report.json"));
    fs::write(&input, lines(0, 150_000)).unwrap();
    printed(&["diff", "-q", "--key", "scheme,simple", "--report", &report], b"http://a/\n");
    let program = read_json(&report)["peak_memory_bytes"].as_u64().unwrap();
    for keys in ["scheme,simple", "surt-wayback,scheme"] {
        let mut whole = None;
        let limits = [("1G", "2", "1M"), ("56M", "4", "10K"), ("30M", "1", "1M")];
        for (limit, threads, chunk) in limits {
            let flags = ["diff", "-q", &input, "--key", keys, "--tmp", text(directory.path()), "--report", &report];
            let more = ["--memory", limit, "--threads", threads, "--chunk-size", chunk, "--json"];
            let found = printed(&[&flags[..], &more].concat(), b"");
            let report = read_json(&report);
            let allowed = bytes_of(limit);
            let peak = report["peak_anonymous_bytes"].as_u64().unwrap();
            println!("{keys} {limit}: {:.1} MiB", peak as f64 / f64::from(1 << 20));
            assert!(peak <= allowed, "{keys}: {peak} bytes of {allowed}");
            let resident = report["peak_memory_bytes"].as_u64().unwrap().saturating_sub(program);
            assert!(resident <= allowed, "{keys}: {resident} bytes of {allowed}");
            assert_eq!(report["temporary_bytes"].as_u64().unwrap() > 0, limit != "1G", "{keys} {limit}");
            assert!(*whole.get_or_insert_with(|| found.clone()) == found, "{keys} {limit}");
        }
    }
}

/// If most rows are duplicates, an output row group has the kept rows of several input row groups: at least half of the
/// rows of an input row group, with or without temporary files.
#[test]
fn row_groups_are_not_small_if_few_rows_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let (input, table, out, report) = (at("urls.txt"), at("table.parquet"), at("out.parquet"), at("report.json"));
    let number = |i: u64| if i.is_multiple_of(4) { i } else { i % 999 };
    let lines: String = (0..300_000).map(|i| format!("http://example.org/{:06}\n", number(i))).collect();
    fs::write(&input, lines).unwrap();
    printed(&["canon", "-q", &input, "-o", &table, "--row-group-size", "26K"], b"");
    let settings: [&[&str]; 4] = [
        &["--threads", "1"],
        &["--threads", "16"],
        &["--threads", "1", "--memory", "18M"],
        &["--threads", "2", "--keep", "last"],
    ];
    for source in [&input, &table] {
        let mut first = None;
        for setting in settings {
            let flags = ["dedup", "-q", source, "-o", &out, "--row-group-size", "26K", "--report", &report];
            printed(&[&flags[..], setting].concat(), b"");
            let bytes = fs::read(&out).unwrap();
            let report = read_json(&report);
            let is_first = !setting.contains(&"last");
            let has_spilled = report["temporary_bytes"].as_u64().unwrap() > 0;
            // Rows of tables of keys wait in a temporary file; other files are read a second time.
            let has_waiting_rows = !is_first && source == &table;
            assert_eq!(has_spilled, has_waiting_rows || setting.contains(&"--memory"), "{setting:?}");
            assert!(!is_first || *first.get_or_insert_with(|| bytes.clone()) == bytes, "{setting:?}");
            let file = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&out).unwrap()).unwrap();
            let groups: Vec<i64> = file.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
            // An input row group has about 1,024 lines.
            let (last, full) = groups.split_last().unwrap();
            assert!(full.iter().all(|rows| (500..1_600).contains(rows)), "{setting:?}: {full:?}");
            assert!(*last > 0 && groups.iter().sum::<i64>() == 75_000 + 749);
        }
    }
}

#[test]
fn collisions_are_reported_and_set_the_exit_code() {
    let report = tempfile::NamedTempFile::new().unwrap();
    // The keys of both begin with the same bit.
    let input = b"http://a/\nhttp://c/\nHTTP://a/\n";
    let flags = ["dedup", "-q", "--verify", "--report", text(report.path())];
    let ran = irikey(&[&flags[..], &["--key-bits", "1"]].concat(), input, Stdio::piped());
    let message = String::from_utf8(ran.stderr).unwrap();
    let count = || read_json(report.path())["dedup"]["collisions"].as_u64();
    assert_eq!((ran.status.code(), count()), (Some(7), Some(1)));
    assert!(message.contains(r#"-: record 1: "http://a/"; -: record 2: "http://c/""#), "{message}");
    assert_eq!(ran.stdout, b"http://a/\nhttp://c/\n");
    let ran = irikey(&flags, input, Stdio::piped());
    assert_eq!((ran.status.code(), count()), (Some(0), Some(0)));
    assert_eq!(ran.stdout, b"http://a/\nhttp://c/\n");
    // An input that could not be read completely is more than a collision: rows are missing.
    let mut damaged = tempfile::Builder::new().suffix(".gz").tempfile().unwrap();
    damaged.write_all(b"\x1f\x8b\x08\0").unwrap();
    let ran = irikey(&[&flags[..], &["--key-bits", "1", "-", text(damaged.path())]].concat(), input, Stdio::piped());
    assert_eq!((ran.status.code(), count()), (Some(4), Some(1)));
    assert_eq!(ran.stdout, b"http://a/\nhttp://c/\n");
}

#[test]
fn recipes_merge_more_than_rungs() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&directory.path().join(name)).to_string();
    let (twice, store) = (path("twice.parquet"), path("seen"));
    let input = b"http://www.a.com/X\nhttp://a.com/x\nhttp://a.com/y\nhttp://a.com/y\n";
    let flags = ["dedup", "-q", "--key", "surt-wayback", "--duplicates", &twice];
    assert_eq!(printed(&flags, input), "http://www.a.com/X\nhttp://a.com/y\n");
    let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(&twice).unwrap()).unwrap();
    let batch = reader.build().unwrap().next().unwrap().unwrap();
    let reasons = batch.column_by_name("equal_on").unwrap();
    let reason = |row| arrow::util::display::array_value_to_string(reasons, row).unwrap();
    assert_eq!((0..batch.num_rows()).map(reason).collect::<Vec<_>>(), ["surt-wayback", "simple"]);
    assert_eq!(printed(&["dedup", "-q", "--key", "surt-wayback", "--keep", "best"], input).lines().count(), 2);
    assert_eq!(
        printed(&["dedup", "-q", "--key", "simple"], b"http://a\nHTTP://a\nhttp://a\n"),
        "http://a/\nhttp://a/\n"
    );
    let seen = ["dedup", "-q", "--seen", &store, "--update-seen"];
    printed(&[&seen[..], &["--key", "surt-wayback"]].concat(), input);
    let other = irikey(&seen, input, Stdio::null());
    assert_eq!(other.status.code(), Some(2));
    assert!(String::from_utf8(other.stderr).unwrap().contains(r#"dedup_key is "surt-wayback@"#));
}

/// Columns that a job adds, and the suffix list of such columns, do not change the keys of a store.
#[test]
fn a_store_accepts_jobs_with_other_columns() {
    let directory = tempfile::tempdir().unwrap();
    let [store, list] = ["seen", "list.dat"].map(|name| text(&directory.path().join(name)).to_string());
    fs::write(&list, "// ===BEGIN ICANN DOMAINS===\norg\n// ===END ICANN DOMAINS===\n").unwrap();
    let dedup = |flags: &[&str]| {
        printed(&[&["dedup", "-q", "--seen", &store, "--update-seen"], flags].concat(), b"http://www.h.org/a\n")
    };
    assert_eq!(dedup(&[]), "http://www.h.org/a\n");
    assert_eq!(dedup(&["--columns", "uri,url_surtkey"]), "uri,url_surtkey\n");
    assert_eq!(dedup(&["--columns", "uri,url_host_registered_domain", "--psl", &list]).lines().count(), 1);
    let unused = irikey(&["dedup", "--psl", &list], b"", Stdio::null());
    let message = String::from_utf8(unused.stderr).unwrap();
    assert!(unused.status.code() == Some(2) && message.contains("--psl is used only by the columns"), "{message}");
    // The keys of a recipe are others.
    assert_eq!(
        irikey(&["dedup", "-q", "--seen", &store, "--key", "surt-ia"], b"", Stdio::null()).status.code(),
        Some(2)
    );
}

#[test]
fn count_equals_the_rows_that_dedup_keeps() {
    let directory = tempfile::tempdir().unwrap();
    let tmp = text(directory.path());
    let (input, file) = (lines(0, 50_000), directory.path().join("urls.txt"));
    fs::write(&file, &input).unwrap();
    let records = String::from_utf8(input.clone()).unwrap();
    let copies: BTreeSet<&str> = records.lines().filter(|line| !line.contains('[')).collect();
    let count = |flags: &[&str]| -> serde_json::Value {
        serde_json::from_str(&printed(&[&["count", "-q", "--json"], flags].concat(), &input)).unwrap()
    };
    let exact = count(&[]);
    assert_eq!((exact["records"].as_u64(), exact["faulty"].as_u64()), (Some(50_000), Some(5_000)));
    assert_eq!(exact["distinct"]["simple"], copies.len());
    for rung in ["syntax", "scheme"] {
        let kept = printed(&["dedup", "-q", "--rung", rung, text(&file)], b"").lines().count();
        assert_eq!(exact["distinct"][rung], kept);
    }
    // The memory is little more than the minimum.
    for flags in [&["--threads", "1", "--memory", "49M", "--tmp", tmp][..], &["--threads", "3", "--chunk-size", "1K"]] {
        assert_eq!(count(flags)["distinct"], exact["distinct"]);
    }
    // One rung alone, out of order, more than once, and keys of recipes.
    assert_eq!(count(&["--key", "syntax"])["distinct"], serde_json::json!({"syntax": exact["distinct"]["syntax"]}));
    let keys = "scheme,surt-wayback,simple,scheme,rules";
    let by_keys = &count(&["--key", keys, "--rules", "+www,+fragment"])["distinct"];
    assert_eq!(by_keys.as_object().unwrap().keys().collect::<Vec<_>>(), ["scheme", "surt-wayback", "simple", "rules"]);
    for rung in ["simple", "scheme"] {
        assert_eq!(by_keys[rung], exact["distinct"][rung]);
    }
    for (key, rules) in [("surt-wayback", &[][..]), ("rules", &["--rules", "+www,+fragment"])] {
        let flags = ["dedup", "-q", "--key", key, text(&file)];
        assert_eq!(by_keys[key], printed(&[&flags[..], rules].concat(), b"").lines().count());
    }
    let about = count(&["--approximate", "--key", "scheme,surt-wayback"])["distinct"]["surt-wayback"].as_f64().unwrap();
    assert!((about / by_keys["surt-wayback"].as_f64().unwrap() - 1.0).abs() < 0.02);
    let about = count(&["--approximate"])["distinct"]["scheme"].as_f64().unwrap();
    assert!((about / exact["distinct"]["scheme"].as_f64().unwrap() - 1.0).abs() < 0.02);
    assert!(
        printed(&["count", "-q"], b"http://a/\nHTTP://a\n").ends_with("distinct, syntax  2\ndistinct, scheme  1\n")
    );
}

/// Long inputs have runs of their own, several at once. The counts are those of all lines; errors are in the order of the inputs.
#[test]
fn counts_of_several_inputs_are_those_of_all_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&directory.path().join(name)).to_string();
    let (mut paths, mut all, mut damaged) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..25 {
        let bytes = lines(500 * number, if number % 8 == 5 { 130_000 } else { 40 * number });
        all.extend_from_slice(&bytes);
        paths.push(path(&format!("{number}")));
        if number % 3 != 0 {
            fs::write(&paths[number as usize], bytes).unwrap();
            continue;
        }
        let packed = gzip(&bytes);
        // All lines are there, but not all of the checksum.
        let is_damaged = number % 6 == 3;
        damaged.extend(is_damaged.then(|| paths[number as usize].clone()));
        fs::write(&paths[number as usize], &packed[..packed.len() - if is_damaged { 2 } else { 0 }]).unwrap();
    }
    let (together, report) = (path("all"), path("report.json"));
    fs::write(&together, all).unwrap();
    let counted = |flags: &[&str], inputs: &[String]| {
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let ran = irikey(&[&["count", "-q", "--report", &report], flags, &inputs].concat(), b"", Stdio::null());
        let mut counts = read_json(&report);
        for measured in ["peak_memory_bytes", "peak_anonymous_bytes", "input_bytes", "formats"] {
            counts.as_object_mut().unwrap().remove(measured);
        }
        (ran.status.code(), counts)
    };
    for method in [&["--key", "simple,scheme"][..], &["--approximate"]] {
        let (_, mut expected) = counted(method, std::slice::from_ref(&together));
        let (code, counts) = counted(&[method, &["--threads", "1"]].concat(), &paths);
        let errors: Vec<_> = counts["errors"].as_array().unwrap().iter().map(|error| error["source"].clone()).collect();
        assert_eq!((code, &errors), (Some(4), &damaged.iter().map(|path| path.as_str().into()).collect()));
        expected["errors"] = counts["errors"].clone();
        assert_eq!(counts, expected);
        for setting in [&["--threads", "3"][..], &["--threads", "16", "--chunk-size", "1K"], &["--no-mmap"]] {
            assert_eq!(counted(&[method, setting].concat(), &paths), (code, expected.clone()), "{setting:?}");
        }
    }
    let limited = counted(&["--limit", "1000"], &paths).1;
    assert_eq!(
        (&limited["records"], &limited["errors"]),
        (&1000.into(), &counted(&["--limit", "1000"], &paths[..9]).1["errors"])
    );
}

/// Inputs that are read at once may all lack a column: the first of them is named.
#[test]
fn the_first_input_without_the_column_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let paths: Vec<String> =
        (0..5).map(|number| text(&directory.path().join(format!("{number}.csv"))).to_string()).collect();
    for (number, path) in paths.iter().enumerate() {
        // The lengths are equal, so that the inputs begin in their order; those with the column give up when another one fails.
        let column = if number < 3 { "url" } else { "lnk" };
        fs::write(path, format!("{column},x\n{}", "http://h/,1\n".repeat(400_000))).unwrap();
    }
    let inputs: Vec<&str> = paths.iter().map(String::as_str).collect();
    for threads in ["1", "2", "8"] {
        let ran = irikey(
            &[&["count", "-q", "--column", "url", "--threads", threads], &inputs[..]].concat(),
            b"",
            Stdio::null(),
        );
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains("3.csv: "), "{threads}: {message}");
    }
}

#[test]
fn a_store_filters_the_keys_of_earlier_runs() {
    let directory = tempfile::tempdir().unwrap();
    let (store, all) = (directory.path().join("seen"), lines(0, 120_000));
    let ends: Vec<usize> = all.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    let part = |i: usize| &all[if i == 0 { 0 } else { ends[i * 30_000 - 1] }..ends[(i + 1) * 30_000 - 1]];
    let input = directory.path().join("urls.txt");
    fs::write(&input, &all).unwrap();
    let whole = printed(&["dedup", "-q", text(&input)], b"");
    let mut together = String::new();
    for (i, part) in (0..4).map(part).enumerate() {
        let mut flags = vec!["dedup", "-q", "--seen", text(&store), "--update-seen"];
        // Keys in memory, keys on disk, rows in temporary files.
        flags.extend(match i {
            1 | 3 => &["--threads", "1", "--row-group-size", "50K", "--memory", "19M"][..],
            2 => &["--keep", "last"],
            _ => &["--threads", "3"],
        });
        // The input is a file, because writing all of it to a pipe before reading the output would block.
        fs::write(&input, part).unwrap();
        flags.push(text(&input));
        let kept = printed(&flags, b"");
        let again = printed(&["dedup", "-q", "--seen", text(&store), text(&input)], b"");
        assert_eq!(again, "", "part {i}: the store has all its keys");
        together += &kept;
        printed(&["seen", "verify", text(&store)], b"");
    }
    let set = |text: &str| text.lines().map(str::to_string).collect::<BTreeSet<_>>();
    assert_eq!(together.lines().count(), whole.lines().count());
    assert_eq!(set(&together), set(&whole));
    let keys = |text: &str| text.lines().next().unwrap().to_string();
    let before = keys(&printed(&["seen", "info", text(&store)], b""));
    let info: serde_json::Value =
        serde_json::from_str(&printed(&["seen", "info", "--json", text(&store)], b"")).unwrap();
    let manifest = read_json(store.join("manifest.json"));
    for name in ["generation", "policy", "runs"] {
        assert_eq!(info[name], manifest[name], "{info}");
    }
    let all_keys: u64 = info["runs"].as_array().unwrap().iter().map(|run| run["keys"].as_u64().unwrap()).sum();
    assert_eq!((info["keys"].as_u64(), &info["policy"]["rung"]), (Some(all_keys), &"scheme".into()));
    let merged = printed(&["seen", "merge", text(&store)], b"");
    assert_eq!((keys(&merged), merged.matches("checksum").count()), (before, 1));
    assert!(printed(&["seen", "verify", text(&store)], b"").contains(" in 1 run,"));
    let other = irikey(&["dedup", "--seen", text(&store), "--rung", "syntax"], b"", Stdio::null());
    let message = String::from_utf8(other.stderr).unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(message.contains("rung is \"scheme\" in the store and \"syntax\" in this run"), "{message}");
    let missing = irikey(&["dedup", "--seen", text(&directory.path().join("no"))], b"", Stdio::null());
    assert_eq!(missing.status.code(), Some(2));
    assert_eq!(irikey(&["dedup", "--update-seen"], b"", Stdio::null()).status.code(), Some(2));
}

#[test]
fn tables_of_duplicates_and_groups_are_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&directory.path().join(name)).to_string();
    let (store, twice, groups, out) = (path("seen"), path("twice.parquet"), path("groups.parquet"), path("x.csv"));
    printed(&["dedup", "-q", "--seen", &store, "--update-seen"], b"http://seen/\n");
    let input = b"http://a/\nHTTP://a\nhttp://b/\nhttp://[\nhttp://seen\nhttp://a/\n";
    let flags = ["dedup", "-q", "-", "-o", &out, "--columns", "uri", "--seen", &store];
    printed(&[&flags[..], &["--duplicates", &twice, "--groups", &groups]].concat(), input);
    assert_eq!(fs::read_to_string(&out).unwrap(), "uri\nhttp://a/\nhttp://b/\n");
    let rows = |path: &str| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
        let batches: Vec<_> = reader.build().unwrap().map(Result::unwrap).collect();
        let table = arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap();
        let text = |column: &ArrayRef, row| arrow::util::display::array_value_to_string(column, row).unwrap();
        let line = |row| table.columns().iter().map(|column| text(column, row)).collect::<Vec<_>>();
        (0..table.num_rows()).map(line).collect::<Vec<_>>()
    };
    let some = |row: &[String]| [1, 3, 5, 6, 7].map(|column| row[column].clone());
    let found: Vec<_> = rows(&twice).iter().map(|row| some(row)).collect();
    assert_eq!(
        found,
        [
            ["2", "http://a/", "-", "1", "scheme"],
            ["5", "http://seen/", "", "", "seen"],
            ["6", "http://a/", "-", "1", "simple"],
        ]
    );
    let groups = rows(&groups);
    assert_eq!(groups.len(), 1);
    assert_eq!((groups[0][3].as_str(), groups[0][5].as_str()), ("http://a/", "3"));
    // The only line of the input is its header.
    let header = b" CDX N b a m s k r M S V g\n";
    printed(&[&flags[..], &["--duplicates", &twice, "--groups", &path("none.parquet")]].concat(), header);
    let none = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path("none.parquet")).unwrap()).unwrap();
    assert_eq!(none.metadata().file_metadata().num_rows(), 0);
    let rejected = irikey(&["dedup", "--groups", "x.csv"], b"", Stdio::null());
    assert_eq!(rejected.status.code(), Some(2));
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// If a job is killed at any moment, the store has the old keys or the new ones, and a second run gives the same output.
/// The job also merges runs of the store. `IRIKEY_KILLS` sets the number of kills; the default is 8.
#[test]
fn a_kill_at_any_moment_loses_nothing() {
    let kills: u32 = std::env::var("IRIKEY_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (input, old, store, out) = (at("urls.txt"), at("old"), at("store"), at("out.parquet"));
    let tmp = at("tmp");
    fs::create_dir(&tmp).unwrap();
    for from in [0, 50_000] {
        printed(&["dedup", "-q", "--seen", text(&old), "--update-seen"], &lines(from, 20_000));
    }
    fs::write(&input, lines(10_000, 60_000)).unwrap();
    let flags = ["dedup", "-q", text(&input), "-o", text(&out), "--seen", text(&store), "--update-seen"];
    let more = ["--threads", "2", "--tmp", text(&tmp), "--row-group-size", "100K", "--memory", "21M"];
    let job = [&flags[..], &more].concat();
    let verified = || printed(&["seen", "verify", text(&store)], b"").split(' ').next().unwrap().to_string();
    copy(&old, &store);
    let before = verified();
    let started = Instant::now();
    printed(&job, b"");
    let (whole, after, duration) = (fs::read(&out).unwrap(), verified(), started.elapsed());
    assert_ne!(before, after);
    // The files are the merged run, the new run and the manifest.
    let is_merged = || printed(&["seen", "verify", text(&store)], b"").contains(" in 2 runs");
    let is_clean = || fs::read_dir(&store).unwrap().count() == 3;
    assert!(is_merged() && is_clean());
    let mut outcomes = BTreeSet::new();
    for kill in 0..kills {
        copy(&old, &store);
        fs::remove_file(&out).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_irikey")).args(&job).stdin(Stdio::null()).spawn().unwrap();
        // From the start to a little after the end of the job, at irregular times.
        std::thread::sleep(
            duration.mul_f64(f64::from(kill * 7_919 % 1_000) / 900.0) + Duration::from_micros(u64::from(kill)),
        );
        child.kill().unwrap();
        child.wait().unwrap();
        let found = verified();
        assert!(found == before || found == after, "{found} keys, neither {before} nor {after}");
        outcomes.insert(found == after);
        if found == before {
            printed(&job, b"");
            // The second run deletes the files of the killed one.
            assert!(is_clean(), "kill {kill}");
        }
        assert!(fs::read(&out).unwrap() == whole, "kill {kill}: the output differs");
        assert!(verified() == after && is_merged(), "kill {kill}");
        assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "temporary files remain");
    }
    assert!(kills < 8 || outcomes.contains(&false), "no job was killed before its end");
}

#[test]
fn contradictory_flags_are_rejected() {
    let rejected = [
        (&["--memory", "10M"][..], "--memory"),
        (&["--tmp", "/no/such/directory", "--keep", "last"], "--tmp"),
        (&["--keep", "best-looking"], "--keep"),
        (&["--keep", "newest", "--format", "lines"], "fetch_time"),
        (&["--key", "syntax"], "--rung"),
        (&["--key", "rules"], "--rules"),
        (&["--key", "simple", "--verify"], "--verify"),
        (&["--key-bits", "8"], "--verify"),
        (&["-j", "513"], "512"),
    ];
    for (flags, advice) in rejected {
        let ran = irikey(&[&["dedup"], flags].concat(), b"http://a/\n", Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains(advice), "{flags:?}: {message}");
    }
}

#[test]
fn a_survey_reports_the_effect_of_dedup() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    // 4 captures each of 30 pages under two spellings; www. of odd numbers has other content.
    let line = |i: usize, host: &str, digest: &str| {
        format!(
            "k)/ 20260101000000 {{\"url\": \"http://{host}/{i}\", \"status\": \"200\", \"digest\": \"{digest}\"}}\n"
        )
    };
    let page = |i: usize| {
        let (other, mine) = (if i % 2 == 1 { "OTHER" } else { "SAME" }, "SAME");
        [
            line(i, "example.org:80", mine),
            line(i, "EXAMPLE.org", mine),
            line(i, "example.org", mine),
            line(i, "www.example.org", other),
        ]
        .concat()
    };
    let input: String = (0..30).map(page).collect::<String>() + "k)/ 20260101000000 {\"url\": \"http://[bad\"}\n";
    let mut reports = Vec::new();
    for (threads, suffix) in [("1", "json"), ("3", "json"), ("2", "html"), ("2", "txt")] {
        let report = path(&format!("report.{suffix}"));
        let flags =
            ["dedup", "-q", "-", "--key", "surt-wayback", "--survey", "--report", &report, "--threads", threads];
        assert_eq!(printed(&flags, input.as_bytes()).lines().count(), 30);
        reports.push(fs::read_to_string(report).unwrap());
    }
    let survey = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["survey"].clone();
    let found = survey(&reports[0]);
    assert_eq!(found, survey(&reports[1]));
    assert_eq!(
        found["duplicates_by"],
        serde_json::json!({"simple": 0, "syntax": 30, "scheme": 30, "surt-wayback@2": 30})
    );
    assert_eq!(found["groups_by_size"], serde_json::json!([{"from": 3, "to": 4, "groups": 30, "margin": 0}]));
    let rule = &found["rules"]["www"];
    assert_eq!((&rule["merged"], &rule["compared"], &rule["differing"]), (&30.into(), &30.into(), &15.into()));
    assert_eq!(found["same_uri"], serde_json::json!({"compared": 30, "differing": 0}));
    assert_eq!(
        found["hosts"],
        serde_json::json!([
            {"host": "example.org", "records": 90, "margin": 0, "duplicates": 60, "duplicates_margin": 0},
            {"host": "www.example.org", "records": 30, "margin": 0, "duplicates": 30, "duplicates_margin": 0},
        ])
    );
    assert_eq!(found["most_repeated"][0]["records"], 4);
    assert!(
        reports[2].starts_with("<!doctype html>")
            && reports[2].contains("<th scope=\"row\">www</th>")
            && !reports[2].contains("<script")
    );
    assert!(reports[3].starts_with("records") && reports[3].contains("duplicates"));
    let plain = path("plain.json");
    printed(&["dedup", "-q", "-", "--report", &plain], input.as_bytes());
    let plain = read_json(plain);
    assert!(plain["survey"].is_null() && !plain["timeline"].as_array().unwrap().is_empty());
}

/// The files of a store would be read as records of the next job.
#[test]
fn a_seen_store_in_an_input_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (input, out) = (directory.path().join("in"), directory.path().join("out.txt"));
    fs::create_dir(&input).unwrap();
    fs::write(input.join("urls.txt"), "http://a/\n").unwrap();
    let run = |store: &str, update: &[&str]| {
        let store = input.join(store);
        let flags = ["dedup", "-q", text(&input), "-o", text(&out), "--seen", text(&store)];
        let ran = irikey(&[&flags[..], update].concat(), b"", Stdio::null());
        (ran.status.code(), String::from_utf8(ran.stderr).unwrap(), store.exists())
    };
    for store in ["seen", "a/b", ""] {
        let (status, message, exists) = run(store, &["--update-seen"]);
        assert_eq!((status, exists), (Some(2), store.is_empty()), "{store}: {message}");
        assert!(message.contains("this directory is in the input"), "{message}");
    }
    // What is hidden is not read.
    let expected = [(&["--update-seen"][..], "http://a/\n"), (&[], "")];
    for (update, rows) in expected {
        assert_eq!(run("_seen", update).0, Some(0));
        assert_eq!(fs::read_to_string(&out).unwrap(), rows);
    }
    fs::rename(input.join("_seen"), input.join("seen")).unwrap();
    assert!(run("seen", &[]).1.contains("this directory is in the input"));
}

/// A column `NAME=` is made of the paths, unless the files have a column of this name.
#[test]
fn files_with_keys_have_the_values_of_their_directories() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let folders =
        [("crawl=a", "http://h/1\nhttp://h/2\n"), ("crawl=b%20c", "http://h/2\nhttp://h/3\n"), ("d", "http://h/4\n")];
    for (folder, urls) in folders {
        let folder = format!("rows/{folder}");
        fs::create_dir_all(at(&folder)).unwrap();
        printed(&["canon", "-q", "-", "-o", &at(&format!("{folder}/x.parquet"))], urls.as_bytes());
    }
    let expected = "crawl,uri\na,http://h/1\na,http://h/2\nb c,http://h/3\n,http://h/4\n";
    let flags = ["--columns", "crawl=,uri", "--output-format", "csv"];
    assert_eq!(printed(&[&["dedup", "-q", &at("rows")], &flags[..]].concat(), b""), expected);
    let out = at("out.parquet");
    printed(&["dedup", "-q", &at("rows"), "--columns", "+crawl=", "-o", &out], b"");
    assert_eq!(printed(&[&["dedup", "-q", &out], &flags[..]].concat(), b""), expected);
    // An Arrow file has one dictionary.
    let out = at("out.arrow");
    printed(&["dedup", "-q", &at("rows"), "--columns", "crawl=,uri", "-o", &out], b"");
    let reader = arrow::ipc::reader::FileReader::try_new(fs::File::open(&out).unwrap(), None).unwrap();
    let mut rows = String::from("crawl,uri\n");
    for batch in reader.map(Result::unwrap) {
        let columns = [0, 1].map(|at| ArrayFormatter::try_new(batch.column(at), &FormatOptions::default()).unwrap());
        rows.extend((0..batch.num_rows()).map(|row| format!("{},{}\n", columns[0].value(row), columns[1].value(row))));
    }
    assert_eq!(rows, expected);
}

/// Whether seen keys are known while records are read depends on the memory; with --verify they never are.
#[test]
fn a_survey_does_not_depend_on_when_seen_keys_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| text(&directory.path().join(name)).to_string();
    let (store, out, report) = (at("seen"), at("out.parquet"), at("report.json"));
    printed(&["dedup", "-q", "-o", &out, "--seen", &store, "--update-seen"], &lines(0, 60_000));
    let input = lines(0, 150_000);
    let flags = ["dedup", "-q", "-o", &out, "--seen", &store, "--survey", "--report", &report];
    let surveys = [&[][..], &["--verify"]].map(|more| {
        printed(&[&flags[..], more].concat(), &input);
        read_json(&report)["survey"].clone()
    });
    assert!(surveys[0]["groups_sampled"].as_u64().unwrap() < 90_000, "{}", surveys[0]);
    assert_eq!(surveys[0], surveys[1]);
}

/// A rung that is named twice, by `--rung` or `--key`, is one.
#[test]
fn a_survey_has_each_rung_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (json, text) = (path("report.json"), path("report.txt"));
    let input = b"http://a/?x#f\nhttp://a/?x\nhttp://a/?x\nHTTP://a/?x\nhttp://a:80/?x\n";
    for (flags, duplicates) in [
        (&["--rung", "syntax"][..], serde_json::json!({"simple": 1, "syntax": 1})),
        (&["--key", "simple"], serde_json::json!({"simple": 1, "syntax": 0, "scheme": 0})),
        (&[], serde_json::json!({"simple": 1, "syntax": 1, "scheme": 1})),
    ] {
        let dedup = ["dedup", "-q", "-", "--survey", "--report"];
        printed(&[&dedup[..], &[&json], flags].concat(), input);
        assert_eq!(read_json(&json)["survey"]["duplicates_by"], duplicates, "{flags:?}");
        printed(&[&dedup[..], &[&text], flags].concat(), input);
        let text = fs::read_to_string(&text).unwrap();
        let lines = text.lines().skip_while(|line| *line != "duplicates by rung").skip(1);
        let rungs = lines.take_while(|line| line.starts_with("  ")).count();
        assert_eq!(rungs, duplicates.as_object().unwrap().len(), "{text}");
    }
}

/// Such files have no records to survey; the report has everything else.
#[test]
fn files_with_keys_have_a_report_without_a_survey() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (keyed, page, json) = (path("keyed.parquet"), path("page.html"), path("report.json"));
    printed(&["canon", "-q", "-", "-o", &keyed], b"http://a/\nHTTP://A/\n");
    printed(&["dedup", "-q", &keyed, "-o", &path("kept.parquet"), "--report", &page], b"");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("What became of the records") && !page.contains("Duplicates by rung"));
    let ran = irikey(&["dedup", &keyed, "-o", "/dev/null", "--report", &json, "--survey"], b"", Stdio::null());
    assert_eq!(ran.status.code(), Some(2));
}

/// The keys were made when the file was written.
#[test]
fn files_with_keys_are_refused_with_flags_of_other_keys() {
    let directory = tempfile::tempdir().unwrap();
    let keyed = directory.path().join("keyed.parquet").display().to_string();
    printed(&["canon", "-q", "-", "-o", &keyed], b"http://a/\n");
    for flags in [["--limit", "1"], ["--base-column", "uri"]] {
        let ran = irikey(&[&["dedup", &keyed][..], &flags].concat(), b"", Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && message.contains("does not apply to files with keys"), "{message}");
    }
    let made_again = ["dedup", "-q", &keyed, "--column", "uri", "--base-column", "uri", "--limit", "1"];
    assert_eq!(printed(&made_again, b""), "http://a/\n");
}
