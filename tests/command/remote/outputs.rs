//! Outputs in stores: the bytes are those of a local file, and an object appears only when it is whole.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::faults::transient;
use super::server::{Fault, Request, Server};
use super::{command_at, irikey_at, stderr};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/samples/crawl.cdxj");

fn empty_server(faults: impl Fn(usize, &Request) -> Fault + Send + Sync + 'static) -> Server {
    Server::start([("/b/other".to_string(), Vec::new())], faults)
}

/// The bytes of a local output of the sample.
fn local_output(server: &Server, name: &str) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    let ran = irikey_at(server, &["canon", "-q", SAMPLE, "-o", path.to_str().unwrap()], &[]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    fs::read(path).unwrap()
}

#[test]
fn objects_have_the_bytes_of_local_outputs() {
    for (seed, name) in ["x.parquet", "x.arrow", "x.csv", "x.jsonl.gz", "x.txt", "x.cdxj"].into_iter().enumerate() {
        // One request, many parts, and many parts of which some fail.
        let servers = [(empty_server(|_, _| Fault::None), "1000000"), (empty_server(|_, _| Fault::None), "5000")];
        for (server, part_size) in servers.into_iter().chain([(empty_server(transient(seed as u64)), "5000")]) {
            let expected = local_output(&server, name);
            let part_size = format!("part_size={part_size}");
            let object = format!("s3://b/out/{name}");
            let flags = ["canon", "-q", SAMPLE, "-o", &object, "--store-option", &part_size];
            let ran = irikey_at(&server, &flags, &[]);
            assert_eq!(ran.status.code(), Some(0), "{name} {part_size}: {}", stderr(&ran));
            assert!(server.object(&format!("/b/out/{name}")) == Some(expected), "{name} {part_size}");
            assert_eq!(server.upload_count(), 0);
        }
    }
}

#[test]
fn inputs_are_not_replaced_under_another_name() {
    let objects = ["x.txt", "list", "p/y.txt"].map(|name| (format!("/b/{name}"), b"http://h/\n".to_vec()));
    let server = Server::start(objects, |_, _| Fault::None);
    for (input, output) in [
        ("s3://b/x.txt", "s3://b/x.txt"),
        ("s3://b/x.txt", "S3://b//x.txt"),
        ("s3://b/x.txt", "s3a://b/x.txt"),
        ("S3A://b/x.txt", "s3://b/x.txt"),
        ("@s3://b/list", "s3a://b/list"),
        ("s3://b/p/y.txt", "s3a://b/p/"),
    ] {
        let ran = irikey_at(&server, &["canon", "-q", input, "-o", output, "--output-format", "parquet"], &[]);
        let message = stderr(&ran);
        assert_eq!(ran.status.code(), Some(2), "{input} {output}: {message}");
        assert!(message.contains("also an input") || message.contains("contains the input"), "{message}");
    }
    assert_eq!(server.paths().len(), 3);
}

#[test]
fn failed_uploads_leave_nothing() {
    for (failing, part_size) in [("PUT", 1_000_000), ("PUT", 5000), ("POST", 5000)] {
        let server = empty_server(move |number, request| match request.method == failing && number > 1 {
            true => Fault::Status(403, "<Error><Code>AccessDenied</Code></Error>"),
            false => Fault::None,
        });
        let part_size = format!("part_size={part_size}");
        let flags = ["canon", "-q", SAMPLE, "-o", "s3://b/x.csv", "--store-option", &part_size];
        // The first requests of other jobs.
        let _ = irikey_at(&server, &["canon", "-q", "s3://b/other", "s3://b/other"], &[]);
        let ran = irikey_at(&server, &flags, &[]);
        let message = stderr(&ran);
        assert_eq!((ran.status.code(), server.object("/b/x.csv")), (Some(5), None), "{failing}: {message}");
        assert!(message.contains("s3://b/x.csv") && message.contains("403 AccessDenied"), "{message}");
        assert_eq!(server.upload_count(), 0);
    }
    let server = empty_server(|_, _| Fault::None);
    let ran = irikey_at(&server, &["canon", "-q", SAMPLE, "-o", "s3://b/"], &[]);
    assert_eq!(ran.status.code(), Some(2), "{}", stderr(&ran));
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/other", "-o", "s3://b/other", "--output-format", "csv"], &[]);
    assert_eq!(ran.status.code(), Some(2), "{}", stderr(&ran));
    assert_eq!(server.paths(), ["/b/other"]);
}

