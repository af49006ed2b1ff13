//! Requests that fail: the output is that of the local file, or the source is named with exit code 4.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::server::{Fault, Request, Server};
use super::{FLAGS, command_at, dedup_listed, irikey_at, local, long_urls, sample, stderr};

/// A number that depends on `seed` and `number` in no simple way.
pub fn random(seed: u64, number: usize) -> u64 {
    let mut value = seed.wrapping_add(number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    value ^= value >> 29;
    value.wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32
}

/// Every third request fails in one of the ways after which it is repeated.
pub fn transient(seed: u64) -> impl Fn(usize, &Request) -> Fault + Send + Sync + 'static {
    move |number, request| match random(seed, number) % 21 {
        // What the server has done must not be asked for again.
        4 | 5 if request.method == "POST" => Fault::Drop,
        0 => Fault::Status(503, "<Error><Code>SlowDown</Code></Error>"),
        1 => Fault::Status(429, ""),
        2 => Fault::Status(500, "<Error><Code>InternalError</Code></Error>"),
        3 => Fault::Drop,
        4 => Fault::Truncate(0),
        5 => Fault::Truncate(1000),
        6 => Fault::Delay(Duration::from_millis(3)),
        _ => Fault::None,
    }
}

#[test]
fn failed_requests_are_repeated_and_continue_at_the_byte() {
    for (seed, name) in
        ["crawl.warc.gz", "crawl.cdxj", "urls.txt.gz", "crawl.parquet", "crawl.arrow"].iter().enumerate()
    {
        let expected = local(&FLAGS, name);
        let server = Server::start([(format!("/b/{name}"), sample(name))], transient(seed as u64));
        for place in ["s3://b".to_string(), format!("http://{}/b", server.address)] {
            let ran = irikey_at(&server, &[&FLAGS[..], &[&format!("{place}/{name}")]].concat(), &[]);
            assert!((&ran.stdout, ran.status.code()) == (&expected.0, expected.1), "{name}: {}", stderr(&ran));
        }
    }
}

/// Some servers take the range of the first byte for the whole object, or respond for an empty object with a range that does not
/// exist.
#[test]
fn servers_may_respond_with_a_wrong_range() {
    let names = ["crawl.cdxj", "urls.txt.gz", "crawl.parquet"];
    let mut objects: Vec<_> = names.iter().map(|name| (format!("/b/{name}"), sample(name))).collect();
    objects.extend([("/b/empty.txt".to_string(), Vec::new()), ("/b/one.txt".to_string(), b"h".to_vec())]);
    let server = Server::start(objects, |_, _| Fault::WrongRange);
    for place in ["s3://b".to_string(), format!("HTTP://{}/b", server.address)] {
        for name in names {
            let expected = local(&FLAGS, name);
            let ran = irikey_at(&server, &[&FLAGS[..], &[&format!("{place}/{name}")]].concat(), &[]);
            assert!((&ran.stdout, ran.status.code()) == (&expected.0, expected.1), "{name}: {}", stderr(&ran));
        }
        let short = ["empty.txt", "one.txt"].map(|name| format!("{place}/{name}"));
        let ran = irikey_at(&server, &[&FLAGS[..], &[&short[0], &short[1]]].concat(), &[]);
        let rows = String::from_utf8(ran.stdout.clone()).unwrap();
        assert!(ran.status.success() && rows.lines().count() == 1 && rows.contains("\"relative\""), "{}", stderr(&ran));
    }
}

/// Objects whose length is known from their server, and objects that a list names, which are requested when they are read.
#[test]
fn empty_objects_with_the_name_of_a_compression_are_cut_short() {
    let server = Server::start([("/b/empty.cdxj.gz".to_string(), Vec::new())], |_, _| Fault::None);
    let (directory, web) = (tempfile::tempdir().unwrap(), format!("http://{}/b/empty.cdxj.gz", server.address));
    let list = directory.path().join("list");
    for url in ["s3://b/empty.cdxj.gz", &web, &format!("{web}?version=2")] {
        std::fs::write(&list, format!("{url}\n")).unwrap();
        for input in [url, &format!("@{}", list.display())] {
            let ran = irikey_at(&server, &["canon", "-q", input], &[]);
            let is_named = stderr(&ran).contains("the gzip data ends early");
            assert!(ran.status.code() == Some(4) && is_named, "{input}: {}", stderr(&ran));
        }
    }
}

