//! Tables are read with and without the decoder of the crate parquet, and the results are compared.

use std::fs::{self, File};
use std::path::Path;

use arrow::array::{ArrayRef, BinaryArray};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder, WriterVersion};

use super::*;
use crate::input::table::TableColumns;
use crate::record::fields::{CarriedField, FieldSet};

/// What a table returns: numbers and URLs of the rows of each buffer, its length, and its faults; or an error.
type Buffers = Vec<Result<String, String>>;

fn open(path: &Path, threads: usize, max_record_len: usize) -> ParquetTable {
    let (columns, carry) = (TableColumns::default(), FieldSet::default());
    let options = TableOptions { columns, carry, threads, max_record_len, held_len: 0 };
    ParquetTable::open(&StoredFile::Path(path.to_path_buf()), &options).unwrap()
}

/// All buffers up to the first error, after which readers of tables stop.
fn buffers(table: ParquetTable, unit_len: u64) -> Buffers {
    let (table, mut buffers) = (Arc::new(table), Vec::new());
    for rows in table.units(unit_len).flat_map(|unit| table.read(unit)) {
        let records = match rows.records {
            Ok(records) => records,
            Err(defect) => {
                buffers.push(Err(format!("{defect:?}")));
                break;
            }
        };
        let (text_len, records) = (records.text_len(), records.records());
        let urls: Vec<_> = records.each_offset().iter().zip(records.shown_urls()).collect();
        buffers.push(Ok(format!("{text_len} {urls:?} {:?}", records.faults)));
    }
    buffers
}

/// Asserts that a file gives the same buffers and errors with and without the decoder of the crate, and returns them.
fn read(path: &Path, unit_len: u64, max_record_len: usize) -> Buffers {
    let decoded = ParquetTable { text_column: None, ..open(path, 1, max_record_len) };
    let expected = buffers(decoded, unit_len);
    for threads in [1, 2] {
        assert!(open(path, threads, max_record_len).text_column.is_some());
        assert!(buffers(open(path, threads, max_record_len), unit_len) == expected, "{:?}", expected.last());
    }
    expected
}

fn write(path: &Path, urls: &[Option<Vec<u8>>], is_nullable: bool, properties: WriterPropertiesBuilder) {
    let array: ArrayRef = Arc::new(BinaryArray::from_iter(urls));
    let batch = RecordBatch::try_from_iter_with_nullable([("url", array, is_nullable)]).unwrap();
    let properties = properties.set_max_row_group_row_count(Some(7000)).set_write_batch_size(50).build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn urls(count: usize) -> Vec<Option<Vec<u8>>> {
    let url = |i: usize| format!("http://example.org/{i}/{}", "x".repeat(i * 7919 % 311));
    (0..count).map(|i| Some(if i % 997 == 5 { Vec::new() } else { url(i).into_bytes() })).collect()
}

/// Whether the decoder of the crate is needed for a unit.
fn needs_decoder(mut rows: UnitRows) -> bool {
    let mut needs_decoder = false;
    while let Some(row) = rows.next() {
        assert!(row.records.is_ok(), "{:?}", row.records.err());
        needs_decoder |= matches!(rows.source, RowSource::Decoder(_));
    }
    needs_decoder
}

/// Which units need the decoder of the crate.
#[derive(Debug, PartialEq)]
enum Decoded {
    None,
    Some,
    All,
}

fn decoded(path: &Path, threads: usize, unit_len: u64) -> Decoded {
    let table = Arc::new(open(path, threads, 1 << 20));
    let units: Vec<_> = table.units(unit_len).map(|unit| needs_decoder(table.read(unit))).collect();
    match units.iter().filter(|needs_decoder| **needs_decoder).count() {
        0 => Decoded::None,
        count if count == units.len() => Decoded::All,
        _ => Decoded::Some,
    }
}

#[test]
fn urls_alone_give_the_buffers_of_the_decoder() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let properties = || WriterProperties::builder().set_dictionary_enabled(false);
    let whole_dictionary = || WriterProperties::builder().set_dictionary_page_size_limit(4 << 20);
    let mut with_nulls = urls(9000);
    [5000, 5001, 8999].into_iter().for_each(|row| with_nulls[row] = None);
    let v2 = || properties().set_writer_version(WriterVersion::PARQUET_2_0).set_encoding(Encoding::PLAIN);
    let cases = [
        (urls(9000), false, properties(), Decoded::None),
        (urls(9000), true, properties().set_compression(Compression::SNAPPY), Decoded::None),
        (urls(9000), true, v2().set_compression(Compression::ZSTD(Default::default())), Decoded::None),
        (urls(9000), false, v2().set_data_page_row_count_limit(10), Decoded::None),
        (with_nulls.clone(), true, properties().set_data_page_row_count_limit(500), Decoded::Some),
        (with_nulls.split_off(4900), true, v2().set_compression(Compression::SNAPPY), Decoded::All),
        (urls(9000), false, properties().set_encoding(Encoding::DELTA_LENGTH_BYTE_ARRAY), Decoded::All),
        // Some pages of a column have a dictionary.
        (urls(9000), true, WriterProperties::builder().set_dictionary_page_size_limit(400_000), Decoded::Some),
        // The dictionary is read again for each unit.
        (urls(9000), true, whole_dictionary().set_compression(Compression::SNAPPY), Decoded::All),
    ];
    for (i, (urls, is_nullable, properties, expected)) in cases.into_iter().enumerate() {
        write(&path, &urls, is_nullable, properties);
        for threads in [1, 2] {
            assert_eq!(decoded(&path, threads, 200_000), expected, "{i}");
        }
        for unit_len in [UNIT_LEN, 200_000] {
            let buffers = read(&path, unit_len, 1 << 20);
            assert!(buffers.len() > 2 && buffers.iter().all(Result::is_ok), "{i}");
        }
    }
    // A URL that is longer than a record may be ends the rows.
    write(&path, &urls(9000), true, properties());
    assert!(read(&path, 200_000, 328).last().unwrap().is_err());
}

