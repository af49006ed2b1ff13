//! ZIP archives and WACZ packages: members are sources, their bytes are those of the file that was compressed, and what cannot be
//! read is reported.

use std::fs;
use std::io::Write;

use crate::collect::{Out, gzip, lines, run, sample};
use irikey::input::{Sources, list};
use irikey::run::RunOptions;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// A member to be written; the fields after the content can be wrong.
#[derive(Clone)]
struct Member {
    name: String,
    method: u16,
    packed: Vec<u8>,
    crc: u32,
    len: u64,
    flags: u16,
    /// Lengths are written in the ZIP64 field.
    is_zip64: bool,
    /// The name in the member's own header.
    own_name: String,
    /// The member's own header, if it is written elsewhere.
    header_at: Option<u64>,
}

fn member(name: &str, method: u16, content: &[u8]) -> Member {
    let mut crc = flate2::Crc::new();
    crc.update(content);
    // A gzip member has 10 bytes before the deflated data and 8 bytes after it.
    let packed = if method == DEFLATED {
        gzip(content)[10..].split_last_chunk::<8>().unwrap().0.to_vec()
    } else {
        content.to_vec()
    };
    Member {
        name: name.to_string(),
        method,
        packed,
        crc: crc.sum(),
        len: content.len() as u64,
        flags: 0,
        is_zip64: false,
        own_name: name.to_string(),
        header_at: None,
    }
}

impl Member {
    /// Version, flags, method, time, checksum, lengths, and lengths of name and ZIP64 field.
    fn fixed(&self, is_own: bool) -> Vec<u8> {
        let is_later = is_own && self.flags & 8 != 0;
        let lens = match (is_later, self.is_zip64) {
            (true, _) => [0, 0],
            (_, true) => [u32::MAX; 2],
            _ => [self.packed.len() as u32, self.len as u32],
        };
        let numbers = [20u16, self.flags, self.method, 0, 0x21].map(u16::to_le_bytes).concat();
        let crc = if is_later { 0 } else { self.crc };
        [numbers, [crc, lens[0], lens[1]].map(u32::to_le_bytes).concat()].concat()
    }

    fn zip64(&self, is_own: bool) -> Vec<u8> {
        if !self.is_zip64 || is_own && self.flags & 8 != 0 {
            return Vec::new();
        }
        let lens = [self.len, self.packed.len() as u64].map(u64::to_le_bytes).concat();
        [vec![1, 0, 16, 0], lens].concat()
    }

    fn descriptor(&self) -> Vec<u8> {
        if self.flags & 8 == 0 {
            return Vec::new();
        }
        let crc = [b"PK\x07\x08".to_vec(), self.crc.to_le_bytes().to_vec()].concat();
        let lens = [self.packed.len() as u64, self.len];
        let lens = if self.is_zip64 {
            lens.map(u64::to_le_bytes).concat()
        } else {
            lens.map(|len| (len as u32).to_le_bytes()).concat()
        };
        [crc, lens].concat()
    }
}

/// Writes an archive.
fn zip(members: &[Member]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for member in members {
        let (own, extra) = (member.zip64(true), member.zip64(false));
        let at = member.header_at.unwrap_or(bytes.len() as u64) as u32;
        if member.header_at.is_none() {
            bytes.extend([b"PK\x03\x04".to_vec(), member.fixed(true)].concat());
            bytes.extend([member.own_name.len() as u16, own.len() as u16].map(u16::to_le_bytes).concat());
            bytes.extend([member.own_name.as_bytes(), &own, &member.packed, &member.descriptor()].concat());
        }
        directory.extend([b"PK\x01\x02".to_vec(), vec![20, 3], member.fixed(false)].concat());
        directory.extend([member.name.len() as u16, extra.len() as u16, 0, 0, 0, 0, 0].map(u16::to_le_bytes).concat());
        directory.extend([at.to_le_bytes().as_slice(), member.name.as_bytes(), &extra].concat());
    }
    let start = bytes.len() as u32;
    bytes.extend(&directory);
    let count = members.len() as u16;
    bytes.extend([b"PK\x05\x06".to_vec(), [0, 0, count, count].map(u16::to_le_bytes).concat()].concat());
    bytes.extend([directory.len() as u32, start].map(u32::to_le_bytes).concat());
    bytes.extend([0, 0]);
    bytes
}

/// One gzip member whose data is not compressed, so that it is long.
fn gzip_stored(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn auto(threads: usize, mmap: bool) -> RunOptions {
    RunOptions { mmap, ..crate::collect::auto(threads, 30_000, 3_000) }
}

/// Writes an archive to a file, and reads it by this argument after its name.
fn read(bytes: &[u8], argument: &str, options: &RunOptions) -> (Vec<String>, Out) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.zip");
    fs::write(&path, bytes).unwrap();
    let sources = list(&[format!("{}{argument}", path.display())]).unwrap();
    let prefix = format!("{}/", directory.path().display());
    let names = sources.names().iter().map(|name| name.replace(&prefix, "")).collect();
    (names, run(sources, options))
}

