//! Tests of the module `output`: every format returns the rows that were written, and a failure leaves no file.
#![cfg(feature = "pipeline")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{
    DataType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMillisecondType, UInt32Type, UInt64Type,
};
use arrow::ipc::reader::{FileReader, StreamReader};
use irikey::batch::{COLUMNS, ColumnKind, ColumnSet, SourceRun};
use irikey::canon::{Policy, RecipeColumn, Rows, Rung, TextColumn};
use irikey::iri::{Component, Fault, FaultKind, Flags, spoofing_flags};
use irikey::key::{KeyAlgorithm, Recipe};
use irikey::output::{self, Compression, Destination, Output, OutputError, OutputFormat, OutputOptions};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
use parquet::basic::{Compression as Codec, Encoding, PageType};
use parquet::file::metadata::{ColumnChunkMetaData, PageEncodingStats, PageIndexPolicy};

/// The content of one row of the tests.
struct Row {
    input: &'static [u8],
    uri: Option<&'static str>,
    fault: Option<Fault>,
    flags: Flags,
}

const BAD_PORT: Fault = Fault::new(FaultKind::Port, Component::Port, 9);

/// An unchanged row, a changed one, a changed one that is not UTF-8, a faulty one, and a faulty empty one.
const ROWS: [Row; 5] = [
    Row { input: b"http://a/", uri: Some("http://a/"), fault: None, flags: Flags::NONE },
    Row { input: b"HTTP://b", uri: Some("http://b/"), fault: None, flags: Flags::NONE },
    Row {
        input: b"http://c/\xFF \"x\",y",
        uri: Some("http://c/%FF%20%22x%22,y"),
        fault: None,
        flags: Flags(Flags::NOT_UTF8.0 | Flags::EXCLUDED.0),
    },
    Row { input: b"http://d:x/", uri: None, fault: Some(BAD_PORT), flags: Flags::NONE },
    Row {
        input: b"",
        uri: None,
        fault: Some(Fault::new(FaultKind::Empty, Component::Reference, 0)),
        flags: Flags::NONE,
    },
];

const RUNS: [SourceRun; 2] =
    [SourceRun { source: 1, first_record: 7, rows: 2 }, SourceRun { source: 0, first_record: 1, rows: 3 }];

fn key(i: usize, salt: u8) -> [u8; 16] {
    std::array::from_fn(|at| (i * 16 + at) as u8 ^ salt)
}

/// No rows, with a column for a further key, as the policy of these tests has it.
fn no_rows() -> Rows {
    let mut rows = Rows::default();
    rows.more_keys.push(Vec::new());
    rows
}

fn rows() -> Rows {
    let mut rows = no_rows();
    for (i, row) in ROWS.iter().enumerate() {
        rows.uri.values.extend_from_slice(row.uri.unwrap_or_default().as_bytes());
        rows.uri.end();
        if rows.differs.is_empty() {
            rows.differs.push(0);
        }
        if row.uri.map(str::as_bytes) != Some(row.input) {
            rows.differs[0] |= 1 << i;
            rows.input.values.extend_from_slice(row.input);
        }
        rows.input.end();
        rows.key.push(key(i, 0));
        rows.more_keys[0].push(key(i, 0xFF));
        rows.flags.push(row.flags.0);
        rows.spoofing_flags.push(spoofing_flags(row.input, rows.uri.get(i)).0);
        rows.offset.push(i as u64 * 1000);
        rows.faults.extend(row.fault.map(|fault| (i as u32, fault)));
        carry(&mut rows, i);
    }
    rows
}