/// They are refused before the job, and the server is not asked for a listing.
#[test]
fn files_on_servers_are_no_outputs() {
    let server = empty_server(|_, _| Fault::None);
    let place = format!("http://{}/b/out", server.address);
    let [file, report, directory] = ["x.csv", "x.json", ""].map(|name| format!("{place}/{name}"));
    let local = tempfile::tempdir().unwrap();
    let written = local.path().join("x.csv").display().to_string();
    let jobs = [
        &["-o", &file][..],
        &["-o", &written, "--report", &report],
        &["-o", &directory],
        &["-o", &place, "--part-rows", "40"],
        &["-o", &place, "--partition", "host:2"],
    ];
    for job in jobs {
        let ran = irikey_at(&server, &[&["canon", "-q", SAMPLE], job].concat(), &[]);
        let message = stderr(&ran);
        assert!(
            ran.status.code() == Some(5) && message.contains("outputs are objects in stores"),
            "{job:?}: {message}"
        );
    }
    assert!(!Path::new(&written).exists() && server.requests().is_empty());
}

/// The names and bytes of the files below a directory.
fn files_of(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<_> = names.map(|name| (name.clone(), fs::read(directory.join(name)).unwrap())).collect();
    files.sort();
    files
}

/// ZipNum is data, index and location: three objects beside each other, or parts with one index.
#[test]
fn zipnum_is_written_with_its_index() {
    let directory = tempfile::tempdir().unwrap();
    let jobs = [("x.cdx.gz", &[][..], 3), ("index", &["--output-format", "zipnum", "--part-rows", "100"], 5)];
    for (name, flags, least_files) in jobs {
        let server = empty_server(transient(21));
        let run = |output: &str| {
            let flags =
                [&["canon", "-q", SAMPLE, "--store-option", "part_size=3000"][..], flags, &["-o", output]].concat();
            irikey_at(&server, &flags, &[])
        };
        let local = directory.path().join(format!("{name}.d"));
        fs::create_dir(&local).unwrap();
        let is_directory = name == "index";
        let output = if is_directory { local.clone() } else { local.join(name) };
        assert_eq!(run(output.to_str().unwrap()).status.code(), Some(0));
        let ran = run(&if is_directory { "s3://b/out/".to_string() } else { format!("s3://b/out/{name}") });
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        let files = files_of(&local);
        assert!(files.len() >= least_files, "{files:?}");
        for (name, bytes) in &files {
            assert!(server.object(&format!("/b/out/{name}")).as_ref() == Some(bytes), "{name}");
        }
        assert_eq!((server.paths().len(), server.upload_count()), (files.len() + 1, 0));
    }
}

/// An old index is cleared before new data is complete, and nothing is left of a new one.
#[test]
fn an_index_is_never_beside_data_of_another_run() {
    for old in [None, Some(b"old".to_vec())] {
        for part_size in ["part_size=1000000", "part_size=3000"] {
            let server = empty_server(|_, request| {
                let completes = request.method == "POST" && request.target.contains("uploadId");
                let writes = completes || request.method == "PUT" && !request.target.contains("partNumber");
                match writes && request.path() == "/b/x.cdx.gz" {
                    true => Fault::Status(403, "<Error><Code>AccessDenied</Code></Error>"),
                    false => Fault::None,
                }
            });
            let names = ["/b/x.cdx.gz", "/b/x.idx", "/b/x.loc"];
            names.iter().for_each(|name| old.iter().for_each(|bytes| server.put(name, bytes)));
            let flags = ["canon", "-q", SAMPLE, "-o", "s3://b/x.cdx.gz", "--store-option", part_size];
            let ran = irikey_at(&server, &flags, &[]);
            let message = stderr(&ran);
            assert!(ran.status.code() == Some(5) && message.contains("s3://b/x.cdx.gz"), "{message}");
            let index = old.as_ref().map(|_| Vec::new());
            assert_eq!(names.map(|name| server.object(name)), [old.clone(), index, old.clone()], "{part_size}");
            assert_eq!(server.upload_count(), 0);
        }
    }
}

