//! Sorted rows, compared with a sort of the rows of `canon`: the bytes do not depend on threads and memory, parts and
//! partitions do not overlap, and `check_sorted` accepts the files.

use crate::collect::{file, options, pipe, written_lines};
use crate::dedup::lines;
use arrow::array::{ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::Int32Type;
use irikey::batch::ColumnSet;
use irikey::canon::{MaxUrlLen, Policy, RecipeColumn};
use irikey::input::Sources;
use irikey::key::Recipe;
use irikey::output::{self, Arrangement, Destination, OutputFormat, OutputOptions};
use irikey::record::fields::FieldSet;
use irikey::run::{
    CheckSortedError, CheckSortedReason, PartCut, Phase, Progress, RunError, RunOptions, RunRequest, SortOptions,
    SortSummary, SortedRows, check_sorted, sort,
};
use irikey::sort::{OrderCheck, OrderError, Partition, SortBy, SplitPoints};
use parquet::arrow::ArrowWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const COLUMNS: [&str; 5] = ["url_surtkey", "source", "record", "uri", "fault"];

fn policy() -> Policy {
    let recipe = |column| RecipeColumn { column, recipe: Recipe::parse(column).unwrap() };
    Policy { recipes: vec![recipe("surt-wayback")], carry: FieldSet::default(), ..Policy::default() }
}

fn output_options(format: OutputFormat, names: &[String]) -> OutputOptions {
    OutputOptions {
        format,
        compression: output::Compression::None,
        columns: ColumnSet::named(COLUMNS).unwrap(),
        policy: policy(),
        sources: names.to_vec(),
    }
}

fn sort_options(by: &[&str], memory: usize, directory: &Path) -> SortOptions {
    SortOptions {
        by: SortBy::parse(by.iter().copied()),
        partition: None,
        cut: PartCut::None,
        memory,
        directory: directory.to_path_buf(),
    }
}

/// Two sources with equal lines, so that equal rows come from different sources.
fn sources() -> Sources {
    let text = lines(5000);
    let [first, second] = [&text[..], &text[..text.len() / 2]].map(|text| pipe(text, 10_000).0);
    Sources(first.into_iter().chain(second).collect())
}

/// The rows that `canon` writes as JSON lines.
fn unsorted(directory: &Path) -> Vec<serde_json::Value> {
    let sources = sources();
    let output_options = output_options(OutputFormat::JsonLines, &sources.names());
    let lines = written_lines(&directory.join("all.jsonl"), sources, output_options);
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Sorts into one file. Returns the file, its parts and the summary.
fn sorted_file(
    directory: &Path,
    format: OutputFormat,
    options: &RunOptions,
    sort_options: &SortOptions,
) -> (PathBuf, Vec<(u32, u32, u64)>, SortSummary) {
    let target = directory.join(format!("sorted.{}", format.suffixes()[0]));
    let (sources, mut parts) = (sources(), Vec::new());
    let output_options = output_options(format, &sources.names());
    let arrangement = Arrangement { by: sort_options.by.clone(), bloom: false };
    let (encoder, mut output) =
        output::create_arranged(&Destination::File(target.clone()), output_options, &arrangement).unwrap();
    let append = |SortedRows { encoded, partition, part, .. }| {
        match parts.last_mut() {
            // Another row group of the same part.
            Some((last, of, rows)) if (*last, *of) == (partition, part) => *rows += encoded.rows(),
            _ => parts.push((partition, part, encoded.rows())),
        }
        output.append(encoded)
    };
    let policy = policy();
    let progress = Progress::new();
    let request = RunRequest::new(sources, options, &policy, &progress);
    assert_eq!(progress.phase(), Phase::Read);
    let summary = sort(request, sort_options, &encoder, append).unwrap();
    assert_eq!(progress.phase(), Phase::Write);
    output.finish().unwrap();
    (target, parts, summary)
}

fn text(row: &serde_json::Value, name: &str) -> Option<String> {
    row[name].as_str().map(str::to_string)
}

#[test]
fn rows_are_sorted_with_any_threads_and_memory() {
    let directory = tempfile::tempdir().unwrap();
    let mut expected = unsorted(directory.path());
    // The sort is stable, so that equal rows keep the order of the input. Null keys come last.
    expected.sort_by_key(|row| (text(row, "url_surtkey").is_none(), text(row, "url_surtkey")));
    let expected: Vec<String> = expected.iter().map(|row| row.to_string()).collect();
    let mut first: Option<Vec<u8>> = None;
    for (threads, chunk, group, memory) in [(1, 1 << 20, 1 << 20, 1 << 30), (3, 100, 3000, 1 << 30), (2, 700, 2000, 1)]
    {
        let sort_options = sort_options(&["url_surtkey"], memory, directory.path());
        let options = options(threads, group, chunk);
        let (target, _, summary) = sorted_file(directory.path(), OutputFormat::JsonLines, &options, &sort_options);
        let written = std::fs::read(&target).unwrap();
        let rows: Vec<String> = String::from_utf8_lossy(&written)
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap().to_string())
            .collect();
        assert!(rows == expected, "{threads} threads, {memory} bytes");
        assert_eq!(summary.spilled > 0, memory == 1);
        assert!(*first.get_or_insert(written.clone()) == written);
        let (parquet, _, _) = sorted_file(directory.path(), OutputFormat::Parquet, &options, &sort_options);
        let rows = check_sorted(&parquet, &mut OrderCheck::new(None), 2).unwrap();
        assert_eq!(rows as usize, expected.len());
    }
}

#[test]
fn a_column_that_does_not_exist_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let (sources, policy, progress) = (sources(), policy(), Progress::new());
    let output_options = output_options(OutputFormat::Parquet, &sources.names());
    let (encoder, _) = output::create(&Destination::File(directory.path().join("x.parquet")), output_options).unwrap();
    let (sort_options, options) = (sort_options(&["nope"], 1 << 30, directory.path()), options(1, 3000, 500));
    let request = RunRequest::new(sources, &options, &policy, &progress);
    let error = sort(request, &sort_options, &encoder, |_| Ok(())).unwrap_err().to_string();
    assert!(error.starts_with("cannot sort by nope: ") && !error.contains("temporary"), "{error}");
}

