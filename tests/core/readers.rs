//! Properties of the decoders of lines and CSV on any bytes: one row per record, and the same records as a reader that
//! does not work in chunks.

use irikey::canon::{Canonicalizer, Policy, Rows};
use irikey::iri::FaultKind;
use irikey::kernel::Bitmaps;
use irikey::record::Records;
use irikey::record::csv::{Csv, CsvColumns, CsvLayout};
use irikey::record::{TextDecoder, lines::Lines};
use proptest::prelude::*;

use crate::generators::config;

/// Texts with many delimiters of lines and CSV.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => Just(b"\n".to_vec()),
        4 => Just(b"\r\n".to_vec()),
        3 => Just(b",".to_vec()),
        3 => Just(b"\"".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just(b"\0".to_vec()),
        1 => Just(b"\xEF\xBB\xBF".to_vec()),
        4 => Just(b"http://h/".to_vec()),
        2 => Just(b"HTTPS://H:443".to_vec()),
        6 => proptest::collection::vec(any::<u8>(), 0..12),
        1 => proptest::collection::vec(any::<u8>(), 60..150),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

fn rows_of(records: &Records<'_>, bitmaps: &Bitmaps) -> Rows {
    let mut rows = Rows::default();
    let policy = Policy { base: Some(b"http://base/a/b".to_vec()), keep_input: true, ..Policy::default() };
    Canonicalizer::new(&policy).append(records, bitmaps, &mut rows);
    rows
}

fn check_rows(rows: &Rows, records: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let len = records.len();
    prop_assert_eq!(rows.tally.rows, len as u64);
    prop_assert!(rows.tally.is_balanced());
    let columns = [rows.uri.len(), rows.input.len(), rows.key.len(), rows.flags.len(), rows.offset.len()];
    prop_assert_eq!(columns, [len; 5]);
    for (i, record) in records.iter().enumerate() {
        let input = if rows.differs(i) { rows.input.get(i) } else { rows.uri.get(i) };
        prop_assert_eq!(input, &record[..], "record {}", i);
        prop_assert!(rows.uri.get(i).is_ascii());
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(4))]

    #[test]
    fn lines_equal_those_of_split(text in bytes()) {
        let without_last_end = text.strip_suffix(b"\n").unwrap_or(&text);
        let split = without_last_end.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec());
        let expected: Vec<_> = if text.is_empty() { Vec::new() } else { split.collect() };
        let (mut lines, mut bitmaps) = (Lines::default(), Bitmaps::default());
        let records = lines.decode(&text, 7, &mut bitmaps);
        let rows = rows_of(&records, &bitmaps);
        check_rows(&rows, &expected)?;
        for (url, offset) in records.urls.iter().zip(&rows.offset) {
            prop_assert_eq!(u64::from(url.at) + 7, *offset);
        }
    }

    #[test]
    fn csv_records_equal_those_of_the_csv_crate(text in bytes()) {
        // The csv crate drops a byte-order mark at the start; here the text is in the middle of a source.
        prop_assume!(!text.starts_with(b"\xEF\xBB\xBF"));
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&text[..]);
        let mut expected = Vec::new();
        let mut missing = Vec::new();
        for (row, record) in reader.byte_records().enumerate() {
            let record = record.expect("reading from memory does not fail");
            if record.len() < 2 {
                missing.push(row as u32);
            }
            expected.push(record.get(1).unwrap_or_default().to_vec());
        }
        let mut csv = Csv::default();
        let columns = CsvColumns { url: 1, base: Some(0), ..CsvColumns::default() };
        csv.set_settings(&CsvLayout { columns, ..CsvLayout::default() });
        let mut bitmaps = Bitmaps::default();
        let records = csv.decode(&text, 0, &mut bitmaps);
        let mut broken = records.faults.iter().filter(|(_, fault)| fault.kind == FaultKind::NotOfFormat).peekable();
        if broken.peek().is_some() {
            // The csv crate reads such a line and those after it as one record. About a fifth of the texts have one.
            let without_cr = |line: &[u8]| line.strip_suffix(b"\r").unwrap_or(line).to_vec();
            let lines: Vec<_> = text.split(|byte| *byte == b'\n').map(without_cr).collect();
            prop_assert!(broken.all(|(row, _)| lines.contains(&records.urls[*row as usize].of(records.text).to_vec())));
            return Ok(());
        }
        prop_assert_eq!(records.faults.iter().map(|(row, _)| *row).collect::<Vec<_>>(), missing);
        check_rows(&rows_of(&records, &bitmaps), &expected)?;
    }
}
