//! Jobs with objects that are resumed: with other versions, after faults, and after the process was killed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::faults::{random, transient};
use super::server::{Fault, Request, Server};
use super::{command_at, irikey_at, stderr};

/// The manifest has the entity tags of objects: one that changed is refused, also if its length is the same.
#[test]
fn jobs_are_resumed_with_objects() {
    let objects = ["a", "b"].map(|name| (format!("/b/{name}.txt"), b"http://one/\n".to_vec()));
    let server = Server::start(objects, |_, _| Fault::None);
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let run = |inputs: &[&str]| {
        let flags = ["canon", "--resume", "--output-format", "csv", "-o", out.to_str().unwrap()];
        irikey_at(&server, &[&flags[..], inputs].concat(), &[])
    };
    let ran = run(&["s3://b/*.txt"]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let manifest = fs::read_to_string(out.join("_manifest.json")).unwrap();
    assert_eq!(manifest.matches("etag:").count(), 2, "{manifest}");
    let ran = run(&["s3://b/*.txt"]);
    assert!(
        ran.status.code() == Some(0) && stderr(&ran).contains("2 inputs finished by an earlier run"),
        "{}",
        stderr(&ran)
    );
    server.change("/b/b.txt");
    let ran = run(&["s3://b/*.txt"]);
    assert!(
        ran.status.code() == Some(4) && stderr(&ran).contains("s3://b/b.txt: the input has changed"),
        "{}",
        stderr(&ran)
    );
}

/// An object without an entity tag counts as changed if its time is another one.
#[test]
fn objects_without_entity_tags_are_known_by_their_times() {
    let has_changed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = has_changed.clone();
    let server = Server::start([("/b/a.txt".to_string(), b"http://one/\n".to_vec())], move |_, _| {
        let has_changed = seen.load(std::sync::atomic::Ordering::Relaxed);
        Fault::Untagged(if has_changed { "Thu, 02 Jan 2025 00:00:00 GMT" } else { "Wed, 01 Jan 2025 00:00:00 GMT" })
    });
    let directory = tempfile::tempdir().unwrap();
    let (out, object) = (directory.path().join("out"), format!("http://{}/b/a.txt", server.address));
    let run = || irikey_at(&server, &["canon", "--resume", "-o", out.to_str().unwrap(), &object], &[]);
    assert_eq!(run().status.code(), Some(0));
    let ran = run();
    let is_resumed = ran.status.code() == Some(0) && stderr(&ran).contains("1 input finished by an earlier run");
    assert!(is_resumed, "{}", stderr(&ran));
    server.change("/b/a.txt");
    has_changed.store(true, std::sync::atomic::Ordering::Relaxed);
    let ran = run();
    let is_refused = ran.status.code() == Some(4) && stderr(&ran).contains("a.txt: the input has changed");
    assert!(is_refused, "{}", stderr(&ran));
}

/// The rows of all parts, in order.
fn rows_of_parts(directory: &Path) -> String {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut parts: Vec<_> = names.filter(|path| path.extension().is_some_and(|suffix| suffix == "txt")).collect();
    parts.sort();
    parts.iter().map(|part| fs::read_to_string(part).unwrap()).collect()
}

/// An object that could not be read is read by the next run; the others are not.
#[test]
fn objects_that_failed_are_read_again() {
    let objects = ["a", "b", "c"].map(|name| (format!("/b/{name}"), format!("http://{name}/\n").into_bytes()));
    let is_down = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let seen = is_down.clone();
    let server = Server::start(objects, move |_, request: &Request| {
        let fails = request.path() == "/b/b" && seen.load(std::sync::atomic::Ordering::Relaxed);
        if fails { Fault::Status(503, "") } else { Fault::None }
    });
    let directory = tempfile::tempdir().unwrap();
    let run = || {
        let out = directory.path().to_str().unwrap();
        let flags = ["canon", "--resume", "--output-format", "text", "--store-option", "retry_timeout=0", "-o", out];
        irikey_at(&server, &[&flags[..], &["s3://b/"]].concat(), &[])
    };
    let ran = run();
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("s3://b/b: "), "{}", stderr(&ran));
    assert_eq!(rows_of_parts(directory.path()), "http://a/\nhttp://c/\n");
    is_down.store(false, std::sync::atomic::Ordering::Relaxed);
    let count = server.requests().len();
    let ran = run();
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert_eq!(rows_of_parts(directory.path()), "http://a/\nhttp://b/\nhttp://c/\n");
    let paths: Vec<String> = server.requests()[count..].iter().map(|request| request.path().to_string()).collect();
    assert_eq!(paths, ["/b", "/b/b"]);
}

