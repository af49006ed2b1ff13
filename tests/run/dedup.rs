//! The rows that deduplication keeps, compared with a map over the rows of `canon`: they do not depend on threads, row
//! groups or memory.

use crate::collect::{file, options, path, pipe, written_lines};
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::UInt64Type;
use irikey::batch::{ColumnId, ColumnSet, SourceRun};
use irikey::canon::{Policy, RecipeColumn, Rows, Rung};
use irikey::dedup::{Candidate, KeepPolicy};
use irikey::input::{Source, Sources};
use irikey::key::Recipe;
use irikey::output::{self, Destination, Encoder, Output, OutputError, OutputOptions};
use irikey::record::fields::FieldSet;
use irikey::record::{FormatOptions, InputFormat};
use irikey::run::{
    DedupError, DedupOptions, DedupOutput, DedupSummary, DedupTotals, Progress, RowKey, RunError, RunOptions,
    RunRequest, canon, dedup,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Returns lines with many duplicates, in other spellings too, some near each other and some far apart, and faulty lines.
pub fn lines(count: usize) -> Vec<u8> {
    let mut text = String::new();
    for i in 0..count as u64 {
        let number = i * i % 1_009;
        text += &match i % 11 {
            0 => format!("HTTP://Example.org:80/{number:x}\n"),
            1 => format!("http://example.org/%7E{number}\n"),
            2 => format!("http://example.org/~{}\n", (i - 1) * (i - 1) % 1_009),
            3 => format!("http://example.org:bad{}/\n", number % 5),
            4 => "http://example.org/often\n".to_string(),
            _ => format!("http://example.org/{number:x}\n"),
        };
    }
    text.into_bytes()
}

fn output_options(names: &[String]) -> OutputOptions {
    let mut columns = ColumnSet::default();
    columns.add_keys(&policy().more_keys.iter().map(|rung| ColumnId::KeyOf(*rung)).collect::<Vec<_>>());
    OutputOptions {
        format: output::OutputFormat::JsonLines,
        compression: output::Compression::None,
        columns,
        policy: policy(),
        sources: names.to_vec(),
    }
}

fn open(target: &Path, names: &[String]) -> (Encoder, Output) {
    output::create(&Destination::File(target.to_path_buf()), output_options(names)).unwrap()
}

fn policy() -> Policy {
    Policy { keep_input: true, more_keys: vec![Rung::Syntax, Rung::Simple], ..Policy::default() }
}

/// The lines that `canon` writes.
fn all_rows(directory: &tempfile::TempDir, sources: Sources) -> Vec<String> {
    let output_options = output_options(&sources.names());
    written_lines(&directory.path().join("all.jsonl"), sources, output_options)
}

fn dedup_rows(
    directory: &tempfile::TempDir,
    sources: Sources,
    options: &RunOptions,
    dedup_options: &DedupOptions,
) -> (Vec<String>, DedupSummary) {
    let target = directory.path().join("some.jsonl");
    let (encoder, mut output) = open(&target, &sources.names());
    let append = |kept| append_kept(&mut output, kept);
    let deduped =
        dedup(RunRequest::new(sources, options, &policy(), &Progress::new()), dedup_options, &encoder, append).unwrap();
    assert_eq!(output.rows(), deduped.totals.written);
    output.finish().unwrap();
    (std::fs::read_to_string(target).unwrap().lines().map(str::to_string).collect(), deduped)
}

fn append_kept(output: &mut Output, kept: DedupOutput) -> Result<(), OutputError> {
    match kept {
        DedupOutput::Kept(encoded) => output.append(encoded),
        DedupOutput::Duplicates(_) | DedupOutput::Groups(_) => panic!("evidence was not requested"),
    }
}

/// The rows that a map over the keys keeps.
fn expected_rows(all: &[String], keep: KeepPolicy, keep_faulty: bool) -> Vec<String> {
    let mut representatives: HashMap<String, usize> = HashMap::new();
    let rows: Vec<serde_json::Value> = all.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (i, row) in rows.iter().enumerate().filter(|(_, row)| row["fault"].is_null()) {
        let key = row["key"].as_str().unwrap().to_string();
        match keep {
            KeepPolicy::Last => *representatives.entry(key).or_default() = i,
            _ => {
                representatives.entry(key).or_insert(i);
            }
        }
    }
    let is_kept = |(i, row): &(usize, &serde_json::Value)| match row["fault"].is_null() {
        true => representatives[row["key"].as_str().unwrap()] == *i,
        false => keep_faulty,
    };
    rows.iter().enumerate().filter(is_kept).map(|(i, _)| all[i].clone()).collect()
}

#[test]
fn one_row_per_key_with_any_threads_and_memory() {
    let directory = tempfile::tempdir().unwrap();
    let text = lines(6_000);
    let (half, rest) =
        text.split_at(text.len() / 2 + text[text.len() / 2..].iter().position(|b| *b == b'\n').unwrap() + 1);
    let paths = [file(&directory, "a.txt", half), file(&directory, "b.txt", rest)];
    let files = || Sources(paths.iter().flat_map(|name| path(name).0).collect());
    // Files are read a second time; other rows wait in temporary files.
    let reader = |path: &PathBuf| Source::reader(path.to_str().unwrap(), std::fs::File::open(path).unwrap());
    let readers = || Sources(paths.iter().map(reader).collect());
    let all = all_rows(&directory, files());
    for keep in [KeepPolicy::First, KeepPolicy::Last] {
        for keep_faulty in [false, true] {
            let expected = expected_rows(&all, keep, keep_faulty);
            let settings =
                [(1, 1 << 20, usize::MAX), (2, 5_000, 300_000), (5, 700, 150_000), (3, 20_000, 0), (2, 4_000, 200_000)];
            for (threads, row_group_len, memory) in settings {
                let directory_name = directory.path().to_path_buf();
                let dedup_options =
                    DedupOptions { keep, keep_faulty, memory, directory: directory_name, ..DedupOptions::default() };
                let options = options(threads, row_group_len, 1 + row_group_len / 3);
                let has_entries = memory < 250_000;
                let has_rows = memory < 500_000 || keep != KeepPolicy::First;
                let [reread, waiting] =
                    [(files(), has_entries), (readers(), has_entries || has_rows)].map(|(sources, is_spilled)| {
                        let (rows, deduped) = dedup_rows(&directory, sources, &options, &dedup_options);
                        let DedupTotals { kept, duplicates, faulty, spilled, .. } = deduped.totals;
                        assert_eq!(rows, expected, "{keep:?} {threads} {row_group_len} {memory}");
                        assert_eq!(kept + duplicates + faulty, 6_000);
                        assert!(spilled > 0 || !is_spilled, "{keep:?} {memory}");
                        spilled
                    });
                let is_right = if has_rows { reread < waiting } else { reread + waiting == 0 };
                assert!(is_right, "{keep:?} {memory}: {reread} {waiting}");
            }
        }
    }
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 4, "temporary files remain: {left:?}");
}

