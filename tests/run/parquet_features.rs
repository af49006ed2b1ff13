//! What Parquet files may contain: every codec, page version and encoding, columns of other types, and the schema of
//! Common Crawl's columnar index.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int16Array, Int32Array, ListArray, RecordBatch, StringArray, StructArray,
    TimestampMillisecondArray,
};
use arrow::datatypes::{DataType, Field, Int32Type};
use irikey::canon::Policy;
use irikey::record::csv::{ColumnChoice, CsvOptions};
use irikey::record::fields::FieldSet;
use irikey::record::{FormatOptions, InputFormat};
use irikey::run::RunOptions;
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};
use parquet::schema::types::ColumnPath;

use crate::collect::{Row, options, path, run, run_groups};
use crate::tables::write_arrow;

const ROWS: usize = 150;

/// The rows of the test files: every seventh URL is null, and statuses and digests repeat.
fn batch() -> RecordBatch {
    let urls = (0..ROWS).map(|i| (i % 7 != 3).then(|| format!("http://example.org/path/{}/{i}", i / 10)));
    let columns: [(&str, ArrayRef); 3] = [
        ("url", Arc::new(urls.collect::<StringArray>())),
        ("fetch_status", Arc::new(Int32Array::from_iter_values((0..ROWS as i32).map(|i| 200 + i % 5)))),
        ("content_digest", Arc::new(StringArray::from_iter_values((0..ROWS).map(|i| format!("DIGEST{}", i % 9))))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write(path: &Path, batch: &RecordBatch, properties: WriterPropertiesBuilder) {
    let properties = properties.set_data_page_row_count_limit(40).set_write_batch_size(20).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn auto(url: Option<&str>) -> RunOptions {
    let csv = CsvOptions { url: url.map(ColumnChoice::parse), ..CsvOptions::default() };
    RunOptions {
        format: InputFormat::Auto(FormatOptions { is_table: url.is_some(), csv, ..FormatOptions::default() }),
        ..options(2, 1 << 20, 1 << 20)
    }
}

/// The rows, statuses and digests of a file that has no defect.
fn read(file: &Path) -> (Vec<Row>, String) {
    let out = run(path(file), &auto(None));
    assert!(out.summary.input_errors.is_empty(), "{:?}", out.summary.input_errors);
    let policy = Policy { carry: FieldSet::ALL, ..Policy::default() };
    let (carried, _) = run_groups(path(file), &auto(None), &policy, |rows, _| format!("{:?}", rows.carried));
    (out.rows, carried.concat())
}

/// The message of the only error of a file.
fn error(file: &Path, url: Option<&str>) -> String {
    let policy = Policy { carry: FieldSet::ALL, ..Policy::default() };
    let (_, summary) = run_groups(path(file), &auto(url), &policy, |rows, _| rows.len());
    let [error] = &summary.input_errors[..] else { panic!("{:?}", summary.input_errors) };
    error.to_string()
}

#[test]
fn every_codec_page_version_and_encoding_gives_the_same_rows() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.parquet");
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::BROTLI(BrotliLevel::default()),
        Compression::LZ4,
        Compression::LZ4_RAW,
        Compression::ZSTD(ZstdLevel::default()),
    ];
    let texts =
        [None, Some(Encoding::PLAIN), Some(Encoding::DELTA_LENGTH_BYTE_ARRAY), Some(Encoding::DELTA_BYTE_ARRAY)];
    let numbers = [None, Some(Encoding::PLAIN), Some(Encoding::DELTA_BINARY_PACKED), Some(Encoding::BYTE_STREAM_SPLIT)];
    let mut expected = None;
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        for codec in codecs {
            for (text, number) in texts.into_iter().zip(numbers) {
                let mut properties = WriterProperties::builder().set_writer_version(version).set_compression(codec);
                // Without an encoding the column has a dictionary.
                for (name, encoding) in [("url", text), ("content_digest", text), ("fetch_status", number)] {
                    if let Some(encoding) = encoding {
                        let column = ColumnPath::from(name);
                        properties = properties.set_column_dictionary_enabled(column.clone(), false);
                        properties = properties.set_column_encoding(column, encoding);
                    }
                }
                write(&file, &batch(), properties);
                let rows = read(&file);
                assert_eq!(rows.0.len(), ROWS);
                assert_eq!(rows.0[1].uri, b"http://example.org/path/0/1");
                assert!(rows.1.contains("204"), "{}", rows.1);
                let expected = expected.get_or_insert_with(|| rows.clone());
                assert!(*expected == rows, "{version:?} {codec:?} {text:?} {number:?}");
            }
        }
    }
}

/// Replaces the metadata of the column chunks of a file.
fn change_columns(
    file: &Path,
    change: impl Fn(
        parquet::file::metadata::ColumnChunkMetaDataBuilder,
    ) -> parquet::file::metadata::ColumnChunkMetaDataBuilder,
) {
    let bytes = std::fs::read(file).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(file).unwrap()).unwrap();
    let footer_len = u32::from_le_bytes(bytes[bytes.len() - 8..][..4].try_into().unwrap()) as usize;
    let mut changed = bytes[..bytes.len() - 8 - footer_len].to_vec();
    let groups = metadata.row_groups().iter().map(|group| {
        let columns = group.columns().iter().map(|column| change(column.clone().into_builder()).build().unwrap());
        let columns = columns.collect();
        group.clone().into_builder().set_column_metadata(columns).build().unwrap()
    });
    let metadata = ParquetMetaData::new(metadata.file_metadata().clone(), groups.collect());
    ParquetMetaDataWriter::new(&mut changed, &metadata).finish().unwrap();
    std::fs::write(file, changed).unwrap();
}

