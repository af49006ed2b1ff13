//! Parquet and Arrow files as inputs: every row is a record; only the columns that are needed are read.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, DictionaryArray, Int16Array, RecordBatch, StringArray, StringViewArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Fields, Int8Type};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use irikey::batch::SourceRun;
use irikey::canon::{Policy, Rows};
use irikey::encoding::Charset;
use irikey::input::{Defect, Source};
use irikey::iri::Flags;
use irikey::record::csv::{ColumnChoice, CsvOptions};
use irikey::record::fields::FieldSet;
use irikey::record::{FormatOptions, InputFormat};
use irikey::run::{ReadError, RunError, RunOptions};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use crate::collect::{file, options, path, run, run_groups, try_run};

fn batch() -> RecordBatch {
    let urls: StringViewArray = (0..1000).map(|i| (i % 100 != 7).then(|| format!("HTTP://Example.org/{i}"))).collect();
    let digests: DictionaryArray<Int8Type> = (0..1000).map(|i| Some(["A", "B"][i % 2])).collect();
    let columns: [(&str, ArrayRef); 6] = [
        ("junk", Arc::new(StringArray::from_iter_values((0..1000).map(|i| "x".repeat(i))))),
        ("url", Arc::new(urls)),
        ("fetch_time", Arc::new(TimestampMicrosecondArray::from_iter_values((0..1000).map(|i| i * 1_000_000)))),
        ("fetch_status", Arc::new((0..1000).map(|i| (i % 3 > 0).then_some(200i16)).collect::<Int16Array>())),
        ("page", Arc::new(BinaryArray::from_iter_values((0..1000).map(|_| "http://base.example/a/")))),
        ("content_digest", Arc::new(digests)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn auto(url: Option<&str>, base: Option<&str>) -> RunOptions {
    let column = |name: &str| ColumnChoice::parse(name);
    let csv = CsvOptions { url: url.map(column), base: base.map(column), ..CsvOptions::default() };
    let guess = FormatOptions { is_table: url.is_some() || base.is_some(), csv, ..FormatOptions::default() };
    RunOptions { format: InputFormat::Auto(guess), ..options(2, 5_000, 1_000) }
}

fn files(directory: &Path) -> [std::path::PathBuf; 3] {
    let [parquet, arrow, stream] = ["t.parquet", "t.arrow", "t.arrows"].map(|name| directory.join(name));
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(300)).build();
    let mut writer = ArrowWriter::try_new(File::create(&parquet).unwrap(), batch().schema(), Some(properties)).unwrap();
    writer.write(&batch()).unwrap();
    writer.close().unwrap();
    write_arrow(&arrow, &batch());
    let mut writer = StreamWriter::try_new(File::create(&stream).unwrap(), &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
    [parquet, arrow, stream]
}

#[test]
fn every_row_is_a_record() {
    let directory = tempfile::tempdir().unwrap();
    for file in files(directory.path()) {
        let out = run(path(&file), &auto(None, None));
        assert_eq!((out.rows.len(), out.summary.input_errors.len()), (1000, 0));
        for (i, row) in out.rows.iter().enumerate() {
            assert_eq!((row.record, row.offset), (i as u64 + 1, i as u64));
            match &row.fault {
                None => assert_eq!(row.uri, format!("http://example.org/{i}").into_bytes()),
                Some(fault) => assert!(i % 100 == 7 && fault.starts_with("no-url"), "{i} {fault}"),
            }
        }
        let out = run(path(&file), &auto(Some("content_digest"), Some("page")));
        assert_eq!(out.rows[1].uri, b"http://base.example/a/B");
    }
}

/// Writes a Parquet file and an Arrow file of a batch.
fn parquet_and_arrow(directory: &Path, batch: &RecordBatch) -> [std::path::PathBuf; 2] {
    let [parquet, arrow] = ["t.parquet", "t.arrow"].map(|name| directory.join(name));
    let mut writer = ArrowWriter::try_new(File::create(&parquet).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    write_arrow(&arrow, batch);
    [parquet, arrow]
}

/// Writes a batch as an Arrow file.
pub(crate) fn write_arrow(path: &Path, batch: &RecordBatch) {
    let mut writer = FileWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

/// A stream that ends early gives the rows of its complete batches, and one error.
#[test]
fn batches_before_the_damage_of_a_stream_are_rows() {
    let urls = |from: usize| -> ArrayRef {
        Arc::new((from..from + 300).map(|i| Some(format!("http://h/{i}"))).collect::<StringArray>())
    };
    let batch = |from| RecordBatch::try_from_iter([("url", urls(from))]).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch(0).schema()).unwrap();
    let mut ends = vec![writer.get_ref().len()];
    for from in [0, 300, 600] {
        writer.write(&batch(from)).unwrap();
        ends.push(writer.get_ref().len());
    }
    let whole = writer.into_inner().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let read = |bytes: &[u8]| {
        let out = run(path(&file(&directory, "x.arrows", bytes)), &auto(None, None));
        (out.rows.len(), out.summary.input_errors)
    };
    for (count, end) in ends.iter().enumerate() {
        let (rows, errors) = read(&whole[..*end]);
        assert!(rows == 300 * count && errors.is_empty(), "{rows} {errors:?}");
        for more in [4, 30, 800] {
            let (rows, errors) = read(&whole[..whole.len().min(end + more)]);
            if count == 3 && more > 4 {
                assert!(rows == 900 && errors.is_empty(), "{rows} {errors:?}");
                continue;
            }
            let [error] = &errors[..] else { panic!("{errors:?}") };
            let place = if count > 0 { format!("after {rows} records, at byte {end}: ") } else { String::new() };
            let message = format!("{place}Arrow IPC: the message at byte {end} reaches past the end");
            assert!(rows == 300 * count && error.to_string().contains(&message), "{error}");
        }
    }
    let (rows, errors) = read(&[&whole[..], b"more"].concat());
    assert!(rows == 900 && errors[0].to_string().contains("4 bytes follow the end of the stream"), "{errors:?}");
}

/// Numbers and times may be texts of any type; what cannot be parsed is null.
#[test]
fn numbers_and_times_may_be_texts() {
    let directory = tempfile::tempdir().unwrap();
    let texts = |texts: [Option<&str>; 4]| Arc::new(texts.into_iter().collect::<StringArray>()) as ArrayRef;
    let columns = [
        ("url", texts([Some("http://a/"), Some("http://b/"), Some("http://c/"), Some("http://d/")])),
        ("fetch_status", texts([Some("200"), Some("x"), None, Some("404")])),
        (
            "fetch_time",
            texts([Some("20260101000000"), Some("2300-01-01T00:00:01Z"), Some("soon"), Some("2026-01-01 00:00:00")]),
        ),
        ("warc_record_offset", texts([Some("12345678901"), None, Some("1.5"), Some("7")])),
    ];
    let dictionary = DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8));
    for data_type in [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, DataType::Binary, dictionary] {
        let cast = |(name, texts): &(&'static str, ArrayRef)| (*name, arrow::compute::cast(texts, &data_type).unwrap());
        let batch = RecordBatch::try_from_iter(columns.iter().map(cast)).unwrap();
        for table in parquet_and_arrow(directory.path(), &batch) {
            let policy = Policy { carry: FieldSet::ALL, ..Policy::default() };
            let read = |rows: &mut Rows, _: &[_]| {
                let (statuses, times, offsets) =
                    (&rows.carried.statuses, &rows.carried.times, &rows.carried.capture_offsets);
                format!("{statuses:?} {times:?} {offsets:?}")
            };
            let (groups, summary) = run_groups(path(&table), &auto(None, None), &policy, read);
            assert!(summary.input_errors.is_empty(), "{data_type} {:?}", summary.input_errors);
            let expected = "[Some(200), None, None, Some(404)] [Some(1767225600000), Some(10413792001000), None, Some(1767225600000)] \
                            [Some(12345678901), None, None, Some(7)]";
            assert_eq!(groups, [expected], "{data_type}");
        }
    }
}

/// Text and bytes are read from columns of any type that has them, which are named by name or by number.
#[test]
fn columns_of_all_types_of_text_give_the_same_rows() {
    let directory = tempfile::tempdir().unwrap();
    let text = |i: usize| if i % 3 == 1 { None } else { Some(format!("http://example.org/{}", i % 7)) };
    let plain: ArrayRef = Arc::new((0..50).map(text).collect::<StringArray>());
    let dictionary = DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::LargeUtf8));
    let types = [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, dictionary];
    let bytes = [DataType::Binary, DataType::LargeBinary, DataType::BinaryView];
    let mut read = Vec::new();
    for data_type in types.into_iter().chain(bytes) {
        let column = arrow::compute::cast(&plain, &data_type).unwrap();
        let number: ArrayRef = Arc::new(Int16Array::from_iter_values(0..50));
        let batch = RecordBatch::try_from_iter([("number", number), ("url", column)]).unwrap();
        for table in parquet_and_arrow(directory.path(), &batch) {
            for column in [None, Some("url"), Some("2")] {
                let out = run(path(&table), &auto(column, None));
                assert!(out.summary.input_errors.is_empty(), "{data_type} {:?}", out.summary.input_errors);
                read.push(out.rows);
            }
            for missing in ["0", "3"] {
                let error = try_run(path(&table), &auto(Some(missing), None)).unwrap_err().to_string();
                assert!(error.contains(&format!("there is no column number {missing}")), "{error}");
            }
        }
    }
    assert_eq!(read[0].len(), 50);
    assert!((0..50).all(|i| text(i).map(String::into_bytes).unwrap_or_default() == read[0][i].uri));
    assert!(read.iter().all(|rows| *rows == read[0]));
}

/// A dot in the name of a column is not the one between a structure and its field.
#[test]
fn names_of_columns_may_have_dots() {
    let directory = tempfile::tempdir().unwrap();
    let texts = |texts: [&str; 2]| Arc::new(StringArray::from(texts.to_vec())) as ArrayRef;
    let names = Fields::from(vec![Field::new("url", DataType::Utf8, true)]);
    let structure = Arc::new(StructArray::new(names, vec![texts(["no", "no"])], None)) as ArrayRef;
    let columns = [("page", structure), ("page.url", texts(["http://b/", "http://c/"])), ("a.b", texts(["x", "x"]))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for table in parquet_and_arrow(directory.path(), &batch) {
        for (url, base) in [("a.b", "page.url"), ("3", "2")] {
            let out = run(path(&table), &auto(Some(url), Some(base)));
            assert!(out.summary.input_errors.is_empty(), "{:?}", out.summary.input_errors);
            let uris: Vec<_> = out.rows.iter().map(|row| &row.uri[..]).collect();
            assert_eq!(uris, [b"http://b/x", b"http://c/x"], "{table:?} {url}");
        }
    }
}

/// Strings are text already (RFC 3987 section 3.1, step 1).
#[test]
fn a_charset_applies_to_bytes_alone() {
    let directory = tempfile::tempdir().unwrap();
    let strings = [Some("http://h/\u{e9}"), None];
    let texts: [ArrayRef; 3] = [
        Arc::new(StringArray::from(strings.to_vec())),
        Arc::new(StringViewArray::from(strings.to_vec())),
        Arc::new(strings.into_iter().collect::<DictionaryArray<Int8Type>>()),
    ];
    let policy = Policy { charset: Charset::named("latin1"), ..Policy::default() };
    let uris = |column: &ArrayRef| {
        let batch = RecordBatch::try_from_iter([("url", Arc::clone(column))]).unwrap();
        let files = parquet_and_arrow(directory.path(), &batch);
        files.map(|table| {
            let first_uri = |rows: &mut Rows, _: &[SourceRun]| String::from_utf8(rows.uri.get(0).to_vec()).unwrap();
            run_groups(path(&table), &auto(None, None), &policy, first_uri).0.remove(0)
        })
    };
    for column in &texts {
        assert_eq!(uris(column), ["http://h/%C3%A9"; 2], "{:?}", column.data_type());
    }
    let bytes: ArrayRef = Arc::new(BinaryArray::from_vec(vec![b"http://h/\xe9"]));
    assert_eq!(uris(&bytes), ["http://h/%C3%A9"; 2]);
}

#[test]
fn unknown_columns_and_damage_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    for file in files(directory.path()) {
        let error = try_run(path(&file), &auto(Some("adress"), None)).unwrap_err();
        assert!(matches!(error, RunError::Read(ReadError::Columns { .. })));
        assert!(error.to_string().contains("there is no column \"adress\"; the columns are junk, url"), "{error}");
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        let errors = run(path(&file), &auto(None, None)).summary.input_errors;
        let [error] = &errors[..] else { panic!("{errors:?}") };
        // What the lengths in the file state is compared with the file before anything is read by them.
        let is_stream = file.extension().is_some_and(|suffix| suffix == "arrows");
        assert!(!is_stream || error.to_string().contains("reaches past the end of the file"), "{error}");
        // Neither a compressed file nor a pipe can be read from its end, where the footer is.
        let packed = directory.path().join("packed.parquet.gz");
        let mut member = flate2::write::GzEncoder::new(std::fs::File::create(&packed).unwrap(), Default::default());
        std::io::Write::write_all(&mut member, &bytes).unwrap();
        member.finish().unwrap();
        let errors = run(path(&packed), &auto(None, None)).summary.input_errors;
        assert!(errors[0].to_string().contains("file that is compressed"), "{}", errors[0]);
        std::fs::write(&file, "").unwrap();
        assert!(run(path(&file), &auto(None, None)).summary.input_errors[0].to_string().contains("an empty file"));
        let mut piped = path(&file);
        piped.0 = vec![Source::reader("pipe", std::io::Cursor::new(bytes))];
        assert!(run(piped, &auto(None, None)).summary.input_errors[0].to_string().contains("comes from a pipe"));
    }
}

/// The number of rows of each row group that [`write_row_groups`] writes; one group is empty.
const GROUPS: [usize; 9] = [300, 1, 0, 700, 2, 299, 5000, 17, 300];

/// Writes a file with many row groups: every 50th URL and every third status is null, and digests repeat.
fn write_row_groups<T: Into<Vec<u8>>>(path: &Path, dictionary: bool, groups: &[usize], url: impl Fn(usize) -> T) {
    let schema = "message m { optional binary url (UTF8); optional int32 fetch_status;
        optional binary content_digest (UTF8); }";
    let schema = Arc::new(parquet::schema::parser::parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_dictionary_enabled(dictionary).set_data_page_row_count_limit(100);
    let properties = properties.set_write_batch_size(50).set_compression(Compression::ZSTD(ZstdLevel::default()));
    let file = File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build())).unwrap();
    let mut first = 0;
    for count in groups {
        let rows: Vec<usize> = (first..first + count).collect();
        first += count;
        let levels =
            |has_value: fn(usize) -> bool| rows.iter().map(|row| i16::from(has_value(*row))).collect::<Vec<_>>();
        let (urls, statuses) = (levels(has_url), levels(|row| row % 3 > 0));
        let texts = |text: &dyn Fn(usize) -> Vec<u8>, levels: &[i16]| -> Vec<ByteArray> {
            let present = rows.iter().zip(levels).filter(|(_, level)| **level > 0);
            present.map(|(row, _)| ByteArray::from(text(*row))).collect()
        };
        let mut group = writer.next_row_group().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&texts(&|row| url(row).into(), &urls), Some(&urls), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let values = vec![200; statuses.iter().filter(|level| **level > 0).count()];
        column.typed::<parquet::data_type::Int32Type>().write_batch(&values, Some(&statuses), None).unwrap();
        column.close().unwrap();
        let mut column = group.next_column().unwrap().unwrap();
        let digests = vec![1; rows.len()];
        let digest = |row: usize| format!("sha1:{}", row % 4).into_bytes();
        column.typed::<ByteArrayType>().write_batch(&texts(&digest, &digests), Some(&digests), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
    }
    writer.close().unwrap();
}

