//! A mapped file that another thread changes while it is read.

#![cfg(unix)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use irikey::run::RunOptions;

use crate::collect::{Random, file, options, path, policy, run, run_groups};

const LINES: usize = 3_000;

/// A line whose host, path and query have characters of two, three and four bytes.
const LINE: &str =
    "http://b\u{FC}cher-stra\u{DF}e.\u{4F8B}\u{3048}.example/gr\u{F6}\u{DF}e/\u{65E5}\u{1F600}?q=\u{E9}\n";

/// Replaces single bytes of `file` by parts of characters and by ASCII until `is_done`. Line ends stay.
fn toggle(file: &File, is_done: &AtomicBool, count: &AtomicU64) {
    let mut random = Random(7);
    while !is_done.load(Ordering::Relaxed) {
        let number = (random.next() >> 20) as usize;
        let at = number % (LINE.len() * LINES);
        if at % LINE.len() < LINE.len() - 1 {
            let original = LINE.as_bytes()[at % LINE.len()];
            let byte = [original, b'x', 0xC3, 0xE6, 0xF0, 0x80, 0xBF, original][number >> 30 & 7];
            file.write_all_at(&[byte], at as u64).unwrap();
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Ends the thread of [`toggle`], also when the test panics.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The rows are those of some mixture of the bytes: every line is one row, and every text is UTF-8. Without copies of the
/// mapped bytes, text that was checked changes while it is used as `str`.
#[test]
fn a_file_that_changes_while_it_is_mapped_gives_valid_rows() {
    let directory = tempfile::tempdir().unwrap();
    let changing = file(&directory, "changing.txt", LINE.repeat(LINES).as_bytes());
    let writer = File::options().write(true).open(&changing).unwrap();
    let (is_done, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = Stop(&is_done);
        scope.spawn(|| toggle(&writer, &is_done, &count));
        for i in 0..40 {
            let options = RunOptions { mmap: i % 6 > 0, ..options(2, 64 << 10, 16 << 10) };
            let check = |rows: &mut irikey::canon::Rows, _: &[_]| {
                assert!(std::str::from_utf8(&rows.uri.values).is_ok());
                rows.len()
            };
            let (groups, summary) = run_groups(path(&changing), &options, &policy(), check);
            assert_eq!(groups.iter().sum::<usize>(), LINES);
            assert!(summary.input_errors.is_empty());
        }
    });
    assert!(count.into_inner() > 1_000, "the file did not change enough");
    std::fs::write(&changing, LINE.repeat(LINES)).unwrap();
    assert_eq!(run(path(&changing), &options(2, 64 << 10, 16 << 10)).summary.tally.faulty, 0);
}
