//! Jobs that are interrupted, run at the same time, run again, or run out of memory, disk or permission: nothing is lost, and
//! no leftover stops the next job.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{LINES, gzip, irikey, printed, read_json};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        for name in ["a.txt", "b.txt"] {
            let lines: String = (0..200).map(|i| format!("HTTP://Example.org/{name}/{i}\n")).collect();
            fs::write(place.path(name), lines).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The words of a command; those that begin with `:` are paths in the directory.
    fn words(&self, words: &str) -> Vec<String> {
        let word =
            |word: &str| word.strip_prefix(':').map_or(word.to_string(), |name| self.path(name).display().to_string());
        words.split(' ').map(word).collect()
    }

    /// Runs a command, see [`Place::words`]. Returns the exit code and the messages.
    fn run(&self, words: &str) -> (Option<i32>, String) {
        let words = self.words(words);
        let ran = irikey(&words.iter().map(String::as_str).collect::<Vec<_>>(), LINES, Stdio::null());
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    }

    fn accepted(&self, words: &str) -> String {
        let (status, message) = self.run(words);
        assert_eq!(status, Some(0), "{words}: {message}");
        message
    }

    fn refused(&self, words: &str, status: i32, text: &str) {
        let (found, message) = self.run(words);
        assert!(found == Some(status) && message.contains(text), "{words}: {found:?} {message}");
    }

    /// Runs a script in the directory as a user for whom permissions and limits hold.
    #[cfg(target_os = "linux")]
    fn run_as_nobody(&self, script: &str) -> (Option<i32>, String) {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        use std::os::unix::process::CommandExt;
        const NOBODY: u32 = 65_534;

        let directory = self.path("");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(&directory).stdin(Stdio::null()).stdout(Stdio::null());
        if fs::metadata(&directory).unwrap().uid() == 0 {
            command.uid(NOBODY);
        }
        let ran = command.output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    }

    fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn has_leftovers(&self, directory: &str) -> bool {
        self.names(directory).iter().any(|name| name.starts_with(".irikey-"))
    }
}

fn locked(path: &Path) -> File {
    let file = File::options().create(true).truncate(false).write(true).open(path).unwrap();
    file.lock().unwrap();
    file
}

#[test]
fn two_jobs_do_not_write_one_directory() {
    let place = Place::new();
    for flags in ["--resume", "--part-rows 9", "--partition host:2", "--sort uri --part-rows 9"] {
        fs::create_dir(place.path("out")).unwrap();
        let lock = locked(&place.path("out/_incomplete"));
        place.refused(&format!("canon :a.txt -o :out {flags}"), 8, "another job is writing this directory");
        drop(lock);
        place.accepted(&format!("canon :a.txt -o :out {flags}"));
        assert!(!place.names("out").iter().any(|name| name == "_incomplete"), "{flags}");
        fs::remove_dir_all(place.path("out")).unwrap();
    }
    fs::create_dir(place.path("seen")).unwrap();
    let lock = locked(&place.path("seen/lock"));
    place.refused(
        "dedup :a.txt -o :x.csv --seen :seen --update-seen",
        8,
        "another process is changing this seen store",
    );
    drop(lock);
    place.accepted("dedup :a.txt -o :x.csv --seen :seen --update-seen");
    // Runs of a sorted job that is resumed have a lock of their own.
    fs::create_dir_all(place.path("sorted/_runs")).unwrap();
    let lock = locked(&place.path("sorted/_runs/_incomplete"));
    place.refused("canon :a.txt -o :sorted --sort uri --resume", 8, "another job is writing this directory");
    drop(lock);
    place.accepted("canon :a.txt -o :sorted --sort uri --resume");
}

#[test]
fn temporary_files_are_removed_when_their_owner_is_gone() {
    let place = Place::new();
    fs::create_dir_all(place.path("out/_runs")).unwrap();
    fs::create_dir(place.path("seen")).unwrap();
    for directory in ["", "out/", "out/_runs/", "seen/"] {
        fs::write(place.path(&format!("{directory}.irikey-dead.tmp")), "left").unwrap();
    }
    let alive = [".irikey-alive.tmp", "out/.irikey-alive.tmp"].map(|name| locked(&place.path(name)));
    place.accepted("canon :a.txt -o :x.csv");
    place.accepted("canon :a.txt -o :out --sort uri --resume");
    place.accepted("dedup :a.txt -o :y.csv --seen :seen --update-seen");
    for directory in ["", "out/_runs", "out", "seen"] {
        let left: Vec<_> = place.names(directory).into_iter().filter(|name| name.starts_with(".irikey-")).collect();
        let expected = if ["", "out"].contains(&directory) { &[".irikey-alive.tmp"][..] } else { &[] };
        assert_eq!(left, expected, "{directory}");
    }
    drop(alive);
}

#[test]
fn an_interrupted_directory_is_made_again() {
    let place = Place::new();
    place.accepted("canon :a.txt -o :whole --output-format csv --sort -uri --part-rows 50");
    for flags in ["--sort -uri --part-rows 50", "--partition surt:3", "--partition host:3"] {
        let job = format!("canon :a.txt -o :out --output-format csv {flags}");
        place.accepted(&job);
        let names = place.names("out");
        // Without the mark of an interrupted job, the directory is complete and is kept.
        place.refused(&job, 2, "contains files already");
        fs::write(place.path("out/_incomplete"), "interrupted").unwrap();
        fs::write(place.path("out/part-00009.csv"), "half").unwrap();
        place.accepted(&job);
        assert_eq!(place.names("out"), names);
        // Files of others are not removed.
        fs::write(place.path("out/_incomplete"), "interrupted").unwrap();
        fs::write(place.path("out/notes.txt"), "mine").unwrap();
        place.refused(&job, 2, "contains files already");
        assert_eq!(fs::read(place.path("out/notes.txt")).unwrap(), b"mine");
        fs::remove_dir_all(place.path("out")).unwrap();
    }
    // A job that fails leaves nothing that stops its rerun.
    let job = "canon :a.txt -o :limited --output-format csv --sort uri --part-rows 50";
    let (status, message) = limited("ulimit -f 4", &place.words(job).join(" "));
    assert!(status == Some(5) && message.contains("file too large"), "{message}");
    place.accepted(job);
}