/// A text, and the same in gzip members: at least two sections of 256 KiB for each of two threads.
pub fn long_gzip_file() -> (Vec<u8>, Vec<u8>) {
    let lines = (0..120_000).map(|line| format!("http://h/{:08x}{:08x}\n", random(1, line), random(2, line)));
    let directory = tempfile::tempdir().unwrap();
    let (text, packed) = (directory.path().join("x.txt"), directory.path().join("x.txt.gz"));
    let text_bytes = lines.collect::<String>().into_bytes();
    std::fs::write(&text, &text_bytes).unwrap();
    let quiet = Server::start([], |_, _| Fault::None);
    let flags = ["canon", "-q", text.to_str().unwrap(), "-o", packed.to_str().unwrap(), "--row-group-size", "60000"];
    assert_eq!(irikey_at(&quiet, &flags, &[]).status.code(), Some(0));
    let packed = std::fs::read(packed).unwrap();
    assert!(packed.len() > 3 << 18, "{}", packed.len());
    (text_bytes, packed)
}

/// Members that several threads decompress, and requests that fail on the way.
#[test]
fn long_gzip_files_give_the_same_rows() {
    let (text_bytes, packed) = long_gzip_file();
    for (len, block_size) in [(packed.len(), "block_size=100000"), (packed.len() - 9, "block_size=300000")] {
        let server = Server::start([("/b/x.txt.gz".to_string(), packed[..len].to_vec())], transient(3));
        let ran = irikey_at(&server, &["canon", "-q", "-j", "2", "--store-option", block_size, "s3://b/x.txt.gz"], &[]);
        let status = if len == packed.len() { 0 } else { 4 };
        assert!(ran.status.code() == Some(status) && text_bytes.starts_with(&ran.stdout), "{}", stderr(&ran));
        assert!(ran.stdout.len() > text_bytes.len() - 60_000 && (status == 4 || ran.stdout.len() == text_bytes.len()));
    }
}

/// The block that one thread waits for comes late, when the other thread has read all blocks up to the end.
#[test]
fn a_late_block_does_not_stop_the_job() {
    const BLOCK_LEN: usize = 1 << 14;
    let (text_bytes, packed) = long_gzip_file();
    let late = format!("bytes={}-", 3 * BLOCK_LEN);
    let server = Server::start([("/b/x.txt.gz".to_string(), packed)], move |_, request: &Request| {
        let is_late = request.header("range").is_some_and(|range| range.starts_with(&late));
        if is_late { Fault::Delay(Duration::from_secs(2)) } else { Fault::None }
    });
    let block_size = format!("block_size={BLOCK_LEN}");
    let flags = ["canon", "-q", "-j", "2", "--store-option", &block_size, "s3://b/x.txt.gz", "-o", "s3://b/y.txt"];
    let mut job = command_at(&server, &flags, &[]).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while job.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(50));
    }
    let is_ended = job.try_wait().unwrap().is_some();
    let _ = job.kill();
    let ran = job.wait_with_output().unwrap();
    assert!(is_ended && ran.status.success(), "{is_ended} {}", stderr(&ran));
    assert!(server.object("/b/y.txt") == Some(text_bytes));
}

/// A server that is busy is asked again until the time is over, also for the first request of an object and for an output.
#[test]
fn busy_servers_are_asked_again() {
    for method in ["GET", "PUT", "POST"] {
        let busy = std::sync::atomic::AtomicUsize::new(8);
        let server = Server::start([("/b/x".to_string(), b"http://a/\n".repeat(500))], move |_, request: &Request| {
            let count = |left: usize| left.checked_sub(1);
            let order = std::sync::atomic::Ordering::Relaxed;
            let is_busy = request.method == method && busy.fetch_update(order, order, count).is_ok();
            if is_busy { Fault::Status(503, "<Error><Code>SlowDown</Code></Error>") } else { Fault::None }
        });
        let part_size = if method == "POST" { "part_size=1000" } else { "part_size=1000000" };
        let ran =
            irikey_at(&server, &["canon", "-q", "s3://b/x", "-o", "s3://b/y.txt", "--store-option", part_size], &[]);
        assert_eq!(ran.status.code(), Some(0), "{method}: {}", stderr(&ran));
        assert!(server.object("/b/y.txt") == server.object("/b/x"), "{method}");
    }
}