/// The rows of an archive, read in every way.
fn read_all(bytes: &[u8], argument: &str) -> (Vec<String>, Out) {
    let (names, expected) = read(bytes, argument, &auto(1, true));
    for (threads, mmap) in [(1, false), (3, true), (3, false)] {
        let (other_names, out) = read(bytes, argument, &auto(threads, mmap));
        assert_eq!(other_names, names);
        assert!(out.rows == expected.rows, "{threads} {mmap}");
        let errors = |out: &Out| out.summary.input_errors.iter().map(without_directory).collect::<Vec<_>>();
        assert_eq!(errors(&out), errors(&expected), "{threads} {mmap}");
    }
    (names, expected)
}

fn without_directory(error: &irikey::input::InputError) -> String {
    error.to_string().split_once("x.zip").unwrap().1.to_string()
}

fn errors(out: &Out) -> Vec<String> {
    out.summary.input_errors.iter().map(without_directory).collect()
}

fn uris(out: &Out) -> Vec<&str> {
    out.rows.iter().map(|row| std::str::from_utf8(&row.uri).unwrap()).collect()
}

#[test]
fn members_are_sources_with_names() {
    let members = [
        member("b.txt", STORED, b"http://b/\n"),
        member("d/", STORED, b""),
        member("d/a.csv", DEFLATED, b"id,url\n1,http://a/\n"),
        member("__MACOSX/b.txt", STORED, b"not read\n"),
        member("empty", STORED, b""),
        Member { flags: 8, ..member("later", DEFLATED, b"http://c/\n") },
        Member { is_zip64: true, ..member("long", DEFLATED, b"http://d/\n") },
        Member { flags: 8, is_zip64: true, ..member("both", STORED, b"http://e/\n") },
    ];
    let bytes = zip(&members);
    let (names, out) = read_all(&bytes, "");
    assert_eq!(names, ["x.zip!b.txt", "x.zip!d/a.csv", "x.zip!empty", "x.zip!later", "x.zip!long", "x.zip!both"]);
    assert_eq!(uris(&out), ["http://b/", "http://a/", "http://c/", "http://d/", "http://e/"]);
    assert_eq!((errors(&out), &out.summary.source_records[..]), (vec![], &[1, 1, 0, 1, 1, 1][..]));
    assert_eq!(read_all(&bytes, "!d/*").0, ["x.zip!d/a.csv"]);
    assert_eq!(read_all(&bytes, "!__MACOSX/b.txt").0, ["x.zip!__MACOSX/b.txt"]);
    assert_eq!(read_all(&[&b"PK\x05\x06"[..], &[0; 18]].concat(), "").1.summary.input_errors.len(), 1);
}

#[test]
fn a_name_that_no_member_has_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("x.zip");
    fs::write(&path, zip(&[member("b.txt", STORED, b"http://b/\n")])).unwrap();
    let error = |name: &str| list(&[path.parent().unwrap().join(name)]).unwrap_err().to_string();
    assert!(
        error("x.zip!c").ends_with("x.zip!c: no member has this name; the members are: b.txt"),
        "{}",
        error("x.zip!c")
    );
    let names: Vec<String> = (0..23).map(|i| format!("f{i}")).collect();
    let members: Vec<_> = names.iter().map(|name| member(name, STORED, b"http://b/\n")).collect();
    fs::write(path.parent().unwrap().join("many.zip"), zip(&members)).unwrap();
    assert!(error("many.zip!c").ends_with(", f18, f19, and 3 more"), "{}", error("many.zip!c"));
    assert!(error("y.zip!c").contains("cannot open"));
    // A file of this name counts.
    fs::write(path.parent().unwrap().join("x.zip!b.txt"), "http://other/\n").unwrap();
    let out = run(list(&[path.parent().unwrap().join("x.zip!b.txt")]).unwrap(), &auto(1, true));
    assert_eq!(uris(&out), ["http://other/"]);
}

