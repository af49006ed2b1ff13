//! Signals, in a process of their own: this test binary started again with the name of one ignored test.

#![cfg(unix)]

use irikey::input::mmap::MappedFile;
use irikey::process::{TemporaryFileGuard, remove_temporary_files_on_signals};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PLACE: &str = "IRIKEY_TEST_PLACE";

fn child(test: &str, place: &Path) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("signals::{test}"), "--ignored", "--nocapture", "--test-threads=1"])
        .env(PLACE, place)
        .output()
        .unwrap()
}

fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// Maps a file, truncates it, and reads it.
#[test]
#[ignore = "started by a_shrinking_file_is_a_clean_error"]
fn child_shrinks() {
    let Some(place) = place() else { return };
    fs::write(place.join("temporary"), b"half").unwrap();
    fs::write(place.join("input"), vec![b'x'; 1 << 20]).unwrap();
    let file = File::options().read(true).write(true).open(place.join("input")).unwrap();
    let other = MappedFile::new(&file, Path::new("other")).unwrap();
    let mapping = MappedFile::new(&file, &place.join("input")).unwrap();
    drop(other);
    let _guard = TemporaryFileGuard::register(&place.join("temporary"));
    file.set_len(10).unwrap();
    let sum: u64 = mapping.iter().map(|&byte| u64::from(byte)).sum();
    panic!("read what is not there: {sum}");
}

#[test]
fn a_shrinking_file_is_a_clean_error() {
    let place = tempfile::tempdir().unwrap();
    let output = child("child_shrinks", place.path());
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{text}");
    assert!(text.contains("input: the file was 1048576 bytes long and was truncated"), "{text}");
    assert!(!place.path().join("temporary").exists());
}

/// Dies by a signal while one temporary file is registered and another no longer is.
#[test]
#[ignore = "started by death_by_signal_removes_the_temporary_file"]
fn child_is_terminated() {
    let Some(place) = place() else { return };
    for name in ["done", "temporary"] {
        fs::write(place.join(name), b"half").unwrap();
    }
    remove_temporary_files_on_signals();
    drop(TemporaryFileGuard::register(&place.join("done")));
    let _guard = (!place.join("keep").exists()).then(|| TemporaryFileGuard::register(&place.join("temporary")));
    let me = std::process::id().to_string();
    Command::new("kill").args(["-s", "TERM", &me]).status().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(20));
    panic!("survived");
}

#[test]
fn death_by_signal_removes_the_temporary_file() {
    use std::os::unix::process::ExitStatusExt;
    for is_kept in [false, true] {
        let place = tempfile::tempdir().unwrap();
        if is_kept {
            fs::write(place.path().join("keep"), b"").unwrap();
        }
        let output = child("child_is_terminated", place.path());
        assert_eq!(output.status.signal(), Some(15), "{output:?}");
        assert!(place.path().join("done").exists());
        assert_eq!(place.path().join("temporary").exists(), is_kept);
    }
}

/// A SIGBUS that is not ours takes its usual course.
#[test]
#[ignore = "started by other_bus_errors_are_not_ours"]
fn child_gets_a_foreign_bus_error() {
    let Some(place) = place() else { return };
    fs::write(place.join("input"), vec![b'x'; 1 << 20]).unwrap();
    let _mapping = MappedFile::new(&File::open(place.join("input")).unwrap(), Path::new("input")).unwrap();
    let me = std::process::id().to_string();
    Command::new("kill").args(["-s", "BUS", &me]).status().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(20));
}

#[test]
fn other_bus_errors_are_not_ours() {
    use std::os::unix::process::ExitStatusExt;
    let place = tempfile::tempdir().unwrap();
    let output = child("child_gets_a_foreign_bus_error", place.path());
    assert_eq!(output.status.signal(), Some(7), "{output:?}");
}