/// Adds the carried fields of a row; every second row has some.
fn carry(rows: &mut Rows, i: usize) {
    let has_fields = i.is_multiple_of(2);
    rows.carried.times.push(has_fields.then_some(1_388_718_201_500 + i as i64));
    rows.carried.statuses.push(has_fields.then_some(-404 + i as i32));
    let carried = &mut rows.carried;
    carried.capture_offsets.push(has_fields.then_some(i64::from(i32::MAX) + i as i64 - 2));
    carried.capture_lengths.push(has_fields.then_some(i as i64));
    let texts = [&mut carried.redirects, &mut carried.redirected_from, &mut carried.digests, &mut carried.charsets];
    let more = [&mut carried.mimes, &mut carried.detected_mimes, &mut carried.languages, &mut carried.filenames];
    let archives = [&mut carried.truncated, &mut carried.segments, &mut carried.payload_digests];
    let requests = [&mut carried.methods, &mut carried.request_bodies, &mut carried.cdxj_members];
    let links = [&mut carried.pages, &mut carried.link_types, &mut carried.link_rels, &mut carried.link_texts];
    let texts = texts.into_iter().chain(more).chain(archives).chain(requests).chain(links);
    rows.recipe_texts.resize_with(policy().recipes.len(), TextColumn::new);
    for texts in texts.chain(&mut rows.recipe_texts) {
        if has_fields {
            texts.values.extend_from_slice(format!("text {i}").as_bytes());
        }
        texts.end();
    }
}

fn policy() -> Policy {
    let recipe = |column| RecipeColumn { column, recipe: Recipe::parse("surt-ia").unwrap() };
    let recipes = all_columns().recipes().into_iter().map(recipe).collect();
    Policy { more_keys: vec![Rung::Simple], recipes, ..Policy::default() }
}

/// Every column except the keys of rungs that the rows do not have.
fn all_columns() -> ColumnSet {
    let missing = ["key_syntax", "key_scheme", "key_protocol"];
    ColumnSet::named(COLUMNS.iter().map(|column| column.name).filter(|name| !missing.contains(name))).unwrap()
}

fn options(format: OutputFormat) -> OutputOptions {
    OutputOptions {
        format,
        compression: Compression::default(),
        columns: all_columns(),
        policy: policy(),
        sources: vec!["first.txt".to_string(), "second, \"odd\".txt".to_string()],
    }
}

fn create(path: &Path, options: OutputOptions) -> Result<(output::Encoder, Output), OutputError> {
    output::create(&Destination::File(path.to_path_buf()), options)
}

/// Writes the same rows `times` times and returns the file.
fn write(directory: &Path, options: OutputOptions, times: usize) -> PathBuf {
    let path = directory.join(format!("out.{}", options.format.suffixes()[0]));
    let (encoder, mut output) = create(&path, options).unwrap();
    let mut rows_again = Rows::default();
    for _ in 0..times {
        // Reuses the buffers, as a worker does.
        rows_again.clone_from(&rows());
        let encoded = encoder.encode(&mut rows_again, &RUNS).unwrap();
        assert_eq!((encoded.rows(), rows_again.len(), rows_again.uri.len()), (5, 0, 0));
        output.append(encoded).unwrap();
    }
    let finished = output.finish().unwrap();
    assert_eq!((finished.rows, finished.row_groups), (5 * times as u64, times as u64));
    assert_eq!(finished.bytes, fs::metadata(&path).unwrap().len());
    assert_eq!(finished.path.as_deref(), Some(path.as_path()));
    assert_eq!(fs::read_dir(directory).unwrap().count(), 1, "the directory contains only the output");
    path
}

