//! Google Cloud Storage and Azure: reading, listing, writing, and what is not replaced.

use std::fs;
use std::process::Command;

use super::server::{Fault, Server};
use super::{FLAGS, VARIABLES, irikey_at, local, stderr};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data/samples/crawl.cdxj");

/// Without it, writing asks the machine for a token.
const GOOGLE_KEY: &str = r#"{"private_key":"","private_key_id":"","client_email":"","disable_oauth":true}"#;

#[test]
fn google_and_azure_are_read_and_written() {
    for scheme in ["gs", "az"] {
        let objects = [("/b/p/a.txt", "http://a/\n"), ("/b/p/b.txt", "http://b/\n"), ("/b/q.txt", "http://q/\n")];
        let objects = objects.map(|(name, text)| (name.to_string(), text.as_bytes().to_vec()));
        let server = Server::start(objects, |_, _| Fault::None);
        let run = |arguments: &[&str]| {
            let account = ["--store-option", "account_name=account"];
            irikey_at(&server, &[arguments, &account].concat(), &[("GOOGLE_SERVICE_ACCOUNT_KEY", GOOGLE_KEY)])
        };
        let rows = |name: &str| {
            let ran = run(&["canon", "-q", &format!("{scheme}://b/{name}")]);
            (String::from_utf8(ran.stdout.clone()).unwrap(), ran.status.code(), stderr(&ran))
        };
        let done = |text: &str| (text.to_string(), Some(0), String::new());
        assert_eq!(rows("q.txt"), done("http://q/\n"), "{scheme}");
        assert_eq!(rows("p/"), done("http://a/\nhttp://b/\n"), "{scheme}");
        assert_eq!(rows("p/b*"), done("http://b/\n"), "{scheme}");
        let (_, status, message) = rows("missing");
        assert!(status == Some(4) && message.contains("there is no such object"), "{scheme}: {message}");
        // Many parts, and one request.
        let local = run(&["canon", "-q", SAMPLE, "--output-format", "csv"]).stdout;
        assert!(local.len() > 20_000);
        for (name, part_size) in [("parts.csv", "part_size=5000"), ("whole.csv", "part_size=1000000")] {
            let object = format!("{scheme}://b/out/{name}");
            let ran = run(&["canon", "-q", SAMPLE, "--store-option", part_size, "-o", &object]);
            assert_eq!(ran.status.code(), Some(0), "{object}: {}", stderr(&ran));
            assert!(server.object(&format!("/b/out/{name}")).as_ref() == Some(&local), "{object}");
            let ran = run(&["canon", "-q", SAMPLE, "--no-clobber", "-o", &object]);
            assert!(
                ran.status.code() == Some(2) && stderr(&ran).contains("--no-clobber"),
                "{object}: {}",
                stderr(&ran)
            );
        }
        assert_eq!(server.upload_count(), 0);
    }
}

/// Google decompresses an object with `Content-Encoding: gzip`, and then sends no ranges of it, unless the request accepts gzip.
#[test]
fn packed_objects_of_google_are_read_as_they_are_stored() {
    let bytes = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/data/samples/urls.txt.gz")).unwrap();
    let server = Server::start([("/b/p/urls.txt".to_string(), bytes)], |_, _| Fault::Unpacked(b"http://unpacked/\n"));
    let expected = local(&FLAGS, "urls.txt.gz");
    for name in ["gs://b/p/urls.txt", "gs://b/p/"] {
        let ran = irikey_at(&server, &[&FLAGS[..], &[name]].concat(), &[]);
        assert!((&ran.stdout, ran.status.code()) == (&expected.0, expected.1), "{name}: {}", stderr(&ran));
    }
    // A response to another request must not be compressed.
    let accepts = |request: &&super::server::Request| request.header("accept-encoding").is_some();
    assert!(server.requests().iter().filter(accepts).all(|request| request.header("range").is_some()));
}

