//! Damaged sources: all complete records before the damage become rows, there is one error per damaged source, and the
//! other sources are read.

use crate::collect::{Out, auto, file, gzip, lines, options, path, pipe, run, zstd};
use crate::pieces::Pieces;
use irikey::input::{Defect, Source, Sources};
use irikey::run::RunOptions;
use std::io::{self, Read};

fn only_error(out: &Out) -> (&Defect, u64, u64, String) {
    let [error] = &out.summary.input_errors[..] else { panic!("{:?}", out.summary.input_errors) };
    assert_eq!(error.records, out.summary.source_records[error.source_number as usize]);
    (&error.defect, error.offset, error.lost, error.to_string())
}

#[test]
fn truncated_compressed_sources_give_their_complete_records() {
    let text = lines(600_000);
    let whole = run(pipe(&text, 1 << 20), &options(1, 8 << 20, 256 << 10)).rows;
    for packed in [gzip(&text), [gzip(&text[..50_000]), gzip(&text[50_000..])].concat(), zstd(&text)] {
        for cut in [packed.len() / 10, packed.len() / 2, packed.len() - 1] {
            let mut last = None;
            for (threads, row_group_len, step) in [(1, 8 << 20, 1 << 20), (3, 7_000, 999)] {
                let out = run(pipe(&packed[..cut], step), &options(threads, row_group_len, 3_000));
                assert!(whole.starts_with(&out.rows), "{cut}");
                let (defect, offset, lost, text) = only_error(&out);
                assert!(matches!(defect, Defect::Truncated(_)), "{text}");
                assert_eq!(offset, cut as u64, "{text}");
                assert!(lost < 4_000, "{text}");
                assert_eq!(*last.get_or_insert(out.rows.len()), out.rows.len());
            }
            assert!(cut < packed.len() / 2 || last > Some(whole.len() / 3), "{cut} {last:?}");
        }
    }
}

#[test]
fn the_message_has_the_position_and_the_reason() {
    let packed = gzip(&b"http://example.org/\n".repeat(1000));
    let out = run(pipe(&packed[..packed.len() - 4], 100), &options(1, 8 << 20, 1000));
    let (_, _, _, text) = only_error(&out);
    let at = packed.len() - 4;
    assert!(
        text.starts_with(&format!("pipe: after 1000 records, at compressed byte {at}: the gzip data ends early")),
        "{text}"
    );
}

#[test]
fn padding_is_ignored_and_garbage_is_reported() {
    let text = lines(10_000);
    let rows = run(pipe(&text, 1000), &options(1, 1 << 20, 1000)).rows;
    let padded = run(pipe(&[gzip(&text), vec![0; 5000]].concat(), 1000), &options(2, 1 << 20, 1000));
    assert!(padded.rows == rows && padded.summary.input_errors.is_empty());
    let garbage = run(pipe(&[gzip(&text), b"garbage".to_vec()].concat(), 1000), &options(2, 3_000, 1000));
    assert!(garbage.rows == rows);
    assert!(matches!(only_error(&garbage).0, Defect::GzipGarbage));
}

#[test]
fn a_record_that_is_too_long_is_a_fault() {
    let long = "x".repeat(5000);
    let text = format!("http://a/\nhttp://b/\n{long}\nhttp://c/\n{long}");
    let directory = tempfile::tempdir().unwrap();
    let big = file(&directory, "big", format!("{}{text}", "http://a/\n".repeat(10_000)).as_bytes());
    for (row_group_len, chunk_len, max, is_accepted) in [
        (10, 1, 5001, true),
        (1 << 20, 100, 5001, true),
        (10, 1, 5000, false),
        (1 << 20, 100, 4999, false),
        (100, 9, 100, false),
    ] {
        let options = RunOptions { max_record_len: max, ..options(2, row_group_len, chunk_len) };
        let readers = [text.as_str(), "http://d/\n"].map(|text| Source::reader("r", io::Cursor::new(text.to_string())));
        let out = run(Sources(readers.into_iter().collect()), &options);
        assert_eq!(out.summary.source_records, [5, 1]);
        let fault = if is_accepted { "relative" } else { "too-long" };
        for mmap in [true, false] {
            let out = run(path(&big), &RunOptions { mmap, ..options.clone() });
            assert_eq!((out.rows.len(), out.summary.input_errors.len()), (10_005, 0), "{options:?} {mmap}");
            assert_eq!(out.summary.bytes, 10_003 * 10 + 2 * 5000 + 1);
            let row = &out.rows[10_002];
            assert_eq!((row.record, row.offset), (10_003, 100_020));
            assert!(row.fault.as_ref().unwrap().starts_with(fault));
            assert_eq!(row.input, long.as_bytes()[..max.min(5000)]);
            assert_eq!(out.rows[10_003].uri, b"http://c/");
        }
    }
}