fn has_url(row: usize) -> bool {
    row % 50 != 7
}

/// Returns the parts of a run with all carried columns, its errors, and the number of rows.
fn carried(path: &Path, options: &RunOptions) -> (Vec<String>, Vec<String>, u64) {
    let policy = Policy { carry: FieldSet::ALL, ..Policy::default() };
    let encode = |rows: &mut Rows, runs: &[SourceRun]| {
        format!("{runs:?}{:?}{:?}{:?}{:?}{:?}", rows.uri, rows.key, rows.offset, rows.faults, rows.carried)
    };
    let (parts, summary) = run_groups(self::path(path), options, &policy, encode);
    assert_eq!(summary.records, summary.rows);
    (parts, summary.input_errors.iter().map(ToString::to_string).collect(), summary.rows)
}

#[test]
fn rows_do_not_depend_on_threads_chunks_and_encoding() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.parquet");
    let count: usize = GROUPS.iter().sum();
    let mut rows = None;
    for dictionary in [false, true] {
        write_row_groups(&file, dictionary, &GROUPS, |row| format!("HTTP://Example.org/{}", row / 2));
        for row_group_len in [20_000, 8 << 20] {
            let expected = carried(&file, &RunOptions { threads: 1, row_group_len, ..auto(None, None) });
            assert_eq!((expected.1.len(), expected.2), (0, count as u64));
            for (threads, chunk_len) in [(1, 1), (2, 1000), (5, 1 << 20)] {
                let options = RunOptions { threads, row_group_len, chunk_len, ..auto(None, None) };
                assert!(carried(&file, &options) == expected, "{threads} threads");
            }
        }
        let out = run(path(&file), &auto(None, None));
        for (i, row) in out.rows.iter().enumerate() {
            assert_eq!((row.record, row.offset, row.fault.is_some()), (i as u64 + 1, i as u64, !has_url(i)));
            assert!(!has_url(i) || row.uri == format!("http://example.org/{}", i / 2).into_bytes());
        }
        // The encoding of a column does not change the rows.
        assert!(*rows.get_or_insert(out.rows.clone()) == out.rows);
    }
}