/// Two addresses that differ in a secret are two inputs, although both are shown with the same name.
#[test]
fn addresses_with_different_secrets_are_different_inputs() {
    let server = Server::start([("/b/a.txt".to_string(), b"http://one/\n".to_vec())], |_, _| Fault::None);
    let directory = tempfile::tempdir().unwrap();
    let address = |secret: &str| format!("http://{}/b/a.txt?key={secret}", server.address);
    let run = |out: &Path, inputs: &[&String]| {
        let flags =
            ["canon", "--resume", "--output-format", "csv", "--columns", "+source", "-o", out.to_str().unwrap()];
        irikey_at(&server, &[&flags[..], &inputs.iter().map(|input| input.as_str()).collect::<Vec<_>>()].concat(), &[])
    };
    let [out, later] = ["out", "later"].map(|name| directory.path().join(name));
    let (first, second) = (address("secret1"), address("secret2"));
    let ran = run(&out, &[&first, &second]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert_eq!(fs::read_dir(&out).unwrap().count(), 3);
    let manifest = fs::read_to_string(out.join("_manifest.json")).unwrap();
    assert!(manifest.matches("key=REDACTED#").count() == 2 && !manifest.contains("secret"), "{manifest}");
    assert_eq!(run(&later, &[&first]).status.code(), Some(0));
    let ran = run(&later, &[&second]);
    assert!(stderr(&ran).contains("parts of 1 input not named now"), "{}", stderr(&ran));
    let ran = run(&later, &[&second, &first]);
    let message = stderr(&ran);
    assert!(message.contains("2 inputs finished by an earlier run") && !message.contains("secret"), "{message}");
    let ran = run(&later, &[&second, &second]);
    assert!(ran.status.code() == Some(2) && stderr(&ran).contains("named twice"), "{}", stderr(&ran));
}

/// Requests fail, and the process is killed again and again.
#[test]
fn killed_jobs_end_with_the_rows_of_one_run() {
    let text = |number: usize| (0..20).map(|line| format!("http://h{number}/{line}\n")).collect::<String>();
    let objects = (0..40).map(|number| (format!("/b/{number:02}"), text(number).into_bytes()));
    let faults = transient(17);
    let server = Server::start(objects, move |number, request| match faults(number, request) {
        Fault::None => Fault::Delay(Duration::from_millis(2)),
        fault => fault,
    });
    let expected: String = (0..40).map(text).collect();
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    fs::write(&list, (0..40).map(|number| format!("s3://b/{number:02}\n")).collect::<String>()).unwrap();
    let (list, out) = (format!("@{}", list.display()), directory.path().join("out"));
    let flags = ["canon", "-q", "--resume", "--output-format", "text", "-o", out.to_str().unwrap(), &list];
    let mut kill_count = 0;
    for round in 0..8 {
        let mut job = command_at(&server, &flags, &[]).spawn().unwrap();
        let target = server.requests().len() + 10 + (random(5, round) % 60) as usize;
        while server.requests().len() < target && job.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        job.kill().unwrap();
        // The process has no exit code if a signal ended it.
        kill_count += u32::from(job.wait().unwrap().code().is_none());
    }
    assert!(kill_count > 0, "no job was killed before it ended");
    let ran = irikey_at(&server, &flags, &[]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert!(rows_of_parts(&out) == expected);
}
