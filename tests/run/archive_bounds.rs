//! Where records of archives begin and end: headers that are too long, bytes that are no header, and lengths that are wrong. The
//! rows do not depend on how the archive is read.

use crate::collect::{Out, file, gzip, options, path, pipe, run};
use irikey::iri::Flags;
use irikey::record::{ArchiveRows, InputFormat};
use irikey::run::RunOptions;

/// Longest header of a record.
const MAX_HEADER_LEN: usize = 1 << 20;

/// A record with this content, whose header says `len`. No line ends follow the content.
fn record(url: &str, content: &str, len: usize) -> String {
    format!("WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: {url}\r\nContent-Length: {len}\r\n\r\n{content}")
}

/// A sound record and the line ends after it.
fn sound(url: &str) -> String {
    record(url, "body", 4) + "\r\n\r\n"
}

/// A header that is `len` bytes long.
fn header(len: usize) -> String {
    let fields = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://long/\r\nContent-Length: 0\r\nx: ";
    format!("{fields}{}\r\n\r\n", "x".repeat(len - fields.len() - 4))
}

/// `offset uri fault flags` of each row, then the damage.
fn shown(out: &Out) -> Vec<String> {
    let kind = |fault: &String| fault.split(' ').next().unwrap_or_default().to_string();
    let text = |row: &crate::collect::Row| {
        let fault = row.fault.as_ref().map(kind).unwrap_or_default();
        let flags = Flags(row.flags).names().collect::<Vec<_>>().join("+");
        format!("{} {} {fault} {flags}", row.offset, String::from_utf8_lossy(&row.uri))
    };
    let defect = |error: &irikey::input::InputError| error.defect.to_string().split(';').next().unwrap().to_string();
    out.rows.iter().map(text).chain(out.summary.input_errors.iter().map(defect)).collect()
}

/// Reads an archive as a mapped file, a file, and a pipe in several steps, also as one gzip member. Asserts that the rows
/// are the same.
fn read(rows: ArchiveRows, bytes: &[u8]) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let plain = file(&directory, "a.warc", bytes);
    let options = |mmap| RunOptions { mmap, format: InputFormat::Archive(rows), ..options(2, 1 << 20, 1 << 20) };
    let expected = shown(&run(path(&plain), &options(true)));
    assert_eq!(shown(&run(path(&plain), &options(false))), expected, "not mapped");
    for step in [9_001, 4 << 20] {
        assert_eq!(shown(&run(pipe(bytes, step), &options(false))), expected, "step {step}");
    }
    assert_eq!(shown(&run(pipe(&gzip(bytes), 1 << 20), &options(false))), expected, "in one member");
    expected
}

fn records(parts: &[&str]) -> Vec<String> {
    read(ArchiveRows::Records, parts.concat().as_bytes())
}

/// The rows of records of which each has a gzip member of its own.
fn members(parts: &[&str]) -> Vec<String> {
    let bytes: Vec<u8> = parts.iter().flat_map(|part| gzip(part.as_bytes())).collect();
    let options = RunOptions { format: InputFormat::Archive(ArchiveRows::Records), ..options(2, 1 << 20, 1 << 20) };
    let expected = shown(&run(pipe(&bytes, 1 << 20), &options));
    assert_eq!(shown(&run(pipe(&bytes, 33), &options)), expected);
    expected
}

#[test]
fn a_header_may_have_a_mebibyte() {
    let (first, last) = (sound("http://a/"), sound("http://b/"));
    let at = first.len();
    let rows = |len: usize, row: &str| {
        let end = at + len;
        assert_eq!(
            records(&[&first, &header(len), &last]),
            ["0 http://a/  ".to_string(), format!("{at} {row} "), format!("{end} http://b/  ")],
            "{len}"
        );
    };
    rows(MAX_HEADER_LEN - 1, "http://long/ ");
    rows(MAX_HEADER_LEN, "http://long/ ");
    rows(MAX_HEADER_LEN + 1, " too-long");
    rows(MAX_HEADER_LEN + 9, " too-long");
}