/// A signal ends the upload, not only the process.
#[cfg(unix)]
#[test]
fn a_signal_aborts_the_upload() {
    let server = empty_server(|_, _| Fault::None);
    let mut command =
        command_at(&server, &["canon", "-q", "-", "-o", "s3://b/x.txt", "--store-option", "part_size=1000"], &[]);
    let mut job = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = job.stdin.take().unwrap();
    // Rows are written until the upload begins.
    while server.upload_count() == 0 {
        input.write_all(&b"http://example.org/\n".repeat(10_000)).unwrap();
    }
    // SAFETY: kill only sends a signal, to a child that is not reaped yet.
    unsafe { libc::kill(job.id() as i32, libc::SIGTERM) };
    let status = job.wait().unwrap();
    assert!(!status.success());
    assert_eq!((server.upload_count(), server.object("/b/x.txt")), (0, None));
}

#[test]
fn objects_are_not_replaced_if_that_is_forbidden() {
    let server = Server::start([("/b/x.csv".to_string(), b"old".to_vec())], |_, _| Fault::None);
    for part_size in ["part_size=1000000", "part_size=5000"] {
        let flags = ["canon", "-q", SAMPLE, "--no-clobber", "--store-option", part_size, "-o"];
        let ran = irikey_at(&server, &[&flags[..], &["s3://b/x.csv"]].concat(), &[]);
        assert_eq!(
            (ran.status.code(), server.object("/b/x.csv")),
            (Some(2), Some(b"old".to_vec())),
            "{}",
            stderr(&ran)
        );
        let new = format!("s3://b/{part_size}.csv");
        assert_eq!(irikey_at(&server, &[&flags[..], &[&new]].concat(), &[]).status.code(), Some(0));
    }
    assert_eq!(server.paths().len(), 3);
}

