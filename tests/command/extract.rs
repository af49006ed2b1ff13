//! `extract`: sitemaps, feeds, robots.txt and lists as files; columns and formats of the rows.

use super::{gzip, irikey, printed, random_numbers, read_json, sample};
use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Bytes that gzip does not make shorter.
fn noise(len: usize) -> Vec<u8> {
    let mut random = random_numbers(1);
    (0..len).map(|_| random() as u8).collect()
}

/// A folder with one document of each kind.
fn documents() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    put("a.html", b"<base href='http://a/b/'><a href=c rel=nofollow>A <b>text</b></a><img src=i alt=I>");
    put(
        "feed",
        b"<rss><channel><item><guid isPermaLink='false'>x:1</guid><link>http://f/1</link></item></channel></rss>",
    );
    put("list.txt", b"http://l/1\r\n\r\nhttp://l/2\r\n");
    put("robots.txt", b"User-agent: *\nDisallow:\nsitemap: http://r/s.xml\n");
    put(
        "sitemap.xml.gz",
        &gzip(b"<?xml version='1.0'?><sitemapindex><sitemap><loc>http://s/1</loc></sitemap></sitemapindex>"),
    );
    folder
}

#[test]
fn documents_of_every_kind_are_read_from_a_folder() {
    let folder = documents();
    let columns = "element,attribute,link_type,link_rel,link_text,url,uri";
    let rows = printed(&["extract", "-q", folder.path().to_str().unwrap(), "--columns", columns], b"");
    let expected = "element,attribute,link_type,link_rel,link_text,url,uri\n\
        base,href,BASE@/href,,,http://a/b/,http://a/b/\n\
        a,href,A@/href,nofollow,A text,c,http://a/b/c\n\
        img,src,IMG@/src,,I,i,http://a/b/i\n\
        guid,,GUID@/,identifier,,x:1,x:1\n\
        link,,LINK@/,,,http://f/1,http://f/1\n\
        ,,@/,,,http://l/1,http://l/1\n\
        ,,@/,,,http://l/2,http://l/2\n\
        ,,@/,sitemap,,http://r/s.xml,http://r/s.xml\n\
        loc,,LOC@/,sitemap,,http://s/1,http://s/1\n";
    assert_eq!(rows, expected);
}

/// XML has `xml:base`, and HTML does not.
#[test]
fn the_markup_of_a_compressed_file_is_that_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let svg = b"<svg xml:base='http://a/b/'><a href='c'/></svg>";
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(svg).unwrap();
    for (name, bytes) in [("a.svg", svg.to_vec()), ("a.SVG.bz2", bzip2.finish().unwrap())] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let rows = printed(&["extract", "-q", path.to_str().unwrap(), "--columns", "url,base"], b"");
        assert_eq!(rows, "url,base\nhttp://a/b/,\nc,http://a/b/\n", "{name}");
    }
}

/// The first hundred messages are printed, and the others counted.
#[test]
fn further_messages_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let page =
        |number: usize| fs::write(folder.path().join(format!("{number:03}.html")), "<meta charset=nope>").unwrap();
    let messages = || {
        let ran = irikey(&["extract", "-q", folder.path().to_str().unwrap()], b"", Stdio::null());
        let text = String::from_utf8(ran.stderr).unwrap();
        (text.matches("unknown charset").count(), text.lines().last().unwrap_or_default().to_string())
    };
    (0..100).for_each(page);
    let (count, last) = messages();
    assert!(count == 100 && last.contains("099.html: byte 14: unknown charset"), "{count} {last}");
    (100..103).for_each(page);
    assert_eq!(messages(), (100, "irikey: 3 messages more, which are not shown".to_string()));
}