/// A unit looks for its rows from the beginning of the row group on.
#[test]
fn a_stated_length_does_not_make_many_units() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    write(&path, &urls(7000), false, WriterProperties::builder().set_data_page_row_count_limit(10));
    let honest = open(&path, 2, 1 << 20);
    assert_eq!((honest.units(UNIT_LEN).count(), honest.units(200_000).count()), (1, 6));
    for stated in [i64::MAX, 1 << 40, 1 << 30] {
        let groups = honest.metadata.metadata().row_groups().iter().map(|group| {
            let column = |column: &ColumnChunkMetaData| {
                column.clone().into_builder().set_total_uncompressed_size(stated).build().unwrap()
            };
            let columns = group.columns().iter().map(column).collect();
            group.clone().into_builder().set_column_metadata(columns).build().unwrap()
        });
        let groups = groups.collect();
        let metadata = honest.metadata.metadata().as_ref().clone().into_builder().set_row_groups(groups).build();
        let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new()).unwrap();
        let lying = ParquetTable { metadata, ..open(&path, 2, 1 << 20) };
        assert!((2..30).contains(&lying.units(UNIT_LEN).count()), "{}", lying.units(UNIT_LEN).count());
        assert!((200..=MAX_GROUP_UNITS as usize).contains(&lying.units(100).count()));
        assert_eq!(lying.units(UNIT_LEN).map(|unit| unit.rows).sum::<u64>(), 7000);
    }
}

/// Otherwise a file of a few megabytes could have any number of rows.
#[test]
fn row_groups_that_share_bytes_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    write(&path, &urls(14_000), false, WriterProperties::builder().set_dictionary_enabled(false));
    let honest = open(&path, 1, 1 << 20);
    let expected = buffers(open(&path, 1, 1 << 20), UNIT_LEN);
    assert!(expected.iter().all(Result::is_ok));
    let groups = honest.metadata.metadata().row_groups();
    for text_column in [honest.text_column, None] {
        for order in [&[0, 1, 0, 1][..], &[0, 1, 1]] {
            let groups = order.iter().map(|group: &usize| groups[*group].clone()).collect();
            let metadata = honest.metadata.metadata().as_ref().clone().into_builder().set_row_groups(groups).build();
            let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new()).unwrap();
            let file = open(&path, 1, 1 << 20);
            let first_repeated = first_repeated(metadata.metadata(), &file.mask, file.file.len());
            let mut found = buffers(ParquetTable { metadata, text_column, first_repeated, ..file }, UNIT_LEN);
            let error = found.pop().unwrap().unwrap_err();
            assert!(error.contains("row group 2: ") && error.contains("it shares bytes with another"), "{error}");
            assert_eq!(found, expected);
        }
    }
}

