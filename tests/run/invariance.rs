//! The rows do not depend on the number of threads, the chunk length, the compression or the way of reading; the parts
//! depend only on `row_group_len`.

use crate::collect::{Out, auto, file, gzip, lines, options, path, pipe, run, zstd};
use irikey::batch::SourceRun;
use irikey::canon::{Policy, Rows};
use irikey::input::{Source, Sources};
use irikey::run::{Progress, RunError, RunOptions, RunRequest, canon};

/// The rows of `text` by a simple definition: record, offset, bytes of the line.
fn plain_lines(text: &[u8], skipped: usize) -> Vec<(u64, u64, Vec<u8>)> {
    let mut rows = Vec::new();
    let mut at = skipped;
    for line in text[skipped..].split_inclusive(|&byte| byte == b'\n') {
        let url = line.strip_suffix(b"\n").unwrap_or(line);
        let url = url.strip_suffix(b"\r").unwrap_or(url);
        rows.push((rows.len() as u64 + 1, at as u64, url.to_vec()));
        at += line.len();
    }
    rows
}

fn assert_lines(out: &Out, text: &[u8], skipped: usize) {
    let expected = plain_lines(text, skipped);
    assert_eq!(out.rows.len(), expected.len());
    for (row, (record, offset, url)) in out.rows.iter().zip(&expected) {
        assert_eq!((row.record, row.offset), (*record, *offset));
        if row.differs {
            assert_eq!(row.input, *url, "record {record}");
        } else {
            assert_eq!(row.uri.to_ascii_lowercase(), url.to_ascii_lowercase(), "record {record}");
        }
    }
}

#[test]
fn rows_do_not_depend_on_threads_chunks_and_ways_of_reading() {
    let directory = tempfile::tempdir().unwrap();
    let text = lines(300_000);
    let plain = file(&directory, "plain", &text);
    let half = text.len() / 2;
    let many = [gzip(&text[..half]), gzip(b""), gzip(&text[half..])].concat();
    let packed = file(&directory, "packed", &many);
    let frames = file(&directory, "frames", &[zstd(&text[..half]), zstd(&text[half..])].concat());
    let expected = run(path(&plain), &options(1, 8 << 20, 256 << 10));
    assert_lines(&expected, &text, 0);
    for (threads, row_group_len, chunk_len) in
        [(2, 8 << 20, 1), (1, 1, 1 << 20), (4, 10_000, 100), (2, 3_000, 7_000), (3, 50_000, 1 << 20)]
    {
        let options = options(threads, row_group_len, chunk_len);
        let no_mmap = RunOptions { mmap: false, ..options.clone() };
        let one_thread = RunOptions { threads: 1, ..options.clone() };
        let parts = run(path(&plain), &one_thread).parts;
        let outs = [
            run(path(&plain), &options),
            run(path(&plain), &no_mmap),
            run(path(&packed), &options),
            run(path(&frames), &options),
            run(pipe(&text, 1000), &options),
            run(pipe(&many, 777), &options),
        ];
        for out in outs {
            assert!(out.rows == expected.rows, "{options:?}");
            assert_eq!(out.parts, parts, "{options:?}");
            assert_eq!(out.summary.tally, expected.summary.tally);
            let distinct = (out.summary.distinct_keys, out.summary.is_distinct_exact);
            assert_eq!(distinct, (expected.summary.distinct_keys, true));
        }
    }
}

#[test]
fn a_part_has_the_records_that_begin_in_its_range() {
    let text = lines(40_000);
    for row_group_len in [1, 100, 4096, 30_000] {
        let out = run(pipe(&text, 4096), &options(2, row_group_len, 512));
        let mut expected: Vec<(u64, usize)> = Vec::new();
        for row in &out.rows {
            let range = row.offset / row_group_len as u64;
            match expected.last_mut() {
                Some((last, count)) if *last == range => *count += 1,
                _ => expected.push((range, 1)),
            }
        }
        assert_eq!(out.parts, expected.iter().map(|(_, count)| *count).collect::<Vec<_>>(), "{row_group_len}");
    }
}