/// A package gives its captures once, with their positions in their own file.
#[test]
fn captures_of_a_package() {
    let directory = tempfile::tempdir().unwrap();
    let warc = sample("crawl.warc.gz");
    let path = directory.path().join("crawl.warc.gz");
    fs::write(&path, &warc).unwrap();
    let alone = run(list(&[&path]).unwrap(), &auto(1, true));
    for method in [STORED, DEFLATED] {
        let package = zip(&[
            member("pages/pages.jsonl", DEFLATED, b"{\"format\": \"json-pages-1.0\"}\n{\"url\": \"http://p/\"}\n"),
            member("archive/crawl.warc.gz", method, &warc),
            member("archive/README.txt", STORED, b"http://no-capture/\n"),
            member("more/crawl.warc.gz", STORED, &warc),
            member("indexes/index.cdxj", STORED, &sample("crawl.cdxj")),
            member("datapackage.json", STORED, b"{}"),
        ]);
        let (names, out) = read_all(&package, "");
        assert_eq!(names, ["x.zip!archive/crawl.warc.gz"]);
        assert_eq!((out.rows.len(), alone.rows.len(), errors(&out)), (335, 335, vec![]));
        assert!(out.rows == alone.rows);
        let (_, pages) = read_all(&package, "!pages/*");
        assert_eq!((uris(&pages), pages.summary.headers), (vec!["http://p/"], 1));
        let (_, index) = read_all(&package, "!indexes/index.cdxj");
        assert_eq!(index.rows.len(), 335);
    }
}

#[test]
fn long_members_are_read_by_several_threads() {
    let text = lines(1_800_000);
    let members: Vec<u8> = text.chunks(20_000).flat_map(gzip_stored).collect();
    let archive = |content: &[u8], crc_error: u32| {
        let mut stored = member("a.gz", STORED, content);
        stored.crc ^= crc_error;
        zip(&[member("first", STORED, b"http://first/\n"), stored])
    };
    let (_, sound) = read_all(&archive(&members, 0), "!a.gz");
    let (_, plain) = read_all(&zip(&[member("a", DEFLATED, &text)]), "");
    assert!(members.len() > 1_800_000, "{}", members.len());
    assert_eq!(errors(&sound), [""; 0]);
    assert!(sound.rows.len() == plain.rows.len() && sound.rows.iter().zip(&plain.rows).all(|(a, b)| a.uri == b.uri));
    let (_, wrong) = read_all(&archive(&members, 1), "!a.gz");
    assert!(wrong.rows == sound.rows && errors(&wrong)[0].contains("checksum"), "{:?}", errors(&wrong));
    let (_, cut) = read_all(&archive(&members[..members.len() - 100], 1), "!a.gz");
    assert!(
        cut.rows.len() < sound.rows.len() && errors(&cut)[0].contains("gzip data ends early"),
        "{:?}",
        errors(&cut)
    );
}

#[test]
fn what_cannot_be_read_is_reported() {
    let text = b"http://a/\n".repeat(100);
    let sound = member("a", DEFLATED, &text);
    let stored = member("a", STORED, &text);
    let other = |change: fn(&mut Member)| {
        let mut member = sound.clone();
        change(&mut member);
        member
    };
    let all = text.len() / 10;
    let cases = [
        (other(|m| m.flags = 1), 0, "encrypted"),
        (other(|m| m.method = 12), 0, "BZIP2"),
        (other(|m| m.method = 77), 0, "method 77"),
        (other(|m| m.own_name = "b".to_string()), 0, "names"),
        (other(|m| m.crc ^= 1), all, "checksum of a member differs"),
        (other(|m| m.len += 1), all, "length of a member differs"),
        (other(|m| m.len -= 10), all - 1, "longer than the directory"),
        (other(|m| m.packed.truncate(10)), 0, "deflated data"),
        (Member { crc: stored.crc ^ 1, ..stored.clone() }, all, "checksum of the member differs"),
        (Member { len: 5, ..stored.clone() }, 0, "lengths before and after decompression"),
    ];
    for (member, rows, message) in cases {
        let archive = zip(&[member, super::zip::member("z", STORED, b"http://z/\n")]);
        let (_, out) = read_all(&archive, "");
        assert!(errors(&out).len() == 1 && errors(&out)[0].contains(message), "{message}: {:?}", errors(&out));
        assert!(out.rows.len() <= rows + 1 && out.rows.len() >= rows, "{message}: {}", out.rows.len());
        assert_eq!(uris(&out).last(), Some(&"http://z/"), "{message}");
    }
}

#[test]
fn members_that_overlap_are_read_once() {
    let first = member("a", STORED, b"http://a/\n");
    let again = Member { name: "b".to_string(), header_at: Some(0), ..first.clone() };
    let (_, out) = read_all(&zip(&[first.clone(), again]), "");
    assert_eq!((uris(&out), errors(&out).len()), (vec!["http://a/"], 1));
    let again = Member { header_at: Some(0), ..first.clone() };
    let (_, out) = read_all(&zip(&[first, again]), "");
    assert!(uris(&out) == ["http://a/"] && errors(&out)[0].contains("shares bytes"), "{:?}", errors(&out));
    let mut long = member("a", STORED, b"http://a/\n");
    long.packed = vec![b'x'; 10];
    long.len = 10;
    let mut bytes = zip(&[long]);
    // The lengths claim bytes of the directory.
    for at in [18, 22, 41 + 20, 41 + 24] {
        bytes[at] = 60;
    }
    let (_, out) = read_all(&bytes, "");
    assert!(out.rows.is_empty() && errors(&out)[0].contains("shares bytes"), "{:?}", errors(&out));
}

