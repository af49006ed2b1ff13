//! Outputs destroy neither inputs nor each other, and a job that is refused changes no file.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use arrow::array::{AsArray, RecordBatch};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::{LINES, irikey, printed, read_json};

const REDIRECT: &str =
    r#"org,e)/ 20200101000000 {"url": "http://e.org/", "status": "301", "redirect": "https://e.org/"}"#;

/// A directory with inputs, in which commands run with paths relative to it.
struct Workplace(tempfile::TempDir);

impl Workplace {
    fn new() -> Workplace {
        Workplace::of(tempfile::tempdir().unwrap())
    }

    fn of(directory: tempfile::TempDir) -> Workplace {
        let place = Workplace(directory);
        fs::write(place.path("in.txt"), LINES).unwrap();
        fs::write(place.path("page.html"), "<a href=http://h/>").unwrap();
        fs::write(place.path("redirects.cdxj"), REDIRECT).unwrap();
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Runs the command; words that contain a dot or a slash are paths in the directory.
    fn run(&self, words: &str) -> Output {
        let is_path = |word: &str| word.contains(['.', '/']) && !word.starts_with("/dev/");
        let words = words.split(' ').map(|word| if is_path(word) { self.path(word) } else { word.to_string() });
        let words: Vec<String> = words.collect();
        irikey(&words.iter().map(String::as_str).collect::<Vec<_>>(), LINES, Stdio::piped())
    }

    /// The bytes of all files.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        fn add(directory: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => add(&path, files),
                    false => drop(files.insert(path.display().to_string(), fs::read(&path).unwrap_or_default())),
                }
            }
        }
        let mut files = BTreeMap::new();
        add(self.0.path(), &mut files);
        files
    }

    /// Runs a command that must be refused before it changes a file, and returns its message.
    fn refused(&self, words: &str) -> String {
        let before = self.files();
        let ran = self.run(words);
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{words}: {message}");
        assert!(ran.stdout.is_empty() && before == self.files(), "{words}: a file has changed");
        message
    }

    /// Runs a command that must succeed, and returns its summary.
    fn accepted(&self, words: &str) -> String {
        let ran = self.run(words);
        let message = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(0), "{words}: {message}");
        message
    }
}

#[test]
fn an_output_is_no_input() {
    let place = Workplace::new();
    let message = place.refused("canon in.txt -o in.txt");
    assert!(message.contains("-o") && message.contains("is also an input"), "{message}");
    place.refused("canon ./in.txt -o in.txt");
    place.refused("dedup page.html in.txt -o in.txt");
    place.refused("dedup in.txt --report in.txt");
    place.refused("count in.txt --report in.txt");
    place.refused("count in.txt --report -");
    place.refused("learn redirects.cdxj -o e.parquet --report redirects.cdxj");
    place.refused("extract page.html -o page.html --output-format csv");
    fs::write(place.path("list.txt"), place.path("in.txt")).unwrap();
    let list = format!("@{}", place.path("list.txt"));
    let ran = irikey(&["canon", &list, "-o", &place.path("list.txt")], b"", Stdio::piped());
    assert_eq!(
        (ran.status.code(), fs::read_to_string(place.path("list.txt")).unwrap()),
        (Some(2), place.path("in.txt"))
    );
    // A directory that is read again contains the output of the first job.
    fs::create_dir(place.path("crawl")).unwrap();
    fs::write(place.path("crawl/in.txt"), LINES).unwrap();
    let crawl = place.path("crawl");
    let again = ["canon", &crawl, "-o", &place.path("crawl/out.csv")];
    assert_eq!(irikey(&again, b"", Stdio::null()).status.code(), Some(0));
    assert_eq!(irikey(&again, b"", Stdio::null()).status.code(), Some(2));
    let parts = ["canon", &crawl, "-o", &crawl, "--resume"];
    assert_eq!(irikey(&parts, b"", Stdio::null()).status.code(), Some(2));
}