/// Asserts that the batch has [`ROWS`] from [`RUNS`], in every column.
fn assert_rows(batch: &RecordBatch) {
    assert_eq!(batch.num_rows(), ROWS.len());
    assert_eq!(
        batch.schema().fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(),
        all_columns().names().collect::<Vec<_>>()
    );
    let column = |name| batch.column_by_name(name).unwrap();
    let nulls = |name| (0..5).map(|i| column(name).is_null(i)).collect::<Vec<_>>();
    for name in ["fetch_time", "fetch_status", "fetch_redirect", "content_digest", "url_surtkey", "key_surt_ia"] {
        assert_eq!(nulls(name), [false, true, false, true, false], "{name}");
    }
    assert_eq!(column("fetch_time").as_primitive::<TimestampMillisecondType>().value(2), 1_388_718_201_502);
    assert_eq!(column("fetch_status").as_primitive::<Int16Type>().value(4), -400);
    assert_eq!(column("content_charset").as_string::<i32>().value(0), "text 0");
    let integers = |name| column(name).as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
    assert_eq!(integers("warc_record_length"), [Some(0), None, Some(2), None, Some(4)]);
    let max = i64::from(i32::MAX);
    assert_eq!(integers("warc_record_offset"), [Some(max - 2), None, Some(max), None, Some(max + 2)]);
    let labels = ["content_mime_type", "content_mime_detected", "content_languages", "content_truncated"];
    for name in labels.into_iter().chain(["warc_filename", "warc_segment"]) {
        assert_eq!(column(name).as_string::<i32>().value(4), "text 4", "{name}");
    }
    assert_eq!(column("url_path").as_string::<i32>().value(2), "/%FF%20%22x%22,y");
    let rules = column("key_rules").as_fixed_size_binary().value(2);
    assert_eq!(rules, KeyAlgorithm::Xxh3.key(b"text 2"));
    let names = |array: &dyn Array, i: usize| -> Option<String> {
        let (keys, values): (Option<usize>, _) = match array.data_type() {
            DataType::Dictionary(keys, _) if **keys == DataType::Int8 => {
                let array = array.as_dictionary::<Int8Type>();
                (array.key(i), array.values().clone())
            }
            _ => {
                let array = array.as_dictionary::<Int32Type>();
                (array.key(i), array.values().clone())
            }
        };
        keys.map(|key| values.as_string::<i32>().value(key).to_string())
    };
    for (i, row) in ROWS.iter().enumerate() {
        let source = if i < 2 { "second, \"odd\".txt" } else { "first.txt" };
        assert_eq!(names(column("source"), i).as_deref(), Some(source));
        assert_eq!(column("record").as_primitive::<UInt64Type>().value(i), [7, 8, 1, 2, 3][i]);
        assert_eq!(column("record_offset").as_primitive::<UInt64Type>().value(i), i as u64 * 1000);
        let uris = column("uri").as_string::<i32>();
        assert_eq!(uris.is_valid(i).then(|| uris.value(i)), row.uri);
        let inputs = column("input").as_binary::<i32>();
        let differs = row.uri.map(str::as_bytes) != Some(row.input);
        assert_eq!(inputs.is_valid(i).then(|| inputs.value(i)), differs.then_some(row.input));
        assert_eq!(column("key").as_fixed_size_binary().value(i), key(i, 0));
        assert_eq!(column("key_simple").as_fixed_size_binary().value(i), key(i, 0xFF));
        assert_eq!(names(column("fault"), i).as_deref(), row.fault.map(|fault| fault.kind.name()));
        assert_eq!(names(column("fault_component"), i).as_deref(), row.fault.map(|fault| fault.component.name()));
        let ats = column("fault_at").as_primitive::<UInt32Type>();
        assert_eq!(ats.is_valid(i).then(|| ats.value(i)), row.fault.map(|fault| fault.at));
        assert_eq!(column("flags").as_primitive::<UInt32Type>().value(i), row.flags.0);
    }
}

fn assert_metadata<'a>(get: impl Fn(&str) -> Option<&'a str>) {
    assert_eq!(get("irikey.version"), Some(env!("CARGO_PKG_VERSION")));
    assert_eq!(get("irikey.sources"), Some("2"));
    for (name, value) in policy().describe() {
        assert_eq!(get(&format!("irikey.{name}")), Some(value.as_str()));
    }
}

#[test]
fn parquet_returns_rows_and_metadata() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), options(OutputFormat::Parquet), 3);
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 3);
    let pairs = reader.metadata().file_metadata().key_value_metadata().unwrap().clone();
    assert_metadata(|name| pairs.iter().find(|pair| pair.key == name).and_then(|pair| pair.value.as_deref()));
    let schema = reader.schema().clone();
    for (field, column) in schema.fields().iter().zip(all_columns().iter()) {
        assert_eq!((field.data_type(), field.is_nullable()), (&column.kind.data_type(), column.nullable));
    }
    let batches: Vec<_> = reader.with_batch_size(ROWS.len()).build().unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.len(), 3);
    batches.iter().for_each(assert_rows);
}