/// `--limit` gives the first rows, from documents and from archives, with any number of threads.
#[test]
fn the_first_rows_are_written_with_a_limit() {
    let folder = documents();
    let path = folder.path().to_str().unwrap();
    let response = |page: u32| {
        let body = format!("<a href={page}a><a href={page}b>");
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nLink: <{page}h>; rel=next\r\n\r\n{body}");
        let head = format!("WARC-Type: response\r\nWARC-Target-URI: http://h/\r\nContent-Length: {}", http.len());
        format!("WARC/1.0\r\n{head}\r\n\r\n{http}\r\n\r\n")
    };
    let archive = folder.path().join("z.warc");
    fs::write(&archive, (0..40).map(response).collect::<String>()).unwrap();
    let archive = archive.to_str().unwrap();
    let rows = |inputs: &[&str], flags: &[&str]| {
        printed(&[&["extract", "-q", "--columns", "source,url"], inputs, flags].concat(), b"")
    };
    for inputs in [&[path][..], &[archive], &[archive, path]] {
        let all = rows(inputs, &[]);
        let count = all.lines().count() - 1;
        for limit in (0..14).chain([count - 1, count, count + 1]) {
            let expected: String = all.split_inclusive('\n').take(limit + 1).collect();
            for threads in ["1", "3"] {
                let found = rows(inputs, &["--limit", &limit.to_string(), "--threads", threads]);
                assert_eq!(found, expected, "{inputs:?} {limit}");
            }
        }
    }
}

/// A row without a URL has an empty field in delimited text, which is a fault for `canon` if the field of the base is empty too.
#[test]
fn rows_without_a_url_are_read_as_the_guide_says() {
    let folder = tempfile::tempdir().unwrap();
    let page = b"<a href=x><a href='&#0;'><a href=''>";
    let read = |file: &str, columns: &str, flags: &[&str]| {
        let path = folder.path().join(file);
        let path = path.to_str().unwrap();
        printed(&["extract", "-q", "--base", "http://d/p", "--columns", columns, "-o", path], page);
        printed(&[&["canon", "-q", path, "--columns", "uri,fault"], flags].concat(), b"")
    };
    let faulty = "uri,fault\nhttp://d/x,\n,empty\nhttp://d/p,\n";
    assert_eq!(read("x.csv", "url,base", &["--base-column", "base"]), faulty);
    let null = faulty.replace("empty", "no-url");
    for file in ["x.jsonl", "x.parquet"] {
        assert_eq!(read(file, "url", &["--base", "http://d/p"]), null, "{file}");
    }
    let resolved = "uri,fault\nhttp://d/x,\nhttp://d/p,\nhttp://d/p,\n";
    assert_eq!(read("x.csv", "url", &["--base", "http://d/p"]), resolved);
    assert_eq!(read("x.tsv", "url", &["--base", "http://d/p", "--quote", "\""]), resolved);
}

#[test]
fn columns_are_chosen_and_added() {
    let page = b"<a href='/x'><a href=http://[>";
    let rows = printed(&["extract", "-q", "--base", "http://H/", "--columns", "+page,+uri,+key,+fetch_time"], page);
    let lines: Vec<&str> = rows.lines().collect();
    assert_eq!(
        lines[0],
        "url,base,charset,element,attribute,record_offset,source,fault,fault_at,page,uri,key,fetch_time"
    );
    let uri = "http://h/x";
    let key = printed(&["canon", "-q", "--output-format", "csv", "--columns", "key"], uri.as_bytes());
    let key = key.lines().nth(1).unwrap();
    assert_eq!(lines[1], format!("/x,http://H/,UTF-8,a,href,9,-,,,http://h/,{uri},{key},"));
    // A reference that is no URI is a row with a fault.
    assert!(lines[2].starts_with("http://[,http://H/,UTF-8,a,href,21,-,"), "{}", lines[2]);
    let fields: Vec<&str> = lines[2].split(',').collect();
    assert!(!fields[7].is_empty() && fields[10].is_empty() && fields[11].len() == 32, "{fields:?}");
    for columns in ["kye", "+url,base", "+url+"] {
        let out = irikey(&["extract", "--columns", columns], page, Stdio::piped());
        assert_eq!(out.status.code(), Some(2), "{columns}");
    }
}

#[test]
fn rows_are_written_as_parquet() {
    let folder = documents();
    let path = folder.path().join("links.parquet");
    let path = path.to_str().unwrap();
    let page = folder.path().join("a.html");
    printed(&["extract", "-q", page.to_str().unwrap(), "-o", path, "--columns", "+uri,+key"], b"");
    let again = printed(&["canon", "-q", path, "--column", "url", "--base-column", "base"], b"");
    assert_eq!(again, "http://a/b/\nhttp://a/b/c\nhttp://a/b/i\n");
    let again = printed(&["canon", "-q", path, "--column", "uri"], b"");
    assert_eq!(again, "http://a/b/\nhttp://a/b/c\nhttp://a/b/i\n");
}