/// A part of 64 KiB has at most 4,096 records, however short they are; otherwise empty lines would need many times the memory
/// of others.
#[test]
fn parts_of_short_records_have_few_rows() {
    const MOST: usize = (64 << 10) / 16;
    let directory = tempfile::tempdir().unwrap();
    let short =
        ["\n".repeat(100_000), "http://example.org/a/long/line\n".repeat(5_000), "x\n\r\n".repeat(20_000)].concat();
    let quoted = ["url\n", &"\"\"\n\"a\nb\"\n".repeat(30_000)].concat();
    // In the first part, lines are long wherever a sample of 1 KiB is: at the beginning of each quarter and at the end.
    let long = |len: usize| format!("http://example.org/{}\n", "x".repeat(len - 20));
    let dense = |len: usize| long(2 << 10) + &"\n".repeat(len - (2 << 10));
    let hidden = [&dense(16 << 10).repeat(3), &dense(15 << 10), &long(1 << 10)[..]].concat().repeat(4);
    let texts =
        [("short", short, 145_000), ("quoted.csv", quoted, 60_000), ("hidden", hidden, 4 * (3 * 14_336 + 13_312 + 5))];
    for (name, text, record_count) in texts {
        let text = text.as_bytes();
        let plain = file(&directory, name, text);
        let options = auto(1, 64 << 10, 1 << 10);
        let expected = run(path(&plain), &options);
        assert_eq!(expected.rows.len(), record_count, "{name}");
        assert!(expected.parts.iter().all(|count| *count <= MOST + 1), "{name}: {:?}", expected.parts);
        // Each line of a quoted field counts as a record.
        let line_count = text.iter().filter(|byte| **byte == b'\n').count();
        assert!(
            expected.parts.len() <= line_count / MOST + text.len() / (64 << 10) + 2,
            "{name}: {:?}",
            expected.parts
        );
        for options in [
            RunOptions { threads: 3, ..options.clone() },
            RunOptions { mmap: false, chunk_len: 100, ..options.clone() },
        ] {
            let out = run(path(&plain), &options);
            assert!(out.rows == expected.rows && out.parts == expected.parts, "{name}: {options:?}");
        }
        if name == "short" {
            assert_lines(&expected, text, 0);
            let out = run(pipe(&gzip(text), 777), &options);
            assert!(out.rows == expected.rows && out.parts == expected.parts, "{name} from a pipe");
        }
    }
    // Rows of JSON and tables arrive in batches.
    let rows = format!("[[\"urlkey\",\"timestamp\",\"original\"]{}]", ",[1]".repeat(200_000));
    let out = run(path(&file(&directory, "rows.json", rows.as_bytes())), &auto(2, 1 << 20, 1000));
    assert!(out.rows.len() == 200_000 && out.parts.len() > 1, "{:?}", out.parts);
}

#[test]
fn empty_lines_line_ends_and_byte_order_marks() {
    let bom = b"\xEF\xBB\xBF";
    let cases: [(&[u8], usize); 12] = [
        (b"", 0),
        (b"\n", 0),
        (b"\r\n\r\n\n", 0),
        (b"http://a/", 0),
        (b"http://a/\r\nhttp://b/\r\n", 0),
        (b"http://a/\n\n\nhttp://b/", 0),
        (b"\0\0\n\0", 0),
        (b"http://a/\r", 0),
        (&[&bom[..], b"http://a/\nhttp://b/"].concat(), 3),
        (bom, 3),
        (&[&bom[..], b"\n"].concat(), 3),
        (&[&bom[..], bom, b"http://a/\n", bom].concat(), 3),
    ];
    for (text, skipped) in cases {
        for chunk_len in [1, 5, 1000] {
            for step in [1, 2, 100] {
                let out = run(pipe(text, step), &options(2, 1 + step * 3, chunk_len));
                assert_lines(&out, text, skipped);
                let packed = run(pipe(&gzip(text), step), &options(2, 1 + step * 3, chunk_len));
                assert_eq!(packed.rows, out.rows);
            }
        }
    }
}

