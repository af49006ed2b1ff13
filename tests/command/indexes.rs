//! Capture indexes: the lines of CDXJ are those of cdxj-indexer, and the files of ZipNum those that pywb reads.

use std::fs;

use serde_json::Value;

use crate::{irikey, printed, sample, succeed};

/// Fourteen digits have no room for other years, and lines with more are in another order.
#[test]
fn times_of_other_years_are_not_in_an_index() {
    let line = |time: &str| format!("1.1.1.1 - - [{time}] \"GET /a HTTP/1.0\" 200 1\n");
    let log =
        line("31/Dec/9999:23:59:59 +0000") + &line("31/Dec/9999:23:59:59 -0001") + &line("01/Jan/0000:00:00:00 +0001");
    let flags = ["canon", "-q", "-", "--base", "http://h/", "--output-format", "cdxj"];
    let times: Vec<_> =
        printed(&flags, log.as_bytes()).lines().map(|line| line.split(' ').nth(1).unwrap().to_string()).collect();
    assert_eq!(times, ["-", "-", "99991231235959"]);
}

/// As for other outputs, a symbolic link is kept, and its target is replaced.
#[test]
#[cfg(unix)]
fn an_index_behind_a_link_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    fs::create_dir(name("indexes")).unwrap();
    fs::write(name("indexes/y.idx"), "old").unwrap();
    std::os::unix::fs::symlink("indexes/y.idx", name("x.idx")).unwrap();
    succeed(&["canon", "-q", &sample("crawl.cdxj"), "-o", &name("x.cdx.gz")]);
    assert!(fs::symlink_metadata(name("x.idx")).unwrap().is_symlink());
    assert!(fs::read_to_string(name("x.idx")).unwrap().contains("\tx.cdx.gz\t0\t"));
}

/// An index without lines is a gzip file, and one that irikey reads and checks.
#[test]
fn an_index_without_lines_is_an_empty_member() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    fs::write(name("empty.txt"), "").unwrap();
    for flags in [&["-o", "x.cdx.gz"][..], &["-o", "y.gz", "--output-format", "zipnum"]] {
        let index = name(flags[1]);
        let report = name("report.json");
        succeed(&[&["canon", "-q", &name("empty.txt"), "--report", &report, "-o", &index], &flags[2..]].concat());
        let bytes = fs::read(&index).unwrap();
        let mut text = Vec::new();
        let mut member = flate2::bufread::GzDecoder::new(&bytes[..]);
        std::io::Read::read_to_end(&mut member, &mut text).unwrap();
        assert!(text.is_empty() && member.into_inner().is_empty(), "{bytes:?}");
        assert_eq!(crate::read_json(&report)["output"]["bytes"], bytes.len());
        let stem = &index[..index.len() - flags[1].len() + 1];
        assert_eq!(fs::read_to_string(format!("{stem}.idx")).unwrap(), "");
        assert_eq!(fs::read_to_string(format!("{stem}.loc")).unwrap(), format!("{0}\t{0}\n", flags[1]));
        assert_eq!(printed(&["canon", "-q", &index, "--format", "cdxj"], b""), "");
        succeed(&["check-sorted", &index]);
    }
}