/// The result of `dedup` if `change` changes the file between the two times that it is read.
fn dedup_changing(
    directory: &tempfile::TempDir,
    text: &[u8],
    threads: usize,
    change: impl Fn(&mut std::fs::File) + Send + Sync,
) -> Result<DedupSummary, RunError<DedupError>> {
    let name = file(directory, "changing.txt", text);
    let (encoder, mut output) = open(&directory.path().join("x.jsonl"), &path(&name).names());
    let dedup_options = DedupOptions { directory: directory.path().to_path_buf(), ..DedupOptions::default() };
    let dedup_options = DedupOptions { keep: KeepPolicy::Last, ..dedup_options };
    let (progress, mut is_changed) = (Progress::new(), false);
    let append = |kept| {
        if !std::mem::replace(&mut is_changed, true) {
            change(&mut std::fs::OpenOptions::new().write(true).open(&name).unwrap());
        }
        append_kept(&mut output, kept)
    };
    let run_options = options(threads, 2_000, 1_000);
    let ran = dedup(RunRequest::new(path(&name), &run_options, &policy(), &progress), &dedup_options, &encoder, append);
    // The second reading is not counted twice, but has a progress of its own.
    let again = progress.second_pass().unwrap();
    let lines = text.iter().filter(|byte| **byte == b'\n').count() as u64;
    assert!(is_changed && progress.records() == lines && progress.read() == text.len() as u64);
    assert!(again.records() > 0 && again.total() == progress.total());
    // Other threads may read on after a row group that has changed.
    assert!(threads > 1 || again.read() > text.len() as u64 / 2);
    ran
}

#[test]
fn files_that_change_before_they_are_read_again_stop_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let text = lines(3_000);
    assert_eq!(dedup_changing(&directory, &text, 1, |_| ()).unwrap().summary.records, 3_000);
    let line_end = |from: usize| from + text[from..].iter().position(|byte| *byte == b'\n').unwrap();
    // Row groups follow that have not changed. The four threads have read at most eight when the first is written.
    let within = (0..60).map(|i| (4, line_end(25_000 + i * 700)));
    for (threads, at) in [(1, text.len() - 1)].into_iter().chain(within) {
        // Another character at the end of a line.
        let change = |file: &mut std::fs::File| {
            file.seek(SeekFrom::Start(at as u64 - 1)).unwrap();
            file.write_all(b"?").unwrap();
        };
        let ran = dedup_changing(&directory, &text, threads, change);
        assert!(matches!(ran, Err(RunError::Output(DedupError::Changed))), "{ran:?}");
    }
}