#[test]
fn parquet_encodings_depend_on_the_kind_of_column() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), options(OutputFormat::Parquet), 1);
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    for column in reader.metadata().row_group(0).columns() {
        let name = column.column_path().string();
        let encodings: Vec<_> = column.encodings().collect();
        let is_dictionary = encodings.contains(&Encoding::RLE_DICTIONARY);
        let zstd = matches!(column.compression(), Codec::ZSTD(_));
        let kind = COLUMNS.iter().find(|column| column.name == name).unwrap().kind;
        let expected = match kind {
            ColumnKind::Key => (false, false, false, Encoding::PLAIN),
            ColumnKind::Text | ColumnKind::Bytes => (false, true, false, Encoding::DELTA_LENGTH_BYTE_ARRAY),
            ColumnKind::Count => (false, false, true, Encoding::DELTA_BINARY_PACKED),
            ColumnKind::Time => (false, true, true, Encoding::DELTA_BINARY_PACKED),
            ColumnKind::Name => (true, false, true, Encoding::RLE_DICTIONARY),
            _ => (true, true, true, Encoding::RLE_DICTIONARY),
        };
        // A column chunk of nulls has no values to encode.
        if column.statistics().and_then(|all| all.null_count_opt()) == Some(column.num_values() as u64) {
            continue;
        }
        assert_eq!(
            (is_dictionary, zstd, column.statistics().is_some()),
            (expected.0, expected.1, expected.2),
            "{name}"
        );
        assert!(encodings.contains(&expected.3), "{name}: {encodings:?}");
    }
}

#[test]
fn parquet_uses_the_requested_compression() {
    let codecs = [
        (Compression::Lz4, Codec::LZ4_RAW),
        (Compression::Snappy, Codec::SNAPPY),
        (Compression::None, Codec::UNCOMPRESSED),
    ];
    for (compression, codec) in codecs {
        let directory = tempfile::tempdir().unwrap();
        let path = write(directory.path(), OutputOptions { compression, ..options(OutputFormat::Parquet) }, 1);
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
        let columns = reader.metadata().row_group(0).columns();
        assert_eq!(columns.iter().find(|column| column.column_path().string() == "uri").unwrap().compression(), codec);
        assert_rows(&reader.build().unwrap().next().unwrap().unwrap());
    }
}

/// Opens a file with the places of its pages, and with the encodings of all of them.
fn with_pages(path: &Path) -> ParquetRecordBatchReaderBuilder<File> {
    let options = ArrowReaderOptions::new().with_offset_index_policy(PageIndexPolicy::Required);
    let options = options.with_encoding_stats_as_mask(false);
    ParquetRecordBatchReaderBuilder::try_new_with_options(File::open(path).unwrap(), options).unwrap()
}

/// Returns the first row of each page of a column. The pages follow each other up to the end of the column.
fn first_rows(reader: &ParquetRecordBatchReaderBuilder<File>, number: usize) -> Vec<i64> {
    let column = reader.metadata().row_group(0).column(number);
    let pages = reader.metadata().page_index_for_row_group(0);
    let pages = pages.page_locations(number).unwrap();
    let end = pages.iter().fold(column.data_page_offset(), |at, page| {
        assert_eq!(page.offset, at);
        at + i64::from(page.compressed_page_size)
    });
    let (start, len) = column.byte_range();
    assert_eq!(end as u64, start + len);
    assert_eq!(column.dictionary_page_offset().unwrap_or(column.data_page_offset()), start as i64);
    pages.iter().map(|page| page.first_row_index).collect()
}

/// Asserts that a column has these encodings, of levels included, in any order.
fn assert_encodings(column: &ColumnChunkMetaData, expected: &[Encoding]) {
    let [found, expected] = [column.encodings().collect(), expected.to_vec()].map(|mut encodings: Vec<_>| {
        encodings.sort_unstable();
        encodings
    });
    assert_eq!(found, expected);
}

