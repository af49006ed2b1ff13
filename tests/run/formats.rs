//! Crawl formats: the format of each source is detected from its content, the rows do not depend on where row groups and
//! chunks end, headers are counted, and malformed lines become faulty rows.

use crate::collect::{Out, Random, auto, gzip, options, pipe, policy, run, run_groups};
use irikey::batch::SourceRun;
use irikey::canon::{Policy, Rows};
use irikey::input::{Source, Sources};
use irikey::record::fields::FieldSet;
use irikey::record::{FormatOptions, InputFormat};
use irikey::run::RunOptions;

const CDX: &str = " CDX N b a m s k r M S V g
org,example)/a 20140103030321 http://example.org/a text/html 302 B2LT /b c - 1043 333 e.warc.gz
a line of no format
org,example)/ 20140103030322 HTTP://example.org:80/ text/html 200 B2LT - - 1043 333 e.warc.gz
";
const CDXJ: &str = r#"!OpenWayback-CDXJ 1.0
org,example)/x 20140127171200 {"url": "http://example.org/x", "status": "301", "digest": "B2LT", "redirect": "../y", "charset": "UTF-8", "mime": "text/html", "mime-detected": "text/plain", "languages": "eng,deu", "filename": "f.warc.gz", "offset": "5", "length": 77}
org,example)/z 20140127171201 {"url": "http://example.org/z", "status"
"#;
const LOG: &str = "2011-06-23T17:12:08.802Z   200       1299 http://example.org/r LREP http://Example.org/i text/plain #014 20110623171208574+225 sha1:YIUO - -
2011-06-23T17:12:09.591Z    -2          - http://example.org/p LR http://Example.org/q unknown #025 - - - -
";

fn sources() -> Sources {
    let texts =
        [("cdx", CDX), ("cdxj", CDXJ), ("log", LOG), ("urls", "http://example.org/u\n"), ("t.csv", "url\nx:y\n")];
    Sources(texts.map(|(name, text)| Source::reader(name, text.as_bytes())).into_iter().collect())
}

fn urls_and_faults(out: &Out) -> Vec<(u32, String, Option<String>)> {
    let kind = |fault: &String| fault.split(' ').next().unwrap_or_default().to_string();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let url = |row: &crate::collect::Row| if row.fault.is_some() { text(&row.input) } else { text(&row.uri) };
    out.rows.iter().map(|row| (row.source, url(row), row.fault.as_ref().map(kind))).collect()
}

#[test]
fn sources_of_one_run_may_differ_in_format() {
    let out = run(sources(), &auto(2, 1 << 20, 1000));
    let row = |source, url: &str| (source, url.to_string(), None);
    let faulty = |source, url: &str| (source, url.to_string(), Some("not-of-format".to_string()));
    let expected = [
        row(0, "http://example.org/a"),
        faulty(0, "a line of no format"),
        row(0, "http://example.org/"),
        row(1, "http://example.org/x"),
        faulty(1, CDXJ.lines().last().unwrap()),
        row(2, "http://example.org/r"),
        row(2, "http://example.org/p"),
        row(3, "http://example.org/u"),
        row(4, "x:y"),
    ];
    assert_eq!(urls_and_faults(&out), expected);
    assert_eq!(out.summary.headers, 3);
    let offsets: Vec<u64> = out.rows.iter().map(|row| row.offset).take(3).collect();
    assert_eq!(offsets, [27, 123, 143]);
}

#[test]
fn row_groups_and_chunks_do_not_change_the_rows() {
    let expected = run(sources(), &auto(1, 1 << 20, 1 << 20));
    for (threads, row_group_len, chunk_len) in [(1, 1, 1), (3, 100, 10), (2, 40, 1000)] {
        let out = run(sources(), &auto(threads, row_group_len, chunk_len));
        assert!(out.rows == expected.rows && out.summary.headers == 3, "{row_group_len} {chunk_len}");
    }
    let many = CDXJ.repeat(300);
    let whole = run(pipe(many.as_bytes(), 1 << 20), &auto(1, 1 << 20, 1 << 20));
    assert_eq!((whole.rows.len(), whole.summary.headers), (600, 300));
    for (row_group_len, step) in [(1, 7), (3_000, 999)] {
        let out = run(pipe(&gzip(many.as_bytes()), step), &auto(2, row_group_len, 500));
        assert!(out.rows == whole.rows);
    }
}

/// The carried columns of all rows, as text; `?` marks a column that is not carried.
fn carried(carry: FieldSet) -> Vec<[String; 12]> {
    let policy = Policy { carry, ..policy() };
    let encode = |rows: &mut Rows, _: &[SourceRun]| {
        let text = |texts: &irikey::canon::TextColumn, i: usize| {
            if texts.is_empty() { "?".into() } else { String::from_utf8_lossy(texts.get(i)).into_owned() }
        };
        let carried = &rows.carried;
        let number = |value: Option<&Option<i64>>| value.map_or("?".into(), |value| value.unwrap_or(-1).to_string());
        let row = |i| {
            let status = carried.statuses.get(i).map(|status: &Option<i32>| status.map(i64::from));
            let texts = [&carried.redirects, &carried.redirected_from, &carried.digests, &carried.charsets];
            let [redirect, from, digest, charset] = texts.map(|column| text(column, i));
            let texts = [&carried.mimes, &carried.detected_mimes, &carried.languages, &carried.filenames];
            let [mime, detected, languages, filename] = texts.map(|column| text(column, i));
            let [offset, length] = [&carried.capture_offsets, &carried.capture_lengths].map(|list| number(list.get(i)));
            let [time, status] = [number(carried.times.get(i)), number(status.as_ref())];
            [time, status, redirect, from, digest, charset, mime, detected, languages, filename, offset, length]
        };
        (0..rows.len()).map(row).collect::<Vec<_>>()
    };
    run_groups(sources(), &auto(2, 200, 100), &policy, encode).0.concat()
}

#[test]
fn fields_of_records_are_carried() {
    let nothing = ["-1", "-1", "", "", "", "", "", "", "", "", "-1", "-1"];
    let capture = |filename, offset, length| {
        move |row: [&'static str; 8]| {
            let [time, status, redirect, from, digest, charset, mime, detected] = row;
            let languages = if detected.is_empty() { "" } else { "eng,deu" };
            [time, status, redirect, from, digest, charset, mime, detected, languages, filename, offset, length]
        }
    };
    let (cdx, cdxj, log) =
        (capture("e.warc.gz", "333", "1043"), capture("f.warc.gz", "5", "77"), capture("", "-1", "-1"));
    let expected = [
        cdx(["1388718201000", "302", "http://example.org/b%20c", "", "B2LT", "", "text/html", ""]),
        nothing,
        cdx(["1388718202000", "200", "", "", "B2LT", "", "text/html", ""]),
        cdxj(["1390842720000", "301", "http://example.org/y", "", "B2LT", "UTF-8", "text/html", "text/plain"]),
        ["1390842721000", "-1", "", "", "", "", "", "", "", "", "-1", "-1"],
        log(["1308849128574", "200", "", "", "YIUO", "", "text/plain", ""]),
        log(["1308849129591", "-2", "", "http://example.org/q", "", "", "", ""]),
        nothing,
        nothing,
    ];
    assert_eq!(carried(FieldSet::ALL), expected);
    let times = carried(FieldSet { time: true, ..FieldSet::default() });
    assert!(times.iter().all(|row| row[0] != "?" && row[1..].iter().all(|text| text == "?")));
}

#[test]
fn a_requested_format_is_not_detected() {
    let out = run(pipe(CDX.as_bytes(), 100), &RunOptions { format: InputFormat::default(), ..options(1, 1000, 1000) });
    assert_eq!((out.rows.len(), out.summary.headers), (4, 0));
    let out = run(
        pipe(b"http://example.org/\n", 100),
        &RunOptions {
            format: InputFormat::named("cdxj", &FormatOptions::default()).unwrap(),
            ..options(1, 1000, 1000)
        },
    );
    assert_eq!(urls_and_faults(&out)[0].2.as_deref(), Some("not-of-format"));
}

const WARC: &str = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: <http://Example.org/a>\r\n\
    WARC-Date: 2014-01-03T03:03:21Z\r\nWARC-Payload-Digest: sha1:B2LT\r\nContent-Length: 61\r\n\r\n\
    HTTP/1.1 302 Found\r\nLocation: /b c\r\n\r\nbody body body body bod\r\n\r\n";

#[test]
fn archives_give_the_same_rows_compressed_or_not() {
    let text = WARC.repeat(50);
    let by_record: Vec<u8> = (0..50).flat_map(|_| gzip(WARC.as_bytes())).collect();
    let directory = tempfile::tempdir().unwrap();
    // Files of this length are mapped.
    let long = WARC.repeat(500);
    let path = crate::collect::file(&directory, "long", long.as_bytes());
    let whole = run(pipe(text.as_bytes(), 1 << 20), &auto(1, 1 << 20, 1 << 20));
    assert_eq!(
        (whole.rows.len(), whole.summary.bytes, whole.rows[3].offset),
        (50, text.len() as u64, 3 * WARC.len() as u64)
    );
    assert_eq!(whole.rows[0].uri, b"http://example.org/a");
    for (threads, row_group_len, chunk_len) in [(1, 1, 1), (3, 500, 100), (2, 1 << 20, 1 << 20)] {
        let options = auto(threads, row_group_len, chunk_len);
        assert!(run(pipe(&by_record, 13), &options).rows == whole.rows);
        let long = run(crate::collect::path(&path), &options);
        assert!(long.rows.len() == 500 && long.rows.starts_with(&whole.rows));
    }
}

#[test]
fn row_groups_of_archives_depend_only_on_the_records() {
    let text = many_records(300).concat();
    for row_group_len in [1, 700, 5_000, 1 << 20] {
        let parts = |threads, bytes: &[u8], step| {
            let out = run(pipe(bytes, step), &auto(threads, row_group_len, 100));
            assert_eq!(out.rows.len(), 300);
            out.parts
        };
        let expected = parts(1, text.as_bytes(), 1 << 20);
        assert!(row_group_len > 1 || expected.len() == 300);
        assert_eq!(parts(3, text.as_bytes(), 777), expected);
        assert_eq!(parts(2, &gzip(text.as_bytes()), 999), expected);
    }
}

#[test]
fn an_archive_record_that_is_too_long_is_a_fault() {
    let long = WARC.replace("http://Example.org/a", &format!("http://example.org/{}", "a".repeat(500)));
    let text = [WARC, &long, WARC].concat();
    let directory = tempfile::tempdir().unwrap();
    // The name of the file is no part of its records.
    let path = crate::collect::file(&directory, &"n".repeat(200), text.as_bytes());
    for (max_record_len, fault) in [(100, Some("too-long")), (600, None)] {
        let limited = RunOptions { max_record_len, ..auto(2, 1 << 20, 100) };
        for sources in [pipe(text.as_bytes(), 50), crate::collect::path(&path)] {
            let out = run(sources, &limited);
            assert_eq!((out.rows.len(), out.summary.input_errors.len()), (3, 0));
            let faults: Vec<_> = urls_and_faults(&out).into_iter().map(|row| row.2).collect();
            assert_eq!(faults, [None, fault.map(str::to_string), None]);
        }
    }
}

#[test]
fn the_index_of_a_zipnum_cluster_is_rejected() {
    let index = b"com,a)/ 20140127171200\tcdx-00000.gz\t0\t275\t1\ncom,b)/ 20140127171201\tcdx-00000.gz\t275\t99\t2\n";
    let out = run(pipe(index, 50), &auto(2, 1 << 20, 100));
    assert_eq!((out.rows.len(), out.summary.input_errors.len()), (0, 1));
    assert!(out.summary.input_errors[0].to_string().contains(".gz files"));
}

#[test]
fn a_truncated_archive_is_reported_and_keeps_complete_headers() {
    let text = WARC.repeat(3);
    let cut = &text[..text.len() - 20];
    for packed in [cut.as_bytes().to_vec(), gzip(cut.as_bytes())] {
        let out = run(pipe(&packed, 50), &auto(2, 100, 100));
        assert_eq!((out.rows.len(), out.summary.input_errors.len()), (3, 1));
        assert_eq!(out.rows[2].flags & irikey::iri::Flags::CUT.0, irikey::iri::Flags::CUT.0);
    }
    let packed = gzip(text.as_bytes());
    let out = run(pipe(&packed[..packed.len() - 30], 50), &auto(2, 100, 100));
    assert_eq!(out.summary.input_errors.len(), 1);
    assert!(out.summary.input_errors[0].to_string().contains("gzip data ends early"));
}

/// A capture: its file, its offset and length there, its URI and its media type.
type Place = (String, Option<(i64, i64)>, String, String);

/// Returns the positions of the captures of the archive at `path`.
fn places(path: &std::path::Path, options: &RunOptions) -> Vec<Place> {
    let policy = Policy { carry: FieldSet::ALL, ..policy() };
    let text = |texts: &irikey::canon::TextColumn, i: usize| String::from_utf8_lossy(texts.get(i)).into_owned();
    let encode = |rows: &mut Rows, _: &[SourceRun]| {
        let carried = &rows.carried;
        let row = |i: usize| {
            let place = carried.capture_offsets[i].zip(carried.capture_lengths[i]);
            (text(&carried.filenames, i), place, text(&rows.uri, i), text(&carried.mimes, i))
        };
        (0..rows.len()).map(row).collect::<Vec<_>>()
    };
    run_groups(crate::collect::path(path), options, &policy, encode).0.concat()
}

/// Returns WARC records of many lengths and types.
fn many_records(count: usize) -> Vec<String> {
    let record = |i: usize| {
        let kind = ["response", "revisit", "response", "resource", "metadata"][i % 5];
        let body = "x y z ".repeat(i * 7919 % 3000);
        let content = format!("HTTP/1.1 200 OK\r\nContent-Type: Text/html; a=b\r\n\r\n{body}{i}");
        let head =
            format!("WARC-Type: {kind}\r\nWARC-Target-URI: http://example.org/{i}\r\nContent-Type: a/{kind}; b\r\n");
        format!("WARC/1.0\r\n{head}Content-Length: {}\r\n\r\n{content}\r\n\r\n", content.len())
    };
    (0..count).map(record).collect()
}

#[test]
fn positions_of_captures_are_correct() {
    let directory = tempfile::tempdir().unwrap();
    let records = many_records(300);
    let plain: Vec<u8> = records.concat().into_bytes();
    // Records of random text between them, so that the file is long enough for several threads.
    let filler = |i: usize| {
        let mut random = Random(i as u64 + 1);
        (0..2_000).map(|_| format!("{:016x}", random.next())).collect::<String>()
    };
    let long = |(i, record): (usize, &String)| {
        let fill =
            format!("WARC/1.0\r\nWARC-Type: resource\r\nContent-Length: 30000\r\n\r\n{}\r\n\r\n", &filler(i)[..30_000]);
        [gzip(record.as_bytes()), gzip(fill.as_bytes())].concat()
    };
    let packed: Vec<u8> = records.iter().enumerate().flat_map(long).collect();
    assert!(packed.len() > 2 << 20);
    for (name, bytes, is_compressed) in [("a.warc", &plain, false), ("a.warc.gz", &packed, true)] {
        let path = crate::collect::file(&directory, name, bytes);
        let expected = places(&path, &auto(1, 1 << 20, 1 << 20));
        assert_eq!(expected.len(), if is_compressed { 600 } else { 300 });
        for (file, place, uri, mime) in expected.iter().filter(|(.., uri, _)| !uri.is_empty()) {
            let (offset, length) = place.expect("the capture has a position");
            let piece = &bytes[offset as usize..(offset + length) as usize];
            let mut text = Vec::new();
            if is_compressed {
                std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(piece), &mut text).unwrap();
            } else {
                text.extend_from_slice(piece);
            }
            let number: usize = uri.rsplit('/').next().unwrap().parse().unwrap();
            let kinds = ["Text/html", "warc/revisit", "Text/html", "a/resource", "a/metadata"];
            assert_eq!(*mime, kinds[number % 5]);
            // In an uncompressed file, the line ends after a record belong to no record.
            let record =
                records[number].strip_suffix("\r\n\r\n").filter(|_| !is_compressed).unwrap_or(&records[number]);
            assert!(text == record.as_bytes() && file.ends_with(name), "{uri}");
        }
        for (threads, row_group_len, chunk_len, mmap) in [(3, 5_000, 100, true), (2, 1 << 20, 1 << 20, false)] {
            let options = RunOptions { mmap, ..auto(threads, row_group_len, chunk_len) };
            assert!(places(&path, &options) == expected, "{name} {threads}");
        }
    }
}

