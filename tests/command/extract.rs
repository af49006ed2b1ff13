//! `extract`: sitemaps, feeds, robots.txt and lists as files; columns and formats of the rows.

use super::{irikey, printed};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::process::Stdio;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
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
    assert_eq!(lines[1], format!("/x,http://H/,UTF-8,a,href,9,-,,,http://H/,{uri},{key},"));
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