/// That a column does not exist is found when the first input is read.
#[test]
fn a_job_that_cannot_begin_leaves_nothing() {
    let place = Place::new();
    fs::write(place.path("in.csv"), "a,b\nhttp://h/,1\n").unwrap();
    fs::create_dir(place.path("empty")).unwrap();
    let before = place.names("");
    for flags in
        ["--part-rows 9", "--hive a=b,c=d", "--sort uri --part-rows 9", "--resume", "--resume --sort uri --hive a=b"]
    {
        for directory in ["new", "new/er/", "empty"] {
            let job = |column: &str| format!("canon :in.csv -o :{directory} --column {column} {flags}");
            place.refused(&job("nope"), 2, "there is no column");
            assert_eq!((place.names(""), place.names("empty")), (before.clone(), Vec::new()), "{flags}");
            // Other flags are not refused.
            place.accepted(&job("a"));
            let top = directory.split('/').next().unwrap();
            fs::remove_dir_all(place.path(top)).unwrap();
            fs::create_dir_all(place.path("empty")).unwrap();
        }
    }
    place.refused("dedup :in.csv --column nope -o :x.csv --seen :new/seen --update-seen", 2, "there is no column");
    assert_eq!(place.names(""), before);
    // An input that cannot be read is no other case.
    fs::write(place.path("damaged.gz"), b"\x1f\x8b\x08\0").unwrap();
    let before = place.names("");
    let nothing = "not written, because an input has an error and there are no records";
    place.refused("canon :damaged.gz -o :new --part-rows 9", 4, nothing);
    place.refused("dedup :damaged.gz -o :x.csv --seen :new/seen --update-seen", 4, nothing);
    fs::write(place.path("empty.txt"), "").unwrap();
    // The empty input was read.
    place.refused("extract :empty.txt :damaged.gz -o :in.csv", 4, nothing);
    place.refused("canon :empty.txt :damaged.gz -o :in.csv", 4, nothing);
    assert!(fs::read_to_string(place.path("in.csv")).unwrap().starts_with("a"), "the file is kept");
    fs::remove_file(place.path("empty.txt")).unwrap();
    assert_eq!(place.names(""), before);
    // A compressed file has a header, so an empty one was cut short.
    for (name, compression) in [("empty.warc.gz", "gzip"), ("empty.cdxj.ZST", "zstd"), ("empty.xz", "xz")] {
        fs::write(place.path(name), "").unwrap();
        let message = format!("{name}: the {compression} data ends early");
        place.refused(&format!("canon :{name} -o :x.csv"), 4, &message);
        place.refused(&format!("extract :{name} -o :x.csv"), 4, &message);
        place.refused(&format!("check-sorted :{name}"), 4, &message);
        fs::remove_file(place.path(name)).unwrap();
    }
    // What was written before an error stays until the job is run again.
    fs::write(place.path("other.csv"), "b\n1\n").unwrap();
    place.refused("canon :in.csv :other.csv -o :new --column a --resume -j 1", 2, "there is no column");
    assert!(place.names("new").contains(&"part-00000.parquet".to_string()), "{:?}", place.names("new"));
}

/// Runs a command in a shell with a limit.
fn limited(limit: &str, words: &str) -> (Option<i32>, String) {
    let script = format!("{limit}; exec {} {words}", env!("CARGO_BIN_EXE_irikey"));
    let ran = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
}

#[test]
fn a_torn_manifest_does_not_stop_a_job_for_ever() {
    let place = Place::new();
    let job = "canon :a.txt :b.txt -o :out --output-format csv --resume";
    place.accepted(job);
    let (manifest, whole) = (place.path("out/_manifest.json"), fs::read(place.path("out/_manifest.json")).unwrap());
    let part = fs::read(place.path("out/part-00000.csv")).unwrap();
    for text in [&b""[..], &whole[..whole.len() / 2], b"[]", b"\0\0\0"] {
        fs::write(&manifest, text).unwrap();
        place.refused(job, 2, "to start again, remove this file and the parts beside it");
        // Nothing is lost if there is no part: the job starts again.
        for name in ["part-00000.csv", "part-00001.csv"] {
            fs::remove_file(place.path("out").join(name)).unwrap();
        }
        if text != b"[]" {
            place.accepted(job);
        } else {
            fs::remove_file(&manifest).unwrap();
            place.accepted(job);
        }
        assert!(fs::read(&manifest).unwrap() == whole && fs::read(place.path("out/part-00000.csv")).unwrap() == part);
    }
    fs::remove_file(&manifest).unwrap();
    std::os::unix::fs::symlink("missing/manifest", &manifest).unwrap();
    fs::rename(place.path("out/part-00000.csv"), place.path("part")).unwrap();
    fs::remove_file(place.path("out/part-00001.csv")).unwrap();
    place.refused(job, 5, "cannot create: ");
    assert!(place.run(job).1.ends_with("create it first; no input was read\n"), "{}", place.run(job).1);
    fs::remove_file(&manifest).unwrap();
    fs::rename(place.path("part"), place.path("out/part-00000.csv")).unwrap();
    place.refused(job, 2, "part-00000.csv: the file exists, but the manifest of --resume does not list it");
    assert_eq!(fs::read(place.path("out/part-00000.csv")).unwrap(), part);
    fs::create_dir(place.path("new")).unwrap();
    fs::write(place.path("new/part-00000.csv"), "mine").unwrap();
    place.refused("canon :a.txt -o :new --output-format csv --resume", 2, "would be lost");
    assert_eq!(fs::read(place.path("new/part-00000.csv")).unwrap(), b"mine");
}

/// A job that was killed before it finished an input leaves its manifest, which binds no later job.
#[test]
fn a_job_that_was_killed_at_once_can_be_started_with_other_flags() {
    let place = Place::new();
    for flags in ["", " --sort uri"] {
        let job = format!("canon :a.txt :b.txt -o :out --output-format csv --resume{flags}");
        let parts = place.path(if flags.is_empty() { "out" } else { "out/_runs" });
        place.accepted(&job);
        let manifest = parts.join("_manifest.json");
        let mut killed = read_json(&manifest);
        killed["merge"] = serde_json::Value::Null;
        let numbers = killed["inputs"].as_object_mut().unwrap().values_mut();
        numbers.for_each(|entry| *entry = serde_json::json!({"part": entry["part"]}));
        // A part that is finished binds the next job, whatever the manifest says.
        fs::remove_dir_all(place.path("out")).unwrap();
        fs::create_dir_all(&parts).unwrap();
        fs::write(&manifest, killed.to_string()).unwrap();
        fs::write(parts.join("part-00000.csv"), "mine").unwrap();
        place.refused(&format!("{job} --columns uri"), 2, "the parts were made with");
        fs::remove_file(parts.join("part-00000.csv")).unwrap();
        place.accepted(&format!("canon :b.txt -o :out --output-format csv --resume --columns uri{flags}"));
        place.refused(&job, 2, "the parts were made with");
        fs::remove_dir_all(place.path("out")).unwrap();
    }
}