#[test]
fn a_file_that_cannot_be_opened_again_is_named_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let (first, last) = (lines(3_000), b"http://c/\n".repeat(100_000));
    let contents = [("a.txt", &first[..]), ("b.txt", b"http://b/\n"), ("c.txt", &last)];
    let names = contents.map(|(name, contents)| file(&directory, name, contents));
    let sources = Sources(names.iter().flat_map(|name| path(name).0).collect());
    let (encoder, mut output) = open(&directory.path().join("x.jsonl"), &sources.names());
    let append = |kept| {
        // The second pass writes rows of the first file.
        let _ = std::fs::remove_file(&names[1]);
        append_kept(&mut output, kept)
    };
    let dedup_options = DedupOptions { directory: directory.path().to_path_buf(), ..DedupOptions::default() };
    let dedup_options = DedupOptions { keep: KeepPolicy::Last, ..dedup_options };
    let (run_options, policy, progress) = (options(1, 2_000, 1_000), policy(), Progress::new());
    let request = RunRequest::new(sources, &run_options, &policy, &progress);
    let ran = dedup(request, &dedup_options, &encoder, append);
    assert!(matches!(ran, Err(RunError::Output(DedupError::NotReadAgain(_)))));
    let message = ran.unwrap_err().to_string();
    assert!(message.contains("b.txt: cannot open: no such file or directory; "), "{message}");
    // Nothing is read after the first rows that differ.
    let again = progress.second_pass().unwrap();
    assert!(again.read() < last.len() as u64 / 2, "{} of {}", again.read(), last.len());
}

#[test]
fn empty_input_and_pipes_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    for keep in KeepPolicy::ALL {
        let dedup_options = DedupOptions { keep, directory: directory.path().to_path_buf(), ..DedupOptions::default() };
        let (rows, deduped) = dedup_rows(&directory, pipe(b"", 1), &options(2, 100, 10), &dedup_options);
        assert_eq!((rows.len(), deduped.totals.kept, deduped.summary.records), (0, 0, 0));
        let (rows, deduped) =
            dedup_rows(&directory, pipe(b"http://a/\nHTTP://A\n\n", 3), &options(2, 5, 3), &dedup_options);
        assert_eq!((rows.len(), deduped.totals.kept, deduped.totals.duplicates, deduped.totals.faulty), (1, 1, 1, 1));
    }
}

#[test]
fn a_temporary_directory_that_cannot_be_written_stops_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let (encoder, mut output) = open(&directory.path().join("x.jsonl"), &["pipe".to_string()]);
    let dedup_options =
        DedupOptions { keep: KeepPolicy::Last, directory: directory.path().join("no"), ..DedupOptions::default() };
    let append = |kept| append_kept(&mut output, kept);
    let sources = pipe(b"http://a/\n", 9);
    let ran = dedup(
        RunRequest::new(sources, &options(2, 100, 10), &policy(), &Progress::new()),
        &dedup_options,
        &encoder,
        append,
    );
    assert!(matches!(ran, Err(RunError::Output(DedupError::Spill(error))) if error.to_string().contains("--tmp")));
}

/// Returns CDX lines: captures of a few URLs in several spellings, at several times, with several statuses or none.
fn captures(count: u64) -> Vec<u8> {
    let line = |i: u64| {
        let url = match i % 4 {
            0 => format!("http://www.example.org/{}", i % 17),
            1 => format!("HTTP://WWW.example.org:80/{}", i % 17),
            2 => format!("https://example.org/{}", i % 17),
            _ => format!("http://example.org/{}#{}", i % 17, i % 3),
        };
        let time =
            if i.is_multiple_of(13) { "-".to_string() } else { format!("202001{:02}0000{:02}", 1 + i * i % 28, i % 7) };
        let status = ["200", "-", "301", "404", "206", "503", "100"][(i * i % 7) as usize];
        format!("org,example)/{i} {time} {url} text/html {status} {i:032} - - 1 2 f.warc.gz\n")
    };
    (0..count).map(line).collect::<String>().into_bytes()
}

