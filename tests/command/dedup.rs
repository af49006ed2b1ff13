//! `dedup`, `count` and `seen` as a person or a script runs them, stores of seen keys among them, and processes that are
//! killed while they add to one.

use super::{irikey, printed};
use arrow::array::ArrayRef;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Lines of which 40 % or so have been there before, in other spellings too, and some are faulty.
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
fn the_same_bytes_with_any_number_of_threads_and_any_memory() {
    let directory = tempfile::tempdir().unwrap();
    let (input, tmp) = (directory.path().join("urls.txt"), directory.path().join("tmp"));
    fs::write(&input, lines(0, 100_000)).unwrap();
    fs::create_dir(&tmp).unwrap();
    let ways: [&[&str]; 5] = [
        &["--threads", "1"],
        &["--threads", "2", "--chunk-size", "10K"],
        &["--threads", "16"],
        &["--threads", "1", "--memory", "18M"],
        &["--threads", "5", "--memory", "19M", "--no-mmap"],
    ];
    for (keep, suffixes) in [("first", &["parquet", "arrow", "txt"][..]), ("last", &["parquet", "csv"])] {
        for suffix in suffixes {
            let mut first = None;
            for way in ways {
                let (out, report) =
                    (directory.path().join("out").with_extension(suffix), directory.path().join("x.json"));
                let flags = ["dedup", "-q", text(&input), "-o", text(&out), "--row-group-size", "30K", "--keep", keep];
                let more = ["--tmp", text(&tmp), "--report", text(&report)];
                printed(&[&flags[..], &more, way].concat(), b"");
                let bytes = fs::read(&out).unwrap();
                assert!(*first.get_or_insert_with(|| bytes.clone()) == bytes, "{suffix} {way:?}");
                let report: serde_json::Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
                let count = |name: &str| report["dedup"][name].as_u64().unwrap();
                assert_eq!(count("kept") + count("duplicates") + count("faulty"), 100_000);
                assert_eq!(count("temporary_bytes") > 0, keep == "last" || way.contains(&"--memory"), "{way:?}");
                assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
            }
        }
    }
}

#[test]
fn count_says_what_dedup_keeps() {
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
    // The least memory that there can be: what rows take, and a little.
    for flags in [&["--threads", "1", "--memory", "49M", "--tmp", tmp][..], &["--threads", "3", "--chunk-size", "1K"]] {
        assert_eq!(count(flags)["distinct"], exact["distinct"]);
    }
    let about = count(&["--approximate"])["distinct"]["scheme"].as_f64().unwrap();
    assert!((about / exact["distinct"]["scheme"].as_f64().unwrap() - 1.0).abs() < 0.03);
    assert!(
        printed(&["count", "-q"], b"http://a/\nHTTP://a\n").ends_with("distinct, syntax  2\ndistinct, scheme  1\n")
    );
}

#[test]
fn a_store_filters_what_earlier_runs_have_seen() {
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
        // Keys in memory, keys on disk, rows that wait.
        flags.extend(match i {
            1 | 3 => &["--threads", "1", "--row-group-size", "50K", "--memory", "17900K"][..],
            2 => &["--keep", "last"],
            _ => &["--threads", "3"],
        });
        // From a file: whoever writes all of it to a pipe before reading the answer waits for ever.
        fs::write(&input, part).unwrap();
        flags.push(text(&input));
        let kept = printed(&flags, b"");
        let again = printed(&["dedup", "-q", "--seen", text(&store), text(&input)], b"");
        assert_eq!(again, "", "part {i}: all of it was seen");
        together += &kept;
        printed(&["seen", "verify", text(&store)], b"");
    }
    let set = |text: &str| text.lines().map(str::to_string).collect::<BTreeSet<_>>();
    assert_eq!(together.lines().count(), whole.lines().count());
    assert_eq!(set(&together), set(&whole));
    let keys = |text: &str| text.lines().next().unwrap().to_string();
    let before = keys(&printed(&["seen", "info", text(&store)], b""));
    let merged = printed(&["seen", "merge", text(&store)], b"");
    assert_eq!((keys(&merged), merged.matches("checksum").count()), (before, 1));
    assert!(printed(&["seen", "verify", text(&store)], b"").contains(" in 1 runs"));
    let other = irikey(&["dedup", "--seen", text(&store), "--rung", "syntax"], b"", Stdio::null());
    let message = String::from_utf8(other.stderr).unwrap();
    assert_eq!(other.status.code(), Some(2));
    assert!(message.contains("rung is \"scheme\" there and \"syntax\" here"), "{message}");
    let missing = irikey(&["dedup", "--seen", text(&directory.path().join("no"))], b"", Stdio::null());
    assert_eq!(missing.status.code(), Some(2));
    assert_eq!(irikey(&["dedup", "--update-seen"], b"", Stdio::null()).status.code(), Some(2));
}