/// As the message about a changed input says: the entry and the part are removed, and the part gets a new number.
#[test]
fn an_input_that_changed_can_be_read_again() {
    let place = Place::new();
    fs::write(place.path("c.txt"), LINES).unwrap();
    let job = "canon :a.txt :b.txt :c.txt -o :out --output-format csv --resume";
    place.accepted(job);
    let kept = fs::read(place.path("out/part-00002.csv")).unwrap();
    fs::write(place.path("b.txt"), "http://changed/\n").unwrap();
    place.refused(job, 4, "remove its entry");
    let manifest = place.path("out/_manifest.json");
    let mut found = read_json(&manifest);
    let name = place.path("b.txt").display().to_string();
    assert!(found["inputs"].as_object_mut().unwrap().remove(&name).is_some());
    fs::write(&manifest, found.to_string()).unwrap();
    fs::remove_file(place.path("out/part-00001.csv")).unwrap();
    place.accepted(job);
    assert_eq!(fs::read(place.path("out/part-00002.csv")).unwrap(), kept);
    assert!(fs::read_to_string(place.path("out/part-00003.csv")).unwrap().contains("http://changed/"));
}

/// A merge that ends before it is recorded, with some parts or with all, is made again from the runs.
#[test]
fn a_merge_that_was_not_recorded_is_made_again() {
    let place = Place::new();
    let flags = "--sort uri --part-rows 300 --output-format csv";
    place.accepted(&format!("canon :a.txt :b.txt -o :whole {flags}"));
    let job = format!("canon :a.txt :b.txt -o :out {flags} --resume");
    // The runs of an input fit into this limit; the first part does not.
    let (status, message) = limited("ulimit -f 64", &place.words(&job).join(" "));
    assert!(status == Some(5) && message.contains("file too large"), "{message}");
    assert_eq!(read_json(place.path("out/_runs/_manifest.json"))["merge"], "merging");
    assert_eq!(place.names("out/_runs"), ["_manifest.json", "part-00000.runs", "part-00001.runs"]);
    let runs: Vec<_> = place.names("out/_runs").into_iter().map(|name| place.path("out/_runs").join(name)).collect();
    let saved: Vec<_> = runs.iter().map(|path| (path, fs::read(path).unwrap())).collect();
    let assert_whole = |message: &str| {
        assert!(message.contains("2 inputs finished by an earlier run"), "{message}");
        for name in ["part-00000.csv", "part-00001.csv"] {
            assert!(
                fs::read(place.path("out").join(name)).unwrap() == fs::read(place.path("whole").join(name)).unwrap()
            );
        }
        assert_eq!(place.names("out/_runs"), ["_manifest.json"]);
    };
    assert_whole(&place.accepted(&job));
    // The power failed after the last part had its name.
    saved.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    // The parts may be those of a job that is running.
    let lock = locked(&place.path("out/_incomplete"));
    let names = place.names("out");
    place.refused(&job, 8, "another job is writing this directory");
    assert_eq!(place.names("out"), names);
    drop(lock);
    assert_whole(&place.accepted(&job));
}

/// What the system could not read in one run is read in the next one, and the runs of a sort are kept until then. The memory of
/// a process can be opened, and its first byte cannot be read.
#[cfg(target_os = "linux")]
#[test]
fn an_input_that_the_system_cannot_read_is_read_again() {
    let place = Place::new();
    let lines = fs::read(place.path("b.txt")).unwrap();
    for flags in ["--output-format csv", "--sort uri --part-rows 300 --output-format csv"] {
        let job = format!("canon :a.txt :b.txt -o :out {flags} --resume");
        fs::remove_file(place.path("b.txt")).unwrap();
        std::os::unix::fs::symlink("/proc/self/mem", place.path("b.txt")).unwrap();
        place.refused(&job, 4, "b.txt: cannot read further: input/output error");
        place.refused(&job, 4, "1 input finished by an earlier run");
        fs::remove_file(place.path("b.txt")).unwrap();
        fs::write(place.path("b.txt"), &lines).unwrap();
        place.accepted(&job);
        assert!(place.accepted(&job).contains("2 inputs finished by an earlier run"), "{flags}");
        let parts = place.names("out").into_iter().filter(|name| name.starts_with("part-"));
        let read = |name: String| fs::read_to_string(place.path("out").join(name)).unwrap();
        let rows: Vec<String> =
            parts.flat_map(|name| read(name).lines().skip(1).map(str::to_string).collect::<Vec<_>>()).collect();
        assert_eq!((rows.len(), rows.iter().collect::<HashSet<_>>().len()), (400, 400), "{flags}");
        fs::remove_dir_all(place.path("out")).unwrap();
    }
}

/// A sorted job may have more inputs than a process may open files.
#[test]
fn many_sorted_runs_are_merged_with_few_open_files() {
    let place = Place::new();
    fs::create_dir(place.path("in")).unwrap();
    for i in 0..200 {
        let line = format!("http://example.org/{:03}\n", i * 7 % 200);
        fs::write(place.path("in").join(format!("{i}.txt")), line).unwrap();
    }
    let job = place.words("canon -q :in -o :out --sort uri --output-format csv --columns uri --resume -j 1").join(" ");
    let (status, message) = limited("ulimit -n 120", &job);
    assert_eq!(status, Some(0), "{message}");
    let rows = fs::read_to_string(place.path("out/part-00000.csv")).unwrap();
    assert!(rows.lines().count() == 201 && rows.lines().skip(1).is_sorted(), "{rows}");
}

/// A finished directory is recognized after it was moved, and its name need not be UTF-8.
#[cfg(target_os = "linux")]
#[test]
fn a_sorted_directory_can_have_any_name_and_be_moved() {
    use std::os::unix::ffi::OsStringExt;

    let place = Place::new();
    let [first, second] =
        [&b"out\xff"[..], b"moved"].map(|name| place.0.path().join(std::ffi::OsString::from_vec(name.to_vec())));
    let run = |directory: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
        command.args(["canon", "-q", "--resume", "--sort", "uri"]).arg(place.path("a.txt")).arg("-o").arg(directory);
        let ran = command.stderr(Stdio::piped()).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    run(&first);
    let part = fs::read(first.join("part-00000.parquet")).unwrap();
    fs::rename(&first, &second).unwrap();
    run(&second);
    assert_eq!(fs::read(second.join("part-00000.parquet")).unwrap(), part);
}

