//! How many requests are made, and how many at a time.

use std::fs;
use std::time::Duration;

use super::server::{Fault, Server};
use super::{dedup_listed, irikey_at, long_urls, stderr};

/// Every response comes so much later, milliseconds.
fn slow(milliseconds: u64) -> impl Fn(usize, &super::server::Request) -> Fault + Send + Sync + 'static {
    move |_, _| Fault::Delay(Duration::from_millis(milliseconds))
}

/// Short objects take one request each, and these overlap.
#[test]
fn short_objects_are_requested_ahead() {
    let expected: String = (0..200).map(|number| format!("http://h/{number:03}\n")).collect();
    let objects = || (0..200).map(|number| (format!("/b/{number:03}"), format!("http://h/{number:03}\n").into_bytes()));
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("list");
    fs::write(&list, (0..200).map(|number| format!("s3://b/{number:03}\n")).collect::<String>()).unwrap();
    for (name, request_count) in [("s3://b/".to_string(), 201), (format!("@{}", list.display()), 200)] {
        for threads in ["1", "2"] {
            let server = Server::start(objects(), slow(10));
            let ran = irikey_at(&server, &["canon", "-q", "-j", threads, &name], &[]);
            assert_eq!(
                (String::from_utf8(ran.stdout.clone()).unwrap(), ran.status.code()),
                (expected.clone(), Some(0))
            );
            assert_eq!(server.requests().len(), request_count, "{name}");
            assert!((16..=70).contains(&server.most_at_a_time()), "{}", server.most_at_a_time());
        }
    }
}

/// The beginnings of sources take memory, which is limited: fewer are requested at a time.
#[test]
fn memory_limits_the_requests() {
    let text = "http://h/\n".repeat(60_000);
    let objects = (0..20).map(|number| (format!("/b/{number:02}"), text.clone().into_bytes()));
    let server = Server::start(objects, slow(10));
    let flags = ["--store-option", "block_size=1048576", "--memory", "64M", "--row-group-size", "1M", "-j", "1"];
    let ran = irikey_at(&server, &[&["dedup", "-q", "--columns", "record", "s3://b/"][..], &flags].concat(), &[]);
    assert_eq!((&ran.stdout[..], ran.status.code()), (&b"record\n1\n"[..], Some(0)), "{}", stderr(&ran));
    // An eighth of 64 MiB; half of it for objects of 600 KB.
    assert!((2..=9).contains(&server.most_at_a_time()), "{}", server.most_at_a_time());
}

/// Of a table, its first bytes, its end, and each row group are requested once; row groups at the same time.
#[test]
fn row_groups_are_requested_once_and_ahead() {
    let directory = tempfile::tempdir().unwrap();
    // Two units of 8 MiB in one row group, or many row groups.
    for (lines, row_group_size, groups) in [(3200, "64M", 1), (1200, "600K", 8)] {
        let (text, bytes) = long_urls(lines, &["--row-group-size", row_group_size, "--columns", "uri"]);
        for threads in ["1", "2"] {
            let server = Server::start([("/b/x.parquet".to_string(), bytes.clone())], slow(100));
            let report = directory.path().join("report.json");
            let flags = ["canon", "-q", "-j", threads, "s3://b/x.parquet", "--report", report.to_str().unwrap()];
            let ran = irikey_at(&server, &flags, &[]);
            assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
            assert!(ran.stdout == text);
            let report = crate::read_json(&report);
            let received = report["transfer"]["received_bytes"].as_u64().unwrap();
            assert!(received < bytes.len() as u64 + (600 << 10), "{received} of {}", bytes.len());
            assert_eq!(report["transfer"]["requests"], server.requests().len());
            assert!(server.most_at_a_time() >= groups.min(4), "{}", server.most_at_a_time());
        }
    }
}

