//! Fields that only indexes have: the digest of the payload, and the method and body of the request.

use super::*;
use sha1::{Digest, Sha1};

#[test]
fn digests_of_payloads_without_one() {
    let of = |kind: &str, url: &str, more: &str, content: &str| {
        record(&format!("WARC-Type: {kind}\r\nWARC-Target-URI: {url}{more}"), content)
    };
    let no_length = |kind: &str| format!("WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.org/\r\n\r\n");
    let http = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let records = [
        // The payload as it was transferred, without the header.
        (of("response", "http://a.org/", "", http), "sha1:FPKJFAEPEIMEFSS2G2SDNSN5YKX3N5JX"),
        (of("response", "http://a.org/", "\r\nWARC-Payload-Digest: sha256:x", http), "sha256:x"),
        // Of other schemes, the whole content.
        (of("response", "dns:a.org", "", "5\r\nhello\r\n0\r\n\r\n"), "sha1:FPKJFAEPEIMEFSS2G2SDNSN5YKX3N5JX"),
        (of("resource", "http://a.org/", "", "x\n\ny"), "sha1:IP5CYE6DMZGU2EZACRRPFN6D75NL26D6"),
        (of("revisit", "http://a.org/", "", http), ""),
        // Without a body, and without a blank line.
        (of("response", "http://a.org/", "", "HTTP/1.1 200 OK\r\n\r\n"), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
        (of("response", "http://a.org/", "", "HTTP/1.1 200 OK"), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
        (of("resource", "http://a.org/", "", ""), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
        (of("response", "http://a.org/", "", ""), "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"),
        // Where the payload begins or ends is not known.
        (of("response", "http://a.org/", "", &format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\nx", "x".repeat(256 << 10))), ""),
        (no_length("response"), ""),
        (no_length("resource"), ""),
    ];
    let mut text: String = records.iter().map(|(text, _)| &text[..]).collect();
    let mut expected: Vec<&str> = records.iter().map(|(_, digest)| *digest).collect();
    // The payload is not whole.
    text += &of("resource", "http://a.org/", "", "0123456789")[..85];
    expected.push("");
    for step in [0, 1, 2, 7, 50, 10_000] {
        let fields = index_fields(text.as_bytes(), step);
        assert_eq!(fields.iter().map(|[digest, ..]| &digest[..]).collect::<Vec<_>>(), expected, "{step}");
    }
}

#[test]
fn a_digest_of_a_wrong_length_is_not_made() {
    let text = with_wrong_length(300).concat();
    for step in [0, 1, 64, 10_000] {
        let digests = index_fields(text.as_bytes(), step).into_iter().map(|[digest, ..]| !digest.is_empty());
        assert_eq!(digests.collect::<Vec<_>>(), (0..10).map(|i| i != 3).collect::<Vec<_>>(), "{step}");
    }
}

/// A record that ends before its stated end is not hashed up to there: its length may be that of all records that follow.
#[test]
fn no_byte_is_hashed_for_several_records() {
    let header = "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://h/\r\nContent-Length: 30000000\r\n\r\n";
    let response = "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://h/\r\nContent-Length: 30000000\r\n\r\n";
    let arc = "http://h/ 192.0.2.1 20140216050221 a/b 30000000\n";
    let shapes = [
        format!("{header}x\r\n\r\n"),
        // Lines that begin like a header, and are none.
        format!("{header}x\nWARC/\n\nWARC/1.0\n\nx\r\n\r\n"),
        format!("{response}HTTP/1.1 200 OK\r\n\r\nx\r\n\r\n"),
        format!("{response}HTTP/1.1 200 OK\r\nx\r\n"),
        format!("{arc}HTTP/1.1 200 OK\r\n\r\nx\n"),
        format!("{arc}HTTP/1.1 200 OK\r\nx\nhttp:\n"),
    ];
    for (shape, step) in shapes.iter().flat_map(|shape| [0, 1, 64, 10_000].map(|step| (shape, step))) {
        let text = shape.repeat(300);
        let (fields, parser) = parse_for_index(text.as_bytes(), step);
        assert_eq!(fields.len(), 300, "{step} {shape}");
        assert!(fields.iter().all(|[digest, ..]| digest.is_empty()), "{step} {shape}");
        let hashed_len = parser.payload.hashed_len;
        assert!(hashed_len <= text.len() as u64, "{hashed_len} of {} bytes: {step} {shape}", text.len());
    }
}

/// The digest of a record that is as long as stated covers lines that look like headers.
#[test]
fn digests_cover_headers_within_payloads() {
    let header = |kind: &str| format!("WARC-Type: {kind}\r\nWARC-Target-URI: http://h/");
    let lines =
        "x\nWARC/\nWARC/1.0\r\nWARC-Type: x\r\nContent-Length: 0\r\n\r\nhttp://h/ 192.0.2.1 20140216050221 a/b 1\ny";
    let arc = |content: &str| format!("http://h/ 192.0.2.1 20140216050221 a/b {}\n{content}\n", content.len());
    let http = "HTTP/1.1 200 OK\r\n\r\n";
    // Within an HTTP header that is not whole.
    let http_lines = format!("HTTP/1.1 200 OK\nWARC/1.0\nhttp://h/ 192.0.2.1 20140216050221 a/b 1\n\n{lines}");
    let warc = [
        record(&header("resource"), lines),
        record(&header("response"), &format!("{http}{lines}")),
        record(&header("response"), &http_lines),
    ]
    .concat();
    let arc = [arc(&format!("{http}{lines}")), arc(&http_lines)].concat();
    let digest = format!("sha1:{}", data_encoding::BASE32.encode(&Sha1::digest(lines)));
    for (text, count) in [(warc, 3), (arc, 2)] {
        for step in [0, 1, 2, 7, 64, 10_000] {
            let digests: Vec<_> = index_fields(text.as_bytes(), step).into_iter().map(|[digest, ..]| digest).collect();
            assert_eq!(digests, vec![digest.clone(); count], "{step}");
        }
    }
}

#[test]
fn requests_belong_to_their_neighbors() {
    let request = |fields: &str, body: &str| {
        let content = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        record(&format!("WARC-Type: request\r\n{fields}"), &content)
    };
    let response = |fields: &str| record(&format!("WARC-Type: response\r\n{fields}"), "HTTP/1.1 200 OK\r\n\r\n");
    let url = |name: &str| format!("WARC-Target-URI: http://a.org/{name}\r\n");
    let id = |id: u32| format!("WARC-Record-ID: <urn:{id}>");
    let to = |id: u32| format!("\r\nWARC-Concurrent-To: <urn:{id}>");
    let text = [
        // The request after its response and before it.
        response(&(url("1") + &id(1))),
        request(&(url("1") + &id(2) + &to(1)), "a"),
        request(&(url("2") + &id(3)), "b"),
        response(&(url("2") + &id(4) + &to(9) + &to(3))),
        request(&(url("3") + &id(5) + &to(6)), "c"),
        response(&(url("3") + &id(6))),
        // Of another URL, of another record, and not neighbors.
        response(&(url("4") + &id(7))),
        request(&(url("x") + &id(8) + &to(7)), "d"),
        response(&(url("5") + &id(10))),
        request(&(url("5") + &id(11) + &to(7)), "e"),
        response(&(url("6") + &id(12))),
        record("WARC-Type: warcinfo", ""),
        request(&(url("6") + &id(13) + &to(12)), "f"),
        // Without identifiers; a response has one request.
        request(url("7").trim_end(), "g"),
        response(url("7").trim_end()),
        request(url("7").trim_end(), "h"),
        // Before the response is a record of another type.
        record(&format!("WARC-Type: conversion\r\n{}", url("8").trim_end()), ""),
        response(url("8").trim_end()),
        request(url("8").trim_end(), "i"),
    ]
    .concat();
    let bodies = ["YQ==", "Yg==", "Yw==", "", "", "", "Zw==", "aQ=="];
    let expected = bodies.map(|text| if text.is_empty() { String::new() } else { format!("__wb_post_data={text}") });
    for step in [0, 1, 7, 100, 10_000] {
        let fields = index_fields(text.as_bytes(), step);
        assert_eq!(fields.iter().map(|[.., body]| body.clone()).collect::<Vec<_>>(), expected, "{step}");
        let methods = fields.iter().filter(|[_, method, _]| method == "POST").count();
        assert_eq!(methods, 5, "{step}");
    }
}

/// Requests are read for each of their fields.
#[test]
fn a_body_is_read_without_its_method() {
    let url = "\r\nWARC-Target-URI: http://a.org/";
    let text = [
        record(&format!("WARC-Type: request{url}"), "POST / HTTP/1.1\r\n\r\na"),
        record(&format!("WARC-Type: response{url}"), "HTTP/1.1 200 OK\r\n\r\n"),
    ]
    .concat();
    let has = |carry: FieldSet| {
        let limits = BatchLimits { target_len: usize::MAX, max_record_len: usize::MAX };
        let mut batch = CaptureBatch::new(carry, limits);
        parse_whole(&mut ArchiveParser::of_types(RecordTypes::Replayable, carry), &text, &mut batch);
        let rows = batch.into_rows();
        let fields = rows.records().fields;
        [fields.methods, fields.request_bodies].map(|column| column.first().is_some_and(Option::is_some))
    };
    let carry = |method: bool, request_body: bool| FieldSet { method, request_body, ..FieldSet::default() };
    for [method, body] in [[true, true], [true, false], [false, true], [false, false]] {
        assert_eq!(has(carry(method, body)), [method, body]);
    }
}