#[test]
fn a_long_row_group_is_split() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("long.parquet");
    // Twice the number of rows that are decoded at a time, and texts that take more memory than their column chunk.
    let url = |row: usize| format!("http://example.org/{row}/{}", "x".repeat(1500));
    write_row_groups(&file, false, &[3, 13_000, 1], url);
    let expected = carried(&file, &RunOptions { threads: 1, row_group_len: 2 << 20, ..auto(None, None) });
    assert_eq!((expected.1.len(), expected.2), (0, 13_004));
    let out = run(path(&file), &auto(None, None));
    let wrong = (0..13_004).find(|&i| has_url(i) && out.rows[i].uri != url(i).into_bytes());
    assert_eq!(wrong, None);
    for threads in [2, 5] {
        assert!(carried(&file, &RunOptions { threads, row_group_len: 2 << 20, ..auto(None, None) }) == expected);
    }
    write_row_groups(&file, true, &[3, 30_000], |row| format!("http://example.org/{}/{}", row % 2, "x".repeat(3000)));
    let out = carried(&file, &RunOptions { threads: 2, row_group_len: 8 << 20, ..auto(None, None) });
    assert_eq!((out.1.len(), out.2), (0, 30_003));
    // Parts end inside a page of a dictionary column.
    assert!(out.0.len() > 9, "{}", out.0.len());
}

