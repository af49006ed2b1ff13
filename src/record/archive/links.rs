//! Links of WAT records, Common Crawl's metadata of pages: the JSON of one record in, the URL and base of each link out.
//!
//! Links are the entries of `HTML-Metadata` that have a `url`, in the lists `Head.Link`, `Head.Scripts` and `Links`, in
//! that order. Their base is `Head.Base`, resolved against the URL of the page, or that URL. JSON that is broken, or cut
//! because it is too long, gives the links before that point.

use crate::iri::{Base, FaultKind, find_scheme};
use crate::record::json::{JsonElements, JsonMembers, JsonValue, at_path, unescape};
use std::ops::Range;

/// Longest base of the links of a page, in bytes. Every link is resolved against the base, so the size of the output is
/// bounded by this length times the number of links.
const MAX_BASE_LEN: usize = 16 << 10;

const HTML: [&str; 4] = ["Envelope", "Payload-Metadata", "HTTP-Response-Metadata", "HTML-Metadata"];
const LISTS: [&[&str]; 3] = [&["Head", "Link"], &["Head", "Scripts"], &["Links"]];

/// Reads the links of one record after the other. It keeps positions instead of slices, so that the caller can pause
/// between two links.
#[derive(Debug, Default)]
pub(super) struct LinkReader {
    base: Vec<u8>,
    /// The last URL.
    url: Vec<u8>,
    /// The part of each list that is still to be read, as offsets in the JSON.
    lists: [Range<usize>; LISTS.len()],
}

impl LinkReader {
    /// Begins with the JSON of the page `page_url`. Returns a fault if the JSON is broken, or if its links are not read
    /// because their base is longer than [`MAX_BASE_LEN`].
    pub(super) fn begin(&mut self, json: &[u8], page_url: &[u8]) -> Option<FaultKind> {
        let mut members = JsonMembers::new(json);
        members.by_ref().for_each(drop);
        self.lists = Default::default();
        if let Some(JsonValue::Nested(html)) = at_path(json, &HTML) {
            self.base = base(html, page_url);
            if self.base.len() > MAX_BASE_LEN {
                return Some(FaultKind::TooLong);
            }
            replace_line_feeds(&mut self.base);
            for (range, path) in self.lists.iter_mut().zip(LISTS) {
                if let Some(JsonValue::Nested(list)) = at_path(html, path) {
                    *range = range_in(json, JsonElements::new(list).rest());
                }
            }
        }
        members.is_broken().then_some(FaultKind::NotOfFormat)
    }

    /// The URL and base of the next link; `json` is the text given to [`LinkReader::begin`].
    pub(super) fn next(&mut self, json: &[u8]) -> Option<(&[u8], &[u8])> {
        for range in &mut self.lists {
            let mut elements = JsonElements::after(&json[range.clone()]);
            for link in elements.by_ref() {
                if let JsonValue::Nested(link) = link
                    && let Some(JsonValue::Text(text)) = at_path(link, &["url"])
                {
                    *range = range.end - elements.rest().len()..range.end;
                    self.url.clear();
                    unescape(text, &mut self.url);
                    replace_line_feeds(&mut self.url);
                    return Some((&self.url, &self.base));
                }
            }
            *range = 0..0;
        }
        None
    }
}

/// The base of a page's links.
fn base(html: &[u8], page_url: &[u8]) -> Vec<u8> {
    let Some(JsonValue::Text(text)) = at_path(html, &["Head", "Base"]) else { return page_url.to_vec() };
    let mut own = Vec::new();
    unescape(text, &mut own);
    if find_scheme(&own).is_some() {
        return own;
    }
    Base::new(page_url).and_then(|page| page.resolve(&own)).unwrap_or(page_url.to_vec())
}

/// Replaces `LF`, which strings of JSON can contain, by a space, as in every format of lines.
fn replace_line_feeds(text: &mut [u8]) {
    text.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
}

/// The range of `part`, a slice of `whole`.
fn range_in(whole: &[u8], part: &[u8]) -> Range<usize> {
    let at = part.as_ptr() as usize - whole.as_ptr() as usize;
    at..at + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(html: &str) -> Vec<(String, String)> {
        let json =
            format!(r#"{{"Envelope":{{"Payload-Metadata":{{"HTTP-Response-Metadata":{{"HTML-Metadata":{html}}}}}}}}}"#);
        let mut reader = LinkReader::default();
        assert_eq!(reader.begin(json.as_bytes(), b"http://a.org/b/c"), None);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        std::iter::from_fn(|| reader.next(json.as_bytes()).map(|(url, base)| (text(url), text(base)))).collect()
    }

    #[test]
    fn links_and_their_base() {
        let pair = |url: &str, base: &str| (url.to_string(), base.to_string());
        let html = r##"{"Head":{"Base":"\/x\/","Link":[{"path":"LINK@/href","url":"l.css"},{"path":"no"}],"Scripts":[{"url":"s.js"}]},
            "Links":[{"url":"a\u0020b"},{"url":1},7,{"x":[{"url":"no"}],"url":"#f\n"}]}"##;
        let base = "http://a.org/x/";
        assert_eq!(links(html), [pair("l.css", base), pair("s.js", base), pair("a b", base), pair("#f ", base)]);
        assert_eq!(links(r#"{"Links":[{"url":"y"}]}"#), [pair("y", "http://a.org/b/c")]);
        assert_eq!(links(r#"{"Head":{"Base":"https://z/"},"Links":[{"url":"y"}]}"#), [pair("y", "https://z/")]);
        assert_eq!(links("{}"), []);
    }

    #[test]
    fn long_bases_are_reported() {
        let json = |base_len: usize| {
            let html = format!(r#"{{"Head":{{"Base":"http://{}/"}},"Links":[{{"url":"y"}}]}}"#, "a".repeat(base_len));
            let parts = r#"{"Envelope":{"Payload-Metadata":{"HTTP-Response-Metadata":{"HTML-Metadata":"#;
            format!("{parts}{html}}}}}}}}}")
        };
        let mut reader = LinkReader::default();
        for (base_len, fault) in [(MAX_BASE_LEN, Some(FaultKind::TooLong)), (MAX_BASE_LEN - 8, None)] {
            let json = json(base_len);
            assert_eq!(reader.begin(json.as_bytes(), b"http://a.org/"), fault);
            assert_eq!(reader.next(json.as_bytes()).is_some(), fault.is_none());
        }
        let long_page = [&b"http://"[..], &[b'a'; MAX_BASE_LEN]].concat();
        assert_eq!(reader.begin(json(9).as_bytes(), &long_page), None);
    }

    #[test]
    fn broken_json_is_reported() {
        let mut reader = LinkReader::default();
        assert_eq!(reader.begin(br#"{"Envelope":{"Payload"#, b"http://a.org/"), Some(FaultKind::NotOfFormat));
        assert_eq!(reader.next(br#"{"Envelope":{"Payload"#), None);
    }
}