/// Another job may write the object after this one has found that it does not exist.
#[cfg(unix)]
#[test]
fn objects_of_other_jobs_are_not_replaced_if_that_is_forbidden() {
    for part_size in ["part_size=1000000", "part_size=1000"] {
        let server = empty_server(|_, _| Fault::None);
        let flags = ["canon", "-q", "-", "--no-clobber", "-o", "s3://b/x.csv", "--store-option", part_size];
        let mut job = command_at(&server, &flags, &[]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // The job reads its input when it has asked for the object.
        let mut input = job.stdin.take().unwrap();
        input.write_all(&b"http://example.org/\n".repeat(100_000)).unwrap();
        server.put("/b/x.csv", b"other");
        drop(input);
        let ran = job.wait_with_output().unwrap();
        let message = stderr(&ran);
        assert_eq!((ran.status.code(), server.object("/b/x.csv")), (Some(5), Some(b"other".to_vec())), "{message}");
        assert!(message.contains("s3://b/x.csv") && message.contains("exists"), "{message}");
    }
}

const PARTS: [&str; 6] = ["canon", "-q", SAMPLE, "--part-rows", "40", "-o"];

/// A job that fails removes its parts. If it must not delete objects, a mark stays, which readers and later jobs report.
#[test]
fn parts_of_a_failed_job_are_not_taken_for_an_output() {
    for may_delete in [true, false] {
        let has_failed = AtomicBool::new(false);
        let server = empty_server(move |_, request| {
            let is_failing = request.path() == "/b/out/part-00001.parquet" && !has_failed.swap(true, Ordering::Relaxed);
            match is_failing || request.method == "DELETE" && !may_delete {
                true => Fault::Status(403, "<Error><Code>AccessDenied</Code></Error>"),
                false => Fault::None,
            }
        });
        let ran = irikey_at(&server, &[&PARTS[..], &["s3://b/out/"]].concat(), &[]);
        assert!(ran.status.code() == Some(5) && stderr(&ran).contains("part-00001"), "{}", stderr(&ran));
        let left = ["/b/other", "/b/out/_incomplete", "/b/out/part-00000.parquet"];
        assert_eq!(server.paths(), left[..if may_delete { 1 } else { 3 }]);
        let again = irikey_at(&server, &[&PARTS[..], &["s3://b/out/"]].concat(), &[]);
        let read = irikey_at(&server, &["count", "-q", "s3://b/out/"], &[]);
        let expected = if may_delete { (Some(0), Some(0)) } else { (Some(5), Some(4)) };
        assert_eq!((again.status.code(), read.status.code()), expected, "{}{}", stderr(&again), stderr(&read));
        for pattern in ["out/p*.parquet", "out/*0.parquet", "o*/part-00000.parquet"] {
            let ran = irikey_at(&server, &["count", "-q", &format!("s3://b/{pattern}")], &[]);
            assert_eq!(ran.status.code(), expected.1, "{pattern}: {}", stderr(&ran));
            assert_eq!(stderr(&ran).contains("not complete"), !may_delete, "{pattern}: {}", stderr(&ran));
        }
        let messages = [stderr(&again), stderr(&read)];
        assert!(may_delete || messages.iter().all(|message| message.contains("not complete")), "{messages:?}");
    }
}

/// An output without rows has a manifest only. It is read as in a directory: as no sources.
#[test]
fn outputs_without_rows_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let local = directory.path().join("out").display().to_string();
    for flags in [&[][..], &["--partition", "host:4"], &["--part-rows", "9"]] {
        let server = empty_server(|_, _| Fault::None);
        let outputs = [local.as_str(), "s3://b/out/"];
        let found = outputs.map(|output| {
            let _ = fs::remove_dir_all(&local);
            let write = ["canon", "-q", "/dev/null", "-o", &format!("{}/", output.trim_end_matches('/'))];
            let written = irikey_at(&server, &[&write[..], flags].concat(), &[]);
            assert_eq!(written.status.code(), Some(0), "{}", stderr(&written));
            let read = irikey_at(&server, &["canon", "-q", output, "--output-format", "csv"], &[]);
            assert_eq!(read.status.code(), Some(0), "{}", stderr(&read));
            String::from_utf8(read.stdout).unwrap()
        });
        assert_eq!(found[0], found[1]);
        assert_eq!(found[1].lines().count(), 1, "{}", found[1]);
        // A manifest that lists parts, which are gone, is of another output.
        assert_eq!(irikey_at(&server, &[&PARTS[..], &["s3://b/parts/"]].concat(), &[]).status.code(), Some(0));
        server.put("/b/x/out/_manifest.json", &server.object("/b/parts/_manifest.json").unwrap());
        server.put("/b/x/_manifest.json", &server.object("/b/out/_manifest.json").unwrap());
        for (place, code) in [("s3://b/out/", 0), ("s3://b/x/", 4), ("s3://b/y/", 4)] {
            let read = irikey_at(&server, &["count", "-q", place], &[]);
            assert_eq!(read.status.code(), Some(code), "{place}: {}", stderr(&read));
        }
    }
}

/// Writers that must not delete objects leave an empty mark, which means nothing.
#[test]
fn complete_parts_have_no_mark() {
    for may_delete in [true, false] {
        let server = empty_server(move |_, request| match request.method == "DELETE" && !may_delete {
            true => Fault::Status(403, "<Error><Code>AccessDenied</Code></Error>"),
            false => Fault::None,
        });
        let ran = irikey_at(&server, &[&PARTS[..], &["s3://b/out/"]].concat(), &[]);
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        assert_eq!(server.object("/b/out/_incomplete"), if may_delete { None } else { Some(Vec::new()) });
        let is_marked = |request: &Request| request.method == "PUT" && request.path() == "/b/out/_incomplete";
        let requests = server.requests();
        let first_write = requests.iter().find(|request| request.method == "PUT").unwrap();
        assert!(is_marked(first_write), "{first_write:?}");
        assert_eq!(irikey_at(&server, &["count", "-q", "s3://b/out/"], &[]).status.code(), Some(0));
    }
}