/// Rows are written as references are found, in an order and number that do not depend on the length of the document.
#[test]
fn a_document_may_have_more_than_a_million_references() {
    let count = 1_000_001;
    let rows = printed(&["extract", "-q", "--columns", "record_offset"], "<a href>".repeat(count).as_bytes());
    assert_eq!(rows.lines().count(), 1 + count);
}

fn record(kind: &str, url: &str, media_type: &str, content: &[u8]) -> Vec<u8> {
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-01-02T03:04:05Z\r\n\
         Content-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    [head.as_bytes(), content, b"\r\n\r\n"].concat()
}

fn response(url: &str, head: &str, body: &[u8]) -> Vec<u8> {
    let content = [b"HTTP/1.1 ", head.as_bytes(), b"\r\n\r\n", body].concat();
    record("response", url, "application/http; msgtype=response", &content)
}

/// Captures of each kind that is read or skipped.
fn captures() -> Vec<Vec<u8>> {
    let page = gzip(b"<base href=/b/><a href=c rel=nofollow>T</a>");
    let chunked = [format!("{:x}\r\n", page.len()).as_bytes(), &page, b"\r\n0\r\n\r\n"].concat();
    let head = "200 OK\r\nContent-Type: text/html\r\nLink: </s>; rel=shortlink; title=S, <x>; anchor=\"#y\"\r\n\
                Content-Encoding: gzip\r\nTransfer-Encoding: chunked";
    let sitemap = gzip(b"<urlset><url><loc>http://a/1</loc></url></urlset>");
    let atom = b"<feed xmlns='http://www.w3.org/2005/Atom'><link href='q'/></feed>";
    vec![
        record("warcinfo", "", "application/warc-fields", b"x: y\r\n"),
        record("request", "http://a/p", "application/http; msgtype=request", b"GET / HTTP/1.1\r\n\r\n"),
        response("http://a/p", head, &chunked),
        response("http://a/r", "301 M\r\nLocation: /p\r\nContent-Type: text/html", b"<a href=no>"),
        response("http://a/i", "200 OK\r\nContent-Type: image/png", b"<a href=no>"),
        response("http://a/robots.txt", "200 OK\r\nContent-Type: text/plain", b"Sitemap: http://a/s.xml.gz\n"),
        response("http://a/s.xml.gz", "200 OK\r\nContent-Type: application/x-gzip", &sitemap),
        response("http://a/k", "200 OK\r\nContent-Type: text/html; charset=koi8-r", b"<a href=\xc1>"),
        record("resource", "http://a/f", "application/atom+xml; charset=utf-8", atom),
        record("revisit", "http://a/p", "application/http; msgtype=response", b"HTTP/1.1 200 OK\r\n\r\n"),
    ]
}

const CAPTURE_COLUMNS: &str = "page,link_type,link_rel,link_text,uri,charset,record_offset,fetch_status";
const CAPTURE_ROWS: &str = "page,link_type,link_rel,link_text,uri,charset,record_offset,fetch_status\n\
    http://a/p,HTTP@/link,shortlink,S,http://a/s,UTF-8,,200\n\
    http://a/p#y,HTTP@/link,,,http://a/x,UTF-8,,200\n\
    http://a/p,BASE@/href,,,http://a/b/,UTF-8,11,200\n\
    http://a/p,A@/href,nofollow,T,http://a/b/c,UTF-8,23,200\n\
    http://a/r,HTTP@/location,redirect,,http://a/p,UTF-8,,301\n\
    http://a/robots.txt,@/,sitemap,,http://a/s.xml.gz,UTF-8,9,200\n\
    http://a/s.xml.gz,LOC@/,,,http://a/1,UTF-8,18,200\n\
    http://a/k,A@/href,,,http://a/%D0%B0,KOI8-R,8,200\n\
    http://a/f,LINK@/href,,,http://a/q,UTF-8,54,\n";