/// The sample has requests with bodies of every kind, and payloads without digests. Its index was made by cdxj-indexer.
#[test]
fn archives_give_the_index_of_cdxj_indexer() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let expected = fs::read_to_string(sample("exchanges.cdxj")).unwrap();
    let index = name("x.cdxj");
    for flags in [&["--threads", "1"][..], &["--threads", "3", "--row-group-size", "1k"], &["--no-mmap"]] {
        succeed(&[&["canon", "-q", &sample("exchanges.warc.gz"), "-o", &index][..], flags].concat());
        assert_eq!(fs::read_to_string(&index).unwrap(), expected, "{flags:?}");
    }
    // From index to index nothing is lost.
    succeed(&["canon", "-q", &index, "-o", &name("y.cdxj")]);
    assert_eq!(fs::read_to_string(name("y.cdxj")).unwrap(), expected);
    // Uncompressed, the positions are those of the records in the file.
    let mut text = Vec::new();
    let packed = fs::read(sample("exchanges.warc.gz")).unwrap();
    std::io::Read::read_to_end(&mut flate2::read::MultiGzDecoder::new(&packed[..]), &mut text).unwrap();
    fs::write(name("exchanges.warc"), &text).unwrap();
    succeed(&["canon", "-q", &name("exchanges.warc"), "-o", &index]);
    for line in fs::read_to_string(&index).unwrap().lines() {
        let capture: Value = serde_json::from_str(&line[line.find(" {\"url\"").unwrap() + 1..]).unwrap();
        let number = |member: &str| capture[member].as_str().unwrap().parse::<usize>().unwrap();
        let record = &text[number("offset")..][..number("length")];
        assert!(record.starts_with(b"WARC/1.0\r\n"), "{line}");
        // The line ends between records are no part of their length.
        assert!(text[number("offset") + number("length")..].starts_with(b"\r\n\r\n"), "{line}");
    }
}

/// Methods and bodies without a line in the sample, because pywb and cdxj-indexer differ: pywb has to find the response.
#[test]
fn requests_are_keyed_as_pywb_looks_for_them() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let record = |kind: &str, content: &str| {
        let len = content.len();
        let head = "WARC-Target-URI: http://a.org/x?Q\r\nWARC-Date: 2026-01-01T00:00:00Z";
        format!("WARC/1.0\r\nWARC-Type: {kind}\r\n{head}\r\nContent-Length: {len}\r\n\r\n{content}\r\n\r\n")
    };
    let key = |request: &str| {
        let text = record("request", request) + &record("response", "HTTP/1.1 200 OK\r\n\r\n");
        fs::write(name("x.warc"), text).unwrap();
        succeed(&["canon", "-q", &name("x.warc"), "-o", &name("x.cdxj")]);
        let index = fs::read_to_string(name("x.cdxj")).unwrap();
        assert_eq!(index.lines().count(), 1, "{index}");
        let line = index.replace(" 20260101000000 {", " {");
        let request = line.find(", \"requestBody\"").map_or("", |at| line[at..].trim_end());
        format!("{}{}", line.split(' ').next().unwrap(), request)
    };
    let json = |body: &str| {
        let len = body.len();
        key(&format!("POST /x HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len}\r\n\r\n{body}"))
    };
    assert_eq!(key("GET /x?Q HTTP/1.1\r\n\r\n"), "org,a)/x?q");
    assert_eq!(key("HEAD /x?Q HTTP/1.1\r\n\r\n"), "org,a)/x?q");
    let other = r#"org,a)/x?__wb_method=delete&q, "requestBody": "", "method": "DELETE"}"#;
    assert_eq!(key("delete /x?Q HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"), other);
    let empty = r#"org,a)/x?__wb_method=post&q, "requestBody": "", "method": "POST"}"#;
    assert_eq!(key("POST /x?Q HTTP/1.1\r\n\r\n"), empty);
    assert_eq!(json("{"), empty);
    let words =
        r#"org,a)/x?__wb_method=post&a=true&b=null&c=1&q, "requestBody": "a=true&b=null&c=1", "method": "POST"}"#;
    assert_eq!(json(r#"{"a": true, "b": null, "c": 1.0}"#), words);
    // Whatever a body holds, the key is one word.
    let form = |body: &str| {
        let len = body.len();
        let media = "application/x-www-form-urlencoded";
        key(&format!("POST /x HTTP/1.1\r\nContent-Type: {media}\r\nContent-Length: {len}\r\n\r\n{body}"))
    };
    let spaced = form("a=b+c%0A%00%09d%C2%A0");
    assert!(spaced.starts_with("org,a)/x?__wb_method=post&a=b%20c") && !spaced.contains('\n'), "{spaced}");
}

/// Members that have no column of their own go from index to index, also by way of rows.
#[test]
fn indexes_keep_the_members_that_have_no_column() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let line =
        |rest: &str| format!("org,a)/ 20260101000000 {{\"url\": \"http://a.org/\", \"status\": \"200\"{rest}}}\n");
    let others = r#", "access": {"rights": ["a\"b", 1]}, "source": "x", "n": 1"#;
    let expected = [line(others), line("")].concat();
    let mixed = line("").replacen("\"url\"", &format!("{}, \"url\"", &others[2..]), 1);
    fs::write(name("x.cdxj"), mixed + &line("")).unwrap();
    succeed(&["canon", "-q", &name("x.cdxj"), "-o", &name("y.cdxj")]);
    assert_eq!(fs::read_to_string(name("y.cdxj")).unwrap(), expected);
    for rows in ["rows.parquet", "rows.jsonl"] {
        let columns = "+fetch_time,+fetch_status,+cdxj_members";
        succeed(&["canon", "-q", &name("x.cdxj"), "-o", &name(rows), "--columns", columns]);
        succeed(&["canon", "-q", &name(rows), "-o", &name("z.cdxj")]);
        assert_eq!(fs::read_to_string(name("z.cdxj")).unwrap(), expected, "{rows}");
    }
}