/// A seen store is copied before it is read, and is not changed.
#[test]
fn seen_keys_may_be_objects() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    fs::write(path("a"), "http://a/\nhttp://b/\n").unwrap();
    fs::write(path("b"), "http://b/\nhttp://c/\n").unwrap();
    let quiet = Server::start([], |_, _| Fault::None);
    let flags = ["dedup", "-q", "--columns", "uri", "--seen", &path("seen"), "--update-seen", &path("a")];
    assert_eq!(irikey_at(&quiet, &flags, &[]).status.code(), Some(0));
    let files = fs::read_dir(path("seen")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> = files.filter(|file| !file.ends_with("lock")).collect();
    assert!(files.len() >= 2, "{files:?}");
    let object = |file: &std::path::PathBuf| {
        (format!("/b/seen/{}", file.file_name().unwrap().display()), fs::read(file).unwrap())
    };
    let server = Server::start(files.iter().map(object), super::faults::transient(3));
    fs::create_dir(path("tmp")).unwrap();
    for name in ["s3://b/seen", "s3://b/seen/"] {
        let flags = ["dedup", "-q", "--columns", "uri", "--seen", name, "--tmp", &path("tmp"), &path("b")];
        let ran = irikey_at(&server, &flags, &[]);
        assert_eq!((&ran.stdout[..], ran.status.code()), (&b"uri\nhttp://c/\n"[..], Some(0)), "{}", stderr(&ran));
    }
    assert_eq!(fs::read_dir(path("tmp")).unwrap().count(), 0);
    let flags = ["dedup", "-q", "--columns", "uri", "--seen", "s3://b/none", &path("b")];
    let ran = irikey_at(&server, &flags, &[]);
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("--seen s3://b/none"), "{}", stderr(&ran));
    // A server is not asked for what it does not have.
    let (place, count) = (format!("http://{}/b/seen", server.address), server.requests().len());
    let ran = irikey_at(&server, &["dedup", "-q", "--seen", &place, "--tmp", &path("tmp"), &path("b")], &[]);
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("HTTP servers have no listings"), "{}", stderr(&ran));
    assert_eq!(server.requests().len(), count);
}

/// Rules, equivalences, suffixes and split points may be objects.
#[test]
fn files_besides_the_inputs_may_be_objects() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    fs::write(path("in.txt"), "http://a.com/\nhttp://b.com/\nhttp://c.com/\n").unwrap();
    let quiet = Server::start([], |_, _| Fault::None);
    let points = b"com,b)/\n".to_vec();
    fs::write(path("points"), &points).unwrap();
    let server = Server::start([("/b/points".to_string(), points)], |_, _| Fault::None);
    let run = |server: &Server, out: &str, points: &str| {
        let partition = format!("surt:{points}");
        let flags =
            ["canon", "-q", &path("in.txt"), "-o", &path(out), "--output-format", "csv", "--partition", &partition];
        irikey_at(server, &flags, &[])
    };
    for (server, out, points) in [(&quiet, "local", path("points")), (&server, "remote", "s3://b/points".to_string())] {
        let ran = run(server, out, &points);
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    }
    for range in ["surt_range=0", "surt_range=1"] {
        let part = |out: &str| fs::read(directory.path().join(out).join(range).join("part-00000.csv")).unwrap();
        assert!(part("local") == part("remote") && part("local").len() > 50, "{range}");
    }
    // Equivalences.
    let redirects = concat!(env!("CARGO_MANIFEST_DIR"), "/data/samples/redirects.cdxj");
    let learned = irikey_at(&quiet, &["learn", "-q", redirects, "-o", &path("eq.parquet")], &[]);
    assert_eq!(learned.status.code(), Some(0), "{}", stderr(&learned));
    let eq_server = Server::start([("/b/eq".to_string(), fs::read(path("eq.parquet")).unwrap())], |_, _| Fault::None);
    let keys = |equivalences: &str| {
        let flags =
            ["canon", "-q", redirects, "--output-format", "csv", "--key", "protocol", "--equivalences", equivalences];
        irikey_at(&eq_server, &flags, &[])
    };
    let (local, remote) = (keys(&path("eq.parquet")), keys("s3://b/eq"));
    assert!(local.stdout == remote.stdout && local.stdout.len() > 500, "{}", stderr(&remote));
    let explain = |equivalences: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
        VARIABLES.iter().for_each(|name| _ = command.env_remove(name));
        command.args(["explain", "http://example.org/d?q=1", "--equivalences", equivalences]).output().unwrap()
    };
    let (local, remote) = (explain(&path("eq.parquet")), explain(&format!("http://{}/b/eq", eq_server.address)));
    assert!(local.stdout == remote.stdout && local.stdout.len() > 500, "{}", stderr(&remote));
    let ran = run(&server, "missing", "s3://b/missing");
    assert!(ran.status.code() == Some(2) && stderr(&ran).contains("no such object"), "{}", stderr(&ran));
}