/// The store writes the object, and the connection breaks before its response arrives: also of repetitions, which find another
/// state.
#[test]
fn objects_are_written_if_only_the_response_is_lost() {
    let jobs = [("part_size=1000000", "PUT", ""), ("part_size=5000", "POST", "uploadId")];
    let responses = [
        ("--no-clobber", 1, Fault::None),
        ("--no-clobber", usize::MAX, Fault::None),
        ("--threads=1", 1, Fault::None),
        ("--threads=1", usize::MAX, Fault::None),
        ("--no-clobber", 1, Fault::UnquotedTag),
    ];
    for (part_size, method, parameter) in jobs {
        for (flag, lost, other) in responses.clone() {
            let state = format!("{part_size} {flag} {lost} {other:?}");
            let count = AtomicUsize::new(0);
            let server = empty_server(move |_, request| {
                let is_last = request.method == method && request.target.contains(parameter);
                let is_lost = is_last && count.fetch_add(1, Ordering::Relaxed) < lost;
                if is_lost { Fault::Lost } else { other.clone() }
            });
            let expected = local_output(&server, "x.csv");
            let flags = ["canon", "-q", SAMPLE, flag, "-o", "s3://b/x.csv", "--store-option", part_size];
            let ran = irikey_at(&server, &[&flags[..], &["--store-option", "retry_timeout=1s"]].concat(), &[]);
            assert_eq!(ran.status.code(), Some(0), "{state}: {}", stderr(&ran));
            assert!(server.object("/b/x.csv") == Some(expected), "{state}");
        }
    }
}

/// Responses are read into memory.
#[test]
fn long_responses_to_requests_that_write_are_refused() {
    const LEN: usize = (1 << 20) + 1;
    let response = |element: &str, content: &str| {
        let xml = format!("<{element}><Bucket>b</Bucket><Key>k</Key>{content}</{element}>");
        &*(xml + &" ".repeat(LEN)).leak()
    };
    let begun = response("InitiateMultipartUploadResult", "<UploadId>upload-1</UploadId>");
    let completed = response("CompleteMultipartUploadResult", "<ETag>x</ETag>");
    for (parameter, page) in [("uploads", begun), ("uploadId", completed)] {
        let server = empty_server(move |_, request| match request.method.as_str() {
            "POST" if request.target.contains(parameter) => Fault::Status(200, page),
            _ => Fault::None,
        });
        let flags = ["canon", "-q", SAMPLE, "-o", "s3://b/x.csv", "--store-option", "part_size=5000"];
        let ran = irikey_at(&server, &flags, &[]);
        let message = stderr(&ran);
        assert!(ran.status.code() == Some(5) && message.contains("more than 1 MiB"), "{parameter}: {message}");
        assert_eq!((server.object("/b/x.csv"), server.upload_count()), (None, 0), "{parameter}");
    }
}

#[test]
fn reports_may_be_objects() {
    let server = empty_server(|_, _| Fault::None);
    let ran = irikey_at(&server, &["canon", "-q", SAMPLE, "-o", "s3://b/x.csv", "--report", "s3://b/x.json"], &[]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let report: serde_json::Value = serde_json::from_slice(&server.object("/b/x.json").unwrap()).unwrap();
    assert_eq!(report["output"]["path"], "s3://b/x.csv", "{report}");
}

#[test]
fn parts_and_manifest_are_objects() {
    let server = empty_server(transient(9));
    let directory = tempfile::tempdir().unwrap();
    let local = directory.path().join("out");
    let run = |output: &str| {
        let flags = ["canon", "-q", SAMPLE, "--part-rows", "40", "--store-option", "part_size=3000", "-o"];
        irikey_at(&server, &[&flags[..], &[output]].concat(), &[])
    };
    assert_eq!(run(local.to_str().unwrap()).status.code(), Some(0));
    let ran = run("s3://b/out/");
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let mut names: Vec<_> =
        fs::read_dir(&local).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() > 3 && names.contains(&"_manifest.json".to_string()), "{names:?}");
    for name in &names {
        let (object, file) =
            (server.object(&format!("/b/out/{name}")), fs::read(Path::new(&local).join(name)).unwrap());
        assert!(object == Some(file), "{name}");
    }
    assert_eq!((server.paths().len(), server.upload_count()), (names.len() + 1, 0));
    // Nothing is written to a directory of that name.
    let here = tempfile::tempdir().unwrap();
    let flags = ["canon", "-q", SAMPLE, "-o", "s3://b/here/", "--part-rows", "40"];
    let ran = command_at(&server, &flags, &[]).current_dir(here.path()).output().unwrap();
    assert_eq!((ran.status.code(), fs::read_dir(here.path()).unwrap().count()), (Some(0), 0), "{}", stderr(&ran));
    // As in a directory on disk, the parts of a finished job are kept.
    let ran = run("s3://b/out/");
    assert!(ran.status.code() == Some(2) && stderr(&ran).contains("contains files already"), "{}", stderr(&ran));
}