/// Lines of equal keys and times are in the order of `LC_ALL=C sort`, whatever the order of the input.
#[test]
fn an_index_is_sorted_as_its_lines_are() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let line = |i: u64| {
        let (path, second, offset) = (i * 7 % 5, i * 11 % 3, i * 7919 % 1009);
        let time = if i.is_multiple_of(4) { "-".to_string() } else { format!("2026010100000{second}") };
        format!(
            "k {time} {{\"url\": \"http://a.org/{path}!\", \"offset\": \"{offset}\", \"length\": \"9\", \"filename\": \"x\"}}\n"
        )
    };
    fs::write(
        name("in.cdxj"),
        (0..5000).map(line).collect::<String>() + "k - {\"url\": \"nonsense\"}\nk - {\"url\": \"http://a b\"}\n",
    )
    .unwrap();
    let mut texts = Vec::new();
    for flags in [&["--threads", "1"][..], &["--threads", "3", "--row-group-size", "10k", "--memory", "20M"]] {
        succeed(&[&["canon", "-q", &name("in.cdxj"), "-o", &name("x.cdxj")][..], flags].concat());
        texts.push(fs::read_to_string(name("x.cdxj")).unwrap());
    }
    let lines: Vec<&str> = texts[0].lines().collect();
    assert!(lines.len() == 5002 && lines.is_sorted());
    assert!(lines.iter().all(|line| line.split(' ').nth(2).is_some_and(|json| json.starts_with("{\"url\":"))));
    assert!(texts[0] == texts[1]);
}