/// Lengths of headers without names.
const HEADER_LEN: usize = 30;
const ENTRY_LEN: usize = 46;
const END_LEN: usize = 22;

#[test]
fn headers_that_differ_from_the_directory_are_reported() {
    let sound = zip(&[member("a", STORED, b"http://a/\n")]);
    let end = sound.len() - END_LEN;
    let cases = [
        (6, "methods"),
        (8, "methods"),
        (14, "checksums"),
        (18, "lengths"),
        (22, "lengths"),
        (HEADER_LEN, "names"),
        (end + 10, "has 1 members, but states 0"),
    ];
    for (at, message) in cases {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        let (_, out) = read_all(&bytes, "");
        assert!(out.rows.is_empty() && errors(&out)[0].contains(message), "{message}: {:?}", errors(&out));
    }
}

/// The members may be in another order than the directory.
#[test]
fn members_have_the_order_of_the_directory() {
    let mut bytes = zip(&[member("a", STORED, b"http://a/\n"), member("b", STORED, b"http://b/\n")]);
    let end = bytes.len() - END_LEN;
    bytes[end - 2 * (ENTRY_LEN + 1)..end].rotate_left(ENTRY_LEN + 1);
    let (names, out) = read_all(&bytes, "");
    assert_eq!(
        (names, uris(&out)),
        (vec!["x.zip!b".to_string(), "x.zip!a".to_string()], vec!["http://b/", "http://a/"])
    );
    assert_eq!(errors(&out), [""; 0]);
}

#[test]
fn archives_in_archives_pipes_and_packings_are_refused() {
    let inner = zip(&[member("a", STORED, b"http://a/\n")]);
    let (_, out) = read_all(&zip(&[member("inner.zip", STORED, &inner), member("b", STORED, b"http://b/\n")]), "");
    assert!(uris(&out) == ["http://b/"] && errors(&out)[0].contains("within another file"), "{:?}", errors(&out));
    let piped = run(crate::collect::pipe(&inner, 100), &auto(1, true));
    assert!(piped.summary.input_errors[0].to_string().contains("from a pipe"));
    let office = zip(&[member("[Content_Types].xml", DEFLATED, b"<?xml version=\"1.0\"?>")]);
    assert!(errors(&read_all(&office, "").1)[0].contains("Office"));
    assert_eq!(read_all(&office, "!*.xml").0, ["x.zip![Content_Types].xml"]);
}

/// Whatever happens to an archive, it is read without a panic, and what was found before the damage stays.
#[test]
fn every_change_of_a_byte_gives_rows_or_an_error() {
    let archive = zip(&[
        member("a", STORED, &b"http://a/\n".repeat(5)),
        Member { is_zip64: true, flags: 8, ..member("b", DEFLATED, &b"http://b/\n".repeat(5)) },
        member("c", STORED, &gzip(&b"http://c/\n".repeat(5))),
    ]);
    let sound = read(&archive, "", &auto(1, true)).1;
    assert_eq!(sound.rows.len(), 15);
    for at in 4..archive.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = archive.clone();
            changed[at] ^= change;
            let (_, out) = read(&changed, "", &auto(1, true));
            let same = out.rows.len() == 15 && out.rows.iter().zip(&sound.rows).all(|(a, b)| a.uri == b.uri);
            assert!(same || !out.summary.input_errors.is_empty(), "{at} {change}");
        }
    }
    for len in 4..archive.len() {
        let (_, out) = read(&archive[..len], "", &auto(1, true));
        assert_eq!((out.rows.len(), out.summary.input_errors.len()), (0, 1), "{len}");
    }
}

/// The sources of a directory with an archive.
#[test]
fn archives_in_a_directory_are_expanded() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("b.zip"), zip(&[member("y", STORED, b"http://y/\n")])).unwrap();
    fs::write(directory.path().join("a.txt"), "http://a/\n").unwrap();
    fs::write(directory.path().join("c.zip"), b"PK\x03\x04 cut short").unwrap();
    let sources: Sources = list(&[directory.path()]).unwrap();
    let out = run(sources, &auto(2, true));
    assert_eq!((uris(&out), out.summary.input_errors.len()), (vec!["http://a/", "http://y/"], 1));
}
