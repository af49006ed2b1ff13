//! Members of ZIP and WACZ archives in stores, which are read by ranges.

use super::server::{Fault, Server};
use super::{faults, irikey_at, sample, stderr};
use crate::zip;

#[test]
fn members_are_sources() {
    // As long as many blocks, so that a request for all of it would be seen.
    let other: Vec<u8> = (0..300_000).map(|at| faults::random(1, at) as u8).collect();
    let archive = zip(&[
        ("datapackage.json", b"{}".to_vec()),
        ("archive/a.warc.gz", sample("crawl.warc.gz")),
        ("pages/pages.jsonl", other),
        ("archive/b.warc.gz", sample("crawl.warc.gz")),
        ("urls.txt", b"http://a/\n".to_vec()),
    ]);
    let directory = tempfile::tempdir().unwrap();
    let local = directory.path().join("a.wacz");
    std::fs::write(&local, &archive).unwrap();
    let objects = || [("/b/a.wacz".to_string(), archive.clone()), ("/b/x.zip".to_string(), b"http://x/\n".to_vec())];
    let quiet = Server::start([], |_, _| Fault::None);
    let flags = ["canon", "-q", "--output-format", "csv", "--columns", "uri,source,record"];
    for members in ["", "!urls.txt", "!archive/*", "!archive/b.warc.gz"] {
        let expected = irikey_at(&quiet, &[&flags[..], &[&format!("{}{members}", local.display())]].concat(), &[]);
        assert_eq!(expected.status.code(), Some(0), "{}", stderr(&expected));
        let server = Server::start(objects(), faults::transient(7));
        for place in ["s3://b".to_string(), format!("http://{}/b", server.address)] {
            let ran = irikey_at(&server, &[&flags[..], &[&format!("{place}/a.wacz{members}")]].concat(), &[]);
            let expected = String::from_utf8(expected.stdout.clone()).unwrap();
            let expected = expected.replace(&local.display().to_string(), &format!("{place}/a.wacz"));
            assert_eq!(
                (String::from_utf8(ran.stdout.clone()).unwrap(), ran.status.code()),
                (expected, Some(0)),
                "{}",
                stderr(&ran)
            );
        }
    }
    let server = Server::start(objects(), |_, _| Fault::None);
    // A list names archives as an argument does.
    let list = directory.path().join("list");
    std::fs::write(&list, "s3://b/a.wacz\ns3://b/x.zip\n").unwrap();
    let listed = irikey_at(&server, &[&flags[..], &[&format!("@{}", list.display())]].concat(), &[]);
    let named = irikey_at(&server, &[&flags[..], &["s3://b/a.wacz", "s3://b/x.zip"]].concat(), &[]);
    assert!(listed.status.success() && listed.stdout == named.stdout, "{}", stderr(&listed));
    // A name alone makes no archive.
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/x.zip"], &[]);
    assert_eq!((&ran.stdout[..], ran.status.code()), (&b"http://x/\n"[..], Some(0)), "{}", stderr(&ran));
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/a.wacz!nothing"], &[]);
    let message = stderr(&ran);
    assert!(
        ran.status.code() == Some(4) && message.contains("s3://b/a.wacz!nothing") && message.contains("urls.txt"),
        "{message}"
    );
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/y.wacz!x"], &[]);
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("no such object"), "{}", stderr(&ran));
    // A damaged member: the rows before the damage, and a defect.
    let mut damaged = archive.clone();
    let at = archive.windows(9).rposition(|part| part == b"http://a/").unwrap();
    damaged[at + 7] = b'b';
    let server = Server::start([("/b/a.wacz".to_string(), damaged)], |_, _| Fault::None);
    let ran = irikey_at(&server, &["canon", "-q", "s3://b/a.wacz!urls.txt"], &[]);
    assert!(ran.status.code() == Some(4) && stderr(&ran).contains("checksum"), "{}", stderr(&ran));
}

/// A long member is decompressed by several threads, and its checksum is compared.
#[test]
fn long_members_give_the_same_rows() {
    let (text, packed) = faults::long_gzip_file();
    let archive = zip(&[("a.txt", b"http://a/\n".to_vec()), ("x.txt.gz", packed.clone()), ("z.txt", text.clone())]);
    let mut damaged = archive.clone();
    // The checksum in the header and in the directory.
    let mut crc = flate2::Crc::new();
    crc.update(&packed);
    for at in (0..archive.len() - 4).filter(|&at| archive[at..at + 4] == crc.sum().to_le_bytes()) {
        damaged[at] ^= 1;
    }
    for (archive, status) in [(archive, 0), (damaged, 4)] {
        for (block_size, threads) in
            [("block_size=100000", "2"), ("block_size=300000", "3"), ("block_size=300000", "1")]
        {
            let server = Server::start([("/b/a.zip".to_string(), archive.clone())], faults::transient(8));
            let flags = ["canon", "-q", "-j", threads, "--store-option", block_size, "s3://b/a.zip!x*"];
            let ran = irikey_at(&server, &flags, &[]);
            assert!(ran.stdout == text && ran.status.code() == Some(status), "{}", stderr(&ran));
            assert!(status == 0 || stderr(&ran).contains("checksum"), "{}", stderr(&ran));
        }
    }
}

/// In a store, `?` and `#` are part of a name; in an address on a server, they end it.
#[test]
fn archives_are_recognized_by_names_with_marks() {
    let archive = zip(&[("m.txt", b"http://a/\n".to_vec())]);
    let objects = ["/b/dir/a?b.zip", "/b/dir/c#d.zip", "/b/dir/e.zip"].map(|name| (name.to_string(), archive.clone()));
    let server = Server::start(objects, |_, _| Fault::None);
    let address = format!("http://{}/b/dir/e.zip", server.address);
    for (input, count) in [
        ("s3://b/dir/".to_string(), 3),
        ("s3://b/dir/a?b.zip!m.txt".to_string(), 1),
        ("s3://b/dir/c#d.zip!m.txt".to_string(), 1),
        (format!("{address}?q=1#x"), 1),
        (format!("{address}#x"), 1),
        (format!("{address}#x!m.txt"), 1),
    ] {
        let ran = irikey_at(&server, &["canon", "-q", &input], &[]);
        let rows = String::from_utf8(ran.stdout.clone()).unwrap();
        assert_eq!((rows, ran.status.code()), ("http://a/\n".repeat(count), Some(0)), "{input}: {}", stderr(&ran));
    }
}
