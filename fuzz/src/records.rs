//! Targets of what reads inputs: decoders of text and archives, decompressors, and tables.

use crate::runs::{Outcome, choose, file, options, path_of, pipe, run, split_choices};
use irikey::canon::Policy;
use irikey::encoding::Charset;
use irikey::input::list;
use irikey::iri::PreprocessOptions;
use irikey::record::csv::{ColumnChoice, CsvOptions};
use irikey::record::fields::FieldSet;
use irikey::record::{FormatOptions, InputFormat};
use irikey::run::RunOptions;
use libfuzzer_sys::Corpus;
use std::io::Write;

fn policy() -> Policy {
    Policy { keep_input: true, carry: FieldSet::ALL, base: Some(b"http://base/a/b".to_vec()), ..Policy::default() }
}

/// The outcome does not depend on how the input is cut: read as a whole, read in small pieces with small chunks and row
/// groups, and mapped. Returns the outcome.
fn does_not_depend_on_cuts(data: &[u8], format: &InputFormat, policy: &Policy, cut: [usize; 3]) -> Outcome {
    let [step, chunk, group] = cut.map(|choice| 1 + choice * choice / 7);
    let format = || format.clone();
    let path = file("input", data);
    let name = path.display().to_string();
    let whole =
        run(path_of(path.clone()), &RunOptions { format: format(), mmap: false, ..options(1 << 20, 1 << 20) }, policy);
    // Compressed input can have very many records, and a row group takes 0.1 ms. A record counts as at least 16 bytes, so that
    // short records have about 1,000 row groups.
    let least = whole.rows.as_ref().map_or(0, |rows| rows.num_rows() / 64);
    let small = RunOptions { format: format(), mmap: false, ..options(group.max(least), chunk) };
    let piped = run(pipe(&name, data, step), &small, policy);
    // A table is only read from a file, and only a file has positions in it.
    if !piped.counts.contains("comes from a pipe") {
        piped.assert_equals(&whole, &["warc_"], "read in pieces");
    }
    let small = RunOptions { mmap: true, ..small };
    run(path_of(path), &small, policy).assert_equals(&whole, &[], "mapped");
    whole
}

fn named(name: &str) -> InputFormat {
    InputFormat::named(name, &FormatOptions::default()).expect("a known format")
}

/// Text formats of one record per line, in UTF-8 or a charset that the user chose.
pub fn lines(input: &[u8]) -> Corpus {
    const FORMATS: [&str; 8] = ["lines", "cdxj", "cdx", "jsonl", "crawl-log", "frontier-journal", "access-log", "auto"];
    let Some(([format, charset, step, chunk, group], data)) = split_choices(input) else { return Corpus::Reject };
    let labels =
        [None, None, Some("utf-8"), Some("utf-16le"), Some("utf-16be"), Some("shift_jis"), Some("windows-1252")];
    let charset = choose(&labels, charset).and_then(Charset::named);
    let preprocess = PreprocessOptions { is_trimmed: group % 2 == 1, ..PreprocessOptions::default() };
    let policy = Policy { charset, preprocess, ..policy() };
    does_not_depend_on_cuts(data, &named(choose(&FORMATS, format)), &policy, [step, chunk, group]);
    Corpus::Keep
}

/// CSV and TSV with any delimiter and columns.
pub fn csv(input: &[u8]) -> Corpus {
    let Some(([delimiter, column, step, chunk, group], data)) = split_choices(input) else { return Corpus::Reject };
    let columns = ["url", "0", "1", "7", "nothing"];
    let name = |choice: usize| columns.get(choice % 9).and_then(|name| Some(ColumnChoice::parse(name)));
    let csv = CsvOptions {
        delimiter: choose(&[None, Some(b','), Some(b'\t'), Some(b';'), Some(b'|')], delimiter),
        url: name(column),
        base: name(column / 9),
        ..CsvOptions::default()
    };
    let options = FormatOptions { csv, is_table: true, ..FormatOptions::default() };
    let format = InputFormat::named(choose(&["csv", "tsv"], group), &options).expect("a known format");
    does_not_depend_on_cuts(data, &format, &policy(), [step, chunk, group]);
    Corpus::Keep
}