#[test]
fn an_input_that_changes_while_it_is_read_is_refused() {
    let place = Place::new();
    let lines: String = (0..60_000).map(|i| format!("HTTP://Example.org/{i}\n")).collect();
    for flags in ["", " --sort uri"] {
        fs::write(place.path("many.txt"), &lines).unwrap();
        let (input, out) = (place.path("many.txt"), place.path("out"));
        fs::create_dir_all(place.path("out/_runs")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
        command.args(["canon", "-q", "--resume"]).arg(&input).arg("-o").arg(&out).args(flags.split_whitespace());
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        let directory = if flags.is_empty() { "out" } else { "out/_runs" };
        while !place.has_leftovers(directory) {
            std::thread::yield_now();
        }
        File::options().append(true).open(&input).unwrap().write_all(b"http://example.org/late\n").unwrap();
        let ran = child.wait_with_output().unwrap();
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(4), "{message}");
        assert!(message.contains("many.txt: the input changed while it was read"), "{message}");
        assert!(!place.names(directory).iter().any(|name| name.starts_with("part-")), "{flags}");
        place.accepted(&format!("canon -q :many.txt -o :out --resume{flags}"));
        fs::remove_dir_all(place.path("out")).unwrap();
    }
}

#[test]
fn many_small_inputs_are_resumed() {
    let place = Place::new();
    fs::create_dir(place.path("in")).unwrap();
    for i in 0..400 {
        fs::write(place.path(&format!("in/{i:04}.txt")), format!("http://example.org/{i}\n")).unwrap();
    }
    let job = "canon -q :in -o :out --output-format csv --columns uri --resume";
    place.accepted(job);
    assert_eq!(place.names("out").len(), 401, "the parts and the manifest");
    let part = fs::read(place.path("out/part-00399.csv")).unwrap();
    assert_eq!(String::from_utf8(part).unwrap(), "uri\nhttp://example.org/399\n");
    place.accepted(job);
    // What stays of inputs that are not named any more is stated.
    fs::remove_file(place.path("in/0007.txt")).unwrap();
    fs::remove_file(place.path("in/0008.txt")).unwrap();
    let summary = place.accepted(&job.replace(" -q", ""));
    let expected = format!("parts of 2 inputs not named now, such as {}", place.path("in/0007.txt").display());
    assert!(summary.contains(&expected), "{summary}");
    assert_eq!(place.names("out").len(), 401);
}

#[test]
fn a_finished_job_is_recognized() {
    let place = Place::new();
    let job = "dedup :a.txt :b.txt -o :new.csv --seen :seen --update-seen";
    place.accepted(job);
    let (output, manifest) = (place.path("new.csv"), place.path("seen/manifest.json"));
    let (whole, store) = (fs::read(&output).unwrap(), fs::read(&manifest).unwrap());
    assert!(place.accepted(job).contains("this job has been done before"));
    // The numbers of the first run are not known any more.
    let message = place.accepted(&format!("{job} --report :report.json"));
    assert!(
        message.contains("this job has been done before") && message.contains("report.json: not written"),
        "{message}"
    );
    assert!(!place.path("report.json").exists());
    assert!(fs::read(&output).unwrap() == whole && fs::read(&manifest).unwrap() == store);
    // Inputs of the same names and sizes with other times.
    let touched = File::options().append(true).open(place.path("a.txt")).unwrap();
    let modified = touched.metadata().unwrap().modified().unwrap();
    touched.set_modified(modified + std::time::Duration::from_secs(9)).unwrap();
    place.refused(job, 2, "other times");
    touched.set_modified(modified).unwrap();
    fs::write(&output, "changed").unwrap();
    place.refused(job, 2, "no longer exists here or has changed");
    fs::remove_file(&output).unwrap();
    place.refused(job, 2, "no longer exists here or has changed");
    fs::write(&output, &whole).unwrap();
    for flag in ["--columns uri", "--verify", "--keep last"] {
        place.refused(&format!("{job} {flag}"), 2, "with the same inputs and other flags");
    }
    // Other inputs, another output: other jobs.
    let mut input = File::options().append(true).open(place.path("b.txt")).unwrap();
    input.write_all(b"http://example.org/new\n").unwrap();
    place.accepted(job);
    assert!(fs::read_to_string(&output).unwrap().contains("http://example.org/new"));
    place.accepted("dedup :a.txt -o :other.csv --seen :seen --update-seen");
    assert_eq!(fs::read_to_string(place.path("other.csv")).unwrap().lines().count(), 1);
}

/// Its output is there while all parts are.
#[test]
fn a_finished_job_that_wrote_parts_is_recognized() {
    let place = Place::new();
    let output = "-o :new --part-rows 100 --hive crawl=A --output-format csv --row-group-size 1K";
    let job = format!("dedup :a.txt :b.txt {output} --seen :seen --update-seen");
    place.accepted(&job);
    let (parts, manifest) = (place.names("new/crawl=A"), place.path("seen/manifest.json"));
    let store = fs::read(&manifest).unwrap();
    assert_eq!(parts.len(), 5, "four parts and a manifest: {parts:?}");
    assert!(place.accepted(&job).contains("this job has been done before"));
    assert!(place.names("new/crawl=A") == parts && fs::read(&manifest).unwrap() == store);
    place.refused(&format!("{job} --keep last"), 2, "with the same inputs and other flags");
    let part = place.path("new/crawl=A/part-00001.csv");
    let bytes = fs::read(&part).unwrap();
    fs::write(&part, "changed").unwrap();
    place.refused(&job, 2, "no longer exists here or has changed");
    fs::remove_file(&part).unwrap();
    place.refused(&job, 2, "no longer exists here or has changed");
    fs::write(&part, bytes).unwrap();
    assert!(place.accepted(&job).contains("this job has been done before"));
}