/// Every policy keeps the row that a sort by the order of the policy puts first, for the key of the rung and of a recipe,
/// with any number of threads and any memory.
#[test]
fn policies_keep_what_a_sort_puts_first() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(&directory, "a.cdx", &captures(5_000));
    let carry = FieldSet { time: true, status: true, ..FieldSet::default() };
    let recipes = vec![RecipeColumn { column: "surt-wayback", recipe: Recipe::parse("surt-wayback").unwrap() }];
    let policy = Policy { carry, recipes, ..policy() };
    let format = InputFormat::named("cdx", &FormatOptions::default()).unwrap();
    let rows = Mutex::new(Vec::new());
    let collect = |all: &mut Rows, _: &[SourceRun]| {
        let row = |i: usize| {
            let text = all.recipe_texts[0].get(i).to_vec();
            (all.key[i], text, all.carried.times[i], all.carried.statuses[i], all.uri.get(i).to_vec())
        };
        rows.lock().unwrap().extend((0..all.len()).map(row));
        Ok::<(), OutputError>(())
    };
    let one = RunOptions { format: format.clone(), ..options(1, 1 << 20, 1 << 20) };
    canon(
        RunRequest::new(path(&name), &one, &policy, &Progress::new()),
        |group| collect(group.rows, group.runs).map(Some),
        |()| Ok(()),
    )
    .unwrap();
    let rows = rows.into_inner().unwrap();
    let candidate = |i: usize| {
        let (_, _, time, status, uri) = &rows[i];
        Candidate { time: *time, status: *status, uri, ordinal: i as u64 }
    };
    let mut outcomes = BTreeSet::new();
    for (keep, key) in KeepPolicy::ALL.into_iter().flat_map(|keep| [(keep, RowKey::Rung), (keep, RowKey::Recipe(0))]) {
        let mut groups: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
        for (i, (rung, text, ..)) in rows.iter().enumerate() {
            groups.entry(if key == RowKey::Rung { rung.to_vec() } else { text.clone() }).or_default().push(i);
        }
        for group in groups.values_mut() {
            group.sort_by(|a, b| keep.compare(&candidate(*a), &candidate(*b)));
        }
        let mut expected: Vec<u64> = groups.values().map(|group| group[0] as u64 + 1).collect();
        expected.sort_unstable();
        for (threads, row_group_len, memory) in [(1, 1 << 20, usize::MAX), (2, 20_000, 0), (16, 3_000, 100_000)] {
            let target = directory.path().join("some.jsonl");
            let (encoder, mut output) = open(&target, &path(&name).names());
            let directory = directory.path().to_path_buf();
            let dedup_options =
                DedupOptions { key, keep, memory, directory, verify: memory == 0, ..DedupOptions::default() };
            let options =
                RunOptions { format: format.clone(), ..options(threads, row_group_len, 1 + row_group_len / 3) };
            let append = |kept| append_kept(&mut output, kept);
            let deduped = dedup(
                RunRequest::new(path(&name), &options, &policy, &Progress::new()),
                &dedup_options,
                &encoder,
                append,
            )
            .unwrap();
            output.finish().unwrap();
            let record = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["record"].as_u64();
            let records: Vec<u64> = std::fs::read_to_string(target).unwrap().lines().filter_map(record).collect();
            assert_eq!(records, expected, "{keep:?} {key:?} {threads} {memory}");
            assert_eq!(
                deduped.totals.undated,
                if !matches!(keep, KeepPolicy::First | KeepPolicy::Last) { 385 } else { 0 }
            );
            assert_eq!(deduped.collisions.count, 0);
        }
        outcomes.insert(expected);
    }
    assert_eq!(outcomes.len(), 10, "the policies give different results");
}

/// Shortened keys collide often; if the texts are compared, the rows that are kept are the same.
#[test]
fn collisions_are_found_and_lose_no_row() {
    let directory = tempfile::tempdir().unwrap();
    let name = file(&directory, "a.txt", &lines(4_000));
    let (sources, in_directory) = (|| path(&name), directory.path().to_path_buf());
    for keep in [KeepPolicy::First, KeepPolicy::Last] {
        let expected = expected_rows(&all_rows(&directory, sources()), keep, false);
        let settings = [(1, usize::MAX, 8), (2, 0, 8), (3, 100_000, 3), (2, 200_000, 128)];
        let mut found = BTreeMap::new();
        for (threads, memory, key_bits) in settings {
            let directory_name = in_directory.clone();
            let short = DedupOptions { keep, key_bits, memory, directory: directory_name, ..DedupOptions::default() };
            let options = options(threads, 9_000, 1_000);
            let (rows, deduped) =
                dedup_rows(&directory, sources(), &options, &DedupOptions { verify: true, ..short.clone() });
            assert_eq!(rows, expected, "{keep:?} {key_bits}");
            // Every text of a key is a collision, except the first.
            let key = |line: &String| {
                let row: serde_json::Value = serde_json::from_str(line).unwrap();
                u128::from_str_radix(row["key"].as_str().unwrap(), 16).unwrap() >> (128 - key_bits)
            };
            let keys = expected.iter().map(key).collect::<BTreeSet<_>>().len();
            assert!((keys < expected.len()) == (key_bits < 128));
            assert_eq!(deduped.collisions.count, (expected.len() - keys) as u64);
            let same = found.entry(key_bits).or_insert_with(|| deduped.collisions.clone());
            assert_eq!(*same, deduped.collisions);
            let (rows, _) = dedup_rows(&directory, sources(), &options, &short);
            assert_eq!(rows.len(), keys, "without --verify, rows with equal keys are duplicates");
        }
    }
}

