//! Signals at the moments at which temporary files are created and removed. `strace` sends a signal within a system call, or
//! delays the call. No file is left behind, and the job ends by the signal without a message.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A directory with an input, and a directory `work` for what a job writes.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        let lines: String = (0..9_000).map(|i| format!("HTTP://Example.org/{}\n", i / 2)).collect();
        fs::write(place.0.path().join("input"), lines).unwrap();
        place.empty();
        place
    }

    fn work(&self) -> PathBuf {
        self.0.path().join("work")
    }

    fn empty(&self) {
        let _ = fs::remove_dir_all(self.work());
        fs::create_dir(self.work()).unwrap();
    }

    /// Starts a job under `strace` with these flags. Words that begin with `:` are paths in the directory of the job, `@` is
    /// the input.
    fn start(&self, flags: &str, words: &str) -> Child {
        let word = |word: &str| match word.strip_prefix(':') {
            Some(name) => self.work().join(name),
            None if word == "@" => self.0.path().join("input"),
            None => PathBuf::from(word),
        };
        let mut command = Command::new("strace");
        command.args(flags.split(' ')).arg("-o").arg(self.log()).arg(env!("CARGO_BIN_EXE_irikey"));
        command.args(words.split(' ').map(word)).args(["-q", "-j", "2"]);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("strace is required: apt-get install strace")
    }

    fn log(&self) -> PathBuf {
        self.0.path().join("strace")
    }

    /// The numbers of the calls of `openat` by which the main thread of a job creates temporary files. The first is 1.
    fn creations(&self, words: &str) -> Vec<usize> {
        let ran = self.start("-e trace=openat -e signal=none", words).wait_with_output().unwrap();
        assert!(ran.status.success(), "{words}: {}", String::from_utf8_lossy(&ran.stderr));
        let log = fs::read_to_string(self.log()).unwrap();
        let calls = log.lines().filter(|line| line.starts_with("openat")).enumerate();
        calls.filter(|(_, call)| call.contains(".irikey-")).map(|(number, _)| number + 1).collect()
    }

    /// Waits for the end of a job, which must be that by the signal.
    fn check(&self, job: Child, signal: i32, context: &str) {
        let ran = job.wait_with_output().unwrap();
        assert_eq!(ran.status.signal(), Some(signal), "{context}");
        assert_eq!(String::from_utf8_lossy(&ran.stderr), "", "{context}");
        assert_eq!(temporary_files(&self.work()), Vec::<PathBuf>::new(), "{context}");
    }
}

/// The temporary files in a directory and those below it.
fn temporary_files(directory: &Path) -> Vec<PathBuf> {
    let (mut found, mut directories) = (Vec::new(), vec![directory.to_path_buf()]);
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.is_dir() {
                true => directories.push(path),
                false if path.to_string_lossy().contains(".irikey-") => found.push(path),
                false => (),
            }
        }
    }
    found
}

/// Sends a signal to the process that `strace` started.
fn send(strace: &Child, signal: i32) {
    let id = strace.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let job: i32 = children.trim().parse().unwrap();
    // SAFETY: kill only sends a signal, to a process that its parent has not reaped: the parent waits for its end.
    assert_eq!(unsafe { libc::kill(job, signal) }, 0);
}

/// The signal is delivered when the system call returns that has created the file.
#[test]
fn a_file_is_removed_if_a_signal_arrives_as_soon_as_it_exists() {
    let place = Place::new();
    let jobs = [
        "dedup @ -o :x.csv --duplicates :d.parquet --groups :g.parquet --report :r.json",
        "dedup @ -o :x.csv --seen :seen --update-seen",
        "canon @ -o :x.cdx.gz",
        "canon @ -o :out --resume",
        "canon @ -o :out --sort uri --part-rows 4000",
    ];
    let signals = [("SIGINT", 2), ("SIGTERM", 15), ("SIGHUP", 1), ("SIGABRT", 6)];
    let mut created_count = 0;
    for (job, (name, signal)) in jobs.into_iter().zip(signals.into_iter().cycle()) {
        place.empty();
        for number in place.creations(job) {
            place.empty();
            let flags = format!("-e trace=openat -e inject=openat:signal={name}:when={number}");
            place.check(place.start(&flags, job), signal, &format!("{job}: call {number}"));
            let log = fs::read_to_string(place.log()).unwrap();
            let created = log.lines().rfind(|line| line.starts_with("openat")).unwrap();
            created_count += usize::from(created.contains(".irikey-"));
        }
    }
    assert!(created_count >= 10, "only {created_count} signals arrived at the creation of a file");
}

/// The C library aborts the process if it has no memory for itself.
#[test]
fn files_are_removed_if_the_process_aborts() {
    let place = Place::new();
    let job = place.start("-e trace=none", "canon - -o :x.csv");
    let created = (0..3000).any(|_| {
        sleep(Duration::from_millis(10));
        !temporary_files(&place.work()).is_empty()
    });
    assert!(created);
    send(&job, libc::SIGABRT);
    place.check(job, libc::SIGABRT, "SIGABRT");
}

/// Another thread handles the signal while the file is created.
#[test]
fn a_file_is_removed_if_a_signal_arrives_while_another_thread_creates_it() {
    let place = Place::new();
    let job = "canon @ -o :out --part-rows 1000 --row-group-size 20K";
    // The main thread creates the manifest, and other threads the parts.
    let number = place.creations(job)[0];
    place.empty();
    let flags = format!("-f -e trace=openat -e signal=none -e inject=openat:delay_exit=600000:when={number}");
    let mut running = place.start(&flags, job);
    // A file that remains is the one whose creation takes long.
    let mut before = Vec::new();
    while running.try_wait().unwrap().is_none() {
        let files = temporary_files(&place.work());
        if files.iter().any(|file| before.contains(file)) {
            break;
        }
        before = files;
        sleep(Duration::from_millis(50));
    }
    send(&running, libc::SIGTERM);
    place.check(running, libc::SIGTERM, job);
}

/// `timeout` sends its signal twice: to the process, and to its group.
#[test]
fn a_signal_that_is_sent_twice_does_not_interrupt_the_removal_of_files() {
    let place = Place::new();
    let job = "canon - -o :x.csv";
    let mut running = place.start("-f -e trace=unlink -e signal=none -e inject=unlink:delay_enter=600000", job);
    while temporary_files(&place.work()).is_empty() && running.try_wait().unwrap().is_none() {
        sleep(Duration::from_millis(20));
    }
    send(&running, libc::SIGINT);
    sleep(Duration::from_millis(200));
    send(&running, libc::SIGINT);
    place.check(running, libc::SIGINT, job);
}