#[test]
fn captures_that_share_a_gzip_member_have_no_position() {
    let directory = tempfile::tempdir().unwrap();
    let records = many_records(6);
    let pairs: Vec<u8> = records.chunks(2).flat_map(|pair| gzip(pair.concat().as_bytes())).collect();
    let whole = gzip(records.concat().as_bytes());
    for bytes in [pairs, whole] {
        let path = crate::collect::file(&directory, "b.warc.gz", &bytes);
        let places = places(&path, &auto(2, 1 << 20, 1 << 20));
        assert!(places.len() == 6 && places.iter().all(|(_, place, ..)| place.is_none()), "{places:?}");
    }
    // All records have a position except the truncated one.
    let packed: Vec<u8> = records.iter().flat_map(|record| gzip(record.as_bytes())).collect();
    let path = crate::collect::file(&directory, "c.warc.gz", &packed[..packed.len() - 20]);
    let found = places(&path, &auto(2, 1 << 20, 1 << 20));
    assert_eq!(
        found.iter().map(|(_, place, ..)| place.is_some()).collect::<Vec<_>>(),
        [true, true, true, true, true, false]
    );
}

/// Damages `bytes`: flips bits, writes other digits, and cuts the end off.
fn damaged(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.next() % 6 {
        let at = random.next() as usize % bytes.len();
        bytes[at] ^= 1 << (random.next() % 8);
    }
    let digit = |random: &mut Random| b'0' + (random.next() % 10) as u8;
    for _ in 0..random.next() % 6 {
        // A length that is wrong.
        let from = random.next() as usize % bytes.len();
        if let Some(at) = memchr::memmem::find(&bytes[from..], b"Content-Length: ").map(|at| from + at + 16)
            && at < bytes.len()
        {
            bytes[at] = digit(random);
        }
    }
    if random.next().is_multiple_of(3) {
        bytes.truncate(random.next() as usize % bytes.len());
    }
    bytes
}