#[test]
fn a_long_line_between_short_ones() {
    let long = [b"http://long/", "z".repeat(20 << 20).as_bytes()].concat();
    let text = [b"http://a/\n", &long[..], b"\nhttp://b/\n"].concat();
    let directory = tempfile::tempdir().unwrap();
    let plain = file(&directory, "plain", &text);
    for sources in [path(&plain), pipe(&text, 1 << 20), pipe(&gzip(&text), 1 << 16)] {
        let out = run(sources, &options(2, 1 << 20, 1 << 16));
        assert_eq!(out.rows.iter().map(|row| row.uri.len() + row.input.len()).collect::<Vec<_>>(), [9, long.len(), 9]);
        assert!(out.rows[1].fault.as_ref().is_some_and(|fault| fault.starts_with("too-long")));
        assert_eq!(out.parts, [2, 1]);
    }
}

#[test]
fn many_small_sources_share_a_part() {
    let directory = tempfile::tempdir().unwrap();
    let text = |i: usize| (0..i % 4).map(|j| format!("http://h{i}/{j}\n")).collect::<String>();
    let all: Vec<_> = (0..500).map(|i| file(&directory, &format!("f{i:03}"), text(i).as_bytes())).collect();
    let sources = || Sources(all.iter().map(|path| Source::path(path.clone()).unwrap()).collect());
    let out = run(sources(), &options(4, 8 << 20, 256 << 10));
    assert_eq!(out.parts, [750]);
    let expected: Vec<(u32, u64)> = (0..500u32).flat_map(|i| (1..=u64::from(i % 4)).map(move |j| (i, j))).collect();
    assert_eq!(out.rows.iter().map(|row| (row.source, row.record)).collect::<Vec<_>>(), expected);
    assert_eq!(out.summary.source_records[..5], [0, 1, 2, 3, 0]);
    for (threads, row_group_len) in [(1, 100), (4, 100), (3, 1), (2, 5_000)] {
        assert!(run(sources(), &options(threads, row_group_len, 10)).rows == out.rows);
    }
}

#[derive(Debug, PartialEq)]
struct Closed(u64);

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("closed")
    }
}

impl std::error::Error for Closed {}

fn counting(
    encode: impl Fn(u64) -> Result<u64, Closed> + Sync,
    append: impl FnMut(u64) -> Result<(), Closed> + Send,
) -> Result<u64, RunError<Closed>> {
    let text = lines(200_000);
    let encode = |_: &mut Rows, runs: &[SourceRun]| encode(runs[0].first_record);
    let summary = canon(
        RunRequest::new(pipe(&text, 5000), &options(3, 2000, 500), &Policy::default(), &Progress::new()),
        |group| encode(group.rows, group.runs).map(Some),
        append,
    )?;
    Ok(summary.rows)
}

#[test]
fn errors_of_the_output_are_returned_and_stop_the_run() {
    let mut appended = Vec::new();
    let append = |first| {
        appended.push(first);
        if appended.len() == 7 { Err(Closed(7)) } else { Ok(()) }
    };
    assert!(matches!(counting(Ok, append), Err(RunError::Output(Closed(7)))));
    assert_eq!(appended.len(), 7);
    assert!(appended.is_sorted());
    let encode = |first| if first > 200 { Err(Closed(first)) } else { Ok(first) };
    assert!(matches!(counting(encode, |_| Ok(())), Err(RunError::Output(Closed(201..)))));
}

#[test]
fn a_panic_becomes_an_error() {
    let encode = |first| if first > 200 { panic!("in encode {first}") } else { Ok(first) };
    let error = counting(encode, |_| Ok(())).unwrap_err();
    assert!(matches!(&error, RunError::Panicked(text) if text.contains("in encode")), "{error}");
    let error = counting(Ok, |first| if first > 200 { panic!("in append") } else { Ok(()) }).unwrap_err();
    assert!(error.to_string().contains("in append"), "{error}");
}

#[test]
fn the_number_of_waiting_parts_is_bounded() {
    use std::sync::atomic::{AtomicI64, Ordering};
    let (waiting, max_waiting) = (AtomicI64::new(0), AtomicI64::new(0));
    let encode = |first| {
        let count = waiting.fetch_add(1, Ordering::SeqCst) + 1;
        max_waiting.fetch_max(count, Ordering::SeqCst);
        Ok(first)
    };
    let append = |_| {
        // The other threads encode as many parts as they may.
        std::thread::sleep(std::time::Duration::from_millis(1));
        waiting.fetch_sub(1, Ordering::SeqCst);
        Ok(())
    };
    counting(encode, append).unwrap();
    assert!(max_waiting.into_inner() <= 6, "at most two parts per thread");
}
