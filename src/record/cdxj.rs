//! CDXJ: `key time {json}` lines, as Common Crawl's index and pywb write them. In: a chunk of whole lines. Out: the
//! records and what they carry, end to end in a text of our own, since JSON has escapes.
//!
//! The dialects differ in little: numbers or strings for `status`, `redirect` and `charset` there or not. A key may hold
//! spaces; the JSON begins at the first ` {` behind a time. A line without JSON, or whose JSON ends early or has no
//! `url`, is a record with a fault, the line being its URL. Lines that begin with `!` or `@` are counted as headers; they
//! and blank lines are no records.

use super::collected::{Collected, lines, put};
use super::fields::Field;
use super::json::{Members, Value, unescape};
use super::{Records, Span, time};
use crate::iri::{CLASSIFIER, FaultKind};
use crate::kernel::Bitmaps;

/// Decoder of CDXJ; keeps the memory of its text and spans.
#[derive(Debug, Default)]
pub struct Cdxj {
    text: Vec<u8>,
    found: Collected,
}

impl Cdxj {
    /// Every record of `chunk`, which begins at byte `offset` of the source; `bitmaps` describe the records' text
    /// afterwards.
    ///
    /// ```
    /// use irikey::{kernel::Bitmaps, record::cdxj::Cdxj};
    /// let line = br#"org,a)/ 20140127171200 {"url": "http:\/\/a.org\/", "status": "200"}"#;
    /// let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
    /// let records = cdxj.decode(line, 0, &mut bitmaps);
    /// assert_eq!(records.urls[0].of(records.text), b"http://a.org/");
    /// assert_eq!(records.fields.statuses, [Some(200)]);
    /// ```
    pub fn decode<'a>(&'a mut self, chunk: &[u8], offset: u64, bitmaps: &mut Bitmaps) -> Records<'a> {
        self.text.clear();
        self.found.clear();
        for (at, line) in lines(chunk) {
            match line.first() {
                None => (),
                Some(b'\r') if line.len() == 1 => (),
                Some(b'!' | b'@') => self.found.header(),
                Some(_) => {
                    self.found.begin(offset + at as u64);
                    self.line(line);
                }
            }
        }
        bitmaps.classify(&self.text, &CLASSIFIER);
        self.found.records(&self.text)
    }

    fn line(&mut self, line: &[u8]) {
        let (time, json) = split(line);
        let mut field = Field { time, ..Field::default() };
        let (mut url, begun) = (None, self.text.len());
        let mut members = Members::new(json);
        for (key, value) in members.by_ref() {
            match (key, value) {
                (b"url", Value::Text(text)) if url.is_none() => url = self.put(text),
                (b"status", Value::Text(text) | Value::Bare(text)) => field.status = number(text),
                (b"timestamp", Value::Text(text)) => field.time = field.time.or(time::from_digits(text)),
                (b"redirect", Value::Text(text)) => field.redirect = self.put(text),
                (b"digest", Value::Text(text)) => field.digest = self.put(text),
                (b"charset", Value::Text(text)) => field.charset = self.put(text),
                _ => {}
            }
        }
        // What the members told before the JSON broke is not to be trusted.
        let kind = if members.is_broken() { Some(FaultKind::NotOfFormat) } else { None };
        let kind = kind.or(url.is_none().then_some(FaultKind::NoUrl));
        if let Some(kind) = kind {
            self.found.refuse(kind);
            self.text.truncate(begun);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            url = Some(put(&mut self.text, |text| text.extend_from_slice(line)));
            field = Field { time, ..Field::default() };
        }
        self.found.push(url.unwrap_or_default(), field);
    }

    /// Copies a string, and `LF` behind it; `-` says nothing.
    fn put(&mut self, text: &[u8]) -> Option<Span> {
        (text != b"-").then(|| put(&mut self.text, |out| unescape(text, out)))
    }
}

fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `line` is unmistakably a record: a time, then JSON.
pub(super) fn is_record(line: &[u8]) -> bool {
    let (time, json) = split(line);
    time.is_some() && json.strip_prefix(b"{").is_some_and(|rest| rest.trim_ascii_start().first() == Some(&b'"'))
}

/// The time and the JSON of a line. Without a time before it, the first ` {` begins the JSON, or the line's first byte.
fn split(line: &[u8]) -> (Option<i64>, &[u8]) {
    let mut first = line.starts_with(b"{").then_some(0);
    for space in memchr::memchr_iter(b'{', line).filter_map(|brace| brace.checked_sub(1)) {
        if line[space] != b' ' {
            continue;
        }
        let head = &line[..space];
        let word = &head[memchr::memrchr(b' ', head).map_or(0, |at| at + 1)..];
        if let Some(time) = time::from_digits(word) {
            return (Some(time), &line[space + 1..]);
        }
        first = first.or(Some(space + 1));
    }
    (None, first.map_or(b"", |at| &line[at..]))
}

#[cfg(test)]
mod tests {
    use super::super::Offsets;
    use super::*;

    #[test]
    fn both_dialects() {
        let text = br#"!OpenWayback-CDXJ 1.0
org,a)/ 20140127171200 {"url": "http://a.org/", "mime": "text/html", "status": "301", "digest": "B2LT", "redirect": "/x\u0020y", "charset": "UTF-8"}
org,a)/?q={a {b} 20140127171201 {"offset":"0","status":200,"url":"http://a.org/?q={a {b}"}

{"url":"http://b.org/","timestamp":"20140127171202","status":"-","charset":"-"}
"#;
        let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
        let records = cdxj.decode(text, 10, &mut bitmaps);
        let show = |span: Span| String::from_utf8_lossy(span.of(records.text)).into_owned();
        let urls: Vec<_> = records.urls.iter().map(|&url| show(url)).collect();
        assert_eq!(urls, ["http://a.org/", "http://a.org/?q={a {b}", "http://b.org/"]);
        assert_eq!(records.fields.statuses, [Some(301), Some(200), None]);
        assert_eq!(records.fields.times, [0, 1000, 2000].map(|ms| Some(1_390_842_720_000 + ms)));
        assert_eq!(
            records.fields.redirects.iter().map(|span| span.map(show)).collect::<Vec<_>>()[0].as_deref(),
            Some("/x y")
        );
        assert_eq!(records.fields.charsets.iter().flatten().count(), 1);
        assert!(records.faults.is_empty());
        assert!(records.urls.windows(2).all(|pair| pair[0].at + pair[0].len <= pair[1].at));
        let Offsets::Each(offsets) = records.offsets else { panic!("each record has its offset") };
        assert_eq!(offsets[0], 10 + 22);
    }

    #[test]
    fn what_is_no_record_has_a_fault() {
        let lines =
            ["org,a)/ 2014", "a 20140127171200 {", r#"a 20140127171200 {"status":1}"#, r#"a 20140127171200 {"url":1}"#];
        for line in lines {
            let (mut cdxj, mut bitmaps) = (Cdxj::default(), Bitmaps::default());
            let records = cdxj.decode(line.as_bytes(), 0, &mut bitmaps);
            assert_eq!((records.urls.len(), records.faults.len()), (1, 1), "{line}");
        }
    }
}