/// Lengths and offsets of an Arrow file that are wrong end that file only: the other source is read, and the process does
/// not abort.
#[test]
fn a_damaged_arrow_file_ends_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("damaged.arrow");
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
    let batch = batch().slice(0, 40);
    let mut writer = FileWriter::try_new_with_options(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let whole = writer.into_inner().unwrap();
    let mut error_count = 0;
    for (i, at) in (8..whole.len() - 8).step_by(5).enumerate() {
        let mut bytes = whole.clone();
        let value = [0x7F, 0xFF, 0x00, 0x80][i % 4];
        bytes[at..at + 1 + i % 3 * 3].fill(value);
        std::fs::write(&file, bytes).unwrap();
        let mut sources = path(&file);
        sources.0.push(Source::reader("good", std::io::Cursor::new("http://a/\n")));
        let out = run(sources, &auto(None, None));
        assert_eq!(out.summary.source_records[1], 1, "byte {at}");
        assert!(out.summary.source_records[0] <= 40, "byte {at}");
        error_count += out.summary.input_errors.len();
    }
    assert!(error_count > 100, "{error_count}");
}

#[test]
fn a_damaged_row_group_ends_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("damaged.parquet");
    write_row_groups(&file, true, &GROUPS, |row| format!("http://example.org/{row}"));
    let whole = run(path(&file), &auto(None, None)).rows;
    let metadata = SerializedFileReader::new(File::open(&file).unwrap()).unwrap().metadata().clone();
    let bytes = std::fs::read(&file).unwrap();
    for damaged in [0, 3, 6, 8] {
        let (start, len) = metadata.row_group(damaged).column(0).byte_range();
        // The first bytes stay, because they identify Parquet.
        for (at, count) in [(start + 8, len - 8), (start + len / 2, len / 4)] {
            let mut bytes = bytes.clone();
            bytes[at as usize..(at + count) as usize].fill(0xff);
            std::fs::write(&file, bytes).unwrap();
            let before: usize = GROUPS[..damaged].iter().sum();
            let expected = carried(&file, &RunOptions { threads: 1, ..auto(None, None) });
            assert!(
                expected.2 as usize >= before && (expected.2 as usize) < before + GROUPS[damaged],
                "{damaged} {}",
                expected.2
            );
            let [error] = &expected.1[..] else { panic!("{:?}", expected.1) };
            let plural = if expected.2 == 1 { "" } else { "s" };
            let place = format!("after {} record{plural}, at byte {start}", expected.2);
            let message = format!("{place}: Parquet: row group {damaged}: ");
            assert!(error.contains(&message), "{error}");
            for threads in [2, 5] {
                assert!(carried(&file, &RunOptions { threads, ..auto(None, None) }) == expected, "{threads} threads");
            }
            // Damage in columns that are not read does not matter.
            assert!(whole.starts_with(&run(path(&file), &auto(None, None)).rows));
            assert_eq!(run(path(&file), &auto(Some("content_digest"), None)).summary.input_errors.len(), 0);
        }
    }
}