/// Keys, keys with nulls, and counts, also extreme ones.
#[test]
fn parquet_keys_and_counts_span_pages() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.parquet");
    let columns = ColumnSet::named(["key", "record", "record_offset", "key_surt_ia"]).unwrap();
    let (encoder, mut output) = create(&path, OutputOptions { columns, ..options(OutputFormat::Parquet) }).unwrap();
    let count = 100_000;
    let recipe_text = |i: u32| if i.is_multiple_of(3) { String::new() } else { i.to_string() };
    let offset = |i: u32| if i.is_multiple_of(1000) { u64::MAX - u64::from(i) } else { u64::from(i) * 77 };
    let mut rows = no_rows();
    rows.recipe_texts.resize_with(policy().recipes.len(), TextColumn::new);
    for i in 0..count {
        rows.uri.end();
        rows.input.end();
        rows.key.push(u128::from(i).to_be_bytes());
        rows.more_keys[0].push([0; 16]);
        rows.flags.push(0);
        rows.offset.push(offset(i));
        for texts in &mut rows.recipe_texts {
            texts.values.extend_from_slice(recipe_text(i).as_bytes());
            texts.end();
        }
    }
    let run = SourceRun { source: 0, first_record: 1, rows: count };
    output.append(encoder.encode(&mut rows, &[run]).unwrap()).unwrap();
    output.finish().unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap();
    let mut next = 0;
    for batch in reader.build().unwrap() {
        let batch = batch.unwrap();
        let (keys, recipe_keys) = (batch.column(0).as_fixed_size_binary(), batch.column(3).as_fixed_size_binary());
        let (records, offsets) =
            (batch.column(1).as_primitive::<UInt64Type>(), batch.column(2).as_primitive::<UInt64Type>());
        for row in 0..batch.num_rows() {
            assert_eq!(keys.value(row), &u128::from(next).to_be_bytes()[..]);
            assert_eq!((records.value(row), offsets.value(row)), (u64::from(next) + 1, offset(next)));
            let recipe_key = recipe_keys.is_valid(row).then(|| recipe_keys.value(row));
            let expected = (!next.is_multiple_of(3)).then(|| KeyAlgorithm::Xxh3.key(recipe_text(next).as_bytes()));
            assert_eq!(recipe_key, expected.as_ref().map(|key| &key[..]));
            next += 1;
        }
    }
    assert_eq!(next, count);

    // Readers of some rows find them by the places of the pages.
    let reader = with_pages(&path);
    for (number, column) in reader.metadata().row_group(0).columns().iter().enumerate() {
        assert_eq!(first_rows(&reader, number), [0, 65_536], "{number}");
        assert_eq!(column.uncompressed_size(), column.compressed_size());
        let encoding = if [0, 3].contains(&number) { Encoding::PLAIN } else { Encoding::DELTA_BINARY_PACKED };
        let stats = PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count: 2 };
        assert_eq!(column.page_encoding_stats(), Some(&vec![stats]));
        assert_encodings(column, &[Encoding::RLE, encoding]);
    }
    let chosen = RowSelection::from(vec![RowSelector::skip(70_000), RowSelector::select(3)]);
    let batch = reader.with_row_selection(chosen).build().unwrap().next().unwrap().unwrap();
    assert_eq!(batch.column(1).as_primitive::<UInt64Type>().values(), &[70_001, 70_002, 70_003]);
    assert_eq!(batch.column(0).as_fixed_size_binary().value(2), &70_002_u128.to_be_bytes()[..]);
}

/// Texts of many lengths, in pages that are limited by bytes or by rows, with no, some or only nulls, are read back
/// unchanged with every codec.
#[test]
fn parquet_texts_span_pages() {
    let text = |i: usize| "x/".repeat([0, 1, 7, 40, 300][i % 5] + i % 3) + &i.to_string();
    type IsPresent = fn(usize) -> bool;
    let shapes: [(usize, IsPresent); 5] = [
        (40_000, |_| true),
        (40_000, |i| i % 3 == 0),
        (40_000, |i| i / 1000 % 2 == 0),
        (150_000, |i| i % 30_001 == 0),
        (70_000, |_| false),
    ];
    for (count, is_present) in shapes {
        for compression in [Compression::None, Compression::Lz4, Compression::Snappy, Compression::Zstd(1)] {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("x.parquet");
            let columns = ColumnSet::named(["uri", "input"]).unwrap();
            let options = OutputOptions { columns, compression, ..options(OutputFormat::Parquet) };
            let (encoder, mut output) = create(&path, options).unwrap();
            let mut rows = no_rows();
            rows.differs = vec![0; count.div_ceil(64)];
            for i in 0..count {
                rows.uri.values.extend_from_slice(text(i).as_bytes());
                rows.uri.end();
                if is_present(i) {
                    rows.differs[i / 64] |= 1 << (i % 64);
                    rows.input.values.extend_from_slice(text(i + 1).as_bytes());
                }
                rows.input.end();
                rows.key.push([0; 16]);
                rows.more_keys[0].push([0; 16]);
                rows.flags.push(0);
                rows.offset.push(0);
            }
            let run = SourceRun { source: 0, first_record: 1, rows: count as u32 };
            output.append(encoder.encode(&mut rows, &[run]).unwrap()).unwrap();
            output.finish().unwrap();
            let mut i = 0;
            let reader = with_pages(&path);
            for number in 0..2 {
                let first_rows = first_rows(&reader, number);
                assert!(first_rows.is_sorted() && first_rows[0] == 0, "{first_rows:?}");
                let column = reader.metadata().row_group(0).column(number);
                let is_compressed = column.uncompressed_size() != column.compressed_size();
                assert_eq!(is_compressed, compression != Compression::None);
            }
            for batch in reader.with_batch_size(999).build().unwrap() {
                let batch = batch.unwrap();
                let (uris, inputs) = (batch.column(0).as_string::<i32>(), batch.column(1).as_binary::<i32>());
                for (uri, input) in uris.iter().zip(inputs) {
                    assert_eq!(uri, Some(text(i).as_str()));
                    assert_eq!(input, is_present(i).then(|| text(i + 1)).as_deref().map(str::as_bytes), "row {i}");
                    i += 1;
                }
            }
            assert_eq!(i, count);
        }
    }
}