#[test]
fn tables_of_duplicates_and_groups_stand_beside_the_output() {
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
    assert_eq!(groups.iter().map(|row| (&row[1], &row[3], &row[5])).collect::<Vec<_>>().len(), 1);
    assert_eq!((groups[0][3].as_str(), groups[0][5].as_str()), ("http://a/", "3"));
    let refused = irikey(&["dedup", "--groups", "x.csv"], b"", Stdio::null());
    assert_eq!(refused.status.code(), Some(2));
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Killed at any moment, a job leaves the old store or the new one, and a rerun gives what it would have given. Set
/// `IRIKEY_KILLS` for more than a few.
#[test]
fn a_kill_at_any_moment_loses_nothing() {
    let kills: u32 = std::env::var("IRIKEY_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let (input, old, store, out) = (at("urls.txt"), at("old"), at("store"), at("out.parquet"));
    let tmp = at("tmp");
    fs::create_dir(&tmp).unwrap();
    printed(&["dedup", "-q", "--seen", text(&old), "--update-seen"], &lines(0, 20_000));
    fs::write(&input, lines(10_000, 60_000)).unwrap();
    let flags = ["dedup", "-q", text(&input), "-o", text(&out), "--seen", text(&store), "--update-seen"];
    let more = ["--threads", "2", "--tmp", text(&tmp), "--row-group-size", "100K", "--memory", "20M"];
    let job = [&flags[..], &more].concat();
    let verified = || printed(&["seen", "verify", text(&store)], b"").split(' ').next().unwrap().to_string();
    copy(&old, &store);
    let before = verified();
    let begun = Instant::now();
    printed(&job, b"");
    let (whole, after, took) = (fs::read(&out).unwrap(), verified(), begun.elapsed());
    assert_ne!(before, after);
    let mut outcomes = BTreeSet::new();
    for kill in 0..kills {
        copy(&old, &store);
        fs::remove_file(&out).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_irikey")).args(&job).stdin(Stdio::null()).spawn().unwrap();
        // From the beginning to a little past the end, in no regular steps.
        std::thread::sleep(
            took.mul_f64(f64::from(kill * 7_919 % 1_000) / 900.0) + Duration::from_micros(u64::from(kill)),
        );
        child.kill().unwrap();
        child.wait().unwrap();
        let found = verified();
        assert!(found == before || found == after, "{found} keys, neither {before} nor {after}");
        outcomes.insert(found == after);
        if found == before {
            printed(&job, b"");
        }
        assert!(fs::read(&out).unwrap() == whole, "kill {kill}: another output");
        assert_eq!(verified(), after);
        assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "temporary files stay");
    }
    assert!(kills < 8 || outcomes.contains(&false), "no job was killed before its end");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let refused = [
        (&["--memory", "10M"][..], "--memory"),
        (&["--tmp", "/no/such/directory", "--keep", "last"], "--tmp"),
        (&["--keep", "best-looking"], "--keep"),
    ];
    for (flags, advice) in refused {
        let ran = irikey(&[&["dedup"], flags].concat(), b"http://a/\n", Stdio::null());
        let message = String::from_utf8(ran.stderr).unwrap();
        assert!(matches!(ran.status.code(), Some(2 | 5)) && message.contains(advice), "{flags:?}: {message}");
    }
}