#[test]
fn malformed_utf8_in_a_text_column_flags_only_its_row() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("latin1.parquet");
    for dictionary in [false, true] {
        let url =
            |row: usize| [format!("http://example.org/{row}").as_bytes(), &[b'/', 0xE9][..row % 3 / 2 * 2]].concat();
        write_row_groups(&file, dictionary, &GROUPS, url);
        let out = run(path(&file), &auto(None, None));
        assert_eq!((out.rows.len(), out.summary.input_errors.len()), (GROUPS.iter().sum::<usize>(), 0));
        // Nor does a column of numbers that is read as well change this.
        let (_, errors, count) = carried(&file, &auto(None, None));
        assert_eq!((errors, count as usize), (Vec::new(), out.rows.len()));
        for (i, row) in out.rows.iter().enumerate().filter(|(i, _)| has_url(*i)) {
            let is_latin1 = i % 3 == 2;
            let expected = format!("http://example.org/{i}{}", if is_latin1 { "/%E9" } else { "" });
            assert_eq!((&row.uri[..], row.flags & Flags::NOT_UTF8.0 > 0), (expected.as_bytes(), is_latin1), "{i}");
        }
    }
}

#[test]
fn rows_that_are_missing_in_the_pages_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("short.parquet");
    write_row_groups(&file, false, &GROUPS, |row| format!("http://example.org/{row}"));
    let bytes = std::fs::read(&file).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(&file).unwrap()).unwrap();
    let (footer_len, _) = bytes[bytes.len() - 8..].split_at(4);
    let footer_at = bytes.len() - 8 - u32::from_le_bytes(footer_len.try_into().unwrap()) as usize;
    let mut groups = metadata.row_groups().to_vec();
    groups[3] = groups[3].clone().into_builder().set_num_rows(GROUPS[3] as i64 + 10).build().unwrap();
    let mut counted = bytes[..footer_at].to_vec();
    let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), groups);
    ParquetMetaDataWriter::new(&mut counted, &metadata).finish().unwrap();
    std::fs::write(&file, counted).unwrap();
    for threads in [1, 3] {
        let out = run(path(&file), &RunOptions { threads, ..auto(None, None) });
        assert_eq!(out.rows.len(), GROUPS[..4].iter().sum::<usize>());
        let [error] = &out.summary.input_errors[..] else { panic!("{:?}", out.summary.input_errors) };
        assert!(error.to_string().contains("row group 3: "), "{error}");
        assert!(error.to_string().contains("10 rows are missing"), "{error}");
    }
}