#[test]
fn a_codec_that_is_not_supported_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.parquet");
    write(&file, &batch(), WriterProperties::builder());
    change_columns(&file, |column| column.set_compression(Compression::LZO));
    let message = error(&file, None);
    assert!(message.contains("column `url`: its codec LZO is not supported; write the file again"), "{message}");
}

#[test]
fn column_chunks_beyond_the_file_are_reported_with_their_lengths() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.parquet");
    for (len, at) in [(1 << 40, 4), (i64::MAX / 4, i64::MAX), (-5, 4), (100, -1), (100, 1 << 50)] {
        write(&file, &batch(), WriterProperties::builder());
        change_columns(&file, |column| {
            column.set_total_compressed_size(len).set_data_page_offset(at).set_dictionary_page_offset(None)
        });
        let message = error(&file, None);
        let expected = format!("column `url`: {len} bytes at byte {at} reach past the end of the file, at byte ");
        assert!(message.contains(&expected), "{message}");
    }
}

#[test]
fn columns_of_other_types_are_named_with_their_type() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.parquet");
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["http://a/", "http://b/"]));
    let field = Arc::new(Field::new("href", DataType::Utf8, false));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, Arc::clone(&texts))]));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)]), None]);
    let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let columns = [
        ("url", Arc::clone(&texts)),
        ("nested", nested),
        ("numbers", Arc::clone(&numbers)),
        ("fetch_status", Arc::new(lists) as ArrayRef),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    write(&file, &batch, WriterProperties::builder());
    let arrow = directory.path().join("t.arrow");
    write_arrow(&arrow, &batch);
    let cases = [
        (Some("nested"), "column `nested` has the type Struct(\"href\": non-null Utf8); expected text or bytes"),
        (Some("numbers"), "column `numbers` has the type Int32; expected text or bytes"),
        (None, "column `fetch_status` has the type List(Int32); expected numbers"),
    ];
    for (url, expected) in cases {
        for file in [&file, &arrow] {
            let message = error(file, url);
            assert!(message.contains(expected) && !message.contains("damaged"), "{message}");
        }
    }
    // Only columns that are read matter.
    assert_eq!(run(path(&file), &auto(None)).rows[1].uri, b"http://b/");
}