#[test]
fn damaged_archives_give_the_same_rows_however_they_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let records = many_records(90);
    let plain = records.concat().into_bytes();
    assert!(plain.len() > 100_000, "long enough to be mapped");
    let mut random = Random(7);
    for variant in 0..60 {
        let text = damaged(&plain, &mut random);
        let is_by_member = variant % 2 == 1;
        let bytes = match is_by_member {
            false => text,
            true => records.iter().flat_map(|record| gzip(&damaged(record.as_bytes(), &mut random))).collect(),
        };
        let path = crate::collect::file(&directory, "d", &bytes);
        let expected = run(crate::collect::path(&path), &auto(1, 1 << 20, 1 << 20));
        let errors =
            |out: &Out| out.summary.input_errors.iter().map(|error| error.defect.to_string()).collect::<Vec<_>>();
        for (threads, row_group_len, mmap) in [(3, 3_000, true), (1, 1 << 20, false), (2, 700, false)] {
            let options = RunOptions { mmap, ..auto(threads, row_group_len, 100) };
            let step = 1 + random.next() as usize % 70_000;
            for out in [run(crate::collect::path(&path), &options), run(pipe(&bytes, step), &options)] {
                assert!(out.rows == expected.rows, "variant {variant}, step {step}, {options:?}");
                assert_eq!(errors(&out), errors(&expected), "variant {variant}, step {step}, {options:?}");
            }
        }
    }
}