/// Names of files are any bytes.
#[test]
#[cfg(target_os = "linux")]
fn outputs_have_any_names() {
    use std::os::unix::ffi::OsStrExt;
    let place = Workplace::new();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_irikey"));
    command.args(["dedup", "-q", "in.txt"]).current_dir(place.0.path());
    for (flag, suffix) in [("-o", "csv"), ("--duplicates", "parquet"), ("--groups", "parquet"), ("--report", "json")] {
        let name = [b"\xff\n\x1b", flag.as_bytes(), b".", suffix.as_bytes()].concat();
        command.arg(flag).arg(std::ffi::OsStr::from_bytes(&name));
    }
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let names = fs::read_dir(place.0.path()).unwrap().flatten().map(|entry| entry.file_name());
    let names: Vec<_> = names.filter(|name| name.as_bytes()[0] == 0xFF).collect();
    assert_eq!(names.len(), 4);
    let report = names.iter().find(|name| name.as_bytes().ends_with(b"json")).unwrap();
    let report = read_json(place.0.path().join(report));
    assert_eq!(report["output"]["path"], "bytes:%FF\n\u{1b}-o.csv");
}

/// A report of an earlier job does not remain.
#[test]
#[cfg(unix)]
fn the_report_says_that_the_output_was_closed_early() {
    let place = Workplace::new();
    let urls: String = (0..100_000).map(|i| format!("http://example.org/{i}\n")).collect();
    fs::write(place.path("many.txt"), urls).unwrap();
    for command in ["canon", "canon --sort uri", "dedup"] {
        for report in ["report.json", "report.txt", "report.html"] {
            let job = format!("'{}' {command} -q many.txt -o - --report {report}", env!("CARGO_BIN_EXE_irikey"));
            let script = format!("{{ {job}; echo $? > status; }} | head -n 1");
            let ran =
                std::process::Command::new("sh").args(["-c", &script]).current_dir(place.0.path()).output().unwrap();
            let message = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert_eq!((fs::read_to_string(place.path("status")).unwrap().as_str(), message.as_str()), ("0\n", ""));
            let text = fs::read_to_string(place.path(report)).unwrap();
            let expected = match report {
                "report.json" => "\"output_closed_early\": true",
                _ => "the reader of the output closed it before the end",
            };
            assert!(text.contains(expected) && !text.contains("100000"), "{command}: {text}");
        }
    }
}

#[test]
#[cfg(unix)]
fn an_output_is_no_input_under_another_name() {
    let place = Workplace::new();
    std::os::unix::fs::symlink(place.path("in.txt"), place.path("link.txt")).unwrap();
    fs::hard_link(place.path("in.txt"), place.path("hard.txt")).unwrap();
    std::os::unix::fs::symlink(place.0.path(), place.path("there")).unwrap();
    for name in ["link.txt", "hard.txt", "there/in.txt"] {
        place.refused(&format!("canon in.txt -o {name}"));
        place.refused(&format!("canon {name} -o in.txt"));
        place.refused(&format!("count in.txt --report {name}"));
    }
    // Names of one file that does not exist yet.
    place.refused("canon in.txt -o new.txt --report there/new.txt");
    std::os::unix::fs::symlink("new.txt", place.path("dangling.txt")).unwrap();
    place.refused("canon in.txt -o new.txt --report dangling.txt");
    // Standard input and output as files.
    let file = |name: &str| fs::File::open(place.path(name)).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_irikey"));
    command.args(["canon", "-o", &place.path("in.txt")]).stdin(file("in.txt")).stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(2));
    let append = fs::File::options().append(true).open(place.path("in.txt")).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_irikey"));
    command.args(["canon", &place.path("in.txt")]).stdout(append).stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(2));
    assert_eq!(fs::read(place.path("in.txt")).unwrap(), LINES);
}

/// The list is read before the output is written, and would be lost all the same.
#[test]
#[cfg(unix)]
fn an_output_is_no_list_on_standard_input() {
    let place = Workplace::new();
    let list = place.path("list.txt");
    fs::write(&list, place.path("in.txt")).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_irikey"));
    command.args(["canon", "@-", "-o", &list]).stdin(fs::File::open(&list).unwrap()).stderr(Stdio::null());
    assert_eq!(command.status().unwrap().code(), Some(2));
    assert_eq!(fs::read_to_string(list).unwrap(), place.path("in.txt"));
}