#[test]
fn an_object_that_changes_ends_its_source() {
    let name = "crawl.cdxj";
    for (number, fault) in (1..4).flat_map(|number| [(number, Fault::Change), (number, Fault::IgnoreRange)]) {
        let (chosen, fault_of_request) = (number, fault.clone());
        let faults = move |number, _: &Request| if number == chosen { fault_of_request.clone() } else { Fault::None };
        let server = Server::start([(format!("/b/{name}"), sample(name))], faults);
        let ran = irikey_at(&server, &[&FLAGS[..], &[&format!("s3://b/{name}")]].concat(), &[]);
        let (expected, _) = local(&FLAGS, name);
        let message = stderr(&ran);
        // The rows before the defect are those of the first version.
        assert!(ran.status.code() == Some(4) && expected.starts_with(&ran.stdout), "{number} {fault:?}: {message}");
        let place = if ran.stdout.is_empty() { "" } else { "after " };
        assert!(message.contains(&format!("s3://b/{name}: {place}")), "{message}");
        let reason = match fault {
            Fault::Change => "the object changed while it was read",
            _ => "the server sent the whole object instead of the requested range; run again later",
        };
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn a_server_that_fails_for_long_ends_the_source() {
    let name = "crawl.cdxj";
    for fault in [Fault::Status(503, ""), Fault::Drop, Fault::Truncate(10), Fault::Status(403, "")] {
        let fault_of_requests = fault.clone();
        let faults = move |number, _: &Request| if number > 3 { fault_of_requests.clone() } else { Fault::None };
        let server = Server::start([(format!("/b/{name}"), sample(name))], faults);
        let flags = ["--store-option", "retry_timeout=0"];
        let ran = irikey_at(&server, &[&FLAGS[..], &flags, &[&format!("s3://b/{name}")]].concat(), &[]);
        let (expected, _) = local(&FLAGS, name);
        let message = stderr(&ran);
        assert!(ran.status.code() == Some(4) && expected.starts_with(&ran.stdout), "{fault:?}: {message}");
        assert!(!ran.stdout.is_empty() && message.contains(&format!("s3://b/{name}: after ")), "{fault:?}: {message}");
    }
}

/// The row groups of a table with keys are those of the version whose footer was read, also if a list names it.
#[test]
fn a_table_with_keys_that_changes_is_an_error() {
    let (_, bytes) = long_urls(400, &["--row-group-size", "300K"]);
    for changed in 3..6 {
        let faults = move |number, _: &Request| if number == changed { Fault::Change } else { Fault::None };
        let server = Server::start([("/b/x.parquet".to_string(), bytes.clone())], faults);
        let ran = dedup_listed(&server, "s3://b/x.parquet", &[]);
        let message = stderr(&ran);
        let is_reported = message.contains("the object changed while it was read");
        assert!(ran.status.code() == Some(4) && is_reported, "{changed}: {message}");
    }
}

/// A table whose bytes do not arrive is not called damaged.
#[test]
fn a_server_that_fails_within_a_table_is_named() {
    let (text, bytes) = long_urls(400, &["--row-group-size", "300K"]);
    for threads in ["1", "2"] {
        let faults = |number, _: &Request| if number > 3 { Fault::Status(503, "") } else { Fault::None };
        let server = Server::start([("/b/x.parquet".to_string(), bytes.clone())], faults);
        let flags = ["canon", "-q", "-j", threads, "--store-option", "retry_timeout=0", "s3://b/x.parquet"];
        let ran = irikey_at(&server, &flags, &[]);
        let message = stderr(&ran);
        assert!(ran.status.code() == Some(4) && text.starts_with(&ran.stdout), "{message}");
        assert!(message.contains("503") && !message.contains("damaged"), "{message}");
    }
}

/// Pages for people may be in any charset.
#[test]
fn errors_may_have_pages_in_any_charset() {
    let expected = local(&FLAGS, "crawl.cdxj");
    let server = Server::start([("/b/x".to_string(), sample("crawl.cdxj"))], |number, _| match number {
        // More than the crate repeats a request by itself.
        1..=8 => Fault::Page(503, b"\xFCberlastet"),
        _ => Fault::None,
    });
    let ran = irikey_at(&server, &[&FLAGS[..], &["s3://b/x"]].concat(), &[]);
    assert!((&ran.stdout, ran.status.code()) == (&expected.0, expected.1), "{}", stderr(&ran));
    let server = Server::start([], |_, _| Fault::Page(404, b"<Error><Code>NoSuchBucket</Code></Error>\xFC"));
    let ran = irikey_at(&server, &[&FLAGS[..], &["s3://b/x"]].concat(), &[]);
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("no such bucket"), "{}", stderr(&ran));
}

/// Some services respond so while they check who asks, or have nothing to send yet.
#[test]
fn a_response_without_content_is_no_empty_file() {
    for (status, body) in [(202, ""), (202, "<html>"), (204, ""), (206, "http://a/\n")] {
        let server =
            Server::start([("/b/x".to_string(), sample("crawl.cdxj"))], move |_, _| Fault::Status(status, body));
        for url in [format!("http://{}/b/x", server.address), "s3://b/x".to_string()] {
            let ran = irikey_at(&server, &["canon", "-q", "-f", "lines", &url], &[]);
            let (code, message) = (ran.status.code(), stderr(&ran));
            assert!(code == Some(4) && ran.stdout.is_empty(), "{status} {url}: {message}");
        }
    }
}

/// A range that ends before it begins is not one (RFC 9110 section 14.4), whatever bytes come with it.
#[test]
fn ranges_that_end_before_they_begin_are_refused() {
    let faults = |_, request: &Request| match request.header("range") {
        Some("bytes=4096-8191") => Fault::BackwardRange(100),
        _ => Fault::None,
    };
    let server = Server::start([("/b/x".to_string(), sample("crawl.cdxj"))], faults);
    let ran = irikey_at(&server, &[&FLAGS[..], &["s3://b/x"]].concat(), &[]);
    let expected = local(&FLAGS, "crawl.cdxj").0;
    assert!(ran.status.code() == Some(4) && expected.starts_with(&ran.stdout), "{}", stderr(&ran));
    assert!(stderr(&ran).contains("the server sent another range than was requested; run again"), "{}", stderr(&ran));
}

/// A body of unknown length that breaks is continued, if the server sends ranges after all.
#[test]
fn bodies_of_unknown_length_are_continued() {
    let faults = |_, request: &Request| match request.header("range") {
        None => Fault::CutChunks(10_000),
        Some(range) if range.starts_with("bytes=0-") => Fault::IgnoreRange,
        Some(_) => Fault::UnknownLength,
    };
    let server = Server::start([("/b/x".to_string(), sample("crawl.cdxj"))], faults);
    let expected = local(&FLAGS, "crawl.cdxj");
    let address = format!("http://{}/b/x", server.address);
    let ran = irikey_at(&server, &[&FLAGS[..], &[&address]].concat(), &[]);
    assert!((&ran.stdout, ran.status.code()) == (&expected.0, expected.1), "{}", stderr(&ran));
}

/// Some servers respond to HEAD requests as if every file were empty.
#[test]
fn files_with_an_empty_response_to_head_are_read() {
    let server = Server::start([("/b/x".to_string(), sample("crawl.cdxj"))], |_, _| Fault::EmptyHead);
    let expected = local(&FLAGS, "crawl.cdxj");
    let ran = irikey_at(&server, &[&FLAGS[..], &[&format!("http://{}/b/x", server.address)]].concat(), &[]);
    assert!((&ran.stdout, ran.status.code()) == (&expected.0, expected.1), "{}", stderr(&ran));
}

/// RFC 9110: three forms of dates, bodies in chunks, ranges that end early or do not state the length of the object, fields that
/// are not ASCII.
#[test]
fn legal_responses_of_all_kinds_are_read() {
    let responses = [
        Fault::ChunkedRange,
        Fault::ShortRange(1000),
        Fault::UnknownLength,
        Fault::Field("Content-Disposition", "attachment; filename=\"Übung.txt\""),
        Fault::Untagged("Sunday, 06-Nov-94 08:49:37 GMT"),
        Fault::Untagged("Sun Nov  6 08:49:37 1994"),
        Fault::Untagged("yesterday"),
    ];
    for response in responses {
        for name in ["crawl.cdxj", "crawl.parquet", "crawl.warc.gz"] {
            let fault = response.clone();
            let server = Server::start([(format!("/b/{name}"), sample(name))], move |_, _| fault.clone());
            let ran =
                irikey_at(&server, &[&FLAGS[..], &[&format!("http://{}/b/{name}", server.address)]].concat(), &[]);
            assert!(
                (ran.stdout.clone(), ran.status.code()) == local(&FLAGS, name),
                "{response:?} {name}: {}",
                stderr(&ran)
            );
            assert!(server.requests().iter().all(|request| request.header("accept-encoding") == Some("identity")));
        }
    }
}

/// gzip is recognized by its first bytes, also if the server is not asked for it. Other encodings are refused.
#[test]
fn encoded_responses_are_decoded_or_refused() {
    let name = "urls.txt.gz";
    for (coding, is_read) in
        [("gzip", true), ("x-gzip", true), ("identity", true), ("br", false), ("gzip, deflate", false)]
    {
        let server = Server::start([("/b/urls.txt".to_string(), sample(name))], move |_, _| Fault::Coded(coding));
        for place in ["s3://b".to_string(), format!("http://{}/b", server.address)] {
            let ran = irikey_at(&server, &[&FLAGS[..], &[&format!("{place}/urls.txt")]].concat(), &[]);
            let message = stderr(&ran);
            match is_read {
                true => assert!((ran.stdout, ran.status.code()) == local(&FLAGS, name), "{coding} {place}: {message}"),
                false => assert!(ran.status.code() == Some(4) && message.contains("in the encoding"), "{message}"),
            }
        }
    }
    // The bytes of two encodings are not mixed, although the entity tag is the same.
    let faults = |number, _: &Request| Fault::Coded(if number < 3 { "gzip" } else { "" });
    let server = Server::start([("/b/x".to_string(), sample(name))], faults);
    let ran = irikey_at(
        &server,
        &[&FLAGS[..], &[&format!("http://{}/b/x", server.address), "--store-option=block_size=500"]].concat(),
        &[],
    );
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("changed while it was read"), "{}", stderr(&ran));
}