#[test]
fn parquet_bytes_do_not_depend_on_threads_and_memory() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = |threads, memory| {
        let sort_options = sort_options(&["url_surtkey", "-record"], memory, directory.path());
        let (target, _, _) =
            sorted_file(directory.path(), OutputFormat::Parquet, &options(threads, 3000, 500), &sort_options);
        std::fs::read(target).unwrap()
    };
    let first = bytes(1, 1 << 30);
    assert!(bytes(3, 1 << 30) == first && bytes(2, 1) == first);
}

#[test]
fn parts_have_no_key_in_common() {
    let directory = tempfile::tempdir().unwrap();
    let sort_options =
        SortOptions { cut: PartCut::Rows(700), ..sort_options(&["url_surtkey"], 1 << 30, directory.path()) };
    let (target, parts, summary) =
        sorted_file(directory.path(), OutputFormat::JsonLines, &options(2, 3000, 500), &sort_options);
    assert_eq!(parts.iter().map(|(_, _, rows)| rows).sum::<u64>(), summary.summary.rows);
    let text = std::fs::read_to_string(target).unwrap();
    let keys: Vec<Option<String>> = text
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["url_surtkey"].as_str().map(str::to_string)
        })
        .collect();
    let mut at = 0;
    for pair in parts.windows(2) {
        at += pair[0].2 as usize;
        assert_eq!(pair[1].1, pair[0].1 + 1);
        assert!(pair[0].2 >= 700 && keys[at - 1] != keys[at]);
    }
    assert!(parts.len() > 3);
}

#[test]
fn partitions_are_written_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let points = SplitPoints::parse("org,example)/5\norg,example)/often\n").unwrap();
    for partition in [Partition::Surt(points), Partition::Host(8)] {
        let count = partition.count();
        let base = sort_options(&["url_surtkey"], 1, directory.path());
        let sort_options = SortOptions { partition: Some(partition.clone()), ..base };
        let (_, parts, summary) =
            sorted_file(directory.path(), OutputFormat::JsonLines, &options(2, 3000, 500), &sort_options);
        assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0) && parts.iter().all(|part| part.0 < count));
        assert_eq!(parts.iter().map(|(_, _, rows)| rows).sum::<u64>(), summary.summary.rows);
        assert!(parts.len() > 1, "{partition:?}");
    }
}