#[test]
fn archives_are_read_capture_by_capture() {
    let folder = tempfile::tempdir().unwrap();
    let members: Vec<u8> = captures().iter().flat_map(|record| gzip(record)).collect();
    for (name, bytes) in [("x.warc", captures().concat()), ("x.warc.gz", members)] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let out = irikey(&["extract", path.to_str().unwrap(), "--columns", CAPTURE_COLUMNS], b"", Stdio::piped());
        assert_eq!(
            (out.status.code(), String::from_utf8(out.stdout).unwrap().as_str()),
            (Some(0), CAPTURE_ROWS),
            "{name}"
        );
        let summary = String::from_utf8(out.stderr).unwrap();
        let expected = "9 references (0 faulty) in 5 documents (2 html, 1 robots, 2 xml); 3 captures skipped \
                        (1 revisit, 1 other status, 1 other media type); 2 records of other types\n";
        assert!(summary.ends_with(expected), "{summary}");
        let from_pipe = fs::read(&path).unwrap();
        assert_eq!(printed(&["extract", "-q", "-", "--columns", CAPTURE_COLUMNS], &from_pipe), CAPTURE_ROWS, "{name}");
    }
}

/// Rows, messages and bytes of files are those of one thread, also of documents that give several blocks of rows.
#[test]
fn output_does_not_depend_on_threads() {
    let html = "200 OK\r\nContent-Type: text/html";
    let page = |i: usize| {
        let links: String = (0..i * i % 97).map(|link| format!("<a href=/{i}/{link}>")).collect();
        response(
            &format!("http://a/{i}"),
            html,
            format!("{links}{}", if i % 50 == 7 { "<a href='" } else { "" }).as_bytes(),
        )
    };
    let long = response("http://a/long", html, "<a href=x>".repeat(60_000).as_bytes());
    let records: Vec<u8> = (0..400).map(page).chain([long]).chain((400..500).map(page)).flatten().collect();
    let folder = tempfile::tempdir().unwrap();
    let (input, document) = (folder.path().join("x.warc"), folder.path().join("y.html"));
    fs::write(&input, records).unwrap();
    fs::write(&document, "<a href=z>").unwrap();
    for format in ["csv", "jsonl", "parquet", "csv.gz"] {
        let ran = ["1", "4"].map(|threads| {
            let output = folder.path().join(format!("{threads}.{format}"));
            let paths = [&input, &document, &input, &output].map(|path| path.to_str().unwrap());
            let flags = ["--columns", "+page,+uri,+key", "-j", threads, "-o", paths[3]];
            let out = irikey(&[&["extract"], &paths[..3], &flags].concat(), b"", Stdio::piped());
            assert_eq!(out.status.code(), Some(4));
            (fs::read(&output).unwrap(), String::from_utf8(out.stderr).unwrap())
        });
        assert!(ran[0] == ran[1], "{format}: {} {}", ran[0].1, ran[1].1);
        assert_eq!(ran[0].1.matches("the document ends in the tag <a").count(), 20, "{}", ran[0].1);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn as_many_threads_read_documents_as_the_flag_says() {
    for threads in [1, 3] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_irikey"));
        command.args(["extract", "-q", "-", "-j", &threads.to_string()]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let tasks = format!("/proc/{}/task", child.id());
        let name_of = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let reading = || {
            let names = fs::read_dir(&tasks).unwrap().map(|task| name_of(task.unwrap()));
            names.filter(|name| name.starts_with("irikey-read-")).count()
        };
        // The threads wait for standard input.
        let count = (0..2_000).map(|_| {
            std::thread::sleep(Duration::from_millis(5));
            reading()
        });
        assert_eq!(count.into_iter().find(|&count| count >= threads), Some(threads));
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn captures_that_cannot_be_read_are_reported() {
    let html = "200 OK\r\nContent-Type: text/html";
    let bomb = gzip(&vec![b' '; 1 << 20]);
    let damaged = [&gzip(b"<a href=1><a href=2>")[..24], b"\xff\xff"].concat();
    let nested = gzip(b"<a href=z>text");
    let cut_chunk = [&b"fff\r\n"[..], &nested[..nested.len() - 9]].concat();
    let records = [
        response("http://a/0", &format!("{html}\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip"), &cut_chunk),
        response("http://a/1", html, &[b' '; 300_000]),
        response("http://a/2", &format!("{html}\r\nContent-Encoding: gzip"), &bomb),
        response("http://a/3", &format!("{html}\r\nContent-Encoding: gzip"), &damaged),
        response("http://a/4", &format!("{html}\r\nContent-Encoding: compress"), b"\x1f\x9d\x90\0"),
        response("http://a/5", html, b"<a href=x><a href='y"),
        response("http://a/6", html, b"<a href=x>"),
    ];
    let out = irikey(
        &["extract", "-", "--max-document", "20000", "--columns", "page,url"],
        &records.concat(),
        Stdio::piped(),
    );
    let (rows, messages) = (String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap());
    assert_eq!(out.status.code(), Some(4), "{messages}");
    assert!(rows.ends_with("http://a/5,x\nhttp://a/6,x\n"), "{rows}");
    assert!(rows.starts_with("page,url\nhttp://a/0,z\n"), "{rows}");
    for (page, reason) in [
        ("http://a/0", "chunked data of the body is damaged"),
        ("http://a/1", "longer than 20000 bytes"),
        ("http://a/2", "longer than 20000 bytes"),
        ("http://a/3", "gzip data of the body is damaged"),
        ("http://a/4", "coding \"compress\""),
        ("http://a/5", "the document ends in the tag <a"),
    ] {
        let is_reported = |line: &str| line.contains(page) && line.contains(reason) && line.contains("record at byte ");
        assert!(messages.lines().any(is_reported), "{page} {messages}");
    }
    // A document that is cut short is counted once, also if its body has a defect of its own.
    let sitemap = gzip(b"<urlset><url><loc>http://x/a</loc></url><url><loc>http://x/b</loc></url></urlset>");
    let header = "200 OK\r\nContent-Type: application/xml\r\nContent-Encoding: gzip";
    let cut = response("http://a/7", header, &sitemap[..sitemap.len() - 20]);
    let report = tempfile::NamedTempFile::with_suffix(".json").unwrap();
    let out = irikey(&["extract", "-", "--report", report.path().to_str().unwrap()], &cut, Stdio::piped());
    assert_eq!((out.status.code(), &read_json(report.path())["unread"]), (Some(4), &1.into()));
    // The archive ends within a record, and bytes before it belong to none: what is before was read.
    let whole = response("http://a/6", html, b"<a href=x>");
    let cut = [&whole[..], b"stray bytes\r\n", &whole[..whole.len() - 8]].concat();
    let out = irikey(&["extract", "-", "--columns", "page,url"], &cut, Stdio::piped());
    assert_eq!(String::from_utf8(out.stdout).unwrap(), "page,url\nhttp://a/6,x\n");
    assert_eq!(out.status.code(), Some(4));
    let messages = String::from_utf8(out.stderr).unwrap();
    for reason in ["1 cut short", "the archive was cut short", "13 bytes in 1 place belong to no record"] {
        assert!(messages.contains(reason), "{messages}");
    }
}

/// The report has the counts of the summary and the messages, in each of its formats.
#[test]
fn the_report_has_what_the_summary_counts() {
    let folder = documents();
    let put = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    put("cut.html", b"<a href='&#0;'><a href='y");
    put("broken.gz", &gzip(&noise(4_000))[..2_000]);
    let html = "200 OK\r\nContent-Type: text/html";
    let missing = response("http://a/2", "404 Not Found\r\nContent-Type: text/html", b"");
    let request = record("request", "http://a/1", "application/http", b"GET / HTTP/1.1\r\n\r\n");
    put("x.warc", &[response("http://a/1", html, b"<a href=z>"), missing, request].concat());
    let target = tempfile::tempdir().unwrap();
    let report = |name: &str| {
        let (path, out) = (target.path().join(name), target.path().join("links.csv"));
        let input = folder.path().to_str().unwrap();
        let args = ["extract", input, "-o", out.to_str().unwrap(), "--report", path.to_str().unwrap()];
        let ran = irikey(&args, b"", Stdio::piped());
        assert_eq!(ran.status.code(), Some(4));
        (fs::read_to_string(path).unwrap(), String::from_utf8(ran.stderr).unwrap())
    };
    let (text, printed) = report("r.txt");
    assert!(text.starts_with("11 references (1 faulty) in 7 documents (3 html, 1 robots, 1 urls, 2 xml);"), "{text}");
    let summary = text.lines().next().unwrap();
    assert!(summary.ends_with("; 1 capture skipped (1 other status); 1 record of other types"), "{summary}");
    assert!(printed.contains(&format!("irikey: {summary}\n")), "{printed}");
    let (json, printed) = report("r.json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for (name, expected) in [
        ("references", serde_json::json!(11)),
        ("faulty", 1.into()),
        ("documents", serde_json::json!({"html": 3, "robots": 1, "urls": 1, "xml": 2})),
        ("unread", 2.into()),
        ("skipped", serde_json::json!({"status": 1})),
        ("other_records", 1.into()),
        ("replaced", serde_json::json!([target.path().join("links.csv").to_str().unwrap()])),
    ] {
        assert_eq!(json[name], expected, "{name}");
    }
    let messages: Vec<_> = json["messages"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert!(messages.iter().any(|message| message.contains("broken.gz: ")), "{messages:?}");
    assert!(messages.iter().all(|message| printed.contains(&format!("irikey: {message}\n"))), "{printed}");
    let (page, _) = report("r.html");
    assert!(page.contains("<td class=\"n\">11</td>") && page.contains("broken.gz: "), "{page}");
}

/// The peak of memory includes documents that are read, which are freed before the report is written.
#[test]
#[cfg(target_os = "linux")]
fn the_report_has_the_memory_of_documents() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("a.html.gz"), gzip(&[&b"<a href=x>"[..], &[b' '; 24 << 20]].concat())).unwrap();
    printed(&["extract", "-q", &path("a.html.gz"), "-o", &path("links.csv"), "--report", &path("r.json")], b"");
    let peak = read_json(path("r.json"))["peak_anonymous_bytes"].as_u64().unwrap();
    assert!(peak > 24 << 20, "{peak}");
}

/// A report of inputs without any row does not say that the output was replaced.
#[test]
fn a_report_without_output_keeps_the_earlier_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    fs::write(path("broken.html.gz"), &gzip(&noise(4_000))[..2_000]).unwrap();
    fs::write(path("links.csv"), "earlier").unwrap();
    let args = ["extract", &path("broken.html.gz"), "-o", &path("links.csv"), "--report", &path("r.json")];
    assert_eq!(irikey(&args, b"", Stdio::piped()).status.code(), Some(4));
    let json = read_json(path("r.json"));
    assert_eq!((&json["unread"], &json["replaced"]), (&1.into(), &serde_json::json!([])));
    assert_eq!(fs::read_to_string(path("links.csv")).unwrap(), "earlier");
}

/// What `extract` and a crawler's WAT say of a page has the same columns.
#[test]
fn links_of_wat_files_have_page_type_relation_and_text() {
    let json = br#"{"Envelope":{"Payload-Metadata":{"HTTP-Response-Metadata":{"Response-Message":{"Status":"200"},
        "Headers":{"Link":"</s>; rel=shortlink"},"HTML-Metadata":{"Head":{"Base":"/b/"},
        "Links":[{"path":"A@/href","url":"c","text":"T","rel":"nofollow"},{"path":"IMG@/src","url":"http://[","alt":"I"}]}}}}}"#;
    let wat = record("metadata", "HTTP://a/p", "application/json", json);
    let columns = "page,link_type,link_rel,link_text,uri";
    let rows = printed(&["canon", "-q", "-", "--format", "wat", "--output-format", "csv", "--columns", columns], &wat);
    let expected = "page,link_type,link_rel,link_text,uri\n\
        http://a/p,HTTP@/link,shortlink,,http://a/s\n\
        http://a/p,A@/href,nofollow,T,http://a/b/c\n\
        http://a/p,IMG@/src,,I,\n";
    assert_eq!(rows, expected);
}

