//! Signals. Each test starts this test binary again and runs one ignored test in the child process.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::MappedFile;
use crate::process::{TemporaryDirectory, TemporaryFileGuard, remove_temporary_files_on_signals};

const DIRECTORY: &str = "IRIKEY_TEST_DIRECTORY";

fn child(test: &str, directory: &Path) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("input::mmap::tests::{test}"), "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .output()
        .unwrap()
}

fn directory() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

fn registered_file(path: &Path) -> TemporaryFileGuard {
    TemporaryFileGuard::create(path, || fs::write(path, b"half")).unwrap().1
}

/// An input of a mebibyte that can be truncated, and a temporary file that is registered.
fn input_and_temporary(directory: &Path) -> (File, TemporaryFileGuard) {
    fs::write(directory.join("input"), vec![b'x'; 1 << 20]).unwrap();
    let file = File::options().read(true).write(true).open(directory.join("input")).unwrap();
    (file, registered_file(&directory.join("temporary")))
}

/// Maps a file, truncates it and reads it.
#[test]
#[ignore = "started by truncating_a_mapped_file_is_reported"]
fn child_truncates_a_mapped_file() {
    let Some(directory) = directory() else { return };
    let (file, _guard) = input_and_temporary(&directory);
    let other = MappedFile::new(&file, Path::new("other")).unwrap();
    let mapping = MappedFile::new(&file, &directory.join("input")).unwrap();
    drop(other);
    file.set_len(10).unwrap();
    let sum: u64 = mapping.iter().map(|&byte| u64::from(byte)).sum();
    panic!("read past the end of the file: {sum}");
}

/// Maps a file, truncates it within its last page, and copies the end.
#[test]
#[ignore = "started by truncating_a_mapped_file_is_reported"]
fn child_truncates_the_last_page() {
    let Some(directory) = directory() else { return };
    let (file, _guard) = input_and_temporary(&directory);
    let mapping = MappedFile::new(&file, Path::new(OsStr::from_bytes(b"\x1b\xFF input"))).unwrap();
    file.set_len((1 << 20) - 10).unwrap();
    let mut copy = [0; 100];
    mapping.copy_at((1 << 20) - 100, &mut copy);
    panic!("copied bytes that the file does not have: {copy:?}");
}

#[test]
fn truncating_a_mapped_file_is_reported() {
    // Names are written as in other messages.
    let tests =
        [("child_truncates_a_mapped_file", "/input"), ("child_truncates_the_last_page", r"bytes:\u{1b}%FF input")];
    for (test, name) in tests {
        let directory = tempfile::tempdir().unwrap();
        let output = child(test, directory.path());
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{text}");
        assert!(text.contains(&format!("{name}: the file was 1048576 bytes long and was truncated")), "{text}");
        assert!(!directory.path().join("temporary").exists());
    }
}

/// A mapping of a range has the bytes of the range, mapped and copied.
#[test]
fn a_range_begins_at_its_place_in_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("input");
    let bytes: Vec<u8> = (0..20_000u32).map(|i| (i / 7) as u8).collect();
    fs::write(&path, &bytes).unwrap();
    let file = File::open(&path).unwrap();
    let mapping = MappedFile::of_range(&file, 5_001..19_999, &path).unwrap();
    assert!(mapping[..] == bytes[5_001..19_999]);
    let mut copy = vec![0; 3_000];
    mapping.copy_at(11_000, &mut copy);
    assert!(copy == bytes[16_001..19_001]);
    assert!(MappedFile::of_range(&file, 5_001..20_001, &path).is_none());
}

/// Terminates by a signal while one temporary file is registered and another one is no longer registered.
#[test]
#[ignore = "started by termination_by_a_signal_removes_temporary_files"]
fn child_is_terminated() {
    let Some(directory) = directory() else { return };
    remove_temporary_files_on_signals();
    drop(registered_file(&directory.join("done")));
    let guard = registered_file(&directory.join("temporary"));
    let _guard = (!directory.join("keep").exists()).then_some(guard);
    let mut files = TemporaryDirectory::create(&directory).unwrap();
    files.create_file("copy").unwrap();
    let me = std::process::id().to_string();
    Command::new("kill").args(["-s", "TERM", &me]).status().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(20));
    panic!("the signal did not terminate the process");
}

#[test]
fn termination_by_a_signal_removes_temporary_files() {
    use std::os::unix::process::ExitStatusExt;
    for is_kept in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        if is_kept {
            fs::write(directory.path().join("keep"), b"").unwrap();
        }
        let output = child("child_is_terminated", directory.path());
        assert_eq!(output.status.signal(), Some(15), "{output:?}");
        assert!(directory.path().join("done").exists());
        assert_eq!(directory.path().join("temporary").exists(), is_kept);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), if is_kept { 3 } else { 1 }, "a directory is left");
    }
}

/// A SIGBUS that no mapping caused terminates the process as usual.
#[test]
#[ignore = "started by other_bus_errors_terminate_the_process"]
fn child_gets_another_bus_error() {
    let Some(directory) = directory() else { return };
    fs::write(directory.join("input"), vec![b'x'; 1 << 20]).unwrap();
    let _mapping = MappedFile::new(&File::open(directory.join("input")).unwrap(), Path::new("input")).unwrap();
    let me = std::process::id().to_string();
    Command::new("kill").args(["-s", "BUS", &me]).status().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(20));
}

#[test]
fn other_bus_errors_terminate_the_process() {
    use std::os::unix::process::ExitStatusExt;
    let directory = tempfile::tempdir().unwrap();
    let output = child("child_gets_another_bus_error", directory.path());
    assert_eq!(output.status.signal(), Some(7), "{output:?}");
}

/// Pages of released ranges leave the resident memory, and can still be read.
#[cfg(target_os = "linux")]
#[test]
fn resident_memory_of_a_mapping_is_bounded() {
    use super::RELEASE_LEN;
    const STEP: usize = 1 << 20;
    let file = tempfile::tempfile().unwrap();
    file.set_len(3 * RELEASE_LEN as u64).unwrap();
    let mapping = MappedFile::new(&file, Path::new("sparse")).unwrap();
    let mut peak = 0;
    for start in (0..mapping.len()).step_by(STEP) {
        assert!(mapping[start..start + STEP].iter().all(|byte| *byte == 0));
        peak = peak.max(resident_len(&mapping));
        mapping.release(start..start + STEP);
    }
    assert!((STEP..=RELEASE_LEN + STEP).contains(&peak), "{peak}");
    assert!(resident_len(&mapping) < STEP && mapping[0] == 0);
}

/// Bytes of a mapping that are in the resident memory.
#[cfg(target_os = "linux")]
fn resident_len(mapping: &MappedFile) -> usize {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap();
    let begin = format!("{:x}-", mapping.as_ptr() as usize);
    let mut lines = maps.lines().skip_while(|line| !line.starts_with(&begin));
    let resident = lines.find_map(|line| line.strip_prefix("Rss:")).unwrap();
    resident.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}
