//! Targets of outputs, of deduplication and of sorting: each is compared with another reader or with std collections.

use crate::runs::{choose, columns, directory, options, pipe, run, split_choices};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::ipc::reader::{FileReader, StreamReader};
use irikey::batch::ColumnSet;
use irikey::canon::{Policy, RecipeColumn};
use irikey::cli::fuzzing::{KeyCounts, add_seen_keys, compress_pages, find_seen_keys};
use irikey::dedup::KeepPolicy;
use irikey::input::Sources;
use irikey::key::Recipe;
use irikey::output::{
    self, Arrangement, Compression, Destination, Encoder, Output, OutputError, OutputFormat, OutputOptions,
};
use irikey::record::fields::FieldSet;
use irikey::record::{FormatOptions, InputFormat};
use irikey::run::{
    DedupOptions, DedupOutput, PartCut, Progress, RunOptions, RunRequest, SortOptions, SortedRows, canon,
    dedup as dedup_run, sort as sort_run,
};
use irikey::sort::SortBy;
use libfuzzer_sys::Corpus;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};

fn policy() -> Policy {
    let recipes =
        vec![RecipeColumn { column: "surt-wayback", recipe: Recipe::parse("surt-wayback").expect("a recipe") }];
    Policy { keep_input: true, carry: FieldSet::ALL, recipes, ..Policy::default() }
}

fn sources(data: &[u8]) -> Sources {
    pipe("input", data, 1 << 20)
}

fn open(
    target: &Path,
    format: OutputFormat,
    compression: Compression,
    columns: ColumnSet,
    by: &SortBy,
) -> (Encoder, Output) {
    let options = OutputOptions { format, compression, columns, policy: policy(), sources: vec!["input".to_string()] };
    let arrangement = Arrangement { by: by.clone(), bloom: true };
    output::create_arranged(&Destination::File(target.to_path_buf()), options, &arrangement)
        .expect("the output can be created")
}

/// What the parquet and arrow crates read of a file.
fn read(path: &Path, format: OutputFormat) -> Vec<RecordBatch> {
    let file = File::open(path).expect("the output exists");
    let batches: Result<Vec<RecordBatch>, _> = match format {
        OutputFormat::Parquet => {
            ParquetRecordBatchReaderBuilder::try_new(file).expect("a Parquet file").build().expect("a reader").collect()
        }
        OutputFormat::Arrow => FileReader::try_new(file, None).expect("an Arrow file").collect(),
        _ => StreamReader::try_new(file, None).expect("an Arrow stream").collect(),
    };
    batches.expect("the rows can be read")
}

/// Parquet and Arrow files hold the rows that were encoded, with any codec and length of row groups.
pub fn outputs(input: &[u8]) -> Corpus {
    let Some(([format, compression, group, input_format], data)) = split_choices(input) else { return Corpus::Reject };
    let format =
        choose(&[OutputFormat::Parquet, OutputFormat::Parquet, OutputFormat::Arrow, OutputFormat::ArrowStream], format);
    let codecs = [Compression::None, Compression::Lz4, Compression::Snappy, Compression::Zstd(1)];
    let name = choose(&["lines", "cdxj", "jsonl", "cdx"], input_format);
    let options = RunOptions {
        format: InputFormat::named(name, &FormatOptions::default()).expect("a known format"),
        ..options(1 + group * group, 1 << 20)
    };
    let expected = run(sources(data), &options, &policy());
    let Some(rows) = expected.rows else { return Corpus::Reject };
    let target = directory().join("output");
    let (encoder, mut output) = open(&target, format, choose(&codecs, compression), columns(), &SortBy::default());
    let request = sources(data);
    canon::<_, OutputError>(
        RunRequest::new(request, &options, &policy(), &Progress::new()),
        |group| encoder.encode(group.rows, group.runs).map(Some),
        |encoded| output.append(encoded),
    )
    .expect("the rows can be written");
    output.finish().expect("the output can be finished");
    let batches = read(&target, format);
    let schema = rows.schema();
    let read = batches.iter().map(|batch| {
        let column = |field: &arrow::datatypes::FieldRef| {
            let column = batch.column_by_name(field.name()).expect("every column was written");
            cast(column, field.data_type()).expect("the type is that of the batch")
        };
        RecordBatch::try_new(schema.clone(), schema.fields().iter().map(column).collect()).expect("equal lengths")
    });
    let read = concat_batches(&schema, &read.collect::<Vec<_>>()).expect("one schema");
    assert_eq!(read, rows);
    Corpus::Keep
}