/// A base has white space around it, and is none if HTML does not allow it, as in documents.
#[test]
fn bases_of_wat_files_are_those_of_their_documents() {
    let base_cases = [(" http://z/q/\\n", "http://z/q/k"), ("\\t/q/", "http://a/q/k"), ("JavaScript:x", "http://a/k")];
    for (base, expected) in base_cases {
        let json = format!(
            r#"{{"Envelope":{{"Payload-Metadata":{{"HTTP-Response-Metadata":{{"HTML-Metadata":
            {{"Head":{{"Base":"{base}"}},"Links":[{{"url":"k"}}]}}}}}}}}}}"#
        );
        let wat = record("metadata", "http://a/p", "application/json", json.as_bytes());
        let flags = ["canon", "-q", "-", "--format", "wat", "--output-format", "text"];
        assert_eq!(printed(&flags, &wat), format!("{expected}\n"), "{base}");
    }
}

#[test]
fn utf_16_without_a_mark_needs_its_charset() {
    let page: Vec<u8> = "<html><a href='http://h/x'>t</a>\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let flags = ["extract", "-", "--columns", "url"];
    let refused = irikey(&flags, &page, Stdio::piped());
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(4) && message.contains("--charset utf-16le"), "{message}");
    let flags = [&flags[..], &["-q", "--charset", "utf-16le"]].concat();
    assert_eq!(printed(&flags, &page), "url\nhttp://h/x\n");
    let list: Vec<u8> = "http://a/\nhttp://b/\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(printed(&flags, &list), "url\nhttp://a/\nhttp://b/\n");
}