/// A directory of parts has one index of all gzip members, and the places of the parts.
#[test]
fn the_parts_of_a_cluster_have_one_index() {
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    let url = |i: u64| format!("http://{}.example.org/{i}\n", i * i % 977);
    fs::write(name("in.txt"), (0..7000).map(url).collect::<String>()).unwrap();
    succeed(&["canon", "-q", &name("in.txt"), "-o", &name("x.cdx.gz")]);
    assert_eq!(fs::read_to_string(name("x.loc")).unwrap(), "x.cdx.gz\tx.cdx.gz\n");
    for (flags, parts) in [
        (&["--part-rows", "2500"][..], &["part-00000.cdx.gz", "part-00001.cdx.gz", "part-00002.cdx.gz"][..]),
        (&["--partition", "surt:2"], &["surt_range=0/part-00000.cdx.gz", "surt_range=1/part-00000.cdx.gz"]),
    ] {
        let target = directory.path().join("out");
        let target_name = target.display().to_string();
        let fixed = ["canon", "-q", &name("in.txt"), "-o", &target_name, "--output-format", "zipnum"];
        succeed(&[&fixed[..], flags].concat());
        let locations: String = parts.iter().map(|part| format!("{part}\t{part}\n")).collect();
        assert_eq!(fs::read_to_string(target.join("cluster.loc")).unwrap(), locations);
        let index = fs::read_to_string(target.join("cluster.idx")).unwrap();
        let mut lines = Vec::new();
        for (i, entry) in index.lines().enumerate() {
            let fields: Vec<&str> = entry.split('\t').collect();
            assert_eq!(fields[4], (i + 1).to_string());
            let data = fs::read(target.join(fields[1])).unwrap();
            let [offset, len] = [2, 3].map(|at| fields[at].parse::<usize>().unwrap());
            let mut text = String::new();
            let mut member = flate2::read::GzDecoder::new(&data[offset..offset + len]);
            std::io::Read::read_to_string(&mut member, &mut text).unwrap();
            assert!(text.starts_with(&format!("{} {{", fields[0])), "{entry}");
            lines.extend(text.lines().map(str::to_string));
        }
        assert!(lines.len() == 7000 && lines.is_sorted());
        assert!(!target.join("part-00000.idx").exists());
        fs::remove_dir_all(&target).unwrap();
    }
    // Partitions by host are not in one order: each has an index.
    let fixed =
        ["canon", "-q", &name("in.txt"), "-o", &name("hosts"), "--output-format", "zipnum", "--partition", "host:2"];
    succeed(&fixed);
    for partition in ["host_hash=0", "host_hash=1"] {
        let index = fs::read_to_string(directory.path().join("hosts").join(partition).join("cluster.idx")).unwrap();
        assert!(
            index.lines().count() > 0 && index.lines().all(|line| line.contains("\tpart-00000.cdx.gz\t")),
            "{index}"
        );
    }
}

/// The archives, the CDXJ index and the columnar index of a crawl say the same, and join.
#[test]
fn the_files_of_common_crawl_agree() {
    let crawl = sample("common-crawl");
    let list = format!("@{crawl}/crawl-data/CC-MAIN-2026-46/warc.paths.gz");
    let columns = "uri,fetch_time,fetch_status,fetch_redirect,content_digest,content_charset,content_mime_type,\
        warc_filename,warc_record_offset,warc_record_length,url_surtkey,url_host_registered_domain,url_path";
    let rows = |inputs: &[&str]| {
        let fixed = ["canon", "-q", "--output-format", "csv", "--columns", columns];
        let text = printed(&[&fixed[..], inputs].concat(), b"").replace(&format!("{crawl}/"), "");
        let mut rows: Vec<String> = text.lines().map(str::to_string).collect();
        rows.sort();
        rows
    };
    let archives = rows(&[&list, "--prefix", &format!("{crawl}/")]);
    assert_eq!(archives.len(), 3);
    assert_eq!(rows(&[&format!("{crawl}/cc-index/collections/CC-MAIN-2026-46/indexes/cdx-00000.gz")]), archives);
    assert_eq!(rows(&[&format!("{crawl}/cc-index/table")]), archives);
    let refused = irikey(&["canon", &sample("urls.txt"), "--prefix", "x"], b"", std::process::Stdio::piped());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--prefix is for lists"));
}

/// The keys of URLs that are not hierarchical may begin like a table.
#[test]
fn an_index_may_begin_like_a_table() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (text, suffix) in [("PAR1:abc", "cdxj"), ("PAR1:abc", "cdx.gz"), ("ARROW1:abc", "cdxj")] {
        let (input, index) = (path("in.txt"), path(&format!("out.{suffix}")));
        fs::write(&input, format!("http://a.example/\n{text}\n")).unwrap();
        succeed(&["canon", "-q", &input, "-o", &index]);
        let lines = printed(&["canon", "-q", &index, "--output-format", "text"], b"");
        assert_eq!(lines.to_lowercase(), format!("{}\nhttp://a.example/\n", text.to_lowercase()));
    }
}

