//! Recipes and decoders accept any bytes: they do not panic, and the spans that they return lie within the text, in order.
//! Documents need a bounded stack.

use irikey::kernel::Bitmaps;
use irikey::key::psl::HostParts;
use irikey::key::{Draft, Recipe};
use irikey::record::archive::{ArchiveEnd, ArchiveParser, ArchiveWindow, BatchLimits, CaptureBatch};
use irikey::record::fields::FieldSet;
use irikey::record::{RecordBuffer, Records, TextDecoder, cdx, cdxj, crawl_log, journal};
use proptest::prelude::*;

use crate::generators::config;

fn check_spans(records: Records) -> Result<(), TestCaseError> {
    let fields = records.fields;
    let count = records.urls.len();
    prop_assert_eq!([fields.statuses.len(), fields.times.len(), fields.digests.len()], [count; 3]);
    let spans = [fields.redirects, fields.redirected_from, fields.digests, fields.charsets];
    let spans = spans.into_iter().chain([fields.mimes, fields.detected_mimes, fields.languages, fields.filenames]);
    for span in records.urls.iter().copied().chain(spans.flatten().copied().flatten()) {
        prop_assert!((span.at + span.len) as usize <= records.text.len());
    }
    prop_assert!(records.urls.windows(2).all(|pair| pair[0].at + pair[0].len <= pair[1].at));
    Ok(())
}

proptest! {
    #![proptest_config(config(1))]

    #[test]
    fn recipes_accept_any_bytes(
        url in "(https?:|HTTP:|dns:|foo:| )?/{0,3}([a-z%.@:\\[\\]0-9\u{fc}\u{5d0}\u{3002}]|%[0-9a-f]{2}|\\PC){0,20}([/.?&=#;]|sid=|\\PC){0,20}",
        tail in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut url = url.into_bytes();
        url.extend(tail);
        let (mut draft, mut key) = (Draft::default(), Vec::new());
        for name in Recipe::names() {
            let recipe = Recipe::parse(name).expect("the name of a recipe");
            key.clear();
            let written = recipe.write_key(&url, &mut draft, &mut key);
            prop_assert!(written.is_ok() || key.is_empty());
            let mut again = Vec::new();
            prop_assert_eq!(recipe.write_key(&url, &mut Draft::default(), &mut again), written);
            prop_assert_eq!(&again, &key);
        }
        HostParts::of(&url);
    }

    #[test]
    fn archives_accept_any_bytes_in_any_pieces(
        text in r"(WARC/1.0\r?\n|WARC-Target-URI: <?http://a/>?\r?\n|Content-Length: [0-9]{1,2}\n|WARC-Type: (response|metadata|x)\n|\r?\n|HTTP/1.1 30[0-9]\n|Location: /x\n|http://a 1.1.1.1 20140216050221 a/b [0-9]\n|\PC){0,30}",
        tail in prop::collection::vec(any::<u8>(), 0..8),
        step in 1usize..50,
    ) {
        let mut text = text.into_bytes();
        text.extend(tail);
        let parse = |step: usize| {
            let mut parser = ArchiveParser::default();
            parser.set_file("a.warc", false);
            let limits = BatchLimits { target_len: usize::MAX, max_record_len: usize::MAX };
            let mut batch = CaptureBatch::new(FieldSet::ALL, limits);
            let mut seen = 0;
            loop {
                let from = parser.keep_from() as usize;
                let window = ArchiveWindow { at: from as u64, bytes: &text[from..seen] };
                parser.push(window, &mut batch);
                if seen == text.len() {
                    let end = parser.finish(window, &mut batch);
                    if end != ArchiveEnd::NotYet {
                        return (batch.into_rows(), end);
                    }
                }
                seen = text.len().min(seen + step);
            }
        };
        let show = |rows: &RecordBuffer| format!("{:?}", rows.records());
        let (rows, end) = parse(step);
        prop_assert_eq!((show(&rows), end), (show(&parse(1).0), parse(1000).1));
        check_spans(rows.records())?;
    }

    #[test]
    fn decoders_accept_any_bytes(
        text in "([ -]|[0-9]{1,3}|20140103030321|http://a|a/b|\r?\n| CDX N b a|\\{|\\}|\"|\"url\":|,|\\\\|\\\\ud83d|\\PC){0,60}",
        tail in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut text = text.into_bytes();
        text.extend(tail);
        let mut bitmaps = Bitmaps::default();
        check_spans(cdx::Cdx::default().decode(&text, 0, &mut bitmaps))?;
        check_spans(cdxj::Cdxj::default().decode(&text, 0, &mut bitmaps))?;
        check_spans(crawl_log::CrawlLog::default().decode(&text, 0, &mut bitmaps))?;
        check_spans(journal::Journal::default().decode(&text, 0, &mut bitmaps))?;
    }
}

/// What a document may begin with, before a part that repeats.
#[cfg(feature = "extract")]
const STARTS: [&[u8]; 22] = [
    b"",
    b"<a ",
    b"</a ",
    b"<a b=\"",
    b"<a b='",
    b"<a b=",
    b"<!--",
    b"<!",
    b"<?",
    b"<!doctype ",
    b"<!doctype a ",
    b"<!doctype a public \"",
    b"<!doctype a system '",
    b"<script>",
    b"<script><!--",
    b"<script><!--<script>",
    b"<title>",
    b"<style>",
    b"<svg><![CDATA[",
    b"<?xml version='1.0'?><a ",
    b"<?xml version='1.0'?><!DOCTYPE a [",
    b"{\"version\":\"https://jsonfeed.org/version/1\",\"items\":",
];

/// Parts of documents that may repeat.
#[cfg(feature = "extract")]
#[rustfmt::skip]
const PARTS: [&[u8]; 52] = [
    b"<", b"</", b"a", b"A", b" ", b"\"", b"'", b"=", b">", b"/", b"!", b"-", b"&", b"&amp", b"&am", b"&amp;", b"&#1;", b"&#",
    b"&#x", b"\r", b"\r\n", b"\0", b"\xC3\xA9", b"\xFF", b"\x80", b"?", b"]", b"[", b"{", b"[{", b"{\"a\":", b"a=\"\"",
    b"a=\"b\" ", b"a='b' ", b"a=b ", b"a=\"b\"/", b"a ", b"/a", b"<a>", b"</a>", b"<svg>", b"<template>", b"<!-- -->", b"<!>",
    b"<?>", b"</ >", b"</script", b"<script>", b"]]", b"a=\"&amp;\" ", b"<a b=\"c\" d=\"e\">", b"<!ENTITY a '&a;'>",
];

/// A stack overflow ends the process, so the stack must not grow with the document. 256 KiB suffice for any document.
#[cfg(feature = "extract")]
#[test]
fn documents_need_a_bounded_stack() {
    use irikey::extract::{DocumentContext, extract};
    let read_all = || {
        for start in STARTS {
            for part in PARTS {
                let text = [start, &part.repeat((64 << 10) / part.len())].concat();
                extract(&text, &DocumentContext::default());
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(read_all).expect("a thread");
    thread.join().expect("no panic");
}