/// Compressed pages are decompressed to what they were, by the C library and by a decoder that checks every length.
pub fn pages(input: &[u8]) -> Corpus {
    let Some(([codec, part_count, repeats], data)) = split_choices(input) else { return Corpus::Reject };
    let codec = choose(&[Compression::Zstd(1), Compression::Lz4, Compression::Zstd(3)], codec);
    let pages = [page_of_parts(data, 1 + part_count, repeats), data.to_vec(), page_of_parts(data, 2, 1 + repeats / 16)];
    let compressed = compress_pages(codec, &pages).expect("any page can be compressed");
    for (page, compressed) in pages.iter().zip(compressed) {
        let unpacked = match codec {
            Compression::Lz4 => lz4_flex::block::decompress(&compressed, page.len()).expect("an LZ4 block"),
            _ => zstd::bulk::decompress(&compressed, page.len()).expect("a frame"),
        };
        assert!(unpacked == *page);
    }
    Corpus::Keep
}

/// A page of several lines of `data`, in the order that its other bytes give, so that short inputs have many repeated
/// strings. Each repetition of the page begins with another number.
fn page_of_parts(data: &[u8], part_count: usize, repeats: usize) -> Vec<u8> {
    const MAX_LEN: usize = 1 << 18;
    let mut lines = data.splitn(part_count + 1, |byte| *byte == b'\n');
    let parts: Vec<&[u8]> = lines.by_ref().take(part_count).collect();
    let order = lines.next().unwrap_or_default();
    let mut page = Vec::new();
    for number in 0..=repeats {
        if page.len() > MAX_LEN {
            break;
        }
        page.extend(format!("/{}", number * 7919).bytes());
        order.iter().for_each(|byte| page.extend_from_slice(parts[usize::from(*byte) % parts.len()]));
    }
    page
}

/// The values of a column of text, in the order of the file.
fn texts(path: &Path, name: &str) -> Vec<Option<String>> {
    let text = std::fs::read_to_string(path).expect("the output exists");
    let value = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
        row[name].as_str().map(str::to_string)
    };
    text.lines().map(value).collect()
}

fn records(path: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(path).expect("the output exists");
    let record =
        |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("a JSON object")["record"].as_u64();
    text.lines().map(|line| record(line).expect("a number")).collect()
}