/// Nothing after a column chunk is requested to read the header of its last page.
#[test]
fn row_groups_with_keys_are_requested_once() {
    let (_, bytes) = long_urls(1200, &["--row-group-size", "600K"]);
    let server = Server::start([("/b/x.parquet".to_string(), bytes)], |_, _| Fault::None);
    let ran = dedup_listed(&server, "s3://b/x.parquet", &["-j", "1"]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let requests = server.requests();
    let ranges: Vec<_> = requests.iter().filter_map(|request| request.header("range")).collect();
    assert_eq!(ranges.iter().collect::<std::collections::BTreeSet<_>>().len(), ranges.len(), "{ranges:?}");
    assert!(ranges.len() < 30, "{ranges:?}");
}

/// The pages of a column chunk that is requested in several parts reach over their borders.
#[test]
fn long_column_chunks_give_the_same_rows() {
    let flags = ["--row-group-size", "64M", "--columns", "uri", "--compression", "none"];
    let (text, bytes) = long_urls(4500, &flags);
    assert!(bytes.len() > 17 << 20);
    for threads in ["1", "2"] {
        let server = Server::start([("/b/x.parquet".to_string(), bytes.clone())], |_, _| Fault::None);
        let ran = irikey_at(&server, &["canon", "-q", "-j", threads, "s3://b/x.parquet"], &[]);
        assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
        assert!(ran.stdout == text);
        // The beginning in blocks of 4 KiB, the end, and the three parts of the chunk.
        assert!(server.requests().len() <= 8, "{}", server.requests().len());
    }
}

/// The report for people has the figures of the report for programs.
#[test]
fn reports_tell_what_was_transferred() {
    let fails = |number, _: &super::server::Request| if number == 1 { Fault::Status(503, "") } else { Fault::None };
    let server = Server::start([("/b/x".to_string(), b"http://a/\n".to_vec())], fails);
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("x.html");
    let ran = irikey_at(&server, &["canon", "s3://b/x", "--report", page.to_str().unwrap()], &[]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    let message = stderr(&ran);
    assert!(message.contains("by 3 requests, 1 of which failed and were repeated"), "{message}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Received") && page.contains("by 3 requests, 1 failed"), "{page}");
}

/// Small tables take two requests.
#[test]
fn short_tables_are_read_with_their_end() {
    let server = Server::start([("/b/x.parquet".to_string(), super::sample("crawl.parquet"))], |_, _| Fault::None);
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/x.parquet", "--store-option", "block_size=1000000"], &[]);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    // One asks for the version, because the command line names the object.
    assert_eq!(server.requests().len(), 3);
}

/// The address of a file may contain a signature, which another host must not see.
#[test]
fn redirects_do_not_tell_the_next_host_the_address() {
    let file = ("/b/x".to_string(), b"http://a/\n".to_vec());
    for flag in [&["--store-option", "user_agent=other/1"][..], &[]] {
        let last = Server::start([file.clone()], |_, _| Fault::None);
        let address = format!("http://{}/b/x", last.address.replace("127.0.0.1", "localhost"));
        let first = Server::start([], move |_, _| Fault::Redirect(address.clone()));
        let name = format!("http://user:secret@{}/b/x?sig=secret", first.address);
        let ran = irikey_at(&first, &[&["canon", "-q", &name], flag].concat(), &[]);
        assert_eq!((&ran.stdout[..], ran.status.code()), (&b"http://a/\n"[..], Some(0)), "{}", stderr(&ran));
        assert!(first.requests().iter().all(|request| request.header("authorization").is_some()));
        let agent = if flag.is_empty() { concat!("irikey/", env!("CARGO_PKG_VERSION")) } else { "other/1" };
        for request in last.requests() {
            assert!(!format!("{request:?}").contains("secret"), "{request:?}");
            assert_eq!((request.header("referer"), request.header("user-agent")), (None, Some(agent)));
        }
    }
}

#[test]
fn requests_are_sent_to_the_proxy() {
    let proxy = Server::start([], |_, _| Fault::Status(200, "http://a/\n"));
    let url = format!("http://{}", proxy.address);
    let option = format!("proxy_url={url}");
    for (flags, variables) in [(&["--store-option", &option][..], &[][..]), (&[], &[("http_proxy", &url[..])])] {
        let ran = irikey_at(&proxy, &[&["canon", "-q", "http://h.invalid/x"], flags].concat(), variables);
        assert_eq!((&ran.stdout[..], ran.status.code()), (&b"http://a/\n"[..], Some(0)), "{}", stderr(&ran));
    }
    assert!(proxy.requests().iter().all(|request| request.target == "http://h.invalid/x"));
    // A host that no proxy is used for.
    let flags = ["--store-option", &option, "--store-option", "proxy_excludes=h.invalid"];
    let ran = irikey_at(&proxy, &[&["canon", "-q", "http://h.invalid/x"], &flags[..]].concat(), &[]);
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("cannot connect"), "{}", stderr(&ran));
}