#[test]
fn a_row_that_is_too_long_ends_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("long.parquet");
    let url = |row: usize| format!("http://example.org/{}", "x".repeat(if row == 450 { 5000 } else { 10 }));
    write_row_groups(&file, true, &GROUPS, url);
    for threads in [1, 3] {
        let options = RunOptions { threads, max_record_len: 4000, ..auto(None, None) };
        let out = run(path(&file), &options);
        assert_eq!(out.rows.len(), 450);
        assert!(matches!(out.summary.input_errors[0].defect, Defect::RowTooLong(4000)));
    }
}

/// The limit counts the URL, its base, and the texts that are carried. A row of exactly this length is read.
#[test]
fn the_length_of_a_row_is_that_of_its_texts() {
    let directory = tempfile::tempdir().unwrap();
    let columns: [(&str, ArrayRef); 4] = [
        ("url", Arc::new(StringArray::from(vec!["path/to/it"; 3]))),
        ("base", Arc::new(StringArray::from(vec!["http://example.org/base/"; 3]))),
        ("content_digest", Arc::new(StringArray::from(vec!["ABCDEFGH"; 3]))),
        ("fetch_status", Arc::new(Int16Array::from(vec![200; 3]))),
    ];
    for table in parquet_and_arrow(directory.path(), &RecordBatch::try_from_iter(columns).unwrap()) {
        for (base, carry, len) in [
            (None, FieldSet::default(), 10),
            (Some("base"), FieldSet::default(), 34),
            (None, FieldSet::ALL, 18),
            (Some("base"), FieldSet::ALL, 42),
        ] {
            for (max_record_len, expected) in [(len, 3), (len - 1, 0)] {
                let options = RunOptions { max_record_len, ..auto(Some("url"), base) };
                let policy = Policy { carry, ..Policy::default() };
                let (_, summary) = run_groups(path(&table), &options, &policy, |rows, _| rows.len());
                assert_eq!(summary.rows, expected, "{len}: {:?}", summary.input_errors);
                let is_too_long = |error: &irikey::input::InputError| matches!(error.defect, Defect::RowTooLong(limit) if limit == max_record_len);
                assert_eq!(
                    summary.input_errors.iter().filter(|error| is_too_long(error)).count(),
                    1 - expected as usize / 3
                );
            }
        }
    }
}