/// The rows that `dedup` keeps are those that a map keeps, with any memory and row groups.
pub fn dedup(input: &[u8]) -> Corpus {
    let Some(([keep, memory, group, chunk, flags], data)) = split_choices(input) else { return Corpus::Reject };
    let data = spread(data);
    let keep = choose(&[KeepPolicy::First, KeepPolicy::Last], keep);
    let policy = policy();
    let all = run(sources(&data), &options(1 << 20, 1 << 20), &policy).rows;
    let Some(all) = all else { return Corpus::Reject };
    let keys = all.column_by_name("key").expect("a column").as_fixed_size_binary();
    let faults = all.column_by_name("fault").expect("a column");
    let (mut kept, mut faulty) = (HashMap::new(), BTreeSet::new());
    for row in 0..all.num_rows() {
        if !faults.is_null(row) {
            faulty.insert(row as u64 + 1);
        } else if keep == KeepPolicy::Last {
            kept.insert(keys.value(row), row as u64 + 1);
        } else {
            kept.entry(keys.value(row)).or_insert(row as u64 + 1);
        }
    }
    let mut expected: BTreeSet<u64> = kept.into_values().collect();
    let dedup_options = DedupOptions {
        keep,
        keep_faulty: flags & 1 > 0,
        verify: flags & 2 > 0,
        memory: choose(&[usize::MAX, 0, 100_000, 300_000], memory),
        directory: directory().to_path_buf(),
        ..DedupOptions::default()
    };
    if dedup_options.keep_faulty {
        expected.extend(faulty);
    }
    let target = directory().join("kept.jsonl");
    let columns = ColumnSet::named(["record"]).expect("a column");
    let (encoder, mut output) = open(&target, OutputFormat::JsonLines, Compression::None, columns, &SortBy::default());
    let options = RunOptions { threads: 1 + flags / 128, ..options(1 + group * group, 1 + chunk * chunk) };
    let append = |kept| match kept {
        DedupOutput::Kept(encoded) => output.append(encoded),
        DedupOutput::Duplicates(_) | DedupOutput::Groups(_) => panic!("evidence was not requested"),
    };
    let progress = Progress::new();
    let request = RunRequest::new(sources(&data), &options, &policy, &progress);
    let summary = dedup_run(request, &dedup_options, &encoder, append).expect("the rows can be written");
    output.finish().expect("the output can be finished");
    assert_eq!(records(&target), expected.into_iter().collect::<Vec<_>>(), "{:?}", summary.totals);
    Corpus::Keep
}

/// Lines of one byte each become many URLs in several spellings, so that short inputs have many equal keys.
fn spread(data: &[u8]) -> Vec<u8> {
    let line = |byte: &u8| match byte >> 6 {
        0 => format!("http://h/{}\n", byte & 63),
        1 => format!("HTTP://H:80/%{:02X}\n", byte & 63),
        2 => format!("http://h:{byte}x/\n"),
        _ => format!("http://h/a/../{}\n", byte & 63),
    };
    data.iter().map(line).collect::<String>().into_bytes()
}

/// Keys of 16 bits, spread over the whole range or close together.
fn keys_of(data: &[u8], shift: u32) -> Vec<u128> {
    data.chunks_exact(2).map(|pair| u128::from(u16::from_le_bytes([pair[0], pair[1]])) << (shift % 112)).collect()
}

/// The key table counts as a map does, and the seen store holds what a set holds.
pub fn keys(input: &[u8]) -> Corpus {
    let Some(([shift, step, parts, damage], data)) = split_choices(input) else { return Corpus::Reject };
    let keys = keys_of(data, shift as u32);
    let (mut table, mut map) = (KeyCounts::default(), HashMap::<u128, u32>::new());
    for some in keys.chunks(1 + step) {
        let expected: Vec<bool> = some
            .iter()
            .map(|key| {
                let count = map.entry(*key).or_default();
                *count += 1;
                *count == 1
            })
            .collect();
        assert_eq!(table.insert(some), expected);
    }
    let probes: Vec<u128> = keys.iter().flat_map(|key| [*key, key ^ 1, key.rotate_left(7)]).collect();
    let expected: Vec<Option<u32>> = probes.iter().map(|key| map.get(key).copied()).collect();
    assert_eq!(table.get(&probes), (expected, map.len()));
    seen_store(&keys, 1 + parts, damage);
    Corpus::Keep
}