#[test]
fn servers_without_ranges_are_read_in_one_request() {
    for name in ["crawl.warc.gz", "crawl.cdxj", "urls.txt.gz"] {
        let expected = local(&FLAGS, name);
        for fault in [Fault::IgnoreRange, Fault::Chunked] {
            let server = Server::start([(format!("/b/{name}"), sample(name))], move |_, _| fault.clone());
            let ran =
                irikey_at(&server, &[&FLAGS[..], &[&format!("http://{}/b/{name}", server.address)]].concat(), &[]);
            assert!((&ran.stdout, ran.status.code()) == (&expected.0, expected.1), "{name}: {}", stderr(&ran));
        }
    }
    let name = "crawl.cdxj";
    let breaking = |_, request: &Request| match request.header("range") {
        Some(_) => Fault::IgnoreRange,
        None => Fault::Truncate(20_000),
    };
    let server = Server::start([(format!("/b/{name}"), sample(name))], breaking);
    let ran = irikey_at(&server, &[&FLAGS[..], &[&format!("http://{}/b/{name}", server.address)]].concat(), &[]);
    assert!(ran.status.code() == Some(4) && local(&FLAGS, name).0.starts_with(&ran.stdout), "{}", stderr(&ran));
    let server = Server::start([("/b/crawl.parquet".to_string(), sample("crawl.parquet"))], breaking);
    let ran = irikey_at(&server, &["canon", "-q", &format!("http://{}/b/crawl.parquet", server.address)], &[]);
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("does not send ranges"), "{}", stderr(&ran));
}

