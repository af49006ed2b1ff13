//! Parquet and Arrow files as inputs: their rows are records, read by the columns that count.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, DictionaryArray, Int16Array, RecordBatch, StringArray, StringViewArray,
    TimestampMicrosecondArray,
};
use arrow::datatypes::Int8Type;
use arrow::ipc::writer::FileWriter;
use irikey::input::Source;
use irikey::record::csv::{Column, CsvOptions};
use irikey::record::{Format, Guess};
use irikey::run::RunOptions;
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use crate::collect::{options, path, run};

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
    let column = |name: &str| Column::parse(name);
    let csv = CsvOptions { url: url.map(column), base: base.map(column), ..CsvOptions::default() };
    let guess = Guess { is_table: url.is_some() || base.is_some(), csv, ..Guess::default() };
    RunOptions { format: Format::Auto(guess), ..options(2, 5_000, 1_000) }
}

fn files(directory: &Path) -> [std::path::PathBuf; 2] {
    let (parquet, arrow) = (directory.join("t.parquet"), directory.join("t.arrow"));
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(300)).build();
    let mut writer = ArrowWriter::try_new(File::create(&parquet).unwrap(), batch().schema(), Some(properties)).unwrap();
    writer.write(&batch()).unwrap();
    writer.close().unwrap();
    let mut writer = FileWriter::try_new(File::create(&arrow).unwrap(), &batch().schema()).unwrap();
    writer.write(&batch()).unwrap();
    writer.finish().unwrap();
    [parquet, arrow]
}

#[test]
fn rows_are_records() {
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

#[test]
fn columns_that_are_not_there_and_damage_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    for file in files(directory.path()) {
        let out = run(path(&file), &auto(Some("adress"), None));
        assert!(out.summary.input_errors[0].to_string().contains("there is no column \"adress\"; there are junk, url"));
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(run(path(&file), &auto(None, None)).summary.input_errors.len(), 1);
        // What is no file cannot be read from its end.
        let mut piped = path(&file);
        piped.0 = vec![Source::reader("pipe", std::io::Cursor::new(bytes))];
        assert!(run(piped, &auto(None, None)).summary.input_errors[0].to_string().contains("not text"));
    }
}
