//! Link tables of WAT records (Common Crawl's metadata of pages). In: the JSON of one metadata record. Out: a
//! [`Capture`] a link, its base being the page's `Head.Base`, resolved against the page's URL, or that URL.
//!
//! Links are those of `HTML-Metadata`: `Head.Link`, `Head.Scripts` and `Links`, in that order, those with a `url`. JSON
//! that is broken, or cut where it is too long, gives the links up to there and a record with a fault.

use super::capture::Capture;
use super::json::{Elements, Members, Value, at_path, unescape};
use crate::iri::{Base, FaultKind, find_scheme};

const HTML: [&str; 4] = ["Envelope", "Payload-Metadata", "HTTP-Response-Metadata", "HTML-Metadata"];

/// Appends the lines of the links that `json` lists for the page of `page`.
pub(super) fn write_links(page: &Capture, json: &[u8], out: &mut Vec<u8>) {
    let mut members = Members::new(json);
    members.by_ref().for_each(drop);
    if members.is_broken() {
        let fault = Some(FaultKind::NotOfFormat);
        Capture { offset: page.offset, flags: page.flags, fault, ..Capture::default() }.write_line(out);
    }
    let Some(Value::Nested(html)) = at_path(json, &HTML) else { return };
    let base = base(html, &page.url);
    for path in [&["Head", "Link"][..], &["Head", "Scripts"], &["Links"]] {
        let Some(Value::Nested(list)) = at_path(html, path) else { continue };
        for link in Elements::new(list) {
            if let Value::Nested(link) = link
                && let Some(Value::Text(text)) = at_path(link, &["url"])
            {
                let mut url = Vec::new();
                unescape(text, &mut url);
                let base = base.clone();
                Capture { offset: page.offset, time: page.time, url, base, ..Capture::default() }.write_line(out);
            }
        }
    }
}

/// The base of a page's links.
fn base(html: &[u8], page: &[u8]) -> Vec<u8> {
    let Some(Value::Text(text)) = at_path(html, &["Head", "Base"]) else { return page.to_vec() };
    let mut own = Vec::new();
    unescape(text, &mut own);
    if find_scheme(&own).is_some() {
        return own;
    }
    Base::new(page).and_then(|page| page.resolve(&own)).unwrap_or(page.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Bitmaps;
    use crate::record::capture::Captures;

    fn links(html: &str) -> Vec<(String, String)> {
        let json =
            format!(r#"{{"Envelope":{{"Payload-Metadata":{{"HTTP-Response-Metadata":{{"HTML-Metadata":{html}}}}}}}}}"#);
        let page = Capture { url: b"http://a.org/b/c".to_vec(), ..Capture::default() };
        let mut out = Vec::new();
        write_links(&page, json.as_bytes(), &mut out);
        let (mut captures, mut bitmaps) = (Captures::default(), Bitmaps::default());
        let records = captures.decode(&out, &mut bitmaps);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        records.urls.iter().zip(records.bases).map(|(url, base)| (text(url.of(&out)), text(base.of(&out)))).collect()
    }

    #[test]
    fn links_and_their_base() {
        let pair = |url: &str, base: &str| (url.to_string(), base.to_string());
        let html = r##"{"Head":{"Base":"\/x\/","Link":[{"path":"LINK@/href","url":"l.css"},{"path":"no"}],"Scripts":[{"url":"s.js"}]},
            "Links":[{"url":"a\u0020b"},{"url":1},7,{"x":[{"url":"no"}],"url":"#f"}]}"##;
        let base = "http://a.org/x/";
        assert_eq!(links(html), [pair("l.css", base), pair("s.js", base), pair("a b", base), pair("#f", base)]);
        assert_eq!(links(r#"{"Links":[{"url":"y"}]}"#), [pair("y", "http://a.org/b/c")]);
        assert_eq!(links(r#"{"Head":{"Base":"https://z/"},"Links":[{"url":"y"}]}"#), [pair("y", "https://z/")]);
        assert_eq!(links("{}"), []);
    }

    #[test]
    fn broken_json_is_a_record_with_a_fault() {
        let mut out = Vec::new();
        write_links(&Capture::default(), br#"{"Envelope":{"Payload"#, &mut out);
        assert_eq!(out.iter().filter(|&&byte| byte == b'\n').count(), 1);
    }
}