/// A tag without quotes is none (RFC 9110 section 8.8.3), so a request cannot name it.
#[test]
fn tags_without_quotes_are_compared_only() {
    let name = "crawl.cdxj";
    for (last, status) in [(Fault::UnquotedTag, 0), (Fault::Change, 4)] {
        for is_in_store in [true, false] {
            let last = last.clone();
            let faults = move |number, _: &Request| if number < 3 { Fault::UnquotedTag } else { last.clone() };
            let server = Server::start([(format!("/b/{name}"), sample(name))], faults);
            let place = if is_in_store { "s3://b".to_string() } else { format!("http://{}/b", server.address) };
            let ran = irikey_at(&server, &[&FLAGS[..], &[&format!("{place}/{name}")]].concat(), &[]);
            assert_eq!(ran.status.code(), Some(status), "{place}: {}", stderr(&ran));
        }
    }
}

/// The server says when it is not busy any more. A time that is too long is shortened.
#[test]
fn busy_servers_choose_the_pause() {
    let times = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let arrived = std::sync::Arc::clone(&times);
    let server = Server::start([("/b/x".to_string(), b"http://a/\n".to_vec())], move |number, _| {
        arrived.lock().unwrap().push(Instant::now());
        if number == 0 { Fault::Busy("1") } else { Fault::None }
    });
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/x"], &[]);
    assert_eq!((&ran.stdout[..], ran.status.code()), (&b"http://a/\n"[..], Some(0)), "{}", stderr(&ran));
    let times = times.lock().unwrap();
    assert!(times[1] - times[0] >= Duration::from_secs(1));
    let server = Server::start([], |_, _| Fault::Busy("86400"));
    for limit in ["retry_timeout=100ms", "retry_timeout=0"] {
        let ran = irikey_at(&server, &["canon", "-q", "s3://b/x", "--store-option", limit], &[]);
        assert!(ran.status.code() == Some(4) && stderr(&ran).contains("responds with 503"), "{}", stderr(&ran));
    }
}