/// A batch with the columns of Common Crawl's index that are not numbers of its own: `cc-index-table`, `cc-index-schema-flat`.
fn index_batch() -> RecordBatch {
    let text = |text: &'static str| Arc::new(StringArray::from(vec![Some(text), None])) as ArrayRef;
    let number = |number: i32| Arc::new(Int32Array::from(vec![number, number + 1])) as ArrayRef;
    let url = StringArray::from(vec!["https://www.example.com/a?b=C", "http://example.org:80/"]);
    let columns: [(&str, ArrayRef); 31] = [
        ("url_surtkey", Arc::new(StringArray::from(vec!["com,example)/a?b=c", "org,example)/"]))),
        ("url", Arc::new(url)),
        ("url_host_name", text("www.example.com")),
        ("url_host_tld", text("com")),
        ("url_host_2nd_last_part", text("example")),
        ("url_host_3rd_last_part", text("www")),
        ("url_host_4th_last_part", text("")),
        ("url_host_5th_last_part", text("")),
        ("url_host_registry_suffix", text("com")),
        ("url_host_registered_domain", text("example.com")),
        ("url_host_private_suffix", text("com")),
        ("url_host_private_domain", text("example.com")),
        ("url_host_name_reversed", text("com.example.www")),
        ("url_protocol", text("https")),
        ("url_port", Arc::new(Int32Array::from(vec![None, Some(80)]))),
        ("url_path", text("/a")),
        ("url_query", text("b=C")),
        ("fetch_time", Arc::new(TimestampMillisecondArray::from(vec![1_700_000_000_000, 0]))),
        ("fetch_status", Arc::new(Int16Array::from(vec![200i16, 301]))),
        ("fetch_redirect", text("https://www.example.com/b")),
        ("content_digest", text("AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH")),
        ("content_mime_type", text("text/html")),
        ("content_mime_detected", text("application/xhtml+xml")),
        ("content_charset", text("UTF-8")),
        ("content_languages", text("eng,deu")),
        ("content_truncated", text("length")),
        ("warc_filename", text("crawl-data/CC-MAIN-2024-10/segments/1.2/warc/a.warc.gz")),
        ("warc_record_offset", number(1_000_000_000)),
        ("warc_record_length", number(12_345)),
        ("warc_segment", text("1707947473347.0")),
        ("junk", number(1)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn the_columnar_index_of_common_crawl_is_read_without_options() {
    let directory = tempfile::tempdir().unwrap();
    let partition = directory.path().join("crawl=CC-MAIN-2024-10/subset=warc");
    std::fs::create_dir_all(&partition).unwrap();
    let file = partition.join("part-00000.c000.gz.parquet");
    let properties = WriterProperties::builder().set_compression(Compression::GZIP(GzipLevel::default()));
    let batch = index_batch();
    write(&file, &batch, properties);
    let policy = Policy { carry: FieldSet::ALL, ..Policy::default() };
    let (groups, summary) = run_groups(path(&file), &auto(None), &policy, |rows, _| {
        let uris: Vec<String> =
            (0..rows.len()).map(|i| String::from_utf8_lossy(rows.uri.get(i)).into_owned()).collect();
        let carried = &rows.carried;
        assert_eq!((carried.statuses[0], carried.statuses[1]), (Some(200), Some(301)));
        assert_eq!((carried.times[0], carried.times[1]), (Some(1_700_000_000_000), Some(0)));
        assert_eq!((carried.capture_offsets[1], carried.capture_lengths[1]), (Some(1_000_000_001), Some(12_346)));
        assert_eq!((carried.truncated.get(0), carried.truncated.get(1)), (&b"length"[..], &b""[..]));
        assert_eq!(carried.segments.get(0), b"1707947473347.0");
        assert_eq!((carried.languages.get(0), carried.charsets.get(0)), (&b"eng,deu"[..], &b"UTF-8"[..]));
        assert_eq!(carried.digests.get(0), b"AAAABBBBCCCCDDDDEEEEFFFFGGGGHHHH");
        assert_eq!(carried.redirects.get(0), b"https://www.example.com/b");
        uris
    });
    assert!(summary.input_errors.is_empty(), "{:?}", summary.input_errors);
    assert_eq!(groups.concat(), ["https://www.example.com/a?b=C", "http://example.org/"]);
    assert_eq!(batch.column_by_name("url").unwrap().len(), 2);
}

/// Writes a checksum into the header of the only page of a file with one column: field 4 of `PageHeader` of the format, in the
/// compact protocol of Thrift.
fn add_checksum(file: &Path, checksum: impl Fn(&[u8]) -> u32) {
    let mut bytes = std::fs::read(file).unwrap();
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&File::open(file).unwrap()).unwrap();
    let chunk_len = metadata.row_group(0).column(0).compressed_size() as usize;
    // The numbers of the fields 1 to 3, of which the last one is the length of the content.
    let (mut at, mut number) = (4, 0);
    for _ in 0..3 {
        assert_eq!(bytes[at], 0x15);
        let len = 1 + bytes[at + 1..].iter().take_while(|byte| **byte >= 0x80).count();
        number = bytes[at + 1..][..len].iter().rev().fold(0, |number, byte| number << 7 | usize::from(byte & 0x7F));
        at += 1 + len;
    }
    let content_len = number / 2;
    let checksum = checksum(&bytes[4 + chunk_len - content_len..4 + chunk_len]) as i32;
    let mut rest = ((checksum << 1) ^ (checksum >> 31)) as u32;
    let mut field = vec![0x15];
    while rest >= 0x80 {
        field.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    // The next field is the header of the kind of page. The upper half of its first byte is the distance from the field before.
    field.extend([rest as u8, bytes[at] - 0x10]);
    let more = field.len() as i64 - 1;
    bytes.splice(at..=at, field);
    std::fs::write(file, bytes).unwrap();
    change_columns(file, |column| column.set_total_compressed_size(chunk_len as i64 + more));
}

/// Such as Spark and Hadoop write. Damage that no codec notices would otherwise be another URL.
#[test]
fn checksums_of_pages_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("t.parquet");
    let crc = |content: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        crc.sum()
    };
    let urls = batch().slice(0, 30).project(&[0]).unwrap();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(GzipLevel::default()),
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            let properties = || {
                let properties = WriterProperties::builder().set_dictionary_enabled(false).set_writer_version(version);
                properties.set_compression(codec).set_encoding(Encoding::PLAIN).set_offset_index_disabled(true)
            };
            write(&file, &urls, properties());
            let expected = read(&file);
            add_checksum(&file, crc);
            assert!(read(&file) == expected && expected.0.len() == 30, "{codec:?} {version:?}");
            write(&file, &urls, properties());
            add_checksum(&file, |content| crc(content) ^ 1);
            let message = error(&file, None);
            assert!(message.contains("row group 0: ") && message.contains("checksum"), "{message}");
        }
    }
}