/// A page without links has no row, but is counted, like the records that describe no page. extract refers to canon.
#[test]
fn pages_of_wat_files_are_counted() {
    let json = |inner: &str| format!(r#"{{"Envelope":{{"Payload-Metadata":{{{inner}}}}}}}"#);
    let page = |links: &str| json(&format!(r#""HTTP-Response-Metadata":{{"HTML-Metadata":{{"Links":[{links}]}}}}"#));
    let describe = |json: &str| record("metadata", "http://a/p", "application/json", json.as_bytes());
    let records = [
        record("warcinfo", "", "application/warc-fields", b"WARC-Filename: x.warc.wat.gz\r\n"),
        describe(&json(r#""HTTP-Request-Metadata":{}"#)),
        describe(&page("")),
        describe(&page(r#"{"url":"1"},{"url":"2"}"#)),
        describe(&json(r#""HTTP-Response-Metadata":{}"#)),
        describe("{"),
        format!("WARC/1.0\r\nWARC-Type: metadata\r\nx: {}\r\n\r\n", "x".repeat(1 << 20)).into_bytes(),
    ];
    let folder = tempfile::tempdir().unwrap();
    let counts = |records: &[Vec<u8>], threads: &str| {
        let path = folder.path().join("x.warc.wat.gz");
        fs::write(&path, records.iter().flat_map(|record| gzip(record)).collect::<Vec<u8>>()).unwrap();
        let (path, report) = (path.to_str().unwrap(), folder.path().join("report.json"));
        let args = ["canon", path, "-o", "/dev/null", "--threads", threads, "--report", report.to_str().unwrap()];
        let out = irikey(&args, b"", Stdio::piped());
        let report = read_json(&report);
        let counts = ["records", "pages", "skipped", "faulty"].map(|name| report[name].as_u64().unwrap());
        (counts, String::from_utf8(out.stderr).unwrap())
    };
    for threads in ["1", "2"] {
        let (counted, summary) = counts(&records, threads);
        assert_eq!(counted, [4, 5, 2, 2], "{summary}");
        assert!(summary.contains("pages                    5\nskipped, of other types  2\n"), "{summary}");
    }
    let (counted, summary) = counts(&records[..3], "1");
    assert_eq!(counted, [0, 1, 2, 0], "{summary}");
    let path = folder.path().join("x.warc.wat.gz");
    let out = irikey(&["extract", path.to_str().unwrap()], b"", Stdio::piped());
    let message = String::from_utf8(out.stderr).unwrap();
    assert!(
        out.status.code() == Some(4) && message.contains("this is a WAT file") && message.contains("canon"),
        "{message}"
    );
}

/// A record whose header is too long has no content that can be read; it is reported.
#[test]
fn a_capture_with_a_long_header_is_reported() {
    let long = format!("WARC/1.0\r\nWARC-Type: response\r\nx: {}\r\nContent-Length: 0\r\n\r\n", "x".repeat(1 << 20));
    let page = response("http://a/6", "200 OK\r\nContent-Type: text/html", b"<a href=x>");
    let out = irikey(&["extract", "-", "--columns", "page,url"], &[long.as_bytes(), &page].concat(), Stdio::piped());
    let message = String::from_utf8(out.stderr).unwrap();
    assert_eq!(String::from_utf8(out.stdout).unwrap(), "page,url\nhttp://a/6,x\n", "{message}");
    assert!(out.status.code() == Some(4) && message.contains("record at byte 0"), "{message}");
    assert!(message.contains("the header of its record is longer than 1048576 bytes"), "{message}");
}

#[test]
fn documents_may_be_named_by_a_list_of_common_crawl() {
    let list = format!("@{}", sample("common-crawl/crawl-data/CC-MAIN-2026-46/warc.paths.gz"));
    let extract = ["extract", "-q", "--columns", "page"];
    let printed = printed(&[&extract[..], &[&list, "--prefix", &sample("common-crawl/")]].concat(), b"");
    assert!(printed.lines().any(|page| page == "https://example.org/"), "{printed}");
    let refused = irikey(&["extract", &sample("crawl.warc.gz"), "--prefix", "x"], b"", Stdio::piped());
    assert_eq!(refused.status.code(), Some(2));
}

/// As `canon` recognizes an archive, whatever precedes its first record; unless that is markup.
#[test]
fn archives_may_begin_after_other_bytes() {
    let http = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=x>";
    let head = format!("WARC-Type: response\r\nWARC-Target-URI: http://h/\r\nContent-Length: {}", http.len());
    let record = format!("WARC/1.0\r\n{head}\r\n\r\n{http}\r\n\r\n");
    let rows = |input: &[u8], flags: &[&str]| {
        let ran = irikey(&[&["extract", "--columns", "page,url"], flags].concat(), input, Stdio::piped());
        (String::from_utf8(ran.stdout).unwrap(), ran.status.code(), String::from_utf8(ran.stderr).unwrap())
    };
    let of_archive = "page,url\nhttp://h/,x\n";
    for junk in ["junk\n", "http://a/\nhttp://b/\n", "\0\x01\x02\x03\n"] {
        let bytes = format!("{junk}{record}");
        for input in [bytes.clone().into_bytes(), gzip(bytes.as_bytes())] {
            let (found, code, message) = rows(&input, &[]);
            assert_eq!((found.as_str(), code), (of_archive, Some(4)), "{junk:?}: {message}");
            assert!(message.contains("belong to no record"), "{message}");
        }
        // What was read before a damage is not lost.
        let cut = gzip(bytes.as_bytes());
        let (found, code, message) = rows(&cut[..cut.len() - 4], &[]);
        assert_eq!((found.as_str(), code), (of_archive, Some(4)), "{junk:?}: {message}");
    }
    for (before, flags) in [("<pre>\n", &[][..]), ("junk\n", &["--format", "html"])] {
        let (found, code, message) = rows(format!("{before}{record}").as_bytes(), flags);
        assert_eq!((found.as_str(), code), ("page,url\n,x\n", Some(0)), "{before:?}: {message}");
    }
}

/// Read as HTML, these would give no rows, and the command would succeed.
#[test]
fn what_is_no_document_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let samples = |name: &str| fs::read(format!("data/samples/{name}")).unwrap();
    let mut cases: Vec<(String, Vec<u8>, &str)> = [
        ("crawl.parquet", "use irikey canon"),
        ("crawl.arrow", "use irikey canon"),
        ("crawl.cdx", "use irikey canon"),
        ("crawl.cdxj", "use irikey canon"),
        ("crawl.cdx.json", "use irikey canon"),
        ("crawl.har", "use irikey canon"),
        ("crawl.log", "use irikey canon"),
        ("crawl.access.log", "use irikey canon"),
        ("crawl.csv", "use irikey canon"),
        ("crawl.jsonl", "use irikey canon"),
    ]
    .map(|(name, advice)| (name.to_string(), samples(name), advice))
    .into();
    cases.push(("urls.csv".into(), b"http://h/1,200\nhttp://h/2,200\n".to_vec(), "use irikey canon"));
    cases.push(("a.pdf".into(), b"%PDF-1.7\n".to_vec(), "PDF document"));
    cases.push(("a".into(), b"[1, {\"url\": 1}]".to_vec(), "no refusal"));
    cases.push(("b".into(), b"[{\"url\": 1}]".to_vec(), "JSON array"));
    cases.push(("page.html".into(), samples("crawl.cdxj"), "no refusal"));
    cases.push(("text".into(), b"a text without markup".to_vec(), "no refusal"));
    for (name, bytes, advice) in cases {
        let path = folder.path().join(&name);
        fs::write(&path, &bytes).unwrap();
        let out = irikey(&["extract", "-q", path.to_str().unwrap()], b"", Stdio::piped());
        let message = String::from_utf8(out.stderr).unwrap();
        let is_refused = advice != "no refusal";
        assert_eq!(out.status.code(), Some(if is_refused { 4 } else { 0 }), "{name}: {message}");
        assert_eq!(message.contains(advice), is_refused, "{name}: {message}");
        assert!(out.stdout.split(|byte| *byte == b'\n').count() <= 2, "{name}: no rows");
    }
    let zip = b"PK\x03\x04\x14\0\0\0\0\0";
    let out = irikey(&["extract", "-q"], zip, Stdio::piped());
    assert_eq!(out.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&out.stderr).contains("ZIP archive from a pipe"));
}