/// The file of an open handle is not replaced: it may contain more, and others may write to it.
#[test]
#[cfg(target_os = "linux")]
fn an_output_to_an_open_handle_is_appended_to_its_file() {
    let place = Workplace::new();
    std::os::unix::fs::symlink("/dev/stdout", place.path("link.txt")).unwrap();
    let link = place.path("link.txt");
    let format = ["--output-format", "text"];
    // A name without the suffix of a format has the format of standard output.
    for (name, format) in [
        ("/dev/stdout", &format[..]),
        ("/dev/stdout", &[]),
        ("/dev/fd/1", &[]),
        ("/proc/self/fd/1", &[]),
        (&link, &format),
    ] {
        let (log, mut errors) = (place.path("log"), fs::File::create(place.path("errors")).unwrap());
        let mut file = fs::File::create(&log).unwrap();
        let both = (file.write_all(b"first\n"), errors.write_all(b"first\n"));
        assert!(both.0.is_ok() && both.1.is_ok());
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_irikey"));
        command.args(["canon", &place.path("in.txt"), "-o", name, "--no-clobber"]);
        command.args(format).args(["-q", "--report", "/dev/stderr"]);
        command.stdout(file.try_clone().unwrap()).stderr(errors.try_clone().unwrap());
        assert_eq!(command.status().unwrap().code(), Some(0), "{name}");
        let both = (file.write_all(b"last\n"), errors.write_all(b"last\n"));
        assert!(both.0.is_ok() && both.1.is_ok());
        let rows = format!("first\n{}last\n", String::from_utf8_lossy(LINES));
        assert_eq!(fs::read_to_string(log).unwrap(), rows, "{name}");
        let errors = fs::read_to_string(place.path("errors")).unwrap();
        assert!(errors.starts_with("first\n{") && errors.ends_with("}\nlast\n"), "{name}: {errors}");
        assert!(errors.contains(r#""replaced": []"#), "{errors}");
    }
}

#[test]
fn outputs_are_different_files() {
    let place = Workplace::new();
    let message = place.refused("dedup in.txt -o x.parquet --duplicates x.parquet");
    assert!(message.contains("-o") && message.contains("--duplicates"), "{message}");
    place.refused("dedup in.txt -o x.parquet --groups ./x.parquet");
    place.refused("dedup in.txt --duplicates x.parquet --groups x.parquet");
    place.refused("dedup in.txt -o x.csv --report x.csv");
    place.refused("canon in.txt -o x.csv --report x.csv");
    place.refused("learn redirects.cdxj -o x.parquet --report x.parquet");
    place.refused("canon in.txt -o x.cdx.gz --report x.idx");
    place.refused("canon in.txt -o x.cdx.gz --report x.loc");
    assert!(place.files().len() == 3);
    // The report is written at the end, but checked before the input is read.
    let ran = place.run("canon in.txt -o x.csv --report missing/x.json");
    assert_eq!((ran.status.code(), place.files().len()), (Some(5), 3));
    let ran = place.run("canon in.txt -o x.csv --report ./");
    assert_eq!((ran.status.code(), place.files().len()), (Some(2), 3));
    // Devices and pipes keep nothing.
    place.accepted("canon in.txt -o /dev/null --output-format csv --report /dev/null");
    place.accepted("canon /dev/null -o /dev/null --output-format csv");
    place.accepted("canon in.txt -o /dev/stdout --output-format csv --no-clobber");
}

#[test]
fn replaced_files_are_reported_or_kept() {
    let place = Workplace::new();
    let run = "canon in.txt -o x.csv --report x.json";
    assert!(!place.accepted(run).contains("replaced"));
    let summary = place.accepted(run);
    for name in ["x.csv", "x.json"] {
        assert!(summary.contains(&format!("replaced {}\n", place.path(name))), "{summary}");
    }
    let report = read_json(place.path("x.json"));
    assert_eq!(report["replaced"], serde_json::json!([place.path("x.csv"), place.path("x.json")]));
    let message = place.refused(&format!("{run} --no-clobber"));
    assert!(message.contains("x.csv") && message.contains("--no-clobber"), "{message}");
    place.accepted("canon in.txt -o new.csv --no-clobber");
    place.refused("canon in.txt -o new.csv --no-clobber");
    place.accepted("learn redirects.cdxj -o e.parquet --no-clobber");
    place.refused("learn redirects.cdxj -o e.parquet --no-clobber");
    assert!(place.accepted("learn redirects.cdxj -o e.parquet").contains("replaced "));
    place.accepted("extract page.html -o links.csv --no-clobber");
    place.refused("extract page.html -o links.csv --no-clobber");
    assert!(place.accepted("extract page.html -o links.csv").contains("replaced "));
    place.refused("count in.txt --report links.csv --no-clobber");
    assert!(place.accepted("count in.txt --report links.csv").contains("replaced "));
    place.refused("dedup in.txt -o y.csv --groups e.parquet --no-clobber");
    // A directory exists if it has parts. Those of a job that was interrupted, or that goes on, are not replaced.
    fs::create_dir(place.path("rows")).unwrap();
    place.accepted("canon in.txt -o rows/ --no-clobber");
    let message = place.refused("canon in.txt -o rows/ --no-clobber");
    assert!(message.contains("rows/: ") && message.contains("--no-clobber"), "{message}");
    place.refused("canon in.txt -o rows/ --part-rows 9 --sort uri --no-clobber");
    assert_eq!(place.run("canon in.txt -o rows/").status.code(), Some(2));
    place.accepted("canon in.txt -o rows/ --hive crawl=A --no-clobber");
    place.accepted("canon in.txt -o rows/ --hive crawl=B --no-clobber");
    place.refused("canon in.txt -o rows/ --hive crawl=B --no-clobber");
    fs::write(place.path("rows/crawl=B/_incomplete"), "interrupted").unwrap();
    place.accepted("canon in.txt -o rows/ --hive crawl=B --no-clobber");
    for flags in ["--no-clobber", "--no-clobber --sort uri"] {
        place.accepted(&format!("canon in.txt -o resumed/{} --resume {flags}", flags.len()));
        place.accepted(&format!("canon in.txt -o resumed/{} --resume {flags}", flags.len()));
    }
    assert_eq!(printed(&["canon", "-q", &place.path("in.txt")], b""), String::from_utf8_lossy(LINES));
}

/// Memory is a file system below `/dev`, whose other names are devices and handles.
#[test]
#[cfg(target_os = "linux")]
fn files_in_memory_are_reported_or_kept() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else { return };
    let place = Workplace::of(directory);
    place.accepted("canon in.txt -o x.csv");
    assert!(place.accepted("canon in.txt -o x.csv").contains(&format!("replaced {}\n", place.path("x.csv"))));
    place.refused("canon in.txt -o x.csv --no-clobber");
}

/// A reader of a pipe sees the end of the report once, when it is written: checking whether it can be written ends nothing.
#[test]
#[cfg(unix)]
fn a_report_may_be_a_pipe() {
    let place = Workplace::new();
    let pipe = place.path("report");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    let ran =
        irikey(&["canon", &place.path("in.txt"), "-o", &place.path("x.csv"), "--report", &pipe], b"", Stdio::null());
    assert_eq!(ran.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&reader.join().unwrap()).unwrap();
    assert_eq!(report["replaced"], serde_json::json!([]));
}

#[test]
fn a_job_that_cannot_begin_replaces_nothing() {
    let place = Workplace::new();
    place.accepted("canon in.txt -o table.parquet");
    place.accepted("dedup in.txt -o first.csv --seen store.d --update-seen");
    fs::write(place.path("bad.html.gz"), b"\x1f\x8b\x08damaged").unwrap();
    fs::write(place.path("bad.parquet"), &fs::read(place.path("table.parquet")).unwrap()[..100]).unwrap();
    for name in ["good.csv", "good.parquet"] {
        fs::write(place.path(name), b"good").unwrap();
    }
    let before = place.files();
    let outputs = ["-o good.csv", "-o good.csv --sort uri", "-o new.csv", "-o new.d/ --part-rows 9"];
    let jobs =
        ["dedup :in -o good.csv --groups good.parquet --seen store.d --update-seen", "learn :in -o good.parquet"];
    let jobs = outputs.map(|output| format!("canon :in {output}")).into_iter().chain(jobs.map(str::to_string));
    let jobs = jobs.flat_map(|job| {
        let with_input = |input| job.replace(":in", input);
        [(with_input("table.parquet --column nope"), 2), (with_input("bad.parquet"), 4)]
    });
    let others = [
        "extract bad.html.gz -o good.csv",
        "canon in.txt missing.txt gone.txt -o good.csv",
        "dedup missing.txt in.txt -o good.csv --seen store2.d --update-seen",
    ];
    for (words, code) in jobs.chain(others.map(|words| (words.to_string(), 4))) {
        let ran = place.run(&words);
        assert_eq!(ran.status.code(), Some(code), "{words}: {}", String::from_utf8_lossy(&ran.stderr));
        assert!(place.files() == before, "{words}: a file has changed");
    }
    let message = String::from_utf8(place.run("canon in.txt missing.txt gone.txt").stderr).unwrap();
    assert!(message.contains("missing.txt: cannot open") && message.contains("gone.txt: cannot open"), "{message}");
    // What can be read is written, also if it is nothing.
    fs::write(place.path("empty.txt"), b"").unwrap();
    place.accepted("canon empty.txt -o good.csv");
    assert!(before != place.files());
    let ran = place.run("canon bad.html.gz in.txt -o partial.txt");
    assert_eq!((ran.status.code(), fs::read(place.path("partial.txt")).unwrap()), (Some(4), LINES.to_vec()));
}

#[test]
fn a_directory_of_parts_is_an_input() {
    let place = Workplace::new();
    place.accepted("canon in.txt -o parts/ --part-rows 1");
    assert!(Path::new(&place.path("parts/_manifest.json")).exists());
    assert_eq!(printed(&["canon", "-q", &place.path("parts"), "--column", "uri"], b""), String::from_utf8_lossy(LINES));
}

#[test]
#[cfg(unix)]
fn directories_report_what_they_cannot_read() {
    let place = Workplace::new();
    fs::create_dir(place.path("crawl")).unwrap();
    fs::write(place.path("crawl/b.txt"), LINES).unwrap();
    std::os::unix::fs::symlink("nowhere", place.path("crawl/a.txt")).unwrap();
    let pipe = place.path("crawl/c.txt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let report = place.path("report.json");
    let ran = irikey(&["canon", &place.path("crawl"), "--report", &report], b"", Stdio::piped());
    assert_eq!((ran.status.code(), ran.stdout.as_slice()), (Some(4), LINES));
    let message = String::from_utf8(ran.stderr).unwrap();
    assert!(message.contains("a.txt: cannot open"), "{message}");
    assert!(message.contains("c.txt: not a regular file"), "{message}");
    let report = read_json(report);
    assert_eq!(report["errors"].as_array().unwrap().len(), 2);
    let extracted = irikey(&["extract", &place.path("crawl")], b"", Stdio::null());
    assert_eq!(extracted.status.code(), Some(4));
    // Named by itself, a link without a target is refused before the job begins.
    let named = irikey(&["canon", &place.path("crawl/a.txt"), &place.path("in.txt")], b"", Stdio::piped());
    assert_eq!((named.status.code(), named.stdout.is_empty()), (Some(4), true));
}

/// The lines of a file whose rows are encoded slice by slice: slices have 1 MiB.
fn lines_of_slices() -> Vec<String> {
    let line =
        |i: usize| format!("http{}://h{}.example/{}\n", ["", "s", ":"][i % 3], i % 97, "a/./b%7e".repeat(i % 11));
    (0..80_000).map(line).collect()
}

/// The number of rows of each row group of a Parquet file, and all its URIs.
fn row_groups(path: &str) -> (Vec<usize>, Vec<Option<String>>) {
    let file = ParquetRecordBatchReaderBuilder::try_new(fs::File::open(path).unwrap()).unwrap();
    let groups = file.metadata().row_groups().iter().map(|group| group.num_rows() as usize).collect();
    let uris = |batch: RecordBatch| {
        let uris = batch["uri"].as_string::<i32>();
        uris.iter().map(|uri| uri.map(str::to_string)).collect::<Vec<_>>()
    };
    (groups, file.build().unwrap().flat_map(|batch| uris(batch.unwrap())).collect())
}

#[test]
fn row_groups_that_threads_share_are_those_of_one_thread() {
    let (place, lines) = (Workplace::new(), lines_of_slices());
    fs::write(place.path("in.txt"), lines.concat()).unwrap();
    place.accepted("canon in.txt -o expected.txt -q");
    let expected = fs::read_to_string(place.path("expected.txt")).unwrap();
    let expected: Vec<_> = expected.lines().map(|uri| Some(uri.to_string()).filter(|uri| !uri.is_empty())).collect();
    // The lines that begin in each range of 2500 KiB.
    let mut begun = vec![0; lines.concat().len().div_ceil(2500 << 10)];
    lines.iter().fold(0, |at, line| {
        begun[at / (2500 << 10)] += 1;
        at + line.len()
    });
    for compression in ["none", "snappy", "zstd"] {
        let write = |threads: usize| {
            let flags =
                format!("-o {threads}.parquet --threads {threads} --row-group-size 2500K --compression {compression}");
            place.accepted(&format!("canon in.txt -q --columns +url_host_name,+record_offset {flags}"));
            fs::read(place.path(&format!("{threads}.parquet"))).unwrap()
        };
        assert!(write(1) == write(5), "{compression}");
        let (groups, uris) = row_groups(&place.path("5.parquet"));
        assert_eq!(groups, begun, "{compression}");
        assert!(uris == expected, "{compression}");
    }
}

#[test]
fn files_of_many_rows_end_within_slices() {
    let (place, lines) = (Workplace::new(), lines_of_slices());
    fs::write(place.path("in.txt"), lines.concat()).unwrap();
    place.accepted("canon in.txt -q -o all.parquet");
    let all = row_groups(&place.path("all.parquet")).1;
    for threads in [1, 4] {
        let directory = place.path(&format!("./parts{threads}"));
        place.accepted(&format!("canon in.txt -q -o ./parts{threads} --part-rows 30000 --threads {threads}"));
        let files = ["00000", "00001", "00002"].map(|part| row_groups(&format!("{directory}/part-{part}.parquet")).1);
        assert_eq!(files.each_ref().map(Vec::len), [30_000, 30_000, 20_000]);
        assert!(files.concat() == all);
    }
}

/// A slice of 1 MiB has several files here, the last of which ends with the slice.
#[test]
fn files_end_with_slices_of_several_files() {
    let place = Workplace::new();
    let lines: String = (0..70_000).map(|i| format!("http://example.org/{i:012}\n")).collect();
    fs::write(place.path("in.txt"), lines).unwrap();
    place.accepted("canon in.txt -q -o parts/ --part-rows 16384");
    let rows = |part: usize| row_groups(&place.path(&format!("parts/part-{part:05}.parquet"))).0.iter().sum();
    let found: Vec<usize> = (0..5).map(rows).collect();
    assert_eq!(found, [16_384, 16_384, 16_384, 16_384, 4_464]);
}

#[test]
fn parts_have_the_rows_that_were_requested() {
    let place = Workplace::new();
    let lines: String = (0..2500).map(|i| format!("http://h/{i}\nhttp://h/{i}/{}\n", "x".repeat(i % 90))).collect();
    fs::write(place.path("many.txt"), &lines).unwrap();
    for (suffix, rows, row_groups) in
        [("parquet", 1000, "8M"), ("csv", 999, "20K"), ("text", 1, "1M"), ("arrow", 77, "3K")]
    {
        let (out, input) = (place.path(&format!("{suffix}.d")), place.path("many.txt"));
        let limit = if rows == 1 { "40" } else { "5000" };
        let count = if rows == 1 { 40 } else { 5000 };
        let flags = ["canon", "-q", &input, "-o", &out, "--output-format", suffix, "--row-group-size", row_groups];
        printed(&[&flags[..], &["--part-rows", &rows.to_string(), "--limit", limit]].concat(), b"");
        let manifest = read_json(format!("{out}/_manifest.json"));
        let parts: Vec<u64> =
            manifest["parts"].as_array().unwrap().iter().map(|part| part["rows"].as_u64().unwrap()).collect();
        assert_eq!(parts.len(), usize::div_ceil(count, rows), "{suffix}");
        assert!(parts[..parts.len() - 1].iter().all(|part| *part == rows as u64), "{suffix}: {parts:?}");
        let column: &[&str] = if suffix == "text" { &[] } else { &["--column", "uri"] };
        let again = printed(&[&["canon", "-q", &out][..], column].concat(), b"");
        assert!(again.lines().eq(lines.lines().take(count)), "{suffix}");
    }
}

#[test]
fn a_store_is_updated_without_an_output() {
    let place = Workplace::new();
    place.accepted("dedup in.txt -o /dev/null --seen store.d --update-seen");
    assert!(place.accepted("dedup in.txt -o /dev/null --seen store.d").contains("seen before"));
    place.accepted("canon in.txt -o /dev/null");
    place.accepted("extract page.html -o /dev/null");
}

#[test]
fn destinations_and_temporary_directories_are_checked_first() {
    let place = Workplace::new();
    fs::create_dir(place.path("out")).unwrap();
    for command in ["canon", "dedup"] {
        let message = place.refused(&format!("{command} in.txt -o ./out"));
        assert!(message.contains("-o names a directory") && message.contains("add a /"), "{message}");
    }
    assert!(place.refused("dedup in.txt --part-rows 9").contains("--part-rows and --hive write files; name"));
    let message = place.refused("canon in.txt --columns uri,key --output-format text");
    assert!(message.contains("--output-format csv") && message.contains("remove --columns"), "{message}");
    for command in ["canon in.txt --sort uri -o x.csv", "canon in.txt", "dedup in.txt", "count in.txt"] {
        let message = place.refused(&format!("{command} --tmp ./missing"));
        assert!(message.contains("--tmp") && message.contains("name a writable directory"), "{message}");
        place.refused(&format!("{command} --tmp in.txt"));
        place.accepted(&format!("{command} --tmp ./out --memory 1500MB"));
    }
}

/// People read advice in reports, because standard error of a scheduled job is not kept.
#[test]
fn reports_contain_advice() {
    let place = Workplace::new();
    fs::write(place.path("relative.txt"), "/a\n/b\n").unwrap();
    for suffix in ["html", "txt", "json"] {
        for job in ["canon relative.txt -o x.csv", "count relative.txt"] {
            let report = format!("x.{suffix}");
            place.accepted(&format!("{job} --report {report}"));
            let report = fs::read_to_string(place.path(&report)).unwrap();
            assert!(report.contains("--base-column"), "{job} {suffix}: {report}");
        }
    }
}

#[test]
fn reports_state_that_there_is_no_output() {
    let place = Workplace::new();
    fs::write(place.path("damaged.gz"), &super::gzip(LINES)[..20]).unwrap();
    for (report, expected) in [("x.json", "\"output\": null"), ("x.html", "Records before an error were processed")] {
        let ran = place.run(&format!("canon damaged.gz -o x.csv --report {report}"));
        assert_eq!(ran.status.code(), Some(4));
        let report = fs::read_to_string(place.path(report)).unwrap();
        assert!(report.contains(expected) && !report.contains("standard output"), "{report}");
    }
    let full = place.run("canon damaged.gz -o x.csv --report /dev/full");
    let message = String::from_utf8(full.stderr).unwrap();
    assert!(message.contains("there is no output") && !message.contains("output is complete"), "{message}");
}

#[test]
fn spaces_may_follow_the_commas_of_lists() {
    let rows = |columns: &str, keys: &str| {
        printed(&["canon", "-q", "--output-format", "csv", "--columns", columns, "--key", keys], LINES)
    };
    assert_eq!(rows("uri,record", "simple,surt-ia"), rows("uri, record", " simple, surt-ia"));
}

/// What canonicalization changed is known only of records, not of rows that have keys.
#[test]
fn changes_of_files_with_keys_are_unknown() {
    let place = Workplace::new();
    place.accepted("canon in.txt --columns uri,key -o rows.parquet");
    let summary = place.accepted("dedup rows.parquet -o x.parquet --report x.json");
    assert!(!summary.contains("changed") && summary.contains("faulty"), "{summary}");
    let report = read_json(place.path("x.json"));
    assert!(["unchanged", "changed", "changes", "flags"].iter().all(|member| report[*member].is_null()), "{report}");
    let of_records = place.accepted("dedup in.txt -o x.parquet --report x.json");
    assert!(of_records.contains("unchanged") && read_json(place.path("x.json"))["changed"].is_u64());
}