/// The keys of rows whose input was damaged are in the store, so their only output is not replaced.
#[test]
fn the_output_of_a_job_with_a_damaged_input_is_kept() {
    let place = Place::new();
    let lines: String = (0..20_000).map(|i| format!("http://example.org/{}\n", i * i % 99_991)).collect();
    let whole = gzip(lines.as_bytes());
    let (input, output, report) = (place.path("in.gz"), place.path("new.csv"), "--report :report.json");
    fs::write(&input, &whole[..whole.len() / 2]).unwrap();
    let job = "dedup :in.gz -o :new.csv --seen :seen --update-seen --columns uri";
    place.refused(&format!("{job} {report}"), 4, "in.gz");
    let first = fs::read_to_string(&output).unwrap();
    place.refused(job, 4, "done before: it ended with exit code 4");
    fs::write(&input, &whole).unwrap();
    place.refused(job, 2, "move the output away");
    assert_eq!(fs::read_to_string(&output).unwrap(), first);
    fs::rename(&output, place.path("first.csv")).unwrap();
    place.accepted(job);
    assert!(place.accepted(job).contains("done before: the output is complete"));
    let second = fs::read_to_string(&output).unwrap();
    let uris = |text: &str| text.lines().skip(1).map(str::to_string).collect::<Vec<_>>();
    let (all, distinct) = ([uris(&first), uris(&second)].concat(), lines.lines().collect::<HashSet<_>>());
    assert!(uris(&first).len() > 1_000 && all.len() == distinct.len());
    assert!(all.iter().all(|uri| distinct.contains(uri.as_str())));
}

/// An input that could not be read to its end may be readable now, so that the job may run again if its output was moved.
#[test]
fn a_job_whose_input_could_not_be_read_can_be_run_again() {
    let place = Place::new();
    let whole = gzip("http://example.org/\n".repeat(9_000).as_bytes());
    fs::write(place.path("in.gz"), &whole[..whole.len() - 4]).unwrap();
    let job = "dedup :in.gz -o :new.csv --seen :seen --update-seen --columns uri";
    place.refused(job, 4, "in.gz");
    place.refused(job, 4, "to read its inputs again, move the output away");
    fs::rename(place.path("new.csv"), place.path("first.csv")).unwrap();
    place.refused(job, 4, "in.gz: after");
    assert_eq!(fs::read_to_string(place.path("new.csv")).unwrap(), "uri\n");
    fs::write(place.path("new.csv"), "uri\nother\n").unwrap();
    place.refused(job, 2, "would be empty");
}

/// Faults count as errors if the flag of this run says so, whatever the first run had.
#[test]
fn a_finished_job_has_the_exit_code_of_the_flags_of_the_later_run() {
    let place = Place::new();
    fs::write(place.path("faulty.txt"), "http://a/\nrelative\n").unwrap();
    let job = |name: &str| format!("dedup :faulty.txt -o :{name}.csv --seen :{name} --update-seen");
    for text in ["faulty", "done before: the output is complete, but records have a fault"] {
        place.refused(&format!("{} --fail-on-fault", job("with")), 3, text);
    }
    for text in ["faulty", "done before: the output is complete and"] {
        assert!(place.accepted(&job("without")).contains(text));
    }
    assert!(place.accepted(&job("with")).contains("done before: the output is complete and"));
    place.refused(&format!("{} --fail-on-fault", job("without")), 3, "but records have a fault");
}

/// A device does not keep what was written, so the job is done again, as with standard output.
#[test]
fn jobs_that_write_to_devices_and_pipes_are_not_remembered() {
    let place = Place::new();
    for text in ["kept", "seen before"] {
        assert!(place.accepted("dedup :a.txt --seen :seen --update-seen -o /dev/null").contains(text));
    }
}

/// A job also writes tables; a name of one may have any bytes.
#[test]
#[cfg(unix)]
fn a_finished_job_is_recognized_with_its_tables() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let [first, second] = [&b"first\xFF.parquet"[..], b"first\xFE.parquet"]
        .map(|name| place.path("").join(std::ffi::OsStr::from_bytes(name)));
    let job = |table: &Path| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
        command.arg("dedup").arg(place.path("a.txt")).arg("-o").arg(place.path("new.csv")).arg("--update-seen");
        let ran = command.arg("--seen").arg(place.path("seen")).arg("--duplicates").arg(table).output().unwrap();
        (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned())
    };
    let (status, message) = job(&first);
    assert!(status == Some(0) && message.contains("records"), "{message}");
    let (status, message) = job(&first);
    assert!(status == Some(0) && message.contains("this job has been done before"), "{message}");
    fs::remove_file(&first).unwrap();
    let (status, message) = job(&first);
    assert!(status == Some(2) && message.contains("this table, which it wrote as well"), "{message}");
    // Another table is another job, and its output would be empty.
    let (status, message) = job(&second);
    assert!(status == Some(2) && message.contains("a job with the same inputs and other flags"), "{message}");
    fs::remove_file(place.path("new.csv")).unwrap();
    let (status, message) = job(&second);
    assert!(status == Some(0) && message.contains("records"), "{message}");
}

/// The exit code of a job does not depend on whether it was interrupted.
#[test]
fn faults_of_finished_inputs_count() {
    let place = Place::new();
    fs::write(place.path("a.txt"), "http://a/\nrelative\nhttp://[bad\n").unwrap();
    for flags in ["", " --sort uri"] {
        let job = format!("canon :a.txt :b.txt -o :out --resume --fail-on-fault --report :report.json{flags}");
        let first = job.replace(" :b.txt", "");
        if flags.is_empty() {
            place.refused(&first, 3, "faulty");
        }
        for count in [u64::from(flags.is_empty()), 2] {
            place.refused(&job, 3, "faulty");
            let report = read_json(place.path("report.json"));
            let expected = if count == 0 { (0, 0) } else { (count, 2) };
            assert_eq!(
                (&report["resumed_inputs"], &report["resumed_faulty"]),
                (&expected.0.into(), &expected.1.into())
            );
        }
        let (status, message) = place.run(&job.replace(" --fail-on-fault", ""));
        assert!(status == Some(0) && message.contains("by an earlier run, with 2 faulty records"), "{message}");
        fs::remove_dir_all(place.path("out")).unwrap();
    }
}

#[test]
fn errors_of_finished_inputs_are_reported() {
    let place = Place::new();
    let record = |host: &str, rest: &str| {
        format!("WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://{host}/\r\nContent-Length: {rest}")
    };
    let end = "0\r\n\r\n\r\n\r\n";
    let archive =
        [&record("a", end)[..], "stray bytes of no record\r\n", &record("b", end), &record("c", "9\r\n\r\nabc")]
            .concat();
    fs::write(place.path("a.warc"), archive).unwrap();
    for flags in ["", " --sort uri"] {
        let job = format!("canon :a.warc -o :out/ --resume --report :report.json{flags}");
        let errors = [0, 1].map(|_| {
            place.refused(&job, 4, "was cut short");
            read_json(place.path("report.json"))["errors"].clone()
        });
        assert!(errors[0] == errors[1] && errors[0].as_array().unwrap().len() == 2, "{errors:?}");
        fs::remove_dir_all(place.path("out")).unwrap();
    }
}