/// WARC, ARC and WAT.
pub fn archives(input: &[u8]) -> Corpus {
    let Some(([format, step, chunk, group], data)) = split_choices(input) else { return Corpus::Reject };
    does_not_depend_on_cuts(data, &named(choose(&["warc", "wat", "auto"], format)), &policy(), [step, chunk, group]);
    Corpus::Keep
}

/// JSON documents: HAR, and answers of CDX servers.
pub fn documents(input: &[u8]) -> Corpus {
    let Some(([format, step, chunk, group], data)) = split_choices(input) else { return Corpus::Reject };
    does_not_depend_on_cuts(data, &named(choose(&["har", "cdx", "auto"], format)), &policy(), [step, chunk, group]);
    Corpus::Keep
}

/// Members of ZIP archives, read in one thread or mapped and decompressed by several.
pub fn members(input: &[u8]) -> Corpus {
    let Some(([chunk, group], data)) = split_choices(input) else { return Corpus::Reject };
    let path = file("input.zip", data);
    let sources = || list(&[&path]).expect("the file exists");
    let read = |options: RunOptions| run(sources(), &RunOptions { format: named("auto"), ..options }, &policy());
    let whole = read(RunOptions { mmap: false, ..options(1 << 20, 1 << 20) });
    read(RunOptions { mmap: true, threads: 2, ..options(1 + group, 1 + chunk) }).assert_equals(&whole, &[], "mapped");
    Corpus::Keep
}

/// Decompressors: bytes as they are; or compressed data that was damaged, which gives the same rows or a defect.
pub fn unpack(input: &[u8]) -> Corpus {
    let Some(([codec, member, at, value, step, chunk, group], data)) = split_choices(input) else {
        return Corpus::Reject;
    };
    let cut = [step, chunk, group];
    let policy = policy();
    if codec % 5 == 0 {
        does_not_depend_on_cuts(data, &named("lines"), &policy, cut);
        return Corpus::Keep;
    }
    let mut packed: Vec<u8> = data.chunks(1 + member * 8).flat_map(|part| pack(codec % 5, part)).collect();
    // Without their first bytes, by which they are recognized, compressed data are text.
    let magic_len = if codec % 5 == 4 { 10 } else { 4 };
    let at = magic_len + at * packed.len().saturating_sub(magic_len) / 256;
    if let Some(byte) = packed.get_mut(at) {
        *byte ^= value as u8;
    }
    let unpacked = does_not_depend_on_cuts(&packed, &named("lines"), &policy, cut);
    if !unpacked.has_defect && !data.is_empty() {
        let plain = run(pipe("input", data, 1 << 20), &options(1 << 20, 1 << 20), &policy);
        // Data that looks compressed, encoded or binary is not read as text.
        if !plain.has_defect {
            unpacked.assert_equals(&plain, &["source"], &format!("damaged at byte {at} of {}", packed.len()));
        }
    }
    Corpus::Keep
}

/// One member, frame or stream with a checksum of its content.
fn pack(codec: usize, bytes: &[u8]) -> Vec<u8> {
    match codec {
        1 => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).expect("written to memory");
            encoder.finish().expect("written to memory")
        }
        2 => {
            let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("level 1 exists");
            encoder.include_checksum(true).expect("checksums are supported");
            encoder.write_all(bytes).expect("written to memory");
            encoder.finish().expect("written to memory")
        }
        3 => {
            let info = lz4_flex::frame::FrameInfo::new().content_checksum(true).block_checksums(true);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(bytes).expect("written to memory");
            encoder.finish().expect("written to memory")
        }
        _ => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(bytes).expect("written to memory");
            encoder.finish().expect("written to memory")
        }
    }
}

/// Parquet and Arrow IPC files.
pub fn tables(input: &[u8]) -> Corpus {
    let Some(([group, chunk], data)) = split_choices(input) else { return Corpus::Reject };
    let format = named("auto");
    let path = file("table", data);
    let whole =
        run(path_of(path.clone()), &RunOptions { format: format.clone(), ..options(1 << 20, 1 << 20) }, &policy());
    let small = RunOptions { format, mmap: false, ..options(1 + group * group, 1 + chunk) };
    run(path_of(path), &small, &policy()).assert_equals(&whole, &[], "other row groups");
    Corpus::Keep
}