/// Few and many source runs have different encodings; a source that occurs again has one entry in the dictionary.
#[test]
fn parquet_returns_any_number_of_sources() {
    for count in [1u32, 2, 3, 64, 65, 300] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.parquet");
        let names: Vec<_> = (0..count).map(|i| format!("part-{i}.txt")).collect();
        let columns = ColumnSet::named(["record", "source"]).unwrap();
        let options = OutputOptions { columns, sources: names.clone(), ..options(OutputFormat::Parquet) };
        let (encoder, mut output) = create(&path, options).unwrap();
        let run = |i: u32| SourceRun { source: (count - 1 - i) % 64, first_record: 1, rows: 1 + i * 70 % 200 };
        let runs: Vec<_> = (0..count).map(run).collect();
        let mut rows = no_rows();
        for _ in 0..runs.iter().map(|run| run.rows).sum() {
            rows.uri.end();
            rows.input.end();
            rows.key.push([0; 16]);
            rows.more_keys[0].push([0; 16]);
            rows.flags.push(0);
            rows.offset.push(0);
        }
        output.append(encoder.encode(&mut rows, &runs).unwrap()).unwrap();
        output.finish().unwrap();
        let mut expected = runs.iter().flat_map(|run| (0..run.rows).map(|_| names[run.source as usize].as_str()));
        let reader = with_pages(&path);
        if count <= 64 {
            assert_eq!(first_rows(&reader, 1), [0]);
            let column = reader.metadata().row_group(0).column(1);
            assert_eq!(column.uncompressed_size(), column.compressed_size());
            assert_encodings(column, &[Encoding::RLE, Encoding::RLE_DICTIONARY, Encoding::PLAIN]);
            let stats = |page_type, encoding| PageEncodingStats { page_type, encoding, count: 1 };
            let dictionary = stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN);
            let stats = vec![dictionary, stats(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY)];
            assert_eq!(column.page_encoding_stats(), Some(&stats));
        }
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            assert_eq!(batch.column(1).as_dictionary::<Int32Type>().values().len(), count.min(64) as usize);
            let sources = batch.column(1).as_dictionary::<Int32Type>().downcast_dict::<arrow::array::StringArray>();
            for source in sources.unwrap() {
                assert_eq!(source, expected.next());
            }
        }
        assert_eq!(expected.next(), None);
    }
}

