//! Web archives in zstd: frames with a dictionary, and the positions of their records.

use std::io::{Read, Write};

use crate::collect::{file, path, policy, run, run_groups, sample_path};
use irikey::batch::SourceRun;
use irikey::canon::{Policy, Rows};
use irikey::input::Sources;
use irikey::record::fields::FieldSet;
use irikey::run::RunOptions;

/// The dictionary of a sample, compressed, and its records, each from a frame of its own.
fn sample() -> (Vec<u8>, Vec<Vec<u8>>) {
    let bytes = std::fs::read(sample_path("crawl.warc.zst")).unwrap();
    let len = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let (dictionary, mut rest) = bytes[8..].split_at(len);
    let unpacked = zstd::decode_all(dictionary).unwrap();
    let mut records = Vec::new();
    while !rest.is_empty() {
        let mut decoder = zstd::stream::read::Decoder::with_dictionary(rest, &unpacked).unwrap().single_frame();
        let mut record = Vec::new();
        decoder.read_to_end(&mut record).unwrap();
        rest = decoder.finish();
        records.push(record);
    }
    (dictionary.to_vec(), records)
}

fn frame(bytes: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::with_dictionary(Vec::new(), 3, dictionary).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn auto(threads: usize) -> RunOptions {
    crate::collect::auto(threads, 20_000, 3_000)
}

/// The positions that the rows of an archive have.
fn positions(sources: Sources, threads: usize) -> Vec<(Option<i64>, Option<i64>)> {
    let carry = FieldSet { capture_offset: true, capture_length: true, ..FieldSet::default() };
    let policy = Policy { carry, ..policy() };
    let encode = |rows: &mut Rows, _: &[SourceRun]| {
        let carried = &rows.carried;
        (0..rows.len()).map(|i| (carried.capture_offsets[i], carried.capture_lengths[i])).collect::<Vec<_>>()
    };
    run_groups(sources, &auto(threads), &policy, encode).0.concat()
}

#[test]
fn frames_with_a_dictionary_have_positions() {
    let directory = tempfile::tempdir().unwrap();
    let (packed, records) = sample();
    let plain = file(&directory, "plain.warc", &records.concat());
    let expected = run(path(&plain), &auto(1));
    let dictionary = zstd::decode_all(&packed[..]).unwrap();
    for content in [dictionary.clone(), packed] {
        let mut bytes = [&b"\x5d\x2a\x4d\x18"[..], &(content.len() as u32).to_le_bytes(), &content].concat();
        let mut places = Vec::new();
        for record in &records {
            let frame = frame(record, &dictionary);
            places.push((Some(bytes.len() as i64), Some(frame.len() as i64)));
            bytes.extend(frame);
        }
        let archive = file(&directory, "x.warc.zst", &bytes);
        let out = run(path(&archive), &auto(3));
        assert!(out.rows == expected.rows && out.summary.input_errors.is_empty() && out.rows.len() == 335);
        let found = positions(path(&archive), 2);
        assert_eq!(found, places);
        let cut = file(&directory, "cut.warc.zst", &bytes[..bytes.len() - 5]);
        let out = run(path(&cut), &auto(1));
        assert_eq!((out.rows.len(), out.summary.input_errors.len()), (334, 1), "{:?}", out.summary.input_errors);
    }
    // Without frames of their own, records have no positions.
    let whole = file(&directory, "whole.warc.zst", &zstd::encode_all(&records.concat()[..], 1).unwrap());
    assert!(positions(path(&whole), 1).iter().all(|place| *place == (None, None)));
    assert!(run(path(&whole), &auto(2)).rows == expected.rows);
}