/// A file whose row groups state these numbers of rows.
fn with_row_counts(path: &Path, counts: [i64; 2]) -> ParquetTable {
    let table = open(path, 1, 1 << 20);
    let groups = table.metadata.metadata().row_groups().iter().zip(counts);
    let groups = groups.map(|(group, count)| group.clone().into_builder().set_num_rows(count).build().unwrap());
    let metadata = table.metadata.metadata().as_ref().clone().into_builder().set_row_groups(groups.collect()).build();
    let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new()).unwrap();
    ParquetTable { metadata, ..table }
}

#[test]
fn a_negative_number_of_rows_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    write(&path, &urls(14_000), false, WriterProperties::builder().set_dictionary_enabled(false));
    let mut found = buffers(with_row_counts(&path, [7000, -5]), UNIT_LEN);
    let error = found.pop().unwrap().unwrap_err();
    assert!(error.contains("row group 1: ") && error.contains("it states -5 rows"), "{error}");
    assert!(found.len() > 1 && found.iter().all(Result::is_ok));
    let found = buffers(with_row_counts(&path, [-1, 7000]), UNIT_LEN);
    assert!(found.len() == 1 && found[0].as_ref().is_err_and(|error| error.contains("it states -1 rows")), "{found:?}");
}

/// A page header of a few bytes must not make the process allocate gigabytes.
#[test]
fn the_length_of_a_content_is_checked_before_it_is_allocated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let properties = WriterProperties::builder().set_dictionary_enabled(false).set_compression(Compression::SNAPPY);
    let urls: Vec<_> = (0..5000).map(|_| Some(b"http://example.org/".repeat(20))).collect();
    write(&path, &urls, false, properties.set_data_page_size_limit(8 << 20));
    let mut bytes = fs::read(&path).unwrap();
    // The type of the page, and the length of its content.
    assert!(bytes[4..7] == [0x15, 0, 0x15] && bytes[7..10].iter().all(|byte| *byte >= 0x80) && bytes[10] < 0x80);
    bytes[7..11].copy_from_slice(&[0xFE, 0xFF, 0xFF, 0x7F]);
    fs::write(&path, &bytes).unwrap();
    let errors = read(&path, UNIT_LEN, 1 << 20);
    let message = errors[0].as_ref().unwrap_err();
    assert!(message.contains("bytes cannot have 134217727 bytes"), "{message}");
}

/// A page header contains two values of its page.
#[test]
fn page_headers_of_any_length_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    for len in [400, 1_000, 5_000, 100_000] {
        let urls: Vec<_> = (0..20).map(|i| Some(format!("http://h/{i:02}/{}", "x".repeat(len)).into_bytes())).collect();
        let properties = WriterProperties::builder().set_dictionary_enabled(false).set_statistics_truncate_length(None);
        let properties = properties.set_write_page_header_statistics(true).set_data_page_row_count_limit(10);
        write(&path, &urls, true, properties.set_write_batch_size(10));
        let bytes = fs::read(&path).unwrap();
        let header_len = memchr::memmem::find(&bytes, format!("http://h/01/{}", "x".repeat(len)).as_bytes()).unwrap();
        assert!(header_len > 2 * len);
        let found = read(&path, UNIT_LEN, 1 << 20);
        assert!(found.iter().all(Result::is_ok), "{len}: {:?}", found.last());
        let rows = buffers(open(&path, 1, 1 << 20), UNIT_LEN).into_iter().map(Result::unwrap).collect::<String>();
        assert_eq!(rows.matches("http://h/").count(), 20);
    }
}