#[test]
fn arrow_file_and_stream_return_rows_and_metadata() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), options(OutputFormat::Arrow), 2);
    let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    assert_metadata(|name| schema.metadata().get(name).map(String::as_str));
    assert_eq!(reader.map(|batch| assert_rows(&batch.unwrap())).count(), 2);

    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), options(OutputFormat::ArrowStream), 2);
    let reader = StreamReader::try_new(File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    assert_metadata(|name| schema.metadata().get(name).map(String::as_str));
    assert_eq!(reader.map(|batch| assert_rows(&batch.unwrap())).count(), 2);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn csv_returns_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), options(OutputFormat::Csv), 2);
    let mut reader = csv::Reader::from_path(path).unwrap();
    let header: Vec<_> = reader.headers().unwrap().iter().map(str::to_string).collect();
    assert_eq!(header, all_columns().names().collect::<Vec<_>>());
    let mut count = 0;
    for (i, record) in reader.byte_records().enumerate() {
        let (record, i) = (record.unwrap(), i % ROWS.len());
        let row = &ROWS[i];
        let field = |name: &str| &record[header.iter().position(|column| column == name).unwrap()];
        let differs = row.uri.map(str::as_bytes) != Some(row.input);
        assert_eq!(field("input"), if differs { row.input } else { b"" });
        assert_eq!(field("uri"), row.uri.unwrap_or_default().as_bytes());
        assert_eq!(field("key"), hex(&key(i, 0)).as_bytes());
        assert_eq!(field("fault"), row.fault.map_or("", |fault| fault.kind.name()).as_bytes());
        assert_eq!(field("flags"), row.flags.0.to_string().as_bytes());
        assert_eq!(field("source"), if i < 2 { &b"second, \"odd\".txt"[..] } else { b"first.txt" });
        count += 1;
    }
    assert_eq!(count, 10);
}

#[test]
fn json_lines_return_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), options(OutputFormat::JsonLines), 2);
    let text = fs::read_to_string(path).unwrap();
    let objects: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 10);
    for (i, object) in objects.iter().enumerate() {
        let i = i % ROWS.len();
        let names: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, all_columns().names().collect::<Vec<_>>());
        assert_eq!(object["uri"].as_str(), ROWS[i].uri);
        assert_eq!(object["key"], hex(&key(i, 0)));
        assert_eq!(object["fault_at"].as_u64(), ROWS[i].fault.map(|fault| fault.at.into()));
        assert_eq!(object["flags"], serde_json::json!(ROWS[i].flags.names().collect::<Vec<_>>()));
    }
    assert!(objects[0]["input"].is_null() && objects[0]["fault"].is_null());
    assert_eq!(objects[1]["input"], "HTTP://b");
    assert_eq!(objects[2]["input"]["hex"], hex(ROWS[2].input));
}

#[test]
fn text_has_one_line_per_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), options(OutputFormat::Text), 2);
    let once = "http://a/\nhttp://b/\nhttp://c/%FF%20%22x%22,y\n\n\n";
    assert_eq!(fs::read_to_string(path).unwrap(), once.repeat(2));
}

#[test]
fn an_output_without_rows_is_valid() {
    for format in OutputFormat::ALL {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        let (encoder, mut output) = create(&path, options(format)).unwrap();
        output.append(encoder.encode(&mut Rows::default(), &[]).unwrap()).unwrap();
        assert_eq!(output.finish().unwrap().rows, 0);
        let file = || File::open(&path).unwrap();
        let names = |schema: &arrow::datatypes::Schema| schema.fields().len();
        let columns = all_columns().iter().count();
        match format {
            OutputFormat::Parquet => {
                let reader = ParquetRecordBatchReaderBuilder::try_new(file()).unwrap();
                assert_eq!((reader.metadata().num_row_groups(), names(reader.schema())), (0, columns));
            }
            OutputFormat::Arrow => assert_eq!(names(&FileReader::try_new(file(), None).unwrap().schema()), columns),
            OutputFormat::ArrowStream => {
                assert_eq!(names(&StreamReader::try_new(file(), None).unwrap().schema()), columns)
            }
            OutputFormat::Csv | OutputFormat::Tsv => assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1),
            OutputFormat::JsonLines | OutputFormat::Text | OutputFormat::Cdxj => {
                assert_eq!(fs::read(&path).unwrap(), b"");
            }
            OutputFormat::Zipnum => {
                assert_eq!(std::io::read_to_string(flate2::read::GzDecoder::new(file())).unwrap(), "");
            }
            other => panic!("{other:?} is not tested"),
        }
    }
}