/// Adds keys to a store in several runs; then a damaged file of the store is refused, or no answer changes.
fn seen_store(keys: &[u128], part_len: usize, damage: usize) {
    let store = directory().join("store");
    let _ = std::fs::remove_dir_all(&store);
    let mut set = BTreeSet::<u128>::new();
    for part in keys.chunks(part_len.max(keys.len() / 6)) {
        let new: BTreeSet<u128> = part.iter().copied().filter(|key| !set.contains(key)).collect();
        set.extend(&new);
        add_seen_keys(&store, &new.into_iter().collect::<Vec<_>>()).expect("keys can be added");
    }
    if keys.is_empty() {
        return;
    }
    let probes: BTreeSet<u128> = keys.iter().flat_map(|key| [*key, key ^ 1, key.saturating_add(1 << 20)]).collect();
    let probes: Vec<u128> = probes.into_iter().collect();
    let expected: Vec<bool> = probes.iter().map(|key| set.contains(key)).collect();
    assert_eq!(find_seen_keys(&store, &probes).expect("the store is whole"), expected);
    let files: Vec<PathBuf> =
        std::fs::read_dir(&store).expect("the store").flatten().map(|entry| entry.path()).collect();
    let damaged = choose(&files, damage);
    let mut bytes = std::fs::read(&damaged).expect("a file of the store");
    let at = damage * 7 % bytes.len().max(1);
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << (damage % 8);
        std::fs::write(&damaged, bytes).expect("a file of the store");
        if let Ok(found) = find_seen_keys(&store, &probes) {
            assert_eq!(found, expected, "byte {at} of {} is damaged", damaged.display());
        }
    }
}

/// Sorted rows are those of a stable sort, with any memory and row groups.
pub fn sort(input: &[u8]) -> Corpus {
    const BY: [&[&str]; 4] = [&["url_surtkey"], &["uri", "-record"], &["-uri"], &["fault", "url_surtkey"]];
    let Some(([by, memory, group, chunk], data)) = split_choices(input) else { return Corpus::Reject };
    let names = choose(&BY, by);
    let sort_options = SortOptions {
        by: SortBy::parse(names.iter().copied()),
        partition: None,
        cut: PartCut::None,
        memory: choose(&[1 << 30, 1, 10_000], memory),
        directory: directory().to_path_buf(),
    };
    let columns = || ColumnSet::named(["record", "uri", "url_surtkey", "fault", "flags"]).expect("columns");
    let policy = policy();
    let unsorted = directory().join("unsorted.jsonl");
    let (encoder, mut output) =
        open(&unsorted, OutputFormat::JsonLines, Compression::None, columns(), &SortBy::default());
    let whole = options(1 << 20, 1 << 20);
    canon::<_, OutputError>(
        RunRequest::new(sources(data), &whole, &policy, &Progress::new()),
        |group| encoder.encode(group.rows, group.runs).map(Some),
        |encoded| output.append(encoded),
    )
    .expect("the rows can be written");
    output.finish().expect("the output can be finished");
    let mut expected: Vec<(u64, BTreeMap<&str, Option<String>>)> =
        records(&unsorted).into_iter().map(|record| (record, BTreeMap::new())).collect();
    for name in names.iter().map(|name| name.trim_start_matches('-')).filter(|name| *name != "record") {
        for (row, value) in expected.iter_mut().zip(texts(&unsorted, name)) {
            row.1.insert(name, value);
        }
    }
    expected.sort_by(|a, b| {
        let compare = |name: &&str| match name.strip_prefix('-') {
            Some("record") => b.0.cmp(&a.0),
            // Nulls come last in both directions.
            Some(name) => (a.1[name].is_none(), &b.1[name]).cmp(&(b.1[name].is_none(), &a.1[name])),
            None => (a.1[name].is_none(), &a.1[name]).cmp(&(b.1[name].is_none(), &b.1[name])),
        };
        names.iter().map(compare).find(|order| order.is_ne()).unwrap_or(std::cmp::Ordering::Equal)
    });
    let target = directory().join("sorted.jsonl");
    let (encoder, mut output) = open(&target, OutputFormat::JsonLines, Compression::None, columns(), &sort_options.by);
    let options = options(1 + group * group, 1 + chunk * chunk);
    let progress = Progress::new();
    let request = RunRequest::new(sources(data), &options, &policy, &progress);
    let append = |SortedRows { encoded, .. }| output.append(encoded);
    sort_run(request, &sort_options, &encoder, append).expect("the rows can be written");
    output.finish().expect("the output can be finished");
    assert_eq!(records(&target), expected.into_iter().map(|(record, _)| record).collect::<Vec<_>>(), "by {names:?}");
    Corpus::Keep
}