#[test]
fn a_line_that_is_too_long_is_a_header_or_stray() {
    let (first, last) = (sound("http://a/"), sound("http://b/"));
    let at = first.len();
    for (begin, len) in [("WARC/1.0", MAX_HEADER_LEN), ("WARC/1.0", 2 * MAX_HEADER_LEN + 7)] {
        let line = format!("{begin}{}\r\n", "x".repeat(len));
        let end = at + line.len();
        let expected = ["0 http://a/  ".to_string(), format!("{at}  too-long "), format!("{end} http://b/  ")];
        assert_eq!(records(&[&first, &line, &last]), expected);
    }
    let line = format!("{}\n", "x".repeat(MAX_HEADER_LEN + 5));
    let end = at + line.len();
    let expected = [
        "0 http://a/  ".to_string(),
        format!("{end} http://b/  stray-bytes"),
        format!(
            "{} bytes in 1 place belong to no record and were skipped, first at byte {at} (after decompression)",
            line.len()
        ),
    ];
    assert_eq!(records(&[&first, &line, &last]), expected);
}

/// The content of a record contains what may be a record, and its length is right if a header follows.
#[test]
fn the_length_of_a_record_is_checked_by_what_follows() {
    let inner = record("http://inner/", "", 0);
    for end in ["x", "\n"] {
        let content = format!("{inner}{end}");
        let outer = record("http://outer/", &content, content.len());
        let inner_at = outer.len() - content.len();
        let whole = |next: &str| vec!["0 http://outer/  ".to_string(), format!("{} {next}", outer.len())];
        // A header that is too long is a header.
        assert_eq!(records(&[&outer, "\r\n", &header(MAX_HEADER_LEN + 1)])[..1], whole("")[..1]);
        let line = format!("{}\n", "y".repeat(MAX_HEADER_LEN + 5));
        let cut = records(&[&outer, "\r\n", &line, &sound("http://b/")]);
        assert_eq!(cut[..2], ["0 http://outer/  cut".to_string(), format!("{inner_at} http://inner/  ")]);
        assert!(cut[2].ends_with("http://b/  stray-bytes") && cut.len() == 4, "{cut:?}");
        // A header begins after a line end.
        let next = records(&[&outer, &sound("http://b/")]);
        if end == "\n" {
            assert_eq!(next, whole("http://b/  "));
        } else {
            assert_eq!(next[..2], ["0 http://outer/  cut".to_string(), format!("{inner_at} http://inner/  ")]);
        }
        assert_eq!(records(&[&outer, "\r\n\r\n", &sound("http://b/")])[0], whole("")[0]);
    }
}

/// A record with a gzip member of its own ends with it, whatever it contains; otherwise its content is searched for a header.
#[test]
fn a_length_that_is_too_long_ends_with_the_member_or_at_a_header() {
    let content = format!("text\r\n{}", record("http://inner/", "", 0));
    let wrong = record("http://outer/", &content, content.len() + 60) + "\r\n\r\n";
    let (first, last) = (sound("http://a/"), sound("http://b/"));
    let (at, inner_at) = (
        first.len(),
        first.len() + wrong.find("WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://inner/").unwrap(),
    );
    let end = at + wrong.len();
    let damage =
        |at: usize| format!("1 record is shorter than stated in the header, first at byte {at} (after decompression)");
    assert_eq!(
        members(&[&first, &wrong, &last]),
        ["0 http://a/  ".to_string(), format!("{at} http://outer/  cut"), format!("{end} http://b/  "), damage(end)]
    );
    assert_eq!(
        records(&[&first, &wrong, &last]),
        [
            "0 http://a/  ".to_string(),
            format!("{at} http://outer/  cut"),
            format!("{inner_at} http://inner/  "),
            format!("{end} http://b/  "),
            damage(inner_at)
        ]
    );
}

/// The links of a page come before the record with the long header that follows.
#[test]
fn a_long_header_follows_a_page() {
    let json = r#"{"Envelope":{"Payload-Metadata":{"HTTP-Response-Metadata":{"HTML-Metadata":{"Links":[{"url":"1"},{"url":"2"}]}}}}}"#;
    let page = record("http://a/", json, json.len()).replace("resource", "metadata") + "\r\n\r\n";
    let bytes = [&page, &header(MAX_HEADER_LEN + 1), &page].map(|part| part.as_bytes()).concat();
    let (at, end) = (page.len(), page.len() + MAX_HEADER_LEN + 1);
    let row = |at: usize, row: &str| format!("{at} {row} ");
    let links = |at: usize| [row(at, "http://a/1 "), row(at, "http://a/2 ")];
    let expected = [&links(0)[..], &[row(at, " too-long")], &links(end)].concat();
    assert_eq!(read(ArchiveRows::Links, &bytes), expected);
}