/// The lines before a header that is too long are not taken for the header.
#[test]
fn a_header_that_is_too_long_ends_its_source() {
    let long = format!("id,{},url\nftp://id1/,1,http://a/\n", "x".repeat(5000));
    for before in ["", "\n\n", "#c\n", "#c\n\n#d\n", "sep=,\n", "sep=,\n#c\n"] {
        for (chunk_len, step) in [(1, 7), (1 << 20, 1 << 20)] {
            let options = RunOptions { max_record_len: 1000, ..auto(2, 1 << 20, chunk_len) };
            let text = Pieces::new(format!("{before}{long}").as_bytes(), step);
            let out = run(Sources(vec![Source::reader("x.csv", text)]), &options);
            assert!(out.rows.is_empty() && out.summary.headers == 0, "{before:?}");
            assert!(matches!(only_error(&out), (Defect::RecordTooLong(1000), 0, 0, _)), "{before:?}");
        }
    }
}

#[test]
fn endless_lines_do_not_exhaust_memory() {
    let options = RunOptions { max_record_len: 1 << 20, ..options(2, 8 << 20, 1 << 16) };
    let out = run(Sources(vec![Source::reader("zeros", io::repeat(0).take(1 << 40))]), &options);
    assert!(matches!(only_error(&out).0, Defect::RecordTooLong(_)));
}

#[test]
fn unsupported_formats_are_named() {
    for (bytes, name) in [
        (b"\xff\xfe\0\0h\0\0\0".to_vec(), "UTF-32 (little-endian)"),
        (b"\0\0\xfe\xff\0\0\0h".to_vec(), "UTF-32 (big-endian)"),
        (b"PK\x03\x04....".to_vec(), "ZIP archive"),
        (gzip(&gzip(b"x")), "gzip within gzip"),
    ] {
        let out = run(pipe(&bytes, 1), &options(1, 100, 100));
        assert!(out.rows.is_empty());
        assert!(only_error(&out).3.contains(name));
    }
}

#[test]
fn truncated_compressed_utf_16_gives_its_complete_records() {
    let text = "\u{feff}http://a/\u{e9}\n".to_string() + &"http://b/\u{1f600}\n".repeat(5000);
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let whole = run(pipe(&utf_16, 1000), &options(2, 3000, 100));
    assert_eq!((whole.rows.len(), whole.rows[5000].offset, whole.rows[0].offset), (5001, 2 + 22 + 24 * 4999, 2));
    let packed = gzip(&utf_16);
    assert!(run(pipe(&packed, 7), &options(1, 1 << 20, 1 << 20)).rows == whole.rows);
    for cut in [12, packed.len() / 2, packed.len() - 9] {
        let out = run(pipe(&packed[..cut], 100), &options(2, 5000, 100));
        assert!(whole.rows.starts_with(&out.rows));
        assert!(matches!(only_error(&out).0, Defect::Truncated("gzip")));
    }
}

/// A reader that fails after a number of bytes.
struct Failing(usize);

impl Read for Failing {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::from_raw_os_error(5));
        }
        let count = into.len().min(self.0);
        into[..count].fill(b'\n');
        self.0 -= count;
        Ok(count)
    }
}

#[test]
fn failing_reads_and_deleted_files_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let gone = file(&directory, "gone", b"http://a/\n");
    let mut sources = path(&gone);
    sources.0.push(Source::reader("failing", Failing(300_000)));
    std::fs::remove_file(&gone).unwrap();
    let out = run(sources, &options(2, 10_000, 1000));
    assert_eq!(out.summary.source_records, [0, 300_000]);
    let texts: Vec<String> = out.summary.input_errors.iter().map(ToString::to_string).collect();
    assert!(texts[0].contains("cannot open: no such file"), "{texts:?}");
    assert!(texts[1].contains("at byte 300000: cannot read further"), "{texts:?}");
}

/// Where a defect is does not depend on how the source is read: mapped, in large reads or in small ones.
#[test]
fn places_of_defects_do_not_depend_on_the_way_of_reading() {
    let directory = tempfile::tempdir().unwrap();
    let utf16: Vec<u8> = "\u{FEFF}http://a/\n".repeat(8_000).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let arrow = [&b"ARROW1\0\0"[..], &[7; 100_000], b"ARROW1"].concat();
    for (name, bytes) in [("utf16", &utf16[..utf16.len() - 1]), ("arrow", &arrow)] {
        let source = file(&directory, name, bytes);
        let errors = |mmap, chunk_len| {
            let options = RunOptions { mmap, ..auto(1, chunk_len * 3, chunk_len) };
            let summary = run(path(&source), &options).summary;
            summary.input_errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let mapped = errors(true, 1 << 20);
        assert_eq!(mapped.len(), 1, "{name}");
        for other in [errors(true, 10), errors(false, 10), errors(false, 1 << 20)] {
            assert_eq!(other, mapped);
        }
    }
}