#[test]
fn an_old_output_is_replaced_only_by_a_complete_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.txt");
    fs::write(&path, "old").unwrap();
    let (encoder, mut output) = create(&path, options(OutputFormat::Text)).unwrap();
    let mut names = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let is_temporary = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(".irikey-");
    let temporary = names.find(is_temporary).unwrap();
    output.append(encoder.encode(&mut rows(), &RUNS).unwrap()).unwrap();
    assert!(temporary.exists());
    output.abort().unwrap();
    assert!(!temporary.exists());
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");

    let (_, output) = create(&path, options(OutputFormat::Text)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    output.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_dropped_output_leaves_no_file() {
    for format in OutputFormat::ALL {
        let directory = tempfile::tempdir().unwrap();
        let (encoder, mut output) = create(&directory.path().join("x"), options(format)).unwrap();
        output.append(encoder.encode(&mut rows(), &RUNS).unwrap()).unwrap();
        drop(output);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{format:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let (_, mut output) = create(&directory.path().join("x"), options(OutputFormat::Parquet)).unwrap();
    let (other, _) = create(&directory.path().join("y"), options(OutputFormat::Text)).unwrap();
    let foreign = output.append(other.encode(&mut rows(), &RUNS).unwrap());
    assert!(matches!(foreign, Err(OutputError::ForeignRows)));
}

#[test]
fn an_invalid_destination_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let error_of = |path: &Path| create(path, options(OutputFormat::Csv)).err().unwrap().to_string();
    let shown = directory.path().display();
    // The last two do not exist.
    for path in [directory.path().to_path_buf(), directory.path().join("x.csv/"), directory.path().join("x.csv/.")] {
        assert_eq!(error_of(&path), format!("{}: names a directory; name a file", path.display()));
    }
    let message = error_of(&directory.path().join("no/x.csv"));
    let expected = format!("{shown}/no/x.csv: cannot create: the directory {shown}/no does not exist; create it first");
    assert_eq!(message, expected);
    fs::write(directory.path().join("file"), "").unwrap();
    let message = error_of(&directory.path().join("file/x.csv"));
    let expected =
        format!("{shown}/file/x.csv: cannot create: {shown}/file is not a directory; name another directory");
    assert_eq!(message, expected);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// The formats that can be written to a device or a pipe. ZipNum has an index beside its data, so it needs a file.
    fn formats_of_devices() -> impl Iterator<Item = OutputFormat> {
        OutputFormat::ALL.into_iter().filter(|format| *format != OutputFormat::Zipnum)
    }

    #[test]
    fn permissions_are_those_of_an_ordinary_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = write(directory.path(), options(OutputFormat::Csv), 1);
        let ordinary = directory.path().join("ordinary");
        fs::write(&ordinary, "").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&ordinary));
    }

    #[test]
    fn a_link_stays_and_its_target_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (target, link) = (directory.path().join("target.txt"), directory.path().join("link.txt"));
        fs::write(&target, "old").unwrap();
        symlink(&target, &link).unwrap();
        create(&link, options(OutputFormat::Text)).unwrap().1.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "");
        // A target that does not exist is created.
        fs::remove_file(&target).unwrap();
        let second = directory.path().join("second.txt");
        symlink("link.txt", &second).unwrap();
        create(&second, options(OutputFormat::Text)).unwrap().1.finish().unwrap();
        assert!(link.is_symlink() && second.is_symlink() && target.is_file());
    }

    #[test]
    fn links_that_form_a_cycle_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("x.txt");
        symlink("x.txt", &link).unwrap();
        let message = create(&link, options(OutputFormat::Text)).err().unwrap().to_string();
        assert!(message.contains("cannot create: too many levels of symbolic links"), "{message}");
        assert!(link.is_symlink());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_reported() {
        for format in formats_of_devices() {
            let written = create(Path::new("/dev/full"), options(format)).and_then(|(encoder, mut output)| {
                output.append(encoder.encode(&mut rows(), &RUNS)?)?;
                output.finish()
            });
            let message = written.unwrap_err().to_string();
            let expected = "/dev/full: cannot write: no space left on device; the output is incomplete; free disk space, \
                            or choose another directory";
            assert_eq!(message, expected, "{format:?}");
        }
        assert!(Path::new("/dev/full").exists());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_closed_pipe_has_its_own_error() {
        for format in formats_of_devices() {
            let (reader, writer) = std::io::pipe().unwrap();
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
            let opened = create(Path::new(&path), options(format));
            drop(reader);
            let written = opened.and_then(|(encoder, mut output)| {
                output.append(encoder.encode(&mut rows(), &RUNS)?)?;
                output.finish()
            });
            assert!(matches!(written, Err(OutputError::ClosedPipe)), "{format:?}: {written:?}");
        }
    }
}