#[test]
fn a_check_reports_the_first_row_out_of_order() {
    let directory = tempfile::tempdir().unwrap();
    let sort_options = sort_options(&["url_surtkey"], 1 << 30, directory.path());
    let (target, _, _) =
        sorted_file(directory.path(), OutputFormat::Parquet, &options(1, 1 << 20, 1 << 20), &sort_options);
    let by = |name| Some(SortBy::parse([name]));
    let order_error = |by| match check_sorted(&target, &mut OrderCheck::new(by), 2) {
        Err(CheckSortedError { reason: CheckSortedReason::Order(error), .. }) => error,
        checked => panic!("{checked:?}"),
    };
    let error = order_error(by("-url_surtkey"));
    assert!(matches!(&error, OrderError::OutOfOrder { row: 2.., .. }), "{error}");
    assert!(error.to_string().contains("comes after"));
    let error = check_sorted(&target, &mut OrderCheck::new(by("nope")), 1).unwrap_err().to_string();
    assert!(error.contains("there is no column `nope`; the columns are "), "{error}");
    let mut check = OrderCheck::new(None);
    check_sorted(&target, &mut check, 2).unwrap();
    assert!(check_sorted(&target, &mut check, 2).is_err(), "the rows of two files are checked as one sequence");
    let table = |name: &str, column: ArrayRef| {
        let batch = RecordBatch::try_from_iter([("v", column)]).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        file(&directory, name, &writer.into_inner().unwrap())
    };
    // Values of another type would be lost in the comparison, and nulls are equal.
    let numbers = table("n.parquet", Arc::new(Int64Array::from(vec![1, 2])));
    let mut check = OrderCheck::new(by("v"));
    check_sorted(&numbers, &mut check, 2).unwrap();
    let others: [ArrayRef; 2] =
        [Arc::new(StringArray::from(vec!["z", "a"])), Arc::new(Float64Array::from(vec![3.9, 3.2]))];
    for other in others {
        let error = check_sorted(&table("o.parquet", other), &mut check, 2).unwrap_err().to_string();
        assert!(
            error.contains("column v has the type ") && error.contains(", but Int64 in an earlier file"),
            "{error}"
        );
    }
    // Encodings of a type may differ.
    let mut check = OrderCheck::new(by("v"));
    check_sorted(&table("s.parquet", Arc::new(StringArray::from(vec!["a", "b"]))), &mut check, 2).unwrap();
    let more: DictionaryArray<Int32Type> = ["b", "c"].into_iter().collect();
    check_sorted(&table("d.parquet", Arc::new(more)), &mut check, 2).unwrap();
    let cdxj = file(&directory, "x.cdxj", b"org,a)/ 20200101000000 {}\norg,a)/ 20190101000000 {}\n");
    let error = check_sorted(&cdxj, &mut OrderCheck::new(None), 1).unwrap_err().to_string();
    assert!(error.contains("row 2: \"org,a)/ 20190101000000\" comes after \"org,a)/ 20200101000000\""), "{error}");
}

#[test]
fn a_policy_that_the_output_does_not_describe_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (run_options, progress) = (RunOptions::default(), Progress::new());
    let target = Destination::File(directory.path().join("sorted.arrow"));
    let (encoder, _output) = output::create(&target, output_options(OutputFormat::Arrow, &sources().names())).unwrap();
    assert_eq!(encoder.policy().describe(), policy().describe());
    let sort_options = sort_options(&["uri"], 1 << 20, directory.path());
    let differing = |policy: &Policy| {
        let request = RunRequest::new(sources(), &run_options, policy, &progress);
        match sort(request, &sort_options, &encoder, |_| Ok(())) {
            Err(RunError::Policy(name)) => name,
            other => other.map_or_else(|error| panic!("{error}"), |_| ""),
        }
    };
    let more = RecipeColumn { column: "surt-ia", recipe: Recipe::parse("surt-ia").unwrap() };
    let recipes =
        |recipes: &[&RecipeColumn]| Policy { recipes: recipes.iter().copied().cloned().collect(), ..policy() };
    let own = &policy().recipes[0];
    assert_eq!(differing(&policy()), "");
    assert_eq!(differing(&recipes(&[own, &more])), "");
    assert_eq!(differing(&recipes(&[&more, own])), "recipes");
    assert_eq!(differing(&recipes(&[])), "recipes");
    assert_eq!(differing(&Policy { drop_fragment: true, ..policy() }), "drop_fragment");
    assert_eq!(differing(&Policy { max_url_len: MaxUrlLen(9), ..policy() }), "max_url");
}