#[test]
fn names_of_zipnum_data_do_not_break_the_lines_of_the_index() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a\tb.cdx.gz", "a\nb.cdx.gz"] {
        let path = directory.path().join(name).display().to_string();
        let refused = irikey(&["canon", "-", "-o", &path], b"http://a/", std::process::Stdio::piped());
        assert_eq!(refused.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("without tabs and line ends"));
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// Directories `NAME=VALUE` are columns in every format, also of rows that were spilled or compared.
#[test]
fn values_in_paths_of_inputs_are_columns() {
    let table = sample("common-crawl/cc-index/table");
    let flags = ["--columns", "subset=,crawl=,none=,uri", "--output-format", "csv"];
    let expected = "subset,crawl,none,uri\n\
        crawldiagnostics,CC-MAIN-2026-46,,https://example.org/old\n\
        warc,CC-MAIN-2026-46,,https://example.org/\n";
    assert_eq!(printed(&[&["canon", "-q", &table][..], &flags].concat(), b""), expected);
    let directory = tempfile::tempdir().unwrap();
    let name = |name: &str| directory.path().join(name).display().to_string();
    // A text file, a name with an escape, and a path without any value.
    for (path, text) in [
        ("crawl=a%2Fb/x.txt", "http://a/\nhttp://b/\n"),
        ("crawl=c/x.csv", "url\nhttp://a/\n"),
        ("x.jsonl", "{\"url\":\"http://c/\"}\n"),
    ] {
        let path = directory.path().join("in").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let input = name("in");
    let sorted =
        printed(&["canon", "-q", &input, "--sort", "uri", "--columns", "uri,crawl=", "--output-format", "csv"], b"");
    assert_eq!(sorted, "uri,crawl\nhttp://a/,a/b\nhttp://a/,c\nhttp://b/,a/b\nhttp://c/,\n");
    let by_value = ["--sort", "-crawl=,uri", "--output-format", "csv", "--columns"];
    let sorted = |columns| printed(&[&["canon", "-q", &input][..], &by_value, &[columns]].concat(), b"");
    assert_eq!(sorted("uri,crawl="), "uri,crawl\nhttp://a/,c\nhttp://a/,a/b\nhttp://b/,a/b\nhttp://c/,\n");
    assert_eq!(sorted("uri"), sorted("uri,crawl="));
    let (kept, twice) = (name("kept.jsonl"), name("twice.parquet"));
    succeed(&["dedup", "-q", &input, "-o", &kept, "--columns", "crawl=,uri", "--duplicates", &twice]);
    let expected = "{\"crawl\":\"a/b\",\"uri\":\"http://a/\"}\n{\"crawl\":\"a/b\",\"uri\":\"http://b/\"}\n\
        {\"crawl\":null,\"uri\":\"http://c/\"}\n";
    assert_eq!(fs::read_to_string(kept).unwrap(), expected);
    let parquet = name("x.parquet");
    for sort in [&[][..], &["--sort", "uri"]] {
        succeed(&[&["canon", "-q", &input, "-o", &parquet, "--columns", "crawl=,uri"][..], sort].concat());
        let read = [
            "canon",
            "-q",
            &parquet,
            "--column",
            "crawl",
            "--base",
            "http://x/",
            "--output-format",
            "csv",
            "--columns",
            "uri,fault",
        ];
        let values = printed(&read, b"");
        assert_eq!(values.matches("http://x/a/b,\n").count(), 2, "{values}");
        assert_eq!(values.lines().count(), 5, "{values}");
    }
    let refused = irikey(&["canon", &input, "--columns", "uri="], b"", std::process::Stdio::piped());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`uri` is another column"));
}