#[test]
fn an_output_that_appears_meanwhile_is_kept() {
    let place = Place::new();
    for (name, flags) in [("x.csv", ""), ("x.csv", "--threads 1"), ("r.json", "--report")] {
        let path = place.path(name);
        let (out, report) = (place.path("x.csv"), place.path("r.json"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
        command.args(["canon", "-q", "-", "--no-clobber", "-o"]).arg(&out);
        if flags == "--report" {
            command.arg("--report").arg(&report);
        }
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The job has begun when its temporary file exists.
        while !place.has_leftovers("") {
            std::thread::yield_now();
        }
        fs::write(&path, "mine").unwrap();
        stdin.write_all(LINES).unwrap();
        drop(stdin);
        let ran = child.wait_with_output().unwrap();
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(5), "{message}");
        assert!(message.contains("did not exist when the job began"), "{message}");
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        assert!(!place.has_leftovers(""));
        fs::remove_file(&path).unwrap();
        let _ = fs::remove_file(&out);
    }
}

#[test]
fn own_files_have_no_other_role() {
    let place = Place::new();
    place.accepted("dedup :a.txt -o :x.csv --seen :seen --update-seen");
    for flags in
        [":a.txt -o :seen/x.csv", ":a.txt -o :x.csv --report :seen/manifest.json", ":seen/run-000001 -o :x.csv"]
    {
        place.refused(&format!("dedup {flags} --seen :seen"), 2, "is in the store of --seen");
    }
    place.refused("dedup :a.txt -o :new/x.csv --seen :new --update-seen", 2, "is in the store of --seen");
    for flags in [
        ":seen/parts/ --seen :seen",
        ":all/ --seen :all/seen",
        ":all/ --hive crawl=1 --seen :all/seen",
        ":all/ --seen :all",
    ] {
        place.refused(
            &format!("dedup :a.txt -o {flags} --update-seen"),
            2,
            "the store contains the directory of -o or is in it",
        );
    }
    for name in ["_manifest.json", "part-00000.parquet", "splits.txt", "_incomplete", "_runs/_manifest.json", "r.json"]
    {
        let job = format!("canon :a.txt -o :out --partition surt:2 --report :out/{name}");
        place.refused(&job, 2, "is in the directory of -o");
    }
    place.accepted("canon :a.txt -o :out --partition surt:2");
    let points = place.path("out/splits.txt").display().to_string();
    place.refused(&format!("canon :a.txt -o :out --partition surt:{points}"), 2, "is in the directory of -o");
    place.refused(&format!("canon :a.txt -o :y --partition surt:{points} --report {points}"), 2, "is also an input");
    // A directory that is read again would contain the output.
    fs::create_dir(place.path("crawl")).unwrap();
    fs::rename(place.path("a.txt"), place.path("crawl/a.txt")).unwrap();
    for flags in ["--resume", "--part-rows 9"] {
        place.refused(&format!("canon :crawl -o :crawl {flags}"), 2, "is in the input");
        place.refused(&format!("canon :crawl -o :crawl/out {flags}"), 2, "is in the input");
    }
    place.accepted("canon :crawl -o :crawl/_out --part-rows 9");
}

#[test]
fn an_index_needs_a_regular_file() {
    let place = Place::new();
    place.refused("canon :a.txt --output-format zipnum -o /dev/stdout", 5, "writes an index beside its data");
    place.refused("canon :a.txt --output-format zipnum -o /dev/null", 5, "writes an index beside its data");
    assert!(!Path::new("/dev/stdout.idx").exists() && !Path::new("/dev/null.idx").exists());
    // The index is beside the data, also if -o is a link to it.
    fs::create_dir(place.path("data")).unwrap();
    std::os::unix::fs::symlink(place.path("data/y.cdx.gz"), place.path("x.cdx.gz")).unwrap();
    place.accepted("canon :a.txt -o :data/y.cdx.gz");
    place.refused("canon :a.txt -o :x.cdx.gz --report :data/y.idx", 2, "are the same file");
}

/// No thread that cannot be started ends a job with a panic, or lets it wait for ever.
#[test]
#[cfg(target_os = "linux")]
fn threads_that_cannot_be_started_are_errors() {
    let place = Place::new();
    let run = |script: String| place.run_as_nobody(&script);
    let program = env!("CARGO_BIN_EXE_irikey");
    if run(format!("test -x {program}")).0 != Some(0) {
        // The directory of the program is closed for others.
        return;
    }
    // bash and dash have different names for the limit.
    let limit_processes = |limit: u32| format!("ulimit -u {limit} 2> /dev/null || ulimit -p {limit}");
    for limit in 1..5 {
        for job in ["a.txt --progress always", "a.txt -o resumed/ --resume", "https://127.0.0.1:1/x"] {
            let (status, message) = run(format!("{}; exec {program} canon {job}", limit_processes(limit)));
            assert!(matches!(status, Some(0 | 2 | 4)), "{limit}: {job}: {status:?} {message}");
            assert!(limit > 1 || status != Some(0), "{job}: there was a thread");
        }
    }
}

/// Limits of the system end jobs with an error and without leftovers.
#[test]
fn limits_of_the_system_are_errors() {
    let place = Place::new();
    let lines: String = (0..30_000).map(|i| format!("HTTP://Example.org/{i}\n")).collect();
    fs::write(place.path("many.txt"), lines).unwrap();
    fs::create_dir(place.path("tmp")).unwrap();
    let redirects: String = (0..3_000)
        .map(|i| {
            let url = format!("http://example.org/{i}");
            format!("k)/ 20260101000000 {{\"url\": \"{url}\", \"status\": \"301\", \"redirect\": \"https://other.org/{i}\"}}\n")
        })
        .collect();
    fs::write(place.path("redirects.cdxj"), redirects).unwrap();
    let jobs = [
        "canon -q :many.txt -o :x.csv",
        "canon -q :many.txt -o :x.csv --sort -uri --tmp :tmp",
        "dedup -q :many.txt -o :x.csv --keep last --tmp :tmp",
        "dedup -q :many.txt -o :x.csv --seen :seen --update-seen",
        "learn -q :redirects.cdxj -o :x.parquet",
    ];
    let jobs = jobs.map(|job| place.words(job).join(" ") + " --threads 8");
    let directories = ["", "tmp", "seen"];
    // Sometimes the C library is the first that finds no memory: it needs some for each thread-local value with a destructor,
    // and aborts the process without it, also when the output is complete.
    let is_abort = |message: &str| message.contains("Fatal glibc error");
    let check = |limit: &str, job: &str| {
        fs::create_dir_all(place.path("seen")).unwrap();
        let (status, message) = limited(limit, job);
        assert!(!directories.iter().any(|directory| place.has_leftovers(directory)), "{limit}: {job}: {message}");
        let is_written = place.path("x.csv").exists() || place.path("x.parquet").exists();
        assert!(status == Some(0) || !is_written || is_abort(&message), "{limit}: {job}: {message}");
        for name in ["x.csv", "x.parquet"] {
            let _ = fs::remove_file(place.path(name));
        }
        fs::remove_dir_all(place.path("seen")).unwrap();
        (status, message)
    };
    let mut limits = [40, 55, 70, 85, 100, 120, 150, 200, 400].map(|mebi| format!("ulimit -v {}", mebi << 10)).to_vec();
    // With less memory, the program cannot be loaded.
    limits.retain(|limit| limited(limit, "--version").0 == Some(0));
    for job in &jobs {
        let (status, message) = check("ulimit -f 40", job);
        assert!(status == Some(5) && message.to_lowercase().contains("file too large"), "{job}: {status:?} {message}");
        // Too few threads (2), too little memory (5), or enough.
        let statuses: Vec<_> = limits.iter().map(|limit| check(limit, job)).collect();
        let is_known = |(status, message): &(Option<i32>, String)| match status {
            Some(status) => matches!(status, 0 | 2 | 5),
            None => is_abort(message),
        };
        assert!(statuses.iter().all(is_known), "{job}: {statuses:?}");
        let has = |is_done| statuses.iter().any(|(status, _)| (*status == Some(0)) == is_done);
        assert!(has(true) && has(false), "{job}: {statuses:?}");
    }
    for job in
        ["canon -q :many.txt", "canon -q :many.txt --sort uri", "dedup -q :many.txt", "dedup -q :many.txt --keep last"]
    {
        place.refused(&format!("{job} -o /dev/full --output-format csv"), 5, "no space left on device");
    }
    place.refused("canon -q :a.txt -o :x.csv --report /dev/full", 5, "the output is complete");
    let job = "dedup -q :a.txt -o :x.csv --seen :seen --update-seen";
    place.refused(&format!("{job} --report /dev/full"), 5, "the output is complete, but its keys are not in the store");
    place.accepted(job);
    place.refused(&format!("{job} --keep last"), 2, "; move the output away, or");
    let job = "dedup -q :a.txt -o :y.csv --seen :store --update-seen --duplicates :z.parquet";
    place.accepted(job);
    place.refused(
        &format!("{job} --keep last"),
        2,
        "; move the output and the tables of --duplicates and --groups away",
    );
    let (status, message) = limited("ulimit -f 1", &place.words("man --out :man").join(" "));
    assert!(status == Some(5) && message.contains("irikey.1: cannot write: file too large"), "{message}");
    assert!(place.names("man").is_empty(), "{:?}", place.names("man"));
}

/// A directory may allow new files only, as a letter box does. An error names the permission that lacks.
#[test]
#[cfg(target_os = "linux")]
fn directories_need_the_permission_to_write_only() {
    use std::os::unix::fs::PermissionsExt;
    let (place, program) = (Place::new(), env!("CARGO_BIN_EXE_irikey"));
    if place.run_as_nobody(&format!("test -x {program}")).0 != Some(0) {
        // The directory of the program is closed for others.
        return;
    }
    for (name, mode) in [("box", 0o333), ("closed", 0o700)] {
        fs::create_dir(place.path(name)).unwrap();
        fs::set_permissions(place.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for output in ["box/x.csv", "box/x.cdx.gz", "y.csv --report box/r.json"] {
        let (status, message) = place.run_as_nobody(&format!("{program} canon -q a.txt -o {output}"));
        assert_eq!((status, message.as_str()), (Some(0), ""), "{output}");
    }
    for output in ["closed/x.csv", "closed/d/x.csv", "y.csv --report closed/d/r.json"] {
        let (status, message) = place.run_as_nobody(&format!("{program} canon -q a.txt -o {output}"));
        assert!(status == Some(5) && message.contains("cannot create: permission denied"), "{output}: {message}");
    }
}

/// A rename would fail at the end of the job.
#[test]
#[cfg(target_os = "linux")]
fn files_that_cannot_be_replaced_are_refused_before_the_job() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let (place, program) = (Place::new(), env!("CARGO_BIN_EXE_irikey"));
    fs::create_dir(place.path("shared")).unwrap();
    fs::set_permissions(place.path("shared"), fs::Permissions::from_mode(0o1777)).unwrap();
    for name in ["shared/x.csv", "x.csv", "x.idx"] {
        fs::write(place.path(name), "old").unwrap();
    }
    let outputs = ["-o OUT", "-o y.csv --report OUT"];
    let is_root = fs::metadata(place.path("shared")).unwrap().uid() == 0;
    if is_root && place.run_as_nobody(&format!("test -x {program}")).0 == Some(0) {
        for output in outputs.map(|output| output.replace("OUT", "shared/x.csv")) {
            let (status, message) = place.run_as_nobody(&format!("{program} canon a.txt {output}"));
            assert!(
                status == Some(5) && message.contains("shared/x.csv: cannot replace: the file belongs"),
                "{message}"
            );
            assert!(!message.contains("records"), "{message}");
        }
        assert_eq!(fs::read(place.path("shared/x.csv")).unwrap(), b"old");
        // With this capability, a process may do what the owner may; without it, root may not.
        let with_capability = |user: &str, sign: &str| {
            let mut command = Command::new("setpriv");
            let sets = ["bounding-set", "inh-caps", "ambient-caps"].map(|set| format!("--{set}={sign}fowner"));
            let sets = if sign == "+" { &sets[1..] } else { &sets[..] };
            let user = [format!("--reuid={user}"), "--regid=0".to_string(), "--clear-groups".to_string()];
            command.args(user).args(sets).args([program, "canon", "-q", "a.txt", "-o", "shared/x.csv"]);
            command.current_dir(place.path("")).output().map(|ran| ran.status.code())
        };
        if let Ok(status) = with_capability("65534", "+") {
            assert_eq!(status, Some(0));
            assert_ne!(fs::read(place.path("shared/x.csv")).unwrap(), b"old");
            for name in ["shared/x.csv", "shared"] {
                std::os::unix::fs::chown(place.path(name), Some(65534), None).unwrap();
            }
            assert_eq!(with_capability("0", "-").unwrap(), Some(5));
        }
    }
    let mounted = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-r", "-m", "sh", "-c", script]).current_dir(place.path("")).stdin(Stdio::null());
        command.output().map(|ran| (ran.status.code(), String::from_utf8_lossy(&ran.stderr).into_owned()))
    };
    if !mounted("mount --bind a.txt x.csv").is_ok_and(|(status, _)| status == Some(0)) {
        // This system lets tests mount nothing.
        return;
    }
    for output in outputs.map(|output| output.replace("OUT", "x.csv")) {
        let script = format!("mount --bind b.txt x.csv && exec {program} canon a.txt {output}");
        let (status, message) = mounted(&script).unwrap();
        assert!(status == Some(5) && message.contains("x.csv: cannot replace: the file is a mount point"), "{message}");
        assert!(!message.contains("records"), "{message}");
    }
    let script = format!("mount --bind b.txt x.idx && exec {program} canon a.txt -o x.cdx.gz");
    assert!(mounted(&script).unwrap().1.contains("x.idx: cannot replace"));
}

/// A job that may open too few files says so, and does not blame the file that it opens.
#[test]
fn a_limit_on_open_files_is_named() {
    let place = Place::new();
    let lines: String = (0..3_000).map(|i| format!("HTTP://Example.org/{i:04}\n")).collect();
    fs::write(place.path("many.txt"), lines).unwrap();
    let jobs = [
        "canon -q :many.txt -o :out --part-rows 200 --sort -uri --row-group-size 4K -j 2",
        "canon -q :many.txt -o :out --part-rows 200 --row-group-size 4K -j 2",
        "canon -q :many.txt -o :x.cdx.gz",
        "canon -q :many.txt -o :out --resume",
        "dedup -q :many.txt -o :x.csv --keep last --tmp :",
        "dedup -q :many.txt -o :x.csv --seen :seen --update-seen",
        "count -q :many.txt --report :x.json",
        "check-sorted -q :many.txt",
    ];
    let mut failed_count = 0;
    for job in jobs {
        let job = place.words(job).join(" ");
        for limit in 4..17 {
            let (status, message) = limited(&format!("ulimit -n {limit}"), &job);
            let is_named = message.contains("too many open files") && message.contains("ulimit -n");
            assert!(status == Some(0) || is_named, "{limit}: {job}: {status:?} {message}");
            assert!(
                !message.contains("choose a writable directory") && !message.contains("check the file"),
                "{message}"
            );
            failed_count += usize::from(is_named);
            for name in ["out", "seen"] {
                let _ = fs::remove_dir_all(place.path(name));
            }
        }
    }
    assert!(failed_count > 20, "only {failed_count} jobs reached the limit");
    // The soft limit is raised to the hard one.
    let (status, message) = limited("ulimit -S -n 8", &place.words(jobs[1]).join(" "));
    assert_eq!(status, Some(0), "{message}");
    let (status, message) = limited("ulimit -n 8", &place.words(jobs[1]).join(" "));
    assert_ne!(status, Some(0), "{message}");
}

/// The file system refuses a name that is too long only when the file gets it, which would be at the end of the job.
#[test]
fn names_that_are_too_long_are_refused_before_the_job() {
    let place = Place::new();
    let (name, directory) = ("x".repeat(256), "d/".repeat(2_048));
    // A job that reads an input would report it.
    for job in [
        "canon @ -o :NAME --output-format csv",
        "canon @ -o :DIRx.csv",
        "canon @ -o :x.csv --report :NAME",
        "canon @ -o :NAME --part-rows 10",
        "canon @ -o :DIRout --sort uri --part-rows 10",
        "dedup @ -o :NAME --output-format csv",
        "dedup @ -o :x.csv --duplicates :NAME.parquet",
        "dedup @ -o :x.csv --groups :NAME.parquet",
        "count @ --report :NAME",
        "learn @ -o :NAME.parquet",
        "extract @ -o :NAME.parquet",
    ] {
        let job = job.replace("NAME", &name).replace("DIR", &directory).replace('@', ":a.txt");
        let (status, message) = place.run(&job);
        assert!(status == Some(5) && message.contains("file name too long; choose a shorter name"), "{job}: {message}");
        assert_eq!(place.names(""), ["a.txt", "b.txt"], "{job}");
        assert!(!message.contains("records"), "{job}: {message}");
    }
    // The name of the index is longer than that of the data.
    let data = "x".repeat(252);
    place.refused(&format!("canon :a.txt -o :{data} --output-format zipnum"), 5, "choose a shorter name");
    assert_eq!(place.names(""), ["a.txt", "b.txt"]);
}

#[test]
fn keyed_files_are_read_beside_what_cannot_be_read() {
    let place = Place::new();
    fs::create_dir(place.path("keyed")).unwrap();
    place.accepted("canon :a.txt -o :keyed/b.parquet");
    let whole = fs::read(place.path("keyed/b.parquet")).unwrap();
    fs::write(place.path("keyed/a.parquet"), &whole[..whole.len() / 2]).unwrap();
    std::os::unix::fs::symlink("nowhere", place.path("keyed/c.parquet")).unwrap();
    let (status, message) = place.run("dedup :keyed -o :x.csv --columns uri");
    assert_eq!(status, Some(4), "{message}");
    assert!(message.contains("c.parquet") && message.contains("cannot open"), "{message}");
    assert!(message.contains("a.parquet") && !message.contains("is not a Parquet file"), "{message}");
    assert_eq!(fs::read_to_string(place.path("x.csv")).unwrap().lines().count(), 201);
    fs::copy(place.path("b.txt"), place.path("keyed/d.txt")).unwrap();
    place.refused("dedup :keyed -o :x.csv --columns uri", 2, "d.txt is not a Parquet file with keys");
    let uris = printed(&["dedup", "-q", &place.path("keyed/b.parquet").display().to_string()], b"");
    assert_eq!(uris.lines().count(), 200);
}