/// The rows of a table: source, record and the values of the columns `more`.
fn table(batches: &[RecordBatch], more: &[&str]) -> Vec<(String, u64, Vec<String>)> {
    let mut rows = Vec::new();
    for batch in batches {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        for row in 0..batch.num_rows() {
            let text = |name: &&str| arrow::util::display::array_value_to_string(column(name), row).unwrap();
            let record = column("record").as_primitive::<UInt64Type>().value(row);
            rows.push((text(&"source"), record, more.iter().map(text).collect()));
        }
    }
    rows
}

#[test]
fn evidence_lists_representatives_and_reasons() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [file(&directory, "a.txt", &lines(3_000)), file(&directory, "b.txt", &lines(700))];
    let sources = || Sources(paths.iter().flat_map(|name| path(name).0).collect());
    let all: Vec<serde_json::Value> =
        all_rows(&directory, sources()).iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let place =
        |row: &serde_json::Value| (row["source"].as_str().unwrap().to_string(), row["record"].as_u64().unwrap());
    for (keep, memory) in [(KeepPolicy::First, usize::MAX), (KeepPolicy::Last, 0)] {
        let mut members: HashMap<&str, Vec<&serde_json::Value>> = HashMap::new();
        let without_fault = || all.iter().filter(|row| row["fault"].is_null());
        without_fault().for_each(|row| members.entry(row["key"].as_str().unwrap()).or_default().push(row));
        let best = |row: &serde_json::Value| {
            let group = &members[row["key"].as_str().unwrap()];
            if keep == KeepPolicy::First { group[0] } else { group[group.len() - 1] }
        };
        let (mut duplicates, mut groups) = (Vec::new(), Vec::new());
        for row in without_fault() {
            let (of, (source, record)) = (best(row), place(row));
            let size = members[row["key"].as_str().unwrap()].len();
            let equal_on = ["simple", "syntax", "scheme"].into_iter().find(|rung| match *rung {
                "scheme" => true,
                rung => row[format!("key_{rung}")] == of[format!("key_{rung}")],
            });
            match (place(of) == place(row), size) {
                (true, 1) => (),
                (true, size) => groups.push((source, record, vec![size.to_string()])),
                (false, _) => {
                    let values = vec![place(of).0, place(of).1.to_string(), equal_on.unwrap().to_string()];
                    duplicates.push((source, record, values));
                }
            }
        }
        let target = directory.path().join("some.jsonl");
        let (encoder, mut output) = open(&target, &sources().names());
        let (mut duplicate_rows, mut group_rows) = (Vec::new(), Vec::new());
        let append = |kept| {
            match kept {
                DedupOutput::Kept(encoded) => output.append(encoded)?,
                DedupOutput::Duplicates(rows) => duplicate_rows.push(rows),
                DedupOutput::Groups(rows) => group_rows.push(rows),
            }
            Ok(())
        };
        let directory = directory.path().to_path_buf();
        let dedup_options = DedupOptions { keep, memory, directory, has_evidence: true, ..DedupOptions::default() };
        let options = options(2, 5_000, 1_000);
        let deduped =
            dedup(RunRequest::new(sources(), &options, &policy(), &Progress::new()), &dedup_options, &encoder, append)
                .unwrap();
        assert_eq!(output.rows(), deduped.totals.kept);
        assert_eq!(deduped.totals.duplicates, duplicates.len() as u64);
        assert_eq!(table(&duplicate_rows, &["representative_source", "representative_record", "equal_on"]), duplicates);
        assert_eq!(table(&group_rows, &["size"]), groups);
        let reasons: std::collections::BTreeSet<_> = duplicates.iter().map(|(_, _, values)| &values[2]).collect();
        assert_eq!(reasons.len(), 3);
    }
}