/// A column that is also carried has further uses of its values, and a base is another column.
#[test]
fn only_a_column_that_nothing_else_needs_is_read_from_pages() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let texts = || -> ArrayRef { Arc::new(BinaryArray::from_iter_values(["http://h/"; 3])) };
    let numbers = || -> ArrayRef { Arc::new(arrow::array::Int64Array::from(vec![1; 3])) };
    let list = || -> ArrayRef {
        let mut builder = arrow::array::ListBuilder::new(arrow::array::StringBuilder::new());
        (0..3).for_each(|_| builder.append_value([Some("http://h/")]));
        Arc::new(builder.finish())
    };
    // The values of a page have no lengths.
    let fixed = arrow::array::FixedSizeBinaryArray::try_from_iter(["http://h/"; 3].into_iter()).unwrap();
    let fixed: ArrayRef = Arc::new(fixed);
    let columns =
        [("url", texts()), ("fetch_redirect", texts()), ("number", numbers()), ("list", list()), ("fixed", fixed)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let open_column = |url: &str, base: Option<&str>, carry| {
        let column = |name: &str| crate::record::csv::ColumnChoice::Name(name.to_string());
        let columns = TableColumns { url: Some(column(url)), base: base.map(column) };
        let options = TableOptions { columns, carry, threads: 1, max_record_len: 100, held_len: 0 };
        ParquetTable::open(&StoredFile::Path(path.clone()), &options).ok()
    };
    let text_column =
        |url: &str, base: Option<&str>, carry| open_column(url, base, carry).and_then(|table| table.text_column);
    let nothing = FieldSet::default();
    let redirect = || FieldSet { redirect: true, ..FieldSet::default() };
    let location = CarriedField::ALL.iter().find(|field| redirect().contains(**field)).unwrap().column();
    assert_eq!((text_column("url", None, nothing), text_column("fetch_redirect", None, nothing)), (Some(0), Some(1)));
    assert_eq!(text_column("url", Some("fetch_redirect"), nothing), None);
    assert_eq!(text_column("url", Some("url"), nothing), None);
    assert_eq!((text_column("number", None, nothing), text_column("list", None, nothing)), (None, None));
    assert_eq!(text_column("fixed", None, nothing), None);
    let fixed = buffers(open_column("fixed", None, nothing).unwrap(), UNIT_LEN).pop().unwrap().unwrap();
    assert_eq!(fixed.matches("http://h/").count(), 3, "{fixed}");
    assert_eq!(location, "fetch_redirect");
    assert_eq!(text_column("fetch_redirect", None, redirect()), None);
    assert_eq!(text_column("url", None, redirect()), None, "two columns are read");
    // A field that the file does not have is no reason.
    let mime = FieldSet { mime: true, ..FieldSet::default() };
    assert_eq!(text_column("url", None, mime), Some(0));
}

#[test]
fn pages_before_the_rows_of_a_unit_are_not_unpacked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let properties = || {
        let properties = WriterProperties::builder().set_dictionary_enabled(false).set_compression(Compression::SNAPPY);
        properties.set_data_page_row_count_limit(500)
    };
    let v2 = properties().set_writer_version(WriterVersion::PARQUET_2_0).set_encoding(Encoding::PLAIN);
    for properties in [properties(), v2] {
        write(&path, &urls(7000), true, properties);
        let expected = buffers(open(&path, 2, 1 << 20), 200_000).pop().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        bytes[1000..1100].fill(0xFF);
        fs::write(&path, &bytes).unwrap();
        let table = Arc::new(open(&path, 2, 1 << 20));
        let (first, last) = (table.units(200_000).next().unwrap(), table.units(200_000).last().unwrap());
        assert!(table.read(first).any(|rows| rows.records.is_err()));
        assert!(!needs_decoder(table.read(last)));
        let text_len = table.read(last).last().unwrap().records.unwrap().text_len();
        assert!(expected.unwrap().starts_with(&format!("{text_len} ")));
    }
}

#[test]
fn damaged_pages_give_the_rows_and_errors_of_the_decoder() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.parquet");
    let properties = || WriterProperties::builder().set_dictionary_enabled(false).set_data_page_size_limit(3000);
    let v2 = properties().set_writer_version(WriterVersion::PARQUET_2_0).set_encoding(Encoding::PLAIN);
    let (mut sound, mut damaged) = (0, 0);
    for properties in [properties(), properties().set_compression(Compression::SNAPPY), v2] {
        write(&path, &urls(300), true, properties);
        let bytes = fs::read(&path).unwrap();
        let metadata_len = u32::from_le_bytes(*bytes[..bytes.len() - 4].last_chunk().unwrap()) as usize;
        let pages = &bytes[..bytes.len() - 8 - metadata_len];
        let mut state = 1u64;
        for round in 0..100 {
            let mut changed = bytes.clone();
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            // Headers of pages, and the lengths and levels behind them, are damaged most often.
            let places: Vec<_> = pages.windows(3).enumerate().filter(|(_, at)| *at == [0x15, 0, 0x15]).collect();
            let page = places[(state >> 33) as usize % places.len()].0;
            let at = if round % 3 == 0 { (state >> 40) as usize % pages.len() } else { page + round / 2 };
            changed[at.min(pages.len() - 1)] ^= 1 << (state >> 60 & 7);
            fs::write(&path, &changed).unwrap();
            match read(&path, 20_000, 1 << 20).iter().any(Result::is_err) {
                true => damaged += 1,
                false => sound += 1,
            }
        }
    }
    assert!(sound > 50 && damaged > 50, "{sound} sound, {damaged} damaged");
}
